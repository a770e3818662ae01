package softmad

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// transfer is an RMPP message coming in for an agent with kernel RMPP. It stays
// for a while after its end, to acknowledge what comes again.
type transfer struct {
	timer
	agent    *agent
	key      transferKey
	from     mad.AddressVector
	pkey     mad.PKey
	receiver *rmpp.Receiver
	yield    func([]byte)
	buf      []byte // headers of the first segment once, then data
	over     bool   // delivered or aborted
}

// transferKey is what segments belong together by (mad_rmpp.c, find_rmpp_recv).
type transferKey struct {
	tid     uint64
	qpn     uint32
	lid     mad.LID
	class   mad.Class
	version uint8
	method  uint8
}

func transferKeyOf(from *mad.AddressVector, b []byte) transferKey {
	return transferKey{
		tid:     binary.BigEndian.Uint64(b[mad.OffTID:]),
		qpn:     from.QPN,
		lid:     from.LID,
		class:   mad.Class(b[mad.OffClass]),
		version: b[mad.OffClassVersion],
		method:  b[mad.OffMethod],
	}
}

// sendSegments starts a message of an agent with kernel RMPP (mad_rmpp.c,
// ib_send_rmpp_mad). Retries count anew with each segment acknowledged. If a
// response is waited for, the transfer is double-sided and grants it one segment.
func (c *core) sendSegments(now time.Time, s *send, data []byte) error {
	msg := slices.Clone(data)
	copy(msg, s.mad[:mad.HeaderSize]) // transaction id
	cfg := rmpp.SenderConfig{
		Timeout: min(s.timeout, rmpp.DefaultSegmentTimeout),
		Retries: s.retries,
	}
	if s.timeout > 0 {
		cfg.ResponseWindow = 1
	}
	request := transferKeyOf(&s.addr, msg)
	request.method &^= mad.ResponseBit
	if t := s.agent.transfers[request]; s.response && t != nil {
		cfg.FirstWindow = t.receiver.Granted()
	}
	sender, err := rmpp.NewSender(msg, cfg)
	if err != nil {
		return refuse(port.ErrInvalid, "%v", err)
	}
	s.sender = sender
	s.agent.file.add(s)
	c.pumpSender(now, s)
	return nil
}

// pumpSender transmits what a sender has and follows its state. When all
// segments are acknowledged the response is waited for once, whatever retries
// are left (mad_rmpp.c, ib_retry_rmpp). Without an ACK the message times out,
// even if no response was asked for; a STOP or ABORT of the peer ends it
// without a message (IB_WC_REM_ABORT_ERR is no time-out to user_mad).
func (c *core) pumpSender(now time.Time, s *send) {
	var pkt [mad.Size]byte
	for s.sender.Next(now, &pkt) {
		c.transmit(s.addr, s.pkey, &pkt)
	}
	done, err := s.sender.Done()
	switch {
	case !done:
		c.timers.set(&s.timer, s.sender.Deadline())
	case s.acked:
	case err == nil && s.timeout > 0:
		s.acked, s.left = true, 0
		c.timers.set(&s.timer, now.Add(s.timeout))
	case err == nil:
		c.finish(s)
	case gaveUp(err):
		c.timeOut(s)
	default:
		c.stats.Aborted++
		c.finish(s)
	}
}

// gaveUp tells whether a sender ended because no ACK came.
func gaveUp(err error) bool {
	abort, ok := err.(*rmpp.AbortError)
	return ok && abort.Local && abort.Status == mad.RMPPStatusTooManyRetries
}

// receiveRMPP takes a packet of a transfer for an agent with kernel RMPP
// (mad_rmpp.c, ib_process_rmpp_recv_wc). The kernel answers version 0 with an
// ABORT; here it is only dropped, since who sends it has no RMPP and takes what
// it gets for a request.
func (c *core) receiveRMPP(now time.Time, a *agent, w *Wire) {
	if !rmpp.IsActive(w.MAD[:]) {
		c.stats.Invalid++
		return
	}
	h := rmpp.ParseHeader(&w.MAD)
	s := c.match(a, &w.Addr, w.MAD[:])
	if h.RMPPType != mad.RMPPTypeData && s != nil && s.sender != nil && (!s.acked || h.RMPPType == mad.RMPPTypeACK) {
		s.sender.Receive(now, &w.MAD)
		c.pumpSender(now, s)
		return
	}
	// A response that nobody waits for shall not take memory (mad.c, since 7.2
	// and in the stable kernels).
	if h.RMPPType == mad.RMPPTypeData && s == nil && mad.IsResponse(w.MAD[:]) {
		c.stats.Unmatched++
		return
	}
	k := transferKeyOf(&w.Addr, w.MAD[:])
	t := a.transfers[k]
	if t == nil {
		if h.RMPPType != mad.RMPPTypeData || h.Data1 != 1 && h.RMPPFlags&mad.RMPPFlagFirst == 0 {
			c.stats.Unmatched++
			return
		}
		t = c.newTransfer(a, k, w)
	}
	t.receiver.Receive(now, &w.MAD, t.yield)
	c.pumpTransfer(now, t)
}

func (c *core) newTransfer(a *agent, k transferKey, w *Wire) *transfer {
	t := &transfer{
		agent: a, key: k, from: w.Addr, pkey: w.PKey,
		receiver: rmpp.NewReceiver(rmpp.ReceiverConfig{MaxData: c.cfg.MaxMessage}),
	}
	t.owner = t
	t.yield = func(payload []byte) {
		if t.buf == nil {
			t.buf = slices.Clone(t.receiver.Header())
		}
		t.buf = append(t.buf, payload...)
	}
	if a.transfers == nil {
		a.transfers = make(map[transferKey]*transfer)
	}
	a.transfers[k] = t
	return t
}

// pumpTransfer transmits what a receiver has, delivers the message when it is
// whole, and forgets the transfer in the end.
func (c *core) pumpTransfer(now time.Time, t *transfer) {
	var pkt [mad.Size]byte
	for t.receiver.Next(now, &pkt) {
		c.transmit(t.from, t.pkey, &pkt)
	}
	if done, err := t.receiver.Done(); done && !t.over {
		t.over = true
		msg := t.buf
		t.buf = nil
		switch {
		case err != nil:
			c.stats.Aborted++
		case msg == nil: // no data
			c.deliver(t.agent, &t.from, slices.Clone(t.receiver.Header()))
		default:
			c.deliver(t.agent, &t.from, msg)
		}
	}
	c.timers.set(&t.timer, t.receiver.Deadline())
	if t.receiver.Deadline().IsZero() {
		delete(t.agent.transfers, t.key)
	}
}

func (t *transfer) expire(c *core, now time.Time) { c.pumpTransfer(now, t) }
