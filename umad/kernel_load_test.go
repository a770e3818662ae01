//go:build linux

package umad

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/topo"
)

// fabrics are subnets with so many nodes, each a NodeRecord of 112 bytes in an
// answer: one, several in a MAD and in a window of 64 MADs, one more, and 2.24 MB.
var fabrics = []struct {
	nodes    int
	generate string
	yaml     string
}{
	{1, "", "nodes: [{name: a, kind: ca}]\n"},
	{2, "", "nodes: [{name: a, kind: ca}, {name: b, kind: ca}]\nlinks: [\"a[1] - b[1]\"]\n"},
	{64, "ring:switches=4,hosts=15", ""},
	{65, "ring:switches=5,hosts=12", ""},
	{20_000, "ring:switches=80,hosts=249", ""},
}

// Tables come whole out of our SA through the kernel: the server registers by
// the older ioctl and leaves RMPP to the kernel, the client by the newer.
func TestKernelTables(t *testing.T) {
	p, to := kernelPort(t)
	for _, f := range fabrics {
		var sub *topo.Subnet
		var err error
		if f.yaml != "" {
			sub, err = topo.Parse("yaml", []byte(f.yaml))
		} else {
			sub, err = topo.Generate(f.generate)
		}
		if err == nil {
			err = sub.BringUp()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, oldHeader := range []bool{false, true} {
			for _, mode := range []port.RMPPMode{port.RMPPKernel, port.RMPPUser} {
				t.Run(fmt.Sprintf("%d/old header %v/mode %v", f.nodes, oldHeader, mode), func(t *testing.T) {
					serving := openLocal(t, Config{OldRegister: true, OldHeader: oldHeader}, &p)
					srv, err := server.New(serving, sub, server.Config{RMPP: port.RMPPKernel})
					if err != nil {
						t.Fatal(err)
					}
					defer srv.Close()
					asking := openLocal(t, Config{OldHeader: oldHeader}, &p)
					client, err := sa.NewClient(asking, sa.Config{SA: &to, RMPP: mode, Timeout: 10 * time.Second, Retries: -1})
					if err != nil {
						t.Fatal(err)
					}
					defer client.Close()
					checkTable(t, client, sub)
					if grown := asking.Stats().Grown; (grown > 0) != (mode == port.RMPPKernel && f.nodes > 1) {
						t.Errorf("%d reads found their buffer too small", grown)
					}
				})
			}
		}
	}
}

// checkTable asks for all nodes of a subnet and compares them.
func checkTable(t *testing.T, client *sa.Client, sub *topo.Subnet) {
	t.Helper()
	want := make(map[mad.LID]mad.GUID)
	for end := range sub.EndPorts() {
		want[end.LID] = end.Node.GUID
	}
	got := 0
	for rec, err := range sa.Table(t.Context(), client, sa.Query[mad.NodeRecord]{}) {
		if err != nil {
			t.Fatalf("after %d records: %v", got, err)
		}
		if want[rec.LID] != rec.NodeInfo.NodeGUID {
			t.Fatalf("record %d: LID %v has node %v, want %v", got, rec.LID, rec.NodeInfo.NodeGUID, want[rec.LID])
		}
		delete(want, rec.LID)
		got++
	}
	if len(want) != 0 {
		t.Errorf("%d records, %d are missing", got, len(want))
	}
}

// loadClass is a vendor class of ours.
var loadClass = port.Registration{QPN: mad.QPGSI, Class: 0x35, Version: 1, OUI: 0x00c0de}

// loadMethod is one that the kernel does not answer by itself when its owner has
// gone: that crashes Linux 6.12 if the device goes at the same time (agent.c,
// agent_send_response after ib_agent_port_close).
const loadMethod = mad.MethodReport

// loadMAD is a request with a number in its data.
func loadMAD(n uint32) []byte {
	b := make([]byte, mad.Size)
	b[0], b[mad.OffClass], b[mad.OffClassVersion], b[mad.OffMethod] = 1, 0x35, 1, uint8(loadMethod)
	binary.BigEndian.PutUint32(b[36:], loadClass.OUI)
	binary.BigEndian.PutUint32(b[40:], n)
	return b
}

// asker opens a port with an agent that asks.
func asker(t *testing.T, d *Device) (*agents.Conn, *agents.Agent) {
	t.Helper()
	conn, err := agents.Open(d, agents.Config{})
	if err != nil {
		t.Fatal(err)
	}
	agent, err := conn.Register(agents.Registration{Registration: loadClass})
	if err != nil {
		t.Fatal(err)
	}
	return conn, agent
}

// echo opens a port with an agent that answers with what was asked, but for the
// numbers that silent knows.
func echo(t *testing.T, d *Device, silent func(n uint32) bool) *agents.Conn {
	t.Helper()
	conn, err := agents.Open(d, agents.Config{})
	if err != nil {
		t.Fatal(err)
	}
	reg := agents.Registration{Registration: loadClass, Queue: 4096, Serve: func(in *agents.Incoming) {
		if !silent(binary.BigEndian.Uint32(in.Data[40:])) {
			in.Data[mad.OffMethod] |= mad.ResponseBit
			in.Reply(in.Data)
		}
	}}
	reg.Methods = port.Methods(loadMethod)
	if _, err := conn.Register(reg); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestKernelSilence(t *testing.T) {
	p, to := kernelPort(t)
	d := openLocal(t, Config{}, &p)
	server := echo(t, d, func(uint32) bool { return true })
	defer server.Close()
	conn, agent := asker(t, d)
	defer conn.Close()
	const timeout, retries = 300 * time.Millisecond, 2
	start := time.Now()
	_, err := agent.Do(t.Context(), &agents.Request{Addr: to, Data: loadMAD(1), Timeout: timeout, Retries: retries})
	took := time.Since(start)
	if !errors.Is(err, agents.ErrTimeout) || took < (retries+1)*(timeout-kernelTick) || took > 5*(retries+1)*timeout {
		t.Errorf("error %v after %v, want a time-out after %v or a little later", err, took, (retries+1)*timeout)
	}
	if got := d.Stats(); got.TimedOut != 1 {
		t.Errorf("stats %+v: want one time-out from the kernel", got)
	}
}

// kernelTick is a jiffy of Debian's kernels (HZ=250), by which ib_mad counts its
// time-outs; the one that has begun counts, so a wait may end that much early.
const kernelTick = 4 * time.Millisecond

// A thousand requests at once, 30 in 100 of them without an answer.
func TestKernelThousand(t *testing.T) {
	const requests = 1000
	p, to := kernelPort(t)
	d := openLocal(t, Config{}, &p)
	silent := func(n uint32) bool { return n%10 < 3 }
	server := echo(t, d, silent)
	defer server.Close()
	conn, agent := asker(t, d)
	defer conn.Close()
	var wg sync.WaitGroup
	start := time.Now()
	for n := range uint32(requests) {
		wg.Go(func() {
			// The receive queue of a kernel has 512 places, so some are lost.
			req := &agents.Request{Addr: to, Data: loadMAD(n), Timeout: 2 * time.Second, Retries: 5}
			if silent(n) {
				req.Retries = 0
			}
			resp, err := agent.Do(t.Context(), req)
			switch took := time.Since(start); {
			case silent(n):
				if !errors.Is(err, agents.ErrTimeout) || took < req.Timeout-kernelTick {
					t.Errorf("request %d, without an answer: error %v after %v", n, err, took)
				}
			case err != nil:
				t.Errorf("request %d: %v", n, err)
			case !bytes.Equal(resp.Data[40:], req.Data[40:]):
				t.Errorf("request %d got the answer to %d", n, binary.BigEndian.Uint32(resp.Data[40:]))
			}
		})
	}
	wg.Wait()
	if got := conn.Stats(); got.Answered != 700 || got.TimedOut != 300 || got.Foreign != 0 {
		t.Errorf("%+v, want 700 answered, 300 timed out", got)
	}
}

// The errors that only a kernel gives, with what the suite cannot ask for.
func TestKernelErrors(t *testing.T) {
	p, to := kernelPort(t)
	d := openLocal(t, Config{}, &p)
	op, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	f := op.(*openPort)
	owner := loadClass
	owner.Methods = port.Methods(loadMethod)
	id := register(t, f, owner)

	_, err = f.Register(owner)
	checkError(t, err, "register", port.ErrMethodOwned, syscall.EINVAL, "class 0x35 OUI 00c0de method Report is already owned on this port; likely owners: ")
	_, err = f.Register(port.Registration{QPN: 1, Class: 0x50, Version: 1})
	checkError(t, err, "register", port.ErrInvalid, syscall.EINVAL, "class 0x50 is not below 0x50")
	_, err = f.Register(port.Registration{QPN: 1, Class: mad.ClassPerf, Version: 1, RMPP: port.RMPPKernel})
	checkError(t, err, "register", port.ErrInvalid, syscall.EINVAL, "class 0x04 has no RMPP")
	if nodeExists("/sys/module/ib_cm") {
		_, err = f.Register(port.Registration{QPN: 1, Class: 0x07, Version: 2, Methods: port.Methods(mad.MethodSend)})
		checkError(t, err, "register", port.ErrMethodOwned, syscall.EINVAL, "likely owners: the kernel's communication manager")
	}
	if p.LinkLayer == port.LinkEthernet {
		_, err = f.Register(port.Registration{QPN: 0, Class: mad.ClassSubnDirected, Version: 1})
		checkError(t, err, "register", port.ErrNoQP, syscall.EPROTONOSUPPORT, "QP0 does not exist on an Ethernet port")
		err = f.Send(&port.Message{Agent: id, Addr: mad.AddressVector{LID: 1, QPN: 1}, Data: loadMAD(1)})
		checkError(t, err, "send", port.ErrInvalid, syscall.EINVAL, "no GRH: an Ethernet port cannot address a LID")
	}
	if p.ISSM == "" {
		_, err = d.HoldIsSM(t.Context())
		checkError(t, err, "hold IsSM", port.ErrNoQP, nil, "no issm file")
	}

	var flags *FlagsError
	_, err = f.register(owner, 0x80000002)
	if !errors.As(err, &flags) || *flags != (FlagsError{Asked: 0x80000002, Known: flagUserRMPP}) || !errors.Is(err, port.ErrInvalid) {
		t.Errorf("unknown flags: error %v, %+v", err, flags)
	}

	lost := to
	lost.GRH.GIDIndex, lost.HasGRH = 200, true
	err = f.Send(&port.Message{Agent: id, Addr: lost, Data: loadMAD(1)})
	checkError(t, err, "send", port.ErrInvalid, nil, "no GID at index 200")

	// A packet that does not fit stays where it is.
	if err := f.Send(&port.Message{Agent: id, Addr: to, Data: loadMAD(77)}); err != nil {
		t.Fatal(err)
	}
	if err := f.f.wait(func(fd uintptr) bool {
		_, err = f.f.do(fd, opRead, 0, make([]byte, headerSize+mad.Size-1))
		return !errors.Is(err, syscall.EAGAIN)
	}); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, syscall.EINVAL) {
		t.Errorf("read into a short buffer: error %v, want EINVAL", err)
	}
	var m port.Message
	if err := f.Recv(&m); err != nil || binary.BigEndian.Uint32(m.Data[40:]) != 77 {
		t.Errorf("then: %v, %x", err, m.Data)
	}

	if err := f.Unregister(id); err != nil {
		t.Fatal(err)
	}
	err = f.Send(&port.Message{Agent: id, Addr: to, Data: loadMAD(1)})
	checkError(t, err, "send", port.ErrNoAgent, syscall.EIO, "no agent is registered in slot 0")
	for range port.MaxAgents {
		register(t, f, anyAgent)
	}
	_, err = f.Register(anyAgent)
	checkError(t, err, "register", port.ErrNoSlot, syscall.ENOMEM, "all 32 agent slots")
}

// What a kernel still has for an agent does not reach the next one in its slot.
func TestKernelStale(t *testing.T) {
	p, to := kernelPort(t)
	d := openLocal(t, Config{}, &p)
	op, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	f := op.(*openPort)
	owner := loadClass
	owner.Methods = port.Methods(loadMethod)
	id := register(t, f, owner)
	if err := f.Send(&port.Message{Agent: id, Addr: to, Data: loadMAD(1)}); err != nil {
		t.Fatal(err)
	}
	if err := f.f.wait(func(fd uintptr) bool { // until it is there
		_, err = f.f.do(fd, opRead, 0, make([]byte, headerSize))
		return !errors.Is(err, syscall.EAGAIN)
	}); err != nil {
		t.Fatal(err)
	}
	if err := f.Unregister(id); err != nil {
		t.Fatal(err)
	}
	if again := register(t, f, owner); again != id {
		t.Fatalf("agent %d, want %d again", again, id)
	}
	if err := f.Send(&port.Message{Agent: id, Addr: to, Data: loadMAD(2)}); err != nil {
		t.Fatal(err)
	}
	var m port.Message
	if err := f.Recv(&m); err != nil || binary.BigEndian.Uint32(m.Data[40:]) != 2 || d.Stats().Stale != 1 {
		t.Errorf("received %x, %v, %+v; want the second request alone", m.Data, err, d.Stats())
	}
}

// Removing the device ends what is under way, and nothing is left behind.
func TestKernelRemove(t *testing.T) {
	kernelPort(t)
	if _, err := exec.LookPath("rdma"); err != nil {
		t.Skip("no command to remove a device with: ", err)
	}
	before := runtime.NumGoroutine()
	files := openFiles(t)
	const device = "rxe1"
	rdma(t, "link", "add", device, "type", "rxe", "netdev", "v1")
	removed := false
	t.Cleanup(func() {
		if !removed {
			rdma(t, "link", "delete", device)
		}
	})
	d, err := Open(Config{}, device, 1)
	if err != nil {
		t.Fatal(err)
	}
	local := d.sys.readPort(device, 1)
	to, err := itself(&local)
	if err != nil {
		t.Fatal(err)
	}
	server := echo(t, d, func(n uint32) bool { return n%2 == 0 })
	conn, agent := asker(t, d)

	var wg sync.WaitGroup
	var mu sync.Mutex
	answered := make(chan struct{})
	var first sync.Once
	ends := make(map[string]int)
	for n := range uint32(200) {
		wg.Go(func() {
			for {
				_, err := agent.Do(t.Context(), &agents.Request{Addr: to, Data: loadMAD(n), Timeout: time.Minute})
				if err == nil {
					first.Do(func() { close(answered) })
					continue
				}
				mu.Lock()
				defer mu.Unlock()
				if !errors.Is(err, port.ErrGone) {
					ends[err.Error()]++
				}
				return
			}
		})
	}
	<-answered
	rdma(t, "link", "delete", device)
	removed = true
	wg.Wait()
	for err, n := range ends {
		t.Errorf("%d requests ended with %s, want ErrGone", n, err)
	}
	if _, err := d.Open(); !errors.Is(err, port.ErrGone) {
		t.Errorf("Open: error %v, want ErrGone", err)
	}
	if _, err := d.Info(); !errors.Is(err, port.ErrGone) {
		t.Errorf("Info: error %v, want ErrGone", err)
	}
	conn.Close()
	server.Close()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for runtime.NumGoroutine() > before+1 { // the context's
		if ctx.Err() != nil {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		runtime.Gosched()
	}
	if now := openFiles(t); now != files {
		t.Errorf("%d open files, %d before", now, files)
	}
}

func rdma(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("rdma", args...).CombinedOutput(); err != nil {
		t.Fatalf("rdma %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
