package smp

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/topo"
)

// rig is the fabric demo, seen from h2.
type rig struct {
	sub    *topo.Subnet
	fabric *sim.Fabric
	dev    port.Device
	client *Client
}

func newRig(t testing.TB, cfg Config) *rig {
	t.Helper()
	sub, err := topo.Generate("demo")
	if err != nil {
		t.Fatal(err)
	}
	f, err := sim.New(sub, sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r := &rig{sub: sub, fabric: f}
	r.dev = r.device(t, "h2")
	r.client, err = NewClient(r.dev, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.client.Close() })
	return r
}

func (r *rig) port(name string) *topo.Port {
	p, _ := r.sub.PortByName(name)
	return p
}

func (r *rig) device(t testing.TB, name string) port.Device {
	t.Helper()
	dev, err := r.fabric.Device(r.port(name).Node, r.port(name).Num)
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// Cables of configs/demo.yaml: h2 is at s1[2], h1 to h4 at s1[1] to s1[4], s1[11]
// leads to s2[11], h5 to h8 are at s2[1] to s2[4].
func TestGetNodeInfo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		at := func(lid mad.LID, route ...uint8) mad.Addr {
			return mad.Addr{Kind: mad.AddrCombined, LID: lid, Route: route}
		}
		lid := func(name string) mad.Addr { return mad.Addr{Kind: mad.AddrLID, LID: r.port(name).LID} }
		s1, s2 := r.port("s1").LID, r.port("s2").LID
		tests := []struct {
			to   mad.Addr
			want string // node
			port uint8  // where the SMP came in
		}{
			{mad.MustParseAddr("dr:0"), "h2", 1},
			{mad.MustParseAddr("0,1"), "s1", 2},
			{mad.MustParseAddr("0,1,1"), "h1", 1},
			{mad.MustParseAddr("0,1,11"), "s2", 11},
			{mad.MustParseAddr("0,1,11,4"), "h8", 1},
			{mad.MustParseAddr("0,1,2"), "h2", 1}, // back to where it came from
			{lid("h1"), "h1", 1},
			{lid("h8"), "h8", 1},
			{lid("s2"), "s2", 11},
			{at(s1, 0, 3), "h3", 1},
			{at(s2, 0, 4), "h8", 1},
			{at(s2, 0, 11, 1), "h1", 1},
			{at(s2, 0, 12), "s1", 12},
		}
		for _, tt := range tests {
			info, err := Get[mad.NodeInfo](t.Context(), r.client, tt.to, 0)
			switch n, _ := r.sub.NodeByName(tt.want); {
			case err != nil:
				t.Errorf("%v: %v", tt.to, err)
			case info.NodeGUID != n.GUID:
				t.Errorf("%v: node %v, want %s with %v", tt.to, info.NodeGUID, tt.want, n.GUID)
			case info.LocalPortNum != tt.port && tt.to.Kind != mad.AddrLID:
				t.Errorf("%v: came in by port %d, want %d", tt.to, info.LocalPortNum, tt.port)
			}
		}
	})
}

func TestGetModifier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		s1 := mad.Addr{Kind: mad.AddrLID, LID: r.port("s1").LID}
		for port, want := range map[uint32]mad.MTU{11: mad.MTU4096, 12: mad.MTU2048} {
			if info, err := Get[mad.PortInfo](t.Context(), r.client, s1, port); err != nil || info.NeighborMTU != want {
				t.Errorf("s1[%d]: MTU %v, %v; want %v", port, info.NeighborMTU, err, want)
			}
		}
		data, err := r.client.Get(t.Context(), s1, layout.AttributeOf(1, layout.NodeDescription), 0)
		if text, _, _ := strings.Cut(string(data), "\x00"); err != nil || text != "demo switch 1" || len(data) != 64 {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// What an SA's NodeRecords say of a node is what the node says of itself.
func TestNodeRecordsAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		admin := r.admin(t)
		for rec, err := range sa.Table(t.Context(), admin, sa.Query[mad.NodeRecord]{}) {
			if err != nil {
				t.Fatal(err)
			}
			to := mad.Addr{Kind: mad.AddrLID, LID: rec.LID}
			info, err := Get[mad.NodeInfo](t.Context(), r.client, to, 0)
			if err != nil {
				t.Fatal(err)
			}
			if info.NodeType == mad.NodeTypeSwitch {
				rec.NodeInfo.LocalPortNum = info.LocalPortNum // port 0 in the record
			}
			desc, err := Get[mad.NodeDescription](t.Context(), r.client, to, 0)
			if err != nil || info != rec.NodeInfo || desc != rec.NodeDescription {
				t.Errorf("LID %v: record %+v, node %+v %v, %v", rec.LID, rec, info, desc.String(), err)
			}
		}
	})
}

func (r *rig) admin(t testing.TB) *sa.Client {
	t.Helper()
	s, err := server.New(r.device(t, "h1"), r.sub, server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	admin, err := sa.NewClient(r.dev, sa.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	return admin
}

func TestResolver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		c, err := NewClient(r.dev, Config{Resolver: sa.NewResolver(r.admin(t))})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		h8 := r.port("h8")
		for _, to := range []mad.Addr{
			{Kind: mad.AddrName, Name: "h8"}, {Kind: mad.AddrGUID, GUID: h8.GUID}, {Kind: mad.AddrGID, GID: h8.GID(r.sub.GIDPrefix)},
		} {
			if info, err := Get[mad.NodeInfo](t.Context(), c, to, 0); err != nil || info.PortGUID != h8.GUID {
				t.Errorf("%v: %v, %v", to, info.PortGUID, err)
			}
		}
		var unknown *sa.NotFoundError
		if _, err := Get[mad.NodeInfo](t.Context(), c, mad.Addr{Kind: mad.AddrName, Name: "h9"}, 0); !errors.As(err, &unknown) {
			t.Errorf("h9: %v", err)
		}
	})
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		for _, to := range []string{"1", "0,1,1", "dr:0"} {
			_, err := Get[mad.SwitchInfo](t.Context(), r.client, mad.MustParseAddr(to), 0) // of a host
			var status *StatusError
			if !errors.As(err, &status) || status.Status != mad.StatusBadAttribute || !errors.Is(err, ErrUnsupported) {
				t.Errorf("%s: %v", to, err)
			} else if !strings.Contains(err.Error(), "SwitchInfo") || !strings.Contains(err.Error(), to) {
				t.Errorf("%s: message %q", to, err)
			}
		}
		_, err := Get[mad.PortInfo](t.Context(), r.client, mad.MustParseAddr("1"), 9)
		var status *StatusError
		if !errors.As(err, &status) || status.Status != mad.StatusBadField || errors.Is(err, ErrUnsupported) {
			t.Errorf("port 9 of a host: %v", err)
		}
	})
}

// A Set says in its errors what it is, and that it was one; a byte that was not given
// is 0.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		for _, to := range []string{"1", "0,1,1"} {
			_, err := Set(t.Context(), r.client, mad.MustParseAddr(to), 0, mad.MakeNodeDescription("new"))
			var status *StatusError
			if !errors.As(err, &status) || status.Method != mad.MethodSet || !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "Set of NodeDescription") {
				t.Errorf("%s: %v", to, err)
			}
			for block, want := range map[uint32]mad.PKeyTable{1: {PKey: [32]mad.PKey{3: 0x8003}}, 2: {}} {
				if got, err := Set(t.Context(), r.client, mad.MustParseAddr(to), block, want); err != nil || got != want {
					t.Errorf("%s, block %d: %v, %v", to, block, got, err)
				}
			}
			data, err := r.client.Set(t.Context(), mad.MustParseAddr(to), layout.AttributeOf(1, layout.PKeyTable), 1, []byte{0x80, 5})
			if want := append([]byte{0x80, 5}, make([]byte, 62)...); err != nil || !bytes.Equal(data, want) {
				t.Errorf("%s: %x, %v", to, data, err)
			}
		}
	})
}

// A type that is no SM attribute.
func TestNoAttribute(t *testing.T) {
	r := newRig(t, Config{})
	if _, err := Get[mad.PathRecord](t.Context(), r.client, mad.MustParseAddr("dr:0"), 0); !errors.Is(err, ErrUnsupported) {
		t.Errorf("PathRecord: %v", err)
	}
	if _, err := Set(t.Context(), r.client, mad.MustParseAddr("dr:0"), 0, mad.PathRecord{}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("Set of PathRecord: %v", err)
	}
	attr := layout.AttributeOf(1, layout.NodeDescription)
	if _, err := r.client.Set(t.Context(), mad.MustParseAddr("dr:0"), attr, 0, make([]byte, 65)); err == nil || !strings.Contains(err.Error(), "65 bytes") {
		t.Errorf("65 bytes: %v", err)
	}
}

func TestSilence(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		to   string
		want time.Duration
		text string
	}{
		{Config{}, "700", 3 * time.Second, "LID 700"},
		{Config{}, "0,1,9", 3 * time.Second, "directed route 0,1,9"}, // nothing is linked to s1[9]
		{Config{Timeout: 50 * time.Millisecond, Retries: 5}, "0,1,9", 300 * time.Millisecond, "0,1,9"},
		{Config{Retries: -1}, "700:0,1", time.Second, "directed route 700:0,1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, tt.cfg)
			begin := time.Now()
			_, err := Get[mad.NodeInfo](t.Context(), r.client, mad.MustParseAddr(tt.to), 0)
			if took := time.Since(begin); !errors.Is(err, agents.ErrTimeout) || took != tt.want {
				t.Errorf("%s: %v after %v, want a time-out after %v", tt.to, err, took, tt.want)
			} else if !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: message %q does not say %q", tt.to, err, tt.text)
			}
		})
	}
}

func TestBadAddresses(t *testing.T) {
	r := newRig(t, Config{})
	route := make(mad.Route, 65)
	for i := range route[1:] {
		route[1+i] = 1
	}
	for _, to := range []mad.Addr{
		{},
		{Kind: mad.AddrLID},
		{Kind: mad.AddrLID, LID: 0xc000},
		{Kind: mad.AddrLID, LID: mad.PermissiveLID},
		{Kind: mad.AddrCombined, Route: mad.Route{0, 1}},
		{Kind: mad.AddrRoute, Route: route},
		{Kind: mad.AddrName, Name: "h1"}, // without a Resolver
	} {
		_, err := Get[mad.NodeInfo](context.Background(), r.client, to, 0)
		var bad *mad.AddrError
		if !errors.As(err, &bad) {
			t.Errorf("%+v: %v", to, err)
		}
	}
}

// The bytes are where libibmad puts them (fields.c, IB_DRSMP_* and IB_MAD_*).
func TestCompose(t *testing.T) {
	attr := layout.AttributeOf(1, layout.PortInfo)
	combined := heading{class: mad.ClassSubnDirected, route: mad.Route{0, 7, 8}, drSLID: 0x1234}
	directed := heading{class: mad.ClassSubnDirected, drSLID: 0xffff}
	byLID := heading{class: mad.ClassSubnLIDRouted, drSLID: 0xffff}
	tests := []struct {
		name string
		got  []byte
		want map[int]string // bytes from an offset
	}{
		{"combined", combined.compose(mad.MethodGet, attr, 3, 0x1122334455667788), map[int]string{
			0:   "\x01\x81\x01\x01\x00\x00\x00\x02", // hop pointer 0, hop count 2
			16:  "\x00\x15\x00\x00\x00\x00\x00\x03",
			24:  "\x11\x22\x33\x44\x55\x66\x77\x88",
			32:  "\x12\x34\xff\xff",
			128: "\x00\x07\x08\x00",
		}},
		{"local", directed.compose(mad.MethodGet, attr, 0, 0), map[int]string{0: "\x01\x81\x01\x01\x00\x00\x00\x00", 32: "\xff\xff\xff\xff", 128: "\x00\x00"}},
		{"LID", byLID.compose(mad.MethodSet, attr, 3, 5), map[int]string{0: "\x01\x01\x01\x02\x00\x00\x00\x00", 24: "\x00\x00\x00\x00\x00\x00\x00\x05", 32: "\x00\x00\x00\x00"}},
	}
	for _, tt := range tests {
		for at, want := range tt.want {
			if got := string(tt.got[at : at+len(want)]); got != want {
				t.Errorf("%s: byte %d: % x, want % x", tt.name, at, got, want)
			}
		}
	}
}

// What a program needs that makes its SMPs itself is what Get sends: the places are
// those of libibmad (fields.c, IB_DRSMP_* and IB_MAD_MKEY_F).
func TestAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{MKey: 0x1122334455667788})
		own := r.port("h2").LID
		for to, want := range map[string]struct {
			lid   mad.LID
			bytes map[int]string
		}{
			"5":       {5, map[int]string{1: "\x01", 24: "\x11\x22\x33\x44\x55\x66\x77\x88", 32: "\x00\x00\x00\x00"}},
			"0,1,3":   {mad.PermissiveLID, map[int]string{1: "\x81", 7: "\x02", 24: "\x11", 32: "\xff\xff\xff\xff", 128: "\x00\x01\x03\x00"}},
			"9:0,200": {9, map[int]string{1: "\x81", 7: "\x01", 32: string([]byte{0, byte(own), 0xff, 0xff}), 128: "\x00\xc8\x00"}},
		} {
			var b [mad.Size]byte
			vector, err := r.client.Address(t.Context(), mad.MustParseAddr(to), &b)
			if err != nil || vector.LID != want.lid || vector.QPN != mad.QPSMI {
				t.Errorf("%s: %v, %v", to, vector, err)
			}
			for at, bytes := range want.bytes {
				if got := string(b[at : at+len(bytes)]); got != bytes {
					t.Errorf("%s: byte %d: % x, want % x", to, at, got, bytes)
				}
			}
		}
		var b [mad.Size]byte
		var bad *mad.AddrError
		if _, err := r.client.Address(t.Context(), mad.MustParseAddr("h1"), &b); !errors.As(err, &bad) || b != [mad.Size]byte{} {
			t.Errorf("a name without a Resolver: %v, % x", err, b)
		}
	})
}
