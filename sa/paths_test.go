package sa

import (
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/mad"
)

// Component mask bits of a PathRecord (OpenSM ib_types.h, IB_PR_COMPMASK_*), and
// bytes of it (IBA 15.2.5.16).
const (
	maskServiceID            = 3
	maskDGID, maskSGID       = 1 << 2, 1 << 3
	maskDLID, maskSLID       = 1 << 4, 1 << 5
	maskFlowLabel, maskHop   = 1 << 8, 1 << 9
	maskTClass, maskReverse  = 1 << 10, 1 << 11
	maskNumbPath, maskPKey   = 1 << 12, 1 << 13
	maskQoSClass, maskSL     = 1 << 14, 1 << 15
	maskMTU, maskRate        = 3 << 16, 3 << 18 // each with its selector
	maskLife                 = 3 << 20
	offMTU, offRate, offLife = 54, 55, 56
)

// What queries look like on the wire.
func TestPathQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		var request []byte
		r.script(t, func(_ int, req []byte) [][]byte {
			request = append([]byte(nil), req...)
			return [][]byte{single(req, mad.StatusSANoRecords, 0)}
		})
		c := r.client(t, "h2", Config{})
		h8 := r.gid("h8")
		for _, tt := range []struct {
			name  string
			query PathQuery
			mask  uint64
			bytes map[int]byte // of the record
		}{
			{"from the own port", PathQuery{}, maskSGID, map[int]byte{24: 0xfe, 39: 0x01, 38: 0x02}},
			{"from any", PathQuery{AnySource: true, DGID: h8}, maskDGID, map[int]byte{8: 0xfe, 22: 0x08, 24: 0}},
			{"any yields to a source", PathQuery{AnySource: true, SLID: 7}, maskSLID, map[int]byte{43: 7}},
			{"by LID", PathQuery{SLID: 1, DLID: 0x203}, maskSLID | maskDLID, map[int]byte{40: 2, 41: 3, 43: 1}},
			{"all that may not be zero", PathQuery{SLID: 1, ServiceID: 0x0106, PKey: 0x8001, NumbPath: 127, Reversible: true},
				maskSLID | maskServiceID | maskPKey | maskNumbPath | maskReverse, map[int]byte{6: 1, 7: 6, 49: 0xff, 50: 0x80, 51: 1}},
			{"zeros", PathQuery{SLID: 1, Also: Match(mad.PathRecord{}, "SL", "TClass", "FlowLabel", "HopLimit", "QoSClass", "ServiceID")},
				maskSLID | maskSL | maskTClass | maskFlowLabel | maskHop | maskQoSClass | maskServiceID, nil},
			{"beside others", PathQuery{SLID: 1, PKey: 0x8001, Also: Match(mad.PathRecord{SL: 3, QoSClass: 0x123}, "SL", "QoSClass")},
				maskSLID | maskPKey | maskSL | maskQoSClass, map[int]byte{52: 0x12, 53: 0x33}},
			{"bounds", PathQuery{SLID: 1, MTU: AtLeast(mad.MTU2048), Rate: LessThan(mad.Rate40G), LifeTime: Exactly[uint8](18)},
				maskSLID | maskMTU | maskRate | maskLife, map[int]byte{offMTU: 0<<6 | 3, offRate: 1<<6 | 7, offLife: 2<<6 | 18}},
			{"best", PathQuery{SLID: 1, MTU: Best[mad.MTU](), Rate: Best[mad.Rate](), LifeTime: Best[uint8]()},
				maskSLID | maskMTU | maskRate | maskLife, map[int]byte{offMTU: 3<<6 | 1, offRate: 3<<6 | 2, offLife: 3 << 6}},
			{"bounds that all keep", PathQuery{SLID: 1, MTU: AtMost(mad.MTU4096), Rate: AtLeast(mad.Rate2_5G), LifeTime: AtLeast[uint8](0)},
				maskSLID, map[int]byte{offMTU: 0, offRate: 0}},
		} {
			if recs, err := collect(c.Paths(t.Context(), tt.query)); err != nil || len(recs) != 0 {
				t.Fatalf("%s: %v, %v", tt.name, recs, err)
			}
			if got := binary.BigEndian.Uint64(request[offComponentMask:]); got != tt.mask {
				t.Errorf("%s: component mask %#x, want %#x", tt.name, got, tt.mask)
			}
			record := request[mad.OffSAData:]
			for off, want := range tt.bytes {
				if record[off] != want {
					t.Errorf("%s: byte %d is %#x, want %#x", tt.name, off, record[off], want)
				}
			}
		}
	})
}

// A query is not changed by its use.
func TestPathQueryKeepsFields(t *testing.T) {
	fields := make([]string, 1, 10)
	fields[0] = "SL"
	q := PathQuery{SLID: 1, PKey: 1, Also: Query[mad.PathRecord]{Fields: fields}}
	q.query()
	if all := fields[:10]; all[1] != "" {
		t.Errorf("the caller's fields became %q", all)
	}
}

// Neighbours among rates are those of OpenSM's order (osm_helper.c,
// ordered_rates), which is neither that of the codes nor that of the names.
func TestBounds(t *testing.T) {
	for _, tt := range []struct{ got, want Bound[mad.Rate] }{
		{AtLeast(mad.Rate56G), GreaterThan(mad.Rate50G)},
		{AtLeast(mad.Rate50G), GreaterThan(mad.Rate60G)},
		{AtLeast(mad.Rate40G), GreaterThan(mad.Rate28G)},
		{AtLeast(mad.Rate100G), GreaterThan(mad.Rate120G)},
		{AtLeast(mad.Rate5G), GreaterThan(mad.Rate2_5G)},
		{AtMost(mad.Rate100G), LessThan(mad.Rate112G)},
		{AtMost(mad.Rate20G), LessThan(mad.Rate30G)},
		{AtMost(mad.Rate30G), LessThan(mad.Rate25G)},
		{AtLeast(mad.Rate2_5G), Bound[mad.Rate]{}},
		{AtMost(mad.Rate1600G), Bound[mad.Rate]{}},
		{AtLeast(mad.RateNone), Bound[mad.Rate]{}},
		{AtMost(mad.Rate(63)), Bound[mad.Rate]{}},
	} {
		if tt.got != tt.want {
			t.Errorf("got %+v, want %+v", tt.got, tt.want)
		}
	}
	for _, tt := range []struct{ got, want Bound[mad.MTU] }{
		{AtLeast(mad.MTU256), Bound[mad.MTU]{}},
		{AtLeast(mad.MTU512), GreaterThan(mad.MTU256)},
		{AtMost(mad.MTU256), LessThan(mad.MTU512)},
		{AtMost(mad.MTU4096), Bound[mad.MTU]{}},
	} {
		if tt.got != tt.want {
			t.Errorf("got %+v, want %+v", tt.got, tt.want)
		}
	}
	for _, tt := range []struct{ got, want Bound[uint8] }{
		{AtLeast[uint8](0), Bound[uint8]{}},
		{AtLeast[uint8](19), GreaterThan[uint8](18)},
		{AtMost[uint8](0), LessThan[uint8](1)},
		{AtMost[uint8](63), Bound[uint8]{}},
	} {
		if tt.got != tt.want {
			t.Errorf("got %+v, want %+v", tt.got, tt.want)
		}
	}
}

// Every rate that has a name has its place in the order.
func TestRatesComplete(t *testing.T) {
	for v := mad.Rate2_5G; v <= mad.Rate1600G; v++ {
		if b := AtMost(v); b == (Bound[mad.Rate]{}) && v != mad.Rate1600G {
			t.Errorf("%v is not among the rates", v)
		}
	}
}
