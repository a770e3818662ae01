package topo

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibsm/ibsm/mad"
)

// Limits of a node (IBA 14.2.5.2, 14.2.5.3) and of what the simulated SMA holds.
const (
	maxDesc     = 64
	maxVendorID = 1<<24 - 1
	maxPorts    = 254
	MaxPKeys    = 128 // entries of a P_Key table (NodeInfo.PartitionCap)
	maxLMC      = 7
	maxLID      = uint64(mad.FirstMulticast) - 1
	// maxGIDPrefix lies below those of multicast GIDs, which start with 0xff
	// (IBA 4.1.1).
	maxGIDPrefix = 0xff<<56 - 1
)

// Validate looks for contradictions and says all that it finds, each with the
// two places that contradict each other. The error joins one error per finding.
func (s *Subnet) Validate() error {
	v := validator{sub: s,
		names: map[string]*Node{}, guids: map[mad.GUID]owner{},
		ips: map[netip.Addr]*Port{}, lids: map[mad.LID]*Port{},
	}
	if len(s.Nodes) == 0 {
		return errors.New("subnet has no nodes")
	}
	for _, n := range s.Nodes {
		v.node(n)
	}
	if s.SM == nil || !s.SM.IsEnd() {
		v.failf("subnet: the SM's port %v is no end port", s.SM)
	}
	if s.GIDPrefix == 0 || s.GIDPrefix > maxGIDPrefix {
		v.failf("subnet: GID prefix %#x is 0 or that of multicast GIDs", s.GIDPrefix)
	}
	return errors.Join(v.errs...)
}

// owner is what has a GUID: a node, or one of its ports.
type owner struct {
	node *Node
	port bool
	self string
}

type validator struct {
	sub   *Subnet
	names map[string]*Node
	guids map[mad.GUID]owner
	ips   map[netip.Addr]*Port
	lids  map[mad.LID]*Port
	errs  []error
}

func (v *validator) failf(format string, args ...any) {
	v.errs = append(v.errs, fmt.Errorf(format, args...))
}

// at names something with the place where it was written, if it was.
func at(what string, p place) string {
	if p.line == 0 {
		return what
	}
	return fmt.Sprintf("%s: %s", p, what)
}

func (n *Node) String() string { return "node " + n.Name }

func (v *validator) node(n *Node) {
	self := at(n.String(), n.place)
	if why := badName(n.Name); why != "" {
		v.failf("%s: name %q %s", self, short(n.Name), why)
	}
	if other, ok := v.names[n.Name]; ok {
		v.failf("%s: has the name of %s", self, at("another node", other.place))
	}
	v.names[n.Name] = n
	if len(n.Desc) > maxDesc || !utf8.ValidString(n.Desc) || strings.ContainsRune(n.Desc, 0) {
		v.failf("%s: desc %q is not UTF-8 text of at most %d bytes", self, short(n.Desc), maxDesc)
	}
	if n.Type != mad.NodeTypeCA && n.Type != mad.NodeTypeSwitch && n.Type != mad.NodeTypeRouter {
		v.failf("%s: node type %d is not known", self, n.Type)
	}
	if n.NumPorts() < 1 || n.NumPorts() > maxPorts {
		v.failf("%s: has %d ports, not 1 to %d", self, n.NumPorts(), maxPorts)
		return
	}
	if n.VendorID > maxVendorID {
		v.failf("%s: vendor %#x has more than 24 bits", self, n.VendorID)
	}
	v.guid(n.GUID, owner{node: n, self: self})
	for i := range n.Ports {
		p := &n.Ports[i]
		if p.IsEnd() {
			v.endPort(p)
		}
		if p.Peer != nil {
			v.linkEnd(p)
		}
	}
}

// badName says what is wrong with a node's name: a link "a[1] - b[2]" must have
// one reading.
func badName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxDesc:
		return fmt.Sprintf("is longer than %d bytes", maxDesc)
	case strings.TrimSpace(name) != name:
		return "starts or ends with a space"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool {
		return r == '[' || r == ']' || !unicode.IsPrint(r)
	}):
		return "has a [, a ] or an unprintable character"
	}
	return ""
}

// guid notes the owner of a GUID. A node may share its GUID with one of its
// ports, nothing else may share.
func (v *validator) guid(guid mad.GUID, o owner) {
	other, taken := v.guids[guid]
	switch {
	case guid == 0:
		v.failf("%s: GUID is 0", o.self)
	case taken && (other.node != o.node || other.port == o.port):
		v.failf("%s: has GUID %s, as has %s", o.self, guid, other.self)
	}
	v.guids[guid] = o
}

func (v *validator) endPort(p *Port) {
	self := at("port "+p.String(), p.place)
	v.guid(p.GUID, owner{node: p.Node, port: true, self: self})
	if p.LMC > maxLMC || p.LID&(1<<p.LMC-1) != 0 {
		v.failf("%s: LID %s is no multiple of 2^LMC, LMC %d", self, p.LID, p.LMC)
	} else if p.LID != 0 {
		v.lidsOf(p, self)
	}
	if len(p.PKeys) > MaxPKeys {
		v.failf("%s: has %d P_Keys, more than %d", self, len(p.PKeys), MaxPKeys)
	}
	seen := map[uint16]mad.PKey{}
	for _, key := range p.PKeys {
		if key.Base() == 0 {
			v.failf("%s: P_Key %s is invalid", self, key)
		} else if other, ok := seen[key.Base()]; ok {
			v.failf("%s: P_Keys %s and %s are of one partition", self, other, key)
		}
		seen[key.Base()] = key
	}
	if word(linkMTUs, p.MTU) == "" {
		v.failf("%s: MTU code %d is not known", self, p.MTU)
	}
	if !p.IP.IsValid() {
		v.failf("%s: has no IPoIB address", self)
	} else if v.sub.isSpecial(p.IP) {
		v.failf("%s: IP address %s is that of the network %s, or its broadcast address", self, p.IP, v.sub.ipoib)
	} else if other, ok := v.ips[p.IP]; ok {
		v.failf("%s: has IP address %s, as has %s", self, p.IP, at("port "+other.String(), other.place))
	}
	v.ips[p.IP] = p
}

func (v *validator) lidsOf(p *Port, self string) {
	for i := range 1 << p.LMC {
		lid := p.LID + mad.LID(i)
		if !lid.IsUnicast() {
			v.failf("%s: LID %d is not unicast (1 to %d)", self, uint16(lid), mad.FirstMulticast-1)
			return
		}
		if other, ok := v.lids[lid]; ok {
			v.failf("%s: has LID %s, as has %s", self, lid, at("port "+other.String(), other.place))
			return
		}
		v.lids[lid] = p
	}
}

// linkEnd checks what a fabric file cannot get wrong, too: a Subnet may have
// been changed since.
func (v *validator) linkEnd(p *Port) {
	self := at(fmt.Sprintf("link %s - %s", p, p.Peer), p.link)
	switch {
	case p.Num == 0:
		v.failf("%s: port 0 has no link", self)
	case p.Peer == p:
		v.failf("%s: the two ends are one port", self)
	case p.Peer.Peer != p:
		v.failf("%s: port %s is in %s", self, p.Peer, at("another link", p.Peer.link))
	case word(linkWidths, p.Width) == "":
		v.failf("%s: width code %d is not known", self, p.Width)
	case word(linkSpeeds, p.Speed) == "":
		v.failf("%s: speed code %d is not known", self, p.Speed)
	case word(linkMTUs, p.MTU) == "":
		v.failf("%s: MTU code %d is not known", self, p.MTU)
	case p.Width != p.Peer.Width || p.Speed != p.Peer.Speed || p.MTU != p.Peer.MTU:
		v.failf("%s: width, speed or MTU differ at the two ends", self)
	}
}
