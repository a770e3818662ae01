package softmad

import (
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// Link carries single MADs for one local port, as an HCA does: no agents, no
// transaction ids, no time-outs. A Link is used by one reader and any number of
// senders at a time.
type Link interface {
	// Send copies the wire and does not block: like a datagram, a MAD may be
	// lost. An error means that the MAD was not handed over.
	Send(*Wire) error
	// Recv waits for the next wire and fills it. It ends with io.EOF when the
	// device is removed, and with another error after Close.
	Recv(*Wire) error
	// Info describes the port; it is read afresh at each call.
	Info() (port.Info, error)
	// Close releases the link and wakes Recv.
	Close() error
}

// IsSMSetter is a Link that can set the IsSM bit of its port's CapabilityMask
// (IBA 14.2.5.6); Device.HoldIsSM needs it.
type IsSMSetter interface {
	SetIsSM(bool) error
}

// Wire is one MAD with its addresses. The destination queue pair of a received
// MAD follows from its class: 0x01 and 0x81 go to QP0, all others to QP1.
type Wire struct {
	// Addr is the destination of a sent MAD and the source of a received one, as
	// in port.Message. PKeyIndex is not used: PKey says the key itself, or 0 if
	// the carrier has no partitions.
	Addr mad.AddressVector
	PKey mad.PKey
	// Undelivered marks a MAD that this side sent and that the carrier gives
	// back because it could not deliver it.
	Undelivered bool
	MAD         [mad.Size]byte
}
