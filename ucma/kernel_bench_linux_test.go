package ucma_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibsm/ibsm/ucma"
)

// BenchmarkKernelConnect makes connections of the kernel's port to itself, one after
// another or 100 at once, each from nothing to nothing: made, established, ended and
// destroyed. In turn with it runs librdmacm's cmtime, where that is, with as many at
// once. The two do not do the same:
//
//   - cmtime makes queue pairs. Its step "create qp" is not counted, but bringing them
//     to RTS is a part of its "connect", on both sides.
//   - cmtime does each step with all connections before the next, on one file of the
//     device. Ours go on at their own pace, each on a file of its own.
//   - Ours ask for addresses and the path in use.
//   - One by one, each of cmtime's is the first of a new process, and opens the device for
//     verbs. The start of the process is not in its times.
func BenchmarkKernelConnect(b *testing.B) {
	if os.Getenv("IBSM_KERNEL") == "" {
		b.Skip("runs on a kernel of its own: go -C internal/kernelrig run . -kernel 6.12 -with cmtime -bench " + b.Name())
	}
	b.Run("one-by-one", func(b *testing.B) { benchmarkConnect(b, 1, 50) })
	b.Run("100-at-once", func(b *testing.B) { benchmarkConnect(b, 100, 100) })
}

// benchmarkConnect runs cmtime each time that so many connections have been made.
func benchmarkConnect(b *testing.B, atOnce, cmtimeAfter int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	open := ucma.Opener(func() (ucma.Device, error) { return ucma.Open(ucma.Config{}) })
	l, err := open.Listen(ctx, roceAddr(0), ucma.ListenConfig{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	_, missing := exec.LookPath("cmtime")
	var peers int
	var peersTook time.Duration
	b.ResetTimer()
	for done := 0; done < b.N; {
		n := min(atOnce, b.N-done)
		served := serve(ctx, b, l, n)
		var clients sync.WaitGroup
		for range n {
			clients.Go(func() {
				c, err := open.Connect(ctx, ucma.Target{Addr: l.Addr}, ucma.ConnectConfig{ResponderResources: 1, InitiatorDepth: 1})
				if err == nil {
					err = errors.Join(c.Disconnect(ctx), c.Close())
				}
				if err != nil {
					b.Error(err)
				}
			})
		}
		clients.Wait()
		b.StopTimer()
		served.Wait()
		done += n
		if missing == nil && done%cmtimeAfter == 0 {
			took, err := cmtime(ctx, roceGID.String(), atOnce)
			if err != nil {
				b.Fatal(err)
			}
			peers += atOnce
			peersTook += took
		}
		b.StartTimer()
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "conns/s")
	if peers > 0 {
		b.ReportMetric(float64(peers)/peersTook.Seconds(), "peer-conns/s")
	}
}

// cmtimeStep is a line of what cmtime prints: "connect      :      378.16 ...", the
// milliseconds for all connections together (librdmacm/examples/cmtime.c).
var cmtimeStep = regexp.MustCompile(`(?m)^([a-z ]+?) *: +([0-9.]+) `)

// cmtime makes connections to a server of its own, and gives the time of all steps
// but that of making queue pairs.
func cmtime(ctx context.Context, addr string, conns int) (took time.Duration, err error) {
	// Without -b it does not hear at an IPv6 address. Version 44 cannot serve a second
	// client: it makes no queue pair after it has destroyed its last id.
	server := exec.CommandContext(ctx, "cmtime", "-b", addr)
	if err := server.Start(); err != nil {
		return 0, err
	}
	defer server.Wait()
	defer server.Process.Kill()
	for {
		client := exec.CommandContext(ctx, "cmtime", "-b", addr, "-s", addr, "-c", strconv.Itoa(conns))
		out, err := client.CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("%s: %w\n%s", client, err, out)
		}
		if strings.Contains(string(out), "event: RDMA_CM_EVENT_REJECTED, error: 8\n") {
			continue // the server does not listen yet
		}
		if strings.Contains(string(out), "event:") { // a failure, which it shows and then exits with 0
			return 0, fmt.Errorf("%s could not connect\n%s", client, out)
		}
		steps := map[string]bool{}
		for _, m := range cmtimeStep.FindAllStringSubmatch(string(out), -1) {
			ms, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", client, err)
			}
			steps[m[1]] = true
			if m[1] != "create qp" {
				took += time.Duration(ms * float64(time.Millisecond))
			}
		}
		for _, step := range []string{"create qp", "connect", "disconnect", "destroy"} {
			if !steps[step] {
				return 0, fmt.Errorf("%s shows no time for %q\n%s", client, step, out)
			}
		}
		return took, nil
	}
}
