package script

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ibsm/ibsm/mad/layout"
)

// ErrNotChecked is what Run says of a script that Check did not find in order.
var ErrNotChecked = errors.New("the script has not been checked, or has mistakes: Check comes before Run")

// ErrorID names a kind of mistake in a script. The table [ErrorIDs] lists all.
type ErrorID string

// Error is one mistake in a script.
type Error struct {
	ID   ErrorID
	Pos  Pos
	Msg  string   // what is wrong
	Near []string // what may be meant, nearest first
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s", e.Pos, e.Msg)
	if len(e.Near) > 0 {
		s += " (nearest: " + strings.Join(e.Near, ", ") + ")"
	}
	return s + " [" + string(e.ID) + "]"
}

// maxWord is the longest text that may be a name, in bytes.
const maxWord = 128

// maxErrors is how many mistakes are told at a time.
const maxErrors = 50

// ErrorList is what Load and Check give: all mistakes in the order of their
// places, at least one.
type ErrorList struct {
	Errors []*Error
	More   int // mistakes that are not in Errors
}

func (l *ErrorList) Error() string {
	var s strings.Builder
	for i, e := range l.Errors {
		if i > 0 {
			s.WriteByte('\n')
		}
		s.WriteString(e.Error())
	}
	if l.More > 0 {
		fmt.Fprintf(&s, "\nand %d more", l.More)
	}
	return s.String()
}

// Unwrap gives every *Error to errors.As.
func (l *ErrorList) Unwrap() []error {
	all := make([]error, len(l.Errors))
	for i, e := range l.Errors {
		all[i] = e
	}
	return all
}

// errorSink collects mistakes.
type errorSink struct {
	list ErrorList
	have map[string]bool
}

func (s *errorSink) add(id ErrorID, pos Pos, format string, args ...any) {
	s.addNear(id, pos, nil, format, args...)
}

// addNear is add with what may be meant. What was told already, as a value with
// several aliases, is not told again.
func (s *errorSink) addNear(id ErrorID, pos Pos, near []string, format string, args ...any) {
	e := &Error{ID: id, Pos: pos, Msg: fmt.Sprintf(format, args...), Near: near}
	text := e.Error()
	if s.have[text] {
		return
	}
	if len(s.list.Errors) == maxErrors {
		s.list.More++
		return
	}
	if s.have == nil {
		s.have = make(map[string]bool)
	}
	s.have[text] = true
	s.list.Errors = append(s.list.Errors, e)
}

// nearest is layout.Nearest, which takes its time: not for what nobody will read, or
// what is no slip of the pen.
func (s *errorSink) nearest(name string, candidates []string) []string {
	if len(s.list.Errors) == maxErrors || len(name) > maxWord {
		return nil
	}
	near := layout.Nearest(name, candidates)
	for _, c := range candidates {
		// These are two edits, which Nearest does not let short words have.
		if swapped(name, c) && !slices.Contains(near, c) {
			near = append([]string{c}, near...)
		}
	}
	return near
}

// swapped tells whether two neighbours in a are in each other's place in b, and all else is
// the same.
func swapped(a, b string) bool {
	for i := 0; i+1 < len(a) && len(a) == len(b); i++ {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

// err gives what was collected, in the order of the places; nil if all is well.
func (s *errorSink) err() error {
	if len(s.list.Errors) == 0 {
		return nil
	}
	slices.SortStableFunc(s.list.Errors, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	return &s.list
}

// ErrorIDs are the kinds of mistakes.
var ErrorIDs = []struct {
	ID  ErrorID
	Doc string
}{
	// Of the text.
	{"too-large", "the file is larger than a script may be"},
	{"encoding", "the file is no text in UTF-8, or has control characters"},
	{"empty", "the file holds no document"},
	{"documents", "the file holds several documents"},
	{"syntax", "the file is no YAML"},
	{"tag", "a YAML tag, which scripts do not have"},
	{"key-kind", "a key that is a list or a map"},
	{"duplicate-key", "a key stands twice in a map"},
	{"merge", "<< with what is no map"},
	{"alias-cycle", "an alias stands in what it names"},
	{"too-many-nodes", "more values than a script may have, aliases counted as what they stand for"},
	{"too-deep", "values too deep in each other"},

	// Of the form.
	{"version", "a version of the language that is not known"},
	{"unknown-key", "a key that the language does not have there"},
	{"missing-key", "a key is needed and not there"},
	{"key-conflict", "keys that do not go together"},
	{"wrong-kind", "a list, a map or a text where something else belongs"},
	{"no-kind", "a step without a key that says what it does"},
	{"two-kinds", "a step that does two things"},
	{"no-steps", "an empty list of steps"},
	{"step-depth", "steps too deep in each other"},
	{"duplicate-name", "two steps, or two variables, of one name"},
	{"duplicate-word", "a word stands twice in a list"},
	{"unknown-word", "a word that the key does not take"},
	{"bad-name", "a text that can name no variable"},
	{"no-template", "${...} in what must be known before the run"},
	{"template", "${...} that is not closed, or empty"},
	{"template-expr", "${...} around an expression that needs none"},

	// Of included files.
	{"include-read", "a file that cannot be read"},
	{"include-cycle", "a file that includes itself"},
	{"include-depth", "files too deep in each other"},
	{"include-files", "too many files"},
	{"unknown-param", "a value for a parameter, or variable, that is not there"},
	{"missing-param", "a parameter without value"},

	// Of values.
	{"wrong-type", "a value of another type than the key takes"},
	{"out-of-range", "a number that is too small or too large for its key"},
	{"bad-endpoint", "a text that is no endpoint"},
	{"bad-address", "a text that is no address"},
	{"bad-hex", "a text that is no bytes in hexadecimal"},
	{"unknown-class", "a class that has no such name"},
	{"unknown-method", "a method that has no such name"},
	{"unknown-attribute", "an attribute that the class does not have by that name"},
	{"unknown-status", "a status that has no such name"},
	{"unknown-field", "a field that the structure does not have"},
	{"unknown-value", "a name that the field does not know for a value"},
	{"too-wide", "a number that is too wide for its field"},
	{"bad-value", "a value that the field does not take"},
	{"unknown-fault", "a named fault that simulated fabrics do not have"},
	{"no-fields", "fields of an attribute that has none by name"},
	{"no-component", "a field that no bit of the component mask selects"},
	{"secret", "a secret where it would be shown"},

	// Of expressions.
	{"expr-long", "an expression that is too long"},
	{"expr-syntax", "a text that is no expression"},
	{"expr-type", "an operation on what it does not work on"},
	{"unknown-variable", "a variable that is not there, or not yet"},
	{"unknown-function", "a function that is not there"},
	{"not-bool", "an expectation that is neither true nor false"},

	// Of the run.
	{"unreachable", "a step that no run does"},
	{"needs-sim", "what works on simulated fabrics only, and may run elsewhere"},
	{"wait-notice", "waiting for a notice, which is yet to come"},
}
