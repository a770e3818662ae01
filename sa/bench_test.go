package sa

import (
	"fmt"
	"sync"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/topo"
)

// BenchmarkGetPath counts queries for a path by GID with so many in flight.
func BenchmarkGetPath(b *testing.B) {
	for _, inFlight := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(inFlight), func(b *testing.B) {
			sub, err := topo.Generate("demo")
			r := newRig(b, sub, err)
			r.serve(b)
			c := r.client(b, "h2", Config{Window: inFlight})
			q := Match(mad.PathRecord{SGID: r.gid("h2"), DGID: r.gid("h8")}, "SGID", "DGID")
			var workers sync.WaitGroup
			jobs := make(chan struct{}, inFlight)
			for range inFlight {
				workers.Go(func() {
					for range jobs {
						if _, err := Get(b.Context(), c, q); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for b.Loop() {
				jobs <- struct{}{}
			}
			close(jobs)
			workers.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "queries/s")
		})
	}
}

// BenchmarkPathTable reads the 702 paths from one host of a fat tree of 648.
func BenchmarkPathTable(b *testing.B) {
	for name, mode := range map[string]port.RMPPMode{"kernel": port.RMPPKernel, "user": port.RMPPUser} {
		b.Run(name, func(b *testing.B) {
			sub, err := topo.Generate("two-level:leafs=36,spines=18,hosts=18")
			r := newRig(b, sub, err)
			r.serve(b)
			c := r.client(b, sub.Nodes[1].Name, Config{RMPP: mode})
			for b.Loop() {
				n := 0
				for _, err := range c.Paths(b.Context(), PathQuery{}) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != 702 {
					b.Fatalf("%d paths", n)
				}
			}
		})
	}
}
