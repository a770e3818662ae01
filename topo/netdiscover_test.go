package topo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/ibsm/ibsm/mad"
)

// fabric is a file in the form of ibnetdiscover.c's dump_topology: two switches,
// a loopback cable, an adapter whose second port alone is linked, two with the
// same description, a router, two adapters back to back.
const fabric = `#
# Topology file: generated on Mon Jan  6 10:00:00 2025
#
# Initiated from node 0000000000000030 port 0000000000000032

vendid=0x2c9
devid=0xc738
sysimgguid=0x18
switchguid=0x10(10)
Switch	8 "S-0000000000000010"		# "leaf 1" enhanced port 0 lid 9 lmc 0
[1]	"H-0000000000000030"[2](32) 		# "h1 mlx5_0" lid 3 4xQDR
[2]	"H-0000000000000040"[1](41) 		# "same" lid 4 12xDDR
[3]	"S-0000000000000010"[4]		# "leaf 1" lid 9 1xSDR
[4]	"S-0000000000000010"[3]		# "leaf 1" lid 9 1xSDR
[7]	"S-0000000000000020"[1]		# "spine" lid 10 4xFDR10
[8]	"R-0000000000000060"[1](61) 		# "r 1" lid 12 2xNDR

vendid=0x8f1
devid=0x5a5a
sysimgguid=0x20
switchguid=0x20(21)
Switch	2 "S-0000000000000020"		# "spine" base port 0 lid 10 lmc 0
[1]	"S-0000000000000010"[7]		# "leaf 1" lid 9 4xFDR10
[2]	"H-0000000000000050"[1](50) 		# "same" lid 5 8xHDR

vendid=0x2c9
devid=0x1017
sysimgguid=0x38
caguid=0x30
Ca	2 "H-0000000000000030"		# "h1 mlx5_0"
[2](32) 	"S-0000000000000010"[1]		# lid 3 lmc 0 "leaf 1" lid 9 4xQDR

vendid=0x2c9
devid=0x1017
sysimgguid=0x40
caguid=0x40
Ca	2 "H-0000000000000040"		# "same"
[1](41) 	"S-0000000000000010"[2]		# lid 4 lmc 0 "leaf 1" lid 9 12xDDR

vendid=0x2c9
devid=0x1017
sysimgguid=0x50
caguid=0x50
Ca	1 "H-0000000000000050"		# "same"
[1](50) 	"S-0000000000000020"[2]		# lid 5 lmc 0 "spine" lid 10 8xHDR

vendid=0x2c9
devid=0x1017
sysimgguid=0x70
caguid=0x70
Ca	1 "H-0000000000000070"		# "said "left" [1]"
[1](71) 	"H-0000000000000080"[1] (81) 		# lid 16 lmc 2 "right" lid 20 4xXDR

vendid=0x2c9
devid=0x1017
sysimgguid=0x80
caguid=0x80
Ca	1 "H-0000000000000080"		# "right"
[1](81) 	"H-0000000000000070"[1] (71) 		# lid 20 lmc 2 "said "left" [1]" lid 16 4xXDR

vendid=0x2c9
devid=0x1017
sysimgguid=0x60
rtguid=0x60
Rt	2 "R-0000000000000060"		# "r 1"
[1](61) 	"S-0000000000000010"[8]		# lid 12 lmc 1 "leaf 1" lid 9 2xNDR
`

func TestNetDiscover(t *testing.T) {
	s := parse(t, fabric)
	if len(s.Warnings) != 0 {
		t.Errorf("warnings %v", s.Warnings)
	}
	type node struct {
		name, desc       string
		kind             mad.NodeType
		guid, system     mad.GUID
		vendor           uint32
		device           uint16
		ports            int
		base             bool
		link             string // of the first port with one
		width            mad.LinkWidth
		speed            mad.Speed
		end              int // of the following
		portGUID         mad.GUID
		lid              mad.LID
		lmc              uint8
		otherGUID, links int // GUID of the other end port
	}
	want := []node{
		{"leaf 1", "leaf 1", 2, 0x10, 0x18, 0x2c9, 0xc738, 8, false, "leaf 1[1]-h1 mlx5_0[2]", 2, 4, 0, 0x10, 9, 0, 0, 6},
		{"spine", "spine", 2, 0x20, 0x20, 0x8f1, 0x5a5a, 2, true, "spine[1]-leaf 1[7]", 2, 8, 0, 0x21, 10, 0, 0, 2},
		{"h1 mlx5_0", "h1 mlx5_0", 1, 0x30, 0x38, 0x2c9, 0x1017, 2, false, "h1 mlx5_0[2]-leaf 1[1]", 2, 4, 2, 0x32, 3, 0, 0x31, 1},
		// 0x42 would do for the port that is not in the file.
		{"H-0000000000000040", "same", 1, 0x40, 0x40, 0x2c9, 0x1017, 2, false, "H-0000000000000040[1]-leaf 1[2]", 8, 2, 1, 0x41, 4, 0, 0x42, 1},
		{"H-0000000000000050", "same", 1, 0x50, 0x50, 0x2c9, 0x1017, 1, false, "H-0000000000000050[1]-spine[2]", 4, 64, 1, 0x50, 5, 0, 0, 1},
		{"H-0000000000000070", `said "left" [1]`, 1, 0x70, 0x70, 0x2c9, 0x1017, 1, false, "H-0000000000000070[1]-right[1]", 2, 256, 1, 0x71, 16, 2, 0, 1},
		{"right", "right", 1, 0x80, 0x80, 0x2c9, 0x1017, 1, false, "right[1]-H-0000000000000070[1]", 2, 256, 1, 0x81, 20, 2, 0, 1},
		{"r 1", "r 1", 3, 0x60, 0x60, 0x2c9, 0x1017, 2, false, "r 1[1]-leaf 1[8]", 16, 128, 1, 0x61, 12, 1, 0x62, 1},
	}
	if len(s.Nodes) != len(want) {
		t.Fatalf("%d nodes", len(s.Nodes))
	}
	for i, n := range s.Nodes {
		w := want[i]
		got := node{name: n.Name, desc: n.Desc, kind: n.Type, guid: n.GUID, system: n.SystemImageGUID, vendor: n.VendorID,
			device: n.DeviceID, ports: n.NumPorts(), base: n.BasePort0, end: w.end}
		for j := range n.Ports {
			if p := &n.Ports[j]; p.Peer != nil {
				if got.links++; got.links == 1 {
					got.link, got.width, got.speed = p.String()+"-"+p.Peer.String(), p.Width, p.Speed
				}
			} else if j > 0 && !n.IsSwitch() {
				got.otherGUID = int(p.GUID)
			}
		}
		end := &n.Ports[w.end]
		got.portGUID, got.lid, got.lmc = end.GUID, end.LID, end.LMC
		if got != w {
			t.Errorf("got  %+v\nwant %+v", got, w)
		}
	}
	if p := port(t, s, "h1 mlx5_0[2]"); s.SM != p || p.MTU != mad.MTU4096 || !cmp.Equal(p.PKeys, []mad.PKey{0xffff}) {
		t.Errorf("SM %s, MTU %v, P_Keys %v", s.SM, p.MTU, p.PKeys)
	}
	broughtUp(t, s)
	if leaf := s.Nodes[0]; leaf.LFT[3] != 1 || leaf.LFT[5] != 7 || leaf.LFT[13] != 8 || leaf.LFT[16] != NoRoute {
		t.Errorf("routes %v", leaf.LFT)
	}
}

// Ports 2 of the adapters 0x40 and 0x41 are not in the file, and the GUID that
// the first would get is the second's.
func TestNetDiscoverInventedGUID(t *testing.T) {
	s := parse(t, "Ca 2 \"H-0000000000000040\"\nCa 2 \"H-0000000000000041\"\n")
	for name, want := range map[string]mad.GUID{
		"H-0000000000000040[1]": 0x0200000100000101, "H-0000000000000040[2]": 0x42,
		"H-0000000000000041[1]": 0x0200000100000201, "H-0000000000000041[2]": 0x43,
	} {
		if got := port(t, s, name).GUID; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// insert puts a line before line n of a text.
func insert(text string, n int, line string) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[:n-1], "") + line + strings.Join(lines[n-1:], "")
}

func utf16Text(text string, big bool) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
		if big {
			b.Write([]byte{byte(u >> 8), byte(u)})
		} else {
			b.Write([]byte{byte(u), byte(u >> 8)})
		}
	}
	return b.String()
}

const stderrLine = "src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1,1,31 Attr 0x11:0) bad status 110; Connection timed out\n"

// dirty are texts that mean the same as fabric.
var dirty = []struct {
	name, text string
	warnings   []string
}{
	{"byte order mark", "\ufeff" + fabric, nil},
	{"UTF-16, low byte first", utf16Text(fabric, false), nil},
	{"UTF-16, high byte first", utf16Text(fabric, true), nil},
	{"CRLF", strings.ReplaceAll(fabric, "\n", "\r\n"), nil},
	{"blanks for tabs", strings.ReplaceAll(fabric, "\t", "    "), nil},
	{"a blank for tabs", strings.ReplaceAll(strings.ReplaceAll(fabric, "\t\t", " "), "\t", " "), nil},
	{"blanks at the ends", strings.ReplaceAll(fabric, "\n", " \t\n  "), nil},
	{"no blank lines", strings.ReplaceAll(fabric, "\n\n", "\n"), nil},
	{"no end of the last line", strings.TrimSuffix(fabric, "\n"), nil},
	{"prompts", "[root@n1 ~]# ibnetdiscover\n" + fabric + "[root@n1 ~]# ", []string{
		`f.yaml:1: passed over "[root@n1 ~]# ibnetdiscover", which does not belong to the topology`,
		`f.yaml:68: passed over "[root@n1 ~]#", which does not`,
	}},
	{"a prompt behind the last line", strings.TrimSuffix(fabric, "\n") + "root@n1:~$ ", []string{
		`f.yaml:66: "2xNDRroot@n1:~$" has a width or speed that is not known`,
	}},
	{"stderr", stderrLine + fabric, []string{`f.yaml:1: passed over "src/query_smp.c:195; `}},
	{"stderr among ports", insert(fabric, 12, stderrLine+"ibwarn: [4242] mad_rpc: timed out\n"), []string{
		`f.yaml:12: passed over "src/query_smp.c:195; `, `f.yaml:13: passed over "ibwarn: [4242] `,
	}},
	{"stderr in a line", strings.Replace(fabric, `[2](32) 	"S-00`, `[2](32) 	"S-00`+stderrLine, 1), []string{
		`f.yaml:31: passed over "src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1,1,31 Attr...", which cuts a line in two`,
	}},
	{"stderr in a line, by path", strings.Replace(fabric, "0x10(10)", "0x1/builddir/libibnetdisc/query_smp.c:77; x\n0(10)", 1), []string{
		`f.yaml:9: passed over "/builddir/libibnetdisc/query_smp.c:77; x", which cuts`,
	}},
	{"two messages in a line", strings.Replace(fabric, "Rt\t2", "R"+stderrLine+"ibwarn: [7] x\nt\t2", 1), []string{
		`f.yaml:65: passed over "src/query_smp.c:195; `, `f.yaml:66: passed over "ibwarn: [7] x", which cuts`,
	}},
	{"stderr behind something else", insert(fabric, 6, "[n1] ibwarn: [7] x\n10:04:05 src/a.c:1; x\n"), []string{
		`f.yaml:6: passed over "[n1] ibwarn: [7] x", which does not`, `f.yaml:7: passed over "10:04:05 src/a.c:1; x", which does not`,
	}},
	{"full", strings.ReplaceAll(fabric, "4xQDR\n", "4xQDR s=4 w=2 v=4\n"), nil},
	{"groups", strings.NewReplacer("\nvendid=0x2c9\ndevid=0xc738", "\nChassis 1 (guid 0x18)\n\n# Spine Nodes\nvendid=0x2c9\ndevid=0xc738",
		"sysimgguid=0x18", "sysimgguid=0x18\t\t# Chassis 1", "0x10(10)", "0x10(10)\t# Spine 1 Chip 2",
		"[1]\t\"H-0000000000000030\"", "[1][ext 5]\t\"H-0000000000000030\"", "[1]\t\t# lid 4", "[1][ext 7]\t\t# lid 4",
		"\nvendid=0x2c9\ndevid=0x1017\nsysimgguid=0x38", "\nNon-Chassis Nodes\n\nvendid=0x2c9\ndevid=0x1017\nsysimgguid=0x38").Replace(fabric), nil},
	{"max hops", strings.Replace(fabric, "# Initiated", "# Max of 3 hops discovered\n# Initiated", 1), nil},
	{"Hca", strings.ReplaceAll(fabric, "\nCa\t", "\nHca\t"), nil},
	{"no system image GUID", strings.Replace(fabric, "sysimgguid=0x40\n", "", 1), nil},
	{"no GUID line", strings.Replace(fabric, "caguid=0x40\n", "", 1), nil},
	{"no port GUID", strings.Replace(fabric, "[1](41) ", "[1]", 1), nil},
	{"no port GUID at either end", strings.ReplaceAll(fabric, "(41)", ""), nil},
	{"no LID at one end", strings.Replace(fabric, "lid 4 lmc 0 ", "", 1), nil},
	{"no LID of a switch", strings.Replace(fabric, "base port 0 lid 10 lmc 0", "base port 0", 1), nil},
	{"no speed at one end", strings.Replace(fabric, "lid 4 12xDDR", "lid 4", 1), nil},
	{"no comment at one end", strings.Replace(fabric, "		# \"same\" lid 4 12xDDR", "", 1), nil},
	{"no port 1 of a far end", strings.ReplaceAll(fabric, `"R-0000000000000060"[1]`, `"R-0000000000000060"`), nil},
	{"unknown speed at one end", strings.Replace(fabric, "lid 4 12xDDR", "lid 4 12x???", 1), []string{
		`f.yaml:12: "12x???" has a width or speed that is not known`,
	}},
	{"unknown width at one end", strings.Replace(fabric, "lid 4 12xDDR", "lid 4 ??DDR", 1), []string{
		`f.yaml:12: "??DDR" has a width or speed that is not known`,
	}},
	{"a faster end", strings.Replace(fabric, "lid 9 12xDDR", "lid 9 12xHDR", 1), []string{
		`f.yaml:12: the other end of the link, in line 38, has another width or speed: 12xDDR counts`,
	}},
	{"a slower end", strings.Replace(strings.Replace(fabric, "lid 9 12xDDR", "lid 9 12xSDR", 1), "lid 4 12xDDR", "lid 4 4xQDR", 1), nil},
	{"another LID at the far end", strings.Replace(fabric, "lid 4 12xDDR", "lid 7 12xDDR", 1), []string{
		`f.yaml:12: port H-0000000000000040[1] has LID 7 here and 4 in line 38, which counts`,
	}},
	{"one-sided link", strings.Replace(fabric, "[1](50) \t\"S-0000000000000020\"[2]\t\t# lid 5 lmc 0 \"spine\" lid 10 8xHDR\n", "", 1), []string{
		`f.yaml:24: port spine[2] is linked to H-0000000000000050[1], for which there is no line`,
	}},
	{"no such line", insert(fabric, 20, "Switch is a word, too\nvendor=5\n[x]\n"), []string{
		`f.yaml:20: passed over "Switch is a word, too"`, `f.yaml:21: passed over "vendor=5"`, `f.yaml:22: passed over "[x]"`,
	}},
	{"more in a line", strings.Replace(fabric, "lid 4 12xDDR", "lid 4 12xDDR what else", 1), []string{
		`f.yaml:12: passed over "what else" at the end of the line`,
	}},
}

// different are the dirty texts that mean something else, and what.
var different = map[string]func(*Subnet){
	"a slower end": func(s *Subnet) {
		p := &s.Nodes[0].Ports[2]
		p.Speed, p.Peer.Speed = mad.SpeedSDR, mad.SpeedSDR
	},
}

func TestNetDiscoverDirty(t *testing.T) {
	for _, tt := range dirty {
		t.Run(tt.name, func(t *testing.T) {
			if tt.text == fabric {
				t.Fatal("the text is clean")
			}
			want := parse(t, fabric)
			if change := different[tt.name]; change != nil {
				change(want)
			} else if len(tt.warnings) != len(parse(t, tt.text).Warnings) {
				t.Errorf("warnings %v, want %d", parse(t, tt.text).Warnings, len(tt.warnings))
			}
			got := parse(t, tt.text)
			if diff := cmp.Diff(flat(want), flat(got)); diff != "" || got.SM.String() != want.SM.String() {
				t.Errorf("not the same, SM %s:\n%s", got.SM, diff)
			}
			for i, w := range tt.warnings {
				if i >= len(got.Warnings) || !strings.HasPrefix(got.Warnings[i].String(), w) {
					t.Errorf("got  %v\nwant %s", got.Warnings, w)
				}
			}
		})
	}
}

// An ibnetdiscover that was told to stop after some hops, or that got no answer,
// names far ends that it does not describe.
func TestNetDiscoverUnlisted(t *testing.T) {
	s := parse(t, `# Max of 1 hops discovered
switchguid=0x10(10)
Switch	4 "S-0000000000000010"		# "leaf" enhanced port 0 lid 9 lmc 0
[1]	"H-0000000000000030"[2](32) 		# "h" lid 3 4xQDR
[2]	"S-0000000000000020"[36]		# "spine" lid 10 4x???
[3]	"S-0000000000000020"[1]		# "spine" lid 10 4xFDR
[4]	"H-0000000000000030"[1](31) 		# "h" lid 4 4xQDR
`)
	want := []string{
		`f.yaml:4: node "H-0000000000000030" is not described: it gets the ports that others are linked to`,
		`f.yaml:5: "4x???" has a width or speed that is not known`,
		`f.yaml:5: node "S-0000000000000020" is not described: it gets the ports that others are linked to`,
	}
	if got := fmt.Sprint(s.Warnings); got != fmt.Sprint(want) {
		t.Errorf("warnings %s\nwant %s", got, want)
	}
	spine, h := port(t, s, "spine"), port(t, s, "h[2]")
	if spine.LID != 10 || spine.Node.NumPorts() != 36 || spine.Node.GUID != 0x20 || spine.Node.Type != mad.NodeTypeSwitch {
		t.Errorf("spine: %+v of %+v", spine, spine.Node)
	}
	if h.LID != 3 || h.GUID != 0x32 || h.Node.NumPorts() != 2 || h.Node.Type != mad.NodeTypeCA || h.Peer != port(t, s, "leaf[0]").Node.portAt(1) {
		t.Errorf("h[2]: %+v", h)
	}
	if p := spine.Node.portAt(36); p.Speed != mad.SpeedEDR || p.Width != mad.LinkWidth4X { // the defaults
		t.Errorf("spine[36]: %v %v", p.Width, p.Speed)
	}
	readBack(t, s)
}

func (n *Node) portAt(i int) *Port { return &n.Ports[i] }

func TestNetDiscoverLoopbackPlug(t *testing.T) {
	s := parse(t, "Switch 2 \"S-0000000000000010\"\n[1] \"S-0000000000000010\"[1]\n")
	if len(s.Warnings) != 1 || s.Warnings[0].String() != "f.yaml:2: port S-0000000000000010[1] is linked to itself: the port stays without a link" {
		t.Errorf("warnings %v", s.Warnings)
	}
	if s.Nodes[0].Ports[1].Peer != nil {
		t.Error("it has a link")
	}
}

// The form of ibsim's net-examples: names instead of GUIDs, no comments.
func TestNetlist(t *testing.T) {
	s := parse(t, `
Switch	8 "Switch1"
[1]	"Hca1" [1]	w=12
[3]	"Switch2" [3]
Switch 8 "Switch2"
[3]	"Switch1" [3]
Hca	2 "Hca1"
[1]	"Switch1"
do Link x
`)
	want := []string{`f.yaml:3: passed over "w=12" at the end of the line`, `f.yaml:9: passed over "do Link x", which does not belong to the topology`}
	if fmt.Sprint(s.Warnings) != fmt.Sprint(want) {
		t.Errorf("warnings %v", s.Warnings)
	}
	hca := port(t, s, "Hca1")
	if hca.Peer != &port(t, s, "Switch1").Node.Ports[1] || hca.Node.GUID != 0x0200000100000100 || hca.Rate() != mad.Rate100G {
		t.Errorf("Hca1: %+v of %+v", hca, hca.Node)
	}
	readBack(t, s)
}

func TestNetDiscoverErrors(t *testing.T) {
	const ca, sw = "Ca 1 \"H-0000000000000030\"\n", "Switch 2 \"S-0000000000000010\"\n"
	tests := []struct {
		name, text, want string
	}{
		{"header only", "# Topology file: generated on x\n", "subnet has no nodes"},
		{"no ports", `Switch "S-0000000000000010"` + "\nvendid=0x1\n", `f.yaml:1: the number of ports expected, in 16 bits, not "\"S-0000000000000010\""`},
		{"0 ports", `Ca 0 "H-0000000000000030"`, "f.yaml:1: a node has 1 to 254 ports, not 0"},
		{"255 ports", `Ca 255 "H-0000000000000030"`, "f.yaml:1: a node has 1 to 254 ports, not 255"},
		{"name breaks off", `Ca 1 "H-000000000`, `f.yaml:1: the node's name in quotes expected, not ""`},
		{"description breaks off", sw + "[1] \"H-0000000000000030\"[1](31) # \"h", "f.yaml:2: the description has no end"},
		{"GUID 0", `Ca 1 "H-0000000000000000"`, `f.yaml:1: node "H-0000000000000000": the GUID is 0`},
		{"GUID line of 0", "caguid=0x0\n" + ca, "f.yaml:1: the GUID is 0"},
		{"two GUIDs", "caguid=0x31\n" + ca, `f.yaml:2: node "H-0000000000000030" has GUID 0x0000000000000031 in the lines before`},
		{"no number", "vendid=\n" + ca, `f.yaml:1: vendor id expected, in 24 bits, not ""`},
		{"vendor", "vendid=0x1000000\n" + ca, `f.yaml:1: vendor id expected, in 24 bits, not "1000000"`},
		{"port GUID breaks off", "switchguid=0x10(10\n" + sw, `f.yaml:1: ")" expected, not ""`},
		{"node twice", ca + "\n" + ca, `f.yaml:3: node "H-0000000000000030" is described for the second time, first in line 1`},
		{"GUID twice", "caguid=0x30\nCa 1 \"a\"\n" + ca, "f.yaml:3: node H-0000000000000030: has GUID 0x0000000000000030, as has f.yaml:2: node a"},
		{"port without a node", ca + "vendid=0x1\n[1] \"S-0000000000000010\"[1]", "f.yaml:3: a port without a node"},
		{"port breaks off", ca + "[1](31", `f.yaml:2: ")" expected, not ""`},
		{"port without a far end", ca + "[1](31)", `f.yaml:2: the far end in quotes expected, not ""`},
		{"far end breaks off", ca + `[1] "S-000000`, `f.yaml:2: the far end in quotes expected`},
		{"far port breaks off", ca + `[1] "S-0000000000000010"[`, `f.yaml:2: a port number expected, in 8 bits, not ""`},
		{"port 0", sw + `[0] "H-0000000000000030"[1]`, `f.yaml:2: node "S-0000000000000010" has ports 1 to 2, not 0`},
		{"port too high", sw + `[3] "H-0000000000000030"[1]`, `f.yaml:2: node "S-0000000000000010" has ports 1 to 2, not 3`},
		{"far port 0", sw + `[1] "H-0000000000000030"[0]`, `f.yaml:2: port 0 of "H-0000000000000030" is none that can have a link`},
		{"far port too high", ca + sw + `[1] "H-0000000000000030"[2]`, `f.yaml:3: port 2 of node "H-0000000000000030": it has ports 1 to 1`},
		{"port twice", sw + "[1] \"H-0000000000000030\"\n[1] \"H-0000000000000040\"", `f.yaml:3: port 1 of node "S-0000000000000010" is described for the second time, first in line 2`},
		{"LID", ca + `[1] "S-0000000000000010"[1] # lid 70000`, `f.yaml:2: a LID expected, in 16 bits, not "70000"`},
		{"LMC", ca + `[1] "S-0000000000000010"[1] # lid 7 lmc 8`, `f.yaml:2: an LMC expected, in 3 bits, not "8"`},
		{"LID twice", sw + "[1] \"H-0000000000000030\" # \"a\" lid 5\n[2] \"H-0000000000000040\" # \"b\" lid 5", "port b[1]: has LID 5, as has f.yaml:2: port a[1]"},
		{"two links at a port", sw + "[1] \"H-0000000000000030\"\n[2] \"H-0000000000000030\"\n" + ca,
			"f.yaml:3: port S-0000000000000010[2] is linked to H-0000000000000030[1], as is S-0000000000000010[1] in line 2"},
		{"ends disagree", sw + "[1] \"H-0000000000000030\"[1]\n" + ca + "[1] \"S-0000000000000010\"[2]",
			`f.yaml:2: port S-0000000000000010[1] is linked to H-0000000000000030[1], which line 4 links to port 2 of "S-0000000000000010"`},
		{"far end unknown", sw + `[1] "Hca1"`, `f.yaml:2: there is no node "Hca1", and its name tells no GUID`},
		{"module", "module=\"x\"\n" + sw, `f.yaml:1: "module=\"x\"" is for ibsim and not supported`},
		{"include", "include \"x\"\n" + sw, `f.yaml:1: "include \"x\"" is for ibsim`},
		{"alias", sw + `@[1] "out"`, `f.yaml:2: "@[1] \"out\"" is for ibsim`},
		{"not UTF-8", "Ca 1 \"H-0000000000000030\" # \"\xff\"", "f.yaml:1: node H-0000000000000030: desc \"\\xff\" is not UTF-8"},
		{"-p", "# x\nSW    37 21 0x5442ba00003080 4x SDR - SW     9 15 0x66666a00003080 ( 'a' - 'b' )\n", "f.yaml:2: this is a list of ibnetdiscover's"},
		{"-l", "Switch\t : 0x5442ba00003080 ports 36 devid 0xb924 vendid 0x2c9 \"a\"\n", "f.yaml:1: this is a list of ibnetdiscover's"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// A file that breaks off anywhere is read as what is left of it, or refused
// because of its last line or what that leaves out.
func TestNetDiscoverCut(t *testing.T) {
	for i := strings.Index(fabric, "# \"leaf 1"); i < len(fabric); i++ {
		s, err := Parse("f", []byte(fabric[:i]))
		if err == nil {
			if s.Nodes[0].GUID != 0x10 || s.Validate() != nil {
				t.Errorf("cut at %d: node %+v", i, s.Nodes[0])
			}
			continue
		}
		var at *FileError
		if !errors.As(err, &at) || at.Line < 1 || at.Line > 1+strings.Count(fabric[:i], "\n") {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

// readBack writes a subnet, reads it and compares.
func readBack(t *testing.T, s *Subnet) string {
	t.Helper()
	var text bytes.Buffer
	if err := s.WriteNetDiscover(&text); err != nil {
		t.Fatal(err)
	}
	back := parse(t, text.String())
	if diff := cmp.Diff(flat(s), flat(back)); diff != "" || back.SM.String() != s.SM.String() || len(back.Warnings) != 0 {
		t.Errorf("not the same (-written +read), SM %s, warnings %v:\n%s", back.SM, back.Warnings, diff)
	}
	return text.String()
}

// body is what counts of a file for a comparison with another: no comments of
// the whole and no blank lines, all blanks as one.
func body(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestWriteNetDiscover(t *testing.T) {
	got := readBack(t, parse(t, fabric))
	want := strings.Replace(fabric, "on Mon Jan  6 10:00:00 2025", "by ibsm", 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("not the text that was read (-read +written):\n%s", diff)
	}
	// From YAML there are names and more that the form has no place for.
	s := broughtUp(t, parse(t, small))
	s.Nodes[0].Desc = "two\nlines"
	var text bytes.Buffer
	if err := s.WriteNetDiscover(&text); err != nil {
		t.Fatal(err)
	}
	back := parse(t, text.String())
	if b2 := port(t, back, "b[2]"); back.Nodes[0].Desc != "two lines" || b2.LMC != 2 || b2.GUID != 0x25 || b2.Speed != mad.SpeedNDR || back.SM != b2 {
		t.Errorf("read back: %+v\n%s", b2, &text)
	}
}

// The files of ../../shared/cases are other people's; see the README there for
// the numbers of nodes.
var cases = []struct {
	file          string
	switches, cas int
	warnings      []string
}{
	{"qdr-voltaire-X5.topofile", 11, 89, nil},
	{"qdr2014-loginoff.topo", 8, 144, nil},
	{"jabl-3-stderr-mixed-loopback.topo", 2, 6, []string{`:1: passed over "src/query_smp.c:195; `}},
	{"jabl-4-oracle.topo", 1, 1, nil},
}

// readCase reads a file of the cases, or skips the test where they are not.
func readCase(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../shared/cases/" + file)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return text
}

var portLine = regexp.MustCompile(`^\[(\d+)\](?:\(([0-9a-f]+)\))?\s+"([SHR]-[0-9a-f]{16})"\[(\d+)\].* lid (\d+) (\d+x)([A-Z0-9]+)$`)

func TestCases(t *testing.T) {
	for _, tt := range cases {
		t.Run(tt.file, func(t *testing.T) {
			text := readCase(t, tt.file)
			s, err := Parse("f", text)
			if err != nil {
				t.Fatal(err)
			}
			count := map[mad.NodeType]int{}
			for _, n := range s.Nodes {
				count[n.Type]++
			}
			if count[mad.NodeTypeSwitch] != tt.switches || count[mad.NodeTypeCA] != tt.cas {
				t.Errorf("nodes %v, want %d, %d", count, tt.switches, tt.cas)
			}
			if len(s.Warnings) != len(tt.warnings) {
				t.Errorf("warnings %v, want %v", s.Warnings, tt.warnings)
			}
			foreign := map[int]bool{}
			for i, w := range s.Warnings {
				foreign[w.Line] = true
				if !strings.HasPrefix(w.String(), "f"+tt.warnings[i]) {
					t.Errorf("warning %s, want %s", w, tt.warnings[i])
				}
			}
			// Each port line by a second, simple reader.
			links := 0
			var node *Node
			for i, line := range strings.Split(string(text), "\n") {
				if id := regexp.MustCompile(`^(?:Switch|Ca)\s+\d+ "[SH]-([0-9a-f]+)"`).FindStringSubmatch(line); id != nil {
					guid, _ := strconv.ParseUint(id[1], 16, 64)
					p, ok := s.PortByGUID(mad.GUID(guid))
					if !ok {
						t.Fatalf("line %d: no such node", i+1)
					}
					node = p.Node
				}
				m := portLine.FindStringSubmatch(strings.TrimSpace(line))
				if m == nil {
					continue
				}
				links++
				num, _ := strconv.Atoi(m[1])
				p := node.portAt(num)
				far := p.Peer
				end := far
				if far.Node.IsSwitch() {
					end = far.Node.portAt(0)
				}
				got := []string{m[1], "", netID(far.Node.Type, far.Node.GUID), fmt.Sprint(far.Num), end.LID.String(), word(linkWidths, p.Width), p.Speed.String()}
				if p.IsEnd() {
					got[1] = fmt.Sprintf("%x", uint64(p.GUID))
				}
				if !cmp.Equal(got, m[1:]) {
					t.Errorf("line %d: got %v, want %v", i+1, got, m[1:])
				}
			}
			if n := strings.Count(string(text), "\n["); links != n || n == 0 {
				t.Errorf("compared %d lines of %d", links, n)
			}
			// What is written is what was read, but for the foreign lines.
			lines := strings.SplitAfter(string(text), "\n")
			var own strings.Builder
			for i, line := range lines {
				if !foreign[i+1] {
					own.WriteString(line)
				}
			}
			if diff := cmp.Diff(body(own.String()), body(readBack(t, s))); diff != "" {
				t.Errorf("not the text that was read (-read +written):\n%s", diff)
			}
			broughtUp(t, s)
			for p := range s.EndPorts() {
				if p.Peer != nil && (p.State != mad.PortStateActive || p.LID == 0) {
					t.Errorf("%s is %v, LID %s", p, p.State, p.LID)
				}
			}
		})
	}
}

// FuzzParseNetDiscover: no text may panic, and what parses is written and read
// back alike, without warnings. The seeds are short because the fuzzer spends
// its time on making long inputs shorter.
func FuzzParseNetDiscover(f *testing.F) {
	const (
		sw = "devid=0x1\nswitchguid=0x10(11)\nSwitch\t4 \"S-0000000000000010\"\t\t# \"s\" base port 0 lid 9 lmc 0\n"
		to = "[1]\t\"H-0000000000000030\"[2](32) \t\t# \"h\" lid 4 4xQDR\n"
		ca = "\nsysimgguid=0x3\ncaguid=0x30\nCa\t2 \"H-0000000000000030\"\t\t# \"h\"\n"
		up = "[2](32) \t\"S-0000000000000010\"[1]\t\t# lid 4 lmc 1 \"s\" lid 9 4xFDR10\n"
	)
	for _, seed := range []string{
		sw + to + ca + up,
		"\ufeff" + sw + to, // one-sided, and not discovered
		"# Max of 1 hops discovered\n# Initiated from node 30 port 32\n" + ca + up,
		"[root@n1 ~]# ibnetdiscover\r\n" + strings.ReplaceAll(ca+up, "\n", "\r\n"),
		strings.ReplaceAll(sw+to, "\t", " "),
		utf16Text(ca, true),
		sw[:20] + stderrLine + sw[20:],
		sw + "[1] \"S-0000000000000010\"[2]\n[2] \"S-0000000000000010\"[1] # ??\n[3] \"S-0000000000000010\"[3]",
		"Chassis 1\nRt 1 \"R-0000000000000060\" # \"a \"b\" [c]\"\n[1][ext 2](61) \"R-0000000000000061\"[1][ext 3] (62) # lid 8 lmc 3 \"\" lid 0 12xXDR s=1 w=2 v=3",
		"Hca 2 \"x\" # \"S-0000000000000002\"\n[2] \"x\"[1]",
		"Switch 1 \"x\"\n[1] \"S-0000000000000010\"[254] # \"\t\" lid 1 1xSDR",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseNetDiscover("f", plainText([]byte(text)))
		if err != nil {
			return
		}
		var first, second bytes.Buffer
		if err := s.WriteNetDiscover(&first); err != nil {
			t.Fatal(err)
		}
		back, err := Parse("back", first.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, &first)
		}
		if err := back.WriteNetDiscover(&second); err != nil {
			t.Fatal(err)
		}
		if first.String() != second.String() || len(back.Warnings) > 0 {
			t.Errorf("written:\n%s\nafter reading that, with warnings %v:\n%s", &first, back.Warnings, &second)
		}
		if err := s.BringUp(); err != nil && !strings.Contains(err.Error(), "no LID is left") {
			t.Fatal(err)
		}
	})
}

func BenchmarkParseNetDiscover11664(b *testing.B) {
	var text bytes.Buffer
	if err := broughtUp(b, generate(b, "fat-tree:k=36")).WriteNetDiscover(&text); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Parse("f", text.Bytes())
		if err != nil {
			b.Fatal(err)
		}
		broughtUp(b, s)
	}
}
