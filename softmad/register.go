package softmad

import (
	"fmt"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// Limits of the kernel's registration tables (drivers/infiniband/core/mad_priv.h).
const (
	maxVersion = 0x83 // MAX_MGMT_VERSION: first class version that is refused
	maxClass   = 0x50 // MAX_MGMT_CLASS: first class that is refused, but for 0x81
	maxOUIs    = 8    // MAX_MGMT_OUI: OUIs per vendor class and version

	// maxHiTID bounds the upper halves of transaction ids, whose top byte stays 0
	// because mlx4 uses it (mad.c, ib_mad_clients).
	maxHiTID = 1<<24 - 1
)

func isSMP(c mad.Class) bool { return c == mad.ClassSubnLIDRouted || c == mad.ClassSubnDirected }

// hasOUI tells whether MADs of a class carry an OUI (IBA 16.5: the second vendor
// range).
func hasOUI(c mad.Class) bool { return c >= 0x30 && c <= 0x4f }

// agent is a registration on an open file.
type agent struct {
	file      *file
	id        port.AgentID
	hiTID     uint32 // upper half of the transaction ids of its requests
	reg       port.Registration
	transfers map[transferKey]*transfer // RMPP messages coming in
}

// versionClass is where vendor OUIs are counted.
type versionClass struct {
	version uint8
	class   mad.Class
}

// methodKey is what requests are routed by (mad.c, find_mad_agent): the R bit is
// not part of the method, and the OUI only counts in classes that have one.
type methodKey struct {
	versionClass
	oui    uint32
	method uint8
}

// refuse makes the error for a broken rule; the caller of the core adds where.
func refuse(err error, format string, args ...any) error {
	return &port.Error{Detail: fmt.Sprintf(format, args...), Err: err}
}

// register makes an agent in the lowest free slot (user_mad.c,
// ib_umad_reg_agent2). The rules are checked in the kernel's order.
func (c *core) register(f *file, r port.Registration) (*agent, error) {
	if r.QPN != mad.QPSMI && r.QPN != mad.QPGSI {
		return nil, refuse(port.ErrInvalid, "QP %d is not a management queue pair: use 0 or 1", r.QPN)
	}
	slot := f.freeSlot()
	if slot < 0 {
		return nil, refuse(port.ErrNoSlot, "all %d agent slots of this open file are in use", port.MaxAgents)
	}
	if err := c.checkRegistration(r); err != nil {
		return nil, err
	}
	if err := c.checkOwners(r); err != nil {
		return nil, err
	}
	if most := c.cfg.LastTID - c.cfg.FirstTID + 1; len(c.agents) >= int(most) {
		return nil, refuse(port.ErrNoSlot, "the device has %d agents, and transaction ids for no more", most)
	}
	a := &agent{file: f, id: port.AgentID(slot), hiTID: c.newHiTID(), reg: r}
	for _, k := range methodKeys(r) {
		c.methods[k] = a
	}
	if hasOUI(r.Class) {
		vc := versionClass{r.Version, r.Class}
		if c.ouis[vc] == nil {
			c.ouis[vc] = make(map[uint32]int)
		}
		c.ouis[vc][r.OUI]++
	}
	c.agents[a.hiTID] = a
	f.slots[slot] = a
	return a, nil
}

// checkRegistration holds the rules about the registration itself (mad.c,
// ib_register_mad_agent).
func (c *core) checkRegistration(r port.Registration) error {
	sendOnly := r.Class == 0
	if !sendOnly && r.OUI > 0xffffff {
		return refuse(port.ErrInvalid, "OUI %#x has more than 24 bits", r.OUI)
	}
	if r.QPN == mad.QPSMI && c.info.LinkLayer == port.LinkEthernet {
		return refuse(port.ErrNoQP, "an Ethernet port has no QP0")
	}
	if r.RMPP > port.RMPPUser {
		return refuse(port.ErrInvalid, "unknown RMPP mode %d", r.RMPP)
	}
	if sendOnly {
		if r.RMPP == port.RMPPUser {
			return refuse(port.ErrInvalid, "user RMPP on a send-only agent: name a class")
		}
		return nil
	}
	switch {
	case r.Version >= maxVersion:
		return refuse(port.ErrInvalid, "class version %#x is not below %#x", r.Version, maxVersion)
	case r.Class >= maxClass && r.Class != mad.ClassSubnDirected:
		return refuse(port.ErrInvalid, "class %#02x is not below %#x and not %#x", uint8(r.Class), maxClass, uint8(mad.ClassSubnDirected))
	case hasOUI(r.Class) && r.OUI == 0:
		return refuse(port.ErrInvalid, "vendor class %#02x without an OUI", uint8(r.Class))
	case r.RMPP != port.RMPPNone && !mad.HasRMPP(r.Class):
		return refuse(port.ErrInvalid, "class %#02x has no RMPP", uint8(r.Class))
	case r.QPN == mad.QPSMI && !isSMP(r.Class):
		return refuse(port.ErrInvalid, "class %#02x is not used on QP0", uint8(r.Class))
	case r.QPN == mad.QPGSI && isSMP(r.Class):
		return refuse(port.ErrInvalid, "class %#02x is only used on QP0", uint8(r.Class))
	}
	return nil
}

// checkOwners refuses methods that another agent of the device owns (mad.c,
// method_in_use) and an OUI for which the class has no slot left.
func (c *core) checkOwners(r port.Registration) error {
	for _, k := range methodKeys(r) {
		if c.methods[k] != nil {
			return refuse(port.ErrMethodOwned, "method %#02x of class %#02x version %d is owned by another agent",
				k.method, uint8(r.Class), r.Version)
		}
	}
	if ouis := c.ouis[versionClass{r.Version, r.Class}]; hasOUI(r.Class) && ouis[r.OUI] == 0 && len(ouis) == maxOUIs {
		return refuse(port.ErrNoSlot, "all %d OUI slots of class %#02x version %d are in use",
			maxOUIs, uint8(r.Class), r.Version)
	}
	return nil
}

// methodKeys lists what a registration owns. A send-only agent owns nothing.
func methodKeys(r port.Registration) (keys []methodKey) {
	if r.Class == 0 {
		return nil
	}
	if !hasOUI(r.Class) {
		r.OUI = 0
	}
	for m := range uint8(128) {
		if r.Methods.Has(mad.Method(m)) {
			keys = append(keys, methodKey{versionClass{r.Version, r.Class}, r.OUI, m})
		}
	}
	return keys
}

// newHiTID gives the next free number of the range, cyclic (mad.c,
// ib_mad_clients).
func (c *core) newHiTID() uint32 {
	for {
		c.hiTID++
		if c.hiTID < c.cfg.FirstTID || c.hiTID > c.cfg.LastTID {
			c.hiTID = c.cfg.FirstTID
		}
		if c.agents[c.hiTID] == nil {
			return c.hiTID
		}
	}
}

// unregister drops an agent. What it had in flight ends without a message
// (mad.c, cancel_mads: the flush status is not a time-out, so user_mad queues
// nothing). Its received packets stay in the queue.
func (c *core) unregister(a *agent) {
	for _, s := range a.file.sendsOf(a) {
		c.finish(s)
	}
	for _, t := range a.transfers {
		c.timers.stop(&t.timer)
	}
	for _, k := range methodKeys(a.reg) {
		delete(c.methods, k)
	}
	if hasOUI(a.reg.Class) {
		ouis := c.ouis[versionClass{a.reg.Version, a.reg.Class}]
		if ouis[a.reg.OUI]--; ouis[a.reg.OUI] == 0 {
			delete(ouis, a.reg.OUI)
		}
	}
	delete(c.agents, a.hiTID)
	a.file.slots[a.id] = nil
}

// kernelRMPP tells whether this side segments, acknowledges and reassembles for
// the agent (mad.c, ib_mad_kernel_rmpp_agent).
func (c *core) kernelRMPP(a *agent) bool {
	return a.reg.RMPP == port.RMPPKernel && !c.cfg.RawRMPP
}
