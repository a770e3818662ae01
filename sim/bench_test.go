package sim

import (
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/topo"
)

func benchFabric(b *testing.B, spec string) *Fabric {
	b.Helper()
	sub, err := topo.Generate(spec)
	if err != nil {
		b.Fatal(err)
	}
	f, err := New(sub, Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := f.Close(); err != nil {
			b.Error(err)
		}
	})
	return f
}

func benchLink(b *testing.B, f *Fabric, name string) softmad.Link {
	b.Helper()
	p, _ := f.Subnet().PortByName(name)
	l, err := f.Link(p.Node, p.Num)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// stream sends b.N wires with at most 1024 on the way and receives what comes.
// Each crosses so many links.
func stream(b *testing.B, f *Fabric, from, to softmad.Link, w softmad.Wire, links uint64) {
	window := make(chan struct{}, 1024)
	done := make(chan error, 1)
	go func() {
		var got softmad.Wire
		for range b.N {
			if err := to.Recv(&got); err != nil {
				done <- err
				return
			}
			<-window
		}
		done <- nil
	}()
	b.ResetTimer()
	for range b.N {
		window <- struct{}{}
		if err := from.Send(&w); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	if s := f.Stats(); s.Crossed != links*s.Sent || s.Delivered != s.Sent {
		b.Fatalf("stats %+v", s)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "MADs/s")
}

// BenchmarkDeliver: from host to host over four links.
func BenchmarkDeliver(b *testing.B) {
	f := benchFabric(b, "two-level:leafs=36,spines=18,hosts=18")
	from, to := benchLink(b, f, "h1"), benchLink(b, f, "h648")
	stream(b, f, from, to, gmp(648, mad.DefaultPKey), 4)
}

// BenchmarkDirectedGet: NodeInfo by a directed route, four links out and four home.
func BenchmarkDirectedGet(b *testing.B) {
	f := benchFabric(b, "two-level:leafs=36,spines=18,hosts=18")
	h1 := benchLink(b, f, "h1")
	stream(b, f, h1, h1, byRoute(mad.Route{0, 1, 20, 5, 3}, mad.AttrNodeInfo, 0), 8)
}

// BenchmarkRoundTrip: one request at a time.
func BenchmarkRoundTrip(b *testing.B) {
	f := benchFabric(b, "demo")
	h1 := benchLink(b, f, "h1")
	w := byLID(8, mad.AttrNodeInfo, 0)
	var got softmad.Wire
	for b.Loop() {
		if err := h1.Send(&w); err != nil {
			b.Fatal(err)
		}
		if err := h1.Recv(&got); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNew10000: generate and bring up 10,000 hosts.
func BenchmarkNew10000(b *testing.B) {
	for b.Loop() {
		sub, err := topo.Generate("two-level:leafs=200,spines=18,hosts=50")
		if err != nil {
			b.Fatal(err)
		}
		f, err := New(sub, Config{})
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
