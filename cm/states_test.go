package cm

import (
	"bytes"
	"slices"
	"testing"

	"github.com/ibsm/ibsm/mad"
)

// inState makes an id of each state, on the fabric's A if it is the active side
// there, else on B.
var inState = map[State]func(*fabric) *ID{
	Idle: func(f *fabric) *ID { return f.a.NewID() },
	Listening: func(f *fabric) *ID {
		l, err := f.b.Listen(1)
		f.must(err)
		return l
	},
	REQSent:        func(f *fabric) *ID { return f.halfway(Idle, nil, nil) },
	MRAREQReceived: func(f *fabric) *ID { return f.halfway(Idle, f.mra, nil) },
	REQReceived:    func(f *fabric) *ID { return f.halfway(REQReceived, func(*ID) {}, nil) },
	MRAREQSent:     func(f *fabric) *ID { return f.halfway(MRAREQSent, f.mra, nil) },
	REPSent:        func(f *fabric) *ID { return f.halfway(REPSent, f.rep, func(*ID) {}) },
	MRAREPReceived: func(f *fabric) *ID { return f.halfway(MRAREPReceived, f.rep, f.mra) },
	REPReceived:    func(f *fabric) *ID { return f.halfway(Idle, f.rep, func(*ID) {}) },
	MRAREPSent:     func(f *fabric) *ID { return f.halfway(Idle, f.rep, f.mra) },
	Established: func(f *fabric) *ID {
		a, _ := f.connect()
		return a
	},
	DREQSent: func(f *fabric) *ID {
		a, _ := f.connect()
		f.lose["A>DREQ"] = 1
		f.must(a.Disconnect(f.now, nil))
		f.pump()
		return a
	},
	DREQReceived: func(f *fabric) *ID {
		a, b := f.connect()
		f.b.on = nil
		f.must(a.Disconnect(f.now, nil))
		f.pump()
		return b
	},
	Timewait: func(f *fabric) *ID {
		a, _ := f.connect()
		f.must(a.Disconnect(f.now, nil))
		f.pump()
		return a
	},
	SIDRREQSent: func(f *fabric) *ID {
		id := f.a.NewID()
		f.lose["A>SIDR_REQ"] = 1
		f.must(id.RequestSIDR(f.now, sidrRequest()))
		f.pump()
		return id
	},
	SIDRREQReceived: func(f *fabric) *ID {
		var b *ID
		f.b.on = func(_ *node, e Event) { b = e.ID }
		f.must(f.a.NewID().RequestSIDR(f.now, sidrRequest()))
		f.pump()
		return b
	},
}

func (f *fabric) mra(c *ID) { f.must(c.Acknowledge(f.now, &Receipt{ServiceTimeout: 20})) }
func (f *fabric) rep(c *ID) { f.must(c.Reply(f.now, reply())) }

// halfway begins a connection, lets B do something with the REQ and A with the
// REP, and gives B's id if that has a state, else A's. Without onREQ the REQ is
// lost.
func (f *fabric) halfway(b State, onREQ, onREP func(*ID)) *ID {
	f.Helper()
	if onREQ == nil {
		f.lose["A>REQ"] = 1
	}
	var passive *ID
	f.b.on = func(_ *node, e Event) {
		if e.Type == EventREQReceived {
			passive = e.ID
			onREQ(e.ID)
		}
	}
	f.a.on = func(_ *node, e Event) {
		if e.Type == EventREPReceived {
			onREP(e.ID)
		}
	}
	id := f.a.NewID()
	f.must(id.Connect(f.now, request()))
	f.pump()
	if b == Idle {
		return id
	}
	return passive
}

// eachState runs a test on an id of each state.
func eachState(t *testing.T, test func(*testing.T, *fabric, *ID)) {
	for state := Idle; state <= SIDRREQReceived; state++ {
		t.Run(state.String(), func(t *testing.T) {
			f := newFabric(t)
			f.listenAll()
			id := inState[state](f)
			if id.State() != state {
				t.Fatalf("the state is %v", id.State())
			}
			f.log = nil
			test(t, f, id)
			f.checkEmpty()
		})
	}
}

// allowed lists the states from which each operation is legal, as the switch or
// test of the kernel function says that is named beside.
var allowed = []struct {
	name   string
	states []State
	do     func(*fabric, *ID) error
}{
	{"ib_send_cm_req", []State{Idle}, func(f *fabric, c *ID) error { return c.Connect(f.now, request()) }},
	{"ib_send_cm_rep", []State{REQReceived, MRAREQSent}, func(f *fabric, c *ID) error { return c.Reply(f.now, reply()) }},
	{"ib_send_cm_rtu", []State{REPReceived, MRAREPSent}, func(f *fabric, c *ID) error { return c.ReadyToUse(f.now, nil) }},
	{"ib_send_cm_mra", []State{REQReceived, REPReceived}, func(f *fabric, c *ID) error { return c.Acknowledge(f.now, &Receipt{}) }},
	{
		"ib_send_cm_rej", []State{REQSent, MRAREQReceived, REQReceived, MRAREQSent, REPReceived, MRAREPSent, REPSent, MRAREPReceived},
		func(f *fabric, c *ID) error { return c.Reject(f.now, &Rejection{Reason: 28}) },
	},
	{"ib_send_cm_dreq", []State{Established}, func(f *fabric, c *ID) error { return c.Disconnect(f.now, nil) }},
	{"ib_send_cm_drep", []State{DREQReceived}, func(f *fabric, c *ID) error { return c.ReplyDisconnect(f.now, nil) }},
	{"ib_send_cm_sidr_req", []State{Idle}, func(f *fabric, c *ID) error { return c.RequestSIDR(f.now, sidrRequest()) }},
	{"ib_send_cm_sidr_rep", []State{SIDRREQReceived}, func(f *fabric, c *ID) error { return c.ReplySIDR(f.now, &SIDRReply{}) }},
	{"LAP", []State{Established}, func(f *fabric, c *ID) error { return c.LoadAlternatePath(f.now, &AlternatePath{Path: path(5, 7)}) }},
	{"APR, without LAP", nil, func(f *fabric, c *ID) error { return c.ReplyAlternatePath(f.now, &AlternatePathReply{}) }},
	{"cm_establish", []State{REPSent, MRAREPReceived}, func(f *fabric, c *ID) error { return c.Established(f.now) }},
	{"cm_migrate, without alternate path", nil, func(f *fabric, c *ID) error { return c.PathMigrated(f.now) }},
	{
		"cm_init_qp_init_attr",
		[]State{REQSent, MRAREQReceived, REQReceived, MRAREQSent, REPReceived, MRAREPSent, REPSent, MRAREPReceived, Established},
		func(f *fabric, c *ID) error {
			_, err := c.QPAttr(QPInit)
			return err
		},
	},
	{
		"cm_init_qp_rtr_attr", []State{REQReceived, MRAREQSent, REPReceived, MRAREPSent, REPSent, MRAREPReceived, Established},
		func(f *fabric, c *ID) error {
			_, err := c.QPAttr(QPRTR)
			return err
		},
	},
	{
		"cm_init_qp_rts_attr", []State{REQReceived, MRAREQSent, REPReceived, MRAREPSent, REPSent, MRAREPReceived, Established},
		func(f *fabric, c *ID) error {
			_, err := c.QPAttr(QPRTS)
			return err
		},
	},
	{"ib_cm_init_qp_attr of SQD", nil, func(f *fabric, c *ID) error {
		_, err := c.QPAttr(4)
		return err
	}},
}

// TestAllowed tries each operation in each state. What is refused changes
// nothing.
func TestAllowed(t *testing.T) {
	for _, op := range allowed {
		t.Run(op.name, func(t *testing.T) {
			eachState(t, func(t *testing.T, f *fabric, id *ID) {
				legal := slices.Contains(op.states, id.State())
				before := *id
				err := op.do(f, id)
				if legal {
					wantErr(t, err, nil)
					return
				}
				want := ErrInvalid
				if op.name == "cm_establish" && id.State() == Established {
					want = ErrConnected
				}
				wantErr(t, err, want)
				if after := *id; after.state != before.state || after.lapState != before.lapState || after.pending != before.pending || after.timer != before.timer {
					t.Errorf("the id changed: %+v, was %+v", after, before)
				}
				var p Packet
				if f.a.Next(&p) || f.b.Next(&p) {
					t.Errorf("a %v was sent", messageOf(&p.MAD))
				}
			})
		})
	}
}

// TestDestroy: what is sent when an id ends in a state (cm_destroy_id). A
// destroyed id refuses everything, and its peer gets no second message.
func TestDestroy(t *testing.T) {
	tests := map[State]struct {
		message  Message
		reason   mad.RejectReason
		rejected mad.REJMessage
		local    bool // the REJ names the own id
	}{
		REQSent:         {REJ, mad.RejectTimeout, mad.REJMessageNone, true},
		MRAREQReceived:  {REJ, mad.RejectTimeout, mad.REJMessageNone, true},
		REQReceived:     {REJ, mad.RejectConsumerDefined, mad.REJMessageREQ, false},
		MRAREQSent:      {REJ, mad.RejectConsumerDefined, mad.REJMessageREQ, true},
		REPReceived:     {REJ, mad.RejectConsumerDefined, mad.REJMessageREP, true},
		MRAREPSent:      {REJ, mad.RejectConsumerDefined, mad.REJMessageREP, true},
		REPSent:         {REJ, mad.RejectConsumerDefined, mad.REJMessageNone, true},
		MRAREPReceived:  {REJ, mad.RejectConsumerDefined, mad.REJMessageNone, true},
		Established:     {message: DREQ},
		DREQReceived:    {message: DREP},
		SIDRREQReceived: {message: SIDRREP},
	}
	eachState(t, func(t *testing.T, f *fabric, id *ID) {
		want, sends := tests[id.State()]
		local, remote := id.LocalID(), id.RemoteID()
		id.Destroy(f.now)
		id.Destroy(f.now)
		var p, second Packet
		sent := f.a.Next(&p) || f.b.Next(&p)
		if sent != sends || sent && messageOf(&p.MAD) != want.message {
			t.Fatalf("sent: %v %v, want %v %v", sent, messageOf(&p.MAD), sends, want.message)
		}
		if f.a.Next(&second) || f.b.Next(&second) {
			t.Errorf("a second message %v was sent", messageOf(&second.MAD))
		}
		if sent && want.message == REJ {
			var rej mad.ConnectReject
			rej.DecodeFrom((*body)(p.MAD[mad.HeaderSize:]))
			if !want.local {
				local = 0
			}
			if rej.Reason != want.reason || rej.MessageREJected != want.rejected || rej.LocalCommunicationID != local || rej.RemoteCommunicationID != remote {
				t.Errorf("REJ %v of %v from %#x to %#x, want %v of %v from %#x to %#x", rej.Reason, rej.MessageREJected,
					rej.LocalCommunicationID, rej.RemoteCommunicationID, want.reason, want.rejected, local, remote)
			}
			if want.reason == mad.RejectTimeout && (rej.RejectInfoLength != 8 || !bytes.Equal(rej.ARI[:8], []byte{0, 0, 0, 0, 0, 0, 0x10, 5})) {
				t.Errorf("REJ with %d bytes % x, want A's GUID", rej.RejectInfoLength, rej.ARI[:8])
			}
		}
		if sent && want.message == SIDRREP {
			var rep mad.ServiceIDResReqResp
			rep.DecodeFrom((*body)(p.MAD[mad.HeaderSize:]))
			if rep.Status != mad.SIDRStatusRejected {
				t.Errorf("SIDR status %v, want rejected", rep.Status)
			}
		}
		if id.State() != Idle || id.m.timers.heap.Len() > 0 && id.timer.pos != 0 {
			t.Errorf("the state is %v, the timer %+v", id.State(), id.timer)
		}
		for _, op := range allowed {
			wantErr(t, op.do(f, id), ErrInvalid)
		}
	})
}

// TestDiscard: a REQ that is not even rejected comes again as a new one; in
// other states it is Destroy.
func TestDiscard(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	accept, first := f.b.on, true
	f.b.on = func(n *node, e Event) {
		if first {
			first = false
			e.ID.Discard(f.now)
			return
		}
		accept(n, e)
	}
	f.must(f.a.NewID().Connect(f.now, request()))
	f.run(5e9)
	f.expect(`
		0s A>REQ
		0s B: REQ received
		4.608s A>REQ
		4.608s B: REQ received
		4.608s B>REP
		4.608s A: REP received
		4.608s A>RTU
		4.608s B: RTU received`)
	f.b.ids[f.last(f.b, REP).commID()].Discard(f.now)
	f.pump()
	f.expect(`
		5s B>DREQ
		5s A: DREQ received
		5s A>DREP`)
	f.checkEmpty()
}

// commID is the local communication id of a message.
func (p *Packet) commID() uint32 {
	var rtu mad.ReadyToUse
	rtu.DecodeFrom((*body)(p.MAD[mad.HeaderSize:]))
	return rtu.LocalCommunicationID
}

// TestLimits: the private data and additional information of each message up to
// what the IBA has room for (ib_cm.h, enum ib_cm_data_size), which arrive, and
// one byte more.
func TestLimits(t *testing.T) {
	full := func(n int) []byte { return bytes.Repeat([]byte{0xa5}, n) }
	tests := []struct {
		name  string
		limit int
		state State
		do    func(f *fabric, c *ID, b []byte) error
	}{
		{"REQ", 92, Idle, func(f *fabric, c *ID, b []byte) error {
			r := request()
			r.PrivateData = b
			return c.Connect(f.now, r)
		}},
		{"MRA", 222, REQReceived, func(f *fabric, c *ID, b []byte) error { return c.Acknowledge(f.now, &Receipt{PrivateData: b}) }},
		{"REJ", 148, REQReceived, func(f *fabric, c *ID, b []byte) error { return c.Reject(f.now, &Rejection{PrivateData: b}) }},
		{"REJ info", 72, REQReceived, func(f *fabric, c *ID, b []byte) error { return c.Reject(f.now, &Rejection{Info: b}) }},
		{"REP", 196, REQReceived, func(f *fabric, c *ID, b []byte) error { return c.Reply(f.now, &Reply{PrivateData: b}) }},
		{"RTU", 224, REPReceived, func(f *fabric, c *ID, b []byte) error { return c.ReadyToUse(f.now, b) }},
		{"DREQ", 220, Established, func(f *fabric, c *ID, b []byte) error { return c.Disconnect(f.now, b) }},
		{"DREP", 224, DREQReceived, func(f *fabric, c *ID, b []byte) error { return c.ReplyDisconnect(f.now, b) }},
		{"SIDR_REQ", 216, Idle, func(f *fabric, c *ID, b []byte) error {
			r := sidrRequest()
			r.PrivateData = b
			return c.RequestSIDR(f.now, r)
		}},
		{"SIDR_REP", 136, SIDRREQReceived, func(f *fabric, c *ID, b []byte) error { return c.ReplySIDR(f.now, &SIDRReply{PrivateData: b}) }},
		{"SIDR_REP info", 72, SIDRREQReceived, func(f *fabric, c *ID, b []byte) error { return c.ReplySIDR(f.now, &SIDRReply{Info: b}) }},
		{"LAP", 168, Established, func(f *fabric, c *ID, b []byte) error {
			return c.LoadAlternatePath(f.now, &AlternatePath{Path: path(5, 7), PrivateData: b})
		}},
		{"APR", 148, Established, func(f *fabric, c *ID, b []byte) error {
			c.lapState = LAPReceived
			return c.ReplyAlternatePath(f.now, &AlternatePathReply{PrivateData: b})
		}},
		{"APR info", 72, Established, func(f *fabric, c *ID, b []byte) error {
			c.lapState = LAPReceived
			return c.ReplyAlternatePath(f.now, &AlternatePathReply{Info: b})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric(t)
			f.listenAll()
			id := inState[tt.state](f)
			wantErr(t, tt.do(f, id, full(tt.limit+1)), ErrInvalid)
			var p Packet
			if f.a.Next(&p) || f.b.Next(&p) {
				t.Fatalf("a %v was sent", messageOf(&p.MAD))
			}
			f.must(tt.do(f, id, full(tt.limit)))
			if !f.a.Next(&p) && !f.b.Next(&p) {
				t.Fatal("nothing was sent")
			}
			if n := bytes.Count(p.MAD[:], []byte{0xa5}); n != tt.limit {
				t.Errorf("%d bytes of data in the MAD, want %d", n, tt.limit)
			}
			f.checkEmpty()
		})
	}
}
