package mad_test

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// named is a value by its constant, its number and its text.
type named struct {
	got   fmt.Stringer
	value uint64
	text  string
}

// The numbers are those of the enums of the kernel's include/rdma/ib_cm.h and,
// where that has none, of drivers/infiniband/core/cm_msgs.h (transports and
// messages) and illumos' sys/ib/ibtl/ibti_cm.h (LAP of MRA, failover).
func TestCMEnums(t *testing.T) {
	for _, c := range []struct {
		of     *layout.Enum
		values []named
	}{
		{layout.RejectReason, []named{
			{mad.RejectNoQP, 1, "no QP available"},
			{mad.RejectNoEEC, 2, "no EEC available"},
			{mad.RejectNoResources, 3, "no resources available"},
			{mad.RejectTimeout, 4, "timeout"},
			{mad.RejectUnsupportedRequest, 5, "unsupported request"},
			{mad.RejectInvalidCommID, 6, "invalid communication ID"},
			{mad.RejectInvalidCommInstance, 7, "invalid communication instance"},
			{mad.RejectInvalidServiceID, 8, "invalid service ID"},
			{mad.RejectInvalidTransportType, 9, "invalid transport service type"},
			{mad.RejectStaleConn, 10, "stale connection"},
			{mad.RejectRDCNotExist, 11, "RDC does not exist"},
			{mad.RejectInvalidGID, 12, "invalid primary remote port GID"},
			{mad.RejectInvalidLID, 13, "invalid primary remote port LID"},
			{mad.RejectInvalidSL, 14, "invalid primary SL"},
			{mad.RejectInvalidTrafficClass, 15, "invalid primary traffic class"},
			{mad.RejectInvalidHopLimit, 16, "invalid primary hop limit"},
			{mad.RejectInvalidPacketRate, 17, "invalid primary packet rate"},
			{mad.RejectInvalidAltGID, 18, "invalid alternate remote port GID"},
			{mad.RejectInvalidAltLID, 19, "invalid alternate remote port LID"},
			{mad.RejectInvalidAltSL, 20, "invalid alternate SL"},
			{mad.RejectInvalidAltTrafficClass, 21, "invalid alternate traffic class"},
			{mad.RejectInvalidAltHopLimit, 22, "invalid alternate hop limit"},
			{mad.RejectInvalidAltPacketRate, 23, "invalid alternate packet rate"},
			{mad.RejectPortCMRedirect, 24, "port and CM redirection"},
			{mad.RejectPortRedirect, 25, "port redirection"},
			{mad.RejectInvalidMTU, 26, "invalid path MTU"},
			{mad.RejectInsufficientRespResources, 27, "insufficient responder resources"},
			{mad.RejectConsumerDefined, 28, "consumer reject"},
			{mad.RejectInvalidRNRRetry, 29, "RNR retry count reject"},
			{mad.RejectDuplicateLocalCommID, 30, "duplicate local communication ID"},
			{mad.RejectInvalidClassVersion, 31, "unsupported class version"},
			{mad.RejectInvalidFlowLabel, 32, "invalid primary flow label"},
			{mad.RejectInvalidAltFlowLabel, 33, "invalid alternate flow label"},
			{mad.RejectVendorOptionNotSupported, 35, "vendor option not supported"},
		}},
		{layout.APStatus, []named{
			{mad.APStatusOK, 0, "alternate path loaded"},
			{mad.APStatusInvalidCommID, 1, "invalid communication ID"},
			{mad.APStatusUnsupported, 2, "alternate paths not supported"},
			{mad.APStatusRejected, 3, "rejected"},
			{mad.APStatusRedirect, 4, "rejected with redirection"},
			{mad.APStatusIsCurrent, 5, "it is the primary path"},
			{mad.APStatusInvalidQPNEECN, 6, "invalid QPN or EECN"},
			{mad.APStatusInvalidLID, 7, "invalid remote port LID"},
			{mad.APStatusInvalidGID, 8, "invalid remote port GID"},
			{mad.APStatusInvalidFlowLabel, 9, "invalid flow label"},
			{mad.APStatusInvalidTrafficClass, 10, "invalid traffic class"},
			{mad.APStatusInvalidHopLimit, 11, "invalid hop limit"},
			{mad.APStatusInvalidPacketRate, 12, "invalid packet rate"},
			{mad.APStatusInvalidSL, 13, "invalid SL"},
		}},
		{layout.SIDRStatus, []named{
			{mad.SIDRStatusOK, 0, "ok"},
			{mad.SIDRStatusUnsupported, 1, "service ID not supported"},
			{mad.SIDRStatusRejected, 2, "rejected by the service provider"},
			{mad.SIDRStatusNoQP, 3, "no QP available"},
			{mad.SIDRStatusRedirect, 4, "redirection required"},
			{mad.SIDRStatusUnsupportedVersion, 5, "class version not supported"},
		}},
		{layout.MRAMessage, []named{{mad.MRAMessageREQ, 0, "REQ"}, {mad.MRAMessageREP, 1, "REP"}, {mad.MRAMessageLAP, 2, "LAP"}}},
		{layout.REJMessage, []named{{mad.REJMessageREQ, 0, "REQ"}, {mad.REJMessageREP, 1, "REP"}, {mad.REJMessageNone, 2, "no message"}}},
		{layout.TransportServiceType, []named{
			{mad.TransportRC, 0, "RC"}, {mad.TransportUC, 1, "UC"}, {mad.TransportRD, 2, "RD"}, {mad.TransportExtended, 3, "extended"},
		}},
		{layout.ExtendedTransportType, []named{{mad.ExtendedTransportXRC, 1, "XRC"}}},
		{layout.Failover, []named{
			{mad.FailoverAccepted, 0, "accepted"}, {mad.FailoverNotSupported, 1, "not supported"}, {mad.FailoverRejected, 2, "rejected"},
		}},
	} {
		for _, v := range c.values {
			if got := reflect.ValueOf(v.got).Uint(); got != v.value || v.got.String() != v.text {
				t.Errorf("%s: %d %q, want %d %q", c.of.Name, got, v.got, v.value, v.text)
			}
		}
		if len(c.of.Values) != len(c.values) {
			t.Errorf("%s has %d values, want %d", c.of.Name, len(c.of.Values), len(c.values))
		}
	}
}

// How the kernel's cm.c and iba.h split the id: REP by CM_REP_VENDOR_ID_H, _M
// and _L (bytes 15, 19, 23), SIDR_REP by two (bytes 6 and 7, 11).
func TestVendorID(t *testing.T) {
	for _, c := range []struct {
		of interface {
			mad.Structure
			VendorID() uint32
			SetVendorID(uint32)
		}
		at []int
	}{
		{&mad.ConnectReply{}, []int{15, 19, 23}},
		{&mad.ServiceIDResReqResp{}, []int{6, 7, 11}},
	} {
		c.of.SetVendorID(0xff123456)
		b, _ := c.of.AppendBinary(nil)
		for i, want := range []byte{0x12, 0x34, 0x56} {
			if b[c.at[i]] != want {
				t.Errorf("%T: byte %d is %#02x, want %#02x", c.of, c.at[i], b[c.at[i]], want)
			}
		}
		if got := c.of.VendorID(); got != 0x123456 {
			t.Errorf("%T: %#x", c.of, got)
		}
	}
}

// A redirection says where to by a ClassPortInfo, if it is long enough.
func TestRedirections(t *testing.T) {
	to := &mad.ClassPortInfo{RedirectLID: 7, RedirectQP: 0x123456, RedirectPKey: mad.DefaultPKey}
	var b [mad.ClassPortInfoSize]byte
	to.EncodeTo(&b)
	for _, c := range []struct {
		got  mad.Structure
		want bool
	}{
		{(&mad.ConnectReject{Reason: mad.RejectPortCMRedirect, RejectInfoLength: 72, ARI: b}).DecodeARI(), true},
		{(&mad.ConnectReject{Reason: mad.RejectPortCMRedirect, RejectInfoLength: 71, ARI: b}).DecodeARI(), false},
		{(&mad.ConnectReject{Reason: mad.RejectConsumerDefined, RejectInfoLength: 72, ARI: b}).DecodeARI(), false},
		{(&mad.AlternatePathResponse{APStatus: mad.APStatusRedirect, AdditionalInformationLength: 72, AdditionalInformation: b}).DecodeAdditionalInformation(), true},
		{(&mad.AlternatePathResponse{APStatus: mad.APStatusRejected, AdditionalInformationLength: 72, AdditionalInformation: b}).DecodeAdditionalInformation(), false},
		{(&mad.ServiceIDResReqResp{Status: mad.SIDRStatusRedirect, AdditionalInformationLength: 72, AdditionalInformation: b}).DecodeAdditionalInformation(), true},
		{(&mad.ServiceIDResReqResp{Status: mad.SIDRStatusOK, AdditionalInformationLength: 72, AdditionalInformation: b}).DecodeAdditionalInformation(), false},
	} {
		var want mad.Structure
		if c.want {
			want = to
		}
		if !reflect.DeepEqual(c.got, want) {
			t.Errorf("got %+v, want %+v", c.got, want)
		}
	}
}

// struct cma_hdr of the kernel's cma.c: version, IP version in the upper half
// of a byte, port, and two unions of 16 bytes whose IPv4 form has 12 bytes of
// padding first.
func TestIPCMHeader(t *testing.T) {
	b, err := hex.DecodeString("00404e20" + "0000000000000000000000000a000001" + "0000000000000000000000000a000002")
	if err != nil {
		t.Fatal(err)
	}
	var got mad.IPCMHeader
	if err := got.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	want := mad.IPCMHeader{IPVersion: 4, SrcPort: 20000, SrcAddr: [16]byte{12: 10, 15: 1}, DstAddr: [16]byte{12: 10, 15: 2}}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
