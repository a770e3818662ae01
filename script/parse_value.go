package script

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxExpr is the longest expression in bytes.
const maxExpr = 4096

// maxParts is how many parts a template may have.
const maxParts = 200

// value makes a value of any shape.
func (p *composer) value(n *node) *Value {
	v := &Value{Pos: n.pos, Shape: n.shape}
	switch n.shape {
	case List:
		for _, item := range n.items {
			v.Items = append(v.Items, p.value(item))
		}
	case Map:
		for _, e := range n.entries {
			v.Entries = append(v.Entries, p.entry(e))
		}
	default:
		v.Text = n.text
		if strings.Contains(n.text, "${") {
			v.Parts = p.template(n)
		}
		switch {
		case v.Parts == nil:
			v.Const = constant(n)
		case len(v.Parts) == 1 && v.Parts[0].Expr == nil:
			v.Text, v.Const, v.Parts = v.Parts[0].Text, v.Parts[0].Text, nil
		}
	}
	return v
}

func (p *composer) entry(e nodeEntry) Entry {
	entry := Entry{Key: e.key.text, Pos: e.key.pos}
	if !e.value.null() {
		entry.Value = p.value(e.value)
	}
	return entry
}

// constant is the value of a scalar without template.
func constant(n *node) any {
	switch n.tag {
	case "!!null":
		return nil
	case "!!bool":
		return n.text == "true" || n.text == "True" || n.text == "TRUE"
	case "!!int":
		return integer(n.text)
	case "!!float":
		if f, err := strconv.ParseFloat(n.text, 64); err == nil {
			return f
		}
	}
	return n.text
}

// integer reads a whole number of YAML, which stays text where it is an identifier
// more than a number: hexadecimal of more than 8 digits, or too large, or with a
// leading zero, which may be meant as octal.
func integer(s string) any {
	digits, hex := strings.CutPrefix(s, "0x")
	if hex && len(digits) > 8 || !hex && len(s) > 1 && s[0] == '0' {
		return s
	}
	if i, err := strconv.ParseInt(s, 0, strconv.IntSize); err == nil {
		return int(i)
	}
	if u, err := strconv.ParseUint(s, 0, 64); err == nil {
		return u
	}
	return s
}

// entries reads a map whose keys are names of variables or of fields.
func (p *composer) entries(row *Key, n *node) []Entry {
	if n.shape != Map {
		p.wrongKind(row.Name, row.Type.String(), n)
		return nil
	}
	entries := make([]Entry, 0, len(n.entries))
	for _, e := range n.entries {
		if row.Type == TypeValues {
			p.name(e.key)
		} else if e.value.null() {
			p.wrongKind(e.key.text, "a value", e.value)
			continue
		}
		entries = append(entries, p.entry(e))
	}
	return entries
}

func (p *composer) bindings(row *Key, n *node) []Binding {
	if n.shape != Map {
		p.wrongKind(row.Name, row.Type.String(), n)
		return nil
	}
	var out []Binding
	for _, e := range n.entries {
		name := p.name(e.key)
		if x := p.expr(e.key.text, e.value); x != nil {
			out = append(out, Binding{name, x})
		}
	}
	return out
}

// exprs reads a list of expressions, or one.
func (p *composer) exprs(key string, n *node) (exprs []*Expr) {
	items := []*node{n}
	if n.shape == List {
		items = n.items
	}
	for _, item := range items {
		if x := p.expr(key, item); x != nil {
			exprs = append(exprs, x)
		}
	}
	return exprs
}

// expr reads an expression; nil if there is none.
func (p *composer) expr(key string, n *node) *Expr {
	if n.shape != Scalar || n.null() {
		what := n.what()
		if n.shape == Map {
			what += ": what holds a colon or braces stands in quotes"
		}
		p.errs.add("wrong-kind", n.pos, "%s takes an expression, and not %s", key, what)
		return nil
	}
	if strings.HasPrefix(n.text, "${") {
		p.errs.add("template-expr", n.pos, "%s takes an expression: write it without ${...}", key)
		return nil
	}
	return p.newExpr(n, 0, n.text)
}

// newExpr makes the expression that begins at byte off of a scalar.
func (p *composer) newExpr(n *node, off int, text string) *Expr {
	x := &Expr{Text: strings.TrimSpace(text), Pos: n.pos}
	off += len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	if n.exact {
		x.Pos = n.inner
		x.Pos.Col += utf8.RuneCountInString(n.text[:off])
		x.exact = true
	}
	switch {
	case x.Text == "":
		p.errs.add("template", x.Pos, "the expression is empty")
		return nil
	case len(x.Text) > maxExpr:
		p.errs.add("expr-long", x.Pos, "an expression of %d bytes: at most %d", len(x.Text), maxExpr)
		return nil
	}
	return x
}

// wholeExpr reads an expression that may stand in ${...} or not.
func (p *composer) wholeExpr(n *node) *Expr {
	if !strings.HasPrefix(n.text, "${") {
		return p.newExpr(n, 0, n.text)
	}
	parts := p.template(n)
	if len(parts) == 1 {
		return parts[0].Expr
	}
	if len(parts) > 1 {
		p.errs.add("template", n.pos, "a text is no list: write one ${...} alone, or the expression without it")
	}
	return nil
}

// template cuts a scalar into texts and expressions; nil if that fails. $${ is the
// text ${.
func (p *composer) template(n *node) (parts []Part) {
	text := n.text
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, Part{Text: literal.String()})
			literal.Reset()
		}
	}
	for at := 0; at < len(text); {
		i := strings.Index(text[at:], "${")
		switch {
		case i < 0:
			literal.WriteString(text[at:])
			at = len(text)
			continue
		case i > 0 && text[at+i-1] == '$':
			literal.WriteString(text[at:at+i-1] + "${")
			at += i + 2
			continue
		}
		literal.WriteString(text[at : at+i])
		if len(parts) > maxParts {
			p.errs.add("template", n.pos, "a text with so many ${...}: at most %d", maxParts/2)
			return nil
		}
		begin := at + i + 2
		end := closing(text, begin)
		if end < 0 {
			pos := n.pos
			if n.exact {
				pos = n.inner
				pos.Col += utf8.RuneCountInString(text[:begin-2])
			}
			p.errs.add("template", pos, "${ without its }")
			return nil
		}
		flush()
		x := p.newExpr(n, begin, text[begin:end])
		if x == nil {
			return nil
		}
		parts = append(parts, Part{Expr: x})
		at = end + 1
	}
	flush()
	return parts
}

// closing finds the brace that ends the expression from there, past braces and
// quoted texts in it; -1 if there is none.
func closing(text string, from int) int {
	depth := 0
	var quote byte
	for i := from; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0:
			if c == '\\' && quote != '`' {
				i++
			} else if c == quote {
				quote = 0
			}
		case slices.Contains([]byte("\"'`"), c):
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == '}':
			return i
		}
	}
	return -1
}
