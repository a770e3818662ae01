package script

import (
	"testing"
	"testing/fstest"
)

// BenchmarkStep is what a step costs beside the MAD's way: making it, its results and
// its expectations.
func BenchmarkStep(b *testing.B) {
	x := newBench(b, "demo")
	script, err := Load("s.yaml", fstest.MapFS{"s.yaml": {Data: []byte(`version: 1
vars: {n: 1}
steps:
  - send: {class: Subn, attribute: PortInfo, to: 8, modifier: "${n}", header: {M_Key: 0x5}}
    expect: [status == "ok", record.PortState == "Active", record.LID == 8]
`)}})
	if err == nil {
		err = script.Check(CheckEnv{})
	}
	if err != nil {
		b.Fatal(err)
	}
	s := script.Steps[0]
	x.vars.set("n", 1)
	m, err := x.sender.prepare(b.Context(), s.Body.(*Send), x.vars)
	if err != nil {
		b.Fatal(err)
	}
	a, err := m.send(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.sender.prepare(b.Context(), s.Body.(*Send), x.vars); err != nil {
			b.Fatal(err)
		}
		mark := x.vars.mark()
		a.bind(x.vars)
		for _, e := range s.Expect {
			if ok, _, err := x.vars.evalBool(b.Context(), e); !ok || err != nil {
				b.Fatal(e.Text, err)
			}
		}
		x.vars.release(mark)
	}
}
