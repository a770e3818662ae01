package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ibsm/ibsm/internal/kernelrig/plan"
)

// inPair skips a test outside the guests of a pair.
func inPair(t *testing.T) (local, peer netip.Addr) {
	if os.Getenv(plan.PairEnv) == "" {
		t.Skip("runs in two virtual machines at the same time: make test-kernel RUN=" + t.Name())
	}
	return netip.MustParseAddr(os.Getenv(plan.LocalEnv)), netip.MustParseAddr(os.Getenv(plan.PeerEnv))
}

// gidIndex finds an IPv6 address in the GID table of rxe0.
func gidIndex(t *testing.T, ip netip.Addr) byte {
	t.Helper()
	for i := range 255 {
		b, err := os.ReadFile(fmt.Sprintf("/sys/class/infiniband/rxe0/ports/1/gids/%d", i))
		if err != nil {
			break
		}
		if gid, err := netip.ParseAddr(string(bytes.TrimSpace(b))); err == nil && gid == ip {
			return byte(i)
		}
	}
	t.Fatalf("rxe0 has no GID %v", ip)
	return 0
}

// TestKernelPair finds what every other test in a pair counts on: an active port, the
// other guest at the same test, the command meet, and a link that carries MADs.
// Each guest sends one to the other.
func TestKernelPair(t *testing.T) {
	local, peer := inPair(t)
	for file, want := range map[string]string{
		"/sys/class/infiniband/rxe0/ports/1/state":   "4: ACTIVE",
		"/sys/class/infiniband/rxe0/parent":          "eth0",
		"/sys/class/misc/rdma_cm/abi_version":        "4",
		"/sys/class/infiniband_mad/umad0/ibdev":      "rxe0",
		"/sys/class/infiniband_mad/abi_version":      "5",
		"/sys/class/infiniband/rxe0/ports/1/pkeys/0": "0xffff",
	} {
		if got := read(t, file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	if files, err := filepath.Glob("/dev/infiniband/*"); err != nil || len(files) == 0 {
		t.Errorf("device files: %v, %v", files, err)
	}

	// include/uapi/rdma/ib_user_mad.h, without a library: the rig has none.
	const (
		enablePKey    = 0x1b03
		registerAgent = 0xc01c1b01
		vendorClass   = 0x0a
		methodSend    = 0x03
		headerSize    = 64
		madSize       = 256
	)
	umad, err := os.OpenFile("/dev/infiniband/umad0", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer umad.Close()
	raw, err := umad.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var request [28]byte // id, method_mask, qpn, mgmt_class, mgmt_class_version, oui, rmpp_version
	binary.NativeEndian.PutUint32(request[4:], 1<<methodSend)
	request[20], request[21], request[22] = 1, vendorClass, 1
	for _, call := range []struct {
		name string
		num  uintptr
		arg  *[28]byte
	}{{"ENABLE_PKEY", enablePKey, nil}, {"REGISTER_AGENT", registerAgent, &request}} {
		var errno unix.Errno
		if err := raw.Control(func(fd uintptr) { errno = ioctl(fd, call.num, call.arg) }); err != nil || errno != 0 {
			t.Fatalf("%s: %v, %v", call.name, errno, err)
		}
	}
	if out, err := exec.Command("meet", "both", "registered").CombinedOutput(); err != nil {
		t.Fatalf("meet: %v\n%s", err, out)
	}

	gid := peer.As16()
	sent := make([]byte, headerSize+madSize)
	copy(sent, request[:4]) // the agent's id
	binary.NativeEndian.PutUint32(sent[16:], headerSize+madSize)
	binary.BigEndian.PutUint32(sent[20:], 1)          // qpn
	binary.BigEndian.PutUint32(sent[24:], 0x80010000) // qkey
	sent[32], sent[33], sent[34] = 1, gidIndex(t, local), 64
	copy(sent[36:], gid[:])
	mad := sent[headerSize:]
	copy(mad, []byte{1, vendorClass, 1, methodSend})
	copy(mad[64:], "from "+local.String())
	if _, err := umad.Write(sent); err != nil {
		t.Fatalf("send: %v", err)
	}
	if err := umad.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, headerSize+madSize)
	if _, err := umad.Read(got); err != nil {
		t.Fatalf("receive: %v", err)
	}
	if want := "from " + peer.String(); !bytes.HasPrefix(got[headerSize+64:], []byte(want+"\x00")) {
		t.Errorf("received %q, want %q", got[headerSize:], want)
	}
	if from := netip.AddrFrom16([16]byte(got[36:52])); got[32] != 1 || from != peer {
		t.Errorf("received from GID %v (GRH %d), want %v", from, got[32], peer)
	}
}

func ioctl(fd, request uintptr, arg *[28]byte) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(arg)))
	return errno
}
