package server

import (
	"slices"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/topo"
)

// The selectors of IBA 15.2.5.16, as OpenSM reads them: a way that carries more
// than was asked for can be used for less.

// chooseMTU gives the MTU of a path over a way of MTU have.
func chooseMTU(sel mad.Selector, want, have mad.MTU) (mad.MTU, bool) {
	switch sel {
	case mad.SelectorGreaterThan:
		return have, have > want
	case mad.SelectorLessThan:
		return min(have, want-1), want > mad.MTU256
	case mad.SelectorExactly:
		return want, have >= want
	}
	return have, true
}

// chooseRate gives the rate of a path over a way of rate have. Rates compare by
// bandwidth, not by their codes.
func chooseRate(sel mad.Selector, want, have mad.Rate) (mad.Rate, bool) {
	switch sel {
	case mad.SelectorGreaterThan:
		return have, have.Compare(want) > 0
	case mad.SelectorLessThan:
		if have.Compare(want) < 0 {
			return have, true
		}
		lower := slowerRate(want)
		return lower, lower != mad.RateNone
	case mad.SelectorExactly:
		return have, have == want
	}
	return have, true
}

// slowerRate is the highest rate below r, RateNone if there is none.
func slowerRate(r mad.Rate) mad.Rate {
	all := mad.Rates()
	if i := slices.Index(all, r); i > 0 {
		return all[i-1]
	}
	return mad.RateNone
}

func isRate(r mad.Rate) bool { return slices.Contains(mad.Rates(), r) }

// chooseLife gives the life time of packets of a group where have is enough.
func chooseLife(sel mad.Selector, want, have uint8) (uint8, bool) {
	switch sel {
	case mad.SelectorGreaterThan:
		return max(have, want+1), want < 63 // the field has 6 bits
	case mad.SelectorLessThan:
		return min(have, want-1), want > 0
	case mad.SelectorExactly:
		return want, true
	}
	return have, true
}

// keeps tells whether a value is what was asked for; order is that of the value to
// the one asked for.
func keeps(sel mad.Selector, order int) bool {
	switch sel {
	case mad.SelectorGreaterThan:
		return order > 0
	case mad.SelectorLessThan:
		return order < 0
	case mad.SelectorExactly:
		return order == 0
	}
	return true
}

// isIn tells whether a port is in the partition of key, as full or limited member.
func isIn(key mad.PKey, p *topo.Port) bool {
	return slices.ContainsFunc(p.PKeys, func(k mad.PKey) bool { return k.Base() == key.Base() })
}

// share tells whether two ports have a partition in common.
func share(a, b *topo.Port) bool {
	_, ok := sharedKey(a, b)
	return ok
}

// sharedKey finds a partition that both ports may talk in: that with the lowest
// key, as the source has it in its table, which is what OpenSM gives.
func sharedKey(src, dst *topo.Port) (key mad.PKey, ok bool) {
	for _, s := range src.PKeys {
		if ok && s.Base() >= key.Base() {
			continue
		}
		for _, d := range dst.PKeys {
			if s.Matches(d) {
				key, ok = s, true
			}
		}
	}
	return key, ok
}

// bothIn tells whether both ports may talk in the partition of key.
func bothIn(key mad.PKey, src, dst *topo.Port) bool {
	for _, s := range src.PKeys {
		for _, d := range dst.PKeys {
			if s.Base() == key.Base() && s.Matches(d) {
				return true
			}
		}
	}
	return false
}
