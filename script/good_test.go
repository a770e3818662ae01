package script

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// goodScripts are the scripts that come with ibsm and those of the documentation,
// by where they stand.
func goodScripts(t *testing.T) fstest.MapFS {
	t.Helper()
	files := make(fstest.MapFS)
	names, err := filepath.Glob("../configs/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains("\n"+string(data), "\nsteps:") { // the others are fabrics
			files["configs/"+filepath.Base(name)] = &fstest.MapFile{Data: data}
		}
	}
	examples, _ := docExamples(t)
	maps.Copy(files, examples)
	return files
}

// docExamples are the scripts of the documentation by where they stand, and those of
// them that have a name as the files that others include.
func docExamples(t *testing.T) (examples, files fstest.MapFS) {
	t.Helper()
	examples, files = make(fstest.MapFS), make(fstest.MapFS)
	page, err := os.ReadFile("../docs/scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	line := 1
	for i, part := range strings.Split(string(page), "```") {
		if body, ok := strings.CutPrefix(part, "yaml\n"); ok && i%2 == 1 {
			file := &fstest.MapFile{Data: []byte(whole(body))}
			examples[fmt.Sprintf("docs/scripts.md:%d", line)] = file
			if name := exampleName.FindStringSubmatch(body); name != nil {
				files[name[1]+".yaml"] = file
			}
		}
		line += strings.Count(part, "\n")
	}
	return examples, files
}

var exampleName = regexp.MustCompile(`(?m)^name: (\w+)$`)

// whole makes a script of an example that is only steps, or only what a step does.
// The variables are those that examples of the reference speak of.
func whole(example string) string {
	const head = "version: 1\non: sim:demo\nvars: {path: {}, paths: [1], hosts: [h1], up: true}\nsteps:\n"
	switch {
	case strings.HasPrefix(example, "version:"):
		return example
	case strings.HasPrefix(example, "- "), strings.HasPrefix(example, "#"):
		return head + example
	}
	return head + "  - " + example
}

func TestGoodScripts(t *testing.T) {
	files := goodScripts(t)
	if len(files) < 20 {
		t.Errorf("only %d scripts were found", len(files))
	}
	_, beside := docExamples(t)
	for name, file := range files {
		beside["script"] = file
		s, err := Load("script", beside)
		if err == nil {
			err = s.Check(checkEnv())
		}
		if err != nil {
			t.Errorf("%s:\n%v", name, err)
		}
	}
}

// Every example in the table is right where it stands.
func TestTableExamples(t *testing.T) {
	_, beside := docExamples(t)
	check := func(what, text string) {
		t.Helper()
		beside["script"] = &fstest.MapFile{Data: []byte(text)}
		s, err := Load("script", beside)
		if err == nil {
			err = s.Check(checkEnv())
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", what, err, text)
		}
	}
	for _, k := range TopKeys {
		text := "version: 1\n"
		if k.Name == "params" {
			k.Example = strings.ReplaceAll(k.Example, "null", "h1") // who includes the file gives it
		}
		if k.Name != "version" {
			text += k.Name + ": " + k.Example + "\n"
		}
		if k.Name != "steps" {
			text += "steps: [{log: hello}]\n"
		}
		check(k.Name, text)
	}
	const send = "send: {class: SubnAdm, method: GetTable, attribute: NodeRecord}\n"
	for _, k := range StepKeys {
		check(k.Name, whole(send+"    "+k.Name+": "+k.Example+"\n"))
	}
	for _, k := range Kinds {
		check(k.Name, whole(k.Name+": "+k.Example+"\n"))
		for _, key := range k.Keys {
			if key.Type == TypeNotice {
				continue
			}
			check(k.Name+"."+key.Name, whole(k.Name+": "+exampleWith(k, &key)+"\n"))
		}
	}
	for _, k := range GRHKeys {
		check("grh."+k.Name, whole("send: {class: Subn, attribute: NodeInfo, to: 5, grh: {"+k.Name+": "+k.Example+"}}\n"))
	}
	for _, k := range AnswerKeys {
		answer := "{" + k.Name + ": " + k.Example + "}"
		if k.Name == "set" {
			answer = "{attribute: ClassPortInfo, set: " + k.Example + "}"
		}
		check("answer."+k.Name, whole("serve: {class: SubnAdm, methods: [Get], answers: ["+answer+"], for: 1s}\n"))
	}
	for _, f := range Functions {
		check(f.Name, whole("send: {class: SubnAdm, method: GetTable, attribute: PathRecord}\n"+"    save: {x: '"+f.Example+"'}\n"))
	}
}

// exampleWith is a step with the example of a key, and what that needs beside it.
func exampleWith(k *Kind, key *Key) string {
	with := map[string]string{
		"send.class": "{attribute: NodeRecord, %}", "send.attribute": "{class: Subn, %}", "send.oui": "{class: 0x32, attribute: 1, %}",
		"send.raw": "{%}", "send.method": "{class: SubnAdm, attribute: NodeRecord, %}", "send.to": "{class: SubnDirected, attribute: NodeInfo, %}",
		"for_each.var": "{%, in: [1], steps: [{log: x}]}", "for_each.in": "{%, var: p, steps: [{log: x}]}",
		"for_each.steps": "{%, var: p, in: [1]}", "for_each.max": "{%, var: p, in: [1], steps: [{log: x}]}",
		"parallel.steps": "{%}", "parallel.max": "{%, steps: [{log: x}]}", "parallel.var": "{%, in: [1], steps: [{log: x}]}",
		"parallel.in": "{%, var: h, steps: [{log: x}]}", "repeat.steps": "{%, times: 1}", "repeat.times": "{%, steps: [{log: x}]}",
		"repeat.until": "{%, steps: [{log: x}]}", "repeat": "{%, times: 1, steps: [{log: x}]}", "retry.steps": "{%}", "retry": "{%, steps: [{log: x}]}",
		"wait": "{%}", "serve.class": "{%, methods: [Get], for: 1s}", "serve.methods": "{%, class: 0x32, for: 1s}",
		"serve.for": "{%, class: 0x32, methods: [Get]}", "serve.steps": "{%, class: 0x32, methods: [Get]}", "serve": "{%, class: 0x32, methods: [Get], for: 1s}",
		"connect.service": "{%, to: h8}", "connect.to": "{%, service: 1}", "connect": "{%, to: h8, service: 1}",
		"listen.count": "{%, service: 1}", "listen.service": "{%, count: 1}", "listen": "{%, service: 1, count: 1}",
		"fault.link": "{%, down: true}", "fault.reboot": "{%}", "fault.sma": "{%}", "fault.sa": "{%}", "fault.off": "{%, sa: record-lost}", "fault.sweep": "{%}", "fault": "{%, link: all}",
		"include.file": "{%, with: {host: h1}}", "include.with": "{%, file: bounce.yaml}", "send": "{class: SubnAdm, attribute: NodeRecord, %}",
	}
	form, ok := with[k.Name+"."+key.Name]
	if !ok {
		form = with[k.Name]
	}
	return strings.ReplaceAll(form, "%", key.Name+": "+key.Example)
}

// Tables and structs agree: each key has a member, and each member a key.
func TestTableFillsStructs(t *testing.T) {
	agree := func(what string, keys []Key, to any) {
		t.Helper()
		members := tagged(to)
		for _, k := range keys {
			if members[k.Name] == nil {
				t.Errorf("%s.%s fills nothing", what, k.Name)
			}
			delete(members, k.Name)
		}
		for name := range members {
			t.Errorf("%s.%s is not in the table", what, name)
		}
	}
	agree("script", TopKeys, new(Script))
	agree("step", StepKeys, new(Step))
	agree("answer", AnswerKeys, new(Answer))
	for _, k := range Kinds {
		if len(k.Keys) > 0 {
			agree(k.Name, k.Keys, k.new())
		}
	}
	for _, f := range Functions {
		if _, own := ownFunctions[f.Name]; own != f.Own {
			t.Errorf("%s: in the table %v, own function %v", f.Name, f.Own, own)
		}
	}
	for name := range ownFunctions {
		if lookUpFunction(name) == nil {
			t.Errorf("the function %s is not in the table", name)
		}
	}
}

// What is made of the tables is as the tables are.
func TestGeneratedFiles(t *testing.T) {
	schema, err := os.ReadFile("../configs/script.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(schema) != string(Schema()) {
		t.Error("configs/script.schema.json is old: run go generate ./script")
	}
	page, err := os.ReadFile("../docs/scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	if want, err := InsertReference(string(page)); err != nil || want != string(page) {
		t.Errorf("the reference in docs/scripts.md is old: run go generate ./script (%v)", err)
	}
	if _, err := InsertReference("a page without marks"); err == nil {
		t.Error("a reference was put where no place for it is")
	}
}

// An unreadable file is told as such, not as a mistake in it.
func TestLoadUnreadable(t *testing.T) {
	if _, err := Load("nowhere.yaml", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := Load("testdata", nil); !errors.Is(err, errNotRegular) {
		t.Errorf("got %v", err)
	}
}
