package server

import (
	"encoding/binary"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// Positions in the RMPP header and in the SA header (IBA 13.6.2.1, 15.2.1.1).
const (
	offRMPPFlags       = mad.OffRMPP + 2
	offSMKey           = mad.OffRMPPData
	offAttributeOffset = offSMKey + 8
	offComponentMask   = offSMKey + 12
)

// query is a request whose header is in order.
type query struct {
	from     *topo.Port // the requester
	table    bool       // GetTable; else Get
	trusted  bool       // it has the SM_Key
	modifier uint32     // the attribute modifier
	mask     uint64     // the components that count
	record   []byte     // their values: mad.SADataSize bytes
}

// has tells whether any of the given components counts.
func (q *query) has(bits uint64) bool { return q.mask&bits != 0 }

// hasAll tells whether all of the given components count.
func (q *query) hasAll(bits uint64) bool { return q.mask&bits == bits }

// records are encoded records, each of size bytes and as far apart as in an
// answer.
type records struct {
	size  int
	count int
	data  []byte
}

// distance is the space of a record: whole words of 8 bytes (IBA 15.2.1.1).
func (r *records) distance() int { return (r.size + 7) / 8 * 8 }

// add appends a record and gives its bytes, until the next one is added.
func (r *records) add(rec mad.Structure) []byte {
	at := len(r.data)
	r.data, _ = rec.AppendBinary(r.data) // never fails
	r.data = append(r.data, make([]byte, r.distance()-r.size)...)
	r.count++
	return r.data[at : at+r.size]
}

// drop takes the last record away.
func (r *records) drop() {
	r.count--
	r.data = r.data[:r.count*r.distance()]
}

// answer gives the response to a request from a LID as one message of any
// length, or nil if the request is dropped in silence, as OpenSM does with a
// wrong SM_Key and with a requester that it does not know.
func (s *Server) answer(from mad.LID, req []byte) []byte {
	if len(req) < mad.Size || mad.IsResponse(req) {
		return nil
	}
	key := binary.BigEndian.Uint64(req[offSMKey:])
	if key != 0 && key != s.cfg.SMKey {
		return nil
	}
	requester, ok := s.sub.PortByLID(from)
	if !ok {
		return nil
	}
	q := &query{
		from:     requester,
		table:    mad.Method(req[mad.OffMethod]) == mad.MethodGetTable,
		trusted:  key == s.cfg.SMKey,
		modifier: binary.BigEndian.Uint32(req[mad.OffModifier:]),
		mask:     binary.BigEndian.Uint64(req[offComponentMask:]),
		record:   req[mad.OffSAData:mad.Size],
	}
	if req[0] != mad.BaseVersion || req[mad.OffClassVersion] != ClassVersion {
		return refuse(req, mad.StatusBadVersion)
	}
	var found records
	var status mad.Status
	attribute := mad.AttributeID(binary.BigEndian.Uint16(req[mad.OffAttribute:]))
	switch mad.Method(req[mad.OffMethod]) {
	case mad.MethodGet, mad.MethodGetTable:
		found, status = s.find(attribute, q)
	case mad.MethodSet:
		found, status = s.set(attribute, q)
	case mad.MethodDelete:
		found, status = s.delete(attribute, q)
	default:
		status = mad.StatusBadMethod
	}
	switch {
	case status != mad.StatusOK:
		return refuse(req, status)
	case q.table && found.count > s.limit(q):
		return refuse(req, mad.StatusSANoResources)
	case found.count == 0 && !q.table:
		return refuse(req, mad.StatusSANoRecords)
	case found.count > s.limit(q): // IBA C15-0.1.30
		return refuse(req, mad.StatusSATooManyRecords)
	}
	return respond(req, q.table, &found)
}

// find gives the records that a query selects.
func (s *Server) find(attribute mad.AttributeID, q *query) (records, mad.Status) {
	switch attribute {
	case mad.AttrClassPortInfo:
		if q.table {
			return records{}, mad.StatusBadAttribute
		}
		return classPortInfo(), mad.StatusOK
	case mad.AttrPathRecord:
		return s.paths(q)
	case mad.AttrMCMemberRecord:
		return s.members(q)
	case mad.AttrServiceRecord:
		return s.servicesOf(q)
	}
	k := kinds[attribute]
	switch {
	case k == nil:
		return records{}, mad.StatusBadAttribute
	case k.trusted && !q.trusted:
		return records{}, mad.StatusSAReqInvalid
	}
	return s.search(k, q), mad.StatusOK
}

// set keeps a record, and gives it as it is kept.
func (s *Server) set(attribute mad.AttributeID, q *query) (records, mad.Status) {
	switch attribute {
	case mad.AttrMCMemberRecord:
		return s.join(q)
	case mad.AttrServiceRecord:
		return s.register(q)
	}
	return records{}, mad.StatusBadAttribute
}

// delete takes a record away that set has made, and gives what it was.
func (s *Server) delete(attribute mad.AttributeID, q *query) (records, mad.Status) {
	switch attribute {
	case mad.AttrMCMemberRecord:
		return s.leave(q)
	case mad.AttrServiceRecord:
		return s.unregister(q)
	}
	return records{}, mad.StatusBadAttribute
}

// header makes the headers of a response: those of the request, with the method
// of the response, no SM_Key (IBA C15-0.1.5) and an empty RMPP header.
func header(req []byte, size int) []byte {
	resp := append(make([]byte, 0, size), req[:mad.OffSAData]...)
	method := mad.Method(req[mad.OffMethod])
	if method == mad.MethodSet {
		method = mad.MethodGet
	}
	resp[mad.OffMethod] = byte(method | mad.ResponseBit)
	binary.BigEndian.PutUint16(resp[mad.OffStatus:], uint16(mad.StatusOK))
	clear(resp[mad.OffRMPP:offComponentMask])
	return resp
}

// refuse answers with a status, and otherwise with what was asked.
func refuse(req []byte, status mad.Status) []byte {
	resp := append(header(req, mad.Size), req[mad.OffSAData:mad.Size]...)
	binary.BigEndian.PutUint16(resp[mad.OffStatus:], uint16(status))
	return resp
}

// respond answers with records. A table goes by RMPP whatever its length, as
// OpenSM sends it: only so an empty one differs from one record of zeros.
func respond(req []byte, table bool, found *records) []byte {
	resp := header(req, max(mad.OffSAData+len(found.data), mad.Size))
	if found.count > 0 {
		binary.BigEndian.PutUint16(resp[offAttributeOffset:], uint16(found.distance()/8))
	}
	resp = append(resp, found.data...)
	if table {
		resp[offRMPPFlags] = byte(mad.RMPPFlagActive)
		return resp
	}
	return resp[:mad.Size]
}
