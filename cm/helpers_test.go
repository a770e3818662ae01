package cm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

var start = time.Unix(1_000_000, 0)

// Times of the tests. The kernel's rdma_cm uses 20 and 15, and 16 on Ethernet
// (cma.c: CMA_CM_RESPONSE_TIMEOUT, CMA_MAX_CM_RETRIES, CMA_IBOE_PACKET_LIFETIME);
// 15 is the ACK delay of soft RoCE.
const (
	lifeTimeCode     = 16 // 2^(16-8) = 256 ms
	responseTimeCode = 20 // 2^(20-8) = 4096 ms
	maxRetries       = 15
	ackDelayCode     = 15

	service = 0x0000000001060000 | 4711 // port space TCP, a port
)

// node is a Machine with its address, and what a consumer does with its events.
type node struct {
	*Machine
	name string
	lid  mad.LID
	on   func(*node, Event)
}

// fabric joins two nodes without delay.
type fabric struct {
	*testing.T
	now     time.Time
	a, b    *node
	lose    map[string]int // "A>REQ": how many of the next are lost
	log     []string
	packets []Packet // all that were sent
	sender  []*node  // by whom
}

func gid(lid mad.LID) mad.GID { return mad.MakeGID(mad.DefaultGIDPrefix, 0x100+mad.GUID(lid)) }

func config(lid mad.LID) Config {
	return Config{
		Info: port.Info{
			Device: "test", Port: 1, NodeGUID: 0x1000 + mad.GUID(lid), LID: lid,
			GIDs: []mad.GID{gid(lid)}, PKeys: []mad.PKey{0xffff, 0x8001},
		},
		TIDHigh: 0xaa00 + uint32(lid), Random: 0x5a5a0000 + uint32(lid), AckDelay: ackDelayCode,
	}
}

func newFabric(t *testing.T) *fabric {
	return &fabric{
		T: t, now: start, lose: make(map[string]int),
		a: &node{Machine: New(config(5)), name: "A", lid: 5},
		b: &node{Machine: New(config(7)), name: "B", lid: 7},
	}
}

func (f *fabric) other(n *node) *node {
	if n == f.a {
		return f.b
	}
	return f.a
}

func (f *fabric) note(format string, args ...any) {
	f.log = append(f.log, fmt.Sprintf("%v %s", f.now.Sub(start), fmt.Sprintf(format, args...)))
}

// pump carries packets and events until there are none.
func (f *fabric) pump() {
	f.Helper()
	for again := true; again; {
		again = false
		for _, n := range []*node{f.a, f.b} {
			again = f.events(n) || again
			var p Packet
			for n.Next(&p) {
				again = true
				f.carry(n, &p)
			}
		}
	}
}

// events hands a node's events to its consumer.
func (f *fabric) events(n *node) (any bool) {
	for e, ok := n.Event(); ok; e, ok = n.Event() {
		any = true
		f.note("%s: %v", n.name, e.Type)
		if n.on != nil {
			n.on(n, e)
		}
	}
	return any
}

// carry delivers a packet to the other node, or loses it.
func (f *fabric) carry(from *node, p *Packet) {
	f.packets, f.sender = append(f.packets, *p), append(f.sender, from)
	msg := messageOf(&p.MAD)
	key := from.name + ">" + msg.String()
	to := f.other(from)
	if f.lose[key] > 0 {
		f.lose[key]--
		f.note("%s lost", key)
		return
	}
	f.note("%s", key)
	if p.Addr.LID != to.lid || p.Addr.QPN != 1 {
		f.Fatalf("%s goes to %v QP %d, not to LID %d QP 1", key, p.Addr, p.Addr.QPN, to.lid)
	}
	to.Receive(f.now, mad.AddressVector{LID: from.lid, QPN: 1, SL: p.Addr.SL, PKeyIndex: p.Addr.PKeyIndex}, p.PKey, &p.MAD)
	f.events(to)
}

func messageOf(b *[mad.Size]byte) Message {
	var h mad.Header
	h.DecodeFrom((*[mad.HeaderSize]byte)(b[:]))
	return Message(h.AttributeID - REQ.Attribute())
}

// deadline is the next of both.
func (f *fabric) deadline() time.Time {
	a, b := f.a.Deadline(), f.b.Deadline()
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// run goes on until a moment after the start.
func (f *fabric) run(until time.Duration) {
	f.Helper()
	end := start.Add(until)
	f.pump()
	for d := f.deadline(); !d.IsZero() && !d.After(end); d = f.deadline() {
		if d.Before(f.now) {
			f.Fatalf("deadline %v before now %v", d.Sub(start), f.now.Sub(start))
		}
		f.now = d
		f.a.Expire(f.now)
		f.b.Expire(f.now)
		f.pump()
	}
	f.now = end
}

// expect compares what happened with lines, and forgets it.
func (f *fabric) expect(want string) {
	f.Helper()
	var lines []string
	for l := range strings.Lines(want) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	if !slices.Equal(f.log, lines) {
		f.Fatalf("happened:\n%s\nwant:\n%s", strings.Join(f.log, "\n"), strings.Join(lines, "\n"))
	}
	f.log = nil
}

// last is the last packet of a kind that a node sent.
func (f *fabric) last(n *node, msg Message) *Packet {
	f.Helper()
	for i := len(f.packets) - 1; i >= 0; i-- {
		if f.sender[i] == n && messageOf(&f.packets[i].MAD) == msg {
			return &f.packets[i]
		}
	}
	f.Fatalf("%s sent no %v", n.name, msg)
	return nil
}

func (f *fabric) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// checkEmpty destroys all ids and fails if anything is left.
func (f *fabric) checkEmpty() {
	f.Helper()
	for _, n := range []*node{f.a, f.b} {
		n.Close(f.now)
		checkTables(f.T, n.Machine)
	}
}

func checkTables(t *testing.T, m *Machine) {
	t.Helper()
	if n := m.IDs() + len(m.listeners) + len(m.remoteIDs) + len(m.remoteQPs) + len(m.remoteReq); n != 0 {
		t.Fatalf("left in the tables: %d ids, %d listeners, %d remote ids, %d remote queue pairs, %d SIDR_REQs",
			m.IDs(), len(m.listeners), len(m.remoteIDs), len(m.remoteQPs), len(m.remoteReq))
	}
	if !m.Deadline().IsZero() {
		t.Fatalf("a timer is left")
	}
}

func path(from, to mad.LID) mad.PathRecord {
	return mad.PathRecord{
		SGID: gid(from), DGID: gid(to), SLID: from, DLID: to, Reversible: true, PKey: 0xffff, SL: 3,
		MTU: mad.MTU2048, Rate: mad.Rate100G, PacketLifeTime: lifeTimeCode,
	}
}

func request() *Request {
	return &Request{
		Primary: path(5, 7), ServiceID: service, QPN: 0x112233, QPType: RC, StartingPSN: 0x445566,
		ResponderResources: 4, InitiatorDepth: 2, RemoteCMResponseTimeout: responseTimeCode,
		LocalCMResponseTimeout: responseTimeCode, RetryCount: 7, RNRRetryCount: 6, MaxCMRetries: maxRetries,
		PrivateData: []byte("request"),
	}
}

func reply() *Reply {
	return &Reply{
		QPN: 0x778899, StartingPSN: 0xaabbcc, ResponderResources: 1, InitiatorDepth: 3, RNRRetryCount: 5,
		PrivateData: []byte("reply"),
	}
}

// accept is a consumer that takes part in everything, and keeps its ids.
func accept(f *fabric) func(*node, Event) {
	return func(n *node, e Event) {
		switch e.Type {
		case EventREQReceived:
			f.must(e.ID.Reply(f.now, reply()))
		case EventREPReceived:
			f.must(e.ID.ReadyToUse(f.now, []byte("ready")))
		case EventDREQReceived:
			f.must(e.ID.ReplyDisconnect(f.now, []byte("bye")))
		case EventSIDRREQReceived:
			f.must(e.ID.ReplySIDR(f.now, &SIDRReply{QPN: 0x4321, QKey: 0x1ee7}))
			e.ID.Destroy(f.now)
		}
	}
}

// listenAll makes both consumers accept, and B listen.
func (f *fabric) listenAll() *ID {
	f.Helper()
	f.a.on, f.b.on = accept(f), accept(f)
	l, err := f.b.Listen(service)
	f.must(err)
	return l
}

// connect makes a connection from A to B and gives both its ids.
func (f *fabric) connect() (a, b *ID) {
	f.Helper()
	a = f.a.NewID()
	f.must(a.Connect(f.now, request()))
	f.pump()
	b = f.b.ids[a.RemoteID()]
	if a.State() != Established || b == nil || b.State() != Established {
		f.Fatalf("not connected: %v", f.log)
	}
	f.log = nil
	return a, b
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	var e *Error
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	} else if want != nil && (!errors.As(err, &e) || e.Reason == "" || !strings.HasPrefix(err.Error(), "cm: "+e.Op+": ")) {
		t.Errorf("error %q, want a *Error with operation and reason", err)
	}
}
