package ibsim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/softmad"
)

// Sizes and limits of the protocol (ibsim.h).
const (
	controlSize = 80
	controlData = 64
	packetSize  = 288
	magic       = 0xdeadbeef
	maxClients  = 10
	maxNode     = 31 // and a NUL
)

// operation is what a control message asks for.
type operation uint32

const (
	opError      operation = 0 // in replies only
	opConnect    operation = 1
	opDisconnect operation = 2
	opNodeInfo   operation = 7
	opPortInfo   operation = 8
	opSetIsSM    operation = 9
	opPKeys      operation = 10
)

// operations has what they are called in errors, and the length of their data.
var operations = map[operation]struct {
	name   string
	length uint32
}{
	opConnect:    {"connect", 44},
	opDisconnect: {"disconnect", 0},
	opNodeInfo:   {"read node info", controlData},
	opPortInfo:   {"read port info", controlData},
	opSetIsSM:    {"set IsSM", 4},
	opPKeys:      {"read P_Keys", controlData},
}

func (o operation) String() string { return operations[o].name }

// control is a control message. Requests and replies look alike, with numbers in
// the byte order of the host.
type control struct {
	slot uint32 // of the client
	op   operation
	data [controlData]byte
}

func (c *control) encode(b *[controlSize]byte) {
	n := binary.NativeEndian
	n.PutUint32(b[0:], magic)
	n.PutUint32(b[4:], c.slot)
	n.PutUint32(b[8:], uint32(c.op))
	n.PutUint32(b[12:], operations[c.op].length)
	copy(b[16:], c.data[:])
}

func (c *control) decode(b []byte) error {
	n := binary.NativeEndian
	switch {
	case len(b) != controlSize:
		return fmt.Errorf("%d bytes, a control message has %d", len(b), controlSize)
	case n.Uint32(b) != magic:
		return fmt.Errorf("magic number %#x, want %#x", n.Uint32(b), uint32(magic))
	}
	c.slot, c.op = n.Uint32(b[4:]), operation(n.Uint32(b[8:]))
	copy(c.data[:], b[16:])
	return nil
}

// client is the data of a connect message. In the reply id is the slot, and node
// the node's id in the netlist.
type client struct {
	id    uint32
	serve bool
	node  string // cut at maxNode
}

// encode leaves the queue pair 0, as umad2sim does: it only counts for queue pairs
// above 1.
func (c *client) encode(b *[controlData]byte) {
	n := binary.NativeEndian
	n.PutUint32(b[0:], c.id)
	if c.serve {
		n.PutUint32(b[8:], 1)
	}
	copy(b[12:12+maxNode], c.node)
}

func (c *client) decode(b *[controlData]byte) {
	n := binary.NativeEndian
	c.id, c.serve = n.Uint32(b[0:]), n.Uint32(b[8:]) != 0
	name, _, _ := bytes.Cut(b[12:12+maxNode], []byte{0})
	c.node = string(name)
}

// Positions in a data packet. The gap before the length is the C compiler's, on
// 64-bit hosts.
const (
	offDLID   = 0
	offSLID   = 4
	offDQP    = 8
	offSQP    = 12
	offStatus = 16
	offLength = 24
	offMAD    = 32
)

// Positions in a directed-route SMP (IBA 14.2.1.2).
const (
	offHopPointer = 6
	offDrSLID     = 32
	offDrDLID     = 34
	directionBit  = 0x80 // of the status's first byte
)

// own is the range of LIDs of the own port.
type own struct {
	lid mad.LID
	lmc uint8
}

// encodePacket makes the packet of a wire. ibsim discards silently what it does
// not know, so that is refused here. The source is left to ibsim (0), unless it is
// not the port's base LID.
func encodePacket(b *[packetSize]byte, w *softmad.Wire, from own) error {
	m := w.MAD
	var slid mad.LID
	switch class := mad.Class(m[mad.OffClass]); {
	case w.Addr.HasGRH:
		return fmt.Errorf("%w: ibsim carries no GRH: address the LID alone", errors.ErrUnsupported)
	case class == mad.ClassSubnDirected:
		if w.Addr.LID != mad.PermissiveLID ||
			binary.BigEndian.Uint16(m[offDrSLID:]) != uint16(mad.PermissiveLID) ||
			binary.BigEndian.Uint16(m[offDrDLID:]) != uint16(mad.PermissiveLID) {
			return fmt.Errorf("%w: ibsim knows no directed route from or to a LID: use one from the own port", errors.ErrUnsupported)
		}
		slid = mad.PermissiveLID
		// ibsim walks the whole route by itself, and its pointer stays at 0.
		m[offHopPointer] = 0
		m[mad.OffStatus] &^= directionBit
		if mad.IsResponse(m[:]) {
			m[mad.OffStatus] |= directionBit
		}
	case w.Addr.PathBits != 0:
		slid = from.lid | mad.LID(w.Addr.PathBits)
	}
	var sqp uint32 = mad.QPGSI
	if isSMP(&m) {
		sqp = mad.QPSMI
	}
	clear(b[:])
	putLID(b[offDLID:], w.Addr.LID)
	putLID(b[offSLID:], slid)
	binary.BigEndian.PutUint32(b[offDQP:], w.Addr.QPN)
	binary.BigEndian.PutUint32(b[offSQP:], sqp)
	binary.BigEndian.PutUint64(b[offLength:], mad.Size)
	copy(b[offMAD:], m[:])
	return nil
}

// decodePacket makes the wire of a packet. Beyond its length it has bytes that its
// sender did not mean, which become zeros.
//
// OpenSM marks answers to GetTable as RMPP Active, for the kernel to segment. One
// that ends before its MAD does is whole, and so a single MAD, which is not
// Active; one that fills its MAD may have been cut, and stays as it is, with
// version 0.
func decodePacket(w *softmad.Wire, b []byte, to own) error {
	if len(b) != packetSize {
		return fmt.Errorf("%d bytes, a packet has %d", len(b), packetSize)
	}
	dlid, ok1 := getLID(b[offDLID:])
	slid, ok2 := getLID(b[offSLID:])
	length := binary.BigEndian.Uint64(b[offLength:])
	switch {
	case !ok1 || !ok2:
		return errors.New("a LID of more than 16 bits")
	case length < mad.HeaderSize || length > mad.Size:
		return fmt.Errorf("a MAD of %d bytes", length)
	}
	*w = softmad.Wire{Undelivered: binary.BigEndian.Uint32(b[offStatus:]) != 0}
	copy(w.MAD[:length], b[offMAD:])
	if w.Undelivered {
		w.Addr = mad.AddressVector{LID: dlid, QPN: binary.BigEndian.Uint32(b[offDQP:])}
		return nil
	}
	w.Addr = mad.AddressVector{LID: slid, QPN: binary.BigEndian.Uint32(b[offSQP:])}
	if dlid.IsUnicast() {
		w.Addr.PathBits = uint8(dlid & (1<<to.lmc - 1))
	}
	if length < mad.Size && mad.HasRMPP(mad.Class(w.MAD[mad.OffClass])) && w.MAD[mad.OffRMPP] == 0 {
		w.MAD[mad.OffRMPP+2] &^= uint8(mad.RMPPFlagActive)
	}
	return nil
}

// putLID writes a LID as ibsim does: big-endian in the first half of a number.
func putLID(b []byte, lid mad.LID) {
	var wire [2]byte
	binary.BigEndian.PutUint16(wire[:], uint16(lid))
	binary.NativeEndian.PutUint32(b, uint32(binary.NativeEndian.Uint16(wire[:])))
}

func getLID(b []byte) (lid mad.LID, ok bool) {
	n := binary.NativeEndian.Uint32(b)
	var wire [2]byte
	binary.NativeEndian.PutUint16(wire[:], uint16(n))
	return mad.LID(binary.BigEndian.Uint16(wire[:])), n>>16 == 0
}

func isSMP(m *[mad.Size]byte) bool {
	c := mad.Class(m[mad.OffClass])
	return c == mad.ClassSubnLIDRouted || c == mad.ClassSubnDirected
}

// isAnswered tells whether a MAD is a request that somebody answers.
func isAnswered(m *[mad.Size]byte) bool {
	switch mad.Method(m[mad.OffMethod]) {
	case mad.MethodSend, mad.MethodTrap:
		return false
	}
	return !mad.IsResponse(m[:])
}
