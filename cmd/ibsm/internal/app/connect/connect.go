// Package connect has the nouns that test the RDMA CM: connect asks for
// connections, listen takes them.
package connect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// Command makes the noun connect.
func Command() *cli.Command {
	return &cli.Command{
		Name:      "connect",
		Usage:     "connect to a host by the RDMA CM, each step timed (rping, ucmatose, cmtime)",
		ArgsUsage: "ADDRESS",
		Description: `ADDRESS is an IP address, the name of a host or of a node, a GID, a LID or a GUID.
The latter three and nodes are looked up at the SA and asked for by GID
(AF_IB), which was tried on simulated fabrics only; a bare IPv6 address is an IP
address here, so write gid:fe80::1 for a GID.

What is tested is the control plane: ibsm makes no queue pair, and announces a
number that hardly any queue pair has. A peer that accepts does take its own to
RTS, so on a real fabric --yes is needed. The connection is ended at once,
unless --hold says otherwise.

The path is asked for at the SA, set by SET_OPTION IB_PATH, and compared with
what QUERY_ROUTE reports; with --path kernel, and on Ethernet, the kernel finds
it. Every host of a simulated fabric accepts at port ` + fmt.Sprint(endpoint.EchoPort) + `, of the port spaces tcp and
udp, and sends back the private data that it got.

Examples:

   ibsm --on sim:demo connect h8
   ibsm --on sim:demo connect ip:10.0.0.8 --private-data hello
   ibsm --on sim:demo connect h8 --port-space udp
   ibsm --on sim:demo -o json connect h8 --path kernel --count 3
   ibsm --on sim:demo connect ip:10.0.0.8 --dry-run --dialect illumos`,
		Flags: append(commonFlags(),
			&cli.StringFlag{Name: "path", Usage: "who finds the path: `sa|kernel`", DefaultText: "sa; kernel on Ethernet"},
			&cli.StringFlag{Name: "source", Usage: "connect from the local IP address `IP`"},
			&cli.StringFlag{Name: "pkey", Usage: "connect in the partition of `P_KEY`, to a GID", DefaultText: "the port's first"},
			&cli.IntFlag{Name: "count", Value: 1, Usage: "connect `N` times, one after another"},
			&cli.DurationFlag{Name: "hold", Usage: "keep each connection up for `TIME`"},
			&cli.DurationFlag{Name: "limit", Usage: "give each connection `TIME` to be made, and as much to end", DefaultText: "the CM gives up, after more than a minute"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the commands for the kernel, and write none", DisableDefaultText: true},
			&cli.StringFlag{Name: "dialect", Value: ucma.Linux.String(), Usage: "command interface of a simulated host, and of --dry-run: `linux|illumos`"},
			yesFlag(),
		),
		Action: session.Action(1, 1, connect),
	}
}

// commonFlags are those of both nouns.
func commonFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "service", Value: endpoint.EchoPort, Usage: "port `NUMBER` in the port space"},
		&cli.StringFlag{Name: "port-space", Value: "tcp", Usage: "`tcp|udp|ib|ipoib`: udp and ipoib find a datagram queue pair (SIDR)"},
		&cli.StringFlag{Name: "private-data", Usage: "send `DATA` along: text, or hex:00ff"},
		&cli.StringFlag{Name: "qpn", Usage: "announce the queue pair `NUMBER`, 24 bits", DefaultText: "one that is not in use"},
	}
}

func yesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "yes", Usage: "do it on a real fabric", DisableDefaultText: true}
}

// options are the flags as they were understood.
type options struct {
	service     uint16
	ps          ucma.PortSpace
	privateData []byte
	qpn         uint32
}

func connect(ctx context.Context, s *session.Session, args []string) error {
	r, err := newRun(s, args[0])
	if err != nil {
		return err
	}
	s.Out.Live()
	if err := r.within(ctx, r.aim); err != nil {
		return err
	}
	if r.dryRun {
		return r.show(ctx)
	}
	if err := s.Out.Columns(connectionMembers(r, "", &ucma.Connection{}, nil)); err != nil {
		return err
	}
	return r.all(ctx)
}

// within does something that may take --limit.
func (r *run) within(ctx context.Context, do func(context.Context) error) error {
	if r.limit == 0 {
		return do(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	err := do(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return &exit.LimitError{Limit: r.limit, Err: err}
	}
	return err
}

// run is one call of connect.
type run struct {
	s       *session.Session
	address string
	options
	path    string // sa, kernel, or "": as the port has it
	source  ucma.Sockaddr
	pkey    mad.PKey
	count   int
	hold    time.Duration
	limit   time.Duration
	dryRun  bool
	dialect *ucma.Dialect

	open   ucma.Opener
	target ucma.Target
	via    ucma.PathSource // nil: the kernel
	times  []time.Duration
}

// all makes the connections. The first that fails ends it.
func (r *run) all(ctx context.Context) error {
	for i := range r.count {
		if err := r.one(ctx, i); err != nil {
			if r.count > 1 {
				err = fmt.Errorf("connection %d of %d: %w", i+1, r.count, err)
			}
			return err
		}
	}
	return r.summary()
}

func (r *run) one(ctx context.Context, i int) error {
	cfg := ucma.ConnectConfig{
		PortSpace: r.ps, Source: r.source, Path: r.via, PrivateData: r.privateData, QPN: r.qpn,
		RetryCount: 7, RNRRetryCount: 7, ResolveTimeout: r.s.Tries(),
	}
	if cfg.QPN == 0 {
		cfg.QPN = ucma.UnusedQPN()
	}
	if err := r.heading(i); err != nil {
		return err
	}
	if r.count == 1 {
		cfg.Progress = r.line
	}
	start := time.Now()
	var c *ucma.Connection
	err := r.within(ctx, func(ctx context.Context) (err error) {
		c, err = r.open.Connect(ctx, r.target, cfg)
		return err
	})
	if err != nil {
		return r.failed(cfg.QPN, err)
	}
	up := time.Since(start)
	r.times = append(r.times, up)
	if r.hold > 0 {
		err = r.keep(ctx, c)
	}
	if err == nil {
		err = r.within(ctx, c.Disconnect)
	}
	err = errors.Join(err, c.Close())
	if recordErr := r.record(c, up); recordErr != nil {
		return recordErr
	}
	if err != nil {
		return exit.Told(err)
	}
	return nil
}

// keep waits while the connection is up.
func (r *run) keep(ctx context.Context, c *ucma.Connection) error {
	held, cancel := context.WithTimeout(ctx, r.hold)
	defer cancel()
	switch err := c.Wait(held); {
	case err == nil:
		return fmt.Errorf("%v ended the connection before --hold %v was over", r.target, r.hold)
	case held.Err() != nil && ctx.Err() == nil:
		return nil
	default:
		return err
	}
}
