package softcma

import (
	"container/heap"
	"encoding/binary"
	"slices"
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/ucma"
)

// core is all that the RDMA CM knows. A call brings the time, and leaves packets
// in cm, questions in queries, and its next deadline.
type core struct {
	cfg    Config
	port   port.Info // as it is
	info   port.Info // as users and the CM see it
	gone   bool      // the device has been removed
	random func() uint32

	cm       *cm.Machine
	files    map[uint32]*openFile
	nextFD   uint32
	ctxs     table[uctx]
	mcasts   table[mcast]
	attached []*cmid // in the order of attaching
	binds    map[bindKey]*bindList
	lastPort uint16
	groups   map[mad.GID]*group
	works    works
	seq      uint64
	queries  []*query
}

func newCore(cfg Config, info port.Info, random func() uint32) *core {
	c := &core{
		cfg: cfg, random: random, files: map[uint32]*openFile{},
		binds: map[bindKey]*bindList{}, groups: map[mad.GID]*group{},
	}
	c.show(info)
	c.cm = cm.New(cm.Config{Info: c.info, TIDHigh: tidHigh, Random: random(), AckDelay: cfg.AckDelay})
	return c
}

// tidHigh is the upper half of the CM's transaction ids. The kernel's are those of
// its agent; nothing looks at them, since the CM's messages are no responses.
const tidHigh = 1

// setInfo takes the port's state.
func (c *core) setInfo(info port.Info) {
	c.show(info)
	c.cm.SetInfo(c.info)
}

// show makes the port look like one of Ethernet where it should: its GIDs are the
// default one and those of the IP addresses.
func (c *core) show(info port.Info) {
	c.port, c.info = info, info
	if !c.cfg.RoCE {
		return
	}
	c.info.LinkLayer, c.info.LID, c.info.SMLID, c.info.LMC = port.LinkEthernet, 0, 0, 0
	c.info.PKeys = []mad.PKey{mad.DefaultPKey}
	c.info.GIDs = []mad.GID{mad.MakeGID(mad.DefaultGIDPrefix, info.PortGUID)}
	for _, a := range c.cfg.Addrs {
		if gid := mad.GID(a.Addr().As16()); !slices.Contains(c.info.GIDs, gid) {
			c.info.GIDs = append(c.info.GIDs, gid)
		}
	}
}

// portGID is the port's first GID.
func (c *core) portGID() mad.GID {
	if len(c.info.GIDs) == 0 {
		return mad.GID{}
	}
	return c.info.GIDs[0]
}

func (c *core) firstPKey() mad.PKey {
	if len(c.info.PKeys) == 0 {
		return mad.DefaultPKey
	}
	return c.info.PKeys[0]
}

// ipoibPKey is the P_Key of the IPoIB interface, as its address has it.
func (c *core) ipoibPKey() mad.PKey { return c.firstPKey() | 0x8000 }

// pkeyIndex looks a P_Key up (ib_find_cached_pkey); -1 if it is not there.
func (c *core) pkeyIndex(key mad.PKey) int {
	limited := -1
	for i, k := range c.info.PKeys {
		switch {
		case k.Base() != key.Base() || k == 0:
		case k.IsFull():
			return i
		default:
			limited = i
		}
	}
	return limited
}

// open makes a file.
func (c *core) open(d *ucma.Dialect) *openFile {
	f := &openFile{dialect: d, fd: c.nextFD, wake: make(chan struct{})}
	c.nextFD++
	c.files[f.fd] = f
	return f
}

// openFiles are the files in the order of opening.
func (c *core) openFiles() (files []*openFile) {
	for fd := range c.nextFD {
		if f := c.files[fd]; f != nil {
			files = append(files, f)
		}
	}
	return files
}

// addressOf is where a packet of the CM goes. On RoCE its GID is a neighbour's IP
// address, unless it answers a packet by the LID that this came from.
func (c *core) addressOf(p *cm.Packet) (mad.AddressVector, bool) {
	to := p.Addr
	if !c.cfg.RoCE {
		return to, true
	}
	to.PKeyIndex = uint16(max(slices.IndexFunc(c.port.PKeys, func(k mad.PKey) bool { return k.Base() == mad.DefaultPKey.Base() }), 0))
	if to.LID == 0 {
		ip := ipOf(to.GRH.GID)
		if c.isOwn(ip) {
			to.LID = c.port.LID
		} else {
			n, _ := c.neighbour(ip)
			to.LID = n.LID
		}
	}
	to.HasGRH, to.GRH = false, mad.GRH{}
	return to, to.LID != 0
}

// receive takes a MAD from the port.
func (c *core) receive(now time.Time, m *port.Message) {
	from, pkey := m.Addr, mad.DefaultPKey
	if int(from.PKeyIndex) < len(c.port.PKeys) {
		pkey = c.port.PKeys[from.PKeyIndex]
	}
	b := (*[mad.Size]byte)(m.Data)
	if c.cfg.RoCE {
		c.addGRH(&from, b)
	}
	c.cm.Receive(now, from, pkey, b)
}

// addGRH gives a packet the GRH that it would have on Ethernet: that of the path
// of a REQ. Other messages' are not looked at.
func (c *core) addGRH(from *mad.AddressVector, b *[mad.Size]byte) {
	from.HasGRH, from.PKeyIndex = true, 0
	from.GRH = mad.GRH{}
	if mad.AttributeID(binary.BigEndian.Uint16(b[mad.OffAttribute:])) != mad.AttrConnectRequest {
		return
	}
	var q mad.ConnectRequest
	q.DecodeFrom((*[mad.ConnectRequestSize]byte)(b[mad.HeaderSize:]))
	from.GRH = mad.GRH{
		GID: q.PrimaryLocalPortGID, GIDIndex: uint8(max(c.gidIndex(q.PrimaryRemotePortGID), 0)),
		HopLimit: roceHops, TrafficClass: q.PrimaryTrafficClass, FlowLabel: q.PrimaryFlowLabel,
	}
}

// work is something to do at a time (struct work_struct).
type work struct {
	at  time.Time
	seq uint64 // of two at the same time
	pos int    // in the heap
	do  func(now time.Time)
}

// at has something done later, or as soon as the call under way is over.
func (c *core) at(when time.Time, do func(now time.Time)) *work {
	c.seq++
	w := &work{at: when, seq: c.seq, do: do}
	heap.Push(&c.works, w)
	return w
}

// deadline is when expire must be called next; zero if never.
func (c *core) deadline() time.Time {
	next := c.cm.Deadline()
	if len(c.works) > 0 && (next.IsZero() || c.works[0].at.Before(next)) {
		next = c.works[0].at
	}
	return next
}

// expire does what is due.
func (c *core) expire(now time.Time) {
	for len(c.works) > 0 && !c.works[0].at.After(now) {
		heap.Pop(&c.works).(*work).do(now)
	}
	c.cm.Expire(now)
}

type works []*work

func (w works) Len() int { return len(w) }
func (w works) Less(i, j int) bool {
	if c := w[i].at.Compare(w[j].at); c != 0 {
		return c < 0
	}
	return w[i].seq < w[j].seq
}
func (w works) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].pos, w[j].pos = i, j
}
func (w *works) Push(x any) {
	x.(*work).pos = len(*w)
	*w = append(*w, x.(*work))
}
func (w *works) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	return x
}
