package agents

import "sync"

// pipe carries payload from the reader to the goroutine that consumes it. It never
// makes the reader wait: what is not consumed is kept, up to a limit.
type pipe struct {
	limit int
	ready chan struct{} // something was written

	mu    sync.Mutex
	head  *Response // of the answer, from the first write on
	buf   []byte
	taken []byte // being consumed; it counts for the limit
}

func newPipe(limit int) *pipe {
	return &pipe{limit: limit, ready: make(chan struct{}, 1)}
}

// write copies b, unless that would be more than the limit. The first call
// brings the headers.
func (p *pipe) write(head *Response, b []byte) bool {
	p.mu.Lock()
	if p.head == nil {
		p.head = head
	}
	if len(p.taken)+len(p.buf)+len(b) > p.limit {
		p.mu.Unlock()
		return false
	}
	p.buf = append(p.buf, b...)
	p.mu.Unlock()
	select {
	case p.ready <- struct{}{}:
	default:
	}
	return true
}

// take gives the headers and all that was written since the last call, valid
// until consumed is called.
func (p *pipe) take() (*Response, []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf, p.taken = p.taken[:0], p.buf
	return p.head, p.taken
}

// consumed gives back what was taken.
func (p *pipe) consumed() {
	p.mu.Lock()
	p.taken = p.taken[:0]
	p.mu.Unlock()
}
