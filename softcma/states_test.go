package softcma

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// states are all that an RC id can be in, with the way there. The id is the
// client's, of host h2; h3 listens at 7174.
var states = []struct {
	name string
	get  func(s *stage) uint32
}{
	{"idle", func(s *stage) uint32 { return s.client.create(1, ucma.PortSpaceTCP) }},
	{"bound", func(s *stage) uint32 { return s.bound(ucma.Sockaddr{IP: addrPortOf("0.0.0.0:0")}) }},
	{"boundDev", func(s *stage) uint32 { return s.bound(s.r.at("h2", 0)) }},
	{"addrQuery", func(s *stage) uint32 {
		id := s.client.create(1, ucma.PortSpaceTCP)
		s.client.do(ucma.ResolveIP{ID: id, Dst: ucma.Sockaddr{IP: addrPortOf("10.0.99.99:7174")}, Timeout: time.Hour}, nil)
		return id
	}},
	{"addrResolved", (*stage).addrResolved},
	{"routeQuery", func(s *stage) uint32 {
		id := s.addrResolved()
		if err := s.r.fab.Cut(s.r.endPort("h1")); err != nil { // where the SA is
			s.r.t.Fatal(err)
		}
		s.client.do(ucma.ResolveRoute{ID: id, Timeout: time.Hour}, nil)
		return id
	}},
	{"routeResolved", (*stage).routeResolved},
	{"reqSent", (*stage).reqSent},
	{"repReceived", (*stage).repReceived},
	{"established", (*stage).established},
	{"disconnected", func(s *stage) uint32 {
		id := s.established()
		s.client.do(ucma.Disconnect{ID: id}, nil)
		s.server.expect(ucma.EventDisconnected, s.child)
		s.server.do(ucma.Disconnect{ID: s.child}, nil)
		s.client.expect(ucma.EventDisconnected, id)
		return id
	}},
	{"listen", func(s *stage) uint32 {
		return s.client.listenAt(1, ucma.PortSpaceTCP, ucma.Sockaddr{IP: addrPortOf("0.0.0.0:0")})
	}},
	{"listenDev", func(s *stage) uint32 { return s.client.listenAt(1, ucma.PortSpaceTCP, s.r.at("h2", 0)) }},
	{"child", func(s *stage) uint32 {
		s.client.listenAt(1, ucma.PortSpaceTCP, s.r.at("h2", 99))
		id := s.server.create(1, ucma.PortSpaceTCP)
		s.server.resolve(id, s.r.at("h2", 99))
		s.server.do(ucma.Connect{ID: id, Param: connParam(nextQPN(), "")}, nil)
		return s.client.request(1).ID
	}},
}

// stage is where a state is made.
type stage struct {
	r              *rig
	client, server *prog
	child          uint32 // of the server's
}

func (s *stage) bound(a ucma.Sockaddr) uint32 {
	id := s.client.create(1, ucma.PortSpaceTCP)
	s.client.bind(id, a)
	return id
}

func (s *stage) addrResolved() uint32 {
	id := s.client.create(1, ucma.PortSpaceTCP)
	s.client.do(ucma.ResolveIP{ID: id, Dst: s.r.at("h3", 7174), Timeout: time.Second}, nil)
	s.client.expect(ucma.EventAddrResolved, id)
	return id
}

func (s *stage) routeResolved() uint32 {
	id := s.client.create(1, ucma.PortSpaceTCP)
	s.client.resolve(id, s.r.at("h3", 7174))
	return id
}

func (s *stage) reqSent() uint32 {
	id := s.routeResolved()
	s.client.do(ucma.Connect{ID: id, Param: connParam(nextQPN(), "")}, nil)
	s.child = s.server.request(7).ID
	return id
}

func (s *stage) repReceived() uint32 {
	id := s.reqSent()
	s.server.do(ucma.Accept{UID: 2, ID: s.child, Param: connParam(nextQPN(), "")}, nil)
	s.client.expect(ucma.EventConnectResponse, id)
	return id
}

func (s *stage) established() uint32 {
	id := s.repReceived()
	s.client.do(ucma.Accept{ID: id}, nil)
	s.server.expect(ucma.EventEstablished, s.child)
	return id
}

// What each command answers in each state, in the order of states: "." is
// success, "i" EINVAL, "c" EISCONN. It follows from kernel-abi 2.5, and from
// cma.c and cm.c where that says "needs a CM id".
var answers = []struct {
	results string
	cmd     func(r *rig, id uint32) ucma.Command
}{
	// idle, bound, boundDev, addrQuery, addrResolved, routeQuery, routeResolved,
	// reqSent, repReceived, established, disconnected, listen, listenDev, child
	{". i i  i i i i  i i i i  i i i", func(r *rig, id uint32) ucma.Command { return ucma.BindIP{ID: id, Addr: r.at("h2", 0)} }},
	{". i i  i i i i  i i i i  i i i", func(r *rig, id uint32) ucma.Command { return ucma.Bind{ID: id, Addr: r.at("h2", 0)} }},
	{". . .  i i i i  i i i i  i i i", func(r *rig, id uint32) ucma.Command {
		return ucma.ResolveIP{ID: id, Dst: r.at("h3", 1), Timeout: time.Second}
	}},
	{". . .  i i i i  i i i i  i i i", func(r *rig, id uint32) ucma.Command {
		return ucma.ResolveAddr{ID: id, Dst: r.at("h3", 1), Timeout: time.Second}
	}},
	{"i i i  i . i i  i i i i  i i i", func(_ *rig, id uint32) ucma.Command { return ucma.ResolveRoute{ID: id, Timeout: time.Second} }},
	{"i i i  i i i i  i i i i  i i i", func(_ *rig, id uint32) ucma.Command { return ucma.ResolveRoute{ID: id} }},
	{"i i i  i . i i  i i i i  i i i", func(_ *rig, id uint32) ucma.Command { return pathOption(id, mad.PathRecord{}) }},
	{". . .  i i i i  i i i i  i i i", func(_ *rig, id uint32) ucma.Command { return ucma.Listen{ID: id} }},
	{"i i i  i i i .  i i i i  i i i", func(_ *rig, id uint32) ucma.Command { return ucma.Connect{ID: id, Param: connParam(1, "")} }},
	{"i i i  i i i i  i i i i  i i i", func(_ *rig, id uint32) ucma.Command { return ucma.Connect{ID: id} }}, // not valid
	{"i i i  i i i i  i i i i  i i .", func(_ *rig, id uint32) ucma.Command {
		return ucma.Accept{UID: 1, ID: id, Param: connParam(1, "")}
	}},
	{"i i i  i i i i  i . i i  i i i", func(_ *rig, id uint32) ucma.Command { return ucma.Accept{ID: id} }},
	{"i i i  i i i i  . . i i  i i .", func(_ *rig, id uint32) ucma.Command { return ucma.Reject{ID: id} }},
	{"i i i  i i i i  . . i i  i i .", func(_ *rig, id uint32) ucma.Command { return ucma.Reject{ID: id, Reason: 35} }},
	{"i i i  i i i i  i i i i  i i i", func(_ *rig, id uint32) ucma.Command { return ucma.Reject{ID: id, Reason: 8} }},
	{"i i i  i i i i  i i i i  i i i", func(_ *rig, id uint32) ucma.Command {
		return ucma.Reject{ID: id, PrivateData: make([]byte, 149)}
	}},
	{"i i i  i i i i  . . . .  i . .", func(_ *rig, id uint32) ucma.Command { return ucma.Disconnect{ID: id} }},
	{"i i .  i . . .  . . . i  i i .", func(_ *rig, id uint32) ucma.Command { return ucma.InitQPAttr{ID: id, State: ucma.QPStateInit} }},
	{"i i .  i . . .  i . . i  i i .", func(_ *rig, id uint32) ucma.Command { return ucma.InitQPAttr{ID: id, State: ucma.QPStateRTR} }},
	{"i i .  i . . .  i . . i  i i .", func(_ *rig, id uint32) ucma.Command { return ucma.InitQPAttr{ID: id, State: ucma.QPStateRTS} }},
	{"i i .  i . . .  i i i i  i i i", func(_ *rig, id uint32) ucma.Command { return ucma.InitQPAttr{ID: id, State: ucma.QPStateErr} }},
	{"i i i  i i i i  i i i i  i i i", func(_ *rig, id uint32) ucma.Command { return ucma.InitQPAttr{ID: id, State: 7} }},
	{"i i i  i i i i  i i c i  i i i", func(_ *rig, id uint32) ucma.Command { return ucma.Notify{ID: id, Event: 4} }},
	{"i i i  i i i i  i i . i  i i i", func(_ *rig, id uint32) ucma.Command { return ucma.Notify{ID: id, Event: 6} }},
	{"i i i  i i i i  i i i i  i i i", func(_ *rig, id uint32) ucma.Command { return ucma.Notify{ID: id, Event: 5} }},
	{"i i i  i i i i  i i i i  i i i", func(_ *rig, id uint32) ucma.Command {
		return ucma.JoinIPMcast{ID: id, UID: 1, Addr: ucma.Sockaddr{IP: addrPortOf("224.1.2.3:0")}}
	}},
	{". . .  . . . .  . . . .  i i .", func(_ *rig, id uint32) ucma.Command { return intOption(id, ucma.OptionReuseAddr, 1) }},
	{". i i  i i i i  i i i i  i i i", func(_ *rig, id uint32) ucma.Command { return intOption(id, ucma.OptionReuseAddr, 0) }},
	{". . .  i i i i  i i i i  i i i", func(_ *rig, id uint32) ucma.Command { return intOption(id, ucma.OptionAFOnly, 1) }},
	{". . .  . . . .  . . . .  . . .", func(_ *rig, id uint32) ucma.Command { return byteOption(id, ucma.OptionTOS, 8) }},
	{". . .  . . . .  . . . .  . . .", func(_ *rig, id uint32) ucma.Command { return byteOption(id, ucma.OptionACKTimeout, 8) }},
	{"i i i  i i i i  i i i i  i i i", func(_ *rig, id uint32) ucma.Command { return intOption(id, ucma.OptionTOS, 8) }}, // too long
	{". . .  . . . .  . . . .  . . .", func(_ *rig, id uint32) ucma.Command { return ucma.QueryRoute{ID: id} }},
	{". . .  . . . .  . . . .  . . .", func(_ *rig, id uint32) ucma.Command { return ucma.Query{ID: id, Option: ucma.QueryAddr} }},
	{". . .  . . . .  . . . .  . . .", func(_ *rig, id uint32) ucma.Command { return ucma.Query{ID: id, Option: ucma.QueryPath} }},
	{". . .  . . . .  . . . .  . . .", func(_ *rig, id uint32) ucma.Command { return ucma.Query{ID: id, Option: ucma.QueryGID} }},
	{". . .  . . . .  . . . .  . . .", func(_ *rig, id uint32) ucma.Command { return ucma.DestroyID{ID: id} }},
}

func TestStates(t *testing.T) {
	errnos := map[string]error{".": nil, "i": ucma.EINVAL, "c": ucma.EISCONN}
	for i, st := range states {
		t.Run(st.name, func(t *testing.T) {
			for _, a := range answers {
				want := errnos[strings.Fields(a.results)[i]]
				onRig(t, false, func(t *testing.T, r *rig) {
					s := &stage{r: r, client: r.open(r.host("h2"), ucma.Linux), server: r.open(r.host("h3"), ucma.Linux)}
					s.server.listenAt(7, ucma.PortSpaceTCP, r.at("h3", 7174))
					cmd := a.cmd(r, st.get(s))
					if err := s.client.try(cmd, nil); err != want {
						t.Errorf("%v %+v: %v, want %v", cmd.Op(), cmd, err, want)
					}
				})
			}
		})
	}
}

func intOption(id, name uint32, v uint32) ucma.SetOption {
	return ucma.SetOption{ID: id, Level: ucma.OptionLevelID, Name: name, Value: binary.NativeEndian.AppendUint32(nil, v)}
}

func byteOption(id, name uint32, v uint8) ucma.SetOption {
	return ucma.SetOption{ID: id, Level: ucma.OptionLevelID, Name: name, Value: []byte{v}}
}

func pathOption(id uint32, p mad.PathRecord) ucma.SetOption {
	b := append(binary.NativeEndian.AppendUint32(nil, ucma.PathFlags), 0, 0, 0, 0)
	b, _ = p.AppendBinary(b)
	return ucma.SetOption{ID: id, Level: ucma.OptionLevelIB, Name: ucma.OptionIBPath, Value: b}
}

// Ids that there are not: of nobody, of another file, of a device that has been
// removed (ucma_get_ctx). LEAVE_MCAST looks at numbers of memberships.
func TestUnknownID(t *testing.T) {
	onRig(t, false, func(t *testing.T, r *rig) {
		h := r.host("h2")
		p, other := r.open(h, ucma.Linux), r.open(h, ucma.Linux)
		theirs := other.create(1, ucma.PortSpaceTCP)
		gone := p.create(1, ucma.PortSpaceTCP)
		p.bind(gone, r.at("h2", 0))
		if err := r.fab.Remove(r.endPort("h2").Node, 1); err != nil {
			t.Fatal(err)
		}
		p.expect(ucma.EventDeviceRemoval, gone)
		for _, a := range answers {
			if cmd := a.cmd(r, 77); cmd.Op() != ucma.OpDestroyID && strings.Contains(a.results, ".") {
				p.fails(ucma.ENOENT, cmd)
				p.fails(ucma.EINVAL, a.cmd(r, theirs))
				p.fails(ucma.ENXIO, a.cmd(r, gone))
			}
		}
		p.fails(ucma.ENOENT, ucma.DestroyID{ID: 77})
		p.fails(ucma.EINVAL, ucma.DestroyID{ID: theirs})
		p.fails(ucma.ENOENT, ucma.LeaveMcast{ID: theirs})
		p.do(ucma.DestroyID{ID: gone}, nil)

		// What needs no device still goes, but there is none to attach to, and no
		// interface of it.
		id := p.create(1, ucma.PortSpaceTCP)
		p.fails(ucma.EADDRNOTAVAIL, ucma.BindIP{ID: id, Addr: r.at("h2", 0)})
		p.fails(ucma.ENETUNREACH, ucma.ResolveIP{ID: id, Dst: r.at("h3", 1)})
	})
}

// The bytes themselves: header and sizes (ucma_write).
func TestBytes(t *testing.T) {
	onRig(t, false, func(t *testing.T, r *rig) {
		h := r.host("h2")
		linux, illumos := r.open(h, ucma.Linux), r.open(h, ucma.Illumos)
		header := func(op, in, out int, body int) []byte {
			b := binary.NativeEndian.AppendUint32(nil, uint32(op))
			b = binary.NativeEndian.AppendUint16(b, uint16(in))
			b = binary.NativeEndian.AppendUint16(b, uint16(out))
			return append(b, make([]byte, body)...)
		}
		create := func(in, out, body int) []byte {
			b := header(0, in, out, body)
			copy(b[8+16:], []byte{0x06, 0x01}) // TCP, on a little-endian machine
			return b
		}
		mem := make([]byte, 400)
		for _, tc := range []struct {
			name string
			p    *prog
			b    []byte
			mem  []byte
			want error
		}{
			{"no header", linux, make([]byte, 7), mem, ucma.EINVAL},
			{"GET_OPTION", linux, header(13, 0, 0, 0), mem, ucma.ENOSYS},
			{"GET_OPTION", illumos, header(13, 0, 0, 0), mem, ucma.EINVAL},
			{"RESOLVE_IB_SERVICE of newer kernels", linux, header(23, 88, 0, 88), mem, ucma.EINVAL},
			{"WRITE_CM_EVENT of newer kernels", linux, header(24, 320, 0, 320), mem, ucma.EINVAL},
			{"command 25", linux, header(25, 0, 0, 0), mem, ucma.EINVAL},
			{"MIGRATE_ID", illumos, header(18, 16, 4, 16), mem, ucma.EINVAL},
			{"in beyond the end", linux, create(25, 4, 24), mem, ucma.EINVAL},
			{"out too small", linux, create(24, 3, 24), mem, ucma.ENOSPC},
			{"in is not looked at", linux, create(0, 4, 24), mem, nil},
			{"no memory", linux, create(24, 4, 24), nil, ucma.EFAULT},
			{"bytes after the end", linux, create(24, 4, 30), mem, nil},
			{"in not exact", illumos, create(20, 4, 24), mem, ucma.EINVAL},
			{"out not exact", illumos, create(24, 8, 24), mem, ucma.EINVAL},
			{"exact", illumos, create(24, 4, 24), mem, nil},
			{"CONNECT too short", linux, header(6, 279, 0, 279), mem, ucma.EINVAL},
			{"CONNECT of 288 bytes", illumos, header(6, 288, 0, 288), mem, ucma.EINVAL},
			{"GET_EVENT, none", linux, header(12, 8, 324, 8), mem, ucma.EAGAIN},
			{"GET_EVENT, no room", linux, header(12, 8, 323, 8), mem, ucma.ENOSPC},
			{"QUERY PATH, no room", linux, append(header(19, 16, 7, 12), 1, 0, 0, 0), mem, ucma.ENOSPC},
			{"QUERY ADDR, no room", linux, header(19, 16, 271, 16), mem, ucma.ENOSPC},
			{"QUERY IB_SERVICE of newer kernels", linux, append(header(19, 16, 400, 12), 3, 0, 0, 0), mem, ucma.ENOSYS},
		} {
			if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
				t.Skip("the bytes are those of a little-endian machine")
			}
			if err := tc.p.Exec(tc.b, tc.mem); err != tc.want {
				t.Errorf("%v: %s: %v, want %v", tc.p.Dialect(), tc.name, err, tc.want)
			}
		}
	})
}

// BIND's own errnos (rdma_bind_addr_dst, cma_get_port).
func TestBind(t *testing.T) {
	inBothModes(t, func(t *testing.T, r *rig) {
		p := r.open(r.host("h2"), ucma.Linux)
		ip := func(s string) ucma.Sockaddr { return ucma.Sockaddr{IP: addrPortOf(s)} }
		tcp := func() uint32 { return p.create(1, ucma.PortSpaceTCP) }
		bound := func(a ucma.Sockaddr, options ...uint32) uint32 {
			id := tcp()
			for _, o := range options {
				p.do(intOption(id, o, 1), nil)
			}
			p.bind(id, a)
			return id
		}
		any1, own1 := ip("0.0.0.0:1"), r.at("h2", 1)

		p.fails(ucma.EADDRNOTAVAIL, ucma.BindIP{ID: tcp(), Addr: ip("10.9.9.9:1")})
		p.fails(ucma.EINVAL, ucma.BindIP{ID: tcp()}) // AF_UNSPEC
		p.fails(ucma.EINVAL, ucma.BindIP{ID: tcp(), Addr: ip("[fe80::1]:1")})
		p.fails(ucma.EPROTONOSUPPORT, ucma.Bind{ID: p.create(1, ucma.PortSpaceIPoIB), Addr: ucma.Sockaddr{IB: &ucma.SockaddrIB{}}})

		first := bound(own1)
		p.fails(ucma.EADDRINUSE, ucma.BindIP{ID: tcp(), Addr: own1})
		p.fails(ucma.EADDRNOTAVAIL, ucma.BindIP{ID: tcp(), Addr: any1})
		bound(ip("[2001:db8::2]:1")) // another address
		udp := p.create(1, ucma.PortSpaceUDP)
		p.bind(udp, own1) // another port space
		failed := tcp()
		p.fails(ucma.EADDRINUSE, ucma.BindIP{ID: failed, Addr: own1})
		p.bind(failed, r.at("h2", 2)) // it may try again
		p.do(ucma.DestroyID{ID: first}, nil)
		bound(own1)

		// Shared while nobody listens.
		a, b := bound(ip("0.0.0.0:3"), ucma.OptionReuseAddr), bound(ip("0.0.0.0:3"), ucma.OptionReuseAddr)
		p.fails(ucma.EADDRNOTAVAIL, ucma.Listen{ID: a})
		p.do(ucma.DestroyID{ID: b}, nil)
		p.do(ucma.Listen{ID: a}, nil)
		bound(ip("[::]:3"), ucma.OptionAFOnly) // IPv6 only
		p.fails(ucma.EADDRNOTAVAIL, ucma.BindIP{ID: tcp(), Addr: ip("[::]:3")})

		var addr ucma.QueryAddrResp
		id := bound(r.at("h2", 0))
		p.do(ucma.Query{ID: id, Option: ucma.QueryAddr}, &addr)
		if port := addr.Src.IP.Port(); port < 32768 || port > 60999 {
			t.Errorf("port %d, want an ephemeral one", port)
		}
		// kernel-abi 2.8: QUERY ADDR reads the P_Key out of the broadcast address.
		if want := map[bool]mad.PKey{true: 0, false: 0xffff}[r.roce]; addr.PKey != want || addr.PortNum != 1 {
			t.Errorf("P_Key %v of port %d, want %v of 1", addr.PKey, addr.PortNum, want)
		}
		p.do(ucma.Query{ID: id, Option: ucma.QueryGID}, &addr)
		gid := r.endPort("h2").GID(r.sub.GIDPrefix)
		if r.roce {
			gid = gidOf(r.at("h2", 0))
		}
		if got := addr.Src.IB; got == nil || got.GID != gid || got.ServiceID>>16 != 0x106 {
			t.Errorf("QUERY GID %v, want %v", addr.Src, gid)
		}
	})
}

// RESOLVE_ADDR: what fails at once, and what later (addr.c).
func TestResolve(t *testing.T) {
	inBothModes(t, func(t *testing.T, r *rig) {
		var known bool
		p := r.open(r.host("h2", func(c *Config) {
			c.Neighbour = func(ip netip.Addr) (Neighbour, bool) {
				if ip == netip.MustParseAddr("10.0.99.1") {
					return Neighbour{}, known
				}
				return r.neighbour(ip)
			}
		}), ucma.Linux)
		ip := func(s string) ucma.Sockaddr { return ucma.Sockaddr{IP: addrPortOf(s)} }
		id := p.create(1, ucma.PortSpaceTCP)
		p.fails(ucma.ENETUNREACH, ucma.ResolveIP{ID: id, Dst: ip("192.0.2.1:1"), Timeout: time.Second})
		// It is bound now, and the family stays.
		p.fails(ucma.EINVAL, ucma.ResolveIP{ID: id, Dst: ip("[2001:db8::3]:1"), Timeout: time.Second})
		p.fails(ucma.EINVAL, ucma.ResolveIP{ID: id, Timeout: time.Second})

		// Nobody has it: after the time-out, and not before. The id may try again.
		for range 2 {
			start := time.Now()
			p.do(ucma.ResolveIP{ID: id, Dst: ip("10.0.99.99:1"), Timeout: 1500 * time.Millisecond}, nil)
			e, _ := p.next(time.Minute)
			if e.Event != ucma.EventAddrError || e.Status != -110 || time.Since(start) != 1500*time.Millisecond {
				t.Errorf("%v %d after %v, want ADDR_ERROR -110 after 1.5s", e.Event, e.Status, time.Since(start))
			}
		}
		// Through the interface that it knows by now everything is near.
		p.do(ucma.ResolveIP{ID: id, Dst: ip("192.0.2.1:1")}, nil)
		if e := p.expect(ucma.EventAddrError, id); e.Status != -110 {
			t.Errorf("ADDR_ERROR %d, want -110", e.Status)
		}
		// Found in the end.
		known = false
		p.do(ucma.ResolveIP{ID: id, Dst: ip("10.0.99.1:1"), Timeout: time.Second}, nil)
		synctest.Wait()
		known = true
		e, _ := p.next(time.Minute)
		if e.Event != ucma.EventAddrResolved {
			t.Errorf("%v, want ADDR_RESOLVED", e.Event)
		}

		// The host itself, by no address and by 127.0.0.1.
		for _, dst := range []string{"0.0.0.0:1", "127.0.0.1:1"} {
			id := p.create(1, ucma.PortSpaceTCP)
			p.do(ucma.ResolveIP{ID: id, Dst: ip(dst), Timeout: time.Second}, nil)
			p.expect(ucma.EventAddrResolved, id)
			if r.roce { // no network device is bound
				p.fails(ucma.ENODEV, ucma.ResolveRoute{ID: id, Timeout: time.Second})
				continue
			}
			p.do(ucma.ResolveRoute{ID: id, Timeout: time.Second}, nil)
			p.expect(ucma.EventRouteResolved, id)
			listener := p.listenAt(7, ucma.PortSpaceTCP, ip("0.0.0.0:1"))
			p.do(ucma.Connect{ID: id, Param: connParam(1, "")}, nil)
			// validate_net_dev wants no loopback address.
			if e := p.expect(ucma.EventRejected, id); e.Status != 28 {
				t.Errorf("REJECTED %d, want 28", e.Status)
			}
			p.do(ucma.DestroyID{ID: listener}, nil)
		}

		// AF_IB: the source is found by the subnet, or not at all.
		id = p.create(1, ucma.PortSpaceTCP)
		far := r.gid("h3", ucma.PortSpaceTCP, 1)
		far.IB.GID[0] = 0x20
		p.fails(ucma.ENODEV, ucma.ResolveAddr{ID: id, Dst: far, Timeout: time.Second})
	})
}

// RESOLVE_ROUTE without an answer ends after 11 tries of a tenth of the time-out
// each (sa_query.c, send_mad); with a refusal at once, by EINVAL.
func TestRouteError(t *testing.T) {
	onRig(t, false, func(t *testing.T, r *rig) {
		p := r.open(r.host("h2"), ucma.Linux)
		id := p.create(1, ucma.PortSpaceTCP)
		// A GID that nobody has.
		nobody := r.gid("h3", ucma.PortSpaceTCP, 1)
		nobody.IB.GID[15]++
		p.do(ucma.ResolveAddr{ID: id, Dst: nobody, Timeout: time.Second}, nil)
		p.expect(ucma.EventAddrResolved, id)
		p.do(ucma.ResolveRoute{ID: id, Timeout: time.Second}, nil)
		if e := p.expect(ucma.EventRouteError, id); e.Status != -22 {
			t.Errorf("ROUTE_ERROR %d, want -22", e.Status)
		}
		if err := r.fab.Cut(r.endPort("h1")); err != nil {
			t.Fatal(err)
		}
		for _, timeout := range []time.Duration{5 * time.Second, 1005 * time.Millisecond, 7 * time.Millisecond} {
			start := time.Now()
			p.do(ucma.ResolveRoute{ID: id, Timeout: timeout}, nil)
			e, _ := p.next(time.Minute)
			want := map[time.Duration]time.Duration{
				5 * time.Second: 5500 * time.Millisecond, 1005 * time.Millisecond: 1100 * time.Millisecond, 7 * time.Millisecond: 8 * time.Millisecond,
			}[timeout]
			if e.Event != ucma.EventRouteError || e.Status != -110 || time.Since(start) != want {
				t.Errorf("%v: %v %d after %v, want ROUTE_ERROR -110 after %v", timeout, e.Event, e.Status, time.Since(start), want)
			}
		}
		// A question that is not needed any more ends, or Close waits for it.
		p.do(ucma.ResolveRoute{ID: id, Timeout: time.Hour}, nil)
		p.do(ucma.DestroyID{ID: id}, nil)
		if err := errors.Join(p.Close()); err != nil {
			t.Error(err)
		}
	})
}
