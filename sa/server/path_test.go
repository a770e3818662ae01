package server

import (
	"slices"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

func askPaths(t testing.TB, s *Server, from string, method mad.Method, like *mad.PathRecord, fields ...string) (mad.Status, []mad.PathRecord) {
	t.Helper()
	req := request(t, method, mad.AttrPathRecord, like, fields...)
	status, rows := split(t, req, s.answer(portOf(t, s, from).LID, req), mad.PathRecordSize)
	recs := make([]mad.PathRecord, len(rows))
	for i, row := range rows {
		if err := recs[i].UnmarshalBinary(row); err != nil {
			t.Fatal(err)
		}
	}
	return status, recs
}

// between makes a query from port to port.
func between(t testing.TB, s *Server, src, dst string) *mad.PathRecord {
	return &mad.PathRecord{SGID: portOf(t, s, src).GID(s.sub.GIDPrefix), DGID: portOf(t, s, dst).GID(s.sub.GIDPrefix)}
}

// What configs/demo.yaml says of the cables: EDR and 4096 bytes, but FDR for h3,
// one lane for h7, HDR for h8, and QDR and 2048 bytes for s1[12] - s2[12].
func TestDemoPaths(t *testing.T) {
	s := demo(t)
	const oldCable = 12
	tests := []struct {
		src, dst string
		rate     mad.Rate
		life     uint8
		pkey     mad.PKey
	}{
		{"h1", "h2", mad.Rate100G, 18, 0x8001},
		{"h1", "h3", mad.Rate56G, 18, 0x8001},
		{"h1", "h5", mad.Rate100G, 18, 0x8001},
		{"h1", "h6", mad.Rate100G, 18, 0x8001},
		{"h5", "h1", mad.Rate100G, 18, 0x0001},
		{"h1", "h7", mad.Rate25G, 18, 0xffff},
		{"h1", "h8", mad.Rate100G, 18, 0xffff},
		{"h1", "s2", mad.Rate100G, 18, 0xffff},
		{"h5", "h6", mad.Rate100G, 18, 0xffff}, // two limited members of partition 1
		{"h8", "h8", mad.Rate200G, 0, 0xffff},  // loopback: life time 0 (IBA 15.2.5.16)
		{"s1", "s1", mad.Rate100G, 0, 0xffff},
	}
	cables := map[bool]int{}
	for _, tt := range tests {
		t.Run(tt.src+" to "+tt.dst, func(t *testing.T) {
			src, dst := portOf(t, s, tt.src), portOf(t, s, tt.dst)
			mtu, rate := mad.MTU4096, tt.rate
			if home := switchOf(src); home != switchOf(dst) {
				old := home.LFT[dst.LID] == oldCable
				cables[old]++
				if old {
					mtu, rate = mad.MTU2048, slower(rate, mad.Rate40G)
				}
			}
			status, recs := askPaths(t, s, tt.src, mad.MethodGet, between(t, s, tt.src, tt.dst), "SGID", "DGID")
			if status != mad.StatusOK {
				t.Fatal(status)
			}
			want := mad.PathRecord{
				DGID: mad.MakeGID(0xfe80<<48, dst.GUID), SGID: mad.MakeGID(0xfe80<<48, src.GUID), DLID: dst.LID, SLID: src.LID,
				Reversible: true, PKey: tt.pkey, MTUSelector: 2, MTU: mtu, RateSelector: 2, Rate: rate,
				PacketLifeTimeSelector: 2, PacketLifeTime: tt.life,
			}
			if recs[0] != want {
				t.Errorf("got  %+v\nwant %+v", recs[0], want)
			}
		})
	}
	if cables[true] == 0 || cables[false] == 0 {
		t.Errorf("paths over the old cable and the new one: %v", cables)
	}
}

// switchOf is the switch that an end port belongs to or is linked to.
func switchOf(p *topo.Port) *topo.Node {
	if p.Node.IsSwitch() {
		return p.Node
	}
	return p.Peer.Node
}

const cablesYAML = `
nodes:
  - {name: a, kind: ca}
  - {name: b, kind: ca}
  - {name: s1, kind: switch, ports: 4}
  - {name: s2, kind: switch, ports: 4}
links:
  - a[1] - s1[1]
  - b[1] - s2[1]
  - {ends: "s1[2] - s2[2]", speed: QDR, mtu: 2048}
`

func TestPathSelectors(t *testing.T) {
	sub, err := topo.Parse("cables.yaml", []byte(cablesYAML))
	s := broughtUp(t, sub, err)
	const (
		greater, less, exactly, best = mad.SelectorGreaterThan, mad.SelectorLessThan, mad.SelectorExactly, mad.SelectorBest

		none    = mad.StatusSANoRecords
		invalid = mad.StatusSAReqInvalid
	)
	mtu := func(sel mad.Selector, v mad.MTU) mad.PathRecord { return mad.PathRecord{MTUSelector: sel, MTU: v} }
	rate := func(sel mad.Selector, v mad.Rate) mad.PathRecord { return mad.PathRecord{RateSelector: sel, Rate: v} }
	life := func(sel mad.Selector, v uint8) mad.PathRecord {
		return mad.PathRecord{PacketLifeTimeSelector: sel, PacketLifeTime: v}
	}
	byMTU := []string{"MTUSelector", "MTU"}
	byRate := []string{"RateSelector", "Rate"}
	byLife := []string{"PacketLifeTimeSelector", "PacketLifeTime"}
	tests := []struct {
		name   string
		fields []string
		like   mad.PathRecord
		want   mad.Status
		mtu    mad.MTU
		rate   mad.Rate
	}{
		{"MTU > 1024", byMTU, mtu(greater, mad.MTU1024), 0, mad.MTU2048, mad.Rate40G},
		{"MTU > 2048", byMTU, mtu(greater, mad.MTU2048), none, 0, 0},
		{"MTU < 4096", byMTU, mtu(less, mad.MTU4096), 0, mad.MTU2048, mad.Rate40G},
		{"MTU < 1024", byMTU, mtu(less, mad.MTU1024), 0, mad.MTU512, mad.Rate40G},
		{"MTU < 256", byMTU, mtu(less, mad.MTU256), none, 0, 0},
		{"MTU = 1024", byMTU, mtu(exactly, mad.MTU1024), 0, mad.MTU1024, mad.Rate40G},
		{"MTU = 4096", byMTU, mtu(exactly, mad.MTU4096), none, 0, 0},
		{"best MTU", byMTU, mtu(best, mad.MTU256), 0, mad.MTU2048, mad.Rate40G},
		{"MTU without selector", byMTU[1:], mtu(greater, mad.MTU4096), 0, mad.MTU2048, mad.Rate40G},
		{"selector without MTU", byMTU[:1], mtu(less, 0), 0, mad.MTU2048, mad.Rate40G},
		{"no such MTU", byMTU, mtu(greater, 6), invalid, 0, 0},
		// By their codes 25 Gb/s (15) is more than 40 Gb/s (7), and 30 Gb/s (4) less than 20 Gb/s (6).
		{"rate > 25", byRate, rate(greater, mad.Rate25G), 0, mad.MTU2048, mad.Rate40G},
		{"rate > 40", byRate, rate(greater, mad.Rate40G), none, 0, 0},
		{"rate < 56", byRate, rate(less, mad.Rate56G), 0, mad.MTU2048, mad.Rate40G},
		{"rate < 40", byRate, rate(less, mad.Rate40G), 0, mad.MTU2048, mad.Rate28G},
		{"rate < 2.5", byRate, rate(less, mad.Rate2_5G), none, 0, 0},
		{"rate = 40", byRate, rate(exactly, mad.Rate40G), 0, mad.MTU2048, mad.Rate40G},
		{"rate = 100", byRate, rate(exactly, mad.Rate100G), none, 0, 0},
		{"best rate", byRate, rate(best, mad.Rate10G), 0, mad.MTU2048, mad.Rate40G},
		{"no such rate", byRate, rate(greater, 1), invalid, 0, 0},
		{"life > 17", byLife, life(greater, 17), 0, mad.MTU2048, mad.Rate40G},
		{"life > 18", byLife, life(greater, 18), none, 0, 0},
		{"life < 19", byLife, life(less, 19), 0, mad.MTU2048, mad.Rate40G},
		{"life < 18", byLife, life(less, 18), none, 0, 0},
		{"life = 18", byLife, life(exactly, 18), 0, mad.MTU2048, mad.Rate40G},
		{"life = 19", byLife, life(exactly, 19), none, 0, 0},
		{"best life", byLife, life(best, 1), 0, mad.MTU2048, mad.Rate40G},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ends := between(t, s, "a", "b")
			tt.like.SGID, tt.like.DGID = ends.SGID, ends.DGID
			status, recs := askPaths(t, s, "a", mad.MethodGet, &tt.like, append(slices.Clone(tt.fields), "SGID", "DGID")...)
			if status != tt.want {
				t.Fatalf("status %v, want %v", status, tt.want)
			}
			if status == mad.StatusOK && (recs[0].MTU != tt.mtu || recs[0].Rate != tt.rate || recs[0].PacketLifeTime != 18) {
				t.Errorf("MTU %v rate %v life %d, want %v %v 18", recs[0].MTU, recs[0].Rate, recs[0].PacketLifeTime, tt.mtu, tt.rate)
			}
		})
	}
}

func TestPathEnds(t *testing.T) {
	s := demo(t)
	lid := func(name string) mad.LID { return portOf(t, s, name).LID }
	gid := func(name string) mad.GID { return portOf(t, s, name).GID(s.sub.GIDPrefix) }
	stranger := mad.MakeGID(mad.DefaultGIDPrefix, 0x1234)
	tests := []struct {
		name   string
		like   mad.PathRecord
		fields []string
		want   mad.Status // of a Get
		table  int        // records of a GetTable
	}{
		{"LIDs", mad.PathRecord{SLID: lid("h1"), DLID: lid("h8")}, []string{"SLID", "DLID"}, 0, 1},
		{"GID and LID", mad.PathRecord{SGID: gid("h1"), DLID: lid("h8")}, []string{"SGID", "DLID"}, 0, 1},
		{"GID and its own LID", mad.PathRecord{SGID: gid("h1"), SLID: lid("h1")}, []string{"SGID", "SLID"}, 0, 10},
		{"GID and LID of another", mad.PathRecord{SGID: gid("h1"), SLID: lid("h2")}, []string{"SGID", "SLID"}, mad.StatusSAReqInvalid, 0},
		{"source only", mad.PathRecord{SGID: gid("h1")}, []string{"SGID"}, 0, 10}, // itself and the switches included
		{"destination only", mad.PathRecord{DLID: lid("s2")}, []string{"DLID"}, 0, 10},
		{"no end", mad.PathRecord{}, nil, 0, 100},
		{"unknown GUID", mad.PathRecord{SGID: gid("h1"), DGID: stranger}, []string{"SGID", "DGID"}, mad.StatusSAInvalidGID, 0},
		{"other subnet", mad.PathRecord{SGID: gid("h1"), DGID: mad.MakeGID(0x1234, portOf(t, s, "h2").GUID)}, []string{"SGID", "DGID"}, mad.StatusSAInvalidGID, 0},
		{"multicast", mad.PathRecord{SGID: gid("h1"), DGID: mad.GID{0xff, 0x12}}, []string{"SGID", "DGID"}, mad.StatusSANoRecords, 0},
		{"unknown LID", mad.PathRecord{SGID: gid("h1"), DLID: 0x700}, []string{"SGID", "DLID"}, mad.StatusSANoRecords, 0},
		{"half a ServiceID", mad.PathRecord{SGID: gid("h1")}, nil, mad.StatusSAInsufficientComponents, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, method := range []mad.Method{mad.MethodGet, mad.MethodGetTable} {
				req := request(t, method, mad.AttrPathRecord, &tt.like, tt.fields...)
				if tt.want == mad.StatusSAInsufficientComponents {
					req[offComponentMask+7] |= 1 // the first of ServiceID's two bits
				}
				status, rows := split(t, req, s.answer(lid("h1"), req), mad.PathRecordSize)
				switch {
				case method == mad.MethodGetTable && tt.want == mad.StatusSANoRecords:
					if status != mad.StatusOK || len(rows) != 0 {
						t.Errorf("%v: status %v, %d records; want ok and none", method, status, len(rows))
					}
				case status != tt.want:
					t.Errorf("%v: status %v, want %v", method, status, tt.want)
				case method == mad.MethodGetTable && len(rows) != tt.table:
					t.Errorf("%d records, want %d", len(rows), tt.table)
				}
			}
		})
	}
}

func TestPathPartitions(t *testing.T) {
	s := demo(t)
	tests := []struct {
		src, dst  string
		key, want mad.PKey // want 0: no path
	}{
		{"h1", "h2", 0xffff, 0xffff},
		{"h1", "h2", 0x8001, 0x8001},
		{"h1", "h5", 0x8001, 0x8001},
		{"h1", "h5", 0x0001, 0x0001}, // the key as asked
		{"h5", "h6", 0x8001, 0},      // both are limited members
		{"h1", "h7", 0x8001, 0},
		{"h1", "h2", 0x8002, 0},
		{"h1", "h2", 0x8000, 0}, // not a key
	}
	for _, tt := range tests {
		like := between(t, s, tt.src, tt.dst)
		like.PKey = tt.key
		_, recs := askPaths(t, s, "h1", mad.MethodGetTable, like, "SGID", "DGID", "P_Key")
		if len(recs) != 0 && tt.want == 0 || tt.want != 0 && (len(recs) != 1 || recs[0].PKey != tt.want) {
			t.Errorf("%s to %s by P_Key %v: %+v, want %v", tt.src, tt.dst, tt.key, recs, tt.want)
		}
	}
}

// What the subnet does not care about is granted as asked; raw packets have no
// P_Key.
func TestPathGrants(t *testing.T) {
	s := demo(t)
	like := between(t, s, "h1", "h2")
	like.ServiceID, like.FlowLabel, like.HopLimit, like.TClass, like.QoSClass, like.SL, like.RawTraffic = 0x1000, 0xabcde, 64, 7, 0x123, 3, true
	_, recs := askPaths(t, s, "h1", mad.MethodGet, like, "SGID", "DGID", "ServiceID", "FlowLabel", "HopLimit", "TClass", "QoSClass", "SL", "RawTraffic")
	like.DLID, like.SLID = portOf(t, s, "h2").LID, portOf(t, s, "h1").LID
	like.Reversible = true
	like.MTUSelector, like.MTU, like.RateSelector, like.Rate, like.PacketLifeTimeSelector, like.PacketLifeTime = 2, mad.MTU4096, 2, mad.Rate100G, 2, 18
	if recs[0] != *like {
		t.Errorf("got  %+v\nwant %+v", recs[0], *like)
	}
	plain := between(t, s, "h1", "h2")
	if _, recs := askPaths(t, s, "h1", mad.MethodGet, plain, "SGID", "DGID"); recs[0].HopLimit != 0 || recs[0].FlowLabel != 0 || recs[0].SL != 0 {
		t.Errorf("unasked: %+v", recs[0])
	}
}

const lmcYAML = `
nodes:
  - {name: a, kind: ca, port: {1: {lid: 4, lmc: 1}}}
  - {name: b, kind: ca, port: {1: {lid: 8, lmc: 1}}}
  - {name: sw, kind: switch, ports: 4}
links: ["a[1] - sw[1]", "b[1] - sw[2]"]
`

// Two LIDs at each end give four paths; those without a LID in common come
// first and are preferred (osm_sa_path_record.c).
func TestNumbPath(t *testing.T) {
	sub, err := topo.Parse("lmc.yaml", []byte(lmcYAML))
	s := broughtUp(t, sub, err)
	type path struct {
		slid, dlid mad.LID
		preference uint8
	}
	all := []path{{4, 8, 0}, {5, 9, 0}, {4, 9, 2}, {5, 8, 2}}
	tests := []struct {
		name   string
		fields []string
		like   mad.PathRecord
		want   []path
	}{
		{"all", nil, mad.PathRecord{}, all},
		{"three", []string{"NumbPath"}, mad.PathRecord{NumbPath: 3}, all[:3]},
		{"none", []string{"NumbPath"}, mad.PathRecord{NumbPath: 0}, nil},
		{"more than there are", []string{"NumbPath"}, mad.PathRecord{NumbPath: 127}, all},
		{"one source LID", []string{"SLID"}, mad.PathRecord{SLID: 5}, []path{{5, 8, 0}, {5, 9, 2}}},
		{"preference", []string{"Preference"}, mad.PathRecord{Preference: 2}, all[2:]},
	}
	for _, tt := range tests {
		ends := between(t, s, "a", "b")
		tt.like.SGID, tt.like.DGID = ends.SGID, ends.DGID
		_, recs := askPaths(t, s, "a", mad.MethodGetTable, &tt.like, append(tt.fields, "SGID", "DGID")...)
		if len(recs) != len(tt.want) {
			t.Errorf("%s: %d paths, want %d", tt.name, len(recs), len(tt.want))
			continue
		}
		for i, r := range recs {
			if got := (path{r.SLID, r.DLID, r.Preference}); got != tt.want[i] || r.NumbPath != 0 {
				t.Errorf("%s: path %d is %v, want %v", tt.name, i, got, tt.want[i])
			}
		}
	}
	// A Get is for one path, whatever NumbPath says.
	if status, _ := askPaths(t, s, "a", mad.MethodGet, between(t, s, "a", "b"), "SGID", "DGID", "NumbPath"); status != mad.StatusOK {
		t.Errorf("Get with NumbPath 0: %v", status)
	}
}

// Without a way back a path is not reversible, without a way it is none.
func TestBrokenRoutes(t *testing.T) {
	s := demo(t)
	h1, h8 := portOf(t, s, "h1"), portOf(t, s, "h8")
	s2, _ := s.sub.NodeByName("s2")
	s2.LFT[h1.LID] = topo.NoRoute
	like := between(t, s, "h1", "h8")
	if _, recs := askPaths(t, s, "h1", mad.MethodGet, like, "SGID", "DGID"); recs[0].Reversible || recs[0].DLID != h8.LID {
		t.Errorf("one way: %+v", recs[0])
	}
	like.Reversible = true
	if status, _ := askPaths(t, s, "h1", mad.MethodGet, like, "SGID", "DGID", "Reversible"); status != mad.StatusSANoRecords {
		t.Errorf("reversible over one way: %v", status)
	}
	like.Reversible = false // either (IBA 15.2.5.16)
	if status, _ := askPaths(t, s, "h1", mad.MethodGet, like, "SGID", "DGID", "Reversible"); status != mad.StatusOK {
		t.Errorf("reversible or not: %v", status)
	}
	if status, _ := askPaths(t, s, "h1", mad.MethodGet, between(t, s, "h8", "h1"), "SGID", "DGID"); status != mad.StatusSANoRecords {
		t.Errorf("no way: %v", status)
	}
}

func TestTableTooLarge(t *testing.T) {
	s := demo(t)
	s.cfg.MaxRecords = 99
	if status, _ := askPaths(t, s, "h1", mad.MethodGetTable, &mad.PathRecord{}); status != mad.StatusSANoResources {
		t.Errorf("100 paths where 99 are allowed: %v", status)
	}
}

// Codes in the order of OpenSM (osm_helper.c, ordered_rates).
func TestSlowerRate(t *testing.T) {
	order := []mad.Rate{0, 2, 5, 3, 11, 6, 4, 15, 19, 7, 8, 20, 12, 9, 10, 16, 13, 14, 17, 18, 21, 22, 23, 24, 25}
	for i := 1; i < len(order); i++ {
		if got := slowerRate(order[i]); got != order[i-1] {
			t.Errorf("below %v is %v, want %v", order[i], got, order[i-1])
		}
	}
}

func BenchmarkPathTable702(b *testing.B) {
	sub, err := topo.Generate("two-level:leafs=36,spines=18,hosts=18")
	s := broughtUp(b, sub, err)
	src := s.sub.SM
	req := request(b, mad.MethodGetTable, mad.AttrPathRecord, &mad.PathRecord{SGID: src.GID(s.sub.GIDPrefix)}, "SGID")
	for b.Loop() {
		if resp := s.answer(src.LID, req); len(resp) != mad.OffSAData+702*mad.PathRecordSize {
			b.Fatalf("%d bytes", len(resp))
		}
	}
}
