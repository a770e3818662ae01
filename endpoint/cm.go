package endpoint

import (
	"context"
	"errors"

	"github.com/ibsm/ibsm/capture"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/ucma"
)

// CM is the RDMA CM of the host that a device belongs to.
type CM interface {
	// Open opens the CM's device once more: a file with ids and events of its own.
	// It is a ucma.Opener.
	Open() (ucma.Device, error)
	// Close ends what was started for it. The files have been closed before.
	Close() error
}

// CMConfig says how to open a CM.
type CMConfig struct {
	// Dialect is that of a simulated host. nil: ucma.Linux.
	Dialect *ucma.Dialect
	// NoEcho leaves EchoPort of the simulated host itself free.
	NoEcho bool
	// Trace, if it is set, gets what a simulated host's CM sends and receives. What a
	// kernel does, does not show.
	Trace *capture.Writer
}

// ErrNoCM says that an endpoint has no RDMA CM.
var ErrNoCM = errors.New("this endpoint has no RDMA CM: one is at umad: and sim: only")

// OpenCM gives the RDMA CM beside a device that Open gave, or with nil that of this
// machine. On a simulated fabric every host accepts connections at EchoPort.
func OpenCM(ctx context.Context, dev port.Device, cfg CMConfig) (CM, error) {
	return Config{}.OpenCM(ctx, dev, cfg)
}

// OpenCM is the function OpenCM under c, for a device that c opened.
func (c Config) OpenCM(ctx context.Context, dev port.Device, cfg CMConfig) (CM, error) {
	switch d := dev.(type) {
	case *simDevice:
		return openSimCM(ctx, d, cfg)
	case *umadDevice, nil:
		return kernelCM{ucma.Config{Root: c.UMAD.Root}}, nil
	}
	return nil, ErrNoCM
}

// kernelCM is the CM of this machine.
type kernelCM struct{ cfg ucma.Config }

func (k kernelCM) Open() (ucma.Device, error) { return ucma.Open(k.cfg) }
func (kernelCM) Close() error                 { return nil }
