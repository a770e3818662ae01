package softcma

import (
	"time"

	"github.com/ibsm/ibsm/ucma"
)

// openFile is what the kernel knows of an open file (struct ucma_file).
type openFile struct {
	dialect *ucma.Dialect
	fd      uint32
	ctxs    []*uctx // in the order of their making
	events  []*uevent
	wake    chan struct{} // closed when an event comes
	closed  bool
}

func (f *openFile) isIllumos() bool { return f.dialect == ucma.Illumos }

// uctx is an id as users see it (struct ucma_context).
type uctx struct {
	num      uint32
	file     *openFile
	id       *cmid // nil once its device has been removed
	uid      uint64
	backlog  uint32 // CONNECT_REQUESTs that may still come before one is fetched
	reported uint32 // events fetched
	mcasts   []*mcast
	isUD     bool
}

// uevent is an event that waits to be fetched (struct ucma_event).
type uevent struct {
	ctx   *uctx // whose it is: of a CONNECT_REQUEST the listener
	child *uctx // the new id of a CONNECT_REQUEST
	mc    *mcast
	resp  ucma.EventResp
}

// table gives numbers to things: each the lowest that is free (xa_alloc).
type table[T any] struct {
	slots []*T
	low   int // all below are taken
	n     int
}

func (t *table[T]) add(x *T) uint32 {
	for t.low < len(t.slots) && t.slots[t.low] != nil {
		t.low++
	}
	if t.low == len(t.slots) {
		t.slots = append(t.slots, nil)
	}
	t.slots[t.low] = x
	t.n++
	return uint32(t.low)
}

func (t *table[T]) get(num uint32) *T {
	if uint64(num) < uint64(len(t.slots)) {
		return t.slots[num]
	}
	return nil
}

// drop takes x out of its place, and tells whether it was still there: the number may
// be another's by now (xa_cmpxchg).
func (t *table[T]) drop(num uint32, x *T) bool {
	if t.get(num) != x {
		return false
	}
	t.slots[num] = nil
	t.low = min(t.low, int(num))
	t.n--
	return true
}

// newCtx makes a context in a file (ucma_alloc_ctx, ucma_finish_ctx).
func (c *core) newCtx(f *openFile) *uctx {
	ctx := &uctx{file: f}
	ctx.num = c.ctxs.add(ctx)
	f.ctxs = append(f.ctxs, ctx)
	return ctx
}

// find looks a context up for a command of a file (ucma_get_ctx).
func (c *core) find(f *openFile, num uint32) (*uctx, error) {
	ctx := c.ctxs.get(num)
	switch {
	case f.isIllumos(): // whose it is does not matter there (get_file_chan)
		if ctx == nil || ctx.id == nil {
			return nil, ucma.EINVAL
		}
	case ctx == nil:
		return nil, ucma.ENOENT
	case ctx.file != f:
		return nil, ucma.EINVAL
	case ctx.id == nil:
		return nil, ucma.ENXIO
	}
	return ctx, nil
}

// findDev is find for commands that need a device (ucma_get_ctx_dev).
func (c *core) findDev(f *openFile, num uint32) (*uctx, error) {
	ctx, err := c.find(f, num)
	if err == nil && !ctx.id.hasDev {
		err = ucma.EINVAL
	}
	return ctx, err
}

// report puts an event into the file's queue (ucma_event_handler). Linux drops
// the events of an id whose uid is 0, illumos those that it does not know.
func (c *core) report(id *cmid, e event) {
	ctx := id.ctx
	if ctx.file.isIllumos() {
		if e.typ > ucma.EventAddrChange {
			return
		}
	} else if ctx.uid == 0 {
		return
	}
	c.enqueue(ctx, e)
}

func (c *core) enqueue(ctx *uctx, e event) *uevent {
	u := &uevent{ctx: ctx, mc: e.mc, resp: ucma.EventResp{
		UID: ctx.uid, ID: ctx.num, Event: e.typ, Status: e.status,
	}}
	if !ctx.file.isIllumos() {
		u.resp.ECE = ucma.ECE(e.ece)
	}
	if errno, ok := e.err.(ucma.Errno); ok {
		u.resp.Status = -int32(ctx.file.dialect.Number(errno))
	}
	if e.mc != nil {
		u.resp.UID, u.resp.ID = e.mc.uid, e.mc.num
	}
	if ctx.isUD {
		u.resp.Param.SetUD(e.ud)
	} else {
		u.resp.Param.SetConn(e.conn)
	}
	f := ctx.file
	f.events = append(f.events, u)
	f.rouse()
	return u
}

// rouse wakes who waits for an event.
func (f *openFile) rouse() {
	close(f.wake)
	f.wake = make(chan struct{})
}

// reportRequest makes the context of a new connection, if the listener's backlog
// has room, and reports it (ucma_connect_event_handler).
func (c *core) reportRequest(listener, id *cmid, e event) error {
	ctx := listener.ctx
	if ctx.backlog == 0 {
		return ucma.ENOMEM
	}
	ctx.backlog--
	child := c.newCtx(ctx.file)
	child.id, id.ctx = id, child
	child.isUD = id.qpType == ucma.QPTypeUD
	if ctx.file.isIllumos() {
		child.uid = ctx.uid
	}
	u := c.enqueue(ctx, e)
	u.child, u.resp.ID = child, child.num
	return nil
}

// fetch takes the oldest event (ucma_get_event).
func (f *openFile) fetch() {
	u := f.events[0]
	f.events[0] = nil
	f.events = f.events[1:]
	u.ctx.reported++
	if u.mc != nil {
		u.mc.reported++
	}
	if u.child != nil {
		u.ctx.backlog++
	}
}

// closeID ends the id below a context, which stays (ucma_close_id).
func (ctx *uctx) closeID(c *core, now time.Time) {
	if ctx.id != nil {
		c.destroy(now, ctx.id)
		ctx.id = nil
	}
}

// destroyCtx ends a context with its id and its events, and tells how many of
// those were fetched (ucma_destroy_private_ctx). A child of an event may have been
// destroyed by its number already: then nothing is left to do.
func (c *core) destroyCtx(now time.Time, ctx *uctx) uint32 {
	if !c.ctxs.drop(ctx.num, ctx) {
		return ctx.reported
	}
	ctx.closeID(c, now)
	for _, m := range ctx.mcasts {
		c.mcasts.drop(m.num, m)
	}
	f := ctx.file
	f.ctxs = remove(f.ctxs, ctx)
	unseen := f.purge(func(u *uevent) bool { return u.ctx == ctx })
	for _, u := range unseen {
		if u.child != nil {
			c.destroyCtx(now, u.child)
		}
	}
	return ctx.reported
}

// purge takes events out of the queue.
func (f *openFile) purge(which func(*uevent) bool) (out []*uevent) {
	var rest []*uevent
	for _, u := range f.events {
		if which(u) {
			out = append(out, u)
		} else {
			rest = append(rest, u)
		}
	}
	f.events = rest
	return out
}

// closeFile is ucma_close.
func (c *core) closeFile(now time.Time, f *openFile) {
	f.closed = true
	for len(f.ctxs) > 0 {
		c.destroyCtx(now, f.ctxs[0])
	}
	f.events = nil
	delete(c.files, f.fd)
	f.rouse()
}
