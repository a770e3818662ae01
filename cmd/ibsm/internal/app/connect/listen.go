package connect

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/ucma"
)

// ListenCommand makes the noun listen.
func ListenCommand() *cli.Command {
	return &cli.Command{
		Name:      "listen",
		Usage:     "take connections by the RDMA CM",
		ArgsUsage: "[IP]",
		Description: `Waits for connections at the local address IP, or at all of them, and accepts
each or, with --reject, rejects it. As with connect there is no queue pair: a
peer that sends on such a connection gets no answer.

Nobody else is on a simulated fabric; this noun is for two machines.

Examples:

   ibsm --on sim:demo listen --limit 100ms
   ibsm --on sim:demo listen 10.0.0.1 --service 18515 --private-data hello --limit 100ms
   ibsm --on sim:demo listen --reject --port-space udp --limit 100ms`,
		Flags: append(commonFlags(),
			&cli.IntFlag{Name: "count", Usage: "end after `N` connections", DefaultText: "go on until interrupted"},
			&cli.DurationFlag{Name: "limit", Usage: "end after `TIME`, with the connections that there are", DefaultText: "go on until interrupted"},
			&cli.BoolFlag{Name: "reject", Usage: "reject them (consumer reject, 28)", DisableDefaultText: true},
			&cli.IntFlag{Name: "backlog", Value: ucma.DefaultBacklog, Usage: "how `MANY` may wait to be accepted"},
			yesFlag(),
		),
		Action: session.Action(0, 1, listen),
	}
}

// server is one call of listen.
type server struct {
	s *session.Session
	options
	count  int
	reject bool

	mu  sync.Mutex // the output, and err
	err error      // of the output, and the first connection that failed
}

func listen(ctx context.Context, s *session.Session, args []string) error {
	l := &server{s: s, count: s.Int("count"), reject: s.Switch("reject")}
	var err error
	if l.options, err = parseOptions(s); err != nil {
		return err
	}
	backlog, limit := s.Int("backlog"), s.Duration("limit")
	switch {
	case l.count < 0:
		return exit.Usagef("--count %d: it is a number from 0 on; 0 goes on", l.count)
	case limit < 0:
		return exit.Usagef("--limit %v: it is a time, such as 5s", limit)
	case l.qpn != 0 && l.count != 1:
		return exit.Usagef("--qpn: one number is for one connection: add --count 1")
	case backlog < 1:
		return exit.Usagef("--backlog %d: it is a number from 1 on", backlog)
	}
	at := ucma.Sockaddr{IP: netip.AddrPortFrom(netip.IPv6Unspecified(), l.service)}
	if len(args) > 0 {
		ip, isIP, err := hostIP(ctx, s, args[0])
		if err != nil {
			return err
		}
		if !isIP {
			return exit.Usagef("%q: it is an IP address of this host", args[0])
		}
		if at, err = ipAddress(ip, l.service); err != nil {
			return err
		}
	}
	if err := s.Allow("listen", "peers take their queue pairs to RTS against one that does not exist"); err != nil {
		return err
	}
	if _, err := s.Host(ctx); err != nil {
		return err
	}
	if s.Simulated() {
		s.Say("nobody else is on this simulated fabric")
	}
	s.Out.Live()
	cm, err := s.CM(ctx, endpoint.CMConfig{NoEcho: true})
	if err != nil {
		return err
	}
	if err := s.Out.Columns(requestMembers(&ucma.Request{}, "", 0)); err != nil {
		return err
	}
	listener, err := ucma.Opener(cm.Open).Listen(ctx, at, ucma.ListenConfig{PortSpace: l.ps, Backlog: backlog})
	if err != nil {
		return err
	}
	s.Say("listening at %v, port space %v", listener.Addr, l.ps)
	serving := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		serving, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	err = l.serve(serving, listener)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil // as it was asked for
	}
	return errors.Join(err, l.failed(), listener.Close())
}

// serve takes requests until there were enough, and waits for what came of them.
func (l *server) serve(ctx context.Context, listener *ucma.Listener) error {
	var running sync.WaitGroup
	defer running.Wait()
	for n := 0; l.count == 0 || n < l.count; n++ {
		r, err := listener.Next(ctx)
		if err != nil {
			return err
		}
		running.Go(func() { l.take(ctx, r) })
	}
	return nil
}

// failed is what went wrong with the output or a connection.
func (l *server) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return nil
	}
	return exit.Told(l.err)
}

// take answers a request, and stays with the connection until the peer ends it.
func (l *server) take(ctx context.Context, r *ucma.Request) {
	if l.reject {
		state := "rejected"
		err := r.Reject(ctx, 0, l.privateData)
		if err != nil {
			state = "failed"
		}
		l.record(r, state, 0, err)
		return
	}
	c, err := r.Accept(ctx, ucma.AcceptConfig{PrivateData: l.privateData, QPN: l.qpn, RNRRetryCount: 7})
	if err != nil {
		l.record(r, "failed", 0, err)
		return
	}
	l.record(r, "established", c.LocalQPN, nil)
	if r.ID().QPType() != ucma.QPTypeUD {
		err = c.Wait(ctx)
	}
	if err = errors.Join(err, c.Close()); err != nil && ctx.Err() == nil {
		l.s.Say("%v: %v", r.Peer, err)
	}
}

func (l *server) record(r *ucma.Request, state string, qpn uint32, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.s.Say("%v: %v", r.Peer, err)
		if l.err == nil {
			l.err = fmt.Errorf("connection from %v: %w", r.Peer, err)
		}
	}
	line := fmt.Sprintf("%s from %v", state, r.Peer)
	if r.RemoteQPN != 0 {
		line += fmt.Sprintf(", QPN 0x%06x", r.RemoteQPN)
	}
	if len(r.PrivateData) > 0 {
		line += ", private data " + printableData(r.PrivateData)
	}
	if err := l.s.Out.Record("Request", requestMembers(r, state, qpn), []byte(line+"\n")); err != nil && l.err == nil {
		l.err = err
	}
}

func requestMembers(r *ucma.Request, state string, qpn uint32) text.Object {
	return text.Object{
		{Name: "state", Value: state},
		{Name: "peer", Value: r.Peer.String()},
		{Name: "local", Value: r.Local.String()},
		{Name: "localQPN", Value: qpn},
		{Name: "remoteQPN", Value: r.RemoteQPN},
		{Name: "PrivateData", Value: hex.EncodeToString(r.PrivateData)},
		{Name: "path", Value: text.ObjectOf(&r.Path)},
	}
}
