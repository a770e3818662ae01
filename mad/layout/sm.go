package layout

// NodeDescription is the name that a node gives itself.
var NodeDescription = &Struct{
	Name: "NodeDescription", Size: 64, IBA: "14.2.5.2",
	Doc: "is the name that a node gives itself.",
	Fields: []Field{
		{Name: "NodeString", Off: 0, Len: 512, Kind: KindString, Label: "Node Description", Doc: "UTF-8, padded with NUL"},
	},
}

// NodeInfo describes a node and the port that answers.
var NodeInfo = &Struct{
	Name: "NodeInfo", Size: 40, IBA: "14.2.5.3",
	Doc: "describes a node, and the port by which the request came.",
	Fields: []Field{
		{Name: "BaseVersion", Off: 0, Len: 8, Label: "BaseVers"},
		{Name: "ClassVersion", Off: 8, Len: 8, Label: "ClassVers"},
		{Name: "NodeType", Off: 16, Len: 8, Kind: KindEnum, Enum: NodeType, Label: "NodeType"},
		{Name: "NumPorts", Off: 24, Len: 8, Label: "NumPorts", Doc: "physical ports, so without port 0 of a switch"},
		{Name: "SystemImageGUID", Off: 32, Len: 64, Kind: KindGUID, Label: "SystemGuid"},
		{Name: "NodeGUID", Off: 96, Len: 64, Kind: KindGUID, Label: "Guid"},
		{Name: "PortGUID", Off: 160, Len: 64, Kind: KindGUID, Label: "PortGuid"},
		{Name: "PartitionCap", Off: 224, Len: 16, Label: "PartCap", Doc: "entries of the P_Key table of CA ports, router ports and switch port 0"},
		{Name: "DeviceID", Off: 240, Len: 16, Kind: KindHex, Label: "DevId"},
		{Name: "Revision", Off: 256, Len: 32, Kind: KindHex, Label: "Revision"},
		{Name: "LocalPortNum", Off: 288, Len: 8, Label: "LocalPort", Doc: "port by which the request came"},
		{Name: "VendorID", Off: 296, Len: 24, Kind: KindHex, Label: "VendorId", Doc: "OUI of the vendor"},
	},
}

// SwitchInfo describes a switch.
var SwitchInfo = &Struct{
	Name: "SwitchInfo", Size: 20, IBA: "14.2.5.4",
	Doc: "describes a switch and what it can do.",
	Fields: []Field{
		{Name: "LinearFDBCap", Off: 0, Len: 16, Label: "LinearFdbCap", Doc: "entries of the linear forwarding table"},
		{Name: "RandomFDBCap", Off: 16, Len: 16, Label: "RandomFdbCap"},
		{Name: "MulticastFDBCap", Off: 32, Len: 16, Label: "McastFdbCap"},
		{Name: "LinearFDBTop", Off: 48, Len: 16, Label: "LinearFdbTop", Doc: "highest LID of the linear forwarding table in use"},
		{Name: "DefaultPort", Off: 64, Len: 8, Label: "DefPort"},
		{Name: "DefaultMulticastPrimaryPort", Off: 72, Len: 8, Label: "DefMcastPrimPort"},
		{Name: "DefaultMulticastNotPrimaryPort", Off: 80, Len: 8, Label: "DefMcastNotPrimPort"},
		{Name: "LifeTimeValue", Off: 88, Len: 5, Kind: KindTime, Unlimited: 20, Label: "LifeTime", Doc: "time a packet may live in the switch, 4.096 us * 2^n; over 19 is unlimited"},
		{Name: "PortStateChange", Off: 93, Len: 1, Kind: KindFlag, Label: "StateChange", Doc: "a port changed state; writing 1 clears it"},
		{Name: "OptimizedSLtoVLMappingProgramming", Off: 94, Len: 2, Label: "OptSLtoVLMapping"},
		{Name: "LIDsPerPort", Off: 96, Len: 16, Label: "LidsPerPort"},
		{Name: "PartitionEnforcementCap", Off: 112, Len: 16, Label: "PartEnforceCap", Doc: "entries of the P_Key table of a physical port"},
		{Name: "InboundEnforcementCap", Off: 128, Len: 1, Kind: KindFlag, Label: "InboundPartEnf"},
		{Name: "OutboundEnforcementCap", Off: 129, Len: 1, Kind: KindFlag, Label: "OutboundPartEnf"},
		{Name: "FilterRawInboundCap", Off: 130, Len: 1, Kind: KindFlag, Label: "FilterRawInbound"},
		{Name: "FilterRawOutboundCap", Off: 131, Len: 1, Kind: KindFlag, Label: "FilterRawOutbound"},
		{Name: "EnhancedPort0", Off: 132, Len: 1, Kind: KindFlag, Label: "EnhancedPort0"},
		{Off: 133, Len: 11},
		{Name: "MulticastFDBTop", Off: 144, Len: 16, Kind: KindHex, Label: "MulticastFDBTop", Doc: "highest LID of the multicast forwarding table in use"},
	},
}

// GUIDInfo is one block of a port's GUIDs.
var GUIDInfo = &Struct{
	Name: "GUIDInfo", Size: 64, IBA: "14.2.5.5",
	Doc: "is one block of 8 of a port's GUIDs.",
	Fields: []Field{
		{Name: "GUID", Off: 0, Len: 64, Count: 8, Kind: KindGUID, Label: "GUID"},
	},
}

// PortInfo describes a port.
var PortInfo = &Struct{
	Name: "PortInfo", Size: 64, IBA: "14.2.5.6",
	Doc: "describes a port, its link and how the SM set it up.",
	Fields: []Field{
		{Name: "M_Key", Off: 0, Len: 64, Kind: KindHex, Key: true, Label: "Mkey"},
		{Name: "GidPrefix", Off: 64, Len: 64, Kind: KindHex, Label: "GidPrefix"},
		{Name: "LID", Off: 128, Len: 16, Kind: KindLID, Label: "Lid", Doc: "base LID"},
		{Name: "MasterSMLID", Off: 144, Len: 16, Kind: KindLID, Label: "SMLid"},
		{Name: "CapabilityMask", Off: 160, Len: 32, Kind: KindEnum, Enum: PortCapMask, Label: "CapMask"},
		{Name: "DiagCode", Off: 192, Len: 16, Kind: KindHex, Label: "DiagCode"},
		{Name: "M_KeyLeasePeriod", Off: 208, Len: 16, Label: "MkeyLeasePeriod", Doc: "seconds; 0 is for ever"},
		{Name: "LocalPortNum", Off: 224, Len: 8, Label: "LocalPort", Doc: "port by which the request came"},
		{Name: "LinkWidthEnabled", Off: 232, Len: 8, Kind: KindEnum, Enum: LinkWidth, Label: "LinkWidthEnabled", Doc: "in a Set, 0 changes nothing and 255 enables all that is supported"},
		{Name: "LinkWidthSupported", Off: 240, Len: 8, Kind: KindEnum, Enum: LinkWidth, Label: "LinkWidthSupported"},
		{Name: "LinkWidthActive", Off: 248, Len: 8, Kind: KindEnum, Enum: LinkWidth, Label: "LinkWidthActive"},
		{Name: "LinkSpeedSupported", Off: 256, Len: 4, Kind: KindEnum, Enum: LinkSpeed, Label: "LinkSpeedSupported"},
		{Name: "PortState", Off: 260, Len: 4, Kind: KindEnum, Enum: PortState, Label: "LinkState"},
		{Name: "PortPhysicalState", Off: 264, Len: 4, Kind: KindEnum, Enum: PortPhysState, Label: "PhysLinkState"},
		{Name: "LinkDownDefaultState", Off: 268, Len: 4, Kind: KindEnum, Enum: LinkDownDefaultState, Label: "LinkDownDefState"},
		{Name: "M_KeyProtectBits", Off: 272, Len: 2, Label: "ProtectBits"},
		{Off: 274, Len: 3},
		{Name: "LMC", Off: 277, Len: 3, Label: "LMC", Doc: "the port answers to 2^LMC LIDs"},
		{Name: "LinkSpeedActive", Off: 280, Len: 4, Kind: KindEnum, Enum: LinkSpeed, Label: "LinkSpeedActive"},
		{Name: "LinkSpeedEnabled", Off: 284, Len: 4, Kind: KindEnum, Enum: LinkSpeed, Label: "LinkSpeedEnabled", Doc: "in a Set, 0 changes nothing and 15 enables all that is supported"},
		{Name: "NeighborMTU", Off: 288, Len: 4, Kind: KindEnum, Enum: MTU, Label: "NeighborMTU"},
		{Name: "MasterSMSL", Off: 292, Len: 4, Label: "SMSL"},
		{Name: "VLCap", Off: 296, Len: 4, Kind: KindEnum, Enum: VLs, Label: "VLCap"},
		{Name: "InitType", Off: 300, Len: 4, Kind: KindHex, Label: "InitType"},
		{Name: "VLHighLimit", Off: 304, Len: 8, Label: "VLHighLimit"},
		{Name: "VLArbitrationHighCap", Off: 312, Len: 8, Label: "VLArbHighCap"},
		{Name: "VLArbitrationLowCap", Off: 320, Len: 8, Label: "VLArbLowCap"},
		{Name: "InitTypeReply", Off: 328, Len: 4, Kind: KindHex, Label: "InitReply"},
		{Name: "MTUCap", Off: 332, Len: 4, Kind: KindEnum, Enum: MTU, Label: "MtuCap"},
		{Name: "VLStallCount", Off: 336, Len: 3, Label: "VLStallCount"},
		{Name: "HOQLife", Off: 339, Len: 5, Kind: KindTime, Unlimited: 20, Label: "HoqLife", Doc: "time at the head of a VL queue, 4.096 us * 2^n; over 19 is unlimited"},
		{Name: "OperationalVLs", Off: 344, Len: 4, Kind: KindEnum, Enum: VLs, Label: "OperVLs"},
		{Name: "PartitionEnforcementInbound", Off: 348, Len: 1, Kind: KindFlag, Label: "PartEnforceInb"},
		{Name: "PartitionEnforcementOutbound", Off: 349, Len: 1, Kind: KindFlag, Label: "PartEnforceOutb"},
		{Name: "FilterRawInbound", Off: 350, Len: 1, Kind: KindFlag, Label: "FilterRawInb"},
		{Name: "FilterRawOutbound", Off: 351, Len: 1, Kind: KindFlag, Label: "FilterRawOutb"},
		{Name: "M_KeyViolations", Off: 352, Len: 16, Label: "MkeyViolations"},
		{Name: "P_KeyViolations", Off: 368, Len: 16, Label: "PkeyViolations"},
		{Name: "Q_KeyViolations", Off: 384, Len: 16, Label: "QkeyViolations"},
		{Name: "GUIDCap", Off: 400, Len: 8, Label: "GuidCap", Doc: "entries of the GUID table"},
		{Name: "ClientReregister", Off: 408, Len: 1, Kind: KindFlag, Label: "ClientReregister"},
		{Name: "MulticastPKeyTrapSuppressionEnabled", Off: 409, Len: 2, Label: "McastPkeyTrapSuppressionEnabled"},
		{Name: "SubnetTimeOut", Off: 411, Len: 5, Kind: KindTime, Label: "SubnetTimeout", Doc: "longest way through the subnet, 4.096 us * 2^n"},
		{Off: 416, Len: 3},
		{Name: "RespTimeValue", Off: 419, Len: 5, Kind: KindTime, Label: "RespTimeVal", Doc: "time from request to response, 4.096 us * 2^n"},
		{Name: "LocalPhyErrors", Off: 424, Len: 4, Label: "LocalPhysErr"},
		{Name: "OverrunErrors", Off: 428, Len: 4, Label: "OverrunErr"},
		{Name: "MaxCreditHint", Off: 432, Len: 16, Label: "MaxCreditHint"},
		{Off: 448, Len: 1},
		{Name: "LinkSpeedExtActive2", Off: 449, Len: 2, Kind: KindEnum, Enum: LinkSpeedExt2, Label: "LinkSpeedExtActive2", Doc: "XDR"},
		{Name: "LinkSpeedExtSupported2", Off: 451, Len: 2, Kind: KindEnum, Enum: LinkSpeedExt2, Label: "LinkSpeedExtSupported2"},
		{Name: "LinkSpeedExtEnabled2", Off: 453, Len: 3, Kind: KindEnum, Enum: LinkSpeedExt2, Label: "LinkSpeedExtEnabled2"},
		{Name: "LinkRoundTripLatency", Off: 456, Len: 24, Label: "RoundTrip", Doc: "units of 4 ns"},
		{Name: "CapabilityMask2", Off: 480, Len: 16, Kind: KindEnum, Enum: PortCapMask2, Label: "CapabilityMask2"},
		{Name: "LinkSpeedExtActive", Off: 496, Len: 4, Kind: KindEnum, Enum: LinkSpeedExt, Label: "LinkSpeedExtActive", Doc: "FDR to NDR"},
		{Name: "LinkSpeedExtSupported", Off: 500, Len: 4, Kind: KindEnum, Enum: LinkSpeedExt, Label: "LinkSpeedExtSupported"},
		{Off: 504, Len: 3},
		{Name: "LinkSpeedExtEnabled", Off: 507, Len: 5, Kind: KindEnum, Enum: LinkSpeedExt, Label: "LinkSpeedExtEnabled", Doc: "in a Set, 30 disables extended speeds and 31 enables all that is supported"},
	},
}

// SMInfo describes a subnet manager.
var SMInfo = &Struct{
	Name: "SMInfo", Size: 21, IBA: "14.2.5.13",
	Doc: "describes a subnet manager.",
	Fields: []Field{
		{Name: "GUID", Off: 0, Len: 64, Kind: KindGUID, Label: "SmInfoGuid", Doc: "of the SM's port"},
		{Name: "SM_Key", Off: 64, Len: 64, Kind: KindHex, Key: true, Label: "SmInfoKey"},
		{Name: "ActCount", Off: 128, Len: 32, Label: "SmActivity", Doc: "grows while the SM works"},
		{Name: "Priority", Off: 160, Len: 4, Label: "SmPriority"},
		{Name: "SMState", Off: 164, Len: 4, Kind: KindEnum, Enum: SMState, Label: "SmState"},
	},
}

// VendorDiag is diagnostic data of a vendor.
var VendorDiag = &Struct{
	Name: "VendorDiag", Size: 64, IBA: "14.2.5.14",
	Doc: "is diagnostic data of a port, whose meaning its vendor knows.",
	Fields: []Field{
		{Name: "NextIndex", Off: 0, Len: 16, Doc: "attribute modifier of the next data; 0 if there is no more"},
		{Name: "DiagData", Off: 16, Len: 496, Kind: KindBytes},
	},
}

// LedInfo is the LED of a port.
var LedInfo = &Struct{
	Name: "LedInfo", Size: 4, IBA: "14.2.5.15",
	Doc: "is the state of a port's LED.",
	Fields: []Field{
		{Name: "LedMask", Off: 0, Len: 1, Kind: KindFlag, Doc: "it is on"},
		{Off: 1, Len: 31},
	},
}

// PortInfoExtended is what found no room in PortInfo.
var PortInfoExtended = &Struct{
	Name: "PortInfoExtended", Size: 64, IBA: "14.2.5.19",
	Doc: "is the forward error correction of a port. It counts if\nCap2IsPortInfoExtendedSupported is set.",
	Fields: []Field{
		{Name: "CapabilityMask", Off: 0, Len: 32, Kind: KindEnum, Enum: PortExtCapMask, Raw: true, Label: "CapMask"},
		{Name: "FECModeActive", Off: 32, Len: 16, Kind: KindEnum, Enum: FECMode, Raw: true, Label: "FECModeActive"},
		{Name: "FDRFECModeSupported", Off: 48, Len: 16, Kind: KindHex, Label: "FDRFECModeSupported"},
		{Name: "FDRFECModeEnabled", Off: 64, Len: 16, Kind: KindHex, Label: "FDRFECModeEnabled"},
		{Name: "EDRFECModeSupported", Off: 80, Len: 16, Kind: KindHex, Label: "EDRFECModeSupported"},
		{Name: "EDRFECModeEnabled", Off: 96, Len: 16, Kind: KindHex, Label: "EDRFECModeEnabled"},
		{Name: "HDRFECModeSupported", Off: 112, Len: 16, Kind: KindHex, Label: "HDRFECModeSupported"},
		{Name: "HDRFECModeEnabled", Off: 128, Len: 16, Kind: KindHex, Label: "HDRFECModeEnabled"},
		{Name: "NDRFECModeSupported", Off: 144, Len: 16, Kind: KindHex, Label: "NDRFECModeSupported"},
		{Name: "NDRFECModeEnabled", Off: 160, Len: 16, Kind: KindHex, Label: "NDRFECModeEnabled"},
		{Off: 176, Len: 336},
	},
}

// MlnxExtPortInfo is Mellanox's addition to PortInfo.
var MlnxExtPortInfo = &Struct{
	Name: "MlnxExtPortInfo", Size: 64, IBA: "none: OpenSM ib_types.h, ib_mlnx_ext_port_info_t",
	Doc: "is Mellanox's addition to PortInfo: the speed FDR10, which the IBA\ndoes not know.",
	Fields: []Field{
		{Off: 0, Len: 24},
		{Name: "StateChangeEnable", Off: 24, Len: 8, Kind: KindHex, Label: "StateChangeEnable"},
		{Off: 32, Len: 24},
		{Name: "LinkSpeedSupported", Off: 56, Len: 8, Kind: KindEnum, Enum: LinkSpeedMlnx, Raw: true, Label: "LinkSpeedSupported"},
		{Off: 64, Len: 24},
		{Name: "LinkSpeedEnabled", Off: 88, Len: 8, Kind: KindEnum, Enum: LinkSpeedMlnx, Raw: true, Label: "LinkSpeedEnabled"},
		{Off: 96, Len: 24},
		{Name: "LinkSpeedActive", Off: 120, Len: 8, Kind: KindEnum, Enum: LinkSpeedMlnx, Raw: true, Label: "LinkSpeedActive"},
		{Off: 128, Len: 384},
	},
}
