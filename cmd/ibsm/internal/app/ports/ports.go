// Package ports is the noun that lists local ports.
package ports

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/port"
)

// Command makes the noun.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "ports",
		Usage: "list the ports that ibsm can stand at, and which one is chosen (ibstat)",
		Description: `The ports are those of the node or device that the endpoint names, or all there
are. Without an endpoint they are those of this machine.

Examples:

   ibsm --on sim:demo ports
   ibsm --on sim:demo#h3 -o json ports`,
		Action: session.Action(0, 0, ports),
	}
}

func ports(ctx context.Context, s *session.Session, _ []string) error {
	choices, err := s.Ports(ctx)
	if err != nil {
		return err
	}
	if err := s.Out.Columns(members(&endpoint.Choice{})); err != nil {
		return err
	}
	for _, c := range choices {
		if err := s.Out.Record("Port", members(&c), plain(&c)); err != nil {
			return err
		}
	}
	return nil
}

func members(c *endpoint.Choice) text.Object {
	i := &c.Info
	return text.Object{
		{Name: "device", Value: i.Device},
		{Name: "port", Value: i.Port},
		{Name: "endpoint", Value: c.Endpoint},
		{Name: "chosen", Value: c.Chosen},
		{Name: "why", Value: c.Why},
		{Name: "NodeType", Value: i.NodeType.String()},
		{Name: "NodeDescription", Value: i.NodeDesc},
		{Name: "NodeGUID", Value: i.NodeGUID.String()},
		{Name: "PortGUID", Value: i.PortGUID.String()},
		{Name: "PortState", Value: i.State.String()},
		{Name: "PortPhysicalState", Value: i.PhysState.String()},
		{Name: "LinkWidthActive", Value: i.Width.String()},
		{Name: "Rate", Value: i.Rate.String()},
		{Name: "LID", Value: uint16(i.LID)},
		{Name: "LMC", Value: i.LMC},
		{Name: "MasterSMLID", Value: uint16(i.SMLID)},
		{Name: "MasterSMSL", Value: i.SMSL},
		{Name: "CapabilityMask", Value: i.CapMask.String()},
		{Name: "LinkLayer", Value: i.LinkLayer.String()},
		{Name: "GIDs", Value: list(i.GIDs, mad.GID.String)},
		{Name: "P_Keys", Value: list(i.PKeys, func(k mad.PKey) uint16 { return uint16(k) })},
		{Name: "GIDTypes", Value: gidTypes(c)},
		{Name: "notes", Value: list(c.Notes, func(s string) string { return s })},
	}
}

// gidTypes gives the types of the GIDs that members gives, or none.
func gidTypes(c *endpoint.Choice) []any {
	out := []any{}
	for i, t := range c.GIDTypes {
		if !c.Info.GIDs[i].IsZero() {
			out = append(out, t)
		}
	}
	return out
}

// list gives the values of a table without its empty entries.
func list[T comparable, V any](table []T, value func(T) V) []any {
	var empty T
	out := []any{}
	for _, x := range table {
		if x != empty {
			out = append(out, value(x))
		}
	}
	return out
}

// plain is the form of ibstat, with what it leaves out.
func plain(c *endpoint.Choice) []byte {
	i := &c.Info
	var b strings.Builder
	fmt.Fprintf(&b, "%v '%s'\n", nodeKind(i.NodeType), i.Device)
	fmt.Fprintf(&b, "\tNode GUID: %v\n\tNode description: %s\n", i.NodeGUID, text.Printable(i.NodeDesc))
	fmt.Fprintf(&b, "\tPort %d:\n", i.Port)
	fmt.Fprintf(&b, "\t\tState: %v\n\t\tPhysical state: %v\n", i.State, i.PhysState)
	if i.Rate != 0 {
		fmt.Fprintf(&b, "\t\tRate: %s\n", strings.TrimSuffix(i.Rate.String(), " Gb/s"))
	}
	fmt.Fprintf(&b, "\t\tBase lid: %v\n\t\tLMC: %d\n\t\tSM lid: %v\n", i.LID, i.LMC, i.SMLID)
	fmt.Fprintf(&b, "\t\tCapability mask: 0x%08x\n\t\tPort GUID: %v\n\t\tLink layer: %v\n", uint32(i.CapMask), i.PortGUID, i.LinkLayer)
	for n, gid := range i.GIDs {
		switch {
		case gid.IsZero():
		case i.LinkLayer == port.LinkEthernet && n < len(c.GIDTypes) && c.GIDTypes[n] != "":
			fmt.Fprintf(&b, "\t\tGID: %v (%s)\n", gid, c.GIDTypes[n])
		default:
			fmt.Fprintf(&b, "\t\tGID: %v\n", gid)
		}
	}
	for _, key := range list(i.PKeys, mad.PKey.String) {
		fmt.Fprintf(&b, "\t\tP_Key: %v\n", key)
	}
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "\t\tNot read: %s\n", text.Printable(note))
	}
	chosen := "no"
	if c.Chosen {
		chosen = "yes"
	}
	fmt.Fprintf(&b, "\t\tChosen: %s, %s\n", chosen, c.Why)
	return []byte(b.String())
}

// nodeKind is what ibstat calls a kind of node.
func nodeKind(t mad.NodeType) string {
	if t == mad.NodeTypeCA {
		return "CA"
	}
	return t.String()
}
