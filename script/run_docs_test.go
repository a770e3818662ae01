package script_test

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/script"
)

// stated is where an example says that it does not pass.
var stated = regexp.MustCompile(`# Verdict: (\w+)`)

// Every example of docs/scripts.md does on sim:demo what it says: it passes, unless
// it states another verdict.
func TestDocExamples(t *testing.T) {
	t.Setenv("IBSM_M_KEY", "0x1234")
	examples, files := script.DocExamples(t)
	if len(examples) < 25 {
		t.Errorf("only %d examples were found", len(examples))
	}
	for where, example := range examples {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, end := newBench(t)
				defer end()
				b.files = files
				b.text.Verbose = true
				out := b.run(t.Context(), strings.TrimPrefix(string(example.Data), "version: 1\n"))
				want := script.Passed.String()
				if m := stated.FindSubmatch(example.Data); m != nil {
					want = string(m[1])
				}
				if out.Verdict.String() != want || len(out.Missing) > 0 {
					t.Errorf("%v, want %s; missing %v\n%s", out.Verdict, want, out.Missing, b.report)
				}
			})
		})
	}
}
