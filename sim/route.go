package sim

import (
	"encoding/binary"
	"slices"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// consumed is what forward says of a packet that is for the node it is at.
const consumed = numReasons

// Positions in a directed-route SMP (IBA 14.2.1.2).
const (
	offHopPointer  = 6
	offHopCount    = 7
	offMKey        = 24
	offDrSLID      = 32
	offDrDLID      = 34
	offInitialPath = 128
	offReturnPath  = 192
)

// forward decides where a packet goes from the node it is at: out of a port, or
// nowhere, consumed by the node or dropped for a reason.
func (c *core) forward(p *packet) (*simPort, Reason) {
	directed := p.class() == mad.ClassSubnDirected
	if directed && p.start {
		if why := checkStart(p); why != consumed {
			return nil, why
		}
	}
	switch {
	case p.dlid == mad.PermissiveLID && directed:
		return c.direct(p, p.start)
	case p.dlid == mad.PermissiveLID:
		return c.toNeighbour(p)
	case !p.dlid.IsUnicast():
		return nil, BadLID
	}
	out, why := c.routeByLID(p)
	if directed && out == nil && why == consumed {
		return c.direct(p, true)
	}
	return out, why
}

// checkStart compares the LIDs of a directed-route SMP at its source: it goes
// to the permissive LID if and only if its directed part starts here (IBA
// 14.2.2.1), and a request has not gone a hop.
func checkStart(p *packet) Reason {
	lid := drLID(p, offDrSLID)
	if isReturning(p) {
		lid = drLID(p, offDrDLID)
	} else if p.mad[offHopPointer] != 0 {
		return BadRoute
	}
	if (lid == mad.PermissiveLID) != (p.dlid == mad.PermissiveLID) {
		return BadRoute
	}
	return consumed
}

func drLID(p *packet, off int) mad.LID { return mad.LID(binary.BigEndian.Uint16(p.mad[off:])) }

// isReturning is the D bit.
func isReturning(p *packet) bool { return p.mad[mad.OffStatus]&0x80 != 0 }

// toNeighbour handles MADs to the permissive LID that are not directed: a
// LID-routed SMP reaches the port at the other end of the link (IBA 4.1.3).
func (c *core) toNeighbour(p *packet) (*simPort, Reason) {
	switch {
	case !isSMP(p.class()):
		return nil, BadLID
	case !p.start:
		return nil, consumed
	case p.in == 0: // port 0 of a switch has no link
		return nil, BadLID
	}
	return &p.at.node.ports[p.in], 0
}

// routeByLID is how a switch forwards, and an end port sends and receives.
func (c *core) routeByLID(p *packet) (*simPort, Reason) {
	n := p.at.node
	if !n.IsSwitch() {
		switch {
		case p.at.Has(p.dlid):
			return nil, consumed
		case p.start:
			return p.at, 0
		}
		return nil, WrongPort
	}
	port := n.portTo(p.dlid)
	switch {
	case port == 0 && n.ports[0].Has(p.dlid):
		return nil, consumed
	case port == 0:
		return nil, WrongPort
	case int(port) >= len(n.ports):
		return nil, NoRoute
	}
	return &n.ports[port], 0
}

// portTo is the entry of the forwarding table for a LID.
func (n *node) portTo(lid mad.LID) uint8 {
	if int(lid) >= len(n.lft) {
		return topo.NoRoute
	}
	return n.lft[lid]
}

// direct is the subnet management interface of a node: it moves the hop pointer
// and chooses the port, for the two directions of IBA 14.2.2. The directed part
// may start here if first is set: at the source, or where the LID-routed part
// ends.
func (c *core) direct(p *packet, first bool) (*simPort, Reason) {
	if p.mad[offHopCount] > mad.MaxDirectedHops {
		return nil, BadRoute
	}
	if isReturning(p) {
		return c.directBack(p, first)
	}
	return c.directOut(p, first)
}

// directOut applies C14-9 to a request (D bit 0).
func (c *core) directOut(p *packet, first bool) (*simPort, Reason) {
	initial := p.mad[offInitialPath:]
	pointer, count := p.mad[offHopPointer], p.mad[offHopCount]
	passes := c.passes(p.at.node)
	switch {
	case count != 0 && pointer == 0: // C14-9 1: the first node of the directed part
		if !first || !p.start && !passes {
			return nil, BadRoute
		}
		p.mad[offHopPointer] = 1
		return c.leave(p, initial[1])
	case pointer != 0 && pointer < count: // C14-9 2: between
		if !passes {
			return nil, BadRoute
		}
		p.mad[offReturnPath+int(pointer)] = p.in
		p.mad[offHopPointer]++
		return c.leave(p, initial[pointer+1])
	case pointer == count: // C14-9 3: the last node of the directed part
		if count != 0 {
			p.mad[offReturnPath+int(pointer)] = p.in
		}
		p.mad[offHopPointer]++
		return c.leaveByLID(p, drLID(p, offDrDLID))
	case pointer == count+1: // C14-9 4: the last LID-routed part has ended here
		return nil, consumed
	}
	return nil, BadRoute // C14-9 5
}

// directBack applies C14-13 to a response (D bit 1).
func (c *core) directBack(p *packet, first bool) (*simPort, Reason) {
	back := p.mad[offReturnPath:]
	pointer, count := p.mad[offHopPointer], p.mad[offHopCount]
	passes := c.passes(p.at.node)
	switch {
	case count != 0 && pointer == count+1: // C14-13 1: the first node of the directed part
		if !first || !p.start && !passes {
			return nil, BadRoute
		}
		p.mad[offHopPointer]--
		return c.leave(p, back[pointer-1])
	case pointer >= 2 && pointer <= count: // C14-13 2: between
		if !passes {
			return nil, BadRoute
		}
		p.mad[offHopPointer]--
		return c.leave(p, back[pointer-1])
	case pointer == 1: // C14-13 3: the last node of the directed part
		p.mad[offHopPointer] = 0
		return c.leaveByLID(p, drLID(p, offDrSLID))
	case pointer == 0: // C14-13 4: the last LID-routed part has ended here
		return nil, consumed
	}
	return nil, BadRoute // C14-13 5
}

// passes tells whether a node passes directed packets on.
func (c *core) passes(n *node) bool {
	return n.IsSwitch() || slices.ContainsFunc(c.deviations, func(d *Deviation) bool { return d.passes })
}

// leave sends a directed packet out of a port. Only a switch has a choice.
func (c *core) leave(p *packet, port uint8) (*simPort, Reason) {
	n := p.at.node
	if port == 0 || int(port) >= len(n.ports) || !n.IsSwitch() && port != p.at.Num {
		return nil, BadRoute
	}
	p.slid, p.dlid = mad.PermissiveLID, mad.PermissiveLID
	return &n.ports[port], 0
}

// leaveByLID ends the directed part: here, or at a switch with a LID-routed part
// to follow. The switch is its source, so that an answer comes back to it.
func (c *core) leaveByLID(p *packet, to mad.LID) (*simPort, Reason) {
	if to == mad.PermissiveLID {
		return nil, consumed
	}
	if !p.at.node.IsSwitch() || !to.IsUnicast() {
		return nil, BadRoute
	}
	p.slid, p.dlid = p.at.node.ports[0].LID, to
	return c.routeByLID(p)
}
