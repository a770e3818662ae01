package mad

import (
	"encoding"
	"fmt"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/mad/layout"
)

//go:generate go run ./internal/gen

// Structure is what every generated struct implements, by its pointer.
type Structure interface {
	encoding.BinaryUnmarshaler
	encoding.BinaryAppender
	// Layout describes the structure: its size, fields, names and sections.
	Layout() *layout.Struct
}

// LengthError says that a structure was to be decoded from bytes that are not
// exactly its size.
type LengthError struct {
	Struct    string // as the IBA names it
	Got, Want int    // bytes
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("decode %s: got %d bytes, want %d", e.Struct, e.Got, e.Want)
}

// bit gives a flag as a number.
func bit[T uint8 | uint16 | uint32 | uint64](b bool) T {
	if b {
		return 1
	}
	return 0
}

// bitNames joins the names of the bits of v; those without a name are joined
// into one hexadecimal number at the end.
func bitNames(v uint64, names []string, sep string) string {
	var set []string
	for i, name := range names {
		if name != "" && v>>i&1 != 0 {
			set = append(set, name)
			v &^= 1 << i
		}
	}
	switch {
	case len(set) == 0 && v == 0:
		return "0"
	case v != 0:
		set = append(set, "0x"+strconv.FormatUint(v, 16))
	}
	return strings.Join(set, sep)
}
