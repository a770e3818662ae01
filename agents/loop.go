package agents

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// loop is the state of all exchanges of a Conn. One goroutine owns it, which
// never waits for anything but its next event, and one timer serves it.
type loop struct {
	conn      *Conn
	agents    map[port.AgentID]*Agent
	calls     map[uint32]*call // by the low half of the transaction id
	exchanges map[exchangeKey]*exchange
	alarms    alarms
	lastTID   uint32 // low half of the newest transaction id
	issued    uint64 // how many there have been
	err       error  // why it ends
}

func (l *loop) init(c *Conn) {
	*l = loop{
		conn:      c,
		agents:    make(map[port.AgentID]*Agent),
		calls:     make(map[uint32]*call),
		exchanges: make(map[exchangeKey]*exchange),
		// Answers to an earlier program with the same upper half should not match.
		lastTID: rand.Uint32(),
	}
}

// run handles events until the Port ends; ended then tells why.
func (l *loop) run(received <-chan *port.Message, free chan<- *port.Message, ended <-chan error) {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	var armed time.Time
	for {
		select {
		case m, ok := <-received:
			if !ok {
				l.end(<-ended)
				return
			}
			l.receive(time.Now(), m)
			free <- m
		case <-l.conn.wake:
			now := time.Now()
			for _, f := range l.conn.takeInbox(nil) {
				f(now)
			}
		case <-timer.C:
			armed = time.Time{}
		}
		now := time.Now()
		l.alarms.ring(now)
		if next := l.alarms.next(); !next.Equal(armed) {
			armed = next
			if next.IsZero() {
				timer.Stop()
			} else {
				timer.Reset(next.Sub(now))
			}
		}
	}
}

// end ends all exchanges, and those that are still being posted.
func (l *loop) end(why error) {
	l.err = why
	now := time.Now()
	for _, a := range l.agents {
		l.drop(a, now, why)
	}
	for posted := l.conn.takeInbox(why); len(posted) > 0; posted = l.conn.takeInbox(why) {
		for _, f := range posted {
			f(now)
		}
	}
}

func (l *loop) register(a *Agent) error {
	if l.err != nil {
		return l.err
	}
	id, err := l.conn.port.Register(a.reg.Registration)
	if err != nil {
		return err
	}
	a.id = id
	l.agents[id] = a
	if a.reg.Serve != nil {
		a.jobs = make(chan *Incoming, a.reg.Queue)
		for range a.reg.Workers {
			l.conn.running.Add(1)
			a.workers.Go(func() {
				defer l.conn.running.Done()
				a.work()
			})
		}
	}
	return nil
}

func (l *loop) unregister(a *Agent, now time.Time) error {
	if a.closed {
		return l.err
	}
	l.drop(a, now, port.ErrClosed)
	return l.conn.port.Unregister(a.id)
}

// drop ends all that an agent has under way.
func (l *loop) drop(a *Agent, now time.Time, why error) {
	a.closed = true
	delete(l.agents, a.id)
	a.cancel()
	for e := a.waiting.Front(); e != nil; e = a.waiting.Front() {
		l.fail(e.Value.(*call), now, stepWindow, why)
	}
	for tid, c := range l.calls {
		if c.agent == a {
			l.fail(c, now, stepAnswer, why)
			l.alarms.set(&c.alarm, time.Time{})
			delete(l.calls, tid)
		}
	}
	for key, x := range l.exchanges {
		if x.agent == a {
			l.replied(x, why)
			l.alarms.set(&x.alarm, time.Time{})
			delete(l.exchanges, key)
		}
	}
	if a.jobs != nil {
		close(a.jobs)
	}
}

// receive sorts a message from the Port. What keeps its Data takes it away.
func (l *loop) receive(now time.Time, m *port.Message) {
	a := l.agents[m.Agent]
	switch {
	case m.TimedOut && len(m.Data) >= mad.HeaderSize:
		l.timedOut(now, m)
	case a == nil || !a.complete(m.Data):
		l.conn.counters.foreign.Add(1)
	case mad.IsResponse(m.Data):
		l.answer(now, a, m)
	default:
		l.request(now, a, m)
	}
}

// complete tells whether a message is a MAD, or has at least the headers of one
// that was reassembled.
func (a *Agent) complete(data []byte) bool {
	if a.reg.RMPP == port.RMPPKernel && rmpp.IsActive(data) {
		return len(data) >= mad.ClassHeaderLen(mad.Class(data[mad.OffClass]))
	}
	return len(data) >= mad.Size
}

// send hands a message over to the Port.
func (l *loop) send(a *Agent, m port.Message) error {
	m.Agent = a.id
	if err := l.conn.port.Send(&m); err != nil {
		return err
	}
	l.conn.counters.sent.Add(1)
	return nil
}

// newTID gives a low half of a transaction id that no exchange has, nor had
// for the last 2^32 of them.
func (l *loop) newTID() uint32 {
	for {
		l.lastTID++
		l.issued++
		if _, used := l.calls[l.lastTID]; !used {
			return l.lastTID
		}
	}
}

// stray counts an answer that belongs to no request: it is late if its
// transaction id was in use, otherwise foreign.
func (l *loop) stray(data []byte) {
	if ago := l.lastTID - lowTID(data); uint64(ago) < l.issued {
		l.conn.counters.late.Add(1)
	} else {
		l.conn.counters.foreign.Add(1)
	}
}

// lowTID is the half of the transaction id that is the agent's; the upper half
// of a request's is the carrier's and not known here.
func lowTID(data []byte) uint32 { return binary.BigEndian.Uint32(data[mad.OffTID+4:]) }

func attribute(data []byte) uint16 { return binary.BigEndian.Uint16(data[mad.OffAttribute:]) }

// transfer is the RMPP part of an exchange in mode RMPPUser.
type transfer struct {
	agent    *Agent
	peer     mad.AddressVector
	sender   *rmpp.Sender   // of a long message, or nil
	receiver *rmpp.Receiver // of the segments that have come, or nil
}

// isPacket tells whether a message belongs to a transfer above the Port.
func (a *Agent) isPacket(data []byte) bool {
	return a.reg.RMPP == port.RMPPUser && len(data) == mad.Size && rmpp.IsActive(data)
}

func packetType(data []byte) mad.RMPPType { return mad.RMPPType(data[mad.OffRMPP+1]) }

// forSender tells whether a packet is for the Sender and not for the Receiver.
func (t *transfer) forSender(data []byte) bool {
	if t.sender == nil {
		return false
	}
	over, _ := t.sender.Done()
	switch packetType(data) {
	case mad.RMPPTypeData:
		return false
	case mad.RMPPTypeACK:
		return true
	}
	return !over
}

// pump transmits what a transfer has to send. Packets never have a time-out:
// the carrier would take an ACK for the answer.
func (l *loop) pump(t *transfer, now time.Time) error {
	var pkt [mad.Size]byte
	for t.sender != nil && t.sender.Next(now, &pkt) || t.receiver != nil && t.receiver.Next(now, &pkt) {
		if err := l.send(t.agent, port.Message{Addr: t.peer, Data: pkt[:]}); err != nil {
			return err
		}
	}
	return nil
}

// abort tells the peer of a transfer that is not over to end it.
func (l *loop) abort(t *transfer, now time.Time, status mad.RMPPStatus) {
	if t.sender != nil {
		t.sender.Abort(status)
	}
	if t.receiver != nil {
		t.receiver.Abort(now, status)
	}
	_ = l.pump(t, now) // if that fails, the peer will find out by its own time-out
}

// deadline is when the machines want to be pumped without a packet.
func (t *transfer) deadline() (at time.Time) {
	if t.sender != nil {
		at = t.sender.Deadline()
	}
	if t.receiver != nil {
		at = earliest(at, t.receiver.Deadline())
	}
	return at
}
