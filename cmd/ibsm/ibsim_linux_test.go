package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibsm/ibsm/ibsim/ibsimtest"
	"github.com/ibsm/ibsm/mad"
)

// onIbsim makes a run of the command at a node of an ibsim.
type onIbsim struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
}

func newRun(t *testing.T, socket, node string, args ...string) *onIbsim {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r := &onIbsim{Cmd: exec.CommandContext(ctx, "ibsm", append([]string{"--on", "ibsim:" + node}, args...)...)}
	r.Env = append(os.Environ(), "IBSIM_SOCKNAME="+socket)
	r.Stdout, r.Stderr = &r.stdout, &r.stderr
	return r
}

// exit waits for the end of a run and checks its exit code and what it says of it.
func (r *onIbsim) exit(t *testing.T, err error, want int, says string) {
	t.Helper()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if got := r.ProcessState.ExitCode(); got != want || !strings.Contains(r.stderr.String(), says) {
		t.Errorf("%q: exit code %d, want %d and %q; stderr:\n%s", r.Args[1:], got, want, says, r.stderr.String())
	}
}

// records gives the dumps in a run's text output, without the lines for people.
func (r *onIbsim) records() string {
	var kept []string
	for line := range strings.Lines(r.stdout.String()) {
		if !strings.HasPrefix(line, "#") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func TestFakeIbsim(t *testing.T) {
	f := ibsimtest.NewFake(t,
		ibsimtest.FakeNode{ID: "Hca1", Desc: "host 1 HCA-1", GUID: 0x100000, LID: 1},
		ibsimtest.FakeNode{ID: "Hca2", Desc: "host 2 HCA-1", GUID: 0x100010, LID: 2})
	asked := make(chan bool, 10)
	f.PlaySM(func(m *[mad.Size]byte) int {
		if mad.AttributeID(binary.BigEndian.Uint16(m[mad.OffAttribute:])) == mad.AttrClassPortInfo {
			asked <- true
			return 0
		}
		m[mad.OffMethod] |= mad.ResponseBit
		m[mad.OffRMPP+2] = 1                                   // Active
		binary.BigEndian.PutUint16(m[mad.OffRMPPData+8:], 8)   // AttributeOffset of PathRecord
		copy(m[mad.OffSAData:], bytes.Repeat([]byte{1}, 1000)) // 3 records and a piece
		return 1000
	})
	table := newRun(t, f.Socket, "Hca2", "sa", "table", "path", "SLID=2")
	table.exit(t, table.Run(), 6, "incomplete")
	if n := strings.Count(table.stdout.String(), "dlid"); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
	smp := newRun(t, f.Socket, "Hca2", "smp", "get", "NodeDescription", "1")
	if smp.exit(t, smp.Run(), 0, ""); !strings.Contains(smp.stdout.String(), "host 1 HCA-1") {
		t.Error(smp.stdout.String())
	}
	mute := newRun(t, f.Socket, "Hca2", "--timeout", "20ms", "--retries", "1", "sa", "get", "classportinfo")
	mute.exit(t, mute.Run(), 3, "no answer in time")
	nobody := newRun(t, f.Socket, "Hca2", "--timeout", "20ms", "--retries", "0", "smp", "get", "NodeInfo", "77")
	nobody.exit(t, nobody.Run(), 3, "no answer in time")
	node := newRun(t, f.Socket, "Hca3", "ports")
	node.exit(t, node.Run(), 1, "no such node")
	if f.Clients() != 0 {
		t.Errorf("%d clients are left", f.Clients())
	}
	for len(asked) > 0 {
		<-asked
	}

	enough := newRun(t, f.Socket, "Hca2", "sa", "table", "path", "SLID=2")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	enough.Stdout = write
	if enough.Run(); enough.stderr.Len() > 0 || f.Clients() != 0 {
		t.Errorf("with nobody to read: %d clients are left; stderr:\n%s", f.Clients(), enough.stderr.String())
	}
	write.Close()

	waits := newRun(t, f.Socket, "Hca2", "--timeout", "1m", "sa", "get", "classportinfo")
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := waits.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if waits.exit(t, waits.Wait(), 1, "interrupted"); f.Clients() != 0 {
		t.Errorf("%d clients are left after SIGINT", f.Clients())
	}

	waits = newRun(t, f.Socket, "Hca2", "--timeout", "1m", "sa", "get", "classportinfo")
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	f.Stop()
	waits.exit(t, waits.Wait(), 1, "device has been removed")
	gone := newRun(t, f.Socket, "Hca2", "ports")
	gone.exit(t, gone.Run(), 1, "no such ibsim is running")
}

// Paths are those of saquery, to the byte.
func TestIbsimPath(t *testing.T) {
	const hosts, pairs = 90, 200
	ibsimtest.Need(t, "opensm", "saquery")
	b := ibsimtest.Start(t, ibsimtest.TwoLevel(5, 5, hosts/5), "H-0001") // 100 nodes
	for i := range pairs {
		src, dst := 1+rand.IntN(hosts+10), 1+rand.IntN(hosts+10) // LIDs, of switches too
		if i < 2 {
			dst = src
		}
		want, err := b.Command("H-0003", "saquery", "--src-to-dst", fmt.Sprintf("%d:%d", src, dst)).Output()
		if err != nil {
			t.Fatal(err)
		}
		r := newRun(t, b.Socket, "H-0002", "sa", "path", fmt.Sprint(src), fmt.Sprint(dst))
		r.exit(t, r.Run(), 0, "")
		if diff := cmp.Diff(string(want), r.records()); diff != "" {
			t.Fatalf("path from LID %d to LID %d (-saquery +ibsm):\n%s", src, dst, diff)
		}
	}
	byName := newRun(t, b.Socket, "H-0002", "sa", "path", "host 7", "host 80")
	byName.exit(t, byName.Run(), 0, "")

	cut := newRun(t, b.Socket, "H-0002", "sa", "table", "node")
	cut.exit(t, cut.Run(), 6, "incomplete")
	if n := strings.Count(cut.stdout.String(), "NodeRecord dump"); n != 1 {
		t.Errorf("%d records came, want 1", n)
	}
	one := newRun(t, b.Socket, "H-0002", "sa", "table", "node", "LID=5")
	one.exit(t, one.Run(), 0, "1 record")
	if left := b.Clients(); len(left) != 1 {
		t.Errorf("clients are left beside OpenSM: %q", left)
	}
}

// The script of the README asks OpenSM for the path. What ibsim does not have is
// skipped and counted: requests to us, RMPP, an RDMA CM.
func TestIbsimQuickstart(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	b := ibsimtest.Start(t, ibsimtest.TwoLevel(2, 2, 3), "H-0001")
	r := newRun(t, b.Socket, "H-0003", "run", "quickstart", "--yes", "--var", "me=host 3", "--var", "dst=host 5")
	r.exit(t, r.Run(), 0, "")
	for _, want := range []string{
		`(?m)^skip  register, and ask oneself .* needs serve$`, `(?m)^skip  paths to everywhere, by RMPP .* needs rmpp$`,
		`(?m)^ok    the path to dst .* ok from LID \d+, 1 record$`, `(?m)^skip  connect over it .* needs cm$`,
		`(?m)^# passed: 5 steps: 1 passed, 4 skipped in `, `(?m)^# 1 step skipped for want of serve: `,
	} {
		if !regexp.MustCompile(want).Match(r.stdout.Bytes()) {
			t.Errorf("no %s in\n%s", want, r.stdout.String())
		}
	}
}

// What is under way when OpenSM ends, or ibsim, ends with the exit code that says
// so.
func TestIbsimKilled(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	netlist := ibsimtest.TwoLevel(2, 2, 3)
	query := []string{"--timeout", "50ms", "--retries", "1", "sa", "get", "classportinfo"}
	smp := []string{"--timeout", "50ms", "--retries", "1", "smp", "get", "NodeInfo", "0,1"}
	patient := append([]string{"--timeout", "1m"}, smp[4:]...)
	// inTheMiddle asks again and again, kills, and wants one of the codes.
	inTheMiddle := func(b *ibsimtest.Bench, kill func(), args []string, codes ...int) {
		t.Helper()
		killed := make(chan bool)
		go func() {
			defer close(killed)
			kill()
		}()
		defer func() { <-killed }()
		for range 1000 {
			r := newRun(t, b.Socket, "H-0003", args...)
			err := r.Run()
			if err == nil {
				continue
			}
			if code := r.ProcessState.ExitCode(); !slices.Contains(codes, code) || r.stderr.Len() == 0 {
				t.Errorf("%q: exit code %d, want one of %d; stderr:\n%s", args, code, codes, r.stderr.String())
			}
			return
		}
		t.Errorf("%q goes on after the kill", args)
	}
	afterwards := func(b *ibsimtest.Bench, args []string, code int, says string) {
		t.Helper()
		r := newRun(t, b.Socket, "H-0003", args...)
		r.exit(t, r.Run(), code, says)
	}

	b := ibsimtest.Start(t, netlist, "H-0001")
	inTheMiddle(b, b.KillOpenSM, query, 3)
	afterwards(b, query, 3, "no answer in time")
	afterwards(b, patient, 0, "") // that needs no OpenSM
	if left := b.Clients(); len(left) != 0 {
		t.Errorf("clients are left: %q", left)
	}
	inTheMiddle(b, b.KillIbsim, smp, 1, 3) // 3 if it ended during the last wait
	afterwards(b, smp, 1, "no such ibsim is running")

	b = ibsimtest.Start(t, netlist, "H-0001")
	inTheMiddle(b, b.KillIbsim, query, 1, 3)
	afterwards(b, query, 1, "no such ibsim is running")

	b = ibsimtest.Start(t, netlist, "H-0001")
	b.StopOpenSM()
	r := newRun(t, b.Socket, "H-0003", "--timeout", "1m", "sa", "get", "classportinfo")
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	attached(t, b, r)
	b.KillIbsim()
	r.exit(t, r.Wait(), 1, "")
}

// attached waits until ibsim lists a running command as its client.
func attached(t *testing.T, b *ibsimtest.Bench, r *onIbsim) {
	t.Helper()
	for t.Context().Err() == nil {
		if slot(b, r) >= 0 {
			return
		}
	}
	t.Fatal("the command did not attach")
}

var clientLine = regexp.MustCompile(`^Client (\d+): pid (\d+) `)

// slot is the one that ibsim has a command in, or -1.
func slot(b *ibsimtest.Bench, r *onIbsim) int {
	for _, line := range b.Clients() {
		if m := clientLine.FindStringSubmatch(line); m != nil && m[2] == strconv.Itoa(r.Process.Pid) {
			n, _ := strconv.Atoi(m[1]) // digits
			return n
		}
	}
	return -1
}

// A command that is interrupted, whenever that is, gives its slot back. One that is
// killed cannot.
func TestIbsimSlots(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	b := ibsimtest.Start(t, ibsimtest.TwoLevel(2, 2, 3), "H-0001")
	b.StopOpenSM() // so that they all wait
	for i := range 100 {
		r := newRun(t, b.Socket, "H-0004", "--timeout", "1m", "sa", "get", "classportinfo")
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		if i%4 == 0 {
			// ibsim ends if a client is killed before it has taken its connection.
			attached(t, b, r)
			taken := slot(b, r)
			if err := r.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = r.Wait()
			b.Console(fmt.Sprintf("X %d", taken))
			continue
		}
		for range rand.IntN(400) {
			if slot(b, r) >= 0 && rand.IntN(2) == 0 {
				break
			}
		}
		if err := r.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		err := r.Wait()
		status := r.ProcessState.Sys().(syscall.WaitStatus)
		if early := status.Signaled() && status.Signal() == syscall.SIGINT; !early {
			r.exit(t, err, 1, "interrupted")
		}
		if taken := slot(b, r); taken >= 0 {
			t.Fatalf("run %d: slot %d is left; stderr:\n%s", i, taken, r.stderr.String())
		}
	}
	if left := b.Clients(); len(left) != 1 {
		t.Errorf("clients are left beside OpenSM: %q", left)
	}
}
