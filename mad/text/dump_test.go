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
	isHex := regexp.MustCompile(`^[0-9a-f]{12,}$`)
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
	for _, file := range []string{"smpquery.txt", "smpquery-tables.txt", "saquery.txt", "saquery-records.txt"} {
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
// pkey_table and guid_info, and of dump_service_record in saquery.c.
func TestDumpSpecialForms(t *testing.T) {
	name := mad.MakeNodeDescription("h1 HCA-1")
	long := mad.MakeNodeDescription(strings.Repeat("n", 40))
	keys := mad.PKeyTable{PKey: [32]mad.PKey{0xffff, 0x8001, 30: 0x7fff}}
	service := mad.ServiceRecord{ServiceKey: [16]byte{1}}
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
		{&service, text.Options{}, "ServiceRecord dump:\n\t\tServiceID...............0x0000000000000000\n\t\tServiceGID..............::\n" +
			"\t\tServiceP_Key............0x0\n\t\tServiceLease............0x0\n\t\tServiceKey..............<not displayed>\n"},
	} {
		got := text.Dump(c.of, c.opts)
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got\n%s\nwant at the start\n%s", c.of.Layout().Name, got, c.want)
		}
	}
}

// smpquery prints as many elements as a port has, P_Keys and GUIDs in whole
// lines (pkey_table, guid_info and vlarb_table of smpquery.c).
func TestDumpCount(t *testing.T) {
	for _, c := range []struct {
		of   mad.Structure
		opts text.Options
		want string
	}{
		{&mad.PKeyTable{}, text.Options{First: 96, Count: 9}, "" +
			"  96: 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000\n" +
			" 104: 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000\n"},
		{&mad.GUIDInfo{}, text.Options{Count: 1}, "   0: 0x0000000000000000 0x0000000000000000\n"},
		{&mad.VLArbitrationTable{}, text.Options{Count: 3}, "\nVL    : |0x0 |0x0 |0x0 |\nWEIGHT: |0x0 |0x0 |0x0 |\n"},
		{&mad.PKeyTable{}, text.Options{Count: 99}, text.Dump(&mad.PKeyTable{}, text.Options{})},
	} {
		if got := text.Dump(c.of, c.opts); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.of.Layout().Name, got, c.want)
		}
	}
}

// Arrays that stand beside other fields have a heading, and structures in them a
// line each.
func TestDumpArrays(t *testing.T) {
	var forwarding mad.RandomForwardingTable
	forwarding.Entry[1] = mad.RandomForwardingEntry{LID: 5, Valid: true, LMC: 1, Port: 3}
	got := text.Dump(&forwarding, text.Options{First: 16, Count: 2})
	if want := "  16: LID=0 Valid=false LMC=0 Port=0\n  17: LID=5 Valid=true LMC=1 Port=3\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	notice := mad.SMPNotice{IsGeneric: true, TrapNumber: mad.TrapBadMKey}
	details := mad.Trap256Details{LIDADDR: 7, DRNoticeReturnPath: [30]uint8{16: 9}}
	details.EncodeTo(&notice.DataDetails)
	got = text.Dump(&notice, text.Options{})
	for _, part := range []string{
		"NoticeTrapNumber:................256\n", "LIDADDR:.........................7\n", "MKEY:............................<not displayed>\n",
		"DRNoticeReturnPath:\n   0:   0   0", "\n  16:   9   0",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
}

// Every structure can be printed in every way, whatever its bytes are.
func FuzzDump(f *testing.F) {
	var all []*layout.Struct
	for _, g := range layout.Groups {
		all = append(all, g.Structs...)
	}
	for i := range all {
		f.Add(uint8(i), 0, 0, true, []byte(strings.Repeat("\xa5\x80\x01\x00\x90", 50)))
	}
	f.Fuzz(func(t *testing.T, which uint8, first, count int, decoded bool, data []byte) {
		s := all[int(which)%len(all)]
		b := make([]byte, s.Size)
		copy(b, data)
		o := text.Options{First: first, Count: count, Decoded: decoded}
		for _, dump := range []func([]byte, *layout.Struct, []byte, text.Options) ([]byte, error){text.AppendDump, text.AppendFields} {
			out, err := dump(nil, s, b, o)
			if err != nil || len(out) == 0 || out[len(out)-1] != '\n' {
				t.Fatalf("%s: %q, %v", s.Name, out, err)
			}
		}
	})
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
