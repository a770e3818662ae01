package sma

import (
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// Writer keeps what Set changes, so that State has it from then on.
type Writer interface {
	// WritePortInfo keeps a PortInfo. Its PortState, if that is Armed or Active, is the
	// new one of a port that is up. Where link is not NoChange, the link goes down
	// first and the port's physical layer is then as it says: Sleep, Polling or
	// Disabled.
	WritePortInfo(p *topo.Port, info mad.PortInfo, link mad.PortPhysState)
	// WritePKeys keeps entries of a port's P_Key table from the given one on.
	WritePKeys(p *topo.Port, first int, keys []mad.PKey)
}

// Set writes an attribute, and puts it into data as it is then. A status other than
// StatusOK (IBA 13.4.7) says that nothing has changed, data neither:
// StatusBadAttribute for what can not be set, StatusBadField for a modifier out of
// range and for a component with a value that is not valid or that the port cannot
// have.
func (a *Agent) Set(to Writer, attribute mad.AttributeID, modifier uint32, data *[mad.SMPDataSize]byte) mad.Status {
	switch attribute {
	case mad.AttrPortInfo:
		return a.setPortInfo(to, modifier, data)
	case mad.AttrPKeyTable:
		p, first := a.pkeyBlock(modifier)
		if p == nil {
			return mad.StatusBadField
		}
		var table mad.PKeyTable
		table.DecodeFrom(data)
		to.WritePKeys(p, first, table.PKey[:])
		return a.Get(attribute, modifier, data)
	}
	return mad.StatusBadAttribute
}

// setPortInfo writes the port of the modifier; that of an adapter only by the port
// itself, as in ibsim and in Linux's adapters (qib, subn_set_portinfo).
func (a *Agent) setPortInfo(to Writer, modifier uint32, data *[mad.SMPDataSize]byte) mad.Status {
	p := a.portOr(modifier &^ extendedSpeeds)
	if p == nil || p != a.End && !p.Node.IsSwitch() {
		return mad.StatusBadField
	}
	var want mad.PortInfo
	want.DecodeFrom(data)
	info := a.State.PortInfo(p)
	link, ok := write(p, &info, &want)
	if !ok {
		return mad.StatusBadField
	}
	to.WritePortInfo(p, info, link)
	after := *a
	after.MKey = info.MKey // who has set it may see it
	status := after.Get(mad.AttrPortInfo, modifier, data)
	if p.IsEnd() && want.ClientReregister { // goes back as it came (IBA o14-12.2.1)
		var got mad.PortInfo
		got.DecodeFrom(data)
		got.ClientReregister = true
		got.EncodeTo(data)
	}
	return status
}

// write changes the PortInfo of a port to what a Set wants (IBA 14.2.5.6), and tells
// what is to become of its link. Components that can only be read are passed over,
// and those that the kind of port does not have; so are partition enforcement and
// raw filters, for which the switches have no capability.
func write(p *topo.Port, info, want *mad.PortInfo) (link mad.PortPhysState, ok bool) {
	if p.IsEnd() && !writeEnd(p, info, want) || !writeLink(info, want) {
		return 0, false
	}
	return command(p, info, want)
}

// writeEnd writes what belongs to a LID.
func writeEnd(p *topo.Port, info, want *mad.PortInfo) bool {
	switch {
	case !want.LID.IsUnicast(), !want.MasterSMLID.IsUnicast():
		return false
	case want.LID&(1<<want.LMC-1) != 0, p.Node.BasePort0 && want.LMC != 0: // IBA 4.1.3
		return false
	}
	info.MKey, info.MKeyProtectBits, info.MKeyLeasePeriod = want.MKey, want.MKeyProtectBits, want.MKeyLeasePeriod
	info.GidPrefix = want.GidPrefix
	info.LID, info.LMC = want.LID, want.LMC
	info.MasterSMLID, info.MasterSMSL = want.MasterSMLID, want.MasterSMSL
	info.SubnetTimeOut = want.SubnetTimeOut
	info.LocalPhyErrors, info.OverrunErrors = want.LocalPhyErrors, want.OverrunErrors
	for _, count := range []struct{ kept, want *uint16 }{
		{&info.MKeyViolations, &want.MKeyViolations},
		{&info.PKeyViolations, &want.PKeyViolations},
		{&info.QKeyViolations, &want.QKeyViolations},
	} {
		if *count.want == 0 { // other values count on
			*count.kept = 0
		}
	}
	return true
}

// writeLink writes how a port uses its link. The links of the model are as they are:
// of widths and speeds none can be taken away.
func writeLink(info, want *mad.PortInfo) bool {
	switch {
	case want.NeighborMTU.Bytes() == 0, want.NeighborMTU > info.MTUCap,
		want.OperationalVLs > info.VLCap,
		want.LinkDownDefaultState > mad.LinkDownDefaultStatePolling,
		!keeps(want.LinkWidthEnabled, info.LinkWidthEnabled, 0xff),
		!keeps(want.LinkSpeedEnabled, info.LinkSpeedEnabled, 0xf),
		!keeps(want.LinkSpeedExtEnabled, info.LinkSpeedExtEnabled, 0x1f),
		!keeps(want.LinkSpeedExtEnabled2, info.LinkSpeedExtEnabled2, 0x7):
		return false
	}
	info.NeighborMTU = want.NeighborMTU
	info.VLHighLimit, info.VLStallCount, info.HOQLife = want.VLHighLimit, want.VLStallCount, want.HOQLife
	if want.OperationalVLs != 0 {
		info.OperationalVLs = want.OperationalVLs
	}
	if want.LinkDownDefaultState != mad.LinkDownDefaultStateNoChange {
		info.LinkDownDefaultState = want.LinkDownDefaultState
	}
	return true
}

// keeps tells whether a Set of enabled widths or speeds leaves them as they are: by
// 0, by the code for all that are supported, or by naming them.
func keeps[T mad.LinkWidth | mad.LinkSpeed | mad.LinkSpeedExt | mad.LinkSpeedExt2](want, enabled, all T) bool {
	return want == 0 || want == all || want == enabled
}

// command reads the two states of a Set (IBA 14.2.5.6, 7.2.7). PortState can be set
// to Down from any state, to Armed from Init, and to Active from Armed; to Armed or
// Active from where that is already passed is no change. Down and each physical
// state take the link down. Port 0 of a switch has no link and stays Active.
func command(p *topo.Port, info, want *mad.PortInfo) (link mad.PortPhysState, ok bool) {
	state, link := want.PortState, want.PortPhysicalState
	switch {
	case link > mad.PortPhysStateDisabled, state > mad.PortStateActive, state == mad.PortStateInit:
		return 0, false // they come about, and cannot be ordered
	case link != mad.PortPhysStateNoChange && state > mad.PortStateDown:
		return 0, false
	case p.Num == 0 && (link != mad.PortPhysStateNoChange || state == mad.PortStateDown):
		return 0, false
	}
	switch {
	case state == mad.PortStateDown && link == mad.PortPhysStateNoChange && info.PortState != mad.PortStateDown:
		link = mad.PortPhysState(info.LinkDownDefaultState) // their codes are the same
	case state > mad.PortStateDown && state > info.PortState:
		if info.PortState == mad.PortStateDown || state != info.PortState+1 {
			return 0, false
		}
		info.PortState = state
	}
	return link, true
}
