package sim

import (
	"encoding/binary"

	"github.com/ibsm/ibsm/mad"
)

// deviations are those of the subnet management agents, by what they are about, and
// of the SA's MADs.
var deviations = []Deviation{
	// Versions, methods, statuses.
	{Name: "base-version-unchecked", Breaks: "a request of another base version is answered like any other", IBA: "13.4.7", serve: put(0, mad.BaseVersion)},
	{Name: "class-version-unchecked", Breaks: "a request of another class version is answered like any other", IBA: "13.4.7", serve: put(mad.OffClassVersion, 1)},
	{Name: "version-as-bad-field", Breaks: "an unknown version gets the status for a bad field", IBA: "13.4.7", answer: turn(mad.StatusBadVersion, mad.StatusBadField)},
	{Name: "class-version-wrong", Breaks: "answers are of class version 2", IBA: "14.2.1", answer: always(func(m *subn) { m[mad.OffClassVersion] = 2 })},
	{Name: "method-ok", Breaks: "an unsupported method gets status ok", IBA: "13.4.7", answer: turn(mad.StatusBadMethod, mad.StatusOK)},
	{Name: "method-as-attribute", Breaks: "an unsupported method gets the status for an unsupported attribute", IBA: "13.4.7", answer: turn(mad.StatusBadMethod, mad.StatusBadAttribute)},
	{Name: "method-silent", Breaks: "an unsupported method gets no answer", IBA: "13.4.7", answer: silent(mad.StatusBadMethod)},
	{Name: "attribute-ok", Breaks: "an unsupported attribute gets status ok", IBA: "13.4.7", answer: turn(mad.StatusBadAttribute, mad.StatusOK)},
	{Name: "attribute-as-method", Breaks: "an unsupported attribute gets the status for an unsupported method", IBA: "13.4.7", answer: turn(mad.StatusBadAttribute, mad.StatusBadMethod)},
	{Name: "attribute-silent", Breaks: "an unsupported attribute gets no answer", IBA: "13.4.7", answer: silent(mad.StatusBadAttribute)},
	{Name: "modifier-as-attribute", Breaks: "a modifier out of range gets the status for an unsupported attribute", IBA: "13.4.7", answer: turn(mad.StatusBadField, mad.StatusBadAttribute)},
	{Name: "busy", Breaks: "every answer says busy", IBA: "13.4.7", answer: always(func(m *subn) { m.setStatus(mad.StatusBusy) })},
	{Name: "status-reserved", Breaks: "a reserved bit of the status is 1", IBA: "13.4.7", answer: always(func(m *subn) { m.setStatus(m.status() | 0x20) })},
	{Name: "response-method-get", Breaks: "answers have the method of the request", IBA: "14.2.3", leave: func(p *packet) { p.mad[mad.OffMethod] &^= byte(mad.ResponseBit) }},
	{Name: "response-method-set", Breaks: "the answer to a Set is no GetResp", IBA: "14.2.3", answer: func(asked *subn, p *packet) { p.mad[mad.OffMethod] = asked[mad.OffMethod] | byte(mad.ResponseBit) }},

	// What an answer takes over from the request.
	{Name: "tid-changed", Breaks: "answers have another transaction id", IBA: "13.4.6", answer: always(func(m *subn) { m[mad.OffTID+7] ^= 1 })},
	{Name: "attribute-changed", Breaks: "answers have another attribute id", IBA: "13.4.6", answer: always(func(m *subn) { m[mad.OffAttribute+1] ^= 1 })},
	{Name: "modifier-changed", Breaks: "answers have another attribute modifier", IBA: "13.4.6", answer: always(func(m *subn) { m[mad.OffModifier+3] ^= 1 })},
	{Name: "reserved-header", Breaks: "reserved bytes of the SMP's header are not 0", IBA: "14.2.1", answer: always(func(m *subn) { m[mad.OffSMPData-1] = 0xff })},
	{Name: "reserved-data", Breaks: "the bytes behind a short attribute are not 0", IBA: "14.2.5", answer: always(func(m *subn) {
		switch m.attribute() {
		case mad.AttrNodeInfo, mad.AttrSwitchInfo, mad.AttrSMInfo, mad.AttrSLtoVLMappingTable:
			m.data()[mad.SMPDataSize-1] = 0xff
		}
	})},
	{Name: "reserved-portinfo", Breaks: "reserved bits of PortInfo are 1", IBA: "14.2.5.6", answer: raw(mad.AttrPortInfo, func(data []byte) { data[52] |= 0xe0; data[34] |= 0x38 })},
	{Name: "answer-lid", Breaks: "an answer seems to come from another LID", IBA: "14.2.1", leave: func(p *packet) { p.slid++ }},

	// Directed routes.
	{Name: "direction-bit", Breaks: "answers along a directed route have D bit 0", IBA: "14.2.2", leave: directed(func(m *subn) { m[mad.OffStatus] &^= 0x80 })},
	{Name: "hop-pointer", Breaks: "the hop pointer of an answer does not end at 0", IBA: "14.2.2", leave: directed(func(m *subn) { m[offHopPointer]++ })},
	{Name: "hop-count", Breaks: "the hop count of an answer is not that of the request", IBA: "14.2.2", leave: directed(func(m *subn) { m[offHopCount]++ })},
	{Name: "initial-path", Breaks: "the initial path is gone from the answer", IBA: "14.2.2", leave: directed(func(m *subn) { clear(m[offInitialPath:offReturnPath]) })},
	{Name: "return-path", Breaks: "the return path is not filled", IBA: "14.2.2", leave: directed(func(m *subn) { clear(m[offReturnPath:]) })},
	{Name: "return-path-shifted", Breaks: "the return path is one place off", IBA: "14.2.2", leave: directed(func(m *subn) { copy(m[offReturnPath:], m[offReturnPath+1:]) })},
	{Name: "dr-lids", Breaks: "DrSLID and DrDLID of an answer are 0", IBA: "14.2.2", leave: directed(func(m *subn) { clear(m[offDrSLID : offDrDLID+2]) })},
	{Name: "hop-pointer-unchecked", Breaks: "a request that starts with a hop pointer other than 0 goes its way", IBA: "14.2.2", enter: starting(func(p *packet) { p.mad[offHopPointer] = 0 })},
	{Name: "own-node-silent", Breaks: "a request of no hop gets no answer", IBA: "14.2.2", enter: starting(func(p *packet) {
		if p.mad[offHopCount] == 0 {
			silence(p)
		}
	})},
	{Name: "lid-start-silent", Breaks: "a directed route that begins at a LID gets no answer", IBA: "14.2.2", enter: starting(func(p *packet) {
		if drLID(p, offDrSLID) != mad.PermissiveLID {
			silence(p)
		}
	})},
	{Name: "dead-end-answered", Breaks: "a request that can go no further is answered by the node where it is", IBA: "14.2.2", enter: starting(shorten)},
	{Name: "adapter-passes-on", Breaks: "an adapter passes on what should go further", IBA: "14.2.2", passes: true},

	// NodeInfo and NodeDescription.
	{Name: "nodeinfo-versions", Breaks: "BaseVersion and ClassVersion are 0", IBA: "14.2.5.3", answer: edit(mad.AttrNodeInfo, func(i *mad.NodeInfo) { i.BaseVersion, i.ClassVersion = 0, 0 })},
	{Name: "nodeinfo-type", Breaks: "a switch says that it is an adapter, and the reverse", IBA: "14.2.5.3", answer: edit(mad.AttrNodeInfo, func(i *mad.NodeInfo) { i.NodeType ^= mad.NodeTypeCA ^ mad.NodeTypeSwitch })},
	{Name: "nodeinfo-num-ports", Breaks: "NumPorts is one too many", IBA: "14.2.5.3", answer: edit(mad.AttrNodeInfo, func(i *mad.NodeInfo) { i.NumPorts++ })},
	{Name: "nodeinfo-local-port", Breaks: "LocalPortNum is not the port that the request came by", IBA: "14.2.5.3", answer: edit(mad.AttrNodeInfo, func(i *mad.NodeInfo) { i.LocalPortNum++ })},
	{Name: "nodeinfo-node-guid", Breaks: "NodeGUID is 0", IBA: "14.2.5.3", answer: edit(mad.AttrNodeInfo, func(i *mad.NodeInfo) { i.NodeGUID = 0 })},
	{Name: "nodeinfo-port-guid", Breaks: "PortGUID is not the first of the GUID table", IBA: "14.2.5.3", answer: edit(mad.AttrNodeInfo, func(i *mad.NodeInfo) { i.PortGUID++ })},
	{Name: "nodeinfo-partition-cap", Breaks: "PartitionCap is 0", IBA: "14.2.5.3", answer: edit(mad.AttrNodeInfo, func(i *mad.NodeInfo) { i.PartitionCap = 0 })},
	{Name: "nodedescription-cut", Breaks: "the description loses its last character", IBA: "14.2.5.2", answer: raw(mad.AttrNodeDescription, func(data []byte) {
		for i := len(data) - 1; i >= 0; i-- {
			if data[i] != 0 {
				data[i] = 0
				return
			}
		}
	})},

	// PortInfo.
	{Name: "portinfo-modifier-ignored", Breaks: "PortInfo is always that of the port which answers", IBA: "14.2.5.6", serve: modify(mad.AttrPortInfo, func(mod uint32) uint32 { return mod & (1 << 31) })},
	{Name: "portinfo-port-0-as-1", Breaks: "PortInfo 0 of a switch is that of port 1", IBA: "14.2.5.6", serve: modify(mad.AttrPortInfo, func(mod uint32) uint32 {
		if mod&0xff == 0 {
			mod++
		}
		return mod
	})},
	{Name: "portinfo-any-port", Breaks: "PortInfo of a port that is not there gets status ok", IBA: "14.2.5.6", answer: anyModifier(mad.AttrPortInfo)},
	{Name: "portinfo-local-port", Breaks: "LocalPortNum is not the port that the request came by", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.LocalPortNum++ })},
	{Name: "portinfo-state", Breaks: "PortState is Init whatever it is", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.PortState = mad.PortStateInit })},
	{Name: "portinfo-physical-state", Breaks: "PortPhysicalState is Polling whatever it is", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.PortPhysicalState = mad.PortPhysStatePolling })},
	{Name: "portinfo-lid", Breaks: "LID is that of somebody else", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.LID++ })},
	{Name: "portinfo-sm-lid", Breaks: "MasterSMLID is 0", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.MasterSMLID = 0 })},
	{Name: "portinfo-prefix", Breaks: "GidPrefix is 0", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.GidPrefix = 0 })},
	{Name: "portinfo-lmc", Breaks: "LMC is one too many", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.LMC++ })},
	{Name: "portinfo-mtu", Breaks: "NeighborMTU is above MTUCap", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.NeighborMTU = i.MTUCap + 1 })},
	{Name: "portinfo-width", Breaks: "LinkWidthActive is not one of LinkWidthSupported", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.LinkWidthActive = ^i.LinkWidthSupported })},
	{Name: "portinfo-speed", Breaks: "no speed is active", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.SetSpeed(0) })},
	{Name: "portinfo-vls", Breaks: "OperationalVLs is above VLCap", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.OperationalVLs = i.VLCap + 1 })},
	{Name: "portinfo-is-sm", Breaks: "the bit IsSM is the wrong way round", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.CapabilityMask ^= mad.CapIsSM })},
	{Name: "portinfo-guid-cap", Breaks: "GUIDCap is 0", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.GUIDCap = 0 })},
	{Name: "switch-port-lid", Breaks: "physical ports of a switch have a LID", IBA: "14.2.5.6", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) {
		if i.LID == 0 {
			i.LID = 1
		}
	})},

	// The other attributes.
	{Name: "guidinfo-guid-0", Breaks: "the first GUID is not that of the port", IBA: "14.2.5.5", answer: edit(mad.AttrGUIDInfo, func(i *mad.GUIDInfo) { i.GUID[0]++ })},
	{Name: "guidinfo-any-block", Breaks: "a block of GUIDs that is not there gets status ok", IBA: "14.2.5.5", answer: anyModifier(mad.AttrGUIDInfo)},
	{Name: "pkeytable-empty", Breaks: "there is no P_Key at all", IBA: "14.2.5.7", answer: edit(mad.AttrPKeyTable, func(t *mad.PKeyTable) { *t = mad.PKeyTable{} })},
	{Name: "pkeytable-any-block", Breaks: "a block of P_Keys that is not there gets status ok", IBA: "14.2.5.7", answer: anyModifier(mad.AttrPKeyTable)},
	{Name: "switchinfo-anywhere", Breaks: "an adapter has a SwitchInfo", IBA: "14.2.5.4", answer: anyNode(mad.AttrSwitchInfo)},
	{Name: "switchinfo-top", Breaks: "LinearFDBTop is above LinearFDBCap", IBA: "14.2.5.4", answer: edit(mad.AttrSwitchInfo, func(i *mad.SwitchInfo) { i.LinearFDBTop = i.LinearFDBCap + 1 })},
	{Name: "lft-anywhere", Breaks: "an adapter has a LinearForwardingTable", IBA: "14.2.5.10", answer: anyNode(mad.AttrLinearForwardingTable)},
	{Name: "lft-any-block", Breaks: "a block beyond LinearFDBCap gets status ok", IBA: "14.2.5.10", answer: anyModifier(mad.AttrLinearForwardingTable)},
	{Name: "lft-shifted", Breaks: "the forwarding table is one LID off", IBA: "14.2.5.10", answer: edit(mad.AttrLinearForwardingTable, func(t *mad.LinearForwardingTable) { copy(t.Port[1:], t.Port[:]) })},
	{Name: "mft-any-block", Breaks: "a block beyond MulticastFDBCap gets status ok", IBA: "14.2.5.12", answer: anyModifier(mad.AttrMulticastForwardingTable)},
	{Name: "sltovl-lane-15", Breaks: "a service level is on lane 15", IBA: "14.2.5.8", answer: edit(mad.AttrSLtoVLMappingTable, func(t *mad.SLtoVLMappingTable) { t.SLtoVL[0] = 15 })},
	{Name: "sltovl-any-port", Breaks: "the table of a port that is not there gets status ok", IBA: "14.2.5.8", answer: anyModifier(mad.AttrSLtoVLMappingTable)},
	{Name: "vlarb-any-block", Breaks: "a block that is not there gets status ok", IBA: "14.2.5.9", answer: anyModifier(mad.AttrVLArbitrationTable)},
	{Name: "vlarb-lane-15", Breaks: "an arbitration table serves lane 15", IBA: "14.2.5.9", answer: edit(mad.AttrVLArbitrationTable, func(t *mad.VLArbitrationTable) { t.VLWeight[0] = mad.VLWeight{VL: 15, Weight: 1} })},
	{Name: "sminfo-anywhere", Breaks: "SMInfo is answered where no SM is", IBA: "14.2.5.13", answer: anyNode(mad.AttrSMInfo)},
	{Name: "sminfo-guid", Breaks: "SMInfo has another GUID than the SM's port", IBA: "14.2.5.13", answer: edit(mad.AttrSMInfo, func(i *mad.SMInfo) { i.GUID++ })},
	{Name: "sminfo-state", Breaks: "the master says that it is not active", IBA: "14.2.5.13", answer: edit(mad.AttrSMInfo, func(i *mad.SMInfo) { i.SMState = mad.SMStateNotActive })},
	{Name: "sminfo-key", Breaks: "SMInfo shows an SM_Key", IBA: "14.2.5.13", answer: edit(mad.AttrSMInfo, func(i *mad.SMInfo) { i.SMKey = 1 })},
	{Name: "notice-empty", Breaks: "the queue of notices says that it holds one, of type 0", IBA: "13.4.8.2", answer: edit(mad.AttrNotice, func(n *mad.SMPNotice) { n.Type = 0 })},

	// Set.
	{Name: "set-ignored", Breaks: "a Set changes nothing", IBA: "14.2.5", serve: setting(0, func(_ *core, _ *simPort, m *subn) { m[mad.OffMethod] = byte(mad.MethodGet) })},
	{Name: "set-forgotten", Breaks: "a Set changes nothing, but the answer says so", IBA: "14.2.5",
		serve: setting(0, func(_ *core, _ *simPort, m *subn) { m[mad.OffMethod] = byte(mad.MethodGet) }),
		answer: func(asked *subn, p *packet) {
			if asked.method() == mad.MethodSet {
				*p.subn().data() = *asked.data()
			}
		}},
	{Name: "set-invalid-ok", Breaks: "a Set of an invalid value gets status ok", IBA: "14.2.5.6", answer: func(asked *subn, p *packet) {
		if asked.method() == mad.MethodSet {
			turn(mad.StatusBadField, mad.StatusOK)(asked, p)
		}
	}},
	{Name: "set-skips-armed", Breaks: "a port goes from Init to Active at once", IBA: "7.2.7", serve: settingPort(func(end *simPort, i *mad.PortInfo) {
		if i.PortState == mad.PortStateActive && end.State == mad.PortStateInit {
			end.State = mad.PortStateArmed
		}
	})},
	{Name: "set-down-ignored", Breaks: "a Set of PortState Down does nothing", IBA: "7.2.7", serve: settingPort(func(_ *simPort, i *mad.PortInfo) {
		if i.PortState == mad.PortStateDown {
			i.PortState = mad.PortStateNoChange
		}
	})},
	{Name: "set-armed-ignored", Breaks: "a Set of PortState Armed does nothing", IBA: "7.2.7", serve: settingPort(func(_ *simPort, i *mad.PortInfo) {
		if i.PortState == mad.PortStateArmed {
			i.PortState = mad.PortStateNoChange
		}
	})},
	{Name: "set-physical-ignored", Breaks: "a Set of PortPhysicalState does nothing", IBA: "14.2.5.6", serve: settingPort(func(_ *simPort, i *mad.PortInfo) { i.PortPhysicalState = mad.PortPhysStateNoChange })},
	{Name: "set-sm-lid-ignored", Breaks: "a Set of MasterSMLID does nothing", IBA: "14.2.5.6", serve: settingPort(func(end *simPort, i *mad.PortInfo) {
		if end.IsEnd() {
			i.MasterSMLID = end.SMLID
		}
	})},
	{Name: "set-lmc-ignored", Breaks: "a Set of LMC does nothing", IBA: "14.2.5.6", serve: settingPort(func(end *simPort, i *mad.PortInfo) { i.LMC = end.LMC })},
	{Name: "set-pkeys-ignored", Breaks: "a Set of P_Keys changes nothing", IBA: "14.2.5.7", serve: setting(mad.AttrPKeyTable, func(_ *core, _ *simPort, m *subn) { m[mad.OffMethod] = byte(mad.MethodGet) })},
	{Name: "mkey-unchecked", Breaks: "a Set without the M_Key of the port is done", IBA: "14.2.4.1", serve: func(_ *core, end *simPort, m *subn) {
		if end.info != nil && m.method() == mad.MethodSet {
			binary.BigEndian.PutUint64(m[offMKey:], end.info.MKey)
		}
	}},
	{Name: "mkey-hidden", Breaks: "no answer shows an M_Key, not even to who has it", IBA: "14.2.4.1", answer: edit(mad.AttrPortInfo, func(i *mad.PortInfo) { i.MKey = 0 })},
	{Name: "mkey-shown", Breaks: "a Get without the M_Key of the port is answered, and shows it", IBA: "14.2.4.1", serve: func(_ *core, end *simPort, m *subn) {
		if end.info != nil && m.method() == mad.MethodGet {
			binary.BigEndian.PutUint64(m[offMKey:], end.info.MKey)
		}
	}},

	// What goes to the SA and comes from it, beside what the SA does by itself: here
	// nothing below it has put it right, or has answered in its place.
	{Name: "tid-wrong", OfSA: true, Breaks: "responses have another transaction id", IBA: "13.4.6", enter: func(p *packet) {
		if mad.IsResponse(p.mad[:]) {
			p.mad[mad.OffTID+7] ^= 1
		}
	}},
	{Name: "bad-version-ok", OfSA: true, Breaks: "another class version is answered like the right one", IBA: "13.4.7", enter: func(p *packet) {
		if !mad.IsResponse(p.mad[:]) {
			p.mad[mad.OffClassVersion] = 2
		}
	}},
	{Name: "rmpp-version", OfSA: true, Breaks: "segments are of RMPP version 2", IBA: "13.6.2.1", enter: segments(0, func(rmpp []byte) { rmpp[0] = 2 })},
	{Name: "rmpp-type", OfSA: true, Breaks: "segments have type 0", IBA: "13.6.2.1", enter: segments(0, func(rmpp []byte) { rmpp[1] = 0 })},
	{Name: "rmpp-first-flag", OfSA: true, Breaks: "the first segment has no flag First", IBA: "13.6.2.1", enter: segments(0, func(rmpp []byte) { rmpp[2] &^= byte(mad.RMPPFlagFirst) })},
	{Name: "rmpp-last-flag", OfSA: true, Breaks: "the last segment has no flag Last", IBA: "13.6.2.1", enter: segments(0, func(rmpp []byte) { rmpp[2] &^= byte(mad.RMPPFlagLast) })},
	{Name: "rmpp-segment-number", OfSA: true, Breaks: "segments are counted from 0", IBA: "13.6.2.1", enter: segments(0, func(rmpp []byte) { add(rmpp[offSegmentNumber:], -1) })},
	{Name: "rmpp-total-wrong", OfSA: true, Breaks: "PayloadLength of the first segment of several is 8 too many", IBA: "13.6.2.1", enter: segments(mad.RMPPFlagFirst, func(rmpp []byte) {
		if rmpp[2]&byte(mad.RMPPFlagLast) == 0 {
			add(rmpp[offPayloadLength:], 8)
		}
	})},
	{Name: "rmpp-payload-length", OfSA: true, Breaks: "PayloadLength of the last segment is 8 too many", IBA: "13.6.2.1", enter: segments(mad.RMPPFlagLast, func(rmpp []byte) { add(rmpp[offPayloadLength:], 8) })},
	{Name: "rmpp-segment-lost", OfSA: true, Breaks: "the last segment of a longer answer is never sent", IBA: "13.6.2.1", enter: func(p *packet) {
		if isSegment(p) && mad.RMPPFlags(p.mad[mad.OffRMPP+2])&(mad.RMPPFlagFirst|mad.RMPPFlagLast) == mad.RMPPFlagLast {
			silence(p)
		}
	}},
	{Name: "rmpp-abort", OfSA: true, Breaks: "an answer is aborted at once, for no reason", IBA: "13.6.2.1", enter: segments(0, func(rmpp []byte) {
		rmpp[1], rmpp[3] = byte(mad.RMPPTypeAbort), byte(mad.RMPPStatusUnspecified)
		clear(rmpp[4:])
	})},
}
