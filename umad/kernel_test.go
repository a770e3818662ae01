//go:build linux

package umad

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/port/porttest"
)

// The tests named TestKernel... run where IBSM_KERNEL is set: in the guests of the
// kernel rig, or on a machine that one offers for it.

// kernelExceptions says which tests of the suite cannot hold on soft RoCE, where
// a port talks to itself and every packet has a GRH.
var kernelExceptions = map[string]string{
	"ReceiveIntoBuffer": "the test wants a message without GRH",
	"DuplicateResponse": "the test sends a response elsewhere by another LID, but where there is a GRH the kernel compares GIDs (user_mad.c, same_destination)",
}

// kernelPort finds a port that can talk to itself, or skips the test.
func kernelPort(t testing.TB) (LocalPort, mad.AddressVector) {
	t.Helper()
	if os.Getenv("IBSM_KERNEL") == "" {
		t.Skip("runs on a kernel of its own: make test-kernel RUN=" + t.Name())
	}
	ports, err := Ports(Config{})
	if err != nil {
		t.Fatal(err)
	}
	why := "there is no RDMA device"
	for _, p := range ports {
		to, err := itself(&p)
		if err == nil {
			return p, to
		}
		why = fmt.Sprintf("%s/%d: %v", p.Device, p.Port, err)
	}
	t.Fatal(why)
	panic("unreachable")
}

// itself is how a port addresses its own QP1.
func itself(p *LocalPort) (to mad.AddressVector, err error) {
	switch {
	case p.UMAD == "":
		return to, errors.New(p.Without)
	case p.State != mad.PortStateActive:
		return to, fmt.Errorf("its state is %v", p.State)
	case p.LinkLayer == port.LinkInfiniBand:
		return mad.AddressVector{LID: p.LID, QPN: mad.QPGSI}, nil
	}
	// Of IPv4 addresses the kernel does not match answers. The link-local GID may
	// still be looked for twice.
	i := slices.IndexFunc(p.GIDs, func(g mad.GID) bool {
		return !g.IsZero() && g.Prefix() != 0 && g.Prefix() != mad.DefaultGIDPrefix
	})
	if i < 0 {
		return to, errors.New("its network device has no IPv6 address of its own (ip address add fd00::1/64 nodad dev DEVICE)")
	}
	return mad.AddressVector{QPN: mad.QPGSI, HasGRH: true, GRH: mad.GRH{GID: p.GIDs[i], GIDIndex: uint8(i), HopLimit: 64}}, nil
}

func openLocal(t testing.TB, cfg Config, p *LocalPort) *Device {
	t.Helper()
	d, err := Open(cfg, p.Device, p.Port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// kernelBench is a port that talks to itself.
func kernelBench(t testing.TB, cfg Config) porttest.Bench {
	p, to := kernelPort(t)
	b := porttest.Bench{
		Open: func(t testing.TB) porttest.Pair {
			return porttest.Pair{A: openLocal(t, cfg, &p), B: openLocal(t, cfg, &p), ToA: to, ToB: to}
		},
		KernelRMPP: true,
		UserRMPP:   !cfg.OldRegister,
		Silence:    true,
		Serves:     true,
		Tick:       kernelTick,
		QP0:        p.LinkLayer == port.LinkInfiniBand,
		IsSM:       p.ISSM != "",
	}
	if p.LinkLayer == port.LinkEthernet {
		b.Except = kernelExceptions
	}
	return b
}

func TestKernelContract(t *testing.T) { porttest.RunContract(t, kernelBench(t, Config{})) }

func TestKernelTiming(t *testing.T) { porttest.RunTiming(t, kernelBench(t, Config{})) }

func TestKernelOldContract(t *testing.T) {
	porttest.RunContract(t, kernelBench(t, Config{OldHeader: true, OldRegister: true}))
}

func TestKernelInfo(t *testing.T) {
	p, to := kernelPort(t)
	info, err := openLocal(t, Config{}, &p).Info()
	if err != nil || info.State != mad.PortStateActive || info.PhysState != mad.PortPhysStateLinkUp || info.NodeGUID == 0 ||
		info.PortGUID == 0 || info.Rate == mad.RateNone || len(info.PKeys) == 0 || info.CapMask&mad.CapIsCommunicationManagementSupported == 0 {
		t.Errorf("info %+v, %v", info, err)
	}
	if to.HasGRH && (info.LinkLayer != port.LinkEthernet || p.GIDTypes[to.GRH.GIDIndex] != "RoCE v2") {
		t.Errorf("link layer %v, GID types %q", info.LinkLayer, p.GIDTypes)
	}
	if len(p.Notes) != 0 {
		t.Errorf("attributes that could not be read: %q", p.Notes)
	}
}
