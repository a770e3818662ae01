package cm

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Reject sends a REJ for a connection that is not established, by either side
// (ib_send_cm_rej). The id is idle, or in timewait if it had sent a REP.
func (c *ID) Reject(now time.Time, r *Rejection) error {
	const op = "send REJ"
	if err := c.checkData(op, len(r.PrivateData), MaxREJData); err != nil {
		return err
	}
	if err := c.checkInfo(op, len(r.Info)); err != nil {
		return err
	}
	if err := c.allow(op, REQSent, MRAREQReceived, REQReceived, MRAREQSent, REPReceived, MRAREPSent, REPSent, MRAREPReceived); err != nil {
		return err
	}
	c.reject(now, r)
	return nil
}

// reject is cm_send_rej_locked with cm_format_rej.
func (c *ID) reject(now time.Time, r *Rejection) {
	p := &mad.ConnectReject{
		LocalCommunicationID: c.localID, RemoteCommunicationID: c.remoteID, MessageREJected: mad.REJMessageNone,
		Reason: r.Reason, RejectInfoLength: uint8(len(r.Info)),
	}
	switch c.state {
	case REQReceived:
		p.LocalCommunicationID, p.MessageREJected = 0, mad.REJMessageREQ
	case MRAREQSent:
		p.MessageREJected = mad.REJMessageREQ
	case REPReceived, MRAREPSent:
		p.MessageREJected = mad.REJMessageREP
	}
	copy(p.ARI[:], r.Info)
	copy(p.PrivateData[:], r.PrivateData)
	if c.state == REPSent || c.state == MRAREPReceived {
		c.enterTimewait(now)
	} else {
		c.resetToIdle()
	}
	c.send(REJ, c.tid, 0, p)
}

// issueREJ rejects a message that has no id here (cm_issue_rej). The ids of the
// message are taken from where they are in all but a REQ, as the kernel does: of
// a REQ that gives its vendor id for the second.
func (m *Machine) issueREJ(r *received, reason mad.RejectReason, rejected mad.REJMessage) {
	var p mad.ConnectReject
	p.DecodeFrom(r.data)
	m.answer(r, REJ, r.header.TransactionID, &mad.ConnectReject{
		LocalCommunicationID: p.RemoteCommunicationID, RemoteCommunicationID: p.LocalCommunicationID,
		MessageREJected: rejected, Reason: reason,
	})
}

// findRejected is cm_acquire_rejected_id. A REJ for a time-out comes from who
// does not know our id, and names itself by its GUID.
func (m *Machine) findRejected(p *mad.ConnectReject) *ID {
	switch {
	case p.Reason == mad.RejectTimeout:
		return m.remoteIDs[remoteID{mad.GUID(binary.BigEndian.Uint64(p.ARI[:])), p.LocalCommunicationID}]
	case p.MessageREJected == mad.REJMessageREQ:
		return m.find(p.RemoteCommunicationID, 0)
	}
	return m.find(p.RemoteCommunicationID, p.LocalCommunicationID)
}

// receiveREJ is cm_rej_handler.
func (m *Machine) receiveREJ(r *received) outcome {
	var p mad.ConnectReject
	p.DecodeFrom(r.data)
	c := m.findRejected(&p)
	if c == nil {
		return ignored
	}
	switch c.state {
	case REQSent, MRAREQReceived, REPSent, MRAREPReceived, REQReceived, MRAREQSent:
		if p.Reason == mad.RejectStaleConn {
			c.enterTimewait(r.now)
		} else {
			c.resetToIdle()
		}
	case DREQSent, REPReceived, MRAREPSent:
		c.enterTimewait(r.now)
	case Established:
		if c.lapState != LAPUninit && c.lapState != LAPSent {
			return ignored
		}
		c.enterTimewait(r.now)
	default:
		return ignored
	}
	m.events.push(Event{Type: EventREJReceived, ID: c, PrivateData: p.PrivateData[:], REJ: &RejectReceived{
		Reason: p.Reason, Info: p.ARI[:min(p.RejectInfoLength, MaxInfo)],
	}})
	return taken
}

// Acknowledge sends an MRA for a received REQ, REP or LAP (ib_send_cm_mra).
func (c *ID) Acknowledge(now time.Time, r *Receipt) error {
	const op = "send MRA"
	if err := c.checkData(op, len(r.PrivateData), MaxMRAData); err != nil {
		return err
	}
	state, lap, msg := c.state, c.lapState, mad.MRAMessageLAP
	switch {
	case c.state == REQReceived:
		state, msg = MRAREQSent, mad.MRAMessageREQ
	case c.state == REPReceived:
		state, msg = MRAREPSent, mad.MRAMessageREP
	case c.state == Established && c.lapState == LAPReceived:
		lap = MRALAPSent
	default:
		return c.refuse(op, "there is no REQ, REP or LAP without an answer; the id's state is "+c.state.String())
	}
	c.state, c.lapState, c.serviceTimeout = state, lap, r.ServiceTimeout
	c.setPrivateData(r.PrivateData)
	if !r.Delay {
		c.send(MRA, c.tid, 0, c.formatMRA(msg))
	}
	return nil
}

func (c *ID) formatMRA(msg mad.MRAMessage) *mad.MsgRcptAck {
	p := &mad.MsgRcptAck{
		LocalCommunicationID: c.localID, RemoteCommunicationID: c.remoteID,
		MessageMRAed: msg, ServiceTimeout: c.serviceTimeout,
	}
	copy(p.PrivateData[:], c.privateData)
	return p
}

// setPrivateData keeps what goes out again when the peer repeats its message
// (cm_set_private_data).
func (c *ID) setPrivateData(data []byte) { c.privateData = bytes.Clone(data) }

// receiveMRA is cm_mra_handler: the peer needs more time, from now on and for
// each try that is left.
func (m *Machine) receiveMRA(r *received) outcome {
	var p mad.MsgRcptAck
	p.DecodeFrom(r.data)
	var c *ID
	switch p.MessageMRAed {
	case mad.MRAMessageREQ:
		c = m.find(p.RemoteCommunicationID, 0)
	case mad.MRAMessageREP, mad.MRAMessageLAP:
		c = m.find(p.RemoteCommunicationID, p.LocalCommunicationID)
	}
	if c == nil {
		return ignored
	}
	switch {
	case c.state == REQSent && p.MessageMRAed == mad.MRAMessageREQ:
		c.state = MRAREQReceived
	case c.state == REPSent && p.MessageMRAed == mad.MRAMessageREP:
		c.state = MRAREPReceived
	case c.state == Established && p.MessageMRAed == mad.MRAMessageLAP && c.lapState == LAPSent:
		c.lapState = MRALAPReceived
	case c.state == MRAREQReceived, c.state == MRAREPReceived, c.state == Established && c.lapState == MRALAPReceived:
		return duplicate
	default:
		return ignored
	}
	timeout := duration(p.ServiceTimeout) + duration(c.av.timeout)
	if c.pending != nil { // a LAP may be sent without waiting
		c.pending.timeout = timeout
		m.timers.set(c, r.now.Add(timeout))
	}
	m.events.push(Event{Type: EventMRAReceived, ID: c, PrivateData: p.PrivateData[:], ServiceTimeout: p.ServiceTimeout})
	return taken
}
