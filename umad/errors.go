package umad

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// FlagsError is a registration whose flags the kernel does not know. It stands
// in the chain of an error that is port.ErrInvalid too.
type FlagsError struct {
	Asked, Known uint32 // IB_USER_MAD_USER_RMPP is 1
}

func (e *FlagsError) Error() string {
	return fmt.Sprintf("unknown flags %#x", e.Asked&^e.Known)
}

// Limits of registrations (drivers/infiniband/core/mad_priv.h).
const (
	maxVersion = 0x83 // MAX_MGMT_VERSION: first class version that is refused
	maxClass   = 0x50 // MAX_MGMT_CLASS: first class that is refused, but for 0x81
	maxOUIs    = 8    // MAX_MGMT_OUI
)

// isSMP tells whether MADs of a class go to QP0.
func isSMP(c mad.Class) bool { return c == mad.ClassSubnLIDRouted || c == mad.ClassSubnDirected }

// hasOUI tells whether MADs of a class carry an OUI.
func hasOUI(c mad.Class) bool { return c >= 0x30 && c <= 0x4f }

// explainRegister says which rule a registration breaks. The kernel has one
// errno for most of them; they are checked in its order (user_mad.c,
// ib_umad_reg_agent2; mad.c, ib_register_mad_agent). p.mu is held, or p is not
// shared yet.
func (p *openPort) explainRegister(r port.Registration, err error) error {
	switch {
	case errors.Is(err, os.ErrClosed):
		return err
	case errors.Is(err, syscall.EPROTONOSUPPORT):
		return refuse(port.ErrNoQP, err, "%s", p.d.missingQP(r.QPN))
	case errors.Is(err, syscall.ENOMEM):
		return p.explainNoRoom(r, err)
	case errors.Is(err, fs.ErrPermission):
		return refuse(fs.ErrPermission, err, "a security module of the kernel (such as SELinux) lets this process have no MAD agents")
	case !errors.Is(err, syscall.EINVAL):
		return explainGone(err)
	}
	if rule := brokenRule(r); rule != "" {
		return refuse(port.ErrInvalid, err, "%s", rule)
	}
	if r.Class == 0 || r.Methods == (port.MethodSet{}) {
		return refuse(port.ErrInvalid, err, "the kernel refuses an agent of class %#02x on QP%d, and no rule of ours says why", uint8(r.Class), r.QPN)
	}
	return refuse(port.ErrMethodOwned, err, "%s already owned on this port; likely owners: %s", ownedMethods(r), likelyOwners(r.Class))
}

// brokenRule is what is wrong with a registration in itself, or "".
func brokenRule(r port.Registration) string {
	switch {
	case r.QPN != mad.QPSMI && r.QPN != mad.QPGSI:
		return fmt.Sprintf("QP %d is not a management queue pair: use 0 or 1", r.QPN)
	case r.Class == 0 && r.RMPP == port.RMPPUser:
		return "user RMPP on a send-only agent: name a class"
	case r.Class == 0:
		return ""
	case r.Version >= maxVersion:
		return fmt.Sprintf("class version %#x is not below %#x", r.Version, maxVersion)
	case r.Class >= maxClass && r.Class != mad.ClassSubnDirected:
		return fmt.Sprintf("class %#02x is not below %#x and not %#x", uint8(r.Class), maxClass, uint8(mad.ClassSubnDirected))
	case hasOUI(r.Class) && r.OUI == 0:
		return fmt.Sprintf("vendor class %#02x without an OUI", uint8(r.Class))
	case r.RMPP != port.RMPPNone && !mad.HasRMPP(r.Class):
		return fmt.Sprintf("class %#02x has no RMPP", uint8(r.Class))
	case r.QPN == mad.QPSMI && !isSMP(r.Class):
		return fmt.Sprintf("class %#02x is not used on QP0", uint8(r.Class))
	case r.QPN == mad.QPGSI && isSMP(r.Class):
		return fmt.Sprintf("class %#02x is only used on QP0", uint8(r.Class))
	}
	return ""
}

// missingQP says why a port lacks a queue pair.
func (d *Device) missingQP(qpn uint8) string {
	switch {
	case qpn == mad.QPSMI && d.isEthernet():
		return "QP0 does not exist on an Ethernet port: subnet management is for InfiniBand"
	case qpn == mad.QPSMI:
		return "the port has no QP0: use the device that has the port's subnet management interface ('ibsm ports' shows it)"
	}
	return "the port has no QP1 for management: its driver has no communication management"
}

func (p *openPort) explainNoRoom(r port.Registration, err error) error {
	free := 0
	for _, a := range p.agents {
		if a == nil {
			free++
		}
	}
	switch {
	case free == 0:
		return refuse(port.ErrNoSlot, err, "all %d agent slots of this open file are in use: unregister one, or open the port again", port.MaxAgents)
	case hasOUI(r.Class):
		return refuse(port.ErrNoSlot, err, "all %d OUI slots of class %#02x version %d are in use on this port", maxOUIs, uint8(r.Class), r.Version)
	}
	return err
}

// ownedMethods names what somebody else owns: the kernel does not say which.
func ownedMethods(r port.Registration) string {
	var names []string
	for m := range mad.Method(mad.ResponseBit) {
		if r.Methods.Has(m) {
			names = append(names, m.String())
		}
	}
	what := fmt.Sprintf("class %#02x", uint8(r.Class))
	if hasOUI(r.Class) {
		what += fmt.Sprintf(" OUI %06x", r.OUI)
	}
	if len(names) == 1 {
		return fmt.Sprintf("%s method %s is", what, names[0])
	}
	return fmt.Sprintf("%s: one of the methods %s is", what, strings.Join(names, ", "))
}

// likelyOwners says which programs usually own methods of a class.
func likelyOwners(c mad.Class) string {
	switch c {
	case mad.ClassSubnLIDRouted, mad.ClassSubnDirected:
		return "opensm or another subnet manager"
	case mad.ClassSubnAdm:
		return "opensm or another SA; for Report, srp_daemon or ibacm"
	case mad.ClassPerf:
		return "opensm's performance manager, or another performance agent"
	case 0x06:
		return "the kernel's SRP target (ib_srpt)"
	case 0x07:
		return "the kernel's communication manager (ib_cm)"
	}
	if c >= 0x09 && c <= 0x0f || hasOUI(c) {
		return "ibping or ibsysstat as servers, or a vendor's agent"
	}
	return "another program with /dev/infiniband/umad* open (see fuser)"
}

// explainSend says why the kernel did not take a message (user_mad.c,
// ib_umad_write, in its order). agent is who had the slot before: EIO is said of
// an empty slot and of a device that is gone, and others may use the slot
// meanwhile.
func (p *openPort) explainSend(m *port.Message, agent *port.Registration, err error) error {
	if agent != p.agentIn(m.Agent) {
		agent = nil
	}
	to := &m.Addr
	switch {
	case errors.Is(err, syscall.EIO) && agent == nil, errors.Is(err, syscall.EINVAL) && agent == nil && m.Agent < port.MaxAgents && len(m.Data) >= minMAD:
		return refuse(port.ErrNoAgent, err, "no agent is registered in slot %d", m.Agent)
	case errors.Is(err, fs.ErrPermission):
		return refuse(fs.ErrPermission, err, "a security module of the kernel forbids the P_Key at index %d", to.PKeyIndex)
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return &port.Error{Detail: fmt.Sprintf("nobody has the address %v, or there is no route to it: %v", to.GRH.GID, err), Err: err}
	case errors.Is(err, syscall.ENODATA), errors.Is(err, syscall.ENOENT): // cache.c, rdma_get_gid_attr
		return refuse(port.ErrInvalid, err, "the port has no GID at index %d", to.GRH.GIDIndex)
	case !errors.Is(err, syscall.EINVAL):
		return explainGone(err)
	}
	if rule := p.brokenSendRule(agent, m); rule != "" {
		return refuse(port.ErrInvalid, err, "%s", rule)
	}
	// Nothing else is left.
	return refuse(port.ErrDuplicateTID, err, "a %s of class %#02x with transaction id %#x (lower half) is in flight on this open file: use another",
		kindOf(m.Data), m.Data[mad.OffClass], m.Data[mad.OffTID+4:mad.OffTID+8])
}

func kindOf(b []byte) string {
	if mad.IsResponse(b) {
		return "response to the same place"
	}
	return "request"
}

// brokenSendRule is what is wrong with a message in itself, or "".
func (p *openPort) brokenSendRule(agent *port.Registration, m *port.Message) string {
	n, to := len(m.Data), &m.Addr
	if m.Agent >= port.MaxAgents {
		return fmt.Sprintf("agent %d: slots are 0 to %d", m.Agent, port.MaxAgents-1)
	}
	if n < minMAD {
		return fmt.Sprintf("a MAD of %d bytes: no kernel takes fewer than %d", n, minMAD)
	}
	class := mad.Class(m.Data[mad.OffClass])
	active := agent.RMPP == port.RMPPKernel && m.Data[offRMPPFlags]&rmppActive != 0
	switch {
	case !to.HasGRH && p.d.isEthernet():
		return "no GRH: an Ethernet port cannot address a LID, only a GID"
	case to.HasGRH && p.d.lacksGID(to.GRH.GIDIndex):
		return fmt.Sprintf("the port has no GID at index %d", to.GRH.GIDIndex)
	case n < mad.ClassHeaderLen(class):
		return fmt.Sprintf("a MAD of class %#02x with %d bytes: its header has %d", uint8(class), n, mad.ClassHeaderLen(class))
	case n > mad.Size && !active:
		return fmt.Sprintf("a message of %d bytes: longer than one MAD goes with kernel RMPP and its Active flag only", n)
	case agent.RMPP != port.RMPPNone && !mad.HasRMPP(class):
		return fmt.Sprintf("class %#02x has no RMPP, and the agent is registered with RMPP: use another agent", uint8(class))
	case class == mad.ClassSubnDirected && p.d.cannotStart(m.Data):
		return fmt.Sprintf("the directed route does not start at port %d: check hop pointer, hop count and initial path", p.d.num)
	case !to.HasGRH && to.LID == 0:
		return "LID 0 is no address"
	}
	return ""
}

// isEthernet tells whether the port has no LIDs.
func (d *Device) isEthernet() bool {
	return read(d.sys.portAttributes(d.name, d.num), "link_layer", parseLinkLayer) == port.LinkEthernet
}

// lacksGID tells whether an entry of the port's GID table is empty.
func (d *Device) lacksGID(index uint8) bool {
	return read(d.sys.portAttributes(d.name, d.num), fmt.Sprintf("gids/%d", index), parseGID).IsZero()
}

// cannotStart tells whether a directed route cannot start at the port (IBA
// 14.2.2.2; smi.c, smi_handle_dr_smp_send). A switch decides by the port that it
// leaves by.
func (d *Device) cannotStart(b []byte) bool {
	ptr, count := b[offHopPointer], b[offHopCount]
	if count > mad.MaxDirectedHops || ptr > count+1 {
		return true
	}
	const first = mad.OffSMPPaths + 1
	return ptr == 0 && count > 0 && (len(b) <= first || b[first] != d.num) &&
		read(d.sys.deviceAttributes(d.name), "node_type", parseNamed[mad.NodeType]) != mad.NodeTypeSwitch
}

// Of the directed route header (IBA 14.2.1.2) and the RMPP header (IBA 13.6.2.1).
const (
	offHopPointer = 6
	offHopCount   = 7

	offRMPPFlags = mad.OffRMPP + 2
	rmppActive   = 1
)
