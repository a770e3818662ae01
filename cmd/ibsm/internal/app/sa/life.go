package sa

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// lifeTime reads a packet life time: a time, which the powers that a path can
// have need not hit, or its exponent.
func lifeTime(s string) (span[uint8], error) {
	if n, err := strconv.ParseUint(s, 0, 64); err == nil && n < 64 {
		return exactly(uint8(n)), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < mad.TimeOf(0) {
		return span[uint8]{}, fmt.Errorf("a packet life time is a time from %v, such as 1.07s, or the exponent n of 4.096us*2^n, 0 to 63", mad.TimeOf(0))
	}
	above := mad.CodeOf(d)
	for code := max(above, 1) - 1; code <= above; code++ {
		if t := mad.TimeOf(code); t == d || round(t) == d { // as it is printed
			return exactly(code), nil
		}
	}
	below := above - 1
	return span[uint8]{below, above, fmt.Sprintf("no packet life time is %v: there are %v (%d) and %v (%d)",
		d, round(mad.TimeOf(below)), below, round(mad.TimeOf(above)), above)}, nil
}

// round leaves three digits of a time.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
