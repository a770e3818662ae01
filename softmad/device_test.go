package softmad_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/softmad/softmadtest"
)

var errBroken = errors.New("broken link")

// mute is a link that cannot describe its port.
type mute struct{ softmad.Link }

func (mute) Info() (port.Info, error) { return port.Info{}, errBroken }

func TestNewDeviceNeedsInfo(t *testing.T) {
	if _, err := softmad.NewDevice(mute{}, softmad.Config{}); !errors.Is(err, errBroken) {
		t.Errorf("error %v, want that of the link", err)
	}
}

func openPort(t *testing.T, d port.Device) port.Port {
	t.Helper()
	p, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func register(t *testing.T, p port.Port, r port.Registration) port.AgentID {
	t.Helper()
	id, err := p.Register(r)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func registration(mode port.RMPPMode, methods ...mad.Method) port.Registration {
	return port.Registration{
		QPN: mad.QPGSI, Class: mad.ClassSubnAdm, Version: 2, Methods: port.Methods(methods...), RMPP: mode,
	}
}

func request(method mad.Method, tid uint32) []byte {
	b := make([]byte, mad.Size)
	b[0], b[mad.OffClass], b[mad.OffClassVersion], b[mad.OffMethod] = 1, uint8(mad.ClassSubnAdm), 2, uint8(method)
	binary.BigEndian.PutUint32(b[mad.OffTID+4:], tid)
	return b
}

func tidOf(m *port.Message) uint32 { return binary.BigEndian.Uint32(m.Data[mad.OffTID+4:]) }

// failingLink is one that takes no wires.
type failingLink struct {
	softmad.Link
	mu    sync.Mutex
	tries int
}

func (l *failingLink) Send(*softmad.Wire) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries++
	return errBroken
}

// What the link does not take is as lost on the way, and counted.
func TestSendErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		la, lb := softmadtest.NewPair(nil)
		link := &failingLink{Link: la}
		d := newDevice(t, link)
		p := openPort(t, d)
		id := register(t, p, registration(port.RMPPNone))
		m := port.Message{Agent: id, Timeout: time.Second, Retries: 1, Addr: lb.Addr(), Data: request(mad.MethodGet, 1)}
		if err := p.Send(&m); err != nil {
			t.Error(err)
		}
		if err := p.Recv(&m); err != nil || !m.TimedOut {
			t.Errorf("message %+v, error %v, want a time-out", m, err)
		}
		if s := d.Stats(); s.SendErrors != 2 || s.Sent != 2 || s.Retransmitted != 1 || link.tries != 2 {
			t.Errorf("stats %+v after %d tries, want 2 sent, 2 errors, 1 retransmitted", s, link.tries)
		}
	})
}

// plainLink is a link without SetIsSM.
type plainLink struct{ softmad.Link }

func TestHoldIsSM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		la, lb := softmadtest.NewPair(nil)
		if _, err := newDevice(t, plainLink{la}).HoldIsSM(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("link without SetIsSM: error %v, want ErrUnsupported", err)
		}

		d := newDevice(t, lb)
		expired, cancel := context.WithCancel(t.Context())
		cancel()
		hold, err := d.HoldIsSM(expired) // free, so there is nothing to wait for
		if err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err = d.HoldIsSM(soon)
		if !errors.Is(err, port.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("waiting for 1 s: error %v after %v, want ErrBusy and DeadlineExceeded", err, time.Since(start))
		}
		gone := make(chan error)
		go func() {
			_, err := d.HoldIsSM(t.Context())
			gone <- err
		}()
		synctest.Wait()
		lb.Remove()
		if err := <-gone; !errors.Is(err, port.ErrGone) {
			t.Errorf("device removed while waiting: error %v, want ErrGone", err)
		}
		for range 2 {
			if err := hold.Close(); err != nil {
				t.Errorf("release after the device is gone: %v", err)
			}
		}
		if _, err := d.HoldIsSM(t.Context()); !errors.Is(err, port.ErrGone) {
			t.Errorf("after removal: error %v, want ErrGone", err)
		}
	})
}

// The tables of the port are read again when an index or a P_Key is unknown, and
// now and then.
func TestPortInfoIsRefreshed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		la, lb := softmadtest.NewPair(nil)
		pa, pb := openPort(t, newDevice(t, la)), openPort(t, newDevice(t, lb))
		id := register(t, pa, registration(port.RMPPNone))
		register(t, pb, registration(port.RMPPNone, mad.MethodReport))
		m := port.Message{Agent: id, Addr: lb.Addr(), Data: request(mad.MethodReport, 1)}
		m.Addr.PKeyIndex = 2
		if err := pa.Send(&m); !errors.Is(err, port.ErrInvalid) {
			t.Errorf("P_Key index 2: error %v, want ErrInvalid", err)
		}
		add := func(info *port.Info) { info.PKeys = []mad.PKey{0xffff, 0x8001, 0x8055} }
		la.Change(add)
		lb.Change(add)
		time.Sleep(time.Millisecond)
		if err := pa.Send(&m); err != nil {
			t.Error(err)
		}
		var got port.Message
		if err := pb.Recv(&got); err != nil || got.Addr.PKeyIndex != 2 {
			t.Errorf("P_Key index %d, error %v; want 2", got.Addr.PKeyIndex, err)
		}
		// A key that moved is found at its old place for 100 ms at most.
		lb.Change(func(info *port.Info) { info.PKeys = []mad.PKey{0xffff, 0x8055} })
		time.Sleep(100 * time.Millisecond)
		if err := pa.Send(&m); err != nil {
			t.Error(err)
		}
		if err := pb.Recv(&got); err != nil || got.Addr.PKeyIndex != 1 {
			t.Errorf("P_Key index %d, error %v; want 1", got.Addr.PKeyIndex, err)
		}
	})
}

// lossyRMPP loses, repeats and reorders what belongs to RMPP transfers.
func lossyRMPP(seed uint64) softmadtest.Hook {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 1))
	return func(_ *softmadtest.Link, w *softmad.Wire) []time.Duration {
		if w.MAD[26]&1 == 0 {
			return []time.Duration{0}
		}
		mu.Lock()
		defer mu.Unlock()
		delay := func() time.Duration { return time.Duration(rnd.IntN(50)) * time.Microsecond }
		switch rnd.IntN(100) {
		case 0, 1, 2, 3, 4:
			return nil
		case 5, 6, 7:
			return []time.Duration{delay(), delay()}
		}
		return []time.Duration{delay()}
	}
}

// Messages arrive whole over a bad wire, in both directions.
func TestRMPPInKernelModeOverBadWire(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			la, lb := softmadtest.NewPair(lossyRMPP(seed))
			pa, pb := openPort(t, newDevice(t, la)), openPort(t, newDevice(t, lb))
			id := register(t, pa, registration(port.RMPPKernel))
			register(t, pb, registration(port.RMPPKernel, mad.MethodGetMulti))
			go func() { // a server that gives back twice what it gets
				var m port.Message
				for pb.Recv(&m) == nil {
					if m.TimedOut {
						continue // its last ACK was lost
					}
					data := append(bytes.Clone(m.Data), m.Data[mad.OffSAData:]...)
					data[mad.OffMethod] |= mad.ResponseBit
					if err := pb.Send(&port.Message{Agent: m.Agent, Addr: m.Addr, Retries: 10, Data: data}); err != nil {
						t.Error(err)
					}
				}
			}()
			rnd := rand.New(rand.NewPCG(seed, 2))
			for tid := range uint32(10) {
				sent := append(request(mad.MethodGetMulti, tid)[:mad.OffSAData], make([]byte, 1+rnd.IntN(60_000))...)
				sent[26] = 1
				for i := mad.OffSAData; i < len(sent); i++ {
					sent[i] = byte(rnd.Uint32())
				}
				m := port.Message{Agent: id, Timeout: time.Minute, Retries: 10, Addr: lb.Addr(), Data: sent}
				if err := pa.Send(&m); err != nil {
					t.Fatal(err)
				}
				var got port.Message
				if err := pa.Recv(&got); err != nil {
					t.Fatal(err)
				}
				want := append(bytes.Clone(sent[mad.OffSAData:]), sent[mad.OffSAData:]...)
				if got.TimedOut || tidOf(&got) != tid || !bytes.Equal(got.Data[mad.OffSAData:], want) {
					t.Fatalf("seed %d, request %d of %d bytes: timed out %v, %d bytes back", seed, tid, len(sent), got.TimedOut, len(got.Data))
				}
			}
		})
	}
}

// Each of 10,000 requests ends once, at the instant of an attempt or of the last
// time-out, however many of them and of their answers are lost.
func TestThousandsInFlight(t *testing.T) {
	const (
		n       = 10_000
		timeout = 100 * time.Millisecond
		retries = 3
	)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		rnd := rand.New(rand.NewPCG(7, 7))
		la, lb := softmadtest.NewPair(func(*softmadtest.Link, *softmad.Wire) []time.Duration {
			mu.Lock()
			defer mu.Unlock()
			if rnd.IntN(10) == 0 {
				return nil
			}
			return []time.Duration{0}
		})
		da := newDevice(t, la)
		pa, pb := openPort(t, da), openPort(t, newDevice(t, lb))
		id := register(t, pa, registration(port.RMPPNone))
		register(t, pb, registration(port.RMPPNone, mad.MethodGet))
		go func() {
			var m port.Message
			for pb.Recv(&m) == nil {
				m.Data[mad.OffMethod] |= mad.ResponseBit
				m.Data[mad.Size-1] = byte(tidOf(&m))
				if err := pb.Send(&m); err != nil {
					t.Error(err)
				}
			}
		}()
		start := time.Now()
		for tid := range uint32(n) {
			m := port.Message{Agent: id, Timeout: timeout, Retries: retries, Addr: lb.Addr(), Data: request(mad.MethodGet, tid)}
			if err := pa.Send(&m); err != nil {
				t.Fatal(err)
			}
		}
		ended := make([]bool, n)
		timedOut := 0
		for range n {
			var m port.Message
			if err := pa.Recv(&m); err != nil {
				t.Fatal(err)
			}
			tid := tidOf(&m)
			if ended[tid] {
				t.Fatalf("request %d ended twice", tid)
			}
			ended[tid] = true
			took := time.Since(start)
			switch {
			case m.TimedOut && took != (retries+1)*timeout:
				t.Fatalf("request %d timed out after %v", tid, took)
			case m.TimedOut:
				timedOut++
			case m.Data[mad.Size-1] != byte(tid) || took%timeout != 0 || took > retries*timeout:
				t.Fatalf("request %d: answer %x after %v", tid, m.Data[mad.Size-1], took)
			}
		}
		// 19 % of the attempts fail: 13 of 10,000 requests fail four times.
		if timedOut == 0 || timedOut > 40 {
			t.Errorf("%d requests timed out", timedOut)
		}
		if s := da.Stats(); s.TimedOut != uint64(timedOut) || s.Sent != n+s.Retransmitted {
			t.Errorf("stats %+v, %d timed out", s, timedOut)
		}
	})
}

// The kernel's CM answers a REQ by a REP of the same transaction id, with a method
// that is no response (cm.c, cm_format_mad_hdr); a program's would be rewritten.
func TestOpenKernelKeepsTransactionIDs(t *testing.T) {
	for _, tt := range []struct {
		name string
		open func(*softmad.Device) (port.Port, error)
		keep bool
	}{
		{"kernel", (*softmad.Device).OpenKernel, true},
		{"program", (*softmad.Device).Open, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				link, peer := softmadtest.NewPair(nil)
				dev := newDevice(t, link)
				p, err := tt.open(dev)
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				agent := register(t, p, port.Registration{QPN: mad.QPGSI, Class: mad.ClassComMgt, Version: 2, Methods: port.Methods(mad.MethodSend)})
				const tid = 0xfedcba9876543210
				b := make([]byte, mad.Size)
				b[0], b[mad.OffClass], b[mad.OffClassVersion], b[mad.OffMethod] = 1, uint8(mad.ClassComMgt), 2, uint8(mad.MethodSend)
				binary.BigEndian.PutUint64(b[mad.OffTID:], tid)
				if err := p.Send(&port.Message{Agent: agent, Addr: peer.Addr(), Data: b}); err != nil {
					t.Fatal(err)
				}
				var w softmad.Wire
				if err := peer.Recv(&w); err != nil {
					t.Fatal(err)
				}
				got := binary.BigEndian.Uint64(w.MAD[mad.OffTID:])
				if got<<32 != tid<<32&(1<<64-1) || (got == tid) != tt.keep {
					t.Errorf("transaction id %#x of %#x arrived", got, uint64(tid))
				}
			})
		})
	}
}
