package ucma_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ibsm/ibsm/ucma/ucmatest"
)

// Two kernels talk to each other: everything that each side says arrives at the other,
// and connections come to their end. internal/system reads what goes over the network
// meanwhile, and compares it with what our own CM sends.
func TestKernelPairConnect(t *testing.T) {
	guest := os.Getenv("IBSM_KERNEL_PAIR")
	if guest == "" {
		t.Skip("runs in two virtual machines at the same time: make test-kernel RUN=" + t.Name())
	}
	open, ctx := kernel(t)
	act := func(s *ucmatest.Scene) error { return s.Connect(ctx, open) }
	if guest == "2" {
		all, err := ucmatest.ListenPair(ctx, open)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := all.Close(); err != nil {
				t.Error(err)
			}
		}()
		act = func(s *ucmatest.Scene) error { return all.Serve(ctx, s) }
	}
	for _, s := range ucmatest.Scenes {
		t.Run(s.Name, func(t *testing.T) {
			if out, err := exec.CommandContext(ctx, "meet", s.Name).CombinedOutput(); err != nil {
				t.Fatalf("meet: %v\n%s", err, out)
			}
			start := time.Now()
			if err := act(s); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took > 9*time.Second { // a kernel waits 10 s for an id that it cannot end
				t.Errorf("it took %v", took)
			}
		})
	}
}
