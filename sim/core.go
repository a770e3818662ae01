package sim

import (
	"container/heap"
	"sync"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/topo"
)

// core is the fabric without goroutines and clock: MADs go in with the time,
// and what is due is done when advance is called.
type core struct {
	sub     *topo.Subnet
	seed    uint64
	nodes   map[*topo.Node]*node
	trace   func(Event)
	now     time.Time // of the step being done
	flights flights
	work    []*packet // copies that go on at this same time
	seq     uint64

	deviations []*Deviation // that are on, in the order that they were switched on

	changes uint32 // of the fabric, the SM's activity count
	stats   Stats
	dropped [numReasons]uint64
}

// node is what of a node may differ from the model.
type node struct {
	*topo.Node
	ports []simPort
	lft   []uint8 // the model's until SetLFT makes a copy
	// notice is the last event, of type Empty if there was none.
	notice mad.SMPNotice
}

// simPort is a port. Its state and addresses are here as they are now, in place of
// those of the model.
type simPort struct {
	*topo.Port
	State mad.PortState // while the link is up
	LID   mad.LID
	LMC   uint8
	PKeys []mad.PKey
	// info has the rest of what was set, and those too. nil: nothing was set.
	info *mad.PortInfo
	phys mad.PortPhysState // while the link is not up: Sleep, Polling or Disabled
	// leaseEnd is when the lease of the M_Key ends; zero: it does not.
	leaseEnd time.Time

	id      uint64 // number of the port in the fabric
	node    *node
	peer    *simPort
	cut     bool   // the same at both ends
	downs   uint64 // how often the link went down by a Set or a reboot
	removed bool
	isSM    bool
	faults  *impairment // of the link in the direction away from here
	link    *link       // nil if nobody has opened the port
}

func newCore(sub *topo.Subnet, cfg Config) *core {
	c := &core{sub: sub, seed: cfg.Seed, trace: cfg.Trace, nodes: make(map[*topo.Node]*node, len(sub.Nodes)), changes: 1}
	id := uint64(0)
	for _, t := range sub.Nodes {
		n := &node{Node: t, ports: make([]simPort, len(t.Ports)), lft: t.LFT, notice: mad.SMPNotice{Type: mad.NoticeTypeEmpty}}
		c.nodes[t] = n
		for i := range n.ports {
			n.ports[i] = simPort{Port: &t.Ports[i], id: id, node: n}
			n.ports[i].asModelled()
			id++
		}
	}
	for _, n := range c.nodes {
		for i := range n.ports {
			if peer := n.ports[i].Peer; peer != nil {
				n.ports[i].peer = c.port(peer)
			}
		}
	}
	c.setAllFaults(cfg.Faults)
	return c
}

func (c *core) port(p *topo.Port) *simPort { return &c.nodes[p.Node].ports[p.Num] }

func (c *core) setAllFaults(f Faults) {
	for _, n := range c.nodes {
		for i := range n.ports {
			n.ports[i].faults = newImpairment(f, c.seed, n.ports[i].id)
		}
	}
}

// hop is the port's link as the trace tells it.
func (p *simPort) hop() topo.Hop {
	return topo.Hop{From: p.Port, To: p.Peer, Width: p.Width, Speed: p.Speed, MTU: p.MTU}
}

// devicePort is the end port whose device holds the port.
func (p *simPort) devicePort() uint8 {
	if p.node.IsSwitch() {
		return 0
	}
	return p.Num
}

// packet is a MAD on its way, with the fields of its route headers that matter.
type packet struct {
	mad        [mad.Size]byte
	slid, dlid mad.LID
	sl         uint8
	pkey       mad.PKey
	hasGRH     bool
	sgid       mad.GID
	grh        mad.GRH // GID is the destination

	pathBits uint8    // of the source LID at first, of the destination LID where it is delivered
	at       *simPort // where it is
	in       uint8    // port of the node that it came in by; an own port if it starts here
	start    bool     // it has not left its source yet
	answered bool     // by an agent: it is the answer, whatever its method says
	hops     int
	copies   int // how often a link has doubled it
}

var packets = sync.Pool{New: func() any { return new(packet) }}

func (p *packet) class() mad.Class { return mad.Class(p.mad[mad.OffClass]) }

func isSMP(class mad.Class) bool {
	return class == mad.ClassSubnLIDRouted || class == mad.ClassSubnDirected
}

// newPacket makes the packet that an HCA sends for a wire.
func newPacket(from *simPort, w *softmad.Wire) *packet {
	p := packets.Get().(*packet)
	*p = packet{
		mad: w.MAD, dlid: w.Addr.LID, sl: w.Addr.SL, pkey: w.PKey, hasGRH: w.Addr.HasGRH, grh: w.Addr.GRH,
		pathBits: w.Addr.PathBits, at: from, in: from.Num, start: true,
	}
	return p
}

// inject takes a packet from a Link.
func (c *core) inject(p *packet, qpn uint32, gidIndex uint8) {
	c.stats.Sent++
	c.entering(p)
	p.slid = mad.PermissiveLID
	if from := p.at; from.LID != 0 {
		p.slid = from.LID | mad.LID(p.pathBits)&(1<<from.LMC-1)
	}
	want := uint32(mad.QPGSI)
	if isSMP(p.class()) {
		want = mad.QPSMI
	}
	switch {
	case qpn != want:
		c.drop(p, topo.Hop{}, BadQP)
		return
	case p.hasGRH && (want == mad.QPSMI || gidIndex != 0): // a port has one GID
		c.drop(p, topo.Hop{}, BadGRH)
		return
	}
	p.sgid = p.at.GID(c.prefix(p.at))
	c.run(p)
}

// run moves a packet, and the copies that links make of it, as far as it goes
// without waiting.
func (c *core) run(p *packet) {
	c.move(p)
	for len(c.work) > 0 {
		last := len(c.work) - 1
		p, c.work = c.work[last], c.work[:last]
		c.move(p)
	}
}

// maxLinks ends loops: by then a real packet has outlived its switches'
// LifeTimeValue. Directed routes have 63 hops, LID-routed parts before and after.
const maxLinks = 256

func (c *core) move(p *packet) {
	for {
		out, reason := c.forward(p)
		if out == nil {
			if reason != consumed {
				c.drop(p, topo.Hop{}, reason)
				return
			}
			if !c.consume(p) {
				return
			}
			continue // as the answer
		}
		if !c.cross(p, out) {
			return
		}
	}
}

// cross moves a packet over the link of a port. It tells whether the packet
// goes on at once.
func (c *core) cross(p *packet, out *simPort) bool {
	hop := out.hop()
	if !out.linkUp() || !isSMP(p.class()) && !out.carriesData() {
		c.drop(p, hop, LinkDown)
		return false
	}
	if p.hops++; p.hops > maxLinks {
		c.drop(p, hop, HopLimit)
		return false
	}
	p.start = false
	if out.faults == nil {
		c.arrive(p, out, hop)
		return true
	}
	return c.crossFaulty(p, out, hop)
}

// maxCopies bounds what becomes of one MAD, which grows by powers of 2 where every
// link of a long way doubles it.
const maxCopies = 10

func (c *core) crossFaulty(p *packet, out *simPort, hop topo.Hop) bool {
	f := out.faults
	if p.copies < maxCopies && f.happens(f.Duplicate) {
		p.copies++
		c.stats.Duplicated++
		twin := packets.Get().(*packet)
		*twin = *p
		if d := f.delay(); d > 0 {
			c.schedule(twin, out, d)
		} else {
			c.arrive(twin, out, hop)
			c.work = append(c.work, twin)
		}
	}
	if f.happens(f.Loss) {
		c.drop(p, hop, Lost)
		return false
	}
	if d := f.delay(); d > 0 {
		c.schedule(p, out, d)
		return false
	}
	c.arrive(p, out, hop)
	return true
}

func (c *core) arrive(p *packet, out *simPort, hop topo.Hop) {
	c.stats.Crossed++
	c.report(Cross, hop, 0, p)
	p.at = out.peer
	p.in = out.peer.Num
}

// drop ends a packet. Without a hop it is dropped at the port where it is.
func (c *core) drop(p *packet, hop topo.Hop, reason Reason) {
	if hop.From == nil {
		hop.From = p.at.Port
	}
	c.dropped[reason]++
	c.report(Drop, hop, reason, p)
	packets.Put(p)
}

// flight is a packet that is on a link until some time.
type flight struct {
	at    time.Time
	seq   uint64 // keeps the order of what happens at one time
	pkt   *packet
	out   *simPort
	downs uint64 // of out, when the packet left
}

type flights []flight

func (f flights) Len() int { return len(f) }
func (f flights) Less(i, j int) bool {
	if !f[i].at.Equal(f[j].at) {
		return f[i].at.Before(f[j].at)
	}
	return f[i].seq < f[j].seq
}
func (f flights) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flights) Push(x any)   { *f = append(*f, x.(flight)) }
func (f *flights) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	(*f)[last] = flight{}
	*f = (*f)[:last]
	return x
}

func (c *core) schedule(p *packet, out *simPort, d time.Duration) {
	c.seq++
	heap.Push(&c.flights, flight{c.now.Add(d), c.seq, p, out, out.downs})
}

// deadline is when advance has something to do, zero if nothing is on its way.
func (c *core) deadline() time.Time {
	if len(c.flights) == 0 {
		return time.Time{}
	}
	return c.flights[0].at
}

// advance does what is due by now, each step at its own time.
func (c *core) advance(now time.Time) {
	for len(c.flights) > 0 && !c.flights[0].at.After(now) {
		f := heap.Pop(&c.flights).(flight)
		c.now = f.at
		if !f.out.linkUp() || f.out.downs != f.downs { // it went down meanwhile
			c.drop(f.pkt, f.out.hop(), LinkDown)
			continue
		}
		c.arrive(f.pkt, f.out, f.out.hop())
		c.run(f.pkt)
	}
	c.now = now
}
