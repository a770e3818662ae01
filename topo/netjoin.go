package topo

import (
	"slices"

	"github.com/ibsm/ibsm/mad"
)

func isNetDiscover(data []byte) bool { return netSign.Match(data) }

// parseNetDiscover reads an ibnetdiscover file.
func parseNetDiscover(name string, data []byte) (*Subnet, error) {
	r := &netReader{file: name, byID: map[string]*netNode{}, said: map[string]int{}}
	if err := r.read(string(data)); err != nil {
		return nil, err
	}
	return r.subnet()
}

// subnet makes a subnet of what was read.
func (r *netReader) subnet() (*Subnet, error) {
	if err := r.addUnlisted(); err != nil {
		return nil, err
	}
	// In ibnetdiscover's order, so that what is written is read back the same.
	slices.SortStableFunc(r.nodes, func(a, b *netNode) int { return netOrder(a.kind) - netOrder(b.kind) })
	s := newSubnet()
	r.addNodes(s)
	for _, n := range r.nodes {
		for _, e := range n.ends {
			if e == nil {
				continue
			}
			if err := r.link(n, e); err != nil {
				return nil, err
			}
		}
	}
	giveNetGUIDs(s)
	if err := s.complete([]mad.PKey{mad.DefaultPKey}); err != nil {
		return nil, &FileError{File: r.file, Msg: err.Error()}
	}
	if p, ok := s.PortByGUID(r.from); ok {
		s.SM = p
	}
	slices.SortStableFunc(r.warnings, func(a, b Warning) int { return a.Line - b.Line })
	s.Warnings = r.warnings
	return s, s.Validate()
}

// netOrder is the place of a kind of node in an ibnetdiscover file.
func netOrder(kind mad.NodeType) int {
	return slices.Index([]mad.NodeType{mad.NodeTypeSwitch, mad.NodeTypeCA, mad.NodeTypeRouter}, kind)
}

// addUnlisted makes nodes of those that are only named as a far end, because
// ibnetdiscover was told to stop before them, or could not ask them.
func (r *netReader) addUnlisted() error {
	kinds := map[byte]mad.NodeType{'S': mad.NodeTypeSwitch, 'H': mad.NodeTypeCA, 'R': mad.NodeTypeRouter}
	for _, n := range r.nodes { // those of the file; more are added on the way
		for _, e := range n.ends {
			if e == nil {
				continue
			}
			far := r.byID[e.far.id]
			if far == nil {
				guid, ok := guidOf(e.far.id)
				if !ok || guid == 0 {
					return r.refuse(e.line, "there is no node %q, and its name tells no GUID", e.far.id)
				}
				far = &netNode{id: e.far.id, kind: kinds[e.far.id[0]], netIDs: netIDs{guid: guid}, desc: e.far.desc, line: e.line, unlisted: true}
				r.byID[far.id] = far
				r.nodes = append(r.nodes, far)
				r.warn(e.line, "node %q is not described: it gets the ports that others are linked to", far.id)
			}
			if far.unlisted {
				far.ends = append(far.ends, make([]*netEnd, max(0, int(e.far.num)+1-len(far.ends)))...)
			}
		}
	}
	return nil
}

// addNodes adds the nodes with what they say of themselves.
func (r *netReader) addNodes(s *Subnet) {
	count := map[mad.NodeType]uint64{}
	descs := map[string]int{}
	for _, n := range r.nodes {
		if count[n.kind]++; n.guid == 0 {
			n.guid = generatedGUID(n.kind, count[n.kind])
		}
		descs[n.desc]++
	}
	for _, n := range r.nodes {
		id := netID(n.kind, n.guid)
		name := n.desc
		if _, isID := guidOf(name); descs[name] > 1 || badName(name) != "" || isID {
			name = id
		}
		t := s.addNode(name, n.kind, len(n.ends)-1)
		n.node = t
		t.place = place{file: r.file, line: n.line}
		t.Desc, t.BasePort0 = n.desc, n.base
		t.GUID, t.SystemImageGUID, t.VendorID, t.DeviceID = n.guid, n.system, n.vendor, n.device
		for i := range t.Ports {
			p, e := &t.Ports[i], n.ends[i]
			p.place = t.place
			switch {
			case t.IsSwitch() && i == 0:
				p.GUID, p.LID, p.LMC = n.portGUID, n.lid, n.lmc
			case !t.IsSwitch() && e != nil:
				p.GUID, p.LID, p.LMC = e.guid, e.lid, e.lmc
				p.place.line = e.line
			}
		}
	}
}

// link makes the link that a port line tells of, unless the line of its far end
// has made it.
func (r *netReader) link(n *netNode, e *netEnd) error {
	far := r.byID[e.far.id]
	if int(e.far.num) >= len(far.ends) {
		return r.refuse(e.line, "port %d of node %q: it has ports 1 to %d", e.far.num, far.id, len(far.ends)-1)
	}
	a, b := &n.node.Ports[e.num], &far.node.Ports[e.far.num]
	r.compareFar(e, b)
	back := far.ends[e.far.num]
	switch {
	case a == b:
		r.warn(e.line, "port %s is linked to itself: the port stays without a link", a)
		return nil
	case back == nil && b.Peer != nil:
		return r.refuse(e.line, "port %s is linked to %s, as is %s in line %d", a, b, b.Peer, b.link.line)
	case back == nil && !far.unlisted:
		r.warn(e.line, "port %s is linked to %s, for which there is no line", a, b)
	case back != nil && (back.far.id != n.id || back.far.num != e.num):
		return r.refuse(e.line, "port %s is linked to %s, which line %d links to port %d of %q", a, b, back.line, back.far.num, back.far.id)
	case a.Peer == b:
		return nil
	}
	if back == nil {
		back = e
	}
	width, speed := r.agree(e, back)
	connect(a, b, width, speed, defaultMTU)
	a.link = place{file: r.file, line: e.line}
	b.link = a.link
	return nil
}

// compareFar takes what the line of a port says of the far end where that does
// not say it itself.
func (r *netReader) compareFar(e *netEnd, far *Port) {
	end := far
	if far.Node.IsSwitch() {
		end = &far.Node.Ports[0]
	} else if end.GUID == 0 {
		end.GUID = e.far.guid
	} else if e.far.guid != 0 && e.far.guid != end.GUID {
		r.warn(e.line, "port %s has GUID %s here and %s in line %d, which counts", end, e.far.guid, end.GUID, end.place.line)
	}
	switch {
	case e.far.lid == 0 || e.far.lid == end.LID:
	case end.LID == 0:
		end.LID = e.far.lid
	default:
		r.warn(e.line, "port %s has LID %s here and %s in line %d, which counts", end, e.far.lid, end.LID, end.place.line)
	}
}

// agree gives the width and speed of a link from what its two ends say: the
// slower one's if they differ.
func (r *netReader) agree(a, b *netEnd) (mad.LinkWidth, mad.Speed) {
	known := func(e, other *netEnd) (mad.LinkWidth, mad.Speed) {
		width, speed := e.width, e.speed
		if width == 0 {
			width = other.width
		}
		if width == 0 {
			width = defaultWidth
		}
		if speed == 0 {
			speed = other.speed
		}
		if speed == 0 {
			speed = defaultSpeed
		}
		return width, speed
	}
	width, speed := known(a, b)
	farWidth, farSpeed := known(b, a)
	if width == farWidth && speed == farSpeed {
		return width, speed
	}
	if mad.RateOf(farWidth, farSpeed).Compare(mad.RateOf(width, speed)) < 0 {
		width, speed = farWidth, farSpeed
	}
	r.warn(a.line, "the other end of the link, in line %d, has another width or speed: %s%s counts", b.line, word(linkWidths, width), word(linkSpeeds, speed))
	return width, speed
}

// giveNetGUIDs gives a GUID to the ports that have no line: the node's plus the
// port number, unless another has it.
func giveNetGUIDs(s *Subnet) {
	taken := map[mad.GUID]bool{}
	for _, n := range s.Nodes {
		taken[n.GUID] = true
		for i := range n.Ports {
			taken[n.Ports[i].GUID] = true
		}
	}
	count := map[mad.NodeType]uint64{}
	for _, n := range s.Nodes {
		count[n.Type]++
		ends := n.EndPorts()
		for i := range ends {
			p := &ends[i]
			if p.GUID != 0 {
				continue
			}
			if p.GUID = n.GUID + mad.GUID(p.Num); p.Num != 0 && taken[p.GUID] {
				p.GUID = generatedGUID(n.Type, count[n.Type]) + mad.GUID(p.Num)
			}
			taken[p.GUID] = true
		}
	}
}
