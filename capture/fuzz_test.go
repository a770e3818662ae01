package capture_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/ibsm/ibsm/capture"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// FuzzRecord records arbitrary messages, sent and received: gopacket reads the
// file back, with records of the right number and lengths.
func FuzzRecord(f *testing.F) {
	f.Add(newMAD(mad.ClassSubnDirected, mad.MethodGet), uint8(port.RMPPNone), uint16(0xffff), uint32(0), uint16(0), uint8(0), true, false, uint32(0))
	f.Add(newLong(mad.MethodGetTableResp, 450), uint8(port.RMPPKernel), uint16(3), uint32(1), uint16(1), uint8(3), false, true, uint32(0xfffff))
	f.Add(newLong(mad.MethodGetTableResp, 0), uint8(port.RMPPKernel), uint16(3), uint32(1<<31), uint16(9), uint8(255), false, true, uint32(1<<31))
	f.Add(newMAD(mad.ClassComMgt, mad.MethodSend)[:30], uint8(port.RMPPKernel), uint16(3), uint32(1), uint16(0), uint8(0), false, false, uint32(0))
	f.Add([]byte{}, uint8(port.RMPPUser), uint16(0), uint32(0), uint16(0), uint8(0), false, false, uint32(0))
	f.Fuzz(func(t *testing.T, data []byte, mode uint8, lid uint16, qpn uint32, pkeyIndex uint16, bits uint8, timedOut, hasGRH bool, flow uint32) {
		m := port.Message{
			Agent: port.AgentID(pkeyIndex), TimedOut: timedOut, Timeout: time.Duration(flow), Retries: int(bits), Data: data,
			Addr: mad.AddressVector{
				LID: mad.LID(lid), QPN: qpn, SL: bits, PathBits: bits, PKeyIndex: pkeyIndex,
				HasGRH: hasGRH, GRH: mad.GRH{GIDIndex: bits, HopLimit: bits, TrafficClass: bits, FlowLabel: flow},
			},
		}
		s := newStub()
		s.incoming = []port.Message{m, m}
		var file bytes.Buffer
		w := capture.NewWriter(&file)
		p, err := capture.Device(s, w).Open()
		if err != nil {
			t.Fatal(err)
		}
		p.Register(port.Registration{RMPP: port.RMPPMode(mode)})
		m.TimedOut = false
		for range 2 {
			if err := p.Send(&m); err != nil {
				t.Fatal(err)
			}
			if err := p.Recv(new(port.Message)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}

		length := 16 + 290
		if hasGRH {
			length += 40
		}
		pads := 0
		entries := read(t, file.Bytes())
		for _, e := range entries {
			switch {
			case len(e.data) == 16 && timedOut:
				pads++
			case len(e.data) != length:
				t.Errorf("record of %d bytes, want %d", len(e.data), length)
			case int(e.data[10])<<8|int(e.data[11]) != length || int(e.data[14])<<8|int(e.data[15]) != length-16:
				t.Errorf("ERF header %x of a record of %d bytes", e.data[:16], length)
			}
		}
		if timedOut != (pads == 2) || len(entries) < 4 || len(entries) > 4+4*len(data)/100 {
			t.Errorf("%d records, %d of them time-outs, for messages of %d bytes", len(entries), pads, len(data))
		}
	})
}
