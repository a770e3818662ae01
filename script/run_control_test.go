package script_test

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/script"
)

// TestControl runs each way to order steps. What must come of it follows from the words
// of the reference (script.Kinds, script.StepKeys); times are virtual and exact.
func TestControl(t *testing.T) {
	for _, c := range []struct {
		name   string
		script string
		lacks  string
		want   script.Verdict
		counts script.Counts // of steps
		log    []string      // what is logged, in this order
		took   time.Duration
		report string // a part of the text report
	}{
		{
			name:   "for_each over a list, in order",
			script: "steps: [{for_each: {var: x, in: [3, 1, 2], steps: [{log: 'x ${x}'}]}, expect: [iterations == 3]}]",
			counts: script.Counts{Steps: 4, Passed: 4}, log: []string{"x 3", "x 1", "x 2"},
			report: "3 iterations, 3 steps: 3 passed",
		},
		{
			name:   "for_each over an expression",
			script: "steps: [{for_each: {var: x, in: '1..3', steps: [{log: '${x*x}'}]}}]",
			counts: script.Counts{Steps: 3, Passed: 3}, log: []string{"1", "4", "9"},
		},
		{
			name:   "for_each over nothing",
			script: "steps: [{for_each: {var: x, in: 'filter([1], # > 1)', steps: [{log: never}]}, save: {n: iterations}}, {log: '${n}'}]",
			counts: script.Counts{Steps: 1, Passed: 1}, log: []string{"0"},
		},
		{
			name:   "for_each, hosts by the SA",
			script: "steps: [{for_each: {var: h, in: hosts, steps: [{log: '${h.name} ${h.lid}'}]}}]",
			counts: script.Counts{Steps: 8, Passed: 8},
			log:    []string{"h1 1", "h2 2", "h3 3", "h4 4", "h5 5", "h6 6", "h7 7", "h8 8"},
		},
		{
			name:   "for_each, switches by the SA",
			script: "steps: [{for_each: {var: s, in: switches, steps: [{log: '${s.type} ${s.num_ports}'}]}}]",
			counts: script.Counts{Steps: 2, Passed: 2}, log: []string{"Switch 12", "Switch 12"},
		},
		{
			name:   "for_each, ports by the SA",
			script: "steps: [{for_each: {var: p, in: ports, steps: [{assert: ['p.lid > 0']}]}, expect: [iterations == 10]}]",
			counts: script.Counts{Steps: 11, Passed: 11},
		},
		{
			name:   "for_each, more than max",
			script: "steps: [{for_each: {var: x, in: [1, 2, 3], max: 2, steps: [{log: never}]}}]",
			want:   script.Errored, counts: script.Counts{Steps: 1, Errors: 1}, report: "there are 3 elements, and max is 2",
		},
		{
			name: "a variable of a loop ends with it, and another with its name is there again",
			script: `vars: {x: before}
steps: [{for_each: {var: x, in: [inside], steps: [{log: '${x}'}]}}, {log: '${x}'}]`,
			counts: script.Counts{Steps: 2, Passed: 2}, log: []string{"inside", "before"},
		},
		{
			name:   "what steps in a loop set stays",
			script: "vars: {n: 0}\nsteps: [{for_each: {var: x, in: [1, 2, 3], steps: [{set_var: {n: '${n + x}'}}]}}, {assert: [n == 6]}]",
			counts: script.Counts{Steps: 4, Passed: 4},
		},
		{
			name:   "a failure in a loop ends it, and the run",
			script: "steps: [{for_each: {var: x, in: [1, 2, 3], steps: [{log: '${x}'}, {assert: [x < 2]}]}}, {log: never}]",
			want:   script.Failed, counts: script.Counts{Steps: 4, Passed: 3, Failed: 1}, log: []string{"1", "2"},
			report: "FAIL    x = 2: assert x < 2",
		},
		{
			name:   "on_error: continue of a loop goes for its steps",
			script: "steps: [{for_each: {var: x, in: [1, 2, 3], steps: [{assert: [x != 2]}, {log: '${x}'}]}, on_error: continue}, {log: after}]",
			want:   script.Failed, counts: script.Counts{Steps: 7, Passed: 6, Failed: 1}, log: []string{"1", "2", "3", "after"},
		},
		{
			name:   "on_error: stop in a loop that continues ends the iteration alone",
			script: "steps: [{for_each: {var: x, in: [1, 2, 3], steps: [{assert: [x != 2], on_error: stop}, {log: '${x}'}]}, on_error: continue}, {log: after}]",
			want:   script.Failed, counts: script.Counts{Steps: 6, Passed: 5, Failed: 1}, log: []string{"1", "3", "after"},
		},
		{
			name:   "on_error: continue of a step inside goes for it alone",
			script: "steps: [{for_each: {var: x, in: [1, 2], steps: [{assert: [false], on_error: continue}, {log: '${x}'}]}}, {log: after}]",
			want:   script.Failed, counts: script.Counts{Steps: 5, Passed: 3, Failed: 2}, log: []string{"1", "2", "after"},
		},
		{
			name:   "on_error of the script",
			script: "on_error: continue\nsteps: [{assert: [false]}, {assert: ['1 < 2']}, {log: after}]",
			want:   script.Failed, counts: script.Counts{Steps: 3, Passed: 2, Failed: 1}, log: []string{"after"},
		},
		{
			name:   "repeat so many times, each so long after the last",
			script: "steps: [{repeat: {times: 3, every: 100ms, steps: [{log: again}, {wait: 30ms}]}, expect: [iterations == 3]}]",
			counts: script.Counts{Steps: 7, Passed: 7}, log: []string{"again", "again", "again"}, took: 230 * time.Millisecond,
		},
		{
			name:   "repeat until",
			script: "vars: {n: 0}\nsteps: [{repeat: {until: n == 4, every: 10ms, steps: [{set_var: {n: '${n + 1}'}}]}, expect: [iterations == 4]}]",
			counts: script.Counts{Steps: 5, Passed: 5}, took: 30 * time.Millisecond,
		},
		{
			name:   "repeat until, in vain",
			script: "vars: {n: 0}\nsteps: [{repeat: {until: n == 4, times: 2, steps: [{set_var: {n: '${n + 1}'}}]}}, {log: never}]",
			want:   script.Failed, counts: script.Counts{Steps: 3, Passed: 2, Failed: 1},
			report: "test.yaml:3:26: expected n == 4 within 2 iterations: it is 2",
		},
		{
			name:   "retry until it passes",
			script: "vars: {n: 0}\nsteps: [{retry: {times: 5, delay: 50ms, steps: [{set_var: {n: '${n + 1}'}}, {assert: [n == 3]}]}, expect: [iterations == 3]}]",
			counts: script.Counts{Steps: 5, Passed: 5, Retried: 2}, took: 100 * time.Millisecond,
			report: "3 tries, 4 steps: 4 passed, 2 failed and were tried again",
		},
		{
			name:   "retry in vain",
			script: "steps: [{retry: {times: 3, delay: 50ms, steps: [{assert: [false]}]}}, {log: never}]",
			want:   script.Failed, counts: script.Counts{Steps: 1, Failed: 1, Retried: 2}, took: 100 * time.Millisecond,
		},
		{
			name:   "wait",
			script: "steps: [{wait: 1m30s}, {wait: {for: 10s}}]",
			counts: script.Counts{Steps: 2, Passed: 2}, took: 100 * time.Second,
		},
		{
			name:   "if",
			script: "vars: {up: false}\nsteps: [{log: a, if: up}, {log: b, if: not up}]",
			counts: script.Counts{Steps: 2, Passed: 1, Skipped: 1}, log: []string{"b"}, report: "if: up",
		},
		{
			name:   "save, for what follows",
			script: "steps: [{set_var: {n: 4}, save: {m: n + 1}}, {log: '${m}'}]",
			counts: script.Counts{Steps: 2, Passed: 2}, log: []string{"5"},
		},
		{
			name:   "nothing is saved by a step that fails",
			script: "vars: {m: old}\nsteps: [{set_var: {n: 4}, expect: [n == 5], save: {m: n}, on_error: continue}, {log: '${m}'}]",
			want:   script.Failed, counts: script.Counts{Steps: 2, Passed: 1, Failed: 1}, log: []string{"old"},
		},
		{
			name:   "skipped alone is skipped",
			script: "steps: [{log: a, if: '1 > 2'}]",
			want:   script.Skipped, counts: script.Counts{Steps: 1, Skipped: 1},
		},
		{
			name:   "the time limit of a step",
			script: "steps: [{wait: 1h, timeout: 2s}, {log: never}]",
			want:   script.Errored, counts: script.Counts{Steps: 1, Errors: 1}, took: 2 * time.Second,
			report: "the time limit of the step, 2s, is over",
		},
		{
			name:   "the time limit of a step with steps",
			script: "steps: [{repeat: {times: 100, steps: [{wait: 300ms}]}, timeout: 1s}, {log: never}]",
			want:   script.Errored, counts: script.Counts{Steps: 5, Passed: 3, Errors: 2}, took: time.Second,
			report: "the time limit of the step, 1s, is over",
		},
		{
			name:   "the time limit of steps, of which wait has none",
			script: "step_timeout: 1s\nsteps: [{wait: 5s}, {listen: {service: 777, count: 1}}]",
			want:   script.Errored, counts: script.Counts{Steps: 2, Passed: 1, Errors: 1}, took: 6 * time.Second,
		},
		{
			name:   "the time limit of the run",
			script: "timeout: 2500ms\nsteps: [{repeat: {times: 1000, every: 1s, steps: [{log: a}]}}]\nfinally: [{log: last}]",
			want:   script.Errored, counts: script.Counts{Steps: 5, Passed: 4, Errors: 1}, log: []string{"a", "a", "a", "last"},
			took: 2500 * time.Millisecond, report: "the time limit of the script, 2.5s, is over",
		},
		{
			name:   "finally after a failure",
			script: "steps: [{assert: [false]}]\nfinally: [{assert: [now() == nil]}, {log: last}]",
			want:   script.Failed, counts: script.Counts{Steps: 3, Passed: 1, Failed: 2}, log: []string{"last"},
		},
		{
			name:   "finally has 10 s",
			script: "steps: [{log: a}]\nfinally: [{wait: 1m}, {log: never}]",
			want:   script.Errored, counts: script.Counts{Steps: 3, Passed: 1, Errors: 2}, log: []string{"a"},
			took: 10 * time.Second, report: "the time limit of finally, 10s, is over",
		},
		{
			name:   "parallel steps",
			script: "steps: [{parallel: {steps: [{wait: 3s}, {wait: 1s}, {wait: 2s}]}, expect: [iterations == 3]}]",
			counts: script.Counts{Steps: 4, Passed: 4}, took: 3 * time.Second,
		},
		{
			name:   "parallel, so many at a time, told in their order",
			script: "steps: [{parallel: {max: 2, var: x, in: [3, 2, 1, 1], steps: [{wait: '${x}s'}, {log: '${x}'}]}}]",
			counts: script.Counts{Steps: 8, Passed: 8}, took: 4 * time.Second, log: []string{"3", "2", "1", "1"},
		},
		{
			name:   "branches have variables of their own",
			script: "vars: {n: 0}\nsteps: [{parallel: {var: x, in: [1, 2, 3], steps: [{set_var: {n: '${n + x}'}}, {wait: 1s}, {assert: [n == x]}]}}, {assert: [n == 0]}]",
			counts: script.Counts{Steps: 10, Passed: 10}, took: time.Second,
		},
		{
			name: "a failure in a branch lets the others end, and no more begin",
			script: `steps: [{parallel: {max: 2, var: x, in: [1, 2, 3, 4], steps: [
  {wait: '${x}s'}, {assert: [x != 1]}, {log: '${x}'}]}}]`,
			want: script.Failed, counts: script.Counts{Steps: 5, Passed: 4, Failed: 1}, log: []string{"2"}, took: 2 * time.Second,
			report: "FAIL    x = 1: assert x != 1",
		},
		{
			name: "failures in branches, all of which go on",
			script: `steps: [{parallel: {max: 2, var: x, in: [1, 2, 3, 4], steps: [
  {wait: 1s}, {assert: [x % 2 == 0]}]}, on_error: continue}, {log: after}]`,
			want: script.Failed, counts: script.Counts{Steps: 9, Passed: 7, Failed: 2}, log: []string{"after"}, took: 2 * time.Second,
		},
		{
			name:   "loops in loops, with a label for each",
			script: "on_error: continue\nsteps: [{for_each: {var: a, in: [1, 2], steps: [{for_each: {var: b, in: [1, 2], steps: [{assert: [a + b < 4]}]}}]}}]",
			want:   script.Failed, counts: script.Counts{Steps: 4, Passed: 3, Failed: 1},
			report: "        a = 2: for_each b:\nFAIL      b = 2: assert a + b < 4",
		},
		{
			name: "what the place lacks", lacks: "rmpp",
			script: "steps: [{log: a, requires: [sim, fault]}, {for_each: {var: x, in: [1, 2], steps: [{log: b, requires: [sim, rmpp]}]}}, {log: c, requires: [rmpp]}]",
			counts: script.Counts{Steps: 4, Passed: 1, Skipped: 3}, log: []string{"a"},
			report: "# 3 steps skipped for want of rmpp: long answers come whole, by RMPP",
		},
		{
			name: "what the place lacks for the whole script", lacks: "cm",
			script: "requires: [sim, cm]\nsteps: [{log: a}, {repeat: {times: 5, steps: [{log: b}]}}]\nfinally: [{log: c}]",
			want:   script.Skipped, counts: script.Counts{Steps: 3, Skipped: 3}, report: "the script needs cm",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, end := newBench(t)
				defer end()
				b.env.Provides = slices.DeleteFunc(slices.Clone(everything), func(word string) bool { return word == c.lacks })
				start := time.Now()
				out := b.run(t.Context(), c.script)
				takes(t, start, c.took)
				if out.Verdict != c.want {
					t.Errorf("verdict %v, want %v", out.Verdict, c.want)
				}
				// Logs are steps, too: the lines are not counted apart.
				if got := out.Counts; got != c.counts {
					t.Errorf("counts %+v\nwant   %+v", got, c.counts)
				}
				if got := b.told(); !slices.Equal(got, c.log) {
					t.Errorf("logged %q\nwant   %q", got, c.log)
				}
				if !strings.Contains(string(b.report), c.report) {
					t.Errorf("the report lacks %q", c.report)
				}
				if t.Failed() {
					t.Logf("report:\n%s", b.report)
				}
			})
		})
	}
}

// A run that would not end soon does at a number of steps, and its finally still runs.
func TestTooManySteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := newBench(t)
		defer end()
		b.opt = b.opt.MostSteps(1000)
		out := b.run(t.Context(), "steps: [{repeat: {times: 1000000, steps: [{repeat: {times: 1000000, steps: [{assert: [now() != nil]}]}}]}}, {log: never}]\nfinally: [{log: last}]")
		if out.Verdict != script.Errored || out.Passed != 998+1 || out.Errors != 1 { // two are loops
			t.Errorf("%v, %+v", out.Verdict, out.Counts)
		}
		if got := b.told(); !slices.Equal(got, []string{"last"}) {
			t.Errorf("logged %q", got)
		}
		if !strings.Contains(string(b.report), "as many steps as one may") {
			t.Errorf("the report does not say why:\n%s", b.report)
		}
	})
}

// What a branch does is told when those before it have ended, unless it is too much to be
// held back.
func TestBranchesHeldBack(t *testing.T) {
	for _, c := range []struct {
		steps int
		last  string // of the two branches
	}{{1000, "Get NodeInfo 8"}, {3000, "wait 1s"}} {
		synctest.Test(t, func(t *testing.T) {
			b, end := newBench(t)
			defer end()
			out := b.run(t.Context(), "vars: {n: "+strconv.Itoa(c.steps)+"}\nsteps: [{parallel: {steps: [{wait: 1s}, {for_each: {var: i, in: '1..n', steps: [{log: '${i}'}]}}, {send: {class: Subn, attribute: NodeInfo, to: 8}}]}}]")
			if n := len(b.told()); n != c.steps || out.Passed != c.steps+2 {
				t.Errorf("%d lines, %+v", n, out.Counts)
			}
			if last := b.events[len(b.events)-2].Name; last != c.last {
				t.Errorf("with %d steps %q ended last, want %q", c.steps, last, c.last)
			}
		})
	}
}

func FuzzParseVar(f *testing.F) {
	for _, seed := range []string{"a=1", "a=0x0002c90300001234", "a=[h1, 2, true]", "a=", "=1", "a", "a={b: 1}", "a=[", "a=&x [*x]", "a=~"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, _, err := script.ParseVar(s)
		if err == nil && (name == "" || !strings.HasPrefix(s, name+"=")) {
			t.Errorf("%q names %q", s, name)
		}
	})
}

func TestParseVar(t *testing.T) {
	for _, c := range []struct {
		text string
		want any
	}{
		{"a=1", 1}, {"a=0x10", 16}, {"a=0x0002c90300001234", "0x0002c90300001234"}, {"a=h8", "h8"}, {"a=true", true},
		{"a=", ""}, {"a=[h1, 2]", []any{"h1", 2}}, {"a='1'", "1"}, {"a=b=c", "b=c"}, {"a=0.5", 0.5}, {"a=~", nil},
	} {
		_, got, err := script.ParseVar(c.text)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %#v, %v; want %#v", c.text, got, err, c.want)
		}
	}
	for _, bad := range []string{"a", "=1", "a={b: 1}", "a=[{}]", "a=["} {
		if _, got, err := script.ParseVar(bad); err == nil {
			t.Errorf("%s: %#v, want an error", bad, got)
		}
	}
}
