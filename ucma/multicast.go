package ucma

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Group is an id's membership in a multicast group. It has events of its own.
type Group struct {
	id   *ID
	uid  uint64
	num  uint32
	box  mailbox // under id.mu
	last finale
}

// Join joins a multicast group, by an IP address or an InfiniBand one; an address that is
// no group's is refused, of which a kernel would make a group. The id is a datagram one
// with a device. Event, of the group: MULTICAST_JOIN or MULTICAST_ERROR.
func (id *ID) Join(addr Sockaddr, flags JoinFlags) (*Group, error) {
	g := &Group{id: id, uid: lastUID.Add(1), box: newMailbox()}
	var cmd Command = JoinIPMcast{UID: g.uid, ID: id.num, Addr: addr}
	if !addr.isMulticast() {
		return nil, id.failed(id.State(), &CommandError{
			Dialect: id.channel().dialect, Op: cmd.Op(), Field: "addr", Rule: addr.String() + " is no multicast address", Err: EINVAL,
			Fix: "groups are 224.0.0.0/4, ff00::/8 and the GIDs that begin with ff",
		})
	}
	switch {
	case id.has(OpJoinMcast):
		cmd = JoinMcast{UID: g.uid, ID: id.num, Addr: addr, Flags: flags}
	case flags != JoinFullMember:
		return nil, id.failed(id.State(), errors.New("JOIN_MCAST: illumos joins as a full member only"))
	}
	id.mu.Lock()
	if id.groups == nil {
		id.groups = map[uint64]*Group{}
	}
	id.groups[g.uid] = g
	c := id.ch
	id.mu.Unlock()
	c.add(g.uid, g)
	var r CreateIDResp
	if err := id.run(&ruleJoin, cmd, &r); err != nil {
		g.forget(c)
		return nil, err
	}
	g.num = r.ID
	return g, nil
}

func (g *Group) forget(c *Channel) {
	c.remove(g.uid)
	g.id.mu.Lock()
	defer g.id.mu.Unlock()
	delete(g.id.groups, g.uid)
}

// receive counts for the id too, as the kernel does.
func (g *Group) receive(c *Channel, r *EventResp) {
	g.id.mu.Lock()
	defer g.id.mu.Unlock()
	g.box.fetched++
	g.id.box.fetched++
	g.box.put(makeEvent(c.dialect, r, QPTypeUD))
}

// Next waits for the next event of the group; ErrDestroyed if it is left, or its id
// destroyed.
func (g *Group) Next(ctx context.Context) (Event, error) { return g.id.next(ctx, &g.box) }

// Wait gives the next event of these types, as [ID.Wait] does.
func (g *Group) Wait(ctx context.Context, types ...EventType) (Event, error) {
	return waitFor(ctx, g.Next, types)
}

// Leave leaves the group, as [ID.Destroy] destroys an id.
func (g *Group) Leave(ctx context.Context) error {
	g.last.start(g.end, func() error {
		c := g.id.channel()
		err := c.destroy(LeaveMcast{ID: g.num}, g.uid, func() uint32 {
			g.id.mu.Lock()
			defer g.id.mu.Unlock()
			return g.box.fetched
		})
		g.forget(c)
		if err != nil {
			return g.id.failed(g.id.State(), err)
		}
		return nil
	})
	return g.last.wait(ctx)
}

func (g *Group) end() {
	g.id.mu.Lock()
	defer g.id.mu.Unlock()
	g.box.end(ErrDestroyed)
}

// JoinConfig tunes Join; its zero value is right for most.
type JoinConfig struct {
	PortSpace PortSpace // UDP or IPOIB, which stands in the MGID of an IP address. 0: UDP
	// Source is the address of the port that joins. Zero: the one that leads to the
	// group; to an IBAddr none does, so with that Source must be set.
	Source         Sockaddr
	SendOnly       bool          // join as a sender only; not on illumos
	ResolveTimeout time.Duration // 0: 2 s

	// Progress is told each step when it is over.
	Progress func(Step)
}

// Membership is a multicast group that a port has joined. Close or Leave it when done.
type Membership struct {
	Group Sockaddr
	MGID  mad.GID
	MLID  mad.LID
	QKey  uint32
	QPN   uint32 // of all members: 0xffffff
	AH    AHAttr // with which the group is reached

	ch    *Channel
	id    *ID
	group *Group
	flow  *flow
}

// Join joins a multicast group: an IP address, whose port counts for nothing, or an
// IBAddr of its MGID. If it fails the error is a *StepError.
func (open Opener) Join(ctx context.Context, group Sockaddr, cfg JoinConfig) (*Membership, error) {
	if cfg.PortSpace == 0 {
		cfg.PortSpace = PortSpaceUDP
	}
	if cfg.ResolveTimeout <= 0 {
		cfg.ResolveTimeout = defaultResolveTime
	}
	m := &Membership{Group: group, flow: &flow{peer: group.String(), progress: cfg.Progress}}
	var err error
	if m.ch, m.id, err = m.flow.start(ctx, open, cfg.PortSpace, 0); err != nil {
		return nil, err
	}
	if err := m.join(ctx, &cfg); err != nil {
		return nil, m.flow.quit(m.ch, m.id, err)
	}
	return m, nil
}

// errNoSource: the kernel looks for a port with the GID, or with its prefix, which
// groups do not have (cma.c, cma_resolve_ib_dev).
var errNoSource = errors.New("JoinConfig.Source is missing: to the GID of a group no port leads, give the IBAddr of the one that joins")

func (m *Membership) join(ctx context.Context, cfg *JoinConfig) error {
	var err error
	switch {
	case cfg.Source.Family() != AFUnspec:
		err = m.flow.bind(ctx, m.id, cfg.Source)
	case m.Group.IB != nil:
		err = m.flow.step(ctx, StepBind, func() (string, error) { return "", errNoSource })
	default:
		err = m.flow.resolve(ctx, m.id, Sockaddr{}, m.Group, cfg.ResolveTimeout)
	}
	if err != nil {
		return err
	}
	return m.flow.step(ctx, StepJoin, func() (detail string, err error) {
		flags := JoinFullMember
		if cfg.SendOnly {
			flags = JoinSendOnlyFullMember
		}
		if m.group, err = m.id.Join(m.Group, flags); err != nil {
			return "", err
		}
		e, err := m.group.Wait(ctx, EventMulticastJoin)
		if err != nil {
			return "", err
		}
		m.AH, m.QKey, m.QPN = e.UD.AH, e.UD.QKey, e.UD.QPNum
		m.MGID, m.MLID = m.AH.GRH.DGID, m.AH.DLID
		return fmt.Sprintf("MGID %v, MLID 0x%04x, Q_Key 0x%08x", m.MGID, uint16(m.MLID), m.QKey), nil
	})
}

// ID is the membership's id.
func (m *Membership) ID() *ID { return m.id }

// Steps are those done so far.
func (m *Membership) Steps() []Step { return m.flow.list() }

// Wait waits for the membership's end by other hands: an *EventError of MULTICAST_ERROR
// when the SA has forgotten it, as after a change of the subnet manager, or ErrGone.
func (m *Membership) Wait(ctx context.Context) error {
	_, err := m.group.Wait(ctx)
	return err
}

// Leave leaves the group and closes what was opened for it.
func (m *Membership) Leave(ctx context.Context) error {
	err := m.flow.step(ctx, StepLeave, func() (string, error) { return m.Group.String(), m.group.Leave(ctx) })
	return m.flow.quit(m.ch, m.id, err)
}

// Close does the same in one: the kernel leaves the groups of an id that is destroyed. It
// waits for a kernel that hangs as [Connection.Close] does.
func (m *Membership) Close() error { return m.flow.finish(m.ch, m.id) }
