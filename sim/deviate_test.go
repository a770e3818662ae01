package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sma"
)

// probe is a question whose answer a deviation can change. They are asked one after
// another on a fabric, from h2 unless they are of the SA.
type probe func(r *rig) string

// wireProbe shows the answer as it arrives, or why there is none.
func wireProbe(w wire) probe {
	return func(r *rig) string {
		got := r.ask("h2", w)
		if got == nil {
			return "no answer"
		}
		return fmt.Sprintf("from %v: %x", got.Addr.LID, got.MAD)
	}
}

// setProbe sets a PortInfo that is otherwise as the bring-up has left it, and reads
// it again.
func setProbe(port string, change func(*mad.PortInfo)) probe {
	return func(r *rig) string {
		p := r.port(port)
		end := p
		if p.Node.IsSwitch() {
			end = &p.Node.Ports[0]
		}
		read := byLID(end.LID, mad.AttrPortInfo, uint32(p.Num))
		w := read
		info := sma.BroughtUp(r.sub, p)
		info.PortState, info.PortPhysicalState = 0, 0
		change(&info)
		w.MAD[mad.OffMethod] = byte(mad.MethodSet)
		info.EncodeTo((*[64]byte)(w.MAD[mad.OffSMPData:]))
		answer := wireProbe(w)(r)
		return answer + " then " + wireProbe(read)(r)
	}
}

func probes() []probe {
	method := func(w wire, m byte) wire { w.MAD[mad.OffMethod] = m; return w }
	at := func(w wire, off int, b byte) wire { w.MAD[off] = b; return w }
	var all []probe
	for _, w := range []wire{byLID(1, 0, 0), byLID(10, 0, 0), byRoute(mad.Route{0, 1, 11}, 0, 0)} {
		for _, attribute := range []mad.AttributeID{mad.AttrNotice, mad.AttrNodeDescription, mad.AttrNodeInfo, mad.AttrSwitchInfo, mad.AttrGUIDInfo,
			mad.AttrPortInfo, mad.AttrPKeyTable, mad.AttrSLtoVLMappingTable, mad.AttrVLArbitrationTable, mad.AttrLinearForwardingTable,
			mad.AttrMulticastForwardingTable, mad.AttrSMInfo, 0xff00} {
			for _, modifier := range []uint32{0, 0xffff, 1 << 16, 1<<31 | 1} {
				w.MAD[mad.OffAttribute], w.MAD[mad.OffAttribute+1] = byte(attribute>>8), byte(attribute)
				w.MAD[mad.OffModifier], w.MAD[mad.OffModifier+1] = byte(modifier>>24), byte(modifier>>16)
				w.MAD[mad.OffModifier+2], w.MAD[mad.OffModifier+3] = byte(modifier>>8), byte(modifier)
				all = append(all, wireProbe(w))
			}
		}
	}
	s2 := byLID(10, mad.AttrPortInfo, 0)
	h8 := byLID(8, mad.AttrPortInfo, 1)
	pkeys := method(byLID(8, mad.AttrPKeyTable, 0), 2)
	pkeys.MAD[mad.OffSMPData], pkeys.MAD[mad.OffSMPData+1] = 0xff, 0xff
	pkeys.MAD[mad.OffSMPData+3] = 5
	return append(all,
		wireProbe(at(s2, 0, 2)),
		wireProbe(at(s2, mad.OffClassVersion, 2)),
		wireProbe(method(s2, 0x12)),
		wireProbe(at(byRoute(mad.Route{0, 1}, mad.AttrNodeInfo, 0), offHopPointer, 1)),
		wireProbe(byRoute(mad.Route{0}, mad.AttrNodeInfo, 0)),
		wireProbe(byRoute(mad.Route{0, 1, 9}, mad.AttrNodeInfo, 0)),
		wireProbe(byRoute(mad.Route{0, 1, 3, 1}, mad.AttrNodeInfo, 0)),
		wireProbe(combined(9, 2, mad.PermissiveLID, mad.Route{0, 1}, mad.AttrNodeInfo, 0)),
		setProbe("s2[4]", func(i *mad.PortInfo) { i.PortState = mad.PortStateActive }),
		setProbe("s2", func(i *mad.PortInfo) { i.LID = 0 }),
		setProbe("s2", func(i *mad.PortInfo) { i.MasterSMLID = 3 }),
		setProbe("s2", func(i *mad.PortInfo) { i.LMC = 1 }),
		setProbe("s2[4]", func(i *mad.PortInfo) { i.PortState = mad.PortStateDown }),
		setProbe("s2[4]", func(i *mad.PortInfo) { i.PortState = mad.PortStateActive }),
		setProbe("s2[4]", func(i *mad.PortInfo) { i.PortState = mad.PortStateArmed }),
		setProbe("s2[3]", func(i *mad.PortInfo) { i.PortPhysicalState = mad.PortPhysStateDisabled }),
		wireProbe(pkeys),
		wireProbe(byLID(8, mad.AttrPKeyTable, 0)),
		setProbe("h8", func(i *mad.PortInfo) { i.MKey, i.MKeyProtectBits = theKey, 2 }),
		wireProbe(h8),
		wireProbe(pkeys),
		func(r *rig) (got string) {
			version9 := gmp(r.sub.SM.LID, mad.DefaultPKey)
			version9.MAD = request(mad.ClassSubnAdm, mad.MethodGet, mad.AttrClassPortInfo, 0)
			version9.MAD[mad.OffClassVersion] = 9
			r.askSA(func(*sa.Client) { got = wireProbe(version9)(r) })
			return got
		},
		func(r *rig) (got string) {
			r.askSA(func(c *sa.Client) {
				got = fmt.Sprint(slices.Collect(func(yield func(string) bool) {
					for rec, err := range sa.Table(r.t.Context(), c, sa.Query[mad.NodeRecord]{}) {
						if !yield(fmt.Sprint(rec.LID, err)) {
							return
						}
					}
				}))
			})
			return got
		},
	)
}

// askAll asks all probes while the SM's port says that it has an SM.
func (r *rig) askAll() (got []string) {
	r.t.Helper()
	dev, err := r.fab.Device(r.sub.SM.Node, r.sub.SM.Num)
	if err != nil {
		r.t.Fatal(err)
	}
	held, err := dev.HoldIsSM(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range probes() {
		got = append(got, p(r))
	}
	if err := held.Close(); err != nil {
		r.t.Fatal(err)
	}
	return got
}

// outcomes asks all probes on a fabric with a deviation, "" for none.
func outcomes(t *testing.T, deviation string) (got []string) {
	inBubble(t, Config{}, func(r *rig) {
		if deviation != "" {
			if err := r.fab.Deviate(deviation, true); err != nil {
				t.Fatal(err)
			}
		}
		got = r.askAll()
	})
	return got
}

// TestDeviations: each can be noticed, and none is left when it is off.
func TestDeviations(t *testing.T) {
	plain := outcomes(t, "")
	if again := outcomes(t, ""); !slices.Equal(plain, again) {
		t.Fatal("the outcomes differ without any deviation")
	}
	for _, d := range Deviations() {
		got := outcomes(t, d.Name)
		if slices.Equal(got, plain) {
			t.Errorf("%s is not noticed", d.Name)
		}
	}
	inBubble(t, Config{}, func(r *rig) {
		for _, on := range []bool{true, false} {
			for _, d := range Deviations() {
				if err := r.fab.Deviate(d.Name, on); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := r.askAll(); !slices.Equal(got, plain) {
			t.Error("the outcomes differ with every deviation off")
		}
	})
}

func TestDeviationNames(t *testing.T) {
	seen := map[string]bool{}
	agents := 0
	for _, d := range Deviations() {
		if seen[d.Name] || d.Name != strings.ToLower(d.Name) || d.Breaks == "" || d.IBA == "" {
			t.Errorf("%+v", d)
		}
		seen[d.Name] = true
		if !d.OfSA {
			agents++
		}
	}
	if agents < 35 {
		t.Errorf("%d deviations of agents", agents)
	}
	inBubble(t, Config{}, func(r *rig) {
		if err := r.fab.Deviate("nothing", true); err == nil || !strings.Contains(err.Error(), "nothing") {
			t.Errorf("unknown: %v", err)
		}
	})
}

// Whatever a deviation makes of answers, a request ends in the instant that it was
// sent in: from an agent that answers answers, or a program like a kernel that does,
// it would go to and fro for ever.
func TestDeviationsEnd(t *testing.T) {
	for _, d := range Deviations() {
		inBubble(t, Config{}, func(r *rig) {
			h1 := r.port("h1")
			dev, err := r.fab.Device(h1.Node, h1.Num)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.fab.Deviate(d.Name, true); err != nil {
				t.Fatal(err)
			}
			p, err := dev.Open()
			if err != nil {
				t.Fatal(err)
			}
			agent, err := p.Register(port.Registration{QPN: mad.QPSMI})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range []wire{byLID(1, mad.AttrNodeInfo, 0), byLID(9, mad.AttrNodeInfo, 0), byLID(8, mad.AttrNodeInfo, 0),
				byRoute(mad.Route{0}, mad.AttrNodeInfo, 0), byRoute(mad.Route{0, 1, 2}, mad.AttrNodeInfo, 0)} {
				if err := p.Send(&port.Message{Agent: agent, Addr: w.Addr, Data: w.MAD[:]}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			if s := r.fab.Stats(); s.Sent > 10 { // five, and what the device refuses
				t.Errorf("%s: %d MADs were sent for 5", d.Name, s.Sent)
			}
		})
	}
}
