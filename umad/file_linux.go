package umad

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// callKernel is the kernel of device files.
func callKernel(fd uintptr, op op, request uint32, b []byte) (int, error) {
	switch op {
	case opRead:
		return unix.Read(int(fd), b)
	case opWrite:
		return unix.Write(int(fd), b)
	case opIoctl:
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uintptr(request), uintptr(unsafe.Pointer(unsafe.SliceData(b))))
		if errno != 0 {
			return 0, errno
		}
		return 0, nil
	}
	return 0, errors.ErrUnsupported
}
