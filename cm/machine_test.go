package cm

import (
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// TestListen: a service has one listener, that ends with its last user
// (cm_insert_listen); ids 0x02... are assigned (cm_init_listen).
func TestListen(t *testing.T) {
	m := New(config(5))
	listen := func(id uint64) *ID {
		t.Helper()
		l, err := m.Listen(id)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first, second, other := listen(1), listen(1), listen(2)
	if first != second || first == other || first.State() != Listening || first.ServiceID() != 1 {
		t.Errorf("listeners %p, %p, %p", first, second, other)
	}
	a, b := listen(AssignServiceID), listen(AssignServiceID)
	if a.ServiceID() != 0x0200000000000000 || b.ServiceID() != 0x0200000000000001 {
		t.Errorf("assigned %#x and %#x", a.ServiceID(), b.ServiceID())
	}
	_, err := m.Listen(0x0200000000000005)
	wantErr(t, err, ErrInvalid)
	first.Destroy(start)
	if first.State() != Listening || m.IDs() != 4 {
		t.Errorf("the state is %v after the first of two users left", first.State())
	}
	second.Destroy(start)
	if first.State() != Idle || m.IDs() != 3 || m.listeners[1] != nil {
		t.Errorf("the state is %v after the last user left", first.State())
	}
	listen(2) // again, to be closed with both
	m.Close(start)
	checkTables(t, m)
	_, err = m.Listen(1)
	wantErr(t, err, ErrInvalid)
	wantErr(t, m.NewID().Connect(start, request()), ErrInvalid)
}

// TestIDs: ids are not given again until the numbers have gone round, and not
// while in use; 0 is none.
func TestIDs(t *testing.T) {
	m := New(Config{Random: 3})
	seen := make(map[uint32]bool)
	for range 100 {
		id := m.NewID()
		if id.LocalID() == 0 || seen[id.LocalID()] {
			t.Fatalf("id %#x after %d others", id.LocalID(), len(seen))
		}
		seen[id.LocalID()] = true
		id.Destroy(start)
	}
	used := m.NewID()
	m.made = 0 // as after 2^32 ids
	for range 200 {
		if id := m.NewID(); id.LocalID() == 0 || id.LocalID() == used.LocalID() {
			t.Fatalf("id %#x is none, or in use", id.LocalID())
		}
	}
}

// TestInvalidMADs: what is no CM message is counted and leaves nothing.
func TestInvalidMADs(t *testing.T) {
	var req Packet
	a := New(config(5))
	if err := a.NewID().Connect(start, request()); err != nil || !a.Next(&req) {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		at    int
		value byte
	}{
		{"base version", 0, 2}, {"class", mad.OffClass, 3}, {"class version", mad.OffClassVersion, 1},
		{"method", mad.OffMethod, 1}, {"attribute below REQ", mad.OffAttribute + 1, 0x0f},
		{"attribute above APR", mad.OffAttribute + 1, 0x1b}, {"attribute of the upper byte", mad.OffAttribute, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := New(config(7))
			b := req.MAD
			b[tt.at] = tt.value
			m.Receive(start, mad.AddressVector{LID: 5}, 0xffff, &b)
			var p Packet
			if s := m.Stats(); s.Invalid != 1 || s.Received != [Messages]uint64{} || m.Next(&p) || m.IDs() != 0 {
				t.Errorf("%+v, %d ids", s, m.IDs())
			}
		})
	}
	m := New(config(7))
	m.Close(start)
	m.Receive(start, mad.AddressVector{LID: 5}, 0xffff, &req.MAD)
	if m.Next(&req) || m.Stats().Received[REQ] != 0 {
		t.Error("a closed machine received a REQ")
	}
}

// TestIDsOfOtherKinds: a message for an id that does not take part in
// connections finds nothing, as those are not in the kernel's table.
func TestIDsOfOtherKinds(t *testing.T) {
	for _, state := range []State{Listening, SIDRREQReceived} {
		f := newFabric(t)
		f.listenAll()
		id := inState[state](f)
		f.log = nil
		var p Packet
		encode(&p.MAD, DREQ, 1, 0, &mad.DisconnectRequest{LocalCommunicationID: id.RemoteID(), RemoteCommunicationID: id.LocalID()})
		p.Addr = mad.AddressVector{LID: 7, QPN: 1}
		f.carry(f.a, &p)
		f.pump()
		f.expect(`
			0s A>DREQ
			0s B>DREP`)
		f.checkEmpty()
	}
}

// TestClose destroys all ids, in the order of their making.
func TestClose(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	f.connect()
	second := request()
	second.QPN++
	f.b.on = nil
	waiting := f.a.NewID()
	f.must(waiting.Connect(f.now, second))
	f.pump()
	f.log = nil
	f.a.Close(f.now)
	f.pump()
	f.expect(`
		0s A>DREQ
		0s B: DREQ received
		0s A>REJ
		0s B: REJ received`)
	wantErr(t, waiting.Connect(f.now, second), ErrInvalid)
	checkTables(t, f.a.Machine)
	f.checkEmpty()
}

// TestLostEvents: an id that is destroyed before its event was taken has none.
func TestLostEvents(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	a, b := f.connect()
	f.must(a.Disconnect(f.now, nil))
	var p Packet
	f.a.Next(&p)
	f.b.Receive(f.now, mad.AddressVector{LID: 5}, 0xffff, &p.MAD)
	b.Destroy(f.now)
	if e, ok := f.b.Event(); ok {
		t.Errorf("event %+v of a destroyed id", e)
	}
	f.checkEmpty()
}

// TestEthernet: on RoCE there are no LIDs; a GRH leads everywhere, and the hop
// limit of the way back is 255 (ib_init_ah_attr_from_wc). The passive side's own
// GID is that which the REQ was sent to, so the SGID of its path is not looked up
// (get_cm_port_from_path).
func TestEthernet(t *testing.T) {
	info := func(guid mad.GUID, g mad.GID) port.Info {
		return port.Info{Port: 1, LinkLayer: port.LinkEthernet, NodeGUID: guid, GIDs: []mad.GID{{1}, g}, PKeys: []mad.PKey{0xffff}}
	}
	a, b := New(Config{Info: info(1, gid(5)), AckDelay: 15}), New(Config{Info: info(2, gid(7)), AckDelay: 15})
	if _, err := b.Listen(service); err != nil {
		t.Fatal(err)
	}
	r := request()
	r.Primary.SLID, r.Primary.DLID, r.Primary.HopLimit, r.Primary.TClass, r.Primary.FlowLabel = 5, 7, 64, 0x20, 0x12345
	id := a.NewID()
	if err := id.Connect(start, r); err != nil {
		t.Fatal(err)
	}
	var p Packet
	a.Next(&p)
	to := mad.AddressVector{QPN: 1, SL: 3, HasGRH: true, GRH: mad.GRH{GID: gid(7), GIDIndex: 1, HopLimit: 64, TrafficClass: 0x20, FlowLabel: 0x12345}}
	if p.Addr != to {
		t.Errorf("the REQ goes to %+v, want %+v", p.Addr, to)
	}
	// Of a path through routers the LIDs are permissive in the REQ, and stay so.
	if req := decode[mad.ConnectRequest](&p); req.PrimaryLocalPortLID != 0xffff || req.PrimaryRemotePortLID != 0xffff || req.PrimarySubnetLocal {
		t.Errorf("REQ %+v", req)
	}
	from := mad.AddressVector{QPN: 1, SL: 3, HasGRH: true, GRH: mad.GRH{GID: gid(5), GIDIndex: 1, HopLimit: 63, TrafficClass: 0x20, FlowLabel: 0x12345}}
	b.Receive(start, from, 0xffff, &p.MAD)
	e, _ := b.Event()
	if e.REQ == nil || e.REQ.Primary.HopLimit != 63 || e.REQ.Primary.DLID != 0 || e.REQ.Primary.SLID != 0 || e.REQ.Primary.TClass != 0x20 {
		t.Fatalf("event %+v, %+v", e, e.REQ)
	}
	if err := e.ID.Reply(start, reply()); err != nil {
		t.Fatal(err)
	}
	b.Next(&p)
	to.GRH.GID, to.GRH.HopLimit = gid(5), 63
	if p.Addr != to {
		t.Errorf("the REP goes to %+v, want %+v", p.Addr, to)
	}
	a.Receive(start, from, 0xffff, &p.MAD)
	if err := id.ReadyToUse(start, nil); err != nil {
		t.Fatal(err)
	}
	// There is no LAP (cm_lap_handler), and an answer needs a GRH.
	wantErr(t, id.LoadAlternatePath(start, alternatePath()), ErrInvalid)
	var lap Packet
	encode(&lap.MAD, LAP, 1, 0, &mad.LoadAlternatePath{LocalCommunicationID: id.RemoteID(), RemoteCommunicationID: id.LocalID()})
	a.Receive(start, from, 0xffff, &lap.MAD)
	a.Receive(start, mad.AddressVector{QPN: 1}, 0xffff, &p.MAD)
	if s := a.Stats(); s.Ignored[LAP] != 1 || s.Invalid != 1 || id.LAPState() != LAPUninit {
		t.Errorf("%+v", s)
	}
	if attr, err := id.QPAttr(QPRTR); err != nil || attr.AV.Addr.LID != 0 || attr.AV.Addr.GRH.GID != gid(7) || attr.Mask != wantRTR {
		t.Errorf("RTR %+v, %v", attr, err)
	}
}

// TestRouted: a REQ through routers cannot give the LIDs; they are those it came
// by (cm_format_req, cm_process_routed_req).
func TestRouted(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	var got Event
	f.b.on = func(_ *node, e Event) { got = e }
	r, alternate := request(), path(5, 7)
	r.Primary.HopLimit, alternate.HopLimit, r.Alternate = 64, 64, &alternate
	f.lose["A>REQ"] = 1
	f.must(f.a.NewID().Connect(f.now, r))
	f.pump()
	p := f.last(f.a, REQ)
	if !p.Addr.HasGRH || p.Addr.GRH.GID != gid(7) || p.Addr.GRH.HopLimit != 64 {
		t.Errorf("the REQ goes to %+v", p.Addr)
	}
	from := mad.AddressVector{LID: 99, QPN: 1, SL: 6, PathBits: 1, HasGRH: true, GRH: mad.GRH{GID: gid(5), HopLimit: 60}}
	f.b.Receive(f.now, from, 0xffff, &p.MAD)
	f.events(f.b)
	for _, path := range []*mad.PathRecord{&got.REQ.Primary, got.REQ.Alternate} {
		if path.DLID != 99 || path.SLID != 1 || path.SL != 6 {
			t.Errorf("path %+v", path)
		}
	}
	if got.REQ.Primary.HopLimit != 255 || got.REQ.Alternate.HopLimit != 64 {
		t.Errorf("hop limits %d and %d", got.REQ.Primary.HopLimit, got.REQ.Alternate.HopLimit)
	}
	f.checkEmpty()
}

// TestAH: the address of a path on InfiniBand, with the path bits of the own LID.
func TestAH(t *testing.T) {
	info := config(4).Info
	info.LMC, info.GIDs = 2, []mad.GID{{}, gid(4)}
	m := New(Config{})
	m.SetInfo(info)
	p := path(4, 7)
	p.SLID, p.HopLimit, p.TClass, p.FlowLabel = 6, 1, 2, 3
	want := AH{
		Addr: mad.AddressVector{
			LID: 7, QPN: 1, SL: 3, PathBits: 2, HasGRH: true,
			GRH: mad.GRH{GID: gid(7), GIDIndex: 1, HopLimit: 1, TrafficClass: 2, FlowLabel: 3},
		},
		Rate: mad.Rate100G, Port: 1,
	}
	if got, err := m.AH(&p); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	p.SGID = gid(9)
	_, err := m.AH(&p)
	wantErr(t, err, ErrInvalid)
}

// TestUseAgain: an id that left timewait can connect again, as a new one.
func TestUseAgain(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	a, _ := f.connect()
	f.b.on = func(n *node, e Event) {
		f.must(e.ID.ReplyDisconnect(f.now, nil))
		e.ID.Destroy(f.now)
	}
	f.must(a.Disconnect(f.now, nil))
	f.run(time.Second)
	f.b.on = accept(f)
	f.must(a.Connect(f.now, request()))
	if a.RemoteID() != 0 {
		t.Errorf("the remote id is %#x before the REP", a.RemoteID())
	}
	f.pump()
	if a.State() != Established {
		t.Errorf("the state is %v, want established", a.State())
	}
	f.checkEmpty()
}

// TestAnswerToQP1: answers go to QP1, whatever queue pair a message came from
// (cm_alloc_response_msg_no_ah).
func TestAnswerToQP1(t *testing.T) {
	f := newFabric(t)
	f.must(f.a.NewID().Connect(f.now, request()))
	var p Packet
	f.a.Next(&p)
	f.b.Receive(f.now, mad.AddressVector{LID: 5, QPN: 77, SL: 4}, 0x8001, &p.MAD)
	if !f.b.Next(&p) || p.Addr != (mad.AddressVector{LID: 5, QPN: 1, SL: 4}) || p.PKey != 0x8001 {
		t.Errorf("the REJ goes to %+v QP %d with P_Key %v", p.Addr, p.Addr.QPN, p.PKey)
	}
	f.checkEmpty()
}

// TestNames: each code has a name of its own, and others do not break.
func TestNames(t *testing.T) {
	names := make(map[string]bool)
	add := func(s string) {
		if s == "" || names[s] {
			t.Errorf("name %q is empty or not the only one", s)
		}
		names[s] = true
	}
	for s := Idle; s <= SIDRREQReceived+1; s++ {
		add("state " + s.String())
	}
	for e := EventREQError; e <= EventSIDRREPReceived+1; e++ {
		add("event " + e.String())
	}
	for m := REQ; m <= APR+1; m++ {
		add("message " + m.String())
	}
}

// TestManyTimers: deadlines come in order, however many there are.
func TestManyTimers(t *testing.T) {
	m := New(config(5))
	for i := range 500 {
		r := request()
		r.QPN, r.RemoteCMResponseTimeout, r.MaxCMRetries = uint32(i), uint8(i*7%19), 1
		if err := m.NewID().Connect(start.Add(time.Duration(i*37%500)*time.Millisecond), r); err != nil {
			t.Fatal(err)
		}
	}
	events, last := 0, start
	for d := m.Deadline(); !d.IsZero(); d = m.Deadline() {
		if !d.After(last) {
			t.Fatalf("deadline %v after %v", d.Sub(start), last.Sub(start))
		}
		last = d
		m.Expire(d)
		for _, ok := m.Event(); ok; _, ok = m.Event() {
			events++
		}
	}
	if events != 500 {
		t.Errorf("%d of 500 requests ended", events)
	}
}
