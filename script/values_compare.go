package script

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/expr-lang/expr/vm/runtime"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// equal compares values by what they mean: 5 and "0x5" are the same, and so are
// GIDs, GUIDs and the names of an enumeration however they are spelled ("Init" and
// "Initialize", "100G" and "100 Gb/s"). Other texts are equal to the letter.
func (s *vars) equal(a, b any) (bool, error) {
	c := comparison{vars: s, left: maxElements}
	is := c.equal(a, b)
	return is, c.err
}

// comparison is a comparison of values that may have parts.
type comparison struct {
	vars *vars // whose context ends it
	left int   // of the elements that may still be compared
	err  error // why it has not come to its end; what is equal is then not told
}

// element counts a pair of elements that is to be compared.
func (c *comparison) element() bool {
	if c.err != nil {
		return false
	}
	c.err = c.vars.tick()
	if c.left--; c.left < 0 {
		c.err = fmt.Errorf("these are values of which more than %d elements would be compared", maxElements)
	}
	return c.err == nil
}

func (c *comparison) lists(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !c.element() || !c.equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func (c *comparison) maps(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for key := range a {
		other, ok := b[key]
		if !ok || !c.element() || !c.equal(a[key], other) {
			return false
		}
	}
	return true
}

func (c *comparison) equal(a, b any) bool {
	switch x := a.(type) {
	case hexBytes:
		return c.equal(plain(x), b)
	case string:
		switch y := b.(type) {
		case string:
			return x == y || sameText(x, y)
		case time.Duration:
			return isDuration(x, y)
		case hexBytes:
			return c.equal(x, plain(y))
		case int:
			return textIs(x, float64(y))
		}
		if n, ok := float(b); ok {
			return textIs(x, n)
		}
		return false
	case int:
		if y, ok := b.(int); ok {
			return x == y
		}
	case []any:
		if y, ok := b.([]any); ok {
			return c.lists(x, y)
		}
	case *record:
		if y, ok := b.(*record); ok {
			return x.of == y.of && string(x.b) == string(y.b)
		}
	}
	switch b.(type) {
	case string, hexBytes:
		if _, isText := a.(string); !isText && a != nil {
			return c.equal(b, a)
		}
	case []any:
		if list, ok := asList(a); ok {
			return c.equal(list, b)
		}
	}
	if list, ok := a.([]any); ok {
		if other, ok := asList(b); ok {
			return c.equal(list, other)
		}
	}
	if m, ok := a.(map[string]any); ok {
		if n, ok := b.(map[string]any); ok {
			return c.maps(m, n)
		}
	}
	return runtime.Equal(a, b)
}

// asList makes a list of what the expression language made a list of one type.
func asList(v any) ([]any, bool) {
	if list, ok := v.([]any); ok {
		return list, true
	}
	r := reflect.ValueOf(v)
	if v == nil || r.Kind() != reflect.Slice && r.Kind() != reflect.Array || r.Type() == reflect.TypeFor[hexBytes]() {
		return nil, false
	}
	list := make([]any, r.Len())
	for i := range list {
		list[i] = r.Index(i).Interface()
	}
	return list, true
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func float(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	}
	return 0, false
}

// sameText compares different texts.
func sameText(a, b string) bool {
	if isHex(a) || isHex(b) {
		x, okX := textNumber(a)
		y, okY := textNumber(b)
		return okX && okY && x == y
	}
	if strings.Contains(a, ":") && strings.Contains(b, ":") {
		x, errX := netip.ParseAddr(a)
		y, errY := netip.ParseAddr(b)
		if errX == nil && errY == nil {
			return x == y
		}
	}
	names := enumNames()
	return names.spelled(a, b) || names.spelled(b, a)
}

func isHex(s string) bool { return len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') }

// textIs tells whether a text is a number: by its digits, or because it is the
// name of the value of an enumeration.
func textIs(s string, n float64) bool {
	if x, ok := textNumber(s); ok {
		return float64(x) == n
	}
	if x, err := strconv.ParseFloat(s, 64); err == nil {
		return x == n
	}
	return slices.ContainsFunc(enumNames()[s].codes, func(code uint64) bool { return float64(code) == n })
}

func isDuration(s string, d time.Duration) bool {
	x, err := time.ParseDuration(s)
	return err == nil && x == d
}

// enumName is what else a name of the field table may be written as.
type enumName struct {
	spellings []string // folded
	codes     []uint64
}

// enumTable has all names as they are printed, of the field table's enumerations
// and of statuses.
type enumTable map[string]enumName

var enumNames = sync.OnceValue(func() enumTable {
	t := make(enumTable)
	seen := make(map[*layout.Enum]bool)
	for _, group := range layout.Groups {
		for _, s := range group.Structs {
			for i := range s.Fields {
				e := s.Fields[i].Enum
				if e == nil || seen[e] {
					continue
				}
				seen[e] = true
				for _, v := range e.Values {
					t.add(v.Text, v.Value, v.Alias...)
				}
			}
		}
	}
	for _, s := range Statuses {
		for _, v := range layout.Status.Values {
			if v.Value == uint64(s.Code) {
				t.add(s.Name, v.Value, v.Text)
			}
		}
	}
	return t
})

func (t enumTable) add(name string, code uint64, spellings ...string) {
	n := t[name]
	for _, s := range append([]string{name}, spellings...) {
		n.spellings = append(n.spellings, foldName(s))
	}
	n.codes = append(n.codes, code)
	t[name] = n
}

// spelled tells whether other is a spelling of a name.
func (t enumTable) spelled(name, other string) bool {
	n, ok := t[name]
	return ok && slices.Contains(n.spellings, foldName(other))
}

// foldName strips what people write differently: case, blanks, underscores, and
// the unit of a bit rate.
func foldName(s string) string {
	s = strings.NewReplacer(" ", "", "_", "").Replace(strings.ToLower(s))
	for _, unit := range []string{"gb/sec", "gbit/s", "gbps", "gb/s", "g"} {
		if rest, ok := strings.CutSuffix(s, unit); ok && rest != "" && rest[len(rest)-1] >= '0' && rest[len(rest)-1] <= '9' {
			return strings.TrimSuffix(rest, ".0") + "g"
		}
	}
	return s
}

// compare orders two values that have an order: numbers, also as text; rates by
// what they carry; times; other texts by their letters. It is negative if a is
// less.
func compare(a, b any) (int, error) {
	a, b = plain(a), plain(b)
	x, okX := number(a)
	y, okY := number(b)
	if okX && okY {
		return cmp.Compare(x, y), nil
	}
	switch x := a.(type) {
	case time.Duration:
		if y, ok := asDuration(b); ok {
			return cmp.Compare(x, y), nil
		}
	case time.Time:
		if y, ok := b.(time.Time); ok {
			return x.Compare(y), nil
		}
	case string:
		switch y := b.(type) {
		case time.Duration:
			if x, ok := asDuration(x); ok {
				return cmp.Compare(x, y), nil
			}
		case string:
			rateX, okX := rateOf(x)
			rateY, okY := rateOf(y)
			if okX && okY {
				return rateX.Compare(rateY), nil
			}
			if okX == okY && !isHex(x) && !isHex(y) {
				return cmp.Compare(x, y), nil
			}
		}
	}
	return 0, fmt.Errorf("%s and %s have no order", show(a), show(b))
}

func asDuration(v any) (time.Duration, bool) {
	switch v := v.(type) {
	case time.Duration:
		return v, true
	case string:
		d, err := time.ParseDuration(v)
		return d, err == nil
	}
	return 0, false
}

// number is a value that is a number or is written as one.
func number(v any) (float64, bool) {
	if s, ok := v.(string); ok {
		if n, ok := textNumber(s); ok {
			return float64(n), true
		}
		n, err := strconv.ParseFloat(s, 64)
		return n, err == nil
	}
	return float(v)
}

// rateOf reads a rate by its name.
func rateOf(s string) (mad.Rate, bool) {
	for _, v := range layout.Rate.Values {
		if foldName(v.Text) == foldName(s) {
			return mad.Rate(v.Value), true
		}
	}
	return 0, false
}

// contains tells whether a list has an element, a map or a record a name.
func (s *vars) contains(in, v any) (bool, error) {
	switch in := in.(type) {
	case nil:
		return false, nil
	case *record:
		name, ok := v.(string)
		if !ok {
			return false, nil
		}
		_, err := in.field(name)
		return err == nil, nil
	case map[string]any:
		name, err := writeWhole(v)
		_, ok := in[name]
		return ok, err
	}
	if list, ok := asList(in); ok {
		c := comparison{vars: s, left: maxElements}
		for _, e := range list {
			if c.element() && c.equal(e, v) || c.err != nil {
				return c.err == nil, c.err
			}
		}
		return false, nil
	}
	return false, fmt.Errorf("%s is no list", show(in))
}

// fetchOther is a member of what the expression language has made, or of a time.
func fetchOther(from, key any) (value any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s has no %s", show(from), show(key))
		}
	}()
	return runtime.Fetch(from, key), nil
}
