package sim

import (
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/topo"
)

// TestReboot: a host comes back as one that no SM has found yet: in Init, without a
// LID, with the default P_Key alone (IBA 10.9). A sweep puts it back.
func TestReboot(t *testing.T) {
	manage(t, Config{}, func(m *manager) {
		h5 := m.open("h5")
		before, err := h5.Info()
		if err != nil || len(before.PKeys) != 2 {
			t.Fatal(before, err)
		}
		route := mad.MustParseAddr("0,1,11,1")
		info := m.get(route, 1)
		m.mustSet(route, 1, func(i *mad.PortInfo) { i.MKey, i.SubnetTimeOut = 5, 3 })
		if err := m.fab.Reboot(m.port("h5").Node); err != nil {
			t.Fatal(err)
		}
		want := info
		want.PortState, want.LID, want.MasterSMLID, want.SubnetTimeOut = mad.PortStateInit, 0, 0, 0
		if got := m.get(route, 1); got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if got := states(m.get(mad.MustParseAddr("0,1,11"), 1)); got != "Initialize/LinkUp" {
			t.Errorf("the far end is %s", got)
		}
		after, err := h5.Info()
		if err != nil || after.LID != 0 || after.State != mad.PortStateInit || len(after.PKeys) != 1 || after.PKeys[0] != mad.DefaultPKey {
			t.Errorf("info %+v, %v", after, err)
		}
		if m.send("h2", gmp(5, mad.DefaultPKey)); m.dropped(m.events()) != LinkDown {
			t.Errorf("%v", m.events())
		}
		m.fab.Sweep()
		if got := m.get(route, 1); got != info {
			t.Errorf("after the sweep %+v\nwant %+v", got, info)
		}
		h5.reset()
		if m.send("h2", gmp(5, mad.DefaultPKey)); len(h5.got()) != 1 {
			t.Errorf("after the sweep: %v", m.events())
		}
		if swept, err := h5.Info(); err != nil || !sameInfo(swept, before) {
			t.Errorf("after the sweep %+v, %v; want %+v", swept, err, before)
		}
	})
}

func sameInfo(a, b port.Info) bool {
	return a.LID == b.LID && a.State == b.State && a.SMLID == b.SMLID && len(a.PKeys) == len(b.PKeys)
}

// A switch loses its forwarding table too, and all its links with it.
func TestRebootSwitch(t *testing.T) {
	manage(t, Config{}, func(m *manager) {
		if err := m.fab.Reboot(m.port("s2").Node); err != nil {
			t.Fatal(err)
		}
		table, err := smp.Get[mad.LinearForwardingTable](m.t.Context(), m.client, toS2, 0)
		if err != nil || table.Port[8] != topo.NoRoute || table.Port[10] != topo.NoRoute {
			t.Errorf("table %v, %v", table, err)
		}
		for port, want := range map[uint32]string{0: "Active/LinkUp", 4: "Initialize/LinkUp", 5: "Down/Polling", 12: "Initialize/LinkUp"} {
			if got := m.get(toS2, port); states(got) != want || got.LID != 0 {
				t.Errorf("port %d is %s with LID %v, want %s with none", port, states(got), got.LID, want)
			}
		}
		if m.ask("h2", byLID(10, mad.AttrNodeInfo, 0)) != nil {
			t.Error("it answers at its old LID")
		}
		m.fab.Sweep()
		m.must("h2", byLID(10, mad.AttrNodeInfo, 0))
		m.must("h2", byLID(8, mad.AttrNodeInfo, 0))
	})
}

// TestSweep: what an SM cannot put right stays: links that are cut or disabled.
func TestSweep(t *testing.T) {
	manage(t, Config{}, func(m *manager) {
		m.mustSet(toS2, 4, func(i *mad.PortInfo) { i.PortPhysicalState = mad.PortPhysStateDisabled })
		if err := m.fab.Cut(m.port("h7")); err != nil {
			t.Fatal(err)
		}
		if err := m.fab.SetLFT(m.port("s1").Node, 3, 9); err != nil {
			t.Fatal(err)
		}
		m.fab.Sweep()
		for port, want := range map[uint32]string{3: "Down/Polling", 4: "Down/Disabled"} {
			if got := states(m.get(toS2, port)); got != want {
				t.Errorf("port %d is %s, want %s", port, got, want)
			}
		}
		m.must("h2", byLID(3, mad.AttrNodeInfo, 0))
	})
	other, err := topo.Generate("demo")
	if err != nil {
		t.Fatal(err)
	}
	inBubble(t, Config{}, func(r *rig) {
		if err := r.fab.Reboot(other.Nodes[0]); err == nil || !strings.Contains(err.Error(), "not of this fabric") {
			t.Errorf("node of another fabric: %v", err)
		}
	})
}
