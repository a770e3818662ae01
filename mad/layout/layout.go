// Package layout is the one description of InfiniBand management structures:
// where each field lies, what it means, which attribute carries it and which
// bit of a component mask selects it. The generator writes the structs of
// package mad from these tables; the same tables at run time serve text, JSON
// and look-ups by name.
//
// The tables hold facts only. Offsets count bits from the most significant bit
// of the first byte, which is how the IBA prints its tables; numbers are
// big-endian.
package layout

// Struct is the layout of one structure on the wire.
type Struct struct {
	Name   string  // as the IBA writes it
	Size   int     // in bytes
	IBA    string  // section of the InfiniBand Architecture Specification, volume 1
	Doc    string  // what it is, for the reader of the Go documentation
	Fields []Field // they tile the structure: no gap, no overlap
	// Mask names the field of each component mask bit, lowest bit first; "" is a
	// reserved bit, and a field may own more than one. Nil: no component mask.
	Mask []string
	// SA is how saquery prints the structure. Nil: saquery does not.
	SA *Listing
	// SM is how smpquery prints the structure, if not one field a line.
	SM *Listing
}

// Field is one row of a Struct.
type Field struct {
	Name  string // as the IBA writes it; "" is reserved
	Off   int    // first bit
	Len   int    // bits, of one element
	Count int    // number of elements of an array, 0 if it is none
	Kind  Kind
	Enum  *Enum   // for KindEnum
	Of    *Struct // for KindStruct
	Label string  // what smpquery calls it; "" if it does not print it
	Key   bool    // a secret, which the diags print only when asked to
	Raw   bool    // the diags print the number, although its values have names
	// Unlimited is the smallest exponent of a KindTime that sets no limit; 0: all
	// of them do.
	Unlimited uint64
	Go        string // name of the Go member, where it is not Name without underscores
	Doc       string // unit and meaning, where the name does not say it
	// Variants are the structures that a row of bytes may hold. The first that
	// fits counts; if none does, the bytes have no known meaning.
	Variants []Variant
}

// Variant is one reading of a row of bytes.
type Variant struct {
	When []Cond // all of them hold
	Of   *Struct
}

// Cond holds if the number in another field of the same structure lies between
// Min and Max.
type Cond struct {
	Field    string
	Min, Max uint64
}

// Kind says what the bits of a field are.
type Kind uint8

const (
	KindUint   Kind = iota // number, shown in decimal
	KindHex                // number, shown in hexadecimal
	KindFlag               // one bit
	KindTime               // exponent of a time: 4.096 us * 2^n
	KindEnum               // number with names for its values, or for its bits
	KindLID                // 16 bits
	KindGUID               // 64 bits
	KindPKey               // 16 bits
	KindGID                // 128 bits
	KindBytes              // bytes without further meaning
	KindString             // UTF-8 text, padded with NUL
	KindStruct             // an embedded structure
)

// IsReserved tells whether the row has no meaning, or none yet.
func (f *Field) IsReserved() bool { return f.Name == "" }

// Bits is the length of the whole row, all elements of an array included.
func (f *Field) Bits() int { return f.Len * max(f.Count, 1) }

// IsNumber tells whether one element is a number of at most 64 bits.
func (f *Field) IsNumber() bool {
	switch f.Kind {
	case KindUint, KindHex, KindFlag, KindTime, KindEnum, KindLID, KindGUID, KindPKey:
		return f.Len <= 64
	}
	return false
}

// Enum names the values of a number.
type Enum struct {
	Name string // of the Go type
	Bits int    // width of the Go type
	// Prefix of the constants, if not Name.
	Prefix string
	// Sep joins the texts of a number whose bits have the names, " or " and "|";
	// "" if the values are not bits.
	Sep string
	IBA string // where the values are listed
	Doc string
	// ByHand says that String is not generated: the meaning hangs on more than
	// the value.
	ByHand bool
	// Diag is the C format that the diags use for a value without a name.
	Diag   string
	Values []Value
}

// Value is one named value of an Enum.
type Value struct {
	Value uint64
	Go    string   // the constant is Enum.Name and this
	Text  string   // as the diags print it
	Quiet bool     // the diags do not print it
	Alias []string // other spellings that are accepted
}

// Attribute says which structure a class carries under an attribute id.
type Attribute struct {
	Class   uint8    // class of the MAD; SM attributes stand under 0x01 and serve 0x81 too
	ID      uint16   // attribute id
	Name    string   // as the IBA writes it
	Short   string   // abbreviation of smpquery, saquery or the IBA
	Alias   []string // further names, those of the diags among them
	Methods []uint8
	Struct  *Struct
	// Modifier says what the attribute modifier selects; "" if it is unused.
	Modifier string
}

// Group is the set of structures that share a generated file.
type Group struct {
	File    string // the file is z<File>.go
	Structs []*Struct
}

// Groups lists every structure of the tables. A structure stands behind those
// that it embeds.
var Groups = []Group{
	{"header", []*Struct{Header, SMPLIDHeader, SMPDirectedHeader, SMPDirectedPaths, RMPPHeader, SAHeader}},
	{"common", []*Struct{ClassPortInfo}},
	{"notice", []*Struct{
		Trap64Details, Trap128Details, Trap129Details, Trap144Details, Trap145Details,
		Trap256Details, Trap257Details, Trap259Details, Notice, SMPNotice, InformInfo,
	}},
	{"sm", []*Struct{
		NodeDescription, NodeInfo, SwitchInfo, GUIDInfo, PortInfo, SMInfo, VendorDiag, LedInfo,
		PortInfoExtended, MlnxExtPortInfo,
	}},
	{"smtable", []*Struct{
		PKeyTable, SLtoVLMappingTable, VLWeight, VLArbitrationTable, LinearForwardingTable,
		RandomForwardingEntry, RandomForwardingTable, MulticastForwardingTable,
	}},
	{"sa", []*Struct{
		NodeRecord, PathRecord, LinkRecord, ServiceRecord, ServiceAssociationRecord, MCMemberRecord, InformInfoRecord,
	}},
	{"sasm", []*Struct{
		PortInfoRecord, SwitchInfoRecord, SMInfoRecord, GUIDInfoRecord, PKeyTableRecord, SLtoVLMappingTableRecord,
		VLArbitrationTableRecord, LinearForwardingTableRecord, RandomForwardingTableRecord, MulticastForwardingTableRecord,
	}},
	{"cm", []*Struct{
		ConnectRequest, MsgRcptAck, ConnectReject, ConnectReply, ReadyToUse, DisconnectRequest, DisconnectReply,
		LoadAlternatePath, AlternatePathResponse, ServiceIDResReq, ServiceIDResReqResp, IPCMHeader,
	}},
}
