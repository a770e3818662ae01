package cm

import (
	"errors"
	"fmt"
)

// What is wrong, for errors.Is.
var (
	ErrInvalid   = errors.New("invalid argument")              // EINVAL
	ErrConnected = errors.New("already connected")             // EISCONN
	ErrNoPKey    = errors.New("P_Key not in the port's table") // ENOENT
)

// Error is a call that was refused: nothing was sent and nothing changed.
type Error struct {
	Op     string // what was asked: "send REQ", "listen"
	State  State  // of the id
	Reason string // what is wrong with it, and what would be right
	Err    error  // one of the errors above
}

func (e *Error) Error() string { return "cm: " + e.Op + ": " + e.Reason }

// Unwrap gives the kind of error.
func (e *Error) Unwrap() error { return e.Err }

func (c *ID) refuse(op, reason string) error {
	return &Error{Op: op, State: c.state, Reason: reason, Err: ErrInvalid}
}

// checkData refuses private data that the message has no room for.
func (c *ID) checkData(op string, n, limit int) error {
	if n > limit {
		return c.refuse(op, fmt.Sprintf("%d bytes of private data: at most %d fit", n, limit))
	}
	return nil
}

// checkInfo refuses additional information that the message has no room for.
func (c *ID) checkInfo(op string, n int) error {
	if n > MaxInfo {
		return c.refuse(op, fmt.Sprintf("%d bytes of additional information: at most %d fit", n, MaxInfo))
	}
	return nil
}
