package smp

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// classVersion is that of both SM classes (IBA 14.2.1).
const classVersion = 1

// heading is how an SMP finds its way.
type heading struct {
	class  mad.Class
	vector mad.AddressVector
	route  mad.Route // directed part
	drSLID mad.LID   // where the LID-routed part starts; permissive if there is none
}

// address works out the heading for an address. In a combined route the SMP goes
// by LID to the switch where the directed part starts, and the answer by LID
// from there: DrSLID is the own LID, DrDLID permissive (IBA 14.2.2.1; libibmad
// does the same).
func (c *Client) address(ctx context.Context, to mad.Addr) (h heading, err error) {
	h.drSLID = mad.PermissiveLID
	switch to.Kind {
	case mad.AddrRoute:
		h.class = mad.ClassSubnDirected
		h.vector.LID = mad.PermissiveLID
		h.route = to.Route
	case mad.AddrCombined:
		h.class = mad.ClassSubnDirected
		h.vector.LID = to.LID
		h.route = to.Route
		info, err := c.dev.Info()
		if err != nil {
			return h, err
		}
		if !info.LID.IsUnicast() {
			return h, &mad.AddrError{Text: to.String(), Why: fmt.Sprintf("port %s/%d has no LID (%v) for the answer to come back to", info.Device, info.Port, info.LID)}
		}
		h.drSLID = info.LID
	case mad.AddrLID:
		h.class = mad.ClassSubnLIDRouted
		h.vector.LID = to.LID
	case mad.AddrGUID, mad.AddrGID, mad.AddrName:
		if c.cfg.Resolver == nil {
			return h, &mad.AddrError{Text: to.String(), Why: "nothing to look it up with: give a LID or a directed route"}
		}
		h.class = mad.ClassSubnLIDRouted
		if h.vector.LID, err = c.cfg.Resolver.LID(ctx, to); err != nil {
			return h, err
		}
	default:
		return h, &mad.AddrError{Text: to.String(), Why: "no kind of address"}
	}
	switch lid := h.vector.LID; {
	case to.Kind != mad.AddrRoute && !lid.IsUnicast():
		return h, &mad.AddrError{Text: to.String(), Why: fmt.Sprintf("LID %#x belongs to no port: those of ports are 1 to 0xbfff", uint16(lid))}
	case h.route.Hops() > mad.MaxDirectedHops:
		return h, &mad.AddrError{Text: to.String(), Why: fmt.Sprintf("%d hops, an SMP has room for %d", h.route.Hops(), mad.MaxDirectedHops)}
	}
	return h, nil
}

// compose makes a SubnGet.
func (h *heading) compose(attr *layout.Attribute, modifier uint32, mkey uint64) []byte {
	msg := make([]byte, mad.Size)
	head := (*[mad.OffSMPData]byte)(msg)
	if h.class == mad.ClassSubnLIDRouted {
		p := mad.SMPLIDHeader{
			BaseVersion: mad.BaseVersion, MgmtClass: h.class, ClassVersion: classVersion, Method: mad.MethodGet,
			AttributeID: mad.AttributeID(attr.ID), AttributeModifier: modifier, MKey: mkey,
		}
		p.EncodeTo(head)
		return msg
	}
	p := mad.SMPDirectedHeader{
		BaseVersion: mad.BaseVersion, MgmtClass: h.class, ClassVersion: classVersion, Method: mad.MethodGet,
		HopCount:    uint8(h.route.Hops()),
		AttributeID: mad.AttributeID(attr.ID), AttributeModifier: modifier, MKey: mkey,
		DrSLID: h.drSLID, DrDLID: mad.PermissiveLID,
	}
	p.EncodeTo(head)
	copy(msg[mad.OffSMPPaths:], h.route)
	return msg
}

// status is that of an answer, without the D bit.
func (h *heading) status(resp []byte) mad.Status {
	status := mad.Status(binary.BigEndian.Uint16(resp[mad.OffStatus:]))
	if h.class == mad.ClassSubnDirected {
		status &^= directionBit
	}
	return status
}

// directionBit is the D bit of a directed-route SMP (IBA 14.2.1.2).
const directionBit = mad.Status(0x8000)

// describe names the far end of an SMP, with the LID that was looked up.
func describe(to mad.Addr, v mad.AddressVector) string {
	switch to.Kind {
	case mad.AddrGUID, mad.AddrGID, mad.AddrName:
		return fmt.Sprintf("%v (LID %v)", to, v.LID)
	}
	return place(to)
}

// place is an address with its kind, where that is not to be seen.
func place(to mad.Addr) string {
	switch to.Kind {
	case mad.AddrRoute, mad.AddrCombined:
		return "directed route " + to.String()
	case mad.AddrLID:
		return "LID " + to.String()
	}
	return to.String()
}
