// Package porttest is the one test suite of everything that implements
// port.Device: [RunContract] says what every back end does, [RunTiming] when.
// The expected values are those of the Linux kernel's user_mad and ib_mad.
package porttest

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// Bench is a back end to test.
type Bench struct {
	// Open gives two ports that reach each other. It is called for each test, in
	// its bubble if Virtual; the suite closes the devices.
	Open func(t testing.TB) Pair

	KernelRMPP bool // port.RMPPKernel works
	UserRMPP   bool // port.RMPPUser works
	Silence    bool // a request that nobody takes gets no answer
	Serves     bool // agents can own methods
	QP0        bool // the port has QP0, so that agents of class 0x01 can be made
	IsSM       bool // HoldIsSM works, and Info shows it

	// Virtual runs each test in a testing/synctest bubble, with exact instants.
	// Without it times are only bounded from below.
	Virtual bool
	// Tick is the step of the clock by which the carrier's time-outs run, if that is
	// coarse: a step that has begun counts, so each wait may end that much early.
	Tick time.Duration

	// Except says of tests, by name, why this back end does otherwise. They are
	// skipped.
	Except map[string]string
}

// Pair is two ports that reach each other.
type Pair struct {
	A, B   port.Device
	ToA    mad.AddressVector // how B addresses QP1 of A
	ToB    mad.AddressVector // how A addresses QP1 of B
	Remove func()            // takes A's device away, as a hot-unplug does; may be nil
}

// patience is how long a test waits for what must come.
const patience = time.Minute

// The suite speaks a vendor class, of which no kernel and no simulator owns a
// method.
const (
	testClass   = mad.Class(0x32)
	testVersion = 1
	testOUI     = 0x00c0de
	saVersion   = 2

	methodUnanswered = mad.Method(0x55) // owned by nobody; not Get or Set, so never answered
)

// env is one test.
type env struct {
	*testing.T
	bench *Bench
	Pair
}

// test is one entry of a part.
type test struct {
	name  string
	needs func(*Bench) bool // nil: every back end
	run   func(*env)
}

func run(t *testing.T, b *Bench, tests []test) {
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			if why, ok := b.Except[c.name]; ok {
				t.Skip(why)
			}
			if c.needs != nil && !c.needs(b) {
				t.Skip("the back end cannot do this")
			}
			if b.Virtual {
				synctest.Test(t, func(t *testing.T) { b.runOne(t, c.run) })
			} else {
				b.runOne(t, c.run)
			}
		})
	}
}

func (b *Bench) runOne(t *testing.T, run func(*env)) {
	pair := b.Open(t)
	t.Cleanup(func() {
		pair.A.Close()
		pair.B.Close()
	})
	run(&env{t, b, pair})
}

// station is an open port with a reader.
type station struct {
	env  *env
	port port.Port
	to   mad.AddressVector // the other end
	msgs chan port.Message
	err  error // what Recv ended with; valid when msgs is closed
}

func (e *env) openA() *station { return e.open(e.A, e.ToB) }
func (e *env) openB() *station { return e.open(e.B, e.ToA) }

func (e *env) open(dev port.Device, to mad.AddressVector) *station {
	e.Helper()
	p, err := dev.Open()
	if err != nil {
		e.Fatal(err)
	}
	s := &station{env: e, port: p, to: to, msgs: make(chan port.Message, 1024)}
	e.Cleanup(func() { p.Close() })
	go func() {
		defer close(s.msgs)
		for {
			var m port.Message
			if s.err = p.Recv(&m); s.err != nil {
				return
			}
			select {
			case s.msgs <- m:
			case <-e.Context().Done():
				return
			}
		}
	}()
	return s
}

// next waits for a message.
func (s *station) next() port.Message {
	s.env.Helper()
	ctx, cancel := context.WithTimeout(s.env.Context(), patience)
	defer cancel()
	select {
	case m, ok := <-s.msgs:
		if !ok {
			s.env.Fatalf("Recv ended with %v, want a message", s.err)
		}
		return m
	case <-ctx.Done():
		s.env.Fatalf("no message within %v", patience)
	}
	panic("unreachable")
}

// end waits for the end of Recv and gives its error.
func (s *station) end() error {
	s.env.Helper()
	ctx, cancel := context.WithTimeout(s.env.Context(), patience)
	defer cancel()
	for {
		select {
		case _, ok := <-s.msgs:
			if !ok {
				return s.err
			}
		case <-ctx.Done():
			s.env.Fatalf("Recv did not end within %v", patience)
		}
	}
}

// quiet fails if anything but its own marker arrives within d: a request that
// nobody answers and whose time-out message must be the next thing to come.
func (s *station) quiet(d time.Duration) {
	s.env.Helper()
	const markerTID = 0x0badcafe
	id := s.register(port.Registration{QPN: mad.QPGSI})
	s.send(port.Message{Agent: id, Timeout: d, Addr: s.to, Data: newMAD(testClass, methodUnanswered, markerTID)})
	if m := s.next(); !m.TimedOut || tidOf(m) != markerTID {
		s.env.Errorf("unexpected message: %s", describe(m))
	}
	if err := s.port.Unregister(id); err != nil {
		s.env.Error(err)
	}
}

func (s *station) register(r port.Registration) port.AgentID {
	s.env.Helper()
	id, err := s.port.Register(r)
	if err != nil {
		s.env.Fatal(err)
	}
	return id
}

// client makes an agent of the test class that owns nothing.
func (s *station) client() port.AgentID {
	s.env.Helper()
	return s.register(port.Registration{QPN: mad.QPGSI, Class: testClass, Version: testVersion, OUI: testOUI})
}

// server makes an agent of the test class that owns methods.
func (s *station) server(methods ...mad.Method) port.AgentID {
	s.env.Helper()
	return s.register(serverOf(methods...))
}

func serverOf(methods ...mad.Method) port.Registration {
	return port.Registration{
		QPN: mad.QPGSI, Class: testClass, Version: testVersion, OUI: testOUI,
		Methods: port.Methods(methods...),
	}
}

func (s *station) send(m port.Message) {
	s.env.Helper()
	if err := s.port.Send(&m); err != nil {
		s.env.Fatal(err)
	}
}

// ask sends a request of the test class.
func (s *station) ask(id port.AgentID, method mad.Method, tid uint32, timeout time.Duration) {
	s.env.Helper()
	s.send(port.Message{Agent: id, Timeout: timeout, Addr: s.to, Data: newMAD(testClass, method, tid)})
}

// answer sends the response to a request.
func (s *station) answer(m port.Message) {
	s.env.Helper()
	s.send(response(m))
}

func response(m port.Message) port.Message {
	data := append([]byte(nil), m.Data...)
	data[mad.OffMethod] |= mad.ResponseBit
	return port.Message{Agent: m.Agent, Addr: m.Addr, Data: data}
}

// newMAD makes a single MAD with a body that depends on the transaction id.
func newMAD(class mad.Class, method mad.Method, tid uint32) []byte {
	b := make([]byte, mad.Size)
	b[0], b[mad.OffClass], b[mad.OffMethod] = mad.BaseVersion, uint8(class), uint8(method)
	b[mad.OffClassVersion] = testVersion
	if class == mad.ClassSubnAdm {
		b[mad.OffClassVersion] = saVersion
	}
	binary.BigEndian.PutUint64(b[mad.OffTID:], 0xdeadbeef<<32|uint64(tid))
	fill(b[mad.ClassHeaderLen(class):], tid)
	if class == testClass {
		binary.BigEndian.PutUint32(b[36:], testOUI)
	}
	return b
}

// fill writes bytes that tell a wrong place or order.
func fill(b []byte, seed uint32) {
	x := seed*2654435761 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
}

// tidOf is the lower half of a message's transaction id, which is its sender's.
func tidOf(m port.Message) uint32 { return binary.BigEndian.Uint32(m.Data[mad.OffTID+4:]) }

// hiTID is the upper half, which is the carrier's.
func hiTID(m port.Message) uint32 { return binary.BigEndian.Uint32(m.Data[mad.OffTID:]) }

func describe(m port.Message) string {
	what := "received"
	if m.TimedOut {
		what = "timed out"
	}
	return fmt.Sprintf("%s for agent %d: %x", what, m.Agent, m.Data[:min(len(m.Data), 64)])
}
