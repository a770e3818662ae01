package capture

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// event is what happened on a Port.
type event struct {
	source     *source
	info       *port.Info
	msg        port.Message
	received   bool
	kernelRMPP bool // it was sent by an agent with kernel RMPP
	tid        upperTID
}

// upperTID says where the upper half of a sent transaction id comes from.
type upperTID struct {
	state tidState
	half  uint32
}

type tidState uint8

const (
	tidAsGiven tidState = iota
	tidKnown            // the carrier writes half
	tidUnknown          // the carrier writes what is not known yet
)

// Comments.
const (
	madeLocal    = "LRH, BTH, DETH made from the umad address; ICRC and VCRC are zero"
	madeGlobal   = "LRH, GRH, BTH, DETH made from the umad address; ICRC and VCRC are zero"
	textReceived = "received"
	textSent     = "sent"
	textHalfTID  = "upper half of the transaction id: as given by the program; what the carrier wrote is not known yet"
)

// write records an event: a time-out, a MAD, or the segments of a message.
func (w *Writer) write(at time.Time, e *event) {
	if w.isOver() {
		return
	}
	if e.source.iface == nil || e.source.iface.unknown {
		e.source.iface = w.ifaceOf(e.info)
	}
	w.comments = w.comments[:0]
	if e.msg.TimedOut {
		w.packet = appendERF(w.packet[:0], at, erfTypePad, 0)
		w.comments = append(w.comments, e.timeOut())
		w.writePacket(at, e.source.iface, nil)
		return
	}
	if e.received {
		w.comments = append(w.comments, textReceived)
	} else {
		w.comments = append(w.comments, e.sent())
	}
	if e.msg.Addr.HasGRH {
		w.comments = append(w.comments, madeGlobal)
	} else {
		w.comments = append(w.comments, madeLocal)
	}
	if e.tid.state == tidUnknown {
		w.comments = append(w.comments, textHalfTID)
	}
	if e.isLong() && w.writeSegments(at, e) {
		return
	}
	var m [mad.Size]byte
	copy(m[:], e.msg.Data)
	if e.kernelRMPP {
		clear(m[mad.OffRMPP:mad.OffRMPPData]) // user_mad.c, ib_umad_write
	}
	if len(e.msg.Data) > mad.Size {
		w.comments = append(w.comments, fmt.Sprintf("the first %d of %d bytes", mad.Size, len(e.msg.Data)))
	}
	w.writeMAD(at, e, &m)
}

// isLong tells whether a message travels as segments. What is received whole
// and fits into one MAD has the header that it came with.
func (e *event) isLong() bool {
	if e.received {
		return len(e.msg.Data) > mad.Size
	}
	return e.kernelRMPP && len(e.msg.Data) >= mad.OffRMPPData &&
		mad.RMPPFlags(e.msg.Data[mad.OffRMPP+2])&mad.RMPPFlagActive != 0
}

// writeSegments cuts a message as a sender does to whom everything is granted.
// It does nothing if the message is none of RMPP.
func (w *Writer) writeSegments(at time.Time, e *event) bool {
	s, err := rmpp.NewSender(e.msg.Data, rmpp.SenderConfig{FirstWindow: math.MaxUint32})
	if err != nil {
		return false
	}
	class := mad.Class(e.msg.Data[mad.OffClass])
	header := mad.ClassHeaderLen(class)
	room := mad.Size - header
	count := max(1, (len(e.msg.Data)-header+room-1)/room)
	fixed := len(w.comments)
	var m [mad.Size]byte
	for n := 1; s.Next(at, &m) && !w.isOver(); n++ {
		if e.received {
			e.likeFirst(&m)
		}
		w.comments = append(w.comments[:fixed],
			fmt.Sprintf("segment %d of %d, made from the whole message of %d bytes; ACKs and resent segments are not recorded", n, count, len(e.msg.Data)))
		w.writeMAD(at, e, &m)
	}
	return true
}

// likeFirst makes the RMPP header of a segment agree with that of the first one,
// which a received message keeps.
func (e *event) likeFirst(m *[mad.Size]byte) {
	h := rmpp.ParseHeader(m)
	first := rmpp.ParseHeader((*[mad.Size]byte)(e.msg.Data))
	if h.Data1 == 1 {
		h = first
	}
	h.RRespTime = first.RRespTime
	rmpp.PutHeader(m, h)
}

func (w *Writer) writeMAD(at time.Time, e *event, m *[mad.Size]byte) {
	if e.tid.state == tidKnown {
		binary.BigEndian.PutUint32(m[mad.OffTID:], e.tid.half)
	}
	flags, psn := outbound, &e.source.iface.psn[0]
	if e.received {
		flags, psn = inbound, &e.source.iface.psn[1]
	}
	p := packetOf(at, e.received, &e.msg.Addr, e.info, m)
	p.psn = *psn
	*psn++
	w.packet = p.appendTo(w.packet[:0])
	w.writePacket(at, e.source.iface, flags)
}

// sent tells what happens below the Port.
func (e *event) sent() string {
	if e.msg.Timeout <= 0 {
		return textSent
	}
	return fmt.Sprintf("%s, time-out %v, retries %d (not recorded)", textSent, e.msg.Timeout, e.msg.Retries)
}

// timeOut tells what had no response.
func (e *event) timeOut() string {
	var b [mad.HeaderSize]byte
	copy(b[:], e.msg.Data)
	var h mad.Header
	h.DecodeFrom(&b)
	return fmt.Sprintf("time-out: no response to %v %s of class %v, transaction id 0x%016x, from %v; time-out %v, retries %d",
		h.Method, h.AttributeID.Name(h.MgmtClass), h.MgmtClass, h.TransactionID, e.msg.Addr, e.msg.Timeout, e.msg.Retries)
}
