package sim

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

const permissive = mad.PermissiveLID

// TestDirectedRules steps one node, case by case of C14-9 and C14-13 (IBA
// 14.2.2). Expected pointers and verdicts are those of the kernel's
// drivers/infiniband/core/smi.c: smi_handle_dr_smp_recv and _send on a node
// that the packet enters, _send where it starts.
func TestDirectedRules(t *testing.T) {
	const (
		ca, sw       = "h1", "s1"
		out, back    = false, true
		drop, to     = "drop", "to the node"
		arrives      = false
		starts       = true
		port1, port4 = 1, 4
	)
	tests := []struct {
		name         string
		node         string
		in           uint8 // port that it came in by; 0 of a switch: by LID
		start        bool
		returning    bool
		pointer      uint8
		count        uint8
		path         uint8 // entry of the path that says where to go
		drSLID       mad.LID
		drDLID       mad.LID
		want         string // port, or drop, or to
		wantPointer  uint8
		wantReturned uint8 // return path entry at the old pointer
	}{
		{"C14-9 1: source CA", ca, 1, starts, out, 0, 2, 1, permissive, permissive, "h1[1]", 1, 0},
		{"C14-9 1: source CA, wrong port", ca, 1, starts, out, 0, 2, 2, permissive, permissive, drop, 0, 0},
		{"C14-9 1: source switch", sw, 0, starts, out, 0, 2, 11, permissive, permissive, "s1[11]", 1, 0},
		{"C14-9 1: sender did not increment", sw, port4, arrives, out, 0, 2, 11, permissive, permissive, drop, 0, 0},
		{"C14-9 1: CA, sender did not increment", ca, 1, arrives, out, 0, 2, 1, permissive, permissive, drop, 0, 0},
		{"C14-9 2: switch between", sw, port4, arrives, out, 1, 2, 11, permissive, permissive, "s1[11]", 2, port4},
		{"C14-9 2: back out of the same port", sw, port4, arrives, out, 1, 2, 4, permissive, permissive, "s1[4]", 2, port4},
		{"C14-9 2: CA between", ca, 1, arrives, out, 1, 2, 1, permissive, permissive, drop, 0, 0},
		{"C14-9 2: no such port", sw, port4, arrives, out, 1, 2, 13, permissive, permissive, drop, 0, 0},
		{"C14-9 2: port 0", sw, port4, arrives, out, 1, 2, 0, permissive, permissive, drop, 0, 0},
		{"C14-9 3: end at CA", ca, 1, arrives, out, 2, 2, 0, permissive, permissive, to, 3, port1},
		{"C14-9 3: end at switch", sw, port4, arrives, out, 2, 2, 0, permissive, permissive, to, 3, port4},
		{"C14-9 3: no hops", ca, 1, starts, out, 0, 0, 0, permissive, permissive, to, 1, 0},
		{"C14-9 3: LID part follows", sw, port4, arrives, out, 2, 2, 0, permissive, 8, "s1[12]", 3, port4},
		{"C14-9 3: LID part to the switch itself", sw, port4, arrives, out, 2, 2, 0, permissive, 9, to, 3, port4},
		{"C14-9 3: LID part from a CA", ca, 1, arrives, out, 2, 2, 0, permissive, 8, drop, 0, 0},
		{"C14-9 4", ca, 1, arrives, out, 3, 2, 0, permissive, permissive, to, 3, 0},
		{"C14-9 5", ca, 1, arrives, out, 4, 2, 0, permissive, permissive, drop, 0, 0},
		{"C14-9 5: switch", sw, port4, arrives, out, 255, 2, 0, permissive, permissive, drop, 0, 0},
		{"hop count over 63", sw, port4, arrives, out, 1, 64, 11, permissive, permissive, drop, 0, 0},

		{"C14-13 1: source CA", ca, 1, starts, back, 3, 2, 1, permissive, permissive, "h1[1]", 2, 0},
		{"C14-13 1: source CA, wrong port", ca, 1, starts, back, 3, 2, 2, permissive, permissive, drop, 0, 0},
		{"C14-13 1: source switch", sw, 0, starts, back, 3, 2, 11, permissive, permissive, "s1[11]", 2, 0},
		{"C14-13 2: switch between", sw, port4, arrives, back, 2, 2, 11, permissive, permissive, "s1[11]", 1, 0},
		{"C14-13 2: CA between", ca, 1, arrives, back, 2, 2, 1, permissive, permissive, drop, 0, 0},
		{"C14-13 2: no such port", sw, port4, arrives, back, 2, 2, 200, permissive, permissive, drop, 0, 0},
		{"C14-13 3: end at CA", ca, 1, arrives, back, 1, 2, 0, permissive, permissive, to, 0, 0},
		{"C14-13 3: end at switch", sw, port4, arrives, back, 1, 2, 0, permissive, permissive, to, 0, 0},
		{"C14-13 3: no hops", ca, 1, starts, back, 1, 0, 0, permissive, permissive, to, 0, 0},
		{"C14-13 3: LID part follows", sw, port4, arrives, back, 1, 2, 0, 8, permissive, "s1[12]", 0, 0},
		{"C14-13 3: LID part from a CA", ca, 1, arrives, back, 1, 2, 0, 8, permissive, drop, 0, 0},
		{"C14-13 4", ca, 1, arrives, back, 0, 2, 0, permissive, permissive, to, 0, 0},
		{"C14-13 5", ca, 1, arrives, back, 4, 2, 0, permissive, permissive, drop, 0, 0},
	}
	sub, err := topo.Generate("demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.BringUp(); err != nil {
		t.Fatal(err)
	}
	c := newCore(sub, Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n, _ := sub.NodeByName(tt.node)
			w := combined(permissive, tt.drSLID, tt.drDLID, nil, mad.AttrNodeInfo, 0)
			w.MAD[offHopPointer], w.MAD[offHopCount] = tt.pointer, tt.count
			if tt.returning {
				w.MAD[mad.OffStatus] = 0x80
				if tt.pointer > 0 {
					w.MAD[offReturnPath+int(tt.pointer)-1] = tt.path
				}
			} else if tt.pointer < mad.MaxDirectedHops {
				w.MAD[offInitialPath+int(tt.pointer)+1] = tt.path
			}
			p := newPacket(c.port(&n.Ports[tt.in]), &w)
			p.start = tt.start
			port, why := c.forward(p)
			got := drop
			switch {
			case port != nil:
				got = port.String()
			case why == consumed:
				got = to
			case why != BadRoute:
				t.Errorf("dropped because %v", why)
			}
			if got != tt.want {
				t.Fatalf("goes %s, want %s", got, tt.want)
			}
			if got == drop {
				return
			}
			if p.mad[offHopPointer] != tt.wantPointer {
				t.Errorf("hop pointer %d, want %d", p.mad[offHopPointer], tt.wantPointer)
			}
			if r := p.mad[offReturnPath+int(tt.pointer)]; !tt.returning && r != tt.wantReturned {
				t.Errorf("return path %d, want %d", r, tt.wantReturned)
			}
		})
	}
}

// TestDirectedRoute goes two hops and back, byte by byte of the answer.
func TestDirectedRoute(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		got := r.must("h1", byRoute(mad.Route{0, 1, 12, 4}, mad.AttrNodeInfo, 0))
		info := nodeInfoOf(t, got)
		if h8 := r.port("h8"); info.NodeGUID != h8.Node.GUID || info.LocalPortNum != 1 || info.NodeType != mad.NodeTypeCA {
			t.Errorf("NodeInfo of %s port %d, want h8", info.NodeGUID, info.LocalPortNum)
		}
		if want := "h1[1]-s1[1] s1[12]-s2[12] s2[4]-h8[1] h8[1]-s2[4] s2[12]-s1[12] s1[1]-h1[1]"; way(r.events()) != want {
			t.Errorf("way\n%s\nwant\n%s", way(r.events()), want)
		}
		if got.Addr.LID != permissive || got.Addr.QPN != 0 {
			t.Errorf("answer comes from %v", got.Addr)
		}
		m := got.MAD
		if m[mad.OffMethod] != 0x81 || m[mad.OffStatus] != 0x80 || m[offHopPointer] != 0 || m[offHopCount] != 3 ||
			binary.BigEndian.Uint64(m[mad.OffTID:]) != testTID {
			t.Errorf("header % x", m[:24])
		}
		if diff := cmp.Diff([]byte{0, 1, 12, 1, 0}, m[offReturnPath:offReturnPath+5]); diff != "" {
			t.Errorf("return path (-want +got): %s", diff)
		}
	})
}

func TestCombinedRoute(t *testing.T) {
	tests := []struct {
		name    string
		to      mad.LID
		drDLID  mad.LID
		route   mad.Route
		node    string // that answers
		inPort  uint8
		crossed string
		from    mad.LID // of the answer
	}{
		{"LID then directed", 10, permissive, mad.Route{0, 3}, "h7", 1,
			"h1[1]-s1[1] s1[11]-s2[11] s2[3]-h7[1] h7[1]-s2[3] s2[11]-s1[11] s1[1]-h1[1]", 10},
		{"LID then directed back to the other switch", 10, permissive, mad.Route{0, 12}, "s1", 12,
			"h1[1]-s1[1] s1[11]-s2[11] s2[12]-s1[12] s1[12]-s2[12] s2[11]-s1[11] s1[1]-h1[1]", 10},
		{"LID then no hops", 10, permissive, mad.Route{0}, "s2", 11,
			"h1[1]-s1[1] s1[11]-s2[11] s2[11]-s1[11] s1[1]-h1[1]", 10},
		{"LID, directed, LID", 9, 6, mad.Route{0, 12}, "h6", 1,
			"h1[1]-s1[1] s1[12]-s2[12] s2[2]-h6[1] h6[1]-s2[2] s2[12]-s1[12] s1[1]-h1[1]", 9},
		{"directed then LID", permissive, 5, mad.Route{0, 1, 11}, "h5", 1,
			"h1[1]-s1[1] s1[11]-s2[11] s2[1]-h5[1] h5[1]-s2[1] s2[11]-s1[11] s1[1]-h1[1]", permissive},
		{"directed then LID, through a switch", permissive, 8, mad.Route{0, 1}, "h8", 1,
			"h1[1]-s1[1] s1[12]-s2[12] s2[4]-h8[1] h8[1]-s2[4] s2[11]-s1[11] s1[1]-h1[1]", permissive},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(r *rig) {
				drSLID := permissive
				if tt.to != permissive {
					drSLID = 1
				}
				got := r.must("h1", combined(tt.to, drSLID, tt.drDLID, tt.route, mad.AttrNodeInfo, 0))
				info := nodeInfoOf(t, got)
				if n := r.port(tt.node).Node; info.NodeGUID != n.GUID || info.LocalPortNum != tt.inPort {
					t.Errorf("answered by %s port %d, want %s port %d", info.NodeGUID, info.LocalPortNum, tt.node, tt.inPort)
				}
				if way(r.events()) != tt.crossed {
					t.Errorf("way\n%s\nwant\n%s", way(r.events()), tt.crossed)
				}
				if got.Addr.LID != tt.from || got.MAD[offHopPointer] != 0 {
					t.Errorf("answer from LID %s, hop pointer %d, want %s, 0", got.Addr.LID, got.MAD[offHopPointer], tt.from)
				}
			})
		})
	}
}

// TestAllPairs sends a real MAD between all ports by LID and compares its way
// with the model's.
func TestAllPairs(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		for from := range r.sub.EndPorts() {
			for to := range r.sub.EndPorts() {
				want, err := r.sub.Walk(from, to.LID)
				if err != nil {
					t.Fatal(err)
				}
				reader := r.open(to.String())
				reader.reset()
				log := r.send(from.String(), gmp(to.LID, mad.DefaultPKey))
				if diff := cmp.Diff(want, hops(log), cmp.Comparer(func(a, b topo.Hop) bool { return a == b })); diff != "" {
					t.Errorf("%s to %s: %s", from, to, diff)
				}
				if len(reader.got()) != 1 || reader.got()[0].Addr.LID != from.LID {
					t.Errorf("%s to %s: got %d", from, to, len(reader.got()))
				}
				// An SMP comes back: out by the one way, home by the other.
				home, err := r.sub.Walk(to, from.LID)
				if err != nil {
					t.Fatal(err)
				}
				info := nodeInfoOf(t, r.must(from.String(), byLID(to.LID, mad.AttrNodeInfo, 0)))
				if info.NodeGUID != to.Node.GUID || len(hops(r.events())) != len(want)+len(home) {
					t.Errorf("SMP %s to %s: NodeInfo of %s over %d links", from, to, info.NodeGUID, len(hops(r.events())))
				}
			}
		}
	})
}

// TestPermissiveSMP: a LID-routed SMP to the permissive LID reaches the other
// end of the link, and its answer comes back by it.
func TestPermissiveSMP(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		info := nodeInfoOf(t, r.must("h2", byLID(permissive, mad.AttrNodeInfo, 0)))
		if info.NodeGUID != r.port("s1").GUID || info.LocalPortNum != 2 {
			t.Errorf("NodeInfo of %s port %d, want s1 port 2", info.NodeGUID, info.LocalPortNum)
		}
	})
}

func TestDropped(t *testing.T) {
	bad := func(w *[mad.Size]byte, off int, v byte) { w[off] = v }
	tests := []struct {
		name string
		from string
		send func(r *rig) (w wire)
		want Reason
	}{
		{"LID 0", "h1", func(*rig) wire { return gmp(0, mad.DefaultPKey) }, BadLID},
		{"multicast LID", "h1", func(*rig) wire { return gmp(0xc000, mad.DefaultPKey) }, BadLID},
		{"GMP to the permissive LID", "h1", func(*rig) wire { return gmp(permissive, mad.DefaultPKey) }, BadLID},
		{"permissive SMP from port 0", "s1", func(*rig) wire { return byLID(permissive, mad.AttrNodeInfo, 0) }, BadLID},
		{"LID not in use", "h1", func(*rig) wire { return gmp(11, mad.DefaultPKey) }, NoRoute},
		{"nobody receives", "h1", func(*rig) wire { return gmp(8, mad.DefaultPKey) }, NoReceiver},
		{"P_Key of another partition", "h1", func(*rig) wire { return gmp(7, 0x8001) }, BadPKey},
		{"limited to limited", "h5", func(*rig) wire { return gmp(6, 0x0001) }, BadPKey},
		{"P_Key 0", "h1", func(*rig) wire { return gmp(2, 0) }, BadPKey},
		{"GMP to QP0", "h1", func(*rig) wire { w := gmp(2, mad.DefaultPKey); w.Addr.QPN = 0; return w }, BadQP},
		{"SMP to QP1", "h1", func(*rig) wire { w := byLID(2, mad.AttrNodeInfo, 0); w.Addr.QPN = 1; return w }, BadQP},
		{"GMP to QP5", "h1", func(*rig) wire { w := gmp(2, mad.DefaultPKey); w.Addr.QPN = 5; return w }, BadQP},
		{"SMP with GRH", "h1", func(*rig) wire { w := byLID(2, mad.AttrNodeInfo, 0); w.Addr.HasGRH = true; return w }, BadGRH},
		{"GID index", "h1", func(*rig) wire {
			w := gmp(2, mad.DefaultPKey)
			w.Addr.HasGRH, w.Addr.GRH.GIDIndex = true, 1
			return w
		}, BadGRH},
		{"GID of another port", "h1", func(r *rig) wire {
			w := gmp(2, mad.DefaultPKey)
			w.Addr.HasGRH, w.Addr.GRH.GID = true, r.port("h3").GID(r.sub.GIDPrefix)
			return w
		}, BadGRH},
		{"route to a dead end", "h1", func(*rig) wire { return byRoute(mad.Route{0, 1, 9}, mad.AttrNodeInfo, 0) }, LinkDown},
		{"route through a CA", "h1", func(*rig) wire { return byRoute(mad.Route{0, 1, 2, 1}, mad.AttrNodeInfo, 0) }, BadRoute},
		{"route to no port", "h1", func(*rig) wire { return byRoute(mad.Route{0, 1, 77}, mad.AttrNodeInfo, 0) }, BadRoute},
		{"route from a wrong port", "h1", func(*rig) wire { return byRoute(mad.Route{0, 2}, mad.AttrNodeInfo, 0) }, BadRoute},
		{"64 hops", "h1", func(*rig) wire {
			w := byRoute(mad.Route{0, 1}, mad.AttrNodeInfo, 0)
			bad(&w.MAD, offHopCount, 64)
			return w
		}, BadRoute},
		{"request with a hop pointer", "h1", func(*rig) wire {
			w := byRoute(mad.Route{0, 1}, mad.AttrNodeInfo, 0)
			bad(&w.MAD, offHopPointer, 1)
			return w
		}, BadRoute},
		{"directed to a LID, DrSLID permissive", "h1", func(*rig) wire {
			return combined(9, permissive, permissive, mad.Route{0, 1}, mad.AttrNodeInfo, 0)
		}, BadRoute},
		{"DrSLID, but to the permissive LID", "h1", func(*rig) wire {
			return combined(permissive, 1, permissive, mad.Route{0, 1}, mad.AttrNodeInfo, 0)
		}, BadRoute},
		{"directed part starts at a CA", "h1", func(*rig) wire {
			return combined(2, 1, permissive, mad.Route{0, 1}, mad.AttrNodeInfo, 0)
		}, BadRoute},
		{"answer to a lying DrSLID", "h1", func(*rig) wire {
			return combined(9, 0, permissive, mad.Route{0, 2}, mad.AttrNodeInfo, 0)
		}, BadRoute},
		{"TrapRepress", "h1", func(*rig) wire {
			w := byLID(2, mad.AttrNodeInfo, 0)
			bad(&w.MAD, mad.OffMethod, 7)
			return w
		}, NotForAgent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(r *rig) {
				log := r.send(tt.from, tt.send(r))
				if got := r.dropped(log); got != tt.want {
					t.Errorf("dropped: %v, want %v", got, tt.want)
				}
				stats := r.fab.Stats()
				if stats.Dropped[tt.want] != 1 || stats.Delivered != 0 {
					t.Errorf("stats %+v", stats)
				}
			})
		})
	}
}
