package ucma

import (
	"fmt"
	"os"
	"regexp"
	"testing"
)

// The table of commands in docs/rdma-cm-abi.md is that of the dialects.
func TestDocumentedCommands(t *testing.T) {
	b, err := os.ReadFile("../docs/rdma-cm-abi.md")
	if err != nil {
		t.Fatal(err)
	}
	sizes := func(d *Dialect, op Op) string {
		s, ok := d.Spec(op)
		if !ok {
			return " |  |"
		}
		pair := func(n, least int) string {
			if n == least {
				return fmt.Sprint(n)
			}
			return fmt.Sprintf("%d, %d", n, least)
		}
		return fmt.Sprintf(" %s | %s |", pair(s.In, s.MinIn), pair(s.Out, s.MinOut))
	}
	found := 0
	row := regexp.MustCompile(`(?m)^\| (\d+) \| ([A-Z_]+) \|([^|]*\|[^|]*\|) ([A-Z_]*) ?\|([^|]*\|[^|]*\|)$`)
	for _, m := range row.FindAllStringSubmatch(string(b), -1) {
		var op Op
		fmt.Sscan(m[1], &op)
		if op.String() != m[2] {
			t.Errorf("%d is %v, documented as %s", uint32(op), op, m[2])
		}
		if want := sizes(Linux, op); m[3] != want {
			t.Errorf("%v: documented %q, is %q", op, m[3], want)
		}
		if _, ok := Illumos.Spec(op); ok {
			if want := sizes(Illumos, op); m[5] != want || m[4] == "" {
				t.Errorf("%v on illumos: documented %q %q, is %q", op, m[4], m[5], want)
			}
		} else if m[4] != "" {
			t.Errorf("%v: illumos does not have it", op)
		}
		found++
	}
	if found != len(Linux.commands) {
		t.Errorf("%d commands documented, there are %d", found, len(Linux.commands))
	}
}
