package script

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

// shape is what is known of a value before the run.
type shape struct {
	typ   ValueType
	of    *layout.Struct // of a map: the structure whose fields are its keys
	keys  []string       // of another map: its keys
	elem  *shape         // of a list
	field *layout.Field  // of a field of a structure
	words []string       // of a text: it is one of these
}

var unknown = &shape{}

func shapeOf(t ValueType) *shape { return &shape{typ: t} }

func recordShape(s *layout.Struct) *shape { return &shape{typ: MapOf, of: s} }

func listShape(elem *shape) *shape { return &shape{typ: ListOf, elem: elem} }

// visible is which variables there are at a place of a script.
type visible struct {
	vars    map[string]*shape
	results map[string]*shape // of the step: they hide variables
	later   map[string]bool   // variables that are set further down
}

func newVisible(later map[string]bool) *visible {
	return &visible{vars: make(map[string]*shape), later: later}
}

// inner is the scope of what may set variables that nobody sees afterwards.
func (s *visible) inner() *visible {
	in := newVisible(s.later)
	for name, sh := range s.vars {
		in.vars[name] = sh
	}
	return in
}

// with is the scope with the results of a step.
func (s *visible) with(results map[string]*shape) *visible {
	return &visible{vars: s.vars, results: results, later: s.later}
}

func (s *visible) lookUp(name string) *shape {
	if sh := s.results[name]; sh != nil {
		return sh
	}
	return s.vars[name]
}

func (s *visible) names() []string {
	var names []string
	for name := range s.results {
		names = append(names, name)
	}
	for name := range s.vars {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// exprChecker finds what is wrong in one expression.
type exprChecker struct {
	errs     *errorSink
	expr     *Expr
	scope    *visible
	lets     []let
	elements []*shape // of the lists that conditions around go over
	bad      bool
}

// let is a variable that the expression declares.
type let struct {
	name string
	is   *shape
}

// checkExpr checks an expression and makes its program. The shape of its value
// is unknown if something is wrong.
func checkExpr(errs *errorSink, x *Expr, sc *visible) *shape {
	c := &exprChecker{errs: errs, expr: x, scope: sc}
	tree, err := parser.Parse(x.Text)
	if err != nil {
		c.fail("expr-syntax", err, cutShort(x.Text))
		return unknown
	}
	is := c.visit(tree.Node)
	if c.bad {
		return unknown
	}
	// Of what is known without the values, such as constants and arguments, the
	// expression language checks the types.
	_, err = checker.Check(tree, typeConfig())
	if err == nil {
		x.Program, err = compile(x.Text)
	}
	if err != nil {
		c.fail("expr-type", err, "")
		return unknown
	}
	return is
}

// typeConfig declares the functions, under names that no variable has.
func typeConfig() *conf.Config {
	config := conf.CreateNew()
	for _, f := range Functions {
		if !f.Own {
			continue
		}
		signature := any(new(func(any) any))
		if strings.Contains(f.Args, ",") {
			signature = new(func(any, any) any)
		}
		expr.Function(functionKey(f.Name), nil, signature)(config)
	}
	return config
}

// checkBool is checkExpr for what must be true or false. It tells whether the
// expression is always false.
func checkBool(errs *errorSink, key string, x *Expr, sc *visible) (never bool) {
	is := checkExpr(errs, x, sc)
	if is.typ != Unknown && is.typ != Bool {
		errs.add("not-bool", x.Pos, "%s takes what is true or false, and %s is a %s", key, quoted(x.Text), is.typ)
	}
	return x.Text == "false"
}

// fail tells what the expression language says.
func (c *exprChecker) fail(id ErrorID, err error, hint string) {
	var at *file.Error
	if !errors.As(err, &at) {
		c.errs.add(id, c.expr.Pos, "%s: %v", quoted(c.expr.Text), err)
		return
	}
	// The rest of the message shows the expression.
	msg, _, _ := strings.Cut(at.Message, "\n")
	c.errs.add(id, c.at(at.From), "%s: %s%s", quoted(c.expr.Text), msg, hint)
}

// cutShort is a hint at what YAML may have done to an expression.
func cutShort(text string) string {
	if strings.Count(text, "(")+strings.Count(text, "[") == strings.Count(text, ")")+strings.Count(text, "]") {
		return ""
	}
	return "; in the brackets and braces of YAML, what has commas or brackets stands in quotes"
}

// at is the place of a character of the expression.
func (c *exprChecker) at(from int) Pos {
	pos := c.expr.Pos
	if c.expr.exact {
		pos.Col += from
	}
	return pos
}

func (c *exprChecker) add(id ErrorID, n ast.Node, near []string, format string, args ...any) {
	c.bad = true
	c.errs.addNear(id, c.at(n.Location().From), near, format, args...)
}

// visit checks a node with all below it and gives the shape of its value.
func (c *exprChecker) visit(n ast.Node) *shape {
	switch n := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return shapeOf(Number)
	case *ast.StringNode:
		return shapeOf(Text)
	case *ast.BoolNode:
		return shapeOf(Bool)
	case *ast.IdentifierNode:
		return c.identifier(n)
	case *ast.PointerNode:
		if n.Name == "" && len(c.elements) > 0 {
			return c.elements[len(c.elements)-1]
		}
	case *ast.UnaryNode:
		is := c.visit(n.Node)
		if n.Operator == "!" || n.Operator == "not" {
			return shapeOf(Bool)
		}
		return shapeOf(is.typ)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ChainNode:
		return c.visit(n.Node)
	case *ast.MemberNode:
		return c.member(n)
	case *ast.SliceNode:
		is := c.visit(n.Node)
		c.all(n.From, n.To)
		return is
	case *ast.CallNode:
		return c.call(n)
	case *ast.BuiltinNode:
		return c.builtin(n)
	case *ast.PredicateNode:
		return c.visit(n.Node)
	case *ast.ConditionalNode:
		c.all(n.Cond)
		a, b := c.visit(n.Exp1), c.visit(n.Exp2)
		if a.typ == b.typ {
			return shapeOf(a.typ)
		}
	case *ast.VariableDeclaratorNode:
		c.lets = append(c.lets, let{n.Name, c.visit(n.Value)})
		is := c.visit(n.Expr)
		c.lets = c.lets[:len(c.lets)-1]
		return is
	case *ast.SequenceNode:
		is := unknown
		for _, part := range n.Nodes {
			is = c.visit(part)
		}
		return is
	case *ast.ArrayNode:
		c.all(n.Nodes...)
		return shapeOf(ListOf)
	case *ast.MapNode:
		c.all(n.Pairs...)
		return shapeOf(MapOf)
	case *ast.PairNode:
		c.all(n.Key, n.Value)
	}
	return unknown
}

func (c *exprChecker) all(nodes ...ast.Node) {
	for _, n := range nodes {
		if n != nil {
			c.visit(n)
		}
	}
}

func (c *exprChecker) identifier(n *ast.IdentifierNode) *shape {
	for i := len(c.lets) - 1; i >= 0; i-- {
		if c.lets[i].name == n.Value {
			return c.lets[i].is
		}
	}
	if sh := c.scope.lookUp(n.Value); sh != nil {
		n.Value = "$" + n.Value // so that no function is meant when types are checked
		return sh
	}
	switch {
	case lookUpFunction(n.Value) != nil:
		c.add("unknown-variable", n, nil, "no variable %s: it is a function, write %s(%s)", n.Value, n.Value, lookUpFunction(n.Value).Args)
	case c.scope.later[n.Value]:
		c.add("unknown-variable", n, nil, "the variable %s has no value yet: a later step sets it", n.Value)
	default:
		c.add("unknown-variable", n, c.errs.nearest(n.Value, c.scope.names()), "no variable %s", n.Value)
	}
	return unknown
}

// member checks an access to a field or an element.
func (c *exprChecker) member(n *ast.MemberNode) *shape {
	base := c.visit(n.Node)
	name, isName := n.Property.(*ast.StringNode)
	if !isName {
		c.visit(n.Property)
		if base.elem != nil {
			return base.elem
		}
		return unknown
	}
	switch {
	case len(name.Value) > maxWord && (base.of != nil || base.keys != nil):
		c.add("unknown-field", n.Property, nil, "no field %s", quoted(name.Value))
	case base.of != nil:
		f, err := fieldOf(base.of, make([]byte, base.of.Size), name.Value)
		if err != nil {
			c.add("unknown-field", n.Property, nearRows(err), "%s has no field %s", base.of.Name, name.Value)
			return unknown
		}
		return fieldShape(f)
	case base.keys != nil && !slices.Contains(base.keys, name.Value):
		c.add("unknown-field", n.Property, c.errs.nearest(name.Value, base.keys), "no key %s: there are %s", name.Value, keyList(base.keys))
	case base.elem != nil:
		c.add("unknown-field", n.Property, nil, "a list has no field %s, its elements have: take one, as in [0].%s", name.Value, name.Value)
	case base.typ == Text || base.typ == Number || base.typ == Bool:
		c.add("unknown-field", n.Property, nil, "a %s has no field %s", base.typ, name.Value)
	}
	return unknown
}

func nearRows(err error) []string {
	if bad := (*layout.NameError)(nil); errors.As(err, &bad) {
		return bad.Nearest
	}
	return nil
}

// fieldShape is what is known of a field's value.
func fieldShape(f *layout.Field) *shape {
	if f.Count > 0 {
		e := f.Element(0)
		return listShape(fieldShape(&e))
	}
	switch {
	case f.Variants != nil:
		return unknown
	case f.Kind == layout.KindStruct:
		return recordShape(f.Of)
	case f.Kind == layout.KindFlag:
		return &shape{typ: Bool, field: f}
	case f.Kind == layout.KindEnum:
		return &shape{field: f} // a name, or a number that has none
	case f.IsNumber() && f.Kind != layout.KindGUID && f.Len <= 32:
		return &shape{typ: Number, field: f}
	}
	return &shape{typ: Text, field: f}
}

// call checks a call of a function that is not the expression language's.
func (c *exprChecker) call(n *ast.CallNode) *shape {
	c.all(n.Arguments...)
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		c.add("unknown-function", n, nil, "only functions can be called")
		return unknown
	}
	f := lookUpFunction(callee.Value)
	if f == nil || !f.Own {
		c.add("unknown-function", n, c.errs.nearest(callee.Value, functionNames()), "no function %s", callee.Value)
		return unknown
	}
	callee.Value = functionKey(f.Name)
	switch f.Name {
	case "path":
		return recordShape(layout.PathRecord)
	case "port":
		return &shape{typ: MapOf, keys: PortKeys}
	}
	return shapeOf(f.Type)
}

func lookUpFunction(name string) *Function {
	i := slices.IndexFunc(Functions, func(f Function) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &Functions[i]
}

// functionNames are all names that may be called.
func functionNames() []string {
	var names []string
	for _, f := range Functions {
		names = append(names, f.Name)
	}
	for _, f := range builtin.Builtins {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// builtin checks a call of a function of the expression language.
func (c *exprChecker) builtin(n *ast.BuiltinNode) *shape {
	first := unknown
	body := unknown
	for i, arg := range n.Arguments {
		if i == 0 {
			first = c.visit(arg)
			continue
		}
		element := unknown
		if first.elem != nil && n.Name != "reduce" {
			element = first.elem
		}
		c.elements = append(c.elements, element)
		body = c.visit(arg)
		c.elements = c.elements[:len(c.elements)-1]
	}
	switch n.Name {
	case "filter", "sortBy", "sort", "reverse", "uniq", "concat":
		return &shape{typ: ListOf, elem: first.elem}
	case "find", "findLast", "first", "last":
		if first.elem != nil {
			return first.elem
		}
	case "map":
		return listShape(body)
	case "hasPrefix", "hasSuffix":
		return shapeOf(Bool)
	}
	if f := lookUpFunction(n.Name); f != nil {
		return shapeOf(f.Type)
	}
	return unknown
}

// binary checks an operation; of a comparison with a constant, that the value can
// be that at all.
func (c *exprChecker) binary(n *ast.BinaryNode) *shape {
	a, b := c.visit(n.Left), c.visit(n.Right)
	switch n.Operator {
	case "==", "!=":
		c.comparable(a, n.Right)
		c.comparable(b, n.Left)
	case "in", "not in":
		if list, ok := n.Right.(*ast.ArrayNode); ok {
			for _, item := range list.Nodes {
				c.comparable(a, item)
			}
		}
	case "+":
		if a.typ == b.typ && (a.typ == Text || a.typ == Number || a.typ == Duration) {
			return shapeOf(a.typ)
		}
		return unknown
	case "-", "*", "/", "%", "^", "**":
		if a.typ == Number && b.typ == Number {
			return shapeOf(Number)
		}
		return unknown
	case "..":
		return listShape(shapeOf(Number))
	case "??", "|":
		return unknown
	}
	return shapeOf(Bool)
}

// comparable checks a constant that is compared with what has names for its
// values.
func (c *exprChecker) comparable(with *shape, n ast.Node) {
	word, isText := n.(*ast.StringNode)
	switch {
	case !isText, len(word.Value) > maxWord:
	case with.words != nil && !slices.Contains(with.words, word.Value) && !isNumeral(word.Value):
		c.add("unknown-value", n, c.errs.nearest(word.Value, with.words), "it is never %s", quoted(word.Value))
	case with.field != nil && with.field.Kind == layout.KindEnum && with.field.Enum.Values != nil:
		one := layout.Struct{Name: "it", Size: (with.field.Len + 7) / 8, Fields: []layout.Field{{
			Name: "it", Len: with.field.Len, Kind: layout.KindEnum, Enum: with.field.Enum}}}
		_, err := text.Set(&one, make([]byte, one.Size), "it", word.Value)
		var bad *text.ValueError
		if errors.As(err, &bad) {
			c.add("unknown-value", n, nearestOf(bad), "%s is never %s", with.field.Name, quoted(word.Value))
		}
	}
}

func isNumeral(s string) bool {
	_, err := strconv.ParseUint(s, 0, 64)
	return err == nil && s != "" && unicode.IsDigit(rune(s[0]))
}

func nearestOf(bad *text.ValueError) []string {
	if bad.Nearest == "" {
		return nil
	}
	return []string{bad.Nearest}
}
