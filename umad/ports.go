package umad

import (
	"fmt"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// LocalPort is a port of this machine, as the kernel shows it.
type LocalPort struct {
	port.Info
	UMAD     string   // name of its device file, such as "umad0"; "" if it has none
	ISSM     string   // name of the file that holds IsSM; "" if it has none, as without QP0
	GIDTypes []string // by index, as GIDs: "IB/RoCE v1", "RoCE v2", or "" if not known
	Side     Side     // if it is half of a port
	Other    string   // the device that is the other half
	Without  string   // why UMAD is ""
	Notes    []string // which attributes could not be read, and why; they are zero
}

// Side says which half of a port a device is, if two devices share one, as
// adapters for XDR do: one has QP0, the other the rest.
type Side uint8

const (
	Whole   Side = iota // no other device has a part of the port
	SMISide             // QP0: subnet management
	GSISide             // QP1, and what data travels by
)

func (s Side) String() string {
	switch s {
	case SMISide:
		return "SMI"
	case GSISide:
		return "GSI"
	}
	return "whole"
}

// Ports lists all ports of this machine, by the names of their devices and
// their numbers. An attribute that cannot be read is zero and has a note.
func Ports(cfg Config) ([]LocalPort, error) {
	sys, err := running(cfg)
	if err != nil {
		return nil, fmt.Errorf("list local ports: %w", err)
	}
	ports, err := sys.ports()
	if err != nil {
		return nil, fmt.Errorf("list local ports: %w", err)
	}
	return ports, nil
}

func (sys system) ports() ([]LocalPort, error) {
	names, err := sys.portNames()
	var ports []LocalPort
	for _, n := range names {
		p := sys.readPort(n.Device, n.Port)
		if p.UMAD == "" {
			p.Without = sys.withoutUMAD()
		}
		ports = append(ports, p)
	}
	pairSides(ports)
	return ports, err
}

// pairSides finds the halves of ports: two InfiniBand devices with one port
// GUID, of which one has its SM disabled (rdma-core libibumad umad.c,
// umad_get_smi_gsi_pairs).
func pairSides(ports []LocalPort) {
	for i := range ports {
		for j := range ports {
			a, b := &ports[i], &ports[j]
			if a.Device == b.Device || a.PortGUID != b.PortGUID || a.PortGUID == 0 ||
				a.LinkLayer != port.LinkInfiniBand || b.LinkLayer != port.LinkInfiniBand {
				continue
			}
			gsi := a.CapMask&mad.CapIsSMDisabled != 0
			if other := b.CapMask&mad.CapIsSMDisabled != 0; gsi == other {
				continue
			}
			a.Other, a.Side = portName(b.Device, b.Port), SMISide
			if gsi {
				a.Side = GSISide
			}
		}
	}
}

// Choice is a port and why it was chosen or passed over.
type Choice struct {
	LocalPort
	Chosen bool
	Why    string
}

// Any stands for any port number in Choose.
const Any = -1

// Choose picks at most one of ports. Without a device it is the first active
// InfiniBand port; an Ethernet port has no LIDs and must be named. Of a device
// that is named it is port num or, with Any, the first active one, or else the
// first.
func Choose(ports []LocalPort, device string, num int) []Choice {
	choices := make([]Choice, len(ports))
	best, rank := -1, 0
	for i, p := range ports {
		choices[i].LocalPort = p
		r, why := suitability(&p, device, num)
		choices[i].Why = why
		if r > rank {
			best, rank = i, r
		}
	}
	if best < 0 {
		return choices
	}
	for i := range choices {
		if c := &choices[i]; i == best {
			c.Chosen = true
		} else if r, _ := suitability(&c.LocalPort, device, num); r > 0 {
			c.Why = "passed over for " + portName(ports[best].Device, ports[best].Port)
		}
	}
	return choices
}

// suitability ranks a port, 0 for one that is not to be chosen, and says why.
func suitability(p *LocalPort, device string, num int) (rank int, why string) {
	name := portName(p.Device, p.Port)
	active := p.State == mad.PortStateActive
	switch {
	case device != "" && p.Device != device, num != Any && int(p.Port) != num:
		return 0, "another port was named"
	case p.UMAD == "":
		return 0, p.Without
	case device != "" && active:
		return 2, "named, and active"
	case device != "":
		return 1, "named"
	case p.LinkLayer == port.LinkEthernet:
		return 0, "an Ethernet port has no LIDs: name it (--on umad:" + name + ") and use GIDs"
	case p.Side == SMISide:
		return 0, "it has subnet management only; all else goes through " + p.Other
	case !active:
		return 0, fmt.Sprintf("its state is %v: name it (--on umad:%s) to use it as it is", p.State, name)
	}
	return 1, "the first active InfiniBand port"
}
