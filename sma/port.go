package sma

import (
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// PortInfo describes a port of the node, to those that know extended speeds.
// Physical ports of a switch have nothing that belongs to a LID (IBA 14.2.5.6).
func (a *Agent) PortInfo(p *topo.Port) mad.PortInfo {
	state, phys := a.linkState(p)
	info := mad.PortInfo{
		LocalPortNum: a.In, PortState: state, PortPhysicalState: phys,
		LinkDownDefaultState: mad.LinkDownDefaultStatePolling,
		NeighborMTU:          p.MTU, MTUCap: p.MTU,
		VLCap: vlCap, OperationalVLs: vlCap,
		VLArbitrationHighCap: vlArbitrationCap, VLArbitrationLowCap: vlArbitrationCap,
		RespTimeValue: respTimeValue,
	}
	width, speed, linked := linkOf(p)
	if !linked {
		info.MTUCap, info.NeighborMTU = mad.MTU4096, mad.MTU4096
	}
	info.LinkWidthSupported = mad.LinkWidth1X | width
	info.LinkWidthEnabled = info.LinkWidthSupported
	info.LinkWidthActive = width
	info.SetSpeedsUpTo(speed)
	info.SetSpeed(speed)
	if p.IsEnd() {
		info.GidPrefix = a.Subnet.GIDPrefix
		info.LID, info.LMC, info.MasterSMLID, info.MasterSMSL = p.LID, p.LMC, p.SMLID, p.SMSL
		info.CapabilityMask = a.capMask(p)
		info.CapabilityMask2 = capMask2(width, speed)
		info.GUIDCap = guidCap
		info.SubnetTimeOut = a.Subnet.SubnetTimeOut
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

// linkState is Down without a working link, but port 0 of a switch has none.
func (a *Agent) linkState(p *topo.Port) (mad.PortState, mad.PortPhysState) {
	if p.Num != 0 && (p.Peer == nil || !a.State.LinkUp(p)) {
		return mad.PortStateDown, mad.PortPhysStatePolling
	}
	return p.State, mad.PortPhysStateLinkUp
}

func (a *Agent) capMask(p *topo.Port) mad.PortCapMask {
	mask := mad.CapIsNoticeSupported | mad.CapIsSLMappingSupported | mad.CapIsLEDInfoSupported |
		mad.CapIsSystemImageGUIDSupported | mad.CapIsExtendedSpeedsSupported | mad.CapIsCapabilityMask2Supported
	if a.State.IsSM(p) {
		mask |= mad.CapIsSM
	}
	return mask
}

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
