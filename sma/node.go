package sma

import (
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// What the nodes can hold.
const (
	guidCap         = 8      // GUIDs of an end port
	linearFDBCap    = 0xc000 // every unicast LID
	multicastFDBCap = 4096
	externalPKeys   = 32 // P_Keys of a physical switch port

	guidsPerBlock   = 8
	pkeysPerBlock   = 32
	lidsPerBlock    = 64
	groupsPerBlock  = 32
	portsOfPosition = 16 // a position of the multicast table

	respTimeValue  = 16 // 268 ms
	switchLifeTime = 18 // 1.07 s
)

func (a *Agent) nodeInfo() mad.NodeInfo {
	n := a.End.Node
	return mad.NodeInfo{
		BaseVersion: mad.BaseVersion, ClassVersion: 1,
		NodeType: n.Type, NumPorts: uint8(n.NumPorts()),
		SystemImageGUID: n.SystemImageGUID, NodeGUID: n.GUID, PortGUID: a.End.GUID,
		PartitionCap: topo.MaxPKeys, LocalPortNum: a.In,
		VendorID: n.VendorID, DeviceID: n.DeviceID,
	}
}

func (a *Agent) switchInfo() mad.SwitchInfo {
	return mad.SwitchInfo{
		LinearFDBCap: linearFDBCap, LinearFDBTop: uint16(a.Subnet.TopLID()), MulticastFDBCap: multicastFDBCap,
		LifeTimeValue: switchLifeTime, PartitionEnforcementCap: externalPKeys, EnhancedPort0: !a.End.Node.BasePort0,
	}
}

// PKeyBlocks is the number of blocks of a port's P_Key table.
func PKeyBlocks(p *topo.Port) int {
	if p.IsEnd() {
		return topo.MaxPKeys / pkeysPerBlock
	}
	return externalPKeys / pkeysPerBlock
}

// pkeyTable gives one block. The modifier is the block and, on a switch, in the
// upper half the port.
func (a *Agent) pkeyTable(modifier uint32, data *[mad.SMPDataSize]byte) mad.Status {
	p, first := a.pkeyBlock(modifier)
	if p == nil {
		return mad.StatusBadField
	}
	keys := a.State.PKeys(p)
	var table mad.PKeyTable
	copy(table.PKey[:], keys[min(first, len(keys)):])
	table.EncodeTo(data)
	return mad.StatusOK
}

// pkeyBlock is the port and the first entry of a block; no port if there is no such
// block.
func (a *Agent) pkeyBlock(modifier uint32) (p *topo.Port, first int) {
	p = a.End
	if p.Node.IsSwitch() {
		p = a.port(modifier >> 16)
	}
	block := int(modifier & 0xffff)
	if p == nil || block >= PKeyBlocks(p) {
		return nil, 0
	}
	return p, block * pkeysPerBlock
}

// LFTBlocks is the number of blocks of a switch's linear forwarding table up to
// the highest LID in use (SwitchInfo's LinearFDBTop).
func LFTBlocks(sub *topo.Subnet) int { return int(sub.TopLID())/lidsPerBlock + 1 }

func (a *Agent) linearTable(block uint32, data *[mad.SMPDataSize]byte) mad.Status {
	if block >= linearFDBCap/lidsPerBlock {
		return mad.StatusBadField
	}
	lft := a.State.LFT(a.End.Node)
	table := mad.LinearForwardingTable{}
	for i := copy(table.Port[:], lft[min(int(block)*lidsPerBlock, len(lft)):]); i < lidsPerBlock; i++ {
		table.Port[i] = topo.NoRoute
	}
	table.EncodeTo(data)
	return mad.StatusOK
}

// multicastTable gives one block of one position, which are in the modifier's low
// 28 bits and its high four.
func (a *Agent) multicastTable(modifier uint32, data *[mad.SMPDataSize]byte) mad.Status {
	position, block := int(modifier>>28), modifier&(1<<28-1)
	if position*portsOfPosition > a.End.Node.NumPorts() || block >= multicastFDBCap/groupsPerBlock {
		return mad.StatusBadField
	}
	clear(data[:])
	return mad.StatusOK
}
