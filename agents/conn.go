package agents

import (
	"fmt"
	"sync"
	"time"

	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// Config tunes a Conn; its zero value is right for most programs.
type Config struct {
	// Grace is how long after the time at which the carrier must have reported
	// the outcome of a request its silence is taken for a time-out. A kernel says
	// nothing when a send fails, when the peer aborts an RMPP transfer, and when
	// a directed-route SMP ends in the local node. 0: 1 s.
	Grace time.Duration
	// RMPP has the parameters of agents in mode RMPPUser.
	RMPP RMPPConfig
}

// RMPPConfig has the parameters of RMPP above the Port; what is zero has the
// value of the Linux kernel's implementation (see package rmpp).
type RMPPConfig struct {
	Window         uint32        // segments granted with an ACK. 0: 64
	SegmentTimeout time.Duration // wait for an ACK. 0: 2 s
	ReceiveTimeout time.Duration // for a whole message, from its first segment. 0: 40 s
	Memory         time.Duration // for which a received message is remembered, to acknowledge what comes again. 0: 10 s
	// Retries is how often segments are sent again before a transfer is given
	// up; it starts anew with each ACK. In RMPPKernel mode it goes to the kernel
	// with long messages. 0: 7.
	Retries int
}

// Conn is one open file on a device with its agents: one goroutine that reads,
// and one that runs all of their exchanges.
type Conn struct {
	port     port.Port
	cfg      Config
	counters counters
	loop     loop
	running  sync.WaitGroup // reader, run loop and all workers
	wake     chan struct{}  // the inbox has something

	mu    sync.Mutex
	inbox []func(now time.Time) // for the run loop
	err   error                 // why the run loop has ended, or nil
}

// messages is how many received messages may be on the way from the reader to
// the run loop.
const messages = 64

// Open opens the device for a set of agents.
func Open(dev port.Device, cfg Config) (*Conn, error) {
	p, err := dev.Open()
	if err != nil {
		return nil, fmt.Errorf("open a port for agents: %w", err)
	}
	if cfg.Grace <= 0 {
		cfg.Grace = time.Second
	}
	if cfg.RMPP.Retries <= 0 {
		cfg.RMPP.Retries = 7
	}
	c := &Conn{port: p, cfg: cfg, wake: make(chan struct{}, 1)}
	c.loop.init(c)

	received := make(chan *port.Message, messages)
	free := make(chan *port.Message, messages)
	for range messages {
		free <- new(port.Message)
	}
	ended := make(chan error, 1)
	c.running.Go(func() { ended <- c.read(received, free) })
	c.running.Go(func() { c.loop.run(received, free, ended) })
	return c, nil
}

// read takes messages from the Port until that ends.
func (c *Conn) read(received chan<- *port.Message, free <-chan *port.Message) error {
	defer close(received)
	for {
		m := <-free
		if err := c.port.Recv(m); err != nil {
			return err
		}
		received <- m
	}
}

// Close ends everything with port.ErrClosed: requests under way, replies, and
// the Context of each handler. It returns when all handlers have; do not call
// it from one.
func (c *Conn) Close() error {
	err := c.port.Close()
	c.running.Wait()
	return err
}

// post has the run loop call f. It does not wait, and gives the reason if the
// run loop has ended.
func (c *Conn) post(f func(now time.Time)) error {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return c.err
	}
	c.inbox = append(c.inbox, f)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// call has the run loop call f and waits for what it returns.
func (c *Conn) call(f func(now time.Time) error) error {
	done := make(chan error, 1)
	if err := c.post(func(now time.Time) { done <- f(now) }); err != nil {
		return err
	}
	return <-done
}

// takeInbox empties the inbox. If it is empty and why is not nil, nothing can
// be posted any more.
func (c *Conn) takeInbox(why error) []func(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	posted := c.inbox
	c.inbox = nil
	if len(posted) == 0 && why != nil {
		c.err = why
	}
	return posted
}

func (c *Conn) senderConfig() rmpp.SenderConfig {
	return rmpp.SenderConfig{
		Timeout: c.cfg.RMPP.SegmentTimeout,
		Retries: c.cfg.RMPP.Retries,
	}
}

func (c *Conn) receiverConfig(maxData int) rmpp.ReceiverConfig {
	return rmpp.ReceiverConfig{
		Window:  c.cfg.RMPP.Window,
		MaxData: maxData,
		Timeout: c.cfg.RMPP.ReceiveTimeout,
		Memory:  c.cfg.RMPP.Memory,
	}
}
