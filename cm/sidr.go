package cm

import (
	"time"

	"github.com/ibsm/ibsm/mad"
)

// sidrKey is what a SIDR_REQ that is not answered yet is recognised by
// (cm_insert_remote_sidr): on Ethernet, where there are no LIDs, the id alone.
type sidrKey struct {
	id  uint32
	lid mad.LID
}

// RequestSIDR asks for the queue pair of a service of datagrams
// (ib_send_cm_sidr_req).
func (c *ID) RequestSIDR(now time.Time, r *SIDRRequest) error {
	const op = "send SIDR_REQ"
	if err := c.allowNew(op); err != nil {
		return err
	}
	if err := c.checkData(op, len(r.PrivateData), MaxSIDRREQData); err != nil {
		return err
	}
	if r.Timeout < 0 {
		return c.refuse(op, "negative timeout "+r.Timeout.String())
	}
	to, err := c.m.pathAV(op, &r.Path, -1)
	if err != nil {
		return err
	}
	p := &mad.ServiceIDResReq{RequestID: c.localID, PartitionKey: r.Path.PKey, ServiceID: r.ServiceID}
	copy(p.PrivateData[:], r.PrivateData)
	c.av, c.serviceID, c.remoteID, c.maxRetries = to, r.ServiceID, 0, r.MaxCMRetries
	c.state = SIDRREQSent
	c.request(now, SIDRREQ, c.newTID(), 0, p, r.Timeout)
	return nil
}

// receiveSIDRREQ is cm_sidr_req_handler.
func (m *Machine) receiveSIDRREQ(r *received) outcome {
	var p mad.ServiceIDResReq
	p.DecodeFrom(r.data)
	key := sidrKey{p.RequestID, r.from.LID}
	if m.remoteReq[key] != nil {
		return duplicate
	}
	listener := m.listeners[p.ServiceID]
	if listener == nil {
		m.answer(r, SIDRREP, r.header.TransactionID, &mad.ServiceIDResReqResp{
			RequestID: p.RequestID, Status: mad.SIDRStatusUnsupported, ServiceID: p.ServiceID,
		})
		return ignored
	}
	c := m.NewID()
	c.hidden, c.state, c.sidr, c.Context = true, SIDRREQReceived, key, listener.Context
	c.remoteID, c.serviceID, c.tid = p.RequestID, p.ServiceID, r.header.TransactionID
	c.av = av{valid: true, addr: r.from, pkey: r.pkey}
	m.remoteReq[key] = c
	m.events.push(Event{Type: EventSIDRREQReceived, ID: c, Listener: listener, PrivateData: p.PrivateData[:], SIDRREQ: &SIDRRequestReceived{
		ServiceID: p.ServiceID, PKey: p.PartitionKey, MessagePKey: r.pkey, From: r.from,
	}})
	return taken
}

// ReplySIDR answers a SIDR_REQ (ib_send_cm_sidr_rep). The id is idle then, and
// good for Destroy only. A SIDR_REQ that comes again is a new one.
func (c *ID) ReplySIDR(_ time.Time, r *SIDRReply) error {
	const op = "send SIDR_REP"
	if err := c.checkData(op, len(r.PrivateData), MaxSIDRREPData); err != nil {
		return err
	}
	if err := c.checkInfo(op, len(r.Info)); err != nil {
		return err
	}
	if err := c.allow(op, SIDRREQReceived); err != nil {
		return err
	}
	c.replySIDR(r)
	return nil
}

// replySIDR is cm_send_sidr_rep_locked.
func (c *ID) replySIDR(r *SIDRReply) {
	p := &mad.ServiceIDResReqResp{
		RequestID: c.remoteID, Status: r.Status, QPN: r.QPN, ServiceID: c.serviceID, QKey: r.QKey,
		VendorIDL: uint8(r.ECE.VendorID), VendorIDH: uint16(uint8(r.ECE.VendorID >> 8)),
		AdditionalInformationLength: uint8(len(r.Info)),
	}
	copy(p.AdditionalInformation[:], r.Info)
	copy(p.PrivateData[:], r.PrivateData)
	c.send(SIDRREP, c.tid, r.ECE.AttrMod, p)
	c.state = Idle
	delete(c.m.remoteReq, c.sidr)
}

// receiveSIDRREP is cm_sidr_rep_handler.
func (m *Machine) receiveSIDRREP(r *received) outcome {
	var p mad.ServiceIDResReqResp
	p.DecodeFrom(r.data)
	c := m.find(p.RequestID, 0)
	if c == nil || c.state != SIDRREQSent {
		return ignored
	}
	c.cancel()
	c.state = Idle
	m.events.push(Event{Type: EventSIDRREPReceived, ID: c, PrivateData: p.PrivateData[:], SIDRREP: &SIDRReplyReceived{
		Status: p.Status, QPN: p.QPN, QKey: p.QKey, Info: p.AdditionalInformation[:min(p.AdditionalInformationLength, MaxInfo)],
	}})
	return taken
}
