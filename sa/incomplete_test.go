package sa

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// A table that filled its first MAD, on a fabric without RMPP: Active, of RMPP
// version 0, and no more than that (OpenSM 3.3.23 on ibsim 0.10). 200 bytes of
// data hold 3 PathRecords and 8 bytes of the next, or 1 NodeRecord of 108 bytes and
// 4 of padding, and 88 of the next.
func TestIncomplete(t *testing.T) {
	nodes := func() (data []byte) {
		for lid := range mad.LID(3) {
			data, _ = (&mad.NodeRecord{LID: lid + 1, NodeInfo: mad.NodeInfo{BaseVersion: 1}}).AppendBinary(data)
			data = append(data, 0, 0, 0, 0)
		}
		return data
	}()
	cut := func(req []byte, offset uint16, data []byte) []byte {
		b := single(req, mad.StatusOK, offset, data[:mad.SADataSize]...)
		b[mad.OffRMPP+2] = active
		return b
	}
	check := func(t *testing.T, got int, err error, want int) {
		t.Helper()
		var e *IncompleteError
		if !errors.As(err, &e) || !errors.Is(err, ErrIncomplete) || e.Records != want || e.From.LID != 1 {
			t.Errorf("error %v, want an *IncompleteError of LID 1 after %d records", err, want)
		}
		if got != want {
			t.Errorf("%d records came before the error, want %d", got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		asked := 0
		r.script(t, func(n int, req []byte) [][]byte {
			asked = n
			switch mad.AttributeID(uint16(req[mad.OffAttribute])<<8 | uint16(req[mad.OffAttribute+1])) {
			case mad.AttrPathRecord:
				return [][]byte{cut(req, 8, paths(4))}
			}
			return [][]byte{cut(req, 14, nodes)}
		})
		c := r.client(t, "h2", Config{RMPP: port.RMPPUser})
		got, err := collect(Table(t.Context(), c, Query[mad.PathRecord]{}))
		check(t, len(got), err, 3)
		for i, rec := range got {
			if rec.DLID != mad.LID(i+1) {
				t.Errorf("record %d: DLID %v", i, rec.DLID)
			}
		}
		recs, err := collect(Table(t.Context(), c, Query[mad.NodeRecord]{}))
		check(t, len(recs), err, 1)
		if len(recs) == 1 && recs[0].LID != 1 {
			t.Errorf("LID %v, want 1", recs[0].LID)
		}
		if asked != 2 {
			t.Errorf("the SA was asked %d times, want 2", asked)
		}
	})
}

// The answer to a Get is whole, whatever its flags.
func TestGetIsNotIncomplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		r.script(t, func(_ int, req []byte) [][]byte {
			b := single(req, mad.StatusOK, 8, paths(1)...)
			b[mad.OffRMPP+2] = active
			return [][]byte{b}
		})
		rec, err := Get(t.Context(), r.client(t, "h2", Config{RMPP: port.RMPPUser}), Query[mad.PathRecord]{})
		if err != nil || rec.DLID != 1 {
			t.Errorf("DLID %v, %v; want 1", rec.DLID, err)
		}
	})
}
