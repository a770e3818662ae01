package cm

import (
	"testing"
	"time"
)

// TestLoss loses each message of a connection once. A tries each 2 * 256 ms
// (packet life time) + 4096 ms (CM response time) = 4.608 s, B each 4.096 s
// (cm.c: ib_send_cm_req, cm_req_handler). Timewait lasts 2^(17-8) = 512 ms on
// both sides: 17 is the ACK timeout of ACK delay 15 and packet life time 16
// (cm_ack_timeout).
func TestLoss(t *testing.T) {
	tests := []struct {
		name, lose string
		mra        bool // B acknowledges the REQ, and replies at 10 s
		want       string
	}{
		{name: "nothing", want: `
			0s A>REQ
			0s B: REQ received
			0s B>REP
			0s A: REP received
			0s A>RTU
			0s B: RTU received
			20s A>DREQ
			20s B: DREQ received
			20s B>DREP
			20s A: DREP received
			20.512s A: timewait exit
			20.512s B: timewait exit`},
		{name: "REQ", lose: "A>REQ", want: `
			0s A>REQ lost
			4.608s A>REQ
			4.608s B: REQ received
			4.608s B>REP
			4.608s A: REP received
			4.608s A>RTU
			4.608s B: RTU received
			20s A>DREQ
			20s B: DREQ received
			20s B>DREP
			20s A: DREP received
			20.512s A: timewait exit
			20.512s B: timewait exit`},
		{name: "REP", lose: "B>REP", want: `
			0s A>REQ
			0s B: REQ received
			0s B>REP lost
			4.096s B>REP
			4.096s A: REP received
			4.096s A>RTU
			4.096s B: RTU received
			20s A>DREQ
			20s B: DREQ received
			20s B>DREP
			20s A: DREP received
			20.512s A: timewait exit
			20.512s B: timewait exit`},
		// The REP that comes again gets the RTU again (cm_dup_rep_handler).
		{name: "RTU", lose: "A>RTU", want: `
			0s A>REQ
			0s B: REQ received
			0s B>REP
			0s A: REP received
			0s A>RTU lost
			4.096s B>REP
			4.096s A>RTU
			4.096s B: RTU received
			20s A>DREQ
			20s B: DREQ received
			20s B>DREP
			20s A: DREP received
			20.512s A: timewait exit
			20.512s B: timewait exit`},
		// The MRA says 2^(24-8) = 65.536 s: A does not try again before the REP.
		{name: "nothing, with MRA", mra: true, want: `
			0s A>REQ
			0s B: REQ received
			0s B>MRA
			0s A: MRA received
			10s B>REP
			10s A: REP received
			10s A>RTU
			10s B: RTU received
			20s A>DREQ
			20s B: DREQ received
			20s B>DREP
			20s A: DREP received
			20.512s A: timewait exit
			20.512s B: timewait exit`},
		// The REQ that comes again gets the MRA again (cm_dup_req_handler).
		{name: "MRA", lose: "B>MRA", mra: true, want: `
			0s A>REQ
			0s B: REQ received
			0s B>MRA lost
			4.608s A>REQ
			4.608s B>MRA
			4.608s A: MRA received
			10s B>REP
			10s A: REP received
			10s A>RTU
			10s B: RTU received
			20s A>DREQ
			20s B: DREQ received
			20s B>DREP
			20s A: DREP received
			20.512s A: timewait exit
			20.512s B: timewait exit`},
		{name: "DREQ", lose: "A>DREQ", want: `
			0s A>REQ
			0s B: REQ received
			0s B>REP
			0s A: REP received
			0s A>RTU
			0s B: RTU received
			20s A>DREQ lost
			24.608s A>DREQ
			24.608s B: DREQ received
			24.608s B>DREP
			24.608s A: DREP received
			25.12s A: timewait exit
			25.12s B: timewait exit`},
		// B's consumer has destroyed its id when the DREQ comes again: the DREP is
		// one for an unknown connection (cm_issue_drep).
		{name: "DREP", lose: "B>DREP", want: `
			0s A>REQ
			0s B: REQ received
			0s B>REP
			0s A: REP received
			0s A>RTU
			0s B: RTU received
			20s A>DREQ
			20s B: DREQ received
			20s B>DREP lost
			20.512s B: timewait exit
			24.608s A>DREQ
			24.608s B>DREP
			24.608s A: DREP received
			25.12s A: timewait exit`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric(t)
			f.listenAll()
			accept := f.b.on
			var passive *ID
			f.b.on = func(n *node, e Event) {
				switch {
				case e.Type == EventREQReceived && tt.mra:
					passive = e.ID
					f.must(e.ID.Acknowledge(f.now, &Receipt{ServiceTimeout: 24}))
				case e.Type == EventTimewaitExit:
					e.ID.Destroy(f.now)
				default:
					accept(n, e)
				}
			}
			f.lose[tt.lose] = 1
			id := f.a.NewID()
			f.must(id.Connect(f.now, request()))
			f.run(10 * time.Second)
			if tt.mra {
				f.must(passive.Reply(f.now, reply()))
			}
			f.run(20 * time.Second)
			if id.State() != Established {
				t.Fatalf("the state is %v, want established", id.State())
			}
			f.must(id.Disconnect(f.now, nil))
			f.run(time.Hour)
			f.expect(tt.want)
			if id.State() != Idle || f.b.IDs() != 1 {
				t.Errorf("A's state is %v, want idle; B has %d ids, want its listener", id.State(), f.b.IDs())
			}
			f.checkEmpty()
		})
	}
}

// TestLossOfREJ: B is rid of its id after a REJ, so a REQ that comes again is a
// new one.
func TestLossOfREJ(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	f.b.on = func(n *node, e Event) {
		f.must(e.ID.Reject(f.now, &Rejection{Reason: 28}))
		e.ID.Destroy(f.now)
	}
	f.lose["B>REJ"] = 1
	id := f.a.NewID()
	f.must(id.Connect(f.now, request()))
	f.run(time.Hour)
	f.expect(`
		0s A>REQ
		0s B: REQ received
		0s B>REJ lost
		4.608s A>REQ
		4.608s B: REQ received
		4.608s B>REJ
		4.608s A: REJ received`)
	if id.State() != Idle {
		t.Errorf("the state is %v, want idle", id.State())
	}
	f.checkEmpty()
}

// TestLossOfSIDR: an answered SIDR_REQ that comes again is a new one.
func TestLossOfSIDR(t *testing.T) {
	tests := map[string]string{
		"A>SIDR_REQ": `
			0s A>SIDR_REQ lost
			4.096s A>SIDR_REQ
			4.096s B: SIDR_REQ received
			4.096s B>SIDR_REP
			4.096s A: SIDR_REP received`,
		"B>SIDR_REP": `
			0s A>SIDR_REQ
			0s B: SIDR_REQ received
			0s B>SIDR_REP lost
			4.096s A>SIDR_REQ
			4.096s B: SIDR_REQ received
			4.096s B>SIDR_REP
			4.096s A: SIDR_REP received`,
	}
	for lose, want := range tests {
		t.Run(lose, func(t *testing.T) {
			f := newFabric(t)
			f.listenAll()
			f.lose[lose] = 1
			f.must(f.a.NewID().RequestSIDR(f.now, sidrRequest()))
			f.run(time.Hour)
			f.expect(want)
			f.checkEmpty()
		})
	}
}

// TestLossOfLAP: the LAP is sent again, and the second brings the APR if the
// first did not.
func TestLossOfLAP(t *testing.T) {
	tests := map[string]string{
		"": `
			0s A>LAP
			0s B: LAP received
			0s B>APR
			0s A: APR received`,
		"A>LAP": `
			0s A>LAP lost
			4.608s A>LAP
			4.608s B: LAP received
			4.608s B>APR
			4.608s A: APR received`,
		"B>APR": `
			0s A>LAP
			0s B: LAP received
			0s B>APR lost
			4.608s A>LAP
			4.608s B: LAP received
			4.608s B>APR
			4.608s A: APR received`,
	}
	for lose, want := range tests {
		t.Run(lose, func(t *testing.T) {
			f := newFabric(t)
			f.listenAll()
			a, b := f.connect()
			f.b.on = func(n *node, e Event) { f.must(e.ID.ReplyAlternatePath(f.now, &AlternatePathReply{})) }
			f.lose[lose] = 1
			f.must(a.LoadAlternatePath(f.now, &AlternatePath{Path: path(5, 7)}))
			f.run(time.Minute)
			f.expect(want)
			if a.LAPState() != LAPIdle || b.LAPState() != LAPIdle {
				t.Errorf("alternate path states %d and %d, want idle", a.LAPState(), b.LAPState())
			}
			f.checkEmpty()
		})
	}
}
