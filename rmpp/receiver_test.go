package rmpp_test

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/rmpp"
)

func collect(to *[]byte) func([]byte) {
	return func(p []byte) { *to = append(*to, p...) }
}

func ignore([]byte) {}

// The ACKs of a kernel: of segment 1, then at the end of each window of 64, then
// of the last segment without opening the window further.
func TestReceiverACKs(t *testing.T) {
	msg := message(classSA, 139*200+3) // 140 segments
	r := rmpp.NewReceiver(rmpp.ReceiverConfig{})
	acks := map[uint32]uint32{1: 65, 65: 129, 129: 193, 140: 193}
	var data []byte
	for i, pkt := range segments(msg) {
		wantUnfinished(t, r)
		r.Receive(start, pkt, collect(&data))
		segment := uint32(i + 1)
		if newLast, due := acks[segment]; due {
			wantPacket(t, r, start, mad.RMPPTypeACK, 0, segment, newLast)
		} else {
			wantNothing(t, r, start)
		}
	}
	wantSuccess(t, r)
	if !bytes.Equal(data, msg[56:]) {
		t.Errorf("data differs")
	}
}

// An ACK is the header of the segment with the R bit turned over.
func TestReceiverACKBytes(t *testing.T) {
	for _, class := range []byte{classSA, classDevMgt, classVendor} {
		msg := message(class, 1000)
		r := rmpp.NewReceiver(rmpp.ReceiverConfig{})
		r.Receive(start, segments(msg)[0], ignore)
		hdrLen := mad.ClassHeaderLen(mad.Class(class))
		var want [mad.Size]byte
		copy(want[:], msg[:hdrLen])
		want[mad.OffMethod] = methodGetTable
		copy(want[24:], []byte{1, 2, 0xf9, 0, 0, 0, 0, 1, 0, 0, 0, 65})
		got := [mad.Size]byte{255: 0xee}
		if !r.Next(start, &got) || got != want {
			t.Errorf("class %#x:\n got % x\nwant % x", class, got, want)
		}
		if !bytes.Equal(r.Header(), segments(msg)[0][:hdrLen]) {
			t.Errorf("class %#x: header % x", class, r.Header())
		}
	}
}

func TestReceiverReordering(t *testing.T) {
	msg := message(classSA, 9*200+50) // 10 segments
	segs := segments(msg)
	r := rmpp.NewReceiver(rmpp.ReceiverConfig{Window: 4})
	var data []byte
	receive := func(numbers ...int) {
		for _, n := range numbers {
			r.Receive(start, segs[n-1], collect(&data))
		}
	}
	receive(2) // outside the first window
	wantNothing(t, r, start)
	if r.Header() != nil || !r.Deadline().IsZero() {
		t.Errorf("header %x and deadline %v before segment 1", r.Header(), r.Deadline())
	}
	receive(1)
	wantPacket(t, r, start, mad.RMPPTypeACK, 0, 1, 5)
	receive(5, 3, 5, 6, 4) // 6 is outside again
	wantNothing(t, r, start)
	if len(data) != 200 {
		t.Fatalf("%d bytes delivered while segment 2 is missing", len(data))
	}
	receive(2)
	wantPacket(t, r, start, mad.RMPPTypeACK, 0, 5, 9)
	receive(7)
	receive(6, 6, 6) // delivered, but no ACK is due before the window ends
	wantNothing(t, r, start)
	receive(5) // acknowledged before: the ACK was lost, and tells what is new
	wantPacket(t, r, start, mad.RMPPTypeACK, 0, 7, 9)
	receive(9, 8)
	wantPacket(t, r, start, mad.RMPPTypeACK, 0, 9, 13)
	receive(10)
	wantPacket(t, r, start, mad.RMPPTypeACK, 0, 10, 13)
	wantSuccess(t, r)
	if !bytes.Equal(data, msg[56:]) {
		t.Error("data differs")
	}
}

// The end of a message may be held too.
func TestReceiverHoldsLast(t *testing.T) {
	msg := message(classVendor, 3*216+1)
	segs := segments(msg)
	r := rmpp.NewReassembler(rmpp.ReceiverConfig{}, nil)
	for _, n := range []int{0, 3, 2, 1} {
		wantUnfinished(t, r)
		r.Receive(start, segs[n])
	}
	wantSuccess(t, r)
	wantPacket(t, r, start, mad.RMPPTypeACK, 0, 4, 65)
	if !bytes.Equal(r.Message()[40:], msg[40:]) {
		t.Error("data differs")
	}
}

// What the peer announces in segment 1 and claims in the last one, for SA.
func TestReceiverPayloadLength(t *testing.T) {
	const bad, ok = mad.RMPPStatusBadLength, mad.RMPPStatusOK
	tests := []struct {
		name   string
		count  uint32
		first  uint32
		last   uint32
		status mad.RMPPStatus
		data   int // what is delivered
	}{
		{"one segment, full", 1, 0, 220, ok, 200},
		{"one segment, no data", 1, 0, 20, ok, 0},
		{"one segment, less than its header", 1, 0, 19, bad, 0},
		{"one segment, 0", 1, 0, 0, bad, 0},
		{"one segment, too long", 1, 0, 221, bad, 0},
		{"one segment, far too long", 1, 0, 1<<32 - 1, bad, 0},
		{"two segments, as they are", 2, 250, 30, ok, 210},
		{"two segments, length not told", 2, 0, 30, ok, 210},
		{"two segments, no data in the last", 2, 240, 20, ok, 200},
		{"announced one less", 2, 249, 30, bad, 200},
		{"announced one more", 2, 251, 30, bad, 200},
		{"announced one segment", 2, 220, 30, bad, 0},
		{"announced three segments", 2, 470, 30, bad, 200},
		{"announced less than a class header", 2, 5, 30, bad, 0},
		{"last too long", 2, 0, 221, bad, 200},
		{"last less than its header", 2, 0, 19, bad, 200},
		{"announced 4 GB", 2, 1<<32 - 1, 30, mad.RMPPStatusResourcesExhausted, 0},
		{"announced more than the limit", 2, 100000, 30, mad.RMPPStatusResourcesExhausted, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			msg := message(classSA, 0)
			r := rmpp.NewReassembler(rmpp.ReceiverConfig{MaxData: 10000}, nil)
			for n := uint32(1); n <= tt.count; n++ {
				h := mad.RMPPHeader{RMPPType: mad.RMPPTypeData, Data1: n}
				if n == 1 {
					h.RMPPFlags |= mad.RMPPFlagFirst
					h.Data2 = tt.first
				}
				if n == tt.count {
					h.RMPPFlags |= mad.RMPPFlagLast
					h.Data2 = tt.last
				}
				r.Receive(start, packet(msg, h, nil))
			}
			if tt.status == ok {
				wantSuccess(t, r)
				if got := len(r.Message()) - 56; got != tt.data {
					t.Errorf("%d bytes of data, want %d", got, tt.data)
				}
				return
			}
			_, err := r.Done()
			var abort *rmpp.AbortError
			if !errors.As(err, &abort) || abort.Status != tt.status || !abort.Local || int(abort.Segment)*200 != tt.data {
				t.Fatalf("got %v, want status %v after %d bytes", err, tt.status, tt.data)
			}
			if r.Message() != nil {
				t.Error("there is a message in spite of the error")
			}
			typ := mad.RMPPTypeAbort
			if tt.status == mad.RMPPStatusResourcesExhausted {
				typ = mad.RMPPTypeStop
			}
			wantPacket(t, r, start, typ, tt.status, 0, 0)
		})
	}
}

// State: segments 1 and 2 of 5 are received.
func TestReceiverRules(t *testing.T) {
	msg := message(classSA, 5*200)
	data := func(h mad.RMPPHeader) *[mad.Size]byte {
		h.RMPPType = mad.RMPPTypeData
		return packet(msg, h, nil)
	}
	otherClass := *segments(msg)[2]
	otherClass[mad.OffClass] = classDevMgt
	inactive := *data(mad.RMPPHeader{Data1: 1})
	inactive[26] &^= 1
	versionZero := *data(mad.RMPPHeader{Data1: 1})
	versionZero[24] = 0
	tests := []struct {
		name   string
		pkt    *[mad.Size]byte
		status mad.RMPPStatus
		silent bool
		text   string // of what is wrong
	}{
		{name: "DATA with a status", pkt: data(mad.RMPPHeader{Data1: 3, RMPPStatus: 1}), status: mad.RMPPStatusBadStatus, text: "(illegal status): DATA with status 1"},
		{name: "segment 1 without First", pkt: data(mad.RMPPHeader{Data1: 1}), status: mad.RMPPStatusBadSegment},
		{name: "First in segment 3", pkt: data(mad.RMPPHeader{Data1: 3, RMPPFlags: mad.RMPPFlagFirst}), status: mad.RMPPStatusBadSegment},
		{name: "First in segment 0", pkt: data(mad.RMPPHeader{Data1: 0, RMPPFlags: mad.RMPPFlagFirst}), status: mad.RMPPStatusBadSegment},
		{name: "First past the window", pkt: data(mad.RMPPHeader{Data1: 99, RMPPFlags: mad.RMPPFlagFirst}), status: mad.RMPPStatusBadSegment},
		{name: "Last in segment 3 of 5", pkt: data(mad.RMPPHeader{Data1: 3, RMPPFlags: mad.RMPPFlagLast, Data2: 220}), status: mad.RMPPStatusBadLength},
		{name: "type 0", pkt: packet(msg, mad.RMPPHeader{RMPPType: 0}, nil), status: mad.RMPPStatusBadType, text: "(bad RMPPType): RMPP type 0"},
		{name: "type 255", pkt: packet(msg, mad.RMPPHeader{RMPPType: 255}, nil), status: mad.RMPPStatusBadType, text: "(bad RMPPType): RMPP type 255"},
		{name: "version 2", pkt: data(mad.RMPPHeader{RMPPVersion: 2, Data1: 3}), status: mad.RMPPStatusBadVersion, text: "(unsupported version): RMPP version 2, not 1"},
		{name: "STOP", pkt: packet(msg, mad.RMPPHeader{RMPPType: mad.RMPPTypeStop, RMPPStatus: 1}, nil), status: mad.RMPPStatusResourcesExhausted, silent: true},
		{name: "STOP with status 0", pkt: packet(msg, mad.RMPPHeader{RMPPType: mad.RMPPTypeStop}, nil), status: mad.RMPPStatusBadStatus},
		{name: "ABORT", pkt: packet(msg, mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: 126}, nil), status: mad.RMPPStatusTooManyRetries, silent: true},
		{name: "ABORT of a vendor", pkt: packet(msg, mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: 200}, nil), status: 200, silent: true},
		{name: "ABORT with status 2", pkt: packet(msg, mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: 2}, nil), status: mad.RMPPStatusBadStatus, text: "(illegal status): ABORT with status 2"},
		{name: "ACK is not for a receiver", pkt: packet(msg, mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, Data1: 1, Data2: 65}, nil)},
		{name: "segment past the window", pkt: data(mad.RMPPHeader{Data1: 66})},
		{name: "segment 2 again", pkt: segments(msg)[1]},
		{name: "another class", pkt: &otherClass},
		{name: "not active", pkt: &inactive},
		{name: "version 0", pkt: &versionZero},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := rmpp.NewReceiver(rmpp.ReceiverConfig{})
			r.Receive(start, segments(msg)[0], ignore)
			wantPacket(t, r, start, mad.RMPPTypeACK, 0, 1, 65)
			r.Receive(start, segments(msg)[1], ignore)
			wantNothing(t, r, start)
			r.Receive(start, tt.pkt, func([]byte) { t.Error("data is delivered") })
			switch {
			case tt.status == 0:
				wantUnfinished(t, r)
				wantNothing(t, r, start)
			case tt.silent:
				wantAbort(t, r, tt.status, false, 2)
				wantNothing(t, r, start)
				if !r.Deadline().IsZero() {
					t.Error("waits for more after the peer gave up")
				}
			default:
				if abort := wantAbort(t, r, tt.status, true, 2); !strings.HasSuffix(abort.Error(), tt.text) {
					t.Errorf("%v, want it to end with %q", abort, tt.text)
				}
				wantPacket(t, r, start, mad.RMPPTypeAbort, tt.status, 0, 0)
			}
		})
	}
}

// An ABORT can be due before any segment is accepted; version 0 gets no answer.
func TestReceiverFirstPacket(t *testing.T) {
	msg := message(classSA, 500)
	r := rmpp.NewReceiver(rmpp.ReceiverConfig{})
	r.Receive(start, packet(msg, mad.RMPPHeader{RMPPType: mad.RMPPTypeData, Data1: 1}, nil), ignore)
	var pkt [mad.Size]byte
	if !r.Next(start, &pkt) || pkt[mad.OffMethod] != methodGetTable || !bytes.Equal(pkt[8:16], msg[8:16]) ||
		rmpp.ParseHeader(&pkt).RMPPStatus != mad.RMPPStatusBadSegment {
		t.Errorf("got % x", pkt[:36])
	}

	r = rmpp.NewReceiver(rmpp.ReceiverConfig{})
	versionZero := packet(msg, mad.RMPPHeader{}, nil)
	versionZero[24] = 0
	r.Receive(start, versionZero, ignore)
	r.Receive(start, packet(msg, mad.RMPPHeader{RMPPType: mad.RMPPTypeData}, nil), ignore) // segment 0
	wantNothing(t, r, start)
	wantUnfinished(t, r)
}

func TestReceiverLimits(t *testing.T) {
	msg := message(classSA, 10*200)
	unannounced := segments(msg)
	h := rmpp.ParseHeader(unannounced[0])
	h.Data2 = 0
	rmpp.PutHeader(unannounced[0], h)

	t.Run("data announced", func(t *testing.T) {
		r := rmpp.NewReceiver(rmpp.ReceiverConfig{MaxData: 1999})
		r.Receive(start, segments(msg)[0], func([]byte) { t.Error("data is delivered") })
		if abort := wantAbort(t, r, mad.RMPPStatusResourcesExhausted, true, 0); !errors.Is(abort, rmpp.ErrTooBig) {
			t.Errorf("%v is not ErrTooBig", abort)
		}
		wantPacket(t, r, start, mad.RMPPTypeStop, mad.RMPPStatusResourcesExhausted, 0, 0)
	})
	t.Run("data not announced", func(t *testing.T) {
		r := rmpp.NewReceiver(rmpp.ReceiverConfig{MaxData: 1999})
		var got []byte
		for _, pkt := range unannounced {
			r.Receive(start, pkt, collect(&got))
		}
		if abort := wantAbort(t, r, mad.RMPPStatusResourcesExhausted, true, 9); !errors.Is(abort, rmpp.ErrTooBig) {
			t.Errorf("%v is not ErrTooBig", abort)
		}
		if len(got) != 9*200 {
			t.Errorf("%d bytes delivered", len(got))
		}
		wantPacket(t, r, start, mad.RMPPTypeStop, mad.RMPPStatusResourcesExhausted, 0, 0)
	})
	t.Run("data just fits", func(t *testing.T) {
		r := rmpp.NewReceiver(rmpp.ReceiverConfig{MaxData: 2000})
		for _, pkt := range segments(msg) {
			r.Receive(start, pkt, ignore)
		}
		wantSuccess(t, r)
	})
	t.Run("segments held", func(t *testing.T) {
		segs := segments(msg)
		r := rmpp.NewReceiver(rmpp.ReceiverConfig{MaxHeld: 2})
		for _, n := range []int{0, 2, 3, 2, 3} { // again is not more
			r.Receive(start, segs[n], ignore)
		}
		wantUnfinished(t, r)
		pull(r, start)
		r.Receive(start, segs[4], ignore)
		if abort := wantAbort(t, r, mad.RMPPStatusResourcesExhausted, true, 1); !errors.Is(abort, rmpp.ErrTooManyHeld) {
			t.Errorf("%v is not ErrTooManyHeld", abort)
		}
		wantPacket(t, r, start, mad.RMPPTypeStop, mad.RMPPStatusResourcesExhausted, 0, 0)
	})
}

// 40 s from the first segment, whatever comes in between; then an ABORT, and
// again for what still comes, for 10 s.
func TestReceiverTimesOut(t *testing.T) {
	segs := segments(message(classSA, 5*200))
	r := rmpp.NewReceiver(rmpp.ReceiverConfig{})
	r.Receive(start, segs[0], ignore)
	pull(r, start)
	r.Receive(start.Add(39*time.Second), segs[1], ignore)
	end := start.Add(40 * time.Second)
	if !r.Deadline().Equal(end) {
		t.Fatalf("deadline %v, want 40 s after the first segment", r.Deadline().Sub(start))
	}
	wantNothing(t, r, end.Add(-1))
	wantUnfinished(t, r)
	wantPacket(t, r, end, mad.RMPPTypeAbort, 118, 0, 0)
	if abort := wantAbort(t, r, mad.RMPPStatusTimeTooLong, true, 2); !abort.Timeout() {
		t.Error("total time too long is not a time-out")
	}

	wantNothing(t, r, end.Add(time.Second))
	r.Receive(end.Add(time.Second), segs[2], func([]byte) { t.Error("data is delivered") })
	wantPacket(t, r, end.Add(time.Second), mad.RMPPTypeAbort, 118, 0, 0)
	r.Receive(end.Add(time.Second), packet(segs[0][:], mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: 126}, nil), ignore)
	wantNothing(t, r, end.Add(time.Second)) // an ABORT is not answered

	if want := end.Add(10 * time.Second); !r.Deadline().Equal(want) {
		t.Fatalf("deadline %v, want %v", r.Deadline(), want)
	}
	r.Receive(end.Add(10*time.Second), segs[3], ignore)
	wantNothing(t, r, end.Add(10*time.Second))
	if !r.Deadline().IsZero() {
		t.Errorf("deadline %v after all is forgotten", r.Deadline())
	}
	wantAbort(t, r, mad.RMPPStatusTimeTooLong, true, 2)
}

// A segment that finds the deadline passed does not beat it.
func TestReceiverTimesOutOnReceive(t *testing.T) {
	segs := segments(message(classSA, 2*200))
	r := rmpp.NewReceiver(rmpp.ReceiverConfig{Timeout: time.Second})
	r.Receive(start, segs[0], ignore)
	r.Receive(start.Add(time.Second), segs[1], func([]byte) { t.Error("data is delivered") })
	wantAbort(t, r, mad.RMPPStatusTimeTooLong, true, 1)
}

// With an IdleTimeout the limit moves with each segment that is new, held ones
// too, and stays where it is with those that come again; the limit of the whole
// does not move.
func TestReceiverIdle(t *testing.T) {
	const idle = 8 * time.Second
	type event struct {
		at      time.Duration
		segment int
		limit   time.Duration // afterwards
	}
	for _, tt := range []struct {
		name   string
		events []event
		last   uint32 // segment delivered
		text   string
	}{
		{"nothing after the first", []event{{0, 1, idle}}, 1, "segment 2 did not come, nor any new one for 8s"},
		{"each one in time", []event{
			{0, 1, idle}, {idle - 1, 2, 2*idle - 1}, {2*idle - 2, 3, 3*idle - 2},
		}, 3, "segment 4 did not come, nor any new one for 8s"},
		{"out of order", []event{
			{0, 1, idle}, {5 * time.Second, 3, 13 * time.Second}, {6 * time.Second, 3, 13 * time.Second}, {7 * time.Second, 4, 15 * time.Second},
		}, 1, "segment 2 did not come, nor any new one for 8s"},
		{"the second first", []event{{0, 2, idle}, {time.Second, 1, 9 * time.Second}}, 2, "segment 3 did not come"},
		{"again and again", []event{
			{0, 1, idle}, {2 * time.Second, 1, idle}, {4 * time.Second, 1, idle}, {6 * time.Second, 1, idle},
		}, 1, "segment 2 did not come, nor any new one for 8s"},
		{"beyond the window", []event{{0, 1, idle}, {time.Second, 70, idle}}, 1, "segment 2 did not come"},
		{"slow, but the whole takes too long", []event{
			{0, 1, idle}, {7 * time.Second, 2, 15 * time.Second}, {14 * time.Second, 3, 22 * time.Second},
			{21 * time.Second, 4, 29 * time.Second}, {28 * time.Second, 5, 36 * time.Second}, {35 * time.Second, 6, 40 * time.Second},
		}, 6, "segment 7 did not come, 40s after the first"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			segs := segments(message(classSA, 80*200))
			r := rmpp.NewReceiver(rmpp.ReceiverConfig{IdleTimeout: idle, FirstWindow: 64})
			for _, e := range tt.events {
				r.Receive(start.Add(e.at), segs[e.segment-1], ignore)
				pull(r, start.Add(e.at))
				if got := r.Deadline().Sub(start); got != e.limit {
					t.Fatalf("segment %d at %v: deadline %v, want %v", e.segment, e.at, got, e.limit)
				}
			}
			end := start.Add(tt.events[len(tt.events)-1].limit)
			wantNothing(t, r, end.Add(-1))
			wantUnfinished(t, r)
			wantPacket(t, r, end, mad.RMPPTypeAbort, 118, 0, 0)
			abort := wantAbort(t, r, mad.RMPPStatusTimeTooLong, true, tt.last)
			if !abort.Timeout() || !strings.Contains(abort.Error(), tt.text) {
				t.Errorf("%v, want a time-out that says %q", abort, tt.text)
			}
			if want := end.Add(10 * time.Second); !r.Deadline().Equal(want) {
				t.Errorf("forgotten at %v, want %v", r.Deadline(), want)
			}
		})
	}
}

func TestReceiverRemembers(t *testing.T) {
	msg := message(classSA, 3*200)
	segs := segments(msg)
	r := rmpp.NewReceiver(rmpp.ReceiverConfig{})
	for _, pkt := range segs {
		r.Receive(start, pkt, ignore)
	}
	wantPacket(t, r, start, mad.RMPPTypeACK, 0, 3, 65)
	nothing := func([]byte) { t.Error("data is delivered twice") }
	now := start.Add(10*time.Second - 1)
	for _, pkt := range segs {
		r.Receive(now, pkt, nothing)
		wantPacket(t, r, now, mad.RMPPTypeACK, 0, 3, 65)
	}
	// What is wrong or late now changes nothing.
	for _, h := range []mad.RMPPHeader{
		{RMPPType: mad.RMPPTypeAbort, RMPPStatus: 126},
		{RMPPType: mad.RMPPTypeData, Data1: 66},
		{RMPPType: mad.RMPPTypeData, Data1: 2, RMPPStatus: 9},
		{RMPPType: 9},
	} {
		r.Receive(now, packet(msg, h, nil), nothing)
		wantNothing(t, r, now)
	}
	now = start.Add(10 * time.Second)
	if !r.Deadline().Equal(now) {
		t.Errorf("deadline %v, want 10 s after the end", r.Deadline().Sub(start))
	}
	wantNothing(t, r, now)
	if !r.Deadline().IsZero() {
		t.Errorf("deadline %v after all is forgotten", r.Deadline())
	}
	r.Receive(now, segs[2], nothing)
	wantNothing(t, r, now)
	wantSuccess(t, r)
}

func TestReceiverAbort(t *testing.T) {
	segs := segments(message(classSA, 3*200))
	r := rmpp.NewReceiver(rmpp.ReceiverConfig{})
	r.Abort(start, mad.RMPPStatusUnspecified)
	wantAbort(t, r, mad.RMPPStatusUnspecified, true, 0)
	wantNothing(t, r, start) // there is nobody to tell

	r = rmpp.NewReceiver(rmpp.ReceiverConfig{})
	r.Receive(start, segs[0], ignore)
	r.Abort(start, mad.RMPPStatusOK)
	wantPacket(t, r, start, mad.RMPPTypeAbort, mad.RMPPStatusUnspecified, 0, 0)
	wantAbort(t, r, mad.RMPPStatusUnspecified, true, 1)

	r = rmpp.NewReceiver(rmpp.ReceiverConfig{})
	for _, pkt := range segs {
		r.Receive(start, pkt, ignore)
	}
	r.Abort(start, mad.RMPPStatusUnspecified)
	wantSuccess(t, r)
}

func TestReassemblerReusesBuffer(t *testing.T) {
	msg := message(classSA, 700)
	buf := make([]byte, 5, 2048)
	r := rmpp.NewReassembler(rmpp.ReceiverConfig{}, buf)
	for _, pkt := range segments(msg) {
		r.Receive(start, pkt)
	}
	got := r.Message()
	if &got[0] != &buf[0] || len(got) != len(msg) || !bytes.Equal(got[56:], msg[56:]) {
		t.Errorf("message of %d bytes, in the buffer given: %v", len(got), &got[0] == &buf[0])
	}
	if !bytes.Equal(got[:56], segments(msg)[0][:56]) {
		t.Errorf("headers % x", got[:56])
	}
}

// The buffer is as long as what was announced, if that comes, and never much longer
// than what has come.
func TestReassemblerRoom(t *testing.T) {
	const page = 8 << 10 // by which the runtime rounds up
	for _, n := range []int{1, 5000, 1 << 20} {
		msg := message(classSA, n)
		r := rmpp.NewReassembler(rmpp.ReceiverConfig{}, nil)
		for _, pkt := range segments(msg) {
			r.Receive(start, pkt)
			pull(r, start)
		}
		if got := r.Message(); len(got) != len(msg) || cap(got) >= len(msg)+page {
			t.Errorf("message of %d bytes: got %d, in a buffer of %d", len(msg), len(got), cap(got))
		}
	}

	liar := segments(message(classSA, 3*200))
	for _, announced := range []uint32{0, 200 << 20, math.MaxUint32} {
		h := rmpp.ParseHeader(liar[0])
		h.Data2 = announced
		rmpp.PutHeader(liar[0], h)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := rmpp.NewReassembler(rmpp.ReceiverConfig{MaxData: math.MaxInt}, nil)
		for _, pkt := range liar[:2] {
			r.Receive(start, pkt)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 16<<10 {
			t.Errorf("%d bytes announced, 400 came: %d bytes of memory", announced, got)
		}
	}
}

func TestReassemblerNoData(t *testing.T) {
	msg := message(classSA, 0)
	r := rmpp.NewReassembler(rmpp.ReceiverConfig{}, nil)
	r.Receiver.Receive(start, segments(msg)[0], func([]byte) { t.Error("data is delivered") })
	if got := r.Message(); !bytes.Equal(got, segments(msg)[0][:56]) {
		t.Errorf("message % x", got)
	}
}

func TestAbortErrorText(t *testing.T) {
	tests := []struct {
		err  rmpp.AbortError
		want string
	}{
		{rmpp.AbortError{Status: mad.RMPPStatusTooManyRetries, Local: true, Segment: 5, Err: errors.New("no ACK")},
			"rmpp: ended the transfer after segment 5 by ABORT, status 126 (too many retries): no ACK"},
		{rmpp.AbortError{Status: mad.RMPPStatusResourcesExhausted, Segment: 65},
			"rmpp: peer ended the transfer after segment 65 by STOP, status 1 (resources exhausted)"},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
