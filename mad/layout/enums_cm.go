package layout

// TransportServiceType is the kind of queue pair that a connection joins.
var TransportServiceType = &Enum{
	Name: "TransportServiceType", Bits: 8, Prefix: "Transport", IBA: "12.6.5, A14", Diag: "%d",
	Doc: "is the kind of queue pair that a connection joins.",
	Values: []Value{
		{Value: 0, Go: "RC", Text: "RC"},
		{Value: 1, Go: "UC", Text: "UC"},
		{Value: 2, Go: "RD", Text: "RD"},
		{Value: 3, Go: "Extended", Text: "extended"},
	},
}

// ExtendedTransportType goes on where TransportServiceType has no room.
var ExtendedTransportType = &Enum{
	Name: "ExtendedTransportType", Bits: 8, Prefix: "ExtendedTransport", IBA: "A14", Diag: "%d",
	Doc: "is the kind of queue pair that a connection joins, if its\nTransportServiceType is TransportExtended.",
	Values: []Value{
		{Value: 1, Go: "XRC", Text: "XRC"},
	},
}

// MRAMessage says which message has come.
var MRAMessage = &Enum{
	Name: "MRAMessage", Bits: 8, IBA: "12.6.6", Diag: "%d",
	Doc: "says which message MRA has received.",
	Values: []Value{
		{Value: 0, Go: "REQ", Text: "REQ"},
		{Value: 1, Go: "REP", Text: "REP"},
		{Value: 2, Go: "LAP", Text: "LAP"},
	},
}

// REJMessage says which message is refused.
var REJMessage = &Enum{
	Name: "REJMessage", Bits: 8, IBA: "12.6.7", Diag: "%d",
	Doc: "says which message REJ refuses.",
	Values: []Value{
		{Value: 0, Go: "REQ", Text: "REQ"},
		{Value: 1, Go: "REP", Text: "REP"},
		{Value: 2, Go: "None", Text: "no message"},
	},
}

// RejectReason says why there is no connection.
var RejectReason = &Enum{
	Name: "RejectReason", Bits: 16, Prefix: "Reject", IBA: "12.6.7.2; kernel include/rdma/ib_cm.h, ib_cm_rej_reason", Diag: "%d",
	Doc: "says why there is no connection.",
	Values: []Value{
		{Value: 1, Go: "NoQP", Text: "no QP available"},
		{Value: 2, Go: "NoEEC", Text: "no EEC available"},
		{Value: 3, Go: "NoResources", Text: "no resources available"},
		{Value: 4, Go: "Timeout", Text: "timeout"},
		{Value: 5, Go: "UnsupportedRequest", Text: "unsupported request"},
		{Value: 6, Go: "InvalidCommID", Text: "invalid communication ID"},
		{Value: 7, Go: "InvalidCommInstance", Text: "invalid communication instance"},
		{Value: 8, Go: "InvalidServiceID", Text: "invalid service ID"},
		{Value: 9, Go: "InvalidTransportType", Text: "invalid transport service type"},
		{Value: 10, Go: "StaleConn", Text: "stale connection"},
		{Value: 11, Go: "RDCNotExist", Text: "RDC does not exist"},
		{Value: 12, Go: "InvalidGID", Text: "invalid primary remote port GID"},
		{Value: 13, Go: "InvalidLID", Text: "invalid primary remote port LID"},
		{Value: 14, Go: "InvalidSL", Text: "invalid primary SL"},
		{Value: 15, Go: "InvalidTrafficClass", Text: "invalid primary traffic class"},
		{Value: 16, Go: "InvalidHopLimit", Text: "invalid primary hop limit"},
		{Value: 17, Go: "InvalidPacketRate", Text: "invalid primary packet rate"},
		{Value: 18, Go: "InvalidAltGID", Text: "invalid alternate remote port GID"},
		{Value: 19, Go: "InvalidAltLID", Text: "invalid alternate remote port LID"},
		{Value: 20, Go: "InvalidAltSL", Text: "invalid alternate SL"},
		{Value: 21, Go: "InvalidAltTrafficClass", Text: "invalid alternate traffic class"},
		{Value: 22, Go: "InvalidAltHopLimit", Text: "invalid alternate hop limit"},
		{Value: 23, Go: "InvalidAltPacketRate", Text: "invalid alternate packet rate"},
		{Value: 24, Go: "PortCMRedirect", Text: "port and CM redirection"},
		{Value: 25, Go: "PortRedirect", Text: "port redirection"},
		{Value: 26, Go: "InvalidMTU", Text: "invalid path MTU"},
		{Value: 27, Go: "InsufficientRespResources", Text: "insufficient responder resources"},
		{Value: 28, Go: "ConsumerDefined", Text: "consumer reject"},
		{Value: 29, Go: "InvalidRNRRetry", Text: "RNR retry count reject"},
		{Value: 30, Go: "DuplicateLocalCommID", Text: "duplicate local communication ID"},
		{Value: 31, Go: "InvalidClassVersion", Text: "unsupported class version"},
		{Value: 32, Go: "InvalidFlowLabel", Text: "invalid primary flow label"},
		{Value: 33, Go: "InvalidAltFlowLabel", Text: "invalid alternate flow label"},
		{Value: 35, Go: "VendorOptionNotSupported", Text: "vendor option not supported"},
	},
}

// Failover says what became of the alternate path of a request.
var Failover = &Enum{
	Name: "Failover", Bits: 8, IBA: "12.6.8", Diag: "%d",
	Doc: "says what became of the alternate path of a REQ.",
	Values: []Value{
		{Value: 0, Go: "Accepted", Text: "accepted"},
		{Value: 1, Go: "NotSupported", Text: "not supported"},
		{Value: 2, Go: "Rejected", Text: "rejected"},
	},
}

// APStatus says what became of a new alternate path.
var APStatus = &Enum{
	Name: "APStatus", Bits: 8, IBA: "12.8.2; kernel include/rdma/ib_cm.h, ib_cm_apr_status", Diag: "%d",
	Doc: "says what became of the alternate path of a LAP.",
	Values: []Value{
		{Value: 0, Go: "OK", Text: "alternate path loaded"},
		{Value: 1, Go: "InvalidCommID", Text: "invalid communication ID"},
		{Value: 2, Go: "Unsupported", Text: "alternate paths not supported"},
		{Value: 3, Go: "Rejected", Text: "rejected"},
		{Value: 4, Go: "Redirect", Text: "rejected with redirection"},
		{Value: 5, Go: "IsCurrent", Text: "it is the primary path"},
		{Value: 6, Go: "InvalidQPNEECN", Text: "invalid QPN or EECN"},
		{Value: 7, Go: "InvalidLID", Text: "invalid remote port LID"},
		{Value: 8, Go: "InvalidGID", Text: "invalid remote port GID"},
		{Value: 9, Go: "InvalidFlowLabel", Text: "invalid flow label"},
		{Value: 10, Go: "InvalidTrafficClass", Text: "invalid traffic class"},
		{Value: 11, Go: "InvalidHopLimit", Text: "invalid hop limit"},
		{Value: 12, Go: "InvalidPacketRate", Text: "invalid packet rate"},
		{Value: 13, Go: "InvalidSL", Text: "invalid SL"},
	},
}

// SIDRStatus says what came of the search for a service.
var SIDRStatus = &Enum{
	Name: "SIDRStatus", Bits: 8, IBA: "12.11.2; kernel include/rdma/ib_cm.h, ib_cm_sidr_status", Diag: "%d",
	Doc: "says whether a SIDR_REP has a queue pair, and why not.",
	Values: []Value{
		{Value: 0, Go: "OK", Text: "ok"},
		{Value: 1, Go: "Unsupported", Text: "service ID not supported"},
		{Value: 2, Go: "Rejected", Text: "rejected by the service provider"},
		{Value: 3, Go: "NoQP", Text: "no QP available"},
		{Value: 4, Go: "Redirect", Text: "redirection required"},
		{Value: 5, Go: "UnsupportedVersion", Text: "class version not supported"},
	},
}
