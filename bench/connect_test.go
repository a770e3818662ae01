package bench

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/ucma"
)

// BenchmarkConnect connects to another host of a simulated fabric and disconnects,
// with all that belongs to it: address and route, the attributes of the queue pair's
// states, both sides in this process.
func BenchmarkConnect(b *testing.B) {
	for _, bb := range []struct {
		name     string
		sa       bool // path of the own SA client
		inFlight int
	}{{"path=kernel", false, 1}, {"path=sa", true, 1}, {"inflight=64", true, 64}} {
		b.Run(bb.name, func(b *testing.B) {
			dev, err := endpoint.Open(b.Context(), "sim:demo#h2")
			if err != nil {
				b.Fatal(err)
			}
			defer dev.Close()
			cm, err := endpoint.OpenCM(b.Context(), dev, endpoint.CMConfig{})
			if err != nil {
				b.Fatal(err)
			}
			defer cm.Close()
			admin, err := sa.NewClient(dev, sa.Config{})
			if err != nil {
				b.Fatal(err)
			}
			defer admin.Close()
			var cfg ucma.ConnectConfig
			if bb.sa {
				cfg.Path = admin
			}
			connectInFlight(b, cm.Open, bb.inFlight, cfg)
		})
	}
}

// connectInFlight makes b.N connections to the echo of h8, so many at a time.
func connectInFlight(b *testing.B, open ucma.Opener, inFlight int, cfg ucma.ConnectConfig) {
	h8 := ucma.Target{Addr: ucma.Sockaddr{IP: netip.MustParseAddrPort("10.0.0.8:7471")}}
	connect := func() error {
		c, err := open.Connect(b.Context(), h8, cfg)
		if err != nil {
			return err
		}
		if c.RTR.PathMTU != uint32(mad.MTU2048) {
			b.Errorf("queue pair to %+v", c.RTR)
		}
		return errors.Join(c.Disconnect(b.Context()), c.Close())
	}
	if err := connect(); err != nil { // which starts the CM of h8
		b.Fatal(err)
	}
	var begun atomic.Int64
	var connecting sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range inFlight {
		connecting.Go(func() {
			for begun.Add(1) <= int64(b.N) && !b.Failed() {
				if err := connect(); err != nil {
					b.Error(err)
				}
			}
		})
	}
	connecting.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "conns/s")
}
