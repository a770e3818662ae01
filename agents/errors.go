package agents

import (
	"context"
	"errors"
	"fmt"

	"github.com/ibsm/ibsm/mad"
)

// What can go wrong besides the errors of a Port (port.ErrGone,
// port.ErrClosed, port.ErrInvalid...), an *rmpp.AbortError and the end of a
// context; use errors.Is.
var (
	// ErrTimeout: no answer came in time.
	ErrTimeout = errors.New("no answer in time")
	// ErrTooLong: a message is longer than its carrier or its receiver allows.
	ErrTooLong = errors.New("message too long")
	// ErrAnswered: a request has been replied to already.
	ErrAnswered = errors.New("already replied to")
	// ErrNoAck: the acknowledgements of a long reply would not reach the agent,
	// because it does not own their method.
	ErrNoAck = errors.New("acknowledgements would not be received")
)

// Error is a failed exchange: what was asked, of whom, at which step, and what
// came back.
type Error struct {
	Op   string            // class, method and attribute
	To   mad.AddressVector // the far end
	Step string            // what was being done when it failed
	Err  error
}

func newError(data []byte, to mad.AddressVector, step string, err error) *Error {
	return &Error{Op: describe(data), To: to, Step: step, Err: err}
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s to %v: %s: %v", e.Op, e.To, e.Step, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Timeout tells whether the exchange failed because time ran out: the request's
// own, or that of its context.
func (e *Error) Timeout() bool {
	return errors.Is(e.Err, ErrTimeout) || errors.Is(e.Err, context.DeadlineExceeded)
}

// describe names class, method and attribute of a message as the IBA writes
// them: SubnAdmGetTable(PathRecord).
func describe(data []byte) string {
	if len(data) < mad.HeaderSize {
		return fmt.Sprintf("message of %d bytes", len(data))
	}
	class := mad.Class(data[mad.OffClass])
	return fmt.Sprintf("%v%v(%s)", class, mad.Method(data[mad.OffMethod]), mad.AttributeID(attribute(data)).Name(class))
}
