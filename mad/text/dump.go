package text

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// Options change how a structure is dumped. The zero value is the diags'
// default.
type Options struct {
	// First is the number of the first element of an array: block times length
	// of a block, for attributes that come in blocks.
	First int
	// ShowKeys prints M_Keys and SM_Keys.
	ShowKeys bool
}

const notDisplayed = "<not displayed>"

// Dump gives a structure in the dotted form of the diags: as saquery prints it
// if saquery does, else as smpquery does. Every line ends with a line feed.
func Dump(v mad.Structure, o Options) string {
	s, b := wire(v)
	return string(dump(nil, s, b, o))
}

// AppendDump appends the dump of the structure in b, which is exactly its size,
// to dst. The error is a [*mad.LengthError].
func AppendDump(dst []byte, s *layout.Struct, b []byte, o Options) ([]byte, error) {
	if err := checkLength(s, b); err != nil {
		return dst, err
	}
	return dump(dst, s, b, o), nil
}

// AppendFields is AppendDump in smpquery's form, whatever the structure: a
// ClassPortInfo of another class than the SA's is printed so.
func AppendFields(dst []byte, s *layout.Struct, b []byte, o Options) ([]byte, error) {
	if err := checkLength(s, b); err != nil {
		return dst, err
	}
	return fields(dst, s, b, o), nil
}

func dump(dst []byte, s *layout.Struct, b []byte, o Options) []byte {
	if s.SA != nil {
		return listing(dst, s, b)
	}
	return fields(dst, s, b, o)
}

// fieldWidth is where smpquery's values start, after the label and its colon.
const fieldWidth = 32

// fields prints the rows that smpquery prints, and arrays as numbered lines.
// The newest speeds come last there, after the capability mask that announces
// them.
func fields(dst []byte, s *layout.Struct, b []byte, o Options) []byte {
	var last []*layout.Field
	for i := range s.Fields {
		f := &s.Fields[i]
		switch {
		case f.IsReserved():
		case f.Enum == layout.LinkSpeedExt2:
			last = append(last, f)
		default:
			dst = line(dst, f, b, o)
		}
	}
	for _, f := range last {
		dst = line(dst, f, b, o)
	}
	return dst
}

func line(dst []byte, f *layout.Field, b []byte, o Options) []byte {
	label := f.Label
	if label == "" {
		label = f.Name
	}
	switch {
	case f.Kind == layout.KindStruct:
		return fields(dst, f.Of, f.Bytes(b), o)
	case f.Count > 0:
		return array(dst, f, b, o)
	case f.Kind == layout.KindString:
		// The text ends where the values of other fields start, if it can.
		text := Printable(cString(f.Bytes(b)))
		dst = append(dst, label...)
		dst = append(dst, ':')
		dst = dots(dst, max(fieldWidth-len(text), 1))
		return append(append(dst, text...), '\n')
	}
	dst = append(dst, label...)
	dst = append(dst, ':')
	dst = dots(dst, fieldWidth-len(label))
	if f.Key && !o.ShowKeys {
		return append(dst, notDisplayed+"\n"...)
	}
	return append(diagValue(dst, f, b), '\n')
}

func dots(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '.')
	}
	return dst
}

// array prints elements in lines that start with the number of the first one,
// as smpquery does for P_Keys and GUIDs.
func array(dst []byte, f *layout.Field, b []byte, o Options) []byte {
	perLine := map[int]int{64: 2, 16: 8, 8: 16}[f.Len]
	for i := range f.Count {
		if i%perLine == 0 {
			dst = fmt.Appendf(dst, "%4d:", o.First+i)
		}
		e := f.Element(i)
		if f.Len == 8 {
			dst = fmt.Appendf(dst, " %3d", e.Uint(b))
		} else {
			dst = append(dst, ' ')
			dst = diagValue(dst, &e, b)
		}
		if i%perLine == perLine-1 || i == f.Count-1 {
			dst = append(dst, '\n')
		}
	}
	return dst
}

// listing prints a record in saquery's form.
func listing(dst []byte, s *layout.Struct, b []byte) []byte {
	dst = append(append(dst, s.SA.Title...), '\n')
	for _, l := range s.SA.Lines {
		dst = append(dst, "\t\t"...)
		dst = append(dst, l.Label...)
		dst = dots(dst, s.SA.Width-len(l.Label))
		dst = append(listed(dst, s, &l, b), '\n')
	}
	return dst
}

func listed(dst []byte, s *layout.Struct, l *layout.Line, b []byte) []byte {
	off, n := l.Off, l.Len
	var f layout.Field
	if n == 0 {
		f, _ = s.Find(l.Field) // the generator has checked that it is there
		off, n = f.Off, f.Bits()
	}
	whole := b[off/8 : (off+n+7)/8]
	switch l.Format {
	case layout.IPv6:
		return append(dst, mad.GID(whole).String()...)
	case layout.Text:
		return append(dst, Printable(cString(whole))...)
	case layout.Digits:
		return append(append(dst, "0x"...), strings.ToUpper(hex.EncodeToString(whole))...)
	}
	v := layout.Uint(b, off, n)
	switch l.Format {
	case layout.Named:
		if text, ok := enumText(f.Enum, v); ok {
			return append(dst, text...)
		}
	case layout.HEX:
		return fmt.Appendf(dst, "0x%X", v)
	case layout.HEX2:
		return fmt.Appendf(dst, "0x%02X", v)
	case layout.HEX4:
		return fmt.Appendf(dst, "0x%04X", v)
	case layout.HEX8:
		return fmt.Appendf(dst, "0x%08X", v)
	case layout.Hex16:
		return fmt.Appendf(dst, "0x%016x", v)
	}
	return strconv.AppendUint(dst, v, 10)
}
