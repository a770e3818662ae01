package layout

// NoticeType says how grave a notice is.
var NoticeType = &Enum{
	Name: "NoticeType", Bits: 16, IBA: "13.4.8.2", Diag: "%d",
	Doc: "says of what kind a notice is.",
	Values: []Value{
		{Value: 0, Go: "Fatal", Text: "Fatal"},
		{Value: 1, Go: "Urgent", Text: "Urgent"},
		{Value: 2, Go: "Security", Text: "Security"},
		{Value: 3, Go: "SubnetManagement", Text: "SubnetManagement", Alias: []string{"SM"}},
		{Value: 4, Go: "Informational", Text: "Informational", Alias: []string{"Info"}},
		{Value: 0x7f, Go: "Empty", Text: "Empty"},
		{Value: 0xffff, Go: "All", Text: "All"},
	},
}

// ProducerType says what issued a notice.
var ProducerType = &Enum{
	Name: "ProducerType", Bits: 32, IBA: "13.4.8.2", Diag: "?(%d)?",
	Doc: "says what issued a notice.",
	Values: []Value{
		{Value: 1, Go: "CA", Text: "Channel Adapter", Alias: []string{"CA", "HCA"}},
		{Value: 2, Go: "Switch", Text: "Switch"},
		{Value: 3, Go: "Router", Text: "Router"},
		{Value: 4, Go: "ClassManager", Text: "Class Manager", Quiet: true},
		{Value: 0xffffff, Go: "All", Text: "All", Quiet: true},
	},
}

// TrapNumber says what happened.
var TrapNumber = &Enum{
	Name: "TrapNumber", Bits: 16, Prefix: "Trap", IBA: "14.2.5.1", Diag: "%d",
	Doc: "is the number of a generic trap of subnet management and subnet\nadministration.",
	Values: []Value{
		{Value: 64, Go: "GIDInService", Text: "GIDInService"},
		{Value: 65, Go: "GIDOutOfService", Text: "GIDOutOfService"},
		{Value: 66, Go: "MGIDCreated", Text: "MGIDCreated"},
		{Value: 67, Go: "MGIDDeleted", Text: "MGIDDeleted"},
		{Value: 68, Go: "UnPath", Text: "UnPath"},
		{Value: 69, Go: "RePath", Text: "RePath"},
		{Value: 128, Go: "LinkStateChange", Text: "LinkStateChange"},
		{Value: 129, Go: "LocalLinkIntegrity", Text: "LocalLinkIntegrity"},
		{Value: 130, Go: "BufferOverrun", Text: "BufferOverrun"},
		{Value: 131, Go: "FlowControlWatchdog", Text: "FlowControlWatchdog"},
		{Value: 144, Go: "LocalChanges", Text: "LocalChanges"},
		{Value: 145, Go: "SystemImageGUIDChange", Text: "SystemImageGUIDChange"},
		{Value: 256, Go: "BadMKey", Text: "BadM_Key", Alias: []string{"BadMKey"}},
		{Value: 257, Go: "BadPKey", Text: "BadP_Key", Alias: []string{"BadPKey"}},
		{Value: 258, Go: "BadQKey", Text: "BadQ_Key", Alias: []string{"BadQKey"}},
		{Value: 259, Go: "BadSwitchPKey", Text: "BadSwitchP_Key", Alias: []string{"BadSwitchPKey"}},
		{Value: 0xffff, Go: "All", Text: "All"},
	},
}

// JoinState says how a port belongs to a multicast group.
var JoinState = &Enum{
	Name: "JoinState", Bits: 8, Prefix: "Join", Sep: "|", IBA: "15.2.5.17", Diag: "0x%x",
	Doc: "says how a port belongs to a multicast group.",
	Values: []Value{
		{Value: 1, Go: "FullMember", Text: "FullMember"},
		{Value: 2, Go: "NonMember", Text: "NonMember"},
		{Value: 4, Go: "SendOnlyNonMember", Text: "SendOnlyNonMember"},
		{Value: 8, Go: "SendOnlyFullMember", Text: "SendOnlyFullMember"},
	},
}

// MulticastScope says how far a multicast group reaches.
var MulticastScope = &Enum{
	Name: "MulticastScope", Bits: 8, Prefix: "Scope", IBA: "4.1.1", Diag: "0x%x",
	Doc: "says how far a multicast group reaches.",
	Values: []Value{
		{Value: 2, Go: "LinkLocal", Text: "LinkLocal"},
		{Value: 5, Go: "SiteLocal", Text: "SiteLocal"},
		{Value: 8, Go: "OrganizationLocal", Text: "OrganizationLocal"},
		{Value: 14, Go: "Global", Text: "Global"},
	},
}

// FECMode is a kind of forward error correction.
var FECMode = &Enum{
	Name: "FECMode", Bits: 16, Prefix: "FEC", IBA: "14.2.5.19", Diag: "%d",
	Doc: "is a kind of forward error correction.",
	Values: []Value{
		{Value: 0, Go: "None", Text: "none"},
		{Value: 1, Go: "FireCode", Text: "FireCode"},
		{Value: 2, Go: "RS", Text: "RS"},
		{Value: 3, Go: "LowLatencyRS", Text: "LowLatencyRS"},
	},
}

// PortExtCapMask says what a port's extended information holds.
var PortExtCapMask = &Enum{
	Name: "PortExtCapMask", Bits: 32, Prefix: "ExtCap", Sep: "|", IBA: "14.2.5.19", Diag: "0x%08x",
	Doc: "says which parts of PortInfoExtended count.",
	Values: []Value{
		{Value: 1 << 0, Go: "IsFECModeSupported", Text: "IsFECModeSupported"},
	},
}

// LinkSpeedMlnx is a set of Mellanox's own link speeds.
var LinkSpeedMlnx = &Enum{
	Name: "LinkSpeedMlnx", Bits: 8, Sep: " or ", IBA: "none: OpenSM ib_types.h, FDR10", Diag: "0x%02x",
	Doc: "is a set of Mellanox's own link speeds.",
	Values: []Value{
		{Value: 1, Go: "FDR10", Text: "FDR10"},
	},
}
