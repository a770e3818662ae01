package cm

import (
	"bytes"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// FuzzMachine runs a program of operations, on two Machines with a queue between
// them that loses, repeats and reorders, and gives them arbitrary MADs. After
// each step a deadline that was reached has passed. In the end all ids are
// destroyed, and nothing is left.
func FuzzMachine(f *testing.F) {
	connect := []byte{0, 0, 7, 1, 1, 1, 7, 0, 2, 0, 7, 1}
	after := func(program ...byte) { f.Add(append(bytes.Clone(connect), program...)) }
	after(5, 0, 7, 1, 6, 1, 7, 0, 9, 9)              // and disconnect
	after(5, 0, 5, 1, 7, 0, 7, 1, 6, 0, 6, 1, 9, 99) // both at once
	after(10, 0, 7, 1, 3, 1, 7, 0, 17, 1, 7, 0, 18, 0)
	after(14, 0, 1, 2, 3, 4, 13, 12, 5, 6, 7, 8)
	after(0, 0, 7, 1, 7, 0) // stale
	f.Add([]byte{0, 0, 8, 1, 3, 1, 8, 1, 7, 0, 9, 255, 4, 1, 7, 0})
	f.Add([]byte{0, 0xe0, 11, 1, 9, 60, 9, 60, 12, 0, 19, 1})
	f.Add([]byte{15, 0, 8, 1, 7, 1, 16, 1, 7, 0, 15, 2, 7, 1, 7, 0, 15, 0xe0, 9, 20, 12, 0})
	f.Fuzz(func(t *testing.T, program []byte) {
		r := &run{T: t, now: start, m: [2]*Machine{New(config(5)), New(config(7))}}
		for _, m := range r.m {
			if _, err := m.Listen(service); err != nil {
				t.Fatal(err)
			}
		}
		for len(program) >= 2 {
			n := r.step(program[0], program[1], program[2:])
			program = program[2+n:]
			r.collect()
		}
		// What the destroyed send is not delivered any more.
		for _, ids := range r.ids {
			for _, id := range ids {
				id.Destroy(r.now)
			}
		}
		for _, m := range r.m {
			if m.IDs() != 1 {
				t.Fatalf("%d ids, want the listener", m.IDs())
			}
			m.Close(r.now)
			checkTables(t, m)
		}
	})
}

// run is a run of a program.
type run struct {
	*testing.T
	now  time.Time
	m    [2]*Machine
	ids  [2][]*ID    // that a consumer knows, destroyed ones too
	wire [2][]Packet // to each Machine
}

// collect takes packets and events, as a consumer must after each call.
func (r *run) collect() {
	for i, m := range r.m {
		var p Packet
		for m.Next(&p) {
			r.wire[1-i] = append(r.wire[1-i], p)
		}
		for e, ok := m.Event(); ok; e, ok = m.Event() {
			if e.ID == nil || e.ID.destroyed {
				r.Fatalf("event %v of id %+v", e.Type, e.ID)
			}
			if e.Type == EventREQReceived || e.Type == EventSIDRREQReceived {
				r.ids[i] = append(r.ids[i], e.ID)
			}
		}
		if d := m.Deadline(); !d.IsZero() && !d.After(r.now) {
			m.Expire(r.now)
			if d := m.Deadline(); !d.IsZero() && !d.After(r.now) {
				r.Fatalf("the deadline stays %v before now", r.now.Sub(d))
			}
		}
	}
}

// step does an operation, and tells how much of the rest it used.
func (r *run) step(op, arg byte, rest []byte) int {
	side := int(arg & 1)
	from := mad.AddressVector{LID: mad.LID(7 - 2*side), QPN: 1}
	// An id of the side, most often the newest.
	id := func() *ID {
		if n := len(r.ids[side]); n > 0 {
			return r.ids[side][n-1-int(arg>>4)%n]
		}
		return r.m[side].NewID()
	}()
	if r.m[side].ids[id.localID] == id && len(r.ids[side]) == 0 {
		r.ids[side] = append(r.ids[side], id)
	}
	switch op % 20 {
	case 0: // a REQ of few queue pairs, so that some are stale
		req := request()
		if side == 1 {
			req.Primary = path(7, 5)
		}
		req.QPN, req.MaxCMRetries = uint32(arg>>1&3), arg>>5
		fresh := r.m[side].NewID()
		r.ids[side] = append(r.ids[side], fresh)
		_ = fresh.Connect(r.now, req)
	case 1:
		_ = id.Reply(r.now, &Reply{QPN: uint32(arg >> 1 & 3)})
	case 2:
		_ = id.ReadyToUse(r.now, nil)
	case 3:
		_ = id.Acknowledge(r.now, &Receipt{ServiceTimeout: arg, Delay: arg&2 != 0})
	case 4:
		_ = id.Reject(r.now, &Rejection{Reason: mad.RejectReason(arg >> 1)})
	case 5:
		_ = id.Disconnect(r.now, nil)
	case 6:
		_ = id.ReplyDisconnect(r.now, nil)
	case 7, 8: // the oldest or the newest on the wire arrives, and 8 keeps it
		if w := r.wire[side]; len(w) > 0 {
			i := 0
			if arg&2 != 0 {
				i = len(w) - 1
			}
			p := w[i]
			if op%20 == 7 {
				r.wire[side] = append(w[:i:i], w[i+1:]...)
			}
			r.m[side].Receive(r.now, from, p.PKey, &p.MAD)
		}
	case 9:
		r.now = r.now.Add(time.Duration(arg) * 100 * time.Millisecond)
	case 10:
		_ = id.LoadAlternatePath(r.now, &AlternatePath{Path: path(mad.LID(5+2*side), mad.LID(7-2*side))})
	case 11: // lost
		r.wire[side] = nil
	case 12:
		id.Destroy(r.now)
	case 13: // any bytes of a message
		var p Packet
		n := copy(p.MAD[mad.HeaderSize:], rest)
		encode(&p.MAD, Message(arg>>1)%Messages, uint64(arg), 0, raw(p.MAD[mad.HeaderSize:]))
		r.m[side].Receive(r.now, from, 0xffff, &p.MAD)
		return n
	case 14: // any bytes over the newest on the wire
		if w := r.wire[side]; len(w) > 0 {
			p := w[len(w)-1]
			n := copy(p.MAD[arg:], rest[:min(len(rest), 4)])
			r.m[side].Receive(r.now, from, p.PKey, &p.MAD)
			return n
		}
	case 15:
		fresh := r.m[side].NewID()
		r.ids[side] = append(r.ids[side], fresh)
		_ = fresh.RequestSIDR(r.now, &SIDRRequest{
			Path: path(mad.LID(5+2*side), mad.LID(7-2*side)), ServiceID: service + uint64(arg>>1&1), Timeout: time.Second, MaxCMRetries: arg >> 5,
		})
	case 16:
		_ = id.ReplySIDR(r.now, &SIDRReply{Status: mad.SIDRStatus(arg >> 1)})
	case 17:
		_ = id.ReplyAlternatePath(r.now, &AlternatePathReply{Status: mad.APStatus(arg >> 1)})
	case 18:
		_ = id.Established(r.now)
		_ = id.PathMigrated(r.now)
		for s := range QPState(5) {
			_, _ = id.QPAttr(s)
		}
	case 19:
		id.Discard(r.now)
	}
	return 0
}

// raw is a message of any bytes.
type raw []byte

func (b raw) EncodeTo(to *body) { copy(to[:], b) }
