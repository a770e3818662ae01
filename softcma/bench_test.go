package softcma

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/topo"
	"github.com/ibsm/ibsm/ucma"
)

// One connection after another from two hosts of a simulated fabric: made of
// nothing, with its path from the SA, established and ended.
func BenchmarkConnect(b *testing.B) {
	sub, err := topo.Generate("demo")
	if err != nil {
		b.Fatal(err)
	}
	fab, err := sim.New(sub, sim.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer fab.Close()
	device := func(name string) *topo.Port {
		p, ok := sub.PortByName(name)
		if !ok {
			b.Fatalf("no port %s", name)
		}
		return p
	}
	h1, err := fab.Device(device("h1").Node, 1)
	if err != nil {
		b.Fatal(err)
	}
	admin, err := server.New(h1, sub, server.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer admin.Close()
	open := func(name string) ucma.Device {
		p := device(name)
		dev, err := fab.Device(p.Node, p.Num)
		if err != nil {
			b.Fatal(err)
		}
		out, err := dev.OpenKernel()
		if err != nil {
			b.Fatal(err)
		}
		h, err := New(out, dev, Config{
			Addrs: []netip.Prefix{netip.PrefixFrom(p.IP, 16)},
			Neighbour: func(ip netip.Addr) (Neighbour, bool) {
				to, ok := sub.PortByIP(ip)
				if !ok {
					return Neighbour{}, false
				}
				return Neighbour{GID: to.GID(sub.GIDPrefix), LID: to.LID}, true
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { h.Close() })
		f, err := h.Open(ucma.Linux)
		if err != nil {
			b.Fatal(err)
		}
		return f
	}
	active, passive := open("h2"), open("h3")
	do := func(d ucma.Device, c ucma.Command, resp ucma.Response) {
		if err := ucma.Do(d, c, resp); err != nil {
			b.Fatal(err)
		}
	}
	expect := func(d ucma.Device, want ucma.EventType) (e ucma.EventResp) {
		for {
			if err := d.Wait(context.Background()); err != nil {
				b.Fatal(err)
			}
			if err := ucma.Do(d, ucma.GetEvent{}, &e); errors.Is(err, ucma.EAGAIN) {
				continue
			} else if err != nil {
				b.Fatal(err)
			}
			if e.Event == want {
				return e
			}
			if e.Event != ucma.EventTimewaitExit {
				b.Fatalf("%v %d, want %v", e.Event, e.Status, want)
			}
		}
	}
	var made ucma.CreateIDResp
	var ended ucma.DestroyIDResp
	dst := ucma.Sockaddr{IP: netip.AddrPortFrom(device("h3").IP, 7174)}
	do(passive, ucma.CreateID{UID: 1, PS: ucma.PortSpaceTCP}, &made)
	do(passive, ucma.BindIP{ID: made.ID, Addr: dst}, nil)
	do(passive, ucma.Listen{ID: made.ID}, nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		qpn := uint32(i)&0xffffff | 1<<20
		do(active, ucma.CreateID{UID: 1, PS: ucma.PortSpaceTCP}, &made)
		id := made.ID
		do(active, ucma.ResolveIP{ID: id, Dst: dst, Timeout: time.Second}, nil)
		expect(active, ucma.EventAddrResolved)
		do(active, ucma.ResolveRoute{ID: id, Timeout: time.Second}, nil)
		expect(active, ucma.EventRouteResolved)
		do(active, ucma.Connect{ID: id, Param: ucma.ConnParam{QPNum: qpn, Valid: true}}, nil)
		child := expect(passive, ucma.EventConnectRequest).ID
		do(passive, ucma.Accept{UID: 2, ID: child, Param: ucma.ConnParam{QPNum: qpn, Valid: true}}, nil)
		expect(active, ucma.EventConnectResponse)
		do(active, ucma.Accept{ID: id}, nil)
		expect(passive, ucma.EventEstablished)
		do(active, ucma.Disconnect{ID: id}, nil)
		expect(passive, ucma.EventDisconnected)
		do(passive, ucma.Disconnect{ID: child}, nil)
		expect(active, ucma.EventDisconnected)
		do(active, ucma.DestroyID{ID: id}, &ended)
		do(passive, ucma.DestroyID{ID: child}, &ended)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "connections/s")
}
