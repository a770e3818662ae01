package render

import (
	"bytes"
	"encoding/json"
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
	for i := range records {
		rec := text.Object{{Name: "LID", Value: uint64(i + 1)}, {Name: "GUID", Value: "0x0000000000000001"},
			{Name: "NodeInfo", Value: text.Object{{Name: "Name", Value: "a<b>&\"c\""}, {Name: "Keys", Value: []any{uint64(1), "x"}}}}}
		if err := o.Record("NodeRecord", rec, []byte("NodeRecord dump:\n")); err != nil {
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
			"NodeInfo": m{"Name": `a<b>&"c"`, "Keys": []any{1.0, "x"}}}
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

func TestUnknownFormat(t *testing.T) {
	if _, err := New("xml", nil, Head{}); err == nil || !strings.Contains(err.Error(), "text|json|ndjson|yaml") {
		t.Errorf("New(xml): %v does not list the formats", err)
	}
}
