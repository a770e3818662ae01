package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/internal/kernelrig/plan"
)

// The lines are as the kernel prints them: kernel/panic.c, lib/bug.c,
// arch/x86/mm/fault.c, arch/x86/kernel/{dumpstack,traps}.c, kernel/hung_task.c,
// kernel/watchdog.c, kernel/rcu/tree_stall.h, lib/ubsan.c, mm/oom_kill.c,
// net/core/dev.c; and what a healthy guest's console shows.
func TestComplaints(t *testing.T) {
	for _, tt := range []struct {
		line string
		want bool
	}{
		{"[    4.034563] Kernel panic - not syncing: sysrq triggered crash", true},
		{"[    3.1] WARNING: CPU: 1 PID: 152 at drivers/infiniband/core/mad.c:2612 ib_cancel_mad+0x1a/0x60 [ib_core]", true},
		{"[    3.1] WARNING: possible circular locking dependency detected", true},
		{"[    3.1] kernel BUG at net/core/skbuff.c:200!", true},
		{"[    3.1] BUG: kernel NULL pointer dereference, address: 0000000000000008", true},
		{"[    3.1] BUG: Bad page state in process umad.test  pfn:12345", true},
		{"[    3.1] BUG: sleeping function called from invalid context at kernel/locking/mutex.c:580", true},
		{"[    3.1] Oops: 0002 [#1] PREEMPT SMP NOPTI", true},
		{"[    3.1] general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1]", true},
		{"[    3.1] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [test:152]", true},
		{"[    3.1] INFO: task test:152 blocked for more than 120 seconds.", true},
		{"[    3.1] rcu: INFO: rcu_preempt self-detected stall on CPU", true},
		{"[    3.1] UBSAN: array-index-out-of-bounds in drivers/infiniband/core/user_mad.c:530:9", true},
		{"[    3.1] Out of memory: Killed process 152 (test) total-vm:1000kB", true},
		{"[    3.1] unregister_netdevice: waiting for v1 to become free. Usage count = 2", true},

		{"[    0.004000] ..MP-BIOS bug: 8254 timer not connected to IO-APIC", false},
		{"[    0.020000] tsc: Unable to calibrate against PIT", false},
		{"[    0.694125] mtrr: your CPUs had inconsistent fixed MTRR settings", false},
		{"[    5.575747] hrtimer: interrupt took 19258410 ns", false},
		{"[    6.1] infiniband umad0: user_mad: process test did not enable P_Key index support.", false},
		{"[   10.147543] reboot: Power down", false},
	} {
		if got := isComplaint(tt.line); got != tt.want {
			t.Errorf("%q: complaint %v, want %v", tt.line, got, tt.want)
		}
	}
}

// said puts together what a guest writes: text, and framework lines and events
// with their mark.
func said(parts ...any) (lines []string) {
	for _, p := range parts {
		switch p := p.(type) {
		case plan.Event:
			lines = append(lines, strings.TrimSuffix(p.Line(), "\n"))
		case string:
			lines = append(lines, p)
		}
	}
	return lines
}

func TestVerdict(t *testing.T) {
	const mark = plan.Mark
	up := plan.Event{Release: "6.12.1"}
	begin := plan.Event{Begin: "umad"}
	end := plan.Event{End: &plan.End{Package: "umad"}}
	done := plan.Event{Done: &plan.Done{}}
	runs := mark + "=== RUN   TestKernelA"
	passes := mark + "--- PASS: TestKernelA (0.01s)"

	for name, tt := range map[string]struct {
		output  []string
		console []string
		ended   string
		want    []string // what the reasons begin with
	}{
		"good": {
			output: said(up, begin, runs, passes, "PASS", end, done),
		},
		"subtests are part of their test": {
			output: said(up, begin, runs, mark+"=== RUN   TestKernelA/x", mark+"    --- SKIP: TestKernelA/x (0.00s)", passes, end, done),
		},
		"a benchmark": {
			output: said(up, begin, "goos: linux", mark+"=== RUN   BenchmarkKernelA", "BenchmarkKernelA", "BenchmarkKernelA/x-2  \t     10\t 786156937 ns/op\t 272.5 conns/s", "PASS", end, done),
		},
		"a benchmark fails": {
			output: said(up, begin, mark+"=== RUN   BenchmarkKernelA", "BenchmarkKernelA", mark+"--- FAIL: BenchmarkKernelA", "FAIL",
				plan.Event{End: &plan.End{Package: "umad", Failure: "exit status 1"}}, done),
			want: []string{"umad.BenchmarkKernelA", "umad: exit status 1"},
		},
		"a benchmark without a result": {
			output: said(up, begin, mark+"=== RUN   BenchmarkKernelA", "BenchmarkKernelA", "PASS", end, done),
			want:   []string{"no test ran"},
		},
		"a test fails": {
			output: said(up, begin, runs, "    a_test.go:1: no", mark+"--- FAIL: TestKernelA (0.01s)", "FAIL",
				plan.Event{End: &plan.End{Package: "umad", Failure: "exit status 1"}}, done),
			want: []string{"umad.TestKernelA", "umad: exit status 1"},
		},
		"a failure after an unfinished line": {
			output: said(up, begin, runs, "printed"+mark+"--- FAIL: TestKernelA (0.01s)", end, done),
			want:   []string{"umad.TestKernelA"},
		},
		"no test ran":      {output: said(up, begin, mark+"testing: warning: no tests to run", "PASS", end, done), want: []string{"no test ran"}},
		"all were skipped": {output: said(up, begin, runs, mark+"--- SKIP: TestKernelA (0.00s)", end, done), want: []string{"no test ran"}},
		"a binary ends in the middle": {
			output: said(up, begin, runs, end, done),
			want:   []string{"umad.TestKernelA began and did not end"},
		},
		"the guest cannot be set up": {
			output: said(plan.Event{Broken: "load rdma_rxe.ko: no such file"}),
			want:   []string{"guest: load rdma_rxe.ko", "the guest ended early", "its console:\nlast words"},
			console: []string{
				"last words",
			},
		},
		"the kernel warns": {
			output:  said(up, begin, runs, passes, end, plan.Event{Done: &plan.Done{Taint: 1 << 9}}),
			console: []string{"before", "WARNING: CPU: 0 PID: 1 at mm/x.c:1 f+0x1/0x2", "after"},
			want:    []string{"the kernel says: WARNING: CPU: 0", "its console:\nWARNING: CPU: 0 PID: 1 at mm/x.c:1 f+0x1/0x2\nafter"},
		},
		"the kernel is tainted": {
			output: said(up, begin, runs, passes, end, plan.Event{Done: &plan.Done{Taint: 1<<9 | 1<<13}}), // 13: unsigned module
			want:   []string{"the kernel is tainted (warning)"},
		},
		"only harmlessly tainted": {
			output: said(up, begin, runs, passes, end, plan.Event{Done: &plan.Done{Taint: 1 << 13}}),
		},
		"the kernel panics": {
			output:  said(up, begin, runs),
			console: []string{"Kernel panic - not syncing: Fatal exception"},
			want:    []string{"umad.TestKernelA began", "the kernel says: Kernel panic", "the guest ended early", "its console:\nKernel panic"},
		},
		"the guest hangs": {
			output: said(up, begin, runs),
			ended:  "it hung",
			want:   []string{"umad.TestKernelA began", "the guest did not finish: it hung", "its console:"},
		},
		"an event that cannot be read": {
			output: said(up, begin, runs, passes, end, mark+"{garbled", done),
			want:   []string{`event "{garbled"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &report{ended: tt.ended}
			for _, line := range tt.output {
				r.outputLine(line)
			}
			for _, line := range tt.console {
				r.consoleLine(line)
			}
			got := r.verdict()
			if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
				t.Errorf("reasons %q, want such that begin with %q", got, tt.want)
			}
		})
	}
}

func TestShownOutput(t *testing.T) {
	r := &report{}
	var shown []string
	for _, line := range said(
		plan.Event{Release: "6.1.0"},
		plan.Event{Begin: "umad"},
		plan.Mark+"=== RUN   TestKernelA",
		plan.Event{Begin: "umad"}, // in a pair a package's tests have a process each
		"    a_test.go:1: 64 answers",
		"",
		"unfinished"+plan.Mark+"=== NAME  TestKernelA",
		plan.Mark+"    --- PASS: TestKernelA/x (0.01s)",
		plan.Mark+"    --- FAIL: TestKernelA/y (0.01s)",
		plan.Mark+"--- FAIL: TestKernelA (0.01s)",
		plan.Event{Done: &plan.Done{}},
	) {
		if show, ok := r.outputLine(line); ok {
			shown = append(shown, show)
		}
	}
	want := []string{"Linux 6.1.0", "umad", "    a_test.go:1: 64 answers", "", "unfinished", "    --- FAIL: TestKernelA/y (0.01s)", "--- FAIL: TestKernelA (0.01s)"}
	if !slices.Equal(shown, want) {
		t.Errorf("shown %q, want %q", shown, want)
	}
}

// Without a complaint the console's end is what counts, with one its beginning.
func TestConsoleExcerpt(t *testing.T) {
	r := &report{}
	for i := range 3 * excerptLines {
		r.consoleLine(strings.Repeat("x", i))
	}
	if len(r.excerpt) != excerptLines || len(r.excerpt[excerptLines-1]) != 3*excerptLines-1 {
		t.Errorf("%d lines, the last of %d characters", len(r.excerpt), len(r.excerpt[len(r.excerpt)-1]))
	}
	const first = "Oops: 0002 [#1]"
	r.consoleLine(first)
	for range 3 * excerptLines {
		r.consoleLine("trace")
	}
	if len(r.excerpt) != excerptLines || r.excerpt[0] != first {
		t.Errorf("%d lines, the first %q", len(r.excerpt), r.excerpt[0])
	}
}
