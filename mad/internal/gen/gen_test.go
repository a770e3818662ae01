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
	outer := &layout.Struct{Name: "Outer", Size: 8, IBA: "1.4", Doc: "is outside.", Fields: []layout.Field{
		{Name: "Flag", Off: 0, Len: 1, Kind: layout.KindFlag},
		{Name: "Num_ber", Off: 1, Len: 15},
		{Name: "Inner", Off: 16, Len: 8, Kind: layout.KindStruct, Of: inner},
		{Name: "Port", Off: 24, Len: 8, Count: 2},
		{Name: "Text", Off: 40, Len: 24, Kind: layout.KindString},
	}, Mask: []string{"Flag", "", "Inner.State"}}
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
	if text := string(files["ztest.go"]); !strings.Contains(text, "p.Number = binary.BigEndian.Uint16(b[0:]) & 0x7fff") {
		t.Errorf("unexpected code:\n%s", text)
	}
	for _, c := range []struct {
		name   string
		damage func(t *tables, outer *layout.Struct, state *layout.Enum)
		says   string
	}{
		{"gap", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[1].Off, s.Fields[1].Len = 2, 14 }, "gap of 1 bits"},
		{"overlap", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[1].Off, s.Fields[1].Len = 0, 16 }, "overlaps the row before it by 1 bits"},
		{"short", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Size = 9 }, "cover 64 of 72 bits"},
		{"long", func(_ *tables, s *layout.Struct, _ *layout.Enum) { s.Size = 7 }, "cover 64 of 56 bits"},
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
		{"array of odd bits", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[3].Len, s.Fields[3].Count = 4, 4 }, "arrays are of numbers of 8, 16, 32 or 64 bits"},
		{"text of odd bits", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Fields[4].Len = 23 }, "not whole bytes"},
		{"mask without field", func(t *tables, s *layout.Struct, _ *layout.Enum) { s.Mask[2] = "Inner.Stat" }, "no field Inner.Stat"},
		{"listing without field", func(t *tables, s *layout.Struct, _ *layout.Enum) {
			s.SA = &layout.Listing{Lines: []layout.Line{{Label: "x", Field: "Nope"}}}
		}, "listing: no field Nope"},
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
