package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/topo"
)

// TestKernelSA asks our SA through a real kernel, as a user would: the server is
// in this process, ibsm in others.
func TestKernelSA(t *testing.T) {
	if os.Getenv("IBSM_KERNEL") == "" {
		t.Skip("it runs in a guest: make test-kernel RUN=TestKernelSA")
	}
	dev, err := endpoint.Open(t.Context(), "umad:rxe0/1")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	sub, err := topo.Generate("demo")
	if err == nil {
		err = sub.BringUp()
	}
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(dev, sub, server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()

	const sa = "--on umad:rxe0/1 --sa fd00::1"
	const passedOver = "an Ethernet port has no LIDs: name it (--on umad:rxe0/1) and use GIDs"
	for _, tt := range []struct {
		args string
		code int
		want []string
	}{
		{"ports", 0, []string{"CA 'rxe0'\n", "\t\tLink layer: Ethernet\n", "\t\tGID: fd00::1 (RoCE v2)\n", "\t\tChosen: no, " + passedOver}},
		{"ports -C rxe0 -o json", 0, []string{`"endpoint":"umad:rxe0/1","chosen":true,"why":"named, and active"`, `"PortState":"Active"`, `"notes":[]`}},
		{sa + " sa get classportinfo", 0, []string{"SA ClassPortInfo:\n", "Class version............2\n"}},
		{sa + " --rmpp kernel -o csv sa table node", 0, []string{"demo switch 2"}},
		{sa + " -o csv sa table node", 0, []string{"demo switch 2"}},
		{sa + " --trace /tmp/sa.pcapng -o csv sa table node", 0, []string{"demo switch 2"}},
		{sa + " sa path h1 h8", 0, []string{"dgid....................fe80::200:1:0:801\n"}},
		{sa + " --partition 0x7fff sa get node LID=8", 0, []string{"NodeDescription.........h8\n"}},
		{sa + " --partition 0x8001 sa get node LID=8", 1, []string{"port rxe0/1 is not in it, its P_Keys are [0xffff]"}},
		{"-C rxe0 -P 1 sa get classportinfo", 1, []string{"rxe0/1 is an Ethernet port, which has no LIDs", "name the SA with --sa"}},
		{"-C rxe0 --sa 1 sa get classportinfo", 1, []string{"rxe0/1 is an Ethernet port, which has no LIDs"}},
		{"-C rxe0 --sa ::ffff:192.0.2.1 sa get classportinfo", 2, []string{"it is an IPv4 address"}},
		{"-C rxe0 smp get nodeinfo dr:0", 1, []string{"QP0 does not exist on an Ethernet port"}},
		{"sa get classportinfo", 1, []string{"rxe0/1: " + passedOver, "--on sim:demo"}},
		{"-C rxe1 ports", 1, []string{"rxe0/1: another port was named"}},
	} {
		cmd := exec.CommandContext(t.Context(), "ibsm", strings.Fields(tt.args)...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != tt.code {
			t.Errorf("ibsm %s: exit code %d, want %d\n%s", tt.args, code, tt.code, out)
		}
		for _, want := range tt.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("ibsm %s: no %q in\n%s", tt.args, want, out)
			}
		}
	}
	// The block types of pcapng: a section header first, then packets.
	trace, err := os.ReadFile("/tmp/sa.pcapng")
	if err != nil {
		t.Fatal(err)
	}
	const section, packet = "\x0a\x0d\x0d\x0a", "\x06\x00\x00\x00"
	if !bytes.HasPrefix(trace, []byte(section)) || bytes.Count(trace, []byte(packet)) < 2 || !bytes.Contains(trace, []byte("demo switch 2")) {
		t.Errorf("the trace of %d bytes has no request and answer", len(trace))
	}
}
