package cm

import (
	"time"

	"github.com/ibsm/ibsm/mad"
)

// LoadAlternatePath sends a LAP, and again until an APR comes. The connection
// must be established and no LAP under way, and the link not Ethernet, where
// there is no LAP.
func (c *ID) LoadAlternatePath(now time.Time, r *AlternatePath) error {
	const op = "send LAP"
	if err := c.checkData(op, len(r.PrivateData), MaxLAPData); err != nil {
		return err
	}
	if err := c.allowPath(op); err != nil {
		return err
	}
	if c.m.roce() {
		return c.refuse(op, "there are no alternate paths on Ethernet")
	}
	alternate, err := c.m.pathAV(op, &r.Path, -1)
	if err != nil {
		return err
	}
	alternate.timeout = ackTimeout(c.targetACKDelay, alternate.timeout-1)
	w := c.m.wirePath(&r.Path)
	p := &mad.LoadAlternatePath{
		LocalCommunicationID: c.localID, RemoteCommunicationID: c.remoteID, RemoteQPNEECN: c.remoteQPN,
		RemoteCMResponseTimeout: r.RemoteCMResponseTimeout,
		AlternateLocalPortGID:   r.Path.SGID, AlternateRemotePortGID: r.Path.DGID,
		AlternateLocalPortLID: w.local, AlternateRemotePortLID: w.remote, AlternateSubnetLocal: w.subnetLocal,
		AlternateFlowLabel: r.Path.FlowLabel, AlternateTrafficClass: r.Path.TClass, AlternateHopLimit: r.Path.HopLimit,
		AlternatePacketRate: r.Path.Rate, AlternateSL: r.Path.SL, AlternateLocalACKTimeout: w.ackTimeout,
	}
	copy(p.PrivateData[:], r.PrivateData)
	c.altAV, c.lapState = alternate, LAPSent
	c.request(now, LAP, c.newTID(), 0, p, c.timeout)
	return nil
}

// allowPath refuses what must not happen while a LAP is under way.
func (c *ID) allowPath(op string) error {
	if err := c.allow(op, Established); err != nil {
		return err
	}
	if c.lapState != LAPUninit && c.lapState != LAPIdle {
		return c.refuse(op, "a LAP is under way")
	}
	return nil
}

// receiveLAP is cm_lap_handler. The LAP's source is from now on where messages
// go, and its path the alternate one, even if the LAP is a duplicate.
func (m *Machine) receiveLAP(r *received) outcome {
	var p mad.LoadAlternatePath
	p.DecodeFrom(r.data)
	c := m.find(p.RemoteCommunicationID, p.LocalCommunicationID)
	if c == nil || m.roce() {
		return ignored
	}
	path := &mad.PathRecord{
		DGID: p.AlternateLocalPortGID, SGID: p.AlternateRemotePortGID, DLID: p.AlternateLocalPortLID, SLID: p.AlternateRemotePortLID,
		FlowLabel: p.AlternateFlowLabel, HopLimit: p.AlternateHopLimit, TClass: p.AlternateTrafficClass, Reversible: true,
		PKey: c.pkey, SL: p.AlternateSL,
		MTUSelector: mad.SelectorExactly, MTU: c.pathMTU,
		RateSelector: mad.SelectorExactly, Rate: p.AlternatePacketRate,
		PacketLifeTimeSelector: mad.SelectorExactly, PacketLifeTime: lifeTime(p.AlternateLocalACKTimeout),
	}
	alternate, err := m.pathAV("", path, -1)
	if err != nil {
		return ignored
	}
	c.av.addr, c.av.pkey, c.av.rate, c.altAV = r.from, r.pkey, 0, alternate
	switch {
	case c.state != Established:
		return ignored
	case c.lapState == MRALAPSent:
		m.answer(r, MRA, c.tid, c.formatMRA(mad.MRAMessageLAP))
		return duplicate
	case c.lapState == LAPReceived:
		return duplicate
	case c.lapState != LAPUninit && c.lapState != LAPIdle:
		return ignored
	}
	c.lapState, c.tid = LAPReceived, r.header.TransactionID
	m.events.push(Event{Type: EventLAPReceived, ID: c, PrivateData: p.PrivateData[:], AlternatePath: path})
	return taken
}

// ReplyAlternatePath answers a LAP with an APR.
func (c *ID) ReplyAlternatePath(_ time.Time, r *AlternatePathReply) error {
	const op = "send APR"
	if err := c.checkData(op, len(r.PrivateData), MaxAPRData); err != nil {
		return err
	}
	if err := c.checkInfo(op, len(r.Info)); err != nil {
		return err
	}
	if err := c.allow(op, Established); err != nil {
		return err
	}
	if c.lapState != LAPReceived && c.lapState != MRALAPSent {
		return c.refuse(op, "there is no LAP without an answer")
	}
	p := &mad.AlternatePathResponse{
		LocalCommunicationID: c.localID, RemoteCommunicationID: c.remoteID,
		APStatus: r.Status, AdditionalInformationLength: uint8(len(r.Info)),
	}
	copy(p.AdditionalInformation[:], r.Info)
	copy(p.PrivateData[:], r.PrivateData)
	c.lapState = LAPIdle
	c.send(APR, c.tid, 0, p)
	return nil
}

// receiveAPR is cm_apr_handler.
func (m *Machine) receiveAPR(r *received) outcome {
	var p mad.AlternatePathResponse
	p.DecodeFrom(r.data)
	c := m.find(p.RemoteCommunicationID, p.LocalCommunicationID)
	if c == nil || c.state != Established || c.lapState != LAPSent && c.lapState != MRALAPReceived {
		return ignored
	}
	c.cancel()
	c.lapState = LAPIdle
	m.events.push(Event{Type: EventAPRReceived, ID: c, PrivateData: p.PrivateData[:], APR: &AlternatePathReplied{
		Status: p.APStatus, Info: p.AdditionalInformation[:min(p.AdditionalInformationLength, MaxInfo)],
	}})
	return taken
}

// PathMigrated tells that the connection now uses the alternate path
// (ib_cm_notify, PATH_MIG).
func (c *ID) PathMigrated(time.Time) error {
	const op = "notify of PATH_MIG"
	if err := c.allowPath(op); err != nil {
		return err
	}
	if !c.altAV.valid {
		return c.refuse(op, "the connection has no alternate path")
	}
	c.lapState, c.av = LAPIdle, c.altAV
	return nil
}
