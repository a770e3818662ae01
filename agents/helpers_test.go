package agents_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/softmad/softmadtest"
)

// newMAD makes a message: headers of its class, then data.
func newMAD(class mad.Class, method mad.Method, attr mad.AttributeID, data []byte) []byte {
	b := make([]byte, mad.ClassHeaderLen(class), mad.ClassHeaderLen(class)+len(data))
	b[0] = mad.BaseVersion
	b[mad.OffClass] = byte(class)
	b[mad.OffClassVersion] = 2
	b[mad.OffMethod] = byte(method)
	binary.BigEndian.PutUint16(b[mad.OffAttribute:], uint16(attr))
	return append(b, data...)
}

// respond makes the response to a request with other data.
func respond(request, data []byte) []byte {
	class := mad.Class(request[mad.OffClass])
	b := append([]byte(nil), request[:mad.ClassHeaderLen(class)]...)
	clear(b[mad.OffRMPP:min(len(b), mad.OffRMPPData)])
	b[mad.OffMethod] |= mad.ResponseBit
	return append(b, data...)
}

// sized asks the server of serveSized for n bytes of data.
func sized(n int) []byte {
	b := newMAD(mad.ClassSubnAdm, mad.MethodGetTable, mad.AttrNodeRecord, nil)
	binary.BigEndian.PutUint32(b[mad.OffModifier:], uint32(n))
	return b
}

// pattern gives n bytes in which each 4 tell where they are.
func pattern(n int) []byte {
	b := make([]byte, (n+3)&^3)
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], uint32(i)^0x5a000000)
	}
	return b[:n]
}

// serveSized answers with as much data as the attribute modifier says, always
// by RMPP, as an SA answers GetTable.
func serveSized(t *testing.T) func(*agents.Incoming) {
	return func(in *agents.Incoming) {
		r := respond(in.Data, pattern(int(binary.BigEndian.Uint32(in.Data[mad.OffModifier:]))))
		r[mad.OffRMPP+2] = 1 // Active
		if err := in.Reply(r); err != nil && in.Context().Err() == nil {
			t.Errorf("reply: %v", err)
		}
	}
}

// saClient and saServer are registrations of the SA class.
func saClient(mode port.RMPPMode) agents.Registration {
	return agents.Registration{Registration: port.Registration{
		QPN: mad.QPGSI, Class: mad.ClassSubnAdm, Version: 2, RMPP: mode,
	}}
}

func saServer(mode port.RMPPMode, serve func(*agents.Incoming)) agents.Registration {
	r := saClient(mode)
	r.Methods = port.Methods(mad.MethodGet, mad.MethodSet, mad.MethodGetTable, mad.MethodGetMulti)
	r.Serve = serve
	return r
}

// bench is a client and a server on two softmad devices with a wire between.
type bench struct {
	client, server         *agents.Conn
	clientDev, serverDev   *softmad.Device
	clientLink, serverLink *softmadtest.Link
}

// serverAddr is where the server's agents are.
var serverAddr = mad.AddressVector{LID: 2, QPN: mad.QPGSI}

func newBench(t testing.TB, cfg agents.Config, hook softmadtest.Hook) *bench {
	b := new(bench)
	b.clientLink, b.serverLink = softmadtest.NewPair(hook)
	open := func(link *softmadtest.Link) (*softmad.Device, *agents.Conn) {
		dev, err := softmad.NewDevice(link, softmad.Config{})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := agents.Open(dev, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return dev, conn
	}
	b.clientDev, b.client = open(b.clientLink)
	b.serverDev, b.server = open(b.serverLink)
	return b
}

// close ends everything; a synctest bubble must be empty at its end.
func (b *bench) close() {
	b.client.Close()
	b.server.Close()
	b.clientDev.Close()
	b.serverDev.Close()
}

func register(t testing.TB, c *agents.Conn, r agents.Registration) *agents.Agent {
	t.Helper()
	a, err := c.Register(r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// lossy loses 10 % of the wires and repeats 10 %, each copy delayed by 1 to 3 ms
// so that they overtake one another.
func lossy(seed uint64) softmadtest.Hook {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0))
	return func(*softmadtest.Link, *softmad.Wire) []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		delay := func() time.Duration { return time.Millisecond + time.Duration(rng.IntN(2_000_000)) }
		switch rng.IntN(10) {
		case 0:
			return nil
		case 1:
			return []time.Duration{delay(), delay()}
		}
		return []time.Duration{delay()}
	}
}

// fakePort is a Device with one Port whose other side is the test.
type fakePort struct {
	port.Device // nil: what is not overridden is not used
	onSend      func(port.Message) error
	in          chan port.Message // what Recv gives
	gone        chan struct{}
	closed      chan struct{}

	mu   sync.Mutex
	sent []port.Message
	regs []port.Registration
}

func newFakePort() *fakePort {
	return &fakePort{in: make(chan port.Message, 1000), gone: make(chan struct{}), closed: make(chan struct{})}
}

func (p *fakePort) Open() (port.Port, error) { return fakeOpen{p}, nil }

// fakeOpen is the Port of a fakePort.
type fakeOpen struct{ *fakePort }

func (p fakeOpen) Register(r port.Registration) (port.AgentID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.regs = append(p.regs, r)
	return port.AgentID(len(p.regs) - 1), nil
}

func (p fakeOpen) Unregister(port.AgentID) error { return nil }

func (p fakeOpen) Send(m *port.Message) error {
	c := *m
	c.Data = append([]byte(nil), m.Data...)
	if p.onSend != nil {
		if err := p.onSend(c); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, c)
	return nil
}

func (p fakeOpen) Recv(m *port.Message) error {
	select {
	case <-p.closed:
		return port.ErrClosed
	case <-p.gone:
		return port.ErrGone
	case got := <-p.in:
		data := append(m.Data[:0], got.Data...)
		*m = got
		m.Data = data
		return nil
	}
}

func (p fakeOpen) Close() error {
	close(p.closed)
	return nil
}

// sends gives what was sent so far.
func (p *fakePort) sends() []port.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]port.Message(nil), p.sent...)
}

// answerTo makes the answer to a sent message.
func answerTo(m port.Message, data []byte) port.Message {
	return port.Message{Agent: m.Agent, Addr: m.Addr, Data: append(respond(m.Data, data), make([]byte, mad.Size)...)[:mad.Size]}
}

// timeOutOf makes the carrier's report that a sent message got no response.
func timeOutOf(m port.Message) port.Message {
	m.TimedOut = true
	m.Data = m.Data[:mad.HeaderSize]
	return m
}

func openFake(t testing.TB, p *fakePort) *agents.Conn {
	c, err := agents.Open(p, agents.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// outcome is how a request in the background ended.
type outcome struct {
	response *agents.Response
	err      error
	took     time.Duration
}

func doLater(ctx context.Context, a *agents.Agent, req agents.Request) <-chan outcome {
	ch := make(chan outcome, 1)
	start := time.Now()
	go func() {
		r, err := a.Do(ctx, &req)
		ch <- outcome{r, err, time.Since(start)}
	}()
	return ch
}

// wantError checks that err is an *agents.Error that wraps what is wanted.
func wantError(t *testing.T, err, want error) {
	t.Helper()
	var e *agents.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v (%T), want an *agents.Error", err, err)
	}
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want it to wrap %v", err, want)
	}
}
