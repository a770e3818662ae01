package softmad

import (
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// packet is a message in a receive queue. Up to 256 bytes are kept in place, so
// that single MADs cost no allocation; long holds a reassembled message.
type packet struct {
	agent    port.AgentID
	timedOut bool
	timeout  time.Duration
	retries  int
	addr     mad.AddressVector
	n        int
	mad      [mad.Size]byte
	long     []byte
}

// queue is a first-in first-out ring of packets.
type queue struct {
	ring     []packet // length is a power of two, or 0
	first, n int
	received int // packets that are not time-outs
}

// maxIdleRing is how many packets of room an empty queue keeps.
const maxIdleRing = 1024

// push makes room for a packet and returns it zeroed but for its bytes.
func (q *queue) push() *packet {
	if q.n == len(q.ring) {
		ring := make([]packet, max(16, 2*len(q.ring)))
		for i := range q.n {
			ring[i] = q.ring[(q.first+i)%len(q.ring)]
		}
		q.ring, q.first = ring, 0
	}
	p := &q.ring[(q.first+q.n)%len(q.ring)]
	q.n++
	return p
}

// pop moves the first packet into m. It returns the bytes of a long message,
// which the caller copies when it can take its time.
func (q *queue) pop(m *port.Message) (long []byte) {
	p := &q.ring[q.first]
	m.Agent, m.TimedOut = p.agent, p.timedOut
	m.Timeout, m.Retries, m.Addr = p.timeout, p.retries, p.addr
	m.Data = append(m.Data[:0], p.mad[:p.n]...)
	if !p.timedOut {
		q.received--
	}
	long, p.long = p.long, nil
	q.first = (q.first + 1) % len(q.ring)
	q.n--
	if q.n == 0 && len(q.ring) > maxIdleRing {
		q.ring, q.first = nil, 0
	}
	return long
}
