package sa

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/topo"
)

const resolveYAML = `
nodes:
  - {name: a, kind: ca, desc: "h1 HCA-1", guid: 0x100000000, port: {1: {guid: 0x100000001, lid: 4, lmc: 1}}}
  - {name: b, kind: ca, desc: "h2", ports: 2, guid: 0x200000000, port: {1: {guid: 0x200000001, lid: 8}, 2: {guid: 0x200000002, lid: 9}}}
  - {name: c, kind: ca, desc: "twin", guid: 0x300000000}
  - {name: d, kind: ca, desc: "twin", guid: 0x400000000}
  - {name: e, kind: ca, desc: "h3", guid: 0x500000000}
  - {name: f, kind: ca, desc: "h3 HCA-2", guid: 0x600000000}
  - {name: sw, kind: switch, ports: 8, desc: "leaf 7", guid: 0x700000000, lid: 20}
links: ["a[1] - sw[1]", "b[1] - sw[2]", "b[2] - sw[3]", "c[1] - sw[4]", "d[1] - sw[5]", "e[1] - sw[6]", "f[1] - sw[7]"]
`

func TestResolve(t *testing.T) {
	tests := []struct {
		addr string
		want mad.GUID // of the port; 0: an error
		lid  mad.LID  // or 0 if any
		err  string
	}{
		{"4", 0x100000001, 4, ""},
		{"5", 0x100000001, 5, ""}, // the second LID of LMC 1
		{"20", 0x700000000, 20, ""},
		{"700", 0, 0, "no port of the subnet has the address 700"},
		{"guid:0x200000002", 0x200000002, 9, ""},
		{"guid:0x100000000", 0x100000001, 4, ""}, // of the node, with one port
		{"guid:0x200000000", 0, 0, "0x0000000200000001 (h2, port 1, LID 8)"},
		{"guid:0x1234", 0, 0, "no port"},
		{"fe80::2:0:2", 0x200000002, 9, ""},
		{"fec0::2:0:2", 0, 0, "no port"}, // the prefix of another subnet
		{"ff12::1", 0, 0, "multicast"},
		{"h1", 0x100000001, 4, ""},              // first word
		{`"h1 HCA-1"`, 0x100000001, 4, ""},      // whole description
		{"h3", 0x500000000 + 1, 0, ""},          // whole description before first word
		{"twin", 0, 0, "stands for 2 ports"},    // two nodes
		{"h2", 0, 0, "0x0000000200000002 (h2,"}, // two ports
		{"h4", 0, 0, "did you mean h"},
		{"0,1", 0, 0, "by LID, GUID, GID and name only"},
	}
	synctest.Test(t, func(t *testing.T) {
		sub, err := topo.Parse("resolve.yaml", []byte(resolveYAML))
		r := newRig(t, sub, err)
		r.serve(t)
		res := NewResolver(r.client(t, "a", Config{}))
		for _, tt := range tests {
			e, err := res.Resolve(t.Context(), mad.MustParseAddr(tt.addr))
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%s: error %v, want %q", tt.addr, err, tt.err)
				}
			case err != nil:
				t.Errorf("%s: %v", tt.addr, err)
			case e.PortGUID != tt.want || tt.lid != 0 && e.LID != tt.lid || e.GID != mad.MakeGID(mad.DefaultGIDPrefix, e.PortGUID):
				t.Errorf("%s: %+v, want port %v with LID %v", tt.addr, e, tt.want, tt.lid)
			}
		}
	})
}

// A LID that no port can have is refused before anybody is asked.
func TestResolveBadLID(t *testing.T) {
	r := newDemo(t)
	res := NewResolver(r.client(t, "h1", Config{}))
	for _, lid := range []mad.LID{0, 0xc000, 0xffff} {
		_, err := res.LID(t.Context(), mad.Addr{Kind: mad.AddrLID, LID: lid})
		var bad *mad.AddrError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), "1 to 0xbfff") {
			t.Errorf("LID %#x: %v", uint16(lid), err)
		}
	}
}

// An Ethernet port's own GIDs tell nothing about the prefix of the SA's subnet.
func TestResolveFromEthernet(t *testing.T) {
	for asked, want := range map[string]string{
		"h8": "fe80::200:1:0:801", "8": "fe80::200:1:0:801", "fe80::200:1:0:801": "fe80::200:1:0:801",
		"2001:db8::200:1:0:801": "2001:db8::200:1:0:801",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newDemo(t)
			r.serve(t)
			dev := r.device(t, r.port("h2"))
			info, err := dev.Info()
			if err != nil {
				t.Fatal(err)
			}
			info.LinkLayer, info.GIDs = port.LinkEthernet, []mad.GID{gid(t, "fd00::1")}
			// The fabric below is InfiniBand: there a GRH goes along with the LID.
			to := mad.AddressVector{LID: 1, HasGRH: true, GRH: mad.GRH{GID: r.gid("h1"), HopLimit: 64}}
			c, err := NewClient(&infoDevice{dev, info}, Config{SA: &to})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			e, err := NewResolver(c).Resolve(t.Context(), mad.MustParseAddr(asked))
			if err != nil || e.LID != 8 || e.GID != gid(t, want) {
				t.Errorf("%s: %+v, %v; want GID %s", asked, e, err, want)
			}
		})
	}
}

// What an SA says of a port, and no port can have. The error names the SA, the
// node, and what was looked up.
func TestResolveBadRecords(t *testing.T) {
	var asMalformed *MalformedError
	good := mad.NodeRecord{LID: 4, NodeInfo: mad.NodeInfo{PortGUID: 0x200000001, LocalPortNum: 1}, NodeDescription: mad.MakeNodeDescription("h7 HCA-1")}
	for _, tt := range []struct {
		name string
		edit func(rec *mad.NodeRecord)
		as   any
		is   error
		text string
	}{
		{"no LID", func(rec *mad.NodeRecord) { rec.LID = 0 }, nil, ErrNoLID,
			`SA at LID 1: port 1 of "h7 HCA-1", GUID 0x0000000200000001: the node has no LID yet: the SM has not reached it`},
		{"multicast LID", func(rec *mad.NodeRecord) { rec.LID = 0xc001 }, &asMalformed, nil,
			`SA at LID 1: malformed answer for NodeRecord: port 1 of "h7 HCA-1", GUID 0x0000000200000001, cannot have LID 0xc001`},
		{"permissive LID", func(rec *mad.NodeRecord) { rec.LID = 0xffff }, &asMalformed, nil, "cannot have LID 0xffff"},
		{"no GUID", func(rec *mad.NodeRecord) { rec.NodeInfo.PortGUID = 0 }, &asMalformed, nil,
			`SA at LID 1: malformed answer for NodeRecord: port 1 of "h7 HCA-1", LID 4, has no GUID`},
	} {
		for addr, asked := range map[string]string{
			"h7": `"h7"`, `"h7 HCA-1"`: `"h7 HCA-1"`, "4": "4", "guid:0x200000001": "0x0000000200000001", "fe80::2:0:1": "fe80::2:0:1",
		} {
			t.Run(tt.name+", "+addr, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newDemo(t)
					r.script(t, func(_ int, req []byte) [][]byte {
						rec := good
						tt.edit(&rec)
						data, _ := rec.AppendBinary(nil)
						return [][]byte{single(req, mad.StatusOK, 14, data...)}
					})
					e, err := NewResolver(r.client(t, "h2", Config{})).Resolve(t.Context(), mad.MustParseAddr(addr))
					if err == nil || tt.as != nil && !errors.As(err, tt.as) || tt.is != nil && !errors.Is(err, tt.is) ||
						!strings.HasPrefix(err.Error(), "look up "+asked+": ") || !strings.Contains(err.Error(), tt.text) {
						t.Errorf("got %+v, %v; want %q", e, err, tt.text)
					}
				})
			})
		}
	}
}

// One bad record among many does not keep the others from being found.
func TestResolveBesideBadRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		r.script(t, func(n int, req []byte) [][]byte {
			if n == 1 { // the whole name
				return [][]byte{single(req, mad.StatusSANoRecords, 0)}
			}
			bad, _ := (&mad.NodeRecord{NodeDescription: mad.MakeNodeDescription("h1 HCA-1")}).AppendBinary(nil)
			good, _ := (&mad.NodeRecord{LID: 4, NodeInfo: mad.NodeInfo{PortGUID: 5}, NodeDescription: mad.MakeNodeDescription("h2 HCA-1")}).AppendBinary(nil)
			all := slices.Concat(bad, make([]byte, 4), good)
			return [][]byte{packet(req, 14, active|first, 1, 40+uint32(len(all)), all[:200]), packet(req, 14, active|last, 2, 20+uint32(len(all)-200), all[200:])}
		})
		e, err := NewResolver(r.client(t, "h2", Config{})).Resolve(t.Context(), mad.MustParseAddr("h2"))
		if err != nil || e.LID != 4 {
			t.Errorf("%+v, %v; want LID 4", e, err)
		}
	})
}

// A query that fails says what was looked up by it.
func TestResolveFails(t *testing.T) {
	for addr, asked := range map[string]string{"h7": `look up "h7": `, "4": "look up 4: ", "fe80::2:0:1": "look up fe80::2:0:1: ", "guid:0x5": "look up 0x0000000000000005: "} {
		for _, tt := range []struct {
			name  string
			reply func(req []byte) [][]byte
			is    error
			text  string
		}{
			{"silence", func([]byte) [][]byte { return nil }, agents.ErrTimeout, "SubnAdmGetTable(NodeRecord) to LID 1: wait for the answer"},
			{"busy", func(req []byte) [][]byte { return [][]byte{single(req, mad.StatusBusy, 0)} }, ErrBusy, "SA at LID 1: GetTable NodeRecord: status 0x0001"},
		} {
			t.Run(tt.name+", "+addr, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newDemo(t)
					r.script(t, func(_ int, req []byte) [][]byte { return tt.reply(req) })
					_, err := NewResolver(r.client(t, "h2", Config{})).Resolve(t.Context(), mad.MustParseAddr(addr))
					if !errors.Is(err, tt.is) || !strings.HasPrefix(err.Error(), asked+tt.text) {
						t.Errorf("got %v, want %v that begins with %q", err, tt.is, asked+tt.text)
					}
				})
			})
		}
	}
}

func TestResolveErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sub, err := topo.Parse("resolve.yaml", []byte(resolveYAML))
		r := newRig(t, sub, err)
		r.serve(t)
		res := NewResolver(r.client(t, "a", Config{}))
		_, err = res.Resolve(t.Context(), mad.MustParseAddr("twin"))
		var many *AmbiguousError
		if !errors.As(err, &many) || len(many.Ports) != 2 || many.Ports[0].NodeGUID != 0x300000000 || many.Ports[1].NodeGUID != 0x400000000 {
			t.Errorf("twin: %v", err)
		}
		_, err = res.Resolve(t.Context(), mad.MustParseAddr("twim"))
		var none *NotFoundError
		if !errors.As(err, &none) || !slices.Contains(none.Near, "twin") {
			t.Errorf("twim: %v", err)
		}
	})
}
