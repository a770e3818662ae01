package script

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sa"
)

var errTest = errors.New("the test has ended it")

func contextWithTimeout(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(t.Context(), d, errTest)
}

// The demo fabric (configs/demo.yaml): h1 to h8 have LIDs 1 to 8, s1 and s2 9 and 10.
func TestFunctions(t *testing.T) {
	inDemo(t, func(t *testing.T, b *bench) {
		b.holds(t, "functions",
			`lid("h8") == 8`, `lid(8) == 8`, `lid("0x8") == 8`, `lid("0x0200000100000801") == 8`, `lid("fe80::200:1:0:801") == 8`,
			`gid("h8") == "fe80::200:1:0:801"`, `gid(8) == gid("h8")`, `guid("h8") == "0x0200000100000801"`, `guid("h8") == "0x200000100000801"`,
			`port("h8").name == "h8"`, `port("h8").port == 1`, `port("h8").lid == 8`, `port(8) == port("h8")`, `gid(port("h8")) == gid("h8")`,
			`port("h8").node_guid == "0x0200000100000800"`,
			`path("h1", "h8").DLID == 8`, `path(1, port("h8")).MTU == "2048"`, `mtu(path("h1", "h8")) == 2048`, `rate(path("h1", "h8")) == 40`,
			`hex(255) == "0xff"`, `hex(0xff) == 255`, `hex("hi") == "6869"`, `mtu("4096") == 4096`, `mtu(4096) == 4096`, `mtu(5) == 4096`, `rate("100 Gb/s") == 100`, `rate("100G") == 100`,
			`rate(16) == 100`, `rate("2.5 Gb/s") == 2.5`, `rate("25 Gb/s") < rate("30 Gb/s")`, `"25 Gb/s" > "30 Gb/s"`,
			`now() == now()`, `duration("1s") > duration("999ms")`, `duration("1s").Seconds() == 1`, `count([1, 2, 3]) == 3`, `count([1, 2, 3], # > 1) == 2`,
		)
	})
}

func TestFunctionErrors(t *testing.T) {
	tests := []struct{ expr, want string }{
		{`lid("h9")`, "h9"},
		{`lid("0")`, "LID 0"},
		{`gid(nil)`, "nothing"},
		{`gid({"x": 1})`, "neither lid nor gid"},
		{`mtu(7)`, "it takes an MTU"},
		{`mtu(257)`, "it takes an MTU"},
		{`rate("fast")`, "it takes a rate"},
		{`hex(-1)`, "at least 0"},
		{`path("h1", "h1x")`, "h1x"},
		{`port("h8").nam.x`, "nothing"},
		{`path("h1", "h8").DLLID`, "did you mean DLID"},
		{`"a" < 1`, "no order"},
		{`[1, 2][2]`, "no element 2"},
		{`1 + `, "unexpected token"},
	}
	inDemo(t, func(t *testing.T, b *bench) {
		for _, tt := range tests {
			_, err := b.vars.eval(t.Context(), &Expr{Text: tt.expr, Pos: Pos{"x.yaml", 3, 4}})
			var at *ExprError
			if !errors.As(err, &at) || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "x.yaml:3:4: ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want %q", tt.expr, err, tt.want)
			}
		}
	})
}

// Names of variables may be those of functions.
func TestNames(t *testing.T) {
	v := newLibrary(fabric{}).newVars()
	v.set("port", 3)
	v.set("count", 4)
	v.set("len", 5)
	v.set("now", 6)
	v.set("data", hexBytes{1, 0xab})
	v.set("from", map[string]any{"lid": 7})
	for text, want := range map[string]any{
		`port`: 3, `count + 1`: 5, `len == 5`: true, `now`: 6, `data`: "01ab", `data == "01ab"`: true, `"01ab" == data`: true, `len("ab") == 2`: true,
		`from.lid`: 7, `from?.lid`: 7, `nope?.lid`: nil, `count([nil]) == 1`: true, `let x = 3; x * 2`: 6, `any([1, 2], # == count - 2)`: true,
		`data contains "ab"`: true, `"lid" in from`: true, `"gid" in from`: false, `3 in [1, 2, 3]`: true, `"0x3" in [1, 2, 3]`: true, `4 not in [3]`: true,
		`get(from, "gid")`: nil, `from["lid"]`: 7,
	} {
		got, err := v.eval(t.Context(), &Expr{Text: text})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v; want %#v", text, got, err, want)
		}
	}
}

func TestEqual(t *testing.T) {
	v := newLibrary(fabric{}).newVars()
	rec := recordOf(&mad.PathRecord{DLID: 8, MTU: mad.MTU2048})
	same := recordOf(&mad.PathRecord{DLID: 8, MTU: mad.MTU2048})
	tests := []struct {
		a, b any
		want bool
	}{
		{5, 5, true}, {5, 6, false}, {5, uint64(5), true}, {5, 5.0, true}, {5, 5.5, false},
		{"0x0000000000000005", 5, true}, {"5", 5, true}, {"0x5", "5", true}, {"0x05", "0x0000000000000005", true}, {"0x05", "0x6", false},
		{"010", "10", false}, {"h8", "H8", false}, {"", 0, false}, {"x", 0, false},
		{"fe80::1", "FE80:0:0:0:0:0:0:1", true}, {"fe80::1", "fe80::2", false}, {"a:b", "A:B", false},
		{"Initialize", "init", true}, {"Initialize", "Active", false}, {"Channel Adapter", "CA", true}, {"100 Gb/s", "100G", true},
		{"Active", 4, true}, {"Active", 3, false}, {"4096", 4096, true}, {"4096", 5, false},
		{"ok", 0, true}, {"busy", 1, true},
		{true, true, true}, {true, 1, false}, {nil, nil, true}, {nil, "", false}, {nil, 0, false},
		{[]any{1, "0x2"}, []any{"1", 2}, true}, {[]any{1}, []any{1, 2}, false}, {[]any{}, []int{}, true}, {[]any{1, 2}, []int{1, 2}, true},
		{[]int{1, 2}, []any{1, 3}, false},
		{map[string]any{"a": 1}, map[string]any{"a": "1"}, true}, {map[string]any{"a": 1}, map[string]any{}, false},
		{rec, same, true}, {rec, recordOf(&mad.PathRecord{DLID: 9}), false}, {rec, nil, false},
		{time.Second, "1s", true}, {"1000ms", time.Second, true}, {time.Second, "2s", false},
		{"14.0625 Gbps", "FDR", true},
	}
	for _, tt := range tests {
		if got, err := v.equal(tt.a, tt.b); err != nil || got != tt.want {
			t.Errorf("%v == %v: %v", tt.a, tt.b, got)
		}
		if got, err := v.equal(tt.b, tt.a); err != nil || got != tt.want {
			t.Errorf("%v == %v: %v", tt.b, tt.a, got)
		}
	}
}

func TestCompare(t *testing.T) {
	tests := []struct {
		a, b any
		want int
	}{
		{1, 2, -1}, {"512", "2048", -1}, {"0x10", 9, 1}, {"56 Gb/s", "100 Gb/s", -1}, {"30 Gb/s", "25 Gb/s", -1},
		{time.Second, "500ms", 1}, {"500ms", time.Second, -1}, {"a", "b", -1}, {2.5, 2, 1}, {"2.5", 3, -1},
	}
	for _, tt := range tests {
		if got, err := compare(tt.a, tt.b); err != nil || got != tt.want {
			t.Errorf("%v and %v: %d, %v; want %d", tt.a, tt.b, got, err, tt.want)
		}
	}
	for _, pair := range [][2]any{{"a", 1}, {nil, 1}, {true, false}, {"10 Gb/s", "x"}, {time.Second, 1}} {
		if _, err := compare(pair[0], pair[1]); err == nil {
			t.Errorf("%v and %v have an order", pair[0], pair[1])
		}
	}
}

func TestExplain(t *testing.T) {
	v := newLibrary(fabric{}).newVars()
	v.set("x", 3)
	v.set("name", "h8")
	v.set("record", recordOf(&mad.PathRecord{DLID: 8, MTU: mad.MTU2048}))
	v.set("records", []any{recordOf(&mad.PathRecord{DLID: 8, MTU: mad.MTU4096}), recordOf(&mad.PathRecord{DLID: 9, MTU: mad.MTU2048})})
	tests := []struct {
		expr, got string
		values    []known
	}{
		{`x == 4`, "3", []known{{"x", "3"}}},
		{`4 < x`, "3", []known{{"x", "3"}}},
		{`record.MTU == "4096"`, `"2048"`, []known{{"record.MTU", `"2048"`}}},
		{`x == 3 && name == "h7"`, `"h8"`, []known{{"name", `"h8"`}}},
		{`x == 1 or name == "h7"`, "3", []known{{"x", "3"}, {"name", `"h8"`}}},
		{`not (x == 3)`, "false", []known{{"x", "3"}}},
		{`x + 1 == len(name)`, "4", []known{{"x", "3"}, {"len(name)", "2"}, {"name", `"h8"`}}},
		{`all(records, .MTU == "4096")`, "false for records[1]", []known{{".MTU", `"2048"`}}},
		{`none(records, .DLID == 8)`, "false for records[0]", []known{{".DLID", "8"}}},
		{`any(records, .DLID == 1)`, "false: it holds for 0 of 2 elements", nil},
		{`len(records) > 2`, "2", []known{{"len(records)", "2"}}},
	}
	for _, tt := range tests {
		ok, why, err := v.evalBool(t.Context(), &Expr{Text: tt.expr})
		if ok || err != nil {
			t.Errorf("%s: %v, %v", tt.expr, ok, err)
			continue
		}
		if why.Got != tt.got || len(why.Values) < len(tt.values) || len(tt.values) > 0 && !reflect.DeepEqual(why.Values[:len(tt.values)], tt.values) {
			t.Errorf("%s: %q %q, want %q %q", tt.expr, why.Got, why.Values, tt.got, tt.values)
		}
	}
	if _, _, err := v.evalBool(t.Context(), &Expr{Text: "x"}); err == nil || !strings.Contains(err.Error(), "neither true nor false") {
		t.Errorf("a number for an expectation: %v", err)
	}
}

// The context ends an expression, however many elements there are to go through.
func TestExpressionEnds(t *testing.T) {
	v := newLibrary(fabric{}).newVars()
	list := make([]any, 3000)
	v.set("list", list)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTest)
	if _, err := v.eval(ctx, &Expr{Text: `all(list, all(list, all(list, # == nil)))`}); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

func TestScope(t *testing.T) {
	v := newLibrary(fabric{}).newVars()
	v.set("a", 1)
	mark := v.mark()
	v.bind("a", 2)
	v.bind("b", 3)
	inner := v.mark()
	v.bind("a", 4)
	fork := v.fork()
	fork.set("a", 5)
	v.set("c", 6)
	check := func(what string, v *vars, want map[string]any) {
		t.Helper()
		if got := v.all(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("bound", v, map[string]any{"a": 4, "b": 3, "c": 6})
	check("fork", fork, map[string]any{"a": 5, "b": 3})
	v.release(inner)
	check("inner released", v, map[string]any{"a": 2, "b": 3, "c": 6})
	v.release(mark)
	check("released", v, map[string]any{"a": 1, "c": 6})
	if got, err := fork.eval(t.Context(), &Expr{Text: "a"}); err != nil || got != 5 {
		t.Errorf("in the fork a is %v, %v", got, err)
	}
}

func TestTemplates(t *testing.T) {
	v := newLibrary(fabric{}).newVars()
	v.set("n", 4)
	v.set("rec", recordOf(&mad.PathRecord{DLID: 8}))
	s := step(t, `set_var: {a: "${n}", b: "x${n}y${n + 1}", c: 0x10, d: [1, "${n}"], e: {k: "${n}"}, f: "010", g: "${rec.DLID}", h: null, i: 2.5}`)
	want := map[string]any{"a": 4, "b": "x4y5", "c": 16, "d": []any{1, 4}, "e": map[string]any{"k": 4}, "f": "010", "g": 8, "h": nil, "i": 2.5}
	for _, e := range s.Body.(*SetVar).Vars {
		got, err := v.value(t.Context(), e.Value)
		if err != nil || !reflect.DeepEqual(got, want[e.Key]) {
			t.Errorf("%s: %#v, %v; want %#v", e.Key, got, err, want[e.Key])
		}
	}
	if len(s.Body.(*SetVar).Vars) != len(want) {
		t.Error("values are missing")
	}
}

// An address is looked up once in a run.
func TestLookUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "demo")
		b.eval(t, `lid("h8")`)
		before := b.sa.Stats().Sent
		b.eval(t, `lid("h8") + lid("h8")`)
		b.eval(t, `gid("h8")`)
		if after := b.sa.Stats().Sent; after != before || before == 0 {
			t.Errorf("%d MADs, then %d", before, after)
		}
	})
}

// The table of the language and what there is agree.
func TestTableOfFunctions(t *testing.T) {
	for _, f := range Functions {
		if own := ownFunctions[f.Name].call != nil; own != f.Own {
			t.Errorf("%s: the table says own %v", f.Name, f.Own)
		}
	}
	for name := range ownFunctions {
		if lookUpFunction(name) == nil {
			t.Errorf("%s is in no table", name)
		}
	}
	item := portValue(&sa.Endpoint{})
	for _, key := range PortKeys {
		if _, ok := item[key]; !ok {
			t.Errorf("a port has no %s", key)
		}
	}
}

func TestTableOfResults(t *testing.T) {
	v := newLibrary(fabric{}).newVars()
	for what, bind := range map[string]func(*vars){"send": new(answer).bind, "serve": new(responder).bind} {
		mark := v.mark()
		bind(v)
		bound := v.all()
		v.release(mark)
		for _, k := range Kinds {
			if k.Name != what {
				continue
			}
			for _, r := range k.Results {
				if _, ok := bound[r.Name]; !ok {
					t.Errorf("%s does not give %s", what, r.Name)
				}
			}
			if len(bound) != len(k.Results) {
				t.Errorf("%s gives %v", what, bound)
			}
		}
	}
}
