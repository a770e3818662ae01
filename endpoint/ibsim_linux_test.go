package endpoint

import (
	"errors"
	"testing"

	"github.com/ibsm/ibsm/ibsim"
	"github.com/ibsm/ibsm/ibsim/ibsimtest"
)

func TestFakeIbsim(t *testing.T) {
	f := ibsimtest.NewFake(t,
		ibsimtest.FakeNode{ID: "Hca1", Desc: "host 1 HCA-1", GUID: 0x100000, LID: 1},
		ibsimtest.FakeNode{ID: "H-0002c9:x", Desc: "host 2 HCA-1", GUID: 0x100010, LID: 2})
	t.Setenv("IBSIM_SOCKNAME", f.Socket)
	for _, tt := range []struct{ endpoint, node, names, why string }{
		{"ibsim:", "Hca1", "ibsim:Hca1", "ibsim's netlist begins with its node"},
		{"ibsim", "Hca1", "ibsim:Hca1", "ibsim's netlist begins with its node"},
		{"ibsim:Hca1", "Hca1", "ibsim:Hca1", "the endpoint names its node"},
		{"ibsim: H-0002c9:x", "H-0002c9:x", "ibsim:H-0002c9:x", "the endpoint names its node"},
		{"ibsim:host 2 HCA-1", "H-0002c9:x", "ibsim:H-0002c9:x", "the endpoint names its node"},
	} {
		dev, err := Open(t.Context(), tt.endpoint)
		if err != nil {
			t.Fatal(err)
		}
		info, err := dev.Info()
		if err != nil || info.Device != tt.node || f.Clients() != 1 {
			t.Errorf("%s: node %q, %v, %d clients; want %q and 1", tt.endpoint, info.Device, err, f.Clients(), tt.node)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		choices, err := List(t.Context(), tt.endpoint)
		if err != nil {
			t.Fatal(err)
		}
		if len(choices) != 1 || choices[0].Endpoint != tt.names || choices[0].Why != tt.why || !choices[0].Chosen {
			t.Errorf("%s: %+v, want one choice %s: %s", tt.endpoint, choices, tt.names, tt.why)
		}
		if f.Clients() != 0 {
			t.Fatalf("%s: %d clients are left", tt.endpoint, f.Clients())
		}
	}
	dev, err := Open(t.Context(), "ibsim:h3")
	var e *Error
	if !errors.Is(err, ibsim.ErrNoNode) || !errors.As(err, &e) || e.Endpoint != "ibsim:h3" || dev != nil {
		t.Errorf("device %v, error %v; want none, and an *Error that is ibsim.ErrNoNode", dev, err)
	}
	f.Stop()
	if _, err := List(t.Context(), "ibsim:"); !errors.Is(err, ibsim.ErrNotRunning) {
		t.Errorf("error %v, want ibsim.ErrNotRunning", err)
	}
}
