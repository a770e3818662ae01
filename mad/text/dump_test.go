package text_test

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

// golden is a structure and what the diags print for it.
type golden struct {
	name string
	data []byte
	want string
}

// readGolden reads a file of testdata: a line of hexadecimal digits, the name
// of the structure, and the lines that the diags print.
func readGolden(t *testing.T, file string) []golden {
	t.Helper()
	all, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	isHex := regexp.MustCompile(`^[0-9a-f]{20,}$`)
	var cases []golden
	lines := strings.SplitAfter(string(all), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSuffix(lines[i], "\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case isHex.MatchString(line):
			data, err := hex.DecodeString(line)
			if err != nil {
				t.Fatal(err)
			}
			i++
			cases = append(cases, golden{name: strings.TrimSpace(lines[i]), data: data})
		default:
			cases[len(cases)-1].want += lines[i]
		}
	}
	if len(cases) < 10 {
		t.Fatalf("%s holds only %d cases", file, len(cases))
	}
	return cases
}

func structNamed(t testing.TB, name string) *layout.Struct {
	t.Helper()
	for _, g := range layout.Groups {
		for _, s := range g.Structs {
			if s.Name == name {
				return s
			}
		}
	}
	t.Fatalf("no structure %s", name)
	return nil
}

// TestDumpLikeDiags compares with the diags' own output, byte for byte.
func TestDumpLikeDiags(t *testing.T) {
	for _, file := range []string{"smpquery.txt", "saquery.txt"} {
		for _, c := range readGolden(t, file) {
			got, err := text.AppendDump(nil, structNamed(t, c.name), c.data, text.Options{ShowKeys: true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("%s %x (-diags +ours):\n%s", c.name, c.data, diff)
			}
		}
	}
}

// The forms below follow the printf calls of smpquery.c: node_desc, port_info,
// pkey_table and guid_info.
func TestDumpSpecialForms(t *testing.T) {
	name := mad.MakeNodeDescription("h1 HCA-1")
	long := mad.MakeNodeDescription(strings.Repeat("n", 40))
	keys := mad.PKeyTable{PKey: [32]mad.PKey{0xffff, 0x8001, 30: 0x7fff}}
	guids := mad.GUIDInfo{GUID: [8]mad.GUID{0x0002c90300001234, 7: 1}}
	for _, c := range []struct {
		of   mad.Structure
		opts text.Options
		want string // the first lines
	}{
		{&name, text.Options{}, "Node Description:........................h1 HCA-1\n"},
		{&long, text.Options{}, "Node Description:." + strings.Repeat("n", 40) + "\n"},
		{&mad.PortInfo{MKey: 0x1234}, text.Options{}, "Mkey:............................<not displayed>\nGidPrefix:.......................0x0000000000000000\n"},
		{&keys, text.Options{First: 32}, "  32: 0xffff 0x8001 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000\n  40: "},
		{&guids, text.Options{}, "   0: 0x0002c90300001234 0x0000000000000000\n   2: "},
	} {
		got := text.Dump(c.of, c.opts)
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got\n%s\nwant at the start\n%s", c.of.Layout().Name, got, c.want)
		}
	}
}

// A structure of another length is refused, whatever is asked of it.
func TestWrongLength(t *testing.T) {
	s := layout.PathRecord
	for n := range 2 * s.Size {
		if n == s.Size {
			continue
		}
		b := make([]byte, n)
		_, errDump := text.AppendDump(nil, s, b, text.Options{})
		_, errFields := text.AppendFields(nil, s, b, text.Options{})
		_, errObject := text.ObjectOfBytes(s, b)
		_, errGet := text.Get(s, b, "DLID")
		_, errSet := text.Set(s, b, "DLID", "1")
		for _, err := range []error{errDump, errFields, errObject, errGet, errSet} {
			if bad, ok := err.(*mad.LengthError); !ok || bad.Got != n || bad.Want != s.Size {
				t.Fatalf("%d bytes: error %v", n, err)
			}
		}
	}
}

// AppendFields prints a ClassPortInfo as perfquery does, by libibmad's labels.
func TestAppendFields(t *testing.T) {
	b := make([]byte, mad.ClassPortInfoSize)
	b[1] = 1
	b[3] = 0x02
	got, err := text.AppendFields(nil, layout.ClassPortInfo, b, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := "BaseVersion:.....................0\nClassVersion:....................1\nCapabilityMask:..................0x0002\nCapabilityMask2:.................0x00000000\nRespTimeVal:.....................0\nRedirectGID:.....................00000000000000000000000000000000\n"
	if !strings.HasPrefix(string(got), want) {
		t.Errorf("got\n%s", got)
	}
}
