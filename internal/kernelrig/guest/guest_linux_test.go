package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/internal/kernelrig/plan"
)

// inGuest skips a test outside the rig's virtual machine.
func inGuest(t testing.TB) {
	t.Helper()
	if os.Getenv(plan.KernelEnv) == "" {
		t.Skip("runs on a kernel of its own: make test-kernel RUN=" + t.Name())
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// TestKernelDevice finds what every other test counts on: the device, its port
// active, a GID that is usable at once, and the device files.
func TestKernelDevice(t *testing.T) {
	inGuest(t)
	release := read(t, "/proc/sys/kernel/osrelease")
	if series := os.Getenv(plan.KernelEnv); !strings.HasPrefix(release, series+".") {
		t.Errorf("%s is %s, but the kernel is %s", plan.KernelEnv, series, release)
	}
	for file, want := range map[string]string{
		// include/uapi/rdma/ib_user_mad.h and rdma_user_cm.h
		"/sys/class/infiniband_mad/abi_version":         "5",
		"/sys/class/misc/rdma_cm/abi_version":           "4",
		"/sys/class/infiniband_mad/umad0/ibdev":         "rxe0",
		"/sys/class/infiniband_mad/umad0/port":          "1",
		"/sys/class/infiniband/rxe0/ports/1/state":      "4: ACTIVE",
		"/sys/class/infiniband/rxe0/ports/1/link_layer": "Ethernet",
	} {
		if got := read(t, file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	gidFiles, _ := filepath.Glob("/sys/class/infiniband/rxe0/ports/1/gids/*")
	var gids []string
	for _, f := range gidFiles {
		if b, err := os.ReadFile(f); err == nil { // unused entries may be unreadable
			gids = append(gids, strings.TrimSpace(string(b)))
		}
	}
	for _, want := range []string{
		"fd00:0000:0000:0000:0000:0000:0000:0001",
		"0000:0000:0000:0000:0000:ffff:c000:0201",
	} {
		if !slices.Contains(gids, want) {
			t.Errorf("no GID %s among %v", want, gids)
		}
	}
	for _, file := range []string{"umad0", "uverbs0", "rdma_cm"} {
		info, err := os.Stat("/dev/infiniband/" + file)
		if err != nil {
			t.Error(err)
		} else if info.Mode()&os.ModeCharDevice == 0 {
			t.Errorf("%s is no character device: %v", file, info.Mode())
		}
	}
}

// TestKernelRdma makes a second device and removes it, as a test may that takes
// devices away.
func TestKernelRdma(t *testing.T) {
	inGuest(t)
	const umad = "/dev/infiniband/umad1"
	for _, step := range []struct {
		args string
		umad bool
	}{
		{"link add rxe1 type rxe netdev v1", true},
		{"link delete rxe1", false},
	} {
		if out, err := exec.Command("rdma", strings.Fields(step.args)...).CombinedOutput(); err != nil {
			t.Fatalf("rdma %s: %v\n%s", step.args, err, out)
		}
		if got := exists(umad); got != step.umad {
			t.Errorf("after rdma %s: is there a %s? %v", step.args, umad, got)
		}
	}
	if out, err := exec.Command("rdma", "link", "delete", "rxe1").CombinedOutput(); err == nil || !strings.Contains(string(out), "not found") {
		t.Errorf("a device that is not there was removed: %v\n%s", err, out)
	}
}

// TestKernelCommand runs the ibsm command as a user would type it.
func TestKernelCommand(t *testing.T) {
	inGuest(t)
	out, err := exec.Command("ibsm", "--on", "sim:demo", "ports").CombinedOutput()
	if err != nil {
		t.Fatalf("ibsm --on sim:demo ports: %v\n%s", err, out)
	}
	if len(out) == 0 {
		t.Error("ibsm --on sim:demo ports prints nothing")
	}
}
