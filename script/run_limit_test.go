package script_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/script"
)

// TestLimits runs scripts that would go on, or want memory, without end. Each ends with an
// error that says where and why, and its finally runs.
func TestLimits(t *testing.T) {
	for _, c := range []struct{ name, script, report string }{
		{"a list that doubles", "vars: {s: [1]}\nsteps: [{repeat: {times: 40, steps: [{set_var: {s: ['${s}', '${s}']}}]}}, {log: never}]", "s: it has more than 1000000 elements"},
		{"a list that doubles in an expression", "vars: {s: [1]}\nsteps: [{repeat: {times: 40, steps: [{set_var: {s: '${[s, s]}'}}]}}, {log: never}]", "more than 1000000 elements"},
		{"a saved list that doubles", "vars: {s: [1]}\nsteps: [{repeat: {times: 40, steps: [{assert: [true], save: {s: '[s, s]'}}]}}, {log: never}]", "more than 1000000 elements"},
		{"a text that doubles", "vars: {s: 'x'}\nsteps: [{repeat: {times: 60, steps: [{set_var: {s: '${s + s}'}}]}}, {log: never}]", "more than 16777216 bytes"},
		{"a template that doubles", "vars: {s: 'x'}\nsteps: [{repeat: {times: 60, steps: [{set_var: {s: '${s}${s}'}}]}}, {log: never}]", "more than 16777216 bytes"},
		{"a list that nests", "vars: {s: [1]}\nsteps: [{repeat: {times: 200, steps: [{set_var: {s: ['${s}']}}]}}, {log: never}]", "more than 100 deep"},
		{"no iteration", "vars: {n: 0}\nsteps: [{repeat: {times: '${n}', steps: [{log: never}]}}, {log: never}]", "from 1 to 1000000"},
		{"no element", "vars: {n: 0}\nsteps: [{for_each: {var: x, in: [1], max: '${n}', steps: [{log: never}]}}, {log: never}]", "from 1 to 1000000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, end := newBench(t)
				defer end()
				out := b.run(t.Context(), c.script+"\nfinally: [{log: last}]")
				if out.Verdict != script.Errored || !strings.Contains(string(b.report), c.report) {
					t.Errorf("%v, want an error with %q; the report:\n%.2000s", out.Verdict, c.report, b.report)
				}
				if got := b.told(); !slices.Equal(got, []string{"last"}) {
					t.Errorf("logged %q", got)
				}
			})
		})
	}
}

// A step that holds no others and has overrun its own time has not passed.
func TestStepOverruns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := newBench(t)
		defer end()
		b.opt.Report = func(e *script.Event) {
			if e.Kind == script.EventLog {
				time.Sleep(2 * time.Second)
			}
		}
		out := b.run(t.Context(), "steps: [{log: slow, timeout: 3s}, {log: too slow, timeout: 1s}, {log: never}]")
		if out.Verdict != script.Errored || out.Passed != 1 || out.Errors != 1 || !strings.Contains(string(b.report), "1s") {
			t.Errorf("%v, %+v; the report:\n%s", out.Verdict, out.Counts, b.report)
		}
		if got := b.told(); !slices.Equal(got, []string{"slow", "too slow"}) {
			t.Errorf("logged %q", got)
		}
	})
}
