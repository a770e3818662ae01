package render

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/ibsm/ibsm/mad/text"
)

func write(t *testing.T, format string, records int, errors ...text.Object) string {
	t.Helper()
	var b bytes.Buffer
	o, err := New(format, &b, Head{Command: "sa table", On: "sim:demo"})
	if err != nil {
		t.Fatal(err)
	}
	record := func(i int) text.Object {
		return text.Object{{Name: "LID", Value: uint64(i + 1)}, {Name: "GUID", Value: "0x0000000000000001"},
			{Name: "NodeInfo", Value: text.Object{{Name: "Name", Value: "a<b>&\"c\""}, {Name: "Keys", Value: []any{uint64(1), "=", text.Object{{Name: "on", Value: "<<"}}}}}}}
	}
	if err := o.Columns(record(0)); err != nil {
		t.Fatal(err)
	}
	if err := o.Text([]byte("# heading\n")); err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if err := o.Record("NodeRecord", record(i), []byte("NodeRecord dump:\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.End(errors...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The documents as they are documented, whatever the number of records.
func TestDocuments(t *testing.T) {
	e := text.Object{{Name: "exit", Value: 3}, {Name: "message", Value: "no answer"}}
	type m = map[string]any
	record := func(lid float64) m {
		return m{"type": "NodeRecord", "LID": lid, "GUID": "0x0000000000000001",
			"NodeInfo": m{"Name": `a<b>&"c"`, "Keys": []any{1.0, "=", m{"on": "<<"}}}}
	}
	for _, tt := range []struct {
		records int
		errors  []text.Object
		want    m
	}{
		{0, nil, m{"records": []any{}, "errors": []any{}, "complete": true}},
		{2, nil, m{"records": []any{record(1), record(2)}, "errors": []any{}, "complete": true}},
		{1, []text.Object{e, e}, m{"records": []any{record(1)}, "complete": false,
			"errors": []any{m{"type": "error", "exit": 3.0, "message": "no answer"}, m{"type": "error", "exit": 3.0, "message": "no answer"}}}},
	} {
		tt.want["schema"], tt.want["command"], tt.want["on"] = "ibsm/1", "sa table", "sim:demo"
		clone := func() (c []text.Object) {
			for _, e := range tt.errors {
				c = append(c, append(text.Object{}, e...))
			}
			return c
		}
		var got m
		if err := json.Unmarshal([]byte(write(t, JSON, tt.records, clone()...)), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("json (-want +got):\n%s", d)
		}

		// YAML is the same document: through JSON, numbers are alike.
		var doc any
		if err := yaml.Unmarshal([]byte(write(t, YAML, tt.records, clone()...)), &doc); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("yaml (-want +got):\n%s", d)
		}

		// NDJSON is its parts, line by line.
		out := strings.Split(strings.TrimSuffix(write(t, NDJSON, tt.records, clone()...), "\n"), "\n")
		var types []string
		for _, line := range out {
			var rec struct{ Type string }
			if err := json.Unmarshal([]byte(line), &rec); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			types = append(types, rec.Type)
		}
		want := []string{"begin"}
		for range tt.records {
			want = append(want, "NodeRecord")
		}
		for range tt.errors {
			want = append(want, "error")
		}
		if d := cmp.Diff(append(want, "end"), types); d != "" {
			t.Errorf("ndjson (-want +got):\n%s", d)
		}
	}
}

func TestMembersKeepTheirOrder(t *testing.T) {
	for _, format := range []string{JSON, YAML, NDJSON} {
		out := write(t, format, 1)
		last := 0
		for _, name := range []string{"type", "LID", "GUID", "NodeInfo", "Name", "Keys"} {
			i := strings.Index(out[last:], name)
			if i < 0 {
				t.Fatalf("%s: %s is not where it belongs in:\n%s", format, name, out)
			}
			last += i
		}
	}
}

// Lines without a record are for people.
func TestText(t *testing.T) {
	if got, want := write(t, Text, 2), "# heading\nNodeRecord dump:\nNodeRecord dump:\n"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	for _, format := range []string{JSON, YAML, NDJSON, CSV} {
		if out := write(t, format, 1); strings.Contains(out, "# heading") {
			t.Errorf("%s has the heading of text:\n%s", format, out)
		}
	}
}

// RFC 4180, as Go's reader takes it: a header in any case, paths of nested
// members, no place for errors.
func TestCSV(t *testing.T) {
	head := []string{"LID", "GUID", "NodeInfo.Name", "NodeInfo.Keys"}
	row := func(lid string) []string { return []string{lid, "0x0000000000000001", `a<b>&"c"`, "1 = <<"} }
	for records, want := range [][][]string{{head}, {head, row("1")}, {head, row("1"), row("2")}} {
		got, err := csv.NewReader(strings.NewReader(write(t, CSV, records, text.Object{{Name: "message", Value: "no answer"}}))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

func TestCells(t *testing.T) {
	weight := func(vl, weight uint64) text.Object {
		return text.Object{{Name: "VL", Value: vl}, {Name: "Weight", Value: weight}}
	}
	for _, tt := range []struct {
		value any
		want  string
	}{
		{uint64(7), "7"},
		{true, "true"},
		{"a\xffb", "a\ufffdb"},
		{"line\n\"two\"", "line\n\"two\""},
		{"=1+1", "=1+1"},
		{[]any{}, ""},
		{[]any{uint64(0), "0x01"}, "0 0x01"},
		{[]any{weight(0, 64), weight(1, 4)}, "0:64 1:4"},
		// A structure where the header has one column, as the details of a notice.
		{weight(3, 5), "VL=3 Weight=5"},
	} {
		var b bytes.Buffer
		o, err := New(CSV, &b, Head{})
		if err != nil {
			t.Fatal(err)
		}
		column := text.Object{{Name: "value", Value: ""}, {Name: "last", Value: ""}}
		err = errors.Join(o.Columns(column), o.Record("x", text.Object{{Name: "value", Value: tt.value}}, nil), o.End())
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&b).ReadAll()
		if err != nil || len(rows) != 2 || rows[1][0] != tt.want || rows[1][1] != "" {
			t.Errorf("%#v: rows %q, %v; want %q", tt.value, rows, err, tt.want)
		}
	}
}

// A member without a column is not lost in silence.
func TestNoColumn(t *testing.T) {
	o, err := New(CSV, &bytes.Buffer{}, Head{})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Columns(text.Object{{Name: "LID", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	err = o.Record("x", text.Object{{Name: "NodeInfo", Value: text.Object{{Name: "VendorID", Value: 1}}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "NodeInfo.VendorID") {
		t.Errorf("error %v", err)
	}
}

func TestUnknownFormat(t *testing.T) {
	if _, err := New("xml", nil, Head{}); err == nil || !strings.Contains(err.Error(), "text|json|ndjson|yaml|csv") {
		t.Errorf("New(xml): %v does not list the formats", err)
	}
}

// Events go out at once, in every format; other records when there are many.
func TestLive(t *testing.T) {
	for _, name := range []string{Text, JSON, NDJSON, YAML, CSV} {
		var b bytes.Buffer
		o, err := New(name, &b, Head{Command: "listen"})
		if err != nil {
			t.Fatal(err)
		}
		rec := text.Object{{Name: "peer", Value: "first"}}
		if err := o.Columns(rec); err != nil {
			t.Fatal(err)
		}
		if err := o.Record("Request", rec, []byte("first\n")); err != nil || b.Len() != 0 {
			t.Errorf("%s: %d bytes and %v before Live", name, b.Len(), err)
		}
		o.Live()
		if err := o.Record("Request", text.Object{{Name: "peer", Value: "second"}}, []byte("second\n")); err != nil || !strings.Contains(b.String(), "second") {
			t.Errorf("%s: %v, %q after Live", name, err, b.String())
		}
	}
}
