package script

import "sync"

// sink takes the events of threads.
type sink interface{ emit(e *Event) }

// reporter hands events to Options.Report, one at a time.
type reporter struct {
	mu sync.Mutex
	to func(*Event)
}

func (r *reporter) emit(e *Event) {
	if r.to == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to(e)
}

// maxHeld is how many events of branches are held back for the sake of order.
const maxHeld = 4096

// order hands on the events of branches in the order of the branches. If they are too
// many to be held back they come as they are.
type order struct {
	to sink

	mu    sync.Mutex
	first int             // the branch whose events go straight on
	held  map[int][]Event // those of later ones
	over  map[int]bool    // later ones that have ended
	n     int             // events held
	loose bool
}

func newOrder(to sink) *order {
	return &order{to: to, held: make(map[int][]Event), over: make(map[int]bool)}
}

// branch is the sink of one branch.
type branch struct {
	order *order
	index int
}

func (b branch) emit(e *Event) {
	o := b.order
	o.mu.Lock()
	defer o.mu.Unlock()
	if b.index == o.first || o.loose {
		o.to.emit(e)
		return
	}
	o.held[b.index] = append(o.held[b.index], *e)
	if o.n++; o.n > maxHeld {
		o.loose = true
		for i := o.first + 1; o.n > 0; i++ {
			o.flush(i)
		}
	}
}

// end says that a branch has ended.
func (b branch) end() {
	o := b.order
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over[b.index] = true
	for o.over[o.first] {
		delete(o.over, o.first)
		o.first++
		o.flush(o.first)
	}
}

// flush hands on what is held of a branch.
func (o *order) flush(index int) {
	for i := range o.held[index] {
		o.to.emit(&o.held[index][i])
	}
	o.n -= len(o.held[index])
	delete(o.held, index)
}
