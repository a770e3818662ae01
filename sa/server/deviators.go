package server

import (
	"encoding/binary"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// What follows makes the functions of deviations.

type (
	asked    = func(s *Server, req message)
	answered = func(s *Server, req, resp message) message
)

// ignore has components of queries for an attribute not count.
func ignore(attribute mad.AttributeID, of *layout.Struct, components ...string) asked {
	return func(_ *Server, req message) {
		if req.attribute() == attribute && (req.method() == mad.MethodGet || req.method() == mad.MethodGetTable) {
			for _, name := range components {
				req.setMask(req.mask() &^ of.MaskOf(name))
			}
		}
	}
}

// question changes the record of queries for an attribute.
func question[T any, P record[T]](attribute mad.AttributeID, change func(P)) asked {
	return func(_ *Server, req message) {
		if req.attribute() == attribute && (req.method() == mad.MethodGet || req.method() == mad.MethodGetTable) {
			rewrite(req[mad.OffSAData:mad.Size], change)
		}
	}
}

// record is a record, seen through its pointer.
type record[T any] interface {
	*T
	mad.Structure
}

func rewrite[T any, P record[T]](data []byte, change func(P)) {
	var value T
	p := P(&value)
	data = data[:p.Layout().Size]
	if p.UnmarshalBinary(data) == nil {
		change(p)
		changed, _ := p.AppendBinary(nil) // never fails
		copy(data, changed)
	}
}

// selector makes another selector of one in queries for paths.
func selector(of func(*mad.PathRecord) *mad.Selector, from, to mad.Selector) asked {
	return question(mad.AttrPathRecord, func(r *mad.PathRecord) {
		if sel := of(r); *sel == from {
			*sel = to
		}
	})
}

// asExactly has a bound of a path that has no selector be one for exactly.
func asExactly(s *Server, req message) {
	question(mad.AttrPathRecord, func(r *mad.PathRecord) {
		for _, bound := range []struct {
			value, selector uint64 // of the mask
			is              *mad.Selector
		}{
			{pathMTU, pathMTUSel, &r.MTUSelector}, {pathRate, pathRateSel, &r.RateSelector}, {pathLife, pathLifeSel, &r.PacketLifeTimeSelector},
		} {
			if req.mask()&(bound.value|bound.selector) == bound.value {
				*bound.is = mad.SelectorExactly
				req.setMask(req.mask() | bound.selector)
			}
		}
	})(s, req)
}

func mtuSelector(r *mad.PathRecord) *mad.Selector  { return &r.MTUSelector }
func rateSelector(r *mad.PathRecord) *mad.Selector { return &r.RateSelector }
func lifeSelector(r *mad.PathRecord) *mad.Selector { return &r.PacketLifeTimeSelector }

// always changes every response in place.
func always(change func(message)) answered {
	return func(_ *Server, _, resp message) message {
		change(resp)
		return resp
	}
}

// turn gives one status in place of another.
func turn(from, to mad.Status) answered {
	return always(func(m message) {
		if m.status() == from {
			m.setStatus(to)
		}
	})
}

// edit changes every record that a response gives of an attribute.
func edit[T any, P record[T]](attribute mad.AttributeID, change func(P)) answered {
	return always(func(m message) {
		if m.attribute() == attribute {
			for _, row := range m.rows() {
				rewrite(row, change)
			}
		}
	})
}

// forget has a Set or a Delete of an attribute do nothing, and be answered as if it
// had: the request becomes a query meanwhile.
func forget(d Deviation, method mad.Method, attribute mad.AttributeID) Deviation {
	is := func(req message) bool { return req.method() == method && req.attribute() == attribute }
	d.ask = func(_ *Server, req message) {
		if is(req) {
			req[mad.OffMethod] = byte(mad.MethodGetTable)
		}
	}
	d.answer = func(_ *Server, req, resp message) message {
		if !is(req) {
			return resp
		}
		done := records{size: kinds[attribute].layout.Size, count: 1}
		done.data = req[mad.OffSAData:][:done.distance()]
		return respond(req, false, &done)
	}
	return d
}

// firstOfMany has a Get that finds several records give the first.
func firstOfMany(d Deviation) Deviation {
	is := func(req message) bool {
		return req.method() == mad.MethodGet && req.attribute() != mad.AttrClassPortInfo
	}
	d.ask = func(_ *Server, req message) {
		if is(req) {
			req[mad.OffMethod] = byte(mad.MethodGetTable)
		}
	}
	d.answer = func(_ *Server, req, resp message) message {
		rows := resp.rows()
		switch {
		case !is(req):
			return resp
		case resp.status() != mad.StatusOK:
			return refuse(req, resp.status())
		case len(rows) == 0:
			return refuse(req, mad.StatusSANoRecords)
		}
		return respond(req, false, &records{size: len(rows[0]), count: 1, data: rows[0]})
	}
	return d
}

func setSMKey(m message, key uint64) { binary.BigEndian.PutUint64(m[offSMKey:], key) }

func smKeyOf(m message) uint64 { return binary.BigEndian.Uint64(m[offSMKey:]) }
