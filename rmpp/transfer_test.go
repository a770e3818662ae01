package rmpp_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/rmpp"
)

// Every length around the segment borders, over a good link.
func TestTransfer(t *testing.T) {
	for _, class := range []byte{classSA, classDevMgt, classVendor, 0x10, 0x12, 0x4f} {
		size := 256 - mad.ClassHeaderLen(mad.Class(class))
		for _, n := range []int{0, 1, size - 1, size, size + 1, 2 * size, 65 * size, 65*size + 1, 130 * size} {
			msg := message(class, n)
			s := newSender(t, msg, rmpp.SenderConfig{})
			r := rmpp.NewReassembler(rmpp.ReceiverConfig{}, nil)
			exchange(s, r)
			wantSuccess(t, s)
			wantSuccess(t, r)
			if !bytes.Equal(r.Message()[36:], msg[36:]) {
				t.Errorf("class %#x, %d bytes: message differs", class, n)
			}
		}
	}
}

// exchange passes packets until neither side has any.
func exchange(s *rmpp.Sender, r *rmpp.Reassembler) {
	var pkt [mad.Size]byte
	for more := true; more; {
		more = false
		for s.Next(start, &pkt) {
			r.Receive(start, &pkt)
			more = true
		}
		for r.Next(start, &pkt) {
			s.Receive(start, &pkt)
			more = true
		}
	}
}

// A request and a response of several segments each (GetMulti, GetMultiResp):
// the requester's ACK of segment 0 turns the direction round.
func TestDoubleSided(t *testing.T) {
	const grant = 3
	request, response := message(classSA, 2*200), message(classSA, 7*200)
	request[mad.OffMethod], response[mad.OffMethod] = 0x14, 0x94

	out := newSender(t, request, rmpp.SenderConfig{ResponseWindow: grant})
	atServer := rmpp.NewReassembler(rmpp.ReceiverConfig{}, nil)
	var pkt [mad.Size]byte
	for _, n := range []uint32{1, 2} {
		if !out.Next(start, &pkt) || rmpp.ParseHeader(&pkt).Data1 != n {
			t.Fatalf("segment %d is not sent", n)
		}
		atServer.Receive(start, &pkt)
		if !atServer.Next(start, &pkt) || pkt[mad.OffMethod] != 0x94 {
			t.Fatalf("no ACK of segment %d", n)
		}
		out.Receive(start, &pkt)
	}
	lastACK := pkt
	wantSuccess(t, out)
	wantSuccess(t, atServer)
	if atServer.Granted() != 0 {
		t.Fatal("a window was granted before the direction is turned")
	}
	atServer.Receive(start, ack(response, 1, 65))
	if atServer.Granted() != 0 {
		t.Fatal("an ACK of segment 1 granted a window")
	}
	// The ACK of segment 0 is lost; the last ACK comes again and draws another.
	wantPacket(t, out, start, mad.RMPPTypeACK, 0, 0, grant)
	out.Receive(start, ack(request, 1, 65)) // a late one does not
	wantNothing(t, out, start)
	out.Receive(start, &lastACK)
	if !out.Next(start, &pkt) || pkt[mad.OffMethod] != 0x14 {
		t.Fatal("the direction is not turned round again")
	}
	atServer.Receive(start, &pkt)
	if got := atServer.Granted(); got != grant {
		t.Fatalf("granted %d, want %d", got, grant)
	}
	wantNothing(t, atServer, start)

	back := newSender(t, response, rmpp.SenderConfig{FirstWindow: atServer.Granted()})
	atClient := rmpp.NewReassembler(rmpp.ReceiverConfig{FirstWindow: grant}, nil)
	for n := uint32(1); n <= grant; n++ {
		if !back.Next(start, &pkt) {
			t.Fatalf("segment %d is not sent in the window granted", n)
		}
		atClient.Receive(start, &pkt)
	}
	wantNothing(t, back, start)
	if !atClient.Next(start, &pkt) {
		t.Fatal("no ACK at the end of the window granted")
	}
	if h := rmpp.ParseHeader(&pkt); h.Data1 != grant || h.Data2 != grant+64 {
		t.Fatalf("ACK %+v", h)
	}
	back.Receive(start, &pkt)
	exchange(back, atClient)
	wantSuccess(t, back)
	if !bytes.Equal(atClient.Message()[36:], response[36:]) {
		t.Error("response differs")
	}
}

// A kernel's responder that got no grant starts with one segment; the grant may
// come later as an ACK of segment 0.
func TestLateGrant(t *testing.T) {
	msg := message(classSA, 5*200)
	s := newSender(t, msg, rmpp.SenderConfig{})
	wantSegments(t, s, start, 1, 1)
	s.Receive(start, ack(msg, 0, 4))
	wantSegments(t, s, start, 2, 4)
}

// Segments of the window granted may overtake segment 1, whose headers are
// those of the message.
func TestOvertakenFirstSegment(t *testing.T) {
	msg := message(classSA, 3*200)
	segs := segments(msg)
	r := rmpp.NewReassembler(rmpp.ReceiverConfig{FirstWindow: 3}, nil)
	r.Receive(start, segs[2])
	r.Receive(start, segs[1])
	wantUnfinished(t, r)
	wantNothing(t, r, start)
	r.Receive(start, segs[0])
	wantSuccess(t, r)
	if got := r.Message(); !bytes.Equal(got[:56], segs[0][:56]) || !bytes.Equal(got[56:], msg[56:]) {
		t.Error("message differs")
	}
}

// link is a list of packets under way, in one direction.
type link [][mad.Size]byte

func (l *link) take(i int) [mad.Size]byte {
	pkt := (*l)[i]
	*l = append((*l)[:i], (*l)[i+1:]...)
	return pkt
}

// faultyTransfer reads ops as the faults of a link between a Sender and a
// Receiver: packets are delivered, lost, duplicated and reordered, and time-outs
// run out. When the link works again, the message must arrive as it was sent.
func faultyTransfer(t *testing.T, msg []byte, window, firstWindow uint32, ops []byte) {
	rest := msg[mad.ClassHeaderLen(mad.Class(msg[mad.OffClass])):] // not delivered yet
	s := newSender(t, msg, rmpp.SenderConfig{Retries: 1 << 30, FirstWindow: firstWindow})
	r := rmpp.NewReceiver(rmpp.ReceiverConfig{
		Window: window, FirstWindow: firstWindow,
		Timeout: 1 << 60, Memory: 1 << 60,
	})
	now := start
	var forth, back link
	transmit := func(m machine, l *link) bool {
		var pkt [mad.Size]byte
		ok := m.Next(now, &pkt)
		if ok {
			*l = append(*l, pkt)
		}
		return ok
	}
	arrive := func(l *link, i int) {
		pkt := l.take(i)
		if l == &back {
			s.Receive(now, &pkt)
			return
		}
		r.Receive(now, &pkt, func(payload []byte) {
			if !bytes.HasPrefix(rest, payload) {
				t.Fatalf("%d bytes before the end, what is delivered differs from what was sent", len(rest))
			}
			rest = rest[len(payload):]
		})
	}
	check := func() (done bool) {
		done, err := s.Done()
		received, rerr := r.Done()
		if err != nil || rerr != nil {
			t.Fatalf("sender: %v, receiver: %v", err, rerr)
		}
		if done && !received {
			t.Fatal("the sender is done before the receiver")
		}
		return done
	}
	for _, op := range ops {
		var m machine = s
		l := &forth
		if op&1 != 0 {
			m, l = r, &back
		}
		at := int(op >> 3)
		switch kind := op >> 1 & 3; {
		case kind == 0:
			transmit(m, l)
		case kind == 1: // wait for the sender's time-out
			if d := s.Deadline(); !d.IsZero() {
				now = d
			}
		case len(*l) == 0:
		case kind == 2: // perhaps out of order
			arrive(l, at%len(*l))
		case at&1 != 0:
			*l = append(*l, (*l)[at%len(*l)])
		default:
			l.take(at % len(*l))
		}
		check()
	}
	for round := 0; !check(); round++ { // each ends a window or a time-out
		if round > len(msg)+100 {
			t.Fatal("no progress on a good link")
		}
		for transmit(s, &forth) {
		}
		idle := len(forth) == 0
		for len(forth) > 0 {
			arrive(&forth, 0)
			transmit(r, &back)
		}
		idle = idle && len(back) == 0
		for len(back) > 0 {
			arrive(&back, 0)
		}
		if idle {
			now = s.Deadline()
		}
	}
	if len(rest) > 0 {
		t.Fatalf("both are done, %d bytes before the end", len(rest))
	}
}

func TestFaultyTransfer(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		ops := make([]byte, 3000)
		for i := range ops {
			ops[i] = byte(rnd.Uint32())
			if ops[i]>>1&3 == 1 && rnd.IntN(20) > 0 {
				ops[i] &^= 6 // fewer time-outs: transmit
			}
		}
		class := []byte{classSA, classDevMgt, classVendor}[seed%3]
		msg := message(class, rnd.IntN(40000))
		window, firstWindow := 1+rnd.Uint32N(70), 1+rnd.Uint32N(5)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			faultyTransfer(t, msg, window, firstWindow, ops)
		})
	}
}

func FuzzTransfer(f *testing.F) {
	f.Add(uint8(0), uint16(0), uint8(0), uint8(0), []byte{})
	f.Add(uint8(1), uint16(1000), uint8(3), uint8(1), []byte{0, 4, 1, 5, 0, 0, 0, 12, 4, 14, 6, 2, 0, 0})
	f.Add(uint8(2), uint16(5000), uint8(64), uint8(0), []byte{0, 14, 4, 4, 1, 15, 5, 5, 0, 0, 0, 20, 12, 4, 1, 7, 2, 0})
	f.Add(uint8(0), uint16(30000), uint8(16), uint8(5), bytes.Repeat([]byte{0, 0, 0, 4, 12, 1, 5, 14, 0, 4, 6, 2}, 40))
	f.Fuzz(func(t *testing.T, classIndex uint8, length uint16, window, firstWindow uint8, ops []byte) {
		class := []byte{classSA, classDevMgt, classVendor}[classIndex%3]
		faultyTransfer(t, message(class, int(length)), uint32(window), uint32(firstWindow), ops)
	})
}

// hostile makes packets out of fuzz input: 16 bytes each.
func hostile(input []byte, class byte, visit func(wait time.Duration, pkt *[mad.Size]byte)) {
	for ; len(input) >= 16; input = input[16:] {
		var pkt [mad.Size]byte
		pkt[mad.OffClass] = class
		if input[0] >= 0xf0 {
			pkt[mad.OffClass] = input[0]
		}
		copy(pkt[24:36], input[2:14])
		visit(time.Duration(input[1])*100*time.Millisecond, &pkt)
	}
}

func FuzzReceiver(f *testing.F) {
	seed := func(headers ...mad.RMPPHeader) (input []byte) {
		for _, h := range headers {
			var pkt [mad.Size]byte
			h.RMPPVersion = 1
			h.RMPPFlags |= mad.RMPPFlagActive
			rmpp.PutHeader(&pkt, h)
			input = append(append(append(input, 0, 1), pkt[24:36]...), 0, 0)
		}
		return input
	}
	f.Add(uint8(0), uint16(1000), uint8(2), seed(
		mad.RMPPHeader{RMPPType: 1, RMPPFlags: 2, Data1: 1, Data2: 1<<32 - 1}))
	f.Add(uint8(1), uint16(1000), uint8(1), seed(
		mad.RMPPHeader{RMPPType: 1, RMPPFlags: 2, Data1: 1}, mad.RMPPHeader{RMPPType: 1, Data1: 3}, mad.RMPPHeader{RMPPType: 1, Data1: 4}))
	f.Add(uint8(2), uint16(0), uint8(9), seed(
		mad.RMPPHeader{RMPPType: 1, RMPPFlags: 2, Data1: 1}, mad.RMPPHeader{RMPPType: 1, RMPPFlags: 4, Data1: 2, Data2: 221}, mad.RMPPHeader{RMPPType: 2}))
	f.Add(uint8(0), uint16(1000), uint8(80), seed(
		mad.RMPPHeader{RMPPType: 1, RMPPFlags: 2, Data1: 1}, mad.RMPPHeader{RMPPType: 1, Data1: 1}, mad.RMPPHeader{RMPPType: 1, Data1: 3}))
	f.Fuzz(func(t *testing.T, classIndex uint8, maxData uint16, maxHeld uint8, input []byte) {
		class := []byte{classSA, classDevMgt, classVendor}[classIndex%3]
		limit := int(maxData)
		if limit == 0 {
			limit = rmpp.DefaultMaxData
		}
		r := rmpp.NewReassembler(rmpp.ReceiverConfig{MaxData: int(maxData), MaxHeld: int(maxHeld), IdleTimeout: time.Duration(maxHeld) * time.Second}, nil)
		now := start
		packets := 0
		hostile(input, class, func(wait time.Duration, pkt *[mad.Size]byte) {
			now = now.Add(wait)
			pull(r, now) // what is due by time alone
			finished, before := r.Done()
			r.Receive(now, pkt)
			packets++
			answers := 0
			var out [mad.Size]byte
			for r.Next(now, &out) {
				answers++
				h := rmpp.ParseHeader(&out)
				if out[mad.OffMethod] != pkt[mad.OffMethod]^0x80 || h.RMPPVersion != 1 || h.RMPPFlags != mad.RMPPFlagActive ||
					h.RMPPType < mad.RMPPTypeACK || h.RMPPType > mad.RMPPTypeAbort || (h.RMPPType == mad.RMPPTypeACK) != (h.RMPPStatus == 0) {
					t.Fatalf("answer % x", out[:36])
				}
			}
			if answers > 1 || answers == 1 && !rmpp.IsActive(pkt[:]) {
				t.Fatalf("%d answers to % x", answers, pkt[:36])
			}
			if done, err := r.Done(); finished && (!done || err != before) {
				t.Fatalf("the end changed from %v to %v", before, err)
			}
		})
		if msg := r.Message(); msg != nil {
			data := len(msg) - len(r.Header())
			if data > limit || data > packets*216 || cap(msg) > 8192+4*packets*256 {
				t.Fatalf("message of %d bytes, capacity %d, from %d packets with a limit of %d", data, cap(msg), packets, limit)
			}
		}
		// Left alone, it comes to rest.
		for range 2 {
			if d := r.Deadline(); !d.IsZero() {
				now = d
				pull(r, now)
			}
		}
		if !r.Deadline().IsZero() {
			t.Fatalf("still a deadline: %v", r.Deadline())
		}
	})
}

func FuzzSender(f *testing.F) {
	for _, pkt := range []*[mad.Size]byte{
		ack(message(classSA, 0), 1, 65),
		ack(message(classSA, 0), 1, 1<<32-1),
		ack(message(classSA, 0), 1<<32-1, 1<<32-1),
		ack(message(classSA, 0), 0, 1<<31),
	} {
		input := append(append([]byte{0, 0}, pkt[24:36]...), 0, 0)
		f.Add(uint16(3000), uint8(2), uint8(0), append(input, input...))
		f.Add(uint16(50000), uint8(0), uint8(3), append(input, 0, 200, 1, 2, 1, 0, 0, 0, 0, 9, 0, 0, 0, 11, 0, 0))
	}
	f.Fuzz(func(t *testing.T, length uint16, retries, responseWindow uint8, input []byte) {
		msg := message(classSA, int(length%8192))
		retries %= 8
		want := segments(msg)
		s := newSender(t, msg, rmpp.SenderConfig{Retries: int(retries), ResponseWindow: uint32(responseWindow)})
		now := start
		granted := uint32(1)
		transmit := func() {
			var out [mad.Size]byte
			for n := 0; s.Next(now, &out); n++ {
				if n > len(want) {
					t.Fatal("more packets than segments at once")
				}
				h := rmpp.ParseHeader(&out)
				switch h.RMPPType {
				case mad.RMPPTypeData:
					if h.Data1 == 0 || h.Data1 > granted || int(h.Data1) > len(want) {
						t.Fatalf("segment %d, granted %d of %d", h.Data1, granted, len(want))
					}
					w := *want[h.Data1-1]
					w[26] |= 31 << 3
					if out != w {
						t.Fatalf("segment %d differs", h.Data1)
					}
				case mad.RMPPTypeACK:
					if done, err := s.Done(); !done || err != nil || responseWindow == 0 || h.Data1 != 0 {
						t.Fatalf("ACK %+v", h)
					}
				default:
					if _, err := s.Done(); err == nil {
						t.Fatalf("%v %v without an error", h.RMPPType, h.RMPPStatus)
					}
				}
			}
		}
		transmit()
		hostile(input, classSA, func(wait time.Duration, pkt *[mad.Size]byte) {
			now = now.Add(wait)
			granted = max(granted, rmpp.ParseHeader(pkt).Data2)
			finished, before := s.Done()
			s.Receive(now, pkt)
			transmit()
			if done, err := s.Done(); finished && (!done || err != before) {
				t.Fatalf("the end changed from %v to %v", before, err)
			}
		})
		// Left alone, it ends.
		for range int(retries) + 1 {
			if d := s.Deadline(); !d.IsZero() {
				now = d
				transmit()
			}
		}
		if done, _ := s.Done(); !done || !s.Deadline().IsZero() {
			t.Fatalf("not done, deadline %v", s.Deadline())
		}
	})
}
