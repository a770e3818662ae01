// Package smp reads and sets subnet management attributes by subnet management
// packets (SMPs): at a LID, along a directed route, or along a directed route that
// starts at a LID (IBA 14.2). Answers are typed by the attribute:
//
//	c, err := smp.NewClient(dev, smp.Config{})
//	info, err := smp.Get[mad.PortInfo](ctx, c, mad.MustParseAddr("0,1,3"), 1)
package smp

import (
	"context"
	"fmt"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/port"
)

// Defaults of a Config.
const (
	DefaultTimeout = time.Second
	DefaultRetries = 2
)

// Resolver gives LIDs for addresses that have none; an sa.Resolver is one.
type Resolver interface {
	LID(context.Context, mad.Addr) (mad.LID, error)
}

// Config has the choices of a Client. The zero value is ready to use.
type Config struct {
	// Timeout is the wait for an answer after each try. 0: DefaultTimeout.
	Timeout time.Duration
	// Retries is how often a request is sent again that gets no answer. 0:
	// DefaultRetries; negative: never.
	Retries int
	// MKey is the M_Key of the ports that are asked (IBA 14.2.4).
	MKey uint64
	// Resolver is asked for the LID of GUIDs, GIDs and names. nil: these are
	// refused.
	Resolver Resolver
	// Window limits the requests in flight. 0: no limit.
	Window int
}

// Client asks subnet management agents. Any number of goroutines may use it.
type Client struct {
	dev   port.Device
	cfg   Config
	conn  *agents.Conn
	byLID *agents.Agent
	byDR  *agents.Agent
}

// NewClient opens a client on a port. The caller closes dev after the client.
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
	conn, err := agents.Open(dev, agents.Config{})
	if err != nil {
		return nil, err
	}
	c := &Client{dev: dev, cfg: cfg, conn: conn}
	if c.byLID, err = c.register(mad.ClassSubnLIDRouted); err == nil {
		c.byDR, err = c.register(mad.ClassSubnDirected)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) register(class mad.Class) (*agents.Agent, error) {
	return c.conn.Register(agents.Registration{
		Registration: port.Registration{QPN: mad.QPSMI, Class: class, Version: classVersion},
		Window:       c.cfg.Window,
	})
}

// Close ends the requests under way with port.ErrClosed.
func (c *Client) Close() error { return c.conn.Close() }

// Stats counts what the client's agents have seen.
func (c *Client) Stats() agents.Stats { return c.conn.Stats() }

// Attribute is the type of a subnet management attribute, seen through its
// pointer.
type Attribute[T any] interface {
	*T
	mad.Structure
}

// Get reads an attribute. What the modifier selects depends on the attribute: of
// PortInfo, for example, the port.
//
// Errors: *StatusError; *MalformedError; *mad.AddrError; those of the Resolver; an
// *agents.Error, which is agents.ErrTimeout when no try got an answer.
func Get[T any, P Attribute[T]](ctx context.Context, c *Client, to mad.Addr, modifier uint32) (T, error) {
	var value T
	attr, err := attributeOf(P(&value))
	if err != nil {
		return value, err
	}
	data, err := c.Get(ctx, to, attr, modifier)
	if err != nil {
		return value, err
	}
	return value, P(&value).UnmarshalBinary(data[:attr.Struct.Size])
}

// Set writes an attribute, and gives it as the agent says that it is then. One that
// takes down the link that the answer would come by may get none, and has worked all
// the same. The request may reach the agent more than once. Errors are those of Get.
func Set[T any, P Attribute[T]](ctx context.Context, c *Client, to mad.Addr, modifier uint32, value T) (T, error) {
	attr, err := attributeOf(P(&value))
	if err != nil {
		return value, err
	}
	data, err := P(&value).AppendBinary(nil)
	if err != nil {
		return value, err
	}
	if data, err = c.Set(ctx, to, attr, modifier, data); err != nil {
		return value, err
	}
	return value, P(&value).UnmarshalBinary(data[:attr.Struct.Size])
}

func attributeOf(value mad.Structure) (*layout.Attribute, error) {
	s := value.Layout()
	attr := layout.AttributeOf(uint8(mad.ClassSubnLIDRouted), s)
	if attr == nil {
		return nil, fmt.Errorf("%w: the field table has no SM attribute of type %s", ErrUnsupported, s.Name)
	}
	return attr, nil
}

// Get reads an attribute by its row in the field table and gives the 64 bytes of
// data of the SMP, in which it stands first.
func (c *Client) Get(ctx context.Context, to mad.Addr, attr *layout.Attribute, modifier uint32) ([]byte, error) {
	return c.ask(ctx, to, mad.MethodGet, attr, modifier, nil)
}

// Set writes an attribute by its row in the field table. data are the first of the
// SMP's 64 bytes of data, the others are 0. It gives the answer's 64.
func (c *Client) Set(ctx context.Context, to mad.Addr, attr *layout.Attribute, modifier uint32, data []byte) ([]byte, error) {
	if len(data) > mad.SMPDataSize {
		return nil, fmt.Errorf("%v of %s of %v: %d bytes of data, an SMP has room for %d", mad.MethodSet, attr.Name, place(to), len(data), mad.SMPDataSize)
	}
	return c.ask(ctx, to, mad.MethodSet, attr, modifier, data)
}

func (c *Client) ask(ctx context.Context, to mad.Addr, method mad.Method, attr *layout.Attribute, modifier uint32, data []byte) ([]byte, error) {
	h, err := c.address(ctx, to)
	if err != nil {
		return nil, err
	}
	agent := c.byLID
	if h.class == mad.ClassSubnDirected {
		agent = c.byDR
	}
	msg := h.compose(method, attr, modifier, c.cfg.MKey)
	copy(msg[mad.OffSMPData:], data)
	resp, err := agent.Do(ctx, &agents.Request{Addr: h.vector, Data: msg, Timeout: c.cfg.Timeout, Retries: c.cfg.Retries})
	if err != nil {
		return nil, fmt.Errorf("%s of %v: %w", attr.Name, describe(to, h.vector), err)
	}
	if status := h.status(resp.Data); status != mad.StatusOK {
		return nil, &StatusError{Status: status, Method: method, Attribute: attr.Name, Modifier: modifier, To: to}
	}
	if got := mad.Method(resp.Data[mad.OffMethod]); got != mad.MethodGetResp {
		return nil, &MalformedError{Method: got, Asked: method, Attribute: attr.Name, Modifier: modifier, To: to}
	}
	return resp.Data[mad.OffSMPData : mad.OffSMPData+mad.SMPDataSize], nil
}
