package mad

import (
	"cmp"
	"math/bits"
	"slices"
	"time"
)

// Bytes is the number of bytes of payload that the code stands for, 0 if it
// stands for none.
func (x MTU) Bytes() int {
	if x < MTU256 || x > MTU4096 {
		return 0
	}
	return 128 << x
}

// rateMbps gives the bandwidth of each Rate in Mbit/s, as ibv_rate_to_mbps of
// rdma-core and ib_rate_to_mbps of the kernel do.
var rateMbps = map[Rate]int{
	Rate2_5G: 2500, Rate5G: 5000, Rate10G: 10000, Rate14G: 14062, Rate20G: 20000, Rate25G: 25781,
	Rate28G: 28125, Rate30G: 30000, Rate40G: 40000, Rate50G: 53125, Rate56G: 56250, Rate60G: 60000,
	Rate80G: 80000, Rate100G: 103125, Rate112G: 112500, Rate120G: 120000, Rate168G: 168750,
	Rate200G: 206250, Rate300G: 309375, Rate400G: 425000, Rate600G: 637500, Rate800G: 850000,
	Rate1200G: 1275000, Rate1600G: 1700000,
}

// Mbps is the signalling rate in Mbit/s, encoding included; 0 if the code is
// unknown.
func (x Rate) Mbps() int { return rateMbps[x] }

// ratesInOrder is the order in which SAs compare rates (OpenSM osm_helper.c,
// ordered_rates): by the data that they carry, of which lanes up to QDR spend
// 20 % on their encoding and newer ones 3 %. So 25 Gb/s are more than 30. Not in
// OpenSM yet is 1600.
var ratesInOrder = [...]Rate{
	Rate2_5G, Rate5G, Rate10G, Rate14G, Rate20G, Rate30G, Rate25G, Rate28G, Rate40G, Rate60G, Rate50G, Rate56G,
	Rate80G, Rate120G, Rate100G, Rate112G, Rate168G, Rate200G, Rate300G, Rate400G, Rate600G, Rate800G, Rate1200G, Rate1600G,
}

// Rates lists all rates, the slowest first.
func Rates() []Rate { return slices.Clone(ratesInOrder[:]) }

// Compare orders rates by the data that they carry, which is neither the order
// of their codes nor that of Mbps: negative if x is slower than y. An unknown
// rate is slower than any other.
func (x Rate) Compare(y Rate) int {
	return cmp.Compare(slices.Index(ratesInOrder[:], x), slices.Index(ratesInOrder[:], y))
}

// The single widths in order, and their lanes.
var (
	singleWidths = [...]LinkWidth{LinkWidth1X, LinkWidth2X, LinkWidth4X, LinkWidth8X, LinkWidth12X}
	widthLanes   = [...]int{1, 2, 4, 8, 12}
)

// Lanes is the number of lanes of a single width, 0 if x is not one.
func (x LinkWidth) Lanes() int {
	if i := slices.Index(singleWidths[:], x); i >= 0 {
		return widthLanes[i]
	}
	return 0
}

// laneRates gives the rate of a link of each of singleWidths, as OpenSM
// computes it (ib_types.h, ib_port_info_compute_rate). XDR goes on from NDR;
// its 12 lanes have no code of their own and get the fastest that there is.
var laneRates = map[Speed][5]Rate{
	SpeedSDR:   {Rate2_5G, Rate5G, Rate10G, Rate20G, Rate30G},
	SpeedDDR:   {Rate5G, Rate10G, Rate20G, Rate40G, Rate60G},
	SpeedQDR:   {Rate10G, Rate20G, Rate40G, Rate80G, Rate120G},
	SpeedFDR10: {Rate10G, Rate20G, Rate40G, Rate80G, Rate120G},
	SpeedFDR:   {Rate14G, Rate28G, Rate56G, Rate112G, Rate168G},
	SpeedEDR:   {Rate25G, Rate50G, Rate100G, Rate200G, Rate300G},
	SpeedHDR:   {Rate50G, Rate100G, Rate200G, Rate400G, Rate600G},
	SpeedNDR:   {Rate100G, Rate200G, Rate400G, Rate800G, Rate1200G},
	SpeedXDR:   {Rate200G, Rate400G, Rate800G, Rate1600G, Rate1600G},
}

// RateOf is the rate of a link of a single width and speed, RateNone if there
// is no such link.
func RateOf(w LinkWidth, s Speed) Rate {
	i := slices.Index(singleWidths[:], w)
	if i < 0 {
		return RateNone
	}
	return laneRates[s][i]
}

// Speed is the speed the link runs at: of the three fields for it the newest
// that is not 0 (IBA 14.2.5.6). FDR10 shows as QDR here; it is in a vendor's
// attribute. 0 is no known speed.
func (p *PortInfo) Speed() Speed {
	return speedOf(p.LinkSpeedActive, p.LinkSpeedExtActive, p.LinkSpeedExtActive2)
}

// Rate is the rate of the link at its active width and speed.
func (p *PortInfo) Rate() Rate { return RateOf(p.LinkWidthActive, p.Speed()) }

// SetSpeed sets the three fields of the active speed, so that Speed gives s.
func (p *PortInfo) SetSpeed(s Speed) {
	p.LinkSpeedActive, p.LinkSpeedExtActive, p.LinkSpeedExtActive2 = s.fields()
}

// SetSpeedsUpTo makes every speed from SDR to top, FDR10 aside, supported and
// enabled.
func (p *PortInfo) SetSpeedsUpTo(top Speed) {
	l, e, e2 := (top | (top - 1)).fields()
	p.LinkSpeedSupported, p.LinkSpeedExtSupported, p.LinkSpeedExtSupported2 = l, e, e2
	p.LinkSpeedEnabled, p.LinkSpeedExtEnabled, p.LinkSpeedExtEnabled2 = l, e, e2
}

// The kernel's Speed joins the bits of LinkSpeed, FDR10, LinkSpeedExt and
// LinkSpeedExt2 in this order.
const (
	speedShiftExt  = 4
	speedShiftExt2 = 8
)

func speedOf(l LinkSpeed, e LinkSpeedExt, e2 LinkSpeedExt2) Speed {
	all := Speed(e2)<<speedShiftExt2 | Speed(e)<<speedShiftExt | Speed(l)
	if all == 0 {
		return 0
	}
	s := Speed(1) << (bits.Len16(uint16(all)) - 1)
	if s > SpeedXDR || s == SpeedFDR10 {
		return 0
	}
	return s
}

func (x Speed) fields() (LinkSpeed, LinkSpeedExt, LinkSpeedExt2) {
	l := LinkSpeed(x & (SpeedSDR | SpeedDDR | SpeedQDR))
	if x == SpeedFDR10 {
		l = LinkSpeedQDR
	}
	return l, LinkSpeedExt(x >> speedShiftExt & 0xf), LinkSpeedExt2(x >> speedShiftExt2)
}

// TimeOf is the duration 4.096 us * 2^n: the unit of the packet life time, the
// response time, the subnet time-out and others (IBA 13.4.6.2). n has at most
// 6 bits; a time that does not fit into a Duration is the longest one.
func TimeOf(n uint8) time.Duration {
	const unit = 4096 * time.Nanosecond
	if n > 50 {
		return 1<<63 - 1
	}
	return unit << n
}

// CodeOf is the smallest code whose TimeOf is at least d.
func CodeOf(d time.Duration) uint8 {
	n := uint8(0)
	for TimeOf(n) < d {
		n++
	}
	return n
}
