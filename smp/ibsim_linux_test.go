package smp

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/ibsim"
	"github.com/ibsm/ibsm/ibsim/ibsimtest"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/topo"
)

// Of a two-level netlist, asked from H-0002: leaf 2, whose port 2 leads to H-0004.
var (
	leaf = mad.MustParseAddr("0,1,3,2")
	host = mad.MustParseAddr("0,1,3,2,2")
)

// setStep is a Set, with what it comes to: the status, then the states of both ends of
// the link from leaf 2 to H-0004, and H-0004's LID, LMC and SM LID.
type setStep struct {
	name   string
	to     mad.Addr
	port   uint32
	change func(*mad.PortInfo)
	want   string
	ibsim  string // where it is another; what ibsim does there
}

func state(s mad.PortState) func(*mad.PortInfo) {
	return func(i *mad.PortInfo) { i.PortState = s }
}

var setSteps = []setStep{
	{name: "a LID", to: host, port: 1, change: func(i *mad.PortInfo) { i.LID, i.MasterSMLID = 0x30, 0x31 }, want: "ok: Active LinkUp, Active LinkUp, 0x30 0 0x31"},
	{name: "nothing", to: leaf, port: 2, change: func(*mad.PortInfo) {}, want: "ok: Active LinkUp, Active LinkUp, 0x30 0 0x31"},
	{name: "an LMC", to: host, port: 0, change: func(i *mad.PortInfo) { i.LMC = 2 }, want: "ok: Active LinkUp, Active LinkUp, 0x30 2 0x31"},
	{name: "no such port", to: leaf, port: 99, change: func(*mad.PortInfo) {}, want: "0x1c: Active LinkUp, Active LinkUp, 0x30 2 0x31"},
	{name: "another port of an adapter", to: host, port: 2, change: func(*mad.PortInfo) {}, want: "0x1c: Active LinkUp, Active LinkUp, 0x30 2 0x31"},
	{name: "too many VLs", to: leaf, port: 2, change: func(i *mad.PortInfo) { i.OperationalVLs = 15 }, want: "0x1c: Active LinkUp, Active LinkUp, 0x30 2 0x31"},
	{name: "Down", to: leaf, port: 2, change: state(mad.PortStateDown), want: "ok: Initialize LinkUp, Initialize LinkUp, 0x30 2 0x31"},
	{name: "Active too soon", to: leaf, port: 2, change: state(mad.PortStateActive), want: "0x1c: Initialize LinkUp, Initialize LinkUp, 0x30 2 0x31"},
	{name: "Armed", to: leaf, port: 2, change: state(mad.PortStateArmed), want: "ok: Armed LinkUp, Initialize LinkUp, 0x30 2 0x31"},
	// There Armed is not set twice, and Active goes with a far end that is Armed.
	{name: "Armed again", to: leaf, port: 2, change: state(mad.PortStateArmed), want: "ok: Armed LinkUp, Initialize LinkUp, 0x30 2 0x31", ibsim: "0x1c: Armed LinkUp, Initialize LinkUp, 0x30 2 0x31"},
	{name: "Active before the far end", to: leaf, port: 2, change: state(mad.PortStateActive), want: "ok: Active LinkUp, Initialize LinkUp, 0x30 2 0x31", ibsim: "0x1c: Armed LinkUp, Initialize LinkUp, 0x30 2 0x31"},
	{name: "the far end Armed", to: host, port: 1, change: state(mad.PortStateArmed), want: "ok: Active LinkUp, Armed LinkUp, 0x30 2 0x31", ibsim: "ok: Armed LinkUp, Armed LinkUp, 0x30 2 0x31"},
	{name: "the far end Active", to: host, port: 1, change: state(mad.PortStateActive), want: "ok: Active LinkUp, Active LinkUp, 0x30 2 0x31", ibsim: "ok: Armed LinkUp, Active LinkUp, 0x30 2 0x31"},
	{name: "Down by the far end", to: host, port: 1, change: state(mad.PortStateDown), want: "ok: Initialize LinkUp, Initialize LinkUp, 0x30 2 0x31"},
	{name: "Armed", to: leaf, port: 2, change: state(mad.PortStateArmed), want: "ok: Armed LinkUp, Initialize LinkUp, 0x30 2 0x31"},
	{name: "both Armed", to: host, port: 1, change: state(mad.PortStateArmed), want: "ok: Armed LinkUp, Armed LinkUp, 0x30 2 0x31"},
	{name: "one Active", to: leaf, port: 2, change: state(mad.PortStateActive), want: "ok: Active LinkUp, Armed LinkUp, 0x30 2 0x31"},
	{name: "both Active", to: host, port: 1, change: state(mad.PortStateActive), want: "ok: Active LinkUp, Active LinkUp, 0x30 2 0x31"},
	{name: "back to Armed", to: host, port: 1, change: state(mad.PortStateArmed), want: "ok: Active LinkUp, Active LinkUp, 0x30 2 0x31", ibsim: "ok: Active LinkUp, Armed LinkUp, 0x30 2 0x31"},
	{name: "Active", to: host, port: 1, change: state(mad.PortStateActive), want: "ok: Active LinkUp, Active LinkUp, 0x30 2 0x31"},
	// There 0 is a LID, and a port whose link goes down stays Active, and down.
	{name: "LID 0", to: host, port: 1, change: func(i *mad.PortInfo) { i.LID = 0 }, want: "0x1c: Active LinkUp, Active LinkUp, 0x30 2 0x31", ibsim: "ok: Active LinkUp, Active LinkUp, 0x0 2 0x31"},
	{name: "a LID again", to: host, port: 1, change: func(i *mad.PortInfo) { i.LID = 0x30 }, want: "ok: Active LinkUp, Active LinkUp, 0x30 2 0x31"},
	{name: "Disabled", to: leaf, port: 2, change: func(i *mad.PortInfo) { i.PortPhysicalState = mad.PortPhysStateDisabled }, want: "ok: Down Disabled, no answer", ibsim: "ok: Active Disabled, no answer"},
	{name: "Polling", to: leaf, port: 2, change: func(i *mad.PortInfo) { i.PortPhysicalState = mad.PortPhysStatePolling }, want: "ok: Initialize LinkUp, Initialize LinkUp, 0x30 2 0x31", ibsim: "ok: Active Polling, no answer"},
}

// take does the step, and tells what it comes to.
func (s *setStep) take(t *testing.T, c *Client) string {
	t.Helper()
	port := s.port
	if port > 2 || port == 2 && s.to.Route.Hops() == host.Route.Hops() {
		port = 1 // of the one to be set there is none
	}
	info, err := Get[mad.PortInfo](t.Context(), c, s.to, port)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	info.PortState, info.PortPhysicalState = 0, 0
	s.change(&info)
	outcome := "ok"
	answer, err := Set(t.Context(), c, s.to, s.port, info)
	var status *StatusError
	switch {
	case errors.As(err, &status):
		outcome = fmt.Sprintf("%#x", uint16(status.Status))
	case err != nil:
		t.Fatalf("%s: %v", s.name, err)
	default:
		if now, err := Get[mad.PortInfo](t.Context(), c, s.to, s.port); err != nil || now != answer {
			t.Errorf("%s: the answer is %+v, but it is %+v, %v", s.name, answer, now, err)
		}
	}
	near, err := Get[mad.PortInfo](t.Context(), c, leaf, 2)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	outcome += fmt.Sprintf(": %v %v, ", near.PortState, near.PortPhysicalState)
	far, err := Get[mad.PortInfo](t.Context(), c, host, 1)
	if err != nil {
		return outcome + "no answer"
	}
	return outcome + fmt.Sprintf("%v %v, %#x %d %#x", far.PortState, far.PortPhysicalState, uint16(far.LID), far.LMC, uint16(far.MasterSMLID))
}

// pkeys sets blocks of P_Keys and tells what becomes of them. None is of a port that
// a switch does not have: ibsim 0.10 does not survive that.
func pkeys(t *testing.T, c *Client) (outcome []string) {
	t.Helper()
	for _, tt := range []struct {
		to       mad.Addr
		modifier uint32
	}{{host, 0}, {host, 1}, {host, 100}, {leaf, 0}, {leaf, 2 << 16}, {leaf, 2<<16 | 99}} {
		want := mad.PKeyTable{PKey: [32]mad.PKey{0xffff, 0x8001, 7: 0x7002}}
		answer, err := Set(t.Context(), c, tt.to, tt.modifier, want)
		got, getErr := Get[mad.PKeyTable](t.Context(), c, tt.to, tt.modifier)
		kept := err == nil && getErr == nil && answer == want && got == want
		var status *StatusError
		switch {
		case errors.As(err, &status):
			outcome = append(outcome, fmt.Sprintf("%#x", uint16(status.Status)))
		case err != nil:
			t.Fatal(err)
		default:
			outcome = append(outcome, fmt.Sprint("kept ", kept))
		}
	}
	return outcome
}

var wantPKeys = "[kept true kept true 0x1c kept true kept true 0x1c]"

// TestSetSteps takes the steps on a simulated fabric.
func TestSetSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sub, err := topo.Parse("netlist", []byte(ibsimtest.TwoLevel(2, 1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := sim.New(sub, sim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		from, _ := sub.PortByName("host 2")
		dev, err := f.Device(from.Node, from.Num)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewClient(dev, Config{Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := fmt.Sprint(pkeys(t, c)); got != wantPKeys {
			t.Errorf("P_Keys: %s, want %s", got, wantPKeys)
		}
		for _, s := range setSteps {
			if got := s.take(t, c); got != s.want {
				t.Errorf("%s: %s, want %s", s.name, got, s.want)
			}
		}
	})
}

// TestIbsimSetSteps takes them on ibsim, where the subnet has been brought up by
// OpenSM, which then goes.
func TestIbsimSetSteps(t *testing.T) {
	b := ibsimtest.Start(t, ibsimtest.TwoLevel(2, 1, 2), "H-0001")
	b.KillOpenSM()
	dev, err := ibsim.Open(t.Context(), ibsim.Config{Socket: b.Socket, Node: "H-0002"})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	c, err := NewClient(dev, Config{Timeout: 300 * time.Millisecond, Retries: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := fmt.Sprint(pkeys(t, c)); got != wantPKeys {
		t.Errorf("P_Keys: %s, want %s", got, wantPKeys)
	}
	for _, s := range setSteps {
		want := s.want
		if s.ibsim != "" {
			want = s.ibsim
		}
		if got := s.take(t, c); got != want {
			t.Errorf("%s: %s, want %s", s.name, got, want)
		}
	}
}
