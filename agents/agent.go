package agents

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// WindowSA is the Window for an agent that asks an SA: what newest kernels let
// such an agent have in flight (mad.c, flow control for solicited MADs).
const WindowSA = 16

// Defaults of a Registration and a Request.
const (
	DefaultTimeout    = time.Second
	DefaultTransfer   = 10 * time.Second
	DefaultMaxMessage = rmpp.DefaultMaxData // 256 MiB
	DefaultQueue      = 1024
	DefaultWorkers    = 64
)

// Registration describes an agent. With Serve nil it is a client. With class 0
// it is send-only: it can ask any class but serve none.
type Registration struct {
	// Registration is what the Port is told. In mode RMPPUser the methods of
	// ACKs to the answers of Methods are added: answers to GetTraceTable come
	// back as ACKs of GetTable, and those to Set as ACKs of Get.
	port.Registration

	// Window limits the requests in flight; more wait their turn, first come
	// first served. 0: no limit. See WindowSA.
	Window int
	// Transfer is added to the Timeout of a Long request in mode RMPPKernel. The
	// carrier's timer then covers the whole transfer of the answer, which takes
	// as long as that; a request that is lost is sent again only afterwards. The
	// kernel itself allows a transfer 40 s. 0: DefaultTransfer.
	Transfer time.Duration
	// MaxMessage limits the data, without headers, of a message that is received.
	// For Stream it limits what has come and was not yet consumed. It costs no
	// memory before the data comes. 0: DefaultMaxMessage.
	MaxMessage int

	// Serve handles a request; several run at once. Without Reply the request
	// stays unanswered.
	Serve func(*Incoming)
	// Workers is how many calls of Serve run at once. In mode RMPPUser a worker
	// is busy until its long reply has been acknowledged. 0: DefaultWorkers.
	Workers int
	// Queue limits the requests that are arriving, waiting or being served. More
	// are dropped, as a kernel does; their senders will ask again.
	// 0: DefaultQueue.
	Queue int
}

// Agent asks, or serves, one management class.
type Agent struct {
	conn    *Conn
	reg     Registration
	serves  port.MethodSet // what Serve is for; reg.Methods may have more, for ACKs
	ctx     context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup
	jobs    chan *Incoming // as many as Queue

	// The rest belongs to the state.
	id        port.AgentID
	closed    bool
	inFlight  int
	waiting   list.List // of *call, for a place in the Window
	admitting bool
	busy      int // requests that count for Queue
}

// Register makes an agent. The errors of the Port (*port.Error) say which rule
// was broken, or that another agent owns a method.
func (c *Conn) Register(reg Registration) (*Agent, error) {
	setDefault(&reg.Transfer, DefaultTransfer)
	setDefault(&reg.MaxMessage, DefaultMaxMessage)
	setDefault(&reg.Workers, DefaultWorkers)
	setDefault(&reg.Queue, DefaultQueue)
	a := &Agent{conn: c, serves: reg.Methods, reg: reg}
	if (reg.Serve == nil) != (reg.Methods == port.MethodSet{}) {
		return nil, fmt.Errorf("register an agent of class %v: %w: Methods and Serve must come together", reg.Class, port.ErrInvalid)
	}
	if reg.RMPP == port.RMPPUser {
		a.reg.Methods = withACKs(reg.Methods)
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	var err error
	if c.do(func(time.Time) { err = c.state.register(a) }); err != nil {
		a.cancel()
		if a.reg.Methods != a.serves && errors.Is(err, port.ErrMethodOwned) {
			err = fmt.Errorf("%w (an agent with RMPPUser needs the methods of ACKs to its answers, too)", err)
		}
		return nil, fmt.Errorf("register an agent of class %v: %w", reg.Class, err)
	}
	return a, nil
}

func setDefault[T int | time.Duration](v *T, value T) {
	if *v <= 0 {
		*v = value
	}
}

// withACKs adds the methods of ACKs to answers: those of the answers with the R
// bit clear (IBA 13.6.2.1; kernel mad_rmpp.c, format_ack).
func withACKs(s port.MethodSet) port.MethodSet {
	var acks []mad.Method
	if s.Has(mad.MethodGetTraceTable) {
		acks = append(acks, mad.MethodGetTableResp)
	}
	if s.Has(mad.MethodSet) {
		acks = append(acks, mad.MethodGetResp)
	}
	more := port.Methods(acks...)
	return port.MethodSet{s[0] | more[0], s[1] | more[1]}
}

// Close unregisters the agent. Its requests and replies end with
// port.ErrClosed, and so does the Context of its handlers; it returns when these
// have. Do not call it from one.
func (a *Agent) Close() error {
	var err error
	a.conn.do(func(now time.Time) { err = a.conn.state.unregister(a, now) })
	a.workers.Wait()
	return err
}

// compose copies a message that is to be sent. Single MADs are padded to their
// size. A message goes by RMPP (long) if it does not fit a MAD, or if the Active
// flag in its RMPP header asks for it; otherwise the RMPP header belongs to the
// agent, except in mode RMPPNone.
func (a *Agent) compose(data []byte) (msg []byte, long bool, err error) {
	if len(data) < mad.HeaderSize {
		return nil, false, fmt.Errorf("%w: %d bytes are less than a MAD header", port.ErrInvalid, len(data))
	}
	class := mad.Class(data[mad.OffClass])
	if n := mad.ClassHeaderLen(class); len(data) < n {
		return nil, false, fmt.Errorf("%w: %d bytes, the headers of class %v need %d", port.ErrInvalid, len(data), class, n)
	}
	able := a.reg.RMPP != port.RMPPNone && mad.HasRMPP(class)
	long = able && (len(data) > mad.Size || data[offFlags]&byte(mad.RMPPFlagActive) != 0)
	switch {
	case long:
		msg = make([]byte, len(data))
	case len(data) <= mad.Size:
		msg = make([]byte, mad.Size)
	default:
		return nil, false, fmt.Errorf("%w: %d bytes for one MAD of %d; more take a class with RMPP and an agent with RMPPUser or RMPPKernel",
			ErrTooLong, len(data), mad.Size)
	}
	copy(msg, data)
	if able {
		clear(msg[mad.OffRMPP:mad.OffRMPPData])
	}
	if long {
		msg[offFlags] = byte(mad.RMPPFlagActive)
	}
	return msg, long, nil
}

// tooLong tells whether a message that the Port delivered in one piece exceeds
// MaxMessage. A single MAD never does.
func (a *Agent) tooLong(data []byte) bool {
	return len(data) > mad.Size && len(data)-mad.ClassHeaderLen(mad.Class(data[mad.OffClass])) > a.reg.MaxMessage
}

// offFlags is where the RMPP flags are, in the low 3 bits.
const offFlags = mad.OffRMPP + 2

// destination corrects what can only be meant otherwise: QP0 takes SMPs only.
func (a *Agent) destination(to mad.AddressVector) mad.AddressVector {
	if to.QPN == mad.QPSMI && a.reg.QPN == mad.QPGSI {
		to.QPN = mad.QPGSI
	}
	return to
}
