package umad

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// op is what can be done with an open device file.
type op uint8

const (
	opRead op = iota
	opWrite
	opIoctl
)

// kernel does one operation on the open device file fd, as bytes, and without
// waiting: a read of nothing is EAGAIN. b is the buffer, or the argument of
// ioctl; request is the number of the latter. Bytes may be in b even if a read
// fails. It is all that a test has to replace.
type kernel func(fd uintptr, op op, request uint32, b []byte) (int, error)

// file is an open device file. Operations wait in Go's poller, which also tells
// when the device has gone (POLLERR), when nothing else does: a read that sleeps
// in the kernel is not woken then (user_mad.c, ib_umad_read waits for the queue
// only).
type file struct {
	os     *os.File
	raw    syscall.RawConn
	kernel kernel
}

// openDevice opens a device file for the poller.
func openDevice(path string) (*file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return newFile(f, callKernel)
}

func newFile(f *os.File, k kernel) (*file, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &file{os: f, raw: raw, kernel: k}, nil
}

// call does one operation.
func (f *file) call(op op, request uint32, b []byte) (n int, err error) {
	if e := f.raw.Control(func(fd uintptr) { n, err = f.do(fd, op, request, b) }); e != nil {
		return 0, os.ErrClosed
	}
	return n, err
}

// do does one operation inside a callback of the poller.
func (f *file) do(fd uintptr, op op, request uint32, b []byte) (int, error) {
	for {
		n, err := f.kernel(fd, op, request, b)
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

// ioctl does one; the kernel may write to arg.
func (f *file) ioctl(request uint32, arg []byte) error {
	_, err := f.call(opIoctl, request, arg)
	return err
}

// wait calls ready, and again whenever there may be something to read, until it
// returns true. It fails when the file is closed, when its deadline has passed,
// and when polling reports an error, which means that the device has gone.
func (f *file) wait(ready func(fd uintptr) bool) error { return f.raw.Read(ready) }

// under is a path below a root; "" is /.
func under(root string, elem ...string) string {
	if root == "" {
		root = "/"
	}
	return filepath.Join(append([]string{root}, elem...)...)
}
