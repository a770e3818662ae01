package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// command is QEMU for one guest: the kernel's console goes to stderr, the
// second serial line to stdout.
func command(k kernel, initrd string) []string {
	return []string{
		qemu,
		"-accel", "tcg,thread=multi", // /dev/kvm may open and yet hang the guest
		"-cpu", "max", "-smp", "2", "-m", "1024",
		"-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
		"-kernel", k.vmlinuz, "-initrd", initrd,
		"-append", strings.Join([]string{
			"console=ttyS0",
			"loglevel=5",                // warnings and worse
			"panic=-1", "panic_on_oops", // end at once: with -no-reboot QEMU exits
			// On a busy host an emulated timer may seem broken and a CPU stuck.
			"no_timer_check", "nowatchdog", "rcupdate.rcu_cpu_stall_suppress=1",
			// Else the kernel, once it trusts this clock, patches the code that its idle
			// CPUs run, and QEMU's emulation of that has crashed it (Oops: int3).
			"tsc=unstable",
			"mitigations=off", // nothing to protect, and faster
		}, " "),
		"-serial", "file:/dev/stderr",
		"-serial", "file:/dev/stdout",
	}
}

// boot runs a guest to its end, or to the limit, and shows the tests' output as it
// comes. Everything that the guest says is also kept in files.
func (r *rig) boot(ctx context.Context, g guest, limit time.Duration) (*report, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	rep := &report{started: time.Now()}

	cmd := exec.CommandContext(ctx, g.argv[0], g.argv[1:]...)
	cmd.ExtraFiles = g.files
	cmd.WaitDelay = time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil && context.Cause(ctx) == errPeerGone {
		rep.ended = errPeerGone.Error()
		return rep, nil
	} else if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	var consoleErr, outputErr error
	wg.Go(func() {
		consoleErr = eachLine(stderr, filepath.Join(g.logs, "console.log"), rep.consoleLine)
	})
	wg.Go(func() {
		outputErr = eachLine(stdout, filepath.Join(g.logs, "output.log"), func(line string) {
			if show, ok := rep.outputLine(line); ok {
				r.printf("%-6s | %s\n", g.name, show)
			}
		})
	})
	wg.Wait()
	err = cmd.Wait()
	rep.took = time.Since(rep.started)
	switch {
	case context.Cause(ctx) == errPeerGone:
		rep.ended = errPeerGone.Error()
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case ctx.Err() != nil:
		rep.ended = fmt.Sprintf("it hung: stopped after %v", limit)
	case err != nil:
		rep.ended = fmt.Sprintf("%s: %v", g.argv[0], err)
	}
	return rep, errors.Join(consoleErr, outputErr)
}

// eachLine hands on every line as it comes, and keeps all of it in a file.
func eachLine(r io.Reader, file string, line func(string)) error {
	os.Remove(file) // and do not write into that of another rig
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(io.TeeReader(r, f))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line(s.Text())
	}
	if s.Err() != nil {
		io.Copy(f, r) // a guest that cannot write does not end
		return s.Err()
	}
	return f.Close()
}
