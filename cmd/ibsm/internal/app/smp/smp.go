// Package smp is the noun that reads subnet management attributes.
package smp

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/smp"
)

// Command makes the noun.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "smp",
		Usage: "read subnet management attributes (smpquery)",
		Subcommands: []*cli.Command{{
			Name:      "get",
			Usage:     "read an attribute of a port (SubnGet)",
			ArgsUsage: "ATTRIBUTE ADDRESS [PORT]",
			Description: `ATTRIBUTE is one of

   ` + session.HelpList(attributeNames(all)) + `

ADDRESS is a LID, a GUID, a GID, a directed route, a LID with a directed route
behind it, or a name. PORT goes with

   ` + session.HelpList(attributeNames(withPort)) + `

0, the default, is the port that the request comes in by, of a switch its port
0. Of SLtoVLMappingTable it is the output port. Tables are read whole, block by
block.

Examples:

   ibsm --on sim:demo smp get NodeInfo 0,1
   ibsm --on sim:demo smp get PortInfo h1 1
   ibsm --on sim:demo smp get PKeys 0x0200000100000101
   ibsm --on sim:demo smp get PortInfo 9 12 --decoded
   ibsm --on sim:demo smp get NodeDescription 9:0,2
   ibsm --on sim:demo -o json smp get LinearForwardingTable "demo switch 1"`,
			Flags:  []cli.Flag{session.DecodedFlag()},
			Action: session.Action(2, 3, get),
		}},
	}
}

// attributeNames are the names of attributes that get can read, with the short
// names of smpquery.
func attributeNames(is func(attribute) bool) (names []string) {
	for _, a := range layout.Attributes {
		how, ok := attributes[a.Struct]
		if a.Class != uint8(mad.ClassSubnLIDRouted) || !ok || !is(how) {
			continue
		}
		name := a.Name
		if a.Short != "" {
			name += " (" + a.Short + ")"
		}
		names = append(names, name)
	}
	return names
}

func all(attribute) bool { return true }

func withPort(a attribute) bool { return a.takesPort }

func get(ctx context.Context, s *session.Session, args []string) error {
	attr, err := layout.LookUpAttribute(uint8(mad.ClassSubnLIDRouted), args[0])
	if err != nil {
		return exit.Usagef("unknown attribute %q: it is one of %s", args[0], strings.Join(attributeNames(all), ", "))
	}
	g := getter{s: s, attr: attr, how: attributes[attr.Struct], asked: args[1]}
	if g.to, err = mad.ParseAddr(args[1]); err != nil {
		return err
	}
	if len(args) > 2 {
		if !g.how.takesPort {
			return exit.Usagef("%s takes no port: it belongs to the node", attr.Name)
		}
		n, err := strconv.ParseUint(args[2], 0, 8)
		if err != nil || n > 254 {
			return exit.Usagef("port %q: it is a number from 0 to 254", args[2])
		}
		g.port = uint8(n)
	}
	if g.c, err = s.SMP(ctx); err != nil {
		return err
	}
	written := g.to.Kind
	switch written {
	case mad.AddrGUID, mad.AddrGID, mad.AddrName: // looked up once, not for each block
		lid, err := s.LID(ctx, g.to)
		if err != nil {
			return err
		}
		g.to = mad.Addr{Kind: mad.AddrLID, LID: lid}
	}
	if g.where, err = g.diagAddr(ctx); err != nil {
		return err
	}
	if err = g.get(ctx); err != nil && g.to.Kind != written {
		err = fmt.Errorf("%s: %w", args[1], err)
	}
	return err
}

// getter reads one attribute of one port.
type getter struct {
	s       *session.Session
	c       *smp.Client
	attr    *layout.Attribute
	how     attribute
	asked   string // the address as it was written
	to      mad.Addr
	where   string // to, as smpquery writes it
	port    uint8
	heading []byte // text before the next block
}

// get reads all lists of the attribute.
func (g *getter) get(ctx context.Context) error {
	columns, err := g.record(list{}, 0, make([]byte, g.attr.Struct.Size))
	if err != nil {
		return err
	}
	if err := g.s.Out.Columns(columns); err != nil {
		return err
	}
	survey := g.how.lists
	if survey == nil {
		survey = piece
	}
	heading, lists, err := survey(ctx, g)
	if err != nil {
		return err
	}
	g.heading = []byte(heading)
	total := 0
	for _, l := range lists {
		if l.size > 0 {
			g.heading = append(g.heading, l.heading...)
		}
		if err := g.blocks(ctx, l); err != nil {
			return err
		}
		total = l.size
	}
	if g.how.unit != "" {
		g.heading = fmt.Appendf(g.heading, "%d %s\n", total, g.how.unit)
	}
	return g.s.Out.Text(g.heading)
}

// blocks reads the blocks of a list.
func (g *getter) blocks(ctx context.Context, l list) error {
	seen := map[int]bool{}
	for block, at := l.block, 0; at < l.size; {
		data, err := g.read(ctx, l.modifier|uint32(block)<<g.how.shift)
		if err != nil {
			return err
		}
		if err := g.write(l, block, at, data); err != nil {
			return err
		}
		if g.how.next == nil {
			block, at = block+1, at+max(g.how.perBlock, 1)
			continue
		}
		seen[block] = true
		next := g.how.next(data)
		switch {
		case next == 0:
			return nil
		case seen[next]:
			return fmt.Errorf("%s of %s: %s %d goes on with %d, which has been read", g.attr.Name, g.where, g.how.block, block, next)
		}
		block = next
	}
	return nil
}

// write writes a block whose first element is number at of the list.
func (g *getter) write(l list, block, at int, data []byte) error {
	plain := g.heading
	g.heading = nil
	if g.how.line != "" {
		plain = fmt.Appendf(plain, g.how.line, block, l.port)
	}
	o := g.s.DumpOptions()
	if g.how.perBlock > 1 {
		o.First, o.Count = l.first+at, l.size-at
	}
	plain, err := text.AppendDump(plain, g.attr.Struct, data, o)
	if err != nil {
		return err
	}
	members, err := g.record(l, block, data)
	if err != nil {
		return err
	}
	return g.s.Out.Record(g.attr.Name, members, plain)
}

// record is a block as members: what it was asked by, and its fields.
func (g *getter) record(l list, block int, data []byte) (text.Object, error) {
	members := text.Object{{Name: "address", Value: g.asked}}
	if g.how.takesPort {
		members = append(members, text.Member{Name: "port", Value: l.port})
	}
	if g.how.list != "" {
		members = append(members, text.Member{Name: g.how.list, Value: l.is})
	}
	if g.how.block != "" {
		members = append(members, text.Member{Name: g.how.block, Value: block})
	}
	fields, err := text.ObjectOfBytes(g.attr.Struct, data)
	return append(members, fields...), err
}

func (g *getter) read(ctx context.Context, modifier uint32) ([]byte, error) {
	start := time.Now()
	data, err := g.c.Get(ctx, g.to, g.attr, modifier)
	g.s.Timed(start, "SubnGet(%s) with modifier %#x of %s", g.attr.Name, modifier, g.where)
	if err != nil {
		return nil, err
	}
	return data[:g.attr.Struct.Size], nil
}

// diagAddr writes the address as smpquery does (portid2str of libibmad): with the
// LIDs of the directed route, of which a combined one starts at the own LID.
func (g *getter) diagAddr(ctx context.Context) (string, error) {
	slid, lid := mad.PermissiveLID, ""
	switch g.to.Kind {
	case mad.AddrRoute:
	case mad.AddrCombined:
		dev, err := g.s.Device(ctx)
		if err != nil {
			return "", err
		}
		info, err := dev.Info()
		if err != nil {
			return "", err
		}
		slid, lid = info.LID, fmt.Sprintf("Lid %v ", g.to.LID)
	default:
		return fmt.Sprintf("Lid %v", g.to.LID), nil
	}
	return fmt.Sprintf("%sDR path slid %d; dlid %d; %v", lid, slid, mad.PermissiveLID, g.to.Route), nil
}

// nodeWithPort reads the NodeInfo of a node that has the port.
func (g *getter) nodeWithPort(ctx context.Context) (mad.NodeInfo, error) {
	node, err := smp.Get[mad.NodeInfo](ctx, g.c, g.to, 0)
	if err == nil && g.port > node.NumPorts {
		err = fmt.Errorf("port %d: the node has ports up to %d", g.port, node.NumPorts)
	}
	return node, err
}
