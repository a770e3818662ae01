package ibsim

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/ibsim/ibsimtest"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/port/porttest"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/softmad"
)

var nodes = []ibsimtest.FakeNode{
	{ID: "Hca1", Desc: "host 1 HCA-1", GUID: 0x100000, LID: 1},
	{ID: "Hca2", Desc: "host 2 HCA-1", GUID: 0x100010, LID: 4, LMC: 2},
	{ID: "S-0000000000200000", Desc: "a switch", Type: mad.NodeTypeSwitch, GUID: 0x200000, LID: 9},
}

func open(t testing.TB, cfg Config) *softmad.Device {
	t.Helper()
	d, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// bench is ibsim for the suite: it has no other exceptions than that nobody there
// speaks RMPP for an agent, see the package's documentation.
func bench(open func(testing.TB) porttest.Pair) porttest.Bench {
	return porttest.Bench{
		Open:     open,
		UserRMPP: true,
		Silence:  true, // what ibsim gives back at once softmad lets time out
		Serves:   true,
		QP0:      true,
		IsSM:     true,
	}
}

func fakePair(t testing.TB) porttest.Pair {
	f := ibsimtest.NewFake(t, nodes...)
	return porttest.Pair{
		A:      open(t, Config{Socket: f.Socket, Node: "Hca1", Serve: true}),
		B:      open(t, Config{Socket: f.Socket, Node: "Hca2", Serve: true}),
		ToA:    mad.AddressVector{LID: 1, QPN: mad.QPGSI},
		ToB:    mad.AddressVector{LID: 4, QPN: mad.QPGSI},
		Remove: f.Stop,
	}
}

func TestContract(t *testing.T) { porttest.RunContract(t, bench(fakePair)) }

func TestInfo(t *testing.T) {
	f := ibsimtest.NewFake(t, nodes...)
	want := port.Info{
		Device: "Hca2", Port: 1, NodeType: mad.NodeTypeCA,
		NodeGUID: 0x100010, PortGUID: 0x100011, NodeDesc: "host 2 HCA-1",
		State: mad.PortStateActive, PhysState: mad.PortPhysStateLinkUp,
		LID: 4, LMC: 2, SMLID: 1, Width: mad.LinkWidth4X, Rate: mad.Rate40G,
		GIDs: []mad.GID{mad.MakeGID(mad.DefaultGIDPrefix, 0x100011)},
	}
	for _, tt := range []struct {
		node string
		want func(*port.Info)
	}{
		{"Hca2", nil},
		{"host 2 HCA-1", nil},
		{"", func(i *port.Info) {
			i.Device, i.NodeDesc, i.LID, i.LMC = "Hca1", "host 1 HCA-1", 1, 0
			i.NodeGUID, i.PortGUID, i.GIDs = 0x100000, 0x100001, []mad.GID{mad.MakeGID(mad.DefaultGIDPrefix, 0x100001)}
		}},
		{"a switch", func(i *port.Info) {
			i.Device, i.NodeDesc, i.LID, i.LMC = "S-0000000000200000", "a switch", 9, 0
			i.Port, i.NodeType = 0, mad.NodeTypeSwitch
			i.NodeGUID, i.PortGUID, i.GIDs = 0x200000, 0x200000, []mad.GID{mad.MakeGID(mad.DefaultGIDPrefix, 0x200000)}
		}},
	} {
		want := want
		if tt.want != nil {
			tt.want(&want)
		}
		got, err := open(t, Config{Socket: f.Socket, Node: tt.node}).Info()
		if err != nil {
			t.Fatal(err)
		}
		if len(got.PKeys) != 32 || got.PKeys[0] != 0xffff || got.PKeys[1] != 0x8001 || got.PKeys[2] != 0 {
			t.Errorf("node %q: P_Keys %v, want 32 that begin 0xffff 0x8001 0", tt.node, got.PKeys)
		}
		got.PKeys = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("node %q (-want +got):\n%s", tt.node, diff)
		}
	}
}

func TestSocketFromEnvironment(t *testing.T) {
	f := ibsimtest.NewFake(t, nodes...)
	t.Setenv("IBSIM_SOCKNAME", f.Socket)
	open(t, Config{})
	if f.Clients() != 1 {
		t.Errorf("%d clients, want 1", f.Clients())
	}
}

func TestOpenErrors(t *testing.T) {
	f := ibsimtest.NewFake(t, nodes...)
	served := open(t, Config{Socket: f.Socket, Node: "Hca2", Serve: true})
	long := string(make([]byte, 81))
	for _, tt := range []struct {
		name string
		cfg  Config
		want error
	}{
		{"no ibsim", Config{Socket: "ibsm-nobody-is-here"}, ErrNotRunning},
		{"unknown node", Config{Socket: f.Socket, Node: "Hca3"}, ErrNoNode},
		{"unknown node, to serve", Config{Socket: f.Socket, Node: "Hca3", Serve: true}, ErrNoNode},
		{"served node", Config{Socket: f.Socket, Node: "Hca2", Serve: true}, ErrServed},
		{"node of 32 bytes", Config{Socket: f.Socket, Node: long[:32]}, port.ErrInvalid},
		{"node with NUL", Config{Socket: f.Socket, Node: "Hca1\x00"}, port.ErrInvalid},
		{"socket of 81 bytes", Config{Socket: long}, port.ErrInvalid},
	} {
		_, err := Open(t.Context(), tt.cfg)
		var e *Error
		if !errors.Is(err, tt.want) || !errors.As(err, &e) || e.Op != "connect" || e.Socket != tt.cfg.Socket {
			t.Errorf("%s: error %v, want an *Error that is %v", tt.name, err, tt.want)
		}
		if f.Clients() != 1 {
			t.Fatalf("%s: %d clients, want 1", tt.name, f.Clients())
		}
	}
	open(t, Config{Socket: f.Socket, Node: "Hca2"}) // that does not serve
	for f.Clients() < 10 {
		open(t, Config{Socket: f.Socket, Node: "Hca1"})
	}
	for _, cfg := range []Config{{}, {Node: "Hca1"}, {Node: "Hca1", Serve: true}} {
		cfg.Socket = f.Socket
		if _, err := Open(t.Context(), cfg); !errors.Is(err, ErrNoSlot) {
			t.Errorf("eleventh client %+v: error %v, want ErrNoSlot", cfg, err)
		}
	}
	served.Close()
	open(t, Config{Socket: f.Socket, Node: "Hca2", Serve: true})
}

func TestNoReply(t *testing.T) {
	f := ibsimtest.NewFake(t, nodes...)
	d := open(t, Config{Socket: f.Socket, timeout: 20 * time.Millisecond})
	f.Mute.Store(true)
	var e *Error
	_, err := Open(t.Context(), Config{Socket: f.Socket, timeout: 20 * time.Millisecond})
	if !errors.Is(err, ErrNoReply) || !errors.As(err, &e) || !e.Timeout() {
		t.Errorf("open: error %v, want ErrNoReply", err)
	}
	if _, err := d.Info(); !errors.Is(err, ErrNoReply) {
		t.Errorf("info: error %v, want ErrNoReply", err)
	}
}

// A reply that comes too late is not taken for that to a later request.
func TestLateReply(t *testing.T) {
	const socket = "ibsm-late-reply"
	server, err := net.ListenUnixgram("unixgram", address(socket, "ctl"))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	conn, _, err := openControl(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := &channel{socket: socket, conn: conn, timeout: 20 * time.Millisecond}
	var requests [][controlSize]byte
	var from *net.UnixAddr
	take := func() {
		var b [controlSize]byte
		if _, from, err = server.ReadFromUnix(b[:]); err != nil {
			t.Error(err)
		}
		requests = append(requests, b)
	}
	for i := range 2 {
		data := [controlData]byte{byte(i)}
		if err := c.ask(opPortInfo, &data); !errors.Is(err, ErrNoReply) {
			t.Fatalf("error %v, want ErrNoReply", err)
		}
		take()
	}
	c.timeout = time.Minute
	go func() {
		take()
		from.Name += "\x00" // which package net takes for the end of the name
		for _, b := range requests {
			if _, err := server.WriteToUnix(b[:], from); err != nil {
				t.Error(err)
			}
		}
	}()
	data := [controlData]byte{3}
	if err := c.ask(opPortInfo, &data); err != nil || data[0] != 3 {
		t.Errorf("reply %d, %v; want 3", data[0], err)
	}
}

// Whatever way a client goes, its slot and IsSM go with it.
func TestSlotsAreGivenBack(t *testing.T) {
	f := ibsimtest.NewFake(t, nodes...)
	other := open(t, Config{Socket: f.Socket, Node: "Hca1"})
	for range 30 {
		d, err := Open(t.Context(), Config{Socket: f.Socket, Node: "Hca1", Serve: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.HoldIsSM(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if info, err := other.Info(); err != nil || info.CapMask&mad.CapIsSM != 0 {
			t.Fatalf("after Close IsSM is set, or %v", err)
		}
	}
	if f.Clients() != 1 {
		t.Errorf("%d clients are left, want 1", f.Clients())
	}
}

// afterwards is a context that ends after it was asked n times.
type afterwards struct {
	context.Context
	n atomic.Int32
}

func (c *afterwards) Err() error {
	if c.n.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func TestContextEnds(t *testing.T) {
	f := ibsimtest.NewFake(t, nodes...)
	for n := range int32(2) { // before the exchange, and during it
		ctx := &afterwards{Context: t.Context()}
		ctx.n.Store(n)
		if _, err := Open(ctx, Config{Socket: f.Socket}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
		if f.Clients() != 0 {
			t.Errorf("%d clients are left", f.Clients())
		}
	}
}

// What is under way ends when ibsim does, with an error that says why.
func TestServerEnds(t *testing.T) {
	f := ibsimtest.NewFake(t, nodes...)
	f.PlaySM(func(*[mad.Size]byte) int { return 0 }) // takes requests, and does not answer
	d := open(t, Config{Socket: f.Socket, Node: "Hca2"})
	c, err := sa.NewClient(d, sa.Config{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended := make(chan error)
	for range 2 {
		go func() {
			_, err := sa.Get(t.Context(), c, sa.Query[mad.ClassPortInfo]{})
			ended <- err
		}()
	}
	for c.Stats().Sent < 2 {
		if t.Context().Err() != nil {
			t.Fatal("the requests were not sent")
		}
	}
	f.Stop()
	for range 2 {
		var e *agents.Error
		if err := <-ended; !errors.Is(err, port.ErrGone) || !errors.As(err, &e) {
			t.Errorf("request: error %v, want port.ErrGone", err)
		}
	}
	if _, err := d.Info(); !errors.Is(err, port.ErrGone) {
		t.Errorf("info: error %v, want port.ErrGone", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// newTestLink attaches without a device, so that nobody receives.
func newTestLink(t *testing.T, cfg Config) *link {
	t.Helper()
	l, err := attach(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func request(class mad.Class, lid mad.LID, attr mad.AttributeID, tid uint64) *softmad.Wire {
	w := &softmad.Wire{Addr: mad.AddressVector{LID: lid, QPN: mad.QPGSI}, MAD: newMAD(class, mad.MethodGet, tid)}
	if isSMP(&w.MAD) {
		w.Addr.QPN = mad.QPSMI
	}
	binary.BigEndian.PutUint16(w.MAD[mad.OffAttribute:], uint16(attr))
	return w
}

// The link reads though its user does not: other clients are answered, and
// nothing has been lost when the user begins.
func TestReadsAlways(t *testing.T) {
	const n = 3000
	f := ibsimtest.NewFake(t, nodes...)
	l := newTestLink(t, Config{Socket: f.Socket})
	for i := range n {
		if err := l.Send(request(mad.ClassSubnLIDRouted, 9, mad.AttrNodeInfo, uint64(i))); err != nil {
			t.Fatal(err)
		}
	}
	other, err := smp.NewClient(open(t, Config{Socket: f.Socket}), smp.Config{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := smp.Get[mad.NodeInfo](t.Context(), other, mad.MustParseAddr("9"), 0); err != nil {
		t.Error(err)
	}
	for i := range n {
		var w softmad.Wire
		if err := l.Recv(&w); err != nil {
			t.Fatal(err)
		}
		if w.Undelivered || lowTID(&w.MAD) != uint64(i) {
			t.Fatalf("answer %d: transaction id %#x, undelivered %v", i, tid(&w), w.Undelivered)
		}
	}
}

// windowPair is a client that has sent so many requests to another that does not
// answer.
func windowPair(t *testing.T, lost time.Duration, n int) (a, b *link) {
	f := ibsimtest.NewFake(t, nodes...)
	a = newTestLink(t, Config{Socket: f.Socket, Node: "Hca1"})
	b = newTestLink(t, Config{Socket: f.Socket, Node: "Hca2", Serve: true})
	a.mu.Lock()
	a.lost = lost
	a.mu.Unlock()
	for i := range n {
		if err := a.Send(request(mad.ClassSubnAdm, 4, mad.AttrClassPortInfo, uint64(i))); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

// take receives the request that was sent as the nth.
func (l *link) take(t *testing.T, n int) *softmad.Wire {
	t.Helper()
	w := new(softmad.Wire)
	if err := l.Recv(w); err != nil {
		t.Fatal(err)
	}
	if got := lowTID(&w.MAD); got != uint64(n) {
		t.Fatalf("request %d came, want %d", got, n)
	}
	return w
}

// At most a window of requests is with a client that does not answer; the rest
// follows as answers come.
func TestWindow(t *testing.T) {
	a, b := windowPair(t, time.Hour, window+30)
	var requests []*softmad.Wire
	for i := range window {
		requests = append(requests, b.take(t, i))
	}
	for sent := window; sent < window+30; sent += 10 {
		if left, waiting := a.waiting(), b.received(); left != window+30-sent || waiting != 0 {
			t.Fatalf("%d wait to be sent and %d came, want %d and 0", left, waiting, window+30-sent)
		}
		for i := range 10 {
			w := requests[sent-window+i]
			w.MAD[mad.OffMethod] |= mad.ResponseBit
			if err := b.Send(w); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 10 {
			b.take(t, sent+i)
		}
	}
}

// Requests that stay without an answer for long are taken for lost, and others
// sent.
func TestLostWindow(t *testing.T) {
	const lost = 100 * time.Millisecond
	begin := time.Now()
	_, b := windowPair(t, lost, 3*window)
	for i := range 3 * window {
		b.take(t, i)
	}
	if took := time.Since(begin); took < 2*lost {
		t.Errorf("3 windows without an answer came within %v, want at least %v", took, 2*lost)
	}
}

func (l *link) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.len()
}

func (l *link) received() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.in.len()
}

// What cannot be delivered comes back, marked, and does not fill the window.
func TestUndelivered(t *testing.T) {
	f := ibsimtest.NewFake(t, nodes...)
	l := newTestLink(t, Config{Socket: f.Socket})
	l.lost = time.Hour
	for i := range 2*window + 1 {
		if err := l.Send(request(mad.ClassSubnAdm, 77, mad.AttrClassPortInfo, uint64(i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2*window + 1 {
		var w softmad.Wire
		if err := l.Recv(&w); err != nil {
			t.Fatal(err)
		}
		if !w.Undelivered || w.Addr.LID != 77 || lowTID(&w.MAD) != uint64(i) {
			t.Fatalf("wire %d: %+v", i, w)
		}
	}
}

// Traps are not answered, and so take no place in the window.
func TestTrapsTakeNoWindow(t *testing.T) {
	f := ibsimtest.NewFake(t, nodes...)
	a := newTestLink(t, Config{Socket: f.Socket, Node: "Hca1"})
	b := newTestLink(t, Config{Socket: f.Socket, Node: "Hca2", Serve: true})
	a.lost = time.Hour
	for i := range 2*window + 1 {
		w := request(mad.ClassSubnAdm, 4, mad.AttrClassPortInfo, uint64(i))
		w.MAD[mad.OffMethod] = uint8(mad.MethodTrap)
		if err := a.Send(w); err != nil {
			t.Fatal(err)
		}
	}
	for range 2*window + 1 {
		if err := b.Recv(new(softmad.Wire)); err != nil {
			t.Fatal(err)
		}
	}
}

// An idle link looks for ibsim by packets without bytes.
func TestProbe(t *testing.T) {
	f := ibsimtest.NewFake(t, nodes...)
	l := newTestLink(t, Config{Socket: f.Socket})
	for f.Empty() < 2 {
		if t.Context().Err() != nil {
			t.Fatal("no probe came")
		}
	}
	f.Stop()
	if err := l.Recv(new(softmad.Wire)); err != io.EOF {
		t.Errorf("Recv: %v, want io.EOF", err)
	}
	if err := l.Send(request(mad.ClassSubnAdm, 1, mad.AttrClassPortInfo, 1)); !errors.Is(err, port.ErrGone) {
		t.Errorf("Send: %v, want port.ErrGone", err)
	}
}

func TestClosedLink(t *testing.T) {
	f := ibsimtest.NewFake(t, nodes...)
	l := newTestLink(t, Config{Socket: f.Socket})
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := l.Recv(new(softmad.Wire)); !errors.Is(err, port.ErrClosed) {
		t.Errorf("Recv: %v, want port.ErrClosed", err)
	}
	if err := l.Send(request(mad.ClassSubnAdm, 1, mad.AttrClassPortInfo, 1)); !errors.Is(err, port.ErrClosed) {
		t.Errorf("Send: %v, want port.ErrClosed", err)
	}
	if _, err := l.Info(); !errors.Is(err, port.ErrClosed) {
		t.Errorf("Info: %v, want port.ErrClosed", err)
	}
}

// Answers to a request from another of the port's LIDs come to that one.
func TestPathBits(t *testing.T) {
	f := ibsimtest.NewFake(t, nodes...)
	d := open(t, Config{Socket: f.Socket, Node: "Hca2"})
	p, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	id, err := p.Register(port.Registration{QPN: mad.QPSMI, Class: mad.ClassSubnLIDRouted, Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	w := request(mad.ClassSubnLIDRouted, 9, mad.AttrNodeInfo, 1)
	m := port.Message{Agent: id, Timeout: time.Minute, Addr: mad.AddressVector{LID: 9, PathBits: 3}, Data: w.MAD[:]}
	if err := p.Send(&m); err != nil {
		t.Fatal(err)
	}
	if err := p.Recv(&m); err != nil || m.TimedOut || m.Addr != (mad.AddressVector{LID: 9, PathBits: 3}) {
		t.Errorf("%+v, %v; want the answer from LID 9 to path bits 3", m, err)
	}
}

// A table that is cut is reported as that, once, and never acknowledged: OpenSM
// takes an ACK for another request.
func TestCutTable(t *testing.T) {
	for _, mode := range []port.RMPPMode{port.RMPPKernel, port.RMPPUser} {
		for _, tt := range []struct {
			records int // 64 bytes each
			want    int
			err     error
		}{{0, 0, nil}, {1, 1, nil}, {3, 3, nil}, {4, 3, sa.ErrIncomplete}, {1000, 3, sa.ErrIncomplete}} {
			f := ibsimtest.NewFake(t, nodes...)
			var asked atomic.Int32
			f.PlaySM(func(m *[mad.Size]byte) int {
				asked.Add(1)
				m[mad.OffMethod] |= mad.ResponseBit
				m[mad.OffRMPP+2] = 1                                    // Active
				binary.BigEndian.PutUint16(m[mad.OffRMPPData+8:], 64/8) // AttributeOffset
				clear(m[mad.OffSAData:])                                // with OpenSM's ServiceID 0 in front
				for i := mad.OffSAData + 42; i < mad.Size; i += 64 {    // SLID
					m[i] = 7
				}
				return mad.OffSAData + 64*tt.records
			})
			c, err := sa.NewClient(open(t, Config{Socket: f.Socket, Node: "Hca2"}), sa.Config{RMPP: mode, Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for rec, tableErr := range sa.Table(t.Context(), c, sa.Query[mad.PathRecord]{}) {
				if err = tableErr; err == nil {
					got++
					if rec.SLID>>8 != 7 {
						t.Errorf("SLID %v", rec.SLID)
					}
				}
			}
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("mode %v, %d records: got %d and %v, want %d and %v", mode, tt.records, got, err, tt.want, tt.err)
			}
			if _, err := sa.Get(t.Context(), c, sa.Query[mad.PathRecord]{}); tt.records > 0 && err != nil {
				t.Error(err) // and by now an ACK would have come
			}
			if asked.Load() != 2 {
				t.Errorf("mode %v, %d records: the SM got %d MADs, want the 2 requests", mode, tt.records, asked.Load())
			}
			c.Close()
		}
	}
}

func TestIsGone(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ECONNREFUSED: true, syscall.ECONNRESET: true, syscall.ENOTCONN: true, syscall.EPERM: true,
		syscall.EAGAIN: false, syscall.ENOBUFS: false, nil: false,
	} {
		if isGone(err) != want {
			t.Errorf("%v: %v, want %v", err, !want, want)
		}
	}
}
