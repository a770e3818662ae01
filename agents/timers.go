package agents

import (
	"container/heap"
	"time"
)

// alarm tells its owner when its time has come.
type alarm struct {
	at    time.Time
	pos   int // in the heap, from 1; 0 is not set
	owner interface{ rang(s *state, now time.Time) }
}

// alarms is a heap of those that are set, the earliest first.
type alarms []*alarm

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i+1, j+1
}

func (h *alarms) Push(x any) {
	a := x.(*alarm)
	*h = append(*h, a)
	a.pos = len(*h)
}

func (h *alarms) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	a.pos = 0
	return a
}

// set moves the alarm to another time; a zero time stops it.
func (h *alarms) set(a *alarm, at time.Time) {
	a.at = at
	switch {
	case at.IsZero() && a.pos > 0:
		heap.Remove(h, a.pos-1)
	case at.IsZero():
	case a.pos > 0:
		heap.Fix(h, a.pos-1)
	default:
		heap.Push(h, a)
	}
}

// next is when the earliest alarm rings, or zero.
func (h alarms) next() time.Time {
	if len(h) == 0 {
		return time.Time{}
	}
	return h[0].at
}

// due takes the earliest alarm out if its time has come.
func (h *alarms) due(now time.Time) *alarm {
	if len(*h) == 0 || (*h)[0].at.After(now) {
		return nil
	}
	return heap.Pop(h).(*alarm)
}

// earliest is the earlier of two times, of which zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
