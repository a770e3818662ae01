package softcma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/ucma"
)

// A UD id: SIDR_REQ and SIDR_REP, with the RDMA CM's Q_Key.
func TestDatagram(t *testing.T) {
	inBothModes(t, func(t *testing.T, r *rig) {
		client, server := r.open(r.host("h2"), ucma.Linux), r.open(r.host("h3"), ucma.Linux)
		server.listenAt(7, ucma.PortSpaceUDP, r.at("h3", 7174))
		ask := func(data string) uint32 {
			id := client.create(1, ucma.PortSpaceUDP)
			client.resolve(id, r.at("h3", 7174))
			client.do(ucma.Connect{ID: id, Param: connParam(1, data)}, nil)
			return id
		}
		var attr ucma.QPAttr
		id := ask("hello")
		client.do(ucma.InitQPAttr{ID: id, State: ucma.QPStateInit}, &attr)
		if want := ucma.QPAttrState | ucma.QPAttrPKeyIndex | ucma.QPAttrPort | ucma.QPAttrQKey; attr.Mask != want || attr.QKey != 0x01234567 {
			t.Errorf("INIT: %+v, want mask %v and the UDP Q_Key", attr, want)
		}
		req := server.request(7)
		if got := req.UD(); len(got.PrivateData) != 180 || string(got.PrivateData[:6]) != "hello\x00" {
			t.Errorf("CONNECT_REQUEST: %+v", got)
		}
		server.do(ucma.Accept{UID: 2, ID: req.ID, Param: connParam(0x777, "welcome")}, nil)
		e := client.expect(ucma.EventEstablished, id)
		got := e.UD()
		if got.QPNum != 0x777 || got.QKey != 0x01234567 || len(got.PrivateData) != 136 || string(got.PrivateData[:8]) != "welcome\x00" {
			t.Errorf("ESTABLISHED: %+v", got)
		}
		to := r.endPort("h3")
		if !r.roce && (got.AH.DLID != to.LID || got.AH.IsGlobal) || r.roce && (got.AH.DLID != 0 || !got.AH.IsGlobal || got.AH.GRH.DGID != gidOf(r.at("h3", 0))) {
			t.Errorf("address %+v", got.AH)
		}
		server.quiet(time.Second) // the accepting side is told nothing
		server.fails(ucma.EINVAL, ucma.Accept{UID: 2, ID: req.ID, Param: connParam(0x777, "")})

		// Failures have the status of the SIDR_REP.
		id = ask("")
		server.do(ucma.Reject{ID: server.request(7).ID, PrivateData: []byte("no")}, nil)
		e = client.expect(ucma.EventUnreachable, id)
		if got := e.UD(); e.Status != 2 || string(got.PrivateData[:3]) != "no\x00" {
			t.Errorf("UNREACHABLE %d %+v, want status 2", e.Status, got)
		}
		id = client.create(1, ucma.PortSpaceUDP)
		client.resolve(id, r.at("h3", 99))
		client.do(ucma.Connect{ID: id, Param: connParam(1, "")}, nil)
		if e := client.expect(ucma.EventUnreachable, id); e.Status != 1 {
			t.Errorf("UNREACHABLE %d, want 1: not supported", e.Status)
		}
		// The user's own Q_Key is for AF_IB only (ucma_copy_conn_param).
		id = ask("")
		param := connParam(1, "")
		param.QKey = 5
		server.do(ucma.Accept{UID: 2, ID: server.request(7).ID, Param: param}, nil)
		e = client.expect(ucma.EventEstablished, id)
		if got := e.UD(); got.QKey != 0x01234567 {
			t.Errorf("Q_Key %#x", got.QKey)
		}
		if n := r.count(cm.SIDRREQ); n != 4 {
			t.Errorf("%d SIDR_REQ, want 4", n)
		}
	})
}

func TestDatagramIB(t *testing.T) {
	onRig(t, false, func(t *testing.T, r *rig) {
		client, server := r.open(r.host("h2"), ucma.Linux), r.open(r.host("h3"), ucma.Linux)
		server.listenAt(7, ucma.PortSpaceUDP, r.gid("h3", ucma.PortSpaceUDP, 7174))
		connect := func(data string) uint32 {
			id := client.create(1, ucma.PortSpaceUDP)
			client.resolve(id, r.gid("h3", ucma.PortSpaceUDP, 7174))
			client.do(ucma.Connect{ID: id, Param: connParam(1, data)}, nil)
			return id
		}
		// The kernel takes the data for an IP header, of a version that it does not
		// know (cma_save_ip_info).
		if e := client.expect(ucma.EventUnreachable, connect("hello")); e.Status != 2 {
			t.Errorf("UNREACHABLE %d, want 2", e.Status)
		}
		id := connect("\x00\x00hello")
		req := server.request(7)
		if got := req.UD(); len(got.PrivateData) != 216 || string(got.PrivateData[2:7]) != "hello" {
			t.Errorf("CONNECT_REQUEST: %+v", got)
		}
		param := connParam(2, "")
		param.QKey = 0x55
		server.do(ucma.Accept{UID: 2, ID: req.ID, Param: param}, nil)
		e := client.expect(ucma.EventEstablished, id)
		if got := e.UD(); got.QKey != 0x55 {
			t.Errorf("Q_Key %#x, want 0x55", got.QKey)
		}
	})
}

// Groups on InfiniBand are the SA's: made by the first who joins, and left when
// nobody of the host is in it any more.
func TestMulticast(t *testing.T) {
	onRig(t, false, func(t *testing.T, r *rig) {
		p := r.open(r.host("h2"), ucma.Linux)
		admin, err := sa.NewClient(r.device("h4"), sa.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close()
		members := func(gid mad.GID) (n int) {
			t.Helper()
			for _, err := range sa.Table(t.Context(), admin, sa.Match(mad.MCMemberRecord{MGID: gid}, "MGID")) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			return n
		}
		// 224.1.2.3 with the RDMA CM's signature in place of IPoIB's (cma_set_mgid).
		mgid := mad.GID{0xff, 0x12, 0x40, 0x01, 0xff, 0xff, 12: 0, 13: 1, 14: 2, 15: 3}
		group := ucma.Sockaddr{IP: addrPortOf("224.1.2.3:0")}
		var ids, mcs [2]uint32
		for i := range ids {
			ids[i] = p.create(uint64(i+1), ucma.PortSpaceUDP)
			p.fails(ucma.EINVAL, ucma.JoinIPMcast{UID: 9, ID: ids[i], Addr: group}) // no device
			p.bind(ids[i], r.at("h2", 0))
			var resp ucma.CreateIDResp
			p.do(ucma.JoinIPMcast{UID: uint64(i + 11), ID: ids[i], Addr: group}, &resp)
			mcs[i] = resp.ID
			e := p.expect(ucma.EventMulticastJoin, mcs[i])
			got := e.UD()
			if e.UID != uint64(i+11) || got.QPNum != 0xffffff || got.QKey != 0x01234567 || !got.AH.IsGlobal || got.AH.GRH.DGID != mgid || got.AH.DLID < 0xc000 {
				t.Errorf("MULTICAST_JOIN of uid %d: %+v", e.UID, got)
			}
		}
		if n := members(mgid); n != 1 {
			t.Errorf("the SA has %d members of the group, want this port, once", n)
		}
		p.fails(ucma.ENOENT, ucma.LeaveMcast{ID: 99})
		var left ucma.DestroyIDResp
		p.do(ucma.LeaveMcast{ID: mcs[0]}, &left)
		synctest.Wait()
		if n := members(mgid); n != 1 || left.EventsReported != 1 {
			t.Errorf("%d members, %d events reported; want 1, 1", n, left.EventsReported)
		}
		p.do(ucma.DestroyID{ID: ids[1]}, nil) // leaves
		synctest.Wait()
		if n := members(mgid); n != 0 {
			t.Errorf("%d members, want none", n)
		}

		p.fails(ucma.EINVAL, ucma.JoinMcast{ID: ids[0], Addr: group, Flags: 2})
		p.do(ucma.JoinMcast{UID: 1, ID: ids[0], Addr: group, Flags: ucma.JoinSendOnlyFullMember}, nil)
		if e, ok := p.next(time.Second); !ok || e.Event != ucma.EventMulticastJoin {
			t.Errorf("%+v, want MULTICAST_JOIN", e)
		}
		// Without an answer of the SA: 11 tries of 300 ms.
		if err := r.fab.Cut(r.endPort("h1")); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		p.do(ucma.JoinIPMcast{UID: 5, ID: ids[0], Addr: ucma.Sockaddr{IP: addrPortOf("224.1.2.4:0")}}, nil)
		if e, _ := p.next(time.Minute); e.Event != ucma.EventMulticastError || e.UID != 5 || e.Status != -110 || time.Since(start) != 3300*time.Millisecond {
			t.Errorf("%v %d after %v, want MULTICAST_ERROR -110 after 3.3s", e.Event, e.Status, time.Since(start))
		}
	})
}

// On RoCE a join is the host's own business, and for IPv4 only (kernel-abi 2.8).
func TestMulticastRoCE(t *testing.T) {
	onRig(t, true, func(t *testing.T, r *rig) {
		p := r.open(r.host("h2"), ucma.Linux)
		id := p.create(1, ucma.PortSpaceUDP)
		p.bind(id, r.at("h2", 0))
		join := func(s string) ucma.JoinIPMcast {
			return ucma.JoinIPMcast{UID: 3, ID: id, Addr: ucma.Sockaddr{IP: addrPortOf(s)}}
		}
		p.fails(ucma.EINVAL, join("0.0.0.0:0"))
		p.fails("errno 524", join("[ff02::1]:0"))
		var resp ucma.CreateIDResp
		p.do(join("224.1.2.3:0"), &resp)
		e := p.expect(ucma.EventMulticastJoin, resp.ID)
		got := e.UD()
		if want := gidOf(ucma.Sockaddr{IP: addrPortOf("224.1.2.3:0")}); got.AH.GRH.DGID != want || got.AH.GRH.HopLimit != 64 || got.AH.DLID != 0 || got.QKey != 0x01234567 {
			t.Errorf("MULTICAST_JOIN %+v", got)
		}
		// An event that nobody has fetched goes with the membership.
		p.do(join("224.1.2.5:0"), &resp)
		synctest.Wait()
		p.do(ucma.LeaveMcast(resp), nil)
		p.quiet(time.Second)
	})
}
