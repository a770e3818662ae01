package script

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// hostileScripts are texts that want more of the reader than a script may.
func hostileScripts() map[string]string {
	const head = "version: 1\nsteps:\n"
	many := func(step string, times int) string {
		text := head
		for i := range times {
			text += "  - " + fmt.Sprintf(step, i) + "\n"
		}
		return text
	}
	bomb := "version: 1\nvars:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	merges := "version: 1\nvars:\n  m0: &m0 {k: v}\n"
	for i := range 30 {
		bomb += fmt.Sprintf("  a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
		merges += fmt.Sprintf("  m%d: &m%d {<<: [%s], k%d: v}\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*m%d, ", i), 10), i)
	}
	ranges := head
	for range 500 {
		ranges += "  - assert: [\"all(1..1000000, true)\"]\n"
	}
	return map[string]string{
		"billion laughs":    bomb + "steps: [{log: hello}]\n",
		"billion merges":    merges + "steps: [{log: hello}]\n",
		"deep lists":        "version: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"deep block":        strings.Repeat("- ", 9000) + "x",
		"deep maps":         strings.Repeat("{a: ", 5000) + "x" + strings.Repeat("}", 5000),
		"open brackets":     strings.Repeat("[", 100_000),
		"deep expression":   head + "  - assert: ['" + strings.Repeat("(", 2000) + "true" + strings.Repeat(")", 2000) + "']\n",
		"long operators":    head + "  - assert: ['" + strings.Repeat("!", 4000) + "true']\n",
		"many ranges":       ranges,
		"huge numbers":      "version: 99999999999999999999999999\ntimeout: 9999999999999999h\nsteps: [{repeat: {times: 1e400, steps: [{wait: 1e999s}]}}]\n",
		"unknown variables": many("set_var: {v%d: x}", 1500) + strings.TrimPrefix(many("log: \"${w%d}\"", 1500), head),
		"long field":        head + "  - send: {class: Subn, attribute: PortInfo, to: 5, set: {" + strings.Repeat("L", 500_000) + ": 1}}\n",
		"long value":        head + "  - send: {class: Subn, attribute: PortInfo, to: 5, set: {CapabilityMask: " + strings.Repeat("Is|", 300_000) + "}}\n",
		"long class":        head + "  - send: {class: " + strings.Repeat("S", 900_000) + ", attribute: PortInfo}\n",
		"many elements":     head + "  - send: {class: Subn, attribute: P_KeyTable, to: 5, set: {P_Key: [" + strings.Repeat("1, ", 9000) + "]}}\n",
		"many lookups":      many("send: {class: Subn, attribute: PortInfo, to: 5, set: {Nothing%d: 1}}", 600),
		"NUL":               "version: 1\x00\n",
		"no UTF-8":          "version: \xff\xfe\n",
		"long key":          strings.Repeat("k", 500_000) + ": 1\n",
		"long text":         head + "  - log: " + strings.Repeat("${1}", 200_000) + "\n",
		"many escapes":      head + "  - log: '" + strings.Repeat("$${", 300_000) + "'\n",
		"many keys":         "version: 1\n" + strings.Repeat("? a\n: b\n", 50_000),
		"many documents":    strings.Repeat("--- a\n", 100_000),
		"many anchors":      "a: [" + strings.Repeat("&a x, ", 100_000) + "]",
		"undefined alias":   "a: *b\n",
		"alias to itself":   "a: &a {b: *a}\n",
		"carriage returns":  "version: 1\rsteps: [{log: \"${\"}]\r",
		"separators":        "version: 1\u2028steps: [{log: x}]\u0085",
		"big regex":         head + "  - assert: ['\"a\" matches \"(a{1000}){1000}\"']\n",
	}
}

// Bad scripts and good ones, and what changes make of them: Load and Check end, and
// what they say has a place in the file and a known kind.
func FuzzLoad(f *testing.F) {
	for _, text := range hostileScripts() {
		if len(text) < 20_000 {
			f.Add([]byte(text))
		}
	}
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := loadAndCheck(data)
		if err == nil && (s == nil || len(s.Steps) == 0) {
			t.Fatal("no mistake, and no steps")
		}
		checkErrors(t, data, err)
	})
}

// loadAndCheck reads data as the file f.yaml, which may include part.yaml and
// itself.
func loadAndCheck(data []byte) (*Script, error) {
	s, err := Load("f.yaml", fstest.MapFS{
		"f.yaml":    {Data: data},
		"part.yaml": {Data: []byte("version: 1\nparams: {n: 1}\nsteps: [{log: \"${n}\"}]\n")},
	})
	if err != nil {
		return nil, err
	}
	return s, s.Check(CheckEnv{})
}

func checkErrors(t *testing.T, data []byte, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var list *ErrorList
	if !errors.As(err, &list) || len(list.Errors) == 0 || len(list.Errors) > maxErrors {
		t.Fatalf("%T: %v", err, err)
	}
	// YAML has more ends of lines than newlines.
	lines := 1
	for _, r := range string(data) {
		if strings.ContainsRune("\n\r\u0085\u2028\u2029", r) {
			lines++
		}
	}
	for _, e := range list.Errors {
		if !slices.ContainsFunc(ErrorIDs, func(known struct {
			ID  ErrorID
			Doc string
		}) bool {
			return known.ID == e.ID
		}) {
			t.Errorf("%v: the kind %q is not known", e, e.ID)
		}
		if e.Pos.File == "f.yaml" && (e.Pos.Line < 1 || e.Pos.Line > lines || e.Pos.Col < 1) {
			t.Errorf("%v: the file has %d lines", e, lines)
		}
		if len(e.Msg) > 1000 {
			t.Errorf("a message of %d bytes", len(e.Msg))
		}
	}
}

// A hostile text costs no more than its own length makes plausible.
func TestHostileScripts(t *testing.T) {
	for name, text := range hostileScripts() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := loadAndCheck([]byte(text))
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 500 {
				t.Errorf("%d MiB were allocated", got)
			}
			checkErrors(t, []byte(text), err)
			fine := slices.Contains([]string{"many ranges", "deep expression", "many escapes", "long operators", "separators"}, name)
			if (err == nil) != fine {
				t.Errorf("got %v", err)
			}
		})
	}
}
