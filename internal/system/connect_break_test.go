package system

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/ucma"
)

// flowSteps are the steps of a connection, as a run of it goes through them.
func flowSteps(t *testing.T, h *cmHouse, d *ucma.Dialect, from, to *cmHost, cfg ucma.ConnectConfig) (names []string) {
	t.Helper()
	c, err := from.connect(t.Context(), d, to.at(), cfg)
	h.must(err)
	for _, s := range c.Steps() {
		names = append(names, s.Name)
	}
	h.must(errors.Join(c.Disconnect(t.Context()), c.Close()))
	return append(names, ucma.StepDisconnect)
}

// serve accepts all requests, and answers the ends of the connections, until stop. It
// is a Linux host.
func (c *cmHost) serve() (stop func()) {
	c.house.t.Helper()
	l := c.listen(ucma.Linux, c.at(), ucma.ListenConfig{})
	ctx, cancel := context.WithCancel(c.house.t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			r, err := l.Next(ctx)
			if err != nil {
				return
			}
			serving.Go(func() {
				if conn, err := r.Accept(ctx, ucma.AcceptConfig{}); err == nil {
					conn.Wait(ctx)
					c.house.check(conn.Close())
				}
			})
		}
	})
	return func() {
		cancel()
		serving.Wait()
		c.house.check(l.Close())
	}
}

// A context that ends between two steps, whichever: the flow ends at once, says at
// which, and leaves nothing on either side.
func TestConnectCancelled(t *testing.T) {
	for _, d := range dialects {
		for _, fed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/path fed=%v", d, fed), func(t *testing.T) {
				onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
					h2, h8 := h.host("h2"), h.host("h8")
					defer h8.serve()()
					var cfg ucma.ConnectConfig
					if fed {
						cfg.Path = h2.paths()
					}
					names := flowSteps(t, h, d, h2, h8, cfg)
					if len(names) < 11 {
						t.Fatalf("steps %q", names)
					}
					for i, name := range names[:len(names)-1] {
						next := names[i+1]
						ctx, cancel := context.WithCancel(t.Context())
						cfg.Progress = after(name, cancel)
						c, err := h2.connect(ctx, d, h8.at(), cfg)
						if next == ucma.StepDisconnect {
							h.must(err)
							err = c.Disconnect(ctx)
							h.must(c.Close())
						}
						outcome{step: next, is: context.Canceled}.check(t, "cancelled after "+name, err, h.now())
						synctest.Wait()
						h2.checkIDs()
					}
				})
			})
		}
	}
}

// waits are the steps at which a flow waits for others, and what keeps them waiting.
var waits = []struct {
	step string
	mute func(h *cmHouse, to *cmHost) error // before the step
	cfg  func(h *cmHouse, from *cmHost) ucma.ConnectConfig
}{
	{ucma.StepResolveAddr, nil, nil},
	{ucma.StepTakePath, muteSA, func(_ *cmHouse, from *cmHost) ucma.ConnectConfig { return ucma.ConnectConfig{Path: from.paths()} }},
	{ucma.StepResolveRoute, muteSA, nil},
	{ucma.StepConnect, func(_ *cmHouse, to *cmHost) error { return cutCable(to) }, nil},
	{ucma.StepDisconnect, func(_ *cmHouse, to *cmHost) error { return cutCable(to) }, nil},
}

func muteSA(h *cmHouse, _ *cmHost) error { return h.fabric.Cut(h.sub.SM) }

// stuck has a flow wait at a step, and gives the error with which it ended. end is
// called a second after the wait began.
func (c *cmHost) stuck(ctx context.Context, d *ucma.Dialect, to *cmHost, step string, end func()) error {
	h := c.house
	target := to.at()
	var cfg ucma.ConnectConfig
	var mute func(*cmHouse, *cmHost) error
	for _, w := range waits {
		if w.step == step {
			mute = w.mute
			if w.cfg != nil {
				cfg = w.cfg(h, c)
			}
		}
	}
	if step == ucma.StepResolveAddr {
		target = ucma.Sockaddr{IP: netip.MustParseAddrPort("10.0.0.99:7174")} // nobody's
	}
	cfg.ResolveTimeout = time.Hour
	if step != ucma.StepDisconnect && mute != nil {
		h.must(mute(h, to))
	}
	last := make(chan struct{})
	defer func() { <-last }()
	go func() {
		defer close(last)
		h.sleep(time.Second)
		end()
		synctest.Wait()
	}()
	conn, err := c.connect(ctx, d, target, cfg)
	if step == ucma.StepDisconnect {
		h.must(err)
		h.must(mute(h, to))
		err = conn.Disconnect(ctx)
		h.must(conn.Close())
	}
	return err
}

// A context that ends while a step waits for others.
func TestConnectCancelledWaiting(t *testing.T) {
	for _, w := range waits {
		for _, d := range dialects {
			if d == ucma.Illumos && w.step == ucma.StepTakePath {
				continue // it takes none
			}
			t.Run(fmt.Sprintf("%s/%v", w.step, d), func(t *testing.T) {
				onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
					h2, h8 := h.host("h2"), h.host("h8")
					defer h8.serve()()
					ctx, cancel := context.WithCancel(t.Context())
					err := h2.stuck(ctx, d, h8, w.step, cancel)
					outcome{step: w.step, is: context.Canceled, after: time.Second}.check(t, "the client", err, h.now())
				})
			})
		}
	}
}

// Accept waits for the RTU, and Next for a request.
func TestServeCancelledWaiting(t *testing.T) {
	onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
		h2, h8 := h.host("h2"), h.host("h8")
		l := h8.listen(ucma.Linux, h8.at(), ucma.ListenConfig{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || h.now() != time.Second {
			t.Errorf("at %v: %v", h.now(), err)
		}
		gone := make(chan error, 1)
		go func() {
			_, err := h2.connect(t.Context(), ucma.Linux, h8.at(), ucma.ConnectConfig{Progress: after(ucma.StepConnect, func() { h.sleep(10 * time.Second) })})
			gone <- err
		}()
		r, err := l.Next(t.Context())
		h.must(err)
		_, err = r.Accept(t.Context(), ucma.AcceptConfig{Timeout: 3 * time.Second})
		outcome{ucma.StepAccept, ucma.ErrTimeout, "deadline", 4 * time.Second}.check(t, "the server", err, h.now())
		// The client hears of it by a REJ, before it goes on.
		outcome{ucma.StepQPRTR, ucma.ErrState, "", 11 * time.Second}.check(t, "the client", <-gone, h.now())
		h.must(l.Close())
	})
}

// The own device is taken away between two steps, whichever. Before the id has a
// device the kernel knows only that there is none.
func TestConnectDeviceRemoved(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.String(), func(t *testing.T) {
			var names []string
			onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
				h2, h8 := h.host("h2"), h.host("h8")
				defer h8.serve()()
				names = flowSteps(t, h, d, h2, h8, ucma.ConnectConfig{})
			})
			for i, name := range names[:len(names)-1] {
				next := names[i+1]
				t.Run("after "+name, func(t *testing.T) {
					onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
						h2, h8 := h.host("h2"), h.host("h8")
						defer h8.serve()()
						c, err := h2.connect(t.Context(), d, h8.at(), ucma.ConnectConfig{Progress: after(name, func() {
							h.must(removeDevice(h2))
							synctest.Wait()
						})})
						if next == ucma.StepDisconnect {
							h.must(err)
							if err := c.Wait(t.Context()); !errors.Is(err, ucma.ErrGone) {
								t.Errorf("Wait: %v", err)
							}
							err = c.Disconnect(t.Context())
							h.must(c.Close())
						}
						want := outcome{step: next, is: ucma.ErrGone}
						if next == ucma.StepCreateID || next == ucma.StepResolveAddr {
							want = outcome{step: ucma.StepResolveAddr, is: ucma.ENETUNREACH}
						}
						want.check(t, "removed after "+name, err, h.now())
					})
				})
			}
		})
	}
}

// The own device is taken away while a step waits for others.
func TestConnectDeviceRemovedWaiting(t *testing.T) {
	for _, w := range waits {
		for _, d := range dialects {
			if d == ucma.Illumos && w.step == ucma.StepTakePath {
				continue // it takes none
			}
			t.Run(fmt.Sprintf("%s/%v", w.step, d), func(t *testing.T) {
				onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
					h2, h8 := h.host("h2"), h.host("h8")
					defer h8.serve()()
					err := h2.stuck(t.Context(), d, h8, w.step, func() { h.check(removeDevice(h2)) })
					want := outcome{step: w.step, is: ucma.ErrGone, after: time.Second}
					switch w.step {
					case ucma.StepResolveAddr: // the id has no device yet
						want = outcome{step: w.step, is: ucma.ETIMEDOUT, after: time.Hour}
					case ucma.StepTakePath: // the SA's client tells
						want.is = port.ErrGone
					}
					want.check(t, "the client", err, h.now())
				})
			})
		}
	}
}

// A server whose device is taken away: listener on its address, requests that wait,
// and connections all hear of it.
func TestServeDeviceRemoved(t *testing.T) {
	onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
		h2, h8 := h.host("h2"), h.host("h8")
		l := h8.listen(ucma.Linux, h8.at(), ucma.ListenConfig{})
		served := serveOne(h, l)
		c, err := h2.connect(t.Context(), ucma.Linux, h8.at(), ucma.ConnectConfig{})
		h.must(err)
		synctest.Wait()
		h.must(removeDevice(h8))
		if s := <-served; !errors.Is(s.err, ucma.ErrGone) {
			t.Errorf("the connection ended with %v", s.err)
		}
		if _, err := l.Next(t.Context()); !errors.Is(err, ucma.ErrGone) {
			t.Errorf("the listener ended with %v", err)
		}
		h.must(l.Close())
		err = c.Disconnect(t.Context())
		outcome{ucma.StepDisconnect, ucma.ErrTimeout, "DISCONNECTED: ETIMEDOUT", tries * activeTry}.check(t, "the client", err, h.now())
		h.must(c.Close())
	})
}
