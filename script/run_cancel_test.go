package script_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/script"
)

// TestInterrupt ends the context of a run while each kind of step waits: the step ends at
// once, no other begins, and finally runs, with a fabric that still answers.
func TestInterrupt(t *testing.T) {
	const silent = "{fault: {link: 'h8[1]', down: true}}, "
	for _, c := range []struct{ name, steps string }{
		{"send", silent + "{send: {class: Subn, attribute: NodeInfo, to: 8, timeout: 1h}, timeout: 2h}"},
		{"send that waits for its turn", silent + "{parallel: {max: 40, var: i, in: '1..40', steps: [{send: {class: SubnAdm, attribute: NodeRecord, to: 8, timeout: 1h}, timeout: 2h}]}}"},
		{"wait", "{wait: 1h}"},
		{"for_each", "{for_each: {var: x, in: [1, 2], steps: [{wait: 1h}]}}"},
		{"repeat", "{repeat: {times: 2, every: 1h, steps: [{assert: ['now() != nil']}]}}"},
		{"retry", "{retry: {times: 2, delay: 1h, steps: [{assert: ['now() == nil']}]}}"},
		{"parallel", "{parallel: {max: 1, var: x, in: [1, 2], steps: [{wait: 1h}]}}"},
		{"serve", "{serve: {class: 0x32, oui: 0x1405, methods: [Get], for: 1h}}"},
		{"serve with steps", "{serve: {class: 0x32, oui: 0x1405, methods: [Get], steps: [{wait: 1h}]}}"},
		{"connect to nobody", silent + "{connect: {to: 10.0.0.8, service: 7471}, timeout: 1h}"},
		{"connect, held", "{connect: {to: h8, service: 7471, hold: 1h}}"},
		{"listen", "{listen: {service: 555, count: 1}, timeout: 1h}"},
		{"listen with steps", "{listen: {service: 555, steps: [{wait: 1h}]}}"},
		{"listen, connected", "{listen: {service: 555, steps: [{connect: {to: h1, service: 555, hold: 1h}}]}}"},
		{"include", "{include: {file: wait.yaml}}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, end := newBench(t)
				defer end()
				b.files["wait.yaml"] = &fstest.MapFile{Data: []byte("version: 1\nsteps: [{wait: 1h}, {log: never}]\nfinally: [{log: 'last, inside'}]")}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(10*time.Second, cancel)
				start := time.Now()
				out := b.run(ctx, "timeout: 2h\nsteps: ["+c.steps+", {log: never}]\n"+
					"finally: [{fault: {link: all, up: true}}, {send: {class: Subn, attribute: NodeInfo, to: 8}}, {log: last}]")
				takes(t, start, 10*time.Second)
				if out.Verdict != script.Interrupted {
					t.Errorf("verdict %v, want interrupted", out.Verdict)
				}
				want := []string{"last"}
				if c.name == "include" {
					want = []string{"last, inside", "last"}
				}
				if got := b.told(); !slices.Equal(got, want) {
					t.Errorf("logged %q, want %q", got, want)
				}
				if n := slices.IndexFunc(b.events, func(e script.Event) bool { return e.Verdict == script.Interrupted }); n < 0 {
					t.Error("no step was interrupted")
				}
				if out.First != nil && out.First.Err != nil && !errors.Is(out.First.Err, context.Canceled) {
					t.Errorf("first error: %v, want that of the context", out.First.Err)
				}
				if t.Failed() {
					t.Logf("report:\n%s", b.report)
				}
			})
		})
	}
}

// A context that has ended before the run still gets its finally.
func TestInterruptedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := newBench(t)
		defer end()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		out := b.run(ctx, "steps: [{log: never}]\nfinally: [{log: last}]")
		if want := (script.Counts{Steps: 1, Passed: 1}); out.Verdict != script.Interrupted || out.Counts != want {
			t.Errorf("%v, %+v; want interrupted, %+v", out.Verdict, out.Counts, want)
		}
	})
}
