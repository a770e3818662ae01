package script

import (
	"context"
	"fmt"
	"strconv"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
)

// explanation says why an expectation does not hold.
type explanation struct {
	Got    string  // what it came to, in a line
	Values []known // its parts, and what they were
}

// known is a part of an expression and its value.
type known struct{ Text, Is string }

// maxExplained is how many parts of an expectation are explained.
const maxExplained = 16

// explain evaluates the parts of an expectation that is false. It asks functions
// again, which may find something else by now.
func (s *vars) explain(ctx context.Context, e *Expr) *explanation {
	x := &explainer{vars: s, ctx: ctx, out: &explanation{Got: "false"}, seen: make(map[string]bool)}
	if tree, err := parser.Parse(e.Text); err == nil {
		x.why(tree.Node)
	}
	return x.out
}

type explainer struct {
	*vars
	ctx  context.Context
	out  *explanation
	seen map[string]bool
	// around gives the text of an expression with the element of a list that did it,
	// where the expression stands in a condition.
	around func(text string) string
}

// why explains a part that is false, though it should be true.
func (x *explainer) why(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryNode:
		switch n.Operator {
		case "&&", "and":
			if v, ok := x.evaluate(n.Left); ok && v == true {
				x.why(n.Right)
			} else {
				x.why(n.Left)
			}
			return
		case "||", "or":
			x.why(n.Left)
			x.why(n.Right)
			return
		}
		x.operands(n.Left, n.Right)
		if x.around == nil {
			x.compared(n.Left, n.Right)
		}
		return
	case *ast.UnaryNode:
		x.operands(n.Node)
		return
	case *ast.BuiltinNode:
		if x.around == nil && len(n.Arguments) == 2 && x.condition(n) {
			return
		}
	}
	x.tell(n)
}

// operands tells what is compared.
func (x *explainer) operands(nodes ...ast.Node) {
	for _, n := range nodes {
		switch n := n.(type) {
		case *ast.BinaryNode:
			x.operands(n.Left, n.Right)
		case *ast.UnaryNode:
			x.operands(n.Node)
		default:
			x.tell(n)
		}
	}
}

// compared says what the first of two is that is not told by its text: of x == 4 it
// is x.
func (x *explainer) compared(nodes ...ast.Node) {
	for _, n := range nodes {
		if v, ok := x.evaluate(n); ok && !isLiteral(n) && x.out.Got == "false" {
			x.out.Got = show(v)
		}
	}
}

func isLiteral(n ast.Node) bool {
	switch n.(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode, *ast.ConstantNode:
		return true
	}
	return false
}

// condition explains a condition about the elements of a list by the first one
// that did it.
func (x *explainer) condition(n *ast.BuiltinNode) bool {
	predicate, ok := n.Arguments[1].(*ast.PredicateNode)
	if !ok {
		return false
	}
	list, cond := n.Arguments[0].String(), predicate.Node.String()
	length, ok := x.whole("len(" + list + ")")
	if !ok {
		return false
	}
	search := ""
	switch n.Name {
	case "all":
		search = "findIndex(" + list + ", not (" + cond + "))"
	case "none":
		search = "findIndex(" + list + ", " + cond + ")"
	case "any", "one":
		x.out.Got = fmt.Sprintf("false: it holds for %s of %s elements", x.written("count("+list+", "+cond+")"), write(length))
		return true
	default:
		return false
	}
	at, ok := x.whole(search)
	index, isInt := at.(int)
	if !ok || !isInt {
		return false
	}
	element := list + "[" + strconv.Itoa(index) + "]"
	x.out.Got = "false for " + element
	x.around = func(text string) string { return "map([" + element + "], " + text + ")[0]" }
	if n.Name == "none" {
		x.operands(predicate.Node)
	} else {
		x.why(predicate.Node)
	}
	x.around = nil
	return true
}

// tell adds a part to the explanation, unless it says its value itself.
func (x *explainer) tell(n ast.Node) {
	switch n := n.(type) {
	case *ast.PredicateNode:
		return
	case *ast.ArrayNode:
		for _, e := range n.Nodes {
			x.tell(e)
		}
		return
	}
	if isLiteral(n) {
		return
	}
	text := n.String()
	if x.seen[text] || len(x.out.Values) >= maxExplained {
		return
	}
	x.seen[text] = true
	is := ""
	if v, err := x.part(text); err != nil {
		is = shortError(err).Error()
	} else {
		is = show(v)
	}
	x.out.Values = append(x.out.Values, known{text, is})
	switch n := n.(type) {
	case *ast.CallNode:
		x.operands(n.Arguments...)
	case *ast.BuiltinNode:
		if len(n.Arguments) == 1 {
			x.operands(n.Arguments...)
		}
	}
}

func (x *explainer) evaluate(n ast.Node) (any, bool) {
	v, err := x.part(n.String())
	return v, err == nil
}

// whole is the value of an expression about the whole list.
func (x *explainer) whole(text string) (any, bool) {
	program, err := compile(text)
	if err != nil {
		return nil, false
	}
	v, err := x.vars.run(x.ctx, program)
	return v, err == nil
}

func (x *explainer) written(text string) string {
	v, ok := x.whole(text)
	if !ok {
		return "?"
	}
	return write(v)
}

func (x *explainer) part(text string) (any, error) {
	if x.around != nil {
		text = x.around(text)
	}
	program, err := compile(text)
	if err != nil {
		return nil, err
	}
	return x.vars.run(x.ctx, program)
}
