package ucma

import (
	"encoding/binary"
	"fmt"

	"github.com/ibsm/ibsm/mad"
)

// AppendCommand appends a command to b: header and structure, with 0 for the
// address of the response or value, which Device.Exec puts in. The error is a
// *CommandError for what the dialect does not have, what does not fit, and what
// the kernel would refuse whatever the state of the id.
func (d *Dialect) AppendCommand(b []byte, c Command) ([]byte, error) {
	if err := d.check(c); err != nil {
		return b, err
	}
	return d.AppendUnchecked(b, c)
}

// AppendUnchecked is AppendCommand without the checks of what the kernel checks
// itself, for tests of its answers. Errors are those of a command or value that
// has no place in the dialect's structures.
func (d *Dialect) AppendUnchecked(b []byte, c Command) ([]byte, error) {
	spec, ok := d.Spec(c.Op())
	if !ok {
		return b, d.refuse(c.Op(), fault{rule: fmt.Sprintf("%s has no such command", d), fix: insteadOf(c.Op()), errno: EINVAL})
	}
	in, f := d.encode(c.body(), false)
	if f.rule != "" {
		return b, d.refuse(c.Op(), f)
	}
	out := spec.Out
	if q, ok := c.(Query); ok {
		out = d.querySize(q)
	}
	b = binary.NativeEndian.AppendUint32(b, uint32(c.Op()))
	b = binary.NativeEndian.AppendUint16(b, uint16(len(in)))
	b = binary.NativeEndian.AppendUint16(b, uint16(out))
	return append(b, in...), nil
}

// insteadOf names what illumos has in place of a command.
func insteadOf(op Op) string {
	switch op {
	case OpBind:
		return "use BIND_IP"
	case OpResolveAddr:
		return "use RESOLVE_IP"
	case OpJoinMcast:
		return "use JOIN_IP_MCAST"
	case OpQuery:
		return "use QUERY_ROUTE"
	}
	return ""
}

func (d *Dialect) refuse(op Op, f fault) *CommandError {
	return &CommandError{Dialect: d, Op: op, Field: f.field, Rule: f.rule, Fix: f.fix, Err: f.errno}
}

// querySize is how much memory the response of a QUERY gets.
func (d *Dialect) querySize(q Query) int {
	spec, ok := d.QuerySpec(q.Option)
	if !ok {
		spec, _ = d.Spec(OpQuery)
	}
	size, n := recordSize(q.Option)
	if q.Records > 0 {
		n = q.Records
	}
	return spec.Out + n*size
}

// recordSize is the size of the records that follow the response of QUERY, and
// how many a program wants that does not say. An id has two paths at most,
// librdmacm asks for six.
func recordSize(o QueryOption) (size, usual int) {
	switch o {
	case QueryPath:
		return PathRecDataSize, 6
	case QueryIBService:
		return mad.ServiceRecordSize, 16
	}
	return 0, 0
}

// ParseHeader reads the header of a command as the kernel does, with its rules
// for sizes. The error is a *CommandError with the errno that the kernel would
// give.
func (d *Dialect) ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{Op: opNone}, d.refuse(opNone, fault{rule: fmt.Sprintf("%d bytes are shorter than a header of %d", len(b), HeaderSize), errno: EINVAL})
	}
	h := Header{
		Op:  Op(binary.NativeEndian.Uint32(b)),
		In:  int(binary.NativeEndian.Uint16(b[4:])),
		Out: int(binary.NativeEndian.Uint16(b[6:])),
	}
	no := func(errno Errno, field, rule string, args ...any) (Header, error) {
		return h, d.refuse(h.Op, fault{field: field, rule: fmt.Sprintf(rule, args...), errno: errno})
	}
	spec, ok := d.Spec(h.Op)
	switch have := len(b) - HeaderSize; {
	case !ok && h.Op != opGetOption:
		return no(EINVAL, "cmd", "%s has no command %d", d, uint32(h.Op))
	case d.maxWrite > 0 && len(b) > d.maxWrite:
		return no(EINVAL, "", "%d bytes overrun the kernel's buffer of %d", len(b), d.maxWrite)
	case h.In > have:
		return no(EINVAL, "in", "%d, but %d bytes follow the header", h.In, have)
	case !ok:
		return no(d.hole, "cmd", "%s has no command %d", d, uint32(h.Op))
	case d.exact && h.In != spec.In:
		return no(EINVAL, "in", "%d, must be %d", h.In, spec.In)
	case d.exact && h.Out != spec.Out:
		return no(EINVAL, "out", "%d, must be %d", h.Out, spec.Out)
	case spec.MinIn < spec.In && h.In < spec.MinIn: // Linux looks at in nowhere else
		return no(EINVAL, "in", "%d, at least %d", h.In, spec.MinIn)
	case h.Op != OpQuery && h.Op != OpMigrateID && h.Out < spec.MinOut:
		return no(ENOSPC, "out", "%d, at least %d", h.Out, spec.MinOut)
	case spec.MinIn == spec.In && have < spec.In:
		return no(EFAULT, "in", "%d bytes follow the header, the kernel reads %d", have, spec.In)
	}
	return h, nil
}

const (
	opGetOption Op = 13        // no command has the number any more
	opNone      Op = 1<<32 - 1 // no number at all
)

// ParseCommand reads a command, as the kernel does: sizes, addresses and reserved
// fields by its rules. The error is a *CommandError with the errno that the
// kernel would give. What the kernel checks after that, such as the state of the
// id, a port space or the room for the response of QUERY, is not checked.
func (d *Dialect) ParseCommand(b []byte) (Command, error) {
	h, err := d.ParseHeader(b)
	if err != nil {
		return nil, err
	}
	spec, _ := d.Spec(h.Op)
	size := spec.In
	if spec.MinIn < spec.In {
		size = min(h.In, spec.In)
	}
	c, f := decoders[h.Op](d, b[HeaderSize:HeaderSize+size])
	if f.rule == "" {
		f = missingAddress(c)
	}
	if f.rule != "" {
		return nil, d.refuse(h.Op, f)
	}
	if q, ok := c.(Query); ok {
		if size, _ := recordSize(q.Option); size > 0 {
			q.Records = max(h.Out-d.queryHead(q.Option), 0) / size
		}
		c = q
	}
	return c, nil
}

func (d *Dialect) queryHead(o QueryOption) int {
	spec, _ := d.QuerySpec(o)
	return spec.Out
}

// AppendResponse appends a response to b, in its full length. The kernel stores
// as much of it as the command has room for.
func (d *Dialect) AppendResponse(b []byte, r Response) ([]byte, error) {
	out, f := d.encode(r, true)
	if f.rule != "" {
		return b, d.badResponse(r, f)
	}
	return append(b, out...), nil
}

// ParseResponse reads the memory that a kernel stored a response in; what may be
// missing at its end reads as zero. The error is a *ResponseError.
func (d *Dialect) ParseResponse(b []byte, r Response) error {
	f := fault{rule: "the dialect has no such structure"}
	if s := d.structs[r.structure()]; s != nil {
		if least := d.leastOf(r.structure(), s.size); len(b) < least {
			f = fault{rule: fmt.Sprintf("%d bytes, at least %d", len(b), least)}
		} else {
			f = d.decode(r, b, true)
		}
	}
	if f.rule != "" {
		return d.badResponse(r, f)
	}
	return nil
}

// leastOf is the minimum of a response by the table of commands.
func (d *Dialect) leastOf(structure string, size int) int {
	for _, c := range d.commands {
		if c.out == structure && c.minOut != 0 {
			return c.minOut
		}
	}
	return size
}

func (d *Dialect) badResponse(r Response, f fault) *ResponseError {
	e := &ResponseError{Dialect: d, Struct: r.structure(), Rule: f.rule}
	if s := d.structs[e.Struct]; s != nil {
		e.Struct = s.name
	}
	if f.field != "" {
		e.Rule = f.field + ": " + e.Rule
	}
	return e
}
