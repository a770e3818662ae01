// Package ucma connects by the RDMA CM: what a program writes to
// /dev/infiniband/rdma_cm to have connections made by the kernel, and what comes
// back. It makes no queue pairs.
//
// An [Opener] does it all, each step timed, named and checked. A path that the
// subnet administrator gave goes into the connection, and what the kernel then
// reports is compared with it:
//
//	kernel := ucma.Opener(func() (ucma.Device, error) { return ucma.Open(ucma.Config{}) })
//	conn, err := kernel.Connect(ctx, ucma.Target{Addr: addr}, ucma.ConnectConfig{Path: admin})
//	listener, err := kernel.Listen(ctx, addr, ucma.ListenConfig{})
//	group, err := kernel.Join(ctx, addr, ucma.JoinConfig{})
//
// A [Channel] is an open device with its events, an [ID] what librdmacm calls
// rdma_cm_id: it knows its state, and refuses what the kernel would refuse.
//
// # Commands
//
// A command is one write(2) of a header and a structure; its response is stored
// by the kernel at the address that stands in the structure.
//
// Two kernels have this interface, with other numbers, sizes and offsets. Each
// is a [Dialect], a table: [Linux] (include/uapi/rdma/rdma_user_cm.h, ABI version
// 4, as in rdma-core's newest headers) and [Illumos] (sol_ucma, sys/ib/clients/
// of/rdma/rdma_user_cm.h). The same Go structures and the same code serve both.
//
//	cmd, err := ucma.Linux.AppendCommand(nil, ucma.CreateID{UID: 1, PS: ucma.PortSpaceTCP})
//	var resp ucma.CreateIDResp
//	err = ucma.Do(dev, ucma.CreateID{UID: 1, PS: ucma.PortSpaceTCP}, &resp)
//
// Numbers are in the machine's byte order where nothing else is said; addresses,
// GIDs, LIDs and keys of path records are big-endian, as on the wire. In Go
// structures all numbers are plain numbers.
//
// The code for illumos was written from the sources of sol_ucma and has not been
// run on it.
package ucma

import (
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Command is a command to the kernel's RDMA CM: one of the structures of this
// package with that method.
type Command interface {
	Op() Op
	body() body // a pointer to a copy
}

// Response is what the kernel stores for a command: a pointer to one of the
// structures of this package whose name ends in Resp, or to a [QPAttr].
type Response interface {
	body
}

// MaxPrivateData is how much private data the structures have room for
// (RDMA_MAX_PRIVATE_DATA). What can be sent is less: see
// [Dialect.PrivateDataLimit].
const MaxPrivateData = 256

// ConnParam are the parameters of a connection (struct rdma_ucm_conn_param). In
// an event PrivateData has the greatest length that the message could have had,
// padded with zeros: the sender's length is not told.
type ConnParam struct {
	QPNum              uint32 // 24 bits
	QKey               uint32 // of UD ids bound to an AF_IB address; illumos has none
	PrivateData        []byte
	SRQ                bool
	ResponderResources uint8
	InitiatorDepth     uint8
	FlowControl        bool
	RetryCount         uint8 // 3 bits
	RNRRetryCount      uint8 // 3 bits; 7 is for ever
	Valid              bool  // CONNECT needs it; ACCEPT without it sends the RTU
}

// UDParam are the parameters of an event of a UD id (struct rdma_ucm_ud_param).
type UDParam struct {
	QPNum       uint32
	QKey        uint32
	AH          AHAttr
	PrivateData []byte // padded, as in ConnParam
}

// ECE are the options of enhanced connection establishment (struct
// rdma_ucm_ece). Linux only.
type ECE struct {
	VendorID uint32
	AttrMod  uint32
}

// CreateID makes an id. Response: CreateIDResp.
type CreateID struct {
	UID    uint64 // comes back in every event; Linux drops all events of an id with 0
	PS     PortSpace
	QPType QPType // of PortSpaceIB; the other port spaces have their own. illumos has no such field
}

// DestroyID ends an id; its events that wait are dropped, on illumos those of
// all ids of the file. Response: DestroyIDResp.
type DestroyID struct{ ID uint32 }

// BindIP binds an id to an IP address of this host (BIND_ADDR on illumos).
type BindIP struct {
	ID   uint32
	Addr Sockaddr
}

// ResolveIP finds the device and neighbour for an IP address (RESOLVE_ADDR on
// illumos). Events: ADDR_RESOLVED, ADDR_ERROR.
type ResolveIP struct {
	ID      uint32
	Src     Sockaddr // zero: the kernel chooses
	Dst     Sockaddr
	Timeout time.Duration // in ms, rounded up
}

// ResolveRoute asks for a path. Events: ROUTE_RESOLVED, ROUTE_ERROR.
type ResolveRoute struct {
	ID      uint32
	Timeout time.Duration // in ms, rounded up; Linux refuses 0
}

// QueryRoute asks for an id's addresses and paths. Response: QueryRouteResp.
type QueryRoute struct{ ID uint32 }

// Connect sends a REQ, or SIDR_REQ for a UD id.
type Connect struct {
	ID    uint32
	Param ConnParam
	ECE   *ECE // nil: the shorter form, which all kernels know
}

// Listen waits for connections.
type Listen struct {
	ID      uint32
	Backlog uint32 // 0 or too large: as many as the kernel allows
}

// Accept sends a REP or SIDR_REP, or the RTU if Param.Valid is not set.
type Accept struct {
	UID   uint64 // of the id from here on; counts with Param.Valid
	ID    uint32
	Param ConnParam
	ECE   *ECE
}

// Reject sends a REJ.
type Reject struct {
	ID          uint32
	Reason      RejectReason // 0 is consumer defined, which is all that illumos has
	PrivateData []byte
}

// Disconnect sends a DREQ, or the DREP.
type Disconnect struct{ ID uint32 }

// InitQPAttr asks for the attributes that bring the id's queue pair into a
// state. Response: QPAttr.
type InitQPAttr struct {
	ID    uint32
	State QPState
}

// GetEvent takes the oldest event of the file. It fails with EAGAIN if there is
// none. Response: EventResp.
type GetEvent struct{}

// SetOption sets an option of an id; see SetTOS and the other functions that
// make one. illumos refuses all.
type SetOption struct {
	ID    uint32
	Level OptionLevel
	Name  uint32
	// Value is not part of the command: it is the memory that the command points
	// to, and goes to Device.Exec beside it. A parsed command has none.
	Value []byte
	Len   uint32 // of Value, in a parsed command; 0 means len(Value)
}

// Notify tells of an event of the id's queue pair; only 4 (COMM_EST) and 6
// (PATH_MIG) mean something (enum ib_event_type).
type Notify struct {
	ID    uint32
	Event uint32
}

// JoinIPMcast joins a multicast group by its IP address (JOIN_MCAST on illumos,
// which knows IPv4 only). Response: CreateIDResp, with the id of the membership.
// Events: MULTICAST_JOIN, MULTICAST_ERROR.
type JoinIPMcast struct {
	UID  uint64 // of the membership's events
	ID   uint32
	Addr Sockaddr
}

// LeaveMcast ends a membership. Response: DestroyIDResp.
type LeaveMcast struct {
	ID uint32 // of the membership
}

// MigrateID moves an id with its events to the file it is written to. Response:
// DestroyIDResp. Linux only.
type MigrateID struct {
	ID uint32
	FD uint32 // open file that the id is of now
}

// Query asks for one thing about an id. Responses: QueryAddrResp for QueryAddr
// and QueryGID, QueryPathResp for QueryPath, QueryIBServiceResp for
// QueryIBService. Linux only.
type Query struct {
	ID     uint32
	Option QueryOption
	// Records is how many paths or services the response has room for. 0: 6 or 16.
	Records int
}

// Bind binds an id to any address of this host. Linux only.
type Bind struct {
	ID   uint32
	Addr Sockaddr
}

// ResolveAddr is ResolveIP for any address. Linux only.
type ResolveAddr struct {
	ID      uint32
	Src     Sockaddr
	Dst     Sockaddr
	Timeout time.Duration
}

// JoinMcast joins a multicast group by any address. Response: CreateIDResp.
// Linux only.
type JoinMcast struct {
	UID   uint64
	ID    uint32
	Flags JoinFlags
	Addr  Sockaddr
}

// ResolveIBService asks the SA for ServiceRecords. Events: ADDRINFO_RESOLVED,
// ADDRINFO_ERROR. Linux of 2025 and later.
type ResolveIBService struct {
	ID          uint32
	ServiceID   uint64
	ServiceName [64]byte
	Flags       ServiceFlags // which of the two counts
}

// WriteCMEvent puts an event of the user's into the file's queue. Linux of 2025
// and later.
type WriteCMEvent struct {
	ID     uint32
	Event  EventType // EventUser or EventInternal
	Status int32
	Param  EventParam
}

// CreateIDResp answers CreateID, JoinIPMcast and JoinMcast (struct
// rdma_ucm_create_id_resp).
type CreateIDResp struct{ ID uint32 }

// DestroyIDResp answers DestroyID, LeaveMcast and MigrateID (struct
// rdma_ucm_destroy_id_resp, rdma_ucm_migrate_resp): how many events of the object
// have been fetched. illumos stores nothing for an id that it does not know.
type DestroyIDResp struct{ EventsReported uint32 }

// QueryRouteResp answers QueryRoute (struct rdma_ucm_query_route_resp). Of an
// AF_IB address it has 28 bytes: the lower half of the service id and what follows
// are cut off.
type QueryRouteResp struct {
	NodeGUID   mad.GUID
	Paths      [2]UserPathRec // if NumPaths is 0, the first has GIDs and P_Key alone
	Src, Dst   Sockaddr
	NumPaths   uint32
	PortNum    uint8
	IBDevIndex uint32 // 0 on illumos and in older Linux
}

// QueryAddrResp answers Query for QueryAddr and QueryGID (struct
// rdma_ucm_query_addr_resp). On an Ethernet port the P_Key is 0.
type QueryAddrResp struct {
	NodeGUID   mad.GUID
	PortNum    uint8
	PKey       mad.PKey
	Src, Dst   Sockaddr
	IBDevIndex uint32
}

// QueryPathResp answers Query for QueryPath (struct rdma_ucm_query_path_resp).
type QueryPathResp struct {
	NumPaths uint32 // that the id has
	Paths    []PathRecData
}

// QueryIBServiceResp answers Query for QueryIBService (struct
// rdma_ucm_query_ib_service_resp). Its struct ib_user_service_rec is the record
// as on the wire.
type QueryIBServiceResp struct {
	NumServiceRecs uint32 // that the id has
	Recs           []mad.ServiceRecord
}

// EventResp answers GetEvent (struct rdma_ucm_event_resp). A CONNECT_REQUEST has
// the new id in ID, and the listener's uid; on Linux that id's own uid is 0
// until it is accepted. MULTICAST events have id and uid of the membership.
type EventResp struct {
	UID    uint64
	ID     uint32
	Event  EventType
	Status int32 // negative: an errno. Positive: reason of a REJ, status of a SIDR_REP
	Param  EventParam
	ECE    ECE // Linux
}

// Conn reads the parameters of an event of an id that is not UD.
func (r *EventResp) Conn() ConnParam { return r.Param.Conn() }

// UD reads the parameters of an event of a UD id.
func (r *EventResp) UD() UDParam { return r.Param.UD() }

// EventParam are the bytes of an event's parameters: a union. Nothing in them
// tells which member they are: that follows from the type of the id, which the
// reader has to know.
type EventParam [304]byte

// QPAttr answers InitQPAttr (struct ib_uverbs_qp_attr): the attributes for
// modify_qp. Mask says which count.
type QPAttr struct {
	Mask             QPAttrMask
	State            QPState
	CurState         QPState
	PathMTU          uint32 // code, as mad.MTU
	PathMigState     uint32
	QKey             uint32
	RQPSN            uint32
	SQPSN            uint32
	DestQPNum        uint32
	QPAccessFlags    uint32
	AH               AHAttr
	AltAH            AHAttr
	MaxSendWR        uint32
	MaxRecvWR        uint32
	MaxSendSGE       uint32
	MaxRecvSGE       uint32
	MaxInlineData    uint32
	PKeyIndex        uint16
	AltPKeyIndex     uint16
	EnSQDAsyncNotify bool
	SQDraining       bool
	MaxRDAtomic      uint8
	MaxDestRDAtomic  uint8
	MinRNRTimer      uint8
	PortNum          uint8
	Timeout          uint8
	RetryCnt         uint8
	RNRRetry         uint8
	AltPortNum       uint8
	AltTimeout       uint8
}

// AHAttr is an address handle (struct ib_uverbs_ah_attr). Unlike in path records
// its DLID and flow label are in the machine's byte order.
type AHAttr struct {
	GRH         GlobalRoute
	DLID        mad.LID
	SL          uint8
	SrcPathBits uint8
	StaticRate  uint8
	IsGlobal    bool // GRH counts
	PortNum     uint8
}

// GlobalRoute is what an AHAttr says of the GRH (struct ib_uverbs_global_route).
type GlobalRoute struct {
	DGID         mad.GID
	FlowLabel    uint32
	SGIDIndex    uint8
	HopLimit     uint8
	TrafficClass uint8
}

// UserPathRec is a path as QueryRoute shows it (struct ib_user_path_rec): a
// PathRecord without ServiceID and QoSClass, one member for each field. On RoCE
// the LIDs are 0. illumos stores GIDs, LIDs and flow label in host order, which
// its dialect turns round (sol_ib_cma.c, ibt_addsvect2sa_path; not verified on
// hardware).
type UserPathRec struct {
	DGID, SGID             mad.GID
	DLID, SLID             mad.LID
	RawTraffic             uint32
	FlowLabel              uint32
	Reversible             uint32
	MTU                    uint32 // code, as mad.MTU
	PKey                   mad.PKey
	HopLimit               uint8
	TrafficClass           uint8
	NumbPath               uint8
	SL                     uint8
	MTUSelector            mad.Selector
	RateSelector           mad.Selector
	Rate                   mad.Rate
	PacketLifeTimeSelector mad.Selector
	PacketLifeTime         uint8
	Preference             uint8
}

// PathRecord is the path without ServiceID and QoSClass, which are not told.
func (r *UserPathRec) PathRecord() mad.PathRecord {
	return mad.PathRecord{
		DGID: r.DGID, SGID: r.SGID, DLID: r.DLID, SLID: r.SLID,
		RawTraffic: r.RawTraffic != 0, FlowLabel: r.FlowLabel, HopLimit: r.HopLimit, TClass: r.TrafficClass,
		Reversible: r.Reversible != 0, NumbPath: r.NumbPath, PKey: r.PKey, SL: r.SL,
		MTUSelector: r.MTUSelector, MTU: mad.MTU(r.MTU), RateSelector: r.RateSelector, Rate: r.Rate,
		PacketLifeTimeSelector: r.PacketLifeTimeSelector, PacketLifeTime: r.PacketLifeTime, Preference: r.Preference,
	}
}

// MakeUserPathRec is what QueryRoute shows of a path that was injected (kernel
// uverbs_marshall.c, ib_copy_path_rec_to_user).
func MakeUserPathRec(p *mad.PathRecord) UserPathRec {
	return UserPathRec{
		DGID: p.DGID, SGID: p.SGID, DLID: p.DLID, SLID: p.SLID,
		RawTraffic: bit(p.RawTraffic), FlowLabel: p.FlowLabel, HopLimit: p.HopLimit, TrafficClass: p.TClass,
		Reversible: bit(p.Reversible), NumbPath: p.NumbPath, PKey: p.PKey, SL: p.SL,
		MTUSelector: p.MTUSelector, MTU: uint32(p.MTU), RateSelector: p.RateSelector, Rate: p.Rate,
		PacketLifeTimeSelector: p.PacketLifeTimeSelector, PacketLifeTime: p.PacketLifeTime, Preference: p.Preference,
	}
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// PathRecData is a path with its role (struct ib_path_rec_data, 72 bytes): the
// value of the option IB_PATH, and what Query gives for QueryPath. Path is the
// record as on the wire.
type PathRecData struct {
	Flags uint32
	Path  mad.PathRecord
}

// PathRecDataSize is the size of a PathRecData in bytes.
const PathRecDataSize = 72

// PathFlags are the flags of the one path that SET_OPTION takes: GMP, PRIMARY,
// OUTBOUND and INBOUND_REVERSE. Records with others are passed over (ucma.c,
// ucma_set_ib_path).
const PathFlags = 0x2b
