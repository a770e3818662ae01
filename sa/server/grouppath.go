package server

import (
	"cmp"

	"github.com/ibsm/ibsm/mad"
)

// groupPath gives the path to a multicast group, with what the group's members
// have in common. nil: there is none as asked for.
func (s *Server) groupPath(q *pathQuery) *mad.PathRecord {
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	g := s.groups.byMGID[q.want.DGID]
	if g == nil || !isIn(g.rec.PKey, q.from) || !s.fromMember(q, g) || !q.fits(&g.rec) {
		return nil
	}
	rec := &mad.PathRecord{
		DLID: g.rec.MLID, PKey: g.rec.PKey, TClass: g.rec.TClass, SL: g.rec.SL, FlowLabel: g.rec.FlowLabel, HopLimit: g.rec.HopLimit,
		MTUSelector: mad.SelectorExactly, MTU: g.rec.MTU, RateSelector: mad.SelectorExactly, Rate: g.rec.Rate,
		PacketLifeTimeSelector: mad.SelectorExactly, PacketLifeTime: g.rec.PacketLifeTime,
	}
	if q.has(pathSLID) {
		rec.SLID = q.want.SLID
	}
	if q.has(pathReversible) {
		rec.Reversible = q.want.Reversible
	}
	q.grant(rec)
	return rec
}

// fromMember tells whether the source of a path, if the query names one, belongs to
// the group.
func (s *Server) fromMember(q *pathQuery, g *group) bool {
	if q.has(pathSGID) && g.members[q.want.SGID.GUID()] == nil {
		return false
	}
	if !q.has(pathSLID) {
		return true
	}
	p, ok := s.sub.PortByLID(q.want.SLID)
	return ok && g.members[p.GUID] != nil
}

// fits tells whether a group is as a query wants the path.
func (q *pathQuery) fits(g *mad.MCMemberRecord) bool {
	return (!q.has(pathDLID) || q.want.DLID == g.MLID) &&
		(!q.has(pathPKey) || q.want.PKey.Matches(g.PKey)) &&
		(!q.has(pathTClass) || q.want.TClass == g.TClass) &&
		(!q.has(pathSL) || q.want.SL == g.SL) &&
		(!q.has(pathFlowLabel) || q.want.FlowLabel == g.FlowLabel) &&
		(!q.has(pathHopLimit) || q.want.HopLimit == g.HopLimit) &&
		(!q.has(pathNumbPath) || !q.table || q.want.NumbPath > 0) &&
		(!q.hasAll(pathMTUSel|pathMTU) || keeps(q.want.MTUSelector, cmp.Compare(g.MTU, q.want.MTU))) &&
		(!q.hasAll(pathRateSel|pathRate) || keeps(q.want.RateSelector, g.Rate.Compare(q.want.Rate))) &&
		(!q.hasAll(pathLifeSel|pathLife) || keeps(q.want.PacketLifeTimeSelector, cmp.Compare(g.PacketLifeTime, q.want.PacketLifeTime)))
}
