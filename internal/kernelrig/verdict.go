package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ibsm/ibsm/internal/kernelrig/plan"
)

// A report is what a guest said while it ran. Its methods take in lines: those
// of the kernel's console come on one goroutine, those of the tests on another.
type report struct {
	started time.Time
	took    time.Duration
	ended   string // how the machine ended, if not by itself

	release                 string // "" if the guest never got to its tests
	up                      time.Duration
	passed, failed, skipped []string // package and test, top level only
	pkg                     string   // whose tests are running
	begun                   []string // tests that have no result yet
	problems                []string // of test binaries and of the guest itself
	done                    *plan.Done

	complaints []string // of the kernel
	excerpt    []string // the console from the first complaint on; without one, its end
}

// complaint is how the kernel's serious messages begin (lib/bug.c, kernel/panic.c,
// arch/x86/kernel/traps.c, kernel/hung_task.c, kernel/rcu/tree_stall.h, lib/ubsan.c,
// mm/oom_kill.c, net/core/dev.c), and how its CM says that an id does not go
// (drivers/infiniband/core/cm.c).
var complaint = regexp.MustCompile(`\b(WARNING|BUG|Oops|UBSAN|KASAN|KFENCE): ` +
	`|\bINFO: (task|rcu\w*) |kernel BUG at |Kernel panic|Out of memory|general protection fault|divide error|invalid opcode|double fault|unregister_netdevice: waiting|cm_destroy_id_wait_timeout`)

// tolerated lists complaints that are not ours, each with the reason. None so far.
var tolerated = []struct{ message, why string }{}

// excerptLines is how much of the console is shown, when it is.
const excerptLines = 40

// consoleLine takes in a line of the kernel's console.
func (r *report) consoleLine(line string) {
	if isComplaint(line) {
		if len(r.complaints) == 0 {
			r.excerpt = nil
		}
		r.complaints = append(r.complaints, line)
	}
	switch {
	case len(r.excerpt) < excerptLines:
		r.excerpt = append(r.excerpt, line)
	case len(r.complaints) == 0:
		r.excerpt = append(r.excerpt[1:], line)
	}
}

func isComplaint(line string) bool {
	if !complaint.MatchString(line) {
		return false
	}
	for _, t := range tolerated {
		if strings.Contains(line, t.message) {
			return false
		}
	}
	return true
}

// outputLine takes in a line of the second serial line, and gives what of it is
// for people.
func (r *report) outputLine(line string) (show string, ok bool) {
	printed, framework, marked := strings.Cut(line, plan.Mark)
	if m := benchResult.FindStringSubmatch(line); m != nil {
		r.passed = append(r.passed, r.pkg+"."+m[1])
	}
	if !marked {
		return line, true
	}
	event, isEvent, err := plan.ParseEvent(framework)
	switch {
	case err != nil:
		r.problems = append(r.problems, err.Error())
		show = framework
	case isEvent:
		show = r.event(event)
	case !r.testLine(framework):
		show = framework
	}
	show = printed + show
	return show, show != ""
}

var (
	testBegins = regexp.MustCompile(`^=== RUN +(Test\S+)`) // benchmarks with parts have no result of their own
	testResult = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+)`)
	// Benchmarks have it without a mark.
	benchResult = regexp.MustCompile(`^(Benchmark\S+)\s+\d+\s.* ns/op`)
)

// testLine takes in a line of the testing framework, and tells whether people can do
// without it.
func (r *report) testLine(line string) (quiet bool) {
	name := func(m []string) (string, bool) {
		if m == nil || strings.Contains(m[len(m)-1], "/") {
			return "", false // subtests are part of their test
		}
		return r.pkg + "." + m[len(m)-1], true
	}
	if name, ok := name(testBegins.FindStringSubmatch(line)); ok {
		r.begun = append(r.begun, name)
	}
	m := testResult.FindStringSubmatch(line)
	if name, ok := name(m); ok {
		r.begun = slices.DeleteFunc(r.begun, func(b string) bool { return b == name })
		switch m[1] {
		case "PASS":
			r.passed = append(r.passed, name)
		case "FAIL":
			r.failed = append(r.failed, name)
		case "SKIP":
			r.skipped = append(r.skipped, name)
		}
	}
	passedPart := m != nil && m[1] == "PASS" && strings.Contains(m[2], "/")
	return passedPart || strings.HasPrefix(line, "===") // RUN, PAUSE, CONT, NAME
}

func (r *report) event(e plan.Event) (show string) {
	switch {
	case e.Release != "":
		r.release, r.up = e.Release, time.Since(r.started)
		return "Linux " + e.Release
	case e.Begin != "" && e.Begin != r.pkg:
		r.pkg = e.Begin
		return e.Begin
	case e.End != nil:
		if e.End.Failure != "" {
			r.problems = append(r.problems, e.End.Package+": "+e.End.Failure)
		}
	case e.Broken != "":
		r.problems = append(r.problems, "guest: "+e.Broken)
	case e.Done != nil:
		r.done = e.Done
	}
	return ""
}

// taints are the bits of /proc/sys/kernel/tainted (Documentation/admin-guide/
// tainted-kernels.rst) that say that something went wrong at run time.
var taints = []struct {
	bit  uint
	what string
}{{5, "bad page"}, {7, "oops or BUG"}, {9, "warning"}, {14, "soft lockup"}}

// verdict gives the reasons why the run was not good, if any.
func (r *report) verdict() (reasons []string) {
	add := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	for _, name := range r.failed {
		add("%s", name)
	}
	for _, name := range r.begun {
		add("%s began and did not end", name)
	}
	for _, p := range r.problems {
		add("%s", p)
	}
	for _, c := range r.complaints {
		add("the kernel says: %s", c)
	}
	switch {
	case r.done == nil && r.ended != "":
		add("the guest did not finish: %s", r.ended)
	case r.done == nil:
		add("the guest ended early")
	case len(r.complaints) == 0:
		for _, t := range taints {
			if r.done.Taint&(1<<t.bit) != 0 {
				add("the kernel is tainted (%s), but its console does not say why", t.what)
			}
		}
	}
	if len(reasons) == 0 && len(r.passed) == 0 {
		add("no test ran")
	}
	if len(r.complaints) > 0 || r.done == nil {
		add("its console:\n%s", strings.Join(r.excerpt, "\n"))
	}
	return reasons
}
