package softcma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// How much private data each message takes (ib_cm.h), less the IP header of 36
// bytes; and what a failed ACCEPT does: the peer is rejected.
func TestPrivateDataLimits(t *testing.T) {
	inBothModes(t, func(t *testing.T, r *rig) {
		client, server := r.open(r.host("h2"), ucma.Linux), r.open(r.host("h3"), ucma.Linux)
		server.listenAt(7, ucma.PortSpaceTCP, r.at("h3", 7174))
		server.listenAt(8, ucma.PortSpaceUDP, r.at("h3", 7174))
		param := func(n int) ucma.ConnParam { return connParam(nextQPN(), string(make([]byte, n))) }

		id := client.create(1, ucma.PortSpaceTCP)
		client.resolve(id, r.at("h3", 7174))
		client.fails(ucma.EINVAL, ucma.Connect{ID: id, Param: param(57)})
		client.fails(ucma.EINVAL, ucma.Connect{ID: id, Param: param(220)}) // with the header over a byte
		client.do(ucma.Connect{ID: id, Param: param(56)}, nil)             // a refusal leaves the id as it was
		child := server.request(7).ID
		server.fails(ucma.EINVAL, ucma.Accept{UID: 2, ID: child, Param: param(197)})
		if e := client.expect(ucma.EventRejected, id); e.Status != 28 {
			t.Errorf("REJECTED %d, want 28", e.Status)
		}

		id = client.create(1, ucma.PortSpaceTCP)
		client.resolve(id, r.at("h3", 7174))
		client.do(ucma.Connect{ID: id, Param: param(0)}, nil)
		child = server.request(7).ID
		server.do(ucma.Accept{UID: 2, ID: child, Param: param(196)}, nil)
		client.expect(ucma.EventConnectResponse, id)
		client.do(ucma.Reject{ID: id, PrivateData: make([]byte, 148)}, nil)
		server.expect(ucma.EventRejected, child)

		id = client.create(1, ucma.PortSpaceUDP)
		client.resolve(id, r.at("h3", 7174))
		client.fails(ucma.EINVAL, ucma.Connect{ID: id, Param: param(181)})
		client.do(ucma.Connect{ID: id, Param: param(180)}, nil)
		child = server.request(8).ID
		server.fails(ucma.EINVAL, ucma.Accept{UID: 2, ID: child, Param: param(137)})
		if e := client.expect(ucma.EventUnreachable, id); e.Status != 2 {
			t.Errorf("UNREACHABLE %d, want 2: rejected", e.Status)
		}
	})
}

// The program saw data before the RTU came, which is lost: NOTIFY with COMM_EST.
func TestNotify(t *testing.T) {
	onRig(t, false, func(t *testing.T, r *rig) {
		client, server := r.open(r.host("h2"), ucma.Linux), r.open(r.host("h3"), ucma.Linux)
		server.listenAt(7, ucma.PortSpaceTCP, r.at("h3", 7174))
		id := client.create(1, ucma.PortSpaceTCP)
		client.resolve(id, r.at("h3", 7174))
		ece := &ucma.ECE{VendorID: 0x15b3, AttrMod: 0x10000000}
		client.do(ucma.Connect{ID: id, Param: connParam(1, ""), ECE: ece}, nil)
		req := server.request(7)
		server.do(ucma.Accept{UID: 2, ID: req.ID, Param: connParam(2, ""), ECE: ece}, nil)
		rep := client.expect(ucma.EventConnectResponse, id)
		if req.ECE != *ece || rep.ECE != *ece {
			t.Errorf("ECE %+v and %+v, want %+v", req.ECE, rep.ECE, *ece)
		}
		server.do(ucma.Notify{ID: req.ID, Event: 4}, nil)
		server.expect(ucma.EventEstablished, req.ID)
		server.fails(ucma.EISCONN, ucma.Notify{ID: req.ID, Event: 4})
		client.do(ucma.Accept{ID: id}, nil)
		server.quiet(time.Second)
	})
}

// Options that show in a path: TOS and ACK_TIMEOUT (cma_resolve_iboe_route), and
// in what INIT_QP_ATTR says.
func TestOptions(t *testing.T) {
	onRig(t, true, func(t *testing.T, r *rig) {
		client, server := r.open(r.host("h2"), ucma.Linux), r.open(r.host("h3"), ucma.Linux)
		server.listenAt(7, ucma.PortSpaceTCP, r.at("h3", 7174))
		id := client.create(1, ucma.PortSpaceTCP)
		client.do(byteOption(id, ucma.OptionTOS, 0x20), nil)
		client.do(byteOption(id, ucma.OptionACKTimeout, 14), nil)
		client.fails(ucma.ENOSYS, byteOption(id, 4, 1))
		client.fails(ucma.ENOSYS, ucma.SetOption{ID: id, Level: ucma.OptionLevelIB, Name: 2, Value: []byte{1}})
		client.fails(ucma.ENOSYS, ucma.SetOption{ID: id, Level: 2, Name: 1, Value: []byte{1}})
		client.fails(ucma.EINVAL, ucma.SetOption{ID: id, Len: 5 << 20, Value: []byte{1}})
		client.fails(ucma.EFAULT, ucma.SetOption{ID: id, Len: 2, Value: []byte{1}})
		client.resolve(id, r.at("h3", 7174))
		var route ucma.QueryRouteResp
		client.do(ucma.QueryRoute{ID: id}, &route)
		if p := &route.Paths[0]; p.TrafficClass != 0x20 || p.PacketLifeTime != 13 {
			t.Errorf("path %+v, want traffic class 0x20 and life time 13", p)
		}
		client.do(ucma.Connect{ID: id, Param: connParam(1, "")}, nil)
		server.do(ucma.Accept{UID: 2, ID: server.request(7).ID, Param: connParam(2, "")}, nil)
		client.expect(ucma.EventConnectResponse, id)
		var attr ucma.QPAttr
		client.do(ucma.InitQPAttr{ID: id, State: ucma.QPStateRTS}, &attr)
		if attr.Timeout != 14 {
			t.Errorf("timeout %d, want 14", attr.Timeout)
		}
		client.fails(ucma.EINVAL, byteOption(client.create(1, ucma.PortSpaceUDP), ucma.OptionACKTimeout, 14))
	})
}

// Group ids of IPoIB (RFC 4391), of the RDMA CM, of the SA and of AF_IB
// (cma_set_mgid), each with the Q_Key of its port space.
func TestGroups(t *testing.T) {
	onRig(t, false, func(t *testing.T, r *rig) {
		p := r.open(r.host("h2"), ucma.Linux)
		made := mad.GID{0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80, 15: 9}
		for _, tc := range []struct {
			ps   ucma.PortSpace
			addr ucma.Sockaddr
			gid  mad.GID
			qkey uint32
		}{
			{ucma.PortSpaceIPoIB, ucma.Sockaddr{IP: addrPortOf("239.255.1.2:0")}, mad.GID{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 12: 0x0f, 13: 0xff, 14: 1, 15: 2}, 0x0b1b},
			{ucma.PortSpaceUDP, ucma.Sockaddr{IP: addrPortOf("[ff05::1:3]:0")}, mad.GID{0xff, 0x12, 0x60, 0x01, 0xff, 0xff, 13: 1, 15: 3}, 0x01234567},
			{ucma.PortSpaceUDP, ucma.Sockaddr{IB: &ucma.SockaddrIB{GID: mad.GID{0xff, 0x15, 15: 7}}}, mad.GID{0xff, 0x15, 15: 7}, 0x01234567},
		} {
			id := p.create(1, tc.ps)
			p.bind(id, r.at("h2", 0))
			p.do(ucma.JoinMcast{UID: 2, ID: id, Addr: tc.addr}, nil)
			e, ok := p.next(time.Second)
			if got := e.UD(); !ok || e.Event != ucma.EventMulticastJoin || got.AH.GRH.DGID != tc.gid || got.QKey != tc.qkey {
				t.Errorf("%v: %v %d of %v, Q_Key %#x; want %v, %#x", tc.addr, e.Event, e.Status, got.AH.GRH.DGID, got.QKey, tc.gid, tc.qkey)
			}
		}
		// A group of the SA's making is none that one can make: MULTICAST_ERROR, EINVAL.
		id := p.create(1, ucma.PortSpaceUDP)
		p.bind(id, r.at("h2", 0))
		p.do(ucma.JoinMcast{UID: 2, ID: id, Addr: r.group(made)}, nil)
		if e, _ := p.next(time.Second); e.Event != ucma.EventMulticastError || e.Status != -22 {
			t.Errorf("%v %d, want MULTICAST_ERROR -22", e.Event, e.Status)
		}
		// Who leaves before the SA has answered is told nothing, and is in no group.
		var resp ucma.CreateIDResp
		p.do(ucma.JoinMcast{UID: 2, ID: id, Addr: r.group(mad.GID{0xff, 0x12, 15: 8})}, &resp)
		p.do(ucma.LeaveMcast(resp), nil)
		p.quiet(time.Second)
		synctest.Wait()
		if n := len(p.h.core.groups); n != 3 {
			t.Errorf("%d groups, want the 3 of before", n)
		}
	})
}

// The host itself by AF_IB.
func TestLoopbackIB(t *testing.T) {
	onRig(t, false, func(t *testing.T, r *rig) {
		p := r.open(r.host("h2"), ucma.Linux)
		p.listenAt(7, ucma.PortSpaceTCP, r.gid("h2", ucma.PortSpaceTCP, 9))
		for _, gid := range []mad.GID{{}, {15: 1}, r.endPort("h2").GID(r.sub.GIDPrefix)} {
			to := r.gid("h2", ucma.PortSpaceTCP, 9)
			to.IB.GID = gid
			id := p.create(1, ucma.PortSpaceTCP)
			p.resolve(id, to)
			p.do(ucma.Connect{ID: id, Param: connParam(nextQPN(), "")}, nil)
			req := p.request(7)
			p.do(ucma.Accept{UID: 2, ID: req.ID, Param: connParam(nextQPN(), "")}, nil)
			p.expect(ucma.EventConnectResponse, id)
		}
	})
}
