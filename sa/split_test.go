package sa

import (
	"bytes"
	"testing"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// inPieces gives data to a splitter, at most n bytes at a time.
func inPieces(s *splitter, data []byte, n int) error {
	for len(data) > 0 {
		piece := data[:min(n, len(data))]
		if err := s.feed(piece); err != nil {
			return err
		}
		data = data[len(piece):]
	}
	return s.end()
}

// FuzzSplit checks the splitter against what its rules say of any bytes: records
// come in order, none is shorter than the structure, without an error nothing
// but zeros is left out, and it does not matter in which pieces the data comes.
func FuzzSplit(f *testing.F) {
	f.Add(paths(3), uint8(64), uint16(64), false, uint8(200))
	f.Add(paths(1), uint8(64), uint16(0), false, uint8(1))
	f.Add(make([]byte, 200), uint8(108), uint16(112), true, uint8(7))
	f.Add(bytes.Repeat([]byte{1}, 224), uint8(108), uint16(112), false, uint8(100))
	f.Add(bytes.Repeat([]byte{1}, 224), uint8(108), uint16(0xffff), false, uint8(0))
	f.Add(append(paths(1), make([]byte, 700)...), uint8(64), uint16(0), false, uint8(199))
	f.Add(append(make([]byte, 700), 1), uint8(64), uint16(8), false, uint8(30))
	f.Fuzz(func(t *testing.T, data []byte, size uint8, distance uint16, single bool, piece uint8) {
		if size == 0 || single && len(data) > mad.SADataSize {
			return
		}
		run := func(n int) (got []byte, err error) {
			s := splitter{size: int(size), distance: int(distance), single: single, emit: func(record []byte) error {
				if len(record) < int(size) {
					t.Fatalf("a record of %d bytes, want %d", len(record), size)
				}
				got = append(got, record...)
				return nil
			}}
			err = inPieces(&s, data, n)
			return got, err
		}
		got, err := run(len(data) + 1)
		again, errAgain := run(int(piece) + 1)
		if !bytes.Equal(got, again) || (err == nil) != (errAgain == nil) {
			t.Fatalf("in one piece %d bytes of records and %v, in pieces of %d %d and %v", len(got), err, piece, len(again), errAgain)
		}
		if err != nil || single {
			return
		}
		if !bytes.HasPrefix(data, got) {
			t.Fatal("the records are not the data in order")
		}
		if !isZero(data[len(got):]) {
			t.Fatalf("%d bytes were left out", len(data)-len(got))
		}
	})
}

// FuzzAnswer gives any bytes as an answer: they are read or refused, and what is
// read are whole records.
func FuzzAnswer(f *testing.F) {
	req := make([]byte, mad.Size)
	req[mad.OffMethod] = byte(mad.MethodGetTable)
	f.Add(table(req, 8, paths(3)), true)
	f.Add(table(req, 0, paths(3)), true)
	f.Add(single(req, mad.StatusBusy, 0), true)
	cut := single(req, mad.StatusOK, 8, paths(4)[:mad.SADataSize]...)
	cut[mad.OffRMPP+2] = active
	f.Add(cut, true)
	req[mad.OffMethod] = byte(mad.MethodGet)
	f.Add(single(req, mad.StatusOK, 8, paths(1)...), false)
	f.Add(single(req, mad.StatusRedirect, 0, 1, 2, 3), false)
	f.Add(single(req, mad.StatusOK, 8)[:60], false)
	attr := layout.AttributeOf(uint8(mad.ClassSubnAdm), layout.PathRecord)
	f.Fuzz(func(t *testing.T, data []byte, isTable bool) {
		if len(data) < mad.OffSAData {
			return // agents sees to that
		}
		q := &Request{Attribute: attr, Method: mad.MethodGet}
		if isTable {
			q.Method = mad.MethodGetTable
		}
		n := 0
		a := answer{req: q, emit: func(row []byte) error {
			n++
			var rec mad.PathRecord
			return rec.UnmarshalBinary(row[:mad.PathRecordSize])
		}}
		err := a.take(&agents.Response{Data: data[:mad.OffSAData]}, data[mad.OffSAData:])
		if err == nil {
			err = a.end()
		}
		if err == nil && !isTable && n != 1 {
			t.Fatalf("%d records and no error from a Get", n)
		}
	})
}
