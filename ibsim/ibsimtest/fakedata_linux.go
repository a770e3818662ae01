package ibsimtest

import (
	"encoding/binary"
	"errors"
	"net"

	"github.com/ibsm/ibsm/mad"
)

// packet is ibsim's struct sim_request on a little-endian host of 64 bits.
type packet [288]byte

const (
	undeliverable = 110
	permissive    = 0xffff
	directedClass = 0x81
	getMethod     = 0x01
	trapRepress   = 0x07
)

func (p *packet) dlid() mad.LID         { return mad.LID(binary.BigEndian.Uint16(p[0:])) }
func (p *packet) slid() mad.LID         { return mad.LID(binary.BigEndian.Uint16(p[4:])) }
func (p *packet) mad() *[mad.Size]byte  { return (*[mad.Size]byte)(p[32:]) }
func (p *packet) isResponse() bool      { return p.mad()[mad.OffMethod]&mad.ResponseBit != 0 }
func (p *packet) setStatus(code uint32) { binary.BigEndian.PutUint32(p[16:], code) }

func (p *packet) turnRound() {
	var lid, qp [4]byte
	copy(lid[:], p[0:4])
	copy(p[0:4], p[4:8])
	copy(p[4:8], lid[:])
	copy(qp[:], p[8:12])
	copy(p[8:12], p[12:16])
	copy(p[12:16], qp[:])
}

// serveData is ibsim's sim_read_pkt, for one slot.
func (f *Fake) serveData(slot int) {
	for {
		var b [289]byte
		n, err := f.clients[slot].conn.Read(b[:])
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // of a client that has gone
			continue
		}
		f.mu.Lock()
		switch n {
		case 0:
			f.empty++
		case len(b) - 1:
			if to := f.process(slot, (*packet)(b[:n])); to >= 0 {
				// A client that is gone loses what it was sent.
				_, _ = f.clients[to].conn.Write(b[:n])
			}
		}
		f.mu.Unlock()
	}
}

// process is ibsim's process_packet: it gives the slot to which the packet goes on,
// or -1.
func (f *Fake) process(slot int, p *packet) int {
	c := &f.clients[slot]
	m := p.mad()
	directed := m[mad.OffClass] == directedClass
	directionBit := m[mad.OffStatus]&0x80 != 0
	switch {
	case c.id == 0, m[0] != 1, m[mad.OffClassVersion] > 2:
		return -1
	case directed && (m[6] != 0 || directionBit != p.isResponse() ||
		binary.BigEndian.Uint32(m[32:]) != permissive<<16|permissive):
		return -1
	}
	if !directed && p.slid() == 0 {
		binary.BigEndian.PutUint16(p[4:], uint16(c.node.LID))
	}
	if !p.isResponse() {
		binary.BigEndian.PutUint16(m[mad.OffTID:], uint16(slot))
	}
	if m[mad.OffMethod] == trapRepress {
		return -1
	}
	node := f.route(c.node, p)
	if node == nil {
		p.setStatus(undeliverable)
		return slot
	}
	if !p.isResponse() && f.answer(node, p) {
		p.turnRound()
		p.setStatus(0)
		return slot
	}
	if to := f.client(node, p); to >= 0 {
		return to
	}
	if f.sm != nil && node.LID == smLID && !p.isResponse() {
		length := f.sm(m)
		if length == 0 {
			return -1
		}
		p.turnRound()
		binary.BigEndian.PutUint64(p[24:], uint64(min(length, mad.Size)))
		for i := length; i < mad.Size; i++ {
			m[i] = 0xa5 // of umad2sim's stack
		}
		return slot
	}
	p.setStatus(undeliverable)
	return slot
}

func (f *Fake) route(from *FakeNode, p *packet) *FakeNode {
	if p.dlid() == permissive {
		if p.mad()[7] != 0 { // hop count: the fake has no cables
			return nil
		}
		return from
	}
	for i := range f.nodes {
		if n := &f.nodes[i]; p.dlid() >= n.LID && p.dlid() < n.LID+1<<n.LMC {
			return n
		}
	}
	return nil
}

// client is ibsim's find_client.
func (f *Fake) client(node *FakeNode, p *packet) int {
	if p.isResponse() {
		slot := int(binary.BigEndian.Uint16(p.mad()[mad.OffTID:]))
		if slot < len(f.clients) && f.clients[slot].id != 0 && f.clients[slot].node == node {
			return slot
		}
		return -1
	}
	for i := range f.clients {
		if c := &f.clients[i]; c.id != 0 && c.node == node && c.issm {
			return i
		}
	}
	return -1
}

// answer answers what ibsim answers by itself.
func (f *Fake) answer(node *FakeNode, p *packet) bool {
	m := p.mad()
	if m[mad.OffClass]&0x0f != uint8(mad.ClassSubnLIDRouted) {
		return false
	}
	status := uint16(0)
	if m[mad.OffMethod] != getMethod {
		status = uint16(mad.StatusBadMethod)
	}
	data := (*[mad.SMPDataSize]byte)(m[mad.OffSMPData:])
	switch mad.AttributeID(binary.BigEndian.Uint16(m[mad.OffAttribute:])) {
	case mad.AttrNodeDescription:
		*data = mad.MakeNodeDescription(node.Desc).NodeString
	case mad.AttrNodeInfo:
		info := f.nodeInfo(node)
		clear(data[:])
		info.EncodeTo((*[mad.NodeInfoSize]byte)(data[:]))
	case mad.AttrPortInfo:
		info := f.portInfo(node)
		info.EncodeTo(data)
	default:
		return false
	}
	m[mad.OffMethod] = uint8(mad.MethodGetResp)
	if m[mad.OffClass] == directedClass {
		status |= 0x8000
	}
	binary.BigEndian.PutUint16(m[mad.OffStatus:], status)
	return true
}
