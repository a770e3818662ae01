package topo

import (
	"fmt"

	"github.com/ibsm/ibsm/mad"
)

// Hop is one link of a way.
type Hop struct {
	From, To *Port
	Width    mad.LinkWidth
	Speed    mad.Speed
	MTU      mad.MTU
}

// Rate is the rate of the hop's link.
func (h Hop) Rate() mad.Rate { return mad.RateOf(h.Width, h.Speed) }

// WalkError says why no way leads from a port to a LID.
type WalkError struct {
	From *Port
	To   mad.LID
	Hops []Hop // as far as it went
	At   *Port // where it ended
	Why  string
}

func (e *WalkError) Error() string {
	return fmt.Sprintf("way from %s to LID %s: after %d links, at %s: %s", e.From, e.To, len(e.Hops), e.At, e.Why)
}

// Walk follows the forwarding tables from an end port to a LID, and gives the
// links on the way: none from a port to itself. The error is a *WalkError.
func (s *Subnet) Walk(from *Port, to mad.LID) ([]Hop, error) {
	if from.Has(to) {
		return nil, nil
	}
	var hops []Hop
	at := from
	fail := func(format string, args ...any) ([]Hop, error) {
		return hops, &WalkError{From: from, To: to, Hops: hops, At: at, Why: fmt.Sprintf(format, args...)}
	}
	if !from.IsEnd() {
		return fail("is no end port")
	}
	for {
		// at is the port that a packet has reached its node by, or starts from.
		out := at
		if n := at.Node; n.IsSwitch() {
			port := uint8(NoRoute)
			if int(to) < len(n.LFT) {
				port = n.LFT[to]
			}
			switch {
			case port == 0 && n.Ports[0].Has(to):
				return hops, nil
			case port == 0:
				return fail("the forwarding table says port 0, which does not have the LID")
			case int(port) >= len(n.Ports):
				return fail("the forwarding table has no route")
			}
			out = &n.Ports[port]
		} else if len(hops) > 0 {
			if at.Has(to) {
				return hops, nil
			}
			return fail("the port does not have the LID")
		}
		if out.Peer == nil || out.State != mad.PortStateActive || out.Peer.State != mad.PortStateActive {
			return fail("port %s has no active link", out)
		}
		if len(hops) > len(s.Nodes) {
			return fail("the forwarding tables make a loop")
		}
		hops = append(hops, Hop{out, out.Peer, out.Width, out.Speed, out.MTU})
		at = out.Peer
	}
}
