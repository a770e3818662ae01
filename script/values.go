package script

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

// Values of expressions are those of JSON output: int for numbers of up to 32
// bits, text "0x..." for wider ones and GUIDs, text for GIDs and names, bool for
// flags, []any for lists. A structure is a *record, which reads from its bytes the
// fields that are asked for.

// record is a structure as a map from the names of its fields to their values. Its
// bytes do not change.
type record struct {
	of *layout.Struct
	b  []byte // exactly one structure
}

// field gives a field by any name that the table knows. The error is a
// *layout.NameError.
func (r *record) field(name string) (any, error) {
	f, err := fieldOf(r.of, r.b, name)
	if err != nil {
		return nil, err
	}
	if of := r.of.Variant(f, r.b); of != nil {
		return &record{of, f.Bytes(r.b)}, nil
	}
	return fieldValue(f, r.b), nil
}

// fieldOf is layout.Struct.FindIn, which takes its time, with a memory, and finds
// structures in the structure, too. Fields of what the bytes decide on are looked up
// each time.
func fieldOf(s *layout.Struct, b []byte, name string) (*layout.Field, error) {
	key := fieldKey{s, name}
	if f, ok := knownFields.Load(key); ok {
		return f.(*layout.Field), nil
	}
	for i := range s.Fields {
		if s.Fields[i].Name == name && name != "" {
			knownFields.Store(key, &s.Fields[i])
			return &s.Fields[i], nil
		}
	}
	f, err := s.Find(name)
	if err != nil {
		f, err = s.FindIn(b, name)
		return &f, err
	}
	if f.Name == name { // of other spellings there is no end
		knownFields.Store(key, &f)
	}
	return &f, nil
}

type fieldKey struct {
	of   *layout.Struct
	name string
}

var knownFields sync.Map // fieldKey: *layout.Field

// fieldValue is text.Value in the types of expressions.
func fieldValue(f *layout.Field, b []byte) any {
	switch {
	case f.Count > 0:
		list := make([]any, f.Count)
		for i := range list {
			e := f.Element(i)
			list[i] = fieldValue(&e, b)
		}
		return list
	case f.Kind == layout.KindStruct:
		return &record{f.Of, f.Bytes(b)}
	case f.IsNumber() && f.Len <= 32 && f.Kind != layout.KindFlag && f.Kind != layout.KindEnum:
		return int(f.Uint(b))
	}
	value := text.Value(f, b)
	if n, ok := value.(uint64); ok {
		return int(n) // an enumeration's value without a name
	}
	return value
}

// MarshalJSON writes the fields as ibsm's JSON output has them.
func (r *record) MarshalJSON() ([]byte, error) {
	o, err := r.object()
	if err != nil {
		return nil, err
	}
	return o.MarshalJSON()
}

func (r *record) object() (text.Object, error) { return text.ObjectOfBytes(r.of, r.b) }

func (r *record) String() string { return show(r) }

// hexBytes are bytes that a script sees in hexadecimal.
type hexBytes []byte

// plain makes a value what the functions of the expression language take.
func plain(v any) any {
	if b, ok := v.(hexBytes); ok {
		return hex.EncodeToString(b)
	}
	return v
}

// write is a value as people write it, for templates: text as it is, numbers in
// decimal, what has parts as JSON, which is cut where it becomes too long.
func write(v any) string {
	s, _ := writeMost(v, maxText)
	return s
}

// writeWhole is write for what must be whole.
func writeWhole(v any) (string, error) {
	s, whole := writeMost(v, maxText)
	if !whole || len(s) > maxText {
		return "", fmt.Errorf("%s: written, it has more than %d bytes", show(v), maxText)
	}
	return s, nil
}

// writeMost is write that stops soon after most bytes of JSON.
func writeMost(v any, most int) (s string, whole bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case int:
		return strconv.Itoa(v), true
	case hexBytes:
		return hex.EncodeToString(v), true
	case time.Time:
		return v.Format(time.RFC3339Nano), true
	case fmt.Stringer:
		if _, ok := v.(*record); !ok {
			return v.String(), true
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatFloat(v, 'f', -1, 64), true
		}
	case bool, uint64, int64:
		return fmt.Sprint(v), true
	}
	w := jsonWriter{most: most}
	whole = w.write(v, 0)
	return w.String(), whole
}

// maxShown is how long a value may be in an explanation, in bytes.
const maxShown = 200

// show is a value in an explanation: text in quotes, and not more than a line.
func show(v any) string {
	if b, ok := v.(hexBytes); ok && len(b) > maxShown {
		v = b[:maxShown] // in hexadecimal still more than is shown
	}
	v = plain(v)
	prefix := ""
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		if len(v) > maxShown {
			v = cut(v)
		}
		return strconv.Quote(v)
	case []any:
		if n := len(v); n > 8 {
			return cutShown(fmt.Sprintf("%d elements, the first is %s", n, showFirst(v)))
		}
	case *record:
		prefix = v.of.Name + " "
	}
	s, whole := writeMost(v, maxShown)
	if !whole && len(s) <= maxShown {
		return prefix + s + "..." // too deep
	}
	return cutShown(prefix + s)
}

// showFirst shows the first element of a list; of lists in lists, how long that is.
func showFirst(list []any) string {
	if first, ok := list[0].([]any); ok && len(first) > 8 {
		return fmt.Sprintf("a list of %d", len(first))
	}
	return show(list[0])
}

func cutShown(s string) string {
	if len(s) > maxShown {
		return cut(s)
	}
	return s
}

func cut(s string) string {
	s = s[:maxShown]
	for !utf8.ValidString(s) && len(s) > maxShown-utf8.UTFMax {
		s = s[:len(s)-1]
	}
	return s + "..."
}

// wholeNumber reads a number of at least 0, be it a number or a text.
func wholeNumber(v any) (uint64, bool) {
	switch v := v.(type) {
	case int:
		return uint64(v), v >= 0
	case int64:
		return uint64(v), v >= 0
	case uint64:
		return v, true
	case float64:
		return uint64(v), v >= 0 && v == math.Trunc(v) && v < 1<<63
	case string:
		return textNumber(v)
	}
	return 0, false
}

// textNumber reads decimal, or hexadecimal after 0x.
func textNumber(s string) (uint64, bool) {
	base := 10
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		s, base = s[2:], 16
	}
	if s == "" || s[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, base, 64)
	return n, err == nil
}

// fetch is a member of a value: a field of a record, an element of a list.
func fetch(from, key any) (any, error) {
	switch from := from.(type) {
	case nil:
		return nil, fmt.Errorf("there is nothing that %s could be of", show(key))
	case *record:
		name, ok := key.(string)
		if !ok {
			return nil, fmt.Errorf("%s is no name of a field of %s", show(key), from.of.Name)
		}
		return from.field(name)
	case map[string]any:
		if name, ok := key.(string); ok {
			return from[name], nil
		}
	case []any:
		i, ok := key.(int)
		if !ok {
			return nil, fmt.Errorf("%s is no index of a list", show(key))
		}
		if i < 0 {
			i += len(from)
		}
		if i < 0 || i >= len(from) {
			return nil, fmt.Errorf("no element %v: the list has %d", key, len(from))
		}
		return from[i], nil
	}
	return fetchOther(from, key)
}

// fetchOptional is fetch that gives nothing where there is nothing.
func fetchOptional(from, key any) (any, error) {
	value, err := fetch(from, key)
	var name *layout.NameError
	if from == nil || errors.As(err, &name) {
		return nil, nil
	}
	return value, err
}

// setField writes a value to the field called name of b, which is exactly one
// structure, as text.Set does, and gives the fields that it has set. A list is for
// an array, a map for a structure.
func setField(s *layout.Struct, b []byte, name string, value any) ([]layout.Field, error) {
	switch v := plain(value).(type) {
	case int:
		// Most of the values that a loop makes: without a detour over text.
		if f, err := fieldOf(s, b, name); err == nil && v >= 0 && isPlainNumber(f) {
			if f.SetUint(b, uint64(v)) == nil {
				return []layout.Field{*f}, nil
			}
		}
	case []any:
		return setList(s, b, name, v)
	case map[string]any:
		return setMap(s, b, name, v)
	case *record:
		f, err := fieldOf(s, b, name)
		if err != nil {
			return nil, err
		}
		if dst := f.Bytes(b); f.Kind == layout.KindStruct && len(dst) == len(v.b) {
			copy(dst, v.b)
			return []layout.Field{*f}, nil
		}
	}
	return text.Set(s, b, name, write(value))
}

func isPlainNumber(f *layout.Field) bool {
	switch f.Kind {
	case layout.KindUint, layout.KindHex, layout.KindLID, layout.KindPKey, layout.KindTime:
		return f.Count == 0
	}
	return false
}

func setList(s *layout.Struct, b []byte, name string, list []any) ([]layout.Field, error) {
	f, err := fieldOf(s, b, name)
	if err != nil {
		return nil, err
	}
	if f.Count == 0 && f.Kind == layout.KindBytes {
		// A row of bytes, as it is written in YAML.
		raw := make([]byte, len(list))
		for i := range list {
			n, ok := wholeNumber(list[i])
			if !ok || n > 0xff {
				return nil, fmt.Errorf("%s: element %d is no byte: %s", f.Name, i, show(list[i]))
			}
			raw[i] = byte(n)
		}
		return text.Set(s, b, name, hex.EncodeToString(raw))
	}
	if len(list) > max(f.Count, 1) {
		return nil, fmt.Errorf("%s: a list of %d, and it has %d elements", f.Name, len(list), f.Count)
	}
	var all []layout.Field
	for i := range list {
		set, err := setField(s, b, fmt.Sprintf("%s[%d]", f.Name, i), list[i])
		if err != nil {
			return nil, err
		}
		all = append(all, set...)
	}
	return append(all, *f), nil // the component is the whole array
}

func setMap(s *layout.Struct, b []byte, name string, m map[string]any) ([]layout.Field, error) {
	var all []layout.Field
	for _, key := range sortedKeys(m) {
		set, err := setField(s, b, name+"."+key, m[key])
		if err != nil {
			return nil, err
		}
		all = append(all, set...)
	}
	return all, nil
}
