package softcma

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// The whole flow, in both dialects, on both links, between two hosts and of a
// host with itself.
func TestConnect(t *testing.T) {
	for _, d := range []*ucma.Dialect{ucma.Linux, ucma.Illumos} {
		for _, peer := range []string{"h3", "h2"} {
			t.Run(fmt.Sprintf("%v/%s", d, peer), func(t *testing.T) {
				inBothModes(t, func(t *testing.T, r *rig) { testConnect(t, r, d, peer) })
			})
		}
	}
}

func testConnect(t *testing.T, r *rig, d *ucma.Dialect, peer string) {
	h2 := r.host("h2")
	far := h2
	if peer != "h2" {
		far = r.host(peer)
	}
	client, server := r.open(h2, d), r.open(far, d)
	listener := server.listenAt(7, ucma.PortSpaceTCP, ucma.Sockaddr{IP: r.at(peer, 7174).IP})

	id := client.create(1, ucma.PortSpaceTCP)
	dst := r.at(peer, 7174)
	client.resolve(id, dst)

	var route ucma.QueryRouteResp
	client.do(ucma.QueryRoute{ID: id}, &route)
	from, to := r.endPort("h2"), r.endPort(peer)
	if route.NumPaths != 1 || route.Src.IP.Addr() != from.IP || route.Dst != dst || route.PortNum != 1 || route.NodeGUID != from.Node.GUID {
		t.Errorf("route %+v", route)
	}
	if d == ucma.Linux {
		checkPath(r, &route.Paths[0], peer)
	}

	// The attributes of INIT can be asked for before CONNECT, by any state's name
	// (cma_ib_init_qp_attr).
	var attr ucma.QPAttr
	client.do(ucma.InitQPAttr{ID: id, State: ucma.QPStateInit}, &attr)
	if want := ucma.QPAttrState | ucma.QPAttrPKeyIndex | ucma.QPAttrPort | ucma.QPAttrAccessFlags; attr.Mask != want || attr.PortNum != 1 {
		t.Errorf("INIT before CONNECT: %+v, want mask %v", attr, want)
	}

	client.do(ucma.Connect{ID: id, Param: connParam(0x123456, "hello")}, nil)
	req := server.request(7)
	got := req.Conn()
	// The resources come crosswise, and the private data in all its 56 bytes.
	if got.QPNum != 0x123456 || got.ResponderResources != 2 || got.InitiatorDepth != 3 || got.RetryCount != 6 || got.RNRRetryCount != 5 ||
		len(got.PrivateData) != 56 || string(got.PrivateData[:6]) != "hello\x00" {
		t.Errorf("CONNECT_REQUEST: %+v", got)
	}
	child := req.ID
	var back ucma.QueryRouteResp
	server.do(ucma.QueryRoute{ID: child}, &back)
	if back.Src.IP != dst.IP || back.Dst.IP.Addr() != from.IP || back.Dst.IP.Port() != route.Src.IP.Port() || back.NumPaths != 1 {
		t.Errorf("route of the child %+v", back)
	}
	server.do(ucma.InitQPAttr{ID: child, State: ucma.QPStateRTR}, &attr)
	if attr.DestQPNum != 0x123456 || attr.MaxDestRDAtomic != 2 {
		t.Errorf("RTR of the child: %+v", attr)
	}
	server.do(ucma.Accept{UID: 8, ID: child, Param: connParam(0x654321, "welcome")}, nil)

	response := client.expect(ucma.EventConnectResponse, id)
	rep := response.Conn()
	if rep.QPNum != 0x654321 || len(rep.PrivateData) != 196 || string(rep.PrivateData[:8]) != "welcome\x00" || rep.RetryCount != 0 {
		t.Errorf("CONNECT_RESPONSE: %+v", rep)
	}
	client.do(ucma.InitQPAttr{ID: id, State: ucma.QPStateRTR}, &attr)
	if attr.AH.IsGlobal != r.roce || attr.DestQPNum != 0x654321 || !r.roce && attr.AH.DLID != to.LID || r.roce && (attr.AH.DLID != 0 || attr.AH.GRH.DGID != gidOf(dst)) {
		t.Errorf("RTR: %+v", attr)
	}
	client.do(ucma.InitQPAttr{ID: id, State: ucma.QPStateRTS}, &attr)
	if attr.MaxRDAtomic != 3 || attr.RetryCnt != 6 || attr.RNRRetry != 5 {
		t.Errorf("RTS: %+v", attr)
	}
	client.do(ucma.Accept{ID: id}, nil)
	if e := server.expect(ucma.EventEstablished, child); e.UID != 8 {
		t.Errorf("ESTABLISHED of uid %d, want 8", e.UID)
	}

	client.do(ucma.Disconnect{ID: id}, nil)
	server.expect(ucma.EventDisconnected, child)
	server.do(ucma.Disconnect{ID: child}, nil)
	client.expect(ucma.EventDisconnected, id)
	for _, p := range []struct {
		*prog
		id uint32
	}{{client, id}, {server, child}} {
		e, ok := p.next(time.Minute)
		if ok != (d == ucma.Linux) || ok && (e.Event != ucma.EventTimewaitExit || e.ID != p.id) {
			t.Errorf("%+v %v, want TIMEWAIT_EXIT on Linux only", e, ok)
		}
	}
	for _, m := range []cm.Message{cm.REQ, cm.REP, cm.RTU, cm.DREQ, cm.DREP} {
		if n := r.count(m); n != 1 {
			t.Errorf("%d messages %v, want 1", n, m)
		}
	}

	var gone ucma.DestroyIDResp
	client.do(ucma.DestroyID{ID: id}, &gone)
	// ADDR_RESOLVED, ROUTE_RESOLVED, CONNECT_RESPONSE, DISCONNECTED, TIMEWAIT_EXIT
	if want := map[bool]uint32{true: 5, false: 4}[d == ucma.Linux]; gone.EventsReported != want {
		t.Errorf("%d events reported, want %d", gone.EventsReported, want)
	}
	server.do(ucma.DestroyID{ID: child}, &gone)
	server.do(ucma.DestroyID{ID: listener}, &gone)
	if gone.EventsReported != 1 {
		t.Errorf("%d events of the listener reported, want 1", gone.EventsReported)
	}
	empty(t, h2)
	empty(t, far)
}

// checkPath looks at a path from h2.
func checkPath(r *rig, p *ucma.UserPathRec, peer string) {
	r.t.Helper()
	from, to := r.endPort("h2"), r.endPort(peer)
	if !r.roce {
		if p.SLID != from.LID || p.DLID != to.LID || p.SGID != from.GID(r.sub.GIDPrefix) || p.DGID != to.GID(r.sub.GIDPrefix) || p.Reversible != 1 {
			r.t.Errorf("path %+v", p)
		}
		return
	}
	// kernel-abi 2.8: what is synthesised on RoCE.
	want := ucma.UserPathRec{
		SGID: gidOf(r.at("h2", 0)), DGID: gidOf(r.at(peer, 0)), Reversible: 1, PKey: 0xffff, HopLimit: 64,
		MTUSelector: mad.SelectorExactly, MTU: 3, RateSelector: mad.SelectorExactly, PacketLifeTimeSelector: mad.SelectorExactly, PacketLifeTime: 16,
	}
	want.FlowLabel = p.FlowLabel // a hash of the port numbers
	if *p != want {
		r.t.Errorf("path %+v, want %+v", *p, want)
	}
}

// AF_IB: service id in the place of a port, no header in the private data, and
// the user's Q_Key.
func TestConnectIB(t *testing.T) {
	onRig(t, false, func(t *testing.T, r *rig) {
		client, server := r.open(r.host("h2"), ucma.Linux), r.open(r.host("h3"), ucma.Linux)
		server.listenAt(7, ucma.PortSpaceTCP, r.gid("h3", ucma.PortSpaceTCP, 7174))
		id := client.create(1, ucma.PortSpaceTCP)
		client.resolve(id, r.gid("h3", ucma.PortSpaceTCP, 7174))
		long := make([]byte, 92)
		long[91] = 0xaa
		param := connParam(5, string(long))
		client.do(ucma.Connect{ID: id, Param: param}, nil)
		req := server.request(7)
		if got := req.Conn().PrivateData; len(got) != 92 || got[91] != 0xaa {
			t.Errorf("private data %x, want all 92 bytes", got)
		}
		var addr ucma.QueryAddrResp
		server.do(ucma.Query{ID: req.ID, Option: ucma.QueryAddr}, &addr)
		if addr.Dst.IB == nil || addr.Dst.IB.GID != r.endPort("h2").GID(r.sub.GIDPrefix) || addr.Src.IB == nil || addr.Src.IB.ServiceID != 0x1061c06 {
			t.Errorf("addresses of the child: %v %v", addr.Src, addr.Dst)
		}
		server.do(ucma.Reject{ID: req.ID, PrivateData: []byte("no")}, nil)
		e := client.expect(ucma.EventRejected, id)
		if got := e.Conn(); e.Status != 28 || len(got.PrivateData) != 148 || string(got.PrivateData[:3]) != "no\x00" {
			t.Errorf("REJECTED %d %+v", e.Status, got)
		}
	})
}

// SET_OPTION IB_PATH takes the first record with the right flags, as it is
// (ucma_set_ib_path).
func TestInjectPath(t *testing.T) {
	inBothModes(t, func(t *testing.T, r *rig) {
		client := r.open(r.host("h2"), ucma.Linux)
		r.host("h3")
		id := client.create(1, ucma.PortSpaceTCP)
		path := mad.PathRecord{
			ServiceID: 0x1061c06, SGID: r.endPort("h2").GID(r.sub.GIDPrefix), DGID: r.endPort("h3").GID(r.sub.GIDPrefix),
			SLID: r.endPort("h2").LID, DLID: r.endPort("h3").LID, PKey: 0xffff, FlowLabel: 0x12345, HopLimit: 9, TClass: 8, SL: 3, QoSClass: 5,
			Reversible: true, NumbPath: 1, MTUSelector: mad.SelectorExactly, MTU: mad.MTU2048, RateSelector: mad.SelectorExactly,
			Rate: mad.Rate25G, PacketLifeTimeSelector: mad.SelectorExactly, PacketLifeTime: 18, Preference: 7,
		}
		option := func(records ...uint32) ucma.SetOption {
			var b []byte
			for _, flags := range records {
				b = binary.NativeEndian.AppendUint32(b, flags)
				b = append(b, 0, 0, 0, 0)
				p := path
				if flags != ucma.PathFlags {
					p.SL = 15
				}
				b, _ = p.AppendBinary(b)
			}
			return ucma.SetOption{ID: id, Level: ucma.OptionLevelIB, Name: ucma.OptionIBPath, Value: b}
		}
		client.fails(ucma.EINVAL, option(0x2b)) // not resolved
		client.do(ucma.ResolveIP{ID: id, Dst: r.at("h3", 7174), Timeout: time.Second}, nil)
		client.expect(ucma.EventAddrResolved, id)
		short := option(0x2b)
		short.Value = short.Value[:71]
		client.fails(ucma.EINVAL, short)
		client.fails(ucma.EINVAL, option())
		client.fails(ucma.EINVAL, option(0x3, 0x2f, 0x28)) // wrong flags
		client.do(option(0x4, 0x2b, 0x2b), nil)
		client.expect(ucma.EventRouteResolved, id)
		client.fails(ucma.EINVAL, option(0x2b)) // resolved already

		var route ucma.QueryRouteResp
		client.do(ucma.QueryRoute{ID: id}, &route)
		want := ucma.MakeUserPathRec(&path)
		if r.roce {
			want.SLID, want.DLID = 0, 0
		}
		if route.NumPaths != 1 || route.Paths[0] != want {
			t.Errorf("QUERY_ROUTE %+v, want %+v", route.Paths[0], want)
		}
		var paths ucma.QueryPathResp
		client.do(ucma.Query{ID: id, Option: ucma.QueryPath}, &paths)
		if r.roce {
			path.DLID, path.SLID = paths.Paths[0].Path.DLID, paths.Paths[0].Path.SLID
			path.RawTraffic = paths.Paths[0].Path.RawTraffic
			if path.DLID>>8 != 1 { // route_resolved stands there
				t.Errorf("DLID %#x of QUERY PATH on RoCE, want 0x01..", uint16(path.DLID))
			}
		}
		if len(paths.Paths) != 1 || paths.Paths[0] != (ucma.PathRecData{Flags: 0x2b, Path: path}) {
			t.Errorf("QUERY PATH %+v, want %+v", paths, path)
		}
		if r.roce {
			return
		}
		client.do(ucma.Connect{ID: id, Param: connParam(1, "")}, nil)
		if e := client.expect(ucma.EventRejected, id); e.Status != 8 {
			t.Errorf("REJECTED %d, want 8: nobody listens", e.Status)
		}
	})
}

// A listener gets what is for its address and port (cma_find_listener); the rest
// is rejected: 8 if no such service is listened for, else 28.
func TestListeners(t *testing.T) {
	inBothModes(t, func(t *testing.T, r *rig) {
		client, server := r.open(r.host("h2"), ucma.Linux), r.open(r.host("h3"), ucma.Linux)
		any4 := ucma.Sockaddr{IP: addrPortOf("0.0.0.0:1000")}
		server.listenAt(1, ucma.PortSpaceTCP, any4)
		server.listenAt(2, ucma.PortSpaceTCP, ucma.Sockaddr{IP: addrPortOf("[::]:1001")})
		server.listenAt(3, ucma.PortSpaceTCP, r.at("h3", 1002))
		server.listenAt(4, ucma.PortSpaceTCP, ucma.Sockaddr{IP: addrPortOf("[2001:db8::3]:1003")})
		server.listenAt(5, ucma.PortSpaceUDP, ucma.Sockaddr{IP: addrPortOf("0.0.0.0:1004")})
		v6 := func(port uint16) ucma.Sockaddr {
			return ucma.Sockaddr{IP: addrPortOf(fmt.Sprintf("[2001:db8::3]:%d", port))}
		}
		for _, tc := range []struct {
			name   string
			dst    ucma.Sockaddr
			uid    uint64 // of who gets it, or
			reject int32
		}{
			{"any IPv4", r.at("h3", 1000), 1, 0},
			{"IPv6 to a listener for IPv4", v6(1000), 0, 28},
			{"any IPv6 takes IPv4, too", r.at("h3", 1001), 2, 0},
			{"any IPv6", v6(1001), 2, 0},
			{"its address", r.at("h3", 1002), 3, 0},
			{"IPv6 to its port", v6(1002), 0, 28},
			{"its IPv6 address", v6(1003), 4, 0},
			{"another port space", r.at("h3", 1004), 0, 8},
			{"nobody", r.at("h3", 1005), 0, 8},
		} {
			id := client.create(9, ucma.PortSpaceTCP)
			client.do(ucma.ResolveIP{ID: id, Dst: tc.dst, Timeout: time.Second}, nil)
			client.expect(ucma.EventAddrResolved, id)
			client.do(ucma.ResolveRoute{ID: id, Timeout: time.Second}, nil)
			client.expect(ucma.EventRouteResolved, id)
			client.do(ucma.Connect{ID: id, Param: connParam(nextQPN(), "")}, nil)
			if tc.uid != 0 {
				e, ok := server.next(time.Millisecond)
				if !ok || e.Event != ucma.EventConnectRequest || e.UID != tc.uid {
					t.Errorf("%s: %+v, want a request to %d", tc.name, e, tc.uid)
				}
			} else if e := client.expect(ucma.EventRejected, id); e.Status != tc.reject {
				t.Errorf("%s: REJECTED %d, want %d", tc.name, e.Status, tc.reject)
			}
			client.do(ucma.DestroyID{ID: id}, nil)
			synctest.Wait()
		}
	})
}

// 500 connections at once, and nothing is left of them.
func TestManyConnections(t *testing.T) {
	inBothModes(t, func(t *testing.T, r *rig) {
		const n = 500
		h2, h3 := r.host("h2"), r.host("h3")
		client, server := r.open(h2, ucma.Linux), r.open(h3, ucma.Linux)
		server.listenAt(7, ucma.PortSpaceTCP, ucma.Sockaddr{IP: addrPortOf("0.0.0.0:7174")})
		for i := range n {
			id := client.create(uint64(i)+1, ucma.PortSpaceTCP)
			client.do(ucma.ResolveIP{ID: id, Dst: r.at("h3", 7174), Timeout: time.Minute}, nil)
		}
		got := map[ucma.EventType]int{}
		for {
			e, ok := client.next(time.Second)
			if !ok {
				break
			}
			got[e.Event]++
			switch e.Event {
			case ucma.EventAddrResolved:
				client.do(ucma.ResolveRoute{ID: e.ID, Timeout: time.Minute}, nil)
			case ucma.EventRouteResolved:
				client.do(ucma.Connect{ID: e.ID, Param: connParam(0x100+e.ID, "")}, nil)
				req := server.request(7)
				server.do(ucma.Accept{UID: 1, ID: req.ID, Param: connParam(0x100+req.ID, "")}, nil)
			case ucma.EventConnectResponse:
				client.do(ucma.Accept{ID: e.ID}, nil)
				if e, ok := server.next(time.Millisecond); !ok || e.Event != ucma.EventEstablished {
					t.Errorf("%+v, want ESTABLISHED", e)
				}
			}
		}
		if got[ucma.EventConnectResponse] != n {
			t.Errorf("events %v, want %d connections", got, n)
		}
		if err := errors.Join(client.Close(), server.Close()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		time.Sleep(time.Minute) // timewait
		empty(t, h2)
		empty(t, h3)
	})
}
