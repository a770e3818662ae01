package cm

import "github.com/ibsm/ibsm/mad"

// EventType says what happened, by the numbers of enum ib_cm_event_type.
type EventType uint8

// Types of events. An error means that retries are used up.
const (
	EventREQError        EventType = iota // now idle
	EventREQReceived                      // ID is new, and its consumer's to destroy
	EventREPError                         // now idle
	EventREPReceived                      // to be answered with ReadyToUse or Reject
	EventRTUReceived                      // established
	EventUserEstablished                  // established by ID.Established
	EventDREQError                        // now in timewait
	EventDREQReceived                     // to be answered with ReplyDisconnect
	EventDREPReceived                     // now in timewait
	EventTimewaitExit                     // now idle
	EventMRAReceived                      // the answer takes longer
	EventREJReceived                      // now idle, or in timewait
	EventLAPError                         // the alternate path stays as before
	EventLAPReceived                      // to be answered with ReplyAlternatePath
	EventAPRReceived                      //
	EventSIDRREQError                     // now idle
	EventSIDRREQReceived                  // ID is new, and its consumer's to destroy
	EventSIDRREPReceived                  // now idle
)

var eventNames = [...]string{
	"REQ error", "REQ received", "REP error", "REP received", "RTU received", "user established",
	"DREQ error", "DREQ received", "DREP received", "timewait exit", "MRA received", "REJ received",
	"LAP error", "LAP received", "APR received", "SIDR_REQ error", "SIDR_REQ received", "SIDR_REP received",
}

// String says the type in words.
func (t EventType) String() string {
	if int(t) < len(eventNames) {
		return eventNames[t]
	}
	return "unknown event"
}

// Event is something that happened to an id.
type Event struct {
	Type EventType
	ID   *ID
	// Listener is the id that the REQ or SIDR_REQ came to.
	Listener *ID
	// PrivateData is the whole field of a received message, so as long as its
	// maximum and filled up with zeros.
	PrivateData []byte

	// The member that belongs to the type is set.
	REQ            *RequestReceived
	REP            *ReplyReceived
	REJ            *RejectReceived
	SIDRREQ        *SIDRRequestReceived
	SIDRREP        *SIDRReplyReceived
	APR            *AlternatePathReplied
	AlternatePath  *mad.PathRecord // of a LAP, as seen from here
	ServiceTimeout uint8           // of an MRA
}

// RequestReceived is a REQ, as its receiver sees it: paths begin here, and
// resources are what is left to ourselves (ib_cm_req_event_param).
type RequestReceived struct {
	PKey                    mad.PKey // that the REQ was sent under
	Primary                 mad.PathRecord
	Alternate               *mad.PathRecord // or nil
	RemoteCAGUID            mad.GUID
	RemoteQKey              uint32
	RemoteQPN               uint32
	QPType                  QPType // 0 if unknown
	StartingPSN             uint32
	ResponderResources      uint8 // the peer's InitiatorDepth
	InitiatorDepth          uint8 // the peer's ResponderResources
	LocalCMResponseTimeout  uint8 // in which the peer wants our answer
	RemoteCMResponseTimeout uint8 // in which it answers
	FlowControl             bool
	RetryCount              uint8
	RNRRetryCount           uint8
	SRQ                     bool
	ECE                     ECE
}

// ReplyReceived is a REP, as its receiver sees it (ib_cm_rep_event_param).
type ReplyReceived struct {
	RemoteCAGUID       mad.GUID
	RemoteQKey         uint32
	RemoteQPN          uint32
	StartingPSN        uint32
	ResponderResources uint8 // the peer's InitiatorDepth
	InitiatorDepth     uint8 // the peer's ResponderResources
	TargetACKDelay     uint8
	FailoverAccepted   mad.Failover
	FlowControl        bool
	RNRRetryCount      uint8
	SRQ                bool
	ECE                ECE
}

// RejectReceived is a REJ.
type RejectReceived struct {
	Reason mad.RejectReason
	Info   []byte // additional rejection information
}

// SIDRRequestReceived is a SIDR_REQ (ib_cm_sidr_req_event_param).
type SIDRRequestReceived struct {
	ServiceID   uint64
	PKey        mad.PKey          // that the message names
	MessagePKey mad.PKey          // that it was sent under
	From        mad.AddressVector // where the answer goes
}

// SIDRReplyReceived is a SIDR_REP (ib_cm_sidr_rep_event_param).
type SIDRReplyReceived struct {
	Status mad.SIDRStatus
	QPN    uint32
	QKey   uint32
	Info   []byte
}

// AlternatePathReplied is an APR.
type AlternatePathReplied struct {
	Status mad.APStatus
	Info   []byte
}
