package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"gopkg.in/yaml.v3"
)

func TestMain(m *testing.M) {
	// A program with the race detector otherwise sleeps for a second at its end.
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	testscript.Main(m, map[string]func(){"ibsm": main})
}

// TestScripts runs the files of testdata/script: see there for the commands. The
// condition rdma is that this machine has an RDMA device.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "rdma" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			devices, err := os.ReadDir("/sys/class/infiniband")
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return len(devices) > 0, err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits,
			"doc":   doc,
		},
	})
}

// exits N PROGRAM [ARGS...] runs a program and wants its exit code to be N.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N PROGRAM [ARGS...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var code *exec.ExitError
	switch {
	case errors.As(err, &code):
		got = code.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// doc FORMAT PATH [VALUE] looks at the last standard output as a document: the
// value at PATH, such as records.0.LID, or "-" if there is none. Without VALUE
// it must only be there. Of ndjson the path starts with the line.
func doc(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: doc json|ndjson|yaml PATH [VALUE]")
	}
	value, err := parse(args[0], ts.ReadFile("stdout"))
	if err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	got, err := at(value, args[1])
	if (err != nil) != neg {
		ts.Fatalf("%s: there: %t (%v)", args[1], err == nil, err)
	}
	if len(args) == 3 && fmt.Sprint(got) != args[2] {
		ts.Fatalf("%s: %v, want %s", args[1], got, args[2])
	}
}

// parse reads a document of the output. YAML's numbers become those of JSON.
func parse(format, text string) (value any, err error) {
	switch format {
	case "json":
		err = json.Unmarshal([]byte(text), &value)
	case "ndjson":
		var list []any
		for line := range strings.Lines(text) {
			var item any
			if err := json.Unmarshal([]byte(line), &item); err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
			list = append(list, item)
		}
		value = list
	case "yaml":
		err = yaml.Unmarshal([]byte(text), &value)
	default:
		err = fmt.Errorf("unknown format %q", format)
	}
	return value, err
}

func at(value any, path string) (any, error) {
	for step := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			inner, ok := v[step]
			if !ok {
				return nil, fmt.Errorf("no member %q in %v", step, v)
			}
			value = inner
		case []any:
			i, err := strconv.Atoi(step)
			if step == "len" {
				return len(v), nil
			}
			if err != nil || i >= len(v) {
				return nil, fmt.Errorf("no element %q of %d", step, len(v))
			}
			value = v[i]
		default:
			return nil, fmt.Errorf("no %q in %v", step, value)
		}
	}
	return value, nil
}
