package ucma

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fakeKernel stands below a device file, and gets what is written to it. It uses
// addresses as a kernel does, through system calls, so that neither the race
// detector nor checkptr has a pointer to follow. Wait waits for the end of a pipe
// that has a byte for each event, in Go's poller.
type fakeKernel struct {
	t      testing.TB
	events *os.File
	serve  func(k *fakeKernel, cmd []byte) error
}

func (k *fakeKernel) write(_ uintptr, cmd []byte) (int, error) {
	if err := k.serve(k, cmd); err != nil {
		return -1, err
	}
	return len(cmd), nil
}

// copy has the system move n bytes between memory of its own, a pipe, and an
// address.
func (k *fakeKernel) copy(call uintptr, fd int, address uint64, n int) {
	if got, _, errno := unix.Syscall(call, uintptr(fd), uintptr(address), uintptr(n)); errno != 0 || int(got) != n {
		k.t.Errorf("%d bytes at %#x: %d, %v", n, address, got, errno)
	}
}

func (k *fakeKernel) store(address uint64, b []byte) {
	r, w := k.pipe()
	defer unix.Close(r)
	defer unix.Close(w)
	unix.Write(w, b)
	k.copy(unix.SYS_READ, r, address, len(b))
}

func (k *fakeKernel) load(address uint64, n int) []byte {
	r, w := k.pipe()
	defer unix.Close(r)
	defer unix.Close(w)
	k.copy(unix.SYS_WRITE, w, address, n)
	b := make([]byte, n)
	unix.Read(r, b)
	return b
}

func (k *fakeKernel) pipe() (r, w int) {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		k.t.Fatal(err)
	}
	return p[0], p[1]
}

func openFake(t testing.TB, d *Dialect, serve func(k *fakeKernel, cmd []byte) error) (*kernelDevice, *fakeKernel) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	k := &fakeKernel{t: t, events: w, serve: serve}
	dev, err := newKernelDevice(d, r, k.write)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		dev.Close()
		w.Close()
	})
	return dev, k
}

// Every command with a response gets it, through the address in its bytes, while
// the garbage collector runs.
func TestDo(t *testing.T) {
	for _, d := range dialects {
		golden := goldenFile(t, d)
		commands := goldenCommands(d)
		for name, want := range goldenResponses(d) {
			of := name
			for _, kind := range []string{" connection", " UD", " error", " AF_IB"} {
				of = strings.TrimSuffix(of, kind)
			}
			c := commands[of]
			dev, _ := openFake(t, d, func(k *fakeKernel, cmd []byte) error {
				spec, _ := d.Spec(c.Op())
				runtime.GC()
				k.store(binary.NativeEndian.Uint64(cmd[spec.AddressAt:]), golden[name+" response"])
				clear(cmd[spec.AddressAt : spec.AddressAt+8])
				if !bytes.Equal(cmd, golden[of]) {
					t.Errorf("%s %s: written are % x", d, name, cmd)
				}
				return nil
			})
			got := newOf(want)
			if err := Do(dev, c, got); err != nil {
				t.Errorf("%s %s: %v", d, name, err)
				continue
			}
			a, _ := d.AppendResponse(nil, want)
			b, _ := d.AppendResponse(nil, got)
			if !bytes.Equal(a, b) {
				t.Errorf("%s %s: read is %+v, want %+v", d, name, got, want)
			}
		}
	}
}

func TestDoOption(t *testing.T) {
	var got []byte
	dev, _ := openFake(t, Linux, func(k *fakeKernel, cmd []byte) error {
		got = k.load(binary.NativeEndian.Uint64(cmd[8:]), int(binary.NativeEndian.Uint32(cmd[28:])))
		return nil
	})
	o := SetIBPath(1, PathRecData{Flags: PathFlags, Path: goldenPath})
	if err := Do(dev, o, nil); err != nil || !bytes.Equal(got, o.Value) {
		t.Errorf("%v; at the address are % x, want % x", err, got, o.Value)
	}
}

func TestDoErrors(t *testing.T) {
	var says error
	dev, _ := openFake(t, Linux, func(*fakeKernel, []byte) error { return says })
	for _, c := range []struct {
		says error
		want error
	}{
		{syscall.EINVAL, EINVAL}, {syscall.ETIMEDOUT, ETIMEDOUT}, {syscall.EAGAIN, EAGAIN}, {syscall.Errno(524), Errno("errno 524")},
	} {
		says = c.says
		err := Do(dev, Listen{ID: 3}, nil)
		var refused *CommandError
		if !errors.Is(err, c.want) || !errors.As(err, &refused) || refused.Op != OpListen || !strings.Contains(err.Error(), "LISTEN") {
			t.Errorf("%v: %v", c.says, err)
		}
	}
	says = nil
	if err := Do(dev, CreateID{PS: PortSpaceTCP}, &EventResp{}); !errors.Is(err, EINVAL) || !strings.Contains(err.Error(), "EventResp") {
		t.Errorf("a response of another command: %v", err)
	}
	if err := Do(dev, Query{Option: QueryPath}, &QueryAddrResp{}); !errors.Is(err, EINVAL) {
		t.Errorf("a response of another query: %v", err)
	}
	if err := Do(dev, CreateID{}, nil); !errors.Is(err, EINVAL) {
		t.Errorf("no port space: %v", err)
	}
	// sol_ucma's numbers are others.
	dev, _ = openFake(t, Illumos, func(*fakeKernel, []byte) error { return syscall.Errno(145) })
	if err := Do(dev, Listen{}, nil); !errors.Is(err, ETIMEDOUT) {
		t.Errorf("illumos: %v", err)
	}
}

func TestExecInterrupted(t *testing.T) {
	n := 0
	dev, _ := openFake(t, Linux, func(*fakeKernel, []byte) error {
		if n++; n < 3 {
			return syscall.EINTR
		}
		return nil
	})
	if err := Do(dev, Listen{}, nil); err != nil || n != 3 {
		t.Errorf("%v after %d writes", err, n)
	}
}

// Bytes with which the kernel would touch other memory are not written; those
// that it only refuses are.
func TestExecRefuses(t *testing.T) {
	withAddress := write(uint32(OpGetEvent), 8, 336, 8)
	withAddress[8] = 1
	option := write(uint32(OpSetOption), 24, 0, 24)
	option[28] = 5
	for _, c := range []struct {
		name    string
		d       *Dialect
		cmd     []byte
		mem     int
		written bool
	}{
		{"no memory", Linux, write(uint32(OpGetEvent), 8, 336, 8), 0, true}, // EFAULT
		{"enough", Linux, write(uint32(OpGetEvent), 8, 336, 8), 336, true},
		{"less than out", Linux, write(uint32(OpGetEvent), 8, 337, 8), 336, false},
		{"less than the response", Linux, write(uint32(OpGetEvent), 8, 0, 8), 100, false},
		{"MIGRATE_ID looks at no out", Linux, write(uint32(OpMigrateID), 16, 0, 16), 3, false},
		{"QUERY looks at out", Linux, write(uint32(OpQuery), 16, 8, 16), 8, true},
		{"address of its own", Linux, withAddress, 0, false},
		{"memory without need", Linux, write(uint32(OpListen), 8, 0, 8), 4, false},
		{"BIND_IP stores nothing", Linux, write(uint32(OpBindIP), 40, 0, 40), 4, false},
		{"memory for an unknown command", Linux, write(77, 0, 0, 0), 4, false},
		{"unknown command", Linux, write(77, 0, 0, 0), 0, true},
		{"half a command", Linux, write(uint32(OpListen), 4, 0, 4), 0, false},
		{"short header", Linux, make([]byte, 7), 0, true},
		{"command without its address", Linux, write(uint32(OpGetEvent), 9, 336, 4), 336, true},
		{"SET_OPTION cut short", Linux, write(uint32(OpSetOption), 24, 0, 12), 5, true},
		{"value too short", Linux, option, 4, false},
		{"value", Linux, option, 5, true},
		{"illumos", Illumos, write(uint32(OpListen), 8, 0, 8), 0, true},
		{"illumos, wrong in", Illumos, write(uint32(OpListen), 7, 0, 8), 0, false},
		{"illumos, wrong out", Illumos, write(uint32(OpGetEvent), 8, 336, 8), 336, false},
		{"illumos, too long", Illumos, write(uint32(OpListen), 8, 0, 600), 0, false},
		{"illumos, short header", Illumos, make([]byte, 7), 0, false},
	} {
		written := false
		dev, _ := openFake(t, c.d, func(_ *fakeKernel, b []byte) error {
			written = true
			if spec, ok := c.d.Spec(Op(c.cmd[0])); ok && c.mem > 0 && len(b) >= HeaderSize+spec.In {
				clear(b[spec.AddressAt : spec.AddressAt+8])
			}
			if !bytes.Equal(b, c.cmd) {
				t.Errorf("%s: written are % x", c.name, b)
			}
			return nil
		})
		cmd := bytes.Clone(c.cmd)
		err := dev.Exec(cmd, make([]byte, c.mem))
		if written != c.written || written != (err == nil) {
			t.Errorf("%s: written %v, %v", c.name, written, err)
		}
		if !bytes.Equal(cmd, c.cmd) {
			t.Errorf("%s: the command was changed", c.name)
		}
	}
}

// A command that is cut off anywhere does no harm.
func TestExecCut(t *testing.T) {
	for _, d := range dialects {
		dev, _ := openFake(t, d, func(k *fakeKernel, cmd []byte) error {
			h, err := d.ParseHeader(cmd)
			if spec, ok := d.Spec(h.Op); err == nil && ok && spec.AddressAt > 0 && h.Op != OpSetOption {
				k.store(binary.NativeEndian.Uint64(cmd[spec.AddressAt:]), make([]byte, max(h.Out, 1)))
			}
			return err
		})
		for name, c := range goldenCommands(d) {
			cmd, err := d.AppendUnchecked(nil, c)
			if err != nil {
				t.Fatal(err)
			}
			for n := range cmd {
				if spec, _ := d.Spec(c.Op()); n >= HeaderSize+spec.MinIn {
					continue
				}
				if dev.Exec(cmd[:n], make([]byte, 1024)) == nil {
					t.Errorf("%s %s: %d bytes are taken", d, name, n)
				}
			}
		}
	}
}

func TestWait(t *testing.T) {
	dev, k := openFake(t, Linux, nil)
	k.events.Write([]byte{0})
	for range 2 { // it takes nothing
		if err := dev.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := dev.Wait(cancelled); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var b [1]byte
	dev.f.Read(b[:])

	// Contexts that end while others wait, and one that does not.
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	short, cancelShort := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancelShort()
	done := make(chan error, 4)
	for range 2 {
		go func() { done <- dev.Wait(ctx) }()
	}
	go func() { done <- dev.Wait(short) }()
	if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	go func() { done <- dev.Wait(t.Context()) }()
	k.events.Write([]byte{0})
	if err := <-done; err != nil {
		t.Error(err)
	}
	dev.f.Read(b[:])
	go func() { done <- dev.Wait(t.Context()) }()
	go func() { done <- dev.Wait(t.Context()) }()
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	for runtime.NumGoroutine() > before { // they have sent, and only have to end
		runtime.Gosched()
	}
}

func TestClosed(t *testing.T) {
	busy, release := make(chan struct{}), make(chan struct{})
	dev, _ := openFake(t, Linux, func(*fakeKernel, []byte) error {
		close(busy)
		<-release
		return nil
	})
	var all sync.WaitGroup
	all.Go(func() {
		if err := Do(dev, Listen{}, nil); err != nil {
			t.Error(err)
		}
	})
	<-busy
	all.Go(func() { dev.Close() })
	for !dev.closed.Load() {
		runtime.Gosched()
	}
	if err := Do(dev, Listen{}, nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := dev.Wait(t.Context()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := dev.Close(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	close(release)
	all.Wait()
}

// root makes a directory with the files of a kernel.
func root(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if text == "fifo" {
			err = syscall.Mkfifo(path, 0o600)
		} else {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	deviceFile = "dev/infiniband/rdma_cm"
	abiFile    = "sys/class/misc/rdma_cm/abi_version"
	oldABIFile = "sys/class/infiniband_ucma/abi_version"
)

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		err   error
		says  []string // nil: it opens
	}{
		{"newest", map[string]string{deviceFile: "fifo", abiFile: "4\n"}, nil, nil},
		{"old file", map[string]string{deviceFile: "fifo", oldABIFile: "3\n"}, nil, nil},
		{"no sysfs", map[string]string{deviceFile: "fifo"}, nil, nil},
		{"first file counts", map[string]string{deviceFile: "fifo", abiFile: "4\n", oldABIFile: "7\n"}, nil, nil},
		{"to come", map[string]string{deviceFile: "fifo", abiFile: "5\n"}, nil, []string{abiFile, `"5"`, "3 to 4"}},
		{"of before", map[string]string{deviceFile: "fifo", oldABIFile: "2\n"}, nil, []string{oldABIFile, `"2"`}},
		{"no number", map[string]string{deviceFile: "fifo", abiFile: "four"}, nil, []string{`"four"`}},
		{"no device", map[string]string{abiFile: "4\n"}, fs.ErrNotExist, []string{deviceFile, "modprobe rdma_ucm"}},
	} {
		dev, err := Open(Config{Root: root(t, c.files)})
		if c.says == nil {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			if dev.Dialect() != Linux {
				t.Errorf("%s: dialect %v", c.name, dev.Dialect())
			}
			dev.Close()
			continue
		}
		var failed *OpenError
		if !errors.As(err, &failed) || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", c.name, err, part)
			}
		}
	}
}

func TestExplainOpen(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EACCES: "udev", syscall.ENXIO: ErrGone.Error(), syscall.ENODEV: "modprobe", syscall.EMFILE: "too many open files",
	} {
		err := explainOpen("/dev/x", &fs.PathError{Op: "open", Path: "/dev/x", Err: errno})
		if !errors.Is(err, errno) || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "/dev/x") != 1 {
			t.Errorf("%v: %v", errno, err)
		}
	}
}

// The whole way through the real system calls, up to a device file that is a
// pipe, and gives back what is written to it.
func TestSystemCalls(t *testing.T) {
	dir := root(t, map[string]string{deviceFile: "fifo", abiFile: "4\n"})
	dev, err := Open(Config{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	cmd, err := Linux.AppendCommand(nil, GetEvent{})
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, 336)
	if err := dev.Exec(cmd, mem); err != nil {
		t.Fatal(err)
	}
	if err := dev.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	n, err := dev.(*kernelDevice).f.Read(got)
	binary.NativeEndian.PutUint64(cmd[8:], uint64(uintptr(unsafe.Pointer(&mem[0]))))
	if err != nil || !bytes.Equal(got[:n], cmd) {
		t.Errorf("%v; written are % x, want % x", err, got[:n], cmd)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("enough"))
	if err := dev.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
