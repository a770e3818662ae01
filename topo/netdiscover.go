package topo

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/ibsm/ibsm/mad"
)

// Warning is something in a fabric file that was passed over, or put right.
type Warning struct {
	File string
	Line int // 1-based
	Msg  string
}

func (w Warning) String() string { return place{w.File, w.Line, 0}.String() + ": " + w.Msg }

// plainText gives a file as UTF-8 without a byte order mark. Files that went
// through a Windows shell may be UTF-16.
func plainText(data []byte) []byte {
	var order binary.ByteOrder
	switch {
	case len(data) >= 3 && string(data[:3]) == "\xef\xbb\xbf":
		return data[3:]
	case len(data) >= 2 && string(data[:2]) == "\xff\xfe":
		order = binary.LittleEndian
	case len(data) >= 2 && string(data[:2]) == "\xfe\xff":
		order = binary.BigEndian
	default:
		return data
	}
	units := make([]uint16, 0, len(data)/2)
	for data = data[2:]; len(data) >= 2; data = data[2:] {
		units = append(units, order.Uint16(data))
	}
	return []byte(string(utf16.Decode(units)))
}

var (
	// netSign is a line that only ibnetdiscover files have.
	netSign = regexp.MustCompile(`(?m)^[ \t]*(?:(?:Switch|Ca|Hca|Rt)[ \t]+[0-9]+[ \t]+"|(?:vendid|devid|sysimgguid|switchguid|caguid|hcaguids|rtguid)=|# Topology file: generated)`)
	// netOther is a line of ibnetdiscover's other reports: -p and -l.
	netOther = regexp.MustCompile(`(?m)^(?:(?:CA|SW|RT)[ \t]+[0-9]+[ \t]+[0-9]+[ \t]+0x|(?:Ca|Switch|Router)[ \t]+: 0x)`)
	// stderrText is a message of libibnetdisc, libibmad or libibumad.
	stderrText = regexp.MustCompile(`(?:src/|\.\./|/)[\w./+-]*\.c:\d+; |ibwarn: \[\d+\] `)
)

// netNode is a node as an ibnetdiscover file describes it.
type netNode struct {
	netIDs
	id       string // in quotes: "S-" and GUID in ibnetdiscover's own files
	kind     mad.NodeType
	desc     string
	line     int
	lid      mad.LID // of a switch
	lmc      uint8
	base     bool      // port 0 is a base one
	ends     []*netEnd // by port, nil where the file has no line
	node     *Node
	unlisted bool // only named as a far end
}

// netIDs are the lines before a node's heading.
type netIDs struct {
	vendor   uint32
	device   uint16
	system   mad.GUID
	guid     mad.GUID
	portGUID mad.GUID // of a switch
}

// netEnd is a line for a port with a link. What the line does not tell is 0.
type netEnd struct {
	line  int
	num   uint8
	guid  mad.GUID // of the port, unless it is a switch's; so are:
	lid   mad.LID
	lmc   uint8
	far   netFar
	width mad.LinkWidth
	speed mad.Speed
}

// netFar is what a port line says of the far end.
type netFar struct {
	id   string
	num  uint8
	guid mad.GUID
	desc string
	lid  mad.LID
}

// netReader reads the lines of an ibnetdiscover file.
type netReader struct {
	file     string
	line     int
	warnings []Warning

	nodes []*netNode
	byID  map[string]*netNode
	ids   netIDs         // of the node that follows
	said  map[string]int // lines of ids
	node  *netNode       // whose port lines follow
	from  mad.GUID       // port that ibnetdiscover was run at
}

func (r *netReader) refuse(line int, format string, args ...any) error {
	return &FileError{File: r.file, Line: line, Msg: fmt.Sprintf(format, args...)}
}

func (r *netReader) warn(line int, format string, args ...any) {
	r.warnings = append(r.warnings, Warning{r.file, line, fmt.Sprintf(format, args...)})
}

// read goes through all lines. stderr has no buffer and stdout has one, so where
// both went into one file a message may have cut a line in two.
func (r *netReader) read(text string) error {
	cut := ""
	for line := range strings.Lines(text) {
		r.line++
		line = cut + strings.TrimRight(line, "\r\n")
		cut = ""
		if strings.Contains(line, ".c:") || strings.Contains(line, "ibwarn:") {
			if at := stderrText.FindStringIndex(line); at != nil && beginsLine(line[:at[0]]) {
				r.warn(r.line, "passed over %q, which cuts a line in two", short(line[at[0]:]))
				cut = line[:at[0]]
				continue
			}
		}
		if err := r.readLine(strings.TrimSpace(line)); err != nil {
			return err
		}
	}
	return r.readLine(strings.TrimSpace(cut))
}

// beginsLine tells whether a text may be the first part of a line of
// ibnetdiscover's.
func beginsLine(s string) bool {
	s = strings.TrimLeft(s, " \t")
	switch {
	case s == "":
		return false
	case s[0] == '[': // not that of a prompt
		return len(s) == 1 || isDigit(s[1], 10)
	}
	for _, start := range []string{
		"#", "Switch", "Ca", "Hca", "Rt", "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "hcaguids=", "rtguid=",
	} {
		if strings.HasPrefix(s, start) || strings.HasPrefix(start, s) {
			return true
		}
	}
	return false
}

var netKeywords = map[string]mad.NodeType{
	"Switch": mad.NodeTypeSwitch, "Ca": mad.NodeTypeCA, "Hca": mad.NodeTypeCA, "Rt": mad.NodeTypeRouter,
}

func (r *netReader) readLine(line string) error {
	c := &cursor{rest: line}
	key, _, isID := strings.Cut(line, "=")
	keyword, heading, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	kind, isKeyword := netKeywords[keyword]
	heading = strings.TrimLeft(heading, " ")
	switch {
	case line == "":
	case line[0] == '#':
		if rest, ok := strings.CutPrefix(line, "# Initiated from node "); ok {
			_, port, _ := strings.Cut(rest, " port ")
			from, _ := strconv.ParseUint(port, 16, 64) // only a hint where the SM may be
			r.from = mad.GUID(from)
		}
	case isKeyword && heading != "" && (isDigit(heading[0], 10) || heading[0] == '"'):
		c.rest = line[len(keyword):]
		return r.heading(kind, c)
	case line[0] == '[' && len(line) > 1 && isDigit(line[1], 10):
		return r.port(c)
	case strings.HasPrefix(line, "module=") || strings.HasPrefix(line, "include ") || strings.HasPrefix(line, "@["):
		return r.refuse(r.line, "%q is for ibsim and not supported: one file describes the whole fabric, without prefixes and aliases", short(line))
	case isID && r.idLine(key, c):
		return r.finish(c)
	case strings.HasPrefix(line, "Chassis ") || strings.HasPrefix(line, "Hostname: ") || line == "Non-Chassis Nodes":
		// ibnetdiscover -g
	default:
		r.warn(r.line, "passed over %q, which does not belong to the topology", short(line))
	}
	return nil
}

// idLine reads "vendid=0x2c9" and the like. It tells whether it is one.
func (r *netReader) idLine(key string, c *cursor) bool {
	c.rest = c.rest[len(key)+1:]
	ids := &r.ids
	switch key {
	case "vendid":
		ids.vendor = uint32(c.value("vendor id", 24))
	case "devid":
		ids.device = uint16(c.value("device id", 16))
	case "sysimgguid":
		ids.system = mad.GUID(c.value("system image GUID", 64))
		c.zero = ids.system == 0
	case "switchguid", "caguid", "hcaguids", "rtguid":
		if ids.guid = mad.GUID(c.value("GUID", 64)); ids.guid == 0 {
			c.fail("the GUID is 0")
		}
		ids.portGUID = c.guid()
	default:
		return false
	}
	if other, ok := r.said[key]; ok {
		r.warn(r.line, "%s stands in line %d already: this one counts", key, other)
	}
	r.said[key] = r.line
	r.node = nil // the next port line must have a heading of its own
	return true
}

// finish ends a line: what is left of it is a comment, or passed over.
func (r *netReader) finish(c *cursor) error {
	if c.err != "" {
		return r.refuse(r.line, "%s", c.err)
	}
	if c.zero {
		r.warn(r.line, "a GUID of 0 counts as none")
	}
	if c.space(); c.rest != "" && c.rest[0] != '#' {
		r.warn(r.line, "passed over %q at the end of the line", short(c.rest))
	}
	return nil
}

// heading reads
//
//	Switch 36 "S-0002c90000000010"  # "description" enhanced port 0 lid 9 lmc 0
//	Ca     1 "H-0002c90000000020"  # "description"
func (r *netReader) heading(kind mad.NodeType, c *cursor) error {
	n := &netNode{netIDs: r.ids, kind: kind, line: r.line}
	r.ids = netIDs{}
	clear(r.said)
	ports := c.number("the number of ports", 10, 16)
	if c.err == "" && (ports < 1 || ports > maxPorts) {
		c.fail(fmt.Sprintf("a node has 1 to %d ports, not %d", maxPorts, ports))
	}
	n.id = c.quoted("the node's name in quotes")
	if c.err != "" {
		return r.refuse(r.line, "%s", c.err)
	}
	if other, ok := r.byID[n.id]; ok {
		return r.refuse(r.line, "node %q is described for the second time, first in line %d", n.id, other.line)
	}
	if guid, ok := guidOf(n.id); ok {
		switch n.guid {
		case guid:
		case 0:
			n.guid = guid
		default:
			return r.refuse(r.line, "node %q has GUID %s in the lines before", n.id, n.guid)
		}
		if guid == 0 {
			return r.refuse(r.line, "node %q: the GUID is 0", n.id)
		}
	}
	n.desc = n.id
	n.ends = make([]*netEnd, ports+1)
	r.nodes = append(r.nodes, n)
	r.byID[n.id] = n
	r.node = n
	if !c.lit("#") {
		return r.finish(c)
	}
	if desc, ok := c.description(); ok {
		n.desc = desc
	}
	if kind == mad.NodeTypeSwitch {
		n.base = c.lit("base port 0")
		if !n.base {
			c.lit("enhanced port 0")
		}
		if c.lit("lid ") {
			n.lid = c.lid()
		}
		if c.lit("lmc ") {
			n.lmc = c.lmc()
		}
	}
	c.lit("(scp)") // Xsigo's
	return r.finish(c)
}

// port reads
//
//	[1](2c90000000021)  "S-0002c90000000010"[4]  # lid 3 lmc 0 "description" lid 9 4xQDR
//	[4]  "H-0002c90000000020"[1](2c90000000021)  # "description" lid 3 4xQDR
//
// the latter under a switch.
func (r *netReader) port(c *cursor) error {
	if r.node == nil {
		return r.refuse(r.line, "a port without a node: the line that starts with Switch, Ca or Rt is missing")
	}
	e := &netEnd{line: r.line, far: netFar{num: 1}}
	e.num = c.bracket()
	c.external()
	e.guid = c.guid()
	e.far.id = c.quoted("the far end in quotes")
	if c.lit("[") {
		c.rest = "[" + c.rest
		e.far.num = c.bracket()
		c.external()
	}
	e.far.guid = c.guid()
	if c.lit("#") {
		r.portComment(e, c)
	}
	if err := r.finish(c); err != nil {
		return err
	}
	n := r.node
	if e.num == 0 || int(e.num) >= len(n.ends) {
		return r.refuse(e.line, "node %q has ports 1 to %d, not %d", n.id, len(n.ends)-1, e.num)
	}
	if e.far.num == 0 || e.far.num > maxPorts {
		return r.refuse(e.line, "port %d of %q is none that can have a link", e.far.num, e.far.id)
	}
	if other := n.ends[e.num]; other != nil {
		return r.refuse(e.line, "port %d of node %q is described for the second time, first in line %d", e.num, n.id, other.line)
	}
	n.ends[e.num] = e
	return nil
}

func (r *netReader) portComment(e *netEnd, c *cursor) {
	if r.node.kind != mad.NodeTypeSwitch {
		if c.lit("lid ") {
			e.lid = c.lid()
		}
		if c.lit("lmc ") {
			e.lmc = c.lmc()
		}
	}
	e.far.desc, _ = c.description()
	if c.lit("lid ") {
		e.far.lid = c.lid()
	}
	c.space()
	word, _, _ := strings.Cut(c.rest, " ")
	if width, speed, ok := widthAndSpeed(word); ok {
		c.rest = c.rest[len(word):]
		e.width, e.speed = linkWidths[width], linkSpeeds[speed]
		if e.width == 0 || e.speed == 0 {
			r.warn(r.line, "%q has a width or speed that is not known", short(word))
		}
	}
	for _, known := range []string{"s=", "w=", "v=", "slot "} { // ibnetdiscover -f, and Xsigo's
		if c.lit(known) {
			c.number("a number", 10, 16)
		}
	}
	c.lit("(scp)")
}

// widthAndSpeed takes a word like 4xQDR apart. ibnetdiscover writes ?? and ???
// for those that it does not know.
func widthAndSpeed(word string) (width, speed string, ok bool) {
	if speed, ok = strings.CutPrefix(word, "??"); ok {
		return "??", speed, true
	}
	width, speed, ok = strings.Cut(word, "x")
	return width + "x", speed, ok && width != "" && speed != "" && isDigit(width[0], 10)
}

// guidOf gives the GUID in a name of ibnetdiscover's, such as
// S-0002c90000000010.
func guidOf(id string) (mad.GUID, bool) {
	if len(id) != 18 || !strings.ContainsRune("SHR", rune(id[0])) || id[1] != '-' {
		return 0, false
	}
	guid, err := strconv.ParseUint(id[2:], 16, 64)
	return mad.GUID(guid), err == nil
}
