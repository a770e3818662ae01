package rmpp

import (
	"fmt"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Version is the only version of the protocol (IBA 13.6.2.1).
const Version = 1

// segmentSpace is what follows the RMPP header in a packet, in bytes: class
// header and data. PayloadLength counts it.
const segmentSpace = mad.Size - mad.OffRMPPData

// ParseHeader reads the RMPP header of a packet.
func ParseHeader(pkt *[mad.Size]byte) (h mad.RMPPHeader) {
	h.DecodeFrom((*[mad.RMPPHeaderSize]byte)(pkt[mad.OffRMPP:]))
	return h
}

// PutHeader writes the RMPP header of a packet.
func PutHeader(pkt *[mad.Size]byte, h mad.RMPPHeader) {
	h.EncodeTo((*[mad.RMPPHeaderSize]byte)(pkt[mad.OffRMPP:]))
}

// IsActive tells whether a MAD is a packet of an RMPP transfer: its class has
// RMPP, the Active flag is set and the version is not 0. OpenSM without RMPP
// below it sends single MADs with the flag set and version 0.
func IsActive(b []byte) bool {
	return len(b) >= mad.OffRMPPData &&
		mad.HasRMPP(mad.Class(b[mad.OffClass])) &&
		b[mad.OffRMPP] != 0 &&
		mad.RMPPFlags(b[mad.OffRMPP+2])&mad.RMPPFlagActive != 0
}

// check is the part of the validity checks that is common to both sides. It
// gives the status to abort with, or mad.RMPPStatusOK.
func check(h *mad.RMPPHeader) mad.RMPPStatus {
	if h.RMPPVersion != Version {
		return mad.RMPPStatusBadVersion
	}
	legal := false
	switch h.RMPPType {
	case mad.RMPPTypeData, mad.RMPPTypeACK:
		legal = h.RMPPStatus == mad.RMPPStatusOK
	case mad.RMPPTypeStop:
		legal = h.RMPPStatus == mad.RMPPStatusResourcesExhausted || h.RMPPStatus >= 128
	case mad.RMPPTypeAbort:
		legal = h.RMPPStatus >= mad.RMPPStatusTimeTooLong
	default:
		return mad.RMPPStatusBadType
	}
	if !legal {
		return mad.RMPPStatusBadStatus
	}
	return mad.RMPPStatusOK
}

// complaint tells what check has found.
func complaint(h *mad.RMPPHeader, bad mad.RMPPStatus) error {
	switch bad {
	case mad.RMPPStatusBadVersion:
		return fmt.Errorf("RMPP version %d, not %d", h.RMPPVersion, Version)
	case mad.RMPPStatusBadType:
		return fmt.Errorf("RMPP type %d", uint8(h.RMPPType))
	}
	return fmt.Errorf("%v with status %d", h.RMPPType, uint8(h.RMPPStatus))
}

// respTimeNone in the response time field is no value (IBA 13.6.2.1).
const respTimeNone = 31

// encodeRespTime gives the smallest code that covers d; 0 has no value.
func encodeRespTime(d time.Duration) uint8 {
	if d <= 0 {
		return respTimeNone
	}
	return min(mad.CodeOf(d), respTimeNone-1)
}

// decodeRespTime gives 0 for "no value".
func decodeRespTime(n uint8) time.Duration {
	if n >= respTimeNone {
		return 0
	}
	return mad.TimeOf(n)
}
