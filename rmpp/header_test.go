package rmpp_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/rmpp"
)

// Positions from the kernel's struct ib_rmpp_hdr (include/rdma/ib_mad.h).
func TestHeaderBytes(t *testing.T) {
	tests := []struct {
		hex  string
		want mad.RMPPHeader
	}{
		{"0101f90000000001000006c0", mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: 31, RMPPFlags: 1, Data1: 1, Data2: 1728}},
		{"01019700000001020000000a", mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RRespTime: 18, RMPPFlags: 7, Data1: 258, Data2: 10}},
		{"010201000000004100000081", mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeACK, RMPPFlags: mad.RMPPFlagActive, Data1: 65, Data2: 129}},
		{"010301010000000000000000", mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeStop, RMPPFlags: mad.RMPPFlagActive, RMPPStatus: mad.RMPPStatusResourcesExhausted}},
		{"0104017e0000000000000000", mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeAbort, RMPPFlags: mad.RMPPFlagActive, RMPPStatus: mad.RMPPStatusTooManyRetries}},
		{"ff06fcff0102030405060708", mad.RMPPHeader{RMPPVersion: 255, RMPPType: 6, RRespTime: 31, RMPPFlags: 4, RMPPStatus: 255, Data1: 0x01020304, Data2: 0x05060708}},
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
		if rmpp.PutHeader(&back, tt.want); back != pkt {
			t.Errorf("%+v: put % x", tt.want, back[24:36])
		}
	}
}

// Numbers from the kernel's IB_MGMT_RMPP_STATUS_*, texts from the IBA's table.
func TestAbortErrorNamesTheStatus(t *testing.T) {
	tests := []struct {
		status mad.RMPPStatus
		text   string
	}{
		{1, "STOP, status 1 (resources exhausted)"},
		{118, "ABORT, status 118 (total time too long)"},
		{119, "ABORT, status 119 (inconsistent Last and PayloadLength)"},
		{120, "ABORT, status 120 (inconsistent First and SegmentNumber)"},
		{121, "ABORT, status 121 (bad RMPPType)"},
		{122, "ABORT, status 122 (NewWindowLast too small)"},
		{123, "ABORT, status 123 (SegmentNumber too big)"},
		{124, "ABORT, status 124 (illegal status)"},
		{125, "ABORT, status 125 (unsupported version)"},
		{126, "ABORT, status 126 (too many retries)"},
		{127, "ABORT, status 127 (unspecified)"},
		{128, "ABORT, status 128 (class specific)"},
		{191, "ABORT, status 191 (class specific)"},
		{192, "ABORT, status 192 (vendor specific)"},
		{255, "ABORT, status 255 (vendor specific)"},
	}
	for _, tt := range tests {
		if got := (&rmpp.AbortError{Status: tt.status, Segment: 7}).Error(); !strings.Contains(got, tt.text) {
			t.Errorf("status %d: %q lacks %q", uint8(tt.status), got, tt.text)
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
