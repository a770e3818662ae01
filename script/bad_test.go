package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/port"
)

// badScripts are the scripts of testdata/bad, and those that are too large for a
// file, or no text. The last lines of each say what is wrong with it, without the
// name of the file if it is this one: # want: LINE:COL: MESSAGE [ID].
func badScripts(t *testing.T) (fs.FS, []string) {
	t.Helper()
	files := make(fstest.MapFS)
	dir := os.DirFS("testdata/bad")
	if err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, name)
		files[name] = &fstest.MapFile{Data: data}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	const head, tail = "version: 1\nsteps:\n", "\n# want: "
	made := map[string]string{
		"too-large.yaml":    head + "  - log: hello" + strings.Repeat(" ", MaxDocument) + tail + "1:1: the file has more than 1048576 bytes [too-large]",
		"encoding.yaml":     head + "  - log: \"a\x00b\"" + tail + `3:12: the file is no text in UTF-8: byte 0x00 [encoding]`,
		"encoding-utf.yaml": head + "  - log: h\xe9" + tail + `3:11: the file is no text in UTF-8: byte 0xe9 [encoding]`,
		"expr-long.yaml": head + "  - assert: [" + strings.Repeat("(", 2100) + "true" + strings.Repeat(")", 2100) + "]" + tail +
			"3:14: an expression of 4204 bytes: at most 4096 [expr-long]",
	}
	many := head
	for i := range MaxFiles + 1 {
		name := fmt.Sprintf("many/%d.yaml", i)
		made[name] = head + "  - log: hello\n"
		many += "  - include: {file: " + name + "}\n"
	}
	made["include-files.yaml"] = many + tail + "67:21: more than 64 files are included [include-files]"
	for name, text := range made {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	var names []string
	for name := range files {
		if !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return files, names
}

// wanted takes the expected messages out of a script.
func wanted(name string, data []byte) []string {
	var want []string
	for line := range strings.Lines(string(data)) {
		if msg, ok := strings.CutPrefix(line, "# want: "); ok {
			msg = strings.TrimSuffix(msg, "\n")
			if !strings.HasPrefix(msg, "parts/") {
				msg = name + ":" + msg
			}
			want = append(want, msg)
		}
	}
	return want
}

// checkEnv knows the named faults that there are.
func checkEnv() (env CheckEnv) {
	for _, f := range endpoint.NamedFaults() {
		names := &env.SMAFaults
		if f.OfSA {
			names = &env.SAFaults
		}
		*names = append(*names, f.Name)
	}
	return env
}

// found loads and checks a script and gives the messages, and the kinds of the
// mistakes.
func found(t *testing.T, fsys fs.FS, name string) (msgs []string, ids []ErrorID) {
	t.Helper()
	s, err := Load(name, fsys)
	if err == nil {
		err = s.Check(checkEnv())
	}
	if err == nil {
		t.Errorf("%s: nothing is wrong with it", name)
		return nil, nil
	}
	var list *ErrorList
	if !errors.As(err, &list) {
		t.Fatalf("%s: %T: %v", name, err, err)
	}
	for _, e := range list.Errors {
		msgs, ids = append(msgs, e.Error()), append(ids, e.ID)
	}
	return msgs, ids
}

func TestBadScripts(t *testing.T) {
	fsys, names := badScripts(t)
	seen := make(map[ErrorID]bool)
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		got, ids := found(t, fsys, name)
		if want := wanted(name, data); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, id := range ids {
			seen[id] = true
		}
	}
	for _, e := range ErrorIDs {
		if !seen[e.ID] {
			t.Errorf("no bad script has %s: %s", e.ID, e.Doc)
		}
		delete(seen, e.ID)
	}
	for id := range seen {
		t.Errorf("%s is not in ErrorIDs", id)
	}
}

// untouched is a device that nobody may use.
type untouched struct{ t *testing.T }

func (d untouched) Info() (port.Info, error) {
	d.t.Error("the device was asked what it is")
	return port.Info{}, port.ErrGone
}

func (d untouched) Open() (port.Port, error) {
	d.t.Error("the device was opened")
	return nil, port.ErrGone
}

func (d untouched) HoldIsSM(context.Context) (io.Closer, error) {
	d.t.Error("the device was made an SM's")
	return nil, port.ErrGone
}

func (d untouched) Close() error { return nil }

// A script with a mistake that only Check can find does not run, even if a caller
// tries: no MAD is sent.
func TestBadScriptsSendNothing(t *testing.T) {
	fsys, names := badScripts(t)
	tried := 0
	for _, name := range names {
		s, err := Load(name, fsys)
		if err != nil {
			continue // there is nothing that could run
		}
		env := Env{Device: untouched{t}, Simulated: true, Provides: requirementWords()}
		for _, checked := range []bool{false, true} {
			if checked && s.Check(checkEnv()) == nil {
				t.Errorf("%s: nothing is wrong with it", name)
			}
			if _, err := Run(t.Context(), s, env, Options{Yes: true}); !errors.Is(err, ErrNotChecked) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		tried++
	}
	if tried < 20 {
		t.Errorf("only %d scripts could be tried", tried)
	}
}

// Every id in the source is in the table, so that TestBadScripts asks for it.
func TestErrorIDsComplete(t *testing.T) {
	id := regexp.MustCompile(`(?:\badd\(|addNear\(|fail\(|notNamed\(|\bid = |ErrorID\()"([a-z-]+)"`)
	for _, name := range []string{"parse.go", "parse_value.go", "parse_yaml.go", "include.go", "check.go", "check_steps.go", "check_values.go", "expr_check.go"} {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all := id.FindAllSubmatch(src, -1)
		if len(all) == 0 {
			t.Errorf("%s: no ids", name)
		}
		for _, m := range all {
			if !slices.ContainsFunc(ErrorIDs, func(e struct {
				ID  ErrorID
				Doc string
			}) bool {
				return string(e.ID) == string(m[1])
			}) {
				t.Errorf("%s: %s is not in ErrorIDs", name, m[1])
			}
		}
	}
}
