package endpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/smp"
)

// onDemo opens sim:demo#h2, with clients of the agents and of the SA.
func onDemo(t *testing.T, test func(t *testing.T, f *Faults, smps *smp.Client, admin *sa.Client)) {
	synctest.Test(t, func(t *testing.T) {
		dev, err := Open(t.Context(), "sim:demo#h2")
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		f, ok := FaultsOf(dev)
		if !ok {
			t.Fatal("a simulated device has no Faults")
		}
		smps, err := smp.NewClient(dev, smp.Config{Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer smps.Close()
		admin, err := sa.NewClient(dev, sa.Config{Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close()
		test(t, f, smps, admin)
	})
}

func nodeAt(ctx context.Context, c *smp.Client, lid mad.LID) error {
	_, err := smp.Get[mad.NodeInfo](ctx, c, mad.Addr{Kind: mad.AddrLID, LID: lid}, 0)
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What the links of demo do to a Get of h8 (LID 8), which crosses s1 and s2.
func TestLinkFaults(t *testing.T) {
	onDemo(t, func(t *testing.T, f *Faults, smps *smp.Client, _ *sa.Client) {
		lost := func() bool {
			t.Helper()
			err := nodeAt(t.Context(), smps, 8)
			if err != nil && !errors.Is(err, agents.ErrTimeout) {
				t.Fatal(err)
			}
			return err != nil
		}
		for _, at := range []string{"h8", "h8[1]", "s2[4]", AllLinks} {
			must(t, f.Link(at, false))
			if !lost() {
				t.Errorf("%s is down, but h8 answers", at)
			}
			must(t, f.Link(at, true))
			if lost() {
				t.Errorf("%s is up again, but h8 does not answer", at)
			}
			must(t, f.Loss(at, 1))
			if !lost() {
				t.Errorf("%s loses all, but h8 answers", at)
			}
			must(t, f.Loss(at, 0))
			must(t, f.Delay(at, 100*time.Millisecond))
			begin := time.Now()
			links := 2 // there and back
			if at == AllLinks {
				links = 6
			}
			if lost() || time.Since(begin) != time.Duration(links)*100*time.Millisecond {
				t.Errorf("%s delays by %v", at, time.Since(begin))
			}
			must(t, f.Duplicate(at, 1)) // and still delays
			begin = time.Now()
			if lost() || time.Since(begin) < 100*time.Millisecond {
				t.Errorf("%s forgets the delay: %v", at, time.Since(begin))
			}
			must(t, f.Delay(at, 0))
			must(t, f.Duplicate(at, 0))
			must(t, f.Reorder(at, 1))
			begin = time.Now()
			if lost() || time.Since(begin) != time.Duration(links)*time.Millisecond {
				t.Errorf("%s takes %v longer", at, time.Since(begin))
			}
			must(t, f.Reorder(at, 0))
		}
	})
}

func TestRebootAndSweep(t *testing.T) {
	onDemo(t, func(t *testing.T, f *Faults, smps *smp.Client, _ *sa.Client) {
		for _, node := range []string{"h8", "demo switch 2"} {
			must(t, f.Reboot(node))
			if err := nodeAt(t.Context(), smps, 8); !errors.Is(err, agents.ErrTimeout) {
				t.Errorf("%s has forgotten its set-up, but LID 8 answers: %v", node, err)
			}
			must(t, f.Sweep())
			must(t, nodeAt(t.Context(), smps, 8))
		}
	})
}

func TestNamedFaults(t *testing.T) {
	onDemo(t, func(t *testing.T, f *Faults, smps *smp.Client, admin *sa.Client) {
		guid := func() mad.GUID {
			t.Helper()
			info, err := smp.Get[mad.NodeInfo](t.Context(), smps, mad.MustParseAddr("8"), 0)
			must(t, err)
			return info.NodeGUID
		}
		nodes := func() (n int, err error) {
			for _, e := range sa.Table(t.Context(), admin, sa.Query[mad.NodeRecord]{}) {
				if err = e; err == nil {
					n++
				}
			}
			return n, err
		}
		want := guid()
		must(t, f.SMA("nodeinfo-node-guid", true))
		if guid() != 0 {
			t.Error("the agents have no fault")
		}
		must(t, f.SMA("nodeinfo-node-guid", false))
		if guid() != want {
			t.Error("the agents keep their fault")
		}
		must(t, f.SA("record-lost", true))
		if n, err := nodes(); n != 9 || err != nil {
			t.Errorf("%d nodes, %v; want 9 of 10", n, err)
		}
		must(t, f.SA("record-lost", false))
		must(t, f.SA("rmpp-abort", true))
		if n, err := nodes(); err == nil {
			t.Errorf("%d nodes in spite of the abort", n)
		}
		must(t, f.SA("rmpp-abort", false))
		if n, err := nodes(); n != 10 || err != nil {
			t.Errorf("%d nodes, %v; want 10", n, err)
		}
	})
}

func TestNoSuchFault(t *testing.T) {
	onDemo(t, func(t *testing.T, f *Faults, _ *smp.Client, _ *sa.Client) {
		for want, err := range map[string]error{
			`no port "h9"`:                 f.Link("h9", false),
			`no port "s1[99]"`:             f.Loss("s1[99]", 1),
			"s1[7] has no link":            f.Delay("s1[7]", time.Second),
			"s1[0] has no link":            f.Link("s1", false),
			"Loss 2 is no probability":     f.Loss(AllLinks, 2),
			"Reorder -1 is no probability": f.Reorder("h8", -1),
			`no node "h9"`:                 f.Reboot("h9"),
			`no fault "record-lost" of subnet management agents`: f.SMA("record-lost", true),
			`no fault "rmpp-abort" of subnet`:                    f.SMA("rmpp-abort", true),
			`no fault "nodeinfo-type" of the SA`:                 f.SA("nodeinfo-type", true),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	})
	if _, ok := FaultsOf(nil); ok {
		t.Error("no device has Faults")
	}
}

// The tables of docs/faults.md are those of the code.
func TestFaultsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]string{}
	for _, d := range NamedFaults() {
		of := "sma"
		if d.OfSA {
			of = "sa"
		}
		tables[of] += fmt.Sprintf("| `%s` | %s | %s |\n", d.Name, d.Breaks, d.IBA)
	}
	for of, rows := range tables {
		begin, end := fmt.Sprintf("<!-- %s: begin -->\n", of), fmt.Sprintf("<!-- %s: end -->", of)
		_, got, _ := strings.Cut(string(page), begin)
		got, _, ok := strings.Cut(got, end)
		if want := "| name | what happens instead | IBA |\n|---|---|---|\n" + rows; !ok || got != want {
			t.Errorf("docs/faults.md: between %s and %s should stand\n%s", strings.TrimSpace(begin), end, want)
		}
	}
}
