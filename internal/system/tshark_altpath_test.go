package system

import (
	"testing"
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// cmNode is a CM that is driven by hand. The kernel's RDMA CM sends no alternate
// paths.
type cmNode struct {
	*cm.Machine
	at    *cmHost
	port  port.Port
	agent port.AgentID
	house *cmHouse
}

func (s *stage) node(name string) *cmNode {
	h, p := s.cmHouse, s.port(name)
	dev, err := h.fabric.Device(p.Node, p.Num)
	h.must(err)
	info, err := dev.Info()
	h.must(err)
	out, err := dev.OpenKernel()
	h.must(err)
	n := &cmNode{
		Machine: cm.New(cm.Config{Info: info, Random: uint32(p.LID) << 8}), at: &cmHost{Port: p, house: h, name: name}, house: h,
	}
	n.port = h.tap(out, dev)
	// IBA 16.7.1: class version 2
	n.agent, err = n.port.Register(port.Registration{QPN: mad.QPGSI, Class: mad.ClassComMgt, Version: 2, Methods: port.Methods(mad.MethodSend)})
	h.must(err)
	return n
}

// send carries what a node wants to send, one message, to another, whose event it
// gives.
func (n *cmNode) send(to *cmNode) cm.Event {
	n.house.t.Helper()
	var p cm.Packet
	if !n.Next(&p) {
		n.house.t.Fatalf("%s sends nothing", n.at.name)
	}
	n.house.must(n.port.Send(&port.Message{Agent: n.agent, Addr: p.Addr, Data: p.MAD[:]}))
	var m port.Message
	n.house.must(to.port.Recv(&m))
	to.Receive(time.Now(), m.Addr, mad.DefaultPKey, (*[mad.Size]byte)(m.Data))
	e, ok := to.Event()
	if !ok {
		n.house.t.Fatalf("no event at %s", to.at.name)
	}
	return e
}

// pathTo is a path whose every field has a value.
func (n *cmNode) pathTo(to *cmNode) mad.PathRecord {
	return mad.PathRecord{
		SGID: n.at.gid(n.house.sub), DGID: to.at.gid(n.house.sub), SLID: n.at.LID, DLID: to.at.LID, PKey: 0xffff, SL: 3, TClass: 0xa5, FlowLabel: 0x12345,
		MTU: mad.MTU2048, Rate: mad.Rate25G, PacketLifeTime: 17, Reversible: true,
	}
}

// playAlternatePaths connects h3 to h4 with an alternate path, and loads another.
func playAlternatePaths(s *stage) {
	a, b := s.node("h3"), s.node("h4")
	listener, err := b.Listen(tcpService)
	s.must(err)
	primary := a.pathTo(b)
	alternate := with(primary, func(p *mad.PathRecord) { p.SL, p.PacketLifeTime, p.Rate = 5, 18, mad.Rate40G })
	c := a.NewID()
	now := time.Now()
	s.must(c.Connect(now, &cm.Request{
		Primary: primary, Alternate: &alternate, ServiceID: tcpService, QPN: 0x900001, QPType: cm.UC, StartingPSN: 0x654321,
		RemoteCMResponseTimeout: 20, LocalCMResponseTimeout: 19, MaxCMRetries: 15, PrivateData: []byte("request"),
	}))
	d := a.send(b).ID
	s.must(d.Reply(now, &cm.Reply{QPN: 0x900002, StartingPSN: 0x123456, FailoverAccepted: mad.FailoverRejected, PrivateData: []byte("reply")}))
	b.send(a)
	s.must(c.ReadyToUse(now, []byte("ready")))
	a.send(b)
	s.must(c.LoadAlternatePath(now, &cm.AlternatePath{Path: alternate, RemoteCMResponseTimeout: 21, PrivateData: []byte("load")}))
	a.send(b)
	s.must(d.Acknowledge(now, &cm.Receipt{ServiceTimeout: 22, PrivateData: []byte("wait")}))
	b.send(a)
	s.must(d.ReplyAlternatePath(now, &cm.AlternatePathReply{Status: mad.APStatus(1), Info: []byte("info"), PrivateData: []byte("no")}))
	b.send(a)
	s.must(c.Disconnect(now, []byte("end")))
	a.send(b)
	s.must(d.ReplyDisconnect(now, []byte("ended")))
	b.send(a)
	listener.Destroy(now)
	s.must(a.port.Close())
	s.must(b.port.Close())
}

func checkAlternatePaths(t *testing.T, at []*cmPacket) {
	local, remote := at[0].shown(t, "req"), at[1].shown(t, "rep")
	at[0].expectShown(t, map[string]uint64{
		"req.alt_locallid": 3, "req.alt_remotelid": 4, "req.alt_sl": 5, "req.alt_tfcclass": 0xa5, "req.alt_localacktout": 19, "req.prim_localacktout": 18,
		"req.prim_sl": 3, "req.startpsn": 0x654321, "req.transpsvctype": 1, "req.alt_subnetlocal": 1,
	})
	at[1].expectShown(t, map[string]uint64{"rep.failoveracc": 2, "rep.startpsn": 0x123456})
	lap, mra, apr := at[3], at[4], at[5]
	lap.expectBits(t, [4]uint64{0, 0, 32, local}, [4]uint64{4, 0, 32, remote}, [4]uint64{12, 0, 24, 0x900002}, [4]uint64{15, 0, 5, 21},
		[4]uint64{20, 0, 16, 3}, [4]uint64{22, 0, 16, 4}, [4]uint64{56, 0, 20, 0x12345}, [4]uint64{59, 0, 8, 0xa5}, [4]uint64{60, 0, 8, 0},
		[4]uint64{61, 2, 6, uint64(mad.Rate40G)}, [4]uint64{62, 0, 4, 5}, [4]uint64{62, 4, 1, 1}, [4]uint64{63, 0, 5, 19})
	for off, want := range map[int]string{24: at[0].Shown("infiniband.cm.req.prim_localgid"), 40: at[0].Shown("infiniband.cm.req.prim_remotegid")} {
		if got := mad.GID(lap.b[off : off+16]); got.String() != want {
			t.Errorf("GID %v at byte %d of LAP, want %s", got, off, want)
		}
	}
	lap.expectBytes(t, 64, "load")
	// About another message than REQ and REP: 2.
	mra.expectBits(t, [4]uint64{0, 0, 32, remote}, [4]uint64{4, 0, 32, local}, [4]uint64{8, 0, 2, 2}, [4]uint64{9, 0, 5, 22})
	mra.expectBytes(t, 10, "wait")
	apr.expectBits(t, [4]uint64{0, 0, 32, remote}, [4]uint64{4, 0, 32, local}, [4]uint64{8, 0, 8, 4}, [4]uint64{9, 0, 8, 1})
	apr.expectBytes(t, 12, "info"+string(make([]byte, 68))+"no")
}
