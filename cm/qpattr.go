package cm

import "github.com/ibsm/ibsm/mad"

// QPState is a state of a queue pair, by the numbers of enum ib_qp_state.
type QPState uint8

// States that a connection moves its queue pair to.
const (
	QPInit QPState = 1
	QPRTR  QPState = 2 // ready to receive
	QPRTS  QPState = 3 // ready to send
)

// QPMask says which members of a QPAttr count, by the bits of enum
// ib_qp_attr_mask.
type QPMask uint32

// Bits of a QPMask.
const (
	MaskState           QPMask = 1 << 0
	MaskAccessFlags     QPMask = 1 << 3
	MaskPKeyIndex       QPMask = 1 << 4
	MaskPort            QPMask = 1 << 5
	MaskAV              QPMask = 1 << 7
	MaskPathMTU         QPMask = 1 << 8
	MaskTimeout         QPMask = 1 << 9
	MaskRetryCount      QPMask = 1 << 10
	MaskRNRRetry        QPMask = 1 << 11
	MaskRQPSN           QPMask = 1 << 12
	MaskMaxRDAtomic     QPMask = 1 << 13
	MaskAltPath         QPMask = 1 << 14
	MaskMinRNRTimer     QPMask = 1 << 15
	MaskSQPSN           QPMask = 1 << 16
	MaskMaxDestRDAtomic QPMask = 1 << 17
	MaskPathMigState    QPMask = 1 << 18
	MaskDestQPN         QPMask = 1 << 20
)

// Access flags of a QPAttr (enum ib_access_flags).
const (
	AccessRemoteWrite     = 1 << 1
	AccessRemoteRead      = 1 << 2
	AccessRemoteAtomic    = 1 << 3
	AccessFlushGlobal     = 1 << 8
	AccessFlushPersistent = 1 << 9
)

// MigRearm is the path migration state that a QPAttr asks for (IB_MIG_REARM).
const MigRearm = 1

// AH is the address of a path (struct rdma_ah_attr).
type AH struct {
	Addr mad.AddressVector // its QPN is not the path's
	Rate mad.Rate
	Port uint8 // the own one
}

// QPAttr are attributes of a queue pair (struct ib_qp_attr).
type QPAttr struct {
	Mask            QPMask
	State           QPState
	AccessFlags     uint32
	PKeyIndex       uint16
	Port            uint8
	AV              AH
	PathMTU         mad.MTU
	DestQPN         uint32
	RQPSN           uint32
	SQPSN           uint32
	MaxDestRDAtomic uint8
	MaxRDAtomic     uint8
	MinRNRTimer     uint8
	RetryCount      uint8
	RNRRetry        uint8
	Timeout         uint8 // 4.096 us * 2^n
	AltPath         AH
	AltPKeyIndex    uint16
	AltTimeout      uint8
	PathMigState    uint8
}

// QPAttr gives the attributes that move the queue pair to a state: Init, RTR or
// RTS (ib_cm_init_qp_attr). Init may be asked for from the REQ on, RTR and RTS
// once the peer's REQ or REP is here. After a LAP, RTS gives the alternate path
// alone.
func (c *ID) QPAttr(state QPState) (QPAttr, error) {
	const op = "queue pair attributes"
	a := QPAttr{State: state}
	if state == QPInit {
		if err := c.allow(op, REQSent, MRAREQReceived, REQReceived, MRAREQSent, REPReceived, MRAREPSent, REPSent, MRAREPReceived, Established); err != nil {
			return QPAttr{}, err
		}
		c.initAttr(&a)
		return a, nil
	}
	if state != QPRTR && state != QPRTS {
		return QPAttr{}, c.refuse(op, "the queue pair's state must be Init, RTR or RTS")
	}
	if err := c.allow(op, REQReceived, MRAREQSent, REPReceived, MRAREPSent, REPSent, MRAREPReceived, Established); err != nil {
		return QPAttr{}, err
	}
	if state == QPRTR {
		c.rtrAttr(&a)
	} else {
		c.rtsAttr(&a)
	}
	return a, nil
}

// initAttr is cm_init_qp_init_attr.
func (c *ID) initAttr(a *QPAttr) {
	a.Mask = MaskState | MaskAccessFlags | MaskPKeyIndex | MaskPort
	a.AccessFlags = AccessRemoteWrite
	if c.responderResources > 0 {
		a.AccessFlags |= AccessRemoteRead | AccessRemoteAtomic
		if c.m.cfg.Flush {
			a.AccessFlags |= AccessFlushGlobal | AccessFlushPersistent
		}
	}
	a.PKeyIndex, a.Port = c.av.addr.PKeyIndex, c.m.cfg.Info.Port
}

// rtrAttr is cm_init_qp_rtr_attr.
func (c *ID) rtrAttr(a *QPAttr) {
	a.Mask = MaskState | MaskAV | MaskPathMTU | MaskDestQPN | MaskRQPSN
	a.AV = c.m.ah(&c.av)
	if lid := c.av.dlidDatapath; lid != 0 && lid != mad.PermissiveLID {
		a.AV.Addr.LID = lid
	}
	a.PathMTU, a.DestQPN, a.RQPSN = c.pathMTU, c.remoteQPN, c.rqPSN
	if c.qpType == RC || c.qpType == XRCTarget {
		a.Mask |= MaskMaxDestRDAtomic | MaskMinRNRTimer
		a.MaxDestRDAtomic = c.responderResources
	}
	if c.altAV.addr.LID != 0 {
		a.Mask |= MaskAltPath
		c.altAttr(a)
	}
}

// rtsAttr is cm_init_qp_rts_attr.
func (c *ID) rtsAttr(a *QPAttr) {
	if c.lapState != LAPUninit {
		a.Mask = MaskAltPath | MaskPathMigState
		c.altAttr(a)
		a.PathMigState = MigRearm
		return
	}
	a.Mask, a.SQPSN = MaskState|MaskSQPSN, c.sqPSN
	if c.qpType == RC || c.qpType == XRCInitiator {
		a.Mask |= MaskRetryCount | MaskRNRRetry | MaskMaxRDAtomic
		a.RetryCount, a.RNRRetry, a.MaxRDAtomic = c.retryCount, c.rnrRetryCount, c.initiatorDepth
	}
	if c.qpType == RC || c.qpType == XRCInitiator || c.qpType == XRCTarget {
		a.Mask |= MaskTimeout
		a.Timeout = c.av.timeout
	}
	if c.altAV.addr.LID != 0 {
		a.Mask |= MaskPathMigState
		a.PathMigState = MigRearm
	}
}

func (c *ID) altAttr(a *QPAttr) {
	a.AltPath, a.AltPKeyIndex, a.AltTimeout = c.m.ah(&c.altAV), c.altAV.addr.PKeyIndex, c.altAV.timeout
}
