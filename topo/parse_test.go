package topo

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibsm/ibsm/mad"
)

const small = `
subnet:
  prefix: 0xfec0000000000001
  sm: b[2]
  sm-sl: 3
  timeout: 20
  ipoib: 192.168.7.0/24
defaults: {width: 1x, mtu: 2048, pkeys: [0x8002], lmc: 1}
nodes:
  - name: sw
    kind: switch
    ports: 3
    desc: "a switch"
    guid: 0x0002c90300000010
    system-guid: 0x0002c90300000001
    vendor: 0x02c9
    device: 0x1017
    port0: base
    port: {0: {lid: 7, pkeys: []}}
  - {name: a, kind: ca, lid: 16, ip: 192.168.7.2, pkeys: [0x7fff, 0x8003]}
  - name: b
    kind: CA
    ports: 2
    guid: 0x20
    pkeys: [0xffff]
    port:
      1: {guid: 0x21}
      2: {guid: 0x25, lmc: 2, ip: "fd00::25"}
  - {name: r, kind: router, desc: ""}
links:
  - a[1] - sw[1]
  - {ends: "sw[3] - b[2]", speed: ndr, width: 4X, mtu: 4096}
`

func parse(t *testing.T, text string) *Subnet {
	t.Helper()
	s, err := Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func port(t *testing.T, s *Subnet, name string) *Port {
	t.Helper()
	p, ok := s.PortByName(name)
	if !ok {
		t.Fatalf("no port %s", name)
	}
	return p
}

func TestParse(t *testing.T) {
	s := parse(t, small)
	if s.GIDPrefix != 0xfec0000000000001 || s.SMSL != 3 || s.SubnetTimeOut != 20 || s.SM != port(t, s, "b[2]") {
		t.Errorf("subnet: prefix %#x, SM %s, SL %d, time-out %d", s.GIDPrefix, s.SM, s.SMSL, s.SubnetTimeOut)
	}
	sw := port(t, s, "sw")
	n := sw.Node
	if n.Type != mad.NodeTypeSwitch || n.NumPorts() != 3 || n.Desc != "a switch" || n.GUID != 0x0002c90300000010 ||
		n.SystemImageGUID != 0x0002c90300000001 || n.VendorID != 0x02c9 || n.DeviceID != 0x1017 || !n.BasePort0 {
		t.Errorf("sw: %+v", n)
	}
	if sw.Num != 0 || sw.LID != 7 || sw.LMC != 0 || sw.GUID != n.GUID || len(sw.PKeys) != 0 || sw.MTU != mad.MTU4096 {
		t.Errorf("sw[0]: %+v", sw)
	}
	a := port(t, s, "a")
	if a.Peer != port(t, s, "sw[1]") || a.Peer.Peer != a {
		t.Errorf("a is linked to %v", a.Peer)
	}
	if a.Width != mad.LinkWidth1X || a.Speed != mad.SpeedEDR || a.MTU != mad.MTU2048 || a.Rate() != mad.Rate25G {
		t.Errorf("a: link %v %v %v rate %v, want the defaults 1x EDR 2048", a.Width, a.Speed, a.MTU, a.Rate())
	}
	if diff := cmp.Diff([]mad.PKey{0x7fff, 0x8003}, a.PKeys); a.LID != 16 || diff != "" {
		t.Errorf("a: LID %s, P_Keys %s", a.LID, diff)
	}
	b1, b2 := port(t, s, "b"), port(t, s, "b[2]")
	if b1.Num != 1 || b1.LMC != 1 || b1.GUID != 0x21 || b2.GUID != 0x25 || b2.LMC != 2 || b2.IP != netip.MustParseAddr("fd00::25") {
		t.Errorf("b: %+v %+v", b1, b2)
	}
	if b2.Peer != port(t, s, "sw[3]") || b2.Width != mad.LinkWidth4X || b2.Speed != mad.SpeedNDR || b2.MTU != mad.MTU4096 {
		t.Errorf("b[2]: link to %v %v %v %v", b2.Peer, b2.Width, b2.Speed, b2.MTU)
	}
	// 192.168.7.0 is the network and .2 is a's.
	for name, ip := range map[string]string{"sw": "192.168.7.1", "a": "192.168.7.2", "b": "192.168.7.3", "r": "192.168.7.4"} {
		if got := port(t, s, name).IP; got != netip.MustParseAddr(ip) {
			t.Errorf("%s has IP %s, want %s", name, got, ip)
		}
	}
	if r := port(t, s, "r"); r.PKeys[0] != 0x8002 || r.Node.Type != mad.NodeTypeRouter || r.Node.Desc != "" || a.Node.Desc != "a" {
		t.Errorf("r: %+v", r)
	}
}

func TestParseErrors(t *testing.T) {
	const node = "nodes:\n- {name: a, kind: ca, ports: 2}\n- {name: s1, kind: switch, ports: 2}\n"
	tests := []struct {
		name, text, want string
	}{
		{"empty", "", "f.yaml: is empty"},
		{"no YAML", "a: [", "f.yaml:1: is no YAML: did not find expected node content"},
		{"list", "- 1", `f.yaml:1:1: fabric must be a mapping (key: value), not a list`},
		{"second document", node + "---\nnodes: []\n", "f.yaml:4:1: a second document"},
		{"unknown key", "node: []", `f.yaml:1:1: fabric has no key "node"; did you mean "nodes"?`},
		{"far unknown key", "switches: []", `f.yaml:1:1: fabric has no key "switches"`},
		{"key twice", "nodes: []\nnodes: []", `f.yaml:2:1: fabric has key "nodes" twice, first in line 1`},
		{"no nodes", "links: []", "f.yaml:1:1: has no nodes"},
		{"empty nodes", "nodes: []", "subnet has no nodes"},
		{"node key", "nodes:\n- {name: a, kinds: ca}", `f.yaml:2:13: node has no key "kinds"; did you mean "kind"?`},
		{"kind", "nodes:\n- {name: a, kind: swich}", `f.yaml:2:19: "swich" is not one of ca, router, switch; did you mean "switch"?`},
		{"no kind", "nodes:\n- {name: a}", "f.yaml:2:3: node a has no kind"},
		{"no name", "nodes:\n- {kind: ca}", `f.yaml:2:3: node has name "", which is empty`},
		{"null name", "nodes:\n- {name: , kind: ca}", "f.yaml:2:10: expected a value, not nothing"},
		{"name", "nodes:\n- {name: 'a[1]', kind: ca}", `f.yaml:2:3: node has name "a[1]", which has a [`},
		{"name twice", node + "- {name: a, kind: ca}", "f.yaml:4:3: node a has the name of the node at f.yaml:2:3"},
		{"too many ports", "nodes:\n- {name: a, kind: ca, ports: 255}", `f.yaml:2:30: "255" is not 1 to 254`},
		{"number too wide", "nodes:\n- {name: a, kind: ca, device: 0x10000}", `f.yaml:2:31: "0x10000" is not 0 to 65535`},
		{"no number", "nodes:\n- {name: a, kind: ca, guid: xyz}", `f.yaml:2:29: "xyz" is no number`},
		{"port 0", "nodes:\n- {name: a, kind: ca, port0: enhanced}", "f.yaml:2:30: node a is no switch: it has no port 0"},
		{"port 0 kind", "nodes:\n- {name: a, kind: switch, port0: big}", `f.yaml:2:34: "big" is not one of base, enhanced`},
		{"LMC", node + "defaults: {lmc: 8}", `f.yaml:4:17: "8" is not 0 to 7`},
		{"alias", "nodes: &n [1]\nlinks: *n", "f.yaml:1:12: node must be a mapping"},
		{"alias value", "nodes:\n- {name: &x a, kind: ca, desc: *x}", "f.yaml:2:32: expected a value, not an alias"},
		{"ip", "nodes:\n- {name: a, kind: ca, ip: 10.0.0}", `f.yaml:2:27: "10.0.0" is no IP address`},
		{"ip of two ports", "nodes:\n- {name: a, kind: ca, ports: 2, ip: 10.0.0.1}", "f.yaml:2:37: node a has 2 end ports: say its ip under port"},
		{"no such port", "nodes:\n- {name: a, kind: ca, port: {2: {}}}", `f.yaml:2:30: node a has no end port "2"`},
		{"port of a switch", "nodes:\n- {name: a, kind: switch, port: {2: {}}}", `f.yaml:2:34: node a has no end port "2"`},
		{"pkeys no list", "nodes:\n- {name: a, kind: ca, pkeys: 0xffff}", `f.yaml:2:30: value must be a list, not "0xffff"`},
		{"link form", node + "links:\n- a - s1", `f.yaml:5:3: link "a - s1" is not of the form a[1] - b[2]`},
		{"link end form", node + "links:\n- a[1] - s1", `f.yaml:5:3: link end "s1" is not of the form a[1]`},
		{"link end unknown", node + "links:\n- a[1] - s2[1]", `f.yaml:5:3: link end "s2[1]" names no node; did you mean "s1"?`},
		{"link end port", node + "links:\n- a[1] - s1[3]", `f.yaml:5:3: link end "s1[3]": node s1 has ports 1 to 2`},
		{"link end port 0", node + "links:\n- a[1] - s1[0]", `f.yaml:5:3: link end "s1[0]": node s1 has ports 1 to 2`},
		{"link to itself", node + "links:\n- a[1] - a[1]", `f.yaml:5:3: link "a[1] - a[1]" goes from a port to itself`},
		{"port twice", node + "links:\n- a[1] - s1[1]\n- {ends: 'a[2] - s1[1]'}", "f.yaml:6:10: port s1[1] has a link already, at f.yaml:5:3"},
		{"link without ends", node + "links:\n- {speed: EDR}", "f.yaml:5:3: link has no ends"},
		{"speed", node + "links:\n- {ends: 'a[1] - s1[1]', speed: EDRR}", `"EDRR" is not one of DDR, EDR, FDR, FDR10, HDR, NDR, QDR, SDR, XDR; did you mean "EDR"?`},
		{"width", node + "links:\n- {ends: 'a[1] - s1[1]', width: 3x}", `f.yaml:5:33: "3x" is not one of 12x, 1x, 2x, 4x, 8x`},
		{"mtu", node + "links:\n- {ends: 'a[1] - s1[1]', mtu: 1500}", `f.yaml:5:31: "1500" is not one of 1024, 2048, 256, 4096, 512`},
		{"ends in defaults", node + "defaults: {ends: x}", `f.yaml:4:12: defaults has no key "ends"`},
		{"sm unknown", node + "subnet: {sm: b}", `f.yaml:4:14: "b" names no node`},
		{"sm no end port", node + "subnet: {sm: 's1[1]'}", `f.yaml:4:14: "s1[1]" is no end port of node s1`},
		{"prefix", node + "subnet: {ipoib: 10.0.0.0}", `f.yaml:4:17: "10.0.0.0" is no prefix like 10.0.0.0/16`},
		{"prefix too small", node + "subnet: {ipoib: 10.0.0.0/31}", "f.yaml: subnet: ipoib 10.0.0.0/31 has too few addresses for the end ports: a[1] gets none"},
		{"prefix at the end", node + "subnet: {ipoib: 255.255.255.254/31}", "too few addresses for the end ports: a[1] gets none"},
		// Contradictions name both places.
		{"guid twice", "nodes:\n- {name: a, kind: ca, guid: 5}\n- {name: b, kind: ca, guid: 5}",
			"f.yaml:3:3: node b: has GUID 0x0000000000000005, as has f.yaml:2:3: node a"},
		{"guid of a port", "nodes:\n- {name: a, kind: ca, guid: 4}\n- {name: b, kind: ca, port: {1: {guid: 5}}}",
			"f.yaml:3:33: port b[1]: has GUID 0x0000000000000005, as has f.yaml:2:3: port a[1]"},
		{"guid of both ports", "nodes:\n- {name: a, kind: ca, ports: 2, guid: 4, port: {1: {guid: 4}, 2: {guid: 4}}}",
			"f.yaml:2:66: port a[2]: has GUID 0x0000000000000004, as has f.yaml:2:52: port a[1]"},
		{"lid twice", "nodes:\n- {name: a, kind: ca, port: {1: {lid: 8, lmc: 2}}}\n- {name: b, kind: ca, lid: 9}",
			"f.yaml:3:3: port b[1]: has LID 9, as has f.yaml:2:33: port a[1]"},
		{"lid multicast", "nodes:\n- {name: a, kind: ca, lid: 0xc000}", `f.yaml:2:28: "0xc000" is not 1 to 49151`},
		{"lid not aligned", "nodes:\n- {name: a, kind: ca, port: {1: {lid: 9, lmc: 1}}}", "port a[1]: LID 9 is no multiple of 2^LMC, LMC 1"},
		{"ip twice", "nodes:\n- {name: a, kind: ca, ip: 10.0.0.1}\n- {name: b, kind: ca, ip: 10.0.0.1}",
			"f.yaml:3:3: port b[1]: has IP address 10.0.0.1, as has f.yaml:2:3: port a[1]"},
		{"pkey invalid", "nodes:\n- {name: a, kind: ca, pkeys: [0x8000]}", "f.yaml:2:31: P_Key 0x8000 is invalid"},
		{"pkey twice", "nodes:\n- {name: a, kind: ca, pkeys: [0x8001, 1]}", "port a[1]: P_Keys 0x8001 and 0x0001 are of one partition"},
		{"desc", "nodes:\n- {name: a, kind: ca, desc: " + strings.Repeat("d", 65) + "}", "UTF-8 text of at most 64 bytes"},
		{"prefix 0", node + "subnet: {prefix: 0}", `f.yaml:4:18: "0" is not 0x1 to 0xfeffffffffffffff`},
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

func TestFileErrorPlace(t *testing.T) {
	_, err := Parse("x.yaml", []byte("nodes:\n- {name: a, kind: c}"))
	var at *FileError
	if !errors.As(err, &at) || at.File != "x.yaml" || at.Line != 2 || at.Col != 19 {
		t.Errorf("error %#v", err)
	}
}

// TestValidate is for what no file can say.
func TestValidate(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(s *Subnet)
		want  string
	}{
		{"one-sided link", func(s *Subnet) { s.Nodes[0].Ports[1].Peer.Peer = nil }, "link h1[1] - s1[1]: port s1[1] is in"},
		{"link to itself", func(s *Subnet) { p := &s.Nodes[0].Ports[1]; p.Peer.Peer = nil; p.Peer = p }, "the two ends are one port"},
		{"speeds differ", func(s *Subnet) { s.Nodes[0].Ports[1].Speed = mad.SpeedXDR }, "width, speed or MTU differ at the two ends"},
		{"speed unknown", func(s *Subnet) { s.Nodes[0].Ports[1].Speed = 3 }, "speed code 3 is not known"},
		{"width unknown", func(s *Subnet) { s.Nodes[0].Ports[1].Width = 3 }, "width code 3 is not known"},
		{"MTU unknown", func(s *Subnet) { s.Nodes[8].Ports[1].MTU = 6 }, "MTU code 6 is not known"},
		{"link of port 0", func(s *Subnet) { s.Nodes[8].Ports[0].Peer = &s.Nodes[0].Ports[1] }, "port 0 has no link"},
		{"type", func(s *Subnet) { s.Nodes[0].Type = 4 }, "node type 4 is not known"},
		{"names", func(s *Subnet) { s.Nodes[1].Name = "h1" }, "node h1: has the name of demo.yaml:"},
		{"bad name", func(s *Subnet) { s.Nodes[1].Name = " h" }, "starts or ends with a space"},
		{"vendor", func(s *Subnet) { s.Nodes[1].VendorID = 1 << 24 }, "more than 24 bits"},
		{"GUID 0", func(s *Subnet) { s.Nodes[1].Ports[1].GUID = 0 }, "port h2[1]: GUID is 0"},
		{"no IP", func(s *Subnet) { s.Nodes[1].Ports[1].IP = netip.Addr{} }, "port h2[1]: has no IPoIB address"},
		{"P_Keys", func(s *Subnet) { s.Nodes[1].Ports[1].PKeys = make([]mad.PKey, 129) }, "has 129 P_Keys, more than 128"},
		{"LMC", func(s *Subnet) { s.Nodes[1].Ports[1].LMC = 8 }, "LMC 8"},
		{"GID prefix", func(s *Subnet) { s.GIDPrefix = 0 }, "GID prefix 0x0 is 0 or that of multicast GIDs"},
		{"P_Key", func(s *Subnet) { s.Nodes[1].Ports[1].PKeys[0] = 0x8000 }, "P_Key 0x8000 is invalid"},
		{"LID", func(s *Subnet) { s.Nodes[1].Ports[1].LID = 0xc000 }, "LID 49152 is not unicast"},
		{"SM", func(s *Subnet) { s.SM = &s.Nodes[8].Ports[1] }, "the SM's port s1[1] is no end port"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Generate("demo")
			if err != nil {
				t.Fatal(err)
			}
			tt.spoil(s)
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// flatNode and flatPort are what a file says of nodes and ports.
type flatNode struct {
	Name, Desc            string
	Type                  mad.NodeType
	GUID, SystemImageGUID mad.GUID
	VendorID              uint32
	DeviceID              uint16
	BasePort0             bool
	Ports                 []flatPort
}

type flatPort struct {
	Peer  string
	Width mad.LinkWidth
	Speed mad.Speed
	MTU   mad.MTU
	GUID  mad.GUID
	LID   mad.LID
	LMC   uint8
	PKeys []mad.PKey
	IP    string
}

func flat(s *Subnet) (nodes []flatNode) {
	for _, n := range s.Nodes {
		f := flatNode{n.Name, n.Desc, n.Type, n.GUID, n.SystemImageGUID, n.VendorID, n.DeviceID, n.BasePort0, nil}
		for i := range n.Ports {
			p := &n.Ports[i]
			peer := ""
			if p.Peer != nil {
				peer = p.Peer.String()
			}
			f.Ports = append(f.Ports, flatPort{peer, p.Width, p.Speed, p.MTU, p.GUID, p.LID, p.LMC, p.PKeys, p.IP.String()})
		}
		nodes = append(nodes, f)
	}
	return nodes
}

func TestWriteYAML(t *testing.T) {
	demo, err := Generate("demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.BringUp(); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Subnet{"small": parse(t, small), "demo with LIDs": demo} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			if err := s.WriteYAML(&text); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "w.yaml")
			if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			back, err := Load(file)
			if err != nil {
				t.Fatalf("%v\n%s", err, &text)
			}
			if diff := cmp.Diff(flat(s), flat(back)); diff != "" {
				t.Errorf("not the same (-written +read):\n%s", diff)
			}
			if s.GIDPrefix != back.GIDPrefix || s.SM.String() != back.SM.String() || s.SMSL != back.SMSL ||
				s.SubnetTimeOut != back.SubnetTimeOut || s.ipoib != back.ipoib {
				t.Errorf("subnet: got %+v, want %+v", back, s)
			}
		})
	}
}

func TestLoadMissing(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// FuzzParse: no text may panic, and what parses is written and read back alike.
func FuzzParse(f *testing.F) {
	f.Add(small)
	f.Add("nodes: [{name: a, kind: ca}]")
	f.Add("nodes: &a [*a]")
	f.Add("subnet: {ipoib: ::/0}\nnodes: [{name: \"\\u00e9\", kind: switch, desc: \"\\x01\"}]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("f.yaml", []byte(text))
		if err != nil {
			return
		}
		var first, second bytes.Buffer
		if err := s.WriteYAML(&first); err != nil {
			t.Fatal(err)
		}
		back, err := Parse("back.yaml", first.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, &first)
		}
		if err := back.WriteYAML(&second); err != nil {
			t.Fatal(err)
		}
		if first.String() != second.String() {
			t.Errorf("written:\n%s\nafter reading that:\n%s", &first, &second)
		}
		if err := s.BringUp(); err != nil && !strings.Contains(err.Error(), "no LID is left") {
			t.Fatal(err)
		}
	})
}
