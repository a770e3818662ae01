package run

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/render"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/script"
)

// report writes what happens in a run, as it happens.
type report struct {
	s     *session.Session
	name  string
	text  script.TextReport
	table bool   // of steps alone
	junit *junit // nil: none is asked for
	line  []byte
	err   error // of the output
}

func newReport(s *session.Session, file *script.Script, ci *junit) *report {
	// An interrupt does not end the output: finally is still to come.
	s.Out.Stopped = nil
	output, _ := s.Flag("output")
	r := &report{s: s, name: title(file), table: output == render.CSV, junit: ci}
	r.text.Verbose = s.Switch("verbose")
	r.err = s.Out.Columns(stepMembers(&script.Event{}))
	return r
}

// title is the name of a script, else that of its file.
func title(file *script.Script) string {
	if file.Name != "" {
		return file.Name
	}
	return strings.TrimSuffix(filepath.Base(file.File), filepath.Ext(file.File))
}

// event writes an event. The first error of the output ends the writing, not the run.
func (r *report) event(e *script.Event) {
	if r.junit != nil {
		r.junit.Report(e)
	}
	if r.err != nil {
		return
	}
	r.line = r.text.Append(r.line[:0], e)
	kind, members := "", text.Object(nil)
	switch e.Kind {
	case script.EventEnd:
		kind, members = "Step", stepMembers(e)
	case script.EventLog:
		kind, members = "Log", text.Object{{Name: "step", Value: uint64(e.Step)}, {Name: "text", Value: e.Detail}}
	case script.EventMAD:
		kind, members = "MAD", append(text.Object{{Name: "step", Value: uint64(e.Step)}, {Name: "name", Value: e.Name}}, messageMembers(e.Message)...)
	case script.EventFinish:
		kind, members = "Verdict", verdictMembers(e.Outcome)
	}
	switch {
	case r.s.Out.IsText():
		r.err = r.s.Out.Text(r.line)
	case kind == "" || r.table && kind != "Step":
		return
	default:
		r.err = r.s.Out.Record(kind, members, nil)
	}
	if r.err == nil && (len(r.line) > 0 || kind != "") {
		r.err = r.s.Out.Flush()
	}
}

// junit is the report for continuous integration.
type junit struct {
	*script.JUnit
	name string
	file *os.File
}

// createJUnit begins the report that --junit asks for; nil if it does not. That of an
// earlier run is gone from here on, whatever becomes of this one.
func createJUnit(s *session.Session, name string) (*junit, error) {
	path, _ := s.Flag("junit")
	if path == "" {
		return nil, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--junit: %w", err)
	}
	return &junit{script.NewJUnit(f, name), name, f}, nil
}

// close ends the report. Where the script did not run, out is nil and err says why.
func (j *junit) close(out *script.Outcome, err error) error {
	if j == nil {
		return nil
	}
	var mistakes *script.ErrorList
	switch {
	case out != nil || err == nil:
	case errors.As(err, &mistakes):
		for _, e := range mistakes.Errors {
			j.Error(e.Pos.String(), string(e.ID), e.Error())
		}
		if mistakes.More > 0 {
			j.Error(j.name, "mistakes", fmt.Sprintf("and %d more mistakes", mistakes.More))
		}
	default:
		j.Error(j.name, script.Errored.String(), err.Error())
	}
	return errors.Join(j.Close(out), j.file.Close())
}

func stepMembers(e *script.Event) text.Object {
	return text.Object{
		{Name: "step", Value: uint64(e.Step)},
		{Name: "parent", Value: uint64(e.Parent)},
		{Name: "name", Value: e.Name},
		{Name: "kind", Value: e.Does},
		{Name: "iteration", Value: e.Label},
		{Name: "section", Value: e.Section},
		{Name: "place", Value: placeText(e.Pos)},
		{Name: "verdict", Value: e.Verdict.String()},
		{Name: "tolerated", Value: e.Tolerated && e.Failure != nil},
		{Name: "microseconds", Value: e.Duration.Microseconds()},
		{Name: "detail", Value: e.Detail},
		{Name: "iterations", Value: e.Inner.Iterations},
		{Name: "failure", Value: failureMembers(e.Failure)},
	}
}

func placeText(p script.Pos) string {
	if p.Line == 0 {
		return ""
	}
	return p.String()
}

// failureMembers are why a step did not pass; all are empty if it did.
func failureMembers(f *script.Failure) text.Object {
	if f == nil {
		f = &script.Failure{}
	}
	message := ""
	if f.Err != nil {
		message = f.Err.Error()
	}
	values := []any{}
	for _, o := range f.Values {
		values = append(values, text.Object{{Name: "text", Value: o.Text}, {Name: "is", Value: o.Is}})
	}
	return text.Object{
		{Name: "place", Value: placeText(f.Pos)},
		{Name: "expected", Value: f.Expect},
		{Name: "got", Value: f.Got},
		{Name: "error", Value: message},
		{Name: "values", Value: values},
		{Name: "sent", Value: messageMembers(f.Sent)},
		{Name: "answer", Value: messageMembers(f.Answer)},
	}
}

func messageMembers(m *script.Message) text.Object {
	if m == nil {
		m = &script.Message{}
	}
	return text.Object{
		{Name: "with", Value: m.To},
		{Name: "bytes", Value: hex.EncodeToString(m.Data)},
		{Name: "decoded", Value: m.Decoded},
	}
}

func verdictMembers(o *script.Outcome) text.Object {
	missing := text.Object{}
	for _, r := range script.Requirements {
		if n := o.Missing[r.Word]; n > 0 {
			missing = append(missing, text.Member{Name: r.Word, Value: n})
		}
	}
	return text.Object{
		{Name: "verdict", Value: o.Verdict.String()},
		{Name: "steps", Value: o.Steps},
		{Name: "passed", Value: o.Passed},
		{Name: "failed", Value: o.Failed},
		{Name: "errors", Value: o.Errors},
		{Name: "skipped", Value: o.Skipped},
		{Name: "retried", Value: o.Retried},
		{Name: "microseconds", Value: o.Duration.Microseconds()},
		{Name: "missing", Value: missing},
	}
}

func mistakeMembers(e *script.Error) text.Object {
	near := []any{}
	for _, n := range e.Near {
		near = append(near, n)
	}
	return text.Object{
		{Name: "id", Value: string(e.ID)},
		{Name: "file", Value: e.Pos.File},
		{Name: "line", Value: e.Pos.Line},
		{Name: "column", Value: e.Pos.Col},
		{Name: "message", Value: e.Msg},
		{Name: "nearest", Value: near},
	}
}
