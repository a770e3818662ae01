// Package softcma is the RDMA CM of one host's port, as the Linux kernel has it
// between /dev/infiniband/rdma_cm and the port: open files with ids and events
// (ucma.c), the state machine of ids, addresses and paths (cma.c), and the CM
// (package cm) with its messages, which travel by a port.Port.
//
// It answers the bytes of commands as the kernel does, in the order of its
// checks, with its errnos and events. A file speaks either dialect of package
// ucma; for illumos it has the rules in which sol_ucma differs.
//
// A [Host] is a core of tables that knows no clock and no I/O, and a shell: one
// lock, one timer, one goroutine that reads the port, and one for each question
// to the subnet administrator. What it lacks of a kernel:
//
//   - It has one device with one port, one network interface, and no queue pairs:
//     a number of one that CONNECT or ACCEPT gives is not looked up.
//   - The host's addresses do not change, and neighbours are asked for when an
//     address is resolved and once more when the time-out is over.
//   - Everybody is root.
package softcma

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/ucma"
)

// Config is what a Host knows of its network.
type Config struct {
	// Addrs are the IP addresses of the host on this port, each with the network
	// that it is on. There is no way beyond these.
	Addrs []netip.Prefix
	// Neighbour tells who has an address of these networks, as ARP does. It must
	// not wait, and not call the Host. nil: nobody.
	Neighbour func(netip.Addr) (Neighbour, bool)
	// RoCE makes the port look like one of Ethernet: no LIDs, GIDs made of the IP
	// addresses, paths made up instead of asked for. CM messages go to the
	// neighbour's LID all the same.
	RoCE bool
	// IfIndex is the number of the network interface, which a link-local address
	// has as its ScopeID. 0: 2.
	IfIndex uint32
	// AckDelay is the channel adapter's Local CA ACK Delay (IBA 11.2.1.2): 4.096 us
	// * 2^n.
	AckDelay uint8
}

// Neighbour is a port as IP hosts see each other.
type Neighbour struct {
	GID mad.GID
	LID mad.LID
}

// Host is the RDMA CM of a port. Its methods may be called by several
// goroutines.
type Host struct {
	port              port.Port
	dev               port.Device
	sa                *sa.Client // nil on RoCE
	agent             port.AgentID
	reader, questions sync.WaitGroup

	mu      sync.Mutex
	core    *core
	closing bool // no file opens any more
	closed  bool // nothing happens any more
	timer   *time.Timer
	armed   time.Time // when timer fires; zero if it does not
	out     cm.Packet // the one that is being sent, and its message
	msg     port.Message
}

// New starts the RDMA CM on a port of dev, which must send transaction ids as
// they are (softmad's OpenKernel), and which is the Host's from now on. dev is
// for the port's tables and the subnet administrator; the caller closes it after
// the Host.
//
// Errors: those of Register, such as port.ErrMethodOwned if the port has a CM.
func New(p port.Port, dev port.Device, cfg Config) (*Host, error) {
	info, err := dev.Info()
	if err != nil {
		return nil, fmt.Errorf("RDMA CM: %w", err)
	}
	if cfg.IfIndex == 0 {
		cfg.IfIndex = 2
	}
	h := &Host{port: p, dev: dev}
	h.agent, err = p.Register(port.Registration{
		QPN: mad.QPGSI, Class: mad.ClassComMgt, Version: cmClassVersion, Methods: port.Methods(mad.MethodSend),
	})
	if err != nil {
		return nil, fmt.Errorf("RDMA CM: %w", err)
	}
	if !cfg.RoCE {
		if h.sa, err = sa.NewClient(dev, sa.Config{}); err != nil {
			return nil, fmt.Errorf("RDMA CM: %w", errors.Join(err, p.Unregister(h.agent)))
		}
	}
	h.core = newCore(cfg, info, rand.Uint32)
	h.reader.Go(h.read)
	return h, nil
}

// cmClassVersion is the class version of the CM (IBA 16.7.1).
const cmClassVersion = 2

// Open gives a new file, as open(2) of the kernel's device does.
func (h *Host) Open(d *ucma.Dialect) (ucma.Device, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, ucma.ErrClosed
	}
	return &File{h, h.core.open(d)}, nil
}

// Close ends all files and their ids, and the Host. Peers are told, and so is the
// SA of groups that are left, for whose answer Close waits, up to 3.3 s.
func (h *Host) Close() error {
	now := time.Now()
	h.enter()
	if h.closing {
		h.mu.Unlock()
		return nil
	}
	h.closing = true
	for _, f := range h.core.openFiles() {
		h.core.closeFile(now, f)
	}
	h.leave(now)
	h.questions.Wait()
	h.mu.Lock()
	h.closed = true
	if h.timer != nil {
		h.timer.Stop()
	}
	h.mu.Unlock()
	err := h.port.Close()
	if h.sa != nil {
		err = errors.Join(err, h.sa.Close())
	}
	h.reader.Wait()
	return err
}

// enter locks the core and shows it the port as it is.
func (h *Host) enter() {
	h.mu.Lock()
	if info, err := h.dev.Info(); err == nil {
		h.core.setInfo(info)
	}
}

// leave does what follows of what was done: it sends, asks the SA, sets the timer,
// and unlocks.
func (h *Host) leave(now time.Time) {
	defer h.mu.Unlock()
	h.core.settle(now)
	if h.closed {
		return
	}
	for h.core.cm.Next(&h.out) {
		if to, ok := h.core.addressOf(&h.out); ok {
			h.msg = port.Message{Agent: h.agent, Addr: to, Data: h.out.MAD[:]}
			// What cannot be sent is lost, as on the way.
			_ = h.port.Send(&h.msg)
		}
	}
	for _, q := range h.core.queries {
		h.questions.Go(func() { h.ask(q) })
	}
	h.core.queries = nil
	if next := h.core.deadline(); !next.IsZero() && (h.armed.IsZero() || next.Before(h.armed)) {
		h.armed = next
		if h.timer == nil {
			h.timer = time.AfterFunc(next.Sub(now), h.tick)
		} else {
			h.timer.Reset(next.Sub(now))
		}
	}
}

// tick is the timer.
func (h *Host) tick() {
	now := time.Now()
	h.enter()
	h.armed = time.Time{}
	if !h.closed {
		h.core.expire(now)
	}
	h.leave(now)
}

// read is the goroutine that takes CM messages from the port until it ends.
func (h *Host) read() {
	var m port.Message
	for {
		err := h.port.Recv(&m)
		now := time.Now()
		h.enter()
		switch {
		case h.closed:
		case err == nil && len(m.Data) == mad.Size && !m.TimedOut:
			h.core.receive(now, &m)
		case errors.Is(err, port.ErrGone):
			h.core.removed(now)
		}
		h.leave(now)
		if err != nil {
			return
		}
	}
}

// ask asks the SA, as long as the kernel would.
func (h *Host) ask(q *query) {
	ctx, cancel := context.WithTimeout(q.ctx, q.wait)
	defer cancel()
	var path mad.PathRecord
	var member mad.MCMemberRecord
	err := h.askOnce(ctx, q, &path, &member)
	for err != nil && ctx.Err() == nil && errors.Is(err, agents.ErrTimeout) {
		err = h.askOnce(ctx, q, &path, &member)
	}
	now := time.Now()
	h.enter()
	if errors.Is(err, port.ErrGone) {
		h.core.removed(now) // which read may not have seen yet
	}
	if q.ctx.Err() == nil {
		q.done(now, path, member, saErrno(err))
	}
	q.cancel()
	h.leave(now)
}

func (h *Host) askOnce(ctx context.Context, q *query, path *mad.PathRecord, member *mad.MCMemberRecord) (err error) {
	switch {
	case q.path != nil:
		*path, err = sa.Get(ctx, h.sa, sa.Match(*q.path, q.fields...))
	case q.join != nil:
		*member, err = h.sa.JoinOrCreate(ctx, *q.join, q.fields...)
	default:
		err = h.sa.Leave(ctx, *q.leave)
	}
	return err
}

// saErrno is what the kernel's SA client makes of a failure: its requests end with
// time or with a status.
func saErrno(err error) error {
	switch status := (*sa.StatusError)(nil); {
	case err == nil:
		return nil
	case errors.As(err, &status):
		return ucma.EINVAL
	}
	return ucma.ETIMEDOUT
}

// File is an open file of a Host, a ucma.Device.
type File struct {
	h *Host
	f *openFile
}

// Dialect is the one that it was opened with.
func (f *File) Dialect() *ucma.Dialect { return f.f.dialect }

// FD is the file's number, for MIGRATE_ID.
func (f *File) FD() uint32 { return f.f.fd }

// Exec does one command; see ucma.Device.
func (f *File) Exec(cmd, mem []byte) error {
	now := time.Now()
	f.h.enter()
	err := error(ucma.ErrClosed)
	if !f.f.closed {
		err = f.h.core.exec(now, f.f, cmd, mem)
	}
	f.h.leave(now)
	return err
}

// Wait waits for an event; see ucma.Device.
func (f *File) Wait(ctx context.Context) error {
	for {
		f.h.mu.Lock()
		closed, n, wake := f.f.closed, len(f.f.events), f.f.wake
		f.h.mu.Unlock()
		switch {
		case closed:
			return ucma.ErrClosed
		case n > 0:
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends all ids of the file.
func (f *File) Close() error {
	now := time.Now()
	f.h.enter()
	if !f.f.closed {
		f.h.core.closeFile(now, f.f)
	}
	f.h.leave(now)
	return nil
}

var _ ucma.Device = (*File)(nil)
