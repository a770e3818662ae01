package ucma

import (
	"maps"
	"net/netip"
)

// structure is a C structure: its rows tile it.
type structure struct {
	name   string // in C
	size   int
	fields []field
}

// field is a member of a structure.
type field struct {
	off, size int
	name      string // in C, and in Linux's words where illumos has others
	form      form
}

// form is how a field is written. Anything but these is the key of a structure
// that is nested here, once or as often as it fits the size.
type form string

const (
	native   form = "native"   // a number in the machine's byte order
	signed   form = "signed"   // the same, with sign
	big      form = "big"      // a big-endian number
	octets   form = "octets"   // bytes as they are
	text     form = "text"     // bytes of a name, padded with zeros
	gid      form = "gid"      // 16 bytes as on the wire
	hostGID  form = "hostGID"  // a GID as two numbers in the machine's byte order
	address  form = "address"  // address of memory of the program
	reserved form = "reserved" // 0, or unused
	sin6     form = "sin6"     // sockaddr_in6, or a sockaddr_in in its place
	storage  form = "storage"  // sockaddr_storage of Linux
)

// Linux is the interface of the Linux kernel (include/uapi/rdma/rdma_user_cm.h).
// An older kernel knows fewer commands: it says EINVAL to those above its last.
var Linux = &Dialect{
	name:     "linux",
	device:   "dev/infiniband/rdma_cm",
	families: map[Family]uint16{AFUnspec: 0, AFInet: 2, AFInet6: 10, AFIB: 27},
	sin6:     28,
	hole:     ENOSYS,
	errnos:   linuxErrnos,
	structs:  merge(commonStructs, linuxStructs),
	commands: map[Op]command{
		OpCreateID:         {in: "create_id", out: "create_id_resp"},
		OpDestroyID:        {in: "destroy_id", out: "destroy_id_resp"},
		OpBindIP:           {in: "bind_ip"},
		OpResolveIP:        {in: "resolve_ip"},
		OpResolveRoute:     {in: "resolve_route"},
		OpQueryRoute:       {in: "query", out: "query_route_resp", minOut: 200},
		OpConnect:          {in: "connect", minIn: 280},
		OpListen:           {in: "listen"},
		OpAccept:           {in: "accept", minIn: 288},
		OpReject:           {in: "reject"},
		OpDisconnect:       {in: "disconnect"},
		OpInitQPAttr:       {in: "init_qp_attr", out: "qp_attr"},
		OpGetEvent:         {in: "get_event", out: "event_resp", minOut: 324},
		OpSetOption:        {in: "set_option"},
		OpNotify:           {in: "notify"},
		OpJoinIPMcast:      {in: "join_ip_mcast", out: "create_id_resp"},
		OpLeaveMcast:       {in: "destroy_id", out: "destroy_id_resp"},
		OpMigrateID:        {in: "migrate_id", out: "destroy_id_resp"},
		OpQuery:            {in: "query", out: "query_addr_resp", minOut: 272},
		OpBind:             {in: "bind"},
		OpResolveAddr:      {in: "resolve_addr"},
		OpJoinMcast:        {in: "join_mcast", out: "create_id_resp"},
		OpResolveIBService: {in: "resolve_ib_service"},
		OpWriteCMEvent:     {in: "write_cm_event"},
	},
	queries: map[QueryOption]command{
		QueryAddr:      {in: "query", out: "query_addr_resp", minOut: 272},
		QueryPath:      {in: "query", out: "query_path_resp"},
		QueryGID:       {in: "query", out: "query_addr_resp", minOut: 272},
		QueryIBService: {in: "query", out: "query_ib_service_resp"},
	},
	private: privateLimits{req: 92, sidrReq: 216, ipHeader: 36, rep: 196, sidrRep: 136, rej: 148},

	spaces:       []PortSpace{PortSpaceIPoIB, PortSpaceTCP, PortSpaceUDP, PortSpaceIB},
	needsValid:   true,
	needsTimeout: true,
	abiFiles:     []string{"sys/class/misc/rdma_cm/abi_version", "sys/class/infiniband_ucma/abi_version"},
	abiMin:       3,
	abiMax:       4,
}

// Illumos is the interface of sol_ucma (sys/ib/clients/of/rdma/rdma_user_cm.h,
// sol_ucma/sol_rdma_user_cm.h). Its REQ is limited for UD ids too: the kernel does
// not check it, and more overruns a buffer of 96 bytes when the id is not UD.
var Illumos = &Dialect{
	name:     "illumos",
	device:   "dev/infiniband/ofs/rdma_cm",
	families: map[Family]uint16{AFUnspec: 0, AFInet: 2, AFInet6: 26},
	sin6:     32,
	exact:    true,
	maxWrite: 512,
	hole:     EINVAL,
	errnos:   illumosErrnos,
	structs:  merge(commonStructs, illumosStructs),
	commands: map[Op]command{
		OpCreateID:     {in: "create_id", out: "create_id_resp"},
		OpDestroyID:    {in: "destroy_id", out: "destroy_id_resp"},
		OpBindIP:       {in: "bind_ip"},
		OpResolveIP:    {in: "resolve_ip"},
		OpResolveRoute: {in: "resolve_route"},
		OpQueryRoute:   {in: "query", out: "query_route_resp"},
		OpConnect:      {in: "connect"},
		OpListen:       {in: "listen"},
		OpAccept:       {in: "accept"},
		OpReject:       {in: "reject"},
		OpDisconnect:   {in: "disconnect"},
		OpInitQPAttr:   {in: "init_qp_attr", out: "qp_attr"},
		OpGetEvent:     {in: "get_event", out: "event_resp"},
		OpSetOption:    {in: "set_option"},
		OpNotify:       {in: "notify"},
		OpJoinIPMcast:  {in: "join_ip_mcast", out: "create_id_resp"},
		OpLeaveMcast:   {in: "destroy_id", out: "destroy_id_resp"},
	},
	private: privateLimits{req: 92, sidrReq: 92, ipHeader: 36, rep: 196, sidrRep: 136, rej: 148},

	spaces:    []PortSpace{PortSpaceSDP, PortSpaceIPoIB, PortSpaceTCP, PortSpaceUDP, PortSpaceSCTP},
	noOptions: true,
	groups:    netip.PrefixFrom(netip.AddrFrom4([4]byte{224}), 4),
}

// merge joins tables of structures; a test proves that they have no key in
// common.
func merge(tables ...map[string]*structure) map[string]*structure {
	all := make(map[string]*structure)
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// commonStructs are the same in both dialects.
var commonStructs = map[string]*structure{
	"hdr": {"rdma_ucm_cmd_hdr", 8, []field{
		{0, 4, "cmd", native}, {4, 2, "in", native}, {6, 2, "out", native},
	}},
	"create_id_resp": {"rdma_ucm_create_id_resp", 4, []field{{0, 4, "id", native}}},
	"destroy_id": {"rdma_ucm_destroy_id", 16, []field{
		{0, 8, "response", address}, {8, 4, "id", native}, {12, 4, "reserved", reserved},
	}},
	"destroy_id_resp": {"rdma_ucm_destroy_id_resp", 4, []field{{0, 4, "events_reported", native}}},
	"resolve_route": {"rdma_ucm_resolve_route", 8, []field{
		{0, 4, "id", native}, {4, 4, "timeout_ms", native},
	}},
	"listen": {"rdma_ucm_listen", 8, []field{
		{0, 4, "id", native}, {4, 4, "backlog", native},
	}},
	"disconnect": {"rdma_ucm_disconnect", 4, []field{{0, 4, "id", native}}},
	"init_qp_attr": {"rdma_ucm_init_qp_attr", 16, []field{
		{0, 8, "response", address}, {8, 4, "id", native}, {12, 4, "qp_state", native},
	}},
	"notify": {"rdma_ucm_notify", 8, []field{
		{0, 4, "id", native}, {4, 4, "event", native},
	}},
	"get_event": {"rdma_ucm_get_event", 8, []field{{0, 8, "response", address}}},
	"set_option": {"rdma_ucm_set_option", 24, []field{
		{0, 8, "optval", address}, {8, 4, "id", native}, {12, 4, "level", native}, {16, 4, "optname", native}, {20, 4, "optlen", native},
	}},
	"global_route": {"ib_uverbs_global_route", 24, []field{
		{0, 16, "dgid", gid}, {16, 4, "flow_label", native},
		{20, 1, "sgid_index", native}, {21, 1, "hop_limit", native}, {22, 1, "traffic_class", native}, {23, 1, "reserved", reserved},
	}},
	"ah_attr": {"ib_uverbs_ah_attr", 32, []field{
		{0, 24, "grh", "global_route"}, {24, 2, "dlid", native}, {26, 1, "sl", native}, {27, 1, "src_path_bits", native},
		{28, 1, "static_rate", native}, {29, 1, "is_global", native}, {30, 1, "port_num", native}, {31, 1, "reserved", reserved},
	}},
	"qp_attr": {"ib_uverbs_qp_attr", 144, []field{
		{0, 4, "qp_attr_mask", native}, {4, 4, "qp_state", native}, {8, 4, "cur_qp_state", native}, {12, 4, "path_mtu", native},
		{16, 4, "path_mig_state", native}, {20, 4, "qkey", native}, {24, 4, "rq_psn", native}, {28, 4, "sq_psn", native},
		{32, 4, "dest_qp_num", native}, {36, 4, "qp_access_flags", native},
		{40, 32, "ah_attr", "ah_attr"}, {72, 32, "alt_ah_attr", "ah_attr"},
		{104, 4, "max_send_wr", native}, {108, 4, "max_recv_wr", native}, {112, 4, "max_send_sge", native}, {116, 4, "max_recv_sge", native},
		{120, 4, "max_inline_data", native}, {124, 2, "pkey_index", native}, {126, 2, "alt_pkey_index", native},
		{128, 1, "en_sqd_async_notify", native}, {129, 1, "sq_draining", native}, {130, 1, "max_rd_atomic", native},
		{131, 1, "max_dest_rd_atomic", native}, {132, 1, "min_rnr_timer", native}, {133, 1, "port_num", native}, {134, 1, "timeout", native},
		{135, 1, "retry_cnt", native}, {136, 1, "rnr_retry", native}, {137, 1, "alt_port_num", native}, {138, 1, "alt_timeout", native},
		{139, 5, "reserved", reserved},
	}},
}

var linuxStructs = map[string]*structure{
	"ud_param": {"rdma_ucm_ud_param", 304, []field{
		{0, 4, "qp_num", native}, {4, 4, "qkey", native}, {8, 32, "ah_attr", "ah_attr"}, {40, 256, "private_data", octets},
		{296, 1, "private_data_len", native}, {297, 7, "reserved", reserved},
	}},
	"path_rec_data": {"ib_path_rec_data", 72, []field{
		{0, 4, "flags", native}, {4, 4, "reserved", reserved}, {8, 64, "path_rec", octets},
	}},
	"conn_param": {"rdma_ucm_conn_param", 272, []field{
		{0, 4, "qp_num", native}, {4, 4, "qkey", native}, {8, 256, "private_data", octets}, {264, 1, "private_data_len", native},
		{265, 1, "srq", native}, {266, 1, "responder_resources", native}, {267, 1, "initiator_depth", native}, {268, 1, "flow_control", native},
		{269, 1, "retry_count", native}, {270, 1, "rnr_retry_count", native}, {271, 1, "valid", native},
	}},
	"create_id": {"rdma_ucm_create_id", 24, []field{
		{0, 8, "uid", native}, {8, 8, "response", address}, {16, 2, "ps", native}, {18, 1, "qp_type", native}, {19, 5, "reserved", reserved},
	}},
	"bind_ip": {"rdma_ucm_bind_ip", 40, []field{
		{0, 8, "response", reserved}, {8, 28, "addr", sin6}, {36, 4, "id", native},
	}},
	"resolve_ip": {"rdma_ucm_resolve_ip", 64, []field{
		{0, 28, "src_addr", sin6}, {28, 28, "dst_addr", sin6}, {56, 4, "id", native}, {60, 4, "timeout_ms", native},
	}},
	"query": {"rdma_ucm_query", 16, []field{
		{0, 8, "response", address}, {8, 4, "id", native}, {12, 4, "option", native},
	}},
	"query_route_resp": {"rdma_ucm_query_route_resp", 208, []field{
		{0, 8, "node_guid", big}, {8, 128, "ib_route", "user_path_rec"}, {136, 28, "src_addr", sin6}, {164, 28, "dst_addr", sin6},
		{192, 4, "num_paths", native}, {196, 1, "port_num", native}, {197, 3, "reserved", reserved},
		{200, 4, "ibdev_index", native}, {204, 4, "reserved1", reserved},
	}},
	"query_addr_resp": {"rdma_ucm_query_addr_resp", 280, []field{
		{0, 8, "node_guid", big}, {8, 1, "port_num", native}, {9, 1, "reserved", reserved}, {10, 2, "pkey", big},
		{12, 2, "src_size", native}, {14, 2, "dst_size", native}, {16, 128, "src_addr", storage}, {144, 128, "dst_addr", storage},
		{272, 4, "ibdev_index", native}, {276, 4, "reserved1", reserved},
	}},
	"query_path_resp": {"rdma_ucm_query_path_resp", 8, []field{
		{0, 4, "num_paths", native}, {4, 4, "reserved", reserved},
	}},
	"query_ib_service_resp": {"rdma_ucm_query_ib_service_resp", 8, []field{
		{0, 4, "num_service_recs", native}, {4, 4, "reserved", reserved},
	}},
	"ece": {"rdma_ucm_ece", 8, []field{
		{0, 4, "vendor_id", native}, {4, 4, "attr_mod", native},
	}},
	"connect": {"rdma_ucm_connect", 288, []field{
		{0, 272, "conn_param", "conn_param"}, {272, 4, "id", native}, {276, 4, "reserved", reserved}, {280, 8, "ece", "ece"},
	}},
	"accept": {"rdma_ucm_accept", 296, []field{
		{0, 8, "uid", native}, {8, 272, "conn_param", "conn_param"}, {280, 4, "id", native}, {284, 4, "reserved", reserved}, {288, 8, "ece", "ece"},
	}},
	"reject": {"rdma_ucm_reject", 264, []field{
		{0, 4, "id", native}, {4, 1, "private_data_len", native}, {5, 1, "reason", native}, {6, 2, "reserved", reserved}, {8, 256, "private_data", octets},
	}},
	"join_ip_mcast": {"rdma_ucm_join_ip_mcast", 48, []field{
		{0, 8, "response", address}, {8, 8, "uid", native}, {16, 28, "addr", sin6}, {44, 4, "id", native},
	}},
	"event_resp": {"rdma_ucm_event_resp", 336, []field{
		{0, 8, "uid", native}, {8, 4, "id", native}, {12, 4, "event", native}, {16, 4, "status", signed}, {20, 304, "param", octets},
		{324, 4, "reserved", reserved}, {328, 8, "ece", "ece"},
	}},
	"migrate_id": {"rdma_ucm_migrate_id", 16, []field{
		{0, 8, "response", address}, {8, 4, "id", native}, {12, 4, "fd", native},
	}},
	"bind": {"rdma_ucm_bind", 136, []field{
		{0, 4, "id", native}, {4, 2, "addr_size", native}, {6, 2, "reserved", reserved}, {8, 128, "addr", storage},
	}},
	"resolve_addr": {"rdma_ucm_resolve_addr", 272, []field{
		{0, 4, "id", native}, {4, 4, "timeout_ms", native}, {8, 2, "src_size", native}, {10, 2, "dst_size", native}, {12, 4, "reserved", reserved},
		{16, 128, "src_addr", storage}, {144, 128, "dst_addr", storage},
	}},
	"join_mcast": {"rdma_ucm_join_mcast", 152, []field{
		{0, 8, "response", address}, {8, 8, "uid", native}, {16, 4, "id", native}, {20, 2, "addr_size", native}, {22, 2, "join_flags", native},
		{24, 128, "addr", storage},
	}},
	"ib_service": {"rdma_ucm_ib_service", 80, []field{
		{0, 8, "service_id", native}, {8, 64, "service_name", text}, {72, 4, "flags", native}, {76, 4, "reserved", reserved},
	}},
	"resolve_ib_service": {"rdma_ucm_resolve_ib_service", 88, []field{
		{0, 4, "id", native}, {4, 4, "reserved", reserved}, {8, 80, "ibs", "ib_service"},
	}},
	"write_cm_event": {"rdma_ucm_write_cm_event", 320, []field{
		{0, 4, "id", native}, {4, 4, "reserved", reserved}, {8, 4, "event", native}, {12, 4, "status", signed}, {16, 304, "param", octets},
	}},
	"user_path_rec": {"ib_user_path_rec", 64, []field{
		{0, 16, "dgid", gid}, {16, 16, "sgid", gid}, {32, 2, "dlid", big}, {34, 2, "slid", big},
		{36, 4, "raw_traffic", native}, {40, 4, "flow_label", big}, {44, 4, "reversible", native}, {48, 4, "mtu", native}, {52, 2, "pkey", big},
		{54, 1, "hop_limit", native}, {55, 1, "traffic_class", native}, {56, 1, "numb_path", native}, {57, 1, "sl", native},
		{58, 1, "mtu_selector", native}, {59, 1, "rate_selector", native}, {60, 1, "rate", native},
		{61, 1, "packet_life_time_selector", native}, {62, 1, "packet_life_time", native}, {63, 1, "preference", native},
	}},
	"user_service_rec": {"ib_user_service_rec", 176, []field{
		{0, 8, "id", big}, {8, 16, "gid", gid}, {24, 2, "pkey", big}, {26, 2, "reserved", reserved}, {28, 4, "lease", big},
		{32, 16, "key", octets}, {48, 64, "name", text}, {112, 16, "data_8", octets}, {128, 16, "data_16", octets},
		{144, 16, "data_32", octets}, {160, 16, "data_64", octets},
	}},
}

// illumosStructs are packed; a sockaddr_in6 has 32 bytes.
var illumosStructs = map[string]*structure{
	"ud_param": {"rdma_ucm_ud_param", 308, []field{
		{0, 4, "qp_num", native}, {4, 4, "qkey", native}, {8, 32, "ah_attr", "ah_attr"}, {40, 256, "private_data", octets},
		{296, 1, "private_data_len", native}, {297, 7, "reserved", reserved}, {304, 4, "reserved2", reserved},
	}},
	"conn_param": {"rdma_ucm_conn_param", 272, []field{
		{0, 4, "qp_num", native}, {4, 4, "reserved", reserved}, {8, 256, "private_data", octets}, {264, 1, "private_data_len", native},
		{265, 1, "srq", native}, {266, 1, "responder_resources", native}, {267, 1, "initiator_depth", native}, {268, 1, "flow_control", native},
		{269, 1, "retry_count", native}, {270, 1, "rnr_retry_count", native}, {271, 1, "valid", native},
	}},
	"create_id": {"rdma_ucm_create_id", 24, []field{
		{0, 8, "uid", native}, {8, 8, "response", address}, {16, 2, "ps", native}, {18, 6, "reserved", reserved},
	}},
	"bind_ip": {"rdma_ucm_bind_addr", 48, []field{
		{0, 8, "response", reserved}, {8, 32, "addr", sin6}, {40, 4, "id", native}, {44, 4, "reserved", reserved},
	}},
	"resolve_ip": {"rdma_ucm_resolve_addr", 72, []field{
		{0, 32, "src_addr", sin6}, {32, 32, "dst_addr", sin6}, {64, 4, "id", native}, {68, 4, "timeout_ms", native},
	}},
	"query": {"rdma_ucm_query_route", 16, []field{
		{0, 8, "response", address}, {8, 4, "id", native}, {12, 4, "reserved", reserved},
	}},
	"query_route_resp": {"rdma_ucm_query_route_resp", 208, []field{
		{0, 8, "node_guid", big}, {8, 128, "ib_route", "user_path_rec"}, {136, 32, "src_addr", sin6}, {168, 32, "dst_addr", sin6},
		{200, 4, "num_paths", native}, {204, 1, "port_num", native}, {205, 3, "reserved", reserved},
	}},
	"connect": {"rdma_ucm_connect", 280, []field{
		{0, 272, "conn_param", "conn_param"}, {272, 4, "id", native}, {276, 4, "reserved", reserved},
	}},
	"accept": {"rdma_ucm_accept", 288, []field{
		{0, 8, "uid", native}, {8, 272, "conn_param", "conn_param"}, {280, 4, "id", native}, {284, 4, "reserved", reserved},
	}},
	"reject": {"rdma_ucm_reject", 264, []field{
		{0, 4, "id", native}, {4, 1, "private_data_len", native}, {5, 3, "reserved", reserved}, {8, 256, "private_data", octets},
	}},
	"join_ip_mcast": {"rdma_ucm_join_mcast", 56, []field{
		{0, 8, "response", address}, {8, 8, "uid", native}, {16, 32, "addr", sin6}, {48, 4, "id", native}, {52, 4, "reserved", reserved},
	}},
	"event_resp": {"rdma_ucm_event_resp", 328, []field{
		{0, 8, "uid", native}, {8, 4, "id", native}, {12, 4, "event", native}, {16, 4, "status", signed}, {20, 308, "param", octets},
	}},
	// Host order: see UserPathRec.
	"user_path_rec": {"ib_user_path_rec", 64, []field{
		{0, 16, "dgid", hostGID}, {16, 16, "sgid", hostGID}, {32, 2, "dlid", native}, {34, 2, "slid", native},
		{36, 4, "raw_traffic", native}, {40, 4, "flow_label", native}, {44, 4, "reversible", native}, {48, 4, "mtu", native}, {52, 2, "pkey", big},
		{54, 1, "hop_limit", native}, {55, 1, "traffic_class", native}, {56, 1, "numb_path", native}, {57, 1, "sl", native},
		{58, 1, "mtu_selector", native}, {59, 1, "rate_selector", native}, {60, 1, "rate", native},
		{61, 1, "packet_life_time_selector", native}, {62, 1, "packet_life_time", native}, {63, 1, "preference", native},
	}},
}
