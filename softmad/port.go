package softmad

import (
	"time"

	"github.com/ibsm/ibsm/port"
)

// openPort is a port.Port: an open file of a Device.
type openPort struct {
	d *Device
	f *file
}

func (p *openPort) Register(r port.Registration) (port.AgentID, error) {
	d := p.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.f.dead != nil {
		return 0, d.fail("register", p.f.dead)
	}
	a, err := d.core.register(p.f, r)
	if err != nil {
		return 0, d.fail("register", err)
	}
	return a.id, nil
}

func (p *openPort) Unregister(id port.AgentID) error {
	d := p.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.f.dead != nil {
		return d.fail("unregister", p.f.dead)
	}
	if id >= port.MaxAgents || p.f.slots[id] == nil {
		return d.fail("unregister", refuse(port.ErrInvalid, "no agent is registered in slot %d", id))
	}
	d.core.unregister(p.f.slots[id])
	return nil
}

func (p *openPort) Send(m *port.Message) error {
	d := p.d
	now := time.Now()
	info := d.portInfo(now, func(info *port.Info) bool {
		return int(m.Addr.PKeyIndex) < len(info.PKeys) && info.PKeys[m.Addr.PKeyIndex] != 0
	})
	d.enter(info)
	err := p.f.dead
	if err == nil {
		err = d.core.send(now, p.f, m)
	}
	d.leave(now)
	if err != nil {
		return d.fail("send", err)
	}
	return nil
}

func (p *openPort) Recv(m *port.Message) error {
	d, f := p.d, p.f
	d.mu.Lock()
	for f.queue.n == 0 && f.dead == nil {
		f.ready.Wait()
	}
	if f.dead != nil {
		d.mu.Unlock()
		return d.fail("receive", f.dead)
	}
	long := f.queue.pop(m)
	d.mu.Unlock()
	if cap(m.Data) < len(long) {
		m.Data = long // nobody else has it
	} else if long != nil {
		m.Data = append(m.Data[:0], long...)
	}
	return nil
}

func (p *openPort) Close() error {
	d := p.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.f.dead == nil {
		d.core.closeFile(p.f, port.ErrClosed)
		delete(d.files, p.f)
	}
	return nil
}
