package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/u-root/u-root/pkg/cpio"

	"github.com/ibsm/ibsm/internal/kernelrig/plan"
)

// write makes files under a folder; a content that begins with "-> " is a
// symbolic link.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(target, file)
		} else {
			err = os.WriteFile(file, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	const test = "import \"testing\"\nfunc TestKernel%(t *testing.T) {}\n"
	write(t, root, map[string]string{
		"go.mod":                                 "module example.com/tree\n\ngo 1.26\n",
		"umad/umad.go":                           "package umad\n",
		"umad/one_test.go":                       "package umad\n" + strings.ReplaceAll(test, "%", "Open"),
		"ucma/ucma_test.go":                      "package ucma_test\n" + strings.ReplaceAll(test, "%", "Connect"),
		"sa/sa_test.go":                          "package sa\nimport \"testing\"\nfunc TestOther(t *testing.T) {}\n",
		"internal/kernelrig/go.mod":              "module example.com/tree/internal/kernelrig\n\ngo 1.26\n",
		"internal/kernelrig/guest/guest_test.go": "package guest\n" + strings.ReplaceAll(test, "%", "Device"),
	})
	for _, tt := range []struct{ run, want string }{
		{"^TestKernel", "ucma umad internal/kernelrig/guest"},
		{"TestKernelOpen", "umad"},
		{"Open|Device", "umad internal/kernelrig/guest"},
		{"TestKernelConnect/with_a_path", "ucma"},
		{"TestOther", "no test TestKernel... matches \"TestOther\""},
		{"(", "-run:"},
	} {
		suites, err := find(t.Context(), root, tt.run)
		var names []string
		for _, s := range suites {
			names = append(names, s.pkg)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("-run %s: %s, want %s", tt.run, got, tt.want)
		}
	}
}

func TestPack(t *testing.T) {
	host := t.TempDir()
	write(t, host, map[string]string{
		"init":                        "program",
		"umad/testdata/sys/port":      "1",
		"umad/testdata/sys/link":      "-> port",
		"umad/testdata/fuzz/FuzzX/ab": "seed",
		"00-ib_core.ko":               "module",
	})
	if err := os.Chmod(filepath.Join(host, "init"), 0o755); err != nil {
		t.Fatal(err)
	}
	img := image{files: []file{{filepath.Join(host, "init"), "init"}}}
	if err := img.addTestdata(suite{dir: filepath.Join(host, "umad")}, "src/umad"); err != nil {
		t.Fatal(err)
	}
	if err := img.addTestdata(suite{dir: host}, "src/none"); err != nil {
		t.Fatal(err)
	}
	p := plan.Plan{Series: "6.1", Run: "^TestKernel", Limit: time.Minute,
		Tests: []plan.Test{{Package: "umad", Binary: "/src/umad/test", Dir: "/src/umad"}}}
	archive := filepath.Join(host, "initramfs")
	if err := pack(archive, img, kernel{modules: []string{filepath.Join(host, "00-ib_core.ko")}}, p); err != nil {
		t.Fatal(err)
	}

	content, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		mode    uint64
		content string
	}
	got := map[string]entry{}
	err = cpio.ForEachRecord(cpio.Newc.Reader(bytes.NewReader(content)), func(r cpio.Record) error {
		var b []byte
		if r.ReaderAt != nil {
			if b, err = io.ReadAll(io.NewSectionReader(r.ReaderAt, 0, int64(r.FileSize))); err != nil {
				return err
			}
		}
		got[r.Name] = entry{r.Mode, string(b)}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]entry{
		"init":                       {cpio.S_IFREG | 0o755, "program"},
		"bin/rdma":                   {cpio.S_IFLNK | 0o777, "/init"},
		"modules/00-ib_core.ko":      {cpio.S_IFREG | 0o644, "module"},
		"src/umad/testdata/sys/port": {cpio.S_IFREG | 0o644, "1"},
		"src/umad/testdata/sys/link": {cpio.S_IFLNK | 0o777, "port"},
		"proc":                       {cpio.S_IFDIR | 0o755, ""},
	} {
		if got[name] != want {
			t.Errorf("%s: %o %q, want %o %q", name, got[name].mode, got[name].content, want.mode, want.content)
		}
	}
	for name := range got {
		if strings.Contains(name, "fuzz") {
			t.Errorf("%s is there", name)
		}
	}
	var planned plan.Plan
	if err := json.Unmarshal([]byte(got["plan.json"].content), &planned); err != nil || !reflect.DeepEqual(planned, p) {
		t.Errorf("plan %+v (%v), want %+v", planned, err, p)
	}
}

// A shell stands in for QEMU: it writes to both lines as a guest does.
func TestBoot(t *testing.T) {
	event := func(e plan.Event) string { return strings.TrimSuffix(e.Line(), "\n") }
	begin := "printf '%s\\r\\n' '" + event(plan.Event{Release: "6.1.0"}) + "' '" + event(plan.Event{Begin: "umad"}) + "' hello '" +
		plan.Mark + "--- PASS: TestKernelA (0.01s)' '" + event(plan.Event{End: &plan.End{Package: "umad"}}) + "'"
	done := "echo '" + event(plan.Event{Done: &plan.Done{}}) + "'"
	for _, tt := range []struct {
		what, script string
		limit        time.Duration
		want         string // part of the reasons
	}{
		{"good", begin + "; " + done, time.Minute, ""},
		{"hangs", begin + "; exec sleep 600", 500 * time.Millisecond, "it hung: stopped after 500ms"},
		{"does not start", "echo 'cannot open /dev/x' >&2; exit 1", time.Minute, "exit status 1 its console:\ncannot open /dev/x"},
		{"warns", "echo 'WARNING: CPU: 0' >&2; " + begin + "; " + done, time.Minute, "the kernel says: WARNING: CPU: 0"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			var out bytes.Buffer
			dir := t.TempDir()
			r := &rig{out: &out}
			rep, err := r.boot(t.Context(), "6.1", []string{"sh", "-c", tt.script}, tt.limit, dir)
			if err != nil {
				t.Fatal(err)
			}
			reasons := strings.Join(rep.verdict(), " ")
			if tt.want == "" && reasons != "" || !strings.Contains(reasons, tt.want) {
				t.Errorf("reasons %q, want %q", reasons, tt.want)
			}
			if tt.what == "good" {
				if want := "6.1  | Linux 6.1.0\n6.1  | umad\n6.1  | hello\n6.1  | --- PASS: TestKernelA (0.01s)\n"; out.String() != want {
					t.Errorf("shown\n%swant\n%s", out.String(), want)
				}
				if kept, err := os.ReadFile(filepath.Join(dir, "output.log")); err != nil || !strings.Contains(string(kept), "hello\r\n") {
					t.Errorf("output.log: %q, %v", kept, err)
				}
			}
		})
	}

	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := (&rig{out: io.Discard}).boot(stopped, "6.1", []string{"sleep", "600"}, time.Minute, t.TempDir()); err == nil {
		t.Error("a stopped rig reports")
	}
}
