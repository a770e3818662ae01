package sa

import (
	"context"
	"fmt"
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
		if err := c.fromHere(&q); err != nil {
			yield(mad.PathRecord{}, err)
			return
		}
		for rec, err := range Table(ctx, c, q.query()) {
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Path asks for one path that leads there and back, as the kernel's RDMA CM does
// (cma.c, cma_query_ib_route). What like has in SGID, DGID, SLID, DLID, ServiceID,
// P_Key, TClass, SL and QoSClass counts where it is not zero, but the own port is
// the source if none is given; so do MTU, Rate and PacketLifeTime, each with its
// selector. Errors say who asked for what; see [Get] for what they wrap.
func (c *Client) Path(ctx context.Context, like mad.PathRecord) (mad.PathRecord, error) {
	q := PathQuery{
		SGID: like.SGID, DGID: like.DGID, SLID: like.SLID, DLID: like.DLID,
		ServiceID: like.ServiceID, PKey: like.PKey, NumbPath: 1, Reversible: true,
		MTU:      Bound[mad.MTU]{like.MTU != 0, like.MTUSelector, like.MTU},
		Rate:     Bound[mad.Rate]{like.Rate != 0, like.RateSelector, like.Rate},
		LifeTime: Bound[uint8]{like.PacketLifeTime != 0, like.PacketLifeTimeSelector, like.PacketLifeTime},
	}
	also := &q.Also.Like
	component(&q.Also, "TClass", &also.TClass, like.TClass)
	component(&q.Also, "SL", &also.SL, like.SL)
	component(&q.Also, "QoSClass", &also.QoSClass, like.QoSClass)
	err := c.fromHere(&q)
	if err != nil {
		return mad.PathRecord{}, err
	}
	rec, err := Get(ctx, c, q.query())
	if err != nil {
		return rec, fmt.Errorf("ask for a reversible path %s: %w", q.ends(), err)
	}
	return rec, nil
}

// fromHere makes the own port the source of a query that has none.
func (c *Client) fromHere(q *PathQuery) error {
	if !q.SGID.IsZero() || q.SLID != 0 || q.AnySource {
		return nil
	}
	gid, err := c.ownGID()
	q.SGID = gid
	return err
}

// ownGID is the first GID of the port, zero if it has none.
func (c *Client) ownGID() (gid mad.GID, err error) {
	info, err := c.dev.Info()
	if err == nil && len(info.GIDs) > 0 {
		gid = info.GIDs[0]
	}
	return gid, err
}

// ends says from where to where a path is to lead, and for what.
func (q *PathQuery) ends() string {
	end := func(gid mad.GID, lid mad.LID) string {
		if gid.IsZero() {
			return fmt.Sprintf("LID %v", lid)
		}
		return gid.String()
	}
	s := fmt.Sprintf("from %s to %s", end(q.SGID, q.SLID), end(q.DGID, q.DLID))
	if q.PKey != 0 {
		s += fmt.Sprintf(", P_Key %v", q.PKey)
	}
	if q.ServiceID != 0 {
		s += fmt.Sprintf(", ServiceID %#016x", q.ServiceID)
	}
	return s
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
