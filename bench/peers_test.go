package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// program finds one of the programs that the script run has made, in the folder
// BENCH_BIN: ibsm, and of peers those whose libraries there are. It is "" if there
// is none.
func program(name string) string {
	dir := os.Getenv("BENCH_BIN")
	if dir == "" {
		return ""
	}
	file := filepath.Join(dir, name)
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// figure runs a program of peers and gives what it prints, which is what it
// measured. It is reported as peer-UNIT, beside the own UNIT.
func figure(b *testing.B, cmd *exec.Cmd) float64 {
	b.Helper()
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%v: %v", cmd, err)
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatalf("%v: %v", cmd, err)
	}
	return v
}
