package rmpp

import (
	"fmt"
	"math"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// SenderConfig has the parameters of a Sender. The zero value sends a
// single-sided transfer as the kernel does, without resending.
type SenderConfig struct {
	// Timeout is the wait for an ACK after each transmission. A longer response
	// time that the peer announces in an ACK replaces it, up to
	// DefaultReceiveTimeout. 0: DefaultSegmentTimeout.
	Timeout time.Duration
	// Retries is how often segments are sent again before the transfer is aborted
	// with mad.RMPPStatusTooManyRetries; it starts anew with each ACK that acknowledges more. As in
	// the kernel's header, 0 means none.
	Retries int
	// FirstWindow is the number of segments to send before the first ACK, what
	// Receiver.Granted gave for the request of a double-sided transfer. 0:
	// DefaultFirstWindow.
	FirstWindow uint32
	// ResponseWindow makes the transfer double-sided: after the ACK of the last
	// segment the peer is granted so many segments of its response. The Receiver
	// of the response needs the same number as its FirstWindow. The kernel grants
	// 1. 0: single-sided.
	ResponseWindow uint32
	// ResponseTime is announced in each packet as RRespTime, rounded up to
	// 4.096 us * 2^n. 0: no value.
	ResponseTime time.Duration
}

// Sender sends one message. It is not safe for concurrent use.
type Sender struct {
	cfg    SenderConfig
	msg    []byte
	hdrLen int
	count  uint32 // segments of the message

	sent       uint32 // last segment transmitted; goes back on a time-out
	acked      uint32
	windowLast uint32
	retries    int           // left until an ACK acknowledges more
	timeout    time.Duration // cfg.Timeout, or longer if the peer says so
	deadline   time.Time     // zero before the first transmission and at the end

	answer mad.RMPPType // ACK (of segment 0), STOP or ABORT to send, or 0
	done   bool
	err    *AbortError
}

// NewSender prepares to send msg: the headers of its class once, then all data.
// The content of its RMPP header is replaced. The Sender reads msg until it is
// Done. The error is ErrMessage if the class of msg has no RMPP, if msg is
// shorter than the headers of its class, or too long for the 32-bit
// PayloadLength.
func NewSender(msg []byte, cfg SenderConfig) (*Sender, error) {
	if len(msg) < mad.HeaderSize {
		return nil, fmt.Errorf("rmpp: %w: %d bytes are less than a MAD header", ErrMessage, len(msg))
	}
	class := mad.Class(msg[mad.OffClass])
	hdrLen := mad.ClassHeaderLen(class)
	if !mad.HasRMPP(class) {
		return nil, fmt.Errorf("rmpp: %w: class %#02x has no RMPP", ErrMessage, uint8(class))
	}
	if len(msg) < hdrLen {
		return nil, fmt.Errorf("rmpp: %w: %d bytes, the headers of class %#02x need %d", ErrMessage, len(msg), uint8(class), hdrLen)
	}
	perSegment := mad.Size - hdrLen
	count := max(1, (len(msg)-hdrLen+perSegment-1)/perSegment)
	if uint64(count)*segmentSpace > math.MaxUint32 {
		return nil, fmt.Errorf("rmpp: %w: %d bytes do not fit the PayloadLength", ErrMessage, len(msg))
	}
	s := &Sender{cfg: cfg, msg: msg, hdrLen: hdrLen, count: uint32(count)}
	if s.cfg.Timeout <= 0 {
		s.cfg.Timeout = DefaultSegmentTimeout
	}
	s.windowLast = cfg.FirstWindow
	if s.windowLast == 0 {
		s.windowLast = DefaultFirstWindow
	}
	s.timeout = s.cfg.Timeout
	s.retries = cfg.Retries
	return s, nil
}

// Next writes the next packet to transmit at now into out. False means that
// there is none until a packet is received or Deadline has come.
func (s *Sender) Next(now time.Time, out *[mad.Size]byte) bool {
	if !s.deadline.IsZero() && !now.Before(s.deadline) {
		s.expire(now)
	}
	if s.answer != 0 {
		s.putAnswer(out)
		return true
	}
	if s.done || s.sent >= min(s.windowLast, s.count) {
		return false
	}
	s.sent++
	s.putSegment(s.sent, out)
	s.deadline = now.Add(s.timeout)
	return true
}

// expire goes back to the segment after the last acknowledged one.
func (s *Sender) expire(now time.Time) {
	if s.retries <= 0 {
		s.fail(mad.RMPPStatusTooManyRetries, fmt.Errorf("no ACK of segment %d within %v after %d retries", s.acked+1, s.timeout, s.cfg.Retries))
		return
	}
	s.retries--
	s.deadline = now.Add(s.timeout)
	s.sent = s.acked
	if s.windowLast == s.acked {
		// The window is closed. Only a segment that the receiver knows makes it
		// tell its window again.
		s.sent--
	}
}

func (s *Sender) putSegment(n uint32, out *[mad.Size]byte) {
	perSegment := mad.Size - s.hdrLen
	start := s.hdrLen + int(n-1)*perSegment
	end := min(start+perSegment, len(s.msg))
	copy(out[:], s.msg[:s.hdrLen])
	clear(out[s.hdrLen+copy(out[s.hdrLen:], s.msg[start:end]):])

	h := mad.RMPPHeader{RMPPType: mad.RMPPTypeData, Data1: n}
	pad := uint32(perSegment - (end - start))
	if n == 1 {
		h.RMPPFlags |= mad.RMPPFlagFirst
		lastData := (len(s.msg) - s.hdrLen) - int(s.count-1)*perSegment
		h.Data2 = s.count*segmentSpace - uint32(perSegment-lastData)
	}
	if n == s.count {
		h.RMPPFlags |= mad.RMPPFlagLast
		h.Data2 = segmentSpace - pad
	}
	s.putHeader(h, out)
}

func (s *Sender) putAnswer(out *[mad.Size]byte) {
	clear(out[copy(out[:], s.msg[:s.hdrLen]):])
	h := mad.RMPPHeader{RMPPType: s.answer}
	if s.answer == mad.RMPPTypeACK {
		h.Data2 = s.cfg.ResponseWindow
	} else {
		h.RMPPStatus = s.err.Status
	}
	s.putHeader(h, out)
	s.answer = 0
}

func (s *Sender) putHeader(h mad.RMPPHeader, out *[mad.Size]byte) {
	h.RMPPVersion = Version
	h.RMPPFlags |= mad.RMPPFlagActive
	h.RRespTime = encodeRespTime(s.cfg.ResponseTime)
	PutHeader(out, h)
}

// Receive takes an ACK, STOP or ABORT of the peer; it ignores DATA, which
// belongs to the Receiver of a response. After Done, an ACK that comes again in
// a double-sided transfer is answered; keep the Sender until the response
// starts.
func (s *Sender) Receive(now time.Time, pkt *[mad.Size]byte) {
	if s.err != nil || !IsActive(pkt[:]) {
		return
	}
	h := ParseHeader(pkt)
	bad := check(&h)
	switch {
	case h.RMPPType == mad.RMPPTypeData:
	case s.done:
		if bad == mad.RMPPStatusOK && h.RMPPType == mad.RMPPTypeACK && h.Data1 == s.count {
			s.turnRound()
		}
	case bad != mad.RMPPStatusOK:
		s.fail(bad, complaint(&h, bad))
	case h.RMPPType == mad.RMPPTypeACK:
		s.acknowledge(now, h)
	default: // STOP or ABORT
		s.finish()
		s.err = &AbortError{Status: h.RMPPStatus, Segment: s.acked}
	}
}

func (s *Sender) acknowledge(now time.Time, h mad.RMPPHeader) {
	newLast := h.Data2
	switch {
	case newLast < h.Data1:
		s.fail(mad.RMPPStatusWindowTooSmall, fmt.Errorf("ACK of segment %d with NewWindowLast %d", h.Data1, newLast))
		return
	case h.Data1 > s.windowLast || h.Data1 > s.count:
		s.fail(mad.RMPPStatusSegmentTooBig, fmt.Errorf("ACK of segment %d, of %d segments %d were allowed to be sent",
			h.Data1, s.count, min(s.windowLast, s.count)))
		return
	case newLast < s.windowLast || h.Data1 < s.acked:
		return // overtaken by a later ACK
	}
	if d := decodeRespTime(h.RRespTime); d > 0 {
		s.timeout = max(s.cfg.Timeout, min(d, DefaultReceiveTimeout))
	}
	s.windowLast = newLast
	if h.Data1 > s.acked {
		s.acked = h.Data1
		s.sent = max(s.sent, s.acked)
		s.retries = s.cfg.Retries
		s.deadline = now.Add(s.timeout)
	}
	if s.acked == s.count {
		s.finish()
		s.turnRound()
	}
}

// turnRound starts the response of a double-sided transfer.
func (s *Sender) turnRound() {
	if s.cfg.ResponseWindow > 0 {
		s.answer = mad.RMPPTypeACK
	}
}

func (s *Sender) finish() {
	s.done = true
	s.deadline = time.Time{}
}

func (s *Sender) fail(status mad.RMPPStatus, why error) {
	s.finish()
	s.err = &AbortError{Status: status, Local: true, Segment: s.acked, Err: why}
	s.answer = endsWith(status)
}

// Abort gives up: the next packet is a STOP with mad.RMPPStatusResourcesExhausted, or an ABORT with
// any other status. It does nothing when the transfer is over.
func (s *Sender) Abort(status mad.RMPPStatus) {
	if !s.done {
		s.fail(sanitize(status), nil)
	}
}

// sanitize replaces what no STOP or ABORT may carry.
func sanitize(status mad.RMPPStatus) mad.RMPPStatus {
	if status != mad.RMPPStatusResourcesExhausted && status < mad.RMPPStatusTimeTooLong {
		return mad.RMPPStatusUnspecified
	}
	return status
}

// Deadline is when Next must be called if no packet comes before.
func (s *Sender) Deadline() time.Time { return s.deadline }

// Done tells whether the transfer is over: nil after the ACK of the last
// segment, otherwise an *AbortError. One more packet may be due, see Next.
func (s *Sender) Done() (bool, error) {
	if s.err != nil {
		return true, s.err
	}
	return s.done, nil
}
