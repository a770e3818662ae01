// Package smp is the noun that reads subnet management attributes.
package smp

import (
	"bytes"
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

   ` + attributeList() + `

ADDRESS is a LID, a GUID, a GID, a directed route, a LID with a directed route
behind it, or a name. PORT goes with PortInfo and P_KeyTable; 0, the default, is
the port that the request comes in by, of a switch its port 0. Tables are read
whole, block by block.

Examples:

   ibsm --on sim:demo smp get NodeInfo 0,1
   ibsm --on sim:demo smp get PortInfo h1 1
   ibsm --on sim:demo smp get PKeys 0x0200000100000101
   ibsm --on sim:demo smp get NodeDescription 9:0,2
   ibsm --on sim:demo -o json smp get LinearForwardingTable "demo switch 1"`,
			Action: session.Action(2, 3, get),
		}},
	}
}

// titles are the headings of smpquery for the attributes that are read in one
// piece.
var titles = map[*layout.Struct]string{
	layout.NodeDescription: "", // has none
	layout.NodeInfo:        "Node info",
	layout.PortInfo:        "Port info",
	layout.SwitchInfo:      "Switch info",
	layout.SMInfo:          "SM info",
}

// isOffered tells whether get knows how to read an attribute.
func isOffered(a *layout.Attribute) bool {
	_, single := titles[a.Struct]
	_, table := tables[a.Struct]
	return a.Class == uint8(mad.ClassSubnLIDRouted) && (single || table)
}

// attributeList names the attributes, with the short names of smpquery.
func attributeList() string {
	var names []string
	for _, a := range layout.Attributes {
		if !isOffered(a) {
			continue
		}
		name := a.Name
		if a.Short != "" {
			name += " (" + a.Short + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// table says how an attribute that comes in blocks is read whole.
type table struct {
	perBlock int
	unit     string // "pkeys capacity for this port", after their number
	// size reads how many elements there are.
	size func(ctx context.Context, c *smp.Client, to mad.Addr, port uint8) (int, error)
}

var tables = map[*layout.Struct]table{
	layout.PKeyTable:             {32, "pkeys capacity for this port", pkeyCapacity},
	layout.GUIDInfo:              {8, "guids capacity for this port", guidCapacity},
	layout.LinearForwardingTable: {64, "LIDs up to LinearFDBTop", lidCount},
}

func get(ctx context.Context, s *session.Session, args []string) error {
	attr, err := layout.LookUpAttribute(uint8(mad.ClassSubnLIDRouted), args[0])
	if err != nil || !isOffered(attr) {
		return exit.Usagef("unknown attribute %q: it is one of %s", args[0], attributeList())
	}
	to, err := mad.ParseAddr(args[1])
	if err != nil {
		return err
	}
	var port uint8
	if len(args) > 2 {
		if attr.Struct != layout.PortInfo && attr.Struct != layout.PKeyTable {
			return exit.Usagef("%s takes no port: it belongs to the node", attr.Name)
		}
		n, err := strconv.ParseUint(args[2], 0, 8)
		if err != nil || n > 254 {
			return exit.Usagef("port %q: it is a number from 0 to 254", args[2])
		}
		port = uint8(n)
	}
	c, err := s.SMP(ctx)
	if err != nil {
		return err
	}
	g := getter{s: s, c: c, attr: attr, asked: args[1], to: to, port: port}
	switch to.Kind {
	case mad.AddrGUID, mad.AddrGID, mad.AddrName: // looked up once, not for each block
		lid, err := s.LID(ctx, to)
		if err != nil {
			return err
		}
		g.to = mad.Addr{Kind: mad.AddrLID, LID: lid}
	}
	if g.where, err = g.diagAddr(ctx); err != nil {
		return err
	}
	if t, ok := tables[attr.Struct]; ok {
		err = g.table(ctx, t)
	} else {
		err = g.single(ctx)
	}
	if err != nil && g.to.Kind != to.Kind {
		err = fmt.Errorf("%s: %w", args[1], err)
	}
	return err
}

// getter reads one attribute of one port.
type getter struct {
	s     *session.Session
	c     *smp.Client
	attr  *layout.Attribute
	asked string // the address as it was written
	to    mad.Addr
	where string // to, as smpquery writes it
	port  uint8
}

func (g *getter) single(ctx context.Context) error {
	data, err := g.read(ctx, uint32(g.port))
	if err != nil {
		return err
	}
	var plain []byte
	if title := titles[g.attr.Struct]; title != "" {
		plain = fmt.Appendf(plain, "# %s: %s", title, g.where)
		if g.attr.Struct == layout.PortInfo {
			plain = fmt.Appendf(plain, " port %d", g.port)
		}
		plain = append(plain, '\n')
	}
	if plain, err = text.AppendDump(plain, g.attr.Struct, data, text.Options{}); err != nil {
		return err
	}
	members := text.Object{{Name: "address", Value: g.asked}}
	if g.attr.Struct == layout.PortInfo {
		members = append(members, text.Member{Name: "port", Value: g.port})
	}
	return g.record(members, data, plain)
}

func (g *getter) table(ctx context.Context, t table) error {
	size, err := t.size(ctx, g.c, g.to, g.port)
	if err != nil {
		return err
	}
	for first := 0; first < size; first += t.perBlock {
		block := first / t.perBlock
		data, err := g.read(ctx, uint32(g.port)<<16|uint32(block))
		if err != nil {
			return err
		}
		plain, err := text.AppendDump(nil, g.attr.Struct, data, text.Options{First: first})
		if err != nil {
			return err
		}
		members := text.Object{{Name: "address", Value: g.asked}}
		if g.attr.Struct == layout.PKeyTable {
			members = append(members, text.Member{Name: "port", Value: g.port})
		}
		members = append(members, text.Member{Name: "block", Value: block})
		plain = firstLines(plain, min(size-first, t.perBlock), t.perBlock)
		if first+t.perBlock >= size {
			plain = fmt.Appendf(plain, "%d %s\n", size, t.unit)
		}
		if err := g.record(members, data, plain); err != nil {
			return err
		}
	}
	return nil
}

// firstLines keeps the lines of a block that hold its first n elements.
func firstLines(block []byte, n, perBlock int) []byte {
	lines := bytes.SplitAfter(bytes.TrimSuffix(block, []byte("\n")), []byte("\n"))
	perLine := perBlock / len(lines)
	kept := bytes.Join(lines[:(n+perLine-1)/perLine], nil)
	if !bytes.HasSuffix(kept, []byte("\n")) {
		kept = append(kept, '\n')
	}
	return kept
}

func (g *getter) record(members text.Object, data, plain []byte) error {
	fields, err := text.ObjectOfBytes(g.attr.Struct, data)
	if err != nil {
		return err
	}
	return g.s.Out.Record(g.attr.Name, append(members, fields...), plain)
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

// pkeyCapacity is where the node says how long a port's P_Key table is (IBA
// 14.2.5.7).
func pkeyCapacity(ctx context.Context, c *smp.Client, to mad.Addr, port uint8) (int, error) {
	node, err := smp.Get[mad.NodeInfo](ctx, c, to, 0)
	if err != nil {
		return 0, err
	}
	if port > node.NumPorts {
		return 0, fmt.Errorf("port %d: the node has ports up to %d", port, node.NumPorts)
	}
	if node.NodeType != mad.NodeTypeSwitch || port == 0 {
		return int(node.PartitionCap), nil
	}
	sw, err := smp.Get[mad.SwitchInfo](ctx, c, to, 0)
	return int(sw.PartitionEnforcementCap), err
}

func guidCapacity(ctx context.Context, c *smp.Client, to mad.Addr, _ uint8) (int, error) {
	info, err := smp.Get[mad.PortInfo](ctx, c, to, 0)
	return int(info.GUIDCap), err
}

func lidCount(ctx context.Context, c *smp.Client, to mad.Addr, _ uint8) (int, error) {
	sw, err := smp.Get[mad.SwitchInfo](ctx, c, to, 0)
	return int(sw.LinearFDBTop) + 1, err
}
