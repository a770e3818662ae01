package mad_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// structures makes one of each generated struct.
var structures = []func() mad.Structure{
	newOf[mad.Header], newOf[mad.SMPLIDHeader], newOf[mad.SMPDirectedHeader], newOf[mad.SMPDirectedPaths], newOf[mad.RMPPHeader], newOf[mad.SAHeader],
	newOf[mad.ClassPortInfo],
	newOf[mad.Trap64Details], newOf[mad.Trap128Details], newOf[mad.Trap129Details], newOf[mad.Trap144Details], newOf[mad.Trap145Details], newOf[mad.Trap256Details],
	newOf[mad.Trap257Details], newOf[mad.Trap259Details], newOf[mad.Notice], newOf[mad.SMPNotice], newOf[mad.InformInfo],
	newOf[mad.NodeDescription], newOf[mad.NodeInfo], newOf[mad.SwitchInfo], newOf[mad.GUIDInfo], newOf[mad.PortInfo], newOf[mad.SMInfo], newOf[mad.VendorDiag],
	newOf[mad.LedInfo], newOf[mad.PortInfoExtended], newOf[mad.MlnxExtPortInfo],
	newOf[mad.PKeyTable], newOf[mad.SLtoVLMappingTable], newOf[mad.VLWeight], newOf[mad.VLArbitrationTable], newOf[mad.LinearForwardingTable],
	newOf[mad.RandomForwardingEntry], newOf[mad.RandomForwardingTable], newOf[mad.MulticastForwardingTable],
	newOf[mad.NodeRecord], newOf[mad.PathRecord], newOf[mad.LinkRecord], newOf[mad.ServiceRecord], newOf[mad.ServiceAssociationRecord], newOf[mad.MCMemberRecord],
	newOf[mad.InformInfoRecord],
	newOf[mad.PortInfoRecord], newOf[mad.SwitchInfoRecord], newOf[mad.SMInfoRecord], newOf[mad.GUIDInfoRecord], newOf[mad.PKeyTableRecord],
	newOf[mad.SLtoVLMappingTableRecord], newOf[mad.VLArbitrationTableRecord], newOf[mad.LinearForwardingTableRecord],
	newOf[mad.RandomForwardingTableRecord], newOf[mad.MulticastForwardingTableRecord],
	newOf[mad.ConnectRequest], newOf[mad.MsgRcptAck], newOf[mad.ConnectReject], newOf[mad.ConnectReply], newOf[mad.ReadyToUse], newOf[mad.DisconnectRequest],
	newOf[mad.DisconnectReply], newOf[mad.LoadAlternatePath], newOf[mad.AlternatePathResponse], newOf[mad.ServiceIDResReq], newOf[mad.ServiceIDResReqResp],
	newOf[mad.IPCMHeader],
}

func newOf[T any, P interface {
	*T
	mad.Structure
}]() mad.Structure {
	return P(new(T))
}

func TestAllStructuresTested(t *testing.T) {
	have := map[*layout.Struct]bool{}
	for _, make := range structures {
		have[make().Layout()] = true
	}
	for _, g := range layout.Groups {
		for _, s := range g.Structs {
			if !have[s] {
				t.Errorf("%s is not in the list", s.Name)
			}
		}
	}
}

// bitByBit is the independent oracle: bit 0 is the top bit of the first byte.
func bitByBit(b []byte, off, n int) (v uint64) {
	for i := off; i < off+n; i++ {
		v = v<<1 | uint64(b[i/8]>>(7-i%8)&1)
	}
	return v
}

// agree checks that struct, table engine and oracle read the same from b, and
// that both ways of writing give b back.
func agree(t *testing.T, v mad.Structure, b []byte) {
	t.Helper()
	if err := v.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	back, err := v.AppendBinary([]byte("before"))
	if err != nil || !bytes.Equal(back, append([]byte("before"), b...)) {
		t.Fatalf("%T: %x decoded and encoded is %x, %v", v, b, back, err)
	}
	agreeFields(t, reflect.ValueOf(v).Elem(), v.Layout(), b)
}

func agreeFields(t *testing.T, v reflect.Value, s *layout.Struct, b []byte) {
	t.Helper()
	written := make([]byte, s.Size)
	for i := range s.Fields {
		f := &s.Fields[i]
		if f.Kind == layout.KindStruct {
			for j := range max(f.Count, 1) {
				e, m := f, v.FieldByName(f.GoName())
				if f.Count > 0 {
					one := f.Element(j)
					e, m = &one, m.Index(j)
				}
				agreeFields(t, m, e.Of, e.Bytes(b))
				copy(e.Bytes(written), e.Bytes(b))
			}
			continue
		}
		if !f.IsNumber() { // bytes, GIDs and long reserved rows
			for j := range f.Len / 8 {
				layout.SetUint(written, f.Off+8*j, 8, bitByBit(b, f.Off+8*j, 8))
			}
			if m := v.FieldByName(f.GoName()); !f.IsReserved() && !bytes.Equal(bytesOf(m), f.Bytes(b)) {
				t.Fatalf("%s.%s: %x in the struct, %x in the bytes", s.Name, f.Name, bytesOf(m), f.Bytes(b))
			}
			continue
		}
		for j := range max(f.Count, 1) {
			e := *f
			if f.Count > 0 {
				e = f.Element(j)
			}
			want := bitByBit(b, e.Off, e.Len)
			if got := e.Uint(b); got != want {
				t.Fatalf("%s.%s: table engine reads %#x, bit by bit it is %#x", s.Name, e.Name, got, want)
			}
			if err := e.SetUint(written, want); err != nil {
				t.Fatal(err)
			}
			if f.IsReserved() {
				continue
			}
			m := v.FieldByName(f.GoName())
			if f.Count > 0 {
				m = m.Index(j)
			}
			if got := number(m); got != want {
				t.Fatalf("%s.%s: struct has %#x, bit by bit it is %#x", s.Name, e.Name, got, want)
			}
		}
	}
	if !bytes.Equal(written, b) {
		t.Fatalf("%s: rows written one by one give %x, want %x", s.Name, written, b)
	}
}

func number(v reflect.Value) uint64 {
	if v.Kind() == reflect.Bool {
		if v.Bool() {
			return 1
		}
		return 0
	}
	return v.Uint()
}

func bytesOf(v reflect.Value) []byte {
	b := make([]byte, v.Len())
	for i := range b {
		b[i] = byte(v.Index(i).Uint())
	}
	return b
}

func TestAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, make := range structures {
		v := make()
		t.Run(v.Layout().Name, func(t *testing.T) {
			b := bytes.Repeat([]byte{0xff}, v.Layout().Size)
			agree(t, v, b)
			clear(b)
			agree(t, v, b)
			for bit := range 8 * len(b) { // walking one
				b[bit/8] = 0x80 >> (bit % 8)
				agree(t, v, b)
				b[bit/8] = 0
			}
			for range 50 {
				for i := range b {
					b[i] = byte(rng.Uint32())
				}
				agree(t, v, b)
			}
		})
	}
}

func FuzzCodec(f *testing.F) {
	for i := range structures {
		f.Add(uint8(i), bytes.Repeat([]byte{0x96, 0x0f, 0xa5}, 50))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		v := structures[int(which)%len(structures)]()
		b := make([]byte, v.Layout().Size)
		copy(b, data)
		agree(t, v, b)
	})
}

// Bytes of any other length are refused, and the struct is left as it was.
func TestTruncated(t *testing.T) {
	for _, make := range structures {
		v := make()
		s := v.Layout()
		long := bytes.Repeat([]byte{0xff}, s.Size+1)
		for n := range s.Size + 2 {
			if n == s.Size {
				continue
			}
			err := v.UnmarshalBinary(long[:n])
			var bad *mad.LengthError
			if !errors.As(err, &bad) || bad.Got != n || bad.Want != s.Size || bad.Struct != s.Name {
				t.Fatalf("%s from %d bytes: %v", s.Name, n, err)
			}
			if !reflect.DeepEqual(v, make()) {
				t.Fatalf("%s from %d bytes has changed", s.Name, n)
			}
		}
	}
}

// A number too wide for its field does not spill into its neighbours.
func TestEncodeMasks(t *testing.T) {
	var b [mad.PathRecordSize]byte
	p := mad.PathRecord{FlowLabel: 1<<32 - 1, NumbPath: 0xff, SL: 0xff, MTU: 0xff, Rate: 0xff, PacketLifeTime: 0xff, QoSClass: 0xffff}
	p.EncodeTo(&b)
	want := map[int]byte{44: 0x0f, 45: 0xff, 46: 0xff, 47: 0, 49: 0x7f, 52: 0xff, 53: 0xff, 54: 0x3f, 55: 0x3f, 56: 0x3f}
	for i, x := range b {
		if x != want[i] {
			t.Errorf("byte %d is %#02x, want %#02x", i, x, want[i])
		}
	}
}

// Messages written down by hand from the figures of IBA 13.4.2, 14.2.1.2,
// 13.6.2.1 and 15.2.1.1, and of SMInfo from table 14.2.5.13.
func TestKnownBytes(t *testing.T) {
	for _, c := range []struct {
		bytes string
		want  mad.Structure
	}{
		{
			"\x01\x03\x02\x92\x03\x00\x00\x00" + "\x00\x00\x00\x01\x00\x00\x00\x02" + "\x00\x35\x00\x00\x00\x00\x00\x07",
			&mad.Header{BaseVersion: 1, MgmtClass: mad.ClassSubnAdm, ClassVersion: 2, Method: mad.MethodGetTableResp, Status: mad.StatusSANoRecords, TransactionID: 0x100000002, AttributeID: mad.AttrPathRecord, AttributeModifier: 7},
		},
		{
			"\x01\x81\x01\x01\x80\x1c\x02\x03" + "\x00\x00\x00\x01\x00\x00\x00\x02" + "\x00\x11\x00\x00\x00\x00\x00\x00" +
				"\x11\x22\x33\x44\x55\x66\x77\x88" + "\xff\xff\x00\x05" + string(make([]byte, 28)),
			&mad.SMPDirectedHeader{BaseVersion: 1, MgmtClass: mad.ClassSubnDirected, ClassVersion: 1, Method: mad.MethodGet, D: true, Status: mad.StatusBadField, HopPointer: 2, HopCount: 3, TransactionID: 0x100000002, AttributeID: mad.AttrNodeInfo, MKey: 0x1122334455667788, DrSLID: mad.PermissiveLID, DrDLID: 5},
		},
		{
			"\x01\x01\xfb\x00" + "\x00\x00\x00\x01" + "\x00\x00\x02\xa4",
			&mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: 31, RMPPFlags: mad.RMPPFlagActive | mad.RMPPFlagFirst, Data1: 1, Data2: 676},
		},
		{
			"\x00\x00\x00\x00\x00\x00\x00\x01" + "\x00\x0e\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x0c",
			&mad.SAHeader{SMKey: 1, AttributeOffset: 14, ComponentMask: 0xc},
		},
		{
			"\x00\x02\xc9\x03\x00\x00\x12\x34" + "\x00\x00\x00\x00\x00\x00\x00\x01" + "\x00\x00\x01\x00" + "\xe3",
			&mad.SMInfo{GUID: 0x0002c90300001234, SMKey: 1, ActCount: 256, Priority: 14, SMState: mad.SMStateMaster},
		},
	} {
		got := reflect.New(reflect.TypeOf(c.want).Elem()).Interface().(mad.Structure)
		if err := got.UnmarshalBinary([]byte(c.bytes)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("got  %+v\nwant %+v", got, c.want)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	for _, make := range structures {
		v := make()
		b := bytes.Repeat([]byte{0x5a}, v.Layout().Size)
		out := append([]byte(nil), b...)
		if n := testing.AllocsPerRun(100, func() {
			if v.UnmarshalBinary(b) != nil {
				t.Fatal("refused")
			}
			out, _ = v.AppendBinary(out[:0])
		}); n != 0 {
			t.Errorf("%s: %v allocations to decode and encode", v.Layout().Name, n)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	raw := bytes.Repeat([]byte{0x5a}, mad.Size)
	b.Run("NodeInfo", func(b *testing.B) {
		var v mad.NodeInfo
		for b.Loop() {
			v.DecodeFrom((*[mad.NodeInfoSize]byte)(raw))
		}
	})
	b.Run("PortInfo", func(b *testing.B) {
		var v mad.PortInfo
		for b.Loop() {
			v.DecodeFrom((*[mad.PortInfoSize]byte)(raw))
		}
	})
	b.Run("PathRecord", func(b *testing.B) {
		var v mad.PathRecord
		for b.Loop() {
			v.DecodeFrom((*[mad.PathRecordSize]byte)(raw))
		}
	})
	b.Run("Header", func(b *testing.B) {
		var v mad.Header
		for b.Loop() {
			v.DecodeFrom((*[mad.HeaderSize]byte)(raw))
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	var raw [mad.Size]byte
	binary.BigEndian.PutUint64(raw[:], 0x0123456789abcdef)
	b.Run("PortInfo", func(b *testing.B) {
		var v mad.PortInfo
		for b.Loop() {
			v.EncodeTo((*[mad.PortInfoSize]byte)(raw[:]))
		}
	})
	b.Run("PathRecord", func(b *testing.B) {
		var v mad.PathRecord
		for b.Loop() {
			v.EncodeTo((*[mad.PathRecordSize]byte)(raw[:]))
		}
	})
}
