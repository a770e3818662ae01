package sa

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ibsm/ibsm/mad"
)

// What an SA's answer can mean; use errors.Is on the error of a query.
var (
	// ErrBusy: the SA was busy at every try.
	ErrBusy = errors.New("the SA is busy")
	// ErrNoRecords: nothing agrees with the query. Only Get says so, a table is
	// empty then.
	ErrNoRecords = errors.New("no record agrees with the query")
	// ErrTooMany: a Get whose query more than one record agrees with.
	ErrTooMany = errors.New("more than one record agrees with the query")
	// ErrRedirect: the SA wants to be asked elsewhere, which is not supported.
	ErrRedirect = errors.New("the SA redirects to another address")
	// ErrUnsupported: the SA, or this package, does not know the version, the
	// method or the attribute.
	ErrUnsupported = errors.New("the query is not supported")
	// ErrIncomplete: a table that was cut on its way.
	ErrIncomplete = errors.New("the answer is incomplete")
	// ErrNoLID: the SA knows the node, but the subnet manager has not set it up.
	ErrNoLID = errors.New("the node has no LID yet: the SM has not reached it")
	// ErrNoSA: the port does not know an SA to ask.
	ErrNoSA = errors.New("no SA is known")
)

// StatusError is an answer with a status other than ok.
type StatusError struct {
	Status    mad.Status
	Method    mad.Method // of the request
	Attribute string
	From      mad.AddressVector // the SA
	Tries     int               // how often it was asked
	// Redirect is where to ask instead, if Status says so.
	Redirect *mad.ClassPortInfo
}

func (e *StatusError) Error() string {
	s := fmt.Sprintf("SA at %v: %v %s: status %#04x (%s)", e.From, e.Method, e.Attribute, uint16(e.Status), e.Status.Text(mad.ClassSubnAdm))
	switch {
	case e.Redirect != nil:
		s += fmt.Sprintf(": ask LID %v GID %v instead", e.Redirect.RedirectLID, e.Redirect.RedirectGID)
	case e.Tries > 1:
		s += fmt.Sprintf(" at each of %d tries", e.Tries)
	}
	return s
}

// Is tells which of the errors of this package the status stands for.
func (e *StatusError) Is(target error) bool {
	switch target {
	case ErrBusy:
		return e.Status&mad.StatusBusy != 0
	case ErrRedirect:
		return e.Status&mad.StatusRedirect != 0
	case ErrNoRecords:
		return e.Status == mad.StatusSANoRecords
	case ErrTooMany:
		return e.Status == mad.StatusSATooManyRecords
	case ErrUnsupported:
		return e.Status == mad.StatusBadVersion || e.Status == mad.StatusBadMethod || e.Status == mad.StatusBadAttribute
	}
	return false
}

// MalformedError is an answer that makes no sense.
type MalformedError struct {
	Attribute string
	From      mad.AddressVector // the SA
	Offset    int               // distance between records in bytes, as the SA gave it
	Length    int               // bytes of records; 0, as Offset, if it was not them
	Detail    string
}

func (e *MalformedError) Error() string {
	s := fmt.Sprintf("SA at %v: malformed answer for %s", e.From, e.Attribute)
	if e.Length > 0 {
		s += fmt.Sprintf(" (AttributeOffset %d bytes, %d bytes of records)", e.Offset, e.Length)
	}
	return s + ": " + e.Detail
}

// IncompleteError is an answer of which only the first MAD came, because what
// carries it, such as ibsim, has no RMPP. The records in that MAD came before the
// error. An answer that just fills its MAD looks the same.
type IncompleteError struct {
	Attribute string
	From      mad.AddressVector // the SA
	Records   int               // that came
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("SA at %v: GetTable %s: %v: of a longer one the first MAD came, with %d whole records, for want of RMPP on the way",
		e.From, e.Attribute, ErrIncomplete, e.Records)
}

func (e *IncompleteError) Unwrap() error { return ErrIncomplete }

// NotFoundError is an address that no port of the subnet has.
type NotFoundError struct {
	Addr mad.Addr
	Near []string // names of nodes that are close to it
}

func (e *NotFoundError) Error() string {
	s := fmt.Sprintf("no port of the subnet has the address %v", e.Addr)
	if e.Addr.Kind == mad.AddrName {
		s = fmt.Sprintf("no node of the subnet has the name %q", e.Addr.Name)
	}
	if len(e.Near) > 0 {
		s += ": did you mean " + strings.Join(e.Near, " or ") + "?"
	}
	return s
}

// AmbiguousError is an address that several ports have.
type AmbiguousError struct {
	Addr  mad.Addr
	Ports []Endpoint
}

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v stands for %d ports, name one of them by its GUID:", e.Addr, len(e.Ports))
	for _, p := range e.Ports {
		fmt.Fprintf(&b, " %v (%s, port %d, LID %v)", p.PortGUID, p.Desc, p.PortNum, p.LID)
	}
	return b.String()
}
