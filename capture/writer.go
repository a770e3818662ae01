package capture

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/ibsm/ibsm/port"
)

// linkTypeERF is LINKTYPE_ERF. LINKTYPE_INFINIBAND (247) would need no ERF
// header, but Wireshark 4.0 and older do not know it.
const linkTypeERF layers.LinkType = 197

// maxPending is how many records wait for a Send that began before them. If it does
// not end by then it is recorded late.
const maxPending = 16 << 10

// Writer writes a pcapng file, for any number of goroutines. A goroutine of its own
// hands the records to the io.Writer, at once and with whole records in each Write, so a
// process that is killed leaves a file that ends with a whole packet. Ports do not wait
// for a file that is slow: 32 MiB wait to be written, and packets beyond that are missing,
// which Err and Close tell.
type Writer struct {
	out *queue

	mu      sync.Mutex
	buf     bytes.Buffer     // whole blocks
	records uint64           // of them
	ng      *pcapgo.NgWriter // on buf; nil until a port is known
	closed  bool
	ifaces  map[string]*iface

	// pending starts with an open record, if there is any.
	pending []*record

	// Reused for each packet.
	packet   []byte
	comments []string
}

// iface is a port in the file.
type iface struct {
	index   int
	unknown bool      // the port has not told yet which it is
	psn     [2]uint32 // of the next packet sent, and received
}

// record is a place in the file, which is in the order of time.
type record struct {
	at    time.Time
	state recordState
	event event
}

type recordState uint8

const (
	recordOpen  recordState = iota // it is not known yet what to write
	recordReady                    // waits for an older one
	recordVoid                     // there is nothing to write
	recordLate                     // no longer waited for
)

// NewWriter makes a Writer on dst, which stays the caller's to close, after the
// Writer. Nothing is written before the first record or Close.
func NewWriter(dst io.Writer) *Writer {
	return &Writer{out: &queue{dst: dst}, ifaces: make(map[string]*iface)}
}

// Err is what went wrong first, after which nothing is recorded, or a [*MissingError].
// It does not disturb the ports.
func (w *Writer) Err() error { return w.out.state() }

// Close writes what is left and gives the error that Err gives. If the io.Writer takes
// nothing for 5 s that is the error, with a *MissingError inside, and a Write may still be
// under way. What happens on the ports afterwards is not recorded.
func (w *Writer) Close() error {
	w.finish()
	w.out.drain()
	return w.out.state()
}

// finish lets nothing more be recorded.
func (w *Writer) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	for _, r := range w.pending {
		w.settle(r)
	}
	w.pending = nil
	if w.ng == nil {
		// A section without interface is a file that no reader takes.
		w.addInterface(pcapgo.NgInterface{Name: "none", Comment: "nothing was recorded", LinkType: linkTypeERF})
	}
	w.flush()
	w.closed = true
}

// begin takes a place in the file for what happens now: a Send that is about to
// start, or a message that has come.
func (w *Writer) begin() *record {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &record{at: time.Now()}
	w.push(r)
	return r
}

// cancel gives up the place of a Send that failed.
func (w *Writer) cancel(r *record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.state = recordVoid
	w.advance()
}

// end records an event in its place.
func (w *Writer) end(r *record, e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.state == recordLate || len(w.pending) > 0 && w.pending[0] == r {
		w.write(r.at, &e)
		r.state = recordVoid
	} else {
		r.keep(e)
	}
	w.advance()
}

func (r *record) keep(e event) {
	e.msg.Data = slices.Clone(e.msg.Data)
	r.event, r.state = e, recordReady
}

func (w *Writer) push(r *record) {
	if len(w.pending) >= maxPending {
		w.pending[0].state = recordLate
		w.advance()
	}
	w.pending = append(w.pending, r)
}

// advance writes what no longer waits.
func (w *Writer) advance() {
	n := 0
	for n < len(w.pending) && w.pending[n].state != recordOpen {
		w.settle(w.pending[n])
		n++
	}
	w.pending = slices.Delete(w.pending, 0, n)
	w.flush()
}

func (w *Writer) settle(r *record) {
	if r.state == recordReady {
		w.write(r.at, &r.event)
	}
}

// fail keeps the first error.
func (w *Writer) fail(doing string, err error) {
	if err != nil {
		w.out.fail(fmt.Errorf("capture: %s: %w", doing, err))
	}
}

// flush hands whole blocks over.
func (w *Writer) flush() {
	if w.buf.Len() > 0 {
		w.out.add(w.buf.Bytes(), w.records)
	}
	w.buf.Reset()
	w.records = 0
}

// isOver tells whether nothing more is to be recorded.
func (w *Writer) isOver() bool { return w.closed || w.out.hasFailed() }

// ifaceOf gives the interface of the file that stands for a port, which is new
// when the port is.
func (w *Writer) ifaceOf(info *port.Info) *iface {
	name := fmt.Sprintf("%s/%d", info.Device, info.Port)
	unknown := info.Device == ""
	if unknown {
		name = "unknown"
	}
	key := name + info.PortGUID.String()
	f := w.ifaces[key]
	if f == nil {
		f = &iface{unknown: unknown}
		f.index = w.addInterface(pcapgo.NgInterface{
			Name: name,
			Description: fmt.Sprintf("%v port, port GUID %v, node GUID %v, node %q",
				info.LinkLayer, info.PortGUID, info.NodeGUID, info.NodeDesc),
			LinkType: linkTypeERF,
		})
		w.ifaces[key] = f
	}
	return f
}

// addInterface starts the file if this is its first interface.
func (w *Writer) addInterface(intf pcapgo.NgInterface) (index int) {
	var err error
	if w.ng != nil {
		index, err = w.ng.AddInterface(intf)
	} else {
		section := pcapgo.NgSectionInfo{Hardware: runtime.GOARCH, OS: runtime.GOOS, Application: "ibsm"}
		w.ng, err = pcapgo.NewNgWriterInterface(&w.buf, intf, pcapgo.NgWriterOptions{SectionInfo: section})
	}
	if err == nil {
		err = w.ng.Flush()
	}
	w.fail("add interface "+intf.Name, err)
	return index
}

var (
	inbound  = &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound}
	outbound = &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionOutbound}
)

// writePacket writes w.packet with w.comments, if there is room for it. flags may be nil.
func (w *Writer) writePacket(at time.Time, f *iface, flags *pcapgo.NgEpbFlags) {
	if !w.out.hasRoom(w.buf.Len()) {
		return
	}
	err := w.ng.WritePacketWithOptions(
		gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(w.packet), Length: len(w.packet), InterfaceIndex: f.index},
		w.packet, pcapgo.NgPacketOptions{Comments: w.comments, Flags: flags})
	if err == nil {
		err = w.ng.Flush()
	}
	w.fail("write packet", err)
	w.records++
	if w.buf.Len() >= chunkSize {
		w.flush()
	}
}
