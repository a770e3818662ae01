package system

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sim"
)

// The vendor class of ibping, with the OUI of OpenIB (rdma-core, ibvendor). It
// has RMPP.
const (
	pingClass = mad.Class(0x32)
	pingOUI   = 0x001405
	offOUI    = 37
	offPing   = 40 // data of the class: here the number of a request
)

func pingRegistration(mode port.RMPPMode) agents.Registration {
	return agents.Registration{Registration: port.Registration{QPN: mad.QPGSI, Class: pingClass, Version: 1, OUI: pingOUI, RMPP: mode}}
}

// pingAgent opens an agent at a port. On bad links it is patient with the
// acknowledgements of long answers, so that no transfer ends for their sake.
func (h *house) pingAgent(name string, reg agents.Registration) (*agents.Conn, *agents.Agent) {
	h.t.Helper()
	conn, err := agents.Open(h.device(h.port(name)), agents.Config{RMPP: agents.RMPPConfig{Retries: 30}})
	h.must(err)
	h.t.Cleanup(func() { conn.Close() })
	agent, err := conn.Register(reg)
	h.must(err)
	return conn, agent
}

// ponger answers at a port, a number with its complement behind it.
func (h *house) ponger(name string, mode port.RMPPMode, queue int) {
	reg := pingRegistration(mode)
	reg.Methods = port.Methods(mad.MethodGet)
	reg.Queue = queue
	reg.Serve = func(in *agents.Incoming) {
		n := binary.BigEndian.Uint64(in.Data[offPing:])
		in.Data[mad.OffMethod] = byte(mad.MethodGetResp)
		binary.BigEndian.PutUint64(in.Data[offPing+8:], ^n)
		if err := in.Reply(in.Data); err != nil {
			h.t.Errorf("answer %d: %v", n, err)
		}
	}
	h.pingAgent(name, reg)
}

func ping(n int) []byte {
	msg := make([]byte, mad.Size)
	head := mad.Header{BaseVersion: mad.BaseVersion, MgmtClass: pingClass, ClassVersion: 1, Method: mad.MethodGet}
	head.EncodeTo((*[mad.HeaderSize]byte)(msg))
	binary.BigEndian.PutUint32(msg[offOUI-1:], pingOUI)
	binary.BigEndian.PutUint64(msg[offPing:], uint64(n))
	return msg
}

// Ten thousand requests in flight through one agent, over links that lose one in
// ten each way: each ends once, with its own answer at the instant at which that
// arrived, or with a time-out at exactly the end of its last try.
func TestTenThousandInFlight(t *testing.T) {
	for _, tt := range []struct {
		name string
		mode port.RMPPMode
		long bool
	}{
		{"sent again by the kernel's rules", port.RMPPNone, false},
		{"sent again by the agent", port.RMPPUser, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tenThousand(t, tt.mode, tt.long) })
		})
	}
}

func tenThousand(t *testing.T, mode port.RMPPMode, long bool) {
	const (
		requests  = 10_000
		timeout   = 100 * time.Millisecond
		retries   = 3
		delay     = time.Millisecond // of a link
		roundTrip = 6 * delay        // h1 - s1 - s2 - h8 and back
		loss      = 0.1
		seed      = 1
	)
	begin := time.Now()
	var mu sync.Mutex
	sent := map[time.Duration]int{}         // requests on the link of h1, by the hop log
	arrived := map[time.Duration]int{}      // answers at h1
	arrivedAt := map[uint64]time.Duration{} // by transaction
	trace := func(e sim.Event) {
		mu.Lock()
		defer mu.Unlock()
		at := e.Time.Sub(begin)
		switch request := e.MAD.Method == mad.MethodGet && e.Hop.From.Node.Name == "h1"; {
		case request && e.Kind == sim.Drop:
			sent[at]++
		case request && e.Kind == sim.Cross:
			sent[at-delay]++
		case e.Kind == sim.Deliver && e.MAD.Method == mad.MethodGetResp:
			if _, again := arrivedAt[e.MAD.TransactionID]; again {
				t.Errorf("two answers to transaction %#x", e.MAD.TransactionID)
			}
			arrived[at]++
			arrivedAt[e.MAD.TransactionID] = at
		}
	}
	h := build(t, "demo", sim.Config{Trace: trace, Seed: seed, Faults: sim.Faults{Delay: delay}})
	h1, h8 := h.port("h1"), h.port("h8")
	h.must(h.fabric.SetFaults(h1, sim.Faults{Delay: delay, Loss: loss}))
	h.must(h.fabric.SetFaults(h1.Peer, sim.Faults{Delay: delay, Loss: loss}))
	h.ponger("h8", mode, requests)
	conn, agent := h.pingAgent("h1", pingRegistration(mode))

	type outcome struct {
		tid uint64 // of the answer
		at  time.Duration
		err error
	}
	outcomes := make([][]outcome, requests)
	var asking sync.WaitGroup
	for n := range requests {
		asking.Go(func() {
			resp, err := agent.Do(t.Context(), &agents.Request{
				Addr: mad.AddressVector{LID: h8.LID, QPN: mad.QPGSI}, Data: ping(n), Timeout: timeout, Retries: retries, Long: long,
			})
			o := outcome{at: time.Since(begin), err: err}
			if err == nil {
				o.tid = binary.BigEndian.Uint64(resp.Data[mad.OffTID:])
				if got, sum := binary.BigEndian.Uint64(resp.Data[offPing:]), binary.BigEndian.Uint64(resp.Data[offPing+8:]); got != uint64(n) || sum != ^uint64(n) {
					t.Errorf("request %d got the answer %d, %#x", n, got, sum)
				}
			}
			outcomes[n] = append(outcomes[n], o)
		})
	}
	synctest.Wait() // no time has passed
	if s := conn.Stats(); s.Sent != requests || s.Answered+s.TimedOut != 0 || time.Since(begin) != 0 {
		t.Fatalf("%d of %d requests in flight at %v: %+v", s.Sent, requests, time.Since(begin), s)
	}
	asking.Wait()
	if took := time.Since(begin); took != (retries+1)*timeout {
		t.Errorf("the last request ended at %v, want %v", took, (retries+1)*timeout)
	}

	answered := map[time.Duration]int{}
	timedOut := 0
	for n, all := range outcomes {
		if len(all) != 1 {
			t.Fatalf("request %d ended %d times", n, len(all))
		}
		switch o := all[0]; {
		case o.err == nil:
			answered[o.at]++
			if at, ok := arrivedAt[o.tid]; !ok || at != o.at {
				t.Errorf("request %d ended at %v, but its answer arrived at %v (%v)", n, o.at, at, ok)
			}
		case !errors.Is(o.err, agents.ErrTimeout):
			t.Errorf("request %d: %v", n, o.err)
		case o.at != (retries+1)*timeout:
			t.Errorf("request %d timed out at %v, want %v", n, o.at, (retries+1)*timeout)
		default:
			timedOut++
		}
	}
	// Each try begins at a multiple of the time-out, for all requests that are
	// left. Each answer arrives a round trip later, and ends its request then. Of
	// the tries, 0.9 * 0.9 are answered.
	left := requests
	for try := range retries + 1 {
		start := time.Duration(try) * timeout
		if sent[start] != left {
			t.Errorf("seed %d: at %v %d requests were sent, want the %d that were left", seed, start, sent[start], left)
		}
		delete(sent, start)
		at := start + roundTrip
		want := int(float64(left)*(1-loss)*(1-loss) + 0.5)
		if n := answered[at]; n != arrived[at] || n < want*9/10 || n > want*11/10 {
			t.Errorf("seed %d: at %v %d requests ended and %d answers arrived; expected about %d", seed, at, n, arrived[at], want)
		}
		left -= answered[at]
		delete(answered, at)
		delete(arrived, at)
	}
	if len(sent)+len(answered)+len(arrived) > 0 || left != timedOut || timedOut == 0 {
		t.Errorf("requests were also sent at %v and ended at %v, answers arrived at %v; %d requests are left and %d timed out",
			sent, answered, arrived, left, timedOut)
	}
	want := agents.Stats{Sent: requests, Answered: uint64(requests - timedOut), TimedOut: uint64(timedOut)}
	s := conn.Stats()
	if long { // every try is the agent's
		want.Resent = s.Sent - requests
		want.Sent = s.Sent
	}
	if s != want {
		t.Errorf("counted %+v, want %+v", s, want)
	}
	t.Logf("seed %d: %d requests, %d timed out", seed, requests, timedOut)
}

// Hundreds of long answers on their way to one agent at once, over links that
// lose, duplicate and reorder: each arrives whole, and where it belongs.
func TestTransfersInFlight(t *testing.T) {
	const requests, longest, seed = 300, 5000, 1
	data := func(n int) []byte {
		r := rand.New(rand.NewPCG(uint64(n), 0))
		b := make([]byte, r.IntN(longest))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	for _, mode := range rmppModes {
		t.Run(mode.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(t, "demo", sim.Config{Seed: seed, Faults: sim.Faults{Loss: 0.05, Duplicate: 0.05, Reorder: 0.05, Delay: time.Millisecond}})
				server := pingRegistration(mode.mode)
				server.Methods = port.Methods(mad.MethodGet)
				server.Workers = requests
				server.Serve = func(in *agents.Incoming) {
					in.Data[mad.OffMethod] = byte(mad.MethodGetResp)
					n := int(binary.BigEndian.Uint64(in.Data[offPing:]))
					_ = in.Reply(append(in.Data[:offPing:offPing], data(n)...)) // the client asks again
				}
				h.pingAgent("h8", server)
				client := pingRegistration(mode.mode)
				client.Transfer = rmppPatience
				conn, agent := h.pingAgent("h1", client)
				var asking sync.WaitGroup
				for n := range requests {
					asking.Go(func() {
						resp, err := agent.Do(t.Context(), &agents.Request{
							Addr: mad.AddressVector{LID: h.port("h8").LID, QPN: mad.QPGSI}, Data: ping(n), Retries: 20, Long: true,
						})
						if err != nil {
							t.Errorf("seed %d: request %d: %v", seed, n, err)
							return
						}
						want := data(n)
						if len(want) <= mad.Size-offPing { // a single MAD ends in zeros
							want = append(want, make([]byte, mad.Size-offPing-len(want))...)
						}
						if !bytes.Equal(resp.Data[offPing:], want) {
							t.Errorf("seed %d: request %d got %d bytes that are not its own %d", seed, n, len(resp.Data)-offPing, len(want))
						}
					})
				}
				asking.Wait()
				if s := conn.Stats(); s.Answered != requests || mode.mode == port.RMPPUser && s.RMPP.Received < requests*9/10 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}
