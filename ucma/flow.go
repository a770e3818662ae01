package ucma

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Opener opens an RDMA CM device. Each connection that is asked for has one of its
// own, as DESTROY_ID drops the events of all ids of the file on illumos.
type Opener func() (Device, error)

// Step is one step of a flow.
type Step struct {
	Name     string // one of the names below
	Detail   string // what it came to
	Duration time.Duration
	Err      error // of the last step of a flow that failed
}

// The names of steps, in the order in which they come.
const (
	StepOpen          = "open"
	StepCreateID      = "create id"
	StepSetTOS        = "set type of service"
	StepSetACKTimeout = "set ACK time-out"
	StepSetReuse      = "set address reuse"
	StepSetAFOnly     = "set IPv6 only"
	StepBind          = "bind"
	StepListen        = "listen"
	StepResolveAddr   = "resolve address"
	StepTakePath      = "take path"     // from the PathSource
	StepSetPath       = "set path"      // SET_OPTION IB_PATH
	StepResolveRoute  = "resolve route" // by the kernel
	StepQueryRoute    = "query route"
	StepQueryPath     = "query path"
	StepQPInit        = "QP to INIT"
	StepConnect       = "connect" // until the peer's answer
	StepQPRTR         = "QP to RTR"
	StepQPRTS         = "QP to RTS"
	StepEstablish     = "establish" // the RTU
	StepAccept        = "accept"    // until the peer's RTU
	StepReject        = "reject"
	StepJoin          = "join"
	StepLeave         = "leave"
	StepDisconnect    = "disconnect"
	StepDestroyID     = "destroy id"
)

const (
	destroyPatience    = 15 * time.Second // a kernel that waits for an id complains after 10 s
	defaultResolveTime = 2 * time.Second
)

// flow keeps what the steps of a connection came to.
type flow struct {
	peer     string
	progress func(Step)

	mu    sync.Mutex
	path  *mad.PathRecord
	steps []Step

	once     sync.Once
	finished error
}

// step times do, unless ctx has ended, and makes a *StepError of its error.
func (f *flow) step(ctx context.Context, name string, do func() (detail string, err error)) error {
	start := time.Now()
	s := Step{Name: name, Err: ctx.Err()}
	if s.Err == nil {
		s.Detail, s.Err = do()
	}
	s.Duration = time.Since(start)
	f.mu.Lock()
	f.steps = append(f.steps, s)
	path := f.path
	f.mu.Unlock()
	if f.progress != nil {
		f.progress(s)
	}
	if s.Err != nil {
		return &StepError{Step: name, Peer: f.peer, Path: path, Steps: f.list(), Err: s.Err}
	}
	return nil
}

// use notes the path that a failure from here on tells.
func (f *flow) use(path *mad.PathRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.path = path
}

func (f *flow) list() []Step {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.steps[:len(f.steps):len(f.steps)]
}

// start opens a device and makes an id.
func (f *flow) start(ctx context.Context, open Opener, ps PortSpace, qp QPType) (*Channel, *ID, error) {
	var c *Channel
	err := f.step(ctx, StepOpen, func() (string, error) {
		dev, err := open()
		if err != nil {
			return "", err
		}
		c = NewChannel(dev)
		c.users.Store(1)
		return c.dialect.String(), nil
	})
	if err != nil {
		return nil, nil, err
	}
	var id *ID
	err = f.step(ctx, StepCreateID, func() (detail string, err error) {
		if id, err = c.CreateID(ps, qp); err != nil {
			return "", err
		}
		return fmt.Sprintf("id %d, port space %v, QP type %v", id.num, id.ps, id.qpType), nil
	})
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return c, id, nil
}

// bind binds an id to an address, if there is one.
func (f *flow) bind(ctx context.Context, id *ID, addr Sockaddr) error {
	if addr.Family() == AFUnspec {
		return nil
	}
	return f.step(ctx, StepBind, func() (string, error) { return addr.String(), id.Bind(addr) })
}

// resolve has the kernel find device and neighbour.
func (f *flow) resolve(ctx context.Context, id *ID, src, dst Sockaddr, limit time.Duration) error {
	return f.step(ctx, StepResolveAddr, func() (string, error) {
		if err := id.ResolveAddr(src, dst, limit); err != nil {
			return "", err
		}
		_, err := id.Wait(ctx, EventAddrResolved)
		return dst.String(), err
	})
}

// finish destroys the id, and the channel with its last user; once. It does not depend
// on the context of the flow, which may be what ended it, nor on a kernel that hangs.
func (f *flow) finish(c *Channel, id *ID) error {
	f.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), destroyPatience)
		defer cancel()
		f.finished = f.step(ctx, StepDestroyID, func() (string, error) {
			return fmt.Sprintf("id %d", id.num), stuck(id.Destroy(ctx))
		})
		err := c.release(ctx)
		if errors.Is(err, context.DeadlineExceeded) && errors.Is(f.finished, context.DeadlineExceeded) {
			return // the same news
		}
		if err != nil {
			f.finished = errors.Join(f.finished, stuck(err))
		}
	})
	return f.finished
}

// stuck says what becomes of what a kernel does not let go of.
func stuck(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: the kernel has not let go of it in %v; it is destroyed, and its device closed, in the background as soon as the kernel does", err, destroyPatience)
	}
	return err
}

// quit finishes a flow with what it came to.
func (f *flow) quit(c *Channel, id *ID, err error) error {
	if more := f.finish(c, id); more != nil {
		return errors.Join(err, more)
	}
	return err
}

// qpAttr asks for the attributes of a queue pair's state.
func (f *flow) qpAttr(ctx context.Context, id *ID, name string, state QPState, to *QPAttr) error {
	return f.step(ctx, name, func() (detail string, err error) {
		if *to, err = id.InitQPAttr(state); err != nil {
			return "", err
		}
		return to.Mask.String(), nil
	})
}

// lastQPN is the last QPN that was made up. It starts anywhere in the upper half of
// the 24 bits, where queue pairs of a real HCA are rare.
var lastQPN atomic.Uint32

func init() { lastQPN.Store(rand.Uint32()) }

// UnusedQPN makes up a number that queue pairs rarely have, another each time. The CM takes a number that it has seen a moment ago, or that is in use between
// the same ports, for a stale connection.
func UnusedQPN() uint32 {
	const first, count = 0x800000, 0x7ffff0 // without those that stand for all of a group
	return first + lastQPN.Add(1)%count
}

// pathText is a path in a few words.
func pathText(p *mad.PathRecord) string {
	var b strings.Builder
	if p.DLID != 0 || p.SLID != 0 {
		fmt.Fprintf(&b, "LID %v to LID %v", p.SLID, p.DLID)
	} else {
		fmt.Fprintf(&b, "GID %v to GID %v", p.SGID, p.DGID)
	}
	fmt.Fprintf(&b, ", MTU %v", p.MTU)
	if p.Rate != 0 { // on Ethernet it is, and stands for the port's
		fmt.Fprintf(&b, ", %v", p.Rate)
	}
	fmt.Fprintf(&b, ", SL %d, P_Key %v", p.SL, p.PKey)
	return b.String()
}
