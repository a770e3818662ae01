package agents_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// arriving makes a request as a Port delivers it.
func arriving(tid uint64, data []byte) port.Message {
	data = append(bytes.Clone(data), make([]byte, mad.Size)...)[:mad.Size]
	binary.BigEndian.PutUint64(data[mad.OffTID:], tid)
	return port.Message{Addr: mad.AddressVector{LID: 9, QPN: mad.QPGSI}, Data: data}
}

// The same request again is dropped while it is served, and served anew
// afterwards; the same transaction id of somebody else is another request.
func TestDuplicateRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePort()
		conn := openFake(t, p)
		defer conn.Close()
		release := make(chan struct{})
		register(t, conn, saServer(port.RMPPNone, func(in *agents.Incoming) {
			<-release
			if err := in.Reply(respond(in.Data, nil)); err != nil {
				t.Errorf("reply: %v", err)
			}
		}))
		first := arriving(0x1_00000002, getRecord(1))
		p.in <- first
		p.in <- first
		synctest.Wait()
		if s := conn.Stats(); s.Served != 1 || s.Duplicates != 1 {
			t.Fatalf("stats %+v, want 1 served and 1 duplicate", s)
		}
		others := []func(*port.Message){
			func(m *port.Message) { m.Data[mad.OffTID+3]++ },                     // upper half
			func(m *port.Message) { m.Data[mad.OffTID+7]++ },                     // lower half
			func(m *port.Message) { m.Addr.LID++ },                               // another port
			func(m *port.Message) { m.Addr.QPN = 77 },                            // another queue pair
			func(m *port.Message) { m.Addr.HasGRH, m.Addr.GRH.GID[0] = true, 1 }, // through a router
		}
		for _, change := range others {
			m := arriving(0x1_00000002, getRecord(1))
			change(&m)
			p.in <- m
			p.in <- m
		}
		synctest.Wait()
		if s := conn.Stats(); s.Served != 6 || s.Duplicates != 6 {
			t.Fatalf("stats %+v, want 6 served and 6 duplicates", s)
		}
		close(release)
		synctest.Wait()
		p.in <- first
		synctest.Wait()
		if s := conn.Stats(); s.Served != 7 || s.Duplicates != 6 || s.Sent != 7 {
			t.Errorf("stats %+v, want 7 served and sent", s)
		}
		for _, m := range p.sends() {
			if m.Timeout != 0 || m.Data[mad.OffMethod] != byte(mad.MethodGetResp) {
				t.Errorf("sent %+v", m)
			}
		}
		if tid := binary.BigEndian.Uint64(p.sends()[6].Data[mad.OffTID:]); tid != 0x1_00000002 {
			t.Errorf("replied to transaction %#x", tid)
		}
	})
}

// A handler that hangs blocks neither the others nor the requests of the same
// agent; what exceeds the queue is dropped.
func TestSlowHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePort()
		conn := openFake(t, p)
		defer conn.Close()
		release := make(chan struct{})
		reg := saServer(port.RMPPNone, func(in *agents.Incoming) {
			if in.Data[mad.OffSAData+3] == 0 {
				select {
				case <-release:
				case <-in.Context().Done():
				}
			}
			if err := in.Reply(respond(in.Data, nil)); err != nil {
				t.Errorf("reply: %v", err)
			}
		})
		reg.Workers, reg.Queue = 2, 4
		a := register(t, conn, reg)
		p.in <- arriving(1, getRecord(0)) // hangs
		for i := range 20 {
			p.in <- arriving(uint64(100+i), getRecord(1))
			synctest.Wait()
		}
		if s := conn.Stats(); s.Served != 21 || s.Sent != 20 || s.Overflows != 0 {
			t.Fatalf("stats %+v, want 21 served and 20 sent", s)
		}
		for i := range 6 {
			p.in <- arriving(uint64(200+i), getRecord(0))
		}
		synctest.Wait()
		if s := conn.Stats(); s.Served != 24 || s.Overflows != 3 {
			t.Errorf("stats %+v, want 24 served and 3 too many", s)
		}
		end := doLater(t.Context(), a, agents.Request{Addr: serverAddr, Data: getRecord(1)})
		synctest.Wait()
		sends := p.sends()
		p.in <- answerTo(sends[len(sends)-1], nil)
		if o := <-end; o.err != nil || o.took != 0 {
			t.Errorf("a request beside it: %v after %v", o.err, o.took)
		}
		close(release)
		synctest.Wait()
		p.in <- arriving(300, getRecord(1))
		synctest.Wait()
		if s := conn.Stats(); s.Served != 25 || s.Overflows != 3 {
			t.Errorf("stats %+v, want 25 served", s)
		}
	})
}

func TestRefusedReplies(t *testing.T) {
	tests := []struct {
		name  string
		mode  port.RMPPMode
		reply func(*agents.Incoming) error
		want  error
	}{
		{"twice", port.RMPPNone, func(in *agents.Incoming) error {
			if err := in.Reply(respond(in.Data, nil)); err != nil {
				return err
			}
			return in.Reply(respond(in.Data, nil))
		}, agents.ErrAnswered},
		{"a request", port.RMPPNone, func(in *agents.Incoming) error { return in.Reply(getRecord(1)) }, port.ErrInvalid},
		{"nothing", port.RMPPNone, func(in *agents.Incoming) error { return in.Reply(nil) }, port.ErrInvalid},
		{"long without RMPP", port.RMPPNone, func(in *agents.Incoming) error { return in.Reply(respond(in.Data, pattern(201))) }, agents.ErrTooLong},
		{"ACKs go elsewhere", port.RMPPUser, func(in *agents.Incoming) error {
			return in.Reply(newMAD(mad.ClassSubnAdm, mad.MethodDeleteResp, mad.AttrNodeRecord, pattern(201)))
		}, agents.ErrNoAck},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakePort()
				conn := openFake(t, p)
				defer conn.Close()
				replied := make(chan error, 1)
				register(t, conn, saServer(tt.mode, func(in *agents.Incoming) { replied <- tt.reply(in) }))
				p.in <- arriving(1, getRecord(1))
				wantError(t, <-replied, tt.want)
			})
		})
	}
}

// Replies that are too late, by any way to end, say so.
func TestReplyAfterEnd(t *testing.T) {
	for _, mode := range []port.RMPPMode{port.RMPPNone, port.RMPPUser} {
		for name, end := range map[string]func(*fakePort, *agents.Conn, *agents.Agent) error{
			"conn":   func(_ *fakePort, c *agents.Conn, _ *agents.Agent) error { go c.Close(); return port.ErrClosed },
			"agent":  func(_ *fakePort, _ *agents.Conn, a *agents.Agent) error { go a.Close(); return port.ErrClosed },
			"device": func(p *fakePort, _ *agents.Conn, _ *agents.Agent) error { close(p.gone); return port.ErrGone },
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newFakePort()
					conn := openFake(t, p)
					replied := make(chan error, 2)
					a := register(t, conn, saServer(mode, func(in *agents.Incoming) {
						if in.Data[mad.OffSAData+3] == 1 { // waits for ACKs that do not come
							replied <- in.Reply(respond(in.Data, pattern(1000)))
							return
						}
						<-in.Context().Done()
						replied <- in.Reply(respond(in.Data, nil))
					}))
					want := 1
					p.in <- arriving(1, getRecord(0))
					if mode == port.RMPPUser {
						p.in <- arriving(2, getRecord(1))
						want = 2
					}
					synctest.Wait()
					why := end(p, conn, a)
					for range want {
						wantError(t, <-replied, why)
					}
					synctest.Wait()
					if name != "conn" {
						conn.Close()
					}
				})
			})
		}
	}
}

// A kernel reports a long reply that was not acknowledged as timed out. That is
// not the end of an own request whose transaction id has the same low half.
func TestReplyTimedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePort()
		conn := openFake(t, p)
		defer conn.Close()
		a := register(t, conn, saServer(port.RMPPKernel, func(in *agents.Incoming) {
			if err := in.Reply(respond(in.Data, pattern(1000))); err != nil {
				t.Errorf("reply: %v", err)
			}
		}))
		end := doLater(t.Context(), a, agents.Request{Addr: serverAddr, Data: getRecord(1)})
		synctest.Wait()
		request := p.sends()[0]
		p.in <- arriving(7<<32|uint64(binary.BigEndian.Uint32(request.Data[mad.OffTID+4:])), getRecord(1))
		synctest.Wait()
		reply := p.sends()[1]
		if len(reply.Data) != 1056 || reply.Timeout != 0 || reply.Retries == 0 || reply.Data[mad.OffRMPP+2]&1 == 0 {
			t.Errorf("replied with time-out %v, %d retries, % x", reply.Timeout, reply.Retries, reply.Data[:40])
		}
		p.in <- timeOutOf(reply)
		synctest.Wait()
		if s := conn.Stats(); s.RMPP.Failed != 1 || s.TimedOut != 0 {
			t.Errorf("stats %+v, want 1 failed", s)
		}
		p.in <- answerTo(request, nil)
		if o := <-end; o.err != nil {
			t.Error(o.err)
		}
	})
}

// A long reply after the handler has returned is possible, unless the request
// came again meanwhile.
func TestReplyLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePort()
		conn := openFake(t, p)
		defer conn.Close()
		incoming := make(chan *agents.Incoming, 3)
		register(t, conn, saServer(port.RMPPUser, func(in *agents.Incoming) {
			incoming <- in
			if len(incoming) == 2 {
				<-in.Context().Done()
			}
		}))
		acknowledge := func(sent port.Message) {
			ack := control(sent.Data, mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, Data1: 1, Data2: 1})
			ack[mad.OffMethod] = byte(mad.MethodGet)
			p.in <- port.Message{Addr: sent.Addr, Data: ack}
		}
		long := func(in *agents.Incoming) []byte {
			r := respond(in.Data, nil)
			r[mad.OffRMPP+2] = 1
			return r
		}
		p.in <- arriving(1, getRecord(1))
		in := <-incoming
		synctest.Wait()
		replied := make(chan error, 1)
		go func() { replied <- in.Reply(long(in)) }()
		synctest.Wait()
		acknowledge(p.sends()[0])
		if err := <-replied; err != nil {
			t.Errorf("reply: %v", err)
		}

		p.in <- arriving(2, getRecord(1))
		synctest.Wait()
		p.in <- arriving(2, getRecord(1))
		synctest.Wait()
		wantError(t, (<-incoming).Reply(long(in)), port.ErrDuplicateTID)
	})
}

func TestRegister(t *testing.T) {
	serve := func(*agents.Incoming) {}
	synctest.Test(t, func(t *testing.T) {
		p := newFakePort()
		conn := openFake(t, p)
		defer conn.Close()
		served := make(chan mad.Method, 10)
		reg := saServer(port.RMPPUser, func(in *agents.Incoming) { served <- mad.Method(in.Data[mad.OffMethod]) })
		reg.Methods = port.Methods(mad.MethodGetTraceTable, mad.MethodSet)
		register(t, conn, reg)
		// GetTableResp answers GetTraceTable (IBA 15.2.2), GetResp answers Set: their
		// ACKs are 0x12 and 0x01.
		if want := port.Methods(0x01, 0x02, 0x12, 0x13); p.regs[0].Methods != want {
			t.Errorf("registered %#x, want %#x", p.regs[0].Methods, want)
		}
		p.in <- arriving(1, sized(1))
		p.in <- arriving(2, newMAD(mad.ClassSubnAdm, mad.MethodGetTraceTable, mad.AttrNodeRecord, nil))
		synctest.Wait()
		if s := conn.Stats(); s.Served != 1 || s.Foreign != 1 {
			t.Errorf("stats %+v, want 1 served and 1 foreign", s)
		}
		if m := <-served; m != mad.MethodGetTraceTable {
			t.Errorf("served %v", m)
		}

		for name, spoil := range map[string]func(*agents.Registration){
			"no methods": func(r *agents.Registration) { r.Methods = port.MethodSet{} },
			"no Serve":   func(r *agents.Registration) { r.Serve = nil },
		} {
			reg := saServer(port.RMPPNone, serve)
			spoil(&reg)
			if _, err := conn.Register(reg); !errors.Is(err, port.ErrInvalid) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, agents.Config{}, nil)
		defer b.close()
		first := saServer(port.RMPPUser, serve)
		first.Methods = port.Methods(mad.MethodGetTable)
		a := register(t, b.server, first)
		second := saServer(port.RMPPUser, serve)
		second.Methods = port.Methods(mad.MethodGetTraceTable)
		_, err := b.server.Register(second)
		if !errors.Is(err, port.ErrMethodOwned) || !strings.Contains(err.Error(), "ACKs") {
			t.Errorf("got %v, want that a method for ACKs is owned", err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		register(t, b.server, second)
	})
}

// What a server in user mode says to a requester, packet by packet.
func TestServerPackets(t *testing.T) {
	request := newMAD(mad.ClassSubnAdm, mad.MethodGetMulti, mad.AttrPathRecord, pattern(3*perSegment))
	send := func(p *fakePort, pkts ...[]byte) {
		for _, pkt := range pkts {
			p.in <- arriving(0x7_00000001, pkt)
		}
	}
	tests := []struct {
		name   string
		play   func(p *fakePort, pkts [][]byte)
		want   []mad.RMPPHeader // Version, Flags and RespTime left out
		served uint64
	}{
		{"whole, and turned round", func(p *fakePort, pkts [][]byte) {
			send(p, pkts...)
			send(p, control(pkts[0], mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, Data1: 0, Data2: 2}))
		}, []mad.RMPPHeader{
			{RMPPType: mad.RMPPTypeACK, Data1: 1, Data2: 65},
			{RMPPType: mad.RMPPTypeACK, Data1: 3, Data2: 65},
			{RMPPType: mad.RMPPTypeData, Data1: 1, Data2: 3 * 220},
			{RMPPType: mad.RMPPTypeData, Data1: 2},
		}, 1},
		{"last segment again", func(p *fakePort, pkts [][]byte) {
			send(p, pkts...)
			send(p, pkts[2])
		}, []mad.RMPPHeader{
			{RMPPType: mad.RMPPTypeACK, Data1: 1, Data2: 65},
			{RMPPType: mad.RMPPTypeACK, Data1: 3, Data2: 65},
			{RMPPType: mad.RMPPTypeACK, Data1: 3, Data2: 65},
			{RMPPType: mad.RMPPTypeData, Data1: 1, Data2: 3 * 220},
		}, 1},
		{"aborted", func(p *fakePort, pkts [][]byte) {
			send(p, pkts[0], control(pkts[0], mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: mad.RMPPStatusTooManyRetries}))
		}, []mad.RMPPHeader{
			{RMPPType: mad.RMPPTypeACK, Data1: 1, Data2: 65},
		}, 0},
		{"not from the start", func(p *fakePort, pkts [][]byte) {
			send(p, pkts[1])
		}, nil, 0},
		{"too long", func(p *fakePort, pkts [][]byte) {
			send(p, segments(t, append(bytes.Clone(request), 1))[0])
		}, []mad.RMPPHeader{
			{RMPPType: mad.RMPPTypeStop, RMPPStatus: mad.RMPPStatusResourcesExhausted},
		}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakePort()
				conn := openFake(t, p)
				defer conn.Close()
				reg := saServer(port.RMPPUser, func(in *agents.Incoming) {
					if mad.Method(in.Data[mad.OffMethod]) == mad.MethodGet {
						return
					}
					if !bytes.Equal(in.Data[mad.OffSAData:], request[mad.OffSAData:]) {
						t.Errorf("got other %d bytes", len(in.Data))
					}
					time.Sleep(ms)
					_ = in.Reply(respond(in.Data, in.Data[mad.OffSAData:]))
				})
				reg.MaxMessage = 3 * perSegment
				reg.Queue = 1
				register(t, conn, reg)
				tt.play(p, segments(t, request))
				synctest.Wait()
				time.Sleep(ms)
				synctest.Wait()
				var got []mad.RMPPHeader
				for _, m := range p.sends() {
					h := rmpp.ParseHeader((*[mad.Size]byte)(m.Data))
					got = append(got, mad.RMPPHeader{RMPPType: h.RMPPType, RMPPStatus: h.RMPPStatus, Data1: h.Data1, Data2: h.Data2})
					if m.Data[mad.OffMethod] != byte(mad.MethodGetMultiResp) || m.Timeout != 0 || m.Addr.LID != 9 ||
						binary.BigEndian.Uint64(m.Data[mad.OffTID:]) != 0x7_00000001 {
						t.Errorf("sent %+v", m)
					}
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("sent %+v\nwant %+v", got, tt.want)
				}
				if s := conn.Stats(); s.Served != tt.served {
					t.Errorf("stats %+v, want %d served", s, tt.served)
				}
				if tt.served == 0 { // nothing of it is left in the queue of one
					p.in <- arriving(2, getRecord(1))
					synctest.Wait()
					if s := conn.Stats(); s.Overflows != 0 {
						t.Errorf("stats %+v: the queue is full", s)
					}
				}
			})
		})
	}
}
