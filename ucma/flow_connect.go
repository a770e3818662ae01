package ucma

import (
	"context"
	"fmt"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Target is whom to connect to.
type Target struct {
	Addr Sockaddr // an IP address with a port, or an InfiniBand address, see IBAddr
	Name string   // in messages; "": the address
}

// String is the name, or the address.
func (t Target) String() string {
	if t.Name != "" {
		return t.Name
	}
	return t.Addr.String()
}

// IBAddr is the address of a port number by GID (AF_IB). There is no IP header in the
// private data then, which leaves 92 bytes of a REQ and 216 of a SIDR_REQ to the program;
// but the first must be 0, where the peer's kernel looks for the header's version.
func IBAddr(gid mad.GID, pkey mad.PKey, ps PortSpace, port uint16) Sockaddr {
	return Sockaddr{IB: &SockaddrIB{PKey: pkey, GID: gid, ServiceID: uint64(ps)<<16 | uint64(port), ServiceIDMask: ^uint64(0)}}
}

// ServiceID is the service id of an address in a port space.
func ServiceID(ps PortSpace, a Sockaddr) uint64 {
	if a.IB != nil {
		return a.IB.ServiceID
	}
	return uint64(ps)<<16 | uint64(a.IP.Port())
}

// ConnectConfig tunes Connect; its zero value is right for a first try.
type ConnectConfig struct {
	PortSpace PortSpace // 0: TCP
	QPType    QPType    // in port space IB. 0: RC
	Source    Sockaddr  // zero: the kernel chooses
	// Where the path comes from: PathRecord if there is one, else the PathSource if
	// there is one, else the kernel asks the SA itself.
	Path       PathSource
	PathRecord *mad.PathRecord

	PrivateData        []byte
	QPN                uint32 // of the own queue pair. 0: UnusedQPN
	QKey               uint32 // of an AF_IB datagram id
	SRQ                bool
	ResponderResources uint8 // RDMA reads and atomics that the own side takes at a time
	InitiatorDepth     uint8 // that it sends at a time
	FlowControl        bool
	RetryCount         uint8 // at most 7
	RNRRetryCount      uint8 // at most 7, which is for ever
	TOS                *uint8
	ACKTimeout         *uint8 // see [ID.SetACKTimeout]
	ECE                *ECE
	ResolveTimeout     time.Duration // of the address, and of the route. 0: 2 s

	// Progress is told each step when it is over.
	Progress func(Step)
}

// Connection is a connection that is established, or for a datagram id the remote queue
// pair that was found. Close it when done.
type Connection struct {
	Peer string // as the target was named

	Fed      *mad.PathRecord // the path that was set; nil: the kernel's own
	Path     mad.PathRecord  // the path in use, as QUERY_ROUTE reports it
	Route    QueryRouteResp  // with addresses and device
	Init     QPAttr          // with which the own queue pair goes to INIT,
	RTR, RTS QPAttr          // and on; zero for a datagram id, whose Q_Key to use is UD's

	LocalQPN, RemoteQPN uint32
	Param               ConnParam // the peer's, of its REQ or REP
	UD                  UDParam   // the remote queue pair of a datagram id
	PrivateData         []byte    // the peer's, without zeros at its end
	ECE                 ECE       // the peer's

	ch   *Channel
	id   *ID
	flow *flow
}

// ID is the connection's id.
func (c *Connection) ID() *ID { return c.id }

// Steps are those done so far.
func (c *Connection) Steps() []Step { return c.flow.list() }

// Connect makes a connection, step by step, until it is established on this side. If it
// fails the error is a *StepError, which says at which step, with which path, and why;
// nothing is left behind then. No queue pair is made: what is tested, or measured, is
// the connection manager.
func (open Opener) Connect(ctx context.Context, target Target, cfg ConnectConfig) (*Connection, error) {
	if cfg.PortSpace == 0 {
		cfg.PortSpace = PortSpaceTCP
	}
	if cfg.ResolveTimeout <= 0 {
		cfg.ResolveTimeout = defaultResolveTime
	}
	if cfg.QPN == 0 {
		cfg.QPN = UnusedQPN()
	}
	c := &Connection{Peer: target.String(), LocalQPN: cfg.QPN, flow: &flow{peer: target.String(), progress: cfg.Progress}}
	var err error
	if c.ch, c.id, err = c.flow.start(ctx, open, cfg.PortSpace, cfg.QPType); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context, Target, *ConnectConfig) error{c.prepare, c.route, c.shake} {
		if err := part(ctx, target, &cfg); err != nil {
			return nil, c.flow.quit(c.ch, c.id, err)
		}
	}
	return c, nil
}

// prepare brings the id to the device that leads to the target.
func (c *Connection) prepare(ctx context.Context, target Target, cfg *ConnectConfig) error {
	f := c.flow
	if cfg.TOS != nil {
		if err := f.step(ctx, StepSetTOS, func() (string, error) { return fmt.Sprint(*cfg.TOS), c.id.SetTOS(*cfg.TOS) }); err != nil {
			return err
		}
	}
	if cfg.ACKTimeout != nil {
		if err := f.step(ctx, StepSetACKTimeout, func() (string, error) { return fmt.Sprint(*cfg.ACKTimeout), c.id.SetACKTimeout(*cfg.ACKTimeout) }); err != nil {
			return err
		}
	}
	if err := f.bind(ctx, c.id, cfg.Source); err != nil {
		return err
	}
	return f.resolve(ctx, c.id, Sockaddr{}, target.Addr, cfg.ResolveTimeout)
}

// shake does the handshake.
func (c *Connection) shake(ctx context.Context, _ Target, cfg *ConnectConfig) error {
	f := c.flow
	datagram := c.id.qpType == QPTypeUD
	answer := EventConnectResponse
	if datagram {
		// To ask for INIT before would settle the id's Q_Key at the default, and a
		// peer with another is refused then (cma.c, cma_set_qkey).
		answer = EventEstablished
	} else if err := f.qpAttr(ctx, c.id, StepQPInit, QPStateInit, &c.Init); err != nil {
		return err
	}
	err := f.step(ctx, StepConnect, func() (string, error) {
		param := ConnParam{
			QPNum: cfg.QPN, QKey: cfg.QKey, PrivateData: cfg.PrivateData, SRQ: cfg.SRQ,
			ResponderResources: cfg.ResponderResources, InitiatorDepth: cfg.InitiatorDepth, FlowControl: cfg.FlowControl,
			RetryCount: cfg.RetryCount, RNRRetryCount: cfg.RNRRetryCount,
		}
		if err := c.id.Connect(param, cfg.ECE); err != nil {
			return "", err
		}
		e, err := c.id.Wait(ctx, answer)
		if err != nil {
			return "", err
		}
		c.learn(&e)
		return c.describe(), nil
	})
	if err != nil {
		return err
	}
	if datagram {
		return f.qpAttr(ctx, c.id, StepQPInit, QPStateInit, &c.Init)
	}
	if err := f.qpAttr(ctx, c.id, StepQPRTR, QPStateRTR, &c.RTR); err != nil {
		return err
	}
	if err := f.qpAttr(ctx, c.id, StepQPRTS, QPStateRTS, &c.RTS); err != nil {
		return err
	}
	return f.step(ctx, StepEstablish, func() (string, error) { return "RTU sent", c.id.AcceptRTU() })
}

// learn keeps what an event tells of the peer.
func (c *Connection) learn(e *Event) {
	c.Param, c.UD, c.ECE = e.Conn, e.UD, e.ECE
	c.PrivateData = e.PrivateData()
	c.RemoteQPN = e.Conn.QPNum
	if c.id.qpType == QPTypeUD {
		c.RemoteQPN = e.UD.QPNum
	}
}

func (c *Connection) describe() string {
	s := fmt.Sprintf("QPN 0x%06x to 0x%06x", c.LocalQPN, c.RemoteQPN)
	if c.id.qpType == QPTypeUD {
		s += fmt.Sprintf(", Q_Key 0x%08x", c.UD.QKey)
	}
	if n := len(c.PrivateData); n > 0 {
		s += fmt.Sprintf(", %d bytes of private data", n)
	}
	return s
}

// Wait waits until the connection ends: nil if the peer, or Disconnect, ended it; else
// what did, such as ErrGone for a device that was removed.
func (c *Connection) Wait(ctx context.Context) error {
	e, err := c.id.ended(ctx)
	if err != nil || e.Type == EventDisconnected {
		return err
	}
	return e.Err
}

// Disconnect ends the connection, or answers the peer that did, and waits for that.
// The error tells of a peer that does not answer; the connection has ended all the
// same. A datagram id has nothing to end.
func (c *Connection) Disconnect(ctx context.Context) error {
	if c.id.qpType == QPTypeUD {
		return nil
	}
	return c.flow.step(ctx, StepDisconnect, func() (string, error) {
		if err := c.id.Disconnect(); err != nil {
			return "", err
		}
		e, err := c.id.ended(ctx)
		if err != nil {
			return "", err
		}
		return e.Type.String(), e.Err
	})
}

// Close destroys the id, which ends the connection if that is still up, and closes what
// was opened for it. A kernel that does not let go of these in 15 s is not waited for any
// longer: the error says so, and the rest is done as soon as the kernel does.
func (c *Connection) Close() error { return c.flow.finish(c.ch, c.id) }
