package sim

import (
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/topo"
)

// rig is a fabric in a synctest bubble with a reader at each port that is used.
type rig struct {
	t     *testing.T
	fab   *Fabric
	sub   *topo.Subnet
	ports map[string]*reader

	mu  sync.Mutex
	log []Event
}

// events gives what happened since the last send.
func (r *rig) events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

func (r *rig) note(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, e)
}

func (r *rig) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = nil
}

type reader struct {
	softmad.Link
	mu    sync.Mutex
	wires []wire
	err   error
}

// got gives what was received since the last reset.
func (l *reader) got() []wire {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.wires)
}

func (l *reader) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wires = nil
}

func (l *reader) recvErr() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *reader) read() {
	for {
		var w wire
		err := l.Recv(&w)
		l.mu.Lock()
		if err != nil {
			l.err = err
			l.mu.Unlock()
			return
		}
		l.wires = append(l.wires, w)
		l.mu.Unlock()
	}
}

// inBubble runs a test on the demo fabric.
func inBubble(t *testing.T, cfg Config, test func(r *rig)) {
	sub, err := topo.Generate("demo")
	if err != nil {
		t.Fatal(err)
	}
	inBubbleOf(t, sub, cfg, test)
}

func inBubbleOf(t *testing.T, sub *topo.Subnet, cfg Config, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, sub: sub, ports: map[string]*reader{}}
		cfg.Trace = r.note
		var err error
		if r.fab, err = New(sub, cfg); err != nil {
			t.Fatal(err)
		}
		defer r.fab.Close()
		test(r)
	})
}

func (r *rig) port(name string) *topo.Port {
	r.t.Helper()
	p, ok := r.sub.PortByName(name)
	if !ok {
		r.t.Fatalf("no port %s", name)
	}
	return p
}

func (r *rig) open(name string) *reader {
	r.t.Helper()
	if l := r.ports[name]; l != nil {
		return l
	}
	p := r.port(name)
	link, err := r.fab.Link(p.Node, p.Num)
	if err != nil {
		r.t.Fatal(err)
	}
	l := &reader{Link: link}
	r.ports[name] = l
	go l.read()
	return l
}

// send sends from a port and waits until the fabric is quiet, without letting
// time pass. It gives what happened.
func (r *rig) send(from string, w wire) []Event {
	r.t.Helper()
	r.forget()
	if err := r.open(from).Send(&w); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
	return r.events()
}

// ask sends a request and gives the answer; nil if there is none.
func (r *rig) ask(from string, w wire) *wire {
	r.t.Helper()
	l := r.open(from)
	l.reset()
	r.send(from, w)
	got := l.got()
	switch len(got) {
	case 0:
		return nil
	case 1:
		return &got[0]
	}
	r.t.Fatalf("%d answers", len(got))
	return nil
}

// must is ask for requests that are answered.
func (r *rig) must(from string, w wire) *wire {
	r.t.Helper()
	got := r.ask(from, w)
	if got == nil {
		r.t.Fatalf("no answer:\n%v", r.events())
	}
	return got
}

// dropped gives the reason of the only drop in a log.
func (r *rig) dropped(log []Event) Reason {
	r.t.Helper()
	for _, e := range log {
		if e.Kind == Drop {
			return e.Reason
		}
	}
	r.t.Fatalf("nothing dropped:\n%v", log)
	return 0
}

// hops gives the links that were crossed.
func hops(log []Event) (crossed []topo.Hop) {
	for _, e := range log {
		if e.Kind == Cross {
			crossed = append(crossed, e.Hop)
		}
	}
	return crossed
}

// way writes the links that were crossed by their ports.
func way(log []Event) (s string) {
	for i, h := range hops(log) {
		if i > 0 {
			s += " "
		}
		s += h.From.String() + "-" + h.To.String()
	}
	return s
}

type wire = softmad.Wire

const testTID = 0x1122334455667788

func request(class mad.Class, method mad.Method, attribute mad.AttributeID, modifier uint32) (b [mad.Size]byte) {
	h := mad.Header{BaseVersion: 1, MgmtClass: class, ClassVersion: 1, Method: method,
		TransactionID: testTID, AttributeID: attribute, AttributeModifier: modifier}
	h.EncodeTo((*[mad.HeaderSize]byte)(b[:]))
	return b
}

// byLID is a Get of an SM attribute to a LID.
func byLID(lid mad.LID, attribute mad.AttributeID, modifier uint32) wire {
	return wire{Addr: mad.AddressVector{LID: lid, QPN: mad.QPSMI}, PKey: mad.DefaultPKey,
		MAD: request(mad.ClassSubnLIDRouted, mad.MethodGet, attribute, modifier)}
}

// byRoute is a Get of an SM attribute by a directed route.
func byRoute(route mad.Route, attribute mad.AttributeID, modifier uint32) wire {
	return combined(mad.PermissiveLID, mad.PermissiveLID, mad.PermissiveLID, route, attribute, modifier)
}

// combined is a Get that goes to the LID to, then by a directed route, then to
// drDLID; each may be permissive for no such part.
func combined(to, drSLID, drDLID mad.LID, route mad.Route, attribute mad.AttributeID, modifier uint32) wire {
	w := wire{Addr: mad.AddressVector{LID: to, QPN: mad.QPSMI}, PKey: mad.DefaultPKey,
		MAD: request(mad.ClassSubnDirected, mad.MethodGet, attribute, modifier)}
	w.MAD[offHopCount] = uint8(route.Hops())
	binary.BigEndian.PutUint16(w.MAD[offDrSLID:], uint16(drSLID))
	binary.BigEndian.PutUint16(w.MAD[offDrDLID:], uint16(drDLID))
	copy(w.MAD[offInitialPath:], route)
	return w
}

// gmp is a performance management request, which nobody answers here.
func gmp(to mad.LID, key mad.PKey) wire {
	return wire{Addr: mad.AddressVector{LID: to, QPN: mad.QPGSI}, PKey: key,
		MAD: request(mad.ClassPerf, mad.MethodGet, 0x0012, 0)}
}

func status(w *wire) mad.Status {
	return mad.Status(binary.BigEndian.Uint16(w.MAD[mad.OffStatus:]) & 0x7fff)
}

func nodeInfoOf(t *testing.T, w *wire) (info mad.NodeInfo) {
	t.Helper()
	if s := status(w); s != 0 {
		t.Fatalf("status %v", s)
	}
	info.DecodeFrom((*[mad.NodeInfoSize]byte)(w.MAD[mad.OffSMPData:]))
	return info
}
