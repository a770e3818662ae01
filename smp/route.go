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

// Address works out how an SMP gets to an address, for programs that make their SMPs
// themselves. It writes what stands in the SMP for that: the class, of a directed
// route the hops and the LIDs, and the M_Key of the Config. All else is the caller's.
// Errors are those of [Get] before anything is sent.
func (c *Client) Address(ctx context.Context, to mad.Addr, smp *[mad.Size]byte) (mad.AddressVector, error) {
	h, err := c.address(ctx, to)
	if err == nil {
		h.write(smp, c.cfg.MKey)
	}
	return h.vector, err
}

// Positions in an SMP (IBA 14.2.1).
const (
	offHopCount = 7
	offMKey     = 24
	offDrSLID   = 32
	offDrDLID   = 34
)

// write puts into an SMP what all have that go that way.
func (h *heading) write(smp *[mad.Size]byte, mkey uint64) {
	smp[mad.OffClass] = byte(h.class)
	binary.BigEndian.PutUint64(smp[offMKey:], mkey)
	if h.class == mad.ClassSubnLIDRouted {
		return
	}
	smp[offHopCount] = byte(h.route.Hops())
	binary.BigEndian.PutUint16(smp[offDrSLID:], uint16(h.drSLID))
	binary.BigEndian.PutUint16(smp[offDrDLID:], uint16(mad.PermissiveLID))
	copy(smp[mad.OffSMPPaths:], h.route)
}

// compose makes a request without data.
func (h *heading) compose(method mad.Method, attr *layout.Attribute, modifier uint32, mkey uint64) []byte {
	msg := new([mad.Size]byte)
	head := mad.Header{
		BaseVersion: mad.BaseVersion, ClassVersion: classVersion, Method: method,
		AttributeID: mad.AttributeID(attr.ID), AttributeModifier: modifier,
	}
	head.EncodeTo((*[mad.HeaderSize]byte)(msg[:]))
	h.write(msg, mkey)
	return msg[:]
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
