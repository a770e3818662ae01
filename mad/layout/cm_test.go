package layout

import "testing"

// wire is a field as the kernel's include/rdma/ibta_vol1_c12.h places it: byte
// behind the common header, bit in that byte, width in bits.
type wire struct {
	name             string
	byte, bit, width int
}

// The kernel's wire definitions of the messages of communication management,
// all of them (IBA tables 106 to 120). No row of the table is without one.
func TestCMFieldsLikeKernel(t *testing.T) {
	for _, c := range []struct {
		of     *Struct
		fields []wire
	}{
		{ConnectRequest, []wire{
			{"LocalCommunicationID", 0, 0, 32},
			{"VendorID", 5, 0, 24},
			{"ServiceID", 8, 0, 64},
			{"LocalCAGUID", 16, 0, 64},
			{"LocalQ_Key", 28, 0, 32},
			{"LocalQPN", 32, 0, 24},
			{"ResponderResources", 35, 0, 8},
			{"LocalEECN", 36, 0, 24},
			{"InitiatorDepth", 39, 0, 8},
			{"RemoteEECN", 40, 0, 24},
			{"RemoteCMResponseTimeout", 43, 0, 5},
			{"TransportServiceType", 43, 5, 2},
			{"EndToEndFlowControl", 43, 7, 1},
			{"StartingPSN", 44, 0, 24},
			{"LocalCMResponseTimeout", 47, 0, 5},
			{"RetryCount", 47, 5, 3},
			{"PartitionKey", 48, 0, 16},
			{"PathPacketPayloadMTU", 50, 0, 4},
			{"RDCExists", 50, 4, 1},
			{"RNRRetryCount", 50, 5, 3},
			{"MaxCMRetries", 51, 0, 4},
			{"SRQ", 51, 4, 1},
			{"ExtendedTransportType", 51, 5, 3},
			{"PrimaryLocalPortLID", 52, 0, 16},
			{"PrimaryRemotePortLID", 54, 0, 16},
			{"PrimaryLocalPortGID", 56, 0, 128},
			{"PrimaryRemotePortGID", 72, 0, 128},
			{"PrimaryFlowLabel", 88, 0, 20},
			{"PrimaryPacketRate", 91, 2, 6},
			{"PrimaryTrafficClass", 92, 0, 8},
			{"PrimaryHopLimit", 93, 0, 8},
			{"PrimarySL", 94, 0, 4},
			{"PrimarySubnetLocal", 94, 4, 1},
			{"PrimaryLocalACKTimeout", 95, 0, 5},
			{"AlternateLocalPortLID", 96, 0, 16},
			{"AlternateRemotePortLID", 98, 0, 16},
			{"AlternateLocalPortGID", 100, 0, 128},
			{"AlternateRemotePortGID", 116, 0, 128},
			{"AlternateFlowLabel", 132, 0, 20},
			{"AlternatePacketRate", 135, 2, 6},
			{"AlternateTrafficClass", 136, 0, 8},
			{"AlternateHopLimit", 137, 0, 8},
			{"AlternateSL", 138, 0, 4},
			{"AlternateSubnetLocal", 138, 4, 1},
			{"AlternateLocalACKTimeout", 139, 0, 5},
			{"SAPSupported", 139, 5, 1},
			{"PrivateData", 140, 0, 736},
		}},
		{MsgRcptAck, []wire{
			{"LocalCommunicationID", 0, 0, 32},
			{"RemoteCommunicationID", 4, 0, 32},
			{"MessageMRAed", 8, 0, 2},
			{"ServiceTimeout", 9, 0, 5},
			{"PrivateData", 10, 0, 1776},
		}},
		{ConnectReject, []wire{
			{"LocalCommunicationID", 0, 0, 32},
			{"RemoteCommunicationID", 4, 0, 32},
			{"MessageREJected", 8, 0, 2},
			{"RejectInfoLength", 9, 0, 7},
			{"Reason", 10, 0, 16},
			{"ARI", 12, 0, 576},
			{"PrivateData", 84, 0, 1184},
		}},
		{ConnectReply, []wire{
			{"LocalCommunicationID", 0, 0, 32},
			{"RemoteCommunicationID", 4, 0, 32},
			{"LocalQ_Key", 8, 0, 32},
			{"LocalQPN", 12, 0, 24},
			{"VendorID_H", 15, 0, 8},
			{"LocalEEContextNumber", 16, 0, 24},
			{"VendorID_M", 19, 0, 8},
			{"StartingPSN", 20, 0, 24},
			{"VendorID_L", 23, 0, 8},
			{"ResponderResources", 24, 0, 8},
			{"InitiatorDepth", 25, 0, 8},
			{"TargetACKDelay", 26, 0, 5},
			{"FailoverAccepted", 26, 5, 2},
			{"EndToEndFlowControl", 26, 7, 1},
			{"RNRRetryCount", 27, 0, 3},
			{"SRQ", 27, 3, 1},
			{"LocalCAGUID", 28, 0, 64},
			{"PrivateData", 36, 0, 1568},
		}},
		{ReadyToUse, []wire{
			{"LocalCommunicationID", 0, 0, 32},
			{"RemoteCommunicationID", 4, 0, 32},
			{"PrivateData", 8, 0, 1792},
		}},
		{DisconnectRequest, []wire{
			{"LocalCommunicationID", 0, 0, 32},
			{"RemoteCommunicationID", 4, 0, 32},
			{"RemoteQPN_EECN", 8, 0, 24},
			{"PrivateData", 12, 0, 1760},
		}},
		{DisconnectReply, []wire{
			{"LocalCommunicationID", 0, 0, 32},
			{"RemoteCommunicationID", 4, 0, 32},
			{"PrivateData", 8, 0, 1792},
		}},
		{LoadAlternatePath, []wire{
			{"LocalCommunicationID", 0, 0, 32},
			{"RemoteCommunicationID", 4, 0, 32},
			{"RemoteQPN_EECN", 12, 0, 24},
			{"RemoteCMResponseTimeout", 15, 0, 5},
			{"AlternateLocalPortLID", 20, 0, 16},
			{"AlternateRemotePortLID", 22, 0, 16},
			{"AlternateLocalPortGID", 24, 0, 128},
			{"AlternateRemotePortGID", 40, 0, 128},
			{"AlternateFlowLabel", 56, 0, 20},
			{"AlternateTrafficClass", 59, 0, 8},
			{"AlternateHopLimit", 60, 0, 8},
			{"AlternatePacketRate", 61, 2, 6},
			{"AlternateSL", 62, 0, 4},
			{"AlternateSubnetLocal", 62, 4, 1},
			{"AlternateLocalACKTimeout", 63, 0, 5},
			{"PrivateData", 64, 0, 1344},
		}},
		{AlternatePathResponse, []wire{
			{"LocalCommunicationID", 0, 0, 32},
			{"RemoteCommunicationID", 4, 0, 32},
			{"AdditionalInformationLength", 8, 0, 8},
			{"APStatus", 9, 0, 8},
			{"AdditionalInformation", 12, 0, 576},
			{"PrivateData", 84, 0, 1184},
		}},
		{ServiceIDResReq, []wire{
			{"RequestID", 0, 0, 32},
			{"PartitionKey", 4, 0, 16},
			{"ServiceID", 8, 0, 64},
			{"PrivateData", 16, 0, 1728},
		}},
		{ServiceIDResReqResp, []wire{
			{"RequestID", 0, 0, 32},
			{"Status", 4, 0, 8},
			{"AdditionalInformationLength", 5, 0, 8},
			{"VendorID_H", 6, 0, 16},
			{"QPN", 8, 0, 24},
			{"VendorID_L", 11, 0, 8},
			{"ServiceID", 12, 0, 64},
			{"Q_Key", 20, 0, 32},
			{"AdditionalInformation", 24, 0, 576},
			{"PrivateData", 96, 0, 1088},
		}},
	} {
		at := map[string]wire{}
		for _, w := range c.fields {
			at[w.name] = w
		}
		for _, f := range c.of.Fields {
			w, known := at[f.Name]
			if f.IsReserved() {
				continue
			}
			if got := (wire{f.Name, f.Off / 8, f.Off % 8, f.Bits()}); !known || got != w {
				t.Errorf("%s: the table has %+v, the kernel %+v", c.of.Name, got, w)
			}
			delete(at, f.Name)
		}
		for name := range at {
			t.Errorf("%s: no field %s", c.of.Name, name)
		}
	}
}

// The attribute ids of the kernel's include/rdma/ib_cm.h, CM_REQ_ATTR_ID and
// so on.
func TestCMAttributes(t *testing.T) {
	names := map[uint16]string{
		0x01: "CPI", 0x10: "REQ", 0x11: "MRA", 0x12: "REJ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP",
		0x17: "SIDR_REQ", 0x18: "SIDR_REP", 0x19: "LAP", 0x1a: "APR",
	}
	const (
		get  = 0x01
		send = 0x03
	)
	for _, a := range Attributes {
		if a.Class != 0x07 {
			continue
		}
		isMessage := a.ID != 0x01
		if a.Short != names[a.ID] || a.Allows(send) != isMessage || a.Allows(get) == isMessage {
			t.Errorf("%#04x is %s (%s) with methods %v", a.ID, a.Name, a.Short, a.Methods)
		}
		if isMessage && a.Struct.Size != 256-24 {
			t.Errorf("%s has %d bytes", a.Name, a.Struct.Size)
		}
		delete(names, a.ID)
	}
	if len(names) > 0 {
		t.Errorf("not in the table: %v", names)
	}
	for _, class := range []uint8{0x01, 0x03, 0x81} {
		if a, err := LookUpAttribute(class, "REQ"); err == nil {
			t.Errorf("class %#02x has REQ: %s", class, a.Name)
		}
	}
}
