package layout

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Uint reads n bits, at most 64, that start at bit off of b.
func Uint(b []byte, off, n int) uint64 {
	first, end := off/8, off+n
	if last := (end + 7) / 8; last-first <= 8 {
		var word [8]byte
		copy(word[:], b[first:last])
		return binary.BigEndian.Uint64(word[:]) << (off % 8) >> (64 - n)
	}
	// A number of more than 56 bits that touches nine bytes.
	v := binary.BigEndian.Uint64(b[first:]) << (off % 8) >> (off % 8)
	low := end % 8
	return v<<low | uint64(b[first+8])>>(8-low)
}

// SetUint writes the low n bits, at most 64, of v at bit off of b, and leaves
// every other bit as it is.
func SetUint(b []byte, off, n int, v uint64) {
	for n > 0 {
		// The last byte that is still to be written takes k bits.
		end := off + n
		k := min((end-1)%8+1, n)
		shift := (8 - end%8) % 8
		mask := byte(1<<k-1) << shift
		p := &b[(end-1)/8]
		*p = *p&^mask | byte(v)<<shift&mask
		v >>= k
		n -= k
	}
}

// Uint reads the field from b, which holds the whole structure. The field is a
// number; of an array it is the first element.
func (f *Field) Uint(b []byte) uint64 { return Uint(b, f.Off, f.Len) }

// SetUint writes the field into b, which holds the whole structure, and touches
// no other bit. A *RangeError says that v is too wide.
func (f *Field) SetUint(b []byte, v uint64) error {
	if f.Len < 64 && v>>f.Len != 0 {
		return &RangeError{Field: f.Name, Bits: f.Len, Value: v}
	}
	SetUint(b, f.Off, f.Len, v)
	return nil
}

// Bytes is the part of b, which holds the whole structure, that the field
// occupies. The field starts and ends at a byte.
func (f *Field) Bytes(b []byte) []byte { return b[f.Off/8 : (f.Off+f.Bits())/8] }

// Element is element i of an array as a field of its own.
func (f *Field) Element(i int) Field {
	e := *f
	e.Off += i * f.Len
	e.Count = 0
	n := strconv.Itoa(i)
	e.Name += "[" + n + "]"
	if e.Label != "" {
		e.Label += n
	}
	return e
}

// RangeError says that a value does not fit into its field.
type RangeError struct {
	Field string
	Bits  int
	Value uint64
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("%s: %d does not fit into %d bits (at most %d)", e.Field, e.Value, e.Bits, uint64(1)<<e.Bits-1)
}

// GoName is the name of the field's member in the generated struct.
func (f *Field) GoName() string {
	if f.Go != "" {
		return f.Go
	}
	return strings.ReplaceAll(f.Name, "_", "")
}

// GoName is the name of the generated type.
func (s *Struct) GoName() string { return strings.ReplaceAll(s.Name, "_", "") }
