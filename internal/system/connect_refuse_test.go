package system

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/ucma"
)

// connectAll connects so many times at once, and tells how each went; it closes the
// connections.
func (c *cmHost) connectAll(n int, to *cmHost) (results []error, after []time.Duration) {
	var connecting sync.WaitGroup
	results, after = make([]error, n), make([]time.Duration, n)
	for i := range n {
		connecting.Go(func() {
			conn, err := c.connect(c.house.t.Context(), ucma.Linux, to.at(), ucma.ConnectConfig{})
			results[i], after[i] = err, c.house.now()
			if err == nil {
				c.house.check(errors.Join(conn.Disconnect(c.house.t.Context()), conn.Close()))
			}
		})
	}
	connecting.Wait()
	return results, after
}

// A listener takes no more than its backlog while nobody calls Next: the others are
// rejected, and those that wait are served later.
func TestServeBacklog(t *testing.T) {
	const clients, backlog = 50, 8
	onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
		h2, h8 := h.host("h2"), h.host("h8")
		l := h8.listen(ucma.Linux, h8.at(), ucma.ListenConfig{Backlog: backlog})
		var serving sync.WaitGroup
		serving.Go(func() {
			h.sleep(time.Minute)
			for range backlog {
				r, err := l.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				serving.Go(func() {
					c, err := r.Accept(t.Context(), ucma.AcceptConfig{})
					if err == nil {
						err = errors.Join(c.Wait(t.Context()), c.Close())
					}
					h.check(err)
				})
			}
		})
		results, at := h2.connectAll(clients, h8)
		serving.Wait()
		established := 0
		for i, err := range results {
			var rejected *ucma.RejectError
			switch {
			case err == nil && at[i] == time.Minute:
				established++
			case errors.As(err, &rejected) && rejected.Reason == mad.RejectConsumerDefined && at[i]%activeTry == 0: // the kernel drops what comes too fast
			default:
				t.Errorf("at %v: %v", at[i], err)
			}
		}
		if s := l.Stats(); established != backlog || s.Refused != clients-backlog {
			t.Errorf("%d connections established, %d refused; want %d and %d", established, s.Refused, backlog, clients-backlog)
		}
		h.must(l.Close())
	})
}

// A program that fetches no events for a second: the kernel drops the requests over
// its backlog without an answer (ucma.c, ucma_connect_event_handler; cma.c,
// cma_ib_req_handler), and they come again until there is room.
func TestServeKernelBacklog(t *testing.T) {
	const clients, backlog = 50, 8
	onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
		h2, h8 := h.host("h2"), h.host("h8")
		server, err := h8.cm.Open(ucma.Linux)
		h.must(err)
		var made ucma.CreateIDResp
		h.must(ucma.Do(server, ucma.CreateID{UID: 1, PS: ucma.PortSpaceTCP}, &made))
		h.must(ucma.Do(server, ucma.Bind{ID: made.ID, Addr: h8.at()}, nil))
		h.must(ucma.Do(server, ucma.Listen{ID: made.ID, Backlog: backlog}, nil))
		ctx, cancel := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		serving.Go(func() {
			h.sleep(time.Second)
			for server.Wait(ctx) == nil {
				var e ucma.EventResp
				h.check(ucma.Do(server, ucma.GetEvent{}, &e))
				switch e.Event {
				case ucma.EventConnectRequest:
					h.check(ucma.Do(server, ucma.Accept{UID: 2, ID: e.ID, Param: ucma.ConnParam{QPNum: 0x1000 + e.ID, Valid: true}}, nil))
				case ucma.EventDisconnected:
					h.check(ucma.Do(server, ucma.Disconnect{ID: e.ID}, nil))
				}
			}
		})
		results, at := h2.connectAll(clients, h8)
		cancel()
		serving.Wait()
		h.must(server.Close())
		first := 0
		for i, err := range results {
			switch {
			case err != nil:
				t.Error(err)
			case at[i] == time.Second:
				first++
			case at[i]%activeTry != 0:
				t.Errorf("a connection at %v, want it after tries of %v", at[i], activeTry)
			}
		}
		if first != backlog {
			t.Errorf("%d connections at once, want %d", first, backlog)
		}
	})
}

// A listener that is closed: requests that nobody took and those that nobody accepted
// are rejected, at once; connections stay.
func TestServeClosed(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.String(), func(t *testing.T) {
			onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
				h2, h8 := h.host("h2"), h.host("h8")
				l := h8.listen(d, h8.at(), ucma.ListenConfig{})
				served := serveOne(h, l)
				stays, err := h2.connect(t.Context(), ucma.Linux, h8.at(), ucma.ConnectConfig{})
				h.must(err)
				var closing sync.WaitGroup
				closing.Go(func() {
					h.sleep(time.Second)
					if _, err := l.Next(t.Context()); err != nil {
						t.Error(err)
					}
					h.check(l.Close())
				})
				results, at := h2.connectAll(5, h8)
				closing.Wait()
				for i, err := range results {
					outcome{ucma.StepConnect, nil, "rejected: consumer reject (28)", time.Second}.check(t, "a client", err, at[i])
				}
				_, err = h2.connect(t.Context(), ucma.Linux, h8.at(), ucma.ConnectConfig{})
				outcome{ucma.StepConnect, nil, "rejected: invalid service ID (8): nobody listens there", time.Second}.check(t, "a late client", err, h.now())

				h.sleep(time.Second)
				h.must(stays.Disconnect(t.Context()))
				s := <-served
				h.must(errors.Join(s.err, stays.Close()))
				if s.end != 2*time.Second {
					t.Errorf("the connection ended at %v", s.end)
				}
			})
		})
	}
}

// An SA that is silent, or knows no path, whether the program asks it or the kernel.
func TestConnectWithoutPath(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mute   bool
		kernel outcome
		own    outcome // at step "take path"
	}{
		// sa_query.c, send_mad: 11 tries of a tenth of 2 s.
		{"silent", true, outcome{ucma.StepResolveRoute, ucma.ErrTimeout, "ROUTE_ERROR: ETIMEDOUT: the SA gave no path", 2200 * time.Millisecond},
			outcome{ucma.StepTakePath, agents.ErrTimeout, "SubnAdmGet(PathRecord) to LID 1", (1 + sa.DefaultRetries) * sa.DefaultTimeout}},
		{"no path", false, outcome{ucma.StepResolveRoute, ucma.EINVAL, "ROUTE_ERROR: EINVAL: the SA gave no path", 0},
			outcome{ucma.StepTakePath, sa.ErrNoRecords, "P_Key 0x0001", 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
				// Both are limited members of partition 1, which do not reach each other.
				h5, h6 := h.host("h5"), h.host("h6")
				if tt.mute {
					h.must(muteSA(h, nil))
				}
				to := h6.atGID(ucma.PortSpaceTCP)
				to.IB.PKey = 1
				_, err := h5.connect(t.Context(), ucma.Linux, to, ucma.ConnectConfig{})
				tt.kernel.check(t, "by the kernel", err, h.now())
				began := h.now()
				_, err = h5.connect(t.Context(), ucma.Linux, to, ucma.ConnectConfig{Path: h5.paths()})
				tt.own.check(t, "by the program", err, h.now()-began)
			})
		})
	}
}

// pathSource is an SA that says what it is told to.
type pathSource func(ctx context.Context, like mad.PathRecord) (mad.PathRecord, error)

func (f pathSource) Path(ctx context.Context, like mad.PathRecord) (mad.PathRecord, error) {
	return f(ctx, like)
}

// An SA that gives a wrong path. The kernel takes it as it is, and CONNECT uses it
// (ucma.c, ucma_set_ib_path; cm.c, cm_init_av_by_path and cm_req_handler).
func TestConnectWrongPath(t *testing.T) {
	refused := func(errno ucma.Errno, text string) outcome {
		return outcome{step: ucma.StepConnect, is: errno, text: text}
	}
	rejected := func(text string) outcome { return outcome{step: ucma.StepConnect, text: "rejected: " + text} }
	silent := outcome{ucma.StepConnect, ucma.ErrTimeout, "unreachable: ETIMEDOUT", tries * activeTry}
	for _, tt := range []struct {
		name  string
		spoil func(h *cmHouse, p *mad.PathRecord)
		want  outcome
	}{
		{"none", func(*cmHouse, *mad.PathRecord) {}, outcome{}},
		{"SGID of another", func(h *cmHouse, p *mad.PathRecord) { p.SGID = h.port("h3").GID(h.sub.GIDPrefix) }, refused(ucma.EINVAL, "CONNECT")},
		{"P_Key of nobody", func(_ *cmHouse, p *mad.PathRecord) { p.PKey = 0x7777 }, refused(ucma.ENOENT, "the P_Key of the path is not in the port's table")},
		{"DLID of a switch", func(h *cmHouse, p *mad.PathRecord) { p.DLID = h.port("s2").LID }, silent},
		{"DLID of nobody", func(h *cmHouse, p *mad.PathRecord) { p.DLID = h.sub.TopLID() + 1 }, silent},
		{"DLID of a host without a CM", func(h *cmHouse, p *mad.PathRecord) { p.DLID = h.port("h7").LID }, silent},
		{"DLID of a host where nobody listens", func(h *cmHouse, p *mad.PathRecord) { p.DLID = h.port("h4").LID }, rejected("invalid service ID (8)")},
		{"DLID of a host where somebody listens", func(h *cmHouse, p *mad.PathRecord) { p.DLID = h.port("h3").LID }, rejected("invalid primary remote port GID (12)")},
		{"own DLID", func(h *cmHouse, p *mad.PathRecord) { p.DLID = h.port("h2").LID }, rejected("invalid service ID (8)")},
		{"DGID of another", func(h *cmHouse, p *mad.PathRecord) { p.DGID = h.port("h3").GID(h.sub.GIDPrefix) }, rejected("invalid primary remote port GID (12)")},
		// The peer answers to where the REQ came from.
		{"SLID of another", func(h *cmHouse, p *mad.PathRecord) { p.SLID = h.port("h3").LID }, outcome{}},
		{"SL that nobody has a VL for", func(_ *cmHouse, p *mad.PathRecord) { p.SL = 15 }, outcome{}},
		// A GRH on the way, which the receiver checks.
		{"hop limit, and DGID of nobody", func(_ *cmHouse, p *mad.PathRecord) { p.HopLimit, p.DGID[15] = 9, p.DGID[15]+1 }, silent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
				h2, h3, h8 := h.host("h2"), h.host("h3"), h.host("h8")
				h.host("h4")
				defer h3.serve()()
				defer h8.serve()()
				right := h2.paths()
				c, err := h2.connect(t.Context(), ucma.Linux, h8.at(), ucma.ConnectConfig{Path: pathSource(func(ctx context.Context, like mad.PathRecord) (mad.PathRecord, error) {
					p, err := right.Path(ctx, like)
					tt.spoil(h, &p)
					return p, err
				})})
				tt.want.check(t, "the client", err, h.now())
				if c != nil {
					h.must(errors.Join(c.Disconnect(t.Context()), c.Close()))
				}
			})
		})
	}
}
