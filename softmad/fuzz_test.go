package softmad

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// FuzzReceive gives a core with agents of all kinds any bytes as MADs. Whatever
// comes, what it keeps is gone a minute after the last of it.
func FuzzReceive(f *testing.F) {
	get := vendorMAD(mad.MethodGet, 1)
	multi := vendorMAD(mad.MethodGetMulti, 2)
	response := asResponse(vendorMAD(mad.MethodGetMulti, 3<<32|1))
	f.Add(get)
	f.Add(append(segment(multi, 1, 440, mad.RMPPFlagFirst), segment(multi, 2, 220, mad.RMPPFlagLast)...))
	f.Add(segment(response, 1, 30, mad.RMPPFlagFirst|mad.RMPPFlagLast))
	ack := segment(response, 1, 65, 0)
	ack[25] = byte(mad.RMPPTypeACK)
	f.Add(ack)
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := newRig(t, Config{MaxMessage: 1 << 16})
		r.vendor(port.RMPPNone, mad.MethodGet)
		r.vendor(port.RMPPUser, mad.MethodGetTable)
		kernel := r.vendor(port.RMPPKernel, mad.MethodGetMulti)
		long := append(vendorMAD(mad.MethodGetMulti, 1), make([]byte, 1000)...)
		long[26] = 1
		r.mustPost(port.Message{Agent: kernel.id, Addr: peer, Timeout: time.Second, Data: long})
		for len(stream) > 0 {
			n := min(len(stream), mad.Size)
			r.arrive(peer, 0xffff, stream[:n])
			stream = stream[n:]
			r.turn(time.Millisecond)
			for m := r.got(); m != nil; m = r.got() {
				if len(m.Data) != mad.HeaderSize && len(m.Data) < mad.OffRMPPData {
					t.Fatalf("message of %d bytes", len(m.Data))
				}
			}
		}
		r.turn(time.Minute)
		r.checkEmpty()
	})
}

// checkEmpty fails if anything waits for a time that will not come.
func (r *rig) checkEmpty() {
	r.Helper()
	if len(r.f.sends) != 0 || !r.timers.next().IsZero() {
		r.Fatalf("%d sends and a timer at %v are left", len(r.f.sends), r.timers.next())
	}
	for _, a := range r.f.slots {
		if a != nil && len(a.transfers) != 0 {
			r.Fatalf("%d transfers of agent %d are left", len(a.transfers), a.id)
		}
	}
}

// FuzzOperations runs a program of operations and checks that each request of an
// agent without RMPP ends exactly once, with the answer or the time-out, unless
// its agent is unregistered first.
func FuzzOperations(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 1, 5, 2, 0, 1, 5, 3, 0, 1, 5, 4, 60, 1, 6, 5, 0})
	f.Add([]byte{0, 1, 0, 0, 1, 7, 1, 8, 1, 9, 2, 1, 2, 0, 2, 1, 4, 255, 3, 1, 1, 7})
	f.Fuzz(func(t *testing.T, program []byte) {
		r := newRig(t, Config{})
		waiting := make(map[uint64]port.AgentID) // by transaction id as transmitted
		var wires []Wire
		drain := func() {
			wires = append(wires, r.sent()...)
			for m := r.got(); m != nil; m = r.got() {
				tid := binary.BigEndian.Uint64(m.Data[mad.OffTID:])
				if id, ok := waiting[tid]; !ok || id != m.Agent {
					t.Fatalf("message for agent %d, transaction id %#x: nothing waits for it", m.Agent, tid)
				}
				delete(waiting, tid)
			}
		}
		for len(program) >= 2 {
			op, arg := program[0], program[1]
			program = program[2:]
			id := port.AgentID(arg % 4)
			switch op % 6 {
			case 0:
				if r.f.freeSlot() >= 0 {
					r.vendor(port.RMPPNone)
				}
			case 1: // a request with few transaction ids, so that some are duplicates
				timeout := time.Duration(arg>>4) * 10 * time.Millisecond
				m := port.Message{
					Agent: id, Addr: peer, Timeout: timeout, Retries: int(arg >> 6),
					Data: vendorMAD(mad.MethodGet, uint64(arg>>2&3)),
				}
				if r.post(m) == nil && timeout > 0 {
					waiting[uint64(r.f.slots[id].hiTID)<<32|uint64(arg>>2&3)] = id
				}
			case 2: // an answer to something transmitted, perhaps long ago
				if len(wires) > 0 {
					w := &wires[int(arg)%len(wires)]
					r.arrive(peer, w.PKey, asResponse(w.MAD[:]))
				}
			case 3:
				if a := r.f.slots[id]; a != nil {
					r.unregister(a)
					for tid, owner := range waiting {
						if owner == id {
							delete(waiting, tid)
						}
					}
				}
			case 4:
				r.turn(time.Duration(arg) * time.Millisecond)
			case 5:
				r.closeFile(r.f, port.ErrClosed)
				r.f.dead = nil
				clear(waiting)
			}
			drain()
		}
		r.turn(time.Minute)
		drain()
		if len(waiting) != 0 {
			t.Fatalf("%d requests did not end: %v", len(waiting), waiting)
		}
		r.checkEmpty()
	})
}
