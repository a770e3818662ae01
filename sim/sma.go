package sim

import (
	"encoding/binary"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sma"
	"github.com/ibsm/ibsm/topo"
)

// consume ends a packet that has reached its node: the node's agent answers it,
// or the reader of the end port gets it. It tells whether the packet goes on, as
// the answer.
func (c *core) consume(p *packet) bool {
	end := &p.at.node.ports[p.at.devicePort()]
	if !isSMP(p.class()) {
		c.deliverGMP(p, end)
		return false
	}
	var asked *subn
	if len(c.deviations) > 0 && !p.answered {
		request := *p.subn()
		asked = &request
		c.serving(end, p)
	}
	method := mad.Method(p.mad[mad.OffMethod])
	attribute := mad.AttributeID(binary.BigEndian.Uint16(p.mad[mad.OffAttribute:]))
	switch {
	case p.answered, method&mad.ResponseBit != 0, method == mad.MethodTrap, // for the SM (IBA 14.2.4)
		p.class() == mad.ClassSubnDirected && isReturning(p):
		c.deliver(p, end)
		return false
	case isVersion1(p) && !c.admits(end, mkeyOf(p), method):
		c.drop(p, topo.Hop{}, BadMKey)
		return false
	case attribute == mad.AttrSMInfo && end.isSM && end.Port != c.sub.SM:
		c.deliver(p, end)
		return false
	case method == mad.MethodTrapRepress: // has no response, and there are no traps
		c.drop(p, topo.Hop{}, NotForAgent)
		return false
	}
	c.answer(p, end, method, attribute)
	c.answering(asked, p)
	return true
}

// answer makes the response of the node's subnet management agent in place.
func (c *core) answer(p *packet, end *simPort, method mad.Method, attribute mad.AttributeID) {
	status := c.serve(p, end, method, attribute)
	p.mad[mad.OffMethod] = byte(mad.MethodGetResp)
	p.slid, p.dlid = p.dlid, p.slid
	if p.class() == mad.ClassSubnDirected {
		status |= 0x8000 // the D bit, in the place of the status' highest bit
		if drLID(p, offDrDLID) == mad.PermissiveLID {
			p.slid, p.dlid = mad.PermissiveLID, mad.PermissiveLID
		}
	} else if p.slid == mad.PermissiveLID && end.LID != 0 {
		p.slid = end.LID
	}
	binary.BigEndian.PutUint16(p.mad[mad.OffStatus:], uint16(status))
	p.start, p.answered = true, true
	c.stats.Answered++
	c.report(Answer, topo.Hop{From: end.Port}, 0, p)
}

// serve does a request on the 64 bytes of data.
func (c *core) serve(p *packet, end *simPort, method mad.Method, attribute mad.AttributeID) mad.Status {
	if !isVersion1(p) {
		return mad.StatusBadVersion
	}
	agent := c.agent(end, p.in)
	agent.MKey = mkeyOf(p)
	modifier := binary.BigEndian.Uint32(p.mad[mad.OffModifier:])
	data := (*[mad.SMPDataSize]byte)(p.mad[mad.OffSMPData:])
	switch method {
	case mad.MethodGet:
		return agent.Get(attribute, modifier, data)
	case mad.MethodSet:
		return agent.Set(c, attribute, modifier, data)
	}
	return mad.StatusBadMethod
}

func isVersion1(p *packet) bool {
	return p.mad[0] == mad.BaseVersion && p.mad[mad.OffClassVersion] == 1
}

// agent is the agent of an end port's node for a request that came by port in.
func (c *core) agent(end *simPort, in uint8) sma.Agent {
	return sma.Agent{Subnet: c.sub, State: c, End: end.Port, In: in}
}

// IsSM is of sma.State, as the following methods.
func (c *core) IsSM(p *topo.Port) bool { return c.port(p).isSM }

func (c *core) Activity() uint32 { return c.changes }

func (c *core) LFT(sw *topo.Node) []uint8 { return c.nodes[sw].lft }

func (c *core) Notice(n *topo.Node) mad.SMPNotice { return c.nodes[n].notice }

// linkChanged leaves a notice at a switch whose link came up or went down (IBA
// 14.2.5.1, trap 128). The queue of notices holds the last one.
func (n *node) linkChanged() {
	if !n.IsSwitch() {
		return
	}
	lid := n.ports[0].LID
	toggle := !n.notice.NoticeToggle
	n.notice = mad.SMPNotice{
		IsGeneric: true, Type: mad.NoticeTypeUrgent, ProducerType: mad.ProducerTypeSwitch,
		TrapNumber: mad.TrapLinkStateChange, IssuerLID: lid, NoticeToggle: toggle, NoticeCount: 1,
	}
	details := mad.Trap128Details{LIDADDR: lid}
	details.EncodeTo(&n.notice.DataDetails)
}
