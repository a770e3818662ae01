package topo

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"github.com/ibsm/ibsm/mad"
)

// WriteYAML writes the subnet as a fabric file. Parse gives the same subnet
// back, LIDs included, but for states and forwarding tables, which BringUp makes.
// The subnet must be valid.
func (s *Subnet) WriteYAML(w io.Writer) error {
	b := bufio.NewWriter(w) // keeps the first error for Flush
	fmt.Fprintf(b, "subnet: {prefix: %#016x, sm: %q, sm-sl: %d, timeout: %d, ipoib: %s}\n",
		s.GIDPrefix, s.SM, s.SMSL, s.SubnetTimeOut, s.ipoib)
	fmt.Fprint(b, "nodes:\n")
	for _, n := range s.Nodes {
		n.writeYAML(b)
	}
	written := map[*Port]bool{}
	for _, n := range s.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			if p.Peer == nil || written[p.Peer] {
				continue
			}
			if len(written) == 0 {
				fmt.Fprint(b, "links:\n")
			}
			written[p] = true
			fmt.Fprintf(b, "  - {ends: %q, width: %s, speed: %s, mtu: %s}\n", p.String()+" - "+p.Peer.String(),
				word(linkWidths, p.Width), word(linkSpeeds, p.Speed), word(linkMTUs, p.MTU))
		}
	}
	return b.Flush()
}

func (n *Node) writeYAML(b *bufio.Writer) {
	fmt.Fprintf(b, "  - {name: %q, kind: %s, ports: %d, guid: %s", n.Name, word(nodeKinds, n.Type), n.NumPorts(), n.GUID)
	if n.SystemImageGUID != n.GUID {
		fmt.Fprintf(b, ", system-guid: %s", n.SystemImageGUID)
	}
	if n.Desc != n.Name {
		fmt.Fprintf(b, ", desc: %q", n.Desc)
	}
	if n.BasePort0 {
		fmt.Fprint(b, ", port0: base")
	}
	if n.VendorID != 0 || n.DeviceID != 0 {
		fmt.Fprintf(b, ", vendor: %#08x, device: %#06x", n.VendorID, n.DeviceID)
	}
	fmt.Fprint(b, ", port: {")
	ends := n.EndPorts()
	for i := range ends {
		if i > 0 {
			fmt.Fprint(b, ", ")
		}
		ends[i].writeYAML(b)
	}
	fmt.Fprint(b, "}}\n")
}

func (p *Port) writeYAML(b *bufio.Writer) {
	fmt.Fprintf(b, "%d: {ip: %q", p.Num, p.IP)
	if p.GUID != p.Node.GUID+mad.GUID(p.Num) {
		fmt.Fprintf(b, ", guid: %s", p.GUID)
	}
	if p.LID != 0 {
		fmt.Fprintf(b, ", lid: %s", p.LID)
	}
	if p.LMC != 0 {
		fmt.Fprintf(b, ", lmc: %d", p.LMC)
	}
	if !slices.Equal(p.PKeys, []mad.PKey{mad.DefaultPKey}) {
		fmt.Fprint(b, ", pkeys: [")
		for i, key := range p.PKeys {
			if i > 0 {
				fmt.Fprint(b, ", ")
			}
			fmt.Fprint(b, key)
		}
		fmt.Fprint(b, "]")
	}
	fmt.Fprint(b, "}")
}
