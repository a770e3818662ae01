package script

import (
	"fmt"
	"time"
)

// Verdict is what became of a step, or of a run.
type Verdict uint8

// The verdicts.
const (
	Passed      Verdict = iota
	Skipped             // its condition was false, or the endpoint lacks what it requires
	Failed              // an expectation or an assertion does not hold
	Errored             // it could not be done
	Interrupted         // the context of the run ended first
)

var verdictNames = [...]string{Passed: "passed", Skipped: "skipped", Failed: "failed", Errored: "error", Interrupted: "interrupted"}

// String is the name in reports: "passed", "skipped", "failed", "error" or
// "interrupted".
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// bad tells whether a step that ended so ends what it stands in.
func (v Verdict) bad() bool { return v >= Failed }

// EventKind says what an Event tells.
type EventKind uint8

// The kinds of events.
const (
	EventBegin  EventKind = iota // a step begins
	EventEnd                     // it has ended: Verdict, Duration, Detail, Failure
	EventLog                     // the step's log line: Detail
	EventMAD                     // in a dry run, what would be sent: Message
	EventFinish                  // the run has ended: Outcome
)

// Event is something that happened in a run. Events come one at a time; what an Event
// points to is not changed any more.
type Event struct {
	Kind EventKind
	Step StepID
	// Parent is the step that this one stands in; 0 at the top.
	Parent StepID
	// Depth is how many steps this one stands in.
	Depth int
	// Holds tells that the step has steps of its own: its verdict then comes of theirs, and
	// it is in no count unless it did not get as far, or something of its own failed.
	Holds bool
	// Own tells, at the end of a step that holds steps, that it is counted.
	Own bool
	// Loop tells that the step stands in a loop, so that many alike may come.
	Loop bool
	// Tolerated tells that the step's failure does not count, as retry tries again.
	Tolerated bool

	Name    string // as the script has it, else what the step does in a few words
	Does    string // the key that says what the step does: "send", "for_each"...
	Label   string // of the iteration or branch that it stands in: "port = h1[1]"
	Section string // of the specification
	Pos     Pos

	Verdict  Verdict
	Duration time.Duration
	Detail   string
	Failure  *Failure // why, unless the verdict is Passed or Skipped
	Inner    Counts   // of the steps that a step holds
	Message  *Message
	Outcome  *Outcome
}

// StepID numbers the steps of a run in the order in which they begin, from 1.
type StepID uint64

// Failure is why a step did not pass.
type Failure struct {
	Pos    Pos    // of the expectation, or of what could not be done
	Expect string // the expectation; "" if the step could not be done
	Got    string // what it came to instead of true
	Err    error  // why the step could not be done, or the expectation be told
	Values []Operand
	// The MADs, if the step is about one. Keys that the script must not show are blanked.
	Sent, Answer *Message
}

// Operand is a part of an expression, and what it was.
type Operand struct{ Text, Is string }

// Message is a MAD for a report.
type Message struct {
	To      string // whom it is sent to, or comes from
	Data    []byte // headers once, then all data; keys are blanked
	Decoded string // by the field table, lines
}

// Counts counts steps. A step that holds others is counted only if it has a verdict of
// its own.
type Counts struct {
	Steps, Passed, Failed, Errors, Skipped int
	// Iterations is how many times the body of a loop ran, or branches.
	Iterations int
	// Retried is how many steps failed where retry tried again; they are in no other count.
	Retried int
}

func (c *Counts) add(o Counts) {
	c.Steps += o.Steps
	c.Passed += o.Passed
	c.Failed += o.Failed
	c.Errors += o.Errors
	c.Skipped += o.Skipped
	c.Retried += o.Retried
}

// count adds one step.
func (c *Counts) count(v Verdict) {
	c.Steps++
	switch v {
	case Passed:
		c.Passed++
	case Skipped:
		c.Skipped++
	case Failed:
		c.Failed++
	default:
		c.Errors++
	}
}

// String is like "7 steps: 5 passed, 1 failed, 1 skipped".
func (c Counts) String() string {
	s := fmt.Sprintf("%d steps", c.Steps)
	if c.Steps == 1 {
		s = "1 step"
	}
	sep := ": "
	for _, part := range []struct {
		n    int
		what string
	}{{c.Passed, "passed"}, {c.Failed, "failed"}, {c.Errors, "could not be done"}, {c.Skipped, "skipped"}, {c.Retried, "failed and were tried again"}} {
		if part.n > 0 {
			s += fmt.Sprintf("%s%d %s", sep, part.n, part.what)
			sep = ", "
		}
	}
	return s
}

// Outcome is what a run came to. Its size does not depend on the number of steps: what each
// came to goes to Options.Report.
type Outcome struct {
	Verdict Verdict
	Counts
	Duration time.Duration
	// Missing counts the steps that were skipped for want of each requirement.
	Missing map[string]int
	// First is the first failure, in the order in which they came; Err its error.
	First *Failure
}
