package rmpp_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/rmpp"
)

func newSender(t *testing.T, msg []byte, cfg rmpp.SenderConfig) *rmpp.Sender {
	t.Helper()
	s, err := rmpp.NewSender(msg, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Lengths by the kernel's rule: first segment count*220 - pad, last 220 - pad
// (mad_rmpp.c, send_next_seg). The 14 NodeRecords are as OpenSM sends them.
func TestSegmentation(t *testing.T) {
	const first, last = mad.RMPPFlagActive | mad.RMPPFlagFirst, mad.RMPPFlagActive | mad.RMPPFlagLast
	tests := []struct {
		name        string
		class       byte
		data        int
		count       uint32
		firstLength uint32
		lastLength  uint32 // if there is more than one segment
	}{
		{"SA, no data", classSA, 0, 1, 20, 0},
		{"SA, one byte", classSA, 1, 1, 21, 0},
		{"SA, one full segment", classSA, 200, 1, 220, 0},
		{"SA, one byte more", classSA, 201, 2, 241, 21},
		{"SA, 14 NodeRecords of 112", classSA, 14 * 112, 8, 1728, 188},
		{"SA, 702 PathRecords of 64", classSA, 702 * 64, 225, 225*220 - 72, 148},
		{"DevMgt, no data", classDevMgt, 0, 1, 28, 0},
		{"DevMgt, one full segment", classDevMgt, 192, 1, 220, 0},
		{"DevMgt, two segments", classDevMgt, 300, 2, 356, 136},
		{"vendor, no data", classVendor, 0, 1, 4, 0},
		{"vendor, one full segment", classVendor, 216, 1, 220, 0},
		{"vendor, two segments", classVendor, 217, 2, 225, 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			msg := message(tt.class, tt.data)
			hdrLen := mad.ClassHeaderLen(mad.Class(tt.class))
			s := newSender(t, msg, rmpp.SenderConfig{FirstWindow: 1000})
			var data []byte
			pkt := [mad.Size]byte{255: 0xee} // what was there before must go
			var n uint32
			for s.Next(start, &pkt) {
				n++
				want := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: 31, RMPPFlags: mad.RMPPFlagActive, Data1: n}
				if n == 1 {
					want.RMPPFlags |= first
					want.Data2 = tt.firstLength
				}
				if n == tt.count {
					want.RMPPFlags |= last
					want.Data2 = max(tt.lastLength, want.Data2)
				}
				if got := rmpp.ParseHeader(&pkt); got != want {
					t.Errorf("segment %d: %+v, want %+v", n, got, want)
				}
				if !bytes.Equal(pkt[:24], msg[:24]) || !bytes.Equal(pkt[36:hdrLen], msg[36:hdrLen]) {
					t.Errorf("segment %d: headers % x", n, pkt[:hdrLen])
				}
				data = append(data, pkt[hdrLen:]...)
				pkt = [mad.Size]byte{255: 0xee}
			}
			if n != tt.count {
				t.Fatalf("%d segments, want %d", n, tt.count)
			}
			padded := make([]byte, int(n)*(256-hdrLen))
			copy(padded, msg[hdrLen:])
			if !bytes.Equal(data, padded) {
				t.Errorf("data differs, or is not padded with zeros")
			}
		})
	}
}

func TestNewSenderRefuses(t *testing.T) {
	tests := []struct {
		name string
		msg  []byte
	}{
		{"empty", nil},
		{"less than a MAD header", make([]byte, 23)},
		{"class without RMPP", message(0x04, 100)},
		{"less than the SA header", message(classSA, 0)[:55]},
		{"less than the vendor header", message(classVendor, 0)[:39]},
	}
	for _, tt := range tests {
		if _, err := rmpp.NewSender(tt.msg, rmpp.SenderConfig{}); !errors.Is(err, rmpp.ErrMessage) {
			t.Errorf("%s: %v, want ErrMessage", tt.name, err)
		}
	}
}

// The dialogue of two kernels: 1 segment, then the windows of 64 that ACKs grant.
func TestSenderWindow(t *testing.T) {
	msg := message(classSA, 199*200+7) // 200 segments
	s := newSender(t, msg, rmpp.SenderConfig{})
	wantSegments(t, s, start, 1, 1)
	wantNothing(t, s, start)
	s.Receive(start, ack(msg, 1, 65))
	wantSegments(t, s, start, 2, 65)
	s.Receive(start, ack(msg, 65, 129))
	wantSegments(t, s, start, 66, 129)
	s.Receive(start, ack(msg, 100, 129)) // an ACK in the middle opens nothing
	wantNothing(t, s, start)
	s.Receive(start, ack(msg, 65, 129)) // and a late one takes nothing back
	wantNothing(t, s, start)
	s.Receive(start, ack(msg, 129, 193))
	wantSegments(t, s, start, 130, 193)
	s.Receive(start, ack(msg, 193, 257))
	wantSegments(t, s, start, 194, 200)
	wantUnfinished(t, s)
	s.Receive(start, ack(msg, 200, 257))
	wantSuccess(t, s)
	wantNothing(t, s, start)
	if !s.Deadline().IsZero() {
		t.Errorf("deadline %v after the end", s.Deadline())
	}
}

func TestSenderResends(t *testing.T) {
	msg := message(classSA, 10*200)
	s := newSender(t, msg, rmpp.SenderConfig{Retries: 2})
	if !s.Deadline().IsZero() {
		t.Errorf("deadline %v before anything was sent", s.Deadline())
	}
	now := start
	wantSegments(t, s, now, 1, 1)
	now = now.Add(time.Second)
	s.Receive(now, ack(msg, 1, 5))
	wantSegments(t, s, now, 2, 5)

	// 2 s after the transmission, and not earlier, back to the segment after the
	// last acknowledged one.
	if want := now.Add(2 * time.Second); !s.Deadline().Equal(want) {
		t.Fatalf("deadline %v, want %v", s.Deadline(), want)
	}
	wantNothing(t, s, s.Deadline().Add(-1))
	now = s.Deadline()
	wantSegments(t, s, now, 2, 5)
	now = now.Add(time.Second)
	s.Receive(now, ack(msg, 3, 5)) // progress: 2 s and 2 retries again
	if want := now.Add(2 * time.Second); !s.Deadline().Equal(want) {
		t.Fatalf("deadline %v, want %v", s.Deadline(), want)
	}
	now = s.Deadline()
	wantSegments(t, s, now, 4, 5)
	// The ACK of what was sent before the time-out ends the resending.
	s.Receive(now, ack(msg, 3, 9))
	wantSegments(t, s, now, 6, 9)
	now = s.Deadline()
	var pkt [mad.Size]byte
	if !s.Next(now, &pkt) || rmpp.ParseHeader(&pkt).Data1 != 4 {
		t.Fatal("segment 4 is not sent again")
	}
	s.Receive(now, ack(msg, 5, 9))
	wantSegments(t, s, now, 6, 9)

	for range 2 {
		now = s.Deadline()
		wantSegments(t, s, now, 6, 9)
		wantUnfinished(t, s)
	}
	now = s.Deadline()
	wantPacket(t, s, now, mad.RMPPTypeAbort, 126, 0, 0)
	if abort := wantAbort(t, s, mad.RMPPStatusTooManyRetries, true, 5); !abort.Timeout() {
		t.Error("too many retries is not a time-out")
	}
	wantNothing(t, s, now.Add(time.Hour))
	s.Receive(now, ack(msg, 9, 12)) // too late
	wantAbort(t, s, mad.RMPPStatusTooManyRetries, true, 5)
}

// ACKs that overtake each other neither close the window nor go back.
func TestSenderOvertakenACK(t *testing.T) {
	msg := message(classSA, 10*200)
	s := newSender(t, msg, rmpp.SenderConfig{FirstWindow: 5, Retries: 1})
	wantSegments(t, s, start, 1, 5)
	s.Receive(start, ack(msg, 3, 8))
	wantSegments(t, s, start, 6, 8)
	s.Receive(start, ack(msg, 3, 5))
	s.Receive(start, ack(msg, 1, 9))
	wantNothing(t, s, start)
	wantSegments(t, s, s.Deadline(), 4, 8)
	s.Receive(start, ack(msg, 8, 12))
	wantSegments(t, s, start, 9, 10)
	s.Receive(start, ack(msg, 11, 12)) // in the window, but past the message
	wantAbort(t, s, mad.RMPPStatusSegmentTooBig, true, 8)
}

func TestSenderAbortsWithoutRetries(t *testing.T) {
	s := newSender(t, message(classSA, 10), rmpp.SenderConfig{Timeout: 100 * time.Millisecond})
	wantSegments(t, s, start, 1, 1)
	wantPacket(t, s, start.Add(100*time.Millisecond), mad.RMPPTypeAbort, mad.RMPPStatusTooManyRetries, 0, 0)
	wantAbort(t, s, mad.RMPPStatusTooManyRetries, true, 0)
}

// A receiver may close its window; it is asked again with a segment it knows.
func TestSenderClosedWindow(t *testing.T) {
	msg := message(classSA, 3*200)
	s := newSender(t, msg, rmpp.SenderConfig{Retries: 1})
	wantSegments(t, s, start, 1, 1)
	s.Receive(start, ack(msg, 1, 1))
	wantNothing(t, s, start)
	now := s.Deadline()
	wantSegments(t, s, now, 1, 1)
	s.Receive(now, ack(msg, 1, 3))
	wantSegments(t, s, now, 2, 3)
}

// State: of 10 segments, 1 to 3 are acknowledged and 4 to 5 are sent.
func TestSenderACKRules(t *testing.T) {
	msg := message(classSA, 10*200)
	header := func(h mad.RMPPHeader) *[mad.Size]byte { return packet(msg, h, nil) }
	tests := []struct {
		name   string
		pkt    *[mad.Size]byte
		abort  mad.RMPPStatus // 0: goes on
		sends  int            // packets, if it goes on
		silent bool           // the peer's own STOP or ABORT is not answered
	}{
		{name: "same again", pkt: ack(msg, 3, 5)},
		{name: "acknowledges more", pkt: ack(msg, 4, 5)},
		{name: "opens the window", pkt: ack(msg, 3, 6), sends: 1},
		{name: "acknowledges and opens past the end", pkt: ack(msg, 5, 69), sends: 5},
		{name: "opens as far as can be", pkt: ack(msg, 5, 1<<32-1), sends: 5},
		{name: "overtaken, smaller window", pkt: ack(msg, 3, 4)},
		{name: "overtaken, smaller segment", pkt: ack(msg, 2, 6)},
		{name: "segment 0 opens nothing now", pkt: ack(msg, 0, 9)},
		{name: "NewWindowLast below the segment", pkt: ack(msg, 4, 3), abort: mad.RMPPStatusWindowTooSmall},
		{name: "segment past the window", pkt: ack(msg, 6, 9), abort: mad.RMPPStatusSegmentTooBig},
		{name: "segment past the message", pkt: ack(msg, 11, 65), abort: mad.RMPPStatusSegmentTooBig},
		{name: "ACK with a status", pkt: header(mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, RMPPStatus: 1, Data1: 5, Data2: 9}), abort: mad.RMPPStatusBadStatus},
		{name: "type 0", pkt: header(mad.RMPPHeader{RMPPType: 0}), abort: mad.RMPPStatusBadType},
		{name: "type 5", pkt: header(mad.RMPPHeader{RMPPType: 5}), abort: mad.RMPPStatusBadType},
		{name: "version 2", pkt: header(mad.RMPPHeader{RMPPVersion: 2, RMPPType: mad.RMPPTypeACK, Data1: 5, Data2: 9}), abort: mad.RMPPStatusBadVersion},
		{name: "DATA is for the receiver of a response", pkt: segments(msg)[0]},
		{name: "STOP", pkt: header(mad.RMPPHeader{RMPPType: mad.RMPPTypeStop, RMPPStatus: 1}), abort: mad.RMPPStatusResourcesExhausted, silent: true},
		{name: "STOP with a status of ABORT", pkt: header(mad.RMPPHeader{RMPPType: mad.RMPPTypeStop, RMPPStatus: 118}), abort: mad.RMPPStatusBadStatus},
		{name: "STOP with status 0", pkt: header(mad.RMPPHeader{RMPPType: mad.RMPPTypeStop}), abort: mad.RMPPStatusBadStatus},
		{name: "ABORT with the status of STOP", pkt: header(mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: 1}), abort: mad.RMPPStatusBadStatus},
		{name: "ABORT with a reserved status", pkt: header(mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: 117}), abort: mad.RMPPStatusBadStatus},
		{name: "ABORT of the class", pkt: header(mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: 130}), abort: 130, silent: true},
	}
	for status := mad.RMPPStatusTimeTooLong; status <= mad.RMPPStatusUnspecified; status++ {
		tests = append(tests, struct {
			name   string
			pkt    *[mad.Size]byte
			abort  mad.RMPPStatus
			sends  int
			silent bool
		}{"ABORT, " + status.String(), header(mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: status}), status, 0, true})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSender(t, msg, rmpp.SenderConfig{FirstWindow: 3})
			wantSegments(t, s, start, 1, 3)
			s.Receive(start, ack(msg, 3, 5))
			wantSegments(t, s, start, 4, 5)
			s.Receive(start, tt.pkt)
			switch {
			case tt.abort == 0:
				wantUnfinished(t, s)
				if got := pull(s, start); len(got) != tt.sends {
					t.Errorf("%d packets, want %d", len(got), tt.sends)
				}
			case tt.silent:
				wantAbort(t, s, tt.abort, false, 3)
				wantNothing(t, s, start)
			default:
				wantAbort(t, s, tt.abort, true, 3)
				wantPacket(t, s, start, mad.RMPPTypeAbort, tt.abort, 0, 0)
			}
		})
	}
}

// RRespTime as RespTimeValue of ClassPortInfo: 4.096 us * 2^n.
func TestSenderHonoursResponseTime(t *testing.T) {
	tests := []struct {
		code uint8
		want time.Duration
	}{
		{0, 2 * time.Second},   // what the kernel sends; 4.096 us is no time to wait
		{18, 2 * time.Second},  // 1.07 s
		{31, 2 * time.Second},  // no value
		{19, 2147483648},       // 2.147 s
		{20, 4294967296},       // 4.295 s
		{30, 40 * time.Second}, // 73 minutes, too long to believe
	}
	for _, tt := range tests {
		msg := message(classSA, 3*200)
		s := newSender(t, msg, rmpp.SenderConfig{})
		wantSegments(t, s, start, 1, 1)
		s.Receive(start, packet(msg, mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, RRespTime: tt.code, Data1: 1, Data2: 65}, nil))
		wantSegments(t, s, start, 2, 3)
		if got := s.Deadline().Sub(start); got != tt.want {
			t.Errorf("code %d: waits %v, want %v", tt.code, got, tt.want)
		}
	}
}

func TestAnnouncedResponseTime(t *testing.T) {
	tests := []struct {
		time time.Duration
		want uint8
	}{
		{0, 31},
		{1, 0},
		{4096, 0},
		{4097, 1},
		{8192, 1},
		{time.Second, 18}, // 1.07 s
		{2 * time.Second, 19},
		{4096 << 30, 30},
		{10 * time.Hour, 30},
	}
	for _, tt := range tests {
		msg := message(classSA, 10)
		s := newSender(t, msg, rmpp.SenderConfig{ResponseTime: tt.time})
		r := rmpp.NewReceiver(rmpp.ReceiverConfig{ResponseTime: tt.time})
		r.Receive(start, segments(msg)[0], func([]byte) {})
		for _, m := range []machine{s, r} {
			if got := pull(m, start)[0].RRespTime; got != tt.want {
				t.Errorf("%T, %v: code %d, want %d", m, tt.time, got, tt.want)
			}
		}
	}
}

func TestSenderAbort(t *testing.T) {
	tests := []struct {
		status, want mad.RMPPStatus
		typ          mad.RMPPType
	}{
		{mad.RMPPStatusResourcesExhausted, mad.RMPPStatusResourcesExhausted, mad.RMPPTypeStop},
		{mad.RMPPStatusUnspecified, mad.RMPPStatusUnspecified, mad.RMPPTypeAbort},
		{150, 150, mad.RMPPTypeAbort},
		{mad.RMPPStatusOK, mad.RMPPStatusUnspecified, mad.RMPPTypeAbort},
		{77, mad.RMPPStatusUnspecified, mad.RMPPTypeAbort},
	}
	for _, tt := range tests {
		msg := message(classSA, 10)
		s := newSender(t, msg, rmpp.SenderConfig{ResponseWindow: 1})
		wantSegments(t, s, start, 1, 1)
		s.Abort(tt.status)
		wantAbort(t, s, tt.want, true, 0)
		wantPacket(t, s, start, tt.typ, tt.want, 0, 0)
		s.Abort(mad.RMPPStatusTimeTooLong)
		s.Receive(start, ack(msg, 1, 65))
		wantAbort(t, s, tt.want, true, 0)
		wantNothing(t, s, start)
	}
}

// A MAD that is no RMPP packet, or has version 0, does not touch a transfer.
func TestSenderIgnoresInactive(t *testing.T) {
	msg := message(classSA, 10)
	s := newSender(t, msg, rmpp.SenderConfig{})
	wantSegments(t, s, start, 1, 1)
	inactive, versionZero := *ack(msg, 1, 65), *ack(msg, 1, 65)
	inactive[26] &^= 1
	versionZero[24] = 0
	s.Receive(start, &inactive)
	s.Receive(start, &versionZero)
	wantUnfinished(t, s)
	wantNothing(t, s, start)
}
