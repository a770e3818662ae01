package script

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"
)

// The expression language knows maps, and numbers that are equal or not. compile
// changes what it makes of an expression, so that fields of a record are read from
// its bytes when they are asked for, and values compare as a reader of MADs expects
// (see equal): every access, comparison and call of our functions becomes a call of
// one of these, which no name in a script can mean.
const (
	fnFetch    = "fetch()"
	fnOptional = "optional()"
	fnEqual    = "equal()"
	fnUnequal  = "unequal()"
	fnLess     = "less()"
	fnMore     = "more()"
	fnAtMost   = "at most()"
	fnAtLeast  = "at least()"
	fnIn       = "in()"
	fnPlain    = "plain()"
	fnTick     = "tick()"
	fnPlus     = "plus()"
	fnQuotient = "quotient()"
	fnFitting  = "fitting()"
	fnWritable = "writable()"
)

// compile makes the program of an expression, which runs on the env of vars.
func compile(text string) (*vm.Program, error) {
	tree, err := parser.Parse(text)
	if err != nil {
		return nil, err
	}
	// A variable may have the name of a function: what is declared is not taken for
	// the function.
	names := &identifiers{variables: types.Map{types.Extra: types.Any}, callees: make(map[ast.Node]bool)}
	ast.Walk(&tree.Node, names)
	for _, n := range names.found {
		if !names.callees[n] && !names.declared[n.Value] {
			names.variables[n.Value] = types.Any
		}
	}
	options := append([]expr.Option{expr.Env(names.variables), expr.Patch(patcher{})}, functionOptions...)
	return expr.Compile(text, options...)
}

// identifiers collects the names in an expression.
type identifiers struct {
	found     []*ast.IdentifierNode
	callees   map[ast.Node]bool
	declared  map[string]bool // by let
	variables types.Map
}

func (i *identifiers) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value != "$env" {
			i.found = append(i.found, n)
		}
	case *ast.CallNode:
		i.callees[n.Callee] = true
	case *ast.VariableDeclaratorNode:
		if i.declared == nil {
			i.declared = make(map[string]bool)
		}
		i.declared[n.Name] = true
	}
}

// patcher makes the changes that compile speaks of.
type patcher struct{}

func (patcher) Visit(node *ast.Node) {
	call := func(name string, args ...ast.Node) {
		ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: args})
	}
	env := &ast.IdentifierNode{Value: "$env"}
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value == resultData { // made when it is asked for: it may be long
			call(fnPlain, n)
		}
	case *ast.MemberNode:
		if n.Optional {
			call(fnOptional, n.Node, n.Property)
		} else {
			call(fnFetch, n.Node, n.Property)
		}
	case *ast.BinaryNode:
		switch name := operators[n.Operator]; {
		case n.Operator == "/":
			call(fnQuotient, n.Left, n.Right)
		case name == "" || isBasic(n.Left) && isBasic(n.Right):
		case name == fnEqual, name == fnUnequal, name == fnIn:
			call(name, env, n.Left, n.Right)
		default:
			call(name, n.Left, n.Right)
		}
		switch n.Operator {
		case "contains", "startsWith", "endsWith", "matches":
			if !isBasic(n.Left) {
				n.Left = &ast.CallNode{Callee: &ast.IdentifierNode{Value: fnPlain}, Arguments: []ast.Node{n.Left}}
			}
		}
	case *ast.CallNode:
		callee, ok := n.Callee.(*ast.IdentifierNode)
		if !ok {
			return
		}
		if _, ours := ownFunctions[callee.Value]; ours {
			call(functionKey(callee.Value), append([]ast.Node{env}, n.Arguments...)...)
		}
	case *ast.BuiltinNode:
		switch {
		case n.Name == "count" && len(n.Arguments) == 1:
			ast.Patch(node, &ast.BuiltinNode{Name: "len", Arguments: n.Arguments})
		case n.Name == "get" && len(n.Arguments) == 2:
			call(fnOptional, n.Arguments...)
		case limitedBuiltins[n.Name] != nil:
			call(functionKey(n.Name), n.Arguments...)
		case wholeBuiltins[n.Name]:
			for i, arg := range n.Arguments {
				if _, predicate := arg.(*ast.PredicateNode); !predicate && !isBasic(arg) {
					n.Arguments[i] = &ast.CallNode{Callee: &ast.IdentifierNode{Value: fnFitting}, Arguments: []ast.Node{arg}}
				}
			}
		case writingBuiltins[n.Name]:
			n.Arguments[0] = &ast.CallNode{Callee: &ast.IdentifierNode{Value: fnWritable}, Arguments: []ast.Node{n.Arguments[0]}}
		}
	case *ast.PredicateNode:
		// So that the context can end it however long the lists are.
		tick := &ast.CallNode{Callee: &ast.IdentifierNode{Value: fnTick}, Arguments: []ast.Node{env}}
		n.Node = &ast.SequenceNode{Nodes: []ast.Node{tick, n.Node}}
	}
}

var operators = map[string]string{
	"+": fnPlus, "==": fnEqual, "!=": fnUnequal, "<": fnLess, ">": fnMore, "<=": fnAtMost, ">=": fnAtLeast, "in": fnIn,
}

// isBasic tells whether a value is known to be of a type that needs no help to be
// compared with its like.
func isBasic(n ast.Node) bool {
	switch n.Type().Kind() {
	case reflect.Int, reflect.Bool:
		return true
	}
	return false
}

// functionOptions declare the functions to the expression language.
var functionOptions = makeFunctions()

func makeFunctions() []expr.Option {
	two := func(f func(a, b any) (any, error)) func(...any) (any, error) {
		return func(args ...any) (any, error) { return f(args[0], args[1]) }
	}
	ordered := func(holds func(int) bool) func(...any) (any, error) {
		return two(func(a, b any) (any, error) {
			c, err := compare(a, b)
			return err == nil && holds(c), err
		})
	}
	asBool, asAny, ofEnv := new(func(a, b any) bool), new(func(a, b any) any), new(func(env, a, b any) bool)
	options := []expr.Option{
		expr.Function(fnFetch, two(fetch), asAny),
		expr.Function(fnOptional, two(fetchOptional), asAny),
		expr.Function(fnEqual, func(args ...any) (any, error) { return varsOf(args[0]).equal(args[1], args[2]) }, ofEnv),
		expr.Function(fnUnequal, func(args ...any) (any, error) {
			is, err := varsOf(args[0]).equal(args[1], args[2])
			return !is, err
		}, ofEnv),
		expr.Function(fnLess, ordered(func(c int) bool { return c < 0 }), asBool),
		expr.Function(fnMore, ordered(func(c int) bool { return c > 0 }), asBool),
		expr.Function(fnAtMost, ordered(func(c int) bool { return c <= 0 }), asBool),
		expr.Function(fnAtLeast, ordered(func(c int) bool { return c >= 0 }), asBool),
		expr.Function(fnIn, func(args ...any) (any, error) { return varsOf(args[0]).contains(args[2], args[1]) }, ofEnv),
		expr.Function(fnPlus, two(plus), asAny),
		expr.Function(fnQuotient, two(quotient), asAny),
		expr.Function(fnFitting, func(args ...any) (any, error) { return fitting(args[0]) }, new(func(any) any)),
		expr.Function(fnWritable, func(args ...any) (any, error) { return writable(args[0]) }, new(func(any) any)),
		expr.Function(fnPlain, func(args ...any) (any, error) { return plain(args[0]), nil }, new(func(any) any)),
		expr.Function(fnTick, func(args ...any) (any, error) { return nil, varsOf(args[0]).tick() }, new(func(any) any)),
	}
	for name, f := range limitedBuiltins {
		options = append(options, expr.Function(functionKey(name), f, new(func(...any) string)))
	}
	for name, f := range ownFunctions {
		options = append(options, expr.Function(functionKey(name), func(args ...any) (any, error) {
			v, err := f.call(varsOf(args[0]), args[1:])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return v, nil
		}, f.signature))
	}
	return options
}

func varsOf(env any) *vars { return env.(map[string]any)[ownKey].(*vars) }

// tick ends an evaluation that takes too long.
func (s *vars) tick() error {
	if s.ticks++; s.ticks%1024 != 0 {
		return nil
	}
	return s.ctx.Err()
}

// ExprError is an expression that has no value.
type ExprError struct {
	Pos  Pos
	Text string
	Err  error
}

func (e *ExprError) Error() string { return fmt.Sprintf("%v: %s: %v", e.Pos, e.Text, e.Err) }
func (e *ExprError) Unwrap() error { return e.Err }

// eval gives the value of an expression. The error is an *ExprError.
func (s *vars) eval(ctx context.Context, e *Expr) (any, error) {
	program, err := s.lib.program(e)
	if err != nil {
		return nil, &ExprError{e.Pos, e.Text, shortError(err)}
	}
	value, err := s.run(ctx, program)
	if err == nil {
		err = fit(value)
	}
	if err != nil {
		return nil, &ExprError{e.Pos, e.Text, shortError(err)}
	}
	return value, nil
}

// run runs a program. An expression that a function evaluates has its own context
// and its own machine.
func (s *vars) run(ctx context.Context, program *vm.Program) (any, error) {
	outer := s.ctx
	s.ctx = ctx
	value, err := s.machine.Run(program, s.env)
	s.ctx = outer
	return value, err
}

// shortError is an error of the expression language in one line: it goes on with
// the text of the expression and a mark below it.
func shortError(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner // of one of our functions
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(first)
}

// evalBool tells whether an expectation holds, and why not. The error, an
// *ExprError, says that it cannot be told.
func (s *vars) evalBool(ctx context.Context, e *Expr) (bool, *explanation, error) {
	value, err := s.eval(ctx, e)
	if err != nil {
		return false, nil, err
	}
	holds, ok := value.(bool)
	switch {
	case !ok:
		return false, nil, &ExprError{e.Pos, e.Text, fmt.Errorf("it is %s, which is neither true nor false", show(value))}
	case holds:
		return true, nil, nil
	}
	return false, s.explain(ctx, e), nil
}

// value gives a value with its templates filled in. A scalar that is one template
// has the type of its expression; others are what they are in YAML, lists []any and
// maps map[string]any. nil gives nil.
func (s *vars) value(ctx context.Context, v *Value) (any, error) {
	value, err := s.fill(ctx, v)
	if err == nil && v != nil && v.Shape != Scalar {
		if err = fit(value); err != nil {
			err = &placedError{v.Pos, err}
		}
	}
	return value, err
}

func (s *vars) fill(ctx context.Context, v *Value) (any, error) {
	switch {
	case v == nil:
		return nil, nil
	case v.Shape == List:
		list := make([]any, len(v.Items))
		for i, item := range v.Items {
			var err error
			if list[i], err = s.fill(ctx, item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case v.Shape == Map:
		m := make(map[string]any, len(v.Entries))
		for _, e := range v.Entries {
			var err error
			if m[e.Key], err = s.fill(ctx, e.Value); err != nil {
				return nil, err
			}
		}
		return m, nil
	case len(v.Parts) == 0:
		return v.Const, nil
	case len(v.Parts) == 1 && v.Parts[0].Expr != nil:
		return s.eval(ctx, v.Parts[0].Expr)
	}
	var text strings.Builder
	for _, p := range v.Parts {
		if p.Expr == nil {
			text.WriteString(p.Text)
			continue
		}
		value, err := s.eval(ctx, p.Expr)
		if err != nil {
			return nil, err
		}
		part, err := writeWhole(value)
		if err == nil && text.Len()+len(part) > maxText {
			err = errLongText
		}
		if err != nil {
			return nil, &ExprError{p.Expr.Pos, p.Expr.Text, err}
		}
		text.WriteString(part)
	}
	return text.String(), nil
}

// text is value for what is taken as text: without templates as it is written. A
// list is its elements with commas, which is how a route is written.
func (s *vars) text(ctx context.Context, v *Value) (string, error) {
	if v != nil && v.Shape == Scalar && len(v.Parts) == 0 {
		return v.Text, nil
	}
	value, err := s.value(ctx, v)
	if err != nil {
		return "", err
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var line strings.Builder
	for i, e := range list {
		if i > 0 {
			line.WriteByte(',')
		}
		part, err := writeWhole(e)
		if err == nil && line.Len()+len(part) > maxText {
			err = errLongText
		}
		if err != nil {
			return "", &placedError{v.Pos, err}
		}
		line.WriteString(part)
	}
	return line.String(), nil
}

// ValueError is a value of a script that is not what its key takes.
type ValueError struct {
	Pos  Pos
	Text string
	Err  error
}

func (e *ValueError) Error() string { return fmt.Sprintf("%v: %q: %v", e.Pos, e.Text, e.Err) }
func (e *ValueError) Unwrap() error { return e.Err }

func valueError(v *Value, value any, format string, args ...any) error {
	text, _ := writeMost(value, maxShown)
	return &ValueError{v.Pos, cutShown(text), fmt.Errorf(format, args...)}
}

// number is a whole number from min to max; without a value it is other.
func (s *vars) number(ctx context.Context, v *Value, other, least, most uint64) (uint64, error) {
	if v == nil {
		return other, nil
	}
	value, err := s.value(ctx, v)
	if err != nil {
		return 0, err
	}
	n, ok := wholeNumber(value)
	if !ok {
		return 0, valueError(v, value, "it takes a whole number")
	}
	if n < least || n > most {
		return 0, valueError(v, value, "it takes a number from %d to %d", least, most)
	}
	return n, nil
}

// flag is true or false; without a value it is other.
func (s *vars) flag(ctx context.Context, v *Value, other bool) (bool, error) {
	if v == nil {
		return other, nil
	}
	value, err := s.value(ctx, v)
	if err != nil {
		return false, err
	}
	b, ok := value.(bool)
	if !ok {
		return false, valueError(v, value, "it takes true or false")
	}
	return b, nil
}

// duration is a time of at least 0; without a value it is other.
func (s *vars) duration(ctx context.Context, v *Value, other time.Duration) (time.Duration, error) {
	if v == nil {
		return other, nil
	}
	value, err := s.value(ctx, v)
	if err != nil {
		return 0, err
	}
	d, ok := value.(time.Duration)
	if !ok {
		if d, err = time.ParseDuration(write(value)); err != nil {
			return 0, valueError(v, value, "it takes a time, as 500ms or 2s")
		}
	}
	if d < 0 {
		return 0, valueError(v, value, "a time cannot be negative")
	}
	return d, nil
}
