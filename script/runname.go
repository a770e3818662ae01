package script

import "strings"

// nameOf is the name of a step, else what it does in a few words.
func nameOf(s *Step) string {
	if s.Name != "" {
		return s.Name
	}
	words := []string{s.Kind.Name}
	add := func(values ...*Value) {
		for _, v := range values {
			if v != nil && v.Shape == Scalar {
				words = append(words, v.Text)
			}
		}
	}
	switch b := s.Body.(type) {
	case *Send:
		words = words[:0]
		if b.Method == nil {
			words = append(words, "Get")
		}
		add(b.Method, b.Attribute, b.To)
		if b.Attribute == nil {
			words = append(words[:0], "send")
			add(b.To)
		}
	case *ForEach:
		words = append(words, b.Var.Text)
	case *Parallel:
		if b.Var.Text != "" {
			words = append(words, b.Var.Text)
		}
	case *Wait:
		add(b.For)
	case *Serve:
		add(b.Class)
	case *Connect:
		add(b.To)
		if b.To == nil {
			add(b.Path)
		}
	case *Listen:
		add(b.Service)
	case *Fault:
		add(b.Link, b.Reboot, b.SMA, b.SA)
	case *Assert:
		for _, x := range b.Exprs[:min(1, len(b.Exprs))] {
			words = append(words, x.Text)
		}
	case *SetVar:
		for _, e := range b.Vars {
			words = append(words, e.Key)
		}
	case *Include:
		words = append(words, b.File.Text)
	}
	name := strings.Join(words, " ")
	if r := []rune(name); len(r) > nameWidth {
		name = string(r[:nameWidth-3]) + "..."
	}
	return name
}
