package server

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ibsm/ibsm/mad"
)

// Deviation is a small departure from the IBA that a Server makes when it is told
// to, so that a test can show that it would notice. [Deviations] lists all.
type Deviation struct {
	Name   string
	Breaks string // what happens instead of what the rule says
	IBA    string // section of the rule

	// ask changes a request before it is looked at.
	ask func(s *Server, req message)
	// answer makes another response of the one to a request; nil is silence.
	answer func(s *Server, req, resp message) message
}

// Deviate switches a deviation on or off, by its name. Any number may be on; what
// they do is done in the order of [Deviations].
func (s *Server) Deviate(name string, on bool) error {
	i := slices.IndexFunc(deviations, func(d Deviation) bool { return d.Name == name })
	if i < 0 {
		return fmt.Errorf("sa server: there is no deviation %q", name)
	}
	s.deviating.Lock()
	defer s.deviating.Unlock()
	if s.deviations == nil {
		s.deviations = make([]bool, len(deviations))
	}
	s.deviations[i] = on
	return nil
}

// Deviations gives what [Server.Deviate] can switch.
func Deviations() []Deviation { return slices.Clone(deviations) }

// deviate answers a request with the deviations that are on.
func (s *Server) deviate(from mad.LID, req []byte) []byte {
	s.deviating.Lock()
	on := slices.Clone(s.deviations)
	s.deviating.Unlock()
	if !slices.Contains(on, true) {
		return s.answer(from, req)
	}
	asked := slices.Clone(req)
	for i := range on {
		if d := &deviations[i]; on[i] && d.ask != nil && len(asked) >= mad.Size {
			d.ask(s, asked)
		}
	}
	resp := message(s.answer(from, asked))
	for i := range on {
		if d := &deviations[i]; on[i] && d.answer != nil && resp != nil {
			resp = d.answer(s, req, resp)
		}
	}
	return resp
}

// message is a request or a response as deviations see it.
type message []byte

func (m message) method() mad.Method { return mad.Method(m[mad.OffMethod]) }

func (m message) attribute() mad.AttributeID {
	return mad.AttributeID(binary.BigEndian.Uint16(m[mad.OffAttribute:]))
}

func (m message) status() mad.Status {
	return mad.Status(binary.BigEndian.Uint16(m[mad.OffStatus:]))
}

func (m message) setStatus(to mad.Status) {
	binary.BigEndian.PutUint16(m[mad.OffStatus:], uint16(to))
}

func (m message) mask() uint64 { return binary.BigEndian.Uint64(m[offComponentMask:]) }

func (m message) setMask(to uint64) { binary.BigEndian.PutUint64(m[offComponentMask:], to) }

func (m message) isTable() bool { return m.method() == mad.MethodGetTable|mad.ResponseBit }

// distance is what AttributeOffset says, in bytes.
func (m message) distance() int { return 8 * int(binary.BigEndian.Uint16(m[offAttributeOffset:])) }

// rows are the records of a response, each with the bytes up to the next.
func (m message) rows() (rows [][]byte) {
	d := m.distance()
	if m.status() != mad.StatusOK || d == 0 {
		return nil
	}
	for at := mad.OffSAData; at+d <= len(m); at += d {
		rows = append(rows, m[at:at+d])
		if !m.isTable() {
			break
		}
	}
	return rows
}

// without is a response with no record and a status.
func (m message) without(status mad.Status) message {
	m = append(m[:mad.OffSAData:mad.OffSAData], make([]byte, mad.SADataSize)...)
	m.setStatus(status)
	clear(m[mad.OffRMPP:mad.OffRMPPData])
	clear(m[offAttributeOffset:offComponentMask])
	return m
}
