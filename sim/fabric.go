// Package sim is a simulated InfiniBand fabric. MADs travel hop by hop: switches
// forward by their tables, directed routes move by the rules of IBA 14.2.2, a
// subnet management agent answers at every node, and links lose, delay,
// duplicate and reorder as they are told to. What cannot be delivered is lost
// without notice, as on a real fabric; the trace says why.
//
// PortInfo and P_KeyTable can be set (package sma has the rules). What is set belongs
// to the Fabric: ports behave by it and tell it, but the subnet's model stays as it
// is, and with it an SA that answers out of the model. Nobody sweeps the fabric but
// [Fabric.Sweep].
//
// One goroutine moves all MADs. Without delays a MAD goes all its way in one
// step. All time is of package time, so that a fabric made in a testing/synctest
// bubble runs in the bubble's time.
package sim

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/topo"
)

// Config is how a fabric behaves. The zero value is a perfect fabric.
type Config struct {
	Faults Faults // of all links, in both directions
	Seed   uint64 // of the random numbers of faults
	// Trace is called for each step of each MAD, in order, by the goroutine that
	// moves them: it must be quick and must not call the Fabric.
	Trace func(Event)
}

// Fabric is a running fabric.
type Fabric struct {
	mu   sync.Mutex // guards core; never held across a wait
	core *core

	devicesMu sync.Mutex // taken before mu
	devices   map[*simPort]*device

	inbox struct {
		sync.Mutex
		sent   []sent
		closed bool
	}
	wake chan struct{} // holds one: something is in the inbox, or closed
	done chan struct{} // closed when the goroutine has ended
}

// sent is a packet that the goroutine has not taken yet.
type sent struct {
	packet   *packet
	qpn      uint32
	gidIndex uint8
}

// device is a port's shared port.Device.
type device struct {
	*softmad.Device
	link *link
}

// New brings the subnet up (topo.Subnet.BringUp writes LIDs, states and routes
// into it) and starts its fabric. The fabric does not change the subnet after
// that.
func New(sub *topo.Subnet, cfg Config) (*Fabric, error) {
	if err := cfg.Faults.check(); err != nil {
		return nil, err
	}
	if err := sub.BringUp(); err != nil {
		return nil, err
	}
	f := &Fabric{
		core: newCore(sub, cfg), devices: map[*simPort]*device{},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go f.run()
	return f, nil
}

// Subnet is the model that the fabric was made of.
func (f *Fabric) Subnet() *topo.Subnet { return f.core.sub }

// run moves MADs until Close.
func (f *Fabric) run() {
	defer close(f.done)
	timer := time.NewTimer(0)
	timer.Stop()
	defer timer.Stop()
	var batch []sent
	for {
		f.inbox.Lock()
		batch, f.inbox.sent = f.inbox.sent, batch[:0]
		closed := f.inbox.closed
		f.inbox.Unlock()
		if closed {
			return
		}
		next := f.step(batch)
		clear(batch)
		var due <-chan time.Time
		if !next.IsZero() {
			timer.Reset(time.Until(next))
			due = timer.C
		}
		select {
		case <-f.wake:
		case <-due:
		}
	}
}

// step does what is due and moves what was sent. It gives the time of the next
// step.
func (f *Fabric) step(batch []sent) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.core.advance(time.Now())
	for _, s := range batch {
		f.core.inject(s.packet, s.qpn, s.gidIndex)
	}
	return f.core.deadline()
}

func (f *Fabric) send(from *simPort, w *softmad.Wire) error {
	s := sent{newPacket(from, w), w.Addr.QPN, w.Addr.GRH.GIDIndex}
	f.inbox.Lock()
	f.inbox.sent = append(f.inbox.sent, s)
	f.inbox.Unlock()
	f.poke()
	return nil
}

func (f *Fabric) poke() {
	select {
	case f.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Close ends the fabric: devices close, Links end with io.EOF. It waits for the
// goroutine.
func (f *Fabric) Close() error {
	f.inbox.Lock()
	f.inbox.closed = true
	f.inbox.Unlock()
	f.poke()
	<-f.done
	f.mu.Lock()
	for _, n := range f.core.nodes {
		for i := range n.ports {
			n.ports[i].remove()
		}
	}
	f.mu.Unlock()
	f.devicesMu.Lock()
	defer f.devicesMu.Unlock()
	var err error
	for p, d := range f.devices {
		err = errors.Join(err, d.Close())
		delete(f.devices, p)
	}
	return err
}

// endPort finds the port that a Link or a Device is for.
func (f *Fabric) endPort(op string, node *topo.Node, num uint8) (*simPort, error) {
	n, ok := f.core.nodes[node]
	switch {
	case !ok:
		return nil, fmt.Errorf("sim: %s: node %v is not of this fabric", op, node)
	case int(num) >= len(n.ports) || !n.ports[num].IsEnd():
		return nil, fmt.Errorf("sim: %s: %s has no end port %d", op, node, num)
	}
	return &n.ports[num], nil
}

// Link gives the HCA of an end port. A port has one Link at a time; ErrBusy says
// that it has one.
func (f *Fabric) Link(node *topo.Node, num uint8) (softmad.Link, error) {
	p, err := f.endPort("link", node, num)
	if err != nil {
		return nil, err
	}
	return f.open(p)
}

func (f *Fabric) open(p *simPort) (*link, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case p.removed:
		return nil, &port.Error{Op: "open", Port: p.String(), Err: port.ErrGone}
	case p.link != nil:
		return nil, &port.Error{Op: "open", Port: p.String(), Err: port.ErrBusy}
	}
	p.link = newLink(f, p)
	return p.link, nil
}

// Device gives an end port as a kernel shows it, with the MAD rules of softmad.
// As all programs of a host share the kernel's, calls for one port share one
// Device, until it is closed.
func (f *Fabric) Device(node *topo.Node, num uint8) (*softmad.Device, error) {
	p, err := f.endPort("device", node, num)
	if err != nil {
		return nil, err
	}
	f.devicesMu.Lock()
	defer f.devicesMu.Unlock()
	if d := f.devices[p]; d != nil && f.isOpen(d.link) {
		return d.Device, nil
	}
	l, err := f.open(p)
	if err != nil {
		return nil, err
	}
	dev, err := softmad.NewDevice(l, softmad.Config{})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	f.devices[p] = &device{dev, l}
	return dev, nil
}

func (f *Fabric) isOpen(l *link) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return l.port.link == l
}

// change does something to the fabric between two steps.
func (f *Fabric) change(do func(c *core) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.core.changes++
	return do(f.core)
}

func (c *core) linked(op string, p *topo.Port) (*simPort, error) {
	if c.nodes[p.Node] == nil || p.Peer == nil {
		return nil, fmt.Errorf("sim: %s: port %s has no link in this fabric", op, p)
	}
	return c.port(p), nil
}

// Cut breaks the link of a port: both ends go Down and nothing passes.
func (f *Fabric) Cut(p *topo.Port) error {
	return f.change(func(c *core) error { return c.setCut("cut", p, true) })
}

// Restore mends the link of a port. Its ends are in the state they had, as if a
// subnet manager had swept at once.
func (f *Fabric) Restore(p *topo.Port) error {
	return f.change(func(c *core) error { return c.setCut("restore", p, false) })
}

func (c *core) setCut(op string, p *topo.Port, cut bool) error {
	end, err := c.linked(op, p)
	if err != nil || end.cut == cut {
		return err
	}
	end.cut, end.peer.cut = cut, cut
	end.node.linkChanged()
	end.peer.node.linkChanged()
	return nil
}

// SetFaults sets the faults of a port's link for what leaves by the port.
func (f *Fabric) SetFaults(p *topo.Port, faults Faults) error {
	return f.change(func(c *core) error {
		end, err := c.linked("faults", p)
		if err != nil {
			return err
		}
		if err := faults.check(); err != nil {
			return err
		}
		end.faults = newImpairment(faults, c.seed, end.id)
		return nil
	})
}

// ChangeFaults changes the faults of a port's link in both directions; without a
// port those of all links.
func (f *Fabric) ChangeFaults(p *topo.Port, change func(*Faults)) error {
	return f.change(func(c *core) error {
		var ends []*simPort
		if p != nil {
			end, err := c.linked("faults", p)
			if err != nil {
				return err
			}
			ends = []*simPort{end, end.peer}
		} else {
			for _, n := range c.nodes {
				for i := range n.ports {
					ends = append(ends, &n.ports[i])
				}
			}
		}
		changed := make([]Faults, len(ends))
		for i, end := range ends { // all or none
			if end.faults != nil {
				changed[i] = end.faults.Faults
			}
			change(&changed[i])
			if err := changed[i].check(); err != nil {
				return err
			}
		}
		for i, end := range ends {
			end.faults = newImpairment(changed[i], c.seed, end.id)
		}
		return nil
	})
}

// SetAllFaults sets the faults of all links in both directions.
func (f *Fabric) SetAllFaults(faults Faults) error {
	if err := faults.check(); err != nil {
		return err
	}
	return f.change(func(c *core) error { c.setAllFaults(faults); return nil })
}

// SetLFT changes an entry of a switch's forwarding table. The model keeps the
// right one.
func (f *Fabric) SetLFT(sw *topo.Node, lid mad.LID, out uint8) error {
	return f.change(func(c *core) error {
		n := c.nodes[sw]
		switch {
		case n == nil || !n.IsSwitch():
			return fmt.Errorf("sim: forwarding table: %v is no switch of this fabric", sw)
		case int(lid) >= len(n.lft):
			return fmt.Errorf("sim: forwarding table of %v: LID %s is above the highest in use, %s", sw, lid, c.sub.TopLID())
		}
		if &n.lft[0] == &sw.LFT[0] {
			n.lft = append([]uint8(nil), sw.LFT...)
		}
		n.lft[lid] = out
		return nil
	})
}

// Remove takes the device of an end port away, as if it was pulled out: its
// links go down, its Link ends with io.EOF.
func (f *Fabric) Remove(node *topo.Node, num uint8) error {
	p, err := f.endPort("remove", node, num)
	if err != nil {
		return err
	}
	return f.change(func(*core) error {
		for i := range p.node.ports {
			if q := &p.node.ports[i]; q.devicePort() == p.Num && q.linkUp() {
				q.peer.node.linkChanged()
			}
		}
		p.remove()
		return nil
	})
}

func (p *simPort) remove() {
	p.removed = true
	if p.link != nil {
		p.link.finish(io.EOF)
		p.link = nil
	}
}

// Stats counts since the start.
func (f *Fabric) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.core.stats
	s.Dropped = map[Reason]uint64{}
	for r, n := range f.core.dropped {
		if n > 0 {
			s.Dropped[Reason(r)] = n
		}
	}
	return s
}
