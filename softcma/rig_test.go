package softcma

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/topo"
	"github.com/ibsm/ibsm/ucma"
)

// rig is a fabric with the SA at h1, in a synctest bubble.
type rig struct {
	t    *testing.T
	roce bool
	fab  *sim.Fabric
	sub  *topo.Subnet

	hosts []*Host

	mu   sync.Mutex
	sent []mad.AttributeID // CM messages as they were delivered
}

// onRig runs a test. Everything is closed after it, and whatever goroutine is left
// fails the test (synctest).
func onRig(t *testing.T, roce bool, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, roce: roce}
		var err error
		if r.sub, err = topo.Generate("demo"); err != nil {
			t.Fatal(err)
		}
		if r.fab, err = sim.New(r.sub, sim.Config{Trace: r.note}); err != nil {
			t.Fatal(err)
		}
		defer r.fab.Close()
		admin, err := server.New(r.device("h1"), r.sub, server.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close()
		defer func() {
			for _, h := range r.hosts {
				if err := h.Close(); err != nil && !errors.Is(err, port.ErrGone) {
					t.Errorf("close: %v", err)
				}
				empty(t, h)
			}
		}()
		test(t, r)
	})
}

// inBothModes runs a test on InfiniBand and on RoCE.
func inBothModes(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Run("infiniband", func(t *testing.T) { onRig(t, false, test) })
	t.Run("roce", func(t *testing.T) { onRig(t, true, test) })
}

func (r *rig) note(e sim.Event) {
	if e.Kind != sim.Deliver || e.MAD.Class != mad.ClassComMgt {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, e.MAD.Attribute)
}

// count tells how many CM messages of a kind were delivered.
func (r *rig) count(m cm.Message) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.sent {
		if a == m.Attribute() {
			n++
		}
	}
	return n
}

func (r *rig) endPort(name string) *topo.Port {
	r.t.Helper()
	p, ok := r.sub.PortByName(name)
	if !ok {
		r.t.Fatalf("no port %s", name)
	}
	return p
}

func (r *rig) device(name string) *softmad.Device {
	r.t.Helper()
	p := r.endPort(name)
	dev, err := r.fab.Device(p.Node, p.Num)
	if err != nil {
		r.t.Fatal(err)
	}
	return dev
}

// neighbour is everybody's ARP table.
func (r *rig) neighbour(ip netip.Addr) (Neighbour, bool) {
	for _, n := range r.sub.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.IsEnd() && (p.IP == ip || len(n.Name) > 1 && ip6(n.Name) == ip) {
				return Neighbour{GID: p.GID(r.sub.GIDPrefix), LID: p.LID}, true
			}
		}
	}
	return Neighbour{}, false
}

// ip6 is the IPv6 address of hN: 2001:db8::N.
func ip6(name string) netip.Addr {
	ip, _ := netip.ParseAddr("2001:db8::" + name[1:])
	return ip
}

// host starts the RDMA CM of a port.
func (r *rig) host(name string, change ...func(*Config)) *Host {
	r.t.Helper()
	dev := r.device(name)
	p, err := dev.OpenKernel()
	if err != nil {
		r.t.Fatal(err)
	}
	cfg := Config{
		Addrs: []netip.Prefix{netip.PrefixFrom(r.ip(name), 16), netip.PrefixFrom(ip6(name), 64)}, Neighbour: r.neighbour, RoCE: r.roce,
	}
	for _, c := range change {
		c(&cfg)
	}
	h, err := New(p, dev, cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.hosts = append(r.hosts, h)
	return h
}

func (r *rig) ip(name string) netip.Addr { return r.endPort(name).IP }

// at is an address of a host with a port number.
func (r *rig) at(name string, port uint16) ucma.Sockaddr {
	return ucma.Sockaddr{IP: netip.AddrPortFrom(r.ip(name), port)}
}

// gid is an AF_IB address in a port space.
func (r *rig) gid(name string, ps ucma.PortSpace, port uint16) ucma.Sockaddr {
	return ucma.Sockaddr{IB: &ucma.SockaddrIB{
		PKey: mad.DefaultPKey, GID: r.endPort(name).GID(r.sub.GIDPrefix), ServiceID: uint64(ps)<<16 | uint64(port), ServiceIDMask: ^uint64(0),
	}}
}

// prog is a program with an open file.
type prog struct {
	t *testing.T
	h *Host
	ucma.Device
}

func (r *rig) open(h *Host, d *ucma.Dialect) *prog {
	r.t.Helper()
	f, err := h.Open(d)
	if err != nil {
		r.t.Fatal(err)
	}
	return &prog{r.t, h, f}
}

// try does a command, with the memory for its response or the value of an option.
func (p *prog) try(c ucma.Command, resp ucma.Response) error {
	p.t.Helper()
	b, err := p.Dialect().AppendUnchecked(nil, c)
	if err != nil {
		p.t.Fatal(err)
	}
	mem := make([]byte, binary.NativeEndian.Uint16(b[6:]))
	if o, ok := c.(ucma.SetOption); ok {
		mem = o.Value
	}
	if err := p.Exec(b, mem); err != nil {
		return err
	}
	if resp == nil {
		return nil
	}
	return p.Dialect().ParseResponse(mem, resp)
}

// do does a command that succeeds.
func (p *prog) do(c ucma.Command, resp ucma.Response) {
	p.t.Helper()
	if err := p.try(c, resp); err != nil {
		p.t.Fatalf("%v %+v: %v", c.Op(), c, err)
	}
}

// fails does a command that ends with an errno.
func (p *prog) fails(want ucma.Errno, c ucma.Command) {
	p.t.Helper()
	if err := p.try(c, nil); !errors.Is(err, want) {
		p.t.Errorf("%v %+v: %v, want %v", c.Op(), c, err, want)
	}
}

func (p *prog) create(uid uint64, ps ucma.PortSpace) uint32 {
	p.t.Helper()
	var resp ucma.CreateIDResp
	p.do(ucma.CreateID{UID: uid, PS: ps}, &resp)
	return resp.ID
}

// bind binds by the command that both dialects have.
func (p *prog) bind(id uint32, a ucma.Sockaddr) {
	p.t.Helper()
	p.do(ucma.BindIP{ID: id, Addr: a}, nil)
}

// next is the next event, for which it waits up to d.
func (p *prog) next(d time.Duration) (e ucma.EventResp, ok bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if err := p.Wait(ctx); err != nil {
		return e, false
	}
	p.do(ucma.GetEvent{}, &e)
	return e, true
}

// expect is the next event, which comes at once.
func (p *prog) expect(typ ucma.EventType, id uint32) ucma.EventResp {
	p.t.Helper()
	e, ok := p.next(time.Millisecond)
	if !ok {
		p.t.Fatalf("no event, want %v of id %d", typ, id)
	}
	if e.Event != typ || e.ID != id {
		p.t.Fatalf("%v of id %d, status %d; want %v of id %d", e.Event, e.ID, e.Status, typ, id)
	}
	return e
}

// quiet checks that no event comes for a while.
func (p *prog) quiet(d time.Duration) {
	p.t.Helper()
	if e, ok := p.next(d); ok {
		p.t.Errorf("%v of id %d, want no event", e.Event, e.ID)
	}
}

// resolve brings an id to a path.
func (p *prog) resolve(id uint32, dst ucma.Sockaddr) {
	p.t.Helper()
	if dst.IB != nil {
		p.do(ucma.ResolveAddr{ID: id, Dst: dst, Timeout: time.Second}, nil)
	} else {
		p.do(ucma.ResolveIP{ID: id, Dst: dst, Timeout: time.Second}, nil)
	}
	p.expect(ucma.EventAddrResolved, id)
	p.do(ucma.ResolveRoute{ID: id, Timeout: time.Second}, nil)
	p.expect(ucma.EventRouteResolved, id)
}

// listenAt makes a listener.
func (p *prog) listenAt(uid uint64, ps ucma.PortSpace, a ucma.Sockaddr) uint32 {
	p.t.Helper()
	id := p.create(uid, ps)
	if a.IB != nil {
		p.do(ucma.Bind{ID: id, Addr: a}, nil)
	} else {
		p.bind(id, a)
	}
	p.do(ucma.Listen{ID: id}, nil)
	return id
}

// request is a CONNECT_REQUEST to a listener; it gives the new id.
func (p *prog) request(uid uint64) ucma.EventResp {
	p.t.Helper()
	e, ok := p.next(time.Millisecond)
	if !ok || e.Event != ucma.EventConnectRequest || e.UID != uid {
		p.t.Fatalf("%+v, want a CONNECT_REQUEST of uid %d", e, uid)
	}
	return e
}

// connParam is what a test connects or accepts with.
func connParam(qpn uint32, data string) ucma.ConnParam {
	return ucma.ConnParam{
		QPNum: qpn, PrivateData: []byte(data), ResponderResources: 3, InitiatorDepth: 2, RetryCount: 6, RNRRetryCount: 5, Valid: true,
	}
}

// establish connects two programs; it gives both ids.
func establish(active, passive *prog, dst ucma.Sockaddr, listener uint64) (uint32, uint32) {
	active.t.Helper()
	a := active.create(1, ucma.PortSpaceTCP)
	active.resolve(a, dst)
	active.do(ucma.Connect{ID: a, Param: connParam(nextQPN(), "")}, nil)
	p := passive.request(listener).ID
	passive.do(ucma.Accept{UID: 2, ID: p, Param: connParam(nextQPN(), "")}, nil)
	active.expect(ucma.EventConnectResponse, a)
	active.do(ucma.Accept{ID: a}, nil)
	passive.expect(ucma.EventEstablished, p)
	return a, p
}

var qpn struct {
	sync.Mutex
	last uint32
}

// nextQPN is a queue pair number that no connection had.
func nextQPN() uint32 {
	qpn.Lock()
	defer qpn.Unlock()
	qpn.last++
	return 0x1000 + qpn.last
}

// empty checks that a host has nothing left of its programs.
func empty(t *testing.T, h *Host) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.core
	if c.ctxs.n != 0 || c.mcasts.n != 0 || len(c.attached) != 0 || len(c.binds) != 0 || len(c.groups) != 0 || len(c.works) != 0 || c.cm.IDs() != 0 {
		t.Errorf("left: %d contexts, %d memberships, %d attached ids, %d ports, %d groups, %d things to do, %d CM ids",
			c.ctxs.n, c.mcasts.n, len(c.attached), len(c.binds), len(c.groups), len(c.works), c.cm.IDs())
	}
}

func addrPortOf(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// group is a multicast group as an AF_IB address.
func (r *rig) group(gid mad.GID) ucma.Sockaddr { return ucma.Sockaddr{IB: &ucma.SockaddrIB{GID: gid}} }
