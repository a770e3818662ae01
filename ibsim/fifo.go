package ibsim

import "slices"

// fifo is a first-in first-out queue.
type fifo[T any] struct {
	items []T
	first int // index of the next to come out
}

func (q *fifo[T]) len() int { return len(q.items) - q.first }

func (q *fifo[T]) push(x *T) {
	if q.first > 64 && q.first > len(q.items)/2 { // or the array would grow for ever
		q.items = slices.Delete(q.items, 0, q.first)
		q.first = 0
	}
	q.items = append(q.items, *x)
}

// next is the item that comes out next, if there is one. It is valid until push.
func (q *fifo[T]) next() *T { return &q.items[q.first] }

func (q *fifo[T]) drop() {
	q.first++
	if q.first == len(q.items) {
		q.items, q.first = q.items[:0], 0
	}
}
