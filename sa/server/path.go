package server

import (
	"cmp"
	"math"
	"slices"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// Preference of a path among those of its pair of ports: OpenSM's values for
// paths that have no LID in common, and for all others.
const (
	preferred = 0
	redundant = 2
)

// pathQuery is a query for paths.
type pathQuery struct {
	*query
	want mad.PathRecord
}

// paths gives the PathRecords that agree with each component of the query (IBA
// 15.2.5.16). A query that leaves an end open gets the paths of all ports there;
// a Get takes the first path that is found, as with OpenSM.
func (s *Server) paths(in *query) (records, mad.Status) {
	found := records{size: mad.PathRecordSize}
	q := &pathQuery{query: in}
	q.want.DecodeFrom((*[mad.PathRecordSize]byte)(in.record))
	switch {
	case q.has(pathServiceID) && q.mask&pathServiceID != pathServiceID:
		return found, mad.StatusSAInsufficientComponents
	case q.has(pathMTUSel) && q.has(pathMTU) && q.want.MTU.Bytes() == 0,
		q.has(pathRateSel) && q.has(pathRate) && !isRate(q.want.Rate):
		return found, mad.StatusSAReqInvalid
	case q.has(pathDGID) && q.want.DGID[0] == 0xff:
		if rec := s.groupPath(q); rec != nil {
			found.add(rec)
		}
		return found, mad.StatusOK
	}
	srcs, status := s.ends(q.has(pathSGID), q.want.SGID, q.has(pathSLID), q.want.SLID)
	if status != mad.StatusOK {
		return found, status
	}
	dsts, status := s.ends(q.has(pathDGID), q.want.DGID, q.has(pathDLID), q.want.DLID)
	if status != mad.StatusOK {
		return found, status
	}
	srcs = slices.DeleteFunc(srcs, func(p *topo.Port) bool { return !share(q.from, p) })
	dsts = slices.DeleteFunc(dsts, func(p *topo.Port) bool { return !share(q.from, p) })
	for _, src := range srcs {
		for _, dst := range dsts {
			for rec := range s.pairPaths(q, src, dst) {
				found.add(rec)
				if !q.table || found.count > s.limit(in) {
					return found, mad.StatusOK
				}
			}
		}
	}
	return found, mad.StatusOK
}

// ends gives the ports that one end of the paths may be at.
func (s *Server) ends(byGID bool, gid mad.GID, byLID bool, lid mad.LID) ([]*topo.Port, mad.Status) {
	var p *topo.Port
	if byGID {
		ok := false
		if p, ok = s.sub.PortByGID(gid); !ok {
			return nil, mad.StatusSAInvalidGID
		}
	}
	if byLID {
		other, ok := s.sub.PortByLID(lid)
		switch {
		case !ok:
			return nil, mad.StatusOK
		case p != nil && p != other:
			return nil, mad.StatusSAReqInvalid
		}
		p = other
	}
	if p != nil {
		return []*topo.Port{p}, mad.StatusOK
	}
	return slices.Collect(s.sub.EndPorts()), mad.StatusOK
}

// pairPaths gives the paths from one port to another, the preferred ones first,
// at most NumbPath of a table.
func (s *Server) pairPaths(q *pathQuery, src, dst *topo.Port) func(yield func(*mad.PathRecord) bool) {
	return func(yield func(*mad.PathRecord) bool) {
		left := math.MaxInt
		if q.table && q.has(pathNumbPath) {
			left = int(q.want.NumbPath)
		}
		slids := lids(src, q.has(pathSLID), q.want.SLID)
		dlids := lids(dst, q.has(pathDLID), q.want.DLID)
		for _, preference := range []uint8{preferred, redundant} {
			for i, slid := range slids {
				for j, dlid := range dlids {
					if (i == j) != (preference == preferred) {
						continue
					}
					if left == 0 {
						return
					}
					if rec, ok := s.path(q, src, dst, slid, dlid, preference); ok {
						left--
						if !yield(rec) {
							return
						}
					}
				}
			}
		}
	}
}

// lids gives the LIDs of a port that paths may use.
func lids(p *topo.Port, fixed bool, lid mad.LID) []mad.LID {
	if fixed {
		return []mad.LID{lid}
	}
	if p.LID == 0 {
		return nil
	}
	all := make([]mad.LID, 1<<p.LMC)
	for i := range all {
		all[i] = p.LID + mad.LID(i)
	}
	return all
}

// path gives the path from a LID to another, if there is one as asked for.
func (s *Server) path(q *pathQuery, src, dst *topo.Port, slid, dlid mad.LID, preference uint8) (*mad.PathRecord, bool) {
	way, ok := s.way(q, src, dst, dlid)
	if !ok || q.has(pathPreference) && q.want.Preference != preference {
		return nil, false
	}
	_, reversible := s.way(q, dst, src, slid)
	if q.has(pathReversible) && q.want.Reversible && !reversible {
		return nil, false // Reversible 0 means either
	}
	key, ok := sharedKey(src, dst)
	if q.has(pathPKey) {
		key, ok = q.want.PKey, bothIn(q.want.PKey, src, dst)
	}
	if !ok {
		return nil, false
	}
	rec := &mad.PathRecord{
		DGID: dst.GID(s.sub.GIDPrefix), SGID: src.GID(s.sub.GIDPrefix),
		DLID: dlid, SLID: slid,
		Reversible:  reversible,
		PKey:        key,
		MTUSelector: mad.SelectorExactly, MTU: way.mtu,
		RateSelector: mad.SelectorExactly, Rate: way.rate,
		PacketLifeTimeSelector: mad.SelectorExactly, PacketLifeTime: way.life,
		Preference: preference,
	}
	q.grant(rec)
	return rec, true
}

// grant copies what the subnet leaves to the requester: it knows no quality of
// service, so any level will do, and on one subnet nothing reads the fields of a
// global route header.
func (q *pathQuery) grant(rec *mad.PathRecord) {
	if q.has(pathServiceID) {
		rec.ServiceID = q.want.ServiceID
	}
	if q.has(pathSGID) {
		rec.SGID = q.want.SGID
	}
	if q.has(pathDGID) {
		rec.DGID = q.want.DGID
	}
	if q.has(pathFlowLabel) {
		rec.FlowLabel = q.want.FlowLabel
	}
	if q.has(pathHopLimit) {
		rec.HopLimit = q.want.HopLimit
	}
	if q.has(pathTClass) {
		rec.TClass = q.want.TClass
	}
	if q.has(pathQoSClass) {
		rec.QoSClass = q.want.QoSClass
	}
	if q.has(pathSL) {
		rec.SL = q.want.SL
	}
	if q.has(pathRaw) && q.want.RawTraffic {
		rec.RawTraffic, rec.PKey = true, 0 // raw packets have no P_Key
	}
}

// way is what a route carries.
type way struct {
	mtu  mad.MTU
	rate mad.Rate
	life uint8
}

// way follows the forwarding tables from src to a LID of dst. It tells whether
// the tables lead there and the way satisfies the selectors of the query.
func (s *Server) way(q *pathQuery, src, dst *topo.Port, dlid mad.LID) (w way, ok bool) {
	hops, err := s.sub.Walk(src, dlid)
	if err != nil {
		return w, false
	}
	w = way{mtu: min(src.MTU, dst.MTU), rate: slower(src.LinkPort().Rate(), dst.LinkPort().Rate())}
	if src != dst {
		w.life = s.sub.SubnetTimeOut
	}
	for _, h := range hops {
		w.mtu = min(w.mtu, h.MTU)
		w.rate = slower(w.rate, h.Rate())
	}
	// A selector without its value, or a value without its selector, is ignored.
	ok = true
	if q.has(pathMTUSel) && q.has(pathMTU) {
		w.mtu, ok = chooseMTU(q.want.MTUSelector, q.want.MTU, w.mtu)
	}
	if ok && q.has(pathRateSel) && q.has(pathRate) {
		w.rate, ok = chooseRate(q.want.RateSelector, q.want.Rate, w.rate)
	}
	if ok && q.has(pathLifeSel) && q.has(pathLife) {
		// Unlike MTU and rate it is not for the sender to lower.
		ok = keeps(q.want.PacketLifeTimeSelector, cmp.Compare(w.life, q.want.PacketLifeTime))
	}
	return w, ok
}

func slower(a, b mad.Rate) mad.Rate {
	if a.Compare(b) <= 0 {
		return a
	}
	return b
}
