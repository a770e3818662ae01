package bench

import (
	"bytes"
	"os/exec"
	"strconv"
	"testing"

	"github.com/ibsm/ibsm/mad"
)

// BenchmarkCodec decodes and encodes structures; peers/codec.c does it by
// libibmad. Of a PathRecord that knows 6 fields only.
func BenchmarkCodec(b *testing.B) {
	raw := bytes.Repeat([]byte{0x5a}, mad.Size)
	var (
		node mad.NodeInfo
		info mad.PortInfo
		path mad.PathRecord
	)
	for _, bb := range []struct {
		does, structure string
		loop            func(b *testing.B)
	}{
		{"decode", "NodeInfo", func(b *testing.B) {
			for b.Loop() {
				node.DecodeFrom((*[mad.NodeInfoSize]byte)(raw))
			}
		}},
		{"encode", "NodeInfo", func(b *testing.B) {
			for b.Loop() {
				node.EncodeTo((*[mad.NodeInfoSize]byte)(raw))
			}
		}},
		{"decode", "PortInfo", func(b *testing.B) {
			for b.Loop() {
				info.DecodeFrom((*[mad.PortInfoSize]byte)(raw))
			}
		}},
		{"encode", "PortInfo", func(b *testing.B) {
			for b.Loop() {
				info.EncodeTo((*[mad.PortInfoSize]byte)(raw))
			}
		}},
		{"decode", "PathRecord", func(b *testing.B) {
			for b.Loop() {
				path.DecodeFrom((*[mad.PathRecordSize]byte)(raw))
			}
		}},
		{"encode", "PathRecord", func(b *testing.B) {
			for b.Loop() {
				path.EncodeTo((*[mad.PathRecordSize]byte)(raw))
			}
		}},
	} {
		b.Run(bb.does+"/"+bb.structure, func(b *testing.B) {
			bb.loop(b)
			if codec := program("codec"); codec != "" {
				times := strconv.Itoa(max(1, b.N/16)) // it takes that much longer
				b.ReportMetric(figure(b, exec.Command(codec, bb.does, bb.structure, times)), "peer-ns/op")
			}
		})
	}
}
