package topo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad"
)

func generate(t testing.TB, spec string) *Subnet {
	t.Helper()
	s, err := Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func broughtUp(t testing.TB, s *Subnet) *Subnet {
	t.Helper()
	if err := s.BringUp(); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDemo holds what the comment in demo.yaml promises.
func TestDemo(t *testing.T) {
	s := broughtUp(t, generate(t, "demo"))
	tests := []struct {
		from, to string
		links    string
		mtu      mad.MTU
		rate     mad.Rate
	}{
		{"h1", "h1", "", mad.MTU4096, mad.Rate100G},
		{"h1", "h2", "h1[1]-s1[1] s1[2]-h2[1]", mad.MTU4096, mad.Rate100G},
		{"h1", "h3", "h1[1]-s1[1] s1[3]-h3[1]", mad.MTU4096, mad.Rate56G},
		{"h1", "h5", "h1[1]-s1[1] s1[11]-s2[11] s2[1]-h5[1]", mad.MTU4096, mad.Rate100G},
		{"h1", "h7", "h1[1]-s1[1] s1[11]-s2[11] s2[3]-h7[1]", mad.MTU4096, mad.Rate25G},
		{"h1", "h8", "h1[1]-s1[1] s1[12]-s2[12] s2[4]-h8[1]", mad.MTU2048, mad.Rate40G},
		{"h1", "s2", "h1[1]-s1[1] s1[11]-s2[11]", mad.MTU4096, mad.Rate100G},
		{"s2", "h1", "s2[11]-s1[11] s1[1]-h1[1]", mad.MTU4096, mad.Rate100G},
	}
	for _, tt := range tests {
		t.Run(tt.from+" "+tt.to, func(t *testing.T) {
			from := port(t, s, tt.from)
			hops, err := s.Walk(from, port(t, s, tt.to).LID)
			if err != nil {
				t.Fatal(err)
			}
			mtu, rate := from.MTU, from.Rate()
			var links []string
			for i, h := range hops {
				links = append(links, h.From.String()+"-"+h.To.String())
				mtu = min(mtu, h.MTU)
				if i == 0 || h.Rate().Compare(rate) < 0 {
					rate = h.Rate()
				}
			}
			if got := strings.Join(links, " "); got != tt.links || mtu != tt.mtu || rate != tt.rate {
				t.Errorf("%s, MTU %v, rate %v\nwant %s, %v, %v", got, mtu, rate, tt.links, tt.mtu, tt.rate)
			}
		})
	}
	h1 := port(t, s, "h1")
	if h1 != s.SM || h1.LID != 1 || h1.IP != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("h1: SM %s, LID %s, IP %s", s.SM, h1.LID, h1.IP)
	}
}

// shortest is the number of links between two end ports, by a search over links
// that knows nothing of forwarding tables; -1 if there is no way.
func shortest(from, to *Port) int {
	links := map[*Port]int{from: 0} // by arrival port
	for queue := []*Port{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == to || to.Num == 0 && at.Node == to.Node {
			return links[at]
		}
		out := []*Port{at}
		if at.Node.IsSwitch() {
			out = out[:0]
			for i := range at.Node.Ports[1:] {
				out = append(out, &at.Node.Ports[1+i])
			}
		} else if at != from {
			continue // a CA forwards nothing
		}
		for _, p := range out {
			if p.Peer == nil {
				continue
			}
			if _, seen := links[p.Peer]; !seen {
				links[p.Peer] = links[at] + 1
				queue = append(queue, p.Peer)
			}
		}
	}
	return -1
}

// randomText is a fabric file of switches and hosts with random links.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	switches, hosts := 1+r.IntN(6), 2+r.IntN(8)
	b.WriteString("nodes:\n")
	for i := range switches {
		fmt.Fprintf(&b, "- {name: s%d, kind: switch, ports: 24, port: {0: {lmc: %d}}}\n", i, r.IntN(2))
	}
	for i := range hosts {
		fmt.Fprintf(&b, "- {name: h%d, kind: ca, ports: 2, port: {1: {lmc: %d}}}\n", i, r.IntN(3))
	}
	b.WriteString("links:\n")
	used := make([]int, switches)
	next := func(i int) string {
		used[i]++
		return fmt.Sprintf("s%d[%d]", i, used[i])
	}
	for i := range hosts {
		fmt.Fprintf(&b, "- h%d[1] - %s\n", i, next(r.IntN(switches)))
	}
	for range r.IntN(2 * switches) {
		if i, j := r.IntN(switches), r.IntN(switches); used[i] < 20 && used[j] < 20 {
			fmt.Fprintf(&b, "- %s - %s\n", next(i), next(j))
		}
	}
	return b.String()
}

func TestRouteMinHop(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		text := randomText(r)
		s := broughtUp(t, parse(t, text))
		for from := range s.EndPorts() {
			for to := range s.EndPorts() {
				want := shortest(from, to)
				reached := shortest(s.SM, from) >= 0
				if to.LID == 0 {
					if want >= 0 && reached {
						t.Fatalf("%s is reached from %s but has no LID in\n%s", to, from, text)
					}
					continue
				}
				for i := range 1 << to.LMC {
					hops, err := s.Walk(from, to.LID+mad.LID(i))
					if want < 0 || !reached {
						if err == nil && from != to {
							t.Fatalf("%s to %s: a way where there is no link\n%s", from, to, text)
						}
						continue
					}
					if err != nil || len(hops) != want {
						t.Fatalf("%s to %s: %d hops, want %d, %v\n%s", from, to, len(hops), want, err, text)
					}
				}
			}
		}
	}
}

// TestBalance: the hosts behind other leafs are spread evenly over the spines.
func TestBalance(t *testing.T) {
	s := broughtUp(t, generate(t, "two-level:leafs=6,spines=3,hosts=3"))
	for _, n := range s.Nodes {
		if !strings.HasPrefix(n.Name, "leaf") {
			continue
		}
		load := map[uint8]int{}
		for p := range s.EndPorts() {
			if out := n.LFT[p.LID]; !p.Node.IsSwitch() && out > 3 {
				load[out]++
			}
		}
		for port := uint8(4); port <= 6; port++ {
			if load[port] != 5 { // 15 hosts over 3 spines
				t.Errorf("%s: hosts by port %v, want 5 each", n.Name, load)
			}
		}
	}
}

func TestBringUpStates(t *testing.T) {
	s := broughtUp(t, parse(t, `
subnet: {sm: a, sm-sl: 5}
nodes:
- {name: a, kind: ca, port: {1: {lid: 3}}}
- {name: b, kind: ca, ports: 2, port: {1: {lmc: 1}}}
- {name: c, kind: ca, ports: 2}
- {name: s, kind: switch, ports: 4}
links: ["a[1] - s[1]", "b[1] - s[2]", "b[2] - c[1]"]
`))
	tests := []struct {
		port  string
		state mad.PortState
		lid   mad.LID
	}{
		{"a[1]", mad.PortStateActive, 3},
		{"b[1]", mad.PortStateActive, 4}, // two LIDs, aligned, and 3 is taken
		{"b[2]", mad.PortStateInit, 0},   // linked, but the SM does not reach it
		{"c[1]", mad.PortStateInit, 0},
		{"c[2]", mad.PortStateDown, 0},
		{"s[0]", mad.PortStateActive, 6},
		{"s[1]", mad.PortStateActive, 0},
		{"s[3]", mad.PortStateDown, 0},
	}
	for _, tt := range tests {
		p := port(t, s, tt.port)
		if p.State != tt.state || p.LID != tt.lid {
			t.Errorf("%s: %v LID %s, want %v LID %s", p, p.State, p.LID, tt.state, tt.lid)
		}
		if p.LID != 0 && (p.SMLID != 3 || p.SMSL != 5) {
			t.Errorf("%s: SM LID %s SL %d, want 3, 5", p, p.SMLID, p.SMSL)
		}
	}
	if s.TopLID() != 6 {
		t.Errorf("top LID %s", s.TopLID())
	}
	lids := fmt.Sprint(port(t, s, "b[1]").LID, port(t, s, "s").LID)
	if broughtUp(t, s); lids != fmt.Sprint(port(t, s, "b[1]").LID, port(t, s, "s").LID) {
		t.Error("a second BringUp changes LIDs")
	}
}

func TestNoLIDLeft(t *testing.T) {
	// 49,151 LIDs are 383 ranges of 128 and the range from LID 0, which is not whole.
	s := generate(t, "two-level:leafs=4,spines=1,hosts=96")
	for p := range s.EndPorts() {
		if !p.Node.IsSwitch() {
			p.LMC = 7
		}
	}
	if err := s.BringUp(); err == nil || !strings.Contains(err.Error(), "no LID is left for port h384[1]: there are 49151 unicast LIDs") {
		t.Errorf("error %v", err)
	}
}

func TestWalkErrors(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(s *Subnet)
		from  string
		to    mad.LID
		at    string
		why   string
	}{
		{"LID 0", nil, "h1", 0, "s1[1]", "the forwarding table has no route"},
		{"LID not in use", nil, "h1", 100, "s1[1]", "the forwarding table has no route"},
		{"entry missing", func(s *Subnet) { s.Nodes[9].LFT[8] = NoRoute }, "h1", 8, "s2[12]", "the forwarding table has no route"},
		{"loop", func(s *Subnet) { s.Nodes[9].LFT[8] = 12 }, "h1", 8, "s2[12]", "the forwarding tables make a loop"},
		{"wrong host", func(s *Subnet) { s.Nodes[9].LFT[8] = 3 }, "h1", 8, "h7[1]", "the port does not have the LID"},
		{"wrong port 0", func(s *Subnet) { s.Nodes[9].LFT[8] = 0 }, "h1", 8, "s2[12]", "says port 0, which does not have the LID"},
		{"port without link", func(s *Subnet) { s.Nodes[9].LFT[8] = 7 }, "h1", 8, "s2[12]", "port s2[7] has no active link"},
		{"link down", func(s *Subnet) { s.Nodes[7].Ports[1].State = mad.PortStateDown }, "h1", 8, "s2[12]", "port s2[4] has no active link"},
		{"own link down", func(s *Subnet) { s.Nodes[0].Ports[1].State = mad.PortStateInit }, "h1", 8, "h1[1]", "port h1[1] has no active link"},
		{"no end port", nil, "s1[1]", 8, "s1[1]", "is no end port"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := broughtUp(t, generate(t, "demo"))
			if tt.spoil != nil {
				tt.spoil(s)
			}
			from := port(t, s, tt.from)
			_, err := s.Walk(from, tt.to)
			var walk *WalkError
			if !errors.As(err, &walk) {
				t.Fatalf("error %v", err)
			}
			if walk.From != from || walk.To != tt.to || !strings.Contains(walk.Why, tt.why) {
				t.Errorf("error %v, want %s", err, tt.why)
			}
			if text := "way from h1[1] to LID 8: after 2 links, at s2[12]: " + tt.why; tt.name == "entry missing" && err.Error() != text {
				t.Errorf("error %q, want %q", err, text)
			}
			if tt.name != "loop" && walk.At.String() != tt.at {
				t.Errorf("at %s, want %s", walk.At, tt.at)
			}
		})
	}
}

func TestLookups(t *testing.T) {
	s := broughtUp(t, parse(t, small))
	b2, sw := port(t, s, "b[2]"), port(t, s, "sw")
	found := func(name string, got *Port, ok bool, want *Port) {
		t.Helper()
		if got != want || ok != (want != nil) {
			t.Errorf("%s: %v %v, want %v", name, got, ok, want)
		}
	}
	p, ok := s.PortByGUID(0x25)
	found("port GUID", p, ok, b2)
	p, ok = s.PortByGUID(0x20)
	found("node GUID", p, ok, port(t, s, "b[1]"))
	p, ok = s.PortByGUID(0x0002c90300000010)
	found("switch GUID", p, ok, sw)
	p, ok = s.PortByGUID(0x99)
	found("no GUID", p, ok, nil)
	p, ok = s.PortByGID(mad.MakeGID(s.GIDPrefix, 0x25))
	found("GID", p, ok, b2)
	p, ok = s.PortByGID(mad.MakeGID(mad.DefaultGIDPrefix, 0x25))
	found("link-local GID", p, ok, b2)
	p, ok = s.PortByGID(mad.MakeGID(1, 0x25))
	found("GID of another subnet", p, ok, nil)
	p, ok = s.PortByGID(mad.MakeGID(s.GIDPrefix, 0x20))
	found("GID of a node GUID", p, ok, nil)
	p, ok = s.PortByLID(b2.LID + 3) // LMC 2
	found("LID", p, ok, b2)
	p, ok = s.PortByLID(s.TopLID() + 1)
	found("LID not in use", p, ok, nil)
	p, ok = s.PortByIP(netip.MustParseAddr("fd00::25"))
	found("IP", p, ok, b2)
	p, ok = s.PortByIP(netip.MustParseAddr("10.9.9.9"))
	found("IP not in use", p, ok, nil)
	for _, name := range []string{"", "b[3]", "b[0]", "b[", "b[1", "b[x]", "c", "[1]"} {
		p, ok = s.PortByName(name)
		found(name, p, ok, nil)
	}
	if n, ok := s.NodeByName("sw"); !ok || n != sw.Node {
		t.Errorf("node sw: %v", n)
	}
	if got := s.NodesByDesc("a switch"); len(got) != 1 || got[0] != sw.Node {
		t.Errorf("by desc: %v", got)
	}
}

func BenchmarkBringUp10000(b *testing.B) {
	for b.Loop() {
		broughtUp(b, generate(b, "two-level:leafs=200,spines=18,hosts=50"))
	}
}

func BenchmarkWalk(b *testing.B) {
	s := broughtUp(b, generate(b, "two-level:leafs=36,spines=18,hosts=18"))
	from := s.SM
	for b.Loop() {
		if _, err := s.Walk(from, 648); err != nil {
			b.Fatal(err)
		}
	}
}
