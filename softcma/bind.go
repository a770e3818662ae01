package softcma

import (
	"net/netip"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// bindKey is a port number of a port space.
type bindKey struct {
	ps   ucma.PortSpace
	port uint16
}

// bindList is who has a port number (struct rdma_bind_list).
type bindList struct {
	bindKey
	owners []*cmid // the newest first
}

func (b *bindList) release(c *core, id *cmid) {
	if b == nil {
		return
	}
	if b.owners = remove(b.owners, id); len(b.owners) == 0 {
		delete(c.binds, b.bindKey)
	}
	id.bound = nil
}

// Range of ephemeral ports (net.ipv4.ip_local_port_range).
const (
	firstEphemeral = 32768
	lastEphemeral  = 60999
)

// bind gives an id its own address (rdma_bind_addr).
func (c *core) bind(id *cmid, addr ucma.Sockaddr) error { return c.bindBoth(id, addr, nil) }

// bindBoth is rdma_bind_addr_dst; dst is nil for a mere bind.
func (c *core) bindBoth(id *cmid, addr ucma.Sockaddr, dst *ucma.Sockaddr) error {
	family := addr.Family()
	if family == ucma.AFUnspec {
		return ucma.EAFNOSUPPORT
	}
	if !id.become(stateIdle, stateAddrBound) {
		return ucma.EINVAL
	}
	if err := c.bindAddr(id, addr, dst); err != nil {
		id.become(stateAddrBound, stateIdle)
		return err
	}
	return nil
}

func (c *core) bindAddr(id *cmid, addr ucma.Sockaddr, dst *ucma.Sockaddr) error {
	family := addr.Family()
	if family == ucma.AFInet6 && addr.IP.Addr().IsLinkLocalUnicast() { // cma_check_linklocal
		if addr.ScopeID == 0 {
			return ucma.EINVAL
		}
		id.dev.ifIndex = addr.ScopeID
	}
	id.src = addr
	if !isAny(addr) {
		if err := c.translate(id, addr); err != nil {
			return err
		}
		if err := c.acquire(id); err != nil {
			return err
		}
	}
	if !id.afOnlySet && family != ucma.AFIB {
		id.afOnly = family == ucma.AFInet // bindv6only is off
	}
	// Of a destination of another family the port number is all that stays.
	if dst != nil && dst.Family() == family {
		id.dst = *dst
	} else if id.dst.Family() != family {
		port := uint16(0)
		if dst != nil {
			port = dst.IP.Port()
		}
		id.dst = unspecified(family, port)
	}
	if err := c.takePort(id); err != nil {
		c.detach(id)
		return err
	}
	return nil
}

// translate finds the interface of an own address (cma_translate_addr).
func (c *core) translate(id *cmid, addr ucma.Sockaddr) error {
	if addr.IB != nil {
		id.dev.infiniband = true
		id.dev.sgid, id.dev.pkey = addr.IB.GID, addr.IB.PKey
		return nil
	}
	if id.dev.ifIndex != 0 {
		if id.dev.ifIndex != c.cfg.IfIndex || !c.hasInterface() {
			return ucma.ENODEV
		}
		c.useInterface(id)
		return nil
	}
	if !c.isOwn(addr.IP.Addr()) {
		return ucma.EADDRNOTAVAIL
	}
	c.useInterface(id)
	return nil
}

// useInterface is rdma_copy_src_l2_addr for the one interface that the port has.
func (c *core) useInterface(id *cmid) {
	id.dev.ifIndex = c.cfg.IfIndex
	id.dev.infiniband = !c.cfg.RoCE
	if !c.cfg.RoCE {
		id.dev.sgid, id.dev.pkey = c.portGID(), c.ipoibPKey()
	}
}

// acquire attaches the device that has an id's source address
// (cma_acquire_dev_by_src_ip).
func (c *core) acquire(id *cmid) error {
	if !id.dev.infiniband && id.ps == ucma.PortSpaceIPoIB {
		return ucma.EINVAL
	}
	if c.gone || !c.validPort(id) {
		return ucma.ENODEV
	}
	c.attach(id)
	return nil
}

// validPort tells whether the port has the GID of an id's source address
// (cma_validate_port).
func (c *core) validPort(id *cmid) bool {
	if id.dev.infiniband == c.cfg.RoCE {
		return false
	}
	if c.cfg.RoCE {
		return id.dev.ifIndex != 0 && c.gidIndex(gidOf(id.src)) >= 0
	}
	return c.gidIndex(id.dev.sgid) >= 0
}

// takePort takes the port number of an id's address, or any (cma_get_port).
func (c *core) takePort(id *cmid) error {
	ps := id.ps
	if id.src.IB != nil {
		ps = selectIBPortSpace(id)
	}
	if ps == 0 {
		return ucma.EPROTONOSUPPORT
	}
	if port := portOf(id.src); port != 0 {
		return c.usePort(id, bindKey{ps, port})
	}
	return c.useAnyPort(id, ps)
}

// usePort is cma_use_port, as root.
func (c *core) usePort(id *cmid, key bindKey) error {
	if b := c.binds[key]; b != nil {
		if err := b.check(id, id.reuseAddr); err != nil {
			return err
		}
	}
	c.own(id, key)
	return nil
}

// own is cma_bind_port.
func (c *core) own(id *cmid, key bindKey) {
	b := c.binds[key]
	if b == nil {
		b = &bindList{bindKey: key}
		c.binds[key] = b
	}
	if id.src.IB != nil {
		ib := *id.src.IB
		ib.ServiceID, ib.ServiceIDMask = ib.ServiceID&ib.ServiceIDMask|uint64(key.port), ^uint64(0)
		id.src.IB = &ib
	} else {
		id.src.IP = netip.AddrPortFrom(id.src.IP.Addr(), key.port)
	}
	id.bound = b
	b.owners = append([]*cmid{id}, b.owners...)
}

// useAnyPort is cma_alloc_any_port.
func (c *core) useAnyPort(id *cmid, ps ucma.PortSpace) error {
	const n = lastEphemeral - firstEphemeral + 1
	start := c.random() % n
	for i := range uint32(n) {
		key := bindKey{ps, uint16(firstEphemeral + (start+i)%n)}
		if key.port == c.lastPort {
			continue
		}
		if b := c.binds[key]; b != nil && !b.unique(id) {
			continue
		}
		c.own(id, key)
		c.lastPort = key.port
		return nil
	}
	return ucma.EADDRNOTAVAIL
}

// unique is cma_port_is_unique: whether the port number may be shared because
// something else differs.
func (b *bindList) unique(id *cmid) bool {
	for _, cur := range b.owners {
		switch {
		case cur == id:
		case portOf(id.dst) != 0 && portOf(cur.dst) != 0 && portOf(id.dst) != portOf(cur.dst):
		case !isAny(id.src) && !isAny(cur.src) && differ(id.src, cur.src):
		case !isAny(id.dst) && !isAny(cur.dst) && differ(id.dst, cur.dst):
		default:
			return false
		}
	}
	return true
}

// check tells whether an id may have a port number that is taken
// (cma_check_port).
func (b *bindList) check(id *cmid, reuse bool) error {
	for _, cur := range b.owners {
		switch {
		case cur == id, reuse && cur.reuseAddr, id.afOnly && cur.afOnly && id.src.Family() != cur.src.Family():
		case isAny(id.src) || isAny(cur.src):
			return ucma.EADDRNOTAVAIL
		case !differ(id.src, cur.src):
			return ucma.EADDRINUSE
		}
	}
	return nil
}

// Service ids of the IP port spaces (rdma_cm.h).
const serviceMask = 0xffffffffffff0000

// selectIBPortSpace finds the port space that an AF_IB address is in, and writes
// its service id out (cma_select_ib_ps). 0: none.
func selectIBPortSpace(id *cmid) ucma.PortSpace {
	ib := *id.src.IB
	mask := ib.ServiceIDMask & serviceMask
	for _, ps := range []ucma.PortSpace{ucma.PortSpaceIB, ucma.PortSpaceTCP, ucma.PortSpaceUDP} {
		if (id.ps == ucma.PortSpaceIB || id.ps == ps) && ib.ServiceID&mask == uint64(ps)<<16&mask {
			ib.ServiceID = uint64(ps)<<16 | uint64(portOf(id.src))
			ib.ServiceIDMask |= serviceMask
			id.src.IB = &ib
			return ps
		}
	}
	return 0
}

// gidIndex is the index of a GID in the port's table, -1 if it is not there.
func (c *core) gidIndex(gid mad.GID) int {
	for i, g := range c.info.GIDs {
		if g == gid && !g.IsZero() {
			return i
		}
	}
	return -1
}
