// Package bench measures the house as a whole; each package has benchmarks of
// its own beside its tests. The script run makes a table of both.
package bench

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/topo"
)

// largeFabric has 648 hosts and 54 switches.
const largeFabric = "two-level:leafs=36,spines=18,hosts=18"

// BenchmarkDelivery sends single MADs between two hosts over three switches.
func BenchmarkDelivery(b *testing.B) {
	sub, err := topo.Generate(largeFabric)
	if err != nil {
		b.Fatal(err)
	}
	fabric, err := sim.New(sub, sim.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer fabric.Close()
	hosts := hostPorts(sub)
	src, dst := hosts[0], hosts[len(hosts)-1]
	from, to := link(b, fabric, src), link(b, fabric, dst)

	out := softmad.Wire{Addr: mad.AddressVector{LID: dst.LID, QPN: mad.QPGSI}, PKey: mad.DefaultPKey}
	out.MAD[0], out.MAD[mad.OffClass], out.MAD[mad.OffMethod] = mad.BaseVersion, 0x30, uint8(mad.MethodSend)
	var in softmad.Wire
	const window = 256
	for range window {
		if err := from.Send(&out); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for b.Loop() {
		if err := to.Recv(&in); err != nil {
			b.Fatal(err)
		}
		if err := from.Send(&out); err != nil {
			b.Fatal(err)
		}
	}
	if in.Addr.LID != src.LID || in.MAD != out.MAD {
		b.Fatalf("another MAD arrived, from %v", in.Addr)
	}
}

func hostPorts(sub *topo.Subnet) (ports []*topo.Port) {
	for _, n := range sub.Nodes {
		if n.Type == mad.NodeTypeCA {
			ports = append(ports, &n.Ports[1])
		}
	}
	return ports
}

func link(b *testing.B, fabric *sim.Fabric, p *topo.Port) softmad.Link {
	l, err := fabric.Link(p.Node, p.Num)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return l
}

// BenchmarkPathQuery asks for one path at a time, or several, through all floors
// and back.
func BenchmarkPathQuery(b *testing.B) {
	for _, inFlight := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("inflight=%d", inFlight), func(b *testing.B) {
			admin := client(b, "sim:demo", sa.Config{Window: inFlight})
			h8, err := sa.NewResolver(admin).Resolve(b.Context(), mad.MustParseAddr("h8"))
			if err != nil {
				b.Fatal(err)
			}
			askInFlight(b, admin, inFlight, func(int) sa.PathQuery {
				return sa.PathQuery{DGID: h8.GID, NumbPath: 1, Reversible: true}
			})
		})
	}
}

// askInFlight asks b.N path queries, so many at a time. Each has one answer.
func askInFlight(b *testing.B, admin *sa.Client, inFlight int, query func(n int) sa.PathQuery) {
	ask := func(q sa.PathQuery) {
		paths := 0
		for rec, err := range admin.Paths(b.Context(), q) {
			if err != nil || rec.DGID != q.DGID || !rec.DLID.IsUnicast() {
				b.Errorf("path to %v at LID %v, error %v; want one to %v", rec.DGID, rec.DLID, err, q.DGID)
			}
			paths++
		}
		if paths != 1 {
			b.Errorf("%d paths to %v, want 1", paths, q.DGID)
		}
	}
	var asked atomic.Int64
	var asking sync.WaitGroup
	b.ResetTimer()
	for range inFlight {
		asking.Go(func() {
			for n := asked.Add(1); n <= int64(b.N) && !b.Failed(); n = asked.Add(1) {
				ask(query(int(n - 1)))
			}
		})
	}
	asking.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "queries/s")
}

// BenchmarkPathTable asks for the paths from one host to all 702 end ports.
func BenchmarkPathTable(b *testing.B) {
	for name, mode := range map[string]port.RMPPMode{"kernel": port.RMPPKernel, "user": port.RMPPUser} {
		b.Run(name, func(b *testing.B) {
			admin := client(b, "sim:"+largeFabric, sa.Config{RMPP: mode})
			b.ResetTimer()
			for b.Loop() {
				n := 0
				for _, err := range admin.Paths(b.Context(), sa.PathQuery{}) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != 702 {
					b.Fatalf("%d paths", n)
				}
			}
			b.ReportMetric(702*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func client(b *testing.B, at string, cfg sa.Config) *sa.Client {
	dev, err := endpoint.Open(b.Context(), at)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { dev.Close() })
	admin, err := sa.NewClient(dev, cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { admin.Close() })
	return admin
}
