package cm

import (
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Most bytes of private data in each message, and of the additional information
// of REJ, APR and SIDR_REP (IBA 12.6, ib_cm.h).
const (
	MaxREQData     = 92
	MaxMRAData     = 222
	MaxREJData     = 148
	MaxREPData     = 196
	MaxRTUData     = 224
	MaxDREQData    = 220
	MaxDREPData    = 224
	MaxLAPData     = 168
	MaxAPRData     = 148
	MaxSIDRREQData = 216
	MaxSIDRREPData = 136
	MaxInfo        = 72
)

// AssignServiceID asks [Machine.Listen] for any free service id
// (IB_CM_ASSIGN_SERVICE_ID).
const AssignServiceID = 0x0200000000000000

// QPType is the transport of a connection, by the numbers of enum ib_qp_type.
type QPType uint8

// Of these a REQ can ask for RC, UC, and XRC: XRCInitiator at its sender is
// XRCTarget at its receiver.
const (
	RC           QPType = 2
	UC           QPType = 3
	UD           QPType = 4
	XRCInitiator QPType = 9
	XRCTarget    QPType = 10
)

// ECE are the enhanced connection establishment options: a vendor id of 24 bits,
// of which a SIDR_REP carries 16, and what travels as attribute modifier.
type ECE struct {
	VendorID uint32
	AttrMod  uint32
}

// Request is what a REQ says (ib_cm_req_param). Numbers too wide for their field
// lose their upper bits.
type Request struct {
	// Primary is the path to the peer: SGID is one of the port's, PKey in its
	// table. Of it also come P_Key, MTU and, with PacketLifeTime, time-outs.
	Primary   mad.PathRecord
	Alternate *mad.PathRecord // or nil; its P_Key and MTU must be those of Primary

	ServiceID               uint64
	QPN                     uint32 // 24 bits
	QPType                  QPType
	StartingPSN             uint32 // 24 bits
	ResponderResources      uint8
	InitiatorDepth          uint8
	RemoteCMResponseTimeout uint8 // in which the peer shall answer: 4.096 us * 2^n, 5 bits
	LocalCMResponseTimeout  uint8 // in which we answer, 5 bits
	FlowControl             bool
	RetryCount              uint8 // 3 bits
	RNRRetryCount           uint8 // 3 bits
	MaxCMRetries            uint8 // of each CM message, by both sides; 4 bits
	SRQ                     bool
	ECE                     ECE
	PrivateData             []byte // up to MaxREQData
}

// Reply is what a REP says (ib_cm_rep_param).
type Reply struct {
	QPN                uint32 // 24 bits
	StartingPSN        uint32 // 24 bits
	ResponderResources uint8
	InitiatorDepth     uint8
	FailoverAccepted   mad.Failover
	FlowControl        bool
	RNRRetryCount      uint8 // 3 bits
	SRQ                bool
	ECE                ECE
	PrivateData        []byte // up to MaxREPData
}

// Receipt is what an MRA says.
type Receipt struct {
	ServiceTimeout uint8 // until the answer comes: 4.096 us * 2^n, 5 bits
	// Delay keeps the MRA back until the peer sends its message again
	// (IB_CM_MRA_FLAG_DELAY).
	Delay       bool
	PrivateData []byte // up to MaxMRAData
}

// Rejection is what a REJ says.
type Rejection struct {
	Reason      mad.RejectReason
	Info        []byte // additional rejection information, up to MaxInfo
	PrivateData []byte // up to MaxREJData
}

// SIDRRequest is what a SIDR_REQ says, and how long its answer is waited for
// (ib_cm_sidr_req_param).
type SIDRRequest struct {
	Path         mad.PathRecord
	ServiceID    uint64
	Timeout      time.Duration // of each try, whole milliseconds; 0 waits for no answer
	MaxCMRetries uint8
	PrivateData  []byte // up to MaxSIDRREQData
}

// SIDRReply is what a SIDR_REP says (ib_cm_sidr_rep_param).
type SIDRReply struct {
	Status      mad.SIDRStatus
	QPN         uint32 // 24 bits
	QKey        uint32
	ECE         ECE
	Info        []byte // up to MaxInfo
	PrivateData []byte // up to MaxSIDRREPData
}

// AlternatePath is what a LAP says.
type AlternatePath struct {
	Path                    mad.PathRecord
	RemoteCMResponseTimeout uint8  // in which the peer shall answer: 4.096 us * 2^n, 5 bits
	PrivateData             []byte // up to MaxLAPData
}

// AlternatePathReply is what an APR says.
type AlternatePathReply struct {
	Status      mad.APStatus
	Info        []byte // up to MaxInfo
	PrivateData []byte // up to MaxAPRData
}
