package ibsim

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/ibsm/ibsm/port"
)

// channel is the socket of control messages. ibsim replies in the order of the
// requests.
type channel struct {
	socket string // base name
	node   string // for errors

	mu      sync.Mutex
	conn    *net.UnixConn
	slot    uint32
	timeout time.Duration
	late    int // replies that did not come in time, and may still come
}

// address makes the abstract address of a socket. The NUL at its end belongs to
// the name (ibsim.c, make_name).
func address(socket, format string, args ...any) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixgram", Name: "@" + socket + ":" + fmt.Sprintf(format, args...) + "\x00"}
}

// ask sends a request and waits for its reply, with which it replaces data.
func (c *channel) ask(op operation, data *[controlData]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	request := control{slot: c.slot, op: op, data: *data}
	var b [controlSize]byte
	request.encode(&b)
	// A socket of the kernel's makes no error of this.
	_ = c.conn.SetDeadline(time.Now().Add(c.timeout))
	if _, err := c.conn.Write(b[:]); err != nil {
		return c.fail(op, err)
	}
	c.late++
	for {
		var got [controlSize + 1]byte
		n, err := c.conn.Read(got[:])
		if err != nil {
			return c.fail(op, err)
		}
		if c.late--; c.late > 0 {
			continue // to a request that was given up
		}
		var reply control
		if err := reply.decode(got[:n]); err != nil {
			return &Error{Op: op.String(), Socket: c.socket, Node: c.node, Detail: err.Error(), Err: ErrMalformed}
		}
		switch reply.op {
		case op:
			*data = reply.data
			return nil
		case opError:
			return c.fail(op, errRefused)
		}
		return &Error{Op: op.String(), Socket: c.socket, Node: c.node,
			Detail: fmt.Sprintf("it is to operation %d", uint32(reply.op)), Err: ErrMalformed}
	}
}

// errRefused is ibsim's only error. It does not say why.
var errRefused = errors.New("refused")

// fail makes an error of the socket's.
func (c *channel) fail(op operation, err error) error {
	e := &Error{Op: op.String(), Socket: c.socket, Node: c.node, Err: err}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.Err, e.Detail = ErrNoReply, fmt.Sprintf("within %v: is its console waiting for Start, or busy?", c.timeout)
	case errors.Is(err, net.ErrClosed):
		e.Err = port.ErrClosed
	case isGone(err):
		e.Err, e.Detail = port.ErrGone, "ibsim has ended"
	}
	return e
}

// isGone tells whether an error of a socket says that ibsim's end of it is not
// there any more, or is another client's by now.
func isGone(err error) bool {
	for _, e := range []syscall.Errno{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ENOTCONN, syscall.EPERM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
