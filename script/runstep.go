package script

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// thread is one line of execution: steps one after another. Each branch of parallel has
// its own.
type thread struct {
	*run
	file *Script
	vars *vars
	out  sink
	sum  *tally // of the steps that stand in the same step
	spot

	// Of a file: what it lacks, so that its steps are skipped; whether its finally runs;
	// and what became of its steps.
	lacks   string
	final   bool
	worst   Verdict
	stopped bool

	unknown names // in a dry run, the variables that an answer would give
}

// spot is where the next step stands.
type spot struct {
	parent   StepID
	step     StepID // the last one that began
	depth    int
	label    string  // of the iteration
	loop     bool    // it is in a loop
	tolerant bool    // retry tries again if it fails
	onError  OnError // of the steps around it
}

// tally sums what became of steps.
type tally struct {
	Counts
	first   *Failure
	missing map[string]int
}

func (a *tally) add(b *tally) {
	a.Counts.add(b.Counts)
	if a.first == nil {
		a.first = b.first
	}
	for word, n := range b.missing {
		a.miss(word, n)
	}
}

func (a *tally) miss(word string, n int) {
	if a.missing == nil {
		a.missing = make(map[string]int)
	}
	a.missing[word] += n
}

// done is what became of a step.
type done struct {
	verdict    Verdict // its own
	detail     string
	failure    *Failure
	inner      Verdict // of the steps in it
	stop       bool    // they ended before their end
	iterations int     // of a loop
	saved      []any   // the values of save
	sent       *message
	answer     *answer
}

// steps runs steps in turn. stop: what holds them ends, too.
func (t *thread) steps(ctx context.Context, list []*Step) (worst Verdict, stop bool) {
	for _, s := range list {
		v, stop := t.step(ctx, s)
		worst = max(worst, v)
		if stop {
			return worst, true
		}
	}
	return worst, false
}

// step runs a step and reports it.
func (t *thread) step(ctx context.Context, s *Step) (v Verdict, stop bool) {
	if ctx.Err() != nil {
		return t.ended(), true
	}
	n := t.began.Add(1)
	if n > t.opt.mostSteps && !t.final {
		t.giveUp(errTooManySteps)
		return Errored, true
	}
	onError := t.onError
	if s.OnError != OnErrorInherit {
		onError = s.OnError
	}
	holds := holdsSteps(s.Body)
	begin := t.event(EventBegin, StepID(n))
	begin.Holds, begin.Name, begin.Does, begin.Section, begin.Pos = holds, nameOf(s), s.Kind.Name, s.Section, s.Pos
	t.spot.step = begin.Step
	start := time.Now()
	t.out.emit(begin)
	mark := t.vars.mark()
	var d done
	var inside *tally
	if holds {
		inside = &tally{}
		within := *t
		within.sum = inside
		within.spot = spot{parent: StepID(n), depth: t.depth + 1, loop: t.loop, tolerant: t.tolerant, onError: onError}
		d = within.attempt(ctx, s)
	} else {
		d = t.attempt(ctx, s)
	}
	t.vars.release(mark)
	for i := range d.saved { // what the step had bound may have the same name
		t.vars.set(s.Save[i].Name.Text, d.saved[i])
	}
	v = d.verdict
	if d.inner.bad() {
		v = max(v, d.inner)
	}
	end := *begin
	end.Kind = EventEnd
	end.Verdict, end.Detail, end.Failure, end.Duration = v, d.detail, d.failure, time.Since(start)
	if holds {
		end.Own = d.verdict != Passed || len(s.Expect) > 0
		end.Inner = inside.Counts
		end.Inner.Iterations = d.iterations
		t.sum.add(inside)
	}
	if !holds || end.Own {
		t.count(&d)
	}
	t.out.emit(&end)
	stop = d.stop || d.verdict.bad()
	return v, stop && (onError != OnErrorContinue || ctx.Err() != nil)
}

// count adds a step to what holds it.
func (t *thread) count(d *done) {
	if t.tolerant && d.verdict.bad() {
		t.sum.Retried++
		return
	}
	t.sum.count(d.verdict)
	if t.sum.first == nil {
		t.sum.first = d.failure
	}
}

// attempt does a step, unless it is skipped.
func (t *thread) attempt(ctx context.Context, s *Step) (d done) {
	defer func() {
		// What must be put back is, whatever is wrong with a step.
		if p := recover(); p != nil {
			t.fail(ctx, &d, s.Pos, fmt.Errorf("a mistake in ibsm: %v\n%s", p, debug.Stack()))
		}
	}()
	if why, err := t.skip(ctx, s); err != nil {
		t.fail(ctx, &d, s.Pos, err)
		return d
	} else if why != "" {
		return done{verdict: Skipped, detail: why}
	}
	outer := ctx
	if limit := t.limit(s); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, &TimeoutError{"the step", limit})
		defer cancel()
	}
	if err := t.perform(ctx, s, &d); err != nil {
		t.fail(ctx, &d, s.Pos, err)
		return d
	}
	overran := func() bool { return ctx.Err() != nil && outer.Err() == nil }
	if overran() && (holdsSteps(s.Body) || !d.verdict.bad()) {
		t.fail(ctx, &d, s.Pos, context.Cause(ctx))
		return d
	}
	if d.verdict.bad() {
		return d
	}
	if t.opt.DryRun && !t.tells(s.Body) {
		for _, b := range s.Save {
			t.unknown[b.Name.Text] = true
		}
		return d
	}
	t.judge(ctx, s, &d)
	if overran() && !d.verdict.bad() {
		d.saved = nil
		t.fail(ctx, &d, s.Pos, context.Cause(ctx))
	}
	return d
}

// skip says why a step is skipped, "" if it is not.
func (t *thread) skip(ctx context.Context, s *Step) (why string, err error) {
	if t.lacks != "" {
		t.miss(t.lacks)
		return "the script needs " + t.lacks, nil
	}
	if word := t.lacking(s.Requires); word != "" {
		t.miss(word)
		return "needs " + word, nil
	}
	if t.opt.DryRun {
		if name := t.depends(s); name != "" {
			t.forget(s)
			return "not told: an answer would give " + name, nil
		}
	}
	if s.If == nil {
		return "", nil
	}
	ok, err := t.holds(ctx, s.If)
	if err != nil || ok {
		return "", err
	}
	return "if: " + s.If.Text, nil
}

// holds is evalBool without the reasons, which cost more than the rest of a step.
func (t *thread) holds(ctx context.Context, x *Expr) (bool, error) {
	value, err := t.vars.eval(ctx, x)
	if err != nil {
		return false, err
	}
	ok, isBool := value.(bool)
	if !isBool {
		return false, &ExprError{x.Pos, x.Text, fmt.Errorf("it is %s, which is neither true nor false", show(value))}
	}
	return ok, nil
}

func (t *thread) miss(word string) { t.sum.miss(word, 1) }

// lacking gives the first of the words that the place does not meet.
func (t *thread) lacking(requires []Word) string {
	for _, w := range requires {
		if !t.provides[w.Text] {
			return w.Text
		}
	}
	return ""
}

// limit is the time limit of a step, 0 if it has none.
func (t *thread) limit(s *Step) time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	switch b := s.Body.(type) {
	case *Send, *Fault:
		return t.file.StepTimeout
	case *Listen:
		if len(b.Steps) == 0 {
			return t.file.StepTimeout
		}
	}
	return 0 // it waits for nobody, or as long as it says
}

// judge tells whether what a step expects holds, and saves what it is to save.
func (t *thread) judge(ctx context.Context, s *Step, d *done) {
	for _, x := range s.Expect {
		if !t.expect(ctx, x, d) {
			return
		}
	}
	if len(s.Save) == 0 {
		return
	}
	saved := make([]any, len(s.Save))
	for i, b := range s.Save {
		var err error
		if saved[i], err = t.vars.eval(ctx, b.Expr); err != nil {
			t.fail(ctx, d, b.Expr.Pos, err)
			return
		}
	}
	d.saved = saved
}

// expect tells whether an expression is true, and fails the step if it is not.
func (t *thread) expect(ctx context.Context, x *Expr, d *done) bool {
	ok, why, err := t.vars.evalBool(ctx, x)
	if ok && err == nil {
		return true
	}
	if err != nil {
		t.fail(ctx, d, x.Pos, err)
		return false
	}
	t.unmet(d, x, why)
	return false
}

// unmet notes that an expectation does not hold.
func (t *thread) unmet(d *done, x *Expr, why *explanation) {
	d.verdict = Failed
	d.failure = &Failure{Pos: x.Pos, Expect: t.mask(x.Text), Got: t.mask(why.Got)}
	for _, k := range why.Values {
		d.failure.Values = append(d.failure.Values, Operand{t.mask(k.Text), t.mask(k.Is)})
	}
	t.show(d)
}

// mask blanks the secrets in a text.
func (t *thread) mask(s string) string { return t.lib.masker.text(s) }

// fail notes that a step could not be done.
func (t *thread) fail(ctx context.Context, d *done, pos Pos, err error) {
	var placed *placedError
	var expr *ExprError
	var value *ValueError
	switch {
	case errors.As(err, &expr):
		pos, err = expr.Pos, fmt.Errorf("%s: %w", expr.Text, expr.Err)
	case errors.As(err, &value):
		pos, err = value.Pos, fmt.Errorf("%q: %w", value.Text, value.Err)
	case errors.As(err, &placed):
		pos, err = placed.pos, placed.err
	}
	d.verdict = Errored
	if ctx.Err() != nil {
		d.verdict = t.ended()
		switch cause := context.Cause(ctx); {
		case d.verdict == Interrupted:
			err = fmt.Errorf("interrupted: %w", err)
		case err != ctx.Err() && err != cause:
			err = fmt.Errorf("%w: %w", cause, err)
		default:
			err = cause
		}
	}
	if text := err.Error(); t.mask(text) != text {
		err = &maskedError{t.mask(text), err}
	}
	d.failure = &Failure{Pos: pos, Err: err}
	t.show(d)
}

// ended is the verdict of a step whose context has ended.
func (t *thread) ended() Verdict {
	if t.caller.Err() != nil && !t.final {
		return Interrupted
	}
	return Errored
}

// maskedError is an error whose text has a secret.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

// event makes an event of where the thread stands.
func (t *thread) event(kind EventKind, id StepID) *Event {
	return &Event{
		Kind: kind, Step: id, Parent: t.parent, Depth: t.depth, Label: t.label, Loop: t.loop, Tolerated: t.tolerant,
	}
}

// aside reports something that went wrong outside of all steps.
func (t *thread) aside(does string, pos Pos, err error) {
	var d done
	t.fail(context.Background(), &d, pos, err)
	t.sum.count(d.verdict)
	if t.sum.first == nil {
		t.sum.first = d.failure
	}
	e := t.event(EventEnd, StepID(t.began.Add(1)))
	e.Name, e.Does, e.Pos, e.Verdict, e.Failure = does, does, d.failure.Pos, d.verdict, d.failure
	t.out.emit(e)
}

// holdsSteps tells whether a step is about other steps.
func holdsSteps(b Body) bool {
	if _, ok := b.(*Include); ok {
		return true
	}
	return len(inner(b)) > 0
}
