package sa

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/mad"
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
