package ucmatest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// Scene is one connection that a host asks another for, so that all messages of the
// CM that a program can have sent go from one to the other. Both hosts have a port
// of RoCE v2 over an interface whose MTU is 1500; [PairAddrs] are their addresses.
type Scene struct {
	// Name is also the private data of the request: a message that carries it tells by
	// itself what it belongs to.
	Name string

	datagram bool
	ipv4     bool
	port     uint16 // 0: the one that host 2 listens at
	path     bool   // one of our own making, and not the kernel's

	// What host 2 does: it accepts with this private data, or rejects with that.
	accepts, rejects string
	passive          bool // host 2 disconnects
	// The reason why host 1 does not get its connection; zero: it does.
	reason mad.RejectReason
	status mad.SIDRStatus
}

// pairPort is where host 2 listens, in the port spaces TCP and UDP.
const pairPort = 7471

// Scenes are all of them, in their order.
var Scenes = []*Scene{
	{Name: "by the kernel's route", accepts: strings.Repeat("all 196 bytes ", 14)},
	{Name: "by a path of our own making, for all 56 bytes of a REQ's", path: true, accepts: "accepted"},
	{Name: "over IPv4, ended by host 2", ipv4: true, passive: true, accepts: "accepted"},
	{Name: "rejected", rejects: strings.Repeat("148 bytes in all ", 8) + "and no more.", reason: mad.RejectConsumerDefined},
	{Name: "no listener", port: pairPort + 1, reason: mad.RejectInvalidServiceID},
	{Name: "datagrams", datagram: true, accepts: "accepted"},
	{Name: "datagrams over IPv4", datagram: true, ipv4: true, accepts: strings.Repeat("136 bytes is all ", 8)},
	{Name: "datagrams, rejected", datagram: true, rejects: "no", status: mad.SIDRStatusRejected},
	{Name: "datagrams, no listener", datagram: true, port: pairPort + 1, status: mad.SIDRStatusUnsupported},
}

// PairAddrs are the IP addresses of a host, 1 or 2.
func PairAddrs(host byte) (ipv6, ipv4 netip.Addr) {
	return netip.AddrFrom16([16]byte{0: 0xfd, 3: 1, 15: host}), netip.AddrFrom4([4]byte{192, 0, 2, 64 + host})
}

func (s *Scene) addr(host byte, port uint16) ucma.Sockaddr {
	ip, ipv4 := PairAddrs(host)
	if s.ipv4 {
		ip = ipv4
	}
	return ucma.Sockaddr{IP: netip.AddrPortFrom(ip, port)}
}

func (s *Scene) gid(host byte) mad.GID { return s.addr(host, 0).IP.Addr().As16() }

// Connect is host 1. It gives all that was not as it should be.
func (s *Scene) Connect(ctx context.Context, open ucma.Opener) error {
	cfg := ucma.ConnectConfig{
		PrivateData: []byte(s.Name), ResponderResources: 3, InitiatorDepth: 2, FlowControl: true, RetryCount: 6, RNRRetryCount: 5,
	}
	if s.datagram {
		cfg.PortSpace = ucma.PortSpaceUDP
	}
	if s.path {
		cfg.PathRecord = &mad.PathRecord{
			SGID: s.gid(1), DGID: s.gid(2), DLID: 2, SLID: 1, FlowLabel: 0x12345, HopLimit: 1, TClass: 0x20,
			Reversible: true, NumbPath: 1, PKey: mad.DefaultPKey, SL: 3, MTUSelector: mad.SelectorExactly, MTU: mad.MTU512,
			RateSelector: mad.SelectorExactly, Rate: mad.Rate10G, PacketLifeTimeSelector: mad.SelectorExactly, PacketLifeTime: 14,
		}
	}
	port := s.port
	if port == 0 {
		port = pairPort
	}
	c, err := open.Connect(ctx, ucma.Target{Addr: s.addr(2, port)}, cfg)
	if s.reason != 0 || s.status != 0 {
		return s.checkFailure(err)
	}
	if err != nil {
		return err
	}
	var bad wrongs
	bad.check(string(c.PrivateData) == s.accepts, "accepted with %q", c.PrivateData)
	bad.check(!s.path || c.Path.MTU == mad.MTU512 && c.Path.FlowLabel == 0x12345, "path %+v", c.Path)
	p := &c.Param
	bad.check(s.datagram || p.ResponderResources == 1 && p.InitiatorDepth == 2 && p.FlowControl && p.RNRRetryCount == 4, "accepted with %+v", c.Param)
	return errors.Join(append(bad, s.end(ctx, c, !s.passive))...)
}

// checkFailure checks how host 1 failed to connect.
func (s *Scene) checkFailure(err error) error {
	var bad wrongs
	var rejected *ucma.RejectError
	var unreachable *ucma.UnreachableError
	switch {
	case errors.As(err, &rejected):
		bad.check(rejected.Reason == s.reason && string(rejected.PrivateData) == s.rejects, "%v, want %v (%d) with %q", err, s.reason, s.reason, s.rejects)
	case errors.As(err, &unreachable):
		bad.check(unreachable.SIDRStatus == s.status, "%v, want SIDR status %v", err, s.status)
	default:
		bad.check(false, "%v, want a rejection", err)
	}
	return errors.Join(bad...)
}

// end ends a connection on this side, at once or when the other has.
func (s *Scene) end(ctx context.Context, c *ucma.Connection, first bool) error {
	var ended error
	if !first && !s.datagram {
		ended = c.Wait(ctx)
	}
	return errors.Join(ended, c.Disconnect(ctx), c.Close())
}

// Listeners are those of host 2.
type Listeners map[listenerKind]*ucma.Listener

type listenerKind struct{ datagram, ipv4 bool }

// ListenPair makes host 2 listen, for all scenes.
func ListenPair(ctx context.Context, open ucma.Opener) (Listeners, error) {
	all := Listeners{}
	for _, k := range []listenerKind{{false, false}, {false, true}, {true, false}, {true, true}} {
		var cfg ucma.ListenConfig
		if k.datagram {
			cfg.PortSpace = ucma.PortSpaceUDP
		}
		l, err := open.Listen(ctx, (&Scene{ipv4: k.ipv4}).addr(2, pairPort), cfg)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all[k] = l
	}
	return all, nil
}

// Close ends all listeners.
func (all Listeners) Close() error {
	var errs []error
	for _, l := range all {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Serve is host 2. It gives all that was not as it should be.
func (all Listeners) Serve(ctx context.Context, s *Scene) error {
	if s.port != 0 {
		return nil // nobody listens there
	}
	r, err := all[listenerKind{s.datagram, s.ipv4}].Next(ctx)
	if err != nil {
		return err
	}
	var bad wrongs
	bad.check(string(r.PrivateData) == s.Name && r.Peer.IP.Addr() == s.addr(1, 0).IP.Addr() && r.Local == s.addr(2, pairPort),
		"request of %v to %v with %q", r.Peer, r.Local, r.PrivateData)
	p := &r.Param
	bad.check(s.datagram || p.ResponderResources == 2 && p.InitiatorDepth == 3 && p.FlowControl && p.RetryCount == 6 && p.RNRRetryCount == 5, "request with %+v", r.Param)
	if s.accepts == "" {
		return errors.Join(append(bad, r.Reject(ctx, 0, []byte(s.rejects)))...)
	}
	c, err := r.Accept(ctx, ucma.AcceptConfig{
		PrivateData: []byte(s.accepts), ResponderResources: 2, InitiatorDepth: 1, FlowControl: true, RNRRetryCount: 4,
	})
	if err != nil {
		return errors.Join(append(bad, err)...)
	}
	return errors.Join(append(bad, s.end(ctx, c, s.passive))...)
}

// wrongs are what was not as it should be.
type wrongs []error

func (w *wrongs) check(ok bool, format string, args ...any) {
	if !ok {
		*w = append(*w, fmt.Errorf(format, args...))
	}
}
