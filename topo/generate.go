package topo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/configs"
	"github.com/ibsm/ibsm/mad"
)

// Generate makes a fabric from a short description:
//
//	demo                                      configs/demo.yaml: 2 switches, 8 hosts h1 to h8
//	two-level:leafs=36,spines=18,hosts=18     a fat tree of two levels, hosts per leaf
//
// The hosts of a two-level tree are h1, h2..., leaf by leaf, its switches leaf1...
// and spine1... Each leaf has one HDR link with an MTU of 4096 to each spine. The
// last spine, if there are several, is of an older generation: its links are EDR
// with an MTU of 2048. Every fourth host is an EDR host.
func Generate(spec string) (*Subnet, error) {
	kind, args, _ := strings.Cut(spec, ":")
	switch kind {
	case "demo":
		if args != "" {
			return nil, fmt.Errorf("fabric %q: demo takes no arguments", spec)
		}
		text, err := configs.FS.ReadFile("demo.yaml")
		if err != nil {
			return nil, err
		}
		return Parse("demo.yaml", text)
	case "two-level":
		return twoLevel(spec, args)
	}
	return nil, fmt.Errorf("fabric %q: there is no generator %q%s", spec, kind, suggest(kind, Generators()))
}

// Generators lists the names that Generate knows.
func Generators() []string { return []string{"demo", "two-level"} }

// arguments reads "name=number,..." into the map's values.
func arguments(spec, args string, values map[string]*int, limit int) error {
	var given []string
	for arg := range strings.SplitSeq(args, ",") {
		name, number, ok := strings.Cut(arg, "=")
		to := values[name]
		switch n, err := strconv.Atoi(number); {
		case !ok:
			return fmt.Errorf("fabric %q: argument %q is not of the form name=number", spec, arg)
		case to == nil:
			known := make([]string, 0, len(values))
			for k := range values {
				known = append(known, k)
			}
			return fmt.Errorf("fabric %q: no argument %q%s", spec, name, suggest(name, known))
		case slices.Contains(given, name):
			return fmt.Errorf("fabric %q: argument %q stands twice", spec, name)
		case err != nil || n < 1 || n > limit:
			return fmt.Errorf("fabric %q: %s=%s is not 1 to %d", spec, name, number, limit)
		default:
			*to = n
			given = append(given, name)
		}
	}
	for name := range values {
		if !slices.Contains(given, name) {
			return fmt.Errorf("fabric %q: argument %s is missing", spec, name)
		}
	}
	return nil
}

func twoLevel(spec, args string) (*Subnet, error) {
	var leafs, spines, hosts int
	err := arguments(spec, args, map[string]*int{"leafs": &leafs, "spines": &spines, "hosts": &hosts}, maxPorts)
	if err != nil {
		return nil, err
	}
	if hosts+spines > maxPorts {
		return nil, fmt.Errorf("fabric %q: a leaf has %d hosts and %d spines, but at most %d ports", spec, hosts, spines, maxPorts)
	}
	s := newSubnet()
	for i := range leafs * hosts {
		s.addNode(fmt.Sprintf("h%d", i+1), mad.NodeTypeCA, 1)
	}
	for i := range leafs {
		s.addNode(fmt.Sprintf("leaf%d", i+1), mad.NodeTypeSwitch, hosts+spines)
	}
	for i := range spines {
		s.addNode(fmt.Sprintf("spine%d", i+1), mad.NodeTypeSwitch, leafs)
	}
	leaf := s.Nodes[leafs*hosts:]
	spine := leaf[leafs:]
	for i := range leafs {
		for j := range hosts {
			host := i*hosts + j
			speed := mad.SpeedHDR
			if host%4 == 3 {
				speed = mad.SpeedEDR
			}
			connect(&s.Nodes[host].Ports[1], &leaf[i].Ports[1+j], mad.LinkWidth4X, speed, mad.MTU4096)
		}
		for j := range spines {
			speed, mtu := mad.SpeedHDR, mad.MTU4096
			if j > 0 && j == spines-1 {
				speed, mtu = mad.SpeedEDR, mad.MTU2048
			}
			connect(&leaf[i].Ports[1+hosts+j], &spine[j].Ports[1+i], mad.LinkWidth4X, speed, mtu)
		}
	}
	if err := s.complete([]mad.PKey{mad.DefaultPKey}); err != nil {
		return nil, fmt.Errorf("fabric %q: %w", spec, err)
	}
	return s, s.Validate()
}
