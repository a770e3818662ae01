package sa

import (
	"context"
	"iter"

	"github.com/ibsm/ibsm/mad"
)

// PathQuery selects paths. What is zero does not count, except the source: it is
// the own port then, unless AnySource is set. Ask by GID rather than by LID:
// OpenSM looks for a LID among all ports (osm_sa_path_record.c).
type PathQuery struct {
	SGID, DGID mad.GID
	SLID, DLID mad.LID
	AnySource  bool // paths from every port, if neither SGID nor SLID names one
	ServiceID  uint64
	PKey       mad.PKey
	NumbPath   uint8 // paths for each pair of ports, at most 127. 0: all
	Reversible bool  // only paths that lead back by the same LIDs
	MTU        Bound[mad.MTU]
	Rate       Bound[mad.Rate]
	LifeTime   Bound[uint8] // of a packet: the exponent that mad.TimeOf takes, at most 63
	// Also selects by further components. Here zero counts:
	// sa.Match(mad.PathRecord{SL: 0, TClass: 0x20}, "SL", "TClass").
	Also Query[mad.PathRecord]
}

// Paths asks for paths, the SA's preferred ones first.
func (c *Client) Paths(ctx context.Context, q PathQuery) iter.Seq2[mad.PathRecord, error] {
	return func(yield func(mad.PathRecord, error) bool) {
		if q.SGID.IsZero() && q.SLID == 0 && !q.AnySource {
			info, err := c.dev.Info()
			if err != nil {
				yield(mad.PathRecord{}, err)
				return
			}
			if len(info.GIDs) > 0 {
				q.SGID = info.GIDs[0]
			}
		}
		for rec, err := range Table(ctx, c, q.query()) {
			if !yield(rec, err) {
				return
			}
		}
	}
}

func (q *PathQuery) query() Query[mad.PathRecord] {
	query := Query[mad.PathRecord]{Like: q.Also.Like, Fields: append(make([]string, 0, 8), q.Also.Fields...)}
	like := &query.Like
	component(&query, "ServiceID", &like.ServiceID, q.ServiceID)
	component(&query, "SGID", &like.SGID, q.SGID)
	component(&query, "DGID", &like.DGID, q.DGID)
	component(&query, "SLID", &like.SLID, q.SLID)
	component(&query, "DLID", &like.DLID, q.DLID)
	component(&query, "P_Key", &like.PKey, q.PKey)
	component(&query, "NumbPath", &like.NumbPath, q.NumbPath)
	component(&query, "Reversible", &like.Reversible, q.Reversible)
	bound(&query, "MTU", &like.MTUSelector, &like.MTU, q.MTU)
	bound(&query, "Rate", &like.RateSelector, &like.Rate, q.Rate)
	bound(&query, "PacketLifeTime", &like.PacketLifeTimeSelector, &like.PacketLifeTime, q.LifeTime)
	return query
}

// component selects by a value unless it is zero.
func component[T comparable](query *Query[mad.PathRecord], name string, field *T, value T) {
	var zero T
	if value != zero {
		*field = value
		query.Fields = append(query.Fields, name)
	}
}

// bound selects by a value and its selector: an SA ignores one without the other
// (osm_sa_path_record.c).
func bound[T Bounded](query *Query[mad.PathRecord], name string, selector *mad.Selector, field *T, b Bound[T]) {
	if b.counts {
		*selector, *field = b.selector, b.value
		query.Fields = append(query.Fields, name+"Selector", name)
	}
}
