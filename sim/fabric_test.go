package sim

import (
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/topo"
)

func TestCut(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		get := byLID(8, mad.AttrNodeInfo, 0)
		r.must("h1", get)
		old := r.port("s1[12]")
		if err := r.fab.Cut(old); err != nil {
			t.Fatal(err)
		}
		if r.ask("h1", get) != nil || r.dropped(r.events()) != LinkDown || way(r.events()) != "h1[1]-s1[1]" {
			t.Errorf("over a cut link: %v", r.events())
		}
		if r.ask("h1", byRoute(mad.Route{0, 1, 12}, mad.AttrNodeInfo, 0)) != nil {
			t.Error("a directed route goes over a cut link")
		}
		for _, via := range []mad.Route{{0, 1}, {0, 1, 11}} { // both ends, by the other link
			var info mad.PortInfo
			info.DecodeFrom(dataOf(t, r.must("h1", byRoute(via, mad.AttrPortInfo, 12))))
			if info.PortState != mad.PortStateDown || info.PortPhysicalState != mad.PortPhysStatePolling {
				t.Errorf("port 12 at %s: %v, %v", via, info.PortState, info.PortPhysicalState)
			}
		}
		if old.State != mad.PortStateActive {
			t.Error("the model was changed")
		}
		if err := r.fab.Restore(old.Peer); err != nil { // either end will do
			t.Fatal(err)
		}
		r.must("h1", get)
	})
}

func TestWrongRoute(t *testing.T) {
	tests := []struct {
		name string
		out  uint8 // of s2 for LID 8
		want Reason
	}{
		{"to another host", 3, WrongPort},
		{"to port 0", 0, WrongPort},
		{"to a dead end", 7, LinkDown},
		{"dropped", 255, NoRoute},
		{"no such port", 200, NoRoute},
		{"in a loop", 12, HopLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(r *rig) {
				sw := r.port("s2").Node
				if err := r.fab.SetLFT(sw, 8, tt.out); err != nil {
					t.Fatal(err)
				}
				if r.ask("h1", byLID(8, mad.AttrNodeInfo, 0)) != nil || r.dropped(r.events()) != tt.want {
					t.Errorf("%v", r.events())
				}
				var lft mad.LinearForwardingTable
				lft.DecodeFrom(dataOf(t, r.must("h1", byLID(10, mad.AttrLinearForwardingTable, 0))))
				if lft.Port[8] != tt.out || sw.LFT[8] != 4 {
					t.Errorf("the agent says %d, the model %d", lft.Port[8], sw.LFT[8])
				}
			})
		})
	}
}

func TestGRH(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		h1, h2 := r.port("h1"), r.open("h2")
		w := gmp(2, mad.DefaultPKey)
		w.Addr.SL, w.Addr.HasGRH = 3, true
		w.Addr.GRH = mad.GRH{GID: r.port("h2").GID(r.sub.GIDPrefix), HopLimit: 7, TrafficClass: 9, FlowLabel: 0xabcde}
		r.send("h1", w)
		if len(h2.got()) != 1 {
			t.Fatalf("got %d: %v", len(h2.got()), r.events())
		}
		want := mad.AddressVector{LID: 1, QPN: 1, SL: 3, HasGRH: true,
			GRH: mad.GRH{GID: h1.GID(r.sub.GIDPrefix), HopLimit: 7, TrafficClass: 9, FlowLabel: 0xabcde}}
		if h2.got()[0].Addr != want {
			t.Errorf("got  %+v\nwant %+v", h2.got()[0].Addr, want)
		}
		h1reader := r.open("h1")
		if r.send("h2", h2.got()[0]); len(h1reader.got()) != 1 {
			t.Errorf("the address does not answer: %v", r.events())
		}
	})
}

func TestPartitions(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		h5 := r.open("h5") // 0xffff and 0x0001
		for _, key := range []mad.PKey{0xffff, 0x7fff, 0x8001} {
			h5.reset()
			if r.send("h1", gmp(5, key)); len(h5.got()) != 1 || h5.got()[0].PKey != key {
				t.Errorf("P_Key %s: %v", key, r.events())
			}
		}
	})
}

// TestLMC: path bits choose the source LID, and tell which LID was the destination.
func TestLMC(t *testing.T) {
	sub, err := topo.Parse("lmc.yaml", []byte(`
nodes: [{name: a, kind: ca, port: {1: {lmc: 2}}}, {name: b, kind: ca, port: {1: {lmc: 1}}}]
links: ["a[1] - b[1]"]
`))
	if err != nil {
		t.Fatal(err)
	}
	inBubbleOf(t, sub, Config{}, func(r *rig) {
		a, b := r.port("a"), r.open("b")
		w := gmp(r.port("b").LID+1, mad.DefaultPKey)
		w.Addr.PathBits = 0xff
		r.send("a", w)
		if len(b.got()) != 1 || b.got()[0].Addr.LID != a.LID+3 || b.got()[0].Addr.PathBits != 1 {
			t.Errorf("got %+v", b.got())
		}
	})
}

func TestDelay(t *testing.T) {
	inBubble(t, Config{Faults: Faults{Delay: 3 * time.Millisecond}}, func(r *rig) {
		start := time.Now()
		h1 := r.open("h1")
		r.send("h1", byLID(8, mad.AttrNodeInfo, 0)) // three links out, three home
		time.Sleep(18*time.Millisecond - 1)
		synctest.Wait()
		if len(h1.got()) != 0 {
			t.Error("too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if len(h1.got()) != 1 {
			t.Errorf("not there after %v: %v", time.Since(start), r.events())
		}
		for i, e := range r.events()[:3] {
			if want := start.Add(time.Duration(i+1) * 3 * time.Millisecond); !e.Time.Equal(want) {
				t.Errorf("%v at %v, want %v", e, e.Time, want)
			}
		}
	})
}

// TestOrder: with one delay for all, MADs stay in order.
func TestOrder(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		if err := r.fab.SetAllFaults(Faults{Delay: time.Second}); err != nil {
			t.Fatal(err)
		}
		h2 := r.open("h2")
		for i := range 50 {
			w := gmp(2, mad.DefaultPKey)
			w.MAD[mad.OffTID] = byte(i)
			r.send("h1", w)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for i, w := range h2.got() {
			if int(w.MAD[mad.OffTID]) != i {
				t.Fatalf("number %d comes as %d", w.MAD[mad.OffTID], i)
			}
		}
		if len(h2.got()) != 50 {
			t.Errorf("got %d", len(h2.got()))
		}
	})
}

func TestJitter(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		const delay, jitter = 10 * time.Millisecond, 5 * time.Millisecond
		if err := r.fab.SetFaults(r.port("h1"), Faults{Delay: delay, Jitter: jitter, Duplicate: 1}); err != nil {
			t.Fatal(err)
		}
		var least, most time.Duration = time.Hour, 0
		for range 100 {
			start := time.Now()
			r.send("h1", gmp(2, mad.DefaultPKey))
			time.Sleep(time.Second)
			synctest.Wait()
			for _, e := range r.events() {
				if e.Kind == Cross && e.Hop.From.Node.Name == "h1" {
					d := e.Time.Sub(start)
					least, most = min(least, d), max(most, d)
				}
			}
		}
		if least < delay || most > delay+jitter || most-least < jitter/2 {
			t.Errorf("%v to %v, want %v to %v", least, most, delay, delay+jitter)
		}
	})
}

// TestQueue keeps a backlog for so long that the queue moves down in its array.
func TestQueue(t *testing.T) {
	l := newLink(nil, nil)
	const backlog = queueLimit / 4
	for i := range 2 * queueLimit {
		p := new(packet)
		p.hops = i
		if l.push(p); i >= backlog {
			if got := l.pop(); got.hops != i-backlog {
				t.Fatalf("got %d, want %d", got.hops, i-backlog)
			}
		}
	}
	if cap(l.queue) > 2*queueLimit {
		t.Errorf("array of %d for a backlog of %d", cap(l.queue), backlog)
	}
}

func TestCutWhileOnTheWay(t *testing.T) {
	inBubble(t, Config{Faults: Faults{Delay: time.Second}}, func(r *rig) {
		r.send("h1", gmp(2, mad.DefaultPKey))
		if err := r.fab.Cut(r.port("h1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if r.dropped(r.events()) != LinkDown {
			t.Errorf("%v", r.events())
		}
	})
}

// TestReorder: one in ten is overtaken by those sent up to 5 ms later.
func TestReorder(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		if err := r.fab.SetFaults(r.port("h1"), Faults{Reorder: 0.1, ReorderBy: 5 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		h2 := r.open("h2")
		const n = 200
		for i := range n {
			w := gmp(2, mad.DefaultPKey)
			w.MAD[mad.OffTID] = byte(i)
			r.send("h1", w)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if len(h2.got()) != n {
			t.Fatalf("got %d of %d", len(h2.got()), n)
		}
		late := 0
		for i, w := range h2.got() {
			if int(w.MAD[mad.OffTID]) < i {
				late++
			}
		}
		if late < n/20 || late > n/5 {
			t.Errorf("%d of %d are late, want about %d", late, n, n/10)
		}
	})
}

func TestDuplicate(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		if err := r.fab.SetFaults(r.port("h1"), Faults{Duplicate: 1}); err != nil {
			t.Fatal(err)
		}
		h2 := r.open("h2")
		r.send("h1", gmp(2, mad.DefaultPKey))
		if len(h2.got()) != 2 || h2.got()[0] != h2.got()[1] || r.fab.Stats().Duplicated != 1 {
			t.Errorf("got %d, stats %+v", len(h2.got()), r.fab.Stats())
		}
		r.ports["h1"].reset()
		if r.send("h2", gmp(1, mad.DefaultPKey)); len(r.ports["h1"].got()) != 1 {
			t.Error("the other direction duplicates too")
		}
	})
}

// On a long way where each link doubles what goes over it, one MAD does not become
// 2 to the power of its length.
func TestDuplicateBounded(t *testing.T) {
	inBubble(t, Config{Faults: Faults{Duplicate: 1}}, func(r *rig) {
		there := r.port("s1[11]")
		route := mad.Route{0, 1}
		for range 20 {
			route = append(route, there.Num, there.Peer.Num)
		}
		r.send("h2", byRoute(route, mad.AttrNodeInfo, 0))
		if n := r.fab.Stats().Duplicated; n != 1<<maxCopies-1 || len(r.ports["h2"].got()) != 1<<maxCopies {
			t.Errorf("duplicated %d times, %d answers", n, len(r.ports["h2"].got()))
		}
	})
}

// lossy sends MADs over two links that lose 5 % each and gives which arrived.
func lossy(t *testing.T, seed uint64, n int) (arrived []byte) {
	inBubble(t, Config{Faults: Faults{Loss: 0.05}, Seed: seed}, func(r *rig) {
		h2, got := r.open("h2"), 0
		for range n {
			r.send("h1", gmp(2, mad.DefaultPKey))
			arrived = append(arrived, byte(len(h2.got())))
			got += len(h2.got())
			h2.reset()
		}
		if lost := r.fab.Stats().Dropped[Lost]; int(lost)+got != n {
			t.Errorf("%d lost and %d arrived of %d", lost, got, n)
		}
	})
	return arrived
}

func TestLoss(t *testing.T) {
	const n = 4000
	first := lossy(t, 7, n)
	got, p := 0, 0.95*0.95
	for _, a := range first {
		got += int(a)
	}
	if sigma := math.Sqrt(n * p * (1 - p)); math.Abs(float64(got)-n*p) > 4*sigma {
		t.Errorf("%d of %d arrived, want %.0f +- %.0f", got, n, n*p, 4*sigma)
	}
	if !slices.Equal(first, lossy(t, 7, n)) {
		t.Error("the same seed gives another result")
	}
	if slices.Equal(first, lossy(t, 8, n)) {
		t.Error("another seed gives the same result")
	}
}

func TestRemove(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		h2 := r.open("h2")
		node := r.port("h2").Node
		if err := r.fab.Remove(node, 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if h2.recvErr() != io.EOF {
			t.Errorf("Recv: %v, want io.EOF", h2.recvErr())
		}
		w := gmp(1, mad.DefaultPKey)
		if err := h2.Send(&w); !errors.Is(err, port.ErrGone) {
			t.Errorf("Send: %v", err)
		}
		if _, err := h2.Info(); !errors.Is(err, port.ErrGone) {
			t.Errorf("Info: %v", err)
		}
		if err := h2.Link.(*link).SetIsSM(true); !errors.Is(err, port.ErrGone) {
			t.Errorf("SetIsSM: %v", err)
		}
		if _, err := r.fab.Link(node, 1); !errors.Is(err, port.ErrGone) {
			t.Errorf("Link: %v", err)
		}
		if r.ask("h1", byLID(2, mad.AttrNodeInfo, 0)) != nil || r.dropped(r.events()) != LinkDown {
			t.Errorf("%v", r.events())
		}
		// All that hangs on a switch goes with it.
		if err := r.fab.Remove(r.port("s2").Node, 0); err != nil {
			t.Fatal(err)
		}
		if r.ask("h1", byLID(8, mad.AttrNodeInfo, 0)) != nil || r.dropped(r.events()) != LinkDown {
			t.Errorf("%v", r.events())
		}
	})
}

func TestLinkLife(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		node := r.port("h2").Node
		first := r.open("h2")
		if _, err := r.fab.Link(node, 1); !errors.Is(err, port.ErrBusy) {
			t.Errorf("second Link: %v", err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !errors.Is(first.recvErr(), port.ErrClosed) {
			t.Errorf("Recv after Close: %v", first.recvErr())
		}
		w := gmp(1, mad.DefaultPKey)
		if err := first.Send(&w); !errors.Is(err, port.ErrClosed) {
			t.Errorf("Send after Close: %v", err)
		}
		delete(r.ports, "h2")
		second := r.open("h2")
		if err := first.Close(); err != nil { // must not close the second
			t.Fatal(err)
		}
		if r.send("h1", gmp(2, mad.DefaultPKey)); len(second.got()) != 1 {
			t.Errorf("%v", r.events())
		}
		if err := r.fab.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if second.recvErr() != io.EOF {
			t.Errorf("Recv after the fabric's Close: %v", second.recvErr())
		}
	})
}

func TestReceiverFull(t *testing.T) {
	sub, err := topo.Generate("demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.BringUp(); err != nil {
		t.Fatal(err)
	}
	c := newCore(sub, Config{})
	h1, h2 := c.port(&sub.Nodes[0].Ports[1]), c.port(&sub.Nodes[1].Ports[1])
	h2.link = newLink(nil, h2) // and nobody reads
	w := gmp(2, mad.DefaultPKey)
	for range queueLimit + 3 {
		c.inject(newPacket(h1, &w), mad.QPGSI, 0)
	}
	if c.stats.Delivered != queueLimit || c.dropped[ReceiverFull] != 3 {
		t.Errorf("stats %+v, dropped %v", c.stats, c.dropped)
	}
}

func TestDevice(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		node := r.port("h2").Node
		dev, err := r.fab.Device(node, 1)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := r.fab.Device(node, 1); err != nil || again != dev {
			t.Errorf("another Device: %v", err)
		}
		if info, err := dev.Info(); err != nil || info.LID != 2 {
			t.Errorf("info %+v, %v", info, err)
		}
		if err := dev.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := r.fab.Device(node, 1)
		if err != nil || again == dev {
			t.Errorf("after Close: %v", err)
		}
		if err := r.fab.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := again.Open(); err == nil {
			t.Error("the Device outlives the fabric")
		}
	})
}

// TestThroughDevice asks through the kernel's rules: an agent, its transaction
// id, and a time-out where a link is cut.
func TestThroughDevice(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		dev, err := r.fab.Device(r.port("h1").Node, 1)
		if err != nil {
			t.Fatal(err)
		}
		p, err := dev.Open()
		if err != nil {
			t.Fatal(err)
		}
		id, err := p.Register(port.Registration{QPN: mad.QPSMI, Class: mad.ClassSubnDirected, Version: 1})
		if err != nil {
			t.Fatal(err)
		}
		w := byRoute(mad.Route{0, 1, 12}, mad.AttrNodeInfo, 0)
		ask := func() (m port.Message) {
			t.Helper()
			err := p.Send(&port.Message{Agent: id, Timeout: time.Second, Addr: w.Addr, Data: w.MAD[:]})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Recv(&m); err != nil {
				t.Fatal(err)
			}
			return m
		}
		m := ask()
		var info mad.NodeInfo
		info.DecodeFrom((*[mad.NodeInfoSize]byte)(m.Data[mad.OffSMPData:]))
		if m.TimedOut || m.Addr.LID != mad.PermissiveLID || info.NodeGUID != r.port("s2").GUID {
			t.Errorf("answer %+v", m)
		}
		if err := r.fab.Cut(r.port("s1[12]")); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if m := ask(); !m.TimedOut || time.Since(start) != time.Second {
			t.Errorf("timed out %v after %v", m.TimedOut, time.Since(start))
		}
	})
}

func TestEventText(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		var text []string
		for _, e := range r.send("h1", gmp(2, mad.DefaultPKey)) {
			text = append(text, e.String())
		}
		const what = " class 0x04 method 0x01 attribute 0x0012 TID 0x1122334455667788: "
		want := []string{
			"cross" + what + "h1[1] to s1[1]",
			"cross" + what + "s1[2] to h2[1]",
			"drop" + what + "h2[1]: nobody receives at the port",
		}
		if !slices.Equal(text, want) {
			t.Errorf("got  %q\nwant %q", text, want)
		}
	})
}

func TestMisuse(t *testing.T) {
	other, err := topo.Generate("demo")
	if err != nil {
		t.Fatal(err)
	}
	inBubble(t, Config{}, func(r *rig) {
		s1, free := r.port("s1").Node, r.port("s1[7]")
		_, linkErr := r.fab.Link(s1, 1)
		_, deviceErr := r.fab.Device(other.Nodes[0], 1)
		for _, tt := range []struct {
			name string
			err  error
			want string
		}{
			{"Link of a physical switch port", linkErr, "node s1 has no end port 1"},
			{"Device of another fabric", deviceErr, "node h1 is not of this fabric"},
			{"Remove", r.fab.Remove(s1, 99), "node s1 has no end port 99"},
			{"Cut", r.fab.Cut(free), "port s1[7] has no link in this fabric"},
			{"Restore", r.fab.Restore(&other.Nodes[0].Ports[1]), "port h1[1] has no link in this fabric"},
			{"SetFaults", r.fab.SetFaults(free, Faults{}), "port s1[7] has no link in this fabric"},
			{"SetFaults loss", r.fab.SetFaults(r.port("h1"), Faults{Loss: 1.5}), "Loss 1.5 is no probability"},
			{"SetAllFaults", r.fab.SetAllFaults(Faults{Delay: -1}), "must not be negative"},
			{"SetLFT of a CA", r.fab.SetLFT(r.port("h1").Node, 1, 1), "node h1 is no switch of this fabric"},
			{"SetLFT of a LID not in use", r.fab.SetLFT(s1, 11, 1), "LID 11 is above the highest in use"},
		} {
			if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
				t.Errorf("%s: %v, want %s", tt.name, tt.err, tt.want)
			}
		}
	})
	if _, err := New(other, Config{Faults: Faults{Reorder: math.NaN()}}); err == nil {
		t.Error("New takes NaN for a probability")
	}
}

// FuzzInject: no MAD may panic, every one ends, and each is accounted for once.
func FuzzInject(f *testing.F) {
	seed := func(w wire, from uint8) {
		f.Add(w.MAD[:], uint16(w.Addr.LID), uint8(w.Addr.QPN), uint16(w.PKey), from)
	}
	seed(byRoute(mad.Route{0, 1, 12, 4}, mad.AttrNodeInfo, 0), 0)
	seed(combined(9, 1, 6, mad.Route{0, 12}, mad.AttrPortInfo, 1), 0)
	seed(byLID(9, mad.AttrLinearForwardingTable, 0), 9)
	seed(gmp(8, mad.DefaultPKey), 8)
	set := withKey(byLID(9, mad.AttrPortInfo, 12), mad.MethodSet, 0)
	set.MAD[mad.OffSMPData+33], set.MAD[mad.OffSMPData+36], set.MAD[mad.OffSMPData+43] = 0x30, 0x40, 0x40 // Disabled; MTU, VLs
	seed(set, 0)
	sub, err := topo.Generate("demo")
	if err != nil {
		f.Fatal(err)
	}
	if err := sub.BringUp(); err != nil {
		f.Fatal(err)
	}
	var ends []*topo.Port
	for p := range sub.EndPorts() {
		ends = append(ends, p)
	}
	f.Fuzz(func(t *testing.T, b []byte, lid uint16, qpn uint8, key uint16, from uint8) {
		c := newCore(sub, Config{})
		p := c.port(ends[int(from)%len(ends)])
		p.isSM = from >= 128
		w := wire{Addr: mad.AddressVector{LID: mad.LID(lid), QPN: uint32(qpn)}, PKey: mad.PKey(key)}
		copy(w.MAD[:], b)
		c.inject(newPacket(p, &w), w.Addr.QPN, 0)
		var dropped uint64
		for _, n := range c.dropped {
			dropped += n
		}
		if c.stats.Delivered+dropped != 1 || len(c.work)+len(c.flights) != 0 {
			t.Errorf("stats %+v, dropped %d", c.stats, dropped)
		}
	})
}
