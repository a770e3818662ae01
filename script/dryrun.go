package script

import (
	"reflect"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
)

// A dry run goes through the steps without an answer. Steps that need what an answer would
// give are skipped, and say so; so are loops over the fabric. Other loops are gone through,
// but once if only their number of times is told.

// names are the variables that an answer would give.
type names map[string]bool

// tells tells whether a dry run knows what a step comes to.
func (t *thread) tells(b Body) bool {
	switch b.(type) {
	case *Assert, *SetVar, *Log, *Wait, *ForEach, *Retry:
		return true
	}
	return false
}

// forget notes the variables that a step would set by what it came to.
func (t *thread) forget(s *Step) {
	for _, b := range s.Save {
		t.unknown[b.Name.Text] = true
	}
	if b, ok := s.Body.(*SetVar); ok {
		for _, e := range b.Vars {
			t.unknown[e.Key] = true
		}
	}
	for _, in := range inner(s.Body) {
		t.forget(in)
	}
}

// depends gives a variable that the step needs and a dry run does not know, or what of
// the fabric it would have to ask for; "" if there is none.
func (t *thread) depends(s *Step) string {
	if s.If != nil {
		if name := t.missingIn(reflect.ValueOf(s.If)); name != "" {
			return name
		}
	}
	switch b := s.Body.(type) {
	case *ForEach:
		return t.loopDepends(&b.In)
	case *Parallel:
		return t.loopDepends(&b.In)
	}
	return t.missingIn(reflect.ValueOf(s.Body))
}

func (t *thread) loopDepends(in *In) string {
	if in.Word != "" {
		return "the " + in.Word + " of the fabric"
	}
	return t.missingIn(reflect.ValueOf(in))
}

var stepsType = reflect.TypeFor[[]*Step]()

// missingIn looks for expressions in what a step has, but not in the steps in it, which
// speak for themselves.
func (t *thread) missingIn(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		switch x := v.Interface().(type) {
		case *Expr:
			return t.unknownIn(x)
		case *Script:
			return ""
		}
		return t.missingIn(v.Elem())
	case reflect.Slice:
		if v.Type() == stepsType {
			return ""
		}
		for i := range v.Len() {
			if name := t.missingIn(v.Index(i)); name != "" {
				return name
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				if name := t.missingIn(v.Field(i)); name != "" {
					return name
				}
			}
		}
	}
	return ""
}

// unknownIn gives a name in an expression that is not known.
func (t *thread) unknownIn(e *Expr) string {
	tree, err := parser.Parse(e.Text)
	if err != nil {
		return "" // its evaluation says so
	}
	ids := &identifiers{callees: make(map[ast.Node]bool)}
	ast.Walk(&tree.Node, ids)
	for _, id := range ids.found {
		if t.unknown[id.Value] && !ids.declared[id.Value] {
			return id.Value
		}
	}
	return ""
}
