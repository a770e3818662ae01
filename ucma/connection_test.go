package ucma_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/ucma"
)

// busyDevice is a device whose Close waits for Exec, as that of an os.File does.
type busyDevice struct {
	*fakeKernel
	changed   sync.Cond
	executing int
}

func (b *busyDevice) count(n int) {
	b.changed.L.Lock()
	defer b.changed.L.Unlock()
	b.executing += n
	b.changed.Broadcast()
}

func (b *busyDevice) Exec(cmd, mem []byte) error {
	b.count(1)
	defer b.count(-1)
	return b.fakeKernel.Exec(cmd, mem)
}

func (b *busyDevice) Close() error {
	b.changed.L.Lock()
	for b.executing > 0 {
		b.changed.Wait()
	}
	b.changed.L.Unlock()
	return b.fakeKernel.Close()
}

// A kernel that does not let go of the id is not waited for without end, neither for
// the id nor for the device; but what it lets go of later is closed.
func TestConnectionCloseBounded(t *testing.T) {
	for _, end := range []struct {
		name string
		try  func(f *fakeKernel, open ucma.Opener, hang func()) error
	}{
		{"connection", func(_ *fakeKernel, open ucma.Opener, hang func()) error {
			c, err := open.Connect(context.Background(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{})
			if err != nil {
				return err
			}
			hang()
			return c.Close()
		}},
		{"connect that fails", func(f *fakeKernel, open ucma.Opener, hang func()) error {
			f.refuse(ucma.OpConnect, ucma.ENOMEM)
			hang()
			_, err := open.Connect(context.Background(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{})
			return err
		}},
		{"listener", func(_ *fakeKernel, open ucma.Opener, hang func()) error {
			l, err := open.Listen(context.Background(), listenAddr, ucma.ListenConfig{})
			if err != nil {
				return err
			}
			hang()
			return l.Close()
		}},
		{"membership", func(_ *fakeKernel, open ucma.Opener, hang func()) error {
			m, err := open.Join(context.Background(), groupAddr, ucma.JoinConfig{})
			if err != nil {
				return err
			}
			hang()
			return m.Close()
		}},
	} {
		t.Run(end.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(ucma.Linux)
				dev := &busyDevice{fakeKernel: f, changed: sync.Cond{L: new(sync.Mutex)}}
				let := make(chan struct{})
				hang := func() { f.script(ucma.OpDestroyID, func(*fakeKernel, ucma.Command) error { <-let; return nil }) }
				start := time.Now()
				err := end.try(f, func() (ucma.Device, error) { return dev, nil }, hang)
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 15*time.Second {
					t.Errorf("after %v: %v; want a time-out after 15 s", time.Since(start), err)
				}
				const told = "the kernel has not let go of it in 15s"
				if err == nil || strings.Count(err.Error(), told) != 1 {
					t.Errorf("error %v, want %q, once", err, told)
				}
				close(let)
				synctest.Wait()
				f.leftBehind(t)
			})
		})
	}
}

func TestConnectionEnds(t *testing.T) {
	for _, tt := range []struct {
		event  ucma.EventType
		status int32
		want   error
	}{
		{ucma.EventDisconnected, 0, nil},
		{ucma.EventDisconnected, -110, nil},
		{ucma.EventDeviceRemoval, 0, ucma.ErrGone},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(ucma.Linux)
			c, err := f.opener().Connect(t.Context(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{})
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for range 2 { // everybody may know
				all.Go(func() {
					if err := c.Wait(t.Context()); !errors.Is(err, tt.want) {
						t.Errorf("%v: Wait gives %v, want %v", tt.event, err, tt.want)
					}
				})
			}
			synctest.Wait()
			f.send(f.event(c.ID().Num(), tt.event, tt.status))
			all.Wait()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := c.Wait(t.Context()); !errors.Is(err, tt.want) {
				t.Errorf("after Close: %v", err)
			}
			f.leftBehind(t)
		})
	}
}

// A peer that does not answer the DREQ: DISCONNECTED with -ETIMEDOUT (cma.c,
// IB_CM_DREQ_ERROR).
func TestDisconnectUnanswered(t *testing.T) {
	f := newFake(ucma.Linux)
	c, err := f.opener().Connect(t.Context(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{})
	if err != nil {
		t.Fatal(err)
	}
	f.reply(ucma.OpDisconnect, ucma.EventDisconnected, -110)
	if err := c.Disconnect(t.Context()); !errors.Is(err, ucma.ErrTimeout) {
		t.Errorf("error %v, want a time-out", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	f.leftBehind(t)
}
