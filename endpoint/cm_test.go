package endpoint

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sa"
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
