package ibsim

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/softmad"
)

// littleEndian skips where the bytes below, seen on x86-64, are not ibsim's.
func littleEndian(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the expected bytes are those of a little-endian host")
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What umad2sim sends (struct sim_ctl and sim_client_info of ibsim.h, and
// sim_client.c): magic, slot, type, length, data.
func TestControlBytes(t *testing.T) {
	littleEndian(t)
	connect := control{op: opConnect}
	(&client{id: 4242, serve: true, node: "Hca1"}).encode(&connect.data)
	setIsSM := control{slot: 3, op: opSetIsSM}
	setIsSM.data[0] = 1
	for _, tt := range []struct {
		name string
		c    control
		want string
	}{
		{"connect", connect, "efbeadde 00000000 01000000 2c000000  92100000 00000000 01000000 48636131"},
		{"disconnect", control{slot: 9, op: opDisconnect}, "efbeadde 09000000 02000000 00000000"},
		{"port info", control{slot: 1, op: opPortInfo}, "efbeadde 01000000 08000000 40000000"},
		{"node info", control{slot: 1, op: opNodeInfo}, "efbeadde 01000000 07000000 40000000"},
		{"P_Keys", control{slot: 1, op: opPKeys}, "efbeadde 01000000 0a000000 40000000"},
		{"set IsSM", setIsSM, "efbeadde 03000000 09000000 04000000  01000000"},
	} {
		var got, want [controlSize]byte
		copy(want[:], unhex(t, tt.want))
		if tt.c.encode(&got); got != want {
			t.Errorf("%s:\n%x, want\n%x", tt.name, got, want)
		}
		var back control
		if err := back.decode(got[:]); err != nil || back != tt.c {
			t.Errorf("%s: decoded as %+v, %v", tt.name, back, err)
		}
	}
}

func TestControlRefused(t *testing.T) {
	var b [controlSize]byte
	(&control{op: opConnect}).encode(&b)
	wrong := b
	wrong[1]++
	for name, b := range map[string][]byte{"nothing": nil, "a byte short": b[:79], "a byte more": append(b[:], 0), "other magic": wrong[:]} {
		if err := new(control).decode(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The longest name keeps its NUL, and one that fills the field ends with it.
func TestClientNode(t *testing.T) {
	long := strings.Repeat("x", maxNode)
	var data [controlData]byte
	(&client{id: 1, node: long + "yz"}).encode(&data)
	if data[12+maxNode] != 0 {
		t.Error("the name has no NUL at its end")
	}
	for i := range data {
		data[i] = 'n'
	}
	var c client
	if c.decode(&data); c.node != strings.Repeat("n", maxNode) {
		t.Errorf("node %q", c.node)
	}
}

func newMAD(class mad.Class, method mad.Method, tid uint64) (m [mad.Size]byte) {
	m[0], m[mad.OffClass], m[mad.OffClassVersion], m[mad.OffMethod] = 1, uint8(class), 1, uint8(method)
	binary.BigEndian.PutUint64(m[mad.OffTID:], tid)
	if class == mad.ClassSubnDirected {
		binary.BigEndian.PutUint32(m[offDrSLID:], 0xffffffff)
	}
	return m
}

// struct sim_request as a 64-bit compiler lays it out: dlid, slid, dqp, sqp,
// status, gap, length.
func TestPacketBytes(t *testing.T) {
	littleEndian(t)
	for _, tt := range []struct {
		name string
		w    softmad.Wire
		want string
	}{
		{"GMP", softmad.Wire{Addr: mad.AddressVector{LID: 0x1234, QPN: 1}, MAD: newMAD(mad.ClassSubnAdm, mad.MethodGet, 5)},
			"12340000 00000000 00000001 00000001 00000000 00000000 0000000000000100"},
		{"GMP from the third of four LIDs", softmad.Wire{Addr: mad.AddressVector{LID: 7, QPN: 1, PathBits: 2}, MAD: newMAD(mad.ClassPerf, mad.MethodGet, 5)},
			"00070000 00420000 00000001 00000001 00000000 00000000 0000000000000100"},
		{"SMP by LID", softmad.Wire{Addr: mad.AddressVector{LID: 7}, MAD: newMAD(mad.ClassSubnLIDRouted, mad.MethodGet, 5)},
			"00070000 00000000 00000000 00000000 00000000 00000000 0000000000000100"},
		{"SMP by directed route", softmad.Wire{Addr: mad.AddressVector{LID: 0xffff}, MAD: newMAD(mad.ClassSubnDirected, mad.MethodGet, 5)},
			"ffff0000 ffff0000 00000000 00000000 00000000 00000000 0000000000000100"},
	} {
		var b [packetSize]byte
		if err := encodePacket(&b, &tt.w, own{lid: 0x40, lmc: 2}); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if want := unhex(t, tt.want); !bytes.Equal(b[:32], want) || !bytes.Equal(b[32:], tt.w.MAD[:]) {
			t.Errorf("%s:\n%x, want\n%x and the MAD", tt.name, b[:], want)
		}
	}
}

// ibsim wants hop pointer 0, and the D bit as the R bit is (sim_mad.c,
// decode_sim_MAD).
func TestDirectedRouteBits(t *testing.T) {
	for _, tt := range []struct {
		method mad.Method
		status uint16 // before
		want   uint16
	}{
		{mad.MethodGet, 0x8000, 0}, {mad.MethodGetResp, 0x001c, 0x801c}, {mad.MethodGetResp, 0x8000, 0x8000},
	} {
		w := softmad.Wire{Addr: mad.AddressVector{LID: mad.PermissiveLID}, MAD: newMAD(mad.ClassSubnDirected, tt.method, 5)}
		w.MAD[offHopPointer], w.MAD[offHopPointer+1] = 3, 2
		binary.BigEndian.PutUint16(w.MAD[mad.OffStatus:], tt.status)
		before := w
		var b [packetSize]byte
		if err := encodePacket(&b, &w, own{}); err != nil {
			t.Fatal(err)
		}
		m := b[offMAD:]
		if got := binary.BigEndian.Uint16(m[mad.OffStatus:]); got != tt.want || m[offHopPointer] != 0 || m[offHopPointer+1] != 2 {
			t.Errorf("%v: status %#04x, hops %x; want %#04x, 0002", tt.method, got, m[offHopPointer:offHopPointer+2], tt.want)
		}
		if w != before {
			t.Errorf("%v: the caller's wire has changed", tt.method)
		}
	}
}

func TestPacketRefused(t *testing.T) {
	combined := softmad.Wire{Addr: mad.AddressVector{LID: 5}, MAD: newMAD(mad.ClassSubnDirected, mad.MethodGet, 5)}
	drSLID := softmad.Wire{Addr: mad.AddressVector{LID: mad.PermissiveLID}, MAD: newMAD(mad.ClassSubnDirected, mad.MethodGet, 5)}
	drSLID.MAD[offDrSLID] = 0
	drDLID := softmad.Wire{Addr: mad.AddressVector{LID: mad.PermissiveLID}, MAD: newMAD(mad.ClassSubnDirected, mad.MethodGet, 5)}
	drDLID.MAD[offDrDLID+1] = 4
	grh := softmad.Wire{Addr: mad.AddressVector{LID: 5, QPN: 1, HasGRH: true}, MAD: newMAD(mad.ClassSubnAdm, mad.MethodGet, 5)}
	for name, w := range map[string]softmad.Wire{"by LID first": combined, "DrSLID": drSLID, "DrDLID": drDLID, "GRH": grh} {
		var b [packetSize]byte
		if err := encodePacket(&b, &w, own{}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, want errors.ErrUnsupported", name, err)
		}
	}
}

// newPacket makes a packet as ibsim forwards one of n bytes, with other bytes
// behind.
func newPacket(m [mad.Size]byte, n int, head string) (b [packetSize]byte) {
	raw, _ := hex.DecodeString(strings.ReplaceAll(head, " ", ""))
	copy(b[:], raw)
	binary.BigEndian.PutUint64(b[offLength:], uint64(n))
	copy(b[offMAD:], m[:])
	for i := n; i < mad.Size; i++ {
		b[offMAD+i] = 0xee
	}
	return b
}

func TestReceivedPacket(t *testing.T) {
	littleEndian(t)
	const head = "00420000 00050000 00000001 00000001 00000000 00000000"
	const returned = "00090000 00420000 00000001 00000001 0000006e 00000000"
	active := newMAD(mad.ClassSubnAdm, mad.MethodGetTableResp, 5)
	active[mad.OffRMPP+2] = 0x01
	responseTime := active
	responseTime[mad.OffRMPP+2] = 0x79
	version1 := active
	version1[mad.OffRMPP] = 1
	perf := newMAD(mad.ClassPerf, mad.MethodGetResp, 5)
	perf[mad.OffRMPP+2] = 0x01 // is no RMPP header there
	from := mad.AddressVector{LID: 5, QPN: 1, PathBits: 2}
	for _, tt := range []struct {
		name   string
		packet [packetSize]byte
		addr   mad.AddressVector
		back   bool
		flags  byte
		cut    int
	}{
		{"whole table of one MAD", newPacket(active, 120, head), from, false, 0, 120},
		{"the flags beside Active stay", newPacket(responseTime, 120, head), from, false, 0x78, 120},
		{"table that may be cut", newPacket(active, 256, head), from, false, 1, 256},
		{"RMPP of version 1", newPacket(version1, 255, head), from, false, 1, 255},
		{"class without RMPP", newPacket(perf, 64, head), from, false, 1, 64},
		{"undelivered", newPacket(active, 256, returned), mad.AddressVector{LID: 9, QPN: 1}, true, 1, 256},
		{"directed", newPacket(newMAD(mad.ClassSubnDirected, mad.MethodGetResp, 5), 256, "ffff0000 ffff0000 00000000 00000000 00000000 00000000"),
			mad.AddressVector{LID: mad.PermissiveLID}, false, 0, 256},
	} {
		var w softmad.Wire
		if err := decodePacket(&w, tt.packet[:], own{lid: 0x40, lmc: 2}); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		want := softmad.Wire{Addr: tt.addr, Undelivered: tt.back}
		copy(want.MAD[:tt.cut], tt.packet[offMAD:])
		want.MAD[mad.OffRMPP+2] = tt.flags
		if w != want {
			t.Errorf("%s:\n%+v, want\n%+v", tt.name, w, want)
		}
	}
}

func TestReceivedMalformed(t *testing.T) {
	good := newPacket(newMAD(mad.ClassSubnAdm, mad.MethodGetResp, 5), 256, "00420000 00050000 00000001 00000001")
	change := func(at int, x byte) []byte {
		b := good
		b[at] = x
		return b[:]
	}
	short, long, huge := good, good, good
	binary.BigEndian.PutUint64(short[offLength:], mad.HeaderSize-1)
	binary.BigEndian.PutUint64(long[offLength:], mad.Size+1)
	binary.BigEndian.PutUint64(huge[offLength:], 1<<63)
	for name, b := range map[string][]byte{
		"nothing": nil, "284 bytes": good[:284], "289 bytes": append(good[:], 0),
		"MAD of 23 bytes": short[:], "of 257": long[:], "of 2^63": huge[:],
		"DLID of 24 bits": change(offDLID+2, 1), "SLID of 24 bits": change(offSLID+2, 1),
	} {
		w := softmad.Wire{PKey: 7}
		if err := decodePacket(&w, b, own{}); err == nil || w != (softmad.Wire{PKey: 7}) {
			t.Errorf("%s: error %v, want one and nothing changed", name, err)
		}
	}
}

// FuzzPacket checks that what is read of any bytes is what they say, and that it
// goes out as it came in.
func FuzzPacket(f *testing.F) {
	good := newPacket(newMAD(mad.ClassSubnAdm, mad.MethodGetTableResp, 5), 200, "00420000 00050000 00000001 00000001")
	directed := newPacket(newMAD(mad.ClassSubnDirected, mad.MethodGetResp, 5), 256, "ffff0000 ffff0000")
	f.Add(good[:], uint8(0))
	f.Add(directed[:], uint8(3))
	f.Add(good[:200], uint8(7))
	f.Fuzz(func(t *testing.T, b []byte, lmc uint8) {
		var w softmad.Wire
		if decodePacket(&w, b, own{lid: 0x40, lmc: lmc & 7}) != nil {
			return
		}
		n := binary.BigEndian.Uint64(b[offLength:])
		for i, got := range w.MAD {
			switch {
			case uint64(i) >= n && got != 0, uint64(i) < n && got != b[offMAD+i] && i != mad.OffRMPP+2:
				t.Fatalf("byte %d of a MAD of %d: %#x", i, n, got)
			}
		}
		if w.Undelivered {
			return
		}
		var again [packetSize]byte
		if encodePacket(&again, &w, own{}) == nil && !bytes.Equal(again[offDLID:offDLID+4], b[offSLID:offSLID+4]) {
			t.Fatalf("the answer goes to %x, the packet came from %x", again[offDLID:offDLID+4], b[offSLID:offSLID+4])
		}
	})
}

// FuzzControl checks that any bytes are refused or read, and encode as they came.
func FuzzControl(f *testing.F) {
	var b [controlSize]byte
	(&control{slot: 3, op: opPortInfo}).encode(&b)
	f.Add(b[:])
	f.Add(b[:40])
	f.Fuzz(func(t *testing.T, b []byte) {
		var c control
		if c.decode(b) != nil {
			return
		}
		var again [controlSize]byte
		c.encode(&again)
		copy(again[12:16], b[12:16]) // the length, which does not count in a reply
		if !bytes.Equal(again[:], b) {
			t.Fatalf("%x became %x", b, again)
		}
		var who client
		who.decode(&c.data)
		if strings.ContainsRune(who.node, 0) || len(who.node) > maxNode {
			t.Fatalf("node %q", who.node)
		}
	})
}
