package umad

import (
	"errors"
	"runtime"
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
		// The package has no ioctl with a pointer of any type for this system; the
		// one with an integer passes it on as it is.
		var pin runtime.Pinner
		defer pin.Unpin()
		p := unsafe.SliceData(b)
		if p != nil {
			pin.Pin(p)
		}
		return 0, unix.IoctlSetInt(int(fd), int(request), int(uintptr(unsafe.Pointer(p))))
	}
	return 0, errors.ErrUnsupported
}
