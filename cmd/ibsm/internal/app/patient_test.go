package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatientWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		go func() { time.Sleep(time.Minute); cancel() }()
		start := time.Now()
		n, err := (&patient{ctx, w}).Write([]byte("nobody reads this"))
		if took := time.Since(start); n != 0 || !errors.Is(err, context.Canceled) || took != time.Minute+patience {
			t.Errorf("%d bytes, %v after %v; want an end %v after the interrupt", n, err, took, patience)
		}
		r.Close() // ends the write that is left

		// What can be written is, after an interrupt too.
		var out bytes.Buffer
		if n, err := (&patient{ctx, &out}).Write([]byte("the end")); n != 7 || err != nil || out.String() != "the end" {
			t.Errorf("%d bytes, %v, wrote %q", n, err, &out)
		}
	})
}
