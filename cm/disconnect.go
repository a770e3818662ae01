package cm

import (
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Disconnect sends a DREQ (ib_send_cm_dreq), and again until a DREP comes. The
// connection must be established.
func (c *ID) Disconnect(now time.Time, privateData []byte) error {
	const op = "send DREQ"
	if err := c.checkData(op, len(privateData), MaxDREQData); err != nil {
		return err
	}
	if err := c.allow(op, Established); err != nil {
		return err
	}
	c.disconnect(now, privateData)
	return nil
}

// disconnect is cm_send_dreq_locked.
func (c *ID) disconnect(now time.Time, privateData []byte) {
	p := &mad.DisconnectRequest{
		LocalCommunicationID: c.localID, RemoteCommunicationID: c.remoteID, RemoteQPNEECN: c.remoteQPN,
	}
	copy(p.PrivateData[:], privateData)
	c.state = DREQSent
	// Its wait takes the place of that of a LAP.
	c.request(now, DREQ, c.newTID(), 0, p, c.timeout)
}

// ReplyDisconnect answers a DREQ with a DREP (ib_send_cm_drep) and enters
// timewait.
func (c *ID) ReplyDisconnect(now time.Time, privateData []byte) error {
	const op = "send DREP"
	if err := c.checkData(op, len(privateData), MaxDREPData); err != nil {
		return err
	}
	if err := c.allow(op, DREQReceived); err != nil {
		return err
	}
	c.replyDisconnect(now, privateData)
	return nil
}

// replyDisconnect is cm_send_drep_locked.
func (c *ID) replyDisconnect(now time.Time, privateData []byte) {
	c.setPrivateData(privateData)
	c.enterTimewait(now)
	c.send(DREP, c.tid, 0, c.formatDREP())
}

func (c *ID) formatDREP() *mad.DisconnectReply {
	p := &mad.DisconnectReply{LocalCommunicationID: c.localID, RemoteCommunicationID: c.remoteID}
	copy(p.PrivateData[:], c.privateData)
	return p
}

// receiveDREQ is cm_dreq_handler.
func (m *Machine) receiveDREQ(r *received) outcome {
	var p mad.DisconnectRequest
	p.DecodeFrom(r.data)
	c := m.find(p.RemoteCommunicationID, p.LocalCommunicationID)
	if c == nil {
		// The connection is gone, and the peer did not hear of it (cm_issue_drep).
		m.answer(r, DREP, r.header.TransactionID, &mad.DisconnectReply{
			LocalCommunicationID: p.RemoteCommunicationID, RemoteCommunicationID: p.LocalCommunicationID,
		})
		return duplicate
	}
	if c.localQPN != p.RemoteQPNEECN {
		return ignored
	}
	switch c.state {
	case REPSent, MRAREPReceived, DREQSent, Established:
		c.cancel()
	case Timewait:
		m.answer(r, DREP, c.tid, c.formatDREP())
		return duplicate
	case DREQReceived:
		return duplicate
	default:
		return ignored
	}
	c.state, c.tid = DREQReceived, r.header.TransactionID
	m.events.push(Event{Type: EventDREQReceived, ID: c, PrivateData: p.PrivateData[:]})
	return taken
}

// receiveDREP is cm_drep_handler. It also ends the wait for an own DREP, when
// both sides sent a DREQ.
func (m *Machine) receiveDREP(r *received) outcome {
	var p mad.DisconnectReply
	p.DecodeFrom(r.data)
	c := m.find(p.RemoteCommunicationID, p.LocalCommunicationID)
	if c == nil || c.state != DREQSent && c.state != DREQReceived {
		return ignored
	}
	c.enterTimewait(r.now)
	m.events.push(Event{Type: EventDREPReceived, ID: c, PrivateData: p.PrivateData[:]})
	return taken
}
