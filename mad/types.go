package mad

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// LID is a local identifier: unicast 0x0001-0xbfff, multicast 0xc000-0xfffe,
// 0xffff permissive (IBA 4.1.3).
type LID uint16

// String prints the LID in decimal, as the diags do.
func (l LID) String() string { return strconv.Itoa(int(l)) }

// IsUnicast tells whether l can belong to one port.
func (l LID) IsUnicast() bool { return l != 0 && l < FirstMulticast }

// GUID is an EUI-64 of a node, a port or a system (IBA 4.1.1).
type GUID uint64

// String prints the GUID as 0x and 16 hexadecimal digits.
func (g GUID) String() string { return fmt.Sprintf("0x%016x", uint64(g)) }

// GID is a global identifier: an IPv6 address whose low half is a port GUID
// (IBA 4.1.1). The bytes are in wire order.
type GID [16]byte

// MakeGID joins a GID prefix and a port GUID.
func MakeGID(prefix uint64, guid GUID) (g GID) {
	binary.BigEndian.PutUint64(g[:8], prefix)
	binary.BigEndian.PutUint64(g[8:], uint64(guid))
	return g
}

// Prefix is the upper half: the subnet prefix.
func (g GID) Prefix() uint64 { return binary.BigEndian.Uint64(g[:8]) }

// GUID is the lower half: the interface id.
func (g GID) GUID() GUID { return GUID(binary.BigEndian.Uint64(g[8:])) }

// IsZero tells whether no bit is set.
func (g GID) IsZero() bool { return g == GID{} }

// String prints the GID as an IPv6 address.
func (g GID) String() string { return netip.AddrFrom16(g).String() }

// PKey is a partition key: 15 bits of key, and the top bit for full membership
// (IBA 10.9.1).
type PKey uint16

// DefaultPKey is the default partition, full member (IBA 10.9.1.2).
const DefaultPKey PKey = 0xffff

// Base is the key without the membership bit.
func (p PKey) Base() uint16 { return uint16(p) & 0x7fff }

// IsFull tells whether the key grants full membership.
func (p PKey) IsFull() bool { return p&0x8000 != 0 }

// Matches tells whether two ports with these keys may talk: same base, not
// both limited, and not the invalid key 0 (IBA 10.9.3).
func (p PKey) Matches(q PKey) bool {
	return p.Base() == q.Base() && p.Base() != 0 && (p.IsFull() || q.IsFull())
}

// String prints the key as 0x and 4 hexadecimal digits.
func (p PKey) String() string { return fmt.Sprintf("0x%04x", uint16(p)) }

// Route is a directed route: the port to leave by at each hop. Element 0 is
// always 0 and stands for the local node, as in the initial path of an SMP
// (IBA 14.2.1.2); the number of hops is len-1.
type Route []uint8

// Hops is the number of links the route crosses.
func (r Route) Hops() int { return max(len(r)-1, 0) }

// String prints the route as the diags do: 0,1,3.
func (r Route) String() string {
	if len(r) == 0 {
		return "0"
	}
	var b strings.Builder
	for i, p := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(p)))
	}
	return b.String()
}

// GRH holds the fields of a global route header that a MAD's sender chooses,
// or its receiver sees (IBA 8.3). In a received message GID is the remote one,
// ready to reply to.
type GRH struct {
	GID          GID
	GIDIndex     uint8 // index of the own GID
	HopLimit     uint8
	TrafficClass uint8
	FlowLabel    uint32 // 20 bits
}

// AddressVector says where a MAD goes, or where it came from: the fields of the
// kernel's ib_user_mad_hdr, in host byte order. The same value answers: a
// response sent to the AddressVector of its request reaches the requester.
type AddressVector struct {
	LID       LID    // destination when sending, source when received
	QPN       uint32 // destination QP when sending, source QP when received
	SL        uint8
	PathBits  uint8  // low LMC bits of the own LID
	PKeyIndex uint16 // index in the own port's P_Key table
	HasGRH    bool
	GRH       GRH // only if HasGRH
}

// String prints what identifies the far end: "LID 5", with QP and GID where
// they matter, or the GID alone where there are no LIDs.
func (a AddressVector) String() string {
	s := "LID " + a.LID.String()
	switch {
	case a.HasGRH && a.LID == 0:
		s = "GID " + a.GRH.GID.String()
	case a.HasGRH:
		s += " GID " + a.GRH.GID.String()
	}
	if a.QPN > QPGSI {
		s += " QP " + strconv.FormatUint(uint64(a.QPN), 10)
	}
	return s
}
