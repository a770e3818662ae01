package text

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// shown is a line of a listing with the bits that it shows.
type shown struct {
	*layout.Line
	field  layout.Field   // that it names; the zero value if it names none
	off, n int            // first bit, and length of one number
	parts  []layout.Field // fields that lie in those bits
	names  bool           // parts are several, or not those that are named
	block  layout.Field   // for Line.Block
}

// listings keeps the shown lines of each *layout.Listing: names are looked up
// once, not for each record.
var listings sync.Map

func shownLines(s *layout.Struct, l *layout.Listing) []shown {
	if lines, ok := listings.Load(l); ok {
		return lines.([]shown)
	}
	leaves := s.Leaves()
	lines := make([]shown, len(l.Lines))
	for i := range l.Lines {
		n := shown{Line: &l.Lines[i]}
		n.field = row(s, n.Field)
		n.block = row(s, n.Block)
		n.off, n.n = n.Off, n.Len
		if n.n == 0 {
			n.off, n.n = n.field.Off, n.field.Bits()
		}
		for _, f := range leaves {
			if f.Off >= n.off && f.Off+f.Bits() <= n.off+n.n {
				n.parts = append(n.parts, f)
			}
		}
		n.names = len(n.parts) > 2 || len(n.parts) == 2 && n.parts[0].Enum != layout.Selector
		if len(n.parts) == 0 && n.Field != "" {
			n.parts, n.names = []layout.Field{n.field}, true
		}
		lines[i] = n
	}
	listings.Store(l, lines)
	return lines
}

// row is a field of s, or a whole embedded structure; without a name it is none.
// The generator has checked that the tables name nothing else.
func row(s *layout.Struct, name string) layout.Field {
	if name == "" {
		return layout.Field{}
	}
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return s.Fields[i]
		}
	}
	f, _ := s.Find(name)
	return f
}

// listing prints a structure by a list of lines.
func listing(dst []byte, s *layout.Struct, l *layout.Listing, b []byte, o Options) []byte {
	if l.Title != "" {
		dst = append(append(dst, l.Title...), '\n')
	}
	lines := shownLines(s, l)
	for i := range lines {
		n := &lines[i]
		switch {
		case !s.Holds(n.When, b):
			continue
		case n.Format == layout.Heading:
			dst = append(append(dst, n.Label...), '\n')
			continue
		case n.Format == layout.Dotted:
			dst = dotted(dst, n.field.Of, n.field.Bytes(b), o, l.Indent)
			continue
		case n.Block != "":
			dst = table(dst, n, b, l.Indent)
			continue
		}
		dst = append(append(dst, l.Indent...), n.Label...)
		if n.Count > 0 {
			dst = cells(dst, n, b, o)
		} else {
			dst = dots(dst, l.Width-len(n.Label))
			dst = n.value(dst, b, o)
		}
		dst = append(dst, '\n')
	}
	return dst
}

// number is number i of a line that shows several.
func (n *shown) number(b []byte, i int) uint64 {
	step := n.Step
	if step == 0 {
		step = n.n
	}
	return layout.Uint(b, n.off+i*step, n.n)
}

// table prints one number a line, behind its index in a table of many blocks.
func table(dst []byte, n *shown, b []byte, indent string) []byte {
	first := n.First + n.block.Uint(b)*uint64(n.Count)
	for i := range n.Count {
		dst = append(dst, indent...)
		dst = append(digits(dst, n.Format, first+uint64(i)), '\t')
		dst = append(digits(dst, n.Format, n.number(b, i)), '\n')
	}
	return dst
}

// cells prints several numbers into one line.
func cells(dst []byte, n *shown, b []byte, o Options) []byte {
	count := n.Count
	if o.Count > 0 {
		count = min(count, o.Count)
	}
	for i := range count {
		v := n.number(b, i)
		switch n.Format {
		case layout.HEXCells:
			dst = fmt.Appendf(dst, "0x%-2X|", v)
		case layout.Row:
			if i > 0 {
				dst = append(dst, ' ')
			}
			dst = digits(dst, layout.Hex4, v)
		default:
			dst = fmt.Appendf(dst, "%2d|", v)
		}
	}
	return dst
}

// value prints what stands behind the dots.
func (n *shown) value(dst, b []byte, o Options) []byte {
	if n.Key && !o.ShowKeys {
		return append(dst, notDisplayed...)
	}
	whole := b[n.off/8 : (n.off+n.n+7)/8]
	switch n.Format {
	case layout.IPv6:
		return append(dst, mad.GID(whole).String()...)
	case layout.Text:
		return append(dst, Printable(cString(whole))...)
	case layout.Digits:
		return append(append(dst, "0x"...), strings.ToUpper(hex.EncodeToString(whole))...)
	case layout.LowDigits:
		return hex.AppendEncode(append(dst, "0x"...), whole)
	}
	v := layout.Uint(b, n.off, n.n)
	if n.Format == layout.Named {
		if text, ok := enumText(n.field.Enum, v); ok {
			return append(dst, text...)
		}
	}
	dst = digits(dst, n.Format, v)
	if o.Decoded {
		dst = decoded(dst, n.parts, n.Enum, b, n.names)
	}
	return dst
}

func digits(dst []byte, format layout.Format, v uint64) []byte {
	switch format {
	case layout.HEX:
		return fmt.Appendf(dst, "0x%X", v)
	case layout.HEX2:
		return fmt.Appendf(dst, "0x%02X", v)
	case layout.HEX4:
		return fmt.Appendf(dst, "0x%04X", v)
	case layout.HEX6:
		return fmt.Appendf(dst, "0x%06X", v)
	case layout.HEX8:
		return fmt.Appendf(dst, "0x%08X", v)
	case layout.Hex:
		return fmt.Appendf(dst, "0x%x", v)
	case layout.Hex4:
		return fmt.Appendf(dst, "0x%04x", v)
	case layout.Hex16:
		return fmt.Appendf(dst, "0x%016x", v)
	}
	return strconv.AppendUint(dst, v, 10)
}
