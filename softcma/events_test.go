package softcma

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/ucma"
)

// A peer that is gone: 16 transmissions, each waited for 2 × 256 + 4096 ms by the
// packet life time of 16 that a path on RoCE has, and a CM response time of 20
// (cm.c, ib_send_cm_req).
func TestDeadPeer(t *testing.T) {
	onRig(t, true, func(t *testing.T, r *rig) {
		p := r.open(r.host("h2"), ucma.Linux)
		for _, ps := range []ucma.PortSpace{ucma.PortSpaceTCP, ucma.PortSpaceUDP} {
			id := p.create(1, ps)
			p.resolve(id, r.at("h3", 7174)) // where no CM runs
			start := time.Now()
			p.do(ucma.Connect{ID: id, Param: connParam(1, "")}, nil)
			e, ok := p.next(time.Hour)
			want := 16 * 4608 * time.Millisecond
			if ps == ucma.PortSpaceUDP {
				want = 16 * 4096 * time.Millisecond // cma_resolve_ib_udp
			}
			if !ok || e.Event != ucma.EventUnreachable || e.Status != -110 || time.Since(start) != want {
				t.Errorf("%v: %v %d after %v, want UNREACHABLE -110 after %v", ps, e.Event, e.Status, time.Since(start), want)
			}
			p.do(ucma.DestroyID{ID: id}, nil)
		}
	})
}

// The peer's host dies between REQ and REP, and between REP and RTU.
func TestPeerDies(t *testing.T) {
	inBothModes(t, func(t *testing.T, r *rig) {
		h2, h3 := r.host("h2"), r.host("h3")
		client, server := r.open(h2, ucma.Linux), r.open(h3, ucma.Linux)
		server.listenAt(7, ucma.PortSpaceTCP, r.at("h3", 7174))
		waiting, replied := client.create(1, ucma.PortSpaceTCP), client.create(2, ucma.PortSpaceTCP)
		client.resolve(waiting, r.at("h3", 7174))
		client.resolve(replied, r.at("h3", 7174))
		client.do(ucma.Connect{ID: waiting, Param: connParam(nextQPN(), "")}, nil)
		first := server.request(7).ID
		client.do(ucma.Connect{ID: replied, Param: connParam(nextQPN(), "")}, nil)
		second := server.request(7).ID
		server.do(ucma.Accept{UID: 3, ID: second, Param: connParam(nextQPN(), "")}, nil)
		client.expect(ucma.EventConnectResponse, replied)
		if err := r.fab.Cut(r.endPort("h2")); err != nil {
			t.Fatal(err)
		}
		// The server has sent a REP and gets no RTU.
		e, ok := server.next(time.Hour)
		if !ok || e.Event != ucma.EventUnreachable || e.ID != second || e.Status != -110 {
			t.Errorf("server: %+v, want UNREACHABLE -110", e)
		}
		// The client has a REQ out; the other id has its answer and waits for its user.
		if e, ok = client.next(time.Hour); !ok || e.Event != ucma.EventUnreachable || e.ID != waiting || e.Status != -110 {
			t.Errorf("client: %+v, want UNREACHABLE -110", e)
		}
		client.do(ucma.Accept{ID: replied}, nil) // goes into nothing
		client.do(ucma.Disconnect{ID: replied}, nil)
		if e, ok = client.next(time.Hour); !ok || e.Event != ucma.EventDisconnected || e.Status != -110 {
			t.Errorf("client: %+v, want DISCONNECTED -110", e)
		}
		// Of an id without a uid nothing is told.
		server.do(ucma.DestroyID{ID: first}, nil)
		server.quiet(time.Hour)
	})
}

// Each message of a connection is lost once; it is established and ended all the
// same (IBA 12.9.8).
func TestLostMessages(t *testing.T) {
	for _, lost := range []cm.Message{cm.REQ, cm.REP, cm.RTU, cm.DREQ, cm.DREP} {
		t.Run(lost.String(), func(t *testing.T) {
			onRig(t, true, func(t *testing.T, r *rig) {
				client, server := r.open(r.host("h2"), ucma.Linux), r.open(r.host("h3"), ucma.Linux)
				server.listenAt(7, ucma.PortSpaceTCP, r.at("h3", 7174))
				// cut loses what the message's sender sends until the call is over.
				lose := func(m cm.Message, from string, do func()) {
					if m == lost {
						if err := r.fab.SetFaults(r.endPort(from), sim.Faults{Loss: 1}); err != nil {
							t.Fatal(err)
						}
					}
					do()
					synctest.Wait()
					if err := r.fab.SetFaults(r.endPort(from), sim.Faults{}); err != nil {
						t.Fatal(err)
					}
				}
				wait := func(p *prog, want ucma.EventType) ucma.EventResp {
					e, ok := p.next(10 * time.Second)
					if !ok || e.Event != want || e.Status != 0 {
						t.Fatalf("%+v, want %v", e, want)
					}
					return e
				}
				id := client.create(1, ucma.PortSpaceTCP)
				client.resolve(id, r.at("h3", 7174))
				lose(cm.REQ, "h2", func() { client.do(ucma.Connect{ID: id, Param: connParam(1, "")}, nil) })
				child := wait(server, ucma.EventConnectRequest).ID
				lose(cm.REP, "h3", func() { server.do(ucma.Accept{UID: 2, ID: child, Param: connParam(2, "")}, nil) })
				wait(client, ucma.EventConnectResponse)
				lose(cm.RTU, "h2", func() { client.do(ucma.Accept{ID: id}, nil) })
				wait(server, ucma.EventEstablished)
				lose(cm.DREQ, "h2", func() { client.do(ucma.Disconnect{ID: id}, nil) })
				wait(server, ucma.EventDisconnected)
				lose(cm.DREP, "h3", func() { server.do(ucma.Disconnect{ID: child}, nil) })
				// Out of timewait the id does not answer a DREQ any more, but when it is
				// destroyed, the CM does (cm_dreq_handler).
				wait(server, ucma.EventTimewaitExit)
				server.do(ucma.DestroyID{ID: child}, nil)
				wait(client, ucma.EventDisconnected)
			})
		})
	}
}

// A full backlog: the kernel drops the REQ, which comes again and is taken when an
// event has been fetched (ucma_connect_event_handler, cm_destroy_id).
func TestBacklog(t *testing.T) {
	inBothModes(t, func(t *testing.T, r *rig) {
		client, server := r.open(r.host("h2"), ucma.Linux), r.open(r.host("h3"), ucma.Linux)
		listener := server.create(7, ucma.PortSpaceTCP)
		server.bind(listener, r.at("h3", 7174))
		server.do(ucma.Listen{ID: listener, Backlog: 2}, nil)
		for range 3 {
			id := client.create(1, ucma.PortSpaceTCP)
			client.resolve(id, r.at("h3", 7174))
			client.do(ucma.Connect{ID: id, Param: connParam(nextQPN(), "")}, nil)
			synctest.Wait()
		}
		server.request(7)
		server.request(7)
		server.quiet(time.Second)
		if e, ok := server.next(10 * time.Second); !ok || e.Event != ucma.EventConnectRequest {
			t.Errorf("%+v, want the third request after its REQ came again", e)
		}
		if n := r.count(cm.REJ); n != 0 {
			t.Errorf("%d REJ, want none", n)
		}
	})
}

// Events of an id with uid 0 are dropped on Linux, but its requests come; illumos
// drops none.
func TestUIDZero(t *testing.T) {
	for _, d := range []*ucma.Dialect{ucma.Linux, ucma.Illumos} {
		onRig(t, false, func(t *testing.T, r *rig) {
			client, server := r.open(r.host("h2"), d), r.open(r.host("h3"), d)
			server.listenAt(0, ucma.PortSpaceTCP, r.at("h3", 7174))
			id := client.create(0, ucma.PortSpaceTCP)
			client.do(ucma.ResolveIP{ID: id, Dst: r.at("h3", 7174), Timeout: time.Second}, nil)
			if e, ok := client.next(time.Millisecond); ok != (d == ucma.Illumos) {
				t.Errorf("%v: %+v", d, e)
			}
			client.do(ucma.ResolveRoute{ID: id, Timeout: time.Second}, nil)
			client.next(time.Millisecond)
			client.do(ucma.Connect{ID: id, Param: connParam(1, "")}, nil)
			child := server.request(0).ID
			// That the peer gives up a child that nobody has accepted is not told, on Linux.
			client.do(ucma.DestroyID{ID: id}, nil)
			if e, ok := server.next(time.Millisecond); ok != (d == ucma.Illumos) {
				t.Errorf("%v: %+v", d, e)
			}
			if err := server.try(ucma.Accept{UID: 1, ID: child, Param: connParam(1, "")}, nil); !errors.Is(err, ucma.EINVAL) {
				t.Errorf("%v: ACCEPT after a REJ: %v, want EINVAL", d, err)
			}
		})
	}
}

// Requests that nobody has fetched end with their listener: REJ 28.
func TestListenerEnds(t *testing.T) {
	inBothModes(t, func(t *testing.T, r *rig) {
		client, server := r.open(r.host("h2"), ucma.Linux), r.open(r.host("h3"), ucma.Linux)
		listener := server.listenAt(7, ucma.PortSpaceTCP, r.at("h3", 7174))
		var ids [2]uint32
		for i := range ids {
			ids[i] = client.create(uint64(i+1), ucma.PortSpaceTCP)
			client.resolve(ids[i], r.at("h3", 7174))
			client.do(ucma.Connect{ID: ids[i], Param: connParam(nextQPN(), "")}, nil)
			synctest.Wait()
		}
		fetched := server.request(7).ID
		server.do(ucma.DestroyID{ID: listener}, nil)
		if e := client.expect(ucma.EventRejected, ids[1]); e.Status != 28 {
			t.Errorf("REJECTED %d, want 28", e.Status)
		}
		server.do(ucma.Accept{UID: 2, ID: fetched, Param: connParam(nextQPN(), "")}, nil)
		client.expect(ucma.EventConnectResponse, ids[0])
	})
}

// A child that nobody has fetched is destroyed by its number, which a new id gets: that
// one outlives the listener (ucma.c, xa_cmpxchg in ucma_cleanup_ctx_events).
func TestChildDestroyedUnseen(t *testing.T) {
	for _, d := range []*ucma.Dialect{ucma.Linux, ucma.Illumos} {
		onRig(t, false, func(t *testing.T, r *rig) {
			h := r.host("h3")
			client, server := r.open(r.host("h2"), ucma.Linux), r.open(h, d)
			listener := server.listenAt(7, ucma.PortSpaceTCP, r.at("h3", 7174))
			id := client.create(1, ucma.PortSpaceTCP)
			client.resolve(id, r.at("h3", 7174))
			client.do(ucma.Connect{ID: id, Param: connParam(nextQPN(), "")}, nil)
			synctest.Wait()
			child := listener + 1 // the next number
			server.do(ucma.DestroyID{ID: child}, nil)
			client.expect(ucma.EventRejected, id)
			if again := server.create(2, ucma.PortSpaceTCP); again != child {
				t.Fatalf("%v: the new id is %d, want the number %d of the child", d, again, child)
			}
			server.do(ucma.DestroyID{ID: listener}, nil)
			server.do(ucma.QueryRoute{ID: child}, new(ucma.QueryRouteResp))
			server.do(ucma.DestroyID{ID: child}, nil)
			empty(t, h)
		})
	}
}

// MIGRATE_ID moves an id and its events to another file.
func TestMigrate(t *testing.T) {
	onRig(t, false, func(t *testing.T, r *rig) {
		h := r.host("h2")
		r.host("h3")
		from, to := r.open(h, ucma.Linux), r.open(h, ucma.Linux)
		fd := from.Device.(*File).FD()
		id, stays := from.create(1, ucma.PortSpaceTCP), from.create(2, ucma.PortSpaceTCP)
		for _, id := range []uint32{id, stays} {
			from.do(ucma.ResolveIP{ID: id, Dst: r.at("h3", 1), Timeout: time.Second}, nil)
			synctest.Wait()
		}
		to.fails(ucma.ENOENT, ucma.MigrateID{ID: id, FD: 99})
		to.fails(ucma.ENOENT, ucma.MigrateID{ID: 99, FD: fd})
		to.fails(ucma.EINVAL, ucma.MigrateID{ID: id, FD: to.Device.(*File).FD()})
		to.do(ucma.MigrateID{ID: id, FD: fd}, nil)
		to.expect(ucma.EventAddrResolved, id)
		from.expect(ucma.EventAddrResolved, stays)
		from.fails(ucma.EINVAL, ucma.DestroyID{ID: id})
		var resp ucma.DestroyIDResp
		to.do(ucma.DestroyID{ID: id}, &resp)
		if resp.EventsReported != 1 {
			t.Errorf("%d events reported, want 1", resp.EventsReported)
		}
	})
}

// The device goes away: each attached id tells, and is gone but for DESTROY_ID;
// ids without a device stay.
func TestRemoval(t *testing.T) {
	inBothModes(t, func(t *testing.T, r *rig) {
		h2 := r.host("h2")
		client, server := r.open(h2, ucma.Linux), r.open(r.host("h3"), ucma.Linux)
		server.listenAt(7, ucma.PortSpaceTCP, r.at("h3", 7174))
		id, _ := establish(client, server, r.at("h3", 7174), 7)
		listener := client.listenAt(5, ucma.PortSpaceTCP, ucma.Sockaddr{IP: addrPortOf("0.0.0.0:5")})
		idle := client.create(6, ucma.PortSpaceTCP)
		silent := client.create(0, ucma.PortSpaceTCP)
		client.bind(silent, r.at("h2", 0))
		if err := r.fab.Remove(r.endPort("h2").Node, 1); err != nil {
			t.Fatal(err)
		}
		client.expect(ucma.EventDeviceRemoval, id)
		client.quiet(time.Minute)
		client.fails(ucma.ENXIO, ucma.Disconnect{ID: id})
		client.fails(ucma.ENXIO, ucma.QueryRoute{ID: silent})
		client.do(ucma.QueryRoute{ID: listener}, nil)
		for _, id := range []uint32{id, listener, idle, silent} {
			client.do(ucma.DestroyID{ID: id}, nil)
		}
		empty(t, h2)
	})
}

// lateEnd is a Port whose end is told later.
type lateEnd struct {
	port.Port
	tell chan struct{}
}

func (p *lateEnd) Recv(m *port.Message) error {
	err := p.Port.Recv(m)
	if err != nil {
		<-p.tell
	}
	return err
}

// The device goes while the SA is asked for a path, and that request hears of it
// first: DEVICE_REMOVAL, as from the kernel, whose RDMA CM is told before its SA
// client is.
func TestRemovalWhileAsking(t *testing.T) {
	onRig(t, false, func(t *testing.T, r *rig) {
		dev := r.device("h2")
		out, err := dev.OpenKernel()
		if err != nil {
			t.Fatal(err)
		}
		late := &lateEnd{out, make(chan struct{})}
		h2, err := New(late, dev, Config{Addrs: []netip.Prefix{netip.PrefixFrom(r.ip("h2"), 16)}, Neighbour: r.neighbour})
		if err != nil {
			t.Fatal(err)
		}
		r.hosts = append(r.hosts, h2)
		defer close(late.tell)
		client := r.open(h2, ucma.Linux)
		id := client.create(1, ucma.PortSpaceTCP)
		client.do(ucma.ResolveIP{ID: id, Dst: r.at("h3", 7174), Timeout: time.Second}, nil)
		client.expect(ucma.EventAddrResolved, id)
		if err := r.fab.Cut(r.endPort("h1")); err != nil { // where the SA is
			t.Fatal(err)
		}
		client.do(ucma.ResolveRoute{ID: id, Timeout: time.Hour}, nil)
		if err := r.fab.Remove(r.endPort("h2").Node, 1); err != nil {
			t.Fatal(err)
		}
		client.expect(ucma.EventDeviceRemoval, id)
		client.quiet(time.Minute)
		client.do(ucma.DestroyID{ID: id}, nil)
	})
}

// What illumos has its own way (kernel-abi 3.4).
func TestIllumos(t *testing.T) {
	onRig(t, false, func(t *testing.T, r *rig) {
		h := r.host("h2")
		p, other := r.open(h, ucma.Illumos), r.open(h, ucma.Illumos)
		id := p.create(1, ucma.PortSpaceTCP)
		if err := p.try(intOption(id, ucma.OptionReuseAddr, 1), nil); !errors.Is(err, ucma.EINVAL) {
			t.Errorf("SET_OPTION: %v, want EINVAL", err)
		}
		// The number is out before the port space is looked at.
		b, err := ucma.Illumos.AppendUnchecked(nil, ucma.CreateID{UID: 1, PS: 0x13f})
		if err != nil {
			t.Fatal(err)
		}
		mem := []byte{9, 9, 9, 9}
		if err := p.Exec(b, mem); err != ucma.EINVAL || mem[0] == 9 {
			t.Errorf("CREATE_ID in port space IB: %v, memory %v", err, mem)
		}
		p.create(2, ucma.PortSpaceSDP)
		p.create(3, ucma.PortSpaceSCTP)

		// Any file may use any id, and events go where it was made.
		other.bind(id, r.at("h2", 0))
		other.do(ucma.ResolveIP{ID: id, Dst: r.at("h3", 1), Timeout: time.Second}, nil)
		second := p.create(4, ucma.PortSpaceTCP)
		p.do(ucma.ResolveIP{ID: second, Dst: r.at("h3", 1), Timeout: time.Second}, nil)
		synctest.Wait()
		// DESTROY_ID empties the queue of the whole file.
		p.do(ucma.DestroyID{ID: id}, nil)
		p.quiet(time.Second)
		mem = []byte{9, 9, 9, 9}
		b, _ = ucma.Illumos.AppendUnchecked(nil, ucma.DestroyID{ID: 77})
		if err := p.Exec(b, mem); err != nil || mem[0] != 9 {
			t.Errorf("DESTROY_ID of an unknown id: %v, memory %v; want success and nothing stored", err, mem)
		}
		p.fails(ucma.EINVAL, ucma.Listen{ID: 77})
		p.fails(ucma.EINVAL, ucma.InitQPAttr{ID: 77})

		// Errnos in events have Solaris' numbers.
		p.do(ucma.ResolveIP{ID: p.create(5, ucma.PortSpaceTCP), Dst: ucma.Sockaddr{IP: addrPortOf("10.0.99.99:1")}}, nil)
		if e, _ := p.next(time.Second); e.Event != ucma.EventAddrError || e.Status != -145 {
			t.Errorf("%v %d, want ADDR_ERROR -145", e.Event, e.Status)
		}
	})
}

// Wait ends with its context and with the file; nothing goes after Close.
func TestClose(t *testing.T) {
	onRig(t, false, func(t *testing.T, r *rig) {
		h := r.host("h2")
		p := r.open(h, ucma.Linux)
		ctx, cancel := context.WithCancel(context.Background())
		results := make(chan error)
		go func() { results <- p.Wait(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("Wait: %v, want %v", err, context.Canceled)
		}
		go func() { results <- p.Wait(context.Background()) }()
		synctest.Wait()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := <-results; !errors.Is(err, ucma.ErrClosed) {
			t.Errorf("Wait: %v, want %v", err, ucma.ErrClosed)
		}
		if err := p.try(ucma.CreateID{PS: ucma.PortSpaceTCP}, nil); !errors.Is(err, ucma.ErrClosed) {
			t.Errorf("Exec: %v, want %v", err, ucma.ErrClosed)
		}
		if err := errors.Join(h.Close(), h.Close()); err != nil {
			t.Error(err)
		}
		if _, err := h.Open(ucma.Linux); !errors.Is(err, ucma.ErrClosed) {
			t.Errorf("Open: %v, want %v", err, ucma.ErrClosed)
		}
	})
}
