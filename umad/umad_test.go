package umad

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

func TestInfo(t *testing.T) {
	m := ownMachine(t, "dual")
	d, err := m.device("ibp5s0", 2)
	if err != nil {
		t.Fatal(err)
	}
	info, err := d.Info()
	if err != nil || info.LID != 1 || info.State != mad.PortStateActive {
		t.Errorf("info %+v, %v", info, err)
	}
	write(t, m.Root, "sys/class/infiniband/ibp5s0/ports/2/lid", "0x22\n")
	if info, err = d.Info(); err != nil || info.LID != 0x22 {
		t.Errorf("info is not fresh: LID %v, %v", info.LID, err)
	}
	// Another device takes over the number of the device file.
	write(t, m.Root, "sys/class/infiniband_mad/umad0/ibdev", "mlx5_9\n")
	_, err = d.Info()
	checkGone(t, err)
	_, err = d.Open()
	checkGone(t, err)
}

func checkGone(t *testing.T, err error) {
	t.Helper()
	var e *port.Error
	if !errors.Is(err, port.ErrGone) || !errors.As(err, &e) || e.Port != "ibp5s0/2" || !strings.Contains(err.Error(), "removed or renamed") {
		t.Errorf("error %v, want ErrGone", err)
	}
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		errno, want error
		text        string
	}{
		{syscall.ENOENT, ErrNoPort, "dev/infiniband/umad0 does not exist"},
		{syscall.EACCES, fs.ErrPermission, "run as root, or let a udev rule"},
		{syscall.EPERM, fs.ErrPermission, "another network namespace"},
		{syscall.ENXIO, port.ErrGone, "has been removed"},
		{syscall.EMFILE, syscall.EMFILE, "too many open files"},
	} {
		m := machine(t, "mlx5")
		m.open = func(path string) (*file, error) { return nil, &fs.PathError{Op: "open", Path: path, Err: c.errno} }
		d, err := m.device("mlx5_0", 1)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Open()
		checkError(t, err, "open", c.want, c.errno, c.text)
	}

	// A file that is none of a kernel's, through the real system calls.
	m := machine(t, "broken")
	d, err := m.device("hfi1_0", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open(); !errors.Is(err, ErrNoPort) {
		t.Errorf("without the node: %v", err)
	}
}

// The system without umad devices.
func TestUnsupported(t *testing.T) {
	defer func(was bool) { hasNative = was }(hasNative)
	hasNative = false
	_, err := Open(Config{}, "mlx5_0", 1)
	var e *port.Error
	if !errors.Is(err, errors.ErrUnsupported) || !errors.As(err, &e) || e.Port != "mlx5_0/1" || !strings.Contains(err.Error(), "Linux and illumos") {
		t.Errorf("Open: %v", err)
	}
	if _, err := Ports(Config{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Ports: %v", err)
	}
}

func TestHoldIsSM(t *testing.T) {
	m := machine(t, "mlx5")
	var holders atomic.Int32
	m.open = func(path string) (*file, error) {
		if filepath.Base(path) != "issm0" {
			t.Errorf("opened %s", path)
		}
		if holders.Load() > 0 {
			return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EAGAIN}
		}
		holders.Add(1)
		return openDevice(path)
	}
	d, err := m.device("mlx5_0", 1)
	if err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	hold, err := d.HoldIsSM(done) // tries once
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.HoldIsSM(done)
	checkError(t, err, "hold IsSM", port.ErrBusy, syscall.EAGAIN, "another subnet manager")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not say why it stopped", err)
	}
	got := make(chan error)
	go func() {
		second, err := d.HoldIsSM(t.Context())
		if err == nil {
			err = second.Close()
		}
		got <- err
	}()
	for range 2 {
		if err := hold.Close(); err != nil {
			t.Error(err)
		}
	}
	holders.Store(0)
	if err := <-got; err != nil {
		t.Errorf("waiting: %v", err)
	}

	d, err = machine(t, "rxe").device("rxe0", 1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.HoldIsSM(done)
	checkError(t, err, "hold IsSM", port.ErrNoQP, nil, "no issm file: QP0 does not exist on an Ethernet port")
}
