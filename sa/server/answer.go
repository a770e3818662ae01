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
	from   *topo.Port // the requester
	table  bool       // GetTable; else Get
	mask   uint64     // the components that count
	record []byte     // their values: mad.SADataSize bytes
}

// has tells whether any of the given components counts.
func (q *query) has(bits uint64) bool { return q.mask&bits != 0 }

// records are encoded records, each of size bytes.
type records struct {
	size int
	rows [][]byte
}

// answer gives the response to a request from a LID as one message of any
// length, or nil if the request is dropped in silence, as OpenSM does with a
// wrong SM_Key and with a requester that it does not know.
func (s *Server) answer(from mad.LID, req []byte) []byte {
	if len(req) < mad.Size || mad.IsResponse(req) {
		return nil
	}
	if key := binary.BigEndian.Uint64(req[offSMKey:]); key != 0 && key != s.cfg.SMKey {
		return nil
	}
	requester, ok := s.sub.PortByLID(from)
	if !ok {
		return nil
	}
	q := &query{
		from:   requester,
		table:  mad.Method(req[mad.OffMethod]) == mad.MethodGetTable,
		mask:   binary.BigEndian.Uint64(req[offComponentMask:]),
		record: req[mad.OffSAData:mad.Size],
	}
	if req[0] != mad.BaseVersion || req[mad.OffClassVersion] != ClassVersion {
		return refuse(req, mad.StatusBadVersion)
	}
	if !q.table && mad.Method(req[mad.OffMethod]) != mad.MethodGet {
		return refuse(req, mad.StatusBadMethod)
	}
	var found records
	status := mad.StatusOK
	switch mad.AttributeID(binary.BigEndian.Uint16(req[mad.OffAttribute:])) {
	case mad.AttrClassPortInfo:
		if q.table {
			return refuse(req, mad.StatusBadAttribute)
		}
		found = classPortInfo()
	case mad.AttrNodeRecord:
		found = s.nodes(q)
	case mad.AttrPathRecord:
		found, status = s.paths(q)
	default:
		return refuse(req, mad.StatusBadAttribute)
	}
	switch n := len(found.rows); {
	case status != mad.StatusOK:
		return refuse(req, status)
	case n > s.cfg.MaxRecords:
		return refuse(req, mad.StatusSANoResources)
	case n == 0 && !q.table:
		return refuse(req, mad.StatusSANoRecords)
	case n > 1 && !q.table: // IBA C15-0.1.30
		return refuse(req, mad.StatusSATooManyRecords)
	}
	return respond(req, q.table, found)
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
func respond(req []byte, table bool, found records) []byte {
	distance := (found.size + 7) / 8 * 8
	resp := header(req, max(mad.OffSAData+len(found.rows)*distance, mad.Size))
	if len(found.rows) > 0 {
		binary.BigEndian.PutUint16(resp[offAttributeOffset:], uint16(distance/8))
	}
	for _, row := range found.rows {
		resp = append(resp, row...)
		resp = append(resp, make([]byte, distance-found.size)...)
	}
	if table {
		resp[offRMPPFlags] = byte(mad.RMPPFlagActive)
		return resp
	}
	return resp[:mad.Size]
}
