package softcma_test

import (
	"net/netip"
	"testing"

	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/softcma"
	"github.com/ibsm/ibsm/topo"
	"github.com/ibsm/ibsm/ucma"
	"github.com/ibsm/ibsm/ucma/ucmatest"
)

// The suite that the real kernel plays, on a host that looks like RoCE and talks to
// itself.
func TestConformance(t *testing.T) {
	ucmatest.Run(t, ucmatest.Bench{Host: roceHost, Virtual: true, Except: []ucmatest.Exception{
		{Name: "access", Value: "0xe", Why: "no RDMA FLUSH, which no adapter had before 2023"},
	}})
}

func roceHost(t testing.TB) func() (ucmatest.File, error) {
	sub, err := topo.Generate("demo")
	if err != nil {
		t.Fatal(err)
	}
	fabric, err := sim.New(sub, sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fabric.Close() })
	at, _ := sub.PortByName("h2")
	dev, err := fabric.Device(at.Node, at.Num)
	if err != nil {
		t.Fatal(err)
	}
	p, err := dev.OpenKernel()
	if err != nil {
		t.Fatal(err)
	}
	host, err := softcma.New(p, dev, softcma.Config{
		Addrs: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("fd00::1/64")}, RoCE: true,
		AckDelay: 15, // as rxe (RXE_LOCAL_CA_ACK_DELAY)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	return func() (ucmatest.File, error) {
		f, err := host.Open(ucma.Linux)
		if err != nil {
			return ucmatest.File{}, err
		}
		return ucmatest.File{Device: f, FD: f.(*softcma.File).FD()}, nil
	}
}
