package system

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/ibsm/ibsm/capture/capturetest"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/softcma"
	"github.com/ibsm/ibsm/ucma"
	"github.com/ibsm/ibsm/ucma/ucmatest"
)

// kernelsTranscript is what two kernels say to each other in the scenes of ucmatest.
const kernelsTranscript = "testdata/guests.txt"

// Two kernels in virtual machines play the scenes: tshark and the field table agree
// about what they say, and it is what the transcript has.
func TestTsharkGuests(t *testing.T) {
	capturetest.Need(t)
	pcap := filepath.Join(t.TempDir(), "guests.pcap")
	rig := exec.CommandContext(t.Context(), "go", "-C", "../kernelrig", "run", ".", "-kernel", "6.12", "-run", "^TestKernelPairConnect$", "-pcap", pcap)
	out, err := rig.CombinedOutput()
	if missing := regexp.MustCompile("skipped, for want of .*").Find(out); missing != nil {
		if os.Getenv("IBSM_BENCH") == "all" {
			t.Fatalf("%s", missing)
		}
		t.Skipf("%s", missing)
	}
	if err != nil {
		t.Fatalf("%v: %v\n%s", rig, err, out)
	}

	var said []saying
	compared := map[string]int{}
	// The kernel's soft RoCE leaves out UDP's checksum.
	for _, p := range capturetest.Decode(t, pcap, "-o", "udp.ignore_ipv6_zero_checksum:TRUE") {
		b, _ := p.MAD()
		if b == nil || mad.Class(b[mad.OffClass]) != mad.ClassComMgt {
			continue
		}
		structures, bad := p.Compare()
		for _, what := range bad {
			t.Errorf("packet %d: %s", p.Number, what)
		}
		for _, s := range structures {
			compared[s]++
		}
		from := p.Shown("ipv6.src")
		if from == "" {
			from = p.Shown("ip.src")
		}
		ip, err := netip.ParseAddr(from)
		if err != nil {
			t.Fatalf("packet %d: %v", p.Number, err)
		}
		for host := byte(1); host <= 2; host++ {
			if ipv6, ipv4 := ucmatest.PairAddrs(host); ip == ipv6 || ip == ipv4 {
				said = append(said, saying{host, [mad.Size]byte(b)})
			}
		}
	}
	for _, want := range []string{"ConnectRequest", "ConnectReply", "ConnectReject", "ReadyToUse", "DisconnectRequest", "DisconnectReply", "IPCMHeader"} {
		if compared[want] == 0 {
			t.Errorf("tshark shows no %s", want)
		}
	}
	checkDatagrams(t, said)
	compareWithKernels(t, "the kernels of today", said)
}

// checkDatagrams compares what tshark does not know with the offsets in the kernel's
// definitions (include/rdma/ibta_vol1_c12.h, CM_SIDR_REQ_* and CM_SIDR_REP_*).
func checkDatagrams(t *testing.T, said []saying) {
	type answer struct {
		status byte
		data   string
	}
	want := map[string]answer{ // by the request's private data; the statuses are those of IBA 12.11.2
		"datagrams":              {0, "accepted"},
		"datagrams over IPv4":    {0, "136 bytes is all 136 bytes"},
		"datagrams, rejected":    {2, "no"},
		"datagrams, no listener": {1, ""},
	}
	be := binary.BigEndian
	requests := map[uint32]string{}
	for _, s := range said {
		b := s.mad[mad.HeaderSize:]
		switch mad.AttributeID(be.Uint16(s.mad[mad.OffAttribute:])) {
		case mad.AttrServiceIDResReq:
			user := string(bytes.TrimRight(b[16+36:], "\x00")) // behind struct cma_hdr
			service := uint64(0x01111d2f)                      // RDMA_PS_UDP, port 7471
			if user == "datagrams, no listener" {
				service++
			}
			if be.Uint16(b[4:]) != 0xffff || be.Uint64(b[8:]) != service {
				t.Errorf("SIDR_REQ %q has P_Key %#x, service id %#x", user, be.Uint16(b[4:]), be.Uint64(b[8:]))
			}
			requests[be.Uint32(b)] = user
		case mad.AttrServiceIDResReqResp:
			user := requests[be.Uint32(b)]
			expected, ok := want[user]
			qpn, qkey := be.Uint32(b[8:])>>8, be.Uint32(b[20:])
			if !ok || b[4] != expected.status || !strings.HasPrefix(string(b[96:]), expected.data) || (b[4] == 0) != (qpn >= 0x800000 && qkey == 0x01234567) { // RDMA_UDP_QKEY
				t.Errorf("SIDR_REP to %q has status %d, QPN %#x, Q_Key %#x, and %q", user, b[4], qpn, qkey, b[96:])
			}
			delete(want, user)
		}
	}
	if len(want) > 0 {
		t.Errorf("no SIDR_REP to %v", want)
	}
}

// Our own CM says the same as the kernels.
func TestGuests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, "demo", sim.Config{})
		log := &guestLog{}
		neighbours := map[netip.Addr]softcma.Neighbour{}
		names := [3]string{1: "h2", 2: "h8"}
		for host := byte(1); host <= 2; host++ {
			at := h.port(names[host])
			ipv6, ipv4 := ucmatest.PairAddrs(host)
			for _, ip := range []netip.Addr{ipv6, ipv4} {
				neighbours[ip] = softcma.Neighbour{GID: at.GID(h.sub.GIDPrefix), LID: at.LID}
			}
		}
		start := func(host byte) ucma.Opener {
			at := h.port(names[host])
			kernel, err := h.fabric.Device(at.Node, at.Num)
			h.must(err)
			out, err := kernel.OpenKernel()
			h.must(err)
			ipv6, ipv4 := ucmatest.PairAddrs(host)
			c, err := softcma.New(&guestPort{out, host, log}, kernel, softcma.Config{
				Addrs: []netip.Prefix{netip.PrefixFrom(ipv6, 64), netip.PrefixFrom(ipv4, 24)}, RoCE: true, AckDelay: 15, // rxe_param.h, RXE_LOCAL_CA_ACK_DELAY
				Neighbour: func(ip netip.Addr) (softcma.Neighbour, bool) { n, ok := neighbours[ip]; return n, ok },
			})
			h.must(err)
			t.Cleanup(func() { c.Close() })
			return func() (ucma.Device, error) { return c.Open(ucma.Linux) }
		}
		open := start(1)
		listeners, err := ucmatest.ListenPair(t.Context(), start(2))
		h.must(err)
		for _, s := range ucmatest.Scenes {
			served := make(chan error, 1)
			go func() { served <- listeners.Serve(context.Background(), s) }()
			connected := s.Connect(context.Background(), open)
			if err := errors.Join(connected, <-served); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
		h.must(listeners.Close())
		compareWithKernels(t, "our own CM", log.all())
	})
}

// guestLog is what was sent, in its order.
type guestLog struct {
	mu   sync.Mutex
	said []saying
}

func (l *guestLog) all() []saying {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said
}

// guestPort is the port of a CM.
type guestPort struct {
	port.Port
	host byte
	log  *guestLog
}

func (p *guestPort) Send(m *port.Message) error {
	p.log.mu.Lock()
	p.log.said = append(p.log.said, saying{p.host, [mad.Size]byte(m.Data)})
	p.log.mu.Unlock()
	return p.Port.Send(m)
}

// saying is a CM message, and which of the two hosts says it.
type saying struct {
	host byte
	mad  [mad.Size]byte
}

func compareWithKernels(t *testing.T, who string, said []saying) {
	t.Helper()
	file, err := os.ReadFile(kernelsTranscript)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "#") {
			want = append(want, line)
		}
	}
	if diff := cmp.Diff(want, transcript(said)); diff != "" {
		t.Errorf("what the kernels said (-), and what %s said (+):\n%s", who, diff)
	}
}

// madeUp are fields whose values hosts make up, and what they are. Instead of them
// stand numbers in the order in which the values come, the same for the same value.
var madeUp = map[string]string{
	"TransactionID": "transaction", "LocalCommunicationID": "id", "RemoteCommunicationID": "id", "RequestID": "id",
	"LocalQPN": "QPN", "QPN": "QPN", "RemoteQPN_EECN": "QPN", "StartingPSN": "PSN", "LocalCAGUID": "GUID", "SrcPort": "port",
}

// transcript writes messages as text: who says what, and below a line for each field
// that is not zero. A message that is sent again is left out, and so is an MRA, which
// answers that.
func transcript(said []saying) (lines []string) {
	seen := map[saying]bool{}
	numbers := map[string]map[uint64]int{}
	write := func(of *layout.Struct, b []byte) {
		for i := range of.Fields {
			if value := valueOf(&of.Fields[i], b, numbers); value != "" {
				lines = append(lines, fmt.Sprintf("  %s %s\n", of.Fields[i].Name, value))
			}
		}
	}
	for _, s := range said {
		id := binary.BigEndian.Uint16(s.mad[mad.OffAttribute:])
		if seen[s] || mad.AttributeID(id) == mad.AttrMsgRcptAck {
			continue
		}
		seen[s] = true
		message := layout.FindAttribute(uint8(mad.ClassComMgt), id).Struct
		body := s.mad[mad.HeaderSize:]
		lines = append(lines, fmt.Sprintf("host %d: %s\n", s.host, message.Name))
		write(layout.Header, s.mad[:])
		private := message.Fields[len(message.Fields)-1]
		data := private.Bytes(body)
		if message == layout.ConnectRequest || message == layout.ServiceIDResReq {
			write(layout.IPCMHeader, data)
			data = data[layout.IPCMHeader.Size:]
		}
		if message == layout.ConnectRequest {
			body = bytes.Clone(body)
			lines = append(lines, takeFlowLabel(body)...)
		}
		write(message, body[:private.Off/8])
		if !isZero(data) {
			lines = append(lines, fmt.Sprintf("  PrivateData %q\n", bytes.TrimRight(data, "\x00")))
		}
	}
	return lines
}

// takeFlowLabel takes the flow label out of a REQ if it is what the kernel makes of the
// port numbers (cma_get_roce_udp_flow_label): one of them is made up.
func takeFlowLabel(body []byte) (line []string) {
	var q mad.ConnectRequest
	q.DecodeFrom((*[mad.ConnectRequestSize]byte)(body))
	src, dst := binary.BigEndian.Uint16(q.PrivateData[2:]), uint16(q.ServiceID)
	if q.PrimaryFlowLabel != (31*uint32(src)+uint32(dst))&0xfffff {
		return nil
	}
	q.PrimaryFlowLabel = 0
	q.EncodeTo((*[mad.ConnectRequestSize]byte)(body))
	return []string{"  PrimaryFlowLabel 31*SrcPort + DstPort\n"}
}

// valueOf is the value of a field as text, or "" for zero.
func valueOf(f *layout.Field, b []byte, numbers map[string]map[uint64]int) string {
	if f.Off/8 >= len(b) {
		return ""
	}
	if !f.IsNumber() {
		if isZero(f.Bytes(b)) {
			return ""
		}
		return text.Format(text.Value(f, b))
	}
	v := f.Uint(b)
	if v == 0 {
		return ""
	}
	kind := madeUp[f.Name]
	if kind == "" {
		return text.Format(text.Value(f, b))
	}
	if numbers[kind] == nil {
		numbers[kind] = map[uint64]int{}
	}
	if numbers[kind][v] == 0 {
		numbers[kind][v] = len(numbers[kind]) + 1
	}
	return fmt.Sprintf("%s %d", kind, numbers[kind][v])
}

func isZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }
