package agents_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/softmad/softmadtest"
)

const ms = time.Millisecond

func getRecord(i int) []byte {
	return newMAD(mad.ClassSubnAdm, mad.MethodGet, mad.AttrNodeRecord, binary.BigEndian.AppendUint32(nil, uint32(i)))
}

// 10,000 requests through one agent, of which the wire loses 10 % in each
// direction. The hook notes the fate of each wire, and from that follows when
// and how each request must end.
func TestThousandsInFlight(t *testing.T) {
	t.Run("carrier retries", func(t *testing.T) { testThousandsInFlight(t, port.RMPPNone, false) })
	t.Run("own retries", func(t *testing.T) { testThousandsInFlight(t, port.RMPPUser, true) })
}

func testThousandsInFlight(t *testing.T, mode port.RMPPMode, long bool) {
	const (
		requests = 10_000
		delay    = 1 * ms
		timeout  = 100 * ms
		retries  = 2
	)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		answeredAt := make(map[uint32]time.Duration) // by the number in the request
		inner := lossy(1)
		var mu sync.Mutex
		hook := func(from *softmadtest.Link, w *softmad.Wire) []time.Duration {
			if inner(from, w) == nil {
				return nil
			}
			if mad.IsResponse(w.MAD[:]) {
				mu.Lock()
				defer mu.Unlock()
				answeredAt[binary.BigEndian.Uint32(w.MAD[mad.OffSAData:])] = time.Since(start) + delay
			}
			return []time.Duration{delay}
		}
		b := newBench(t, agents.Config{}, hook)
		defer b.close()
		server := saServer(mode, func(in *agents.Incoming) {
			if err := in.Reply(respond(in.Data, in.Data[mad.OffSAData:])); err != nil {
				t.Errorf("reply: %v", err)
			}
		})
		server.Queue = requests
		register(t, b.server, server)
		client := register(t, b.client, saClient(mode))

		ends := make([]<-chan outcome, requests)
		for i := range ends {
			ends[i] = doLater(t.Context(), client, agents.Request{
				Addr: serverAddr, Data: getRecord(i), Timeout: timeout, Retries: retries, Long: long,
			})
		}
		var answered, timedOut uint64
		for i, end := range ends {
			o := <-end
			mu.Lock()
			at, ok := answeredAt[uint32(i)]
			mu.Unlock()
			if !ok {
				at = timeout * (1 + retries)
				wantError(t, o.err, agents.ErrTimeout)
				timedOut++
			} else {
				if o.err != nil {
					t.Fatalf("request %d: %v", i, o.err)
				}
				if got := binary.BigEndian.Uint32(o.response.Data[mad.OffSAData:]); got != uint32(i) {
					t.Fatalf("request %d got the answer to %d", i, got)
				}
				answered++
			}
			if o.took != at {
				t.Fatalf("request %d ended after %v, want %v", i, o.took, at)
			}
		}
		// Three times 19 % lost: some 69 of 10,000.
		if timedOut < 20 || timedOut > 200 {
			t.Errorf("%d requests timed out", timedOut)
		}
		s := b.client.Stats()
		if s.Sent != requests+s.Resent || (s.Resent > 0) != long || s.Answered != answered || s.TimedOut != timedOut || s.Late != 0 || s.Foreign != 0 {
			t.Errorf("stats %+v, want %d answered and %d timed out", s, answered, timedOut)
		}
	})
}

// The carrier's report ends a request exactly; if the carrier keeps silent the
// own deadline does.
func TestTimeouts(t *testing.T) {
	tests := []struct {
		name   string
		reg    agents.Registration
		req    agents.Request
		silent bool
		// what is given to the Port
		sends          int
		timeout        time.Duration
		carrierRetries int
		// when it ends
		took time.Duration
	}{
		{"by the carrier", saClient(port.RMPPNone), agents.Request{Timeout: 200 * ms, Retries: 2}, false,
			1, 200 * ms, 2, 600 * ms},
		{"default", saClient(port.RMPPNone), agents.Request{}, false,
			1, time.Second, 0, time.Second},
		{"silence", saClient(port.RMPPNone), agents.Request{Timeout: 200 * ms, Retries: 2}, true,
			1, 200 * ms, 2, 600*ms + time.Second},
		{"long, user RMPP", saClient(port.RMPPUser), agents.Request{Timeout: 200 * ms, Retries: 2, Long: true}, false,
			3, 200 * ms, 0, 600 * ms},
		{"long, user RMPP, silence", saClient(port.RMPPUser), agents.Request{Timeout: 200 * ms, Retries: 1, Long: true}, true,
			2, 200 * ms, 0, 2 * (200*ms + time.Second)},
		{"long, kernel RMPP", saClient(port.RMPPKernel), agents.Request{Timeout: 200 * ms, Retries: 1, Long: true}, false,
			2, 200*ms + agents.DefaultTransfer, 0, 2 * (200*ms + agents.DefaultTransfer)},
		{"short, user RMPP", saClient(port.RMPPUser), agents.Request{Timeout: 200 * ms, Retries: 3}, false,
			1, 200 * ms, 3, 800 * ms},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakePort()
				p.onSend = func(m port.Message) error {
					if !tt.silent {
						time.AfterFunc(m.Timeout*time.Duration(m.Retries+1), func() { p.in <- timeOutOf(m) })
					}
					return nil
				}
				conn := openFake(t, p)
				defer conn.Close()
				a := register(t, conn, tt.reg)
				tt.req.Addr, tt.req.Data = serverAddr, getRecord(1)
				o := <-doLater(t.Context(), a, tt.req)
				wantError(t, o.err, agents.ErrTimeout)
				if e, ok := o.err.(interface{ Timeout() bool }); !ok || !e.Timeout() {
					t.Errorf("%v: Timeout() is false", o.err)
				}
				if o.took != tt.took {
					t.Errorf("ended after %v, want %v", o.took, tt.took)
				}
				sends := p.sends()
				if len(sends) != tt.sends {
					t.Fatalf("sent %d times, want %d", len(sends), tt.sends)
				}
				tids := make(map[uint32]bool)
				for _, m := range sends {
					if m.Timeout != tt.timeout || m.Retries != tt.carrierRetries {
						t.Errorf("sent with time-out %v and %d retries, want %v and %d", m.Timeout, m.Retries, tt.timeout, tt.carrierRetries)
					}
					tids[binary.BigEndian.Uint32(m.Data[mad.OffTID+4:])] = true
				}
				if len(tids) != tt.sends {
					t.Errorf("%d transaction ids in %d transmissions", len(tids), tt.sends)
				}
				s := conn.Stats()
				if s.TimedOut != 1 || s.Resent != uint64(tt.sends-1) || s.Sent != uint64(tt.sends) {
					t.Errorf("stats %+v", s)
				}
			})
		})
	}
}

func TestLateAndForeignAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePort()
		conn := openFake(t, p)
		defer conn.Close()
		a := register(t, conn, saClient(port.RMPPNone))
		other := register(t, conn, saClient(port.RMPPNone))
		end := doLater(t.Context(), a, agents.Request{Addr: serverAddr, Data: getRecord(1), Timeout: time.Minute})
		synctest.Wait()
		sent := p.sends()[0]

		foreign := []func(*port.Message){
			func(m *port.Message) { m.Data[mad.OffTID+7]++ },                           // never issued
			func(m *port.Message) { m.Data[mad.OffClass] = byte(mad.ClassPerf) },       // other class
			func(m *port.Message) { m.Data[mad.OffAttribute+1]++ },                     // other attribute
			func(m *port.Message) { m.Agent++ },                                        // of the other agent
			func(m *port.Message) { m.Agent = 31 },                                     // of no agent
			func(m *port.Message) { m.Data = m.Data[:mad.HeaderSize-1] },               // cut
			func(m *port.Message) { m.Data[mad.OffMethod] = byte(mad.MethodGetTable) }, // a request
		}
		for _, spoil := range foreign {
			m := answerTo(sent, nil)
			spoil(&m)
			p.in <- m
		}
		synctest.Wait()
		if s := conn.Stats(); s.Foreign != uint64(len(foreign)) || s.Late != 0 || s.Answered != 0 {
			t.Fatalf("stats %+v, want %d foreign", s, len(foreign))
		}
		p.in <- answerTo(sent, []byte("right"))
		o := <-end
		if o.err != nil || string(o.response.Data[mad.OffSAData:][:5]) != "right" {
			t.Fatalf("got %+v", o)
		}
		p.in <- answerTo(sent, []byte("again"))
		p.in <- timeOutOf(sent)
		synctest.Wait()
		if s := conn.Stats(); s.Late != 1 || s.Answered != 1 || s.Foreign != uint64(len(foreign)) {
			t.Errorf("stats %+v, want 1 late", s)
		}

		// What is late for a request that timed out must not reach the next.
		end = doLater(t.Context(), a, agents.Request{Addr: serverAddr, Data: getRecord(2)})
		synctest.Wait()
		p.in <- timeOutOf(p.sends()[1])
		wantError(t, (<-end).err, agents.ErrTimeout)
		next := doLater(t.Context(), other, agents.Request{Addr: serverAddr, Data: getRecord(2)})
		p.in <- answerTo(p.sends()[1], []byte("late"))
		synctest.Wait()
		p.in <- answerTo(p.sends()[2], []byte("mine"))
		if o := <-next; o.err != nil || string(o.response.Data[mad.OffSAData:][:4]) != "mine" {
			t.Errorf("got %+v", o)
		}
		if s := conn.Stats(); s.Late != 2 {
			t.Errorf("stats %+v, want 2 late", s)
		}
	})
}

// Requests over the window wait their turn in order; one that is cancelled,
// waiting or in flight, makes room.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePort()
		conn := openFake(t, p)
		defer conn.Close()
		reg := saClient(port.RMPPNone)
		reg.Window = 2
		a := register(t, conn, reg)
		var ends []<-chan outcome
		var cancels []context.CancelFunc
		for i := range 6 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cancels = append(cancels, cancel)
			ends = append(ends, doLater(ctx, a, agents.Request{Addr: serverAddr, Data: getRecord(i), Timeout: time.Minute}))
			synctest.Wait()
		}
		inFlight := func(want ...int) {
			t.Helper()
			synctest.Wait()
			var got []int
			for _, m := range p.sends() {
				got = append(got, int(binary.BigEndian.Uint32(m.Data[mad.OffSAData:])))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("sent %v, want %v", got, want)
			}
		}
		inFlight(0, 1)
		cancels[3]() // waits
		o := <-ends[3]
		wantError(t, o.err, context.Canceled)
		cancels[0]() // in flight
		wantError(t, (<-ends[0]).err, context.Canceled)
		inFlight(0, 1, 2)
		p.in <- answerTo(p.sends()[1], nil)
		inFlight(0, 1, 2, 4)
		p.in <- timeOutOf(p.sends()[2])
		inFlight(0, 1, 2, 4, 5)
		p.in <- answerTo(p.sends()[0], nil) // to the one that was cancelled
		inFlight(0, 1, 2, 4, 5)
		if s := conn.Stats(); s.Late != 1 {
			t.Errorf("stats %+v, want 1 late", s)
		}
	})
}

// A window full of requests that cannot even be sent does not stick.
func TestSendFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePort()
		refused := &port.Error{Op: "send", Detail: "no route", Err: port.ErrInvalid}
		p.onSend = func(port.Message) error { return refused }
		conn := openFake(t, p)
		defer conn.Close()
		for _, mode := range []port.RMPPMode{port.RMPPNone, port.RMPPKernel, port.RMPPUser} {
			reg := saClient(mode)
			reg.Window = 1
			a := register(t, conn, reg)
			var ends []<-chan outcome
			for range 100 {
				data := newMAD(mad.ClassSubnAdm, mad.MethodGetMulti, mad.AttrNodeRecord, nil)
				if mode != port.RMPPNone {
					data = append(data, pattern(300)...)
				}
				ends = append(ends, doLater(t.Context(), a, agents.Request{Addr: serverAddr, Data: data}))
			}
			for _, end := range ends {
				wantError(t, (<-end).err, refused)
			}
		}
	})
}

func TestRefusedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePort()
		conn := openFake(t, p)
		defer conn.Close()
		none := register(t, conn, saClient(port.RMPPNone))
		user := register(t, conn, saClient(port.RMPPUser))
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		tests := []struct {
			name  string
			agent *agents.Agent
			ctx   context.Context
			req   agents.Request
			want  error
		}{
			{"empty", none, t.Context(), agents.Request{}, port.ErrInvalid},
			{"cut header", none, t.Context(), agents.Request{Data: getRecord(1)[:mad.OffSAData-1]}, port.ErrInvalid},
			{"response", none, t.Context(), agents.Request{Data: respond(getRecord(1), nil)}, port.ErrInvalid},
			{"two MADs without RMPP", none, t.Context(), agents.Request{Data: append(getRecord(1), pattern(400)...)}, agents.ErrTooLong},
			{"two MADs in a class without RMPP", user, t.Context(), agents.Request{Data: newMAD(mad.ClassPerf, mad.MethodGet, 0x12, pattern(400))}, agents.ErrTooLong},
			{"negative", none, t.Context(), agents.Request{Data: getRecord(1), Retries: -1}, port.ErrInvalid},
			{"cancelled", none, cancelled, agents.Request{Data: getRecord(1)}, context.Canceled},
		}
		for _, tt := range tests {
			_, err := tt.agent.Do(tt.ctx, &tt.req)
			if e := new(agents.Error); !errors.As(err, &e) || !errors.Is(err, tt.want) {
				t.Errorf("%s: got %v, want an *agents.Error that wraps %v", tt.name, err, tt.want)
			}
		}
		if n := len(p.sends()); n != 0 {
			t.Errorf("%d messages were sent", n)
		}
	})
}

// Of a request that needs no answer nothing remains, and a GMP to QP 0 can only
// be meant for QP 1.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePort()
		conn := openFake(t, p)
		defer conn.Close()
		reg := agents.Registration{Window: 1}
		reg.QPN = mad.QPGSI
		a := register(t, conn, reg)
		for range 3 {
			if err := a.Send(t.Context(), &agents.Request{Addr: mad.AddressVector{LID: 7}, Data: getRecord(1), Timeout: time.Second, Retries: 2}); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range p.sends() {
			if m.Timeout != 0 || m.Retries != 0 || m.Addr != (mad.AddressVector{LID: 7, QPN: 1}) || len(m.Data) != mad.Size {
				t.Errorf("sent %+v", m)
			}
		}
		if n := len(p.sends()); n != 3 {
			t.Errorf("%d messages, want 3", n)
		}
	})
}

// A long message that needs no answer has arrived when Send returns, in mode
// RMPPUser.
func TestSendLong(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, agents.Config{}, nil)
				defer b.close()
				arrived := make(chan []byte, 1)
				register(t, b.server, saServer(mode.server, func(in *agents.Incoming) { arrived <- in.Data[mad.OffSAData:] }))
				a := register(t, b.client, saClient(mode.client))
				data := newMAD(mad.ClassSubnAdm, mad.MethodGetMulti, mad.AttrPathRecord, pattern(1234))
				if err := a.Send(t.Context(), &agents.Request{Addr: serverAddr, Data: data}); err != nil {
					t.Fatal(err)
				}
				if got := <-arrived; !bytes.Equal(got, pattern(1234)) {
					t.Errorf("got other %d bytes", len(got))
				}
				if mode.client == port.RMPPUser {
					err := a.Send(t.Context(), &agents.Request{Addr: mad.AddressVector{LID: 99}, Data: data})
					wantError(t, err, agents.ErrTimeout)
				}
			})
		})
	}
}

// All ways to end end everybody.
func TestEnd(t *testing.T) {
	tests := []struct {
		name string
		end  func(*fakePort, *agents.Conn, *agents.Agent)
		want error
	}{
		{"device removed", func(p *fakePort, c *agents.Conn, a *agents.Agent) { close(p.gone) }, port.ErrGone},
		{"conn closed", func(p *fakePort, c *agents.Conn, a *agents.Agent) { c.Close() }, port.ErrClosed},
		{"agent closed", func(p *fakePort, c *agents.Conn, a *agents.Agent) { a.Close() }, port.ErrClosed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakePort()
				conn := openFake(t, p)
				reg := saServer(port.RMPPUser, func(in *agents.Incoming) { <-in.Context().Done() })
				reg.Window = 5
				a := register(t, conn, reg)
				var ends []<-chan outcome
				for i := range 20 {
					req := agents.Request{Addr: serverAddr, Data: getRecord(i), Timeout: time.Hour}
					if i%2 == 0 { // in segments
						req.Data = append(req.Data, pattern(1000)...)
					}
					ends = append(ends, doLater(t.Context(), a, req))
				}
				synctest.Wait()
				p.in <- port.Message{Addr: serverAddr, Data: append(getRecord(1), make([]byte, 196)...)}
				synctest.Wait()
				if s := conn.Stats(); s.Served != 1 {
					t.Fatalf("stats %+v, want 1 served", s)
				}
				go tt.end(p, conn, a)
				for _, end := range ends {
					wantError(t, (<-end).err, tt.want)
				}
				_, err := a.Do(t.Context(), &agents.Request{Addr: serverAddr, Data: getRecord(1)})
				wantError(t, err, tt.want)
				if tt.want == port.ErrGone {
					if _, err := conn.Register(reg); !errors.Is(err, port.ErrGone) {
						t.Errorf("register: %v", err)
					}
				}
				synctest.Wait()
				if tt.name != "conn closed" {
					conn.Close()
				}
			})
		})
	}
}

func TestErrorText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePort()
		conn := openFake(t, p)
		defer conn.Close()
		a := register(t, conn, saClient(port.RMPPNone))
		_, err := a.Do(t.Context(), &agents.Request{Addr: serverAddr, Data: getRecord(1), Retries: 2})
		const want = "SubnAdmGet(NodeRecord) to LID 2: wait for the answer (sent 3 times): no answer in time"
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*ms)
		defer cancel()
		_, err = a.Do(ctx, &agents.Request{Addr: serverAddr, Data: getRecord(1)})
		wantError(t, err, context.DeadlineExceeded)
		var e *agents.Error
		if errors.As(err, &e) && !e.Timeout() {
			t.Errorf("%v: Timeout() is false", err)
		}
	})
}

// The first transmission has the transaction id that was asked for. While it is in
// flight another request cannot have it, and does not take a place in the window.
func TestOwnTransactionID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []uint32
		hook := func(_ *softmadtest.Link, w *softmad.Wire) []time.Duration {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, binary.BigEndian.Uint32(w.MAD[mad.OffTID+4:]))
			return nil
		}
		b := newBench(t, agents.Config{}, hook)
		defer b.close()
		reg := saClient(port.RMPPUser)
		reg.Window = 2
		client := register(t, b.client, reg)
		req := agents.Request{Addr: serverAddr, Data: getRecord(1), Timeout: 100 * ms, Retries: 1, Long: true, TID: 0x1234}
		first := doLater(t.Context(), client, req)
		synctest.Wait()
		for range 3 {
			_, err := client.Do(t.Context(), &req)
			wantError(t, err, port.ErrDuplicateTID)
		}
		wantError(t, (<-first).err, agents.ErrTimeout)
		_, err := client.Do(t.Context(), &req) // it is free again
		wantError(t, err, agents.ErrTimeout)
		if len(sent) != 4 || sent[0] != 0x1234 || sent[2] != 0x1234 || sent[1] == 0x1234 || sent[3] == 0x1234 {
			t.Errorf("transaction ids %x", sent)
		}
	})
}
