package ucma

import (
	"fmt"
	"strings"

	"github.com/ibsm/ibsm/mad"
)

// Op is a command, by its number in Linux. Where illumos has it, it has the same
// number there; the names are Linux's.
type Op uint32

// The commands (include/uapi/rdma/rdma_user_cm.h). 13 was GET_OPTION.
const (
	OpCreateID         Op = 0
	OpDestroyID        Op = 1
	OpBindIP           Op = 2 // BIND_ADDR on illumos
	OpResolveIP        Op = 3 // RESOLVE_ADDR on illumos
	OpResolveRoute     Op = 4
	OpQueryRoute       Op = 5
	OpConnect          Op = 6
	OpListen           Op = 7
	OpAccept           Op = 8
	OpReject           Op = 9
	OpDisconnect       Op = 10
	OpInitQPAttr       Op = 11
	OpGetEvent         Op = 12
	OpSetOption        Op = 14
	OpNotify           Op = 15
	OpJoinIPMcast      Op = 16 // JOIN_MCAST on illumos
	OpLeaveMcast       Op = 17
	OpMigrateID        Op = 18
	OpQuery            Op = 19
	OpBind             Op = 20
	OpResolveAddr      Op = 21
	OpJoinMcast        Op = 22
	OpResolveIBService Op = 23
	OpWriteCMEvent     Op = 24
)

var opNames = map[Op]string{
	OpCreateID: "CREATE_ID", OpDestroyID: "DESTROY_ID", OpBindIP: "BIND_IP", OpResolveIP: "RESOLVE_IP",
	OpResolveRoute: "RESOLVE_ROUTE", OpQueryRoute: "QUERY_ROUTE", OpConnect: "CONNECT", OpListen: "LISTEN",
	OpAccept: "ACCEPT", OpReject: "REJECT", OpDisconnect: "DISCONNECT", OpInitQPAttr: "INIT_QP_ATTR",
	OpGetEvent: "GET_EVENT", OpSetOption: "SET_OPTION", OpNotify: "NOTIFY", OpJoinIPMcast: "JOIN_IP_MCAST",
	OpLeaveMcast: "LEAVE_MCAST", OpMigrateID: "MIGRATE_ID", OpQuery: "QUERY", OpBind: "BIND",
	OpResolveAddr: "RESOLVE_ADDR", OpJoinMcast: "JOIN_MCAST", OpResolveIBService: "RESOLVE_IB_SERVICE",
	OpWriteCMEvent: "WRITE_CM_EVENT", opNone: "command",
}

// String is the name in Linux's header, "CREATE_ID".
func (op Op) String() string { return named(opNames, op, "command") }

// named looks a number's name up; one that has none is shown as what it is.
func named[T ~uint8 | ~uint16 | ~uint32](names map[T]string, v T, what string) string {
	if s, ok := names[v]; ok {
		return s
	}
	return fmt.Sprintf("%s %d", what, v)
}

// PortSpace is where an id's port number belongs (enum rdma_ucm_port_space). It
// stands in the service id: port space << 16 | port.
type PortSpace uint16

// Port spaces. illumos lacks IB, and has SDP and SCTP, which Linux lacks.
const (
	PortSpaceSDP   PortSpace = 0x0001 // illumos
	PortSpaceIPoIB PortSpace = 0x0002
	PortSpaceTCP   PortSpace = 0x0106
	PortSpaceUDP   PortSpace = 0x0111
	PortSpaceIB    PortSpace = 0x013f // Linux
	PortSpaceSCTP  PortSpace = 0x0183 // illumos
)

var portSpaceNames = map[PortSpace]string{
	PortSpaceSDP: "SDP", PortSpaceIPoIB: "IPOIB", PortSpaceTCP: "TCP", PortSpaceUDP: "UDP", PortSpaceIB: "IB", PortSpaceSCTP: "SCTP",
}

// String is the name, "TCP".
func (p PortSpace) String() string { return named(portSpaceNames, p, "port space") }

// QPType is the type of a queue pair (enum ib_qp_type).
type QPType uint8

// Types of queue pairs that ids have.
const (
	QPTypeRC      QPType = 2
	QPTypeUC      QPType = 3
	QPTypeUD      QPType = 4
	QPTypeXRCSend QPType = 9
	QPTypeXRCRecv QPType = 10
)

var qpTypeNames = map[QPType]string{
	QPTypeRC: "RC", QPTypeUC: "UC", QPTypeUD: "UD", QPTypeXRCSend: "XRC_INI", QPTypeXRCRecv: "XRC_TGT",
}

// String is the name, "RC".
func (t QPType) String() string { return named(qpTypeNames, t, "QP type") }

// QPState is a state of a queue pair (enum ib_qp_state).
type QPState uint32

// States of a queue pair.
const (
	QPStateReset QPState = 0
	QPStateInit  QPState = 1
	QPStateRTR   QPState = 2
	QPStateRTS   QPState = 3
	QPStateSQD   QPState = 4
	QPStateSQE   QPState = 5
	QPStateErr   QPState = 6
)

var qpStateNames = map[QPState]string{
	QPStateReset: "RESET", QPStateInit: "INIT", QPStateRTR: "RTR", QPStateRTS: "RTS", QPStateSQD: "SQD", QPStateSQE: "SQE", QPStateErr: "ERR",
}

// String is the name, "RTR".
func (s QPState) String() string { return named(qpStateNames, s, "QP state") }

// QPAttrMask says which attributes of a QPAttr count (enum ib_qp_attr_mask).
type QPAttrMask uint32

// Bits of a QPAttrMask.
const (
	QPAttrState           QPAttrMask = 1 << 0
	QPAttrCurState        QPAttrMask = 1 << 1
	QPAttrEnSQDNotify     QPAttrMask = 1 << 2
	QPAttrAccessFlags     QPAttrMask = 1 << 3
	QPAttrPKeyIndex       QPAttrMask = 1 << 4
	QPAttrPort            QPAttrMask = 1 << 5
	QPAttrQKey            QPAttrMask = 1 << 6
	QPAttrAV              QPAttrMask = 1 << 7
	QPAttrPathMTU         QPAttrMask = 1 << 8
	QPAttrTimeout         QPAttrMask = 1 << 9
	QPAttrRetryCnt        QPAttrMask = 1 << 10
	QPAttrRNRRetry        QPAttrMask = 1 << 11
	QPAttrRQPSN           QPAttrMask = 1 << 12
	QPAttrMaxRDAtomic     QPAttrMask = 1 << 13
	QPAttrAltPath         QPAttrMask = 1 << 14
	QPAttrMinRNRTimer     QPAttrMask = 1 << 15
	QPAttrSQPSN           QPAttrMask = 1 << 16
	QPAttrMaxDestRDAtomic QPAttrMask = 1 << 17
	QPAttrPathMigState    QPAttrMask = 1 << 18
	QPAttrCap             QPAttrMask = 1 << 19
	QPAttrDestQPN         QPAttrMask = 1 << 20
)

// by bit
var qpAttrNames = []string{
	"STATE", "CUR_STATE", "EN_SQD_ASYNC_NOTIFY", "ACCESS_FLAGS", "PKEY_INDEX", "PORT", "QKEY", "AV", "PATH_MTU", "TIMEOUT",
	"RETRY_CNT", "RNR_RETRY", "RQ_PSN", "MAX_QP_RD_ATOMIC", "ALT_PATH", "MIN_RNR_TIMER", "SQ_PSN", "MAX_DEST_RD_ATOMIC",
	"PATH_MIG_STATE", "CAP", "DEST_QPN",
}

// String joins the names of the bits, "STATE|PKEY_INDEX|PORT".
func (m QPAttrMask) String() string {
	var names []string
	for i, n := range qpAttrNames {
		if m&(1<<i) != 0 {
			names = append(names, n)
			m &^= 1 << i
		}
	}
	if m != 0 || len(names) == 0 {
		names = append(names, fmt.Sprintf("%#x", uint32(m)))
	}
	return strings.Join(names, "|")
}

// EventType is what an event tells (enum rdma_cm_event_type).
type EventType uint32

// Events. illumos has those up to EventAddrChange.
const (
	EventAddrResolved     EventType = 0
	EventAddrError        EventType = 1
	EventRouteResolved    EventType = 2
	EventRouteError       EventType = 3
	EventConnectRequest   EventType = 4
	EventConnectResponse  EventType = 5
	EventConnectError     EventType = 6
	EventUnreachable      EventType = 7
	EventRejected         EventType = 8
	EventEstablished      EventType = 9
	EventDisconnected     EventType = 10
	EventDeviceRemoval    EventType = 11
	EventMulticastJoin    EventType = 12
	EventMulticastError   EventType = 13
	EventAddrChange       EventType = 14
	EventTimewaitExit     EventType = 15
	EventAddrInfoResolved EventType = 16
	EventAddrInfoError    EventType = 17
	EventUser             EventType = 18
	EventInternal         EventType = 19
)

var eventNames = map[EventType]string{
	EventAddrResolved: "ADDR_RESOLVED", EventAddrError: "ADDR_ERROR", EventRouteResolved: "ROUTE_RESOLVED", EventRouteError: "ROUTE_ERROR",
	EventConnectRequest: "CONNECT_REQUEST", EventConnectResponse: "CONNECT_RESPONSE", EventConnectError: "CONNECT_ERROR",
	EventUnreachable: "UNREACHABLE", EventRejected: "REJECTED", EventEstablished: "ESTABLISHED", EventDisconnected: "DISCONNECTED",
	EventDeviceRemoval: "DEVICE_REMOVAL", EventMulticastJoin: "MULTICAST_JOIN", EventMulticastError: "MULTICAST_ERROR",
	EventAddrChange: "ADDR_CHANGE", EventTimewaitExit: "TIMEWAIT_EXIT", EventAddrInfoResolved: "ADDRINFO_RESOLVED",
	EventAddrInfoError: "ADDRINFO_ERROR", EventUser: "USER", EventInternal: "INTERNAL",
}

// String is the name, "ADDR_RESOLVED".
func (e EventType) String() string { return named(eventNames, e, "event") }

// QueryOption is what Query asks for.
type QueryOption uint32

// What Query can ask for.
const (
	QueryAddr      QueryOption = 0 // both addresses, as the id has them
	QueryPath      QueryOption = 1 // paths, as on the wire
	QueryGID       QueryOption = 2 // both addresses as AF_IB
	QueryIBService QueryOption = 3 // ServiceRecords; the newest Linux only
)

var queryNames = map[QueryOption]string{QueryAddr: "ADDR", QueryPath: "PATH", QueryGID: "GID", QueryIBService: "IB_SERVICE"}

// String is the name, "ADDR".
func (o QueryOption) String() string { return named(queryNames, o, "query") }

// OptionLevel is the level of an option of SetOption.
type OptionLevel uint32

// Levels of options.
const (
	OptionLevelID OptionLevel = 0
	OptionLevelIB OptionLevel = 1
)

// Options: of OptionLevelID the first four, of OptionLevelIB the last.
const (
	OptionTOS        uint32 = 0 // one byte
	OptionReuseAddr  uint32 = 1 // int
	OptionAFOnly     uint32 = 2 // int
	OptionACKTimeout uint32 = 3 // one byte
	OptionIBPath     uint32 = 1 // PathRecData, one or more
)

var optionNames = map[OptionLevel]map[uint32]string{
	OptionLevelID: {OptionTOS: "TOS", OptionReuseAddr: "REUSEADDR", OptionAFOnly: "AFONLY", OptionACKTimeout: "ACK_TIMEOUT"},
	OptionLevelIB: {OptionIBPath: "IB_PATH"},
}

// JoinFlags is how JoinMcast joins.
type JoinFlags uint16

// How to join; others are refused.
const (
	JoinFullMember         JoinFlags = 0
	JoinSendOnlyFullMember JoinFlags = 1
)

// RejectReason is the reason of a REJ.
type RejectReason = mad.RejectReason

// The reasons that Reject takes; others are refused.
const (
	RejectConsumerDefined          = mad.RejectConsumerDefined
	RejectVendorOptionNotSupported = mad.RejectVendorOptionNotSupported
)

// ServiceFlags says what ResolveIBService looks for.
type ServiceFlags uint32

// What ResolveIBService can look for.
const (
	ServiceByID   ServiceFlags = 1
	ServiceByName ServiceFlags = 2
)
