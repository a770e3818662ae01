package softcma

import (
	"net/netip"
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// requested handles a REQ or SIDR_REQ: it makes an id for the listener that it is
// for (cma_ib_req_handler). On an error the CM's id is the caller's to end.
func (c *core) requested(now time.Time, e *cm.Event) error {
	r := request{event: e}
	if e.Type == cm.EventREQReceived {
		r.serviceID, r.pkey, r.gid = e.REQ.Primary.ServiceID, e.REQ.Primary.PKey, e.REQ.Primary.SGID
	} else {
		r.serviceID, r.pkey = e.SIDRREQ.ServiceID, e.SIDRREQ.PKey
	}
	listener, err := c.findListener(&r)
	if err != nil {
		return err
	}
	if !listener.takes(e) || listener.state != stateListen {
		return ucma.EINVAL
	}
	id := c.newID(listener.ctx, listener.ps, ucma.QPTypeUD)
	id.state = stateConnect
	if e.REQ != nil {
		id.qpType = ucma.QPType(e.REQ.QPType)
	}
	c.setAddresses(id, listener, &r)
	if !id.dev.infiniband && id.ps == ucma.PortSpaceIPoIB {
		return ucma.EINVAL
	}
	if !c.validPort(id) {
		return ucma.ENODEV
	}
	c.attach(id)
	id.conn = e.ID
	e.ID.Context = id
	if err := c.reportRequest(listener, id, r.toEvent(listener)); err != nil {
		id.conn = nil
		c.destroy(now, id)
		return err
	}
	if id.qpType != ucma.QPTypeUD {
		_ = e.ID.Acknowledge(now, &delayedReceipt) // none if the user answered already
	}
	return nil
}

// request is what a REQ or SIDR_REQ says to the RDMA CM (struct cma_req_info).
type request struct {
	event     *cm.Event
	serviceID uint64
	pkey      mad.PKey
	gid       mad.GID // own; zero in a SIDR_REQ
	ip        ipHeader
	isIB      bool // AF_IB: there is no IP header
}

// toEvent is the CONNECT_REQUEST.
func (r *request) toEvent(listener *cmid) event {
	data := r.event.PrivateData[listener.dataOffset():]
	q := r.event.REQ
	if q == nil {
		return event{typ: ucma.EventConnectRequest, ud: ucma.UDParam{PrivateData: data}}
	}
	return event{typ: ucma.EventConnectRequest, ece: q.ECE, conn: ucma.ConnParam{
		PrivateData: data, ResponderResources: q.ResponderResources, InitiatorDepth: q.InitiatorDepth,
		FlowControl: q.FlowControl, RetryCount: q.RetryCount, RNRRetryCount: q.RNRRetryCount, SRQ: q.SRQ, QPNum: q.RemoteQPN,
	}}
}

// findListener looks for who listens (cma_ib_id_from_event).
func (c *core) findListener(r *request) (*cmid, error) {
	var err error
	switch r.ip, err = parseIPHeader(r.event.PrivateData); err {
	case nil:
		if err := c.checkInterface(r); err != nil {
			return nil, err
		}
	case ucma.EAFNOSUPPORT:
		r.isIB = true
	default:
		return nil, err
	}
	b := c.binds[bindKey{ucma.PortSpace(r.serviceID >> 16), uint16(r.serviceID)}]
	if b == nil {
		return nil, ucma.EINVAL
	}
	for _, id := range b.owners {
		if id.matches(&r.ip) && id.conn == r.event.Listener && (!r.isIB || id.src.IB != nil) {
			return id, nil
		}
	}
	return nil, ucma.EINVAL
}

// checkInterface tells whether a request came by the interface that its IP
// addresses belong to (cma_get_net_dev, validate_net_dev).
func (c *core) checkInterface(r *request) error {
	if !c.cfg.RoCE && (r.pkey.Base() != c.ipoibPKey().Base() || !r.gid.IsZero() && r.gid != c.portGID()) {
		return ucma.ENODEV
	}
	here, there := r.ip.dst, r.ip.src
	if here.Is4() {
		broadcast := netip.AddrFrom4([4]byte{255, 255, 255, 255})
		for _, ip := range []netip.Addr{here, there} {
			if ip.As4()[0] == 0 || ip.IsLoopback() || ip == broadcast {
				return ucma.EHOSTUNREACH
			}
		}
		if here.IsMulticast() {
			return ucma.EHOSTUNREACH
		}
	}
	if _, ok := c.sourceTowards(there, false); !ok {
		return ucma.EHOSTUNREACH
	}
	return nil
}

// matches tells whether a listener is for these IP addresses
// (cma_match_private_data).
func (id *cmid) matches(h *ipHeader) bool {
	if isAny(id.src) && !id.afOnly {
		return true
	}
	version := uint8(4)
	switch id.src.Family() {
	case ucma.AFIB:
		return true
	case ucma.AFInet6:
		version = 6
	}
	return h.ipVersion == version && (isAny(id.src) || h.dst == id.src.IP.Addr())
}

// takes tells whether a listener is for requests of that type
// (cma_ib_check_req_qp_type).
func (id *cmid) takes(e *cm.Event) bool {
	if id.qpType == 0 {
		return true
	}
	if e.REQ != nil {
		return id.qpType == ucma.QPType(e.REQ.QPType)
	}
	return id.qpType == ucma.QPTypeUD
}

// setAddresses gives a new id its addresses and paths (cma_ib_new_conn_id,
// cma_ib_new_udp_id).
func (c *core) setAddresses(id, listener *cmid, r *request) {
	if q := r.event.REQ; q != nil {
		id.paths = []mad.PathRecord{q.Primary}
		if q.Alternate != nil {
			id.paths = append(id.paths, *q.Alternate)
		}
		id.dev.dgid = q.Primary.DGID
	}
	if listener.src.IB != nil {
		id.setIBAddresses(listener.src.IB)
	} else {
		id.src.IP = netip.AddrPortFrom(r.ip.dst, uint16(r.serviceID))
		id.dst.IP = netip.AddrPortFrom(r.ip.src, r.ip.port)
	}
	switch {
	case !r.isIB:
		c.useInterface(id)
		n, _ := c.neighbour(r.ip.src)
		id.dev.mac = macOf(n.GID.GUID())
	case isAny(id.src):
		id.dev.infiniband = !c.cfg.RoCE
		id.dev.sgid, id.dev.pkey = r.gid, r.pkey
	default:
		_ = c.translate(id, id.src) // an address of ours, or validPort tells
	}
}

// setIBAddresses is cma_save_ib_info. A SIDR_REQ names no paths: its id has the
// listener's own address, and nothing of the peer's.
func (id *cmid) setIBAddresses(listen *ucma.SockaddrIB) {
	src, dst := *listen, ucma.SockaddrIB{}
	if len(id.paths) > 0 {
		p := &id.paths[0]
		src = ucma.SockaddrIB{PKey: p.PKey, FlowInfo: p.FlowLabel, GID: p.SGID, ServiceID: p.ServiceID}
		dst = ucma.SockaddrIB{PKey: p.PKey, FlowInfo: p.FlowLabel, GID: p.DGID}
	}
	src.ServiceIDMask = ^uint64(0)
	id.src.IB, id.dst.IB = &src, &dst
}
