package script

import (
	"io/fs"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Load reads a script and the files that it includes, from the operating
// system's file system if fsys is nil. The error is an *ErrorList, or, if the
// file itself cannot be read, that of reading it.
func Load(path string, fsys fs.FS) (*Script, error) {
	l := &loader{fsys: fsys, files: make(map[string]*Script), depth: make(map[string]int), errs: new(errorSink)}
	data, err := l.read(path)
	if err != nil {
		return nil, err
	}
	s := l.parse(path, data)
	if err := l.errs.err(); err != nil {
		return nil, err
	}
	return s, nil
}

// composer makes the steps of one file from its nodes.
type composer struct {
	loader *loader
	file   string
	errs   *errorSink
}

// document makes the script of a file.
func (p *composer) document(root *node) *Script {
	s := &Script{File: p.file, Pos: root.pos, Timeout: DefaultTimeout, StepTimeout: DefaultStepTimeout, OnError: OnErrorStop}
	// Of a file that is no script, which may hold anything, nothing is shown.
	switch {
	case root.shape == Scalar && !root.null():
		p.errs.add("wrong-kind", root.pos, "a script is a map of keys such as version and steps, and not a text")
		return s
	case root.shape != Map:
		p.errs.add("wrong-kind", root.pos, "a script is a map of keys such as version and steps, and not %s", root.what())
		return s
	case find(root, "version") == nil && find(root, "steps") == nil:
		p.errs.add("missing-key", root.pos, "this is no script, which has the keys version and steps")
		return s
	}
	p.keys(root, TopKeys, "a script", tagged(s), 0)
	if v := find(root, "version"); v != nil && v.shape == Scalar && s.Version != 1 {
		p.errs.add("version", v.pos, "version %s of the language is not known: this is version 1", quoted(v.text))
	}
	if on := find(root, "on"); on != nil {
		s.OnPos = on.pos
	}
	return s
}

func find(n *node, key string) *node {
	for _, e := range n.entries {
		if e.key.text == key {
			return e.value
		}
	}
	return nil
}

// tagged gives the members of a struct by the keys that fill them, as pointers.
func tagged(to any) map[string]any {
	v := reflect.ValueOf(to).Elem()
	members := make(map[string]any)
	for i := range v.NumField() {
		if key := v.Type().Field(i).Tag.Get("key"); key != "" {
			members[key] = v.Field(i).Addr().Interface()
		}
	}
	return members
}

// keys fills the members that stand for the keys of a map.
func (p *composer) keys(n *node, table []Key, what string, members map[string]any, depth int) {
	for _, e := range n.entries {
		row := lookUpKey(table, e.key.text)
		if row == nil {
			p.unknownKey(e, what, keyNames(table))
			continue
		}
		p.fill(members[row.Name], row, e.value, depth)
	}
	for i := range table {
		if row := &table[i]; row.Required && find(n, row.Name) == nil {
			p.errs.add("missing-key", n.pos, "%s needs the key %s", what, row.Name)
		}
	}
}

func lookUpKey(table []Key, name string) *Key {
	i := slices.IndexFunc(table, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return &table[i]
}

func keyNames(table []Key) []string {
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].Name
	}
	return names
}

func (p *composer) unknownKey(e nodeEntry, what string, names []string) {
	hint := ""
	if e.value.null() && strings.Trim(e.key.text, "0123456789") == "" {
		hint = ": in braces a directed route stands in quotes"
	}
	p.errs.addNear("unknown-key", e.key.pos, p.errs.nearest(e.key.text, names), "%s has no key %s%s", what, quoted(e.key.text), hint)
}

// fill gives one member the value of its key.
func (p *composer) fill(member any, row *Key, n *node, depth int) {
	switch m := member.(type) {
	case **Value:
		if p.shaped(row, n) {
			*m = p.value(n)
		}
	case *[]Entry:
		*m = p.entries(row, n)
	case **Expr:
		*m = p.expr(row.Name, n)
	case *[]*Expr:
		*m = p.exprs(row.Name, n)
	case *[]Binding:
		*m = p.bindings(row, n)
	case *[]*Step:
		*m = p.steps(row.Name, n, depth+1)
	case *[]Answer:
		*m = p.answers(row, n)
	case *In:
		*m = p.loop(n)
	case *Word:
		*m = p.word(row, n)
	case *[]Word:
		*m = p.words(row, n)
	case *string:
		*m = p.word(row, n).Text
	case *int:
		if w := p.word(row, n); w.Text != "" {
			*m, _ = strconv.Atoi(w.Text)
		}
	case *OnError:
		switch p.word(row, n).Text {
		case "stop":
			*m = OnErrorStop
		case "continue":
			*m = OnErrorContinue
		}
	case *time.Duration:
		if w := p.word(row, n); w.Text != "" {
			*m = p.duration(row, w)
		}
	}
}

// wrongKind says that a value has another shape than its key needs.
func (p *composer) wrongKind(key string, want string, n *node) {
	p.errs.add("wrong-kind", n.pos, "%s takes %s, and not %s", key, want, n.what())
}

// shaped tells whether a value has the shape that its key needs.
func (p *composer) shaped(row *Key, n *node) bool {
	switch {
	case row.Type == TypeValue || row.Type == TypeNotice:
		return true
	case row.Type == TypeMask && n.shape == List, row.Type == TypeGRH && n.shape == Map:
		return true
	case (row.Type == TypeMethods || row.Type == TypeAddress) && n.shape == List:
		return true
	case n.shape == Scalar && !n.null():
		return true
	}
	p.wrongKind(row.Name, row.Type.String(), n)
	return false
}

// duration reads a time limit, which is known before the run.
func (p *composer) duration(row *Key, w Word) time.Duration {
	d, err := time.ParseDuration(w.Text)
	if err != nil || d <= 0 {
		p.errs.add("wrong-type", w.Pos, "%s takes a duration such as 500ms or 2s, and not %s", row.Name, quoted(w.Text))
	}
	return d
}

// word reads a text without templates, one of the words of its key if it has any.
func (p *composer) word(row *Key, n *node) Word {
	if n.shape != Scalar || n.null() {
		p.wrongKind(row.Name, row.Type.String(), n)
		return Word{Pos: n.pos}
	}
	if strings.Contains(n.text, "${") {
		p.errs.add("no-template", n.pos, "%s is known before the run: no ${...} here", row.Name)
		return Word{Pos: n.pos}
	}
	if row.Words != nil && !slices.Contains(row.Words, n.text) {
		p.errs.addNear("unknown-word", n.pos, p.errs.nearest(n.text, row.Words), "%s has no %s: it takes %s", row.Name, quoted(n.text), strings.Join(row.Words, ", "))
		return Word{Pos: n.pos}
	}
	if row.Type == TypeName {
		p.name(n)
	}
	return Word{n.text, n.pos}
}

func (p *composer) words(row *Key, n *node) (words []Word) {
	items := []*node{n}
	if n.shape == List {
		items = n.items
	}
	for _, item := range items {
		w := p.word(row, item)
		if slices.ContainsFunc(words, func(have Word) bool { return w.Text != "" && have.Text == w.Text }) {
			p.errs.add("duplicate-word", w.Pos, "%s has %s twice", row.Name, w.Text)
		}
		words = append(words, w)
	}
	return words
}

// exprWords mean something in expressions, so that no variable has their names.
var exprWords = []string{"and", "or", "not", "in", "let", "if", "else", "true", "false", "nil", "matches", "contains", "startsWith", "endsWith"}

// name checks the name of a variable.
func (p *composer) name(n *node) Word {
	w := Word{n.text, n.pos}
	ok := n.shape == Scalar && n.text != "" && len(n.text) <= 64
	for i, c := range n.text {
		ok = ok && (c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9')
	}
	switch {
	case !ok:
		p.errs.add("bad-name", n.pos, "a variable is named by letters, digits and _, and not %s", quoted(n.text))
	case slices.Contains(exprWords, n.text):
		p.errs.add("bad-name", n.pos, "%s is a word of expressions and names no variable", n.text)
	}
	return w
}

// steps makes a list of steps.
func (p *composer) steps(key string, n *node, depth int) []*Step {
	switch {
	case n.shape != List:
		p.wrongKind(key, "a list of steps", n)
		return nil
	case depth > MaxStepDepth:
		p.errs.add("step-depth", n.pos, "more than %d steps in each other", MaxStepDepth)
		return nil
	case len(n.items) == 0 && key != "finally":
		p.errs.add("no-steps", n.pos, "%s holds no step", key)
	}
	var steps []*Step
	names := make(map[string]Pos)
	for _, item := range n.items {
		s := p.step(item, depth)
		if s == nil {
			continue
		}
		if first, twice := names[s.Name]; twice && s.Name != "" {
			p.errs.add("duplicate-name", find(item, "name").pos, "the step in line %d has the name %s already", first.Line, quoted(s.Name))
		}
		names[s.Name] = s.Pos
		steps = append(steps, s)
	}
	return steps
}

// step makes a step: the common keys, and the body of the one kind.
func (p *composer) step(n *node, depth int) *Step {
	if n.shape != Map {
		p.errs.add("wrong-kind", n.pos, "a step is a map with a key such as send, and not %s", n.what())
		return nil
	}
	s := &Step{Pos: n.pos}
	members := tagged(s)
	var kind nodeEntry
	misspelt := false
	for _, e := range n.entries {
		if row := lookUpKey(StepKeys, e.key.text); row != nil {
			p.fill(members[row.Name], row, e.value, depth)
			continue
		}
		k := lookUpKind(e.key.text)
		switch {
		case k == nil:
			misspelt = true
			p.unknownKey(e, "a step", append(kindNames(), keyNames(StepKeys)...))
		case s.Kind != nil:
			p.errs.add("two-kinds", e.key.pos, "a step does one thing: it has %s in line %d already", s.Kind.Name, kind.key.pos.Line)
		default:
			s.Kind, kind = k, e
		}
	}
	if s.Kind == nil && misspelt {
		return nil // it may be the kind
	}
	if s.Kind == nil {
		p.errs.add("no-kind", n.pos, "the step does nothing: it needs one of the keys %s", strings.Join(kindNames(), ", "))
		return nil
	}
	s.Body = p.body(s.Kind, kind.value, depth)
	return s
}

func lookUpKind(name string) *Kind {
	i := slices.IndexFunc(Kinds, func(k *Kind) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return Kinds[i]
}

func kindNames() []string {
	names := make([]string, len(Kinds))
	for i, k := range Kinds {
		names[i] = k.Name
	}
	return names
}

// body makes what a step does from the value of its kind.
func (p *composer) body(k *Kind, n *node, depth int) Body {
	b := k.new()
	short := &Key{Name: k.Name, Type: k.Short}
	switch b := b.(type) {
	case *Assert:
		b.Exprs = p.exprs(k.Name, n)
		return b
	case *SetVar:
		b.Vars = p.entries(short, n)
		return b
	case *Log:
		p.fill(&b.Text, short, n, depth)
		return b
	}
	switch {
	case n.shape == Map:
		p.keys(n, k.Keys, k.Name, tagged(b), depth)
	case k.IsShort && n.shape == Scalar && !n.null():
		p.fill(tagged(b)[k.Keys[0].Name], short, n, depth)
	default:
		p.wrongKind(k.Name, "a map of keys", n)
	}
	if inc, ok := b.(*Include); ok && inc.File.Text != "" {
		inc.Script = p.loader.include(p.file, inc.File)
	}
	return b
}

// answers makes the answers of a serve.
func (p *composer) answers(row *Key, n *node) (answers []Answer) {
	if n.shape != List {
		p.wrongKind(row.Name, row.Type.String(), n)
		return nil
	}
	for _, item := range n.items {
		if item.shape != Map {
			p.wrongKind("an answer", "a map of keys", item)
			continue
		}
		a := Answer{Pos: item.pos}
		p.keys(item, AnswerKeys, "an answer", tagged(&a), 0)
		answers = append(answers, a)
	}
	return answers
}

// loop reads what a loop goes over.
func (p *composer) loop(n *node) In {
	in := In{Pos: n.pos}
	switch {
	case n.shape == List:
		in.List = p.value(n)
	case n.shape == Scalar && slices.Contains(loopWords, n.text):
		in.Word = n.text
	case n.shape == Scalar && !n.null():
		in.Expr = p.wholeExpr(n)
	default:
		p.wrongKind("in", TypeLoop.String(), n)
	}
	return in
}
