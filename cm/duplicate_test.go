package cm

import (
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// again delivers the last packet of a kind once more.
func (f *fabric) again(from *node, msg Message) {
	f.Helper()
	f.carry(from, f.last(from, msg))
	f.pump()
}

// TestDuplicateREQ: what a REQ gets that came before depends on the state
// (cm_dup_req_handler).
func TestDuplicateREQ(t *testing.T) {
	tests := []struct {
		name string
		on   func(*fabric, *ID)
		want string // beside the REQ
	}{
		{"REQ received", func(*fabric, *ID) {}, ""},
		{"MRA sent", func(f *fabric, c *ID) { f.must(c.Acknowledge(f.now, &Receipt{ServiceTimeout: 24})) }, "B>MRA"},
		{"MRA held back", func(f *fabric, c *ID) { f.must(c.Acknowledge(f.now, &Receipt{ServiceTimeout: 24, Delay: true})) }, "B>MRA"},
		{"REP sent", func(f *fabric, c *ID) { f.must(c.Reply(f.now, reply())) }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric(t)
			f.listenAll()
			f.a.on = nil
			f.b.on = func(_ *node, e Event) { tt.on(f, e.ID) }
			f.must(f.a.NewID().Connect(f.now, request()))
			f.pump()
			f.log = nil
			f.lose["B>MRA"] = 1 // what A makes of it is not the point
			f.again(f.a, REQ)
			want := "0s A>REQ\n"
			if tt.want != "" {
				want += "0s " + tt.want + " lost\n"
			}
			f.expect(want)
			if s := f.b.Stats(); s.Duplicates[REQ] != 1 || f.b.IDs() != 2 {
				t.Errorf("%d duplicates and %d ids, want 1 and 2", s.Duplicates[REQ], f.b.IDs())
			}
			f.checkEmpty()
		})
	}
}

// TestRepeatedMRA: an MRA that a repeated REQ or REP brings is that of before,
// with 5 bits of its time (cm_format_mra).
func TestRepeatedMRA(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	f.a.on = func(_ *node, e Event) {
		if e.Type == EventREPReceived {
			f.must(e.ID.Acknowledge(f.now, &Receipt{ServiceTimeout: 0x80 | 24, Delay: true, PrivateData: []byte("wait")}))
		}
	}
	id := f.a.NewID()
	f.must(id.Connect(f.now, request()))
	f.run(5 * time.Second)
	f.expect(`
		0s A>REQ
		0s B: REQ received
		0s B>REP
		0s A: REP received
		4.096s B>REP
		4.096s A>MRA
		4.096s B: MRA received`)
	var p mad.MsgRcptAck
	p.DecodeFrom((*body)(f.last(f.a, MRA).MAD[mad.HeaderSize:]))
	if p.LocalCommunicationID != id.LocalID() || p.RemoteCommunicationID != id.RemoteID() || p.MessageMRAed != 1 ||
		p.ServiceTimeout != 24 || string(p.PrivateData[:5]) != "wait\x00" {
		t.Errorf("MRA %+v", p)
	}
	f.checkEmpty()
}

// TestStaleREP: a REP for a connection that is not waiting for one.
func TestStaleREP(t *testing.T) {
	t.Run("established", func(t *testing.T) {
		f := newFabric(t)
		f.listenAll()
		f.connect()
		f.again(f.b, REP)
		f.expect(`
			0s B>REP
			0s A>RTU`)
		if a, b := f.a.Stats(), f.b.Stats(); a.Duplicates[REP] != 1 || b.Duplicates[RTU] != 1 {
			t.Errorf("%d duplicates of REP and %d of RTU, want 1 and 1", a.Duplicates[REP], b.Duplicates[RTU])
		}
		f.checkEmpty()
	})
	// The kernel does not answer it (cm_dup_rep_handler).
	t.Run("unknown", func(t *testing.T) {
		f := newFabric(t)
		f.listenAll()
		a, _ := f.connect()
		a.Destroy(f.now)
		f.pump()
		f.log = nil
		f.again(f.b, REP)
		f.expect(`0s B>REP`)
		if s := f.a.Stats(); s.Ignored[REP] != 1 {
			t.Errorf("%d REPs ignored, want 1", s.Ignored[REP])
		}
		f.checkEmpty()
	})
	t.Run("disconnected", func(t *testing.T) {
		f := newFabric(t)
		f.listenAll()
		a, _ := f.connect()
		f.must(a.Disconnect(f.now, nil))
		f.pump()
		f.log = nil
		f.again(f.b, REP)
		f.expect(`0s B>REP`)
		f.checkEmpty()
	})
}

// TestDuplicateDREQ: in timewait it gets the DREP again, with its private data
// and transaction id (cm_dreq_handler).
func TestDuplicateDREQ(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	a, _ := f.connect()
	f.must(a.Disconnect(f.now, nil))
	f.pump()
	first := *f.last(f.b, DREP)
	f.log = nil
	f.again(f.a, DREQ)
	f.expect(`
		0s A>DREQ
		0s B>DREP`)
	if second := f.last(f.b, DREP); second.MAD != first.MAD || string(second.MAD[mad.HeaderSize+8:][:4]) != "bye\x00" {
		t.Errorf("the second DREP is % x, the first was % x", second.MAD, first.MAD)
	}
	// Not for a queue pair that is not this connection's.
	f.last(f.a, DREQ).MAD[mad.HeaderSize+8]++
	f.again(f.a, DREQ)
	f.expect(`0s A>DREQ`)
	f.checkEmpty()
}

// TestUnknownDREQ: who has no connection says that it is ended, in the words of
// the DREQ (cm_issue_drep).
func TestUnknownDREQ(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	a, b := f.connect()
	aID, bID := a.LocalID(), b.LocalID()
	f.b.Close(f.now)
	f.lose["B>DREQ"] = 1
	f.pump()
	f.b.Machine = New(config(7))
	f.must(a.Disconnect(f.now, nil))
	f.log = nil
	f.pump()
	f.expect(`
		0s A>DREQ
		0s B>DREP
		0s A: DREP received`)
	var p mad.DisconnectReply
	p.DecodeFrom((*body)(f.last(f.b, DREP).MAD[mad.HeaderSize:]))
	if p.LocalCommunicationID != bID || p.RemoteCommunicationID != aID {
		t.Errorf("DREP from %#x to %#x, want %#x and %#x", p.LocalCommunicationID, p.RemoteCommunicationID, bID, aID)
	}
	f.checkEmpty()
}

// TestCrossingDREQs: both sides send a DREQ at the same time. Each gets the
// other's and answers it; the DREP that comes in timewait is nothing new.
func TestCrossingDREQs(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	a, b := f.connect()
	f.must(a.Disconnect(f.now, nil))
	f.must(b.Disconnect(f.now, nil))
	f.run(time.Hour)
	f.expect(`
		0s A>DREQ
		0s B: DREQ received
		0s B>DREQ
		0s A: DREQ received
		0s B>DREP
		0s A>DREP
		512ms A: timewait exit
		512ms B: timewait exit`)
	f.checkEmpty()
}

// TestStaleConnection: A's program died, and a new one connects from the same
// queue pair while B has the old connection: REJ 10, and a DREQ for the old one
// (cm_match_req). In timewait B has forgotten the queue pair
// (cm_enter_timewait), so the next REQ is taken.
func TestStaleConnection(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	_, b := f.connect()
	accept := f.a.on
	var reason mad.RejectReason
	f.a.on = func(n *node, e Event) {
		if e.REJ != nil {
			reason = e.REJ.Reason
			return
		}
		accept(n, e)
	}
	f.a.Machine = New(Config{Info: config(5).Info, Random: 0x77770000})
	id := f.a.NewID()
	f.must(id.Connect(f.now, request()))
	f.pump()
	f.expect(`
		0s A>REQ
		0s B>REJ
		0s A: REJ received
		0s B>DREQ
		0s A>DREP
		0s B: DREP received`)
	if reason != mad.RejectStaleConn || id.State() != Timewait || b.State() != Timewait {
		t.Errorf("REJ reason %v, states %v and %v, want stale connection and timewait", reason, id.State(), b.State())
	}
	next := f.a.NewID()
	f.must(next.Connect(f.now, request()))
	f.pump()
	if next.State() != Established {
		t.Errorf("the state is %v, want established", next.State())
	}
	f.checkEmpty()
}

// TestStaleREPConnection: B answers with a queue pair that A has a connection
// with: A rejects the REP and ends the old connection (cm_rep_handler). It goes
// on waiting for a good REP.
func TestStaleREPConnection(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	f.connect()
	id := f.a.NewID()
	r := request()
	r.QPN++
	f.must(id.Connect(f.now, r))
	f.pump()
	f.expect(`
		0s A>REQ
		0s B: REQ received
		0s B>REP
		0s A>REJ
		0s B: REJ received
		0s A>DREQ
		0s B: DREQ received
		0s B>DREP
		0s A: DREP received`)
	var p mad.ConnectReject
	p.DecodeFrom((*body)(f.last(f.a, REJ).MAD[mad.HeaderSize:]))
	if p.Reason != mad.RejectStaleConn || p.MessageREJected != mad.REJMessageREP || id.State() != REQSent {
		t.Errorf("REJ %v of %v, state %v; want stale connection, REP and REQ sent", p.Reason, p.MessageREJected, id.State())
	}
	f.run(5 * time.Second)
	if id.State() != Established {
		t.Errorf("the state is %v, want established", id.State())
	}
	f.checkEmpty()
}
