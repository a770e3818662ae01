package system

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ibsm/ibsm/endpoint"
	scripts "github.com/ibsm/ibsm/script"
	"github.com/ibsm/ibsm/ucma"
)

// On a kernel, soft RoCE, quickstart registers, asks itself by umad, and connects by
// the kernel's RDMA CM, to the same port. There is no SA.
func TestKernelScripts(t *testing.T) {
	if os.Getenv("IBSM_KERNEL") == "" {
		t.Skip("runs on a kernel of its own: make test-kernel RUN=" + t.Name())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
	defer cancel()
	dev, err := endpoint.Open(ctx, "umad:rxe0/1")
	if err != nil {
		t.Fatal(err)
	}
	cm, err := endpoint.OpenCM(ctx, dev, endpoint.CMConfig{})
	if err != nil {
		t.Fatal(err)
	}
	open := ucma.Opener(cm.Open)
	l, err := open.Listen(ctx, ucma.Sockaddr{IP: netip.MustParseAddrPort("[fd00::1]:7471")}, ucma.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		r, err := l.Next(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		c, err := r.Accept(ctx, ucma.AcceptConfig{PrivateData: r.PrivateData})
		if err == nil {
			err = errors.Join(c.Wait(ctx), c.Disconnect(ctx), c.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
	env := scripts.Env{Device: dev, Provides: []string{"rmpp", "cm", "serve"}, CM: func(context.Context) (ucma.Opener, error) { return open, nil }}
	out, steps := perform(t, "quickstart", env, map[string]any{"me": "gid:fd00::1", "peer": "ip:fd00::1"}, nil)
	served.Wait()
	for step, e := range steps {
		if e.Failure != nil {
			t.Errorf("%s: %s", step, why(e.Failure))
		}
	}
	if out.Verdict != scripts.Passed || out.Missing["sa"] != 2 || len(out.Missing) != 1 {
		t.Errorf("%v: %v, missing %v", out.Verdict, out.Counts, out.Missing)
	}
	if err := errors.Join(l.Close(), cm.Close()); err != nil {
		t.Error(err)
	}
}
