package cm

import (
	"container/heap"
	"time"
)

// timers is a heap of ids by the moment at which each goes on; an id has at most
// one thing to wait for.
type timers struct {
	heap timerHeap
	seq  uint64
}

// timer is the part of an id that timers holds.
type timer struct {
	at  time.Time
	seq uint64 // order of setting, to end timers of the same moment in turn
	pos int    // 1 + index in the heap; 0 is not set
}

func (ts *timers) set(c *ID, at time.Time) {
	ts.seq++
	c.timer.at, c.timer.seq = at, ts.seq
	if c.timer.pos == 0 {
		heap.Push(&ts.heap, c)
	} else {
		heap.Fix(&ts.heap, c.timer.pos-1)
	}
}

func (ts *timers) stop(c *ID) {
	if c.timer.pos != 0 {
		heap.Remove(&ts.heap, c.timer.pos-1)
	}
}

// next is the earliest moment, or the zero time.
func (ts *timers) next() time.Time {
	if len(ts.heap) == 0 {
		return time.Time{}
	}
	return ts.heap[0].timer.at
}

// due takes the first id whose moment is not after now, or nil.
func (ts *timers) due(now time.Time) *ID {
	if len(ts.heap) == 0 || ts.heap[0].timer.at.After(now) {
		return nil
	}
	return heap.Pop(&ts.heap).(*ID)
}

type timerHeap []*ID

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if c := h[i].timer.at.Compare(h[j].timer.at); c != 0 {
		return c < 0
	}
	return h[i].timer.seq < h[j].timer.seq
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].timer.pos, h[j].timer.pos = i+1, j+1
}

func (h *timerHeap) Push(x any) {
	c := x.(*ID)
	*h = append(*h, c)
	c.timer.pos = len(*h)
}

func (h *timerHeap) Pop() any {
	old := *h
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	c.timer.pos = 0
	return c
}
