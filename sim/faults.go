package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Faults is what a link does to MADs in one direction. Probabilities are 0 to 1.
// The zero value is a perfect link.
type Faults struct {
	Loss      float64
	Duplicate float64 // the copy takes its own delay
	// Reorder is the probability that a MAD takes ReorderBy longer, so that later
	// ones overtake it.
	Reorder   float64
	ReorderBy time.Duration // 0: 1 ms
	Delay     time.Duration
	Jitter    time.Duration // added to Delay, evenly from 0 to this
}

const defaultReorderBy = time.Millisecond

func (f Faults) check() error {
	for _, p := range []struct {
		name  string
		value float64
	}{{"Loss", f.Loss}, {"Duplicate", f.Duplicate}, {"Reorder", f.Reorder}} {
		if !(p.value >= 0 && p.value <= 1) {
			return fmt.Errorf("sim: faults: %s %v is no probability (0 to 1)", p.name, p.value)
		}
	}
	if f.Delay < 0 || f.Jitter < 0 || f.ReorderBy < 0 {
		return fmt.Errorf("sim: faults: Delay %v, Jitter %v and ReorderBy %v must not be negative", f.Delay, f.Jitter, f.ReorderBy)
	}
	return nil
}

// impairment is the faults of one directed link with its own random numbers, so
// that what happens on a link depends on the seed and on what went over it, and
// not on other links.
type impairment struct {
	Faults
	random *rand.Rand
}

func newImpairment(f Faults, seed, link uint64) *impairment {
	if does := (Faults{f.Loss, f.Duplicate, f.Reorder, 0, f.Delay, f.Jitter}); does == (Faults{}) {
		return nil
	}
	if f.ReorderBy == 0 {
		f.ReorderBy = defaultReorderBy
	}
	return &impairment{f, rand.New(rand.NewPCG(seed, link))}
}

// happens draws only for faults that can happen.
func (i *impairment) happens(probability float64) bool {
	return probability > 0 && i.random.Float64() < probability
}

func (i *impairment) delay() time.Duration {
	d := i.Delay
	if i.Jitter > 0 {
		d += time.Duration(i.random.Int64N(int64(i.Jitter) + 1))
	}
	if i.happens(i.Reorder) {
		d += i.ReorderBy
	}
	return d
}
