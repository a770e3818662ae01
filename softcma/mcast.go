package softcma

import (
	"net/netip"
	"slices"
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// mcast is a membership of an id in a multicast group (struct ucma_multicast,
// struct cma_multicast).
type mcast struct {
	num      uint32 // its own id
	uid      uint64
	reported uint32
	id       *cmid
	state    mad.JoinState
	want     mad.MCMemberRecord // that the group must agree with
	group    *group             // nil on RoCE
	member   bool
}

// group is a multicast group of the subnet that this host is in, or asks to be
// (struct mcast_group). One request of each is under way.
type group struct {
	rec     mad.MCMemberRecord // as the SA gave it; JoinState is what we are
	waiting []*mcast
	members []*mcast
	busy    bool
}

// join is rdma_join_multicast.
func (c *core) join(now time.Time, m *mcast, addr ucma.Sockaddr) error {
	id := m.id
	if !id.hasDev || id.state != stateAddrBound && id.state != stateAddrResolved || id.qpType != ucma.QPTypeUD {
		return ucma.EINVAL
	}
	var err error
	if c.cfg.RoCE {
		err = c.joinRoCE(now, m, addr)
	} else {
		c.joinIB(now, m, addr)
	}
	if err == nil {
		id.mcasts = append(id.mcasts, m)
	}
	return err
}

// joinRoCE joins without asking anybody (cma_iboe_join_multicast).
func (c *core) joinRoCE(now time.Time, m *mcast, addr ucma.Sockaddr) error {
	id := m.id
	switch {
	case isZero(addr):
		return ucma.EINVAL
	case id.dev.ifIndex == 0:
		return ucma.ENODEV
	case addr.Family() != ucma.AFInet:
		return errNotSupported
	}
	if id.qkey == 0 {
		id.setDefaultQKey()
	}
	m.member = true
	const hops = 64 // IPV6_DEFAULT_HOPLIMIT
	m.want = mad.MCMemberRecord{MGID: gidOf(addr), PortGID: gidOf(id.src), HopLimit: hops}
	c.at(now, func(now time.Time) {
		if m.member && id.state != stateDestroyed && id.state != stateRemoved {
			c.reportJoined(m, nil)
		}
	})
	return nil
}

// errNotSupported is the kernel's own ENOTSUPP, which has no name for users.
const errNotSupported ucma.Errno = "errno 524"

// joinIB asks the SA (cma_join_ib_multicast). Q_Key, SL, FlowLabel and TClass
// are to be those of IPoIB's broadcast group.
func (c *core) joinIB(now time.Time, m *mcast, addr ucma.Sockaddr) {
	id := m.id
	if id.qkey == 0 {
		id.setDefaultQKey()
	}
	m.want = mad.MCMemberRecord{
		MGID: mgidOf(id, addr), PortGID: id.dev.sgid, QKey: id.qkey, PKey: id.dev.pkey, JoinState: m.state,
	}
	g := c.groups[m.want.MGID]
	if g == nil || m.want.MGID.IsZero() { // zero asks for a new group
		g = &group{rec: mad.MCMemberRecord{MGID: m.want.MGID}}
		c.groups[m.want.MGID] = g
	}
	m.group = g
	g.waiting = append(g.waiting, m)
	c.at(now, func(now time.Time) { c.work(now, g) })
}

// mcastWait is how long the SA is waited for: 3 s (multicast.c).
var mcastWait = saWait(3 * time.Second)

// work does what a group waits for: joins, and when nobody is left, the leave
// (mcast_work_handler).
func (c *core) work(now time.Time, g *group) {
	for !g.busy && len(g.waiting) > 0 {
		m := g.waiting[0]
		if g.rec.JoinState&m.state != m.state {
			c.askToJoin(g, m)
			return
		}
		g.waiting = g.waiting[1:]
		if !g.agrees(&m.want) {
			c.joined(m, ucma.EINVAL)
			continue
		}
		m.member = true
		g.members = append(g.members, m)
		c.joined(m, nil)
	}
	if g.busy || c.gone {
		return
	}
	left := g.rec.JoinState
	for _, m := range g.members {
		left &^= m.state
	}
	if left != 0 {
		c.askToLeave(g, left)
		return
	}
	if len(g.members) == 0 && c.groups[g.rec.MGID] == g {
		delete(c.groups, g.rec.MGID)
	}
}

func (c *core) askToJoin(g *group, m *mcast) {
	g.busy = true
	want := m.want
	q := &query{wait: mcastWait, join: &want}
	if m.id.ps == ucma.PortSpaceIPoIB {
		want.MTUSelector, want.MTU = mad.SelectorExactly, mad.MTU2048
		want.RateSelector, want.Rate = mad.SelectorExactly, c.info.Rate
		q.fields = []string{"RateSelector", "Rate", "MTUSelector", "MTU", "HopLimit"}
	}
	q.done = func(now time.Time, _ mad.PathRecord, rec mad.MCMemberRecord, err error) {
		g.busy = false
		if err == nil {
			if c.groups[g.rec.MGID] == g {
				delete(c.groups, g.rec.MGID)
			}
			rec.JoinState = g.rec.JoinState | m.state
			g.rec = rec
			c.groups[rec.MGID] = g
		} else if len(g.waiting) > 0 && g.waiting[0] == m {
			g.waiting = g.waiting[1:]
			c.joined(m, err)
		}
		c.work(now, g)
	}
	c.ask(q)
}

func (c *core) askToLeave(g *group, state mad.JoinState) {
	g.busy = true
	g.rec.JoinState &^= state
	rec := mad.MCMemberRecord{MGID: g.rec.MGID, PortGID: g.rec.PortGID, JoinState: state}
	c.ask(&query{wait: mcastWait, leave: &rec, done: func(now time.Time, _ mad.PathRecord, _ mad.MCMemberRecord, _ error) {
		g.busy = false
		c.work(now, g)
	}})
}

// agrees is cmp_rec for the components that joinIB asks for.
func (g *group) agrees(want *mad.MCMemberRecord) bool {
	return g.rec.PortGID == want.PortGID && g.rec.QKey == want.QKey && g.rec.PKey == want.PKey &&
		g.rec.SL == want.SL && g.rec.FlowLabel == want.FlowLabel && g.rec.TClass == want.TClass
}

// joined tells an id what came of its join (cma_ib_mc_handler). Another Q_Key
// than the id has is passed over in silence.
func (c *core) joined(m *mcast, err error) {
	if err == nil && !m.id.setQKey(m.group.rec.QKey) {
		return
	}
	c.reportJoined(m, err)
}

// reportJoined is cma_make_mc_event.
func (c *core) reportJoined(m *mcast, err error) {
	e := event{typ: ucma.EventMulticastError, err: err, mc: m}
	if err == nil {
		rec := &m.want
		if m.group != nil {
			rec = &m.group.rec
		}
		e.typ = ucma.EventMulticastJoin
		e.ud.QPNum, e.ud.QKey = 0xffffff, m.id.qkey
		ah := cm.AH{Rate: rec.Rate, Port: c.info.Port, Addr: mad.AddressVector{LID: rec.MLID, SL: rec.SL, HasGRH: true, GRH: mad.GRH{
			GID: rec.MGID, GIDIndex: uint8(max(c.gidIndex(rec.PortGID), 0)), HopLimit: rec.HopLimit, TrafficClass: rec.TClass, FlowLabel: rec.FlowLabel,
		}}}
		e.ud.AH = ahAttr(&ah)
	}
	c.report(m.id, e)
}

// leave ends a membership (rdma_leave_multicast). The SA is told when nobody on
// this host is left in that way.
func (c *core) leave(now time.Time, m *mcast) {
	m.id.mcasts = remove(m.id.mcasts, m)
	m.member = false
	if g := m.group; g != nil {
		g.waiting = slices.DeleteFunc(g.waiting, func(o *mcast) bool { return o == m })
		g.members = remove(g.members, m)
		c.work(now, g)
	}
}

// mgidOf maps an address to a group's GID (cma_set_mgid).
func mgidOf(id *cmid, a ucma.Sockaddr) mad.GID {
	switch {
	case isAny(a):
		return mad.GID{}
	case a.IB != nil:
		return a.IB.GID
	}
	ip := a.IP.Addr()
	if raw := ip.AsSlice(); len(raw) == 16 && raw[0] == 0xff && raw[1]&0xf0 == 0x10 && raw[2] == 0xa0 && raw[3] == 0x1b {
		return mad.GID(raw) // an MGID that the SA made
	}
	gid := ipoibMGID(ip, id.dev.pkey)
	if id.ps == ucma.PortSpaceUDP {
		gid[3] = 1 // the RDMA CM's signature
	}
	return gid
}

// ipoibMGID is IPoIB's group for a multicast address (RFC 4391, 4; ip_ib_mc_map,
// ipv6_ib_mc_map), link-local as its broadcast group is.
func ipoibMGID(ip netip.Addr, pkey mad.PKey) mad.GID {
	gid := mad.GID{0: 0xff, 1: 0x12, 2: 0x40, 3: 0x1b, 4: uint8(pkey >> 8), 5: uint8(pkey)}
	if ip.Is4() {
		raw := ip.As4()
		copy(gid[12:], raw[:])
		gid[12] &= 0x0f
		return gid
	}
	raw := ip.As16()
	gid[2], gid[3] = 0x60, 0x1b
	copy(gid[6:], raw[6:])
	return gid
}
