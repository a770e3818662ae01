package system

import (
	"encoding/binary"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/rmpp"
	"github.com/ibsm/ibsm/softmad"
)

// script is an SA at the bare link of the SM's port: nothing below it keeps it
// from sending whatever it likes.
type script struct {
	link softmad.Link
	// answer gives the packets that answer a request, or an ACK of it.
	answer func(turn) []packet
	asked  int            // requests so far
	told   mad.RMPPStatus // of the last STOP or ABORT of the client
}

// turn is what the SA got.
type turn struct {
	asked int    // requests so far, this one included
	acked uint32 // segments that the client has; 0: this is the request
}

// packet is an answer. Its address, transaction id and attribute are those of the
// request, and so are its P_Key and its method where it has none.
type packet struct {
	softmad.Wire
}

// play starts a script at the SM's port. Set answer before the first request.
func (h *house) play() *script {
	h.t.Helper()
	link, err := h.fabric.Link(h.sub.SM.Node, h.sub.SM.Num)
	h.must(err)
	s := &script{link: link}
	h.t.Cleanup(func() { link.Close() })
	go s.run(h.t)
	return s
}

func (s *script) run(t *testing.T) {
	var last softmad.Wire // request
	var w softmad.Wire
	for s.link.Recv(&w) == nil {
		now := turn{}
		switch head := rmpp.ParseHeader(&w.MAD); {
		case !rmpp.IsActive(w.MAD[:]):
			s.asked++
			last = w
		case head.RMPPType == mad.RMPPTypeACK:
			now.acked = head.Data1
		default:
			s.told = head.RMPPStatus
			continue
		}
		now.asked = s.asked
		for _, p := range s.answer(now) {
			p.Addr = w.Addr
			if p.PKey == 0 {
				p.PKey = w.PKey
			}
			copy(p.MAD[mad.OffTID:mad.OffTID+8], last.MAD[mad.OffTID:])
			copy(p.MAD[mad.OffAttribute:mad.OffModifier], last.MAD[mad.OffAttribute:])
			if p.MAD[mad.OffMethod] == 0 {
				p.MAD[mad.OffMethod] = last.MAD[mad.OffMethod] | mad.ResponseBit
			}
			if err := s.link.Send(&p.Wire); err != nil {
				t.Errorf("the scripted SA cannot send: %v", err)
			}
		}
	}
}

// single is an answer in one MAD.
func single(status mad.Status, offset uint16, data []byte) packet {
	var p packet
	head := mad.Header{BaseVersion: mad.BaseVersion, MgmtClass: mad.ClassSubnAdm, ClassVersion: 2, Status: status}
	head.EncodeTo((*[mad.HeaderSize]byte)(p.MAD[:]))
	binary.BigEndian.PutUint16(p.MAD[offAttributeOffset:], offset)
	copy(p.MAD[mad.OffSAData:], data)
	return p
}

// offAttributeOffset is in the SA header, behind the RMPP header and the SM_Key
// (IBA 15.2.1.1).
const offAttributeOffset = mad.OffRMPPData + 8

// saHeader is what PayloadLength counts beside the data of a segment, in the
// first for all segments (IBA 13.6.2.1).
const saHeader = mad.SAHeaderSize

// segments cuts a table as RMPP does.
func segments(offset uint16, data []byte) []packet {
	const room = mad.SADataSize
	count := max(1, (len(data)+room-1)/room)
	var all []packet
	for i := range count {
		part := data[i*room : min((i+1)*room, len(data))]
		p := single(mad.StatusOK, offset, part)
		head := mad.RMPPHeader{RMPPVersion: rmpp.Version, RMPPType: mad.RMPPTypeData, RMPPFlags: mad.RMPPFlagActive, Data1: uint32(i + 1)}
		if i == 0 {
			head.RMPPFlags |= mad.RMPPFlagFirst
			head.Data2 = uint32(len(data) + count*saHeader)
		}
		if i == count-1 {
			head.RMPPFlags |= mad.RMPPFlagLast
			head.Data2 = uint32(len(part) + saHeader)
		}
		rmpp.PutHeader(&p.MAD, head)
		all = append(all, p)
	}
	return all
}

// change edits the RMPP header of one segment, counted from 1.
func change(all []packet, segment int, edit func(h *mad.RMPPHeader)) []packet {
	b := &all[segment-1].MAD
	head := rmpp.ParseHeader(b)
	edit(&head)
	rmpp.PutHeader(b, head)
	return all
}

// window gives the segments of a table that a turn allows: the first at the
// request, all others once that is acknowledged.
func (t turn) window(all []packet) []packet {
	if t.acked == 0 {
		return all[:1]
	}
	return all[min(int(t.acked), len(all)):]
}

// breakOff sends two segments of a table and then a STOP or an ABORT.
func (t turn) breakOff(all []packet, kind mad.RMPPType, status mad.RMPPStatus) []packet {
	if t.acked == 0 {
		return all[:1]
	}
	end := all[2]
	rmpp.PutHeader(&end.MAD, mad.RMPPHeader{RMPPVersion: rmpp.Version, RMPPType: kind, RMPPFlags: mad.RMPPFlagActive, RMPPStatus: status})
	return []packet{all[1], end}
}

// somePaths gives so many encoded PathRecords, with DLIDs from 1.
func somePaths(n int) (data []byte) {
	for i := range n {
		data, _ = (&mad.PathRecord{DLID: mad.LID(i + 1), SLID: 2}).AppendBinary(data)
	}
	return data
}
