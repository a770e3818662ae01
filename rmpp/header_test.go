package rmpp_test

import (
	"encoding/hex"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/rmpp"
)

// Positions from the kernel's struct ib_rmpp_hdr (include/rdma/ib_mad.h).
func TestHeaderBytes(t *testing.T) {
	tests := []struct {
		hex  string
		want rmpp.Header
	}{
		{"0101f90000000001000006c0", rmpp.Header{Version: 1, Type: rmpp.TypeData, RespTime: 31, Flags: 1, Segment: 1, Data2: 1728}},
		{"01019700000001020000000a", rmpp.Header{Version: 1, Type: rmpp.TypeData, RespTime: 18, Flags: 7, Segment: 258, Data2: 10}},
		{"010201000000004100000081", rmpp.Header{Version: 1, Type: rmpp.TypeACK, Flags: rmpp.FlagActive, Segment: 65, Data2: 129}},
		{"010301010000000000000000", rmpp.Header{Version: 1, Type: rmpp.TypeStop, Flags: rmpp.FlagActive, Status: rmpp.StatusResX}},
		{"0104017e0000000000000000", rmpp.Header{Version: 1, Type: rmpp.TypeAbort, Flags: rmpp.FlagActive, Status: rmpp.StatusTMR}},
		{"ff06fcff0102030405060708", rmpp.Header{Version: 255, Type: 6, RespTime: 31, Flags: 4, Status: 255, Segment: 0x01020304, Data2: 0x05060708}},
	}
	for _, tt := range tests {
		raw, err := hex.DecodeString(tt.hex)
		if err != nil {
			t.Fatal(err)
		}
		var pkt, back [mad.Size]byte
		copy(pkt[24:], raw)
		if got := rmpp.ParseHeader(&pkt); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.hex, got, tt.want)
		}
		if tt.want.Put(&back); back != pkt {
			t.Errorf("%+v: put % x", tt.want, back[24:36])
		}
	}
}

// Numbers from the kernel's IB_MGMT_RMPP_STATUS_* and the IBA's table.
func TestStatusText(t *testing.T) {
	tests := []struct {
		status rmpp.Status
		number uint8
		text   string
	}{
		{rmpp.StatusNormal, 0, "normal"},
		{rmpp.StatusResX, 1, "resources exhausted"},
		{2, 2, "reserved status 2"},
		{117, 117, "reserved status 117"},
		{rmpp.StatusT2L, 118, "total time too long"},
		{rmpp.StatusBadLen, 119, "inconsistent Last and PayloadLength"},
		{rmpp.StatusBadSeg, 120, "inconsistent First and SegmentNumber"},
		{rmpp.StatusBadT, 121, "bad RMPPType"},
		{rmpp.StatusW2S, 122, "NewWindowLast too small"},
		{rmpp.StatusS2B, 123, "SegmentNumber too big"},
		{rmpp.StatusBadStatus, 124, "illegal status"},
		{rmpp.StatusUnV, 125, "unsupported version"},
		{rmpp.StatusTMR, 126, "too many retries"},
		{rmpp.StatusUnspec, 127, "unspecified"},
		{128, 128, "class specific status 128"},
		{191, 191, "class specific status 191"},
		{192, 192, "vendor specific status 192"},
		{255, 255, "vendor specific status 255"},
	}
	for _, tt := range tests {
		if uint8(tt.status) != tt.number || tt.status.String() != tt.text {
			t.Errorf("%d %q, want %d %q", uint8(tt.status), tt.status, tt.number, tt.text)
		}
	}
	for typ, text := range map[rmpp.Type]string{1: "DATA", 2: "ACK", 3: "STOP", 4: "ABORT", 5: "RMPP type 5"} {
		if typ.String() != text {
			t.Errorf("type %d is %q, want %q", uint8(typ), typ, text)
		}
	}
}

func TestIsActive(t *testing.T) {
	active := func(class, version, flags byte) []byte {
		b := make([]byte, mad.Size)
		b[1], b[24], b[26] = class, version, flags
		return b
	}
	tests := []struct {
		name string
		mad  []byte
		want bool
	}{
		{"SA segment", active(classSA, 1, 1), true},
		{"vendor segment with a response time", active(0x4f, 1, 0xf9), true},
		{"unknown version is answered with an ABORT", active(classDevMgt, 2, 1), true},
		{"opensm without RMPP below it: version 0, Active", active(classSA, 0, 1), false},
		{"SA single MAD", active(classSA, 1, 0), false},
		{"performance management has no RMPP", active(0x04, 1, 1), false},
		{"vendor class without OUI", active(0x0f, 1, 1), false},
		{"cut off", active(classSA, 1, 1)[:35], false},
		{"header alone", active(classSA, 1, 1)[:36], true},
		{"empty", nil, false},
	}
	for _, tt := range tests {
		if got := rmpp.IsActive(tt.mad); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
