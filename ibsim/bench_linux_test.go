package ibsim

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/ibsim/ibsimtest"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/port/porttest"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/smp"
)

// The contract holds on Debian's ibsim, with OpenSM on the same fabric.
func TestIbsimContract(t *testing.T) {
	b := ibsimtest.Start(t, ibsimtest.TwoLevel(2, 1, 3), "H-0001")
	attach := func(t testing.TB, node string) (port.Device, mad.AddressVector) {
		d := open(t, Config{Socket: b.Socket, Node: node, Serve: true})
		info, err := d.Info()
		if err != nil {
			t.Fatal(err)
		}
		return d, mad.AddressVector{LID: info.LID, QPN: mad.QPGSI}
	}
	porttest.RunContract(t, bench(func(t testing.TB) (p porttest.Pair) {
		p.A, p.ToA = attach(t, "H-0002")
		p.B, p.ToB = attach(t, "H-0006")
		return p
	}))
	if left := b.Clients(); len(left) != 1 {
		t.Errorf("clients are left beside OpenSM: %q", left)
	}
}

// What ibsim's own agents answer of the SM attributes (sim_mad.c,
// smp_handlers_array); the rest it gives back, for want of a client to take it.
var answered = map[string]bool{
	"NodeDescription": true, "NodeInfo": true, "GUIDInfo": true, "PortInfo": true, "P_KeyTable": true,
	"SLtoVLMappingTable": true, "VLArbitrationTable": true, "MlnxExtPortInfo": true,
}

// ofSwitches are answered by switches, and refused by others.
var ofSwitches = map[string]bool{"SwitchInfo": true, "LinearForwardingTable": true, "MulticastForwardingTable": true}

// Every SM attribute is read, by LID and by directed route, or refused, or times
// out, as ibsim has it.
func TestIbsimSMP(t *testing.T) {
	b := ibsimtest.Start(t, ibsimtest.TwoLevel(2, 1, 3), "H-0001")
	client := func(timeout time.Duration) *smp.Client {
		c, err := smp.NewClient(open(t, Config{Socket: b.Socket, Node: "H-0002"}), smp.Config{Timeout: timeout, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	c, hasty := client(time.Minute), client(20*time.Millisecond)
	for _, tt := range []struct {
		route string
		info  mad.NodeInfo
		desc  string
		sm    bool
	}{
		{"dr:0", mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: 0x100020, PortGUID: 0x100021, LocalPortNum: 1}, "host 2", false},
		{"0,1", mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 4, NodeGUID: 0x200000, PortGUID: 0x200000, LocalPortNum: 2}, "leaf 1", false},
		{"0,1,1", mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: 0x100010, PortGUID: 0x100011, LocalPortNum: 1}, "host 1", true},
		{"0,1,4,2,3", mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: 0x100060, PortGUID: 0x100061, LocalPortNum: 1}, "host 6", false},
	} {
		route := mad.MustParseAddr(tt.route)
		info, err := smp.Get[mad.NodeInfo](t.Context(), c, route, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := tt.info
		want.BaseVersion, want.ClassVersion, want.SystemImageGUID = 1, 1, want.NodeGUID
		want.PartitionCap, want.DeviceID, want.Revision, want.VendorID = info.PartitionCap, info.DeviceID, info.Revision, info.VendorID
		if info != want {
			t.Errorf("%s: %+v, want %+v", tt.route, info, want)
		}
		desc, err := smp.Get[mad.NodeDescription](t.Context(), c, route, 0)
		if err != nil || desc.String() != tt.desc {
			t.Errorf("%s: NodeDescription %q, %v; want %q", tt.route, desc.String(), err, tt.desc)
		}
		portInfo, err := smp.Get[mad.PortInfo](t.Context(), c, route, 0)
		if err != nil {
			t.Fatal(err)
		}
		lid, isSwitch := mad.Addr{Kind: mad.AddrLID, LID: portInfo.LID}, info.NodeType == mad.NodeTypeSwitch
		for _, attr := range layout.Attributes {
			if attr.Class != uint8(mad.ClassSubnLIDRouted) || !attr.Allows(uint8(mad.MethodGet)) {
				continue
			}
			modifier := uint32(0)
			if attr.Name == "VLArbitrationTable" {
				modifier = 1 << 16 // its blocks begin at 1
			}
			var data [2][]byte
			for i, to := range []mad.Addr{route, lid} {
				asks, want := hasty, agents.ErrTimeout
				switch {
				case answered[attr.Name], ofSwitches[attr.Name] && isSwitch, attr.Name == "SMInfo" && tt.sm:
					asks, want = c, nil
				case ofSwitches[attr.Name]:
					asks, want = c, smp.ErrUnsupported
				}
				if data[i], err = asks.Get(t.Context(), to, attr, modifier); !errors.Is(err, want) {
					t.Errorf("%s of %v: error %v, want %v", attr.Name, to, err, want)
				}
			}
			// A switch tells by which port it was asked, an SM how often it was.
			differs := isSwitch && (attr.Name == "NodeInfo" || attr.Name == "PortInfo") || attr.Name == "SMInfo"
			if !differs && !bytes.Equal(data[0], data[1]) {
				t.Errorf("%s of %v is\n%x by directed route,\n%x by LID", attr.Name, lid, data[0], data[1])
			}
		}
	}
}

// OpenSM's SA answers, and its tables that do not fit a MAD are marked as cut.
func TestIbsimSA(t *testing.T) {
	b := ibsimtest.Start(t, ibsimtest.TwoLevel(2, 1, 3), "H-0001")
	for _, mode := range []port.RMPPMode{port.RMPPKernel, port.RMPPUser} {
		c, err := sa.NewClient(open(t, Config{Socket: b.Socket, Node: "H-0002"}), sa.Config{RMPP: mode})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		hosts := 0
		for n := range 9 { // 6 hosts and 3 switches
			rec, err := sa.Get(t.Context(), c, sa.Match(mad.NodeRecord{LID: mad.LID(n + 1)}, "LID"))
			if err != nil {
				t.Fatal(err)
			}
			if rec.NodeInfo.NodeType == mad.NodeTypeCA {
				hosts++
			}
		}
		if hosts != 6 {
			t.Errorf("%d hosts, want 6", hosts)
		}
		count := func(q sa.Query[mad.NodeRecord]) (n int, err error) {
			for _, err := range sa.Table(t.Context(), c, q) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		}
		if n, err := count(sa.Match(mad.NodeRecord{LID: 3}, "LID")); n != 1 || err != nil {
			t.Errorf("one node: %d records, %v", n, err)
		}
		if n, err := count(sa.Match(mad.NodeRecord{LID: 99}, "LID")); n != 0 || err != nil {
			t.Errorf("no node: %d records, %v", n, err)
		}
		if n, err := count(sa.Query[mad.NodeRecord]{}); n != 1 || !errors.Is(err, sa.ErrIncomplete) {
			t.Errorf("all nodes: %d records, %v; want 1 and sa.ErrIncomplete", n, err)
		}
	}
}
