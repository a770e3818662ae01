package ucma

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// ID is an rdma_cm id: a listener, or one side of a connection. Its methods write
// one command each, once it is certain that the command is legal in the id's
// state; what comes of it are events, which [ID.Next] and [ID.Wait] give.
type ID struct {
	uid    uint64
	num    uint32
	ps     PortSpace
	qpType QPType
	parent *ID // the listener that it came to

	mu       sync.Mutex
	ch       *Channel
	state    State
	phase    phase
	dst      Sockaddr // as resolved; decides how much private data fits
	box      mailbox
	final    *Event // that ended the connection
	backlog  int
	accepted bool           // it has outgrown its listener
	children map[uint32]*ID // of a listener: those that came to it
	groups   map[uint64]*Group

	last finale
}

// finale ends an id or a group, once, and in a goroutine of its own: a kernel waits
// for the handlers of what it destroys, and cannot be interrupted.
type finale struct {
	once sync.Once
	done chan struct{}
	err  error
}

// start has first run at once, and then rest in the goroutine.
func (f *finale) start(first func(), rest func() error) {
	f.once.Do(func() {
		first()
		f.done = make(chan struct{})
		go func() {
			defer close(f.done)
			f.err = rest()
		}()
	})
}

func (f *finale) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// QPTypeOf is the type of queue pair of a port space: RC for TCP, UD for UDP and
// IPoIB; for IB the program chooses it with the id.
func QPTypeOf(ps PortSpace) QPType {
	switch ps {
	case PortSpaceUDP, PortSpaceIPoIB:
		return QPTypeUD
	}
	return QPTypeRC
}

// CreateID makes an id. qp counts in port space IB alone, see [QPTypeOf]; 0 is RC
// there.
func (c *Channel) CreateID(ps PortSpace, qp QPType) (*ID, error) {
	if ps != PortSpaceIB || qp == 0 {
		qp = QPTypeOf(ps)
	}
	id := newID(c, ps, qp)
	c.add(id.uid, id)
	var r CreateIDResp
	if err := Do(c.dev, CreateID{UID: id.uid, PS: ps, QPType: qp}, &r); err != nil {
		c.remove(id.uid)
		return nil, advise(err)
	}
	id.num = r.ID
	return id, nil
}

func newID(c *Channel, ps PortSpace, qp QPType) *ID {
	return &ID{uid: lastUID.Add(1), ch: c, ps: ps, qpType: qp, box: newMailbox()}
}

// Num is the kernel's number of the id. It may be used again once the id is destroyed.
func (id *ID) Num() uint32 { return id.num }

// PortSpace is that of CREATE_ID, or of the listener.
func (id *ID) PortSpace() PortSpace { return id.ps }

// QPType is the type of the queue pair that the id is for.
func (id *ID) QPType() QPType { return id.qpType }

// State is where the id stands.
func (id *ID) State() State {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.state
}

// String names the id in messages.
func (id *ID) String() string { return fmt.Sprintf("id %d (%v)", id.num, id.State()) }

func (id *ID) channel() *Channel {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.ch
}

// run writes a command if r allows it.
func (id *ID) run(r *rule, cmd Command, resp Response) error {
	undo, state, err := id.begin(cmd, r)
	if err != nil {
		return err
	}
	if err := Do(id.channel().dev, cmd, resp); err != nil {
		undo()
		return id.failed(state, err)
	}
	return nil
}

func (id *ID) failed(state State, err error) error {
	return &IDError{ID: id.num, State: state, Err: advise(err)}
}

// receive takes an event of the id, moves its state on, and keeps the event.
func (id *ID) receive(c *Channel, r *EventResp) {
	id.mu.Lock()
	// On illumos a child has its listener's uid until it is accepted
	// (sol_ucma.c).
	if child := id.children[r.ID]; child != nil && r.Event != EventConnectRequest {
		id.mu.Unlock()
		child.receive(c, r)
		return
	}
	defer id.mu.Unlock()
	id.box.fetched++
	e := makeEvent(c.dialect, r, id.qpType)
	if r.Event == EventConnectRequest {
		child := newID(c, id.ps, id.qpType)
		child.num, child.parent, child.state, child.phase = r.ID, id, StateConnect, phaseRequested
		c.add(child.uid, child)
		if id.children == nil {
			id.children = map[uint32]*ID{}
		}
		id.children[child.num] = child
		if len(id.box.queue) >= id.backlog || id.box.ended != nil {
			c.refuse(child)
			return
		}
		e.Child = child
	}
	id.advance(&e)
	switch e.Type {
	case EventDisconnected, EventDeviceRemoval, EventRejected, EventUnreachable:
		if id.final == nil {
			id.final = &e
		}
	}
	if e.Type == EventDeviceRemoval {
		for _, g := range id.groups {
			g.box.put(e)
		}
	}
	id.box.put(e)
}

// refuse destroys the child of a request that nobody will see. The kernel sends the
// peer a REJ for it (reason 28), unlike for a request over its own backlog, which it
// drops.
func (c *Channel) refuse(child *ID) {
	c.mu.Lock()
	c.stats.Refused++
	c.mu.Unlock()
	child.startDestroy()
}

// skip destroys the child of a request that is nobody's any more.
func (c *Channel) skip(child *ID) {
	c.mu.Lock()
	c.stats.Skipped++
	c.mu.Unlock()
	child.startDestroy()
}

// Next waits for the next event of the id, whatever it is. When the id is being
// destroyed the error is ErrDestroyed; when its Channel ends, the reason for that.
func (id *ID) Next(ctx context.Context) (Event, error) { return id.next(ctx, &id.box) }

func (id *ID) next(ctx context.Context, box *mailbox) (Event, error) {
	for {
		id.mu.Lock()
		e, ok := box.take()
		changed, ended, c := box.changed, box.ended, id.ch
		id.mu.Unlock()
		if ok {
			return e, nil
		}
		if ended != nil {
			return Event{}, ended
		}
		if err := c.await(ctx, changed); err != nil {
			return Event{}, err
		}
	}
}

// await waits until something has changed.
func (c *Channel) await(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		select {
		case <-changed:
			return nil // it came before the end
		default:
			return c.err
		}
	}
}

// Wait gives the next event that is of one of these types. An event of a failure
// ends it with that as the error (*RejectError, *UnreachableError, *EventError, or
// ErrGone); so does any other that does not belong there. Events that only inform
// (ADDR_CHANGE, TIMEWAIT_EXIT, and types that are not known) are passed over.
func (id *ID) Wait(ctx context.Context, types ...EventType) (Event, error) {
	return waitFor(ctx, id.Next, types)
}

// ended waits for the event that ends the connection, and leaves it for others to
// see.
func (id *ID) ended(ctx context.Context) (Event, error) {
	for {
		id.mu.Lock()
		final, changed, ended, c := id.final, id.box.changed, id.box.ended, id.ch
		id.mu.Unlock()
		if final != nil {
			return *final, nil
		}
		if ended != nil {
			return Event{}, ended
		}
		if err := c.await(ctx, changed); err != nil {
			return Event{}, err
		}
	}
}

// Destroy destroys the id, and of a listener also the requests that were not
// accepted. A connection that is up is torn down, a request that waits is
// rejected. Events that nobody took are dropped, and who waits for one gets
// ErrDestroyed. It ends with the context, but the id is destroyed all the same, as
// soon as the kernel has done with it; a second call waits again.
func (id *ID) Destroy(ctx context.Context) error {
	id.startDestroy()
	if err := id.last.wait(ctx); err != nil {
		return id.failed(StateDestroying, err)
	}
	return nil
}

func (id *ID) startDestroy() {
	id.last.start(id.end, func() error {
		c := id.channel()
		err := c.destroy(DestroyID{ID: id.num}, id.uid, func() uint32 {
			id.mu.Lock()
			defer id.mu.Unlock()
			return id.box.fetched
		})
		if id.parent != nil {
			id.parent.forget(id)
		}
		id.mu.Lock()
		groups, children := slices.Collect(maps.Values(id.groups)), slices.Collect(maps.Values(id.children))
		id.mu.Unlock()
		for _, g := range groups {
			g.forget(c)
		}
		for _, child := range children {
			if child.outgrown() {
				continue
			}
			child.startDestroy()
			<-child.last.done
		}
		return err
	})
}

// end lets nobody wait for the id or its groups any more.
func (id *ID) end() {
	id.mu.Lock()
	defer id.mu.Unlock()
	id.state, id.phase = StateDestroying, phaseNone
	id.box.end(ErrDestroyed)
	for _, g := range id.groups {
		g.box.end(ErrDestroyed)
	}
}

func (id *ID) outgrown() bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.accepted
}

// forget tells a listener that a child is gone.
func (id *ID) forget(child *ID) {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.children[child.num] == child {
		delete(id.children, child.num)
	}
}
