package cm

import (
	"testing"

	"github.com/ibsm/ibsm/mad"
)

// BenchmarkConnection makes and ends connections, while a thousand others wait
// for their peer.
func BenchmarkConnection(b *testing.B) {
	m := [2]*Machine{New(config(5)), New(config(7))}
	if _, err := m[1].Listen(service); err != nil {
		b.Fatal(err)
	}
	for range 1000 {
		if err := m[0].NewID().Connect(start, request()); err != nil {
			b.Fatal(err)
		}
	}
	var p Packet
	for m[0].Next(&p) {
	}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		id := m[0].NewID()
		if err := id.Connect(start, request()); err != nil {
			b.Fatal(err)
		}
		for moved := true; moved; {
			moved = false
			for i := range m {
				for m[i].Next(&p) {
					moved = true
					m[1-i].Receive(start, mad.AddressVector{LID: mad.LID(5 + 2*i), QPN: 1}, p.PKey, &p.MAD)
					benchConsumer(b, m[1-i])
				}
			}
		}
		if id.State() != Timewait {
			b.Fatalf("the state is %v", id.State())
		}
		id.Destroy(start)
	}
}

func benchConsumer(b *testing.B, m *Machine) {
	for e, ok := m.Event(); ok; e, ok = m.Event() {
		var err error
		switch e.Type {
		case EventREQReceived:
			err = e.ID.Reply(start, reply())
		case EventREPReceived:
			err = e.ID.ReadyToUse(start, nil)
		case EventRTUReceived:
			err = e.ID.Disconnect(start, nil)
		case EventDREQReceived:
			err = e.ID.ReplyDisconnect(start, nil)
		case EventDREPReceived:
			e.ID.Destroy(start)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
