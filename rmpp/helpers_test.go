package rmpp_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/rmpp"
)

// Classes with RMPP and their header lengths (kernel ib_get_mad_data_offset).
const (
	classSA     = 0x03 // 56
	classDevMgt = 0x06 // 64
	classVendor = 0x30 // 40
)

const (
	methodGetTable     = 0x12
	methodGetTableResp = 0x92
)

var start = time.Unix(1_000_000, 0)

// message makes a message of n data bytes as it goes into a Sender.
func message(class byte, n int) []byte {
	hdrLen := mad.ClassHeaderLen(mad.Class(class))
	m := make([]byte, hdrLen+n)
	m[0] = mad.BaseVersion
	m[mad.OffClass] = class
	m[mad.OffClassVersion] = 2
	m[mad.OffMethod] = methodGetTableResp
	binary.BigEndian.PutUint64(m[mad.OffTID:], 0x1122334455667788)
	for i := mad.OffRMPPData; i < hdrLen; i++ {
		m[i] = 0xc0 | byte(i)
	}
	for i := range m[hdrLen:] {
		m[hdrLen+i] = byte(i*7) ^ byte(i>>8)
	}
	return m
}

// packet makes a packet with the headers of msg. A zero version stands for 1,
// and Active is set.
func packet(msg []byte, h mad.RMPPHeader, data []byte) *[mad.Size]byte {
	var pkt [mad.Size]byte
	hdrLen := mad.ClassHeaderLen(mad.Class(msg[mad.OffClass]))
	copy(pkt[:], msg[:hdrLen])
	copy(pkt[hdrLen:], data)
	if h.RMPPVersion == 0 {
		h.RMPPVersion = 1
	}
	h.RMPPFlags |= mad.RMPPFlagActive
	rmpp.PutHeader(&pkt, h)
	return &pkt
}

// segments cuts msg by the rules of the IBA, without the Sender.
func segments(msg []byte) []*[mad.Size]byte {
	hdrLen := mad.ClassHeaderLen(mad.Class(msg[mad.OffClass]))
	data := msg[hdrLen:]
	size := 256 - hdrLen
	count := max(1, (len(data)+size-1)/size)
	var all []*[mad.Size]byte
	for n := 1; n <= count; n++ {
		part := data[(n-1)*size : min(n*size, len(data))]
		h := mad.RMPPHeader{RMPPType: mad.RMPPTypeData, Data1: uint32(n)}
		if n == 1 {
			h.RMPPFlags |= mad.RMPPFlagFirst
			h.Data2 = uint32(count*(hdrLen-36) + len(data))
		}
		if n == count {
			h.RMPPFlags |= mad.RMPPFlagLast
			h.Data2 = uint32(hdrLen - 36 + len(part))
		}
		all = append(all, packet(msg, h, part))
	}
	return all
}

func ack(msg []byte, segment, newWindowLast uint32) *[mad.Size]byte {
	pkt := packet(msg, mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, Data1: segment, Data2: newWindowLast}, nil)
	pkt[mad.OffMethod] ^= mad.ResponseBit
	return pkt
}

type machine interface {
	Next(time.Time, *[mad.Size]byte) bool
}

// pull gives the headers of all packets that are due.
func pull(m machine, now time.Time) (all []mad.RMPPHeader) {
	var pkt [mad.Size]byte
	for m.Next(now, &pkt) {
		all = append(all, rmpp.ParseHeader(&pkt))
	}
	return all
}

// wantSegments checks that the packets due are the segments from first to last.
func wantSegments(t *testing.T, m machine, now time.Time, first, last uint32) {
	t.Helper()
	got := pull(m, now)
	if len(got) != int(last-first+1) {
		t.Fatalf("%d packets, want segments %d to %d: %+v", len(got), first, last, got)
	}
	for i, h := range got {
		if h.RMPPType != mad.RMPPTypeData || h.Data1 != first+uint32(i) {
			t.Fatalf("packet %d is %v %d, want DATA %d", i, h.RMPPType, h.Data1, first+uint32(i))
		}
	}
}

// wantPacket checks that one packet is due, of that type and with these fields.
func wantPacket(t *testing.T, m machine, now time.Time, typ mad.RMPPType, status mad.RMPPStatus, segment, data2 uint32) {
	t.Helper()
	got := pull(m, now)
	want := mad.RMPPHeader{RMPPVersion: 1, RMPPType: typ, RRespTime: 31, RMPPFlags: mad.RMPPFlagActive, RMPPStatus: status, Data1: segment, Data2: data2}
	if len(got) != 1 || got[0] != want {
		t.Fatalf("packets %+v, want %+v", got, want)
	}
}

func wantNothing(t *testing.T, m machine, now time.Time) {
	t.Helper()
	if got := pull(m, now); got != nil {
		t.Fatalf("packets %+v, want none", got)
	}
}

type finisher interface{ Done() (bool, error) }

func wantUnfinished(t *testing.T, m finisher) {
	t.Helper()
	if done, err := m.Done(); done || err != nil {
		t.Fatalf("Done = %v, %v; want false", done, err)
	}
}

func wantSuccess(t *testing.T, m finisher) {
	t.Helper()
	if done, err := m.Done(); !done || err != nil {
		t.Fatalf("Done = %v, %v; want true without error", done, err)
	}
}

func wantAbort(t *testing.T, m finisher, status mad.RMPPStatus, local bool, segment uint32) *rmpp.AbortError {
	t.Helper()
	done, err := m.Done()
	var abort *rmpp.AbortError
	if !done || !errors.As(err, &abort) {
		t.Fatalf("Done = %v, %v; want an AbortError", done, err)
	}
	if abort.Status != status || abort.Local != local || abort.Segment != segment {
		t.Fatalf("got %+v (%v), want status %v, local %v, segment %d", abort, err, status, local, segment)
	}
	return abort
}
