package endpoint

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/topo"
)

// Faults makes the simulated fabric of a device misbehave, until it is told
// otherwise. A link is named by the port at one of its ends, as in a fabric file:
// "s1[2]", or "h1" for the first end port of a node; "all" are all links. What a
// link does, it does in both directions. Shares are 0 to 1.
type Faults struct{ simulation *simulation }

// FaultsOf gives the Faults of a device that Open gave; only a simulated fabric has
// them.
func FaultsOf(dev port.Device) (*Faults, bool) {
	d, ok := dev.(*simDevice)
	if !ok {
		return nil, false
	}
	return &Faults{d.simulation}, true
}

// AllLinks stands for all links.
const AllLinks = "all"

// Link cuts a link, or with up mends it; its ends are then in the state they had
// before, as if a subnet manager had swept at once.
func (f *Faults) Link(at string, up bool) error {
	do := f.simulation.fabric.Cut
	if up {
		do = f.simulation.fabric.Restore
	}
	if at != AllLinks {
		p, err := f.port(at)
		if err != nil {
			return err
		}
		return do(p)
	}
	var errs []error
	for _, n := range f.simulation.sub.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Peer != nil {
				errs = append(errs, do(p))
			}
		}
	}
	return errors.Join(errs...)
}

// Loss has a link lose a share of MADs.
func (f *Faults) Loss(at string, share float64) error {
	return f.change(at, func(l *sim.Faults) { l.Loss = share })
}

// Duplicate has a link deliver a share of MADs twice.
func (f *Faults) Duplicate(at string, share float64) error {
	return f.change(at, func(l *sim.Faults) { l.Duplicate = share })
}

// Reorder has a share of MADs overtaken on a link by those that come up to a
// millisecond later.
func (f *Faults) Reorder(at string, share float64) error {
	return f.change(at, func(l *sim.Faults) { l.Reorder = share })
}

// Delay has MADs take time on a link.
func (f *Faults) Delay(at string, by time.Duration) error {
	return f.change(at, func(l *sim.Faults) { l.Delay = by })
}

func (f *Faults) change(at string, change func(*sim.Faults)) error {
	var p *topo.Port
	if at != AllLinks {
		var err error
		if p, err = f.port(at); err != nil {
			return err
		}
	}
	return f.simulation.fabric.ChangeFaults(p, change)
}

func (f *Faults) port(at string) (*topo.Port, error) {
	if p, ok := f.simulation.sub.PortByName(at); ok {
		return p, nil
	}
	return nil, fmt.Errorf("the fabric has no port %q: write NODE[PORT], by the names of the fabric file", at)
}

// Reboot has a node start anew: its links drop and come up in Init, and what a
// subnet manager has set in it is lost, LID and forwarding table too. Nobody sets it
// again until Sweep, or SubnSet.
func (f *Faults) Reboot(node string) error {
	n, ok := findNode(f.simulation.sub, node)
	if !ok {
		return fmt.Errorf("the fabric has no node %q", node)
	}
	return f.simulation.fabric.Reboot(n)
}

// Sweep sets up all nodes as the bring-up had: what a subnet manager does after a
// reboot. Links that are cut or disabled stay down.
func (f *Faults) Sweep() error {
	f.simulation.fabric.Sweep()
	return nil
}

// SMA switches a named fault of all subnet management agents, one of
// [sim.Deviations].
func (f *Faults) SMA(fault string, on bool) error {
	if !isOfFabric(fault, false) {
		return fmt.Errorf("there is no fault %q of subnet management agents", fault)
	}
	return f.simulation.fabric.Deviate(fault, on)
}

// SA switches a named fault of the SA, one of [server.Deviations], or of its RMPP,
// one of [sim.Deviations] that are of the SA.
func (f *Faults) SA(fault string, on bool) error {
	switch {
	case slices.ContainsFunc(server.Deviations(), func(d server.Deviation) bool { return d.Name == fault }):
		return f.simulation.server.Deviate(fault, on)
	case isOfFabric(fault, true):
		return f.simulation.fabric.Deviate(fault, on)
	}
	return fmt.Errorf("there is no fault %q of the SA", fault)
}

func isOfFabric(fault string, ofSA bool) bool {
	return slices.ContainsFunc(sim.Deviations(), func(d sim.Deviation) bool { return d.OfSA == ofSA && d.Name == fault })
}

// NamedFault is what SMA and SA of [Faults] switch: a small departure from a rule of
// the IBA.
type NamedFault struct {
	OfSA   bool // else of the subnet management agents
	Name   string
	Breaks string // what happens instead of what the rule says
	IBA    string // section of the rule
}

// NamedFaults lists those there are.
func NamedFaults() (all []NamedFault) {
	for _, d := range sim.Deviations() {
		all = append(all, NamedFault{d.OfSA, d.Name, d.Breaks, d.IBA})
	}
	for _, d := range server.Deviations() {
		all = append(all, NamedFault{true, d.Name, d.Breaks, d.IBA})
	}
	return all
}
