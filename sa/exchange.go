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

// Request is a query of any attribute of the field table, or a change of a record
// that the SA keeps for others, for programs that know the record by its row there;
// see [Get], [Table], [Set] and [Delete] for typed ones.
type Request struct {
	Attribute *layout.Attribute
	Method    mad.Method // MethodGet, MethodGetTable, MethodSet or MethodDelete
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

// Rows gives the records of the answer as bytes: each at least as long
// as the structure, and longer if the SA's is. A record is valid until the next
// one. In RMPP mode RMPPUser records come as they arrive. An error ends the
// sequence; what came before it is part of the answer only.
//
// Errors: *StatusError, *MalformedError, *IncompleteError, ErrNoSA, an
// *agents.Error (that is agents.ErrTimeout when no try got an answer).
func (c *Client) Rows(ctx context.Context, req Request) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := c.exchange(ctx, &req, func(row []byte) error {
			if !yield(row, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}

// exchange sends a query until it gets an answer other than busy, and gives its
// records to emit.
func (c *Client) exchange(ctx context.Context, req *Request, emit func(row []byte) error) error {
	msg := c.compose(req)
	backoff := c.cfg.Timeout / 8
	for try := 1; ; try++ {
		to, err := c.address()
		if err != nil {
			return err
		}
		a := answer{req: req, tries: try, emit: emit}
		err = c.agent.Stream(ctx, &agents.Request{
			Addr: to, Data: msg, Timeout: c.cfg.Timeout, Long: req.Method == mad.MethodGetTable,
		}, a.take)
		last := try > c.cfg.Retries || a.got > 0 // what was handed on cannot be taken back
		switch {
		case a.err != nil:
			err = a.err // agents has wrapped it, as an error of its consumer
		case err == nil:
			return a.end()
		case errors.Is(err, agents.ErrTimeout):
			c.forgetAddress()
			if !last {
				continue
			}
			if try > 1 {
				err = fmt.Errorf("%w (asked %d times)", err, try)
			}
		}
		if last || !errors.Is(err, ErrBusy) {
			return err
		}
		// Those who were turned away together come back one by one.
		if err := sleep(ctx, backoff/2+c.jitter(backoff/2)); err != nil {
			return fmt.Errorf("wait for a busy SA: %w", err)
		}
		backoff *= 2
	}
}

// compose makes the MAD of a query.
func (c *Client) compose(req *Request) []byte {
	msg := make([]byte, mad.OffSAData+len(req.Record))
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

// answer takes an answer apart as it arrives.
type answer struct {
	req   *Request
	tries int
	emit  func(row []byte) error

	from    mad.AddressVector
	records *splitter // nil before the headers, and if there are no records to look at
	got     int       // records handed on
	err     error     // what ended it early
}

// take is given the headers and the data by agents.
func (a *answer) take(head *agents.Response, data []byte) error {
	if a.records == nil {
		if a.err = a.begin(head, data); a.err != nil {
			return a.err
		}
	}
	if a.records != nil {
		a.err = a.malformed(a.records.feed(data))
	}
	return a.err
}

// begin looks at the headers of the answer; data is the first that follows.
func (a *answer) begin(head *agents.Response, data []byte) error {
	b := head.Data
	a.from = head.Addr
	status := mad.Status(binary.BigEndian.Uint16(b[mad.OffStatus:]))
	switch method, version := mad.Method(b[mad.OffMethod]), b[mad.OffClassVersion]; {
	case version != ClassVersion && status != mad.StatusBadVersion:
		return &MalformedError{Attribute: a.req.Attribute.Name, From: a.from,
			Detail: fmt.Sprintf("class version %d does not answer %d", version, ClassVersion)}
	case status == mad.StatusSANoRecords && a.req.Method == mad.MethodGetTable:
		return nil // an empty table
	case status != mad.StatusOK:
		e := &StatusError{Status: status, Method: a.req.Method, Attribute: a.req.Attribute.Name, From: a.from, Tries: a.tries}
		if status&mad.StatusRedirect != 0 && len(data) >= mad.ClassPortInfoSize {
			e.Redirect = new(mad.ClassPortInfo)
			e.Redirect.DecodeFrom((*[mad.ClassPortInfoSize]byte)(data))
		}
		return e
	case method != responseTo(a.req.Method):
		return &MalformedError{Attribute: a.req.Attribute.Name, From: a.from,
			Detail: fmt.Sprintf("method %v does not answer %v", method, a.req.Method)}
	}
	flags := mad.RMPPFlags(b[mad.OffRMPP+2])
	active := flags&mad.RMPPFlagActive != 0
	if !active && flags&(mad.RMPPFlagFirst|mad.RMPPFlagLast) != 0 {
		return &MalformedError{Attribute: a.req.Attribute.Name, From: a.from,
			Detail: fmt.Sprintf("RMPP flags %#x say that it is a segment, and of no transfer", uint8(flags&0x7))}
	}
	a.records = &splitter{
		size:     a.req.Attribute.Struct.Size,
		distance: 8 * int(binary.BigEndian.Uint16(b[offAttributeOffset:])),
		one:      a.req.Method != mad.MethodGetTable,
		single:   !active,
		// OpenSM marks a table as Active and leaves it to the kernel below it to make
		// segments, of version 1. Without such a kernel the first MAD comes as it is.
		cut: active && b[mad.OffRMPP] == 0,
		emit: func(row []byte) error {
			a.got++
			return a.emit(row)
		},
	}
	return nil
}

// responseTo is the method that answers another: GetResp answers Set, too (IBA
// 15.2.2).
func responseTo(m mad.Method) mad.Method {
	if m == mad.MethodSet {
		m = mad.MethodGet
	}
	return m | mad.ResponseBit
}

// end takes what is left when all has arrived.
func (a *answer) end() error {
	if a.records == nil {
		return nil
	}
	if err := a.records.end(); err != nil || !a.records.cut || a.records.one {
		return a.malformed(err)
	}
	return &IncompleteError{Attribute: a.req.Attribute.Name, From: a.from, Records: a.got}
}

// malformed makes an error that the user can place of one of the splitter.
func (a *answer) malformed(err error) error {
	if err == nil {
		return nil
	}
	var what splitError
	if !errors.As(err, &what) {
		return err
	}
	return &MalformedError{
		Attribute: a.req.Attribute.Name, From: a.from,
		Offset: a.records.distance, Length: a.records.total, Detail: string(what),
	}
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
