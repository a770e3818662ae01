package mad_test

import (
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad"
)

// Texts are those of the IBA's tables; values without a name are numbers.
func TestEnumStrings(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{mad.ClassSubnAdm.String(), "SubnAdm"},
		{mad.Class(0x4f).String(), "0x4f"},
		{mad.MethodGetTableResp.String(), "GetTableResp"},
		{mad.Method(0x7e).String(), "0x7e"},
		{mad.PortStateInit.String(), "Initialize"},
		{mad.PortState(9).String(), "9"},
		{mad.LinkWidth(0).String(), "0"},
		{(mad.LinkWidth1X | mad.LinkWidth4X | 0x40).String(), "1X or 4X or 0x40"},
		{mad.LinkWidth2X.String(), "2X"},
		{mad.SpeedXDR.String(), "XDR"},
		{mad.Rate2_5G.String(), "2.5 Gb/s"},
		{mad.MTU4096.String(), "4096"},
		{(mad.CapIsSM | 1<<13).String(), "IsSM|IsCableInfoSupported"},
		{mad.AttrNodeInfo.String(), "0x0011"},
		{mad.AttributeID(0x11).Name(mad.ClassSubnDirected), "NodeInfo"},
		{mad.AttributeID(0x11).Name(mad.ClassSubnAdm), "NodeRecord"},
		{mad.AttributeID(0x11).Name(mad.ClassComMgt), "MsgRcptAck"},
		{mad.AttributeID(0x11).Name(mad.ClassCC), "0x0011"},
		{mad.MethodTrap.Response().String(), "TrapRepress"},
		{mad.MethodGetTable.Response().String(), "GetTableResp"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// The values of IBA tables 115 (13.4.7) and 198 (15.2.3).
func TestStatusText(t *testing.T) {
	for _, c := range []struct {
		status mad.Status
		class  mad.Class
		want   string
	}{
		{0, mad.ClassSubnAdm, "ok"},
		{0x0001, mad.ClassSubnAdm, "busy"},
		{0x000c, mad.ClassSubnLIDRouted, "method and attribute combination not supported"},
		{0x001c, mad.ClassPerf, "invalid value in attribute or modifier"},
		{0x0010, mad.ClassPerf, "status 0x0010"}, // reserved code
		{0x0300, mad.ClassSubnAdm, "SA: no records"},
		{0x0300, mad.ClassPerf, "class status 0x3"},
		{0x0301, mad.ClassSubnAdm, "busy, SA: no records"},
		{0x7f00, mad.ClassSubnAdm, "status 0x7f00"},
		{0x00e0, mad.ClassSubnAdm, "status 0x00e0"},
	} {
		if got := c.status.Text(c.class); got != c.want {
			t.Errorf("%#04x of %v: %q, want %q", uint16(c.status), c.class, got, c.want)
		}
	}
}

func TestClassKinds(t *testing.T) {
	for class := range 256 {
		c := mad.Class(class)
		vendor := class >= 0x09 && class <= 0x0f || class >= 0x30 && class <= 0x4f
		if c.IsVendor() != vendor || c.IsSMP() != (class == 0x01 || class == 0x81) {
			t.Errorf("class %#x", class)
		}
	}
}

func TestNodeDescription(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"h1 HCA-1", "h1 HCA-1"},
		{"", ""},
		{strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{strings.Repeat("x", 70), strings.Repeat("x", 64)},
		{strings.Repeat("x", 63) + "é", strings.Repeat("x", 63)},
	} {
		d := mad.MakeNodeDescription(c.in)
		if got := d.String(); got != c.want {
			t.Errorf("%q became %q", c.in, got)
		}
	}
}
