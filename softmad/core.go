package softmad

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// Positions that mad does not name.
const (
	offRMPPFlags  = mad.OffRMPP + 2 // in the lower 3 bits
	offOUI        = 37              // in vendor classes 0x30-0x4f (IBA 16.5)
	offHopPointer = 6               // in directed-route SMPs (IBA 14.2.1.2)
	offHopCount   = 7
	directionBit  = 0x8000 // D bit of a directed-route SMP, beside the status
)

// core is what the kernel's ib_mad and user_mad know about one port, without
// their waiting: a call brings the time, and leaves messages in the queues of
// files, wires to transmit in out, and its next deadline in timers.
type core struct {
	cfg     Config
	info    *port.Info // of the port, as last read
	hiTID   uint32     // last one given
	agents  map[uint32]*agent
	methods map[methodKey]*agent
	ouis    map[versionClass]map[uint32]int // agents per OUI
	timers  timers
	out     []Wire
	free    []*send // to be used again
	stats   Stats
}

// file is an open file: slots, unfinished sends and received packets.
type file struct {
	kernel bool // transaction ids are the sender's own
	slots  [port.MaxAgents]*agent
	sends  map[sendKey]*send // by key, chained by send.next
	queue  queue
	ready  *sync.Cond // signalled for each packet
	dead   error      // port.ErrClosed or port.ErrGone, or nil
}

func newCore(cfg Config, info *port.Info) core {
	return core{
		cfg:     cfg.withDefaults(),
		info:    info,
		agents:  make(map[uint32]*agent),
		methods: make(map[methodKey]*agent),
		ouis:    make(map[versionClass]map[uint32]int),
	}
}

func (f *file) freeSlot() int {
	for i, a := range f.slots {
		if a == nil {
			return i
		}
	}
	return -1
}

// closeFile unregisters all agents and drops what is queued (user_mad.c,
// ib_umad_close; on removal ib_umad_kill_port).
func (c *core) closeFile(f *file, why error) {
	for _, a := range f.slots {
		if a != nil {
			c.unregister(a)
		}
	}
	f.queue = queue{}
	f.dead = why
	f.ready.Broadcast()
}

// expire runs what is due.
func (c *core) expire(now time.Time) {
	for t := c.timers.due(now); t != nil; t = c.timers.due(now) {
		t.owner.expire(c, now)
	}
}

// transmit adds a wire to the outgoing ones.
func (c *core) transmit(to mad.AddressVector, key mad.PKey, b *[mad.Size]byte) {
	c.stats.Sent++
	to.PKeyIndex = 0
	c.out = append(c.out, Wire{Addr: to, PKey: key, MAD: *b})
}

// receive takes a wire from the link (mad.c, ib_mad_recv_done).
func (c *core) receive(now time.Time, w *Wire) {
	if w.Undelivered {
		c.stats.Undelivered++
		return
	}
	c.stats.Received++
	if !validMAD(&w.MAD) {
		c.stats.Invalid++
		return
	}
	class := mad.Class(w.MAD[mad.OffClass])
	w.Addr.PKeyIndex = 0
	if !isSMP(class) && w.PKey != 0 {
		i := pkeyIndex(c.info.PKeys, w.PKey)
		if i < 0 {
			c.stats.BadPKey++
			return
		}
		w.Addr.PKeyIndex = uint16(i)
	}
	a := c.route(&w.MAD)
	switch {
	case a == nil && mad.IsResponse(w.MAD[:]):
		c.stats.Unmatched++
	case a == nil:
		c.refuseRequest(w)
	case c.kernelRMPP(a) && rmppActive(w.MAD[:]):
		c.receiveRMPP(now, a, w)
	default:
		c.deliver(a, &w.Addr, w.MAD[:])
	}
}

// validMAD is the kernel's test of a MAD (mad.c, validate_mad). Of the CM class
// only ClassPortInfo uses methods other than Send.
func validMAD(b *[mad.Size]byte) bool {
	if b[0] != mad.BaseVersion {
		return false
	}
	return mad.Class(b[mad.OffClass]) != mad.ClassComMgt ||
		mad.Method(b[mad.OffMethod]) == mad.MethodSend ||
		mad.AttributeID(binary.BigEndian.Uint16(b[mad.OffAttribute:])) == mad.AttrClassPortInfo
}

// rmppActive tells whether b, of at least an RMPP header, is part of an RMPP
// transfer: its class has RMPP and the Active flag is set (IBA 13.6.2.1).
func rmppActive(b []byte) bool {
	return mad.HasRMPP(mad.Class(b[mad.OffClass])) && mad.RMPPFlags(b[offRMPPFlags])&mad.RMPPFlagActive != 0
}

// pkeyIndex finds the table entry that a received P_Key matches (IBA 10.9.3):
// the same key if it is there, else one of the same partition; -1 if none.
func pkeyIndex(table []mad.PKey, key mad.PKey) int {
	match := -1
	for i, k := range table {
		if !k.Matches(key) {
			continue
		}
		if k == key {
			return i
		}
		if match < 0 {
			match = i
		}
	}
	return match
}

// route finds the agent for a MAD (mad.c, find_mad_agent): a response by the
// upper half of its transaction id, whatever its class; a request by class
// version, class and method, and by OUI in the vendor classes that have one.
func (c *core) route(b *[mad.Size]byte) *agent {
	if mad.IsResponse(b[:]) {
		return c.agents[binary.BigEndian.Uint32(b[mad.OffTID:])]
	}
	k := methodKey{
		versionClass: versionClass{b[mad.OffClassVersion], mad.Class(b[mad.OffClass])},
		method:       b[mad.OffMethod] &^ mad.ResponseBit,
	}
	if hasOUI(k.class) {
		k.oui = binary.BigEndian.Uint32(b[offOUI-1:]) & 0xffffff
	}
	return c.methods[k]
}

// refuseRequest answers a Get or Set that nobody owns (mad.c,
// generate_unmatched_resp). Other requests are dropped.
func (c *core) refuseRequest(w *Wire) {
	c.stats.Unowned++
	if m := mad.Method(w.MAD[mad.OffMethod]); m != mad.MethodGet && m != mad.MethodSet {
		return
	}
	w.MAD[mad.OffMethod] = uint8(mad.MethodGetResp)
	status := mad.StatusBadAttribute
	if mad.Class(w.MAD[mad.OffClass]) == mad.ClassSubnDirected {
		status |= directionBit
	}
	binary.BigEndian.PutUint16(w.MAD[mad.OffStatus:], uint16(status))
	c.transmit(w.Addr, w.PKey, &w.MAD)
}

// deliver hands a whole message to an agent (mad.c, ib_mad_complete_recv). data
// of more than a MAD is kept, not copied.
func (c *core) deliver(a *agent, from *mad.AddressVector, data []byte) {
	if !mad.IsResponse(data) {
		c.enqueue(a, from, data)
		return
	}
	s := c.match(a, from, data)
	if s == nil {
		// Segments after the first have no send left to match; user RMPP needs
		// them all the same.
		if c.kernelRMPP(a) || !rmppActive(data) {
			c.stats.Unmatched++
			return
		}
		c.enqueue(a, from, data)
		return
	}
	// The kernel completes the response before the request.
	c.enqueue(a, from, data)
	c.finish(s)
	c.reuse(s)
}

// enqueue appends a received message to the file of an agent. Above the limit
// received messages are dropped, time-outs are not (user_mad.c, queue_packet).
func (c *core) enqueue(a *agent, from *mad.AddressVector, data []byte) {
	f := a.file
	if f.queue.received >= c.cfg.MaxQueued {
		c.stats.Dropped++
		return
	}
	f.queue.received++
	p := f.queue.push()
	p.agent, p.timedOut, p.timeout, p.retries, p.addr = a.id, false, 0, 0, *from
	if len(data) > len(p.mad) {
		p.n, p.long = 0, data
	} else {
		p.n, p.long = copy(p.mad[:], data), nil
	}
	f.ready.Signal()
}
