package rmpp

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Version is the only version of the protocol (IBA 13.6.2.1).
const Version = 1

// segmentSpace is what follows the RMPP header in a packet, in bytes: class
// header and data. PayloadLength counts it.
const segmentSpace = mad.Size - mad.OffRMPPData

// Type is the RMPPType of a packet (IBA 13.6.2.1).
type Type uint8

const (
	TypeData  Type = 1
	TypeACK   Type = 2
	TypeStop  Type = 3
	TypeAbort Type = 4
)

func (t Type) String() string {
	switch t {
	case TypeData:
		return "DATA"
	case TypeACK:
		return "ACK"
	case TypeStop:
		return "STOP"
	case TypeAbort:
		return "ABORT"
	}
	return fmt.Sprintf("RMPP type %d", uint8(t))
}

// Flags are the RMPPFlags of a packet, 3 bits (IBA 13.6.2.1).
type Flags uint8

const (
	FlagActive Flags = 1 << iota // part of an RMPP transfer
	FlagFirst                    // DATA: segment 1
	FlagLast                     // DATA: last segment
)

// Status is the RMPPStatus of a packet (IBA 13.6.2.1). DATA and ACK carry
// StatusNormal, STOP carries StatusResX, ABORT one of the others; 128 to 191
// belong to the class and 192 to 255 to the vendor.
type Status uint8

const (
	StatusNormal    Status = 0
	StatusResX      Status = 1   // resources exhausted
	StatusT2L       Status = 118 // total time too long
	StatusBadLen    Status = 119 // Last flag and PayloadLength are inconsistent
	StatusBadSeg    Status = 120 // First flag and SegmentNumber are inconsistent
	StatusBadT      Status = 121 // bad RMPPType
	StatusW2S       Status = 122 // NewWindowLast too small
	StatusS2B       Status = 123 // SegmentNumber too big
	StatusBadStatus Status = 124 // illegal status
	StatusUnV       Status = 125 // unsupported version
	StatusTMR       Status = 126 // too many retries
	StatusUnspec    Status = 127 // unspecified
)

var statusText = map[Status]string{
	StatusNormal:    "normal",
	StatusResX:      "resources exhausted",
	StatusT2L:       "total time too long",
	StatusBadLen:    "inconsistent Last and PayloadLength",
	StatusBadSeg:    "inconsistent First and SegmentNumber",
	StatusBadT:      "bad RMPPType",
	StatusW2S:       "NewWindowLast too small",
	StatusS2B:       "SegmentNumber too big",
	StatusBadStatus: "illegal status",
	StatusUnV:       "unsupported version",
	StatusTMR:       "too many retries",
	StatusUnspec:    "unspecified",
}

// String is the text of the IBA's table of status codes.
func (s Status) String() string {
	switch text, ok := statusText[s]; {
	case ok:
		return text
	case s >= 192:
		return fmt.Sprintf("vendor specific status %d", uint8(s))
	case s >= 128:
		return fmt.Sprintf("class specific status %d", uint8(s))
	}
	return fmt.Sprintf("reserved status %d", uint8(s))
}

// endsWith gives the packet type that carries s to the peer.
func (s Status) endsWith() Type {
	if s == StatusResX {
		return TypeStop
	}
	return TypeAbort
}

// Header is the RMPP header of a packet: bytes 24 to 35 of the MAD, big-endian
// (IBA 13.6.2.1).
type Header struct {
	Version  uint8
	Type     Type
	RespTime uint8 // RRespTime, 5 bits: 4.096 us * 2^n as in ClassPortInfo; 31: no value
	Flags    Flags
	Status   Status
	Segment  uint32 // SegmentNumber of DATA, or up to which an ACK acknowledges; from 1
	Data2    uint32 // PayloadLength of DATA in bytes, NewWindowLast of an ACK
}

// ParseHeader reads the RMPP header of a packet.
func ParseHeader(pkt *[mad.Size]byte) Header {
	b := pkt[mad.OffRMPP:mad.OffRMPPData]
	return Header{
		Version:  b[0],
		Type:     Type(b[1]),
		RespTime: b[2] >> 3,
		Flags:    Flags(b[2] & 7),
		Status:   Status(b[3]),
		Segment:  binary.BigEndian.Uint32(b[4:]),
		Data2:    binary.BigEndian.Uint32(b[8:]),
	}
}

// Put writes h into a packet.
func (h Header) Put(pkt *[mad.Size]byte) {
	b := pkt[mad.OffRMPP:mad.OffRMPPData]
	b[0] = h.Version
	b[1] = uint8(h.Type)
	b[2] = h.RespTime<<3 | uint8(h.Flags)&7
	b[3] = uint8(h.Status)
	binary.BigEndian.PutUint32(b[4:], h.Segment)
	binary.BigEndian.PutUint32(b[8:], h.Data2)
}

// IsActive tells whether a MAD is a packet of an RMPP transfer: its class has
// RMPP, the Active flag is set and the version is not 0. OpenSM without RMPP
// below it sends single MADs with the flag set and version 0.
func IsActive(b []byte) bool {
	return len(b) >= mad.OffRMPPData &&
		mad.HasRMPP(mad.Class(b[mad.OffClass])) &&
		b[mad.OffRMPP] != 0 &&
		Flags(b[mad.OffRMPP+2])&FlagActive != 0
}

// check is the part of the validity checks that is common to both sides. It
// gives the status to abort with, or StatusNormal.
func (h Header) check() Status {
	if h.Version != Version {
		return StatusUnV
	}
	legal := false
	switch h.Type {
	case TypeData, TypeACK:
		legal = h.Status == StatusNormal
	case TypeStop:
		legal = h.Status == StatusResX || h.Status >= 128
	case TypeAbort:
		legal = h.Status >= StatusT2L
	default:
		return StatusBadT
	}
	if !legal {
		return StatusBadStatus
	}
	return StatusNormal
}

// complaint tells what check has found.
func (h Header) complaint() error {
	return fmt.Errorf("%v of version %d with status %d", h.Type, h.Version, uint8(h.Status))
}

// The response time field: 4.096 us * 2^n, as RespTimeValue of ClassPortInfo
// (IBA 13.4.8.1).
const (
	respTimeUnit = 4096 * time.Nanosecond
	respTimeNone = 31
)

// encodeRespTime gives the smallest code that covers d; 0 has no value.
func encodeRespTime(d time.Duration) uint8 {
	if d <= 0 {
		return respTimeNone
	}
	var n uint8
	for n < respTimeNone-1 && respTimeUnit<<n < d {
		n++
	}
	return n
}

// decodeRespTime gives 0 for "no value".
func decodeRespTime(n uint8) time.Duration {
	if n >= respTimeNone {
		return 0
	}
	return respTimeUnit << n
}
