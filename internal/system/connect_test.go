package system

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/softcma"
	"github.com/ibsm/ibsm/topo"
	"github.com/ibsm/ibsm/ucma"
)

// Times of the CM on the demo fabric, each 4.096 us * 2^n counted as 2^(n-8) ms
// (cm.c, cm_convert_to_ms): a path's life time is its subnet's time-out, 18, and
// the RDMA CM gives a peer 20 to answer and sends all 16 times (cma.c). A REQ waits
// for the way there and back too (ib_send_cm_req), and so does its sender's DREQ; the
// other side's REP and DREQ, and a SIDR_REQ, do not (cm_req_handler,
// cma_resolve_ib_udp).
const (
	activeTry  = (2*1024 + 4096) * time.Millisecond
	passiveTry = 4096 * time.Millisecond
	tries      = 16
)

// rdmaPort is where the tests listen.
const rdmaPort = 7174

var dialects = []*ucma.Dialect{ucma.Linux, ucma.Illumos}

// cmHouse is a fabric whose hosts have RDMA CMs. What their CMs send goes into a
// log, and is lost if the test says so.
type cmHouse struct {
	*house
	began time.Time
	hosts []*cmHost
	tap   func(p port.Port, dev port.Device) port.Port // or nil; nearer to the CM than the losses

	mu   sync.Mutex
	log  []string       // "6.144s h2>REQ"
	lose map[string]int // "h2>REQ": how many of the next are lost
}

// cmHost is a host with its RDMA CM.
type cmHost struct {
	*topo.Port
	house *cmHouse
	name  string
	cm    *softcma.Host
}

// onCMs runs a test on the demo fabric in a bubble, with the SA at h1. At the end
// no host may have an id left, or a connection that it must tell a peer of.
func onCMs(t *testing.T, cfg sim.Config, test func(t *testing.T, h *cmHouse)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &cmHouse{house: build(t, "demo", cfg), began: time.Now(), lose: map[string]int{}}
		h.serve(h.sub, port.RMPPKernel)
		test(t, h)
		h.checkEmpty()
	})
}

func (h *cmHouse) checkEmpty() {
	h.t.Helper()
	synctest.Wait()
	for _, host := range h.hosts {
		host.checkIDs()
	}
	before := len(h.sent())
	for _, host := range h.hosts {
		host.cm.Close()
	}
	if rest := h.sent()[before:]; len(rest) > 0 {
		h.t.Errorf("hosts that should have nothing left send %q", rest)
	}
}

// checkIDs checks that no id is left. Each new one has the lowest free number, of
// all files together.
func (c *cmHost) checkIDs() {
	c.house.t.Helper()
	dev, err := c.cm.Open(ucma.Linux)
	if errors.Is(err, ucma.ErrClosed) {
		return // by the test
	}
	c.house.must(err)
	defer dev.Close()
	for want := range uint32(100) {
		var made ucma.CreateIDResp
		c.house.must(ucma.Do(dev, ucma.CreateID{UID: 1, PS: ucma.PortSpaceTCP}, &made))
		if made.ID != want {
			c.house.t.Errorf("%s has an id %d left", c.name, want)
			return
		}
	}
}

// host starts the RDMA CM of a host, which has two addresses.
func (h *cmHouse) host(name string) *cmHost {
	h.t.Helper()
	c := &cmHost{Port: h.port(name), house: h, name: name}
	kernel, err := h.fabric.Device(c.Node, c.Num)
	h.must(err)
	out, err := kernel.OpenKernel()
	h.must(err)
	at := port.Port(&cmWire{out, c})
	if h.tap != nil {
		at = h.tap(at, kernel)
	}
	c.cm, err = softcma.New(at, kernel, softcma.Config{
		Addrs:     []netip.Prefix{netip.PrefixFrom(c.IP, 24), netip.PrefixFrom(c.ip6(), 64)},
		Neighbour: h.neighbour,
	})
	h.must(err)
	h.t.Cleanup(func() { c.cm.Close() })
	h.hosts = append(h.hosts, c)
	return c
}

// neighbour is everybody's ARP table: the fabric's ports, whether their hosts are up
// or not.
func (h *cmHouse) neighbour(ip netip.Addr) (softcma.Neighbour, bool) {
	for _, n := range h.sub.Nodes {
		for i := range n.Ports {
			if p := (&cmHost{Port: &n.Ports[i], name: n.Name}); p.IsEnd() && n.Type == mad.NodeTypeCA && (p.IP == ip || p.ip6() == ip) {
				return softcma.Neighbour{GID: p.gid(h.sub), LID: p.LID}, true
			}
		}
	}
	return softcma.Neighbour{}, false
}

// ip6 is the IPv6 address of hN: 2001:db8::N.
func (c *cmHost) ip6() netip.Addr { return netip.MustParseAddr("2001:db8::" + c.name[1:]) }

func (c *cmHost) gid(sub *topo.Subnet) mad.GID { return c.GID(sub.GIDPrefix) }

// at is the host's address with the port that the tests listen at.
func (c *cmHost) at() ucma.Sockaddr {
	return ucma.Sockaddr{IP: netip.AddrPortFrom(c.IP, rdmaPort)}
}

// atGID is the same in AF_IB.
func (c *cmHost) atGID(ps ucma.PortSpace) ucma.Sockaddr {
	return ucma.IBAddr(c.gid(c.house.sub), mad.DefaultPKey, ps, rdmaPort)
}

func (c *cmHost) opener(d *ucma.Dialect) ucma.Opener {
	return func() (ucma.Device, error) { return c.cm.Open(d) }
}

// connect connects to another host as a program of this one.
func (c *cmHost) connect(ctx context.Context, d *ucma.Dialect, to ucma.Sockaddr, cfg ucma.ConnectConfig) (*ucma.Connection, error) {
	return c.opener(d).Connect(ctx, ucma.Target{Addr: to}, cfg)
}

// listen listens at an address, mostly the host's, until the test ends or closes the
// listener.
func (c *cmHost) listen(d *ucma.Dialect, at ucma.Sockaddr, cfg ucma.ListenConfig) *ucma.Listener {
	c.house.t.Helper()
	l, err := c.opener(d).Listen(c.house.t.Context(), at, cfg)
	c.house.must(err)
	return l
}

// paths is a client of the SA at the host.
func (c *cmHost) paths() *sa.Client { return c.house.admin(c.Port, sa.Config{}) }

// check tells of an error, in any goroutine.
func (h *cmHouse) check(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Error(err)
	}
}

// sleep lets time pass, and all that is due by then happen.
func (h *cmHouse) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// now is the time since the test began.
func (h *cmHouse) now() time.Duration { return time.Since(h.began) }

// sent is the log so far.
func (h *cmHouse) sent() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.log)
}

// expect compares the log with the lines of want.
func (h *cmHouse) expect(want string) {
	h.t.Helper()
	var lines []string
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if got := h.sent(); !slices.Equal(got, lines) {
		h.t.Errorf("CM messages\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(lines, "\n "))
	}
}

// loseAll loses a message whenever it is sent.
const loseAll = 1 << 30

// drop loses the next messages of a kind, "h2>REQ".
func (h *cmHouse) drop(message string, times int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lose[message] = times
}

// cmWire is the Port of a CM, and the beginning of the way from there.
type cmWire struct {
	port.Port
	host *cmHost
}

func messageOf(data []byte) cm.Message {
	return cm.Message(mad.AttributeID(data[mad.OffAttribute])<<8|mad.AttributeID(data[mad.OffAttribute+1])) - cm.Message(cm.REQ.Attribute())
}

func (w *cmWire) Send(m *port.Message) error {
	h, what := w.host.house, fmt.Sprintf("%s>%v", w.host.name, messageOf(m.Data))
	h.mu.Lock()
	lost := h.lose[what] > 0
	if lost {
		h.lose[what]--
		what += " lost"
	}
	h.log = append(h.log, fmt.Sprintf("%v %s", h.now(), what))
	h.mu.Unlock()
	if lost {
		return nil
	}
	return w.Port.Send(m)
}

// outcome is how a flow fails; the zero value is that it does not.
type outcome struct {
	step  string
	is    error  // errors.Is, or nil
	text  string // in the message
	after time.Duration
}

// check compares an error, and the time when it came.
func (o outcome) check(t *testing.T, who string, err error, at time.Duration) {
	t.Helper()
	if o.step == "" {
		if err != nil || at != o.after {
			t.Errorf("%s ended at %v with error %v; want success at %v", who, at, err, o.after)
		}
		return
	}
	var failed *ucma.StepError
	if !errors.As(err, &failed) || failed.Step != o.step || o.is != nil && !errors.Is(err, o.is) || !strings.Contains(err.Error(), o.text) || at != o.after {
		t.Errorf("%s ended at %v with error %v; want one at step %q that says %q and is %v, at %v", who, at, err, o.step, o.text, o.is, o.after)
	}
}

// after runs do when a step of a flow is over.
func after(step string, do func()) func(ucma.Step) {
	return func(s ucma.Step) {
		if s.Name == step {
			do()
		}
	}
}

// service is what a server made of one request.
type service struct {
	conn *ucma.Connection
	err  error
	made time.Duration // when Accept came back
	end  time.Duration // when the connection had ended
}

// serveOne accepts one request, and answers the peer's end of the connection.
func serveOne(h *cmHouse, l *ucma.Listener) <-chan service {
	done := make(chan service, 1)
	go func() {
		var s service
		r, err := l.Next(context.Background())
		if err == nil {
			s.conn, err = r.Accept(context.Background(), ucma.AcceptConfig{PrivateData: []byte("welcome")})
			s.made = h.now()
		}
		if err == nil {
			err = errors.Join(s.conn.Wait(context.Background()), s.conn.Disconnect(context.Background()), s.conn.Close())
			s.end = h.now()
		}
		s.err = err
		done <- s
	}()
	return done
}

// The whole flow in both dialects, with the kernel's path and with the SA's: all that
// each side says arrives at the other, and the QP attributes fit together.
func TestConnect(t *testing.T) {
	for _, d := range dialects {
		for _, from := range []string{"kernel", "SA"} {
			t.Run(d.String()+"/path of the "+from, func(t *testing.T) {
				onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) { testConnect(t, h, d, from == "SA") })
			})
		}
	}
}

func testConnect(t *testing.T, h *cmHouse, d *ucma.Dialect, fed bool) {
	h2, h8 := h.host("h2"), h.host("h8")
	l := h8.listen(d, h8.at(), ucma.ListenConfig{})
	served := serveOne(h, l)
	cfg := ucma.ConnectConfig{PrivateData: []byte("hello"), QPN: 0x900001, ResponderResources: 3, InitiatorDepth: 2, RetryCount: 6, RNRRetryCount: 5}
	if fed {
		cfg.Path = h2.paths()
	}
	c, err := h2.connect(t.Context(), d, h8.at(), cfg)
	h.must(err)
	h.must(errors.Join(c.Disconnect(t.Context()), c.Close()))
	s := <-served
	h.must(s.err)
	h.must(l.Close())

	if (c.Fed != nil) != (fed && d == ucma.Linux) {
		t.Errorf("path fed: %v", c.Fed)
	}
	there, back := &c.Path, &s.conn.Path
	if there.SLID != h2.LID || there.DLID != h8.LID || there.SGID != h2.gid(h.sub) || there.DGID != h8.gid(h.sub) || there.MTU != mad.MTU2048 || there.PacketLifeTime != 18 {
		t.Errorf("path there %+v", there)
	}
	if back.SLID != h8.LID || back.DLID != h2.LID || back.SGID != there.DGID || back.DGID != there.SGID || back.MTU != there.MTU || back.Rate != there.Rate {
		t.Errorf("path back %+v", back)
	}
	if string(c.PrivateData) != "welcome" || string(s.conn.PrivateData) != "hello" {
		t.Errorf("private data %q there, %q back", s.conn.PrivateData, c.PrivateData)
	}
	if s.conn.RemoteQPN != 0x900001 || c.RemoteQPN != s.conn.LocalQPN {
		t.Errorf("QPNs %#x and %#x, and %#x and %#x", c.LocalQPN, s.conn.RemoteQPN, c.RemoteQPN, s.conn.LocalQPN)
	}
	if p := s.conn.Param; p.ResponderResources != 2 || p.InitiatorDepth != 3 || p.RetryCount != 6 || p.RNRRetryCount != 5 {
		t.Errorf("parameters of the request %+v", p)
	}
	if c.RTR.DestQPNum != s.conn.LocalQPN || s.conn.RTR.DestQPNum != c.LocalQPN || c.RTR.RQPSN != s.conn.RTS.SQPSN || s.conn.RTR.RQPSN != c.RTS.SQPSN ||
		c.RTR.AH.DLID != h8.LID || s.conn.RTR.AH.DLID != h2.LID || c.RTR.PathMTU != uint32(mad.MTU2048) || s.conn.RTR.PathMTU != uint32(mad.MTU2048) {
		t.Errorf("QP attributes\n%+v\n%+v\n%+v\n%+v", c.RTR, c.RTS, s.conn.RTR, s.conn.RTS)
	}
	h.expect(`
		0s h2>REQ
		0s h8>REP
		0s h2>RTU
		0s h2>DREQ
		0s h8>DREP`)
}

// A datagram server with a Q_Key of its own, which ids bound to a GID may have
// (ucma.c, ucma_copy_conn_param): its client hears of it (cma.c,
// cma_sidr_rep_handler).
func TestConnectQKey(t *testing.T) {
	onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
		const qkey = 0x11111111
		client, server := h.host("h2"), h.host("h8")
		at := server.atGID(ucma.PortSpaceUDP)
		l := server.listen(ucma.Linux, at, ucma.ListenConfig{PortSpace: ucma.PortSpaceUDP})
		done := make(chan struct{})
		go func() {
			defer close(done)
			r, err := l.Next(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			c, err := r.Accept(t.Context(), ucma.AcceptConfig{QKey: qkey})
			if err != nil {
				t.Error(err)
				return
			}
			h.check(c.Close())
		}()
		c, err := client.connect(t.Context(), ucma.Linux, at, ucma.ConnectConfig{PortSpace: ucma.PortSpaceUDP})
		h.must(err)
		if c.UD.QKey != qkey {
			t.Errorf("Q_Key %#x, want %#x", c.UD.QKey, qkey)
		}
		h.check(c.Close())
		<-done
		h.check(l.Close())
	})
}
