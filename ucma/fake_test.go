package ucma_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// fakeKernel is an RDMA CM of a few lines, for tests of what stands on it: ids with
// numbers, an event queue, and answers that say yes. It checks no states, so that a
// command that should not have been written shows in its log.
type fakeKernel struct {
	d       *ucma.Dialect
	busy    sync.Mutex // held by a test that wants no event fetched yet
	handing func()     // called when an event was fetched, but not handed out yet
	mu      sync.Mutex
	on      map[ucma.Op]script
	lastID  uint32
	objects map[uint32]*fakeObject
	queue   []ucma.EventResp
	parents map[uint32]uint32 // of children, while their CONNECT_REQUEST waits
	ready   chan struct{}     // holds a token while there are events
	log     []string          // commands but for GET_EVENT
	// report changes what the queries tell of a path.
	report   func(route *ucma.UserPathRec, path *mad.PathRecord)
	roce     bool   // the port is an Ethernet one
	joined   []byte // the parameters of MULTICAST_JOIN
	reported uint32 // added to what DESTROY_ID says was reported
	end      error  // why nothing works any more
	ended    chan struct{}
	closed   int
}

// script stands in for the answer to a command: an errno, or events by f.send. A
// response there still is, and DESTROY_ID destroys.
type script func(f *fakeKernel, cmd ucma.Command) error

// script sets a script; nil takes it away.
func (f *fakeKernel) script(op ucma.Op, s script) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on[op] = s
}

// fakeObject is an id or a membership.
type fakeObject struct {
	uid     uint64
	of      uint32 // the id that a membership is of
	fetched uint32
	path    []ucma.PathRecData
	dst     ucma.Sockaddr
	src     ucma.Sockaddr
}

// The addresses and the path of the tests.
var (
	fakeSGID = mad.GID{0xfe, 0x80, 15: 1}
	fakeDGID = mad.GID{0xfe, 0x80, 15: 2}
)

func newFake(d *ucma.Dialect) *fakeKernel {
	return &fakeKernel{
		d: d, on: map[ucma.Op]script{},
		objects: map[uint32]*fakeObject{}, parents: map[uint32]uint32{}, ready: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

func (f *fakeKernel) Dialect() *ucma.Dialect { return f.d }

func (f *fakeKernel) Wait(ctx context.Context) error {
	select {
	case <-f.ready:
		return nil
	case <-f.ended:
		return f.end
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeKernel) Close() error {
	f.stop(ucma.ErrClosed)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}

// stop ends everything, with ErrGone or ErrClosed.
func (f *fakeKernel) stop(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end == nil {
		f.end = err
		close(f.ended)
	}
}

// event makes an event of an object. data fills its parameters.
func (f *fakeKernel) event(num uint32, t ucma.EventType, status int32, data ...byte) ucma.EventResp {
	r := ucma.EventResp{ID: num, Event: t, Status: status}
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.objects[num]; o != nil {
		r.UID = o.uid
	}
	copy(r.Param[:], data)
	return r
}

// send queues events, but for those of uid 0, which a kernel throws away.
func (f *fakeKernel) send(events ...ucma.EventResp) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range events {
		if r.UID != 0 {
			f.queue = append(f.queue, r)
		}
	}
	f.signal()
}

func (f *fakeKernel) signal() {
	select {
	case <-f.ready:
	default:
	}
	if len(f.queue) > 0 {
		f.ready <- struct{}{}
	}
}

// request makes a CONNECT_REQUEST for a listener, with a child as the kernel has it:
// without a uid on Linux, with the listener's on illumos.
func (f *fakeKernel) request(listener uint32, data ...byte) (child uint32) {
	r := f.event(listener, ucma.EventConnectRequest, 0, data...)
	f.mu.Lock()
	f.lastID++
	child = f.lastID
	f.objects[child] = &fakeObject{}
	f.parents[child] = listener
	if f.d == ucma.Illumos {
		f.objects[child].uid = r.UID
	}
	f.mu.Unlock()
	r.ID = child
	f.send(r)
	return child
}

func (f *fakeKernel) Exec(b, mem []byte) error {
	cmd, err := f.d.ParseCommand(b)
	if err != nil {
		return fmt.Errorf("the fake kernel cannot read the command: %w", err)
	}
	f.mu.Lock()
	if f.end != nil {
		defer f.mu.Unlock()
		return f.end
	}
	if cmd.Op() != ucma.OpGetEvent {
		f.log = append(f.log, name(cmd))
	}
	on := f.on[cmd.Op()]
	f.mu.Unlock()
	if o, ok := cmd.(ucma.SetOption); ok && o.Level == ucma.OptionLevelIB {
		paths, err := ucma.ParseIBPath(mem)
		if err != nil {
			return err
		}
		f.set(o.ID, func(o *fakeObject) { o.path = paths })
	}
	if on != nil {
		if err := on(f, cmd); err != nil {
			return err
		}
		if spec, _ := f.d.Spec(cmd.Op()); spec.Out == 0 {
			return nil
		}
	}
	resp, err := f.answer(cmd)
	if err != nil || resp == nil {
		return err
	}
	out, err := f.d.AppendResponse(nil, resp)
	copy(mem, out)
	return err
}

func name(cmd ucma.Command) string {
	switch c := cmd.(type) {
	case ucma.InitQPAttr:
		return "INIT_QP_ATTR " + c.State.String()
	case ucma.Query:
		return "QUERY " + c.Option.String()
	case ucma.Accept:
		if !c.Param.Valid {
			return "ACCEPT 0"
		}
	}
	return cmd.Op().String()
}

// object is a copy of what the kernel has of an id.
func (f *fakeKernel) object(num uint32) (o fakeObject) {
	f.set(num, func(have *fakeObject) { o = *have })
	return o
}

func (f *fakeKernel) set(num uint32, change func(o *fakeObject)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.objects[num]; o != nil {
		change(o)
	}
}

func (f *fakeKernel) create(uid uint64, of uint32) uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastID++
	f.objects[f.lastID] = &fakeObject{uid: uid, of: of}
	return f.lastID
}

// answer says yes to a command.
func (f *fakeKernel) answer(cmd ucma.Command) (ucma.Response, error) {
	switch c := cmd.(type) {
	case ucma.CreateID:
		return &ucma.CreateIDResp{ID: f.create(c.UID, 0)}, nil
	case ucma.DestroyID:
		return f.destroy(c.ID)
	case ucma.LeaveMcast:
		return f.destroy(c.ID)
	case ucma.GetEvent:
		f.busy.Lock()
		defer f.busy.Unlock()
		r, err := f.fetch()
		if err == nil && f.handing != nil {
			f.handing()
		}
		return r, err
	case ucma.Bind:
		f.set(c.ID, func(o *fakeObject) { o.src = c.Addr })
	case ucma.BindIP:
		f.set(c.ID, func(o *fakeObject) { o.src = c.Addr })
	case ucma.ResolveAddr:
		f.set(c.ID, func(o *fakeObject) { o.dst = c.Dst })
		f.send(f.event(c.ID, ucma.EventAddrResolved, 0))
	case ucma.ResolveIP:
		f.set(c.ID, func(o *fakeObject) { o.dst = c.Dst })
		f.send(f.event(c.ID, ucma.EventAddrResolved, 0))
	case ucma.ResolveRoute:
		f.set(c.ID, func(o *fakeObject) {
			o.path = []ucma.PathRecData{{Flags: ucma.PathFlags, Path: mad.PathRecord{SGID: fakeSGID, DGID: fakeDGID, SLID: 1, DLID: 9}}}
		})
		f.send(f.event(c.ID, ucma.EventRouteResolved, 0))
	case ucma.SetOption:
		if c.Level == ucma.OptionLevelIB {
			f.send(f.event(c.ID, ucma.EventRouteResolved, 0))
		}
	case ucma.QueryRoute:
		return f.route(c.ID), nil
	case ucma.Query:
		o := f.object(c.ID)
		if c.Option == ucma.QueryPath {
			paths := slices.Clone(o.path)
			if f.report != nil {
				f.report(new(ucma.UserPathRec), &paths[0].Path)
			}
			return &ucma.QueryPathResp{NumPaths: uint32(len(paths)), Paths: paths}, nil
		}
		return &ucma.QueryAddrResp{Src: o.src, Dst: o.dst, PortNum: 1}, nil
	case ucma.InitQPAttr:
		return &ucma.QPAttr{Mask: ucma.QPAttrState, State: c.State}, nil
	case ucma.Connect:
		f.send(f.event(c.ID, ucma.EventConnectResponse, 0))
	case ucma.Accept:
		if c.Param.Valid {
			f.set(c.ID, func(o *fakeObject) { o.uid = c.UID })
			f.send(f.event(c.ID, ucma.EventEstablished, 0))
		}
	case ucma.Disconnect:
		f.send(f.event(c.ID, ucma.EventDisconnected, 0))
	case ucma.JoinMcast:
		return f.join(c.UID, c.ID)
	case ucma.JoinIPMcast:
		return f.join(c.UID, c.ID)
	case ucma.MigrateID:
		return &ucma.DestroyIDResp{}, nil
	}
	return nil, nil
}

func (f *fakeKernel) join(uid uint64, id uint32) (ucma.Response, error) {
	m := f.create(uid, id)
	f.send(f.event(m, ucma.EventMulticastJoin, 0, f.joined...))
	return &ucma.CreateIDResp{ID: m}, nil
}

// route reports the path that the id has, as the kernel does: without ServiceID and
// QoSClass.
func (f *fakeKernel) route(num uint32) *ucma.QueryRouteResp {
	o := f.object(num)
	r := &ucma.QueryRouteResp{NodeGUID: 0x0002c90300000001, PortNum: 1, Src: o.src, Dst: o.dst, NumPaths: uint32(len(o.path))}
	r.Paths[0] = ucma.UserPathRec{SGID: fakeSGID, DGID: fakeDGID, PKey: 0xffff}
	if f.roce {
		r.Paths[0].SGID, r.Paths[0].DGID = o.src.IP.Addr().As16(), o.dst.IP.Addr().As16()
	}
	if len(o.path) > 0 {
		r.Paths[0] = ucma.MakeUserPathRec(&o.path[0].Path)
		if f.report != nil {
			f.report(&r.Paths[0], new(mad.PathRecord))
		}
	}
	return r
}

// fetch gives the oldest event, and counts it for its object, and for the id of a
// membership (ucma.c, ucma_get_event).
func (f *fakeKernel) fetch() (ucma.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		return nil, ucma.EAGAIN
	}
	r := f.queue[0]
	f.queue = f.queue[1:]
	f.signal()
	num := r.ID
	if r.Event == ucma.EventConnectRequest {
		num = f.parents[r.ID]
	}
	if o := f.objects[num]; o != nil {
		o.fetched++
		if of := f.objects[o.of]; of != nil {
			of.fetched++
		}
	}
	return &r, nil
}

// destroy drops an object and its events; on illumos those of everybody.
func (f *fakeKernel) destroy(num uint32) (ucma.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.objects[num]
	if o == nil {
		return nil, ucma.ENOENT
	}
	delete(f.objects, num)
	maps.DeleteFunc(f.objects, func(_ uint32, m *fakeObject) bool { return m.of == num })
	f.queue = slices.DeleteFunc(f.queue, func(r ucma.EventResp) bool { return f.d == ucma.Illumos || r.UID == o.uid })
	f.signal()
	return &ucma.DestroyIDResp{EventsReported: o.fetched + f.reported}, nil
}

// commands is the log.
func (f *fakeKernel) commands() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

func (f *fakeKernel) has(num uint32) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects[num] != nil
}

// leftBehind checks that every id was destroyed and the device closed, once.
func (f *fakeKernel) leftBehind(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.objects) != 0 {
		t.Errorf("%d ids or memberships are left behind; commands: %v", len(f.objects), f.log)
	}
	if f.closed != 1 {
		t.Errorf("the device was closed %d times, want once", f.closed)
	}
}

func (f *fakeKernel) opener() ucma.Opener {
	return func() (ucma.Device, error) { return f, nil }
}

// refuse makes a command fail.
func (f *fakeKernel) refuse(op ucma.Op, errno ucma.Errno) {
	f.script(op, func(*fakeKernel, ucma.Command) error { return errno })
}

// reply has a command answered by one event.
func (f *fakeKernel) reply(op ucma.Op, t ucma.EventType, status int32, data ...byte) {
	f.script(op, func(f *fakeKernel, cmd ucma.Command) error {
		f.send(f.event(idOf(cmd), t, status, data...))
		return nil
	})
}

// silence has a command answered by nothing.
func (f *fakeKernel) silence(op ucma.Op) {
	f.script(op, func(*fakeKernel, ucma.Command) error { return nil })
}

func idOf(cmd ucma.Command) uint32 {
	switch c := cmd.(type) {
	case ucma.ResolveAddr:
		return c.ID
	case ucma.ResolveIP:
		return c.ID
	case ucma.ResolveRoute:
		return c.ID
	case ucma.SetOption:
		return c.ID
	case ucma.Connect:
		return c.ID
	case ucma.Accept:
		return c.ID
	case ucma.Disconnect:
		return c.ID
	}
	return 0
}

var errScript = errors.New("the test's own error")

// dialects runs a test in both.
func dialects(t *testing.T, test func(t *testing.T, d *ucma.Dialect)) {
	for _, d := range []*ucma.Dialect{ucma.Linux, ucma.Illumos} {
		t.Run(d.String(), func(t *testing.T) { test(t, d) })
	}
}
