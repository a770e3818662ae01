package text_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

// Where opensm's ib_path_rec_t and ib_member_rec_t have one number for several
// components, the number is split as ib_types.h says.
func TestSetJoined(t *testing.T) {
	const exactly = "Exactly"
	for _, c := range []struct {
		of          *layout.Struct
		name, value string
		want        map[string]any
	}{
		// IB_PATH_REC_*: 31 raw, 27-8 flow label, 7-0 hop limit.
		{layout.PathRecord, "hop_flow_raw", "0x8ABCDE40", map[string]any{"RawTraffic": true, "FlowLabel": uint64(0xabcde), "HopLimit": uint64(0x40)}},
		{layout.PathRecord, "hop_flow_raw", "64", map[string]any{"RawTraffic": false, "FlowLabel": uint64(0), "HopLimit": uint64(64)}},
		{layout.PathRecord, "num_path_revers", "0x80", map[string]any{"Reversible": true, "NumbPath": uint64(0)}},
		{layout.PathRecord, "Num_Path_Revers", "1", map[string]any{"Reversible": false, "NumbPath": uint64(1)}},
		{layout.PathRecord, "mtu", "0x84", map[string]any{"MTUSelector": exactly, "MTU": "2048"}},
		{layout.PathRecord, "MTU", "132", map[string]any{"MTUSelector": exactly, "MTU": "2048"}},
		{layout.PathRecord, "mtu", "4", map[string]any{"MTU": "2048"}},
		{layout.PathRecord, "mtu", "4096", map[string]any{"MTU": "4096"}},
		{layout.PathRecord, "rate", "0x87", map[string]any{"RateSelector": exactly, "Rate": "40 Gb/s"}},
		{layout.PathRecord, "rate", "40 Gb/s", map[string]any{"Rate": "40 Gb/s"}},
		{layout.PathRecord, "pkt_life", "0x92", map[string]any{"PacketLifeTimeSelector": exactly, "PacketLifeTime": uint64(18)}},
		{layout.MCMemberRecord, "rate", "0x83", map[string]any{"RateSelector": exactly, "Rate": "10 Gb/s"}},
		{layout.ClassPortInfo, "Trap HL/QP", "0xFF000001", map[string]any{"TrapHL": uint64(255), "TrapQP": uint64(1)}},
	} {
		b := make([]byte, c.of.Size)
		found, err := text.Set(c.of, b, c.name, c.value)
		if err != nil {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
			continue
		}
		got := map[string]any{}
		for i := range found {
			got[found[i].Name] = text.Value(&found[i], b)
		}
		if len(got) != len(c.want) {
			t.Errorf("%s=%s: set %v, want %v", c.name, c.value, got, c.want)
		}
		for name, want := range c.want {
			if got[name] != want {
				t.Errorf("%s=%s: %s is %v, want %v", c.name, c.value, name, got[name], want)
			}
		}
	}
}

func TestGetJoined(t *testing.T) {
	p := mad.PathRecord{RawTraffic: true, HopLimit: 3, Reversible: true, NumbPath: 2, MTU: mad.MTU2048, MTUSelector: mad.SelectorExactly}
	b, _ := p.AppendBinary(nil)
	for name, want := range map[string]any{
		"hop_flow_raw": uint64(0x80000003), "num_path_revers": uint64(0x82), "resv2": uint64(0), "mtu": "2048",
	} {
		if got, err := text.Get(layout.PathRecord, b, name); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
}

// What a line of saquery's form says, Set reads back under the line's label.
func FuzzPrintedLinesParse(f *testing.F) {
	var all []*layout.Struct
	for _, g := range layout.Groups {
		for _, s := range g.Structs {
			if s.SA != nil {
				all = append(all, s)
			}
		}
	}
	for i := range all {
		f.Add(uint8(i), []byte{})
		f.Add(uint8(i), []byte(strings.Repeat("\x8a\x5c\x01\xf7", 30)))
		f.Add(uint8(i), []byte(strings.Repeat("\x01\x02\x84", 60)))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		s := all[int(which)%len(all)]
		b := make([]byte, s.Size)
		copy(b, data)
		linesParse(t, s, b)
	})
}

func linesParse(t *testing.T, s *layout.Struct, b []byte) {
	dump, err := text.AppendDump(nil, s, b, text.Options{ShowKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(dump), "\n")
	for _, l := range s.SA.Lines {
		formats := []layout.Format{layout.Heading, layout.Dotted, layout.Text}
		if slices.Contains(formats, l.Format) || l.Count > 0 || !s.Holds(l.When, b) {
			continue
		}
		start := s.SA.Indent + l.Label + "."
		at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, start) })
		if at < 0 {
			t.Fatalf("%s: no line %s in\n%s", s.Name, l.Label, dump)
		}
		value := strings.TrimLeft(lines[at][len(start):], ".")
		off, n := l.Off, l.Len
		if f, err := s.Find(l.Field); err == nil {
			if n == 0 {
				off, n = f.Off, f.Len
			}
			if f.Off < off {
				continue // saquery's ProxyJoin shows another bit than the field
			}
		}
		again := make([]byte, len(b))
		_, err := text.Set(s, again, l.Label, value)
		if bad := (*layout.NameError)(nil); errors.As(err, &bad) && bad.Why == "these bits are reserved" {
			continue
		}
		if s == layout.ClassPortInfo && l.Label == "Redirect QP" && b[32] != 0 {
			continue // the byte before the QP is reserved, and printed with it
		}
		if err != nil {
			t.Fatalf("%s of %s as printed, %q: %v", l.Label, s.Name, value, err)
		}
		for i := range n {
			if got, want := layout.Uint(again, off+i, 1), layout.Uint(b, off+i, 1); got != want {
				t.Fatalf("%s of %s as printed, %q: bit %d is %d, want %d", l.Label, s.Name, value, off+i, got, want)
			}
		}
	}
}
