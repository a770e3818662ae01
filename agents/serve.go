package agents

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// The steps of a reply, in errors.
const stepReply = "reply"

// Incoming is a request to serve.
type Incoming struct {
	Addr mad.AddressVector // of the requester
	// Data is the whole message, laid out as in a Response. It belongs to the
	// handler.
	Data []byte

	exchange *exchange
	replied  atomic.Bool
}

// Context ends when the agent, its Conn or the device does.
func (in *Incoming) Context() context.Context { return in.exchange.agent.ctx }

// Reply sends the answer: the headers of the class, then data. The transaction
// id of the request is put in, the rest of the headers is the handler's. Data of
// more than one MAD, or with the RMPP Active flag set, go by RMPP as the mode of
// the agent says: in mode RMPPUser Reply returns when the requester has
// acknowledged everything or the transfer has failed, otherwise when the message
// has been handed over.
//
// The error is an *Error; what it wraps is ErrAnswered at a second call,
// ErrTooLong, ErrNoAck, an *rmpp.AbortError, or an error of the Port, such as
// port.ErrClosed after Close.
func (in *Incoming) Reply(data []byte) error {
	x := in.exchange
	a := x.agent
	fail := func(err error) error { return newError(data, in.Addr, stepReply, err) }
	msg, long, err := a.compose(data)
	switch {
	case err != nil:
		return fail(err)
	case !mad.IsResponse(msg):
		return fail(fmt.Errorf("%w: it is a request, not a response", port.ErrInvalid))
	}
	binary.BigEndian.PutUint64(msg[mad.OffTID:], x.key.tid)
	segments := long && a.reg.RMPP == port.RMPPUser
	if ack := mad.Method(msg[mad.OffMethod]) &^ mad.ResponseBit; segments && !a.reg.Methods.Has(ack) {
		return fail(fmt.Errorf("%w: register the agent with method %v, which ACKs to this reply have", ErrNoAck, ack))
	}
	if in.replied.Swap(true) {
		return fail(ErrAnswered)
	}
	done := make(chan error, 1)
	a.conn.do(func(now time.Time) {
		switch s := &a.conn.state; {
		case a.closed:
			done <- closedBecause(s.err)
		case segments:
			s.replyLong(x, now, msg, done)
		default:
			// Retries are for the segments of a long message in mode RMPPKernel.
			done <- s.send(a, port.Message{Addr: in.Addr, Retries: a.conn.cfg.RMPP.Retries, Data: msg})
		}
	})
	if err := <-done; err != nil {
		return fail(err)
	}
	return nil
}

// closedBecause is why an agent is closed: by itself, or because its Conn is.
func closedBecause(end error) error {
	if end != nil {
		return end
	}
	return port.ErrClosed
}

// exchangeKey is what the packets of a request have in common, and its
// retransmissions: the whole transaction id, because different requesters may
// use the same low half, class and source.
type exchangeKey struct {
	tid   uint64
	class mad.Class
	lid   mad.LID
	qpn   uint32
	gid   mad.GID // zero without GRH
}

func keyOf(m *port.Message) exchangeKey {
	k := exchangeKey{
		tid:   binary.BigEndian.Uint64(m.Data[mad.OffTID:]),
		class: mad.Class(m.Data[mad.OffClass]),
		lid:   m.Addr.LID,
		qpn:   m.Addr.QPN,
	}
	if m.Addr.HasGRH {
		k.gid = m.Addr.GRH.GID
	}
	return k
}

// exchange is a request that is arriving, being served, or being replied to in
// segments. It belongs to the state, except agent and key, which do not change.
type exchange struct {
	transfer
	alarm
	key    exchangeKey
	busy   bool       // counts for Queue: until the handler has returned
	got    []byte     // what the receiver has yielded
	whole  bool       // got was handed on, or will never be
	result chan error // of a long reply under way, or nil
}

// replied ends a long reply, once.
func (s *state) replied(x *exchange, err error) {
	switch {
	case x.result == nil:
		return
	case err != nil:
		s.conn.counters.transfersBad.Add(1)
	default:
		s.conn.counters.transfersOut.Add(1)
	}
	x.result <- err
	x.result = nil
}

// request handles a request from the Port, or a packet of its requester.
func (s *state) request(now time.Time, a *Agent, m *port.Message) {
	if a.reg.Serve == nil || mad.Class(m.Data[mad.OffClass]) != a.reg.Class {
		s.conn.counters.foreign.Add(1)
		return
	}
	key := keyOf(m)
	x := s.exchanges[key]
	switch {
	case a.isPacket(m.Data) && packetType(m.Data) == mad.RMPPTypeData && (x == nil || x.receiver != nil):
		s.conn.counters.packets.Add(1)
		if x == nil {
			if x = s.open(now, a, m, key); x == nil {
				return
			}
			x.receiver = rmpp.NewReceiver(s.conn.receiverConfig(a.reg.MaxMessage))
		}
		x.receiver.Receive(now, (*[mad.Size]byte)(m.Data), x.keep)
		s.follow(x, now)
	case a.isPacket(m.Data) && packetType(m.Data) != mad.RMPPTypeData:
		s.conn.counters.packets.Add(1)
		s.control(now, x, m)
	case x != nil:
		s.conn.counters.duplicates.Add(1)
	default:
		if x = s.open(now, a, m, key); x == nil {
			return
		}
		x.whole = true
		s.dispatch(x, m.Data)
		m.Data = nil
	}
}

// open begins an exchange if the agent serves the method and has room.
func (s *state) open(now time.Time, a *Agent, m *port.Message, key exchangeKey) *exchange {
	switch {
	case !a.serves.Has(mad.Method(m.Data[mad.OffMethod])):
		s.conn.counters.foreign.Add(1)
		return nil
	case a.busy >= a.reg.Queue || a.tooLong(m.Data):
		s.conn.counters.overflows.Add(1)
		return nil
	}
	x := &exchange{key: key, busy: true}
	x.agent, x.peer = a, m.Addr
	x.owner = x
	a.busy++
	s.exchanges[key] = x
	return x
}

// control handles an ACK, STOP or ABORT of the requester.
func (s *state) control(now time.Time, x *exchange, m *port.Message) {
	pkt := (*[mad.Size]byte)(m.Data)
	switch {
	case x == nil || x.sender == nil && x.receiver == nil:
		s.conn.counters.late.Add(1)
		return
	case x.forSender(m.Data):
		x.sender.Receive(now, pkt)
	case x.receiver != nil:
		x.receiver.Receive(now, pkt, x.keep)
	}
	s.follow(x, now)
}

// keep takes payload from the receiver.
func (x *exchange) keep(payload []byte) {
	if x.got == nil {
		x.got = append(x.got, x.receiver.Header()...)
	}
	x.got = append(x.got, payload...)
}

// rang is the alarm of an exchange.
func (x *exchange) rang(s *state, now time.Time) { s.follow(x, now) }

// follow follows the RMPP machines of an exchange after something happened.
func (s *state) follow(x *exchange, now time.Time) {
	if err := s.pump(&x.transfer, now); err != nil {
		s.abort(&x.transfer, now, mad.RMPPStatusUnspecified)
		s.replied(x, err)
	}
	if x.receiver != nil && !x.whole {
		if done, err := x.receiver.Done(); done {
			x.whole = true
			s.arrived(x, err)
		}
	}
	if x.sender != nil {
		if done, err := x.sender.Done(); done {
			s.replied(x, err)
		}
	}
	at := x.deadline()
	if x.receiver != nil && !x.whole && at.IsZero() {
		s.idle(x) // it was not a first segment
	}
	s.alarms.set(&x.alarm, at)
	if at.IsZero() && !x.busy {
		delete(s.exchanges, x.key)
	}
}

// arrived hands on a request that has come in segments, or forgets it.
func (s *state) arrived(x *exchange, err error) {
	if err != nil {
		s.conn.counters.transfersBad.Add(1)
		s.idle(x)
		return
	}
	s.conn.counters.transfersIn.Add(1)
	if x.got == nil {
		x.got = append(x.got, x.receiver.Header()...)
	}
	s.dispatch(x, x.got)
}

// dispatch queues a request for a worker. There is room: jobs is as long as the
// number of busy exchanges.
func (s *state) dispatch(x *exchange, data []byte) {
	x.got = nil
	s.conn.counters.served.Add(1)
	x.agent.jobs <- &Incoming{Addr: x.peer, Data: data, exchange: x}
}

// idle ends what counts for Queue.
func (s *state) idle(x *exchange) {
	x.busy = false
	x.got = nil
	x.agent.busy--
}

// replyLong starts a long reply in segments.
func (s *state) replyLong(x *exchange, now time.Time, msg []byte, done chan error) {
	if other := s.exchanges[x.key]; other != nil && other != x {
		done <- fmt.Errorf("%w: the request has come again after its handler had returned", port.ErrDuplicateTID)
		return
	}
	cfg := s.conn.senderConfig()
	if x.receiver != nil {
		cfg.FirstWindow = x.receiver.Granted()
	}
	sender, err := rmpp.NewSender(msg, cfg)
	if err != nil {
		done <- err
		return
	}
	s.exchanges[x.key] = x
	x.sender, x.result = sender, done
	s.follow(x, now)
}

// work is a worker: it calls the handler for one request after the other.
func (a *Agent) work() {
	for in := range a.jobs {
		if a.ctx.Err() != nil {
			continue // closed: what is queued is forgotten
		}
		a.reg.Serve(in)
		a.conn.do(func(now time.Time) { a.conn.state.served(in.exchange, now) })
	}
}

// served is called when a handler has returned.
func (s *state) served(x *exchange, now time.Time) {
	s.idle(x)
	if s.exchanges[x.key] == x {
		s.follow(x, now)
	}
}
