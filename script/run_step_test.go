package script_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/script"
	"github.com/ibsm/ibsm/ucma"
)

// TestSteps runs steps that need the fabric, on demo: LIDs are those of hosts h1 to h8 in
// their order (configs/demo.yaml), every host accepts at port 7471 and echoes.
func TestSteps(t *testing.T) {
	const down = "{fault: {link: 'h8[1]', down: true}}, "
	for _, c := range []struct {
		name   string
		steps  string
		want   script.Verdict
		log    []string
		report string
		took   time.Duration
		err    func(error) bool // of the first failure
	}{
		{
			name:  "send",
			steps: "{send: {class: Subn, attribute: NodeInfo, to: h8}, expect: [answered, status == 'ok', record.NodeType == 'CA', from.lid == 8], save: {guid: record.PortGUID}}, {log: '${guid}'}",
			log:   []string{"0x0200000100000801"},
		},
		{
			name:   "an error status without an expectation is an error",
			steps:  "{send: {class: Subn, attribute: SwitchInfo, to: h8}}, {log: never}",
			want:   script.Errored,
			report: "answered with status 0x000c",
			err: func(err error) bool {
				var status *script.StatusError
				return errors.As(err, &status) && status.Status == mad.StatusBadAttribute
			},
		},
		{
			name:  "an error status that is expected",
			steps: "{send: {class: Subn, attribute: SwitchInfo, to: h8}, expect: [status_code == 0x000c]}, {log: after}",
			log:   []string{"after"},
		},
		{
			name:  "silence is an error, whatever is expected",
			steps: down + "{send: {class: Subn, attribute: NodeInfo, to: 8, timeout: 100ms, retries: 1}, expect: [not answered]}",
			want:  script.Errored, took: 200 * time.Millisecond, report: "test.yaml:2:47: SubnLIDRoutedGet(NodeInfo) to LID 8",
			err: func(err error) bool { return errors.Is(err, agents.ErrTimeout) },
		},
		{
			name:  "silence that is right",
			steps: down + "{send: {class: Subn, attribute: NodeInfo, to: 8, timeout: 100ms, retries: 0, no_answer_ok: true}, expect: [not answered, error startsWith 'timeout']}",
			took:  100 * time.Millisecond, report: "no answer: timeout",
		},
		{
			name:  "a link that is cut and put back",
			steps: down + "{send: {class: Subn, attribute: NodeInfo, to: 8, timeout: 10ms, retries: 0, no_answer_ok: true}, expect: [not answered]}, {fault: {link: 'h8[1]', up: true}}, {send: {class: Subn, attribute: NodeInfo, to: 8}}",
			took:  10 * time.Millisecond, report: "h8[1] up",
		},
		{
			name:  "a link that is slow",
			steps: "{fault: {link: 'h8[1]', delay: 20ms}}, {send: {class: Subn, attribute: NodeInfo, to: 8}, expect: [latency == duration('40ms')]}, {fault: {link: 'h8[1]', delay: 0s}}, {send: {class: Subn, attribute: NodeInfo, to: 8}, expect: [latency < duration('1ms')]}",
			took:  40 * time.Millisecond,
		},
		{
			name:  "all links that lose everything",
			steps: "{fault: {link: all, loss: 1}}, {send: {class: Subn, attribute: NodeInfo, to: 8, timeout: 10ms, retries: 0, no_answer_ok: true}, expect: [not answered]}, {fault: {link: all, loss: 0}}, {send: {class: Subn, attribute: NodeInfo, to: 8}}",
			took:  10 * time.Millisecond,
		},
		{
			name:  "a node that starts anew has no LID",
			steps: "{fault: {reboot: h8}}, {send: {class: Subn, attribute: NodeInfo, to: 8, timeout: 10ms, retries: 0, no_answer_ok: true}, expect: [not answered]}, {send: {class: SubnDirected, attribute: PortInfo, to: '0,1,11,4'}, expect: [record.LID == 0, record.PortState == 'Initialize']}",
			took:  10 * time.Millisecond,
		},
		{
			name:  "and has it again after a sweep",
			steps: "{fault: {reboot: h8}}, {fault: {sweep: false}}, {send: {class: Subn, attribute: NodeInfo, to: 8, timeout: 10ms, retries: 0, no_answer_ok: true}, expect: [not answered]}, {fault: {sweep: true}}, {send: {class: Subn, attribute: NodeInfo, to: 8}, expect: [answered]}",
			took:  10 * time.Millisecond, report: "sweep",
		},
		{
			name:  "a named fault of the SM agents, on and off",
			steps: "{fault: {sma: busy}}, {send: {class: Subn, attribute: NodeInfo, to: 8, retries: 0}, expect: [status_code == 1]}, {fault: {sma: busy, off: true}}, {send: {class: Subn, attribute: NodeInfo, to: 8}}",
		},
		{
			name: "a fault that is not there", steps: "{fault: {sma: no-such}}", want: script.Errored,
			report: `test.yaml:2:23: there is no fault "no-such" of subnet management agents`,
		},
		{
			name: "a link that is not there", steps: "{fault: {link: 'h8[2]', down: true}}", want: script.Errored,
			report: `test.yaml:2:24: the fabric has no port "h8[2]"`,
		},
		{
			name: "a link of no node", steps: "{fault: {link: 'h9[1]', down: true}}", want: script.Errored,
			report: `test.yaml:2:24: the fabric has no port "h9[1]"`,
		},
		{
			name:  "connect by name, by IP address, by the kernel's path",
			steps: "{connect: {to: h8, service: 7471}, expect: [state == 'established', route.DLID == 8, remote_qpn > 0, local_qpn > 0, error == '', latency >= duration('0s')]}, {connect: {to: 10.0.0.7, service: 7471, private_data: hello}, expect: [private_data == '68656c6c6f', route.DLID == 7]}, {connect: {to: h6, service: 7471, path: kernel}, expect: [route.DLID == 6]}",
		},
		{
			name:  "connect over a path that was asked for",
			steps: "{send: {class: SubnAdm, method: GetTable, attribute: PathRecord, set: {SGID: '${gid(\"h1\")}', DGID: '${gid(\"h8\")}', NumbPath: 1, Reversible: 1}}, save: {p: 'records[0]'}}, {connect: {path: '${p}', service: 7471}, expect: [route.DLID == 8]}",
		},
		{
			name: "connect, held", steps: "{connect: {to: h8, service: 7471, hold: 3s}}", took: 3 * time.Second,
		},
		{
			name:  "connect that is rejected is an error",
			steps: "{connect: {to: h8, service: 99}}, {log: never}", want: script.Errored,
			report: "rejected: invalid service ID (8)",
			err: func(err error) bool {
				var rejected *ucma.RejectError
				return errors.As(err, &rejected)
			},
		},
		{
			name:  "connect that is rejected as expected",
			steps: "{connect: {to: h8, service: 99}, expect: [state == 'failed', reject_code == 8, reject == 'invalid service ID', error != '']}, {log: after}",
			log:   []string{"after"},
		},
		{
			name:  "connect to nobody ends with the step's time",
			steps: down + "{connect: {to: 10.0.0.8, service: 7471}, timeout: 3s}", want: script.Errored, took: 3 * time.Second,
			err: func(err error) bool { return errors.Is(err, ucma.ErrTimeout) },
		},
		{
			name:  "listen while steps run",
			steps: "{listen: {service: 555, private_data: 'hex:0102', count: 2, steps: [{connect: {to: h1, service: 555, private_data: 'hex:0007'}, expect: [private_data == '0102']}, {connect: {to: 10.0.0.1, service: 555}}]}, expect: [count == 2, \"requests[0].private_data == '0007'\", \"requests[0].state == 'established'\", \"requests[0].remote_qpn > 0\"]}",
		},
		{
			name:  "listen that rejects",
			steps: "{listen: {service: 555, reject: true, steps: [{connect: {to: h1, service: 555}, expect: [reject_code == 28]}]}, expect: [count == 1, \"requests[0].state == 'rejected'\"]}",
		},
		{
			name: "listen for nobody", steps: "{listen: {service: 555, count: 1}, timeout: 2s}", want: script.Errored, took: 2 * time.Second,
			report: "the time limit of the step, 2s, is over",
		},
		{
			name:  "serve while steps run",
			steps: "{serve: {class: 0x32, oui: 0x001405, methods: [Get], answers: [{status: 0x1c}], steps: [{send: {class: 0x32, oui: 0x001405, attribute: 0x10, to: 1}, expect: [status_code == 0x1c]}]}, expect: [count == 1]}",
		},
		{
			name: "serve for a time", steps: "{serve: {class: 0x32, oui: 0x001405, methods: [Get], for: 4s}, expect: [count == 0]}", took: 4 * time.Second,
		},
		{
			name:  "serve whose steps fail",
			steps: "{serve: {class: 0x32, oui: 0x001405, methods: [Get], steps: [{assert: [now() == nil]}]}}, {log: never}", want: script.Failed,
		},
		{
			name: "serve what is served already", steps: "{serve: {class: 0x32, oui: 0x001405, methods: [Get], steps: [{serve: {class: 0x32, oui: 0x001405, methods: [Get], for: 1s}}]}}", want: script.Errored,
		},
		{
			name:  "include, with parameters and results",
			steps: "{set_var: {n: 1}}, {include: {file: twice.yaml, with: {n: 21}}, expect: [result.double == 42], save: {m: result.double}}, {log: '${m} ${n}'}",
			log:   []string{"21", "bye from 21", "42 1"},
		},
		{
			name:  "include that fails runs its own finally",
			steps: "{include: {file: twice.yaml, with: {n: 1, most: 0}}}, {log: never}", want: script.Failed,
			log: []string{"1", "bye from 1"}, report: "twice.yaml:8:13: expected n <= most: it is 1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, end := newBench(t)
				defer end()
				b.files["twice.yaml"] = &fstest.MapFile{Data: []byte(twice)}
				start := time.Now()
				out := b.run(t.Context(), "steps: ["+c.steps+"]")
				takes(t, start, c.took)
				if out.Verdict != c.want {
					t.Errorf("verdict %v, want %v", out.Verdict, c.want)
				}
				if got := b.told(); !slices.Equal(got, c.log) {
					t.Errorf("logged %q, want %q", got, c.log)
				}
				if !strings.Contains(string(b.report), c.report) {
					t.Errorf("the report lacks %q", c.report)
				}
				if c.err != nil && (out.First == nil || !c.err(out.First.Err)) {
					t.Errorf("first failure: %+v", out.First)
				}
				if t.Failed() {
					t.Logf("report:\n%s", b.report)
				}
			})
		})
	}
}

const twice = `version: 1
params:
  n: null
  most: 100
vars: {double: "${n * 2}"}
steps:
  - log: ${n}
  - assert: n <= most
finally:
  - log: bye from ${n}
`

// A script that changes something does not begin on a real fabric, unless it may.
func TestNeedsYes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := newBench(t)
		defer end()
		b.env.Simulated, b.env.SA, b.env.Resolver = false, nil, nil
		for _, c := range []struct {
			steps string
			needs bool
		}{
			{"{log: a}", false},
			{"{send: {class: Subn, attribute: NodeInfo, to: 1}}", false},
			{"{send: {class: Subn, method: Set, attribute: PortInfo, to: 1, set: {LID: 1}}}", true},
			{"{send: {class: Subn, method: '${m}', attribute: NodeInfo, to: 1}}", true},
			{"{repeat: {times: 1, steps: [{send: {class: SubnAdm, method: Delete, attribute: ServiceRecord}}]}}", true},
			{"{include: {file: set.yaml}}", true},
			{"{connect: {to: 10.0.0.8, service: 1}}", true},
			{"{listen: {service: 1, count: 1}}", true},
			{"{serve: {class: 0x32, oui: 0x1405, methods: [Get], for: 1s}}", true},
			{"{send: {class: SubnAdm, method: Report, attribute: Notice, to: 1}}", true},
			{"{send: {class: SubnAdm, method: GetResp, attribute: NodeRecord, to: 1}}", true},
			{"{send: {raw: '01010181', to: 1}}", true},
			{"{send: {class: SubnAdm, method: GetTable, attribute: NodeRecord}}", false},
		} {
			b.files["set.yaml"] = &fstest.MapFile{Data: []byte("version: 1\nsteps: [{log: a}]\nfinally: [{send: {class: Subn, method: Set, attribute: PortInfo, to: 1, set: {LID: 1}}}]")}
			s := b.load("vars: {m: Get}\nsteps: [{log: first}, " + c.steps + "]")
			began := false
			_, err := script.Run(t.Context(), s, b.env, script.Options{Report: func(*script.Event) { began = true }})
			var yes *script.NeedsYesError
			if got := errors.As(err, &yes); got != c.needs || began == c.needs {
				t.Errorf("%s: error %v, begun %t; want one: %t", c.steps, err, began, c.needs)
			}
			if c.needs && (yes.Pos.File == "" || yes.Pos.Line == 0) {
				t.Errorf("%s: the error has no place: %v", c.steps, err)
			}
		}
	})
}

// broken is a mistake of ours.
type broken struct{ script.FaultInjector }

func (broken) Reboot(string) error { panic("broken") }

// Whatever is wrong with a step, finally runs.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := newBench(t)
		defer end()
		b.env.Faults = broken{}
		out := b.run(t.Context(), "steps: [{parallel: {steps: [{fault: {reboot: h8}}]}}, {log: never}]\nfinally: [{log: last}]")
		if want := (script.Counts{Steps: 2, Passed: 1, Errors: 1}); out.Verdict != script.Errored || out.Counts != want {
			t.Errorf("%v, %+v", out.Verdict, out.Counts)
		}
		if !strings.Contains(string(b.report), "a mistake in ibsm: broken") {
			t.Errorf("report:\n%s", b.report)
		}
	})
}
