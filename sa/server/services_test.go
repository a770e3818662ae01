package server

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// askServices sends a request about services.
func askServices(t testing.TB, s *Server, from string, req []byte) (mad.Status, []mad.ServiceRecord) {
	t.Helper()
	status, rows := split(t, req, s.answer(portOf(t, s, from).LID, req), mad.ServiceRecordSize)
	recs := make([]mad.ServiceRecord, len(rows))
	for i, row := range rows {
		if err := recs[i].UnmarshalBinary(row); err != nil {
			t.Fatal(err)
		}
	}
	return status, recs
}

// The statuses are those of osm_sa_service_record.c.
func TestServices(t *testing.T) {
	const (
		get, table, set, del    = mad.MethodGet, mad.MethodGetTable, mad.MethodSet, mad.MethodDelete
		ok, invalid, none, many = mad.StatusOK, mad.StatusSAReqInvalid, mad.StatusSANoRecords, mad.StatusSATooManyRecords
	)
	s := demo(t)
	h1, h8 := portOf(t, s, "h1").GID(s.sub.GIDPrefix), portOf(t, s, "h8").GID(s.sub.GIDPrefix)
	all := []string{"ServiceID", "ServiceGID", "ServiceP_Key", "ServiceData8[3]", "ServiceName"}
	rid := all[:2]
	rec := func(id uint64, gid mad.GID, key mad.PKey, data uint8) mad.ServiceRecord {
		r := mad.ServiceRecord{ServiceID: id, ServiceGID: gid, ServicePKey: key}
		r.ServiceData8[3], r.ServiceName[0] = data, 'n'
		return r
	}
	steps := []struct {
		what   string
		from   string
		method mad.Method
		like   mad.ServiceRecord
		by     []string
		status mad.Status
		data   []uint8 // ServiceData8[3] of the records
	}{
		{"without id", "h1", set, rec(1, h1, 0, 1), all[1:2], invalid, nil},
		{"without GID", "h1", set, rec(1, h1, 0, 1), all[:1], invalid, nil},
		{"another's partition", "h8", set, rec(1, h8, 0x8001, 1), all, invalid, nil},
		{"a port that is not in it", "h1", set, rec(1, h8, 0x8001, 1), all, invalid, nil},
		{"no such port", "h1", set, rec(1, mad.GID{0xfe, 0x80, 15: 7}, 0x8001, 1), all, invalid, nil},
		{"a service", "h1", set, rec(1, h1, 0x8001, 1), all, ok, []uint8{1}},
		{"of all members of a group", "h1", set, rec(1, mad.GID{0xff, 0x12, 15: 7}, 0x8001, 2), all, ok, []uint8{2}},
		{"in the default partition", "h1", set, rec(1, h1, 0, 3), append([]string{"ServiceData8[3]"}, rid...), ok, []uint8{3}},
		{"of another, by which it is seen", "h8", table, rec(1, h1, 0, 0), all[:1], ok, []uint8{3}},
		{"in both", "h2", table, rec(1, h1, 0, 0), rid, ok, []uint8{1, 3}},
		{"one of them", "h2", get, rec(1, h1, 0xffff, 0), all[:3], ok, []uint8{3}},
		{"by data", "h2", get, rec(0, h1, 0, 2), []string{"ServiceData8[3]"}, ok, []uint8{2}},
		{"by name", "h2", table, rec(0, h1, 0, 0), []string{"ServiceName"}, ok, []uint8{1, 2}},
		{"too many", "h2", get, rec(1, h1, 0, 0), all[:1], many, nil},
		{"anew", "h1", set, rec(1, h1, 0x8001, 4), all, ok, []uint8{4}},
		{"in its place", "h2", table, rec(1, h1, 0, 0), nil, ok, []uint8{4, 2, 3}},
		{"no such service", "h1", del, rec(2, h1, 0, 0), rid, none, nil},
		{"of another partition", "h8", del, rec(1, h1, 0x8001, 0), all, invalid, nil},
		{"away", "h1", del, rec(1, h1, 0x8001, 0), all[:3], ok, []uint8{4}},
		{"and gone", "h1", get, rec(1, h1, 0x8001, 0), all[:3], none, nil},
		{"away in the default partition, whatever counts", "h1", del, rec(1, h1, 0, 0), nil, ok, []uint8{3}},
		{"the last", "h2", table, rec(1, h1, 0, 0), nil, ok, []uint8{2}},
	}
	for _, tt := range steps {
		status, recs := askServices(t, s, tt.from, request(t, tt.method, mad.AttrServiceRecord, &tt.like, tt.by...))
		same := status == tt.status && len(recs) == len(tt.data)
		for i := range recs {
			same = same && recs[i].ServiceData8[3] == tt.data[i] && recs[i].ServiceLease == 0xffffffff
		}
		if !same {
			t.Errorf("%s: %v, %+v; want %v, data %v", tt.what, status, recs, tt.status, tt.data)
		}
	}
	s.cfg.MaxRecords = 1
	more := rec(9, h1, 0, 0)
	if status, _ := askServices(t, s, "h1", request(t, set, mad.AttrServiceRecord, &more, rid...)); status != mad.StatusSANoResources {
		t.Errorf("a second service where one is allowed: %v", status)
	}
}

// A service with a lease is there until it ends, and tells what is left of it (IBA
// 15.2.5.14).
func TestServiceLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := demo(t)
		rec := mad.ServiceRecord{ServiceID: 1, ServiceGID: portOf(t, s, "h1").GID(s.sub.GIDPrefix), ServiceLease: 30}
		register := request(t, mad.MethodSet, mad.AttrServiceRecord, &rec, "ServiceID", "ServiceGID", "ServiceLease")
		ask := request(t, mad.MethodGet, mad.AttrServiceRecord, &rec, "ServiceID")
		lease := func() uint32 {
			status, recs := askServices(t, s, "h2", ask)
			if status != mad.StatusOK {
				return 0
			}
			return recs[0].ServiceLease
		}
		if status, _ := askServices(t, s, "h1", register); status != mad.StatusOK {
			t.Fatal(status)
		}
		time.Sleep(9500 * time.Millisecond)
		if left := lease(); left != 21 {
			t.Errorf("after 9.5 s of 30 the lease is %d", left)
		}
		if status, _ := askServices(t, s, "h1", register); status != mad.StatusOK { // again
			t.Fatal(status)
		}
		time.Sleep(30*time.Second - time.Nanosecond)
		if left := lease(); left != 1 {
			t.Errorf("a nanosecond before its end the lease is %d", left)
		}
		time.Sleep(time.Nanosecond)
		if left := lease(); left != 0 {
			t.Errorf("after its end the lease is %d", left)
		}
		if status, _ := askServices(t, s, "h1", request(t, mad.MethodDelete, mad.AttrServiceRecord, &rec)); status != mad.StatusSANoRecords {
			t.Errorf("taken away after its end: %v", status)
		}
		binary.BigEndian.PutUint32(register[mad.OffSAData+28:], 0)
		if status, _ := askServices(t, s, "h1", register); status != mad.StatusOK || lease() != 0 {
			t.Errorf("a lease of 0: %v, %d left", status, lease())
		}
	})
}
