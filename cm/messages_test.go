package cm

import (
	"reflect"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// structure is a message as the field table has it.
type structure interface{ DecodeFrom(*body) }

func decode[T any, P interface {
	*T
	structure
}](p *Packet) T {
	var v T
	P(&v).DecodeFrom((*body)(p.MAD[mad.HeaderSize:]))
	return v
}

func header(p *Packet) (h mad.Header) {
	h.DecodeFrom((*[mad.HeaderSize]byte)(p.MAD[:]))
	return h
}

// padded is data as a field of n bytes holds it.
func padded(s string, n int) []byte {
	b := make([]byte, n)
	copy(b, s)
	return b
}

// TestREQ compares a REQ with what was asked for (cm_format_req), and its event
// on the other side with what it says (cm_format_req_event,
// cm_format_paths_from_req).
func TestREQ(t *testing.T) {
	f := newFabric(t)
	f.b.Machine = New(Config{Info: port.Info{
		Port: 1, NodeGUID: 0x1007, GIDs: []mad.GID{{}, gid(7), gid(8)}, PKeys: []mad.PKey{0x7fff, 0xffff, 0x0001},
	}})
	listener := f.listenAll()
	listener.Context = "listener"
	f.a.on = nil
	var got Event
	f.b.on = func(_ *node, e Event) { got = e }
	alternate := path(5, 8)
	alternate.SL, alternate.PacketLifeTime, alternate.Rate = 1, 14, mad.Rate40G
	r := request()
	r.Alternate = &alternate
	r.FlowControl, r.SRQ, r.ECE = true, true, ECE{VendorID: 0x15b3, AttrMod: 0xdeadbeef}
	id := f.a.NewID()
	f.must(id.Connect(f.now, r))
	f.pump()

	p := f.last(f.a, REQ)
	wantHeader := mad.Header{
		BaseVersion: 1, MgmtClass: 7, ClassVersion: 2, Method: 3, AttributeID: 0x10, AttributeModifier: 0xdeadbeef,
		TransactionID: 0xaa05<<32 | uint64(id.LocalID()),
	}
	if h := header(p); h != wantHeader {
		t.Errorf("header %+v, want %+v", h, wantHeader)
	}
	want := mad.ConnectRequest{
		LocalCommunicationID: id.LocalID(), VendorID: 0x15b3, ServiceID: service, LocalCAGUID: 0x1005, LocalQPN: 0x112233,
		ResponderResources: 4, InitiatorDepth: 2, RemoteCMResponseTimeout: 20, LocalCMResponseTimeout: 20,
		EndToEndFlowControl: true, StartingPSN: 0x445566, RetryCount: 7, RNRRetryCount: 6, MaxCMRetries: 15, SRQ: true,
		PartitionKey: 0xffff, PathPacketPayloadMTU: mad.MTU2048,
		PrimaryLocalPortLID: 5, PrimaryRemotePortLID: 7, PrimaryLocalPortGID: gid(5), PrimaryRemotePortGID: gid(7),
		PrimaryPacketRate: mad.Rate100G, PrimarySL: 3, PrimarySubnetLocal: true, PrimaryLocalACKTimeout: 17,
		AlternateLocalPortLID: 5, AlternateRemotePortLID: 8, AlternateLocalPortGID: gid(5), AlternateRemotePortGID: gid(8),
		AlternatePacketRate: mad.Rate40G, AlternateSL: 1, AlternateSubnetLocal: true, AlternateLocalACKTimeout: 16,
	}
	copy(want.PrivateData[:], "request")
	if req := decode[mad.ConnectRequest](p); req != want {
		t.Errorf("REQ %+v,\nwant %+v", req, want)
	}
	if p.Addr != (mad.AddressVector{LID: 7, QPN: 1, SL: 3}) || p.PKey != 0xffff {
		t.Errorf("the REQ goes to %+v with P_Key %v", p.Addr, p.PKey)
	}

	// The receiver's view: turned round, life times one less than ACK timeouts.
	primary := mad.PathRecord{
		ServiceID: service, SGID: gid(7), DGID: gid(5), SLID: 7, DLID: 5, Reversible: true, PKey: 0xffff, SL: 3,
		MTUSelector: 2, MTU: mad.MTU2048, RateSelector: 2, Rate: mad.Rate100G, PacketLifeTimeSelector: 2, PacketLifeTime: 16,
	}
	back := primary
	back.SGID, back.SLID, back.SL, back.Rate, back.PacketLifeTime = gid(8), 8, 1, mad.Rate40G, 15
	wantREQ := &RequestReceived{
		PKey: 0xffff, Primary: primary, Alternate: &back, RemoteCAGUID: 0x1005, RemoteQPN: 0x112233, QPType: RC,
		StartingPSN: 0x445566, ResponderResources: 2, InitiatorDepth: 4, LocalCMResponseTimeout: 20,
		RemoteCMResponseTimeout: 20, FlowControl: true, RetryCount: 7, RNRRetryCount: 6, SRQ: true,
		ECE: ECE{VendorID: 0x15b3, AttrMod: 0xdeadbeef},
	}
	b := got.ID
	if !reflect.DeepEqual(got, Event{
		Type: EventREQReceived, ID: b, Listener: listener, PrivateData: padded("request", MaxREQData), REQ: wantREQ,
	}) {
		t.Errorf("event %+v\nREQ %+v,\nwant %+v", got, got.REQ, wantREQ)
	}
	if b.Context != "listener" || b.ServiceID() != service || b.RemoteID() != id.LocalID() {
		t.Errorf("id %v of service %#x, remote id %#x", b.Context, b.ServiceID(), b.RemoteID())
	}
	f.checkEmpty()
}

// TestREP compares a REP with what was asked for (cm_format_rep), and its event
// (cm_format_rep_event). It has the transaction id of the REQ, as has the RTU.
func TestREP(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	r := reply()
	r.FlowControl, r.SRQ, r.FailoverAccepted, r.ECE = true, true, mad.FailoverRejected, ECE{VendorID: 0xabcdef, AttrMod: 7}
	var events []Event
	accept := f.a.on
	f.a.on = func(n *node, e Event) {
		events = append(events, e)
		accept(n, e)
	}
	f.b.on = func(_ *node, e Event) {
		events = append(events, e)
		if e.Type == EventREQReceived {
			f.must(e.ID.Reply(f.now, r))
		}
	}
	id := f.a.NewID()
	f.must(id.Connect(f.now, request()))
	f.pump()
	p, rtu := f.last(f.b, REP), f.last(f.a, RTU)
	tid := header(f.last(f.a, REQ)).TransactionID
	if h := header(p); h.TransactionID != tid || h.AttributeModifier != 7 {
		t.Errorf("header %+v, want transaction id %#x", h, tid)
	}
	want := mad.ConnectReply{
		LocalCommunicationID: id.RemoteID(), RemoteCommunicationID: id.LocalID(), LocalQPN: 0x778899, StartingPSN: 0xaabbcc,
		ResponderResources: 1, InitiatorDepth: 3, TargetACKDelay: 15, FailoverAccepted: mad.FailoverRejected,
		EndToEndFlowControl: true, RNRRetryCount: 5, SRQ: true, LocalCAGUID: 0x1007,
		VendorIDH: 0xab, VendorIDM: 0xcd, VendorIDL: 0xef,
	}
	copy(want.PrivateData[:], "reply")
	if rep := decode[mad.ConnectReply](p); rep != want {
		t.Errorf("REP %+v,\nwant %+v", rep, want)
	}
	wantREP := &ReplyReceived{
		RemoteCAGUID: 0x1007, RemoteQPN: 0x778899, StartingPSN: 0xaabbcc, ResponderResources: 3, InitiatorDepth: 1,
		TargetACKDelay: 15, FailoverAccepted: mad.FailoverRejected, FlowControl: true, RNRRetryCount: 5, SRQ: true,
		ECE: ECE{VendorID: 0xabcdef, AttrMod: 7},
	}
	if len(events) != 3 || !reflect.DeepEqual(events[1], Event{
		Type: EventREPReceived, ID: id, PrivateData: padded("reply", MaxREPData), REP: wantREP,
	}) {
		t.Errorf("events %+v", events)
	}
	if h := header(rtu); h.TransactionID != tid || h.AttributeModifier != 0 {
		t.Errorf("header of the RTU %+v, want transaction id %#x", h, tid)
	}
	if rtu := decode[mad.ReadyToUse](rtu); rtu.LocalCommunicationID != id.LocalID() || rtu.RemoteCommunicationID != id.RemoteID() {
		t.Errorf("RTU from %#x to %#x", rtu.LocalCommunicationID, rtu.RemoteCommunicationID)
	}
	if !reflect.DeepEqual(events[2], Event{Type: EventRTUReceived, ID: events[0].ID, PrivateData: padded("ready", MaxRTUData)}) {
		t.Errorf("event %+v", events[2])
	}
	f.checkEmpty()
}

// TestTransactionIDs: a DREQ or LAP of either side has its own, an answer that
// of its request (cm_form_tid).
func TestTransactionIDs(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	_, b := f.connect()
	want := 0xaa07<<32 | uint64(b.LocalID())
	f.a.on = func(_ *node, e Event) { f.must(e.ID.ReplyAlternatePath(f.now, &AlternatePathReply{})) }
	f.must(b.LoadAlternatePath(f.now, &AlternatePath{Path: path(7, 5)}))
	f.pump()
	if q, r := header(f.last(f.b, LAP)).TransactionID, header(f.last(f.a, APR)).TransactionID; q != want || r != want {
		t.Errorf("transaction ids %#x and %#x of LAP and APR, want %#x", q, r, want)
	}

	f = newFabric(t)
	f.listenAll()
	_, b = f.connect()
	f.must(b.Disconnect(f.now, nil))
	f.pump()
	dreq, drep := f.last(f.b, DREQ), f.last(f.a, DREP)
	if q, r := header(dreq).TransactionID, header(drep).TransactionID; q != want || r != want {
		t.Errorf("transaction ids %#x and %#x, want %#x", q, r, want)
	}
	q := decode[mad.DisconnectRequest](dreq)
	if q.LocalCommunicationID != b.LocalID() || q.RemoteCommunicationID != b.RemoteID() || q.RemoteQPNEECN != 0x112233 {
		t.Errorf("DREQ %+v", q)
	}
	f.checkEmpty()
}

// TestTransports: how a REQ asks for a kind of queue pair, and what it is to its
// receiver (cm_req_set_qp_type, cm_req_get_qp_type); of an XRC connection, the
// target's number is in the EE context field and the initiator has nothing to
// say of its responder (cm_format_req, cm_format_rep, cm_rep_get_qpn).
func TestTransports(t *testing.T) {
	tests := []struct {
		name string
		ask  QPType
		want QPType
		req  mad.ConnectRequest
		rep  mad.ConnectReply
	}{
		{
			"RC", RC, RC, mad.ConnectRequest{TransportServiceType: 0, ResponderResources: 4, RetryCount: 7, RNRRetryCount: 6},
			mad.ConnectReply{LocalQPN: 0x778899, InitiatorDepth: 3},
		},
		{
			"UC", UC, UC, mad.ConnectRequest{TransportServiceType: 1, ResponderResources: 4, RetryCount: 7, RNRRetryCount: 6},
			mad.ConnectReply{LocalQPN: 0x778899, InitiatorDepth: 3},
		},
		{
			"XRC", XRCInitiator, XRCTarget, mad.ConnectRequest{TransportServiceType: 3, ExtendedTransportType: 1},
			mad.ConnectReply{LocalEEContextNumber: 0x778899, SRQ: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric(t)
			f.listenAll()
			accept := f.b.on
			var got QPType
			f.b.on = func(n *node, e Event) {
				if e.REQ != nil {
					got = e.REQ.QPType
				}
				accept(n, e)
			}
			var remote uint32
			accepted := f.a.on
			f.a.on = func(n *node, e Event) {
				if e.REP != nil {
					remote = e.REP.RemoteQPN
				}
				accepted(n, e)
			}
			r := request()
			r.QPType = tt.ask
			f.must(f.a.NewID().Connect(f.now, r))
			f.pump()
			req := decode[mad.ConnectRequest](f.last(f.a, REQ))
			if req.TransportServiceType != tt.req.TransportServiceType || req.ExtendedTransportType != tt.req.ExtendedTransportType ||
				req.ResponderResources != tt.req.ResponderResources || req.RetryCount != tt.req.RetryCount || req.RNRRetryCount != tt.req.RNRRetryCount {
				t.Errorf("REQ %+v,\nwant %+v", req, tt.req)
			}
			rep := decode[mad.ConnectReply](f.last(f.b, REP))
			if rep.LocalQPN != tt.rep.LocalQPN || rep.LocalEEContextNumber != tt.rep.LocalEEContextNumber ||
				rep.InitiatorDepth != tt.rep.InitiatorDepth || rep.SRQ != tt.rep.SRQ {
				t.Errorf("REP %+v,\nwant %+v", rep, tt.rep)
			}
			if got != tt.want || remote != 0x778899 {
				t.Errorf("queue pair of type %d, remote one %#x; want %d and 0x778899", got, remote, tt.want)
			}
			f.checkEmpty()
		})
	}
	t.Run("unknown", func(t *testing.T) {
		for _, p := range []mad.ConnectRequest{{TransportServiceType: 2}, {TransportServiceType: 3}, {TransportServiceType: 3, ExtendedTransportType: 2}} {
			if got := qpTypeOf(&p); got != 0 {
				t.Errorf("transport %d.%d is queue pair type %d, want 0", p.TransportServiceType, p.ExtendedTransportType, got)
			}
		}
	})
	t.Run("refused", func(t *testing.T) {
		for _, qpt := range []QPType{0, UD, XRCTarget} {
			r := request()
			r.QPType = qpt
			wantErr(t, newFabric(t).a.NewID().Connect(start, r), ErrInvalid)
		}
	})
}

// TestRefusedPaths: paths that the port cannot send along (cm_init_av_by_path,
// cm_validate_req_param).
func TestRefusedPaths(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Request)
		want   error
	}{
		{"foreign SGID", func(r *Request) { r.Primary.SGID = gid(9) }, ErrInvalid},
		{"no SGID", func(r *Request) { r.Primary.SGID = mad.GID{} }, ErrInvalid},
		{"foreign P_Key", func(r *Request) { r.Primary.PKey = 0x9999 }, ErrNoPKey},
		{"P_Key 0", func(r *Request) { r.Primary.PKey = 0 }, ErrNoPKey},
		{"foreign alternate SGID", func(r *Request) { r.Alternate.SGID = gid(9) }, ErrInvalid},
		{"other alternate P_Key", func(r *Request) { r.Alternate.PKey = 0x8001 }, ErrInvalid},
		{"other alternate MTU", func(r *Request) { r.Alternate.MTU = mad.MTU4096 }, ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric(t)
			r, alternate := request(), path(5, 7)
			r.Alternate = &alternate
			tt.change(r)
			id := f.a.NewID()
			wantErr(t, id.Connect(f.now, r), tt.want)
			if id.State() != Idle || !f.a.Deadline().IsZero() {
				t.Errorf("the state is %v", id.State())
			}
			f.checkEmpty()
		})
	}
}

// TestPKeyIndex: the full member of a partition goes first, else the last
// limited one (ib_find_cached_pkey).
func TestPKeyIndex(t *testing.T) {
	m := New(Config{Info: port.Info{PKeys: []mad.PKey{0, 0x7fff, 0x0001, 0xffff, 0x8002, 0x0001}}})
	for key, want := range map[mad.PKey]int{0x7fff: 3, 0xffff: 3, 0x8001: 5, 0x0002: 4, 0x0003: -1, 0: -1, 0x8000: -1} {
		if got, _ := m.findPKey(key); got != want {
			t.Errorf("P_Key %v is at %d, want %d", key, got, want)
		}
	}
	if got, key := New(Config{}).findPKey(0x8009); got != 0 || key != 0x8009 {
		t.Errorf("without a table: %d, %v", got, key)
	}
}
