package endpoint

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/topo"
	"github.com/ibsm/ibsm/ucma"
)

// From one host to the others, by IP address and by GID, on both dialects: what is
// sent comes back, and nothing is left when all is closed, or the bubble would not
// end.
func TestSimCM(t *testing.T) {
	for _, dialect := range []*ucma.Dialect{ucma.Linux, ucma.Illumos} {
		t.Run(dialect.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dev, err := Open(t.Context(), "sim:demo#h2")
				if err != nil {
					t.Fatal(err)
				}
				defer dev.Close()
				cm, err := Config{}.OpenCM(t.Context(), dev, CMConfig{Dialect: dialect})
				if err != nil {
					t.Fatal(err)
				}
				defer cm.Close()
				admin, err := sa.NewClient(dev, sa.Config{})
				if err != nil {
					t.Fatal(err)
				}
				defer admin.Close()
				// A kernel that gets a request for a GID takes what begins otherwise for an
				// IP header (cma.c, cma_save_net_info).
				const hello = "\x00\x00hello"
				for _, host := range []string{"h1", "h2", "h8"} { // the SM's, the own, another
					h, err := sa.NewResolver(admin).Resolve(t.Context(), mad.MustParseAddr(host))
					if err != nil {
						t.Fatal(err)
					}
					port, _ := dev.(*simDevice).simulation.sub.PortByGID(h.GID)
					targets := []ucma.Sockaddr{{IP: netip.AddrPortFrom(port.IP, EchoPort)}}
					if dialect == ucma.Linux {
						targets = append(targets, ucma.IBAddr(h.GID, 0xffff, ucma.PortSpaceTCP, EchoPort))
					}
					for _, to := range targets {
						for _, path := range []ucma.PathSource{nil, admin} {
							start := time.Now()
							c, err := ucma.Opener(cm.Open).Connect(t.Context(), ucma.Target{Addr: to}, ucma.ConnectConfig{Path: path, PrivateData: []byte(hello)})
							if err != nil {
								t.Fatalf("%s at %v: %v", host, to, err)
							}
							if string(c.PrivateData) != hello {
								t.Errorf("%s at %v: %q came back", host, to, c.PrivateData)
							}
							if err := errors.Join(c.Disconnect(t.Context()), c.Close()); err != nil {
								t.Errorf("%s at %v: %v", host, to, err)
							}
							if d := time.Since(start); d != 0 {
								t.Errorf("%s at %v took %v", host, to, d)
							}
						}
					}
				}
			})
		})
	}
}

// A host that cannot be started leaves nothing, and what the device says of it is
// of the kinds that ucma.Device has; after Close none is started.
func TestSimCMWake(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, s *simCM, h8 *topo.Port) error
		want  error
	}{
		{"closed", func(_ *testing.T, s *simCM, _ *topo.Port) error { return s.Close() }, ucma.ErrClosed},
		{"cannot listen", func(_ *testing.T, s *simCM, _ *topo.Port) error { s.stop(); return nil }, ucma.EHOSTUNREACH},
		{"has a CM of another", func(t *testing.T, s *simCM, h8 *topo.Port) error {
			other, err := s.host(h8, nil)
			if err == nil {
				t.Cleanup(func() { other.Close() })
			}
			return err
		}, ucma.EHOSTUNREACH},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dev, err := Open(t.Context(), "sim:demo#h2")
				if err != nil {
					t.Fatal(err)
				}
				cm, err := OpenCM(t.Context(), dev, CMConfig{})
				if err != nil {
					t.Fatal(err)
				}
				file, err := cm.Open()
				if err != nil {
					t.Fatal(err)
				}
				s := cm.(*simCM)
				var id ucma.CreateIDResp
				if err := ucma.Do(file, ucma.CreateID{UID: 1, PS: ucma.PortSpaceTCP}, &id); err != nil {
					t.Fatal(err)
				}
				h8, ok := s.simulation.sub.PortByName("h8")
				if !ok {
					t.Fatal("the fabric has no h8")
				}
				if err := tt.spoil(t, s, h8); err != nil {
					t.Fatal(err)
				}
				before := len(s.hosts)
				err = ucma.Do(file, ucma.ResolveAddr{ID: id.ID, Dst: ucma.Sockaddr{IP: netip.AddrPortFrom(h8.IP, EchoPort)}, Timeout: time.Second}, nil)
				if !errors.Is(err, tt.want) {
					t.Errorf("RESOLVE_ADDR: %v, want %v", err, tt.want)
				}
				if len(s.hosts) != before {
					t.Errorf("%d hosts, before it were %d", len(s.hosts), before)
				}
				if err := errors.Join(cm.Close(), dev.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
