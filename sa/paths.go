package sa

import (
	"context"
	"iter"

	"github.com/ibsm/ibsm/mad"
)

// PathQuery selects paths. What is zero does not count, except the source: it is
// the own port then. Ask by GID rather than by LID: OpenSM looks for a LID among
// all ports (osm_sa_path_record.c). For other components, such as MTU and rate
// with their selectors, use [Table] of mad.PathRecord.
type PathQuery struct {
	SGID, DGID mad.GID
	SLID, DLID mad.LID
	ServiceID  uint64
	PKey       mad.PKey
	NumbPath   uint8 // paths for each pair of ports, at most 127. 0: all
	Reversible bool  // only paths that lead back by the same LIDs
}

// Paths asks for paths, the SA's preferred ones first.
func (c *Client) Paths(ctx context.Context, q PathQuery) iter.Seq2[mad.PathRecord, error] {
	return func(yield func(mad.PathRecord, error) bool) {
		if q.SGID.IsZero() && q.SLID == 0 {
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
	query := Query[mad.PathRecord]{Like: mad.PathRecord{
		ServiceID: q.ServiceID, SGID: q.SGID, DGID: q.DGID, SLID: q.SLID, DLID: q.DLID,
		PKey: q.PKey, NumbPath: q.NumbPath, Reversible: q.Reversible,
	}}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"ServiceID", q.ServiceID != 0}, {"SGID", !q.SGID.IsZero()}, {"DGID", !q.DGID.IsZero()},
		{"SLID", q.SLID != 0}, {"DLID", q.DLID != 0}, {"P_Key", q.PKey != 0},
		{"NumbPath", q.NumbPath != 0}, {"Reversible", q.Reversible},
	} {
		if f.set {
			query.Fields = append(query.Fields, f.name)
		}
	}
	return query
}
