package layout

import "slices"

// cmSize is what a message of communication management has behind the common
// header: the rest of a MAD (IBA 16.7.1).
const cmSize = 232

// ConnectRequest opens a connection.
var ConnectRequest = &Struct{
	Name: "ConnectRequest", Size: cmSize, IBA: "12.6.5",
	Doc: "is REQ: the active side asks for a connection. The attribute modifier\nof its MAD is free for vendors; Linux puts the options of its enhanced\nconnection establishment there.",
	Fields: slices.Concat([]Field{
		{Name: "LocalCommunicationID", Off: 0, Len: 32, Kind: KindHex},
		{Off: 32, Len: 8},
		{Name: "VendorID", Off: 40, Len: 24, Kind: KindHex, Doc: "of the options in the attribute modifier"},
		{Name: "ServiceID", Off: 64, Len: 64, Kind: KindHex},
		{Name: "LocalCAGUID", Off: 128, Len: 64, Kind: KindGUID},
		{Off: 192, Len: 32},
		{Name: "LocalQ_Key", Off: 224, Len: 32, Kind: KindHex},
		{Name: "LocalQPN", Off: 256, Len: 24, Kind: KindHex},
		{Name: "ResponderResources", Off: 280, Len: 8, Doc: "RDMA reads and atomics that the sender serves at a time"},
		{Name: "LocalEECN", Off: 288, Len: 24, Kind: KindHex},
		{Name: "InitiatorDepth", Off: 312, Len: 8, Doc: "RDMA reads and atomics that the sender starts at a time"},
		{Name: "RemoteEECN", Off: 320, Len: 24, Kind: KindHex},
		{Name: "RemoteCMResponseTimeout", Off: 344, Len: 5, Kind: KindTime, Doc: "within which the receiver answers, 4.096 us * 2^n"},
		{Name: "TransportServiceType", Off: 349, Len: 2, Kind: KindEnum, Enum: TransportServiceType},
		{Name: "EndToEndFlowControl", Off: 351, Len: 1, Kind: KindFlag},
		{Name: "StartingPSN", Off: 352, Len: 24, Kind: KindHex},
		{Name: "LocalCMResponseTimeout", Off: 376, Len: 5, Kind: KindTime, Doc: "within which the sender answers, 4.096 us * 2^n"},
		{Name: "RetryCount", Off: 381, Len: 3},
		{Name: "PartitionKey", Off: 384, Len: 16, Kind: KindPKey},
		{Name: "PathPacketPayloadMTU", Off: 400, Len: 4, Kind: KindEnum, Enum: MTU},
		{Name: "RDCExists", Off: 404, Len: 1, Kind: KindFlag},
		{Name: "RNRRetryCount", Off: 405, Len: 3, Doc: "7 is without end"},
		{Name: "MaxCMRetries", Off: 408, Len: 4},
		{Name: "SRQ", Off: 412, Len: 1, Kind: KindFlag},
		{Name: "ExtendedTransportType", Off: 413, Len: 3, Kind: KindEnum, Enum: ExtendedTransportType, Doc: "if TransportServiceType says so"},
	}, cmPath("Primary", 416), []Field{
		{Off: 765, Len: 3},
	}, cmPath("Alternate", 768), []Field{
		{Name: "SAPSupported", Off: 1117, Len: 1, Kind: KindFlag, Doc: "the sender takes suggestions of an alternate path"},
		{Off: 1118, Len: 2},
		{Name: "PrivateData", Off: 1120, Len: 736, Kind: KindBytes},
	}),
}

// cmPath makes the rows of one of the two paths of a ConnectRequest, which
// start at bit off.
func cmPath(name string, off int) []Field {
	return []Field{
		{Name: name + "LocalPortLID", Off: off, Len: 16, Kind: KindLID},
		{Name: name + "RemotePortLID", Off: off + 16, Len: 16, Kind: KindLID},
		{Name: name + "LocalPortGID", Off: off + 32, Len: 128, Kind: KindGID},
		{Name: name + "RemotePortGID", Off: off + 160, Len: 128, Kind: KindGID},
		{Name: name + "FlowLabel", Off: off + 288, Len: 20, Kind: KindHex},
		{Off: off + 308, Len: 6},
		{Name: name + "PacketRate", Off: off + 314, Len: 6, Kind: KindEnum, Enum: Rate},
		{Name: name + "TrafficClass", Off: off + 320, Len: 8, Kind: KindHex},
		{Name: name + "HopLimit", Off: off + 328, Len: 8},
		{Name: name + "SL", Off: off + 336, Len: 4},
		{Name: name + "SubnetLocal", Off: off + 340, Len: 1, Kind: KindFlag},
		{Off: off + 341, Len: 3},
		{Name: name + "LocalACKTimeout", Off: off + 344, Len: 5, Kind: KindTime, Doc: "4.096 us * 2^n"},
	}
}

// MsgRcptAck asks for patience.
var MsgRcptAck = &Struct{
	Name: "MsgRcptAck", Size: cmSize, IBA: "12.6.6",
	Doc: "is MRA: the message has come, and its answer takes longer.",
	Fields: slices.Concat(bothIDs, []Field{
		{Name: "MessageMRAed", Off: 64, Len: 2, Kind: KindEnum, Enum: MRAMessage},
		{Off: 66, Len: 6},
		{Name: "ServiceTimeout", Off: 72, Len: 5, Kind: KindTime, Doc: "within which the answer comes, 4.096 us * 2^n"},
		{Off: 77, Len: 3},
		{Name: "PrivateData", Off: 80, Len: 1776, Kind: KindBytes},
	}),
}

// bothIDs are the first rows of all messages that belong to a connection known
// to both sides. Local is the sender of the message.
var bothIDs = []Field{
	{Name: "LocalCommunicationID", Off: 0, Len: 32, Kind: KindHex},
	{Name: "RemoteCommunicationID", Off: 32, Len: 32, Kind: KindHex},
}

// ConnectReject refuses a connection.
var ConnectReject = &Struct{
	Name: "ConnectReject", Size: cmSize, IBA: "12.6.7",
	Doc: "is REJ: no connection, and why.",
	Fields: slices.Concat(bothIDs, []Field{
		{Name: "MessageREJected", Off: 64, Len: 2, Kind: KindEnum, Enum: REJMessage},
		{Off: 66, Len: 6},
		{Name: "RejectInfoLength", Off: 72, Len: 7, Doc: "bytes of ARI that count"},
		{Off: 79, Len: 1},
		{Name: "Reason", Off: 80, Len: 16, Kind: KindEnum, Enum: RejectReason},
		{Name: "ARI", Off: 96, Len: 576, Kind: KindBytes, Doc: "additional reject information: what Reason calls for", Variants: []Variant{
			{When: []Cond{{"RejectInfoLength", 72, 127}, {"Reason", 24, 24}}, Of: ClassPortInfo},
		}},
		{Name: "PrivateData", Off: 672, Len: 1184, Kind: KindBytes},
	}),
}

// ConnectReply accepts a connection.
var ConnectReply = &Struct{
	Name: "ConnectReply", Size: cmSize, IBA: "12.6.8",
	Doc: "is REP: the passive side takes the connection.",
	Fields: slices.Concat(bothIDs, []Field{
		{Name: "LocalQ_Key", Off: 64, Len: 32, Kind: KindHex},
		{Name: "LocalQPN", Off: 96, Len: 24, Kind: KindHex},
		{Name: "VendorID_H", Off: 120, Len: 8, Kind: KindHex, Doc: "bits 16-23 of the VendorID"},
		{Name: "LocalEEContextNumber", Off: 128, Len: 24, Kind: KindHex},
		{Name: "VendorID_M", Off: 152, Len: 8, Kind: KindHex, Doc: "bits 8-15 of the VendorID"},
		{Name: "StartingPSN", Off: 160, Len: 24, Kind: KindHex},
		{Name: "VendorID_L", Off: 184, Len: 8, Kind: KindHex, Doc: "bits 0-7 of the VendorID"},
		{Name: "ResponderResources", Off: 192, Len: 8, Doc: "RDMA reads and atomics that the sender serves at a time"},
		{Name: "InitiatorDepth", Off: 200, Len: 8, Doc: "RDMA reads and atomics that the sender starts at a time"},
		{Name: "TargetACKDelay", Off: 208, Len: 5, Kind: KindTime, Doc: "4.096 us * 2^n"},
		{Name: "FailoverAccepted", Off: 213, Len: 2, Kind: KindEnum, Enum: Failover},
		{Name: "EndToEndFlowControl", Off: 215, Len: 1, Kind: KindFlag},
		{Name: "RNRRetryCount", Off: 216, Len: 3, Doc: "7 is without end"},
		{Name: "SRQ", Off: 219, Len: 1, Kind: KindFlag},
		{Off: 220, Len: 4},
		{Name: "LocalCAGUID", Off: 224, Len: 64, Kind: KindGUID},
		{Name: "PrivateData", Off: 288, Len: 1568, Kind: KindBytes},
	}),
}

// ReadyToUse completes a connection.
var ReadyToUse = &Struct{
	Name: "ReadyToUse", Size: cmSize, IBA: "12.6.9",
	Doc: "is RTU: the active side has the reply, the connection stands.",
	Fields: slices.Concat(bothIDs, []Field{
		{Name: "PrivateData", Off: 64, Len: 1792, Kind: KindBytes},
	}),
}

// DisconnectRequest ends a connection.
var DisconnectRequest = &Struct{
	Name: "DisconnectRequest", Size: cmSize, IBA: "12.6.10",
	Doc: "is DREQ: a side ends the connection.",
	Fields: slices.Concat(bothIDs, []Field{
		{Name: "RemoteQPN_EECN", Off: 64, Len: 24, Kind: KindHex, Doc: "QPN; of RD, EE context number"},
		{Off: 88, Len: 8},
		{Name: "PrivateData", Off: 96, Len: 1760, Kind: KindBytes},
	}),
}

// DisconnectReply answers the end of a connection.
var DisconnectReply = &Struct{
	Name: "DisconnectReply", Size: cmSize, IBA: "12.6.11",
	Doc: "is DREP: the other side knows that the connection has ended.",
	Fields: slices.Concat(bothIDs, []Field{
		{Name: "PrivateData", Off: 64, Len: 1792, Kind: KindBytes},
	}),
}

// LoadAlternatePath gives a connection another path.
var LoadAlternatePath = &Struct{
	Name: "LoadAlternatePath", Size: cmSize, IBA: "12.8.1",
	Doc: "is LAP: the active side gives the connection a new alternate path.",
	Fields: slices.Concat(bothIDs, []Field{
		{Off: 64, Len: 32},
		{Name: "RemoteQPN_EECN", Off: 96, Len: 24, Kind: KindHex, Doc: "QPN; of RD, EE context number"},
		{Name: "RemoteCMResponseTimeout", Off: 120, Len: 5, Kind: KindTime, Doc: "within which the receiver answers, 4.096 us * 2^n"},
		{Off: 125, Len: 3},
		{Off: 128, Len: 32},
		{Name: "AlternateLocalPortLID", Off: 160, Len: 16, Kind: KindLID},
		{Name: "AlternateRemotePortLID", Off: 176, Len: 16, Kind: KindLID},
		{Name: "AlternateLocalPortGID", Off: 192, Len: 128, Kind: KindGID},
		{Name: "AlternateRemotePortGID", Off: 320, Len: 128, Kind: KindGID},
		{Name: "AlternateFlowLabel", Off: 448, Len: 20, Kind: KindHex},
		{Off: 468, Len: 4},
		{Name: "AlternateTrafficClass", Off: 472, Len: 8, Kind: KindHex},
		{Name: "AlternateHopLimit", Off: 480, Len: 8},
		{Off: 488, Len: 2},
		{Name: "AlternatePacketRate", Off: 490, Len: 6, Kind: KindEnum, Enum: Rate},
		{Name: "AlternateSL", Off: 496, Len: 4},
		{Name: "AlternateSubnetLocal", Off: 500, Len: 1, Kind: KindFlag},
		{Off: 501, Len: 3},
		{Name: "AlternateLocalACKTimeout", Off: 504, Len: 5, Kind: KindTime, Doc: "4.096 us * 2^n"},
		{Off: 509, Len: 3},
		{Name: "PrivateData", Off: 512, Len: 1344, Kind: KindBytes},
	}),
}

// AlternatePathResponse answers LoadAlternatePath.
var AlternatePathResponse = &Struct{
	Name: "AlternatePathResponse", Size: cmSize, IBA: "12.8.2",
	Doc: "is APR: the passive side takes the new alternate path, or not.",
	Fields: slices.Concat(bothIDs, []Field{
		{Name: "AdditionalInformationLength", Off: 64, Len: 8, Doc: "bytes of AdditionalInformation that count"},
		{Name: "APStatus", Off: 72, Len: 8, Kind: KindEnum, Enum: APStatus},
		{Off: 80, Len: 16},
		{Name: "AdditionalInformation", Off: 96, Len: 576, Kind: KindBytes, Doc: "what APStatus calls for", Variants: []Variant{
			{When: []Cond{{"AdditionalInformationLength", 72, 255}, {"APStatus", 4, 4}}, Of: ClassPortInfo},
		}},
		{Name: "PrivateData", Off: 672, Len: 1184, Kind: KindBytes},
	}),
}

// ServiceIDResReq asks for the queue pair of a datagram service.
var ServiceIDResReq = &Struct{
	Name: "ServiceIDResReq", Size: cmSize, IBA: "12.11.1",
	Doc: "is SIDR_REQ: which queue pair serves the datagrams of a service?",
	Fields: []Field{
		{Name: "RequestID", Off: 0, Len: 32, Kind: KindHex},
		{Name: "PartitionKey", Off: 32, Len: 16, Kind: KindPKey},
		{Off: 48, Len: 16},
		{Name: "ServiceID", Off: 64, Len: 64, Kind: KindHex},
		{Name: "PrivateData", Off: 128, Len: 1728, Kind: KindBytes},
	},
}

// ServiceIDResReqResp answers ServiceIDResReq.
var ServiceIDResReqResp = &Struct{
	Name: "ServiceIDResReqResp", Size: cmSize, IBA: "12.11.2",
	Doc: "is SIDR_REP: the queue pair of a service, or why there is none.",
	Fields: []Field{
		{Name: "RequestID", Off: 0, Len: 32, Kind: KindHex, Doc: "of the request"},
		{Name: "Status", Off: 32, Len: 8, Kind: KindEnum, Enum: SIDRStatus},
		{Name: "AdditionalInformationLength", Off: 40, Len: 8, Doc: "bytes of AdditionalInformation that count"},
		{Name: "VendorID_H", Off: 48, Len: 16, Kind: KindHex, Doc: "bits 8-23 of the VendorID"},
		{Name: "QPN", Off: 64, Len: 24, Kind: KindHex},
		{Name: "VendorID_L", Off: 88, Len: 8, Kind: KindHex, Doc: "bits 0-7 of the VendorID"},
		{Name: "ServiceID", Off: 96, Len: 64, Kind: KindHex},
		{Name: "Q_Key", Off: 160, Len: 32, Kind: KindHex},
		{Name: "AdditionalInformation", Off: 192, Len: 576, Kind: KindBytes, Doc: "what Status calls for", Variants: []Variant{
			{When: []Cond{{"AdditionalInformationLength", 72, 255}, {"Status", 4, 4}}, Of: ClassPortInfo},
		}},
		{Name: "PrivateData", Off: 768, Len: 1088, Kind: KindBytes},
	},
}

// IPCMHeader is what the RDMA IP CM service puts before the private data.
var IPCMHeader = &Struct{
	Name: "IPCMHeader", Size: 36, IBA: "A11; kernel drivers/infiniband/core/cma.c, cma_hdr",
	Doc: "is the head of the private data of REQ and SIDR_REQ to a service\naddressed by IP: what the connection is in terms of IP. An IPv4 address stands\nin the last 4 bytes of its 16, behind zeros.",
	Fields: []Field{
		{Name: "MajorVersion", Off: 0, Len: 4},
		{Name: "MinorVersion", Off: 4, Len: 4},
		{Name: "IPVersion", Off: 8, Len: 4, Doc: "4 or 6"},
		{Off: 12, Len: 4},
		{Name: "SrcPort", Off: 16, Len: 16, Doc: "of the active side"},
		{Name: "SrcAddr", Off: 32, Len: 128, Kind: KindBytes},
		{Name: "DstAddr", Off: 160, Len: 128, Kind: KindBytes},
	},
}
