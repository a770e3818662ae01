package sa

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// Request is a query of any attribute of the field table, for programs that know
// the record by its row there; see [Get] and [Table] for typed ones.
type Request struct {
	Attribute *layout.Attribute
	Method    mad.Method // MethodGet or MethodGetTable
	Mask      uint64     // the components that count; see [Mask]
	Record    []byte     // their values: a record, or less
}

// Positions in the SA header (IBA 15.2.1.1).
const (
	offSMKey           = mad.OffRMPPData
	offAttributeOffset = offSMKey + 8
	offComponentMask   = offSMKey + 12
)

// errStop ends the walk through the records of an answer early.
var errStop = errors.New("no more records are wanted")

// Rows gives the records that agree with a query as bytes: each at least as long
// as the structure, and longer if the SA's is. A record is valid until the next
// one. An error ends the sequence.
//
// Errors: *StatusError, *MalformedError, ErrNoSA, an *agents.Error (that is
// agents.ErrTimeout when no try got an answer).
func (c *Client) Rows(ctx context.Context, req Request) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		resp, err := c.exchange(ctx, &req)
		if err == nil {
			err = rows(&req, resp, func(row []byte) error {
				if !yield(row, nil) {
					return errStop
				}
				return nil
			})
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}

// exchange sends a query until it gets an answer other than busy.
func (c *Client) exchange(ctx context.Context, req *Request) (*agents.Response, error) {
	table := req.Method == mad.MethodGetTable
	msg := c.compose(req)
	backoff := c.cfg.Timeout / 8
	for try := 1; ; try++ {
		to, err := c.address()
		if err != nil {
			return nil, err
		}
		resp, err := c.agent.Do(ctx, &agents.Request{Addr: to, Data: msg, Timeout: c.cfg.Timeout, Long: table})
		last := try > c.cfg.Retries
		switch {
		case errors.Is(err, agents.ErrTimeout):
			c.forgetAddress()
			switch {
			case !last:
				continue
			case try > 1:
				err = fmt.Errorf("%w (asked %d times)", err, try)
			}
			return nil, err
		case err != nil:
			return nil, err
		}
		err = check(req, resp, try)
		if !errors.Is(err, ErrBusy) || last {
			return resp, err
		}
		// Those who were turned away together come back one by one.
		if err := sleep(ctx, backoff/2+c.jitter(backoff/2)); err != nil {
			return nil, fmt.Errorf("wait for a busy SA: %w", err)
		}
		backoff *= 2
	}
}

// compose makes the MAD of a query.
func (c *Client) compose(req *Request) []byte {
	msg := make([]byte, mad.Size)
	h := mad.Header{
		BaseVersion: mad.BaseVersion, MgmtClass: mad.ClassSubnAdm, ClassVersion: ClassVersion,
		Method: req.Method, AttributeID: mad.AttributeID(req.Attribute.ID),
	}
	h.EncodeTo((*[mad.HeaderSize]byte)(msg))
	binary.BigEndian.PutUint64(msg[offSMKey:], c.cfg.SMKey)
	binary.BigEndian.PutUint64(msg[offComponentMask:], req.Mask)
	copy(msg[mad.OffSAData:], req.Record)
	return msg
}

// check looks at the headers of an answer.
func check(req *Request, resp *agents.Response, tries int) error {
	b := resp.Data
	if len(b) < mad.OffSAData {
		return &MalformedError{Attribute: req.Attribute.Name, From: resp.Addr,
			Detail: fmt.Sprintf("%d bytes are less than the headers", len(b))}
	}
	status := mad.Status(binary.BigEndian.Uint16(b[mad.OffStatus:]))
	method := mad.Method(b[mad.OffMethod])
	switch {
	case status == mad.StatusSANoRecords && req.Method == mad.MethodGetTable:
		return nil // an empty table; it has no records to look at
	case status != mad.StatusOK:
		e := &StatusError{Status: status, Method: req.Method, Attribute: req.Attribute.Name, From: resp.Addr, Tries: tries}
		if data := b[mad.OffSAData:]; status&mad.StatusRedirect != 0 && len(data) >= mad.ClassPortInfoSize {
			e.Redirect = new(mad.ClassPortInfo)
			e.Redirect.DecodeFrom((*[mad.ClassPortInfoSize]byte)(data))
		}
		return e
	case method != req.Method|mad.ResponseBit:
		return &MalformedError{Attribute: req.Attribute.Name, From: resp.Addr,
			Detail: fmt.Sprintf("method %v does not answer %v", method, req.Method)}
	}
	return nil
}

// rows steps through the records of an answer whose headers are in order.
func rows(req *Request, resp *agents.Response, emit func(row []byte) error) error {
	data := resp.Data[mad.OffSAData:]
	size := req.Attribute.Struct.Size
	malformed := &MalformedError{
		Attribute: req.Attribute.Name, From: resp.Addr, Length: len(data),
		Offset: 8 * int(binary.BigEndian.Uint16(resp.Data[offAttributeOffset:])),
	}
	if status := binary.BigEndian.Uint16(resp.Data[mad.OffStatus:]); status != 0 {
		return nil
	}
	if req.Method == mad.MethodGet {
		if len(data) < size {
			malformed.Detail = fmt.Sprintf("one record has %d bytes", size)
			return malformed
		}
		return emit(data[:size])
	}
	err := split(data, size, malformed.Offset, isSingle(resp.Data), emit)
	var what splitError
	if errors.As(err, &what) {
		malformed.Detail = string(what)
		return malformed
	}
	return err
}

// isSingle tells whether an answer came in one MAD without RMPP.
func isSingle(msg []byte) bool {
	return mad.RMPPFlags(msg[mad.OffRMPP+2])&mad.RMPPFlagActive == 0
}

// randomPart gives a random part of d.
func randomPart(d time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(d) + 1)) }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
