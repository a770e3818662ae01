package sa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/port"
)

// Endpoint is a port that an address stands for.
type Endpoint struct {
	LID      mad.LID // the one asked for, or the base LID
	GID      mad.GID // of index 0
	PortGUID mad.GUID
	NodeGUID mad.GUID
	NodeType mad.NodeType
	PortNum  uint8
	Desc     string // NodeDescription
}

// Resolver looks addresses up in the SA's NodeRecords.
type Resolver struct{ c *Client }

// NewResolver makes a Resolver that asks c.
func NewResolver(c *Client) *Resolver { return &Resolver{c} }

// LID gives the LID of an address, which is [Resolver.Resolve] for those that
// need no more.
func (r *Resolver) LID(ctx context.Context, a mad.Addr) (mad.LID, error) {
	e, err := r.Resolve(ctx, a)
	return e.LID, err
}

// Resolve finds the port that an address stands for:
//
//	LID   the port that has it, be it one of several by its LMC
//	GUID  a port GUID, else the node GUID of a node with one port
//	GID   by its port GUID
//	name  a whole NodeDescription, else its first word: h1 stands for "h1 HCA-1"
//
// Errors: a *NotFoundError, with what is near; an *AmbiguousError, with the ports
// to choose from; a *mad.AddrError for a directed route, which is no address in
// the SA, and for a number that no port can have; ErrNoLID; a *MalformedError for a
// port that has no address to send to; those of [Table].
func (r *Resolver) Resolve(ctx context.Context, a mad.Addr) (Endpoint, error) {
	var found []Endpoint
	var err error
	switch a.Kind {
	case mad.AddrLID:
		if !a.LID.IsUnicast() {
			return Endpoint{}, &mad.AddrError{Text: a.String(), Why: fmt.Sprintf("LID %#x belongs to no port: those of ports are 1 to 0xbfff", uint16(a.LID))}
		}
		found, err = r.nodes(ctx, a, Match(mad.NodeRecord{LID: a.LID}, "LID"))
	case mad.AddrGUID:
		found, err = r.byGUID(ctx, a)
	case mad.AddrGID:
		if a.GID[0] == 0xff {
			return Endpoint{}, &mad.AddrError{Text: a.String(), Why: "it is a multicast GID, which belongs to a group and not to a port"}
		}
		found, err = r.nodes(ctx, a, Match(mad.NodeRecord{NodeInfo: mad.NodeInfo{PortGUID: a.GID.GUID()}}, "PortGUID"))
		found = slices.DeleteFunc(found, func(e Endpoint) bool {
			return a.GID.Prefix() != mad.DefaultGIDPrefix && a.GID.Prefix() != e.GID.Prefix()
		})
	case mad.AddrName:
		return r.byName(ctx, a)
	default:
		return Endpoint{}, &mad.AddrError{Text: a.String(), Why: "the SA knows ports by LID, GUID, GID and name only"}
	}
	if err != nil {
		return Endpoint{}, err
	}
	e, err := r.onlyOne(a, found)
	if err == nil && a.Kind == mad.AddrLID {
		e.LID = a.LID
	}
	return e, err
}

// onlyOne is the port that was found, if it is one and something can be sent to
// it.
func (r *Resolver) onlyOne(a mad.Addr, found []Endpoint) (Endpoint, error) {
	switch len(found) {
	case 0:
		return Endpoint{}, &NotFoundError{Addr: a}
	case 1:
		if err := r.reachable(found[0]); err != nil {
			return Endpoint{}, lookUp(a, err)
		}
		return found[0], nil
	}
	return Endpoint{}, &AmbiguousError{Addr: a, Ports: found}
}

// reachable tells what is wrong with the addresses that the SA gives a port.
func (r *Resolver) reachable(e Endpoint) error {
	sa, err := r.c.address() // that has just answered
	if err != nil {
		return err
	}
	malformed := func(format string, args ...any) error {
		return &MalformedError{Attribute: layout.NodeRecord.Name, From: sa, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case e.LID == 0:
		return fmt.Errorf("SA at %v: port %d of %q, GUID %v: %w", sa, e.PortNum, e.Desc, e.PortGUID, ErrNoLID)
	case !e.LID.IsUnicast():
		return malformed("port %d of %q, GUID %v, cannot have LID %#x: those of ports are 1 to 0xbfff", e.PortNum, e.Desc, e.PortGUID, uint16(e.LID))
	case e.PortGUID == 0:
		return malformed("port %d of %q, LID %v, has no GUID", e.PortNum, e.Desc, e.LID)
	}
	return nil
}

// lookUp says which address an error is about.
func lookUp(a mad.Addr, err error) error {
	if a.Kind == mad.AddrName {
		return fmt.Errorf("look up %q: %w", a.Name, err)
	}
	return fmt.Errorf("look up %v: %w", a, err)
}

func (r *Resolver) byGUID(ctx context.Context, a mad.Addr) ([]Endpoint, error) {
	found, err := r.nodes(ctx, a, Match(mad.NodeRecord{NodeInfo: mad.NodeInfo{PortGUID: a.GUID}}, "PortGUID"))
	if err != nil || len(found) > 0 {
		return found, err
	}
	return r.nodes(ctx, a, Match(mad.NodeRecord{NodeInfo: mad.NodeInfo{NodeGUID: a.GUID}}, "NodeGUID"))
}

// byName asks for the whole NodeDescription first, which spares the SA a table of
// all nodes.
func (r *Resolver) byName(ctx context.Context, a mad.Addr) (Endpoint, error) {
	found, err := r.nodes(ctx, a, Match(mad.NodeRecord{NodeDescription: mad.MakeNodeDescription(a.Name)}, "NodeDescription.NodeString"))
	if err != nil || len(found) > 0 {
		if err != nil {
			return Endpoint{}, err
		}
		return r.onlyOne(a, found)
	}
	all, err := r.nodes(ctx, a, Query[mad.NodeRecord]{})
	if err != nil {
		return Endpoint{}, err
	}
	var names []string
	for _, e := range all {
		first := firstWord(e.Desc)
		if first == a.Name {
			found = append(found, e)
		}
		if !slices.Contains(names, first) {
			names = append(names, first)
		}
		if !slices.Contains(names, e.Desc) {
			names = append(names, e.Desc)
		}
	}
	e, err := r.onlyOne(a, found)
	var none *NotFoundError
	if errors.As(err, &none) {
		none.Near = layout.Nearest(a.Name, names)
	}
	return e, err
}

func firstWord(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return first
}

// nodes gives the ports of all NodeRecords that agree with a query, for the sake of
// an address.
func (r *Resolver) nodes(ctx context.Context, a mad.Addr, q Query[mad.NodeRecord]) ([]Endpoint, error) {
	info, err := r.c.dev.Info()
	if err != nil {
		return nil, lookUp(a, err)
	}
	prefix := uint64(mad.DefaultGIDPrefix)
	switch ethernet := info.LinkLayer == port.LinkEthernet; {
	case ethernet && a.Kind == mad.AddrGID:
		prefix = a.GID.Prefix() // the own port is in no subnet, and cannot tell
	case !ethernet && len(info.GIDs) > 0:
		prefix = info.GIDs[0].Prefix() // the same in the whole subnet
	}
	var found []Endpoint
	for rec, err := range Table(ctx, r.c, q) {
		if err != nil {
			return nil, lookUp(a, err)
		}
		found = append(found, Endpoint{
			LID:      rec.LID,
			GID:      mad.MakeGID(prefix, rec.NodeInfo.PortGUID),
			PortGUID: rec.NodeInfo.PortGUID,
			NodeGUID: rec.NodeInfo.NodeGUID,
			NodeType: rec.NodeInfo.NodeType,
			PortNum:  rec.NodeInfo.LocalPortNum,
			Desc:     rec.NodeDescription.String(),
		})
	}
	return found, nil
}
