package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ibsm/ibsm/internal/kernelrig/plan"
)

func mountAll() error {
	for _, m := range []struct{ fstype, dir string }{
		{"proc", "/proc"},
		{"sysfs", "/sys"},
		{"devtmpfs", "/dev"},
		{"tmpfs", "/tmp"},
	} {
		if err := unix.Mount(m.fstype, m.dir, m.fstype, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.dir, err)
		}
	}
	return nil
}

// An end of a link, with what it is called and its addresses.
type end struct{ name, ipv4, ipv6 string }

// ip is its IPv6 address alone.
func (e end) ip() string {
	ip, _, _ := strings.Cut(e.ipv6, "/")
	return ip
}

var (
	// A guest that is alone has both ends: rxe0 is over the first, the second is free
	// for devices that a test makes by itself.
	veth = [2]end{{"v0", "192.0.2.1/24", "fd00::1/64"}, {"v1", "192.0.2.2/24", "fd00::2/64"}}
	// Guests of a pair have one each: QEMU's, by the kernel's name for it.
	wire = [2]end{{"eth0", "192.0.2.65/24", "fd00:1::1/64"}, {"eth0", "192.0.2.66/24", "fd00:1::2/64"}}
)

// setUp loads the modules, turns the links on and makes the device rxe0.
func setUp(pair int) error {
	if err := loadModules(); err != nil {
		return err
	}
	if err := bringUp("lo"); err != nil {
		return err
	}
	ends := veth[:]
	if pair != 0 {
		ends = wire[pair-1 : pair]
	} else if err := addVeth(veth[0].name, veth[1].name); err != nil {
		return err
	}
	for _, e := range ends {
		if err := bringUp(e.name, e.ipv4, e.ipv6); err != nil {
			return err
		}
	}
	// The addresses come first: a new device's GID table is filled from those that
	// are there, while later ones follow from a work queue.
	if err := netlink.RdmaLinkAdd("rxe0", "rxe", ends[0].name); err != nil {
		return fmt.Errorf("rdma link add rxe0 over %s: %w", ends[0].name, err)
	}
	if _, err := os.Stat("/dev/infiniband/umad0"); err != nil {
		return fmt.Errorf("rxe0 has no device file: %w", err)
	}
	return nil
}

func addVeth(name, peer string) error {
	veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: peer}
	veth.Name = name
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("add the veth pair %s, %s: %w", name, peer, err)
	}
	return nil
}

func loadModules() error {
	files, err := filepath.Glob(plan.Modules + "/*.ko")
	if err != nil {
		return err
	}
	for _, file := range files { // sorted
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil {
			return fmt.Errorf("load %s: %w", file, err)
		}
	}
	return nil
}

// bringUp turns a link on, with its addresses. IPv6 addresses are usable at once:
// nobody else has them, so duplicates are not looked for.
func bringUp(name string, addrs ...string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("link %s: %w", name, err)
	}
	for _, a := range addrs {
		ip, network, err := net.ParseCIDR(a)
		if err != nil {
			return err
		}
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: network.Mask}, Flags: unix.IFA_F_NODAD}
		if err := netlink.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("address %s on %s: %w", a, name, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("link %s up: %w", name, err)
	}
	return nil
}
