package ucma

import (
	"context"
	"sync"

	"github.com/ibsm/ibsm/mad"
)

// DryRun is a Device that nobody is behind: it shows the commands that it is given,
// and answers as a kernel would whose peer accepts, so that a flow goes to its end.
// Its ids are 1 and up. Waits for events that do not come are left out.
type DryRun struct {
	dialect *Dialect
	show    func(cmd, mem []byte)

	mu     sync.Mutex
	ids    uint32
	uid    uint64 // of the last id
	qpType QPType
	src    Sockaddr
	dst    Sockaddr
	paths  []mad.PathRecord
	route  mad.PathRecord
	events []EventResp
	count  uint32 // fetched
	ready  chan struct{}
	closed bool
}

// NewDryRun makes a DryRun. route is the path that RESOLVE_ROUTE finds; its GIDs and
// P_Key are what an address is resolved to. show is called with each command as it
// would be written, its response address 0, and with what the address would point to.
func NewDryRun(d *Dialect, route mad.PathRecord, show func(cmd, mem []byte)) *DryRun {
	return &DryRun{dialect: d, show: show, route: route, ready: make(chan struct{}, 1)}
}

// Dialect is the one given.
func (r *DryRun) Dialect() *Dialect { return r.dialect }

// Exec shows the command and answers it.
func (r *DryRun) Exec(cmd, mem []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	c, err := r.dialect.ParseCommand(cmd)
	if err != nil {
		return err
	}
	if _, fetch := c.(GetEvent); fetch && len(r.events) == 0 {
		return EAGAIN
	}
	r.show(cmd, mem)
	answer, err := r.answer(c, mem)
	if err != nil || answer == nil {
		return err
	}
	b, err := r.dialect.AppendResponse(nil, answer)
	copy(mem, b)
	return err
}

// answer gives the response of a command, and has its events come.
func (r *DryRun) answer(c Command, mem []byte) (Response, error) {
	switch c := c.(type) {
	case CreateID:
		r.ids++
		r.uid, r.qpType = c.UID, c.QPType
		if r.qpType == 0 {
			r.qpType = QPTypeOf(c.PS)
		}
		return &CreateIDResp{ID: r.ids}, nil
	case DestroyID:
		return &DestroyIDResp{EventsReported: r.count}, nil
	case BindIP:
		r.src = c.Addr
	case Bind:
		r.src = c.Addr
	case ResolveIP:
		r.resolve(c.Src, c.Dst)
	case ResolveAddr:
		r.resolve(c.Src, c.Dst)
	case ResolveRoute:
		r.paths = []mad.PathRecord{r.route}
		r.come(EventRouteResolved)
	case SetOption:
		if c.Level == OptionLevelIB && c.Name == OptionIBPath {
			given, err := ParseIBPath(mem)
			if err != nil {
				return nil, err
			}
			r.paths = []mad.PathRecord{given[0].Path}
			r.come(EventRouteResolved)
		}
	case QueryRoute:
		resp := &QueryRouteResp{Src: r.src, Dst: r.dst, NumPaths: uint32(len(r.paths)), PortNum: 1}
		resp.Paths[0] = MakeUserPathRec(&mad.PathRecord{SGID: r.route.SGID, DGID: r.route.DGID, PKey: r.route.PKey})
		if len(r.paths) > 0 {
			resp.Paths[0] = MakeUserPathRec(&r.paths[0])
		}
		return resp, nil
	case Query:
		if c.Option != QueryPath {
			return &QueryAddrResp{Src: r.src, Dst: r.dst, PKey: r.route.PKey, PortNum: 1}, nil
		}
		resp := &QueryPathResp{NumPaths: uint32(len(r.paths))}
		for _, p := range r.paths {
			resp.Paths = append(resp.Paths, PathRecData{PathFlags, p})
		}
		return resp, nil
	case InitQPAttr:
		return &QPAttr{Mask: QPAttrState, State: c.State}, nil
	case Connect:
		if r.qpType == QPTypeUD {
			r.come(EventEstablished)
		} else {
			r.come(EventConnectResponse)
		}
	case Disconnect:
		r.come(EventDisconnected)
	case GetEvent:
		e := r.events[0]
		r.events = r.events[1:]
		r.count++
		return &e, nil
	}
	return nil, nil
}

func (r *DryRun) resolve(src, dst Sockaddr) {
	if src.Family() != AFUnspec {
		r.src = src
	}
	r.dst = dst
	r.come(EventAddrResolved)
}

func (r *DryRun) come(t EventType) {
	r.events = append(r.events, EventResp{UID: r.uid, ID: r.ids, Event: t})
	r.wake()
}

func (r *DryRun) wake() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// Wait waits for the event that a command brings.
func (r *DryRun) Wait(ctx context.Context) error {
	for {
		r.mu.Lock()
		n, closed := len(r.events), r.closed
		r.mu.Unlock()
		switch {
		case closed:
			return ErrClosed
		case n > 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.ready:
		}
	}
}

// Close wakes Wait.
func (r *DryRun) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.wake()
	return nil
}
