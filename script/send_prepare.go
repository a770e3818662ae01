package script

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/sa"
)

// Defaults of send.
const (
	sendTimeout = time.Second
	sendRetries = 2
)

// maxRaw is how long the data of a message may be that goes by RMPP.
const maxRaw = 1 << 20

// Positions of headers (IBA 16.5, 15.2.1.1).
const (
	offOUI           = 37
	offSMKey         = mad.OffRMPPData
	offComponentMask = offSMKey + 12
)

func ouiOf(b []byte) uint32 {
	if c := mad.Class(b[mad.OffClass]); c < 0x30 || c > 0x4f {
		return 0
	}
	return binary.BigEndian.Uint32(b[offOUI-1:]) & 0xffffff
}

// preparation is the making of a message.
type preparation struct {
	*message
	*vars
	ctx   context.Context
	step  *Send
	class mad.Class
	addr  mad.Addr // zero: the SM
}

// prepare makes the MAD of a step. Addresses are looked up here.
func (s *sender) prepare(ctx context.Context, step *Send, v *vars) (*message, error) {
	m := &message{sender: s}
	m.data = m.mad[:]
	p := &preparation{message: m, vars: v, ctx: ctx, step: step}
	for _, part := range []func() error{p.raw, p.address, p.kind, p.direct, p.common, p.attribute, p.headers, p.delivery} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// raw puts the bytes down that all else changes.
func (p *preparation) raw() error {
	if p.step.Raw == nil {
		return nil
	}
	b, err := p.bytes(p.step.Raw)
	if err == nil && len(b) > mad.Size {
		err = &ValueError{p.step.Raw.Pos, "raw", fmt.Errorf("%d bytes, a MAD has %d", len(b), mad.Size)}
	}
	p.alone = true
	copy(p.mad[:], b)
	p.class = mad.Class(p.mad[mad.OffClass])
	return err
}

// kind finds class and attribute. Attributes of nodes serve both classes of SMPs: a
// route takes the one for routes.
func (p *preparation) kind() error {
	switch {
	case p.step.Class != nil:
		s, err := p.text(p.ctx, p.step.Class)
		if err == nil {
			p.class, err = classOf(s)
		}
		if err != nil {
			return &ValueError{p.step.Class.Pos, s, err}
		}
	case p.step.Raw == nil:
		return errors.New("send needs a class, unless the whole MAD is given as raw")
	}
	if p.addr.Kind == mad.AddrRoute || p.addr.Kind == mad.AddrCombined {
		switch p.class {
		case mad.ClassSubnDirected:
		case mad.ClassSubnLIDRouted:
			p.class = mad.ClassSubnDirected
		default:
			return &ValueError{p.step.To.Pos, p.addr.String(), fmt.Errorf("a directed route leads SMPs only, and this is a MAD of class %v", p.class)}
		}
	}
	if p.attr = p.step.Attr; p.step.Attribute == nil || p.attr != nil {
		return nil
	}
	s, err := p.text(p.ctx, p.step.Attribute)
	if err != nil {
		return err
	}
	if p.attr, err = layout.LookUpAttribute(uint8(p.class), s); err == nil {
		return nil
	}
	id, ok := textNumber(s) // one that the table does not have
	if !ok || id > math.MaxUint16 {
		return &ValueError{p.step.Attribute.Pos, s, err}
	}
	binary.BigEndian.PutUint16(p.mad[mad.OffAttribute:], uint16(id))
	return nil
}

// common fills in the common header.
func (p *preparation) common() error {
	s := p.step
	made := s.Raw == nil
	if made || s.Class != nil || p.class != mad.Class(p.mad[mad.OffClass]) {
		p.mad[mad.OffClass] = byte(p.class)
	}
	if p.attr != nil && (made || s.Attribute != nil) {
		binary.BigEndian.PutUint16(p.mad[mad.OffAttribute:], p.attr.ID)
	}
	if p.attr == nil {
		p.attr = layout.FindAttribute(uint8(p.class), binary.BigEndian.Uint16(p.mad[mad.OffAttribute:]))
	}
	base, version := p.mad[0], p.mad[mad.OffClassVersion]
	method := mad.Method(p.mad[mad.OffMethod])
	if made {
		base, version, method = mad.BaseVersion, classVersion(p.class), mad.MethodGet
	}
	for _, n := range []struct {
		v    *Value
		most uint64
		to   *uint8
	}{{s.BaseVersion, math.MaxUint8, &base}, {s.ClassVersion, math.MaxUint8, &version}} {
		x, err := p.number(p.ctx, n.v, uint64(*n.to), 0, n.most)
		if err != nil {
			return err
		}
		*n.to = uint8(x)
	}
	if s.Method != nil {
		name, err := p.text(p.ctx, s.Method)
		if err == nil {
			method, err = methodOf(name)
		}
		if err != nil {
			return &ValueError{s.Method.Pos, name, err}
		}
	}
	p.mad[0], p.mad[mad.OffClassVersion], p.mad[mad.OffMethod] = base, version, byte(method)
	if s.Modifier != nil {
		modifier, err := p.number(p.ctx, s.Modifier, 0, 0, math.MaxUint32)
		if err != nil {
			return err
		}
		binary.BigEndian.PutUint32(p.mad[mad.OffModifier:], uint32(modifier))
	}
	if s.OUI != nil {
		oui, err := p.number(p.ctx, s.OUI, 0, 0, 1<<24-1)
		if err != nil {
			return err
		}
		layout.SetUint(p.mad[:], offOUI*8, 24, oui)
	}
	return nil
}

// dataOffset is where the attribute stands.
func dataOffset(c mad.Class) int {
	if c.IsSMP() {
		return mad.OffSMPData
	}
	return mad.ClassHeaderLen(c)
}

// attribute fills in the attribute, and what of it counts.
func (p *preparation) attribute() error {
	at := dataOffset(p.class)
	if p.step.Data != nil {
		b, err := p.bytes(p.step.Data)
		if err != nil {
			return err
		}
		room := mad.Size - at
		if p.class.IsSMP() {
			room = mad.SMPDataSize
		}
		switch {
		case len(b) <= room:
		case p.class.IsSMP() || !mad.HasRMPP(p.class) || p.alone || len(p.step.RMPP) > 0:
			return &ValueError{p.step.Data.Pos, "data", fmt.Errorf("%d bytes, and %d fit", len(b), room)}
		default:
			p.data = append(slices.Clone(p.mad[:at]), b...) // goes by RMPP
		}
		copy(p.data[at:], b)
	}
	var mask uint64
	if len(p.step.Set) > 0 {
		if p.attr == nil {
			return &ValueError{p.step.Set[0].Pos, p.step.Set[0].Key, errors.New("the field table does not have the attribute: give its bytes as data")}
		}
		of := settable(p.attr.Struct)
		for _, e := range p.step.Set {
			set, err := p.setEntry(p.ctx, of, p.data[at:at+of.Size], e)
			if err != nil {
				return err
			}
			for i := range set {
				mask |= maskOf(of, set[i].Name)
			}
		}
	}
	if p.class != mad.ClassSubnAdm {
		return nil
	}
	if p.step.Mask != nil {
		var err error
		if mask, err = p.mask(); err != nil {
			return err
		}
	} else if mask == 0 {
		return nil
	}
	binary.BigEndian.PutUint64(p.data[offComponentMask:], mask)
	return nil
}

// maskOf gives the bits of a component; one of its elements stands for it.
func maskOf(of *layout.Struct, name string) uint64 {
	if bits := of.MaskOf(name); bits != 0 {
		return bits
	}
	if base, _, ok := strings.Cut(name, "["); ok {
		return of.MaskOf(base)
	}
	return 0
}

// mask reads a component mask.
func (p *preparation) mask() (uint64, error) {
	value, err := p.value(p.ctx, p.step.Mask)
	if err != nil {
		return 0, err
	}
	names, isList := value.([]any)
	if !isList {
		if n, ok := wholeNumber(value); ok {
			return n, nil
		}
		names = []any{value}
	}
	if p.attr == nil {
		return 0, valueError(p.step.Mask, value, "the field table does not have the attribute: give a number")
	}
	var mask uint64
	for _, name := range names {
		bits, err := sa.Mask(p.attr.Struct, write(name))
		if err != nil {
			return 0, &ValueError{p.step.Mask.Pos, write(name), err}
		}
		mask |= bits
	}
	return mask, nil
}

// headers changes fields of the headers by name.
func (p *preparation) headers() error {
	of := headerLayout(p.class)
	for _, e := range slices.Concat(p.step.Header, p.step.RMPP) {
		if _, err := p.setEntry(p.ctx, of, p.data[:of.Size], e); err != nil {
			return err
		}
	}
	if len(p.step.RMPP) > 0 {
		p.alone = true
	}
	return nil
}

// setEntry sets one field. In one that is a key, what begins with env: or file: stands for
// a secret.
func (s *vars) setEntry(ctx context.Context, of *layout.Struct, b []byte, e Entry) ([]layout.Field, error) {
	value, err := s.value(ctx, e.Value)
	if err != nil {
		return nil, err
	}
	if e.Value == nil || value == nil {
		return nil, &ValueError{e.Pos, e.Key, errors.New("it has no value")}
	}
	if _, isInt := value.(int); !isInt && e.Value.Shape == Scalar && len(e.Value.Parts) == 0 {
		value = e.Value.Text
	}
	s.lib.masker.allow(e.Value)
	if value, err = s.lib.masker.keys(of, b, e.Key, value); err != nil {
		return nil, &ValueError{e.Value.Pos, e.Value.Text, err}
	}
	set, err := setField(of, b, e.Key, value)
	if err != nil {
		return nil, &ValueError{e.Value.Pos, e.Key, errors.New(s.lib.masker.text(err.Error()))}
	}
	return set, nil
}

// delivery reads how the MAD is sent and waited for.
func (p *preparation) delivery() error {
	s := p.step
	method := mad.Method(p.data[mad.OffMethod])
	var err error
	if p.timeout, err = p.duration(p.ctx, s.Timeout, sendTimeout); err != nil {
		return err
	}
	numbers := []struct {
		v                  *Value
		other, least, most uint64
		to                 func(uint64)
	}{
		{s.Retries, sendRetries, 0, 1000, func(n uint64) { p.retries = int(n) }},
		{s.TID, 0, 0, math.MaxUint64, p.setTID},
		{s.SL, uint64(p.vector.SL), 0, 15, func(n uint64) { p.vector.SL = uint8(n) }},
		{s.QP, uint64(p.vector.QPN), 0, 1<<24 - 1, func(n uint64) { p.vector.QPN = uint32(n) }},
	}
	for _, n := range numbers {
		x, err := p.number(p.ctx, n.v, n.other, n.least, n.most)
		if err != nil {
			return err
		}
		n.to(x)
	}
	if p.vector.QPN == mad.QPSMI || s.QP == nil && p.class.IsSMP() {
		p.qp = mad.QPSMI
	} else {
		p.qp = mad.QPGSI
	}
	if s.PKey != nil {
		key, err := p.number(p.ctx, s.PKey, 0, 0, math.MaxUint16)
		if err != nil {
			return err
		}
		info, err := p.sender.dev.Info()
		if err == nil {
			err = p.partition(info, key, false)
		}
		if err != nil {
			return &ValueError{s.PKey.Pos, s.PKey.Text, err}
		}
	}
	if err := p.global(); err != nil {
		return err
	}
	many := method == mad.MethodGetTable || method == mad.MethodGetTraceTable || method == mad.MethodGetMulti
	if p.long, err = p.flag(p.ctx, s.Long, p.class == mad.ClassSubnAdm && many); err != nil {
		return err
	}
	if p.noAnswerOK, err = p.flag(p.ctx, s.NoAnswerOK, false); err != nil {
		return err
	}
	if mad.IsResponse(p.data) { // nothing answers it
		p.alone, p.timeout = true, 0
	}
	if s.Length != nil {
		n, err := p.number(p.ctx, s.Length, 0, 1, mad.Size)
		if err != nil {
			return err
		}
		p.alone = true
		p.data = p.data[:n]
	}
	return nil
}

// setTID chooses the transaction id.
func (p *preparation) setTID(tid uint64) {
	if p.step.TID == nil {
		return
	}
	binary.BigEndian.PutUint64(p.data[mad.OffTID:], tid)
	p.tid = uint32(tid)
	p.alone = p.alone || p.tid == 0 // which to agents is any
}

// bytesOf reads bytes in hexadecimal.
func (s *vars) bytesOf(ctx context.Context, v *Value) ([]byte, error) {
	text, err := s.text(ctx, v)
	if err != nil {
		return nil, err
	}
	b, err := hexOfText(text)
	if err == nil && len(b) > maxRaw {
		err = fmt.Errorf("%d bytes, and %d is the most", len(b), maxRaw)
	}
	if err != nil {
		return nil, &ValueError{v.Pos, cutText(text), err}
	}
	return b, nil
}

func (p *preparation) bytes(v *Value) ([]byte, error) { return p.bytesOf(p.ctx, v) }

// hexOfText reads hexadecimal with 0x before it or not, and blanks and colons
// between bytes.
func hexOfText(s string) ([]byte, error) {
	s = strings.NewReplacer(" ", "", "\n", "", "\t", "", ":", "").Replace(s)
	b, err := hex.DecodeString(strings.TrimPrefix(s, "0x"))
	if err != nil {
		return nil, fmt.Errorf("it takes bytes in hexadecimal: %w", err)
	}
	return b, nil
}

func cutText(s string) string {
	if len(s) > maxShown {
		return cut(s)
	}
	return s
}
