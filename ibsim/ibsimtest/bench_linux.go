package ibsimtest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience is how long a program may take for what takes it less than a second.
const patience = time.Minute

// Bench is Debian's ibsim with a netlist, and OpenSM on one of its nodes. Both end
// with the test, by their process ids; what they said is logged if it fails.
type Bench struct {
	Socket string // base name of ibsim's sockets, for IBSIM_SOCKNAME

	t       testing.TB
	dir     string
	preload string // libumad2sim.so

	ibsim, opensm *program

	console sync.Mutex
	typed   io.WriteCloser
	shown   *bufio.Reader
}

// program is a running process.
type program struct {
	cmd *exec.Cmd
	log *logged
	end sync.Once
}

// logged keeps what a program writes.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// tail is the end of what was written.
func (l *logged) tail() string {
	const most = 8000
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.text.Bytes()
	return string(b[max(0, len(b)-most):])
}

// Need skips the test where one of the programs, or the library that brings
// others onto ibsim, is not installed. With IBSM_BENCH=all that is a failure.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	var missing []string
	for _, p := range append([]string{"ibsim"}, programs...) {
		if lookUp(p) == "" {
			missing = append(missing, p)
		}
	}
	if library() == "" {
		missing = append(missing, "libumad2sim.so")
	}
	if len(missing) == 0 {
		return
	}
	why := "not installed: " + strings.Join(missing, ", ") + " ('make deps' installs them on Debian)"
	if os.Getenv("IBSM_BENCH") == "all" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// lookUp finds a program, in the folders too that only root's PATH has.
func lookUp(name string) string {
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if p, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return p
		}
	}
	return ""
}

func library() string {
	for _, pattern := range []string{"/usr/lib/*/umad2sim/libumad2sim.so", "/usr/lib*/umad2sim/libumad2sim.so", "/usr/local/lib*/umad2sim/libumad2sim.so"} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// folder is a folder in memory if there is one: umad2sim writes a whole sysfs for
// each program, which on a disk is most of the time that a diag takes.
func folder(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "ibsm-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

var benches atomic.Uint32

// Start starts ibsim on a netlist, and OpenSM on a node of it, and waits until the
// subnet is up.
func Start(t testing.TB, netlist, smNode string) *Bench {
	t.Helper()
	Need(t, "opensm")
	b := &Bench{
		Socket: fmt.Sprintf("ibsm-test-%d-%d", os.Getpid(), benches.Add(1)),
		t:      t, dir: folder(t), preload: library(),
	}
	b.startIbsim(netlist)
	b.startOpenSM(smNode)
	return b
}

func (b *Bench) write(name, text string) string {
	b.t.Helper()
	file := filepath.Join(b.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return file
}

// start starts a program and sees to its end. It dies with the test process, even
// if that is killed.
func (b *Bench) start(cmd *exec.Cmd) *program {
	b.t.Helper()
	p := &program{cmd: cmd, log: &logged{}}
	cmd.Dir = b.dir
	cmd.Stderr = p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	name := filepath.Base(cmd.Path)
	b.t.Cleanup(func() {
		p.kill()
		if b.t.Failed() {
			b.t.Logf("%s ended with the test; it said:\n%s", name, p.log.tail())
		}
	})
	return p
}

// kill ends the program and waits for it.
func (p *program) kill() {
	p.end.Do(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		_ = p.cmd.Wait()         // which tells of the signal
	})
}

// ibsim's prompt.
const prompt = "sim> "

// startIbsim keeps ibsim's standard input open: at its end ibsim spins.
func (b *Bench) startIbsim(netlist string) {
	b.t.Helper()
	cmd := exec.Command(lookUp("ibsim"), "-s", "-N", "16384", "-S", "2048", "-P", "131072", "-L", "49152", b.write("netlist", netlist))
	cmd.Env = append(os.Environ(), "IBSIM_SOCKNAME="+b.Socket)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	b.typed, b.shown = in, bufio.NewReader(out)
	b.ibsim = b.start(cmd)
	// The first prompt comes before the sockets are there. The console is read
	// after that.
	b.untilPrompt()
	b.Console("Attached")
}

// untilPrompt reads what the console shows up to its next prompt.
func (b *Bench) untilPrompt() string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stop := context.AfterFunc(ctx, b.ibsim.kill) // ends what is read
	defer stop()
	var text []byte
	for !bytes.HasSuffix(text, []byte(prompt)) {
		c, err := b.shown.ReadByte()
		if err != nil {
			b.t.Fatalf("ibsim's console ended: %v\n%s", err, text)
		}
		text = append(text, c)
	}
	return string(text[:len(text)-len(prompt)])
}

// Console types a command at ibsim's console and gives what it shows.
func (b *Bench) Console(command string) string {
	b.t.Helper()
	b.console.Lock()
	defer b.console.Unlock()
	if _, err := io.WriteString(b.typed, command+"\n"); err != nil {
		b.t.Fatal(err)
	}
	return b.untilPrompt()
}

// Clients gives the lines in which ibsim's console lists its clients.
func (b *Bench) Clients() (lines []string) {
	b.t.Helper()
	for line := range strings.Lines(b.Console("Attached")) {
		if strings.HasPrefix(line, "Client ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// startOpenSM starts OpenSM and waits for its sweep.
func (b *Bench) startOpenSM(node string) {
	b.t.Helper()
	// The empty configuration is that of no machine.
	cmd := b.Command(node, "opensm", "-f", "stdout", "-F", b.write("opensm.conf", ""))
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	b.opensm = b.start(cmd)
	up := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(io.TeeReader(out, b.opensm.log))
		for lines.Scan() {
			if strings.HasSuffix(lines.Text(), "SUBNET UP") {
				select {
				case up <- true:
				default:
				}
			}
		}
		close(up)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case ok := <-up:
		if !ok {
			b.t.Fatal("OpenSM ended before the subnet was up")
		}
	case <-ctx.Done():
		b.t.Fatalf("the subnet is not up after %v", patience)
	}
}

// Command makes a command that runs a program of the diags, or any other on
// libibumad, at a node.
func (b *Bench) Command(node, name string, args ...string) *exec.Cmd {
	b.t.Helper()
	path := lookUp(name)
	if path == "" {
		b.t.Fatalf("%s is not installed: say so with Need", name)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(),
		"IBSIM_SOCKNAME="+b.Socket, "SIM_HOST="+node, "LD_PRELOAD="+b.preload,
		"OSM_CACHE_DIR="+b.dir, "OSM_TMP_DIR="+b.dir)
	return cmd
}

// KillIbsim ends ibsim as kill -9 does.
func (b *Bench) KillIbsim() { b.ibsim.kill() }

// KillOpenSM ends OpenSM as kill -9 does. ibsim goes on to think that it is there,
// until it has a MAD for it.
func (b *Bench) KillOpenSM() { b.opensm.kill() }

// StopOpenSM has OpenSM take no more MADs, and not answer, until its end.
func (b *Bench) StopOpenSM() {
	b.t.Helper()
	if err := b.opensm.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		b.t.Fatal(err)
	}
}
