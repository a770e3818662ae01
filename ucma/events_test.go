package ucma_test

import (
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/ucma"
)

// Any events in any order, for an id, a listener with its children, and a group: nothing
// panics or hangs, every event is accounted for, and everything can be destroyed.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 2, 0, 0, 5, 0, 0, 10, 0}, false) // an active side's life
	f.Add([]byte{1, 4, 0, 3, 9, 0, 3, 10, 0, 1, 11, 0}, true) // a passive one's
	f.Add([]byte{2, 12, 0, 2, 13, 0x90, 0, 1, 0x90, 3, 4, 0, 9, 9, 9}, false)
	f.Add([]byte{0, 8, 28, 0, 77, 1, 1, 255, 255}, true)
	f.Fuzz(func(t *testing.T, script []byte, illumos bool) {
		synctest.Test(t, func(t *testing.T) {
			d := ucma.Linux
			if illumos {
				d = ucma.Illumos
			}
			f := newFake(d)
			c := ucma.NewChannel(f)
			make1 := func(ps ucma.PortSpace) *ucma.ID {
				id, err := c.CreateID(ps, 0)
				if err != nil {
					t.Fatal(err)
				}
				return id
			}
			active, listener, member := make1(ucma.PortSpaceTCP), make1(ucma.PortSpaceTCP), make1(ucma.PortSpaceUDP)
			if err := listener.Listen(2); err != nil {
				t.Fatal(err)
			}
			if err := member.Bind(localAddr); err != nil {
				t.Fatal(err)
			}
			if _, err := member.Join(groupAddr, 0); err != nil {
				t.Fatal(err)
			}
			sent := uint64(1) // the answer to Join
			for ; len(script) >= 3; script = script[3:] {
				event, status := ucma.EventType(script[1]), int32(int8(script[2]))
				switch to := uint32(script[0]%4) + 1; { // 4 is the group
				case event != ucma.EventConnectRequest:
					f.send(f.event(to, event, status))
					sent++
				case to == listener.Num():
					f.request(to)
					sent++
				}
			}
			synctest.Wait()
			if got := c.Stats().Events; got != sent {
				t.Errorf("%d events fetched, %d sent", got, sent)
			}
			for _, id := range []*ucma.ID{active, listener, member} {
				if err := id.Destroy(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if got := c.Stats().Missing; got != 0 {
				t.Errorf("%d events missing", got)
			}
			f.leftBehind(t)
		})
	})
}
