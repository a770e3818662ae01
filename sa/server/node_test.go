package server

import (
	"slices"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// askNodes gives the names of the nodes that a query finds.
func askNodes(t *testing.T, s *Server, from string, method mad.Method, like *mad.NodeRecord, fields ...string) (mad.Status, []mad.NodeRecord) {
	t.Helper()
	req := request(t, method, mad.AttrNodeRecord, like, fields...)
	status, rows := split(t, req, s.answer(portOf(t, s, from).LID, req), mad.NodeRecordSize)
	recs := make([]mad.NodeRecord, len(rows))
	for i, row := range rows {
		if err := recs[i].UnmarshalBinary(row); err != nil {
			t.Fatal(err)
		}
	}
	return status, recs
}

const nodesYAML = `
nodes:
  - {name: a, kind: ca, ports: 2, desc: "a HCA-1", guid: 0x10, system-guid: 0x11, vendor: 0x2c9, device: 4099,
     port: {1: {guid: 0x12, lid: 4, lmc: 1}, 2: {guid: 0x13, lid: 6, lmc: 0}}}
  - {name: b, kind: ca, guid: 0x20, pkeys: [0x8002]}
  - {name: sw, kind: switch, ports: 8, guid: 0x30, lid: 9, vendor: 0x1234, device: 7}
links:
  - a[1] - sw[1]
  - a[2] - sw[2]
  - b[1] - sw[3]
`

func TestNodeRecordComponents(t *testing.T) {
	sub, err := topo.Parse("nodes.yaml", []byte(nodesYAML))
	s := broughtUp(t, sub, err)
	ni := func(n mad.NodeInfo) *mad.NodeRecord { return &mad.NodeRecord{NodeInfo: n} }
	tests := []struct {
		field string
		like  *mad.NodeRecord
		want  []mad.GUID // port GUIDs
	}{
		{"LID", &mad.NodeRecord{LID: 6}, []mad.GUID{0x13}},
		{"LID", &mad.NodeRecord{LID: 5}, []mad.GUID{0x12}}, // the second LID of LMC 1
		{"LID", &mad.NodeRecord{LID: 0x700}, nil},
		{"BaseVersion", ni(mad.NodeInfo{BaseVersion: 1}), []mad.GUID{0x12, 0x13, 0x30}},
		{"BaseVersion", ni(mad.NodeInfo{BaseVersion: 2}), nil},
		{"ClassVersion", ni(mad.NodeInfo{ClassVersion: 1}), []mad.GUID{0x12, 0x13, 0x30}},
		{"ClassVersion", ni(mad.NodeInfo{ClassVersion: 2}), nil},
		{"NodeType", ni(mad.NodeInfo{NodeType: mad.NodeTypeSwitch}), []mad.GUID{0x30}},
		{"NumPorts", ni(mad.NodeInfo{NumPorts: 2}), []mad.GUID{0x12, 0x13}},
		{"SystemImageGUID", ni(mad.NodeInfo{SystemImageGUID: 0x11}), []mad.GUID{0x12, 0x13}},
		{"NodeGUID", ni(mad.NodeInfo{NodeGUID: 0x10}), []mad.GUID{0x12, 0x13}},
		{"PortGUID", ni(mad.NodeInfo{PortGUID: 0x13}), []mad.GUID{0x13}},
		{"PartitionCap", ni(mad.NodeInfo{PartitionCap: 1}), nil},
		{"DeviceID", ni(mad.NodeInfo{DeviceID: 7}), []mad.GUID{0x30}},
		{"Revision", ni(mad.NodeInfo{Revision: 0xbad}), nil},
		{"LocalPortNum", ni(mad.NodeInfo{LocalPortNum: 2}), []mad.GUID{0x13}},
		{"LocalPortNum", ni(mad.NodeInfo{LocalPortNum: 0}), []mad.GUID{0x30}}, // a switch is one record: port 0
		{"VendorID", ni(mad.NodeInfo{VendorID: 0x2c9}), []mad.GUID{0x12, 0x13}},
		{"NodeDescription", &mad.NodeRecord{NodeDescription: mad.MakeNodeDescription("a HCA-1")}, []mad.GUID{0x12, 0x13}},
		{"NodeDescription", &mad.NodeRecord{NodeDescription: mad.MakeNodeDescription("a HCA")}, nil},
	}
	for _, tt := range tests {
		status, recs := askNodes(t, s, "a[1]", mad.MethodGetTable, tt.like, tt.field)
		var got []mad.GUID
		for _, r := range recs {
			got = append(got, r.NodeInfo.PortGUID)
		}
		if status != mad.StatusOK || !slices.Equal(got, tt.want) {
			t.Errorf("%s of %+v: status %v, ports %v, want %v", tt.field, tt.like, status, got, tt.want)
		}
	}
}

// A port shows itself to those that it shares a partition with
// (osm_sa_node_record.c).
func TestNodeRecordPartition(t *testing.T) {
	sub, err := topo.Parse("nodes.yaml", []byte(nodesYAML))
	s := broughtUp(t, sub, err)
	for from, want := range map[string]int{"a[1]": 3, "b": 1} {
		if _, recs := askNodes(t, s, from, mad.MethodGetTable, &mad.NodeRecord{}); len(recs) != want {
			t.Errorf("%s sees %d ports, want %d", from, len(recs), want)
		}
	}
}

func TestNodeRecord(t *testing.T) {
	sub, err := topo.Parse("nodes.yaml", []byte(nodesYAML))
	s := broughtUp(t, sub, err)
	status, recs := askNodes(t, s, "a[1]", mad.MethodGet, &mad.NodeRecord{LID: 5}, "LID")
	if status != mad.StatusOK {
		t.Fatal(status)
	}
	want := mad.NodeRecord{
		LID: 4, // the base LID
		NodeInfo: mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeTypeCA, NumPorts: 2, SystemImageGUID: 0x11,
			NodeGUID: 0x10, PortGUID: 0x12, PartitionCap: topo.MaxPKeys, DeviceID: 4099, LocalPortNum: 1, VendorID: 0x2c9},
		NodeDescription: mad.MakeNodeDescription("a HCA-1"),
	}
	if recs[0] != want {
		t.Errorf("got %+v, want %+v", recs[0], want)
	}
	if status, _ = askNodes(t, s, "a[1]", mad.MethodGet, &mad.NodeRecord{}); status != mad.StatusSATooManyRecords {
		t.Errorf("a Get that finds three records: %v", status)
	}
	if status, _ = askNodes(t, s, "a[1]", mad.MethodGet, &mad.NodeRecord{LID: 77}, "LID"); status != mad.StatusSANoRecords {
		t.Errorf("a Get that finds nothing: %v", status)
	}
}

// A NodeRecord of 108 bytes takes 112, AttributeOffset 14 (IBA 15.2.1.1).
func TestNodeRecordOffset(t *testing.T) {
	s := demo(t)
	resp := s.answer(portOf(t, s, "h1").LID, request(t, mad.MethodGetTable, mad.AttrNodeRecord, nil))
	if got := resp[offAttributeOffset+1]; got != 14 {
		t.Errorf("AttributeOffset %d, want 14", got)
	}
	if want := mad.OffSAData + 10*112; len(resp) != want {
		t.Errorf("%d bytes, want %d for the 10 end ports of demo", len(resp), want)
	}
}
