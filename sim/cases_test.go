package sim

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/topo"
)

// askSA puts an SA and a client of it on the SM's port.
func (r *rig) askSA(test func(c *sa.Client)) {
	r.t.Helper()
	dev, err := r.fab.Device(r.sub.SM.Node, r.sub.SM.Num)
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := server.New(dev, r.sub, server.Config{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.Close()
	c, err := sa.NewClient(dev, sa.Config{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	test(c)
}

// hosts are the ports of adapters that have a link.
func (r *rig) hosts() (ports []*topo.Port) {
	for p := range r.sub.EndPorts() {
		if p.Node.Type == mad.NodeTypeCA && p.Peer != nil {
			ports = append(ports, p)
		}
	}
	return ports
}

// pair is the LIDs of a path.
type pair struct{ slid, dlid mad.LID }

// checkPaths asks for the paths between all hosts. Each must have the MTU and
// rate of the links that a MAD crosses on its way, and end at the right port.
// There must be one for each two LIDs of two ports.
func (r *rig) checkPaths(c *sa.Client) {
	r.t.Helper()
	hosts := r.hosts()
	for _, src := range hosts {
		found := map[pair]mad.PathRecord{}
		query := sa.Match(mad.PathRecord{SGID: src.GID(r.sub.GIDPrefix)}, "SGID")
		for rec, err := range sa.Table(r.t.Context(), c, query) {
			if err != nil {
				r.t.Fatalf("paths from %s: %v", src, err)
			}
			found[pair{rec.SLID, rec.DLID}] = rec
		}
		for _, dst := range hosts {
			if src == dst {
				continue
			}
			for i := range 1 << src.LMC {
				for j := range 1 << dst.LMC {
					lids := pair{src.LID + mad.LID(i), dst.LID + mad.LID(j)}
					rec := found[lids]
					if rec.DGID != dst.GID(r.sub.GIDPrefix) || !rec.Reversible {
						r.t.Errorf("from %s to %s, LIDs %v: %+v", src, dst, lids, rec)
					}
					if src == r.sub.SM {
						continue // its port has no reader of single MADs
					}
					mtu, rate := r.crossed(src, dst, lids)
					if rec.MTU != mtu || rec.Rate != rate {
						r.t.Errorf("from %s to %s, LIDs %v: %+v, want MTU %v, rate %v", src, dst, lids, rec, mtu, rate)
					}
				}
			}
		}
	}
}

// crossed sends a MAD from a port to another and gives the lowest MTU and rate
// on its way.
func (r *rig) crossed(src, dst *topo.Port, lids pair) (mad.MTU, mad.Rate) {
	r.t.Helper()
	w := gmp(lids.dlid, mad.DefaultPKey)
	w.Addr.PathBits = uint8(lids.slid - src.LID)
	mtu, rate := mad.MTU4096, src.Rate()
	log := r.send(src.String(), w)
	for _, h := range hops(log) {
		mtu = min(mtu, h.MTU)
		if h.Rate().Compare(rate) < 0 {
			rate = h.Rate()
		}
		if h.To == dst { // the SM's port may send an answer
			return mtu, rate
		}
	}
	r.t.Fatalf("from %s to %s, LIDs %v: it does not arrive: %v", src, dst, lids, log)
	return 0, 0
}

// TestCases runs other people's ibnetdiscover files (../../shared/cases), and
// asks for the paths between all hosts.
func TestCases(t *testing.T) {
	for file, hosts := range map[string]int{ // those of its README
		"qdr-voltaire-X5.topofile": 89, "qdr2014-loginoff.topo": 144, "jabl-3-stderr-mixed-loopback.topo": 6, "jabl-4-oracle.topo": 1,
	} {
		t.Run(file, func(t *testing.T) {
			sub, err := topo.Load(filepath.Join("../../shared/cases", file))
			if errors.Is(err, os.ErrNotExist) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			inBubbleOf(t, sub, Config{}, func(r *rig) {
				nodes := map[*topo.Node]bool{}
				for _, p := range r.hosts() {
					nodes[p.Node] = true
				}
				if len(nodes) != hosts {
					t.Errorf("%d hosts, want %d", len(nodes), hosts)
				}
				r.askSA(r.checkPaths)
			})
		})
	}
}

// The rates follow from the widths and speeds in the file: 4x of SDR 10, QDR 40,
// FDR 56 and EDR 100 Gb/s.
func TestCaseRates(t *testing.T) {
	sub, err := topo.Load("../../shared/cases/jabl-3-stderr-mixed-loopback.topo")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	inBubbleOf(t, sub, Config{}, func(r *rig) {
		r.askSA(func(c *sa.Client) {
			for _, tt := range []struct {
				from, to string
				dlid     mad.LID
				rate     mad.Rate
			}{
				{"r-ufm216 HCA-2", "r-ufm111 HCA-1[2]", 3, mad.Rate56G},
				{"r-ufm216 HCA-2", "r-ufm100 HCA-2", 28, mad.Rate56G},
				{"r-ufm216 HCA-2", "r-ufm101 HCA-1", 27, mad.Rate40G},
				{"r-ufm216 HCA-2", "r-ufm96 HCA-1", 1, mad.Rate10G},
				{"r-ufm101 HCA-2", "r-ufm101 HCA-1", 27, mad.Rate40G},
				{"r-ufm216 HCA-2", "SwitchIB Mellanox Technologies", 268, mad.Rate100G},
			} {
				like := mad.PathRecord{SGID: r.port(tt.from).GID(sub.GIDPrefix), DGID: r.port(tt.to).GID(sub.GIDPrefix)}
				rec, err := sa.Get(r.t.Context(), c, sa.Match(like, "SGID", "DGID"))
				if err != nil || rec.DLID != tt.dlid || rec.Rate != tt.rate {
					t.Errorf("from %s to %s: LID %s, rate %v, %v, want %s, %v", tt.from, tt.to, rec.DLID, rec.Rate, err, tt.dlid, tt.rate)
				}
			}
		})
	})
}

// TestGeneratedPaths is the same on generated fabrics: every width and speed,
// several LIDs and ports, adapters in several planes.
func TestGeneratedPaths(t *testing.T) {
	for _, spec := range []string{
		"ring:switches=5,hosts=4,speed=mixed,width=mixed",
		"two-level:leafs=2,spines=2,hosts=2,lmc=1,ports=2",
		"torus:x=3,y=3,hosts=1,planes=2,routers=2",
		"dragonfly:switches=2,globals=2,hosts=1",
		"fat-tree:k=4",
	} {
		t.Run(spec, func(t *testing.T) {
			sub, err := topo.Generate(spec)
			if err != nil {
				t.Fatal(err)
			}
			inBubbleOf(t, sub, Config{}, func(r *rig) { r.askSA(r.checkPaths) })
		})
	}
}

// A part of the fabric that the SM does not reach has no paths, though its ports
// have LIDs from the file. The SA does not know a path, but the port.
func TestApart(t *testing.T) {
	sub, err := topo.Parse("apart", []byte(`
Switch	2 "S-0000000000000010"		# "s" enhanced port 0 lid 9 lmc 0
[1]	"H-0000000000000020"[1](21) 		# "a" lid 1 4xQDR
[2]	"H-0000000000000030"[1](31) 		# "b" lid 2 4xQDR
Ca	1 "H-0000000000000020"		# "a"
[1](21) 	"S-0000000000000010"[1]		# lid 1 lmc 0 "s" lid 9 4xQDR
Ca	1 "H-0000000000000030"		# "b"
[1](31) 	"S-0000000000000010"[2]		# lid 2 lmc 0 "s" lid 9 4xQDR
Ca	1 "H-0000000000000040"		# "c"
[1](41) 	"H-0000000000000050"[1] (51) 		# lid 3 lmc 0 "d" lid 4 4xQDR
Ca	1 "H-0000000000000050"		# "d"
[1](51) 	"H-0000000000000040"[1] (41) 		# lid 4 lmc 0 "c" lid 3 4xQDR
`))
	if err != nil || len(sub.Warnings) > 0 {
		t.Fatal(err, sub.Warnings)
	}
	inBubbleOf(t, sub, Config{}, func(r *rig) {
		r.askSA(func(c *sa.Client) {
			for _, tt := range []struct {
				from, to string
				want     error
			}{
				{"a", "b", nil}, {"b", "a", nil}, {"a", "c", sa.ErrNoRecords}, {"c", "a", sa.ErrNoRecords}, {"c", "d", sa.ErrNoRecords},
			} {
				like := mad.PathRecord{SGID: r.port(tt.from).GID(sub.GIDPrefix), DGID: r.port(tt.to).GID(sub.GIDPrefix)}
				rec, err := sa.Get(r.t.Context(), c, sa.Match(like, "SGID", "DGID"))
				if !errors.Is(err, tt.want) || err == nil && rec.DLID != r.port(tt.to).LID {
					t.Errorf("from %s to %s: %+v, %v, want %v", tt.from, tt.to, rec, err, tt.want)
				}
			}
		})
	})
}

// TestEveryWidthAndSpeed: what agents say of links of each width and speed.
// FDR10 is in a vendor's attribute and shows as QDR here.
func TestEveryWidthAndSpeed(t *testing.T) {
	sub, err := topo.Generate("ring:switches=5,hosts=8,speed=mixed,width=mixed")
	if err != nil {
		t.Fatal(err)
	}
	inBubbleOf(t, sub, Config{}, func(r *rig) {
		type kind struct {
			width mad.LinkWidth
			speed mad.Speed
		}
		seen := map[kind]bool{}
		for _, n := range sub.Nodes {
			for i := range n.Ports[1:] {
				p := &n.Ports[1+i]
				var info mad.PortInfo
				info.DecodeFrom(dataOf(t, r.must("h1", byLID(n.EndPorts()[0].LID, mad.AttrPortInfo, uint32(p.Num)))))
				want := p.Speed
				if want == mad.SpeedFDR10 {
					want = mad.SpeedQDR
				}
				if info.LinkWidthActive != p.Width || info.Speed() != want || info.Rate() != p.Rate() || info.LinkWidthEnabled&p.Width == 0 {
					t.Errorf("%s: width %v, speed %v, rate %v, want %v, %v, %v", p, info.LinkWidthActive, info.Speed(), info.Rate(), p.Width, want, p.Rate())
				}
				seen[kind{p.Width, p.Speed}] = true
			}
		}
		if len(seen) != 5*9 {
			t.Errorf("%d kinds of links, want 45", len(seen))
		}
	})
}

// TestTwoPorts: the ports of an adapter are end ports of their own, though one
// agent answers for both.
func TestTwoPorts(t *testing.T) {
	sub, err := topo.Generate("ring:switches=3,hosts=1,ports=2,lmc=1")
	if err != nil {
		t.Fatal(err)
	}
	inBubbleOf(t, sub, Config{}, func(r *rig) {
		for num := uint8(1); num <= 2; num++ {
			p := &r.port("h2").Node.Ports[num]
			for i := range mad.LID(2) {
				info := nodeInfoOf(t, r.must("h1", byLID(p.LID+i, mad.AttrNodeInfo, 0)))
				if info.LocalPortNum != num || info.PortGUID != p.GUID || info.NodeGUID != p.Node.GUID || info.NumPorts != 2 {
					t.Errorf("LID %s: %+v, want port %d", p.LID+i, info, num)
				}
				other := &p.Node.Ports[3-num]
				var about mad.PortInfo
				about.DecodeFrom(dataOf(t, r.must("h1", byLID(p.LID+i, mad.AttrPortInfo, uint32(other.Num)))))
				if about.LID != other.LID || about.LMC != 1 || about.LocalPortNum != num {
					t.Errorf("port %d asked of %d: %+v", num, other.Num, about)
				}
			}
			reader := r.open(p.String())
			reader.reset()
			r.send("h1", gmp(p.LID+1, mad.DefaultPKey))
			if got := reader.got(); len(got) != 1 || got[0].Addr.PathBits != 1 {
				t.Errorf("%s got %+v", p, got)
			}
			link, err := reader.Info()
			if err != nil || link.Port != num || link.LID != p.LID || link.State != mad.PortStateActive {
				t.Errorf("%s: %+v, %v", p, link, err)
			}
		}
	})
}

func TestBasePort0(t *testing.T) {
	sub, err := topo.Parse("base.yaml", []byte("nodes: [{name: a, kind: ca}, {name: s, kind: switch, port0: base}]\nlinks: ['a[1] - s[1]']"))
	if err != nil {
		t.Fatal(err)
	}
	inBubbleOf(t, sub, Config{}, func(r *rig) {
		var info mad.SwitchInfo
		info.DecodeFrom((*[mad.SwitchInfoSize]byte)(dataOf(t, r.must("a", byLID(2, mad.AttrSwitchInfo, 0)))[:]))
		if info.EnhancedPort0 {
			t.Errorf("SwitchInfo %+v", info)
		}
	})
}
