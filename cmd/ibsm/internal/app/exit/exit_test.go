package exit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/script"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/ucma"
)

// Every error that the library gives, as docs/command.md says. hint is a word of
// what is told to do about it.
func TestCode(t *testing.T) {
	timeout := &agents.Error{Err: agents.ErrTimeout}
	busy := &sa.StatusError{Status: mad.StatusBusy}
	for _, tt := range []struct {
		err  error
		code int
		kind string
		hint string
	}{
		{nil, 0, "", ""},
		{errors.New("anything"), 1, "failed", ""},
		{port.ErrGone, 1, "failed", ""},
		{&port.Error{Op: "open", Err: port.ErrBusy}, 1, "failed", ""},
		{&sa.NotFoundError{Addr: mad.MustParseAddr("h99")}, 1, "failed", "sa table node"},
		{&sa.AmbiguousError{}, 1, "failed", ""},
		{&sa.MalformedError{}, 1, "failed", ""},
		{sa.ErrNoSA, 1, "failed", "--sa"},
		{context.Canceled, 1, "failed", ""},
		{Usagef("no %s", "way"), 2, "usage", "--help"},
		{&mad.AddrError{Text: "0"}, 2, "usage", "--help"},
		{&script.ErrorList{Errors: []*script.Error{{}}}, 2, "usage", ""},
		{timeout, 3, "no_answer", "--timeout"},
		{&rmpp.AbortError{Status: mad.RMPPStatusTimeTooLong, Local: true}, 3, "no_answer", "ask again"},
		{&rmpp.AbortError{Status: mad.RMPPStatusTimeTooLong}, 4, "error_status", "ask again"},
		{&rmpp.AbortError{Local: true, Err: rmpp.ErrTooBig}, 1, "failed", "ask again"},
		{busy, 4, "error_status", "--retries"},
		{&sa.StatusError{Status: mad.StatusSATooManyRecords}, 4, "error_status", "sa table"},
		{&sa.StatusError{Status: mad.StatusSANoRecords}, 4, "error_status", ""},
		{&sa.StatusError{Status: mad.StatusSANoResources}, 4, "error_status", "fewer records"},
		{&sa.StatusError{Status: mad.StatusSAReqInvalid}, 4, "error_status", "newest rates"},
		{&sa.StatusError{Status: mad.StatusSAInvalidGID}, 4, "error_status", "sa table node"},
		{&sa.StatusError{Status: mad.StatusSAInsufficientComponents}, 4, "error_status", "more fields"},
		{&sa.StatusError{Status: mad.StatusSARequestDenied}, 4, "error_status", "--partition"},
		{&sa.StatusError{Status: mad.StatusBadMethod}, 4, "error_status", "not every SA"},
		{&sa.StatusError{Status: mad.StatusRedirect}, 4, "error_status", "--sa"},
		{fmt.Errorf("a path: %w", sa.ErrNoRecords), 4, "error_status", ""},
		{&smp.StatusError{Status: mad.StatusBadAttribute}, 4, "error_status", "SwitchInfo"},
		{&smp.StatusError{Status: mad.StatusBadField}, 4, "error_status", ""},
		{&script.StatusError{Status: mad.StatusBadAttribute}, 4, "error_status", ""},
		{&script.TimeoutError{}, 1, "failed", ""},
		{Told(&ExpectError{timeout}), 5, "expectation", ""},
		{&IncompleteError{7, timeout}, 6, "incomplete", "longer --timeout"},
		{&IncompleteError{7, busy}, 6, "incomplete", "--retries"},
		{&IncompleteError{7, port.ErrGone}, 6, "incomplete", ""},
		{&IncompleteError{3, &sa.IncompleteError{Records: 3}}, 6, "incomplete", "fewer records"},
		{&ucma.StepError{Err: &ucma.RejectError{Reason: mad.RejectInvalidServiceID}}, 4, "error_status", ""},
		{&ucma.StepError{Err: &ucma.UnreachableError{Status: 1}}, 4, "error_status", ""},
		{&ucma.StepError{Err: &ucma.UnreachableError{Status: -110, Err: ucma.ETIMEDOUT}}, 3, "no_answer", "up"},
		{&ucma.StepError{Err: context.DeadlineExceeded}, 3, "no_answer", "up"},
		{&ucma.StepError{Err: ucma.ENODEV}, 1, "failed", ""},
		{&ucma.StepError{Err: &ucma.PathMismatchError{}}, 5, "expectation", ""},
		{Told(&ucma.RejectError{}), 4, "error_status", ""},
		{&LimitError{Err: context.DeadlineExceeded}, 3, "no_answer", "longer --limit"},
		{&LimitError{Err: &ucma.StepError{Err: ucma.ENODEV}}, 3, "no_answer", "longer --limit"},
		{&sa.IncompleteError{}, 1, "failed", "fewer records"}, // nothing of it is printed
	} {
		for _, err := range []error{tt.err, wrap(tt.err)} {
			if got := Code(err); got != tt.code || Kind(err) != tt.kind {
				t.Errorf("%T %v: code %d (%s), want %d (%s)", tt.err, err, got, Kind(err), tt.code, tt.kind)
			}
			if got := Hint(err); !strings.Contains(got, tt.hint) || (tt.hint == "") != (got == "") {
				t.Errorf("%T %v: hint %q, want %q", tt.err, err, got, tt.hint)
			}
		}
	}
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("step: %w", err), nil)
}

func TestIncompleteError(t *testing.T) {
	for got, want := range map[int]string{1: "after 1 record: port is closed", 2: "after 2 records: port is closed"} {
		if e := (&IncompleteError{got, port.ErrClosed}); !strings.HasSuffix(e.Error(), want) || !errors.Is(e, port.ErrClosed) {
			t.Errorf("%v, want %q", e, want)
		}
	}
}
