package sa

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/topo"
)

func collect[T any](seq func(func(T, error) bool)) (all []T, err error) {
	for rec, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, rec)
	}
	return all, nil
}

// What configs/demo.yaml says of h1 to h2: EDR, 4096 bytes.
func TestGetPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		r.serve(t)
		c := r.client(t, "h1", Config{})
		rec, err := Get(t.Context(), c, Match(mad.PathRecord{SGID: r.gid("h1"), DGID: r.gid("h2")}, "SGID", "DGID"))
		if err != nil {
			t.Fatal(err)
		}
		if rec.SLID != r.port("h1").LID || rec.DLID != r.port("h2").LID || rec.MTU != mad.MTU4096 || rec.Rate != mad.Rate100G {
			t.Errorf("got %+v", rec)
		}
		info, err := Get(t.Context(), c, Query[mad.ClassPortInfo]{})
		if err != nil || info.ClassVersion != 2 {
			t.Errorf("ClassPortInfo %+v, %v", info, err)
		}
	})
}

// The paths from one host to all, in both RMPP modes at both ends, with the least
// MTU and rate of the links that a walk along the forwarding tables crosses; also
// where links lose 5 % of all MADs, double some and change their order.
func TestPathTable(t *testing.T) {
	const kernel, user = port.RMPPKernel, port.RMPPUser
	for _, tt := range []struct {
		name           string
		client, server port.RMPPMode
		faults         sim.Faults
		transfer       time.Duration
	}{
		{"kernel", kernel, kernel, sim.Faults{}, 0},
		{"user", user, user, sim.Faults{}, 0},
		// A lost segment costs 2 s; a kernel gives a transfer 40 s.
		{"kernel, bad links", kernel, user, sim.Faults{Loss: 0.05, Duplicate: 0.05, Reorder: 0.05}, 40 * time.Second},
		{"user, bad links", user, kernel, sim.Faults{Loss: 0.05, Duplicate: 0.05, Reorder: 0.05}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sub, err := topo.Generate("two-level:leafs=36,spines=18,hosts=18")
				r := newRig(t, sub, err)
				if err := r.fabric.SetAllFaults(tt.faults); err != nil {
					t.Fatal(err)
				}
				r.serveBy(t, tt.server)
				ends := slices.Collect(r.sub.EndPorts())
				src := ends[333]
				c := r.client(t, src.Node.Name, Config{RMPP: tt.client, Retries: 5, Transfer: tt.transfer})
				recs, err := collect(c.Paths(t.Context(), PathQuery{}))
				if err != nil || len(recs) != 702 {
					t.Fatalf("%d paths, %v; want 648 hosts and 54 switches", len(recs), err)
				}
				for i, rec := range recs {
					hops, err := r.sub.Walk(src, rec.DLID)
					if err != nil {
						t.Fatal(err)
					}
					mtu, rate := src.MTU, src.Rate()
					for _, h := range hops {
						mtu = min(mtu, h.MTU)
						if h.Rate().Compare(rate) < 0 {
							rate = h.Rate()
						}
					}
					if rec.DGID != ends[i].GID(r.sub.GIDPrefix) || rec.DLID != ends[i].LID || rec.SLID != src.LID || rec.MTU != mtu || rec.Rate != rate {
						t.Fatalf("path %d: %+v, want MTU %v and rate %v to %v", i, rec, mtu, rate, ends[i])
					}
				}
			})
		})
	}
}

func TestEmptyTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		r.serve(t)
		c := r.client(t, "h1", Config{})
		q := Match(mad.NodeRecord{LID: 0x700}, "LID")
		if recs, err := collect(Table(t.Context(), c, q)); err != nil || len(recs) != 0 {
			t.Errorf("Table: %v, %v; want nothing", recs, err)
		}
		_, err := Get(t.Context(), c, q)
		if !errors.Is(err, ErrNoRecords) {
			t.Errorf("Get: %v, want ErrNoRecords", err)
		}
		if _, err = Get(t.Context(), c, Query[mad.NodeRecord]{}); !errors.Is(err, ErrTooMany) {
			t.Errorf("Get of all: %v, want ErrTooMany", err)
		}
	})
}

// A sequence that is left early, and one that is read twice.
func TestTableSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		r.serve(t)
		seq := Table(t.Context(), r.client(t, "h1", Config{}), Query[mad.NodeRecord]{})
		for rec, err := range seq {
			if err != nil || rec.LID == 0 {
				t.Errorf("%+v, %v", rec, err)
			}
			break
		}
		if recs, err := collect(seq); err != nil || len(recs) != 10 {
			t.Errorf("%d nodes, %v; want 10", len(recs), err)
		}
	})
}

func TestSilence(t *testing.T) {
	for _, tt := range []struct {
		name   string
		cfg    Config
		method mad.Method
		want   time.Duration
	}{
		{"defaults", Config{}, mad.MethodGet, 3 * time.Second},
		{"own values", Config{Timeout: 200 * time.Millisecond, Retries: 4}, mad.MethodGet, time.Second},
		{"once", Config{Retries: -1}, mad.MethodGet, time.Second},
		{"table, user RMPP", Config{RMPP: port.RMPPUser}, mad.MethodGetTable, 3 * time.Second},
		{"table, kernel RMPP", Config{Transfer: 4 * time.Second}, mad.MethodGetTable, 15 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newDemo(t)
				asked := 0
				r.script(t, func(n int, _ []byte) [][]byte { asked = n; return nil })
				c := r.client(t, "h2", tt.cfg)
				begin := time.Now()
				var err error
				if tt.method == mad.MethodGet {
					_, err = Get(t.Context(), c, Query[mad.ClassPortInfo]{})
				} else {
					_, err = collect(Table(t.Context(), c, Query[mad.NodeRecord]{}))
				}
				if took := time.Since(begin); took != tt.want {
					t.Errorf("gave up after %v, want %v", took, tt.want)
				}
				if !errors.Is(err, agents.ErrTimeout) || !strings.Contains(err.Error(), "LID 1") {
					t.Errorf("error %v, want a time-out that says of whom", err)
				}
				synctest.Wait()
				if want := c.cfg.Retries + 1; asked != want {
					t.Errorf("asked %d times, want %d", asked, want)
				}
			})
		})
	}
}

func TestBusy(t *testing.T) {
	for _, tt := range []struct {
		busy  int // answers
		tries int
		want  time.Duration // 1/8 s, and twice as much each time
		err   error
	}{
		{0, 1, 0, nil},
		{1, 2, 125 * time.Millisecond, nil},
		{2, 3, 375 * time.Millisecond, nil},
		{3, 3, 375 * time.Millisecond, ErrBusy},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newDemo(t)
			asked := 0
			r.script(t, func(n int, req []byte) [][]byte {
				asked = n
				if n <= tt.busy {
					return [][]byte{single(req, mad.StatusBusy, 0)}
				}
				return [][]byte{single(req, mad.StatusOK, 9, 1, 2)}
			})
			c := r.client(t, "h2", Config{})
			begin := time.Now()
			info, err := Get(t.Context(), c, Query[mad.ClassPortInfo]{})
			if took := time.Since(begin); !errors.Is(err, tt.err) || took != tt.want || asked != tt.tries {
				t.Errorf("busy %d times: %v after %v and %d tries, want %v after %v and %d", tt.busy, err, took, asked, tt.err, tt.want, tt.tries)
			}
			if tt.err == nil && info.ClassVersion != 2 {
				t.Errorf("busy %d times: %+v", tt.busy, info)
			}
		})
	}
}

func TestBusyJitter(t *testing.T) {
	for range 100 {
		if d := randomPart(time.Second); d < 0 || d > time.Second {
			t.Fatalf("a part of 1 s: %v", d)
		}
	}
}

func TestCancelWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		r.script(t, func(_ int, req []byte) [][]byte { return [][]byte{single(req, mad.StatusBusy, 0)} })
		c := r.client(t, "h2", Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begin := time.Now()
		_, err := Get(ctx, c, Query[mad.ClassPortInfo]{})
		if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || took != 100*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// Answers that make no sense, or say no.
func TestBadAnswers(t *testing.T) {
	var asStatus *StatusError
	var asMalformed *MalformedError
	var asAbort *rmpp.AbortError
	row := paths(1)
	tests := []struct {
		name  string
		table bool
		reply func(req []byte) [][]byte
		as    any    // target of errors.As
		is    error  // target of errors.Is, or nil
		text  string // in the message
	}{
		{"unsupported", false, func(req []byte) [][]byte { return [][]byte{single(req, mad.StatusBadAttribute, 0)} },
			&asStatus, ErrUnsupported, "Get PathRecord: status 0x000c"},
		{"denied", true, func(req []byte) [][]byte { return [][]byte{single(req, mad.StatusSARequestDenied, 0)} },
			&asStatus, nil, "GetTable PathRecord: status 0x0700 (SA: request denied)"},
		{"redirect", false, func(req []byte) [][]byte {
			data, _ := (&mad.ClassPortInfo{RedirectLID: 77}).AppendBinary(nil)
			return [][]byte{single(req, mad.StatusRedirect, 0, data...)}
		}, &asStatus, ErrRedirect, "ask LID 77"},
		{"wrong method", false, func(req []byte) [][]byte {
			b := single(req, mad.StatusOK, 8, row...)
			b[mad.OffMethod] = byte(mad.MethodDeleteResp)
			return [][]byte{b}
		}, &asMalformed, nil, "malformed answer for PathRecord: method DeleteResp does not answer Get"},
		{"wrong class version", false, func(req []byte) [][]byte {
			b := single(req, mad.StatusOK, 8, row...)
			b[mad.OffClassVersion] = 1
			return [][]byte{b}
		}, &asMalformed, nil, "malformed answer for PathRecord: class version 1 does not answer 2"},
		{"wrong class version of a table", true, func(req []byte) [][]byte {
			b := table(req, 8, paths(2))
			b[mad.OffClassVersion] = 3
			return [][]byte{b}
		}, &asMalformed, nil, "malformed answer for PathRecord: class version 3 does not answer 2"},
		{"wrong class version, busy", true, func(req []byte) [][]byte {
			b := single(req, mad.StatusBusy, 8)
			b[mad.OffClassVersion] = 1
			return [][]byte{b}
		}, &asMalformed, nil, "class version 1 does not answer 2"},
		{"an SA of another class version", true, func(req []byte) [][]byte {
			b := single(req, mad.StatusBadVersion, 0)
			b[mad.OffClassVersion] = 1
			return [][]byte{b}
		}, &asStatus, ErrUnsupported, "GetTable PathRecord: status 0x0004"},
		{"segment of no transfer", true, func(req []byte) [][]byte {
			b := table(req, 8, paths(2))
			b[mad.OffRMPP+2] = first
			return [][]byte{b}
		}, &asMalformed, nil, "malformed answer for PathRecord: RMPP flags 0x2"},
		{"no record", false, func(req []byte) [][]byte { return [][]byte{table(req, 8, nil)} },
			&asMalformed, nil, "malformed answer for PathRecord: 0 bytes, but one record has 64"},
		{"half a record", false, func(req []byte) [][]byte { return [][]byte{table(req, 8, row[:32])} },
			&asMalformed, nil, "malformed answer for PathRecord (AttributeOffset 64 bytes, 32 bytes of records): 32 bytes, but one record has 64"},
		{"offset too small", true, func(req []byte) [][]byte { return [][]byte{table(req, 7, paths(2))} },
			&asMalformed, nil, "records 56 bytes apart, but one has 64"},
		{"offset odd", true, func(req []byte) [][]byte { return [][]byte{table(req, 9, paths(2))} },
			&asMalformed, nil, "56 bytes are left"},
		{"offset huge", true, func(req []byte) [][]byte { return [][]byte{table(req, 0xffff, paths(2))} },
			&asMalformed, nil, "AttributeOffset 524280 bytes, 128 bytes of records"},
		{"offset 0, two records", true, func(req []byte) [][]byte { return [][]byte{table(req, 0, paths(2))} },
			&asMalformed, nil, "more than one record"},
		{"truncated record", true, func(req []byte) [][]byte { return [][]byte{table(req, 8, paths(2)[:100])} },
			&asMalformed, nil, "36 bytes are left"},
		{"abort half way", true, func(req []byte) [][]byte {
			return [][]byte{packet(req, 8, active|first, 1, 660, paths(4)), abort(req, mad.RMPPStatusResourcesExhausted)}
		}, &asAbort, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newDemo(t)
				r.script(t, func(_ int, req []byte) [][]byte { return tt.reply(req) })
				c := r.client(t, "h2", Config{RMPP: port.RMPPUser})
				var err error
				if tt.table {
					_, err = collect(Table(t.Context(), c, Query[mad.PathRecord]{}))
				} else {
					_, err = Get(t.Context(), c, Query[mad.PathRecord]{})
				}
				if !errors.As(err, tt.as) {
					t.Fatalf("error %v (%T), want a %T", err, err, tt.as)
				}
				if tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), "LID 1") {
					t.Errorf("error %q, want %q, and of whom", err, tt.text)
				}
			})
		})
	}
}

// Answers that are odd, but can be read.
func TestOddAnswers(t *testing.T) {
	longer := slices.Concat(paths(1), []byte{1, 2, 3, 4, 5, 6, 7, 8}, paths(1), []byte{8, 7, 6, 5, 4, 3, 2, 1})
	tests := []struct {
		name  string
		reply func(req []byte) []byte
		want  int
	}{
		{"offset 0, one record", func(req []byte) []byte { return table(req, 0, paths(1)) }, 1},
		{"offset 0, no record", func(req []byte) []byte { return table(req, 0, nil) }, 0},
		{"a longer structure", func(req []byte) []byte { return table(req, 9, longer) }, 2},
		{"offset huge, one record", func(req []byte) []byte { return table(req, 0xffff, paths(1)) }, 1},
		{"padding behind", func(req []byte) []byte { return table(req, 8, append(paths(2), make([]byte, 60)...)) }, 2},
		{"status for no records", func(req []byte) []byte { return single(req, mad.StatusSANoRecords, 0) }, 0},
		{"without RMPP", func(req []byte) []byte { return single(req, mad.StatusOK, 8, paths(2)...) }, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newDemo(t)
				r.script(t, func(_ int, req []byte) [][]byte { return [][]byte{tt.reply(req)} })
				recs, err := collect(Table(t.Context(), r.client(t, "h2", Config{RMPP: port.RMPPUser}), Query[mad.PathRecord]{}))
				if err != nil || len(recs) != tt.want {
					t.Errorf("%d records, %v; want %d", len(recs), err, tt.want)
				}
			})
		})
	}
}

// An answer to another transaction is not taken, nor one for another attribute,
// after which the query is sent again.
func TestForeignAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		asked := 0
		r.script(t, func(n int, req []byte) [][]byte {
			asked = n
			attribute, tid := single(req, mad.StatusOK, 9, 1, 9), single(req, mad.StatusOK, 9, 1, 9)
			attribute[mad.OffAttribute+1] ^= 0x10
			tid[mad.OffTID+7] ^= 1
			if n == 1 {
				return [][]byte{attribute}
			}
			return [][]byte{tid, single(req, mad.StatusOK, 9, 1, 2)}
		})
		info, err := Get(t.Context(), r.client(t, "h2", Config{}), Query[mad.ClassPortInfo]{})
		if err != nil || info.ClassVersion != 2 || asked != 2 {
			t.Errorf("%+v, %v after %d tries", info, err, asked)
		}
	})
}

func TestAddress(t *testing.T) {
	r := newDemo(t)
	for _, tt := range []struct {
		name string
		cfg  Config
		want mad.AddressVector
		err  string
	}{
		{"of the port", Config{}, mad.AddressVector{LID: 1, QPN: 1}, ""},
		{"override", Config{SA: &mad.AddressVector{LID: 4, SL: 3}}, mad.AddressVector{LID: 4, QPN: 1, SL: 3}, ""},
		{"LID 0", Config{SA: &mad.AddressVector{}}, mad.AddressVector{}, "LID cannot be 0"},
		{"LID 0 with a GID", Config{SA: &mad.AddressVector{HasGRH: true}}, mad.AddressVector{}, "LID cannot be 0"}, // InfiniBand goes by LID
		{"multicast", Config{SA: &mad.AddressVector{LID: 0xc000}}, mad.AddressVector{}, "LID cannot be 49152"},
		{"partition", Config{PKey: 0x0001}, mad.AddressVector{LID: 1, QPN: 1, PKeyIndex: 1}, ""},
		{"partition it is not in", Config{PKey: 0x8005}, mad.AddressVector{}, "not in it, its P_Keys are [0xffff 0x8001]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := r.client(t, "h2", tt.cfg).address()
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("%+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

// The address of an SA from an Ethernet port (RoCE), with the GID table of an
// adapter that has each address by RoCE v1 and by v2.
func TestAddressOnEthernet(t *testing.T) {
	info := port.Info{Device: "mlx5_0", Port: 1, LinkLayer: port.LinkEthernet, PKeys: []mad.PKey{0xffff}, GIDs: []mad.GID{
		gid(t, "fe80::1"), gid(t, "fe80::1"), gid(t, "::ffff:192.0.2.1"), {}, gid(t, "fd00::1"), gid(t, "fd00::1"), gid(t, "2001:db8::1")}}
	r := newDemo(t)
	byGID := func(s string, index uint8) mad.AddressVector {
		return mad.AddressVector{QPN: 1, HasGRH: true, GRH: mad.GRH{GID: gid(t, s), GIDIndex: index, HopLimit: 64}}
	}
	for _, tt := range []struct {
		gid  string
		gids []mad.GID // nil: those of info
		want uint8
		err  string
	}{
		{"fd00::2", nil, 5, ""},
		{"fe80::2", nil, 1, ""},
		{"2001:db8::2", nil, 6, ""},
		{"2001:db8:1::2", nil, 6, ""}, // behind a router
		{"2001:db8:1::2", info.GIDs[:3], 0, "find a source for 2001:db8:1::2 on mlx5_0/1: the port has no IPv6 GID that leads there"},
		{"::ffff:192.0.2.2", nil, 0, "it is an IPv4 address"},
	} {
		info := info
		if tt.gids != nil {
			info.GIDs = tt.gids
		}
		got, err := AddressByGID(info, gid(t, tt.gid))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: error %v, want %q", tt.gid, err, tt.err)
			}
			continue
		}
		want := byGID(tt.gid, tt.want)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", tt.gid, got, err, want)
		}
		c, err := NewClient(&infoDevice{r.device(t, r.port("h2")), info}, Config{SA: &got})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if to, err := c.address(); err != nil || to != want {
			t.Errorf("%s: the client asks %+v, %v", tt.gid, to, err)
		}
	}
	for name, cfg := range map[string]Config{"no SA": {}, "LID": {SA: &mad.AddressVector{LID: 5}}} {
		c, err := NewClient(&infoDevice{r.device(t, r.port("h2")), info}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.address(); !errors.Is(err, ErrNoSA) || !strings.Contains(err.Error(), "mlx5_0/1 is an Ethernet port, which has no LIDs") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func gid(t *testing.T, s string) mad.GID {
	t.Helper()
	g, err := mad.ParseGID(s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// infoDevice is a device that tells of itself what it is given.
type infoDevice struct {
	port.Device
	info port.Info
}

func (d *infoDevice) Info() (port.Info, error) { return d.info, nil }

// movingSM is a device whose first answer names another SM than later ones.
type movingSM struct {
	port.Device
	asked int
	first mad.LID
}

func (d *movingSM) Info() (port.Info, error) {
	info, err := d.Device.Info()
	if d.asked++; d.asked == 1 {
		info.SMLID = d.first
	}
	return info, err
}

// After a time-out the SA is looked for anew.
func TestSMMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		r.serve(t)
		c, err := NewClient(&movingSM{Device: r.device(t, r.port("h2")), first: r.port("h4").LID}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		begin := time.Now()
		if _, err := Get(t.Context(), c, Query[mad.ClassPortInfo]{}); err != nil || time.Since(begin) != time.Second {
			t.Errorf("%v after %v, want an answer after one time-out of 1 s", err, time.Since(begin))
		}
	})
}

// A port that no subnet manager has set up.
func TestNoSA(t *testing.T) {
	sub, err := topo.Parse("apart.yaml", []byte(`
nodes: [{name: a, kind: ca}, {name: b, kind: ca}, {name: c, kind: ca}, {name: d, kind: ca}]
links: ["a[1] - b[1]", "c[1] - d[1]"]
`))
	r := newRig(t, sub, err)
	_, err = Get(t.Context(), r.client(t, "c", Config{}), Query[mad.ClassPortInfo]{})
	if !errors.Is(err, ErrNoSA) || !strings.Contains(err.Error(), "c/1 is Initialize") {
		t.Errorf("error %v", err)
	}
}

// A type that no SA has records of.
func TestNoRecordType(t *testing.T) {
	r := newDemo(t)
	if _, err := Get(t.Context(), r.client(t, "h2", Config{}), Query[mad.PortInfo]{}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("PortInfo: %v", err)
	}
}

func TestMask(t *testing.T) {
	tests := []struct {
		fields []string
		want   uint64 // ib_types.h, IB_PR_COMPMASK_*
	}{
		{nil, 0},
		{[]string{"ServiceID"}, 3}, // two bits
		{[]string{"DGID", "SGID"}, 1<<2 | 1<<3},
		{[]string{"P_Key", "Preference"}, 1<<13 | 1<<22},
	}
	for _, tt := range tests {
		if got, err := Mask((*mad.PathRecord)(nil).Layout(), tt.fields...); err != nil || got != tt.want {
			t.Errorf("%v: %#x, %v; want %#x", tt.fields, got, err, tt.want)
		}
	}
	if got, err := Mask((*mad.NodeRecord)(nil).Layout(), "NodeGUID", "NodeDescription.NodeString"); err != nil || got != 1<<7|1<<14 {
		t.Errorf("NodeRecord: %#x, %v", got, err)
	}
	_, err := Mask((*mad.PathRecord)(nil).Layout(), "SGIT")
	if err == nil || !strings.Contains(err.Error(), "SGID") {
		t.Errorf("SGIT: %v, want what is near", err)
	}
}

// In user mode records come as their segments do, whatever becomes of the rest.
func TestTableStreams(t *testing.T) {
	for _, mode := range []port.RMPPMode{port.RMPPUser, port.RMPPKernel} {
		synctest.Test(t, func(t *testing.T) {
			r := newDemo(t)
			r.script(t, func(_ int, req []byte) [][]byte {
				return [][]byte{packet(req, 8, active|first, 1, 660, paths(4)[:200]), packet(req, 8, active, 2, 0, paths(8)[200:400])}
			})
			c := r.client(t, "h2", Config{RMPP: mode, Retries: -1})
			start := time.Now()
			var got []mad.PathRecord
			var firstAt time.Duration
			var last error
			for rec, err := range Table(t.Context(), c, Query[mad.PathRecord]{}) {
				if err != nil {
					last = err
					break
				}
				if len(got) == 0 {
					firstAt = time.Since(start)
				}
				got = append(got, rec)
			}
			// In user mode 8 s after the last segment, otherwise as if nothing had come:
			// after 1 s for the answer and 10 s for the transfer.
			after := map[port.RMPPMode]time.Duration{port.RMPPUser: 8 * time.Second, port.RMPPKernel: 11 * time.Second}[mode]
			if took := time.Since(start); !errors.Is(last, agents.ErrTimeout) || took != after {
				t.Errorf("mode %d: the sequence ends with %v after %v, want a time-out after %v", mode, last, took, after)
			}
			// 400 bytes are 6 records of 64; the rest of the seventh never comes.
			want := map[port.RMPPMode]int{port.RMPPUser: 6}[mode]
			if len(got) != want || firstAt != 0 {
				t.Errorf("mode %d: %d records, the first after %v; want %d at once", mode, len(got), firstAt, want)
			}
		})
	}
}
