package ibsim

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/softmad"
)

const (
	// window is how many requests wait for their answers at a time. Clients on
	// umad2sim, such as OpenSM, stop for ever when several hundred wait for them.
	window = 256
	// lost is how long a request without an answer takes a place in the window.
	lost = time.Second
	// maxWaiting is how many packets wait, in each direction, before more are lost.
	maxWaiting = 1 << 16
	// probeEvery is how often ibsim is looked for while nothing comes: the kernel
	// tells of its end only who sends.
	probeEvery = 250 * time.Millisecond
)

// link is a client of ibsim: a softmad.Link. One goroutine always reads, whatever
// the user does: ibsim spins, and its whole fabric stops, while a client's socket
// is full. Another one sends what ibsim did not take at once.
type link struct {
	ctl      *channel
	slot     uint32
	data     *net.UnixConn
	raw      syscall.RawConn
	nodeInfo mad.NodeInfo
	nodeDesc string
	lost     time.Duration
	work     sync.WaitGroup
	closing  sync.Once
	closeErr error

	mu       sync.Mutex
	own      own
	isSM     bool
	end      error // what Recv ends with, once it is over
	in       fifo[softmad.Wire]
	arrived  sync.Cond // in has something, or end is set
	out      fifo[[packetSize]byte]
	sendable sync.Cond            // out has something, and there may be room, or end is set
	writing  bool                 // the writer is in the kernel
	asked    map[uint64]time.Time // requests that wait for an answer, by transaction id
	watched  bool                 // a timer looks after the full window

	packet  [packetSize]byte      // of Send
	try     func(fd uintptr) bool // writes tryData once, without waiting
	tryData []byte
	tryErr  error

	// The rest belongs to the reader.
	fetch    func(fd uintptr) bool // reads fetched, if there is anything
	fetched  [packetSize + 1]byte  // to tell a longer packet
	length   int
	fetchErr error
}

var (
	_ softmad.Link       = (*link)(nil)
	_ softmad.IsSMSetter = (*link)(nil)
)

// newLink makes a link of two sockets, which start takes into use.
func newLink(ctl *channel, data *net.UnixConn) *link {
	l := &link{ctl: ctl, slot: ctl.slot, data: data, lost: lost, asked: make(map[uint64]time.Time)}
	l.arrived.L, l.sendable.L = &l.mu, &l.mu
	l.try = func(fd uintptr) bool {
		_, l.tryErr = write(fd, l.tryData)
		return true
	}
	l.fetch = func(fd uintptr) bool {
		l.length, l.fetchErr = read(fd, l.fetched[:])
		return l.fetchErr != syscall.EAGAIN
	}
	return l
}

// Send implements softmad.Link.
func (l *link) Send(w *softmad.Wire) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end != nil {
		err := l.end
		if err == io.EOF {
			err = port.ErrGone
		}
		return l.fail("send", err)
	}
	p := &l.packet
	if err := encodePacket(p, w, l.own); err != nil {
		return l.fail("send", err)
	}
	if l.out.len() == 0 && !l.writing && l.room(p) {
		switch err := l.tryWrite(p[:]); {
		case err == nil:
			l.count(p)
			return nil
		case !errors.Is(err, syscall.EAGAIN):
			return l.sendFailed(err)
		}
	}
	if l.out.len() >= maxWaiting {
		return l.fail("send", errTooMany)
	}
	l.out.push(p)
	l.sendable.Signal()
	return nil
}

var errTooMany = errors.New("too many MADs wait to be sent")

// tryWrite sends a packet, if ibsim takes it at once; else it gives EAGAIN.
func (l *link) tryWrite(p []byte) error {
	l.tryData = p
	err := l.raw.Write(l.try)
	l.tryData = nil
	return errors.Join(err, l.tryErr)
}

// sendFailed ends the link if ibsim is gone.
func (l *link) sendFailed(err error) error {
	if isGone(err) {
		l.finish(io.EOF)
		err = port.ErrGone
	}
	return l.fail("send", err)
}

// write is the goroutine that sends what Send could not.
func (l *link) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for l.end == nil && (l.out.len() == 0 || !l.room(l.out.next())) {
			l.sendable.Wait()
		}
		if l.end != nil {
			return
		}
		p := *l.out.next()
		l.out.drop()
		l.count(&p)
		l.writing = true
		l.mu.Unlock()
		_, err := l.data.Write(p[:])
		l.mu.Lock()
		l.writing = false
		if err != nil {
			_ = l.sendFailed(err) // a lost MAD: Send has returned
		}
	}
}

// room tells whether a packet may be sent now. If the window is full it sees to it
// that it does not stay so, should answers be lost.
func (l *link) room(p *[packetSize]byte) bool {
	if len(l.asked) < window || !isAnswered(madOf(p)) {
		return true
	}
	now := time.Now()
	oldest := now
	for id, at := range l.asked {
		switch {
		case now.Sub(at) >= l.lost:
			delete(l.asked, id)
		case at.Before(oldest):
			oldest = at
		}
	}
	if len(l.asked) < window {
		return true
	}
	if !l.watched {
		l.watched = true
		time.AfterFunc(l.lost-now.Sub(oldest), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.watched = false
			l.sendable.Signal()
		})
	}
	return false
}

// count takes a sent packet into the window.
func (l *link) count(p *[packetSize]byte) {
	if m := madOf(p); isAnswered(m) {
		l.asked[lowTID(m)] = time.Now()
	}
}

func madOf(p *[packetSize]byte) *[mad.Size]byte { return (*[mad.Size]byte)(p[offMAD:]) }

// lowTID is the part of a transaction id that ibsim does not write to.
func lowTID(m *[mad.Size]byte) uint64 { return binary.BigEndian.Uint64(m[mad.OffTID:]) & (1<<48 - 1) }

// read is the goroutine that takes packets from ibsim, until ibsim or the link
// ends.
func (l *link) read() {
	_ = l.readAll() // whatever it is, the port is gone
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finish(io.EOF)
}

func (l *link) readAll() error {
	for {
		if err := l.data.SetReadDeadline(time.Now().Add(probeEvery)); err != nil {
			return err
		}
		for {
			err := l.raw.Read(l.fetch)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err = errors.Join(err, l.fetchErr); err != nil {
				return err
			}
			l.receive(l.fetched[:l.length])
		}
		if err := l.probe(); err != nil {
			return err
		}
	}
}

// probe finds out whether ibsim is still there, by an empty packet, which ibsim
// takes for none (ibsim.c, sim_read_pkt).
func (l *link) probe() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writing {
		return nil // and it will be known from that
	}
	if err := l.tryWrite(nil); isGone(err) {
		return err
	}
	return nil
}

// receive takes a packet. Like a port, it loses what makes no sense and what finds
// no room.
func (l *link) receive(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var w softmad.Wire
	if decodePacket(&w, b, l.own) != nil || l.end != nil {
		return
	}
	if w.Undelivered || mad.IsResponse(w.MAD[:]) {
		delete(l.asked, lowTID(&w.MAD))
		if l.out.len() > 0 {
			l.sendable.Signal()
		}
	}
	if l.in.len() < maxWaiting {
		l.in.push(&w)
		l.arrived.Signal()
	}
}

// Recv implements softmad.Link. What came before the end is still received.
func (l *link) Recv(w *softmad.Wire) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.in.len() == 0 && l.end == nil {
		l.arrived.Wait()
	}
	switch {
	case l.in.len() > 0:
		*w = *l.in.next()
		l.in.drop()
		return nil
	case l.end == io.EOF:
		return io.EOF
	}
	return l.fail("receive", l.end)
}

// finish ends Send and Recv; the first reason stays.
func (l *link) finish(why error) {
	if l.end == nil {
		l.end = why
		l.arrived.Broadcast()
		l.sendable.Broadcast()
	}
}

// Close implements softmad.Link. It gives the slot back, and with it IsSM, which
// ibsim would leave set.
func (l *link) Close() error {
	l.closing.Do(func() {
		l.mu.Lock()
		l.finish(port.ErrClosed)
		isSM := l.isSM
		l.mu.Unlock()
		var err error
		if isSM {
			err = l.SetIsSM(false)
		}
		err = errors.Join(err, l.ctl.ask(opDisconnect, new([controlData]byte)))
		if !errors.Is(err, port.ErrGone) { // the slot went with ibsim
			l.closeErr = err
		}
		l.ctl.conn.Close()
		l.data.Close()
		l.work.Wait()
	})
	return l.closeErr
}

func (l *link) fail(op string, err error) error {
	return &Error{Op: op, Socket: l.ctl.socket, Node: l.ctl.node, Err: err}
}
