// Package umad carries MADs through the kernel: a [port.Device] over
// /dev/infiniband/umadN of Linux (drivers/infiniband/core/user_mad.c), and of
// illumos (sol_umad).
//
//	ports, err := umad.Ports(umad.Config{})        // what there is, and what it is good for
//	dev, err := umad.Open(umad.Config{}, "mlx5_0", 1)
//
// The rules of registration, transaction ids, time-outs and RMPP are the kernel's
// and are documented in package port. What this package adds:
//
//   - Both layouts of the packet header, with and without P_Key index, and both
//     registrations, for old kernels (see [Config]).
//   - A message that does not fit the buffer is read again with a larger one,
//     under a lock, so that it never holds up other agents (user_mad.c,
//     copy_recv_mad: ENOSPC).
//   - What the kernel refuses with a bare errno is explained: which rule was
//     broken, and what to do.
//   - Removal of the device ends every waiting call with port.ErrGone.
//   - A slot that is used again gets nothing that was meant for the agent before.
//
// On an Ethernet port (RoCE) there is no QP0, and an address needs a GRH; IPv6
// GIDs are to be used, since the kernel cannot match answers that come with an
// IPv4 header. MADs are sent by the port's own queue pairs, with their Q_Keys.
//
// # illumos
//
// The code for illumos was written from the sources of sol_umad and has not been
// run on it. Ports are named umad0, umad1... and show no attributes, which are
// not to be had through this device. User RMPP and a GRH are refused, since the
// driver has neither; one file has one agent for each class; time-outs are the
// driver's own. A request that fails is not reported, because the driver tells
// not which one it was: package agents has a deadline for each.
//
// Elsewhere Open fails with errors.ErrUnsupported.
package umad

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ibsm/ibsm/port"
)

// Config says where the kernel's files are and how to talk to it. The zero value
// is right for the running system.
type Config struct {
	// Root is the directory that has dev and sys. "": /.
	Root string
	// OldHeader uses the packet header without P_Key index, of 56 bytes, that
	// kernels before 2.6.24 know alone. Only P_Key index 0 can then be used, and
	// the kernel logs a warning for each Open.
	OldHeader bool
	// OldRegister uses the registration that kernels before 2014 know alone
	// (IB_USER_MAD_REGISTER_AGENT), which has no user RMPP. Otherwise the newer one
	// is tried first.
	OldRegister bool
}

// ErrNoPort is a port that this machine does not have, or that has no umad
// device.
var ErrNoPort = errors.New("no such local port")

// Stats counts what a Device and its Ports have done.
type Stats struct {
	Sent     uint64 // messages that the kernel took
	Received uint64 // messages, without time-outs
	TimedOut uint64 // requests that got no response
	Grown    uint64 // reads that found their buffer too small (ENOSPC)
	Stale    uint64 // messages dropped because the slot they were for has a new agent
	Lost     uint64 // illumos: packets that are failed requests, or longer than the buffer
}

type counters struct {
	sent, received, timedOut, grown, stale, lost atomic.Uint64
}

// Device is a port.Device. Its methods may be called by several goroutines.
type Device struct {
	sys   system
	name  string // of the RDMA device
	num   uint8  // of its port
	count counters

	mu     sync.Mutex
	closed bool
	ports  map[*openPort]struct{}
}

// system is a kernel to talk to: what a test replaces as a whole.
type system struct {
	Config
	abi  abi
	open func(path string) (*file, error)
}

func running(cfg Config) (system, error) {
	if !hasNative {
		return system{}, fmt.Errorf("umad devices exist on Linux and illumos: %w", errors.ErrUnsupported)
	}
	return system{cfg, native, openDevice}, nil
}

// Open finds a port by the name of its RDMA device and its number, which is 0
// for a switch. Nothing is opened yet but by Device.Open. Errors: ErrNoPort (a
// *port.Error says what is missing), errors.ErrUnsupported.
func Open(cfg Config, device string, num uint8) (*Device, error) {
	sys, err := running(cfg)
	if err != nil {
		return nil, &port.Error{Op: "open", Port: portName(device, num), Err: err}
	}
	return sys.device(device, num)
}

func (sys system) device(device string, num uint8) (*Device, error) {
	d := &Device{sys: sys, name: device, num: num, ports: make(map[*openPort]struct{})}
	if _, err := sys.find(device, num); err != nil {
		return nil, d.fail("open", err)
	}
	return d, nil
}

func portName(device string, num uint8) string { return fmt.Sprintf("%s/%d", device, num) }

// fail says where an error happened.
func (d *Device) fail(op string, err error) error {
	e, ok := err.(*port.Error)
	if !ok {
		e = &port.Error{Err: err}
	}
	e.Op, e.Port = op, portName(d.name, d.num)
	return e
}

// Info reads the port's attributes in sysfs. What cannot be read is zero; see
// Ports for the reasons.
func (d *Device) Info() (port.Info, error) {
	const op = "read port info"
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return port.Info{}, d.fail(op, port.ErrClosed)
	}
	if _, err := d.sys.find(d.name, d.num); err != nil {
		return port.Info{}, d.fail(op, gone(err))
	}
	p := d.sys.readPort(d.name, d.num)
	return p.Info, nil
}

// gone turns the loss of a port that was there into port.ErrGone.
func gone(err error) error {
	if errors.Is(err, ErrNoPort) {
		return &port.Error{Detail: "the device is not there any more: it was removed or renamed", Err: errors.Join(port.ErrGone, err)}
	}
	return err
}

// Stats gives a copy of the counters.
func (d *Device) Stats() Stats {
	c := &d.count
	return Stats{
		Sent: c.sent.Load(), Received: c.received.Load(), TimedOut: c.timedOut.Load(),
		Grown: c.grown.Load(), Stale: c.stale.Load(), Lost: c.lost.Load(),
	}
}

// Open opens the device file. The errors say what is missing: the node, the
// permission, or the module ib_umad.
func (d *Device) Open() (port.Port, error) {
	const op = "open"
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, d.fail(op, port.ErrClosed)
	}
	node, err := d.sys.find(d.name, d.num)
	if err != nil {
		return nil, d.fail(op, gone(err))
	}
	path := under(d.sys.Root, d.sys.abi.dir, node)
	f, err := d.sys.open(path)
	if err != nil {
		return nil, d.fail(op, explainOpen(path, err))
	}
	p := &openPort{d: d, f: f, register2: d.sys.abi.register2 != 0 && !d.sys.OldRegister}
	if err := p.chooseHeader(); err != nil {
		f.os.Close()
		return nil, d.fail(op, err)
	}
	d.ports[p] = struct{}{}
	return p, nil
}

// explainOpen says what to do about a device file that does not open.
func explainOpen(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENODEV):
		return refuse(port.ErrGone, err, "%s: the device has been removed", path)
	case errors.Is(err, fs.ErrNotExist):
		return refuse(ErrNoPort, err, "%s does not exist, though the kernel has the device: make udev (or devtmpfs) create it", path)
	case errors.Is(err, syscall.EPERM):
		return refuse(fs.ErrPermission, err, "%s belongs to an RDMA device of another network namespace: move one of the two (rdma dev set DEV netns NAME)", path)
	case errors.Is(err, fs.ErrPermission):
		return refuse(fs.ErrPermission, err, "%s may not be opened: run as root, or let a udev rule give you access", path)
	}
	return err
}

// Close releases the device; its open Ports end with port.ErrGone.
func (d *Device) Close() error {
	d.mu.Lock()
	d.closed = true
	var ports []*openPort
	for p := range d.ports {
		ports = append(ports, p)
	}
	d.mu.Unlock()
	for _, p := range ports {
		p.end(port.ErrGone)
	}
	return nil
}

// refuse makes the error for what the kernel said no to; the caller adds where.
func refuse(kind, errno error, format string, args ...any) *port.Error {
	e := &port.Error{Detail: fmt.Sprintf(format, args...), Err: kind}
	if errno != nil {
		e.Err = &cause{kind, errno}
	}
	return e
}

// cause is a failure in the words of package port together with the errno that
// the kernel gave.
type cause struct{ kind, errno error }

func (c *cause) Error() string   { return fmt.Sprintf("%v (%v)", c.kind, c.errno) }
func (c *cause) Unwrap() []error { return []error{c.kind, c.errno} }
