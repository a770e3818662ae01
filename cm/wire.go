package cm

import (
	"time"

	"github.com/ibsm/ibsm/mad"
)

// classVersion is that of the CM class (IBA 12.6.1).
const classVersion = 2

// body is a CM message after the MAD header. All have the same length.
type body = [mad.Size - mad.HeaderSize]byte

// content is a message of the field table.
type content interface{ EncodeTo(*body) }

// received is a CM message that arrived.
type received struct {
	now    time.Time
	from   mad.AddressVector // ready to answer to
	pkey   mad.PKey
	header mad.Header
	data   *body
}

// retry is a sent message that is sent again until it is answered, as ib_mad
// does it for the kernel's CM.
type retry struct {
	msg     Message
	packet  Packet
	timeout time.Duration // of each try
	left    uint8         // tries
}

// encode makes the MAD of a message.
func encode(b *[mad.Size]byte, msg Message, tid uint64, modifier uint32, p content) {
	h := mad.Header{
		BaseVersion: mad.BaseVersion, MgmtClass: mad.ClassComMgt, ClassVersion: classVersion, Method: mad.MethodSend,
		TransactionID: tid, AttributeID: msg.Attribute(), AttributeModifier: modifier,
	}
	h.EncodeTo((*[mad.HeaderSize]byte)(b[:]))
	p.EncodeTo((*body)(b[mad.HeaderSize:]))
}

// answer sends a message to where one came from (cm_alloc_response_msg).
func (m *Machine) answer(r *received, msg Message, tid uint64, p content) {
	out := Packet{Addr: r.from, PKey: r.pkey}
	encode(&out.MAD, msg, tid, 0, p)
	m.stats.Sent[msg]++
	m.out.push(out)
}

// send sends a message of the id to its peer.
func (c *ID) send(msg Message, tid uint64, modifier uint32, p content) {
	c.m.out.push(c.packet(msg, tid, modifier, p))
}

func (c *ID) packet(msg Message, tid uint64, modifier uint32, p content) Packet {
	out := Packet{Addr: c.av.addr, PKey: c.av.pkey}
	encode(&out.MAD, msg, tid, modifier, p)
	c.m.stats.Sent[msg]++
	return out
}

// request sends a message that is answered, at first once and then again after
// each time-out. Without a time-out no answer is waited for.
func (c *ID) request(now time.Time, msg Message, tid uint64, modifier uint32, p content, timeout time.Duration) {
	out := c.packet(msg, tid, modifier, p)
	c.m.out.push(out)
	if timeout == 0 {
		return
	}
	c.pending = &retry{msg: msg, packet: out, timeout: timeout, left: c.maxRetries}
	c.m.timers.set(c, now.Add(timeout))
}

// cancel stops sending again (ib_cancel_mad).
func (c *ID) cancel() {
	if c.pending != nil {
		c.pending = nil
		c.m.timers.stop(c)
	}
}

// expire sends again or gives up what is not answered, or ends timewait.
func (c *ID) expire(now time.Time) {
	p := c.pending
	switch {
	case p == nil:
		c.state = Idle // cm_timewait_handler
		c.m.events.push(Event{Type: EventTimewaitExit, ID: c})
	case p.left > 0:
		p.left--
		c.m.stats.Retries[p.msg]++
		c.m.out.push(p.packet)
		c.m.timers.set(c, now.Add(p.timeout))
	default:
		c.pending = nil
		c.giveUp(now, p.msg)
	}
}

// giveUp ends what waits for an answer in vain (cm_process_send_error).
func (c *ID) giveUp(now time.Time, msg Message) {
	e := Event{ID: c}
	switch msg {
	case REQ:
		e.Type = EventREQError
		c.resetToIdle()
	case REP:
		e.Type = EventREPError
		c.resetToIdle()
	case DREQ:
		e.Type = EventDREQError
		c.enterTimewait(now)
	case SIDRREQ:
		e.Type = EventSIDRREQError
		c.state = Idle
	case LAP:
		e.Type = EventLAPError
		c.lapState = LAPIdle
	}
	c.m.events.push(e)
}

// newTID makes the transaction id of an own request (cm_form_tid).
func (c *ID) newTID() uint64 { return uint64(c.m.cfg.TIDHigh)<<32 | uint64(c.localID) }
