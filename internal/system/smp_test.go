package system

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/topo"
)

const (
	smpTimeout = 100 * time.Millisecond
	smpRetries = 2
	smpGivesUp = (smpRetries + 1) * smpTimeout
)

// tripLog keeps the links that MADs crossed since the last reset, and the port
// that the last request was at in the end.
type tripLog struct {
	mu    sync.Mutex
	links map[*topo.Port]bool // by the ports at their two ends
	at    *topo.Port
}

func (l *tripLog) add(e sim.Event) {
	if e.Kind != sim.Cross {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.links[e.Hop.From], l.links[e.Hop.To] = true, true
	if e.MAD.Method == mad.MethodGet {
		l.at = e.Hop.To
	}
}

func (l *tripLog) reset(start *topo.Port) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.links, l.at = map[*topo.Port]bool{}, start
}

// routeTo is a shortest route from a port to a node.
func routeTo(from *topo.Port, to *topo.Node) mad.Route {
	type step struct {
		node  *topo.Node
		route mad.Route
	}
	seen := map[*topo.Node]bool{from.Node: true}
	for queue := []step{{from.Node, mad.Route{0}}}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if s.node == to {
			return s.route
		}
		ports := s.node.Ports
		switch {
		case s.node.IsSwitch():
		case s.node == from.Node:
			ports = ports[from.Num : from.Num+1]
		default:
			continue // nothing goes through a host
		}
		for _, p := range ports {
			if p.Peer != nil && !seen[p.Peer.Node] {
				seen[p.Peer.Node] = true
				queue = append(queue, step{p.Peer.Node, append(slices.Clone(s.route), p.Num)})
			}
		}
	}
	return nil
}

// waysTo gives addresses of every kind for a node as seen from a port: by LID, by
// a directed route, and by LID to each switch with a directed route from there.
func waysTo(sub *topo.Subnet, from *topo.Port, to *topo.Node) []mad.Addr {
	ways := []mad.Addr{byLID(to.EndPorts()[0].LID), {Kind: mad.AddrRoute, Route: routeTo(from, to)}}
	for _, n := range sub.Nodes {
		if n.IsSwitch() {
			ways = append(ways, mad.Addr{Kind: mad.AddrCombined, LID: n.Ports[0].LID, Route: routeTo(&n.Ports[0], to)})
		}
	}
	return ways
}

// Every attribute of the subnet management agent, from every node, of every node,
// by every kind of address: the answers agree in all but the port that the
// request came in by, which the hop log knows.
func TestSMPWays(t *testing.T) {
	everyone := func(*topo.Subnet, *topo.Node) bool { return true }
	nobody := func(*topo.Subnet, *topo.Node) bool { return false }
	switches := func(_ *topo.Subnet, n *topo.Node) bool { return n.IsSwitch() }
	withPort := func(num int) func(*topo.Subnet, *topo.Node) bool {
		return func(_ *topo.Subnet, n *topo.Node) bool { return num <= n.NumPorts() }
	}
	questions := []struct {
		of       *layout.Struct
		modifier uint32
		answers  func(*topo.Subnet, *topo.Node) bool // the nodes that do; others refuse
	}{
		{layout.NodeDescription, 0, everyone},
		{layout.NodeInfo, 0, everyone},
		{layout.SwitchInfo, 0, switches},
		{layout.GUIDInfo, 0, everyone},
		{layout.GUIDInfo, 1, nobody},
		{layout.PortInfo, 0, everyone},
		{layout.PortInfo, 1, withPort(1)},
		{layout.PortInfo, 12, withPort(12)},
		{layout.PortInfo, 13, withPort(13)},
		{layout.PKeyTable, 0, everyone},
		{layout.LinearForwardingTable, 0, switches},
		{layout.SMInfo, 0, func(sub *topo.Subnet, n *topo.Node) bool { return n == sub.SM.Node }},
	}
	synctest.Test(t, func(t *testing.T) {
		log := new(tripLog)
		h := build(t, "demo", sim.Config{Trace: log.add})
		hold, err := h.device(h.sub.SM).HoldIsSM(t.Context())
		h.must(err)
		defer hold.Close()
		begin := time.Now()
		answers := map[string][]byte{} // by question and node
		for from := range h.sub.EndPorts() {
			c := h.smps(from, smp.Config{Timeout: smpTimeout, Retries: -1})
			for _, to := range h.sub.Nodes {
				for _, addr := range waysTo(h.sub, from, to) {
					for _, q := range questions {
						attr := layout.AttributeOf(uint8(mad.ClassSubnLIDRouted), q.of)
						key := fmt.Sprintf("%s %d of %s", attr.Name, q.modifier, to.Name)
						bad := func(format string, args ...any) {
							t.Errorf("%s from %s by %v: %s", key, from, addr, fmt.Sprintf(format, args...))
						}
						log.reset(from)
						data, err := c.Get(t.Context(), addr, attr, q.modifier)
						var refused *smp.StatusError
						switch {
						case log.at.Node != to:
							bad("the request ended at %s", log.at)
						case !q.answers(h.sub, to):
							if !errors.As(err, &refused) {
								bad("%v, want a status that refuses", err)
							}
							continue
						case err != nil:
							bad("%v", err)
							continue
						}
						if in, err := q.of.Find("LocalPortNum"); err == nil {
							if n := in.Uint(data); n != uint64(log.at.Num) {
								bad("LocalPortNum %d, but the request came in by %s", n, log.at)
							}
							h.must(in.SetUint(data, 0))
						}
						if answers[key] == nil {
							answers[key] = bytes.Clone(data)
						}
						if !bytes.Equal(data, answers[key]) {
							bad("% x, from elsewhere % x", data, answers[key])
						}
					}
				}
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v over links without delay", took)
		}
		// All nodes answer 5 questions, which tell them apart by name and GUID,
		// switches 4 more, the SM's one, and all but the hosts with one port that
		// on port 12.
		if want := 10*6 + 2*3 + 1; len(answers) != want {
			t.Errorf("%d different questions were answered, want %d: %q", len(answers), want, slices.Sorted(maps.Keys(answers)))
		}
		for _, n := range h.sub.Nodes {
			var info mad.NodeInfo
			info.DecodeFrom((*[mad.NodeInfoSize]byte)(answers["NodeInfo 0 of "+n.Name]))
			var desc mad.NodeDescription
			desc.DecodeFrom((*[mad.NodeDescriptionSize]byte)(answers["NodeDescription 0 of "+n.Name]))
			if info.NodeGUID != n.GUID || desc.String() != n.Desc {
				t.Errorf("%s says it is %v, %q", n.Name, info.NodeGUID, &desc)
			}
		}
	})
}

// A link that is cut loses the SMPs that would cross it, on their way there or
// back, and no others; their requests end at the end of the last try.
func TestCutLinkLoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(tripLog)
		h := build(t, "demo", sim.Config{Trace: log.add})
		from := h.port("h2")
		c := h.smps(from, smp.Config{Timeout: smpTimeout, Retries: smpRetries})
		ask := func(addr mad.Addr) (time.Duration, error) {
			begin := time.Now()
			_, err := smp.Get[mad.NodeInfo](t.Context(), c, addr, 0)
			return time.Since(begin), err
		}
		type trip struct {
			addr    mad.Addr
			crosses map[*topo.Port]bool
		}
		var trips []trip
		for _, to := range h.sub.Nodes {
			for _, addr := range waysTo(h.sub, from, to) {
				log.reset(from)
				if took, err := ask(addr); err != nil || took != 0 {
					t.Fatalf("%v: %v after %v", addr, err, took)
				}
				trips = append(trips, trip{addr, log.links})
			}
		}
		log.reset(from) // what follows is not of the last trip
		lost, passed := 0, 0
		for _, n := range h.sub.Nodes {
			for i := range n.Ports {
				cut := &n.Ports[i]
				if cut.Peer == nil {
					continue
				}
				h.must(h.fabric.Cut(cut))
				for _, trip := range trips {
					took, err := ask(trip.addr)
					if trip.crosses[cut] {
						lost++
						if !errors.Is(err, agents.ErrTimeout) || took != smpGivesUp {
							t.Errorf("%v over the cut %s: %v after %v, want a time-out after %v", trip.addr, cut, err, took, smpGivesUp)
						}
						continue
					}
					passed++
					if err != nil || took != 0 {
						t.Errorf("%v does not cross %s: %v after %v", trip.addr, cut, err, took)
					}
				}
				h.must(h.fabric.Restore(cut))
			}
		}
		if n := h.fabric.Stats().Dropped[sim.LinkDown]; lost == 0 || passed == 0 || n != uint64(lost*(smpRetries+1)) {
			t.Errorf("%d requests lost, %d passed, %d MADs dropped at cut links; want one for each try", lost, passed, n)
		}
		for _, trip := range trips {
			if _, err := ask(trip.addr); err != nil {
				t.Errorf("%v over mended links: %v", trip.addr, err)
			}
		}
	})
}

// A wrong entry in a forwarding table loses what is routed by it, be it the
// request or the answer; a directed route does not mind.
func TestWrongRouteLoses(t *testing.T) {
	for _, tt := range []struct {
		name string
		sw   string
		lid  string // whose entry
		port uint8
		want sim.Reason
	}{
		{"to another host", "s2", "h8", 1, sim.WrongPort},
		{"to a port without a link", "s2", "h8", 9, sim.LinkDown},
		{"to a port that is not there", "s1", "h8", 13, sim.NoRoute},
		{"to port 0", "s1", "h8", 0, sim.WrongPort},
		{"nowhere", "s1", "h8", topo.NoRoute, sim.NoRoute},
		{"in a loop", "s2", "h8", 12, sim.HopLimit},
		{"of the answer", "s2", "h2", topo.NoRoute, sim.NoRoute},
		{"of the answer, at the last switch", "s1", "h2", 1, sim.WrongPort},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := new(tripLog)
				h := build(t, "demo", sim.Config{Trace: log.add})
				from, to := h.port("h2"), h.port("h8")
				c := h.smps(from, smp.Config{Timeout: smpTimeout, Retries: smpRetries})
				ask := func(addr mad.Addr) (time.Duration, error) {
					log.reset(from)
					begin := time.Now()
					info, err := smp.Get[mad.NodeInfo](t.Context(), c, addr, 0)
					if err == nil && info.PortGUID != to.GUID {
						t.Errorf("%v: answered by %v", addr, info.PortGUID)
					}
					return time.Since(begin), err
				}
				sw, lid := h.port(tt.sw).Node, h.port(tt.lid).LID
				right := sw.LFT[lid]
				h.must(h.fabric.SetLFT(sw, lid, tt.port))
				took, err := ask(byLID(to.LID))
				if !errors.Is(err, agents.ErrTimeout) || took != smpGivesUp {
					t.Errorf("by LID: %v after %v, want a time-out after %v", err, took, smpGivesUp)
				}
				if dropped := h.fabric.Stats().Dropped; len(dropped) != 1 || dropped[tt.want] != smpRetries+1 {
					t.Errorf("dropped %v, want %d for %v", dropped, smpRetries+1, tt.want)
				}
				if arrived := log.at == to; arrived != (tt.lid == "h2") {
					t.Errorf("the request ended at %s", log.at)
				}
				if _, err := ask(mad.Addr{Kind: mad.AddrRoute, Route: routeTo(from, to.Node)}); err != nil {
					t.Errorf("by directed route: %v", err)
				}
				h.must(h.fabric.SetLFT(sw, lid, right))
				if took, err := ask(byLID(to.LID)); err != nil || took != 0 {
					t.Errorf("put right: %v after %v", err, took)
				}
			})
		})
	}
}
