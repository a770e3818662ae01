package app

import (
	"context"
	"fmt"
	"io"
	"time"
)

// patience is how long a write may take after an interrupt: long enough for the
// end of a document, not for a reader that has stopped reading.
const patience = time.Second

// patient is a writer whose writes end soon after ctx does, even if nobody reads:
// what is open is closed in order then, which a kill would not do.
type patient struct {
	ctx context.Context
	w   io.Writer
}

func (p *patient) Write(b []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := p.w.Write(b)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return r.n, r.err
	case <-p.ctx.Done():
	}
	select {
	case r := <-done:
		return r.n, r.err
	case <-time.After(patience):
		// b may still be read: whoever gets this error writes no more.
		return 0, fmt.Errorf("nobody reads: %w", p.ctx.Err())
	}
}
