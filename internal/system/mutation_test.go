package system

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/softmad"
)

// mutator is a link that changes what arrives, and keeps what its user then saw.
type mutator struct {
	softmad.Link
	mu      sync.Mutex
	mutate  func(packet int, b *[mad.Size]byte)
	asked   map[uint64]bool // transaction ids of the requests sent
	arrived []*[mad.Size]byte
}

func (m *mutator) Send(w *softmad.Wire) error {
	if !mad.IsResponse(w.MAD[:]) && !rmpp.IsActive(w.MAD[:]) { // it is no ACK
		m.mu.Lock()
		m.asked[tid(&w.MAD)] = true
		m.mu.Unlock()
	}
	return m.Link.Send(w)
}

func (m *mutator) Recv(w *softmad.Wire) error {
	if err := m.Link.Recv(w); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mutate(len(m.arrived), &w.MAD)
	b := w.MAD
	m.arrived = append(m.arrived, &b)
	return nil
}

// begin forgets what was before a query.
func (m *mutator) begin(mutate func(packet int, b *[mad.Size]byte)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mutate, m.asked, m.arrived = mutate, map[uint64]bool{}, nil
}

func tid(b *[mad.Size]byte) uint64 { return binary.BigEndian.Uint64(b[mad.OffTID:]) }

// answers gives what arrived in answer to the requests, by transaction id.
func (m *mutator) answers(class mad.Class) map[uint64][]*[mad.Size]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[uint64][]*[mad.Size]byte{}
	for _, b := range m.arrived {
		if b[0] == mad.BaseVersion && mad.Class(b[mad.OffClass]) == class && mad.IsResponse(b[:]) && m.asked[tid(b)] {
			all[tid(b)] = append(all[tid(b)], b)
		}
	}
	return all
}

// answers tells whether a packet says that it is the answer to a method and an
// attribute, without an error. Segments after the first need not say so: a kernel
// does not look (mad_rmpp.c, find_rmpp_recv).
func answers(b *[mad.Size]byte, method mad.Method, attr *layout.Attribute) bool {
	status := binary.BigEndian.Uint16(b[mad.OffStatus:])
	if mad.Class(b[mad.OffClass]) == mad.ClassSubnDirected {
		status &= 0x7fff // the D bit (IBA 14.2.1.2)
	}
	return status == 0 && mad.Method(b[mad.OffMethod]) == method|mad.ResponseBit &&
		binary.BigEndian.Uint16(b[mad.OffAttribute:]) == attr.ID
}

// explained tells whether the outcome of an SA query is what the packets of one
// answer say: each record stands in them at its place; and if there is no error
// they are all there. It knows nothing of the order of packets, and takes any of
// several for the same segment.
func explained(packets []*[mad.Size]byte, req sa.Request, rows [][]byte, err error) bool {
	empty := func(b *[mad.Size]byte) bool {
		return mad.Status(binary.BigEndian.Uint16(b[mad.OffStatus:])) == mad.StatusSANoRecords
	}
	if len(rows) == 0 && err == nil && req.Method == mad.MethodGetTable && slices.ContainsFunc(packets, empty) {
		return true
	}
	segments := map[uint32][]*[mad.Size]byte{}
	for _, b := range packets {
		if head := rmpp.ParseHeader(b); rmpp.IsActive(b[:]) && head.RMPPType == mad.RMPPTypeData {
			segments[head.Data1] = append(segments[head.Data1], b)
		}
	}
	for _, first := range packets {
		if !answers(first, req.Method, req.Attribute) {
			continue
		}
		distance := 8 * int(binary.BigEndian.Uint16(first[offAttributeOffset:]))
		switch {
		case !rmpp.IsActive(first[:]):
			flags := rmpp.ParseHeader(first).RMPPFlags
			cut := flags&mad.RMPPFlagActive != 0
			if !cut && flags != 0 {
				continue // a segment, and of no transfer
			}
			if explainedBySingle(first[mad.OffSAData:], distance, cut, req, rows, err) {
				return true
			}
		case slices.Contains(segments[1], first):
			if explainedBySegments(segments, distance, req, rows, err) {
				return true
			}
		}
	}
	return false
}

// explainedBySingle is about one MAD, which has no length: records of zeros are
// none, unless it was cut and so is full.
func explainedBySingle(data []byte, distance int, cut bool, req sa.Request, rows [][]byte, err error) bool {
	size := req.Attribute.Struct.Size
	if req.Method == mad.MethodGet {
		return len(rows) == 1 && bytes.Equal(rows[0], data[:size])
	}
	if distance < size {
		distance = len(data) // one record
	}
	for at := 0; at+size <= len(data); at += distance {
		row := data[at:min(at+distance, len(data))]
		switch {
		case len(bytes.Trim(row, "\x00")) == 0 && !cut:
			continue
		case len(rows) == 0:
			return err != nil
		case len(rows[0]) < size || !bytes.HasPrefix(row, rows[0]):
			return false
		}
		rows = rows[1:]
	}
	return len(rows) == 0
}

// explainedBySegments is about an answer by RMPP.
func explainedBySegments(segments map[uint32][]*[mad.Size]byte, distance int, req sa.Request, rows [][]byte, err error) bool {
	size := req.Attribute.Struct.Size
	end := 0
	for i, row := range rows {
		if at := i * distance; len(row) < size || !standsAt(segments, at, row) {
			return false
		} else {
			end = at + len(row)
		}
	}
	if err != nil {
		return true
	}
	for n, packets := range segments {
		for _, b := range packets {
			head := rmpp.ParseHeader(b)
			if head.RMPPFlags&mad.RMPPFlagLast == 0 || head.Data2 < saHeader || head.Data2 > saHeader+mad.SADataSize {
				continue
			}
			switch left := (int(n)-1)*mad.SADataSize + int(head.Data2) - saHeader - end; {
			case left < 0:
			case req.Method == mad.MethodGet && len(rows) == 1:
				return true
			case left < max(size, distance) && standsAt(segments, end, make([]byte, left)): // no record is left
				return true
			}
		}
	}
	return false
}

// standsAt tells whether bytes of an answer by RMPP are in the segments that they
// should be in.
func standsAt(segments map[uint32][]*[mad.Size]byte, at int, data []byte) bool {
	for len(data) > 0 {
		from := at % mad.SADataSize
		part := data[:min(len(data), mad.SADataSize-from)]
		if !slices.ContainsFunc(segments[uint32(at/mad.SADataSize+1)], func(b *[mad.Size]byte) bool {
			return bytes.HasPrefix(b[mad.OffSAData+from:], part)
		}) {
			return false
		}
		data, at = data[len(part):], at+len(part)
	}
	return true
}

// question is a query whose outcome can be explained.
type question struct {
	name string
	ask  func(ctx context.Context, h *rig) (records int, err error)
}

// rig is a port behind a mutator, with both clients on it.
type rig struct {
	*house
	mutator *mutator
	admin   *sa.Client
	smps    *smp.Client
}

func newRig(t *testing.T, mode port.RMPPMode) *rig {
	h := build(t, "demo", sim.Config{})
	h.serve(h.sub, mode)
	own := h.port("h2")
	link, err := h.fabric.Link(own.Node, own.Num)
	h.must(err)
	r := &rig{house: h, mutator: &mutator{Link: link}}
	r.mutator.begin(nothing)
	dev, err := softmad.NewDevice(r.mutator, softmad.Config{})
	h.must(err)
	t.Cleanup(func() { dev.Close() })
	r.admin, err = sa.NewClient(dev, sa.Config{RMPP: mode, Timeout: saTimeout, Transfer: saTransfer, Retries: 1})
	h.must(err)
	t.Cleanup(func() { r.admin.Close() })
	r.smps, err = smp.NewClient(dev, smp.Config{Timeout: smpTimeout, Retries: 1})
	h.must(err)
	t.Cleanup(func() { r.smps.Close() })
	return r
}

func nothing(int, *[mad.Size]byte) {}

// saQuestion asks the SA for all records of an attribute, or for one.
func saQuestion(req sa.Request) question {
	name := fmt.Sprintf("%v %s", req.Method, req.Attribute.Name)
	return question{name, func(ctx context.Context, r *rig) (int, error) {
		var rows [][]byte
		var err error
		for row, e := range r.admin.Rows(ctx, req) {
			if err = e; err == nil {
				rows = append(rows, bytes.Clone(row))
			}
		}
		if len(rows) == 0 && err != nil {
			return 0, err
		}
		for _, packets := range r.mutator.answers(mad.ClassSubnAdm) {
			if explained(packets, req, rows, err) {
				return len(rows), err
			}
		}
		r.t.Errorf("%s: no answer says these %d records, error %v", name, len(rows), err)
		return len(rows), err
	}}
}

// smpQuestion asks the agent of a node.
func smpQuestion(attr *layout.Attribute, class mad.Class, to mad.Addr) question {
	name := fmt.Sprintf("SubnGet %s of %v", attr.Name, to)
	return question{name, func(ctx context.Context, r *rig) (int, error) {
		data, err := r.smps.Get(ctx, to, attr, 1)
		if err != nil {
			return 0, err
		}
		for _, packets := range r.mutator.answers(class) {
			for _, b := range packets {
				if answers(b, mad.MethodGet, attr) && bytes.Equal(data, b[mad.OffSMPData:mad.OffSMPData+mad.SMPDataSize]) {
					return 1, nil
				}
			}
		}
		r.t.Errorf("%s: no answer says %x", name, data)
		return 1, nil
	}}
}

// questions has every attribute that can be read: by tables, and one record of
// some; of switches by LID and by directed route.
func questions() (all []question) {
	for _, attr := range layout.Attributes {
		switch {
		case !slices.Contains(attr.Methods, uint8(mad.MethodGet)):
		case attr.Class == uint8(mad.ClassSubnLIDRouted):
			all = append(all,
				smpQuestion(attr, mad.ClassSubnLIDRouted, mad.Addr{Kind: mad.AddrLID, LID: 9}),
				smpQuestion(attr, mad.ClassSubnDirected, mad.Addr{Kind: mad.AddrRoute, Route: mad.Route{0, 1}}))
		case slices.Contains(attr.Methods, uint8(mad.MethodGetTable)):
			all = append(all, saQuestion(sa.Request{Attribute: attr, Method: mad.MethodGetTable}))
		}
	}
	one := func(of *layout.Struct, like mad.Structure, fields ...string) {
		mask, err := sa.Mask(of, fields...)
		if err != nil {
			panic(err)
		}
		record, _ := like.AppendBinary(nil) // never fails
		all = append(all, saQuestion(sa.Request{
			Attribute: layout.AttributeOf(uint8(mad.ClassSubnAdm), of), Method: mad.MethodGet, Mask: mask, Record: record,
		}))
	}
	one(layout.ClassPortInfo, &mad.ClassPortInfo{})
	one(layout.NodeRecord, &mad.NodeRecord{LID: 3}, "LID")
	one(layout.PathRecord, &mad.PathRecord{SLID: 2, DLID: 8}, "SLID", "DLID")
	return all
}

// longestQuestion is more than a question can take: two tries, in each the time
// for a transfer and that for its end.
const longestQuestion = 2 * (saTimeout + saTransfer + rmpp.DefaultReceiveTimeout + time.Second)

// outcomes counts how questions ended.
type outcomes struct{ answered, refused int }

// pose asks a question while answers are mutated, and sees to it that it ends, and
// as the answers say.
func (r *rig) pose(q question, mutate func(packet int, b *[mad.Size]byte), n *outcomes) {
	r.mutator.begin(mutate)
	begin := time.Now()
	_, err := q.ask(r.t.Context(), r)
	if took := time.Since(begin); took > longestQuestion {
		r.t.Errorf("%s took %v", q.name, took)
	}
	if err == nil {
		n.answered++
	} else {
		n.refused++
	}
}

// Each byte of each answer is another one with a probability of 1 %. A record that
// is handed out is what the bytes say at its place; all else is refused; and the
// clients are as good as new afterwards.
func TestMutatedAnswers(t *testing.T) {
	const seed, rounds, rate = 1, 20, 0.01
	for _, mode := range rmppModes {
		t.Run(mode.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, mode.mode)
				random := rand.New(rand.NewPCG(seed, uint64(mode.mode)))
				mutate := func(_ int, b *[mad.Size]byte) {
					for i := range b {
						if random.Float64() < rate {
							b[i] = byte(random.Uint32())
						}
					}
				}
				all := questions()
				var before, during, after outcomes
				for _, q := range all {
					r.pose(q, nothing, &before)
				}
				for range rounds {
					for _, q := range all {
						r.pose(q, mutate, &during)
					}
				}
				for _, q := range all {
					r.pose(q, nothing, &after)
				}
				if after != before || before.answered < len(all)/4 {
					t.Errorf("seed %d: of %d questions, %+v before and %+v after", seed, len(all), before, after)
				}
				if during.answered < rounds || during.refused < rounds {
					t.Errorf("seed %d: %+v with mutations: nothing was tried", seed, during)
				}
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
				t.Logf("%d questions: %+v, with mutations %+v", len(all), before, during)
			})
		})
	}
}

// FuzzMutatedAnswers changes chosen bytes of chosen packets. The input is the
// number of the question, then for each change the number of the packet, the
// position in it and the new byte.
func FuzzMutatedAnswers(f *testing.F) {
	all := questions()
	for i := range all {
		f.Add([]byte{byte(i)})
		f.Add([]byte{byte(i), 0, mad.OffSAData, 0xff, 0, offAttributeOffset + 1, 1})
	}
	path := byte(slices.IndexFunc(all, func(q question) bool { return q.name == "GetTable PathRecord" }))
	for _, change := range [][]byte{
		{0, mad.OffRMPP, 0}, {0, mad.OffRMPP + 2, 2}, {1, mad.OffRMPP + 2, 4}, {1, mad.OffRMPP + 7, 3}, {2, mad.OffRMPP + 11, 21},
		{0, mad.OffTID + 7, 0}, {1, mad.OffMethod, 0x81}, {0, mad.OffStatus + 1, 1}, {2, mad.OffAttribute + 1, 0x11},
	} {
		f.Add(append([]byte{path}, change...))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) == 0 {
			return
		}
		q, changes := all[int(input[0])%len(all)], input[1:]
		mutate := func(packet int, b *[mad.Size]byte) {
			for c := range slices.Chunk(changes, 3) {
				if len(c) == 3 && int(c[0]) == packet {
					b[c[1]] = c[2]
				}
			}
		}
		for _, mode := range rmppModes {
			synctest.Test(t, func(t *testing.T) {
				newRig(t, mode.mode).pose(q, mutate, new(outcomes))
			})
		}
	})
}

// The oracle refuses what the answers do not say.
func TestExplainedCanFail(t *testing.T) {
	attr := layout.AttributeOf(uint8(mad.ClassSubnAdm), layout.PathRecord)
	req := sa.Request{Attribute: attr, Method: mad.MethodGetTable}
	data := somePaths(5)
	var rows [][]byte
	for row := range slices.Chunk(data, mad.PathRecordSize) {
		rows = append(rows, row)
	}
	wire := func(p packet) *[mad.Size]byte {
		p.MAD[mad.OffMethod] = byte(mad.MethodGetTableResp)
		binary.BigEndian.PutUint16(p.MAD[mad.OffAttribute:], attr.ID)
		return &p.MAD
	}
	var long []*[mad.Size]byte
	for _, p := range segments(8, data) {
		long = append(long, wire(p))
	}
	short := []*[mad.Size]byte{wire(single(mad.StatusOK, 8, data[:3*mad.PathRecordSize]))}
	changed := slices.Clone(rows)
	changed[1] = bytes.Clone(rows[1])
	changed[1][40]++
	swapped := slices.Clone(rows)
	swapped[0], swapped[1] = swapped[1], swapped[0]
	failed := errors.New("failed")
	for _, tt := range []struct {
		name    string
		packets []*[mad.Size]byte
		rows    [][]byte
		err     error
		want    bool
	}{
		{"all", long, rows, nil, true},
		{"some, and an error", long, rows[:2], failed, true},
		{"some, and no error", long, rows[:2], nil, false},
		{"more than there are", long, append(slices.Clone(rows), make([]byte, mad.PathRecordSize)), nil, false},
		{"a changed one", long, changed, failed, false},
		{"out of order", long, swapped, nil, false},
		{"a segment is missing", long[:1], rows, nil, false},
		{"another method", long[1:], rows, nil, false},
		{"of one MAD", short, rows[:3], nil, true},
		{"some of one MAD", short, rows[:2], nil, false},
		{"a changed one of one MAD", short, changed[:3], nil, false},
		{"nothing", nil, rows[:1], failed, false},
	} {
		if got := explained(tt.packets, req, tt.rows, tt.err); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
