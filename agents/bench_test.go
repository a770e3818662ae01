package agents_test

import (
	"bytes"
	"testing"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// One request after the other, over softmad on both sides.
func BenchmarkDo(b *testing.B) {
	bench := newBench(b, agents.Config{}, nil)
	defer bench.close()
	register(b, bench.server, saServer(port.RMPPNone, func(in *agents.Incoming) { _ = in.Reply(respond(in.Data, nil)) }))
	a := register(b, bench.client, saClient(port.RMPPNone))
	req := &agents.Request{Addr: serverAddr, Data: getRecord(1)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Do(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// Many at once.
func BenchmarkDoParallel(b *testing.B) {
	bench := newBench(b, agents.Config{}, nil)
	defer bench.close()
	register(b, bench.server, saServer(port.RMPPNone, func(in *agents.Incoming) { _ = in.Reply(respond(in.Data, nil)) }))
	a := register(b, bench.client, saClient(port.RMPPNone))
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		req := &agents.Request{Addr: serverAddr, Data: getRecord(1)}
		for pb.Next() {
			if _, err := a.Do(b.Context(), req); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// An answer of 2.2 MB in 11,000 segments.
func BenchmarkLongAnswer(b *testing.B) {
	for _, mode := range modes[:2] {
		b.Run(mode.name, func(b *testing.B) {
			bench := newBench(b, agents.Config{}, nil)
			defer bench.close()
			const n = 11_000 * perSegment
			data := pattern(n)
			register(b, bench.server, saServer(mode.server, func(in *agents.Incoming) { _ = in.Reply(respond(in.Data, data)) }))
			a := register(b, bench.client, saClient(mode.client))
			b.SetBytes(n)
			for b.Loop() {
				r, err := a.Do(b.Context(), &agents.Request{Addr: serverAddr, Data: sized(0), Long: true})
				if err != nil {
					b.Fatal(err)
				}
				if !bytes.Equal(r.Data[mad.OffSAData:], data) {
					b.Fatal("got other data")
				}
			}
		})
	}
}
