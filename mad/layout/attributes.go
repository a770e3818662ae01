package layout

// Numbers of the classes and methods that the table of attributes refers to.
const (
	classSubn = 0x01
	classAdm  = 0x03
	classCom  = 0x07
)

var (
	get       = []uint8{0x01}
	send      = []uint8{0x03}
	getSet    = []uint8{0x01, 0x02}
	getTable  = []uint8{0x01, 0x12}
	set       = []uint8{0x02}
	trapped   = []uint8{0x01, 0x02, 0x05, 0x07}
	report    = []uint8{0x06}
	registers = []uint8{0x01, 0x02, 0x12, 0x15}
)

// Attributes lists the attributes of every class. A name stands for one number
// in all classes, but may stand for several structures.
var Attributes = []*Attribute{
	{Class: classSubn, ID: 0x0002, Name: "Notice", Methods: trapped, Struct: SMPNotice},
	{Class: classSubn, ID: 0x0010, Name: "NodeDescription", Short: "ND", Alias: []string{"NodeDesc"}, Methods: getSet, Struct: NodeDescription},
	{Class: classSubn, ID: 0x0011, Name: "NodeInfo", Short: "NI", Methods: get, Struct: NodeInfo},
	{Class: classSubn, ID: 0x0012, Name: "SwitchInfo", Short: "SI", Methods: getSet, Struct: SwitchInfo},
	{Class: classSubn, ID: 0x0014, Name: "GUIDInfo", Short: "GI", Methods: getSet, Struct: GUIDInfo, Modifier: "block of 8 GUIDs"},
	{Class: classSubn, ID: 0x0015, Name: "PortInfo", Short: "PI", Methods: getSet, Struct: PortInfo, Modifier: "port"},
	{Class: classSubn, ID: 0x0016, Name: "P_KeyTable", Short: "PKeys", Methods: getSet, Struct: PKeyTable, Modifier: "port << 16 | block of 32 keys"},
	{Class: classSubn, ID: 0x0017, Name: "SLtoVLMappingTable", Short: "SL2VL", Alias: []string{"SL2VLTable"}, Methods: getSet, Struct: SLtoVLMappingTable, Modifier: "input port << 8 | output port"},
	{Class: classSubn, ID: 0x0018, Name: "VLArbitrationTable", Short: "VLArb", Alias: []string{"VLArbitration"}, Methods: getSet, Struct: VLArbitrationTable, Modifier: "block << 16 | port: 1 and 2 of low priority, 3 and 4 of high"},
	{Class: classSubn, ID: 0x0019, Name: "LinearForwardingTable", Short: "LFT", Methods: getSet, Struct: LinearForwardingTable, Modifier: "block of 64 LIDs"},
	{Class: classSubn, ID: 0x001a, Name: "RandomForwardingTable", Short: "RFT", Methods: getSet, Struct: RandomForwardingTable, Modifier: "block of 16 entries"},
	{Class: classSubn, ID: 0x001b, Name: "MulticastForwardingTable", Short: "MFT", Methods: getSet, Struct: MulticastForwardingTable, Modifier: "position of 16 ports << 28 | block of 32 LIDs"},
	{Class: classSubn, ID: 0x0020, Name: "SMInfo", Methods: getSet, Struct: SMInfo, Modifier: "control of the SM, in a Set"},
	{Class: classSubn, ID: 0x0030, Name: "VendorDiag", Methods: get, Struct: VendorDiag, Modifier: "index, 0 first"},
	{Class: classSubn, ID: 0x0031, Name: "LedInfo", Methods: getSet, Struct: LedInfo, Modifier: "port"},
	{Class: classSubn, ID: 0x0033, Name: "PortInfoExtended", Short: "PIE", Methods: getSet, Struct: PortInfoExtended, Modifier: "port"},
	{Class: classSubn, ID: 0xff90, Name: "MlnxExtPortInfo", Short: "MEPI", Methods: getSet, Struct: MlnxExtPortInfo, Modifier: "port"},

	{Class: classAdm, ID: 0x0001, Name: "ClassPortInfo", Short: "CPI", Methods: get, Struct: ClassPortInfo},
	{Class: classAdm, ID: 0x0002, Name: "Notice", Methods: report, Struct: Notice},
	{Class: classAdm, ID: 0x0003, Name: "InformInfo", Methods: set, Struct: InformInfo},
	{Class: classAdm, ID: 0x0011, Name: "NodeRecord", Short: "NR", Methods: getTable, Struct: NodeRecord},
	{Class: classAdm, ID: 0x0012, Name: "PortInfoRecord", Short: "PIR", Methods: getTable, Struct: PortInfoRecord, Modifier: "bit 31: match the bits that are set in CapabilityMask"},
	{Class: classAdm, ID: 0x0013, Name: "SLtoVLMappingTableRecord", Short: "SL2VL", Alias: []string{"SL2VLTableRecord"}, Methods: getTable, Struct: SLtoVLMappingTableRecord},
	{Class: classAdm, ID: 0x0014, Name: "SwitchInfoRecord", Short: "SWIR", Methods: getTable, Struct: SwitchInfoRecord},
	{Class: classAdm, ID: 0x0015, Name: "LinearForwardingTableRecord", Short: "LFTR", Alias: []string{"LFTRecord"}, Methods: getTable, Struct: LinearForwardingTableRecord},
	{Class: classAdm, ID: 0x0016, Name: "RandomForwardingTableRecord", Short: "RFTR", Alias: []string{"RFTRecord"}, Methods: getTable, Struct: RandomForwardingTableRecord},
	{Class: classAdm, ID: 0x0017, Name: "MulticastForwardingTableRecord", Short: "MFTR", Alias: []string{"MFTRecord"}, Methods: getTable, Struct: MulticastForwardingTableRecord},
	{Class: classAdm, ID: 0x0018, Name: "SMInfoRecord", Short: "SMIR", Methods: getTable, Struct: SMInfoRecord},
	{Class: classAdm, ID: 0x0020, Name: "LinkRecord", Short: "LR", Methods: getTable, Struct: LinkRecord},
	{Class: classAdm, ID: 0x0030, Name: "GUIDInfoRecord", Short: "GIR", Methods: registers, Struct: GUIDInfoRecord},
	{Class: classAdm, ID: 0x0031, Name: "ServiceRecord", Short: "SR", Methods: registers, Struct: ServiceRecord},
	{Class: classAdm, ID: 0x0033, Name: "P_KeyTableRecord", Short: "PKTR", Methods: getTable, Struct: PKeyTableRecord},
	{Class: classAdm, ID: 0x0035, Name: "PathRecord", Short: "PR", Methods: getTable, Struct: PathRecord},
	{Class: classAdm, ID: 0x0036, Name: "VLArbitrationTableRecord", Short: "VLAR", Methods: getTable, Struct: VLArbitrationTableRecord},
	{Class: classAdm, ID: 0x0038, Name: "MCMemberRecord", Short: "MCMR", Methods: registers, Struct: MCMemberRecord},
	{Class: classAdm, ID: 0x003b, Name: "ServiceAssociationRecord", Short: "SAR", Methods: getTable, Struct: ServiceAssociationRecord},
	{Class: classAdm, ID: 0x00f3, Name: "InformInfoRecord", Short: "IIR", Methods: getTable, Struct: InformInfoRecord},

	{Class: classCom, ID: 0x0001, Name: "ClassPortInfo", Short: "CPI", Methods: getSet, Struct: ClassPortInfo},
	{Class: classCom, ID: 0x0010, Name: "ConnectRequest", Short: "REQ", Methods: send, Struct: ConnectRequest, Modifier: "options of the vendor"},
	{Class: classCom, ID: 0x0011, Name: "MsgRcptAck", Short: "MRA", Methods: send, Struct: MsgRcptAck},
	{Class: classCom, ID: 0x0012, Name: "ConnectReject", Short: "REJ", Methods: send, Struct: ConnectReject},
	{Class: classCom, ID: 0x0013, Name: "ConnectReply", Short: "REP", Methods: send, Struct: ConnectReply, Modifier: "options of the vendor"},
	{Class: classCom, ID: 0x0014, Name: "ReadyToUse", Short: "RTU", Methods: send, Struct: ReadyToUse},
	{Class: classCom, ID: 0x0015, Name: "DisconnectRequest", Short: "DREQ", Methods: send, Struct: DisconnectRequest},
	{Class: classCom, ID: 0x0016, Name: "DisconnectReply", Short: "DREP", Methods: send, Struct: DisconnectReply},
	{Class: classCom, ID: 0x0017, Name: "ServiceIDResReq", Short: "SIDR_REQ", Methods: send, Struct: ServiceIDResReq},
	{Class: classCom, ID: 0x0018, Name: "ServiceIDResReqResp", Short: "SIDR_REP", Methods: send, Struct: ServiceIDResReqResp, Modifier: "options of the vendor"},
	{Class: classCom, ID: 0x0019, Name: "LoadAlternatePath", Short: "LAP", Methods: send, Struct: LoadAlternatePath},
	{Class: classCom, ID: 0x001a, Name: "AlternatePathResponse", Short: "APR", Methods: send, Struct: AlternatePathResponse},
}
