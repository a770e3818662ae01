package ucma_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

var (
	localAddr = ucma.Sockaddr{IP: netip.MustParseAddrPort("192.0.2.1:0")}
	peerAddr  = ucma.Sockaddr{IP: netip.MustParseAddrPort("192.0.2.2:7471")}
	groupAddr = ucma.Sockaddr{IP: netip.MustParseAddrPort("239.1.2.3:0")}
)

// standing is an id that was brought into a state, with the fake that it is of.
type standing struct {
	f   *fakeKernel
	c   *ucma.Channel
	id  *ucma.ID
	dst ucma.Sockaddr
}

// stand makes an id of a port space and brings it into a state: the kernel's, and
// after a slash how far the handshake is.
func stand(t *testing.T, ps ucma.PortSpace, state string) *standing {
	t.Helper()
	return standBefore(t, ps, peerAddr, state)
}

// standBefore is stand with a peer.
func standBefore(t *testing.T, ps ucma.PortSpace, dst ucma.Sockaddr, state string) *standing {
	t.Helper()
	f := newFake(ucma.Linux)
	s := &standing{f: f, c: ucma.NewChannel(f), dst: dst}
	t.Cleanup(func() { s.c.Close() })
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("bringing the id into %s: %v", state, err)
		}
	}
	wait := func(types ...ucma.EventType) ucma.Event {
		t.Helper()
		e, err := s.id.Wait(t.Context(), types...)
		ok(err)
		return e
	}
	// An id that a request came to is made by a listener.
	var err error
	s.id, err = s.c.CreateID(ps, 0)
	ok(err)
	state, phase, _ := strings.Cut(state, "/")
	child := phase == "requested" || phase == "accepted"
	switch {
	case state == "ADDR_BOUND":
		ok(s.id.Bind(localAddr))
	case state == "LISTEN" || child:
		ok(s.id.Listen(0))
		if !child {
			break
		}
		f.request(s.id.Num())
		s.id = wait(ucma.EventConnectRequest).Child
		if phase == "accepted" {
			f.silence(ucma.OpAccept)
			ok(s.id.Accept(ucma.ConnParam{}, nil))
			f.script(ucma.OpAccept, nil)
		}
	case state == "DEVICE_REMOVAL":
		f.send(f.event(s.id.Num(), ucma.EventDeviceRemoval, 0))
		if _, err := s.id.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	case state == "DESTROYING":
		ok(s.id.Destroy(t.Context()))
	case state != "IDLE":
		s.climb(t, state, phase, ok, wait)
	}
	if got := s.id.State().String(); got != state {
		t.Fatalf("the id is in state %s, want %s", got, state)
	}
	return s
}

// climb takes the active side's way.
func (s *standing) climb(t *testing.T, state, phase string, ok func(error), wait func(...ucma.EventType) ucma.Event) {
	t.Helper()
	if state == "ADDR_QUERY" {
		s.f.silence(ucma.OpResolveAddr)
	}
	ok(s.id.ResolveAddr(ucma.Sockaddr{}, s.dst, time.Second))
	if state == "ADDR_QUERY" {
		return
	}
	wait(ucma.EventAddrResolved)
	if state == "ADDR_RESOLVED" {
		return
	}
	if state == "ROUTE_QUERY" {
		s.f.silence(ucma.OpResolveRoute)
	}
	ok(s.id.ResolveRoute(time.Second))
	if state == "ROUTE_QUERY" {
		return
	}
	wait(ucma.EventRouteResolved)
	if state == "ROUTE_RESOLVED" {
		return
	}
	datagram := s.id.QPType() == ucma.QPTypeUD
	switch {
	case phase == "asked":
		s.f.silence(ucma.OpConnect)
	case phase == "failed":
		s.f.reply(ucma.OpConnect, ucma.EventRejected, 8)
	case datagram:
		s.f.reply(ucma.OpConnect, ucma.EventEstablished, 0)
	}
	ok(s.id.Connect(ucma.ConnParam{}, nil))
	switch {
	case phase == "asked":
		return
	case phase == "failed":
		if _, err := s.id.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	case datagram:
		wait(ucma.EventEstablished)
		return
	}
	wait(ucma.EventConnectResponse)
	if phase == "answered" {
		return
	}
	ok(s.id.AcceptRTU())
	if state == "DISCONNECT" {
		ok(s.id.Disconnect())
		wait(ucma.EventDisconnected)
	}
}

// Which command is legal where, of the kernel: cma.c for the states, cm.c for the
// handshake. Everything else must be refused before it is written.
func TestLegalCommands(t *testing.T) {
	connected := []string{"IDLE", "ADDR_BOUND", "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY", "ROUTE_RESOLVED", "LISTEN",
		"CONNECT/asked", "CONNECT/answered", "CONNECT/requested", "CONNECT/accepted", "CONNECT/up", "CONNECT/failed", "DISCONNECT",
		"DEVICE_REMOVAL", "DESTROYING"}
	datagram := []string{"IDLE", "ADDR_BOUND", "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_RESOLVED", "LISTEN", "CONNECT/asked",
		"CONNECT/requested", "CONNECT/up", "DEVICE_REMOVAL", "DESTROYING"}
	living := "IDLE ADDR_BOUND ADDR_QUERY ADDR_RESOLVED ROUTE_QUERY ROUTE_RESOLVED LISTEN CONNECT DISCONNECT"
	tests := []struct {
		command string
		write   func(id *ucma.ID) error
		rc, ud  string // states in which it is legal
	}{
		{"BIND", func(id *ucma.ID) error { return id.Bind(localAddr) }, "IDLE", "IDLE"},
		{"RESOLVE_ADDR", func(id *ucma.ID) error { return id.ResolveAddr(localAddr, peerAddr, time.Second) }, "IDLE ADDR_BOUND", "IDLE ADDR_BOUND"},
		{"RESOLVE_ROUTE", func(id *ucma.ID) error { return id.ResolveRoute(time.Second) }, "ADDR_RESOLVED", "ADDR_RESOLVED"},
		{"SET_OPTION IB_PATH", func(id *ucma.ID) error { return id.SetPath(&mad.PathRecord{}) }, "ADDR_RESOLVED", "ADDR_RESOLVED"},
		{"SET_OPTION TOS", func(id *ucma.ID) error { return id.SetTOS(1) }, living, living},
		{"SET_OPTION REUSEADDR", func(id *ucma.ID) error { return id.SetReuseAddr(true) },
			strings.Replace(living, "LISTEN", "", 1), strings.Replace(living, "LISTEN", "", 1)},
		{"SET_OPTION AFONLY", func(id *ucma.ID) error { return id.SetAFOnly(true) }, "IDLE ADDR_BOUND", "IDLE ADDR_BOUND"},
		{"SET_OPTION ACK_TIMEOUT", func(id *ucma.ID) error { return id.SetACKTimeout(14) }, living, ""},
		{"LISTEN", func(id *ucma.ID) error { return id.Listen(1) }, "IDLE ADDR_BOUND", "IDLE ADDR_BOUND"},
		{"CONNECT", func(id *ucma.ID) error { return id.Connect(ucma.ConnParam{}, nil) }, "ROUTE_RESOLVED", "ROUTE_RESOLVED"},
		{"ACCEPT", func(id *ucma.ID) error { return id.Accept(ucma.ConnParam{}, nil) }, "CONNECT/requested", "CONNECT/requested"},
		{"ACCEPT 0", func(id *ucma.ID) error { return id.AcceptRTU() }, "CONNECT/answered", ""},
		{"REJECT", func(id *ucma.ID) error { return id.Reject(0, nil) }, "CONNECT/requested CONNECT/answered", "CONNECT/requested"},
		{"DISCONNECT", func(id *ucma.ID) error { return id.Disconnect() }, "CONNECT/up DISCONNECT", ""},
		{"NOTIFY", func(id *ucma.ID) error { return id.Notify(4) }, "CONNECT/accepted CONNECT/up", ""},
		{"JOIN_MCAST", func(id *ucma.ID) error { _, err := id.Join(groupAddr, 0); return err }, "", "ADDR_BOUND ADDR_RESOLVED"},
		{"RESOLVE_IB_SERVICE", func(id *ucma.ID) error { return id.ResolveIBService(ucma.ServiceByID, 1, "") }, "ADDR_BOUND", "ADDR_BOUND"},
		{"INIT_QP_ATTR INIT", func(id *ucma.ID) error { _, err := id.InitQPAttr(ucma.QPStateInit); return err },
			"ADDR_BOUND ADDR_RESOLVED ROUTE_QUERY ROUTE_RESOLVED LISTEN CONNECT DISCONNECT", "ADDR_BOUND ADDR_RESOLVED ROUTE_RESOLVED LISTEN CONNECT"},
		{"INIT_QP_ATTR RTS", func(id *ucma.ID) error { _, err := id.InitQPAttr(ucma.QPStateRTS); return err },
			"CONNECT/answered CONNECT/requested CONNECT/accepted CONNECT/up", "ADDR_BOUND ADDR_RESOLVED ROUTE_RESOLVED LISTEN CONNECT"},
		{"QUERY_ROUTE", func(id *ucma.ID) error { _, err := id.QueryRoute(); return err }, living, living},
		{"QUERY ADDR", func(id *ucma.ID) error { _, err := id.QueryAddr(); return err }, living, living},
		{"QUERY GID", func(id *ucma.ID) error { _, err := id.QueryGID(); return err }, living, living},
		{"WRITE_CM_EVENT", func(id *ucma.ID) error { return id.WriteEvent(ucma.EventUser, 0, ucma.EventParam{}) }, living, living},
	}
	for _, tt := range tests {
		for _, kind := range []struct {
			ps     ucma.PortSpace
			states []string
			legal  string
		}{{ucma.PortSpaceTCP, connected, tt.rc}, {ucma.PortSpaceUDP, datagram, tt.ud}} {
			legal := strings.Fields(kind.legal)
			for _, state := range kind.states {
				short, _, _ := strings.Cut(state, "/")
				want := slices.Contains(legal, state) || slices.Contains(legal, short)
				t.Run(tt.command+"/"+kind.ps.String()+"/"+state, func(t *testing.T) {
					s := stand(t, kind.ps, state)
					before := len(s.f.commands())
					err := tt.write(s.id)
					wrote := s.f.commands()[before:]
					var refused *ucma.StateError
					switch {
					case want && (err != nil || len(wrote) != 1):
						t.Errorf("is legal, but: error %v, written %v", err, wrote)
					case !want && (!errors.As(err, &refused) || !errors.Is(err, ucma.ErrState) || len(wrote) != 0):
						t.Errorf("is not legal, but: error %v, written %v", err, wrote)
					case !want && refused.State.String() != short:
						t.Errorf("the error is of state %v, want %s", refused.State, short)
					}
				})
			}
		}
	}
}

// A command that the kernel refuses leaves the id where it was.
func TestStateAfterRefusal(t *testing.T) {
	tests := []struct {
		state string
		op    ucma.Op
		write func(id *ucma.ID) error
	}{
		{"IDLE", ucma.OpBind, func(id *ucma.ID) error { return id.Bind(localAddr) }},
		{"IDLE", ucma.OpListen, func(id *ucma.ID) error { return id.Listen(0) }},
		{"ADDR_BOUND", ucma.OpResolveAddr, func(id *ucma.ID) error { return id.ResolveAddr(localAddr, peerAddr, time.Second) }},
		{"ADDR_RESOLVED", ucma.OpResolveRoute, func(id *ucma.ID) error { return id.ResolveRoute(time.Second) }},
		{"ADDR_RESOLVED", ucma.OpSetOption, func(id *ucma.ID) error { return id.SetPath(&mad.PathRecord{}) }},
		{"ROUTE_RESOLVED", ucma.OpConnect, func(id *ucma.ID) error { return id.Connect(ucma.ConnParam{}, nil) }},
	}
	for _, tt := range tests {
		t.Run(tt.op.String(), func(t *testing.T) {
			s := stand(t, ucma.PortSpaceTCP, tt.state)
			s.f.refuse(tt.op, ucma.EINVAL)
			err := tt.write(s.id)
			var failed *ucma.IDError
			if !errors.As(err, &failed) || !errors.Is(err, ucma.EINVAL) || failed.State.String() != tt.state || failed.ID != s.id.Num() {
				t.Errorf("error %v, want an *IDError of EINVAL in state %s", err, tt.state)
			}
			s.f.script(tt.op, nil)
			if err := tt.write(s.id); err != nil {
				t.Errorf("a second try: %v", err)
			}
		})
	}
}

// An event that tells of a failure takes the id back to where it can try again
// (cma.c, addr_handler and cma_query_handler).
func TestStateAfterErrorEvent(t *testing.T) {
	for _, tt := range []struct {
		state string
		event ucma.EventType
		want  string
	}{
		{"ADDR_QUERY", ucma.EventAddrError, "ADDR_BOUND"},
		{"ROUTE_QUERY", ucma.EventRouteError, "ADDR_RESOLVED"},
		{"CONNECT/asked", ucma.EventRejected, "CONNECT"},
		{"CONNECT/up", ucma.EventDisconnected, "DISCONNECT"},
		{"CONNECT/up", ucma.EventDeviceRemoval, "DEVICE_REMOVAL"},
		{"DISCONNECT", ucma.EventTimewaitExit, "DISCONNECT"},
	} {
		t.Run(tt.event.String(), func(t *testing.T) {
			s := stand(t, ucma.PortSpaceTCP, tt.state)
			s.f.send(s.f.event(s.id.Num(), tt.event, 0))
			if e, err := s.id.Next(t.Context()); err != nil || e.Type != tt.event {
				t.Fatalf("event %v, %v; want %v", e.Type, err, tt.event)
			}
			if got := s.id.State().String(); got != tt.want {
				t.Errorf("state %s, want %s", got, tt.want)
			}
		})
	}
}

func TestStateErrorText(t *testing.T) {
	for _, tt := range []struct {
		ps    ucma.PortSpace
		state string
		write func(id *ucma.ID) error
		want  string
		is    error
	}{
		{ucma.PortSpaceTCP, "ADDR_RESOLVED", func(id *ucma.ID) error { return id.Connect(ucma.ConnParam{}, nil) },
			"CONNECT of id 1: it is in state ADDR_RESOLVED, and must be in ROUTE_RESOLVED: resolve the address and the route first", ucma.ErrState},
		{ucma.PortSpaceTCP, "ADDR_QUERY", func(id *ucma.ID) error { return id.Listen(0) },
			"LISTEN of id 1: it is in state ADDR_QUERY, and must be in IDLE or ADDR_BOUND: use a new id", ucma.ErrState},
		{ucma.PortSpaceTCP, "CONNECT/asked", func(id *ucma.ID) error { return id.AcceptRTU() },
			"ACCEPT of id 1: it is in state CONNECT, waiting for the answer: wait for the CONNECT_RESPONSE first", ucma.ErrState},
		{ucma.PortSpaceUDP, "ADDR_RESOLVED", func(id *ucma.ID) error { return id.Disconnect() },
			"DISCONNECT of id 1: it is in state ADDR_RESOLVED, and must be in CONNECT or DISCONNECT: wait until the connection is established, or destroy the id", ucma.ErrState},
		{ucma.PortSpaceUDP, "CONNECT/up", func(id *ucma.ID) error { return id.Disconnect() }, "DISCONNECT of id 1: not for datagram ids", ucma.ErrState},
		{ucma.PortSpaceTCP, "ADDR_BOUND", func(id *ucma.ID) error { _, err := id.Join(groupAddr, 0); return err },
			"JOIN_MCAST of id 1: not for connected ids", ucma.ErrState},
		{ucma.PortSpaceTCP, "DEVICE_REMOVAL", func(id *ucma.ID) error { return id.Listen(0) },
			"LISTEN of id 1: its device has been removed; only DESTROY_ID is left", ucma.ErrGone},
		{ucma.PortSpaceTCP, "DESTROYING", func(id *ucma.ID) error { return id.Listen(0) }, "LISTEN of id 1: it is being destroyed", ucma.ErrDestroyed},
	} {
		err := tt.write(stand(t, tt.ps, tt.state).id)
		if err == nil || err.Error() != tt.want || !errors.Is(err, tt.is) {
			t.Errorf("in %s:\n got %v\nwant %s", tt.state, err, tt.want)
		}
	}
}

// The private data of each message and kind of id (ib_cm.h, enum ib_cm_data_size; the
// IP header of 36 bytes: cma.c, cma_user_data_offset).
func TestPrivateDataFits(t *testing.T) {
	ib := ucma.IBAddr(fakeDGID, 0xffff, ucma.PortSpaceTCP, 7471)
	connect := func(id *ucma.ID, p []byte) error { return id.Connect(ucma.ConnParam{PrivateData: p}, nil) }
	accept := func(id *ucma.ID, p []byte) error { return id.Accept(ucma.ConnParam{PrivateData: p}, nil) }
	reject := func(id *ucma.ID, p []byte) error { return id.Reject(0, p) }
	for _, tt := range []struct {
		name  string
		ps    ucma.PortSpace
		dst   ucma.Sockaddr
		state string
		write func(*ucma.ID, []byte) error
		most  int
	}{
		{"REQ", ucma.PortSpaceTCP, peerAddr, "ROUTE_RESOLVED", connect, 56},
		{"REQ by GID", ucma.PortSpaceTCP, ib, "ROUTE_RESOLVED", connect, 92},
		{"SIDR_REQ", ucma.PortSpaceUDP, peerAddr, "ROUTE_RESOLVED", connect, 180},
		{"SIDR_REQ by GID", ucma.PortSpaceUDP, ib, "ROUTE_RESOLVED", connect, 216},
		{"REP", ucma.PortSpaceTCP, peerAddr, "CONNECT/requested", accept, 196},
		{"SIDR_REP", ucma.PortSpaceUDP, peerAddr, "CONNECT/requested", accept, 136},
		{"REJ", ucma.PortSpaceTCP, peerAddr, "CONNECT/requested", reject, 148},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := standBefore(t, tt.ps, tt.dst, tt.state)
			before := len(s.f.commands())
			if err := tt.write(s.id, make([]byte, tt.most+1)); !errors.Is(err, ucma.EINVAL) || len(s.f.commands()) != before {
				t.Errorf("%d bytes: error %v, written %v", tt.most+1, err, s.f.commands()[before:])
			}
			if err := tt.write(s.id, make([]byte, tt.most)); err != nil {
				t.Errorf("%d bytes: %v", tt.most, err)
			}
		})
	}
}

// To a GID there is no IP header before the private data, yet the peer's kernel reads its
// version there, and rejects the request unless it is 0 (cma.c, cma_save_ip_info).
func TestPrivateDataBegins(t *testing.T) {
	ib := ucma.IBAddr(fakeDGID, 0xffff, ucma.PortSpaceTCP, 7471)
	for _, tt := range []struct {
		dst  ucma.Sockaddr
		data string
		want error
	}{
		{peerAddr, "hello", nil}, {ib, "\x00hello", nil}, {ib, "", nil}, {ib, "hello", ucma.EINVAL},
	} {
		s := standBefore(t, ucma.PortSpaceTCP, tt.dst, "ROUTE_RESOLVED")
		if err := s.id.Connect(ucma.ConnParam{PrivateData: []byte(tt.data)}, nil); !errors.Is(err, tt.want) {
			t.Errorf("%q to %v: %v, want %v", tt.data, tt.dst, err, tt.want)
		}
	}
}

// Waiting ends with the context, and leaves the id usable.
func TestWaitEnds(t *testing.T) {
	s := stand(t, ucma.PortSpaceTCP, "ADDR_QUERY")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.id.Wait(ctx, ucma.EventAddrResolved); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	s.f.send(s.f.event(s.id.Num(), ucma.EventAddrResolved, 0))
	if _, err := s.id.Wait(t.Context(), ucma.EventAddrResolved); err != nil {
		t.Error(err)
	}
}
