package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibsm/ibsm/mad/layout"
)

// member is a row with its place in Go.
type member struct {
	*layout.Field
	name string // of the struct member; reserved rows are resv1, resv2...
	typ  string // of one element
}

// isScalar tells whether the member is one number, which shifts and masks reach.
func (m member) isScalar() bool { return m.Count == 0 && !m.isBytes() && m.Kind != layout.KindStruct }

// isBytes tells whether the member is moved by copy.
func (m member) isBytes() bool {
	return strings.HasPrefix(m.typ, "[") || m.typ == "GID" || m.Count > 0 && m.typ == "uint8" && m.Len == 8
}

// isHalves tells whether the member is an array with two elements in a byte.
func (m member) isHalves() bool { return m.Count > 0 && m.Len == 4 }

// width is the smallest Go integer of at least n bits.
func width(n int) int {
	for _, w := range []int{8, 16, 32} {
		if n <= w {
			return w
		}
	}
	return 64
}

func members(s *layout.Struct) ([]member, error) {
	var out []member
	reserved := 0
	for i := range s.Fields {
		f := &s.Fields[i]
		m := member{Field: f, name: f.GoName()}
		switch {
		case f.IsReserved():
			reserved++
			m.name = fmt.Sprintf("resv%d", reserved)
			switch {
			case f.Off%8 == 0 && f.Len%8 == 0 && width(f.Len) != f.Len:
				m.typ = fmt.Sprintf("[%d]byte", f.Len/8)
			case f.Len <= 64:
				m.typ = fmt.Sprintf("uint%d", width(f.Len))
			default:
				return nil, fmt.Errorf("reserved row at bit %d: %d bits that are not whole bytes", f.Off, f.Len)
			}
		case f.Kind == layout.KindUint, f.Kind == layout.KindHex, f.Kind == layout.KindTime:
			m.typ = fmt.Sprintf("uint%d", width(f.Len))
		case f.Kind == layout.KindFlag:
			m.typ = "bool"
		case f.Kind == layout.KindEnum:
			m.typ = f.Enum.Name
		case f.Kind == layout.KindLID:
			m.typ = "LID"
		case f.Kind == layout.KindGUID:
			m.typ = "GUID"
		case f.Kind == layout.KindPKey:
			m.typ = "PKey"
		case f.Kind == layout.KindGID:
			m.typ = "GID"
		case f.Kind == layout.KindBytes, f.Kind == layout.KindString:
			m.typ = fmt.Sprintf("[%d]byte", f.Len/8)
		case f.Kind == layout.KindStruct:
			m.typ = f.Of.GoName()
		default:
			return nil, fmt.Errorf("%s: unknown kind %d", f.Name, f.Kind)
		}
		out = append(out, m)
	}
	return out, nil
}

// structure writes the type and its methods.
func (w *writer) structure(s *layout.Struct) error {
	ms, err := members(s)
	if err != nil {
		return err
	}
	name := s.GoName()
	w.f("\n// %sSize is the length of %s on the wire in bytes.\nconst %sSize = %d\n", name, name, name, s.Size)
	w.f("\n// %s %s\n// (IBA %s)\ntype %s struct {\n", name, strings.ReplaceAll(s.Doc, "\n", "\n// "), s.IBA, name)
	for _, m := range ms {
		typ := m.typ
		if m.Count > 0 {
			typ = fmt.Sprintf("[%d]%s", m.Count, typ)
		}
		w.f("%s %s%s\n", m.name, typ, comment(m))
	}
	w.f("}\n")
	if err := w.decode(name, s, ms); err != nil {
		return err
	}
	if err := w.encode(name, s, ms); err != nil {
		return err
	}
	w.f("\n// UnmarshalBinary decodes b, which is exactly [%sSize] bytes long. The error is\n// a [*LengthError].\n", name)
	w.f("func (p *%s) UnmarshalBinary(b []byte) error {\n", name)
	w.f("if len(b) != %sSize {\nreturn &LengthError{Struct: %q, Got: len(b), Want: %sSize}\n}\n", name, s.Name, name)
	w.f("p.DecodeFrom((*[%sSize]byte)(b))\nreturn nil\n}\n", name)
	w.f("\n// AppendBinary appends [%sSize] bytes to b. The error is always nil.\n", name)
	w.f("func (p *%s) AppendBinary(b []byte) ([]byte, error) {\nvar w [%sSize]byte\np.EncodeTo(&w)\nreturn append(b, w[:]...), nil\n}\n", name, name)
	w.variants(name, ms)
	w.f("\n// Layout is the description of %s in the field table.\n", name)
	w.f("func (*%s) Layout() *layout.Struct { return layout.%s }\n", name, name)
	return nil
}

// variants writes the typed decoding of rows that hold one of several
// structures.
func (w *writer) variants(name string, ms []member) {
	for _, m := range ms {
		if m.Variants == nil {
			continue
		}
		w.f("\n// Decode%s gives %s as the structure that other members say it is,\n// nil if it is none that is known.\n", m.name, m.name)
		w.f("func (p *%s) Decode%s() Structure {\nswitch {\n", name, m.name)
		for _, v := range m.Variants {
			w.f("case %s:\nv := new(%s)\nv.DecodeFrom(&p.%s)\nreturn v\n", condition(v.When, ms), v.Of.GoName(), m.name)
		}
		w.f("}\nreturn nil\n}\n")
	}
}

// condition writes conditions on members of p as a Go expression.
func condition(when []layout.Cond, ms []member) string {
	var terms []string
	for _, c := range when {
		m := ms[slices.IndexFunc(ms, func(m member) bool { return m.Name == c.Field })]
		switch {
		case m.Kind == layout.KindFlag && c.Min == c.Max:
			terms = append(terms, map[uint64]string{0: "!"}[c.Min]+"p."+m.name)
		case c.Min == c.Max:
			terms = append(terms, fmt.Sprintf("p.%s == %d", m.name, c.Min))
		default:
			terms = append(terms, fmt.Sprintf("p.%s >= %d && p.%s <= %d", m.name, c.Min, m.name, c.Max))
		}
	}
	return strings.Join(terms, " && ")
}

// comment says what the Go type does not: the number of bits, names and units.
func comment(m member) string {
	var parts []string
	if m.IsReserved() {
		return ""
	}
	if m.name != m.Name {
		parts = append(parts, m.Name)
	}
	if m.isScalar() && m.Kind != layout.KindFlag && m.Len != width(m.Len) {
		parts = append(parts, fmt.Sprintf("%d bits", m.Len))
	}
	if m.Doc != "" {
		parts = append(parts, m.Doc)
	}
	if len(parts) == 0 {
		return ""
	}
	return " // " + strings.Join(parts, "; ")
}

// decode writes DecodeFrom, with one natural load for each field.
func (w *writer) decode(name string, s *layout.Struct, ms []member) error {
	w.f("\n// DecodeFrom sets every field from b.\nfunc (p *%s) DecodeFrom(b *[%sSize]byte) {\n", name, name)
	for _, m := range ms {
		at := m.Off / 8
		switch {
		case m.Kind == layout.KindStruct && m.Count == 0:
			w.f("p.%s.DecodeFrom((*[%sSize]byte)(b[%d:]))\n", m.name, m.typ, at)
		case m.Kind == layout.KindStruct:
			w.f("for i := range p.%s {\np.%s[i].DecodeFrom((*[%sSize]byte)(b[%d+%d*i:]))\n}\n", m.name, m.name, m.typ, at, m.Len/8)
		case m.isBytes():
			w.f("copy(p.%s[:], b[%d:%d])\n", m.name, at, at+m.Bits()/8)
		case m.isHalves():
			w.f("for i := range p.%s {\np.%s[i] = %s\n}\n", m.name, m.name,
				convert(m.typ, "uint8", fmt.Sprintf("b[%d+i/2]>>(4-i%%2*4)&0xf", at)))
		case m.Count > 0:
			w.f("for i := range p.%s {\np.%s[i] = %s\n}\n", m.name, m.name,
				convert(m.typ, fmt.Sprintf("uint%d", m.Len), fmt.Sprintf("binary.BigEndian.Uint%d(b[%d+%d*i:])", m.Len, at, m.Len/8)))
		default:
			l, err := loadOf(m.Off, m.Len, s.Size)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			if m.Kind == layout.KindFlag {
				w.f("p.%s = %s&%#x != 0\n", m.name, l.word, uint64(1)<<l.shift)
				continue
			}
			w.f("p.%s = %s\n", m.name, convert(m.typ, fmt.Sprintf("uint%d", l.width), l.expr(m.Len)))
		}
	}
	w.f("}\n")
	return nil
}

// load is the smallest natural load that holds a field.
type load struct {
	word         string // Go expression
	width, shift int
}

func loadOf(off, n, size int) (load, error) {
	for _, w := range []int{8, 16, 32, 64} {
		// From the field's own byte backwards; a naturally aligned word reads best.
		best := -1
		for s := off / 8; s >= 0 && s*8+w >= off+n; s-- {
			if s+w/8 > size {
				continue
			}
			if best < 0 || s%(w/8) == 0 {
				best = s
			}
			if s%(w/8) == 0 {
				break
			}
		}
		if best < 0 {
			continue
		}
		word := fmt.Sprintf("b[%d]", best)
		if w > 8 {
			word = fmt.Sprintf("binary.BigEndian.Uint%d(b[%d:])", w, best)
		}
		return load{word, w, best*8 + w - off - n}, nil
	}
	return load{}, fmt.Errorf("no load of up to 64 bits holds %d bits at bit %d of %d bytes", n, off, size)
}

// expr is the load, shifted and masked to n bits.
func (l load) expr(n int) string {
	e := l.word
	if l.shift > 0 {
		e = fmt.Sprintf("%s>>%d", e, l.shift)
	}
	if l.shift+n < l.width {
		e = fmt.Sprintf("%s&%#x", e, uint64(1)<<n-1)
	}
	return e
}

func convert(to, from, expr string) string {
	if to == from {
		return expr
	}
	return fmt.Sprintf("%s(%s)", to, expr)
}
