package ucma_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// The tests named TestKernel... run in the guests of the kernel rig, where fd00::1 is
// the address of a RoCE device, which talks to itself.

func kernel(t *testing.T) (ucma.Opener, context.Context) {
	t.Helper()
	if os.Getenv("IBSM_KERNEL") == "" {
		t.Skip("runs on a kernel of its own: make test-kernel RUN=" + t.Name())
	}
	// A slow machine has the CM send MRAs, after which it waits for 69 s longer.
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
	t.Cleanup(cancel)
	return func() (ucma.Device, error) { return ucma.Open(ucma.Config{}) }, ctx
}

var roceGID = mad.GID(netip.MustParseAddr("fd00::1").As16())

func roceAddr(port uint16) ucma.Sockaddr {
	return ucma.Sockaddr{IP: netip.AddrPortFrom(netip.MustParseAddr("fd00::1"), port)}
}

// serve accepts n requests, until the peer ends each.
func serve(ctx context.Context, t testing.TB, l *ucma.Listener, n int) *sync.WaitGroup {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			r, err := l.Next(ctx)
			if err != nil {
				t.Errorf("next: %v", err)
				return
			}
			c, err := r.Accept(ctx, ucma.AcceptConfig{PrivateData: append([]byte("re: "), r.PrivateData...)})
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(c.Wait(ctx), c.Disconnect(ctx), c.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	return &all
}

// The whole flow, by the kernel's route and by a path that is set.
func TestKernelFlow(t *testing.T) {
	open, ctx := kernel(t)
	l, err := open.Listen(ctx, roceAddr(0), ucma.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	path := mad.PathRecord{
		ServiceID: 0x1060000, SGID: roceGID, DGID: roceGID, HopLimit: 3, TClass: 0x20, Reversible: true, NumbPath: 1, PKey: 0xffff, QoSClass: 1, SL: 0,
		MTUSelector: mad.SelectorExactly, MTU: mad.MTU512, RateSelector: mad.SelectorExactly, Rate: 3, PacketLifeTimeSelector: mad.SelectorExactly,
		PacketLifeTime: 17, Preference: 1, SLID: 1, DLID: 2,
	}
	for name, fed := range map[string]*mad.PathRecord{"kernel's route": nil, "own path": &path} {
		t.Run(name, func(t *testing.T) {
			served := serve(ctx, t, l, 1)
			c, err := open.Connect(ctx, ucma.Target{Addr: l.Addr}, ucma.ConnectConfig{PathRecord: fed, PrivateData: []byte("hello")})
			if err != nil {
				t.Fatal(err)
			}
			if string(c.PrivateData) != "re: hello" {
				t.Errorf("private data %q", c.PrivateData)
			}
			if fed != nil && (c.Path.MTU != fed.MTU || c.Path.HopLimit != fed.HopLimit || c.Path.DLID != 0) {
				t.Errorf("path %+v", c.Path)
			}
			start := time.Now()
			if err := errors.Join(c.Disconnect(ctx), c.Close()); err != nil {
				t.Error(err)
			}
			served.Wait()
			if took := time.Since(start); took > 9*time.Second { // a kernel complains of ids after 10 s
				t.Errorf("the end took %v", took)
			}
			for _, s := range c.Steps() {
				t.Logf("%-16s %-80s %v", s.Name, s.Detail, s.Duration)
			}
		})
	}
	if got := l.Stats(); got.Unknown+got.Unclaimed+got.Missing+got.Refused != 0 {
		t.Errorf("stats %+v", got)
	}
}

func TestKernelFlowFails(t *testing.T) {
	open, ctx := kernel(t)
	l, err := open.Listen(ctx, roceAddr(0), ucma.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rejected := make(chan error, 1)
	go func() {
		r, err := l.Next(ctx)
		if err == nil {
			err = r.Reject(ctx, 0, []byte("busy"))
		}
		rejected <- err
	}()
	_, err = open.Connect(ctx, ucma.Target{Addr: l.Addr}, ucma.ConnectConfig{})
	var refused *ucma.RejectError
	if !errors.As(err, &refused) || refused.Reason != mad.RejectConsumerDefined || string(refused.PrivateData) != "busy" {
		t.Errorf("rejected: %v", err)
	}
	if err := <-rejected; err != nil {
		t.Error(err)
	}
	for name, tt := range map[string]struct {
		addr ucma.Sockaddr
		cfg  ucma.ConnectConfig
		step string
		ok   func(error) bool
	}{
		"no listener": {roceAddr(1), ucma.ConnectConfig{}, ucma.StepConnect, func(err error) bool {
			return errors.As(err, &refused) && refused.Reason == mad.RejectInvalidServiceID
		}},
		"nobody's address": {ucma.Sockaddr{IP: netip.MustParseAddrPort("[fd00::99]:1")}, ucma.ConnectConfig{}, ucma.StepResolveAddr, func(err error) bool {
			var e *ucma.EventError
			return errors.As(err, &e) && e.Event == ucma.EventAddrError
		}},
		"foreign P_Key": {roceAddr(1), ucma.ConnectConfig{PathRecord: &mad.PathRecord{SGID: roceGID, DGID: roceGID, PKey: 0x1234}}, ucma.StepConnect,
			func(err error) bool { return errors.Is(err, ucma.ENOENT) }},
		"no datagram listener": {roceAddr(1), ucma.ConnectConfig{PortSpace: ucma.PortSpaceUDP}, ucma.StepConnect, func(err error) bool {
			var u *ucma.UnreachableError
			return errors.As(err, &u) && u.SIDRStatus == mad.SIDRStatusUnsupported
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open.Connect(ctx, ucma.Target{Addr: tt.addr}, tt.cfg)
			var failed *ucma.StepError
			if !errors.As(err, &failed) || failed.Step != tt.step || !tt.ok(err) {
				t.Errorf("error %v", err)
			}
			t.Log(err)
		})
	}
}

func TestKernelDatagram(t *testing.T) {
	open, ctx := kernel(t)
	l, err := open.Listen(ctx, roceAddr(0), ucma.ListenConfig{PortSpace: ucma.PortSpaceUDP})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan *ucma.Connection, 1)
	go func() {
		defer close(accepted)
		r, err := l.Next(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		c, err := r.Accept(ctx, ucma.AcceptConfig{})
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- c
	}()
	c, err := open.Connect(ctx, ucma.Target{Addr: l.Addr}, ucma.ConnectConfig{PortSpace: ucma.PortSpaceUDP})
	if err != nil {
		t.Fatal(err)
	}
	peer := <-accepted
	if peer == nil || c.RemoteQPN != peer.LocalQPN || c.UD.QKey != 0x01234567 || !c.UD.AH.IsGlobal { // RDMA_UDP_QKEY
		t.Errorf("remote queue pair %+v", c.UD)
	}
	if err := errors.Join(c.Close(), peer.Close()); err != nil {
		t.Error(err)
	}
}

func TestKernelMulticast(t *testing.T) {
	open, ctx := kernel(t)
	m, err := open.Join(ctx, ucma.Sockaddr{IP: netip.MustParseAddrPort("239.1.2.3:0")},
		ucma.JoinConfig{Source: ucma.Sockaddr{IP: netip.MustParseAddrPort("192.0.2.1:0")}})
	if err != nil {
		t.Fatal(err)
	}
	if want := mad.GID(netip.MustParseAddr("::ffff:239.1.2.3").As16()); m.MGID != want || m.QPN != 0xffffff {
		t.Errorf("membership %+v, want MGID %v", m, want)
	}
	if err := m.Leave(ctx); err != nil {
		t.Error(err)
	}
	if got, want := names(m.Steps()), []string{"open", "create id", "bind", "join", "leave", "destroy id"}; !slices.Equal(got, want) {
		t.Errorf("steps %v, want %v", got, want)
	}
}
