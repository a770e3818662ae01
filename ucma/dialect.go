package ucma

import (
	"fmt"
	"net/netip"
)

// Dialect is the command interface of one system, as data: which commands there
// are, where each field of each structure is, which sizes a command must have,
// how addresses look, and the numbers of address families and errnos.
type Dialect struct {
	name     string
	device   string // its file
	commands map[Op]command
	queries  map[QueryOption]command // what QUERY's response depends on
	structs  map[string]*structure
	families map[Family]uint16
	sin6     int  // size of a sockaddr_in6
	exact    bool // a command's in and out must be exactly its sizes
	maxWrite int  // a longer write is dangerous; 0: none is
	hole     Errno
	errnos   map[Errno]int
	private  privateLimits

	// What the kernel always refuses, so that it need not be asked.
	spaces       []PortSpace  // others than these
	needsValid   bool         // CONNECT without valid
	needsTimeout bool         // RESOLVE_ROUTE without time-out
	noOptions    bool         // SET_OPTION
	groups       netip.Prefix // JOIN_IP_MCAST outside, if it is not zero

	abiFiles       []string // of sysfs, any of which has the version of the interface
	abiMin, abiMax int      // versions that are the same for us
}

// command is a row of a dialect's table of commands: the names of its
// structures. A size that may be less has its minimum.
type command struct {
	in     string
	minIn  int // 0: the whole structure
	out    string
	minOut int // 0: the whole structure
}

// String is the dialect's name, "linux" or "illumos".
func (d *Dialect) String() string { return d.name }

// Spec is what a dialect says of a command. Sizes are in bytes, without the
// header.
type Spec struct {
	In, MinIn   int  // of the command's structure; it may be less where a tail is optional
	Out, MinOut int  // of the response, without records; 0: it has none
	AddressAt   int  // where in the write the address of the response or value is; -1: nowhere
	Exact       bool // In and Out, and nothing else
}

// Spec tells of a command; ok is false if the dialect does not have it. Of
// QUERY it tells what QueryAddr has; see QuerySpec.
func (d *Dialect) Spec(op Op) (spec Spec, ok bool) {
	c, ok := d.commands[op]
	if !ok {
		return Spec{}, false
	}
	return d.spec(c), true
}

// QuerySpec tells of QUERY with an option. Records of [PathRecDataSize] bytes
// follow the response of QueryPath, and of mad.ServiceRecordSize bytes that of
// QueryIBService.
func (d *Dialect) QuerySpec(option QueryOption) (spec Spec, ok bool) {
	c, ok := d.queries[option]
	if !ok {
		return Spec{}, false
	}
	return d.spec(c), true
}

func (d *Dialect) spec(c command) Spec {
	in := d.structs[c.in]
	spec := Spec{In: in.size, MinIn: in.size, AddressAt: -1, Exact: d.exact}
	if c.minIn != 0 {
		spec.MinIn = c.minIn
	}
	if c.out != "" {
		spec.Out, spec.MinOut = d.structs[c.out].size, d.structs[c.out].size
	}
	if c.minOut != 0 {
		spec.MinOut = c.minOut
	}
	for _, f := range in.fields {
		if f.form == address {
			spec.AddressAt = HeaderSize + f.off
		}
	}
	return spec
}

// privateLimits are the sizes of private data in CM messages (IBA 12.6;
// include/rdma/ib_cm.h, enum ib_cm_data_size), and of the header that goes first
// there for IP addresses (IBA Annex A11).
type privateLimits struct{ req, sidrReq, ipHeader, rep, sidrRep, rej int }

// PrivateDataLimit is how much private data a CONNECT, ACCEPT or REJECT of an id
// of some type, bound to an address of some family, can send; 0 for other
// commands. ACCEPT without ConnParam.Valid sends none of it.
//
// AppendCommand knows neither the id's type nor its family, and refuses only
// what is too long for all of them.
func (d *Dialect) PrivateDataLimit(op Op, t QPType, f Family) int {
	l := &d.private
	header := l.ipHeader
	if f == AFIB {
		header = 0
	}
	switch {
	case op == OpConnect && t == QPTypeUD:
		return l.sidrReq - header
	case op == OpConnect:
		return l.req - header
	case op == OpAccept && t == QPTypeUD, op == OpReject && t == QPTypeUD:
		return l.sidrRep
	case op == OpAccept:
		return l.rep
	case op == OpReject:
		return l.rej
	}
	return 0
}

// maxPrivateData is the most that any id of the dialect can send.
func (d *Dialect) maxPrivateData(op Op) int {
	n := 0
	for f := range d.families {
		n = max(n, d.PrivateDataLimit(op, QPTypeRC, f), d.PrivateDataLimit(op, QPTypeUD, f))
	}
	return n
}

// Header stands before every command (struct rdma_ucm_cmd_hdr).
type Header struct {
	Op  Op
	In  int // bytes of the command's structure
	Out int // bytes of memory for the response
}

// HeaderSize is the size of a Header in bytes.
const HeaderSize = 8

// CommandError is a command that is refused before it is written, or by the
// kernel: which one, because of which field and rule, and what to do.
type CommandError struct {
	Dialect *Dialect
	Op      Op
	Field   string // of the structure, as in C; "" if it is about the whole
	Rule    string // that was broken; "" if the kernel gave no more than Err
	Fix     string // or ""
	Err     error  // what the kernel says or would say, or what else went wrong
}

func (e *CommandError) Error() string {
	s := e.Op.String()
	if e.Field != "" {
		s += ": " + e.Field
	}
	if e.Rule != "" {
		s += ": " + e.Rule
	}
	if e.Err != nil {
		s += fmt.Sprintf(" (%s: %v)", e.Dialect, e.Err)
	}
	if e.Fix != "" {
		s += ": " + e.Fix
	}
	return s
}

func (e *CommandError) Unwrap() error { return e.Err }

// ResponseError is a response that is not what it should be.
type ResponseError struct {
	Dialect *Dialect
	Struct  string // as in C
	Rule    string // that was broken
}

func (e *ResponseError) Error() string {
	return fmt.Sprintf("%s response %s: %s", e.Dialect, e.Struct, e.Rule)
}
