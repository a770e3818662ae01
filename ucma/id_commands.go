package ucma

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Commands of an id. Each returns a *StateError if the id's state forbids it, an
// *IDError if the kernel refused it, and else when the kernel has taken it; which
// events follow stands with each. A command with an address is the one of the newest
// kernel interface where the dialect has that (BIND, RESOLVE_ADDR, JOIN_MCAST), or
// the older one for IP addresses.

// Bind binds the id to an address of this host, whose device it then has. A port of 0
// is chosen by the kernel, and any address of the family (0.0.0.0) gives no device.
func (id *ID) Bind(addr Sockaddr) error {
	if id.has(OpBind) {
		return id.run(&ruleBind, Bind{ID: id.num, Addr: addr}, nil)
	}
	return id.run(&ruleBind, BindIP{ID: id.num, Addr: addr}, nil)
}

// ResolveAddr finds the device and the neighbour for dst. src may be zero, and does
// not count if the id is bound. Events: ADDR_RESOLVED, or ADDR_ERROR, after which it
// can be tried again.
func (id *ID) ResolveAddr(src, dst Sockaddr, timeout time.Duration) error {
	var cmd Command = ResolveIP{ID: id.num, Src: src, Dst: dst, Timeout: timeout}
	if id.has(OpResolveAddr) {
		cmd = ResolveAddr{ID: id.num, Src: src, Dst: dst, Timeout: timeout}
	}
	if err := id.run(&ruleResolveAddr, cmd, nil); err != nil {
		return err
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	id.dst = dst
	return nil
}

// ResolveRoute has the kernel ask the SA for the path. Events: ROUTE_RESOLVED, or
// ROUTE_ERROR, after which it can be tried again.
func (id *ID) ResolveRoute(timeout time.Duration) error {
	return id.run(&ruleResolveRoute, ResolveRoute{ID: id.num, Timeout: timeout}, nil)
}

// SetPath sets the path instead of ResolveRoute. The kernel takes it as it is: of a P_Key
// that the port does not have CONNECT fails with ENOENT, and a path with other GIDs than
// those that were resolved is used as if it were right. A field whose value is wider than
// it is on the wire is refused here. Event: ROUTE_RESOLVED. illumos cannot.
func (id *ID) SetPath(path *mad.PathRecord) error {
	if err := fitsWire(id.channel().dialect, path); err != nil {
		return id.failed(id.State(), err)
	}
	return id.run(&ruleSetPath, SetIBPath(id.num, PathRecData{Flags: PathFlags, Path: *path}), nil)
}

// SetTOS sets the type of service, from which the kernel makes the traffic class,
// and on Ethernet the SL, of paths that it resolves afterwards.
func (id *ID) SetTOS(tos uint8) error { return id.run(&ruleOption, SetTOS(id.num, tos), nil) }

// SetReuseAddr lets the id bind to a port that is in use, as SO_REUSEADDR does.
func (id *ID) SetReuseAddr(on bool) error {
	return id.run(&ruleReuseAddr, SetReuseAddr(id.num, on), nil)
}

// SetAFOnly has an id that listens on the IPv6 wildcard take IPv6 alone, as
// IPV6_V6ONLY does.
func (id *ID) SetAFOnly(on bool) error { return id.run(&ruleAFOnly, SetAFOnly(id.num, on), nil) }

// SetACKTimeout sets the ACK time-out of the queue pair: 4.096 us × 2^timeout, 5 bits
// (IBA 9.7.6.1.3). 0 disables it.
func (id *ID) SetACKTimeout(timeout uint8) error {
	return id.run(&ruleAckTimeout, SetACKTimeout(id.num, timeout), nil)
}

// QueryRoute tells the id's addresses, device and paths.
func (id *ID) QueryRoute() (QueryRouteResp, error) {
	var r QueryRouteResp
	return r, id.run(&ruleQuery, QueryRoute{ID: id.num}, &r)
}

// QueryAddr tells the id's addresses and device.
func (id *ID) QueryAddr() (QueryAddrResp, error) {
	var r QueryAddrResp
	return r, id.run(&ruleQuery, Query{ID: id.num, Option: QueryAddr}, &r)
}

// QueryGID tells the id's addresses as GIDs and service ids.
func (id *ID) QueryGID() (QueryAddrResp, error) {
	var r QueryAddrResp
	return r, id.run(&ruleQuery, Query{ID: id.num, Option: QueryGID}, &r)
}

// QueryPath tells the id's paths with every field. On Ethernet the LIDs and
// RawTraffic are not to be read: the kernel has the MAC address there.
func (id *ID) QueryPath() (QueryPathResp, error) {
	var r QueryPathResp
	return r, id.run(&ruleQuery, Query{ID: id.num, Option: QueryPath}, &r)
}

// QueryIBService tells the services that ResolveIBService found.
func (id *ID) QueryIBService() (QueryIBServiceResp, error) {
	var r QueryIBServiceResp
	return r, id.run(&ruleQuery, Query{ID: id.num, Option: QueryIBService}, &r)
}

// InitQPAttr tells the attributes with which the id's queue pair goes to a state. INIT
// can be asked for as soon as the id has a device; RTR and RTS from the peer's request
// or response on.
func (id *ID) InitQPAttr(state QPState) (QPAttr, error) {
	r := &ruleQPInit
	if state != QPStateInit && id.qpType != QPTypeUD {
		r = &ruleQPReady
	}
	var attr QPAttr
	return attr, id.run(r, InitQPAttr{ID: id.num, State: state}, &attr)
}

// Connect sends the REQ, or of a datagram id the SIDR_REQ; p.Valid need not be set.
// Events: CONNECT_RESPONSE (of a datagram id ESTABLISHED), REJECTED or UNREACHABLE; for
// a peer that is silent that takes a kernel more than a minute.
func (id *ID) Connect(p ConnParam, ece *ECE) error {
	p.Valid = true
	if err := id.fits(OpConnect, p.PrivateData); err != nil {
		return err
	}
	return id.run(&ruleConnect, Connect{ID: id.num, Param: p, ECE: ece}, nil)
}

// Listen waits for connections; at most backlog of them wait to be taken by Next or
// Wait, and the peers of others are rejected. 0: DefaultBacklog. The kernel has the same
// limit for requests that are not fetched yet, and drops a REQ above it silently, so that
// its peer sends it again (cm.c, cm_destroy_id with ENOMEM); as a Channel fetches at once,
// that is rare. Event: CONNECT_REQUEST for each.
func (id *ID) Listen(backlog int) error {
	if backlog <= 0 || backlog > math.MaxInt32 {
		backlog = DefaultBacklog
	}
	return id.run(&ruleListen, Listen{ID: id.num, Backlog: uint32(backlog)}, nil)
}

// Accept sends the REP, or of a datagram id the SIDR_REP; p.Valid need not be set. Event:
// ESTABLISHED, or REJECTED or UNREACHABLE; of a datagram id none. If it fails the kernel
// has rejected the connection.
func (id *ID) Accept(p ConnParam, ece *ECE) error {
	p.Valid = true
	if err := id.fits(OpAccept, p.PrivateData); err != nil {
		return err
	}
	if err := id.run(&ruleAccept, Accept{UID: id.uid, ID: id.num, Param: p, ECE: ece}, nil); err != nil {
		return err
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	id.accepted = true
	return nil
}

// AcceptRTU sends the RTU after the CONNECT_RESPONSE, when the own queue pair is ready:
// the connection is up. No event tells so on this side.
func (id *ID) AcceptRTU() error {
	return id.run(&ruleAcceptRTU, Accept{UID: id.uid, ID: id.num}, nil)
}

// Reject sends a REJ instead of Accept or AcceptRTU. No event follows.
func (id *ID) Reject(reason RejectReason, private []byte) error {
	if err := id.fits(OpReject, private); err != nil {
		return err
	}
	return id.run(&ruleReject, Reject{ID: id.num, Reason: reason, PrivateData: private}, nil)
}

// Notify tells the kernel of an event of the id's queue pair (IB_EVENT_COMM_EST 4,
// IB_EVENT_PATH_MIG 6). COMM_EST on a connection whose RTU has not come gives
// ESTABLISHED.
func (id *ID) Notify(event uint32) error {
	return id.run(&ruleNotify, Notify{ID: id.num, Event: event}, nil)
}

// Disconnect sends the DREQ, or the DREP to the peer's. Event: DISCONNECTED, with status
// -ETIMEDOUT if the peer is silent.
func (id *ID) Disconnect() error {
	return id.run(&ruleDisconnect, Disconnect{ID: id.num}, nil)
}

// ResolveIBService has the kernel ask the SA for services by id or by name. Events:
// ADDRINFO_RESOLVED, after which QueryIBService tells them, or ADDRINFO_ERROR. Linux 6.17.
func (id *ID) ResolveIBService(by ServiceFlags, serviceID uint64, name string) error {
	cmd := ResolveIBService{ID: id.num, Flags: by, ServiceID: serviceID}
	if len(name) >= len(cmd.ServiceName) {
		return id.failed(id.State(), errors.New("RESOLVE_IB_SERVICE: a service name has at most 63 bytes"))
	}
	copy(cmd.ServiceName[:], name)
	return id.run(&ruleResolveService, cmd, nil)
}

// WriteEvent puts an event of the program's own, USER or INTERNAL, into the queue of
// the id. Linux 6.17.
func (id *ID) WriteEvent(e EventType, status int32, param EventParam) error {
	return id.run(&ruleQuery, WriteCMEvent{ID: id.num, Event: e, Status: status, Param: param}, nil)
}

// Migrate moves the id, with events that are not fetched yet, to another channel. The
// id's own device must tell its descriptor by a method FD() uint32, and only Linux can.
func (id *ID) Migrate(to *Channel) error {
	from := id.channel()
	file, ok := from.dev.(interface{ FD() uint32 })
	if !ok {
		return id.failed(id.State(), errors.New("MIGRATE_ID: the device is no open file"))
	}
	// The events come by either channel meanwhile.
	boxes := id.boxes()
	for uid, box := range boxes {
		to.add(uid, box)
	}
	err := id.migrate(to, file.FD())
	from.settle()
	left := from
	if err != nil {
		left = to
	}
	for uid := range boxes {
		left.remove(uid)
	}
	return err
}

// boxes are the id and its groups.
func (id *ID) boxes() map[uint64]receiver {
	id.mu.Lock()
	defer id.mu.Unlock()
	all := map[uint64]receiver{id.uid: id}
	for uid, g := range id.groups {
		all[uid] = g
	}
	return all
}

func (id *ID) migrate(to *Channel, fd uint32) error {
	cmd := MigrateID{ID: id.num, FD: fd}
	undo, was, err := id.begin(cmd, &ruleMigrate)
	if err != nil {
		return err
	}
	if err := Do(to.dev, cmd, new(DestroyIDResp)); err != nil {
		undo()
		return id.failed(was, err)
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	id.ch = to
	id.box.wake() // who waits must look at the new channel
	for _, g := range id.groups {
		g.box.wake()
	}
	return nil
}

func (id *ID) has(op Op) bool {
	_, ok := id.channel().dialect.Spec(op)
	return ok
}

// fits checks that the message of a command has room for private data, and that the
// peer will not take it for something else. How much there is depends on the kinds of
// queue pair and of address.
func (id *ID) fits(op Op, private []byte) error {
	id.mu.Lock()
	d, family, state := id.ch.dialect, id.dst.Family(), id.state
	id.mu.Unlock()
	most := d.PrivateDataLimit(op, id.qpType, family)
	switch {
	case op == OpConnect && family == AFIB && len(private) > 0 && private[0] != 0:
		return id.failed(state, &CommandError{
			Dialect: d, Op: op, Field: "private data", Rule: fmt.Sprintf("begins with 0x%02x", private[0]),
			Fix: "to a GID it must begin with 0, which the peer's kernel takes for the version of an IP header (cma.c, cma_save_ip_info)", Err: EINVAL,
		})
	case len(private) <= most:
		return nil
	}
	return id.failed(state, &CommandError{
		Dialect: d, Op: op, Field: "private data", Rule: fmt.Sprintf("%d bytes", len(private)),
		Fix: fmt.Sprintf("at most %d fit for an id of type %v and an address of %v", most, id.qpType, family), Err: EINVAL,
	})
}
