package softcma

import (
	"net/netip"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// resolveAddr is rdma_resolve_addr. An id that is not bound yet is bound to src,
// or to no address.
func (c *core) resolveAddr(now time.Time, id *cmid, src, dst ucma.Sockaddr, timeout time.Duration) error {
	if id.become(stateAddrBound, stateAddrQuery) {
		id.dst = dst
	} else {
		if src.Family() == ucma.AFUnspec {
			src = anyLike(dst)
			if dst.Family() == ucma.AFInet6 && dst.IP.Addr().IsLinkLocalUnicast() {
				id.dev.ifIndex = dst.ScopeID
			}
		}
		if err := c.bindBoth(id, src, &dst); err != nil {
			return err
		}
		id.state = stateAddrQuery
	}
	err := c.startResolve(now, id, dst, timeout)
	if err != nil {
		id.become(stateAddrQuery, stateAddrBound)
	}
	return err
}

// anyLike is the source address that stands for any towards a destination
// (cma_bind_addr).
func anyLike(dst ucma.Sockaddr) ucma.Sockaddr {
	src := unspecified(dst.Family(), 0)
	src.ScopeID = dst.ScopeID
	if dst.IB != nil {
		src.IB.PKey = dst.IB.PKey
	}
	return src
}

func (c *core) startResolve(now time.Time, id *cmid, dst ucma.Sockaddr, timeout time.Duration) error {
	if id.src.Family() != dst.Family() {
		return ucma.EINVAL
	}
	if isAny(dst) || dst.IB != nil {
		if err := c.resolveDirectly(id, dst); err != nil {
			return err
		}
		c.at(now, func(now time.Time) {
			if id.become(stateAddrQuery, stateAddrResolved) {
				c.report(id, event{typ: ucma.EventAddrResolved})
			}
		})
		return nil
	}
	c.cancel(id)
	src, err := c.route(id)
	switch err {
	case nil:
		id.lookup = c.at(now, func(now time.Time) { c.resolved(now, id, src, nil) })
	case ucma.ENODATA: // a neighbour that does not answer yet is asked for once more
		id.lookup = c.at(now.Add(timeout), func(now time.Time) {
			src, err := c.route(id)
			if err != nil {
				err = ucma.ETIMEDOUT
			}
			c.resolved(now, id, src, err)
		})
	default:
		return err
	}
	return nil
}

// resolveDirectly resolves what needs no neighbour: the host itself
// (cma_resolve_loopback), or a GID (cma_resolve_ib_addr).
func (c *core) resolveDirectly(id *cmid, dst ucma.Sockaddr) error {
	if isAny(dst) {
		if !id.hasDev {
			if c.gone {
				return ucma.ENODEV
			}
			id.dev.infiniband = !c.cfg.RoCE
			id.dev.sgid, id.dev.pkey = c.portGID(), c.firstPKey()
			c.attach(id)
			id.src = loopbackOf(id.src)
		}
		id.dev.dgid = id.dev.sgid
		return nil
	}
	if !id.hasDev {
		gid, ok := c.sourceFor(dst.IB)
		if !ok {
			return ucma.ENODEV
		}
		c.attach(id)
		ib := *id.src.IB
		ib.GID = gid
		id.src.IB = &ib
		c.translate(id, id.src) // never fails for AF_IB
	}
	id.dev.dgid = dst.IB.GID
	return nil
}

// sourceFor is the own GID to reach a GID from (cma_resolve_ib_dev).
func (c *core) sourceFor(dst *ucma.SockaddrIB) (mad.GID, bool) {
	if c.gone || c.pkeyIndex(dst.PKey) < 0 {
		return mad.GID{}, false
	}
	for _, gid := range c.info.GIDs {
		if gid == dst.GID || gid.Prefix() == dst.GID.Prefix() && c.info.State == mad.PortStateActive {
			return gid, true
		}
	}
	return mad.GID{}, false
}

// resolved ends the resolution of an IP address (addr_handler).
func (c *core) resolved(now time.Time, id *cmid, src ucma.Sockaddr, err error) {
	id.lookup = nil
	if !id.become(stateAddrQuery, stateAddrResolved) {
		return
	}
	old := id.src
	if err == nil {
		id.src = src
		if !id.hasDev {
			err = c.acquire(id)
		}
	}
	if err != nil {
		id.src = old
		id.state = stateAddrBound
		c.report(id, event{typ: ucma.EventAddrError, err: err})
		return
	}
	c.report(id, event{typ: ucma.EventAddrResolved})
}

// route finds the way to an id's destination, and the source address for it
// (addr_resolve). ENODATA: the neighbour does not answer.
func (c *core) route(id *cmid) (ucma.Sockaddr, error) {
	dst := id.dst.IP.Addr()
	src := id.src
	choose := func(ip netip.Addr) {
		if isZero(src) {
			src = withIP(src, ip)
		}
	}
	if !c.hasInterface() || id.dev.ifIndex != 0 && id.dev.ifIndex != c.cfg.IfIndex {
		return src, ucma.ENETUNREACH
	}
	if c.isOwn(dst) {
		choose(dst)
		c.useInterface(id)
		id.dev.dgid, id.dev.mac = c.portGID(), macOf(c.port.PortGUID)
		return src, nil
	}
	ip, ok := c.sourceTowards(dst, id.dev.ifIndex != 0)
	if !ok {
		return src, ucma.ENETUNREACH
	}
	choose(ip)
	c.useInterface(id)
	if dst.IsMulticast() {
		if !c.cfg.RoCE {
			id.dev.dgid = ipoibMGID(dst, id.dev.pkey)
		}
		return src, nil
	}
	n, ok := c.neighbour(dst)
	if !ok {
		return src, ucma.ENODATA
	}
	id.dev.dgid, id.dev.mac = n.GID, macOf(n.GID.GUID())
	return src, nil
}

// sourceTowards chooses the own address on the network of dst. If the interface
// is known, IPv4 takes any destination as being on its network
// (ip_route_output_key_hash_rcu).
func (c *core) sourceTowards(dst netip.Addr, known bool) (netip.Addr, bool) {
	for _, own := range c.cfg.Addrs {
		if own.Contains(dst) {
			return own.Addr(), true
		}
	}
	for _, own := range c.cfg.Addrs {
		if known && dst.Is4() && own.Addr().Is4() {
			return own.Addr(), true
		}
	}
	return netip.Addr{}, false
}

func (c *core) neighbour(ip netip.Addr) (Neighbour, bool) {
	if c.cfg.Neighbour == nil {
		return Neighbour{}, false
	}
	return c.cfg.Neighbour(ip)
}

// isOwn tells whether an IP address is this host's.
func (c *core) isOwn(ip netip.Addr) bool {
	if !c.hasInterface() {
		return false
	}
	for _, own := range c.cfg.Addrs {
		if own.Addr() == ip {
			return true
		}
	}
	return false
}

// hasInterface tells whether the network interface is there: that of IPoIB goes
// with its device.
func (c *core) hasInterface() bool { return c.cfg.RoCE || !c.gone }
