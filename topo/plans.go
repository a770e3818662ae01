package topo

import (
	"fmt"
	"strings"

	"github.com/ibsm/ibsm/mad"
)

// plan draws a blueprint from its parameters, which it reads.
type plan struct {
	draw    func(*parameters) (*blueprint, error)
	example string // of parameters
}

var plans = map[string]plan{
	"two-level": {planTwoLevel, "leafs=36,spines=18,hosts=18"},
	"fat-tree":  {planFatTree, "k=8"},
	"ring":      {planRing, "switches=6,hosts=2"},
	"torus":     {planTorus, "x=4,y=4,z=4,hosts=1"},
	"dragonfly": {planDragonfly, "switches=4,globals=2,hosts=2"},
}

func planTwoLevel(p *parameters) (*blueprint, error) {
	var leafs, spines, hosts int
	p.number("leafs", &leafs, 1, maxPorts)
	p.number("spines", &spines, 1, maxPorts)
	p.number("hosts", &hosts, 1, maxPorts)
	if err := p.read(); err != nil {
		return nil, err
	}
	b := &blueprint{hostSpeed: func(host int) mad.Speed {
		if host%4 == 3 {
			return mad.SpeedEDR
		}
		return mad.SpeedHDR
	}}
	for i := range leafs {
		b.add(fmt.Sprintf("leaf%d", i+1), hosts)
	}
	for i := range spines {
		b.add(fmt.Sprintf("spine%d", i+1), 0)
	}
	for i := range leafs {
		for j := range spines {
			c := cable{i, leafs + j, mad.SpeedHDR, mad.MTU4096}
			if j > 0 && j == spines-1 {
				c.speed, c.mtu = mad.SpeedEDR, mad.MTU2048
			}
			b.cables = append(b.cables, c)
		}
	}
	return b, nil
}

func planFatTree(p *parameters) (*blueprint, error) {
	var k int
	p.number("k", &k, 2, 48)
	if err := p.read(); err != nil {
		return nil, err
	}
	if k%2 != 0 {
		return nil, fmt.Errorf("k=%d is not even", k)
	}
	b := &blueprint{}
	half := k / 2
	for i := range k * half {
		b.add(fmt.Sprintf("edge%d", i+1), half)
	}
	for i := range k * half {
		b.add(fmt.Sprintf("agg%d", i+1), 0)
	}
	for i := range half * half {
		b.add(fmt.Sprintf("core%d", i+1), 0)
	}
	aggs, cores := k*half, 2*k*half
	for pod := range k {
		for i := range half {
			for j := range half {
				b.join(pod*half+i, aggs+pod*half+j)
			}
		}
	}
	for pod := range k {
		for i := range half {
			for j := range half {
				b.join(aggs+pod*half+i, cores+i*half+j)
			}
		}
	}
	return b, nil
}

func planRing(p *parameters) (*blueprint, error) {
	var switches, hosts int
	p.number("switches", &switches, 3, 100)
	p.number("hosts", &hosts, 1, maxPorts)
	if err := p.read(); err != nil {
		return nil, err
	}
	return drawTorus([]int{switches}, hosts), nil
}

func planTorus(p *parameters) (*blueprint, error) {
	var x, y, hosts int
	z := 1
	p.number("x", &x, 3, 16)
	p.number("y", &y, 3, 16)
	p.number("z", &z, 3, 16)
	p.number("hosts", &hosts, 1, maxPorts)
	if err := p.read(); err != nil {
		return nil, err
	}
	if z == 1 {
		return drawTorus([]int{x, y}, hosts), nil
	}
	return drawTorus([]int{x, y, z}, hosts), nil
}

// drawTorus links each switch to the next one in each dimension, the last to the
// first.
func drawTorus(size []int, hosts int) *blueprint {
	b := &blueprint{}
	total := 1
	for _, n := range size {
		total *= n
	}
	for i := range total {
		place := make([]string, len(size)) // the last dimension runs fastest
		for d, rest := len(size)-1, i; d >= 0; d-- {
			place[d] = fmt.Sprint(rest%size[d] + 1)
			rest /= size[d]
		}
		b.add("s"+strings.Join(place, "-"), hosts)
	}
	for i := range total {
		stride := total
		for _, n := range size {
			line := stride // so many switches until this coordinate is the same again
			stride /= n
			b.join(i, i-i%line+(i%line+stride)%line)
		}
	}
	return b
}

func planDragonfly(p *parameters) (*blueprint, error) {
	var switches, globals, hosts int
	groups := -1
	p.number("switches", &switches, 1, 16)
	p.number("globals", &globals, 1, 8)
	p.number("hosts", &hosts, 1, maxPorts)
	p.number("groups", &groups, 2, 16*8+1)
	if err := p.read(); err != nil {
		return nil, err
	}
	most := switches*globals + 1
	if groups == -1 {
		groups = most
	}
	if groups > most {
		return nil, fmt.Errorf("groups=%d is more than the %d that %d cables of a group reach", groups, most, most-1)
	}
	b := &blueprint{}
	for g := range groups {
		for i := range switches {
			b.add(fmt.Sprintf("g%d-s%d", g+1, i+1), hosts)
		}
	}
	for g := range groups {
		for i := range switches {
			for j := i + 1; j < switches; j++ {
				b.join(g*switches+i, g*switches+j)
			}
		}
	}
	// The n-th cable of a group goes to the n-th of the other groups.
	for g := range groups {
		for far := g + 1; far < groups; far++ {
			b.join(g*switches+(far-1)/globals, far*switches+g/globals)
		}
	}
	return b, nil
}
