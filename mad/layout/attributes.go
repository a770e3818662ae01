package layout

// Numbers of the classes and methods that the table of attributes refers to.
const (
	classSubn = 0x01
	classAdm  = 0x03
)

var (
	get      = []uint8{0x01}
	getSet   = []uint8{0x01, 0x02}
	getTable = []uint8{0x01, 0x12}
)

// Attributes lists the attributes of every class.
var Attributes = []*Attribute{
	{Class: classSubn, ID: 0x0010, Name: "NodeDescription", Short: "ND", Methods: getSet, Struct: NodeDescription},
	{Class: classSubn, ID: 0x0011, Name: "NodeInfo", Short: "NI", Methods: get, Struct: NodeInfo},
	{Class: classSubn, ID: 0x0012, Name: "SwitchInfo", Short: "SI", Methods: getSet, Struct: SwitchInfo},
	{Class: classSubn, ID: 0x0014, Name: "GUIDInfo", Short: "GI", Methods: getSet, Struct: GUIDInfo, Modifier: "block of 8 GUIDs"},
	{Class: classSubn, ID: 0x0015, Name: "PortInfo", Short: "PI", Methods: getSet, Struct: PortInfo, Modifier: "port"},
	{Class: classSubn, ID: 0x0016, Name: "P_KeyTable", Short: "PKeys", Methods: getSet, Struct: PKeyTable, Modifier: "port << 16 | block of 32 keys"},
	{Class: classSubn, ID: 0x0019, Name: "LinearForwardingTable", Short: "LFT", Methods: getSet, Struct: LinearForwardingTable, Modifier: "block of 64 LIDs"},
	{Class: classSubn, ID: 0x0020, Name: "SMInfo", Methods: getSet, Struct: SMInfo, Modifier: "control of the SM, in a Set"},

	{Class: classAdm, ID: 0x0001, Name: "ClassPortInfo", Short: "CPI", Methods: get, Struct: ClassPortInfo},
	{Class: classAdm, ID: 0x0011, Name: "NodeRecord", Short: "NR", Methods: getTable, Struct: NodeRecord},
	{Class: classAdm, ID: 0x0035, Name: "PathRecord", Short: "PR", Methods: getTable, Struct: PathRecord},
}
