package sim

import (
	"io"
	"sync"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/topo"
)

// queueLimit is how many MADs wait for a reader before more are dropped: a slow
// reader must not eat all memory.
const queueLimit = 1 << 16

// link is the HCA of one port: a softmad.Link.
type link struct {
	fabric *Fabric
	port   *simPort

	mu    sync.Mutex
	ready sync.Cond // queue has something, or end is set
	queue []*packet // from head on
	head  int
	end   error // of Recv, once it is over
}

var (
	_ softmad.Link       = (*link)(nil)
	_ softmad.IsSMSetter = (*link)(nil)
)

func newLink(f *Fabric, p *simPort) *link {
	l := &link{fabric: f, port: p}
	l.ready.L = &l.mu
	return l
}

func (l *link) Send(w *softmad.Wire) error {
	l.mu.Lock()
	end := l.end
	l.mu.Unlock()
	switch end {
	case nil:
		return l.fabric.send(l.port, w)
	case io.EOF:
		return l.error("send", port.ErrGone)
	}
	return end
}

func (l *link) Recv(w *softmad.Wire) error {
	l.mu.Lock()
	for l.head == len(l.queue) && l.end == nil {
		l.ready.Wait()
	}
	if l.end != nil {
		defer l.mu.Unlock()
		return l.end
	}
	p := l.pop()
	l.mu.Unlock()
	p.toWire(w)
	packets.Put(p)
	return nil
}

// full tells whether the reader is too far behind. Only the fabric's goroutine
// makes the queue longer.
func (l *link) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)-l.head >= queueLimit
}

// pop takes the next packet; there is one.
func (l *link) pop() *packet {
	p := l.queue[l.head]
	l.queue[l.head] = nil
	if l.head++; l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
	}
	return p
}

// push gives a packet to the reader.
func (l *link) push(p *packet) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head > queueLimit/2 { // keep the array from growing for ever
		n := copy(l.queue, l.queue[l.head:])
		clear(l.queue[n:])
		l.queue, l.head = l.queue[:n], 0
	}
	l.queue = append(l.queue, p)
	l.ready.Signal()
}

// finish ends Recv; the first reason stays.
func (l *link) finish(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == nil {
		l.end = err
		l.queue, l.head = nil, 0
		l.ready.Broadcast()
	}
}

func (l *link) Close() error {
	l.fabric.mu.Lock()
	defer l.fabric.mu.Unlock()
	if l.port.link == l {
		l.port.link = nil
		l.port.isSM = false
	}
	l.finish(l.error("receive", port.ErrClosed))
	return nil
}

func (l *link) error(op string, err error) error {
	return &port.Error{Op: op, Port: l.port.String(), Err: err}
}

// Info describes the port as the node's driver would.
func (l *link) Info() (port.Info, error) {
	l.fabric.mu.Lock()
	defer l.fabric.mu.Unlock()
	p, n := l.port, l.port.node
	if p.removed {
		return port.Info{}, l.error("info", port.ErrGone)
	}
	agent := l.fabric.core.agent(p, p.Num)
	pi := agent.PortInfo(p.Port)
	info := port.Info{
		Device: n.Name, Port: p.Num, LinkLayer: port.LinkInfiniBand,
		NodeType: n.Type, NodeGUID: n.GUID, PortGUID: p.GUID, NodeDesc: n.Desc,
		State: pi.PortState, PhysState: pi.PortPhysicalState,
		LID: pi.LID, LMC: pi.LMC, SMLID: pi.MasterSMLID, SMSL: pi.MasterSMSL, CapMask: pi.CapabilityMask,
		GIDs:  []mad.GID{p.GID(pi.GidPrefix)},
		PKeys: append([]mad.PKey(nil), p.PKeys...),
	}
	if p.linkUp() {
		info.Width, info.Rate = p.Width, p.Rate()
	}
	return info, nil
}

// SetIsSM sets bit 1 of the port's CapabilityMask (IBA 14.2.5.6).
func (l *link) SetIsSM(on bool) error {
	l.fabric.mu.Lock()
	defer l.fabric.mu.Unlock()
	if l.port.link != l || l.port.removed {
		return l.error("set IsSM", port.ErrGone)
	}
	l.port.isSM = on
	return nil
}

// deliverGMP checks what an end port checks of a MAD to QP1 (IBA 9.6.1, 10.9.3).
func (c *core) deliverGMP(p *packet, end *simPort) {
	if p.hasGRH && p.grh.GID != end.GID(c.prefix(end)) && p.grh.GID != end.GID(mad.DefaultGIDPrefix) {
		c.drop(p, topo.Hop{}, BadGRH)
		return
	}
	for _, key := range end.PKeys {
		if key.Matches(p.pkey) {
			c.deliver(p, end)
			return
		}
	}
	c.drop(p, topo.Hop{}, BadPKey)
}

func (c *core) deliver(p *packet, end *simPort) {
	switch {
	case end.link == nil:
		c.drop(p, topo.Hop{}, NoReceiver)
	case end.link.full():
		c.drop(p, topo.Hop{}, ReceiverFull)
	default:
		c.stats.Delivered++
		c.report(Deliver, topo.Hop{From: end.Port}, 0, p)
		c.leaving(p)
		p.pathBits = 0
		if p.dlid.IsUnicast() {
			p.pathBits = uint8(p.dlid & (1<<end.LMC - 1))
		}
		end.link.push(p) // whose reader owns it now
	}
}

// toWire is the packet as the HCA of the receiving port reports it.
func (p *packet) toWire(w *softmad.Wire) {
	w.Addr = mad.AddressVector{LID: p.slid, QPN: mad.QPGSI, SL: p.sl, PathBits: p.pathBits}
	if isSMP(p.class()) {
		w.Addr.QPN = mad.QPSMI
	}
	if p.hasGRH {
		w.Addr.HasGRH = true
		w.Addr.GRH = mad.GRH{GID: p.sgid, HopLimit: p.grh.HopLimit, TrafficClass: p.grh.TrafficClass, FlowLabel: p.grh.FlowLabel}
	}
	w.PKey = p.pkey
	w.Undelivered = false
	w.MAD = p.mad
}
