package rmpp

import (
	"slices"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Reassembler is a Receiver that collects its message in one buffer. The buffer
// grows with the data that has come, up to what the peer announces: a peer that
// announces much and sends little costs little.
type Reassembler struct {
	Receiver
	buf []byte
}

// firstRoom is the capacity that a buffer has at least, if so much is to come.
const firstRoom = 16 * mad.Size

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
		r.reserve(r.hdrLen + len(payload))
		r.buf = append(r.buf, r.Header()...)
	}
	r.reserve(len(payload))
	r.buf = append(r.buf, payload...)
}

// reserve makes room for n more bytes and for some that are likely to follow:
// each time as much again as has come, or four times as much where the end is
// known, so that nothing lies idle behind it.
func (r *Reassembler) reserve(n int) {
	if cap(r.buf)-len(r.buf) >= n {
		return
	}
	room := 2*len(r.buf) + firstRoom
	if r.announced != 0 {
		room = min(4*len(r.buf)+firstRoom, r.hdrLen+int(r.announcedData()))
	}
	r.buf = slices.Grow(r.buf, max(n, room-len(r.buf)))
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
