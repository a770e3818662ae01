package server

import "github.com/ibsm/ibsm/mad/layout"

// Components of the queries that are more than a comparison of bits.
var (
	portInfoOptions = layout.PortInfoRecord.MaskOf("Options")

	pathServiceID  = layout.PathRecord.MaskOf("ServiceID")
	pathDGID       = layout.PathRecord.MaskOf("DGID")
	pathSGID       = layout.PathRecord.MaskOf("SGID")
	pathDLID       = layout.PathRecord.MaskOf("DLID")
	pathSLID       = layout.PathRecord.MaskOf("SLID")
	pathRaw        = layout.PathRecord.MaskOf("RawTraffic")
	pathFlowLabel  = layout.PathRecord.MaskOf("FlowLabel")
	pathHopLimit   = layout.PathRecord.MaskOf("HopLimit")
	pathTClass     = layout.PathRecord.MaskOf("TClass")
	pathReversible = layout.PathRecord.MaskOf("Reversible")
	pathNumbPath   = layout.PathRecord.MaskOf("NumbPath")
	pathPKey       = layout.PathRecord.MaskOf("P_Key")
	pathQoSClass   = layout.PathRecord.MaskOf("QoSClass")
	pathSL         = layout.PathRecord.MaskOf("SL")
	pathMTUSel     = layout.PathRecord.MaskOf("MTUSelector")
	pathMTU        = layout.PathRecord.MaskOf("MTU")
	pathRateSel    = layout.PathRecord.MaskOf("RateSelector")
	pathRate       = layout.PathRecord.MaskOf("Rate")
	pathLifeSel    = layout.PathRecord.MaskOf("PacketLifeTimeSelector")
	pathLife       = layout.PathRecord.MaskOf("PacketLifeTime")
	pathPreference = layout.PathRecord.MaskOf("Preference")
)
