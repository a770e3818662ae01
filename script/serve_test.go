package script

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ibsm/ibsm/port"
)

// serve starts a responder at a host.
func (b *bench) serve(t *testing.T, host, yaml string) (*responder, error) {
	t.Helper()
	p, ok := b.sub.PortByName(host)
	if !ok {
		t.Fatalf("no host %s", host)
	}
	dev, err := b.net.Device(p.Node, p.Num)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return startServer(t.Context(), fabric{dev: dev}, step(t, "serve: "+yaml).Body.(*Serve), b.vars)
}

func (b *bench) served(t *testing.T, host, yaml string) *responder {
	t.Helper()
	r, err := b.serve(t, host, yaml)
	if err != nil {
		t.Fatalf("%s: %v", yaml, err)
	}
	return r
}

func TestServe(t *testing.T) {
	type exchange struct {
		send   string
		expect []string
	}
	const vendor = `class: 0x32, oui: 0x001405, to: h3, timeout: 100ms, retries: 0`
	tests := []struct {
		serve     string
		exchanges []exchange
		after     []string
	}{
		{
			`{class: 0x32, oui: 0x001405, methods: [Get, Set], answers: [
				{when: 'request.Method == "Set"', status: 0x001c},
				{attribute: 0x20, silent: true},
				{when: request.AttributeModifier == n, data: "0102ff"},
				{attribute: 0x21, busy: 2, delay: 30ms}]}`,
			[]exchange{
				{`{` + vendor + `, attribute: 0x10, method: Set}`, []string{`status == "invalid_attrib_value"`, `answer.Method == "GetResp"`}},
				{`{` + vendor + `, attribute: 0x20}`, []string{`not answered`}},
				{`{` + vendor + `, attribute: 0x10, modifier: 7, data: "aaaaaaaa"}`, []string{`status == "ok"`, `data startsWith "0102ff00"`, `from.lid == 3`}},
				{`{` + vendor + `, attribute: 0x21}`, []string{`status == "busy"`, `latency >= "30ms"`}},
				{`{` + vendor + `, attribute: 0x21}`, []string{`status == "busy"`}},
				{`{` + vendor + `, attribute: 0x21, data: "beef"}`, []string{`status == "ok"`, `data startsWith "beef"`}},
				{`{` + vendor + `, attribute: 0x30}`, []string{`status == "unsupported_method_attrib"`}},
			},
			[]string{`count == 7`, `len(requests) == 7`, `requests[2].AttributeModifier == 7`, `requests[0].Method == "Set"`},
		},
		{
			`{class: Perf, methods: [Get], answers: [{data: "${hex}"}]}`,
			[]exchange{{`{class: Perf, attribute: 1, to: h3}`, []string{`data startsWith "0badcafe"`}}},
			[]string{`count == 1`},
		},
		{ // a table of the SA, by RMPP
			`{class: SubnAdm, methods: [GetTable, Get], answers: [
				{when: 'request.ComponentMask != "0x0000000000000000"', attribute: NodeRecord, set: {LID: "${request.LID + 1}", NodeType: Switch}},
				{attribute: NodeRecord, data: "${many}"}]}`,
			[]exchange{
				{`{class: SubnAdm, method: GetTable, attribute: NodeRecord, to: h3, set: {LID: 5}}`, []string{`status == "ok"`, `record.LID == 6`, `record.NodeInfo.NodeType == "Switch"`}},
				{`{class: SubnAdm, method: GetTable, attribute: NodeRecord, to: h3}`, []string{`count == 20`, `all(records, .LID == 0x1111)`}},
			},
			[]string{`count == 2`, `requests[0].LID == 5`},
		},
	}
	for _, tt := range tests {
		inDemo(t, func(t *testing.T, b *bench) {
			b.vars.set("n", 7)
			b.vars.set("hex", "0badcafe")
			b.vars.set("many", strings.Repeat("11", 20*112))
			r := b.served(t, "h3", tt.serve)
			for _, x := range tt.exchanges {
				mark := b.vars.mark()
				b.send(t, x.send)
				b.holds(t, x.send, x.expect...)
				b.vars.release(mark)
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
			r.bind(b.vars)
			b.holds(t, tt.serve, tt.after...)
		})
	}
}

func TestServeErrors(t *testing.T) {
	inDemo(t, func(t *testing.T, b *bench) {
		// The SA on h1 has these methods.
		if _, err := b.serve(t, "h1", `{class: SubnAdm, methods: [Get], answers: [{status: 0}]}`); !errors.Is(err, port.ErrMethodOwned) {
			t.Errorf("beside the SA: %v", err)
		}
		for yaml, want := range map[string]string{
			`{class: "${1.5}", methods: [Get]}`:                                         "1.5",
			`{class: Perf, methods: ["${'Fetch'}"]}`:                                    "Fetch",
			`{class: Perf, methods: [Get], answers: [{busy: "${'x'}"}]}`:                "whole number",
			`{class: SubnAdm, methods: [Get], answers: [{attribute: "${'Nonsense'}"}]}`: "Nonsense",
		} {
			if _, err := b.serve(t, "h3", yaml); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", yaml, err, want)
			}
		}
		// What is wrong with an answer is told at the end.
		r := b.served(t, "h4", `{class: Perf, methods: [Get], answers: [{when: request.AttributeModifier, status: 0}]}`)
		b.send(t, `{class: Perf, attribute: 1, to: h4, timeout: 50ms, retries: 0}`)
		b.holds(t, "a condition that is no condition", `not answered`)
		var bad *ExprError
		if err := r.stop(); !errors.As(err, &bad) {
			t.Errorf("the condition is no condition: %v", err)
		}
	})
}

// A responder with a delay ends when it is stopped.
func TestServeStops(t *testing.T) {
	inDemo(t, func(t *testing.T, b *bench) {
		r := b.served(t, "h3", `{class: Perf, methods: [Get], answers: [{delay: 10s}]}`)
		b.send(t, `{class: Perf, attribute: 1, to: h3, timeout: 50ms, retries: 0}`)
		start := time.Now()
		if err := r.stop(); err != nil || time.Since(start) != 0 {
			t.Errorf("stopped after %v: %v", time.Since(start), err)
		}
	})
}
