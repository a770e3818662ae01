package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/sa"
)

// StatusError is a MAD that was answered with an error status, in a step that does not say
// what it expects.
type StatusError struct {
	Status mad.Status
	Name   string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("answered with status 0x%04x (%s)", uint16(e.Status), e.Name)
}

// send sends a MAD and takes the answer. Silence is an error, unless the step says
// otherwise, and so is an error status, unless the step says what it expects.
func (t *thread) send(ctx context.Context, s *Step, b *Send, d *done) error {
	m, err := t.sender.prepare(ctx, b, t.vars)
	if err != nil {
		return err
	}
	if t.opt.DryRun {
		e := t.event(EventMAD, t.spot.step)
		e.Name, e.Does, e.Pos, e.Message = nameOf(s), s.Kind.Name, s.Pos, t.shown(m.to, m.shown())
		t.out.emit(e)
		d.detail = "not sent"
		return nil
	}
	d.sent = m
	a, err := m.send(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return agents.ErrTimeout // of the step
	}
	if err != nil {
		return err
	}
	d.answer = a
	a.bind(t.vars)
	switch {
	case errors.Is(a.err, errNotAwaited):
		d.detail = "sent, no answer is waited for"
		return nil
	case a.err != nil && !m.noAnswerOK:
		return a.err
	case !a.answered():
		d.detail = t.mask("no answer: " + a.errorText())
		return nil
	}
	code, _ := t.vars.get("status_code")
	name, _ := t.vars.get("status")
	d.detail = t.mask(fmt.Sprintf("%v from %s", name, answeredBy(d)))
	if n, ok := t.vars.get("count"); ok && n != 0 {
		d.detail += fmt.Sprintf(", %v", plural(n.(int), "record"))
	}
	if status := code.(int); status != 0 && len(s.Expect) == 0 {
		return &StatusError{mad.Status(status), fmt.Sprint(name)}
	}
	return nil
}

// show adds the MADs to a failure.
func (t *thread) show(d *done) {
	if d.sent != nil {
		d.failure.Sent = t.shown(d.sent.to, d.sent.shown())
	}
	if d.answer != nil && d.answer.answered() {
		d.failure.Answer = t.shown(answeredBy(d), d.answer.shown())
	}
}

// answeredBy says who has answered: along a directed route no LID does.
func answeredBy(d *done) string {
	if from := d.answer.from.LID; from.IsUnicast() {
		return fmt.Sprintf("LID %v", from)
	}
	return d.sent.to
}

// shown makes a MAD ready for a report.
func (t *thread) shown(to string, data []byte) *Message {
	m := &Message{To: t.mask(to), Data: data}
	decoded, err := text.DumpMAD(data, text.Options{})
	if err != nil {
		decoded = fmt.Sprintf("%d bytes that are no whole MAD: %v\n", len(data), err)
	}
	m.Decoded = t.mask(decoded)
	return m
}

// items gives the elements that a loop goes over.
func (t *thread) items(ctx context.Context, in *In) ([]any, error) {
	var value any
	var err error
	switch {
	case in.Word != "":
		list, err := t.fabricItems(ctx, in.Word)
		if err != nil {
			return nil, &placedError{in.Pos, err}
		}
		return list, nil
	case in.List != nil:
		value, err = t.vars.value(ctx, in.List)
	default:
		value, err = t.vars.eval(ctx, in.Expr)
	}
	if err != nil {
		return nil, err
	}
	list, ok := asList(value)
	if !ok {
		return nil, &placedError{in.Pos, fmt.Errorf("a loop goes over a list, and this is %s", show(value))}
	}
	return list, nil
}

// fabricItems gives what the SA knows: the end ports of the fabric, or its nodes by
// their first one, in the order of LIDs.
func (t *thread) fabricItems(ctx context.Context, word string) ([]any, error) {
	if t.env.SA == nil {
		return nil, fmt.Errorf("there is no SA here to ask for the %s of the fabric", word)
	}
	info, err := t.env.Device.Info()
	if err != nil {
		return nil, err
	}
	prefix := uint64(mad.DefaultGIDPrefix)
	if len(info.GIDs) > 0 {
		prefix = info.GIDs[0].Prefix()
	}
	var recs []mad.NodeRecord
	for rec, err := range sa.Table(ctx, t.env.SA, sa.Query[mad.NodeRecord]{}) {
		if err != nil {
			return nil, err
		}
		switch kind := rec.NodeInfo.NodeType; {
		case word == "switches" && kind != mad.NodeTypeSwitch, word == "hosts" && kind != mad.NodeTypeCA:
			continue
		}
		recs = append(recs, rec)
	}
	slices.SortFunc(recs, func(a, b mad.NodeRecord) int {
		return cmp.Or(cmp.Compare(a.LID, b.LID), cmp.Compare(a.NodeInfo.LocalPortNum, b.NodeInfo.LocalPortNum))
	})
	seen := make(map[mad.GUID]bool)
	var list []any
	for _, rec := range recs {
		if word != "ports" && seen[rec.NodeInfo.NodeGUID] {
			continue
		}
		seen[rec.NodeInfo.NodeGUID] = true
		e := sa.Endpoint{
			LID: rec.LID, GID: mad.MakeGID(prefix, rec.NodeInfo.PortGUID), PortGUID: rec.NodeInfo.PortGUID,
			NodeGUID: rec.NodeInfo.NodeGUID, PortNum: rec.NodeInfo.LocalPortNum, Desc: rec.NodeDescription.String(),
		}
		item := portValue(&e)
		item["type"], item["num_ports"] = rec.NodeInfo.NodeType.String(), int(rec.NodeInfo.NumPorts)
		list = append(list, item)
	}
	return list, nil
}
