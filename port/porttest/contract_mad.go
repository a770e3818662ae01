package porttest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// soon is a time-out that is over before a test's patience is.
const soon = 50 * time.Millisecond

// sendChecks checks what Send refuses (kernel: user_mad.c, ib_umad_write).
func sendChecks(e *env) {
	s := e.openA()
	plain := s.register(port.Registration{QPN: mad.QPGSI})
	type check struct {
		name  string
		agent port.AgentID
		data  []byte
		want  error
	}
	sa, vendor := newMAD(mad.ClassSubnAdm, methodUnanswered, 1), newMAD(testClass, methodUnanswered, 2)
	perf := newMAD(mad.ClassPerf, methodUnanswered, 3)
	active := slices.Concat(vendor, make([]byte, 1))
	active[26] = 1 // Active
	checks := []check{
		{"nothing", plain, nil, port.ErrInvalid},
		{"35 bytes", plain, perf[:35], port.ErrInvalid},
		{"36 bytes", plain, perf[:36], nil},
		{"vendor MAD of 39 bytes", plain, vendor[:39], port.ErrInvalid},
		{"vendor MAD of 40 bytes", plain, vendor[:40], nil},
		{"SA MAD of 55 bytes", plain, sa[:55], port.ErrInvalid},
		{"SA MAD of 56 bytes", plain, sa[:56], nil},
		{"257 bytes", plain, append(slices.Clone(vendor), 0), port.ErrInvalid},
		{"257 active bytes without RMPP", plain, active, port.ErrInvalid},
		{"empty slot", 7, vendor, port.ErrNoAgent},
		{"slot 32", port.MaxAgents, vendor, port.ErrInvalid},
	}
	if e.bench.KernelRMPP {
		rmpp := s.register(port.Registration{QPN: mad.QPGSI, RMPP: port.RMPPKernel})
		checks = append(checks,
			check{"kernel RMPP, 257 inactive bytes", rmpp, append(slices.Clone(vendor), 0), port.ErrInvalid},
			check{"kernel RMPP, class without RMPP", rmpp, perf, port.ErrInvalid})
	}
	if e.bench.UserRMPP {
		reg := port.Registration{QPN: mad.QPGSI, Class: mad.ClassSubnAdm, Version: saVersion, RMPP: port.RMPPUser}
		rmpp := s.register(reg)
		checks = append(checks,
			check{"user RMPP, 257 active bytes", rmpp, active, port.ErrInvalid},
			check{"user RMPP, class without RMPP", rmpp, perf, port.ErrInvalid})
	}
	for _, c := range checks {
		err := s.port.Send(&port.Message{Agent: c.agent, Addr: s.to, Data: c.data})
		if !errors.Is(err, c.want) {
			e.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
		e.checkError(err)
	}
}

// transactionIDs checks who owns which half: the sender of a request the lower,
// the device the upper, and the sender of a response neither.
func transactionIDs(e *env) {
	a, a2, b := e.openA(), e.openA(), e.openB()
	b.server(mad.MethodGet)
	seen := make(map[uint32]bool)
	for i, c := range []struct {
		s  *station
		id port.AgentID
	}{{a, a.client()}, {a, a.client()}, {a2, a2.client()}} {
		tid := 0xabcd0000 + uint32(i)
		sent := newMAD(testClass, mad.MethodGet, tid)
		before := slices.Clone(sent)
		c.s.send(port.Message{Agent: c.id, Timeout: patience, Addr: c.s.to, Data: sent})
		if !bytes.Equal(sent, before) {
			e.Error("Send changed the caller's message")
		}
		request := b.next()
		hi := hiTID(request)
		if tidOf(request) != tid || hi == 0xdeadbeef || hi == 0 || hi>>24 != 0 {
			e.Errorf("request arrived with transaction id %#x %#x, want a device's 24 bits and %#x", hi, tidOf(request), tid)
		}
		if seen[hi] {
			e.Errorf("two agents share the upper half %#x", hi)
		}
		seen[hi] = true
		copy(before[mad.OffTID:], request.Data[mad.OffTID:mad.OffTID+4])
		if !bytes.Equal(request.Data, before) {
			e.Errorf("request arrived as\n%x, sent as\n%x", request.Data, before)
		}
		b.answer(request)
		m := c.s.next()
		if m.Agent != c.id || m.TimedOut || hiTID(m) != hi || tidOf(m) != tid {
			e.Errorf("%s: want the response with transaction id %#x %#x", describe(m), hi, tid)
		}
		if m.Timeout != 0 || m.Retries != 0 {
			e.Errorf("received message with timeout %v and retries %d, want 0", m.Timeout, m.Retries)
		}
	}
}

func routeRequests(e *env) {
	a, b, b2 := e.openA(), e.openB(), e.openB()
	id := a.client()
	get, set := b.server(mad.MethodGet), b.server(mad.MethodSet, mad.MethodReport)
	version := serverOf(mad.MethodGet)
	version.Version = 2
	oui := serverOf(mad.MethodGet)
	oui.OUI = 0xabcdef
	v2, vendor := b2.register(version), b2.register(oui)

	for i, c := range []struct {
		method  mad.Method
		version uint8
		oui     uint32
		s       *station
		want    port.AgentID
	}{
		{mad.MethodGet, testVersion, testOUI, b, get},
		{mad.MethodSet, testVersion, testOUI, b, set},
		{mad.MethodReport, testVersion, testOUI, b, set},
		{mad.MethodGet, 2, testOUI, b2, v2},
		{mad.MethodGet, testVersion, 0xabcdef, b2, vendor},
	} {
		data := newMAD(testClass, c.method, uint32(i))
		data[mad.OffClassVersion] = c.version
		binary.BigEndian.PutUint32(data[36:], c.oui)
		a.send(port.Message{Agent: id, Addr: a.to, Data: data})
		if m := c.s.next(); m.Agent != c.want || tidOf(m) != uint32(i) {
			e.Errorf("request %d: %s, want agent %d", i, describe(m), c.want)
		}
	}
}

func routeResponses(e *env) {
	a, a2, b := e.openA(), e.openA(), e.openB()
	b.server(mad.MethodGet)
	type asker struct {
		s  *station
		id port.AgentID
	}
	askers := []asker{{a, a.client()}, {a, a.client()}, {a2, a2.client()}, {a2, a2.client()}}
	const tid = 77 // the same of all: the device tells them apart
	var requests []port.Message
	for _, c := range askers {
		c.s.ask(c.id, mad.MethodGet, tid, patience)
		requests = append(requests, b.next())
	}
	for i := len(askers) - 1; i >= 0; i-- {
		b.answer(requests[i])
		if m := askers[i].s.next(); m.Agent != askers[i].id || tidOf(m) != tid {
			e.Errorf("response %d: %s, want agent %d", i, describe(m), askers[i].id)
		}
	}
}

// unownedRequest checks that a device answers a Get or Set for which it has no
// agent, and nothing else (kernel: mad.c, generate_unmatched_resp).
func unownedRequest(e *env) {
	a := e.openA()
	id := a.client()
	for i, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
		a.ask(id, method, uint32(i), patience)
		m := a.next()
		if m.TimedOut || mad.Method(m.Data[mad.OffMethod]) != mad.MethodGetResp || tidOf(m) != uint32(i) {
			e.Errorf("%v: %s, want GetResp", method, describe(m))
			continue
		}
		if status := mad.Status(binary.BigEndian.Uint16(m.Data[mad.OffStatus:])); status != mad.StatusBadAttribute {
			e.Errorf("%v: status %#04x, want 0x000c", method, uint16(status))
		}
	}
	a.ask(id, mad.MethodReport, 9, soon)
	if m := a.next(); !m.TimedOut {
		e.Errorf("Report: %s, want a time-out", describe(m))
	}
}

// foreignResponse checks that only what was asked for is delivered.
func foreignResponse(e *env) {
	a, b := e.openA(), e.openB()
	id := a.client()
	b.server(mad.MethodGet)
	a.ask(id, mad.MethodGet, 1, patience)
	request := b.next()
	unasked := response(request)
	for _, change := range []func(data []byte){
		func(data []byte) { data[mad.OffTID+7]++ },                     // transaction id of the sender
		func(data []byte) { data[mad.OffTID+3]++ },                     // of the device
		func(data []byte) { data[mad.OffTID] = 0x80 },                  // its top byte
		func(data []byte) { data[mad.OffClass] = 0x33 },                // class
		func(data []byte) { copy(data[mad.OffTID:], make([]byte, 4)) }, // no device's
	} {
		m := response(request)
		change(m.Data)
		b.send(m)
	}
	a.quiet(soon)
	b.answer(request)
	if m := a.next(); tidOf(m) != 1 {
		e.Errorf("%s, want the response", describe(m))
	}
	b.send(unasked) // the second response to one request
	a.quiet(soon)
}

func duplicateRequest(e *env) {
	a, b := e.openA(), e.openB()
	id, second := a.client(), a.client()
	server := b.server(mad.MethodGet)
	other := port.Registration{QPN: mad.QPGSI, Class: mad.ClassSubnAdm, Version: saVersion}
	sa := a.register(other)
	a.ask(id, mad.MethodGet, 5, patience)
	request := b.next()
	again := port.Message{Agent: id, Timeout: patience, Addr: a.to, Data: newMAD(testClass, mad.MethodGet, 5)}
	refused := func(what string) {
		e.Helper()
		err := a.port.Send(&again)
		if !errors.Is(err, port.ErrDuplicateTID) || !errors.Is(err, port.ErrInvalid) {
			e.Errorf("%s: error %v, want ErrDuplicateTID", what, err)
		}
		e.checkError(err)
	}
	refused("same transaction id")
	again.Timeout = 0
	refused("same transaction id, no answer wanted")
	again.Data = newMAD(testClass, mad.MethodSet, 5)
	again.Addr.LID++
	refused("same transaction id, other method and destination")

	a.ask(second, mad.MethodGet, 5, 0) // another agent's id
	if m := b.next(); m.Agent != server {
		e.Error(describe(m))
	}
	a.send(port.Message{Agent: sa, Addr: a.to, Data: newMAD(mad.ClassSubnAdm, methodUnanswered, 5)}) // another class

	b.answer(request)
	a.next()
	a.ask(id, mad.MethodGet, 5, 0)
	b.next()
	a.ask(id, mad.MethodGet, 5, 0) // nothing stays in flight without a time-out
	b.next()
}

// duplicateResponse checks that responses clash by destination, and only while
// they wait for something.
func duplicateResponse(e *env) {
	a, b := e.openA(), e.openB()
	id := a.client()
	b.server(mad.MethodGet)
	a.ask(id, mad.MethodGet, 5, patience)
	m := response(b.next())
	m.Timeout = soon
	b.send(m)
	if err := b.port.Send(&m); !errors.Is(err, port.ErrDuplicateTID) {
		e.Errorf("same response again: error %v, want ErrDuplicateTID", err)
	}
	elsewhere := m
	elsewhere.Addr.LID++
	elsewhere.Timeout = 0
	b.send(elsewhere)
	if m := b.next(); !m.TimedOut {
		e.Errorf("%s, want the time-out of the response", describe(m))
	}
	b.send(m)
}

// receiveIntoBuffer checks that Recv replaces what the message held.
func receiveIntoBuffer(e *env) {
	a := e.openA()
	id := a.client()
	b, err := e.B.Open()
	if err != nil {
		e.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Register(serverOf(mad.MethodSend)); err != nil {
		e.Fatal(err)
	}
	buf := bytes.Repeat([]byte{0xee}, 4*mad.Size)
	m := port.Message{
		Agent: 9, TimedOut: true, Timeout: time.Hour, Retries: 3,
		Addr: mad.AddressVector{LID: 99, HasGRH: true, GRH: mad.GRH{HopLimit: 4}},
		Data: buf,
	}
	a.ask(id, mad.MethodSend, 8, 0)
	if err := b.Recv(&m); err != nil {
		e.Fatal(err)
	}
	if len(m.Data) != mad.Size || &m.Data[0] != &buf[0] {
		e.Errorf("received %d bytes, in the message's own buffer %v; want %d and true", len(m.Data), &m.Data[0] == &buf[0], mad.Size)
	}
	if m.Agent != 0 || m.TimedOut || m.Timeout != 0 || m.Retries != 0 || m.Addr.HasGRH {
		e.Errorf("fields are left from before: %+v", m)
	}
	if m.Addr.LID != e.ToA.LID || m.Addr.QPN != mad.QPGSI {
		e.Errorf("received from %v QP %d, want %v QP 1", m.Addr, m.Addr.QPN, e.ToA)
	}
	a.ask(id, mad.MethodSend, 9, 0)
	m = port.Message{}
	if err := b.Recv(&m); err != nil || len(m.Data) != mad.Size || tidOf(m) != 9 {
		e.Errorf("into an empty message: %v, %d bytes", err, len(m.Data))
	}
}

// manyInFlight answers many requests in another order.
func manyInFlight(e *env) {
	const n = 100
	a, b := e.openA(), e.openB()
	id := a.client()
	b.server(mad.MethodGet)
	var requests []port.Message
	for tid := range uint32(n) {
		a.ask(id, mad.MethodGet, tid, patience)
		requests = append(requests, b.next())
	}
	for i := range n {
		b.answer(requests[i*37%n])
	}
	seen := make(map[uint32]bool)
	for range n {
		m := a.next()
		tid := tidOf(m)
		want := newMAD(testClass, mad.MethodGet, tid)
		if m.TimedOut || seen[tid] || !bytes.Equal(m.Data[40:], want[40:]) {
			e.Fatalf("%s: not the one answer to request %d", describe(m), tid)
		}
		seen[tid] = true
	}
}
