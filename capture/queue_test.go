package capture_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/capture"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// held is a file that waits before each Write.
type held struct {
	bytes.Buffer
	wait func()
}

func (h *held) Write(b []byte) (int, error) {
	h.wait()
	return h.Buffer.Write(b)
}

// segments is how many records a message of sendMany makes.
const segments = 1000

// sendMany sends through w what makes so many records.
func sendMany(t *testing.T, w *capture.Writer, records int) {
	t.Helper()
	s := newStub()
	p := capture.Port(s, s.Info, w)
	if _, err := p.Register(port.Registration{QPN: 1, RMPP: port.RMPPKernel}); err != nil {
		t.Fatal(err)
	}
	long := &port.Message{Data: newLong(mad.MethodGetTable, segments*200)}
	for range records / segments {
		if err := p.Send(long); err != nil {
			t.Fatal(err)
		}
	}
}

// A file that takes nothing holds up no port and, for more than 5 s, not Close, which
// tells what is missing.
func TestFileStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		dst := &held{wait: func() { <-let }}
		w := capture.NewWriter(dst)
		start := time.Now()
		const records = 3 * segments
		sendMany(t, w, records)
		if d := time.Since(start); d != 0 || w.Err() != nil {
			t.Errorf("the port waited %v; Err: %v", d, w.Err())
		}
		err := w.Close()
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("Close took %v, want 5 s", d)
		}
		if want := fmt.Sprintf("capture: the file has taken nothing for 5s: capture: %d packets are missing, the file took the others too slowly", records); err == nil || err.Error() != want {
			t.Errorf("Close: %v, want %s", err, want)
		}
		if again := w.Close(); again != err || time.Since(start) != 5*time.Second {
			t.Errorf("Close again: %v", again)
		}
		close(let)
	})
}

// What a slow file does not get, as 32 MiB wait already, is counted; the rest is a file
// that can be read. Close waits as long as something is taken.
func TestFileSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		dst := &held{wait: func() { <-let; time.Sleep(4 * time.Second) }}
		w := capture.NewWriter(dst)
		const records = 85 * segments // of more than 400 bytes each
		sendMany(t, w, records)
		var missing *capture.MissingError
		if err := w.Err(); !errors.As(err, &missing) {
			t.Errorf("Err: %v, want a *MissingError", err)
		}
		close(let)
		start := time.Now()
		if err := w.Close(); !errors.As(err, &missing) {
			t.Fatalf("Close: %v, want a *MissingError", err)
		}
		if time.Since(start) <= 5*time.Second {
			t.Errorf("Close took %v, which is less than two writes", time.Since(start))
		}
		if got := len(read(t, dst.Bytes())); uint64(got)+missing.Packets != records {
			t.Errorf("%d packets are there and %d missing, want %d in all", got, missing.Packets, records)
		}
		if n := dst.Len(); n < 31<<20 || n > 33<<20 {
			t.Errorf("%d bytes were kept, want 32 MiB", n)
		}
	})
}

// A pipe whose reader is asleep, as the shell's >(less) is.
func TestPipeStuck(t *testing.T) {
	r, f, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := capture.NewWriter(f)
	sendMany(t, w, segments) // more than a pipe holds
	f.Close()                // which ends the Write that is stuck
	if err := w.Close(); err == nil {
		t.Error("the file lacks packets, and Close tells nothing")
	}
}
