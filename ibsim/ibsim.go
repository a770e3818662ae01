// Package ibsim makes a port of ibsim, the InfiniBand fabric simulator of the
// linux-rdma project, a port.Device, so that programs on ibsm run beside OpenSM
// and infiniband-diags on the same simulated fabric:
//
//	dev, err := ibsim.Open(ctx, ibsim.Config{Node: "Hca1"})
//
// It speaks the protocol of ibsim's Unix sockets (ibsim's include/ibsim.h,
// ibsim/ibsim.c and sim_mad.c, versions 0.10 to 0.12), which are in the abstract
// name space of Linux; elsewhere Open fails with errors.ErrUnsupported. ibsim's
// remote mode, over UDP, is left out.
//
// What ibsim does otherwise than a fabric:
//
//   - It has no RMPP. A message of more than one MAD, such as most tables of
//     OpenSM's SA, arrives cut to its first MAD, with the RMPP Active flag and RMPP
//     version 0. It must not be acknowledged: OpenSM takes an ACK for a new
//     request.
//   - Requests are delivered to one client of a node only, see Config.Serve.
//   - Directed routes cannot start at a LID (combined routing), and a GRH is not
//     carried; sends that need these are refused. P_Keys, SLs and M_Keys are
//     ignored.
//   - A MAD that cannot be delivered comes back at once. As on a fabric, who sent it
//     sees it time out.
//   - There are ten clients. One that is killed keeps its place until ibsim writes to
//     it, or until X and its number are typed at ibsim's console. Closing the device
//     frees the place.
//   - A client that goes away while ibsim has not taken its connection yet ends
//     ibsim. That takes an ibsim that is busy or waits for Start at its console.
package ibsim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/softmad"
)

// Config says which ibsim, and where on its fabric. The zero value is ready to
// use.
type Config struct {
	// Socket is the base name of ibsim's sockets. "": the environment variable
	// IBSIM_SOCKNAME, as ibsim has it, or else "sim".
	Socket string
	// Node is a node's id in ibsim's netlist or, if no node has that id, a whole
	// NodeDescription; of at most 31 bytes. The device is port 1 of a channel
	// adapter and port 0 of a switch: ibsim leaves no choice. "": the first node of
	// the netlist.
	Node string
	// Serve has requests delivered that arrive at the port, SA reports and traps
	// among them. Without it only responses are. ibsim allows it to one client of a
	// node, an SM included, and ends it when a hold of IsSM does.
	Serve bool

	timeout time.Duration // for a reply; 0: replyTimeout
}

// replyTimeout is how long ibsim may take to reply. It takes microseconds, unless
// its console keeps it busy.
const replyTimeout = 5 * time.Second

// What Open can end with; use errors.Is. Later errors are port.ErrGone, when
// ibsim has ended, and ErrNoReply.
var (
	// ErrNotRunning: no ibsim has sockets of that name.
	ErrNotRunning = errors.New("no such ibsim is running")
	// ErrNoNode: the netlist has no such node.
	ErrNoNode = errors.New("no such node")
	// ErrServed: requests to the node are delivered to another client already.
	ErrServed = errors.New("an SM, or another client that takes requests, is on the node")
	// ErrNoSlot: ibsim has ten clients.
	ErrNoSlot = errors.New("all 10 client slots are taken")
	// ErrNoReply: ibsim is there, and did not reply in time.
	ErrNoReply = errors.New("no reply in time")
	// ErrMalformed: ibsim replied what makes no sense.
	ErrMalformed = errors.New("malformed reply")
)

// Error is a failed exchange with ibsim.
type Error struct {
	Op     string // "connect", "read port info"...
	Socket string // base name of its sockets
	Node   string // "": not named, or not known yet
	Detail string // more about it, and how to put it right
	Err    error
}

func (e *Error) Error() string {
	s := fmt.Sprintf("ibsim at socket %q", e.Socket)
	if e.Node != "" {
		s += fmt.Sprintf(", node %q", e.Node)
	}
	s += ": " + e.Op + ": " + e.Err.Error()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Timeout tells whether ibsim did not reply in time.
func (e *Error) Timeout() bool { return errors.Is(e.Err, ErrNoReply) }

// Open attaches to a node. The end of ctx is seen before and after the exchange
// with ibsim, which takes microseconds, or five seconds if there is no reply.
//
// The error is an *Error, or that of ctx.
func Open(ctx context.Context, cfg Config) (*softmad.Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, err := attach(cfg)
	if err != nil {
		return nil, err
	}
	dev, err := softmad.NewDevice(l, softmad.Config{
		RawRMPP:  true,
		FirstTID: l.slot<<16 | 1,
		LastTID:  l.slot<<16 | 0xffff,
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return dev, nil
}

// complete fills in what is not said, and refuses names that ibsim would cut.
func (cfg *Config) complete(env string) error {
	if cfg.Socket == "" {
		cfg.Socket = env
	}
	if cfg.Socket == "" {
		cfg.Socket = "sim"
	}
	if cfg.timeout == 0 {
		cfg.timeout = replyTimeout
	}
	const maxSocket = 80 // with ":out9" and a client's number it fits a socket's name of 108 bytes
	fail := func(why string) error {
		return &Error{Op: "connect", Socket: cfg.Socket, Node: cfg.Node, Detail: why, Err: port.ErrInvalid}
	}
	switch {
	case len(cfg.Socket) > maxSocket || strings.ContainsRune(cfg.Socket, 0):
		return fail(fmt.Sprintf("a socket's name has at most %d bytes, and no NUL", maxSocket))
	case len(cfg.Node) > maxNode || strings.ContainsRune(cfg.Node, 0):
		return fail(fmt.Sprintf("ibsim knows the first %d bytes of a node's name only: use the id of the netlist", maxNode))
	}
	return nil
}
