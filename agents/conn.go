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

// Defaults of an RMPPConfig for answers.
const (
	// DefaultIdleTimeout is 4 times the 2 s for which a kernel waits for an ACK: how
	// long OpenSM, which asks it for 3 retries, goes on before it gives up.
	DefaultIdleTimeout    = 4 * rmpp.DefaultSegmentTimeout
	DefaultReceiveTimeout = 10 * time.Minute
)

// RMPPConfig has the parameters of RMPP above the Port; what is zero has the
// value of the Linux kernel's implementation (see package rmpp), but for the time
// that an answer may take.
type RMPPConfig struct {
	Window         uint32        // segments granted with an ACK. 0: 64
	SegmentTimeout time.Duration // wait for an ACK. 0: 2 s
	// ReceiveTimeout limits the time for a whole message, from its first segment.
	// 0: DefaultReceiveTimeout for an answer, 40 s for a request.
	ReceiveTimeout time.Duration
	// IdleTimeout limits the wait for the next segment of an answer, one that is
	// new. A responder that has lost an ACK, or whose segments are lost, is silent
	// while it waits for the next one, which is no reason to give it up. 0:
	// DefaultIdleTimeout, or as long as the request may wait for the first segment,
	// Timeout × (Retries + 1), if that is longer.
	IdleTimeout time.Duration
	Memory      time.Duration // for which a received message is remembered, to acknowledge what comes again. 0: 10 s
	// Retries is how often segments are sent again before a transfer is given
	// up; it starts anew with each ACK. In RMPPKernel mode it goes to the kernel
	// with long messages. 0: 7.
	Retries int
}

// Conn is one open file on a device with its agents. Whoever brings an event, the
// goroutine that reads, the timer or a program, handles it under the lock.
type Conn struct {
	port     port.Port
	cfg      Config
	counters counters
	running  sync.WaitGroup // reader and all workers

	mu    sync.Mutex
	state state
	timer *time.Timer
	armed time.Time // when timer rings; zero if it does not
}

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
	c := &Conn{port: p, cfg: cfg}
	c.state.init(c)
	c.timer = time.AfterFunc(time.Hour, func() {
		c.do(func(time.Time) { c.armed = time.Time{} })
	})
	c.timer.Stop()
	c.running.Go(c.read)
	return c, nil
}

// read takes messages from the Port until that ends, and everything with it.
func (c *Conn) read() {
	var m port.Message
	for {
		if err := c.port.Recv(&m); err != nil {
			c.do(func(now time.Time) { c.state.end(now, err) })
			return
		}
		c.do(func(now time.Time) { c.state.receive(now, &m) })
	}
}

// do has f handle an event, and then whatever is due. f does not wait.
func (c *Conn) do(f func(now time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	f(now)
	for a := c.state.alarms.due(now); a != nil; a = c.state.alarms.due(now) {
		a.owner.rang(&c.state, now)
	}
	if next := c.state.alarms.next(); !next.Equal(c.armed) {
		c.armed = next
		if next.IsZero() {
			c.timer.Stop()
		} else {
			c.timer.Reset(next.Sub(now))
		}
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
