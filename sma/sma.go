// Package sma holds what the subnet management agents of a modelled subnet
// answer: every attribute of IBA 14.2.5 as a function of the model and of what was
// set since. A simulated agent sends it and a subnet administrator makes its
// records of it, so they never tell different stories. PortInfo and P_KeyTable can
// be set.
//
// The nodes are alike in what they can do. Ports have eight data lanes, and
// service levels and lanes are set up as OpenSM does by default. Switches forward
// by linear tables; they have room for multicast, but no groups.
package sma

import (
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// State is what the model does not know: the subnet as it runs.
type State interface {
	// PortInfo is how a port is set up and how its link is. LocalPortNum and the bit
	// IsSM of the CapabilityMask are left to the Agent.
	PortInfo(*topo.Port) mad.PortInfo
	// PKeys are the entries of a port's P_Key table, 0 for a free one, as far as it
	// goes.
	PKeys(*topo.Port) []mad.PKey
	// IsSM tells whether a subnet manager is at an end port.
	IsSM(*topo.Port) bool
	// Activity is what the master subnet manager has done (SMInfo's ActCount).
	Activity() uint32
	// LFT is the linear forwarding table of a switch: the port to leave by for
	// each LID, as far as it goes.
	LFT(*topo.Node) []uint8
	// Notice is the last event at a node. Its Type is NoticeTypeEmpty if there was
	// none (IBA 13.4.8.2).
	Notice(*topo.Node) mad.SMPNotice
}

// AsModelled is the State of a subnet just after BringUp: every link is up, and
// the only subnet manager is the one that has done that.
type AsModelled struct{ Subnet *topo.Subnet }

// PortInfo is as the bring-up has left it.
func (s AsModelled) PortInfo(p *topo.Port) mad.PortInfo { return BroughtUp(s.Subnet, p) }

// PKeys are the model's.
func (AsModelled) PKeys(p *topo.Port) []mad.PKey { return p.PKeys }

// IsSM says yes for the port of the subnet manager.
func (s AsModelled) IsSM(p *topo.Port) bool { return p == s.Subnet.SM }

// Activity is 1: the bring-up.
func (AsModelled) Activity() uint32 { return 1 }

// LFT is the model's.
func (AsModelled) LFT(sw *topo.Node) []uint8 { return sw.LFT }

// Notice says that there was none.
func (AsModelled) Notice(*topo.Node) mad.SMPNotice {
	return mad.SMPNotice{Type: mad.NoticeTypeEmpty}
}

// Agent is the subnet management agent of a node, as a request meets it.
type Agent struct {
	Subnet *topo.Subnet
	State  State
	End    *topo.Port // end port that answers
	In     uint8      // port of the node that the request came by
	MKey   uint64     // M_Key of the request
}

// extendedSpeeds is a bit of PortInfo's attribute modifier: the SM knows extended
// speeds (IBA 14.2.5.6, SMSupportExtendedSpeeds).
const extendedSpeeds = 1 << 31

// Get puts an attribute into data; what is longer than the attribute becomes 0.
// The other statuses are those of IBA 13.4.7, and leave data as they were:
// StatusBadAttribute for what the node does not have, StatusBadField for a
// modifier out of range.
func (a *Agent) Get(attribute mad.AttributeID, modifier uint32, data *[mad.SMPDataSize]byte) mad.Status {
	sw := a.End.Node.IsSwitch()
	switch attribute {
	case mad.AttrNotice:
		notice := a.State.Notice(a.End.Node)
		notice.EncodeTo(data)
	case mad.AttrNodeDescription:
		desc := mad.MakeNodeDescription(a.End.Node.Desc)
		desc.EncodeTo(data)
	case mad.AttrNodeInfo:
		info := a.nodeInfo()
		info.EncodeTo((*[mad.NodeInfoSize]byte)(data[:]))
		clear(data[mad.NodeInfoSize:])
	case mad.AttrSwitchInfo:
		if !sw {
			return mad.StatusBadAttribute
		}
		info := a.switchInfo()
		info.EncodeTo((*[mad.SwitchInfoSize]byte)(data[:]))
		clear(data[mad.SwitchInfoSize:])
	case mad.AttrGUIDInfo:
		if modifier >= guidCap/guidsPerBlock {
			return mad.StatusBadField
		}
		info := mad.GUIDInfo{GUID: [guidsPerBlock]mad.GUID{a.End.GUID}}
		info.EncodeTo(data)
	case mad.AttrPKeyTable:
		return a.pkeyTable(modifier, data)
	case mad.AttrSLtoVLMappingTable:
		return a.slToVL(modifier, data)
	case mad.AttrVLArbitrationTable:
		return a.vlArbitration(modifier, data)
	case mad.AttrLinearForwardingTable:
		if !sw {
			return mad.StatusBadAttribute
		}
		return a.linearTable(modifier, data)
	case mad.AttrMulticastForwardingTable:
		if !sw {
			return mad.StatusBadAttribute
		}
		return a.multicastTable(modifier, data)
	case mad.AttrSMInfo:
		if !a.State.IsSM(a.End) {
			return mad.StatusBadAttribute
		}
		info := mad.SMInfo{GUID: a.End.GUID, ActCount: a.State.Activity(), SMState: mad.SMStateMaster}
		info.EncodeTo((*[mad.SMInfoSize]byte)(data[:]))
		clear(data[mad.SMInfoSize:])
	case mad.AttrVendorDiag: // none: all is well (PortInfo's DiagCode is 0)
		if modifier != 0 {
			return mad.StatusBadField
		}
		clear(data[:])
	case mad.AttrPortInfo, mad.AttrPortInfoExtended, mad.AttrLedInfo, mad.AttrMlnxExtPortInfo:
		return a.ofPort(attribute, modifier, data)
	default:
		return mad.StatusBadAttribute
	}
	return mad.StatusOK
}

// ofPort gives the attributes that exist once a port. Modifier 0 is the port that
// answers.
func (a *Agent) ofPort(attribute mad.AttributeID, modifier uint32, data *[mad.SMPDataSize]byte) mad.Status {
	num := modifier
	if attribute == mad.AttrPortInfo {
		num &^= extendedSpeeds
	}
	p := a.portOr(num)
	if p == nil {
		return mad.StatusBadField
	}
	switch attribute {
	case mad.AttrPortInfo:
		info := a.PortInfo(p)
		if info.MKeyProtectBits != 0 && a.MKey != info.MKey { // IBA 14.2.4.1
			info.MKey = 0
		}
		if modifier&extendedSpeeds == 0 && info.LinkSpeedActive == 0 {
			info.LinkSpeedActive = mad.LinkSpeedQDR // the fastest that the SM knows
		}
		info.EncodeTo(data)
	case mad.AttrPortInfoExtended:
		info := portInfoExtended(p)
		info.EncodeTo(data)
	case mad.AttrMlnxExtPortInfo:
		info := mlnxExtPortInfo(p)
		info.EncodeTo(data)
	default: // LedInfo: it is off
		clear(data[:])
	}
	return mad.StatusOK
}

// portOr is a port of the node, for number 0 the one that answers. It is nil if the
// node has none of the number.
func (a *Agent) portOr(num uint32) *topo.Port {
	if num == 0 {
		return a.End
	}
	return a.port(num)
}

// port is a port of the node, nil if it has none of the number.
func (a *Agent) port(num uint32) *topo.Port {
	if num >= uint32(len(a.End.Node.Ports)) {
		return nil
	}
	return &a.End.Node.Ports[num]
}
