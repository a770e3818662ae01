package layout

import "slices"

// Sizes of the common header, and of the whole header of an SMP.
const (
	headerSize    = 24
	smpHeaderSize = 64
)

// Header is the common MAD header.
var Header = &Struct{
	Name: "Header", Size: headerSize, IBA: "13.4.2",
	Doc: "is the header common to all MADs.",
	Fields: []Field{
		{Name: "BaseVersion", Off: 0, Len: 8, Label: "MadBaseVersion"},
		{Name: "MgmtClass", Off: 8, Len: 8, Kind: KindEnum, Enum: Class, Label: "MadMgmtClass"},
		{Name: "ClassVersion", Off: 16, Len: 8, Label: "MadClassVersion"},
		{Name: "Method", Off: 24, Len: 8, Kind: KindEnum, Enum: Method, Label: "MadMethod", Doc: "with its R bit"},
		{Name: "Status", Off: 32, Len: 16, Kind: KindEnum, Enum: Status, Label: "MadStatus"},
		{Name: "ClassSpecific", Off: 48, Len: 16, Kind: KindHex, Doc: "hop pointer and hop count in directed-route SMPs"},
		{Name: "TransactionID", Off: 64, Len: 64, Kind: KindHex, Label: "MadTRID"},
		{Name: "AttributeID", Off: 128, Len: 16, Kind: KindEnum, Enum: AttributeID, Label: "MadAttr"},
		{Off: 144, Len: 16},
		{Name: "AttributeModifier", Off: 160, Len: 32, Kind: KindHex, Label: "MadModifier"},
	},
}

// SMPLIDHeader is what precedes the data of a LID-routed SMP.
var SMPLIDHeader = &Struct{
	Name: "SMPLIDHeader", Size: smpHeaderSize, IBA: "14.2.1.1",
	Doc: "is all that precedes the 64 bytes of data of a LID-routed SMP.",
	Fields: slices.Concat(Header.Fields, []Field{
		{Name: "M_Key", Off: 192, Len: 64, Kind: KindHex, Key: true, Label: "MadMkey"},
		{Off: 256, Len: 256},
	}),
}

// SMPDirectedHeader is what precedes the data of a directed-route SMP.
var SMPDirectedHeader = &Struct{
	Name: "SMPDirectedHeader", Size: smpHeaderSize, IBA: "14.2.1.2",
	Doc: "is all that precedes the 64 bytes of data of a directed-route SMP.\nThe paths follow the data, see [SMPDirectedPaths].",
	Fields: []Field{
		{Name: "BaseVersion", Off: 0, Len: 8, Label: "MadBaseVersion"},
		{Name: "MgmtClass", Off: 8, Len: 8, Kind: KindEnum, Enum: Class, Label: "MadMgmtClass"},
		{Name: "ClassVersion", Off: 16, Len: 8, Label: "MadClassVersion"},
		{Name: "Method", Off: 24, Len: 8, Kind: KindEnum, Enum: Method, Label: "MadMethod", Doc: "with its R bit"},
		{Name: "D", Off: 32, Len: 1, Kind: KindFlag, Label: "DrSmpDirection", Doc: "direction: false outbound, true on the way back"},
		{Name: "Status", Off: 33, Len: 15, Kind: KindEnum, Enum: Status, Label: "DrSmpStatus"},
		{Name: "HopPointer", Off: 48, Len: 8, Label: "DrSmpHopPtr", Doc: "current index in the paths"},
		{Name: "HopCount", Off: 56, Len: 8, Label: "DrSmpHopCnt", Doc: "number of valid entries of the initial path"},
		{Name: "TransactionID", Off: 64, Len: 64, Kind: KindHex, Label: "MadTRID"},
		{Name: "AttributeID", Off: 128, Len: 16, Kind: KindEnum, Enum: AttributeID, Label: "MadAttr"},
		{Off: 144, Len: 16},
		{Name: "AttributeModifier", Off: 160, Len: 32, Kind: KindHex, Label: "MadModifier"},
		{Name: "M_Key", Off: 192, Len: 64, Kind: KindHex, Key: true, Label: "MadMkey"},
		{Name: "DrSLID", Off: 256, Len: 16, Kind: KindLID, Label: "DrSmpSLID", Doc: "where the directed part starts; permissive if it starts at the source"},
		{Name: "DrDLID", Off: 272, Len: 16, Kind: KindLID, Label: "DrSmpDLID", Doc: "where the directed part ends; permissive if it ends at the destination"},
		{Off: 288, Len: 224},
	},
}

// SMPDirectedPaths is what follows the data of a directed-route SMP.
var SMPDirectedPaths = &Struct{
	Name: "SMPDirectedPaths", Size: 128, IBA: "14.2.1.2",
	Doc: "is the second half of a directed-route SMP, bytes 128 to 255.\nEntry 0 of each path is not used.",
	Fields: []Field{
		{Name: "InitialPath", Off: 0, Len: 8, Count: 64, Label: "DrSmpPath", Doc: "port to leave by at each hop"},
		{Name: "ReturnPath", Off: 512, Len: 8, Count: 64, Label: "DrSmpRetPath", Doc: "port it was received by at each hop"},
	},
}

// RMPPHeader is the header of the reliable multi-packet protocol.
var RMPPHeader = &Struct{
	Name: "RMPPHeader", Size: 12, IBA: "13.6.2.1",
	Doc: "is the header of the reliable multi-packet protocol, at byte 24.",
	Fields: []Field{
		{Name: "RMPPVersion", Off: 0, Len: 8, Label: "RmppVers"},
		{Name: "RMPPType", Off: 8, Len: 8, Kind: KindEnum, Enum: RMPPType, Label: "RmppType"},
		{Name: "RRespTime", Off: 16, Len: 5, Label: "RmppResp", Doc: "response time as 4.096 us * 2^n; 31 is none"},
		{Name: "RMPPFlags", Off: 21, Len: 3, Kind: KindEnum, Enum: RMPPFlags, Label: "RmppFlags"},
		{Name: "RMPPStatus", Off: 24, Len: 8, Kind: KindEnum, Enum: RMPPStatus, Label: "RmppStatus"},
		{Name: "Data1", Off: 32, Len: 32, Label: "RmppData1", Doc: "segment number of DATA and ACK"},
		{Name: "Data2", Off: 64, Len: 32, Label: "RmppData2", Doc: "payload length of DATA, new window last of ACK"},
	},
}

// SAHeader is the header of subnet administration.
var SAHeader = &Struct{
	Name: "SAHeader", Size: 20, IBA: "15.2.1.1",
	Doc: "is the header of subnet administration, at byte 36, after the RMPP header.",
	Fields: []Field{
		{Name: "SM_Key", Off: 0, Len: 64, Kind: KindHex, Key: true, Label: "SaSMkey"},
		{Name: "AttributeOffset", Off: 64, Len: 16, Label: "SaAttrOffs", Doc: "distance from record to record in units of 8 bytes"},
		{Off: 80, Len: 16},
		{Name: "ComponentMask", Off: 96, Len: 64, Kind: KindHex, Label: "SaCompMask"},
	},
}
