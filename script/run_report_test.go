package script_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/script"
)

// mixed is a script in which something of each kind becomes of steps.
const mixed = `name: mixed & "quoted"
vars: {n: 0}
on_error: continue
steps:
  - name: node info
    section: IBA 14.2.5.3
    send: {class: Subn, attribute: NodeInfo, to: h2}
    expect: status == "ok"
  - name: wrong & <escaped>
    section: IBA 14.2.5.1
    send: {class: Subn, attribute: NodeDescription, to: h2}
    expect:
      - status == "ok"
      - record.NodeString == "h3"
  - name: each host
    for_each:
      var: h
      in: hosts
      steps:
        - name: its port
          send: {class: Subn, attribute: PortInfo, to: "${h.lid}", modifier: 1}
          expect: record.LID != 4
  - name: one after another
    parallel:
      var: i
      in: [2, 1]
      steps:
        - wait: ${i}ms
        - log: waited ${i} ms
  - name: some
    retry:
      times: 3
      delay: 10ms
      steps:
        - set_var: {n: "${n + 1}"}
        - name: enough
          assert: n == 2
  - name: not today
    if: n > 5
    log: never
  - name: needs the moon
    requires: [cm]
    log: never
  - name: nobody there
    send: {class: Subn, attribute: NodeInfo, to: "0,1,9", timeout: 20ms, retries: 0}
finally:
  - log: put back
`

// TestTextReport compares the report of a script with those in testdata/report, whose every
// line was checked by hand against the script and the comments of TextReport. MADs are left
// out: what they look like is tested in mad/text.
func TestTextReport(t *testing.T) {
	for _, c := range []struct {
		file    string
		verbose bool
	}{{"brief.txt", false}, {"verbose.txt", true}} {
		t.Run(c.file, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join("testdata/report", c.file))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				b, end := newBench(t)
				defer end()
				b.text.Verbose, b.noMADs = c.verbose, true
				b.env.Provides = slices.DeleteFunc(slices.Clone(everything), func(w string) bool { return w == "cm" })
				b.run(t.Context(), mixed)
				if got := string(b.report); got != string(want) {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		})
	}
}

// buffer is a file in memory.
type buffer struct {
	b   []byte
	pos int
}

func (f *buffer) Write(p []byte) (int, error) {
	rest := f.b[min(len(f.b), f.pos+len(p)):]
	f.b = slices.Concat(f.b[:f.pos], p, rest)
	f.pos += len(p)
	return len(p), nil
}

func (f *buffer) Seek(offset int64, _ int) (int64, error) {
	f.pos = int(offset)
	return offset, nil
}

// suites is what readers of JUnit's XML look for (the schema of Jenkins' xUnit plugin,
// junit-10.xsd): names of elements and attributes, and their order.
type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suites  []struct {
		Name      string `xml:"name,attr"`
		Tests     int    `xml:"tests,attr"`
		Failures  int    `xml:"failures,attr"`
		Errors    int    `xml:"errors,attr"`
		Skipped   int    `xml:"skipped,attr"`
		Time      string `xml:"time,attr"`
		Timestamp string `xml:"timestamp,attr"`
		Cases     []struct {
			Name      string    `xml:"name,attr"`
			Classname string    `xml:"classname,attr"`
			Time      string    `xml:"time,attr"`
			Skipped   []outcome `xml:"skipped"`
			Error     []outcome `xml:"error"`
			Failure   []outcome `xml:"failure"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

type outcome struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

func TestJUnit(t *testing.T) {
	var file buffer
	var out *script.Outcome
	synctest.Test(t, func(t *testing.T) {
		b, end := newBench(t)
		defer end()
		j := script.NewJUnit(&file, `mixed & "quoted"`)
		b.env.Provides = slices.DeleteFunc(slices.Clone(everything), func(w string) bool { return w == "cm" })
		b.opt.Report = j.Report
		out = b.run(t.Context(), mixed)
		if err := j.Close(out); err != nil {
			t.Fatal(err)
		}
	})
	checkSchema(t, file.b)
	var got suites
	if err := xml.Unmarshal(file.b, &got); err != nil {
		t.Fatalf("%v in\n%s", err, file.b)
	}
	if len(got.Suites) != 1 {
		t.Fatalf("%d suites", len(got.Suites))
	}
	suite := got.Suites[0]
	if suite.Name != `mixed & "quoted"` || suite.Tests != out.Steps || suite.Failures != out.Failed || suite.Errors != out.Errors || suite.Skipped != out.Skipped {
		t.Errorf("suite %+v\nof %+v", suite, out.Counts)
	}
	if len(suite.Cases) != out.Steps {
		t.Errorf("%d testcases, want %d", len(suite.Cases), out.Steps)
	}
	var names []string
	failed, errs, skipped := 0, 0, 0
	for _, c := range suite.Cases {
		names = append(names, c.Name)
		failed += len(c.Failure)
		errs += len(c.Error)
		skipped += len(c.Skipped)
		if len(c.Failure)+len(c.Error)+len(c.Skipped) > 1 {
			t.Errorf("%s has more than one outcome", c.Name)
		}
		switch c.Name {
		case "wrong & <escaped>":
			if want := `expected record.NodeString == "h3": it is "h2"`; !strings.HasSuffix(c.Failure[0].Message, want) {
				t.Errorf("message %q, want %q", c.Failure[0].Message, want)
			}
			if !strings.Contains(c.Failure[0].Text, "answered by LID 2:") || c.Classname != `mixed & "quoted".IBA 14_2_5_1` {
				t.Errorf("%+v", c)
			}
		}
	}
	if failed != out.Failed || errs != out.Errors || skipped != out.Skipped {
		t.Errorf("%d failures, %d errors, %d skipped; want %+v", failed, errs, skipped, out.Counts)
	}
	for _, want := range []string{"node info", "each host / h = h4[1]: its port", "one after another / i = 2: wait ${i}ms", "some / 2 of 3: enough"} {
		if !slices.Contains(names, want) {
			t.Errorf("no testcase %q in %q", want, names)
		}
	}
}

// checkSchema holds a report against the rules of junit-10.xsd that matter here.
func checkSchema(t *testing.T, b []byte) {
	t.Helper()
	children := map[string][]string{
		"": {"testsuites"}, "testsuites": {"testsuite"}, "testsuite": {"testcase"},
		"testcase": {"skipped", "error", "failure", "system-out"}, // in this order
	}
	attributes := map[string]string{ // space: required; the rest may be there
		"testsuites": "", "testsuite": "name tests failures errors skipped time timestamp", "testcase": "name classname time",
		"skipped": "message", "error": "message type", "failure": "message type", "system-out": "",
	}
	d := xml.NewDecoder(bytes.NewReader(b))
	d.Strict = true
	open, last := []string{""}, []int{0}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well formed: %v", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			within := open[len(open)-1]
			at := slices.Index(children[within], x.Name.Local)
			if at < last[len(last)-1] {
				t.Errorf("%s in %s", x.Name.Local, within)
			}
			last[len(last)-1] = at
			for _, a := range x.Attr {
				if !slices.Contains(strings.Fields(attributes[x.Name.Local]), a.Name.Local) {
					t.Errorf("attribute %s of %s", a.Name.Local, x.Name.Local)
				}
				if _, err := strconv.ParseFloat(a.Value, 64); a.Name.Local == "time" && err != nil {
					t.Errorf("time %q: %v", a.Value, err)
				}
			}
			open, last = append(open, x.Name.Local), append(last, 0)
		case xml.EndElement:
			open, last = open[:len(open)-1], last[:len(last)-1]
		case xml.CharData:
			if within := open[len(open)-1]; strings.TrimSpace(string(x)) != "" && children[within] != nil {
				t.Errorf("text %q in %s", x, within)
			}
		}
	}
}

// A key that a script has from elsewhere shows nowhere: not in MADs, not in messages, in
// no form in which it may be written.
func TestSecrets(t *testing.T) {
	const secret = "0x7365637265742121"
	t.Setenv("IBSM_TEST_KEY", secret)
	forms := []string{secret, "7365637265742121", "8314044330010190113", "73 65 63 72 65 74 21 21", "se\x00", "secret!!"}
	for _, dry := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b, end := newBench(t)
			defer end()
			b.opt.DryRun, b.text.Verbose = dry, true
			var file buffer
			j := script.NewJUnit(&file, "secrets")
			b.opt.Report = func(e *script.Event) {
				j.Report(e)
				for _, m := range []*script.Message{e.Message, sentOf(e.Failure), answerOf(e.Failure)} {
					if m != nil && bytes.Contains(m.Data, []byte("secret!!")) {
						t.Errorf("step %s shows the key in the bytes of a MAD", e.Name)
					}
				}
			}
			out := b.run(t.Context(), `on_error: continue
steps:
  - send: {class: SubnAdm, attribute: NodeRecord, method: GetTable, header: {SM_Key: "env:IBSM_TEST_KEY"}, timeout: 10ms, retries: 0, no_answer_ok: true}
    expect: "len(records) == 77"
  - send: {class: Subn, attribute: NodeInfo, to: 2, header: {M_Key: "env:IBSM_TEST_KEY"}}
    expect: "answer.M_Key == 1"
  - send: {class: Subn, method: Set, attribute: PortInfo, modifier: 1, to: 2, set: {M_Key: "env:IBSM_TEST_KEY", LID: 2}}
    expect: "record.LID == 99"
`)
			if err := j.Close(out); err != nil {
				t.Fatal(err)
			}
			for _, form := range forms {
				if strings.Contains(string(b.report), form) {
					t.Errorf("dry run %t: the report has %q:\n%s", dry, form, b.report)
				}
				if bytes.Contains(file.b, []byte(form)) {
					t.Errorf("dry run %t: the JUnit report has %q", dry, form)
				}
			}
		})
	}
}

func sentOf(f *script.Failure) *script.Message {
	if f == nil {
		return nil
	}
	return f.Sent
}

func answerOf(f *script.Failure) *script.Message {
	if f == nil {
		return nil
	}
	return f.Answer
}

// TestDryRun counts what leaves the port, and looks at what is told.
func TestDryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := newBench(t)
		defer end()
		b.opt.DryRun = true
		b.files["in.yaml"] = &fstest.MapFile{Data: []byte("version: 1\nparams: {lid: null}\nsteps: [{send: {class: Subn, attribute: NodeInfo, to: '${lid}'}}]")}
		var mads []string
		b.opt.Report = func(e *script.Event) {
			if e.Kind == script.EventMAD {
				mads = append(mads, e.Name+" to "+e.Message.To)
			}
		}
		out := b.run(t.Context(), `steps:
  - {name: a, send: {class: Subn, attribute: NodeInfo, to: 3}, expect: [status == "ok"], save: {x: record.NumPorts}}
  - {name: b, send: {class: Subn, method: Set, attribute: PortInfo, to: 4, modifier: "${x}", set: {LID: 4}}}
  - {name: c, for_each: {var: p, in: [5, 6], steps: [{name: d, send: {class: Subn, attribute: PortInfo, to: "${p}", modifier: 1}}]}}
  - {name: e, for_each: {var: p, in: ports, steps: [{name: f, send: {class: Subn, attribute: PortInfo, to: "${p.lid}", modifier: 1}}]}}
  - {name: g, repeat: {times: 1000, every: 1h, steps: [{name: h, send: {class: Subn, attribute: NodeInfo, to: 7}}]}}
  - {name: i, if: x > 1, log: never}
  - {name: j, connect: {to: 10.0.0.8, service: 7471}, expect: [state == "established"], save: {q: remote_qpn}}
  - {name: k, log: "${q}"}
  - {name: l, set_var: {q: 1}}
  - {name: m, assert: [q == 1]}
  - {name: n, fault: {link: all, down: true}}
  - {name: o, wait: 1h}
  - {name: p, include: {file: in.yaml, with: {lid: 8}}}
  - {name: q, include: {file: in.yaml, with: {lid: "${x}"}}}
  - {name: r, parallel: {var: y, in: [1, 2], steps: [{name: s, send: {class: Subn, attribute: NodeInfo, to: "${y}"}}]}}
`)
		want := []string{
			"a to LID 3", "d to LID 5", "d to LID 6", "h to LID 7", "Get NodeInfo ${lid} to LID 8", "s to LID 1", "s to LID 2",
		}
		if !slices.Equal(mads, want) {
			t.Errorf("MADs %q\nwant %q", mads, want)
		}
		if out.Verdict != script.Passed || out.Skipped != 5 {
			t.Errorf("%v, %d skipped; want passed, 5 skipped\n%s", out.Verdict, out.Skipped, b.report)
		}
		if n := b.sent.Load(); n != 0 {
			t.Errorf("%d messages were sent", n)
		}
		if !strings.Contains(string(b.report), "00000000  01 01 01 01 00 00 00 00  00 00 00 00 00 00 00 00") {
			t.Error("no MAD is there in hexadecimal")
		}
		if !strings.Contains(string(b.report), "not told: an answer would give x") {
			t.Error("what is not told is not said")
		}
	})
}

// A run of 100,000 steps holds no more memory than one of a few: what became of each
// goes to Report.
func TestConstantMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a second or more under the race detector")
	}
	b, end := newBench(t)
	defer end()
	s := b.load(`steps:
  - for_each:
      var: i
      in: 1..20000
      steps:
        - set_var: {n: "${i * 2}"}
        - assert: n == i * 2
        - retry: {times: 2, delay: 0s, steps: [{assert: "n >= i"}]}
        - if: i % 20 == 0
          send: {class: SubnAdm, method: GetTable, attribute: NodeRecord}
          expect: count == 10
          save: {all: records}
`)
	var text script.TextReport
	var line []byte
	steps, lines := 0, 0
	least, most := ^uint64(0), uint64(0)
	out, err := script.Run(context.Background(), s, b.env, script.Options{Report: func(e *script.Event) {
		line = text.Append(line[:0], e)
		lines += bytes.Count(line, []byte("\n"))
		if e.Kind != script.EventEnd {
			return
		}
		if steps++; steps%20_000 == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			least, most = min(least, m.HeapAlloc), max(most, m.HeapAlloc)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if steps != 100_001 || out.Steps != 80_000 || out.Passed != 61_000 || out.Skipped != 19_000 {
		t.Errorf("%d steps ended, %+v", steps, out.Counts)
	}
	if lines != 2 {
		t.Errorf("the report has %d lines, want 2", lines)
	}
	if grown := most - least; grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes between step 20,000 and 100,000", grown)
	}
}

// BenchmarkEngine is the time that a step takes in a run, with its line in the report:
// the engine's own, and in send that of the MAD's way on the simulated fabric, too.
func BenchmarkEngine(b *testing.B) {
	for _, c := range []struct{ name, step string }{
		{"assert", "{assert: n == 1}"},
		{"set_var", "{set_var: {m: '${n + 1}'}}"},
		{"log", "{log: 'n is ${n}'}"},
		{"skipped", "{log: a, if: n > 1}"},
		{"send", "{send: {class: Subn, attribute: PortInfo, to: 8, modifier: 1}, expect: [status == 'ok', record.LID == 8]}"},
	} {
		b.Run(c.name, func(b *testing.B) {
			rig, end := newBench(b)
			defer end()
			s := rig.load("vars: {n: 1, times: 1}\nsteps: [{repeat: {times: '${times}', steps: [" + c.step + "]}}]")
			b.ReportAllocs()
			var text script.TextReport
			var line []byte
			for done := 0; done < b.N; {
				n := min(b.N-done, script.MaxIterations)
				out, err := script.Run(context.Background(), s, rig.env, script.Options{
					Vars:   map[string]any{"times": n},
					Report: func(e *script.Event) { line = text.Append(line[:0], e) },
				})
				if err != nil || out.Steps != n {
					b.Fatalf("%v, %+v", err, out)
				}
				done += n
			}
		})
	}
}

// A secret comes from where the script, or who runs it, says, by any variable, and goes into
// keys alone.
func TestSecretVariables(t *testing.T) {
	const key = "0x7365637265742121"
	t.Setenv("IBSM_TEST_KEY", key)
	t.Setenv("IBSM_TEST_OTHER", key)
	synctest.Test(t, func(t *testing.T) {
		b, end := newBench(t)
		defer end()
		b.files["in.yaml"] = &fstest.MapFile{Data: []byte("version: 1\nparams: {key: null}\nsteps: [{send: {class: Subn, attribute: NodeInfo, to: 2, header: {M_Key: '${key}'}}}]")}
		b.opt.Vars = map[string]any{"given": "env:IBSM_TEST_OTHER"}
		const steps = `vars: {k: "env:IBSM_TEST_KEY", given: 1, made: "env:${'IBSM'}_TEST_NONE"}
on_error: continue
steps:
  - send: {class: Subn, attribute: NodeInfo, to: 2, header: {M_Key: "${k}"}}
  - send: {class: Subn, attribute: NodeInfo, to: 2, header: {M_Key: "${given}"}}
  - include: {file: in.yaml, with: {key: "env:IBSM_TEST_KEY"}}
  - for_each: {var: one, in: ["env:IBSM_TEST_OTHER"], steps: [{send: {class: Subn, attribute: NodeInfo, to: 2, header: {M_Key: "${one}"}}}]}
  - send: {class: SubnAdm, method: Set, attribute: ServiceRecord, set: {ServiceName: "${k}", ServiceID: 5}}
    expect: record.ServiceName == k
`
		out := b.run(t.Context(), steps)
		if want := (script.Counts{Steps: 5, Passed: 5}); out.Counts != want {
			t.Errorf("%+v, want %+v:\n%s", out.Counts, want, b.report)
		}
		out = b.run(t.Context(), steps+`  - send: {class: Subn, attribute: NodeInfo, to: 2, header: {M_Key: "${made}"}}`)
		if out.Errors != 1 || !strings.Contains(string(b.report), "the script does not have this text") {
			t.Errorf("a text that the run made: %+v:\n%s", out.Counts, b.report)
		}
	})
}

// A run that did not come to its end is not green, also where each step that ran has passed.
func TestJUnitStopped(t *testing.T) {
	const steps = "steps: [{log: a}, {parallel: {steps: [{wait: 1h}]}}, {log: b}]"
	for name, c := range map[string]struct {
		after time.Duration // the interrupt; 0: none
		text  string
		want  []string // in the report
	}{
		"interrupted before": {-1, steps, []string{`tests="1"`, `errors="1"`, `<testcase name="stopped"`, `<error message="interrupted`}},
		"interrupted":        {time.Second, steps, []string{`<testcase name="stopped"`, `<error message="interrupted`}},
		"timed out":          {0, "timeout: 5s\n" + steps, []string{`<error `, "time limit of the script"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, end := newBench(t)
				defer end()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				switch {
				case c.after < 0:
					cancel()
				case c.after > 0:
					time.AfterFunc(c.after, cancel)
				}
				var file buffer
				j := script.NewJUnit(&file, "stopped")
				b.opt.Report = j.Report
				if err := j.Close(b.run(ctx, c.text)); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(file.b), `errors="0"`) {
					t.Error("the report has no error")
				}
				for _, want := range c.want {
					if !strings.Contains(string(file.b), want) {
						t.Errorf("the report lacks %s", want)
					}
				}
				checkCounts(t, file.b)
				if t.Failed() {
					t.Logf("%s", file.b)
				}
			})
		})
	}
}

// checkCounts compares the counts at the head of a report with what is in it.
func checkCounts(t *testing.T, report []byte) {
	t.Helper()
	for attr, element := range map[string]string{"tests": "<testcase ", "errors": "<error", "failures": "<failure", "skipped": "<skipped"} {
		n := strings.Count(string(report), element)
		if want := " " + attr + `="` + strconv.Itoa(n) + `"`; !strings.Contains(string(report), want) {
			t.Errorf("the head has not%s", want)
		}
	}
}
