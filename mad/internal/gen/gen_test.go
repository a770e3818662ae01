package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad/layout"
)

// The files in the tree are what the tables give now, and there are no others.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := generate(tables{layout.Groups, layout.Enums, layout.Attributes})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("mad/%s is not what mad/layout says: run go generate ./mad", name)
		}
	}
	have, err := filepath.Glob("../../z*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range have {
		if files[filepath.Base(path)] == nil {
			t.Errorf("%s has no table", path)
		}
	}
}

// whole is a small set of tables without a fault; each case of TestRefusals
// breaks one thing.
func whole() tables {
	state := &layout.Enum{Name: "State", Bits: 8, IBA: "1.2", Doc: "is a state.", Diag: "%d", Values: []layout.Value{
		{Value: 1, Go: "Down", Text: "Down"}, {Value: 2, Go: "Up", Text: "Up", Alias: []string{"On"}},
	}}
	inner := &layout.Struct{Name: "Inner", Size: 1, IBA: "1.3", Doc: "is inside.", Fields: []layout.Field{
		{Name: "State", Off: 0, Len: 4, Kind: layout.KindEnum, Enum: state}, {Off: 4, Len: 4},
	}}
	outer := &layout.Struct{Name: "Outer", Size: 12, IBA: "1.4", Doc: "is outside.", Fields: []layout.Field{
		{Name: "Flag", Off: 0, Len: 1, Kind: layout.KindFlag},
		{Name: "Num_ber", Off: 1, Len: 15},
		{Name: "Inner", Off: 16, Len: 8, Kind: layout.KindStruct, Of: inner},
		{Name: "Port", Off: 24, Len: 8, Count: 2},
		{Name: "Half", Off: 40, Len: 4, Count: 2},
		{Name: "Pair", Off: 48, Len: 8, Count: 2, Kind: layout.KindStruct, Of: inner},
		{Name: "Any", Off: 64, Len: 8, Kind: layout.KindBytes, Variants: []layout.Variant{
			{When: []layout.Cond{{Field: "Flag", Min: 1, Max: 1}, {Field: "Num_ber", Min: 3, Max: 5}}, Of: inner},
		}},
		{Name: "Text", Off: 72, Len: 24, Kind: layout.KindString},
	}, Mask: []string{"Flag", "", "Inner.State", "Port[1]"}}
	return tables{
		groups:     []layout.Group{{File: "test", Structs: []*layout.Struct{inner, outer}}},
		enums:      []*layout.Enum{state},
		attributes: []*layout.Attribute{{Class: 1, ID: 2, Name: "Outer", Struct: outer}},
	}
}

func TestRefusals(t *testing.T) {
	files, err := generate(whole())
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{
		"p.Number = binary.BigEndian.Uint16(b[0:]) & 0x7fff",
		"p.Half[i] = b[5+i/2] >> (4 - i%2*4) & 0xf",
		"p.Pair[i].DecodeFrom((*[InnerSize]byte)(b[6+1*i:]))",
		"case p.Flag && p.Number >= 3 && p.Number <= 5:\n\t\tv := new(Inner)",
	} {
		if text := string(files["ztest.go"]); !strings.Contains(text, code) {
			t.Errorf("no %q in\n%s", code, text)
		}
	}
	for _, c := range []struct {
		name   string
		damage func(t *tables, outer *layout.Struct, state *layout.Enum)
		says   string
	}{
		{"gap", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[1].Off, s.Fields[1].Len = 2, 14 }, "gap of 1 bits"},
		{"overlap", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[1].Off, s.Fields[1].Len = 0, 16 }, "overlaps the row before it by 1 bits"},
		{"short", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Size = 13 }, "cover 96 of 104 bits"},
		{"long", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Size = 11 }, "cover 96 of 88 bits"},
		{"no length", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[1].Len = 0 }, "length 0"},
		{"duplicate field", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[1].Name = "Flag" }, "Go name Flag is taken"},
		{"underscore clash", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[1].Name = "Fl_ag" }, "Go name Flag is taken"},
		{"method clash", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[1].Name = "Layout" }, "Go name Layout is taken"},
		{"unknown kind", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[1].Kind = 99 }, "unknown kind 99"},
		{"flag of two bits", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[1].Kind = layout.KindFlag }, "15 bits in place of 1"},
		{"LID of 15 bits", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[1].Kind = layout.KindLID }, "15 bits in place of 16"},
		{"unlisted enum", func(t *tables, _ *layout.Struct, _ *layout.Enum) { t.enums = nil }, "not in the list of enums"},
		{"enum without kind", func(t *tables, s *layout.Struct, e *layout.Enum) { s.Fields[1].Enum = e }, "does not go with its kind"},
		{"enum too narrow", func(t *tables, s *layout.Struct, e *layout.Enum) {
			s.Fields[1].Kind, s.Fields[1].Enum = layout.KindEnum, e
		}, "15 bits in an enum of 8"},
		{"unlisted structure", func(t *tables, s *layout.Struct, _ *layout.Enum) { t.groups[0].Structs = []*layout.Struct{s} }, "must stand before it"},
		{"structure of another size", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[2].Len = 16 }, "16 bits in place of 8"},
		{"array of odd bits", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[3].Len, s.Fields[3].Count = 2, 8 }, "arrays are of structures, or of numbers of 4, 8"},
		{"half a byte too much", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[4].Count = 3 }, "arrays are of structures, or of numbers of 4, 8"},
		{"array of flags", func(t *tables, s *layout.Struct, _ *layout.Enum) {
			s.Fields[3].Kind, s.Fields[3].Len, s.Fields[3].Count = layout.KindFlag, 1, 16
		}, "arrays are of structures, or of numbers of 4, 8"},
		{"array of other structures", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[5].Len, s.Fields[5].Count = 16, 1 }, "16 bits in place of 8"},
		{"variants of a number", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[6].Kind = layout.KindUint }, "only bytes have variants"},
		{"variant of another size", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[6].Len, s.Size = 16, 13 }, "variant Inner has 1 bytes"},
		{"variant not before", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[6].Variants[0].Of = s }, "a variant must stand before it"},
		{"variant without condition", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[6].Variants[0].When = nil }, "without a condition"},
		{"variant of no field", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[6].Variants[0].When[0].Field = "Flog" }, "hangs on Flog"},
		{"variant of an array", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[6].Variants[0].When[0].Field = "Port" }, "hangs on Port"},
		{"variant's method", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[7].Name = "DecodeAny" }, "Go name DecodeAny is taken"},
		{"text of odd bits", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[7].Len = 23 }, "not whole bytes"},
		{"mask beyond array", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Mask[3] = "Port[2]" }, "no field Port[2]"},
		{"mask without field", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Mask[2] = "Inner.Stat" }, "no field Inner.Stat"},
		{"listing without field", func(t *tables, s *layout.Struct, _ *layout.Enum) {
			s.SA = &layout.Listing{Lines: []layout.Line{{Label: "x", Field: "Nope"}}}
		}, "listing: no field Nope"},
		{"listing without block", func(t *tables, s *layout.Struct, _ *layout.Enum) {
			s.SA = &layout.Listing{Lines: []layout.Line{{Off: 24, Len: 8, Count: 2, Block: "Nope"}}}
		}, "listing: no field Nope"},
		{"listing without condition", func(t *tables, s *layout.Struct, _ *layout.Enum) {
			s.SM = &layout.Listing{Lines: []layout.Line{{Field: "Flag", When: []layout.Cond{{Field: "Nope"}}}}}
		}, "listing: no field Nope"},
		{"listing beyond the end", func(t *tables, s *layout.Struct, _ *layout.Enum) {
			s.SM = &layout.Listing{Lines: []layout.Line{{Off: 64, Len: 8, Count: 3, Step: 16}}}
		}, "shows nothing"},
		{"empty line", func(t *tables, s *layout.Struct, _ *layout.Enum) {
			s.SA = &layout.Listing{Lines: []layout.Line{{Label: "x"}}}
		}, "shows nothing"},
		{"no section", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.IBA = "" }, "section is missing"},
		{"structure twice", func(t *tables, s *layout.Struct, _ *layout.Enum) {
			t.groups = append(t.groups, layout.Group{File: "more", Structs: []*layout.Struct{s}})
		}, "Go name Outer is taken"},
		{"enum named like a structure", func(t *tables, s *layout.Struct, e *layout.Enum) { e.Name = "Outer" }, "Go name Outer is taken"},
		{"value twice", func(t *tables, _ *layout.Struct, e *layout.Enum) { e.Values[1].Value = 1 }, "value 0x1 twice"},
		{"text twice", func(t *tables, _ *layout.Struct, e *layout.Enum) { e.Values[1].Alias[0] = "down" }, `text "down" twice`},
		{"value too wide", func(t *tables, _ *layout.Struct, e *layout.Enum) { e.Values[1].Value = 256 }, "wider than 8 bits"},
		{"not a bit", func(t *tables, _ *layout.Struct, e *layout.Enum) { e.Sep, e.Values[1].Value = "|", 3 }, "not one bit"},
		{"enum of 7 bits", func(t *tables, _ *layout.Struct, e *layout.Enum) { e.Bits = 7 }, "no Go type of 7 bits"},
		{"attribute twice", func(t *tables, s *layout.Struct, _ *layout.Enum) {
			t.attributes = append(t.attributes, &layout.Attribute{Class: 1, ID: 2, Name: "Again", Struct: s})
		}, "is Outer already"},
		{"attribute with two ids", func(t *tables, s *layout.Struct, _ *layout.Enum) {
			t.attributes = append(t.attributes, &layout.Attribute{Class: 2, ID: 3, Name: "Outer", Struct: s})
		}, "two ids"},
		{"attribute of no structure", func(t *tables, _ *layout.Struct, _ *layout.Enum) { t.attributes[0].Struct = nil }, "not in a group"},
		{"24 bits between bytes", func(t *tables, s *layout.Struct, _ *layout.Enum) {
			s.Size = 7
			s.Fields = []layout.Field{{Name: "Text", Len: 32, Kind: layout.KindString}, {Name: "Three", Off: 32, Len: 24}}
			s.Mask = nil
		}, "do not close on 8, 16, 32 or 64 bits"},
		{"24 bits alone", func(t *tables, s *layout.Struct, _ *layout.Enum) {
			s.Size = 3
			s.Fields = []layout.Field{{Name: "Three", Len: 24}}
			s.Mask = nil
		}, "no load"},
		{"64 bits over nine bytes", func(t *tables, s *layout.Struct, _ *layout.Enum) {
			s.Size = 9
			s.Fields = []layout.Field{{Name: "A", Len: 4}, {Name: "B", Off: 4, Len: 64}, {Name: "C", Off: 68, Len: 4}}
			s.Mask = nil
		}, "no load"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab := whole()
			c.damage(&tab, tab.groups[0].Structs[1], tab.enums[0])
			_, err := generate(tab)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %q in it", err, c.says)
			}
		})
	}
}
