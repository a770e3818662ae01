package sa

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/topo"
)

// rig is a simulated fabric.
type rig struct {
	sub    *topo.Subnet
	fabric *sim.Fabric
}

func newRig(t testing.TB, sub *topo.Subnet, err error) *rig {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	f, err := sim.New(sub, sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &rig{sub, f}
}

func newDemo(t testing.TB) *rig {
	sub, err := topo.Generate("demo")
	return newRig(t, sub, err)
}

func (r *rig) port(name string) *topo.Port {
	p, _ := r.sub.PortByName(name)
	return p
}

func (r *rig) gid(name string) mad.GID { return r.port(name).GID(r.sub.GIDPrefix) }

func (r *rig) device(t testing.TB, p *topo.Port) port.Device {
	t.Helper()
	dev, err := r.fabric.Device(p.Node, p.Num)
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// serve puts an SA on the SM's port.
func (r *rig) serve(t testing.TB) { r.serveBy(t, port.RMPPKernel) }

func (r *rig) serveBy(t testing.TB, mode port.RMPPMode) {
	t.Helper()
	s, err := server.New(r.device(t, r.sub.SM), r.sub, server.Config{RMPP: mode})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
}

// client opens a client on a port. Its back-off has no random part left: it is
// always the whole.
func (r *rig) client(t testing.TB, name string, cfg Config) *Client {
	t.Helper()
	c, err := NewClient(r.device(t, r.port(name)), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.jitter = func(d time.Duration) time.Duration { return d }
	t.Cleanup(func() { c.Close() })
	return c
}

// script is an SA that sends, for each request, the packets that reply makes of
// it; n counts the requests from 1.
func (r *rig) script(t testing.TB, reply func(n int, req []byte) [][]byte) {
	t.Helper()
	p, err := r.device(t, r.sub.SM).Open()
	if err != nil {
		t.Fatal(err)
	}
	id, err := p.Register(port.Registration{QPN: mad.QPGSI, Class: mad.ClassSubnAdm, Version: 2, RMPP: port.RMPPUser,
		Methods: port.Methods(mad.MethodGet, mad.MethodGetTable, mad.MethodSet, mad.MethodDelete)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		requests := 0
		for {
			var m port.Message
			if err := p.Recv(&m); err != nil {
				return
			}
			if m.Data[mad.OffRMPP+2]&1 != 0 {
				continue // an ACK
			}
			requests++
			for _, packet := range reply(requests, m.Data) {
				if err := p.Send(&port.Message{Agent: id, Addr: m.Addr, Data: packet}); err != nil {
					t.Errorf("the scripted SA cannot send: %v", err)
				}
			}
		}
	}()
	t.Cleanup(func() { p.Close(); <-ended })
}

// single is an answer in one MAD.
func single(req []byte, status mad.Status, offset uint16, data ...byte) []byte {
	b := make([]byte, mad.Size)
	copy(b, req[:mad.OffSAData])
	if b[mad.OffMethod] == 0x02 { // GetResp answers Set (IBA 15.2.2)
		b[mad.OffMethod] = 0x01
	}
	b[mad.OffMethod] |= mad.ResponseBit
	clear(b[mad.OffRMPP:mad.OffRMPPData])
	binary.BigEndian.PutUint16(b[mad.OffStatus:], uint16(status))
	binary.BigEndian.PutUint16(b[offAttributeOffset:], offset)
	copy(b[mad.OffSAData:], data)
	return b
}

// Flags of an RMPP packet (IBA 13.6.2.1).
const active, first, last = 1, 2, 4

// packet is an RMPP packet of type DATA.
func packet(req []byte, offset uint16, flags byte, segment, length uint32, data []byte) []byte {
	b := single(req, mad.StatusOK, offset, data...)
	b[mad.OffRMPP], b[mad.OffRMPP+1], b[mad.OffRMPP+2] = 1, 1, flags
	binary.BigEndian.PutUint32(b[mad.OffRMPP+4:], segment)
	binary.BigEndian.PutUint32(b[mad.OffRMPP+8:], length)
	return b
}

// table is a whole table of up to 200 bytes in one segment.
func table(req []byte, offset uint16, data []byte) []byte {
	return packet(req, offset, active|first|last, 1, 20+uint32(len(data)), data)
}

// abort is an RMPP packet of type ABORT with a status.
func abort(req []byte, status mad.RMPPStatus) []byte {
	b := packet(req, 0, active, 0, 0, nil)
	b[mad.OffRMPP+1], b[mad.OffRMPP+3] = 4, byte(status)
	return b
}

// paths gives so many encoded PathRecords with DLIDs from 1.
func paths(n int) (data []byte) {
	for i := range n {
		data, _ = (&mad.PathRecord{ServiceID: 1, DLID: mad.LID(i + 1), SLID: 7}).AppendBinary(data)
	}
	return data
}
