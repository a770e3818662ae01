package ucma

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// ListenConfig tunes Listen; its zero value is right for most.
type ListenConfig struct {
	PortSpace PortSpace // 0: TCP
	QPType    QPType    // in port space IB. 0: RC
	Backlog   int       // requests that may wait for Next; the peers of others are rejected, see [ID.Listen]. 0: DefaultBacklog
	ReuseAddr bool      // see [ID.SetReuseAddr]
	AFOnly    bool      // see [ID.SetAFOnly]

	// Progress is told each step when it is over: those of Listen, and those of the
	// connections that are accepted, by several goroutines at once if these are.
	Progress func(Step)
}

// DefaultBacklog is how many requests may wait unless the program says otherwise: the
// maximum of a Linux whose administrator has not set another (net.rdma_ucm.max_backlog).
const DefaultBacklog = 1024

// Listener waits for connections at an address.
type Listener struct {
	Addr Sockaddr // with the port that the kernel chose, if that was left to it

	ch   *Channel
	id   *ID
	flow *flow
}

// Listen waits for connections to addr: an IP address with a port, 0.0.0.0 or :: for
// any, or an IBAddr. If it fails the error is a *StepError.
func (open Opener) Listen(ctx context.Context, addr Sockaddr, cfg ListenConfig) (*Listener, error) {
	if cfg.PortSpace == 0 {
		cfg.PortSpace = PortSpaceTCP
	}
	f := &flow{peer: addr.String(), progress: cfg.Progress}
	c, id, err := f.start(ctx, open, cfg.PortSpace, cfg.QPType)
	if err != nil {
		return nil, err
	}
	l := &Listener{Addr: addr, ch: c, id: id, flow: f}
	if err := l.setUp(ctx, addr, &cfg); err != nil {
		return nil, f.quit(c, id, err)
	}
	return l, nil
}

func (l *Listener) setUp(ctx context.Context, addr Sockaddr, cfg *ListenConfig) error {
	if cfg.ReuseAddr {
		if err := l.flow.step(ctx, StepSetReuse, func() (string, error) { return "", l.id.SetReuseAddr(true) }); err != nil {
			return err
		}
	}
	if cfg.AFOnly {
		if err := l.flow.step(ctx, StepSetAFOnly, func() (string, error) { return "", l.id.SetAFOnly(true) }); err != nil {
			return err
		}
	}
	if err := l.flow.bind(ctx, l.id, addr); err != nil {
		return err
	}
	return l.flow.step(ctx, StepListen, func() (string, error) {
		if err := l.id.Listen(cfg.Backlog); err != nil {
			return "", err
		}
		local, _, err := l.id.addresses()
		if err != nil {
			return "", err
		}
		l.Addr = local
		return local.String(), nil
	})
}

// addresses asks for the id's addresses, by the command that tells them whole.
func (id *ID) addresses() (local, peer Sockaddr, err error) {
	if id.has(OpQuery) {
		r, err := id.QueryAddr()
		return r.Src, r.Dst, err
	}
	r, err := id.QueryRoute()
	return r.Src, r.Dst, err
}

// ID is the listener's id.
func (l *Listener) ID() *ID { return l.id }

// Stats are those of the listener and its connections.
func (l *Listener) Stats() Stats { return l.ch.Stats() }

// Steps are those done so far.
func (l *Listener) Steps() []Step { return l.flow.list() }

// Close ends the listener. Requests that are not accepted are rejected; connections stay.
// It waits for a kernel that hangs as [Connection.Close] does.
func (l *Listener) Close() error { return l.flow.finish(l.ch, l.id) }

// Request is a connection that a peer asks for. Accept or Reject it.
type Request struct {
	Peer, Local Sockaddr
	Route       QueryRouteResp
	Path        mad.PathRecord // from this side to the peer
	RemoteQPN   uint32         // 0 for a datagram id
	Param       ConnParam      // the peer's; zero for a datagram id
	PrivateData []byte         // the peer's, without zeros at its end
	ECE         ECE            // the peer's

	ch       *Channel
	id       *ID
	progress func(Step)
	answered atomic.Bool
}

// Next waits for a request. One whose id answers no questions any more, as when its
// device was removed, is passed over and counted in [Stats]. So an error is that of the
// context, or the end of the listener or its device.
func (l *Listener) Next(ctx context.Context) (*Request, error) {
	for {
		e, err := l.id.Wait(ctx, EventConnectRequest)
		if err != nil {
			return nil, err
		}
		r := &Request{
			RemoteQPN: e.Conn.QPNum, Param: e.Conn, PrivateData: e.PrivateData(), ECE: e.ECE,
			ch: l.ch, id: e.Child, progress: l.flow.progress,
		}
		if r.Local, r.Peer, err = r.id.addresses(); err == nil {
			r.Route, err = r.id.QueryRoute()
		}
		if err == nil {
			r.Path = r.Route.Paths[0].PathRecord()
			return r, nil
		}
		l.ch.skip(r.id)
	}
}

// ID is the request's id.
func (r *Request) ID() *ID { return r.id }

// AcceptConfig is what to answer; see [ConnectConfig].
type AcceptConfig struct {
	PrivateData        []byte
	QPN                uint32 // 0: UnusedQPN
	QKey               uint32
	SRQ                bool
	ResponderResources uint8
	InitiatorDepth     uint8
	FlowControl        bool
	RNRRetryCount      uint8
	ECE                *ECE
	// Timeout limits the wait for the peer's RTU; the kernel gives up after a minute
	// or more. 0: it does.
	Timeout time.Duration
}

// Accept answers with a queue pair, and waits until the connection is established; a
// datagram id has nothing to wait for. A peer may be so quick that the connection has
// ended by then, which its Wait tells. If Accept fails the error is a *StepError, and the
// request is no more; of a request that was answered before it is ErrAnswered, and what
// came of the first answer stays.
func (r *Request) Accept(ctx context.Context, cfg AcceptConfig) (*Connection, error) {
	if err := r.answer(StepAccept); err != nil {
		return nil, err
	}
	if cfg.QPN == 0 {
		cfg.QPN = UnusedQPN()
	}
	if cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Timeout)
		defer cancel()
	}
	c := &Connection{
		Peer: r.Peer.String(), Path: r.Path, Route: r.Route,
		LocalQPN: cfg.QPN, RemoteQPN: r.RemoteQPN, Param: r.Param, PrivateData: r.PrivateData, ECE: r.ECE,
		ch: r.ch, id: r.id, flow: &flow{peer: r.Peer.String(), progress: r.progress, path: &r.Path},
	}
	r.ch.users.Add(1)
	if err := c.accept(ctx, &cfg); err != nil {
		return nil, c.flow.quit(c.ch, c.id, err)
	}
	return c, nil
}

func (c *Connection) accept(ctx context.Context, cfg *AcceptConfig) error {
	f := c.flow
	datagram := c.id.qpType == QPTypeUD
	if datagram && cfg.QKey != 0 {
		// To ask first would settle the id's Q_Key (cma.c, cma_ib_init_qp_attr).
		if err := c.answer(ctx, cfg, datagram); err != nil {
			return err
		}
		return f.qpAttr(ctx, c.id, StepQPInit, QPStateInit, &c.Init)
	}
	if err := f.qpAttr(ctx, c.id, StepQPInit, QPStateInit, &c.Init); err != nil {
		return err
	}
	if !datagram {
		if err := f.qpAttr(ctx, c.id, StepQPRTR, QPStateRTR, &c.RTR); err != nil {
			return err
		}
		if err := f.qpAttr(ctx, c.id, StepQPRTS, QPStateRTS, &c.RTS); err != nil {
			return err
		}
	}
	return c.answer(ctx, cfg, datagram)
}

// answer sends the REP or SIDR_REP.
func (c *Connection) answer(ctx context.Context, cfg *AcceptConfig, datagram bool) error {
	return c.flow.step(ctx, StepAccept, func() (string, error) {
		err := c.id.Accept(ConnParam{
			QPNum: cfg.QPN, QKey: cfg.QKey, PrivateData: cfg.PrivateData, SRQ: cfg.SRQ,
			ResponderResources: cfg.ResponderResources, InitiatorDepth: cfg.InitiatorDepth, FlowControl: cfg.FlowControl,
			RNRRetryCount: cfg.RNRRetryCount,
		}, cfg.ECE)
		if err != nil || datagram {
			return fmt.Sprintf("QPN 0x%06x", c.LocalQPN), err
		}
		// A DREQ that overtakes the RTU, or comes in its place, ends the connection
		// without an ESTABLISHED.
		e, err := c.id.Wait(ctx, EventEstablished, EventDisconnected)
		if err != nil {
			return "", err
		}
		if e.Type == EventDisconnected {
			return c.describe() + ", ended by the peer already", nil
		}
		return c.describe(), nil
	})
}

// answer lets one answer through.
func (r *Request) answer(step string) error {
	if r.answered.Swap(true) {
		return &StepError{Step: step, Peer: r.Peer.String(), Path: &r.Path, Err: ErrAnswered}
	}
	return nil
}

// Reject refuses the request, with the program's own reason if it is 0, and is done with
// it. Of a request that was answered before the error is ErrAnswered.
func (r *Request) Reject(ctx context.Context, reason RejectReason, private []byte) error {
	if err := r.answer(StepReject); err != nil {
		return err
	}
	f := &flow{peer: r.Peer.String(), progress: r.progress, path: &r.Path}
	r.ch.users.Add(1)
	err := f.step(ctx, StepReject, func() (string, error) { return "", r.id.Reject(reason, private) })
	return f.quit(r.ch, r.id, err)
}
