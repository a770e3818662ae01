package softcma

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// How the kernel's RDMA CM sets the CM (cma.c).
const (
	cmResponseTimeout = 20 // CMA_CM_RESPONSE_TIMEOUT: 4.096 us * 2^n
	maxCMRetries      = 15 // CMA_MAX_CM_RETRIES
	sidrTimeout       = (1 << (cmResponseTimeout - 8)) * time.Millisecond
)

// ipHeaderSize is the size of the header that IP addresses have in front of the
// private data of REQ and SIDR_REQ (struct cma_hdr, IBA annex A11).
const ipHeaderSize = 36

// ipHeader is that header, for each connection between IP addresses.
type ipHeader struct {
	version   uint8 // of the header
	ipVersion uint8
	port      uint16 // of the source
	src, dst  netip.Addr
}

// appendIPHeader is cma_format_hdr.
func appendIPHeader(b []byte, src, dst ucma.Sockaddr) []byte {
	var h [ipHeaderSize]byte
	h[1] = 6 << 4
	if src.Family() == ucma.AFInet {
		h[1] = 4 << 4
	}
	binary.BigEndian.PutUint16(h[2:], portOf(src))
	for i, ip := range []netip.Addr{src.IP.Addr(), dst.IP.Addr()} {
		raw := ip.AsSlice()
		copy(h[4+16*(i+1)-len(raw):], raw)
	}
	return append(b, h[:]...)
}

// parseIPHeader reads it as cma_save_ip_info does: EINVAL for another version of
// it, EAFNOSUPPORT where there is no IP address.
func parseIPHeader(b []byte) (h ipHeader, err error) {
	h = ipHeader{version: b[0], ipVersion: b[1] >> 4, port: binary.BigEndian.Uint16(b[2:])}
	switch {
	case h.version != 0:
		return h, ucma.EINVAL
	case h.ipVersion == 4:
		h.src, h.dst = netip.AddrFrom4([4]byte(b[16:])), netip.AddrFrom4([4]byte(b[32:]))
	case h.ipVersion == 6:
		h.src, h.dst = netip.AddrFrom16([16]byte(b[4:])), netip.AddrFrom16([16]byte(b[20:]))
	default:
		return h, ucma.EAFNOSUPPORT
	}
	return h, nil
}

// dataOffset is how much of the private data is the header's
// (cma_user_data_offset).
func (id *cmid) dataOffset() int {
	if id.src.IB != nil {
		return 0
	}
	return ipHeaderSize
}

// privateData is that of a REQ or SIDR_REQ. Its length must fit in a byte.
func (id *cmid) privateData(user []byte) ([]byte, error) {
	if id.dataOffset()+len(user) > 0xff {
		return nil, ucma.EINVAL
	}
	var data []byte
	if id.src.IB == nil {
		data = appendIPHeader(nil, id.src, id.dst)
	}
	return append(data, user...), nil
}

// errnoOf is the errno that the CM's error stands for.
func errnoOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cm.ErrConnected):
		return ucma.EISCONN
	case errors.Is(err, cm.ErrNoPKey):
		return ucma.ENOENT
	}
	return ucma.EINVAL
}

// connect is rdma_connect.
func (c *core) connect(now time.Time, id *cmid, p *ucma.ConnParam) error {
	if !id.become(stateRouteResolved, stateConnect) {
		return ucma.EINVAL
	}
	id.setQP(p)
	err := c.sendRequest(now, id, p)
	if err != nil {
		id.state = stateRouteResolved
	}
	return err
}

// setQP takes what the user says of the queue pair.
func (id *cmid) setQP(p *ucma.ConnParam) { id.qpn, id.srq = p.QPNum&0xffffff, p.SRQ }

func (c *core) sendRequest(now time.Time, id *cmid, p *ucma.ConnParam) error {
	data, err := id.privateData(p.PrivateData)
	if err != nil {
		return err
	}
	conn := c.cm.NewID()
	conn.Context = id
	path := c.forCM(id.paths[0])
	if id.qpType == ucma.QPTypeUD {
		err = conn.RequestSIDR(now, &cm.SIDRRequest{
			Path: path, ServiceID: id.serviceID(id.dst), Timeout: sidrTimeout, MaxCMRetries: maxCMRetries, PrivateData: data,
		})
	} else {
		err = conn.Connect(now, &cm.Request{
			Primary: path, ServiceID: id.serviceID(id.dst), QPN: id.qpn, QPType: cm.QPType(id.qpType), StartingPSN: id.seqNum,
			ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth,
			RemoteCMResponseTimeout: cmResponseTimeout, LocalCMResponseTimeout: cmResponseTimeout, MaxCMRetries: maxCMRetries,
			FlowControl: p.FlowControl, RetryCount: min(p.RetryCount, 7), RNRRetryCount: min(p.RNRRetryCount, 7),
			SRQ: id.srq, ECE: id.ece, PrivateData: data,
		})
	}
	if err != nil {
		conn.Destroy(now)
		return errnoOf(err)
	}
	id.conn, id.active = conn, true
	return nil
}

// listen is rdma_listen.
func (c *core) listen(id *cmid) error {
	if !id.become(stateAddrBound, stateListen) {
		if err := c.bind(id, unspecified(ucma.AFInet, 0)); err != nil {
			return err
		}
		id.state = stateListen
	}
	err := c.startListen(id)
	if err != nil {
		id.state = stateAddrBound
	}
	return err
}

func (c *core) startListen(id *cmid) error {
	if id.reuseAddr { // who listens does not share its port number
		if err := id.bound.check(id, false); err != nil {
			return err
		}
		id.reuseAddr = false
	}
	if !id.hasDev && c.gone {
		return nil // on no device
	}
	conn, err := c.cm.Listen(id.serviceID(id.src))
	if err != nil {
		return errnoOf(err)
	}
	id.conn = conn
	return nil
}

// accept is rdma_accept; p is nil to accept a response.
func (c *core) accept(now time.Time, id *cmid, p *ucma.ConnParam) error {
	if id.state != stateConnect {
		return ucma.EINVAL
	}
	if p != nil {
		id.setQP(p)
	}
	var err error
	switch {
	case id.qpType == ucma.QPTypeUD:
		if p == nil {
			p = &ucma.ConnParam{}
		}
		err = id.replySIDR(now, mad.SIDRStatusOK, p.QKey, p.PrivateData)
	case p == nil:
		if err = errnoOf(id.conn.ReadyToUse(now, nil)); err != nil {
			id.reject(now, mad.RejectConsumerDefined, nil) // the first of two (cma_rep_recv)
		}
	default:
		err = errnoOf(id.conn.Reply(now, &cm.Reply{
			QPN: id.qpn, StartingPSN: id.seqNum, ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth,
			FlowControl: p.FlowControl, RNRRetryCount: min(p.RNRRetryCount, 7), SRQ: id.srq, ECE: id.ece, PrivateData: p.PrivateData,
		}))
	}
	if err != nil {
		id.reject(now, mad.RejectConsumerDefined, nil)
	}
	return err
}

// replySIDR is cma_send_sidr_rep.
func (id *cmid) replySIDR(now time.Time, status mad.SIDRStatus, qkey uint32, data []byte) error {
	r := cm.SIDRReply{Status: status, PrivateData: data}
	if status == mad.SIDRStatusOK {
		if qkey == 0 {
			id.setDefaultQKey()
		} else if !id.setQKey(qkey) {
			return ucma.EINVAL
		}
		r.QPN, r.QKey, r.ECE = id.qpn, id.qkey, id.ece
	}
	return errnoOf(id.conn.ReplySIDR(now, &r))
}

// reject is rdma_reject.
func (id *cmid) reject(now time.Time, reason mad.RejectReason, data []byte) error {
	switch {
	case id.conn == nil:
		return ucma.EINVAL
	case id.qpType == ucma.QPTypeUD:
		return id.replySIDR(now, mad.SIDRStatusRejected, 0, data)
	}
	return errnoOf(id.conn.Reject(now, &cm.Rejection{Reason: reason, PrivateData: data}))
}

// disconnect is rdma_disconnect: it asks for the end, or answers who asked. What
// is not connected is left as it is, without an error.
func (id *cmid) disconnect(now time.Time) error {
	if id.conn == nil {
		return ucma.EINVAL
	}
	if id.conn.Disconnect(now, nil) != nil {
		_ = id.conn.ReplyDisconnect(now, nil)
	}
	return nil
}

// notify is rdma_notify, of a channel adapter.
func (id *cmid) notify(now time.Time, what uint32) error {
	const commEst, pathMig = 4, 6 // enum ib_event_type
	if id.conn == nil {
		return ucma.EINVAL
	}
	switch what {
	case commEst:
		return errnoOf(id.conn.Established(now))
	case pathMig:
		err := id.conn.PathMigrated(now)
		if err != nil && id.conn.State() == cm.Established && id.conn.LAPState() <= cm.LAPIdle {
			err = nil // there is no alternate path, which the kernel does not mind
		}
		return errnoOf(err)
	}
	return ucma.EINVAL
}
