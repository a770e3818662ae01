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

// call is a request under way. The run loop owns it.
type call struct {
	transfer
	alarm
	to       mad.AddressVector
	data     []byte // a copy of the request's, with the transaction id in it
	long     bool   // data goes by RMPP
	answered bool   // an answer is expected
	mayLong  bool   // the answer may be RMPP
	timeout  time.Duration
	retries  int // retransmissions left to do here
	carrier  int // retransmissions left to the carrier

	phase  phase
	place  *list.Element // in agent.waiting
	tid    uint32
	sends  int // transmissions done here
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
func (l *loop) start(c *call, now time.Time) {
	a := c.agent
	switch {
	case l.err != nil:
		l.finish(c, now, result{err: c.failure(stepStart, l.err)})
	case a.closed:
		l.finish(c, now, result{err: c.failure(stepStart, port.ErrClosed)})
	default:
		c.place = a.waiting.PushBack(c)
		l.admit(a, now)
	}
}

// admit lets requests into the window, first come first served.
func (l *loop) admit(a *Agent, now time.Time) {
	if a.admitting {
		return // a request that failed at once comes back here
	}
	a.admitting = true
	for a.waiting.Len() > 0 && !a.closed && (a.reg.Window <= 0 || a.inFlight < a.reg.Window) {
		c := a.waiting.Remove(a.waiting.Front()).(*call)
		c.place = nil
		a.inFlight++
		l.transmit(c, now)
	}
	a.admitting = false
}

// transmit sends a request, at first or again, with a new transaction id.
func (l *loop) transmit(c *call, now time.Time) {
	c.sends++
	c.tid = l.newTID()
	l.calls[c.tid] = c
	binary.BigEndian.PutUint32(c.data[mad.OffTID+4:], c.tid)
	c.peer, c.sender, c.receiver, c.got = c.to, nil, nil, nil

	if c.long && c.agent.reg.RMPP == port.RMPPUser {
		cfg := l.conn.senderConfig()
		if c.answered {
			cfg.ResponseWindow = rmpp.DefaultFirstWindow
		}
		sender, err := rmpp.NewSender(c.data, cfg)
		if err != nil {
			l.fail(c, now, stepSend, err)
			return
		}
		c.sender = sender
		c.phase = sending
		l.advance(c, now)
		return
	}

	m := port.Message{Retries: c.carrier, Addr: c.to, Data: c.data}
	wait := l.conn.cfg.Grace
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
	if err := l.send(c.agent, m); err != nil {
		l.fail(c, now, stepSend, err)
		return
	}
	if !c.answered {
		l.finish(c, now, result{})
		return
	}
	c.phase = awaiting
	l.alarms.set(&c.alarm, now.Add(wait))
}

// timedOut handles the carrier's report that no response came.
func (l *loop) timedOut(now time.Time, m *port.Message) {
	if mad.IsResponse(m.Data) { // a long reply in mode RMPPKernel was not acknowledged
		l.conn.counters.transfersBad.Add(1)
		return
	}
	c := l.calls[lowTID(m.Data)]
	if c != nil && c.agent.id == m.Agent && c.phase == awaiting {
		l.again(c, now, stepAnswer, ErrTimeout)
	}
}

// again sends a request again if it may be, after what ended with a time-out.
func (l *loop) again(c *call, now time.Time, step string, why error) {
	begun := c.pipe != nil && c.phase == receiving // what was consumed cannot be taken back
	if c.retries > 0 && !begun {
		c.retries--
		l.conn.counters.resent.Add(1)
		delete(l.calls, c.tid)
		l.transmit(c, now)
		return
	}
	l.conn.counters.timedOut.Add(1)
	l.fail(c, now, step, why)
}

// answer handles a response from the Port.
func (l *loop) answer(now time.Time, a *Agent, m *port.Message) {
	c := l.calls[lowTID(m.Data)]
	switch {
	case c == nil:
		l.stray(m.Data)
	case c.agent != a || m.Data[mad.OffClass] != c.data[mad.OffClass] || attribute(m.Data) != attribute(c.data):
		l.conn.counters.foreign.Add(1)
	case a.isPacket(m.Data):
		l.packet(now, c, m)
	case c.phase == over || c.phase == receiving:
		l.conn.counters.late.Add(1)
	default:
		l.whole(now, c, m)
	}
}

// whole handles an answer that the Port delivers in one piece.
func (l *loop) whole(now time.Time, c *call, m *port.Message) {
	if c.agent.tooLong(m.Data) {
		l.fail(c, now, stepTransfer, fmt.Errorf("%w: %d bytes, the limit is %d of data", ErrTooLong, len(m.Data), c.agent.reg.MaxMessage))
		return
	}
	c.sender = nil // an early answer ends the request
	r := &Response{Addr: m.Addr, Data: m.Data}
	m.Data = nil
	l.finish(c, now, result{response: r})
}

// packet handles an RMPP packet of the peer.
func (l *loop) packet(now time.Time, c *call, m *port.Message) {
	l.conn.counters.packets.Add(1)
	pkt := (*[mad.Size]byte)(m.Data)
	if c.forSender(m.Data) {
		c.sender.Receive(now, pkt)
	} else {
		if c.receiver == nil {
			if packetType(m.Data) == mad.RMPPTypeACK || c.phase == over {
				l.conn.counters.late.Add(1)
				return
			}
			maxData := c.agent.reg.MaxMessage
			if c.pipe != nil {
				maxData = math.MaxInt // the pipe has its own limit
			}
			c.receiver = rmpp.NewReceiver(l.conn.receiverConfig(maxData))
		}
		c.peer = m.Addr
		c.receiver.Receive(now, pkt, c.keep)
	}
	l.advance(c, now)
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
func (l *loop) advance(c *call, now time.Time) {
	err := l.pump(&c.transfer, now)
	switch {
	case c.phase == over:
		l.remember(c)
		return
	case err != nil:
		l.abort(&c.transfer, now, mad.RMPPStatusUnspecified)
		l.fail(c, now, stepSend, err)
		return
	case c.overflow:
		l.abort(&c.transfer, now, mad.RMPPStatusResourcesExhausted)
		l.fail(c, now, stepConsume, fmt.Errorf("%w: more than %d bytes were not yet consumed", ErrTooLong, c.pipe.limit))
		return
	}
	if c.receiver != nil {
		done, err := c.receiver.Done()
		switch {
		case err != nil:
			l.aborted(c, now, stepTransfer, err)
			return
		case done:
			l.conn.counters.transfersIn.Add(1)
			l.finish(c, now, result{response: c.received()})
			return
		case !c.receiver.Deadline().IsZero(): // the first segment is there
			c.phase = receiving
			l.alarms.set(&c.alarm, c.receiver.Deadline())
			return
		}
	}
	if c.phase == sending {
		done, err := c.sender.Done()
		switch {
		case err != nil:
			l.aborted(c, now, stepSend, err)
		case !done:
			l.alarms.set(&c.alarm, c.sender.Deadline())
		default:
			l.conn.counters.transfersOut.Add(1)
			if !c.answered {
				l.finish(c, now, result{})
				return
			}
			c.phase = awaiting
			l.alarms.set(&c.alarm, now.Add(c.timeout))
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
func (l *loop) aborted(c *call, now time.Time, step string, err error) {
	l.conn.counters.transfersBad.Add(1)
	var abort *rmpp.AbortError
	switch {
	case errors.As(err, &abort) && abort.Local && abort.Timeout():
		l.again(c, now, step, fmt.Errorf("%w: %w", ErrTimeout, err))
	case errors.Is(err, rmpp.ErrTooBig):
		l.fail(c, now, step, fmt.Errorf("%w: %w", ErrTooLong, err))
	default:
		l.fail(c, now, step, err)
	}
}

// rang is the alarm of a request.
func (l *loop) rang(c *call, now time.Time) {
	if c.phase == awaiting {
		l.again(c, now, stepAnswer, ErrTimeout)
		return
	}
	l.advance(c, now)
}

// cancel gives up a request for which nobody waits any more.
func (l *loop) cancel(c *call, now time.Time) {
	if c.phase != over {
		l.abort(&c.transfer, now, mad.RMPPStatusUnspecified)
		l.finish(c, now, result{})
	}
}

func (l *loop) fail(c *call, now time.Time, step string, why error) {
	l.finish(c, now, result{err: c.failure(step, why)})
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
func (l *loop) finish(c *call, now time.Time, r result) {
	if c.phase == over {
		return
	}
	if r.response != nil {
		l.conn.counters.answered.Add(1)
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
		l.remember(c)
		l.admit(c.agent, now)
	}
}

// remember keeps a request that is over as long as its RMPP machines may have
// to answer packets that come again.
func (l *loop) remember(c *call) {
	at := c.deadline()
	l.alarms.set(&c.alarm, at)
	if at.IsZero() {
		delete(l.calls, c.tid)
	}
}
