package server

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sma"
	"github.com/ibsm/ibsm/topo"
)

// groups are the multicast groups of the subnet. The server keeps them to itself:
// it writes no forwarding tables.
type groups struct {
	mu      sync.Mutex
	byMGID  map[mad.GID]*group
	byMLID  map[mad.LID]*group
	lastLID mad.LID // the highest MLID that all switches have room for
	serial  uint32  // of the last MGID that the server made
}

// group is a multicast group.
type group struct {
	rec     mad.MCMemberRecord // what the members have in common; JoinState is that of who made it
	members map[mad.GUID]*member
	// wellKnown groups stay without members.
	wellKnown bool
}

// member is a port that belongs to a group.
type member struct {
	port  *topo.Port
	state mad.JoinState
	proxy bool // another port joined for it
}

// full are the ways of being a member that keep a group alive: the second, which
// sends only, counts as the first does for all but forwarding.
const full = mad.JoinFullMember | mad.JoinSendOnlyFullMember

// Parts of MGIDs: the flag of those that nobody has assigned for good, and the
// signatures of IPoIB (RFC 4391) and of those that an SA makes (IBA 15.2.5.17).
const (
	transient     = 0x10
	signatureIPv4 = 0x401b
	signatureIPv6 = 0x601b
	signatureSA   = 0xa01b
)

// newGroups has the one group that OpenSM makes without being asked, and without
// members: that of IPoIB's broadcasts in the default partition, as its defaults
// are (osm_prtn.c, osm_base.h).
func newGroups(sub *topo.Subnet) *groups {
	g := &groups{byMGID: map[mad.GID]*group{}, byMLID: map[mad.LID]*group{}, lastLID: lastMLID(sub)}
	g.add(&group{wellKnown: true, rec: mad.MCMemberRecord{
		MGID: broadcast(mad.ScopeLinkLocal, mad.DefaultPKey), MLID: mad.FirstMulticast, QKey: 0x0b1b, PKey: mad.DefaultPKey,
		MTUSelector: mad.SelectorExactly, MTU: mad.MTU2048, RateSelector: mad.SelectorExactly, Rate: mad.Rate10G,
		PacketLifeTimeSelector: mad.SelectorExactly, PacketLifeTime: sub.SubnetTimeOut,
		Scope: mad.ScopeLinkLocal, JoinState: mad.JoinFullMember,
	}})
	return g
}

// broadcast is the MGID of IPoIB's broadcasts over IPv4 in a partition (RFC 4391,
// 4).
func broadcast(scope mad.MulticastScope, key mad.PKey) mad.GID {
	gid := mad.GID{0xff, transient | byte(scope), 2: 0x40, 3: 0x1b, 12: 0xff, 13: 0xff, 14: 0xff, 15: 0xff}
	binary.BigEndian.PutUint16(gid[4:], uint16(key))
	return gid
}

// lastMLID is the last MLID that each switch's table has an entry for.
func lastMLID(sub *topo.Subnet) mad.LID {
	last := mad.PermissiveLID - 1
	for p := range sub.EndPorts() {
		agent := sma.Agent{Subnet: sub, State: sma.AsModelled{Subnet: sub}, End: p, In: p.Num}
		var data [mad.SMPDataSize]byte
		var info mad.SwitchInfo
		if agent.Get(mad.AttrSwitchInfo, 0, &data) == mad.StatusOK {
			info.DecodeFrom((*[mad.SwitchInfoSize]byte)(data[:]))
			last = min(last, mad.FirstMulticast+mad.LID(info.MulticastFDBCap)-1)
		}
	}
	return last
}

func (g *groups) add(one *group) {
	one.members = map[mad.GUID]*member{}
	g.byMGID[one.rec.MGID] = one
	g.byMLID[one.rec.MLID] = one
}

func (g *groups) remove(one *group) {
	delete(g.byMGID, one.rec.MGID)
	delete(g.byMLID, one.rec.MLID)
}

// sorted gives the groups by MGID.
func (g *groups) sorted() []*group {
	return slices.SortedFunc(maps.Values(g.byMGID), func(a, b *group) int {
		return bytes.Compare(a.rec.MGID[:], b.rec.MGID[:])
	})
}

// sorted gives the members by port GUID.
func (g *group) sorted() []*member {
	return slices.SortedFunc(maps.Values(g.members), func(a, b *member) int { return cmp.Compare(a.port.GUID, b.port.GUID) })
}

// fullMembers counts the members that keep the group alive.
func (g *group) fullMembers() (n int) {
	for _, m := range g.members {
		if m.state&full != 0 {
			n++
		}
	}
	return n
}

// record is what the group's members have in common, and one of them.
func (g *group) record(m *member, prefix uint64) mad.MCMemberRecord {
	rec := g.rec
	rec.PortGID, rec.JoinState, rec.ProxyJoin = m.port.GID(prefix), m.state, m.proxy
	return rec
}

// agrees tells whether a group has the values of those components of a query that
// are not bounds.
func (g *group) agrees(q *memberQuery) bool {
	return (!q.has(mcQKey) || q.want.QKey == g.rec.QKey) &&
		(!q.has(mcPKey) || q.want.PKey.Matches(g.rec.PKey)) &&
		(!q.has(mcTClass) || q.want.TClass == g.rec.TClass) &&
		(!q.has(mcSL) || q.want.SL == g.rec.SL) &&
		(!q.has(mcFlowLabel) || q.want.FlowLabel == g.rec.FlowLabel) &&
		(!q.has(mcHopLimit) || q.want.HopLimit == g.rec.HopLimit)
}

// inBounds tells whether a group is within the bounds of a query.
func (g *group) inBounds(q *memberQuery) bool {
	return (!q.hasAll(mcMTU) || keeps(q.want.MTUSelector, cmp.Compare(g.rec.MTU, q.want.MTU))) &&
		(!q.hasAll(mcRate) || keeps(q.want.RateSelector, g.rec.Rate.Compare(q.want.Rate))) &&
		(!q.hasAll(mcLife) || keeps(q.want.PacketLifeTimeSelector, cmp.Compare(g.rec.PacketLifeTime, q.want.PacketLifeTime)))
}

// carriedBy tells whether a port's link is as good as the group wants it.
func (g *group) carriedBy(p *topo.Port) bool {
	return p.MTU >= g.rec.MTU && p.LinkPort().Rate().Compare(g.rec.Rate) >= 0
}

// mayChange tells whether a requester may change a member (IBA o15-0.2.1).
func (g *group) mayChange(m *member, requester *topo.Port) bool {
	if m.proxy {
		return isIn(g.rec.PKey, requester)
	}
	return m.port == requester
}

// freeMLID is the MLID asked for if it can be had, else the lowest that is free, 0
// if there is none.
func (g *groups) freeMLID(asked mad.LID) mad.LID {
	if asked >= mad.FirstMulticast && asked <= g.lastLID && g.byMLID[asked] == nil {
		return asked
	}
	for lid := mad.FirstMulticast; lid <= g.lastLID; lid++ {
		if g.byMLID[lid] == nil {
			return lid
		}
	}
	return 0
}

// newMGID makes an MGID that no group has: the SA's signature, the subnet's prefix
// and a number (IBA 15.2.5.17).
func (g *groups) newMGID(scope mad.MulticastScope, prefix uint64) mad.GID {
	gid := mad.GID{0xff, transient | byte(scope)}
	binary.BigEndian.PutUint16(gid[2:], signatureSA)
	binary.BigEndian.PutUint64(gid[4:], prefix)
	for {
		g.serial++
		binary.BigEndian.PutUint32(gid[12:], g.serial)
		if g.byMGID[gid] == nil {
			return gid
		}
	}
}
