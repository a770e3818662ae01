package topo

import (
	"iter"
	"net/netip"
	"strings"

	"github.com/ibsm/ibsm/mad"
)

// NodeByName finds a node by its unique name.
func (s *Subnet) NodeByName(name string) (*Node, bool) {
	n, ok := s.byName[name]
	return n, ok
}

// NodesByDesc finds nodes by NodeDescription, which need not be unique.
func (s *Subnet) NodesByDesc(desc string) []*Node {
	var found []*Node
	for _, n := range s.Nodes {
		if n.Desc == desc {
			found = append(found, n)
		}
	}
	return found
}

// PortByName finds a port by "NODE[PORT]". "NODE" is the node's first end port.
func (s *Subnet) PortByName(name string) (*Port, bool) {
	if n, ok := s.byName[name]; ok {
		return &n.EndPorts()[0], true
	}
	node, num, ok := cutPort(name)
	if !ok {
		return nil, false
	}
	n, ok := s.byName[node]
	if !ok || int(num) >= len(n.Ports) || (num == 0 && !n.IsSwitch()) {
		return nil, false
	}
	return &n.Ports[num], true
}

// cutPort takes "name[port]" apart.
func cutPort(s string) (name string, port uint8, ok bool) {
	name, rest, ok := strings.Cut(s, "[")
	digits, closed := strings.CutSuffix(rest, "]")
	num, err := parseNumber(digits)
	return name, uint8(num), ok && closed && err == nil && num <= maxPorts && name != ""
}

// PortByGUID finds an end port by its port GUID or by a node GUID, which stands
// for the node's first end port.
func (s *Subnet) PortByGUID(guid mad.GUID) (*Port, bool) {
	switch owner := s.byGUID[guid].(type) {
	case *Port:
		return owner, true
	case *Node:
		return &owner.EndPorts()[0], true
	}
	return nil, false
}

// PortByGID finds an end port by GID: its port GUID behind the subnet's prefix
// or the link-local one, which is always valid (IBA 4.1.1).
func (s *Subnet) PortByGID(gid mad.GID) (*Port, bool) {
	if gid.Prefix() != s.GIDPrefix && gid.Prefix() != mad.DefaultGIDPrefix {
		return nil, false
	}
	p, ok := s.byGUID[gid.GUID()].(*Port)
	return p, ok
}

// PortByLID finds the end port that has the LID.
func (s *Subnet) PortByLID(lid mad.LID) (*Port, bool) {
	if int(lid) >= len(s.byLID) || s.byLID[lid] == nil {
		return nil, false
	}
	return s.byLID[lid], true
}

// IPoIB is the network that the ports' IP addresses are of.
func (s *Subnet) IPoIB() netip.Prefix { return s.ipoib }

// PortByIP finds an end port by its IPoIB address.
func (s *Subnet) PortByIP(ip netip.Addr) (*Port, bool) {
	for p := range s.EndPorts() {
		if p.IP == ip {
			return p, true
		}
	}
	return nil, false
}

// EndPorts goes through the end ports of all nodes, in order.
func (s *Subnet) EndPorts() iter.Seq[*Port] {
	return func(yield func(*Port) bool) {
		for _, n := range s.Nodes {
			ports := n.EndPorts()
			for i := range ports {
				if !yield(&ports[i]) {
					return
				}
			}
		}
	}
}

// TopLID is the highest LID in use, 0 before BringUp.
func (s *Subnet) TopLID() mad.LID { return mad.LID(max(len(s.byLID)-1, 0)) }
