package text_test

import (
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/text"
)

// What --decoded adds, and that it is all that it changes. The values are those
// of the enumerations of the IBA; times are 4.096 us * 2^n.
func TestDecoded(t *testing.T) {
	path := mad.PathRecord{
		FlowLabel: 0x12, HopLimit: 64, Reversible: true, NumbPath: 1, SL: 3, PKey: 0xffff, MTUSelector: mad.SelectorExactly,
		MTU: mad.MTU2048, RateSelector: mad.SelectorLessThan, Rate: mad.Rate100G, PacketLifeTimeSelector: mad.SelectorBest, PacketLifeTime: 18,
	}
	member := mad.MCMemberRecord{MTU: 63, MLID: 0xc001, Scope: mad.ScopeLinkLocal, JoinState: mad.JoinFullMember | mad.JoinSendOnlyFullMember, ProxyJoin: true}
	port := mad.PortInfo{
		CapabilityMask: mad.CapIsSM | mad.CapIsCableInfoSupported, PortState: mad.PortStateActive, HOQLife: 20, SubnetTimeOut: 19,
		CapabilityMask2: mad.Cap2IsLinkSpeedXDRSupported,
	}
	class := mad.ClassPortInfo{
		CapabilityMask:  uint16(mad.SACapIsUDMulticastSupported | 1<<7),
		CapabilityMask2: uint32(mad.SACap2IsQoSSupported), RespTimeValue: 16, RedirectTC: 0x20, RedirectSL: 3,
	}
	inform := mad.InformInfoRecord{InformInfo: mad.InformInfo{
		IsGeneric: 1, Type: mad.NoticeTypeAll, TrapNumber: mad.TrapGIDInService, ProducerType: mad.ProducerTypeAll,
	}}
	sw := mad.SwitchInfoRecord{SwitchInfo: mad.SwitchInfo{LifeTimeValue: 21, PortStateChange: true}}
	fec := mad.PortInfoExtended{CapabilityMask: mad.ExtCapIsFECModeSupported, FECModeActive: mad.FECRS}
	for _, c := range []struct {
		of   mad.Structure
		adds []string // ends of lines, in order
	}{
		{&path, []string{
			"hop_flow_raw............0x1240 (RawTraffic false, FlowLabel 0x12, HopLimit 64)",
			"num_path_revers.........0x81 (Reversible true, NumbPath 1)",
			"mtu.....................0x84 (= 2048)",
			"rate....................0x50 (< 100 Gb/s)",
			"pkt_life................0xD2 (Best 1.07s)",
		}},
		{&member, []string{
			"mtu.....................0x3f (> 63)",
			"rate....................0x0 (> none)",
			"pkt_life................0x0 (> 4.1µs)",
			"Scope...................0x2 (LinkLocal)",
			"JoinState...............0x9 (FullMember|SendOnlyFullMember)",
			"ProxyJoin...............0x0 (ProxyJoin true)",
		}},
		{&port, []string{
			"\t\t\t\tIsCableInfoSupported",
			"HoqLife:.........................20 (unlimited)",
			"SubnetTimeout:...................19 (2.15s)",
			"RespTimeVal:.....................0 (4.1µs)",
			"\t\t\t\tIsLinkSpeedXDRSupported",
		}},
		{&class, []string{
			"Capability mask..........0x0280 (IsUDMulticastSupported|0x80)",
			"Capability mask 2........0x00000002 (IsQoSSupported)",
			"Response time value......0x10 (268ms)",
			"Redirect TC/SL/FL........0x20300000 (RedirectTC 0x20, RedirectSL 3, RedirectFL 0x0)",
			"Trap TC/SL/FL............0x00000000 (TrapTC 0x0, TrapSL 0, TrapFL 0x0)",
			"Trap HL/QP...............0x00000000 (TrapHL 0, TrapQP 0x0)",
		}},
		{&inform, []string{
			"trap_type...............0xFFFF (All)",
			"trap_num................64 (GIDInService)",
			"resp_time_val...........0x0 (4.1µs)",
			"node_type...............0xFFFFFF (All)",
		}},
		{&sw, []string{
			"LifeTimeValue/PortStateChange/OpSL2VL...0xAC (LifeTimeValue unlimited, PortStateChange true, OptimizedSLtoVLMappingProgramming 0)",
			"flags...................................0x0 (InboundEnforcementCap false, OutboundEnforcementCap false, FilterRawInboundCap false, FilterRawOutboundCap false, EnhancedPort0 false)",
		}},
		{&mad.SMInfoRecord{SMInfo: mad.SMInfo{SMState: mad.SMStateMaster}}, []string{
			"SMState...............3 (Master)",
		}},
		{&fec, []string{
			"CapMask:.........................0x00000001 (IsFECModeSupported)",
			"FECModeActive:...................2 (RS)",
		}},
		{&mad.MlnxExtPortInfo{LinkSpeedActive: mad.LinkSpeedMlnxFDR10}, []string{
			"LinkSpeedActive:.................0x01 (FDR10)",
		}},
		{&mad.LinkRecord{FromLID: 1}, nil},
	} {
		name := c.of.Layout().Name
		plain := strings.Split(text.Dump(c.of, text.Options{}), "\n")
		var added []string
		for _, line := range strings.Split(text.Dump(c.of, text.Options{Decoded: true}), "\n") {
			if len(plain) > 0 && line == plain[0] {
				plain = plain[1:]
				continue
			}
			added = append(added, line)
			if len(plain) > 0 && strings.HasPrefix(line, plain[0]+" (") {
				plain = plain[1:]
			}
		}
		if len(plain) > 0 {
			t.Errorf("%s: decoded lacks %q", name, plain)
		}
		if len(added) != len(c.adds) {
			t.Errorf("%s: %d lines are other ones:\n%s", name, len(added), strings.Join(added, "\n"))
			continue
		}
		for i, want := range c.adds {
			if strings.TrimPrefix(added[i], "\t\t") != strings.TrimPrefix(want, "\t\t") {
				t.Errorf("%s:\ngot  %q\nwant %q", name, added[i], want)
			}
		}
	}
}
