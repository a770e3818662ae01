package server

import (
	"encoding/binary"
	"iter"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sma"
	"github.com/ibsm/ibsm/topo"
)

// search gives the records of a kind that agree with each component of the
// query, but no more than one above the limit.
func (s *Server) search(k *kind, q *query) records {
	found := records{size: k.layout.Size}
	if k.list == nil {
		return found
	}
	limit := s.limit(q)
	ofSwitches, ofOthers := k.filter(s, q, q.mask), k.filter(s, q, q.mask&^k.switchOnly)
	for p := range s.endPorts(q) {
		f := ofOthers
		if p.Node.IsSwitch() {
			f = ofSwitches
		}
		agent := sma.Agent{Subnet: s.sub, State: sma.AsModelled{Subnet: s.sub}, End: p, In: p.Num}
		if k.in != nil {
			agent.In = k.in(s, p)
		}
		for rec, modifier := range k.list(s, q, p) {
			row := found.add(rec)
			if !k.fill(row, &agent, modifier) || !f.agrees(row) {
				found.drop()
			} else if found.count > limit {
				return found
			}
		}
	}
	return found
}

// limit is the number of records that an answer may have.
func (s *Server) limit(q *query) int {
	if q.table {
		return s.cfg.MaxRecords
	}
	return 1
}

// fill puts the SM attributes into a record, as the agent gives them. It tells
// whether the agent has them.
func (k *kind) fill(row []byte, agent *sma.Agent, modifier uint32) bool {
	var data [mad.SMPDataSize]byte
	for _, h := range k.held {
		if agent.Get(h.attribute, modifier, &data) != mad.StatusOK {
			return false
		}
		copy(row[h.from:h.to], data[:])
	}
	return true
}

// endPorts gives the end ports that the requester may know of, only that of the
// first component if the query has it.
func (s *Server) endPorts(q *query) iter.Seq[*topo.Port] {
	return func(yield func(*topo.Port) bool) {
		if q.has(1) {
			if p, ok := s.sub.PortByLID(mad.LID(binary.BigEndian.Uint16(q.record))); ok && s.shows(q, p) {
				yield(p)
			}
			return
		}
		for p := range s.sub.EndPorts() {
			if s.shows(q, p) && !yield(p) {
				return
			}
		}
	}
}

// shows tells whether an end port is one that the subnet manager has reached and
// that shares a partition with the requester (IBA 15.4.1.2).
func (s *Server) shows(q *query, p *topo.Port) bool { return p.SMLID != 0 && share(q.from, p) }

// fromSM is the port of an end port's node that requests of the subnet manager
// come by.
func (s *Server) fromSM(p *topo.Port) uint8 {
	if !p.Node.IsSwitch() {
		return p.Num
	}
	hops, err := s.sub.Walk(s.sub.SM, p.LID)
	if err != nil || len(hops) == 0 {
		return 0
	}
	return hops[len(hops)-1].To.Num
}

// filter compares the components of a query.
type filter struct {
	want []byte
	bits []byte // that are compared
	sets []byte // those of them that may be 1 where want has 0
}

// filter makes the filter of the components in mask. A LID that identifies a
// record may be any of its port's.
func (k *kind) filter(s *Server, q *query, mask uint64) filter {
	size := k.layout.Size
	f := filter{want: append([]byte(nil), q.record[:size]...), bits: make([]byte, size), sets: make([]byte, size)}
	for i, component := range k.components {
		if mask>>i&1 == 0 {
			continue
		}
		merge(f.bits, component)
		if k.sets>>i&1 != 0 && q.modifier&matchSets != 0 {
			merge(f.sets, component)
		}
	}
	for _, at := range k.lids {
		if p, ok := s.sub.PortByLID(mad.LID(binary.BigEndian.Uint16(f.want[at:]))); ok {
			binary.BigEndian.PutUint16(f.want[at:], uint16(p.LID))
		}
	}
	return f
}

// chosen gives a record that has the values of a query's components, and is
// otherwise 0.
func (k *kind) chosen(q *query) []byte {
	rec := make([]byte, k.layout.Size)
	for i, component := range k.components {
		if q.mask>>i&1 != 0 {
			merge(rec, component)
		}
	}
	for i := range rec {
		rec[i] &= q.record[i]
	}
	return rec
}

// merge sets the bits of more in bits.
func merge(bits, more []byte) {
	for i, b := range more {
		bits[i] |= b
	}
}

func (f *filter) agrees(row []byte) bool {
	for i, bits := range f.bits {
		if bits == 0 {
			continue
		}
		differ := (row[i] ^ f.want[i]) & bits
		if differ&^(f.sets[i]&row[i]) != 0 {
			return false
		}
	}
	return true
}
