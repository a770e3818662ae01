package agents

import (
	"context"
	"fmt"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// Request is a message that has an answer.
type Request struct {
	Addr mad.AddressVector
	// Data is the MAD: the headers of its class, then data. A shorter one is
	// padded with zeros; a longer one goes by RMPP. The transaction id is
	// replaced, and so is the RMPP header, where a set Active flag asks for RMPP
	// even if Data fits one MAD. Data is not kept.
	Data []byte
	// Timeout is the wait for the answer, or for its first segment, after each
	// transmission; see RMPPConfig.IdleTimeout for further ones. 0: DefaultTimeout.
	Timeout time.Duration
	Retries int // transmissions after the first
	// Long says that the answer may come by RMPP, as those to GetTable do. The
	// request is then sent again with a new transaction id instead of by the
	// carrier, which would restart an answer that is on its way.
	Long bool
	// TID is the lower half of the transaction id of the first transmission; the
	// upper one is the carrier's. 0: one that is not in use.
	TID uint32
}

// Response is the answer to a Request.
type Response struct {
	Addr mad.AddressVector // of the responder
	// Data is the whole message: the headers of its class once, those of the
	// first segment, then all data. A single MAD has mad.Size bytes.
	Data []byte
}

// Do sends a request and waits for its answer, which may be one that says what
// is wrong: Do does not look at its status. The error is an *Error; what it
// wraps is ErrTimeout, ErrTooLong, an *rmpp.AbortError, an error of the Port, or
// that of ctx.
func (a *Agent) Do(ctx context.Context, req *Request) (*Response, error) {
	c, err := a.newCall(req, true)
	if err != nil {
		return nil, err
	}
	return a.wait(ctx, c, req, nil)
}

// Stream is Do for an answer of any length. It calls yield, at least once, with
// the headers of the answer and its data in order and, in mode RMPPUser, as it
// arrives; other answers come in one call. A piece may have any length and is
// valid during the call only.
//
// A slow yield never holds up the agent: data waits, up to MaxMessage of the
// Registration; beyond that the transfer is stopped with ErrTooLong. If yield
// returns an error the transfer is aborted, and the error of Stream wraps it.
// Once data has come a time-out is final, whatever Retries says.
func (a *Agent) Stream(ctx context.Context, req *Request, yield func(head *Response, payload []byte) error) error {
	c, err := a.newCall(req, true)
	if err != nil {
		return err
	}
	var pipe *pipe
	if a.reg.RMPP == port.RMPPUser {
		pipe = newPipe(a.reg.MaxMessage)
		c.pipe = pipe
	}
	r, err := a.wait(ctx, c, req, yield)
	if err != nil || pipe != nil && pipe.head != nil {
		return err
	}
	n := mad.ClassHeaderLen(mad.Class(r.Data[mad.OffClass]))
	if err := yield(&Response{Addr: r.Addr, Data: r.Data[:n:n]}, r.Data[n:]); err != nil {
		return newError(req.Data, req.Addr, stepConsume, err)
	}
	return nil
}

// Send sends a request that has no answer; Timeout and Long do not count. In
// mode RMPPUser a long one has been acknowledged when Send returns; any other
// has only been handed over.
func (a *Agent) Send(ctx context.Context, req *Request) error {
	c, err := a.newCall(req, false)
	if err != nil {
		return err
	}
	_, err = a.wait(ctx, c, req, nil)
	return err
}

func (a *Agent) newCall(req *Request, answered bool) (*call, error) {
	data, long, err := a.compose(req.Data)
	switch {
	case err != nil:
	case mad.IsResponse(data):
		err = fmt.Errorf("%w: it is a response, not a request", port.ErrInvalid)
	case req.Timeout < 0 || req.Retries < 0:
		err = fmt.Errorf("%w: Timeout %v or Retries %d is negative", port.ErrInvalid, req.Timeout, req.Retries)
	}
	if err != nil {
		return nil, newError(req.Data, req.Addr, stepStart, err)
	}
	c := &call{
		to:       a.destination(req.Addr),
		data:     data,
		long:     long,
		answered: answered,
		mayLong:  req.Long,
		tid:      req.TID,
		timeout:  req.Timeout,
		result:   make(chan result, 1),
	}
	c.agent = a
	c.owner = c
	setDefault(&c.timeout, DefaultTimeout)
	if c.idle = a.conn.cfg.RMPP.IdleTimeout; c.idle <= 0 {
		c.idle = max(DefaultIdleTimeout, c.timeout*time.Duration(req.Retries+1))
	}
	switch {
	case long && a.reg.RMPP == port.RMPPKernel:
		c.retries, c.carrier = req.Retries, a.conn.cfg.RMPP.Retries
	case long || req.Long:
		c.retries = req.Retries
	case answered:
		c.carrier = req.Retries
	}
	return c, nil
}

// wait starts a request and waits for its end, or that of ctx.
// Payload goes from the pipe to yield, if there is one.
func (a *Agent) wait(ctx context.Context, c *call, req *Request, yield func(*Response, []byte) error) (*Response, error) {
	pipe, ready := c.pipe, (<-chan struct{})(nil)
	if pipe != nil {
		ready = pipe.ready
	}
	fail := func(step string, err error) (*Response, error) {
		return nil, newError(req.Data, c.to, step, err)
	}
	if err := ctx.Err(); err != nil {
		return fail(stepStart, err)
	}
	a.conn.do(func(now time.Time) { a.conn.state.start(c, now) })
	cancel := func() { a.conn.do(func(now time.Time) { a.conn.state.cancel(c, now) }) }
	for {
		select {
		case r := <-c.result:
			if pipe != nil {
				if err := drain(pipe, yield); err != nil {
					return fail(stepConsume, err)
				}
			}
			return r.response, r.err
		case <-ready:
			if err := drain(pipe, yield); err != nil {
				cancel()
				return fail(stepConsume, err)
			}
		case <-ctx.Done():
			cancel()
			return fail(stepAnswer, ctx.Err())
		}
	}
}

// drain hands over what is in the pipe.
func drain(p *pipe, yield func(*Response, []byte) error) error {
	head, piece := p.take()
	if len(piece) == 0 {
		return nil
	}
	defer p.consumed()
	return yield(head, piece)
}
