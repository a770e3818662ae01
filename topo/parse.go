package topo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ibsm/ibsm/mad"
)

// FileError is a mistake in a fabric file. Line and Col are 1-based. Col is 0 for
// a whole line, and Line is 0 when the mistake is none of a line.
type FileError struct {
	File      string
	Line, Col int
	Msg       string
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return place{e.File, e.Line, e.Col}.String() + ": " + e.Msg
}

// maxFile is more than the largest subnet takes in either form.
const maxFile = 64 << 20

// Load reads a fabric file, in YAML or as ibnetdiscover writes it: a regular file
// of at most 64 MiB. Its errors are those of Parse and of the file system.
func Load(name string) (*Subnet, error) {
	info, err := os.Stat(name) // before the open, which waits at a pipe
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &FileError{File: name, Msg: "is not a regular file"}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, &FileError{File: name, Msg: fmt.Sprintf("is larger than %d MiB, the most that a fabric file may have", maxFile>>20)}
	}
	return Parse(name, data)
}

// Parse reads the text of a fabric file, in YAML or as ibnetdiscover writes it;
// name stands in errors and warnings. The errors are *FileError, and what
// Validate finds.
func Parse(name string, data []byte) (*Subnet, error) {
	data = plainText(data)
	if isNetDiscover(data) {
		return parseNetDiscover(name, data)
	}
	if at := netOther.FindIndex(data); at != nil {
		line := 1 + bytes.Count(data[:at[0]], []byte("\n"))
		return nil, &FileError{File: name, Line: line, Msg: "this is a list of ibnetdiscover's (-p or -l), which does not tell all: the file that it writes without options is needed"}
	}
	return parseYAML(name, data)
}

func parseYAML(name string, data []byte) (*Subnet, error) {
	if err := checkText(name, string(data)); err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, &FileError{File: name, Msg: "is empty"}
	} else if err != nil {
		return nil, syntaxError(name, string(data), err)
	}
	if err := dec.Decode(&next); err == nil {
		return nil, &FileError{name, next.Line, next.Column, "a second document: a fabric file has one"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxError(name, string(data), err)
	}
	p := parser{file: name, sub: newSubnet(), pkeys: []mad.PKey{mad.DefaultPKey}, names: map[string]*Node{},
		link: linkSpec{width: defaultWidth, speed: defaultSpeed, mtu: defaultMTU}}
	if err := p.document(doc.Content[0]); err != nil {
		return nil, err
	}
	if err := p.sub.complete(p.pkeys); err != nil {
		return nil, &FileError{File: name, Msg: err.Error()}
	}
	return p.sub, p.sub.Validate()
}

type parser struct {
	file  string
	sub   *Subnet
	names map[string]*Node
	pkeys []mad.PKey // of defaults
	lmc   uint8      // of defaults
	link  linkSpec   // of defaults
}

type linkSpec struct {
	ends  *yaml.Node
	width mad.LinkWidth
	speed mad.Speed
	mtu   mad.MTU
}

func (p *parser) document(root *yaml.Node) error {
	// Links need the nodes and the SM's port needs both, wherever they stand.
	var defaults, nodes, links, subnet *yaml.Node
	keep := func(at **yaml.Node) func(*yaml.Node) error {
		return func(n *yaml.Node) error { *at = n; return nil }
	}
	err := p.mapping(root, "fabric", fields{
		"subnet": keep(&subnet), "defaults": keep(&defaults), "nodes": keep(&nodes), "links": keep(&links),
	})
	if err != nil {
		return err
	}
	if nodes == nil {
		return p.errorf(root, "has no nodes")
	}
	if defaults != nil {
		f := p.link.fields(p)
		delete(f, "ends")
		f["pkeys"] = list(p, &p.pkeys, p.pkey)
		f["lmc"] = number(p, &p.lmc, 0, maxLMC)
		if err := p.mapping(defaults, "defaults", f); err != nil {
			return err
		}
	}
	if err := p.each(nodes, "nodes", p.node); err != nil {
		return err
	}
	if links != nil {
		if err := p.each(links, "links", p.oneLink); err != nil {
			return err
		}
	}
	if subnet != nil {
		return p.subnet(subnet)
	}
	return nil
}

func (p *parser) subnet(n *yaml.Node) error {
	s := p.sub
	return p.mapping(n, "subnet", fields{
		"prefix":  number(p, &s.GIDPrefix, 1, maxGIDPrefix),
		"sm-sl":   number(p, &s.SMSL, 0, 15),
		"timeout": number(p, &s.SubnetTimeOut, 0, 31),
		"ipoib": text(p, &s.ipoib, func(v string) (netip.Prefix, error) {
			prefix, err := netip.ParsePrefix(v)
			if err != nil {
				return prefix, errors.New("is no prefix like 10.0.0.0/16")
			}
			if prefix != prefix.Masked() {
				return prefix, fmt.Errorf("has bits set behind its first %d: the prefix is %s", prefix.Bits(), prefix.Masked())
			}
			return prefix, checkIP(prefix.Addr())
		}),
		"sm": text(p, &s.SM, func(v string) (*Port, error) {
			node, num, ok := cutPort(v)
			if !ok {
				node, num = v, 0
			}
			sm, err := p.findNode(node)
			if err != nil {
				return nil, err
			}
			if !ok {
				return &sm.EndPorts()[0], nil
			}
			if int(num) >= len(sm.Ports) || !sm.Ports[num].IsEnd() {
				return nil, fmt.Errorf("is no end port of %s", sm)
			}
			return &sm.Ports[num], nil
		}),
	})
}

func (p *parser) findNode(name string) (*Node, error) {
	if n, ok := p.names[name]; ok {
		return n, nil
	}
	known := make([]string, 0, len(p.names))
	for k := range p.names {
		known = append(known, k)
	}
	return nil, fmt.Errorf("names no node%s", suggest(name, known))
}

var nodeKinds = map[string]mad.NodeType{"ca": mad.NodeTypeCA, "switch": mad.NodeTypeSwitch, "router": mad.NodeTypeRouter}

func (p *parser) node(at *yaml.Node) error {
	var (
		n     = Node{place: p.place(at)}
		count uint8
		pkeys []mad.PKey
		ports *yaml.Node
		one   = Port{place: n.place} // what stands at the node for its only end port
		desc  *string
		said  = map[string]*yaml.Node{} // where that stands
	)
	note := func(key string, set func(*yaml.Node) error) func(*yaml.Node) error {
		return func(v *yaml.Node) error {
			said[key] = v
			return set(v)
		}
	}
	err := p.mapping(at, "node", fields{
		"name":        text(p, &n.Name, asIs),
		"desc":        text(p, &desc, func(v string) (*string, error) { return &v, nil }),
		"kind":        choice(p, &n.Type, nodeKinds),
		"guid":        number(p, &n.GUID, 1, math.MaxUint64),
		"system-guid": number(p, &n.SystemImageGUID, 1, math.MaxUint64),
		"vendor":      number(p, &n.VendorID, 0, maxVendorID),
		"device":      number(p, &n.DeviceID, 0, math.MaxUint16),
		"port0":       note("port0", choice(p, &n.BasePort0, map[string]bool{"enhanced": false, "base": true})),
		"ports":       number(p, &count, 1, maxPorts),
		"pkeys":       note("pkeys", list(p, &pkeys, p.pkey)),
		"ip":          note("ip", text(p, &one.IP, parseIP)),
		"lid":         note("lid", number(p, &one.LID, 1, maxLID)),
		"port":        func(v *yaml.Node) error { ports = v; return nil },
	})
	if err != nil {
		return err
	}
	if why := badName(n.Name); why != "" {
		return p.errorf(at, "node has name %q, which %s", short(n.Name), why)
	}
	if n.Type == 0 {
		return p.errorf(at, "node %s has no kind", n.Name)
	}
	if other, ok := p.names[n.Name]; ok {
		return p.errorf(at, "node %s has the name of the node at %s", n.Name, other.place)
	}
	if count == 0 {
		count = 1
		if n.IsSwitch() {
			count = defaultSwitchPorts
		}
	}
	if v := said["port0"]; v != nil && !n.IsSwitch() {
		return p.errorf(v, "node %s is no switch: it has no port 0", n.Name)
	}
	made := p.sub.addNode(n.Name, n.Type, int(count))
	n.Desc, n.Ports = made.Desc, made.Ports
	if desc != nil {
		n.Desc = *desc
	}
	*made = n
	p.names[n.Name] = made
	ends := made.EndPorts()
	for i := range ends {
		ends[i].place = n.place
		ends[i].PKeys = slices.Clone(pkeys)
		if !n.IsSwitch() {
			ends[i].LMC = p.lmc
		}
	}
	for _, key := range []string{"ip", "lid"} {
		if v := said[key]; v != nil && len(ends) > 1 {
			return p.errorf(v, "node %s has %d end ports: say its %s under port", n.Name, len(ends), key)
		}
	}
	ends[0].IP, ends[0].LID = one.IP, one.LID
	if ports == nil {
		return nil
	}
	seen := map[uint64]place{} // by number: 1 and 0x1 are one
	return p.entries(ports, "port", func(key, value *yaml.Node) error {
		num, err := parseNumber(key.Value)
		if err != nil || num > uint64(count) || !made.Ports[num].IsEnd() {
			return p.errorf(key, "node %s has no end port %q", n.Name, short(key.Value))
		}
		if other, ok := seen[num]; ok {
			return p.errorf(key, "port %s stands at %s already", &made.Ports[num], other)
		}
		seen[num] = p.place(key)
		return p.endPort(value, &made.Ports[num], said)
	})
}

// endPort reads an end port. What was said at the node it must not say again.
func (p *parser) endPort(n *yaml.Node, port *Port, said map[string]*yaml.Node) error {
	port.place = p.place(n)
	once := func(key string, set func(*yaml.Node) error) func(*yaml.Node) error {
		return func(v *yaml.Node) error {
			if other := said[key]; other != nil {
				return p.errorf(v, "port %s: its %s stands at the node already, at %s", port, key, p.place(other))
			}
			return set(v)
		}
	}
	return p.mapping(n, "port", fields{
		"guid":  number(p, &port.GUID, 1, math.MaxUint64),
		"lid":   once("lid", number(p, &port.LID, 1, maxLID)),
		"lmc":   number(p, &port.LMC, 0, maxLMC),
		"ip":    once("ip", text(p, &port.IP, parseIP)),
		"pkeys": once("pkeys", list(p, &port.PKeys, p.pkey)),
	})
}

func (l *linkSpec) fields(p *parser) fields {
	return fields{
		"ends":  func(n *yaml.Node) error { l.ends = n; return nil },
		"width": choice(p, &l.width, linkWidths),
		"speed": choice(p, &l.speed, linkSpeeds),
		"mtu":   choice(p, &l.mtu, linkMTUs),
	}
}

// oneLink reads "a[1] - b[2]", alone or as ends of a mapping.
func (p *parser) oneLink(n *yaml.Node) error {
	spec := p.link
	spec.ends = n
	if n.Kind == yaml.MappingNode {
		spec.ends = nil
		if err := p.mapping(n, "link", spec.fields(p)); err != nil {
			return err
		}
		if spec.ends == nil {
			return p.errorf(n, "link has no ends")
		}
	}
	var ends string
	if err := text(p, &ends, asIs)(spec.ends); err != nil {
		return err
	}
	left, right, ok := strings.Cut(ends, "] - ")
	if !ok {
		return p.errorf(spec.ends, "link %q is not of the form a[1] - b[2]", short(ends))
	}
	a, err := p.linkEnd(spec.ends, left+"]")
	if err != nil {
		return err
	}
	b, err := p.linkEnd(spec.ends, right)
	if err != nil {
		return err
	}
	if a == b {
		return p.errorf(spec.ends, "link %q goes from a port to itself", short(ends))
	}
	connect(a, b, spec.width, spec.speed, spec.mtu)
	a.link = p.place(spec.ends)
	b.link = a.link
	return nil
}

func (p *parser) linkEnd(at *yaml.Node, s string) (*Port, error) {
	name, num, ok := cutPort(strings.TrimSpace(s))
	if !ok {
		return nil, p.errorf(at, "link end %q is not of the form a[1]", short(s))
	}
	n, err := p.findNode(name)
	if err != nil {
		return nil, p.errorf(at, "link end %q %v", short(s), err)
	}
	if num == 0 || int(num) >= len(n.Ports) {
		return nil, p.errorf(at, "link end %q: node %s has ports 1 to %d", short(s), name, n.NumPorts())
	}
	port := &n.Ports[num]
	if port.Peer != nil {
		return nil, p.errorf(at, "port %s has a link already, at %s", port, port.link)
	}
	return port, nil
}

func (p *parser) pkey(n *yaml.Node) (key mad.PKey, err error) {
	if err := number(p, &key, 1, math.MaxUint16)(n); err != nil {
		return 0, err
	}
	if key.Base() == 0 {
		return 0, p.errorf(n, "P_Key %s is invalid: its low 15 bits are 0", key)
	}
	return key, nil
}

func asIs(v string) (string, error) { return v, nil }

func parseIP(v string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(v)
	if err != nil {
		return ip, errors.New("is no IP address")
	}
	return ip, checkIP(ip)
}

// checkIP says why an address cannot be a port's.
func checkIP(ip netip.Addr) error {
	switch {
	case ip.Zone() != "":
		return errors.New("has a zone, which no address of a fabric file needs")
	case ip.Is4In6():
		return fmt.Errorf("is an IPv4 address: write %s", ip.Unmap())
	case ip.IsLoopback():
		return errors.New("is a loopback address, not one of a port")
	case ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return errors.New("is a multicast or broadcast address, not one of a port")
	case ip.IsUnspecified() || ip.Is4() && ip.As4()[0] == 0:
		return errors.New("stands for no address, not one of a port")
	}
	return nil
}
