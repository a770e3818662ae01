package umad

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// openPort is a port.Port: an open device file.
type openPort struct {
	d         *Device
	f         *file
	header    int  // size of the packet header
	register2 bool // the second registration may be tried

	sending sync.Mutex
	out     []byte // a packet on its way to the kernel

	// mu makes one of each registration and each attempt to read, with the
	// repetition that a long message takes. It is not held while waiting.
	mu     sync.Mutex
	dead   error // port.ErrClosed or port.ErrGone, or nil
	agents [port.MaxAgents]*port.Registration
	freed  uint32         // slots whose last agent may have packets in the kernel's queue
	early  []port.Message // taken out of the kernel's queue before Recv asked
}

// chooseHeader settles the layout of the header, which the first call on a file
// decides (user_mad.c, ib_umad_enable_pkey).
func (p *openPort) chooseHeader() error {
	abi := &p.d.sys.abi
	p.header = headerSize
	switch {
	case !p.d.sys.OldHeader:
		switch err := p.f.ioctl(abi.enablePKey, nil); {
		case errors.Is(err, syscall.ENOTTY), errors.Is(err, syscall.EINVAL): // a kernel before P_Key indices
			p.header = oldHeaderSize
		case err != nil:
			return &port.Error{Detail: fmt.Sprintf("choose the packet header with P_Key index: %v", err), Err: err}
		}
	case abi.illumos:
		return refuse(errors.ErrUnsupported, nil, "illumos has no packet header without P_Key index")
	default:
		// An agent made by the first registration fixes the old layout, so that
		// the second registration does not change it.
		req := abi.regRequest(port.Registration{QPN: mad.QPGSI})
		err := p.f.ioctl(abi.register, req)
		if err == nil {
			err = p.f.ioctl(abi.unregister, req[regID:])
		}
		if err != nil {
			return p.explainRegister(port.Registration{QPN: mad.QPGSI}, err)
		}
		p.header = oldHeaderSize
	}
	return nil
}

// end takes the file away from its users, once.
func (p *openPort) end(why error) {
	p.mu.Lock()
	first := p.dead == nil
	if first {
		p.dead = why
	}
	p.mu.Unlock()
	if !first {
		return
	}
	p.d.mu.Lock()
	delete(p.d.ports, p)
	p.d.mu.Unlock()
	p.f.os.Close() // wakes Recv, and waits for what is in the kernel
}

// Close closes the file; the kernel then unregisters its agents.
func (p *openPort) Close() error {
	p.end(port.ErrClosed)
	return nil
}

// fail says where an error happened, and ends the port if it was the removal of
// the device. The caller holds no lock.
func (p *openPort) fail(op string, err error) error {
	switch {
	case errors.Is(err, os.ErrClosed):
		p.mu.Lock()
		err = p.dead
		p.mu.Unlock()
	case errors.Is(err, port.ErrGone):
		p.end(port.ErrGone)
	}
	return p.d.fail(op, err)
}

func (p *openPort) Register(r port.Registration) (port.AgentID, error) {
	id, err := p.register(r, flagsOf(r.RMPP))
	if err != nil {
		return 0, p.fail("register", err)
	}
	return id, nil
}

func flagsOf(mode port.RMPPMode) uint32 {
	if mode == port.RMPPUser {
		return flagUserRMPP
	}
	return 0
}

func (p *openPort) register(r port.Registration, flags uint32) (port.AgentID, error) {
	if r.RMPP > port.RMPPUser {
		return 0, refuse(port.ErrInvalid, nil, "unknown RMPP mode %d", r.RMPP)
	}
	if r.Class != 0 && r.OUI > 0xffffff {
		// The first registration would cut it off.
		return 0, refuse(port.ErrInvalid, nil, "OUI %#x has more than 24 bits", r.OUI)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead != nil {
		return 0, p.dead
	}
	if p.freed != 0 {
		if err := p.readAhead(); err != nil {
			return 0, err
		}
	}
	id, err := p.registerIoctl(r, flags)
	if err != nil {
		return 0, err
	}
	if id >= port.MaxAgents {
		return 0, refuse(syscall.EPROTO, nil, "the kernel gave agent id %d, of slots 0 to %d", id, port.MaxAgents-1)
	}
	p.agents[id] = &r
	p.freed &^= 1 << id
	p.early = slices.DeleteFunc(p.early, func(m port.Message) bool {
		if m.Agent == id {
			p.d.count.stale.Add(1)
		}
		return m.Agent == id
	})
	return id, nil
}

// registerIoctl tries the second registration, then the first, as libibumad
// does (umad.c, umad_register2).
func (p *openPort) registerIoctl(r port.Registration, flags uint32) (port.AgentID, error) {
	abi := &p.d.sys.abi
	if p.register2 {
		req := abi.reg2Request(r, flags)
		err := p.f.ioctl(abi.register2, req)
		if err == nil {
			return port.AgentID(abi.order.Uint32(req[reg2ID:])), nil
		}
		switch {
		case errors.Is(err, syscall.ENOTTY):
			p.register2 = false
		case !errors.Is(err, syscall.EINVAL):
			return 0, p.explainRegister(r, err)
		case flags != 0:
			// The kernel writes back which flags it knows.
			if known := abi.order.Uint32(req[reg2Flags:]); flags&^known != 0 {
				return 0, refuse(port.ErrInvalid, &FlagsError{flags, known}, "registration flags %#x: this kernel knows %#x", flags, known)
			}
			return 0, p.explainRegister(r, err)
		}
	}
	if flags != 0 {
		return 0, refuse(errors.ErrUnsupported, nil, "user RMPP needs the newer registration (IB_USER_MAD_REGISTER_AGENT2): use kernel RMPP")
	}
	req := abi.regRequest(r)
	if err := p.f.ioctl(abi.register, req); err != nil {
		return 0, p.explainRegister(r, err)
	}
	return port.AgentID(abi.order.Uint32(req[regID:])), nil
}

func (p *openPort) Unregister(id port.AgentID) error {
	if err := p.unregister(id); err != nil {
		return p.fail("unregister", err)
	}
	return nil
}

func (p *openPort) unregister(id port.AgentID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead != nil {
		return p.dead
	}
	// The kernel reads 4 bytes, the one of illumos as many as it registers.
	req := make([]byte, regSize)
	p.d.sys.abi.order.PutUint32(req[regID:], uint32(id))
	err := p.f.ioctl(p.d.sys.abi.unregister, req)
	known := id < port.MaxAgents && p.agents[id] != nil
	switch {
	case err == nil && known:
		p.agents[id] = nil
		if !p.d.sys.abi.illumos { // which drops what is queued
			p.freed |= 1 << id
		}
		return nil
	case known && errors.Is(err, syscall.EINVAL):
		// The agent was there, so the kernel has taken it away with the device.
		return refuse(port.ErrGone, err, "the device has been removed")
	case errors.Is(err, syscall.EINVAL):
		return refuse(port.ErrInvalid, err, "no agent is registered in slot %d", id)
	}
	return explainGone(err)
}

func (p *openPort) Send(m *port.Message) error {
	err := p.send(m)
	if err != nil {
		return p.fail("send", err)
	}
	p.d.count.sent.Add(1)
	return nil
}

// maxIdle is how long a buffer for sending may be to be kept.
const maxIdle = 1 << 16

func (p *openPort) send(m *port.Message) error {
	switch {
	case m.Timeout < 0 || m.Retries < 0:
		return refuse(port.ErrInvalid, nil, "negative timeout %v or retries %d", m.Timeout, m.Retries)
	case p.header == oldHeaderSize && m.Addr.PKeyIndex != 0:
		return refuse(port.ErrInvalid, nil, "P_Key index %d: the old packet header has none, only index 0 can be used", m.Addr.PKeyIndex)
	case p.d.sys.abi.illumos && m.Addr.HasGRH:
		return refuse(errors.ErrUnsupported, nil, "illumos sends no GRH: use a LID")
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	p.out = slices.Grow(p.out[:0], p.header+len(m.Data))[:p.header]
	p.d.sys.abi.putHeader(p.out, m)
	p.out = append(p.out, m.Data...)
	agent := p.agentIn(m.Agent)
	_, err := p.f.call(opWrite, 0, p.out)
	if cap(p.out) > maxIdle {
		p.out = nil
	}
	if err != nil && !errors.Is(err, os.ErrClosed) {
		return p.explainSend(m, agent, err)
	}
	return err
}

// agentIn gives the agent in a slot, nil if there is none.
func (p *openPort) agentIn(slot port.AgentID) *port.Registration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slot >= port.MaxAgents {
		return nil
	}
	return p.agents[slot]
}

func (p *openPort) Recv(m *port.Message) error {
	for {
		var err error
		e := p.f.wait(func(fd uintptr) (done bool) {
			done, err = p.take(fd, m)
			return done
		})
		switch {
		case e == nil && err == nil:
			return nil
		case e == nil:
			return p.fail("receive", err)
		case errors.Is(e, os.ErrDeadlineExceeded):
			// readAhead has something for this reader.
			if p.f.os.SetReadDeadline(time.Time{}) == nil {
				continue
			}
		}
		// The file was closed, or polling says POLLERR.
		return p.fail("receive", p.deadOr(port.ErrGone))
	}
}

func (p *openPort) deadOr(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead != nil {
		return p.dead
	}
	return err
}

// take gets the next message, if there is one.
func (p *openPort) take(fd uintptr, m *port.Message) (done bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead != nil {
		return true, p.dead
	}
	illumos := p.d.sys.abi.illumos
	if len(p.early) == 0 && illumos {
		if err := p.readJoined(fd); err != nil {
			return true, err
		}
	}
	if len(p.early) > 0 {
		first := p.early[0]
		p.early = slices.Delete(p.early, 0, 1)
		if cap(m.Data) >= len(first.Data) {
			first.Data = append(m.Data[:0], first.Data...)
		}
		*m = first
		return true, nil
	}
	if illumos {
		return false, nil
	}
	got, err := p.read(fd, m)
	return got || err != nil, err
}

// readAhead empties the kernel's queue before a slot may be used again: the
// packets of the last agent of that slot look like the next one's. The kernel
// queues none after it has unregistered an agent, so those are all.
func (p *openPort) readAhead() (err error) {
	for range maxQueued {
		var m port.Message
		var got bool
		e := p.f.raw.Control(func(fd uintptr) { got, err = p.read(fd, &m) })
		if e != nil {
			return os.ErrClosed
		}
		if err != nil || !got {
			break
		}
		p.early = append(p.early, m)
	}
	if len(p.early) > 0 {
		// A reader that waits for the kernel does not know of these.
		p.f.os.SetReadDeadline(time.Unix(1, 0))
	}
	return err
}

// maxMessage is the longest packet that is read: what a read can give.
const maxMessage = 1 << 30

// read reads one packet into m, or tells that there is none. One that is longer
// than the buffer stays first in the kernel's queue and is read again.
func (p *openPort) read(fd uintptr, m *port.Message) (got bool, err error) {
	abi := &p.d.sys.abi
	need := p.header + mad.Size
	for {
		buf := m.Data[:cap(m.Data)]
		if len(buf) < need {
			buf = make([]byte, need)
		}
		n, err := p.f.do(fd, opRead, 0, buf)
		switch {
		case err == nil && n >= p.header:
			abi.getHeader(buf[:p.header], m)
			copy(buf, buf[p.header:n])
			m.Data = buf[:n-p.header]
			p.received(m)
			return true, nil
		case err == nil:
			return false, refuse(syscall.EPROTO, nil, "the kernel gave %d bytes, less than a packet header", n)
		case errors.Is(err, syscall.EAGAIN):
			p.freed = 0
			return false, nil
		case errors.Is(err, syscall.ENOSPC):
			p.d.count.grown.Add(1)
			need = abi.packetLength(buf)
			if need <= len(buf) || need > maxMessage {
				return false, refuse(syscall.EPROTO, err, "the kernel has no space for %d bytes in %d", need, len(buf))
			}
		case errors.Is(err, syscall.EINVAL) && len(buf) < p.header+opaMAD:
			need = p.header + opaMAD // a single MAD of Omni-Path
		default:
			return false, explainGone(err)
		}
	}
}

func (p *openPort) received(m *port.Message) {
	if m.TimedOut {
		p.d.count.timedOut.Add(1)
	} else {
		p.d.count.received.Add(1)
	}
}

// explainGone tells the errors that mean a removed device from others.
func explainGone(err error) error {
	for _, gone := range []error{syscall.EIO, syscall.EPIPE, syscall.ENXIO, syscall.ENODEV} {
		if errors.Is(err, gone) {
			return refuse(port.ErrGone, err, "the device has been removed")
		}
	}
	return err
}
