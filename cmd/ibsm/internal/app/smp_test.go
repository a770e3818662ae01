package app

import (
	"context"
	"encoding/binary"
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// pretender is a device whose SM attributes are what a test says, whatever the
// node answered.
type pretender struct {
	port.Device
	attributes map[mad.AttributeID]func(modifier uint32) mad.Structure
	asked      *[]uint32 // modifiers of what was pretended
}

func (d pretender) Open() (port.Port, error) {
	p, err := d.Device.Open()
	return pretendedPort{p, d}, err
}

type pretendedPort struct {
	port.Port
	is pretender
}

func (p pretendedPort) Recv(m *port.Message) error {
	err := p.Port.Recv(m)
	if err != nil || m.TimedOut {
		return err
	}
	attribute := p.is.attributes[mad.AttributeID(binary.BigEndian.Uint16(m.Data[mad.OffAttribute:]))]
	if attribute == nil {
		return nil
	}
	modifier := binary.BigEndian.Uint32(m.Data[mad.OffModifier:])
	*p.is.asked = append(*p.is.asked, modifier)
	data, err := attribute(modifier).AppendBinary(nil)
	copy(m.Data[mad.OffSMPData:], data)
	binary.BigEndian.PutUint16(m.Data[mad.OffStatus:], 0)
	return err
}

// pretend makes a rig at which attributes are as given.
func pretend(t *testing.T, attributes map[mad.AttributeID]func(uint32) mad.Structure) (*rig, *[]uint32) {
	t.Helper()
	r, asked := newRig(t, demo(t)), &[]uint32{}
	open := r.open
	r.open = func(ctx context.Context, on string) (port.Device, error) {
		dev, err := open(ctx, on)
		return pretender{dev, attributes, asked}, err
	}
	return r, asked
}

func fixed(s mad.Structure) func(uint32) mad.Structure {
	return func(uint32) mad.Structure { return s }
}

// Which blocks are read of tables of any length, and what is told of it.
func TestBlocks(t *testing.T) {
	weights := func(modifier uint32) mad.Structure {
		var v mad.VLArbitrationTable
		for i := range v.VLWeight {
			v.VLWeight[i] = mad.VLWeight{VL: uint8(modifier >> 16), Weight: uint8(i)}
		}
		return &v
	}
	diag := func(next map[uint32]uint16) func(uint32) mad.Structure {
		return func(modifier uint32) mad.Structure { return &mad.VendorDiag{NextIndex: next[modifier]} }
	}
	const pi, ni, si = mad.AttrPortInfo, mad.AttrNodeInfo, mad.AttrSwitchInfo
	ca := func(ports uint8) mad.Structure { return &mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: ports} }
	type m = map[mad.AttributeID]func(uint32) mad.Structure
	for _, tt := range []struct {
		name, args string
		attributes m
		asked      []uint32 // modifiers of the attribute itself, which is asked last
		code       int
		text       string // in stdout or stderr
	}{
		// 40 entries: 32 of the first block and 8 of the second (smpquery.c,
		// vlarb_dump_table; libibmad dump.c, mad_dump_vlarbitration).
		{"long lane list", "VLArb 0,1 1", m{pi: fixed(&mad.PortInfo{VLArbitrationLowCap: 40}), mad.AttrVLArbitrationTable: weights},
			[]uint32{1, 0x10001, 0x20001}, 0, "LowCap 40 HighCap 0\n# Low priority VL Arbitration Table:\nVL    : |" + strings.Repeat("0x1 |", 32) +
				"\nWEIGHT: |0x0 |0x1 |0x2 |"},
		{"its second block", "VLArb 0,1 1", m{pi: fixed(&mad.PortInfo{VLArbitrationLowCap: 40}), mad.AttrVLArbitrationTable: weights},
			[]uint32{1, 0x10001, 0x20001}, 0, "|0x1F|\n\nVL    : |0x2 |0x2 |0x2 |0x2 |0x2 |0x2 |0x2 |0x2 |\nWEIGHT: |0x0 |0x1 |0x2 |0x3 |0x4 |0x5 |0x6 |0x7 |\n"},
		{"lane lists too long to be true", "VLArb 0,1 1", m{pi: fixed(&mad.PortInfo{VLArbitrationLowCap: 255, VLArbitrationHighCap: 255}), mad.AttrVLArbitrationTable: weights},
			[]uint32{1, 0x10001, 0x20001, 0x30001, 0x40001}, 0, "LowCap 255 HighCap 255\n"},
		{"no lane lists", "VLArb 0,1 1", m{pi: fixed(&mad.PortInfo{})}, []uint32{1}, 0, "LowCap 0 HighCap 0\n"},
		{"lanes of a CA", "SL2VL 0,1 2", m{ni: fixed(ca(2)), mad.AttrSLtoVLMappingTable: fixed(&mad.SLtoVLMappingTable{})},
			[]uint32{0, 0}, 0, "ports: in  0, out  0: | 0| 0|"},
		{"random", "RFT 0,1", m{si: fixed(&mad.SwitchInfo{RandomFDBCap: 20}), mad.AttrRandomForwardingTable: fixed(&mad.RandomForwardingTable{})},
			[]uint32{0, 0, 1}, 0, "20 entries capacity for this switch\n"},
		{"multicast", "MFT 0,1", m{ni: fixed(&mad.NodeInfo{NumPorts: 16}), si: fixed(&mad.SwitchInfo{MulticastFDBCap: 4096, MulticastFDBTop: 0xc021}),
			mad.AttrMulticastForwardingTable: fixed(&mad.MulticastForwardingTable{})},
			[]uint32{0, 0, 0, 1, 0x10000000, 0x10000001}, 0, "\n34 LIDs up to MulticastFDBTop\n"},
		{"multicast, none in use", "MFT 0,1", m{si: fixed(&mad.SwitchInfo{MulticastFDBCap: 4096, MulticastFDBTop: 0xbfff})}, []uint32{0}, 0, "0 LIDs up to MulticastFDBTop\n"},
		{"multicast, no top", "MFT 0,1", m{si: fixed(&mad.SwitchInfo{MulticastFDBCap: 33}), mad.AttrMulticastForwardingTable: fixed(&mad.MulticastForwardingTable{})},
			[]uint32{0, 0, 1}, 0, "\n33 LIDs up to"},
		{"no keys", "PKeys 0,1", m{ni: fixed(ca(1))}, []uint32{0}, 0, "0 pkeys capacity for this port\n"},
		{"diagnostics", "VendorDiag 0,1", m{mad.AttrVendorDiag: diag(map[uint32]uint16{0: 5, 5: 3})}, []uint32{0, 5, 3}, 0,
			"# Vendor diag: DR path slid 65535; dlid 65535; 0,1\nNextIndex:.......................5\n"},
		{"diagnostics in a circle", "VendorDiag 0,1", m{mad.AttrVendorDiag: diag(map[uint32]uint16{0: 5, 5: 5})}, []uint32{0, 5}, 6,
			"index 5 goes on with 5, which has been read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, asked := pretend(t, tt.attributes)
			got := r.run(t.Context(), append([]string{"smp", "get"}, strings.Fields(tt.args)...)...)
			if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.text) {
				t.Errorf("exit code %d, want %d and %q in\n%s%s", got.code, tt.code, tt.text, got.stdout, got.stderr)
			}
			if !slices.Equal(*asked, tt.asked) {
				t.Errorf("asked for %#x, want %#x", *asked, tt.asked)
			}
		})
	}
}

// The columns of a notice are the same whatever it tells of.
func TestNoticeColumns(t *testing.T) {
	moved := &mad.SMPNotice{IsGeneric: true, TrapNumber: 144, IssuerLID: 7}
	moved.DataDetails[3] = 7 // LIDADDR
	for _, notice := range []*mad.SMPNotice{{}, moved} {
		r, _ := pretend(t, map[mad.AttributeID]func(uint32) mad.Structure{mad.AttrNotice: fixed(notice)})
		got := r.run(t.Context(), "-o", "csv", "smp", "get", "Notice", "0,1")
		rows, err := csv.NewReader(strings.NewReader(got.stdout)).ReadAll()
		if err != nil || len(rows) != 2 || len(rows[0]) != 9 || rows[0][8] != "DataDetails" {
			t.Fatalf("%v in %+v", err, got)
		}
		if notice == moved && !strings.HasPrefix(rows[1][8], "LIDADDR=7 ") {
			t.Errorf("DataDetails %q", rows[1][8])
		}
	}
}
