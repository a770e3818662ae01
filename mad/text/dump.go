package text

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// Options change how a structure is dumped. The zero value is the diags'
// default.
type Options struct {
	// First is the number of the first element of an array: block times length
	// of a block, for attributes that come in blocks.
	First int
	// Count is how many elements of an array are shown, rounded up to whole
	// lines; 0 is all of them.
	Count int
	// ShowKeys prints M_Keys and other secrets.
	ShowKeys bool
	// Decoded adds, in parentheses, what the diags leave to the reader: names of
	// numbers, times, and the fields of numbers that hold several.
	Decoded bool
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
		return listing(dst, s, s.SA, b, o)
	}
	return fields(dst, s, b, o)
}

// fieldWidth is where smpquery's values start, after the label and its colon.
const fieldWidth = 32

// fields prints a structure as smpquery does: the rows that it prints, and
// arrays as numbered lines.
func fields(dst []byte, s *layout.Struct, b []byte, o Options) []byte {
	if s.SM != nil {
		return listing(dst, s, s.SM, b, o)
	}
	return dotted(dst, s, b, o, "")
}

// dotted prints the rows one a line, behind an indent. The newest speeds come
// last, after the capability mask that announces them.
func dotted(dst []byte, s *layout.Struct, b []byte, o Options, indent string) []byte {
	var last []*layout.Field
	for i := range s.Fields {
		f := &s.Fields[i]
		switch of := s.Variant(f, b); {
		case f.IsReserved():
		case f.Enum == layout.LinkSpeedExt2:
			last = append(last, f)
		case f.Count > 0:
			if len(s.Fields) > 1 {
				dst = append(append(append(dst, indent...), label(f)...), ":\n"...)
			}
			dst = array(dst, f, b, o)
		case f.Kind == layout.KindStruct:
			dst = dotted(dst, f.Of, f.Bytes(b), o, indent)
		case of != nil:
			dst = dotted(dst, of, f.Bytes(b), o, indent)
		case f.Kind == layout.KindBytes && f.Bits() > 8*bytesPerLine:
			dst = block(append(dst, indent...), f, b)
		default:
			dst = line(append(dst, indent...), f, b, o)
		}
	}
	for _, f := range last {
		dst = line(append(dst, indent...), f, b, o)
	}
	return dst
}

// bytesPerLine is how many bytes stand on the line of their field, as those of
// a notice do in libibmad. More, private data say, are a dump of their own.
const bytesPerLine = 64

// block prints bytes in lines of 16 with their characters, without the zeros
// that fill up the field.
func block(dst []byte, f *layout.Field, b []byte) []byte {
	dst = append(append(dst, label(f)...), ':')
	data := bytes.TrimRight(f.Bytes(b), "\x00")
	if len(data) == 0 {
		return append(dots(dst, fieldWidth-len(label(f))), "all zero\n"...)
	}
	return append(append(dst, '\n'), hex.Dump(data)...)
}

func label(f *layout.Field) string {
	if f.Label == "" {
		return f.Name
	}
	return f.Label
}

func line(dst []byte, f *layout.Field, b []byte, o Options) []byte {
	label := label(f)
	dst = append(append(dst, label...), ':')
	if f.Kind == layout.KindString {
		// The text ends where the values of other fields start, if it can.
		text := Printable(cString(f.Bytes(b)))
		dst = dots(dst, max(fieldWidth-len(text), 1))
		return append(append(dst, text...), '\n')
	}
	dst = dots(dst, fieldWidth-len(label))
	if f.Key && !o.ShowKeys {
		return append(dst, notDisplayed+"\n"...)
	}
	dst = diagValue(dst, f, b, o)
	if o.Decoded && (f.Kind != layout.KindEnum || f.Raw) {
		dst = decoded(dst, []layout.Field{*f}, nil, b, false)
	}
	return append(dst, '\n')
}

func dots(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '.')
	}
	return dst
}

// array prints elements in lines that start with the number of the first one,
// as smpquery does for P_Keys and GUIDs, and structures one a line.
func array(dst []byte, f *layout.Field, b []byte, o Options) []byte {
	perLine := min(128/f.Len, 16)
	if f.Kind == layout.KindStruct {
		perLine = 1
	}
	count := f.Count
	if o.Count > 0 && o.Count < count {
		count = min(count, (o.Count+perLine-1)/perLine*perLine)
	}
	for i := range count {
		if i%perLine == 0 {
			dst = fmt.Appendf(dst, "%4d:", o.First+i)
		}
		e := f.Element(i)
		switch {
		case f.Kind == layout.KindStruct:
			dst = append(append(dst, ' '), Format(Value(&e, b))...)
		case f.Len == 8:
			dst = fmt.Appendf(dst, " %3d", e.Uint(b))
		default:
			dst = diagValue(append(dst, ' '), &e, b, o)
		}
		if i%perLine == perLine-1 || i == count-1 {
			dst = append(dst, '\n')
		}
	}
	return dst
}
