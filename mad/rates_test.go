package mad_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// Signalling rate of a lane in Mbit/s, as in the IBA's table of link speeds.
var laneMbps = map[mad.Speed]float64{
	mad.SpeedSDR: 2500, mad.SpeedDDR: 5000, mad.SpeedQDR: 10000, mad.SpeedFDR10: 10312.5, mad.SpeedFDR: 14062.5,
	mad.SpeedEDR: 25781.25, mad.SpeedHDR: 53125, mad.SpeedNDR: 106250, mad.SpeedXDR: 212500,
}

// The rate of a link is the lanes times the speed of one, as near as there is a
// code for it.
func TestRateOf(t *testing.T) {
	widths := map[mad.LinkWidth]float64{mad.LinkWidth1X: 1, mad.LinkWidth2X: 2, mad.LinkWidth4X: 4, mad.LinkWidth8X: 8, mad.LinkWidth12X: 12}
	for speed, lane := range laneMbps {
		for width, lanes := range widths {
			if speed == mad.SpeedXDR && width == mad.LinkWidth12X {
				continue // 2400 Gb/s has no code
			}
			got, want := float64(mad.RateOf(width, speed).Mbps()), lane*lanes
			if math.Abs(got-want) > 0.05*want {
				t.Errorf("%v %v: %v Mb/s, want %v", width, speed, got, want)
			}
		}
	}
	for _, c := range []struct {
		width mad.LinkWidth
		speed mad.Speed
		want  mad.Rate
	}{
		{mad.LinkWidth12X, mad.SpeedXDR, mad.Rate1600G},
		{0, mad.SpeedEDR, mad.RateNone},
		{mad.LinkWidth1X | mad.LinkWidth4X, mad.SpeedEDR, mad.RateNone},
		{mad.LinkWidth4X, 0, mad.RateNone},
		{mad.LinkWidth4X, mad.SpeedEDR | mad.SpeedFDR, mad.RateNone},
	} {
		if got := mad.RateOf(c.width, c.speed); got != c.want {
			t.Errorf("%v %v: %v, want %v", c.width, c.speed, got, c.want)
		}
	}
}

// The order of OpenSM's ordered_rates (osm_helper.c), with 1600 after it.
func TestRateOrder(t *testing.T) {
	order := []mad.Rate{2, 5, 3, 11, 6, 4, 15, 19, 7, 8, 20, 12, 9, 10, 16, 13, 14, 17, 18, 21, 22, 23, 24, 25}
	var known []mad.Rate
	for _, v := range layout.Rate.Values {
		if v.Value != 0 {
			known = append(known, mad.Rate(v.Value))
		}
	}
	slices.SortFunc(known, mad.Rate.Compare)
	if !slices.Equal(known, order) {
		t.Errorf("order %v, want %v", known, order)
	}
	if mad.Rate(1).Compare(mad.Rate2_5G) >= 0 || mad.Rate(63).Mbps() != 0 {
		t.Error("an unknown rate is not the slowest")
	}
}

// The active speed survives the way through the three fields of PortInfo.
func TestPortInfoSpeed(t *testing.T) {
	for speed := range laneMbps {
		var p, q mad.PortInfo
		p.SetSpeed(speed)
		var b [mad.PortInfoSize]byte
		p.EncodeTo(&b)
		q.DecodeFrom(&b)
		want := speed
		if speed == mad.SpeedFDR10 {
			want = mad.SpeedQDR // as PortInfo shows it
		}
		if got := q.Speed(); got != want {
			t.Errorf("%v comes back as %v", speed, got)
		}
		q.LinkWidthActive = mad.LinkWidth4X
		if got := q.Rate(); got != mad.RateOf(mad.LinkWidth4X, want) {
			t.Errorf("4X %v: rate %v", speed, got)
		}
	}
	var p mad.PortInfo
	if p.Speed() != 0 {
		t.Errorf("no speed is %v", p.Speed())
	}
	p.SetSpeedsUpTo(mad.SpeedHDR)
	if p.LinkSpeedSupported != 7 || p.LinkSpeedExtSupported != 7 || p.LinkSpeedExtSupported2 != 0 || p.LinkSpeedEnabled != 7 || p.LinkSpeedExtEnabled != 7 {
		t.Errorf("up to HDR: %+v", p)
	}
	p.SetSpeedsUpTo(mad.SpeedXDR)
	if p.LinkSpeedExtSupported != 15 || p.LinkSpeedExtSupported2 != 1 || p.LinkSpeedExtEnabled2 != 1 {
		t.Errorf("up to XDR: %+v", p)
	}
}

func TestTimeOf(t *testing.T) {
	for _, c := range []struct {
		code uint8
		want time.Duration
	}{
		{0, 4096 * time.Nanosecond},
		{14, 67108864 * time.Nanosecond},   // IBA's 67 ms
		{18, 1073741824 * time.Nanosecond}, // 1.07 s, OpenSM's subnet time-out
		{31, 8796093022208 * time.Nanosecond},
		{63, math.MaxInt64},
	} {
		if got := mad.TimeOf(c.code); got != c.want {
			t.Errorf("TimeOf(%d) = %v, want %v", c.code, got, c.want)
		}
	}
	for code := range uint8(64) {
		if d := mad.TimeOf(code); d < math.MaxInt64 && (mad.CodeOf(d) != code || mad.CodeOf(d+1) != code+1) {
			t.Errorf("CodeOf(%v) = %d and %d, want %d", d, mad.CodeOf(d), mad.CodeOf(d+1), code)
		}
	}
	if mad.CodeOf(-1) != 0 {
		t.Error("CodeOf of a negative time")
	}
}

func TestMTUBytes(t *testing.T) {
	for code, want := range map[mad.MTU]int{0: 0, 1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096, 6: 0, 63: 0} {
		if got := code.Bytes(); got != want {
			t.Errorf("MTU %d: %d bytes, want %d", uint8(code), got, want)
		}
	}
}
