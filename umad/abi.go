package umad

import (
	"encoding/binary"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// abi is the user_mad interface of one system and architecture, as data, so that
// all of them are tested on any.
type abi struct {
	dir      string           // of the device files
	order    binary.ByteOrder // of the machine
	longBits int              // of the words that the first registration's method mask is made of

	// Request numbers of ioctl (include/uapi/rdma/ib_user_mad.h). register2 is 0
	// where there is no second registration.
	register, unregister, enablePKey, register2 uint32

	illumos bool // see illumos.go
}

// Sizes and offsets of what crosses the device file (include/uapi/rdma/
// ib_user_mad.h; on illumos sys/ib/clients/of/rdma/ib_user_mad.h).
const (
	headerSize    = 64 // struct ib_user_mad_hdr
	oldHeaderSize = 56 // struct ib_user_mad_hdr_old: the same without P_Key index

	hdrID           = 0
	hdrStatus       = 4  // 0, or the errno of a request that got no response
	hdrTimeout      = 8  // ms
	hdrRetries      = 12 //
	hdrLength       = 16 // of a received packet, header included
	hdrQPN          = 20 // big-endian, as qkey, lid and flow_label
	hdrQKey         = 24 // ignored by Linux, which uses the queue pair's own
	hdrLID          = 28
	hdrSL           = 30
	hdrPathBits     = 31
	hdrGRHPresent   = 32
	hdrGIDIndex     = 33
	hdrHopLimit     = 34
	hdrTrafficClass = 35
	hdrGID          = 36
	hdrFlowLabel    = 52
	hdrPKeyIndex    = 56

	regSize    = 28 // struct ib_user_mad_reg_req
	regID      = 0
	regMethods = 4
	regQPN     = 20
	regClass   = 21
	regVersion = 22
	regOUI     = 23
	regRMPP    = 26

	reg2Size    = 40 // struct ib_user_mad_reg_req2
	reg2ID      = 0
	reg2QPN     = 4
	reg2Class   = 8
	reg2Version = 9
	reg2Flags   = 12
	reg2Methods = 16
	reg2OUI     = 32
	reg2RMPP    = 36

	flagUserRMPP = 1 // IB_USER_MAD_USER_RMPP

	rmppVersion = 1

	minMAD = 36   // of every write (user_mad.c: IB_MGMT_RMPP_HDR)
	opaMAD = 2048 // the largest single MAD of Omni-Path

	// maxQueued is how many received MADs the kernel keeps for a reader
	// (user_mad.c: MAX_UMAD_RECV_LIST_SIZE).
	maxQueued = 200_000
)

// encoding is how ioctl numbers are made: the bits for no argument, for one that
// the kernel writes and for one that it reads, and the bits of its size.
type encoding struct{ none, read, write, size uint32 }

var (
	// generic is that of most architectures (include/uapi/asm-generic/ioctl.h).
	generic = encoding{none: 0, read: 2 << 30, write: 1 << 30, size: 1<<14 - 1}
	// bsd is that of MIPS and PowerPC (arch/*/include/uapi/asm/ioctl.h).
	bsd = encoding{none: 1 << 29, read: 2 << 29, write: 4 << 29, size: 1<<13 - 1}
	// solaris is like bsd, but for the limit of the size (sys/ioccom.h).
	solaris = encoding{none: 1 << 29, read: 1 << 30, write: 1 << 31, size: 1<<8 - 1}
)

// number makes the number of request nr, whose argument has size bytes, of
// RDMA's magic 0x1b (rdma_user_ioctl_cmds.h).
func (e encoding) number(direction, nr, size uint32) uint32 {
	return direction | size&e.size<<16 | 0x1b<<8 | nr
}

// abiOf tells the interface of a system by its Go names; ok is false if it has
// none.
func abiOf(goos, goarch string) (a abi, ok bool) {
	a = abi{dir: "dev/infiniband", order: binary.LittleEndian, longBits: 64}
	if slices.Contains([]string{"mips", "mips64", "ppc64", "s390x"}, goarch) {
		a.order = binary.BigEndian
	}
	e := generic
	switch goarch {
	case "386", "arm":
		a.longBits = 32
	case "mips", "mipsle":
		a.longBits, e = 32, bsd
	case "mips64", "mips64le", "ppc64", "ppc64le":
		e = bsd
	}
	switch goos {
	case "linux":
		a.register2 = e.number(e.read|e.write, 4, reg2Size)
	case "illumos":
		e = solaris
		a.dir, a.longBits, a.illumos = "dev/infiniband/ofs", 32, true
	default:
		return abi{}, false
	}
	a.register = e.number(e.read|e.write, 1, regSize)
	a.unregister = e.number(e.write, 2, 4)
	a.enablePKey = e.number(e.none, 3, 0)
	return a, true
}

// native is the interface of the running system; hasNative is false where there
// is none.
var native, hasNative = abiOf(runtime.GOOS, runtime.GOARCH)

// putHeader writes the header of a message to send; h has the size of the one
// or the other layout.
func (a *abi) putHeader(h []byte, m *port.Message) {
	clear(h)
	to := &m.Addr
	a.order.PutUint32(h[hdrID:], uint32(m.Agent))
	a.order.PutUint32(h[hdrTimeout:], milliseconds(m.Timeout))
	a.order.PutUint32(h[hdrRetries:], uint32(min(m.Retries, math.MaxInt32)))
	binary.BigEndian.PutUint32(h[hdrQPN:], to.QPN)
	if to.QPN != mad.QPSMI {
		binary.BigEndian.PutUint32(h[hdrQKey:], mad.QKeyGSI)
	}
	binary.BigEndian.PutUint16(h[hdrLID:], uint16(to.LID))
	h[hdrSL], h[hdrPathBits] = to.SL, to.PathBits
	if to.HasGRH {
		g := &to.GRH
		h[hdrGRHPresent], h[hdrGIDIndex] = 1, g.GIDIndex
		h[hdrHopLimit], h[hdrTrafficClass] = g.HopLimit, g.TrafficClass
		copy(h[hdrGID:], g.GID[:])
		binary.BigEndian.PutUint32(h[hdrFlowLabel:], g.FlowLabel)
	}
	if len(h) > hdrPKeyIndex {
		a.order.PutUint16(h[hdrPKeyIndex:], to.PKeyIndex)
	}
}

// milliseconds rounds a time-out up, to what the kernel takes at most.
func milliseconds(d time.Duration) uint32 {
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return uint32(min(ms, math.MaxInt32))
}

// getHeader reads the header of a received packet into all of m but its Data.
func (a *abi) getHeader(h []byte, m *port.Message) {
	m.Agent = port.AgentID(a.order.Uint32(h[hdrID:]))
	m.TimedOut = a.order.Uint32(h[hdrStatus:]) != 0
	m.Timeout = time.Duration(a.order.Uint32(h[hdrTimeout:])) * time.Millisecond
	m.Retries = int(a.order.Uint32(h[hdrRetries:]))
	m.Addr = mad.AddressVector{
		LID: mad.LID(binary.BigEndian.Uint16(h[hdrLID:])),
		QPN: binary.BigEndian.Uint32(h[hdrQPN:]),
		SL:  h[hdrSL], PathBits: h[hdrPathBits],
		HasGRH: h[hdrGRHPresent] != 0,
	}
	if m.Addr.HasGRH {
		m.Addr.GRH = mad.GRH{
			GID:      mad.GID(h[hdrGID:hdrFlowLabel]),
			GIDIndex: h[hdrGIDIndex], HopLimit: h[hdrHopLimit], TrafficClass: h[hdrTrafficClass],
			FlowLabel: binary.BigEndian.Uint32(h[hdrFlowLabel:]),
		}
	}
	if len(h) > hdrPKeyIndex {
		m.Addr.PKeyIndex = a.order.Uint16(h[hdrPKeyIndex:])
	}
}

// packetLength is the length of the packet that a header is of, header
// included.
func (a *abi) packetLength(h []byte) int { return int(a.order.Uint32(h[hdrLength:])) }

// regRequest is the argument of the first registration.
func (a *abi) regRequest(r port.Registration) []byte {
	b := make([]byte, regSize)
	a.putMethods(b[regMethods:regQPN], r.Methods, a.longBits)
	b[regQPN], b[regClass], b[regVersion] = r.QPN, uint8(r.Class), r.Version
	b[regOUI], b[regOUI+1], b[regOUI+2] = byte(r.OUI>>16), byte(r.OUI>>8), byte(r.OUI)
	b[regRMPP] = rmppVersionOf(r.RMPP)
	return b
}

// reg2Request is the argument of the second registration.
func (a *abi) reg2Request(r port.Registration, flags uint32) []byte {
	b := make([]byte, reg2Size)
	a.order.PutUint32(b[reg2QPN:], uint32(r.QPN))
	b[reg2Class], b[reg2Version] = uint8(r.Class), r.Version
	a.order.PutUint32(b[reg2Flags:], flags)
	a.putMethods(b[reg2Methods:reg2OUI], r.Methods, 64)
	a.order.PutUint32(b[reg2OUI:], r.OUI)
	b[reg2RMPP] = rmppVersionOf(r.RMPP)
	return b
}

func rmppVersionOf(mode port.RMPPMode) byte {
	if mode == port.RMPPNone {
		return 0
	}
	return rmppVersion
}

// putMethods writes a method mask as words of 32 or 64 bits in the machine's
// byte order: method m is bit m%bits of word m/bits.
func (a *abi) putMethods(b []byte, s port.MethodSet, bits int) {
	for i, w := range s {
		if bits == 64 {
			a.order.PutUint64(b[8*i:], w)
			continue
		}
		a.order.PutUint32(b[8*i:], uint32(w))
		a.order.PutUint32(b[8*i+4:], uint32(w>>32))
	}
}
