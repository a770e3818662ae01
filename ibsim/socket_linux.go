package ibsim

import (
	"syscall"
	"unsafe"
)

// read and write are the system calls alone. The socket does not block, so they
// never wait; and what the runtime does around a call that might, such as to wake
// a thread that watches it, takes longer than these calls. With one request in
// flight that is paid for by the time to its answer, with many by the rate.
func read(fd uintptr, b []byte) (int, error)  { return call(syscall.SYS_READ, fd, b) }
func write(fd uintptr, b []byte) (int, error) { return call(syscall.SYS_WRITE, fd, b) }

func call(trap, fd uintptr, b []byte) (int, error) {
	for {
		n, _, err := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch err {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, err
		}
	}
}
