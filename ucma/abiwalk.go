package ucma

import "github.com/ibsm/ibsm/mad"

// The commands' numbers, and where their bodies are.

func (CreateID) Op() Op         { return OpCreateID }
func (DestroyID) Op() Op        { return OpDestroyID }
func (BindIP) Op() Op           { return OpBindIP }
func (ResolveIP) Op() Op        { return OpResolveIP }
func (ResolveRoute) Op() Op     { return OpResolveRoute }
func (QueryRoute) Op() Op       { return OpQueryRoute }
func (Connect) Op() Op          { return OpConnect }
func (Listen) Op() Op           { return OpListen }
func (Accept) Op() Op           { return OpAccept }
func (Reject) Op() Op           { return OpReject }
func (Disconnect) Op() Op       { return OpDisconnect }
func (InitQPAttr) Op() Op       { return OpInitQPAttr }
func (GetEvent) Op() Op         { return OpGetEvent }
func (SetOption) Op() Op        { return OpSetOption }
func (Notify) Op() Op           { return OpNotify }
func (JoinIPMcast) Op() Op      { return OpJoinIPMcast }
func (LeaveMcast) Op() Op       { return OpLeaveMcast }
func (MigrateID) Op() Op        { return OpMigrateID }
func (Query) Op() Op            { return OpQuery }
func (Bind) Op() Op             { return OpBind }
func (ResolveAddr) Op() Op      { return OpResolveAddr }
func (JoinMcast) Op() Op        { return OpJoinMcast }
func (ResolveIBService) Op() Op { return OpResolveIBService }
func (WriteCMEvent) Op() Op     { return OpWriteCMEvent }

func (c CreateID) body() body         { return &c }
func (c DestroyID) body() body        { return &c }
func (c BindIP) body() body           { return &c }
func (c ResolveIP) body() body        { return &c }
func (c ResolveRoute) body() body     { return &c }
func (c QueryRoute) body() body       { return &c }
func (c Connect) body() body          { return &c }
func (c Listen) body() body           { return &c }
func (c Accept) body() body           { return &c }
func (c Reject) body() body           { return &c }
func (c Disconnect) body() body       { return &c }
func (c InitQPAttr) body() body       { return &c }
func (c GetEvent) body() body         { return &c }
func (c SetOption) body() body        { return &c }
func (c Notify) body() body           { return &c }
func (c JoinIPMcast) body() body      { return &c }
func (c LeaveMcast) body() body       { return &c }
func (c MigrateID) body() body        { return &c }
func (c Query) body() body            { return &c }
func (c Bind) body() body             { return &c }
func (c ResolveAddr) body() body      { return &c }
func (c JoinMcast) body() body        { return &c }
func (c ResolveIBService) body() body { return &c }
func (c WriteCMEvent) body() body     { return &c }

// decoders read the structure of each command.
var decoders = map[Op]func(*Dialect, []byte) (Command, fault){
	OpCreateID: decodeAs[CreateID], OpDestroyID: decodeAs[DestroyID], OpBindIP: decodeAs[BindIP], OpResolveIP: decodeAs[ResolveIP],
	OpResolveRoute: decodeAs[ResolveRoute], OpQueryRoute: decodeAs[QueryRoute], OpConnect: decodeAs[Connect], OpListen: decodeAs[Listen],
	OpAccept: decodeAs[Accept], OpReject: decodeAs[Reject], OpDisconnect: decodeAs[Disconnect], OpInitQPAttr: decodeAs[InitQPAttr],
	OpGetEvent: decodeAs[GetEvent], OpSetOption: decodeAs[SetOption], OpNotify: decodeAs[Notify], OpJoinIPMcast: decodeAs[JoinIPMcast],
	OpLeaveMcast: decodeAs[LeaveMcast], OpMigrateID: decodeAs[MigrateID], OpQuery: decodeAs[Query], OpBind: decodeAs[Bind],
	OpResolveAddr: decodeAs[ResolveAddr], OpJoinMcast: decodeAs[JoinMcast], OpResolveIBService: decodeAs[ResolveIBService],
	OpWriteCMEvent: decodeAs[WriteCMEvent],
}

func decodeAs[T Command, P interface {
	*T
	body
}](d *Dialect, b []byte) (Command, fault) {
	var v T
	f := d.decode(P(&v), b, false)
	return v, f
}

func (*CreateID) structure() string         { return "create_id" }
func (*DestroyID) structure() string        { return "destroy_id" }
func (*BindIP) structure() string           { return "bind_ip" }
func (*ResolveIP) structure() string        { return "resolve_ip" }
func (*ResolveRoute) structure() string     { return "resolve_route" }
func (*QueryRoute) structure() string       { return "query" }
func (*Connect) structure() string          { return "connect" }
func (*Listen) structure() string           { return "listen" }
func (*Accept) structure() string           { return "accept" }
func (*Reject) structure() string           { return "reject" }
func (*Disconnect) structure() string       { return "disconnect" }
func (*InitQPAttr) structure() string       { return "init_qp_attr" }
func (*GetEvent) structure() string         { return "get_event" }
func (*SetOption) structure() string        { return "set_option" }
func (*Notify) structure() string           { return "notify" }
func (*JoinIPMcast) structure() string      { return "join_ip_mcast" }
func (*LeaveMcast) structure() string       { return "destroy_id" }
func (*MigrateID) structure() string        { return "migrate_id" }
func (*Query) structure() string            { return "query" }
func (*Bind) structure() string             { return "bind" }
func (*ResolveAddr) structure() string      { return "resolve_addr" }
func (*JoinMcast) structure() string        { return "join_mcast" }
func (*ResolveIBService) structure() string { return "resolve_ib_service" }
func (*WriteCMEvent) structure() string     { return "write_cm_event" }

func (*CreateIDResp) structure() string       { return "create_id_resp" }
func (*DestroyIDResp) structure() string      { return "destroy_id_resp" }
func (*QueryRouteResp) structure() string     { return "query_route_resp" }
func (*QueryAddrResp) structure() string      { return "query_addr_resp" }
func (*QueryPathResp) structure() string      { return "query_path_resp" }
func (*QueryIBServiceResp) structure() string { return "query_ib_service_resp" }
func (*EventResp) structure() string          { return "event_resp" }
func (*QPAttr) structure() string             { return "qp_attr" }

func (v *CreateID) walk(c *codec) {
	num(c, "uid", &v.UID)
	num(c, "ps", &v.PS)
	if c.s.field("qp_type") != nil {
		num(c, "qp_type", &v.QPType)
	}
}

func (v *DestroyID) walk(c *codec) { num(c, "id", &v.ID) }

func (v *BindIP) walk(c *codec) {
	num(c, "id", &v.ID)
	c.sockaddr("addr", "", &v.Addr)
}

func (v *ResolveIP) walk(c *codec) {
	c.sockaddr("src_addr", "", &v.Src)
	c.sockaddr("dst_addr", "", &v.Dst)
	num(c, "id", &v.ID)
	c.timeout(&v.Timeout)
}

func (v *ResolveRoute) walk(c *codec) {
	num(c, "id", &v.ID)
	c.timeout(&v.Timeout)
}

func (v *QueryRoute) walk(c *codec) { num(c, "id", &v.ID) }

func (v *Connect) walk(c *codec) {
	v.Param.walk(c.nested("conn_param", 0))
	num(c, "id", &v.ID)
	c.ece(&v.ECE)
}

func (v *Listen) walk(c *codec) {
	num(c, "id", &v.ID)
	num(c, "backlog", &v.Backlog)
}

func (v *Accept) walk(c *codec) {
	num(c, "uid", &v.UID)
	v.Param.walk(c.nested("conn_param", 0))
	num(c, "id", &v.ID)
	c.ece(&v.ECE)
}

func (v *Reject) walk(c *codec) {
	num(c, "id", &v.ID)
	c.private(&v.PrivateData)
	if c.s.field("reason") != nil || v.Reason != mad.RejectConsumerDefined {
		num(c, "reason", &v.Reason)
	}
}

func (v *Disconnect) walk(c *codec) { num(c, "id", &v.ID) }

func (v *InitQPAttr) walk(c *codec) {
	num(c, "id", &v.ID)
	num(c, "qp_state", &v.State)
}

func (v *GetEvent) walk(*codec) {}

func (v *SetOption) walk(c *codec) {
	num(c, "id", &v.ID)
	num(c, "level", &v.Level)
	num(c, "optname", &v.Name)
	if c.put && v.Len == 0 {
		v.Len = uint32(len(v.Value))
	}
	num(c, "optlen", &v.Len)
}

func (v *Notify) walk(c *codec) {
	num(c, "id", &v.ID)
	num(c, "event", &v.Event)
}

func (v *JoinIPMcast) walk(c *codec) {
	num(c, "uid", &v.UID)
	c.sockaddr("addr", "", &v.Addr)
	num(c, "id", &v.ID)
}

func (v *LeaveMcast) walk(c *codec) { num(c, "id", &v.ID) }

func (v *MigrateID) walk(c *codec) {
	num(c, "id", &v.ID)
	num(c, "fd", &v.FD)
}

func (v *Query) walk(c *codec) {
	num(c, "id", &v.ID)
	num(c, "option", &v.Option)
}

func (v *Bind) walk(c *codec) {
	num(c, "id", &v.ID)
	c.sockaddr("addr", "addr_size", &v.Addr)
	c.mustBeZero("reserved")
}

func (v *ResolveAddr) walk(c *codec) {
	num(c, "id", &v.ID)
	c.timeout(&v.Timeout)
	c.sockaddr("src_addr", "src_size", &v.Src)
	c.sockaddr("dst_addr", "dst_size", &v.Dst)
	c.mustBeZero("reserved")
}

func (v *JoinMcast) walk(c *codec) {
	num(c, "uid", &v.UID)
	num(c, "id", &v.ID)
	num(c, "join_flags", &v.Flags)
	c.sockaddr("addr", "addr_size", &v.Addr)
}

func (v *ResolveIBService) walk(c *codec) {
	num(c, "id", &v.ID)
	s := c.nested("ibs", 0)
	num(s, "service_id", &v.ServiceID)
	s.bytes("service_name", v.ServiceName[:])
	num(s, "flags", &v.Flags)
}

func (v *WriteCMEvent) walk(c *codec) {
	num(c, "id", &v.ID)
	num(c, "event", &v.Event)
	num(c, "status", &v.Status)
	c.bytes("param", v.Param[:])
}

func (v *CreateIDResp) walk(c *codec)  { num(c, "id", &v.ID) }
func (v *DestroyIDResp) walk(c *codec) { num(c, "events_reported", &v.EventsReported) }

func (v *QueryRouteResp) walk(c *codec) {
	num(c, "node_guid", &v.NodeGUID)
	for i := range v.Paths {
		if p := c.nested("ib_route", i); p != nil {
			v.Paths[i].walk(p)
		}
	}
	c.sockaddr("src_addr", "", &v.Src)
	c.sockaddr("dst_addr", "", &v.Dst)
	num(c, "num_paths", &v.NumPaths)
	num(c, "port_num", &v.PortNum)
	num(c, "ibdev_index", &v.IBDevIndex)
}

func (v *QueryAddrResp) walk(c *codec) {
	num(c, "node_guid", &v.NodeGUID)
	num(c, "port_num", &v.PortNum)
	num(c, "pkey", &v.PKey)
	c.sockaddr("src_addr", "src_size", &v.Src)
	c.sockaddr("dst_addr", "dst_size", &v.Dst)
	num(c, "ibdev_index", &v.IBDevIndex)
}

func (v *QueryPathResp) walk(c *codec) {
	num(c, "num_paths", &v.NumPaths)
	records(c, "path_rec_data", v.NumPaths, &v.Paths, (*PathRecData).walk)
}

func (v *QueryIBServiceResp) walk(c *codec) {
	num(c, "num_service_recs", &v.NumServiceRecs)
	records(c, "user_service_rec", v.NumServiceRecs, &v.Recs, walkServiceRecord)
}

func (v *EventResp) walk(c *codec) {
	num(c, "uid", &v.UID)
	num(c, "id", &v.ID)
	num(c, "event", &v.Event)
	num(c, "status", &v.Status)
	c.bytes("param", v.Param[:])
	switch e := c.nested("ece", 0); {
	case e != nil:
		v.ECE.walk(e)
	case c.put:
		c.missing("ece", v.ECE != ECE{})
	default:
		v.ECE = ECE{}
	}
}

func (v *ConnParam) walk(c *codec) {
	num(c, "qp_num", &v.QPNum)
	if c.s.field("qkey") != nil {
		num(c, "qkey", &v.QKey)
	}
	c.private(&v.PrivateData)
	flag(c, "srq", &v.SRQ)
	num(c, "responder_resources", &v.ResponderResources)
	num(c, "initiator_depth", &v.InitiatorDepth)
	flag(c, "flow_control", &v.FlowControl)
	num(c, "retry_count", &v.RetryCount)
	num(c, "rnr_retry_count", &v.RNRRetryCount)
	flag(c, "valid", &v.Valid)
}

func (v *UDParam) walk(c *codec) {
	num(c, "qp_num", &v.QPNum)
	num(c, "qkey", &v.QKey)
	v.AH.walk(c.nested("ah_attr", 0))
	c.private(&v.PrivateData)
}

func (v *ECE) walk(c *codec) {
	num(c, "vendor_id", &v.VendorID)
	num(c, "attr_mod", &v.AttrMod)
}

func (v *QPAttr) walk(c *codec) {
	num(c, "qp_attr_mask", &v.Mask)
	num(c, "qp_state", &v.State)
	num(c, "cur_qp_state", &v.CurState)
	num(c, "path_mtu", &v.PathMTU)
	num(c, "path_mig_state", &v.PathMigState)
	num(c, "qkey", &v.QKey)
	num(c, "rq_psn", &v.RQPSN)
	num(c, "sq_psn", &v.SQPSN)
	num(c, "dest_qp_num", &v.DestQPNum)
	num(c, "qp_access_flags", &v.QPAccessFlags)
	v.AH.walk(c.nested("ah_attr", 0))
	v.AltAH.walk(c.nested("alt_ah_attr", 0))
	num(c, "max_send_wr", &v.MaxSendWR)
	num(c, "max_recv_wr", &v.MaxRecvWR)
	num(c, "max_send_sge", &v.MaxSendSGE)
	num(c, "max_recv_sge", &v.MaxRecvSGE)
	num(c, "max_inline_data", &v.MaxInlineData)
	num(c, "pkey_index", &v.PKeyIndex)
	num(c, "alt_pkey_index", &v.AltPKeyIndex)
	flag(c, "en_sqd_async_notify", &v.EnSQDAsyncNotify)
	flag(c, "sq_draining", &v.SQDraining)
	num(c, "max_rd_atomic", &v.MaxRDAtomic)
	num(c, "max_dest_rd_atomic", &v.MaxDestRDAtomic)
	num(c, "min_rnr_timer", &v.MinRNRTimer)
	num(c, "port_num", &v.PortNum)
	num(c, "timeout", &v.Timeout)
	num(c, "retry_cnt", &v.RetryCnt)
	num(c, "rnr_retry", &v.RNRRetry)
	num(c, "alt_port_num", &v.AltPortNum)
	num(c, "alt_timeout", &v.AltTimeout)
}

func (v *AHAttr) walk(c *codec) {
	v.GRH.walk(c.nested("grh", 0))
	num(c, "dlid", &v.DLID)
	num(c, "sl", &v.SL)
	num(c, "src_path_bits", &v.SrcPathBits)
	num(c, "static_rate", &v.StaticRate)
	flag(c, "is_global", &v.IsGlobal)
	num(c, "port_num", &v.PortNum)
}

func (v *GlobalRoute) walk(c *codec) {
	c.gid("dgid", &v.DGID)
	num(c, "flow_label", &v.FlowLabel)
	num(c, "sgid_index", &v.SGIDIndex)
	num(c, "hop_limit", &v.HopLimit)
	num(c, "traffic_class", &v.TrafficClass)
}

func (v *UserPathRec) walk(c *codec) {
	c.gid("dgid", &v.DGID)
	c.gid("sgid", &v.SGID)
	num(c, "dlid", &v.DLID)
	num(c, "slid", &v.SLID)
	num(c, "raw_traffic", &v.RawTraffic)
	num(c, "flow_label", &v.FlowLabel)
	num(c, "reversible", &v.Reversible)
	num(c, "mtu", &v.MTU)
	num(c, "pkey", &v.PKey)
	num(c, "hop_limit", &v.HopLimit)
	num(c, "traffic_class", &v.TrafficClass)
	num(c, "numb_path", &v.NumbPath)
	num(c, "sl", &v.SL)
	num(c, "mtu_selector", &v.MTUSelector)
	num(c, "rate_selector", &v.RateSelector)
	num(c, "rate", &v.Rate)
	num(c, "packet_life_time_selector", &v.PacketLifeTimeSelector)
	num(c, "packet_life_time", &v.PacketLifeTime)
	num(c, "preference", &v.Preference)
}

func (v *PathRecData) walk(c *codec) {
	num(c, "flags", &v.Flags)
	var b [mad.PathRecordSize]byte
	v.Path.EncodeTo(&b)
	c.bytes("path_rec", b[:])
	v.Path.DecodeFrom(&b)
}

// walkServiceRecord: struct ib_user_service_rec is the record as on the wire.
func walkServiceRecord(v *mad.ServiceRecord, c *codec) {
	b := (*[mad.ServiceRecordSize]byte)(c.b)
	if c.put {
		v.EncodeTo(b)
	} else {
		v.DecodeFrom(b)
	}
}
