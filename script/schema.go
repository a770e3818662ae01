package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

// Schema is the JSON Schema (draft 2020-12) of scripts, for editors. It knows names
// as the field table writes them, and not the other spellings that Check takes;
// expressions are texts to it.
func Schema() []byte {
	root := text.Object{
		{Name: "$schema", Value: "https://json-schema.org/draft/2020-12/schema"},
		{Name: "$id", Value: "https://github.com/ibsm/ibsm/configs/script.schema.json"},
		{Name: "title", Value: "a script of ibsm"},
	}
	root = append(root, keysSchema(TopKeys)...)
	root = append(root, text.Member{Name: "$defs", Value: definitions()})
	// Neither the table nor JSON of strings and numbers can fail to be written.
	raw, _ := root.MarshalJSON()
	var out bytes.Buffer
	_ = json.Indent(&out, raw, "", "")
	out.WriteByte('\n')
	return out.Bytes()
}

// Shorthands for schemas.
func ref(name string) text.Object { return text.Object{{Name: "$ref", Value: "#/$defs/" + name}} }

func typed(t string) text.Object { return text.Object{{Name: "type", Value: t}} }

func anyOf(of ...text.Object) text.Object { return text.Object{{Name: "anyOf", Value: of}} }

func enumOf(words []string) text.Object { return text.Object{{Name: "enum", Value: words}} }

func matching(pattern string) text.Object { return append(typed("string"), member("pattern", pattern)) }

func listOf(of text.Object) text.Object { return append(typed("array"), member("items", of)) }

func mapOf(of any) text.Object {
	return append(typed("object"), member("additionalProperties", of))
}

func member(name string, value any) text.Member { return text.Member{Name: name, Value: value} }

// object is a map with certain keys and no others.
func object(properties text.Object, more ...text.Member) text.Object {
	o := append(typed("object"), member("properties", properties), member("additionalProperties", false))
	return append(o, more...)
}

// keysSchema is a map of the keys of a table.
func keysSchema(keys []Key) text.Object {
	properties, required := keyProperties(keys)
	o := object(properties)
	if len(required) > 0 {
		o = append(o, member("required", required))
	}
	return o
}

func keyProperties(keys []Key) (properties text.Object, required []string) {
	for i := range keys {
		k := &keys[i]
		s := text.Object{member("description", k.Doc)}
		if k.Default != "" {
			s = append(s, member("default", k.Default))
		}
		properties = append(properties, member(k.Name, append(s, valueSchema(k)...)))
		if k.Required {
			required = append(required, k.Name)
		}
	}
	return properties, required
}

// valueSchema is what a key takes.
func valueSchema(k *Key) text.Object {
	template := ref("template")
	scalar := ref("scalar")
	switch k.Type {
	case TypeInt:
		if k.Name == "version" && k.Max == 1 {
			return text.Object{member("const", 1)}
		}
		// Of 64 bits: 1<<64-1 would be rounded by readers that have no such numbers.
		n := append(typed("integer"), member("minimum", k.Min))
		if k.Max < 1<<53 {
			n = append(n, member("maximum", k.Max))
		}
		return anyOf(n, ref("number"), template)
	case TypeBool:
		return anyOf(typed("boolean"), template)
	case TypeFraction:
		return anyOf(append(typed("number"), member("minimum", 0), member("maximum", 1)), template)
	case TypeDuration:
		return anyOf(ref("duration"), template)
	case TypeWord:
		return anyOf(enumOf(k.Words), template)
	case TypeWords:
		return anyOf(enumOf(k.Words), listOf(enumOf(k.Words)))
	case TypeExpr, TypeName:
		return scalar
	case TypeExprs:
		return anyOf(scalar, listOf(scalar))
	case TypeBindings:
		return mapOf(scalar)
	case TypeValues:
		return mapOf(true)
	case TypeAddress:
		return anyOf(scalar, listOf(typed("integer")))
	case TypeClass, TypeMethod, TypeStatus, TypeAttribute, TypeSteps:
		return ref(typeDefs[k.Type])
	case TypeMethods:
		return listOf(ref("method"))
	case TypeHeader:
		return ref("header")
	case TypeRMPP:
		return ref("rmpp")
	case TypeFields:
		return typed("object")
	case TypeMask:
		return anyOf(listOf(typed("string")), scalar)
	case TypeGRH:
		return anyOf(typed("boolean"), keysSchema(GRHKeys), template)
	case TypeAnswers:
		return listOf(ref("answer"))
	case TypePath:
		return anyOf(enumOf([]string{"sa", "kernel"}), template)
	case TypeLoop:
		return anyOf(enumOf(loopWords), typed("array"), typed("string"))
	case TypeValue, TypeNotice:
		return text.Object{}
	}
	return scalar
}

var typeDefs = map[Type]string{
	TypeClass: "class", TypeMethod: "method", TypeStatus: "status", TypeAttribute: "attribute", TypeSteps: "steps",
}

// definitions are the parts that schemas refer to.
func definitions() text.Object {
	var statuses, attributes []string
	for _, s := range Statuses {
		statuses = append(statuses, s.Name)
	}
	for _, a := range layout.Attributes {
		for _, name := range namesOf(a) {
			if !slices.Contains(attributes, name) {
				attributes = append(attributes, name)
			}
		}
	}
	number, template := ref("number"), ref("template")
	byNumber := append(typed("integer"), member("minimum", 0), member("maximum", 0xffff))
	defs := text.Object{
		member("scalar", text.Object{member("type", []string{"string", "number", "boolean"})}),
		member("template", append(matching(`\$\{`), member("description", "${expression}"))),
		member("number", append(matching(`^(0[xX][0-9a-fA-F]+|[0-9]+)$`), member("description", "number in decimal or after 0x"))),
		member("duration", append(matching(`^([0-9.]+(ns|us|µs|ms|s|m|h))+$`), member("description", "such as 500ms or 2s"))),
		member("class", anyOf(enumOf(valueNames(layout.Class)), byNumber, number, template)),
		member("method", anyOf(enumOf(valueNames(layout.Method)), byNumber, number, template)),
		member("status", anyOf(enumOf(statuses), byNumber, number, template)),
		member("attribute", anyOf(enumOf(attributes), byNumber, number, template)),
		member("steps", listOf(ref("step"))),
		member("step", stepSchema()),
		member("header", headerSchema()),
		member("rmpp", fieldsSchema(rmppLayout)),
		member("answer", withFields(keysSchema(AnswerKeys), false)),
	}
	for _, k := range Kinds {
		defs = append(defs, member("step."+k.Name, kindSchema(k)))
	}
	for _, e := range layout.Enums {
		if len(e.Values) > 0 {
			defs = append(defs, member("enum."+e.Name, enumSchema(e)))
		}
	}
	return append(defs, attributeSchemas()...)
}

// stepSchema is a step: the common keys and one kind.
func stepSchema() text.Object {
	properties, _ := keyProperties(StepKeys)
	var one []text.Object
	for _, k := range Kinds {
		properties = append(properties, member(k.Name, append(text.Object{member("description", k.Doc)}, ref("step."+k.Name)...)))
		one = append(one, text.Object{member("required", []string{k.Name})})
	}
	return object(properties, member("oneOf", one))
}

func kindSchema(k *Kind) text.Object {
	var s text.Object
	switch {
	case k.Name == "send":
		return withFields(keysSchema(k.Keys), true)
	case len(k.Keys) > 0:
		s = keysSchema(k.Keys)
	}
	if !k.IsShort {
		return s
	}
	short := valueSchema(&Key{Name: k.Name, Type: k.Short})
	if s == nil {
		return short
	}
	return anyOf(short, s)
}

// withFields adds to the keys of a MAD which fields each attribute has.
func withFields(s text.Object, classed bool) text.Object {
	var rules []text.Object
	for _, a := range layout.Attributes {
		if !classed && ambiguous(a) {
			continue
		}
		when := text.Object{member("attribute", enumOf(namesOf(a)))}
		required := []string{"attribute"}
		if classed {
			when = append(when, member("class", enumOf(classNames(a.Class))))
			required = append(required, "class")
		}
		then := text.Object{member("set", ref("fields."+a.Struct.Name))}
		if classed && a.Struct.Mask != nil {
			then = append(then, member("mask", anyOf(listOf(enumOf(maskNames(a.Struct))), ref("scalar"))))
		}
		rules = append(rules, text.Object{
			member("if", text.Object{member("properties", when), member("required", required)}),
			member("then", text.Object{member("properties", then)}),
		})
	}
	return append(s, member("allOf", rules))
}

// ambiguous tells whether classes have different structures under the name of an
// attribute.
func ambiguous(a *layout.Attribute) bool {
	return slices.ContainsFunc(layout.Attributes, func(b *layout.Attribute) bool {
		return b.Struct != a.Struct && slices.ContainsFunc(namesOf(b), func(name string) bool { return slices.Contains(namesOf(a), name) })
	})
}

func namesOf(a *layout.Attribute) []string {
	names := []string{a.Name}
	if a.Short != "" && a.Short != a.Name {
		names = append(names, a.Short)
	}
	return append(names, a.Alias...)
}

// classNames are the names of a class; those of LID-routed SMPs are of directed
// ones too, which have the same attributes.
func classNames(class uint8) []string {
	var names []string
	for _, v := range layout.Class.Values {
		if v.Value == uint64(class) || class == uint8(mad.ClassSubnLIDRouted) && v.Value == uint64(mad.ClassSubnDirected) {
			names = append(append(names, v.Text), v.Alias...)
		}
	}
	return names
}

func maskNames(s *layout.Struct) []string {
	var names []string
	for _, name := range s.Mask {
		if name == "" {
			continue
		}
		for _, n := range []string{name, name[strings.LastIndexByte(name, '.')+1:]} {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

func valueNames(e *layout.Enum) []string {
	var names []string
	for _, v := range e.Values {
		for _, name := range append([]string{v.Text}, v.Alias...) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// enumSchema is the value of an enumeration. Sets of bits may be joined in many
// ways.
func enumSchema(e *layout.Enum) text.Object {
	n := append(typed("integer"), member("minimum", 0))
	if e.Sep != "" {
		return anyOf(enumOf(valueNames(e)), n, typed("string"))
	}
	return anyOf(enumOf(valueNames(e)), n, ref("number"), ref("template"))
}

func headerSchema() text.Object {
	properties := text.Object{}
	for _, class := range []mad.Class{mad.ClassSubnAdm, mad.ClassSubnLIDRouted, mad.ClassSubnDirected} {
		for _, m := range fieldProperties(headerLayout(class)) {
			if _, have := properties.Get(m.Name); !have {
				properties = append(properties, m)
			}
		}
	}
	return object(properties, reservedRows)
}

// reservedRows are the names that layout.ReservedName gives.
var reservedRows = member("patternProperties", text.Object{
	member(`^Reserved[0-9]+(_[1-7])?$`, text.Object{}), member(`\[[0-9]+\]`, text.Object{}),
})

func fieldsSchema(s *layout.Struct) text.Object { return object(fieldProperties(s), reservedRows) }

// attributeSchemas are the fields of each attribute, and of what they embed.
func attributeSchemas() text.Object {
	var defs text.Object
	add := func(s *layout.Struct) {
		if _, have := defs.Get("fields." + s.Name); !have {
			defs = append(defs, member("fields."+s.Name, fieldsSchema(s)))
		}
	}
	for _, a := range layout.Attributes {
		add(a.Struct)
		for i := range a.Struct.Fields {
			if of := a.Struct.Fields[i].Of; of != nil {
				add(of)
			}
		}
	}
	return defs
}

// fieldProperties are the fields by their names; those of an embedded structure
// also with its name before them.
func fieldProperties(s *layout.Struct) text.Object {
	properties := text.Object{}
	add := func(name string, schema text.Object) {
		if _, have := properties.Get(name); !have {
			properties = append(properties, member(name, schema))
		}
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		if f.IsReserved() || strings.HasPrefix(f.Name, "Reserved") {
			continue
		}
		add(f.Name, fieldSchema(f))
		if f.Kind != layout.KindStruct || f.Count > 0 {
			continue
		}
		for j := range f.Of.Fields {
			in := &f.Of.Fields[j]
			if in.IsReserved() {
				continue
			}
			of := ref("fields." + f.Of.Name + "/properties/" + in.Name)
			add(f.Name+"."+in.Name, of)
			if _, err := s.Find(in.Name); err == nil {
				add(in.Name, of)
			}
		}
	}
	return properties
}

func fieldSchema(f *layout.Field) text.Object {
	s := elementSchema(f)
	if f.Count > 0 {
		s = append(listOf(s), member("maxItems", f.Count))
	}
	what := fmt.Sprintf("%d bits", f.Bits())
	if f.Doc != "" {
		what += ": " + strings.ReplaceAll(f.Doc, "\n", " ")
	}
	return append(text.Object{member("description", what)}, s...)
}

func elementSchema(f *layout.Field) text.Object {
	number, template := ref("number"), ref("template")
	switch f.Kind {
	case layout.KindStruct:
		return ref("fields." + f.Of.Name)
	case layout.KindEnum:
		if len(f.Enum.Values) > 0 {
			return ref("enum." + f.Enum.Name)
		}
	case layout.KindFlag:
		return anyOf(typed("boolean"), enumOf([]string{"yes", "no", "on", "off"}), append(typed("integer"), member("minimum", 0), member("maximum", 1)), template)
	case layout.KindGID, layout.KindString, layout.KindGUID:
		return ref("scalar")
	case layout.KindBytes:
		return anyOf(ref("scalar"), listOf(typed("integer")))
	}
	n := append(typed("integer"), member("minimum", 0))
	if f.Len < 53 {
		n = append(n, member("maximum", uint64(1)<<f.Len-1))
	}
	if f.Key {
		return anyOf(n, number, template, matching("^(env|file):"))
	}
	return anyOf(n, number, template)
}
