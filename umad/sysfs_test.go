package umad

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// archives are the unpacked archives of testdata, which tests only read.
var archives string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if archives, err = os.MkdirTemp("", "umad"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(archives)
		return m.Run()
	}())
}

// machine is a system whose files are those of an archive in testdata, or that
// has none.
func machine(t testing.TB, archive string) system {
	t.Helper()
	root := filepath.Join(archives, archive)
	if archive == "" {
		root = t.TempDir()
	} else if !nodeExists(root) {
		unpack(t, archive, root)
	}
	return systemAt(root)
}

// ownMachine is one whose files a test may change.
func ownMachine(t testing.TB, archive string) system {
	t.Helper()
	root := t.TempDir()
	unpack(t, archive, root)
	return systemAt(root)
}

func systemAt(root string) system {
	a, _ := abiOf("linux", "amd64")
	a.order, a.longBits = native.order, native.longBits
	return system{Config{Root: root}, a, openDevice}
}

func unpack(t testing.TB, archive, root string) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", archive+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		write(t, root, f.Name, string(f.Data))
	}
}

func write(t testing.TB, root, name, data string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func gid(t testing.TB, s string) mad.GID {
	t.Helper()
	g, err := mad.ParseGID(s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestPorts(t *testing.T) {
	for archive, want := range map[string][]LocalPort{
		"mlx5": {{
			Info: port.Info{
				Device: "mlx5_0", Port: 1, NodeType: mad.NodeTypeCA,
				NodeGUID: 0x98039b0300001234, PortGUID: 0x98039b0300001234, NodeDesc: "node7 mlx5_0",
				State: mad.PortStateActive, PhysState: mad.PortPhysStateLinkUp,
				LID: 47, LMC: 1, SMLID: 1, SMSL: 3, CapMask: 0x2659e848,
				Width: mad.LinkWidth4X, Rate: mad.Rate200G,
				GIDs:  []mad.GID{gid(t, "fe80::9803:9b03:0:1234"), {}, gid(t, "fe80::14:500:0:1")},
				PKeys: []mad.PKey{0xffff, 0, 0x8001},
			},
			UMAD: "umad0", ISSM: "issm0", GIDTypes: []string{"IB/RoCE v1", "", "IB/RoCE v1"},
		}},
		"dual": {
			{
				Info: port.Info{
					Device: "ibp5s0", Port: 1, NodeType: mad.NodeTypeCA,
					NodeGUID: 0x0002c90300abcdec, PortGUID: 0x0002c90300abcded, NodeDesc: "MT4099 ConnectX-3",
					State: mad.PortStateDown, PhysState: mad.PortPhysStatePolling, CapMask: 0x02514868,
					GIDs: []mad.GID{gid(t, "fe80::2:c903:ab:cded")}, PKeys: []mad.PKey{0xffff},
				},
				UMAD: "umad1", ISSM: "issm1", GIDTypes: []string{"IB/RoCE v1"},
			},
			{
				Info: port.Info{
					Device: "ibp5s0", Port: 2, NodeType: mad.NodeTypeCA,
					NodeGUID: 0x0002c90300abcdec, PortGUID: 0x0002c90300abcdee, NodeDesc: "MT4099 ConnectX-3",
					State: mad.PortStateActive, PhysState: mad.PortPhysStateLinkUp,
					LID: 1, SMLID: 1, CapMask: 0x0251486a, Width: mad.LinkWidth4X, Rate: mad.Rate40G,
					GIDs: []mad.GID{gid(t, "fe80::2:c903:ab:cdee")}, PKeys: []mad.PKey{0x7fff},
				},
				UMAD: "umad0", ISSM: "issm0", GIDTypes: []string{"IB/RoCE v1"},
			},
			{
				Info: port.Info{
					Device: "iw0", Port: 1, LinkLayer: port.LinkEthernet, NodeType: 4,
					NodeGUID: 0x0007430000000001, NodeDesc: "iwarp",
					State: mad.PortStateActive, PhysState: mad.PortPhysStateLinkUp,
					Width: mad.LinkWidth4X, Rate: mad.Rate40G,
					GIDs: []mad.GID{gid(t, "7:4300:1::")},
				},
				GIDTypes: []string{""},
				Without:  "no umad device: the port carries no MADs (iWARP and usNIC do not)",
			},
			{
				Info: port.Info{
					Device: "mlx4_sw", Port: 0, NodeType: mad.NodeTypeSwitch,
					NodeGUID: 0x0002c903000000f0, PortGUID: 0x0002c903000000f0, NodeDesc: "leaf 1",
					State: mad.PortStateInit, PhysState: mad.PortPhysStateLinkUp,
					LID: 0xbffe, SMLID: 1, SMSL: 15, CapMask: 0x4a, Width: mad.LinkWidth1X, Rate: mad.Rate2_5G,
					GIDs: []mad.GID{gid(t, "fe80::2:c903:0:f0")}, PKeys: []mad.PKey{0xffff},
				},
				UMAD: "umad2", ISSM: "issm2", GIDTypes: []string{""},
			},
		},
		"rxe": {{
			Info: port.Info{
				Device: "rxe0", Port: 1, LinkLayer: port.LinkEthernet, NodeType: mad.NodeTypeCA,
				NodeGUID: 0xfcfd9cfffe9a0001, PortGUID: 0xfcfd9cfffe9a0001, NodeDesc: "rxe0",
				State: mad.PortStateActive, PhysState: mad.PortPhysStateLinkUp, CapMask: 0x00010000,
				Width: mad.LinkWidth1X, Rate: mad.Rate10G,
				GIDs:  []mad.GID{gid(t, "fe80::fcfd:9cff:fe9a:1"), gid(t, "fd00::1"), {}, gid(t, "::ffff:10.0.0.1")},
				PKeys: []mad.PKey{0xffff},
			},
			UMAD: "umad0", GIDTypes: []string{"RoCE v2", "RoCE v2", "", "RoCE v2"},
		}},
		"xdr": {
			{
				Info: port.Info{
					Device: "mlx5_0", Port: 1, NodeType: mad.NodeTypeCA,
					NodeGUID: 0xb0cf0e0300aa0001, PortGUID: 0xb0cf0e0300aa0001, NodeDesc: "node9 mlx5_0",
					State: mad.PortStateActive, PhysState: mad.PortPhysStateLinkUp,
					LID: 17, SMLID: 1, CapMask: 0xa651ec48, Width: mad.LinkWidth4X, Rate: mad.Rate800G,
					GIDs: []mad.GID{gid(t, "fe80::b0cf:e03:aa:1")}, PKeys: []mad.PKey{0xffff},
				},
				UMAD: "umad0", GIDTypes: []string{"IB/RoCE v1"}, Side: GSISide, Other: "smi0/1",
			},
			{
				Info: port.Info{
					Device: "smi0", Port: 1, NodeType: mad.NodeTypeCA,
					NodeGUID: 0xb0cf0e0300aa0001, PortGUID: 0xb0cf0e0300aa0001, NodeDesc: "node9 smi0",
					State: mad.PortStateActive, PhysState: mad.PortPhysStateLinkUp,
					LID: 17, SMLID: 1, CapMask: 0xa651e848, Width: mad.LinkWidth1X, Rate: mad.Rate200G,
					GIDs: []mad.GID{gid(t, "fe80::b0cf:e03:aa:1")}, PKeys: []mad.PKey{0xffff},
				},
				UMAD: "umad1", ISSM: "issm1", GIDTypes: []string{"IB/RoCE v1"}, Side: SMISide, Other: "mlx5_0/1",
			},
		},
		"broken": {{
			Info: port.Info{
				Device: "hfi1_0", Port: 1, State: mad.PortStateActive, SMSL: 3,
				GIDs:  []mad.GID{{}, {}, gid(t, "fe80::11:7500:101:101")},
				PKeys: []mad.PKey{0, 0x8001},
			},
			UMAD: "umad1", GIDTypes: []string{"", "", ""},
			Notes: []string{
				`node_type: "9" is not of the form NUMBER: NAME`,
				"node_guid: no such file or directory",
				"node_desc: is a directory",
				`link_layer: unknown link layer "Unknown"`,
				`phys_state: "" is not of the form NUMBER: NAME`,
				"lid: 0x10001 is too large",
				`lid_mask_count: strconv.ParseUint: parsing "x": invalid syntax`,
				"sm_lid: is a directory",
				`cap_mask: strconv.ParseUint: parsing "0x1ffffffff": value out of range`,
				`rate: "100 parsecs" is not of the form 100 Gb/sec (4X EDR)`,
				"pkeys/0: is a directory",
				`gids/0: "fe80::1" is not 8 groups of 4 hexadecimal digits`,
			},
		}},
		"": nil, // no RDMA at all
	} {
		got, err := machine(t, archive).ports()
		if err != nil {
			t.Errorf("%s: %v", archive, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", archive, diff)
		}
	}
}

// Every example of a rate in the documents and drivers of the kernel
// (Documentation/ABI/stable/sysfs-class-infiniband; sysfs.c, rate_show).
func TestParseRate(t *testing.T) {
	for s, want := range map[string]link{
		"2.5 Gb/sec (1X SDR)":   {mad.LinkWidth1X, mad.Rate2_5G},
		"2.5 Gb/sec (1X)":       {mad.LinkWidth1X, mad.Rate2_5G},
		"10 Gb/sec (4X SDR)":    {mad.LinkWidth4X, mad.Rate10G},
		"20 Gb/sec (4X DDR)":    {mad.LinkWidth4X, mad.Rate20G},
		"40 Gb/sec (4X QDR)":    {mad.LinkWidth4X, mad.Rate40G},
		"40 Gb/sec (4X FDR10)":  {mad.LinkWidth4X, mad.Rate40G},
		"10 Gb/sec (1X FDR10)":  {mad.LinkWidth1X, mad.Rate10G},
		"56 Gb/sec (4X FDR)":    {mad.LinkWidth4X, mad.Rate56G},
		"168 Gb/sec (12X FDR)":  {mad.LinkWidth12X, mad.Rate168G},
		"25 Gb/sec (1X EDR)":    {mad.LinkWidth1X, mad.Rate25G},
		"50 Gb/sec (2X EDR)":    {mad.LinkWidth2X, mad.Rate50G},
		"100 Gb/sec (4X EDR)":   {mad.LinkWidth4X, mad.Rate100G},
		"200 Gb/sec (4X HDR)":   {mad.LinkWidth4X, mad.Rate200G},
		"400 Gb/sec (4X NDR)":   {mad.LinkWidth4X, mad.Rate400G},
		"800 Gb/sec (4X XDR)":   {mad.LinkWidth4X, mad.Rate800G},
		"1600 Gb/sec (8X XDR)":  {mad.LinkWidth8X, mad.Rate1600G},
		"100 Gb/sec (4X WHAT)":  {},
		"100 Gb/sec (3X EDR)":   {},
		"100 Gb/sec (4X EDR":    {},
		"100 Gb/sec":            {},
		"":                      {},
		"100 Gb/sec (4X EDR) x": {},
	} {
		got, err := parseRate(s)
		if got != want || (err != nil) != (want == link{}) {
			t.Errorf("%q: %v, %v, want %v", s, got, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"4: ACTIVE", "0x2f", "fe80:0000:0000:0000:9803:9b03:0000:1234", "9803:9b03:0000:1234",
		"100 Gb/sec (4X EDR)", "InfiniBand", "", ":::::::", "fe80:0000:0000:0000:9803:9b03:00001234:",
		"0000:0000:0000:0000",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		parseNamed[mad.PortState](s)
		parseNumber[mad.LID](s)
		parseRate(s)
		parseLinkLayer(s)
		if g, err := parseGID(s); err == nil {
			if other, err := netip.ParseAddr(s); err != nil || other.As16() != g {
				t.Errorf("%q is %v, as an IPv6 address %v (%v)", s, g, other, err)
			}
		}
		if g, err := parseGUID(s); err == nil {
			if other, err := strconv.ParseUint(strings.ReplaceAll(s, ":", ""), 16, 64); err != nil || other != uint64(g) {
				t.Errorf("%q is %v, without its colons %#x (%v)", s, g, other, err)
			}
		}
	})
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		archive, device string
		num             uint8
		node, text      string
	}{
		{"dual", "ibp5s0", 1, "umad1", ""},
		{"dual", "ibp5s0", 2, "umad0", ""},
		{"dual", "mlx4_sw", 0, "umad2", ""},
		{"dual", "iw0", 1, "", "iw0/1: no umad device: the port carries no MADs"},
		{"dual", "ibp5s0", 3, "", "no such port; there are: ibp5s0/1, ibp5s0/2, iw0/1, mlx4_sw/0"},
		{"dual", "ibp5s", 1, "", "no such port"},
		{"", "mlx5_0", 1, "", "its adapter, or the driver of it, is missing"},
	} {
		d, err := machine(t, c.archive).device(c.device, c.num)
		if c.text == "" {
			if err != nil {
				t.Errorf("%s/%d: %v", c.device, c.num, err)
				continue
			}
			if node, _ := d.sys.find(c.device, c.num); node != c.node {
				t.Errorf("%s/%d is %q, want %q", c.device, c.num, node, c.node)
			}
			continue
		}
		var e *port.Error
		if !errors.Is(err, ErrNoPort) || !errors.As(err, &e) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s/%d: error %v, want ErrNoPort with %q", c.device, c.num, err, c.text)
		}
	}

	m := ownMachine(t, "mlx5")
	if err := os.RemoveAll(filepath.Join(m.Root, classMAD)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.device("mlx5_0", 1); !errors.Is(err, ErrNoPort) || !strings.Contains(err.Error(), "modprobe ib_umad") {
		t.Errorf("without the module: %v", err)
	}
	ports, err := m.ports()
	if err != nil || len(ports) != 1 || !strings.Contains(ports[0].Without, "modprobe ib_umad") {
		t.Errorf("without the module: %v, %v", ports, err)
	}
}

func TestSideNames(t *testing.T) {
	for side, want := range map[Side]string{Whole: "whole", SMISide: "SMI", GSISide: "GSI"} {
		if side.String() != want {
			t.Errorf("%d is %v, want %s", side, side, want)
		}
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		archive, device string
		num             int
		chosen          int
		why             []string
	}{
		{"mlx5", "", Any, 0, []string{"the first active InfiniBand port"}},
		{"dual", "", Any, 1, []string{
			"its state is Down: name it (--on umad:ibp5s0/1)", "the first active InfiniBand port",
			"carries no MADs", "its state is Init",
		}},
		{"dual", "ibp5s0", Any, 1, []string{"passed over for ibp5s0/2", "named, and active", "another port was named", "another port was named"}},
		{"dual", "ibp5s0", 1, 0, []string{"named", "another port was named", "another port was named", "another port was named"}},
		{"dual", "", 2, 1, []string{"another", "the first active", "another", "another"}},
		{"dual", "mlx4_sw", 0, 3, []string{"another", "another", "another", "named"}},
		{"dual", "iw0", Any, -1, []string{"another", "another", "carries no MADs", "another"}},
		{"rxe", "", Any, -1, []string{"an Ethernet port has no LIDs: name it (--on umad:rxe0/1) and use GIDs"}},
		{"rxe", "rxe0", 1, 0, []string{"named, and active"}},
		{"xdr", "", Any, 0, []string{"the first active InfiniBand port", "all else goes through mlx5_0/1"}},
		{"xdr", "smi0", Any, 1, []string{"another", "named, and active"}},
	} {
		ports, err := machine(t, c.archive).ports()
		if err != nil {
			t.Fatal(err)
		}
		choices := Choose(ports, c.device, c.num)
		if len(choices) != len(c.why) {
			t.Fatalf("%s: %d choices, want %d", c.archive, len(choices), len(c.why))
		}
		for i, got := range choices {
			if got.Chosen != (i == c.chosen) || !strings.Contains(got.Why, c.why[i]) || got.Device != ports[i].Device {
				t.Errorf("%s, named %q %d: port %d chosen %v, %q; want %v, %q", c.archive, c.device, c.num, i, got.Chosen, got.Why, i == c.chosen, c.why[i])
			}
		}
	}
}
