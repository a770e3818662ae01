package layout

import "testing"

// The bits of IB_*_COMPMASK_* in OpenSM's ib_types.h. No other bit selects
// anything.
func TestComponentMasksLikeOpenSM(t *testing.T) {
	for _, c := range []struct {
		of   *Struct
		bits map[int]string // names as a user may write them
	}{
		{PortInfoRecord, map[int]string{
			0: "EndportLID", 1: "PortNum", 2: "Options", 3: "M_Key", 4: "GidPrefix", 5: "PortInfo.LID", 6: "MasterSMLID",
			7: "CapabilityMask", 8: "DiagCode", 9: "M_KeyLeasePeriod", 10: "LocalPortNum", 11: "LinkWidthEnabled",
			12: "LinkWidthSupported", 13: "LinkWidthActive", 14: "LinkSpeedSupported", 15: "PortState", 16: "PortPhysicalState",
			17: "LinkDownDefaultState", 18: "M_KeyProtectBits", 20: "LMC", 21: "LinkSpeedActive", 22: "LinkSpeedEnabled",
			23: "NeighborMTU", 24: "MasterSMSL", 25: "VLCap", 26: "InitType", 27: "VLHighLimit", 28: "VLArbitrationHighCap",
			29: "VLArbitrationLowCap", 30: "InitTypeReply", 31: "MTUCap", 32: "VLStallCount", 33: "HOQLife", 34: "OperationalVLs",
			35: "PartitionEnforcementInbound", 36: "PartitionEnforcementOutbound", 37: "FilterRawInbound",
			38: "FilterRawOutbound", 39: "M_KeyViolations", 40: "P_KeyViolations", 41: "Q_KeyViolations", 42: "GUIDCap",
			43: "ClientReregister", 45: "SubnetTimeOut", 47: "RespTimeValue", 48: "LocalPhyErrors", 49: "OverrunErrors",
			50: "MaxCreditHint", 52: "LinkRoundTripLatency", 53: "CapabilityMask2", 54: "LinkSpeedExtActive",
			55: "LinkSpeedExtSupported", 57: "LinkSpeedExtEnabled",
		}},
		{MCMemberRecord, map[int]string{
			0: "MGID", 1: "PortGID", 2: "Q_Key", 3: "MLID", 4: "MTUSelector", 5: "MTU", 6: "TClass", 7: "P_Key",
			8: "RateSelector", 9: "Rate", 10: "PacketLifeTimeSelector", 11: "PacketLifeTime", 12: "SL", 13: "FlowLabel",
			14: "HopLimit", 15: "Scope", 16: "JoinState", 17: "ProxyJoin",
		}},
		{ServiceRecord, map[int]string{
			0: "ServiceID", 1: "ServiceGID", 2: "ServiceP_Key", 4: "ServiceLease", 5: "ServiceKey", 6: "ServiceName",
			7: "ServiceData8[0]", 8: "ServiceData8[1]", 9: "ServiceData8[2]", 10: "ServiceData8[3]", 11: "ServiceData8[4]",
			12: "ServiceData8[5]", 13: "ServiceData8[6]", 14: "ServiceData8[7]", 15: "ServiceData8[8]", 16: "ServiceData8[9]",
			17: "ServiceData8[10]", 18: "ServiceData8[11]", 19: "ServiceData8[12]", 20: "ServiceData8[13]",
			21: "ServiceData8[14]", 22: "ServiceData8[15]", 23: "ServiceData16[0]", 24: "ServiceData16[1]",
			25: "ServiceData16[2]", 26: "ServiceData16[3]", 27: "ServiceData16[4]", 28: "ServiceData16[5]",
			29: "ServiceData16[6]", 30: "ServiceData16[7]", 31: "ServiceData32[0]", 32: "ServiceData32[1]",
			33: "ServiceData32[2]", 34: "ServiceData32[3]", 35: "ServiceData64[0]", 36: "ServiceData64[1]",
		}},
		{InformInfoRecord, map[int]string{
			0: "SubscriberGID", 1: "Enum", 3: "InformInfo.GID", 4: "LIDRangeBegin", 5: "LIDRangeEnd", 7: "IsGeneric",
			8: "Subscribe", 9: "Type", 10: "TrapNumber", 11: "QPN", 13: "RespTimeValue", 15: "ProducerType",
		}},
		{GUIDInfoRecord, map[int]string{
			0: "LID", 1: "BlockNum", 4: "GUIDInfo.GUID[0]", 5: "GUIDInfo.GUID[1]", 6: "GUIDInfo.GUID[2]", 7: "GUIDInfo.GUID[3]",
			8: "GUIDInfo.GUID[4]", 9: "GUIDInfo.GUID[5]", 10: "GUIDInfo.GUID[6]", 11: "GUIDInfo.GUID[7]",
		}},
		{LinkRecord, map[int]string{0: "FromLID", 1: "FromPort", 2: "ToPort", 3: "ToLID"}},
		{VLArbitrationTableRecord, map[int]string{0: "LID", 1: "OutputPortNum", 2: "BlockNum"}},
		{SLtoVLMappingTableRecord, map[int]string{0: "LID", 1: "InputPortNum", 2: "OutputPortNum"}},
		{PKeyTableRecord, map[int]string{0: "LID", 1: "BlockNum", 2: "PortNum"}},
		{SwitchInfoRecord, map[int]string{0: "LID"}},
		{LinearForwardingTableRecord, map[int]string{0: "LID", 1: "BlockNum"}},
		{MulticastForwardingTableRecord, map[int]string{0: "LID", 1: "Position", 3: "BlockNum"}},
		{SMInfoRecord, map[int]string{0: "LID", 2: "SMInfo.GUID", 3: "SM_Key", 4: "ActCount", 5: "Priority", 6: "SMState"}},
	} {
		for bit, name := range c.bits {
			f, err := c.of.Find(name)
			if err != nil || c.of.MaskOf(f.Name) != 1<<bit {
				t.Errorf("%s.%s: mask %#x, %v, want bit %d", c.of.Name, name, c.of.MaskOf(f.Name), err, bit)
			}
		}
		for bit, name := range c.of.Mask {
			if _, known := c.bits[bit]; !known && name != "" {
				t.Errorf("%s: bit %d is %s, which OpenSM does not have", c.of.Name, bit, name)
			}
		}
	}
}
