package layout

import (
	"errors"
	"slices"
	"testing"
)

func TestFind(t *testing.T) {
	for _, c := range []struct {
		of       *Struct
		name     string
		path     string
		off, len int
	}{
		{PortInfo, "M_Key", "M_Key", 0, 64},
		{PortInfo, "mkey", "M_Key", 0, 64},
		{PortInfo, "SMLid", "MasterSMLID", 144, 16},
		{PortInfo, "LID", "LID", 128, 16},
		{NodeRecord, "LID", "LID", 0, 16},
		{NodeRecord, "nodeinfo.nodeguid", "NodeInfo.NodeGUID", 32 + 96, 64},
		{NodeRecord, "NodeGUID", "NodeInfo.NodeGUID", 32 + 96, 64},
		{NodeRecord, "node_guid", "NodeInfo.NodeGUID", 32 + 96, 64},
		{NodeRecord, "Guid", "NodeInfo.NodeGUID", 32 + 96, 64},
		{NodeRecord, "VendorID", "NodeInfo.VendorID", 32 + 296, 24},
		{NodeRecord, "NodeDescription", "NodeDescription.NodeString", 352, 512},
		{PathRecord, "pkt_life", "PacketLifeTime", 450, 6},
		{ClassPortInfo, "Trap QKey", "TrapQ_Key", 544, 32},
		{ClassPortInfo, "RedirectPKey", "RedirectP_Key", 240, 16},
		{PKeyTable, "P_Key[31]", "P_Key[31]", 31 * 16, 16},
		{GUIDInfo, "guid7", "GUID[7]", 7 * 64, 64},
		{SLtoVLMappingTable, "SLtoVL[3]", "SLtoVL[3]", 12, 4},
		{VLArbitrationTable, "VLWeight[31].VL", "VLWeight[31].VL", 31*16 + 4, 4},
		{RandomForwardingTable, "entry[2].port", "Entry[2].Port", 2*32 + 24, 8},
		{PKeyTableRecord, "P_Key[1]", "P_KeyTable.P_Key[1]", 64 + 16, 16},
		{GUIDInfoRecord, "GUID 1", "GUIDInfo.GUID[1]", 64 + 64, 64},
		{ServiceRecord, "ServiceData8.1", "ServiceData8[0]", 896, 8},
		{PortInfoRecord, "LID", "PortInfo.LID", 32 + 128, 16},
		{PortInfoRecord, "EndPortLid", "EndportLID", 0, 16},
		{PortInfoRecord, "LinkState", "PortInfo.PortState", 32 + 260, 4},
		{InformInfoRecord, "trap_num", "InformInfo.TrapNumber", 192 + 208, 16},
		{InformInfoRecord, "dev_id", "InformInfo.TrapNumber", 192 + 208, 16},
	} {
		f, err := c.of.Find(c.name)
		if err != nil || f.Name != c.path || f.Off != c.off || f.Len != c.len {
			t.Errorf("%s of %s: %q at %d, %d bits, %v", c.name, c.of.Name, f.Name, f.Off, f.Len, err)
		}
	}
}

func TestFindErrors(t *testing.T) {
	twice := &Struct{Name: "Twice", Fields: []Field{
		{Name: "Left", Len: 320, Kind: KindStruct, Of: NodeInfo},
		{Name: "Right", Off: 320, Len: 320, Kind: KindStruct, Of: NodeInfo},
	}}
	for _, c := range []struct {
		of      *Struct
		name    string
		nearest []string
	}{
		{PathRecord, "DLDI", []string{"DLID"}},
		{PathRecord, "xyzzy", nil},
		{PathRecord, "zz", nil}, // two edits make it any name of two letters
		{NodeRecord, "NodeGUDI", []string{"NodeInfo.NodeGUID"}},
		{twice, "NodeGUID", []string{"Left.NodeGUID", "Right.NodeGUID"}},
		{PKeyTable, "P_Key[32]", nil},
		{PKeyTable, "P_Key[", nil},
		{PKeyTable, "P_Key[-1]", nil},
		{PathRecord, "DLID[0]", nil},
		{VLArbitrationTable, "VL", []string{"VLWeight[0].VL", "VLWeight[1].VL", "VLWeight[2].VL"}},
		{VLArbitrationTable, "VLWeight[32].VL", []string{"VLWeight[2].VL"}},
		{SLtoVLMappingTable, "SLtoVL[16]", nil},
	} {
		_, err := c.of.Find(c.name)
		var bad *NameError
		if !errors.As(err, &bad) || bad.In != c.of.Name {
			t.Errorf("%s: error %v", c.name, err)
			continue
		}
		if len(bad.Nearest) < len(c.nearest) || !slices.Equal(bad.Nearest[:len(c.nearest)], c.nearest) || c.nearest == nil && bad.Nearest != nil {
			t.Errorf("%s: nearest %q, want %q", c.name, bad.Nearest, c.nearest)
		}
	}
}

// A row of bytes is entered by what the other fields say it holds.
func TestFindIn(t *testing.T) {
	b := make([]byte, Notice.Size)
	set := func(name string, v uint64) {
		f, err := Notice.Find(name)
		if err == nil {
			err = f.SetUint(b, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set("IsGeneric", 1)
	for _, c := range []struct {
		trap     uint64
		name     string
		path     string // "" if there is none
		off, len int
	}{
		{144, "DataDetails.LIDADDR", "DataDetails.LIDADDR", 80 + 16, 16},
		{144, "datadetails.nodedescriptionchange", "DataDetails.NodeDescriptionChange", 80 + 95, 1},
		{256, "DataDetails.DRNoticeReturnPath[29]", "DataDetails.DRNoticeReturnPath[29]", 80 + 192 + 8*29, 8},
		{128, "DataDetails.LIDADDR", "DataDetails.LIDADDR", 80, 16},
		{128, "DataDetails.PORTNO", "", 0, 0},
		{300, "DataDetails.LIDADDR", "", 0, 0},
		{144, "IssuerLID.LIDADDR", "", 0, 0},
		{144, "Details.LIDADDR", "", 0, 0},
		{300, "TrapNumber", "TrapNumber", 32, 16},
	} {
		set("TrapNumber", c.trap)
		f, err := Notice.FindIn(b, c.name)
		if c.path == "" {
			var bad *NameError
			if !errors.As(err, &bad) {
				t.Errorf("%s of trap %d: %q, error %v", c.name, c.trap, f.Name, err)
			}
			continue
		}
		if err != nil || f.Name != c.path || f.Off != c.off || f.Len != c.len {
			t.Errorf("%s of trap %d: %q at %d, %d bits, %v", c.name, c.trap, f.Name, f.Off, f.Len, err)
		}
	}
}

// The bits of IB_PR_COMPMASK_* and IB_NR_COMPMASK_* in OpenSM's ib_types.h, and
// of IB_SA_PATH_REC_PREFERENCE in the kernel's ib_sa.h.
func TestComponentMasks(t *testing.T) {
	for _, c := range []struct {
		of   *Struct
		bits map[string]uint64
	}{
		{PathRecord, map[string]uint64{
			"ServiceID": 0x3, "DGID": 1 << 2, "SGID": 1 << 3, "DLID": 1 << 4, "SLID": 1 << 5, "RawTraffic": 1 << 6,
			"FlowLabel": 1 << 8, "HopLimit": 1 << 9, "TClass": 1 << 10, "Reversible": 1 << 11, "NumbPath": 1 << 12,
			"P_Key": 1 << 13, "QoSClass": 1 << 14, "SL": 1 << 15, "MTUSelector": 1 << 16, "MTU": 1 << 17,
			"RateSelector": 1 << 18, "Rate": 1 << 19, "PacketLifeTimeSelector": 1 << 20, "PacketLifeTime": 1 << 21,
			"Preference": 1 << 22,
		}},
		{NodeRecord, map[string]uint64{
			"LID": 1 << 0, "BaseVersion": 1 << 2, "ClassVersion": 1 << 3, "NodeType": 1 << 4, "NumPorts": 1 << 5,
			"SystemImageGUID": 1 << 6, "NodeGUID": 1 << 7, "PortGUID": 1 << 8, "PartitionCap": 1 << 9, "DeviceID": 1 << 10,
			"Revision": 1 << 11, "LocalPortNum": 1 << 12, "VendorID": 1 << 13, "NodeString": 1 << 14,
		}},
		{PortInfo, map[string]uint64{"LID": 0}},
	} {
		for name, want := range c.bits {
			f, err := c.of.Find(name)
			if err != nil || c.of.MaskOf(f.Name) != want {
				t.Errorf("%s.%s: mask %#x, %v, want %#x", c.of.Name, name, c.of.MaskOf(f.Name), err, want)
			}
		}
	}
}

// The names and numbers of the match tables in smpquery.c and saquery.c of
// infiniband-diags.
func TestNamesOfDiags(t *testing.T) {
	for _, c := range []struct {
		class uint8
		ids   map[uint16][]string
	}{
		{0x01, map[uint16][]string{
			0x10: {"NodeDesc", "ND"}, 0x11: {"NodeInfo", "NI"}, 0x12: {"SwitchInfo", "SI"}, 0x14: {"GUIDInfo", "GI"},
			0x15: {"PortInfo", "PI"}, 0x16: {"PKeyTable", "PKeys"}, 0x17: {"SL2VLTable", "SL2VL"},
			0x18: {"VLArbitration", "VLArb"}, 0x33: {"PortInfoExtended", "PIE"}, 0xff90: {"MlnxExtPortInfo", "MEPI"},
		}},
		{0x03, map[uint16][]string{
			0x01: {"ClassPortInfo", "CPI"}, 0x11: {"NodeRecord", "NR"}, 0x12: {"PortInfoRecord", "PIR"},
			0x13: {"SL2VLTableRecord", "SL2VL"}, 0x14: {"SwitchInfoRecord", "SWIR"}, 0x15: {"LFTRecord", "LFTR"},
			0x17: {"MFTRecord", "MFTR"}, 0x18: {"SMInfoRecord", "SMIR"}, 0x20: {"LinkRecord", "LR"},
			0x30: {"GUIDInfoRecord", "GIR"}, 0x31: {"ServiceRecord", "SR"}, 0x33: {"PKeyTableRecord", "PKTR"},
			0x35: {"PathRecord", "PR"}, 0x36: {"VLArbitrationTableRecord", "VLAR"}, 0x38: {"MCMemberRecord", "MCMR"},
			0xf3: {"InformInfoRecord", "IIR"},
		}},
	} {
		for id, names := range c.ids {
			for _, name := range names {
				if a, err := LookUpAttribute(c.class, name); err != nil || a.ID != id {
					t.Errorf("%s of class %#x: %+v, %v", name, c.class, a, err)
				}
			}
		}
	}
}

// One name of an attribute does not hide another.
func TestAttributeNamesAreUnique(t *testing.T) {
	for _, a := range Attributes {
		for _, name := range append([]string{a.Name}, append(a.Alias, a.Short)...) {
			if name == "" {
				continue
			}
			if got, err := LookUpAttribute(a.Class, name); err != nil || got != a {
				t.Errorf("%s of class %#x finds %v, %v", name, a.Class, got, err)
			}
		}
	}
}

func TestAttributes(t *testing.T) {
	for _, c := range []struct {
		class uint8
		name  string
		id    uint16
	}{
		{0x01, "NodeInfo", 0x11}, {0x81, "NI", 0x11}, {0x81, "portinfo", 0x15}, {0x01, "pkeytable", 0x16}, {0x01, "P_KeyTable", 0x16},
		{0x03, "NodeRecord", 0x11}, {0x03, "pathrecord", 0x35}, {0x03, "PR", 0x35}, {0x03, "ClassPortInfo", 0x01},
		{0x03, "0x35", 0x35}, {0x81, "17", 0x11},
	} {
		a, err := LookUpAttribute(c.class, c.name)
		if err != nil || a.ID != c.id {
			t.Errorf("%s of class %#x: %+v, %v", c.name, c.class, a, err)
			continue
		}
		if FindAttribute(c.class, c.id) != a || AttributeOf(c.class, a.Struct) != a {
			t.Errorf("%s of class %#x is not found by its number and structure", c.name, c.class)
		}
	}
	if a := FindAttribute(0x04, 0x11); a != nil {
		t.Errorf("found %s", a.Name)
	}
	if a, err := LookUpAttribute(0x03, "0x99"); err == nil {
		t.Errorf("0x99 is %s", a.Name)
	}
	_, err := LookUpAttribute(0x03, "PathRecrod")
	var bad *NameError
	if !errors.As(err, &bad) || len(bad.Nearest) == 0 || bad.Nearest[0] != "PathRecord" {
		t.Errorf("error %v", err)
	}
	if path := FindAttribute(0x03, 0x35); !path.Allows(0x12) || path.Allows(0x02) {
		t.Errorf("methods of PathRecord: %v", path.Methods)
	}
}

func TestFindStruct(t *testing.T) {
	for name, want := range map[string]*Struct{"SAHeader": SAHeader, "pkeytable": PKeyTable, "P_KeyTable": PKeyTable, "Header": Header, "Head": nil} {
		if got := FindStruct(name); got != want {
			t.Errorf("FindStruct(%q) = %v", name, got)
		}
	}
}

func TestReservedName(t *testing.T) {
	for off, want := range map[int]string{0: "Reserved0", 144: "Reserved18", 300: "Reserved37_4", 7: "Reserved0_7"} {
		if got := ReservedName(off); got != want {
			t.Errorf("ReservedName(%d) = %s, want %s", off, got, want)
		}
	}
}
