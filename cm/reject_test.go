package cm

import (
	"reflect"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// TestRefusedREQ: REQs that B's Machine rejects by itself (cm_match_req,
// cm_req_handler). The REJ has the REQ's transaction id and no own id, but where
// the kernel takes the REQ's vendor id for one (cm_issue_rej).
func TestRefusedREQ(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Request)
		info   port.Info // B's
		want   mad.ConnectReject
	}{
		{
			"no listener", func(r *Request) { r.ServiceID++ }, config(7).Info,
			mad.ConnectReject{Reason: 8},
		},
		{
			"no listener, with a vendor id", func(r *Request) { r.ServiceID, r.ECE.VendorID = 1, 0x15b3 }, config(7).Info,
			mad.ConnectReject{Reason: 8, LocalCommunicationID: 0x15b3},
		},
		{
			"not our GID", func(r *Request) { r.Primary.DGID = gid(9) }, config(7).Info,
			mad.ConnectReject{Reason: 12, RejectInfoLength: 16, ARI: [72]byte(padded(string(gidBytes(7)), 72))},
		},
		{
			"not our P_Key", func(*Request) {}, port.Info{GIDs: []mad.GID{gid(7)}, PKeys: []mad.PKey{0x8001}},
			mad.ConnectReject{Reason: 12, RejectInfoLength: 16, ARI: [72]byte(padded(string(gidBytes(7)), 72))},
		},
		{
			"not our alternate GID", func(r *Request) {
				alternate := path(5, 9)
				r.Alternate = &alternate
			}, config(7).Info,
			mad.ConnectReject{Reason: 18, RejectInfoLength: 16, ARI: [72]byte(padded(string(gidBytes(7)), 72))},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric(t)
			f.b.Machine = New(Config{Info: tt.info})
			f.listenAll()
			r := request()
			tt.change(r)
			var got *RejectReceived
			f.a.on = func(_ *node, e Event) { got = e.REJ }
			id := f.a.NewID()
			f.must(id.Connect(f.now, r))
			f.run(time.Hour)
			f.expect(`
				0s A>REQ
				0s B>REJ
				0s A: REJ received`)
			p := f.last(f.b, REJ)
			tt.want.RemoteCommunicationID = id.LocalID()
			if rej := decode[mad.ConnectReject](p); rej != tt.want || header(p).TransactionID != header(f.last(f.a, REQ)).TransactionID {
				t.Errorf("REJ %+v\nwant %+v", rej, tt.want)
			}
			if want := (&RejectReceived{Reason: tt.want.Reason, Info: tt.want.ARI[:tt.want.RejectInfoLength]}); !reflect.DeepEqual(got, want) {
				t.Errorf("event %+v, want %+v", got, want)
			}
			if id.State() != Idle || f.b.IDs() != 1 || len(f.b.remoteIDs)+len(f.b.remoteQPs) != 0 {
				t.Errorf("A's state is %v, B has %d ids", id.State(), f.b.IDs())
			}
			f.checkEmpty()
		})
	}
}

func gidBytes(lid mad.LID) []byte {
	g := gid(lid)
	return g[:]
}

// TestRejected: what a REJ does in each state of its receiver (cm_rej_handler).
func TestRejected(t *testing.T) {
	after := map[State][2]State{ // of reason consumer defined, and stale connection
		REQSent:        {Idle, Timewait},
		MRAREQReceived: {Idle, Timewait},
		REQReceived:    {Idle, Timewait},
		MRAREQSent:     {Idle, Timewait},
		REPSent:        {Idle, Timewait},
		MRAREPReceived: {Idle, Timewait},
		REPReceived:    {Timewait, Timewait},
		MRAREPSent:     {Timewait, Timewait},
		Established:    {Timewait, Timewait},
		DREQSent:       {Timewait, Timewait},
	}
	for i, reason := range []mad.RejectReason{mad.RejectConsumerDefined, mad.RejectStaleConn} {
		t.Run(reason.String(), func(t *testing.T) {
			eachState(t, func(t *testing.T, f *fabric, id *ID) {
				before := id.State()
				want, taken := after[before]
				n := f.a
				if id.m == f.b.Machine {
					n = f.b
				}
				rej := &mad.ConnectReject{
					LocalCommunicationID: id.RemoteID(), RemoteCommunicationID: id.LocalID(), MessageREJected: mad.REJMessageNone,
					Reason: reason, RejectInfoLength: 127, PrivateData: [148]byte{1, 2, 3},
				}
				var p Packet
				encode(&p.MAD, REJ, 0, 0, rej)
				n.Receive(f.now, mad.AddressVector{LID: 9, QPN: 1}, 0xffff, &p.MAD)
				e, ok := n.Event()
				if ok != taken {
					t.Fatalf("event %+v %v, want one: %v", e, ok, taken)
				}
				if !taken {
					if id.State() != before || n.Stats().Ignored[REJ] != 1 {
						t.Errorf("the state is %v", id.State())
					}
					return
				}
				if id.State() != want[i] {
					t.Errorf("the state is %v, want %v", id.State(), want[i])
				}
				if e.Type != EventREJReceived || e.ID != id || e.REJ.Reason != reason || len(e.REJ.Info) != 72 || len(e.PrivateData) != 148 || e.PrivateData[2] != 3 {
					t.Errorf("event %+v, REJ %+v", e, e.REJ)
				}
				if len(n.remoteIDs)+len(n.remoteQPs) != 0 || id.pending != nil {
					t.Errorf("%d remote ids, %d remote queue pairs and a pending %v are left", len(n.remoteIDs), len(n.remoteQPs), id.pending)
				}
			})
		})
	}
}

// TestReject: which message a REJ is for, and that its data arrives. After a
// REP there is timewait (cm_send_rej_locked).
func TestReject(t *testing.T) {
	tests := []struct {
		state    State
		rejected mad.REJMessage
		ownID    bool
		after    State
	}{
		{REQSent, mad.REJMessageNone, true, Idle},
		{MRAREQReceived, mad.REJMessageNone, true, Idle},
		{REQReceived, mad.REJMessageREQ, false, Idle},
		{MRAREQSent, mad.REJMessageREQ, true, Idle},
		{REPReceived, mad.REJMessageREP, true, Idle},
		{MRAREPSent, mad.REJMessageREP, true, Idle},
		{REPSent, mad.REJMessageNone, true, Timewait},
		{MRAREPReceived, mad.REJMessageNone, true, Timewait},
	}
	for _, tt := range tests {
		t.Run(tt.state.String(), func(t *testing.T) {
			f := newFabric(t)
			f.listenAll()
			id := inState[tt.state](f)
			f.must(id.Reject(f.now, &Rejection{Reason: 1234, Info: []byte("info"), PrivateData: []byte("why")}))
			if id.State() != tt.after || id.pending != nil {
				t.Errorf("the state is %v, want %v", id.State(), tt.after)
			}
			want := mad.ConnectReject{
				LocalCommunicationID: id.LocalID(), RemoteCommunicationID: id.RemoteID(), MessageREJected: tt.rejected,
				Reason: 1234, RejectInfoLength: 4, ARI: [72]byte(padded("info", 72)), PrivateData: [148]byte(padded("why", 148)),
			}
			if !tt.ownID {
				want.LocalCommunicationID = 0
			}
			var p Packet
			if !f.a.Next(&p) && !f.b.Next(&p) || decode[mad.ConnectReject](&p) != want {
				t.Errorf("REJ %+v,\nwant %+v", decode[mad.ConnectReject](&p), want)
			}
			if tid := header(&p).TransactionID; tid != header(f.last(f.a, REQ)).TransactionID {
				t.Errorf("transaction id %#x, want that of the REQ", tid)
			}
			f.checkEmpty()
		})
	}
}

// TestAcknowledged: an MRA prolongs the wait once, and only for the message that
// is waited with (cm_mra_handler).
func TestAcknowledged(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	var passive *ID
	f.b.on = func(_ *node, e Event) { passive = e.ID }
	var mra Event
	f.a.on = func(_ *node, e Event) { mra = e }
	id := f.a.NewID()
	f.must(id.Connect(f.now, request()))
	f.run(time.Second)
	f.must(passive.Acknowledge(f.now, &Receipt{ServiceTimeout: 20, PrivateData: []byte("soon")}))
	f.pump()
	// 2^(20-8) + 2^(17-8) ms from when it came.
	if d := f.a.Deadline().Sub(start); d != time.Second+4096*time.Millisecond+512*time.Millisecond {
		t.Errorf("the deadline is at %v", d)
	}
	if !reflect.DeepEqual(mra, Event{Type: EventMRAReceived, ID: id, PrivateData: padded("soon", MaxMRAData), ServiceTimeout: 20}) {
		t.Errorf("event %+v", mra)
	}
	before := f.a.Deadline()
	f.run(2 * time.Second)
	f.again(f.b, MRA)
	wrong := *f.last(f.b, MRA)
	for _, msg := range []byte{1, 2, 3} { // REP, LAP, reserved
		wrong.MAD[mad.HeaderSize+8] = msg << 6
		f.carry(f.b, &wrong)
	}
	if s := f.a.Stats(); s.Duplicates[MRA] != 1 || s.Ignored[MRA] != 3 || f.a.Deadline() != before {
		t.Errorf("%d duplicates, %d ignored, deadline moved by %v", s.Duplicates[MRA], s.Ignored[MRA], f.a.Deadline().Sub(before))
	}
	f.checkEmpty()
}

// TestEstablishedByData: data on the queue pair stands for a lost RTU
// (cm_establish); the RTU is then a duplicate.
func TestEstablishedByData(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	id := inState[REPSent](f)
	f.must(id.Established(f.now))
	f.log = nil
	f.pump()
	f.expect(`0s B: user established`)
	if !f.b.Deadline().IsZero() {
		t.Error("the REP will be sent again")
	}
	f.must(f.a.ids[id.RemoteID()].ReadyToUse(f.now, nil))
	f.pump()
	f.expect(`0s A>RTU`)
	if id.State() != Established || f.b.Stats().Duplicates[RTU] != 1 {
		t.Errorf("the state is %v", id.State())
	}
	f.checkEmpty()
}
