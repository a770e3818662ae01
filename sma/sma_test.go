package sma

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

const fabricYAML = `
nodes:
  - {name: sdr, kind: ca}
  - {name: fdr10, kind: ca}
  - {name: fdr, kind: ca}
  - {name: edr, kind: ca}
  - {name: hdr, kind: ca}
  - {name: ndr, kind: ca}
  - {name: s, kind: switch, ports: 20}
links:
  - {ends: "sdr[1] - s[1]", speed: SDR}
  - {ends: "fdr10[1] - s[2]", speed: FDR10}
  - {ends: "fdr[1] - s[3]", speed: FDR}
  - {ends: "edr[1] - s[4]", speed: EDR}
  - {ends: "hdr[1] - s[5]", speed: HDR}
  - {ends: "ndr[1] - s[6]", speed: NDR}
`

func fabric(t testing.TB) *topo.Subnet {
	t.Helper()
	sub, err := topo.Parse("fabric.yaml", []byte(fabricYAML))
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.BringUp(); err != nil {
		t.Fatal(err)
	}
	return sub
}

// agentOf is the agent of a node's first end port.
func agentOf(t testing.TB, sub *topo.Subnet, name string) *Agent {
	t.Helper()
	p, ok := sub.PortByName(name)
	if !ok {
		t.Fatalf("no port %s", name)
	}
	return &Agent{Subnet: sub, State: AsModelled{sub}, End: p, In: p.Num}
}

func get(t *testing.T, a *Agent, attribute mad.AttributeID, modifier uint32) *[mad.SMPDataSize]byte {
	t.Helper()
	data := [mad.SMPDataSize]byte{63: 0xaa}
	if status := a.Get(attribute, modifier, &data); status != mad.StatusOK {
		t.Fatalf("attribute %#x, modifier %#x of %s: %v", uint16(attribute), modifier, a.End, status)
	}
	return &data
}

// What OpenSM sets by default for ports of eight lanes (osm_base.h,
// OSM_DEFAULT_QOS_SL2VL; osm_qos.c takes the lanes modulo eight).
func TestServiceLevels(t *testing.T) {
	sub := fabric(t)
	want := [mad.SMPDataSize]byte{0x01, 0x23, 0x45, 0x67, 0x01, 0x23, 0x45, 0x67}
	for _, modifier := range []uint32{0, 0x0100, 0x1400, 0x0014, 0x1414} {
		if got := get(t, agentOf(t, sub, "s"), mad.AttrSLtoVLMappingTable, modifier); *got != want {
			t.Errorf("modifier %#x: % x", modifier, *got)
		}
	}
	// A CA has one table, and does not look at the modifier.
	if got := get(t, agentOf(t, sub, "edr"), mad.AttrSLtoVLMappingTable, 0x7777); *got != want {
		t.Errorf("CA: % x", *got)
	}
}

// The tables are the first entries of OpenSM's defaults (osm_base.h,
// OSM_DEFAULT_QOS_VLARB_HIGH and _LOW).
func TestVLArbitration(t *testing.T) {
	sub := fabric(t)
	tests := map[uint32]string{
		1: "0:0,1:4,2:4,3:4,4:4,5:4,6:4,7:4",
		2: "",
		3: "0:4,1:0,2:0,3:0,4:0,5:0,6:0,7:0",
		4: "",
	}
	for block, want := range tests {
		for _, a := range []*Agent{agentOf(t, sub, "s"), agentOf(t, sub, "hdr")} {
			var table mad.VLArbitrationTable
			table.DecodeFrom(get(t, a, mad.AttrVLArbitrationTable, block<<16|3))
			var used []string
			rest := table.VLWeight[:]
			for want != "" && len(used) < 8 {
				used = append(used, fmt.Sprintf("%d:%d", rest[0].VL, rest[0].Weight))
				rest = rest[1:]
			}
			if got := strings.Join(used, ","); got != want {
				t.Errorf("block %d of %s: %s, want %s", block, a.End, got, want)
			}
			for _, entry := range rest {
				if entry != (mad.VLWeight{}) {
					t.Errorf("block %d of %s: %+v behind the end", block, a.End, entry)
				}
			}
		}
	}
}

func TestSpeedsOfLinks(t *testing.T) {
	const no, fire, rs = 1, 2, 4 // bits of a set of FEC modes
	tests := []struct {
		port   string
		active mad.LinkSpeed // to an SM that does not know extended speeds
		ext    mad.LinkSpeedExt
		fec    mad.PortInfoExtended
		mlnx   mad.MlnxExtPortInfo
	}{
		{"sdr", mad.LinkSpeedSDR, 0, mad.PortInfoExtended{}, mad.MlnxExtPortInfo{}},
		{"fdr10", mad.LinkSpeedQDR, 0, mad.PortInfoExtended{}, mad.MlnxExtPortInfo{LinkSpeedSupported: 1, LinkSpeedEnabled: 1, LinkSpeedActive: 1}},
		{"fdr", mad.LinkSpeedQDR, 1, mad.PortInfoExtended{FDRFECModeSupported: no | fire}, mad.MlnxExtPortInfo{LinkSpeedSupported: 1, LinkSpeedEnabled: 1}},
		{"edr", mad.LinkSpeedQDR, 2, mad.PortInfoExtended{FDRFECModeSupported: no | fire, EDRFECModeSupported: no | rs},
			mad.MlnxExtPortInfo{LinkSpeedSupported: 1, LinkSpeedEnabled: 1}},
		{"ndr", mad.LinkSpeedQDR, 8, mad.PortInfoExtended{FECModeActive: mad.FECRS,
			FDRFECModeSupported: no | fire, EDRFECModeSupported: no | rs, HDRFECModeSupported: rs, NDRFECModeSupported: rs},
			mad.MlnxExtPortInfo{LinkSpeedSupported: 1, LinkSpeedEnabled: 1}},
	}
	sub := fabric(t)
	for _, tt := range tests {
		a := agentOf(t, sub, tt.port)
		both := map[*Agent]uint32{a: 1, agentOf(t, sub, "s"): uint32(a.End.Peer.Num)}
		for a, port := range both {
			var info, extended mad.PortInfo
			info.DecodeFrom(get(t, a, mad.AttrPortInfo, port))
			extended.DecodeFrom(get(t, a, mad.AttrPortInfo, 1<<31|port))
			plain := tt.active
			if tt.ext != 0 {
				plain = 0
			}
			if info.LinkSpeedActive != tt.active || info.LinkSpeedExtActive != tt.ext || extended.LinkSpeedActive != plain || extended.LinkSpeedExtActive != tt.ext {
				t.Errorf("%s at %s: %v, %v; with extended speeds %v, %v", tt.port, a.End,
					info.LinkSpeedActive, info.LinkSpeedExtActive, extended.LinkSpeedActive, extended.LinkSpeedExtActive)
			}
			fec := tt.fec
			fec.CapabilityMask = mad.ExtCapIsFECModeSupported
			fec.FDRFECModeEnabled, fec.EDRFECModeEnabled = fec.FDRFECModeSupported, fec.EDRFECModeSupported
			fec.HDRFECModeEnabled, fec.NDRFECModeEnabled = fec.HDRFECModeSupported, fec.NDRFECModeSupported
			var gotFEC mad.PortInfoExtended
			gotFEC.DecodeFrom(get(t, a, mad.AttrPortInfoExtended, port))
			if gotFEC != fec {
				t.Errorf("%s at %s: got  %+v\nwant %+v", tt.port, a.End, gotFEC, fec)
			}
			var gotMlnx mad.MlnxExtPortInfo
			gotMlnx.DecodeFrom(get(t, a, mad.AttrMlnxExtPortInfo, port))
			if gotMlnx != tt.mlnx {
				t.Errorf("%s at %s: got  %+v\nwant %+v", tt.port, a.End, gotMlnx, tt.mlnx)
			}
		}
	}
}

// Attributes that hold nothing on such a subnet.
func TestEmptyAttributes(t *testing.T) {
	sub := fabric(t)
	tests := []struct {
		port      string
		attribute mad.AttributeID
		modifier  uint32
		want      [mad.SMPDataSize]byte
	}{
		{"s", mad.AttrMulticastForwardingTable, 0, [mad.SMPDataSize]byte{}},
		{"s", mad.AttrMulticastForwardingTable, 1<<28 | 127, [mad.SMPDataSize]byte{}}, // ports 16 to 31
		{"edr", mad.AttrVendorDiag, 0, [mad.SMPDataSize]byte{}},
		{"edr", mad.AttrLedInfo, 0, [mad.SMPDataSize]byte{}},
		{"s", mad.AttrLedInfo, 20, [mad.SMPDataSize]byte{}},
		{"s", mad.AttrPortInfoExtended, 0, [mad.SMPDataSize]byte{}},
		{"edr", mad.AttrNotice, 0, [mad.SMPDataSize]byte{0x7f}}, // IBA 13.4.8.2: an empty notice
	}
	for _, tt := range tests {
		if got := get(t, agentOf(t, sub, tt.port), tt.attribute, tt.modifier); *got != tt.want {
			t.Errorf("attribute %#x, modifier %#x of %s: % x", uint16(tt.attribute), tt.modifier, tt.port, *got)
		}
	}
}

// A forwarding table shows NoRoute where its LIDs end.
func TestLinearTable(t *testing.T) {
	sub := fabric(t)
	a := agentOf(t, sub, "s")
	var got mad.LinearForwardingTable
	got.DecodeFrom(get(t, a, mad.AttrLinearForwardingTable, 0))
	want := append([]uint8{255, 1, 2, 3, 4, 5, 6, 0}, bytes.Repeat([]byte{255}, 56)...)
	if diff := cmp.Diff(want, got.Port[:]); diff != "" {
		t.Errorf("block 0 (-want +got): %s", diff)
	}
	got.DecodeFrom(get(t, a, mad.AttrLinearForwardingTable, 767))
	if diff := cmp.Diff(bytes.Repeat([]byte{255}, 64), got.Port[:]); diff != "" {
		t.Errorf("last block (-want +got): %s", diff)
	}
}

// FuzzGet: whatever is asked for, an agent answers without a panic, and with a
// status only if it has nothing to tell.
func FuzzGet(f *testing.F) {
	sub := fabric(f)
	for _, attribute := range []mad.AttributeID{mad.AttrNotice, mad.AttrNodeInfo, mad.AttrSwitchInfo, mad.AttrGUIDInfo, mad.AttrPortInfo,
		mad.AttrPKeyTable, mad.AttrSLtoVLMappingTable, mad.AttrVLArbitrationTable, mad.AttrLinearForwardingTable,
		mad.AttrRandomForwardingTable, mad.AttrMulticastForwardingTable, mad.AttrSMInfo, mad.AttrVendorDiag, mad.AttrLedInfo,
		mad.AttrPortInfoExtended, mad.AttrMlnxExtPortInfo} {
		for _, modifier := range []uint32{0, 1, 20, 21, 0x7f, 0x2ff, 0x300, 1 << 16, 4 << 16, 5 << 16, 1 << 28, 1 << 31, 1<<31 | 20, 1<<32 - 1} {
			f.Add(uint16(attribute), modifier, true)
			f.Add(uint16(attribute), modifier, false)
		}
	}
	sw, ca := agentOf(f, sub, "s"), agentOf(f, sub, "sdr")
	f.Fuzz(func(t *testing.T, attribute uint16, modifier uint32, ofSwitch bool) {
		a := ca
		if ofSwitch {
			a = sw
		}
		data := [mad.SMPDataSize]byte{}
		for i := range data {
			data[i] = byte(i)
		}
		before := data
		switch status := a.Get(mad.AttributeID(attribute), modifier, &data); status {
		case mad.StatusOK:
			if data == before {
				t.Error("no answer, but status ok")
			}
		case mad.StatusBadAttribute, mad.StatusBadField:
			if data != before {
				t.Errorf("%v has changed the data", status)
			}
		default:
			t.Errorf("status %v", status)
		}
	})
}

// kept is a Writer that keeps what is written beside the model.
type kept struct {
	AsModelled
	info map[*topo.Port]mad.PortInfo
	keys map[*topo.Port][]mad.PKey
}

func (k kept) PortInfo(p *topo.Port) mad.PortInfo {
	if info, ok := k.info[p]; ok {
		return info
	}
	return k.AsModelled.PortInfo(p)
}

func (k kept) PKeys(p *topo.Port) []mad.PKey {
	if keys, ok := k.keys[p]; ok {
		return keys
	}
	return k.AsModelled.PKeys(p)
}

func (k kept) WritePortInfo(p *topo.Port, info mad.PortInfo, _ mad.PortPhysState) { k.info[p] = info }

func (k kept) WritePKeys(p *topo.Port, first int, keys []mad.PKey) {
	k.keys[p] = append(make([]mad.PKey, first), keys...)
}

// FuzzSet: whatever is set, an agent does it or says why not, and then has changed
// nothing; and what it has done it can be asked for.
func FuzzSet(f *testing.F) {
	sub := fabric(f)
	for _, name := range []string{"s", "sdr"} {
		info := agentOf(f, sub, name).PortInfo(agentOf(f, sub, name).End)
		info.PortState, info.PortPhysicalState = mad.PortStateNoChange, mad.PortPhysStateNoChange
		data, _ := info.AppendBinary(nil)
		f.Add(uint16(mad.AttrPortInfo), uint32(0), name == "s", data)
		f.Add(uint16(mad.AttrPortInfo), uint32(1<<31|3), name == "s", data)
		f.Add(uint16(mad.AttrPKeyTable), uint32(1), name == "s", data)
		f.Add(uint16(mad.AttrPKeyTable), uint32(3<<16), name == "s", data)
		f.Add(uint16(mad.AttrSwitchInfo), uint32(0), name == "s", data)
	}
	f.Fuzz(func(t *testing.T, attribute uint16, modifier uint32, ofSwitch bool, b []byte) {
		k := kept{AsModelled{sub}, map[*topo.Port]mad.PortInfo{}, map[*topo.Port][]mad.PKey{}}
		a := agentOf(t, sub, "sdr")
		if ofSwitch {
			a = agentOf(t, sub, "s")
		}
		a.State = k
		var data, again [mad.SMPDataSize]byte
		copy(data[:], b)
		before := data
		switch status := a.Set(k, mad.AttributeID(attribute), modifier, &data); status {
		case mad.StatusOK:
			var answer, now mad.PortInfo
			answer.DecodeFrom(&data)
			a.MKey = answer.MKey
			if status := a.Get(mad.AttributeID(attribute), modifier, &again); status != mad.StatusOK {
				t.Fatalf("set, but Get gives %v", status)
			}
			now.DecodeFrom(&again)
			now.ClientReregister = answer.ClientReregister
			if mad.AttributeID(attribute) == mad.AttrPortInfo && now != answer || mad.AttributeID(attribute) == mad.AttrPKeyTable && data != again {
				t.Errorf("answer %x, then %x", data, again)
			}
		case mad.StatusBadAttribute, mad.StatusBadField:
			if data != before || len(k.info)+len(k.keys) != 0 {
				t.Errorf("%v has changed something", status)
			}
		default:
			t.Errorf("status %v", status)
		}
	})
}
