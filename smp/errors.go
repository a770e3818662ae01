package smp

import (
	"errors"
	"fmt"

	"github.com/ibsm/ibsm/mad"
)

// ErrUnsupported: the agent, or this package, does not know the version, the
// method or the attribute; use errors.Is on the error of a request.
var ErrUnsupported = errors.New("the request is not supported")

// StatusError is an answer with a status other than ok.
type StatusError struct {
	Status    mad.Status
	Method    mad.Method
	Attribute string
	Modifier  uint32
	To        mad.Addr
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%v of %s (modifier %#x) from %s: status %#04x (%s)", e.Method, e.Attribute, e.Modifier, place(e.To), uint16(e.Status), e.Status)
}

// Is tells which of the errors of this package the status stands for.
func (e *StatusError) Is(target error) bool {
	return target == ErrUnsupported &&
		(e.Status == mad.StatusBadVersion || e.Status == mad.StatusBadMethod || e.Status == mad.StatusBadAttribute)
}

// MalformedError is an answer that says of itself that it answers another method.
type MalformedError struct {
	Method    mad.Method // of the answer
	Asked     mad.Method // of the request
	Attribute string
	Modifier  uint32
	To        mad.Addr
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("malformed answer for %s (modifier %#x) from %s: method %v does not answer %v", e.Attribute, e.Modifier, place(e.To), e.Method, e.Asked)
}
