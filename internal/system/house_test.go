// Package system tests the whole house at once: real MADs from the clients, over
// agents, softmad and the simulated fabric, to the SA and to the agents of nodes,
// and back. What needs no other program runs in a synctest bubble, which also shows that nothing
// is left running.
package system

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/topo"
)

// house is a fabric in a bubble.
type house struct {
	t      *testing.T
	sub    *topo.Subnet
	fabric *sim.Fabric
}

func generate(t testing.TB, spec string) *topo.Subnet {
	t.Helper()
	sub, err := topo.Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func build(t *testing.T, spec string, cfg sim.Config) *house {
	t.Helper()
	sub := generate(t, spec)
	fabric, err := sim.New(sub, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fabric.Close() })
	return &house{t, sub, fabric}
}

func (h *house) port(name string) *topo.Port {
	h.t.Helper()
	p, ok := h.sub.PortByName(name)
	if !ok {
		h.t.Fatalf("no port %s", name)
	}
	return p
}

func (h *house) device(p *topo.Port) port.Device {
	h.t.Helper()
	dev, err := h.fabric.Device(p.Node, p.Num)
	if err != nil {
		h.t.Fatal(err)
	}
	return dev
}

// serve puts an SA on the SM's port, which knows sub.
func (h *house) serve(sub *topo.Subnet, mode port.RMPPMode) *server.Server {
	h.t.Helper()
	s, err := server.New(h.device(h.sub.SM), sub, server.Config{RMPP: mode})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { s.Close() })
	return s
}

func (h *house) admin(p *topo.Port, cfg sa.Config) *sa.Client {
	h.t.Helper()
	c, err := sa.NewClient(h.device(p), cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	return c
}

func (h *house) smps(p *topo.Port, cfg smp.Config) *smp.Client {
	h.t.Helper()
	c, err := smp.NewClient(h.device(p), cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	return c
}

// must stops the test if err is not nil.
func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// collect reads a sequence to its end.
func collect[T any](seq func(func(T, error) bool)) (all []T, err error) {
	for v, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

// hopLog keeps which links the LID-routed SubnGets to each LID have crossed, and
// which port answered them. It knows no forwarding table. A MAD that is sent again or duplicated crosses the
// same links again.
type hopLog struct {
	mu       sync.Mutex
	links    map[mad.LID]map[topo.Hop]bool
	answered map[mad.LID]map[*topo.Port]bool
	segments int // of tables that were delivered
}

func newHopLog() *hopLog {
	l := new(hopLog)
	l.reset()
	return l
}

func (l *hopLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.links, l.answered, l.segments = map[mad.LID]map[topo.Hop]bool{}, map[mad.LID]map[*topo.Port]bool{}, 0
}

// add is a sim.Config.Trace.
func (l *hopLog) add(e sim.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case e.Kind == sim.Deliver && e.MAD.Method == mad.MethodGetTableResp:
		l.segments++
	case e.MAD.Class != mad.ClassSubnLIDRouted:
	case e.Kind == sim.Cross && e.MAD.Method == mad.MethodGet:
		insert(l.links, e.MAD.DLID, e.Hop)
	case e.Kind == sim.Answer:
		insert(l.answered, e.MAD.SLID, e.Hop.From)
	}
}

func insert[T comparable](sets map[mad.LID]map[T]bool, lid mad.LID, v T) {
	if sets[lid] == nil {
		sets[lid] = map[T]bool{}
	}
	sets[lid][v] = true
}

// way puts the links that led from a port to a LID in order.
func (l *hopLog) way(from *topo.Port, lid mad.LID) ([]topo.Hop, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var hops []topo.Hop
	at := from
	for left := maps.Clone(l.links[lid]); len(left) > 0; {
		var next *topo.Hop
		for hop := range left {
			switch {
			case hop.From.Node != at.Node:
			case next != nil:
				return nil, fmt.Errorf("MADs to LID %v left %s by %s and by %s", lid, at.Node.Name, next.From, hop.From)
			default:
				next = &hop
			}
		}
		if next == nil {
			return nil, fmt.Errorf("MADs to LID %v went on behind a gap: %d links are not on the way from %s to %s", lid, len(left), from, at)
		}
		delete(left, *next)
		hops = append(hops, *next)
		at = next.To
	}
	if len(l.answered[lid]) != 1 {
		return nil, fmt.Errorf("%d ports answered MADs to LID %v", len(l.answered[lid]), lid)
	}
	for end := range l.answered[lid] {
		if end.Node != at.Node {
			return nil, fmt.Errorf("MADs to LID %v ended at %s, but %s answered", lid, at, end)
		}
	}
	return hops, nil
}
