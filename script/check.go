package script

import (
	"maps"
	"slices"
	"strings"

	"github.com/ibsm/ibsm/mad/layout"
)

// CheckEnv is what Check knows of the place where the script will run; its zero
// value is a place that is not known yet.
type CheckEnv struct {
	// On is the endpoint if it is another than the script names.
	On string
	// Vars are values from outside for variables of the script.
	Vars map[string]any
	// SMAFaults and SAFaults are the named faults that simulated fabrics have.
	// nil: any name is taken.
	SMAFaults, SAFaults []string
}

// Check finds every mistake that can be found before the first MAD is sent, and
// compiles the expressions. The error is an *ErrorList. It changes the Script, so it
// does not run beside another Check or a run of it.
func (s *Script) Check(env CheckEnv) error {
	c := &scriptChecker{errs: new(errorSink), done: make(map[*Script]bool), env: env}
	if c.env.On == "" {
		c.env.On = s.On
	}
	c.script(s, env.Vars, true)
	err := c.errs.err()
	s.checked = err == nil
	return err
}

// scriptChecker goes through a script as a run would, with what is known beforehand.
type scriptChecker struct {
	errs *errorSink
	done map[*Script]bool
	env  CheckEnv // On is empty if it is not known
}

// site is where a step stands.
type site struct {
	vars      *visible
	simulated bool    // what requires a simulated fabric is skipped elsewhere
	onError   OnError // of the steps around
}

// script checks a file. What stands outermost gets its params from vars, as its
// variables.
func (c *scriptChecker) script(s *Script, vars map[string]any, outermost bool) {
	if c.done[s] {
		return
	}
	c.done[s] = true
	if s.On != "" {
		c.endpoint(s.On, s.OnPos)
	}
	later := make(map[string]bool)
	namesSet(s.Steps, later)
	sc := newVisible(later)
	for _, e := range s.Params {
		if _, given := vars[e.Key]; outermost && e.Value == nil && !given {
			c.errs.add("missing-param", e.Pos, "the parameter %s has no value: it is given by whoever includes the file, or by --var %s=VALUE", e.Key, e.Key)
		}
		c.variable(e, sc)
	}
	for _, e := range s.Vars {
		if slices.ContainsFunc(s.Params, func(p Entry) bool { return p.Key == e.Key }) {
			c.errs.add("duplicate-name", e.Pos, "the variable %s is a parameter already", e.Key)
		}
		c.variable(e, sc)
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if _, known := sc.vars[name]; !known {
			c.errs.addNear("unknown-param", s.Pos, c.errs.nearest(name, sc.names()), "the script has no variable %s that could be given a value", quoted(name))
		}
	}
	in := site{vars: sc, simulated: simulatedOnly(s.Requires), onError: s.OnError}
	c.steps(s.Steps, in)
	// What is set somewhere may be set when finally runs.
	for name := range later {
		sc.vars[name] = unknown
	}
	s.scope = sc
	in.onError = OnErrorContinue
	c.steps(s.Finally, in)
}

func (c *scriptChecker) variable(e Entry, sc *visible) {
	if e.Value != nil {
		c.templates(e.Value, sc)
	}
	sc.vars[e.Key] = unknown
}

// namesSet collects the variables that steps set for those after them.
func namesSet(steps []*Step, names map[string]bool) {
	for _, s := range steps {
		for _, b := range s.Save {
			names[b.Name.Text] = true
		}
		switch b := s.Body.(type) {
		case *SetVar:
			for _, e := range b.Vars {
				names[e.Key] = true
			}
		case *Parallel:
		default:
			namesSet(inner(b), names)
		}
	}
}

// simulatedOnly tells whether what requires these words runs on simulated fabrics
// alone.
func simulatedOnly(requires []Word) bool {
	return slices.ContainsFunc(requires, func(w Word) bool { return w.Text == "sim" || w.Text == "fault" })
}

// steps checks steps that run one after another.
func (c *scriptChecker) steps(steps []*Step, in site) {
	stopped := false
	for _, s := range steps {
		if stopped {
			c.errs.add("unreachable", s.Pos, "no run comes here: the step before it always fails, and then the run stops")
		}
		stopped = c.step(s, in)
	}
}

// step checks one step. It tells whether a run always stops at it.
func (c *scriptChecker) step(s *Step, in site) (stops bool) {
	if s.If != nil && checkBool(c.errs, "if", s.If, in.vars) {
		c.errs.add("unreachable", s.If.Pos, "no run does this step: its condition is false")
	}
	in.simulated = in.simulated || simulatedOnly(s.Requires)
	if s.OnError != OnErrorInherit {
		in.onError = s.OnError
	}
	fails := c.body(s, in)
	after := in.vars.with(c.results(s))
	for _, x := range s.Expect {
		fails = checkBool(c.errs, "expect", x, after) || fails
	}
	for _, b := range s.Save {
		is := checkExpr(c.errs, b.Expr, after)
		c.assign(in.vars, b.Name.Text, is)
	}
	return fails && s.If == nil && len(s.Requires) == 0 && in.onError == OnErrorStop
}

// assign notes that a variable is set. What may be set anew by a later step has
// no shape that counts.
func (c *scriptChecker) assign(sc *visible, name string, is *shape) {
	if old := sc.vars[name]; old != nil {
		is = unknown
	}
	sc.vars[name] = is
}

// results are the variables that a step sets for its own expect and save.
func (c *scriptChecker) results(s *Step) map[string]*shape {
	results := make(map[string]*shape)
	for _, r := range s.Kind.Results {
		results[r.Name] = shapeOf(r.Type)
	}
	switch b := s.Body.(type) {
	case *Send:
		sendResults(b, results)
	case *Connect:
		results["state"] = &shape{typ: Text, words: []string{"established", "failed"}}
		results["route"] = recordShape(layout.PathRecord)
	case *Listen:
		results["requests"] = listShape(&shape{typ: MapOf, keys: requestKeys})
	case *Include:
		if b.Script != nil && b.Script.scope != nil {
			results["result"] = &shape{typ: MapOf, keys: b.Script.scope.names()}
		}
	}
	return results
}

// body checks what a step does. It tells whether the step always fails.
func (c *scriptChecker) body(s *Step, in site) (fails bool) {
	switch b := s.Body.(type) {
	case *Send:
		c.send(s, b, in)
	case *ForEach:
		c.values(s.Kind.Keys, b, in.vars)
		c.loop(b.Steps, b.Var.Text, c.in(b.In, in.vars), in)
	case *Parallel:
		c.parallel(s, b, in)
	case *Repeat:
		c.values(s.Kind.Keys, b, in.vars)
		if b.Times == nil && b.Until == nil {
			c.errs.add("missing-key", s.Pos, "repeat needs the key times or until, or it would not end")
		}
		c.steps(b.Steps, in)
		if b.Until != nil {
			checkBool(c.errs, "until", b.Until, in.vars)
		}
	case *Retry:
		c.values(s.Kind.Keys, b, in.vars)
		c.steps(b.Steps, site{in.vars, in.simulated, OnErrorStop})
	case *Wait:
		c.wait(s, b, in)
	case *Serve:
		c.serve(s, b, in)
	case *Connect:
		c.connect(s, b, in)
	case *Listen:
		c.listen(s, b, in)
	case *Fault:
		c.fault(s, b, in)
	case *Assert:
		for _, x := range b.Exprs {
			fails = checkBool(c.errs, "assert", x, in.vars) || fails
		}
	case *SetVar:
		for _, e := range b.Vars {
			if e.Value != nil {
				c.templates(e.Value, in.vars)
			}
			c.assign(in.vars, e.Key, unknown)
		}
	case *Include:
		c.include(s, b, in)
	case *Log:
		c.values([]Key{{Name: "log", Type: TypeTemplate}}, &struct {
			Text *Value `key:"log"`
		}{b.Text}, in.vars)
	}
	return fails
}

// in checks what a loop goes over and gives the shape of its elements.
func (c *scriptChecker) in(in In, sc *visible) *shape {
	switch {
	case in.Word != "":
		return &shape{typ: MapOf, keys: ElementKeys}
	case in.Expr != nil:
		is := checkExpr(c.errs, in.Expr, sc)
		if is.typ != Unknown && is.typ != ListOf {
			c.errs.add("wrong-type", in.Expr.Pos, "in takes a list, and %s is a %s", quoted(in.Expr.Text), is.typ)
		}
		if is.elem != nil {
			return is.elem
		}
	case in.List != nil:
		if len(in.List.Items) == 0 {
			c.errs.add("unreachable", in.Pos, "the steps never run: the list is empty")
		}
		c.templates(in.List, sc)
	}
	return unknown
}

// loop checks steps that see an element in a variable.
func (c *scriptChecker) loop(steps []*Step, name string, element *shape, in site) {
	old, had := in.vars.vars[name]
	in.vars.vars[name] = element
	c.steps(steps, in)
	delete(in.vars.vars, name)
	if had {
		in.vars.vars[name] = old
	}
}

func (c *scriptChecker) parallel(s *Step, b *Parallel, in site) {
	c.values(s.Kind.Keys, b, in.vars)
	looped := b.In != (In{})
	switch {
	case looped != (b.Var.Text != ""):
		c.errs.add("missing-key", s.Pos, "parallel needs both var and in, or neither")
	case looped:
		in.vars = in.vars.inner()
		c.loop(b.Steps, b.Var.Text, c.in(b.In, in.vars), in)
	default:
		for _, step := range b.Steps {
			branch := in
			branch.vars = in.vars.inner()
			c.step(step, branch)
		}
	}
}

func (c *scriptChecker) include(s *Step, b *Include, in site) {
	for _, e := range b.With {
		if e.Value != nil {
			c.templates(e.Value, in.vars)
		}
	}
	if b.Script == nil {
		return
	}
	given := make(map[string]bool)
	var params []string
	for _, p := range b.Script.Params {
		params = append(params, p.Key)
	}
	for _, e := range b.With {
		given[e.Key] = e.Value != nil
		if !slices.Contains(params, e.Key) {
			c.errs.addNear("unknown-param", e.Pos, c.errs.nearest(e.Key, params), "%s has no parameter %s", b.File.Text, quoted(e.Key))
		}
	}
	for _, p := range b.Script.Params {
		if p.Value == nil && !given[p.Key] {
			c.errs.add("missing-param", s.Pos, "%s needs a value for its parameter %s: give it under with", b.File.Text, p.Key)
		}
	}
	c.script(b.Script, nil, false)
}

// endpointKinds are what an endpoint begins with.
var endpointKinds = []string{"sim", "umad", "ibsim"}

func (c *scriptChecker) endpoint(on string, pos Pos) {
	kind, rest, _ := strings.Cut(on, ":")
	switch {
	case !slices.Contains(endpointKinds, strings.TrimSpace(kind)):
		c.errs.addNear("bad-endpoint", pos, c.errs.nearest(kind, endpointKinds), "%s is no endpoint: one begins with sim:, umad: or ibsim:", quoted(on))
	case strings.TrimSpace(kind) == "sim" && strings.TrimSpace(rest) == "":
		c.errs.add("bad-endpoint", pos, "%s names no fabric: write sim:demo, or sim: and a file", quoted(on))
	}
}

// onlySimulated tells of what works on a simulated fabric alone, unless the script
// says that it runs there.
func (c *scriptChecker) onlySimulated(pos Pos, what string, in site) {
	if !in.simulated && !strings.HasPrefix(c.env.On, "sim:") {
		c.errs.add("needs-sim", pos, "%s works on simulated fabrics only: the step needs requires: [sim], or the script on: sim:...", what)
	}
}
