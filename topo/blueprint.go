package topo

import (
	"fmt"

	"github.com/ibsm/ibsm/mad"
)

// blueprint is one plane of a generated fabric.
type blueprint struct {
	switches  []string
	hosts     []int // of each switch
	hostSpeed func(host int) mad.Speed
	cables    []cable
}

// cable joins two switches.
type cable struct {
	a, b  int
	speed mad.Speed
	mtu   mad.MTU
}

const generatedSpeed = mad.SpeedHDR

func (b *blueprint) add(name string, hosts int) {
	b.switches = append(b.switches, name)
	b.hosts = append(b.hosts, hosts)
}

func (b *blueprint) join(x, y int) {
	b.cables = append(b.cables, cable{x, y, generatedSpeed, mad.MTU4096})
}

// build makes a subnet of the blueprint: hosts, switches, routers, in this order.
func (b *blueprint) build(o *options) (*Subnet, error) {
	w := &builder{blueprint: b, options: o, sub: newSubnet(), taken: map[*Node]int{}}
	for i, n := range b.hosts {
		for range n {
			w.slots = append(w.slots, len(w.edges))
		}
		if n > 0 {
			w.edges = append(w.edges, i)
		}
	}
	ports := w.portsOfSwitches()
	for i, n := range ports {
		if n > maxPorts {
			return nil, fmt.Errorf("switch %s has %d ports, but at most %d", b.switches[i], n, maxPorts)
		}
	}
	lids := len(b.switches)*o.planes + (len(w.slots)*o.planes*o.ports+o.routers)<<o.lmc
	if lids >= int(mad.FirstMulticast) {
		return nil, fmt.Errorf("needs %d LIDs, but a subnet has %d", lids, mad.FirstMulticast-1)
	}
	hosts := w.addHosts()
	planes := w.addSwitches(ports)
	w.linkHosts(hosts, planes)
	w.linkSwitches(planes)
	w.addRouters(planes[0])
	for p := range w.sub.EndPorts() {
		if !p.Node.IsSwitch() {
			p.LMC = uint8(o.lmc)
		}
	}
	if err := w.sub.complete([]mad.PKey{mad.DefaultPKey}); err != nil {
		return nil, err
	}
	for _, adapters := range hosts {
		for _, n := range adapters {
			n.SystemImageGUID = adapters[0].GUID
		}
	}
	return w.sub, nil
}

type builder struct {
	*blueprint
	*options
	sub   *Subnet
	edges []int         // the switches that have hosts
	slots []int         // of each host, the index of its switch in edges
	taken map[*Node]int // ports of a switch that have a link, from 1 on
	links int
}

// edge is the switch for a port of a host.
func (w *builder) edge(host, port int) int {
	return w.edges[(w.slots[host]+port-1)%len(w.edges)]
}

// portsOfSwitches counts the ports that each switch of a plane needs.
func (w *builder) portsOfSwitches() []int {
	ports := make([]int, len(w.switches))
	for host := range w.slots {
		for port := range w.ports {
			ports[w.edge(host, 1+port)]++
		}
	}
	for _, c := range w.cables {
		ports[c.a]++
		ports[c.b]++
	}
	for i := range w.routers {
		ports[w.edges[i%len(w.edges)]]++
	}
	if w.planes > 1 {
		ports[0] += 2 // to the planes before and after
	}
	return ports
}

// addHosts gives the adapters of each host, one for each plane.
func (w *builder) addHosts() [][]*Node {
	hosts := make([][]*Node, len(w.slots))
	for i := range hosts {
		name := fmt.Sprintf("h%d", i+1)
		for plane := range w.planes {
			adapter := name
			if w.planes > 1 {
				adapter = fmt.Sprintf("%s mlx5_%d", name, plane)
			}
			hosts[i] = append(hosts[i], w.sub.addNode(adapter, mad.NodeTypeCA, w.ports))
		}
	}
	return hosts
}

// addSwitches gives the switches of each plane.
func (w *builder) addSwitches(ports []int) [][]*Node {
	planes := make([][]*Node, w.planes)
	for plane := range planes {
		for i, name := range w.switches {
			if w.planes > 1 {
				name = fmt.Sprintf("plane%d-%s", plane+1, name)
			}
			planes[plane] = append(planes[plane], w.sub.addNode(name, mad.NodeTypeSwitch, ports[i]))
		}
	}
	return planes
}

// linkHosts gives the lowest ports of a switch to its own hosts.
func (w *builder) linkHosts(hosts, planes [][]*Node) {
	for port := 1; port <= w.ports; port++ {
		for host, adapters := range hosts {
			speed := generatedSpeed
			if w.hostSpeed != nil {
				speed = w.hostSpeed(host)
			}
			for plane, n := range adapters {
				w.link(&n.Ports[port], w.next(planes[plane][w.edge(host, port)]), speed, mad.MTU4096)
			}
		}
	}
}

func (w *builder) linkSwitches(planes [][]*Node) {
	for plane, switches := range planes {
		for _, c := range w.cables {
			w.link(w.next(switches[c.a]), w.next(switches[c.b]), c.speed, c.mtu)
		}
		if plane > 0 {
			w.link(w.next(planes[plane-1][0]), w.next(switches[0]), generatedSpeed, mad.MTU4096)
		}
	}
}

func (w *builder) addRouters(switches []*Node) {
	for i := range w.routers {
		n := w.sub.addNode(fmt.Sprintf("r%d", i+1), mad.NodeTypeRouter, 2)
		w.link(&n.Ports[1], w.next(switches[w.edges[i%len(w.edges)]]), generatedSpeed, mad.MTU4096)
	}
}

// next takes the next port of a switch.
func (w *builder) next(n *Node) *Port {
	w.taken[n]++
	return &n.Ports[w.taken[n]]
}

func (w *builder) link(a, b *Port, speed mad.Speed, mtu mad.MTU) {
	width := mad.LinkWidth4X
	if len(w.speeds) > 0 {
		speed = w.speeds[w.links%len(w.speeds)]
	}
	if len(w.widths) > 0 {
		width = w.widths[w.links%len(w.widths)]
	}
	w.links++
	connect(a, b, width, speed, mtu)
}
