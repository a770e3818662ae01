package sa

import (
	"context"
	"fmt"
	"iter"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// Query selects the records of type T that have the values of Like in the
// fields named by Fields. The zero Query selects all.
//
// A field has any of the names that [layout.Struct.Find] knows: "LID",
// "NodeInfo.NodeGUID" or just "NodeGUID".
type Query[T any] struct {
	Like   T
	Fields []string
}

// Match makes a Query: sa.Match(mad.NodeRecord{LID: 5}, "LID").
func Match[T any](like T, fields ...string) Query[T] {
	return Query[T]{Like: like, Fields: fields}
}

// Record is a type that an SA has records of, seen through its pointer.
type Record[T any] interface {
	*T
	mad.Structure
}

// Get asks for the one record that agrees with q. Errors: a *StatusError, which
// is ErrNoRecords if there is none and ErrTooMany if there are several.
func Get[T any, P Record[T]](ctx context.Context, c *Client, q Query[T]) (rec T, err error) {
	for rec, err = range typed[T, P](ctx, c, mad.MethodGet, q) {
		// one record, or an error
	}
	return rec, err
}

// Table asks for all records that agree with q. An error ends the sequence; what
// came before it is only a part of the answer. Each walk through the sequence
// asks anew.
func Table[T any, P Record[T]](ctx context.Context, c *Client, q Query[T]) iter.Seq2[T, error] {
	return typed[T, P](ctx, c, mad.MethodGetTable, q)
}

// Set gives the SA a record to keep: q.Like with the components q.Fields. Of the
// SA's records those of services and of multicast groups can be made, see
// [Client.Join] for these. It gives the record as the SA keeps it. Errors: a
// *StatusError.
func Set[T any, P Record[T]](ctx context.Context, c *Client, q Query[T]) (rec T, err error) {
	for rec, err = range typed[T, P](ctx, c, mad.MethodSet, q) {
		// one record, or an error
	}
	return rec, err
}

// Delete takes a record of [Set] away: that which the components q.Fields of q.Like
// identify. It gives the record as it was, or what is left of it. Errors: a
// *StatusError. Where an answer gets lost the request is sent again, and then the SA
// may find no record any more: StatusError.Tries tells.
func Delete[T any, P Record[T]](ctx context.Context, c *Client, q Query[T]) (rec T, err error) {
	for rec, err = range typed[T, P](ctx, c, mad.MethodDelete, q) {
		// one record, or an error
	}
	return rec, err
}

func typed[T any, P Record[T]](ctx context.Context, c *Client, method mad.Method, q Query[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var rec T
		like := P(&q.Like)
		size := like.Layout().Size
		req := Request{Attribute: layout.AttributeOf(uint8(mad.ClassSubnAdm), like.Layout()), Method: method}
		if req.Attribute == nil {
			yield(rec, fmt.Errorf("%w: the field table has no SA attribute of type %s", ErrUnsupported, like.Layout().Name))
			return
		}
		req.Record, _ = like.AppendBinary(nil) // never fails
		var err error
		if req.Mask, err = Mask(like.Layout(), q.Fields...); err != nil {
			yield(rec, err)
			return
		}
		for row, err := range c.Rows(ctx, req) {
			if err == nil {
				err = P(&rec).UnmarshalBinary(row[:size])
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Mask gives the component mask that selects the named fields of a record: any
// name that [layout.Struct.Find] knows. The error is a *layout.NameError.
func Mask(record *layout.Struct, fields ...string) (mask uint64, err error) {
	for _, name := range fields {
		bits := record.MaskOf(name) // the common case, at a fraction of the cost
		if bits == 0 {
			f, err := record.Find(name)
			if err != nil {
				return 0, err
			}
			if bits = record.MaskOf(f.Name); bits == 0 {
				return 0, &layout.NameError{What: "field", Name: name, In: record.Name, Why: "no component mask bit selects it"}
			}
		}
		mask |= bits
	}
	return mask, nil
}
