package script

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ibsm/ibsm/mad/text"
)

// TextReport writes a run as lines for people: one for each step, under the line of the
// step that holds it. Of loops it shows how many iterations and steps there were, and what
// did not pass. The zero value is ready; one is for one run.
type TextReport struct {
	// Verbose shows the steps in loops, too, and the failures that retry tried again.
	Verbose bool

	// open are the steps that hold steps, until they end; a line is made of one when there
	// is a first one to stand under it.
	open map[StepID]*heading
}

type heading struct {
	parent  StepID
	depth   int
	label   string // of the step
	does    string
	written bool
}

// Columns of a line.
const (
	verdictWidth = 6
	nameWidth    = 34
	indentWidth  = 2
)

var verdictWords = [...]string{Passed: "ok", Skipped: "skip", Failed: "FAIL", Errored: "ERROR", Interrupted: "STOP"}

// Append adds the lines of an event, often none.
func (t *TextReport) Append(dst []byte, e *Event) []byte {
	switch e.Kind {
	case EventBegin:
		if e.Holds {
			if t.open == nil {
				t.open = make(map[StepID]*heading)
			}
			t.open[e.Step] = &heading{parent: e.Parent, depth: e.Depth, label: e.title(), does: e.Does}
		}
	case EventLog:
		dst = t.headings(dst, e.Parent)
		dst = appendLine(dst, "log", e.Depth, e.Detail)
	case EventMAD:
		dst = t.headings(dst, e.Parent)
		dst = appendLine(dst, "MAD", e.Depth, e.title()+", to "+e.Message.To)
		dst = appendMessage(dst, e.Depth+1, e.Message)
		dst = appendHex(dst, e.Depth+1, e.Message.Data)
	case EventEnd:
		return t.end(dst, e)
	case EventFinish:
		return appendOutcome(dst, e.Outcome)
	}
	return dst
}

func (t *TextReport) end(dst []byte, e *Event) []byte {
	delete(t.open, e.Step)
	if !t.shows(e) {
		return dst
	}
	dst = t.headings(dst, e.Parent)
	word, detail := "", e.Detail
	if int(e.Verdict) < len(verdictWords) {
		word = verdictWords[e.Verdict]
	}
	if e.Tolerated && e.Verdict.bad() {
		word = "again"
	}
	if e.Holds && e.Verdict != Skipped {
		sum := e.Inner.String()
		if e.Inner.Iterations > 0 {
			sum = fmt.Sprintf("%s, %s", plural(e.Inner.Iterations, loopUnit(e.Does)), sum)
		}
		detail = strings.TrimPrefix(detail+", "+sum, ", ")
	}
	if e.Section != "" {
		detail = strings.TrimPrefix(detail+" ["+e.Section+"]", " ")
	}
	name := pad(e.title(), nameWidth-indentWidth*e.Depth)
	dst = appendLine(dst, word, e.Depth, strings.TrimRight(fmt.Sprintf("%s %9s  %s", name, shortTime(e.Duration), detail), " "))
	if e.Failure != nil {
		dst = appendFailure(dst, e.Depth+1, e.Failure)
	}
	return dst
}

// shows tells whether a step has a line of its own.
func (t *TextReport) shows(e *Event) bool {
	switch {
	case t.Verbose:
		return true
	case e.Tolerated || e.Does == "log" && e.Verdict == Passed: // whose line is there
		return false
	case e.Loop:
		return e.Verdict.bad() && (!e.Holds || e.Own)
	}
	return true
}

// headings writes the lines that a line in the step id stands under.
func (t *TextReport) headings(dst []byte, id StepID) []byte {
	var missing []*heading
	for h := t.open[id]; h != nil && !h.written; h = t.open[h.parent] {
		missing = append(missing, h)
	}
	for _, h := range slices.Backward(missing) {
		h.written = true
		dst = appendLine(dst, "", h.depth, h.label+":")
	}
	return dst
}

// title is the label and the name.
func (e *Event) title() string {
	if e.Label != "" {
		return e.Label + ": " + e.Name
	}
	return e.Name
}

func loopUnit(does string) string {
	switch does {
	case "parallel":
		return "branch"
	case "retry":
		return "try"
	}
	return "iteration"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	switch {
	case strings.HasSuffix(what, "y"):
		what = strings.TrimSuffix(what, "y") + "ies"
	case strings.HasSuffix(what, "h"):
		what += "es"
	default:
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// appendFailure writes what was expected and what came.
func appendFailure(dst []byte, depth int, f *Failure) []byte {
	for l := range strings.Lines(f.String()) {
		dst = appendLine(dst, "", depth, l)
	}
	for _, o := range f.Values {
		dst = appendLine(dst, "", depth+1, o.Text+" is "+o.Is)
	}
	for _, m := range []struct {
		what string
		*Message
	}{{"sent to ", f.Sent}, {"answered by ", f.Answer}} {
		if m.Message != nil {
			dst = appendLine(dst, "", depth, m.what+m.To+":")
			dst = appendMessage(dst, depth+1, m.Message)
		}
	}
	return dst
}

// String says it in a line: the place, what was expected and what came.
func (f *Failure) String() string {
	switch {
	case f.Expect == "":
		return fmt.Sprintf("%v: %v", f.Pos, f.Err)
	case f.Err != nil:
		return fmt.Sprintf("%v: expected %s: %v", f.Pos, f.Expect, f.Err)
	}
	return fmt.Sprintf("%v: expected %s: it is %s", f.Pos, f.Expect, f.Got)
}

func appendMessage(dst []byte, depth int, m *Message) []byte {
	return appendBlock(dst, depth, strings.TrimRight(m.Decoded, "\n"))
}

func appendBlock(dst []byte, depth int, s string) []byte {
	for l := range strings.Lines(s) {
		dst = appendLine(dst, "", depth, l)
	}
	return dst
}

// appendHex writes bytes in rows of 16; rows like the one above are an asterisk, as
// hexdump has it.
func appendHex(dst []byte, depth int, b []byte) []byte {
	rows := strings.Split(strings.TrimRight(hex.Dump(b), "\n"), "\n")
	const offset = len("00000000")
	skipping := false
	for i, row := range rows {
		like := i > 0 && i < len(rows)-1 && row[offset:] == rows[i-1][offset:]
		if like && !skipping {
			dst = appendLine(dst, "", depth, "*")
		}
		if !like {
			dst = appendLine(dst, "", depth, row)
		}
		skipping = like
	}
	return dst
}

// appendOutcome writes the last line, with what the place lacked.
func appendOutcome(dst []byte, o *Outcome) []byte {
	dst = fmt.Appendf(dst, "# %v: %v in %s\n", o.Verdict, o.Counts, shortTime(o.Duration))
	for _, r := range Requirements {
		if n := o.Missing[r.Word]; n > 0 {
			dst = fmt.Appendf(dst, "# %s skipped for want of %s: %s\n", plural(n, "step"), r.Word, r.Doc)
		}
	}
	return dst
}

func appendLine(dst []byte, word string, depth int, rest string) []byte {
	l := pad(word, verdictWidth) + strings.Repeat(" ", indentWidth*depth) + rest
	return append(append(dst, strings.TrimRight(text.Printable(l), " ")...), '\n')
}

func pad(s string, width int) string {
	if n := width - utf8.RuneCountInString(s); n > 0 {
		s += strings.Repeat(" ", n)
	}
	return s
}

// shortTime writes a time with three digits or so.
func shortTime(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}
