package rmpp_test

import (
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/rmpp"
)

const benchData = 1 << 20

// Reassembly of 1 MiB into a buffer that is used again, ACKs included.
func BenchmarkReassemble(b *testing.B) {
	segs := segments(message(classSA, benchData))
	var out [mad.Size]byte
	var buf []byte
	b.SetBytes(benchData)
	b.ReportAllocs()
	for b.Loop() {
		r := rmpp.NewReassembler(rmpp.ReceiverConfig{}, buf)
		for _, pkt := range segs {
			r.Receive(start, pkt)
			r.Next(start, &out)
		}
		buf = r.Message()
	}
	if len(buf) != 56+benchData {
		b.Fatalf("%d bytes", len(buf))
	}
}

// Reassembly of 1 MiB into a buffer that grows from nothing.
func BenchmarkReassembleGrowing(b *testing.B) {
	segs := segments(message(classSA, benchData))
	var out [mad.Size]byte
	b.SetBytes(benchData)
	b.ReportAllocs()
	for b.Loop() {
		r := rmpp.NewReassembler(rmpp.ReceiverConfig{}, nil)
		for _, pkt := range segs {
			r.Receive(start, pkt)
			r.Next(start, &out)
		}
		if len(r.Message()) != 56+benchData {
			b.Fatal("not complete")
		}
	}
}

// Segmentation of 1 MiB with the ACKs of a Receiver.
func BenchmarkTransfer(b *testing.B) {
	msg := message(classSA, benchData)
	var buf []byte
	b.SetBytes(benchData)
	b.ReportAllocs()
	for b.Loop() {
		s, err := rmpp.NewSender(msg, rmpp.SenderConfig{})
		if err != nil {
			b.Fatal(err)
		}
		r := rmpp.NewReassembler(rmpp.ReceiverConfig{}, buf)
		exchange(s, r)
		buf = r.Message()
	}
	if len(buf) != 56+benchData {
		b.Fatalf("%d bytes", len(buf))
	}
}

// A whole transfer in order allocates the two machines and exchange's packet,
// and nothing per segment.
func TestAllocations(t *testing.T) {
	msg := message(classSA, 1000*200)
	buf := make([]byte, 0, 2*len(msg))
	got := testing.AllocsPerRun(10, func() {
		s := newSender(t, msg, rmpp.SenderConfig{})
		r := rmpp.NewReassembler(rmpp.ReceiverConfig{}, buf)
		exchange(s, r)
		if r.Message() == nil {
			t.Error("not complete")
		}
	})
	if got > 3 {
		t.Errorf("%v allocations for 1000 segments, want 3", got)
	}
}

// The receiver alone allocates nothing, whoever takes the data.
func TestReceiverAllocations(t *testing.T) {
	segs := segments(message(classSA, 1000*200))
	sum := 0
	var out [mad.Size]byte
	got := testing.AllocsPerRun(10, func() {
		r := rmpp.NewReceiver(rmpp.ReceiverConfig{})
		for _, pkt := range segs {
			r.Receive(start, pkt, func(p []byte) { sum += len(p) })
			r.Next(start, &out)
		}
	})
	if got > 1 {
		t.Errorf("%v allocations for 1000 segments, want 1", got)
	}
}
