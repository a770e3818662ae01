package text_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/text"
)

func names(parts []text.Part) (list []string) {
	for _, p := range parts {
		list = append(list, p.Name)
	}
	return list
}

func TestSplit(t *testing.T) {
	smp := func(class mad.Class, attr mad.AttributeID) []byte {
		b := make([]byte, mad.Size)
		h := mad.Header{BaseVersion: 1, MgmtClass: class, ClassVersion: 1, Method: mad.MethodGetResp, AttributeID: attr}
		h.EncodeTo((*[mad.HeaderSize]byte)(b))
		return b
	}
	gmp := func(class mad.Class, method mad.Method, attr mad.AttributeID, offset uint16, rmpp mad.RMPPHeader, data int) []byte {
		b := make([]byte, mad.OffSAData+data)
		h := mad.Header{BaseVersion: 1, MgmtClass: class, ClassVersion: 2, Method: method, AttributeID: attr}
		h.EncodeTo((*[mad.HeaderSize]byte)(b))
		rmpp.EncodeTo((*[mad.RMPPHeaderSize]byte)(b[mad.OffRMPP:]))
		sa := mad.SAHeader{AttributeOffset: offset}
		sa.EncodeTo((*[mad.SAHeaderSize]byte)(b[mad.OffRMPPData:]))
		for i := mad.OffSAData; i < len(b); i++ {
			b[i] = 0xaa
		}
		return b
	}
	whole := mad.RMPPHeader{RMPPVersion: 1, RMPPType: mad.RMPPTypeData, RMPPFlags: mad.RMPPFlagActive | mad.RMPPFlagFirst | mad.RMPPFlagLast}
	last := whole
	last.Data2 = mad.SAHeaderSize + 64
	second := whole
	second.RMPPFlags = mad.RMPPFlagActive
	vendor := smp(0x30, 0x10)
	vendor[24+12] = 1
	for _, c := range []struct {
		name string
		mad  []byte
		want []string
	}{
		{"LID routed", smp(mad.ClassSubnLIDRouted, mad.AttrPortInfo), []string{"SMPLIDHeader", "PortInfo"}},
		{"directed", smp(mad.ClassSubnDirected, mad.AttrNodeInfo), []string{"SMPDirectedHeader", "NodeInfo", "SMPDirectedPaths"}},
		{"unknown attribute", smp(mad.ClassSubnLIDRouted, 0xff99), []string{"SMPLIDHeader"}},
		{"performance", smp(mad.ClassPerf, 0x12), []string{"Header"}},
		{"CM", smp(mad.ClassComMgt, mad.AttrConnectRequest), []string{"Header", "ConnectRequest"}},
		{"CM, what serves it", smp(mad.ClassComMgt, mad.AttrClassPortInfo), []string{"Header", "ClassPortInfo"}},
		{"vendor", vendor, []string{"Header", "RMPPHeader", "Data"}},
		{"SA Get", gmp(mad.ClassSubnAdm, mad.MethodGet, mad.AttrPathRecord, 0, mad.RMPPHeader{}, 200), []string{"Header", "RMPPHeader", "SAHeader", "PathRecord"}},
		{"SA table of one, offset 0", gmp(mad.ClassSubnAdm, mad.MethodGetTableResp, mad.AttrNodeRecord, 0, whole, 108), []string{"Header", "RMPPHeader", "SAHeader", "NodeRecord"}},
		{"SA table, 108 in 112", gmp(mad.ClassSubnAdm, mad.MethodGetTableResp, mad.AttrNodeRecord, 14, whole, 112+108), []string{"Header", "RMPPHeader", "SAHeader", "NodeRecord", "NodeRecord"}},
		{"SA table, record cut", gmp(mad.ClassSubnAdm, mad.MethodGetTableResp, mad.AttrNodeRecord, 14, whole, 112+107), []string{"Header", "RMPPHeader", "SAHeader", "NodeRecord", "Data"}},
		{"SA table, payload length", gmp(mad.ClassSubnAdm, mad.MethodGetTableResp, mad.AttrPathRecord, 8, last, 200), []string{"Header", "RMPPHeader", "SAHeader", "PathRecord"}},
		{"SA table, second segment", gmp(mad.ClassSubnAdm, mad.MethodGetTableResp, mad.AttrPathRecord, 8, second, 200), []string{"Header", "RMPPHeader", "SAHeader", "Data"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts, err := text.Split(c.mad)
			if err != nil || !slices.Equal(names(parts), c.want) {
				t.Fatalf("%v, %v, want %v", names(parts), err, c.want)
			}
			for _, p := range parts {
				if p.Struct != nil && len(p.Data) != p.Struct.Size {
					t.Errorf("%s has %d bytes", p.Name, len(p.Data))
				}
			}
		})
	}
}

func TestDumpMAD(t *testing.T) {
	b := make([]byte, mad.Size)
	h := mad.SMPDirectedHeader{BaseVersion: 1, MgmtClass: mad.ClassSubnDirected, ClassVersion: 1, Method: mad.MethodGet, HopCount: 2, AttributeID: mad.AttrNodeInfo, DrSLID: 0xffff}
	h.EncodeTo((*[mad.SMPDirectedHeaderSize]byte)(b))
	got, err := text.DumpMAD(b, text.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"# SMPDirectedHeader\n", "DrSmpHopCnt:.....................2\n", "DrSmpSLID:.......................65535\n", "MadMkey:.........................<not displayed>\n", "# NodeInfo\nBaseVers:", "# SMPDirectedPaths\nDrSmpPath:\n   0:   0"} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
}

// Messages of communication management print with the names of their numbers,
// and private data as bytes beside their characters.
func TestDumpCM(t *testing.T) {
	req := mad.ConnectRequest{
		LocalCommunicationID: 0x1234, ServiceID: 0x01061234, RemoteCMResponseTimeout: 20, TransportServiceType: mad.TransportUC,
		PathPacketPayloadMTU: mad.MTU2048, PrimaryRemotePortLID: 8, PrimaryPacketRate: mad.Rate100G,
	}
	copy(req.PrivateData[:], "\x00hello, this is h1\x00\x01")
	redirect := mad.ClassPortInfo{RedirectLID: 9}
	rej := mad.ConnectReject{
		RemoteCommunicationID: 0x1234, MessageREJected: mad.REJMessageREQ, Reason: mad.RejectPortCMRedirect, RejectInfoLength: 72,
	}
	redirect.EncodeTo(&rej.ARI)
	for _, c := range []struct {
		attr mad.AttributeID
		of   mad.Structure
		want []string
	}{
		{mad.AttrConnectRequest, &req, []string{
			"MadMgmtClass:....................ComMgt\nMadClassVersion:.................2\nMadMethod:.......................Send\n",
			"# ConnectRequest\nLocalCommunicationID:............0x00001234\n",
			"ServiceID:.......................0x0000000001061234\n",
			"RemoteCMResponseTimeout:.........20 (4.29s)\nTransportServiceType:............UC\n",
			"PathPacketPayloadMTU:............2048\n",
			"PrimaryRemotePortLID:............8\n",
			"PrimaryPacketRate:...............100 Gb/s\n",
			"\nPrivateData:\n" +
				"00000000  00 68 65 6c 6c 6f 2c 20  74 68 69 73 20 69 73 20  |.hello, this is |\n" +
				"00000010  68 31 00 01                                       |h1..|\n",
		}},
		{mad.AttrConnectReject, &mad.ConnectReject{Reason: mad.RejectInvalidServiceID}, []string{
			"# ConnectReject\nLocalCommunicationID:............0x00000000\n",
			"Reason:..........................invalid service ID\n" +
				"ARI:.............................all zero\n" +
				"PrivateData:.....................all zero\n",
		}},
		{mad.AttrConnectReject, &mad.ConnectReject{Reason: 34}, []string{"Reason:..........................34\n"}},
		{mad.AttrConnectReject, &rej, []string{
			"MessageREJected:.................REQ\n",
			"Reason:..........................port and CM redirection\nBaseVersion:.....................0\n",
			"RedirectLID:.....................9\n",
		}},
	} {
		h := mad.Header{BaseVersion: 1, MgmtClass: mad.ClassComMgt, ClassVersion: 2, Method: mad.MethodSend, AttributeID: c.attr}
		b, _ := h.AppendBinary(nil)
		b, _ = c.of.AppendBinary(b)
		got, err := text.DumpMAD(b, text.Options{Decoded: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range c.want {
			if !strings.Contains(got, part) {
				t.Errorf("no %q in\n%s", part, got)
			}
		}
	}
}

// Whatever arrives, Split neither panics nor invents bytes.
func FuzzSplit(f *testing.F) {
	for _, class := range []byte{0x01, 0x81, 0x03, 0x04, 0x06, 0x07, 0x30} {
		b := make([]byte, mad.Size)
		b[0], b[1], b[3], b[17] = 1, class, 0x92, 0x11
		b[mad.OffRMPPData+9] = 14
		f.Add(b)
		f.Add(b[:30])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		parts, err := text.Split(b)
		if err != nil {
			return
		}
		total := 0
		for _, p := range parts {
			total += len(p.Data)
		}
		if total > len(b) {
			t.Fatalf("%d bytes became %d", len(b), total)
		}
		if _, err := text.DumpMAD(b, text.Options{}); err != nil {
			t.Fatal(err)
		}
	})
}
