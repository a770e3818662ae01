package ucma

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/ibsm/ibsm/mad"
)

// Family is an address family, whatever number a system gives it.
type Family uint8

// Address families.
const (
	AFUnspec Family = iota
	AFInet
	AFInet6
	AFIB
)

var familyNames = map[Family]string{AFUnspec: "AF_UNSPEC", AFInet: "AF_INET", AFInet6: "AF_INET6", AFIB: "AF_IB"}

// String is the C name, "AF_INET".
func (f Family) String() string { return named(familyNames, f, "address family") }

// Sockaddr is an address of an id: an IP address with a port, or an InfiniBand
// address. The zero value is AF_UNSPEC, no address.
type Sockaddr struct {
	IP       netip.AddrPort // AF_INET or AF_INET6; it has no zone, but ScopeID
	FlowInfo uint32         // of AF_INET6
	ScopeID  uint32         // of a link-local AF_INET6: index of the interface
	IB       *SockaddrIB    // AF_IB
}

// SockaddrIB is an InfiniBand address with a service id in place of a port
// (struct sockaddr_ib, include/rdma/ib.h). Linux only, and not in every command.
type SockaddrIB struct {
	PKey          mad.PKey
	FlowInfo      uint32
	GID           mad.GID
	ServiceID     uint64 // port space << 16 | port
	ServiceIDMask uint64
	ScopeID       uint64
}

// Family tells which kind of address it is.
func (a Sockaddr) Family() Family {
	switch {
	case a.IB != nil:
		return AFIB
	case !a.IP.Addr().IsValid():
		return AFUnspec
	case a.IP.Addr().Is4():
		return AFInet
	}
	return AFInet6
}

// isMulticast tells whether it is that of a group.
func (a Sockaddr) isMulticast() bool {
	switch a.Family() {
	case AFIB:
		return a.IB.GID[0] == 0xff
	case AFInet6:
		return a.IP.Addr().As16()[0] == 0xff
	}
	return a.IP.Addr().IsMulticast()
}

// Equal tells whether two addresses are the same.
func (a Sockaddr) Equal(b Sockaddr) bool {
	if a.IB != nil && b.IB != nil {
		return *a.IB == *b.IB
	}
	return a == b
}

// String is "192.0.2.1:7174", "[fe80::1%2]:7174" or "gid fe80::1 service
// 0x0000000001061c06".
func (a Sockaddr) String() string {
	switch a.Family() {
	case AFUnspec:
		return "unspecified"
	case AFIB:
		return fmt.Sprintf("gid %v service 0x%016x", a.IB.GID, a.IB.ServiceID)
	case AFInet6:
		if a.ScopeID != 0 {
			ip := a.IP.Addr().WithZone(fmt.Sprint(a.ScopeID))
			return netip.AddrPortFrom(ip, a.IP.Port()).String()
		}
	}
	return a.IP.String()
}

// Offsets and sizes of addresses; of the BSD ones they are the same everywhere.
// The size of a sockaddr_in6 is the dialect's.
const (
	sockaddrInSize = 16
	sockaddrIBSize = 48

	sinPort = 2 // big-endian, as all but the family and scope ids
	sinAddr = 4

	sin6FlowInfo = 4
	sin6Addr     = 8
	sin6Scope    = 24 // in the machine's byte order

	sibPKey    = 2
	sibFlow    = 4
	sibAddr    = 8
	sibSID     = 24
	sibSIDMask = 32
	sibScope   = 40 // in the machine's byte order
)

// sizeOf is the size of an address of a family; 0 for AF_UNSPEC.
func (d *Dialect) sizeOf(f Family) int {
	switch f {
	case AFInet:
		return sockaddrInSize
	case AFInet6:
		return d.sin6
	case AFIB:
		return sockaddrIBSize
	}
	return 0
}

// sockaddr is an address, with its size where the structure has a field for it.
func (c *codec) sockaddr(name, sizeName string, v *Sockaddr) {
	b := c.at(c.s.field(name))
	if c.put {
		size := c.putSockaddr(name, b, v)
		if sizeName != "" {
			num(c, sizeName, &size)
		}
		return
	}
	*v = Sockaddr{}
	if b == nil {
		return
	}
	family, ok := c.d.family(binary.NativeEndian.Uint16(b))
	if !ok {
		c.fail(fault{field: name, rule: fmt.Sprintf("address family %d is unknown", binary.NativeEndian.Uint16(b)), errno: EINVAL})
		return
	}
	size := c.d.sizeOf(family)
	if size > len(b) && !c.response {
		c.fail(c.tooLong(name, size, len(b)))
		return
	}
	if sizeName != "" {
		var given uint16
		num(c, sizeName, &given)
		if int(given) != size && !(given == 0 && name == "src_addr" && !c.response) {
			c.fail(fault{field: sizeName, rule: fmt.Sprintf("%d, but %v has %d bytes", given, family, size), errno: EINVAL})
			return
		}
		if given == 0 {
			return
		}
	}
	getSockaddr(b, family, v)
}

func (d *Dialect) family(number uint16) (Family, bool) {
	for f, n := range d.families {
		if n == number {
			return f, true
		}
	}
	return 0, false
}

func (c *codec) tooLong(name string, size, room int) fault {
	return fault{
		field: name, rule: fmt.Sprintf("an AF_IB address has %d bytes, there is room for %d", size, room),
		fix: "use BIND, RESOLVE_ADDR or JOIN_MCAST", errno: EINVAL,
	}
}

// putSockaddr writes an address and gives its size.
func (c *codec) putSockaddr(name string, b []byte, v *Sockaddr) uint16 {
	f := v.Family()
	number, ok := c.d.families[f]
	size := c.d.sizeOf(f)
	switch {
	case !ok:
		c.fail(fault{field: name, rule: fmt.Sprintf("%s has no %v", c.d, f), fix: "use an IP address", errno: EINVAL})
		return 0
	case size > len(b) && !c.response:
		c.fail(c.tooLong(name, size, len(b)))
		return 0
	case v.IP.Addr().Zone() != "":
		c.fail(fault{field: name, rule: fmt.Sprintf("%v has a zone", v.IP), fix: "give the interface's index as ScopeID", errno: EINVAL})
		return 0
	}
	full := make([]byte, max(size, len(b)))
	binary.NativeEndian.PutUint16(full, number)
	switch f {
	case AFInet:
		a := v.IP.Addr().As4()
		binary.BigEndian.PutUint16(full[sinPort:], v.IP.Port())
		copy(full[sinAddr:], a[:])
	case AFInet6:
		a := v.IP.Addr().As16()
		binary.BigEndian.PutUint16(full[sinPort:], v.IP.Port())
		binary.BigEndian.PutUint32(full[sin6FlowInfo:], v.FlowInfo)
		copy(full[sin6Addr:], a[:])
		binary.NativeEndian.PutUint32(full[sin6Scope:], v.ScopeID)
	case AFIB:
		binary.BigEndian.PutUint16(full[sibPKey:], uint16(v.IB.PKey))
		binary.BigEndian.PutUint32(full[sibFlow:], v.IB.FlowInfo)
		copy(full[sibAddr:], v.IB.GID[:])
		binary.BigEndian.PutUint64(full[sibSID:], v.IB.ServiceID)
		binary.BigEndian.PutUint64(full[sibSIDMask:], v.IB.ServiceIDMask)
		binary.NativeEndian.PutUint64(full[sibScope:], v.IB.ScopeID)
	}
	copy(b, full)
	return uint16(size)
}

// getSockaddr reads an address; what a response has cut off is zero.
func getSockaddr(b []byte, f Family, v *Sockaddr) {
	full := make([]byte, max(sockaddrIBSize, len(b)))
	copy(full, b)
	port := binary.BigEndian.Uint16(full[sinPort:])
	switch f {
	case AFInet:
		v.IP = netip.AddrPortFrom(netip.AddrFrom4([4]byte(full[sinAddr:])), port)
	case AFInet6:
		v.IP = netip.AddrPortFrom(netip.AddrFrom16([16]byte(full[sin6Addr:])), port)
		v.FlowInfo = binary.BigEndian.Uint32(full[sin6FlowInfo:])
		v.ScopeID = binary.NativeEndian.Uint32(full[sin6Scope:])
	case AFIB:
		v.IB = &SockaddrIB{
			PKey:          mad.PKey(binary.BigEndian.Uint16(full[sibPKey:])),
			FlowInfo:      binary.BigEndian.Uint32(full[sibFlow:]),
			GID:           mad.GID(full[sibAddr:sibSID]),
			ServiceID:     binary.BigEndian.Uint64(full[sibSID:]),
			ServiceIDMask: binary.BigEndian.Uint64(full[sibSIDMask:]),
			ScopeID:       binary.NativeEndian.Uint64(full[sibScope:]),
		}
	}
}
