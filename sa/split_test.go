package sa

import (
	"bytes"
	"testing"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// FuzzSplit checks split against what its rules say of any bytes: records come
// in order, none is shorter than the structure, and without an error nothing but
// zeros is left out.
func FuzzSplit(f *testing.F) {
	f.Add(paths(3), uint8(64), uint16(64), false)
	f.Add(paths(1), uint8(64), uint16(0), false)
	f.Add(make([]byte, 200), uint8(108), uint16(112), true)
	f.Add(bytes.Repeat([]byte{1}, 224), uint8(108), uint16(112), false)
	f.Add(bytes.Repeat([]byte{1}, 224), uint8(108), uint16(0xffff), false)
	f.Fuzz(func(t *testing.T, data []byte, size uint8, distance uint16, single bool) {
		if size == 0 {
			return
		}
		var got []byte
		err := split(data, int(size), int(distance), single, func(record []byte) error {
			if len(record) < int(size) {
				t.Fatalf("a record of %d bytes, want %d", len(record), size)
			}
			got = append(got, record...)
			return nil
		})
		if err != nil {
			return
		}
		if !bytes.HasPrefix(data, got) && !single {
			t.Fatal("the records are not the data in order")
		}
		if !single && !isZero(data[len(got):]) {
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
	req[mad.OffMethod] = byte(mad.MethodGet)
	f.Add(single(req, mad.StatusOK, 8, paths(1)...), false)
	f.Add(single(req, mad.StatusRedirect, 0, 1, 2, 3), false)
	f.Add(single(req, mad.StatusOK, 8)[:40], false)
	attr := layout.AttributeOf(uint8(mad.ClassSubnAdm), layout.PathRecord)
	f.Fuzz(func(t *testing.T, data []byte, isTable bool) {
		q := &Request{Attribute: attr, Method: mad.MethodGet}
		if isTable {
			q.Method = mad.MethodGetTable
		}
		resp := &agents.Response{Data: data}
		if check(q, resp, 1) != nil {
			return
		}
		n := 0
		err := rows(q, resp, func(row []byte) error {
			n++
			var rec mad.PathRecord
			return rec.UnmarshalBinary(row[:mad.PathRecordSize])
		})
		if err == nil && !isTable && n != 1 {
			t.Fatalf("%d records and no error from a Get", n)
		}
	})
}
