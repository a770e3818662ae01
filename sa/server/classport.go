package server

import (
	"time"

	"github.com/ibsm/ibsm/mad"
)

// respTime is how long an answer may take: OpenSM's default.
const respTime = 200 * time.Millisecond

// What the server can do (IBA 15.2.5.1). It knows all optional records and
// multicast groups, but no forwarding of notices.
const (
	capMask = mad.SACapIsSubnetOptionalRecordsSupported | mad.SACapIsUDMulticastSupported |
		mad.SACapIsPortInfoCapMaskMatchSupported
	capMask2 = mad.SACap2IsFullPortInfoRecordSupported | mad.SACap2IsExtendedSpeedsSupported |
		mad.SACap2IsPortInfoCapMask2MatchSupported | sendOnlyFullMembers

	// sendOnlyFullMembers is IsSendOnlyFullMemberSupported, without which a kernel
	// joins no group so (sa_query.c, ib_sa_sendonly_fullmem_support).
	sendOnlyFullMembers = 1 << 12
)

// classPortInfo says what the server can do, and that it is asked at its own
// address.
func classPortInfo() records {
	found := records{size: mad.ClassPortInfoSize}
	found.add(&mad.ClassPortInfo{
		BaseVersion:     mad.BaseVersion,
		ClassVersion:    ClassVersion,
		CapabilityMask:  uint16(capMask),
		CapabilityMask2: uint32(capMask2),
		RespTimeValue:   mad.CodeOf(respTime),
		RedirectQP:      mad.QPGSI,
		RedirectQKey:    mad.QKeyGSI,
		TrapQKey:        mad.QKeyGSI,
	})
	return found
}
