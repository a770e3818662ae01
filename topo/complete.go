package topo

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ibsm/ibsm/mad"
)

// Values that a fabric file leaves out.
const (
	defaultWidth         = mad.LinkWidth4X
	defaultSpeed         = mad.SpeedEDR
	defaultMTU           = mad.MTU4096
	defaultSwitchPorts   = 36
	defaultSubnetTimeOut = 18
)

var defaultIPoIB = netip.MustParsePrefix("10.0.0.0/16")

func newSubnet() *Subnet {
	return &Subnet{GIDPrefix: mad.DefaultGIDPrefix, SubnetTimeOut: defaultSubnetTimeOut, ipoib: defaultIPoIB}
}

// addNode appends a node with its ports.
func (s *Subnet) addNode(name string, kind mad.NodeType, ports int) *Node {
	n := &Node{Name: name, Desc: name, Type: kind, Ports: make([]Port, ports+1)}
	for i := range n.Ports {
		n.Ports[i] = Port{Node: n, Num: uint8(i), State: mad.PortStateDown}
	}
	s.Nodes = append(s.Nodes, n)
	return n
}

// connect makes a link of two ports.
func connect(a, b *Port, width mad.LinkWidth, speed mad.Speed, mtu mad.MTU) {
	a.Peer, b.Peer = b, a
	for _, p := range []*Port{a, b} {
		p.Width, p.Speed, p.MTU = width, speed, mtu
	}
}

// complete gives a value to all that was left open, and indexes names and GUIDs.
func (s *Subnet) complete(pkeys []mad.PKey) error {
	s.byName = make(map[string]*Node, len(s.Nodes))
	s.byGUID = make(map[mad.GUID]any, 2*len(s.Nodes))
	count := map[mad.NodeType]uint64{}
	for _, n := range s.Nodes {
		count[n.Type]++
		if n.GUID == 0 {
			n.GUID = generatedGUID(n.Type, count[n.Type])
		}
		if n.SystemImageGUID == 0 {
			n.SystemImageGUID = n.GUID
		}
		s.byName[n.Name] = n
		s.byGUID[n.GUID] = n
	}
	for p := range s.EndPorts() {
		if p.GUID == 0 {
			p.GUID = p.Node.GUID + mad.GUID(p.Num)
		}
		if p.MTU == 0 { // no link, or port 0
			p.MTU = defaultMTU
		}
		if p.PKeys == nil {
			p.PKeys = slices.Clone(pkeys)
		}
		s.byGUID[p.GUID] = p
	}
	if s.SM == nil {
		s.SM = s.firstCA()
	}
	return s.giveIPs()
}

// generatedGUID is a locally administered EUI-64 that tells what it belongs to:
// 02:00:00 kind, number of the node among its kind, and a byte for the port.
func generatedGUID(kind mad.NodeType, number uint64) mad.GUID {
	return mad.GUID(0x02<<56 | uint64(kind)<<32 | number<<8)
}

func (s *Subnet) firstCA() *Port {
	for _, n := range s.Nodes {
		if n.Type == mad.NodeTypeCA && n.NumPorts() > 0 {
			return &n.Ports[1]
		}
	}
	for p := range s.EndPorts() {
		return p
	}
	return nil
}

// isSpecial tells whether an address of the prefix stands for more than a port:
// for the network or, in IPv4, for all ports (RFC 1122 3.2.1.3, RFC 4291 2.6.1).
func (s *Subnet) isSpecial(ip netip.Addr) bool {
	isLast := s.ipoib.Contains(ip) && !s.ipoib.Contains(ip.Next())
	return ip == s.ipoib.Addr() || ip.Is4() && isLast
}

// giveIPs gives the free addresses of the prefix in order of the end ports.
func (s *Subnet) giveIPs() error {
	taken := map[netip.Addr]bool{}
	for p := range s.EndPorts() {
		if p.IP.IsValid() {
			taken[p.IP] = true
		}
	}
	next := s.ipoib.Addr()
	for p := range s.EndPorts() {
		if p.IP.IsValid() {
			continue
		}
		for taken[next] || s.isSpecial(next) {
			next = next.Next()
		}
		if !s.ipoib.Contains(next) {
			return fmt.Errorf("subnet: ipoib %s has too few addresses for the end ports: %s gets none", s.ipoib, p)
		}
		p.IP, next = next, next.Next()
	}
	return nil
}
