package softcma

import (
	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// initQPAttr is rdma_init_qp_attr.
func (c *core) initQPAttr(id *cmid, state ucma.QPState) (ucma.QPAttr, error) {
	var a ucma.QPAttr
	if id.conn == nil || id.qpType == ucma.QPTypeUD {
		key := id.dev.pkey
		if c.cfg.RoCE {
			key = mad.DefaultPKey
		}
		index := c.pkeyIndex(key)
		if index < 0 {
			return a, ucma.ENOENT
		}
		a = ucma.QPAttr{Mask: ucma.QPAttrState | ucma.QPAttrPKeyIndex | ucma.QPAttrPort, PKeyIndex: uint16(index), PortNum: c.info.Port}
		if id.qpType == ucma.QPTypeUD {
			id.setDefaultQKey()
			a.Mask |= ucma.QPAttrQKey
			a.QKey = id.qkey
		} else {
			a.Mask |= ucma.QPAttrAccessFlags
		}
	} else {
		q, err := id.conn.QPAttr(cm.QPState(state))
		if err != nil {
			return a, errnoOf(err)
		}
		a = qpAttr(&q)
	}
	a.State = state
	if state == ucma.QPStateRTR {
		a.RQPSN = id.seqNum
	}
	if a.Mask&ucma.QPAttrTimeout != 0 && id.ackTimeoutSet {
		a.Timeout = id.ackTimeout
	}
	return a, nil
}

// qpAttr writes attributes as users see them (ib_copy_qp_attr_to_user).
func qpAttr(q *cm.QPAttr) ucma.QPAttr {
	a := ucma.QPAttr{
		Mask: ucma.QPAttrMask(q.Mask), PathMTU: uint32(q.PathMTU), PathMigState: uint32(q.PathMigState),
		RQPSN: q.RQPSN, SQPSN: q.SQPSN, DestQPNum: q.DestQPN, QPAccessFlags: q.AccessFlags,
		PKeyIndex: q.PKeyIndex, MaxRDAtomic: q.MaxRDAtomic, MaxDestRDAtomic: q.MaxDestRDAtomic, MinRNRTimer: q.MinRNRTimer,
		PortNum: q.Port, Timeout: q.Timeout, RetryCnt: q.RetryCount, RNRRetry: q.RNRRetry,
	}
	if q.Mask&cm.MaskAV != 0 {
		a.AH = ahAttr(&q.AV)
	}
	if q.Mask&cm.MaskAltPath != 0 {
		a.AltAH = ahAttr(&q.AltPath)
		a.AltPKeyIndex, a.AltPortNum, a.AltTimeout = q.AltPKeyIndex, q.AltPath.Port, q.AltTimeout
	}
	return a
}

// ahAttr is ib_copy_ah_attr_to_user.
func ahAttr(a *cm.AH) ucma.AHAttr {
	u := ucma.AHAttr{
		DLID: a.Addr.LID, SL: a.Addr.SL, SrcPathBits: a.Addr.PathBits, StaticRate: uint8(a.Rate), IsGlobal: a.Addr.HasGRH, PortNum: a.Port,
	}
	if g := &a.Addr.GRH; u.IsGlobal {
		u.GRH = ucma.GlobalRoute{DGID: g.GID, FlowLabel: g.FlowLabel, SGIDIndex: g.GIDIndex, HopLimit: g.HopLimit, TrafficClass: g.TrafficClass}
	}
	return u
}

// queryRoute is ucma_query_route.
func (c *core) queryRoute(id *cmid) *ucma.QueryRouteResp {
	r := &ucma.QueryRouteResp{Src: id.src, Dst: id.dst}
	if !id.hasDev {
		return r
	}
	r.NodeGUID, r.PortNum, r.NumPaths = c.info.NodeGUID, c.info.Port, uint32(len(id.paths))
	if len(id.paths) == 0 {
		sgid, dgid := c.gids(id)
		r.Paths[0] = ucma.UserPathRec{SGID: sgid, DGID: dgid, PKey: id.dev.pkey}
		if c.cfg.RoCE {
			r.Paths[0].PKey = mad.DefaultPKey
		}
	}
	for i, p := range id.paths {
		p = c.forCM(p)
		r.Paths[i] = ucma.MakeUserPathRec(&p)
	}
	return r
}

// gids are the GIDs of an id's addresses (rdma_read_gids).
func (c *core) gids(id *cmid) (sgid, dgid mad.GID) {
	switch {
	case !id.hasDev:
		return sgid, dgid
	case c.cfg.RoCE:
		return gidOf(id.src), gidOf(id.dst)
	}
	return id.dev.sgid, id.dev.dgid
}

// queryAddr is ucma_query_addr.
func (c *core) queryAddr(id *cmid) *ucma.QueryAddrResp {
	r := &ucma.QueryAddrResp{Src: id.src, Dst: id.dst}
	if id.hasDev {
		r.NodeGUID, r.PortNum, r.PKey = c.info.NodeGUID, c.info.Port, id.dev.pkey
	}
	return r
}

// queryGID is ucma_query_gid: the addresses as AF_IB ones.
func (c *core) queryGID(id *cmid) *ucma.QueryAddrResp {
	r := c.queryAddr(id)
	sgid, dgid := c.gids(id)
	r.Src, r.Dst = id.asIB(id.src, r.PKey, sgid), id.asIB(id.dst, r.PKey, dgid)
	return r
}

func (id *cmid) asIB(a ucma.Sockaddr, key mad.PKey, gid mad.GID) ucma.Sockaddr {
	if a.IB != nil {
		return a
	}
	return ucma.Sockaddr{IB: &ucma.SockaddrIB{PKey: key, GID: gid, ServiceID: id.serviceID(a)}}
}

// queryPath is ucma_query_path, with room for n paths.
func (c *core) queryPath(id *cmid, n int) *ucma.QueryPathResp {
	r := &ucma.QueryPathResp{NumPaths: uint32(len(id.paths))}
	for _, p := range id.paths[:min(n, len(id.paths))] {
		if c.cfg.RoCE {
			// Where a path has LIDs, the kernel keeps on RoCE whether it is resolved,
			// and the neighbour's Ethernet address (union in struct sa_path_rec).
			mac := &id.dev.mac
			p.DLID, p.SLID, p.RawTraffic = 0x100|mad.LID(mac[0]), mad.LID(mac[1])<<8|mad.LID(mac[2]), mac[3]&1 != 0
		}
		r.Paths = append(r.Paths, ucma.PathRecData{Flags: ucma.PathFlags, Path: p})
	}
	return r
}
