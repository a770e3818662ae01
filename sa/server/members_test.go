package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// creates are the components that make a group.
var creates = []string{"MGID", "PortGID", "JoinState", "Q_Key", "P_Key", "TClass", "SL", "FlowLabel"}

var transientGroup = mad.GID{0xff, 0x12, 15: 1}

// newMember is a port that makes a group.
func newMember(s *Server, host string, mgid mad.GID) *mad.MCMemberRecord {
	p, _ := s.sub.PortByName(host)
	return &mad.MCMemberRecord{MGID: mgid, PortGID: p.GID(s.sub.GIDPrefix), JoinState: mad.JoinFullMember, QKey: 0x1234, PKey: mad.DefaultPKey,
		TClass: 3, FlowLabel: 5}
}

// askMembers sends a request about members of groups.
func askMembers(t testing.TB, s *Server, from string, req []byte) (mad.Status, []mad.MCMemberRecord) {
	t.Helper()
	status, rows := split(t, req, s.answer(portOf(t, s, from).LID, req), mad.MCMemberRecordSize)
	recs := make([]mad.MCMemberRecord, len(rows))
	for i, row := range rows {
		if err := recs[i].UnmarshalBinary(row); err != nil {
			t.Fatal(err)
		}
	}
	return status, recs
}

// joined makes a port a member, and fails if it cannot be.
func joined(t testing.TB, s *Server, host string, change func(*mad.MCMemberRecord), more ...string) mad.MCMemberRecord {
	t.Helper()
	rec := newMember(s, host, transientGroup)
	change(rec)
	status, recs := askMembers(t, s, host, request(t, mad.MethodSet, mad.AttrMCMemberRecord, rec, append(more, creates...)...))
	if status != mad.StatusOK {
		t.Fatalf("%s joins %v: %v", host, rec.MGID, status)
	}
	return recs[0]
}

// A query without the SM_Key gets a record for each group, or each group that the
// named port is in; with it, one for each member, or for the named one
// (osm_sa_mcmember_record.c, mcmr_by_comp_mask; IBA 15.4.1.2).
func TestMemberQueries(t *testing.T) {
	s := demo(t)
	as := func(mgid byte, state mad.JoinState) func(*mad.MCMemberRecord) {
		return func(r *mad.MCMemberRecord) { r.MGID[15], r.JoinState = mgid, state }
	}
	joined(t, s, "h1", as(1, 1))
	joined(t, s, "h2", as(1, 6))
	joined(t, s, "h4", as(1, 1))
	joined(t, s, "h1", func(r *mad.MCMemberRecord) {
		*r = mad.MCMemberRecord{MGID: r.MGID, PortGID: r.PortGID, JoinState: 1, QKey: 7, PKey: 0x8001, TClass: 4, SL: 2, FlowLabel: 6, HopLimit: 8,
			MTUSelector: 2, MTU: 2, RateSelector: 2, Rate: mad.Rate40G, PacketLifeTimeSelector: 2, PacketLifeTime: 12, MLID: 0xc100}
		r.MGID[1], r.MGID[15] = 0x1e, 2
	}, "HopLimit", "MTU", "MTUSelector", "Rate", "RateSelector", "PacketLifeTime", "PacketLifeTimeSelector", "MLID")
	h1, h2 := portOf(t, s, "h1").GID(s.sub.GIDPrefix), portOf(t, s, "h2").GID(s.sub.GIDPrefix)
	one, two := transientGroup, mad.GID{0xff, 0x1e, 15: 2}
	tests := []struct {
		like mad.MCMemberRecord
		by   string // components
		// The groups in the order of their MGIDs, 0 for that of IPoIB; and the members
		// that one with the SM_Key is told of, by group and host.
		groups, members string
	}{
		{mad.MCMemberRecord{}, "", "1 0 2", "11 12 14 21"},
		{mad.MCMemberRecord{MGID: two}, "MGID", "2", "21"},
		{mad.MCMemberRecord{MGID: one}, "MGID", "1", "11 12 14"},
		{mad.MCMemberRecord{PortGID: h1}, "PortGID", "1 2", "11 21"},
		{mad.MCMemberRecord{PortGID: h2}, "PortGID", "1", "12"},
		{mad.MCMemberRecord{PortGID: mad.GID{0xfe}}, "PortGID", "", ""},
		{mad.MCMemberRecord{MGID: two, PortGID: h2}, "MGID PortGID", "", ""},
		{mad.MCMemberRecord{QKey: 7}, "Q_Key", "2", "21"},
		{mad.MCMemberRecord{QKey: 0x0b1b}, "Q_Key", "0", ""},
		{mad.MCMemberRecord{MLID: 0xc000}, "MLID", "0", ""},
		{mad.MCMemberRecord{MLID: 0xc100}, "MLID", "2", "21"},
		{mad.MCMemberRecord{TClass: 3}, "TClass", "1", "11 12 14"},
		{mad.MCMemberRecord{PKey: 0x8001}, "P_Key", "2", "21"},
		{mad.MCMemberRecord{PKey: 0x0001}, "P_Key", "2", "21"},
		{mad.MCMemberRecord{PKey: 0x8002}, "P_Key", "", ""},
		{mad.MCMemberRecord{SL: 2}, "SL", "2", "21"},
		{mad.MCMemberRecord{FlowLabel: 5}, "FlowLabel", "1", "11 12 14"},
		{mad.MCMemberRecord{HopLimit: 8}, "HopLimit", "2", "21"},
		{mad.MCMemberRecord{Scope: 14}, "Scope", "2", "21"},
		{mad.MCMemberRecord{Scope: 2}, "Scope", "1 0", "11 12 14"},
		{mad.MCMemberRecord{JoinState: 6}, "JoinState", "", "12"},
		{mad.MCMemberRecord{JoinState: 1}, "JoinState", "1 0 2", "11 14 21"},
		{mad.MCMemberRecord{PortGID: h2, JoinState: 6}, "PortGID JoinState", "1", "12"},
		{mad.MCMemberRecord{PortGID: h2, JoinState: 2}, "PortGID JoinState", "", ""},
		{mad.MCMemberRecord{ProxyJoin: true}, "ProxyJoin", "", ""},
		{mad.MCMemberRecord{}, "ProxyJoin", "1 0 2", "11 12 14 21"},
		{mad.MCMemberRecord{MTUSelector: 2, MTU: 4}, "MTUSelector MTU", "0", ""},
		{mad.MCMemberRecord{MTUSelector: 0, MTU: 4}, "MTUSelector MTU", "1", "11 12 14"},
		{mad.MCMemberRecord{MTUSelector: 1, MTU: 4}, "MTUSelector MTU", "2", "21"},
		{mad.MCMemberRecord{MTUSelector: 3, MTU: 4}, "MTUSelector MTU", "1 0 2", "11 12 14 21"},
		{mad.MCMemberRecord{MTUSelector: 2, MTU: 4}, "MTU", "1 0 2", "11 12 14 21"},
		{mad.MCMemberRecord{RateSelector: 2, Rate: mad.Rate40G}, "RateSelector Rate", "2", "21"},
		{mad.MCMemberRecord{RateSelector: 0, Rate: mad.Rate40G}, "RateSelector Rate", "1", "11 12 14"},
		{mad.MCMemberRecord{RateSelector: 1, Rate: mad.Rate40G}, "RateSelector Rate", "0", ""},
		{mad.MCMemberRecord{PacketLifeTimeSelector: 2, PacketLifeTime: 12}, "PacketLifeTimeSelector PacketLifeTime", "2", "21"},
		{mad.MCMemberRecord{PacketLifeTimeSelector: 0, PacketLifeTime: 12}, "PacketLifeTimeSelector PacketLifeTime", "1 0", "11 12 14"},
	}
	names := map[mad.GID]string{one: "1", two: "2", broadcast(mad.ScopeLinkLocal, mad.DefaultPKey): "0"}
	for _, tt := range tests {
		req := request(t, mad.MethodGetTable, mad.AttrMCMemberRecord, &tt.like, strings.Fields(tt.by)...)
		status, recs := askMembers(t, s, "h3", req)
		var groups, members []string
		for _, rec := range recs {
			groups = append(groups, names[rec.MGID])
			if !rec.PortGID.IsZero() || rec.JoinState != 0 || rec.ProxyJoin {
				t.Errorf("%s: tells one without SM_Key %+v", tt.by, rec)
			}
		}
		_, recs = askMembers(t, s, "h3", trusted(req))
		for _, rec := range recs {
			p, _ := s.sub.PortByGID(rec.PortGID)
			members = append(members, names[rec.MGID]+strings.TrimPrefix(p.Node.Name, "h"))
		}
		if got := strings.Join(groups, " "); status != mad.StatusOK || got != tt.groups {
			t.Errorf("by %s: groups %q, want %q (%v)", tt.by, got, tt.groups, status)
		}
		if got := strings.Join(members, " "); got != tt.members {
			t.Errorf("by %s: members %q, want %q", tt.by, got, tt.members)
		}
	}
	for _, bad := range []struct {
		like mad.MCMemberRecord
		by   []string
	}{
		{mad.MCMemberRecord{MTU: 6}, []string{"MTUSelector", "MTU"}},
		{mad.MCMemberRecord{Rate: 1}, []string{"RateSelector", "Rate"}},
	} {
		if status, _ := askMembers(t, s, "h3", request(t, mad.MethodGet, mad.AttrMCMemberRecord, &bad.like, bad.by...)); status != mad.StatusSAReqInvalid {
			t.Errorf("by %v: %v", bad.by, status)
		}
	}
	s.cfg.MaxRecords = 2
	if status, _ := askMembers(t, s, "h3", request(t, mad.MethodGetTable, mad.AttrMCMemberRecord, nil)); status != mad.StatusSANoResources {
		t.Errorf("3 groups where 2 are allowed: %v", status)
	}
}

// A group is for the ports of its partition, full and limited members, whose links
// carry as much as it does.
func TestMemberPorts(t *testing.T) {
	s := demo(t)
	group := joined(t, s, "h1", func(r *mad.MCMemberRecord) { r.PKey = 0x8001 })
	if group.MTU != mad.MTU4096 || group.Rate != mad.Rate100G || group.PacketLifeTime != 18 || group.MLID != 0xc001 {
		t.Errorf("made %+v", group)
	}
	for host, want := range map[string]mad.Status{
		"h2": mad.StatusOK,           // full member
		"h5": mad.StatusOK,           // limited member
		"h3": mad.StatusSAReqInvalid, // 56 Gb/s
		"h8": mad.StatusSAReqInvalid, // in another partition
	} {
		rec := newMember(s, host, group.MGID)
		if status, _ := askMembers(t, s, host, request(t, mad.MethodSet, mad.AttrMCMemberRecord, rec, "MGID", "PortGID", "JoinState")); status != want {
			t.Errorf("%s joins: %v, want %v", host, status, want)
		}
	}
	byMGID := request(t, mad.MethodGet, mad.AttrMCMemberRecord, &group, "MGID")
	for host, want := range map[string]mad.Status{"h4": mad.StatusOK, "h6": mad.StatusOK, "h8": mad.StatusSANoRecords} {
		if status, _ := askMembers(t, s, host, byMGID); status != want {
			t.Errorf("%s asks for the group: %v, want %v", host, status, want)
		}
	}
	// h8 has no partition in common with one that is only in another.
	portOf(t, s, "h2").PKeys = []mad.PKey{0x8001}
	rec := newMember(s, "h2", mad.GID{0xff, 0x12, 15: 9})
	if status, _ := askMembers(t, s, "h8", request(t, mad.MethodSet, mad.AttrMCMemberRecord, rec, creates...)); status != mad.StatusSAReqInvalid {
		t.Errorf("h8 joins h2: %v", status)
	}
}

// The switches of the model have room for 4096 groups (sma: MulticastFDBCap).
func TestLastMLID(t *testing.T) {
	if s := demo(t); s.groups.lastLID != 0xcfff {
		t.Errorf("last MLID %v, want 0xcfff", s.groups.lastLID)
	}
	sub, err := topo.Parse("pair.yaml", []byte("nodes: [{name: a, kind: ca}, {name: b, kind: ca}]\nlinks: [\"a[1] - b[1]\"]\n"))
	s := broughtUp(t, sub, err)
	if s.groups.lastLID != 0xfffe { // IBA 4.1.3
		t.Errorf("last MLID without a switch %v, want 0xfffe", s.groups.lastLID)
	}
	s.groups.lastLID = 0xc002
	for i, want := range []mad.Status{mad.StatusOK, mad.StatusOK, mad.StatusSANoResources, mad.StatusSANoResources} {
		rec := newMember(s, "a", mad.GID{0xff, 0x12, 14: 1, 15: byte(i)})
		rec.MLID = 0xc003 // cannot be had
		req := request(t, mad.MethodSet, mad.AttrMCMemberRecord, rec, append([]string{"MLID"}, creates...)...)
		if status, _ := askMembers(t, s, "a", req); status != want {
			t.Errorf("group %d: %v, want %v", i, status, want)
		}
	}
}

// An MGID of the server's own has the scope asked for, the SA's signature, the
// subnet's prefix and a number of its own (IBA 15.2.5.17), also where it has been
// taken meanwhile.
func TestOwnMGID(t *testing.T) {
	s := demo(t)
	joined(t, s, "h1", func(r *mad.MCMemberRecord) {
		r.MGID = mad.GID{0xff, 0x15, 0xa0, 0x1b, 0xfe, 0x80, 15: 2}
	})
	for i, tt := range []struct {
		scope mad.MulticastScope
		with  []string
		want  mad.GID
		hops  uint8
	}{
		{mad.ScopeSiteLocal, nil, mad.GID{0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80, 15: 1}, 0},
		{mad.ScopeSiteLocal, []string{"Scope"}, mad.GID{0xff, 0x15, 0xa0, 0x1b, 0xfe, 0x80, 15: 3}, 255},
		{mad.ScopeLinkLocal, []string{"Scope"}, mad.GID{0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80, 15: 4}, 0},
	} {
		rec := joined(t, s, "h1", func(r *mad.MCMemberRecord) { r.MGID, r.Scope = mad.GID{}, tt.scope }, tt.with...)
		if rec.MGID != tt.want || rec.HopLimit != tt.hops || rec.Scope != mad.MulticastScope(tt.want[1]&0xf) {
			t.Errorf("%d: made %+v, want MGID %v, hop limit %d", i, rec, tt.want, tt.hops)
		}
	}
}

// A member that another port joined says so to one who has the SM_Key.
func TestProxyJoin(t *testing.T) {
	s := demo(t)
	joined(t, s, "h1", func(*mad.MCMemberRecord) {})
	rec := newMember(s, "h2", transientGroup)
	if status, _ := askMembers(t, s, "h1", request(t, mad.MethodSet, mad.AttrMCMemberRecord, rec, creates...)); status != mad.StatusOK {
		t.Fatal(status)
	}
	req := trusted(request(t, mad.MethodGetTable, mad.AttrMCMemberRecord, &mad.MCMemberRecord{ProxyJoin: true}, "ProxyJoin"))
	if _, recs := askMembers(t, s, "h8", req); len(recs) != 1 || recs[0].PortGID != rec.PortGID || !recs[0].ProxyJoin {
		t.Errorf("got %+v", recs)
	}
}

// The life time of a new group's packets is as the selector says, from the
// subnet's 18 on.
func TestGroupLife(t *testing.T) {
	const greater, less, exactly, best = mad.SelectorGreaterThan, mad.SelectorLessThan, mad.SelectorExactly, mad.SelectorBest
	for _, tt := range []struct {
		sel    mad.Selector
		v      uint8
		want   uint8
		status mad.Status
	}{
		{greater, 20, 21, mad.StatusOK}, {greater, 5, 18, mad.StatusOK}, {greater, 63, 0, mad.StatusSAReqInvalid},
		{less, 18, 17, mad.StatusOK}, {less, 30, 18, mad.StatusOK}, {less, 0, 0, mad.StatusSAReqInvalid},
		{exactly, 3, 3, mad.StatusOK}, {best, 3, 18, mad.StatusOK},
	} {
		s := demo(t)
		rec := newMember(s, "h1", transientGroup)
		rec.PacketLifeTimeSelector, rec.PacketLifeTime = tt.sel, tt.v
		req := request(t, mad.MethodSet, mad.AttrMCMemberRecord, rec, append([]string{"PacketLifeTimeSelector", "PacketLifeTime"}, creates...)...)
		status, recs := askMembers(t, s, "h1", req)
		if status != tt.status || status == mad.StatusOK && recs[0].PacketLifeTime != tt.want {
			t.Errorf("%v %d: %v, %+v; want %v and %d", tt.sel, tt.v, status, recs, tt.status, tt.want)
		}
	}
}

// The path to a group is what the group is, for its members
// (osm_sa_path_record.c, pr_process_multicast).
func TestGroupPath(t *testing.T) {
	s := demo(t)
	group := joined(t, s, "h1", func(r *mad.MCMemberRecord) { r.PKey, r.SL, r.HopLimit = 0x8001, 2, 9 }, "HopLimit")
	h1, h2 := portOf(t, s, "h1"), portOf(t, s, "h2")
	tests := []struct {
		from string
		like mad.PathRecord
		by   string
		ok   bool
	}{
		{"h1", mad.PathRecord{}, "", true},
		{"h1", mad.PathRecord{SGID: h1.GID(s.sub.GIDPrefix), SLID: h1.LID, DLID: group.MLID, PKey: 0x8001, SL: 2, TClass: 3, FlowLabel: 5, HopLimit: 9, Reversible: true},
			"SGID SLID DLID P_Key SL TClass FlowLabel HopLimit Reversible", true},
		{"h8", mad.PathRecord{}, "", false}, // is not in the partition
		{"h1", mad.PathRecord{SGID: h2.GID(s.sub.GIDPrefix)}, "SGID", false},
		{"h1", mad.PathRecord{SLID: h2.LID}, "SLID", false},
		{"h1", mad.PathRecord{SLID: 0x4444}, "SLID", false},
		{"h1", mad.PathRecord{DLID: 0xc000}, "DLID", false},
		{"h1", mad.PathRecord{PKey: 0xffff}, "P_Key", false},
		{"h1", mad.PathRecord{SL: 1}, "SL", false},
		{"h1", mad.PathRecord{TClass: 1}, "TClass", false},
		{"h1", mad.PathRecord{FlowLabel: 1}, "FlowLabel", false},
		{"h1", mad.PathRecord{HopLimit: 1}, "HopLimit", false},
		{"h1", mad.PathRecord{}, "NumbPath", false},
		{"h1", mad.PathRecord{MTUSelector: mad.SelectorExactly, MTU: mad.MTU4096}, "MTU MTUSelector", true},
		{"h1", mad.PathRecord{MTUSelector: mad.SelectorLessThan, MTU: mad.MTU4096}, "MTU MTUSelector", false},
		{"h1", mad.PathRecord{RateSelector: mad.SelectorGreaterThan, Rate: mad.Rate56G}, "Rate RateSelector", true},
		{"h1", mad.PathRecord{RateSelector: mad.SelectorGreaterThan, Rate: mad.Rate100G}, "Rate RateSelector", false},
		{"h1", mad.PathRecord{PacketLifeTimeSelector: mad.SelectorLessThan, PacketLifeTime: 18}, "PacketLifeTime PacketLifeTimeSelector", false},
	}
	for _, tt := range tests {
		tt.like.DGID = group.MGID
		_, recs := askPaths(t, s, tt.from, mad.MethodGetTable, &tt.like, strings.Fields("DGID "+tt.by)...)
		if !tt.ok {
			if len(recs) != 0 {
				t.Errorf("%s by %s: got %+v", tt.from, tt.by, recs)
			}
			continue
		}
		want := mad.PathRecord{DGID: group.MGID, DLID: group.MLID, PKey: 0x8001, SL: 2, TClass: 3, FlowLabel: 5, HopLimit: 9,
			MTUSelector: 2, MTU: 5, RateSelector: 2, Rate: mad.Rate100G, PacketLifeTimeSelector: 2, PacketLifeTime: 18,
			SGID: tt.like.SGID, SLID: tt.like.SLID, Reversible: tt.like.Reversible}
		if len(recs) != 1 || recs[0] != want {
			t.Errorf("%s by %s: got %+v\nwant %+v", tt.from, tt.by, recs, want)
		}
	}
	if status, _ := askPaths(t, s, "h1", mad.MethodGet, &mad.PathRecord{DGID: mad.GID{0xff, 0x12, 15: 77}}, "DGID"); status != mad.StatusSANoRecords {
		t.Errorf("to no group: %v", status)
	}
}

// Several requests are served at a time.
func TestMembersConcurrently(t *testing.T) {
	s := demo(t)
	const n = 50
	var requests, answers [n][]byte
	var made [n]mad.MCMemberRecord
	for i := range n {
		requests[i] = request(t, mad.MethodSet, mad.AttrMCMemberRecord, newMember(s, fmt.Sprintf("h%d", 1+i%2), mad.GID{}), creates...)
	}
	table := request(t, mad.MethodGetTable, mad.AttrMCMemberRecord, nil)
	lids := [2]mad.LID{portOf(t, s, "h1").LID, portOf(t, s, "h2").LID}
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			answers[i] = s.answer(lids[i%2], requests[i])
			s.answer(lids[0], table)
		})
	}
	wait.Wait()
	for i := range n {
		status, rows := split(t, requests[i], answers[i], mad.MCMemberRecordSize)
		if status != mad.StatusOK {
			t.Fatal(status)
		}
		if err := made[i].UnmarshalBinary(rows[0]); err != nil {
			t.Fatal(err)
		}
	}
	byMLID := func(a, b mad.MCMemberRecord) int { return int(a.MLID) - int(b.MLID) }
	slices.SortFunc(made[:], byMLID)
	for i, rec := range made {
		if rec.MLID != mad.LID(0xc001+i) {
			t.Fatalf("MLID %d is %v", i, rec.MLID)
		}
	}
	for _, rec := range made {
		req := request(t, mad.MethodDelete, mad.AttrMCMemberRecord, &rec, "MGID", "PortGID", "JoinState")
		p, _ := s.sub.PortByGID(rec.PortGID)
		if status, _ := askMembers(t, s, p.Node.Name, req); status != mad.StatusOK {
			t.Fatal(status)
		}
	}
	if left := len(s.groups.byMGID); left != 1 {
		t.Errorf("%d groups are left, want that of IPoIB", left)
	}
}
