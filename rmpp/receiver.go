package rmpp

import (
	"fmt"
	"math"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// ReceiverConfig has the parameters of a Receiver; its zero value is the
// kernel's.
type ReceiverConfig struct {
	// Window is the number of segments granted with an ACK. 0: DefaultWindow.
	Window uint32
	// FirstWindow is the number of segments the peer may send before the first
	// ACK, SenderConfig.ResponseWindow of the request. 0: DefaultFirstWindow.
	FirstWindow uint32
	// MaxData limits the data bytes of the message, without the headers.
	// 0: DefaultMaxData.
	MaxData int
	// MaxHeld limits the segments kept because one before them is missing.
	// 0: as many as the windows allow.
	MaxHeld int
	// Timeout limits the time from the first segment to the last.
	// 0: DefaultReceiveTimeout.
	Timeout time.Duration
	// IdleTimeout limits the time without a segment that is new. It has to bear
	// all that a peer may try before it gives up itself: its time-out, as often as
	// it sends a segment. 0: no limit but Timeout, as in the kernel.
	IdleTimeout time.Duration
	// Memory is how long the end of the transfer is remembered, to answer
	// segments that come again. 0: DefaultMemory.
	Memory time.Duration
	// ResponseTime is announced in each packet as RRespTime: how long the sender
	// is to wait for an ACK. It is rounded up to 4.096 us * 2^n. 0: no value.
	ResponseTime time.Duration
}

type phase uint8

const (
	waiting   phase = iota // for the first segment
	receiving              // until the last segment or the time-out
	complete               // acknowledging what comes again
	failed                 // refusing what comes again
	ended
)

// Receiver receives one message. It is not safe for concurrent use.
type Receiver struct {
	cfg        ReceiverConfig
	phase      phase
	header     [64]byte // headers of segment 1; before it, of the last packet seen
	hdrLen     int      // of header; 0 before any packet
	next       uint32   // first segment not yet delivered
	lastAck    uint32
	windowLast uint32
	announced  uint64 // PayloadLength of the first segment; 0: not told
	received   int    // data bytes delivered
	held       map[uint32]heldSegment
	deadline   time.Time    // of the phase
	progress   time.Time    // when the newest segment came that was new
	answer     mad.RMPPType // ACK, STOP or ABORT to send, or 0
	granted    uint32
	err        *AbortError
}

// heldSegment is a segment that arrived before its predecessors.
type heldSegment struct {
	h    mad.RMPPHeader
	len  int
	data [segmentSpace]byte
}

// NewReceiver prepares to receive one message. Until its first segment comes
// there is no Deadline; how long to wait for it is the caller's choice.
func NewReceiver(cfg ReceiverConfig) *Receiver {
	r := new(Receiver)
	r.init(cfg)
	return r
}

func (r *Receiver) init(cfg ReceiverConfig) {
	if cfg.Window == 0 {
		cfg.Window = DefaultWindow
	}
	if cfg.FirstWindow == 0 {
		cfg.FirstWindow = DefaultFirstWindow
	}
	if cfg.MaxData <= 0 {
		cfg.MaxData = DefaultMaxData
	}
	if cfg.MaxHeld <= 0 {
		cfg.MaxHeld = int(max(cfg.Window, cfg.FirstWindow))
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultReceiveTimeout
	}
	if cfg.Memory <= 0 {
		cfg.Memory = DefaultMemory
	}
	*r = Receiver{cfg: cfg, next: 1, windowLast: cfg.FirstWindow}
}

// Receive takes a packet of the peer and calls yield with the data of each
// segment that is now in order, without its headers. The slices are valid
// during the call only. After Done, segments that come again are answered until
// Deadline is the zero time.
func (r *Receiver) Receive(now time.Time, pkt *[mad.Size]byte, yield func(payload []byte)) {
	r.expire(now)
	if r.phase == ended || !IsActive(pkt[:]) {
		return
	}
	if r.phase == waiting {
		r.keepHeader(pkt) // an ABORT needs one
	} else if pkt[mad.OffClass] != r.header[mad.OffClass] {
		return // of another transfer
	}
	h := ParseHeader(pkt)
	bad := check(&h)
	switch {
	case r.phase == failed:
		if h.RMPPType == mad.RMPPTypeData {
			r.answer = endsWith(r.err.Status)
		}
	case r.phase == complete:
		if bad == mad.RMPPStatusOK {
			r.afterwards(h)
		}
	case bad != mad.RMPPStatusOK:
		r.fail(now, bad, complaint(&h, bad))
	case h.RMPPType == mad.RMPPTypeData:
		r.data(now, h, pkt, yield)
	case h.RMPPType == mad.RMPPTypeStop || h.RMPPType == mad.RMPPTypeAbort:
		r.end()
		r.err = &AbortError{Status: h.RMPPStatus, Segment: r.next - 1}
	}
}

// afterwards handles a valid packet that follows the last segment (IBA 13.6.3,
// receiver termination flow).
func (r *Receiver) afterwards(h mad.RMPPHeader) {
	switch {
	case h.RMPPType == mad.RMPPTypeData && h.Data1 <= r.windowLast:
		r.answer = mad.RMPPTypeACK // ours was lost
	case h.RMPPType == mad.RMPPTypeACK && h.Data1 == 0:
		r.granted = max(r.granted, h.Data2)
	}
}

func (r *Receiver) keepHeader(pkt *[mad.Size]byte) {
	r.hdrLen = mad.ClassHeaderLen(mad.Class(pkt[mad.OffClass]))
	copy(r.header[:r.hdrLen], pkt[:])
}

// data sorts a segment: deliver, hold, acknowledge again or drop.
func (r *Receiver) data(now time.Time, h mad.RMPPHeader, pkt *[mad.Size]byte, yield func([]byte)) {
	if (h.Data1 == 1) != (h.RMPPFlags&mad.RMPPFlagFirst != 0) {
		r.fail(now, mad.RMPPStatusBadSegment, fmt.Errorf("segment %d with flags %#x", h.Data1, uint8(h.RMPPFlags)))
		return
	}
	if h.Data1 > r.windowLast {
		return
	}
	if h.Data1 < r.next {
		// A segment that was delivered but not acknowledged will be: the ACK is
		// due when the window is full.
		if h.Data1 <= r.lastAck && r.phase == receiving {
			r.answer = mad.RMPPTypeACK
		}
		return
	}
	n, ok := r.dataLen(h)
	if !ok {
		r.fail(now, mad.RMPPStatusBadLength, fmt.Errorf("last segment %d has PayloadLength %d, not %d to %d",
			h.Data1, h.Data2, r.hdrLen-mad.OffRMPPData, segmentSpace))
		return
	}
	if r.phase == waiting {
		r.phase = receiving
		r.deadline = now.Add(r.cfg.Timeout)
	}
	if h.Data1 > r.next {
		r.hold(now, h, n, pkt)
		return
	}
	if h.Data1 == 1 {
		r.keepHeader(pkt)
	}
	r.deliver(now, h, pkt[r.hdrLen:r.hdrLen+n], yield)
	for len(r.held) > 0 { // none once the transfer is over
		seg, ok := r.held[r.next]
		if !ok {
			break
		}
		delete(r.held, r.next)
		r.deliver(now, seg.h, seg.data[:seg.len], yield)
	}
	if r.phase == receiving && r.next > r.windowLast {
		r.windowLast = uint32(min(uint64(r.windowLast)+uint64(r.cfg.Window), math.MaxUint32))
		r.answer = mad.RMPPTypeACK
	}
}

// dataLen gives the data bytes of a segment: all that fit, but in the last one
// what PayloadLength leaves after the class header.
func (r *Receiver) dataLen(h mad.RMPPHeader) (int, bool) {
	if h.RMPPFlags&mad.RMPPFlagLast == 0 {
		return mad.Size - r.hdrLen, true
	}
	classPart := r.hdrLen - mad.OffRMPPData
	if h.Data2 < uint32(classPart) || h.Data2 > segmentSpace {
		return 0, false
	}
	return int(h.Data2) - classPart, true
}

func (r *Receiver) hold(now time.Time, h mad.RMPPHeader, n int, pkt *[mad.Size]byte) {
	if _, again := r.held[h.Data1]; again {
		return
	}
	if len(r.held) >= r.cfg.MaxHeld {
		r.fail(now, mad.RMPPStatusResourcesExhausted, fmt.Errorf("%w: segment %d is missing and %d are held", ErrTooManyHeld, r.next, len(r.held)))
		return
	}
	if r.held == nil {
		r.held = make(map[uint32]heldSegment)
	}
	r.progress = now
	seg := heldSegment{h: h, len: n}
	copy(seg.data[:], pkt[r.hdrLen:r.hdrLen+n])
	r.held[h.Data1] = seg
}

// deliver takes the segment that is next in order.
func (r *Receiver) deliver(now time.Time, h mad.RMPPHeader, payload []byte, yield func([]byte)) {
	last := h.RMPPFlags&mad.RMPPFlagLast != 0
	if h.Data1 == 1 {
		r.announced = uint64(h.Data2)
		if data := r.announcedData(); data > uint64(r.cfg.MaxData) {
			r.fail(now, mad.RMPPStatusResourcesExhausted, fmt.Errorf("%w: %d bytes announced, the limit is %d", ErrTooBig, data, r.cfg.MaxData))
			return
		}
	}
	if len(payload) > r.cfg.MaxData-r.received {
		r.fail(now, mad.RMPPStatusResourcesExhausted, fmt.Errorf("%w: more than the limit of %d bytes", ErrTooBig, r.cfg.MaxData))
		return
	}
	// The length told first must end in this segment exactly if it is the last.
	if r.announced != 0 {
		before := uint64(h.Data1-1) * segmentSpace
		if last && before+uint64(h.Data2) != r.announced || !last && before+segmentSpace >= r.announced {
			r.fail(now, mad.RMPPStatusBadLength, fmt.Errorf("%d bytes announced, segment %d has flags %#x and PayloadLength %d",
				r.announced, h.Data1, uint8(h.RMPPFlags), h.Data2))
			return
		}
	}
	r.progress = now
	r.next++
	r.received += len(payload)
	if len(payload) > 0 {
		yield(payload)
	}
	if last {
		r.phase = complete
		r.held = nil
		r.deadline = now.Add(r.cfg.Memory)
		r.answer = mad.RMPPTypeACK
	}
}

// announcedData is the part of the announced length that is not class headers.
func (r *Receiver) announcedData() uint64 {
	segments := (r.announced + segmentSpace - 1) / segmentSpace
	return r.announced - min(r.announced, segments*uint64(r.hdrLen-mad.OffRMPPData))
}

// Next writes the next packet to transmit at now into out: an ACK, STOP or
// ABORT. False means that there is none until a packet is received or Deadline
// has come.
func (r *Receiver) Next(now time.Time, out *[mad.Size]byte) bool {
	r.expire(now)
	if r.answer == 0 {
		return false
	}
	clear(out[copy(out[:], r.header[:r.hdrLen]):])
	out[mad.OffMethod] ^= mad.ResponseBit
	h := mad.RMPPHeader{
		RMPPVersion: Version,
		RMPPType:    r.answer,
		RRespTime:   encodeRespTime(r.cfg.ResponseTime),
		RMPPFlags:   mad.RMPPFlagActive,
	}
	if r.answer == mad.RMPPTypeACK {
		r.lastAck = r.next - 1
		h.Data1 = r.lastAck
		h.Data2 = r.windowLast
	} else {
		h.RMPPStatus = r.err.Status
	}
	PutHeader(out, h)
	r.answer = 0
	return true
}

func (r *Receiver) expire(now time.Time) {
	at := r.Deadline()
	switch {
	case at.IsZero() || now.Before(at):
	case r.phase != receiving:
		r.end()
	case at.Before(r.deadline):
		r.fail(now, mad.RMPPStatusTimeTooLong, fmt.Errorf("segment %d did not come, nor any new one for %v", r.next, r.cfg.IdleTimeout))
	default:
		r.fail(now, mad.RMPPStatusTimeTooLong, fmt.Errorf("segment %d did not come, %v after the first", r.next, r.cfg.Timeout))
	}
}

func (r *Receiver) fail(now time.Time, status mad.RMPPStatus, why error) {
	r.phase = failed
	r.held = nil
	r.deadline = now.Add(r.cfg.Memory)
	r.answer = endsWith(status)
	r.err = &AbortError{Status: status, Local: true, Segment: r.next - 1, Err: why}
}

func (r *Receiver) end() {
	r.phase = ended
	r.held = nil
	r.deadline = time.Time{}
	r.answer = 0
}

// Abort gives up at now: the next packet is a STOP with mad.RMPPStatusResourcesExhausted, or an ABORT
// with any other status. Before the first packet there is nobody to tell. It
// does nothing when the transfer is over.
func (r *Receiver) Abort(now time.Time, status mad.RMPPStatus) {
	switch r.phase {
	case receiving:
		r.fail(now, sanitize(status), nil)
	case waiting:
		r.end()
		r.err = &AbortError{Status: sanitize(status), Local: true}
	}
}

// Deadline is when Next must be called if no packet comes before.
func (r *Receiver) Deadline() time.Time {
	if r.phase == receiving && r.cfg.IdleTimeout > 0 {
		if idle := r.progress.Add(r.cfg.IdleTimeout); idle.Before(r.deadline) {
			return idle
		}
	}
	return r.deadline
}

// Done tells whether the transfer is over: nil when the whole message has been
// delivered, otherwise an *AbortError. Keep calling Receive and Next until
// Deadline is the zero time, so that a peer that lost the last answer gets it
// again.
func (r *Receiver) Done() (bool, error) {
	if r.err != nil {
		return true, r.err
	}
	return r.phase >= complete, nil
}

// Header gives the headers of the first segment, mad.ClassHeaderLen bytes with
// the RMPP header in them; nil before it has come. It is valid as long as the
// Receiver.
func (r *Receiver) Header() []byte {
	if r.next == 1 {
		return nil
	}
	return r.header[:r.hdrLen]
}

// Granted is the window that the peer granted for the response of a
// double-sided transfer, in segments; 0 if it has granted none.
func (r *Receiver) Granted() uint32 { return r.granted }
