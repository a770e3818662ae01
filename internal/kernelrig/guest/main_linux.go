// Command guest is the first process of the kernel rig's virtual machine. It
// loads the modules, makes an RDMA device out of a network one, runs the test
// binaries that the plan names, reports on the second serial line and turns the
// machine off. Called as rdma or meet it is that command.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibsm/ibsm/internal/kernelrig/plan"
)

func main() {
	commands := map[string]func([]string) error{"rdma": rdma, "meet": meetCommand}
	name := filepath.Base(os.Args[0])
	if run, ok := commands[name]; ok {
		if err := run(os.Args[1:]); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
		return
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: only as the first process of the kernel rig's virtual machine")
		os.Exit(2)
	}
	if err := boot(); err != nil {
		// The process's own output is the kernel's console.
		fmt.Fprintln(os.Stderr, "guest:", err)
	}
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func boot() error {
	if err := mountAll(); err != nil {
		return err
	}
	out, err := os.OpenFile("/dev/ttyS1", os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	event := runPlan(out)
	if _, err := out.WriteString(event.Line()); err != nil {
		return err
	}
	return unix.IoctlSetInt(int(out.Fd()), unix.TCSBRK, 1) // waits until the line has sent everything
}

// runPlan does everything between opening the line and the last event.
func runPlan(out io.Writer) (last plan.Event) {
	p, err := readPlan()
	if err == nil {
		err = setUp(p.Pair)
	}
	if err != nil {
		return plan.Event{Broken: err.Error()}
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return plan.Event{Broken: "uname: " + err.Error()}
	}
	report := func(e plan.Event) { io.WriteString(out, e.Line()) }
	report(plan.Event{Release: unix.ByteSliceToString(name.Release[:])})

	deadline := time.Now().Add(p.Limit)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	for _, t := range p.Tests {
		if p.Pair != 0 {
			if err := meet(ctx, p.Pair, fmt.Sprint(t.Package, " ", t.Args)); err != nil {
				return plan.Event{Broken: err.Error()}
			}
		}
		report(plan.Event{Begin: t.Package})
		err := runTest(p, t, time.Until(deadline), out)
		if errors.Is(err, errStuck) {
			return plan.Event{Broken: t.Package + ": " + err.Error()}
		}
		end := &plan.End{Package: t.Package}
		if err != nil {
			end.Failure = err.Error()
		}
		report(plan.Event{End: end})
	}
	if p.Pair != 0 { // the other's last test may need this kernel until it ends
		if err := meet(ctx, p.Pair, "the end"); err != nil {
			return plan.Event{Broken: err.Error()}
		}
	}
	taint, err := taint()
	if err != nil {
		return plan.Event{Broken: err.Error()}
	}
	return plan.Event{Done: &plan.Done{Taint: taint}}
}

func readPlan() (p plan.Plan, err error) {
	b, err := os.ReadFile(plan.Path)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, fmt.Errorf("%s: %w", plan.Path, err)
	}
	return p, nil
}

// grace is what a test binary gets to print its goroutines when its time is up,
// and then again to die when it is killed.
const grace = 5 * time.Second

var errStuck = errors.New("its process does not die: the kernel's console shows where it is blocked")

func runTest(p plan.Plan, t plan.Test, limit time.Duration, out io.Writer) error {
	cmd := exec.Command(t.Binary, append([]string{
		"-test.v=test2json", "-test.paniconexit0", // as go test does
		"-test.timeout=" + max(limit, time.Second).String(), // 0 would mean no limit
	}, t.Args...)...)
	cmd.Dir = t.Dir
	cmd.Env = []string{"PATH=/bin", "HOME=/", "TMPDIR=/tmp", "GOTRACEBACK=all", plan.KernelEnv + "=" + p.Series}
	if p.Pair != 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", plan.PairEnv, p.Pair),
			plan.LocalEnv+"="+wire[p.Pair-1].ip(), plan.PeerEnv+"="+wire[2-p.Pair].ip())
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(limit + grace):
		cmd.Process.Kill()
	}
	select {
	case <-ended:
		return fmt.Errorf("killed after %v", limit+grace)
	case <-time.After(grace):
		// 'w' prints the stacks of all blocked tasks on the console.
		os.WriteFile("/proc/sysrq-trigger", []byte("w"), 0)
		return errStuck
	}
}

func taint() (uint64, error) {
	const file = "/proc/sys/kernel/tainted"
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return n, nil
}
