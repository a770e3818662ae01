// Package exit maps errors to the exit codes of the command, which are part of
// its interface (docs/command.md).
package exit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/rmpp"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/script"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/ucma"
)

// The exit codes.
const (
	OK         = 0
	Failed     = 1 // could not do it, and none of the below
	Usage      = 2 // the command line makes no sense
	NoAnswer   = 3 // nobody answered in time
	Status     = 4 // answered, with an error status
	Expect     = 5 // answered, but not as expected
	Incomplete = 6 // done in part: what came is printed
)

// kinds names the codes in error records.
var kinds = map[int]string{
	Failed: "failed", Usage: "usage", NoAnswer: "no_answer", Status: "error_status",
	Expect: "expectation", Incomplete: "incomplete",
}

// UsageError is a mistake in the command line.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// ExpectError is an answer, or several, that are not as expected.
type ExpectError struct{ Err error }

func (e *ExpectError) Error() string { return e.Err.Error() }
func (e *ExpectError) Unwrap() error { return e.Err }

// IncompleteError is the cause that ended an answer after part of it had been
// printed.
type IncompleteError struct {
	Got int // records printed
	Err error
}

func (e *IncompleteError) Error() string {
	records := "records"
	if e.Got == 1 {
		records = "record"
	}
	return fmt.Sprintf("the answer is incomplete, it ended after %d %s: %v", e.Got, records, e.Err)
}
func (e *IncompleteError) Unwrap() error { return e.Err }

// ToldError is an error that the last record tells too: nothing is missing.
type ToldError struct{ Err error }

func (e *ToldError) Error() string { return e.Err.Error() }
func (e *ToldError) Unwrap() error { return e.Err }

// Told makes a ToldError.
func Told(err error) error { return &ToldError{err} }

// LimitError is a failure because --limit was over.
type LimitError struct {
	Limit time.Duration
	Err   error
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: --limit %v is over", e.Err, e.Limit)
}
func (e *LimitError) Unwrap() error { return e.Err }

// Code gives the exit code of an error.
func Code(err error) int {
	var (
		usage      *UsageError
		addr       *mad.AddrError
		incomplete *IncompleteError
		saStatus   *sa.StatusError
		smpStatus  *smp.StatusError
		abort      *rmpp.AbortError
		rejected   *ucma.RejectError
		noQP       *ucma.UnreachableError
		mismatch   *ucma.PathMismatchError
		limit      *LimitError
		expect     *ExpectError
		mistakes   *script.ErrorList
		status     *script.StatusError
	)
	switch {
	case err == nil:
		return OK
	case errors.As(err, &expect):
		return Expect
	case errors.As(err, &usage), errors.As(err, &addr), errors.As(err, &mistakes):
		return Usage
	case errors.As(err, &incomplete):
		return Incomplete
	case errors.As(err, &limit), errors.Is(err, agents.ErrTimeout), errors.Is(err, ucma.ErrTimeout):
		return NoAnswer
	case errors.As(err, &rejected), errors.As(err, &noQP):
		return Status
	case errors.As(err, &mismatch):
		return Expect
	case errors.As(err, &abort):
		switch {
		case !abort.Local:
			return Status
		case abort.Timeout():
			return NoAnswer
		}
	case errors.As(err, &saStatus), errors.As(err, &smpStatus), errors.As(err, &status), errors.Is(err, sa.ErrNoRecords):
		return Status
	}
	return Failed
}

// saHints say what to do about statuses of an SA.
var saHints = map[mad.Status]string{
	mad.StatusSANoResources:            "ask for fewer records: name more fields, or both ends of a path",
	mad.StatusSAReqInvalid:             "this SA does not know a value of the query, as older ones the newest rates, or tells the records only to those who give its --sm-key",
	mad.StatusSATooManyRecords:         "name more fields, or ask for all of them with 'sa table'",
	mad.StatusSAInvalidGID:             "a GID in the query belongs to no port of this subnet: 'sa table node' lists them",
	mad.StatusSAInsufficientComponents: "name more fields: this SA wants some that are not there",
	mad.StatusSARequestDenied:          "the SA tells this only to those who give its --sm-key, or who ask in another --partition",
}

// Hint says what to do about an error, "" if it says so itself.
func Hint(err error) string {
	var (
		abort    *rmpp.AbortError
		notFound *sa.NotFoundError
		saError  *sa.StatusError
		smpError *smp.StatusError
		limit    *LimitError
		mistakes *script.ErrorList
	)
	switch code := Code(err); {
	case errors.As(err, &mistakes):
		return ""
	case code == Usage:
		return "'ibsm --help', 'ibsm NOUN --help' and 'ibsm NOUN VERB --help' tell how it goes"
	case errors.Is(err, context.Canceled):
		return ""
	case errors.As(err, &limit):
		return "a longer --limit gives it more time"
	case errors.As(err, &notFound):
		return "'sa table node' lists what the SA knows"
	case errors.Is(err, sa.ErrBusy):
		return "ask again later, or let it ask more often with --retries"
	case errors.Is(err, sa.ErrNoSA):
		return "start a subnet manager, or name the SA with --sa"
	case errors.Is(err, sa.ErrIncomplete):
		return "ask for fewer records: name fields, so that they fit one MAD"
	case errors.Is(err, sa.ErrRedirect):
		return "ask there with --sa"
	case errors.As(err, &saError) && errors.Is(err, sa.ErrUnsupported):
		return "not every SA has every record"
	case errors.As(err, &saError):
		return saHints[saError.Status]
	case errors.As(err, &smpError) && errors.Is(err, smp.ErrUnsupported):
		return "not every node has every attribute: SwitchInfo and forwarding tables belong to switches, SMInfo to nodes with a subnet manager"
	case errors.As(err, &abort):
		return "ask again: the transfer of the answer did not come to its end"
	case code == Incomplete && errors.Is(err, agents.ErrTimeout):
		return "ask again, with a longer --timeout"
	case code == NoAnswer:
		return "is anything there, and the way to it up? 'ports' shows the own port and its SM LID, 'smp get NodeInfo' asks a single node; --timeout and --retries make it wait longer"
	}
	return ""
}

// Kind gives the name of an error's code, as error records carry it.
func Kind(err error) string { return kinds[Code(err)] }
