package smp

import (
	"fmt"
	"sync"
	"testing"

	"github.com/ibsm/ibsm/mad"
)

// BenchmarkGetNodeInfo counts SMPs over two switches with so many in flight.
func BenchmarkGetNodeInfo(b *testing.B) {
	for _, inFlight := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(inFlight), func(b *testing.B) {
			r := newRig(b, Config{})
			to := mad.MustParseAddr("0,1,11,4")
			var workers sync.WaitGroup
			jobs := make(chan struct{}, inFlight)
			for range inFlight {
				workers.Go(func() {
					for range jobs {
						if _, err := Get[mad.NodeInfo](b.Context(), r.client, to, 0); err != nil {
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
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "SMPs/s")
		})
	}
}
