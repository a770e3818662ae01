package agents

import (
	"container/list"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// The steps of a request, in errors.
const (
	stepStart    = "start"
	stepWindow   = "wait for a place in the window"
	stepSend     = "send"
	stepAnswer   = "wait for the answer"
	stepTransfer = "receive the answer"
	stepConsume  = "consume the answer"
)

type phase uint8

const (
	queued    phase = iota // for a place in the window
	sending                // segments of a long request
	awaiting               // the answer, or its first segment
	receiving              // further segments
	over                   // remembered for the sake of segments that come again
)

// call is a request under way. It belongs to the state.
type call struct {
	transfer
	alarm
	to       mad.AddressVector
	data     []byte // a copy of the request's, with the transaction id in it
	long     bool   // data goes by RMPP
	answered bool   // an answer is expected
	mayLong  bool   // the answer may be RMPP
	timeout  time.Duration
	idle     time.Duration // the longest pause in an answer
	retries  int           // retransmissions left to do here
	carrier  int           // retransmissions left to the carrier

	phase  phase
	place  *list.Element // in agent.waiting
	tid    uint32        // of the newest transmission; before the first one, the Request's
	sends  int           // transmissions done here
	result chan result

	got      []byte    // what the receiver has yielded, without a pipe
	pipe     *pipe     // or nil
	streamed *Response // headers of what goes through the pipe
	overflow bool      // of the pipe
}

type result struct {
	response *Response
	err      error
}

// start begins a request, when the window of its agent allows.
func (s *state) start(c *call, now time.Time) {
	a := c.agent
	switch {
	case s.err != nil:
		s.finish(c, now, result{err: c.failure(stepStart, s.err)})
	case a.closed:
		s.finish(c, now, result{err: c.failure(stepStart, port.ErrClosed)})
	case a.waiting.Len() == 0 && a.hasRoom():
		a.inFlight++
		s.transmit(c, now)
	default:
		c.place = a.waiting.PushBack(c)
	}
}

// hasRoom tells whether one more request may be in flight.
func (a *Agent) hasRoom() bool { return a.reg.Window <= 0 || a.inFlight < a.reg.Window }

// admit lets requests into the window, first come first served.
func (s *state) admit(a *Agent, now time.Time) {
	if a.admitting {
		return // a request that failed at once comes back here
	}
	a.admitting = true
	for a.waiting.Len() > 0 && !a.closed && a.hasRoom() {
		c := a.waiting.Remove(a.waiting.Front()).(*call)
		c.place = nil
		a.inFlight++
		s.transmit(c, now)
	}
	a.admitting = false
}

// transmit sends a request, at first or again, with a new transaction id.
func (s *state) transmit(c *call, now time.Time) {
	if _, used := s.calls[c.tid]; used && c.sends == 0 && c.tid != 0 {
		s.finish(c, now, result{err: c.failure(stepSend, port.ErrDuplicateTID)})
		c.agent.inFlight-- // it was never one of calls
		return
	}
	c.sends++
	if c.sends > 1 || c.tid == 0 {
		c.tid = s.newTID()
	}
	s.calls[c.tid] = c
	binary.BigEndian.PutUint32(c.data[mad.OffTID+4:], c.tid)
	c.peer, c.sender, c.receiver, c.got = c.to, nil, nil, nil

	if c.long && c.agent.reg.RMPP == port.RMPPUser {
		cfg := s.conn.senderConfig()
		if c.answered {
			cfg.ResponseWindow = rmpp.DefaultFirstWindow
		}
		sender, err := rmpp.NewSender(c.data, cfg)
		if err != nil {
			s.fail(c, now, stepSend, err)
			return
		}
		c.sender = sender
		c.phase = sending
		s.advance(c, now)
		return
	}

	m := port.Message{Retries: c.carrier, Addr: c.to, Data: c.data}
	wait := s.conn.cfg.Grace
	if c.answered {
		m.Timeout = c.timeout
		if c.agent.reg.RMPP == port.RMPPKernel && c.mayLong {
			m.Timeout += c.agent.reg.Transfer
		}
		wait += m.Timeout
	}
	if c.long { // the retries are for segments; all of them take an unknown time
		wait += c.agent.reg.Transfer
	} else {
		wait += m.Timeout * time.Duration(c.carrier)
	}
	if err := s.send(c.agent, m); err != nil {
		s.fail(c, now, stepSend, err)
		return
	}
	if !c.answered {
		s.finish(c, now, result{})
		return
	}
	c.phase = awaiting
	s.alarms.set(&c.alarm, now.Add(wait))
}

// timedOut handles the carrier's report that no response came.
func (s *state) timedOut(now time.Time, m *port.Message) {
	if mad.IsResponse(m.Data) { // a long reply in mode RMPPKernel was not acknowledged
		s.conn.counters.transfersBad.Add(1)
		return
	}
	c := s.calls[lowTID(m.Data)]
	if c != nil && c.agent.id == m.Agent && c.phase == awaiting {
		s.again(c, now, stepAnswer, ErrTimeout)
	}
}

// again sends a request again if it may be, after what ended with a time-out.
func (s *state) again(c *call, now time.Time, step string, why error) {
	if c.retries > 0 && c.streamed == nil { // what was consumed cannot be taken back
		c.retries--
		s.conn.counters.resent.Add(1)
		delete(s.calls, c.tid)
		s.transmit(c, now)
		return
	}
	s.conn.counters.timedOut.Add(1)
	s.fail(c, now, step, why)
}

// answer handles a response from the Port.
func (s *state) answer(now time.Time, a *Agent, m *port.Message) {
	c := s.calls[lowTID(m.Data)]
	switch {
	case c == nil:
		s.stray(m.Data)
	case c.agent != a || m.Data[mad.OffClass] != c.data[mad.OffClass] || attribute(m.Data) != attribute(c.data):
		s.conn.counters.foreign.Add(1)
	case a.isPacket(m.Data):
		s.packet(now, c, m)
	case c.phase == over || c.phase == receiving:
		s.conn.counters.late.Add(1)
	default:
		s.whole(now, c, m)
	}
}

// whole handles an answer that the Port delivers in one piece.
func (s *state) whole(now time.Time, c *call, m *port.Message) {
	if c.agent.tooLong(m.Data) {
		s.fail(c, now, stepTransfer, fmt.Errorf("%w: %d bytes, the limit is %d of data", ErrTooLong, len(m.Data), c.agent.reg.MaxMessage))
		return
	}
	c.sender = nil // an early answer ends the request
	r := &Response{Addr: m.Addr, Data: m.Data}
	m.Data = nil
	s.finish(c, now, result{response: r})
}

// packet handles an RMPP packet of the peer.
func (s *state) packet(now time.Time, c *call, m *port.Message) {
	s.conn.counters.packets.Add(1)
	pkt := (*[mad.Size]byte)(m.Data)
	if c.forSender(m.Data) {
		c.sender.Receive(now, pkt)
	} else {
		if c.receiver == nil {
			if packetType(m.Data) == mad.RMPPTypeACK || c.phase == over {
				s.conn.counters.late.Add(1)
				return
			}
			c.receiver = rmpp.NewReceiver(c.receiverConfig())
		}
		c.peer = m.Addr
		c.receiver.Receive(now, pkt, c.keep)
	}
	s.advance(c, now)
}

// receiverConfig has the limits of the answer.
func (c *call) receiverConfig() rmpp.ReceiverConfig {
	cfg := c.agent.conn.receiverConfig(c.agent.reg.MaxMessage)
	if c.pipe != nil {
		cfg.MaxData = math.MaxInt // the pipe has its own limit
	}
	setDefault(&cfg.Timeout, DefaultReceiveTimeout)
	cfg.IdleTimeout = c.idle
	return cfg
}

// keep takes payload from the receiver.
func (c *call) keep(payload []byte) {
	if c.pipe != nil {
		if c.streamed == nil {
			c.streamed = c.received()
		}
		c.overflow = c.overflow || !c.pipe.write(c.streamed, payload)
		return
	}
	if c.got == nil {
		c.got = append(c.got, c.receiver.Header()...)
	}
	c.got = append(c.got, payload...)
}

// advance follows the RMPP machines of a request after something happened.
func (s *state) advance(c *call, now time.Time) {
	err := s.pump(&c.transfer, now)
	switch {
	case c.phase == over:
		s.remember(c)
		return
	case err != nil:
		s.abort(&c.transfer, now, mad.RMPPStatusUnspecified)
		s.fail(c, now, stepSend, err)
		return
	case c.overflow:
		s.abort(&c.transfer, now, mad.RMPPStatusResourcesExhausted)
		s.fail(c, now, stepConsume, fmt.Errorf("%w: more than %d bytes were not yet consumed", ErrTooLong, c.pipe.limit))
		return
	}
	if c.receiver != nil {
		done, err := c.receiver.Done()
		switch {
		case err != nil:
			s.aborted(c, now, stepTransfer, err)
			return
		case done:
			s.conn.counters.transfersIn.Add(1)
			s.finish(c, now, result{response: c.received()})
			return
		case !c.receiver.Deadline().IsZero(): // the first segment is there
			c.phase = receiving
			// Each segment moves the deadline. An alarm that rings early is set again
			// when it does, which costs less than to move it every time.
			if at := c.receiver.Deadline(); c.pos == 0 || at.Before(c.at) {
				s.alarms.set(&c.alarm, at)
			}
			return
		}
	}
	if c.phase == sending {
		done, err := c.sender.Done()
		switch {
		case err != nil:
			s.aborted(c, now, stepSend, err)
		case !done:
			s.alarms.set(&c.alarm, c.sender.Deadline())
		default:
			s.conn.counters.transfersOut.Add(1)
			if !c.answered {
				s.finish(c, now, result{})
				return
			}
			c.phase = awaiting
			s.alarms.set(&c.alarm, now.Add(c.timeout))
		}
	}
}

// received gives the answer that has arrived in segments.
func (c *call) received() *Response {
	r := &Response{Addr: c.peer, Data: c.got}
	if r.Data == nil {
		r.Data = append(r.Data, c.receiver.Header()...)
	}
	return r
}

// aborted handles the early end of a transfer.
func (s *state) aborted(c *call, now time.Time, step string, err error) {
	s.conn.counters.transfersBad.Add(1)
	var abort *rmpp.AbortError
	switch {
	case errors.As(err, &abort) && abort.Local && abort.Timeout():
		s.again(c, now, step, fmt.Errorf("%w: %w", ErrTimeout, err))
	case errors.Is(err, rmpp.ErrTooBig):
		s.fail(c, now, step, fmt.Errorf("%w: %w", ErrTooLong, err))
	default:
		s.fail(c, now, step, err)
	}
}

// rang is the alarm of a request.
func (c *call) rang(s *state, now time.Time) {
	if c.phase == awaiting {
		s.again(c, now, stepAnswer, ErrTimeout)
		return
	}
	s.advance(c, now)
}

// cancel gives up a request for which nobody waits any more.
func (s *state) cancel(c *call, now time.Time) {
	if c.phase != over {
		s.abort(&c.transfer, now, mad.RMPPStatusUnspecified)
		s.finish(c, now, result{})
	}
}

func (s *state) fail(c *call, now time.Time, step string, why error) {
	s.finish(c, now, result{err: c.failure(step, why)})
}

// failure makes the error of a request.
func (c *call) failure(step string, why error) error {
	if c.sends > 1 {
		step = fmt.Sprintf("%s (sent %d times)", step, c.sends)
	} else if step == stepAnswer && c.carrier > 0 && !c.long {
		step = fmt.Sprintf("%s (sent %d times)", step, 1+c.carrier)
	}
	return newError(c.data, c.to, step, why)
}

// finish ends a request, once.
func (s *state) finish(c *call, now time.Time, r result) {
	if c.phase == over {
		return
	}
	if r.response != nil {
		s.conn.counters.answered.Add(1)
	}
	c.phase = over
	c.result <- r
	c.got, c.pipe = nil, nil
	if c.place != nil {
		c.agent.waiting.Remove(c.place)
		c.place = nil
		return
	}
	if c.sends > 0 {
		c.agent.inFlight--
		s.remember(c)
		s.admit(c.agent, now)
	}
}

// remember keeps a request that is over as long as its RMPP machines may have
// to answer packets that come again.
func (s *state) remember(c *call) {
	at := c.deadline()
	s.alarms.set(&c.alarm, at)
	if at.IsZero() {
		delete(s.calls, c.tid)
	}
}
