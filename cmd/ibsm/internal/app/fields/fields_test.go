package fields_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

// ibsm runs the command and gives its output.
func ibsm(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := app.Run(t.Context(), app.Host{Args: append([]string{"ibsm"}, args...), Stdout: &stdout, Stderr: &stderr})
	if code != 0 || stderr.Len() > 0 {
		t.Fatalf("%q: exit code %d: %s", args, code, stderr.String())
	}
	return stdout.String()
}

// records runs the command and reads its records.
func records[T any](t *testing.T, args ...string) []T {
	t.Helper()
	var document struct{ Records []T }
	if err := json.Unmarshal([]byte(ibsm(t, append([]string{"-o", "json", "fields"}, args...)...)), &document); err != nil {
		t.Fatal(err)
	}
	return document.Records
}

type attribute struct {
	Class, Name, Short, Structure, Modifier, IBA string
	ID                                           uint16
	Size                                         int
	Aliases, Methods                             []string
}

type field struct {
	Class, Attribute, Name, Kind, Of, Doc, IBA string
	Byte, Bit, Bits, Count                     int
	Mask                                       []int
	Labels                                     []string
	Secret                                     bool
	Values                                     []struct {
		Value   uint64
		Name    string
		Aliases []string
	}
	Variants []struct{ Structure, When string }
}

func (f *field) off() int { return f.Byte*8 + f.Bit }

func (f *field) end() int { return f.off() + f.Bits*max(f.Count, 1) }

// Every attribute of the table is listed.
func TestAttributes(t *testing.T) {
	listed := records[attribute](t)
	if len(listed) != len(layout.Attributes) {
		t.Fatalf("%d attributes are listed, the table has %d", len(listed), len(layout.Attributes))
	}
	plain := strings.Split(ibsm(t, "fields"), "\n")
	for i, a := range layout.Attributes {
		methods := []string{}
		for _, m := range a.Methods {
			methods = append(methods, mad.Method(m).String())
		}
		want := attribute{
			Class: mad.Class(a.Class).String(), ID: a.ID, Name: a.Name, Short: a.Short, Aliases: append([]string{}, a.Alias...),
			Methods: methods, Structure: a.Struct.Name, Size: a.Struct.Size, Modifier: a.Modifier, IBA: a.Struct.IBA,
		}
		if d := cmp.Diff(want, listed[i]); d != "" {
			t.Errorf("%s (-table +listed):\n%s", a.Name, d)
		}
		for _, part := range slices.Concat([]string{want.Class, fmt.Sprintf("0x%04x", a.ID), a.Name, a.Short, a.Modifier}, a.Alias, methods) {
			if !strings.Contains(plain[i+1], part) {
				t.Errorf("%s: the line has no %q: %s", a.Name, part, plain[i+1])
			}
		}
	}
}

var number = regexp.MustCompile(`\[\d+\]`)

// check compares what is shown of a structure with the table: the rows tile the
// structure, and every field, every value and every bit of the component mask is
// there.
func check(t *testing.T, s *layout.Struct, class mad.Class, shown []field, base int) {
	t.Helper()
	at := base
	var mask []int
	names := map[string]bool{}
	for _, f := range shown {
		mask = append(mask, f.Mask...)
		if !strings.Contains(f.Name, ".") {
			if f.off() != at {
				t.Errorf("%s.%s is at bit %d, the row before it ends at %d", s.Name, f.Name, f.off(), at)
			}
			at = f.end()
		}
		if f.Kind == "reserved" || f.Kind == "structure" {
			continue
		}
		names[f.Name] = true
		of, err := s.Find(f.Name)
		if err != nil || of.Off != f.off()-base || of.Len != f.Bits || of.Count != f.Count || of.Key != f.Secret || of.Doc != f.Doc || len(of.Variants) != len(f.Variants) {
			t.Errorf("%s.%s is shown as %+v, the table has %+v, %v", s.Name, f.Name, f, of, err)
		}
		if of.Kind == layout.KindEnum {
			checkValues(t, &f, &of, of.Enum)
		} else if len(f.Values) > 0 && class != mad.ClassSubnAdm {
			t.Errorf("%s.%s has names of values", s.Name, f.Name)
		}
		for _, label := range f.Labels {
			if _, err := text.Get(s, make([]byte, s.Size), label); err != nil {
				t.Errorf("%s.%s: the label %q names no field: %v", s.Name, f.Name, label, err)
			}
		}
	}
	if at != base+s.Size*8 {
		t.Errorf("%s: the rows end at bit %d", s.Name, at)
	}
	for _, f := range s.Leaves() {
		if name := number.ReplaceAllString(f.Name, "[0]"); !names[name] {
			t.Errorf("%s: %s is not shown", s.Name, name)
		}
	}
	var bits []int
	for bit, name := range s.Mask {
		if name != "" {
			bits = append(bits, bit)
		}
	}
	slices.Sort(mask)
	if !slices.Equal(mask, bits) {
		t.Errorf("%s: bits of the component mask %v, want %v", s.Name, mask, bits)
	}
}

// checkValues wants the values that fit the field, and no others.
func checkValues(t *testing.T, f *field, of *layout.Field, e *layout.Enum) {
	t.Helper()
	i := 0
	for _, v := range e.Values {
		if v.Value >= 1<<of.Len {
			continue
		}
		if i >= len(f.Values) || f.Values[i].Value != v.Value || f.Values[i].Name != v.Text || !slices.Equal(f.Values[i].Aliases, v.Alias) {
			t.Errorf("%s.%s: value %d (%s) is not shown as it is", f.Attribute, f.Name, v.Value, v.Text)
		}
		i++
	}
	if i != len(f.Values) || f.Of != e.Name {
		t.Errorf("%s.%s: %d values of %s are shown, want %d of %s", f.Attribute, f.Name, len(f.Values), f.Of, i, e.Name)
	}
}

// Every field of every attribute, found by each of its names and its number.
func TestFieldsOfAttributes(t *testing.T) {
	for _, a := range layout.Attributes {
		class := mad.Class(a.Class)
		shown := records[field](t, a.Name, "--class", class.String())
		check(t, a.Struct, class, shown, 0)
		plain := ibsm(t, "fields", a.Name, "--class", class.String())
		for _, f := range shown {
			line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(f.Name) + fmt.Sprintf(` +%d\.%d +%d .*`, f.Byte, f.Bit, f.Bits) + regexp.QuoteMeta(f.Kind))
			if !line.MatchString(plain) {
				t.Errorf("%s: the text has no line of %s", a.Name, f.Name)
			}
			for _, v := range f.Values {
				if !regexp.MustCompile(`(?m)^    \w+ +` + regexp.QuoteMeta(v.Name)).MatchString(plain) {
					t.Errorf("%s: the text has no value %s", a.Name, v.Name)
				}
			}
		}
		for _, name := range slices.Concat([]string{a.Struct.Name, fmt.Sprintf("0x%x", a.ID), fmt.Sprint(a.ID), strings.ToUpper(a.Name), a.Short}, a.Alias) {
			if name != "" && !slices.ContainsFunc(records[field](t, name), func(f field) bool { return f.Class == class.String() && f.Attribute == a.Name }) {
				t.Errorf("%s of %v is not found by %q", a.Name, class, name)
			}
		}
	}
}

// Structures that no attribute carries are found by their names. Headers are where
// IBA 13.6.2.1, 14.2.1.2 and 15.2.1.1 have them.
func TestFieldsOfStructures(t *testing.T) {
	base := map[string]int{"RMPPHeader": 24, "SAHeader": 36, "SMPDirectedPaths": 128}
	help := ibsm(t, "fields", "--help")
	for _, g := range layout.Groups {
		for _, s := range g.Structs {
			shown := records[field](t, s.Name)
			if slices.ContainsFunc(layout.Attributes, func(a *layout.Attribute) bool { return a.Struct == s }) {
				continue
			}
			check(t, s, 0, shown, base[s.Name]*8)
			if !strings.Contains(help, s.Name) {
				t.Errorf("the help does not name %s", s.Name)
			}
		}
	}
}

var ready = regexp.MustCompile(`(?m)^( +)# (\S+: .*,(?: +#.*)?)$`)

// stepsOf gives the steps that --yaml prints for an attribute, as they are and
// with every field put in.
func stepsOf(t *testing.T, a *layout.Attribute) (bare, full string) {
	t.Helper()
	bare = ibsm(t, "fields", "--yaml", a.Name, "--class", mad.Class(a.Class).String())
	return bare, ready.ReplaceAllString(bare, "$1$2")
}

// What --yaml prints names the attribute, and takes every field once it is no
// comment.
func TestSteps(t *testing.T) {
	type step struct {
		Send struct {
			Class, Method, Attribute string
			Set                      yaml.Node
		}
	}
	read := func(doc string) step {
		t.Helper()
		var steps []step
		if err := yaml.Unmarshal([]byte(doc), &steps); err != nil || len(steps) != 1 {
			t.Fatalf("%d steps, %v:\n%s", len(steps), err, doc)
		}
		return steps[0]
	}
	for _, a := range layout.Attributes {
		bare, full := stepsOf(t, a)
		if n := len(read(bare).Send.Set.Content); n != 0 {
			t.Errorf("%s: %d fields are set", a.Name, n)
		}
		send := read(full).Send
		class, method := make([]byte, 24), make([]byte, 24)
		_, err1 := text.Set(layout.Header, class, "MgmtClass", send.Class)
		_, err2 := text.Set(layout.Header, method, "Method", send.Method)
		if err1 != nil || err2 != nil || layout.FindAttribute(class[mad.OffClass], a.ID) != a || !a.Allows(method[mad.OffMethod]) {
			t.Errorf("%s: sent as %s %s: %v %v", a.Name, send.Class, send.Method, err1, err2)
		}
		named := map[string]bool{}
		b := make([]byte, a.Struct.Size)
		for i := 0; i < len(send.Set.Content); i += 2 {
			key, value := send.Set.Content[i].Value, send.Set.Content[i+1].Value
			var n int
			if _, err := fmt.Sscanf(value, `${repeat("00", %d)}`, &n); err == nil {
				value = strings.Repeat("00", n)
			}
			set, err := text.Set(a.Struct, b, key, value)
			if err != nil {
				t.Errorf("%s: %v", a.Name, err)
				continue
			}
			named[set[0].Name] = true
		}
		for _, f := range a.Struct.Leaves() {
			name := number.ReplaceAllString(f.Name, "[0]")
			if f.Count > 0 {
				name += "[0]"
			}
			if !named[name] {
				t.Errorf("%s: the step has no field %s", a.Name, name)
			}
		}
	}
}
