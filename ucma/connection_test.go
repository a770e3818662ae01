package ucma_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/ucma"
)

// A kernel that does not let go of the id is not waited for without end.
func TestConnectionCloseBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(ucma.Linux)
		c, err := f.opener().Connect(t.Context(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{})
		if err != nil {
			t.Fatal(err)
		}
		let := make(chan struct{})
		f.script(ucma.OpDestroyID, func(*fakeKernel, ucma.Command) error { <-let; return nil })
		start := time.Now()
		if err := c.Close(); !errors.Is(err, ucma.ErrTimeout) || time.Since(start) != 15*time.Second {
			t.Errorf("after %v: %v; want a time-out after 15 s", time.Since(start), err)
		}
		close(let)
	})
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
