package main

import (
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
)

// rdma is as much of iproute2's command of that name as tests need that make
// and remove devices.
func rdma(args []string) error {
	switch {
	case len(args) == 7 && args[0] == "link" && args[1] == "add" && args[3] == "type" && args[5] == "netdev":
		return netlink.RdmaLinkAdd(args[2], args[4], args[6])
	case len(args) == 3 && args[0] == "link" && args[1] == "delete":
		return netlink.RdmaLinkDel(args[2])
	}
	return fmt.Errorf("%q: it knows only 'link add NAME type TYPE netdev NETDEV' and 'link delete NAME'", strings.Join(args, " "))
}
