package sa

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/mad"
)

// Path asks as the kernel does (cma.c, cma_query_ib_route), with what the record
// has more.
func TestPathRequest(t *testing.T) {
	const asked = maskReverse | maskNumbPath
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		var request []byte
		r.script(t, func(_ int, req []byte) [][]byte {
			request = append([]byte(nil), req...)
			return [][]byte{single(req, mad.StatusOK, 8, req[mad.OffSAData:][:mad.PathRecordSize]...)}
		})
		c := r.client(t, "h2", Config{})
		h1, h2, h8 := r.gid("h1"), r.gid("h2"), r.gid("h8")
		for _, tt := range []struct {
			name string
			like mad.PathRecord
			mask uint64
			want mad.PathRecord
		}{
			{"the kernel's", mad.PathRecord{SGID: h1, DGID: h8, PKey: 0x8001, ServiceID: 0x01061234, TClass: 0x20},
				asked | maskSGID | maskDGID | maskPKey | maskServiceID | maskTClass,
				mad.PathRecord{SGID: h1, DGID: h8, PKey: 0x8001, ServiceID: 0x01061234, TClass: 0x20}},
			{"from here", mad.PathRecord{DGID: h8}, asked | maskSGID | maskDGID, mad.PathRecord{SGID: h2, DGID: h8}},
			{"by LID", mad.PathRecord{SLID: 1, DLID: 8}, asked | maskSLID | maskDLID, mad.PathRecord{SLID: 1, DLID: 8}},
			{"quality", mad.PathRecord{DGID: h8, SL: 3, QoSClass: 0x12}, asked | maskSGID | maskDGID | maskSL | maskQoSClass,
				mad.PathRecord{SGID: h2, DGID: h8, SL: 3, QoSClass: 0x12}},
			{"bounds", mad.PathRecord{DGID: h8, MTUSelector: mad.SelectorExactly, MTU: mad.MTU2048, Rate: mad.Rate10G, PacketLifeTimeSelector: mad.SelectorLessThan, PacketLifeTime: 20},
				asked | maskSGID | maskDGID | maskMTU | maskRate | maskLife,
				mad.PathRecord{SGID: h2, DGID: h8, MTUSelector: 2, MTU: 4, RateSelector: 0, Rate: 3, PacketLifeTimeSelector: 1, PacketLifeTime: 20}},
			{"what does not count", mad.PathRecord{DGID: h8, MTUSelector: mad.SelectorBest, HopLimit: 64, FlowLabel: 1, Preference: 3, NumbPath: 9},
				asked | maskSGID | maskDGID, mad.PathRecord{SGID: h2, DGID: h8}},
		} {
			tt.want.NumbPath, tt.want.Reversible = 1, true
			rec, err := c.Path(t.Context(), tt.like)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if method := mad.Method(request[mad.OffMethod]); method != mad.MethodGet {
				t.Errorf("%s: method %v", tt.name, method)
			}
			if mask := binary.BigEndian.Uint64(request[offComponentMask:]); mask != tt.mask {
				t.Errorf("%s: component mask %#x, want %#x", tt.name, mask, tt.mask)
			}
			if rec != tt.want { // the script gives back what it was asked
				t.Errorf("%s: asked for\n%+v, want\n%+v", tt.name, rec, tt.want)
			}
		}
	})
}

// A path of our server, and what an error says where there is none.
func TestPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		r.serve(t)
		c := r.client(t, "h1", Config{})
		to := mad.PathRecord{DGID: r.gid("h2")}
		rec, err := c.Path(t.Context(), to)
		if err != nil || rec.SLID != r.port("h1").LID || rec.DLID != r.port("h2").LID || !rec.Reversible {
			t.Errorf("%+v, %v", rec, err)
		}
		to.PKey, to.ServiceID = 0x8005, 0x01061234
		_, err = c.Path(t.Context(), to)
		if !errors.Is(err, ErrNoRecords) {
			t.Fatalf("error %v, want ErrNoRecords", err)
		}
		for _, part := range []string{r.gid("h1").String(), r.gid("h2").String(), "0x8005", "0x0000000001061234", "SA at LID 1"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in %q", part, err)
			}
		}
	})
}
