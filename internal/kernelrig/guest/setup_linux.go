package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

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

// setUp loads the modules and makes the device rxe0 over one end of a veth pair.
// The other end, v1, is free for devices that a test makes by itself.
func setUp() error {
	if err := loadModules(); err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("link lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("link lo up: %w", err)
	}
	pair := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "v1"}
	pair.Name = "v0"
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("add the veth pair v0, v1: %w", err)
	}
	for _, end := range []struct{ name, ipv4, ipv6 string }{
		{"v0", "192.0.2.1/24", "fd00::1/64"},
		{"v1", "192.0.2.2/24", "fd00::2/64"},
	} {
		if err := bringUp(end.name, end.ipv4, end.ipv6); err != nil {
			return err
		}
	}
	// The addresses come first: a new device's GID table is filled from those that
	// are there, while later ones follow from a work queue.
	if err := netlink.RdmaLinkAdd("rxe0", "rxe", "v0"); err != nil {
		return fmt.Errorf("rdma link add rxe0 over v0: %w", err)
	}
	if _, err := os.Stat("/dev/infiniband/umad0"); err != nil {
		return fmt.Errorf("rxe0 has no device file: %w", err)
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

// bringUp gives a link its addresses and turns it on. IPv6 addresses are usable
// at once: nobody else is on this link, so duplicates are not looked for.
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
