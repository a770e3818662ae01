package main

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/topo"
	"github.com/ibsm/ibsm/ucma"
)

// kernelSA is our SA on a real kernel's port, for a subnet.
func kernelSA(t *testing.T, sub *topo.Subnet, err error) port.Device {
	t.Helper()
	if err == nil {
		err = sub.BringUp()
	}
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("IBSM_KERNEL") == "" {
		t.Skip("it runs in a guest: make test-kernel RUN=" + t.Name())
	}
	dev, err := endpoint.Open(t.Context(), "umad:rxe0/1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	srv, err := server.New(dev, sub, server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	return dev
}

// TestKernelSA asks our SA through a real kernel, as a user would: the server is
// in this process, ibsm in others.
func TestKernelSA(t *testing.T) {
	sub, err := topo.Generate("demo")
	kernelSA(t, sub, err)
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
		says(t, tt.args, tt.code, tt.want...)
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

// says runs ibsm in a process of its own and wants its exit code, and texts in its
// output.
func says(t *testing.T, args string, code int, want ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ibsm", strings.Fields(args)...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("ibsm %s: exit code %d, want %d\n%s", args, got, code, out)
	}
	for _, want := range want {
		if !strings.Contains(string(out), want) {
			t.Errorf("ibsm %s: no %q in\n%s", args, want, out)
		}
	}
}

// aroundRoCE is a subnet in which the guest's own port is h1, by its GID fd00::1.
const aroundRoCE = `
subnet: {prefix: 0xfd00000000000000, sm: h1}
nodes:
  - {name: h1, kind: ca, port: {1: {guid: 0x1}}}
  - {name: h2, kind: ca}
  - {name: h3, kind: ca}
  - {name: s1, kind: switch, ports: 4}
links: ["h1[1] - s1[1]", "h2[1] - s1[2]", "h3[1] - s1[3]"]
`

// TestKernelScript runs the script of the README unchanged on a real kernel: MADs by
// its umad, long answers by its RMPP, and its RDMA CM over the path that our SA gave.
// path-to-connect then does so eight times at once.
func TestKernelScript(t *testing.T) {
	sub, err := topo.Parse("fabric", []byte(aroundRoCE))
	dev := kernelSA(t, sub, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a peer that nobody connects to
	defer cancel()
	cm, err := endpoint.OpenCM(ctx, dev, endpoint.CMConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer cm.Close()
	at := ucma.Sockaddr{IP: netip.MustParseAddrPort("[fd00::1]:7471")}
	l, err := ucma.Opener(cm.Open).Listen(ctx, at, ucma.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var peers sync.WaitGroup
	peer := func() {
		r, err := l.Next(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		c, err := r.Accept(ctx, ucma.AcceptConfig{PrivateData: r.PrivateData})
		if err != nil {
			t.Error(err)
			return
		}
		if err := errors.Join(c.Wait(ctx), c.Disconnect(ctx), c.Close()); err != nil {
			t.Error(err)
		}
	}

	const on, vars = "--on umad:rxe0/1 ", " run configs/quickstart.yaml --var me=fd00::1 --var dst=fd00::1"
	peers.Go(peer)
	says(t, on+"--sa fd00::1"+vars+" --yes", 0,
		"ok      ask ", "ok    paths to everywhere, by RMPP ", ", 4 records", "ok    the path to dst ", "ok    connect over it ", "# passed: 5 steps: 5 passed in ")
	peers.Wait()
	peers.Go(peer)
	says(t, on+vars+" --yes", 0, "ok    connect over it ", "# passed: 5 steps: 3 passed, 2 skipped in ", "sa")
	peers.Wait()
	says(t, on+"--sa fd00::1"+vars, 2, "on a real fabric that needs --yes")

	const many = 8
	for range many {
		peers.Go(peer)
	}
	list := strings.TrimSuffix(strings.Repeat(`"fd00::1",`, many), ",")
	says(t, on+"--sa fd00::1 run path-to-connect --var me=fd00::1 --var ips=["+list+"] --yes", 0,
		"ok    all addresses ", " 8 branches, 16 steps: 16 passed", "# passed: ")
	peers.Wait()
}
