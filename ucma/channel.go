package ucma

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Channel is an open rdma_cm device with its ids: what librdmacm calls an event
// channel. One goroutine fetches the events and gives each to the id that it is
// for. The methods of a Channel and of its ids may be called from any goroutine.
type Channel struct {
	dev     Device
	dialect *Dialect
	stop    context.CancelFunc
	closing finale
	users   atomic.Int32 // of a listener's channel: the listener and its connections

	done chan struct{} // closed when no event comes any more
	err  error         // then: why

	fetch sync.Mutex // held from GET_EVENT until its event is handed out

	mu    sync.Mutex
	boxes map[uint64]receiver // by uid
	stats Stats
}

// receiver is what has a uid: an id or a group.
type receiver interface {
	receive(c *Channel, r *EventResp)
}

// Stats counts the events of a channel, and what was out of the ordinary.
type Stats struct {
	Events    uint64 // fetched
	Unknown   uint64 // of them: of a type that this package does not know
	Unclaimed uint64 // of them: for no id or group of the channel
	Refused   uint64 // connection requests over the backlog of a listener, or for one that was going
	Skipped   uint64 // connection requests that [Listener.Next] passed over: their ids answered no questions any more
	Missing   uint64 // fetched, says the kernel, for an id or a group that is gone now, but not seen here
}

// lastUID makes uids unique in the process: an id takes its own along when it
// migrates. A kernel throws the events of uid 0 away.
var lastUID atomic.Uint64

// NewChannel starts to fetch the events of dev, which is the Channel's from now on.
func NewChannel(dev Device) *Channel {
	ctx, stop := context.WithCancel(context.Background())
	c := &Channel{dev: dev, dialect: dev.Dialect(), stop: stop, done: make(chan struct{}), boxes: map[uint64]receiver{}}
	go c.run(ctx)
	return c
}

// Dialect is that of the device.
func (c *Channel) Dialect() *Dialect { return c.dialect }

// Stats gives the counters.
func (c *Channel) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Close closes the device. Destroy the ids before: a kernel destroys those that are
// left, but makes the process wait for it, 10 s a time if a connection is up. Nor does
// Close end before a command that the kernel has not done with.
func (c *Channel) Close() error { return c.closeWithin(context.Background()) }

// closeWithin ends with the context, but the device is closed all the same, as soon as
// the kernel lets go of it.
func (c *Channel) closeWithin(ctx context.Context) error {
	c.closing.start(c.stop, func() error {
		err := c.dev.Close()
		<-c.done
		return err
	})
	return c.closing.wait(ctx)
}

// run hands out events until there are no more.
func (c *Channel) run(ctx context.Context) {
	defer close(c.done)
	for {
		err := c.dev.Wait(ctx)
		if ctx.Err() != nil {
			c.err = ErrClosed
			return
		}
		if err == nil {
			c.fetch.Lock()
			err = c.next()
			c.fetch.Unlock()
		}
		if err != nil && !errors.Is(err, EAGAIN) && !errors.Is(err, EINTR) {
			c.err = fmt.Errorf("wait for events: %w", err)
			return
		}
	}
}

// next fetches one event and hands it out; EAGAIN if there is none. The caller
// holds c.fetch.
func (c *Channel) next() error {
	var r EventResp
	if err := Do(c.dev, GetEvent{}, &r); err != nil {
		return err
	}
	c.mu.Lock()
	c.stats.Events++
	if !known(r.Event) {
		c.stats.Unknown++
	}
	to := c.boxes[r.UID]
	if to == nil {
		c.stats.Unclaimed++
	}
	c.mu.Unlock()
	switch {
	case to != nil:
		to.receive(c, &r)
	case r.Event == EventConnectRequest:
		// Its listener is gone; without this the peer would wait for an answer.
		go Do(c.dev, DestroyID{ID: r.ID}, new(DestroyIDResp))
	}
	return nil
}

// settle returns when every event that was fetched before has been handed out.
func (c *Channel) settle() {
	c.fetch.Lock()
	defer c.fetch.Unlock()
}

// destroy writes DESTROY_ID or LEAVE_MCAST for what has this uid, and forgets the
// uid. It returns when every event that was fetched for it has been handed out;
// have says how many were.
func (c *Channel) destroy(cmd Command, uid uint64, have func() uint32) error {
	var r DestroyIDResp
	err := c.doDestroy(cmd, &r)
	c.settle()
	got := have()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.boxes, uid)
	if r.EventsReported > got {
		c.stats.Missing += uint64(r.EventsReported - got)
	}
	if errors.Is(err, ErrClosed) || errors.Is(err, ErrGone) {
		return nil // with the open file go all its ids
	}
	return err
}

// doDestroy takes care that events of other ids survive, as far as that can be done: on
// illumos one that comes between the last fetch and the command is lost. So who has
// several ids on a channel there, as a listener with its connections has, must bound
// its waits.
func (c *Channel) doDestroy(cmd Command, r *DestroyIDResp) error {
	if c.dialect == Illumos && cmd.Op() == OpDestroyID {
		// It empties the event queue of the whole open file
		// (sol_ucma_destroy_id), so what is in it is fetched before.
		c.fetch.Lock()
		defer c.fetch.Unlock()
		for c.next() == nil {
		}
	}
	return Do(c.dev, cmd, r)
}

func (c *Channel) add(uid uint64, to receiver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boxes[uid] = to
}

func (c *Channel) remove(uid uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.boxes, uid)
}

// release closes the channel with its last user.
func (c *Channel) release(ctx context.Context) error {
	if c.users.Add(-1) > 0 {
		return nil
	}
	return c.closeWithin(ctx)
}
