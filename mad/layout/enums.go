package layout

// Enums lists every enumeration of the tables.
var Enums = []*Enum{
	Class, Method, Status, AttributeID, NodeType, PortState, PortPhysState, LinkDownDefaultState,
	LinkWidth, LinkSpeed, LinkSpeedExt, LinkSpeedExt2, Speed, MTU, Rate, VLs, PortCapMask, PortCapMask2,
	SMState, Selector, RMPPType, RMPPFlags, RMPPStatus,
	NoticeType, ProducerType, TrapNumber, JoinState, MulticastScope, FECMode, PortExtCapMask, LinkSpeedMlnx,
	SACapMask, SACapMask2,
	TransportServiceType, ExtendedTransportType, MRAMessage, REJMessage, RejectReason, Failover, APStatus, SIDRStatus,
}

// Class holds the management classes.
var Class = &Enum{
	Name: "Class", Bits: 8, IBA: "13.4.3", Diag: "0x%02x",
	Doc: "is a management class.",
	Values: []Value{
		{Value: 0x01, Go: "SubnLIDRouted", Text: "SubnLIDRouted", Alias: []string{"Subn", "SM"}},
		{Value: 0x03, Go: "SubnAdm", Text: "SubnAdm", Alias: []string{"SA"}},
		{Value: 0x04, Go: "Perf", Text: "Perf", Alias: []string{"PM"}},
		{Value: 0x05, Go: "BM", Text: "BM"},
		{Value: 0x06, Go: "DevMgt", Text: "DevMgt", Alias: []string{"DM"}},
		{Value: 0x07, Go: "ComMgt", Text: "ComMgt", Alias: []string{"CM"}},
		{Value: 0x08, Go: "SNMP", Text: "SNMP"},
		{Value: 0x10, Go: "DevAdm", Text: "DevAdm"},
		{Value: 0x11, Go: "BootMgt", Text: "BootMgt"},
		{Value: 0x12, Go: "BIS", Text: "BIS"},
		{Value: 0x21, Go: "CC", Text: "CongestionManagement", Alias: []string{"CC"}},
		{Value: 0x81, Go: "SubnDirected", Text: "SubnDirectedRoute", Alias: []string{"SubnDirected"}},
	},
}

// Method holds the methods of all classes, with their R bit.
var Method = &Enum{
	Name: "Method", Bits: 8, IBA: "13.4.5, 15.2.2", Diag: "0x%02x",
	Doc: "is a method with its R bit.",
	Values: []Value{
		{Value: 0x01, Go: "Get", Text: "Get"},
		{Value: 0x02, Go: "Set", Text: "Set"},
		{Value: 0x03, Go: "Send", Text: "Send"},
		{Value: 0x05, Go: "Trap", Text: "Trap"},
		{Value: 0x06, Go: "Report", Text: "Report"},
		{Value: 0x07, Go: "TrapRepress", Text: "TrapRepress"},
		{Value: 0x12, Go: "GetTable", Text: "GetTable"},
		{Value: 0x13, Go: "GetTraceTable", Text: "GetTraceTable"},
		{Value: 0x14, Go: "GetMulti", Text: "GetMulti"},
		{Value: 0x15, Go: "Delete", Text: "Delete"},
		{Value: 0x81, Go: "GetResp", Text: "GetResp"},
		{Value: 0x86, Go: "ReportResp", Text: "ReportResp"},
		{Value: 0x92, Go: "GetTableResp", Text: "GetTableResp"},
		{Value: 0x94, Go: "GetMultiResp", Text: "GetMultiResp"},
		{Value: 0x95, Go: "DeleteResp", Text: "DeleteResp"},
	},
}

// Status holds the status values of all classes, and those of subnet
// administration, whose names start with SA.
var Status = &Enum{
	Name: "Status", Bits: 16, ByHand: true, IBA: "13.4.7, 15.2.3", Diag: "0x%04x",
	Doc: "is the status of a response: bits 0-1 say busy and redirect, bits 2-4\nname what is wrong with the request, bits 8-15 belong to the class. Bit 15 is\nthe D bit in directed-route SMPs. See Status.Text for the names.",
	Values: []Value{
		{Value: 0x0000, Go: "OK", Text: "ok"},
		{Value: 0x0001, Go: "Busy", Text: "busy"},
		{Value: 0x0002, Go: "Redirect", Text: "redirection required"},
		{Value: 0x0004, Go: "BadVersion", Text: "class or version not supported"},
		{Value: 0x0008, Go: "BadMethod", Text: "method not supported"},
		{Value: 0x000c, Go: "BadAttribute", Text: "method and attribute combination not supported"},
		{Value: 0x001c, Go: "BadField", Text: "invalid value in attribute or modifier"},
		{Value: 0x0100, Go: "SANoResources", Text: "SA: no resources"},
		{Value: 0x0200, Go: "SAReqInvalid", Text: "SA: request invalid"},
		{Value: 0x0300, Go: "SANoRecords", Text: "SA: no records"},
		{Value: 0x0400, Go: "SATooManyRecords", Text: "SA: too many records"},
		{Value: 0x0500, Go: "SAInvalidGID", Text: "SA: requester GID invalid"},
		{Value: 0x0600, Go: "SAInsufficientComponents", Text: "SA: insufficient components"},
		{Value: 0x0700, Go: "SARequestDenied", Text: "SA: request denied"},
		{Value: 0x0800, Go: "SAPrioritySuggested", Text: "SA: priority suggested"},
	},
}

// AttributeID has its constants from the table of attributes: the same number
// means different things in different classes.
var AttributeID = &Enum{
	Name: "AttributeID", Bits: 16, ByHand: true, IBA: "13.4.6", Diag: "0x%04x",
	Doc: "is the number of an attribute within its class.",
}

// NodeType says what a node is.
var NodeType = &Enum{
	Name: "NodeType", Bits: 8, IBA: "14.2.5.3", Diag: "?(%d)?",
	Doc: "says what a node is.",
	Values: []Value{
		{Value: 1, Go: "CA", Text: "Channel Adapter", Alias: []string{"CA", "HCA"}},
		{Value: 2, Go: "Switch", Text: "Switch"},
		{Value: 3, Go: "Router", Text: "Router"},
	},
}

// PortState is the logical state of a port.
var PortState = &Enum{
	Name: "PortState", Bits: 8, IBA: "14.2.5.6", Diag: "?(%d)",
	Doc: "is the logical state of a port.",
	Values: []Value{
		{Value: 0, Go: "NoChange", Text: "NoChange"},
		{Value: 1, Go: "Down", Text: "Down"},
		{Value: 2, Go: "Init", Text: "Initialize", Alias: []string{"Init"}},
		{Value: 3, Go: "Armed", Text: "Armed", Alias: []string{"Arm"}},
		{Value: 4, Go: "Active", Text: "Active"},
	},
}

// PortPhysState is the state of a port's physical layer.
var PortPhysState = &Enum{
	Name: "PortPhysState", Bits: 8, IBA: "14.2.5.6", Diag: "?(%d)",
	Doc: "is the state of a port's physical layer.",
	Values: []Value{
		{Value: 0, Go: "NoChange", Text: "NoChange"},
		{Value: 1, Go: "Sleep", Text: "Sleep"},
		{Value: 2, Go: "Polling", Text: "Polling"},
		{Value: 3, Go: "Disabled", Text: "Disabled"},
		{Value: 4, Go: "Training", Text: "PortConfigurationTraining", Alias: []string{"Training"}},
		{Value: 5, Go: "LinkUp", Text: "LinkUp"},
		{Value: 6, Go: "LinkErrorRecovery", Text: "LinkErrorRecovery"},
		{Value: 7, Go: "PhyTest", Text: "PhyTest"},
	},
}

// LinkDownDefaultState is where a port goes when its link is down.
var LinkDownDefaultState = &Enum{
	Name: "LinkDownDefaultState", Bits: 8, IBA: "14.2.5.6", Diag: "?(%d)",
	Doc: "is the physical state a port goes to when its link goes down.",
	Values: []Value{
		{Value: 0, Go: "NoChange", Text: "NoChange"},
		{Value: 1, Go: "Sleep", Text: "Sleep"},
		{Value: 2, Go: "Polling", Text: "Polling"},
	},
}

// LinkWidth is a set of link widths.
var LinkWidth = &Enum{
	Name: "LinkWidth", Bits: 8, Sep: " or ", IBA: "14.2.5.6", Diag: "undefined (%d)",
	Doc: "is a set of link widths; the active width is a single one.",
	Values: []Value{
		{Value: 1, Go: "1X", Text: "1X"},
		{Value: 2, Go: "4X", Text: "4X"},
		{Value: 4, Go: "8X", Text: "8X"},
		{Value: 8, Go: "12X", Text: "12X"},
		{Value: 16, Go: "2X", Text: "2X"},
	},
}

// LinkSpeed is a set of the first three link speeds.
var LinkSpeed = &Enum{
	Name: "LinkSpeed", Bits: 8, Sep: " or ", IBA: "14.2.5.6", Diag: "undefined (%d)",
	Doc: "is a set of link speeds up to QDR, per lane; an active speed of 0\nsays that the link runs at an extended speed.",
	Values: []Value{
		{Value: 1, Go: "SDR", Text: "2.5 Gbps", Alias: []string{"SDR"}},
		{Value: 2, Go: "DDR", Text: "5.0 Gbps", Alias: []string{"DDR"}},
		{Value: 4, Go: "QDR", Text: "10.0 Gbps", Alias: []string{"QDR"}},
	},
}

// LinkSpeedExt is a set of the extended link speeds.
var LinkSpeedExt = &Enum{
	Name: "LinkSpeedExt", Bits: 8, Sep: " or ", IBA: "14.2.5.6", Diag: "undefined (%d)",
	Doc: "is a set of extended link speeds, FDR to NDR, per lane.",
	Values: []Value{
		{Value: 1, Go: "FDR", Text: "14.0625 Gbps", Alias: []string{"FDR"}},
		{Value: 2, Go: "EDR", Text: "25.78125 Gbps", Alias: []string{"EDR"}},
		{Value: 4, Go: "HDR", Text: "53.125 Gbps", Alias: []string{"HDR"}},
		{Value: 8, Go: "NDR", Text: "106.25 Gbps", Alias: []string{"NDR"}},
	},
}

// LinkSpeedExt2 is a set of the link speeds beyond LinkSpeedExt.
var LinkSpeedExt2 = &Enum{
	Name: "LinkSpeedExt2", Bits: 8, Sep: " or ", IBA: "14.2.5.6", Diag: "undefined (%d)",
	Doc: "is a set of extended link speeds from XDR on, per lane.",
	Values: []Value{
		{Value: 1, Go: "XDR", Text: "212.5 Gbps", Alias: []string{"XDR"}},
	},
}

// Speed is a set of link speeds in one numbering, the kernel's.
var Speed = &Enum{
	Name: "Speed", Bits: 16, Sep: "|", IBA: "none: kernel include/rdma/ib_verbs.h, ib_port_speed", Diag: "%d",
	Doc: "is a link speed in one numbering for all generations, the kernel's.\nIt is in no structure; see [PortInfo.Speed].",
	Values: []Value{
		{Value: 1, Go: "SDR", Text: "SDR"},
		{Value: 2, Go: "DDR", Text: "DDR"},
		{Value: 4, Go: "QDR", Text: "QDR"},
		{Value: 8, Go: "FDR10", Text: "FDR10"},
		{Value: 16, Go: "FDR", Text: "FDR"},
		{Value: 32, Go: "EDR", Text: "EDR"},
		{Value: 64, Go: "HDR", Text: "HDR"},
		{Value: 128, Go: "NDR", Text: "NDR"},
		{Value: 256, Go: "XDR", Text: "XDR"},
	},
}

// MTU is a code of the maximum transfer unit.
var MTU = &Enum{
	Name: "MTU", Bits: 8, IBA: "14.2.5.6, 15.2.5.16", Diag: "?(%d)",
	Doc: "is a code of the maximum transfer unit; see MTU.Bytes.",
	Values: []Value{
		{Value: 1, Go: "256", Text: "256"},
		{Value: 2, Go: "512", Text: "512"},
		{Value: 3, Go: "1024", Text: "1024"},
		{Value: 4, Go: "2048", Text: "2048"},
		{Value: 5, Go: "4096", Text: "4096"},
	},
}

// Rate is a code of a link's or path's bandwidth.
var Rate = &Enum{
	Name: "Rate", Bits: 8, IBA: "15.2.5.16; kernel include/rdma/ib_verbs.h, ib_rate", Diag: "?(%d)",
	Doc: "is a code of a path's bandwidth. The codes are not in order of\nbandwidth: use [Rate.Compare].",
	Values: []Value{
		{Value: 0, Go: "None", Text: "none"},
		{Value: 2, Go: "2_5G", Text: "2.5 Gb/s"},
		{Value: 3, Go: "10G", Text: "10 Gb/s"},
		{Value: 4, Go: "30G", Text: "30 Gb/s"},
		{Value: 5, Go: "5G", Text: "5 Gb/s"},
		{Value: 6, Go: "20G", Text: "20 Gb/s"},
		{Value: 7, Go: "40G", Text: "40 Gb/s"},
		{Value: 8, Go: "60G", Text: "60 Gb/s"},
		{Value: 9, Go: "80G", Text: "80 Gb/s"},
		{Value: 10, Go: "120G", Text: "120 Gb/s"},
		{Value: 11, Go: "14G", Text: "14 Gb/s"},
		{Value: 12, Go: "56G", Text: "56 Gb/s"},
		{Value: 13, Go: "112G", Text: "112 Gb/s"},
		{Value: 14, Go: "168G", Text: "168 Gb/s"},
		{Value: 15, Go: "25G", Text: "25 Gb/s"},
		{Value: 16, Go: "100G", Text: "100 Gb/s"},
		{Value: 17, Go: "200G", Text: "200 Gb/s"},
		{Value: 18, Go: "300G", Text: "300 Gb/s"},
		{Value: 19, Go: "28G", Text: "28 Gb/s"},
		{Value: 20, Go: "50G", Text: "50 Gb/s"},
		{Value: 21, Go: "400G", Text: "400 Gb/s"},
		{Value: 22, Go: "600G", Text: "600 Gb/s"},
		{Value: 23, Go: "800G", Text: "800 Gb/s"},
		{Value: 24, Go: "1200G", Text: "1200 Gb/s"},
		{Value: 25, Go: "1600G", Text: "1600 Gb/s"},
	},
}

// VLs is a code of a number of virtual lanes.
var VLs = &Enum{
	Name: "VLs", Bits: 8, IBA: "14.2.5.6", Diag: "?(%d)",
	Doc: "is a code of the data virtual lanes of a port.",
	Values: []Value{
		{Value: 0, Go: "NoChange", Text: "No change"},
		{Value: 1, Go: "0", Text: "VL0"},
		{Value: 2, Go: "0to1", Text: "VL0-1"},
		{Value: 3, Go: "0to3", Text: "VL0-3"},
		{Value: 4, Go: "0to7", Text: "VL0-7"},
		{Value: 5, Go: "0to14", Text: "VL0-14"},
	},
}

// SMState is the state of a subnet manager.
var SMState = &Enum{
	Name: "SMState", Bits: 8, IBA: "14.2.5.13", Diag: "%d",
	Doc: "is the state of a subnet manager.",
	Values: []Value{
		{Value: 0, Go: "NotActive", Text: "NotActive", Alias: []string{"SMINFO_NOTACT"}},
		{Value: 1, Go: "Discovering", Text: "Discovering", Alias: []string{"SMINFO_DISCOVER"}},
		{Value: 2, Go: "Standby", Text: "Standby", Alias: []string{"SMINFO_STANDBY"}},
		{Value: 3, Go: "Master", Text: "Master", Alias: []string{"SMINFO_MASTER"}},
	},
}

// Selector says how a component is compared.
var Selector = &Enum{
	Name: "Selector", Bits: 8, IBA: "15.2.5.16", Diag: "%d",
	Doc: "says how the MTU, rate or packet life time of a query is compared\nwith that of a path.",
	Values: []Value{
		{Value: 0, Go: "GreaterThan", Text: "GreaterThan", Alias: []string{">"}},
		{Value: 1, Go: "LessThan", Text: "LessThan", Alias: []string{"<"}},
		{Value: 2, Go: "Exactly", Text: "Exactly", Alias: []string{"="}},
		{Value: 3, Go: "Best", Text: "Best", Alias: []string{"Largest", "Smallest"}},
	},
}

// RMPPType is the type of an RMPP packet.
var RMPPType = &Enum{
	Name: "RMPPType", Bits: 8, IBA: "13.6.2.1", Diag: "%d",
	Doc: "is the type of an RMPP packet.",
	Values: []Value{
		{Value: 1, Go: "Data", Text: "DATA"},
		{Value: 2, Go: "ACK", Text: "ACK"},
		{Value: 3, Go: "Stop", Text: "STOP"},
		{Value: 4, Go: "Abort", Text: "ABORT"},
	},
}

// RMPPFlags are the flags of an RMPP packet.
var RMPPFlags = &Enum{
	Name: "RMPPFlags", Bits: 8, Sep: "|", Prefix: "RMPPFlag", IBA: "13.6.2.1", Diag: "0x%02x",
	Doc: "are the flags of an RMPP packet.",
	Values: []Value{
		{Value: 1, Go: "Active", Text: "Active"},
		{Value: 2, Go: "First", Text: "First"},
		{Value: 4, Go: "Last", Text: "Last"},
	},
}

// RMPPStatus says why an RMPP transfer stops or aborts.
var RMPPStatus = &Enum{
	Name: "RMPPStatus", Bits: 8, IBA: "13.6.2.1", Diag: "0x%02x",
	Doc: "says why an RMPP transfer stopped or aborted.",
	Values: []Value{
		{Value: 0, Go: "OK", Text: "ok"},
		{Value: 1, Go: "ResourcesExhausted", Text: "resources exhausted"},
		{Value: 118, Go: "TimeTooLong", Text: "total time too long"},
		{Value: 119, Go: "BadLength", Text: "inconsistent Last and PayloadLength"},
		{Value: 120, Go: "BadSegment", Text: "inconsistent First and SegmentNumber"},
		{Value: 121, Go: "BadType", Text: "bad RMPPType"},
		{Value: 122, Go: "WindowTooSmall", Text: "NewWindowLast too small"},
		{Value: 123, Go: "SegmentTooBig", Text: "SegmentNumber too big"},
		{Value: 124, Go: "BadStatus", Text: "illegal status"},
		{Value: 125, Go: "BadVersion", Text: "unsupported version"},
		{Value: 126, Go: "TooManyRetries", Text: "too many retries"},
		{Value: 127, Go: "Unspecified", Text: "unspecified"},
	},
}
