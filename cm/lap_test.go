package cm

import (
	"reflect"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
)

func alternatePath() *AlternatePath {
	p := path(5, 7)
	p.SL, p.TClass, p.FlowLabel, p.HopLimit, p.Rate, p.PacketLifeTime = 2, 0x11, 0x54321, 1, mad.Rate40G, 18
	return &AlternatePath{Path: p, RemoteCMResponseTimeout: 21, PrivateData: []byte("other way")}
}

// TestLAP compares both messages and both events with what was asked for.
func TestLAP(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	a, b := f.connect()
	var loaded, replied Event
	f.b.on = func(_ *node, e Event) { loaded = e }
	f.a.on = func(_ *node, e Event) { replied = e }
	f.must(a.LoadAlternatePath(f.now, alternatePath()))
	wantErr(t, a.LoadAlternatePath(f.now, alternatePath()), ErrInvalid)
	wantErr(t, a.PathMigrated(f.now), ErrInvalid)
	f.pump()
	want := mad.LoadAlternatePath{
		LocalCommunicationID: a.LocalID(), RemoteCommunicationID: b.LocalID(), RemoteQPNEECN: 0x778899, RemoteCMResponseTimeout: 21,
		AlternateLocalPortLID: 5, AlternateRemotePortLID: 7, AlternateLocalPortGID: gid(5), AlternateRemotePortGID: gid(7),
		AlternateFlowLabel: 0x54321, AlternateTrafficClass: 0x11, AlternateHopLimit: 1, AlternatePacketRate: mad.Rate40G,
		AlternateSL: 2, AlternateSubnetLocal: true, AlternateLocalACKTimeout: 19, PrivateData: [168]byte(padded("other way", 168)),
	}
	p := f.last(f.a, LAP)
	if got := decode[mad.LoadAlternatePath](p); got != want {
		t.Errorf("LAP %+v,\nwant %+v", got, want)
	}
	// As seen from B (cm_format_path_from_lap).
	back := &mad.PathRecord{
		SGID: gid(7), DGID: gid(5), SLID: 7, DLID: 5, FlowLabel: 0x54321, HopLimit: 1, TClass: 0x11, Reversible: true, PKey: 0xffff, SL: 2,
		MTUSelector: 2, MTU: mad.MTU2048, RateSelector: 2, Rate: mad.Rate40G, PacketLifeTimeSelector: 2, PacketLifeTime: 18,
	}
	if !reflect.DeepEqual(loaded, Event{Type: EventLAPReceived, ID: b, PrivateData: padded("other way", MaxLAPData), AlternatePath: back}) {
		t.Errorf("event %+v, %+v", loaded, loaded.AlternatePath)
	}
	if a.LAPState() != LAPSent || b.LAPState() != LAPReceived {
		t.Errorf("alternate path states %d and %d", a.LAPState(), b.LAPState())
	}

	// A duplicate has no answer before the MRA, and the MRA then.
	f.again(f.a, LAP)
	f.must(b.Acknowledge(f.now, &Receipt{ServiceTimeout: 22}))
	f.lose["B>MRA"] = 1
	f.pump()
	f.log = nil
	f.again(f.a, LAP)
	f.expect(`
		0s A>LAP
		0s B>MRA
		0s A: MRA received`)
	if a.LAPState() != MRALAPReceived || b.LAPState() != MRALAPSent || f.b.Stats().Duplicates[LAP] != 2 {
		t.Errorf("alternate path states %d and %d", a.LAPState(), b.LAPState())
	}
	// 2^(22-8) + 2^(17-8) ms
	if d := f.a.Deadline().Sub(start); d != (16384+512)*time.Millisecond {
		t.Errorf("the LAP comes again at %v", d)
	}
	f.again(f.b, MRA)
	if n := f.a.Stats().Duplicates[MRA]; n != 1 {
		t.Errorf("%d duplicates of MRA, want 1", n)
	}

	f.must(b.ReplyAlternatePath(f.now, &AlternatePathReply{Status: mad.APStatusRejected, Info: []byte("no"), PrivateData: []byte("way")}))
	f.pump()
	q := f.last(f.b, APR)
	if got := decode[mad.AlternatePathResponse](q); got != (mad.AlternatePathResponse{
		LocalCommunicationID: b.LocalID(), RemoteCommunicationID: a.LocalID(), AdditionalInformationLength: 2, APStatus: 3,
		AdditionalInformation: [72]byte(padded("no", 72)), PrivateData: [148]byte(padded("way", 148)),
	}) || header(q).TransactionID != header(p).TransactionID {
		t.Errorf("APR %+v", got)
	}
	if !reflect.DeepEqual(replied, Event{
		Type: EventAPRReceived, ID: a, PrivateData: padded("way", MaxAPRData), APR: &AlternatePathReplied{Status: 3, Info: []byte("no")},
	}) {
		t.Errorf("event %+v, %+v", replied, replied.APR)
	}
	if a.LAPState() != LAPIdle || b.LAPState() != LAPIdle || !f.a.Deadline().IsZero() {
		t.Errorf("alternate path states %d and %d", a.LAPState(), b.LAPState())
	}
	f.checkEmpty()
}

// TestPathMigrated: messages then take the alternate path (cm_migrate).
func TestPathMigrated(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	r, alternate := request(), path(5, 7)
	alternate.SL = 9
	r.Alternate = &alternate
	a := f.a.NewID()
	f.must(a.Connect(f.now, r))
	f.pump()
	b := f.b.ids[a.RemoteID()]
	f.must(a.PathMigrated(f.now))
	f.must(b.PathMigrated(f.now))
	f.must(a.Disconnect(f.now, nil))
	f.pump()
	if q, p := f.last(f.a, DREQ).Addr.SL, f.last(f.b, DREP).Addr.SL; q != 9 || p != 9 {
		t.Errorf("service levels %d and %d, want 9", q, p)
	}
	f.checkEmpty()
}

// TestLAPElsewhere: a LAP that comes another way moves the connection's messages
// there (cm_init_av_for_lap); one whose path does not end here is dropped.
func TestLAPElsewhere(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	a, b := f.connect()
	f.b.on = nil
	f.lose["A>LAP"] = 1
	f.must(a.LoadAlternatePath(f.now, alternatePath()))
	f.pump()
	lap := *f.last(f.a, LAP)
	foreign := lap
	foreign.MAD[mad.HeaderSize+40+15]++ // the last byte of AlternateRemotePortGID
	f.b.Receive(f.now, mad.AddressVector{LID: 5, QPN: 1}, 0x8001, &foreign.MAD)
	if b.LAPState() != LAPUninit || f.b.Stats().Ignored[LAP] != 1 {
		t.Errorf("the alternate path's state is %d", b.LAPState())
	}
	f.b.Receive(f.now, mad.AddressVector{LID: 55, QPN: 1, SL: 7, PKeyIndex: 1}, 0x8001, &lap.MAD)
	f.must(b.ReplyAlternatePath(f.now, &AlternatePathReply{}))
	var p Packet
	if !f.b.Next(&p) || p.Addr != (mad.AddressVector{LID: 55, QPN: 1, SL: 7, PKeyIndex: 1}) || p.PKey != 0x8001 {
		t.Errorf("the APR goes to %+v with P_Key %v", p.Addr, p.PKey)
	}
	f.checkEmpty()
}

// TestDisconnectDuringLAP: a DREQ of either side ends the wait for an APR.
func TestDisconnectDuringLAP(t *testing.T) {
	for _, passive := range []bool{false, true} {
		f := newFabric(t)
		f.listenAll()
		a, b := f.connect()
		f.lose["A>LAP"] = 1
		f.must(a.LoadAlternatePath(f.now, alternatePath()))
		f.pump()
		if passive {
			a = b
		}
		f.must(a.Disconnect(f.now, nil))
		f.run(time.Hour)
		if n := f.a.Stats().Retries[LAP]; n != 0 || f.a.ids[a.LocalID()] == nil && f.b.ids[a.LocalID()] == nil {
			t.Errorf("the LAP was sent again %d times", n)
		}
		f.checkEmpty()
	}
}
