package layout

// PortCapMask is the first capability mask of a port.
var PortCapMask = &Enum{
	Name: "PortCapMask", Bits: 32, Prefix: "Cap", Sep: "|", IBA: "14.2.5.6", Diag: "0x%x",
	Doc: "says what a port can do.",
	Values: []Value{
		{Value: 1 << 1, Go: "IsSM", Text: "IsSM"},
		{Value: 1 << 2, Go: "IsNoticeSupported", Text: "IsNoticeSupported"},
		{Value: 1 << 3, Go: "IsTrapSupported", Text: "IsTrapSupported"},
		{Value: 1 << 4, Go: "IsOptionalIPDSupported", Text: "IsOptionalIPDSupported"},
		{Value: 1 << 5, Go: "IsAutomaticMigrationSupported", Text: "IsAutomaticMigrationSupported"},
		{Value: 1 << 6, Go: "IsSLMappingSupported", Text: "IsSLMappingSupported"},
		{Value: 1 << 7, Go: "IsMKeyNVRAM", Text: "IsMKeyNVRAM"},
		{Value: 1 << 8, Go: "IsPKeyNVRAM", Text: "IsPKeyNVRAM"},
		{Value: 1 << 9, Go: "IsLEDInfoSupported", Text: "IsLedInfoSupported"},
		{Value: 1 << 10, Go: "IsSMDisabled", Text: "IsSMdisabled"},
		{Value: 1 << 11, Go: "IsSystemImageGUIDSupported", Text: "IsSystemImageGUIDsupported"},
		{Value: 1 << 12, Go: "IsPKeySwitchExternalPortTrapSupported", Text: "IsPkeySwitchExternalPortTrapSupported"},
		{Value: 1 << 13, Go: "IsCableInfoSupported", Text: "IsCableInfoSupported", Quiet: true},
		{Value: 1 << 14, Go: "IsExtendedSpeedsSupported", Text: "IsExtendedSpeedsSupported"},
		{Value: 1 << 15, Go: "IsCapabilityMask2Supported", Text: "IsCapabilityMask2Supported"},
		{Value: 1 << 16, Go: "IsCommunicationManagementSupported", Text: "IsCommunicatonManagementSupported", Alias: []string{"IsCommunicationManagementSupported"}},
		{Value: 1 << 17, Go: "IsSNMPTunnelingSupported", Text: "IsSNMPTunnelingSupported"},
		{Value: 1 << 18, Go: "IsReinitSupported", Text: "IsReinitSupported"},
		{Value: 1 << 19, Go: "IsDeviceManagementSupported", Text: "IsDeviceManagementSupported"},
		{Value: 1 << 20, Go: "IsVendorClassSupported", Text: "IsVendorClassSupported"},
		{Value: 1 << 21, Go: "IsDRNoticeSupported", Text: "IsDRNoticeSupported"},
		{Value: 1 << 22, Go: "IsCapabilityMaskNoticeSupported", Text: "IsCapabilityMaskNoticeSupported"},
		{Value: 1 << 23, Go: "IsBootManagementSupported", Text: "IsBootManagementSupported"},
		{Value: 1 << 24, Go: "IsLinkRoundTripLatencySupported", Text: "IsLinkRoundTripLatencySupported"},
		{Value: 1 << 25, Go: "IsClientReregistrationSupported", Text: "IsClientRegistrationSupported", Alias: []string{"IsClientReregistrationSupported"}},
		{Value: 1 << 26, Go: "IsOtherLocalChangesNoticeSupported", Text: "IsOtherLocalChangesNoticeSupported"},
		{Value: 1 << 27, Go: "IsLinkSpeedWidthPairsTableSupported", Text: "IsLinkSpeedWidthPairsTableSupported"},
		{Value: 1 << 28, Go: "IsVendorSpecificMadsTableSupported", Text: "IsVendorSpecificMadsTableSupported"},
		{Value: 1 << 29, Go: "IsMcastPKeyTrapSuppressionSupported", Text: "IsMcastPkeyTrapSuppressionSupported"},
		{Value: 1 << 30, Go: "IsMulticastFDBTopSupported", Text: "IsMulticastFDBTopSupported"},
		{Value: 1 << 31, Go: "IsHierarchyInfoSupported", Text: "IsHierarchyInfoSupported"},
	},
}

// PortCapMask2 is the second capability mask of a port.
var PortCapMask2 = &Enum{
	Name: "PortCapMask2", Bits: 16, Prefix: "Cap2", Sep: "|", IBA: "14.2.5.6", Diag: "0x%x",
	Doc: "says what a port can do, where PortCapMask has no bit left. It counts\nif CapIsCapabilityMask2Supported is set.",
	Values: []Value{
		{Value: 1 << 0, Go: "IsSetNodeDescriptionSupported", Text: "IsSetNodeDescriptionSupported"},
		{Value: 1 << 1, Go: "IsPortInfoExtendedSupported", Text: "IsPortInfoExtendedSupported"},
		{Value: 1 << 2, Go: "IsVirtualizationSupported", Text: "IsVirtualizationSupported"},
		{Value: 1 << 3, Go: "IsSwitchPortStateTableSupported", Text: "IsSwitchPortStateTableSupported"},
		{Value: 1 << 4, Go: "IsLinkWidth2xSupported", Text: "IsLinkWidth2xSupported"},
		{Value: 1 << 5, Go: "IsLinkSpeedHDRSupported", Text: "IsLinkSpeedHDRSupported"},
		{Value: 1 << 6, Go: "IsMKeyProtectBitsExtSupported", Text: "IsMKeyProtectBitsExtSupported"},
		{Value: 1 << 7, Go: "IsEnhancedTrap128Supported", Text: "IsEnhancedTrap128Supported"},
		{Value: 1 << 8, Go: "IsPartitionTopSupported", Text: "IsPartitionTopSupported"},
		{Value: 1 << 9, Go: "IsEnhancedQoSArbiterSupported", Text: "IsEnhancedQoSArbiterSupported"},
		{Value: 1 << 10, Go: "IsLinkSpeedNDRSupported", Text: "IsLinkSpeedNDRSupported"},
		{Value: 1 << 11, Go: "IsExtendedSpeeds2Supported", Text: "IsExtendedSpeeds2Supported", Quiet: true},
		{Value: 1 << 12, Go: "IsLinkSpeedXDRSupported", Text: "IsLinkSpeedXDRSupported", Quiet: true},
	},
}

// SACapMask is the capability mask in the ClassPortInfo of subnet administration.
var SACapMask = &Enum{
	Name: "SACapMask", Bits: 16, Prefix: "SACap", Sep: "|", IBA: "13.4.8.1, 15.2.5.1", Diag: "0x%04x",
	Doc: "says what a subnet administrator can do, in the CapabilityMask of its\nClassPortInfo.",
	Values: []Value{
		{Value: 1 << 0, Go: "IsTrapSupported", Text: "IsTrapSupported"},
		{Value: 1 << 1, Go: "IsGetSetNoticeSupported", Text: "IsGetSetNoticeSupported"},
		{Value: 1 << 8, Go: "IsSubnetOptionalRecordsSupported", Text: "IsSubnetOptionalRecordsSupported"},
		{Value: 1 << 9, Go: "IsUDMulticastSupported", Text: "IsUDMulticastSupported"},
		{Value: 1 << 10, Go: "IsMultipathSupported", Text: "IsMultipathSupported"},
		{Value: 1 << 11, Go: "IsReinitSupported", Text: "IsReinitSupported"},
		{Value: 1 << 12, Go: "IsGIDScopedMultipathSupported", Text: "IsGIDScopedMultipathSupported"},
		{Value: 1 << 13, Go: "IsPortInfoCapMaskMatchSupported", Text: "IsPortInfoCapMaskMatchSupported"},
		{Value: 1 << 14, Go: "IsLinkSpeedWidthPairsTableRecordSupported", Text: "IsLinkSpeedWidthPairsTableRecordSupported"},
		{Value: 1 << 15, Go: "IsPAServicesSupported", Text: "IsPAServicesSupported"},
	},
}

// SACapMask2 is the second capability mask of subnet administration.
var SACapMask2 = &Enum{
	Name: "SACapMask2", Bits: 32, Prefix: "SACap2", Sep: "|", IBA: "15.2.5.1", Diag: "0x%08x",
	Doc: "says what a subnet administrator can do, in the CapabilityMask2 of its\nClassPortInfo.",
	Values: []Value{
		{Value: 1 << 0, Go: "IsUnpathRepathSupported", Text: "IsUnpathRepathSupported"},
		{Value: 1 << 1, Go: "IsQoSSupported", Text: "IsQoSSupported"},
		{Value: 1 << 2, Go: "IsReversePathPKeyMembershipSupported", Text: "IsReversePathPKeyMembershipSupported"},
		{Value: 1 << 3, Go: "IsMulticastFDBTopSupported", Text: "IsMulticastFDBTopSupported"},
		{Value: 1 << 4, Go: "IsHierarchyInfoSupported", Text: "IsHierarchyInfoSupported"},
		{Value: 1 << 5, Go: "IsAdditionalGUIDsSupported", Text: "IsAdditionalGUIDsSupported"},
		{Value: 1 << 6, Go: "IsFullPortInfoRecordSupported", Text: "IsFullPortInfoRecordSupported"},
		{Value: 1 << 7, Go: "IsExtendedSpeedsSupported", Text: "IsExtendedSpeedsSupported"},
		{Value: 1 << 8, Go: "IsMulticastServiceRecordSupported", Text: "IsMulticastServiceRecordSupported"},
		{Value: 1 << 9, Go: "IsCableInfoRecordSupported", Text: "IsCableInfoRecordSupported"},
		{Value: 1 << 10, Go: "IsPortInfoCapMask2MatchSupported", Text: "IsPortInfoCapMask2MatchSupported"},
		{Value: 1 << 11, Go: "IsPortInfoExtendedRecordSupported", Text: "IsPortInfoExtendedRecordSupported"},
	},
}
