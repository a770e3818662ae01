package script

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/topo"
)

// bench is a simulated fabric with an SA on h1, seen from h2. What goes out at h2 is
// kept.
type bench struct {
	fabric
	net    *sim.Fabric
	sub    *topo.Subnet
	wire   *wiretap
	lib    *library
	sender *sender
	vars   *vars
}

// wiretap keeps what a Link sends.
type wiretap struct {
	softmad.Link
	mu   sync.Mutex
	sent []softmad.Wire
}

func (w *wiretap) Send(x *softmad.Wire) error {
	w.mu.Lock()
	w.sent = append(w.sent, *x)
	w.mu.Unlock()
	return w.Link.Send(x)
}

// first is the oldest wire since the last call. RMPP sends more after it.
func (w *wiretap) first() (x softmad.Wire) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sent) > 0 {
		x = w.sent[0]
	}
	w.sent = nil
	return x
}

func newBench(t testing.TB, name string) *bench {
	t.Helper()
	sub, err := topo.Generate(name)
	if err != nil {
		t.Fatal(err)
	}
	net, err := sim.New(sub, sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { net.Close() })
	b := &bench{net: net, sub: sub}
	sm, err := net.Device(sub.SM.Node, sub.SM.Num)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := server.New(sm, sub, server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	var own *topo.Port
	for _, n := range sub.Nodes {
		if !n.IsSwitch() && n != sub.SM.Node {
			own = &n.Ports[1]
			break
		}
	}
	link, err := net.Link(own.Node, own.Num)
	if err != nil {
		t.Fatal(err)
	}
	b.wire = &wiretap{Link: link}
	dev, err := softmad.NewDevice(b.wire, softmad.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	b.dev = dev
	b.sa, err = sa.NewClient(dev, sa.Config{RMPP: port.RMPPUser})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.sa.Close() })
	b.smp, err = smp.NewClient(dev, smp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.smp.Close() })
	b.resolver = sa.NewResolver(b.sa)
	b.lib, b.sender = newLibrary(b.fabric), newSender(b.fabric)
	b.vars = b.lib.newVars()
	t.Cleanup(func() { b.sender.close() })
	return b
}

// inDemo runs a test on the fabric demo, in virtual time.
func inDemo(t *testing.T, f func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newBench(t, "demo")) })
}

// step reads one step of a script.
func step(t testing.TB, yaml string) *Step {
	t.Helper()
	text := "version: 1\nsteps:\n  - " + yaml + "\n"
	s, err := Load("test.yaml", fstest.MapFS{"test.yaml": {Data: []byte(text)}})
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return s.Steps[0]
}

func (b *bench) prepare(t testing.TB, yaml string) *message {
	t.Helper()
	m, err := b.sender.prepare(t.Context(), step(t, "send: "+yaml).Body.(*Send), b.vars)
	if err != nil {
		t.Fatalf("%s: %v", yaml, err)
	}
	return m
}

// send sends what a step says and has its results in the variables.
func (b *bench) send(t testing.TB, yaml string) *answer {
	t.Helper()
	a, err := b.prepare(t, yaml).send(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", yaml, err)
	}
	a.bind(b.vars)
	return a
}

func (b *bench) eval(t testing.TB, text string) any {
	t.Helper()
	v, err := b.vars.eval(t.Context(), &Expr{Text: text})
	if err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return v
}

// holds checks expectations.
func (b *bench) holds(t testing.TB, about string, expect ...string) {
	t.Helper()
	for _, text := range expect {
		ok, why, err := b.vars.evalBool(t.Context(), &Expr{Text: text})
		if err != nil || !ok {
			t.Errorf("%s: %s does not hold: %+v, %v", about, text, why, err)
		}
	}
}

// The bytes on the wire. Header: IBA 13.4.3; SMPs: 14.2.1; SA: 15.2.1.1, with the
// component masks of opensm's ib_types.h (IB_PR_COMPMASK_DGID is bit 2, SGID 3,
// REVERSIBLE 11, NUMBPATH 12; IB_NR_COMPMASK_LID 0); the vendor class is ibping's
// (OUI 0x001405, class 0x32: rdma-core, libibmad mad.h).
func TestSendBytes(t *testing.T) {
	zero := func(n int) string { return strings.Repeat("\x00", n) }
	tests := []struct {
		send string
		want map[int]string // bytes from an offset
		lid  mad.LID
		qpn  uint32
		rest bool // all other bytes but those of the transaction id are 0
	}{
		{send: `{class: Subn, attribute: NodeInfo, to: "0,1"}`, lid: 0xffff, qpn: 0, rest: true, want: map[int]string{
			0: "\x01\x81\x01\x01\x00\x00", 7: "\x01", 16: "\x00\x11", 32: "\xff\xff\xff\xff", 128: "\x00\x01"}},
		{send: `{class: Subn, attribute: PortInfo, modifier: 3, to: [0, 1, 11], header: {M_Key: 0x1122334455667788}}`, lid: 0xffff, want: map[int]string{
			0: "\x01\x81\x01\x01", 16: "\x00\x15\x00\x00\x00\x00\x00\x03", 24: "\x11\x22\x33\x44\x55\x66\x77\x88", 128: "\x00\x01\x0b"}},
		{send: `{class: Subn, attribute: PortInfo, modifier: 0x102, to: 9}`, lid: 9, rest: true, want: map[int]string{
			0: "\x01\x01\x01\x01", 16: "\x00\x15\x00\x00\x00\x00\x01\x02"}},
		{send: `{class: SubnDirected, attribute: NodeInfo, to: "9:0,4"}`, lid: 9, want: map[int]string{
			0: "\x01\x81\x01\x01\x00\x00\x00\x01", 32: "\x00\x02\xff\xff", 128: "\x00\x04"}},
		{send: `{class: SubnDirected, attribute: NodeInfo, to: 9}`, lid: 9, want: map[int]string{
			0: "\x01\x81\x01\x01\x00\x00\x00\x00", 32: "\x00\x02\xff\xff"}},
		{send: `{class: SubnAdm, method: GetTable, attribute: PathRecord, set: {SGID: "fe80::200:1:0:201", DGID: "fe80::200:1:0:801", NumbPath: 4, Reversible: true}}`,
			lid: 1, qpn: 1, rest: true, want: map[int]string{
				0: "\x01\x03\x02\x12", 16: "\x00\x35", 48: "\x00\x00\x00\x00\x00\x00\x18\x0c",
				56 + 8:  "\xfe\x80" + zero(6) + "\x02\x00\x00\x01\x00\x00\x08\x01",
				56 + 24: "\xfe\x80" + zero(6) + "\x02\x00\x00\x01\x00\x00\x02\x01",
				56 + 49: "\x84"}},
		{send: `{class: SubnAdm, method: GetTable, attribute: NodeRecord, set: {NodeType: Switch}, mask: [LID], header: {SM_Key: 0x1}}`, lid: 1, qpn: 1, want: map[int]string{
			36: "\x00\x00\x00\x00\x00\x00\x00\x01", 48: zero(7) + "\x01", 56 + 6: "\x02"}},
		{send: `{class: SubnAdm, method: GetTable, attribute: NodeRecord, mask: 0x8000000000000001}`, lid: 1, qpn: 1, want: map[int]string{48: "\x80" + zero(6) + "\x01"}},
		{send: `{class: 0x32, oui: 0x001405, attribute: 0, to: h8, no_answer_ok: true}`, lid: 8, qpn: 1, rest: true, want: map[int]string{
			0: "\x01\x32\x01\x01", 37: "\x00\x14\x05"}},
		{send: `{class: Perf, attribute: 0x12, modifier: 5, data: "0001ffff", to: 8}`, lid: 8, qpn: 1, rest: true, want: map[int]string{
			0: "\x01\x04\x01\x01", 16: "\x00\x12", 20: "\x00\x00\x00\x05", 24: "\x00\x01\xff\xff"}},
		{send: `{class: Perf, attribute: 0x12, base_version: 7, class_version: 9, method: 0x55, header: {Status: 0x1234, ClassSpecific: 0xabcd, Reserved18: 0x5a5a}, to: 8}`,
			lid: 8, qpn: 1, rest: true, want: map[int]string{
				0: "\x07\x04\x09\x55\x12\x34\xab\xcd", 16: "\x00\x12\x5a\x5a"}},
		{send: `{class: SubnAdm, attribute: NodeRecord, method: Get, rmpp: {RMPPVersion: 1, RMPPType: ABORT, RMPPFlags: Active, RMPPStatus: 0x7f, Data1: 3}}`,
			lid: 1, qpn: 1, want: map[int]string{24: "\x01\x04", 26: "\x01\x7f\x00\x00\x00\x03"}},
		{send: `{class: Subn, attribute: NodeInfo, to: h1, length: 36}`, lid: 1, qpn: 0, rest: true, want: map[int]string{0: "\x01\x01\x01\x01", 16: "\x00\x11"}},
		{send: `{raw: "01 01 01 01 0000 0000 0000000000000000 0011 0000 00000000", to: 1}`, lid: 1, qpn: 0, rest: true, want: map[int]string{
			0: "\x01\x01\x01\x01", 16: "\x00\x11"}},
		{send: `{raw: "0181010100000000", modifier: 1, attribute: PortInfo}`, lid: 0xffff, qpn: 0, rest: true, want: map[int]string{
			0: "\x01\x81\x01\x01", 16: "\x00\x15", 20: "\x00\x00\x00\x01"}},
		{send: `{class: Subn, attribute: NodeInfo, to: 1, tid: 0x1122334455667788}`, lid: 1, want: map[int]string{12: "\x55\x66\x77\x88"}},
		{send: `{class: Subn, attribute: NodeInfo, to: 1, tid: 0}`, lid: 1, want: map[int]string{12: "\x00\x00\x00\x00"}},
		{send: `{class: Subn, method: TrapRepress, attribute: Notice, to: 1, tid: 0x1122334455667788}`, lid: 1, want: map[int]string{
			0: "\x01\x01\x01\x07", 8: "\x11\x22\x33\x44\x55\x66\x77\x88"}},
	}
	inDemo(t, func(t *testing.T, b *bench) {
		for _, tt := range tests {
			m := b.prepare(t, tt.send)
			b.wire.first() // what it took to look up the address
			if _, err := m.send(t.Context()); err != nil {
				t.Errorf("%s: %v", tt.send, err)
				continue
			}
			w := b.wire.first()
			if w.Addr.LID != tt.lid || w.Addr.QPN != tt.qpn {
				t.Errorf("%s: to %v QP %d, want LID %d QP %d", tt.send, w.Addr, w.Addr.QPN, tt.lid, tt.qpn)
			}
			for at, want := range tt.want {
				if got := string(w.MAD[at : at+len(want)]); got != want {
					t.Errorf("%s: byte %d: % x, want % x", tt.send, at, got, want)
				}
				clear(w.MAD[at : at+len(want)])
			}
			clear(w.MAD[mad.OffTID : mad.OffTID+8])
			if tt.rest && !isZero(w.MAD[:]) {
				t.Errorf("%s: further bytes:\n%s", tt.send, hex.Dump(w.MAD[:]))
			}
		}
	})
}

func TestSendAnswers(t *testing.T) {
	tests := []struct {
		send   string
		expect []string
	}{
		{`{class: Subn, attribute: NodeInfo, to: "0,1"}`, []string{`answered`, `status == "ok"`, `status_code == 0`, `record.NodeType == "Switch"`,
			`record.NumPorts == 12`, `record.LocalPortNum == 2`, `answer.HopCount == 1`, `answer.D`, `count == 1`, `error == ""`,
			`record == records[0]`, `len(data) == 128`, `data startsWith "010102"`, `latency < "1ms"`}},
		{`{class: Subn, attribute: NodeDescription, to: "0,1,11,4"}`, []string{`record.NodeString == "h8"`}},
		{`{class: Subn, attribute: NodeDescription, to: "9:0,3"}`, []string{`record.NodeString == "h3"`}},
		{`{class: Subn, attribute: NodeDescription, to: "fe80::200:1:0:801"}`, []string{`record.NodeString == "h8"`, `from.lid == 8`, `from.gid == ""`}},
		{`{class: Subn, attribute: NodeDescription, to: "0x0200000100000801"}`, []string{`record.NodeString == "h8"`}},
		{`{class: Subn, attribute: NodeDescription, to: h8}`, []string{`record.NodeString == "h8"`, `from.lid == lid("h8")`}},
		{`{class: Subn, attribute: NodeDescription, to: "${port('h8')}"}`, []string{`record.NodeString == "h8"`}},
		{`{class: Subn, attribute: NodeDescription, to: "${lid('h8')}"}`, []string{`record.NodeString == "h8"`}},
		{`{class: Subn, attribute: NodeDescription}`, []string{`record.NodeString == "h1"`}},
		{`{class: Subn, attribute: PortInfo, to: "demo switch 1", modifier: 12}`, []string{`record.NeighborMTU == "2048"`, `mtu(record) == 2048`, `rate(record) == 40`,
			`record.PortState == "active"`, `record.PortState == 4`, `record.M_Key == "0x0000000000000000"`, `record.M_Key == 0`}},
		{`{class: SubnAdm, method: GetTable, attribute: NodeRecord}`, []string{`count == 10`, `len(records) == 10`, `count(records, .NodeInfo.NodeType == "Switch") == 2`,
			`all(records, .LID > 0)`, `any(records, .NodeDescription.NodeString == "h8")`, `records[-1].LID > 0`, `answer.AttributeOffset == 14`}},
		{`{class: SubnAdm, method: GetTable, attribute: NodeRecord, set: {LID: 77}}`, []string{`count == 0`, `records == []`, `record == nil`, `status == "ok"`}},
		{`{class: SubnAdm, method: Get, attribute: NodeRecord, set: {LID: 8}}`, []string{`count == 1`, `record.NodeDescription.NodeString == "h8"`, `record.NodeGUID == "0x200000100000800"`}},
		{`{class: SubnAdm, method: Get, attribute: NodeRecord, set: {LID: 77}}`, []string{`status == "ERR_NO_RECORDS"`, `status == "SA: no records"`, `status_code == 0x300`, `count == 0`}},
		{`{class: SubnAdm, method: GetTable, attribute: PathRecord, set: {SGID: "${gid('h1')}", DGID: "${gid('h8')}", NumbPath: 1}}`, []string{
			`record.DLID == lid("h8")`, `record.DGID == gid("h8")`, `record.DGID == "FE80:0::0200:1:0:801"`, `record.MTU == "2048"`, `record.MTU == 2048`,
			`mtu(record) >= 2048`, `rate(record) == 40`, `record.Rate == "40G"`, `record.Rate < "56 Gb/s"`, `record.P_Key == 0xffff`, `record.P_Key == "0xffff"`}},
		{`{class: SubnAdm, method: GetTable, attribute: 0x77}`, []string{`status == "unsupported_method_attrib"`, `record == nil`}},
		{`{class: SubnAdm, class_version: 9, attribute: NodeRecord}`, []string{`status_code == 0x0c`}}, // by the port: nobody serves version 9
		{`{class: Subn, attribute: NodeInfo, to: h1, class_version: 9}`, []string{`status == "bad_version"`}},
		{`{class: Subn, attribute: NodeInfo, to: h1, method: 0x55}`, []string{`status == "unsupported_method"`}},
		{`{class: Subn, attribute: SwitchInfo, to: h1}`, []string{`status == "unsupported_method_attrib"`}},
		{`{class: Subn, attribute: PortInfo, to: h1, modifier: 9}`, []string{`status == "invalid_attrib_value"`}},
		{`{class: Subn, attribute: PortInfo, to: "0,1", modifier: 99}`, []string{`status == "invalid_attrib_value"`, `status_code == 0x1c`}},
		// An answer of another base version is dropped by the kernel (mad.c, validate_mad).
		{`{class: Subn, attribute: NodeInfo, to: h1, base_version: 2, timeout: 100ms, retries: 1}`, []string{`not answered`, `error startsWith "timeout"`, `latency == "200ms"`}},
		{`{class: Subn, attribute: NodeInfo, to: 700, timeout: 50ms, retries: 3}`, []string{`!answered`, `status == ""`, `status_code == -1`, `record == nil`, `count == 0`, `latency == "200ms"`, `data == ""`}},
		{`{class: Subn, attribute: NodeInfo, to: h1, length: 20}`, []string{`not answered`, `error startsWith "EINVAL"`}}, // user_mad.c: at least 36
		{`{class: Subn, attribute: NodeInfo, to: h1, length: 36}`, []string{`answered`, `record.NumPorts == 1`}},          // padded by the port
		{`{class: SubnAdm, attribute: NodeRecord, length: 40}`, []string{`error startsWith "EINVAL"`}},                    // the header has 56
		{`{class: Subn, attribute: NodeInfo, to: h1, tid: 0x77}`, []string{`answer.TransactionID endsWith "00000077"`}},
		{`{class: SubnAdm, method: GetTable, attribute: NodeRecord, tid: 0x78}`, []string{`answer.TransactionID endsWith "00000078"`, `count == 10`}},
		{`{class: Subn, attribute: NodeInfo, to: h1, qp: 1, timeout: 50ms, retries: 0}`, []string{`not answered`}}, // an SMP at QP1
		{`{class: Subn, attribute: NodeInfo, to: h1, timeout: 0s}`, []string{`not answered`, `error == ""`}},
		{`{class: SubnAdm, method: Get, attribute: NodeRecord, set: {LID: 8}, grh: true}`, []string{`answered`, `from.gid == gid("h1")`}},
		{`{class: SubnAdm, method: Get, attribute: NodeRecord, set: {LID: 8}, grh: {gid: "fe80::200:1:0:901"}, timeout: 50ms, retries: 0}`, []string{`not answered`}},
		{`{class: SubnAdm, method: Get, attribute: NodeRecord, set: {LID: 8}, pkey: 0x8001}`, []string{`answered`}},
		// RMPP by hand: the SA's port does not take a version 9 (IBA 13.6.2.1).
		{`{class: SubnAdm, method: GetTable, attribute: NodeRecord, rmpp: {RMPPVersion: 9, RMPPType: DATA, RMPPFlags: Active, Data1: 1}, timeout: 50ms, retries: 0}`, []string{`answer.RMPPType == "ABORT" or not answered`}},
	}
	inDemo(t, func(t *testing.T, b *bench) {
		for _, tt := range tests {
			mark := b.vars.mark()
			b.send(t, tt.send)
			b.holds(t, tt.send, tt.expect...)
			b.vars.release(mark)
		}
	})
}

func TestSendErrors(t *testing.T) {
	tests := []struct{ send, want string }{
		{`{class: Perf, attribute: 0x12, to: "0,1"}`, "a directed route leads SMPs only"},
		{`{class: Subn, attribute: NodeInfo, to: h9}`, "did you mean h1"},
		{`{class: Subn, attribute: NodeInfo, to: "0"}`, "LID 0"},
		{`{class: SubnAdm, method: Get, attribute: NodeRecord, pkey: 0x1234}`, "is not in partition 0x1234"},
		{`{class: Subn, attribute: NodeInfo, to: h1, header: {M_Key: "env:IBSM_TEST_NO_SUCH_KEY"}}`, "the environment has no such variable"},
		{`{class: Subn, attribute: NodeInfo, to: h1, header: {M_Key: "file:testdata/no-such-key"}}`, "no such file"},
		{`{class: Subn, attribute: "${'Nonsense'}", to: h1}`, `no attribute "Nonsense"`},
		{`{class: "${'Nonsense'}", attribute: NodeInfo, to: h1}`, "Nonsense"},
		{`{class: Subn, attribute: PortInfo, to: h1, set: {PortState: "${'Activ8'}"}}`, "no such value"},
		{`{class: Subn, attribute: PortInfo, to: h1, set: {LID: "${70000}"}}`, "too wide"},
		{`{class: Subn, attribute: PortInfo, to: h1, set: {LID: "${undefined}"}}`, "no value"},
		{`{class: Subn, attribute: PortInfo, to: h1, modifier: "${-1}"}`, "whole number"},
		{`{class: Subn, attribute: PortInfo, to: h1, modifier: "${'x'}"}`, "whole number"},
		{`{class: Subn, attribute: PortInfo, to: h1, sl: "${16}"}`, "from 0 to 15"},
		{`{class: Subn, attribute: PortInfo, to: h1, timeout: "${'soon'}"}`, "it takes a time"},
		{`{class: Subn, attribute: PortInfo, to: h1, data: "${hex(1)}"}`, "hexadecimal"},
		{`{class: Subn, attribute: NodeInfo, to: h1, data: "` + strings.Repeat("00", 65) + `"}`, "65 bytes, and 64 fit"},
		{`{class: Perf, attribute: 0x12, set: {PortSelect: 1}, to: h1}`, "give its bytes as data"},
		{`{raw: "` + strings.Repeat("00", 257) + `", to: h1}`, "257 bytes"},
		{`{class: Subn, attribute: NodeInfo, to: "${1 / 'a'}"}`, "1 / 'a'"},
		{`{class: Subn, attribute: NodeInfo, to: "${records[0]}"}`, "records"},
	}
	inDemo(t, func(t *testing.T, b *bench) {
		for _, tt := range tests {
			_, err := b.sender.prepare(t.Context(), step(t, "send: "+tt.send).Body.(*Send), b.vars)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.send, err, tt.want)
			}
		}
	})
}

func TestSendChanges(t *testing.T) {
	tests := []struct {
		send string
		want bool
	}{
		{`{class: Subn, attribute: NodeInfo}`, false},
		{`{class: SubnAdm, attribute: NodeRecord, method: GetTable}`, false},
		{`{class: Subn, attribute: PortInfo, method: Set}`, true},
		{`{class: Subn, attribute: PortInfo, method: 2}`, true},
		{`{class: SubnAdm, attribute: ServiceRecord, method: Delete}`, true},
		{`{attribute: Notice, class: Subn, method: TrapRepress}`, true},
		{`{attribute: Notice, class: Subn, method: Trap}`, true},
		{`{attribute: Notice, class: SubnAdm, method: Report}`, true}, // InformInfo subscribers believe it
		{`{class: Subn, attribute: NodeInfo, method: GetResp}`, true}, // so does who waits for it
		{`{class: Subn, attribute: NodeInfo, method: 0x55}`, true},
		{`{class: Subn, attribute: NodeInfo, header: {Method: Set}}`, true},
		{`{class: Subn, attribute: NodeInfo, method: Set, header: {method: Get}}`, false},
		{`{class: Subn, attribute: NodeInfo, method: "${m}"}`, true},
		{`{raw: "01010102"}`, true},
		{`{raw: "01010101"}`, false},
		{`{raw: "01010101", method: Set}`, true},
		{`{raw: "${m}"}`, true},
		{`{class: ComMgt, method: Send, attribute: ConnectRequest}`, true},
	}
	inDemo(t, func(t *testing.T, b *bench) {
		for _, tt := range tests {
			body := step(t, "send: "+tt.send).Body.(*Send)
			if got := body.changes(); got != tt.want {
				t.Errorf("%s: changes %v", tt.send, got)
			}
			if strings.Contains(tt.send, "${") {
				continue
			}
			if m, err := b.sender.prepare(t.Context(), body, b.vars); err != nil || m.changes() != tt.want {
				t.Errorf("%s: %v, the MAD changes something: %v", tt.send, err, m != nil && m.changes())
			}
		}
	})
}

// A table of many segments: its records are those of the model.
func TestSendLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "two-level:leafs=9,spines=4,hosts=9")
		b.send(t, `{class: SubnAdm, method: GetTable, attribute: NodeRecord}`)
		b.holds(t, "all nodes", `count == 9*9 + 9 + 4`, `len(uniq(map(records, .LID))) == count`, `len(data) == 2*112*count`)
	})
}

// What is beyond the limit is counted.
func TestAnswerLimit(t *testing.T) {
	head := make([]byte, mad.OffSAData)
	head[1], head[3], head[17], head[26], head[45] = 3, 0x92, 0x11, 1, 14 // NodeRecords, 112 bytes apart
	a := &answer{b: head, head: len(head), limit: 3 * 112}
	for range 7 {
		for range 2 {
			if err := a.take(nil, make([]byte, 56)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if list, count := a.records(); len(list) != 3 || count != 7 || len(a.b) != 56+3*112 {
		t.Errorf("%d records of %d, %d bytes", len(list), count, len(a.b))
	}
}

// A Set goes out with the M_Key of the environment, which no report has.
func TestSecrets(t *testing.T) {
	t.Setenv("IBSM_TEST_M_KEY", "0x00c0ffee12345678")
	inDemo(t, func(t *testing.T, b *bench) {
		m := b.prepare(t, `{class: Subn, attribute: PortInfo, to: h8, header: {M_Key: "env:IBSM_TEST_M_KEY"}}`)
		key := []byte{0, 0xc0, 0xff, 0xee, 0x12, 0x34, 0x56, 0x78}
		if !bytes.Equal(m.data[24:32], key) {
			t.Errorf("M_Key % x", m.data[24:32])
		}
		if bytes.Contains(m.shown(), key) {
			t.Error("the report has the key")
		}
		for _, s := range []string{"key 0x00c0ffee12345678", "c0ffee12345678 0xc0ffee12345678", "54324593501165176"} {
			if got := b.lib.masker.text(s); strings.Contains(got, "ffee") || got == s {
				t.Errorf("%s is shown as %s", s, got)
			}
		}
		t.Setenv("IBSM_TEST_LONG_KEY", "0x11c0ffee1234567890")
		_, err := b.sender.prepare(t.Context(), step(t, `send: {class: Subn, attribute: PortInfo, to: h8, set: {M_Key: "env:IBSM_TEST_LONG_KEY"}}`).Body.(*Send), b.vars)
		if err == nil || strings.Contains(err.Error(), "ffee") {
			t.Errorf("a key that is too wide: %v", err)
		}
	})
}

// Only a key takes its value from elsewhere, and only where the script says so: not where
// an answer does.
func TestSecretsOnlyInKeys(t *testing.T) {
	t.Setenv("IBSM_TEST_M_KEY", "0x00c0ffee12345678")
	key := []byte{0, 0xc0, 0xff, 0xee, 0x12, 0x34, 0x56, 0x78}
	const ref = "env:IBSM_TEST_M_KEY"
	inDemo(t, func(t *testing.T, b *bench) {
		b.vars.set("answered", ref)
		prepare := func(yaml string) (*message, error) {
			return b.sender.prepare(t.Context(), step(t, "send: "+yaml).Body.(*Send), b.vars)
		}
		m, err := prepare(`{class: SubnAdm, attribute: ServiceRecord, method: Set, to: h8, set: {ServiceName: "${answered}"}}`)
		if err != nil || !bytes.Contains(m.data, []byte(ref)) || bytes.Contains(m.data, key) {
			t.Errorf("a name: %v, want the text as it is", err)
		}
		var secret *SecretError
		if _, err = prepare(`{class: Subn, attribute: PortInfo, to: h8, set: {M_Key: "${answered}"}}`); !errors.As(err, &secret) {
			t.Errorf("a key of an answer: %v, want an error", err)
		}
		b.lib.masker.allow(&Value{Text: ref})
		for _, yaml := range []string{
			`{class: Subn, attribute: PortInfo, to: h8, set: {M_Key: "${answered}"}}`,
			`{class: SubnAdm, attribute: PortInfoRecord, to: h8, set: {PortInfo: {M_Key: "env:IBSM_TEST_M_KEY"}}}`,
		} {
			if m, err = prepare(yaml); err != nil || !bytes.Contains(m.data, key) {
				t.Errorf("%s: %v", yaml, err)
			} else if bytes.Contains(m.shown(), key) {
				t.Errorf("%s: the report has the key", yaml)
			}
		}
	})
}

func TestSendContext(t *testing.T) {
	inDemo(t, func(t *testing.T, b *bench) {
		for _, yaml := range []string{`{class: Subn, attribute: NodeInfo, to: 700}`, `{raw: "01010101", to: 700, attribute: NodeInfo}`} {
			m := b.prepare(t, yaml)
			ctx, cancel := contextWithTimeout(t, 300*time.Millisecond)
			start := time.Now()
			_, err := m.send(ctx)
			cancel()
			if took := time.Since(start); !errors.Is(err, errTest) || took != 300*time.Millisecond {
				t.Errorf("%s: %v after %v", yaml, err, took)
			}
		}
	})
}

// The versions that libibmad registers (register.c, mgmt_class_vers), and the
// kernel's CM (IB_CM_CLASS_VERSION).
func TestClassVersion(t *testing.T) {
	for class, want := range map[mad.Class]uint8{
		0x01: 1, 0x81: 1, 0x03: 2, 0x04: 1, 0x05: 1, 0x06: 1, 0x07: 2, 0x09: 1, 0x0f: 1, 0x21: 2, 0x30: 1, 0x4f: 1,
	} {
		if got := classVersion(class); got != want {
			t.Errorf("class %#02x: version %d, want %d", uint8(class), got, want)
		}
	}
}
