package layout

import "slices"

// Notice reports an event.
var Notice = &Struct{
	Name: "Notice", Size: 80, IBA: "13.4.8.2",
	Doc: "reports an event. It travels in traps, and in the reports that an SA\nforwards to subscribers; [SMPNotice] is its form in SMPs.",
	Fields: slices.Concat(SMPNotice.Fields, []Field{
		{Name: "IssuerGID", Off: 512, Len: 128, Kind: KindGID, Doc: "of the port that the event belongs to"},
	}),
}

// SMPNotice is a Notice that has to fit into an SMP.
var SMPNotice = &Struct{
	Name: "SMPNotice", Size: 64, IBA: "13.4.8.2",
	Doc: "is a [Notice] in an SMP, where there is no room for the issuer's GID.",
	Fields: []Field{
		{Name: "IsGeneric", Off: 0, Len: 1, Kind: KindFlag, Label: "NoticeIsGeneric", Doc: "false: the vendor gives the numbers their meaning"},
		{Name: "Type", Off: 1, Len: 7, Kind: KindEnum, Enum: NoticeType, Raw: true, Label: "NoticeType"},
		{Name: "ProducerType", Off: 8, Len: 24, Kind: KindEnum, Enum: ProducerType, Label: "NoticeProducerType", Doc: "VendorID if not generic"},
		{Name: "TrapNumber", Off: 32, Len: 16, Kind: KindEnum, Enum: TrapNumber, Raw: true, Label: "NoticeTrapNumber", Doc: "DeviceID if not generic"},
		{Name: "IssuerLID", Off: 48, Len: 16, Kind: KindLID, Label: "NoticeIssuerLID"},
		{Name: "NoticeToggle", Off: 64, Len: 1, Kind: KindFlag, Label: "NoticeToggle", Doc: "changes when a repeated notice is a new event"},
		{Name: "NoticeCount", Off: 65, Len: 15, Label: "NoticeCount", Doc: "notices in the queue of the issuer"},
		{Name: "DataDetails", Off: 80, Len: 432, Kind: KindBytes, Label: "NoticeDataDetails", Variants: []Variant{
			{When: trap(64, 67), Of: Trap64Details},
			{When: trap(128, 128), Of: Trap128Details},
			{When: trap(129, 131), Of: Trap129Details},
			{When: trap(144, 144), Of: Trap144Details},
			{When: trap(145, 145), Of: Trap145Details},
			{When: trap(256, 256), Of: Trap256Details},
			{When: trap(257, 258), Of: Trap257Details},
			{When: trap(259, 259), Of: Trap259Details},
		}},
	},
}

// trap is the condition for generic traps of these numbers.
func trap(first, last uint64) []Cond {
	return []Cond{{"IsGeneric", 1, 1}, {"TrapNumber", first, last}}
}

// detailsSize is the length of a Notice's DataDetails.
const detailsSize = 54

// Trap64Details tells which GID came or went.
var Trap64Details = &Struct{
	Name: "Trap64Details", Size: detailsSize, IBA: "14.2.5.1",
	Doc: "is the DataDetails of traps 64 to 67: a GID came into service or went\nout of it, a multicast group was created or deleted.",
	Fields: []Field{
		{Off: 0, Len: 48},
		{Name: "GIDADDR", Off: 48, Len: 128, Kind: KindGID},
		{Off: 176, Len: 256},
	},
}

// Trap128Details tells which switch has a new link state.
var Trap128Details = &Struct{
	Name: "Trap128Details", Size: detailsSize, IBA: "14.2.5.1",
	Doc: "is the DataDetails of trap 128: the state of a link of a switch changed.",
	Fields: []Field{
		{Name: "LIDADDR", Off: 0, Len: 16, Kind: KindLID, Doc: "of the switch"},
		{Off: 16, Len: 416},
	},
}

// Trap129Details tells which port reached a threshold.
var Trap129Details = &Struct{
	Name: "Trap129Details", Size: detailsSize, IBA: "14.2.5.1",
	Doc: "is the DataDetails of traps 129 to 131: local link integrity or\nbuffer overrun errors reached their threshold, or the flow control watchdog\nexpired.",
	Fields: []Field{
		{Off: 0, Len: 16},
		{Name: "LIDADDR", Off: 16, Len: 16, Kind: KindLID},
		{Name: "PORTNO", Off: 32, Len: 8},
		{Off: 40, Len: 392},
	},
}

// Trap144Details tells what a port changed by itself.
var Trap144Details = &Struct{
	Name: "Trap144Details", Size: detailsSize, IBA: "14.2.5.1",
	Doc: "is the DataDetails of trap 144: a port's capability mask changed or,\nif OtherLocalChanges is set, what the flags say.",
	Fields: []Field{
		{Off: 0, Len: 16},
		{Name: "LIDADDR", Off: 16, Len: 16, Kind: KindLID},
		{Off: 32, Len: 15},
		{Name: "OtherLocalChanges", Off: 47, Len: 1, Kind: KindFlag},
		{Name: "CAPABILITYMASK", Off: 48, Len: 32, Kind: KindEnum, Enum: PortCapMask, Doc: "the new one"},
		{Off: 80, Len: 10},
		{Name: "CapabilityMask2Change", Off: 90, Len: 1, Kind: KindFlag},
		{Name: "HierarchyInfoChange", Off: 91, Len: 1, Kind: KindFlag},
		{Name: "SMPriorityChange", Off: 92, Len: 1, Kind: KindFlag},
		{Name: "LinkSpeedEnabledChange", Off: 93, Len: 1, Kind: KindFlag},
		{Name: "LinkWidthEnabledChange", Off: 94, Len: 1, Kind: KindFlag},
		{Name: "NodeDescriptionChange", Off: 95, Len: 1, Kind: KindFlag},
		{Name: "CAPABILITYMASK2", Off: 96, Len: 16, Kind: KindEnum, Enum: PortCapMask2, Doc: "the new one"},
		{Off: 112, Len: 320},
	},
}

// Trap145Details tells the new system image GUID.
var Trap145Details = &Struct{
	Name: "Trap145Details", Size: detailsSize, IBA: "14.2.5.1",
	Doc: "is the DataDetails of trap 145: the system image GUID changed.",
	Fields: []Field{
		{Off: 0, Len: 16},
		{Name: "LIDADDR", Off: 16, Len: 16, Kind: KindLID},
		{Off: 32, Len: 16},
		{Name: "SYSTEMIMAGEGUID", Off: 48, Len: 64, Kind: KindGUID, Doc: "the new one"},
		{Off: 112, Len: 320},
	},
}

// Trap256Details tells who sent an SMP with a bad M_Key.
var Trap256Details = &Struct{
	Name: "Trap256Details", Size: detailsSize, IBA: "14.2.5.1",
	Doc: "is the DataDetails of trap 256: an SMP came with a bad M_Key.",
	Fields: []Field{
		{Off: 0, Len: 16},
		{Name: "LIDADDR", Off: 16, Len: 16, Kind: KindLID, Doc: "source of the SMP"},
		{Name: "DRSLID", Off: 32, Len: 16, Kind: KindLID, Doc: "of a directed-route SMP"},
		{Name: "METHOD", Off: 48, Len: 8, Kind: KindEnum, Enum: Method},
		{Off: 56, Len: 8},
		{Name: "ATTRIBUTEID", Off: 64, Len: 16, Kind: KindEnum, Enum: AttributeID},
		{Name: "ATTRIBUTEMODIFIER", Off: 80, Len: 32, Kind: KindHex},
		{Name: "MKEY", Off: 112, Len: 64, Kind: KindHex, Key: true},
		{Off: 176, Len: 8},
		{Name: "DRNotice", Off: 184, Len: 1, Kind: KindFlag, Doc: "the SMP was directed"},
		{Name: "DRPathTruncated", Off: 185, Len: 1, Kind: KindFlag, Doc: "the return path did not fit"},
		{Name: "DRHopCount", Off: 186, Len: 6, Doc: "entries of the return path"},
		{Name: "DRNoticeReturnPath", Off: 192, Len: 8, Count: 30},
	},
}

// Trap257Details tells whose P_Key or Q_Key did not match.
var Trap257Details = &Struct{
	Name: "Trap257Details", Size: detailsSize, IBA: "14.2.5.1",
	Doc: "is the DataDetails of traps 257 and 258: a packet came with a bad\nP_Key, or a bad Q_Key.",
	Fields: []Field{
		{Off: 0, Len: 16},
		{Name: "LIDADDR1", Off: 16, Len: 16, Kind: KindLID, Doc: "source of the packet"},
		{Name: "LIDADDR2", Off: 32, Len: 16, Kind: KindLID, Doc: "destination"},
		{Name: "KEY", Off: 48, Len: 32, Kind: KindHex, Key: true, Doc: "a P_Key stands in the low 16 bits"},
		{Name: "SL", Off: 80, Len: 4},
		{Off: 84, Len: 4},
		{Name: "QP1", Off: 88, Len: 24, Kind: KindHex},
		{Off: 112, Len: 8},
		{Name: "QP2", Off: 120, Len: 24, Kind: KindHex},
		{Name: "GIDADDR1", Off: 144, Len: 128, Kind: KindGID},
		{Name: "GIDADDR2", Off: 272, Len: 128, Kind: KindGID},
		{Off: 400, Len: 32},
	},
}

// Trap259Details tells at which port of a switch a P_Key did not match.
var Trap259Details = &Struct{
	Name: "Trap259Details", Size: detailsSize, IBA: "14.2.5.1",
	Doc: "is the DataDetails of trap 259: an external port of a switch met a\npacket with a bad P_Key.",
	Fields: []Field{
		{Name: "DataValid", Off: 0, Len: 16, Kind: KindHex, Doc: "which of the other fields hold something"},
		{Name: "LIDADDR1", Off: 16, Len: 16, Kind: KindLID, Doc: "source of the packet"},
		{Name: "LIDADDR2", Off: 32, Len: 16, Kind: KindLID, Doc: "destination"},
		{Name: "PKEY", Off: 48, Len: 16, Kind: KindPKey},
		{Name: "SL", Off: 64, Len: 4},
		{Off: 68, Len: 4},
		{Name: "QP1", Off: 72, Len: 24, Kind: KindHex},
		{Off: 96, Len: 8},
		{Name: "QP2", Off: 104, Len: 24, Kind: KindHex},
		{Name: "GIDADDR1", Off: 128, Len: 128, Kind: KindGID},
		{Name: "GIDADDR2", Off: 256, Len: 128, Kind: KindGID},
		{Name: "SWLIDADDR", Off: 384, Len: 16, Kind: KindLID, Doc: "of the switch"},
		{Name: "PORTNO", Off: 400, Len: 8},
		{Off: 408, Len: 24},
	},
}

// InformInfo subscribes to notices.
var InformInfo = &Struct{
	Name: "InformInfo", Size: 36, IBA: "13.4.8.3",
	Doc: "subscribes to notices, or ends a subscription.",
	Fields: []Field{
		{Name: "GID", Off: 0, Len: 128, Kind: KindGID, Doc: "port to hear about; zero leaves it to the LIDs"},
		{Name: "LIDRangeBegin", Off: 128, Len: 16, Kind: KindLID, Doc: "0xffff is all ports"},
		{Name: "LIDRangeEnd", Off: 144, Len: 16, Kind: KindLID},
		{Off: 160, Len: 16},
		{Name: "IsGeneric", Off: 176, Len: 8, Doc: "1 for generic notices, 0 for a vendor's"},
		{Name: "Subscribe", Off: 184, Len: 8, Doc: "1 subscribes, 0 ends it"},
		{Name: "Type", Off: 192, Len: 16, Kind: KindEnum, Enum: NoticeType},
		{Name: "TrapNumber", Off: 208, Len: 16, Kind: KindEnum, Enum: TrapNumber, Doc: "DeviceID if not generic"},
		{Name: "QPN", Off: 224, Len: 24, Kind: KindHex, Doc: "where the subscriber listens"},
		{Off: 248, Len: 3},
		{Name: "RespTimeValue", Off: 251, Len: 5, Kind: KindTime, Doc: "time of the subscriber to answer, 4.096 us * 2^n"},
		{Off: 256, Len: 8},
		{Name: "ProducerType", Off: 264, Len: 24, Kind: KindEnum, Enum: ProducerType, Doc: "VendorID if not generic"},
	},
}
