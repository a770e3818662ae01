package system

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/ucma"
)

// Ways to lose a host.
var (
	cutCable     = func(c *cmHost) error { return c.house.fabric.Cut(c.Port) }
	removeDevice = func(c *cmHost) error { return c.house.fabric.Remove(c.Node, c.Num) }
	closeCM      = func(c *cmHost) error { return c.cm.Close() }
)

// A peer that is dead when the REQ goes out: the kernel's time, and an error that
// tells everything.
func TestConnectToDeadPeer(t *testing.T) {
	for name, kill := range map[string]func(*cmHost) error{"cable": cutCable, "device": removeDevice, "CM": closeCM} {
		for _, d := range dialects {
			t.Run(fmt.Sprintf("%s/%v", name, d), func(t *testing.T) {
				onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
					h2, h8 := h.host("h2"), h.host("h8")
					_, err := h2.connect(t.Context(), d, h8.at(), ucma.ConnectConfig{
						Path: h2.paths(), Progress: after(ucma.StepQPInit, func() { h.must(kill(h8)) }),
					})
					outcome{ucma.StepConnect, ucma.ErrTimeout, fmt.Sprintf(
						"connect (10.0.0.8:7174, path LID %v to LID %v, MTU 2048, 40 Gb/s, SL 0, P_Key 0xffff): unreachable: ETIMEDOUT: no answer from the peer's CM",
						h2.LID, h8.LID), tries * activeTry}.check(t, "the client", err, h.now())
					var failed *ucma.StepError
					var silent *ucma.UnreachableError
					if !errors.As(err, &failed) || !errors.As(err, &silent) || failed.Path.DLID != h8.LID || failed.Steps[len(failed.Steps)-1].Duration != tries*activeTry {
						t.Errorf("the error is %+v", failed)
					}
					if n := len(h.sent()); n != tries {
						t.Errorf("%d messages, want %d", n, tries)
					}
				})
			})
		}
	}
}

// A datagram peer that is dead: 16 tries of 4.096 s.
func TestConnectToDeadDatagramPeer(t *testing.T) {
	onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
		h2, h8 := h.host("h2"), h.host("h8")
		h.must(cutCable(h8))
		_, err := h2.connect(t.Context(), ucma.Linux, h8.at(), ucma.ConnectConfig{PortSpace: ucma.PortSpaceUDP})
		outcome{ucma.StepConnect, ucma.ErrTimeout, "unreachable: ETIMEDOUT", tries * passiveTry}.check(t, "the client", err, h.now())
	})
}

// One side dies between REQ and RTU, and the other hears of it, or has to find out.
// What is killed goes 1 s after the request or the response came, before the answer.
func TestConnectPeerDies(t *testing.T) {
	rejected := func(step string) outcome { return outcome{step, nil, "rejected: consumer reject (28)", time.Second} }
	unreachable := func(step string, after time.Duration) outcome {
		return outcome{step, ucma.ErrTimeout, "unreachable: ETIMEDOUT", after}
	}
	for _, tt := range []struct {
		name           string
		who            string
		kill           func(*cmHost) error
		client, server outcome
		want           string // of messages, where they are few
	}{
		// A kernel that destroys an id with an unanswered REQ or REP rejects that (cm.c,
		// cm_destroy_id).
		{"client's CM", "h2", closeCM,
			outcome{ucma.StepQPRTR, ucma.ErrClosed, "", time.Second}, rejected(ucma.StepAccept), `
			0s h2>REQ
			0s h8>REP
			1s h2>REJ`},
		{"client's device", "h2", removeDevice,
			outcome{ucma.StepQPRTR, ucma.ErrGone, "", time.Second}, unreachable(ucma.StepAccept, tries*passiveTry), ""},
		// The RTU is lost, which the client cannot know.
		{"client's cable", "h2", cutCable,
			outcome{after: time.Second}, unreachable(ucma.StepAccept, tries*passiveTry), ""},
		{"server's CM", "h8", closeCM,
			rejected(ucma.StepConnect), outcome{ucma.StepQPRTR, ucma.ErrClosed, "", time.Second}, `
			0s h2>REQ
			1s h8>REJ`},
		// The kernel keeps DEVICE_REMOVAL from an id that is not accepted, as it has no uid
		// yet (ucma.c, ucma_event_handler).
		{"server's device", "h8", removeDevice,
			unreachable(ucma.StepConnect, tries*activeTry), outcome{ucma.StepQPRTR, ucma.ENXIO, "the device has been removed", time.Second}, ""},
		{"server's cable", "h8", cutCable,
			unreachable(ucma.StepConnect, tries*activeTry), unreachable(ucma.StepAccept, time.Second+tries*passiveTry), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
				h2, h8 := h.host("h2"), h.host("h8")
				die := func(c *cmHost) func() {
					return func() {
						if c.name == tt.who {
							h.sleep(time.Second)
							h.check(tt.kill(c))
							synctest.Wait()
						}
					}
				}
				l := h8.listen(ucma.Linux, h8.at(), ucma.ListenConfig{Progress: after(ucma.StepQPInit, die(h8))})
				served := serveOne(h, l)
				c, err := h2.connect(t.Context(), ucma.Linux, h8.at(), ucma.ConnectConfig{Progress: after(ucma.StepConnect, die(h2))})
				tt.client.check(t, "the client", err, h.now())
				s := <-served
				tt.server.check(t, "the server", s.err, s.made)
				if tt.want != "" {
					h.expect(tt.want)
				}
				if c != nil {
					// The server's CM has forgotten, and nothing gets to it anyway.
					began := h.now()
					err := c.Disconnect(t.Context())
					outcome{ucma.StepDisconnect, ucma.ErrTimeout, "DISCONNECTED: ETIMEDOUT", tries * activeTry}.check(t, "the client", err, h.now()-began)
					h.must(c.Close())
				}
				_ = l.Close()
			})
		})
	}
}

// A REP that comes too late: the client has given up, and its REJ was lost. Nothing
// answers it.
func TestConnectStaleREP(t *testing.T) {
	onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
		h2, h8 := h.host("h2"), h.host("h8")
		l := h8.listen(ucma.Linux, h8.at(), ucma.ListenConfig{Progress: after(ucma.StepQPRTS, func() { h.sleep(10 * time.Second) })})
		served := serveOne(h, l)
		h.drop("h2>REJ", 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := h2.connect(ctx, ucma.Linux, h8.at(), ucma.ConnectConfig{})
		outcome{ucma.StepConnect, ucma.ErrTimeout, "deadline", time.Second}.check(t, "the client", err, h.now())
		s := <-served
		outcome{ucma.StepAccept, ucma.ErrTimeout, "unreachable: ETIMEDOUT", 10*time.Second + tries*passiveTry}.check(t, "the server", s.err, s.made)
		log := h.sent()
		if len(log) != 2+tries || log[1] != "1s h2>REJ lost" || log[2] != "10s h8>REP" || log[1+tries] != "1m11.44s h8>REP" {
			t.Errorf("CM messages %q", log)
		}
		h.must(l.Close())
	})
}

// A client that crashes and comes back with the same queue pair number: its peer
// rejects that as stale, and is rid of the old connection (cm.c, cm_match_req). With
// another number it connects.
func TestConnectAfterCrash(t *testing.T) {
	onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
		h2, h8 := h.host("h2"), h.host("h8")
		l := h8.listen(ucma.Linux, h8.at(), ucma.ListenConfig{})
		served := serveOne(h, l)
		const qpn = 0x900001
		c, err := h2.connect(t.Context(), ucma.Linux, h8.at(), ucma.ConnectConfig{QPN: qpn})
		h.must(err)
		h.drop("h2>DREQ", loseAll)
		h.must(h2.cm.Close())
		h.must(c.Close())
		h.drop("h2>DREQ", 0)

		h2 = h.host("h2")
		_, err = h2.connect(t.Context(), ucma.Linux, h8.at(), ucma.ConnectConfig{QPN: qpn})
		outcome{ucma.StepConnect, nil, "rejected: stale connection (10): the peer has a connection with this QPN", 0}.check(t, "the client", err, h.now())
		s := <-served
		outcome{}.check(t, "the server", s.err, s.end)
		h.expect(`
			0s h2>REQ
			0s h8>REP
			0s h2>RTU
			0s h2>DREQ lost
			0s h2>REQ
			0s h8>REJ
			0s h8>DREQ
			0s h2>DREP`)

		served = serveOne(h, l)
		c, err = h2.connect(t.Context(), ucma.Linux, h8.at(), ucma.ConnectConfig{QPN: qpn + 1})
		h.must(err)
		h.must(errors.Join(c.Disconnect(t.Context()), c.Close(), (<-served).err, l.Close()))
	})
}
