package topo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad"
)

func TestGenerateCounts(t *testing.T) {
	tests := []struct {
		spec                            string
		hosts, switches, routers, links int
		longest                         int // links from the first host to the farthest, if not 0
	}{
		{"demo", 8, 2, 0, 10, 3},
		{"two-level:leafs=36,spines=18,hosts=18", 648, 54, 0, 1296, 0},
		{"two-level:leafs=5,spines=2,hosts=3", 15, 7, 0, 25, 4},
		{"two-level:hosts=1,leafs=1,spines=1", 1, 2, 0, 2, 0},
		// k^3/4 hosts, 5k^2/4 switches; as many links in each of the three levels.
		{"fat-tree:k=2", 2, 5, 0, 6, 6},
		{"fat-tree:k=4", 16, 20, 0, 48, 6},
		{"fat-tree:k=8", 128, 80, 0, 384, 6},
		{"ring:switches=6,hosts=2", 12, 6, 0, 18, 5},
		{"ring:switches=7,hosts=1", 7, 7, 0, 14, 5},
		// n cables for each switch of a torus of n dimensions.
		{"torus:x=3,y=5,hosts=2", 30, 15, 0, 60, 2 + 1 + 2},
		{"torus:x=4,y=4,z=4,hosts=1", 64, 64, 0, 256, 2 + 2 + 2 + 2},
		// a*h+1 groups, a(a-1)/2 cables in each and one between each two.
		{"dragonfly:switches=4,globals=2,hosts=2", 72, 36, 0, 72 + 9*6 + 36, 2 + 3},
		{"dragonfly:switches=2,globals=1,hosts=1,groups=2", 4, 4, 0, 4 + 2 + 1, 2 + 2},
		{"dragonfly:switches=1,globals=3,hosts=1", 4, 4, 0, 4 + 6, 2 + 1},
		{"ring:switches=3,hosts=2,ports=2", 6, 3, 0, 12 + 3, 3},
		{"ring:switches=3,hosts=1,routers=5", 3, 3, 5, 3 + 3 + 5, 3},
		// From one plane to the next by the first switches.
		{"ring:switches=3,hosts=1,planes=4", 12, 12, 0, 12 + 12 + 3, 1 + 3 + 1 + 1},
	}
	for _, tt := range tests {
		t.Run(tt.spec, func(t *testing.T) {
			s := generate(t, tt.spec)
			count := map[mad.NodeType]int{}
			ends, longest := 0, 0
			for _, n := range s.Nodes {
				count[n.Type]++
				for i := range n.Ports {
					if n.Ports[i].Peer != nil {
						ends++
					}
				}
			}
			want := map[mad.NodeType]int{mad.NodeTypeCA: tt.hosts, mad.NodeTypeSwitch: tt.switches}
			if tt.routers > 0 {
				want[mad.NodeTypeRouter] = tt.routers
			}
			if fmt.Sprint(count) != fmt.Sprint(want) || ends != 2*tt.links {
				t.Errorf("%v, %d link ends, want %v, %d", count, ends, want, 2*tt.links)
			}
			for to := range s.EndPorts() {
				if tt.longest > 0 && to.Node.Type == mad.NodeTypeCA {
					longest = max(longest, shortest(s.SM, to))
				}
			}
			if longest != tt.longest {
				t.Errorf("%d links to the farthest host, want %d", longest, tt.longest)
			}
		})
	}
}

// Each switch of a regular fabric has the same number of different neighbours.
func TestGenerateRegular(t *testing.T) {
	tests := []struct {
		spec, kind        string
		neighbours, hosts int
	}{
		{"fat-tree:k=6", "edge", 3, 3},
		{"fat-tree:k=6", "agg", 6, 0},
		{"fat-tree:k=6", "core", 6, 0},
		{"ring:switches=9,hosts=4", "s", 2, 4},
		{"torus:x=3,y=4,z=5,hosts=2", "s", 6, 2},
		{"torus:x=3,y=3,hosts=1", "s", 4, 1},
		{"dragonfly:switches=3,globals=2,hosts=2", "g", 2 + 2, 2},
	}
	for _, tt := range tests {
		for _, n := range generate(t, tt.spec).Nodes {
			if !n.IsSwitch() || !strings.HasPrefix(n.Name, tt.kind) {
				continue
			}
			neighbours, hosts := map[*Node]bool{}, 0
			for i := range n.Ports[1:] {
				switch peer := n.Ports[1+i].Peer; {
				case peer == nil:
					t.Errorf("%s: %s[%d] has no link", tt.spec, n.Name, 1+i)
				case peer.Node.IsSwitch():
					neighbours[peer.Node] = true
				default:
					hosts++
				}
			}
			if len(neighbours) != tt.neighbours || hosts != tt.hosts || neighbours[n] {
				t.Errorf("%s: %s has %d neighbours, %d hosts, want %d, %d", tt.spec, n.Name, len(neighbours), hosts, tt.neighbours, tt.hosts)
			}
		}
	}
}

// In a whole dragonfly there is one cable between any two groups.
func TestDragonflyGroups(t *testing.T) {
	group := func(n *Node) string { g, _, _ := strings.Cut(n.Name, "-"); return g }
	cables := map[string]int{}
	for _, n := range generate(t, "dragonfly:switches=3,globals=2,hosts=1").Nodes {
		for i := range n.Ports {
			if peer := n.Ports[i].Peer; peer != nil && n.IsSwitch() && peer.Node.IsSwitch() && group(n) != group(peer.Node) {
				cables[group(n)+" "+group(peer.Node)]++
			}
		}
	}
	if len(cables) != 7*6 {
		t.Errorf("%d pairs of groups have a cable, want 42", len(cables))
	}
	for pair, n := range cables {
		if n != 1 {
			t.Errorf("%d cables between %s", n, pair)
		}
	}
}

func TestGenerateOptions(t *testing.T) {
	s := broughtUp(t, generate(t, "ring:switches=3,hosts=1,ports=2,planes=2,lmc=2,routers=1,speed=NDR,width=2x"))
	h1, h1b := port(t, s, "h1 mlx5_0"), port(t, s, "h1 mlx5_1[2]")
	if h1.Peer.Node.Name != "plane1-s1" || h1b.Peer.Node.Name != "plane2-s2" {
		t.Errorf("h1: %s - %s, %s - %s", h1, h1.Peer, h1b, h1b.Peer)
	}
	if h1.Node.GUID == h1b.Node.GUID || h1.Node.SystemImageGUID != h1b.Node.SystemImageGUID || h1.Node.SystemImageGUID == port(t, s, "h2 mlx5_0").Node.SystemImageGUID {
		t.Errorf("h1: system image GUIDs %s, %s", h1.Node.SystemImageGUID, h1b.Node.SystemImageGUID)
	}
	r1 := port(t, s, "r1")
	if r1.Peer.Node.Name != "plane1-s1" || r1.Node.NumPorts() != 2 || r1.Node.Ports[2].Peer != nil {
		t.Errorf("r1: %+v", r1)
	}
	for p := range s.EndPorts() {
		want := uint8(2)
		if p.Node.IsSwitch() {
			want = 0
		} else if p.Peer != nil && (p.Speed != mad.SpeedNDR || p.Width != mad.LinkWidth2X) {
			t.Errorf("%s: %v %v", p, p.Width, p.Speed)
		}
		if p.LMC != want || p.LID%(1<<want) != 0 {
			t.Errorf("%s: LID %s, LMC %d, want LMC %d", p, p.LID, p.LMC, want)
		}
	}
}

func TestGenerateMixed(t *testing.T) {
	seen := map[string]bool{}
	s := generate(t, "ring:switches=5,hosts=8,speed=mixed,width=mixed")
	for _, n := range s.Nodes {
		for i := range n.Ports[1:] {
			p := &n.Ports[1+i]
			seen[word(linkWidths, p.Width)+word(linkSpeeds, p.Speed)] = true
		}
	}
	if len(seen) != 5*9 {
		t.Errorf("%d widths and speeds in 45 links, want 45", len(seen))
	}
	var first, second strings.Builder
	if err := s.WriteNetDiscover(&first); err != nil {
		t.Fatal(err)
	}
	if err := parse(t, first.String()).WriteNetDiscover(&second); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Errorf("written:\n%s\nand after reading that:\n%s", first.String(), second.String())
	}
}

// All LIDs of all ports are reached by shortest routes.
func TestGenerateRoutes(t *testing.T) {
	for _, spec := range []string{
		"fat-tree:k=4,lmc=1,routers=3", "ring:switches=5,hosts=1,lmc=3", "torus:x=3,y=3,z=3,hosts=1,ports=2",
		"dragonfly:switches=2,globals=2,hosts=1,planes=2", "two-level:leafs=3,spines=2,hosts=2,ports=2,planes=2,lmc=2,routers=2",
	} {
		t.Run(spec, func(t *testing.T) {
			s := broughtUp(t, generate(t, spec))
			for from := range s.EndPorts() {
				for to := range s.EndPorts() {
					for i := range 1 << to.LMC {
						if to.LID == 0 || from.LID == 0 {
							continue // the other port of a router
						}
						hops, err := s.Walk(from, to.LID+mad.LID(i))
						if want := shortest(from, to); err != nil || len(hops) != want {
							t.Fatalf("%s to LID %d of %s: %d hops, want %d, %v", from, i, to, len(hops), want, err)
						}
					}
				}
			}
		})
	}
}

// The LIDs of a port lead over different switches where there are some.
func TestLMCSpreads(t *testing.T) {
	s := broughtUp(t, generate(t, "two-level:leafs=2,spines=4,hosts=3,lmc=2"))
	for p := range s.EndPorts() {
		if p.Node.Type != mad.NodeTypeCA {
			continue
		}
		for _, leaf := range []string{"leaf1", "leaf2"} {
			if n, _ := s.NodeByName(leaf); n != p.Peer.Node {
				lft, ports := n.LFT[p.LID:][:4], map[uint8]bool{}
				for _, port := range lft {
					ports[port] = true
				}
				if len(ports) != 4 {
					t.Errorf("%s: the four LIDs of %s leave by %v", leaf, p, lft)
				}
			}
		}
	}
}

func TestGenerateErrors(t *testing.T) {
	tests := []struct{ spec, want string }{
		{"dem", `no generator "dem"; did you mean "demo"?`},
		{"demo:x=1", "demo takes no arguments"},
		{"two-level", "argument leafs is missing (two-level takes leafs=1..254, spines=1..254, hosts=1..254, [lmc=0..7], "},
		{"two-level:", "argument leafs is missing (two-level takes leafs=1..254, spines=1..254, hosts=1..254, [lmc=0..7], "},
		{"two-level:leafs", `argument "leafs" is not of the form name=value`},
		{"two-level:leaves=1", `no argument "leaves"; did you mean "leafs"?`},
		{"two-level:leafs=1,spines=1", "argument hosts is missing"},
		{"two-level:leafs=1,leafs=1", `argument "leafs" stands twice`},
		{"two-level:leafs=0,spines=1,hosts=1", "leafs=0 is not 1 to 254"},
		{"two-level:leafs=x,spines=1,hosts=1", "leafs=x is not 1 to 254"},
		{"two-level:leafs=1,spines=100,hosts=155", "switch leaf1 has 255 ports, but at most 254"},
		{"fat-tree:k=5", "k=5 is not even"},
		{"fat-tree:k=50", "k=50 is not 2 to 48"},
		{"fat-tree:k=48,lmc=1", "needs 58176 LIDs, but a subnet has 49151"}, // 2 * 48^3/4 + 5 * 48^2/4
		{"ring:switches=2,hosts=1", "switches=2 is not 3 to 100"},
		{"torus:x=3,y=3,z=2,hosts=1", "z=2 is not 3 to 16"},
		{"torus:x=3,hosts=1", "argument y is missing"},
		{"dragonfly:switches=2,globals=2,hosts=1,groups=6", "groups=6 is more than the 5 that 4 cables of a group reach"},
		{"ring:switches=3,hosts=1,lmc=8", "lmc=8 is not 0 to 7"},
		{"ring:switches=3,hosts=1,ports=0", "ports=0 is not 1 to 4"},
		{"ring:switches=3,hosts=1,speed=hdr", `speed=hdr is not one of DDR, EDR, FDR, FDR10, HDR, NDR, QDR, SDR, XDR, mixed; did you mean "HDR"?`},
		{"ring:switches=3,hosts=1,width=3x", "width=3x is not one of 12x, 1x, 2x, 4x, 8x, mixed"},
		{"ring:switches=3,hosts=127,ports=2", "switch s1 has 256 ports"},
	}
	for _, tt := range tests {
		if _, err := Generate(tt.spec); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Generate(%q): %v, want %s", tt.spec, err, tt.want)
		}
	}
}

// BenchmarkFatTree11664 is the largest fabric of the peers' benchmarks.
func BenchmarkFatTree11664(b *testing.B) {
	for b.Loop() {
		broughtUp(b, generate(b, "fat-tree:k=36"))
	}
}
