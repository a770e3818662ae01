package ucma

import (
	"context"
	"errors"
	"os"
	"time"
)

var systemDialect = Linux

// wait waits in Go's poller. The context wakes it through the file's deadline.
func (k *kernelDevice) wait(ctx context.Context) error {
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		k.f.SetReadDeadline(time.Unix(1, 0))
	})
	var err error
	end := k.raw.Read(func(fd uintptr) (done bool) {
		done, err = poll(fd, 0)
		return done || err != nil
	})
	if !stop() {
		<-woken
		k.f.SetReadDeadline(time.Time{})
	}
	switch {
	case errors.Is(end, os.ErrDeadlineExceeded):
		return ctx.Err()
	case end != nil:
		return k.ended(end)
	}
	return err
}
