package ucma

import (
	"context"
	"time"
)

var systemDialect = Illumos

// pollSlice is how long Wait may go on after its context has ended.
const pollSlice = 100 * time.Millisecond

// wait polls. Go's poller cannot: it asks for no event at first, which sol_ucma
// refuses.
func (k *kernelDevice) wait(ctx context.Context) error {
	for ctx.Err() == nil {
		var done bool
		var err error
		end := k.raw.Control(func(fd uintptr) { done, err = poll(fd, pollSlice) })
		if end != nil {
			return k.ended(end)
		}
		if done || err != nil {
			return err
		}
	}
	return ctx.Err()
}
