package script

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/smp"
)

// fabric is the place where MADs are sent from. Of dev alone it is sure that it is
// there.
type fabric struct {
	dev      port.Device
	sa       *sa.Client
	smp      *smp.Client
	resolver *sa.Resolver
}

// sender sends the MADs of send steps. Most go by agents; what these would put
// right goes by a Port of its own (see message.alone). Any number of goroutines may
// use it.
type sender struct {
	fabric

	mu      sync.Mutex
	conn    *agents.Conn
	byQP    [2]*agents.Agent // send-only
	byClass map[vendorClass]*agents.Agent
}

// vendorClass is what an agent is for.
type vendorClass struct {
	class mad.Class
	oui   uint32
}

func newSender(f fabric) *sender {
	return &sender{fabric: f, byClass: make(map[vendorClass]*agents.Agent)}
}

// close ends what is under way.
func (s *sender) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil
	}
	conn := s.conn
	s.conn, s.byQP = nil, [2]*agents.Agent{}
	clear(s.byClass)
	return conn.Close()
}

// agent gives the agent for a message: one of its class where that has RMPP, so that
// the answer may be long, else one that only sends.
func (s *sender) agent(m *message) (*agents.Agent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		conn, err := agents.Open(s.dev, agents.Config{})
		if err != nil {
			return nil, err
		}
		s.conn = conn
	}
	key := vendorClass{class: mad.Class(m.data[mad.OffClass])}
	if mad.HasRMPP(key.class) && m.qp != mad.QPSMI {
		key.oui = ouiOf(m.data)
		if a := s.byClass[key]; a != nil {
			return a, nil
		}
		a, err := s.conn.Register(agents.Registration{
			Registration: port.Registration{
				QPN: mad.QPGSI, Class: key.class, Version: classVersion(key.class), OUI: key.oui, RMPP: port.RMPPUser,
			},
			Window: agents.WindowSA,
		})
		if err == nil {
			s.byClass[key] = a
			return a, nil
		}
		// An OUI of 0, or more of them than a kernel has room for, does not hinder who
		// asks for no more than a MAD.
		if m.long || !errors.Is(err, port.ErrInvalid) && !errors.Is(err, port.ErrNoSlot) {
			return nil, err
		}
	}
	at := &s.byQP[m.qp]
	if *at == nil {
		a, err := s.conn.Register(agents.Registration{Registration: port.Registration{QPN: m.qp}})
		if err != nil {
			return nil, err
		}
		*at = a
	}
	return *at, nil
}

// classVersion is the version of a class that there is.
func classVersion(c mad.Class) uint8 {
	switch c {
	case mad.ClassSubnAdm:
		return sa.ClassVersion
	case mad.ClassComMgt:
		return cmVersion
	case mad.ClassCC:
		return ccVersion
	}
	return 1
}

// Class versions other than 1 (IBA 12.6.1 and the kernel's ib_cm.h; IBA A10.4.2).
const (
	cmVersion = 2
	ccVersion = 2
)

// message is a MAD that is ready to be sent.
type message struct {
	to         string // whom it is sent to
	data       []byte // as it is handed to the Port, but for the transaction id
	timeout    time.Duration
	retries    int
	noAnswerOK bool

	sender *sender
	attr   *layout.Attribute // nil: none that is known
	vector mad.AddressVector
	qp     uint8  // own queue pair: 0 or 1
	tid    uint32 // 0: any
	long   bool   // the answer may come by RMPP
	alone  bool   // a Port of its own, which changes nothing in the MAD
	mad    [mad.Size]byte
}

// changes tells whether the MAD may change something where it is sent to.
func (m *message) changes() bool { return changing(mad.Method(m.data[mad.OffMethod])) }

// changing tells whether requests of a method may change something. A method that
// the IBA does not have may; a Trap makes an SM sweep, a TrapRepress ends traps; a
// Report, or a response, is believed by who takes it for that of another sender.
func changing(m mad.Method) bool {
	switch m {
	case mad.MethodGet, mad.MethodGetTable, mad.MethodGetTraceTable, mad.MethodGetMulti:
		return false
	}
	return true
}

// changes tells of a step, before it is prepared, whether its MADs may change
// something. What only the run can tell counts as a change.
func (s *Send) changes() bool {
	method := mad.MethodGet
	if s.Raw != nil {
		b, err := hexOfText(s.Raw.Text)
		if !s.Raw.IsConst() || err != nil {
			return true
		}
		method = 0
		if len(b) > mad.OffMethod {
			method = mad.Method(b[mad.OffMethod])
		}
	}
	read := func(v *Value) bool {
		if v == nil || !v.IsConst() {
			return false
		}
		var err error
		method, err = methodOf(v.Text)
		return err == nil
	}
	if s.Method != nil && !read(s.Method) {
		return true
	}
	for _, e := range s.Header {
		f, err := headerLayout(0).Find(e.Key)
		if err == nil && f.Name == "Method" && !read(e.Value) {
			return true
		}
	}
	return changing(method)
}

// shown is the data for reports: keys are blanked.
func (m *message) shown() []byte { return blankKeys(m.data) }

// send sends the MAD and waits for the answer. The error is that of ctx; all else
// that can happen to a MAD is an answer, or that there is none.
func (m *message) send(ctx context.Context) (*answer, error) {
	a := &answer{attr: m.attr}
	start := time.Now()
	if m.alone {
		a.err = m.sendAlone(ctx, a)
	} else {
		a.err = m.sendByAgent(ctx, a)
	}
	a.latency = time.Since(start)
	switch {
	case errors.Is(a.err, errNotAwaited):
		a.err = nil
	case a.err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return a, nil
}

func (m *message) sendByAgent(ctx context.Context, a *answer) error {
	agent, err := m.sender.agent(m)
	if err != nil {
		return err
	}
	req := agents.Request{Addr: m.vector, Data: m.data, Timeout: m.timeout, Retries: m.retries, Long: m.long, TID: m.tid}
	if m.timeout == 0 {
		if err := agent.Send(ctx, &req); err != nil {
			return err
		}
		return errNotAwaited
	}
	return agent.Stream(ctx, &req, a.take)
}

// errNotAwaited is why there is no answer to what has none.
var errNotAwaited = errors.New("no answer is waited for")

// grace is how much longer than the carrier to wait for it to say that there is no
// answer: a kernel keeps silent about some failures.
const grace = time.Second

// sendAlone sends by a Port of its own, on which nothing else is under way: the
// first response that comes is the answer, and what the carrier does not put right
// goes out as it is.
func (m *message) sendAlone(ctx context.Context, a *answer) error {
	p, err := m.sender.dev.Open()
	if err != nil {
		return err
	}
	defer p.Close()
	agent, err := p.Register(port.Registration{QPN: m.qp})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { p.Close() })()
	out := port.Message{Agent: agent, Timeout: m.timeout, Retries: m.retries, Addr: m.vector, Data: m.data}
	if err := p.Send(&out); err != nil {
		return err
	}
	if m.timeout == 0 {
		return errNotAwaited
	}
	defer time.AfterFunc(m.timeout*time.Duration(1+m.retries)+grace, func() { p.Close() }).Stop()
	var in port.Message
	for {
		switch err := p.Recv(&in); {
		case errors.Is(err, port.ErrClosed) && ctx.Err() == nil, err == nil && in.TimedOut:
			return fmt.Errorf("to %s: %w", m.to, agents.ErrTimeout)
		case err != nil:
			return err
		case len(in.Data) >= mad.Size && mad.IsResponse(in.Data):
			n := mad.ClassHeaderLen(mad.Class(in.Data[mad.OffClass]))
			return a.take(&agents.Response{Addr: in.Addr, Data: in.Data[:n:n]}, in.Data[n:])
		}
	}
}
