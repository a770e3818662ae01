package umad

import (
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// fakeKernel stands below a device file. It reads by the rules of user_mad.c and
// does what a test says for the rest. What the port waits for is the end of a
// pipe that has a byte for each packet, so that Go's poller is the real one.
type fakeKernel struct {
	abi    *abi
	header int
	wake   *os.File

	mu    sync.Mutex
	queue [][]byte // packets
	gone  bool
	empty chan struct{} // if not nil, gets a value for a read of nothing

	ioctl func(request uint32, arg []byte) error
	write func(b []byte) error

	wrote  [][]byte
	ioctls []uint32
}

func (k *fakeKernel) call(fd uintptr, op op, request uint32, b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch op {
	case opRead:
		return k.read(fd, b)
	case opWrite:
		k.wrote = append(k.wrote, append([]byte(nil), b...))
		if k.write != nil {
			if err := k.write(b); err != nil {
				return 0, err
			}
		}
		return len(b), nil
	default:
		k.ioctls = append(k.ioctls, request)
		if k.ioctl == nil {
			return 0, nil
		}
		return 0, k.ioctl(request, b)
	}
}

// read is ib_umad_read with O_NONBLOCK.
func (k *fakeKernel) read(fd uintptr, b []byte) (int, error) {
	switch {
	case len(b) < k.header:
		return 0, syscall.EINVAL
	case k.gone:
		return 0, syscall.EIO
	case len(k.queue) == 0:
		select {
		case k.empty <- struct{}{}:
		default:
		}
		return 0, syscall.EAGAIN
	}
	p := k.queue[0]
	timedOut := k.abi.order.Uint32(p[hdrStatus:]) != 0
	switch {
	case len(b) < min(len(p), k.header+mad.Size):
		return 0, syscall.EINVAL
	case timedOut, len(b) >= len(p):
	default:
		copy(b, p[:k.header+mad.Size])
		return 0, syscall.ENOSPC
	}
	k.queue = k.queue[1:]
	var token [1]byte
	syscall.Read(int(fd), token[:])
	return copy(b, p), nil
}

// push queues a packet.
func (k *fakeKernel) push(m port.Message, timedOut bool) {
	h := make([]byte, k.header)
	k.abi.putHeader(h, &m)
	if timedOut {
		k.abi.order.PutUint32(h[hdrStatus:], uint32(syscall.ETIMEDOUT))
	} else {
		k.abi.order.PutUint32(h[hdrLength:], uint32(len(h)+len(m.Data)))
	}
	k.mu.Lock()
	k.queue = append(k.queue, append(h, m.Data...))
	k.mu.Unlock()
	k.wake.Write([]byte{0})
}

// registers lets registrations succeed in the lowest free slot, as user_mad.c
// does.
func (k *fakeKernel) registers() {
	var used [port.MaxAgents]bool
	k.ioctl = func(request uint32, arg []byte) error {
		switch request {
		case k.abi.register, k.abi.register2:
			for i := range used {
				if !used[i] {
					used[i] = true
					k.abi.order.PutUint32(arg[regID:], uint32(i))
					return nil
				}
			}
			return syscall.ENOMEM
		case k.abi.unregister:
			id := k.abi.order.Uint32(arg)
			if id >= port.MaxAgents || !used[id] {
				return syscall.EINVAL
			}
			used[id] = false
		}
		return nil
	}
}

// openFake opens a port of the machine mlx5 or rxe over a fake kernel.
func openFake(t testing.TB, archive string, cfg Config, k *fakeKernel) (*Device, *openPort) {
	t.Helper()
	sys := machine(t, archive)
	cfg.Root = sys.Root
	sys.Config = cfg
	k.abi = &sys.abi
	if k.header == 0 {
		k.header = headerSize
	}
	sys.open = func(string) (*file, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		k.wake = w
		t.Cleanup(func() { w.Close() })
		return newFile(r, k.call)
	}
	name := map[string]string{"mlx5": "mlx5_0", "rxe": "rxe0"}[archive]
	d, err := sys.device(name, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, p.(*openPort)
}
