package softmad_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/softmad/softmadtest"
)

// pairFor opens a client's and a server's Port on a new pair of devices.
func pairFor(b *testing.B, mode port.RMPPMode, methods ...mad.Method) (client, server port.Port, to mad.AddressVector) {
	la, lb := softmadtest.NewPair(nil)
	for i, l := range []*softmadtest.Link{la, lb} {
		d, err := softmad.NewDevice(l, softmad.Config{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { d.Close() })
		p, err := d.Open()
		if err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			client = p
			_, err = p.Register(registration(mode))
		} else {
			server = p
			_, err = p.Register(registration(mode, methods...))
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	return client, server, lb.Addr()
}

// Round trips of single MADs, with a number of requests in flight.
func BenchmarkRoundTrip(b *testing.B) {
	for _, window := range []int{1, 32, 1000} {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) {
			client, server, to := pairFor(b, port.RMPPNone, mad.MethodGet)
			var done sync.WaitGroup
			done.Go(func() {
				var m port.Message
				for server.Recv(&m) == nil {
					m.Data[mad.OffMethod] |= mad.ResponseBit
					if err := server.Send(&m); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportAllocs()
			m := port.Message{Timeout: time.Second, Addr: to, Data: request(mad.MethodGet, 0)}
			var got port.Message
			sent, tid := 0, uint32(0)
			for b.Loop() {
				for ; sent < window; sent++ {
					tid++
					binary.BigEndian.PutUint32(m.Data[mad.OffTID+4:], tid)
					if err := client.Send(&m); err != nil {
						b.Fatal(err)
					}
				}
				if err := client.Recv(&got); err != nil || got.TimedOut {
					b.Fatal(err, got.TimedOut)
				}
				sent--
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "trips/s")
			server.Close()
			done.Wait()
		})
	}
}

// Long answers by kernel RMPP, from send to whole message.
func BenchmarkKernelRMPP(b *testing.B) {
	const size = 2_000_000
	client, server, to := pairFor(b, port.RMPPKernel, mad.MethodGetTable)
	var done sync.WaitGroup
	done.Go(func() {
		var m port.Message
		answer := make([]byte, mad.OffSAData+size)
		for server.Recv(&m) == nil {
			copy(answer, m.Data[:mad.OffSAData])
			answer[mad.OffMethod] |= mad.ResponseBit
			answer[mad.OffRMPP+2] = 1 // Active
			if err := server.Send(&port.Message{Agent: m.Agent, Addr: m.Addr, Data: answer}); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.SetBytes(size)
	b.ReportAllocs()
	var got port.Message
	var tid uint32
	for b.Loop() {
		tid++
		m := port.Message{Timeout: time.Minute, Addr: to, Data: request(mad.MethodGetTable, tid)}
		if err := client.Send(&m); err != nil {
			b.Fatal(err)
		}
		if err := client.Recv(&got); err != nil || len(got.Data) != mad.OffSAData+size {
			b.Fatal(err, len(got.Data))
		}
	}
	server.Close()
	done.Wait()
}
