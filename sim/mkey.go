package sim

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/ibsm/ibsm/mad"
)

func mkeyOf(p *packet) uint64 { return binary.BigEndian.Uint64(p.mad[offMKey:]) }

// admits tells whether the M_Key of an end port lets a request in (IBA 14.2.4.1).
// What it does not let in is counted, and starts the lease of the key.
func (c *core) admits(end *simPort, key uint64, method mad.Method) bool {
	info := end.info
	if info == nil || info.MKey == 0 {
		return true
	}
	if !end.leaseEnd.IsZero() && !c.now.Before(end.leaseEnd) {
		info.MKeyProtectBits, end.leaseEnd = 0, time.Time{} // any SM may read the key now
	}
	switch {
	case key == info.MKey:
		end.leaseEnd = time.Time{}
		return true
	case method == mad.MethodGet && info.MKeyProtectBits < 2:
		return true
	}
	if info.MKeyViolations < math.MaxUint16 {
		info.MKeyViolations++
	}
	if info.MKeyLeasePeriod != 0 && end.leaseEnd.IsZero() {
		end.leaseEnd = c.now.Add(time.Duration(info.MKeyLeasePeriod) * time.Second)
	}
	return false
}
