package main

import (
	"fmt"
	"strings"

	"github.com/ibsm/ibsm/mad/layout"
)

// encode writes EncodeTo. Neighbouring rows are joined until they close on a
// natural store.
func (w *writer) encode(name string, s *layout.Struct, ms []member) error {
	w.f("\n// EncodeTo writes every field to b; of a number too wide for its field the low bits.\nfunc (p *%s) EncodeTo(b *[%sSize]byte) {\n", name, name)
	for len(ms) > 0 {
		m, at := ms[0], ms[0].Off/8
		switch {
		case m.Kind == layout.KindStruct && m.Count == 0:
			w.f("p.%s.EncodeTo((*[%sSize]byte)(b[%d:]))\n", m.name, m.typ, at)
		case m.Kind == layout.KindStruct:
			w.f("for i := range p.%s {\np.%s[i].EncodeTo((*[%sSize]byte)(b[%d+%d*i:]))\n}\n", m.name, m.name, m.typ, at, m.Len/8)
		case m.isHalves():
			w.f("for i := range p.%s {\nb[%d+i/2] = b[%d+i/2]&(0xf<<(i%%2*4)) | %s&0xf<<(4-i%%2*4)\n}\n", m.name, at, at,
				convert("uint8", m.typ, fmt.Sprintf("p.%s[i]", m.name)))
		case m.isBytes():
			w.f("copy(b[%d:%d], p.%s[:])\n", at, at+m.Bits()/8, m.name)
		case m.Count > 0:
			w.f("for i := range p.%s {\nbinary.BigEndian.PutUint%d(b[%d+%d*i:], %s)\n}\n", m.name, m.Len, at, m.Len/8,
				convert(fmt.Sprintf("uint%d", m.Len), m.typ, fmt.Sprintf("p.%s[i]", m.name)))
		default:
			runs := split(ms)
			if runs == nil {
				return fmt.Errorf("%s: the rows from bit %d do not close on 8, 16, 32 or 64 bits", m.name, m.Off)
			}
			for _, n := range runs {
				w.store(ms[:n])
				ms = ms[n:]
			}
			continue
		}
		ms = ms[1:]
	}
	w.f("}\n")
	return nil
}

// split cuts the scalars at the head of ms into the smallest runs that each
// fill one natural word, and gives their lengths; nil if that cannot be done.
func split(ms []member) []int {
	bits := 0
	for i, m := range ms {
		if !m.isScalar() {
			break
		}
		if bits += m.Len; bits > 64 {
			break
		}
		if bits%8 != 0 || width(bits) != bits {
			continue
		}
		rest := ms[i+1:]
		if len(rest) == 0 || !rest[0].isScalar() {
			return []int{i + 1}
		}
		if runs := split(rest); runs != nil {
			return append([]int{i + 1}, runs...)
		}
	}
	return nil
}

// store writes one run of rows as one word.
func (w *writer) store(run []member) {
	total := 0
	for _, m := range run {
		total += m.Len
	}
	word := fmt.Sprintf("uint%d", total)
	var terms []string
	left := total
	for _, m := range run {
		left -= m.Len
		v := "p." + m.name
		switch {
		case m.Kind == layout.KindFlag && !m.IsReserved():
			v = fmt.Sprintf("bit[%s](%s)", word, v)
		default:
			v = convert(word, m.typ, v)
			// Bits shifted out at the top need no mask.
			if left+m.Len < total && m.Len < width(m.Len) {
				v = fmt.Sprintf("%s&%#x", v, uint64(1)<<m.Len-1)
			}
		}
		if left > 0 {
			v = fmt.Sprintf("%s<<%d", v, left)
		}
		terms = append(terms, v)
	}
	at, expr := run[0].Off/8, strings.Join(terms, " | ")
	if total == 8 {
		w.f("b[%d] = %s\n", at, expr)
		return
	}
	w.f("binary.BigEndian.PutUint%d(b[%d:], %s)\n", total, at, expr)
}
