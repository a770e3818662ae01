package script

import (
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
)

// Whatever comes for an answer, or for a request, has results.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"01010181000000000000000000000001001100", "01810181800000010000000000000001001500", "01030292000000000000000000000001001100000000000001010300",
		"0103029200000000000000000000000100110000000000000000010000000000000000000000000000000000000e", "010702030000000000000000000000010010", "0132018100000000",
		"0103028100000300", "0101010500000000000000000000000100020000",
	} {
		b, err := hex.DecodeString(s[:len(s)/2*2])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:min(len(b), 1<<12)]
		if len(b) < mad.Size {
			b = append(b, make([]byte, mad.Size-len(b))...)
		}
		n := mad.ClassHeaderLen(mad.Class(b[mad.OffClass]))
		a := new(answer)
		half := n + (len(b)-n)/2
		for _, piece := range [][]byte{b[n:half], b[half:]} {
			if err := a.take(&agents.Response{Data: b[:n:n]}, piece); err != nil {
				t.Fatal(err)
			}
		}
		v := newLibrary(fabric{}).newVars()
		a.bind(v)
		if shown := a.shown(); len(shown) != min(len(b), maxReported) {
			t.Errorf("%d bytes of %d are shown", len(shown), len(b))
		}
		records, count := a.records()
		if len(records) > count || count*4 > len(b) {
			t.Errorf("%d records of %d in %d bytes", len(records), count, len(b))
		}
		names := []string{"status", "answer", "record", "records", "from", "data"}
		for _, name := range names {
			value, _ := v.get(name)
			if _, err := json.Marshal(plain(value)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			show(value)
		}
		if _, err := json.Marshal(requestOf(b[:mad.Size])); err != nil {
			t.Error(err)
		}
	})
}

// An expression has a value, or an error in one line; why it is false can be told.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{
		`x == 4`, `record.MTU == "4096" && all(records, .DLID > 0)`, `map(records, .DLID)[0] + 1`, `let y = x; y ?? nil`, `from?.lid`, `"a" in {"a": 1}`,
		`not (x in 1..3)`, `hex(x) startsWith "0x"`, `count(records) == 2`, `none(records, any(records, # == nil))`, `latency < "1ms"`, `mtu(record)`, `data[0]`, `$env`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		v := newLibrary(fabric{}).newVars()
		v.set("x", 3)
		rec := recordOf(&mad.PathRecord{DLID: 8})
		v.set("record", rec)
		v.set("records", []any{rec, rec})
		v.set("data", hexBytes{1})
		v.set("from", map[string]any{"lid": 1})
		e := &Expr{Text: text}
		value, err := v.eval(t.Context(), e)
		if err == nil {
			show(value)
		}
		if holds, why, err := v.evalBool(t.Context(), e); err == nil && !holds && why == nil {
			t.Error("nothing says why it is false")
		}
	})
}
