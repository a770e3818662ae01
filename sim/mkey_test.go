package sim

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
)

const theKey = 0x1122334455667788

// withKey is a request with an M_Key.
func withKey(w wire, method mad.Method, key uint64) wire {
	w.MAD[mad.OffMethod] = byte(method)
	binary.BigEndian.PutUint64(w.MAD[offMKey:], key)
	return w
}

// pass lets time pass.
func (m *manager) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// lock gives h8 an M_Key.
func (m *manager) lock(protect uint8, lease uint16) {
	m.t.Helper()
	answer := m.mustSet(toH8, 1, func(i *mad.PortInfo) { i.MKey, i.MKeyProtectBits, i.MKeyLeasePeriod = theKey, protect, lease })
	if answer.MKey != theKey {
		m.t.Errorf("who sets the M_Key is shown %#x", answer.MKey)
	}
}

// TestMKey is IBA 14.2.4.1, table "Protection Levels": what a request without the
// right M_Key gets. With it, and where the key is 0, everything is let in.
func TestMKey(t *testing.T) {
	tests := []struct {
		protect   uint8
		get, show bool // Get is answered, and PortInfo shows the key
	}{{0, true, true}, {1, true, false}, {2, false, false}, {3, false, false}}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.protect), func(t *testing.T) {
			manage(t, Config{}, func(m *manager) {
				m.lock(tt.protect, 0)
				for _, key := range []uint64{0, 1, theKey} {
					right := key == theKey
					get := withKey(byLID(8, mad.AttrPortInfo, 1), mad.MethodGet, key)
					if got := m.ask("h2", get); (got != nil) != (right || tt.get) {
						t.Errorf("M_Key %#x: Get answered %v", key, got != nil)
					} else if got != nil {
						var info mad.PortInfo
						info.DecodeFrom(dataOf(t, got))
						want := uint64(0)
						if right || tt.show {
							want = theKey
						}
						if info.MKey != want || info.MKeyProtectBits != tt.protect {
							t.Errorf("M_Key %#x: shown %#x, protection %d", key, info.MKey, info.MKeyProtectBits)
						}
					} else if m.dropped(m.events()) != BadMKey {
						t.Errorf("M_Key %#x: %v", key, m.events())
					}
					set := withKey(byLID(8, mad.AttrPKeyTable, 0), mad.MethodSet, key)
					set.MAD[mad.OffSMPData] = 0xff
					if got := m.ask("h2", set); (got != nil) != right {
						t.Errorf("M_Key %#x: Set answered %v", key, got != nil)
					}
				}
				// The far ends of its link have none.
				if m.ask("h2", withKey(byLID(10, mad.AttrPortInfo, 4), mad.MethodGet, 0)) == nil {
					t.Error("s2 asks for a key")
				}
			})
		})
	}
}

// The lease begins with the first request that is not let in, and ends with one that
// is. When it is over, the key may be read (IBA 14.2.4).
func TestMKeyLease(t *testing.T) {
	manage(t, Config{}, func(m *manager) {
		m.lock(3, 10)
		wrong := withKey(byLID(8, mad.AttrPortInfo, 1), mad.MethodGet, 1)
		right := withKey(byLID(8, mad.AttrPortInfo, 1), mad.MethodGet, theKey)
		refused := func(want bool) {
			t.Helper()
			if (m.ask("h2", wrong) == nil) != want {
				t.Errorf("refused is %v, want %v", !want, want)
			}
		}
		refused(true)
		m.pass(9 * time.Second)
		var info mad.PortInfo
		info.DecodeFrom(dataOf(t, m.must("h2", right)))
		if info.MKeyViolations != 1 {
			t.Errorf("%d violations, want 1", info.MKeyViolations)
		}
		m.pass(9 * time.Second)
		refused(true) // the lease begins anew
		m.pass(10*time.Second - 1)
		refused(true)
		m.pass(1)
		info.DecodeFrom(dataOf(t, m.must("h2", wrong)))
		if info.MKeyProtectBits != 0 || info.MKey != theKey || info.MKeyViolations != 3 {
			t.Errorf("after the lease: protection %d, M_Key %#x, %d violations", info.MKeyProtectBits, info.MKey, info.MKeyViolations)
		}
		set := withKey(byLID(8, mad.AttrPortInfo, 1), mad.MethodSet, theKey)
		info.PortState, info.PortPhysicalState, info.MKeyViolations = 0, 0, 0 // which counts from there
		info.EncodeTo((*[64]byte)(set.MAD[mad.OffSMPData:]))
		info.DecodeFrom(dataOf(t, m.must("h2", set)))
		if info.MKeyViolations != 0 {
			t.Errorf("%d violations after the reset", info.MKeyViolations)
		}
	})
}
