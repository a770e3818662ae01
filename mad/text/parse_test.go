package text_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

func TestSetThenGet(t *testing.T) {
	for _, c := range []struct {
		of          *layout.Struct
		name, value string
		path        string // found
		want        any    // by Get
	}{
		{layout.PathRecord, "NumbPath", "4", "NumbPath", uint64(4)},
		{layout.PathRecord, "numbpath", "0x7f", "NumbPath", uint64(127)},
		{layout.PathRecord, "numb_path", "010", "NumbPath", uint64(10)}, // decimal
		{layout.PathRecord, "rate", "2.5", "Rate", "2.5 Gb/s"},
		{layout.PathRecord, "rate", "1200G", "Rate", "1200 Gb/s"},
		{layout.PathRecord, "mtu", "0x4", "MTU", "2048"},
		{layout.PathRecord, "pkt_life", "0x12", "PacketLifeTime", uint64(18)},
		{layout.PathRecord, "RateSelector", "ex", "RateSelector", "Exactly"},
		{layout.PathRecord, "Reversible", "0x1", "Reversible", true},
		{layout.ClassPortInfo, "Redirect QP", "0x00000001", "RedirectQP", uint64(1)},
		{layout.NodeRecord, "NodeType", "sw", "NodeInfo.NodeType", "Switch"},
		{layout.NodeRecord, "node_type", "S", "NodeInfo.NodeType", "Switch"},
		{layout.NodeRecord, "NodeType", "channel", "NodeInfo.NodeType", "Channel Adapter"},
		{layout.NodeRecord, "NodeType", "ADAPTER", "NodeInfo.NodeType", "Channel Adapter"},
		{layout.PortInfo, "PortState", "act", "PortState", "Active"},
		{layout.PortInfo, "PhysLinkState", "linke", "PortPhysicalState", "LinkErrorRecovery"},
		{layout.PortInfo, "LinkSpeedExtEnabled", "14|HD", "LinkSpeedExtEnabled", "25.78125 Gbps or 53.125 Gbps or 106.25 Gbps"}, // 14 is a number
		{layout.PortInfo, "LinkSpeedExtEnabled", "14.06|HD", "LinkSpeedExtEnabled", "14.0625 Gbps or 53.125 Gbps"},
		{layout.PathRecord, "P_Key", "0x8001", "P_Key", uint64(0x8001)},
		{layout.PathRecord, "PKey", "0x8001", "P_Key", uint64(0x8001)},
		{layout.PathRecord, "MTU", "4096", "MTU", "4096"},
		{layout.PathRecord, "MTU", "5", "MTU", "4096"},
		{layout.PathRecord, "rate", "100 Gb/s", "Rate", "100 Gb/s"},
		{layout.PathRecord, "rate", "100G", "Rate", "100 Gb/s"},
		{layout.PathRecord, "rate", "100 gb/sec", "Rate", "100 Gb/s"},
		{layout.PathRecord, "rate", "2.5Gbps", "Rate", "2.5 Gb/s"},
		{layout.PathRecord, "rate", "16", "Rate", "100 Gb/s"},
		{layout.PathRecord, "rate", "63", "Rate", uint64(63)},
		{layout.PathRecord, "RateSelector", ">", "RateSelector", "GreaterThan"},
		{layout.PathRecord, "pkt_life", "18", "PacketLifeTime", uint64(18)},
		{layout.PathRecord, "Reversible", "1", "Reversible", true},
		{layout.PathRecord, "reversible", "no", "Reversible", false},
		{layout.PathRecord, "DGID", "fe80::2:c903:0:1234", "DGID", "fe80::2:c903:0:1234"},
		{layout.PathRecord, "DGID", "::", "DGID", "::"},
		{layout.PathRecord, "DGID", "::ffff:10.0.0.1", "DGID", "::ffff:10.0.0.1"},
		{layout.PathRecord, "service_id", "0x1000000000000001", "ServiceID", "0x1000000000000001"},
		{layout.NodeRecord, "NodeInfo.NodeGUID", "0x0002c90300001234", "NodeInfo.NodeGUID", "0x0002c90300001234"},
		{layout.NodeRecord, "NodeGUID", "0x0002c90300001234", "NodeInfo.NodeGUID", "0x0002c90300001234"},
		{layout.NodeRecord, "node_guid", "0x0002c90300001234", "NodeInfo.NodeGUID", "0x0002c90300001234"},
		{layout.NodeRecord, "sys_guid", "1", "NodeInfo.SystemImageGUID", "0x0000000000000001"},
		{layout.NodeRecord, "SystemGuid", "1", "NodeInfo.SystemImageGUID", "0x0000000000000001"},
		{layout.NodeRecord, "NodeType", "ca", "NodeInfo.NodeType", "Channel Adapter"},
		{layout.NodeRecord, "port_num", "1", "NodeInfo.LocalPortNum", uint64(1)},
		{layout.NodeRecord, "LID", "0xbfff", "LID", uint64(0xbfff)},
		{layout.NodeRecord, "NodeDescription", "h1 HCA-1", "NodeDescription.NodeString", "h1 HCA-1"},
		{layout.NodeRecord, "nodestring", "", "NodeDescription.NodeString", ""},
		{layout.PortInfo, "PortState", "Active", "PortState", "Active"},
		{layout.PortInfo, "LinkState", "init", "PortState", "Initialize"},
		{layout.PortInfo, "PhysLinkState", "polling", "PortPhysicalState", "Polling"},
		{layout.PortInfo, "LinkWidthActive", "4x", "LinkWidthActive", "4X"},
		{layout.PortInfo, "LinkWidthEnabled", "1X or 4X", "LinkWidthEnabled", "1X or 4X"},
		{layout.PortInfo, "LinkWidthEnabled", "1x|12X", "LinkWidthEnabled", "1X or 12X"},
		{layout.PortInfo, "LinkWidthEnabled", "255", "LinkWidthEnabled", "1X or 4X or 8X or 12X or 2X or 0xe0"},
		{layout.PortInfo, "LinkSpeedEnabled", "SDR,QDR", "LinkSpeedEnabled", "2.5 Gbps or 10.0 Gbps"},
		{layout.PortInfo, "LinkSpeedActive", "10 Gbps", "LinkSpeedActive", "10.0 Gbps"},
		{layout.PortInfo, "LinkSpeedExtEnabled", "FDR|EDR|HDR|NDR", "LinkSpeedExtEnabled", "14.0625 Gbps or 25.78125 Gbps or 53.125 Gbps or 106.25 Gbps"},
		{layout.PortInfo, "CapMask", "IsSM|issmdisabled|0x1", "CapabilityMask", "IsSM|IsSMdisabled|0x1"},
		{layout.PortInfo, "OperVLs", "VL0-7", "OperationalVLs", "VL0-7"},
		{layout.GUIDInfo, "GUID3", "7", "GUID[3]", "0x0000000000000007"},
		{layout.PKeyTable, "P_Key[31]", "0x7fff", "P_Key[31]", uint64(0x7fff)},
		{layout.SLtoVLMappingTable, "SLtoVL[15]", "7", "SLtoVL[15]", uint64(7)},
		{layout.VLArbitrationTable, "VLWeight[1].Weight", "64", "VLWeight[1].Weight", uint64(64)},
		{layout.MCMemberRecord, "JoinState", "FullMember|SendOnlyFullMember", "JoinState", "FullMember|SendOnlyFullMember"},
		{layout.MCMemberRecord, "Scope", "linklocal", "Scope", "LinkLocal"},
		{layout.InformInfo, "TrapNumber", "GIDInService", "TrapNumber", "GIDInService"},
		{layout.InformInfo, "TrapNumber", "0xffff", "TrapNumber", "All"},
		{layout.ServiceRecord, "ServiceData64.2", "1", "ServiceData64[1]", "0x0000000000000001"},
	} {
		t.Run(c.of.Name+"/"+c.name+"="+c.value, func(t *testing.T) {
			for _, fill := range []byte{0x00, 0xff} {
				b := make([]byte, c.of.Size)
				for i := range b {
					b[i] = fill
				}
				before := append([]byte(nil), b...)
				found, err := text.Set(c.of, b, c.name, c.value)
				if err != nil {
					t.Fatal(err)
				}
				if len(found) != 1 || found[0].Name != c.path {
					t.Fatalf("found %v, want %s", found, c.path)
				}
				f := found[0]
				got, err := text.Get(c.of, b, c.name)
				if err != nil || !reflect.DeepEqual(got, c.want) {
					t.Errorf("got %#v, %v, want %#v", got, err, c.want)
				}
				for i := range 8 * c.of.Size {
					inside := i >= f.Off && i < f.Off+f.Len
					if changed := (b[i/8]^before[i/8])>>(7-i%8)&1 != 0; changed && !inside {
						t.Fatalf("bit %d has changed, outside of %s", i, f.Name)
					}
				}
			}
		})
	}
}

// The trap number says what the details of a notice are, to Set and to Get.
func TestSetDetails(t *testing.T) {
	b := make([]byte, mad.SMPNoticeSize)
	for _, c := range [][2]string{
		{"IsGeneric", "1"}, {"TrapNumber", "LocalChanges"}, {"DataDetails.LIDADDR", "0x55aa"},
		{"DataDetails.OtherLocalChanges", "yes"}, {"DataDetails.CAPABILITYMASK2", "IsVirtualizationSupported"},
	} {
		if _, err := text.Set(layout.SMPNotice, b, c[0], c[1]); err != nil {
			t.Fatal(err)
		}
	}
	var n mad.SMPNotice
	if err := n.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	want := &mad.Trap144Details{LIDADDR: 0x55aa, OtherLocalChanges: true, CAPABILITYMASK2: mad.Cap2IsVirtualizationSupported}
	if got := n.DecodeDataDetails(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if v, err := text.Get(layout.SMPNotice, b, "DataDetails.LIDADDR"); err != nil || v != uint64(0x55aa) {
		t.Errorf("got %v, %v", v, err)
	}
	if v, err := text.Get(layout.SMPNotice, b, "DataDetails.PORTNO"); err == nil {
		t.Errorf("trap 144 has a PORTNO: %v", v)
	}
}

func TestSetRefuses(t *testing.T) {
	for _, c := range []struct {
		of          *layout.Struct
		name, value string
		says        []string // parts of the message
	}{
		{layout.PathRecord, "NumPath", "1", []string{`"NumPath"`, "PathRecord", "NumbPath"}},
		{layout.PathRecord, "", "1", []string{`""`}},
		{layout.PathRecord, "zzzzzz", "1", []string{`no field "zzzzzz" in PathRecord`}},
		{layout.PathRecord, "NumbPath", "128", []string{"PathRecord.NumbPath", "7 bits", "at most 127", `"128"`}},
		{layout.PathRecord, "NumbPath", "-1", []string{"NumbPath", "number"}},
		{layout.PathRecord, "NumbPath", "four", []string{"NumbPath", "number"}},
		{layout.PathRecord, "SL", "0x10", []string{"SL", "4 bits", "at most 15"}},
		{layout.PathRecord, "MTU", "4097", []string{"MTU", "6 bits", "at most 63"}},
		{layout.PathRecord, "MTU", "4K", []string{"MTU", "no such value", "256", "4096"}},
		{layout.PathRecord, "rate", "101 Gb/s", []string{"Rate", "no such value", "did you mean"}},
		{layout.PathRecord, "DGID", "12", []string{"DGID", "128 bits", "takes a GID"}},
		{layout.PathRecord, "DGID", "fe80::1%eth0", []string{"takes a GID"}},
		{layout.PathRecord, "DGID", "10.0.0.1", []string{"takes a GID"}},
		{layout.PathRecord, "Reversible", "2", []string{"Reversible", "flag"}},
		{layout.PathRecord, "hop_flow_raw", "0x100000000", []string{"PathRecord.hop_flow_raw", "32 bits", "at most 4294967295"}},
		{layout.PathRecord, "hop_flow_raw", "x", []string{"hop_flow_raw", "number"}},
		{layout.PathRecord, "num_path_revers", "0x100", []string{"num_path_revers", "8 bits"}},
		{layout.PathRecord, "resv2", "0", []string{`"resv2"`, "reserved"}},
		{layout.PathRecord, "mtu", "0x100", []string{"MTU", "6 bits", "at most 63"}},
		{layout.PathRecord, "rate", "1000 Gb/s", []string{"Rate", "no such value"}},
		{layout.NodeRecord, "NodeType", "xy", []string{"no such value. Legal"}},
		{layout.NodeRecord, "NodeType", "swich", []string{`did you mean "Switch"`}},
		{layout.PortInfo, "PortState", "a", []string{`several values fit: ["Armed" "Active"]`}},
		{layout.PortInfo, "PortPhysicalState", "p", []string{`several values fit: ["Polling" "PortConfigurationTraining" "PhyTest"]`}},
		{layout.PortInfo, "PortState", "Axtiv", []string{"PortState", "4 bits", `did you mean "Active"`, "Legal"}},
		{layout.PortInfo, "LinkWidthEnabled", "", []string{"LinkWidthEnabled"}},
		{layout.PortInfo, "LinkWidthEnabled", "1X|3X", []string{"no such value"}},
		{layout.NodeRecord, "NodeString", strings.Repeat("x", 65), []string{"65 bytes", "at most 64"}},
		{layout.NodeRecord, "NodeInfo", "1", []string{"NodeInfo"}},
		{layout.PKeyTable, "P_Key", "1", []string{"array", "P_Key[0]"}},
		{layout.PKeyTable, "P_Key[32]", "1", []string{"0 to 31"}},
		{layout.PKeyTable, "P_Key[x]", "1", []string{"index"}},
		{layout.PathRecord, "SL[0]", "1", []string{"not an array"}},
	} {
		t.Run(c.of.Name+"/"+c.name+"="+c.value, func(t *testing.T) {
			b := make([]byte, c.of.Size)
			_, err := text.Set(c.of, b, c.name, c.value)
			if err == nil {
				t.Fatalf("accepted: %x", b)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			var name *layout.NameError
			var value *text.ValueError
			if !errors.As(err, &name) && !errors.As(err, &value) {
				t.Errorf("error is a %T", err)
			}
			if string(b) != string(make([]byte, c.of.Size)) {
				t.Errorf("bytes have changed: %x", b)
			}
		})
	}
}

// Every value that is printed can be read back.
func FuzzPrintedValuesParse(f *testing.F) {
	path := unhex(f, pathHex)
	f.Add(uint8(0), path)
	var all []*layout.Struct
	for _, g := range layout.Groups {
		all = append(all, g.Structs...)
	}
	for i := range all {
		f.Add(uint8(i), []byte(strings.Repeat("\xa5\x3c\x01", 60)))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		s := all[int(which)%len(all)]
		b := make([]byte, s.Size)
		copy(b, data)
		for _, field := range s.Leaves() {
			if field.Count > 0 || field.Kind == layout.KindString {
				continue // several values; bytes after a NUL
			}
			v, err := text.Get(s, b, field.Name)
			if err != nil {
				t.Fatal(err)
			}
			again := append([]byte(nil), b...)
			for i := range field.Len {
				layout.SetUint(again, field.Off+i, 1, 0)
			}
			if _, err := text.Set(s, again, field.Name, text.Format(v)); err != nil {
				t.Fatalf("%s = %v: %v", field.Name, v, err)
			}
			if string(again) != string(b) {
				t.Fatalf("%s = %v reads back as %x, was %x", field.Name, v, again, b)
			}
		}
	})
}

// No name and no value makes Set panic or touch what it must not.
func FuzzSet(f *testing.F) {
	f.Add("NodeInfo.NodeType", "Switch")
	f.Add("P_Key[3]", "0xffff")
	f.Add("rate", "100 Gb/s")
	f.Add("mtu", "0x84")
	f.Add("hop_flow_raw", "0x800001ff")
	f.Add("LinkSpeedExtActive", "f|e")
	f.Add("DGID", "fe80::1%eth0")
	f.Add("[", "|")
	f.Fuzz(func(t *testing.T, name, value string) {
		for _, s := range []*layout.Struct{layout.NodeRecord, layout.PathRecord, layout.PortInfo, layout.PKeyTable} {
			b := make([]byte, s.Size)
			found, err := text.Set(s, b, name, value)
			if err != nil && string(b) != string(make([]byte, s.Size)) {
				t.Fatalf("refused with %v, and yet changed", err)
			}
			if err == nil && len(found) == 0 {
				t.Fatal("nothing set")
			}
			for _, f := range found {
				if f.Off < 0 || f.Off+f.Len > 8*s.Size {
					t.Fatalf("%s lies outside", f.Name)
				}
			}
		}
	})
}

func BenchmarkObject(b *testing.B) {
	p := mad.PortInfo{PortState: mad.PortStateActive}
	b.ReportAllocs()
	for b.Loop() {
		text.ObjectOf(&p)
	}
}

func BenchmarkDump(b *testing.B) {
	p := mad.PortInfo{PortState: mad.PortStateActive, CapabilityMask: mad.CapIsSM}
	raw, _ := p.AppendBinary(nil)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = text.AppendDump(dst[:0], layout.PortInfo, raw, text.Options{})
	}
}
