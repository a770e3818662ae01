// Package render writes the results of a command: as text that reads like
// infiniband-diags, as JSON, NDJSON or YAML after one versioned schema, or as CSV
// (docs/command.md). Records are written as they come, in large pieces unless they
// are events (Out.Live).
package render

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ibsm/ibsm/mad/text"
)

// Schema names the version of the structured output. It changes when a member
// changes its meaning or goes away, not when one is added.
const Schema = "ibsm/1"

// The formats.
const (
	Text   = "text"
	JSON   = "json"
	NDJSON = "ndjson"
	YAML   = "yaml"
	CSV    = "csv"

	FormatList = Text + "|" + JSON + "|" + NDJSON + "|" + YAML + "|" + CSV
)

// Head says what the output is of.
type Head struct {
	Command string // "sa path"
	On      string // the endpoint
}

// Out is an output under way.
type Out struct {
	// Stopped is asked before each record; its error ends the output. nil: never.
	Stopped func() error

	w       *bufio.Writer
	format  format
	live    bool
	records int
}

// format is one way to write a document.
type format interface {
	begin(w *bufio.Writer, head Head) error
	// record writes record number n, from 0. plain is its text.
	record(w *bufio.Writer, n int, rec text.Object, plain []byte) error
	end(w *bufio.Writer, records int, errors []text.Object) error
}

// New starts a document of the named format.
func New(name string, w io.Writer, head Head) (*Out, error) {
	formats := map[string]format{Text: plainText{}, JSON: jsonDoc{}, NDJSON: lines{}, YAML: yamlDoc{}, CSV: &table{}}
	f, ok := formats[name]
	if !ok {
		return nil, fmt.Errorf("unknown output format %q: it is one of %s", name, FormatList)
	}
	o := &Out{w: bufio.NewWriterSize(w, 1<<16), format: f}
	return o, f.begin(o.w, head)
}

// Live has every record and line from now on go out at once: they are events, and
// somebody may be waiting for them.
func (o *Out) Live() { o.live = true }

func (o *Out) flush() error {
	if !o.live {
		return nil
	}
	return o.w.Flush()
}

// Records is the number of records so far.
func (o *Out) Records() int { return o.records }

// IsText tells whether text is written, which may have more for people to read.
func (o *Out) IsText() bool { return o.format == plainText{} }

// Text writes a line that belongs to no record, in text only.
func (o *Out) Text(plain []byte) error {
	if !o.IsText() {
		return nil
	}
	if _, err := o.w.Write(plain); err != nil {
		return err
	}
	return o.flush()
}

// Columns says, before the first record, what members all records will have: CSV
// has a header even if there are none. like is one of them, with any values.
func (o *Out) Columns(like text.Object) error {
	if t, ok := o.format.(*table); ok {
		return t.header(like)
	}
	return nil
}

// Record writes one record: its type and members for the structured formats, or
// its text.
func (o *Out) Record(kind string, members text.Object, plain []byte) error {
	if o.Stopped != nil {
		if err := o.Stopped(); err != nil {
			return err
		}
	}
	rec := append(text.Object{{Name: "type", Value: kind}}, members...)
	err := o.format.record(o.w, o.records, rec, plain)
	o.records++
	if err != nil {
		return err
	}
	return o.flush()
}

// Flush hands on what was written, for output that comes over a time.
func (o *Out) Flush() error { return o.w.Flush() }

// End ends the document with the errors that there were; without any, it is
// complete.
func (o *Out) End(errors ...text.Object) error {
	for i, e := range errors {
		errors[i] = append(text.Object{{Name: "type", Value: "error"}}, e...)
	}
	if err := o.format.end(o.w, o.records, errors); err != nil {
		return err
	}
	return o.w.Flush()
}

type plainText struct{}

func (plainText) begin(*bufio.Writer, Head) error { return nil }

func (plainText) record(w *bufio.Writer, _ int, _ text.Object, plain []byte) error {
	_, err := w.Write(plain)
	return err
}

func (plainText) end(*bufio.Writer, int, []text.Object) error { return nil }

// jsonDoc is one JSON object, with a line for each record.
type jsonDoc struct{}

func (jsonDoc) begin(w *bufio.Writer, head Head) error {
	_, err := fmt.Fprintf(w, "{\"schema\":%s,\"command\":%s,\"on\":%s,\"records\":[", quote(Schema), quote(head.Command), quote(head.On))
	return err
}

func (jsonDoc) record(w *bufio.Writer, n int, rec text.Object, _ []byte) error {
	return jsonItem(w, n, rec)
}

func (jsonDoc) end(w *bufio.Writer, records int, errors []text.Object) error {
	newline := ""
	if records > 0 {
		newline = "\n"
	}
	fmt.Fprintf(w, "%s],\"errors\":[", newline)
	for i, e := range errors {
		if err := jsonItem(w, i, e); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "],\"complete\":%t}\n", len(errors) == 0)
	return err
}

func jsonItem(w *bufio.Writer, n int, o text.Object) error {
	var b bytes.Buffer
	if err := jsonLine(&b, o); err != nil {
		return err
	}
	if n > 0 {
		w.WriteByte(',')
	}
	w.WriteByte('\n')
	_, err := w.Write(bytes.TrimSuffix(b.Bytes(), []byte{'\n'}))
	return err
}

// lines is one JSON object a line: begin, the records, errors, end.
type lines struct{}

func (lines) begin(w *bufio.Writer, head Head) error {
	return jsonLine(w, text.Object{{Name: "type", Value: "begin"}, {Name: "schema", Value: Schema},
		{Name: "command", Value: head.Command}, {Name: "on", Value: head.On}})
}

func (lines) record(w *bufio.Writer, _ int, rec text.Object, _ []byte) error {
	return jsonLine(w, rec)
}

func (lines) end(w *bufio.Writer, records int, errors []text.Object) error {
	for _, e := range errors {
		if err := jsonLine(w, e); err != nil {
			return err
		}
	}
	return jsonLine(w, text.Object{{Name: "type", Value: "end"}, {Name: "records", Value: records},
		{Name: "complete", Value: len(errors) == 0}})
}

// jsonLine writes o in one line, with the characters of HTML as they are.
func jsonLine(w io.Writer, o text.Object) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(o)
}

// yamlDoc is the document of jsonDoc in YAML.
type yamlDoc struct{}

func (yamlDoc) begin(w *bufio.Writer, head Head) error {
	_, err := fmt.Fprintf(w, "schema: %s\ncommand: %s\n\"on\": %s\nrecords:", Schema, head.Command, quote(head.On))
	return err
}

func (yamlDoc) record(w *bufio.Writer, n int, rec text.Object, _ []byte) error {
	if n == 0 {
		w.WriteByte('\n')
	}
	return yamlItem(w, rec)
}

func (yamlDoc) end(w *bufio.Writer, records int, errors []text.Object) error {
	if records == 0 {
		w.WriteString(" []\n")
	}
	w.WriteString("errors:")
	if len(errors) == 0 {
		w.WriteString(" []")
	}
	w.WriteByte('\n')
	for _, e := range errors {
		if err := yamlItem(w, e); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "complete: %t\n", len(errors) == 0)
	return err
}

// yamlItem writes an item of a block sequence.
func yamlItem(w *bufio.Writer, o text.Object) error {
	node, err := yamlNode(o)
	if err != nil {
		return err
	}
	b, err := yaml.Marshal([]*yaml.Node{node})
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		w.WriteString("  ")
		if _, err := w.WriteString(line); err != nil {
			return err
		}
	}
	return nil
}

// yamlNode keeps the order of members, which a Go map would lose.
func yamlNode(v any) (*yaml.Node, error) {
	node := &yaml.Node{}
	var parts []any // of the node
	switch v := v.(type) {
	case text.Object:
		node.Kind = yaml.MappingNode
		for _, m := range v {
			parts = append(parts, m.Name, m.Value)
		}
	case []any:
		node.Kind = yaml.SequenceNode
		parts = v
	default:
		err := node.Encode(v)
		if v == "=" || v == "<<" { // which readers of YAML 1.1 take for more than text
			node.Style = yaml.DoubleQuotedStyle
		}
		return node, err
	}
	for _, part := range parts {
		child, err := yamlNode(part)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, child)
	}
	return node, nil
}

func quote(s string) string {
	b, _ := json.Marshal(s) // strings always marshal
	return string(b)
}
