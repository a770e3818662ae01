package system

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/topo"
)

const (
	fatTree     = "two-level:leafs=36,spines=18,hosts=18"
	fatHosts    = 36 * 18
	fatSwitches = 36 + 18
	// fatSource has an HDR link and is not at the leaf of the SM, so that its
	// paths are of every kind and its queries cross a spine.
	fatSource = "h101"
)

// arrival is what a MAD to a LID met.
type arrival struct {
	info mad.NodeInfo // of the port that answered
	mtu  mad.MTU      // the lowest on the way
	rate mad.Rate     // the lowest on the way
}

// arrivals sends a SubnGet to each LID, all at once, and reads from the hop log
// what they met. The way from a port to itself has no link: there the port's own
// PortInfo counts.
func (h *house) arrivals(log *hopLog, src *topo.Port, lids []mad.LID) map[mad.LID]arrival {
	h.t.Helper()
	c := h.smps(src, smp.Config{Retries: 40})
	found := map[mad.LID]arrival{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, lid := range lids {
		asking.Go(func() {
			info, err := smp.Get[mad.NodeInfo](h.t.Context(), c, byLID(lid), 0)
			if err != nil {
				h.t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			found[lid] = arrival{info: info}
		})
	}
	asking.Wait()
	synctest.Wait()
	for lid, a := range found {
		hops, err := log.way(src, lid)
		if err != nil {
			h.t.Error(err)
			continue
		}
		if len(hops) == 0 {
			own, err := smp.Get[mad.PortInfo](h.t.Context(), c, byLID(lid), 0)
			h.must(err)
			a.mtu, a.rate = own.NeighborMTU, own.Rate()
		}
		for i, hop := range hops {
			if rate := mad.RateOf(hop.Width, hop.Speed); i == 0 || rate.Compare(a.rate) < 0 {
				a.rate = rate
			}
			if i == 0 || hop.MTU < a.mtu {
				a.mtu = hop.MTU
			}
		}
		found[lid] = a
	}
	return found
}

func byLID(lid mad.LID) mad.Addr { return mad.Addr{Kind: mad.AddrLID, LID: lid} }

// checkPaths compares the paths from a port with what MADs to their DLIDs met.
func checkPaths(recs []mad.PathRecord, src port.Info, met map[mad.LID]arrival) error {
	var errs []error
	seen := map[mad.GID]bool{}
	for i, rec := range recs {
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("path %d, to %v at LID %v: %s", i, rec.DGID, rec.DLID, fmt.Sprintf(format, args...)))
		}
		if seen[rec.DGID] {
			bad("is there twice")
		}
		seen[rec.DGID] = true
		if rec.SGID != src.GIDs[0] || rec.SLID != src.LID {
			bad("from %v at LID %v, want the own port", rec.SGID, rec.SLID)
		}
		a, ok := met[rec.DLID]
		switch {
		case !ok:
			bad("no MAD has arrived there")
			continue
		case a.info.PortGUID != rec.DGID.GUID():
			bad("port %v answers there", a.info.PortGUID)
		}
		if rec.MTU != a.mtu {
			bad("MTU %v, but the way carries %v", rec.MTU, a.mtu)
		}
		if rec.Rate.Compare(a.rate) != 0 {
			bad("rate %v, but the way carries %v", rec.Rate, a.rate)
		}
	}
	return errors.Join(errs...)
}

func dlids(recs []mad.PathRecord) []mad.LID {
	var lids []mad.LID
	for _, rec := range recs {
		lids = append(lids, rec.DLID)
	}
	slices.Sort(lids)
	return slices.Compact(lids)
}

var rmppModes = []struct {
	name string
	mode port.RMPPMode
}{{"kernel", port.RMPPKernel}, {"user", port.RMPPUser}}

// The paths from one host to all: one to each port, itself included, and each as
// good as what real MADs meet on the way.
func TestPathTable(t *testing.T) {
	var first []mad.PathRecord
	for _, client := range rmppModes {
		for _, server := range rmppModes {
			t.Run(client.name+" client, "+server.name+" server", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					recs := checkPathTable(t, fatSource, client.mode, server.mode, sim.Config{})
					if first == nil {
						first = recs
					}
					if !slices.Equal(recs, first) {
						t.Error("the table is not that of the other modes")
					}
				})
			})
			// The client and the SA share a device, and their MADs never leave it.
			t.Run(client.name+" client, "+server.name+" server, from the host of the SA", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					checkPathTable(t, "h1", client.mode, server.mode, sim.Config{})
				})
			})
		}
	}
	faults := sim.Faults{Loss: 0.05, Duplicate: 0.05, Reorder: 0.05}
	for _, mode := range rmppModes {
		for _, seed := range []uint64{1, 2, 3} {
			t.Run(fmt.Sprintf("%s, bad links, seed %d", mode.name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					recs := checkPathTable(t, fatSource, mode.mode, mode.mode, sim.Config{Faults: faults, Seed: seed})
					if !slices.Equal(recs, first) {
						t.Error("the table is not that over good links")
					}
				})
			})
		}
	}
}

func checkPathTable(t *testing.T, source string, client, server port.RMPPMode, cfg sim.Config) []mad.PathRecord {
	log := newHopLog()
	cfg.Trace = log.add
	h := build(t, fatTree, cfg)
	h.serve(h.sub, server)
	src := h.port(source)
	admin := h.admin(src, sa.Config{RMPP: client, Retries: 20, Transfer: rmppPatience})
	recs, err := collect(admin.Paths(t.Context(), sa.PathQuery{}))
	h.must(err)
	synctest.Wait()
	if want := (702*mad.PathRecordSize + mad.SADataSize - 1) / mad.SADataSize; log.segments < want {
		t.Errorf("%d segments for %d paths, want %d", log.segments, len(recs), want)
	}

	met := h.arrivals(log, src, dlids(recs))
	if cfg.Faults == (sim.Faults{}) {
		h.sendAlong(src, recs)
	} else if s := h.fabric.Stats(); s.Dropped[sim.Lost] == 0 || s.Duplicated == 0 {
		t.Errorf("the links were good: %+v", s)
	}
	info, err := h.device(src).Info()
	h.must(err)
	if err := checkPaths(recs, info, met); err != nil {
		t.Error(err)
	}
	types := map[mad.NodeType]int{}
	kinds := map[string]int{}
	for _, rec := range recs {
		types[met[rec.DLID].info.NodeType]++
		kinds[fmt.Sprintf("MTU %d at %d Mbit/s", rec.MTU.Bytes(), rec.Rate.Mbps())]++
	}
	if len(recs) != 702 || types[mad.NodeTypeCA] != fatHosts || types[mad.NodeTypeSwitch] != fatSwitches || !slices.Contains(dlids(recs), src.LID) {
		t.Errorf("%d paths, to %v; want 702, to 648 hosts, 54 switches and itself", len(recs), types)
	}
	// What the generator promises: HDR, EDR hosts, and an EDR spine of MTU 2048.
	for _, kind := range []string{"MTU 4096 at 206250 Mbit/s", "MTU 4096 at 103125 Mbit/s", "MTU 2048 at 103125 Mbit/s"} {
		if kinds[kind] == 0 {
			t.Errorf("no path of %s: %v", kind, kinds)
		}
	}
	if len(kinds) != 3 {
		t.Errorf("paths of %v", kinds)
	}
	return recs
}

// In demo, from every port. Its links are of many kinds, and their rates have
// another order by code than by bandwidth: 56 Gb/s is 12, 25 Gb/s is 15.
func TestPathsOfDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newHopLog()
		h := build(t, "demo", sim.Config{Trace: log.add})
		h.serve(h.sub, port.RMPPKernel)
		for src := range h.sub.EndPorts() {
			recs, err := collect(h.admin(src, sa.Config{}).Paths(t.Context(), sa.PathQuery{}))
			h.must(err)
			if len(recs) != 10 {
				t.Errorf("%d paths from %s, want 10", len(recs), src)
			}
			info, err := h.device(src).Info()
			h.must(err)
			log.reset()
			if err := checkPaths(recs, info, h.arrivals(log, src, dlids(recs))); err != nil {
				t.Errorf("from %s: %v", src, err)
			}
		}
	})
}

// rmppPatience is more than a transfer may take (the kernel's 40 s).
const rmppPatience = 45 * time.Second

// sendAlong sends a GMP along each path, with all that the path says: LIDs, SL,
// P_Key and GID. Each arrives at the port of the GID, and nowhere else.
func (h *house) sendAlong(src *topo.Port, recs []mad.PathRecord) {
	h.t.Helper()
	var mu sync.Mutex
	got := map[mad.GUID][]softmad.Wire{}
	listening := 0
	for p := range h.sub.EndPorts() {
		if p == src || p == h.sub.SM {
			continue // the clients' device and the SA's have these
		}
		link, err := h.fabric.Link(p.Node, p.Num)
		h.must(err)
		defer link.Close()
		listening++
		go func() {
			var w softmad.Wire
			for link.Recv(&w) == nil {
				mu.Lock()
				got[p.GUID] = append(got[p.GUID], w)
				mu.Unlock()
			}
		}()
	}
	dev := h.device(src)
	info, err := dev.Info()
	h.must(err)
	conn, err := agents.Open(dev, agents.Config{})
	h.must(err)
	defer conn.Close()
	agent, err := conn.Register(agents.Registration{Registration: port.Registration{QPN: mad.QPGSI}})
	h.must(err)
	for i, rec := range recs {
		head := mad.Header{BaseVersion: mad.BaseVersion, MgmtClass: mad.ClassPerf, ClassVersion: 1, Method: mad.MethodGet, AttributeModifier: uint32(i)}
		msg, _ := head.AppendBinary(nil)
		h.must(agent.Send(h.t.Context(), &agents.Request{Data: msg, Addr: mad.AddressVector{
			LID: rec.DLID, QPN: mad.QPGSI, SL: rec.SL, PKeyIndex: uint16(slices.Index(info.PKeys, rec.PKey)),
			HasGRH: true, GRH: mad.GRH{GID: rec.DGID},
		}}))
	}
	synctest.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(got) != listening {
		h.t.Errorf("GMPs arrived at %d of %d ports: %v", len(got), listening, h.fabric.Stats().Dropped)
	}
	for i, rec := range recs {
		for _, w := range got[rec.DGID.GUID()] {
			var head mad.Header
			head.DecodeFrom((*[mad.HeaderSize]byte)(w.MAD[:]))
			if head.AttributeModifier != uint32(i) || w.Addr.LID != rec.SLID || w.Addr.GRH.GID != rec.SGID || w.PKey != rec.PKey {
				h.t.Errorf("along path %d, %+v, came GMP %d: %+v", i, rec, head.AttributeModifier, w.Addr)
			}
		}
		if n := len(got[rec.DGID.GUID()]); n > 1 {
			h.t.Errorf("%d GMPs arrived at %v", n, rec.DGID)
		}
	}
}

// A record that is wrong does not pass.
func TestPathCheckNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newHopLog()
		h := build(t, "two-level:leafs=2,spines=2,hosts=4", sim.Config{Trace: log.add})
		h.serve(h.sub, port.RMPPKernel)
		src := h.port("h6")
		recs, err := collect(h.admin(src, sa.Config{}).Paths(t.Context(), sa.PathQuery{}))
		h.must(err)
		met := h.arrivals(log, src, dlids(recs))
		info, err := h.device(src).Info()
		h.must(err)
		if err := checkPaths(recs, info, met); err != nil || len(recs) != 12 {
			t.Fatalf("%d paths as they are: %v", len(recs), err)
		}
		for _, tt := range []struct {
			name   string
			change func(recs []mad.PathRecord)
			want   string
		}{
			{"MTU too high", func(r []mad.PathRecord) { r[0].MTU++ }, "path 0, to fe80::200:1:0:101 at LID 1: MTU"},
			{"MTU too low", func(r []mad.PathRecord) { r[3].MTU-- }, "path 3"},
			{"rate too high", func(r []mad.PathRecord) { r[5].Rate = mad.Rate400G }, "rate 400 Gb/s, but the way carries 200 Gb/s"},
			{"rate too low", func(r []mad.PathRecord) { r[11].Rate = mad.Rate56G }, "path 11"},
			{"LID of another port", func(r []mad.PathRecord) { r[1].DLID = r[2].DLID }, "answers there"},
			{"LID of nobody", func(r []mad.PathRecord) { r[1].DLID = 99 }, "no MAD has arrived"},
			{"GID of another port", func(r []mad.PathRecord) { r[1].DGID = r[2].DGID }, "twice"},
			{"from another LID", func(r []mad.PathRecord) { r[7].SLID++ }, "want the own port"},
			{"from another GID", func(r []mad.PathRecord) { r[7].SGID[15]++ }, "want the own port"},
		} {
			wrong := slices.Clone(recs)
			tt.change(wrong)
			if err := checkPaths(wrong, info, met); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
			}
		}
	})
}

// An SA whose model differs from the fabric in one link is found out, and so is
// one that does not know a node's route.
func TestPathCheckFindsALiar(t *testing.T) {
	for _, tt := range []struct {
		name string
		lie  func(sub *topo.Subnet, h8 *topo.Port)
		want string
	}{
		{"MTU", func(_ *topo.Subnet, h8 *topo.Port) { h8.MTU, h8.Peer.MTU = mad.MTU1024, mad.MTU1024 }, "MTU 1024, but the way carries 2048"},
		{"rate", func(_ *topo.Subnet, h8 *topo.Port) { h8.Width, h8.Peer.Width = mad.LinkWidth1X, mad.LinkWidth1X }, "rate 25 Gb/s, but the way carries 100 Gb/s"},
		{"LIDs", func(sub *topo.Subnet, h8 *topo.Port) {
			h7, _ := sub.PortByName("h7")
			h7.GUID, h8.GUID = h8.GUID, h7.GUID
		}, "answers there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const spec = "two-level:leafs=2,spines=2,hosts=4"
				log := newHopLog()
				h := build(t, spec, sim.Config{Trace: log.add})
				model := generate(t, spec)
				h.must(model.BringUp())
				h8, _ := model.PortByName("h8")
				tt.lie(model, h8)
				h.serve(model, port.RMPPKernel)
				src := h.port("h1")
				recs, err := collect(h.admin(src, sa.Config{}).Paths(t.Context(), sa.PathQuery{}))
				h.must(err)
				info, err := h.device(src).Info()
				h.must(err)
				err = checkPaths(recs, info, h.arrivals(log, src, dlids(recs)))
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			})
		})
	}
}
