package cm

import (
	"time"

	"github.com/ibsm/ibsm/mad"
)

// qpTypeOf is the transport that a REQ asks for, 0 if it is not known
// (cm_req_get_qp_type).
func qpTypeOf(p *mad.ConnectRequest) QPType {
	switch {
	case p.TransportServiceType == mad.TransportRC:
		return RC
	case p.TransportServiceType == mad.TransportUC:
		return UC
	case p.TransportServiceType == mad.TransportExtended && p.ExtendedTransportType == mad.ExtendedTransportXRC:
		return XRCTarget
	}
	return 0
}

// receiveREQ is cm_req_handler with cm_match_req.
func (m *Machine) receiveREQ(r *received) outcome {
	var p mad.ConnectRequest
	p.DecodeFrom(r.data)
	c := m.NewID()
	c.remoteID, c.remoteGUID, c.remoteQPN = p.LocalCommunicationID, p.LocalCAGUID, p.LocalQPN
	same, stale := c.enterRemote()
	if same != nil {
		c.Destroy(r.now)
		same.repeatAnswer(r)
		return duplicate
	}
	listener := m.listeners[p.ServiceID]
	switch {
	case stale != nil:
		c.Destroy(r.now)
		m.rejectStale(r, mad.REJMessageREQ, stale)
		return ignored
	case listener == nil:
		c.Destroy(r.now)
		m.issueREJ(r, mad.RejectInvalidServiceID, mad.REJMessageREQ)
		return ignored
	}

	c.Context = listener.Context
	c.serviceID, c.tid, c.state = p.ServiceID, r.header.TransactionID, REQReceived
	c.timeout, c.maxRetries = duration(p.LocalCMResponseTimeout), p.MaxCMRetries
	c.initiatorDepth, c.responderResources = p.ResponderResources, p.InitiatorDepth
	c.pathMTU, c.pkey, c.sqPSN, c.qpType = p.PathPacketPayloadMTU, p.PartitionKey, p.StartingPSN, qpTypeOf(&p)
	c.retryCount, c.rnrRetryCount = p.RetryCount, p.RNRRetryCount

	sgidIndex := -1
	if r.from.HasGRH {
		sgidIndex = int(r.from.GRH.GIDIndex)
	}
	if !m.roce() {
		useSourceOfRouted(&p, &r.from)
	}
	primary, alternate := m.primaryPath(&p, &r.from), m.alternatePath(&p)
	var err error
	if c.av, err = m.pathAV("", &primary, sgidIndex); err != nil {
		c.av = av{valid: true, addr: r.from, pkey: r.pkey}
		var own mad.GID
		if len(m.cfg.Info.GIDs) > 0 {
			own = m.cfg.Info.GIDs[0]
		}
		c.reject(r.now, &Rejection{Reason: mad.RejectInvalidGID, Info: own[:]})
		c.Destroy(r.now)
		return ignored
	}
	if !m.roce() {
		c.av.dlidDatapath = p.PrimaryLocalPortLID
	}
	if alternate != nil {
		if c.altAV, err = m.pathAV("", alternate, -1); err != nil {
			c.reject(r.now, &Rejection{Reason: mad.RejectInvalidAltGID, Info: primary.SGID[:]})
			c.Destroy(r.now)
			return ignored
		}
	}
	m.events.push(Event{Type: EventREQReceived, ID: c, Listener: listener, PrivateData: p.PrivateData[:], REQ: &RequestReceived{
		PKey: r.pkey, Primary: primary, Alternate: alternate,
		RemoteCAGUID: p.LocalCAGUID, RemoteQKey: p.LocalQKey, RemoteQPN: p.LocalQPN, QPType: c.qpType,
		StartingPSN: p.StartingPSN, ResponderResources: p.InitiatorDepth, InitiatorDepth: p.ResponderResources,
		LocalCMResponseTimeout: p.RemoteCMResponseTimeout, RemoteCMResponseTimeout: p.LocalCMResponseTimeout,
		FlowControl: p.EndToEndFlowControl, RetryCount: p.RetryCount, RNRRetryCount: p.RNRRetryCount, SRQ: p.SRQ,
		ECE: ECE{VendorID: p.VendorID, AttrMod: r.header.AttributeModifier},
	}})
	return taken
}

// repeatAnswer answers a REQ that came before (cm_dup_req_handler). A REP is
// sent again by its own time-out. In timewait the connection is not found by its
// remote id, so there is no answer to that.
func (c *ID) repeatAnswer(r *received) {
	if c.state == MRAREQSent {
		c.m.answer(r, MRA, c.tid, c.formatMRA(mad.MRAMessageREQ))
	}
}

// rejectStale rejects a REQ or REP of a queue pair that still has a connection
// here, and ends that one.
func (m *Machine) rejectStale(r *received, rejected mad.REJMessage, stale *ID) {
	m.issueREJ(r, mad.RejectStaleConn, rejected)
	if stale.state == Established {
		stale.disconnect(r.now, nil)
	}
}

// Reply accepts a REQ with a REP (ib_send_cm_rep), which is sent again until the
// RTU comes, as often as the REQ said.
func (c *ID) Reply(now time.Time, r *Reply) error {
	const op = "send REP"
	if err := c.checkData(op, len(r.PrivateData), MaxREPData); err != nil {
		return err
	}
	if err := c.allow(op, REQReceived, MRAREQSent); err != nil {
		return err
	}
	p := &mad.ConnectReply{
		LocalCommunicationID: c.localID, RemoteCommunicationID: c.remoteID, StartingPSN: r.StartingPSN,
		ResponderResources: r.ResponderResources, TargetACKDelay: c.m.cfg.AckDelay,
		FailoverAccepted: r.FailoverAccepted, RNRRetryCount: r.RNRRetryCount, LocalCAGUID: c.m.cfg.Info.NodeGUID,
		VendorIDL: uint8(r.ECE.VendorID), VendorIDM: uint8(r.ECE.VendorID >> 8), VendorIDH: uint8(r.ECE.VendorID >> 16),
	}
	if c.qpType == XRCTarget {
		p.SRQ, p.LocalEEContextNumber = true, r.QPN
	} else {
		p.InitiatorDepth, p.EndToEndFlowControl, p.SRQ, p.LocalQPN = r.InitiatorDepth, r.FlowControl, r.SRQ, r.QPN
	}
	copy(p.PrivateData[:], r.PrivateData)
	c.state = REPSent
	c.initiatorDepth, c.responderResources = r.InitiatorDepth, r.ResponderResources
	c.localQPN, c.rqPSN = r.QPN&maxQPN, r.StartingPSN&maxPSN
	c.request(now, REP, c.tid, r.ECE.AttrMod, p, c.timeout)
	return nil
}

// receiveRTU is cm_rtu_handler.
func (m *Machine) receiveRTU(r *received) outcome {
	var p mad.ReadyToUse
	p.DecodeFrom(r.data)
	c := m.find(p.RemoteCommunicationID, p.LocalCommunicationID)
	if c == nil {
		return ignored
	}
	if c.state != REPSent && c.state != MRAREPReceived {
		return duplicate
	}
	c.cancel()
	c.state = Established
	m.events.push(Event{Type: EventRTUReceived, ID: c, PrivateData: p.PrivateData[:]})
	return taken
}

// Established tells that data arrived on the queue pair before the RTU did
// (ib_cm_notify, COMM_EST). The error is ErrConnected if the connection was
// established before.
func (c *ID) Established(time.Time) error {
	const op = "notify of COMM_EST"
	if c.state == Established {
		return &Error{Op: op, State: c.state, Reason: "the id is established", Err: ErrConnected}
	}
	if err := c.allow(op, REPSent, MRAREPReceived); err != nil {
		return err
	}
	c.cancel()
	c.state = Established
	c.m.events.push(Event{Type: EventUserEstablished, ID: c})
	return nil
}
