package mad

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAddr(t *testing.T) {
	gid := GID{0xfe, 0x80, 9: 2, 10: 0xc9, 11: 3, 14: 0x12, 15: 0x34}
	tests := []struct {
		in   string
		want Addr
		out  string // if it is not written as it was read
	}{
		{in: "5", want: Addr{Kind: AddrLID, LID: 5}},
		{in: "0x5", want: Addr{Kind: AddrLID, LID: 5}, out: "5"},
		{in: "0xBFFF", want: Addr{Kind: AddrLID, LID: 0xbfff}, out: "49151"},
		{in: "lid:0x0005", want: Addr{Kind: AddrLID, LID: 5}, out: "5"},
		{in: "LID: 5", want: Addr{Kind: AddrLID, LID: 5}, out: "5"},
		{in: "0x0002c90300001234", want: Addr{Kind: AddrGUID, GUID: 0x0002c90300001234}},
		{in: "0x2c90300001234", want: Addr{Kind: AddrGUID, GUID: 0x0002c90300001234}, out: "0x0002c90300001234"},
		{in: "0x0000000000000005", want: Addr{Kind: AddrGUID, GUID: 5}},
		{in: "guid:5", want: Addr{Kind: AddrGUID, GUID: 5}, out: "0x0000000000000005"},
		{in: "guid:0002:c903:0000:1234", want: Addr{Kind: AddrGUID, GUID: 0x0002c90300001234}, out: "0x0002c90300001234"},
		{in: "guid:0002c90300001234", want: Addr{Kind: AddrGUID, GUID: 0x0002c90300001234}, out: "0x0002c90300001234"},
		{in: "fe80::2:c903:0:1234", want: Addr{Kind: AddrGID, GID: gid}},
		{in: "gid:fe80::2:c903:0:1234", want: Addr{Kind: AddrGID, GID: gid}, out: "fe80::2:c903:0:1234"},
		{in: "0,1,3", want: Addr{Kind: AddrRoute, Route: Route{0, 1, 3}}},
		{in: "0, 1, 254", want: Addr{Kind: AddrRoute, Route: Route{0, 1, 254}}, out: "0,1,254"},
		{in: "dr:0", want: Addr{Kind: AddrRoute, Route: Route{0}}},
		{in: "dr:0,36", want: Addr{Kind: AddrRoute, Route: Route{0, 36}}, out: "0,36"},
		{in: "5:0,1", want: Addr{Kind: AddrCombined, LID: 5, Route: Route{0, 1}}},
		{in: "dr:5:0,1", want: Addr{Kind: AddrCombined, LID: 5, Route: Route{0, 1}}, out: "5:0,1"},
		{in: "0x5:0", want: Addr{Kind: AddrCombined, LID: 5, Route: Route{0}}, out: "5:0"},
		{in: "h1", want: Addr{Kind: AddrName, Name: "h1"}},
		{in: `"node name"`, want: Addr{Kind: AddrName, Name: "node name"}, out: "node name"},
		{in: "node name", want: Addr{Kind: AddrName, Name: "node name"}},
		{in: "name:5", want: Addr{Kind: AddrName, Name: "5"}, out: `name:"5"`},
		{in: `name:"lid:5"`, want: Addr{Kind: AddrName, Name: "lid:5"}},
		{in: "MF0;sw1:MSB7800/U1", want: Addr{Kind: AddrName, Name: "MF0;sw1:MSB7800/U1"}},
		{in: "10.0.0.x", want: Addr{Kind: AddrName, Name: "10.0.0.x"}},
		{in: "cafe", want: Addr{Kind: AddrName, Name: "cafe"}},
	}
	for _, tt := range tests {
		got, err := ParseAddr(tt.in)
		if err != nil {
			t.Errorf("ParseAddr(%q): %v", tt.in, err)
			continue
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("ParseAddr(%q) (-want +got):\n%s", tt.in, d)
		}
		want := tt.out
		if want == "" {
			want = tt.in
		}
		if got.String() != want {
			t.Errorf("ParseAddr(%q).String() = %q, want %q", tt.in, got.String(), want)
		}
	}
}

func TestParseAddrErrors(t *testing.T) {
	tests := []struct {
		in   string
		want []string // parts of the message
	}{
		{"", []string{"empty"}},
		{"0", []string{"LID 0", "dr:0"}},
		{"0x0", []string{"LID 0", "reserved"}},
		{"lid:0", []string{"LID 0"}},
		{"0xc000", []string{"multicast"}},
		{"49152", []string{"0xc000", "multicast"}},
		{"0xfffe", []string{"multicast"}},
		{"65535", []string{"permissive", "dr:0"}},
		{"65536", []string{"too large for a LID", "guid:0x0000000000010000"}},
		{"010", []string{"octal", "lid:10", "name:010"}},
		{"0x00005", []string{"two readings", "lid:0x5", "guid:0x0000000000000005"}},
		{"0x12345678901234567", []string{"64 bits"}},
		{"0002c90300001234", []string{"two readings", "guid:0x0002c90300001234", "name:0002c90300001234"}},
		{"guid:0", []string{"GUID 0"}},
		{"guid:xyz", []string{"hexadecimal"}},
		{"::", []string{"belongs to no port"}},
		{"fe80::1%eth0", []string{"zone"}},
		{"gid:5", []string{"IPv6"}},
		{"10.0.0.1", []string{"IP address", "name:10.0.0.1"}},
		{"1,2", []string{"starts with 0", "write 0,1,2"}},
		{"0,300", []string{"element 1", "300"}},
		{"0,0", []string{"element 1", "is 0"}},
		{"0,,1", []string{"element 1"}},
		{"0" + strings.Repeat(",1", 64), []string{"64 hops", "63"}},
		{"dr:x:0,1", []string{"LID is a number"}},
		{"5:1,2", []string{"starts with 0"}},
		{"0xc000:0,1", []string{"multicast"}},
		{"lid:five", []string{"LID is a number"}},
		{"name:", []string{"empty"}},
		{"name:" + strings.Repeat("x", 65), []string{"64 bytes", "65"}},
	}
	for _, tt := range tests {
		a, err := ParseAddr(tt.in)
		if err == nil {
			t.Errorf("ParseAddr(%q) = %v, want an error", tt.in, a)
			continue
		}
		var ae *AddrError
		if !errors.As(err, &ae) || ae.Text != tt.in {
			t.Errorf("ParseAddr(%q): %#v does not carry the text", tt.in, err)
		}
		for _, part := range tt.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("ParseAddr(%q): %q lacks %q", tt.in, err, part)
			}
		}
	}
}

func TestParsePKey(t *testing.T) {
	for in, want := range map[string]PKey{"0xffff": 0xffff, "0x8001": 0x8001, "32767": 0x7fff} {
		if got, err := ParsePKey(in); err != nil || got != want {
			t.Errorf("ParsePKey(%q) = %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "0", "0x8000", "0x10000", "-1", "full", "1_0"} {
		if got, err := ParsePKey(in); err == nil {
			t.Errorf("ParsePKey(%q) = %v, want an error", in, got)
		}
	}
}

// IBA 10.9.3: limited members do not talk to each other.
func TestPKeyMatches(t *testing.T) {
	tests := []struct {
		p, q PKey
		want bool
	}{
		{0xffff, 0xffff, true}, {0xffff, 0x7fff, true}, {0x7fff, 0xffff, true},
		{0x7fff, 0x7fff, false}, {0xffff, 0x8001, false}, {0x8000, 0x8000, false},
	}
	for _, tt := range tests {
		if got := tt.p.Matches(tt.q); got != tt.want {
			t.Errorf("%v.Matches(%v) = %v", tt.p, tt.q, got)
		}
	}
}

func FuzzParseAddr(f *testing.F) {
	for _, s := range []string{"5", "0x0002c90300001234", "fe80::1", "0,1,3", "5:0,1", `"a b"`, "name:5", "dr:0", "lid:0", `name:""`, " x "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddr(s)
		if err != nil {
			return
		}
		b, err := ParseAddr(a.String())
		if err != nil || !cmp.Equal(a, b) {
			t.Fatalf("%q: %#v is written as %q, which reads as %#v, %v", s, a, a.String(), b, err)
		}
	})
}
