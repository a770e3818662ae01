package main

import (
	"math/bits"
	"strings"

	"github.com/ibsm/ibsm/mad/layout"
)

func prefix(e *layout.Enum) string {
	if e.Prefix != "" {
		return e.Prefix
	}
	return e.Name
}

// enum writes the type, its constants and its String method.
func (w *writer) enum(e *layout.Enum) {
	w.f("\n// %s %s\n// (IBA %s)\ntype %s uint%d\n", e.Name, strings.ReplaceAll(e.Doc, "\n", "\n// "), e.IBA, e.Name, e.Bits)
	if len(e.Values) > 0 {
		w.f("\n// Values of [%s].\nconst (\n", e.Name)
		for _, v := range e.Values {
			w.f("%s%s %s = %s // %s\n", prefix(e), v.Go, e.Name, number(e, v.Value), v.Text)
		}
		w.f(")\n")
	}
	switch {
	case e.ByHand:
	case e.Sep != "":
		names := make([]string, 64)
		top := 0
		for _, v := range e.Values {
			top = bits.TrailingZeros64(v.Value)
			names[top] = v.Text
		}
		top = 0
		for i, n := range names {
			if n != "" {
				top = i + 1
			}
		}
		w.f("\nvar bitsOf%s = [...]string{", e.Name)
		for _, n := range names[:top] {
			w.f("%q, ", n)
		}
		w.f("}\n\n// String names the bits that are set; bits without a name are one number.\n")
		w.f("func (x %s) String() string { return bitNames(uint64(x), bitsOf%s[:], %q) }\n", e.Name, e.Name, e.Sep)
	default:
		w.f("\n// String is the name of a value, or its number if it has none.\nfunc (x %s) String() string {\nswitch x {\n", e.Name)
		for _, v := range e.Values {
			w.f("case %s%s:\nreturn %q\n", prefix(e), v.Go, v.Text)
		}
		w.f("}\nreturn %s\n}\n", unknown(e))
	}
}

func isHex(e *layout.Enum) bool { return strings.HasPrefix(e.Diag, "0x") }

func unknown(e *layout.Enum) string {
	if isHex(e) {
		return `"0x" + strconv.FormatUint(uint64(x), 16)`
	}
	return "strconv.FormatUint(uint64(x), 10)"
}

// number is how a value is written in Go.
func number(e *layout.Enum, v uint64) string {
	if isHex(e) {
		return hex(v, e.Bits)
	}
	if e.Sep != "" && v > 1 {
		return "1 << " + decimal(uint64(bits.TrailingZeros64(v)))
	}
	return decimal(v)
}

// attributes writes the constants of the attribute ids, each name once: an
// attribute may serve several classes.
func (w *writer) attributes(attrs []*layout.Attribute) {
	w.f("\n// Attribute ids. A number means different things in different classes.\nconst (\n")
	seen := map[string]bool{}
	for _, a := range attrs {
		name := "Attr" + strings.ReplaceAll(a.Name, "_", "")
		if seen[name] {
			continue
		}
		seen[name] = true
		w.f("%s AttributeID = %s // IBA %s\n", name, hex(uint64(a.ID), 16), a.Struct.IBA)
	}
	w.f(")\n")
}
