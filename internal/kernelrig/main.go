// Command kernelrig runs the tests named TestKernel... on real Linux kernels: it
// boots Debian's in virtual machines with a soft RoCE device, and no hardware
// is involved. docs/testing.md says how to use it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ibsm/ibsm/internal/kernelrig/plan"
)

const qemu = "qemu-system-x86_64"

// toBoot is what a guest may take on top of the tests' limit. On a machine of its
// own it needs seconds.
const toBoot = time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	r := rig{out: os.Stdout}
	var kernel, run string
	var fetch bool
	flag.BoolVar(&fetch, "fetch", false, "get the kernels that are not in the cache, and stop")
	flag.StringVar(&kernel, "kernel", "", "only this kernel `series`, such as 6.12")
	flag.StringVar(&run, "run", "", "only the tests that match this `regexp`, as for go test")
	flag.DurationVar(&r.limit, "limit", 4*time.Minute, "for all tests on one kernel")
	flag.StringVar(&r.root, "root", "../..", "the tree whose tests are run")
	flag.Parse()

	all := series
	if kernel != "" {
		if !slices.Contains(series, kernel) {
			fmt.Fprintf(os.Stderr, "kernelrig: no kernel %q here, only %s\n", kernel, strings.Join(series, ", "))
			os.Exit(2)
		}
		all = []string{kernel}
	}
	var err error
	if fetch {
		err = r.fetch(ctx, all)
	} else {
		err = r.test(ctx, all, run)
	}
	for _, m := range r.missing {
		fmt.Println("kernelrig:", m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernelrig:", err)
		os.Exit(1)
	}
	if len(r.missing) > 0 && !fetch && os.Getenv("IBSM_BENCH") == "all" {
		fmt.Fprintln(os.Stderr, "kernelrig: with IBSM_BENCH=all nothing may be skipped")
		os.Exit(1)
	}
}

// errMissing is something that this machine lacks. It is no failure, unless all
// benches are asked for.
type errMissing struct{ what, remedy string }

func (e errMissing) Error() string {
	return fmt.Sprintf("skipped, for want of %s: %s", e.what, e.remedy)
}

// A rig runs the tests of one tree.
type rig struct {
	root    string
	limit   time.Duration
	missing []errMissing

	mu  sync.Mutex // whole lines on out
	out io.Writer
}

func (r *rig) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format, args...)
}

func (r *rig) test(ctx context.Context, all []string, run string) error {
	if run == "" {
		run = "^TestKernel"
	}
	if _, err := exec.LookPath(qemu); err != nil {
		r.missing = append(r.missing, errMissing{qemu, "'make deps' installs it on Debian"})
		return nil
	}
	var kernels []kernel
	for _, s := range all {
		k, err := cached(s)
		if m, ok := err.(errMissing); ok {
			r.missing = append(r.missing, m)
		} else if err != nil {
			return err
		} else {
			kernels = append(kernels, k)
		}
	}
	if len(kernels) == 0 {
		return nil
	}

	suites, err := find(ctx, r.root, run)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.logs(), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(r.logs(), "run-") // several rigs may run at a time
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	started := time.Now()
	img, err := build(ctx, r.root, work, suites)
	if err != nil {
		return err
	}
	r.printf("built %d test binaries in %v\n", len(suites), time.Since(started).Round(time.Second/10))

	// All at once: a guest that boots keeps one core busy, and tests mostly wait.
	failures := make([]error, len(kernels))
	var wg sync.WaitGroup
	for i, k := range kernels {
		wg.Go(func() { failures[i] = r.testOn(ctx, k, img, run, work) })
	}
	wg.Wait()
	return errors.Join(failures...)
}

// logs is where the last run's logs stay.
func (r *rig) logs() string { return filepath.Join(r.root, ".cache", "kernelrig") }

// testOn runs the tests on one kernel.
func (r *rig) testOn(ctx context.Context, k kernel, img image, run, work string) error {
	started := time.Now()
	initrd := filepath.Join(work, "initramfs-"+k.series)
	p := plan.Plan{Series: k.series, Run: run, Limit: r.limit, Tests: img.tests}
	if err := pack(initrd, img, k, p); err != nil {
		return err
	}
	logs := filepath.Join(r.logs(), k.series)
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	rep, err := r.boot(ctx, k.series, command(k, initrd), r.limit+toBoot, logs)
	if err != nil {
		return err
	}
	reasons := rep.verdict()
	for _, reason := range reasons {
		r.printf("%-4s | FAIL: %s\n", k.series, reason)
	}
	r.printf("%-4s | Linux %s: %d passed, %d failed, %d skipped in %v, of which %v until the device was there\n", k.series,
		rep.release, len(rep.passed), len(rep.failed), len(rep.skipped),
		time.Since(started).Round(time.Second/10), rep.up.Round(time.Second/10))
	if len(reasons) > 0 {
		return fmt.Errorf("failed on %s; its console and output are in %s", k.series, logs)
	}
	return nil
}
