package topo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibsm/ibsm/mad"
)

// ibnetdiscover runs Debian's ibnetdiscover on Debian's ibsim with a netlist.
func ibnetdiscover(t *testing.T, netlist string) string {
	t.Helper()
	for _, program := range []string{"ibsim", "ibsim-run", "ibnetdiscover"} {
		if _, err := exec.LookPath(program); err != nil && os.Getenv("IBSM_BENCH") == "all" {
			t.Fatal(err)
		} else if err != nil {
			t.Skip(err)
		}
	}
	file := filepath.Join(t.TempDir(), "net")
	if err := os.WriteFile(file, []byte(netlist), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	env := append(os.Environ(), fmt.Sprintf("IBSIM_SOCKNAME=ibsm-topo-%d", os.Getpid()))
	simulator := exec.CommandContext(ctx, "ibsim", "-s", "-n", file)
	simulator.Env = env
	var log strings.Builder
	simulator.Stderr = &log
	out, err := simulator.StdoutPipe()
	if err == nil {
		err = simulator.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		var exit *exec.ExitError // it was killed
		if err := simulator.Wait(); !errors.As(err, &exit) {
			t.Errorf("ibsim: %v", err)
		}
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "Network simulator ready." {
	}
	if lines.Text() != "Network simulator ready." {
		t.Fatalf("ibsim is not ready:\n%s", &log)
	}
	program := exec.CommandContext(ctx, "ibsim-run", "ibnetdiscover")
	program.Env = env
	text, err := program.Output()
	if err != nil {
		t.Fatalf("ibnetdiscover: %v\n%s", err, &log)
	}
	return string(text)
}

// TestIbsimReadsNetDiscover: ibsim reads what we write, what ibnetdiscover finds
// there is the same text but for the order of nodes, and we read it back. ibsim
// 0.10 has neither NDR nor XDR, and no LIDs, widths and speeds of routers.
func TestIbsimReadsNetDiscover(t *testing.T) {
	s := broughtUp(t, generate(t, "two-level:leafs=5,spines=2,hosts=4,ports=2,lmc=1,speed=mixed,width=mixed"))
	for _, n := range s.Nodes {
		// ibnetdiscover asks devices of Mellanox's for FDR10.
		if n.VendorID, n.DeviceID = 0x2c9, 0x1003; n.IsSwitch() {
			n.DeviceID = 0xc738
		}
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Speed > mad.SpeedHDR {
				p.Speed = mad.SpeedHDR
			}
		}
	}
	s.Nodes[len(s.Nodes)-1].BasePort0 = true
	var ours strings.Builder
	if err := s.WriteNetDiscover(&ours); err != nil {
		t.Fatal(err)
	}
	theirs := ibnetdiscover(t, ours.String())
	sorted := func(text string) (lines []string) {
		for line := range strings.Lines(text) {
			if line[0] != '#' {
				lines = append(lines, line)
			}
		}
		slices.Sort(lines)
		return lines
	}
	if diff := cmp.Diff(sorted(ours.String()), sorted(theirs)); diff != "" {
		t.Errorf("ibnetdiscover finds something else (-written +found):\n%s", diff)
	}
	back := parse(t, theirs)
	if len(back.Warnings) > 0 {
		t.Errorf("warnings %v", back.Warnings)
	}
	for _, n := range s.Nodes {
		if other, ok := back.NodeByName(n.Name); !ok || other.GUID != n.GUID {
			t.Errorf("%s is not read back", n.Name)
		}
	}
}
