package softcma

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/ucma"
)

// FuzzExec gives the core a script of pieces, each with its kind and length: a
// command of any bytes in one dialect or the other, a CM message of any bytes, or
// time that passes and answers of the SA.
func FuzzExec(f *testing.F) {
	piece := func(kind byte, b []byte) []byte { return append([]byte{kind, byte(len(b)), byte(len(b) >> 8)}, b...) }
	var flow []byte
	for _, c := range []ucma.Command{
		ucma.CreateID{UID: 1, PS: ucma.PortSpaceTCP}, ucma.ResolveIP{Dst: ucma.Sockaddr{IP: addrPortOf("10.0.0.2:1")}, Timeout: time.Second},
		ucma.ResolveRoute{Timeout: time.Second}, ucma.Connect{Param: connParam(1, "x")}, ucma.GetEvent{}, ucma.DestroyID{},
		ucma.CreateID{UID: 2, PS: ucma.PortSpaceUDP}, ucma.BindIP{Addr: ucma.Sockaddr{IP: addrPortOf("10.0.0.1:7")}}, ucma.Listen{},
		ucma.JoinIPMcast{Addr: ucma.Sockaddr{IP: addrPortOf("224.0.0.9:0")}}, ucma.LeaveMcast{}, pathOption(0, mad.PathRecord{}),
	} {
		for i, d := range []*ucma.Dialect{ucma.Linux, ucma.Illumos} {
			if b, err := d.AppendUnchecked(nil, c); err == nil {
				flow = append(flow, piece(byte(i), b)...)
			}
		}
	}
	f.Add(flow, false)
	f.Add(flow, true)
	var req [mad.Size]byte
	h := mad.Header{BaseVersion: 1, MgmtClass: mad.ClassComMgt, ClassVersion: 2, Method: mad.MethodSend, AttributeID: mad.AttrConnectRequest}
	h.EncodeTo((*[mad.HeaderSize]byte)(req[:]))
	f.Add(append(flow, piece(2, req[:])...), true)

	f.Fuzz(func(t *testing.T, script []byte, roce bool) {
		now := time.Unix(0, 0)
		own := mad.GID{0: 0xfe, 1: 0x80, 15: 1}
		c := newCore(Config{
			Addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/8")}, RoCE: roce, IfIndex: 2,
			Neighbour: func(ip netip.Addr) (Neighbour, bool) {
				return Neighbour{GID: mad.GID{0: 0xfe, 15: 2}, LID: 2}, ip.Is4()
			},
		}, port.Info{
			Port: 1, LID: 1, SMLID: 3, State: mad.PortStateActive, GIDs: []mad.GID{own}, PKeys: []mad.PKey{mad.DefaultPKey},
		}, func() uint32 { return 7 })
		files := []*openFile{c.open(ucma.Linux), c.open(ucma.Illumos)}
		mem := make([]byte, 600)
		for len(script) > 3 {
			kind, n := script[0], int(script[1])|int(script[2])<<8
			script = script[3:]
			b := script[:min(n, len(script))]
			script = script[len(b):]
			switch kind % 4 {
			case 0, 1:
				if f := files[kind%4]; !f.closed {
					_ = c.exec(now, f, b, mem[:min(n, len(mem))])
				}
			case 2:
				m := port.Message{Data: make([]byte, mad.Size), Addr: mad.AddressVector{LID: 2, QPN: 1}}
				copy(m.Data, b)
				c.receive(now, &m)
			case 3:
				now = now.Add(time.Duration(n) * time.Millisecond)
				c.expire(now)
				for i, q := range c.queries {
					if q.ctx.Err() == nil {
						var err error
						if i%2 == 0 {
							err = ucma.ETIMEDOUT
						}
						path := mad.PathRecord{SGID: own, PKey: mad.DefaultPKey}
						q.done(now, path, mad.MCMemberRecord{MGID: own, QKey: udpQKey}, err)
					}
				}
				c.queries = nil
			}
			c.settle(now)
			var pkt cm.Packet
			for c.cm.Next(&pkt) {
				c.addressOf(&pkt)
			}
		}
		c.removed(now)
		for _, f := range files {
			c.closeFile(now, f)
		}
		if c.ctxs.n != 0 || c.mcasts.n != 0 || len(c.attached) != 0 || len(c.binds) != 0 || c.cm.IDs() != 0 {
			t.Errorf("left: %d contexts, %d memberships, %d attached ids, %d ports, %d CM ids",
				c.ctxs.n, c.mcasts.n, len(c.attached), len(c.binds), c.cm.IDs())
		}
	})
}
