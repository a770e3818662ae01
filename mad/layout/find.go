package layout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// FindAttribute gives the attribute of a class by its number, nil if the table
// has none. Directed-route SMPs (0x81) have the attributes of LID-routed ones.
func FindAttribute(class uint8, id uint16) *Attribute {
	class = family(class)
	for _, a := range Attributes {
		if a.Class == class && a.ID == id {
			return a
		}
	}
	return nil
}

// LookUpAttribute gives the attribute of a class by its name: the IBA's with or
// without underscores, or one of the diags', in any case; or by its
// number, in decimal or hexadecimal after 0x. A *NameError lists what is near.
func LookUpAttribute(class uint8, name string) (*Attribute, error) {
	class = family(class)
	if id, err := strconv.ParseUint(name, 0, 16); err == nil {
		if a := FindAttribute(class, uint16(id)); a != nil {
			return a, nil
		}
	}
	var names []string
	for _, a := range Attributes {
		if a.Class != class {
			continue
		}
		if a.isCalled(name) {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return nil, &NameError{What: "attribute", Name: name, In: fmt.Sprintf("class 0x%02x", class), Nearest: Nearest(name, names)}
}

// AttributeOf gives the attribute by which a class carries a structure, nil if
// it does not.
func AttributeOf(class uint8, s *Struct) *Attribute {
	class = family(class)
	for _, a := range Attributes {
		if a.Class == class && a.Struct == s {
			return a
		}
	}
	return nil
}

// FindStruct gives the structure of a name, with or without underscores, in any
// case; nil if the table has none.
func FindStruct(name string) *Struct {
	for _, g := range Groups {
		for _, s := range g.Structs {
			if sameName(s.Name, name) {
				return s
			}
		}
	}
	return nil
}

func family(class uint8) uint8 {
	if class == 0x81 {
		return classSubn
	}
	return class
}

func (a *Attribute) isCalled(name string) bool {
	return sameName(a.Name, name) || a.Short != "" && sameName(a.Short, name) ||
		slices.ContainsFunc(a.Alias, func(alias string) bool { return sameName(alias, name) })
}

// Allows tells whether the attribute has the method.
func (a *Attribute) Allows(method uint8) bool { return slices.Contains(a.Methods, method) }

// Find gives the field called name, with Off counted from the start of s. The
// name is the IBA's, with or without underscores, or one that smpquery or
// saquery prints, in any case. A dot leads into an embedded structure, whose
// fields are also found without it where only one has the name; [i] selects an
// element of an array. The Name of the result is the whole path in the IBA's
// names. A *NameError says what is near.
func (s *Struct) Find(name string) (Field, error) {
	base, index, err := cutIndex(name)
	if err != nil {
		return Field{}, &NameError{What: "field", Name: name, In: s.Name, Why: err.Error()}
	}
	all := s.Leaves()
	for _, match := range []func(*Field, string) bool{matchPath, matchLast, matchLabel} {
		found := slices.DeleteFunc(slices.Clone(all), func(f Field) bool { return !match(&f, base) })
		switch {
		case len(found) == 1:
			return element(s, found[0], index)
		case len(found) > 1:
			return Field{}, &NameError{What: "field", Name: name, In: s.Name, Why: "several fields have the name", Nearest: pathsOf(found[:min(len(found), 3)])}
		}
	}
	if f, ok := s.findListed(base); ok {
		return element(s, f, index)
	}
	if f, ok := findElement(base, all); ok && index < 0 {
		return f, nil
	}
	return Field{}, &NameError{What: "field", Name: name, In: s.Name, Nearest: Nearest(base, pathsOf(all))}
}

// FindIn is Find for a structure whose bytes are known: a dot leads into a row
// of bytes too, if they say what it holds (see [Struct.Variant]).
func (s *Struct) FindIn(b []byte, name string) (Field, error) {
	f, err := s.Find(name)
	base, rest, dotted := strings.Cut(name, ".")
	if err == nil || !dotted {
		return f, err
	}
	row, rowErr := s.Find(base)
	if rowErr != nil {
		return f, err
	}
	of := s.Variant(&row, b)
	if of == nil {
		return f, err
	}
	if f, err = of.Find(rest); err != nil {
		return f, err
	}
	f.Off += row.Off
	f.Name = row.Name + "." + f.Name
	return f, nil
}

// Variant is the structure that a row of bytes of s holds, by what the other
// fields in b say; nil if it is none that is known.
func (s *Struct) Variant(f *Field, b []byte) *Struct {
	for _, v := range f.Variants {
		if s.Holds(v.When, b) {
			return v.Of
		}
	}
	return nil
}

// Holds tells whether all conditions hold for the structure in b.
func (s *Struct) Holds(when []Cond, b []byte) bool {
	for _, c := range when {
		f, err := s.Find(c.Field)
		if err != nil {
			return false
		}
		if v := f.Uint(b); v < c.Min || v > c.Max {
			return false
		}
	}
	return true
}

// Leaves are the fields of s and of what is embedded in it, without reserved
// rows. Off counts from the start of s, and Name is the path in the IBA's names.
func (s *Struct) Leaves() []Field {
	var out []Field
	for i := range s.Fields {
		f := s.Fields[i]
		switch {
		case f.IsReserved():
		case f.Kind != KindStruct:
			out = append(out, f)
		case f.Count == 0:
			out = append(out, f.inside()...)
		default:
			for j := range f.Count {
				e := f.Element(j)
				out = append(out, e.inside()...)
			}
		}
	}
	return out
}

// inside gives the leaves of an embedded structure.
func (f *Field) inside() []Field {
	leaves := f.Of.Leaves()
	for i := range leaves {
		leaves[i].Off += f.Off
		leaves[i].Name = f.Name + "." + leaves[i].Name
	}
	return leaves
}

// MaskOf is the component mask bits of the field whose path Find gave; 0 if it
// cannot be selected.
func (s *Struct) MaskOf(path string) (mask uint64) {
	for i, name := range s.Mask {
		if name == path {
			mask |= 1 << i
		}
	}
	return mask
}

func matchPath(f *Field, name string) bool { return sameName(f.Name, name) }

func matchLast(f *Field, name string) bool {
	return sameName(f.Name[strings.LastIndexByte(f.Name, '.')+1:], name)
}

func matchLabel(f *Field, name string) bool { return f.Label != "" && sameName(f.Label, name) }

// findListed looks for a line of saquery's that shows one field.
func (s *Struct) findListed(name string) (Field, bool) {
	if s.SA == nil {
		return Field{}, false
	}
	for _, l := range s.SA.Lines {
		if l.Field != "" && l.IsCalled(name) {
			f, err := s.Find(l.Field)
			return f, err == nil
		}
	}
	return Field{}, false
}

// findElement looks for the diags' numbered names of array elements: GUID3.
func findElement(name string, all []Field) (Field, bool) {
	for i := range all {
		for j := range all[i].Count {
			if e := all[i].Element(j); e.Label != "" && sameName(e.Label, name) {
				return e, true
			}
		}
	}
	return Field{}, false
}

func element(s *Struct, f Field, index int) (Field, error) {
	if index < 0 {
		return f, nil
	}
	if index >= f.Count {
		why := "it is not an array"
		if f.Count > 0 {
			why = fmt.Sprintf("its elements are 0 to %d", f.Count-1)
		}
		return Field{}, &NameError{What: "field", Name: fmt.Sprintf("%s[%d]", f.Name, index), In: s.Name, Why: why}
	}
	return f.Element(index), nil
}

func pathsOf(fields []Field) []string {
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
	}
	return names
}
