package app

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trigger is an output that calls do when it has had some text.
type trigger struct {
	bytes.Buffer
	text string
	do   func()
}

func (w *trigger) Write(b []byte) (int, error) {
	n, err := w.Buffer.Write(b)
	if strings.Contains(w.String(), w.text) {
		w.do()
	}
	return n, err
}

// Ctrl-C while a script waits: the lines until then are there already, the step ends,
// finally runs and is told, and the exit code is 1.
func TestInterruptedScript(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wait.yaml")
	err := os.WriteFile(file, []byte(`version: 1
on: sim:demo
steps:
  - log: it waits
  - wait: 1h
    timeout: 2h
  - log: never
finally:
  - send: {class: Subn, attribute: NodeInfo, to: 8}
  - log: put back
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"text", "ndjson"} {
		ctx, cancel := context.WithCancel(t.Context())
		stdout, stderr := &trigger{text: "it waits", do: cancel}, &bytes.Buffer{}
		code := Run(ctx, Host{Args: []string{"ibsm", "-o", format, "run", file}, Stdout: stdout, Stderr: stderr})
		if code != 1 {
			t.Errorf("%s: exit code %d, want 1", format, code)
		}
		if out := stdout.String(); !strings.Contains(out, "put back") || strings.Contains(out, "never") {
			t.Errorf("%s: output\n%s", format, out)
		}
		if want := "run wait: interrupted: "; !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: %q on stderr, want %q in it", format, stderr, want)
		}
	}
}
