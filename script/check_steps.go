package script

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// constClass is the class that a key gives, if that is known.
func constClass(v *Value) (mad.Class, bool) {
	if v == nil || !v.IsConst() || len(v.Text) > maxConstant {
		return 0, false
	}
	class, err := classOf(v.Text)
	return class, err == nil
}

func (c *scriptChecker) send(s *Step, b *Send, in site) {
	c.values(s.Kind.Keys, b, in.vars)
	if b.Raw == nil {
		for _, need := range []struct {
			key string
			v   *Value
		}{{"class", b.Class}, {"attribute", b.Attribute}} {
			if need.v == nil {
				c.errs.add("missing-key", s.Pos, "send needs the key %s, unless the whole MAD is given as raw", need.key)
			}
		}
	}
	class, known := constClass(b.Class)
	if known {
		b.Attr = c.attribute(class, b.Attribute)
	}
	c.attributeFields(b.Set, b.Attr, known && constAttribute(b.Attribute), in.vars)
	c.mask(b.Mask, b.Attr)
	switch {
	case known:
		c.fields(b.Header, headerLayout(class), in.vars)
		if len(b.RMPP) > 0 && !mad.HasRMPP(class) {
			c.errs.add("key-conflict", b.RMPP[0].Pos, "class %s has no RMPP header", class)
		}
	default:
		c.entryTemplates(b.Header, in.vars)
	}
	c.fields(b.RMPP, rmppLayout, in.vars)
	if b.Length != nil {
		c.onlySimulated(b.Length.Pos, "length", in)
	}
	if known && b.OUI != nil && (class < 0x30 || class > 0x4f) {
		c.errs.add("key-conflict", b.OUI.Pos, "class %s has no OUI: those from 0x30 to 0x4f have", class)
	}
	if b.GRH != nil && b.GRH.Shape == Map {
		c.grh(b.GRH)
	}
}

// rmppLayout is the RMPP header as rmpp names its fields.
var rmppLayout = settable(layout.RMPPHeader)

func constAttribute(v *Value) bool { return v != nil && v.IsConst() }

// attribute finds the row of an attribute; nil if there is none, or it is not
// known before the run.
func (c *scriptChecker) attribute(class mad.Class, v *Value) *layout.Attribute {
	if !constAttribute(v) || v.Shape != Scalar || len(v.Text) > maxConstant {
		return nil
	}
	a, err := layout.LookUpAttribute(uint8(class), v.Text)
	if err == nil {
		return a
	}
	var bad *layout.NameError
	switch n, isNumber := textNumber(v.Text); {
	case isNumber && n > 0xffff:
		c.errs.add("too-wide", v.Pos, "an attribute has 16 bits: %s is too wide", v.Text)
	case !isNumber && errors.As(err, &bad):
		c.errs.addNear("unknown-attribute", v.Pos, bad.Nearest, "class %s has no attribute %s%s", class, quoted(v.Text), whoHas(v.Text))
	}
	return nil
}

// whoHas says which class has the attribute.
func whoHas(name string) string {
	for _, a := range layout.Attributes {
		if _, err := layout.LookUpAttribute(a.Class, name); err == nil {
			return "; class " + mad.Class(a.Class).String() + " has it"
		}
	}
	return "; one without a name is written as its number"
}

// attributeFields checks fields of an attribute. If the attribute is known to be
// one without fields, there is nothing that they could name.
func (c *scriptChecker) attributeFields(set []Entry, a *layout.Attribute, known bool, sc *visible) {
	switch {
	case a != nil:
		c.fields(set, settable(a.Struct), sc)
		return
	case known && len(set) > 0:
		c.errs.add("no-fields", set[0].Pos, "the fields of this attribute are not known: give its bytes as data")
	}
	c.entryTemplates(set, sc)
}

// mask checks the names in a component mask.
func (c *scriptChecker) mask(v *Value, a *layout.Attribute) {
	if v == nil || v.Shape != List {
		return
	}
	for _, item := range v.Items {
		if a == nil || !item.IsConst() {
			continue
		}
		f, err := a.Struct.Find(item.Text)
		switch {
		case err != nil:
			c.unknownField(item.Pos, a.Struct, item.Text, err)
		case a.Struct.MaskOf(f.Name) == 0:
			c.errs.add("no-component", item.Pos, "the component mask of %s has no bit for %s", a.Name, f.Name)
		}
	}
}

func (c *scriptChecker) grh(v *Value) {
	for _, e := range v.Entries {
		row := lookUpKey(GRHKeys, e.Key)
		if row == nil {
			c.errs.addNear("unknown-key", e.Pos, c.errs.nearest(e.Key, keyNames(GRHKeys)), "grh has no key %s", quoted(e.Key))
		} else if e.Value != nil {
			c.constant(row, e.Value)
		}
	}
}

// sendResults adds what is known of the results of a send.
func sendResults(b *Send, results map[string]*shape) {
	class, known := constClass(b.Class)
	var words []string
	for _, s := range Statuses {
		if s.Class == 0 || !known || s.Class == class {
			words = append(words, s.Name)
		}
	}
	results["status"] = &shape{typ: Text, words: append(words, "")}
	results["from"] = &shape{typ: MapOf, keys: fromKeys}
	if known {
		results["answer"] = recordShape(headerLayout(class))
	}
	if b.Attr != nil {
		results["record"] = recordShape(b.Attr.Struct)
		results["records"] = listShape(results["record"])
	}
}

func (c *scriptChecker) wait(s *Step, b *Wait, in site) {
	c.values(s.Kind.Keys, b, in.vars)
	switch {
	case b.Notice != nil:
		c.errs.add("wait-notice", b.Notice.Pos, "nothing can be waited for yet: notices come with the managed fabric; use repeat with until")
	case b.For == nil:
		c.errs.add("missing-key", s.Pos, "wait needs a duration")
	}
}

func (c *scriptChecker) serve(s *Step, b *Serve, in site) {
	c.values(s.Kind.Keys, b, in.vars)
	class, known := constClass(b.Class)
	for i := range b.Answers {
		a := &b.Answers[i]
		c.values(AnswerKeys, a, in.vars)
		if known {
			a.Attr = c.attribute(class, a.Attribute)
		}
		c.attributeFields(a.Set, a.Attr, a.Attribute == nil || known && constAttribute(a.Attribute), in.vars)
		if a.When != nil {
			checkBool(c.errs, "when", a.When, in.vars.with(map[string]*shape{"request": shapeOf(MapOf)}))
		}
	}
	switch {
	case b.For == nil && b.Steps == nil:
		c.errs.add("missing-key", s.Pos, "serve needs the key for or steps, or it would not end")
	case b.For != nil && b.Steps != nil:
		c.errs.add("key-conflict", b.For.Pos, "serve ends with its steps: for and steps do not go together")
	}
	c.steps(b.Steps, in)
}

func (c *scriptChecker) connect(s *Step, b *Connect, in site) {
	c.values(s.Kind.Keys, b, in.vars)
	record := b.Path != nil && !b.Path.IsConst()
	if b.To == nil && !record {
		c.errs.add("missing-key", s.Pos, "connect needs the key to, or a path that is a record")
	}
	c.service(b.Service, b.PortSpace)
}

func (c *scriptChecker) listen(s *Step, b *Listen, in site) {
	c.values(s.Kind.Keys, b, in.vars)
	if b.Count == nil && b.Steps == nil {
		c.errs.add("missing-key", s.Pos, "listen needs the key count or steps, or it would not end")
	}
	c.service(b.Service, b.PortSpace)
	c.steps(b.Steps, in)
}

// service checks the number of a service: of 16 bits where it is a port.
func (c *scriptChecker) service(v, space *Value) {
	if v == nil || !v.IsConst() || space != nil && !space.IsConst() {
		return
	}
	limit := uint64(0xffff)
	if space != nil && space.Text == "ib" {
		limit = 1<<64 - 1
	}
	c.constant(&Key{Name: "service", Type: TypeInt, Max: limit}, v)
}

func (c *scriptChecker) fault(s *Step, b *Fault, in site) {
	c.values(s.Kind.Keys, b, in.vars)
	c.onlySimulated(s.Pos, "fault", in)
	onLink := slices.ContainsFunc([]*Value{b.Down, b.Up, b.Loss, b.Delay, b.Duplicate, b.Reorder}, isGiven)
	others := 0
	for _, v := range []*Value{b.Reboot, b.Sweep, b.SMA, b.SA} {
		if v != nil {
			others++
		}
	}
	switch {
	case b.Down != nil && b.Up != nil:
		c.errs.add("key-conflict", b.Up.Pos, "a link is down or up, not both")
	case b.Off != nil && b.SMA == nil && b.SA == nil:
		c.errs.add("key-conflict", b.Off.Pos, "off ends a named fault of sma or sa")
	case b.Link != nil && !onLink:
		c.errs.add("missing-key", s.Pos, "fault does nothing to the link: give down, up, loss, delay, duplicate or reorder")
	case b.Link == nil && onLink:
		c.errs.add("missing-key", s.Pos, "fault needs the key link: a port at one end of it, or all")
	case b.Link == nil && others == 0:
		c.errs.add("missing-key", s.Pos, "fault does nothing: give link, reboot, sweep, sma or sa")
	case others > 1, b.Link != nil && others > 0:
		c.errs.add("key-conflict", s.Pos, "a fault step does one thing: link, reboot, sweep, sma or sa")
	}
	c.namedFault("sma", b.SMA, c.env.SMAFaults, "sa", c.env.SAFaults)
	c.namedFault("sa", b.SA, c.env.SAFaults, "sma", c.env.SMAFaults)
	if b.Link != nil && b.Link.IsConst() && b.Link.Text != "all" {
		node, port, ok := strings.Cut(strings.TrimSuffix(b.Link.Text, "]"), "[")
		if _, err := strconv.ParseUint(port, 10, 8); !ok || err != nil || node == "" || !strings.HasSuffix(b.Link.Text, "]") {
			c.errs.add("bad-value", b.Link.Pos, "link takes a port such as h1[1], or all, and not %s", quoted(b.Link.Text))
		}
	}
}

// namedFault checks the name of a fault, which may be one of another key.
func (c *scriptChecker) namedFault(key string, v *Value, names []string, otherKey string, others []string) {
	switch {
	case v == nil || names == nil || !v.IsConst() || slices.Contains(names, v.Text):
	case slices.Contains(others, v.Text):
		c.errs.add("unknown-fault", v.Pos, "%s has no fault %s: it is one of %s", key, quoted(v.Text), otherKey)
	default:
		c.errs.addNear("unknown-fault", v.Pos, c.errs.nearest(v.Text, names), "%s has no fault %s", key, quoted(v.Text))
	}
}

func isGiven(v *Value) bool { return v != nil }
