package layout

import "slices"

// LinkRecord is a link between two ports.
var LinkRecord = &Struct{
	Name: "LinkRecord", Size: 6, IBA: "15.2.5.13",
	Doc: "is a link from one port to another; each link has two.",
	Fields: []Field{
		{Name: "FromLID", Off: 0, Len: 16, Kind: KindLID},
		{Name: "FromPort", Off: 16, Len: 8},
		{Name: "ToPort", Off: 24, Len: 8},
		{Name: "ToLID", Off: 32, Len: 16, Kind: KindLID},
	},
	Mask: []string{"FromLID", "FromPort", "ToPort", "ToLID"},
	SA: &Listing{Title: "LinkRecord dump:", Indent: saIndent, Width: 27, Lines: []Line{
		{Label: "FromLID", Field: "FromLID"},
		{Label: "FromPort", Field: "FromPort"},
		{Label: "ToPort", Field: "ToPort"},
		{Label: "ToLID", Field: "ToLID"},
	}},
}

// ServiceRecord is a service that a port offers.
var ServiceRecord = &Struct{
	Name: "ServiceRecord", Size: 176, IBA: "15.2.5.14",
	Doc: "is a service that a port offers under a name and an id.",
	Fields: []Field{
		{Name: "ServiceID", Off: 0, Len: 64, Kind: KindHex},
		{Name: "ServiceGID", Off: 64, Len: 128, Kind: KindGID, Doc: "of the port that offers it"},
		{Name: "ServiceP_Key", Off: 192, Len: 16, Kind: KindPKey},
		{Off: 208, Len: 16},
		{Name: "ServiceLease", Off: 224, Len: 32, Kind: KindHex, Doc: "seconds it stays registered; 0xffffffff is for ever"},
		{Name: "ServiceKey", Off: 256, Len: 128, Kind: KindBytes, Key: true},
		{Name: "ServiceName", Off: 384, Len: 512, Kind: KindString},
		{Name: "ServiceData8", Off: 896, Len: 8, Count: 16},
		{Name: "ServiceData16", Off: 1024, Len: 16, Count: 8},
		{Name: "ServiceData32", Off: 1152, Len: 32, Count: 4},
		{Name: "ServiceData64", Off: 1280, Len: 64, Count: 2, Kind: KindHex},
	},
	Mask: slices.Concat(
		[]string{"ServiceID", "ServiceGID", "ServiceP_Key", "", "ServiceLease", "ServiceKey", "ServiceName"},
		elements("ServiceData8", 16), elements("ServiceData16", 8), elements("ServiceData32", 4), elements("ServiceData64", 2),
	),
	SA: &Listing{Title: "ServiceRecord dump:", Indent: saIndent, Width: 24, Lines: slices.Concat(
		[]Line{
			{Label: "ServiceID", Field: "ServiceID", Format: Hex16},
			{Label: "ServiceGID", Field: "ServiceGID", Format: IPv6},
			{Label: "ServiceP_Key", Field: "ServiceP_Key", Format: HEX},
			{Label: "ServiceLease", Field: "ServiceLease", Format: HEX},
			{Label: "ServiceKey", Field: "ServiceKey", Format: LowDigits, Key: true},
			{Label: "ServiceName", Field: "ServiceName", Format: Text},
		},
		numbered("ServiceData8.%d", "ServiceData8", 16, 1, HEX),
		numbered("ServiceData16.%d", "ServiceData16", 8, 1, HEX),
		numbered("ServiceData32.%d", "ServiceData32", 4, 1, HEX),
		numbered("ServiceData64.%d", "ServiceData64", 2, 1, Hex16),
	)},
}

// ServiceAssociationRecord joins a service's name and key.
var ServiceAssociationRecord = &Struct{
	Name: "ServiceAssociationRecord", Size: 80, IBA: "15.2.5.15",
	Doc: "joins the name of a service and its key.",
	Fields: []Field{
		{Name: "ServiceKey", Off: 0, Len: 128, Kind: KindBytes, Key: true},
		{Name: "ServiceName", Off: 128, Len: 512, Kind: KindString},
	},
	Mask: []string{"ServiceKey", "ServiceName"},
}

// MCMemberRecord is a member of a multicast group.
var MCMemberRecord = &Struct{
	Name: "MCMemberRecord", Size: 52, IBA: "15.2.5.17",
	Doc: "is a member of a multicast group, and what the group has in common.",
	Fields: []Field{
		{Name: "MGID", Off: 0, Len: 128, Kind: KindGID, Doc: "of the group"},
		{Name: "PortGID", Off: 128, Len: 128, Kind: KindGID, Doc: "of the member"},
		{Name: "Q_Key", Off: 256, Len: 32, Kind: KindHex},
		{Name: "MLID", Off: 288, Len: 16, Kind: KindLID},
		{Name: "MTUSelector", Off: 304, Len: 2, Kind: KindEnum, Enum: Selector},
		{Name: "MTU", Off: 306, Len: 6, Kind: KindEnum, Enum: MTU},
		{Name: "TClass", Off: 312, Len: 8, Kind: KindHex},
		{Name: "P_Key", Off: 320, Len: 16, Kind: KindPKey},
		{Name: "RateSelector", Off: 336, Len: 2, Kind: KindEnum, Enum: Selector},
		{Name: "Rate", Off: 338, Len: 6, Kind: KindEnum, Enum: Rate},
		{Name: "PacketLifeTimeSelector", Off: 344, Len: 2, Kind: KindEnum, Enum: Selector},
		{Name: "PacketLifeTime", Off: 346, Len: 6, Kind: KindTime, Doc: "4.096 us * 2^n"},
		{Name: "SL", Off: 352, Len: 4},
		{Name: "FlowLabel", Off: 356, Len: 20, Kind: KindHex},
		{Name: "HopLimit", Off: 376, Len: 8},
		{Name: "Scope", Off: 384, Len: 4, Kind: KindEnum, Enum: MulticastScope},
		{Name: "JoinState", Off: 388, Len: 4, Kind: KindEnum, Enum: JoinState},
		{Name: "ProxyJoin", Off: 392, Len: 1, Kind: KindFlag, Doc: "another port joined for the member"},
		{Off: 393, Len: 23},
	},
	Mask: []string{
		"MGID", "PortGID", "Q_Key", "MLID", "MTUSelector", "MTU", "TClass", "P_Key", "RateSelector", "Rate",
		"PacketLifeTimeSelector", "PacketLifeTime", "SL", "FlowLabel", "HopLimit", "Scope", "JoinState", "ProxyJoin",
	},
	SA: &Listing{Title: "MCMember Record dump:", Indent: saIndent, Width: 24, Lines: []Line{
		{Label: "MGID", Field: "MGID", Format: IPv6},
		{Label: "PortGid", Field: "PortGID", Format: IPv6},
		{Label: "qkey", Field: "Q_Key", Format: Hex},
		{Label: "mlid", Field: "MLID", Format: Hex},
		{Label: "mtu", Field: "MTU", Off: 304, Len: 8, Format: Hex},
		{Label: "TClass", Field: "TClass", Format: Hex},
		{Label: "pkey", Field: "P_Key", Format: Hex},
		{Label: "rate", Field: "Rate", Off: 336, Len: 8, Format: Hex},
		{Label: "pkt_life", Field: "PacketLifeTime", Off: 344, Len: 8, Format: Hex},
		{Label: "SL", Field: "SL", Format: Hex},
		{Label: "FlowLabel", Field: "FlowLabel", Format: Hex},
		{Label: "HopLimit", Field: "HopLimit", Format: Hex},
		{Label: "Scope", Field: "Scope", Format: Hex},
		{Label: "JoinState", Field: "JoinState", Format: Hex},
		// saquery's C bit field is the lowest bit of the byte, not the highest.
		{Label: "ProxyJoin", Field: "ProxyJoin", Off: 399, Len: 1, Format: Hex},
	}},
}

// InformInfoRecord is a subscription.
var InformInfoRecord = &Struct{
	Name: "InformInfoRecord", Size: 60, IBA: "15.2.5.12",
	Doc: "is a subscription that the SA holds.",
	Fields: []Field{
		{Name: "SubscriberGID", Off: 0, Len: 128, Kind: KindGID},
		{Name: "Enum", Off: 128, Len: 16, Kind: KindHex, Doc: "number of the subscription among those of its subscriber"},
		{Off: 144, Len: 48},
		{Name: "InformInfo", Off: 192, Len: 288, Kind: KindStruct, Of: InformInfo},
	},
	Mask: []string{
		"SubscriberGID", "Enum", "", "InformInfo.GID", "InformInfo.LIDRangeBegin", "InformInfo.LIDRangeEnd", "",
		"InformInfo.IsGeneric", "InformInfo.Subscribe", "InformInfo.Type", "InformInfo.TrapNumber", "InformInfo.QPN", "",
		"InformInfo.RespTimeValue", "", "InformInfo.ProducerType",
	},
	SA: &Listing{Title: "InformInfoRecord dump:", Indent: saIndent, Width: 24, Lines: []Line{
		heading("\t\tRID"),
		{Label: "SubscriberGID", Field: "SubscriberGID", Format: IPv6},
		{Label: "SubscriberEnum", Field: "Enum", Format: HEX},
		heading("\t\tInformInfo dump:"),
		{Label: "gid", Field: "InformInfo.GID", Format: IPv6},
		{Label: "lid_range_begin", Field: "InformInfo.LIDRangeBegin"},
		{Label: "lid_range_end", Field: "InformInfo.LIDRangeEnd"},
		{Label: "is_generic", Field: "InformInfo.IsGeneric", Format: HEX},
		{Label: "subscribe", Field: "InformInfo.Subscribe", Format: HEX},
		{Label: "trap_type", Field: "InformInfo.Type", Format: HEX},
		{Label: "trap_num", Field: "InformInfo.TrapNumber", When: generic},
		{Label: "dev_id", Field: "InformInfo.TrapNumber", Format: HEX, When: vendor},
		{Label: "qpn", Field: "InformInfo.QPN", Format: HEX6, Key: true},
		{Label: "resp_time_val", Field: "InformInfo.RespTimeValue", Format: HEX},
		{Label: "node_type", Field: "InformInfo.ProducerType", Format: HEX6, When: generic},
		{Label: "vendor_id", Field: "InformInfo.ProducerType", Format: HEX6, When: vendor},
	}},
}

// Conditions of the two forms of an InformInfo.
var (
	generic = []Cond{{"InformInfo.IsGeneric", 1, 255}}
	vendor  = []Cond{{"InformInfo.IsGeneric", 0, 0}}
)
