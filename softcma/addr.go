package softcma

import (
	"net/netip"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// Addresses as cma.c sees them.

func isZero(a ucma.Sockaddr) bool {
	switch a.Family() {
	case ucma.AFInet:
		return a.IP.Addr().As4()[0] == 0 // ipv4_is_zeronet
	case ucma.AFInet6:
		return a.IP.Addr().IsUnspecified()
	case ucma.AFIB:
		return a.IB.GID.IsZero()
	}
	return false
}

func isLoopback(a ucma.Sockaddr) bool {
	switch a.Family() {
	case ucma.AFInet, ucma.AFInet6:
		return a.IP.Addr().IsLoopback()
	case ucma.AFIB:
		return a.IB.GID == loopbackGID
	}
	return false
}

var loopbackGID = mad.GID{15: 1}

// isAny is cma_any_addr: no address, or that of the host itself.
func isAny(a ucma.Sockaddr) bool { return isZero(a) || isLoopback(a) }

// differ is cma_addr_cmp: the address without the port.
func differ(a, b ucma.Sockaddr) bool {
	switch {
	case a.Family() != b.Family():
		return true
	case a.IB != nil:
		return a.IB.GID != b.IB.GID
	case a.IP.Addr() != b.IP.Addr():
		return true
	}
	return a.IP.Addr().Is6() && b.IP.Addr().IsLinkLocalUnicast() && a.ScopeID != b.ScopeID
}

// portOf is cma_port.
func portOf(a ucma.Sockaddr) uint16 {
	if a.IB != nil {
		return uint16(a.IB.ServiceID & a.IB.ServiceIDMask)
	}
	return a.IP.Port()
}

// unspecified is the zero address of a family, with a port.
func unspecified(f ucma.Family, port uint16) ucma.Sockaddr {
	switch f {
	case ucma.AFInet:
		return ucma.Sockaddr{IP: netip.AddrPortFrom(netip.IPv4Unspecified(), port)}
	case ucma.AFInet6:
		return ucma.Sockaddr{IP: netip.AddrPortFrom(netip.IPv6Unspecified(), port)}
	case ucma.AFIB:
		return ucma.Sockaddr{IB: &ucma.SockaddrIB{}}
	}
	return ucma.Sockaddr{}
}

// withIP is the address with another IP address.
func withIP(a ucma.Sockaddr, ip netip.Addr) ucma.Sockaddr {
	a.IP = netip.AddrPortFrom(ip, a.IP.Port())
	return a
}

// loopbackOf is the address as cma_set_loopback changes it.
func loopbackOf(a ucma.Sockaddr) ucma.Sockaddr {
	switch a.Family() {
	case ucma.AFInet:
		return withIP(a, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	case ucma.AFInet6:
		return withIP(a, netip.IPv6Loopback())
	}
	ib := *a.IB
	ib.GID = loopbackGID
	return ucma.Sockaddr{IB: &ib}
}

// gidOf is the GID that an IP address has on RoCE (rdma_ip2gid); zero for AF_IB.
func gidOf(a ucma.Sockaddr) mad.GID {
	if a.IB != nil || !a.IP.IsValid() {
		return mad.GID{}
	}
	return a.IP.Addr().As16()
}

// ipOf is the reverse (rdma_gid2ip).
func ipOf(gid mad.GID) netip.Addr { return netip.AddrFrom16(gid).Unmap() }

// macOf makes an Ethernet address of a port GUID, as if that was an EUI-64 made
// of one (rdma_get_ll_mac).
func macOf(guid mad.GUID) (mac [6]byte) {
	for i, shift := range []int{56, 48, 40, 16, 8, 0} {
		mac[i] = uint8(guid >> shift)
	}
	mac[0] ^= 2
	return mac
}
