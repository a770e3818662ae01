package sim

import (
	"encoding/binary"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// What the simulated nodes can hold.
const (
	guidCap        = 8      // GUIDs of an end port: one block
	linearFDBCap   = 0xc000 // every unicast LID
	externalPKeys  = 32     // P_Keys of a physical switch port: one block, empty
	pkeysPerBlock  = 32
	lidsPerBlock   = 64
	respTimeValue  = 16 // 268 ms
	switchLifeTime = 18 // 1.07 s
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
	method := mad.Method(p.mad[mad.OffMethod])
	attribute := mad.AttributeID(binary.BigEndian.Uint16(p.mad[mad.OffAttribute:]))
	switch {
	case method&mad.ResponseBit != 0, method == mad.MethodTrap, // for the SM (IBA 14.2.4)
		p.class() == mad.ClassSubnDirected && isReturning(p),
		attribute == mad.AttrSMInfo && end.isSM && end.Port != c.sub.SM:
		c.deliver(p, end)
		return false
	case method == mad.MethodTrapRepress: // has no response, and there are no traps
		c.drop(p, topo.Hop{}, NotForAgent)
		return false
	}
	c.answer(p, end, method, attribute)
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
	p.start = true
	c.stats.Answered++
	c.report(Answer, topo.Hop{From: end.Port}, 0, p)
}

// serve does a request on the 64 bytes of data. The statuses are those of IBA
// 13.4.7; with one the data stay as they were. Only Get is there.
func (c *core) serve(p *packet, end *simPort, method mad.Method, attribute mad.AttributeID) mad.Status {
	if p.mad[0] != mad.BaseVersion || p.mad[mad.OffClassVersion] != 1 {
		return mad.StatusBadVersion
	}
	switch method {
	case mad.MethodGet:
	case mad.MethodSet:
		return mad.StatusBadAttribute
	default:
		return mad.StatusBadMethod
	}
	data := (*[mad.SMPDataSize]byte)(p.mad[mad.OffSMPData:])
	modifier := binary.BigEndian.Uint32(p.mad[mad.OffModifier:])
	n := end.node
	switch {
	case attribute == mad.AttrNodeDescription:
		d := mad.MakeNodeDescription(n.Desc)
		d.EncodeTo(data)
	case attribute == mad.AttrNodeInfo:
		info := nodeInfo(end, p.in)
		clear(data[:])
		info.EncodeTo((*[mad.NodeInfoSize]byte)(data[:]))
	case attribute == mad.AttrSwitchInfo && n.IsSwitch():
		info := c.switchInfo()
		clear(data[:])
		info.EncodeTo((*[mad.SwitchInfoSize]byte)(data[:]))
	case attribute == mad.AttrPortInfo:
		target := modifier &^ smSupportsExtendedSpeeds
		if target == 0 {
			target = uint32(end.Num)
		}
		if target >= uint32(len(n.ports)) {
			return mad.StatusBadField
		}
		info := c.portInfo(&n.ports[target], p.in)
		info.EncodeTo(data)
	case attribute == mad.AttrGUIDInfo:
		if modifier != 0 {
			return mad.StatusBadField
		}
		info := mad.GUIDInfo{GUID: [8]mad.GUID{end.GUID}}
		info.EncodeTo(data)
	case attribute == mad.AttrPKeyTable:
		return pkeyTable(data, end, modifier)
	case attribute == mad.AttrLinearForwardingTable && n.IsSwitch():
		return forwardingTable(data, n, modifier)
	case attribute == mad.AttrSMInfo && end.isSM:
		info := mad.SMInfo{GUID: end.GUID, ActCount: c.changes, SMState: mad.SMStateMaster}
		clear(data[:])
		info.EncodeTo((*[mad.SMInfoSize]byte)(data[:]))
	default:
		return mad.StatusBadAttribute
	}
	return mad.StatusOK
}

// smSupportsExtendedSpeeds is a bit of PortInfo's attribute modifier (IBA
// 14.2.5.6); the agent tells extended speeds in any case, as real ones do.
const smSupportsExtendedSpeeds = 1 << 31

func nodeInfo(end *simPort, in uint8) mad.NodeInfo {
	n := end.node
	return mad.NodeInfo{
		BaseVersion: mad.BaseVersion, ClassVersion: 1,
		NodeType: n.Type, NumPorts: uint8(n.NumPorts()),
		SystemImageGUID: n.SystemImageGUID, NodeGUID: n.GUID, PortGUID: end.GUID,
		PartitionCap: topo.MaxPKeys, LocalPortNum: in,
		VendorID: n.VendorID, DeviceID: n.DeviceID,
	}
}

func (c *core) switchInfo() mad.SwitchInfo {
	return mad.SwitchInfo{
		LinearFDBCap: linearFDBCap, LinearFDBTop: uint16(c.sub.TopLID()),
		LifeTimeValue: switchLifeTime, PartitionEnforcementCap: externalPKeys, EnhancedPort0: true,
	}
}

// portInfo describes a port as an agent does that was asked through port in.
// Physical ports of a switch have nothing that belongs to a LID (IBA 14.2.5.6).
func (c *core) portInfo(p *simPort, in uint8) mad.PortInfo {
	info := mad.PortInfo{
		LocalPortNum: in, PortState: p.state(), PortPhysicalState: p.physState(),
		LinkDownDefaultState: mad.LinkDownDefaultStatePolling,
		NeighborMTU:          p.MTU, MTUCap: p.MTU,
		VLCap: mad.VLs0, OperationalVLs: mad.VLs0,
		RespTimeValue: respTimeValue,
	}
	width, speed := p.Width, p.Speed
	if p.peer == nil { // what it could do, as the default of a link
		width, speed, info.MTUCap, info.NeighborMTU = mad.LinkWidth4X, mad.SpeedEDR, mad.MTU4096, mad.MTU4096
	}
	info.LinkWidthSupported = mad.LinkWidth1X | width
	info.LinkWidthEnabled = info.LinkWidthSupported
	info.LinkWidthActive = width
	info.SetSpeedsUpTo(speed)
	info.SetSpeed(speed)
	if p.IsEnd() {
		info.GidPrefix = c.sub.GIDPrefix
		info.LID, info.LMC, info.MasterSMLID, info.MasterSMSL = p.LID, p.LMC, p.SMLID, p.SMSL
		info.CapabilityMask = p.capMask()
		info.CapabilityMask2 = capMask2(width, speed)
		info.GUIDCap = guidCap
		info.SubnetTimeOut = c.sub.SubnetTimeOut
	}
	return info
}

func (p *simPort) physState() mad.PortPhysState {
	if p.Num == 0 || p.linkUp() {
		return mad.PortPhysStateLinkUp
	}
	return mad.PortPhysStatePolling
}

func (p *simPort) capMask() mad.PortCapMask {
	mask := mad.CapIsSystemImageGUIDSupported | mad.CapIsExtendedSpeedsSupported | mad.CapIsCapabilityMask2Supported
	if p.isSM {
		mask |= mad.CapIsSM
	}
	return mask
}

func capMask2(width mad.LinkWidth, speed mad.Speed) (mask mad.PortCapMask2) {
	if width == mad.LinkWidth2X {
		mask |= mad.Cap2IsLinkWidth2xSupported
	}
	if speed >= mad.SpeedHDR {
		mask |= mad.Cap2IsLinkSpeedHDRSupported
	}
	if speed >= mad.SpeedNDR {
		mask |= mad.Cap2IsLinkSpeedNDRSupported
	}
	if speed >= mad.SpeedXDR {
		mask |= mad.Cap2IsExtendedSpeeds2Supported | mad.Cap2IsLinkSpeedXDRSupported
	}
	return mask
}

// pkeyTable gives one block. The modifier is the block and, on a switch, in the
// upper half the port; the tables of a switch's physical ports are empty.
func pkeyTable(data *[mad.SMPDataSize]byte, end *simPort, modifier uint32) mad.Status {
	block, port := int(modifier&0xffff), int(modifier>>16)
	keys, entries := end.PKeys, topo.MaxPKeys
	if end.node.IsSwitch() && port != 0 {
		if port >= len(end.node.ports) {
			return mad.StatusBadField
		}
		keys, entries = nil, externalPKeys
	}
	if block >= entries/pkeysPerBlock {
		return mad.StatusBadField
	}
	var table mad.PKeyTable
	copy(table.PKey[:], keys[min(block*pkeysPerBlock, len(keys)):])
	table.EncodeTo(data)
	return mad.StatusOK
}

func forwardingTable(data *[mad.SMPDataSize]byte, n *node, block uint32) mad.Status {
	if block >= linearFDBCap/lidsPerBlock {
		return mad.StatusBadField
	}
	var table mad.LinearForwardingTable
	for i := range table.Port {
		table.Port[i] = n.portTo(mad.LID(block*lidsPerBlock) + mad.LID(i))
	}
	table.EncodeTo(data)
	return mad.StatusOK
}
