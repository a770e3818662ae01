// Package mad holds the wire formats of InfiniBand management datagrams: the
// common header, classes, methods and statuses, addresses, and every known
// attribute as a generated struct.
//
// A MAD is 256 bytes, all multi-byte fields big-endian on the wire (IBA
// 13.4.2). The structs in the z*.go files are generated from the field table
// in [github.com/ibsm/ibsm/mad/layout]; each has DecodeFrom and EncodeTo over
// a fixed-size array, which cannot fail, and UnmarshalBinary, which checks the
// length first. Decoding keeps reserved bits, so that encoding what was
// decoded gives back the same bytes.
package mad

// Size is the length of a MAD on the wire in bytes (IBA 13.4.2).
const Size = 256

// BaseVersion is the only base version of MADs on InfiniBand (IBA 13.4.2).
const BaseVersion = 1

// ResponseBit (the R bit) is set in the method of a response (IBA 13.4.5).
const ResponseBit = 0x80

// Well-known queue pairs: SMPs go to QP0, all other MADs (GMPs) to QP1
// (IBA 3.9.4).
const (
	QPSMI = 0 // subnet management interface
	QPGSI = 1 // general service interface
)

// QKeyGSI is the well-known Q_Key of QP1 (IBA 10.2.5).
const QKeyGSI = 0x80010000

// Header positions that code outside the generated structs may touch in a
// message of any length.
const (
	OffClass         = 1
	OffClassVersion  = 2
	OffMethod        = 3
	OffStatus        = 4
	OffTID           = 8
	OffAttribute     = 16
	OffModifier      = 20
	OffRMPP          = 24                       // RMPP header, in classes that have one
	OffRMPPData      = OffRMPP + RMPPHeaderSize // 36: class header or data
	OffSMPData       = 64                       // data of a subnet management packet
	SMPDataSize      = 64
	OffSAData        = 56 // data of an SA MAD, after RMPP and SA header
	SADataSize       = Size - OffSAData
	MaxDirectedHops  = 63 // IBA 14.2.1.2: the path arrays have 64 entries, entry 0 unused
	PermissiveLID    = LID(0xffff)
	FirstMulticast   = LID(0xc000)
	DefaultGIDPrefix = 0xfe80000000000000
)

// IsResponse tells whether a MAD is a response by the rule the kernel uses
// (drivers/infiniband/core/mad.c, ib_response_mad): the R bit, or method
// TrapRepress, or, in the baseboard management class, bit 0 of the attribute
// modifier. b holds at least the common header.
func IsResponse(b []byte) bool {
	m := b[OffMethod]
	return m&ResponseBit != 0 || m == 0x07 ||
		(b[OffClass] == 0x05 && b[OffModifier+3]&1 != 0)
}

// ClassHeaderLen gives the number of bytes before the data of a MAD of class c:
// 56 for SA, 64 for device management, device administration and BIS, 40 for
// vendor classes with OUI (0x30-0x4f), 24 for all others (kernel
// ib_get_mad_data_offset).
func ClassHeaderLen(c Class) int {
	switch {
	case c == 0x03:
		return 56
	case c == 0x06, c == 0x10, c == 0x12:
		return 64
	case c >= 0x30 && c <= 0x4f:
		return 40
	}
	return HeaderSize
}

// HasRMPP tells whether MADs of class c carry an RMPP header (kernel
// ib_is_mad_class_rmpp).
func HasRMPP(c Class) bool { return ClassHeaderLen(c) != HeaderSize }
