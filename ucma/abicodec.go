package ucma

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// body is the Go side of a C structure. walk names each field and its variable,
// and so serves both ways; where the field is, and how it is written, the
// dialect's table says.
type body interface {
	structure() string // key in the dialect's table
	walk(*codec)
}

// codec moves values between a body and the bytes of its structure.
type codec struct {
	d        *Dialect
	s        *structure
	b        []byte // when reading it may end early: what is not there reads as zero
	put      bool   // into b
	response bool   // written by the kernel
	fault    *fault // shared with nested codecs; the first one stays
}

// fault is why a value cannot be written or read.
type fault struct {
	field, rule, fix string
	errno            Errno
}

func (c *codec) fail(f fault) {
	if c.fault.rule == "" {
		*c.fault = f
	}
}

// encode writes a body. Its bytes are as long as the structure, or shorter
// without an optional tail, or longer with records.
func (d *Dialect) encode(v body, response bool) ([]byte, fault) {
	s := d.structs[v.structure()]
	if s == nil {
		return nil, fault{rule: "the dialect has no such structure", errno: EINVAL}
	}
	c := codec{d: d, s: s, b: make([]byte, s.size), put: true, response: response, fault: new(fault)}
	v.walk(&c)
	return c.b, *c.fault
}

// decode reads a body.
func (d *Dialect) decode(v body, b []byte, response bool) fault {
	s := d.structs[v.structure()]
	if s == nil {
		return fault{rule: "the dialect has no such structure", errno: EINVAL}
	}
	c := codec{d: d, s: s, b: b, response: response, fault: new(fault)}
	v.walk(&c)
	return *c.fault
}

func (s *structure) field(name string) *field {
	for i := range s.fields {
		if s.fields[i].name == name {
			return &s.fields[i]
		}
	}
	return nil
}

// at is where a field's bytes are; nil if the structure has no such field, or
// the bytes end before.
func (c *codec) at(f *field) []byte {
	if f == nil || f.off+f.size > len(c.b) {
		return nil
	}
	return c.b[f.off : f.off+f.size]
}

// missing refuses to write a value into a structure without that field.
func (c *codec) missing(name string, isSet bool) {
	if c.put && isSet {
		c.fail(fault{field: name, rule: fmt.Sprintf("%s of %s has no such field", c.s.name, c.d), fix: "leave it zero", errno: EINVAL})
	}
}

type number interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int32
}

// num is a number.
func num[T number](c *codec, name string, v *T) {
	f := c.s.field(name)
	if f == nil {
		c.missing(name, *v != 0)
		return
	}
	switch b := c.at(f); {
	case c.put:
		putNumber(b, f.form, uint64(*v))
	case b == nil:
		*v = 0
	default:
		*v = T(getNumber(b, f.form))
	}
}

func (f form) order() binary.ByteOrder {
	if f == big {
		return binary.BigEndian
	}
	return binary.NativeEndian
}

func putNumber(b []byte, f form, v uint64) {
	switch o := f.order(); len(b) {
	case 1:
		b[0] = byte(v)
	case 2:
		o.PutUint16(b, uint16(v))
	case 4:
		o.PutUint32(b, uint32(v))
	case 8:
		o.PutUint64(b, v)
	}
}

func getNumber(b []byte, f form) uint64 {
	switch o := f.order(); len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(o.Uint16(b))
	case 4:
		return uint64(o.Uint32(b))
	case 8:
		return o.Uint64(b)
	}
	return 0
}

// flag is a number that is 0 or not.
func flag(c *codec, name string, v *bool) {
	n := uint8(bit(*v))
	num(c, name, &n)
	*v = n != 0
}

// bytes are those of a field, in place.
func (c *codec) bytes(name string, v []byte) {
	b := c.at(c.s.field(name))
	if c.put {
		copy(b, v)
		return
	}
	clear(v)
	copy(v, b)
}

func (c *codec) gid(name string, v *mad.GID) {
	f := c.s.field(name)
	b := c.at(f)
	if b == nil || f.form == gid {
		c.bytes(name, v[:])
		return
	}
	for i := 0; i < len(v); i += 8 {
		if c.put {
			binary.NativeEndian.PutUint64(b[i:], binary.BigEndian.Uint64(v[i:]))
		} else {
			binary.BigEndian.PutUint64(v[i:], binary.NativeEndian.Uint64(b[i:]))
		}
	}
}

// private is private data with its length.
func (c *codec) private(v *[]byte) {
	b := c.at(c.s.field("private_data"))
	if c.put {
		if len(*v) > 255 {
			c.fail(fault{field: "private_data_len", rule: fmt.Sprintf("%d bytes do not fit a length of one byte", len(*v)), fix: "send less", errno: EINVAL})
			return
		}
		copy(b, *v)
	}
	n := uint8(len(*v))
	num(c, "private_data_len", &n)
	if !c.put {
		*v = nil
		if n > 0 && b != nil {
			*v = append([]byte(nil), b[:n]...)
		}
	}
}

// nested is the codec of the i-th structure in a field; nil if there is none.
func (c *codec) nested(name string, i int) *codec {
	f := c.s.field(name)
	b := c.at(f)
	if b == nil {
		return nil
	}
	s := c.d.structs[string(f.form)]
	return &codec{d: c.d, s: s, b: b[i*s.size : (i+1)*s.size], put: c.put, response: c.response, fault: c.fault}
}

// records are structures after the head, as many as there is room for, and total
// at most.
func records[T any](c *codec, of string, total uint32, list *[]T, walk func(*T, *codec)) {
	s := c.d.structs[of]
	head := c.s.size
	if c.put {
		c.b = append(c.b, make([]byte, len(*list)*s.size)...)
	} else {
		*list = make([]T, min(uint64(total), uint64(max(len(c.b)-head, 0)/s.size)))
	}
	for i := range *list {
		b := c.b[head+i*s.size:]
		walk(&(*list)[i], &codec{d: c.d, s: s, b: b[:s.size], put: c.put, response: c.response, fault: c.fault})
	}
}

// timeout is a time-out in milliseconds. One that cannot be written is refused
// by Dialect.check.
func (c *codec) timeout(v *time.Duration) {
	ms := milliseconds(*v)
	num(c, "timeout_ms", &ms)
	if !c.put {
		*v = time.Duration(ms) * time.Millisecond
	}
}

func milliseconds(d time.Duration) uint32 {
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return uint32(min(max(ms, 0), math.MaxUint32))
}

// ece is the optional tail of CONNECT and ACCEPT.
func (c *codec) ece(v **ECE) {
	f := c.s.field("ece")
	switch {
	case f == nil:
		c.missing("ece", *v != nil)
	case c.put && *v == nil:
		c.b = c.b[:f.off]
	case c.at(f) != nil:
		if !c.put {
			*v = new(ECE)
		}
		(*v).walk(c.nested("ece", 0))
	}
}

// mustBeZero refuses a reserved field that the kernel looks at.
func (c *codec) mustBeZero(name string) {
	if b := c.at(c.s.field(name)); getNumber(b, native) != 0 {
		c.fail(fault{field: name, rule: "must be 0", errno: EINVAL})
	}
}

// codec is that of a structure that an EventParam may be. They are the same in
// both dialects, but for the Q_Key of a connection, which illumos leaves 0.
func (p *EventParam) codec(key string, put bool) *codec {
	s := Linux.structs[key]
	return &codec{d: Linux, s: s, b: p[:s.size], put: put, fault: new(fault)}
}

// Conn reads them as those of a connection.
func (p *EventParam) Conn() (v ConnParam) {
	v.walk(p.codec("conn_param", false))
	return v
}

// UD reads them as those of a UD id.
func (p *EventParam) UD() (v UDParam) {
	v.walk(p.codec("ud_param", false))
	return v
}

// Arg reads the number of a WriteCMEvent's event.
func (p *EventParam) Arg() uint64 { return binary.NativeEndian.Uint64(p[:]) }

// SetConn writes those of a connection. Of private data longer than 255 bytes
// nothing is written.
func (p *EventParam) SetConn(v ConnParam) {
	*p = EventParam{}
	v.walk(p.codec("conn_param", true))
}

// SetUD writes those of a UD id. Of private data longer than 255 bytes nothing
// is written.
func (p *EventParam) SetUD(v UDParam) {
	*p = EventParam{}
	v.walk(p.codec("ud_param", true))
}

// SetArg writes the number of a WriteCMEvent's event.
func (p *EventParam) SetArg(v uint64) {
	*p = EventParam{}
	binary.NativeEndian.PutUint64(p[:], v)
}
