package capture

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// maxQueue is how much waits for a file that is slow.
	maxQueue = 32 << 20
	// chunkSize is about how much is written at a time.
	chunkSize = 64 << 10
	// patience is how long Close waits for the file to take anything.
	patience = 5 * time.Second
)

// queue writes in a goroutine, so that a file that is slow, or takes nothing at all,
// holds up nobody else. There is a goroutine while there are chunks; it writes the first.
type queue struct {
	dst io.Writer

	mu      sync.Mutex
	chunks  []chunk
	size    int           // of all chunks
	spare   []byte        // of a chunk that is written
	turned  chan struct{} // closed when a Write has ended; nil if nobody waits for that
	missing uint64        // records for which there was no room
	err     error         // what went wrong first; nothing is written any more
}

// chunk is whole blocks of the file, which are written together.
type chunk struct {
	blocks  []byte
	records uint64
}

// MissingError tells how many packets are not in a file that took them more slowly than
// they came.
type MissingError struct {
	Packets uint64
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("capture: %d packets are missing, the file took the others too slowly", e.Packets)
}

// hasRoom tells whether one more record may be written, when so many bytes wait outside.
// Otherwise it counts as missing.
func (q *queue) hasRoom(outside int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.size+outside < maxQueue {
		return true
	}
	q.missing++
	return false
}

// add takes blocks with so many records.
func (q *queue) add(blocks []byte, records uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return
	}
	last := len(q.chunks) - 1
	if last < 1 || len(q.chunks[last].blocks) >= chunkSize {
		q.chunks = append(q.chunks, chunk{blocks: q.spare[:0]})
		q.spare = nil
		last++
	}
	c := &q.chunks[last]
	c.blocks = append(c.blocks, blocks...)
	c.records += records
	q.size += len(blocks)
	if last == 0 {
		go q.write()
	}
}

// write is the goroutine.
func (q *queue) write() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.chunks) > 0 {
		first := q.chunks[0].blocks
		q.mu.Unlock()
		_, err := q.dst.Write(first)
		q.mu.Lock()
		if err != nil {
			q.failed(fmt.Errorf("capture: write: %w", err))
		}
		if q.err != nil {
			return
		}
		q.chunks[0] = chunk{}
		q.chunks = q.chunks[1:]
		q.size -= len(first)
		q.spare = first
		q.turn()
	}
}

// turn wakes drain. The caller holds q.mu, as with failed.
func (q *queue) turn() {
	if q.turned != nil {
		close(q.turned)
		q.turned = nil
	}
}

func (q *queue) failed(err error) {
	if q.err == nil {
		q.err, q.chunks, q.size = err, nil, 0
		q.turn()
	}
}

func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed(err)
}

// drain waits until everything is written, or the file takes nothing more.
func (q *queue) drain() {
	stuck := time.NewTimer(patience)
	defer stuck.Stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.chunks) > 0 {
		if q.turned == nil {
			q.turned = make(chan struct{})
		}
		turned := q.turned
		q.mu.Unlock()
		select {
		case <-turned:
		case <-stuck.C:
		}
		q.mu.Lock()
		if q.turned != turned {
			stuck.Reset(patience)
			continue
		}
		for _, c := range q.chunks {
			q.missing += c.records
		}
		q.failed(fmt.Errorf("capture: the file has taken nothing for %v: %w", patience, &MissingError{q.missing}))
	}
}

// state is what went wrong.
func (q *queue) state() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil && q.missing > 0 {
		return &MissingError{q.missing}
	}
	return q.err
}

func (q *queue) hasFailed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err != nil
}
