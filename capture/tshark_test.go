package capture_test

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibsm/ibsm/capture"
	"github.com/ibsm/ibsm/capture/capturetest"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/topo"
)

// record gives a Writer and what reads its file with tshark when it is closed.
func record(t *testing.T) (w *capture.Writer, decode func() []capturetest.Packet) {
	t.Helper()
	capturetest.Need(t)
	name := filepath.Join(t.TempDir(), "trace.pcapng")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w = capture.NewWriter(f)
	return w, func() []capturetest.Packet {
		t.Helper()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return capturetest.Decode(t, name)
	}
}

// Each field of the headers as tshark shows it.
func TestTsharkHeaders(t *testing.T) {
	type fields map[string]string
	const tree = "infiniband."
	s := newStub()
	own, far := s.info.GIDs[1], mad.MakeGID(mad.DefaultGIDPrefix, 0x0002c90300000099)
	cases := []struct {
		name     string
		received bool
		msg      port.Message
		want     fields
	}{
		{"directed route, sent", false,
			port.Message{Addr: mad.AddressVector{LID: mad.PermissiveLID}, Data: newMAD(mad.ClassSubnDirected, mad.MethodGet)},
			fields{
				"lrh.vl": "0x0f", "lrh.lver": "0", "lrh.sl": "0", "lrh.lnh": "0x02", "lrh.dlid": "65535", "lrh.slid": "65535", "lrh.pktlen": "72",
				"bth.opcode": "100", "bth.padcnt": "0", "bth.tver": "0", "bth.p_key": "65535", "bth.destqp": "0x000000", "bth.psn": "0", "bth.a": "0",
				"deth.q_key": "0x0000000000000000", "deth.srcqp": "0x00000000",
				"invariant.crc": "0x00000000", "variant.crc": "0x0000", "mad.mgmtclass": "0x81", "mad.method": "0x01",
			}},
		{"LID route, received", true,
			port.Message{Addr: mad.AddressVector{LID: 0x22, SL: 3, PathBits: 1}, Data: newMAD(mad.ClassSubnLIDRouted, mad.MethodGetResp)},
			fields{
				"lrh.vl": "0x0f", "lrh.sl": "3", "lrh.lnh": "0x02", "lrh.dlid": "17", "lrh.slid": "34", "lrh.pktlen": "72",
				"bth.destqp": "0x000000", "deth.q_key": "0x0000000000000000", "deth.srcqp": "0x00000000", "mad.method": "0x81",
			}},
		{"GRH, sent", false,
			port.Message{Data: newMAD(mad.ClassComMgt, mad.MethodSend), Addr: mad.AddressVector{
				LID: 0x22, QPN: 1, SL: 5, PKeyIndex: 1, HasGRH: true,
				GRH: mad.GRH{GID: far, GIDIndex: 1, HopLimit: 64, TrafficClass: 0xa5, FlowLabel: 0x12345},
			}},
			fields{
				"lrh.vl": "0x00", "lrh.sl": "5", "lrh.lnh": "0x03", "lrh.dlid": "34", "lrh.slid": "16", "lrh.pktlen": "82",
				"grh.ipver": "6", "grh.tclass": "165", "grh.flowlabel": "74565", "grh.paylen": "280", "grh.nxthdr": "27", "grh.hoplmt": "64",
				"grh.sgid": own.String(), "grh.dgid": far.String(),
				"bth.opcode": "100", "bth.p_key": "32769", "bth.destqp": "0x000001", "bth.psn": "1",
				"deth.q_key": "0x0000000080010000", "deth.srcqp": "0x00000001", "invariant.crc": "0x00000000", "variant.crc": "0x0000",
			}},
		{"GRH, received", true,
			port.Message{Data: newMAD(mad.ClassComMgt, mad.MethodSend), Addr: mad.AddressVector{
				LID: 0x22, QPN: 0x123456, HasGRH: true, GRH: mad.GRH{GID: far, GIDIndex: 1, HopLimit: 1},
			}},
			fields{
				"lrh.lnh": "0x03", "lrh.dlid": "16", "lrh.slid": "34", "grh.sgid": far.String(), "grh.dgid": own.String(), "grh.hoplmt": "1",
				"bth.destqp": "0x000001", "bth.psn": "1", "deth.srcqp": "0x00123456",
			}},
	}
	w, decode := record(t)
	p := capture.Port(s, s.Info, w)
	for _, c := range cases {
		if c.received {
			s.incoming = []port.Message{c.msg}
			if err := p.Recv(new(port.Message)); err != nil {
				t.Fatal(err)
			}
		} else if err := p.Send(&c.msg); err != nil {
			t.Fatal(err)
		}
	}
	packets := decode()
	if len(packets) != len(cases) {
		t.Fatalf("%d packets, want %d", len(packets), len(cases))
	}
	for i, c := range cases {
		p := &packets[i]
		for name, want := range c.want {
			if got := p.Shown(tree + name); got != want {
				t.Errorf("%s: tshark has %s = %q, want %q", c.name, name, got, want)
			}
		}
		if (p.Find(tree+"grh") != nil) != c.msg.Addr.HasGRH {
			t.Errorf("%s: a GRH, or none", c.name)
		}
		if len(p.Problems) > 0 {
			t.Errorf("%s: %q", c.name, p.Problems)
		}
		direction := map[bool]string{false: "0x00000002", true: "0x00000001"}[c.received] // pcapng: outbound 2, inbound 1
		if got := p.Shown("frame.packet_flags_direction"); got != direction {
			t.Errorf("%s: direction %s, want %s", c.name, got, direction)
		}
		if len(p.Comments) != 2 {
			t.Errorf("%s: comments %q", c.name, p.Comments)
		}
	}
}

// tshark shows a time-out as a pad record of ERF, with a comment.
func TestTsharkTimeOut(t *testing.T) {
	w, decode := record(t)
	s := newStub()
	s.incoming = []port.Message{{TimedOut: true, Data: newMAD(mad.ClassPerf, mad.MethodGet)[:24]}}
	if err := capture.Port(s, s.Info, w).Recv(new(port.Message)); err != nil {
		t.Fatal(err)
	}
	packets := decode()
	if len(packets) != 1 || packets[0].Shown("erf.types.type") != "48" || len(packets[0].Comments) != 1 || len(packets[0].Problems) != 0 {
		t.Errorf("packets %+v", packets)
	}
}

// A file in which nothing was recorded is one to tshark too.
func TestTsharkEmpty(t *testing.T) {
	if _, decode := record(t); len(decode()) != 0 {
		t.Error("packets in an empty file")
	}
}

// hop is what both ends of a way must agree upon.
type hop struct{ SLID, DLID, SL, PKey, SrcQP, DstQP, MAD string }

func hopOf(p *capturetest.Packet) hop {
	show := func(name string) string { return p.Shown("infiniband." + name) }
	b, _ := p.MAD()
	if !mad.IsResponse(b) {
		clear(b[mad.OffTID : mad.OffTID+4]) // not known at first
	}
	return hop{show("lrh.slid"), show("lrh.dlid"), show("lrh.sl"), show("bth.p_key"), show("deth.srcqp"), show("bth.destqp"), hex.EncodeToString(b)}
}

// Exchanges of clients with a simulated fabric, recorded at the client's port and
// at that of the subnet administrator: tshark and the field table agree about
// every MAD, and both ends about every packet between them.
func TestTsharkFabric(t *testing.T) {
	for _, mode := range []port.RMPPMode{port.RMPPKernel, port.RMPPUser} {
		t.Run(map[port.RMPPMode]string{port.RMPPKernel: "kernel RMPP", port.RMPPUser: "user RMPP"}[mode], func(t *testing.T) {
			w, decode := record(t)
			records := exchange(t, w, mode)
			packets := decode()
			seen := map[string]int{} // structures compared
			ends := map[string][]hop{}
			for i := range packets {
				p := &packets[i]
				compared, bad := p.Compare()
				for _, b := range bad {
					t.Errorf("packet %d: %s", p.Number, b)
				}
				for _, c := range compared {
					seen[c]++
				}
				// Not ACKs, of which the last may still be on its way.
				if p.Shown("infiniband.mad.mgmtclass") == "0x03" && p.Shown("infiniband.rmpp.rmpptype") != "0x02" {
					name := p.Shown("frame.interface_name")
					ends[name] = append(ends[name], hopOf(p))
				}
			}
			for _, want := range []string{"Header", "SMPLIDHeader", "SMPDirectedHeader", "NodeInfo", "PortInfo", "SAHeader", "RMPPHeader", "PathRecord"} {
				if seen[want] == 0 {
					t.Errorf("no %s among the packets", want)
				}
			}
			if segments := (records*64 + 199) / 200; segments < 3 || seen["RMPPHeader"] < 2*segments {
				t.Errorf("%d packets of RMPP for twice %d segments", seen["RMPPHeader"], segments)
			}
			if len(ends["h3/1"]) == 0 {
				t.Error("no packets of subnet administration at h3")
			}
			if diff := cmp.Diff(ends["h3/1"], ends["h1/1"]); diff != "" {
				t.Errorf("what h3 recorded (-) and what h1 recorded (+):\n%s", diff)
			}
		})
	}
}

// exchange asks for attributes and records from h3, and gives the number of
// records of a table.
func exchange(t *testing.T, w *capture.Writer, mode port.RMPPMode) (records int) {
	t.Helper()
	subnet, err := topo.Generate("demo")
	if err != nil {
		t.Fatal(err)
	}
	fabric, err := sim.New(subnet, sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer fabric.Close()
	open := func(name string) port.Device {
		node, ok := subnet.NodeByName(name)
		if !ok {
			t.Fatal("no node " + name)
		}
		dev, err := fabric.Device(node, 1)
		if err != nil {
			t.Fatal(err)
		}
		return capture.Device(dev, w)
	}
	admin, err := server.New(open("h1"), subnet, server.Config{RMPP: mode})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	own := open("h3")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	sm, err := smp.NewClient(own, smp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer sm.Close()
	for _, to := range []string{"0,1", "0,1,11,4", "8", "1"} {
		if _, err := smp.Get[mad.NodeInfo](ctx, sm, mad.MustParseAddr(to), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := smp.Get[mad.PortInfo](ctx, sm, mad.MustParseAddr(to), 1); err != nil {
			t.Fatal(err)
		}
	}
	client, err := sa.NewClient(own, sa.Config{RMPP: mode})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	info, err := own.Info()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		records = 0
		for _, err := range sa.Table(ctx, client, sa.Match(mad.PathRecord{SGID: info.GIDs[0], NumbPath: 127}, "SGID", "NumbPath")) {
			if err != nil {
				t.Fatal(err)
			}
			records++
		}
	}
	return records
}
