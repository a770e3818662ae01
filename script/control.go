package script

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// perform does what the body of a step says. The error is why it could not be done;
// what failed otherwise is in d.
func (t *thread) perform(ctx context.Context, s *Step, d *done) error {
	switch b := s.Body.(type) {
	case *Send:
		return t.send(ctx, s, b, d)
	case *ForEach:
		return t.forEach(ctx, b, d)
	case *Parallel:
		return t.parallel(ctx, b, d)
	case *Repeat:
		return t.repeat(ctx, b, d)
	case *Retry:
		return t.retry(ctx, b, d)
	case *Wait:
		return t.wait(ctx, b, d)
	case *Serve:
		return t.serve(ctx, b, d)
	case *Connect:
		return t.connect(ctx, s, b, d)
	case *Listen:
		return t.listen(ctx, b, d)
	case *Fault:
		return t.fault(ctx, b, d)
	case *Assert:
		for _, x := range b.Exprs {
			if !t.expect(ctx, x, d) {
				return nil
			}
		}
		return nil
	case *SetVar:
		return t.setVar(ctx, b)
	case *Include:
		return t.include(ctx, b, d)
	case *Log:
		return t.log(ctx, b)
	}
	return fmt.Errorf("steps of the kind %T cannot be run", s.Body)
}

// within runs the steps of a step, for the iteration that label names. ok: the next one
// may follow.
func (t *thread) within(ctx context.Context, steps []*Step, label string, d *done) (ok bool) {
	t.label = label
	v, stop := t.steps(ctx, steps)
	t.label = ""
	d.inner = max(d.inner, v)
	if stop && (t.onError != OnErrorContinue || ctx.Err() != nil) {
		d.stop = true
	}
	return !d.stop
}

func (t *thread) forEach(ctx context.Context, b *ForEach, d *done) error {
	items, err := t.items(ctx, &b.In)
	if err != nil {
		return err
	}
	most, err := t.vars.number(ctx, b.Max, MaxIterations, 1, MaxIterations)
	if err != nil {
		return err
	}
	if uint64(len(items)) > most {
		return &placedError{b.In.Pos, fmt.Errorf("there are %d elements, and max is %d", len(items), most)}
	}
	t.loop = true
	for _, item := range items {
		mark := t.vars.mark()
		t.vars.bind(b.Var.Text, item)
		d.iterations++
		ok := t.within(ctx, b.Steps, itemLabel(b.Var.Text, item), d)
		t.vars.release(mark)
		if !ok {
			break
		}
	}
	t.vars.bind("iterations", d.iterations)
	return nil
}

func (t *thread) repeat(ctx context.Context, b *Repeat, d *done) error {
	times, err := t.vars.number(ctx, b.Times, MaxIterations, 1, MaxIterations)
	if err != nil {
		return err
	}
	every, err := t.vars.duration(ctx, b.Every, 0)
	if err != nil {
		return err
	}
	t.loop = true
	if t.opt.DryRun && times > 1 {
		d.detail = "once is shown"
		times = 1
	}
	for i := range times {
		start := time.Now()
		d.iterations++
		if !t.within(ctx, b.Steps, ordinal(i, times, b.Times != nil), d) {
			break
		}
		if b.Until != nil && !t.opt.DryRun {
			over, err := t.holds(ctx, b.Until)
			if err != nil {
				return err
			}
			if over {
				break
			}
			if i == times-1 {
				return t.inVain(ctx, b.Until, times, d)
			}
		}
		if i < times-1 && !t.pause(ctx, time.Until(start.Add(every))) {
			t.cut(d)
			break
		}
	}
	t.vars.bind("iterations", d.iterations)
	return nil
}

// inVain fails a repeat that did not come to its end.
func (t *thread) inVain(ctx context.Context, until *Expr, times uint64, d *done) error {
	if t.expect(ctx, until, d) { // by now it is so
		return nil
	}
	if d.verdict == Failed {
		d.failure.Expect += fmt.Sprintf(" within %s", plural(int(times), "iteration"))
	}
	return nil
}

func (t *thread) retry(ctx context.Context, b *Retry, d *done) error {
	times, err := t.vars.number(ctx, b.Times, 3, 1, MaxIterations)
	if err != nil {
		return err
	}
	delay, err := t.vars.duration(ctx, b.Delay, time.Second)
	if err != nil {
		return err
	}
	t.loop = true
	tolerant := t.tolerant
	for i := range times {
		last := i == times-1
		t.tolerant = tolerant || !last
		*d = done{iterations: d.iterations + 1}
		ok := t.within(ctx, b.Steps, ordinal(i, times, true), d)
		if ok && !d.inner.bad() || last || ctx.Err() != nil {
			break
		}
		if !t.pause(ctx, delay) {
			t.cut(d)
			break
		}
	}
	t.vars.bind("iterations", d.iterations)
	return nil
}

// cut notes that the context ended what a step does between two of its steps.
func (t *thread) cut(d *done) { d.inner, d.stop = max(d.inner, t.ended()), true }

func (t *thread) wait(ctx context.Context, b *Wait, d *done) error {
	long, err := t.vars.duration(ctx, b.For, 0)
	if err != nil || t.opt.DryRun {
		return err
	}
	d.detail = long.String()
	if !t.pause(ctx, long) {
		return context.Cause(ctx)
	}
	return nil
}

// pause lets time pass. It is false if ctx ended first.
func (t *thread) pause(ctx context.Context, long time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	if long <= 0 || t.opt.DryRun {
		return true
	}
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *thread) setVar(ctx context.Context, b *SetVar) error {
	for _, e := range b.Vars {
		var value any
		if e.Value != nil {
			var err error
			if value, err = t.vars.value(ctx, e.Value); err != nil {
				var placed *placedError
				if errors.As(err, &placed) {
					return &placedError{placed.pos, fmt.Errorf("%s: %w", e.Key, placed.err)}
				}
				return err
			}
		}
		t.vars.set(e.Key, value)
		delete(t.unknown, e.Key)
	}
	return nil
}

func (t *thread) log(ctx context.Context, b *Log) error {
	line, err := t.vars.text(ctx, b.Text)
	if err != nil {
		return err
	}
	e := t.event(EventLog, t.spot.step)
	e.Detail = t.mask(line)
	t.out.emit(e)
	return nil
}

// include runs another file, with variables of its own.
func (t *thread) include(ctx context.Context, b *Include, d *done) error {
	given := make(map[string]any, len(b.With))
	for _, e := range b.With {
		if e.Value == nil {
			given[e.Key] = nil
			continue
		}
		value, err := t.vars.value(ctx, e.Value)
		if err != nil {
			return err
		}
		given[e.Key] = value
	}
	file := *t
	file.vars, file.unknown = t.lib.newVars(), make(names)
	d.detail = b.File.Text
	err := file.script(ctx, b.Script, given)
	d.inner, d.stop = file.worst, file.stopped
	t.vars.bind("result", file.vars.all())
	return err
}

// serve answers requests while its steps run, or for a time.
func (t *thread) serve(ctx context.Context, b *Serve, d *done) error {
	long, err := t.vars.duration(ctx, b.For, 0)
	if err != nil {
		return err
	}
	if t.opt.DryRun {
		d.detail = "nothing is served"
		t.within(ctx, b.Steps, "", d)
		return nil
	}
	r, err := startServer(ctx, t.fabric, b, t.vars)
	if err != nil {
		return err
	}
	if len(b.Steps) > 0 {
		t.within(ctx, b.Steps, "", d)
	} else if !t.pause(ctx, long) {
		err = context.Cause(ctx)
	}
	if stopErr := r.stop(); err == nil {
		err = stopErr
	}
	r.bind(t.vars)
	return err
}

// itemLabel names an iteration by its element.
func itemLabel(name string, item any) string {
	m, ok := item.(map[string]any)
	if !ok {
		return name + " = " + show(item)
	}
	s := show(item)
	for _, key := range []string{"name", "gid", "lid"} {
		if value, ok := m[key]; ok {
			s, _ = writeMost(value, maxShown)
			s = cutShown(s)
			break
		}
	}
	if number, ok := m["port"]; ok {
		s += "[" + show(number) + "]"
	}
	return name + " = " + s
}

func ordinal(i, times uint64, limited bool) string {
	s := strconv.FormatUint(i+1, 10)
	if limited {
		s += " of " + strconv.FormatUint(times, 10)
	}
	return s
}
