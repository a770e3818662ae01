package capture_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/capture"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// mad is the MAD of a record without GRH.
func (e *entry) mad() []byte { return e.data[16+8+12+8:][:mad.Size] }

// comment is the packet comments, in lines.
func (e *entry) comment() string { return strings.Join(e.opts.Comments, "\n") }

// A message of kernel RMPP travels in segments, with headers as
// drivers/infiniband/core/mad_rmpp.c makes them: version 1, type DATA, no response
// time (31), PayloadLength of the first 220 a segment less the padding, of the
// last 220 less the padding, of the others 0.
func TestSegments(t *testing.T) {
	const none = 31 << 3
	type rmpp struct{ version, kind, flags, status byte }
	for _, c := range []struct {
		name     string
		data     int
		received bool
		first    []byte // RMPP header of a received message
		headers  []rmpp
		lengths  []uint32
	}{
		{"one byte", 1, false, nil, []rmpp{{1, 1, none | 7, 0}}, []uint32{21}},
		{"one segment", 200, false, nil, []rmpp{{1, 1, none | 7, 0}}, []uint32{220}},
		{"three segments", 450, false, nil, []rmpp{{1, 1, none | 3, 0}, {1, 1, none | 1, 0}, {1, 1, none | 5, 0}}, []uint32{3*220 - 150, 0, 70}},
		{"received, two segments, with a response time, length not told", 300, true, []byte{1, 1, 12<<3 | 3, 0, 0, 0, 0, 1, 0, 0, 0, 0},
			[]rmpp{{1, 1, 12<<3 | 3, 0}, {1, 1, 12<<3 | 5, 0}}, []uint32{0, 120}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStub()
			m := port.Message{Data: newLong(mad.MethodGetTableResp, c.data)}
			copy(m.Data[mad.OffRMPP:], c.first)
			s.incoming = []port.Message{m}
			whole := slices.Clone(m.Data)
			var file bytes.Buffer
			w := capture.NewWriter(&file)
			p := capture.Port(s, s.Info, w)
			p.Register(port.Registration{QPN: 1, RMPP: port.RMPPKernel})
			do := p.Send
			if c.received {
				do = p.Recv
			}
			if err := do(&m); err != nil {
				t.Fatal(err)
			}
			w.Close()
			if !bytes.Equal(m.Data, whole) {
				t.Error("the message has changed")
			}
			got := read(t, file.Bytes())
			if len(got) != len(c.headers) {
				t.Fatalf("%d records, want %d", len(got), len(c.headers))
			}
			var data []byte
			for i, e := range got {
				b := e.mad()
				if h := (rmpp{b[24], b[25], b[26], b[27]}); h != c.headers[i] {
					t.Errorf("segment %d: %v, want %v", i+1, h, c.headers[i])
				}
				if n, l := binary.BigEndian.Uint32(b[28:]), binary.BigEndian.Uint32(b[32:]); n != uint32(i+1) || l != c.lengths[i] {
					t.Errorf("segment %d: number %d, length %d, want %d", i+1, n, l, c.lengths[i])
				}
				if !bytes.Equal(b[:24], whole[:24]) || !bytes.Equal(b[36:56], whole[36:56]) {
					t.Errorf("segment %d: headers %x", i+1, b[:56])
				}
				if !strings.Contains(e.comment(), "made from the whole message") {
					t.Errorf("segment %d: comment %q", i+1, e.comment())
				}
				data = append(data, b[56:]...)
			}
			padded := make([]byte, len(got)*200)
			copy(padded, whole[56:])
			if !bytes.Equal(data, padded) {
				t.Error("the segments hold other data")
			}
		})
	}
}

// What travels as one MAD is recorded as it travels.
func TestSingles(t *testing.T) {
	inactive := newLong(mad.MethodGet, 200)
	copy(inactive[mad.OffRMPP:], "not RMPP, 12")
	zeroed := slices.Clone(inactive)
	clear(zeroed[mad.OffRMPP:mad.OffRMPPData])
	segment := newLong(mad.MethodGetTable, 200)
	segment[mad.OffRMPP+7] = 5
	short := newMAD(mad.ClassPerf, mad.MethodGet)[:64]
	for _, c := range []struct {
		name     string
		mode     port.RMPPMode
		received bool
		data     []byte
		want     []byte
	}{
		{"kernel RMPP, inactive: the kernel takes it from byte 36 on (user_mad.c)", port.RMPPKernel, false, inactive, zeroed},
		{"no RMPP", port.RMPPNone, false, inactive, inactive},
		{"segment of user RMPP", port.RMPPUser, false, segment, segment},
		{"received segment", port.RMPPUser, true, segment, segment},
		{"received in one segment", port.RMPPKernel, true, segment, segment},
		{"short", port.RMPPNone, false, short, slices.Concat(short, make([]byte, 256-64))},
		{"another class of a send-only agent", port.RMPPKernel, false, newMAD(mad.ClassPerf, mad.MethodGet), newMAD(mad.ClassPerf, mad.MethodGet)},
		{"longer than its class may be", port.RMPPNone, true, slices.Concat(newMAD(mad.ClassPerf, mad.MethodGet), make([]byte, 100)), newMAD(mad.ClassPerf, mad.MethodGet)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStub()
			m := port.Message{Data: c.data}
			s.incoming = []port.Message{m}
			var file bytes.Buffer
			w := capture.NewWriter(&file)
			p := capture.Port(s, s.Info, w)
			p.Register(port.Registration{QPN: 1, RMPP: c.mode})
			do := p.Send
			if c.received {
				do = p.Recv
			}
			if err := do(&m); err != nil {
				t.Fatal(err)
			}
			w.Close()
			got := read(t, file.Bytes())
			if len(got) != 1 || !bytes.Equal(got[0].mad(), c.want) {
				t.Fatalf("%d records; the first is\n%x, want\n%x", len(got), got[0].mad(), c.want)
			}
			if cut := len(c.data) > mad.Size; strings.Contains(got[0].comment(), "the first 256 of 356 bytes") != cut {
				t.Errorf("comment %q", got[0].comment())
			}
		})
	}
}

// The carrier writes the upper half of a request's transaction id. It is known
// from the agent's first answer or time-out on.
func TestTransactionID(t *testing.T) {
	const given, carriers = 0x11111111, 0xabcd0001
	request := func() *port.Message {
		m := numbered(1)
		binary.BigEndian.PutUint32(m.Data[mad.OffTID:], given)
		return m
	}
	answer := numbered(1)
	answer.Data[mad.OffMethod] |= mad.ResponseBit
	binary.BigEndian.PutUint32(answer.Data[mad.OffTID:], carriers)
	timeOut := request()
	timeOut.TimedOut, timeOut.Data = true, slices.Clone(answer.Data[:24])
	timeOut.Data[mad.OffMethod] = byte(mad.MethodGet)
	foreign := request() // a request of somebody else's
	binary.BigEndian.PutUint32(foreign.Data[mad.OffTID:], 0x22222222)

	for _, c := range []struct {
		name     string
		received *port.Message
		verbatim bool
		again    bool // the agent's slot is taken anew before the second request
		want     uint32
		note     bool // at the second request
	}{
		{"answer", answer, false, false, carriers, false},
		{"time-out", timeOut, false, false, carriers, false},
		{"request of another port", foreign, false, false, given, true},
		{"next agent in the slot", answer, false, true, given, true},
		{"kernel's own client", answer, true, false, given, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStub()
			s.incoming = []port.Message{*c.received}
			var file bytes.Buffer
			w := capture.NewWriter(&file)
			p, err := capture.Device(s, w).Open()
			if c.verbatim {
				p = capture.Port(s, s.Info, w)
			}
			if err != nil {
				t.Fatal(err)
			}
			p.Register(port.Registration{QPN: 1})
			p.Send(request())
			p.Recv(new(port.Message))
			if c.again {
				p.Register(port.Registration{QPN: 1})
			}
			p.Send(request())
			reply := request()
			reply.Data[mad.OffMethod] |= mad.ResponseBit
			p.Send(reply)
			w.Close()
			got := read(t, file.Bytes())
			if len(got) != 4 {
				t.Fatalf("%d records, want 4", len(got))
			}
			const text = "upper half of the transaction id"
			for _, r := range []struct {
				what string
				e    entry
				tid  uint32
				note bool
			}{
				{"first request", got[0], given, !c.verbatim},
				{"second request", got[2], c.want, c.note},
				{"response", got[3], given, false},
			} {
				if tid := binary.BigEndian.Uint32(r.e.mad()[mad.OffTID:]); tid != r.tid || strings.Contains(r.e.comment(), text) != r.note {
					t.Errorf("%s: upper half %#x, comment %q; want %#x", r.what, tid, r.e.comment(), r.tid)
				}
			}
		})
	}
}

// A time-out is a pad record of ERF, 16 bytes long, with a comment.
func TestTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		m := port.Message{
			TimedOut: true, Timeout: 500 * time.Millisecond, Retries: 3, Addr: mad.AddressVector{LID: 5},
			Data: newMAD(mad.ClassSubnLIDRouted, mad.MethodGet)[:24],
		}
		copy(m.Data[mad.OffTID:], []byte{0, 0, 0, 1, 0, 0, 0, 0x2a, 0x00, 0x11})
		s.incoming = []port.Message{m}
		var file bytes.Buffer
		w := capture.NewWriter(&file)
		p := capture.Port(s, s.Info, w)
		m.TimedOut = false
		p.Send(&m)
		p.Recv(new(port.Message))
		w.Close()
		got := read(t, file.Bytes())
		if len(got) != 2 {
			t.Fatalf("%d records, want 2", len(got))
		}
		want := []byte{0, 0, 0, 0, 0x80, 0x43, 0x6d, 0x38, 48, 4, 0, 16, 0, 0, 0, 0}
		if !bytes.Equal(got[1].data, want) {
			t.Errorf("record %x, want %x", got[1].data, want)
		}
		for _, part := range []string{"time-out", "Get NodeInfo", "0x000000010000002a", "LID 5", "500ms", "retries 3"} {
			if !strings.Contains(got[1].comment(), part) {
				t.Errorf("comment %q lacks %q", got[1].comment(), part)
			}
		}
		for _, part := range []string{"time-out 500ms", "retries 3"} {
			if !strings.Contains(got[0].comment(), part) {
				t.Errorf("comment of the request %q lacks %q", got[0].comment(), part)
			}
		}
	})
}

// The port's tables are read now and then, not for each packet, and soon when
// the LID is still to come.
func TestPortTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.info.LID = 0
		reads := 0
		var file bytes.Buffer
		w := capture.NewWriter(&file)
		p := capture.Port(s, func() (port.Info, error) { reads++; return s.Info() }, w)
		slid := func() uint16 {
			t.Helper()
			if err := p.Send(numbered(1)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // until it is written
			got := read(t, file.Bytes())
			return binary.BigEndian.Uint16(got[len(got)-1].data[16+6:])
		}
		check := func(what string, wantLID uint16, wantReads int) {
			t.Helper()
			if lid := slid(); lid != wantLID || reads != wantReads {
				t.Errorf("%s: SLID %d after %d reads, want %d after %d", what, lid, reads, wantLID, wantReads)
			}
		}
		check("at first", 0, 1)
		s.info.LID = 7
		check("at once", 0, 1)
		time.Sleep(10 * time.Millisecond)
		check("10 ms later", 7, 2)
		s.info.LID = 8
		time.Sleep(time.Second - time.Nanosecond)
		check("not yet", 7, 2)
		time.Sleep(time.Nanosecond)
		check("1 s later", 8, 3)
		time.Sleep(time.Second)
		s.infoErr = port.ErrGone
		check("gone", 8, 4)
	})
}

// A port that cannot describe itself is recorded all the same, and has its name
// as soon as it can.
func TestUnknownPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		info := s.info
		s.info, s.infoErr = port.Info{}, port.ErrGone
		var file bytes.Buffer
		w := capture.NewWriter(&file)
		p := capture.Port(s, s.Info, w)
		p.Send(numbered(1))
		s.info, s.infoErr = info, nil
		time.Sleep(time.Second)
		p.Send(numbered(1))
		w.Close()
		got := read(t, file.Bytes())
		if len(got) != 2 || got[0].name != "unknown" || got[1].name != "h1/1" {
			t.Errorf("%d records, interfaces %q and %q", len(got), got[0].name, got[1].name)
		}
	})
}
