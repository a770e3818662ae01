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
		{NodeRecord, "NodeGUDI", []string{"NodeInfo.NodeGUID"}},
		{twice, "NodeGUID", []string{"Left.NodeGUID", "Right.NodeGUID"}},
		{PKeyTable, "P_Key[32]", nil},
		{PKeyTable, "P_Key[", nil},
		{PKeyTable, "P_Key[-1]", nil},
		{PathRecord, "DLID[0]", nil},
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
