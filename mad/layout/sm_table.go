package layout

// PKeyTable is one block of a port's partition keys.
var PKeyTable = &Struct{
	Name: "P_KeyTable", Size: 64, IBA: "14.2.5.7",
	Doc: "is one block of 32 of a port's partition keys.",
	Fields: []Field{
		{Name: "P_Key", Off: 0, Len: 16, Count: 32, Kind: KindPKey},
	},
}

// SLtoVLMappingTable maps service levels to virtual lanes.
var SLtoVLMappingTable = &Struct{
	Name: "SLtoVLMappingTable", Size: 8, IBA: "14.2.5.8",
	Doc: "maps service levels to virtual lanes, for packets from one port of\na switch to another, or those that a CA sends.",
	Fields: []Field{
		{Name: "SLtoVL", Off: 0, Len: 4, Count: 16, Doc: "lane of each service level; 15 drops"},
	},
	SM: &Listing{Lines: []Line{{Label: "|", Len: 4, Count: 16, Format: Cells}}},
}

// VLWeight is an entry of a VLArbitrationTable.
var VLWeight = &Struct{
	Name: "VLWeight", Size: 2, IBA: "14.2.5.9",
	Doc: "is an entry of a [VLArbitrationTable].",
	Fields: []Field{
		{Off: 0, Len: 4},
		{Name: "VL", Off: 4, Len: 4},
		{Name: "Weight", Off: 8, Len: 8, Doc: "units of 64 bytes; 0 skips the entry"},
	},
}

// VLArbitrationTable is half of a port's list of lanes to serve.
var VLArbitrationTable = &Struct{
	Name: "VLArbitrationTable", Size: 64, IBA: "14.2.5.9",
	Doc: "is one half of a port's list, of low or high priority, of the lanes\nthat it serves in turn.",
	Fields: []Field{
		{Name: "VLWeight", Off: 0, Len: 16, Count: 32, Kind: KindStruct, Of: VLWeight},
	},
	SM: &Listing{Lines: []Line{
		heading(""),
		{Label: "VL    : |", Off: 4, Len: 4, Count: 32, Step: 16, Format: HEXCells},
		{Label: "WEIGHT: |", Off: 8, Len: 8, Count: 32, Step: 16, Format: HEXCells},
	}},
}

// LinearForwardingTable is one block of a switch's forwarding table.
var LinearForwardingTable = &Struct{
	Name: "LinearForwardingTable", Size: 64, IBA: "14.2.5.10",
	Doc: "is one block of a switch's forwarding table: the ports to leave by of 64 LIDs.",
	Fields: []Field{
		{Name: "Port", Off: 0, Len: 8, Count: 64, Label: "LinearForwTbl", Doc: "255 drops"},
	},
}

// RandomForwardingEntry is an entry of a RandomForwardingTable.
var RandomForwardingEntry = &Struct{
	Name: "RandomForwardingEntry", Size: 4, IBA: "14.2.5.11",
	Doc: "is an entry of a [RandomForwardingTable].",
	Fields: []Field{
		{Name: "LID", Off: 0, Len: 16, Kind: KindLID},
		{Name: "Valid", Off: 16, Len: 1, Kind: KindFlag},
		{Name: "LMC", Off: 17, Len: 3, Doc: "the entry serves 2^LMC LIDs"},
		{Off: 20, Len: 4},
		{Name: "Port", Off: 24, Len: 8, Doc: "port to leave by"},
	},
}

// RandomForwardingTable is one block of a switch's table of LIDs and ports.
var RandomForwardingTable = &Struct{
	Name: "RandomForwardingTable", Size: 64, IBA: "14.2.5.11",
	Doc: "is one block of a switch's forwarding table, for switches that have\none with a LID in each entry.",
	Fields: []Field{
		{Name: "Entry", Off: 0, Len: 32, Count: 16, Kind: KindStruct, Of: RandomForwardingEntry},
	},
}

// MulticastForwardingTable is one block of a switch's multicast table.
var MulticastForwardingTable = &Struct{
	Name: "MulticastForwardingTable", Size: 64, IBA: "14.2.5.12",
	Doc: "is one block of a switch's multicast table: for each of 32 LIDs a\nmask of 16 of the ports to leave by.",
	Fields: []Field{
		{Name: "PortMask", Off: 0, Len: 16, Count: 32, Kind: KindHex, Label: "MulticastForwTbl", Doc: "bit 0 is the first port of the position"},
	},
}
