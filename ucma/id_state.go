package ucma

import (
	"slices"
	"strconv"
)

// State is where an id stands, as the kernel has it (cma_priv.h, enum
// rdma_cm_state).
type State uint8

// The states, in the kernel's order.
const (
	StateIdle State = iota
	StateAddrQuery
	StateAddrResolved
	StateRouteQuery
	StateRouteResolved
	StateConnect
	StateDisconnect
	StateAddrBound
	StateListen
	StateDeviceRemoval
	StateDestroying
	StateAddrInfoQuery
	StateAddrInfoResolved
)

var stateNames = [...]string{"IDLE", "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY", "ROUTE_RESOLVED", "CONNECT", "DISCONNECT",
	"ADDR_BOUND", "LISTEN", "DEVICE_REMOVAL", "DESTROYING", "ADDRINFO_QUERY", "ADDRINFO_RESOLVED"}

// String is the kernel's name of the state.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return strconv.Itoa(int(s))
}

// phase is how far the handshake has come in StateConnect. The kernel keeps it in
// the CM id below (ib_cm.h, enum ib_cm_state).
type phase uint8

const (
	phaseNone      phase = iota // not in StateConnect
	phaseAsked                  // CONNECT was written
	phaseAnswered               // CONNECT_RESPONSE came
	phaseRequested              // the id came with a CONNECT_REQUEST
	phaseAccepted               // such an id, ACCEPT was written
	phaseUp                     // established
	phaseFailed                 // rejected, or no answer
)

func (p phase) String() string {
	return [...]string{"", "waiting for the answer", "answered", "requested", "accepted", "established", "failed"}[p]
}

// rule says when a command is legal, and what it makes of the id. The states are
// those of kernel cma.c and, for phases, cm.c.
type rule struct {
	states []State
	phases []phase // in StateConnect; nil: every phase
	qp     qpKind
	how    string // what to do to get there

	// While the command runs, and after it, unless it fails; events lead further.
	to      State
	toPhase phase
}

type qpKind uint8

const (
	qpAny qpKind = iota
	qpConnected
	qpDatagram
)

// alive are the states in which an id answers questions.
var alive = []State{StateIdle, StateAddrQuery, StateAddrResolved, StateRouteQuery, StateRouteResolved, StateConnect, StateDisconnect,
	StateAddrBound, StateListen, StateAddrInfoQuery, StateAddrInfoResolved}

// withDevice are those in which it can have a device.
var withDevice = slices.DeleteFunc(slices.Clone(alive), func(s State) bool { return s == StateIdle || s == StateAddrQuery })

// stay marks a rule that does not change the state.
const stay = StateDestroying

var (
	ruleBind = rule{states: []State{StateIdle}, to: StateAddrBound,
		how: "an id is bound once, and first of all"}
	ruleResolveAddr = rule{states: []State{StateIdle, StateAddrBound}, to: StateAddrQuery,
		how: "use a new id, or wait for the last answer"}
	ruleResolveRoute = rule{states: []State{StateAddrResolved, StateAddrInfoResolved}, to: StateRouteQuery,
		how: "resolve the address first, and once"}
	ruleSetPath = rule{states: []State{StateAddrResolved}, to: StateRouteResolved,
		how: "resolve the address first; a route is set once"}
	ruleResolveService = rule{states: []State{StateAddrBound}, to: StateAddrInfoQuery,
		how: "bind the id to an address of the port first"}
	ruleConnect = rule{states: []State{StateRouteResolved}, to: StateConnect, toPhase: phaseAsked,
		how: "resolve the address and the route first"}
	ruleListen = rule{states: []State{StateIdle, StateAddrBound}, to: StateListen,
		how: "use a new id"}
	ruleAccept = rule{states: []State{StateConnect}, phases: []phase{phaseRequested}, to: StateConnect, toPhase: phaseAccepted,
		how: "only an id that came with a CONNECT_REQUEST accepts, and once"}
	ruleAcceptRTU = rule{states: []State{StateConnect}, phases: []phase{phaseAnswered}, qp: qpConnected, to: StateConnect, toPhase: phaseUp,
		how: "wait for the CONNECT_RESPONSE first"}
	ruleReject = rule{states: []State{StateConnect}, phases: []phase{phaseRequested, phaseAnswered}, to: StateConnect, toPhase: phaseFailed,
		how: "only a request or a response that is not accepted yet is rejected; disconnect instead"}
	ruleDisconnect = rule{states: []State{StateConnect, StateDisconnect}, phases: []phase{phaseUp}, qp: qpConnected, to: stay,
		how: "wait until the connection is established, or destroy the id"}
	ruleNotify = rule{states: []State{StateConnect}, phases: []phase{phaseAccepted, phaseUp}, qp: qpConnected, to: stay,
		how: "only a connection that was accepted is told of its queue pair"}
	ruleJoin = rule{states: []State{StateAddrBound, StateAddrResolved}, qp: qpDatagram, to: stay,
		how: "bind the id to an address of the port, or resolve the group's address, first"}
	ruleQPInit = rule{states: withDevice, to: stay,
		how: "bind the id, or resolve an address, first"}
	// Before CONNECT a kernel gives the attributes of INIT for any state that it is asked for.
	ruleQPReady = rule{states: []State{StateConnect}, phases: []phase{phaseAnswered, phaseRequested, phaseAccepted, phaseUp}, to: stay,
		how: "wait for the peer's request or response first"}
	ruleQuery     = rule{states: alive, to: stay}
	ruleOption    = rule{states: alive, to: stay}
	ruleReuseAddr = rule{states: slices.DeleteFunc(slices.Clone(alive), func(s State) bool { return s == StateListen }), to: stay,
		how: "set the option before LISTEN"}
	ruleAFOnly = rule{states: []State{StateIdle, StateAddrBound}, to: stay,
		how: "set the option before anything is resolved"}
	ruleAckTimeout = rule{states: alive, qp: qpConnected, to: stay}
	ruleMigrate    = rule{states: alive, to: stay}
)

// begin checks that the command is legal and moves the id on; undo moves it back
// if the command fails and nothing else has happened to the id since. The id
// moves first because its event may come before the command returns.
func (id *ID) begin(cmd Command, r *rule) (undo func(), was State, err error) {
	id.mu.Lock()
	defer id.mu.Unlock()
	refused := &StateError{Op: cmd.Op(), ID: id.num, State: id.state, Phase: id.phase.String(), Legal: r.states, How: r.how}
	switch {
	case !slices.Contains(r.states, id.state):
		return nil, 0, refused
	case r.qp == qpDatagram && id.qpType != QPTypeUD:
		refused.Kind = "connected"
		return nil, 0, refused
	case r.qp == qpConnected && id.qpType == QPTypeUD:
		refused.Kind = "datagram"
		return nil, 0, refused
	case id.state == StateConnect && r.phases != nil && !slices.Contains(r.phases, id.phase):
		return nil, 0, refused
	case r.to == stay:
		return func() {}, id.state, nil
	}
	oldState, oldPhase := id.state, id.phase
	id.state, id.phase = r.to, r.toPhase
	if l, ok := cmd.(Listen); ok {
		id.backlog = int(l.Backlog)
	}
	undo = func() {
		id.mu.Lock()
		defer id.mu.Unlock()
		if id.state == r.to && id.phase == r.toPhase {
			id.state, id.phase = oldState, oldPhase
		}
	}
	return undo, oldState, nil
}

// advance moves the id on as the kernel did when it made the event.
func (id *ID) advance(e *Event) {
	move := func(from, to State) {
		if id.state == from {
			id.state = to
		}
	}
	switch e.Type {
	case EventAddrResolved:
		move(StateAddrQuery, StateAddrResolved)
	case EventAddrError:
		move(StateAddrQuery, StateAddrBound)
	case EventRouteResolved:
		move(StateRouteQuery, StateRouteResolved)
	case EventRouteError:
		move(StateRouteQuery, StateAddrResolved)
	case EventAddrInfoResolved:
		move(StateAddrInfoQuery, StateAddrInfoResolved)
	case EventAddrInfoError:
		move(StateAddrInfoQuery, StateAddrBound)
	case EventConnectResponse:
		id.phase = phaseAnswered
	case EventEstablished:
		id.phase = phaseUp
	case EventRejected, EventUnreachable, EventConnectError:
		id.phase = phaseFailed
	case EventDisconnected:
		move(StateConnect, StateDisconnect)
		id.phase = phaseNone
	case EventDeviceRemoval:
		if id.state != StateDestroying {
			id.state = StateDeviceRemoval
		}
	}
}
