package ucma_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

var listenAddr = ucma.Sockaddr{IP: netip.MustParseAddrPort("192.0.2.1:7471")}

func TestListen(t *testing.T) {
	for _, tt := range []struct {
		d        *ucma.Dialect
		cfg      ucma.ListenConfig
		commands []string
	}{
		{ucma.Linux, ucma.ListenConfig{}, []string{"CREATE_ID", "BIND", "LISTEN", "QUERY ADDR", "DESTROY_ID"}},
		{ucma.Linux, ucma.ListenConfig{ReuseAddr: true, AFOnly: true},
			[]string{"CREATE_ID", "SET_OPTION", "SET_OPTION", "BIND", "LISTEN", "QUERY ADDR", "DESTROY_ID"}},
		{ucma.Illumos, ucma.ListenConfig{}, []string{"CREATE_ID", "BIND_IP", "LISTEN", "QUERY_ROUTE", "DESTROY_ID"}},
	} {
		f := newFake(tt.d)
		l, err := f.opener().Listen(t.Context(), listenAddr, tt.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if !l.Addr.Equal(listenAddr) {
			t.Errorf("listens at %v, want %v", l.Addr, listenAddr)
		}
		if err := errors.Join(l.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		if got := f.commands(); !slices.Equal(got, tt.commands) {
			t.Errorf("%v: commands %v, want %v", tt.d, got, tt.commands)
		}
		f.leftBehind(t)
	}
}

func TestListenFails(t *testing.T) {
	for op, step := range map[ucma.Op]string{ucma.OpBind: "bind", ucma.OpListen: "listen", ucma.OpSetOption: "set address reuse"} {
		f := newFake(ucma.Linux)
		f.refuse(op, ucma.EADDRINUSE)
		_, err := f.opener().Listen(t.Context(), listenAddr, ucma.ListenConfig{ReuseAddr: true})
		var failed *ucma.StepError
		if !errors.As(err, &failed) || failed.Step != step || !errors.Is(err, ucma.EADDRINUSE) {
			t.Errorf("error %v, want EADDRINUSE at %q", err, step)
		}
		f.leftBehind(t)
	}
}

// From the request to the end that the peer makes, in both dialects; the connection
// outlives its listener.
func TestAccept(t *testing.T) {
	dialects(t, func(t *testing.T, d *ucma.Dialect) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(d)
			l, err := f.opener().Listen(t.Context(), listenAddr, ucma.ListenConfig{})
			if err != nil {
				t.Fatal(err)
			}
			child := f.request(l.ID().Num(), connParam(0x77, "hello", 56)...)
			f.set(child, func(o *fakeObject) {
				o.src, o.dst, o.path = listenAddr, peerAddr, []ucma.PathRecData{{Path: mad.PathRecord{DLID: 9, SLID: 1}}}
			})
			r, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r.ID().Num() != child || r.RemoteQPN != 0x77 || string(r.PrivateData) != "hello" || !r.Peer.Equal(peerAddr) || !r.Local.Equal(listenAddr) || r.Path.DLID != 9 {
				t.Errorf("request %+v", r)
			}
			var accepted ucma.Accept
			f.script(ucma.OpAccept, func(f *fakeKernel, cmd ucma.Command) error {
				accepted = cmd.(ucma.Accept)
				f.set(child, func(o *fakeObject) { o.uid = accepted.UID })
				f.send(f.event(child, ucma.EventEstablished, 0))
				return nil
			})
			c, err := r.Accept(t.Context(), ucma.AcceptConfig{PrivateData: []byte("welcome"), ResponderResources: 2})
			if err != nil {
				t.Fatal(err)
			}
			if accepted.UID == 0 || !accepted.Param.Valid || accepted.Param.QPNum != c.LocalQPN || string(accepted.Param.PrivateData) != "welcome" || accepted.Param.ResponderResources != 2 {
				t.Errorf("ACCEPT %+v", accepted)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if f.closed != 0 {
				t.Fatal("the listener closed the device of a connection that is up")
			}
			f.send(f.event(child, ucma.EventDisconnected, 0))
			f.silence(ucma.OpDisconnect) // the DREP; no event follows
			if err := errors.Join(c.Wait(t.Context()), c.Disconnect(t.Context()), c.Close()); err != nil {
				t.Error(err)
			}
			want := []string{"QP to INIT", "QP to RTR", "QP to RTS", "accept", "disconnect", "destroy id"}
			if got := names(c.Steps()); !slices.Equal(got, want) {
				t.Errorf("steps %v, want %v", got, want)
			}
			f.leftBehind(t)
		})
	})
}

// A second answer to a request does nothing to what came of the first.
func TestAnsweredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ucma.Linux)
		l, err := f.opener().Listen(t.Context(), listenAddr, ucma.ListenConfig{})
		if err != nil {
			t.Fatal(err)
		}
		child := f.request(l.ID().Num())
		r, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.Accept(t.Context(), ucma.AcceptConfig{})
		if err != nil {
			t.Fatal(err)
		}
		var failed *ucma.StepError
		if _, err := r.Accept(t.Context(), ucma.AcceptConfig{}); !errors.Is(err, ucma.ErrAnswered) || !errors.As(err, &failed) || failed.Step != ucma.StepAccept {
			t.Errorf("second Accept: %v", err)
		}
		if err := r.Reject(t.Context(), 0, nil); !errors.Is(err, ucma.ErrAnswered) || !errors.As(err, &failed) || failed.Step != ucma.StepReject {
			t.Errorf("Reject after Accept: %v", err)
		}
		if !f.has(child) || c.ID().State() != ucma.StateConnect {
			t.Errorf("the first connection is in state %v", c.ID().State())
		}
		if err := errors.Join(l.Close(), c.Close()); err != nil {
			t.Error(err)
		}
		f.leftBehind(t)
	})
}

// A request whose id answers nothing any more is passed over; a listener of all devices
// outlives one of them.
func TestNextPassesOver(t *testing.T) {
	dialects(t, func(t *testing.T, d *ucma.Dialect) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(d)
			l, err := f.opener().Listen(t.Context(), listenAddr, ucma.ListenConfig{})
			if err != nil {
				t.Fatal(err)
			}
			gone := map[uint32]bool{f.request(l.ID().Num()): true}
			f.script(ucma.OpQueryRoute, func(_ *fakeKernel, cmd ucma.Command) error {
				if gone[cmd.(ucma.QueryRoute).ID] {
					return ucma.ENXIO
				}
				return nil
			})
			good := f.request(l.ID().Num())
			r, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r.ID().Num() != good {
				t.Errorf("request of id %d, want %d", r.ID().Num(), good)
			}
			synctest.Wait()
			for id := range gone {
				if f.has(id) {
					t.Errorf("id %d is left behind", id)
				}
			}
			if got := l.Stats().Skipped; got != 1 {
				t.Errorf("%d requests passed over, want 1", got)
			}
			f.stop(ucma.ErrGone)
			if _, err := l.Next(t.Context()); !errors.Is(err, ucma.ErrGone) {
				t.Errorf("when the device has gone: %v, want %v", err, ucma.ErrGone)
			}
			l.Close()
		})
	})
}

// The peer's DREQ may be handled before its RTU: seen with 500 connections at once on
// Linux 6.1 and 6.12, whose CM handles each message in a work item of its own.
func TestAcceptOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ucma.Linux)
		l, err := f.opener().Listen(t.Context(), listenAddr, ucma.ListenConfig{})
		if err != nil {
			t.Fatal(err)
		}
		child := f.request(l.ID().Num())
		f.script(ucma.OpAccept, func(f *fakeKernel, cmd ucma.Command) error {
			f.set(child, func(o *fakeObject) { o.uid = cmd.(ucma.Accept).UID })
			f.send(f.event(child, ucma.EventDisconnected, 0))
			return nil
		})
		r, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.Accept(t.Context(), ucma.AcceptConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Wait(t.Context()), c.Disconnect(t.Context()), c.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		f.leftBehind(t)
	})
}

// The peer may go, or be silent, before the RTU.
func TestAcceptFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		event ucma.EventType
		data  int32
		want  func(error) bool
	}{
		{"rejected", ucma.EventRejected, 4, func(err error) bool {
			var r *ucma.RejectError
			return errors.As(err, &r) && r.Reason == mad.RejectTimeout
		}},
		{"unreachable", ucma.EventUnreachable, -110, func(err error) bool { return errors.Is(err, ucma.ErrTimeout) }},
		{"silent", 0, 0, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(ucma.Linux)
				l, err := f.opener().Listen(t.Context(), listenAddr, ucma.ListenConfig{})
				if err != nil {
					t.Fatal(err)
				}
				child := f.request(l.ID().Num())
				r, err := l.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				f.script(ucma.OpAccept, func(f *fakeKernel, cmd ucma.Command) error {
					f.set(child, func(o *fakeObject) { o.uid = cmd.(ucma.Accept).UID })
					if tt.event != 0 {
						f.send(f.event(child, tt.event, tt.data))
					}
					return nil
				})
				start := time.Now()
				_, err = r.Accept(t.Context(), ucma.AcceptConfig{Timeout: 5 * time.Second})
				var failed *ucma.StepError
				if !errors.As(err, &failed) || failed.Step != ucma.StepAccept || !tt.want(err) {
					t.Errorf("error %v", err)
				}
				if tt.event == 0 && time.Since(start) != 5*time.Second {
					t.Errorf("after %v, want 5 s", time.Since(start))
				}
				if f.closed != 0 {
					t.Error("the listener's device was closed")
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				f.leftBehind(t)
			})
		})
	}
}

func TestReject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ucma.Linux)
		l, err := f.opener().Listen(t.Context(), listenAddr, ucma.ListenConfig{})
		if err != nil {
			t.Fatal(err)
		}
		child := f.request(l.ID().Num())
		r, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var written ucma.Reject
		f.script(ucma.OpReject, func(_ *fakeKernel, cmd ucma.Command) error { written = cmd.(ucma.Reject); return nil })
		if err := r.Reject(t.Context(), mad.RejectConsumerDefined, []byte("full")); err != nil {
			t.Fatal(err)
		}
		if written.ID != child || written.Reason != 28 || string(written.PrivateData) != "full" {
			t.Errorf("REJECT %+v", written)
		}
		if _, err := r.Accept(t.Context(), ucma.AcceptConfig{}); !errors.Is(err, ucma.ErrAnswered) {
			t.Errorf("accept afterwards: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		f.leftBehind(t)
	})
}

// Requests over the backlog are refused by destroying their ids, for which the kernel
// sends a REJ; those that nobody has decided on go with their listener.
func TestBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ucma.Linux)
		l, err := f.opener().Listen(t.Context(), listenAddr, ucma.ListenConfig{Backlog: 2})
		if err != nil {
			t.Fatal(err)
		}
		var children []uint32
		for range 5 {
			children = append(children, f.request(l.ID().Num()))
		}
		synctest.Wait()
		if got := l.Stats().Refused; got != 3 {
			t.Errorf("%d requests refused, want 3", got)
		}
		if r, err := l.Next(t.Context()); err != nil || r.ID().Num() != children[0] {
			t.Errorf("request %v, %v; want the first", r, err)
		}
		for _, child := range children[2:] {
			if f.has(child) {
				t.Errorf("child %d is still there", child)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := l.Next(t.Context()); !errors.Is(err, ucma.ErrDestroyed) {
			t.Errorf("Next afterwards: %v", err)
		}
		f.leftBehind(t)
	})
}

// A Listen that is refused leaves the listener as it is.
func TestListenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ucma.Linux)
		l, err := f.opener().Listen(t.Context(), listenAddr, ucma.ListenConfig{Backlog: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.ID().Listen(5); !errors.Is(err, ucma.ErrState) {
			t.Errorf("Listen again: %v", err)
		}
		for range 3 {
			f.request(l.ID().Num())
		}
		synctest.Wait()
		if got := l.Stats().Refused; got != 1 {
			t.Errorf("%d requests refused, want 1: the backlog is still 2", got)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		f.leftBehind(t)
	})
}

// On illumos an id has its listener's uid until it is accepted: what happens to it
// before must not be taken for the listener's.
func TestIllumosEarlyEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ucma.Illumos)
		l, err := f.opener().Listen(t.Context(), listenAddr, ucma.ListenConfig{})
		if err != nil {
			t.Fatal(err)
		}
		child := f.request(l.ID().Num())
		r, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.send(f.event(child, ucma.EventRejected, 4))
		if e, err := r.ID().Next(t.Context()); err != nil || e.Type != ucma.EventRejected {
			t.Errorf("event %v, %v; want REJECTED", e.Type, err)
		}
		if got := l.ID().State(); got != ucma.StateListen {
			t.Errorf("the listener is in state %v", got)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		f.leftBehind(t)
	})
}

func TestAcceptDatagram(t *testing.T) {
	dialects(t, func(t *testing.T, d *ucma.Dialect) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(d)
			l, err := f.opener().Listen(t.Context(), listenAddr, ucma.ListenConfig{PortSpace: ucma.PortSpaceUDP})
			if err != nil {
				t.Fatal(err)
			}
			f.request(l.ID().Num(), udParam(0, 0, mad.GID{}, 0, "who", 180)...)
			r, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if string(r.PrivateData) != "who" || r.RemoteQPN != 0 {
				t.Errorf("request %+v", r)
			}
			f.silence(ucma.OpAccept) // no event follows (cma.c, cma_send_sidr_rep)
			c, err := r.Accept(t.Context(), ucma.AcceptConfig{QPN: 0x4711})
			if err != nil || c.LocalQPN != 0x4711 {
				t.Fatal(c, err)
			}
			if err := errors.Join(c.Close(), l.Close()); err != nil {
				t.Error(err)
			}
			f.leftBehind(t)
		})
	})
}

// A server with many connections, all by one device.
func TestAcceptMany(t *testing.T) {
	const n = 500
	f := newFake(ucma.Linux)
	l, err := f.opener().Listen(t.Context(), listenAddr, ucma.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		f.request(l.ID().Num())
	}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			r, err := l.Next(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			c, err := r.Accept(t.Context(), ucma.AcceptConfig{})
			if err != nil {
				t.Error(err)
				return
			}
			f.send(f.event(c.ID().Num(), ucma.EventDisconnected, 0))
			if err := errors.Join(c.Wait(t.Context()), c.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if got := l.Stats(); got.Unclaimed+got.Unknown+got.Missing+got.Refused != 0 {
		t.Errorf("stats %+v", got)
	}
	f.leftBehind(t)
}

func TestJoin(t *testing.T) {
	for _, tt := range []struct {
		d        *ucma.Dialect
		source   ucma.Sockaddr
		commands []string
	}{
		{ucma.Linux, ucma.Sockaddr{}, []string{"CREATE_ID", "RESOLVE_ADDR", "JOIN_MCAST", "LEAVE_MCAST", "DESTROY_ID"}},
		{ucma.Linux, localAddr, []string{"CREATE_ID", "BIND", "JOIN_MCAST", "LEAVE_MCAST", "DESTROY_ID"}},
		{ucma.Illumos, localAddr, []string{"CREATE_ID", "BIND_IP", "JOIN_IP_MCAST", "LEAVE_MCAST", "DESTROY_ID"}},
	} {
		t.Run(fmt.Sprint(tt.d, tt.source), func(t *testing.T) {
			f := newFake(tt.d)
			mgid := mad.GID{0xff, 0x12, 0x40, 0x1b, 15: 1}
			op := ucma.OpJoinMcast
			if tt.d == ucma.Illumos {
				op = ucma.OpJoinIPMcast
			}
			f.joined = udParam(0xffffff, 0x0b1b, mgid, 0xc003, "", 0)
			m, err := f.opener().Join(t.Context(), groupAddr, ucma.JoinConfig{Source: tt.source})
			if err != nil {
				t.Fatal(err)
			}
			if m.MGID != mgid || m.MLID != 0xc003 || m.QKey != 0x0b1b || m.QPN != 0xffffff {
				t.Errorf("membership %+v", m)
			}
			if err := m.Leave(t.Context()); err != nil {
				t.Error(err)
			}
			if got := f.commands(); !slices.Equal(got, tt.commands) || !slices.Contains(got, op.String()) {
				t.Errorf("commands %v, want %v", got, tt.commands)
			}
			if err := m.Close(); err != nil {
				t.Errorf("close after leave: %v", err)
			}
			f.leftBehind(t)
		})
	}
}

// The events of a membership have its own uid and number, which may be that of an id.
func TestMembershipEvents(t *testing.T) {
	for _, tt := range []struct {
		name string
		send func(f *fakeKernel, m *ucma.Membership)
		want error
	}{
		{"forgotten by the SA", func(f *fakeKernel, m *ucma.Membership) {
			f.send(f.event(m.ID().Num()+1, ucma.EventMulticastError, -102)) // ENETRESET
		}, ucma.Errno("errno 102")},
		{"device removed", func(f *fakeKernel, m *ucma.Membership) {
			f.send(f.event(m.ID().Num(), ucma.EventDeviceRemoval, 0))
		}, ucma.ErrGone},
		{"left", func(_ *fakeKernel, m *ucma.Membership) { m.Leave(context.Background()) }, ucma.ErrDestroyed},
		{"closed", func(_ *fakeKernel, m *ucma.Membership) { m.Close() }, ucma.ErrDestroyed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(ucma.Linux)
				m, err := f.opener().Join(t.Context(), groupAddr, ucma.JoinConfig{SendOnly: true})
				if err != nil {
					t.Fatal(err)
				}
				go tt.send(f, m)
				if err := m.Wait(t.Context()); !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				synctest.Wait()
				m.Close()
				f.leftBehind(t)
			})
		})
	}
}

// Of an address that is no group's a kernel makes a group (cma.c, cma_set_mgid), and
// to the GID of a group it finds no port (cma_resolve_ib_dev).
func TestJoinRefused(t *testing.T) {
	ip := func(s string) ucma.Sockaddr { return ucma.Sockaddr{IP: netip.MustParseAddrPort(s)} }
	own := ucma.IBAddr(fakeSGID, 0xffff, ucma.PortSpaceUDP, 0)
	for _, tt := range []struct {
		group, source ucma.Sockaddr
		step          string // "": it is joined
	}{
		{ip("0.0.0.0:0"), localAddr, ucma.StepJoin},
		{ip("[::]:0"), localAddr, ucma.StepJoin},
		{ip("127.0.0.1:0"), ucma.Sockaddr{}, ucma.StepJoin},
		{ip("192.0.2.2:0"), ucma.Sockaddr{}, ucma.StepJoin},
		{ip("[fe80::1]:0"), localAddr, ucma.StepJoin},
		{ip("[::ffff:239.1.2.3]:0"), localAddr, ucma.StepJoin}, // AF_INET6: mapped as an IPv6 address
		{ucma.Sockaddr{}, localAddr, ucma.StepJoin},
		{ucma.IBAddr(fakeDGID, 0xffff, ucma.PortSpaceUDP, 0), own, ucma.StepJoin},
		{ucma.IBAddr(mad.GID{0xff, 0x12, 15: 1}, 0xffff, ucma.PortSpaceUDP, 0), ucma.Sockaddr{}, ucma.StepBind},
		{ucma.IBAddr(mad.GID{0xff, 0x12, 15: 1}, 0xffff, ucma.PortSpaceUDP, 0), own, ""},
		{ip("224.0.0.1:0"), localAddr, ""},
		{ip("[ff12::1]:0"), localAddr, ""},
	} {
		f := newFake(ucma.Linux)
		m, err := f.opener().Join(t.Context(), tt.group, ucma.JoinConfig{Source: tt.source})
		var failed *ucma.StepError
		switch {
		case tt.step == "" && err != nil:
			t.Errorf("%v: %v", tt.group, err)
		case tt.step == "":
			m.Close()
		case !errors.As(err, &failed) || failed.Step != tt.step:
			t.Errorf("%v: error %v, want one at %q", tt.group, err, tt.step)
		case slices.Contains(f.commands(), "JOIN_MCAST"):
			t.Errorf("%v: %v, but it was joined", tt.group, err)
		}
		f.leftBehind(t)
	}
}

func TestJoinFails(t *testing.T) {
	f := newFake(ucma.Linux)
	f.refuse(ucma.OpJoinMcast, ucma.EINVAL)
	_, err := f.opener().Join(t.Context(), groupAddr, ucma.JoinConfig{})
	var failed *ucma.StepError
	if !errors.As(err, &failed) || failed.Step != ucma.StepJoin || !errors.Is(err, ucma.EINVAL) {
		t.Errorf("error %v, want EINVAL at %q", err, ucma.StepJoin)
	}
	f.leftBehind(t)
	if _, err := newFake(ucma.Illumos).opener().Join(t.Context(), groupAddr, ucma.JoinConfig{SendOnly: true}); err == nil {
		t.Error("illumos has no send-only members")
	}
}
