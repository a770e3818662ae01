package topo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibsm/ibsm/configs"
)

// Generate makes a fabric from a short description:
//
//	demo                                      configs/demo.yaml: 2 switches, 8 hosts h1 to h8
//	two-level:leafs=36,spines=18,hosts=18     a fat tree of two levels, hosts per leaf
//	fat-tree:k=8                              a fat tree of three levels, of switches with k ports
//	ring:switches=6,hosts=2                   a ring, hosts per switch
//	torus:x=4,y=4,z=4,hosts=1                 a torus of three dimensions, without z of two
//	dragonfly:switches=4,globals=2,hosts=2    groups of so many switches, each with so many cables to other groups
//
// In a two-level tree each of the switches leaf1, leaf2... has one HDR link with
// an MTU of 4096 to each of spine1, spine2... The last spine, if there are
// several, is of an older generation: its links are EDR with an MTU of 2048.
// Every fourth host is an EDR host. In all others the links are 4x HDR with an
// MTU of 4096.
//
// A fat tree of three levels has k pods (k even, 2 to 48), each with k/2 switches
// edge1... and k/2 agg1..., and (k/2)^2 switches core1...; k^3/4 hosts. The i-th
// agg of each pod is linked to the i-th k/2 cores.
//
// A ring has 3 to 100 switches s1, s2...; a torus 3 to 16 in each dimension, s1-1,
// s1-2... or s1-1-1... Their routes are shortest ones, so like those of OpenSM's
// minhop they may have credit loops. That matters to data on a real fabric, not
// to MADs here.
//
// A dragonfly has groups of switches g1-s1, g1-s2..., linked each to each within
// the group (1 to 16), each with globals (1 to 8) cables to other groups. Without
// groups=N there are switches*globals+1 groups, so that each has one cable to
// each other. Fewer leave cables out.
//
// The hosts are h1, h2..., switch by switch. All but demo take more parameters:
//
//	lmc=2       the LMC of hosts and routers, 0 to 7; default 0
//	ports=2     ports of each host, 1 to 4: the n-th goes to the n-th switch with hosts, from the host's own on
//	planes=2    adapters of each host, 1 to 8, each in a fabric of its own
//	routers=1   routers r1, r2..., 0 to 64, at the first switches with hosts, with one of two ports
//	speed=NDR   the speed of all links, or mixed for every speed in turn
//	width=2x    the width of all links, or mixed for every width in turn
//
// Speed and width both mixed give each combination in 45 links. With several
// planes the adapters of h1 are the nodes "h1 mlx5_0", "h1 mlx5_1"..., which share
// the host's system image GUID, and switches have their plane in front:
// plane1-leaf1. A cable between the first switches of neighbouring planes makes
// them one subnet.
//
// No more is generated than a subnet has LIDs, 49,151, nor switches of more than
// 254 ports.
func Generate(spec string) (*Subnet, error) {
	kind, args, _ := strings.Cut(spec, ":")
	if kind == "demo" {
		if args != "" {
			return nil, fmt.Errorf("fabric %q: demo takes no arguments", short(spec))
		}
		text, err := configs.FS.ReadFile("demo.yaml")
		if err != nil {
			return nil, err
		}
		return Parse("demo.yaml", text)
	}
	plan, ok := plans[kind]
	if !ok {
		return nil, fmt.Errorf("fabric %q: there is no generator %q%s", short(spec), short(kind), suggest(kind, Generators()))
	}
	p := newParameters(args)
	options := p.options()
	drawn, err := plan.draw(p)
	if err != nil {
		return nil, fmt.Errorf("fabric %q: %w (%s takes %s; for example %s:%s)", short(spec), err, kind, p.usage(), kind, plan.example)
	}
	s, err := drawn.build(options)
	if err != nil {
		return nil, fmt.Errorf("fabric %q: %w", short(spec), err)
	}
	return s, s.Validate()
}

// Generators lists the names that Generate knows.
func Generators() []string { return append([]string{"demo"}, slices.Sorted(maps.Keys(plans))...) }
