package server

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// trusted gives a request the SM_Key.
func trusted(req []byte) []byte {
	binary.BigEndian.PutUint64(req[offSMKey:], DefaultSMKey)
	return req
}

// ask sends a query and gives the records as they are on the wire.
func ask(t testing.TB, s *Server, from string, req []byte) (mad.Status, [][]byte) {
	t.Helper()
	attr := mad.AttributeID(binary.BigEndian.Uint16(req[mad.OffAttribute:]))
	return split(t, req, s.answer(portOf(t, s, from).LID, req), kinds[attr].layout.Size)
}

func twoLevel(t testing.TB) *Server {
	sub, err := topo.Generate("two-level:leafs=36,spines=18,hosts=18")
	return broughtUp(t, sub, err)
}

// TestCounts counts the records of whole tables. For the fabric of 54 switches of
// 36 ports and 648 hosts those of nodes, ports, switches, forwarding tables and
// links are what OpenSM answers; the others follow from the numbers of ports and
// blocks.
func TestCounts(t *testing.T) {
	const (
		demoSwitches, demoHosts, demoPorts    = 2, 8, 12
		switches, hosts, portsOfSwitch        = 54, 648, 36
		pkeyBlocks, vlArbitrationHalves, ways = 4, 4, (portsOfSwitch + 1) * (portsOfSwitch + 1)
	)
	tests := []struct {
		attr       mad.AttributeID
		demo, want int
	}{
		{mad.AttrNodeRecord, 10, 702},
		{mad.AttrPortInfoRecord, demoHosts + demoSwitches*(demoPorts+1), 2646},
		{mad.AttrSwitchInfoRecord, 2, 54},
		{mad.AttrLinearForwardingTableRecord, 2, 594},
		{mad.AttrLinkRecord, 2 * (demoHosts + 2), 2592},
		{mad.AttrGUIDInfoRecord, 10, 702},
		{mad.AttrSMInfoRecord, 1, 1},
		{mad.AttrPKeyTableRecord, 10*pkeyBlocks + demoSwitches*demoPorts, (switches+hosts)*pkeyBlocks + switches*portsOfSwitch},
		{mad.AttrVLArbitrationTableRecord, vlArbitrationHalves * 34, vlArbitrationHalves * 2646},
		{mad.AttrSLtoVLMappingTableRecord, demoHosts + demoSwitches*(demoPorts+1)*(demoPorts+1), hosts + switches*ways},
		{mad.AttrRandomForwardingTableRecord, 0, 0},
		{mad.AttrMulticastForwardingTableRecord, 0, 0},
		{mad.AttrMCMemberRecord, 0, 0},
		{mad.AttrServiceRecord, 0, 0},
		{mad.AttrServiceAssociationRecord, 0, 0},
		{mad.AttrInformInfoRecord, 0, 0},
	}
	small, large := demo(t), twoLevel(t)
	for _, tt := range tests {
		req := trusted(request(t, mad.MethodGetTable, tt.attr, nil))
		for s, want := range map[*Server]int{small: tt.demo, large: tt.want} {
			if status, rows := ask(t, s, "h1", req); status != mad.StatusOK || len(rows) != want {
				t.Errorf("%s: status %v, %d records, want %d", kinds[tt.attr].layout.Name, status, len(rows), want)
			}
		}
		req[mad.OffMethod] = byte(mad.MethodGet)
		want := mad.StatusSATooManyRecords
		switch tt.want {
		case 0:
			want = mad.StatusSANoRecords
		case 1:
			want = mad.StatusOK
		}
		if status, _ := ask(t, large, "h1", req); status != want {
			t.Errorf("Get of %s: %v, want %v", kinds[tt.attr].layout.Name, status, want)
		}
	}
	if len(tests) != len(kinds) {
		t.Errorf("%d kinds of records, %d counted", len(kinds), len(tests))
	}
}

// A table over the limit is refused before it is made.
func TestMaxRecords(t *testing.T) {
	s := twoLevel(t)
	for limit, want := range map[int]mad.Status{593: mad.StatusSANoResources, 594: mad.StatusOK} {
		s.cfg.MaxRecords = limit
		if status, _ := ask(t, s, "h1", request(t, mad.MethodGetTable, mad.AttrLinearForwardingTableRecord, nil)); status != want {
			t.Errorf("594 records where %d are allowed: %v, want %v", limit, status, want)
		}
	}
	s.cfg.MaxRecords = 100
	q := &query{from: s.sub.SM, table: true, record: make([]byte, mad.SADataSize)}
	if found := s.search(kinds[mad.AttrSLtoVLMappingTableRecord], q); found.count != 101 || len(found.data) != 101*16 {
		t.Errorf("of 74574 records %d were made, %d bytes, where 100 are allowed", found.count, len(found.data))
	}
}

const fabricYAML = `
nodes:
  - {name: a, kind: ca, ports: 2, port: {1: {lid: 4, lmc: 1}, 2: {lid: 6}}}
  - {name: b, kind: ca, port: {1: {lid: 8, lmc: 2, pkeys: [0xffff, 0x8007]}}}
  - {name: s1, kind: switch, ports: 4, port: {0: {lid: 20}}}
  - {name: s2, kind: switch, ports: 2, port: {0: {lid: 21}}}
links:
  - a[1] - s1[1]
  - a[2] - s2[1]
  - {ends: "b[1] - s1[2]", width: 1x, speed: HDR, mtu: 2048}
  - {ends: "s1[4] - s2[2]", speed: QDR}
`

func TestRecordComponents(t *testing.T) {
	sub, err := topo.Parse("fabric.yaml", []byte(fabricYAML))
	s := broughtUp(t, sub, err)
	port := func(rec mad.PortInfoRecord) *mad.PortInfoRecord { return &rec }
	info := func(info mad.PortInfo) *mad.PortInfoRecord { return &mad.PortInfoRecord{PortInfo: info} }
	link := func(rec mad.LinkRecord) *mad.LinkRecord { return &rec }
	key := mad.PKeyTableRecord{LID: 8}
	key.PKeyTable.PKey[1] = 0x8007
	guid := mad.GUIDInfoRecord{}
	guid.GUIDInfo.GUID[0] = portOf(t, s, "b").GUID
	tests := []struct {
		name   string
		attr   mad.AttributeID
		like   mad.Structure
		fields []string
		want   int
	}{
		{"PortInfo of a CA", mad.AttrPortInfoRecord, port(mad.PortInfoRecord{EndportLID: 4}), []string{"EndportLID"}, 1},
		{"by its second LID", mad.AttrPortInfoRecord, port(mad.PortInfoRecord{EndportLID: 5}), []string{"EndportLID"}, 1},
		{"PortInfo of a switch", mad.AttrPortInfoRecord, port(mad.PortInfoRecord{EndportLID: 20}), []string{"EndportLID"}, 5},
		{"one of its ports", mad.AttrPortInfoRecord, port(mad.PortInfoRecord{EndportLID: 20, PortNum: 3}), []string{"EndportLID", "PortNum"}, 1},
		{"no such port", mad.AttrPortInfoRecord, port(mad.PortInfoRecord{EndportLID: 20, PortNum: 5}), []string{"EndportLID", "PortNum"}, 0},
		{"no such LID", mad.AttrPortInfoRecord, port(mad.PortInfoRecord{EndportLID: 99}), []string{"EndportLID"}, 0},
		{"port 2 anywhere", mad.AttrPortInfoRecord, port(mad.PortInfoRecord{PortNum: 2}), []string{"PortNum"}, 3},
		{"ports that are down", mad.AttrPortInfoRecord, info(mad.PortInfo{PortState: mad.PortStateDown}), []string{"PortState"}, 1},
		{"all but that", mad.AttrPortInfoRecord, info(mad.PortInfo{PortState: mad.PortStateActive}), []string{"PortState"}, 10},
		{"narrow ports", mad.AttrPortInfoRecord, info(mad.PortInfo{LinkWidthActive: mad.LinkWidth1X}), []string{"LinkWidthActive"}, 2},
		{"MTU and base LID", mad.AttrPortInfoRecord, info(mad.PortInfo{NeighborMTU: mad.MTU2048, LID: 8}), []string{"NeighborMTU", "PortInfo.LID"}, 1},
		{"HDR", mad.AttrPortInfoRecord, info(mad.PortInfo{LinkSpeedExtActive: mad.LinkSpeedExtHDR}), []string{"LinkSpeedExtActive"}, 2},
		{"LMC", mad.AttrPortInfoRecord, info(mad.PortInfo{LMC: 2}), []string{"LMC"}, 1},

		{"SwitchInfo", mad.AttrSwitchInfoRecord, &mad.SwitchInfoRecord{LID: 21}, []string{"LID"}, 1},
		{"SwitchInfo of a CA", mad.AttrSwitchInfoRecord, &mad.SwitchInfoRecord{LID: 8}, []string{"LID"}, 0},
		{"SwitchInfo of LID 0", mad.AttrSwitchInfoRecord, &mad.SwitchInfoRecord{}, []string{"LID"}, 0},
		{"block of a switch", mad.AttrLinearForwardingTableRecord, &mad.LinearForwardingTableRecord{LID: 20}, []string{"LID", "BlockNum"}, 1},
		{"block above the top", mad.AttrLinearForwardingTableRecord, &mad.LinearForwardingTableRecord{BlockNum: 1}, []string{"BlockNum"}, 0},
		{"table of a CA", mad.AttrLinearForwardingTableRecord, &mad.LinearForwardingTableRecord{LID: 8}, []string{"LID"}, 0},

		{"links from a switch", mad.AttrLinkRecord, link(mad.LinkRecord{FromLID: 20}), []string{"FromLID"}, 3},
		{"links to a switch", mad.AttrLinkRecord, link(mad.LinkRecord{ToLID: 20}), []string{"ToLID"}, 3},
		{"links to a CA by its last LID", mad.AttrLinkRecord, link(mad.LinkRecord{ToLID: 11}), []string{"ToLID"}, 1},
		{"between switches", mad.AttrLinkRecord, link(mad.LinkRecord{FromLID: 20, ToLID: 21}), []string{"FromLID", "ToLID"}, 1},
		{"ports without link", mad.AttrLinkRecord, link(mad.LinkRecord{FromLID: 20, FromPort: 3}), []string{"FromLID", "FromPort"}, 0},
		{"both ports", mad.AttrLinkRecord, link(mad.LinkRecord{FromPort: 4, ToPort: 2}), []string{"FromPort", "ToPort"}, 1},
		{"not linked", mad.AttrLinkRecord, link(mad.LinkRecord{FromLID: 4, ToLID: 21}), []string{"FromLID", "ToLID"}, 0},

		{"P_Key blocks of a CA", mad.AttrPKeyTableRecord, &mad.PKeyTableRecord{LID: 8}, []string{"LID"}, 4},
		{"PortNum is reserved there", mad.AttrPKeyTableRecord, &mad.PKeyTableRecord{LID: 8, PortNum: 9}, []string{"LID", "PortNum"}, 4},
		{"one block", mad.AttrPKeyTableRecord, &mad.PKeyTableRecord{LID: 8, BlockNum: 3}, []string{"LID", "BlockNum"}, 1},
		{"P_Key blocks of a switch", mad.AttrPKeyTableRecord, &mad.PKeyTableRecord{LID: 20}, []string{"LID"}, 8},
		{"of one port", mad.AttrPKeyTableRecord, &mad.PKeyTableRecord{LID: 20, PortNum: 2}, []string{"LID", "PortNum"}, 1},
		{"keys are no component", mad.AttrPKeyTableRecord, &key, []string{"LID"}, 4},
		{"lanes of a CA", mad.AttrSLtoVLMappingTableRecord, &mad.SLtoVLMappingTableRecord{LID: 8, InputPortNum: 3, OutputPortNum: 3}, []string{"LID", "InputPortNum", "OutputPortNum"}, 1},
		{"lanes of a switch's port", mad.AttrSLtoVLMappingTableRecord, &mad.SLtoVLMappingTableRecord{LID: 20, OutputPortNum: 3}, []string{"LID", "OutputPortNum"}, 5},
		{"lanes of one way", mad.AttrSLtoVLMappingTableRecord, &mad.SLtoVLMappingTableRecord{LID: 20, InputPortNum: 1, OutputPortNum: 3}, []string{"LID", "InputPortNum", "OutputPortNum"}, 1},
		{"high priority", mad.AttrVLArbitrationTableRecord, &mad.VLArbitrationTableRecord{BlockNum: 3}, []string{"BlockNum"}, 11},
		{"of a switch's port", mad.AttrVLArbitrationTableRecord, &mad.VLArbitrationTableRecord{LID: 21, OutputPortNum: 2}, []string{"LID", "OutputPortNum"}, 4},
		{"of a CA", mad.AttrVLArbitrationTableRecord, &mad.VLArbitrationTableRecord{LID: 6, OutputPortNum: 7}, []string{"LID", "OutputPortNum"}, 4},

		{"GUIDs by LID", mad.AttrGUIDInfoRecord, &mad.GUIDInfoRecord{LID: 5}, []string{"LID", "BlockNum"}, 1},
		{"no such block", mad.AttrGUIDInfoRecord, &mad.GUIDInfoRecord{LID: 5, BlockNum: 1}, []string{"LID", "BlockNum"}, 0},
		{"GUID", mad.AttrGUIDInfoRecord, &guid, []string{"GUIDInfo.GUID[0]"}, 1},
		{"second GUID", mad.AttrGUIDInfoRecord, &mad.GUIDInfoRecord{}, []string{"GUIDInfo.GUID[1]"}, 5},
		{"SM by LID", mad.AttrSMInfoRecord, &mad.SMInfoRecord{LID: 5}, []string{"LID"}, 1},
		{"SM elsewhere", mad.AttrSMInfoRecord, &mad.SMInfoRecord{LID: 8}, []string{"LID"}, 0},
		{"master", mad.AttrSMInfoRecord, &mad.SMInfoRecord{SMInfo: mad.SMInfo{SMState: mad.SMStateMaster}}, []string{"SMState"}, 1},
		{"standby", mad.AttrSMInfoRecord, &mad.SMInfoRecord{SMInfo: mad.SMInfo{SMState: mad.SMStateStandby}}, []string{"SMState"}, 0},
		{"no services", mad.AttrServiceRecord, &mad.ServiceRecord{ServiceID: 1}, []string{"ServiceID", "ServiceData8[3]"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, rows := ask(t, s, "a", trusted(request(t, mad.MethodGetTable, tt.attr, tt.like, tt.fields...)))
			if status != mad.StatusOK || len(rows) != tt.want {
				t.Errorf("status %v, %d records, want %d:\n% x", status, len(rows), tt.want, rows)
			}
		})
	}
}

// saquery -s asks for the ports with IsSM by a modifier with bit 31; without it
// the whole mask has to be equal (IBA 15.2.5.3).
func TestCapabilityMaskMatch(t *testing.T) {
	s := demo(t)
	like := &mad.PortInfoRecord{PortInfo: mad.PortInfo{CapabilityMask: mad.CapIsSM, CapabilityMask2: mad.Cap2IsLinkSpeedHDRSupported}}
	tests := []struct {
		field    string
		modifier uint32
		want     []mad.LID
	}{
		{"CapabilityMask", matchSets, []mad.LID{1}},
		{"CapabilityMask", 0, nil},
		{"CapabilityMask2", matchSets, []mad.LID{8, 10}}, // h8 has the only HDR link, to s2
		{"CapabilityMask2", 0, nil},
	}
	for _, tt := range tests {
		req := request(t, mad.MethodGetTable, mad.AttrPortInfoRecord, like, tt.field)
		binary.BigEndian.PutUint32(req[mad.OffModifier:], tt.modifier)
		_, rows := ask(t, s, "h2", req)
		var got []mad.LID
		for _, row := range rows {
			got = append(got, mad.LID(binary.BigEndian.Uint16(row)))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s, modifier %#x: LIDs %v, want %v", tt.field, tt.modifier, got, tt.want)
		}
	}
	// No other component is a set of bits.
	req := request(t, mad.MethodGetTable, mad.AttrPortInfoRecord, &mad.PortInfoRecord{}, "LinkWidthSupported")
	binary.BigEndian.PutUint32(req[mad.OffModifier:], matchSets)
	if _, rows := ask(t, s, "h2", req); len(rows) != 0 {
		t.Errorf("%d ports of no width", len(rows))
	}
}

// Links faster than QDR show as QDR to those that do not say that they know
// better (osm_sa_portinfo_record.c).
func TestExtendedSpeeds(t *testing.T) {
	s := demo(t)
	for options, want := range map[uint8]mad.LinkSpeed{0: mad.LinkSpeedQDR, 0x80: 0} {
		like := &mad.PortInfoRecord{EndportLID: 8, Options: options}
		status, rows := ask(t, s, "h1", request(t, mad.MethodGet, mad.AttrPortInfoRecord, like, "EndportLID", "Options"))
		if status != mad.StatusOK {
			t.Fatal(status)
		}
		var got mad.PortInfoRecord
		if err := got.UnmarshalBinary(rows[0]); err != nil {
			t.Fatal(err)
		}
		if got.PortInfo.LinkSpeedActive != want || got.PortInfo.LinkSpeedExtActive != mad.LinkSpeedExtHDR || got.Options != options {
			t.Errorf("options %#x: %v, %v, options %#x", options, got.PortInfo.LinkSpeedActive, got.PortInfo.LinkSpeedExtActive, got.Options)
		}
	}
}

// P_Keys are told to those that know the SM_Key (osm_sa_pkey_record.c).
func TestTrust(t *testing.T) {
	s := demo(t)
	req := request(t, mad.MethodGetTable, mad.AttrPKeyTableRecord, nil)
	if status, _ := ask(t, s, "h1", req); status != mad.StatusSAReqInvalid {
		t.Errorf("without SM_Key: %v", status)
	}
	if status, rows := ask(t, s, "h1", trusted(req)); status != mad.StatusOK || len(rows) == 0 {
		t.Errorf("with SM_Key: %v, %d records", status, len(rows))
	}
}

// A link shows to those that share a partition with both its ends.
func TestLinkPartitions(t *testing.T) {
	sub, err := topo.Parse("nodes.yaml", []byte(nodesYAML))
	s := broughtUp(t, sub, err)
	for from, want := range map[string]int{"a[1]": 4, "b": 0} {
		if _, rows := ask(t, s, from, request(t, mad.MethodGetTable, mad.AttrLinkRecord, nil)); len(rows) != want {
			t.Errorf("%s sees %d links, want %d", from, len(rows), want)
		}
	}
}

// What the subnet manager does not reach is not in the SA.
func TestUnreachedPorts(t *testing.T) {
	sub, err := topo.Parse("islands.yaml", []byte(`
nodes:
  - {name: a, kind: ca, ports: 2, port: {2: {lid: 7}}}
  - {name: b, kind: ca}
  - {name: c, kind: ca}
links: ["a[1] - b[1]", "a[2] - c[1]"]
`))
	s := broughtUp(t, sub, err)
	for attr, want := range map[mad.AttributeID]int{mad.AttrNodeRecord: 2, mad.AttrPortInfoRecord: 2, mad.AttrLinkRecord: 2} {
		if _, rows := ask(t, s, "a[1]", request(t, mad.MethodGetTable, attr, nil)); len(rows) != want {
			t.Errorf("%s: %d records, want %d", kinds[attr].layout.Name, len(rows), want)
		}
	}
	if status, _ := ask(t, s, "a[1]", request(t, mad.MethodGet, mad.AttrNodeRecord, &mad.NodeRecord{LID: 7}, "LID")); status != mad.StatusSANoRecords {
		t.Errorf("port of another subnet: %v", status)
	}
}
