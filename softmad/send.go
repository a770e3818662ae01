package softmad

import (
	"encoding/binary"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// minSend is the shortest MAD that user_mad accepts, in every class
// (user_mad.c, ib_umad_write: IB_MGMT_RMPP_HDR).
const minSend = mad.OffRMPPData

// send is a MAD that has not ended: it waits for its response, or it is an RMPP
// message under way.
type send struct {
	timer
	agent    *agent
	key      sendKey
	next     *send // with the same key
	response bool
	addr     mad.AddressVector
	pkey     mad.PKey
	timeout  time.Duration // 0: no response is waited for
	retries  int           // as asked for
	left     int           // still to do
	mad      [mad.Size]byte
	sender   *rmpp.Sender // of a message with segments
	acked    bool         // all segments are acknowledged
}

// sendKey is what sends are matched by first.
type sendKey struct {
	tid   uint64
	class mad.Class
}

func keyOf(b []byte) sendKey {
	return sendKey{binary.BigEndian.Uint64(b[mad.OffTID:]), mad.Class(b[mad.OffClass])}
}

// send takes a message from a file, with the checks of user_mad.c
// (ib_umad_write) and mad.c (ib_create_send_mad, ib_post_send_mad) in their
// order.
func (c *core) send(now time.Time, f *file, m *port.Message) error {
	if len(m.Data) < minSend {
		return refuse(port.ErrInvalid, "%d bytes: a MAD of any class is sent with at least %d", len(m.Data), minSend)
	}
	if m.Agent >= port.MaxAgents {
		return refuse(port.ErrInvalid, "agent %d: ids are below %d", m.Agent, port.MaxAgents)
	}
	if m.Timeout < 0 || m.Retries < 0 {
		return refuse(port.ErrInvalid, "negative timeout %v or retries %d", m.Timeout, m.Retries)
	}
	a := f.slots[m.Agent]
	if a == nil {
		return refuse(port.ErrNoAgent, "no agent is registered in slot %d", m.Agent)
	}
	class := mad.Class(m.Data[mad.OffClass])
	pkey, err := c.checkAddress(&m.Addr, class)
	if err != nil {
		return err
	}
	if h := mad.ClassHeaderLen(class); len(m.Data) < h {
		return refuse(port.ErrInvalid, "%d bytes: MADs of class %#02x have a header of %d", len(m.Data), uint8(class), h)
	}
	active := rmppActive(m.Data)
	segments := active && c.kernelRMPP(a)
	if len(m.Data) > mad.Size && !segments {
		return refuse(port.ErrInvalid, "%d bytes: more than %d need an agent with kernel RMPP and the RMPP Active flag",
			len(m.Data), mad.Size)
	}

	s := c.newSend()
	*s = send{
		agent: a, addr: m.Addr, pkey: pkey,
		timeout: roundUp(m.Timeout), retries: m.Retries, left: m.Retries,
		response: mad.IsResponse(m.Data),
	}
	s.owner = s
	copy(s.mad[:], m.Data)
	if !s.response && !f.kernel {
		binary.BigEndian.PutUint32(s.mad[mad.OffTID:], a.hiTID)
	}
	s.key = keyOf(s.mad[:])
	// A kernel-RMPP agent copies an inactive MAD from its 36th byte on.
	if c.kernelRMPP(a) && mad.HasRMPP(class) && !active {
		clear(s.mad[mad.OffRMPP:mad.OffRMPPData])
	}
	// Each segment of a user's RMPP carries the same transaction id.
	if duplicate := f.isDuplicate(s); duplicate && (segments || !active) {
		return refuse(port.ErrDuplicateTID, "transaction id %#x of class %#02x is in flight", s.key.tid, uint8(class))
	}
	if a.reg.RMPP != port.RMPPNone && !mad.HasRMPP(class) {
		return refuse(port.ErrInvalid, "an agent with RMPP cannot send class %#02x, which has none", uint8(class))
	}
	if class == mad.ClassSubnDirected {
		if err := checkRoute(&s.mad); err != nil {
			return err
		}
	}

	if segments {
		return c.sendSegments(now, s, m.Data)
	}
	c.transmit(s.addr, s.pkey, &s.mad)
	if s.timeout == 0 {
		c.reuse(s)
		return nil
	}
	f.add(s)
	c.timers.set(&s.timer, now.Add(s.timeout))
	return nil
}

// maxFree is how many sends are kept to be used again: many requests in flight
// would otherwise be most of what a program allocates.
const maxFree = 256

// newSend gives a send that is in no table, of any content.
func (c *core) newSend() *send {
	last := len(c.free) - 1
	if last < 0 {
		return new(send)
	}
	s := c.free[last]
	c.free = c.free[:last]
	return s
}

// reuse takes a send back that has ended.
func (c *core) reuse(s *send) {
	if len(c.free) < maxFree {
		s.agent, s.next, s.sender = nil, nil, nil
		c.free = append(c.free, s)
	}
}

// roundUp gives the whole milliseconds that the kernel's header can say.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// checkAddress looks up what the address names in the tables of the port.
func (c *core) checkAddress(to *mad.AddressVector, class mad.Class) (mad.PKey, error) {
	if c.info.LinkLayer == port.LinkEthernet && !to.HasGRH {
		return 0, refuse(port.ErrInvalid, "no GRH: an Ethernet port cannot address a LID")
	}
	if i := int(to.GRH.GIDIndex); to.HasGRH && (i >= len(c.info.GIDs) || c.info.GIDs[i].IsZero()) {
		return 0, refuse(port.ErrInvalid, "the port has no GID at index %d", i)
	}
	if isSMP(class) {
		return mad.DefaultPKey, nil // SMPs are exempt from P_Key checks (IBA 10.9)
	}
	i := int(to.PKeyIndex)
	if i == 0 && len(c.info.PKeys) == 0 {
		return 0, nil // a carrier without partitions
	}
	if i >= len(c.info.PKeys) || c.info.PKeys[i] == 0 {
		return 0, refuse(port.ErrInvalid, "the port has no P_Key at index %d", i)
	}
	return c.info.PKeys[i], nil
}

// checkRoute refuses a directed-route SMP whose path cannot be (smi.c,
// smi_handle_dr_smp_send). Walking the path is the carrier's.
func checkRoute(b *[mad.Size]byte) error {
	ptr, count := b[offHopPointer], b[offHopCount]
	if count > mad.MaxDirectedHops || ptr > count+1 {
		return refuse(port.ErrInvalid, "directed route with hop pointer %d and hop count %d: at most %d hops",
			ptr, count, mad.MaxDirectedHops)
	}
	return nil
}

// isDuplicate tells whether a send would clash with an unfinished one of the
// file (user_mad.c, is_duplicate): of the same transaction id and class, two
// requests always do, two responses if they go to the same place.
func (f *file) isDuplicate(s *send) bool {
	for o := f.sends[s.key]; o != nil; o = o.next {
		if o.response == s.response && (!s.response || samePlace(&o.addr, &s.addr)) {
			return true
		}
	}
	return false
}

// samePlace compares destinations by GID if both have one, by LID if none has.
func samePlace(a, b *mad.AddressVector) bool {
	if a.HasGRH != b.HasGRH {
		return false
	}
	if a.HasGRH {
		return a.GRH.GID == b.GRH.GID
	}
	return a.LID == b.LID
}

// match finds the send of an agent that a message answers (mad.c,
// ib_find_send_mad). The addresses of directed-route SMPs do not count.
func (c *core) match(a *agent, from *mad.AddressVector, data []byte) *send {
	response := mad.IsResponse(data)
	for s := a.file.sends[keyOf(data)]; s != nil; s = s.next {
		if s.agent == a && (s.key.class == mad.ClassSubnDirected ||
			s.response != response && c.plausible(s, from)) {
			return s
		}
	}
	return nil
}

// plausible compares addresses (mad.c, rcv_has_same_gid). The sender of a
// response may be another LID or GID than the request went to, so there only
// the own side of the address counts; what answers a response, an ACK, must
// come from where the response went.
func (c *core) plausible(s *send, from *mad.AddressVector) bool {
	switch {
	case s.response || s.addr.HasGRH != from.HasGRH:
		return samePlace(&s.addr, from)
	case s.addr.HasGRH:
		return c.gid(s.addr.GRH.GIDIndex) == c.gid(from.GRH.GIDIndex)
	}
	mask := uint8(1)<<c.info.LMC - 1
	return (s.addr.PathBits^from.PathBits)&mask == 0
}

func (c *core) gid(index uint8) (g mad.GID) {
	if int(index) < len(c.info.GIDs) {
		g = c.info.GIDs[index]
	}
	return g
}

// add makes a send one of the unfinished.
func (f *file) add(s *send) {
	s.next = f.sends[s.key]
	f.sends[s.key] = s
}

// finish ends a send without a message.
func (c *core) finish(s *send) {
	c.timers.stop(&s.timer)
	f := s.agent.file
	if f.sends[s.key] == s {
		if s.next == nil {
			delete(f.sends, s.key)
		} else {
			f.sends[s.key] = s.next
		}
		return
	}
	for o := f.sends[s.key]; o != nil; o = o.next {
		if o.next == s {
			o.next = s.next
			return
		}
	}
}

// sendsOf lists the unfinished sends of an agent.
func (f *file) sendsOf(a *agent) (sends []*send) {
	for _, s := range f.sends {
		for ; s != nil; s = s.next {
			if s.agent == a {
				sends = append(sends, s)
			}
		}
	}
	return sends
}

// expire sends again or gives up (mad.c, timeout_sends and retry_send). A
// message whose segments were all acknowledged is not sent again.
func (s *send) expire(c *core, now time.Time) {
	if s.sender != nil && !s.acked {
		c.pumpSender(now, s)
		return
	}
	if s.left == 0 {
		c.timeOut(s)
		return
	}
	s.left--
	c.stats.Retransmitted++
	c.transmit(s.addr, s.pkey, &s.mad)
	c.timers.set(&s.timer, now.Add(s.timeout))
}

// timeOut ends a send with a message of its first bytes (user_mad.c,
// send_handler).
func (c *core) timeOut(s *send) {
	c.finish(s)
	c.stats.TimedOut++
	f := s.agent.file
	p := f.queue.push()
	p.agent, p.timedOut, p.timeout, p.retries, p.addr = s.agent.id, true, s.timeout, s.retries, s.addr
	p.n, p.long = copy(p.mad[:], s.mad[:mad.HeaderSize]), nil
	f.ready.Signal()
}
