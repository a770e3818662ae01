package agents_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/softmad/softmadtest"
)

// modes is who does RMPP at the client and at the server: they must understand
// one another in every combination.
var modes = []struct {
	name           string
	client, server port.RMPPMode
}{
	{"user-user", port.RMPPUser, port.RMPPUser},
	{"kernel-kernel", port.RMPPKernel, port.RMPPKernel},
	{"user-kernel", port.RMPPUser, port.RMPPKernel},
	{"kernel-user", port.RMPPKernel, port.RMPPUser},
}

// perSegment is the data of an SA segment: 256 bytes less headers of 56 (IBA
// 15.2.1).
const perSegment = 200

func TestLongAnswers(t *testing.T) {
	sizes := []int{0, 1, perSegment, perSegment + 1, 64 * perSegment, 64*perSegment + 1, 11_000*perSegment - 7}
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, agents.Config{}, nil)
				defer b.close()
				register(t, b.server, saServer(mode.server, serveSized(t)))
				a := register(t, b.client, saClient(mode.client))
				for _, n := range sizes {
					r, err := a.Do(t.Context(), &agents.Request{Addr: serverAddr, Data: sized(n), Long: true})
					if err != nil {
						t.Fatalf("%d bytes: %v", n, err)
					}
					if r.Addr.LID != serverAddr.LID || r.Data[mad.OffMethod] != byte(mad.MethodGetTableResp) {
						t.Errorf("%d bytes: from %v, headers % x", n, r.Addr, r.Data[:56])
					}
					if !bytes.Equal(r.Data[mad.OffSAData:], pattern(n)) {
						t.Errorf("%d bytes: got other %d", n, len(r.Data)-mad.OffSAData)
					}
				}
				for name, s := range map[string]agents.Stats{"client": b.client.Stats(), "server": b.server.Stats()} {
					if s.Late != 0 || s.Foreign != 0 || s.Duplicates != 0 || s.Resent != 0 || s.RMPP.Failed != 0 {
						t.Errorf("%s: stats %+v", name, s)
					}
				}
				if s := b.client.Stats(); mode.client == port.RMPPUser && s.RMPP.Received != uint64(len(sizes)) {
					t.Errorf("client: stats %+v, want %d received", s, len(sizes))
				}
			})
		})
	}
}

// With loss, repetition and reordering on the wire many transfers at once give
// the same answers.
func TestLongAnswersOverLossyWire(t *testing.T) {
	sizes := []int{1, perSegment, perSegment + 1, 64 * perSegment, 64*perSegment + 1}
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, agents.Config{}, lossy(2))
				defer b.close()
				register(t, b.server, saServer(mode.server, func(in *agents.Incoming) {
					r := respond(in.Data, pattern(sizeOf(in.Data)))
					r[mad.OffRMPP+2] = 1
					// A client that has what it wants may be gone before its last ACK
					// has come through.
					_ = in.Reply(r)
				}))
				reg := saClient(mode.client)
				reg.Transfer = 40 * time.Second
				a := register(t, b.client, reg)
				ends := make(map[int][]<-chan outcome)
				for _, n := range sizes {
					for range 10 {
						ends[n] = append(ends[n], doLater(t.Context(), a, agents.Request{
							Addr: serverAddr, Data: sized(n), Long: true, Retries: 9,
						}))
					}
				}
				for n, list := range ends {
					for _, end := range list {
						o := <-end
						if o.err != nil {
							t.Errorf("%d bytes: %v", n, o.err)
						} else if !bytes.Equal(o.response.Data[mad.OffSAData:], pattern(n)) {
							t.Errorf("%d bytes: got other %d", n, len(o.response.Data)-mad.OffSAData)
						}
					}
				}
			})
		})
	}
}

func sizeOf(request []byte) int {
	b := request[mad.OffModifier:]
	return int(b[0])<<24 | int(b[1])<<16 | int(b[2])<<8 | int(b[3])
}

// The largest transfer over the lossy wire needs more time than the kernel
// allows, which RMPPConfig can give.
func TestHugeAnswerOverLossyWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := agents.Config{RMPP: agents.RMPPConfig{SegmentTimeout: 20 * ms, ReceiveTimeout: time.Hour, Retries: 20}}
		b := newBench(t, cfg, lossy(3))
		defer b.close()
		register(t, b.server, saServer(port.RMPPUser, serveSized(t)))
		a := register(t, b.client, saClient(port.RMPPUser))
		const n = 11_000 * perSegment
		var got []byte
		var r *agents.Response
		err := a.Stream(t.Context(), &agents.Request{Addr: serverAddr, Data: sized(n), Long: true, Retries: 9},
			func(head *agents.Response, payload []byte) error { r, got = head, append(got, payload...); return nil })
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Data) != mad.OffSAData || !bytes.Equal(got, pattern(n)) {
			t.Errorf("got %d bytes of headers and %d of data", len(r.Data), len(got))
		}
		// ACKs that were lost are sent again out of the receiver's memory.
		synctest.Wait()
	})
}

// A request in segments, answered in segments: a double-sided transfer.
func TestLongRequests(t *testing.T) {
	for _, mode := range modes {
		for name, hook := range map[string]softmadtest.Hook{"clean": nil, "lossy": lossy(4)} {
			t.Run(mode.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, agents.Config{}, hook)
					defer b.close()
					register(t, b.server, saServer(mode.server, func(in *agents.Incoming) {
						r := respond(in.Data, bytes.ToUpper(in.Data[mad.OffSAData:]))
						r[mad.OffRMPP+2] = 1
						_ = in.Reply(r)
					}))
					reg := saClient(mode.client)
					reg.Transfer = 40 * time.Second
					a := register(t, b.client, reg)
					var ends []<-chan outcome
					sizes := []int{perSegment + 1, 2 * perSegment, 64 * perSegment, 65 * perSegment}
					text := func(n int) []byte { return bytes.Repeat([]byte("path "), n/5+1)[:n] }
					for _, n := range sizes {
						ends = append(ends, doLater(t.Context(), a, agents.Request{
							Addr: serverAddr,
							Data: newMAD(mad.ClassSubnAdm, mad.MethodGetMulti, mad.AttrPathRecord, text(n)),
							Long: true, Retries: 9, Timeout: 5 * time.Second,
						}))
					}
					for i, end := range ends {
						o := <-end
						if o.err != nil {
							t.Errorf("%d bytes: %v", sizes[i], o.err)
						} else if !bytes.Equal(o.response.Data[mad.OffSAData:], bytes.ToUpper(text(sizes[i]))) {
							t.Errorf("%d bytes: got other %d", sizes[i], len(o.response.Data)-mad.OffSAData)
						}
					}
				})
			})
		}
	}
}

// Payload comes as it arrives where agents does the RMPP, otherwise at once.
func TestStream(t *testing.T) {
	const n = 1000 * perSegment
	slow := func(*softmadtest.Link, *softmad.Wire) []time.Duration { return []time.Duration{ms} }
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, agents.Config{}, slow)
				defer b.close()
				register(t, b.server, saServer(mode.server, serveSized(t)))
				a := register(t, b.client, saClient(mode.client))
				var got []byte
				var calls int
				var first time.Duration
				start := time.Now()
				var r *agents.Response
				err := a.Stream(t.Context(), &agents.Request{Addr: serverAddr, Data: sized(n), Long: true}, func(head *agents.Response, payload []byte) error {
					if calls == 0 {
						first = time.Since(start)
					}
					calls++
					r, got = head, append(got, payload...)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Data) != mad.OffSAData || !bytes.Equal(got, pattern(n)) {
					t.Errorf("got %d bytes of headers and %d of data", len(r.Data), len(got))
				}
				if mode.client == port.RMPPUser {
					if first != 2*ms || calls < 16 { // 1,000 segments in windows of 64
						t.Errorf("first of %d pieces after %v", calls, first)
					}
				} else if calls != 1 {
					t.Errorf("%d pieces, want 1", calls)
				}
			})
		})
	}
}

var errEnough = errors.New("enough")

// A consumer that takes its time holds up nobody; if too much waits for it, or
// it has enough, the peer is told to stop.
func TestStreamConsumers(t *testing.T) {
	const n = 1000 * perSegment
	tests := []struct {
		name  string
		limit int
		yield func() error
		want  error
		peer  mad.RMPPStatus // with which the server's reply ends
	}{
		{"slow", n, func() error { time.Sleep(time.Minute); return nil }, nil, mad.RMPPStatusOK},
		{"too slow", n / 2, func() error { time.Sleep(time.Minute); return nil }, agents.ErrTooLong, mad.RMPPStatusResourcesExhausted},
		{"enough", n, func() error { return errEnough }, errEnough, mad.RMPPStatusUnspecified},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := func(*softmadtest.Link, *softmad.Wire) []time.Duration { return []time.Duration{ms} }
				b := newBench(t, agents.Config{}, slow)
				defer b.close()
				replied := make(chan error, 1)
				register(t, b.server, saServer(port.RMPPUser, func(in *agents.Incoming) {
					r := respond(in.Data, pattern(sizeOf(in.Data)))
					r[mad.OffRMPP+2] = 1
					if err := in.Reply(r); sizeOf(in.Data) == n {
						replied <- err
					} else if err != nil {
						t.Errorf("the other reply: %v", err)
					}
				}))
				reg := saClient(port.RMPPUser)
				reg.MaxMessage = tt.limit
				a := register(t, b.client, reg)
				total := 0
				streamed := make(chan error, 1)
				go func() {
					err := a.Stream(t.Context(), &agents.Request{Addr: serverAddr, Data: sized(n), Long: true}, func(_ *agents.Response, payload []byte) error {
						total += len(payload)
						return tt.yield()
					})
					streamed <- err
				}()
				// Beside it another request runs at its own pace.
				start := time.Now()
				if _, err := a.Do(t.Context(), &agents.Request{Addr: serverAddr, Data: sized(1), Long: true}); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != 2*ms {
					t.Errorf("another request took %v, want 2ms", took)
				}
				err := <-streamed
				if tt.want == nil {
					if err != nil || total != n {
						t.Errorf("got %d bytes, %v", total, err)
					}
				} else {
					wantError(t, err, tt.want)
				}
				var abort *rmpp.AbortError
				if err := <-replied; tt.peer == mad.RMPPStatusOK && err != nil {
					t.Errorf("reply: %v", err)
				} else if tt.peer != mad.RMPPStatusOK && (!errors.As(err, &abort) || abort.Status != tt.peer || abort.Local) {
					t.Errorf("reply: %v, want status %v of the peer", err, tt.peer)
				}
				synctest.Wait() // the last ACK of the other comes at the same instant
			})
		})
	}
}

// The error of yield comes back in every mode, however small the answer.
func TestStreamYieldFails(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, agents.Config{}, nil)
				defer b.close()
				register(t, b.server, saServer(mode.server, serveSized(t)))
				a := register(t, b.client, saClient(mode.client))
				err := a.Stream(t.Context(), &agents.Request{Addr: serverAddr, Data: sized(1), Long: true},
					func(*agents.Response, []byte) error { return errEnough })
				wantError(t, err, errEnough)
			})
		})
	}
}

func TestMessageLimit(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, agents.Config{}, nil)
				defer b.close()
				register(t, b.server, saServer(mode.server, func(in *agents.Incoming) {
					r := respond(in.Data, pattern(sizeOf(in.Data)))
					r[mad.OffRMPP+2] = 1
					_ = in.Reply(r)
				}))
				reg := saClient(mode.client)
				reg.MaxMessage = 5000
				a := register(t, b.client, reg)
				if _, err := a.Do(t.Context(), &agents.Request{Addr: serverAddr, Data: sized(5000), Long: true}); err != nil {
					t.Errorf("5000 bytes: %v", err)
				}
				_, err := a.Do(t.Context(), &agents.Request{Addr: serverAddr, Data: sized(5001), Long: true})
				wantError(t, err, agents.ErrTooLong)
			})
		})
	}
}

// segments cuts a message as a peer would, for a test that plays the peer.
func segments(t *testing.T, msg []byte) (packets [][]byte) {
	t.Helper()
	s, err := rmpp.NewSender(msg, rmpp.SenderConfig{FirstWindow: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var pkt [mad.Size]byte
	for s.Next(time.Now(), &pkt) {
		packets = append(packets, bytes.Clone(pkt[:]))
	}
	return packets
}

// control makes an ACK, STOP or ABORT like a packet of the transfer.
func control(like []byte, h mad.RMPPHeader) []byte {
	var pkt [mad.Size]byte
	copy(pkt[:mad.OffSAData], like)
	h.RMPPVersion, h.RMPPFlags = rmpp.Version, mad.RMPPFlagActive
	rmpp.PutHeader(&pkt, h)
	return pkt[:]
}

// What a client in user mode says to its peer, packet by packet.
func TestClientPackets(t *testing.T) {
	long := func(m port.Message) [][]byte { return segments(t, respond(m.Data, pattern(3*perSegment))) }
	tests := []struct {
		name string
		play func(p *fakePort, sent port.Message, cancel context.CancelFunc)
		want []mad.RMPPHeader // Version, Flags and RespTime left out
		err  error            // nil: answered
		late uint64
	}{
		{"acknowledge", func(p *fakePort, sent port.Message, _ context.CancelFunc) {
			for _, pkt := range long(sent) {
				p.in <- port.Message{Addr: sent.Addr, Data: pkt}
			}
		}, []mad.RMPPHeader{
			{RMPPType: mad.RMPPTypeACK, Data1: 1, Data2: 65},
			{RMPPType: mad.RMPPTypeACK, Data1: 3, Data2: 65},
		}, nil, 0},
		{"the last ACK is lost", func(p *fakePort, sent port.Message, _ context.CancelFunc) {
			pkts := segments(t, respond(sent.Data, pattern(10)))
			p.in <- port.Message{Addr: sent.Addr, Data: pkts[0]}
			time.Sleep(9 * time.Second)
			p.in <- port.Message{Addr: sent.Addr, Data: pkts[0]}
			time.Sleep(2 * time.Second) // the receive is forgotten after 10 s
			p.in <- port.Message{Addr: sent.Addr, Data: pkts[0]}
		}, []mad.RMPPHeader{
			{RMPPType: mad.RMPPTypeACK, Data1: 1, Data2: 1},
			{RMPPType: mad.RMPPTypeACK, Data1: 1, Data2: 1},
		}, nil, 1},
		{"version 0", func(p *fakePort, sent port.Message, _ context.CancelFunc) {
			m := answerTo(sent, pattern(perSegment))
			m.Data[mad.OffRMPP+2] = 1 // as OpenSM without RMPP below it
			p.in <- m
		}, nil, nil, 0},
		{"inactive", func(p *fakePort, sent port.Message, _ context.CancelFunc) {
			m := answerTo(sent, pattern(perSegment))
			m.Data[mad.OffRMPP] = 1
			m.Data[mad.OffRMPP+1] = byte(mad.RMPPTypeData)
			p.in <- m
		}, nil, nil, 0},
		{"cancel", func(p *fakePort, sent port.Message, cancel context.CancelFunc) {
			p.in <- port.Message{Addr: sent.Addr, Data: long(sent)[0]}
			synctest.Wait()
			cancel()
			synctest.Wait()
			p.in <- port.Message{Addr: sent.Addr, Data: long(sent)[1]}
		}, []mad.RMPPHeader{
			{RMPPType: mad.RMPPTypeACK, Data1: 1, Data2: 65},
			{RMPPType: mad.RMPPTypeAbort, RMPPStatus: mad.RMPPStatusUnspecified},
			{RMPPType: mad.RMPPTypeAbort, RMPPStatus: mad.RMPPStatusUnspecified},
		}, context.Canceled, 0},
		{"peer aborts half way", func(p *fakePort, sent port.Message, _ context.CancelFunc) {
			p.in <- port.Message{Addr: sent.Addr, Data: long(sent)[0]}
			p.in <- port.Message{Addr: sent.Addr, Data: control(long(sent)[0], mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: mad.RMPPStatusTooManyRetries})}
		}, []mad.RMPPHeader{
			{RMPPType: mad.RMPPTypeACK, Data1: 1, Data2: 65},
		}, &rmpp.AbortError{Status: mad.RMPPStatusTooManyRetries, Segment: 1}, 0},
		{"peer aborts at once", func(p *fakePort, sent port.Message, _ context.CancelFunc) {
			p.in <- port.Message{Addr: sent.Addr, Data: control(long(sent)[0], mad.RMPPHeader{RMPPType: mad.RMPPTypeStop, RMPPStatus: mad.RMPPStatusResourcesExhausted})}
		}, nil, &rmpp.AbortError{Status: mad.RMPPStatusResourcesExhausted}, 0},
		{"transfer stalls", func(p *fakePort, sent port.Message, _ context.CancelFunc) {
			p.in <- port.Message{Addr: sent.Addr, Data: long(sent)[0]}
			time.Sleep(agents.DefaultIdleTimeout + time.Second)
		}, []mad.RMPPHeader{
			{RMPPType: mad.RMPPTypeACK, Data1: 1, Data2: 65},
			{RMPPType: mad.RMPPTypeAbort, RMPPStatus: mad.RMPPStatusTimeTooLong},
		}, agents.ErrTimeout, 0},
		{"an ACK of nothing", func(p *fakePort, sent port.Message, _ context.CancelFunc) {
			p.in <- port.Message{Addr: sent.Addr, Data: control(long(sent)[0], mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, Data1: 1, Data2: 64})}
			p.in <- timeOutOf(sent)
		}, nil, agents.ErrTimeout, 1},
		{"second segment first", func(p *fakePort, sent port.Message, _ context.CancelFunc) {
			p.in <- port.Message{Addr: sent.Addr, Data: long(sent)[1]}
		}, nil, agents.ErrTimeout, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakePort()
				conn := openFake(t, p)
				defer conn.Close()
				a := register(t, conn, saClient(port.RMPPUser))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				end := doLater(ctx, a, agents.Request{Addr: serverAddr, Data: sized(0), Long: true, Timeout: 2 * time.Second})
				synctest.Wait()
				sent := p.sends()[0]
				tt.play(p, sent, cancel)
				synctest.Wait()
				o := <-end
				var abort *rmpp.AbortError
				switch {
				case tt.err == nil && o.err != nil:
					t.Errorf("got %v", o.err)
				case errors.As(tt.err, &abort):
					want := *abort
					if !errors.As(o.err, &abort) || abort.Status != want.Status || abort.Segment != want.Segment || abort.Local {
						t.Errorf("got %v, want %v", o.err, &want)
					}
				case tt.err != nil:
					wantError(t, o.err, tt.err)
				}
				var got []mad.RMPPHeader
				for _, m := range p.sends()[1:] {
					h := rmpp.ParseHeader((*[mad.Size]byte)(m.Data))
					got = append(got, mad.RMPPHeader{RMPPType: h.RMPPType, RMPPStatus: h.RMPPStatus, Data1: h.Data1, Data2: h.Data2})
					// The R bit is that of the answer, turned round (IBA 13.6.2.1).
					if m.Data[mad.OffMethod] != 0x12 || m.Timeout != 0 || m.Addr != sent.Addr ||
						!bytes.Equal(m.Data[mad.OffTID:16], sent.Data[mad.OffTID:16]) {
						t.Errorf("sent %+v", m)
					}
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("sent %+v\nwant %+v", got, tt.want)
				}
				if s := conn.Stats(); s.Late != tt.late {
					t.Errorf("stats %+v, want %d late", s, tt.late)
				}
			})
		})
	}
}
