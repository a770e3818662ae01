package script

import (
	"context"
	"fmt"
	"maps"
	"sync"
)

// parallel runs steps, or all of them for each element, at the same time: in branches,
// each with variables of its own. What became of them is summed in their order. The first
// of them, as many as go on at a time, begin in any case; after a failure no other one
// does, and those under way go on to their end.
func (t *thread) parallel(ctx context.Context, b *Parallel, d *done) error {
	most, err := t.vars.number(ctx, b.Max, 16, 1, MaxParallel)
	if err != nil {
		return err
	}
	if t.opt.DryRun {
		most = 1 // there is nothing to wait for
	}
	var items []any
	n := len(b.Steps)
	each := b.Var.Text != ""
	if each {
		if items, err = t.items(ctx, &b.In); err != nil {
			return err
		}
		if n = len(items); n > MaxIterations {
			return &placedError{b.In.Pos, fmt.Errorf("there are %d elements, at most %d can be gone through", n, MaxIterations)}
		}
		t.loop = true
	}
	j := join{done: d, sum: t.sum, firstOf: n}
	o := newOrder(t.out)
	slots := make(chan struct{}, most)
	var running sync.WaitGroup
	for i := range n {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			j.add(i, &done{inner: t.ended(), stop: true}, &tally{})
			break
		}
		if uint64(i) >= most && j.stopped() {
			break
		}
		own := *t
		own.vars, own.out, own.sum, own.unknown = t.vars.fork(), branch{o, i}, &tally{}, maps.Clone(t.unknown)
		steps, label := b.Steps, ""
		if each {
			own.vars.bind(b.Var.Text, items[i])
			label = itemLabel(b.Var.Text, items[i])
		} else {
			steps = b.Steps[i : i+1]
		}
		d.iterations++
		running.Go(func() {
			defer func() { <-slots }()
			var became done
			own.within(ctx, steps, label, &became)
			branch{o, i}.end()
			j.add(i, &became, own.sum)
		})
	}
	running.Wait()
	t.vars.bind("iterations", d.iterations)
	return nil
}

// join sums what became of branches.
type join struct {
	mu      sync.Mutex
	done    *done
	sum     *tally
	firstOf int // the branch whose failure is sum's first
}

func (j *join) add(i int, d *done, sum *tally) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if sum.first != nil && i < j.firstOf {
		j.firstOf, j.sum.first = i, sum.first
	}
	j.sum.add(sum)
	j.done.inner = max(j.done.inner, d.inner)
	j.done.stop = j.done.stop || d.stop
}

func (j *join) stopped() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.done.stop
}
