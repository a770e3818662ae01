package capture_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/capture"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// Packets, byte by byte. ERF header: time stamp, little-endian (the clock of the
// bubble is at 2000-01-01, 0x386d4380 s), type 21, flags, record length, loss
// counter, wire length. LRH (IBA 7.7): VL and LVer, SL and LNH, DLID, length in
// words from here to the ICRC, SLID. GRH (IBA 8.3): version 6, traffic class, flow
// label, length in bytes behind it up to the ICRC, next header 0x1b, hop limit,
// SGID, DGID. BTH (IBA 9.2): opcode 0x64, flags, P_Key, destination QP, PSN.
// DETH (IBA 9.3.3): Q_Key, source QP.
func TestPackets(t *testing.T) {
	const (
		local  = "00000000 80436d38 15 04 0132 0000 0122" // 16 + 290 bytes
		global = "00000000 80436d38 15 04 015a 0000 014a" // 16 + 330 bytes
		own0   = "fe80000000000000 0002c90300000011"
		own1   = "0000000000002001 0000000000000011"
		far    = "fe80000000000000 0002c90300000099"
	)
	farGID := mad.MakeGID(mad.DefaultGIDPrefix, 0x0002c90300000099)
	for _, c := range []struct {
		name  string
		class mad.Class
		addr  mad.AddressVector
		sent  string // headers of the packet if it is sent
		recv  string // if it is received
	}{
		{"SMP by LID", mad.ClassSubnLIDRouted, mad.AddressVector{LID: 0x22, SL: 3},
			local + "f0 32 0022 0048 0010 | 64 00 ffff 00000000 00000000 | 00000000 00000000",
			local + "f0 32 0010 0048 0022 | 64 00 ffff 00000000 00000000 | 00000000 00000000"},
		{"SMP by directed route", mad.ClassSubnDirected, mad.AddressVector{LID: mad.PermissiveLID},
			local + "f0 02 ffff 0048 ffff | 64 00 ffff 00000000 00000000 | 00000000 00000000",
			local + "f0 02 ffff 0048 ffff | 64 00 ffff 00000000 00000000 | 00000000 00000000"},
		{"SMP by LID and directed route", mad.ClassSubnDirected, mad.AddressVector{LID: 0x22},
			local + "f0 02 0022 0048 0010 | 64 00 ffff 00000000 00000000 | 00000000 00000000",
			local + "f0 02 0010 0048 0022 | 64 00 ffff 00000000 00000000 | 00000000 00000000"},
		{"SA", mad.ClassSubnAdm, mad.AddressVector{LID: 1, QPN: 1},
			local + "00 02 0001 0048 0010 | 64 00 ffff 00000001 00000000 | 80010000 00000001",
			local + "00 02 0010 0048 0001 | 64 00 ffff 00000001 00000000 | 80010000 00000001"},
		{"path bits, second P_Key, other QP", mad.ClassComMgt, mad.AddressVector{LID: 0x22, QPN: 0x123456, SL: 15, PathBits: 3, PKeyIndex: 1},
			local + "00 f2 0022 0048 0013 | 64 00 8001 00123456 00000000 | 80010000 00000001",
			local + "00 f2 0013 0048 0022 | 64 00 8001 00000001 00000000 | 80010000 00123456"},
		{"P_Key that the table lacks", mad.ClassPerf, mad.AddressVector{LID: 0x22, QPN: 1, PKeyIndex: 7},
			local + "00 02 0022 0048 0010 | 64 00 ffff 00000001 00000000 | 80010000 00000001",
			local + "00 02 0010 0048 0022 | 64 00 ffff 00000001 00000000 | 80010000 00000001"},
		{"GRH", mad.ClassSubnAdm, mad.AddressVector{LID: 0x22, QPN: 1, SL: 1, HasGRH: true, GRH: mad.GRH{GID: farGID}},
			global + "00 13 0022 0052 0010 | 60000000 0118 1b 00" + own0 + far + "| 64 00 ffff 00000001 00000000 | 80010000 00000001",
			global + "00 13 0010 0052 0022 | 60000000 0118 1b 00" + far + own0 + "| 64 00 ffff 00000001 00000000 | 80010000 00000001"},
		{"GRH with all fields, no LIDs", mad.ClassComMgt,
			mad.AddressVector{QPN: 1, HasGRH: true, GRH: mad.GRH{GID: farGID, GIDIndex: 1, HopLimit: 64, TrafficClass: 0xa5, FlowLabel: 0xfff12345}},
			global + "00 03 0000 0052 0010 | 6a512345 0118 1b 40" + own1 + far + "| 64 00 ffff 00000001 00000000 | 80010000 00000001",
			global + "00 03 0010 0052 0000 | 6a512345 0118 1b 40" + far + own1 + "| 64 00 ffff 00000001 00000000 | 80010000 00000001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := port.Message{Addr: c.addr, Data: newMAD(c.class, mad.MethodGet)}
				s := newStub()
				s.incoming = []port.Message{m}
				var file bytes.Buffer
				w := capture.NewWriter(&file)
				p := capture.Port(s, s.Info, w)
				var got port.Message
				if err := p.Send(&m); err != nil {
					t.Fatal(err)
				}
				if err := p.Recv(&got); err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				entries := read(t, file.Bytes())
				if len(entries) != 2 {
					t.Fatalf("%d records, want 2", len(entries))
				}
				checkPacket(t, "sent", entries[0].data, c.sent, m.Data)
				checkPacket(t, "received", entries[1].data, c.recv, m.Data)
			})
		})
	}
}

// checkPacket compares a record with its headers in hexadecimal, the MAD, and 4
// bytes of ICRC and 2 of VCRC.
func checkPacket(t *testing.T, what string, got []byte, headers string, m []byte) {
	t.Helper()
	want, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "").Replace(headers))
	if err != nil {
		t.Fatal(err)
	}
	want = append(append(want, m...), 0, 0, 0, 0, 0, 0)
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n%x, want\n%x", what, got, want)
	}
}
