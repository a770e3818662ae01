package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibsm/ibsm/ibsim"
	"github.com/ibsm/ibsm/ibsim/ibsimtest"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sa"
)

// The hosts of largeFabric on ibsim: OpenSM runs at the last, and is asked from
// the first.
const (
	leafs, spines, hostsPerLeaf = 36, 18, 18

	firstHost, lastHost = "H-0001", "H-0648"
)

func startOpenSM(b *testing.B) *ibsimtest.Bench {
	return ibsimtest.Start(b, ibsimtest.TwoLevel(leafs, spines, hostsPerLeaf), lastHost)
}

// hostGIDs has the GIDs of the hosts in the netlist, in its order.
func hostGIDs() (gids []mad.GID) {
	for n := range leafs * hostsPerLeaf {
		gids = append(gids, mad.MakeGID(mad.DefaultGIDPrefix, mad.GUID(0x100000+16*(n+1)+1)))
	}
	return gids
}

func openSM(b *testing.B, fabric *ibsimtest.Bench, inFlight int) *sa.Client {
	dev, err := ibsim.Open(b.Context(), ibsim.Config{Socket: fabric.Socket, Node: firstHost})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { dev.Close() })
	admin, err := sa.NewClient(dev, sa.Config{Window: inFlight})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { admin.Close() })
	return admin
}

// BenchmarkOpenSM asks OpenSM on ibsim for paths, by GID; peers/paths.c does it
// over libibumad, in turn with us.
func BenchmarkOpenSM(b *testing.B) {
	fabric := startOpenSM(b)
	gids := hostGIDs()
	file := filepath.Join(b.TempDir(), "gids")
	if err := os.WriteFile(file, []byte(lines(gids)), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, inFlight := range []int{1, 32} {
		b.Run(fmt.Sprintf("inflight=%d", inFlight), func(b *testing.B) {
			if paths := program("paths"); paths != "" {
				cmd := fabric.Command(firstHost, paths, file, strconv.Itoa(inFlight), strconv.Itoa(b.N))
				theirs := figure(b, mortal(cmd))
				defer func() { b.ReportMetric(theirs, "peer-queries/s") }()
			}
			askInFlight(b, openSM(b, fabric, inFlight), inFlight, func(n int) sa.PathQuery {
				return sa.PathQuery{SGID: gids[0], DGID: gids[1+n%(len(gids)-1)], NumbPath: 1, Reversible: true}
			})
		})
	}
}

func lines(gids []mad.GID) string {
	var s strings.Builder
	for _, g := range gids {
		fmt.Fprintln(&s, g)
	}
	return s.String()
}

// BenchmarkProcess has a whole process ask OpenSM on ibsim for one path, and
// saquery in turn with it.
func BenchmarkProcess(b *testing.B) {
	ibsm := needIBSM(b)
	ibsimtest.Need(b, "opensm", "saquery")
	fabric := startOpenSM(b)
	gids := hostGIDs()
	var path mad.PathRecord
	for rec, err := range openSM(b, fabric, 1).Paths(b.Context(), sa.PathQuery{SGID: gids[0], DGID: gids[len(gids)-1], NumbPath: 1}) {
		if path = rec; err != nil {
			b.Fatal(err)
		}
	}
	from, to := strconv.Itoa(int(path.SLID)), strconv.Itoa(int(path.DLID))
	ours := func() *exec.Cmd {
		cmd := exec.Command(ibsm, "--on", "ibsim:"+firstHost, "sa", "path", from, to)
		cmd.Env = append(os.Environ(), "IBSIM_SOCKNAME="+fabric.Socket)
		return cmd
	}
	theirs := func() *exec.Cmd { return fabric.Command(firstHost, "saquery", "--src-to-dst", from+":"+to) }
	b.Run("path", func(b *testing.B) {
		var us, them time.Duration
		for b.Loop() {
			us += run(b, ours())
			them += run(b, theirs())
		}
		b.ReportMetric(ms(us)/float64(b.N), "ms")
		b.ReportMetric(ms(them)/float64(b.N), "peer-ms")
	})
}

// BenchmarkSimProcess has a whole process build a fabric, bring it up, start an SA
// and ask it for one path.
func BenchmarkSimProcess(b *testing.B) {
	ibsm := needIBSM(b)
	var took time.Duration
	for b.Loop() {
		took += run(b, exec.Command(ibsm, "--on", "sim:demo", "sa", "path", "h1", "h8"))
	}
	b.ReportMetric(ms(took)/float64(b.N), "ms")
}

func needIBSM(b *testing.B) string {
	ibsm := program("ibsm")
	if ibsm == "" {
		b.Skip("no ibsm in BENCH_BIN: bench/run puts it there")
	}
	return ibsm
}

// run gives the time that a process takes.
func run(b *testing.B, cmd *exec.Cmd) time.Duration {
	begin := time.Now()
	if err := mortal(cmd).Run(); err != nil {
		b.Fatalf("%v: %v", cmd, err)
	}
	return time.Since(begin)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// mortal has a program die with this process, even if that is killed.
func mortal(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}
