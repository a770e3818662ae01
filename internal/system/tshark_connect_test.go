package system

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/capture"
	"github.com/ibsm/ibsm/capture/capturetest"
	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/ucma"
)

// scene is a connection of h2 to h8, or between two of their ports, that is captured
// at both ends.
type scene struct {
	name  string
	play  func(s *stage)
	want  string                             // the messages at the client's end
	check func(t *testing.T, at []*cmPacket) // those, as tshark shows them
}

// stage is where scenes play.
type stage struct {
	*cmHouse
	t      *testing.T
	h2, h8 *cmHost
}

// sceneTime is how long a scene has. Its packets are known by their times.
const sceneTime = time.Hour

// cmPacket is a captured CM message.
type cmPacket struct {
	*capturetest.Packet
	msg cm.Message
	b   []byte // after the MAD header
}

// bits are n bits from a bit of a byte of the message on, as the kernel's offsets have
// them (ibta_vol1_c12.h).
func (p *cmPacket) bits(at, bit, n int) (v uint64) {
	for i := 8*at + bit; i < 8*at+bit+n; i++ {
		v = v<<1 | uint64(p.b[i/8]>>(7-i%8)&1)
	}
	return v
}

// expectBytes compares the private data of a message, and the zeros behind it.
func (p *cmPacket) expectBytes(t *testing.T, at int, want string) {
	t.Helper()
	got := p.b[at:]
	if !bytes.HasPrefix(got, []byte(want)) || len(bytes.Trim(got[len(want):], "\x00")) > 0 {
		t.Errorf("packet %d, %v: %q from byte %d on, want %q", p.Number, p.msg, got, at, want)
	}
}

// expectBits compares fields that stand one after another: byte, bit, width, value.
func (p *cmPacket) expectBits(t *testing.T, fields ...[4]uint64) {
	t.Helper()
	for _, f := range fields {
		if got := p.bits(int(f[0]), int(f[1]), int(f[2])); got != f[3] {
			t.Errorf("packet %d, %v: %d bits at byte %d, bit %d are %#x, want %#x", p.Number, p.msg, f[2], f[0], f[1], got, f[3])
		}
	}
}

// expectShown compares what tshark shows, without "infiniband.cm.".
func (p *cmPacket) expectShown(t *testing.T, fields map[string]uint64) {
	t.Helper()
	for name, want := range fields {
		f := p.Find("infiniband.cm." + name)
		if f == nil {
			t.Errorf("packet %d, %v: tshark shows no %s", p.Number, p.msg, name)
			continue
		}
		if got, err := f.Uint(); err != nil || got != want {
			t.Errorf("packet %d, %v: %s is %s, want %#x", p.Number, p.msg, name, f.Show, want)
		}
	}
}

// shown is a number that tshark shows.
func (p *cmPacket) shown(t *testing.T, name string) uint64 {
	t.Helper()
	f := p.Find("infiniband.cm." + name)
	if f == nil {
		t.Fatalf("packet %d, %v: tshark shows no %s", p.Number, p.msg, name)
	}
	v, err := f.Uint()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// connect plays a connection: its client may be slow, and one of the sides ends it.
func (s *stage) connect(d *ucma.Dialect, to ucma.Sockaddr, cfg ucma.ConnectConfig, accept ucma.AcceptConfig, slowServer time.Duration, serverEnds bool) {
	s.t.Helper()
	l := s.h8.listen(d, to, ucma.ListenConfig{PortSpace: cfg.PortSpace})
	var serving sync.WaitGroup
	serving.Go(func() {
		var c *ucma.Connection
		r, err := l.Next(s.t.Context())
		if err == nil {
			s.sleep(slowServer)
			c, err = r.Accept(s.t.Context(), accept)
		}
		if err == nil && c.ID().QPType() != ucma.QPTypeUD && !serverEnds {
			err = c.Wait(s.t.Context())
		}
		if err == nil {
			err = errors.Join(c.Disconnect(s.t.Context()), c.Close())
		}
		s.check(err)
	})
	c, err := s.h2.connect(s.t.Context(), d, to, cfg)
	s.must(err)
	synctest.Wait() // the RTU and what follows from it have arrived
	if serverEnds {
		s.must(c.Wait(s.t.Context()))
	}
	s.must(errors.Join(c.Disconnect(s.t.Context()), c.Close()))
	serving.Wait()
	s.must(l.Close())
}

// refuse plays a request that is rejected; without data nobody listens.
func (s *stage) refuse(to ucma.Sockaddr, ps ucma.PortSpace, data string) {
	s.t.Helper()
	var serving sync.WaitGroup
	if data != "" {
		l := s.h8.listen(ucma.Linux, to, ucma.ListenConfig{PortSpace: ps})
		serving.Go(func() {
			r, err := l.Next(s.t.Context())
			if err == nil {
				err = r.Reject(s.t.Context(), 0, []byte(data))
			}
			s.check(errors.Join(err, l.Close()))
		})
	}
	_, err := s.h2.connect(s.t.Context(), ucma.Linux, to, ucma.ConnectConfig{PortSpace: ps, PrivateData: []byte("please")})
	var failed *ucma.StepError
	if !errors.As(err, &failed) || failed.Step != ucma.StepConnect {
		s.t.Errorf("rejected: %v", err)
	}
	serving.Wait()
}

var fullConnect = ucma.ConnectConfig{
	PrivateData: []byte("hello"), QPN: 0x900001, ResponderResources: 3, InitiatorDepth: 2, FlowControl: true, RetryCount: 6, RNRRetryCount: 5, SRQ: true,
}

var fullAccept = ucma.AcceptConfig{
	PrivateData: []byte("welcome"), QPN: 0x900002, ResponderResources: 2, InitiatorDepth: 1, FlowControl: true, RNRRetryCount: 4, SRQ: true,
}

// with changes a copy.
func with[T any](v T, change func(*T)) T {
	change(&v)
	return v
}

const (
	tcpService = 0x0106<<16 | rdmaPort // rdma_cm.h, enum rdma_ucm_port_space
	udpService = 0x0111<<16 | rdmaPort
	udpQKey    = 0x01234567 // RDMA_UDP_QKEY
)

// ipHeader is the IP header of the RDMA CM for h2 and h8 (IBA annex A11): version 0,
// IPv4, the source's port, and addresses in 16 bytes each.
func ipHeader(port uint64) string {
	b := []byte{0, 0x40, byte(port >> 8), byte(port)}
	b = append(append(b, make([]byte, 12)...), 10, 0, 0, 2)
	return string(append(append(b, make([]byte, 12)...), 10, 0, 0, 8))
}

var scenes = []scene{
	{"IPv4", func(s *stage) {
		cfg := fullConnect
		cfg.Path = s.h2.paths()
		s.connect(ucma.Linux, s.h8.at(), cfg, fullAccept, 0, false)
	}, "REQ REP RTU DREQ DREP", func(t *testing.T, at []*cmPacket) {
		at[0].expectShown(t, map[string]uint64{
			"req.localqpn": 0x900001, "req.serviceid": tcpService, "req.responderres": 3, "req.initdepth": 2, "req.e2eflowctrl": 1, "req.retrcount": 6,
			"req.rnrretrcount": 5, "req.srq": 1, "req.remoteresptout": 20, "req.localresptout": 20, "req.maxcmretr": 15, "req.pkey": 0xffff,
			"req.prim_locallid": 2, "req.prim_remotelid": 8, "req.pppmtu": uint64(mad.MTU2048), "req.transpsvctype": 0,
			"req.ip_cm.ipv": 4, "req.serviceid.dport": rdmaPort,
		})
		at[1].expectShown(t, map[string]uint64{
			"rep.remotecommid": at[0].shown(t, "req"), "rep.localqpn": 0x900002, "rep.respres": 2, "rep.initdepth": 1, "rep.rnrretrcount": 4,
			"rep.e2eflowctrl": 1, "rep.srq": 1,
		})
		local, remote := at[0].shown(t, "req"), at[1].shown(t, "rep")
		at[2].expectShown(t, map[string]uint64{"rtu.localcommid": local, "rtu.remotecommid": remote})
		at[3].expectShown(t, map[string]uint64{"dreq.localcommid": local, "dreq.remotecommid": remote, "req.remoteqpneecn": 0x900002})
		at[4].expectShown(t, map[string]uint64{"drsp.localcommid": remote, "drsp.remotecommid": local})
	}},
	{"IPv6, ended by the server", func(s *stage) {
		to := ucma.Sockaddr{IP: netip.AddrPortFrom(s.h8.ip6(), rdmaPort)}
		s.connect(ucma.Linux, to, fullConnect, fullAccept, 0, true)
	}, "REQ REP RTU DREQ DREP", func(t *testing.T, at []*cmPacket) {
		at[0].expectShown(t, map[string]uint64{"req.ip_cm.ipv": 6})
		at[3].expectShown(t, map[string]uint64{"dreq.localcommid": at[1].shown(t, "rep"), "req.remoteqpneecn": 0x900001})
	}},
	{"illumos", func(s *stage) {
		s.connect(ucma.Illumos, s.h8.at(), fullConnect, fullAccept, 0, false)
	}, "REQ REP RTU DREQ DREP", nil},
	{"GID with ECE", func(s *stage) {
		cfg := with(fullConnect, func(c *ucma.ConnectConfig) {
			c.PrivateData, c.ECE = []byte("\x00\x00"+strings.Repeat("x", 90)), &ucma.ECE{VendorID: 0x15b3, AttrMod: 0x1234567}
		})
		accept := with(fullAccept, func(a *ucma.AcceptConfig) { a.ECE = &ucma.ECE{VendorID: 0xabcdef, AttrMod: 7} })
		s.connect(ucma.Linux, s.h8.atGID(ucma.PortSpaceTCP), cfg, accept, 0, false)
	}, "REQ REP RTU DREQ DREP", func(t *testing.T, at []*cmPacket) {
		// tshark does not know vendor ids: CM_REQ_VENDOR_ID, CM_REP_VENDOR_ID_H, _M, _L.
		at[0].expectBits(t, [4]uint64{5, 0, 24, 0x15b3})
		at[1].expectBits(t, [4]uint64{15, 0, 8, 0xab}, [4]uint64{19, 0, 8, 0xcd}, [4]uint64{23, 0, 8, 0xef})
		at[0].expectBytes(t, 140, "\x00\x00"+strings.Repeat("x", 90))
		for i, want := range []string{"0x01234567", "0x00000007"} {
			if got := at[i].Shown("infiniband.mad.attributemodifier"); got != want {
				t.Errorf("attribute modifier %s, want %s", got, want)
			}
		}
	}},
	{"rejected", func(s *stage) {
		s.refuse(s.h8.at(), ucma.PortSpaceTCP, "not you")
	}, "REQ REJ", func(t *testing.T, at []*cmPacket) {
		at[1].expectShown(t, map[string]uint64{"rej.remotecommid": at[0].shown(t, "req"), "rej.msgrej": 0, "rej.reason": 28, "rej.rejinfolen": 0})
		at[1].expectBytes(t, 84, "not you")
	}},
	{"nobody listens", func(s *stage) {
		s.refuse(s.h8.at(), ucma.PortSpaceTCP, "")
	}, "REQ REJ", func(t *testing.T, at []*cmPacket) {
		at[1].expectShown(t, map[string]uint64{"rej.remotecommid": at[0].shown(t, "req"), "rej.msgrej": 0, "rej.reason": 8})
	}},
	{"slow server", func(s *stage) {
		s.connect(ucma.Linux, s.h8.at(), fullConnect, fullAccept, 10*time.Second, false)
	}, "REQ REQ MRA REP RTU DREQ DREP", func(t *testing.T, at []*cmPacket) {
		// The MRA is from the id that sends the REP, for the REQ's, about a REQ (0), and asks
		// for 24.
		at[2].expectBits(t, [4]uint64{0, 0, 32, at[3].shown(t, "rep")}, [4]uint64{4, 0, 32, at[0].shown(t, "req")}, [4]uint64{8, 0, 2, 0}, [4]uint64{9, 0, 5, 24})
		at[2].expectBytes(t, 10, "")
	}},
	{"slow client", func(s *stage) {
		cfg := fullConnect
		cfg.Progress = after(ucma.StepConnect, func() { s.sleep(10 * time.Second) })
		s.connect(ucma.Linux, s.h8.at(), cfg, fullAccept, 0, false)
	}, "REQ REP REP MRA RTU DREQ DREP", func(t *testing.T, at []*cmPacket) {
		// About a REP (1).
		at[3].expectBits(t, [4]uint64{0, 0, 32, at[0].shown(t, "req")}, [4]uint64{4, 0, 32, at[1].shown(t, "rep")}, [4]uint64{8, 0, 2, 1}, [4]uint64{9, 0, 5, 24})
		at[3].expectBytes(t, 10, "")
	}},
	{"losses", func(s *stage) {
		for _, m := range []string{"h2>REQ", "h8>REP", "h2>RTU", "h2>DREQ", "h8>DREP"} {
			s.drop(m, 1)
		}
		cfg := fullConnect
		cfg.Progress = after(ucma.StepEstablish, func() { s.sleep(20 * time.Second) })
		s.connect(ucma.Linux, s.h8.at(), cfg, fullAccept, 0, false)
	}, "REQ REQ REP RTU REP RTU DREQ DREQ DREQ DREP", func(t *testing.T, at []*cmPacket) {
		for _, same := range [][2]int{{0, 1}, {2, 4}, {3, 5}, {6, 7}, {7, 8}} {
			if a, b := at[same[0]], at[same[1]]; !bytes.Equal(a.b, b.b) {
				t.Errorf("packets %d and %d differ", a.Number, b.Number)
			}
		}
	}},
	{"datagrams", func(s *stage) {
		cfg := ucma.ConnectConfig{PortSpace: ucma.PortSpaceUDP, PrivateData: []byte("hello")}
		s.connect(ucma.Linux, s.h8.at(), cfg, fullAccept, 0, false)
	}, "SIDR_REQ SIDR_REP", func(t *testing.T, at []*cmPacket) {
		id := at[0].bits(0, 0, 32)
		at[0].expectBits(t, [4]uint64{4, 0, 16, 0xffff}, [4]uint64{8, 0, 64, udpService})
		at[0].expectBytes(t, 16, ipHeader(at[0].bits(18, 0, 16))+"hello")
		at[1].expectBits(t, [4]uint64{0, 0, 32, id}, [4]uint64{4, 0, 8, 0}, [4]uint64{5, 0, 8, 0}, [4]uint64{8, 0, 24, 0x900002},
			[4]uint64{12, 0, 64, udpService}, [4]uint64{20, 0, 32, udpQKey})
		at[1].expectBytes(t, 24, strings.Repeat("\x00", 72)+"welcome")
	}},
	{"datagrams by GID with ECE", func(s *stage) {
		cfg := ucma.ConnectConfig{PortSpace: ucma.PortSpaceUDP, PrivateData: []byte("\x00\x00" + strings.Repeat("x", 178))}
		accept := ucma.AcceptConfig{QPN: 0x900003, ECE: &ucma.ECE{VendorID: 0x15b3, AttrMod: 9}}
		s.connect(ucma.Linux, s.h8.atGID(ucma.PortSpaceUDP), cfg, accept, 0, false)
	}, "SIDR_REQ SIDR_REP", func(t *testing.T, at []*cmPacket) {
		at[0].expectBits(t, [4]uint64{8, 0, 64, udpService})
		at[0].expectBytes(t, 16, "\x00\x00"+strings.Repeat("x", 178))
		// cm.c, cm_format_sidr_rep, has two bytes of the vendor id.
		at[1].expectBits(t, [4]uint64{4, 0, 8, 0}, [4]uint64{6, 0, 16, 0x15}, [4]uint64{8, 0, 24, 0x900003}, [4]uint64{11, 0, 8, 0xb3}, [4]uint64{20, 0, 32, udpQKey})
	}},
	{"datagrams, rejected", func(s *stage) {
		s.refuse(s.h8.at(), ucma.PortSpaceUDP, "not you")
	}, "SIDR_REQ SIDR_REP", func(t *testing.T, at []*cmPacket) {
		// IB_SIDR_REJECT
		at[1].expectBits(t, [4]uint64{0, 0, 32, at[0].bits(0, 0, 32)}, [4]uint64{4, 0, 8, 2}, [4]uint64{8, 0, 24, 0}, [4]uint64{12, 0, 64, udpService}, [4]uint64{20, 0, 32, 0})
		at[1].expectBytes(t, 96, "not you")
	}},
	{"datagrams, nobody listens", func(s *stage) {
		s.refuse(s.h8.at(), ucma.PortSpaceUDP, "")
	}, "SIDR_REQ SIDR_REP", func(t *testing.T, at []*cmPacket) {
		// IB_SIDR_UNSUPPORTED
		at[1].expectBits(t, [4]uint64{0, 0, 32, at[0].bits(0, 0, 32)}, [4]uint64{4, 0, 8, 1}, [4]uint64{8, 0, 24, 0}, [4]uint64{12, 0, 64, udpService})
	}},
	{"alternate paths", playAlternatePaths, "REQ REP RTU LAP MRA APR DREQ DREP", checkAlternatePaths},
}

// Connections in all their forms, captured at both ends, as tshark reads them: it and
// the field table agree, it finds nothing malformed, and what the programs said stands
// where the kernel looks for it.
func TestTsharkConnect(t *testing.T) {
	capturetest.Need(t)
	var file bytes.Buffer
	w := capture.NewWriter(&file)
	var began time.Time
	lost := 0
	onCMs(t, sim.Config{}, func(t *testing.T, h *cmHouse) {
		began = h.began
		h.tap = func(p port.Port, dev port.Device) port.Port { return capture.Port(p, dev.Info, w) }
		s := &stage{cmHouse: h, t: t, h2: h.host("h2"), h8: h.host("h8")}
		for i, scene := range scenes {
			h.sleep(time.Duration(i)*sceneTime - h.now())
			scene.play(s)
			synctest.Wait()
		}
		for _, line := range h.sent() {
			if strings.HasSuffix(line, " lost") {
				lost++
			}
		}
	})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "connect.pcapng")
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}

	compared := map[string]int{}
	clients := make([][]*cmPacket, len(scenes))
	ends := map[string]int{} // how often a message was recorded at the client's end more than at the server's
	packets := capturetest.Decode(t, name)
	for i := range packets {
		p := readCM(t, &packets[i], compared)
		switch end := p.Shown("frame.interface_name"); end {
		case "h2/1", "h3/1":
			ends[string(p.b)]++
			n := int(p.Time.Sub(began) / sceneTime)
			clients[n] = append(clients[n], p)
		case "h8/1", "h4/1":
			ends[string(p.b)]--
		default:
			t.Errorf("packet %d is at %q", p.Number, end)
		}
	}
	for i, scene := range scenes {
		var got []string
		for _, p := range clients[i] {
			got = append(got, p.msg.String())
		}
		if got := strings.Join(got, " "); got != scene.want {
			t.Errorf("%s: messages %s, want %s", scene.name, got, scene.want)
		} else if scene.check != nil {
			t.Run(scene.name, func(t *testing.T) { scene.check(t, clients[i]) })
		}
	}
	for _, n := range ends {
		lost -= max(n, -n)
	}
	if lost != 0 {
		t.Errorf("the two ends differ by %d messages from what was lost", lost)
	}
	for _, s := range []string{"ConnectRequest", "ConnectReply", "ConnectReject", "ReadyToUse", "DisconnectRequest", "DisconnectReply", "IPCMHeader"} {
		if compared[s] < 2 {
			t.Errorf("tshark and the field table met at %d messages %s, want both ends of one", compared[s], s)
		}
	}
}

// readCM compares a packet with the field table.
func readCM(t *testing.T, p *capturetest.Packet, compared map[string]int) *cmPacket {
	t.Helper()
	b, _ := p.MAD()
	if len(b) != mad.Size || mad.Class(b[mad.OffClass]) != mad.ClassComMgt {
		t.Fatalf("packet %d is no CM message: %x", p.Number, b)
	}
	c := &cmPacket{p, messageOf(b), b[mad.HeaderSize:]}
	structures, bad := p.Compare()
	for _, what := range bad {
		t.Errorf("packet %d, %v: %s", p.Number, c.msg, what)
	}
	for _, s := range structures {
		compared[s]++
	}
	own := map[cm.Message]string{
		cm.REQ: "ConnectRequest", cm.REP: "ConnectReply", cm.REJ: "ConnectReject", cm.RTU: "ReadyToUse", cm.DREQ: "DisconnectRequest", cm.DREP: "DisconnectReply",
	}[c.msg]
	if own != "" && !slices.Contains(structures, own) {
		t.Errorf("packet %d, %v: only %q compared", p.Number, c.msg, structures)
	}
	return c
}
