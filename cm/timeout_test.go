package cm

import (
	"testing"
	"time"
)

// TestDeadPeer: every time is that of the kernel's rules, for the parameters of
// its rdma_cm: exponent 20 and 15 retries, so 16 tries. One of a REQ takes twice
// the packet life time and the remote CM response time (ib_send_cm_req), each
// 2^(n-8) ms (cm_convert_to_ms): on Ethernet 2 * 256 + 4096 = 4608 ms, in all
// 73.728 s; with OpenSM's packet life time of 18, 98.304 s.
func TestDeadPeer(t *testing.T) {
	tests := []struct {
		name     string
		lifeTime uint8
		response uint8
		retries  uint8
		want     time.Duration
	}{
		{"Ethernet", 16, 20, 15, 16 * (2*256 + 4096) * time.Millisecond},
		{"OpenSM", 18, 20, 15, 16 * (2*1024 + 4096) * time.Millisecond},
		{"shortest", 0, 0, 0, (2*1 + 1) * time.Millisecond},
		{"below 1 ms", 8, 7, 1, 2 * (2*1 + 1) * time.Millisecond},
		{"longest", 31, 31, 15, 16 * 3 * (1 << 23) * time.Millisecond},
		{"life time of a path, too long for a message", 63, 0, 0, (2*(1<<23) + 1) * time.Millisecond},
		{"retries of more than 4 bits", 0, 0, 0x12, 3 * (2*1 + 1) * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric(t)
			var at time.Duration
			f.a.on = func(_ *node, e Event) {
				if e.Type == EventREQError {
					at = f.now.Sub(start)
				}
			}
			r := request()
			r.Primary.PacketLifeTime, r.RemoteCMResponseTimeout, r.MaxCMRetries = tt.lifeTime, tt.response, tt.retries
			f.lose["A>REQ"] = 100
			id := f.a.NewID()
			f.must(id.Connect(f.now, r))
			f.run(10000 * time.Hour)
			if at != tt.want {
				t.Errorf("REQ error at %v, want %v", at, tt.want)
			}
			retries := uint64(tt.retries & 15)
			if s := f.a.Stats(); s.Sent[REQ] != 1 || s.Retries[REQ] != retries {
				t.Errorf("%d REQs and %d retries, want 1 and %d", s.Sent[REQ], s.Retries[REQ], retries)
			}
			if id.State() != Idle {
				t.Errorf("the state is %v, want idle", id.State())
			}
			f.checkEmpty()
		})
	}
}

// TestDeadAfterMRA: the time of the MRA counts for each try that is left. The
// MRA's 2^(24-8) = 65.536 s and the 2^(17-8) = 0.512 s of the way make 66.048 s
// (cm_mra_handler, ib_modify_mad), for all 16 tries.
func TestDeadAfterMRA(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	f.b.on = func(_ *node, e Event) { f.must(e.ID.Acknowledge(f.now, &Receipt{ServiceTimeout: 24})) }
	f.must(f.a.NewID().Connect(f.now, request()))
	f.pump()
	f.lose["A>REQ"] = 100
	f.log = nil
	f.run(time.Hour)
	if len(f.log) != 16 || f.log[0] != "1m6.048s A>REQ lost" || f.log[15] != "17m36.768s A: REQ error" {
		t.Errorf("%d lines, the first %q, the last %q; want 15 retries each 1m6.048s and the end at 17m36.768s", len(f.log), f.log[0], f.log[len(f.log)-1])
	}
	f.checkEmpty()
}

// TestPeerDiesBeforeRTU: A is gone when the REP comes. B sends the REP 16 times,
// each 4.096 s, as the REQ said, and nothing more.
func TestPeerDiesBeforeRTU(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	f.a.on = nil
	f.lose["B>REP"] = 100
	f.must(f.a.NewID().Connect(f.now, request()))
	f.pump()
	f.lose["A>REQ"] = 100
	f.a.Close(f.now)
	f.lose["A>REJ"] = 1
	f.pump()
	f.log = nil
	f.run(time.Hour)
	if len(f.log) != 16 || f.log[0] != "4.096s B>REP lost" || f.log[14] != "1m1.44s B>REP lost" || f.log[15] != "1m5.536s B: REP error" {
		t.Errorf("happened: %q", f.log)
	}
	f.checkEmpty()
}

// TestPeerDestroyedBeforeREP: who gives up a REQ says so by its GUID, as it does
// not know the peer's id (cm_destroy_id, cm_acquire_rejected_id).
func TestPeerDestroyedBeforeREP(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	var passive *ID
	var rejected *RejectReceived
	f.b.on = func(_ *node, e Event) {
		passive = e.ID
		if e.REJ != nil {
			rejected = e.REJ
		}
	}
	id := f.a.NewID()
	f.must(id.Connect(f.now, request()))
	f.pump()
	id.Destroy(f.now)
	f.run(time.Hour)
	f.expect(`
		0s A>REQ
		0s B: REQ received
		0s A>REJ
		0s B: REJ received`)
	if rejected == nil || rejected.Reason != 4 || string(rejected.Info) != "\x00\x00\x00\x00\x00\x00\x10\x05" {
		t.Errorf("REJ %+v, want reason 4 and A's GUID 0x1005", rejected)
	}
	if passive.State() != Idle {
		t.Errorf("B's state is %v, want idle", passive.State())
	}
	f.checkEmpty()
}

// TestDeadWhenDisconnecting: after 16 tries of a DREQ, timewait.
func TestDeadWhenDisconnecting(t *testing.T) {
	tests := []struct {
		name, lose string
		passive    bool
		want       string
	}{
		// A's tries last 4.608 s, B's 4.096 s, as in TestLoss.
		{"active", "A>DREQ", false, "1m13.728s A: DREQ error, 1m14.24s A: timewait exit"},
		{"passive", "B>DREQ", true, "1m5.536s B: DREQ error, 1m6.048s B: timewait exit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric(t)
			f.listenAll()
			id, b := f.connect()
			if tt.passive {
				id = b
			}
			f.lose[tt.lose] = 100
			f.must(id.Disconnect(f.now, nil))
			f.run(time.Hour)
			if n := len(f.log); n != 18 || f.log[16]+", "+f.log[17] != tt.want {
				t.Errorf("happened: %q", f.log)
			}
			f.checkEmpty()
		})
	}
}

// TestDeadSIDR: 16 tries of 4.096 s (cma.c, cma_resolve_ib_udp).
func TestDeadSIDR(t *testing.T) {
	f := newFabric(t)
	f.lose["A>SIDR_REQ"] = 100
	f.must(f.a.NewID().RequestSIDR(f.now, sidrRequest()))
	f.run(time.Hour)
	if len(f.log) != 17 || f.log[16] != "1m5.536s A: SIDR_REQ error" {
		t.Errorf("happened: %q", f.log)
	}
	f.checkEmpty()
}

// TestDeadLAP: the connection stays.
func TestDeadLAP(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	a, _ := f.connect()
	f.lose["A>LAP"] = 100
	f.must(a.LoadAlternatePath(f.now, &AlternatePath{Path: path(5, 7)}))
	f.run(time.Hour)
	if len(f.log) != 17 || f.log[16] != "1m13.728s A: LAP error" || a.State() != Established || a.LAPState() != LAPIdle {
		t.Errorf("happened: %q, state %v and %d", f.log, a.State(), a.LAPState())
	}
	f.checkEmpty()
}

// TestACKTimeout has values of cm_ack_timeout: the larger of the ACK delay and
// one more than the packet life time, one more if the other is at most one
// smaller, up to 31.
func TestACKTimeout(t *testing.T) {
	tests := []struct{ delay, lifeTime, want uint8 }{
		{0, 0, 2}, {0, 16, 17}, {15, 16, 17}, {16, 16, 18}, {17, 16, 18}, {18, 16, 19}, {19, 16, 19},
		{31, 0, 31}, {31, 30, 31}, {0, 30, 31}, {0, 31, 31}, {15, 18, 19},
	}
	for _, tt := range tests {
		if got := ackTimeout(tt.delay, tt.lifeTime); got != tt.want {
			t.Errorf("ackTimeout(%d, %d) = %d, want %d", tt.delay, tt.lifeTime, got, tt.want)
		}
	}
}
