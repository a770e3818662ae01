package ibsimtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ibsm/ibsm/mad"
)

// FakeNode is a node of a [Fake]. Every node has one port, Active, and reaches
// every other.
type FakeNode struct {
	ID, Desc string
	Type     mad.NodeType // 0: a channel adapter
	GUID     mad.GUID
	LID      mad.LID
	LMC      uint8
}

// Fake speaks ibsim's protocol, written from its sources (ibsim.c, sim_mad.c) in
// their order, for a fabric of nodes that all reach each other. Its own agents
// answer Get of NodeDescription, NodeInfo and PortInfo.
type Fake struct {
	Socket string // base name of its sockets

	// Mute has control messages go without replies.
	Mute atomic.Bool

	nodes []FakeNode
	ctl   *net.UnixConn
	work  sync.WaitGroup

	mu      sync.Mutex
	clients [10]fakeClient
	sm      func(m *[mad.Size]byte) (length int)
	empty   int // packets of no bytes that came
}

type fakeClient struct {
	conn *net.UnixConn // its end of the data socket
	id   uint32        // 0: the slot is free
	node *FakeNode
	issm bool
	isSM bool // of the port's CapabilityMask
}

var fakes atomic.Uint32

// NewFake starts a fake, which ends with the test.
func NewFake(t testing.TB, nodes ...FakeNode) *Fake {
	t.Helper()
	f := &Fake{Socket: fmt.Sprintf("ibsm-fake-%d-%d", syscall.Getpid(), fakes.Add(1)), nodes: nodes}
	for i := range f.clients {
		f.clients[i].conn = f.listen(t, "out%d", i)
	}
	f.ctl = f.listen(t, "ctl")
	t.Cleanup(f.Stop)
	f.work.Go(f.serveControl)
	for i := range f.clients {
		f.work.Go(func() { f.serveData(i) })
	}
	return f
}

func (f *Fake) address(format string, args ...any) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixgram", Name: "@" + f.Socket + ":" + fmt.Sprintf(format, args...) + "\x00"}
}

func (f *Fake) listen(t testing.TB, format string, args ...any) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", f.address(format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// Stop ends the fake as a signal ends ibsim.
func (f *Fake) Stop() {
	f.ctl.Close()
	for i := range f.clients {
		f.clients[i].conn.Close()
	}
	f.work.Wait()
}

// PlaySM has sm play OpenSM at LID 1: it is given the requests that go there and
// that nobody else takes, turns them into their answers in place, and gives the
// length of these; 0 does not answer.
func (f *Fake) PlaySM(sm func(m *[mad.Size]byte) (length int)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sm = sm
}

const smLID mad.LID = 1

// Clients is how many slots are taken.
func (f *Fake) Clients() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.clients {
		if f.clients[i].id != 0 {
			n++
		}
	}
	return n
}

// Empty is how many packets of no bytes came.
func (f *Fake) Empty() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.empty
}

// serveControl is ibsim's sim_ctl.
func (f *Fake) serveControl() {
	native := binary.NativeEndian
	for {
		var b [81]byte
		n, from, err := f.ctl.ReadFromUnix(b[:])
		if err != nil {
			return
		}
		slot, op := native.Uint32(b[4:]), native.Uint32(b[8:])
		if n != 80 || native.Uint32(b[:]) != 0xdeadbeef || slot >= 10 && op != 1 || f.Mute.Load() {
			continue
		}
		f.mu.Lock()
		ok := f.control(op, &f.clients[slot%10], (*[64]byte)(b[16:]))
		f.mu.Unlock()
		if !ok {
			native.PutUint32(b[8:], 0)
		}
		from.Name += "\x00" // which package net takes for the end of the name
		if _, err := f.ctl.WriteToUnix(b[:80], from); err != nil {
			continue // who asked is gone
		}
	}
}

func (f *Fake) control(op uint32, c *fakeClient, data *[64]byte) bool {
	switch op {
	case 1:
		return f.connect(data)
	case 2:
		c.id = 0
	case 7:
		info := f.nodeInfo(c.node)
		info.PortGUID = info.NodeGUID // as ibsim has it
		info.EncodeTo((*[mad.NodeInfoSize]byte)(data[:]))
	case 8:
		info := f.portInfo(c.node)
		info.EncodeTo(data)
	case 9:
		c.issm = binary.NativeEndian.Uint32(data[:]) != 0
		for i := range f.clients {
			if f.clients[i].node == c.node {
				f.clients[i].isSM = c.issm
			}
		}
	case 10:
		*data = [64]byte{0xff, 0xff, 0x80, 0x01}
	}
	return true
}

// connect is ibsim's sim_ctl_new_client.
func (f *Fake) connect(data *[64]byte) bool {
	native := binary.NativeEndian
	id, issm := native.Uint32(data[0:]), native.Uint32(data[8:]) != 0
	name, _, _ := bytes.Cut(data[12:44], []byte{0})
	slot := 0
	for slot < len(f.clients) && f.clients[slot].id != 0 {
		slot++
	}
	node := f.find(string(name))
	if slot == len(f.clients) || node == nil {
		return false
	}
	for i := range f.clients {
		if c := &f.clients[i]; issm && c.id != 0 && c.node == node && c.issm {
			return false
		}
	}
	c := &f.clients[slot]
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return false
	}
	var connectErr error
	err = raw.Control(func(fd uintptr) {
		connectErr = syscall.Connect(int(fd), &syscall.SockaddrUnix{Name: f.address("in%d", id).Name})
	})
	if err != nil || connectErr != nil {
		f.ctl.Close() // ibsim ends here, too
		return false
	}
	c.id, c.node, c.issm = id, node, issm
	native.PutUint32(data[0:], uint32(slot))
	clear(data[12:44])
	copy(data[12:43], node.ID)
	return true
}

func (f *Fake) find(name string) *FakeNode {
	if name == "" {
		return &f.nodes[0]
	}
	for i := range f.nodes {
		if f.nodes[i].ID == name {
			return &f.nodes[i]
		}
	}
	for i := range f.nodes {
		if f.nodes[i].Desc == name {
			return &f.nodes[i]
		}
	}
	return nil
}

func (f *Fake) nodeInfo(n *FakeNode) mad.NodeInfo {
	info := mad.NodeInfo{
		BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeTypeCA, NumPorts: 1,
		NodeGUID: n.GUID, PortGUID: n.GUID + 1, SystemImageGUID: n.GUID, LocalPortNum: 1, PartitionCap: 32,
	}
	if n.Type == mad.NodeTypeSwitch {
		info.NodeType, info.PortGUID, info.LocalPortNum = mad.NodeTypeSwitch, n.GUID, 0
	}
	return info
}

func (f *Fake) portInfo(n *FakeNode) mad.PortInfo {
	info := mad.PortInfo{
		LID: n.LID, LMC: n.LMC, MasterSMLID: smLID, GidPrefix: mad.DefaultGIDPrefix,
		PortState: mad.PortStateActive, PortPhysicalState: mad.PortPhysStateLinkUp,
		LinkWidthActive: mad.LinkWidth4X, LinkSpeedActive: 4, LocalPortNum: 1, GUIDCap: 1,
	}
	for i := range f.clients {
		if c := &f.clients[i]; c.node == n && c.isSM {
			info.CapabilityMask |= mad.CapIsSM
		}
	}
	return info
}
