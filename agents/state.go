package agents

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// state is the state of all exchanges of a Conn, whose lock guards it. Its methods
// never wait.
type state struct {
	conn      *Conn
	agents    map[port.AgentID]*Agent
	calls     map[uint32]*call // by the low half of the transaction id
	exchanges map[exchangeKey]*exchange
	alarms    alarms
	out       port.Message // that is being sent
	lastTID   uint32       // low half of the newest transaction id
	issued    uint64       // how many there have been
	err       error        // why it ends
}

func (s *state) init(c *Conn) {
	*s = state{
		conn:      c,
		agents:    make(map[port.AgentID]*Agent),
		calls:     make(map[uint32]*call),
		exchanges: make(map[exchangeKey]*exchange),
		// Answers to an earlier program with the same upper half should not match.
		lastTID: rand.Uint32(),
	}
}

// end ends all exchanges.
func (s *state) end(now time.Time, why error) {
	s.err = why
	for _, a := range s.agents {
		s.drop(a, now, why)
	}
}

func (s *state) register(a *Agent) error {
	if s.err != nil {
		return s.err
	}
	id, err := s.conn.port.Register(a.reg.Registration)
	if err != nil {
		return err
	}
	a.id = id
	s.agents[id] = a
	if a.reg.Serve != nil {
		a.jobs = make(chan *Incoming, a.reg.Queue)
		for range a.reg.Workers {
			s.conn.running.Add(1)
			a.workers.Go(func() {
				defer s.conn.running.Done()
				a.work()
			})
		}
	}
	return nil
}

func (s *state) unregister(a *Agent, now time.Time) error {
	if a.closed {
		return s.err
	}
	s.drop(a, now, port.ErrClosed)
	return s.conn.port.Unregister(a.id)
}

// drop ends all that an agent has under way.
func (s *state) drop(a *Agent, now time.Time, why error) {
	a.closed = true
	delete(s.agents, a.id)
	a.cancel()
	for e := a.waiting.Front(); e != nil; e = a.waiting.Front() {
		s.fail(e.Value.(*call), now, stepWindow, why)
	}
	for tid, c := range s.calls {
		if c.agent == a {
			s.fail(c, now, stepAnswer, why)
			s.alarms.set(&c.alarm, time.Time{})
			delete(s.calls, tid)
		}
	}
	for key, x := range s.exchanges {
		if x.agent == a {
			s.replied(x, why)
			s.alarms.set(&x.alarm, time.Time{})
			delete(s.exchanges, key)
		}
	}
	if a.jobs != nil {
		close(a.jobs)
	}
}

// receive sorts a message from the Port. What keeps its Data takes it away.
func (s *state) receive(now time.Time, m *port.Message) {
	a := s.agents[m.Agent]
	switch {
	case m.TimedOut && len(m.Data) >= mad.HeaderSize:
		s.timedOut(now, m)
	case a == nil || !a.complete(m.Data):
		s.conn.counters.foreign.Add(1)
	case mad.IsResponse(m.Data):
		s.answer(now, a, m)
	default:
		s.request(now, a, m)
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
func (s *state) send(a *Agent, m port.Message) error {
	m.Agent = a.id
	s.out = m
	err := s.conn.port.Send(&s.out)
	s.out.Data = nil
	if err != nil {
		return err
	}
	s.conn.counters.sent.Add(1)
	return nil
}

// newTID gives a low half of a transaction id that no exchange has, nor had
// for the last 2^32 of them.
func (s *state) newTID() uint32 {
	for {
		s.lastTID++
		s.issued++
		if _, used := s.calls[s.lastTID]; !used {
			return s.lastTID
		}
	}
}

// stray counts an answer that belongs to no request: it is late if its
// transaction id was in use, otherwise foreign.
func (s *state) stray(data []byte) {
	if ago := s.lastTID - lowTID(data); uint64(ago) < s.issued {
		s.conn.counters.late.Add(1)
	} else {
		s.conn.counters.foreign.Add(1)
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
func (s *state) pump(t *transfer, now time.Time) error {
	var pkt [mad.Size]byte
	for t.sender != nil && t.sender.Next(now, &pkt) || t.receiver != nil && t.receiver.Next(now, &pkt) {
		if err := s.send(t.agent, port.Message{Addr: t.peer, Data: pkt[:]}); err != nil {
			return err
		}
	}
	return nil
}

// abort tells the peer of a transfer that is not over to end it.
func (s *state) abort(t *transfer, now time.Time, status mad.RMPPStatus) {
	if t.sender != nil {
		t.sender.Abort(status)
	}
	if t.receiver != nil {
		t.receiver.Abort(now, status)
	}
	_ = s.pump(t, now) // if that fails, the peer will find out by its own time-out
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
