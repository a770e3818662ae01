package softcma

import (
	"container/heap"
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// state of an id, as enum rdma_cm_state has them (cma_priv.h).
type state uint8

const (
	stateIdle state = iota
	stateAddrQuery
	stateAddrResolved
	stateRouteQuery
	stateRouteResolved
	stateConnect
	stateDisconnect
	stateAddrBound
	stateListen
	stateRemoved // its device
	stateDestroyed
)

// cmid is one id of the RDMA CM (struct rdma_id_private).
type cmid struct {
	ctx    *uctx // who is told; of a new connection the listener, until it has its own
	state  state
	ps     ucma.PortSpace
	qpType ucma.QPType
	src    ucma.Sockaddr
	dst    ucma.Sockaddr
	bound  *bindList // where its port number is taken
	hasDev bool      // the device is attached
	dev    devAddr
	paths  []mad.PathRecord // primary and alternate
	conn   *cm.ID           // connection, listener or SIDR; nil before
	active bool             // the one who connects

	seqNum uint32 // starting PSN
	qkey   uint32
	qpn    uint32
	srq    bool
	ece    cm.ECE

	tos           uint8
	ackTimeout    uint8
	ackTimeoutSet bool
	reuseAddr     bool
	afOnly        bool
	afOnlySet     bool // by SET_OPTION

	lookup *work  // address resolution under way
	query  *query // for a path, under way
	mcasts []*mcast
}

// devAddr is what address resolution finds (struct rdma_dev_addr). On RoCE the
// GIDs are those of the IP addresses, and sgid and dgid do not count.
type devAddr struct {
	infiniband bool // dev_type
	ifIndex    uint32
	sgid, dgid mad.GID
	pkey       mad.PKey
	mac        [6]byte // of the neighbour, on RoCE
}

func (c *core) newID(ctx *uctx, ps ucma.PortSpace, t ucma.QPType) *cmid {
	return &cmid{ctx: ctx, ps: ps, qpType: t, seqNum: c.random() & 0xffffff}
}

// become changes the state if it is the one given (cma_comp_exch).
func (id *cmid) become(from, to state) bool {
	if id.state != from {
		return false
	}
	id.state = to
	return true
}

// destroy ends an id (rdma_destroy_id).
func (c *core) destroy(now time.Time, id *cmid) {
	id.state = stateDestroyed
	c.cancel(id)
	if id.conn != nil {
		id.conn.Destroy(now)
		id.conn = nil
	}
	for len(id.mcasts) > 0 {
		c.leave(now, id.mcasts[0])
	}
	c.detach(id)
	id.bound.release(c, id)
}

// cancel drops what is under way (cma_cancel_operation).
func (c *core) cancel(id *cmid) {
	if id.lookup != nil {
		heap.Remove(&c.works, id.lookup.pos)
		id.lookup = nil
	}
	if id.query != nil {
		id.query.cancel()
		id.query = nil
	}
}

// attach binds an id to the device (cma_attach_to_dev).
func (c *core) attach(id *cmid) {
	id.hasDev = true
	c.attached = append(c.attached, id)
}

func (c *core) detach(id *cmid) {
	if !id.hasDev {
		return
	}
	id.hasDev = false
	c.attached = remove(c.attached, id)
}

// remove takes x out of s and keeps the order.
func remove[T comparable](s []T, x T) []T {
	for i := range s {
		if s[i] == x {
			return append(s[:i], s[i+1:]...)
		}
	}
	return s
}

// serviceID is the service id of an address (rdma_get_service_id).
func (id *cmid) serviceID(a ucma.Sockaddr) uint64 {
	if a.IB != nil {
		return a.IB.ServiceID
	}
	return uint64(id.ps)<<16 + uint64(a.IP.Port())
}
