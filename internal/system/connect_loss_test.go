package system

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/ucma"
)

// Each message of a connection is lost once. The client disconnects 20 s after its
// connection is up.
func TestConnectLosesMessage(t *testing.T) {
	for _, tt := range []struct {
		lose           string
		up, accepted   time.Duration // on either side
		down, wentDown time.Duration
		want           string
	}{
		{lose: "nothing", down: 20 * time.Second, wentDown: 20 * time.Second, want: `
			0s h2>REQ
			0s h8>REP
			0s h2>RTU
			20s h2>DREQ
			20s h8>DREP`},
		{lose: "h2>REQ", up: activeTry, accepted: activeTry, down: activeTry + 20*time.Second, wentDown: activeTry + 20*time.Second, want: `
			0s h2>REQ lost
			6.144s h2>REQ
			6.144s h8>REP
			6.144s h2>RTU
			26.144s h2>DREQ
			26.144s h8>DREP`},
		// The REP comes again before the REQ would.
		{lose: "h8>REP", up: passiveTry, accepted: passiveTry, down: passiveTry + 20*time.Second, wentDown: passiveTry + 20*time.Second, want: `
			0s h2>REQ
			0s h8>REP lost
			4.096s h8>REP
			4.096s h2>RTU
			24.096s h2>DREQ
			24.096s h8>DREP`},
		{lose: "h2>RTU", accepted: passiveTry, down: 20 * time.Second, wentDown: 20 * time.Second, want: `
			0s h2>REQ
			0s h8>REP
			0s h2>RTU lost
			4.096s h8>REP
			4.096s h2>RTU
			20s h2>DREQ
			20s h8>DREP`},
		{lose: "h2>DREQ", down: 20*time.Second + activeTry, wentDown: 20*time.Second + activeTry, want: `
			0s h2>REQ
			0s h8>REP
			0s h2>RTU
			20s h2>DREQ lost
			26.144s h2>DREQ
			26.144s h8>DREP`},
		// The other side has gone on; its CM answers for an id that is no more.
		{lose: "h8>DREP", down: 20*time.Second + activeTry, wentDown: 20 * time.Second, want: `
			0s h2>REQ
			0s h8>REP
			0s h2>RTU
			20s h2>DREQ
			20s h8>DREP lost
			26.144s h2>DREQ
			26.144s h8>DREP`},
	} {
		for _, d := range dialects {
			t.Run(fmt.Sprintf("%s/%v", tt.lose, d), func(t *testing.T) {
				onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
					h2, h8 := h.host("h2"), h.host("h8")
					l := h8.listen(d, h8.at(), ucma.ListenConfig{})
					served := serveOne(h, l)
					h.drop(tt.lose, 1)
					c, err := h2.connect(t.Context(), d, h8.at(), ucma.ConnectConfig{})
					h.must(err)
					up := h.now()
					h.sleep(20 * time.Second)
					h.must(c.Disconnect(t.Context()))
					down := h.now()
					s := <-served
					h.must(errors.Join(s.err, c.Close(), l.Close()))
					if up != tt.up || s.made != tt.accepted || down != tt.down || s.end != tt.wentDown {
						t.Errorf("up at %v and %v, down at %v and %v; want %v, %v, %v, %v", up, s.made, down, s.end, tt.up, tt.accepted, tt.down, tt.wentDown)
					}
					h.expect(tt.want)
				})
			})
		}
	}
}

// A REJ that is lost: the REQ that comes again is a new one, and rejected like the
// first.
func TestConnectLosesREJ(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.String(), func(t *testing.T) {
			onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
				h2, h8 := h.host("h2"), h.host("h8")
				l := h8.listen(d, h8.at(), ucma.ListenConfig{})
				h.drop("h8>REJ", 1)
				var requests sync.WaitGroup
				requests.Go(func() {
					for range 2 {
						r, err := l.Next(t.Context())
						if err == nil {
							err = r.Reject(t.Context(), 0, []byte("not you"))
						}
						h.check(err)
					}
				})
				_, err := h2.connect(t.Context(), d, h8.at(), ucma.ConnectConfig{})
				requests.Wait()
				var rejected *ucma.RejectError
				if !errors.As(err, &rejected) || rejected.Reason != mad.RejectConsumerDefined || string(rejected.PrivateData) != "not you" || h.now() != activeTry {
					t.Errorf("after %v: %v", h.now(), err)
				}
				h.must(l.Close())
				h.expect(`
					0s h2>REQ
					0s h8>REJ lost
					6.144s h2>REQ
					6.144s h8>REJ`)
			})
		})
	}
}

// Datagrams: a SIDR_REQ or SIDR_REP that is lost. An answered SIDR_REQ that comes
// again is a new one (cm.c, cm_sidr_req_handler).
func TestConnectLosesSIDR(t *testing.T) {
	for _, tt := range []struct {
		lose     string
		requests int
		after    time.Duration
		want     string
	}{
		{"nothing", 1, 0, `
			0s h2>SIDR_REQ
			0s h8>SIDR_REP`},
		{"h2>SIDR_REQ", 1, passiveTry, `
			0s h2>SIDR_REQ lost
			4.096s h2>SIDR_REQ
			4.096s h8>SIDR_REP`},
		{"h8>SIDR_REP", 2, passiveTry, `
			0s h2>SIDR_REQ
			0s h8>SIDR_REP lost
			4.096s h2>SIDR_REQ
			4.096s h8>SIDR_REP`},
	} {
		for _, d := range dialects {
			t.Run(fmt.Sprintf("%s/%v", tt.lose, d), func(t *testing.T) {
				onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
					h2, h8 := h.host("h2"), h.host("h8")
					l := h8.listen(d, h8.at(), ucma.ListenConfig{PortSpace: ucma.PortSpaceUDP})
					h.drop(tt.lose, 1)
					var serving sync.WaitGroup
					serving.Go(func() {
						for range tt.requests {
							r, err := l.Next(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							s, err := r.Accept(t.Context(), ucma.AcceptConfig{QPN: 0x1234})
							if err == nil {
								err = s.Close()
							}
							h.check(err)
						}
					})
					c, err := h2.connect(t.Context(), d, h8.at(), ucma.ConnectConfig{PortSpace: ucma.PortSpaceUDP})
					h.must(err)
					// RDMA_UDP_QKEY (rdma_cm.h)
					if c.RemoteQPN != 0x1234 || c.UD.QKey != 0x01234567 || c.UD.AH.DLID != h8.LID || h.now() != tt.after {
						t.Errorf("after %v: %+v", h.now(), c.UD)
					}
					serving.Wait()
					h.must(errors.Join(c.Close(), l.Close()))
					h.expect(tt.want)
				})
			})
		}
	}
}

// A server that is slow to accept, and a client slow to go on: a message that comes
// again is answered by an MRA (cma.c, CMA_CM_MRA_SETTING: 24, 65.536 s), after which
// there is time.
func TestConnectSlowSides(t *testing.T) {
	for _, tt := range []struct {
		name           string
		client, server time.Duration
		want           string
	}{
		{"server", 0, 30 * time.Second, `
			0s h2>REQ
			6.144s h2>REQ
			6.144s h8>MRA
			30s h8>REP
			30s h2>RTU`},
		{"client", 30 * time.Second, 0, `
			0s h2>REQ
			0s h8>REP
			4.096s h8>REP
			4.096s h2>MRA
			30s h2>RTU`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
				h2, h8 := h.host("h2"), h.host("h8")
				l := h8.listen(ucma.Linux, h8.at(), ucma.ListenConfig{})
				var serving sync.WaitGroup
				serving.Go(func() {
					var s *ucma.Connection
					r, err := l.Next(t.Context())
					if err == nil {
						h.sleep(tt.server)
						s, err = r.Accept(t.Context(), ucma.AcceptConfig{})
					}
					if h.now() != 30*time.Second {
						t.Errorf("accepted after %v", h.now())
					}
					if err == nil {
						err = errors.Join(s.Wait(t.Context()), s.Close())
					}
					h.check(err)
				})
				c, err := h2.connect(t.Context(), ucma.Linux, h8.at(), ucma.ConnectConfig{Progress: func(s ucma.Step) {
					if s.Name == ucma.StepConnect {
						h.sleep(tt.client)
					}
				}})
				h.must(err)
				h.expect(tt.want)
				synctest.Wait()
				h.must(errors.Join(c.Disconnect(t.Context()), c.Close()))
				serving.Wait()
				h.must(l.Close())
			})
		})
	}
}

// Every link carries everything twice: over three links, each message comes eight
// times. It is as if it came once.
func TestConnectDuplicates(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.String(), func(t *testing.T) {
			onCMs(t, sim.Config{Faults: sim.Faults{Duplicate: 1}}, func(t *testing.T, h *cmHouse) {
				h2, h8 := h.host("h2"), h.host("h8")
				l := h8.listen(d, h8.at(), ucma.ListenConfig{})
				for range 3 {
					served := serveOne(h, l)
					c, err := h2.connect(t.Context(), d, h8.at(), ucma.ConnectConfig{PrivateData: []byte("once")})
					h.must(err)
					synctest.Wait()
					h.must(c.Disconnect(t.Context()))
					s := <-served
					h.must(errors.Join(s.err, c.Close()))
					if string(s.conn.PrivateData) != "once" || string(c.PrivateData) != "welcome" {
						t.Errorf("private data %q there, %q back", s.conn.PrivateData, c.PrivateData)
					}
				}
				if s := l.Stats(); s.Unclaimed != 0 || s.Refused != 0 || s.Missing != 0 {
					t.Errorf("the listener has %+v", s)
				}
				h.must(l.Close())

				// Nobody listens now: all copies of the REQ are rejected, and one REJ counts.
				_, err := h2.connect(t.Context(), d, h8.at(), ucma.ConnectConfig{})
				var rejected *ucma.RejectError
				if !errors.As(err, &rejected) || rejected.Reason != mad.RejectInvalidServiceID {
					t.Errorf("nobody listens: %v", err)
				}
				if h.now() != 0 {
					t.Errorf("it took %v", h.now())
				}
			})
		})
	}
}

// Links that lose a third of what they carry, or that deliver late, twice and in
// another order. Of 200 connections at once each is established or has tried 16 times;
// on both sides; and nobody hangs. The server is always Linux: illumos drops the events
// of a whole file with DESTROY_ID (sol_ucma_destroy_id), so that a server there may wait
// for one that has gone.
func TestConnectOnBadLinks(t *testing.T) {
	const n = 200
	for _, tt := range []struct {
		name   string
		d      *ucma.Dialect
		faults sim.Faults
	}{
		{"loss/linux", ucma.Linux, sim.Faults{Loss: 0.3}},
		{"loss/illumos", ucma.Illumos, sim.Faults{Loss: 0.3}},
		{"disorder/linux", ucma.Linux, sim.Faults{Loss: 0.05, Duplicate: 0.3, Reorder: 0.3, ReorderBy: 3 * time.Second, Jitter: time.Second}},
		{"disorder/illumos", ucma.Illumos, sim.Faults{Loss: 0.05, Duplicate: 0.3, Reorder: 0.3, ReorderBy: 3 * time.Second, Jitter: time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			onCMs(t, sim.Config{Seed: seed}, func(t *testing.T, h *cmHouse) {
				h2, h8 := h.host("h2"), h.host("h8")
				l := h8.listen(ucma.Linux, h8.at(), ucma.ListenConfig{})
				h.must(h.fabric.SetAllFaults(tt.faults))
				ctx, stop := context.WithCancel(t.Context())
				var serving, asking sync.WaitGroup
				serving.Go(func() {
					for {
						r, err := l.Next(ctx)
						if err != nil {
							return
						}
						serving.Go(func() {
							c, err := r.Accept(t.Context(), ucma.AcceptConfig{})
							if err != nil {
								// No RTU in all that time, or the client gave up, whose REJ or DREQ came instead.
								checkGivenUp(t, err)
								return
							}
							// Where every DREQ was lost nothing tells of the end, as on a real fabric.
							c.Wait(ctx)
							h.check(c.Close())
						})
					}
				})
				var mu sync.Mutex
				established := 0
				for range n {
					asking.Go(func() {
						c, err := h2.connect(t.Context(), tt.d, h8.at(), ucma.ConnectConfig{ResolveTimeout: time.Hour})
						if err != nil {
							checkGivenUp(t, err)
							return
						}
						mu.Lock()
						established++
						mu.Unlock()
						if err := c.Disconnect(t.Context()); err != nil && !errors.Is(err, ucma.ErrTimeout) {
							t.Error(err)
						}
						h.check(c.Close())
					})
				}
				asking.Wait()
				h.must(h.fabric.SetAllFaults(sim.Faults{}))
				stop()
				serving.Wait()
				h.must(l.Close())
				// One in a thousand is expected to fail, all 16 times on all links.
				if established < n*9/10 {
					t.Errorf("%d of %d connections established", established, n)
				}
			})
		})
	}
}

// checkGivenUp checks how a connection may fail where only messages are lost.
func checkGivenUp(t *testing.T, err error) {
	t.Helper()
	var unreachable *ucma.UnreachableError
	var rejected *ucma.RejectError
	var other *ucma.EventError
	switch {
	case errors.As(err, &unreachable):
		if !errors.Is(err, ucma.ErrTimeout) {
			t.Error(err)
		}
	case errors.As(err, &rejected):
		if rejected.Reason != mad.RejectTimeout && rejected.Reason != mad.RejectConsumerDefined {
			t.Error(err)
		}
	case errors.As(err, &other):
		if other.Event != ucma.EventDisconnected {
			t.Error(err)
		}
	default:
		t.Error(err)
	}
}
