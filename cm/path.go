package cm

import (
	"slices"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// av is where a connection's messages go (struct cm_av).
type av struct {
	valid        bool
	addr         mad.AddressVector
	pkey         mad.PKey
	rate         mad.Rate
	timeout      uint8   // of the queue pair, and for timewait: 4.096 us * 2^n
	dlidDatapath mad.LID // for the queue pair, where it is not addr's
}

// duration approximates 4.096 us * 2^n as the kernel does (cm_convert_to_ms).
// From 31 on, which no message can say, it stays the same.
func duration(n uint8) time.Duration {
	return time.Millisecond << max(int(min(n, 31))-8, 0)
}

// ackTimeout joins the ACK delay of an adapter and the packet life time to what
// a queue pair waits for an ACK (cm_ack_timeout): the larger of the delay and
// the way there and back, and one more if the other is near.
func ackTimeout(delay, lifeTime uint8) uint8 {
	way, d := int(lifeTime)+1, int(delay)
	t := max(way, d)
	if min(way, d) >= t-1 {
		t++
	}
	return uint8(min(t, 31))
}

func (m *Machine) roce() bool { return m.cfg.Info.LinkLayer == port.LinkEthernet }

// answerTo makes an answer's address of that of a received MAD
// (ib_init_ah_attr_from_wc). It goes to QP1 whatever the source. On Ethernet the
// hop limit is that of the host's route (ib_resolve_unicast_gid_dmac), which the
// received address says.
func (m *Machine) answerTo(from mad.AddressVector) mad.AddressVector {
	from.QPN = mad.QPGSI
	if from.HasGRH && !m.roce() {
		from.GRH.HopLimit = 0xff
	}
	return from
}

// AH gives the address of a path that begins at the port
// (ib_init_ah_attr_from_path): with a GRH if it has a hop limit or the link is
// Ethernet, which has no LIDs.
//
// Errors: ErrInvalid if the port does not have its SGID, ErrNoPKey if it does
// not have its P_Key.
func (m *Machine) AH(path *mad.PathRecord) (AH, error) {
	a, err := m.pathAV("address", path, -1)
	if err != nil {
		return AH{}, err
	}
	return m.ah(&a), nil
}

func (m *Machine) ah(a *av) AH { return AH{Addr: a.addr, Rate: a.rate, Port: m.cfg.Info.Port} }

// pathAV makes the av of a path (cm_init_av_by_path) for an operation. sgidIndex
// is -1 if the path's SGID must be looked up.
func (m *Machine) pathAV(op string, path *mad.PathRecord, sgidIndex int) (av, error) {
	if sgidIndex < 0 {
		if sgidIndex = slices.Index(m.cfg.Info.GIDs, path.SGID); sgidIndex < 0 || path.SGID.IsZero() {
			return av{}, &Error{Op: op, Reason: "the path begins at " + path.SGID.String() + ", which is no GID of the port", Err: ErrInvalid}
		}
	}
	pkeyIndex, pkey := m.findPKey(path.PKey)
	if pkeyIndex < 0 {
		return av{}, &Error{Op: op, Reason: "the path's P_Key " + path.PKey.String() + " is not in the port's table", Err: ErrNoPKey}
	}
	a := av{valid: true, pkey: pkey, rate: path.Rate, timeout: path.PacketLifeTime + 1}
	a.addr = mad.AddressVector{
		QPN: mad.QPGSI, SL: path.SL, PKeyIndex: uint16(pkeyIndex), HasGRH: m.roce() || path.HopLimit > 0,
	}
	if !m.roce() {
		a.addr.LID = path.DLID
		a.addr.PathBits = uint8(path.SLID) & (1<<m.cfg.Info.LMC - 1)
	}
	if a.addr.HasGRH {
		a.addr.GRH = mad.GRH{
			GID: path.DGID, GIDIndex: uint8(sgidIndex), HopLimit: path.HopLimit,
			TrafficClass: path.TClass, FlowLabel: path.FlowLabel,
		}
	}
	return a, nil
}

// findPKey looks a P_Key up without its membership, and takes a full member
// first (ib_find_cached_pkey). A port without a table has all.
func (m *Machine) findPKey(key mad.PKey) (int, mad.PKey) {
	table := m.cfg.Info.PKeys
	if len(table) == 0 {
		return 0, key
	}
	match := -1
	for i, k := range table {
		if k.Base() != key.Base() || k.Base() == 0 {
			continue
		}
		if k.IsFull() {
			return i, k
		}
		match = i
	}
	if match < 0 {
		return match, 0
	}
	return match, table[match]
}

// useSourceOfRouted puts the LIDs that a REQ from another subnet came by where it
// could not know them (cm_process_routed_req).
func useSourceOfRouted(req *mad.ConnectRequest, from *mad.AddressVector) {
	if !req.PrimarySubnetLocal {
		if req.PrimaryLocalPortLID == mad.PermissiveLID {
			req.PrimaryLocalPortLID, req.PrimarySL = from.LID, from.SL
		}
		if req.PrimaryRemotePortLID == mad.PermissiveLID {
			req.PrimaryRemotePortLID = mad.LID(from.PathBits)
		}
	}
	if !req.AlternateSubnetLocal {
		if req.AlternateLocalPortLID == mad.PermissiveLID {
			req.AlternateLocalPortLID, req.AlternateSL = from.LID, from.SL
		}
		if req.AlternateRemotePortLID == mad.PermissiveLID {
			req.AlternateRemotePortLID = mad.LID(from.PathBits)
		}
	}
}

// lifeTime is the packet life time that an ACK timeout of a message stands for.
func lifeTime(ackTimeout uint8) uint8 { return ackTimeout - min(ackTimeout, 1) }

// primaryPath is the primary path of a REQ, as seen from here
// (cm_format_paths_from_req).
func (m *Machine) primaryPath(req *mad.ConnectRequest, from *mad.AddressVector) mad.PathRecord {
	p := mad.PathRecord{
		ServiceID: req.ServiceID, DGID: req.PrimaryLocalPortGID, SGID: req.PrimaryRemotePortGID,
		FlowLabel: req.PrimaryFlowLabel, TClass: req.PrimaryTrafficClass, Reversible: true,
		PKey: req.PartitionKey, SL: req.PrimarySL,
		MTUSelector: mad.SelectorExactly, MTU: req.PathPacketPayloadMTU,
		RateSelector: mad.SelectorExactly, Rate: req.PrimaryPacketRate,
		PacketLifeTimeSelector: mad.SelectorExactly, PacketLifeTime: lifeTime(req.PrimaryLocalACKTimeout),
	}
	// The hop limit is that of the way back, not of the REQ.
	if from.HasGRH {
		p.HopLimit = from.GRH.HopLimit
	}
	if !m.roce() {
		p.DLID, p.SLID = from.LID, req.PrimaryRemotePortLID
	}
	return p
}

// alternatePath is the alternate path of a REQ, as seen from here, or nil
// (cm_req_has_alt_path).
func (m *Machine) alternatePath(req *mad.ConnectRequest) *mad.PathRecord {
	if req.AlternateLocalPortLID == 0 {
		return nil
	}
	p := &mad.PathRecord{
		ServiceID: req.ServiceID, DGID: req.AlternateLocalPortGID, SGID: req.AlternateRemotePortGID,
		FlowLabel: req.AlternateFlowLabel, HopLimit: req.AlternateHopLimit, TClass: req.AlternateTrafficClass, Reversible: true,
		PKey: req.PartitionKey, SL: req.AlternateSL,
		MTUSelector: mad.SelectorExactly, MTU: req.PathPacketPayloadMTU,
		RateSelector: mad.SelectorExactly, Rate: req.AlternatePacketRate,
		PacketLifeTimeSelector: mad.SelectorExactly, PacketLifeTime: lifeTime(req.AlternateLocalACKTimeout),
	}
	if !m.roce() {
		p.DLID, p.SLID = req.AlternateLocalPortLID, req.AlternateRemotePortLID
	}
	return p
}

// wirePath is what messages say of an own path beside what it holds itself.
type wirePath struct {
	local, remote mad.LID
	subnetLocal   bool
	ackTimeout    uint8
}

// wirePath leaves the LIDs of a path through a router to the receiver
// (cm_format_req).
func (m *Machine) wirePath(p *mad.PathRecord) wirePath {
	w := wirePath{
		local: mad.PermissiveLID, remote: mad.PermissiveLID, subnetLocal: p.HopLimit <= 1,
		ackTimeout: ackTimeout(m.cfg.AckDelay, p.PacketLifeTime),
	}
	if w.subnetLocal {
		w.local, w.remote = p.SLID, p.DLID
		if m.roce() {
			w.local, w.remote = 0, 0
		}
	}
	return w
}
