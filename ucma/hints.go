package ucma

import (
	"errors"
	"slices"
)

// advise adds to what a kernel refused what its errno means for that command, where
// the name alone is no help.
func advise(err error) error {
	var refused *CommandError
	if !errors.As(err, &refused) || refused.Fix != "" {
		return err
	}
	errno, ok := refused.Err.(Errno)
	if !ok {
		return err
	}
	for _, h := range hints {
		if h.errno == errno && (h.dialect == nil || h.dialect == refused.Dialect) && (h.ops == nil || slices.Contains(h.ops, refused.Op)) {
			refused.Fix = h.text
			break
		}
	}
	return err
}

// From kernel ucma.c, cma.c and cm.c, and illumos sol_ucma.c.
var hints = []struct {
	dialect *Dialect // nil: both
	ops     []Op     // nil: all
	errno   Errno
	text    string
}{
	{nil, nil, ENXIO, "the device has been removed; only DESTROY_ID is left"},
	{nil, []Op{OpConnect, OpAccept}, ENOENT, "the P_Key of the path is not in the port's table, or the id is gone"},
	{nil, []Op{OpBind, OpBindIP}, EADDRNOTAVAIL, "no interface of this host has the address, or somebody listens at that port of all addresses"},
	{nil, []Op{OpBind, OpBindIP, OpListen}, EADDRINUSE, "the port is taken in this port space"},
	{nil, []Op{OpBind, OpBindIP}, ENODEV, "the interface with that address has no RDMA device"},
	{nil, []Op{OpResolveAddr, OpResolveIP}, ENODEV, "the interface that leads there has no RDMA device; of a GID, no active port has the P_Key of the address in its table and the prefix of the GID, as for a multicast GID, which needs a source"},
	{nil, []Op{OpResolveAddr, OpResolveIP}, EINVAL, "the source is of another address family than the destination, or a link-local address has no ScopeID"},
	{nil, []Op{OpBind, OpBindIP, OpResolveAddr, OpResolveIP, OpListen}, EPROTONOSUPPORT, "the id's port space is not for this kind of address: a GID's service id names TCP, UDP or IB, and only an id of that or of IB takes it"},
	{nil, []Op{OpResolveAddr, OpResolveIP}, ENETUNREACH, "this host has no route to the address; a source address may help"},
	{nil, []Op{OpResolveRoute, OpSetOption}, ENODEV, "the id's interface is gone"},
	{nil, []Op{OpResolveRoute}, EAGAIN, "the port has no subnet manager: start one, or wait for it"},
	{Linux, []Op{OpConnect}, EINVAL, "the SGID of the path is not one of the port's, or its values are out of range"},
	{Linux, []Op{OpAccept, OpInitQPAttr}, EINVAL, "the peer has given up meanwhile"},
	{Illumos, []Op{OpConnect, OpAccept}, EINVAL, "illumos connects only queue pairs that uverbs has made on this host: give the number of one"},
	{nil, []Op{OpResolveIBService}, EOPNOTSUPP, "only InfiniBand ports have services"},
}
