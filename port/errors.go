package port

import (
	"errors"
	"fmt"
)

// What can go wrong at a Port; use errors.Is. ErrMethodOwned and
// ErrDuplicateTID are ErrInvalid too, because a kernel says EINVAL to each.
var (
	ErrClosed       = errors.New("port is closed")
	ErrGone         = errors.New("device has been removed")
	ErrInvalid      = errors.New("refused as invalid")                                     // EINVAL
	ErrNoAgent      = errors.New("no agent is registered in that slot")                    // EIO
	ErrNoSlot       = errors.New("no slot is free")                                        // ENOMEM: 32 agents of an open file, 8 OUIs of a vendor class and version
	ErrNoQP         = errors.New("the port has no such management queue pair")             // EPROTONOSUPPORT
	ErrBusy         = errors.New("held by somebody else")                                  // EAGAIN
	ErrMethodOwned  = fmt.Errorf("%w: a method is owned by another agent", ErrInvalid)     // EINVAL
	ErrDuplicateTID = fmt.Errorf("%w: transaction id and class are in flight", ErrInvalid) // EINVAL
)

// Error is a failure of an operation on a Port: what was asked, where, and why
// it failed.
type Error struct {
	Op     string // "register", "send"...
	Port   string // device/port
	Detail string // the rule that was broken, or ""
	Err    error  // one of the errors above, or an errno
}

func (e *Error) Error() string {
	s := e.Op
	if e.Port != "" {
		s += " on " + e.Port
	}
	s += ": "
	if e.Detail != "" {
		return s + e.Detail
	}
	return s + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }
