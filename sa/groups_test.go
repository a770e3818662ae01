package sa

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/ibsim/ibsimtest"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// Ways of being a member, as in the JoinState of IBA 15.2.5.17.
const full, non, sends, sendsFull = mad.JoinFullMember, mad.JoinNonMember, mad.JoinSendOnlyNonMember, mad.JoinSendOnlyFullMember

// groupStep is a request of a port about a multicast group, and what an SA says to
// it.
type groupStep struct {
	what   string
	host   int        // who asks
	method mad.Method // MethodGet, MethodSet or MethodDelete
	of     mad.GID    // PortGID
	rec    mad.MCMemberRecord
	with   string // components beside MGID, PortGID and JoinState
	lacks  string // which of these does not count

	status mad.Status
	state  mad.JoinState // what is left or made of it
	group  func(mad.MCMemberRecord) mad.MCMemberRecord
	// opensm is what OpenSM does otherwise. Why is in the name of the step.
	opensm *outcome
}

// outcome is a status and a JoinState.
type outcome struct {
	status mad.Status
	state  mad.JoinState
}

// hostGID is the GID of a host of ibsimtest.TwoLevel.
func hostGID(n int) mad.GID { return mad.MakeGID(mad.DefaultGIDPrefix, mad.GUID(0x100001+16*n)) }

// groupSteps are the life of some groups on a fabric of ports of 10 Gb/s and 2048
// bytes. The values are those of IBA 15.2.5.17 and of OpenSM
// (osm_sa_mcmember_record.c, osm_multicast.c), which is asked the same.
func groupSteps(t *testing.T) []groupStep {
	gid := func(s string) mad.GID { return gid(t, s) }
	const (
		get, set, del = mad.MethodGet, mad.MethodSet, mad.MethodDelete

		invalid, few, none, badGID, many = mad.StatusSAReqInvalid, mad.StatusSAInsufficientComponents, mad.StatusSANoRecords,
			mad.StatusSAInvalidGID, mad.StatusSATooManyRecords

		creates   = "Q_Key P_Key TClass SL FlowLabel "
		mtu, rate = "MTU MTUSelector ", "Rate RateSelector "
		life      = "PacketLifeTime PacketLifeTimeSelector "

		greater, less, exactly, best = mad.SelectorGreaterThan, mad.SelectorLessThan, mad.SelectorExactly, mad.SelectorBest
	)
	a, b, all := gid("ff12:1::1"), gid("ff12:1::2"), gid("ff12:401b:ffff::ffff:ffff")
	like := func(mgid mad.GID, state mad.JoinState, change ...func(*mad.MCMemberRecord)) mad.MCMemberRecord {
		rec := mad.MCMemberRecord{MGID: mgid, JoinState: state, QKey: 0x1234, PKey: mad.DefaultPKey, TClass: 3, FlowLabel: 5}
		for _, f := range change {
			f(&rec)
		}
		return rec
	}
	bounds := func(selMTU mad.Selector, mtu mad.MTU, selRate mad.Selector, rate mad.Rate) func(*mad.MCMemberRecord) {
		return func(r *mad.MCMemberRecord) {
			r.MTUSelector, r.MTU, r.RateSelector, r.Rate = selMTU, mtu, selRate, rate
		}
	}
	ipoib := func(r *mad.MCMemberRecord) { r.QKey, r.TClass, r.FlowLabel = 0x0b1b, 0, 0 }
	group := func(mlid mad.LID, mtu mad.MTU, rate mad.Rate) func(mad.MCMemberRecord) mad.MCMemberRecord {
		return func(r mad.MCMemberRecord) mad.MCMemberRecord {
			r.MLID, r.MTU, r.Rate = mlid, mtu, rate
			return r
		}
	}
	h2, h3, h4 := hostGID(2), hostGID(3), hostGID(4)
	return []groupStep{
		// Joining what there is not.
		{what: "no PortGID", host: 2, method: set, of: h2, rec: like(a, full), lacks: "PortGID", status: few},
		{what: "no MGID", host: 2, method: set, of: h2, rec: like(a, full), lacks: "MGID", status: few},
		{what: "no JoinState", host: 2, method: set, of: h2, rec: like(a, full), with: creates, lacks: "JoinState", status: few},
		{what: "join an unknown group", host: 2, method: set, of: h2, rec: like(a, full), status: few},
		{what: "make one as a non-member", host: 2, method: set, of: h2, rec: like(a, non), with: creates, status: invalid},
		{what: "make one as a sender", host: 2, method: set, of: h2, rec: like(a, sends), with: creates, status: invalid},
		{what: "make one as nothing", host: 2, method: set, of: h2, rec: like(a, 0), with: creates, status: invalid},
		{what: "leave an unknown group", host: 2, method: del, of: h2, rec: like(a, full), status: invalid},

		// A group and its members.
		{what: "make a", host: 2, method: set, of: h2, rec: like(a, full), with: creates, state: full, group: group(0xc001, mad.MTU2048, mad.Rate10G)},
		{what: "make a again", host: 2, method: set, of: h2, rec: like(a, full), with: creates, state: full, group: group(0xc001, mad.MTU2048, mad.Rate10G)},
		{what: "a to all", host: 5, method: get, rec: like(a, 0), lacks: "PortGID JoinState", group: group(0xc001, mad.MTU2048, mad.Rate10G)},
		{what: "a with another Q_Key", host: 5, method: get, rec: like(a, 0, ipoib), with: "Q_Key", lacks: "PortGID JoinState", status: none},
		{what: "h2 in a", host: 5, method: get, of: h2, rec: like(a, full), lacks: "JoinState", group: group(0xc001, mad.MTU2048, mad.Rate10G)},
		{what: "h3 in a", host: 5, method: get, of: h3, rec: like(a, full), lacks: "JoinState", status: none},
		{what: "h3 as a non-member", host: 3, method: set, of: h3, rec: like(a, non), state: non, group: group(0xc001, mad.MTU2048, mad.Rate10G)},
		{what: "h3 as a sender too", host: 3, method: set, of: h3, rec: like(a, sends), state: non | sends},
		{what: "h3 as nothing", host: 3, method: set, of: h3, rec: like(a, 0), status: invalid},
		{what: "another Q_Key", host: 3, method: set, of: h3, rec: like(a, full, ipoib), with: "Q_Key", status: invalid},
		{what: "another TClass", host: 3, method: set, of: h3, rec: like(a, full, ipoib), with: "TClass", status: invalid},
		{what: "another FlowLabel", host: 3, method: set, of: h3, rec: like(a, full, ipoib), with: "FlowLabel", status: invalid},
		{what: "another SL", host: 3, method: set, of: h3, rec: like(a, full, func(r *mad.MCMemberRecord) { r.SL = 1 }), with: "SL", status: invalid},
		{what: "another HopLimit", host: 3, method: set, of: h3, rec: like(a, full, func(r *mad.MCMemberRecord) { r.HopLimit = 9 }), with: "HopLimit", status: invalid},
		{what: "another P_Key", host: 3, method: set, of: h3, rec: like(a, full, func(r *mad.MCMemberRecord) { r.PKey = 0x8001 }), with: "P_Key", status: invalid},
		{what: "P_Key 0", host: 3, method: set, of: h3, rec: like(a, full, func(r *mad.MCMemberRecord) { r.PKey = 0x8000 }), with: "P_Key", status: invalid},
		{what: "the limited P_Key", host: 3, method: set, of: h3, rec: like(a, non, func(r *mad.MCMemberRecord) { r.PKey = 0x7fff }), with: "P_Key", state: non | sends},
		{what: "MTU above 2048", host: 3, method: set, of: h3, rec: like(a, non, bounds(greater, mad.MTU2048, 0, 0)), with: mtu, status: invalid},
		{what: "MTU below 4096", host: 3, method: set, of: h3, rec: like(a, non, bounds(less, mad.MTU4096, 0, 0)), with: mtu, state: non | sends},
		{what: "an MTU that is none", host: 3, method: set, of: h3, rec: like(a, non, bounds(less, 9, 0, 0)), with: mtu, status: invalid},
		{what: "MTU without its selector", host: 3, method: set, of: h3, rec: like(a, non, bounds(exactly, mad.MTU256, 0, 0)), with: "MTU", state: non | sends},
		{what: "rate 5", host: 3, method: set, of: h3, rec: like(a, non, bounds(0, 0, exactly, mad.Rate5G)), with: rate, status: invalid},
		{what: "rate below 2.5", host: 3, method: set, of: h3, rec: like(a, non, bounds(0, 0, less, mad.Rate2_5G)), with: rate, status: invalid},
		{what: "a rate that is none", host: 3, method: set, of: h3, rec: like(a, non, bounds(0, 0, less, 60)), with: rate, status: invalid},
		{what: "another life time, which OpenSM does not look at", host: 3, method: set, of: h3, rec: like(a, non, func(r *mad.MCMemberRecord) {
			r.PacketLifeTime, r.PacketLifeTimeSelector = 30, greater
		}), with: life, status: invalid, opensm: &outcome{state: non | sends}},
		{what: "a scope and an MLID, which count only for a new group", host: 3, method: set, of: h3, rec: like(a, non, func(r *mad.MCMemberRecord) {
			r.Scope, r.MLID = mad.ScopeGlobal, 0xc123
		}), with: "Scope MLID", state: non | sends},

		// Who may join others, and take them away.
		{what: "h2 for h4", host: 2, method: set, of: h4, rec: like(a, full), state: full},
		{what: "h3 for h2, who joined by itself", host: 3, method: set, of: h2, rec: like(a, non), status: invalid},
		{what: "h3 for h4, who was joined", host: 3, method: set, of: h4, rec: like(a, non), state: full | non},
		{what: "h4 itself", host: 4, method: set, of: h4, rec: like(a, sends), state: full | non | sends},
		{what: "a port of another subnet", host: 2, method: set, of: gid("fec0::1234"), rec: like(a, full), status: badGID},
		{what: "no such port", host: 2, method: set, of: gid("fe80::1234"), rec: like(a, full), status: invalid},

		// Leaving.
		{what: "h3 is no full member", host: 3, method: del, of: h3, rec: like(a, full), status: invalid},
		{what: "h3 is less than that", host: 3, method: del, of: h3, rec: like(a, full|non), status: invalid},
		{what: "no way of being a member", host: 3, method: del, of: h3, rec: like(a, 0), status: invalid},
		{what: "leave without JoinState", host: 3, method: del, of: h3, rec: like(a, non), lacks: "JoinState", status: few},
		{what: "leave with an MTU that is none", host: 3, method: del, of: h3, rec: like(a, non, bounds(less, 9, 0, 0)), with: mtu, status: invalid},
		{what: "h3 is a sender still", host: 3, method: del, of: h3, rec: like(a, non), state: sends},
		{what: "h3 takes h2 away", host: 3, method: del, of: h2, rec: like(a, full), status: invalid},
		{what: "h3 takes h4 away", host: 3, method: del, of: h4, rec: like(a, full|non|sends), state: 0},
		{what: "leave from another subnet", host: 2, method: del, of: gid("fec0::1234"), rec: like(a, full), status: badGID},
		{what: "no such port leaves", host: 2, method: del, of: gid("fe80::1234"), rec: like(a, full), status: invalid},
		{what: "the last full member", host: 2, method: del, of: h2, rec: like(a, full), state: 0},
		{what: "a has ended", host: 2, method: get, rec: like(a, 0), lacks: "PortGID JoinState", status: none},
		{what: "and h3 is in nothing", host: 3, method: del, of: h3, rec: like(a, sends), status: invalid},

		// What a new group may be called.
		{what: "a unicast GID", host: 2, method: set, of: h2, rec: like(gid("fe80::1"), full), with: creates, status: invalid},
		{what: "reserved flags", host: 2, method: set, of: h2, rec: like(gid("fff2::1"), full), with: creates, status: invalid},
		{what: "as the SA names its own", host: 2, method: set, of: h2, rec: like(gid("ff12:a01b::1"), full), with: creates, status: invalid},
		{what: "so, but global", host: 2, method: set, of: h2, rec: like(gid("ff1e:a01b::1"), full), with: creates, state: full, group: group(0xc001, mad.MTU2048, mad.Rate10G)},
		{what: "IPoIB, unlike the broadcast group", host: 2, method: set, of: h2, rec: like(gid("ff12:401b:ffff::1"), full), with: creates, status: invalid},
		{what: "IPoIB", host: 2, method: set, of: h2, rec: like(gid("ff12:601b:ffff::1"), full, ipoib), with: creates, state: full, group: group(0xc002, mad.MTU2048, mad.Rate10G)},
		{what: "IPoIB without a broadcast group", host: 2, method: set, of: h2, rec: like(gid("ff12:601b:8001::1"), full, ipoib), with: creates, status: invalid},
		{what: "broadcasts in a partition without h2", host: 2, method: set, of: h2, rec: like(gid("ff12:401b:8001::ffff:ffff"), full, func(r *mad.MCMemberRecord) { r.PKey = 0x8001 }),
			with: creates, status: invalid},
		{what: "the first MLID is free again", host: 2, method: del, of: h2, rec: like(gid("ff1e:a01b::1"), full)},
		{what: "and taken", host: 2, method: set, of: h2, rec: like(b, full), with: creates, state: full, group: group(0xc001, mad.MTU2048, mad.Rate10G)},
		{what: "", host: 2, method: del, of: h2, rec: like(b, full)},

		// What it may carry.
		{what: "MTU 4096", host: 2, method: set, of: h2, rec: like(b, full, bounds(exactly, mad.MTU4096, 0, 0)), with: creates + mtu, status: invalid},
		{what: "more than 4096", host: 2, method: set, of: h2, rec: like(b, full, bounds(greater, mad.MTU4096, 0, 0)), with: creates + mtu, status: invalid},
		{what: "less than 256", host: 2, method: set, of: h2, rec: like(b, full, bounds(less, mad.MTU256, 0, 0)), with: creates + mtu, status: invalid},
		{what: "rate 20", host: 2, method: set, of: h2, rec: like(b, full, bounds(0, 0, exactly, mad.Rate20G)), with: creates + rate, status: invalid},
		{what: "more than 10", host: 2, method: set, of: h2, rec: like(b, full, bounds(0, 0, greater, mad.Rate10G)), with: creates + rate, status: invalid},
		{what: "MTU 512, rate 5", host: 2, method: set, of: h2, rec: like(b, full, bounds(exactly, mad.MTU512, exactly, mad.Rate5G)), with: creates + mtu + rate,
			state: full, group: group(0xc001, mad.MTU512, mad.Rate5G)},
		{what: "", host: 2, method: del, of: h2, rec: like(b, full)},
		{what: "below", host: 2, method: set, of: h2, rec: like(b, full, bounds(less, mad.MTU2048, less, mad.Rate10G)), with: creates + mtu + rate,
			state: full, group: group(0xc001, mad.MTU1024, mad.Rate5G)},
		{what: "", host: 2, method: del, of: h2, rec: like(b, full)},
		{what: "below more than there is", host: 2, method: set, of: h2, rec: like(b, full, bounds(less, mad.MTU4096, less, mad.Rate100G)), with: creates + mtu + rate,
			state: full, group: group(0xc001, mad.MTU2048, mad.Rate10G)},
		{what: "", host: 2, method: del, of: h2, rec: like(b, full)},
		{what: "above", host: 2, method: set, of: h2, rec: like(b, full, bounds(greater, mad.MTU512, greater, mad.Rate2_5G)), with: creates + mtu + rate,
			state: full, group: group(0xc001, mad.MTU2048, mad.Rate10G)},
		{what: "", host: 2, method: del, of: h2, rec: like(b, full)},
		{what: "the best", host: 2, method: set, of: h2, rec: like(b, full, bounds(best, mad.MTU512, best, mad.Rate2_5G)), with: creates + mtu + rate,
			state: full, group: group(0xc001, mad.MTU2048, mad.Rate10G)},
		{what: "", host: 2, method: del, of: h2, rec: like(b, full)},

		// A send-only full member keeps a group alive.
		{what: "make b with an MLID, a hop limit and a life time", host: 2, method: set, of: h2, rec: like(b, sendsFull, func(r *mad.MCMemberRecord) {
			r.MLID, r.HopLimit, r.PacketLifeTime, r.PacketLifeTimeSelector = 0xc123, 7, 12, exactly
		}), with: creates + life + "MLID HopLimit", state: sendsFull, group: func(r mad.MCMemberRecord) mad.MCMemberRecord {
			r.MLID, r.HopLimit, r.PacketLifeTime = 0xc123, 7, 12
			return r
		}},
		{what: "h3 beside", host: 3, method: set, of: h3, rec: like(b, full), state: full},
		{what: "h2 as both", host: 2, method: set, of: h2, rec: like(b, full), state: full | sendsFull},
		{what: "h2 as one still", host: 2, method: del, of: h2, rec: like(b, full), state: sendsFull},
		{what: "h3 leaves", host: 3, method: del, of: h3, rec: like(b, full)},
		{what: "b is there still", host: 5, method: get, rec: like(b, 0), lacks: "PortGID JoinState", group: group(0xc123, mad.MTU2048, mad.Rate10G)},
		{what: "h2 leaves", host: 2, method: del, of: h2, rec: like(b, sendsFull)},
		{what: "b has ended", host: 5, method: get, rec: like(b, 0), lacks: "PortGID JoinState", status: none},

		// IPoIB's broadcast group is there without members.
		{what: "join all", host: 2, method: set, of: h2, rec: like(all, full), state: full, group: func(r mad.MCMemberRecord) mad.MCMemberRecord {
			r.QKey, r.PKey, r.MLID, r.MTU, r.Rate, r.PacketLifeTime = 0x0b1b, 0xffff, 0xc000, mad.MTU2048, mad.Rate10G, 18
			r.TClass, r.SL, r.FlowLabel, r.HopLimit, r.Scope = 0, 0, 0, 0, mad.ScopeLinkLocal
			return r
		}},
		{what: "leave all", host: 2, method: del, of: h2, rec: like(all, full)},
		{what: "all is there still", host: 2, method: get, rec: like(all, 0), lacks: "PortGID JoinState", group: group(0xc000, mad.MTU2048, mad.Rate10G)},
		{what: "join all as two", host: 2, method: set, of: h2, rec: like(all, non|sends), state: non | sends},
		{what: "leave as one, which takes OpenSM both where there is no full member", host: 2, method: del, of: h2, rec: like(all, non),
			state: sends, opensm: &outcome{}},
		{what: "leave as the other", host: 2, method: del, of: h2, rec: like(all, sends), opensm: &outcome{status: invalid}},
		{what: "which group", host: 2, method: get, lacks: "MGID PortGID JoinState", status: many},

		// What OpenSM leaks: github.com/linux-rdma/opensm/issues/43.
		{what: "make b as both", host: 2, method: set, of: h2, rec: like(b, full|sendsFull), with: creates, state: full | sendsFull},
		{what: "the full member leaves", host: 2, method: del, of: h2, rec: like(b, full), state: sendsFull, opensm: &outcome{}},
		{what: "the send-only one leaves", host: 2, method: del, of: h2, rec: like(b, sendsFull), opensm: &outcome{status: invalid}},
		{what: "b has ended, but for OpenSM", host: 5, method: get, rec: like(b, 0), lacks: "PortGID JoinState", status: none, opensm: &outcome{}},
	}
}

// takeSteps goes through the steps with clients of the hosts.
func takeSteps(t *testing.T, isOpenSM bool, client func(host int) *Client) {
	clients := map[int]*Client{}
	for _, s := range groupSteps(t) {
		c := clients[s.host]
		if c == nil {
			c = client(s.host)
			clients[s.host] = c
		}
		want := outcome{s.status, s.state}
		if isOpenSM && s.opensm != nil {
			want = *s.opensm
		}
		var fields []string
		for _, f := range strings.Fields("MGID PortGID JoinState " + s.with) {
			if !strings.Contains(" "+s.lacks+" ", " "+f+" ") {
				fields = append(fields, f)
			}
		}
		s.rec.PortGID = s.of
		ask := Get[mad.MCMemberRecord]
		switch s.method {
		case mad.MethodSet:
			ask = Set[mad.MCMemberRecord]
		case mad.MethodDelete:
			ask = Delete[mad.MCMemberRecord]
		}
		rec, err := ask(t.Context(), c, Match(s.rec, fields...))
		got := outcome{mad.StatusOK, rec.JoinState}
		if status := (*StatusError)(nil); errors.As(err, &status) {
			got.status = status.Status
		} else if err != nil {
			t.Fatalf("%s: %v", s.what, err)
		}
		if got != want {
			t.Errorf("%s: status %v, JoinState %v; want %v and %v", s.what, got.status, got.state, want.status, want.state)
		}
		if s.group != nil && rec != s.group(rec) {
			t.Errorf("%s: got %+v\nwant %+v", s.what, rec, s.group(rec))
		}
	}
}

// ibsimFabric is ibsimtest.TwoLevel on sim, with links as ibsim has them.
func ibsimFabric(t *testing.T, leaves, spines, hosts int) *rig {
	sub, err := topo.Parse("netlist", []byte(ibsimtest.TwoLevel(leaves, spines, hosts)))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range sub.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			p.MTU = mad.MTU2048
			if p.Peer != nil {
				p.Speed = mad.SpeedSDR
			}
		}
	}
	return newRig(t, sub, nil)
}

func TestGroupSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { takeSteps(t, false, onServer(t)) })
}

func TestPathAndService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := onServer(t)
		askPathAndService(t, client(2), client(3))
	})
}

// onServer gives clients of our server on a fabric like ibsim's, by host.
func onServer(t *testing.T) func(host int) *Client {
	r := ibsimFabric(t, 2, 1, 3)
	r.serve(t)
	return func(host int) *Client {
		return r.client(t, r.sub.NodesByDesc(fmt.Sprintf("host %d", host))[0].Name, Config{})
	}
}

// askPathAndService asks for paths from host 2 and to a group, and registers a
// service.
func askPathAndService(t *testing.T, h2, h3 *Client) {
	ctx := t.Context()
	want := mad.PathRecord{SGID: hostGID(2), DGID: hostGID(6), ServiceID: 0x0106cafe, PKey: mad.DefaultPKey, TClass: 4, Reversible: true,
		MTUSelector: mad.SelectorExactly, MTU: mad.MTU2048, RateSelector: mad.SelectorExactly, Rate: mad.Rate10G,
		PacketLifeTimeSelector: mad.SelectorExactly, PacketLifeTime: 18}
	path, err := h2.Path(ctx, mad.PathRecord{DGID: want.DGID, ServiceID: want.ServiceID, PKey: want.PKey, TClass: want.TClass})
	if err != nil {
		t.Fatal(err)
	}
	want.SLID, want.DLID = path.SLID, path.DLID
	want.ServiceID, want.TClass = path.ServiceID, path.TClass // which OpenSM leaves out
	if path != want || !path.SLID.IsUnicast() || !path.DLID.IsUnicast() {
		t.Errorf("path %+v\nwant %+v", path, want)
	}
	if again, err := h2.Path(ctx, path); err != nil || again != path {
		t.Errorf("a path like it: %+v, %v", again, err)
	}
	_, err = h2.Path(ctx, mad.PathRecord{DGID: want.DGID, PKey: 0x8001})
	if !errors.Is(err, ErrNoRecords) {
		t.Errorf("a path in no partition of h2: %v", err)
	}

	group, err := h2.Join(ctx, mad.MCMemberRecord{MGID: gid(t, "ff12:401b:ffff::ffff:ffff")})
	if err != nil {
		t.Fatal(err)
	}
	to := mad.PathRecord{SGID: hostGID(2), DGID: group.MGID}
	path, err = Get(ctx, h3, Match(to, "SGID", "DGID"))
	if err != nil || path.DLID != 0xc000 || path.PKey != group.PKey || path.MTU != mad.MTU2048 || path.Rate != mad.Rate10G || path.PacketLifeTime != 18 {
		t.Errorf("path to the group: %+v, %v", path, err)
	}
	to.SGID = hostGID(3)
	if _, err = Get(ctx, h3, Match(to, "SGID", "DGID")); !errors.Is(err, ErrNoRecords) {
		t.Errorf("path to the group from one who is not in it: %v", err)
	}

	service := mad.ServiceRecord{ServiceID: 0x1000000000000001, ServiceGID: hostGID(2), ServicePKey: mad.DefaultPKey}
	copy(service.ServiceName[:], "a service")
	rid := []string{"ServiceID", "ServiceGID", "ServiceP_Key"}
	// Of a request umad2sim gives OpenSM the first 224 bytes, which end before this.
	cut := func(rec mad.ServiceRecord) mad.ServiceRecord {
		rec.ServiceData64[1] = 0
		return rec
	}
	status := func(err error) mad.Status {
		if status := (*StatusError)(nil); errors.As(err, &status) {
			return status.Status
		}
		return mad.StatusOK
	}
	if _, err := Set(ctx, h2, Match(service, rid[0], rid[2])); status(err) != mad.StatusSAReqInvalid {
		t.Errorf("a service without a port: %v", err)
	}
	kept, err := Set(ctx, h2, Match(service, append([]string{"ServiceName"}, rid...)...))
	service.ServiceLease = 0xffffffff
	if err != nil || cut(kept) != service {
		t.Errorf("the service is kept as %+v, %v", kept, err)
	}
	if all, err := collect(Table(ctx, h3, Match(service, "ServiceName"))); err != nil || len(all) != 1 || cut(all[0]) != service {
		t.Errorf("services of the name: %+v, %v", all, err)
	}
	if gone, err := Delete(ctx, h2, Match(service, rid...)); err != nil || cut(gone) != service {
		t.Errorf("the service goes as %+v, %v", gone, err)
	}
	if _, err := Delete(ctx, h2, Match(service, rid...)); !errors.Is(err, ErrNoRecords) {
		t.Errorf("the service goes again: %v", err)
	}
}
