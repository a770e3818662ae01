package ucma_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/topo"
	"github.com/ibsm/ibsm/ucma"
	"github.com/ibsm/ibsm/umad"
)

// subnetOfGuest has the GID fd00::1 at one port, as the guest's rxe0.
const subnetOfGuest = `
subnet: {prefix: 0xfd00000000000000, sm: guest, ipoib: 192.0.2.0/24}
nodes:
  - {name: guest, kind: ca, guid: 0x10, port: {1: {guid: 1, ip: 192.0.2.1}}}
  - {name: other, kind: ca, guid: 0x20, port: {1: {guid: 2, ip: 192.0.2.2}}}
links:
  - {ends: "guest[1] - other[1]", mtu: 2048}
`

// saOnGuest serves our SA on the guest's port, and gives a client that asks it through
// the kernel.
func saOnGuest(t *testing.T) *sa.Client {
	t.Helper()
	sub, err := topo.Parse("guest", []byte(subnetOfGuest))
	if err == nil {
		err = sub.BringUp()
	}
	if err != nil {
		t.Fatal(err)
	}
	open := func() *umad.Device {
		d, err := umad.Open(umad.Config{}, "rxe0", 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	admin, err := server.New(open(), sub, server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	dev := open()
	info, err := dev.Info()
	if err != nil {
		t.Fatal(err)
	}
	to, err := sa.AddressByGID(info, mad.GID(netip.MustParseAddr("fd00::1").As16()))
	if err != nil {
		t.Fatal(err)
	}
	client, err := sa.NewClient(dev, sa.Config{SA: &to})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// From the first command to the last and back at the start, over the kernel's route and
// over a path of the SA.
func TestKernelConnect(t *testing.T) {
	open, ctx := kernel(t)
	admin := saOnGuest(t)
	for _, tt := range []struct {
		name string
		path ucma.PathSource
	}{{"route of the kernel", nil}, {"path of the SA", admin}} {
		t.Run(tt.name, func(t *testing.T) {
			const port = 7471
			l, err := open.Listen(ctx, roceAddr(port), ucma.ListenConfig{})
			if err != nil {
				t.Fatal(err)
			}
			asked, answered := bytes.Repeat([]byte("ask "), 14), bytes.Repeat([]byte("tell"), 49) // 56 and 196
			accepted := make(chan *ucma.Connection, 1)
			go func() {
				defer close(accepted)
				r, err := l.Next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if !bytes.Equal(r.PrivateData, asked) {
					t.Errorf("private data of the request: %q", r.PrivateData)
				}
				c, err := r.Accept(ctx, ucma.AcceptConfig{PrivateData: answered})
				if err != nil {
					t.Error(err)
					return
				}
				accepted <- c // established
			}()
			c, err := open.Connect(ctx, ucma.Target{Addr: l.Addr}, ucma.ConnectConfig{Path: tt.path, PrivateData: asked})
			if err != nil {
				t.Fatal(err)
			}
			peer := <-accepted
			if peer == nil {
				t.Fatal("not established at the peer")
			}
			if !bytes.Equal(c.PrivateData, answered) {
				t.Errorf("private data of the answer: %q", c.PrivateData)
			}
			if c.LocalQPN != peer.RemoteQPN || c.RemoteQPN != peer.LocalQPN {
				t.Errorf("QPNs %#x to %#x, at the peer %#x to %#x", c.LocalQPN, c.RemoteQPN, peer.LocalQPN, peer.RemoteQPN)
			}
			if tt.path != nil {
				checkFed(ctx, t, admin, c, peer)
			}

			start := time.Now()
			var ends sync.WaitGroup
			ends.Go(func() {
				if err := errors.Join(peer.Wait(ctx), peer.Disconnect(ctx), peer.Close()); err != nil {
					t.Error(err)
				}
			})
			if err := errors.Join(c.Disconnect(ctx), c.Close()); err != nil {
				t.Error(err)
			}
			ends.Wait()
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			took := time.Since(start)
			t.Logf("the end took %v", took)
			if took > 9*time.Second { // the kernel complains of an id after 10
				t.Errorf("the end took %v", took)
			}
		})
	}
}

// checkFed compares the path in use with what the SA says by itself.
func checkFed(ctx context.Context, t *testing.T, admin *sa.Client, c, peer *ucma.Connection) {
	t.Helper()
	gid := mad.GID(netip.MustParseAddr("fd00::1").As16())
	want, err := admin.Path(ctx, mad.PathRecord{SGID: gid, DGID: gid, PKey: 0xffff, ServiceID: ucma.ServiceID(ucma.PortSpaceTCP, roceAddr(7471))})
	if err != nil {
		t.Fatal(err)
	}
	if c.Fed == nil || *c.Fed != want || want.DLID == 0 || want.MTU == 0 {
		t.Errorf("the path that was set is %+v, the SA's %+v", c.Fed, want)
	}
	shown := ucma.MakeUserPathRec(&want)
	shown.DLID, shown.SLID = 0, 0 // on Ethernet
	if got := c.Route.Paths[0]; c.Route.NumPaths != 1 || got != shown {
		t.Errorf("QUERY_ROUTE has %d paths, %+v, want %+v", c.Route.NumPaths, got, shown)
	}
	// The kernel's own path would have another MTU.
	if c.RTR.PathMTU != uint32(want.MTU) || mad.MTU(peer.RTR.PathMTU) != want.MTU || want.MTU == mad.MTU1024 {
		t.Errorf("MTU %v here, %v there, want %v", c.RTR.PathMTU, peer.RTR.PathMTU, want.MTU)
	}
}

// All up at a time; then the file of the listener and of all its ends is closed, as when
// a process is killed. The peers hear of it.
func TestKernelConnectMany(t *testing.T) {
	open, ctx := kernel(t)
	var file ucma.Device
	l, err := ucma.Opener(func() (ucma.Device, error) {
		var err error
		file, err = open()
		return file, err
	}).Listen(ctx, roceAddr(0), ucma.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 500
	var accepts, connects sync.WaitGroup
	accepts.Go(func() {
		for range n {
			r, err := l.Next(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			accepts.Go(func() {
				if _, err := r.Accept(ctx, ucma.AcceptConfig{}); err != nil {
					t.Error(err)
				}
			})
		}
	})
	conns := make([]*ucma.Connection, n)
	start := time.Now()
	for i := range conns {
		connects.Go(func() {
			var err error
			if conns[i], err = open.Connect(ctx, ucma.Target{Addr: l.Addr}, ucma.ConnectConfig{}); err != nil {
				t.Error(err)
			}
		})
	}
	connects.Wait()
	accepts.Wait()
	took := time.Since(start)
	t.Logf("%d connections up in %v: %.0f in a second", n, took, n/took.Seconds())
	if t.Failed() {
		return
	}
	start = time.Now()
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	took = time.Since(start)
	t.Logf("the close of the file with %d ends took %v", n, took)
	if took > 9*time.Second {
		t.Errorf("the close took %v", took)
	}
	start = time.Now()
	for _, c := range conns {
		connects.Go(func() {
			if err := errors.Join(c.Wait(ctx), c.Disconnect(ctx), c.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	connects.Wait()
	t.Logf("the ends of the others took %v", time.Since(start))
}

// secondDevice makes an RDMA device over the other end of the guest's link, and gives
// the function that takes it away.
func secondDevice(t *testing.T) (remove func()) {
	t.Helper()
	rdma := func(args string) {
		t.Helper()
		if out, err := exec.Command("rdma", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("rdma %s: %v\n%s", args, err, out)
		}
	}
	rdma("link add rxe1 type rxe netdev v1")
	remove = sync.OnceFunc(func() { rdma("link delete rxe1") })
	t.Cleanup(remove)
	return remove
}

// A device that is removed: each id with it hears of that, and is good for DESTROY_ID
// only.
func TestKernelConnectRemoval(t *testing.T) {
	open, ctx := kernel(t)
	remove := secondDevice(t)
	at := ucma.Sockaddr{IP: netip.MustParseAddrPort("[fd00::2]:0")}
	l, err := open.Listen(ctx, at, ucma.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan *ucma.Connection, 1)
	go func() {
		defer close(accepted)
		r, err := l.Next(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		c, err := r.Accept(ctx, ucma.AcceptConfig{})
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- c
	}()
	c, err := open.Connect(ctx, ucma.Target{Addr: l.Addr}, ucma.ConnectConfig{Source: at})
	if err != nil {
		t.Fatal(err)
	}
	peer := <-accepted
	if peer == nil {
		t.FailNow()
	}
	raw, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	var id ucma.CreateIDResp
	if err := ucma.Do(raw, ucma.CreateID{UID: 1, PS: ucma.PortSpaceTCP}, &id); err != nil {
		t.Fatal(err)
	}
	num := id.ID
	if err := ucma.Do(raw, ucma.BindIP{ID: num, Addr: at}, nil); err != nil {
		t.Fatal(err)
	}

	remove()
	// The kernel destroys one end after the other, and the DREQ of the first may come to
	// the second before it hears of the removal (cma.c, cma_process_remove).
	here, there := c.Wait(ctx), peer.Wait(ctx)
	for _, err := range []error{here, there} {
		if err != nil && !errors.Is(err, ucma.ErrGone) {
			t.Errorf("an end of the connection: %v, want ErrGone", err)
		}
	}
	if here == nil && there == nil {
		t.Error("neither end of the connection was told of the removal")
	}
	if err := errors.Join(c.Close(), peer.Close()); err != nil {
		t.Error(err)
	}
	if _, err := l.Next(ctx); !errors.Is(err, ucma.ErrGone) {
		t.Errorf("the listener: %v, want ErrGone", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}

	var e ucma.EventResp
	if err := errors.Join(raw.Wait(ctx), ucma.Do(raw, ucma.GetEvent{}, &e)); err != nil || e.Event != ucma.EventDeviceRemoval || e.ID != num || e.Status != 0 {
		t.Errorf("event %+v, %v, want DEVICE_REMOVAL", e, err)
	}
	// The kernel ends the id by itself, somewhat later (ucma_close_id).
	for {
		err := ucma.Do(raw, ucma.QueryRoute{ID: num}, new(ucma.QueryRouteResp))
		if errors.Is(err, ucma.ENXIO) {
			break
		}
		if err != nil || ctx.Err() != nil {
			t.Fatalf("QUERY_ROUTE after the removal: %v, want ENXIO", err)
		}
	}
	for _, cmd := range []ucma.Command{
		ucma.Listen{ID: num}, ucma.BindIP{ID: num, Addr: at}, ucma.ResolveRoute{ID: num, Timeout: time.Second}, ucma.Disconnect{ID: num},
	} {
		if err := ucma.Do(raw, cmd, nil); !errors.Is(err, ucma.ENXIO) {
			t.Errorf("%v after the removal: %v, want ENXIO", cmd.Op(), err)
		}
	}
	var gone ucma.DestroyIDResp
	if err := ucma.Do(raw, ucma.DestroyID{ID: num}, &gone); err != nil || gone.EventsReported != 1 {
		t.Errorf("DESTROY_ID: %+v, %v, want one event", gone, err)
	}
}

// The command, as two processes.
func TestKernelConnectCommand(t *testing.T) {
	_, ctx := kernel(t)
	listen := exec.CommandContext(ctx, "ibsm", "-o", "json", "listen", "--yes", "--count", "2", "--private-data", "welcome")
	said, err := listen.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var listened bytes.Buffer
	listen.Stdout = &listened
	if err := listen.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listen.Process.Kill() })
	lines := bufio.NewScanner(said)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "listening at [::]:7471") {
		t.Fatalf("ibsm listen says %q", lines.Text())
	}
	connect := exec.CommandContext(ctx, "ibsm", "-o", "json", "connect", "ip:fd00::1", "--yes", "--count", "2", "--private-data", "hello")
	out, err := connect.Output()
	if err != nil {
		t.Fatalf("ibsm connect: %v\n%s", err, out)
	}
	for lines.Scan() {
		t.Errorf("ibsm listen says %q", lines.Text())
	}
	if err := listen.Wait(); err != nil {
		t.Errorf("ibsm listen: %v", err)
	}

	type record struct {
		State               string
		LocalQPN, RemoteQPN uint32
		PrivateData, PathBy string
		Steps               []struct{ Step, Error string }
	}
	parse := func(b []byte) (records []record) {
		var doc struct{ Records []record }
		if err := json.Unmarshal(b, &doc); err != nil || len(doc.Records) != 2 {
			t.Fatalf("%v in\n%s", err, b)
		}
		return doc.Records
	}
	active, passive := parse(out), parse(listened.Bytes())
	for i, a := range active {
		p := passive[i]
		if a.State != "established" || p.State != "established" || a.PathBy != "kernel" || a.LocalQPN != p.RemoteQPN || a.RemoteQPN != p.LocalQPN {
			t.Errorf("connection %d: %+v, %+v", i, a, p)
		}
		if a.PrivateData != "77656c636f6d65" || p.PrivateData != "68656c6c6f" {
			t.Errorf("connection %d: private data %s, %s", i, a.PrivateData, p.PrivateData)
		}
		if n := len(a.Steps); n == 0 || a.Steps[n-1].Step != ucma.StepDestroyID {
			t.Errorf("connection %d: steps %+v", i, a.Steps)
		}
	}
}
