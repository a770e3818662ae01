package mad_test

import (
	"testing"

	"github.com/ibsm/ibsm/mad"
)

// The kernel's ib_get_mad_data_offset and ib_is_mad_class_rmpp (core/mad.c), with
// the header sizes of ib_mad.h: SA 56, devices and BIS 64, vendors with OUI 40.
// Communication management has the common header alone.
func TestClassHeaders(t *testing.T) {
	withRMPP := map[mad.Class]int{mad.ClassSubnAdm: 56, mad.ClassDevMgt: 64, mad.ClassDevAdm: 64, mad.ClassBIS: 64}
	for c := mad.Class(0x30); c <= 0x4f; c++ {
		withRMPP[c] = 40
	}
	for i := range 256 {
		c := mad.Class(i)
		want, rmpp := withRMPP[c]
		if !rmpp {
			want = 24
		}
		if got := mad.ClassHeaderLen(c); got != want || mad.HasRMPP(c) != rmpp {
			t.Errorf("class %v: %d bytes, RMPP %t", c, got, mad.HasRMPP(c))
		}
	}
}

// The kernel's ib_response_mad. All messages of communication management are
// sent, the answers too.
func TestIsResponse(t *testing.T) {
	for _, c := range []struct {
		class    mad.Class
		method   mad.Method
		modifier byte
		want     bool
	}{
		{mad.ClassSubnAdm, mad.MethodGet, 1, false},
		{mad.ClassSubnAdm, mad.MethodGetTableResp, 0, true},
		{mad.ClassSubnLIDRouted, mad.MethodTrapRepress, 0, true},
		{mad.ClassSubnLIDRouted, mad.MethodTrap, 0, false},
		{mad.ClassBM, mad.MethodSend, 0, false},
		{mad.ClassBM, mad.MethodSend, 1, true},
		{mad.ClassComMgt, mad.MethodSend, 1, false},
		{mad.ClassComMgt, mad.MethodGetResp, 0, true},
	} {
		h := mad.Header{MgmtClass: c.class, Method: c.method, AttributeModifier: uint32(c.modifier)}
		b, _ := h.AppendBinary(nil)
		if got := mad.IsResponse(b); got != c.want {
			t.Errorf("%v %v, modifier %d: %t", c.class, c.method, c.modifier, got)
		}
	}
}
