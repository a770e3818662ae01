package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// Event is one step of a MAD through the fabric.
type Event struct {
	Time time.Time
	Kind EventKind
	// Hop is the link of a Cross, and of a Drop on a link. Else From is the port
	// that the MAD is at, and To is nil.
	Hop    topo.Hop
	Reason Reason // of a Drop
	MAD    Summary
}

// Summary tells MADs apart.
type Summary struct {
	Class         mad.Class
	Method        mad.Method
	Attribute     mad.AttributeID
	TransactionID uint64
	SLID, DLID    mad.LID // of the local route header at this step
}

// EventKind says what happened.
type EventKind uint8

const (
	Cross   EventKind = iota // went over a link
	Deliver                  // given to the Link of the port
	Answer                   // answered by the node's subnet management agent
	Drop                     // lost, see Event.Reason
)

func (k EventKind) String() string {
	return [...]string{"cross", "deliver", "answer", "drop"}[k]
}

// Reason says why a MAD was dropped. The sender is told nothing, as on a real
// fabric.
type Reason uint8

const (
	Lost         Reason = iota // by the Loss of a link
	LinkDown                   // no link, cut, not active, disabled, or the device is removed
	BadLID                     // destination LID 0, multicast, or permissive where it may not be
	NoRoute                    // the forwarding table has no port for the LID
	WrongPort                  // arrived at a port that does not have the LID
	HopLimit                   // went round in a loop
	BadRoute                   // against a rule of directed routes (IBA 14.2.2)
	BadQP                      // an SMP not for QP0, or another MAD not for QP1
	BadGRH                     // an SMP with a GRH, or a GID that the port does not have
	BadPKey                    // the port has no matching P_Key (IBA 10.9.3)
	BadMKey                    // an SMP without the M_Key of the port (IBA 14.2.4.1)
	NotForAgent                // an SMP that a subnet management agent does not answer
	NoReceiver                 // nobody has opened the port
	ReceiverFull               // the reader of the port is too slow
	numReasons
)

var reasonTexts = [numReasons]string{
	Lost:         "lost on the link",
	LinkDown:     "link is down",
	BadLID:       "destination LID is not valid",
	NoRoute:      "no route to the LID",
	WrongPort:    "the port does not have the LID",
	HopLimit:     "forwarded in a loop",
	BadRoute:     "directed route breaks a rule",
	BadQP:        "wrong queue pair for the class",
	BadGRH:       "GRH is not valid",
	BadPKey:      "no matching P_Key",
	BadMKey:      "wrong M_Key",
	NotForAgent:  "not for a subnet management agent",
	NoReceiver:   "nobody receives at the port",
	ReceiverFull: "receive queue is full",
}

func (r Reason) String() string { return reasonTexts[r] }

// Stats counts what happened since the start.
type Stats struct {
	Sent       uint64 // by Links
	Answered   uint64 // by subnet management agents
	Delivered  uint64 // to Links
	Crossed    uint64 // links
	Duplicated uint64 // by the Duplicate of a link
	Dropped    map[Reason]uint64
}

func (e Event) String() string {
	s := fmt.Sprintf("%s class 0x%02x method 0x%02x attribute 0x%04x TID 0x%016x: %s", e.Kind,
		uint8(e.MAD.Class), uint8(e.MAD.Method), uint16(e.MAD.Attribute), e.MAD.TransactionID, e.Hop.From)
	if e.Hop.To != nil {
		s += " to " + e.Hop.To.String()
	}
	if e.Kind == Drop {
		s += ": " + e.Reason.String()
	}
	return s
}

func (c *core) report(kind EventKind, hop topo.Hop, reason Reason, p *packet) {
	if c.trace == nil {
		return
	}
	c.trace(Event{Time: c.now, Kind: kind, Hop: hop, Reason: reason, MAD: Summary{
		Class:         mad.Class(p.mad[mad.OffClass]),
		Method:        mad.Method(p.mad[mad.OffMethod]),
		Attribute:     mad.AttributeID(binary.BigEndian.Uint16(p.mad[mad.OffAttribute:])),
		TransactionID: binary.BigEndian.Uint64(p.mad[mad.OffTID:]),
		SLID:          p.slid, DLID: p.dlid,
	}})
}
