package cm

import (
	"testing"

	"github.com/ibsm/ibsm/mad"
)

// Masks of cm_init_qp_init_attr, cm_init_qp_rtr_attr and cm_init_qp_rts_attr for
// RC, by the bits of ib_verbs.h, enum ib_qp_attr_mask.
const (
	wantInit = 1<<0 | 1<<3 | 1<<4 | 1<<5                          // STATE ACCESS_FLAGS PKEY_INDEX PORT
	wantRTR  = 1<<0 | 1<<7 | 1<<8 | 1<<20 | 1<<12 | 1<<17 | 1<<15 // STATE AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER
	wantRTS  = 1<<0 | 1<<16 | 1<<10 | 1<<11 | 1<<13 | 1<<9        // STATE SQ_PSN RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC TIMEOUT
	wantLAP  = 1<<14 | 1<<18                                      // ALT_PATH PATH_MIG_STATE
)

// attr asks for the attributes of a state.
func (f *fabric) attr(c *ID, s QPState) QPAttr {
	f.Helper()
	a, err := c.QPAttr(s)
	f.must(err)
	return a
}

// TestQPAttr has the values of both sides of a connection. A asked for 4
// responder resources, initiator depth 2 and RNR retry 6; B gave 1, 3 and 5.
func TestQPAttr(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	a, b := f.connect()
	ah := func(lid mad.LID) AH {
		return AH{Addr: mad.AddressVector{LID: lid, QPN: 1, SL: 3}, Rate: mad.Rate100G, Port: 1}
	}
	tests := []struct {
		name      string
		got, want QPAttr
	}{
		{"A Init", f.attr(a, QPInit), QPAttr{Mask: wantInit, State: 1, AccessFlags: 2 | 4 | 8, Port: 1}},
		{"B Init", f.attr(b, QPInit), QPAttr{Mask: wantInit, State: 1, AccessFlags: 2 | 4 | 8, Port: 1}},
		// The REP's initiator depth 3 is what A has to serve, its responder resources
		// 1 what A may start.
		{"A RTR", f.attr(a, QPRTR), QPAttr{
			Mask: wantRTR, State: 2, AV: ah(7), PathMTU: mad.MTU2048, DestQPN: 0x778899, RQPSN: 0x445566, MaxDestRDAtomic: 3,
		}},
		{"B RTR", f.attr(b, QPRTR), QPAttr{
			Mask: wantRTR, State: 2, AV: ah(5), PathMTU: mad.MTU2048, DestQPN: 0x112233, RQPSN: 0xaabbcc, MaxDestRDAtomic: 1,
		}},
		// Time-out 17 of ACK delay 15 and packet life time 16.
		{"A RTS", f.attr(a, QPRTS), QPAttr{Mask: wantRTS, State: 3, SQPSN: 0xaabbcc, RetryCount: 7, RNRRetry: 5, MaxRDAtomic: 1, Timeout: 17}},
		{"B RTS", f.attr(b, QPRTS), QPAttr{Mask: wantRTS, State: 3, SQPSN: 0x445566, RetryCount: 7, RNRRetry: 6, MaxRDAtomic: 3, Timeout: 17}},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: %+v,\nwant %+v", tt.name, tt.got, tt.want)
		}
	}
	f.checkEmpty()
}

// TestQPAttrAccess: reads and atomics only if there are resources for them, and
// flushes if the adapter has them.
func TestQPAttrAccess(t *testing.T) {
	tests := []struct {
		resources uint8
		flush     bool
		want      uint32
	}{{0, false, 2}, {0, true, 2}, {1, false, 2 | 4 | 8}, {1, true, 2 | 4 | 8 | 1<<8 | 1<<9}}
	for _, tt := range tests {
		cfg := config(5)
		cfg.Flush = tt.flush
		m := New(cfg)
		r := request()
		r.ResponderResources, r.Primary.PKey = tt.resources, 0x8001
		id := m.NewID()
		if err := id.Connect(start, r); err != nil {
			t.Fatal(err)
		}
		if a, err := id.QPAttr(QPInit); err != nil || a.AccessFlags != tt.want || a.PKeyIndex != 1 {
			t.Errorf("%d resources, flush %v: flags %#x at P_Key index %d, %v; want %#x and 1", tt.resources, tt.flush, a.AccessFlags, a.PKeyIndex, err, tt.want)
		}
	}
}

// TestQPAttrTransports: which attributes go with which kind of queue pair.
func TestQPAttrTransports(t *testing.T) {
	tests := []struct {
		qpType         QPType
		aRTR, bRTR     QPMask
		aRTS, bRTS     QPMask
		initiatorDepth uint8
	}{
		{UC, wantRTR &^ (1<<17 | 1<<15), wantRTR &^ (1<<17 | 1<<15), 1<<0 | 1<<16, 1<<0 | 1<<16, 0},
		{XRCInitiator, wantRTR &^ (1<<17 | 1<<15), wantRTR, wantRTS, 1<<0 | 1<<16 | 1<<9, 1},
	}
	for _, tt := range tests {
		f := newFabric(t)
		f.listenAll()
		r := request()
		r.QPType = tt.qpType
		a := f.a.NewID()
		f.must(a.Connect(f.now, r))
		f.pump()
		b := f.b.ids[a.RemoteID()]
		got := [4]QPMask{f.attr(a, QPRTR).Mask, f.attr(b, QPRTR).Mask, f.attr(a, QPRTS).Mask, f.attr(b, QPRTS).Mask}
		if want := [4]QPMask{tt.aRTR, tt.bRTR, tt.aRTS, tt.bRTS}; got != want {
			t.Errorf("type %d: masks %#x, want %#x", tt.qpType, got, want)
		}
		if d := f.attr(a, QPRTS).MaxRDAtomic; d != tt.initiatorDepth {
			t.Errorf("type %d: MaxRDAtomic %d, want %d", tt.qpType, d, tt.initiatorDepth)
		}
		f.checkEmpty()
	}
}

// TestQPAttrAlternate: with an alternate path, and after a LAP. A joins B's ACK
// delay of 19 and the packet life time of 18 to 20; B has A's 15 and so 19.
func TestQPAttrAlternate(t *testing.T) {
	f := newFabric(t)
	slow := config(7)
	slow.AckDelay = 19
	f.b.Machine = New(slow)
	f.listenAll()
	r, alternate := request(), path(5, 7)
	alternate.SL, alternate.PacketLifeTime = 9, 18
	r.Alternate = &alternate
	a := f.a.NewID()
	f.must(a.Connect(f.now, r))
	f.pump()
	b := f.b.ids[a.RemoteID()]
	for id, timeout := range map[*ID]uint8{a: 20, b: 19} {
		rtr, rts := f.attr(id, QPRTR), f.attr(id, QPRTS)
		if rtr.Mask != wantRTR|1<<14 || rtr.AltPath.Addr.SL != 9 || rtr.AltPath.Port != 1 || rtr.AltTimeout != timeout {
			t.Errorf("RTR %+v", rtr)
		}
		if rts.Mask != wantRTS|1<<18 || rts.PathMigState != 1 {
			t.Errorf("RTS %+v", rts)
		}
	}
	f.b.on = func(_ *node, e Event) { f.must(e.ID.ReplyAlternatePath(f.now, &AlternatePathReply{})) }
	f.must(a.LoadAlternatePath(f.now, alternatePath()))
	f.pump()
	for id, timeout := range map[*ID]uint8{a: 20, b: 19} {
		rts := f.attr(id, QPRTS)
		if rts.Mask != wantLAP || rts.AltPath.Addr.SL != 2 || rts.AltTimeout != timeout || rts.PathMigState != 1 {
			t.Errorf("RTS after LAP %+v", rts)
		}
	}
	f.checkEmpty()
}

// TestQPAttrDatapath: the queue pair of the passive side is addressed by the LID
// that the REQ gives, messages by the one that it came from (cm_req_handler).
func TestQPAttrDatapath(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	f.a.on, f.b.on = nil, func(*node, Event) {}
	var b *ID
	f.b.on = func(_ *node, e Event) { b = e.ID }
	r := request()
	r.Primary.SLID = 6 // another LID of A's, by its LMC
	f.must(f.a.NewID().Connect(f.now, r))
	f.pump()
	if lid := f.attr(b, QPRTR).AV.Addr.LID; lid != 6 {
		t.Errorf("the queue pair's LID is %d, want 6", lid)
	}
	f.must(b.Reply(f.now, reply()))
	f.pump()
	if lid := f.last(f.b, REP).Addr.LID; lid != 5 {
		t.Errorf("the REP goes to LID %d, want 5", lid)
	}
	f.checkEmpty()
}
