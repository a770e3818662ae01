package ucma

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Errno is an errno by its name, "ETIMEDOUT", since its number depends on the
// system. A number without a name is "errno 524".
type Errno string

// Error is the name.
func (e Errno) Error() string { return string(e) }

// Timeout tells whether it is ETIMEDOUT.
func (e Errno) Timeout() bool { return e == ETIMEDOUT }

// Is lets errors.Is find fs.ErrPermission, fs.ErrNotExist, errors.ErrUnsupported,
// and ErrGone: ENXIO is what commands of an id get whose device has been removed.
func (e Errno) Is(target error) bool {
	switch target {
	case ErrGone:
		return e == ENXIO
	case fs.ErrPermission:
		return e == EPERM || e == EACCES
	case fs.ErrNotExist:
		return e == ENOENT
	case errors.ErrUnsupported:
		return e == ENOSYS || e == EOPNOTSUPP
	}
	return false
}

// The errnos that commands end with and that stand in the status of events.
const (
	EPERM           Errno = "EPERM"
	ENOENT          Errno = "ENOENT"
	EINTR           Errno = "EINTR"
	EIO             Errno = "EIO"
	ENXIO           Errno = "ENXIO"
	E2BIG           Errno = "E2BIG"
	EBADF           Errno = "EBADF"
	EAGAIN          Errno = "EAGAIN"
	ENOMEM          Errno = "ENOMEM"
	EACCES          Errno = "EACCES"
	EFAULT          Errno = "EFAULT"
	EBUSY           Errno = "EBUSY"
	EEXIST          Errno = "EEXIST"
	ENODEV          Errno = "ENODEV"
	EINVAL          Errno = "EINVAL"
	ENFILE          Errno = "ENFILE"
	EMFILE          Errno = "EMFILE"
	ENOTTY          Errno = "ENOTTY"
	ENOSPC          Errno = "ENOSPC"
	EPIPE           Errno = "EPIPE"
	ERANGE          Errno = "ERANGE"
	ENOMSG          Errno = "ENOMSG"
	ENOSYS          Errno = "ENOSYS"
	ENODATA         Errno = "ENODATA"
	EPROTO          Errno = "EPROTO"
	EOVERFLOW       Errno = "EOVERFLOW"
	EMSGSIZE        Errno = "EMSGSIZE"
	EPROTONOSUPPORT Errno = "EPROTONOSUPPORT"
	EOPNOTSUPP      Errno = "EOPNOTSUPP"
	EAFNOSUPPORT    Errno = "EAFNOSUPPORT"
	EADDRINUSE      Errno = "EADDRINUSE"
	EADDRNOTAVAIL   Errno = "EADDRNOTAVAIL"
	ENETDOWN        Errno = "ENETDOWN"
	ENETUNREACH     Errno = "ENETUNREACH"
	ECONNABORTED    Errno = "ECONNABORTED"
	ECONNRESET      Errno = "ECONNRESET"
	ENOBUFS         Errno = "ENOBUFS"
	EISCONN         Errno = "EISCONN"
	ENOTCONN        Errno = "ENOTCONN"
	ETIMEDOUT       Errno = "ETIMEDOUT"
	ECONNREFUSED    Errno = "ECONNREFUSED"
	EHOSTDOWN       Errno = "EHOSTDOWN"
	EHOSTUNREACH    Errno = "EHOSTUNREACH"
	EALREADY        Errno = "EALREADY"
	EINPROGRESS     Errno = "EINPROGRESS"
	ESTALE          Errno = "ESTALE"
	ECANCELED       Errno = "ECANCELED"
)

// linuxErrnos are the numbers of most architectures (include/uapi/asm-generic/
// errno.h); MIPS, SPARC, Alpha and PA-RISC have others.
var linuxErrnos = map[Errno]int{
	EPERM: 1, ENOENT: 2, EINTR: 4, EIO: 5, ENXIO: 6, E2BIG: 7, EBADF: 9, EAGAIN: 11, ENOMEM: 12, EACCES: 13, EFAULT: 14,
	EBUSY: 16, EEXIST: 17, ENODEV: 19, EINVAL: 22, ENFILE: 23, EMFILE: 24, ENOTTY: 25, ENOSPC: 28, EPIPE: 32, ERANGE: 34,
	ENOSYS: 38, ENOMSG: 42, ENODATA: 61, EPROTO: 71, EOVERFLOW: 75, EMSGSIZE: 90, EPROTONOSUPPORT: 93, EOPNOTSUPP: 95,
	EAFNOSUPPORT: 97, EADDRINUSE: 98, EADDRNOTAVAIL: 99, ENETDOWN: 100, ENETUNREACH: 101, ECONNABORTED: 103, ECONNRESET: 104,
	ENOBUFS: 105, EISCONN: 106, ENOTCONN: 107, ETIMEDOUT: 110, ECONNREFUSED: 111, EHOSTDOWN: 112, EHOSTUNREACH: 113,
	EALREADY: 114, EINPROGRESS: 115, ESTALE: 116, ECANCELED: 125,
}

// illumosErrnos are Solaris' numbers (sys/errno.h).
var illumosErrnos = map[Errno]int{
	EPERM: 1, ENOENT: 2, EINTR: 4, EIO: 5, ENXIO: 6, E2BIG: 7, EBADF: 9, EAGAIN: 11, ENOMEM: 12, EACCES: 13, EFAULT: 14,
	EBUSY: 16, EEXIST: 17, ENODEV: 19, EINVAL: 22, ENFILE: 23, EMFILE: 24, ENOTTY: 25, ENOSPC: 28, EPIPE: 32, ERANGE: 34,
	ENOMSG: 35, ECANCELED: 47, ENODATA: 61, EPROTO: 71, EOVERFLOW: 79, ENOSYS: 89, EMSGSIZE: 97, EPROTONOSUPPORT: 120,
	EOPNOTSUPP: 122, EAFNOSUPPORT: 124, EADDRINUSE: 125, EADDRNOTAVAIL: 126, ENETDOWN: 127, ENETUNREACH: 128,
	ECONNABORTED: 130, ECONNRESET: 131, ENOBUFS: 132, EISCONN: 133, ENOTCONN: 134, ETIMEDOUT: 145, ECONNREFUSED: 146,
	EHOSTDOWN: 147, EHOSTUNREACH: 148, EALREADY: 149, EINPROGRESS: 150, ESTALE: 151,
}

const unnamedErrno = "errno "

// Errno names an errno, given positive or negative. 0 is "".
func (d *Dialect) Errno(n int) Errno {
	if n < 0 {
		n = -n
	}
	if n == 0 {
		return ""
	}
	for e, number := range d.errnos {
		if number == n {
			return e
		}
	}
	return Errno(fmt.Sprint(unnamedErrno, n))
}

// Number is the positive number of an errno. It is 0 for one that the system
// does not have, and for "".
func (d *Dialect) Number(e Errno) int {
	if n, ok := d.errnos[e]; ok {
		return n
	}
	var n int
	if s, ok := strings.CutPrefix(string(e), unnamedErrno); ok {
		fmt.Sscan(s, &n)
	}
	return max(n, 0)
}
