package sim

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/smp"
)

// manager asks the agents of the demo fabric from h1, along directed routes and by
// LID. The link that most tests are about is that of h8 at s2[4].
type manager struct {
	*rig
	client *smp.Client
}

var (
	toH8     = mad.MustParseAddr("0,1,12,4")
	toS2     = mad.MustParseAddr("0,1,12")
	toS2ByID = mad.MustParseAddr("10")
)

func manage(t *testing.T, cfg Config, test func(m *manager)) {
	inBubble(t, cfg, func(r *rig) {
		dev, err := r.fab.Device(r.port("h1").Node, 1)
		if err != nil {
			t.Fatal(err)
		}
		client, err := smp.NewClient(dev, smp.Config{Retries: -1, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		test(&manager{r, client})
	})
}

func (m *manager) get(to mad.Addr, port uint32) mad.PortInfo {
	m.t.Helper()
	info, err := smp.Get[mad.PortInfo](m.t.Context(), m.client, to, port)
	if err != nil {
		m.t.Fatal(err)
	}
	return info
}

// set changes a PortInfo as ibportstate does: both states are no change unless the
// change says so.
func (m *manager) set(to mad.Addr, port uint32, change func(*mad.PortInfo)) (mad.PortInfo, error) {
	m.t.Helper()
	info := m.get(to, port)
	info.PortState, info.PortPhysicalState = 0, 0
	change(&info)
	return smp.Set(m.t.Context(), m.client, to, port, info)
}

func (m *manager) mustSet(to mad.Addr, port uint32, change func(*mad.PortInfo)) mad.PortInfo {
	m.t.Helper()
	info, err := m.set(to, port, change)
	if err != nil {
		m.t.Fatal(err)
	}
	return info
}

func (m *manager) bring(to mad.Addr, port uint32, states ...mad.PortState) {
	m.t.Helper()
	for _, state := range states {
		m.mustSet(to, port, func(i *mad.PortInfo) { i.PortState = state })
	}
}

// states writes the two states of a port.
func states(i mad.PortInfo) string { return fmt.Sprintf("%v/%v", i.PortState, i.PortPhysicalState) }

func statusOf(err error) mad.Status {
	var status *smp.StatusError
	if errors.As(err, &status) {
		return status.Status
	}
	return mad.StatusOK
}

// TestSetPortState has the transitions of IBA 7.2.7 that a Set may order, with what
// Linux does about the others (hfi1/mad.c, logical_state_transitions): of those that
// it ignores nothing comes, those that it disallows are invalid.
func TestSetPortState(t *testing.T) {
	const down, initial, armed, active = mad.PortStateDown, mad.PortStateInit, mad.PortStateArmed, mad.PortStateActive
	tests := []struct {
		from, order mad.PortState
		status      mad.Status
		near, far   string
	}{
		{down, 0, 0, "Down/Disabled", "Down/Polling"},
		{down, down, 0, "Down/Disabled", "Down/Polling"},
		{down, armed, 0x1c, "Down/Disabled", "Down/Polling"},
		{down, active, 0x1c, "Down/Disabled", "Down/Polling"},
		{initial, 0, 0, "Initialize/LinkUp", "Initialize/LinkUp"},
		{initial, down, 0, "Initialize/LinkUp", "Initialize/LinkUp"},
		{initial, initial, 0x1c, "Initialize/LinkUp", "Initialize/LinkUp"},
		{initial, armed, 0, "Armed/LinkUp", "Initialize/LinkUp"},
		{initial, active, 0x1c, "Initialize/LinkUp", "Initialize/LinkUp"},
		{armed, 0, 0, "Armed/LinkUp", "Initialize/LinkUp"},
		{armed, down, 0, "Initialize/LinkUp", "Initialize/LinkUp"},
		{armed, initial, 0x1c, "Armed/LinkUp", "Initialize/LinkUp"},
		{armed, armed, 0, "Armed/LinkUp", "Initialize/LinkUp"},
		{armed, active, 0, "Active/LinkUp", "Initialize/LinkUp"},
		{active, 0, 0, "Active/LinkUp", "Active/LinkUp"},
		{active, down, 0, "Initialize/LinkUp", "Initialize/LinkUp"},
		{active, initial, 0x1c, "Active/LinkUp", "Active/LinkUp"},
		{active, armed, 0, "Active/LinkUp", "Active/LinkUp"},
		{active, active, 0, "Active/LinkUp", "Active/LinkUp"},
		{active, 5, 0x1c, "Active/LinkUp", "Active/LinkUp"},
	}
	for _, tt := range tests {
		for _, to := range []mad.Addr{toS2, toS2ByID} {
			t.Run(fmt.Sprintf("%v to %v by %v", tt.from, tt.order, to), func(t *testing.T) {
				manage(t, Config{}, func(m *manager) {
					switch tt.from {
					case down:
						m.mustSet(to, 4, func(i *mad.PortInfo) { i.PortPhysicalState = mad.PortPhysStateDisabled })
					case initial:
						m.bring(to, 4, down)
					case armed:
						m.bring(to, 4, down, armed)
					}
					answer, err := m.set(to, 4, func(i *mad.PortInfo) { i.PortState = tt.order })
					near := m.get(to, 4)
					far, farErr := m.open("h8").Info()
					if farErr != nil {
						t.Fatal(farErr)
					}
					if got := fmt.Sprintf("%v/%v", far.State, far.PhysState); states(near) != tt.near || got != tt.far {
						t.Errorf("now %s, far end %s, want %s, %s", states(near), got, tt.near, tt.far)
					}
					if statusOf(err) != tt.status || err == nil && answer != near {
						t.Errorf("status %v, want %v; the answer says %s: %v", statusOf(err), tt.status, states(answer), err)
					}
				})
			})
		}
	}
}

// TestSetPhysicalState goes through IBA 14.2.5.6, PortPhysicalState and
// LinkDownDefaultState, and the link training of volume 2: one end must poll.
func TestSetPhysicalState(t *testing.T) {
	manage(t, Config{}, func(m *manager) {
		const sleep, polling, disabled = mad.PortPhysStateSleep, mad.PortPhysStatePolling, mad.PortPhysStateDisabled
		steps := []struct {
			name      string
			to        mad.Addr
			port      uint32
			change    func(*mad.PortInfo)
			status    mad.Status
			near, far string // s2[4], h8[1]
		}{
			{"training cannot be ordered", toS2, 4, func(i *mad.PortInfo) { i.PortPhysicalState = 4 }, 0x1c, "Active/LinkUp", "Active/LinkUp"},
			{"nor LinkUp", toS2, 4, func(i *mad.PortInfo) { i.PortPhysicalState = 5 }, 0x1c, "Active/LinkUp", "Active/LinkUp"},
			{"Polling goes with Down only", toS2, 4, func(i *mad.PortInfo) {
				i.PortState, i.PortPhysicalState = mad.PortStateActive, polling
			}, 0x1c, "Active/LinkUp", "Active/LinkUp"},
			{"Polling", toS2, 4, func(i *mad.PortInfo) { i.PortPhysicalState = polling }, 0, "Initialize/LinkUp", "Initialize/LinkUp"},
			{"by the far end", toH8, 1, func(i *mad.PortInfo) { i.PortPhysicalState = polling }, 0, "Initialize/LinkUp", "Initialize/LinkUp"},
			{"Disabled", toS2, 4, func(i *mad.PortInfo) { i.PortState, i.PortPhysicalState = mad.PortStateDown, disabled }, 0, "Down/Disabled", "Down/Polling"},
			{"Down leaves it Disabled", toS2, 4, func(i *mad.PortInfo) { i.PortState = mad.PortStateDown }, 0, "Down/Disabled", "Down/Polling"},
			{"Sleep: the far end wakes it", toS2, 4, func(i *mad.PortInfo) { i.PortPhysicalState = sleep }, 0, "Initialize/LinkUp", "Initialize/LinkUp"},
			{"default 3", toH8, 1, func(i *mad.PortInfo) { i.LinkDownDefaultState = 3 }, 0x1c, "Initialize/LinkUp", "Initialize/LinkUp"},
			{"default Sleep", toH8, 1, func(i *mad.PortInfo) { i.LinkDownDefaultState = mad.LinkDownDefaultStateSleep }, 0, "Initialize/LinkUp", "Initialize/LinkUp"},
			{"default 0 is no change", toH8, 1, func(i *mad.PortInfo) { i.LinkDownDefaultState = 0 }, 0, "Initialize/LinkUp", "Initialize/LinkUp"},
			{"both sleep", toS2, 4, func(i *mad.PortInfo) { i.PortPhysicalState = sleep }, 0, "Down/Sleep", "Down/Sleep"},
			{"one polls", toS2, 4, func(i *mad.PortInfo) { i.PortPhysicalState = polling }, 0, "Initialize/LinkUp", "Initialize/LinkUp"},
			{"a port without a cable", toS2, 5, func(i *mad.PortInfo) { i.PortPhysicalState = disabled }, 0, "Initialize/LinkUp", "Initialize/LinkUp"},
			{"port 0 has no link", toS2, 0, func(i *mad.PortInfo) { i.PortPhysicalState = polling }, 0x1c, "Initialize/LinkUp", "Initialize/LinkUp"},
			{"port 0 stays up", toS2, 0, func(i *mad.PortInfo) { i.PortState = mad.PortStateDown }, 0x1c, "Initialize/LinkUp", "Initialize/LinkUp"},
			{"port 0 is Active", toS2, 0, func(i *mad.PortInfo) { i.PortState = mad.PortStateActive }, 0, "Initialize/LinkUp", "Initialize/LinkUp"},
		}
		h8 := m.open("h8")
		for _, step := range steps {
			_, err := m.set(step.to, step.port, step.change)
			if statusOf(err) != step.status || err != nil && step.status == 0 {
				t.Errorf("%s: %v, want status %v", step.name, err, step.status)
			}
			far, err := h8.Info()
			if err != nil {
				t.Fatal(err)
			}
			if near, far := states(m.get(toS2, 4)), fmt.Sprintf("%v/%v", far.State, far.PhysState); near != step.near || far != step.far {
				t.Errorf("%s: now %s, far end %s, want %s, %s", step.name, near, far, step.near, step.far)
			}
		}
		if got := states(m.get(toS2, 5)); got != "Down/Disabled" {
			t.Errorf("the port without a cable is %s", got)
		}
	})
}

// Who disables the port that the answer would leave by gets none; Linux's adapters
// do not even try (qib, subn_set_portinfo).
func TestDisableOwnWay(t *testing.T) {
	manage(t, Config{}, func(m *manager) {
		_, err := m.set(toH8, 1, func(i *mad.PortInfo) { i.PortPhysicalState = mad.PortPhysStateDisabled })
		if !errors.Is(err, agents.ErrTimeout) {
			t.Errorf("answered: %v", err)
		}
		if got := states(m.get(toS2, 4)); got != "Down/Polling" {
			t.Errorf("s2[4] is %s", got)
		}
	})
}

// TestSetComponents: what becomes of each component that can be written (IBA
// 14.2.5.6, table PortInfo, the rows with RW), and of some that cannot.
func TestSetComponents(t *testing.T) {
	tests := []struct {
		name   string
		to     mad.Addr
		port   uint32
		change func(*mad.PortInfo)
		want   func(*mad.PortInfo) // nil: status 0x1c
	}{
		{"nothing", toH8, 1, func(*mad.PortInfo) {}, func(*mad.PortInfo) {}},
		{"LID", toH8, 1, func(i *mad.PortInfo) { i.LID = 0xbffe }, func(i *mad.PortInfo) { i.LID = 0xbffe }},
		{"LID of a switch", toS2, 0, func(i *mad.PortInfo) { i.LID = 77 }, func(i *mad.PortInfo) { i.LID = 77 }},
		{"LID 0", toH8, 1, func(i *mad.PortInfo) { i.LID = 0 }, nil},
		{"LID multicast", toH8, 1, func(i *mad.PortInfo) { i.LID = 0xc000 }, nil},
		{"LID permissive", toH8, 1, func(i *mad.PortInfo) { i.LID = 0xffff }, nil},
		{"LMC", toH8, 1, func(i *mad.PortInfo) { i.LMC = 3 }, func(i *mad.PortInfo) { i.LMC = 3 }},
		{"LMC that the LID does not fit", toH8, 1, func(i *mad.PortInfo) { i.LID, i.LMC = 20, 3 }, nil}, // IBA 4.1.3
		{"MasterSMLID", toH8, 1, func(i *mad.PortInfo) { i.MasterSMLID = 3 }, func(i *mad.PortInfo) { i.MasterSMLID = 3 }},
		{"MasterSMLID 0", toH8, 1, func(i *mad.PortInfo) { i.MasterSMLID = 0 }, nil},
		{"MasterSMSL", toH8, 1, func(i *mad.PortInfo) { i.MasterSMSL = 15 }, func(i *mad.PortInfo) { i.MasterSMSL = 15 }},
		{"GidPrefix", toH8, 1, func(i *mad.PortInfo) { i.GidPrefix = 0xfec0 << 48 }, func(i *mad.PortInfo) { i.GidPrefix = 0xfec0 << 48 }},
		{"M_Key", toH8, 1, func(i *mad.PortInfo) { i.MKey, i.MKeyLeasePeriod = 5, 6 }, func(i *mad.PortInfo) { i.MKey, i.MKeyLeasePeriod = 5, 6 }},
		{"SubnetTimeOut", toH8, 1, func(i *mad.PortInfo) { i.SubnetTimeOut = 9 }, func(i *mad.PortInfo) { i.SubnetTimeOut = 9 }},
		{"ClientReregister comes back once", toH8, 1, func(i *mad.PortInfo) { i.ClientReregister = true }, func(*mad.PortInfo) {}}, // o14-12.2.1
		{"error thresholds", toH8, 1, func(i *mad.PortInfo) { i.LocalPhyErrors, i.OverrunErrors = 8, 9 }, func(i *mad.PortInfo) { i.LocalPhyErrors, i.OverrunErrors = 8, 9 }},
		{"NeighborMTU", toS2, 4, func(i *mad.PortInfo) { i.NeighborMTU = mad.MTU256 }, func(i *mad.PortInfo) { i.NeighborMTU = mad.MTU256 }},
		{"NeighborMTU above MTUCap", toS2, 12, func(i *mad.PortInfo) { i.NeighborMTU = mad.MTU4096 }, nil},
		{"NeighborMTU 0", toS2, 4, func(i *mad.PortInfo) { i.NeighborMTU = 0 }, nil},
		{"OperationalVLs", toS2, 4, func(i *mad.PortInfo) { i.OperationalVLs = mad.VLs0to1 }, func(i *mad.PortInfo) { i.OperationalVLs = mad.VLs0to1 }},
		{"OperationalVLs 0 is no change", toS2, 4, func(i *mad.PortInfo) { i.OperationalVLs = 0 }, func(*mad.PortInfo) {}},
		{"OperationalVLs above VLCap", toS2, 4, func(i *mad.PortInfo) { i.OperationalVLs = mad.VLs0to14 }, nil},
		{"VLHighLimit", toS2, 4, func(i *mad.PortInfo) { i.VLHighLimit = 7 }, func(i *mad.PortInfo) { i.VLHighLimit = 7 }},
		{"HOQLife", toS2, 4, func(i *mad.PortInfo) { i.VLStallCount, i.HOQLife = 3, 12 }, func(i *mad.PortInfo) { i.VLStallCount, i.HOQLife = 3, 12 }},
		{"widths and speeds 0 are no change", toS2, 4, func(i *mad.PortInfo) {
			i.LinkWidthEnabled, i.LinkSpeedEnabled, i.LinkSpeedExtEnabled, i.LinkSpeedExtEnabled2 = 0, 0, 0, 0
		}, func(*mad.PortInfo) {}},
		{"all widths and speeds", toS2, 4, func(i *mad.PortInfo) {
			i.LinkWidthEnabled, i.LinkSpeedEnabled, i.LinkSpeedExtEnabled = 255, 15, 31
		}, func(*mad.PortInfo) {}},
		{"a width is not for the taking", toS2, 4, func(i *mad.PortInfo) { i.LinkWidthEnabled = mad.LinkWidth1X }, nil},
		{"a speed is not for the taking", toS2, 4, func(i *mad.PortInfo) { i.LinkSpeedExtEnabled = 30 }, nil},
		{"what can only be read", toH8, 1, func(i *mad.PortInfo) {
			i.CapabilityMask, i.DiagCode, i.LocalPortNum, i.LinkWidthActive, i.MTUCap, i.VLCap, i.GUIDCap, i.RespTimeValue = 0, 1, 9, 1, 1, 1, 0, 1
		}, func(*mad.PortInfo) {}},
		{"what a switch's port does not have", toS2, 4, func(i *mad.PortInfo) {
			i.LID, i.LMC, i.MasterSMLID, i.MKey, i.GidPrefix, i.SubnetTimeOut = 20, 1, 3, 4, 5, 6
		}, func(*mad.PortInfo) {}},
		{"what the switches cannot do", toS2, 4, func(i *mad.PortInfo) { i.PartitionEnforcementInbound, i.FilterRawOutbound = true, true }, func(*mad.PortInfo) {}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			manage(t, Config{}, func(m *manager) {
				want := m.get(tt.to, tt.port)
				if tt.want != nil {
					tt.want(&want)
				}
				answer, err := m.set(tt.to, tt.port, tt.change)
				if (err == nil) != (tt.want != nil) || statusOf(err) != 0 && statusOf(err) != mad.StatusBadField {
					t.Fatalf("error %v", err)
				}
				got := m.get(tt.to, tt.port)
				if got != want {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
				asked := want
				tt.change(&asked)
				if want.ClientReregister = asked.ClientReregister; err == nil && answer != want {
					t.Errorf("answer %+v\nwant   %+v", answer, want)
				}
			})
		})
	}
}

// A Set of the port of an adapter reaches only the port itself; of a switch all.
func TestSetOtherPort(t *testing.T) {
	manage(t, Config{}, func(m *manager) {
		for port, want := range map[uint32]mad.Status{0: 0, 1: 0, 2: 0x1c, 255: 0x1c} {
			info := m.get(toH8, 1)
			info.PortState, info.PortPhysicalState = 0, 0
			if _, err := smp.Set(m.t.Context(), m.client, toH8, port, info); statusOf(err) != want || (err == nil) != (want == 0) {
				t.Errorf("port %d: %v, want %v", port, err, want)
			}
		}
	})
}

// TestSetLID: from then on the port has that LID, and the tables of the switches are
// another matter.
func TestSetLID(t *testing.T) {
	manage(t, Config{}, func(m *manager) {
		h8 := m.open("h8")
		m.mustSet(toH8, 1, func(i *mad.PortInfo) { i.LID, i.MasterSMLID, i.MasterSMSL = 7, 2, 3 })
		if info, err := h8.Info(); err != nil || info.LID != 7 || info.SMLID != 2 || info.SMSL != 3 {
			t.Errorf("LID %v, SM at %v, SL %d, %v; want 7, 2, 3", info.LID, info.SMLID, info.SMSL, err)
		}
		if m.send("h2", gmp(8, mad.DefaultPKey)); m.dropped(m.events()) != WrongPort {
			t.Errorf("to the old LID: %v", m.events())
		}
		if err := m.fab.SetLFT(m.port("s2").Node, 7, 4); err != nil {
			t.Fatal(err)
		}
		h8.reset()
		if m.send("h2", gmp(7, mad.DefaultPKey)); len(h8.got()) != 1 {
			t.Errorf("to the new LID: %v", m.events())
		}
		h2 := m.open("h2")
		h2.reset()
		if m.send("h8", gmp(2, mad.DefaultPKey)); len(h2.got()) != 1 || h2.got()[0].Addr.LID != 7 {
			t.Errorf("from the new LID: %+v", h2.got())
		}
		m.mustSet(toH8, 1, func(i *mad.PortInfo) { i.LID, i.LMC = 6, 1 })
		h8.reset()
		if m.send("h2", gmp(7, mad.DefaultPKey)); len(h8.got()) != 1 || h8.got()[0].Addr.PathBits != 1 {
			t.Errorf("to the second LID: %+v", h8.got())
		}
		if m.port("h8").LID != 8 || m.port("h8").LMC != 0 {
			t.Error("the model was changed")
		}
	})
}

func TestSetGidPrefix(t *testing.T) {
	manage(t, Config{}, func(m *manager) {
		const prefix = 0xfec0 << 48
		h8 := m.open("h8")
		m.mustSet(toH8, 1, func(i *mad.PortInfo) { i.GidPrefix = prefix })
		for _, tt := range []struct {
			prefix uint64
			comes  bool
		}{{prefix, true}, {mad.DefaultGIDPrefix, true}, {prefix + 1, false}} {
			w := gmp(8, mad.DefaultPKey)
			w.Addr.HasGRH, w.Addr.GRH.GID = true, m.port("h8").GID(tt.prefix)
			h8.reset()
			if m.send("h2", w); (len(h8.got()) == 1) != tt.comes {
				t.Errorf("to prefix %#x: %v", tt.prefix, m.events())
			}
		}
		info, err := h8.Info()
		if want := m.port("h8").GID(prefix); err != nil || len(info.GIDs) != 1 || info.GIDs[0] != want {
			t.Errorf("GIDs %v, %v; want %v", info.GIDs, err, want)
		}
	})
}

// TestBouncedLink: MADs that are on a link when it goes down are lost, and none but
// SMPs pass before both ends are Active again (IBA 7.2.7). An armed port becomes
// Active by what comes from an active one.
func TestBouncedLink(t *testing.T) {
	manage(t, Config{}, func(m *manager) {
		h8 := m.open("h8")
		arrives := func() bool {
			t.Helper()
			h8.reset()
			m.send("h2", gmp(8, mad.DefaultPKey))
			return len(h8.got()) == 1
		}
		if err := m.fab.SetFaults(m.port("s2[4]"), Faults{Delay: time.Minute}); err != nil {
			t.Fatal(err)
		}
		m.send("h2", gmp(8, mad.DefaultPKey))
		if err := m.fab.SetFaults(m.port("s2[4]"), Faults{}); err != nil {
			t.Fatal(err)
		}
		m.bring(toS2, 4, mad.PortStateDown)
		m.forget()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(h8.got()) != 0 || m.dropped(m.events()) != LinkDown {
			t.Errorf("it survives the bounce: %v", m.events())
		}
		steps := []struct {
			name  string
			to    mad.Addr
			port  uint32
			state mad.PortState
			comes bool
		}{
			{"both Init", toS2, 4, mad.PortStateNoChange, false},
			{"s2 Armed", toS2, 4, mad.PortStateArmed, false},
			{"both Armed", toH8, 1, mad.PortStateArmed, false},
			{"s2 Active", toS2, 4, mad.PortStateActive, true},
		}
		for _, step := range steps {
			m.bring(step.to, step.port, step.state)
			if arrives() != step.comes {
				t.Errorf("%s: arrives is %v", step.name, !step.comes)
			}
		}
		if got := m.get(toH8, 1).PortState; got != mad.PortStateActive {
			t.Errorf("h8 is %v, though data have come", got)
		}
	})
}

// TestSetPKeys: the table of an end port decides what it takes (IBA 10.9.3); a
// switch's physical port keeps one.
func TestSetPKeys(t *testing.T) {
	manage(t, Config{}, func(m *manager) {
		h8 := m.open("h8")
		table := func(keys ...mad.PKey) (t mad.PKeyTable) {
			copy(t.PKey[:], keys)
			return t
		}
		tests := []struct {
			name     string
			to       mad.Addr
			modifier uint32
			table    mad.PKeyTable
			status   mad.Status
		}{
			{"block 3 of h8", toH8, 3, table(0, 0x8003), 0},
			{"block 4 of h8", toH8, 4, table(1), 0x1c},
			{"block 0 of h8", toH8, 0, table(0xffff, 0x8001), 0},
			{"port 7 of an adapter, which has one table", toH8, 7<<16 | 1, table(0x8007), 0},
			{"port 4 of s2", toS2, 4 << 16, table(0x8001), 0},
			{"block 1 of port 4", toS2, 4<<16 | 1, table(1), 0x1c},
			{"port 13 of s2", toS2, 13 << 16, table(1), 0x1c},
			{"port 0 of s2, block 3", toS2, 3, table(0x7fff), 0},
		}
		for _, tt := range tests {
			answer, err := smp.Set(m.t.Context(), m.client, tt.to, tt.modifier, tt.table)
			if statusOf(err) != tt.status || (err == nil) != (tt.status == 0) {
				t.Errorf("%s: %v, want status %v", tt.name, err, tt.status)
				continue
			}
			if got, getErr := smp.Get[mad.PKeyTable](m.t.Context(), m.client, tt.to, tt.modifier); err == nil && (getErr != nil || got != tt.table || answer != tt.table) {
				t.Errorf("%s: got %v, %v, answer %v", tt.name, got, getErr, answer)
			}
		}
		info, err := h8.Info()
		if err != nil || len(info.PKeys) != 3*32+2 || info.PKeys[97] != 0x8003 || info.PKeys[32] != 0x8007 || info.PKeys[1] != 0x8001 {
			t.Errorf("%d P_Keys: %v, %v", len(info.PKeys), info.PKeys, err)
		}
		for key, comes := range map[mad.PKey]bool{0xffff: true, 0x8001: true, 0x0003: true, 0x8002: false, 0x8000: false} {
			h8.reset()
			if m.send("h2", gmp(8, key)); (len(h8.got()) == 1) != comes {
				t.Errorf("P_Key %v: %v", key, m.events())
			}
		}
		if _, err := smp.Set(m.t.Context(), m.client, toH8, 0, mad.PKeyTable{}); err != nil {
			t.Fatal(err)
		}
		if m.send("h2", gmp(8, mad.DefaultPKey)); m.dropped(m.events()) != BadPKey {
			t.Errorf("without the default P_Key: %v", m.events())
		}
		if keys := m.port("h8").PKeys; len(keys) != 1 {
			t.Errorf("the model was changed: %v", keys)
		}
	})
}
