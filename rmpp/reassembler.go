package rmpp

import (
	"slices"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Reassembler is a Receiver that collects its message in one buffer. The buffer
// grows with the data that has come, never by what the peer announces.
type Reassembler struct {
	Receiver
	buf []byte
}

// NewReassembler prepares to receive one message into buf[:0], which may be nil
// and grows as needed.
func NewReassembler(cfg ReceiverConfig, buf []byte) *Reassembler {
	r := &Reassembler{buf: buf[:0]}
	r.init(cfg)
	return r
}

// Receive takes a packet of the peer, as Receiver.Receive does.
func (r *Reassembler) Receive(now time.Time, pkt *[mad.Size]byte) {
	r.Receiver.Receive(now, pkt, r.add)
}

func (r *Reassembler) add(payload []byte) {
	if len(r.buf) == 0 {
		r.buf = append(r.buf, r.Header()...)
	}
	if cap(r.buf)-len(r.buf) < len(payload) {
		r.buf = slices.Grow(r.buf, max(len(r.buf), 4*mad.Size)) // twice: append would copy more often
	}
	r.buf = append(r.buf, payload...)
}

// Message gives the whole message once Done says so without an error: the
// headers of the first segment, then all data. Before that it is nil.
func (r *Reassembler) Message() []byte {
	if done, err := r.Done(); !done || err != nil {
		return nil
	}
	if len(r.buf) == 0 { // no data
		r.buf = append(r.buf, r.Header()...)
	}
	return r.buf
}
