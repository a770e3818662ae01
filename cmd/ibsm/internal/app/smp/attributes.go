package smp

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/smp"
)

// attribute says how get reads an attribute whole and what smpquery prints around
// it. It is one piece, or comes in blocks, each of which is read by its number.
type attribute struct {
	title     string // smpquery's heading of one piece
	takesPort bool

	// lists finds out which lists there are to be read, and the heading of all. nil:
	// the attribute is one piece.
	lists    func(ctx context.Context, g *getter) (heading string, lists []list, err error)
	list     string // member that tells lists apart
	block    string // member with the number of a block
	shift    int    // of that number in the modifier
	perBlock int    // elements
	line     string // before each block: a format of its number and of the port
	unit     string // after the last: "pkeys capacity for this port", behind their number
	// next finds in a block the number of the one after it, 0 if there is none. nil:
	// blocks are numbered one after another.
	next func(data []byte) int
}

// list is a list of elements, in blocks.
type list struct {
	heading  string
	is       any // value of the member that tells it apart
	port     uint8
	modifier uint32 // without the number of the block
	block    int    // number of the first block
	first    int    // number of the first element
	size     int    // elements
}

var attributes = map[*layout.Struct]attribute{
	layout.NodeDescription:  {},
	layout.NodeInfo:         {title: "Node info"},
	layout.SwitchInfo:       {title: "Switch info"},
	layout.PortInfo:         {title: "Port info", takesPort: true},
	layout.PortInfoExtended: {title: "Port info Extended", takesPort: true},
	layout.MlnxExtPortInfo:  {title: "MLNX ext Port info", takesPort: true},
	layout.SMInfo:           {title: "SM info"},
	layout.LedInfo:          {title: "Led info", takesPort: true},
	layout.SMPNotice:        {title: "Notice"},
	layout.VendorDiag:       {title: "Vendor diag", block: "index", next: nextIndex},

	layout.GUIDInfo:  {lists: guids, block: "block", perBlock: 8, unit: "guids capacity for this port"},
	layout.PKeyTable: {lists: pkeys, takesPort: true, block: "block", perBlock: 32, unit: "pkeys capacity for this port"},
	layout.SLtoVLMappingTable: {lists: laneMaps, takesPort: true, block: "input_port", shift: 8, perBlock: 1,
		line: "ports: in %2d, out %2d: "},
	layout.VLArbitrationTable: {lists: laneLists, takesPort: true, list: "priority", block: "block", shift: 16, perBlock: 32},

	layout.LinearForwardingTable:    {lists: linear, block: "block", perBlock: 64, unit: "LIDs up to LinearFDBTop"},
	layout.RandomForwardingTable:    {lists: random, block: "block", perBlock: 16, unit: "entries capacity for this switch"},
	layout.MulticastForwardingTable: {lists: multicast, list: "position", block: "block", perBlock: 32, unit: "LIDs up to MulticastFDBTop"},
}

// piece is the one list of an attribute that is no list.
func piece(_ context.Context, g *getter) (string, []list, error) {
	heading := ""
	switch {
	case g.how.takesPort:
		heading = fmt.Sprintf("# %s: %s port %d\n", g.how.title, g.where, g.port)
	case g.how.title != "":
		heading = fmt.Sprintf("# %s: %s\n", g.how.title, g.where)
	}
	return heading, []list{{port: g.port, modifier: uint32(g.port), size: 1}}, nil
}

// nextIndex is where a VendorDiag goes on (IBA 14.2.5.14).
func nextIndex(data []byte) int { return int(binary.BigEndian.Uint16(data)) }

func guids(ctx context.Context, g *getter) (string, []list, error) {
	info, err := smp.Get[mad.PortInfo](ctx, g.c, g.to, 0)
	return "", []list{{size: int(info.GUIDCap)}}, err
}

// pkeys are as many as the node, or for external ports the switch, says (IBA
// 14.2.5.7).
func pkeys(ctx context.Context, g *getter) (string, []list, error) {
	node, err := g.nodeWithPort(ctx)
	l := list{port: g.port, modifier: uint32(g.port) << 16, size: int(node.PartitionCap)}
	if err == nil && node.NodeType == mad.NodeTypeSwitch && g.port != 0 {
		var sw mad.SwitchInfo
		sw, err = smp.Get[mad.SwitchInfo](ctx, g.c, g.to, 0)
		l.size = int(sw.PartitionEnforcementCap)
	}
	return "", []list{l}, err
}

// laneMaps are those of all input ports of a switch to an output port, or the one
// map of another node.
func laneMaps(ctx context.Context, g *getter) (string, []list, error) {
	heading := fmt.Sprintf("# SL2VL table: %s\n#                 SL: |", g.where)
	for sl := range 16 {
		heading += fmt.Sprintf("%2d|", sl)
	}
	node, err := g.nodeWithPort(ctx)
	l := list{size: 1}
	if node.NodeType == mad.NodeTypeSwitch {
		l = list{port: g.port, modifier: uint32(g.port), size: int(node.NumPorts) + 1}
	}
	return heading + "\n", []list{l}, err
}

// laneLists are a port's lists of lanes to serve: blocks 1 and 2 are those of low
// priority, 3 and 4 those of high (IBA 14.2.5.9). Without an enhanced port 0 a
// switch has none there.
func laneLists(ctx context.Context, g *getter) (string, []list, error) {
	if g.port == 0 {
		node, err := smp.Get[mad.NodeInfo](ctx, g.c, g.to, 0)
		if err != nil {
			return "", nil, err
		}
		if node.NodeType == mad.NodeTypeSwitch {
			sw, err := smp.Get[mad.SwitchInfo](ctx, g.c, g.to, 0)
			if err != nil || !sw.EnhancedPort0 {
				return fmt.Sprintf("# No VLArbitration tables (BSP0): %s port 0\n", g.where), nil, err
			}
		}
	}
	info, err := smp.Get[mad.PortInfo](ctx, g.c, g.to, uint32(g.port))
	if err != nil {
		return "", nil, err
	}
	low, high := int(info.VLArbitrationLowCap), int(info.VLArbitrationHighCap)
	part := func(priority string, block, size int) list {
		return list{heading: fmt.Sprintf("# %s priority VL Arbitration Table:", priority), is: priority,
			port: g.port, modifier: uint32(g.port), block: block, size: min(size, 64)}
	}
	heading := fmt.Sprintf("# VLArbitration tables: %s port %d LowCap %d HighCap %d\n", g.where, g.port, low, high)
	return heading, []list{part("Low", 1, low), part("High", 3, high)}, nil
}

func linear(ctx context.Context, g *getter) (string, []list, error) {
	sw, err := smp.Get[mad.SwitchInfo](ctx, g.c, g.to, 0)
	return "", []list{{size: int(sw.LinearFDBTop) + 1}}, err
}

func random(ctx context.Context, g *getter) (string, []list, error) {
	sw, err := smp.Get[mad.SwitchInfo](ctx, g.c, g.to, 0)
	return "", []list{{size: int(sw.RandomFDBCap)}}, err
}

// firstMLID is the first multicast LID (IBA 4.1.3).
const firstMLID = 0xc000

// multicast is a list for each 16 ports. An SM that knows no MulticastFDBTop
// leaves it 0: all entries count then.
func multicast(ctx context.Context, g *getter) (string, []list, error) {
	node, err := smp.Get[mad.NodeInfo](ctx, g.c, g.to, 0)
	if err != nil {
		return "", nil, err
	}
	sw, err := smp.Get[mad.SwitchInfo](ctx, g.c, g.to, 0)
	size := min(int(sw.MulticastFDBCap), 1<<16-firstMLID)
	if top := int(sw.MulticastFDBTop); top >= firstMLID-1 {
		size = min(size, top-firstMLID+1)
	}
	var lists []list
	for position := range (int(node.NumPorts) + 16) / 16 {
		lists = append(lists, list{
			heading: fmt.Sprintf("# Multicast forwarding table: %s ports %d to %d\n", g.where, 16*position, min(16*position+15, int(node.NumPorts))),
			is:      position, modifier: uint32(position) << 28, first: firstMLID, size: size,
		})
	}
	return "", lists, err
}
