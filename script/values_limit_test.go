package script

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// double gives a list that has itself twice, so many times over: it takes few bytes, and
// has two to the power of times elements.
func double(times int, v any) any {
	for range times {
		v = []any{v, v}
	}
	return v
}

func TestFit(t *testing.T) {
	long := strings.Repeat("x", maxText/2)
	records := make([]any, maxElements)
	for i := range records {
		records[i] = &record{}
	}
	for _, c := range []struct {
		name string
		v    any
		want error
	}{
		{"text", long + long, nil}, {"text too long", long + long + "x", errLongText},
		{"text counted twice", []any{long, long}, nil}, {"text counted three times", map[string]any{"a": long, "b": []any{long, "x"}}, errLongText},
		{"as many records as an answer has", records, nil}, {"more", append(records, nil), errElements},
		{"of numbers", make([]int, maxElements+1), errElements},
		{"lists that share", double(40, "x"), errElements}, {"maps that share", map[string]any{"a": double(19, "x"), "b": double(19, "x"), "c": 1}, errElements},
		{"in a map by anything", map[any][]any{1: {double(40, "x")}}, errElements},
	} {
		if err := fit(c.v); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	var deep any
	for range maxNesting + 1 {
		deep = []any{deep}
	}
	if err := fit(deep); !errors.Is(err, errNesting) {
		t.Errorf("nested: %v", err)
	}
}

// Whatever an expression does with a value that is too much ends soon, with an error.
func TestExprLimits(t *testing.T) {
	v := newLibrary(fabric{}).newVars()
	v.set("s", double(40, "x"))
	v.set("u", double(40, "x"))
	v.set("text", strings.Repeat("x", maxText/2+1))
	part := strings.Repeat("x", 1000)
	v.set("part", part)
	v.set("parts", double(40, part))
	for text, want := range map[string]string{
		`s == u`: "compared", `s != u`: "compared", `u in [s]`: "compared", `s`: "elements", `[s]`: "elements", `reduce(1..40, [#acc, #acc], 1)`: "elements",
		`text + text`: "bytes", `reduce(1..40, #acc + #acc, "x")`: "bytes", `join([text, text])`: "bytes", `join(map(1..100000, part), ",")`: "bytes",
		`repeat(part, 1000000)`: "bytes", `replace(text, "x", part)`: "bytes", `replace(text, "", "xx")`: "bytes",
		`toJSON(parts)`: "bytes", `string(parts)`: "bytes", `flatten(s)`: "elements", `uniq(s)`: "elements", `max(s)`: "elements", `sum(s)`: "elements", `parts in {"a": 1}`: "bytes",
		`1 / 0`: "division by zero", `1.5 / len([])`: "division by zero",
	} {
		if _, err := v.eval(t.Context(), &Expr{Text: text}); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%s: %.1000v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]any{
		`join(["a", "b"], "-") + "c"`: "a-bc", `join(["a", "b"])`: "ab", `repeat("ab", 2)`: "abab", `replace("aXbX", "X", "-")`: "a-b-", `replace("aXbX", "X", "-", 1)`: "a-bX",
		`1 + 2 == 3`: true, `"a" + "b"`: "ab", `1 + 0.5`: 1.5, `3 / 2`: 1.5, `sum([1, 2])`: 3, `max(1, 2)`: 2, `sum([1, 2], # * 2)`: 6, `string(5)`: "5",
		`(now() + duration("1s") - now()) > duration("500ms")`: true,
	} {
		if got, err := v.eval(t.Context(), &Expr{Text: text}); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errTest)
	if _, err := v.eval(ended, &Expr{Text: "s == u"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a comparison goes on after its context: %v", err)
	}
}

// What is shown of a value is not made first and then cut.
func TestShowLimits(t *testing.T) {
	v := newLibrary(fabric{}).newVars()
	v.set("s", double(40, "x"))
	for _, value := range []any{double(40, "x"), map[string]any{"a": double(40, "x")}, map[any]any{1: double(40, "x")}, []any{make([]any, 9), 1, 2, 3, 4, 5, 6, 7, double(40, "x")}} {
		if got := show(value); len(got) > maxShown+len("...") {
			t.Errorf("%.1000s", got)
		}
		if got := itemLabel("x", value); len(got) > maxShown+10 {
			t.Errorf("%.1000s", got)
		}
	}
	ok, why, err := v.evalBool(t.Context(), &Expr{Text: "len(s) == 3"})
	if ok || err != nil || why.Got != "2" {
		t.Errorf("%v, %+v, %v", ok, why, err)
	}
}
