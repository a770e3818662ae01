// Package softmad gives any carrier of single MADs the semantics of the Linux
// kernel's MAD layer (ib_mad and user_mad): agents in slots, methods owned once
// per device, transaction ids whose upper half belongs to the device, matching
// of responses, time-outs and retries, and RMPP below the Port.
//
// A Device is a core of tables that knows no clock and no I/O, and a shell
// around it: one goroutine that reads the Link, and one timer. The rules are the
// kernel's, cited by file and function where they stand. It differs from the
// kernel in these points:
//
//   - The carrier, not the device, walks the first and last hop of directed
//     routes and answers what a node's own agents answer. A request consumed
//     there without an answer ends with a time-out, not silently.
//   - An RMPP sender that gets no ACK tells its peer by an ABORT (TMR) when it
//     gives up, and active MADs of RMPP version 0 are dropped, not aborted.
//   - A reassembled message has a limit, see Config.
//   - Requests in flight have none: the window of 16 for the SA class, and the
//     like, which kernels have since 6.17, is left to the layers above.
package softmad

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/rmpp"
)

// Config tunes a Device; its zero value is the kernel's behaviour.
type Config struct {
	// RawRMPP is for carriers whose peers have no RMPP, such as ibsim. MADs of an
	// agent with kernel RMPP then go out and come in as they are, Active or not,
	// and nothing is segmented, acknowledged or reassembled.
	RawRMPP bool
	// FirstTID and LastTID bound the upper halves of the transaction ids that the
	// device gives to its agents, for carriers that own bits of them; ibsim writes
	// the number of its client into the upper 16. At most 24 bits. 0: 1 and
	// 0xffffff, as in the kernel.
	FirstTID, LastTID uint32
	// MaxMessage is the largest message, in bytes, that is reassembled; the peer
	// of a longer one is told to stop. 0 means 256 MiB.
	MaxMessage int
	// MaxQueued is how many received messages a Port keeps for its reader before
	// it drops new ones. 0 means 200,000, as in the kernel.
	MaxQueued int
}

func (cfg Config) withDefaults() Config {
	if cfg.FirstTID == 0 {
		cfg.FirstTID = 1
	}
	if cfg.LastTID == 0 {
		cfg.LastTID = maxHiTID
	}
	if cfg.MaxMessage == 0 {
		cfg.MaxMessage = rmpp.DefaultMaxData
	}
	if cfg.MaxQueued == 0 {
		cfg.MaxQueued = 200_000 // MAX_UMAD_RECV_LIST_SIZE
	}
	return cfg
}

// Stats counts what a Device has done since it was made.
type Stats struct {
	Sent          uint64 // wires given to the Link, ACKs and retransmissions included
	SendErrors    uint64 // of these, wires that the Link did not take
	Retransmitted uint64 // requests sent again after a time-out
	Received      uint64 // wires from the Link
	Undelivered   uint64 // sent wires that the Link gave back
	Invalid       uint64 // received MADs of another base version, or malformed CM MADs
	BadPKey       uint64 // received MADs whose P_Key is not in the port's table
	Unmatched     uint64 // responses to nothing that waits: late, repeated or foreign
	Unowned       uint64 // requests for a method that no agent owns
	Dropped       uint64 // messages for a Port whose queue was full
	TimedOut      uint64 // requests that got no response
	Aborted       uint64 // RMPP messages, in or out, that ended early
}

// Device is a port.Device over a Link. Its methods may be called by several
// goroutines.
type Device struct {
	link   Link
	name   string // device/port, for errors
	info   atomic.Pointer[snapshot]
	reader sync.WaitGroup
	isSM   chan struct{} // holds a token while somebody has IsSM
	gone   chan struct{} // closed when the device goes away

	mu      sync.Mutex
	core    core
	files   map[*file]struct{}
	dead    error // port.ErrClosed or port.ErrGone, or nil
	timer   *time.Timer
	armed   time.Time // when timer fires; zero if it does not
	sending bool      // somebody is giving core.out to the link
	spare   []Wire    // the other half of core.out
}

// snapshot is what the link said about the port, and when.
type snapshot struct {
	at   time.Time
	info port.Info
}

// The port's tables are read again when they are older than maxInfoAge, and
// when an index or a P_Key is not in them and they are older than minInfoAge.
const (
	maxInfoAge = 100 * time.Millisecond
	minInfoAge = time.Millisecond
)

// NewDevice makes a Device that owns the link from now on. It fails if the link
// cannot describe its port, or if cfg makes no sense; the link is then still the
// caller's.
func NewDevice(link Link, cfg Config) (*Device, error) {
	info, err := link.Info()
	if err != nil {
		return nil, fmt.Errorf("read the port of a link: %w", err)
	}
	cfg = cfg.withDefaults()
	if cfg.FirstTID > cfg.LastTID || cfg.LastTID > maxHiTID {
		return nil, fmt.Errorf("upper halves of transaction ids from %#x to %#x: they are a range up to %#x", cfg.FirstTID, cfg.LastTID, maxHiTID)
	}
	d := &Device{
		link:  link,
		name:  fmt.Sprintf("%s/%d", info.Device, info.Port),
		isSM:  make(chan struct{}, 1),
		gone:  make(chan struct{}),
		files: make(map[*file]struct{}),
	}
	d.info.Store(&snapshot{time.Now(), info})
	d.core = newCore(cfg, &d.info.Load().info)
	d.reader.Go(d.read)
	return d, nil
}

// Info asks the link.
func (d *Device) Info() (port.Info, error) {
	d.mu.Lock()
	dead := d.dead
	d.mu.Unlock()
	if dead != nil {
		return port.Info{}, d.fail("read port info", dead)
	}
	info, err := d.link.Info()
	if err != nil {
		return port.Info{}, d.fail("read port info", err)
	}
	return info, nil
}

// Stats gives a copy of the counters.
func (d *Device) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.core.stats
}

// Open gives a Port.
func (d *Device) Open() (port.Port, error) { return d.open(false) }

// OpenKernel gives a Port as the kernel's own clients of ib_mad have it, such as
// its CM: the transaction ids of requests go out as they are given. What expects
// an answer must have an upper half that finds its agent; messages of the CM,
// which answer by the same method as they ask, need none.
func (d *Device) OpenKernel() (port.Port, error) { return d.open(true) }

func (d *Device) open(kernel bool) (port.Port, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead != nil {
		return nil, d.fail("open", d.dead)
	}
	f := &file{kernel: kernel, sends: make(map[sendKey]*send), ready: sync.NewCond(&d.mu)}
	d.files[f] = struct{}{}
	return &openPort{d, f}, nil
}

// HoldIsSM sets IsSM through the Link, which must be an IsSMSetter. As with the
// kernel's issm file, one holder at a time is possible: others wait, or get
// port.ErrBusy if ctx is already done (O_NONBLOCK) or ends before their turn.
func (d *Device) HoldIsSM(ctx context.Context) (io.Closer, error) {
	const op = "hold IsSM"
	link, ok := d.link.(IsSMSetter)
	if !ok {
		return nil, &port.Error{Op: op, Port: d.name, Detail: "the carrier of this port cannot set it", Err: errors.ErrUnsupported}
	}
	select {
	case <-d.gone:
		return nil, d.fail(op, port.ErrGone)
	default:
	}
	select {
	case d.isSM <- struct{}{}:
	default:
		select {
		case d.isSM <- struct{}{}:
		case <-d.gone:
			return nil, d.fail(op, port.ErrGone)
		case <-ctx.Done():
			return nil, d.fail(op, errors.Join(port.ErrBusy, ctx.Err()))
		}
	}
	if err := link.SetIsSM(true); err != nil {
		<-d.isSM
		return nil, d.fail(op, err)
	}
	return &isSMHold{d: d, link: link}, nil
}

type isSMHold struct {
	d    *Device
	link IsSMSetter
	once sync.Once
}

func (h *isSMHold) Close() (err error) {
	h.once.Do(func() {
		select {
		case <-h.d.gone: // the bit went with the device
		default:
			if err = h.link.SetIsSM(false); err != nil {
				err = h.d.fail("release IsSM", err)
			}
		}
		<-h.d.isSM
	})
	return err
}

// Close releases the device and its link; open Ports end with port.ErrGone.
func (d *Device) Close() error {
	d.end(port.ErrClosed)
	err := d.link.Close()
	d.reader.Wait()
	return err
}

// end takes the device away from its users, once.
func (d *Device) end(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead != nil {
		return
	}
	d.dead = why
	close(d.gone)
	for f := range d.files {
		d.core.closeFile(f, port.ErrGone)
	}
	clear(d.files)
	if d.timer != nil {
		d.timer.Stop()
	}
}

// read is the goroutine that takes wires from the link until it ends.
func (d *Device) read() {
	var w Wire
	for {
		if err := d.link.Recv(&w); err != nil {
			d.end(port.ErrGone)
			return
		}
		now := time.Now()
		info := d.portInfo(now, func(info *port.Info) bool {
			return w.PKey == 0 || pkeyIndex(info.PKeys, w.PKey) >= 0
		})
		d.enter(info)
		if d.dead == nil {
			d.core.receive(now, &w)
		}
		d.leave(now)
	}
}

// tick is the timer.
func (d *Device) tick() {
	now := time.Now()
	info := d.portInfo(now, func(*port.Info) bool { return true })
	d.enter(info)
	d.armed = time.Time{}
	if d.dead == nil {
		d.core.expire(now)
	}
	d.leave(now)
}

// portInfo gives the port's tables as last read, and reads them again when they
// are old or not good enough. What the link cannot tell stays as it was.
func (d *Device) portInfo(now time.Time, good func(*port.Info) bool) *port.Info {
	s := d.info.Load()
	limit := maxInfoAge
	if !good(&s.info) {
		limit = minInfoAge
	}
	if now.Sub(s.at) < limit {
		return &s.info
	}
	fresh := &snapshot{now, s.info}
	if info, err := d.link.Info(); err == nil {
		fresh.info = info
	}
	d.info.Store(fresh)
	return &fresh.info
}

// enter locks the core.
func (d *Device) enter(info *port.Info) {
	d.mu.Lock()
	d.core.info = info
}

// leave sets the timer for the core's next deadline, gives the link what the
// core wants to transmit, in order and without the lock, and unlocks.
func (d *Device) leave(now time.Time) {
	if next := d.core.timers.next(); d.dead == nil && !next.IsZero() && (d.armed.IsZero() || next.Before(d.armed)) {
		d.armed = next
		if d.timer == nil {
			d.timer = time.AfterFunc(next.Sub(now), d.tick)
		} else {
			d.timer.Reset(next.Sub(now))
		}
	}
	for !d.sending && len(d.core.out) > 0 {
		batch := d.core.out
		d.core.out = d.spare[:0]
		d.sending = true
		d.mu.Unlock()
		failed := 0
		for i := range batch {
			if d.link.Send(&batch[i]) != nil {
				failed++ // lost, as on the way: the time-out runs
			}
		}
		d.mu.Lock()
		d.core.stats.SendErrors += uint64(failed)
		d.spare = batch
		d.sending = false
	}
	d.mu.Unlock()
}

// fail says where an error happened.
func (d *Device) fail(op string, err error) error {
	if e, ok := err.(*port.Error); ok {
		e.Op, e.Port = op, d.name
		return e
	}
	return &port.Error{Op: op, Port: d.name, Err: err}
}
