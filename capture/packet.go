package capture

import (
	"encoding/binary"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// The Extensible Record Format of Endace, as Wireshark's erf.c reads it: a
// header of 16 bytes whose time stamp is little-endian and whose other numbers
// are big-endian, then the packet.
const (
	erfHeaderSize      = 16
	erfTypeInfiniBand  = 21
	erfTypePad         = 48   // no packet at all
	erfFlagVaryingSize = 0x04 // what follows is as long as the packet is
)

// Sizes of what stands around the MAD, in bytes (IBA 7.7, 8.3, 9.2, 9.3.3, 7.8).
const (
	lrhSize  = 8
	grhSize  = 40
	bthSize  = 12
	dethSize = 8
	icrcSize = 4
	vcrcSize = 2
)

const (
	vlManagement   = 15   // of SMPs (IBA 7.6)
	lnhLocal       = 2    // the BTH follows the LRH (IBA 7.7)
	lnhGlobal      = 3    // the GRH follows the LRH
	ipVersion      = 6    // IBA 8.3
	nextHeaderBTH  = 0x1b // the BTH follows the GRH (IBA 8.3)
	opcodeSendOnly = 0x64 // of unreliable datagrams (IBA 9.2)
	mask20         = 1<<20 - 1
	mask24         = 1<<24 - 1
)

// packet is one MAD on its way, in the words of the wire.
type packet struct {
	at         time.Time
	slid, dlid mad.LID
	sl         uint8
	sgid, dgid mad.GID
	grh        *mad.GRH // nil: no GRH
	pkey       mad.PKey
	srcQP      uint32
	dstQP      uint32
	psn        uint32
	mad        *[mad.Size]byte
}

// ownQP is the queue pair that MADs of a class use on this side.
func ownQP(class mad.Class) uint32 {
	if class == mad.ClassSubnLIDRouted || class == mad.ClassSubnDirected {
		return mad.QPSMI
	}
	return mad.QPGSI
}

// packetOf makes the packet that a message with address a stands for: sent, or
// received at the port that info describes.
func packetOf(at time.Time, received bool, a *mad.AddressVector, info *port.Info, m *[mad.Size]byte) packet {
	p := packet{at: at, sl: a.SL, pkey: mad.DefaultPKey, mad: m}
	if i := int(a.PKeyIndex); i < len(info.PKeys) && info.PKeys[i] != 0 {
		p.pkey = info.PKeys[i]
	}
	own, far := info.LID|mad.LID(a.PathBits), a.LID
	if far == mad.PermissiveLID {
		// A directed route that starts and ends at the link partner is permissive
		// on both sides (IBA 14.2.2).
		own = mad.PermissiveLID
	}
	var ownGID mad.GID
	if a.HasGRH {
		p.grh = &a.GRH
		if i := int(a.GRH.GIDIndex); i < len(info.GIDs) {
			ownGID = info.GIDs[i]
		}
	}
	qp := ownQP(mad.Class(m[mad.OffClass]))
	if received {
		p.slid, p.sgid, p.srcQP = far, a.GRH.GID, a.QPN
		p.dlid, p.dgid, p.dstQP = own, ownGID, qp
	} else {
		p.slid, p.sgid, p.srcQP = own, ownGID, qp
		p.dlid, p.dgid, p.dstQP = far, a.GRH.GID, a.QPN
	}
	return p
}

// appendTo appends the packet as an ERF record.
func (p *packet) appendTo(b []byte) []byte {
	// From the first byte of the transport header to the last of the ICRC, what
	// the GRH counts; the LRH counts itself too, in words (IBA 8.3, 7.7).
	payload := bthSize + dethSize + mad.Size + icrcSize
	length, lnh := lrhSize+payload, uint8(lnhLocal)
	if p.grh != nil {
		length, lnh = length+grhSize, lnhGlobal
	}
	b = appendERF(b, p.at, erfTypeInfiniBand, length+vcrcSize)

	vl, qkey := uint8(0), uint32(mad.QKeyGSI)
	if ownQP(mad.Class(p.mad[mad.OffClass])) == mad.QPSMI {
		vl, qkey = vlManagement, 0
	}
	b = append(b, vl<<4, p.sl<<4|lnh)
	b = binary.BigEndian.AppendUint16(b, uint16(p.dlid))
	b = binary.BigEndian.AppendUint16(b, uint16(length/4))
	b = binary.BigEndian.AppendUint16(b, uint16(p.slid))
	if g := p.grh; g != nil {
		b = binary.BigEndian.AppendUint32(b, ipVersion<<28|uint32(g.TrafficClass)<<20|g.FlowLabel&mask20)
		b = binary.BigEndian.AppendUint16(b, uint16(payload))
		b = append(b, nextHeaderBTH, g.HopLimit)
		b = append(append(b, p.sgid[:]...), p.dgid[:]...)
	}
	b = append(b, opcodeSendOnly, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(p.pkey))
	b = binary.BigEndian.AppendUint32(b, p.dstQP&mask24)
	b = binary.BigEndian.AppendUint32(b, p.psn&mask24)
	b = binary.BigEndian.AppendUint32(b, qkey)
	b = binary.BigEndian.AppendUint32(b, p.srcQP&mask24)
	b = append(b, p.mad[:]...)
	return append(b, make([]byte, icrcSize+vcrcSize)...)
}

// appendERF appends the header of a record with size bytes behind it.
func appendERF(b []byte, at time.Time, kind uint8, size int) []byte {
	seconds, fraction := uint64(at.Unix()), uint64(at.Nanosecond())<<32/uint64(time.Second)
	b = binary.LittleEndian.AppendUint64(b, seconds<<32|fraction)
	b = append(b, kind, erfFlagVaryingSize)
	b = binary.BigEndian.AppendUint16(b, uint16(erfHeaderSize+size))
	b = append(b, 0, 0) // loss counter
	return binary.BigEndian.AppendUint16(b, uint16(size))
}
