package script

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// cmService is what to connect to, or to listen for.
type cmService struct {
	space ucma.PortSpace
	port  uint16
	id    uint64 // in port space IB, if it is no port number
}

func (t *thread) cmService(ctx context.Context, service, space *Value) (cmService, error) {
	c := cmService{space: ucma.PortSpaceTCP}
	if space != nil {
		word, err := t.vars.text(ctx, space)
		if err != nil {
			return c, err
		}
		var ok bool
		if c.space, ok = portSpaceOf[word]; !ok {
			return c, &placedError{space.Pos, fmt.Errorf("port space %q is none of %s", word, strings.Join(portSpaces, ", "))}
		}
	}
	s, err := t.vars.text(ctx, service)
	if err != nil {
		return c, err
	}
	bits := 16
	if c.space == ucma.PortSpaceIB {
		bits = 64
	}
	n, err := strconv.ParseUint(s, 0, bits)
	if err != nil {
		return c, &placedError{service.Pos, fmt.Errorf("service %q is no number of %d bits", s, bits)}
	}
	if c.port = uint16(n); n > 0xffff {
		c.id = n
	}
	return c, nil
}

func (c cmService) atGID(gid mad.GID, key mad.PKey) ucma.Sockaddr {
	a := ucma.IBAddr(gid, key, c.space, c.port)
	if c.id != 0 {
		a.IB.ServiceID = c.id
	}
	return a
}

func (c cmService) atIP(ip netip.Addr) (ucma.Sockaddr, error) {
	if c.id != 0 {
		return ucma.Sockaddr{}, fmt.Errorf("service 0x%x is no port number, as an IP address needs", c.id)
	}
	ip = ip.Unmap()
	a := ucma.Sockaddr{IP: netip.AddrPortFrom(ip.WithZone(""), c.port)}
	if zone := ip.Zone(); zone != "" {
		i, err := net.InterfaceByName(zone)
		if err != nil {
			return a, fmt.Errorf("%v: this host has no interface %q", ip, zone)
		}
		a.ScopeID = uint32(i.Index)
	}
	return a, nil
}

// ipText reads an IP address of this host.
func (t *thread) ipText(ctx context.Context, v *Value) (netip.Addr, error) {
	s, err := t.vars.text(ctx, v)
	if err != nil {
		return netip.Addr{}, err
	}
	ip, err := netip.ParseAddr(strings.TrimPrefix(s, "ip:"))
	if err != nil {
		return ip, &placedError{v.Pos, fmt.Errorf("%q is no IP address", s)}
	}
	return ip.Unmap(), nil
}

// hostIP reads an IP address, bare or behind ip:, or looks up the name of a host. On a
// simulated fabric names are those of nodes.
func (t *thread) hostIP(ctx context.Context, s string) (netip.Addr, bool, error) {
	kind, rest, prefixed := strings.Cut(s, ":")
	if prefixed && kind == "ip" {
		ip, err := netip.ParseAddr(strings.TrimSpace(rest))
		return ip, err == nil, err
	}
	if ip, err := netip.ParseAddr(s); err == nil {
		return ip, true, nil
	}
	if prefixed && kind == "host" {
		ip, err := lookUpHost(ctx, strings.TrimSpace(rest))
		return ip, err == nil, err
	}
	a, err := mad.ParseAddr(s)
	if err != nil || a.Kind != mad.AddrName || prefixed || strings.HasPrefix(s, `"`) || t.env.Simulated {
		return netip.Addr{}, false, nil
	}
	ip, err := lookUpHost(ctx, s) // a name that DNS does not know may be a node's
	return ip, err == nil, nil
}

func lookUpHost(ctx context.Context, name string) (netip.Addr, error) {
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("host %q: %w", name, err)
	}
	return ips[0].Unmap(), nil
}

// peerGID finds the GID of a port whose CM is asked.
func (t *thread) peerGID(ctx context.Context, s string) (mad.GID, error) {
	a, err := mad.ParseAddr(s)
	switch {
	case err != nil:
		return mad.GID{}, err
	case a.Kind == mad.AddrGID:
		return a.GID, nil
	case a.Kind == mad.AddrRoute || a.Kind == mad.AddrCombined:
		return mad.GID{}, fmt.Errorf("%v: a directed route leads to no CM: write an IP address, a name, a GID, a LID or a GUID", a)
	case t.env.Resolver == nil:
		return mad.GID{}, fmt.Errorf("%v: there is no SA here to look it up: write an IP address or a GID", a)
	}
	e, err := t.env.Resolver.Resolve(ctx, a)
	return e.GID, err
}

// privateData reads text, or bytes behind hex:.
func (t *thread) privateData(ctx context.Context, v *Value) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	s, err := t.vars.text(ctx, v)
	if err != nil {
		return nil, err
	}
	digits, isHex := strings.CutPrefix(s, "hex:")
	if !isHex {
		return []byte(s), nil
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil, &placedError{v.Pos, fmt.Errorf("behind hex: stand bytes of two digits, such as hex:00ff: %w", err)}
	}
	return b, nil
}
