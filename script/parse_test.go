package script

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// load reads the text as a file with the name s.yaml.
func load(t *testing.T, text string) *Script {
	t.Helper()
	s, err := Load("s.yaml", fstest.MapFS{"s.yaml": {Data: []byte(text)}})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s
}

func TestLoad(t *testing.T) {
	s := load(t, `
version: 1
name: all of it
on: sim:demo
requires: [rmpp]
timeout: 1m
on_error: continue
vars:
  src: h1
steps:
  - name: ask
    if: 1 < 2
    timeout: 3s
    on_error: stop
    send: {class: SubnAdm, attribute: PathRecord, set: {SGID: "${gid(src)}"}}
    expect: status == "ok"
    save: {n: count}
  - wait: 10ms
finally:
  - log: bye
`)
	if s.Name != "all of it" || s.On != "sim:demo" || s.OnPos != (Pos{"s.yaml", 4, 5}) || s.Timeout != time.Minute ||
		s.StepTimeout != DefaultStepTimeout || s.OnError != OnErrorContinue || s.Requires[0] != (Word{"rmpp", Pos{"s.yaml", 5, 12}}) {
		t.Errorf("got %+v", s)
	}
	step := s.Steps[0]
	if step.Name != "ask" || step.If.Text != "1 < 2" || step.Timeout != 3*time.Second || step.OnError != OnErrorStop ||
		step.Expect[0].Text != `status == "ok"` || step.Save[0].Name.Text != "n" || step.Pos != (Pos{"s.yaml", 11, 5}) {
		t.Errorf("got %+v", step)
	}
	set := step.Body.(*Send).Set[0]
	if set.Key != "SGID" || set.Value.Parts[0].Expr.Text != "gid(src)" || set.Value.Parts[0].Expr.Pos != (Pos{"s.yaml", 15, 66}) {
		t.Errorf("got %+v with %+v", set, set.Value.Parts[0].Expr)
	}
	if w := s.Steps[1].Body.(*Wait); w.For.Text != "10ms" || s.Steps[1].OnError != OnErrorInherit {
		t.Errorf("got %+v", w)
	}
	if err := s.Check(CheckEnv{}); err != nil || step.Body.(*Send).Attr.Name != "PathRecord" || step.Expect[0].Program == nil {
		t.Errorf("got %v", err)
	}
}

// The values of YAML 1.2's core schema, but for what is more an identifier than a
// number.
func TestConstants(t *testing.T) {
	for text, want := range map[string]any{
		"5": 5, "-5": -5, "0x10": 16, "0xffffffff": 1<<32 - 1, "0x0002c90300001234": "0x0002c90300001234", "010": "010",
		"18446744073709551615": uint64(1<<64 - 1), "1.5": 1.5, "true": true, "yes": "yes", "null": nil, "~": nil, `"5"`: "5", "'true'": "true",
		"text": "text", "0,1,3": "0,1,3", "2024-01-01": "2024-01-01", "$${x}": "${x}", "5:0,1": "5:0,1", "fe80::1": "fe80::1",
	} {
		s := load(t, "version: 1\nvars:\n  v: "+text+"\nsteps: [{log: x}]\n")
		var got any
		if v := s.Vars[0].Value; v != nil {
			got = v.Const
		}
		if got != want {
			t.Errorf("%s: got %#v, want %#v", text, got, want)
		}
	}
}

func TestTemplateParts(t *testing.T) {
	for text, want := range map[string][]string{
		"${a}":                 {"=a"},
		"x ${a} y":             {"x ", "=a", " y"},
		"${a}${ b }":           {"=a", "=b"},
		`${"}"}`:               {`="}"`},
		`${'\'}'}`:             {`='\'}'`},
		"${`}`}":               {"=`}`"},
		"${ {'a': {}}['a'] }!": {"={'a': {}}['a']", "!"},
		"$${x} ${a}":           {"${x} ", "=a"},
		"$5 ${a}":              {"$5 ", "=a"},
	} {
		s := load(t, "version: 1\nsteps:\n  - log: |-\n      "+text+"\n")
		var got []string
		for _, p := range s.Steps[0].Body.(*Log).Text.Parts {
			if p.Expr != nil {
				got = append(got, "="+p.Expr.Text)
			} else {
				got = append(got, p.Text)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

// Aliases are what they stand for, and a merge gives what a map does not say itself.
func TestAliases(t *testing.T) {
	s := load(t, `
version: 1
vars:
  base: &base {a: 1, b: 2}
  more: &more {b: 3, c: 4}
  both: {<<: [*base, *more], a: 5}
  list: [*base, &x 7, *x]
steps: [{log: x}]
`)
	got := map[string]any{}
	for _, e := range s.Vars[2].Value.Entries {
		got[e.Key] = e.Value.Const
	}
	if d := cmp.Diff(map[string]any{"a": 5, "b": 2, "c": 4}, got); d != "" {
		t.Error(d)
	}
	list := s.Vars[3].Value.Items
	if list[0].Entries[1].Value.Const != 2 || list[1].Const != 7 || list[2].Const != 7 || list[2].Pos != (Pos{"s.yaml", 7, 17}) {
		t.Errorf("got %+v", list)
	}
}

// Files are found from the one that names them, and each is read once.
func TestInclude(t *testing.T) {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"main.yaml":    "steps: [{include: {file: a/one.yaml}}, {include: {file: b/two.yaml, with: {n: 1}}}]",
		"a/one.yaml":   "steps: [{include: {file: ../b/two.yaml}}]",
		"b/two.yaml":   "params: {n: 5}\nsteps: [{include: {file: three.yaml}}]",
		"b/three.yaml": "steps: [{log: end}]",
	} {
		files[name] = &fstest.MapFile{Data: []byte("version: 1\n" + text + "\n")}
	}
	s, err := Load("main.yaml", files)
	if err != nil {
		t.Fatal(err)
	}
	one := s.Steps[0].Body.(*Include).Script
	two := one.Steps[0].Body.(*Include).Script
	if one.File != "a/one.yaml" || two.File != "b/two.yaml" || two != s.Steps[1].Body.(*Include).Script ||
		two.Steps[0].Body.(*Include).Script.File != "b/three.yaml" {
		t.Errorf("got %+v", two)
	}
	if err := s.Check(CheckEnv{}); err != nil {
		t.Error(err)
	}
}

// Of very many mistakes the first are told, and how many more there are.
func TestManyMistakes(t *testing.T) {
	var text strings.Builder
	text.WriteString("version: 1\nsteps:\n")
	for i := range 70 {
		fmt.Fprintf(&text, "  - lg: %d\n", i)
	}
	_, err := Load("s.yaml", fstest.MapFS{"s.yaml": {Data: []byte(text.String())}})
	var list *ErrorList
	if !errors.As(err, &list) || len(list.Errors) != 50 || list.More != 20 || !strings.HasSuffix(list.Error(), "\nand 20 more") {
		t.Errorf("got %v", err)
	}
	var first *Error
	if !errors.As(err, &first) || first.ID != "unknown-key" || first.Pos != (Pos{"s.yaml", 3, 5}) {
		t.Errorf("got %v", first)
	}
}

// What comes from outside is for variables that there are.
func TestCheckVars(t *testing.T) {
	s := load(t, "version: 1\nparams: {dst: null}\nvars: {src: h1}\nsteps: [{log: \"${src} ${dst}\"}]\n")
	if err := s.Check(CheckEnv{Vars: map[string]any{"src": "h2", "dst": "h3"}}); err != nil {
		t.Error(err)
	}
	err := s.Check(CheckEnv{Vars: map[string]any{"srcc": "h2", "dst": "h3"}})
	if want := `s.yaml:1:1: the script has no variable "srcc" that could be given a value (nearest: src) [unknown-param]`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if s.checked {
		t.Error("the script counts as checked")
	}
}

// The endpoint decides whether faults are in place.
func TestCheckEndpoint(t *testing.T) {
	s := load(t, "version: 1\non: sim:demo\nsteps: [{fault: {link: all, loss: 0.5}}]\n")
	if err := s.Check(CheckEnv{}); err != nil {
		t.Error(err)
	}
	var bad *Error
	if err := s.Check(CheckEnv{On: "umad:mlx5_0/1"}); !errors.As(err, &bad) || bad.ID != "needs-sim" {
		t.Errorf("got %v", err)
	}
}

// A field that exists is right in every spelling, and in bytes that only the answer
// gives a meaning.
func TestCheckTakes(t *testing.T) {
	for _, step := range []string{
		`send: {class: Subn, method: Set, attribute: PortInfo, to: 5, set: {portstate: Active, "LinkWidthEnabled": 4x, SMLid: 3}}`,
		`send: {class: subn, method: get, attribute: nodedescription, to: "name:node 1"}`,
		`send: {class: SubnAdm, attribute: NodeRecord, set: {NodeInfo: {NodeType: Switch}}, mask: 0x10}`,
		`send: {class: SubnAdm, method: Report, attribute: Notice, set: {"DataDetails.GIDADDR": "fe80::1"}}`,
		`send: {class: 0x99, method: 0x77, attribute: 0xfedc, to: 5, data: ""}`,
		`send: {class: "${'Perf'}", attribute: Anything, to: 5, set: {Whatever: 1}}`,
		`for_each: {var: i, in: 1..3, steps: [{log: "${i + 1}"}]}`,
		`assert: ["let n = 3; n > 2 and count([1], # == 1) == 1"]`,
		`assert: ['path("h1", "h8").MTU in ["2048", "4096"]', 'lid("h1") | hex() != ""']`,
		`assert: [src startsWith "h", 'src matches "^h[0-9]"', "src?.x == nil", "{'a': 1}.a == 1", "[1, 2][0] == 1"]`,
		`parallel: {steps: [{set_var: {a: 1}}, {set_var: {a: 2}}]}`,
	} {
		s := load(t, "version: 1\nvars: {src: h1, path: {}}\nsteps:\n  - "+step+"\n")
		if err := s.Check(CheckEnv{}); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
}
