// Package text turns structures into text and back by the names of their
// fields: the dotted form of the InfiniBand diags, ordered objects for JSON and
// YAML, and values as people write them. It works on the bytes and the field
// table; the structs of package mad are the fast way for code that knows the
// structure beforehand.
package text

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// Value gives a field of b, which holds the whole structure, as it appears in
// JSON and YAML: uint64 for numbers of up to 32 bits, string "0x..." for wider
// ones and GUIDs, bool for flags, string for names, GIDs, text and bytes (in
// hexadecimal), []any for arrays, Object for embedded structures. An
// enumeration's value without a name is a uint64.
func Value(f *layout.Field, b []byte) any {
	if f.Count > 0 {
		list := make([]any, f.Count)
		for i := range list {
			e := f.Element(i)
			list[i] = Value(&e, b)
		}
		return list
	}
	switch f.Kind {
	case layout.KindStruct:
		return object(f.Of, f.Bytes(b))
	case layout.KindGID:
		return mad.GID(f.Bytes(b)).String()
	case layout.KindString:
		return cString(f.Bytes(b))
	case layout.KindBytes:
		return hex.EncodeToString(f.Bytes(b))
	}
	v := f.Uint(b)
	switch {
	case f.Kind == layout.KindFlag:
		return v != 0
	case f.Kind == layout.KindEnum:
		if name, ok := enumText(f.Enum, v); ok {
			return name
		}
	case f.Len > 32:
		return fmt.Sprintf("0x%016x", v)
	}
	return v
}

// enumText is the text of a value, or of a set of bits; bits without a name
// are joined into one hexadecimal number. It is not ok if nothing has a name.
func enumText(e *layout.Enum, v uint64) (string, bool) {
	if e.Sep == "" {
		i := slices.IndexFunc(e.Values, func(x layout.Value) bool { return x.Value == v })
		if i < 0 {
			return "", false
		}
		return e.Values[i].Text, true
	}
	var set []string
	for _, x := range e.Values {
		if v&x.Value != 0 {
			set = append(set, x.Text)
			v &^= x.Value
		}
	}
	if len(set) == 0 {
		return "", false
	}
	if v != 0 {
		set = append(set, "0x"+strconv.FormatUint(v, 16))
	}
	return strings.Join(set, e.Sep), true
}

// cString is text up to the first NUL.
func cString(b []byte) string {
	if i := slices.Index(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// Printable replaces by blanks what would not show on a line of a terminal, or
// would command it: a NodeDescription is whatever its owner wrote. The diags do
// the same (clean_nodedesc of rdma-core), but know ASCII only.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
}

// Format writes what [Value] gave as people write it, for a line of text: Set
// reads it back.
func Format(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		list := make([]string, len(v))
		for i := range v {
			list[i] = Format(v[i])
		}
		return strings.Join(list, " ")
	case Object:
		list := make([]string, len(v))
		for i, m := range v {
			list[i] = m.Name + "=" + Format(m.Value)
		}
		return strings.Join(list, " ")
	}
	return fmt.Sprint(v)
}
