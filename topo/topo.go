// Package topo is the model of a subnet: nodes, ports, links, addresses and
// forwarding tables. It reads and writes fabric files, generates fabrics,
// assigns LIDs, computes routes and walks them. It sends no MADs.
//
// # Fabric files
//
// A fabric file is YAML, or what ibnetdiscover writes; its content tells which.
// In YAML, numbers are decimal without leading zeros, or 0x...; a key that is not
// listed here, a value that does not fit and a contradiction are errors that name
// file, line and column.
//
//	subnet:                      # optional, as each of its keys
//	  prefix: 0xfe80000000000000 # GID prefix; this is the default
//	  sm: h1                     # port of the subnet manager: NODE or NODE[PORT]; default: the first CA
//	  sm-sl: 0                   # MasterSMSL of every port
//	  timeout: 18                # SubnetTimeOut, 4.096 us * 2^n
//	  ipoib: 10.0.0.0/16         # where ports without an ip get theirs from; this is the default
//
//	defaults:                    # optional: what links and nodes do not say
//	  width: 4x                  # 1x, 2x, 4x, 8x, 12x
//	  speed: EDR                 # SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR
//	  mtu: 4096                  # 256, 512, 1024, 2048, 4096
//	  pkeys: [0xffff]            # P_Key table of end ports
//	  lmc: 0                     # LMC of the ports of CAs and routers
//
//	nodes:
//	  - name: h1                 # unique, without [ and ]
//	    kind: ca                 # ca, switch, router
//	    ports: 2                 # 1 to 254; default 1, for a switch 36
//	    desc: "h1 mlx5_0"        # NodeDescription; default: the name
//	    guid: 0x0002c90300001234 # NodeGUID; default: made from kind and place in the file
//	    system-guid: 0x0002c903  # SystemImageGUID; default: guid
//	    vendor: 0x02c9           # VendorID, 24 bits
//	    device: 0x1017           # DeviceID
//	    port0: enhanced          # of a switch: enhanced or base
//	    port:                    # optional: end ports by number (switches have one, 0)
//	      1: {guid: 0x0002c90300001235, lid: 7, lmc: 0, ip: 10.0.0.7, pkeys: [0xffff, 0x8001]}
//	    pkeys: [0xffff]          # pkeys, ip and lid may stand here when there is one end port,
//	                             # pkeys when there are several; then not under port, too
//
//	links:
//	  - h1[1] - s1[1]
//	  - {ends: "s1[12] - s2[12]", width: 1x, speed: QDR, mtu: 2048}
//
// An end port without a GUID has its node's GUID plus the port number.
//
// # ibnetdiscover files
//
// The topology file of ibnetdiscover, plain or with -g or -f, and the netlists
// of ibsim that have the same form:
//
//	vendid=0x2c9
//	devid=0xc738
//	sysimgguid=0xf452140300000010
//	switchguid=0xf452140300000010(f452140300000010)
//	Switch	36 "S-f452140300000010"		# "leaf 1" enhanced port 0 lid 9 lmc 0
//	[1]	"H-24be05ffff000020"[1](24be05ffff000021) 		# "h1 mlx4_0" lid 3 4xQDR
//
//	vendid=0x2c9
//	devid=0x1003
//	sysimgguid=0x24be05ffff000023
//	caguid=0x24be05ffff000020
//	Ca	2 "H-24be05ffff000020"		# "h1 mlx4_0"
//	[1](24be05ffff000021) 	"S-f452140300000010"[1]		# lid 3 lmc 0 "leaf 1" lid 9 4xQDR
//
// A node's name is its NodeDescription, or the text in quotes before it where
// the NodeDescription is not unique or no valid name. Ports that are not in the
// file have no link. The port of the subnet manager is the one that
// ibnetdiscover was run at. What the file does not tell has the defaults of the
// YAML form, the MTU among it.
//
// Such files have been through terminals, mails and editors, so all this is
// accepted: a byte order mark, UTF-16, CRLF, blanks in place of tabs or at either
// end of a line; fields that are missing after the name of a node or of a far
// end. With a [Warning]: shell prompts, messages of ibnetdiscover on stderr, even
// in the middle of a line, and all other lines that are not its own; links with a
// line for one end only; far ends that were not discovered; a link or an address
// that its two ends describe differently; GUIDs of 0; ports linked to themselves.
// The rest is refused with file and line: a line of ibnetdiscover's that breaks off, a node or
// port described twice, two links at one port, and what is a contradiction in
// YAML, too.
package topo

import (
	"fmt"
	"net/netip"

	"github.com/ibsm/ibsm/mad"
)

// Subnet is one subnet. It is made by [Parse], [Load] or [Generate], which leave
// it valid: links and addresses are there, LIDs and routes come with [Subnet.BringUp].
// After that it may be read by any number of goroutines.
type Subnet struct {
	GIDPrefix uint64
	SM        *Port // end port of the master subnet manager
	SMSL      uint8 // MasterSMSL of every port
	// SubnetTimeOut is PortInfo's: 4.096 us * 2^n (IBA 14.2.5.6).
	SubnetTimeOut uint8
	Nodes         []*Node
	// Warnings tell what was passed over or put right in the file, in the order of
	// its lines. Only ibnetdiscover files have them.
	Warnings []Warning

	ipoib  netip.Prefix
	byName map[string]*Node
	byGUID map[mad.GUID]any // *Node or *Port; the port where both have the GUID
	byLID  []*Port
}

// Node is a channel adapter, a switch or a router.
type Node struct {
	Name            string // unique in the subnet
	Desc            string // NodeDescription, at most 64 bytes
	Type            mad.NodeType
	GUID            mad.GUID
	SystemImageGUID mad.GUID
	VendorID        uint32 // 24 bits
	DeviceID        uint16
	BasePort0       bool // a switch's port 0 is a base one, not an enhanced one (IBA 14.2.5.4)
	// Ports has NumPorts+1 entries, the index is the port number. Port 0 is a
	// switch's management port; other nodes have none, and entry 0 is not used.
	Ports []Port
	// LFT is a switch's linear forwarding table: the port to leave by for each
	// LID, NoRoute if there is none.
	LFT []uint8

	place place
}

// NoRoute is the entry of a forwarding table that drops (IBA 14.2.5.10).
const NoRoute = 255

// Port is a port of a node.
type Port struct {
	Node *Node
	Num  uint8
	Peer *Port // far end of the link, nil without one

	// Width, Speed and MTU (NeighborMTU) are those of the link, the same at its
	// two ends. Port 0 of a switch has an MTU only.
	Width mad.LinkWidth
	Speed mad.Speed
	MTU   mad.MTU
	State mad.PortState

	// The rest is of end ports only.
	GUID  mad.GUID
	LID   mad.LID // base LID, 0 before it has one
	LMC   uint8   // the port has 2^LMC LIDs
	SMLID mad.LID
	SMSL  uint8
	PKeys []mad.PKey
	IP    netip.Addr // of IPoIB

	place, link place
}

// place is where something was written in a fabric file; line 0 is nowhere, and
// col 0 the whole line.
type place struct {
	file string
	line int
	col  int
}

func (p place) String() string {
	if p.col == 0 {
		return fmt.Sprintf("%s:%d", p.file, p.line)
	}
	return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.col)
}

// NumPorts is the number of physical ports, as in NodeInfo.
func (n *Node) NumPorts() int { return len(n.Ports) - 1 }

// IsSwitch tells whether the node forwards by its LFT.
func (n *Node) IsSwitch() bool { return n.Type == mad.NodeTypeSwitch }

// EndPorts are the ports that have a LID and a GUID: port 0 of a switch, all
// ports of other nodes.
func (n *Node) EndPorts() []Port {
	if n.IsSwitch() {
		return n.Ports[:1]
	}
	return n.Ports[1:]
}

// IsEnd tells whether p is an end port: it has a LID and a GUID.
func (p *Port) IsEnd() bool { return p.Node.IsSwitch() == (p.Num == 0) }

// Has tells whether lid is one of the 2^LMC LIDs of p.
func (p *Port) Has(lid mad.LID) bool {
	return p.LID != 0 && lid>>p.LMC == p.LID>>p.LMC
}

// GID is the port's GID of index 0 with the given prefix.
func (p *Port) GID(prefix uint64) mad.GID { return mad.MakeGID(prefix, p.GUID) }

// LinkPort is the port whose link says how fast p is: p itself, but for port 0 of
// a switch, which has no link, the port with the switch's fastest one.
func (p *Port) LinkPort() *Port {
	if p.Num != 0 {
		return p
	}
	for i := range p.Node.Ports {
		if q := &p.Node.Ports[i]; q.Rate().Compare(p.Rate()) > 0 {
			p = q
		}
	}
	return p
}

// Rate is the rate of the port's link, RateNone without one.
func (p *Port) Rate() mad.Rate { return mad.RateOf(p.Width, p.Speed) }

// String names the port as fabric files do: "h1[1]".
func (p *Port) String() string { return fmt.Sprintf("%s[%d]", p.Node.Name, p.Num) }
