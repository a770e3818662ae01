package ucma

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ibsm/ibsm/mad"
)

var (
	// ErrDestroyed: the id, or the multicast group, is no more.
	ErrDestroyed = errors.New("the id has been destroyed")
	// ErrState: the command is not legal in the id's state; see [StateError].
	ErrState = errors.New("not legal in the id's state")
	// ErrAnswered: the request has been accepted or rejected already.
	ErrAnswered = errors.New("the request has been answered already")
	// ErrTimeout: no answer in time, be it the kernel's time or that of the context.
	ErrTimeout = errors.New("no answer in time")
)

// StateError is a command that was not written, because the kernel would refuse
// it. errors.Is(err, ErrState) tells.
type StateError struct {
	Op    Op
	ID    uint32 // the kernel's number
	State State
	Phase string  // how far the handshake is, in StateConnect
	Legal []State // in which the command is legal
	Kind  string  // "datagram" or "connected": the command is not for ids of this kind
	How   string  // what to do about it
}

func (e *StateError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v of id %d: ", e.Op, e.ID)
	switch {
	case e.Kind != "":
		fmt.Fprintf(&b, "not for %s ids", e.Kind)
		return b.String()
	case e.State == StateDeviceRemoval:
		b.WriteString("its device has been removed; only DESTROY_ID is left")
		return b.String()
	case e.State == StateDestroying:
		b.WriteString("it is being destroyed")
		return b.String()
	case e.Phase != "":
		fmt.Fprintf(&b, "it is in state %v, %s", e.State, e.Phase)
	default:
		fmt.Fprintf(&b, "it is in state %v", e.State)
	}
	for i, s := range e.Legal {
		if s == e.State {
			continue
		}
		if i == 0 {
			b.WriteString(", and must be in")
		} else {
			b.WriteString(" or")
		}
		fmt.Fprintf(&b, " %v", s)
	}
	if e.How != "" {
		b.WriteString(": " + e.How)
	}
	return b.String()
}

// Is matches ErrState; in an id whose device was removed ErrGone; in one that is
// being destroyed ErrDestroyed.
func (e *StateError) Is(target error) bool {
	return target == ErrState || target == ErrGone && e.State == StateDeviceRemoval || target == ErrDestroyed && e.State == StateDestroying
}

// IDError is a command of an id that the kernel, or the dialect before it, refused.
type IDError struct {
	ID    uint32 // the kernel's number; 0 for CREATE_ID
	State State  // of the id when the command was written
	Err   error  // mostly a *CommandError
}

func (e *IDError) Error() string { return fmt.Sprintf("id %d (%v): %v", e.ID, e.State, e.Err) }

func (e *IDError) Unwrap() error { return e.Err }

// RejectError is the peer's REJ, or that of a CM on the way.
type RejectError struct {
	Reason      mad.RejectReason
	PrivateData []byte // without the zeros at its end
}

func (e *RejectError) Error() string {
	s := fmt.Sprintf("rejected: %v (%d)", e.Reason, uint16(e.Reason))
	switch e.Reason {
	case mad.RejectInvalidServiceID:
		s += ": nobody listens there, or not in this port space"
	case mad.RejectStaleConn:
		s += ": the peer has a connection with this QPN, or had one a moment ago"
	}
	if len(e.PrivateData) > 0 {
		s += fmt.Sprintf(", with private data %q", e.PrivateData)
	}
	return s
}

// UnreachableError is no answer, or one without a queue pair. What matches Err
// with errors.Is is the errno of a status below 0.
type UnreachableError struct {
	Status     int32 // of the event: below 0 an errno of the dialect, above 0 the status of a SIDR_REP
	Err        error // that errno, else nil
	SIDRStatus mad.SIDRStatus
}

func (e *UnreachableError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("unreachable: %v: no answer from the peer's CM", e.Err)
	}
	return fmt.Sprintf("unreachable: the peer gives no queue pair: %v (%d)", e.SIDRStatus, e.Status)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// EventError is any other event that came instead of the one that was waited for.
type EventError struct {
	Event EventType
	Want  []EventType // what was waited for
	Err   error       // its status as an errno, or nil
}

func (e *EventError) Error() string {
	s := e.Event.String()
	if len(e.Want) > 0 {
		s += " instead of"
		for i, w := range e.Want {
			if i > 0 {
				s += " or"
			}
			s += " " + w.String()
		}
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if hint := eventHints[e.Event]; hint != "" {
		s += ": " + hint
	}
	return s
}

func (e *EventError) Unwrap() error { return e.Err }

var eventHints = map[EventType]string{
	EventAddrError:      "no route to the address, nobody has it, or no RDMA device leads there",
	EventRouteError:     "the SA gave no path",
	EventMulticastError: "the SA did not let the port join, or the group is gone",
}

// PathMismatchError is a path that the kernel reports otherwise than it was given.
type PathMismatchError struct {
	Command string // which reported it: "QUERY_ROUTE", "QUERY PATH"
	Fields  []FieldMismatch
}

// FieldMismatch is one field of a path record.
type FieldMismatch struct {
	Name          string // the IBA's
	Fed, Reported string
}

func (e *PathMismatchError) Error() string {
	s := e.Command + " does not report the path that was set:"
	for i, f := range e.Fields {
		if i > 0 {
			s += ","
		}
		s += fmt.Sprintf(" %s is %s, set was %s", f.Name, f.Reported, f.Fed)
	}
	return s
}

// StepError is a flow ([Opener.Connect], [Opener.Listen], [Opener.Join]) that failed.
type StepError struct {
	Step  string          // the name of the step
	Peer  string          // the target, the listener's address or the group
	Path  *mad.PathRecord // the path used, nil before there is one
	Steps []Step          // until then, and the one that failed
	Err   error           // *RejectError, *UnreachableError, *EventError, *IDError, *StateError, *PathMismatchError, that of the PathSource or of the context...
}

func (e *StepError) Error() string {
	s := e.Step + " (" + e.Peer
	if e.Path != nil {
		s += ", path " + pathText(e.Path)
	}
	return s + "): " + e.Err.Error()
}

func (e *StepError) Unwrap() error { return e.Err }

// Is matches ErrTimeout if time was the cause.
func (e *StepError) Is(target error) bool {
	return target == ErrTimeout && (errors.Is(e.Err, context.DeadlineExceeded) || errors.Is(e.Err, ETIMEDOUT))
}
