// Package softmadtest has an in-memory softmad.Link for tests: two ports with a
// wire between them that can lose, delay, repeat and reorder. It works inside a
// testing/synctest bubble.
package softmadtest

import (
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/softmad"
)

// Hook decides about a wire that a Link sends: the delay of each copy that
// arrives. No delay at all loses the wire. Hooks are called by several
// goroutines and may not call the Link.
type Hook func(from *Link, w *softmad.Wire) []time.Duration

// Link is one end of a pair. It reaches the other end's LIDs and GIDs, and the
// permissive LID of directed routes; what is sent elsewhere is lost.
type Link struct {
	hook Hook
	peer *Link

	mu     sync.Mutex
	ready  *sync.Cond
	info   port.Info
	queue  []softmad.Wire
	first  int // index in queue of the next wire to receive
	timers map[*time.Timer]struct{}
	err    error // what Recv ends with
}

// NewPair makes two ports, "a" with LID 1 and "b" with LID 2. hook may be nil.
func NewPair(hook Hook) (a, b *Link) {
	a, b = newLink("a", 1, hook), newLink("b", 2, hook)
	a.peer, b.peer = b, a
	return a, b
}

func newLink(name string, lid mad.LID, hook Hook) *Link {
	guid := mad.GUID(0x0002c90300000000) + mad.GUID(lid)
	l := &Link{
		hook:   hook,
		timers: make(map[*time.Timer]struct{}),
		info: port.Info{
			Device: name, Port: 1,
			NodeType: mad.NodeTypeCA, NodeGUID: guid, PortGUID: guid, NodeDesc: name,
			State: mad.PortStateActive, PhysState: mad.PortPhysStateLinkUp,
			LID: lid, SMLID: 1, Width: mad.LinkWidth4X, Rate: mad.Rate100G,
			GIDs:  []mad.GID{mad.MakeGID(mad.DefaultGIDPrefix, guid)},
			PKeys: []mad.PKey{mad.DefaultPKey, 0x8001},
		},
	}
	l.ready = sync.NewCond(&l.mu)
	return l
}

// Addr is how the other end addresses QP1 of this one.
func (l *Link) Addr() mad.AddressVector {
	l.mu.Lock()
	defer l.mu.Unlock()
	return mad.AddressVector{LID: l.info.LID, QPN: mad.QPGSI}
}

// Change edits what Info tells. Slices are to be replaced, not written to.
func (l *Link) Change(edit func(*port.Info)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	edit(&l.info)
}

// Info implements softmad.Link.
func (l *Link) Info() (port.Info, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.info, nil
}

// SetIsSM sets bit 1 of the CapabilityMask (IBA 14.2.5.6).
func (l *Link) SetIsSM(on bool) error {
	const isSM = 1 << 1
	l.Change(func(info *port.Info) {
		info.CapMask &^= isSM
		if on {
			info.CapMask |= isSM
		}
	})
	return nil
}

// Send implements softmad.Link. The source of what arrives is this end, with
// the queue pair that the class uses.
func (l *Link) Send(w *softmad.Wire) error {
	own, _ := l.Info()
	peer, _ := l.peer.Info()
	arriving, ok := translate(w, &own, &peer)
	if !ok {
		return nil
	}
	delays := []time.Duration{0}
	if l.hook != nil {
		delays = l.hook(l, w)
	}
	for _, d := range delays {
		if d == 0 {
			l.peer.deliver(&arriving)
			continue
		}
		l.peer.deliverLater(d, arriving)
	}
	return nil
}

// translate turns a wire as it is sent into the wire as it arrives.
func translate(w *softmad.Wire, own, peer *port.Info) (softmad.Wire, bool) {
	to := *w
	to.Addr.LID = own.LID | mad.LID(w.Addr.PathBits)
	to.Addr.QPN = mad.QPGSI
	if c := mad.Class(w.MAD[mad.OffClass]); c == mad.ClassSubnLIDRouted || c == mad.ClassSubnDirected {
		to.Addr.QPN = mad.QPSMI
	}
	to.Addr.PathBits = uint8(w.Addr.LID - peer.LID)
	if w.Addr.LID == mad.PermissiveLID {
		to.Addr.PathBits = 0
	} else if w.Addr.LID < peer.LID || w.Addr.LID >= peer.LID+1<<peer.LMC {
		return to, false
	}
	if g := &to.Addr.GRH; to.Addr.HasGRH {
		i := slices.Index(peer.GIDs, w.Addr.GRH.GID)
		if i < 0 || int(w.Addr.GRH.GIDIndex) >= len(own.GIDs) {
			return to, false
		}
		g.GID, g.GIDIndex = own.GIDs[w.Addr.GRH.GIDIndex], uint8(i)
	}
	return to, true
}

// deliver queues a wire for Recv.
func (l *Link) deliver(w *softmad.Wire) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	if l.first > 64 && l.first > len(l.queue)/2 {
		l.queue = slices.Delete(l.queue, 0, l.first)
		l.first = 0
	}
	l.queue = append(l.queue, *w)
	l.ready.Signal()
}

func (l *Link) deliverLater(d time.Duration, w softmad.Wire) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		l.mu.Lock()
		delete(l.timers, t)
		l.mu.Unlock()
		l.deliver(&w)
	})
	l.timers[t] = struct{}{}
}

// Recv implements softmad.Link.
func (l *Link) Recv(w *softmad.Wire) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.first == len(l.queue) && l.err == nil {
		l.ready.Wait()
	}
	if l.err != nil {
		return l.err
	}
	*w = l.queue[l.first]
	l.first++
	if l.first == len(l.queue) {
		l.queue, l.first = l.queue[:0], 0
	}
	return nil
}

// Remove takes the port away as a hot-unplug does: Recv ends with io.EOF.
func (l *Link) Remove() { l.end(io.EOF) }

// Close implements softmad.Link.
func (l *Link) Close() error {
	l.end(os.ErrClosed)
	return nil
}

func (l *Link) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = err
	for t := range l.timers {
		t.Stop()
	}
	l.ready.Broadcast()
}
