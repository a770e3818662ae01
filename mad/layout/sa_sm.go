package layout

import (
	"fmt"
	"slices"
)

// The records in this file are attributes of subnet management, with the port
// they belong to before them.

// PortInfoRecord is what the SA knows of a port.
var PortInfoRecord = &Struct{
	Name: "PortInfoRecord", Size: 68, IBA: "15.2.5.3",
	Doc: "is what the SA knows of a port.",
	Fields: []Field{
		{Name: "EndportLID", Off: 0, Len: 16, Kind: KindLID, Doc: "of the port; of a switch's external port that of its port 0"},
		{Name: "PortNum", Off: 16, Len: 8},
		{Name: "Options", Off: 24, Len: 8, Kind: KindHex},
		{Name: "PortInfo", Off: 32, Len: 512, Kind: KindStruct, Of: PortInfo},
	},
	Mask: slices.Concat([]string{"EndportLID", "PortNum", "Options"}, inside("PortInfo",
		"M_Key", "GidPrefix", "LID", "MasterSMLID", "CapabilityMask", "DiagCode", "M_KeyLeasePeriod", "LocalPortNum",
		"LinkWidthEnabled", "LinkWidthSupported", "LinkWidthActive", "LinkSpeedSupported", "PortState",
		"PortPhysicalState", "LinkDownDefaultState", "M_KeyProtectBits", "", "LMC", "LinkSpeedActive",
		"LinkSpeedEnabled", "NeighborMTU", "MasterSMSL", "VLCap", "InitType", "VLHighLimit", "VLArbitrationHighCap",
		"VLArbitrationLowCap", "InitTypeReply", "MTUCap", "VLStallCount", "HOQLife", "OperationalVLs",
		"PartitionEnforcementInbound", "PartitionEnforcementOutbound", "FilterRawInbound", "FilterRawOutbound",
		"M_KeyViolations", "P_KeyViolations", "Q_KeyViolations", "GUIDCap", "ClientReregister", "", "SubnetTimeOut", "",
		"RespTimeValue", "LocalPhyErrors", "OverrunErrors", "MaxCreditHint", "", "LinkRoundTripLatency",
		"CapabilityMask2", "LinkSpeedExtActive", "LinkSpeedExtSupported", "", "LinkSpeedExtEnabled",
	)),
	SA: &Listing{Title: "PortInfoRecord dump:", Indent: saIndent, Width: 24, Lines: []Line{
		heading("\tRID"),
		{Label: "EndPortLid", Field: "EndportLID"},
		{Label: "PortNum", Field: "PortNum"},
		{Label: "Options", Field: "Options", Format: Hex},
		heading("\tPortInfo dump:"),
		{Field: "PortInfo", Format: Dotted},
	}},
}

// SwitchInfoRecord is what the SA knows of a switch.
var SwitchInfoRecord = &Struct{
	Name: "SwitchInfoRecord", Size: 24, IBA: "15.2.5.5",
	Doc: "is what the SA knows of a switch.",
	Fields: []Field{
		{Name: "LID", Off: 0, Len: 16, Kind: KindLID},
		{Off: 16, Len: 16},
		{Name: "SwitchInfo", Off: 32, Len: 160, Kind: KindStruct, Of: SwitchInfo},
	},
	Mask: []string{"LID"},
	SA: &Listing{Title: "SwitchInfoRecord dump:", Indent: saIndent, Width: 40, Lines: []Line{
		heading("\t\tRID"),
		{Label: "LID", Field: "LID"},
		heading("\t\tSwitchInfo dump:"),
		{Label: "LinearFDBCap", Field: "SwitchInfo.LinearFDBCap", Format: HEX},
		{Label: "RandomFDBCap", Field: "SwitchInfo.RandomFDBCap", Format: HEX},
		{Label: "MulticastFDBCap", Field: "SwitchInfo.MulticastFDBCap", Format: HEX},
		{Label: "LinearFDBTop", Field: "SwitchInfo.LinearFDBTop", Format: HEX},
		{Label: "DefaultPort", Field: "SwitchInfo.DefaultPort"},
		{Label: "DefaultMulticastPrimaryPort", Field: "SwitchInfo.DefaultMulticastPrimaryPort"},
		{Label: "DefaultMulticastNotPrimaryPort", Field: "SwitchInfo.DefaultMulticastNotPrimaryPort"},
		{Label: "LifeTimeValue/PortStateChange/OpSL2VL", Off: 120, Len: 8, Format: HEX},
		{Label: "LIDsPerPort", Field: "SwitchInfo.LIDsPerPort", Format: HEX},
		{Label: "PartitionEnforcementCap", Field: "SwitchInfo.PartitionEnforcementCap", Format: HEX},
		{Label: "flags", Off: 160, Len: 8, Format: HEX},
		{Label: "MulticastFDBTop", Field: "SwitchInfo.MulticastFDBTop", Format: HEX},
	}},
}

// SMInfoRecord is what the SA knows of a subnet manager.
var SMInfoRecord = &Struct{
	Name: "SMInfoRecord", Size: 25, IBA: "15.2.5.10",
	Doc: "is what the SA knows of a subnet manager.",
	Fields: []Field{
		{Name: "LID", Off: 0, Len: 16, Kind: KindLID},
		{Off: 16, Len: 16},
		{Name: "SMInfo", Off: 32, Len: 168, Kind: KindStruct, Of: SMInfo},
	},
	Mask: slices.Concat([]string{"LID", ""}, inside("SMInfo", "GUID", "SM_Key", "ActCount", "Priority", "SMState")),
	SA: &Listing{Title: "SMInfoRecord dump:", Indent: saIndent, Width: 22, Lines: []Line{
		heading("\t\tRID"),
		{Label: "LID", Field: "LID"},
		heading("\t\tSMInfo dump:"),
		{Label: "GUID", Field: "SMInfo.GUID", Format: Hex16},
		{Label: "SM_Key", Field: "SMInfo.SM_Key", Format: Hex16},
		{Label: "ActCount", Field: "SMInfo.ActCount"},
		{Label: "Priority", Field: "SMInfo.Priority"},
		{Label: "SMState", Field: "SMInfo.SMState"},
	}},
}

// GUIDInfoRecord is a block of a port's GUIDs.
var GUIDInfoRecord = &Struct{
	Name: "GUIDInfoRecord", Size: 72, IBA: "15.2.5.18",
	Doc: "is a block of 8 of a port's GUIDs.",
	Fields: []Field{
		{Name: "LID", Off: 0, Len: 16, Kind: KindLID},
		{Name: "BlockNum", Off: 16, Len: 8},
		{Off: 24, Len: 8},
		{Off: 32, Len: 32},
		{Name: "GUIDInfo", Off: 64, Len: 512, Kind: KindStruct, Of: GUIDInfo},
	},
	Mask: slices.Concat([]string{"LID", "BlockNum", "", ""}, inside("GUIDInfo", elements("GUID", 8)...)),
	SA: &Listing{Title: "GUIDInfo Record dump:", Indent: saIndent, Width: 27, Lines: slices.Concat(
		[]Line{{Label: "LID", Field: "LID"}, {Label: "Block", Field: "BlockNum"}},
		numbered("GUID %d", "GUIDInfo.GUID", 8, 0, Hex16),
	)},
}

// PKeyTableRecord is a block of a port's partition keys.
var PKeyTableRecord = &Struct{
	Name: "P_KeyTableRecord", Size: 72, IBA: "15.2.5.11",
	Doc: "is a block of 32 of a port's partition keys.",
	Fields: []Field{
		{Name: "LID", Off: 0, Len: 16, Kind: KindLID},
		{Name: "BlockNum", Off: 16, Len: 16},
		{Name: "PortNum", Off: 32, Len: 8, Doc: "of a switch; reserved for CAs"},
		{Off: 40, Len: 24},
		{Name: "P_KeyTable", Off: 64, Len: 512, Kind: KindStruct, Of: PKeyTable},
	},
	Mask: []string{"LID", "BlockNum", "PortNum"},
	SA: &Listing{Title: "PKeyTableRecord dump:", Indent: saIndent, Width: 27, Lines: []Line{
		{Label: "LID", Field: "LID"},
		{Label: "Port", Field: "PortNum"},
		{Label: "Block", Field: "BlockNum"},
		heading("\t\tPKey Table:"),
		{Off: 64, Len: 16, Count: 8, Format: Row},
		{Off: 192, Len: 16, Count: 8, Format: Row},
		{Off: 320, Len: 16, Count: 8, Format: Row},
		{Off: 448, Len: 16, Count: 8, Format: Row},
		heading(""),
	}},
}

// SLtoVLMappingTableRecord is a map of service levels to virtual lanes.
var SLtoVLMappingTableRecord = &Struct{
	Name: "SLtoVLMappingTableRecord", Size: 16, IBA: "15.2.5.4",
	Doc: "is a map of service levels to virtual lanes.",
	Fields: []Field{
		{Name: "LID", Off: 0, Len: 16, Kind: KindLID},
		{Name: "InputPortNum", Off: 16, Len: 8, Doc: "of a switch; reserved for CAs"},
		{Name: "OutputPortNum", Off: 24, Len: 8, Doc: "of a switch; reserved for CAs"},
		{Off: 32, Len: 32},
		{Name: "SLtoVLMappingTable", Off: 64, Len: 64, Kind: KindStruct, Of: SLtoVLMappingTable},
	},
	Mask: []string{"LID", "InputPortNum", "OutputPortNum"},
	SA: &Listing{Title: "SL2VLTableRecord dump:", Indent: saIndent, Width: 27, Lines: []Line{
		{Label: "LID", Field: "LID"},
		{Label: "InPort", Field: "InputPortNum"},
		{Label: "OutPort", Field: "OutputPortNum"},
		heading("\t\tSL: 0| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|15|"),
		{Label: "VL:", Off: 64, Len: 4, Count: 16, Format: Cells},
	}},
}

// VLArbitrationTableRecord is half of a port's list of lanes to serve.
var VLArbitrationTableRecord = &Struct{
	Name: "VLArbitrationTableRecord", Size: 72, IBA: "15.2.5.9",
	Doc: "is one half of a port's list of virtual lanes to serve in turn.",
	Fields: []Field{
		{Name: "LID", Off: 0, Len: 16, Kind: KindLID},
		{Name: "OutputPortNum", Off: 16, Len: 8, Doc: "of a switch; reserved for CAs"},
		{Name: "BlockNum", Off: 24, Len: 8, Doc: "1 and 2 of low priority, 3 and 4 of high"},
		{Off: 32, Len: 32},
		{Name: "VLArbitrationTable", Off: 64, Len: 512, Kind: KindStruct, Of: VLArbitrationTable},
	},
	Mask: []string{"LID", "OutputPortNum", "BlockNum"},
	SA: &Listing{Title: "VLArbTableRecord dump:", Indent: saIndent, Width: 27, Lines: []Line{
		{Label: "LID", Field: "LID"},
		{Label: "Port", Field: "OutputPortNum"},
		{Label: "Block", Field: "BlockNum"},
		{Label: "VL    :", Off: 64, Len: 8, Count: 16, Step: 16, Format: Cells},
		{Label: "Weight:", Off: 72, Len: 8, Count: 16, Step: 16, Format: Cells},
		{Label: "VL    :", Off: 320, Len: 8, Count: 16, Step: 16, Format: Cells},
		{Label: "Weight:", Off: 328, Len: 8, Count: 16, Step: 16, Format: Cells},
	}},
}

// LinearForwardingTableRecord is a block of a switch's forwarding table.
var LinearForwardingTableRecord = &Struct{
	Name: "LinearForwardingTableRecord", Size: 72, IBA: "15.2.5.6",
	Doc: "is a block of a switch's forwarding table: the ports to leave by of\n64 LIDs.",
	Fields: []Field{
		{Name: "LID", Off: 0, Len: 16, Kind: KindLID},
		{Name: "BlockNum", Off: 16, Len: 16},
		{Off: 32, Len: 32},
		{Name: "LinearForwardingTable", Off: 64, Len: 512, Kind: KindStruct, Of: LinearForwardingTable},
	},
	Mask: []string{"LID", "BlockNum"},
	SA: &Listing{Title: "LFT Record dump:", Indent: saIndent, Width: 27, Lines: []Line{
		{Label: "LID", Field: "LID"},
		{Label: "Block", Field: "BlockNum"},
		heading("\t\tLFT:"),
		heading("\t\tLID\tPort Number"),
		{Off: 64, Len: 8, Count: 64, Block: "BlockNum"},
		heading(""),
	}},
}

// RandomForwardingTableRecord is a block of a switch's forwarding table.
var RandomForwardingTableRecord = &Struct{
	Name: "RandomForwardingTableRecord", Size: 72, IBA: "15.2.5.7",
	Doc: "is a block of a switch's forwarding table, for switches that have one\nwith a LID in each entry.",
	Fields: []Field{
		{Name: "LID", Off: 0, Len: 16, Kind: KindLID},
		{Name: "BlockNum", Off: 16, Len: 16},
		{Off: 32, Len: 32},
		{Name: "RandomForwardingTable", Off: 64, Len: 512, Kind: KindStruct, Of: RandomForwardingTable},
	},
	Mask: []string{"LID", "BlockNum"},
}

// MulticastForwardingTableRecord is a block of a switch's multicast table.
var MulticastForwardingTableRecord = &Struct{
	Name: "MulticastForwardingTableRecord", Size: 72, IBA: "15.2.5.8",
	Doc: "is a block of a switch's multicast table: masks of 16 ports to leave\nby of 32 LIDs.",
	Fields: []Field{
		{Name: "LID", Off: 0, Len: 16, Kind: KindLID},
		{Name: "Position", Off: 16, Len: 4, Doc: "the masks start with port 16 * Position"},
		{Off: 20, Len: 3},
		{Name: "BlockNum", Off: 23, Len: 9},
		{Off: 32, Len: 32},
		{Name: "MulticastForwardingTable", Off: 64, Len: 512, Kind: KindStruct, Of: MulticastForwardingTable},
	},
	Mask: []string{"LID", "Position", "", "BlockNum"},
	SA: &Listing{Title: "MFT Record dump:", Indent: saIndent, Width: 27, Lines: []Line{
		{Label: "LID", Field: "LID"},
		{Label: "Position", Field: "Position"},
		{Label: "Block", Field: "BlockNum"},
		heading("\t\tMFT:"),
		heading("\t\tMLID\tPort Mask"),
		{Off: 64, Len: 16, Count: 32, Format: Hex4, Block: "BlockNum", First: 0xc000},
		heading(""),
	}},
}

// inside names fields of an embedded structure.
func inside(path string, names ...string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		if name != "" {
			out[i] = path + "." + name
		}
	}
	return out
}

// elements names the elements of an array.
func elements(name string, count int) []string {
	out := make([]string, count)
	for i := range out {
		out[i] = fmt.Sprintf("%s[%d]", name, i)
	}
	return out
}
