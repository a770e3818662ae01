// Package port is the contract between programs that use management datagrams
// and what carries them: a kernel's umad device, a simulated fabric, or another
// simulator. Its semantics are those of the Linux kernel (user_mad.c, mad.c):
// agents in slots, methods owned once per device, the upper half of a request's
// transaction id owned by the carrier, and time-outs delivered as messages.
package port

import (
	"context"
	"io"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// Device is one local port as the kernel shows it. Method ownership and the
// upper halves of transaction ids belong to the device, across its open Ports.
type Device interface {
	// Info is read afresh at each call.
	Info() (Info, error)
	// Open gives a Port with its own agent slots and receive queue.
	Open() (Port, error)
	// HoldIsSM sets the IsSM bit of the port's CapabilityMask until the Closer
	// is closed. It waits while somebody else holds it, and ends with ErrBusy
	// when ctx does; with a ctx that is already done it only tries.
	HoldIsSM(ctx context.Context) (io.Closer, error)
	// Close releases the device; its open Ports end with ErrGone.
	Close() error
}

// Port is one open file on a Device.
type Port interface {
	// Register makes an agent; the lowest free slot is its id. Errors: ErrNoSlot,
	// ErrMethodOwned, ErrNoQP, ErrInvalid (a *Error says which rule), ErrGone.
	Register(Registration) (AgentID, error)
	// Unregister drops an agent: what it had in flight is cancelled without a
	// time-out message. Messages already queued for it are still received.
	Unregister(AgentID) error
	// Send copies the message and returns without waiting for an answer. Of a
	// request (see mad.IsResponse) the upper 32 bits of the transaction id are
	// overwritten. Agent, Timeout, Retries, Addr and Data are used. Errors:
	// ErrNoAgent, ErrDuplicateTID, ErrInvalid, ErrGone, ErrClosed.
	//
	// With Timeout > 0 exactly one message comes back through Recv, the response
	// or a time-out, except for the failures that the kernel keeps silent about
	// (a send error, an RMPP abort by the peer, an SMP consumed locally). With
	// Timeout 0 nothing tells the outcome, except that a message of an RMPPKernel
	// agent, with the Active flag set, comes back timed out when its segments are
	// not acknowledged: after 2 s for each of 1 + Retries transmissions.
	Send(*Message) error
	// Recv waits for the next message and puts it whole into m, whose Data is
	// reused (m.Data[:0]) and grown as needed. One reader at a time. It ends with
	// ErrClosed after Close and with ErrGone when the device goes away.
	Recv(m *Message) error
	// Close drops what is queued and unregisters all agents. It wakes Recv.
	Close() error
}

// AgentID is the slot of an agent on its Port: 0 to 31.
type AgentID uint32

// MaxAgents is the number of agent slots of a Port (kernel IB_UMAD_MAX_AGENTS).
const MaxAgents = 32

// RMPPMode says who segments and reassembles the messages of an agent.
type RMPPMode uint8

const (
	RMPPNone   RMPPMode = iota // every MAD is single (kernel: rmpp_version 0)
	RMPPKernel                 // below the Port: messages of any length go in and out whole
	RMPPUser                   // above the Port: every segment and ACK is a message (IB_USER_MAD_USER_RMPP)
)

// Registration describes an agent. Class 0 makes a send-only agent, which gets
// responses only; so does an empty method set.
type Registration struct {
	QPN     uint8     // mad.QPSMI or mad.QPGSI
	Class   mad.Class // 0: send only
	Version uint8     // class version
	OUI     uint32    // 0x00AABBCC, for classes 0x30-0x4f
	Methods MethodSet // requests to receive
	RMPP    RMPPMode
}

// MethodSet is a set of methods without their R bit, 0 to 127; bit m%64 of word
// m/64, as in the kernel's method_mask.
type MethodSet [2]uint64

// Methods makes a set. The R bit of a method is ignored.
func Methods(methods ...mad.Method) (s MethodSet) {
	for _, m := range methods {
		m &^= mad.ResponseBit
		s[m/64] |= 1 << (m % 64)
	}
	return s
}

// Has tells whether m, without its R bit, is in the set.
func (s MethodSet) Has(m mad.Method) bool {
	m &^= mad.ResponseBit
	return s[m/64]>>(m%64)&1 != 0
}

// Message is what a Port sends and receives.
type Message struct {
	Agent AgentID
	// TimedOut marks a request that got no response. Data is then its first 24
	// bytes, with the transaction id as it was sent; Addr, Timeout and Retries
	// are the request's.
	TimedOut bool
	// Timeout is how long to wait for a response after each transmission; 0 does
	// not wait. It is rounded up to milliseconds.
	Timeout time.Duration
	Retries int // transmissions after the first
	Addr    mad.AddressVector
	// Data is the MAD: 256 bytes, or in RMPPKernel mode, with the RMPP Active
	// flag set, the headers of the class once and then all the data. Shorter
	// sends, of at least the class's header, are padded with zeros.
	Data []byte
}

// LinkLayer is the link layer of a port.
type LinkLayer uint8

const (
	LinkInfiniBand LinkLayer = iota
	LinkEthernet
)

func (l LinkLayer) String() string {
	if l == LinkEthernet {
		return "Ethernet"
	}
	return "InfiniBand"
}

// Info describes a local port.
type Info struct {
	Device    string // "mlx5_0", or the node's name on a simulated fabric
	Port      uint8  // 0 on a switch
	LinkLayer LinkLayer
	NodeType  mad.NodeType
	NodeGUID  mad.GUID
	PortGUID  mad.GUID
	NodeDesc  string
	State     mad.PortState
	PhysState mad.PortPhysState
	LID       mad.LID
	LMC       uint8
	SMLID     mad.LID
	SMSL      uint8
	CapMask   mad.PortCapMask
	Width     mad.LinkWidth // active
	Rate      mad.Rate      // of the active width and speed; RateNone when the link is down
	GIDs      []mad.GID     // by index; zero entries are empty
	PKeys     []mad.PKey    // by index; zero entries are empty
}
