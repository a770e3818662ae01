package sa

import (
	"slices"

	"github.com/ibsm/ibsm/mad"
)

// Bounded are the values of a path that a query can bound: MTU, rate, and the
// exponent of the packet life time.
type Bounded interface{ mad.MTU | mad.Rate | uint8 }

// Bound is what a value of a path has to be. The zero Bound is any.
//
// An SA compares by one of four selectors (IBA 15.2.5.16): greater than, less
// than, exactly, best. What exactly means is the SA's: OpenSM gives a path that
// could carry more, as one of just the MTU asked for.
type Bound[T Bounded] struct {
	counts   bool
	selector mad.Selector
	value    T
}

// Exactly is the Bound of one value.
func Exactly[T Bounded](v T) Bound[T] { return Bound[T]{true, mad.SelectorExactly, v} }

// GreaterThan is the Bound of the values above v.
func GreaterThan[T Bounded](v T) Bound[T] { return Bound[T]{true, mad.SelectorGreaterThan, v} }

// LessThan is the Bound of the values below v.
func LessThan[T Bounded](v T) Bound[T] { return Bound[T]{true, mad.SelectorLessThan, v} }

// Best is the Bound of the largest MTU or rate, or the smallest life time, that
// there is.
func Best[T Bounded]() Bound[T] {
	// The value does not count, but OpenSM refuses one that is none.
	return Bound[T]{true, mad.SelectorBest, inOrder[T]()[0]}
}

// AtLeast is the Bound of v and the values above it: those greater than the next
// one below v. At least the lowest, or an unknown value, is any.
func AtLeast[T Bounded](v T) Bound[T] {
	all := inOrder[T]()
	if i := slices.Index(all, v); i > 0 {
		return GreaterThan(all[i-1])
	}
	return Bound[T]{}
}

// AtMost is the Bound of v and the values below it: those less than the next one
// above v. At most the highest, or an unknown value, is any.
func AtMost[T Bounded](v T) Bound[T] {
	all := inOrder[T]()
	if i := slices.Index(all, v); i >= 0 && i+1 < len(all) {
		return LessThan(all[i+1])
	}
	return Bound[T]{}
}

// inOrder gives all values of a type, the lowest first.
func inOrder[T Bounded]() (all []T) {
	switch any(T(0)).(type) {
	case mad.MTU:
		for v := mad.MTU256; v <= mad.MTU4096; v++ {
			all = append(all, T(v))
		}
	case mad.Rate:
		for _, v := range mad.Rates() {
			all = append(all, T(v))
		}
	default:
		for v := range T(64) { // the field has 6 bits
			all = append(all, v)
		}
	}
	return all
}
