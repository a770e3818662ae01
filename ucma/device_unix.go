//go:build linux || illumos

package ucma

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

func writeFile(fd uintptr, b []byte) (int, error) { return unix.Write(int(fd), b) }

// poll tells whether there is an event, or something wrong that GET_EVENT will
// tell.
func poll(fd uintptr, timeout time.Duration) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, int(timeout/time.Millisecond))
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return n > 0, err
}
