package sim

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ibsm/ibsm/mad"
)

// Deviation is a small departure from the IBA that a fabric makes when it is told
// to, so that a test can show that it would notice. [Deviations] lists all.
type Deviation struct {
	Name   string
	Breaks string // what happens instead of what the rule says
	IBA    string // section of the rule
	// OfSA says that it is about what goes to the SA or comes from it; else it is
	// about the subnet management agents.
	OfSA bool

	// enter changes a MAD that a program has sent, before anything else looks at it.
	enter func(p *packet)
	// passes has adapters pass on what comes along a directed route.
	passes bool
	// serve changes a request before the agent of an end port looks at it.
	serve func(c *core, end *simPort, m *subn)
	// answer changes the answer of an agent before it goes its way back.
	answer func(asked *subn, p *packet)
	// leave changes an answer when it has arrived.
	leave func(p *packet)
}

// Deviate switches a deviation on or off, by its name. Any number may be on.
func (f *Fabric) Deviate(name string, on bool) error {
	i := slices.IndexFunc(deviations, func(d Deviation) bool { return d.Name == name })
	if i < 0 {
		return fmt.Errorf("sim: there is no deviation %q", name)
	}
	d := &deviations[i]
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.core
	c.deviations = slices.DeleteFunc(c.deviations, func(active *Deviation) bool { return active == d })
	if on {
		c.deviations = append(c.deviations, d)
	}
	return nil
}

// Deviations gives what [Fabric.Deviate] can switch.
func Deviations() []Deviation { return slices.Clone(deviations) }

// entering, serving, answering and leaving are where the active deviations are
// made, beside [core.passes].
func (c *core) entering(p *packet) {
	for _, d := range c.deviations {
		if d.enter != nil && (d.OfSA && p.class() == mad.ClassSubnAdm || !d.OfSA && isSMP(p.class())) {
			d.enter(p)
		}
	}
}

func (c *core) serving(end *simPort, p *packet) {
	for _, d := range c.deviations {
		if m := p.subn(); d.serve != nil && m.method()&mad.ResponseBit == 0 {
			d.serve(c, end, m)
		}
	}
}

func (c *core) answering(asked *subn, p *packet) {
	for _, d := range c.deviations {
		if d.answer != nil {
			d.answer(asked, p)
		}
	}
}

func (c *core) leaving(p *packet) {
	for _, d := range c.deviations {
		if d.leave != nil && p.answered {
			d.leave(p)
		}
	}
}

// isSegment tells whether a packet is a DATA segment of an SA's answer.
func isSegment(p *packet) bool {
	return p.class() == mad.ClassSubnAdm && mad.IsResponse(p.mad[:]) &&
		p.mad[mad.OffRMPP+2]&byte(mad.RMPPFlagActive) != 0 && mad.RMPPType(p.mad[mad.OffRMPP+1]) == mad.RMPPTypeData
}

// subn is a subnet management packet as deviations see it.
type subn [mad.Size]byte

func (p *packet) subn() *subn { return (*subn)(&p.mad) }

func (m *subn) method() mad.Method { return mad.Method(m[mad.OffMethod]) }

func (m *subn) attribute() mad.AttributeID {
	return mad.AttributeID(binary.BigEndian.Uint16(m[mad.OffAttribute:]))
}

func (m *subn) modifier() uint32 { return binary.BigEndian.Uint32(m[mad.OffModifier:]) }

func (m *subn) setModifier(to uint32) { binary.BigEndian.PutUint32(m[mad.OffModifier:], to) }

// status is without the D bit.
func (m *subn) status() mad.Status {
	return mad.Status(binary.BigEndian.Uint16(m[mad.OffStatus:]) & 0x7fff)
}

// setStatus leaves the D bit.
func (m *subn) setStatus(to mad.Status) {
	d := binary.BigEndian.Uint16(m[mad.OffStatus:]) & 0x8000
	binary.BigEndian.PutUint16(m[mad.OffStatus:], d|uint16(to))
}

func (m *subn) data() *[mad.SMPDataSize]byte { return (*[mad.SMPDataSize]byte)(m[mad.OffSMPData:]) }

func (m *subn) isDirected() bool { return mad.Class(m[mad.OffClass]) == mad.ClassSubnDirected }

// silence loses an answer: it goes to no LID.
func silence(p *packet) { p.dlid = 0 }
