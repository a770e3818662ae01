package softcma

import (
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// event is what an id reports (struct rdma_cm_event).
type event struct {
	typ    ucma.EventType
	status int32 // of a REJ or SIDR_REP
	err    error // an Errno, in place of status
	conn   ucma.ConnParam
	ud     ucma.UDParam
	ece    cm.ECE
	mc     *mcast
}

// settle handles what the CM has to tell.
func (c *core) settle(now time.Time) {
	for {
		e, ok := c.cm.Event()
		if !ok {
			return
		}
		c.handle(now, e)
	}
}

func (c *core) handle(now time.Time, e cm.Event) {
	switch e.Type {
	case cm.EventREQReceived, cm.EventSIDRREQReceived:
		switch err := c.requested(now, &e); err {
		case nil:
		case ucma.ENOMEM:
			e.ID.Discard(now) // the peer will try again
		default:
			e.ID.Destroy(now)
		}
	case cm.EventSIDRREQError, cm.EventSIDRREPReceived:
		c.sidrReplied(now, &e)
	default:
		c.connEvent(now, &e)
	}
}

// The MRA that the kernel answers a repeated REQ or REP with (CMA_CM_MRA_SETTING).
var delayedReceipt = cm.Receipt{ServiceTimeout: 24, Delay: true}

// connEvent handles an event of a connection (cma_ib_handler).
func (c *core) connEvent(now time.Time, e *cm.Event) {
	id, _ := e.ID.Context.(*cmid)
	if id == nil {
		return
	}
	want := stateConnect
	if e.Type == cm.EventTimewaitExit {
		want = stateDisconnect
	}
	if id.state != want {
		return
	}
	var ev event
	switch e.Type {
	case cm.EventREQError, cm.EventREPError:
		ev = event{typ: ucma.EventUnreachable, err: ucma.ETIMEDOUT}
	case cm.EventREPReceived:
		ev = event{typ: ucma.EventConnectResponse, ece: e.REP.ECE, conn: ucma.ConnParam{
			PrivateData: e.PrivateData, ResponderResources: e.REP.ResponderResources, InitiatorDepth: e.REP.InitiatorDepth,
			FlowControl: e.REP.FlowControl, RNRRetryCount: e.REP.RNRRetryCount, SRQ: e.REP.SRQ, QPNum: e.REP.RemoteQPN,
		}}
		if id.ctx.file.isIllumos() {
			e.ID.ReadyToUse(now, nil) // cannot fail: the REP has just come
		} else {
			e.ID.Acknowledge(now, &delayedReceipt) // likewise
		}
	case cm.EventRTUReceived, cm.EventUserEstablished:
		ev.typ = ucma.EventEstablished
	case cm.EventDREQError, cm.EventDREQReceived, cm.EventDREPReceived:
		id.state = stateDisconnect
		ev.typ = ucma.EventDisconnected
		if e.Type == cm.EventDREQError {
			ev.err = ucma.ETIMEDOUT
		}
	case cm.EventTimewaitExit:
		ev.typ = ucma.EventTimewaitExit
	case cm.EventREJReceived:
		ev = event{typ: ucma.EventRejected, status: int32(e.REJ.Reason), conn: ucma.ConnParam{PrivateData: e.PrivateData}}
	default: // MRA, LAP and APR
		return
	}
	c.report(id, ev)
}

// sidrReplied is cma_sidr_rep_handler.
func (c *core) sidrReplied(now time.Time, e *cm.Event) {
	id, _ := e.ID.Context.(*cmid)
	if id == nil || id.state != stateConnect {
		return
	}
	ev := event{typ: ucma.EventUnreachable, err: ucma.ETIMEDOUT}
	if e.Type == cm.EventSIDRREPReceived {
		ev.err = nil
		ev.ud.PrivateData = e.PrivateData
		switch {
		case e.SIDRREP.Status != mad.SIDRStatusOK:
			ev.status = int32(e.SIDRREP.Status)
		case !id.setQKey(e.SIDRREP.QKey):
			ev.typ, ev.err = ucma.EventAddrError, ucma.EINVAL
		default:
			ev.typ = ucma.EventEstablished
			ev.ud.QPNum, ev.ud.QKey = e.SIDRREP.QPN, e.SIDRREP.QKey
			path := c.forCM(id.paths[0])
			if ah, err := c.cm.AH(&path); err == nil {
				ev.ud.AH = ahAttr(&ah)
			}
		}
	}
	c.report(id, ev)
}

// setQKey is cma_set_qkey.
func (id *cmid) setQKey(qkey uint32) bool {
	if qkey == 0 || id.qkey != 0 && id.qkey != qkey {
		return false
	}
	id.qkey = qkey
	return true
}

// Q_Keys of datagram ids (RDMA_UDP_QKEY), and of IPoIB's broadcast group.
const (
	udpQKey   = 0x01234567
	ipoibQKey = 0x0b1b
)

// setDefaultQKey is cma_set_default_qkey, on a host whose IPoIB interface is up.
func (id *cmid) setDefaultQKey() {
	switch id.ps {
	case ucma.PortSpaceUDP, ucma.PortSpaceIB:
		id.qkey = udpQKey
	case ucma.PortSpaceIPoIB:
		id.qkey = ipoibQKey
	}
}

// removed takes the device away (cma_process_remove): each id that is attached
// reports it, and a listener of all devices stops to listen on this one.
func (c *core) removed(now time.Time) {
	if c.gone {
		return
	}
	c.gone = true
	for len(c.attached) > 0 {
		id := c.attached[0]
		c.attached = c.attached[1:]
		id.hasDev = false
		c.cancel(id)
		id.state = stateRemoved
		c.report(id, event{typ: ucma.EventDeviceRemoval})
		id.ctx.closeID(c, now)
	}
	for _, b := range c.binds {
		for _, id := range b.owners {
			if id.conn != nil {
				id.conn.Destroy(now)
				id.conn = nil
			}
		}
	}
	clear(c.groups)
}
