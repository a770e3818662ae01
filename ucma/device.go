package ucma

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/ibsm/ibsm/mad"
)

// Device is an open file of the kernel's RDMA CM, or of an emulation: it has ids
// and one queue of their events. Its methods may be called by several goroutines.
type Device interface {
	// Dialect is how commands and responses are written.
	Dialect() *Dialect
	// Exec has one command done. mem is the memory that the command's one address
	// stands for: what the response is stored in, or the value of SET_OPTION. Exec
	// puts its address in, and keeps it in place meanwhile; cmd stays as it is. The
	// error is an [Errno] of the kernel, ErrClosed or ErrGone, or a *CommandError
	// for bytes that would harm the kernel or the program. GET_EVENT does not wait:
	// it fails with EAGAIN, see Wait.
	Exec(cmd, mem []byte) error
	// Wait returns when GET_EVENT would find an event, or with ctx's error,
	// ErrClosed or ErrGone.
	Wait(ctx context.Context) error
	// Close ends all ids. It wakes Wait, and waits for Exec, which may take as long as
	// the kernel likes: who cannot wait closes in a goroutine of its own, as
	// [Connection.Close] and its like do.
	Close() error
}

// What can happen to a Device beside errnos; use errors.Is.
var (
	ErrClosed = errors.New("RDMA CM device is closed")
	ErrGone   = errors.New("RDMA CM device has been removed")
)

// PathSource finds paths, as the SA does.
type PathSource interface {
	// Path gives one reversible path with like's SGID and DGID, and with its P_Key
	// and ServiceID where they are not zero.
	Path(ctx context.Context, like mad.PathRecord) (mad.PathRecord, error)
}

// Do has a command done: it is written in the device's dialect, with memory for
// its response, which is read into r. r may be nil. The error is a
// *CommandError, with an [Errno] or ErrClosed or ErrGone inside, or a
// *ResponseError.
func Do(dev Device, c Command, r Response) error {
	d := dev.Dialect()
	cmd, err := d.AppendCommand(nil, c)
	if err != nil {
		return err
	}
	if want := d.responseOf(c); r != nil && r.structure() != want {
		return d.refuse(c.Op(), fault{field: "response", rule: fmt.Sprintf("%T is not what it answers with", r), errno: EINVAL})
	}
	mem := make([]byte, binary.NativeEndian.Uint16(cmd[6:]))
	if o, ok := c.(SetOption); ok {
		mem = o.Value
	}
	if err := dev.Exec(cmd, mem); err != nil {
		if refused := (*CommandError)(nil); errors.As(err, &refused) {
			return err
		}
		return &CommandError{Dialect: d, Op: c.Op(), Err: err}
	}
	if r == nil {
		return nil
	}
	return d.ParseResponse(mem, r)
}

// responseOf is the structure that a command is answered with.
func (d *Dialect) responseOf(c Command) string {
	if q, ok := c.(Query); ok {
		return d.queries[q.Option].out
	}
	return d.commands[c.Op()].out
}

// Config says where the kernel's files are. The zero value is right for the
// running system.
type Config struct {
	// Root is the directory that has dev and sys. "": /.
	Root string
}

// OpenError is a device that cannot be opened, and what to do about it.
type OpenError struct {
	Path string
	Fix  string // or ""
	Err  error
}

func (e *OpenError) Error() string {
	s := "open the RDMA CM"
	if e.Path != "" {
		s += " at " + e.Path
	}
	s += ": " + e.Err.Error()
	if e.Fix != "" {
		s += ": " + e.Fix
	}
	return s
}

func (e *OpenError) Unwrap() error { return e.Err }

// Open opens the kernel's RDMA CM: /dev/infiniband/rdma_cm on Linux,
// /dev/infiniband/ofs/rdma_cm on illumos. The error is an *OpenError, with
// errors.ErrUnsupported inside on other systems.
//
// The device belongs to the credentials that the process has now: after setuid
// and the like, and in other processes, its commands fail with EACCES.
func Open(cfg Config) (Device, error) {
	d := systemDialect
	if d == nil {
		return nil, &OpenError{Err: fmt.Errorf("%w on %s: Linux and illumos have one", errors.ErrUnsupported, runtime.GOOS)}
	}
	return open(d, cfg)
}

func open(d *Dialect, cfg Config) (Device, error) {
	root := cfg.Root
	if root == "" {
		root = "/"
	}
	path := filepath.Join(root, d.device)
	if err := d.checkABI(root); err != nil {
		return nil, &OpenError{Path: path, Err: err, Fix: "use a version of this program for that kernel"}
	}
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, explainOpen(path, err)
	}
	return newKernelDevice(d, f, writeFile)
}

// checkABI reads the version of the interface. If no file has it, it is taken
// for a known one, as librdmacm does: sysfs may not be mounted.
func (d *Dialect) checkABI(root string) error {
	for _, name := range d.abiFiles {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue
		}
		text := strings.TrimSpace(string(b))
		if v, err := strconv.Atoi(text); err != nil || v < d.abiMin || v > d.abiMax {
			return fmt.Errorf("%s says %q, known versions of the interface are %d to %d", name, text, d.abiMin, d.abiMax)
		}
		return nil
	}
	return nil
}

func explainOpen(path string, err error) error {
	e := &OpenError{Path: path, Err: err}
	var perr *fs.PathError
	if errors.As(err, &perr) {
		e.Err = perr.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Fix = "load the kernel module (modprobe rdma_ucm)"
	case errors.Is(err, fs.ErrPermission):
		e.Fix = "let a udev rule give you access, or run as root"
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENODEV):
		e.Err, e.Fix = fmt.Errorf("%w (%w)", ErrGone, e.Err), "load the kernel module again (modprobe rdma_ucm)"
	}
	return e
}

// kernelDevice is the kernel's Device. Waiting is done in another way by each
// system.
type kernelDevice struct {
	d     *Dialect
	f     *os.File
	raw   syscall.RawConn
	write func(fd uintptr, b []byte) (int, error) // one write, without waiting: what a test replaces
	turn  chan struct{}                           // of who waits

	closed atomic.Bool
}

func newKernelDevice(d *Dialect, f *os.File, write func(fd uintptr, b []byte) (int, error)) (*kernelDevice, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &kernelDevice{d: d, f: f, raw: raw, write: write, turn: make(chan struct{}, 1)}, nil
}

func (k *kernelDevice) Dialect() *Dialect { return k.d }

// FD is the file's descriptor, by which MIGRATE_ID names it.
func (k *kernelDevice) FD() (n uint32) {
	_ = k.raw.Control(func(fd uintptr) { n = uint32(fd) }) // of a closed file there is none
	return n
}

func (k *kernelDevice) Exec(cmd, mem []byte) error {
	at, err := k.d.checkWrite(cmd, mem)
	if err != nil {
		return err
	}
	if len(mem) > 0 && at >= 0 {
		// The kernel gets the address as a number, which keeps nothing in place.
		var pin runtime.Pinner
		defer pin.Unpin()
		pin.Pin(&mem[0])
		cmd = append([]byte(nil), cmd...)
		binary.NativeEndian.PutUint64(cmd[at:], uint64(uintptr(unsafe.Pointer(&mem[0]))))
	}
	end := k.raw.Control(func(fd uintptr) {
		for {
			if _, err = k.write(fd, cmd); !errors.Is(err, syscall.EINTR) {
				return
			}
		}
	})
	var errno syscall.Errno
	switch {
	case end != nil:
		return k.ended(end)
	case errors.As(err, &errno):
		return k.d.Errno(int(errno))
	}
	return err
}

// ended is why the file cannot be used: what the poller says of a closed one has
// no name.
func (k *kernelDevice) ended(err error) error {
	if k.closed.Load() {
		return ErrClosed
	}
	return fmt.Errorf("the RDMA CM's file: %w", err)
}

func (k *kernelDevice) Close() error {
	if k.closed.Swap(true) {
		return ErrClosed
	}
	if err := k.f.Close(); err != nil {
		return fmt.Errorf("close the RDMA CM: %w", err)
	}
	return nil
}

// Wait lets one goroutine wait at a time, since the file's deadline, which wakes
// it, is for all.
func (k *kernelDevice) Wait(ctx context.Context) error {
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return k.wait(ctx)
}

// checkWrite refuses bytes with which the kernel would read or write memory that
// is not the command's, and tells where mem's address belongs, or -1. Bytes that
// the kernel only refuses are let through.
func (d *Dialect) checkWrite(cmd, mem []byte) (at int, err error) {
	no := func(op Op, field, rule string, args ...any) (int, error) {
		return -1, d.refuse(op, fault{field: field, rule: fmt.Sprintf(rule, args...), errno: EINVAL})
	}
	h, err := d.ParseHeader(cmd)
	if err != nil && (d.exact || errors.Is(err, EFAULT)) {
		return -1, err
	}
	spec, ok := d.Spec(h.Op)
	if !ok || spec.AddressAt < 0 {
		if len(mem) > 0 {
			return no(h.Op, "", "memory for a command without an address")
		}
		return -1, nil
	}
	if len(cmd) < HeaderSize+spec.In {
		return -1, nil // the kernel refuses it by the header
	}
	need, field := uint64(h.Out), "out"
	switch {
	case h.Op == OpSetOption:
		optlen := d.structs["set_option"].field("optlen")
		need, field = uint64(binary.NativeEndian.Uint32(cmd[HeaderSize+optlen.off:])), "optlen"
	case h.Op != OpQuery: // MIGRATE_ID does not look at out
		need = max(need, uint64(spec.MinOut))
	}
	switch {
	case binary.NativeEndian.Uint64(cmd[spec.AddressAt:]) != 0:
		return no(h.Op, "response", "an address of the program's own: it must be 0")
	case len(mem) > 0 && uint64(len(mem)) < need:
		return no(h.Op, field, "%d bytes of memory, the kernel may use %d", len(mem), need)
	}
	return spec.AddressAt, nil
}
