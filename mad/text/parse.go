package text

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// ValueError says that a text is no value for a field.
type ValueError struct {
	Struct, Field string   // as the IBA names them
	Bits          int      // width of the field
	Text          string   // as it was given
	Why           string   // what is wrong with it
	Legal         []string // the names that the field knows
	Nearest       string   // the one that may be meant
}

func (e *ValueError) Error() string {
	s := fmt.Sprintf("%s.%s (%d bits): %q: %s", e.Struct, e.Field, e.Bits, e.Text, e.Why)
	if e.Nearest != "" {
		s += fmt.Sprintf("; did you mean %q?", e.Nearest)
	} else if len(e.Legal) > 0 {
		s += "."
	}
	if len(e.Legal) > 0 {
		s += fmt.Sprintf(" Legal are %q and numbers.", e.Legal)
	}
	return s
}

// Get gives the field called name of b, which is exactly one structure, as
// [Value] does, or the number of a line that joins several fields (see [Set]).
// See [layout.Struct.FindIn] for other names. Errors are a *layout.NameError or a
// *mad.LengthError.
func Get(s *layout.Struct, b []byte, name string) (any, error) {
	if err := checkLength(s, b); err != nil {
		return nil, err
	}
	if line := joined(s, name); line != nil && (line.names || line.isReserved()) {
		return layout.Uint(b, line.off, line.n), nil
	}
	f, err := s.FindIn(b, name)
	if err != nil {
		return nil, err
	}
	return Value(&f, b), nil
}

// Set writes a value, as people write it, to the field called name of b, which
// is exactly one structure, and touches no other bit. It gives back the fields
// that it has set, whose Names are right for [layout.Struct.MaskOf]. Errors are a
// *layout.NameError, a *ValueError or a *mad.LengthError; b is then unchanged.
//
// Numbers are decimal, or hexadecimal after 0x. Enumerations take the names
// they print, or what only one of those starts with or has for a word, and
// numbers; sets of bits take several, joined by "|", "," or "or". Rates and
// speeds with a unit may write it as G, Gbps, Gb/s or Gb/sec: a bare number is the
// code. Flags take 0, 1, false, true, no, yes, off and on.
//
// A name may also be that of a line by which saquery prints several fields as one
// number, such as hop_flow_raw, which then sets all of them. Where one of them is
// but the selector of the other, as in mtu and pkt_life, a value that fits the
// other one alone is for that: mtu=4 sets the MTU, mtu=0x84 the selector, too.
func Set(s *layout.Struct, b []byte, name, value string) ([]layout.Field, error) {
	if err := checkLength(s, b); err != nil {
		return nil, err
	}
	line := joined(s, name)
	if line != nil && line.isReserved() {
		return nil, &layout.NameError{What: "field", Name: name, In: s.Name, Why: "these bits are reserved"}
	}
	if line != nil && line.names {
		whole := layout.Field{Name: line.Label, Off: line.off, Len: line.n}
		if err := set(s, &whole, b, value); err != nil {
			return nil, err
		}
		return line.parts, nil
	}
	f, err := s.FindIn(b, name)
	if err != nil {
		return nil, err
	}
	err = set(s, &f, b, value)
	if err == nil {
		return []layout.Field{f}, nil
	}
	if line != nil {
		whole := layout.Field{Name: line.Label, Off: line.off, Len: line.n}
		if set(s, &whole, b, value) == nil {
			return line.parts, nil
		}
	}
	return nil, err
}

// joined is the line of saquery's with the name if it shows another number than
// one field: several fields, or reserved bits. Nil: there is none.
func joined(s *layout.Struct, name string) *shown {
	if s.SA == nil {
		return nil
	}
	lines := shownLines(s, s.SA)
	for i := range lines {
		if n := &lines[i]; n.IsCalled(name) && n.Count == 0 && n.n > 0 && len(n.parts) != 1 {
			return n
		}
	}
	return nil
}

func (n *shown) isReserved() bool { return len(n.parts) == 0 }

func set(s *layout.Struct, f *layout.Field, b []byte, value string) error {
	err := parse(f, b, value)
	if err == nil {
		return nil
	}
	var bad *ValueError
	if !errors.As(err, &bad) {
		bad = &ValueError{Why: err.Error()}
	}
	bad.Struct, bad.Field, bad.Bits, bad.Text = s.Name, f.Name, f.Bits(), value
	return bad
}

func parse(f *layout.Field, b []byte, value string) error {
	text := strings.TrimSpace(value)
	if f.Count > 0 {
		return fmt.Errorf("it is an array: name one element, as in %s[0]", f.Name)
	}
	switch f.Kind {
	case layout.KindGID:
		// Unlike an address, a field may hold any GID, :: among them.
		ip, err := netip.ParseAddr(text)
		if err != nil || !ip.Is6() || ip.Zone() != "" {
			return errors.New("it takes a GID, as in fe80::2:c903:0:1234")
		}
		gid := ip.As16()
		copy(f.Bytes(b), gid[:])
		return nil
	case layout.KindString:
		dst := f.Bytes(b)
		if len(value) > len(dst) {
			return fmt.Errorf("%d bytes of text, and at most %d fit", len(value), len(dst))
		}
		clear(dst[copy(dst, value):])
		return nil
	case layout.KindBytes:
		raw, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
		if err != nil || len(raw) != f.Len/8 {
			return fmt.Errorf("it takes %d bytes in hexadecimal", f.Len/8)
		}
		copy(f.Bytes(b), raw)
		return nil
	case layout.KindStruct:
		return fmt.Errorf("it is a structure: name one of its fields, as in %s.%s", f.Name, f.Of.Fields[0].Name)
	}
	v, err := parseNumber(f, text)
	if err != nil {
		return err
	}
	if f.Len < 64 && v>>f.Len != 0 {
		return fmt.Errorf("too wide for the field: at most %d (%#x)", uint64(1)<<f.Len-1, uint64(1)<<f.Len-1)
	}
	return f.SetUint(b, v)
}

func parseNumber(f *layout.Field, text string) (uint64, error) {
	switch f.Kind {
	case layout.KindFlag:
		switch strings.ToLower(text) {
		case "false", "no", "off":
			return 0, nil
		case "true", "yes", "on":
			return 1, nil
		}
		if v, ok := number(text); ok && v <= 1 {
			return v, nil
		}
		return 0, errors.New("a flag is 0 or 1 (false or true)")
	case layout.KindEnum:
		return parseEnum(f.Enum, text)
	case layout.KindGUID:
		if g, err := mad.ParseGUID(text); err == nil {
			return uint64(g), nil
		}
	}
	v, ok := number(text)
	if !ok {
		return 0, errors.New("it takes a number, in decimal or in hexadecimal after 0x")
	}
	return v, nil
}

// number reads decimal, or hexadecimal after 0x. A leading 0 is not octal.
func number(text string) (uint64, bool) {
	base := 10
	if rest, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		text, base = rest, 16
	}
	v, err := strconv.ParseUint(text, base, 64)
	return v, err == nil
}

// parseEnum reads one value; where values are bits, several.
func parseEnum(e *layout.Enum, text string) (uint64, error) {
	if v, ok := named(e, text); ok {
		return v, nil
	}
	parts := []string{text}
	if e.Sep != "" {
		parts = strings.FieldsFunc(strings.ReplaceAll(text, " or ", "|"), func(r rune) bool { return r == '|' || r == ',' })
	}
	var all uint64
	for _, part := range parts {
		part = strings.TrimSpace(part)
		v, ok := named(e, part)
		if !ok {
			v, ok = number(part)
		}
		if !ok {
			x, err := shortened(e, part)
			if err != nil {
				return 0, err
			}
			v = x.Value
		}
		all |= v
	}
	if len(parts) == 0 {
		return 0, errors.New("no value")
	}
	return all, nil
}

// named looks text up among the names of e.
func named(e *layout.Enum, text string) (uint64, bool) {
	want := foldValue(text)
	for _, x := range e.Values {
		if foldValue(x.Text) == want || slices.ContainsFunc(x.Alias, func(a string) bool { return foldValue(a) == want }) {
			return x.Value, true
		}
	}
	return 0, false
}

// shortened finds the one value that text is the start of, or else a word of.
func shortened(e *layout.Enum, text string) (layout.Value, error) {
	want := foldValue(text)
	starts := func(name string) bool { return strings.HasPrefix(foldValue(name), want) }
	hasWord := func(name string) bool {
		return slices.ContainsFunc(strings.Fields(name), func(word string) bool { return foldValue(word) == want })
	}
	for _, fits := range []func(string) bool{starts, hasWord} {
		var found []layout.Value
		var texts []string
		for _, x := range e.Values {
			if want != "" && (fits(x.Text) || slices.ContainsFunc(x.Alias, fits)) {
				found = append(found, x)
				texts = append(texts, x.Text)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return layout.Value{}, &ValueError{Why: fmt.Sprintf("several values fit: %q", texts)}
		}
	}
	bad := &ValueError{Why: "no such value", Nearest: nearestValue(e, text)}
	for _, x := range e.Values {
		bad.Legal = append(bad.Legal, x.Text)
	}
	return layout.Value{}, bad
}

func nearestValue(e *layout.Enum, text string) string {
	var names []string
	for _, x := range e.Values {
		names = append(append(names, x.Text), x.Alias...)
	}
	if near := layout.Nearest(text, names); len(near) > 0 {
		return near[0]
	}
	return ""
}

// foldValue strips what people write differently in the name of a value: case,
// blanks, underscores, the spelling of a bit rate's unit and a ".0" before it.
func foldValue(text string) string {
	s := strings.Map(func(r rune) rune {
		if r == ' ' || r == '_' {
			return -1
		}
		return r
	}, strings.ToLower(text))
	for _, unit := range []string{"gb/sec", "gbit/s", "gbps", "gb/s", "g"} {
		rest, ok := strings.CutSuffix(s, unit)
		if ok && rest != "" && rest[len(rest)-1] >= '0' && rest[len(rest)-1] <= '9' {
			return strings.TrimSuffix(rest, ".0") + "g"
		}
	}
	return s
}
