package mad

import (
	"bytes"
	"strings"
)

// OffSMPPaths is where [SMPDirectedPaths] starts in a directed-route SMP
// (IBA 14.2.1.2); the initial path comes first.
const OffSMPPaths = 128

// MakeNodeDescription makes a description of s, cut at 64 bytes without
// breaking a character.
func MakeNodeDescription(s string) (d NodeDescription) {
	if len(s) > len(d.NodeString) {
		s = strings.ToValidUTF8(s[:len(d.NodeString)], "")
	}
	copy(d.NodeString[:], s)
	return d
}

// String is the description up to the first NUL.
func (p *NodeDescription) String() string {
	text, _, _ := bytes.Cut(p.NodeString[:], []byte{0})
	return string(text)
}
