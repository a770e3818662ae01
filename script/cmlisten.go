package script

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/ibsm/ibsm/ucma"
)

// maxRequests is how many requests the results of a step have.
const maxRequests = 1000

// listener takes the connections of a step listen.
type listener struct {
	t           *thread
	listeners   []*ucma.Listener
	reject      bool
	answerData  []byte
	echo        bool // what came goes back
	qpn         uint32
	enough      uint64 // requests; 0: any number
	reached     chan struct{}
	running     sync.WaitGroup
	connections sync.WaitGroup

	mu       sync.Mutex
	requests []any // the last ones
	count    uint64
	err      error
}

// listen takes connections while its steps run, or until there were enough.
func (t *thread) listen(ctx context.Context, b *Listen, d *done) error {
	if t.opt.DryRun {
		d.detail = "nobody listens"
		t.within(ctx, b.Steps, "", d)
		return nil
	}
	l := &listener{t: t, reached: make(chan struct{}), echo: b.PrivateData == nil}
	at, space, err := l.configure(ctx, b)
	if err != nil {
		return err
	}
	open, err := t.opener()
	if err != nil {
		return err
	}
	// What is taken ends with the step, whatever ends it.
	taking, stop := context.WithCancel(ctx)
	for _, a := range at {
		one, err := open.Listen(ctx, a, ucma.ListenConfig{PortSpace: space, AFOnly: len(at) > 1})
		if err != nil {
			stop()
			return errors.Join(err, l.close())
		}
		l.listeners = append(l.listeners, one)
		l.running.Go(func() { l.take(taking, one) })
	}
	if len(b.Steps) > 0 {
		t.within(ctx, b.Steps, "", d)
	}
	if l.enough > 0 && !d.stop {
		select {
		case <-l.reached:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	stop()
	if closeErr := l.close(); err == nil {
		err = closeErr
	}
	t.vars.bind("requests", l.requests)
	t.vars.bind("count", int(l.count))
	d.detail = plural(int(l.count), "request")
	return err
}

// configure reads the keys, and gives the addresses to listen at: that of the step, else
// any, and the own GID, which those who ask for a GID want.
func (l *listener) configure(ctx context.Context, b *Listen) (at []ucma.Sockaddr, space ucma.PortSpace, err error) {
	t := l.t
	service, err := t.cmService(ctx, b.Service, b.PortSpace)
	if err != nil {
		return nil, 0, err
	}
	if l.answerData, err = t.privateData(ctx, b.PrivateData); err != nil {
		return nil, 0, err
	}
	if l.reject, err = t.vars.flag(ctx, b.Reject, false); err != nil {
		return nil, 0, err
	}
	qpn, err := t.vars.number(ctx, b.QPN, 0, 0, 1<<24-1)
	if err != nil {
		return nil, 0, err
	}
	l.qpn = uint32(qpn)
	if l.enough, err = t.vars.number(ctx, b.Count, 0, 0, MaxIterations); err != nil {
		return nil, 0, err
	}
	if b.Address != nil {
		ip, err := t.ipText(ctx, b.Address)
		if err != nil {
			return nil, 0, err
		}
		a, err := service.atIP(ip)
		return []ucma.Sockaddr{a}, service.space, err
	}
	info, ethernet, err := t.portInfo()
	if err != nil {
		return nil, 0, err
	}
	// A port number of any IP address is not free for a GID any more, but the other way
	// round it is (cma.c, cma_check_port).
	if !ethernet && len(info.GIDs) > 0 {
		at = append(at, service.atGID(info.GIDs[0], partition(info, nil)))
	}
	if service.id != 0 {
		return at, service.space, nil
	}
	anywhere := []netip.Addr{netip.IPv6Unspecified()} // which takes IPv4, too
	if len(at) > 0 {
		anywhere = append(anywhere, netip.IPv4Unspecified()) // there it does not
	}
	for _, ip := range anywhere {
		a, err := service.atIP(ip)
		if err != nil {
			return nil, 0, err
		}
		at = append(at, a)
	}
	return at, service.space, nil
}

// take takes requests until there were enough, or the step ends.
func (l *listener) take(ctx context.Context, from *ucma.Listener) {
	for {
		r, err := from.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				l.failed(err)
			}
			return
		}
		l.connections.Go(func() { l.answer(ctx, r) })
	}
}

// answer accepts a request, or rejects it, and stays with the connection until the peer,
// or the step, ends it.
func (l *listener) answer(ctx context.Context, r *ucma.Request) {
	data := l.answerData
	if l.echo {
		data = r.PrivateData[:min(len(r.PrivateData), ucma.Linux.PrivateDataLimit(ucma.OpAccept, r.ID().QPType(), r.Local.Family()))]
	}
	if l.reject {
		err := r.Reject(ctx, 0, data)
		l.note(r, "rejected", 0, err)
		return
	}
	c, err := r.Accept(ctx, ucma.AcceptConfig{PrivateData: data, QPN: l.qpn, RNRRetryCount: 7})
	if err != nil {
		l.note(r, "failed", 0, err)
		return
	}
	l.note(r, "established", c.LocalQPN, nil)
	if r.ID().QPType() != ucma.QPTypeUD {
		c.Wait(ctx) // however it ended: it is over
	}
	if err := c.Close(); err != nil {
		l.failed(err)
	}
}

func (l *listener) note(r *ucma.Request, state string, qpn uint32, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	why := ""
	if err != nil {
		why = err.Error()
	}
	l.requests = append(l.requests, map[string]any{
		"state": state, "error": why, "peer": r.Peer.String(), "private_data": hex.EncodeToString(r.PrivateData),
		"local_qpn": int(qpn), "remote_qpn": int(r.RemoteQPN), "route": recordOf(&r.Path),
	})
	if len(l.requests) > maxRequests {
		l.requests = append(l.requests[:0], l.requests[1:]...)
	}
	if l.count++; l.count == l.enough {
		close(l.reached)
	}
}

func (l *listener) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = errors.Join(l.err, fmt.Errorf("listen: %w", err))
}

// close ends the listeners and what they took, and gives what went wrong.
func (l *listener) close() error {
	l.running.Wait()
	l.connections.Wait()
	for _, one := range l.listeners {
		l.err = errors.Join(l.err, one.Close())
	}
	return l.err
}
