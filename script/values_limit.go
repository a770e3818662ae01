package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/expr-lang/expr/vm/runtime"
)

// The limits of a value. A list may have another one several times, so that a few
// steps make one of which to write or to compare the whole would never end: what it
// has is counted as often as it is in it.
const (
	maxText     = 16 << 20  // bytes, of all its texts
	maxElements = 1_000_000 // of lists and maps, at all depths; a record is one
	maxNesting  = 100       // lists and maps in each other
)

var (
	errLongText = fmt.Errorf("it has more than %d bytes of text, which is as much as a value may have", maxText)
	errElements = fmt.Errorf("it has more than %d elements, which is as many as a value may have", maxElements)
	errNesting  = fmt.Errorf("lists and maps are in each other more than %d deep", maxNesting)
)

// fit tells, by no error, that a value is within the limits.
func fit(v any) error {
	m := meter{maxText, maxElements}
	return m.take(v, 0)
}

// meter is what a value may still have.
type meter struct{ text, elements int }

func (m *meter) take(v any, depth int) error {
	if depth > maxNesting {
		return errNesting
	}
	switch v := v.(type) {
	case nil, int, bool, float64, *record, time.Time, time.Duration:
		return nil
	case string:
		return m.takeText(len(v))
	case hexBytes:
		return m.takeText(2 * len(v))
	case []any:
		if err := m.takeElements(len(v)); err != nil {
			return err
		}
		for _, e := range v {
			if err := m.take(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if err := m.takeElements(len(v)); err != nil {
			return err
		}
		for key, e := range v {
			if err := m.takeText(len(key)); err != nil {
				return err
			}
			if err := m.take(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if list, ok := asList(v); ok {
		return m.take(list, depth)
	}
	if object, ok := asMap(v); ok {
		return m.take(object, depth)
	}
	return nil
}

func (m *meter) takeText(n int) error {
	if m.text -= n; m.text < 0 {
		return errLongText
	}
	return nil
}

func (m *meter) takeElements(n int) error {
	if m.elements -= n; m.elements < 0 {
		return errElements
	}
	return nil
}

// asMap makes what the expression language has made, as groupBy, a map by texts.
func asMap(v any) (map[string]any, bool) {
	if v == nil || reflect.TypeOf(v).Kind() != reflect.Map {
		return nil, false
	}
	r := reflect.ValueOf(v)
	m := make(map[string]any, r.Len())
	for key, value := range r.Seq2() {
		m[write(key.Interface())] = value.Interface()
	}
	return m, true
}

// jsonWriter writes a value as JSON until there is no room for more.
type jsonWriter struct {
	bytes.Buffer
	most int
}

// write is false when the value, or the rest of it, was not written.
func (w *jsonWriter) write(v any, depth int) bool {
	if depth > maxNesting || w.Len() > w.most {
		return false
	}
	if m, ok := v.(map[string]any); ok && m != nil {
		return w.object(m, depth)
	}
	if list, ok := v.([]any); ok && list != nil {
		return w.list(list, depth)
	}
	switch v := v.(type) {
	case nil, bool, string, int, float64, *record, hexBytes, []any, map[string]any:
	default:
		if list, ok := asList(v); ok {
			return w.list(list, depth)
		}
		if m, ok := asMap(v); ok {
			return w.object(m, depth)
		}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		fmt.Fprintln(w, v)
	}
	w.Truncate(w.Len() - 1) // the end of the line
	return w.Len() <= w.most
}

func (w *jsonWriter) list(list []any, depth int) bool {
	w.WriteByte('[')
	for i, e := range list {
		if i > 0 {
			w.WriteByte(',')
		}
		if !w.write(e, depth+1) {
			return false
		}
	}
	w.WriteByte(']')
	return true
}

func (w *jsonWriter) object(m map[string]any, depth int) bool {
	w.WriteByte('{')
	for i, key := range sortedKeys(m) {
		if i > 0 {
			w.WriteByte(',')
		}
		if !w.write(key, depth+1) {
			return false
		}
		w.WriteByte(':')
		if !w.write(m[key], depth+1) {
			return false
		}
	}
	w.WriteByte('}')
	return true
}

// plus is a + b.
func plus(a, b any) (any, error) {
	x, okX := plain(a).(string)
	y, okY := plain(b).(string)
	if !okX || !okY {
		return runtime.Add(a, b), nil
	}
	if len(x)+len(y) > maxText {
		return nil, errLongText
	}
	return x + y, nil
}

// quotient is a / b.
func quotient(a, b any) (any, error) {
	if n, ok := float(b); ok && n == 0 {
		return nil, errors.New("a division by zero")
	}
	return runtime.Divide(a, b), nil
}

// limitedBuiltins are the expression language's functions that may make a text of any
// length of short ones.
var limitedBuiltins = map[string]func(args ...any) (any, error){
	"join": func(args ...any) (any, error) {
		list, ok := asList(args[0])
		if !ok {
			return nil, fmt.Errorf("join: %s is no list", show(args[0]))
		}
		glue := ""
		if len(args) > 1 {
			glue = args[1].(string)
		}
		room := meter{text: maxText}
		parts := make([]string, len(list))
		for i := range list {
			if parts[i], ok = plain(list[i]).(string); !ok {
				return nil, fmt.Errorf("join: element %d is no text: %s", i, show(list[i]))
			}
			if err := room.takeText(len(parts[i]) + len(glue)); err != nil {
				return nil, err
			}
		}
		return strings.Join(parts, glue), nil
	},
	"repeat": func(args ...any) (any, error) {
		s, n := args[0].(string), runtime.ToInt(args[1])
		if n < 0 {
			return nil, fmt.Errorf("repeat: a text cannot be there %d times", n)
		}
		if len(s) > 0 && n > maxText/len(s) {
			return nil, errLongText
		}
		return strings.Repeat(s, n), nil
	},
	"replace": func(args ...any) (any, error) {
		s, old, with := args[0].(string), args[1].(string), args[2].(string)
		times := -1
		if len(args) > 3 {
			times = runtime.ToInt(args[3])
		}
		n := strings.Count(s, old)
		if times >= 0 {
			n = min(n, times)
		}
		if len(s)+n*(len(with)-len(old)) > maxText {
			return nil, errLongText
		}
		return strings.Replace(s, old, with, times), nil
	},
}

// wholeBuiltins are those that go through all that is in a value.
var wholeBuiltins = map[string]bool{
	"flatten": true, "uniq": true, "min": true, "max": true, "mean": true, "median": true, "sum": true,
}

// writingBuiltins are those that write a value.
var writingBuiltins = map[string]bool{"string": true, "toJSON": true}

// fitting gives a value that is within the limits.
func fitting(v any) (any, error) { return v, fit(v) }

// writable gives a value of which all can be written.
func writable(v any) (any, error) {
	_, err := writeWhole(v)
	return v, err
}
