package topo

import (
	"fmt"

	"github.com/ibsm/ibsm/mad"
)

// BringUp does to the model what a subnet manager does to a fabric: it gives
// LIDs to the end ports that the SM's port reaches, tells them the SM's LID and
// SL, moves linked ports to Active and computes the forwarding tables.
func (s *Subnet) BringUp() error {
	reached := s.reachable()
	if err := s.assignLIDs(reached); err != nil {
		return err
	}
	for _, n := range s.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			end := p.IsEnd()
			if end && reached[p] {
				p.SMLID, p.SMSL = s.SM.LID, s.SMSL
			}
			switch {
			case p.Peer != nil && (reached[p] || !end && reached[&n.Ports[0]]):
				p.State = mad.PortStateActive
			case p.Num == 0 && reached[p]: // without a link, up when its switch is
				p.State = mad.PortStateActive
			case p.Peer != nil:
				p.State = mad.PortStateInit
			default:
				p.State = mad.PortStateDown
			}
		}
	}
	s.RouteMinHop()
	return nil
}

// reachable finds the end ports that the SM's port reaches over links and
// switches.
func (s *Subnet) reachable() map[*Port]bool {
	found := map[*Port]bool{s.SM: true}
	queue := []*Port{s.SM}
	visit := func(via *Port) {
		if via.Peer == nil {
			return
		}
		end := via.Peer
		if end.Node.IsSwitch() {
			end = &end.Node.Ports[0]
		}
		if !found[end] {
			found[end] = true
			queue = append(queue, end)
		}
	}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		if !p.Node.IsSwitch() {
			visit(p)
			continue
		}
		for i := range p.Node.Ports[1:] {
			visit(&p.Node.Ports[1+i])
		}
	}
	return found
}

// assignLIDs keeps the LIDs that are there and fills up from 1 in the order of
// the nodes. A port of LMC n gets a multiple of 2^n (IBA 4.1.3).
func (s *Subnet) assignLIDs(reached map[*Port]bool) error {
	byLID := make([]*Port, 1, 2*len(s.Nodes))
	claim := func(p *Port) {
		for int(p.LID)+1<<p.LMC > len(byLID) {
			byLID = append(byLID, nil)
		}
		for i := range 1 << p.LMC {
			byLID[int(p.LID)+i] = p
		}
	}
	for p := range s.EndPorts() {
		if p.LID != 0 {
			claim(p)
		}
	}
	free := func(lid, count int) bool {
		for i := lid; i < min(lid+count, len(byLID)); i++ {
			if byLID[i] != nil {
				return false
			}
		}
		return true
	}
	next := 1
	for p := range s.EndPorts() {
		if p.LID != 0 || !reached[p] {
			continue
		}
		count := 1 << p.LMC
		lid := (next + count - 1) &^ (count - 1)
		for !free(lid, count) {
			lid += count
		}
		if lid+count > int(mad.FirstMulticast) {
			return fmt.Errorf("subnet: no LID is left for port %s: there are %d unicast LIDs", p, mad.FirstMulticast-1)
		}
		p.LID, next = mad.LID(lid), lid+count
		claim(p)
	}
	s.byLID = byLID
	return nil
}

// RouteMinHop fills the forwarding tables of all switches with shortest routes.
// Among the ports that are equally near, a switch takes for each LID the one
// that it has given the fewest LIDs so far, the lowest number first.
func (s *Subnet) RouteMinHop() {
	r := newRouter(s)
	for _, sw := range r.switches {
		sw.LFT = make([]uint8, len(s.byLID))
		for i := range sw.LFT {
			sw.LFT[i] = NoRoute
		}
	}
	for i, sw := range r.switches {
		r.toSwitch(i, sw)
	}
}

// router holds the graph of the switches by number: with maps the many walks
// over it would take ten times as long.
type router struct {
	switches []*Node
	cables   [][]cableEnd // of each switch, in order of the ports
	load     [][]int      // LIDs given to each port of each switch
	hops     []int        // of each switch to the present destination
	queue    []int
	nearest  []uint8 // scratch
}

// cableEnd is a port with a link to another switch, by the switch's number.
type cableEnd struct {
	port uint8
	far  int
}

func newRouter(s *Subnet) *router {
	r := &router{}
	index := map[*Node]int{}
	for _, n := range s.Nodes {
		if n.IsSwitch() {
			index[n] = len(r.switches)
			r.switches = append(r.switches, n)
			r.load = append(r.load, make([]int, len(n.Ports)))
		}
	}
	for _, n := range r.switches {
		var ends []cableEnd
		for i := range n.Ports[1:] {
			if p := &n.Ports[1+i]; p.Peer != nil && p.Peer.Node.IsSwitch() {
				ends = append(ends, cableEnd{p.Num, index[p.Peer.Node]})
			}
		}
		r.cables = append(r.cables, ends)
	}
	r.hops = make([]int, len(r.switches))
	return r
}

const unreachable = 1 << 30

// toSwitch routes the LIDs of a switch and of the end ports at it.
func (r *router) toSwitch(dest int, sw *Node) {
	r.measure(dest)
	var lids []mad.LID
	for i := range sw.Ports[1:] {
		p := &sw.Ports[1+i]
		if p.Peer == nil || p.Peer.Node.IsSwitch() {
			continue
		}
		own := appendLIDs(nil, p.Peer)
		sw.route(own, p.Num)
		r.load[dest][p.Num] += len(own)
		lids = append(lids, own...)
	}
	own := appendLIDs(nil, &sw.Ports[0])
	sw.route(own, 0)
	lids = append(lids, own...) // last: hosts are what the balance is for
	for i := range r.switches {
		if i != dest && r.hops[i] != unreachable {
			r.spread(i, lids)
		}
	}
}

// spread routes LIDs at a switch over its ports that are nearest to them.
func (r *router) spread(from int, lids []mad.LID) {
	nearest := r.nearest[:0]
	for _, c := range r.cables[from] {
		if r.hops[c.far] == r.hops[from]-1 {
			nearest = append(nearest, c.port)
		}
	}
	r.nearest = nearest
	load, lft := r.load[from], r.switches[from].LFT
	for len(lids) > 0 {
		// One LID for each port that has the fewest, in order.
		fewest := load[nearest[0]]
		for _, port := range nearest[1:] {
			fewest = min(fewest, load[port])
		}
		for _, port := range nearest {
			if load[port] == fewest && len(lids) > 0 {
				lft[lids[0]] = port
				load[port]++
				lids = lids[1:]
			}
		}
	}
}

// measure sets hops to the number of links from each switch to dest.
func (r *router) measure(dest int) {
	for i := range r.hops {
		r.hops[i] = unreachable
	}
	r.hops[dest] = 0
	r.queue = append(r.queue[:0], dest)
	for k := 0; k < len(r.queue); k++ {
		at := r.queue[k]
		for _, c := range r.cables[at] {
			if r.hops[c.far] == unreachable {
				r.hops[c.far] = r.hops[at] + 1
				r.queue = append(r.queue, c.far)
			}
		}
	}
}

func appendLIDs(lids []mad.LID, p *Port) []mad.LID {
	if p.LID == 0 {
		return lids
	}
	for i := range 1 << p.LMC {
		lids = append(lids, p.LID+mad.LID(i))
	}
	return lids
}

func (n *Node) route(lids []mad.LID, port uint8) {
	for _, lid := range lids {
		n.LFT[lid] = port
	}
}
