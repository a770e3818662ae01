package softmad

import (
	"container/heap"
	"time"
)

// timer is something that ends or goes on at a moment. It is part of its owner.
type timer struct {
	at    time.Time
	seq   uint64 // order of setting, to end timers of the same moment in turn
	pos   int    // 1 + index in the heap; 0 is not set
	owner interface{ expire(c *core, now time.Time) }
}

// timers is a heap of deadlines.
type timers struct {
	heap timerHeap
	seq  uint64
}

// set moves t to a moment; the zero time stops it.
func (ts *timers) set(t *timer, at time.Time) {
	if at.IsZero() {
		ts.stop(t)
		return
	}
	ts.seq++
	t.at, t.seq = at, ts.seq
	if t.pos == 0 {
		heap.Push(&ts.heap, t)
	} else {
		heap.Fix(&ts.heap, t.pos-1)
	}
}

func (ts *timers) stop(t *timer) {
	if t.pos != 0 {
		heap.Remove(&ts.heap, t.pos-1)
	}
}

// next is the earliest deadline, or the zero time.
func (ts *timers) next() time.Time {
	if len(ts.heap) == 0 {
		return time.Time{}
	}
	return ts.heap[0].at
}

// due takes the first timer that is not after now, or nil.
func (ts *timers) due(now time.Time) *timer {
	if len(ts.heap) == 0 || ts.heap[0].at.After(now) {
		return nil
	}
	return heap.Pop(&ts.heap).(*timer)
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if c := h[i].at.Compare(h[j].at); c != 0 {
		return c < 0
	}
	return h[i].seq < h[j].seq
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i+1, j+1
}

func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	*h = append(*h, t)
	t.pos = len(*h)
}

func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.pos = 0
	return t
}
