package app

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/topo"
)

// rig is a fabric with an SA that does as a test says; ibsm stands at h2.
type rig struct {
	sub    *topo.Subnet
	fabric *sim.Fabric
	open   func(context.Context, string) (port.Device, error)
}

func demo(t *testing.T) *topo.Subnet {
	t.Helper()
	sub, err := topo.Generate("demo")
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func newRig(t *testing.T, sub *topo.Subnet) *rig {
	t.Helper()
	f, err := sim.New(sub, sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r := &rig{sub: sub, fabric: f}
	r.open = func(context.Context, string) (port.Device, error) {
		h2, _ := sub.NodeByName("h2")
		return f.Device(h2, 1)
	}
	return r
}

// outcome is what is to be seen of a run.
type outcome struct {
	code           int
	stdout, stderr string
}

func (r *rig) run(ctx context.Context, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	code := Run(ctx, Host{Args: append([]string{"ibsm", "--on", "rig"}, args...), Stdout: &stdout, Stderr: &stderr, Open: r.open})
	return outcome{code, stdout.String(), stderr.String()}
}

// document is a json document of the schema.
type document struct {
	Schema, Command, On string
	Records             []map[string]any
	Errors              []struct {
		Type, Kind, Message, Hint string
		Exit                      int
	}
	Complete bool
}

func (o outcome) document(t *testing.T) (d document) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader([]byte(o.stdout)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		t.Fatalf("%v in\n%s", err, o.stdout)
	}
	return d
}

// reply makes the packets that answer a request; n counts requests from 1.
type reply func(n int, req []byte) [][]byte

// script puts an SA on the SM's port that answers by reply.
func (r *rig) script(t *testing.T, reply reply) {
	t.Helper()
	dev, err := r.fabric.Device(r.sub.SM.Node, r.sub.SM.Num)
	if err != nil {
		t.Fatal(err)
	}
	p, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	id, err := p.Register(port.Registration{QPN: mad.QPGSI, Class: mad.ClassSubnAdm, Version: 2, RMPP: port.RMPPUser,
		Methods: port.Methods(mad.MethodGet, mad.MethodGetTable)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		requests := 0
		var m port.Message
		for p.Recv(&m) == nil {
			if m.Data[offFlags]&active != 0 {
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

// Positions in the RMPP and the SA header (IBA 13.6.2.1, 15.2.1.1), and flags.
const (
	offFlags  = mad.OffRMPP + 2
	offOffset = mad.OffRMPPData + 8

	active, first, last = 1, 2, 4
)

// single is an answer in one MAD; offset is its AttributeOffset.
func single(req []byte, status mad.Status, offset uint16, data []byte) []byte {
	b := make([]byte, mad.Size)
	copy(b, req[:mad.OffSAData])
	b[mad.OffMethod] |= mad.ResponseBit
	clear(b[mad.OffRMPP:mad.OffRMPPData])
	binary.BigEndian.PutUint16(b[mad.OffStatus:], uint16(status))
	binary.BigEndian.PutUint16(b[offOffset:], offset)
	copy(b[mad.OffSAData:], data)
	return b
}

// segment is an RMPP packet of type DATA.
func segment(req []byte, offset uint16, flags byte, number, length uint32, data []byte) []byte {
	b := single(req, mad.StatusOK, offset, data)
	b[mad.OffRMPP], b[mad.OffRMPP+1], b[offFlags] = 1, byte(mad.RMPPTypeData), flags
	binary.BigEndian.PutUint32(b[mad.OffRMPP+4:], number)
	binary.BigEndian.PutUint32(b[mad.OffRMPP+8:], length)
	return b
}

// table is a table in one segment, of up to 200 bytes.
func table(req []byte, offset uint16, data []byte) []byte {
	return segment(req, offset, active|first|last, 1, 20+uint32(len(data)), data)
}

func abort(req []byte, status mad.RMPPStatus) []byte {
	b := segment(req, 0, active, 0, 0, nil)
	b[mad.OffRMPP+1], b[mad.OffRMPP+3] = byte(mad.RMPPTypeAbort), byte(status)
	return b
}

// paths is so many encoded PathRecords.
func paths(n int) (data []byte) {
	for i := range n {
		data, _ = (&mad.PathRecord{DLID: mad.LID(i + 1), SLID: 2}).AppendBinary(data)
	}
	return data
}
