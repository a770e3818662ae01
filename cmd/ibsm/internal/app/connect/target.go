package connect

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/ucma"
)

var portSpaces = map[string]ucma.PortSpace{
	"tcp": ucma.PortSpaceTCP, "udp": ucma.PortSpaceUDP, "ib": ucma.PortSpaceIB, "ipoib": ucma.PortSpaceIPoIB,
}

// parseOptions reads the flags of both nouns.
func parseOptions(s *session.Session) (o options, err error) {
	text, _ := s.Flag("port-space")
	var ok bool
	if o.ps, ok = portSpaces[text]; !ok {
		return o, exit.Usagef("--port-space %q: it is tcp, udp, ib or ipoib", text)
	}
	text, _ = s.Flag("service")
	n, err := strconv.ParseUint(text, 0, 16)
	if err != nil {
		return o, exit.Usagef("--service %s: it is a port number from 0 to 65535", text)
	}
	o.service = uint16(n)
	if text, given := s.Flag("qpn"); given {
		n, err := strconv.ParseUint(text, 0, 24)
		if err != nil || n == 0 {
			return o, exit.Usagef("--qpn %q: it is the number of a queue pair, 1 to 0xffffff", text)
		}
		o.qpn = uint32(n)
	}
	o.privateData, err = parseData(s, "private-data")
	return o, err
}

// parseData reads private data.
func parseData(s *session.Session, flag string) ([]byte, error) {
	text, _ := s.Flag(flag)
	digits, isHex := strings.CutPrefix(text, "hex:")
	if !isHex {
		return []byte(text), nil
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil, exit.Usagef("--%s %q: behind hex: stand bytes of two digits, such as hex:00ff", flag, text)
	}
	return b, nil
}

func newRun(s *session.Session, address string) (*run, error) {
	r := &run{s: s, address: address, count: s.Int("count"), hold: s.Duration("hold"), limit: s.Duration("limit"), dryRun: s.Switch("dry-run")}
	var err error
	if r.options, err = parseOptions(s); err != nil {
		return nil, err
	}
	switch r.path, _ = s.Flag("path"); r.path {
	case "", "sa", "kernel":
	default:
		return nil, exit.Usagef("--path %q: it is sa or kernel", r.path)
	}
	switch name, _ := s.Flag("dialect"); name {
	case ucma.Linux.String():
		r.dialect = ucma.Linux
	case ucma.Illumos.String():
		r.dialect = ucma.Illumos
	default:
		return nil, exit.Usagef("--dialect %q: it is linux or illumos", name)
	}
	if text, given := s.Flag("source"); given {
		ip, err := netip.ParseAddr(strings.TrimPrefix(text, "ip:"))
		if err != nil {
			return nil, exit.Usagef("--source %q: it is an IP address of this host", text)
		}
		if r.source, err = ipAddress(ip, 0); err != nil {
			return nil, err
		}
	}
	if text, given := s.Flag("pkey"); given {
		if r.pkey, err = mad.ParsePKey(text); err != nil {
			return nil, exit.Usagef("--pkey %q: it is a P_Key, such as 0xffff, whose lower 15 bits are not 0", text)
		}
	}
	switch {
	case r.count < 1:
		return nil, exit.Usagef("--count %d: it is a number from 1 on", r.count)
	case r.hold < 0:
		return nil, exit.Usagef("--hold %v: it is a time, such as 5s", r.hold)
	case r.limit < 0:
		return nil, exit.Usagef("--limit %v: it is a time, such as 5s", r.limit)
	case r.dryRun && (r.count > 1 || r.hold > 0):
		return nil, exit.Usagef("--dry-run shows one connection that is ended at once: leave --count and --hold away")
	case r.qpn != 0 && r.count > 1:
		return nil, exit.Usagef("--qpn with --count: a peer rejects a number that it has just seen as stale")
	}
	return r, nil
}

// aim finds the CM, the target and the source of the path.
func (r *run) aim(ctx context.Context) error {
	if err := r.s.Allow("connect", "the peer takes its own queue pair to RTS against one that does not exist"); err != nil && !r.dryRun {
		return err
	}
	ip, isIP, err := hostIP(ctx, r.s, r.address)
	var unknown *unknownHostError
	if err != nil && !errors.As(err, &unknown) {
		return err
	}
	dev, err := r.s.Host(ctx)
	if err != nil {
		return err
	}
	if dev == nil && (!isIP || r.path == "sa") {
		if _, err = r.s.Device(ctx); unknown != nil {
			err = fmt.Errorf("%w; and to look for a node of that name: %w", unknown, err)
		}
		return err
	}
	// Without an InfiniBand port an IP address may still be reached, by RoCE.
	ethernet := dev == nil
	var info port.Info
	if dev != nil {
		if info, err = dev.Info(); err != nil {
			return err
		}
		ethernet = info.LinkLayer == port.LinkEthernet
	}
	if r.path == "" {
		r.path = "sa"
		if ethernet {
			r.path = "kernel"
		}
	}
	if _, given := r.s.Flag("path"); given && r.dryRun && isIP && r.path == "sa" {
		return exit.Usagef("--dry-run --path sa: an IP address has a GID, which the SA is asked by, only when a kernel has resolved it: leave --path away")
	}
	if r.path == "sa" {
		if r.via, err = r.s.SA(ctx); err != nil {
			return err
		}
	}
	if r.target, err = r.find(ctx, ip, isIP, info); err != nil {
		return err
	}
	if err := r.checkData(); err != nil {
		return err
	}
	if r.dryRun {
		return nil
	}
	cm, err := r.s.CM(ctx, endpoint.CMConfig{Dialect: r.dialect})
	if err != nil {
		return err
	}
	r.open = cm.Open
	return nil
}

// checkData refuses private data that the message has no room for, or that the peer
// would take for something else.
func (r *run) checkData() error {
	family, t := r.target.Addr.Family(), ucma.QPTypeOf(r.ps)
	switch most := r.dialect.PrivateDataLimit(ucma.OpConnect, t, family); {
	case len(r.privateData) > most:
		return exit.Usagef("--private-data: it has %d bytes, and at most %d fit a connection to %v by %v", len(r.privateData), most, r.target.Addr, r.ps)
	case family == ucma.AFIB && len(r.privateData) > 0 && r.privateData[0] != 0:
		return exit.Usagef("--private-data: to a GID it must begin with 0, as hex:00ff does: the peer's kernel takes the first byte for the version of an IP header")
	}
	return nil
}

// unknownHostError is a bare name that DNS does not give an address for. It may be a
// node's.
type unknownHostError struct{ err error }

func (e *unknownHostError) Error() string { return e.err.Error() }
func (e *unknownHostError) Unwrap() error { return e.err }

// hostIP reads an IP address, bare or behind ip:, or looks up the name of a host. On a
// simulated fabric names are those of nodes. The error may be an *unknownHostError.
func hostIP(ctx context.Context, s *session.Session, address string) (netip.Addr, bool, error) {
	text := strings.TrimSpace(address)
	kind, rest, prefixed := strings.Cut(text, ":")
	switch {
	case prefixed && kind == "ip":
		ip, err := netip.ParseAddr(strings.TrimSpace(rest))
		if err != nil {
			return ip, false, exit.Usagef("%q: behind ip: stands an IP address", address)
		}
		return ip, true, nil
	case prefixed && kind == "host":
		ip, err := lookUpHost(ctx, strings.TrimSpace(rest))
		return ip, err == nil, err
	}
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip, true, nil
	}
	if at, err := netip.ParseAddrPort(text); err == nil {
		return netip.Addr{}, false, exit.Usagef("%q: the port goes by --service: write %v --service %d", address, at.Addr(), at.Port())
	}
	a, err := mad.ParseAddr(text)
	if err != nil || a.Kind != mad.AddrName || prefixed || strings.HasPrefix(text, `"`) || s.Simulated() {
		return netip.Addr{}, false, err
	}
	ip, err := lookUpHost(ctx, text)
	if err != nil {
		return ip, false, &unknownHostError{err}
	}
	return ip, true, nil
}

func lookUpHost(ctx context.Context, name string) (netip.Addr, error) {
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("host %q: %w", name, err)
	}
	return ips[0].Unmap(), nil
}

// find gives the target: an IP address as it is, another one by its GID.
func (r *run) find(ctx context.Context, ip netip.Addr, isIP bool, info port.Info) (t ucma.Target, err error) {
	t.Name = r.address
	if isIP {
		if r.pkey != 0 {
			return t, exit.Usagef("--pkey: the partition of an IP address is that of its interface")
		}
		t.Addr, err = ipAddress(ip, r.service)
		return t, err
	}
	a, err := mad.ParseAddr(r.address)
	if err != nil {
		return t, err
	}
	if a.Kind == mad.AddrRoute || a.Kind == mad.AddrCombined {
		return t, exit.Usagef("%v: a directed route leads to no CM: write an IP address, a name, a GID, a LID or a GUID", a)
	}
	if r.dialect == ucma.Illumos {
		return t, exit.Usagef("%s: illumos connects to IP addresses only: write ip: and one", r.address)
	}
	if r.source.Family() != ucma.AFUnspec {
		return t, exit.Usagef("--source: it goes with an IP address to connect to")
	}
	gid := a.GID
	if a.Kind != mad.AddrGID {
		e, err := r.s.Resolve(ctx, a)
		if err != nil {
			return t, err
		}
		gid = e.GID
	}
	if r.pkey == 0 {
		if i := slices.IndexFunc(info.PKeys, func(k mad.PKey) bool { return k != 0 }); i >= 0 {
			r.pkey = info.PKeys[i]
		}
	}
	t.Addr = ucma.IBAddr(gid, r.pkey, r.ps, r.service)
	return t, nil
}

// ipAddress is an IP address as the kernel takes it.
func ipAddress(ip netip.Addr, service uint16) (ucma.Sockaddr, error) {
	ip = ip.Unmap()
	a := ucma.Sockaddr{IP: netip.AddrPortFrom(ip.WithZone(""), service)}
	if zone := ip.Zone(); zone != "" {
		n, err := strconv.ParseUint(zone, 10, 32)
		if err != nil {
			i, err := net.InterfaceByName(zone)
			if err != nil {
				return a, exit.Usagef("%v: this host has no interface %q", ip, zone)
			}
			n = uint64(i.Index)
		}
		a.ScopeID = uint32(n)
	}
	return a, nil
}

// printableData is private data for people.
func printableData(b []byte) string {
	if len(bytes.TrimFunc(b, func(c rune) bool { return c >= ' ' && c <= '~' })) == 0 {
		return strconv.Quote(string(b))
	}
	return "hex:" + hex.EncodeToString(b)
}
