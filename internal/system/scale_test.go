package system

import (
	"errors"
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
)

// Ten thousand hosts: brought up, and the table of all nodes read by one of them.
func TestTenThousandHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts, switches = 100 * 100, 100 + 20
		h := build(t, "two-level:leafs=100,spines=20,hosts=100", sim.Config{})
		h.serve(h.sub, port.RMPPKernel)
		c := h.admin(h.port("h9999"), sa.Config{RMPP: port.RMPPUser})
		types := map[mad.NodeType]int{}
		guids := map[mad.GUID]bool{}
		lids := map[mad.LID]bool{}
		for rec, err := range sa.Table(t.Context(), c, sa.Query[mad.NodeRecord]{}) {
			h.must(err)
			types[rec.NodeInfo.NodeType]++
			guids[rec.NodeInfo.PortGUID] = true
			lids[rec.LID] = true
		}
		if types[mad.NodeTypeCA] != hosts || types[mad.NodeTypeSwitch] != switches || len(guids) != hosts+switches || len(lids) != hosts+switches {
			t.Errorf("nodes %v with %d GUIDs and %d LIDs, want %d hosts and %d switches", types, len(guids), len(lids), hosts, switches)
		}
		// What the table says is at the last LID is there.
		info, err := smp.Get[mad.NodeInfo](t.Context(), h.smps(h.port("h9999"), smp.Config{}), byLID(h.sub.TopLID()), 0)
		if err != nil || !lids[h.sub.TopLID()] || !guids[info.PortGUID] {
			t.Errorf("LID %v: %+v, %v", h.sub.TopLID(), info, err)
		}
	})
}

// Whatever is closed first, with all kinds of requests in flight on bad links:
// each request ends with what says why, at once, and no goroutine stays behind,
// for which the bubble would panic.
func TestCloseInAnyOrder(t *testing.T) {
	type closers struct{ fabric, server, device, clients func() }
	for _, tt := range []struct {
		name  string
		close func(c closers)
		want  error
	}{
		{"clients first", func(c closers) { c.clients(); c.server(); c.device(); c.fabric() }, port.ErrClosed},
		{"device first", func(c closers) { c.device(); c.clients(); c.fabric(); c.server() }, port.ErrGone},
		{"fabric first", func(c closers) { c.fabric(); c.clients(); c.device(); c.server() }, port.ErrGone},
		{"server first", func(c closers) { c.server(); c.fabric(); c.device(); c.clients() }, port.ErrGone},
	} {
		for _, mode := range rmppModes {
			t.Run(tt.name+", "+mode.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := build(t, fatTree, sim.Config{Seed: 1, Faults: sim.Faults{Loss: 0.05, Duplicate: 0.05, Reorder: 0.05, Delay: 10 * time.Millisecond}})
					server := h.serve(h.sub, mode.mode)
					src := h.port(fatSource)
					dev := h.device(src)
					admin := h.admin(src, sa.Config{RMPP: mode.mode, Timeout: time.Hour})
					smps := h.smps(src, smp.Config{Timeout: time.Hour})
					conn, pinger := h.pingAgent(fatSource, pingRegistration(mode.mode))
					h.ponger("h500", mode.mode, 0)
					var asking sync.WaitGroup
					failed := func(what string, err error) {
						if !errors.Is(err, tt.want) {
							t.Errorf("%s: %v, want %v", what, err, tt.want)
						}
					}
					asking.Go(func() {
						_, err := collect(admin.Paths(t.Context(), sa.PathQuery{}))
						failed("table", err)
					})
					for lid := range mad.LID(100) {
						asking.Go(func() {
							_, err := smp.Get[mad.NodeInfo](t.Context(), smps, byLID(300+lid), 0)
							failed("SMP", err)
						})
						asking.Go(func() {
							to := mad.AddressVector{LID: h.port("h500").LID, QPN: mad.QPGSI}
							_, err := pinger.Do(t.Context(), &agents.Request{Addr: to, Data: ping(int(lid)), Timeout: time.Hour})
							failed("ping", err)
						})
					}
					time.Sleep(35 * time.Millisecond) // on the way, on links and in transfers
					begin := time.Now()
					tt.close(closers{
						fabric:  func() { h.must(h.fabric.Close()) },
						server:  func() { h.must(server.Close()) },
						device:  func() { h.must(dev.Close()) },
						clients: func() { h.must(errors.Join(admin.Close(), smps.Close(), conn.Close())) },
					})
					asking.Wait()
					if took := time.Since(begin); took != 0 {
						t.Errorf("closing took %v", took)
					}
				})
			})
		}
	}
}
