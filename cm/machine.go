// Package cm is the protocol by which two ports make and end a connection
// between queue pairs, and resolve a service to a queue pair (IBA chapter 12),
// as one pure state machine for a port: [Machine] holds its communication ids,
// each [ID] is a connection, a listener or a service ID resolution.
//
// It neither reads a clock, starts a goroutine nor does I/O. The time comes in
// as an argument; packets to transmit and events are pulled:
//
//	for m.Next(&pkt) {
//		transmit(&pkt)
//	}
//	for e, ok := m.Event(); ok; e, ok = m.Event() {
//		handle(e)
//	}
//
// Do so after every call that takes the time: [Machine.Receive] for each CM MAD
// that arrives, [Machine.Expire] no later than [Machine.Deadline], and the
// methods of an ID. A Machine is not safe for concurrent use.
//
// # Like the kernel
//
// States, events, time-outs and what is sent when are those of Linux 6.12
// (drivers/infiniband/core/cm.c, whose functions the comments name), which in
// places is not what the IBA says:
//
//   - A connection in timewait is forgotten by its remote QP and id. A REQ from
//     a queue pair is stale (REJ 10, and a DREQ for the old connection) while
//     its old connection still stands here, not while that is in timewait.
//   - When the retries of a REQ or REP are used up, nothing is sent; a REJ with
//     reason time-out goes out when an ID is destroyed that waits for a REP.
//   - A REP, RTU or DREP for an unknown id is dropped. An unknown DREQ is
//     answered with a DREP.
//   - A time of 4.096 us * 2^n is 2^(n-8) ms, at least 1 ms.
//
// Unlike the kernel, a REQ or REP is not sent again once its sender rejected
// the connection, a SIDR_REP tells the length of its additional information, a
// path cannot migrate to an alternate one that is not there, an id may connect
// again after timewait, and LAP and APR can be sent, not only received.
package cm

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// Config is what a Machine knows of its port. The zero value of a field is a
// valid setting.
type Config struct {
	// Info gives the port's node GUID, link layer, LMC, GIDs and P_Keys. It
	// must hold the GIDs that paths begin at.
	Info port.Info
	// TIDHigh is the upper half of the transaction ids of own requests; the
	// lower is the communication id (cm_form_tid).
	TIDHigh uint32
	// Random is mixed into the communication ids, so that those of before a
	// restart do not come again soon.
	Random uint32
	// AckDelay is the channel adapter's Local CA ACK Delay: 4.096 us * 2^n
	// (IBA 11.2.1.2), up to 31.
	AckDelay uint8
	// Flush tells that the adapter has RDMA FLUSH, which adds to the access
	// flags of [ID.QPAttr].
	Flush bool
}

// Packet is a MAD to transmit.
type Packet struct {
	Addr mad.AddressVector // PKeyIndex is set
	PKey mad.PKey          // at that index
	MAD  [mad.Size]byte
}

// Stats counts what a Machine did. The arrays are indexed by [Message].
type Stats struct {
	Sent       [Messages]uint64 // without retries
	Retries    [Messages]uint64
	Received   [Messages]uint64
	Duplicates [Messages]uint64 // received again
	Ignored    [Messages]uint64 // received, but for no known id, or not expected in its state
	Invalid    uint64           // MADs that are no CM message
}

// Machine holds the communication ids of a port.
type Machine struct {
	cfg       Config
	made      uint32 // ids so far
	assigned  uint64 // service ids so far
	closed    bool
	ids       map[uint32]*ID // by local id
	listeners map[uint64]*ID // by service id
	remoteIDs map[remoteID]*ID
	remoteQPs map[remoteQP]*ID
	remoteReq map[sidrKey]*ID
	timers    timers
	out       queue[Packet]
	events    queue[Event]
	stats     Stats
}

// remoteID and remoteQP are what a connection is recognised by, by which
// duplicate REQs and stale connections are found (cm_insert_remote_id,
// cm_insert_remote_qpn).
type (
	remoteID struct {
		guid mad.GUID
		id   uint32
	}
	remoteQP struct {
		guid mad.GUID
		qpn  uint32
	}
)

// New makes a Machine without ids.
func New(cfg Config) *Machine {
	return &Machine{
		cfg:       cfg,
		ids:       make(map[uint32]*ID),
		listeners: make(map[uint64]*ID),
		remoteIDs: make(map[remoteID]*ID),
		remoteQPs: make(map[remoteQP]*ID),
		remoteReq: make(map[sidrKey]*ID),
	}
}

// SetInfo replaces what is known of the port, after its tables changed.
// Connections keep their addresses.
func (m *Machine) SetInfo(info port.Info) { m.cfg.Info = info }

// NewID makes an idle communication id (ib_create_cm_id). After Close it is one
// that is destroyed.
func (m *Machine) NewID() *ID {
	c := &ID{m: m, destroyed: m.closed}
	if m.closed {
		return c
	}
	// Numbers come again after 2^32 only (xa_alloc_cyclic). 0 stands for an
	// unknown id in messages.
	for {
		c.seq = m.made
		c.localID = m.made ^ m.cfg.Random
		m.made++
		if c.localID != 0 && m.ids[c.localID] == nil {
			break
		}
	}
	m.ids[c.localID] = c
	return c
}

// Listen makes an id that listens for connection requests and service ID
// resolution requests of one service, or counts up the one that does: it then
// needs as many [ID.Destroy] (ib_cm_insert_listen). [AssignServiceID] takes a
// free service id. The error is an [*Error] with ErrInvalid for other ids of
// the range 0x02..., which is for assigned ones, and after Close.
func (m *Machine) Listen(serviceID uint64) (*ID, error) {
	const assignedRange = 0xff << 56
	switch {
	case m.closed:
		return nil, &Error{Op: "listen", Reason: "the machine is closed", Err: ErrInvalid}
	case serviceID == AssignServiceID:
		serviceID += m.assigned
		m.assigned++
	case serviceID&assignedRange == AssignServiceID:
		return nil, &Error{Op: "listen", Reason: "service ids 0x02... are for assigned ones: ask for AssignServiceID", Err: ErrInvalid}
	}
	c := m.listeners[serviceID]
	if c == nil {
		c = m.NewID()
		c.hidden, c.state, c.serviceID = true, Listening, serviceID
		m.listeners[serviceID] = c
	}
	c.listens++
	return c, nil
}

// Receive takes a MAD that arrived from an address, under a P_Key. What is no
// CM message is counted and dropped. On Ethernet the hop limit of from is that of
// the way back. b is not kept.
func (m *Machine) Receive(now time.Time, from mad.AddressVector, pkey mad.PKey, b *[mad.Size]byte) {
	if m.closed {
		return
	}
	r := received{now: now, pkey: pkey, data: (*body)(b[mad.HeaderSize:])}
	r.header.DecodeFrom((*[mad.HeaderSize]byte)(b[:]))
	h := &r.header
	if h.BaseVersion != mad.BaseVersion || h.MgmtClass != mad.ClassComMgt || h.ClassVersion != classVersion ||
		h.Method != mad.MethodSend || h.AttributeID < REQ.Attribute() || h.AttributeID > APR.Attribute() {
		m.stats.Invalid++
		return
	}
	// On Ethernet there is no answer without a GRH.
	if m.roce() && !from.HasGRH {
		m.stats.Invalid++
		return
	}
	r.from = m.answerTo(from)
	msg := Message(h.AttributeID - REQ.Attribute())
	m.stats.Received[msg]++
	switch handlers[msg](m, &r) {
	case duplicate:
		m.stats.Duplicates[msg]++
	case ignored:
		m.stats.Ignored[msg]++
	}
}

// outcome is what became of a received message.
type outcome uint8

const (
	taken outcome = iota
	duplicate
	ignored
)

var handlers = [Messages]func(*Machine, *received) outcome{
	REQ: (*Machine).receiveREQ, MRA: (*Machine).receiveMRA, REJ: (*Machine).receiveREJ, REP: (*Machine).receiveREP,
	RTU: (*Machine).receiveRTU, DREQ: (*Machine).receiveDREQ, DREP: (*Machine).receiveDREP,
	SIDRREQ: (*Machine).receiveSIDRREQ, SIDRREP: (*Machine).receiveSIDRREP,
	LAP: (*Machine).receiveLAP, APR: (*Machine).receiveAPR,
}

// find looks up the id that a message is for (cm_acquire_id). remote is 0 for an
// id that does not know its peer's yet.
func (m *Machine) find(local, remote uint32) *ID {
	c := m.ids[local]
	if c == nil || c.hidden || c.remoteID != remote {
		return nil
	}
	return c
}

// Next takes the next packet to transmit, until false.
func (m *Machine) Next(out *Packet) bool {
	p, ok := m.out.pop()
	if ok {
		*out = p
	}
	return ok
}

// Event takes the next event, until false. Events of ids that are destroyed
// meanwhile do not come.
func (m *Machine) Event() (Event, bool) {
	for {
		e, ok := m.events.pop()
		if !ok || !e.ID.destroyed {
			return e, ok
		}
	}
}

// Deadline says when Expire must be called next; the zero time is never.
func (m *Machine) Deadline() time.Time { return m.timers.next() }

// Expire does what is due: send again, give up, leave timewait.
func (m *Machine) Expire(now time.Time) {
	for c := m.timers.due(now); c != nil; c = m.timers.due(now) {
		c.expire(now)
	}
}

// IDs is the number of ids that are not destroyed, listeners included.
func (m *Machine) IDs() int { return len(m.ids) }

// Stats tells what was done since New.
func (m *Machine) Stats() Stats { return m.stats }

// Close destroys all ids in the order of their making. What they send can then
// be taken with Next; the Machine takes no more MADs, and its ids no calls.
func (m *Machine) Close(now time.Time) {
	ids := slices.SortedFunc(maps.Values(m.ids), func(a, b *ID) int { return cmp.Compare(a.seq, b.seq) })
	for _, c := range ids {
		c.listens = min(c.listens, 1)
		c.Destroy(now)
	}
	m.closed = true
}

// queue is a first-in first-out list.
type queue[T any] struct {
	items []T
	first int
}

// maxIdleQueue is how many items of room an empty queue keeps.
const maxIdleQueue = 64

func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

func (q *queue[T]) pop() (v T, ok bool) {
	if q.first == len(q.items) {
		return v, false
	}
	var zero T
	v, q.items[q.first] = q.items[q.first], zero
	q.first++
	if q.first == len(q.items) {
		q.items, q.first = q.items[:0], 0
		if cap(q.items) > maxIdleQueue {
			q.items = nil
		}
	}
	return v, true
}
