package capture_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/ibsm/ibsm/capture"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// lower is the number in the lower half of the transaction id of a record.
func (e *entry) lower() byte { return e.data[len(e.data)-6-mad.Size+mad.OffTID+7] }

func numbered(n byte) *port.Message {
	m := &port.Message{Addr: mad.AddressVector{LID: 2, QPN: 1}, Data: newMAD(mad.ClassPerf, mad.MethodGet)}
	m.Data[mad.OffTID+7] = n
	return m
}

func TestInterfaceAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.incoming = []port.Message{*numbered(2)}
		var file bytes.Buffer
		w := capture.NewWriter(&file)
		p := capture.Port(s, s.Info, w)
		time.Sleep(123456789)
		if err := p.Send(numbered(1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Nanosecond)
		if err := p.Recv(new(port.Message)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := read(t, file.Bytes())
		start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		for i, want := range []time.Time{start.Add(123456789), start.Add(123456790)} {
			if !got[i].ci.Timestamp.Equal(want) {
				t.Errorf("record %d at %v, want %v", i, got[i].ci.Timestamp, want)
			}
		}
		if d := got[0].opts.Flags.Direction; d != pcapgo.NgEpbFlagDirectionOutbound {
			t.Errorf("direction of what was sent: %b", d)
		}
		if d := got[1].opts.Flags.Direction; d != pcapgo.NgEpbFlagDirectionInbound {
			t.Errorf("direction of what was received: %b", d)
		}
		if got[0].name != "h1/1" || !strings.Contains(got[0].desc, "0x0002c90300000011") {
			t.Errorf("interface %q, %q", got[0].name, got[0].desc)
		}
	})
}

// A Send that fails was none. Its error comes through as it is.
func TestSendFails(t *testing.T) {
	s := newStub()
	var file bytes.Buffer
	w := capture.NewWriter(&file)
	p := capture.Port(s, s.Info, w)
	s.sendErr = port.ErrNoAgent
	if err := p.Send(numbered(1)); err != port.ErrNoAgent {
		t.Errorf("Send: %v", err)
	}
	if err := p.Recv(new(port.Message)); err != errEmpty {
		t.Errorf("Recv: %v", err)
	}
	s.sendErr = nil
	if err := p.Send(numbered(2)); err != nil {
		t.Error(err)
	}
	w.Close()
	if got := read(t, file.Bytes()); len(got) != 1 || got[0].lower() != 2 {
		t.Errorf("%d records, want the second Send alone", len(got))
	}
}

// The answer may come before Send returns. It stands behind its request
// nevertheless, and behind a Send of another Port that began earlier.
func TestOrderIsThatOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newStub(), newStub()
		b.info.Device, b.info.PortGUID = "h2", 2
		var file bytes.Buffer
		w := capture.NewWriter(&file)
		pa, pb := capture.Port(a, a.Info, w), capture.Port(b, b.Info, w)
		a.onSend = func() {
			b.incoming = []port.Message{*numbered(2)}
			if err := pb.Recv(new(port.Message)); err != nil {
				t.Error(err)
			}
			if err := pb.Send(numbered(3)); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if n := file.Len(); n != 0 {
				t.Errorf("%d bytes are written although the first Send has not ended", n)
			}
		}
		if err := pa.Send(numbered(1)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, e := range read(t, file.Bytes()) {
			order = append(order, fmt.Sprint(e.lower(), " ", e.name))
		}
		if want := []string{"1 h1/1", "2 h2/1", "3 h2/1"}; !slices.Equal(order, want) {
			t.Errorf("order %q, want %q", order, want)
		}
	})
}

// A Send that does not end holds up so many records, not more, and is recorded
// when it ends.
func TestStuckSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 16 << 10
		s := newStub()
		var file bytes.Buffer
		w := capture.NewWriter(&file)
		p := capture.Port(s, s.Info, w)
		s.onSend = func() {
			s.onSend = nil
			for range most - 1 {
				p.Send(numbered(1))
			}
			synctest.Wait()
			if file.Len() != 0 {
				t.Error("written too early")
			}
			p.Send(numbered(1))
			synctest.Wait()
			if n := len(read(t, file.Bytes())); n != most {
				t.Errorf("%d records, want %d", n, most)
			}
		}
		if err := p.Send(numbered(9)); err != nil {
			t.Fatal(err)
		}
		w.Close()
		got := read(t, file.Bytes())
		if len(got) != most+1 || got[most].lower() != 9 {
			t.Errorf("%d records, want %d, the stuck one last", len(got), most+1)
		}
	})
}

// Close does not wait for a Send under way.
func TestCloseDuringSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		var file bytes.Buffer
		w := capture.NewWriter(&file)
		p := capture.Port(s, s.Info, w)
		s.onSend = func() {
			s.onSend = nil
			p.Send(numbered(2))
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
		p.Send(numbered(1))
		p.Send(numbered(3))
		if got := read(t, file.Bytes()); len(got) != 1 || got[0].lower() != 2 {
			t.Errorf("%d records, want the second alone", len(got))
		}
	})
}

func TestEmptyFile(t *testing.T) {
	var file bytes.Buffer
	w := capture.NewWriter(&file)
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, file.Bytes()); len(got) != 0 {
		t.Errorf("%d records", len(got))
	}
}

// limited takes so many bytes, and keeps the ends of all writes.
type limited struct {
	bytes.Buffer
	room int
	ends []int
}

var errFull = errors.New("disk is full")

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.room-l.Len())
	l.Buffer.Write(b[:n])
	l.ends = append(l.ends, l.Len())
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

// Ports go on when the file cannot be written.
func TestWriteError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		dst := &limited{room: 1000}
		w := capture.NewWriter(dst)
		p := capture.Port(s, s.Info, w)
		for n := range 10 {
			if err := p.Send(numbered(byte(n))); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if err := w.Err(); !errors.Is(err, errFull) {
			t.Errorf("Err: %v", err)
		}
		if err := w.Close(); !errors.Is(err, errFull) {
			t.Errorf("Close: %v", err)
		}
		if last := len(dst.ends); dst.ends[last-1] != dst.room || slices.Contains(dst.ends[:last-1], dst.room) {
			t.Errorf("writes end at %v, want none after the first that failed", dst.ends)
		}
	})
}

// A process may be killed between two writes: each leaves a file that ends with
// a whole record, and every record is in it at once.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		dst := &limited{room: 1 << 30}
		w := capture.NewWriter(dst)
		p := capture.Port(s, s.Info, w)
		p.Register(port.Registration{QPN: 1, RMPP: port.RMPPKernel})
		const segments = 1000
		for n, m := range []*port.Message{numbered(1), numbered(2), {Data: newLong(mad.MethodGetTable, segments*200)}, numbered(3)} {
			if err := p.Send(m); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got, want := len(read(t, dst.Bytes())), []int{1, 2, 2 + segments, 3 + segments}[n]; got != want {
				t.Errorf("%d records after %d messages, want %d", got, n+1, want)
			}
		}
		if len(dst.ends) < 6 {
			t.Errorf("%d writes: a long message of %d bytes is written in parts", len(dst.ends), segments*200)
		}
		for _, end := range dst.ends {
			read(t, dst.Bytes()[:end])
		}
	})
}

func TestManyGoroutines(t *testing.T) {
	var file bytes.Buffer
	w := capture.NewWriter(&file)
	const ports, messages = 8, 200
	var wg sync.WaitGroup
	for n := range ports {
		s := newStub()
		s.info.Port = uint8(n % 3)
		p := capture.Port(s, s.Info, w)
		wg.Go(func() {
			for range messages {
				if err := p.Send(numbered(byte(n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := read(t, file.Bytes())
	if len(got) != ports*messages {
		t.Errorf("%d records, want %d", len(got), ports*messages)
	}
	// Each of the three interfaces numbers its packets on its own.
	next := map[string]uint32{}
	for i, e := range got {
		const psn = 16 + 8 + 8 // ERF, LRH, BTH up to the PSN
		if n := uint32(e.data[psn+1])<<16 | uint32(e.data[psn+2])<<8 | uint32(e.data[psn+3]); n != next[e.name] {
			t.Fatalf("record %d: PSN %d on %s, want %d", i, n, e.name, next[e.name])
		}
		next[e.name]++
		if i > 0 && e.ci.Timestamp.Before(got[i-1].ci.Timestamp) {
			t.Fatalf("record %d is older than the one before", i)
		}
	}
	if len(next) != 3 {
		t.Errorf("interfaces %v, want 3", next)
	}
}
