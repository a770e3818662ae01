package script

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

// Each field of each structure is what ibsm's JSON output has for it, whatever the
// bytes.
func TestFieldsAreThoseOfJSON(t *testing.T) {
	for _, group := range layout.Groups {
		for _, s := range group.Structs {
			b := make([]byte, s.Size)
			for i := range b {
				b[i] = byte(i*37 + 11)
			}
			for _, bytes := range [][]byte{b, make([]byte, s.Size)} {
				o, err := text.ObjectOfBytes(s, bytes)
				if err != nil {
					t.Fatal(err)
				}
				r := &record{s, bytes}
				for _, m := range o {
					got, err := r.field(m.Name)
					want, _ := json.Marshal(m.Value)
					if have, _ := json.Marshal(got); err != nil || string(have) != string(want) {
						t.Errorf("%s.%s: %s, %v; want %s", s.Name, m.Name, have, err, want)
					}
				}
			}
		}
	}
}

// Without a detour over text, as with it.
func TestSetField(t *testing.T) {
	tests := []struct {
		of    *layout.Struct
		name  string
		value any
		text  string
	}{
		{layout.PortInfo, "LID", 5, "5"},
		{layout.PortInfo, "lid", 5, "5"},
		{layout.PortInfo, "M_Key", "0x0000000000000005", "5"},
		{layout.PortInfo, "PortState", "Active", "Active"},
		{layout.PortInfo, "NeighborMTU", "4096", "5"},
		{layout.PortInfo, "NeighborMTU", 4096, "4096"},
		{layout.PortInfo, "ClientReregister", true, "1"},
		{layout.PortInfo, "ClientReregister", 1, "true"},
		{layout.PathRecord, "DGID", "fe80::1", "fe80::1"},
		{layout.PathRecord, "mtu", 0x84, "0x84"},
		{layout.NodeRecord, "NodeInfo.NodeGUID", "0x5", "5"},
		{layout.ServiceRecord, "ServiceKey", hexBytes(slices.Repeat([]byte{0xab}, 16)), strings.Repeat("ab", 16)},
	}
	for _, tt := range tests {
		got, want := make([]byte, tt.of.Size), make([]byte, tt.of.Size)
		fields, err := setField(tt.of, got, tt.name, tt.value)
		wantFields, wantErr := text.Set(tt.of, want, tt.name, tt.text)
		if err != nil || wantErr != nil || string(got) != string(want) || len(fields) != len(wantFields) || fields[0].Name != wantFields[0].Name {
			t.Errorf("%s=%v: %x %v, want %x %v", tt.name, tt.value, got, err, want, wantErr)
		}
	}
}

func TestSetParts(t *testing.T) {
	b := make([]byte, layout.PKeyTable.Size)
	set, err := setField(layout.PKeyTable, b, layout.PKeyTable.Fields[0].Name, []any{0xffff, "0x8001", 2})
	if err != nil || hex.EncodeToString(b[:8]) != "ffff800100020000" || set[len(set)-1].Name != layout.PKeyTable.Fields[0].Name {
		t.Errorf("% x, %v, %v", b[:8], set, err)
	}
	node := recordOf(&mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 12})
	rec := make([]byte, layout.NodeRecord.Size)
	if _, err := setField(layout.NodeRecord, rec, "NodeInfo", node); err != nil || string(rec[4:4+len(node.b)]) != string(node.b) {
		t.Errorf("a structure in a structure: % x, %v", rec, err)
	}
	clear(rec)
	if _, err := setField(layout.NodeRecord, rec, "NodeInfo", map[string]any{"NodeType": "Switch", "NumPorts": 12}); err != nil || string(rec[4:4+len(node.b)]) != string(node.b) {
		t.Errorf("a map for a structure: % x, %v", rec, err)
	}
	for name, value := range map[string]any{
		"P_KeyTableBlock": slices.Repeat([]any{1}, 33),
		"Nonsense":        []any{1},
	} {
		if _, err := setField(layout.PKeyTable, b, name, value); err == nil {
			t.Errorf("%s takes %v", name, value)
		}
	}
	for name, value := range map[string]any{"LID": []any{1, 2}, "M_Key": map[string]any{"x": 1}, "PortState": 77, "GIDPrefix": -1} {
		if _, err := setField(layout.PortInfo, make([]byte, 64), name, value); err == nil {
			t.Errorf("%s takes %v", name, value)
		}
	}
}

func TestShow(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want string
	}{
		{nil, "nothing"}, {"a\"b", `"a\"b"`}, {5, "5"}, {2.5, "2.5"}, {true, "true"}, {hexBytes{1, 2}, `"0102"`},
		{[]any{1, "x"}, `[1,"x"]`}, {map[string]any{"b": 1, "a": "<"}, `{"a":"<","b":1}`},
		{make([]any, 9), "9 elements, the first is nothing"},
		{recordOf(&mad.LedInfo{LedMask: true}), `LedInfo {"LedMask":true}`},
	} {
		if got := show(tt.v); got != tt.want {
			t.Errorf("%v is shown as %s, want %s", tt.v, got, tt.want)
		}
	}
	if got := show(strings.Repeat("é", 500)); len(got) > maxShown+10 || !strings.HasSuffix(got, `..."`) || strings.Contains(got, `\x`) {
		t.Errorf("a long text is shown as %s", got)
	}
}

func TestReveal(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("IBSM_TEST_EMPTY", " ")
	m := new(masker)
	got, err := m.reveal("file:" + write("key", "0xabcdef\n"))
	if err != nil || got != "0xabcdef" {
		t.Errorf("%q, %v", got, err)
	}
	if got := m.text("0xABCDEF 0xabcdef 0x0000000000abcdef 11259375 5"); strings.Contains(got, "abcdef") || strings.Contains(got, "112593") || !strings.HasSuffix(got, " 5") {
		t.Errorf("shown: %s", got)
	}
	if got, err := m.reveal("5"); err != nil || got != "5" || m.text("5") != "5" {
		t.Errorf("what is no secret: %q, %v", got, err)
	}
	for _, s := range []string{"env:IBSM_TEST_NO_SUCH_KEY", "env:IBSM_TEST_EMPTY", "file:" + dir, "file:" + dir + "/none",
		"file:" + write("empty", ""), "file:" + write("long", strings.Repeat("1", 5000))} {
		if got, err := m.reveal(s); err == nil {
			t.Errorf("%s gives %q", s, got)
		}
	}
}

// The keys that the field table knows are blanked, wherever they stand, and nothing
// else is.
func TestBlankKeys(t *testing.T) {
	key := []byte{0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4}
	mk := func(class, method byte, attribute uint16, size int, keys ...int) []byte {
		b := make([]byte, size)
		b[0], b[1], b[3], b[16], b[17] = 1, class, method, byte(attribute>>8), byte(attribute)
		for _, at := range keys {
			copy(b[at:], key)
		}
		return b
	}
	table := mk(3, 0x92, 0x12, 56+2*72, 36, 56+4, 56+72+4) // PortInfoRecords of 68 bytes, M_Key at 4 (IBA 15.2.5.3)
	table[25], table[26], table[45] = 1, 3, 9              // the first segment
	for name, b := range map[string][]byte{
		"LID-routed": mk(1, 2, 0x15, 256, 24, 64), "directed": mk(0x81, 2, 0x15, 256, 24, 64), "SMInfo": mk(1, 1, 0x20, 256, 24, 64+8),
		"SA": mk(3, 1, 0x11, 256, 36), "table": table, "service": mk(3, 2, 0x31, 256, 36, 56+32),
	} {
		blank := blankKeys(b)
		if strings.Contains(string(blank), string(key)) {
			t.Errorf("%s: % x", name, blank)
		}
		if want := strings.ReplaceAll(string(b), string(key), string(make([]byte, 8))); string(blank) != want {
			t.Errorf("%s: more than the keys is blank", name)
		}
	}
	if got := blankKeys(key); !reflect.DeepEqual(got, key) {
		t.Errorf("what is no MAD: % x", got)
	}
}
