package softmad

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// rig is a core with one open file and a clock that tests turn by hand.
type rig struct {
	testing.TB
	core
	f   *file
	now time.Time
}

var (
	ownGIDs = []mad.GID{mad.MakeGID(mad.DefaultGIDPrefix, 0x11), {}, mad.MakeGID(0xfec0<<48, 0x11)}
	peer    = mad.AddressVector{LID: 9, QPN: mad.QPGSI}
)

func newRig(t testing.TB, cfg Config) *rig {
	if cfg.MaxQueued == 0 {
		cfg.MaxQueued = 1000
	}
	info := &port.Info{LID: 4, GIDs: ownGIDs, PKeys: []mad.PKey{0xffff, 0, 0x8001, 0x7002}}
	r := &rig{TB: t, core: newCore(cfg, info), now: time.Unix(1000, 0)}
	r.f = &file{sends: make(map[sendKey]*send), ready: sync.NewCond(new(sync.Mutex))}
	return r
}

func (r *rig) reg(reg port.Registration) *agent {
	r.Helper()
	a, err := r.register(r.f, reg)
	if err != nil {
		r.Fatal(err)
	}
	return a
}

func (r *rig) vendor(mode port.RMPPMode, methods ...mad.Method) *agent {
	r.Helper()
	return r.reg(port.Registration{
		QPN: 1, Class: 0x32, Version: 1, OUI: 0xabc, Methods: port.Methods(methods...), RMPP: mode,
	})
}

// vendorMAD makes a MAD of the class of rig.vendor.
func vendorMAD(method mad.Method, tid uint64) []byte {
	b := make([]byte, mad.Size)
	b[0], b[mad.OffClass], b[mad.OffClassVersion], b[mad.OffMethod] = 1, 0x32, 1, uint8(method)
	binary.BigEndian.PutUint64(b[mad.OffTID:], tid)
	binary.BigEndian.PutUint32(b[36:], 0xabc)
	return b
}

func (r *rig) post(m port.Message) error { return r.core.send(r.now, r.f, &m) }

func (r *rig) mustPost(m port.Message) {
	r.Helper()
	if err := r.post(m); err != nil {
		r.Fatal(err)
	}
}

// sent takes what the core wants to transmit.
func (r *rig) sent() []Wire {
	out := r.out
	r.out = nil
	return out
}

func (r *rig) sentOne() Wire {
	r.Helper()
	out := r.sent()
	if len(out) != 1 {
		r.Fatalf("%d wires sent, want 1", len(out))
	}
	return out[0]
}

func (r *rig) arrive(from mad.AddressVector, key mad.PKey, b []byte) {
	w := Wire{Addr: from, PKey: key}
	copy(w.MAD[:], b)
	r.receive(r.now, &w)
}

// turn moves the clock, stopping at each deadline.
func (r *rig) turn(d time.Duration) {
	end := r.now.Add(d)
	for next := r.timers.next(); !next.IsZero() && !next.After(end); next = r.timers.next() {
		r.now = next
		r.expire(r.now)
	}
	r.now = end
}

// got takes the next message of the file, or nil.
func (r *rig) got() *port.Message {
	if r.f.queue.n == 0 {
		return nil
	}
	m := new(port.Message)
	if long := r.f.queue.pop(m); long != nil {
		m.Data = long
	}
	return m
}

func (r *rig) gotNone(what string) {
	r.Helper()
	if m := r.got(); m != nil {
		r.Errorf("%s: message %+v, want none", what, m)
	}
}

func asResponse(b []byte) []byte {
	b = bytes.Clone(b)
	b[mad.OffMethod] |= mad.ResponseBit
	return b
}

func TestHiTIDIsCyclic(t *testing.T) {
	r := newRig(t, Config{})
	first := r.reg(port.Registration{QPN: 1})
	r.hiTID = 1<<24 - 2
	for _, want := range []uint32{1<<24 - 1, 2} {
		if a := r.reg(port.Registration{QPN: 1}); a.hiTID != want {
			t.Errorf("hi TID %#x, want %#x", a.hiTID, want)
		}
	}
	if first.hiTID != 1 {
		t.Errorf("first hi TID %#x, want 1", first.hiTID)
	}
}

func TestHiTIDsInRange(t *testing.T) {
	r := newRig(t, Config{FirstTID: 0x70001, LastTID: 0x70003})
	var agents []*agent
	for _, want := range []uint32{0x70001, 0x70002, 0x70003} {
		a := r.reg(port.Registration{QPN: 1})
		if a.hiTID != want {
			t.Errorf("hi TID %#x, want %#x", a.hiTID, want)
		}
		agents = append(agents, a)
	}
	if _, err := r.register(r.f, port.Registration{QPN: 1}); !errors.Is(err, port.ErrNoSlot) {
		t.Errorf("one agent more than transaction ids: error %v, want ErrNoSlot", err)
	}
	r.unregister(agents[1])
	if a := r.reg(port.Registration{QPN: 1}); a.hiTID != 0x70002 {
		t.Errorf("hi TID %#x, want the free one", a.hiTID)
	}
}

func TestQueuedSurvivesUnregister(t *testing.T) {
	r := newRig(t, Config{})
	a := r.vendor(port.RMPPNone, mad.MethodSend)
	r.arrive(peer, 0xffff, vendorMAD(mad.MethodSend, 5))
	r.unregister(a)
	r.arrive(peer, 0xffff, vendorMAD(mad.MethodSend, 6))
	if m := r.got(); m == nil || m.Agent != a.id || binary.BigEndian.Uint64(m.Data[8:]) != 5 {
		t.Errorf("message %+v, want the one queued before", m)
	}
	r.gotNone("after unregister")
}

// Received messages stop at the limit, time-outs do not.
func TestReceiveLimit(t *testing.T) {
	r := newRig(t, Config{MaxQueued: 3})
	a := r.vendor(port.RMPPNone, mad.MethodSend)
	for i := range uint64(5) {
		r.mustPost(port.Message{Agent: a.id, Addr: peer, Timeout: time.Second, Data: vendorMAD(mad.MethodGet, i)})
		r.arrive(peer, 0xffff, vendorMAD(mad.MethodSend, i))
	}
	r.turn(time.Second)
	if r.stats.Dropped != 2 || r.stats.TimedOut != 5 {
		t.Errorf("stats %+v, want 2 dropped, 5 timed out", r.stats)
	}
	for range 8 {
		if r.got() == nil {
			t.Fatal("message lost")
		}
	}
	r.gotNone("after all")
	for i := range uint64(4) {
		r.mustPost(port.Message{Agent: a.id, Addr: peer, Timeout: time.Second, Data: vendorMAD(mad.MethodGet, i)})
	}
	r.turn(time.Second)
	r.arrive(peer, 0xffff, vendorMAD(mad.MethodSend, 9))
	if r.stats.Dropped != 2 {
		t.Error("time-outs took the room of received messages")
	}
}

func TestQueueKeepsOrder(t *testing.T) {
	var q queue
	in, out := 0, 0
	var m port.Message
	for _, c := range []struct{ push, pop int }{{10, 7}, {12, 3}, {40, 52}, {3000, 3000}, {5, 5}} {
		for range c.push {
			p := q.push()
			p.retries, p.timedOut = in, true
			in++
		}
		for range c.pop {
			q.pop(&m)
			if m.Retries != out {
				t.Fatalf("packet %d, want %d", m.Retries, out)
			}
			out++
		}
	}
	if q.n != 0 || len(q.ring) > maxIdleRing {
		t.Errorf("%d packets left, room for %d kept", q.n, len(q.ring))
	}
}

// Deadlines of one moment end in the order they were set.
func TestTimeOutsOfOneMoment(t *testing.T) {
	r := newRig(t, Config{})
	a := r.vendor(port.RMPPNone)
	for i := range uint64(20) {
		r.mustPost(port.Message{Agent: a.id, Addr: peer, Timeout: time.Second, Data: vendorMAD(mad.MethodGet, i)})
	}
	r.turn(time.Second)
	for i := range uint32(20) {
		if m := r.got(); m == nil || binary.BigEndian.Uint32(m.Data[12:]) != i {
			t.Fatalf("message %+v, want the time-out of %d", m, i)
		}
	}
}

// Sends with the same transaction id and class end each by itself.
func TestSendsOfOneKey(t *testing.T) {
	r := newRig(t, Config{})
	a := r.vendor(port.RMPPNone)
	b := asResponse(vendorMAD(mad.MethodGet, 1<<32|5))
	timeouts := []time.Duration{2, 1, 4, 3}
	for i, s := range timeouts {
		r.mustPost(port.Message{Agent: a.id, Addr: mad.AddressVector{LID: mad.LID(i)}, Timeout: s * time.Second, Data: b})
	}
	for _, lid := range []mad.LID{1, 0, 3, 2} {
		r.turn(time.Second)
		if m := r.got(); m == nil || m.Addr.LID != lid {
			t.Errorf("message %+v, want the time-out of the response to %d", m, lid)
		}
		r.gotNone("at the same time")
	}
	r.checkEmpty()
}

func TestInvalidMADs(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(b []byte)
		valid bool
	}{
		{"as it is", func([]byte) {}, true},
		{"base version 0", func(b []byte) { b[0] = 0 }, false},
		{"OPA base version", func(b []byte) { b[0] = 0x80 }, false},
		{"CM Send", func(b []byte) { b[1], b[3], b[17] = 0x07, 0x03, 0x10 }, true},
		{"CM Get", func(b []byte) { b[1], b[3], b[17] = 0x07, 0x01, 0x10 }, false},
		{"CM Get ClassPortInfo", func(b []byte) { b[1], b[3], b[17] = 0x07, 0x01, 0x01 }, true},
	} {
		r := newRig(t, Config{})
		b := vendorMAD(mad.MethodGet, 1)
		c.edit(b)
		r.arrive(peer, 0xffff, b)
		if valid := r.stats.Invalid == 0; valid != c.valid {
			t.Errorf("%s: valid %v, want %v", c.name, valid, c.valid)
		}
	}
}

func TestUndelivered(t *testing.T) {
	r := newRig(t, Config{})
	a := r.vendor(port.RMPPNone)
	r.mustPost(port.Message{Agent: a.id, Addr: peer, Timeout: time.Second, Data: vendorMAD(mad.MethodGet, 1)})
	w := r.sentOne()
	w.Undelivered = true
	r.receive(r.now, &w)
	r.gotNone("undelivered")
	if r.stats.Undelivered != 1 || r.stats.Received != 0 {
		t.Errorf("stats %+v", r.stats)
	}
	r.turn(time.Second)
	if m := r.got(); m == nil || !m.TimedOut {
		t.Errorf("message %+v, want a time-out", m)
	}
}

// A Get that nobody owns is answered to its sender, with the D bit in directed
// routes.
func TestRefuseRequest(t *testing.T) {
	for _, c := range []struct {
		class, status string
		key, wantKey  mad.PKey
	}{{"\x04", "\x00\x0c", 0x8001, 0x8001}, {"\x01", "\x00\x0c", 0xffff, 0xffff}, {"\x81", "\x80\x0c", 0xffff, 0xffff}} {
		r := newRig(t, Config{})
		b := vendorMAD(mad.MethodSet, 0x1122334455667788)
		b[mad.OffClass] = c.class[0]
		from := mad.AddressVector{LID: 17, QPN: 3, SL: 2, PathBits: 1}
		r.arrive(from, c.key, b)
		copy(b[3:6], "\x81"+c.status)
		if w := r.sentOne(); w.Addr != from || w.PKey != c.wantKey || !bytes.Equal(w.MAD[:], b) {
			t.Errorf("class %x: answered %v %v\n%x, want\n%x", c.class, w.Addr, w.PKey, w.MAD, b)
		}
	}
}

// The P_Key of a received MAD is told by index: the same key first, else one of
// the same partition that may talk.
func TestReceivedPKey(t *testing.T) {
	table := []mad.PKey{0x7fff, 0xffff, 0, 0x8001, 0x0002}
	for key, want := range map[mad.PKey]int{
		0xffff: 1, 0x7fff: 1, 0x8001: 3, 0x0001: 3, 0x8002: 4,
		0x0002: -1, // both limited
		0x9000: -1, // unknown
		0:      0,  // the carrier has none
	} {
		r := newRig(t, Config{})
		r.core.info.PKeys = table
		r.vendor(port.RMPPNone, mad.MethodSend)
		r.arrive(peer, key, vendorMAD(mad.MethodSend, 1))
		m := r.got()
		if want < 0 {
			if m != nil || r.stats.BadPKey != 1 {
				t.Errorf("P_Key %v: delivered, want it dropped", key)
			}
			continue
		}
		if m == nil || int(m.Addr.PKeyIndex) != want {
			t.Errorf("P_Key %v: message %+v, want index %d", key, m, want)
		}
	}
}

func TestSentPKeyAndGID(t *testing.T) {
	r := newRig(t, Config{})
	a := r.vendor(port.RMPPNone)
	smp := r.reg(port.Registration{QPN: 0})
	for _, c := range []struct {
		name string
		id   port.AgentID
		edit func(m *port.Message)
		want mad.PKey // 0: refused
	}{
		{"index 0", a.id, func(*port.Message) {}, 0xffff},
		{"index 2", a.id, func(m *port.Message) { m.Addr.PKeyIndex = 2 }, 0x8001},
		{"empty P_Key", a.id, func(m *port.Message) { m.Addr.PKeyIndex = 1 }, 0},
		{"no such P_Key", a.id, func(m *port.Message) { m.Addr.PKeyIndex = 4 }, 0},
		{"SMPs have none", smp.id, func(m *port.Message) { m.Addr.PKeyIndex, m.Data[1] = 4, 0x01 }, 0xffff},
		{"GID", a.id, func(m *port.Message) { m.Addr.HasGRH, m.Addr.GRH.GIDIndex = true, 2 }, 0xffff},
		{"empty GID", a.id, func(m *port.Message) { m.Addr.HasGRH, m.Addr.GRH.GIDIndex = true, 1 }, 0},
		{"no such GID", a.id, func(m *port.Message) { m.Addr.HasGRH, m.Addr.GRH.GIDIndex = true, 3 }, 0},
	} {
		m := port.Message{Agent: c.id, Addr: peer, Data: vendorMAD(mad.MethodGet, 1)}
		c.edit(&m)
		err := r.post(m)
		if c.want == 0 {
			if !errors.Is(err, port.ErrInvalid) {
				t.Errorf("%s: error %v, want ErrInvalid", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if w := r.sentOne(); w.PKey != c.want {
			t.Errorf("%s: P_Key %v, want %v", c.name, w.PKey, c.want)
		}
	}
}

func TestEthernet(t *testing.T) {
	r := newRig(t, Config{})
	r.core.info.LinkLayer = port.LinkEthernet
	if _, err := r.register(r.f, port.Registration{QPN: 0}); !errors.Is(err, port.ErrNoQP) {
		t.Errorf("QP0: error %v, want ErrNoQP", err)
	}
	a := r.vendor(port.RMPPNone)
	m := port.Message{Agent: a.id, Addr: peer, Data: vendorMAD(mad.MethodGet, 1)}
	if err := r.post(m); !errors.Is(err, port.ErrInvalid) {
		t.Errorf("without GRH: error %v, want ErrInvalid", err)
	}
	m.Addr.HasGRH = true
	r.mustPost(m)
}

// Path arrays have 64 entries, the first unused (IBA 14.2.1.2).
func TestDirectedRouteChecks(t *testing.T) {
	r := newRig(t, Config{})
	a := r.reg(port.Registration{QPN: 0, Class: mad.ClassSubnDirected, Version: 1})
	for _, c := range []struct {
		ptr, count byte
		ok         bool
	}{{0, 0, true}, {0, 63, true}, {64, 63, true}, {0, 64, false}, {0, 255, false}, {3, 1, false}, {255, 255, false}} {
		b := vendorMAD(mad.MethodGet, 1)
		b[1], b[6], b[7] = 0x81, c.ptr, c.count
		err := r.post(port.Message{Agent: a.id, Addr: mad.AddressVector{LID: mad.PermissiveLID}, Data: b})
		if (err == nil) != c.ok || err != nil && !errors.Is(err, port.ErrInvalid) {
			t.Errorf("hop pointer %d of %d: error %v, want ok %v", c.ptr, c.count, err, c.ok)
		}
	}
}

// Which addresses a response may come from (mad.c, rcv_has_same_gid).
func TestResponseAddress(t *testing.T) {
	grh := func(remote mad.GID, index uint8) mad.AddressVector {
		return mad.AddressVector{LID: 9, QPN: 1, HasGRH: true, GRH: mad.GRH{GID: remote, GIDIndex: index}}
	}
	g1, g2 := mad.MakeGID(1, 1), mad.MakeGID(2, 2)
	for _, c := range []struct {
		name     string
		lmc      uint8
		to, from mad.AddressVector
		want     bool
	}{
		{"same LID", 0, peer, peer, true},
		{"other LID", 0, peer, mad.AddressVector{LID: 10}, true},
		{"path bits without LMC", 0, peer, mad.AddressVector{LID: 9, PathBits: 1}, true},
		{"own path bits", 2, mad.AddressVector{LID: 9, PathBits: 2}, mad.AddressVector{LID: 9, PathBits: 6}, true},
		{"other path bits", 2, mad.AddressVector{LID: 9, PathBits: 2}, mad.AddressVector{LID: 9, PathBits: 3}, false},
		{"GRH only there", 0, peer, grh(g1, 0), false},
		{"GRH only here", 0, grh(g1, 0), peer, false},
		{"other remote GID", 0, grh(g1, 2), grh(g2, 2), true},
		{"other own GID", 0, grh(g1, 2), grh(g1, 0), false},
	} {
		r := newRig(t, Config{})
		r.core.info.LMC = c.lmc
		a := r.vendor(port.RMPPNone)
		r.mustPost(port.Message{Agent: a.id, Addr: c.to, Timeout: time.Second, Data: vendorMAD(mad.MethodGet, 1)})
		w := r.sentOne()
		r.arrive(c.from, 0xffff, asResponse(w.MAD[:]))
		if got := r.got() != nil; got != c.want {
			t.Errorf("%s: delivered %v, want %v", c.name, got, c.want)
		}
	}
}

// Responses to directed-route SMPs may come with permissive LIDs and any GRH.
func TestDirectedResponseAddress(t *testing.T) {
	r := newRig(t, Config{})
	r.core.info.LMC = 3
	a := r.reg(port.Registration{QPN: 0, Class: mad.ClassSubnDirected, Version: 1})
	b := vendorMAD(mad.MethodGet, 1)
	b[1] = 0x81
	r.mustPost(port.Message{Agent: a.id, Addr: mad.AddressVector{LID: mad.PermissiveLID}, Timeout: time.Second, Data: b})
	w := r.sentOne()
	r.arrive(mad.AddressVector{LID: mad.PermissiveLID, PathBits: 5, HasGRH: true}, 0xffff, asResponse(w.MAD[:]))
	if r.got() == nil {
		t.Error("response was not delivered")
	}
}

// What is a response without the R bit: TrapRepress, and in the baseboard class
// bit 0 of the attribute modifier (mad.c, ib_response_mad).
func TestOddResponsesKeepTheirTID(t *testing.T) {
	for _, edit := range []func(b []byte){
		func(b []byte) { b[3] = 0x07 },
		func(b []byte) { b[1], b[23] = 0x05, 1 },
	} {
		r := newRig(t, Config{})
		a := r.reg(port.Registration{QPN: 1})
		b := vendorMAD(mad.MethodSend, 0x1122334455667788)
		edit(b)
		r.mustPost(port.Message{Agent: a.id, Addr: peer, Data: b})
		if w := r.sentOne(); !bytes.Equal(w.MAD[8:16], b[8:16]) {
			t.Errorf("transaction id went out as %x, want %x", w.MAD[8:16], b[8:16])
		}
	}
}

// A user's segments share a transaction id, the messages of a kernel-RMPP agent
// may not.
func TestDuplicateSegments(t *testing.T) {
	for mode, want := range map[port.RMPPMode]error{port.RMPPUser: nil, port.RMPPNone: nil, port.RMPPKernel: port.ErrDuplicateTID} {
		r := newRig(t, Config{})
		a := r.vendor(mode)
		m := port.Message{Agent: a.id, Addr: peer, Timeout: time.Second, Data: segment(vendorMAD(mad.MethodGetMulti, 1), 1, 220, 0)}
		r.mustPost(m)
		if err := r.post(m); !errors.Is(err, want) {
			t.Errorf("RMPP mode %d: error %v, want %v", mode, err, want)
		}
	}
}

// Segments for an agent that is gone find nobody.
func TestSegmentAfterUnregister(t *testing.T) {
	r := newRig(t, Config{})
	a := r.vendor(port.RMPPUser)
	r.unregister(a)
	r.arrive(peer, 0xffff, asResponse(segment(vendorMAD(mad.MethodGetMulti, uint64(a.hiTID)<<32|5), 2, 220, 0)))
	r.gotNone("after unregister")
	if r.stats.Unmatched != 1 {
		t.Errorf("stats %+v, want 1 unmatched", r.stats)
	}
}

// Without RMPP in the carrier, active MADs pass as they are.
func TestRawRMPP(t *testing.T) {
	r := newRig(t, Config{RawRMPP: true})
	a := r.vendor(port.RMPPKernel)
	b := vendorMAD(mad.MethodGetTable, 1)
	copy(b[24:], []byte{1, 1, 7, 0, 0, 0, 0, 1})
	r.mustPost(port.Message{Agent: a.id, Addr: peer, Timeout: time.Second, Data: b})
	w := r.sentOne()
	if !bytes.Equal(w.MAD[16:], b[16:]) {
		t.Errorf("sent %x, want %x", w.MAD[16:], b[16:])
	}
	long := append(b, 0)
	if err := r.post(port.Message{Agent: a.id, Addr: peer, Data: long}); !errors.Is(err, port.ErrInvalid) {
		t.Errorf("long message: error %v, want ErrInvalid", err)
	}
	for range 2 { // the second has nothing to match
		r.arrive(peer, 0xffff, asResponse(w.MAD[:]))
		if m := r.got(); m == nil || !bytes.Equal(m.Data, asResponse(w.MAD[:])) {
			t.Errorf("message %+v, want the active MAD as it came", m)
		}
	}
	if len(r.sent()) != 0 {
		t.Error("acknowledged")
	}
}

// segment makes a segment with the method and transaction id of b.
func segment(b []byte, n, payload uint32, flags mad.RMPPFlags) []byte {
	var pkt [mad.Size]byte
	copy(pkt[:], b)
	rmpp.PutHeader(&pkt, mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: flags | mad.RMPPFlagActive, Data1: n, Data2: payload})
	return pkt[:]
}

// The kernel gives up a message 40 s after its first segment, with ABORT T2L,
// and remembers a finished one for 10 s (mad_rmpp.c).
func TestTransferTimes(t *testing.T) {
	r := newRig(t, Config{})
	a := r.vendor(port.RMPPKernel, mad.MethodGetMulti)
	request := vendorMAD(mad.MethodGetMulti, 0x77)
	header := func(w Wire) mad.RMPPHeader { return rmpp.ParseHeader(&w.MAD) }

	r.arrive(peer, 0xffff, segment(request, 1, 2*220, mad.RMPPFlagFirst))
	w := r.sentOne()
	if h := header(w); h.RMPPType != mad.RMPPTypeACK || h.Data1 != 1 || h.Data2 != 65 || w.Addr != peer ||
		w.MAD[mad.OffMethod] != uint8(mad.MethodGetMulti)|mad.ResponseBit {
		t.Errorf("answer to segment 1: %+v, want ACK 1 with window 65", h)
	}
	r.turn(40*time.Second - 1)
	if out := r.sent(); len(out) != 0 {
		t.Errorf("%d wires within 40 s", len(out))
	}
	r.turn(1)
	if h := header(r.sentOne()); h.RMPPType != mad.RMPPTypeAbort || h.RMPPStatus != 118 {
		t.Errorf("after 40 s: %+v, want ABORT 118", h)
	}
	r.gotNone("aborted")

	request = vendorMAD(mad.MethodGetMulti, 0x78)
	r.arrive(peer, 0xffff, segment(request, 1, 30, mad.RMPPFlagFirst|mad.RMPPFlagLast))
	r.sentOne()
	if m := r.got(); m == nil || len(m.Data) != 36+30 {
		t.Errorf("message %+v, want one of 66 bytes", m)
	}
	r.turn(10*time.Second - 1)
	r.arrive(peer, 0xffff, segment(request, 1, 30, mad.RMPPFlagFirst|mad.RMPPFlagLast))
	if h := header(r.sentOne()); h.RMPPType != mad.RMPPTypeACK || h.Data1 != 1 {
		t.Errorf("repeated segment: %+v, want ACK 1", h)
	}
	r.gotNone("repeated")
	r.turn(time.Minute)
	if len(a.transfers) != 0 || !r.timers.next().IsZero() {
		t.Errorf("%d transfers are still remembered", len(a.transfers))
	}
	if r.stats.Aborted != 1 {
		t.Errorf("stats %+v, want 1 aborted", r.stats)
	}
}

// longMAD makes a message for an agent with kernel RMPP, with n bytes of data.
func longMAD(method mad.Method, tid uint64, n int) []byte {
	b := append(vendorMAD(method, tid)[:40], make([]byte, n)...)
	clear(b[24:36])
	b[26] = 1 // Active
	return b
}

// ack makes the ACK of a segment.
func ack(b []byte, n, window uint32) []byte {
	pkt := [mad.Size]byte(b)
	pkt[mad.OffMethod] ^= mad.ResponseBit
	rmpp.PutHeader(&pkt, mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeACK, RMPPFlags: mad.RMPPFlagActive, Data1: n, Data2: window})
	return pkt[:]
}

// A request in segments grants a window of 1 for its answer when its last
// segment is acknowledged, and again when that ACK is repeated.
func TestRequesterTurnsRound(t *testing.T) {
	r := newRig(t, Config{})
	a := r.vendor(port.RMPPKernel)
	r.mustPost(port.Message{Agent: a.id, Addr: peer, Timeout: time.Second, Data: longMAD(mad.MethodGetMulti, 1, 100)})
	w := r.sentOne()
	last := ack(w.MAD[:], 1, 65)
	for range 2 {
		r.arrive(peer, 0xffff, last)
		w := r.sentOne()
		if h := rmpp.ParseHeader(&w.MAD); h.RMPPType != mad.RMPPTypeACK || h.Data1 != 0 || h.Data2 != 1 ||
			w.MAD[mad.OffMethod] != uint8(mad.MethodGetMulti) {
			t.Errorf("sent %+v, want the ACK of segment 0 with window 1", h)
		}
	}
	r.turn(time.Second)
	if m := r.got(); m == nil || !m.TimedOut {
		t.Errorf("message %+v, want a time-out", m)
	}
}

// The answer to a request in segments uses the window that the requester grants.
func TestResponderUsesGrant(t *testing.T) {
	for grant, want := range map[uint32]int{0: 1, 1: 1, 5: 5} {
		r := newRig(t, Config{})
		a := r.vendor(port.RMPPKernel, mad.MethodGetMulti)
		request := segment(vendorMAD(mad.MethodGetMulti, 0x99), 1, 220, mad.RMPPFlagFirst|mad.RMPPFlagLast)
		r.arrive(peer, 0xffff, request)
		r.sent()
		if grant > 0 {
			turn := ack(request, 0, grant)
			turn[mad.OffMethod] ^= mad.ResponseBit // from the requester
			r.arrive(peer, 0xffff, turn)
		}
		r.mustPost(port.Message{Agent: a.id, Addr: peer, Data: longMAD(mad.MethodGetMultiResp, 0x99, 2000)})
		if n := len(r.sent()); n != want {
			t.Errorf("window of %d granted: %d segments sent, want %d", grant, n, want)
		}
	}
}

// A STOP or an ABORT of the peer ends a message without a word to the user.
func TestPeerAborts(t *testing.T) {
	for _, h := range []mad.RMPPHeader{
		{RMPPVersion: 1, RMPPType: mad.RMPPTypeStop, RMPPStatus: mad.RMPPStatusResourcesExhausted, RMPPFlags: mad.RMPPFlagActive},
		{RMPPVersion: 1, RMPPType: mad.RMPPTypeAbort, RMPPStatus: mad.RMPPStatusTimeTooLong, RMPPFlags: mad.RMPPFlagActive},
	} {
		r := newRig(t, Config{})
		a := r.vendor(port.RMPPKernel)
		long := append(vendorMAD(mad.MethodGetMulti, 1), make([]byte, 1000)...)
		long[26] = 1
		r.mustPost(port.Message{Agent: a.id, Addr: peer, Timeout: time.Second, Retries: 3, Data: long})
		w := r.sentOne()
		pkt := [mad.Size]byte(asResponse(w.MAD[:]))
		rmpp.PutHeader(&pkt, h)
		r.arrive(peer, 0xffff, pkt[:])
		r.turn(time.Minute)
		r.gotNone(h.RMPPType.String())
		if len(r.f.sends) != 0 || r.stats.Aborted != 1 || len(r.sent()) != 0 {
			t.Errorf("%v: %d sends left, stats %+v", h.RMPPType, len(r.f.sends), r.stats)
		}
	}
}

// A message that announces more than the limit is stopped at its first segment.
func TestMaxMessage(t *testing.T) {
	r := newRig(t, Config{MaxMessage: 1000})
	r.vendor(port.RMPPKernel, mad.MethodGetMulti)
	r.arrive(peer, 0xffff, segment(vendorMAD(mad.MethodGetMulti, 1), 1, 6*220, mad.RMPPFlagFirst))
	w := r.sentOne()
	if h := rmpp.ParseHeader(&w.MAD); h.RMPPType != mad.RMPPTypeStop || h.RMPPStatus != mad.RMPPStatusResourcesExhausted {
		t.Errorf("answer %+v, want STOP 1", h)
	}
}
