package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("script.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("script.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// jsonOf is a YAML text as a JSON value.
func jsonOf(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(jsonKeys(v))
	if err != nil {
		t.Fatal(err)
	}
	v, err = jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// jsonKeys makes texts of keys that are numbers.
func jsonKeys(v any) any {
	switch v := v.(type) {
	case map[any]any:
		m := make(map[string]any)
		for key, value := range v {
			m[fmt.Sprint(key)] = jsonKeys(value)
		}
		return m
	case map[string]any:
		for key := range v {
			v[key] = jsonKeys(v[key])
		}
	case []any:
		for i := range v {
			v[i] = jsonKeys(v[i])
		}
	}
	return v
}

// An editor with the schema finds nothing wrong in what is right.
func TestSchemaTakesGoodScripts(t *testing.T) {
	schema := compiledSchema(t)
	for name, file := range goodScripts(t) {
		if err := schema.Validate(jsonOf(t, file.Data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An editor with the schema finds what a schema can.
func TestSchemaRefusesBadScripts(t *testing.T) {
	schema := compiledSchema(t)
	dir := os.DirFS("testdata/bad")
	for _, name := range []string{
		"version", "unknown-key", "unknown-key-of-grh", "missing-key", "wrong-kind", "wrong-kind-script", "no-kind", "two-kinds", "unknown-word",
		"unknown-word-of-value", "unknown-class", "unknown-method", "unknown-attribute", "unknown-status", "wrong-type-limit", "too-wide",
	} {
		data, err := fs.ReadFile(dir, name+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(jsonOf(t, data)) == nil {
			t.Errorf("%s: nothing is wrong with it", name)
		}
	}
}

// Fields and their values follow from the attribute.
func TestSchemaFields(t *testing.T) {
	schema := compiledSchema(t)
	for _, c := range []struct {
		send string
		ok   bool
	}{
		{`class: Subn, attribute: PortInfo, set: {PortState: Active, LMC: 7, M_Key: "env:KEY", Reserved29_3: 1}`, true},
		{`class: SM, attribute: PI, set: {PortState: Init}`, true},
		{`class: SubnDirected, attribute: PortInfo, set: {PortState: "${state}"}`, true},
		{`class: Subn, attribute: PortInfo, set: {PortStat: Active}`, false},
		{`class: Subn, attribute: PortInfo, set: {PortState: Actove}`, false},
		{`class: Subn, attribute: PortInfo, set: {LMC: 8}`, false},
		{`class: Subn, attribute: PortInfo, set: {NumPorts: 1}`, false},
		{`class: SubnAdm, attribute: NodeRecord, set: {LID: 5, NumPorts: 1, NodeInfo.NodeType: Switch, NodeInfo: {NodeType: Switch}}, mask: [LID, NodeInfo.NodeType]`, true},
		{`class: SubnAdm, attribute: NodeRecord, mask: [LIDD]`, false},
		{`class: SubnAdm, attribute: NodeRecord, set: {NodeInfo.NodeType: Swich}`, false},
		{`class: Subn, attribute: P_KeyTable, set: {P_Key: [0xffff], "P_Key[1]": 0x8001}`, true},
		{`class: Subn, attribute: 0xff00, set: {Anything: 1}`, true},
		{`class: Perf, attribute: NodeInfo, header: {M_Key: 1}`, true},
		{`class: Subn, attribute: NodeInfo, header: {M_Kay: 1}`, false},
	} {
		text := "version: 1\nsteps:\n  - send: {" + c.send + "}\n"
		if err := schema.Validate(jsonOf(t, []byte(text))); (err == nil) != c.ok {
			t.Errorf("%s: got %v", strings.TrimSpace(c.send), err)
		}
	}
}
