package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
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
	const pair = "func TestKernelPairConnect(t *testing.T) {}\nfunc TestKernelPairUD(t *testing.T) {}\n"
	const bench = "func BenchmarkKernelConnect(b *testing.B) {}\n"
	write(t, root, map[string]string{
		"go.mod":                                 "module example.com/tree\n\ngo 1.26\n",
		"umad/umad.go":                           "package umad\n",
		"umad/one_test.go":                       "package umad\n" + strings.ReplaceAll(test, "%", "Open"),
		"ucma/ucma_test.go":                      "package ucma_test\n" + strings.ReplaceAll(test, "%", "Connect") + pair + bench,
		"sa/sa_test.go":                          "package sa\nimport \"testing\"\nfunc TestOther(t *testing.T) {}\n",
		"internal/kernelrig/go.mod":              "module example.com/tree/internal/kernelrig\n\ngo 1.26\n",
		"internal/kernelrig/guest/guest_test.go": "package guest\n" + strings.ReplaceAll(test, "%", "Device"),
	})
	for _, tt := range []struct{ prefix, pattern, want string }{
		{testPrefix, "", "ucma: TestKernelConnect TestKernelPairConnect TestKernelPairUD; umad: TestKernelOpen; internal/kernelrig/guest: TestKernelDevice"},
		{testPrefix, "^TestKernelO", "umad: TestKernelOpen"},
		{testPrefix, "Open|Device", "umad: TestKernelOpen; internal/kernelrig/guest: TestKernelDevice"},
		{testPrefix, "TestKernelConnect/with_a_path", "ucma: TestKernelConnect"},
		{testPrefix, "TestOther", "no TestKernel... matches \"TestOther\""},
		{testPrefix, "(", "pattern:"},
		{pairPrefix, "Connect", "ucma: TestKernelPairConnect"},
		{benchPrefix, "Connect", "ucma: BenchmarkKernelConnect"},
	} {
		suites, err := find(t.Context(), root, tt.prefix, tt.pattern)
		var found []string
		for _, s := range suites {
			found = append(found, s.pkg+": "+strings.Join(s.names, " "))
		}
		got := strings.Join(found, "; ")
		if err != nil {
			got = err.Error()
		}
		if got != tt.want && (err == nil || !strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s, %s: %s, want %s", tt.prefix, tt.pattern, got, tt.want)
		}
	}
}

// What runs alone is one call for a package; each test of a pair is one of its own.
func TestSplit(t *testing.T) {
	suites := []suite{
		{pkg: "ucma", names: []string{"TestKernelConnect", "TestKernelPairConnect", "TestKernelReject", "TestKernelPairUD"}},
		{pkg: "umad", names: []string{"TestKernelOpen"}},
		{pkg: "sa", names: []string{"TestKernelPairJoin"}},
	}
	alone, pair := split(suites, "Kernel/x|y/z", []string{"-test.count=2"})
	call := func(pkg, run string) plan.Test {
		return plan.Test{Package: pkg, Binary: "/src/" + pkg + "/test", Dir: "/src/" + pkg, Args: []string{"-test.run=" + run, "-test.count=2"}}
	}
	if want := []plan.Test{
		call("ucma", "^(TestKernelConnect|TestKernelReject)$/x|y/z"),
		call("umad", "^(TestKernelOpen)$/x|y/z"),
	}; !reflect.DeepEqual(alone, want) {
		t.Errorf("alone %v, want %v", alone, want)
	}
	if want := []plan.Test{
		call("ucma", "^(TestKernelPairConnect)$/x|y/z"),
		call("ucma", "^(TestKernelPairUD)$/x|y/z"),
		call("sa", "^(TestKernelPairJoin)$/x|y/z"),
	}; !reflect.DeepEqual(pair, want) {
		t.Errorf("pair %v, want %v", pair, want)
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
	data, err := testdata(filepath.Join(host, "umad"), "src/umad")
	if err != nil {
		t.Fatal(err)
	}
	if none, err := testdata(host, "src/none"); err != nil || none != nil {
		t.Fatalf("testdata where there is none: %v, %v", none, err)
	}
	img := image{
		files: []file{{filepath.Join(host, "init"), "init"}},
		tests: map[string][]file{"umad": data, "sa": {{filepath.Join(host, "init"), "src/sa/test"}}},
	}
	test := plan.Test{Package: "umad", Binary: "/src/umad/test", Dir: "/src/umad", Args: []string{"-test.run=A"}}
	p := plan.Plan{Series: "6.1", Pair: 2, Limit: time.Minute, Tests: []plan.Test{test, test}}
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
		"bin/meet":                   {cpio.S_IFLNK | 0o777, "/init"},
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
		if strings.Contains(name, "fuzz") || strings.HasPrefix(name, "src/sa") { // for which there is no test in the plan
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
			rep, err := r.boot(t.Context(), guest{name: "6.1", logs: dir, argv: []string{"sh", "-c", tt.script}}, tt.limit)
			if err != nil {
				t.Fatal(err)
			}
			reasons := strings.Join(rep.verdict(), " ")
			if tt.want == "" && reasons != "" || !strings.Contains(reasons, tt.want) {
				t.Errorf("reasons %q, want %q", reasons, tt.want)
			}
			if tt.what == "good" {
				if want := "6.1    | Linux 6.1.0\n6.1    | umad\n6.1    | hello\n6.1    | --- PASS: TestKernelA (0.01s)\n"; out.String() != want {
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
	if _, err := (&rig{out: io.Discard}).boot(stopped, guest{logs: t.TempDir(), argv: []string{"sleep", "600"}}, time.Minute); err == nil {
		t.Error("a stopped rig reports")
	}
}

// When one guest of a pair ends without having finished, the other does not wait
// for it.
func TestBootPair(t *testing.T) {
	done := "echo '" + strings.TrimSuffix(plan.Event{Done: &plan.Done{}}.Line(), "\n") + "'"
	for _, tt := range []struct {
		what    string
		scripts [2]string
		want    [2]string // how they ended
	}{
		{"both finish", [2]string{done, done}, [2]string{"", ""}},
		{"the first fails", [2]string{"exit 1", "exec sleep 600"}, [2]string{"sh: exit status 1", errPeerGone.Error()}},
		{"the second ends", [2]string{"exec sleep 600", "true"}, [2]string{errPeerGone.Error(), ""}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			var guests [2]guest
			for i, script := range tt.scripts {
				guests[i] = guest{logs: t.TempDir(), argv: []string{"sh", "-c", script}}
			}
			reports, err := (&rig{out: io.Discard}).bootPair(t.Context(), guests, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if got := [2]string{reports[0].ended, reports[1].ended}; got != tt.want {
				t.Errorf("ended %q, want %q", got, tt.want)
			}
		})
	}
}

// A dynamic program comes with its loader and libraries, under the names by which
// they are looked for.
func TestProgram(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	if err := exec.Command("ldd", sh).Run(); err != nil {
		t.Skipf("ldd %s: %v", sh, err)
	}
	files, err := program(t.Context(), "sh")
	if err != nil {
		t.Fatal(err)
	}
	var libraries int
	for i, f := range files {
		info, err := os.Lstat(f.host)
		if err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s for %s is no plain file (%v)", f.host, f.guest, err)
		}
		if i == 0 != (f.guest == "bin/sh") {
			t.Errorf("file %d is %s", i, f.guest)
		}
		if strings.Contains(f.guest, "libc.so") || strings.Contains(f.guest, "/ld-") {
			libraries++
		}
	}
	if libraries != 2 {
		t.Errorf("%v: %d of the C library and the loader", files, libraries)
	}
	if _, err := program(t.Context(), "no-such-program"); err == nil || !strings.Contains(err.Error(), "for want of no-such-program") {
		t.Errorf("a program that is not there: error %v", err)
	}
}
