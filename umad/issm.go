package umad

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/ibsm/ibsm/port"
)

// isSMRetry is how often a held IsSM is tried again.
const isSMRetry = 100 * time.Millisecond

// HoldIsSM sets the IsSM bit of the port's CapabilityMask by opening issmN
// (user_mad.c, ib_umad_sm_open). While somebody else has it, it is tried ten times
// a second until ctx ends: an open that waits in the kernel could not be
// cancelled, and would set the bit long after. A port without QP0 has no such
// file: port.ErrNoQP. The hold outlives the Device.
func (d *Device) HoldIsSM(ctx context.Context) (io.Closer, error) {
	const op = "hold IsSM"
	retry := time.NewTicker(isSMRetry)
	defer retry.Stop()
	for {
		f, err := d.openIsSM()
		if err == nil {
			return &isSMHold{f: f.os}, nil
		}
		// Linux says EAGAIN, illumos EBUSY.
		if !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EBUSY) {
			return nil, d.fail(op, err)
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, d.fail(op, refuse(errors.Join(port.ErrBusy, ctx.Err()), err, "another subnet manager on this machine holds it: %v", ctx.Err()))
		}
	}
}

func (d *Device) openIsSM() (*file, error) {
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return nil, port.ErrClosed
	}
	if _, err := d.sys.find(d.name, d.num); err != nil {
		return nil, gone(err)
	}
	node, ok := d.sys.node("issm", d.name, d.num)
	if !ok {
		return nil, refuse(port.ErrNoQP, nil, "the port has no issm file: %s", d.missingQP(0))
	}
	path := under(d.sys.Root, d.sys.abi.dir, node)
	f, err := d.sys.open(path)
	if err != nil {
		return nil, explainOpen(path, err)
	}
	return f, nil
}

type isSMHold struct {
	f    *os.File
	once sync.Once
	err  error
}

func (h *isSMHold) Close() error {
	h.once.Do(func() { h.err = h.f.Close() })
	return h.err
}
