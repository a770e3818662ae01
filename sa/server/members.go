package server

import (
	"encoding/binary"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// memberQuery is a request about members of multicast groups.
type memberQuery struct {
	*query
	want mad.MCMemberRecord // only the components that count; else 0
}

// memberQuery reads a request.
func (s *Server) memberQuery(in *query) (*memberQuery, mad.Status) {
	q := &memberQuery{query: in}
	q.want.DecodeFrom((*[mad.MCMemberRecordSize]byte)(kinds[mad.AttrMCMemberRecord].chosen(in)))
	if q.hasAll(mcMTU) && q.want.MTU.Bytes() == 0 || q.hasAll(mcRate) && !isRate(q.want.Rate) {
		return q, mad.StatusSAReqInvalid
	}
	return q, mad.StatusOK
}

// members gives the MCMemberRecords that agree with each component of a query, of
// groups in the requester's partitions. Who has no SM_Key gets one for each group,
// or for the one port that it names, and is not told who and how (IBA 15.4.1.2).
func (s *Server) members(in *query) (records, mad.Status) {
	found := records{size: mad.MCMemberRecordSize}
	q, status := s.memberQuery(in)
	if status != mad.StatusOK {
		return found, status
	}
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	for _, g := range s.groups.sorted() {
		if q.has(mcMGID) && q.want.MGID != g.rec.MGID || q.has(mcMLID) && q.want.MLID != g.rec.MLID ||
			!isIn(g.rec.PKey, q.from) || !g.agrees(q) || !g.inBounds(q) {
			continue
		}
		for _, rec := range s.rows(q, g) {
			if q.has(mcScope) && q.want.Scope != rec.Scope || q.has(mcJoinState) && q.want.JoinState != rec.JoinState ||
				q.has(mcProxyJoin) && q.want.ProxyJoin != rec.ProxyJoin {
				continue
			}
			if !q.trusted {
				rec.PortGID, rec.JoinState, rec.ProxyJoin = mad.GID{}, 0, false
			}
			found.add(&rec)
			if found.count > s.limit(in) {
				return found, mad.StatusOK
			}
		}
	}
	return found, mad.StatusOK
}

// rows gives the records of a group that a query can be about.
func (s *Server) rows(q *memberQuery, g *group) (rows []mad.MCMemberRecord) {
	switch {
	case q.has(mcPortGID):
		if m := g.members[q.want.PortGID.GUID()]; m != nil {
			rows = append(rows, g.record(m, s.sub.GIDPrefix))
		}
	case q.trusted:
		for _, m := range g.sorted() {
			rows = append(rows, g.record(m, s.sub.GIDPrefix))
		}
	default:
		rows = append(rows, g.rec)
	}
	return rows
}

// change reads a request to join or to leave, and finds the port that it is about.
func (s *Server) change(in *query) (*memberQuery, *topo.Port, mad.Status) {
	if !in.hasAll(mcMGID | mcPortGID | mcJoinState) {
		return nil, nil, mad.StatusSAInsufficientComponents
	}
	q, status := s.memberQuery(in)
	if status != mad.StatusOK {
		return q, nil, status
	}
	if prefix := q.want.PortGID.Prefix(); prefix != s.sub.GIDPrefix && prefix != mad.DefaultGIDPrefix {
		return q, nil, mad.StatusSAInvalidGID
	}
	p, ok := s.sub.PortByGID(q.want.PortGID)
	if !ok {
		return q, nil, mad.StatusSAReqInvalid
	}
	return q, p, mad.StatusOK
}

// granted is the answer to one who joins or leaves: the member as it is now. Its
// PortGID is as it was asked for.
func (q *memberQuery) granted(rec mad.MCMemberRecord) (records, mad.Status) {
	found := records{size: mad.MCMemberRecordSize}
	rec.PortGID = q.want.PortGID
	found.add(&rec)
	return found, mad.StatusOK
}

// join makes a port a member of a group, which it makes if there is none and the
// request says enough (IBA 15.2.5.17, o15-0.1.5 to o15-0.2.4).
func (s *Server) join(in *query) (records, mad.Status) {
	q, p, status := s.change(in)
	if status != mad.StatusOK {
		return records{}, status
	}
	if p != q.from && !share(p, q.from) || q.has(mcPKey) && q.want.PKey.Base() == 0 || q.want.JoinState == 0 {
		return records{}, mad.StatusSAReqInvalid
	}
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	g := s.groups.byMGID[q.want.MGID]
	isNew := g == nil
	if isNew {
		if g, status = s.newGroup(q, p); status != mad.StatusOK {
			return records{}, status
		}
	} else if !g.agrees(q) || !g.inBounds(q) {
		return records{}, mad.StatusSAReqInvalid
	}
	m := g.members[p.GUID]
	if !g.carriedBy(p) || !isIn(g.rec.PKey, p) || m != nil && !g.mayChange(m, q.from) {
		return records{}, mad.StatusSAReqInvalid
	}
	if isNew {
		s.groups.add(g)
	}
	if m == nil {
		m = &member{port: p, proxy: p != q.from}
		g.members[p.GUID] = m
	}
	m.state |= q.want.JoinState
	return q.granted(g.record(m, s.sub.GIDPrefix))
}

// leave ends ways of being a member (IBA o15-0.1.14). A group ends with its last
// full member.
func (s *Server) leave(in *query) (records, mad.Status) {
	q, p, status := s.change(in)
	if status != mad.StatusOK {
		return records{}, status
	}
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	g := s.groups.byMGID[q.want.MGID]
	if g == nil {
		return records{}, mad.StatusSAReqInvalid
	}
	m := g.members[p.GUID]
	if m == nil || q.want.JoinState == 0 || q.want.JoinState&^m.state != 0 || !g.mayChange(m, q.from) {
		return records{}, mad.StatusSAReqInvalid
	}
	m.state &^= q.want.JoinState
	rec := g.record(m, s.sub.GIDPrefix)
	if m.state == 0 {
		delete(g.members, p.GUID)
	}
	if q.want.JoinState&full != 0 && g.fullMembers() == 0 {
		rec.JoinState = 0
		clear(g.members)
		if !g.wellKnown {
			s.groups.remove(g)
		}
	}
	return q.granted(rec)
}

// newGroup makes the group that a request asks for, for the port that joins it.
func (s *Server) newGroup(q *memberQuery, p *topo.Port) (*group, mad.Status) {
	switch {
	case q.want.JoinState&full == 0:
		return nil, mad.StatusSAReqInvalid
	case !q.hasAll(mcQKey | mcPKey | mcTClass | mcSL | mcFlowLabel):
		return nil, mad.StatusSAInsufficientComponents
	}
	g := &group{rec: q.want}
	rec := &g.rec
	rec.PortGID, rec.ProxyJoin = mad.GID{}, false
	switch {
	case !rec.MGID.IsZero():
		if !s.mayName(q, rec.MGID) {
			return nil, mad.StatusSAReqInvalid
		}
	case q.has(mcScope):
		rec.MGID = s.groups.newMGID(rec.Scope, s.sub.GIDPrefix)
	default:
		rec.MGID = s.groups.newMGID(mad.ScopeLinkLocal, s.sub.GIDPrefix)
	}
	rec.Scope = scopeOf(rec.MGID)
	if !q.choose(rec, p, s.sub.SubnetTimeOut) {
		return nil, mad.StatusSAReqInvalid
	}
	if rec.MLID = s.groups.freeMLID(q.want.MLID); rec.MLID == 0 {
		return nil, mad.StatusSANoResources
	}
	return g, mad.StatusOK
}

// choose gives a new group what the request leaves open, for the port that joins
// it. It tells whether there is such a thing.
func (q *memberQuery) choose(rec *mad.MCMemberRecord, p *topo.Port, life uint8) (ok bool) {
	selector := func(sel mad.Selector, both uint64) mad.Selector {
		if q.hasAll(both) {
			return sel
		}
		return mad.SelectorBest
	}
	if rec.MTU, ok = chooseMTU(selector(rec.MTUSelector, mcMTU), q.want.MTU, p.MTU); !ok {
		return false
	}
	// A group may be slower than its members.
	if sel := selector(rec.RateSelector, mcRate); sel != mad.SelectorExactly {
		if rec.Rate, ok = chooseRate(sel, q.want.Rate, p.LinkPort().Rate()); !ok {
			return false
		}
	}
	if rec.PacketLifeTime, ok = chooseLife(selector(rec.PacketLifeTimeSelector, mcLife), q.want.PacketLifeTime, life); !ok {
		return false
	}
	if !q.has(mcHopLimit) && rec.Scope != mad.ScopeLinkLocal {
		rec.HopLimit = 0xff
	}
	rec.MTUSelector, rec.RateSelector, rec.PacketLifeTimeSelector = mad.SelectorExactly, mad.SelectorExactly, mad.SelectorExactly
	return true
}

// mayName tells whether a new group may have an MGID (IBA o15-0.1.5). A group of
// IPoIB goes with that of the broadcasts in its partition (RFC 4391, 4.1).
func (s *Server) mayName(q *memberQuery, gid mad.GID) bool {
	if gid[0] != 0xff {
		return false
	}
	scope := scopeOf(gid)
	switch signature := binary.BigEndian.Uint16(gid[2:]); signature {
	case signatureIPv4, signatureIPv6:
		all := broadcast(scope, mad.PKey(binary.BigEndian.Uint16(gid[4:])))
		if gid == all {
			return true
		}
		g := s.groups.byMGID[all]
		return g != nil && g.agrees(q)
	case signatureSA:
		if scope == mad.ScopeLinkLocal {
			return false
		}
	}
	return gid[1]&0xe0 == 0 // reserved flags
}

// scopeOf is the scope of an MGID.
func scopeOf(gid mad.GID) mad.MulticastScope { return mad.MulticastScope(gid[1] & 0xf) }
