package app

import (
	"strings"
	"testing"
	"unicode"

	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/topo"
)

// What nodes are called is not ibsm's choice: whatever they hold, text has its
// lines and no command for the terminal, and the structured formats have the
// name itself.
func TestWeirdNames(t *testing.T) {
	const evil = "\x1b]0;pwned\a\x1b[2J \u009b31m\xff"
	for _, desc := range []string{evil, "a\nNodeRecord dump:\rb\t", "naïve 結", "'\"$(x)`"} {
		sub := demo(t)
		for _, name := range []string{"h2", "h3", "h4"} { // h3 and h4: ambiguous
			n, _ := sub.NodeByName(name)
			n.Desc = desc
			if name == "h2" {
				n.Desc = desc + "2"
			}
		}
		r := serve(t, sub)
		for _, args := range [][]string{
			{"sa", "table", "node"}, {"sa", "path", "2", "2"}, {"sa", "path", "1", "name:" + desc}, {"sa", "path", "1", desc + "x"},
			{"smp", "get", "NodeDescription", "2"}, {"smp", "get", "NodeInfo", "name:" + desc + "2"}, {"-v", "smp", "get", "SwitchInfo", "name:" + desc + "2"},
		} {
			got := r.run(t.Context(), args...)
			for _, text := range []string{got.stdout, got.stderr} {
				if i := strings.IndexFunc(text, func(c rune) bool {
					return !unicode.IsPrint(c) && c != '\n' && c != '\t' || c == unicode.ReplacementChar
				}); i >= 0 {
					t.Errorf("%q prints %q", args, text[i:])
				}
			}
			if n := strings.Count(got.stdout, "\nNodeRecord dump:\n") + strings.Count(got.stdout, "NodeDescription"); args[1] == "table" && n != 19 {
				t.Errorf("%q: %d lines of 9 and 10 records in\n%s", args, n, got.stdout)
			}
		}
		d := r.run(t.Context(), "-o", "json", "smp", "get", "NodeDescription", "2").document(t)
		want := strings.ToValidUTF8(desc+"2", "\ufffd")
		if len(d.Records) != 1 || d.Records[0]["NodeString"] != want {
			t.Errorf("%q in json: %v", desc, d.Records)
		}
	}
}

// serve is a rig with a real SA.
func serve(t *testing.T, sub *topo.Subnet) *rig {
	t.Helper()
	r := newRig(t, sub)
	dev, err := r.fabric.Device(sub.SM.Node, sub.SM.Num)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(dev, sub, server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return r
}
