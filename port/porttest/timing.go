package porttest

import (
	"slices"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// RunTiming runs the part about time-outs and retries.
func RunTiming(t *testing.T, b Bench) {
	b.checkExceptions(t)
	run(t, &b, timingTests)
}

func silent(b *Bench) bool { return b.Silence && b.Serves }

var timingTests = []test{
	{"TimeOut", silent, timeOut},
	{"TimeOutOrder", silent, timeOutOrder},
	{"RoundUp", silent, roundUp},
	{"NoTimeOut", silent, noTimeOut},
	{"AnswerToRetry", silent, answerToRetry},
	{"LateAnswer", silent, lateAnswer},
	{"UnregisterCancels", silent, unregisterCancels},
	{"SegmentTimeOut", kernelAndUser, func(e *env) { segmentTimeOut(e, 300*time.Millisecond, 300*time.Millisecond) }},
	{"SegmentTimeOutIsLimited", kernelAndUser, func(e *env) { segmentTimeOut(e, 10*time.Second, 2*time.Second) }},
	{"SegmentTimeOutWithoutResponse", kernelAndUser, segmentTimeOutWithoutResponse},
	{"ResponseTimeOutAfterSegments", kernelAndUser, responseTimeOutAfterSegments},
}

func kernelAndUser(b *Bench) bool { return silent(b) && b.KernelRMPP && b.UserRMPP }

// maxWaits is more than the waits that any test adds up.
const maxWaits = 5

// took compares times: exactly in a bubble, from below elsewhere.
func (e *env) took(what string, got, want time.Duration) {
	e.Helper()
	if got == want || !e.bench.Virtual && got > want-maxWaits*e.bench.Tick {
		return
	}
	e.Errorf("%s after %v, want %v", what, got, want)
}

// timeOut checks the number and the instants of transmissions, and the message
// that ends a request without an answer (kernel: mad.c, timeout_sends;
// user_mad.c, send_handler).
func timeOut(e *env) {
	const timeout, retries = 100 * time.Millisecond, 2
	a, b := e.openA(), e.openB()
	id := a.client()
	b.server(mad.MethodGet)
	to := a.to
	to.SL, to.PathBits = 0, 0
	start := time.Now()
	sent := newMAD(testClass, mad.MethodGet, 7)
	a.send(port.Message{Agent: id, Timeout: timeout, Retries: retries, Addr: to, Data: sent})
	var request port.Message
	for i := range retries + 1 {
		request = b.next()
		e.took("transmission", time.Since(start), time.Duration(i)*timeout)
	}
	m := a.next()
	e.took("time-out", time.Since(start), (retries+1)*timeout)
	want := slices.Concat(request.Data[:mad.OffTID+8], sent[mad.OffTID+8:mad.HeaderSize])
	if !m.TimedOut || m.Agent != id || !slices.Equal(m.Data, want) {
		e.Errorf("%s, want a time-out with the %d header bytes as transmitted: %x", describe(m), mad.HeaderSize, want)
	}
	if m.Timeout != timeout || m.Retries != retries || m.Addr != to {
		e.Errorf("time-out with timeout %v, retries %d, address %+v, want those of the request: %v, %d, %+v",
			m.Timeout, m.Retries, m.Addr, timeout, retries, to)
	}
	a.quiet(soon)
}

// timeOutOrder checks that requests end in the order of their deadlines, whatever
// the order they were sent in.
func timeOutOrder(e *env) {
	a, b := e.openA(), e.openB()
	id := a.client()
	b.server(mad.MethodGet)
	start := time.Now()
	timeouts := []time.Duration{120, 40, 200, 80, 160}
	for i, ms := range timeouts {
		a.ask(id, mad.MethodGet, uint32(i), ms*time.Millisecond)
	}
	for _, want := range []uint32{1, 3, 0, 4, 2} {
		m := a.next()
		if !m.TimedOut || tidOf(m) != want {
			e.Errorf("%s, want the time-out of request %d", describe(m), want)
		}
		e.took("time-out", time.Since(start), timeouts[want]*time.Millisecond)
	}
}

// roundUp checks that a time-out is in whole milliseconds, as the kernel's.
func roundUp(e *env) {
	a, b := e.openA(), e.openB()
	id := a.client()
	b.server(mad.MethodGet)
	for timeout, want := range map[time.Duration]time.Duration{
		1:                                     time.Millisecond,
		time.Millisecond:                      time.Millisecond,
		20*time.Millisecond + 1:               21 * time.Millisecond,
		30*time.Millisecond + 999_999:         31 * time.Millisecond,
		40 * time.Millisecond:                 40 * time.Millisecond,
		50*time.Millisecond + time.Nanosecond: 51 * time.Millisecond,
	} {
		start := time.Now()
		a.ask(id, mad.MethodGet, 1, timeout)
		m := a.next()
		e.took("time-out", time.Since(start), want)
		if m.Timeout != want {
			e.Errorf("time-out message of %v says %v, want %v", timeout, m.Timeout, want)
		}
	}
}

// noTimeOut checks that a request with timeout 0 is sent once and forgotten: no
// retry, no time-out, and no answer either.
func noTimeOut(e *env) {
	a, b := e.openA(), e.openB()
	b.server(mad.MethodGet)
	a.send(port.Message{Agent: a.client(), Retries: 3, Addr: a.to, Data: newMAD(testClass, mad.MethodGet, 1)})
	request := b.next()
	a.quiet(time.Second)
	b.quiet(soon)
	b.answer(request)
	a.quiet(soon)
}

func answerToRetry(e *env) {
	const timeout = 100 * time.Millisecond
	a, b := e.openA(), e.openB()
	id := a.client()
	b.server(mad.MethodGet)
	start := time.Now()
	a.send(port.Message{Agent: id, Timeout: timeout, Retries: 5, Addr: a.to, Data: newMAD(testClass, mad.MethodGet, 4)})
	b.next()
	b.answer(b.next())
	m := a.next()
	if m.TimedOut || tidOf(m) != 4 {
		e.Errorf("%s, want the response", describe(m))
	}
	e.took("response", time.Since(start), timeout)
	a.quiet(3 * timeout)
	b.quiet(soon)
}

func lateAnswer(e *env) {
	a, b := e.openA(), e.openB()
	id := a.client()
	b.server(mad.MethodGet)
	a.ask(id, mad.MethodGet, 4, soon)
	request := b.next()
	if m := a.next(); !m.TimedOut {
		e.Errorf("%s, want a time-out", describe(m))
	}
	b.answer(request)
	a.quiet(soon)
}

// unregisterCancels checks that what an agent had in flight ends without a
// message, and that its methods and its transaction ids are gone.
func unregisterCancels(e *env) {
	a, b := e.openA(), e.openB()
	id := a.client()
	b.server(mad.MethodGet)
	a.send(port.Message{Agent: id, Timeout: soon, Retries: 3, Addr: a.to, Data: newMAD(testClass, mad.MethodGet, 4)})
	request := b.next()
	if err := a.port.Unregister(id); err != nil {
		e.Fatal(err)
	}
	a.quiet(5 * soon)
	b.quiet(soon) // not sent again
	b.answer(request)
	a.quiet(soon)
}

// segmentTimeOut sends a message in segments to somebody who does not
// acknowledge: the time-out is at most 2 s for each transmission of a segment
// (kernel: mad_rmpp.c, send_next_seg).
func segmentTimeOut(e *env, timeout, perTry time.Duration) {
	a, b := e.openA(), e.openB()
	id := a.register(kernelRMPP(testClass))
	server := b.register(userRMPPServer(mad.MethodGetMulti))
	start := time.Now()
	a.send(port.Message{Agent: id, Timeout: timeout, Retries: 1, Addr: a.to, Data: newLong(testClass, mad.MethodGetMulti, 1, 500)})
	for i := range 2 {
		m := b.next()
		if m.Agent != server || m.Data[rmppFlags]&flagsMask != active|first {
			e.Errorf("%s, want segment 1", describe(m))
		}
		e.took("transmission", time.Since(start), time.Duration(i)*perTry)
	}
	m := a.next()
	e.took("time-out", time.Since(start), 2*perTry)
	if !m.TimedOut || len(m.Data) != mad.HeaderSize || m.Timeout != timeout || m.Retries != 1 {
		e.Errorf("%s, timeout %v, retries %d: want the time-out of the request", describe(m), m.Timeout, m.Retries)
	}
}

// segmentTimeOutWithoutResponse checks that a message that wants no answer still
// ends with a time-out when nobody acknowledges it.
func segmentTimeOutWithoutResponse(e *env) {
	a, b := e.openA(), e.openB()
	id := a.register(kernelRMPP(testClass))
	b.register(userRMPPServer(mad.MethodGetMulti))
	start := time.Now()
	a.send(port.Message{Agent: id, Addr: a.to, Data: newLong(testClass, mad.MethodGetMulti, 1, 500)})
	m := a.next()
	e.took("time-out", time.Since(start), 2*time.Second)
	if !m.TimedOut || m.Timeout != 0 {
		e.Errorf("%s, timeout %v: want the time-out of the message", describe(m), m.Timeout)
	}
}

// responseTimeOutAfterSegments checks that a message whose segments were
// acknowledged waits for its response once, whatever retries it has left.
func responseTimeOutAfterSegments(e *env) {
	const timeout = 100 * time.Millisecond
	a, b := e.openA(), e.openB()
	id := a.register(kernelRMPP(testClass))
	b.register(kernelRMPP(testClass, mad.MethodGetMulti))
	start := time.Now()
	request := newLong(testClass, mad.MethodGetMulti, 1, 1000)
	a.send(port.Message{Agent: id, Timeout: timeout, Retries: 4, Addr: a.to, Data: request})
	e.checkLong(b.next(), request)
	m := a.next()
	e.took("time-out", time.Since(start), timeout)
	if !m.TimedOut {
		e.Errorf("%s, want a time-out", describe(m))
	}
	b.quiet(soon)
}
