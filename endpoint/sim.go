package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/topo"
)

// simulation is a simulated fabric with an SA on its SM's port, which shows as
// one that has an SM.
type simulation struct {
	sub    *topo.Subnet
	fabric *sim.Fabric
	server *server.Server
	isSM   io.Closer
}

func simulate(ctx context.Context, sub *topo.Subnet) (_ *simulation, err error) {
	s := &simulation{sub: sub}
	if s.fabric, err = sim.New(sub, sim.Config{}); err != nil {
		return nil, err
	}
	if err := s.startSA(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *simulation) startSA(ctx context.Context) error {
	dev, err := s.fabric.Device(s.sub.SM.Node, s.sub.SM.Num)
	if err != nil {
		return err
	}
	if s.server, err = server.New(dev, s.sub, server.Config{}); err != nil {
		return err
	}
	s.isSM, err = dev.HoldIsSM(ctx)
	return err
}

// Close ends the fabric and with it all devices, then the SA: the other way
// round, those who are still asking would hear from the SM's port that nobody
// serves the SA's class.
func (s *simulation) Close() error {
	errs := []error{s.fabric.Close()}
	if s.isSM != nil {
		s.isSM.Close() // the port is gone, and its bit with it
	}
	if s.server != nil {
		errs = append(errs, s.server.Close())
	}
	return errors.Join(errs...)
}

// simDevice is a port of a simulation that lives as long as the device.
type simDevice struct {
	port.Device
	simulation *simulation
	at         *topo.Port
}

func (d *simDevice) Close() error { return d.simulation.Close() }

// Warnings tell what was passed over or put right in the fabric's file.
func (d *simDevice) Warnings() []topo.Warning { return d.simulation.sub.Warnings }

func openSim(ctx context.Context, rest string) (port.Device, error) {
	sub, at, err := loadSim(rest)
	if err != nil {
		return nil, err
	}
	s, err := simulate(ctx, sub)
	if err != nil {
		return nil, err
	}
	// One device per port: on the SM's, the user's agents sit beside the SA's.
	dev, err := s.fabric.Device(at.Node, at.Num)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &simDevice{dev, s, at}, nil
}

// loadSim reads FABRIC[#NODE[/PORT]].
func loadSim(rest string) (*topo.Subnet, *topo.Port, error) {
	name, at, named := strings.Cut(rest, "#")
	name, at = strings.TrimSpace(name), strings.TrimSpace(at)
	sub, err := loadFabric(name)
	if err != nil {
		return nil, nil, err
	}
	if !named {
		p := firstHost(sub)
		if p == nil {
			return nil, nil, fmt.Errorf("the fabric has no port to sit on")
		}
		return sub, p, nil
	}
	p, err := findPort(sub, name, at)
	return sub, p, err
}

// loadFabric takes FABRIC for an embedded fabric, a generator or a file.
func loadFabric(name string) (*topo.Subnet, error) {
	kind, _, _ := strings.Cut(name, ":")
	if slices.Contains(topo.Generators(), kind) {
		return topo.Generate(name)
	}
	sub, err := topo.Load(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "./") {
		err = fmt.Errorf("%q is neither a fabric file nor one of %s", name, strings.Join(topo.Generators(), ", "))
	}
	return sub, err
}

// firstHost gives the first port of a host that has a link, or any other port.
func firstHost(sub *topo.Subnet) *topo.Port {
	for p := range sub.EndPorts() {
		if p.Node.Type == mad.NodeTypeCA && p.Peer != nil {
			return p
		}
	}
	return sub.SM
}

// findPort finds NODE[/PORT]. fabric is its name, for messages.
func findPort(sub *topo.Subnet, fabric, at string) (*topo.Port, error) {
	if n, ok := findNode(sub, at); ok { // a name may contain a slash
		return &n.EndPorts()[0], nil
	}
	name, num, hasPort := cutLast(at, "/")
	n, ok := findNode(sub, name)
	if !ok || !hasPort {
		return nil, fmt.Errorf("the fabric has no node %q: 'ibsm --on sim:%s ports' lists those it has", name, fabric)
	}
	want, err := strconv.ParseUint(num, 10, 8)
	if err != nil {
		return nil, fmt.Errorf("%q is no port number", num)
	}
	ports := n.EndPorts()
	for i := range ports {
		if ports[i].Num == uint8(want) {
			return &ports[i], nil
		}
	}
	return nil, fmt.Errorf("node %q has no end port %d: it has %d to %d", name, want, ports[0].Num, ports[len(ports)-1].Num)
}

// findNode finds a node by its name in the fabric file, or by its
// NodeDescription if no other node has the same.
func findNode(sub *topo.Subnet, name string) (*topo.Node, bool) {
	if n, ok := sub.NodeByName(name); ok {
		return n, true
	}
	if found := sub.NodesByDesc(name); len(found) == 1 {
		return found[0], true
	}
	return nil, false
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// listSim lists the ports one can sit on: those of NODE, or of all nodes.
func listSim(ctx context.Context, rest string) ([]Choice, error) {
	sub, chosen, err := loadSim(rest)
	if err != nil {
		return nil, err
	}
	s, err := simulate(ctx, sub)
	if err != nil {
		return nil, err
	}
	choices, err := s.list(rest, chosen)
	return choices, errors.Join(err, s.Close())
}

func (s *simulation) list(rest string, chosen *topo.Port) (choices []Choice, err error) {
	name, _, oneNode := strings.Cut(rest, "#")
	name = strings.TrimSpace(name)
	for p := range s.sub.EndPorts() {
		if oneNode && p.Node != chosen.Node {
			continue
		}
		dev, err := s.fabric.Device(p.Node, p.Num)
		if err != nil {
			return nil, err
		}
		info, err := dev.Info()
		if err != nil {
			return nil, err
		}
		c := Choice{Info: info, Endpoint: fmt.Sprintf("sim:%s#%s/%d", name, p.Node.Name, p.Num), Chosen: p == chosen}
		switch {
		case !c.Chosen:
			c.Why = "--on " + c.Endpoint + " takes this one"
		case oneNode:
			c.Why = "the endpoint names it"
		default:
			c.Why = "the first port of a host that has a link"
		}
		choices = append(choices, c)
	}
	return choices, nil
}
