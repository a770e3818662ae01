package script

import (
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

// maxConstant is the longest text that is looked at as a name, a number or a value
// of a field; the longest rows of bytes have 232.
const maxConstant = 1024

// values checks the members of a body that are values, each by the row of its key.
func (c *scriptChecker) values(rows []Key, body any, sc *visible) {
	members := tagged(body)
	for i := range rows {
		member, ok := members[rows[i].Name].(**Value)
		if !ok || *member == nil {
			continue
		}
		c.templates(*member, sc)
		c.constant(&rows[i], *member)
	}
}

// templates checks the expressions in a value.
func (c *scriptChecker) templates(v *Value, sc *visible) {
	for _, p := range v.Parts {
		if p.Expr != nil {
			checkExpr(c.errs, p.Expr, sc)
		}
	}
	for _, item := range v.Items {
		c.templates(item, sc)
	}
	c.entryTemplates(v.Entries, sc)
}

func (c *scriptChecker) entryTemplates(entries []Entry, sc *visible) {
	for _, e := range entries {
		if e.Value != nil {
			c.templates(e.Value, sc)
		}
	}
}

// constant checks a value that is known before the run.
func (c *scriptChecker) constant(row *Key, v *Value) {
	if !v.IsConst() {
		return
	}
	if len(v.Text) > maxConstant && row.Type != TypeTemplate && row.Type != TypeHex {
		c.errs.add("bad-value", v.Pos, "%s does not take a text of %d bytes", row.Name, len(v.Text))
		return
	}
	wrong := func(takes string) {
		c.errs.add("wrong-type", v.Pos, "%s takes %s, and not %s", row.Name, takes, quoted(v.Text))
	}
	switch row.Type {
	case TypeTemplate:
		c.noSecret(row.Name, v)
	case TypeBool:
		if _, ok := v.Const.(bool); !ok {
			wrong("true or false")
		}
	case TypeInt:
		n, ok := textNumber(v.Text)
		switch {
		case !ok:
			wrong("a whole number, in decimal or after 0x")
		case n < row.Min || n > row.Max:
			c.errs.add("out-of-range", v.Pos, "%s takes a number from %d to %d, and not %s", row.Name, row.Min, row.Max, v.Text)
		}
	case TypeFraction:
		if f, err := strconv.ParseFloat(v.Text, 64); err != nil || !(f >= 0 && f <= 1) {
			wrong("a number from 0 to 1")
		}
	case TypeDuration:
		if d, err := time.ParseDuration(v.Text); err != nil || d < 0 {
			wrong("a duration such as 500ms or 2s")
		}
	case TypeWord:
		if !slices.Contains(row.Words, v.Text) {
			c.errs.addNear("unknown-word", v.Pos, c.errs.nearest(v.Text, row.Words), "%s has no %s: it takes %s", row.Name, quoted(v.Text), strings.Join(row.Words, ", "))
		}
	case TypePath:
		if v.Text != "sa" && v.Text != "kernel" {
			c.errs.addNear("unknown-word", v.Pos, c.errs.nearest(v.Text, []string{"sa", "kernel"}), "%s has no %s: it takes sa, kernel or ${...} with a record", row.Name, quoted(v.Text))
		}
	case TypeHex:
		c.hex(row, v)
	case TypeAddress:
		c.address(v)
	case TypeClass:
		if _, err := classOf(v.Text); err != nil {
			c.notNamed("unknown-class", v, "management class", layout.Class, err)
		}
	case TypeMethod:
		c.method(v)
	case TypeMethods:
		for _, item := range v.Items {
			c.method(item)
		}
	case TypeStatus:
		c.status(v)
	case TypeMask:
		if v.Shape == Scalar {
			c.constant(&Key{Name: row.Name, Type: TypeInt, Max: 1<<64 - 1}, v)
		}
	case TypeGRH:
		if _, ok := v.Const.(bool); !ok && v.Shape == Scalar {
			wrong("true, false or a map")
		}
	}
}

// noSecret tells of a secret where it would be shown, or be taken as it is written.
func (c *scriptChecker) noSecret(key string, v *Value) {
	if isSecret(v) {
		c.errs.add("secret", v.Pos, "%s is no key: only fields such as M_Key take their value from env: or file:", key)
	}
}

func isSecret(v *Value) bool {
	return v.Shape == Scalar && (strings.HasPrefix(v.Text, secretEnv) || strings.HasPrefix(v.Text, secretFile))
}

func (c *scriptChecker) hex(row *Key, v *Value) {
	b, err := hex.DecodeString(strings.TrimPrefix(v.Text, "0x"))
	switch {
	case err != nil:
		c.errs.add("bad-hex", v.Pos, "%s takes bytes in hexadecimal, two digits each, and not %s", row.Name, quoted(v.Text))
	case row.Name == "raw" && len(b) > mad.Size:
		c.errs.add("out-of-range", v.Pos, "raw has %d bytes: a MAD has %d", len(b), mad.Size)
	}
}

func (c *scriptChecker) address(v *Value) {
	s := v.Text
	if v.Shape == List {
		parts := make([]string, len(v.Items))
		for i, item := range v.Items {
			parts[i] = item.Text
		}
		s = strings.Join(parts, ",")
	}
	if s == "sm" {
		return
	}
	var bad *mad.AddrError
	if _, err := mad.ParseAddr(s); errors.As(err, &bad) {
		c.errs.addNear("bad-address", v.Pos, bad.Readings, "%s is no address: %s", quoted(s), bad.Why)
	}
}

func (c *scriptChecker) method(v *Value) {
	if !v.IsConst() || len(v.Text) > maxConstant {
		return
	}
	if _, err := methodOf(v.Text); err != nil {
		c.notNamed("unknown-method", v, "method", layout.Method, err)
	}
}

// notNamed tells of a class or a method that is not in its table.
func (c *scriptChecker) notNamed(id ErrorID, v *Value, what string, e *layout.Enum, err error) {
	var near []string
	if bad := (*text.ValueError)(nil); errors.As(err, &bad) {
		near = nearestOf(bad)
	}
	if _, isNumber := textNumber(v.Text); isNumber {
		c.errs.add("too-wide", v.Pos, "a %s has %d bits: %s is too wide", what, e.Bits, v.Text)
		return
	}
	c.errs.addNear(id, v.Pos, near, "no %s %s", what, quoted(v.Text))
}

func (c *scriptChecker) status(v *Value) {
	for _, s := range Statuses {
		if strings.EqualFold(s.Name, v.Text) {
			return
		}
	}
	if n, ok := textNumber(v.Text); ok {
		if n > 0xffff {
			c.errs.add("too-wide", v.Pos, "a status has 16 bits: %s is too wide", v.Text)
		}
		return
	}
	var names []string
	for _, s := range Statuses {
		names = append(names, s.Name)
	}
	c.errs.addNear("unknown-status", v.Pos, c.errs.nearest(v.Text, names), "no status %s", quoted(v.Text))
}

// fields checks the names and values of fields of a structure.
func (c *scriptChecker) fields(entries []Entry, s *layout.Struct, sc *visible) {
	for _, e := range entries {
		c.templates(e.Value, sc)
		c.field(s, e.Key, e.Pos, e.Value)
	}
}

// field checks one field. A list is for an array, a map for a structure.
func (c *scriptChecker) field(s *layout.Struct, name string, pos Pos, v *Value) {
	if len(name) > maxWord {
		c.errs.add("unknown-field", pos, "%s has no field %s", s.Name, quoted(name))
		return
	}
	f, err := fieldOf(s, make([]byte, s.Size), name)
	if err != nil {
		if inVariant(s, name) {
			return
		}
		// Lines by which saquery joins several fields have names, too.
		if _, err = text.Get(s, make([]byte, s.Size), name); err != nil {
			c.unknownField(pos, s, name, err)
			return
		}
		f = nil
	}
	switch {
	case v.Shape == Map:
		for _, e := range v.Entries {
			if e.Value != nil {
				c.field(s, name+"."+e.Key, e.Pos, e.Value)
			}
		}
		return
	case !v.IsConst():
		return
	case len(v.Text) > maxConstant:
		c.errs.add("bad-value", v.Pos, "%s does not take a text of %d bytes", name, len(v.Text))
		return
	}
	if isSecret(v) {
		if f == nil || !f.Key {
			c.noSecret(name, v)
		}
		return
	}
	if _, err = setField(s, make([]byte, s.Size), name, written(v)); err != nil {
		c.badValue(s, name, v, err)
	}
}

// inVariant tells whether a name may be right: it leads into a row of bytes, and
// other fields say what that holds.
func inVariant(s *layout.Struct, name string) bool {
	base, rest, dotted := strings.Cut(name, ".")
	row, err := s.Find(base)
	return dotted && err == nil && slices.ContainsFunc(row.Variants, func(v layout.Variant) bool {
		_, err := v.Of.Find(rest)
		return err == nil
	})
}

// written is a constant for setField: scalars as they are written.
func written(v *Value) any {
	if v.Shape != List {
		return v.Text
	}
	list := make([]any, len(v.Items))
	for i, item := range v.Items {
		list[i] = written(item)
	}
	return list
}

func (c *scriptChecker) unknownField(pos Pos, s *layout.Struct, name string, err error) {
	var bad *layout.NameError
	if !errors.As(err, &bad) {
		c.errs.add("unknown-field", pos, "%v", err)
		return
	}
	why := ""
	if bad.Why != "" {
		why = ": " + bad.Why
	}
	c.errs.addNear("unknown-field", pos, bad.Nearest, "%s has no field %s%s", s.Name, quoted(name), why)
}

// badValue tells of a value that a field does not take.
func (c *scriptChecker) badValue(s *layout.Struct, name string, v *Value, err error) {
	var bad *text.ValueError
	if !errors.As(err, &bad) {
		c.errs.add("bad-value", v.Pos, "%s.%s: %v", s.Name, name, err)
		return
	}
	n, isNumber := textNumber(bad.Text)
	id := ErrorID("bad-value")
	switch {
	case isNumber && bad.Bits < 64 && n>>bad.Bits != 0:
		id = "too-wide"
	case len(bad.Legal) > 0:
		id = "unknown-value"
	}
	c.errs.addNear(id, v.Pos, nearestOf(bad), "%s (%d bits) does not take %s: %s", bad.Field, bad.Bits, quoted(bad.Text), bad.Why)
}
