package capture

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// Device is dev with everything that its Ports send and receive recorded in w.
// In all else it is dev; errors come unchanged.
func Device(dev port.Device, w *Writer) port.Device {
	return &device{dev, newSource(dev.Info, w)}
}

// Port is p with everything that it sends and receives recorded in w. p sends
// transaction ids as they are given, as the Ports of the kernel's own clients do
// (softmad's OpenKernel); for the Ports of programs take [Device]. info describes
// p's device; of several Ports of a device, and of a Device, the traffic stands
// at one interface of the file.
func Port(p port.Port, info func() (port.Info, error), w *Writer) port.Port {
	return &tracedPort{Port: p, source: newSource(info, w), verbatim: true}
}

// source is a port of the machine, or of a fabric, whose traffic is recorded.
type source struct {
	writer *Writer
	iface  *iface // guarded by writer.mu; nil before the first record
	read   func() (port.Info, error)
	last   atomic.Pointer[snapshot]
}

// snapshot is what a port told about itself.
type snapshot struct {
	info port.Info
	at   time.Time
}

// The tables of the port are read again when they are older than maxInfoAge,
// and when they lack the port's LID or an index in use and are older than
// minInfoAge.
const (
	maxInfoAge = time.Second
	minInfoAge = 10 * time.Millisecond
)

func newSource(info func() (port.Info, error), w *Writer) *source {
	return &source{writer: w, read: info}
}

// info gives the port's tables for a message with address a. What the port does
// not tell stays as it was.
func (s *source) info(a *mad.AddressVector) *port.Info {
	now, last := time.Now(), s.last.Load()
	if last != nil {
		limit := maxInfoAge
		if i := &last.info; i.LID == 0 && i.LinkLayer == port.LinkInfiniBand ||
			int(a.PKeyIndex) >= len(i.PKeys) || a.HasGRH && int(a.GRH.GIDIndex) >= len(i.GIDs) {
			limit = minInfoAge
		}
		if now.Sub(last.at) < limit {
			return &last.info
		}
	}
	fresh := &snapshot{at: now}
	if info, err := s.read(); err == nil {
		fresh.info = info
	} else if last != nil {
		fresh.info = last.info
	}
	s.last.Store(fresh)
	return &fresh.info
}

type device struct {
	port.Device
	source *source
}

func (d *device) Open() (port.Port, error) {
	p, err := d.Device.Open()
	if err != nil {
		return nil, err
	}
	return &tracedPort{Port: p, source: d.source}, nil
}

type tracedPort struct {
	port.Port
	source   *source
	verbatim bool // transaction ids are sent as given

	mu     sync.Mutex
	agents [port.MaxAgents]agent
}

// agent is what is known of an agent.
type agent struct {
	kernelRMPP bool
	answered   bool   // and so upper is known
	upper      uint32 // half of its requests' transaction ids
}

func (p *tracedPort) Register(r port.Registration) (port.AgentID, error) {
	id, err := p.Port.Register(r)
	if err == nil && id < port.MaxAgents {
		p.mu.Lock()
		p.agents[id] = agent{kernelRMPP: r.RMPP == port.RMPPKernel}
		p.mu.Unlock()
	}
	return id, err
}

func (p *tracedPort) Send(m *port.Message) error {
	info := p.source.info(&m.Addr)
	r := p.source.writer.begin()
	if err := p.Port.Send(m); err != nil {
		p.source.writer.cancel(r)
		return err
	}
	e := event{source: p.source, info: info, msg: *m}
	p.look(&e)
	p.source.writer.end(r, e)
	return nil
}

// look adds to a sent message what is known of its agent.
func (p *tracedPort) look(e *event) {
	if e.msg.Agent >= port.MaxAgents || len(e.msg.Data) < mad.HeaderSize {
		return
	}
	p.mu.Lock()
	a := p.agents[e.msg.Agent]
	p.mu.Unlock()
	e.kernelRMPP = a.kernelRMPP && mad.HasRMPP(mad.Class(e.msg.Data[mad.OffClass]))
	switch {
	case p.verbatim || mad.IsResponse(e.msg.Data):
	case a.answered:
		e.tid = upperTID{tidKnown, a.upper}
	default:
		e.tid.state = tidUnknown
	}
}

func (p *tracedPort) Recv(m *port.Message) error {
	if err := p.Port.Recv(m); err != nil {
		return err
	}
	r := p.source.writer.begin()
	p.learn(m)
	p.source.writer.end(r, event{source: p.source, info: p.source.info(&m.Addr), msg: *m, received: true})
	return nil
}

// learn takes the upper half of an agent's transaction ids from an answer or a
// time-out.
func (p *tracedPort) learn(m *port.Message) {
	if m.Agent >= port.MaxAgents || len(m.Data) < mad.HeaderSize || !m.TimedOut && !mad.IsResponse(m.Data) {
		return
	}
	upper := binary.BigEndian.Uint32(m.Data[mad.OffTID:])
	p.mu.Lock()
	a := &p.agents[m.Agent]
	a.answered, a.upper = true, upper
	p.mu.Unlock()
}
