package porttest

import (
	"context"
	"errors"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// RunContract runs the part that does not depend on time.
func RunContract(t *testing.T, b Bench) {
	b.checkExceptions(t)
	run(t, &b, contractTests)
}

// checkExceptions fails for an exception to a test that does not exist.
func (b *Bench) checkExceptions(t *testing.T) {
	known := make(map[string]bool)
	for _, c := range append(contractTests[:len(contractTests):len(contractTests)], timingTests...) {
		known[c.name] = true
	}
	for name := range b.Except {
		if !known[name] {
			t.Errorf("exception to %q, which is no test", name)
		}
	}
}

func serves(b *Bench) bool { return b.Serves }

var contractTests = []test{
	{"RegistrationRules", nil, registrationRules},
	{"Slots", nil, slots},
	{"MethodOwners", serves, methodOwners},
	{"DirectedRouteIsItsOwnClass", func(b *Bench) bool { return b.QP0 && b.Serves }, directedIsSeparate},
	{"OUISlots", serves, ouiSlots},
	{"Unregister", nil, unregister},
	{"IsSM", func(b *Bench) bool { return b.IsSM }, isSM},
	{"Close", nil, closePort},
	{"CloseDevice", nil, closeDevice},
	{"Remove", nil, remove},

	{"SendChecks", nil, sendChecks},
	{"TransactionIDs", serves, transactionIDs},
	{"RouteRequests", serves, routeRequests},
	{"RouteResponses", serves, routeResponses},
	{"UnownedRequest", func(b *Bench) bool { return b.Silence }, unownedRequest},
	{"ForeignResponse", func(b *Bench) bool { return b.Serves && b.Silence }, foreignResponse},
	{"DuplicateRequest", func(b *Bench) bool { return b.Serves && b.Silence }, duplicateRequest},
	{"DuplicateResponse", func(b *Bench) bool { return b.Serves && b.Silence }, duplicateResponse},
	{"ReceiveIntoBuffer", serves, receiveIntoBuffer},
	{"ManyInFlight", serves, manyInFlight},

	{"KernelRMPPResponse", func(b *Bench) bool { return b.Serves && b.KernelRMPP }, kernelRMPPResponse},
	{"KernelRMPPBothWays", func(b *Bench) bool { return b.Serves && b.KernelRMPP }, kernelRMPPBothWays},
	{"KernelRMPPInactive", func(b *Bench) bool { return b.Serves && b.KernelRMPP }, kernelRMPPInactive},
	{"KernelRMPPUnsolicited", func(b *Bench) bool { return b.Serves && b.KernelRMPP && b.UserRMPP && b.Silence }, kernelRMPPUnsolicited},
	{"UserRMPP", func(b *Bench) bool { return b.Serves && b.UserRMPP }, userRMPP},
}

// registrationRules checks what is refused and as what (kernel: mad.c,
// ib_register_mad_agent; user_mad.c, ib_umad_reg_agent2).
func registrationRules(e *env) {
	get := port.Methods(mad.MethodGet)
	for _, c := range []struct {
		name string
		reg  port.Registration
		want error
	}{
		{"send only on QP1", port.Registration{QPN: 1}, nil},
		{"send only, other fields ignored", port.Registration{QPN: 1, Version: 0xff, OUI: 0xff000000, Methods: get}, nil},
		{"class without methods", port.Registration{QPN: 1, Class: mad.ClassSubnAdm, Version: 2}, nil},
		{"QP 2", port.Registration{QPN: 2, Class: mad.ClassSubnAdm, Version: 2}, port.ErrInvalid},
		{"class version 0x82", port.Registration{QPN: 1, Class: 0x09, Version: 0x82}, nil},
		{"class version 0x83", port.Registration{QPN: 1, Class: 0x09, Version: 0x83}, port.ErrInvalid},
		{"class 0x4f", port.Registration{QPN: 1, Class: 0x4f, Version: 1, OUI: testOUI}, nil},
		{"class 0x50", port.Registration{QPN: 1, Class: 0x50, Version: 1, OUI: testOUI}, port.ErrInvalid},
		{"class 0x80", port.Registration{QPN: 1, Class: 0x80, Version: 1}, port.ErrInvalid},
		{"first vendor range needs no OUI", port.Registration{QPN: 1, Class: 0x2f, Version: 1}, nil},
		{"second vendor range without OUI", port.Registration{QPN: 1, Class: 0x30, Version: 1}, port.ErrInvalid},
		{"OUI of 25 bits", port.Registration{QPN: 1, Class: 0x30, Version: 1, OUI: 1 << 24}, port.ErrInvalid},
		{"SM class on QP1", port.Registration{QPN: 1, Class: mad.ClassSubnLIDRouted, Version: 1}, port.ErrInvalid},
		{"directed route class on QP1", port.Registration{QPN: 1, Class: mad.ClassSubnDirected, Version: 1}, port.ErrInvalid},
	} {
		e.checkRegistration(c.name, c.reg, c.want)
	}
	qp0 := func(class mad.Class, want error) {
		if !e.bench.QP0 {
			want = port.ErrNoQP
		}
		e.checkRegistration("class "+class.String()+" on QP0", port.Registration{QPN: 0, Class: class, Version: 1}, want)
	}
	qp0(0, nil)
	qp0(mad.ClassSubnLIDRouted, nil)
	qp0(mad.ClassSubnDirected, nil)
	if e.bench.QP0 {
		qp0(mad.ClassPerf, port.ErrInvalid)
	}

	for _, class := range []mad.Class{0x03, 0x06, 0x10, 0x12, 0x30, 0x4f, 0x04, 0x07, 0x09, 0x2f, 0x11} {
		var want error
		if !mad.HasRMPP(class) {
			want = port.ErrInvalid
		}
		reg := port.Registration{QPN: 1, Class: class, Version: 1, OUI: testOUI}
		if e.bench.KernelRMPP {
			reg.RMPP = port.RMPPKernel
			e.checkRegistration("kernel RMPP, class "+class.String(), reg, want)
		}
		if e.bench.UserRMPP {
			reg.RMPP = port.RMPPUser
			e.checkRegistration("user RMPP, class "+class.String(), reg, want)
		}
	}
	if e.bench.KernelRMPP {
		e.checkRegistration("kernel RMPP, send only", port.Registration{QPN: 1, RMPP: port.RMPPKernel}, nil)
	}
	if e.bench.UserRMPP {
		e.checkRegistration("user RMPP, send only", port.Registration{QPN: 1, RMPP: port.RMPPUser}, port.ErrInvalid)
	}
}

func (e *env) checkRegistration(name string, r port.Registration, want error) {
	e.Helper()
	p, err := e.A.Open()
	if err != nil {
		e.Fatal(err)
	}
	defer p.Close()
	_, err = p.Register(r)
	if !errors.Is(err, want) {
		e.Errorf("%s: error %v, want %v", name, err, want)
	}
	e.checkError(err)
}

// checkError checks that an error says what was asked and of whom.
func (e *env) checkError(err error) {
	e.Helper()
	if err == nil {
		return
	}
	var detail *port.Error
	if !errors.As(err, &detail) || detail.Op == "" || detail.Port == "" || detail.Err == nil {
		e.Errorf("error %#v is no complete *port.Error", err)
	}
}

func slots(e *env) {
	s := e.openA()
	reg := port.Registration{QPN: mad.QPGSI}
	for want := range port.AgentID(port.MaxAgents) {
		if id := s.register(reg); id != want {
			e.Fatalf("agent %d, want %d", id, want)
		}
	}
	if _, err := s.port.Register(reg); !errors.Is(err, port.ErrNoSlot) {
		e.Errorf("33rd agent: error %v, want ErrNoSlot", err)
	}
	for _, id := range []port.AgentID{17, 5} {
		if err := s.port.Unregister(id); err != nil {
			e.Error(err)
		}
	}
	for _, want := range []port.AgentID{5, 17} {
		if id := s.register(reg); id != want {
			e.Errorf("agent %d, want the lowest free slot %d", id, want)
		}
	}
	if id := e.openA().register(reg); id != 0 {
		e.Errorf("agent %d on another Port, want 0: slots belong to the Port", id)
	}
}

func methodOwners(e *env) {
	s, other := e.openA(), e.openA()
	const get, set, send = mad.MethodGet, mad.MethodSet, mad.MethodSend
	owner := s.server(get, set)

	taken := func(what string, r port.Registration) {
		e.Helper()
		for _, p := range []*station{s, other} {
			_, err := p.port.Register(r)
			if !errors.Is(err, port.ErrMethodOwned) || !errors.Is(err, port.ErrInvalid) {
				e.Errorf("%s: error %v, want ErrMethodOwned", what, err)
			}
			e.checkError(err)
		}
	}
	taken("same methods", serverOf(get, set))
	taken("one of the methods", serverOf(send, set))
	other.server(send) // was not taken by the attempt before

	different := serverOf(get)
	different.Version++
	other.register(different)
	different = serverOf(get)
	different.Class++
	other.register(different)
	different = serverOf(get)
	different.OUI++
	other.register(different)
	other.client()

	if err := s.port.Unregister(owner); err != nil {
		e.Fatal(err)
	}
	other.server(get)
	taken("method of another Port", serverOf(get))
	if err := other.port.Close(); err != nil {
		e.Fatal(err)
	}
	s.server(get, set, send)
}

func directedIsSeparate(e *env) {
	s := e.openA()
	for _, class := range []mad.Class{mad.ClassSubnLIDRouted, mad.ClassSubnDirected} {
		s.register(port.Registration{QPN: mad.QPSMI, Class: class, Version: 1, Methods: port.Methods(mad.MethodTrap)})
	}
}

func ouiSlots(e *env) {
	s := e.openA()
	reg := serverOf(mad.MethodGet)
	for oui := range uint32(8) {
		reg.OUI = 0x100 + oui
		s.register(reg)
	}
	reg.OUI = 0x200
	if _, err := s.port.Register(reg); !errors.Is(err, port.ErrNoSlot) {
		e.Errorf("ninth OUI of a class: error %v, want ErrNoSlot", err)
	}
	reg.Version++
	s.register(reg) // counted by version
	reg.Version--
	if err := s.port.Unregister(3); err != nil {
		e.Fatal(err)
	}
	s.register(reg)
}

func unregister(e *env) {
	s := e.openA()
	id := s.client()
	if err := s.port.Unregister(id); err != nil {
		e.Error(err)
	}
	for _, id := range []port.AgentID{id, port.MaxAgents, 1 << 31} {
		err := s.port.Unregister(id)
		if !errors.Is(err, port.ErrInvalid) {
			e.Errorf("unregister agent %d: error %v, want ErrInvalid", id, err)
		}
		e.checkError(err)
	}
	err := s.port.Send(&port.Message{Agent: id, Addr: s.to, Data: newMAD(testClass, mad.MethodGet, 1)})
	if !errors.Is(err, port.ErrNoAgent) {
		e.Errorf("send from an unregistered agent: error %v, want ErrNoAgent", err)
	}
}

func isSM(e *env) {
	held := func() bool {
		info, err := e.A.Info()
		if err != nil {
			e.Fatal(err)
		}
		return info.CapMask&(1<<1) != 0 // IBA 14.2.5.6: IsSM
	}
	if held() {
		e.Error("IsSM is set before anybody holds it")
	}
	hold, err := e.A.HoldIsSM(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	if !held() {
		e.Error("IsSM is not set while held")
	}
	expired, cancel := context.WithCancel(e.Context())
	cancel()
	if _, err := e.A.HoldIsSM(expired); !errors.Is(err, port.ErrBusy) {
		e.Errorf("second hold without waiting: error %v, want ErrBusy", err)
	}
	got := make(chan error)
	go func() {
		second, err := e.A.HoldIsSM(e.Context())
		if err == nil {
			err = second.Close()
		}
		got <- err
	}()
	if err := hold.Close(); err != nil {
		e.Error(err)
	}
	if err := <-got; err != nil {
		e.Errorf("second hold, waiting: %v", err)
	}
	if held() {
		e.Error("IsSM is set after the last holder let go")
	}
}

func closePort(e *env) {
	s := e.openA()
	id := s.client()
	s.ask(id, methodUnanswered, 1, patience)
	if err := s.port.Close(); err != nil {
		e.Error(err)
	}
	if err := s.end(); !errors.Is(err, port.ErrClosed) {
		e.Errorf("Recv ended with %v, want ErrClosed", err)
	}
	e.checkDead(s, port.ErrClosed)
	if err := s.port.Close(); err != nil {
		e.Errorf("second Close: %v", err)
	}
	e.openA() // the device lives on
}

// checkDead checks what a Port says that is closed or gone.
func (e *env) checkDead(s *station, want error) {
	e.Helper()
	if err := s.port.Send(&port.Message{Addr: s.to, Data: newMAD(testClass, mad.MethodGet, 1)}); !errors.Is(err, want) {
		e.Errorf("Send: error %v, want %v", err, want)
	}
	if _, err := s.port.Register(port.Registration{QPN: mad.QPGSI}); !errors.Is(err, want) {
		e.Errorf("Register: error %v, want %v", err, want)
	}
	var m port.Message
	err := s.port.Recv(&m)
	if !errors.Is(err, want) {
		e.Errorf("Recv: error %v, want %v", err, want)
	}
	e.checkError(err)
}

func closeDevice(e *env) {
	s, closed := e.openA(), e.openA()
	s.client()
	if err := closed.port.Close(); err != nil {
		e.Error(err)
	}
	if err := e.A.Close(); err != nil {
		e.Error(err)
	}
	if err := s.end(); !errors.Is(err, port.ErrGone) {
		e.Errorf("Recv ended with %v, want ErrGone", err)
	}
	e.checkDead(s, port.ErrGone)
	e.checkDead(closed, port.ErrClosed)
	if _, err := e.A.Open(); !errors.Is(err, port.ErrClosed) {
		e.Errorf("Open: error %v, want ErrClosed", err)
	}
}

func remove(e *env) {
	if e.Pair.Remove == nil {
		e.Skip("the back end's device cannot be removed")
	}
	s := e.openA()
	s.client()
	e.Pair.Remove()
	if err := s.end(); !errors.Is(err, port.ErrGone) {
		e.Errorf("Recv ended with %v, want ErrGone", err)
	}
	e.checkDead(s, port.ErrGone)
	if _, err := e.A.Open(); !errors.Is(err, port.ErrGone) {
		e.Errorf("Open: error %v, want ErrGone", err)
	}
}
