package capture_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ibsm/ibsm/capture"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// BenchmarkSend is what recording adds to a Send: of one MAD without and with
// the system call that writes it, and of a message in 1000 segments.
func BenchmarkSend(b *testing.B) {
	single := newMAD(mad.ClassPerf, mad.MethodGet)
	for _, c := range []struct {
		name string
		data []byte
		file bool
	}{
		{"Discard", single, false},
		{"File", single, true},
		{"File1000", newLong(mad.MethodGetTableResp, 1000*200), true},
	} {
		b.Run(c.name, func(b *testing.B) {
			dst := io.Discard
			if c.file {
				f, err := os.Create(filepath.Join(b.TempDir(), "trace.pcapng"))
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				dst = f
			}
			s := newStub()
			w := capture.NewWriter(dst)
			p := capture.Port(s, s.Info, w)
			if _, err := p.Register(port.Registration{QPN: 1, RMPP: port.RMPPKernel}); err != nil {
				b.Fatal(err)
			}
			m := port.Message{Timeout: time.Second, Retries: 3, Addr: mad.AddressVector{LID: 2, QPN: 1}, Data: c.data}
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Send(&m); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
