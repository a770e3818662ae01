package text

import (
	"fmt"
	"strings"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// decoded adds in parentheses what a number says that the diags leave to the
// reader: the name or the time of a single field, or several fields with their
// names. A selector is a sign before what it compares: "(= 2048)". Enum has the
// names of values that the fields do not know.
func decoded(dst []byte, parts []layout.Field, enum *layout.Enum, b []byte, names bool) []byte {
	var texts []string
	sign := ""
	for i := range parts {
		f := &parts[i]
		if f.Enum == layout.Selector {
			sign = selectorSign(f.Uint(b)) + " "
			continue
		}
		text, adds := meaning(f, enum, b)
		text = sign + text
		if names {
			text = f.Name[strings.LastIndexByte(f.Name, '.')+1:] + " " + text
		}
		if names || adds || sign != "" {
			texts = append(texts, text)
		}
		sign = ""
	}
	if len(texts) == 0 {
		return dst
	}
	dst = append(dst, " ("...)
	dst = append(dst, strings.Join(texts, ", ")...)
	return append(dst, ')')
}

// meaning is a field as text, and whether that says more than its number.
func meaning(f *layout.Field, enum *layout.Enum, b []byte) (text string, adds bool) {
	switch {
	case f.Kind == layout.KindTime:
		v := f.Uint(b)
		if f.Unlimited > 0 && v >= f.Unlimited {
			return "unlimited", true
		}
		return round(mad.TimeOf(uint8(v))).String(), true
	case f.Kind == layout.KindEnum:
		enum = f.Enum
	}
	if enum != nil {
		if text, ok := enumText(enum, f.Uint(b)); ok {
			return text, true
		}
	}
	if f.Kind == layout.KindHex {
		return fmt.Sprintf("0x%x", f.Uint(b)), false
	}
	return Format(Value(f, b)), false
}

// selectorSign is the shortest name of a Selector: a sign, if it has one.
func selectorSign(v uint64) string {
	for _, x := range layout.Selector.Values {
		if x.Value != v {
			continue
		}
		sign := x.Text
		for _, alias := range x.Alias {
			if len(alias) < len(sign) {
				sign = alias
			}
		}
		return sign
	}
	return ""
}

// round leaves three digits of a time.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
