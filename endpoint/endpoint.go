// Package endpoint opens what a user names with --on as a port.Device: it alone
// knows every back end.
//
// An endpoint is written KIND:REST. The kinds:
//
//	sim:FABRIC[#NODE[/PORT]]   a simulated fabric, brought up, with an SA on its SM's port
//	ibsim:[NODE]               a node of the ibsim whose sockets IBSIM_SOCKNAME names
//	umad:[DEVICE][/PORT]       a port of this machine, through the kernel
//
// The empty endpoint is umad: as well.
//
// FABRIC is an embedded fabric (demo), a generator with its parameters
// (two-level:leafs=36,spines=18,hosts=18) or a fabric file. NODE is a node's
// name in the fabric file or its NodeDescription; without it the device is the
// first port of a host that has a link. PORT is a port number; without it, it is
// the node's first end port.
//
// To ibsim, NODE is the id of a node in the netlist, or a NodeDescription; without
// it the device is at the netlist's first node.
//
// DEVICE is the name of an RDMA device, such as mlx5_0. Of one that is named it is
// port PORT, else its first active port, else its first. Where none is named it is
// the first active InfiniBand port, with number PORT if there is one; an Ethernet
// port has no LIDs and is never chosen unless it is named.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/umad"
)

// Error says why an endpoint could not be opened.
type Error struct {
	Endpoint string
	Err      error
}

func (e *Error) Error() string {
	if strings.TrimSpace(e.Endpoint) == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("endpoint %q: %v", e.Endpoint, e.Err)
}
func (e *Error) Unwrap() error { return e.Err }

// kind is one back end.
type kind struct {
	open  func(ctx context.Context, rest string) (port.Device, error)
	list  func(ctx context.Context, rest string) ([]Choice, error)
	needs string // what to say when nothing follows the kind; "" if that is fine
}

// Config says how to open endpoints. The zero value is right for the running
// system.
type Config struct {
	UMAD umad.Config // for endpoints umad:
}

func (c Config) kinds() map[string]kind {
	return map[string]kind{
		"sim": {
			open: openSim, list: listSim,
			needs: "names no fabric: write sim:demo, a generator such as two-level:leafs=36,spines=18,hosts=18, or a fabric file",
		},
		"ibsim": {open: openIbsim, list: listIbsim},
		"umad":  {open: c.openUMAD, list: c.listUMAD},
	}
}

// Choice is a port that an endpoint offers.
type Choice struct {
	Info     port.Info
	Endpoint string // names just this port
	Chosen   bool   // it is the one that Open takes
	Why      string // it was chosen, or passed over

	GIDTypes []string // by index, as Info.GIDs: "IB/RoCE v1", "RoCE v2"; nil if none is known
	Notes    []string // what of Info could not be read, and why; it is zero
}

// Open opens the endpoint. Closing the device ends all that was started for it.
func Open(ctx context.Context, endpoint string) (port.Device, error) {
	return Config{}.Open(ctx, endpoint)
}

// List tells which ports an endpoint offers, and which one Open takes.
func List(ctx context.Context, endpoint string) ([]Choice, error) {
	return Config{}.List(ctx, endpoint)
}

// Open is the function Open under c.
func (c Config) Open(ctx context.Context, endpoint string) (port.Device, error) {
	k, rest, err := c.parse(endpoint)
	if err != nil {
		return nil, err
	}
	dev, err := k.open(ctx, rest)
	if err != nil {
		return nil, &Error{endpoint, err}
	}
	return dev, nil
}

// List is the function List under c.
func (c Config) List(ctx context.Context, endpoint string) ([]Choice, error) {
	k, rest, err := c.parse(endpoint)
	if err != nil {
		return nil, err
	}
	choices, err := k.list(ctx, rest)
	if err != nil {
		return nil, &Error{endpoint, err}
	}
	return choices, nil
}

func (c Config) parse(endpoint string) (kind, string, error) {
	name, rest, _ := strings.Cut(endpoint, ":")
	name, rest = strings.TrimSpace(name), strings.TrimSpace(rest)
	if strings.TrimSpace(endpoint) == "" {
		name = "umad"
	}
	k, known := c.kinds()[name]
	switch {
	case !known:
		return kind{}, "", &Error{endpoint, fmt.Errorf("unknown kind %q: an endpoint is sim:FABRIC[#NODE[/PORT]], such as sim:demo, umad:[DEVICE][/PORT], or ibsim:[NODE]", name)}
	case rest == "" && k.needs != "":
		return kind{}, "", &Error{endpoint, errors.New(k.needs)}
	}
	return k, rest, nil
}
