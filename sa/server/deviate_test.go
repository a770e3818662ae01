package server

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// probes are requests whose answers a deviation can change, to be sent one after
// another.
func probes(t *testing.T, s *Server) (all [][]byte) {
	const get, table, set, del = mad.MethodGet, mad.MethodGetTable, mad.MethodSet, mad.MethodDelete
	add := func(method mad.Method, attr mad.AttributeID, like mad.Structure, fields ...string) []byte {
		req := request(t, method, attr, like, fields...)
		all = append(all, req)
		return req
	}
	gid := func(name string) mad.GID { return portOf(t, s, name).GID(s.sub.GIDPrefix) }
	lid := func(name string) mad.LID { return portOf(t, s, name).LID }

	between := mad.PathRecord{SGID: gid("h1"), DGID: gid("h8"), SLID: lid("h1"), DLID: lid("h8"), NumbPath: 1, PKey: 0xffff, Reversible: true}
	path := func(method mad.Method, change func(*mad.PathRecord), fields ...string) {
		rec := between
		change(&rec)
		add(method, mad.AttrPathRecord, &rec, fields...)
	}
	for _, fields := range [][]string{{"SGID", "DGID"}, {"SGID"}, {"DGID"}, {"SLID", "DLID"}, {"SLID"}, {"DLID"}, {"SGID", "NumbPath"}} {
		path(table, func(*mad.PathRecord) {}, fields...)
	}
	path(get, func(*mad.PathRecord) {}, "SGID", "DGID")
	path(get, func(r *mad.PathRecord) { r.DGID[15]++; r.DGID[14] = 9 }, "SGID", "DGID")
	path(get, func(r *mad.PathRecord) { r.SLID++ }, "SGID", "DGID", "SLID")
	path(get, func(r *mad.PathRecord) { r.MTU = 9 }, "SGID", "DGID", "MTU", "MTUSelector")
	path(table, func(r *mad.PathRecord) { r.MTU = mad.MTU256 }, "SGID", "DGID", "MTU")
	path(table, func(r *mad.PathRecord) { r.NumbPath = 0 }, "SGID", "DGID", "NumbPath")
	path(table, func(r *mad.PathRecord) { r.PKey = 0x8001 }, "SGID", "DGID", "P_Key")
	path(table, func(r *mad.PathRecord) { r.Preference = 3 }, "SGID", "DGID", "Preference")
	path(table, func(r *mad.PathRecord) {
		r.SL, r.TClass, r.FlowLabel, r.HopLimit, r.QoSClass, r.RawTraffic = 3, 4, 5, 6, 7, true
	},
		"SGID", "DGID", "SL", "TClass", "FlowLabel", "HopLimit", "QoSClass", "RawTraffic")
	for sel := mad.Selector(0); sel < 4; sel++ {
		for _, mtu := range []mad.MTU{mad.MTU1024, mad.MTU4096} {
			path(table, func(r *mad.PathRecord) { r.MTUSelector, r.MTU = sel, mtu }, "SGID", "DGID", "MTU", "MTUSelector")
		}
		for _, rate := range []mad.Rate{mad.Rate10G, mad.Rate100G, mad.Rate200G} {
			path(table, func(r *mad.PathRecord) { r.RateSelector, r.Rate = sel, rate }, "SGID", "DGID", "Rate", "RateSelector")
		}
		for _, life := range []uint8{17, 18, 19} {
			path(table, func(r *mad.PathRecord) { r.PacketLifeTimeSelector, r.PacketLifeTime = sel, life }, "SGID", "DGID", "PacketLifeTime", "PacketLifeTimeSelector")
		}
	}

	info := mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 12, NodeGUID: portOf(t, s, "h3").Node.GUID, PortGUID: portOf(t, s, "h3").GUID}
	node := mad.NodeRecord{LID: lid("h3"), NodeInfo: info, NodeDescription: mad.MakeNodeDescription("h4")}
	for _, field := range []string{"LID", "NodeType", "NumPorts", "NodeGUID", "PortGUID", "NodeString"} {
		add(table, mad.AttrNodeRecord, &node, field)
	}
	port := mad.PortInfoRecord{EndportLID: lid("s1"), PortNum: 3, PortInfo: mad.PortInfo{PortState: mad.PortStateActive, CapabilityMask: mad.CapIsSM}}
	for _, fields := range [][]string{{"EndportLID"}, {"EndportLID", "PortNum"}, {"PortState"}, {"PortInfo.CapabilityMask"}} {
		add(table, mad.AttrPortInfoRecord, &port, fields...)
	}
	add(table, mad.AttrPortInfoRecord, &port, "PortInfo.CapabilityMask")[mad.OffModifier] = 0x80
	link := mad.LinkRecord{FromLID: lid("s1"), FromPort: 1, ToLID: lid("s2"), ToPort: 11}
	add(table, mad.AttrLinkRecord, &link, "FromLID", "FromPort")
	add(table, mad.AttrLinkRecord, &link, "ToLID", "ToPort")
	add(table, mad.AttrSwitchInfoRecord, &mad.SwitchInfoRecord{LID: lid("s1")}, "LID")
	add(table, mad.AttrLinearForwardingTableRecord, &mad.LinearForwardingTableRecord{LID: lid("s1")}, "LID")
	add(table, mad.AttrLinearForwardingTableRecord, &mad.LinearForwardingTableRecord{BlockNum: 1}, "BlockNum")
	add(table, mad.AttrGUIDInfoRecord, &mad.GUIDInfoRecord{LID: lid("h3")}, "LID")
	add(table, mad.AttrSLtoVLMappingTableRecord, &mad.SLtoVLMappingTableRecord{LID: lid("s1"), InputPortNum: 1, OutputPortNum: 2}, "LID", "InputPortNum", "OutputPortNum")
	add(table, mad.AttrVLArbitrationTableRecord, &mad.VLArbitrationTableRecord{LID: lid("h3"), BlockNum: 1}, "LID", "BlockNum")
	add(table, mad.AttrSMInfoRecord, &mad.SMInfoRecord{LID: lid("h3")}, "LID")
	add(table, mad.AttrSMInfoRecord, nil)
	pkey := mad.PKeyTableRecord{LID: lid("h5"), BlockNum: 1}
	setSMKey(add(table, mad.AttrPKeyTableRecord, &pkey, "LID"), DefaultSMKey)
	setSMKey(add(table, mad.AttrPKeyTableRecord, &pkey, "BlockNum"), DefaultSMKey)
	add(table, mad.AttrPKeyTableRecord, &pkey, "LID")
	setSMKey(add(table, mad.AttrPKeyTableRecord, &pkey, "LID"), 99)
	add(get, mad.AttrNodeRecord, &mad.NodeRecord{NodeInfo: mad.NodeInfo{NodeType: mad.NodeTypeCA}}, "NodeType")
	add(get, mad.AttrNodeRecord, &mad.NodeRecord{LID: 0x700}, "LID")
	add(get, mad.AttrClassPortInfo, nil)
	add(table, mad.AttrClassPortInfo, nil)
	add(get, 0xff00, nil)
	add(0x13, mad.AttrNodeRecord, nil)
	add(get, mad.AttrClassPortInfo, nil)[mad.OffClassVersion] = 1

	service := mad.ServiceRecord{ServiceID: 7, ServiceGID: gid("h2"), ServicePKey: 0xffff, ServiceLease: 1, ServiceName: [64]byte{'a'}}
	other := service
	other.ServiceID, other.ServiceName[0] = 8, 'b'
	for _, rec := range []*mad.ServiceRecord{&service, &other} {
		add(set, mad.AttrServiceRecord, rec, "ServiceID", "ServiceGID", "ServiceP_Key", "ServiceName")
	}
	add(set, mad.AttrServiceRecord, &service, "ServiceID")
	add(table, mad.AttrServiceRecord, &service, "ServiceID")
	add(table, mad.AttrServiceRecord, &other, "ServiceName")
	add(del, mad.AttrServiceRecord, &service, "ServiceID", "ServiceGID", "ServiceP_Key")
	add(table, mad.AttrServiceRecord, nil)
	other.ServiceLease = 1
	add(set, mad.AttrServiceRecord, &other, "ServiceID", "ServiceGID", "ServiceP_Key", "ServiceName", "ServiceLease")
	add(table, mad.AttrServiceRecord, nil) // after the lease

	add(set, mad.AttrMCMemberRecord, newMember(s, "h2", transientGroup), creates...)
	add(set, mad.AttrMCMemberRecord, newMember(s, "h2", transientGroup), "MGID", "JoinState")
	member := newMember(s, "h2", transientGroup)
	member.QKey++
	add(set, mad.AttrMCMemberRecord, member, "MGID", "PortGID", "JoinState", "Q_Key")
	member.MLID = 0xc000
	for _, field := range []string{"MGID", "MLID", "P_Key", "JoinState"} {
		add(table, mad.AttrMCMemberRecord, member, field)
	}
	member.PKey = 0x8002
	add(table, mad.AttrMCMemberRecord, member, "P_Key")
	setSMKey(add(table, mad.AttrMCMemberRecord, nil), DefaultSMKey)
	add(del, mad.AttrMCMemberRecord, newMember(s, "h2", transientGroup), "MGID", "PortGID", "JoinState")
	add(table, mad.AttrMCMemberRecord, nil)
	return all
}

// outcomes answers all probes with some deviations on, a second between one and the
// next.
func outcomes(t *testing.T, on ...string) (got [][]byte) {
	synctest.Test(t, func(t *testing.T) {
		s := demo(t)
		for _, name := range on {
			if err := s.Deviate(name, true); err != nil {
				t.Fatal(err)
			}
		}
		for _, req := range probes(t, s) {
			got = append(got, s.deviate(portOf(t, s, "h1").LID, req))
			time.Sleep(time.Second)
		}
	})
	return got
}

func same(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

// TestDeviations: each can be noticed, and none is left when it is off.
func TestDeviations(t *testing.T) {
	plain := outcomes(t)
	if !same(plain, outcomes(t)) {
		t.Fatal("the outcomes differ without any deviation")
	}
	seen := map[string]bool{}
	for _, d := range Deviations() {
		if seen[d.Name] || d.Name != strings.ToLower(d.Name) || d.Breaks == "" || d.IBA == "" {
			t.Errorf("%+v", d)
		}
		seen[d.Name] = true
		on, without := []string{d.Name}, plain
		if d.Name == "busy-as-no-resources" { // shows only where somebody is busy
			on, without = append(on, "busy"), outcomes(t, "busy")
		}
		if same(without, outcomes(t, on...)) {
			t.Errorf("%s is not noticed", d.Name)
		}
	}
	if len(seen) < 45 {
		t.Errorf("%d deviations", len(seen))
	}
	s := demo(t)
	for _, on := range []bool{true, false} {
		for _, d := range Deviations() {
			if err := s.Deviate(d.Name, on); err != nil {
				t.Fatal(err)
			}
		}
	}
	req := request(t, mad.MethodGetTable, mad.AttrNodeRecord, nil)
	if from := portOf(t, s, "h1").LID; !bytes.Equal(s.deviate(from, req), s.answer(from, req)) {
		t.Error("the answer differs with every deviation off")
	}
	if err := s.Deviate("nothing", true); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("unknown: %v", err)
	}
}
