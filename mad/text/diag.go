package text

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/mad/layout"
)

// diagValue prints one value exactly as libibmad does (rdma-core
// libibmad/dump.c): hexadecimal digits for whole bytes, and for enumerations
// its many ways to say that a value has no name.
func diagValue(dst []byte, f *layout.Field, b []byte, o Options) []byte {
	switch f.Kind {
	case layout.KindGID, layout.KindBytes:
		return hex.AppendEncode(dst, f.Bytes(b))
	case layout.KindHex, layout.KindGUID, layout.KindPKey:
		return fmt.Appendf(dst, "0x%0*x", (f.Len+7)/8*2, f.Uint(b))
	case layout.KindEnum:
		return append(dst, diagEnum(f, f.Uint(b), o)...)
	}
	return strconv.AppendUint(dst, f.Uint(b), 10)
}

func diagEnum(f *layout.Field, v uint64, o Options) string {
	if f.Raw {
		return fmt.Sprintf(f.Enum.Diag, v)
	}
	active := strings.Contains(f.Name, "Active")
	switch f.Enum {
	case layout.PortCapMask, layout.PortCapMask2:
		return diagMask(f.Enum, v, o)
	case layout.LinkSpeed:
		if active && v == 0 {
			return "Extended speed"
		}
	case layout.LinkSpeedExt:
		switch {
		case active && v == 0:
			return "No Extended Speed"
		case strings.Contains(f.Name, "Enabled") && v == 30:
			return "Extended link speeds disabled"
		case v == 0:
			return "0"
		}
	case layout.LinkSpeedExt2:
		switch {
		case active && v == 0:
			return "No Extended Speed 2"
		case v == 0:
			return "0"
		case !active && v > 1:
			return fmt.Sprintf(" undefined (%d)", v)
		}
	case layout.LinkWidth:
	case layout.VLs:
		if v == 0 && f.Name == "VLCap" { // "No change" is for a Set of OperationalVLs
			return fmt.Sprintf(f.Enum.Diag, v)
		}
		return diagName(f.Enum, v)
	default:
		return diagName(f.Enum, v)
	}
	if active {
		return diagName(f.Enum, v)
	}
	return diagSet(f, v)
}

// diagName prints a single value.
func diagName(e *layout.Enum, v uint64) string {
	for _, x := range e.Values {
		if x.Value == v && !x.Quiet {
			return x.Text
		}
	}
	return fmt.Sprintf(e.Diag, v)
}

// diagSet prints a set of widths or speeds.
func diagSet(f *layout.Field, v uint64) string {
	var set []string
	var known uint64
	for _, x := range f.Enum.Values {
		known |= x.Value
		if v&x.Value != 0 {
			set = append(set, x.Text)
		}
	}
	strange := v == 0 || v&^known != 0
	if strange {
		set = append(set, fmt.Sprintf("undefined (%d)", v))
	}
	s := strings.Join(set, " or ")
	if v&^known == 0 && isExtension(f, v) {
		s += " (IBA extension)"
	}
	return s
}

// isExtension tells whether libibmad calls a set an extension: one that the
// IBA does not list.
func isExtension(f *layout.Field, v uint64) bool {
	switch {
	case f.Enum == layout.LinkSpeed:
		return v&1 == 0
	case f.Enum == layout.LinkWidth && strings.Contains(f.Name, "Supported"):
		switch v {
		case 1, 3, 7, 11, 15, 17, 19, 23, 27, 31:
			return false
		}
		return true
	}
	return false
}

// diagMask prints a number and below it the names of its bits.
func diagMask(e *layout.Enum, v uint64, o Options) string {
	var s strings.Builder
	fmt.Fprintf(&s, e.Diag, v)
	for _, x := range e.Values {
		if v&x.Value != 0 && (o.Decoded || !x.Quiet) {
			s.WriteString("\n\t\t\t\t" + x.Text)
		}
	}
	return s.String()
}
