package umad

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// The whole way through the real system calls, up to a device file that is a
// pipe.
func TestSystemCalls(t *testing.T) {
	m := ownMachine(t, "mlx5")
	path := filepath.Join(m.Root, "dev/infiniband/umad0")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if ports, err := Ports(Config{Root: m.Root}); err != nil || len(ports) != 1 || ports[0].Device != "mlx5_0" {
		t.Errorf("ports %+v, %v", ports, err)
	}
	d, err := Open(Config{Root: m.Root}, "mlx5_0", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	op, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	p := op.(*openPort)
	if p.header != oldHeaderSize {
		t.Errorf("header of %d bytes, though a pipe knows no ioctl", p.header)
	}
	// A pipe gives back what is written to it.
	sent := port.Message{Agent: 3, Addr: mad.AddressVector{LID: 5, QPN: 1}, Data: vendorMAD(256, 1, 1)}
	_, done := recv(p)
	if err := p.Send(&sent); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := p.Register(anyAgent); !errors.Is(err, syscall.ENOTTY) {
		t.Errorf("register at a pipe: %v, want ENOTTY", err)
	}
	m2, done := recv(p)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, port.ErrGone) || len(m2.Data) != 0 {
		t.Errorf("Recv ended with %v", err)
	}
}
