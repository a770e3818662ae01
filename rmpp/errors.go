package rmpp

import (
	"errors"
	"fmt"

	"github.com/ibsm/ibsm/mad"
)

// Why a transfer was refused locally; use errors.Is.
var (
	// ErrMessage is returned for a message that RMPP cannot carry.
	ErrMessage = errors.New("not an RMPP message")
	// ErrTooBig says that a message exceeds ReceiverConfig.MaxData.
	ErrTooBig = errors.New("message is too big")
	// ErrTooManyHeld says that more segments arrived out of order than
	// ReceiverConfig.MaxHeld.
	ErrTooManyHeld = errors.New("too many segments out of order")
)

// AbortError is the end of a transfer that did not complete, by a STOP
// (mad.RMPPStatusResourcesExhausted) or an ABORT (all others) of either side.
type AbortError struct {
	Status  mad.RMPPStatus
	Local   bool   // this side gave up and told the peer; otherwise the peer did
	Segment uint32 // last segment that was acknowledged (Sender) or delivered (Receiver)
	Err     error  // what this side found wrong, or nil
}

func (e *AbortError) Error() string {
	who := "peer ended"
	if e.Local {
		who = "ended"
	}
	s := fmt.Sprintf("rmpp: %s the transfer after segment %d by %v, status %d (%s)",
		who, e.Segment, endsWith(e.Status), uint8(e.Status), statusText(e.Status))
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *AbortError) Unwrap() error { return e.Err }

// Timeout tells whether the transfer ended because a side waited too long.
func (e *AbortError) Timeout() bool {
	return e.Status == mad.RMPPStatusTimeTooLong || e.Status == mad.RMPPStatusTooManyRetries
}

// statusText names a status, those of classes and vendors by their range (IBA
// 13.6.2.1).
func statusText(s mad.RMPPStatus) string {
	switch {
	case s >= 192:
		return "vendor specific"
	case s >= 128:
		return "class specific"
	}
	return s.String()
}

// endsWith gives the packet type that carries s to the peer.
func endsWith(s mad.RMPPStatus) mad.RMPPType {
	if s == mad.RMPPStatusResourcesExhausted {
		return mad.RMPPTypeStop
	}
	return mad.RMPPTypeAbort
}
