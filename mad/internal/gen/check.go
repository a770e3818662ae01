package main

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/mad/layout"
)

// check refuses tables that do not say exactly one thing. Each error names the
// place; all are reported.
func (t tables) check() error {
	var errs []error
	fail := func(where, format string, args ...any) {
		errs = append(errs, fmt.Errorf(where+": "+format, args...))
	}
	names := map[string]string{} // package-level Go names and who has them
	claim := func(name, who string) {
		if old, taken := names[name]; taken {
			fail(who, "Go name %s is taken by %s", name, old)
		}
		names[name] = who
	}
	enums := map[*layout.Enum]bool{}
	for _, e := range t.enums {
		enums[e] = true
		checkEnum(e, fail)
		claim(e.Name, "enum "+e.Name)
		for _, v := range e.Values {
			claim(prefix(e)+v.Go, "enum "+e.Name)
		}
	}
	structs := map[*layout.Struct]bool{}
	for _, g := range t.groups {
		for _, s := range g.Structs {
			claim(s.GoName(), "struct "+s.Name)
			claim(s.GoName()+"Size", "struct "+s.Name)
			checkStruct(s, enums, structs, fail)
			structs[s] = true
		}
	}
	ids := map[[2]uint16]string{}
	consts := map[string]uint16{}
	for _, a := range t.attributes {
		if !structs[a.Struct] {
			fail("attribute "+a.Name, "its structure is not in a group")
		}
		key := [2]uint16{uint16(a.Class), a.ID}
		if old, taken := ids[key]; taken {
			fail("attribute "+a.Name, "class %#02x, id %#04x is %s already", a.Class, a.ID, old)
		}
		ids[key] = a.Name
		name := "Attr" + strings.ReplaceAll(a.Name, "_", "")
		if id, known := consts[name]; !known {
			claim(name, "attribute "+a.Name)
			consts[name] = a.ID
		} else if id != a.ID {
			fail("attribute "+a.Name, "has two ids, %#04x and %#04x", id, a.ID)
		}
	}
	return errors.Join(errs...)
}

func checkEnum(e *layout.Enum, fail func(where, format string, args ...any)) {
	where := "enum " + e.Name
	if e.Bits != width(e.Bits) {
		fail(where, "no Go type of %d bits", e.Bits)
	}
	if e.Doc == "" || e.IBA == "" || e.Diag == "" {
		fail(where, "documentation, section or diags' format is missing")
	}
	texts, values := map[string]bool{}, map[uint64]bool{}
	for _, v := range e.Values {
		if e.Bits < 64 && v.Value>>e.Bits != 0 {
			fail(where, "%s: value %#x is wider than %d bits", v.Text, v.Value, e.Bits)
		}
		if e.Sep != "" && bits.OnesCount64(v.Value) != 1 {
			fail(where, "%s: value %#x is not one bit", v.Text, v.Value)
		}
		if values[v.Value] {
			fail(where, "value %#x twice", v.Value)
		}
		values[v.Value] = true
		if v.Text == "" {
			fail(where, "value %#x has no text", v.Value)
		}
		for _, text := range append([]string{v.Text}, v.Alias...) {
			text = strings.ToLower(text)
			if texts[text] {
				fail(where, "text %q twice", text)
			}
			texts[text] = true
		}
	}
}

func checkStruct(s *layout.Struct, enums map[*layout.Enum]bool, before map[*layout.Struct]bool, fail func(where, format string, args ...any)) {
	where := "struct " + s.Name
	if s.Doc == "" || s.IBA == "" {
		fail(where, "documentation or section is missing")
	}
	at := 0
	names := map[string]bool{"DecodeFrom": true, "EncodeTo": true, "UnmarshalBinary": true, "AppendBinary": true, "Layout": true}
	for i := range s.Fields {
		f := &s.Fields[i]
		row := fmt.Sprintf("%s, field %q at bit %d", where, f.Name, f.Off)
		switch {
		case f.Off > at:
			fail(row, "a gap of %d bits before it", f.Off-at)
		case f.Off < at:
			fail(row, "overlaps the row before it by %d bits", at-f.Off)
		}
		at = f.Off + f.Bits()
		if f.Len <= 0 || f.Count < 0 {
			fail(row, "length %d, count %d", f.Len, f.Count)
		}
		if !f.IsReserved() {
			if names[f.GoName()] {
				fail(row, "Go name %s is taken", f.GoName())
			}
			names[f.GoName()] = true
			if f.Variants != nil {
				names["Decode"+f.GoName()] = true
			}
		}
		checkKind(f, row, enums, before, fail)
		checkVariants(s, f, row, before, fail)
	}
	if at != 8*s.Size {
		fail(where, "the rows cover %d of %d bits", at, 8*s.Size)
	}
	for _, name := range s.Mask {
		if name != "" && !hasField(s, name) {
			fail(where, "component mask: no field %s", name)
		}
	}
	checkListing(s, s.SA, fail)
	checkListing(s, s.SM, fail)
}

// checkListing sees that every line shows bits of the structure.
func checkListing(s *layout.Struct, listing *layout.Listing, fail func(where, format string, args ...any)) {
	if listing == nil {
		return
	}
	where := "struct " + s.Name + ", listing"
	for _, l := range listing.Lines {
		for _, name := range []string{l.Field, l.Block} {
			if name != "" && !hasField(s, name) {
				fail(where, "no field %s", name)
			}
		}
		for _, c := range l.When {
			if !hasField(s, c.Field) {
				fail(where, "no field %s", c.Field)
			}
		}
		last := max(l.Count-1, 0)*max(l.Step, l.Len) + l.Len
		if l.Format != layout.Heading && l.Field == "" && l.Len == 0 || l.Off+last > 8*s.Size {
			fail(where, "line %q shows nothing", l.Label)
		}
	}
}

// checkKind compares the kind of a row with its length.
func checkKind(f *layout.Field, row string, enums map[*layout.Enum]bool, before map[*layout.Struct]bool, fail func(where, format string, args ...any)) {
	want := 0
	switch f.Kind {
	case layout.KindUint, layout.KindHex, layout.KindTime:
		if f.Len > 64 && !f.IsReserved() {
			fail(row, "a number of %d bits", f.Len)
		}
	case layout.KindFlag:
		want = 1
	case layout.KindLID, layout.KindPKey:
		want = 16
	case layout.KindGUID:
		want = 64
	case layout.KindGID:
		want = 128
	case layout.KindBytes, layout.KindString:
		if f.Off%8 != 0 || f.Len%8 != 0 {
			fail(row, "not whole bytes")
		}
	case layout.KindEnum:
		if !enums[f.Enum] {
			fail(row, "its enum is not in the list of enums")
		} else if f.Len > f.Enum.Bits {
			fail(row, "%d bits in an enum of %d", f.Len, f.Enum.Bits)
		}
	case layout.KindStruct:
		if !before[f.Of] {
			fail(row, "its structure must stand before it in the groups")
		} else {
			want = 8 * f.Of.Size
		}
	default:
		fail(row, "unknown kind %d", f.Kind)
	}
	if want != 0 && f.Len != want {
		fail(row, "%d bits in place of %d", f.Len, want)
	}
	if (f.Enum != nil) != (f.Kind == layout.KindEnum) || (f.Of != nil) != (f.Kind == layout.KindStruct) {
		fail(row, "its enum or structure does not go with its kind")
	}
	if (f.Kind == layout.KindGID || f.Kind == layout.KindStruct || f.Count > 0) && f.Off%8 != 0 {
		fail(row, "does not start at a byte")
	}
	if f.Count > 0 && !isArray(f) {
		fail(row, "arrays are of structures, or of numbers of 4, 8, 16, 32 or 64 bits that fill whole bytes")
	}
	if f.Variants != nil && f.Kind != layout.KindBytes {
		fail(row, "only bytes have variants")
	}
}

// isArray tells whether the generator can make an array of the row.
func isArray(f *layout.Field) bool {
	switch {
	case f.IsReserved() || f.Kind == layout.KindFlag:
		return false
	case f.Kind == layout.KindStruct:
		return true
	}
	return f.IsNumber() && (f.Len == width(f.Len) || f.Len == 4 && f.Bits()%8 == 0)
}

// checkVariants sees that the variants of a row fill it and hang on numbers of
// the same structure.
func checkVariants(s *layout.Struct, f *layout.Field, row string, before map[*layout.Struct]bool, fail func(where, format string, args ...any)) {
	for _, v := range f.Variants {
		switch {
		case !before[v.Of]:
			fail(row, "the structure of a variant must stand before it in the groups")
		case v.Of.Size != f.Bits()/8:
			fail(row, "variant %s has %d bytes", v.Of.Name, v.Of.Size)
		}
		for _, c := range v.When {
			i := slices.IndexFunc(s.Fields, func(f layout.Field) bool { return f.Name == c.Field })
			if i < 0 || s.Fields[i].Count > 0 || !s.Fields[i].IsNumber() {
				fail(row, "a variant hangs on %s, which is no number", c.Field)
			}
		}
		if len(v.When) == 0 {
			fail(row, "a variant without a condition")
		}
	}
}

// hasField tells whether s has the field, by the IBA's name; a dot leads into
// an embedded structure, and [i] selects an element of an array.
func hasField(s *layout.Struct, path string) bool {
	name, rest, nested := strings.Cut(path, ".")
	name, index, isElement := strings.Cut(name, "[")
	i := slices.IndexFunc(s.Fields, func(f layout.Field) bool { return f.Name == name })
	if i < 0 || name == "" {
		return false
	}
	f := &s.Fields[i]
	if isElement {
		if n, err := strconv.Atoi(strings.TrimSuffix(index, "]")); err != nil || n < 0 || n >= f.Count {
			return false
		}
	}
	return !nested || f.Of != nil && hasField(f.Of, rest)
}

func hex(v uint64, bits int) string { return fmt.Sprintf("0x%0*x", bits/4, v) }

func decimal(v uint64) string { return strconv.FormatUint(v, 10) }
