package softmad_test

import (
	"testing"

	"github.com/ibsm/ibsm/port/porttest"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/softmad/softmadtest"
)

// bench is softmad over the in-memory link. It has no exceptions.
var bench = porttest.Bench{
	Open:       func(t testing.TB) porttest.Pair { return openPair(t, nil) },
	KernelRMPP: true,
	UserRMPP:   true,
	Silence:    true,
	Serves:     true,
	QP0:        true,
	IsSM:       true,
	Virtual:    true,
}

func openPair(t testing.TB, hook softmadtest.Hook) porttest.Pair {
	la, lb := softmadtest.NewPair(hook)
	return porttest.Pair{
		A: newDevice(t, la), B: newDevice(t, lb),
		ToA: la.Addr(), ToB: lb.Addr(),
		Remove: la.Remove,
	}
}

func newDevice(t testing.TB, l softmad.Link) *softmad.Device {
	t.Helper()
	d, err := softmad.NewDevice(l, softmad.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestContract(t *testing.T) { porttest.RunContract(t, bench) }

func TestTiming(t *testing.T) { porttest.RunTiming(t, bench) }
