package script

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/ucma"
)

// FinallyTimeout is how long the steps of finally may take.
const FinallyTimeout = 10 * time.Second

// Env is the place where a script runs.
type Env struct {
	Device   port.Device
	SA       *sa.Client   // nil: there is none to ask
	SMP      *smp.Client  // nil: no SM agents can be asked
	Resolver *sa.Resolver // nil: only LIDs and routes are addresses
	// CM gives the RDMA CM of the host. nil: there is none.
	CM func(context.Context) (ucma.Opener, error)
	// Faults makes the fabric misbehave. nil: it cannot be told to.
	Faults FaultInjector
	// Simulated tells that nothing real is changed: Options.Yes is not needed.
	Simulated bool
	// Provides are the words of Requirements that the place meets.
	Provides []string
}

// Options are the choices of a run.
type Options struct {
	// Yes lets the script change a fabric that is not simulated.
	Yes bool
	// DryRun sends nothing but look-ups of addresses: every MAD that can be told
	// beforehand is reported.
	DryRun bool
	// Vars are values of the script's variables in place of its own.
	Vars map[string]any
	// Report is told what happens, one event at a time. It must not keep the *Event. nil:
	// nobody is.
	Report func(*Event)

	mostSteps uint64 // 0: MaxStepsRun
}

// NeedsYesError says why a script may not run on a real fabric without Options.Yes.
type NeedsYesError struct {
	Pos  Pos
	Does string // what the step does there
}

func (e *NeedsYesError) Error() string {
	return fmt.Sprintf("%v: %s: on a real fabric that needs --yes", e.Pos, e.Does)
}

// TimeoutError is a time limit that was over. It is context.DeadlineExceeded.
type TimeoutError struct {
	What  string // that took too long
	Limit time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("the time limit of %s, %v, is over", e.What, e.Limit)
}

// Is matches context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// run is one run of a script: what its threads share.
type run struct {
	env      Env
	opt      Options
	fabric   fabric
	lib      *library
	sender   *sender
	provides map[string]bool
	caller   context.Context // it ended: the run is interrupted
	giveUp   context.CancelCauseFunc
	began    atomic.Uint64 // steps
	// cm gives the RDMA CM, opened once.
	cm func() (ucma.Opener, error)
}

// Run runs a script that Check found in order, with the same variables. The error says
// that it did not begin, and why; what became of it is in the Outcome. When ctx ends the
// step under way does, and the steps of finally run.
func Run(ctx context.Context, s *Script, env Env, opt Options) (*Outcome, error) {
	if !s.checked {
		return nil, ErrNotChecked
	}
	if !env.Simulated && !opt.Yes && !opt.DryRun {
		if err := s.Harmless(); err != nil {
			return nil, err
		}
	}
	r := &run{
		env: env, opt: opt, caller: ctx, provides: make(map[string]bool),
		fabric: fabric{dev: env.Device, sa: env.SA, smp: env.SMP, resolver: env.Resolver},
	}
	if r.opt.mostSteps == 0 {
		r.opt.mostSteps = MaxStepsRun
	}
	for _, word := range env.Provides {
		r.provides[word] = true
	}
	r.cm = sync.OnceValues(func() (ucma.Opener, error) { return env.CM(context.WithoutCancel(ctx)) })
	r.lib, r.sender = newLibrary(r.fabric), newSender(r.fabric)
	out := r.outermost(ctx, s)
	return out, r.sender.close()
}

// outermost runs the file that was named.
func (r *run) outermost(ctx context.Context, s *Script) *Outcome {
	start := time.Now()
	ctx, r.giveUp = context.WithCancelCause(ctx)
	defer r.giveUp(nil)
	out := &Outcome{Missing: make(map[string]int)}
	sum := &tally{missing: out.Missing}
	for _, value := range r.opt.Vars {
		r.lib.masker.allowGiven(value)
	}
	for step := range s.walk {
		r.lib.masker.allowIn(step.Body)
	}
	t := &thread{run: r, vars: r.lib.newVars(), out: &reporter{to: r.opt.Report}, sum: sum, unknown: make(names)}
	if err := t.script(ctx, s, r.opt.Vars); err != nil {
		t.aside("run", s.Pos, err)
	}
	out.Counts, out.First, out.Duration = sum.Counts, sum.first, time.Since(start)
	switch {
	case r.caller.Err() != nil:
		out.Verdict = Interrupted
	case sum.Failed > 0:
		out.Verdict = Failed
	case sum.Errors > 0:
		out.Verdict = Errored
	case sum.Passed == 0 && sum.Skipped > 0:
		out.Verdict = Skipped
	}
	t.out.emit(&Event{Kind: EventFinish, Verdict: out.Verdict, Duration: out.Duration, Outcome: out})
	return out
}

// script runs a file: its variables, its steps, and whatever comes its finally. The error
// is a limit of the file's own, or what became of its variables.
func (t *thread) script(ctx context.Context, s *Script, given map[string]any) error {
	limited, cancel := context.WithTimeoutCause(ctx, s.Timeout, &TimeoutError{"the script", s.Timeout})
	defer cancel()
	t.file = s
	t.lacks = t.lacking(s.Requires)
	if s.OnError != OnErrorInherit || t.onError == OnErrorInherit {
		t.onError = s.OnError
	}
	err := t.variables(limited, s, given)
	if err == nil {
		t.worst, t.stopped = t.steps(limited, s.Steps)
		if limited.Err() != nil && t.caller.Err() == nil && (ctx.Err() == nil || t.depth == 0) {
			err = context.Cause(limited)
		}
	}
	final, cancelFinal := context.WithTimeoutCause(context.WithoutCancel(ctx), FinallyTimeout, &TimeoutError{"finally", FinallyTimeout})
	defer cancelFinal()
	last := *t
	last.final, last.onError = true, OnErrorContinue
	worst, _ := last.steps(final, s.Finally)
	t.worst = max(t.worst, worst)
	if err == nil && final.Err() != nil {
		err = context.Cause(final)
	}
	return err
}

// variables gives the variables of a file their values.
func (t *thread) variables(ctx context.Context, s *Script, given map[string]any) error {
	for _, e := range slices.Concat(s.Params, s.Vars) {
		t.lib.masker.allow(e.Value)
		if value, ok := given[e.Key]; ok {
			t.vars.set(e.Key, value)
			continue
		}
		if e.Value == nil {
			t.vars.set(e.Key, nil)
			continue
		}
		value, err := t.vars.value(ctx, e.Value)
		if err != nil {
			return err
		}
		t.vars.set(e.Key, value)
	}
	return nil
}

// placedError is an error of another place than the step.
type placedError struct {
	pos Pos
	err error
}

func (e *placedError) Error() string { return e.err.Error() }
func (e *placedError) Unwrap() error { return e.err }

// Harmless tells, by no error, that a script changes nothing where it runs: it sends no Set
// and the like and no response, answers no requests, and no peer is connected to. The error
// is a *NeedsYesError.
func (s *Script) Harmless() error {
	for step := range s.walk {
		does := ""
		switch b := step.Body.(type) {
		case *Send:
			if b.changes() {
				does = "send changes something, or may do so"
			}
		case *Serve:
			does = "serve answers requests that the fabric may rely on"
		case *Connect:
			does = "connect has the peer take its queue pair to RTS against one that does not exist"
		case *Listen:
			does = "listen has peers take their queue pairs to RTS against one that does not exist"
		}
		if does != "" {
			return &NeedsYesError{step.Pos, does}
		}
	}
	return nil
}

// walk gives all steps, in included files too.
func (s *Script) walk(yield func(*Step) bool) {
	seen := make(map[*Script]bool)
	var script func(*Script) bool
	var steps func([]*Step) bool
	script = func(s *Script) bool {
		if seen[s] {
			return true
		}
		seen[s] = true
		return steps(s.Steps) && steps(s.Finally)
	}
	steps = func(list []*Step) bool {
		for _, step := range list {
			if !yield(step) || !steps(inner(step.Body)) {
				return false
			}
			if in, ok := step.Body.(*Include); ok && !script(in.Script) {
				return false
			}
		}
		return true
	}
	script(s)
}

// inner gives the steps that stand in a body.
func inner(b Body) []*Step {
	switch b := b.(type) {
	case *ForEach:
		return b.Steps
	case *Parallel:
		return b.Steps
	case *Repeat:
		return b.Steps
	case *Retry:
		return b.Steps
	case *Serve:
		return b.Steps
	case *Listen:
		return b.Steps
	}
	return nil
}

// errTooManySteps ends a run that would not end by itself before long.
var errTooManySteps = errors.New("the run has taken as many steps as one may")
