package sma

import (
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// PortInfo describes a port of the node, to those that know extended speeds.
func (a *Agent) PortInfo(p *topo.Port) mad.PortInfo {
	info := a.State.PortInfo(p)
	info.LocalPortNum = a.In
	if p.IsEnd() && a.State.IsSM(p) {
		info.CapabilityMask |= mad.CapIsSM
	}
	return info
}

// BroughtUp is the PortInfo of a port after BringUp, as State has it. Physical
// ports of a switch have nothing that belongs to a LID (IBA 14.2.5.6).
func BroughtUp(sub *topo.Subnet, p *topo.Port) mad.PortInfo {
	info := mad.PortInfo{
		PortState: p.State, PortPhysicalState: mad.PortPhysStateLinkUp,
		LinkDownDefaultState: mad.LinkDownDefaultStatePolling,
		NeighborMTU:          p.MTU, MTUCap: p.MTU,
		VLCap: vlCap, OperationalVLs: vlCap,
		VLArbitrationHighCap: vlArbitrationCap, VLArbitrationLowCap: vlArbitrationCap,
		RespTimeValue: respTimeValue,
	}
	width, speed, linked := linkOf(p)
	if p.Num != 0 && p.Peer == nil { // port 0 of a switch needs no link
		info.PortState, info.PortPhysicalState = mad.PortStateDown, mad.PortPhysStatePolling
	}
	if !linked {
		info.MTUCap, info.NeighborMTU = mad.MTU4096, mad.MTU4096
	}
	info.LinkWidthSupported = mad.LinkWidth1X | width
	info.LinkWidthEnabled = info.LinkWidthSupported
	info.LinkWidthActive = width
	info.SetSpeedsUpTo(speed)
	info.SetSpeed(speed)
	if p.IsEnd() {
		info.GidPrefix = sub.GIDPrefix
		info.LID, info.LMC, info.MasterSMLID, info.MasterSMSL = p.LID, p.LMC, p.SMLID, p.SMSL
		info.CapabilityMask = capMask
		info.CapabilityMask2 = capMask2(width, speed)
		info.GUIDCap = guidCap
		info.SubnetTimeOut = sub.SubnetTimeOut
	}
	return info
}

// linkOf is how fast a port is: as its link, or without one as the default of a
// link.
func linkOf(p *topo.Port) (width mad.LinkWidth, speed mad.Speed, linked bool) {
	link := p.LinkPort()
	if link.Peer == nil {
		return mad.LinkWidth4X, mad.SpeedEDR, false
	}
	return link.Width, link.Speed, true
}

// capMask is what every end port can do.
const capMask = mad.CapIsNoticeSupported | mad.CapIsSLMappingSupported | mad.CapIsLEDInfoSupported |
	mad.CapIsSystemImageGUIDSupported | mad.CapIsExtendedSpeedsSupported | mad.CapIsCapabilityMask2Supported

func capMask2(width mad.LinkWidth, speed mad.Speed) mad.PortCapMask2 {
	mask := mad.Cap2IsPortInfoExtendedSupported
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

// Bits of the sets of FEC modes.
const (
	noFEC    = 1 << mad.FECNone
	fireCode = 1 << mad.FECFireCode
	rsFEC    = 1 << mad.FECRS
)

// portInfoExtended tells the forward error correction (FEC) of a port: none up to
// EDR, and RS from HDR on, whose four levels of signal need it. Port 0 of a
// switch has no signal.
func portInfoExtended(p *topo.Port) mad.PortInfoExtended {
	if p.Num == 0 {
		return mad.PortInfoExtended{}
	}
	_, speed, _ := linkOf(p)
	info := mad.PortInfoExtended{CapabilityMask: mad.ExtCapIsFECModeSupported}
	if speed >= mad.SpeedFDR {
		info.FDRFECModeSupported, info.FDRFECModeEnabled = noFEC|fireCode, noFEC|fireCode
	}
	if speed >= mad.SpeedEDR {
		info.EDRFECModeSupported, info.EDRFECModeEnabled = noFEC|rsFEC, noFEC|rsFEC
	}
	if speed >= mad.SpeedHDR {
		info.FECModeActive = mad.FECRS
		info.HDRFECModeSupported, info.HDRFECModeEnabled = rsFEC, rsFEC
	}
	if speed >= mad.SpeedNDR {
		info.NDRFECModeSupported, info.NDRFECModeEnabled = rsFEC, rsFEC
	}
	return info
}

// mlnxExtPortInfo tells of FDR10, which PortInfo shows as QDR. Every node has the
// attribute, whoever made it, as in ibsim: the model has no other place for it.
func mlnxExtPortInfo(p *topo.Port) (info mad.MlnxExtPortInfo) {
	if _, speed, _ := linkOf(p); speed >= mad.SpeedFDR10 {
		info.LinkSpeedSupported, info.LinkSpeedEnabled = mad.LinkSpeedMlnxFDR10, mad.LinkSpeedMlnxFDR10
		if speed == mad.SpeedFDR10 {
			info.LinkSpeedActive = mad.LinkSpeedMlnxFDR10
		}
	}
	return info
}
