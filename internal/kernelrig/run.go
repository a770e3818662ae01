package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// errMissing is something that this machine lacks. It is no failure, unless all
// benches are asked for.
type errMissing struct{ what, remedy string }

func (e errMissing) Error() string {
	return fmt.Sprintf("skipped, for want of %s: %s", e.what, e.remedy)
}

// A rig runs the tests of one tree.
type rig struct {
	root     string
	run      string // pattern of tests, "" for all
	pairOnly bool
	pcap     string // "" keeps it beside the logs
	bench    string // pattern of benchmarks, which then are run instead
	with     []string
	args     []string // of the test binaries
	limit    time.Duration
	missing  []errMissing

	mu  sync.Mutex // whole lines on out
	out io.Writer
}

func (r *rig) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format, args...)
}

func (r *rig) test(ctx context.Context, all []string) error {
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

	suites, alone, pair, err := r.choose(ctx)
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
	for _, name := range r.with {
		files, err := program(ctx, name)
		if m, ok := err.(errMissing); ok {
			r.missing = append(r.missing, m)
		} else if err != nil {
			return err
		}
		img.files = append(img.files, files...)
	}
	r.printf("built %d test binaries in %v\n", len(suites), time.Since(started).Round(time.Second/10))

	var failures []error
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := func(run func() error) {
		wg.Go(func() {
			if err := run(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, err)
			}
		})
	}
	for _, k := range kernels {
		// All at once: a guest that boots keeps one core busy, and tests mostly wait.
		if alone != nil {
			start(func() error { return r.runAlone(ctx, k, img, alone, work) })
		}
		if pair != nil {
			start(func() error { return r.runPair(ctx, k, img, pair, work) })
		}
		if r.bench != "" {
			wg.Wait() // what is measured is disturbed by nothing
		}
	}
	wg.Wait()
	return errors.Join(failures...)
}

// choose finds what is to be run, in one guest and in two.
func (r *rig) choose(ctx context.Context) (suites []suite, alone, pair []plan.Test, err error) {
	switch {
	case r.bench != "":
		suites, err = find(ctx, r.root, benchPrefix, r.bench)
		for _, s := range suites {
			alone = append(alone, s.call("bench", s.names, r.bench, append([]string{"-test.run=^$", "-test.benchmem"}, r.args...)...))
		}
	case r.pairOnly:
		suites, err = find(ctx, r.root, pairPrefix, r.run)
		_, pair = split(suites, r.run, r.args)
	default:
		suites, err = find(ctx, r.root, testPrefix, r.run)
		alone, pair = split(suites, r.run, r.args)
	}
	return suites, alone, pair, err
}

// logs is where the last run's logs stay.
func (r *rig) logs() string { return filepath.Join(r.root, ".cache", "kernelrig") }

// A guest is one virtual machine.
type guest struct {
	name  string // for people
	logs  string // folder
	argv  []string
	files []*os.File // open in QEMU from 3 on
}

// prepare packs a guest's file system.
func (r *rig) prepare(k kernel, img image, p plan.Plan, work string) (g guest, err error) {
	g.name = k.series
	if p.Pair != 0 {
		g.name = fmt.Sprintf("%s/%d", k.series, p.Pair)
	}
	g.logs = filepath.Join(r.logs(), g.name)
	if err := os.MkdirAll(g.logs, 0o755); err != nil {
		return g, err
	}
	initrd := filepath.Join(work, strings.ReplaceAll(g.name, "/", "-")+".cpio")
	g.argv = command(k, initrd)
	p.Series, p.Limit = k.series, r.limit
	return g, pack(initrd, img, k, p)
}

func (r *rig) runAlone(ctx context.Context, k kernel, img image, tests []plan.Test, work string) error {
	g, err := r.prepare(k, img, plan.Plan{Tests: tests}, work)
	if err != nil {
		return err
	}
	rep, err := r.boot(ctx, g, r.limit+toBoot)
	if err != nil {
		return err
	}
	return r.judge(g, rep)
}

// errPeerGone ends a guest whose peer ended before its tests did: it would wait in
// vain.
var errPeerGone = errors.New("the other guest of the pair ended early")

// runPair runs the tests in two guests with one link between them.
func (r *rig) runPair(ctx context.Context, k kernel, img image, tests []plan.Test, work string) error {
	pcap := r.pcap
	if pcap == "" {
		pcap = filepath.Join(r.logs(), k.series, "pair.pcap")
	}
	os.Remove(pcap) // and do not write into that of another rig
	ends, err := connected()
	if err != nil {
		return err
	}
	defer ends[0].Close()
	defer ends[1].Close()
	var guests [2]guest
	for i := range guests {
		g, err := r.prepare(k, img, plan.Plan{Pair: i + 1, Tests: tests}, work)
		if err != nil {
			return err
		}
		g.argv = append(g.argv, "-netdev", "socket,id=link,fd=3",
			"-device", fmt.Sprintf("virtio-net-pci,netdev=link,romfile=,mac=52:54:00:00:00:%02x", i+1))
		if i == 0 { // it sees both directions
			g.argv = append(g.argv, "-object", "filter-dump,id=dump,netdev=link,file="+strings.ReplaceAll(pcap, ",", ",,"))
		}
		g.files = []*os.File{ends[i]}
		guests[i] = g
	}

	reports, err := r.bootPair(ctx, guests, r.limit+toBoot)
	if err != nil {
		return err
	}
	if err := errors.Join(r.judge(guests[0], reports[0]), r.judge(guests[1], reports[1])); err != nil {
		return err
	}
	captured, err := os.Stat(pcap)
	if err != nil {
		return err
	}
	const fileHeader = 24 // of pcap
	if captured.Size() <= fileHeader {
		return fmt.Errorf("%s: nothing went between the two guests", pcap)
	}
	return nil
}

// connected makes two sockets with a link between them that loses nothing: datagrams
// of the local kind arrive in their order, or the sender waits.
func connected() (ends [2]*os.File, err error) {
	syscall.ForkLock.RLock() // or a child could be started that keeps them
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return ends, fmt.Errorf("socketpair: %w", err)
	}
	for i, fd := range fds {
		syscall.CloseOnExec(fd)
		ends[i] = os.NewFile(uintptr(fd), "link")
	}
	return ends, nil
}

// bootPair runs two guests to their end.
func (r *rig) bootPair(ctx context.Context, guests [2]guest, limit time.Duration) (reports [2]*report, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var errs [2]error
	var wg sync.WaitGroup
	for i, g := range guests {
		wg.Go(func() {
			reports[i], errs[i] = r.boot(ctx, g, limit)
			if errs[i] != nil || reports[i].done == nil {
				cancel(errPeerGone)
			}
		})
	}
	wg.Wait()
	return reports, errors.Join(errs[:]...)
}

// judge shows how a guest fared.
func (r *rig) judge(g guest, rep *report) error {
	reasons := rep.verdict()
	for _, reason := range reasons {
		r.printf("%-6s | FAIL: %s\n", g.name, reason)
	}
	r.printf("%-6s | Linux %s: %d passed, %d failed, %d skipped in %v, of which %v until the device was there\n", g.name,
		rep.release, len(rep.passed), len(rep.failed), len(rep.skipped),
		rep.took.Round(time.Second/10), rep.up.Round(time.Second/10))
	if len(reasons) > 0 {
		return fmt.Errorf("failed on %s; its console and output are in %s", g.name, g.logs)
	}
	return nil
}
