package cm

import (
	"reflect"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
)

func sidrRequest() *SIDRRequest {
	return &SIDRRequest{
		Path: path(5, 7), ServiceID: service, Timeout: 4096 * time.Millisecond, MaxCMRetries: maxRetries,
		PrivateData: []byte("who"),
	}
}

// TestSIDR compares both messages and both events with what was asked for
// (cm_format_sidr_req, cm_format_sidr_rep and their events).
func TestSIDR(t *testing.T) {
	f := newFabric(t)
	listener := f.listenAll()
	listener.Context = "listener"
	var request, answer Event
	f.b.on = func(_ *node, e Event) { request = e }
	f.a.on = func(_ *node, e Event) { answer = e }
	r := sidrRequest()
	r.Path.PKey = 0x8001
	id := f.a.NewID()
	f.must(id.RequestSIDR(f.now, r))
	f.pump()
	p := f.last(f.a, SIDRREQ)
	wantREQ := mad.ServiceIDResReq{RequestID: id.LocalID(), PartitionKey: 0x8001, ServiceID: service, PrivateData: [216]byte(padded("who", 216))}
	if got := decode[mad.ServiceIDResReq](p); got != wantREQ || p.PKey != 0x8001 || p.Addr.PKeyIndex != 1 {
		t.Errorf("SIDR_REQ %+v with P_Key %v at %d", got, p.PKey, p.Addr.PKeyIndex)
	}
	passive := request.ID
	if !reflect.DeepEqual(request, Event{
		Type: EventSIDRREQReceived, ID: passive, Listener: listener, PrivateData: padded("who", MaxSIDRREQData),
		SIDRREQ: &SIDRRequestReceived{
			ServiceID: service, PKey: 0x8001, MessagePKey: 0x8001, From: mad.AddressVector{LID: 5, QPN: 1, SL: 3, PKeyIndex: 1},
		},
	}) || passive.Context != "listener" {
		t.Errorf("event %+v, %+v", request, request.SIDRREQ)
	}
	// Until it is answered it may come again (cm_insert_remote_sidr).
	f.again(f.a, SIDRREQ)
	if s := f.b.Stats(); s.Duplicates[SIDRREQ] != 1 || f.b.IDs() != 2 {
		t.Errorf("%d duplicates and %d ids, want 1 and 2", s.Duplicates[SIDRREQ], f.b.IDs())
	}

	f.must(passive.ReplySIDR(f.now, &SIDRReply{
		Status: mad.SIDRStatusRedirect, QPN: 0x4321, QKey: 0x80011234, ECE: ECE{VendorID: 0xabcdef, AttrMod: 9},
		Info: []byte("info"), PrivateData: []byte("me"),
	}))
	f.pump()
	q := f.last(f.b, SIDRREP)
	// 16 bits of the vendor id, as the kernel sends them.
	wantREP := mad.ServiceIDResReqResp{
		RequestID: id.LocalID(), Status: 4, AdditionalInformationLength: 4, VendorIDH: 0xcd, VendorIDL: 0xef, QPN: 0x4321,
		ServiceID: service, QKey: 0x80011234, AdditionalInformation: [72]byte(padded("info", 72)), PrivateData: [136]byte(padded("me", 136)),
	}
	if got := decode[mad.ServiceIDResReqResp](q); got != wantREP {
		t.Errorf("SIDR_REP %+v,\nwant %+v", got, wantREP)
	}
	if h := header(q); h.TransactionID != header(p).TransactionID || h.AttributeModifier != 9 {
		t.Errorf("header %+v", h)
	}
	if !reflect.DeepEqual(answer, Event{
		Type: EventSIDRREPReceived, ID: id, PrivateData: padded("me", MaxSIDRREPData),
		SIDRREP: &SIDRReplyReceived{Status: 4, QPN: 0x4321, QKey: 0x80011234, Info: []byte("info")},
	}) {
		t.Errorf("event %+v, %+v", answer, answer.SIDRREP)
	}
	if id.State() != Idle || passive.State() != Idle || !f.a.Deadline().IsZero() {
		t.Errorf("states %v and %v", id.State(), passive.State())
	}
	wantErr(t, passive.Connect(f.now, &Request{}), ErrInvalid)
	f.checkEmpty()
}

// TestSIDRUnsupported: nobody listens (cm_sidr_req_handler).
func TestSIDRUnsupported(t *testing.T) {
	f := newFabric(t)
	var answer Event
	f.a.on = func(_ *node, e Event) { answer = e }
	f.must(f.a.NewID().RequestSIDR(f.now, sidrRequest()))
	f.run(time.Hour)
	f.expect(`
		0s A>SIDR_REQ
		0s B>SIDR_REP
		0s A: SIDR_REP received`)
	if answer.SIDRREP == nil || answer.SIDRREP.Status != mad.SIDRStatusUnsupported || f.b.IDs() != 0 {
		t.Errorf("event %+v, want status unsupported; B has %d ids", answer, f.b.IDs())
	}
	f.checkEmpty()
}

// TestSIDRWithoutWaiting: time-out 0 sends once, and the answer is welcome.
func TestSIDRWithoutWaiting(t *testing.T) {
	f := newFabric(t)
	f.listenAll()
	r := sidrRequest()
	r.Timeout = 0
	id := f.a.NewID()
	f.must(id.RequestSIDR(f.now, r))
	if !f.a.Deadline().IsZero() {
		t.Error("there is a deadline")
	}
	f.pump()
	if id.State() != Idle {
		t.Errorf("the state is %v, want idle", id.State())
	}
	r.Timeout = -1
	wantErr(t, id.RequestSIDR(f.now, r), ErrInvalid)
	r = sidrRequest()
	r.Path.SGID = gid(9)
	wantErr(t, id.RequestSIDR(f.now, r), ErrInvalid)
	f.checkEmpty()
}
