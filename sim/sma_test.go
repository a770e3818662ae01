package sim

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/topo"
)

// dataOf gives the 64 bytes of data of an answer with status 0.
func dataOf(t *testing.T, w *wire) *[mad.SMPDataSize]byte {
	t.Helper()
	if s := status(w); s != mad.StatusOK {
		t.Fatalf("status %v", s)
	}
	return (*[mad.SMPDataSize]byte)(w.MAD[mad.OffSMPData:])
}

func TestNodeInfo(t *testing.T) {
	tests := []struct {
		route mad.Route
		want  mad.NodeInfo
	}{
		{mad.Route{0}, mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeTypeCA, NumPorts: 1,
			SystemImageGUID: 0x0200000100000100, NodeGUID: 0x0200000100000100, PortGUID: 0x0200000100000101,
			PartitionCap: 128, LocalPortNum: 1}},
		{mad.Route{0, 1}, mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeTypeSwitch, NumPorts: 12,
			SystemImageGUID: 0x0200000200000100, NodeGUID: 0x0200000200000100, PortGUID: 0x0200000200000100,
			PartitionCap: 128, LocalPortNum: 1}},
		{mad.Route{0, 1, 12}, mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeTypeSwitch, NumPorts: 12,
			SystemImageGUID: 0x0200000200000200, NodeGUID: 0x0200000200000200, PortGUID: 0x0200000200000200,
			PartitionCap: 128, LocalPortNum: 12}},
	}
	inBubble(t, Config{}, func(r *rig) {
		for _, tt := range tests {
			if got := nodeInfoOf(t, r.must("h1", byRoute(tt.route, mad.AttrNodeInfo, 0))); got != tt.want {
				t.Errorf("%s: got  %+v\nwant %+v", tt.route, got, tt.want)
			}
		}
	})
}

// capMask is that of every end port without an SM.
const capMask = mad.CapIsNoticeSupported | mad.CapIsSLMappingSupported | mad.CapIsLEDInfoSupported |
	mad.CapIsSystemImageGUIDSupported | mad.CapIsExtendedSpeedsSupported | mad.CapIsCapabilityMask2Supported

func TestPortInfo(t *testing.T) {
	// What end ports have and physical ports of switches have not.
	end := mad.PortInfo{
		GidPrefix: 0xfe80000000000000, MasterSMLID: 1, GUIDCap: 8, SubnetTimeOut: 18,
		CapabilityMask: capMask, CapabilityMask2: mad.Cap2IsPortInfoExtendedSupported,
	}
	common := func(p mad.PortInfo, localPort uint8, mtu mad.MTU, width mad.LinkWidth, speed mad.Speed) mad.PortInfo {
		p.LocalPortNum = localPort
		p.PortState, p.PortPhysicalState, p.LinkDownDefaultState = mad.PortStateActive, mad.PortPhysStateLinkUp, 2
		p.NeighborMTU, p.MTUCap, p.RespTimeValue = mtu, mtu, 16
		p.VLCap, p.OperationalVLs, p.VLArbitrationHighCap, p.VLArbitrationLowCap = mad.VLs0to7, mad.VLs0to7, 8, 8
		p.LinkWidthActive = width
		p.LinkWidthSupported, p.LinkWidthEnabled = width|mad.LinkWidth1X, width|mad.LinkWidth1X
		p.SetSpeed(speed)
		p.SetSpeedsUpTo(speed)
		p.LinkSpeedActive = mad.LinkSpeedQDR // no link of demo is slower
		return p
	}
	h8 := common(end, 1, mad.MTU4096, mad.LinkWidth4X, mad.SpeedHDR)
	h8.LID, h8.CapabilityMask2 = 8, h8.CapabilityMask2|mad.Cap2IsLinkSpeedHDRSupported
	extended := h8
	extended.LinkSpeedActive = 0
	s2p0 := common(end, 12, mad.MTU4096, mad.LinkWidth4X, mad.SpeedHDR) // as its fastest link
	s2p0.LID, s2p0.CapabilityMask2 = 10, s2p0.CapabilityMask2|mad.Cap2IsLinkSpeedHDRSupported
	s2p12 := common(mad.PortInfo{}, 12, mad.MTU2048, mad.LinkWidth4X, mad.SpeedQDR)
	s2p3 := common(mad.PortInfo{}, 12, mad.MTU4096, mad.LinkWidth1X, mad.SpeedEDR)
	s2p5 := common(mad.PortInfo{}, 12, mad.MTU4096, mad.LinkWidth4X, mad.SpeedEDR)
	s2p5.PortState, s2p5.PortPhysicalState = mad.PortStateDown, mad.PortPhysStatePolling
	tests := []struct {
		name     string
		route    mad.Route
		modifier uint32
		want     mad.PortInfo
	}{
		{"CA, port of the request", mad.Route{0, 1, 12, 4}, 0, h8},
		{"CA, port 1", mad.Route{0, 1, 12, 4}, 1, h8},
		{"CA, SM knows extended speeds", mad.Route{0, 1, 12, 4}, 1<<31 | 1, extended},
		{"switch port 0", mad.Route{0, 1, 12}, 0, s2p0},
		{"switch port 12", mad.Route{0, 1, 12}, 12, s2p12},
		{"switch port 3", mad.Route{0, 1, 12}, 3, s2p3},
		{"switch port without link", mad.Route{0, 1, 12}, 5, s2p5},
	}
	inBubble(t, Config{}, func(r *rig) {
		for _, tt := range tests {
			var got mad.PortInfo
			got.DecodeFrom(dataOf(t, r.must("h1", byRoute(tt.route, mad.AttrPortInfo, tt.modifier))))
			if got != tt.want {
				t.Errorf("%s: got  %+v\nwant %+v", tt.name, got, tt.want)
			}
		}
	})
}

func TestNewSpeeds(t *testing.T) {
	sub, err := topo.Parse("new.yaml", []byte(`
nodes: [{name: a, kind: ca}, {name: b, kind: ca}, {name: s, kind: switch}]
links:
- {ends: "a[1] - s[1]", speed: NDR}
- {ends: "b[1] - s[2]", speed: XDR, width: 2x}
`))
	if err != nil {
		t.Fatal(err)
	}
	inBubbleOf(t, sub, Config{}, func(r *rig) {
		for name, want := range map[string]struct {
			mask mad.PortCapMask2 // bits of IBA 14.2.5.6, CapabilityMask2
			rate mad.Rate
		}{
			"a": {1<<1 | 1<<5 | 1<<10, mad.Rate400G},
			"b": {1<<1 | 1<<4 | 1<<5 | 1<<10 | 1<<11 | 1<<12, mad.Rate400G},
		} {
			var info mad.PortInfo
			info.DecodeFrom(dataOf(t, r.must(name, byRoute(mad.Route{0}, mad.AttrPortInfo, 0))))
			if info.CapabilityMask2 != want.mask || info.Rate() != want.rate {
				t.Errorf("%s: CapabilityMask2 %v, rate %v, want %v, %v", name, info.CapabilityMask2, info.Rate(), want.mask, want.rate)
			}
		}
	})
}

func TestOtherAttributes(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		get := func(lid mad.LID, attribute mad.AttributeID, modifier uint32) *[mad.SMPDataSize]byte {
			t.Helper()
			return dataOf(t, r.must("h1", byLID(lid, attribute, modifier)))
		}
		var desc mad.NodeDescription
		desc.DecodeFrom(get(9, mad.AttrNodeDescription, 0))
		if desc.String() != "demo switch 1" {
			t.Errorf("NodeDescription %q", desc.String())
		}

		var sw mad.SwitchInfo
		sw.DecodeFrom((*[mad.SwitchInfoSize]byte)(get(10, mad.AttrSwitchInfo, 0)[:]))
		if sw.LinearFDBCap != 0xc000 || sw.LinearFDBTop != 10 || !sw.EnhancedPort0 {
			t.Errorf("SwitchInfo %+v", sw)
		}

		var guids mad.GUIDInfo
		guids.DecodeFrom(get(8, mad.AttrGUIDInfo, 0))
		if guids.GUID != [8]mad.GUID{0x0200000100000801} {
			t.Errorf("GUIDInfo %v", guids)
		}

		keys := func(lid mad.LID, modifier uint32) []mad.PKey {
			var table mad.PKeyTable
			table.DecodeFrom(get(lid, mad.AttrPKeyTable, modifier))
			return table.PKey[:3]
		}
		for _, tt := range []struct {
			lid      mad.LID
			modifier uint32
			want     []mad.PKey
		}{
			{5, 0, []mad.PKey{0xffff, 0x0001, 0}},
			{5, 3, []mad.PKey{0, 0, 0}},
			{5, 0x00070000, []mad.PKey{0xffff, 0x0001, 0}}, // the upper half is a switch's
			{9, 0, []mad.PKey{0xffff, 0, 0}},
			{9, 0x00010000, []mad.PKey{0, 0, 0}}, // a physical port enforces nothing
		} {
			if diff := cmp.Diff(tt.want, keys(tt.lid, tt.modifier)); diff != "" {
				t.Errorf("P_KeyTable of %s, modifier %#x (-want +got): %s", tt.lid, tt.modifier, diff)
			}
		}

		var lft mad.LinearForwardingTable
		lft.DecodeFrom(get(9, mad.AttrLinearForwardingTable, 0))
		want := []uint8{255, 1, 2, 3, 4, 11, 12, 11, 12, 0, 11, 255, 255}
		if diff := cmp.Diff(want, lft.Port[:13]); diff != "" {
			t.Errorf("LinearForwardingTable (-want +got): %s", diff)
		}
		lft.DecodeFrom(get(9, mad.AttrLinearForwardingTable, 767))
		if lft.Port[0] != 255 || lft.Port[63] != 255 {
			t.Errorf("last block %v", lft.Port)
		}
	})
}

// TestStatuses holds to IBA 13.4.7: 0x04 version, 0x08 method, 0x0c method and
// attribute, 0x1c field or modifier.
func TestStatuses(t *testing.T) {
	const ca, sw = 2, 9 // LIDs
	set := func(off int, v byte) func(*wire) { return func(w *wire) { w.MAD[off] = v } }
	tests := []struct {
		name      string
		lid       mad.LID
		attribute mad.AttributeID
		modifier  uint32
		change    func(*wire)
		want      mad.Status
	}{
		{"base version", ca, mad.AttrNodeInfo, 0, set(0, 2), 0x04},
		{"class version", ca, mad.AttrNodeInfo, 0, set(mad.OffClassVersion, 2), 0x04},
		{"method GetTable", ca, mad.AttrNodeInfo, 0, set(mad.OffMethod, 0x12), 0x08},
		{"method 0", ca, mad.AttrNodeInfo, 0, set(mad.OffMethod, 0), 0x08},
		{"Set NodeInfo", ca, mad.AttrNodeInfo, 0, set(mad.OffMethod, 0x02), 0x0c},
		{"Set PortInfo to LID 0", ca, mad.AttrPortInfo, 1, set(mad.OffMethod, 0x02), 0x1c},
		{"unknown attribute", ca, 0xff00, 0, nil, 0x0c},
		{"Set LedInfo", ca, mad.AttrLedInfo, 0, set(mad.OffMethod, 0x02), 0x0c},
		{"SwitchInfo of a CA", ca, mad.AttrSwitchInfo, 0, nil, 0x0c},
		{"LinearForwardingTable of a CA", ca, mad.AttrLinearForwardingTable, 0, nil, 0x0c},
		{"MulticastForwardingTable of a CA", ca, mad.AttrMulticastForwardingTable, 0, nil, 0x0c},
		{"RandomForwardingTable, RandomFDBCap is 0", sw, mad.AttrRandomForwardingTable, 0, nil, 0x0c},
		{"SMInfo where no SM is", ca, mad.AttrSMInfo, 0, nil, 0x0c},
		{"PortInfo 2 of 1", ca, mad.AttrPortInfo, 2, nil, 0x1c},
		{"PortInfo 13 of 12", sw, mad.AttrPortInfo, 13, nil, 0x1c},
		{"PortInfo 256", sw, mad.AttrPortInfo, 256, nil, 0x1c},
		{"GUIDInfo block 1", ca, mad.AttrGUIDInfo, 1, nil, 0x1c},
		{"P_KeyTable block 4", ca, mad.AttrPKeyTable, 4, nil, 0x1c},
		{"P_KeyTable block 1 of a physical port", sw, mad.AttrPKeyTable, 0x00010001, nil, 0x1c},
		{"P_KeyTable of port 13", sw, mad.AttrPKeyTable, 0x000d0000, nil, 0x1c},
		{"SLtoVLMappingTable to port 13", sw, mad.AttrSLtoVLMappingTable, 0x010d, nil, 0x1c},
		{"SLtoVLMappingTable from port 13", sw, mad.AttrSLtoVLMappingTable, 0x0d01, nil, 0x1c},
		{"SLtoVLMappingTable of all ports at once", sw, mad.AttrSLtoVLMappingTable, 0x00010101, nil, 0x1c},
		{"VLArbitrationTable block 0", ca, mad.AttrVLArbitrationTable, 1, nil, 0x1c},
		{"VLArbitrationTable block 5", ca, mad.AttrVLArbitrationTable, 0x00050001, nil, 0x1c},
		{"VLArbitrationTable of port 13", sw, mad.AttrVLArbitrationTable, 0x0001000d, nil, 0x1c},
		{"MulticastForwardingTable block 128", sw, mad.AttrMulticastForwardingTable, 128, nil, 0x1c},
		{"MulticastForwardingTable position of port 16", sw, mad.AttrMulticastForwardingTable, 1 << 28, nil, 0x1c},
		{"VendorDiag beyond the end", ca, mad.AttrVendorDiag, 1, nil, 0x1c},
		{"LedInfo of port 13", sw, mad.AttrLedInfo, 13, nil, 0x1c},
		{"PortInfoExtended of port 2", ca, mad.AttrPortInfoExtended, 2, nil, 0x1c},
		{"MlnxExtPortInfo of port 13", sw, mad.AttrMlnxExtPortInfo, 13, nil, 0x1c},
		{"LinearForwardingTable block 768", sw, mad.AttrLinearForwardingTable, 768, nil, 0x1c},
	}
	inBubble(t, Config{}, func(r *rig) {
		for _, tt := range tests {
			w := byLID(tt.lid, tt.attribute, tt.modifier)
			if tt.change != nil {
				tt.change(&w)
			}
			got := r.must("h1", w)
			if status(got) != tt.want || got.MAD[mad.OffMethod] != 0x81 {
				t.Errorf("%s: status %#x method %#x, want %#x", tt.name, uint16(status(got)), got.MAD[mad.OffMethod], uint16(tt.want))
			}
		}
		w := byRoute(mad.Route{0, 1}, 0xff00, 0)
		if got := r.must("h1", w); binary.BigEndian.Uint16(got.MAD[mad.OffStatus:]) != 0x800c {
			t.Errorf("directed: status % x, want the D bit and 0x0c", got.MAD[mad.OffStatus:mad.OffStatus+2])
		}
	})
}

// TestNotice: a switch keeps the last change of a link, as in trap 128 of IBA
// 14.2.5.1.
func TestNotice(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		notice := func(lid mad.LID) (n mad.SMPNotice) {
			t.Helper()
			n.DecodeFrom(dataOf(t, r.must("h1", byLID(lid, mad.AttrNotice, 0))))
			return n
		}
		empty := mad.SMPNotice{Type: mad.NoticeTypeEmpty}
		changed := mad.SMPNotice{IsGeneric: true, Type: mad.NoticeTypeUrgent, ProducerType: mad.ProducerTypeSwitch,
			TrapNumber: 128, IssuerLID: 10, NoticeCount: 1}
		changed.DataDetails[1] = 10 // LIDADDR
		steps := []struct {
			name   string
			do     func() error
			s2, h8 mad.SMPNotice
			toggle bool
		}{
			{"at first", func() error { return nil }, empty, empty, false},
			{"cut", func() error { return r.fab.Cut(r.port("h7")) }, changed, empty, true},
			{"cut again", func() error { return r.fab.Cut(r.port("h7")) }, changed, empty, true},
			{"restored", func() error { return r.fab.Restore(r.port("h7")) }, changed, empty, false},
			{"pulled out", func() error { return r.fab.Remove(r.port("h7").Node, 1) }, changed, empty, true},
		}
		for _, step := range steps {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			step.s2.NoticeToggle = step.toggle
			if got := notice(10); got != step.s2 {
				t.Errorf("%s: s2 says %+v, want %+v", step.name, got, step.s2)
			}
			if got := notice(8); got != step.h8 {
				t.Errorf("%s: h8 says %+v", step.name, got)
			}
		}
		if got := notice(9); got != empty {
			t.Errorf("s1 says %+v, its links did not change", got)
		}
	})
}

func TestIsSM(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		capMask := func(lid mad.LID) mad.PortCapMask {
			var info mad.PortInfo
			info.DecodeFrom(dataOf(t, r.must("h3", byLID(lid, mad.AttrPortInfo, 0))))
			return info.CapabilityMask
		}
		sm := r.open("h1").Link.(*link)
		if err := sm.SetIsSM(true); err != nil {
			t.Fatal(err)
		}
		info, err := sm.Info()
		if err != nil || info.CapMask&2 == 0 || capMask(1)&mad.CapIsSM == 0 || capMask(2)&mad.CapIsSM != 0 {
			t.Errorf("IsSM is not set: %#x, h1 %v, h2 %v", info.CapMask, capMask(1), capMask(2))
		}
		var smInfo mad.SMInfo
		smInfo.DecodeFrom((*[mad.SMInfoSize]byte)(dataOf(t, r.must("h3", byLID(1, mad.AttrSMInfo, 0)))[:]))
		if smInfo.GUID != r.port("h1").GUID || smInfo.SMState != mad.SMStateMaster || smInfo.ActCount == 0 {
			t.Errorf("SMInfo %+v", smInfo)
		}
		if err := sm.SetIsSM(false); err != nil {
			t.Fatal(err)
		}
		if capMask(1)&mad.CapIsSM != 0 {
			t.Error("IsSM is still set")
		}

		// At another port the program that holds IsSM answers for itself.
		other := r.open("h2")
		if err := other.Link.(*link).SetIsSM(true); err != nil {
			t.Fatal(err)
		}
		r.send("h3", byLID(2, mad.AttrSMInfo, 0))
		if len(other.got()) != 1 || other.got()[0].Addr.LID != 3 || other.got()[0].Addr.QPN != 0 {
			t.Errorf("h2 got %+v", other.got())
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if capMask(2)&mad.CapIsSM != 0 {
			t.Error("IsSM stays set after Close")
		}
	})
}

// TestForTheSM: traps and answers go to the reader of the port.
func TestForTheSM(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		sm := r.open("h1")
		for _, method := range []byte{byte(mad.MethodTrap), byte(mad.MethodGetResp)} {
			w := byLID(1, 0x0002, 0)
			w.MAD[mad.OffMethod] = method
			sm.reset()
			r.send("h5", w)
			if len(sm.got()) != 1 || sm.got()[0].MAD != w.MAD {
				t.Errorf("method %#x: got %d", method, len(sm.got()))
			}
		}
		returning := byRoute(mad.Route{0}, mad.AttrNodeInfo, 0) // a Get with the D bit
		returning.MAD[mad.OffStatus], returning.MAD[offHopPointer] = 0x80, 1
		sm.reset()
		if r.send("h1", returning); len(sm.got()) != 1 || sm.got()[0].MAD[mad.OffMethod] != byte(mad.MethodGet) {
			t.Errorf("returning Get: got %d", len(sm.got()))
		}
	})
}

func TestInfo(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		got, err := r.open("h7").Info()
		if err != nil {
			t.Fatal(err)
		}
		want := port.Info{
			Device: "h7", Port: 1, LinkLayer: port.LinkInfiniBand, NodeType: mad.NodeTypeCA,
			NodeGUID: 0x0200000100000700, PortGUID: 0x0200000100000701, NodeDesc: "h7",
			State: mad.PortStateActive, PhysState: mad.PortPhysStateLinkUp, LID: 7, SMLID: 1,
			CapMask: capMask, Width: mad.LinkWidth1X, Rate: mad.Rate25G,
			GIDs: []mad.GID{mad.MakeGID(0xfe80000000000000, 0x0200000100000701)}, PKeys: []mad.PKey{0xffff},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("info (-want +got): %s", diff)
		}
	})
}
