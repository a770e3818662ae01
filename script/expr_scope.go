package script

import (
	"context"

	"github.com/expr-lang/expr/vm"
)

// vars are the variables that the expressions of one line of execution see. They
// belong to one goroutine; what runs beside it has a fork.
type vars struct {
	env     map[string]any // what programs run on; under ownKey the vars themselves
	lib     *library
	ctx     context.Context // of the evaluation under way
	machine vm.VM
	hidden  []hidden
	ticks   int // of predicates
}

// hidden is the value that a name had before it was bound.
type hidden struct {
	name  string
	value any
	had   bool
}

// ownKey is where functions find the vars that they are called from; no variable
// has such a name.
const ownKey = "\x00vars"

func (l *library) newVars() *vars {
	s := &vars{env: make(map[string]any), lib: l, ctx: context.Background()}
	s.env[ownKey] = s
	return s
}

// fork gives variables with the same values, for another goroutine. What is set
// in one is not seen in the other.
func (s *vars) fork() *vars {
	f := s.lib.newVars()
	for name, value := range s.env {
		if name != ownKey {
			f.env[name] = value
		}
	}
	return f
}

// set gives a variable a value.
func (s *vars) set(name string, value any) { s.env[name] = value }

func (s *vars) get(name string) (any, bool) {
	value, ok := s.env[name]
	return value, ok && name != ownKey
}

// mark is the state to which release goes back.
func (s *vars) mark() int { return len(s.hidden) }

// bind gives a name a value for a time: the variable of a loop, the results of a
// step. What it had before is there again after release.
func (s *vars) bind(name string, value any) {
	old, had := s.env[name]
	s.hidden = append(s.hidden, hidden{name, old, had})
	s.env[name] = value
}

// release ends what was bound since mark gave the number.
func (s *vars) release(mark int) {
	for i := len(s.hidden) - 1; i >= mark; i-- {
		h := &s.hidden[i]
		if h.had {
			s.env[h.name] = h.value
		} else {
			delete(s.env, h.name)
		}
		*h = hidden{}
	}
	s.hidden = s.hidden[:mark]
}

// all gives the variables by their names.
func (s *vars) all() map[string]any {
	out := make(map[string]any, len(s.env))
	for name, value := range s.env {
		if name != ownKey {
			out[name] = value
		}
	}
	return out
}
