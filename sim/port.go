package sim

import (
	"slices"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sma"
	"github.com/ibsm/ibsm/topo"
)

var (
	_ sma.State  = (*core)(nil)
	_ sma.Writer = (*core)(nil)
)

// asModelled puts a port back to what the bring-up has left. A physical layer that
// was disabled stays so.
func (p *simPort) asModelled() {
	p.State, p.LID, p.LMC, p.PKeys = p.Port.State, p.Port.LID, p.Port.LMC, p.Port.PKeys
	p.info, p.leaseEnd = nil, time.Time{}
	if p.phys != mad.PortPhysStateDisabled {
		p.phys = mad.PortPhysStatePolling
	}
}

// Has tells whether lid is one of the LIDs of p.
func (p *simPort) Has(lid mad.LID) bool { return p.LID != 0 && lid>>p.LMC == p.LID>>p.LMC }

// prefix is the GID prefix of an end port.
func (c *core) prefix(p *simPort) uint64 {
	if p.info != nil {
		return p.info.GidPrefix
	}
	return c.sub.GIDPrefix
}

// linkUp tells whether the port's link is physically up. For that one of its two
// ends must poll: a sleeping port wakes up then, a disabled one does not (IBA
// volume 2, link training).
func (p *simPort) linkUp() bool {
	return p.peer != nil && !p.cut && p.phys != mad.PortPhysStateDisabled && p.peer.phys != mad.PortPhysStateDisabled &&
		(p.phys == mad.PortPhysStatePolling || p.peer.phys == mad.PortPhysStatePolling) &&
		!p.device().removed && !p.peer.device().removed
}

// carriesData tells whether MADs that are no SMPs leave by a port whose link is up:
// it must be Active. An armed far end becomes Active by them (IBA 7.2.7).
func (p *simPort) carriesData() bool {
	if p.State != mad.PortStateActive || p.peer.State < mad.PortStateArmed {
		return false
	}
	p.peer.State = mad.PortStateActive
	return true
}

// device is the end port whose device holds the port.
func (p *simPort) device() *simPort { return &p.node.ports[p.devicePort()] }

// PortInfo is of sma.State.
func (c *core) PortInfo(t *topo.Port) mad.PortInfo {
	p := c.port(t)
	var info mad.PortInfo
	if p.info != nil {
		info = *p.info
	} else {
		info = sma.BroughtUp(c.sub, t)
	}
	switch {
	case p.Num == 0 || p.linkUp():
		info.PortState, info.PortPhysicalState = p.State, mad.PortPhysStateLinkUp
	default:
		info.PortState, info.PortPhysicalState = mad.PortStateDown, p.phys
	}
	return info
}

// PKeys is of sma.State.
func (c *core) PKeys(t *topo.Port) []mad.PKey { return c.port(t).PKeys }

// WritePortInfo is of sma.Writer.
func (c *core) WritePortInfo(t *topo.Port, info mad.PortInfo, link mad.PortPhysState) {
	p := c.port(t)
	p.info = &info
	p.LID, p.LMC = info.LID, info.LMC
	switch {
	case link != mad.PortPhysStateNoChange:
		p.takeDown(link)
	case p.Num == 0 || p.linkUp():
		p.State = info.PortState
	}
}

// WritePKeys is of sma.Writer. Free entries at the end are left out.
func (c *core) WritePKeys(t *topo.Port, first int, keys []mad.PKey) {
	p := c.port(t)
	table := make([]mad.PKey, max(len(p.PKeys), first+len(keys)))
	copy(table, p.PKeys)
	copy(table[first:], keys)
	used := len(table)
	for used > 0 && table[used-1] == 0 {
		used--
	}
	p.PKeys = slices.Clip(table[:used])
}

// takeDown takes the link of a port down and puts its physical layer into a state.
// The link comes up again at once if it can, and both ends are in Init then.
func (p *simPort) takeDown(phys mad.PortPhysState) {
	wasUp := p.linkUp()
	p.phys = phys
	if p.peer == nil {
		return
	}
	if wasUp { // the far end loses it, and goes to its default
		p.peer.phys = mad.PortPhysStatePolling
		if p.peer.info != nil {
			p.peer.phys = mad.PortPhysState(p.peer.info.LinkDownDefaultState)
		}
	}
	for _, end := range []*simPort{p, p.peer} {
		end.State = mad.PortStateInit
		end.downs++
	}
	isUp := p.linkUp()
	if isUp { // what a Set brings down is no event of its own node (IBA 14.2.5.4, PortStateChange)
		p.node.linkChanged()
	}
	if isUp || wasUp {
		p.peer.node.linkChanged()
	}
}
