package mad_test

import (
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/ibsm/ibsm/mad"
)

// The bytes were written by a C program through ib_mad_notice_attr_t of OpenSM's
// ib_types.h.
func TestNoticeDetails(t *testing.T) {
	issuer := mad.GID{0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf}
	for _, c := range []struct {
		trap  mad.TrapNumber
		bytes string
		want  mad.Structure
	}{
		{
			mad.TrapGIDInService, "840000020040123480030000000000000102030405060708090a0b0c0d0e0f100000000000000000" +
				"000000000000000000000000000000000000000000000000a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
			&mad.Trap64Details{GIDADDR: mad.GID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
		},
		{
			mad.TrapLinkStateChange, "8400000200801234800355aa00000000000000000000000000000000000000000000000000000000" +
				"000000000000000000000000000000000000000000000000a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
			&mad.Trap128Details{LIDADDR: 0x55aa},
		},
		{
			mad.TrapFlowControlWatchdog, "84000002008312348003000055aa1100000000000000000000000000000000000000000000000000" +
				"000000000000000000000000000000000000000000000000a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
			&mad.Trap129Details{LIDADDR: 0x55aa, PORTNO: 17},
		},
		{
			mad.TrapLocalChanges, "84000002009012348003000055aa0001000000020029000400000000000000000000000000000000" +
				"000000000000000000000000000000000000000000000000a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
			&mad.Trap144Details{
				LIDADDR: 0x55aa, OtherLocalChanges: true, CAPABILITYMASK: mad.CapIsSM, CapabilityMask2Change: true,
				SMPriorityChange: true, NodeDescriptionChange: true, CAPABILITYMASK2: mad.Cap2IsVirtualizationSupported,
			},
		},
		{
			mad.TrapSystemImageGUIDChange, "84000002009112348003000055aa0000010203040506070800000000000000000000000000000000" +
				"000000000000000000000000000000000000000000000000a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
			&mad.Trap145Details{LIDADDR: 0x55aa, SYSTEMIMAGEGUID: 0x0102030405060708},
		},
		{
			mad.TrapBadMKey, "84000002010012348003000055aaffff0200001500000007010203040506070800c3000900000000" +
				"000000000000000000000000000000000000000000000000a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
			&mad.Trap256Details{
				LIDADDR: 0x55aa, DRSLID: mad.PermissiveLID, METHOD: mad.MethodSet, ATTRIBUTEID: mad.AttrPortInfo, ATTRIBUTEMODIFIER: 7,
				MKEY: 0x0102030405060708, DRNotice: true, DRPathTruncated: true, DRHopCount: 3, DRNoticeReturnPath: [30]uint8{0, 9},
			},
		},
		{
			mad.TrapBadQKey, "84000002010212348003000000010002800100005012345600654321000000000000000000000000" +
				"000000010000000000000000000000000000000200000000a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
			&mad.Trap257Details{
				LIDADDR1: 1, LIDADDR2: 2, KEY: mad.QKeyGSI, SL: 5, QP1: 0x123456, QP2: 0x654321,
				GIDADDR1: mad.GID{15: 1}, GIDADDR2: mad.GID{15: 2},
			},
		},
		{
			mad.TrapBadSwitchPKey, "84000002010312348003000300010002800150123456006543210000000000000000000000000000" +
				"000100000000000000000000000000000002000908000000a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
			&mad.Trap259Details{
				DataValid: 3, LIDADDR1: 1, LIDADDR2: 2, PKEY: 0x8001, SL: 5, QP1: 0x123456, QP2: 0x654321,
				GIDADDR1: mad.GID{15: 1}, GIDADDR2: mad.GID{15: 2}, SWLIDADDR: 9, PORTNO: 8,
			},
		},
	} {
		b, err := hex.DecodeString(c.bytes)
		if err != nil {
			t.Fatal(err)
		}
		var n mad.Notice
		if err := n.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		head := n
		head.DataDetails = [54]byte{}
		if want := (mad.Notice{
			IsGeneric: true, Type: mad.NoticeTypeInformational, ProducerType: mad.ProducerTypeSwitch, TrapNumber: c.trap,
			IssuerLID: 0x1234, NoticeToggle: true, NoticeCount: 3, IssuerGID: issuer,
		}); head != want {
			t.Errorf("trap %d: got  %+v\nwant %+v", c.trap, head, want)
		}
		if got := n.DecodeDataDetails(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("trap %d: got  %+v\nwant %+v", c.trap, got, c.want)
		}
		// An SMP carries all but the issuer's GID.
		var short mad.SMPNotice
		if err := short.UnmarshalBinary(b[:mad.SMPNoticeSize]); err != nil {
			t.Fatal(err)
		}
		if got := short.DecodeDataDetails(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("trap %d in an SMP: got  %+v\nwant %+v", c.trap, got, c.want)
		}
	}
}

// The numbers of a vendor's notice mean nothing to us.
func TestUnknownNotice(t *testing.T) {
	for _, n := range []mad.Notice{
		{IsGeneric: false, TrapNumber: mad.TrapLocalChanges},
		{IsGeneric: true, TrapNumber: mad.TrapUnPath},
		{IsGeneric: true, TrapNumber: 132},
		{IsGeneric: true, TrapNumber: 63},
		{IsGeneric: true, TrapNumber: 260},
	} {
		if got := n.DecodeDataDetails(); got != nil {
			t.Errorf("%+v decodes to %+v", n, got)
		}
	}
}

// The bytes were written by a C program through ib_inform_info_t of OpenSM's
// ib_types.h.
func TestInformInfoBytes(t *testing.T) {
	b, err := hex.DecodeString("00000000000000000000000000000001ffff000300000101ffff00401234561200000004")
	if err != nil {
		t.Fatal(err)
	}
	var got mad.InformInfo
	if err := got.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	want := mad.InformInfo{
		GID: mad.GID{15: 1}, LIDRangeBegin: 0xffff, LIDRangeEnd: 3, IsGeneric: 1, Subscribe: 1, Type: mad.NoticeTypeAll,
		TrapNumber: mad.TrapGIDInService, QPN: 0x123456, RespTimeValue: 18, ProducerType: mad.ProducerTypeClassManager,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
