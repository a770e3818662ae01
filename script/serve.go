package script

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/port"
)

// responder answers requests, as a step serve says, until it is stopped.
type responder struct {
	conn  *agents.Conn
	class mad.Class
	rules []rule

	mu       sync.Mutex
	vars     *vars // a fork: what the steps beside it set is not seen
	ctx      context.Context
	requests []any // the last ones
	count    int
	err      error // the first one of an answer
}

// rule is one of the answers of a step.
type rule struct {
	*Answer
	attr *layout.Attribute // nil: any
	busy uint64            // requests that are still to be answered busy
}

// startServer registers for the requests of a step and begins to answer them. An
// error of the Port says that another program answers them already.
func startServer(ctx context.Context, f fabric, step *Serve, v *vars) (*responder, error) {
	r := &responder{vars: v.fork(), ctx: ctx}
	reg, err := r.registration(ctx, step, v)
	if err != nil {
		return nil, err
	}
	for i := range step.Answers {
		if err := r.addRule(ctx, &step.Answers[i], v); err != nil {
			return nil, err
		}
	}
	if r.conn, err = agents.Open(f.dev, agents.Config{}); err != nil {
		return nil, err
	}
	if _, err = r.conn.Register(agents.Registration{Registration: reg, Serve: r.serve}); err != nil {
		r.conn.Close()
		return nil, err
	}
	return r, nil
}

// registration is what the Port is told.
func (r *responder) registration(ctx context.Context, step *Serve, v *vars) (reg port.Registration, err error) {
	s, err := v.text(ctx, step.Class)
	if err == nil {
		r.class, err = classOf(s)
	}
	if err != nil {
		return reg, &ValueError{step.Class.Pos, s, err}
	}
	reg.Class, reg.QPN = r.class, mad.QPGSI
	if r.class.IsSMP() {
		reg.QPN = mad.QPSMI
	}
	if mad.HasRMPP(r.class) {
		reg.RMPP = port.RMPPUser
	}
	version, err := v.number(ctx, step.Version, uint64(classVersion(r.class)), 0, 255)
	if err != nil {
		return reg, err
	}
	oui, err := v.number(ctx, step.OUI, 0, 0, 1<<24-1)
	if err != nil {
		return reg, err
	}
	reg.Version, reg.OUI = uint8(version), uint32(oui)
	value, err := v.value(ctx, step.Methods)
	if err != nil {
		return reg, err
	}
	names, ok := value.([]any)
	if !ok {
		names = []any{value}
	}
	var methods []mad.Method
	for _, name := range names {
		m, err := methodOf(write(name))
		if err != nil {
			return reg, &ValueError{step.Methods.Pos, write(name), err}
		}
		methods = append(methods, m)
	}
	reg.Methods = port.Methods(methods...)
	return reg, nil
}

func (r *responder) addRule(ctx context.Context, a *Answer, v *vars) error {
	x := rule{Answer: a, attr: a.Attr}
	if x.attr == nil && a.Attribute != nil {
		s, err := v.text(ctx, a.Attribute)
		if err == nil {
			x.attr, err = layout.LookUpAttribute(uint8(r.class), s)
		}
		if id, ok := textNumber(s); err != nil && ok {
			x.attr, err = &layout.Attribute{ID: uint16(id)}, nil // by its bytes alone
		}
		if err != nil {
			return &ValueError{a.Attribute.Pos, s, err}
		}
	}
	var err error
	if x.busy, err = v.number(ctx, a.Busy, 0, 0, 1_000_000); err != nil {
		return err
	}
	r.rules = append(r.rules, x)
	return nil
}

// stop ends it. The error is the first that an answer met.
func (r *responder) stop() error {
	err := r.conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	return err
}

// bind gives the results of the step their names in v, until v.release.
func (r *responder) bind(v *vars) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v.bind("requests", append([]any(nil), r.requests...))
	v.bind("count", r.count)
}

// serve answers one request. Several run at once.
func (r *responder) serve(in *agents.Incoming) {
	resp, delay, err := r.answer(in.Data)
	if err == nil && delay > 0 {
		err = sleepFor(in.Context(), delay)
	}
	if err == nil && resp != nil {
		err = in.Reply(resp)
	}
	// One that ends while an answer is under way is no mistake of the script's.
	if err != nil && in.Context().Err() == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.err == nil {
			r.err = fmt.Errorf("answer to %v: %w", in.Addr, err)
		}
	}
}

// answer makes the answer to a request; nil: there is none.
func (r *responder) answer(req []byte) (resp []byte, delay time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.vars
	request := requestOf(req)
	r.count++
	if len(r.requests) == maxRequests {
		r.requests = append(r.requests[:0], r.requests[1:]...)
	}
	r.requests = append(r.requests, request)
	mark := v.mark()
	defer v.release(mark)
	v.bind("request", request)
	for i := range r.rules {
		x := &r.rules[i]
		if x.attr != nil && x.attr.ID != binary.BigEndian.Uint16(req[mad.OffAttribute:]) {
			continue
		}
		if x.When != nil {
			holds, _, err := v.evalBool(r.ctx, x.When)
			if err != nil {
				return nil, 0, err
			}
			if !holds {
				continue
			}
		}
		return r.apply(x, req)
	}
	return respond(req, mad.StatusBadAttribute), 0, nil
}

// apply makes the answer that a rule says.
func (r *responder) apply(x *rule, req []byte) (resp []byte, delay time.Duration, err error) {
	v := r.vars
	if delay, err = v.duration(r.ctx, x.Delay, 0); err != nil {
		return nil, 0, err
	}
	silent, err := v.flag(r.ctx, x.Silent, false)
	if err != nil || silent {
		return nil, 0, err
	}
	if x.busy > 0 {
		x.busy--
		return respond(req, mad.StatusBusy), delay, nil
	}
	status := mad.StatusOK
	if x.Status != nil {
		s, err := v.text(r.ctx, x.Status)
		if err == nil {
			status, err = statusOf(r.class, s)
		}
		if err != nil {
			return nil, 0, &ValueError{x.Status.Pos, s, err}
		}
	}
	resp = respond(req, status)
	at := dataOffset(r.class)
	attr := layout.FindAttribute(uint8(r.class), binary.BigEndian.Uint16(req[mad.OffAttribute:]))
	if x.Data != nil {
		b, err := v.bytesOf(r.ctx, x.Data)
		if err != nil {
			return nil, 0, err
		}
		clear(resp[at : at+roomOf(r.class)])
		if len(b) > roomOf(r.class) && !mad.HasRMPP(r.class) {
			return nil, 0, &ValueError{x.Data.Pos, "data", fmt.Errorf("%d bytes, and %d fit", len(b), roomOf(r.class))}
		}
		if len(b) > roomOf(r.class) {
			resp = append(resp[:at], b...)
		}
		copy(resp[at:], b)
	}
	if len(x.Set) > 0 && attr == nil {
		return nil, 0, &ValueError{x.Set[0].Pos, x.Set[0].Key, errors.New("the field table does not have the attribute of the request: give bytes as data")}
	}
	for _, e := range x.Set {
		of := settable(attr.Struct)
		if _, err := v.setEntry(r.ctx, of, resp[at:at+of.Size], e); err != nil {
			return nil, 0, err
		}
	}
	if mad.Method(req[mad.OffMethod]) == mad.MethodGetTable && status == mad.StatusOK && r.class == mad.ClassSubnAdm {
		r.table(resp, attr)
	}
	return resp, delay, nil
}

// table marks an answer as a table of the SA (IBA 15.2.1.1).
func (r *responder) table(resp []byte, attr *layout.Attribute) {
	resp[mad.OffRMPP+2] |= byte(mad.RMPPFlagActive)
	if attr != nil {
		binary.BigEndian.PutUint16(resp[mad.OffRMPPData+8:], uint16((attr.Struct.Size+7)/8))
	}
}

// roomOf is how many bytes an attribute has in one MAD.
func roomOf(c mad.Class) int {
	if c.IsSMP() {
		return mad.SMPDataSize
	}
	return mad.Size - dataOffset(c)
}

// respond makes a response of a request, otherwise the same.
func respond(req []byte, status mad.Status) []byte {
	resp := append(make([]byte, 0, mad.Size), req[:mad.Size]...)
	class, method := mad.Class(req[mad.OffClass]), mad.Method(req[mad.OffMethod])
	if method == mad.MethodSet {
		method = mad.MethodGet // GetResp answers Set, too
	}
	resp[mad.OffMethod] = byte(method.Response())
	if class == mad.ClassSubnDirected {
		status |= 0x8000 // the D bit
	}
	binary.BigEndian.PutUint16(resp[mad.OffStatus:], uint16(status))
	if mad.HasRMPP(class) {
		clear(resp[mad.OffRMPP:mad.OffRMPPData])
	}
	return resp
}

// requestOf is a request as the map of its header's and its attribute's fields.
func requestOf(req []byte) any {
	class := mad.Class(req[mad.OffClass])
	head := headerLayout(class)
	attr := layout.FindAttribute(uint8(class), binary.BigEndian.Uint16(req[mad.OffAttribute:]))
	if attr == nil || dataOffset(class)+attr.Struct.Size > len(req) {
		return &record{head, req[:head.Size]}
	}
	of := joinedLayout(head, attr.Struct, dataOffset(class))
	return &record{of, req[:of.Size]}
}

// joinedLayout is a header and an attribute as one structure. A name that both have
// is the header's.
func joinedLayout(head, attr *layout.Struct, at int) *layout.Struct {
	key := [2]*layout.Struct{head, attr}
	if s, ok := joinedLayouts.Load(key); ok {
		return s.(*layout.Struct)
	}
	s := &layout.Struct{Name: "request of " + attr.Name, Size: max(head.Size, at+attr.Size)}
	names := make(map[string]bool)
	for _, f := range head.Fields {
		names[f.Name] = true
		s.Fields = append(s.Fields, f)
	}
	for _, f := range attr.Fields {
		f.Off += at * 8
		if f.IsReserved() || !names[f.Name] {
			s.Fields = append(s.Fields, f)
		}
	}
	actual, _ := joinedLayouts.LoadOrStore(key, s)
	return actual.(*layout.Struct)
}

var joinedLayouts sync.Map // [2]*layout.Struct: *layout.Struct

func sleepFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
