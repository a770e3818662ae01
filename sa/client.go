// Package sa asks the subnet administrator (SA): the keeper of what the subnet
// manager knows (IBA 15). Queries are typed by the record, and select by the
// values of fields:
//
//	admin, err := sa.NewClient(dev, sa.Config{})
//	node, err := sa.Get(ctx, admin, sa.Match(mad.NodeRecord{LID: 5}, "LID"))
//	for path, err := range admin.Paths(ctx, sa.PathQuery{DGID: to}) { ... }
//
// Records of services and of members of multicast groups are also made and ended,
// by [Set] and [Delete]; [Client.Join] and [Client.Leave] do it for groups.
//
// A [Resolver] turns addresses and names of nodes into LIDs and GIDs.
package sa

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// ClassVersion is the class version of subnet administration (IBA 15.2.1.1).
const ClassVersion = 2

// Defaults of a Config.
const (
	DefaultTimeout = time.Second
	DefaultRetries = 2
)

// Config has the choices of a Client. The zero value asks the SA of the port.
type Config struct {
	// SA is where the SA is. nil: at the port's SM LID, by its MasterSMSL. Of its
	// QPN 0 stands for 1; PKeyIndex is not used. From an Ethernet port, which has no
	// LIDs, only a GID leads there: see [AddressByGID].
	SA *mad.AddressVector
	// Timeout is the wait for an answer, or for the start of a table, after each
	// try. 0: DefaultTimeout.
	Timeout time.Duration
	// Retries is how often a query is sent again that gets no answer, or the
	// answer busy, or a table that stalls before its first record. 0:
	// DefaultRetries; negative: never.
	Retries int
	// Transfer is added to Timeout for tables in mode RMPPKernel, where nothing
	// tells whether one is on its way. A kernel gives a transfer 40 s, which long
	// tables over lossy links need: each lost segment costs 2 s. 0:
	// agents.DefaultTransfer.
	Transfer time.Duration
	// IdleTimeout is the longest pause within a table that is on its way, in mode
	// RMPPUser. 0: agents.DefaultIdleTimeout, or Timeout × (Retries + 1) if that is
	// longer.
	IdleTimeout time.Duration
	// SMKey makes a query trusted if it is the SM's. An SA does not answer to a
	// wrong one (IBA C15-0.1.5).
	SMKey uint64
	// PKey is the partition to ask in, of any membership. 0: the default one.
	PKey mad.PKey
	// Window limits the queries in flight. 0: agents.WindowSA.
	Window int
	// RMPP says who puts tables together. RMPPNone: the port (RMPPKernel).
	RMPP port.RMPPMode
	// MaxMessage limits the length of an answer; see agents.Registration.
	MaxMessage int
}

// Client asks one SA. Any number of goroutines may use it.
type Client struct {
	dev    port.Device
	cfg    Config
	conn   *agents.Conn
	agent  *agents.Agent
	jitter func(time.Duration) time.Duration // a time up to the given one

	mu sync.Mutex
	to *mad.AddressVector // of the SA; nil: to be looked up
}

// NewClient opens a client on a port. It does not talk to the SA yet. The caller
// closes dev after the client.
func NewClient(dev port.Device, cfg Config) (*Client, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	switch {
	case cfg.Retries == 0:
		cfg.Retries = DefaultRetries
	case cfg.Retries < 0:
		cfg.Retries = 0
	}
	if cfg.PKey == 0 {
		cfg.PKey = mad.DefaultPKey
	}
	if cfg.Window <= 0 {
		cfg.Window = agents.WindowSA
	}
	if cfg.RMPP == port.RMPPNone {
		cfg.RMPP = port.RMPPKernel
	}
	if cfg.IdleTimeout <= 0 {
		cfg.IdleTimeout = max(agents.DefaultIdleTimeout, cfg.Timeout*time.Duration(cfg.Retries+1))
	}
	conn, err := agents.Open(dev, agents.Config{RMPP: agents.RMPPConfig{IdleTimeout: cfg.IdleTimeout}})
	if err != nil {
		return nil, err
	}
	agent, err := conn.Register(agents.Registration{
		Registration: port.Registration{QPN: mad.QPGSI, Class: mad.ClassSubnAdm, Version: ClassVersion, RMPP: cfg.RMPP},
		Window:       cfg.Window,
		Transfer:     cfg.Transfer,
		MaxMessage:   cfg.MaxMessage,
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &Client{dev: dev, cfg: cfg, conn: conn, agent: agent, jitter: randomPart}, nil
}

// Close ends the queries under way with port.ErrClosed.
func (c *Client) Close() error { return c.conn.Close() }

// Stats counts what the client's agent has seen.
func (c *Client) Stats() agents.Stats { return c.conn.Stats() }

// Address is where the SA is asked, for programs that make their MADs themselves.
func (c *Client) Address() (mad.AddressVector, error) { return c.address() }

// SMKey is that of the Config.
func (c *Client) SMKey() uint64 { return c.cfg.SMKey }

// address gives the SA's address, which is looked up at the first query and
// after a time-out: the SM may have moved.
func (c *Client) address() (mad.AddressVector, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.to != nil {
		return *c.to, nil
	}
	info, err := c.dev.Info()
	if err != nil {
		return mad.AddressVector{}, fmt.Errorf("look up the SA's address: %w", err)
	}
	to := mad.AddressVector{LID: info.SMLID, QPN: mad.QPGSI, SL: info.SMSL}
	if c.cfg.SA != nil {
		to = *c.cfg.SA
	}
	if to.QPN == 0 {
		to.QPN = mad.QPGSI
	}
	ethernet := info.LinkLayer == port.LinkEthernet
	switch {
	case ethernet && to.HasGRH:
	case ethernet:
		return to, fmt.Errorf("%w: port %s/%d is an Ethernet port, which has no LIDs and no subnet manager: give the SA's GID",
			ErrNoSA, info.Device, info.Port)
	case to.LID.IsUnicast():
	case c.cfg.SA != nil:
		return to, fmt.Errorf("%w: its LID cannot be %v", ErrNoSA, to.LID)
	default:
		return to, fmt.Errorf("%w: port %s/%d is %v and its SM LID is %v: no subnet manager has set it up",
			ErrNoSA, info.Device, info.Port, info.State, to.LID)
	}
	index := slices.Index(info.PKeys, c.cfg.PKey)
	if index < 0 {
		index = slices.IndexFunc(info.PKeys, func(k mad.PKey) bool { return k.Base() == c.cfg.PKey.Base() })
	}
	if index < 0 {
		return to, fmt.Errorf("ask the SA in partition %v: port %s/%d is not in it, its P_Keys are %v",
			c.cfg.PKey, info.Device, info.Port, slices.DeleteFunc(slices.Clone(info.PKeys), func(k mad.PKey) bool { return k == 0 }))
	}
	to.PKeyIndex = uint16(index)
	c.to = &to
	return to, nil
}

// AddressByGID gives the address of who has gid, such as an SA, as seen from an
// Ethernet port. The source is the port's IPv6 GID with the same prefix, else one
// that is not link-local. Of two GIDs that differ only in their type the kernel has
// RoCE v2, which routers forward, behind v1 (roce_gid_mgmt.c, update_gid), so the
// last one counts. Errors: a *mad.AddrError for an IPv4 address, whose answers a
// kernel does not match; a *port.Error if the port has no such GID.
func AddressByGID(info port.Info, gid mad.GID) (mad.AddressVector, error) {
	if isIPv4(gid) {
		return mad.AddressVector{}, &mad.AddrError{Text: gid.String(),
			Why: "it is an IPv4 address, and a kernel does not match answers that come with an IPv4 header: give an IPv6 one"}
	}
	index := -1
	for i, own := range info.GIDs[:min(len(info.GIDs), 1<<8)] { // an index has 8 bits
		same := own.Prefix() == gid.Prefix()
		switch {
		case own.IsZero() || isIPv4(own):
		case same, own.Prefix() != mad.DefaultGIDPrefix && (index < 0 || info.GIDs[index].Prefix() != gid.Prefix()):
			index = i
		}
	}
	if index < 0 {
		return mad.AddressVector{}, &port.Error{Op: "find a source for " + gid.String(), Port: fmt.Sprintf("%s/%d", info.Device, info.Port),
			Detail: "the port has no IPv6 GID that leads there: give its network device an IPv6 address", Err: port.ErrInvalid}
	}
	const hops = 64 // as the kernel has for IPv6
	return mad.AddressVector{QPN: mad.QPGSI, HasGRH: true,
		GRH: mad.GRH{GID: gid, GIDIndex: uint8(index), HopLimit: hops}}, nil
}

// isIPv4 tells whether a GID is an IPv4 address that is mapped into IPv6.
func isIPv4(g mad.GID) bool { return netip.AddrFrom16(g).Is4In6() }

func (c *Client) forgetAddress() {
	c.mu.Lock()
	c.to = nil
	c.mu.Unlock()
}
