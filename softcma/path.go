package softcma

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// query is something to ask the SA. The shell asks, and brings the answer by
// done.
type query struct {
	ctx    context.Context
	cancel context.CancelFunc
	wait   time.Duration // after which the kernel gives up
	path   *mad.PathRecord
	join   *mad.MCMemberRecord // components beyond those of JoinOrCreate
	fields []string
	leave  *mad.MCMemberRecord

	done func(now time.Time, path mad.PathRecord, member mad.MCMemberRecord, err error)
}

// ask gives a query to the shell.
func (c *core) ask(q *query) *query {
	q.ctx, q.cancel = context.WithCancel(context.Background())
	c.queries = append(c.queries, q)
	return q
}

// saWait is how long the kernel waits for the SA in all: each of 11 tries a tenth
// of the time-out, in whole milliseconds (sa_query.c, send_mad).
func saWait(timeout time.Duration) time.Duration {
	ms := timeout / time.Millisecond
	if ms < 10 {
		return (ms + 1) * time.Millisecond
	}
	return 11 * (ms / 10) * time.Millisecond
}

// resolveRoute is rdma_resolve_route.
func (c *core) resolveRoute(now time.Time, id *cmid, timeout time.Duration) error {
	if timeout < time.Millisecond || !id.become(stateAddrResolved, stateRouteQuery) {
		return ucma.EINVAL
	}
	if c.cfg.RoCE {
		if id.dev.ifIndex == 0 {
			id.state = stateAddrResolved
			return ucma.ENODEV
		}
		id.paths = []mad.PathRecord{c.rocePath(id)}
		c.at(now, func(now time.Time) {
			if id.become(stateRouteQuery, stateRouteResolved) {
				c.report(id, event{typ: ucma.EventRouteResolved})
			}
		})
		return nil
	}
	if !c.info.SMLID.IsUnicast() {
		id.state = stateAddrResolved
		return ucma.EAGAIN
	}
	like := mad.PathRecord{
		SGID: id.dev.sgid, DGID: id.dev.dgid, PKey: id.dev.pkey, NumbPath: 1, Reversible: true, ServiceID: id.serviceID(id.dst),
	}
	q := &query{wait: saWait(timeout), path: &like, fields: []string{"DGID", "SGID", "P_Key", "NumbPath", "Reversible", "ServiceID"}}
	if id.src.Family() == ucma.AFInet {
		like.QoSClass = uint16(id.tos)
		q.fields = append(q.fields, "QoSClass")
	} else {
		flow := id.src.FlowInfo
		if id.src.IB != nil {
			flow = id.src.IB.FlowInfo
		}
		like.TClass = uint8(flow >> 20)
		q.fields = append(q.fields, "TClass")
	}
	q.done = func(now time.Time, path mad.PathRecord, _ mad.MCMemberRecord, err error) {
		id.query = nil
		switch {
		case err != nil && id.become(stateRouteQuery, stateAddrResolved):
			c.report(id, event{typ: ucma.EventRouteError, err: err})
		case err == nil && id.become(stateRouteQuery, stateRouteResolved):
			id.paths = []mad.PathRecord{known(&path)}
			c.report(id, event{typ: ucma.EventRouteResolved})
		}
	}
	id.query = c.ask(q)
	return nil
}

// What a path on RoCE says of an Ethernet interface with an MTU of 1500 bytes.
const (
	roceMTU      = mad.MTU1024 // what headers leave of it (iboe_get_mtu)
	roceHops     = 64          // net.ipv4.ip_default_ttl, and for IPv6
	roceLifeTime = 16          // CMA_IBOE_PACKET_LIFETIME
)

// rocePath makes up the path of an id (cma_resolve_iboe_route).
func (c *core) rocePath(id *cmid) mad.PathRecord {
	p := mad.PathRecord{
		SGID: gidOf(id.src), DGID: gidOf(id.dst), HopLimit: roceHops, TClass: id.tos, Reversible: true, PKey: mad.DefaultPKey,
		MTUSelector: mad.SelectorExactly, MTU: roceMTU, RateSelector: mad.SelectorExactly,
		PacketLifeTimeSelector: mad.SelectorExactly, PacketLifeTime: roceLifeTime,
	}
	if id.ackTimeoutSet && id.ackTimeout != 0 {
		p.PacketLifeTime = id.ackTimeout - 1
	}
	const label = 0xfffff
	if id.src.Family() == ucma.AFInet6 {
		p.FlowLabel = id.src.FlowInfo & label
	}
	if p.FlowLabel == 0 {
		p.FlowLabel = (uint32(portOf(id.src))*31 + uint32(portOf(id.dst))) & label
	}
	return p
}

// setIBPath is SET_OPTION IB_PATH (ucma_set_ib_path): the value is an array of
// struct ib_path_rec_data, of which the first with the right flags counts. What
// it says is not checked.
func (c *core) setIBPath(now time.Time, id *cmid, value []byte) error {
	if len(value)%ucma.PathRecDataSize != 0 {
		return ucma.EINVAL
	}
	for len(value) > 0 && binary.NativeEndian.Uint32(value) != ucma.PathFlags {
		value = value[ucma.PathRecDataSize:]
	}
	if len(value) == 0 || !id.hasDev || !id.become(stateAddrResolved, stateRouteResolved) {
		return ucma.EINVAL
	}
	if c.cfg.RoCE && id.dev.ifIndex == 0 {
		id.state = stateAddrResolved
		return ucma.ENODEV
	}
	var p mad.PathRecord
	p.DecodeFrom((*[mad.PathRecordSize]byte)(value[8:]))
	id.paths = []mad.PathRecord{known(&p)}
	c.report(id, event{typ: ucma.EventRouteResolved})
	return nil
}

// known is what the kernel keeps of a path record: all but the reserved bits.
func known(p *mad.PathRecord) mad.PathRecord {
	shown := ucma.MakeUserPathRec(p)
	q := shown.PathRecord()
	q.ServiceID, q.QoSClass = p.ServiceID, p.QoSClass
	return q
}

// forCM is the path as it is given to the CM, which on RoCE has no LIDs.
func (c *core) forCM(p mad.PathRecord) mad.PathRecord {
	if c.cfg.RoCE {
		p.DLID, p.SLID, p.RawTraffic = 0, 0, false
	}
	return p
}
