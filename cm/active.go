package cm

import (
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Connect sends a REQ (ib_send_cm_req). It is sent again until the peer answers,
// MaxCMRetries times, each time after twice the packet life time and the remote
// CM response time-out. The id must be idle.
//
// Errors: ErrInvalid, and ErrNoPKey if the P_Key of a path is not in the port's
// table.
func (c *ID) Connect(now time.Time, r *Request) error {
	const op = "send REQ"
	if err := c.allowNew(op); err != nil {
		return err
	}
	if err := c.checkData(op, len(r.PrivateData), MaxREQData); err != nil {
		return err
	}
	if r.QPType != RC && r.QPType != UC && r.QPType != XRCInitiator {
		return c.refuse(op, "the queue pair's type must be RC, UC or XRCInitiator")
	}
	primary, err := c.m.pathAV(op, &r.Primary, -1)
	if err != nil {
		return err
	}
	var alternate av
	if r.Alternate != nil {
		if r.Alternate.PKey != r.Primary.PKey || r.Alternate.MTU != r.Primary.MTU {
			return c.refuse(op, "the alternate path's P_Key and MTU must be those of the primary")
		}
		if alternate, err = c.m.pathAV(op, r.Alternate, -1); err != nil {
			return err
		}
	}

	c.serviceID, c.remoteID, c.remoteQPN, c.lapState = r.ServiceID, 0, 0, LAPUninit
	c.av, c.altAV = primary, alternate
	c.timeout = 2*duration(r.Primary.PacketLifeTime) + duration(r.RemoteCMResponseTimeout&31)
	c.maxRetries = r.MaxCMRetries & 15
	c.initiatorDepth, c.responderResources = r.InitiatorDepth, r.ResponderResources
	c.retryCount = r.RetryCount & 7
	c.pathMTU, c.pkey, c.qpType = r.Primary.MTU, r.Primary.PKey, r.QPType
	c.localQPN, c.rqPSN = r.QPN&maxQPN, r.StartingPSN&maxPSN
	c.tid = c.newTID()
	c.state = REQSent
	c.request(now, REQ, c.tid, r.ECE.AttrMod, c.formatREQ(r), c.timeout)
	return nil
}

// Widest queue pair number and packet sequence number.
const (
	maxQPN = 1<<24 - 1
	maxPSN = 1<<24 - 1
)

// formatREQ is cm_format_req.
func (c *ID) formatREQ(r *Request) *mad.ConnectRequest {
	p := &mad.ConnectRequest{
		LocalCommunicationID: c.localID, VendorID: r.ECE.VendorID, ServiceID: r.ServiceID,
		LocalCAGUID: c.m.cfg.Info.NodeGUID, LocalQPN: r.QPN, InitiatorDepth: r.InitiatorDepth,
		RemoteCMResponseTimeout: r.RemoteCMResponseTimeout, LocalCMResponseTimeout: r.LocalCMResponseTimeout,
		EndToEndFlowControl: r.FlowControl, StartingPSN: r.StartingPSN,
		PartitionKey: r.Primary.PKey, PathPacketPayloadMTU: r.Primary.MTU, MaxCMRetries: r.MaxCMRetries,
	}
	switch r.QPType {
	case UC:
		p.TransportServiceType = mad.TransportUC
	case XRCInitiator:
		p.TransportServiceType, p.ExtendedTransportType = mad.TransportExtended, mad.ExtendedTransportXRC
	}
	if r.QPType != XRCInitiator {
		p.ResponderResources, p.RetryCount, p.RNRRetryCount, p.SRQ = r.ResponderResources, r.RetryCount, r.RNRRetryCount, r.SRQ
	}
	a := c.m.wirePath(&r.Primary)
	p.PrimaryLocalPortGID, p.PrimaryRemotePortGID = r.Primary.SGID, r.Primary.DGID
	p.PrimaryLocalPortLID, p.PrimaryRemotePortLID, p.PrimarySubnetLocal = a.local, a.remote, a.subnetLocal
	p.PrimaryFlowLabel, p.PrimaryPacketRate, p.PrimaryTrafficClass = r.Primary.FlowLabel, r.Primary.Rate, r.Primary.TClass
	p.PrimaryHopLimit, p.PrimarySL, p.PrimaryLocalACKTimeout = r.Primary.HopLimit, r.Primary.SL, a.ackTimeout
	if alt := r.Alternate; alt != nil {
		a := c.m.wirePath(alt)
		p.AlternateLocalPortGID, p.AlternateRemotePortGID = alt.SGID, alt.DGID
		p.AlternateLocalPortLID, p.AlternateRemotePortLID, p.AlternateSubnetLocal = a.local, a.remote, a.subnetLocal
		p.AlternateFlowLabel, p.AlternatePacketRate, p.AlternateTrafficClass = alt.FlowLabel, alt.Rate, alt.TClass
		p.AlternateHopLimit, p.AlternateSL, p.AlternateLocalACKTimeout = alt.HopLimit, alt.SL, a.ackTimeout
	}
	copy(p.PrivateData[:], r.PrivateData)
	return p
}

// receiveREP is cm_rep_handler.
func (m *Machine) receiveREP(r *received) outcome {
	var p mad.ConnectReply
	p.DecodeFrom(r.data)
	c := m.find(p.RemoteCommunicationID, 0)
	if c == nil {
		return m.repeatRTU(r, &p)
	}
	if c.state != REQSent && c.state != MRAREQReceived {
		return ignored
	}
	c.remoteID, c.remoteGUID, c.remoteQPN = p.LocalCommunicationID, p.LocalCAGUID, p.LocalQPN
	if c.qpType == XRCInitiator {
		c.remoteQPN = p.LocalEEContextNumber
	}
	same, stale := c.enterRemote()
	if same != nil || stale != nil {
		c.remoteID, c.remoteQPN = 0, 0
		if stale != nil {
			m.rejectStale(r, mad.REJMessageREP, stale)
		}
		return ignored
	}
	c.state = REPReceived
	c.cancel()
	c.initiatorDepth, c.responderResources = p.ResponderResources, p.InitiatorDepth
	c.sqPSN, c.rnrRetryCount, c.targetACKDelay = p.StartingPSN, p.RNRRetryCount, p.TargetACKDelay
	c.av.timeout = ackTimeout(c.targetACKDelay, c.av.timeout-1)
	if c.altAV.valid {
		c.altAV.timeout = ackTimeout(c.targetACKDelay, c.altAV.timeout-1)
	}
	m.events.push(Event{Type: EventREPReceived, ID: c, PrivateData: p.PrivateData[:], REP: &ReplyReceived{
		RemoteCAGUID: p.LocalCAGUID, RemoteQKey: p.LocalQKey, RemoteQPN: c.remoteQPN, StartingPSN: p.StartingPSN,
		ResponderResources: p.InitiatorDepth, InitiatorDepth: p.ResponderResources,
		TargetACKDelay: p.TargetACKDelay, FailoverAccepted: p.FailoverAccepted, FlowControl: p.EndToEndFlowControl,
		RNRRetryCount: p.RNRRetryCount, SRQ: p.SRQ,
		ECE: ECE{
			VendorID: uint32(p.VendorIDH)<<16 | uint32(p.VendorIDM)<<8 | uint32(p.VendorIDL),
			AttrMod:  r.header.AttributeModifier,
		},
	}})
	return taken
}

// repeatRTU answers a REP that came before (cm_dup_rep_handler): the peer did
// not get the RTU or MRA.
func (m *Machine) repeatRTU(r *received, p *mad.ConnectReply) outcome {
	c := m.find(p.RemoteCommunicationID, p.LocalCommunicationID)
	if c == nil {
		return ignored
	}
	switch c.state {
	case Established:
		m.answer(r, RTU, c.tid, c.formatRTU())
	case MRAREPSent:
		m.answer(r, MRA, c.tid, c.formatMRA(mad.MRAMessageREP))
	}
	return duplicate
}

// ReadyToUse answers a REP with an RTU (ib_send_cm_rtu); the connection is
// established. When the REP comes again, so does the RTU.
func (c *ID) ReadyToUse(now time.Time, privateData []byte) error {
	const op = "send RTU"
	if err := c.checkData(op, len(privateData), MaxRTUData); err != nil {
		return err
	}
	if err := c.allow(op, REPReceived, MRAREPSent); err != nil {
		return err
	}
	c.setPrivateData(privateData)
	c.state = Established
	c.send(RTU, c.tid, 0, c.formatRTU())
	return nil
}

func (c *ID) formatRTU() *mad.ReadyToUse {
	p := &mad.ReadyToUse{LocalCommunicationID: c.localID, RemoteCommunicationID: c.remoteID}
	copy(p.PrivateData[:], c.privateData)
	return p
}
