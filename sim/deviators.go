package sim

import (
	"encoding/binary"

	"github.com/ibsm/ibsm/mad"
)

// What follows makes the functions of deviations.

type (
	entered  = func(*packet)
	served   = func(*core, *simPort, *subn)
	answered = func(asked *subn, p *packet)
)

// put writes a byte of a request.
func put(at int, value byte) served {
	return func(_ *core, _ *simPort, m *subn) { m[at] = value }
}

// modify changes the modifier of requests for an attribute.
func modify(attribute mad.AttributeID, change func(uint32) uint32) served {
	return func(_ *core, _ *simPort, m *subn) {
		if m.attribute() == attribute {
			m.setModifier(change(m.modifier()))
		}
	}
}

// setting changes Sets of an attribute, 0 for all.
func setting(attribute mad.AttributeID, change served) served {
	return func(c *core, end *simPort, m *subn) {
		if m.method() == mad.MethodSet && (attribute == 0 || m.attribute() == attribute) {
			change(c, end, m)
		}
	}
}

// settingPort changes what Sets of PortInfo want of a port.
func settingPort(change func(*simPort, *mad.PortInfo)) served {
	return setting(mad.AttrPortInfo, func(c *core, end *simPort, m *subn) {
		p := end
		if num := m.modifier() & 0xff; num != 0 && int(num) < len(end.node.ports) {
			p = &end.node.ports[num]
		}
		var want mad.PortInfo
		want.DecodeFrom(m.data())
		change(p, &want)
		want.EncodeTo(m.data())
	})
}

// always changes every answer.
func always(change func(*subn)) answered {
	return func(_ *subn, p *packet) { change(p.subn()) }
}

// turn gives one status in place of another.
func turn(from, to mad.Status) answered {
	return always(func(m *subn) {
		if m.status() == from {
			m.setStatus(to)
		}
	})
}

// silent loses answers with a status.
func silent(status mad.Status) answered {
	return func(_ *subn, p *packet) {
		if p.subn().status() == status {
			silence(p)
		}
	}
}

// raw changes an attribute that an answer gives.
func raw(attribute mad.AttributeID, change func(data []byte)) answered {
	return always(func(m *subn) {
		if m.status() == mad.StatusOK && m.attribute() == attribute {
			change(m.data()[:])
		}
	})
}

// edit is raw with the attribute's type.
func edit[T any, P interface {
	*T
	mad.Structure
}](attribute mad.AttributeID, change func(P)) answered {
	return raw(attribute, func(data []byte) {
		var value T
		p := P(&value)
		data = data[:p.Layout().Size]
		if p.UnmarshalBinary(data) == nil {
			change(p)
			changed, _ := p.AppendBinary(nil) // never fails
			copy(data, changed)
		}
	})
}

// anyModifier answers an attribute with zeros where there is none for the modifier,
// and anyNode where the node does not have it at all.
func anyModifier(attribute mad.AttributeID) answered {
	return zeros(attribute, mad.StatusBadField)
}

func anyNode(attribute mad.AttributeID) answered {
	return zeros(attribute, mad.StatusBadAttribute)
}

func zeros(attribute mad.AttributeID, instead mad.Status) answered {
	return func(asked *subn, p *packet) {
		if m := p.subn(); asked.method() == mad.MethodGet && m.attribute() == attribute && m.status() == instead {
			m.setStatus(mad.StatusOK)
			clear(m.data()[:])
		}
	}
}

// directed changes answers along directed routes.
func directed(change func(*subn)) func(*packet) {
	return func(p *packet) {
		if p.subn().isDirected() {
			change(p.subn())
		}
	}
}

// starting changes requests along directed routes.
func starting(change func(*packet)) entered {
	return func(p *packet) {
		if p.subn().isDirected() && !isReturning(p) {
			change(p)
		}
	}
}

// shorten ends a directed route before the first port that leads nowhere.
func shorten(p *packet) {
	at := p.at
	for hop := 1; hop <= int(p.mad[offHopCount]) && hop <= mad.MaxDirectedHops; hop++ {
		ports, out := at.node.ports, int(p.mad[offInitialPath+hop])
		if out == 0 || out >= len(ports) || !ports[out].linkUp() {
			p.mad[offHopCount] = byte(hop - 1)
			return
		}
		at = ports[out].peer
	}
}

// segments changes the SA's DATA segments of which one of the flags, if any are
// given, is set.
func segments(flags mad.RMPPFlags, change func(rmpp []byte)) entered {
	return func(p *packet) {
		if has := mad.RMPPFlags(p.mad[mad.OffRMPP+2]); isSegment(p) && (flags == 0 || has&flags != 0) {
			change(p.mad[mad.OffRMPP:mad.OffRMPPData])
		}
	}
}

// Positions in the RMPP header of a segment (IBA 13.6.2.1).
const (
	offSegmentNumber = 4
	offPayloadLength = 8
)

func add(number []byte, n int32) {
	binary.BigEndian.PutUint32(number, binary.BigEndian.Uint32(number)+uint32(n))
}
