package cm

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// State is the state of an id, by the numbers of enum ib_cm_state (IBA 12.9.5).
type State uint8

// States of an id. In MRAREQSent and MRAREPSent, we acknowledged a REQ or REP;
// in MRAREQReceived and MRAREPReceived, the peer did.
const (
	Idle State = iota
	Listening
	REQSent
	REQReceived
	MRAREQSent
	MRAREQReceived
	REPSent
	REPReceived
	MRAREPSent
	MRAREPReceived
	Established
	DREQSent
	DREQReceived
	Timewait
	SIDRREQSent
	SIDRREQReceived
)

var stateNames = [...]string{
	"idle", "listening", "REQ sent", "REQ received", "MRA for REQ sent", "MRA for REQ received",
	"REP sent", "REP received", "MRA for REP sent", "MRA for REP received",
	"established", "DREQ sent", "DREQ received", "timewait", "SIDR_REQ sent", "SIDR_REQ received",
}

// String says the state in words.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown state"
}

// LAPState is the state of an established connection's alternate path, by the
// numbers of enum ib_cm_lap_state (IBA 12.9.8).
type LAPState uint8

// States of an alternate path: none was loaded since the REQ, nothing is under
// way, and as of a connection.
const (
	LAPUninit LAPState = iota
	LAPIdle
	LAPSent
	LAPReceived
	MRALAPSent
	MRALAPReceived
)

// ID is a communication id (struct ib_cm_id). A method that its state does not
// allow, or that is given what cannot be sent, returns an [*Error] and changes
// nothing.
type ID struct {
	// Context is the consumer's. An id made by a REQ or SIDR_REQ has that of its
	// listener.
	Context any

	m         *Machine
	seq       uint32 // order of making
	state     State
	lapState  LAPState
	localID   uint32
	remoteID  uint32
	serviceID uint64
	hidden    bool // no message finds it: a listener, or made by a SIDR_REQ
	destroyed bool
	listens   int // calls of Listen

	timer   timer  // of pending, or of timewait
	pending *retry // what is sent until it is answered
	tid     uint64 // of the last request, which answers repeat
	av      av
	altAV   av

	qpType             QPType
	localQPN           uint32
	remoteQPN          uint32
	remoteGUID         mad.GUID
	sqPSN, rqPSN       uint32
	timeout            time.Duration // of each try
	maxRetries         uint8
	pathMTU            mad.MTU
	pkey               mad.PKey
	responderResources uint8
	initiatorDepth     uint8
	retryCount         uint8
	rnrRetryCount      uint8
	serviceTimeout     uint8 // of the MRA
	targetACKDelay     uint8
	privateData        []byte // of what is repeated: MRA, RTU, DREP
	sidr               sidrKey
}

// State is the id's state.
func (c *ID) State() State { return c.state }

// LAPState is the state of its alternate path.
func (c *ID) LAPState() LAPState { return c.lapState }

// LocalID is the id's number in messages.
func (c *ID) LocalID() uint32 { return c.localID }

// RemoteID is the peer's number, 0 if not known.
func (c *ID) RemoteID() uint32 { return c.remoteID }

// ServiceID is what the id listens for, or is connected by.
func (c *ID) ServiceID() uint64 { return c.serviceID }

// allow refuses an operation if the id is in none of some states.
func (c *ID) allow(op string, states ...State) error {
	if slices.Contains(states, c.state) && !c.destroyed {
		return nil
	}
	e := &Error{Op: op, State: c.state, Err: ErrInvalid}
	if c.destroyed {
		e.Reason = "the id is destroyed"
		return e
	}
	e.Reason = "the id's state is " + c.state.String() + ", and must be " + states[0].String()
	for _, s := range states[1:] {
		e.Reason += " or " + s.String()
	}
	return e
}

// allowNew refuses to begin anything on an id that is not idle, or that no
// answer could find.
func (c *ID) allowNew(op string) error {
	if c.hidden && !c.destroyed {
		return &Error{Op: op, State: c.state, Reason: "the id is that of a listener or of a SIDR_REQ; make a new one", Err: ErrInvalid}
	}
	return c.allow(op, Idle)
}

// enterRemote makes the remote id and queue pair of the connection known, unless
// another connection has them: same has the id, stale only the queue pair.
func (c *ID) enterRemote() (same, stale *ID) {
	id, qp := c.remoteKeys()
	if same = c.m.remoteIDs[id]; same != nil {
		return same, nil
	}
	if stale = c.m.remoteQPs[qp]; stale != nil {
		return nil, stale
	}
	c.m.remoteIDs[id], c.m.remoteQPs[qp] = c, c
	return nil, nil
}

// forgetRemote is the opposite (cm_remove_remote).
func (c *ID) forgetRemote() {
	id, qp := c.remoteKeys()
	if c.m.remoteIDs[id] == c {
		delete(c.m.remoteIDs, id)
	}
	if c.m.remoteQPs[qp] == c {
		delete(c.m.remoteQPs, qp)
	}
}

func (c *ID) remoteKeys() (remoteID, remoteQP) {
	return remoteID{c.remoteGUID, c.remoteID}, remoteQP{c.remoteGUID, c.remoteQPN}
}

// resetToIdle ends what was not established (cm_reset_to_idle).
func (c *ID) resetToIdle() {
	c.cancel()
	c.forgetRemote()
	c.state = Idle
}

// enterTimewait begins timewait (cm_enter_timewait).
func (c *ID) enterTimewait(now time.Time) {
	c.cancel()
	c.forgetRemote()
	c.state = Timewait
	c.m.timers.set(c, now.Add(duration(c.av.timeout)))
}

// Destroy ends the id (ib_destroy_cm_id): a connection under way is rejected,
// an established one gets one DREQ, a DREQ or SIDR_REQ its answer. It may be
// called again.
func (c *ID) Destroy(now time.Time) {
	if c.destroyed {
		return
	}
	m := c.m
	switch c.state {
	case Listening:
		if c.listens--; c.listens > 0 {
			return
		}
		delete(m.listeners, c.serviceID)
	case SIDRREQReceived:
		c.replySIDR(&SIDRReply{Status: mad.SIDRStatusRejected})
	case REQSent, MRAREQReceived:
		guid := binary.BigEndian.AppendUint64(nil, uint64(m.cfg.Info.NodeGUID))
		c.reject(now, &Rejection{Reason: mad.RejectTimeout, Info: guid})
	case REQReceived, MRAREQSent, REPReceived, MRAREPSent, REPSent, MRAREPReceived:
		c.reject(now, &Rejection{Reason: mad.RejectConsumerDefined})
	case Established:
		// The target of XRC has no connection to end (cm_destroy_id).
		if c.qpType != XRCTarget {
			c.disconnect(now, nil)
		}
	case DREQReceived:
		c.replyDisconnect(now, nil)
	}
	c.destroyed = true
	c.cancel()
	m.timers.stop(c)
	c.forgetRemote()
	c.state = Idle
	delete(m.ids, c.localID)
}

// Discard is Destroy, but an unanswered REQ is not rejected, so that the peer
// sends it again and it comes as a new one (cm_destroy_id with ENOMEM, as when
// ucma.c's backlog of a listener is full).
func (c *ID) Discard(now time.Time) {
	if c.state == REQReceived {
		c.resetToIdle()
	}
	c.Destroy(now)
}
