package mad

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/mad/layout"
)

// IsVendor tells whether the class is one of the vendors': 0x09-0x0f, or with
// an OUI after the RMPP header 0x30-0x4f (IBA 16.5).
func (x Class) IsVendor() bool { return x >= 0x09 && x <= 0x0f || x >= 0x30 && x <= 0x4f }

// IsSMP tells whether MADs of the class are subnet management packets, which
// travel by QP0 and VL15 (IBA 14.2.1).
func (x Class) IsSMP() bool { return x == ClassSubnLIDRouted || x == ClassSubnDirected }

// IsResponse tells whether the R bit is set.
func (x Method) IsResponse() bool { return x&ResponseBit != 0 }

// Response is the method that answers x: the R bit set. TrapRepress answers
// Trap (IBA 13.4.5).
func (x Method) Response() Method {
	if x == MethodTrap {
		return MethodTrapRepress
	}
	return x | ResponseBit
}

// String is the number of the attribute: its name depends on the class, see
// [AttributeID.Name].
func (x AttributeID) String() string { return fmt.Sprintf("0x%04x", uint16(x)) }

// Name is the name of the attribute in a class, or its number.
func (x AttributeID) Name(c Class) string {
	if a := layout.FindAttribute(uint8(c), uint16(x)); a != nil {
		return a.Name
	}
	return x.String()
}

// The parts of a Status (IBA 13.4.7).
const (
	StatusInvalidMask = Status(0x001c) // what is wrong with the request
	StatusClassMask   = Status(0xff00) // meaning depends on the class
)

// String is the text of a status as far as it is the same in all classes.
func (x Status) String() string { return x.Text(0) }

// Text says what a status means in a response of class c. Several things may be
// said at once; what has no name is a number.
func (x Status) Text(c Class) string {
	if x == StatusOK {
		return "ok"
	}
	var parts []string
	add := func(v Status) {
		if i := slices.IndexFunc(layout.Status.Values, func(e layout.Value) bool { return e.Value == uint64(v) }); i >= 0 {
			parts = append(parts, layout.Status.Values[i].Text)
		} else {
			parts = append(parts, fmt.Sprintf("status 0x%04x", uint16(v)))
		}
	}
	for _, v := range []Status{x & StatusBusy, x & StatusRedirect, x & StatusInvalidMask} {
		if v != 0 {
			add(v)
		}
	}
	if own := x & StatusClassMask; own != 0 {
		if c == ClassSubnAdm {
			add(own)
		} else {
			parts = append(parts, "class status 0x"+strconv.FormatUint(uint64(own>>8), 16))
		}
	}
	if rest := x &^ (StatusBusy | StatusRedirect | StatusInvalidMask | StatusClassMask); rest != 0 {
		parts = append(parts, fmt.Sprintf("status 0x%04x", uint16(rest)))
	}
	return strings.Join(parts, ", ")
}
