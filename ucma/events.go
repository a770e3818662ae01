package ucma

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/ibsm/ibsm/mad"
)

// Event is one event of an id or of a multicast group.
type Event struct {
	Type   EventType
	Status int32 // below 0 an errno of the dialect; above 0 the reason of a REJ or the status of a SIDR_REP
	Err    error // what the event says went wrong: *RejectError, *UnreachableError, *EventError; else nil
	// Child is the id of the connection that a CONNECT_REQUEST asks for.
	Child *ID
	// Conn has the parameters of an id whose queue pair is connected, UD those of
	// a datagram id; what does not apply is zero. Private data has the greatest
	// length that its message can have, with zeros at the end: the kernel does not
	// tell how much was sent.
	Conn ConnParam
	UD   UDParam
	ECE  ECE
}

// PrivateData is that of the event without the zeros at its end, which stand for
// nothing as well as for zeros that were sent.
func (e *Event) PrivateData() []byte {
	data := e.Conn.PrivateData
	if len(e.UD.PrivateData) > 0 {
		data = e.UD.PrivateData
	}
	return bytes.TrimRight(data, "\x00")
}

// makeEvent decodes an answer to GET_EVENT. The kernel fills the union of
// parameters by the type of the id's queue pair, which the answer does not tell.
func makeEvent(d *Dialect, r *EventResp, qp QPType) Event {
	e := Event{Type: r.Event, Status: r.Status, ECE: r.ECE}
	if qp == QPTypeUD {
		e.UD = r.UD()
	} else {
		e.Conn = r.Conn()
	}
	var errno error
	if r.Status < 0 {
		errno = d.Errno(int(-r.Status))
	}
	switch r.Event {
	case EventRejected:
		e.Err = &RejectError{Reason: mad.RejectReason(r.Status), PrivateData: e.PrivateData()}
	case EventUnreachable:
		u := &UnreachableError{Status: r.Status, Err: errno}
		if r.Status > 0 {
			u.SIDRStatus = mad.SIDRStatus(r.Status)
		}
		e.Err = u
	case EventDeviceRemoval:
		e.Err = fmt.Errorf("%v: %w", r.Event, ErrGone)
	default:
		if failure(r.Event) || r.Status < 0 {
			e.Err = &EventError{Event: r.Event, Err: errno}
		}
	}
	return e
}

func failure(t EventType) bool {
	switch t {
	case EventAddrError, EventRouteError, EventConnectError, EventMulticastError, EventAddrInfoError:
		return true
	}
	return false
}

// informs tells that an event changes nothing for who waits for another: the
// kernel's own news, and what a newer kernel may say.
func informs(t EventType) bool {
	return t == EventAddrChange || t == EventTimewaitExit || !known(t)
}

func known(t EventType) bool { return t <= EventInternal }

// mailbox holds the events of an id or of a group until somebody takes them.
type mailbox struct {
	queue   []Event
	fetched uint32        // as the kernel counts in events_reported
	changed chan struct{} // closed, and made anew, when somebody who waits should look again
	ended   error         // no event comes any more
}

func newMailbox() mailbox { return mailbox{changed: make(chan struct{})} }

// put, end and take are called under the owner's lock.
func (b *mailbox) put(e Event) {
	if b.ended != nil {
		return
	}
	b.queue = append(b.queue, e)
	b.wake()
}

func (b *mailbox) end(err error) {
	if b.ended == nil {
		b.ended = err
	}
	b.queue = nil
	b.wake()
}

func (b *mailbox) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *mailbox) take() (e Event, ok bool) {
	if len(b.queue) == 0 {
		return Event{}, false
	}
	e = b.queue[0]
	b.queue = slices.Delete(b.queue, 0, 1)
	return e, true
}

// wants checks an event that came while some type was waited for: done, if it is
// that or a failure.
func wants(e *Event, types []EventType) (done bool, err error) {
	switch {
	case slices.Contains(types, e.Type):
		return true, e.Err
	case e.Err != nil:
		if ee, ok := e.Err.(*EventError); ok && !failure(e.Type) {
			ee.Want = types
		}
		return true, e.Err
	case informs(e.Type):
		return false, nil
	}
	return true, &EventError{Event: e.Type, Want: types}
}

// waitFor gives the first event of these types, or the failure that came instead.
func waitFor(ctx context.Context, next func(context.Context) (Event, error), types []EventType) (Event, error) {
	for {
		e, err := next(ctx)
		if err != nil {
			return e, err
		}
		if done, err := wants(&e, types); done {
			return e, err
		}
	}
}
