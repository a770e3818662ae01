package sa

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// A table that stalls is asked for again as long as no record has come. Here a
// record takes 240 bytes, of which the first segment has 200.
func TestStalledTable(t *testing.T) {
	const second = time.Second
	records := func() (data []byte) {
		for lid := range mad.LID(3) {
			data, _ = (&mad.PathRecord{DLID: lid + 1}).AppendBinary(data)
			data = append(data, make([]byte, 240-mad.PathRecordSize)...)
		}
		return data
	}()
	const announced = 3*240 + 4*20 // of data, and the SA header in each of 4 segments
	segment := func(req []byte, n int) []byte {
		switch data := records[(n-1)*200 : min(n*200, len(records))]; n {
		case 1:
			return packet(req, 30, active|first, 1, announced, data)
		case 4:
			return packet(req, 30, active|last, 4, uint32(20+len(data)), data)
		default:
			return packet(req, 30, active, uint32(n), 0, data)
		}
	}
	for _, tt := range []struct {
		name    string
		cfg     Config
		sent    []int // segments in the answer to each try
		records int
		asked   int
		want    time.Duration // when the sequence ends
		text    string        // of the error; "": answered
	}{
		{"once", Config{}, []int{1, 4}, 3, 2, 8 * second, ""},
		{"always", Config{}, []int{1, 1, 1}, 0, 3, 24 * second, "nor any new one for 8s (asked 3 times)"},
		{"once, and then there is silence", Config{}, []int{1, 0, 0}, 0, 3, 10 * second, "no answer in time (asked 3 times)"},
		{"never again", Config{Retries: -1}, []int{1}, 0, 1, 8 * second, "segment 2 did not come"},
		{"after a record", Config{}, []int{2}, 1, 1, 8 * second, "segment 3 did not come"},
		{"after a record of the second try", Config{}, []int{1, 3}, 2, 2, 16 * second, "segment 4 did not come, nor any new one for 8s (asked 2 times)"},
		{"a patient client", Config{Timeout: 5 * second}, []int{2}, 1, 1, 15 * second, "nor any new one for 15s"},
		{"own limit", Config{IdleTimeout: 50 * time.Millisecond}, []int{1, 4}, 3, 2, 50 * time.Millisecond, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newDemo(t)
				asked := 0
				r.script(t, func(n int, req []byte) (all [][]byte) {
					asked = n
					for i := range tt.sent[n-1] {
						all = append(all, segment(req, i+1))
					}
					return all
				})
				tt.cfg.RMPP = port.RMPPUser
				c := r.client(t, "h2", tt.cfg)
				begin := time.Now()
				recs, err := collect(Table(t.Context(), c, Query[mad.PathRecord]{}))
				took := time.Since(begin)
				synctest.Wait()
				if len(recs) != tt.records || asked != tt.asked || took != tt.want {
					t.Errorf("%d records after %d tries and %v, want %d after %d and %v", len(recs), asked, took, tt.records, tt.asked, tt.want)
				}
				for i, rec := range recs {
					if rec.DLID != mad.LID(i+1) {
						t.Errorf("record %d: %+v", i, rec)
					}
				}
				if tt.text == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				var abort *rmpp.AbortError
				if !errors.Is(err, agents.ErrTimeout) || tt.sent[tt.asked-1] > 0 && !errors.As(err, &abort) || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("error %v, want a time-out that says %q", err, tt.text)
				}
			})
		})
	}
}
