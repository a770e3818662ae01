package ucma

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// missingAddress tells whether a command lacks an address that it must have.
func missingAddress(c Command) fault {
	need := func(field string, a Sockaddr) fault {
		if a.Family() != AFUnspec {
			return fault{}
		}
		return fault{field: field, rule: "no address", fix: "give one; 0.0.0.0 and :: mean any", errno: EINVAL}
	}
	switch c := c.(type) {
	case BindIP:
		return need("addr", c.Addr)
	case Bind:
		return need("addr", c.Addr)
	case ResolveIP:
		return need("dst_addr", c.Dst)
	case ResolveAddr:
		return need("dst_addr", c.Dst)
	case JoinIPMcast:
		return need("addr", c.Addr)
	case JoinMcast:
		return need("addr", c.Addr)
	}
	return fault{}
}

// check refuses what the kernel refuses whatever the id's state, and what would
// harm it.
func (d *Dialect) check(c Command) error {
	if _, ok := d.Spec(c.Op()); !ok {
		return nil // AppendUnchecked says so
	}
	f := missingAddress(c)
	if f.rule == "" {
		f = d.checkValues(c)
	}
	if f.rule != "" {
		return d.refuse(c.Op(), f)
	}
	return nil
}

func (d *Dialect) checkValues(c Command) fault {
	switch c := c.(type) {
	case CreateID:
		if !slices.Contains(d.spaces, c.PS) {
			return fault{"ps", fmt.Sprintf("%s has no port space %v", d, c.PS), fmt.Sprintf("use one of %v", d.spaces), EINVAL}
		}
	case ResolveIP:
		return checkTimeout(c.Timeout)
	case ResolveAddr:
		return checkTimeout(c.Timeout)
	case ResolveRoute:
		if c.Timeout == 0 && d.needsTimeout {
			return fault{"timeout_ms", "no time-out", "give at least 1ms", EINVAL}
		}
		return checkTimeout(c.Timeout)
	case Connect:
		if !c.Param.Valid && d.needsValid {
			return fault{"conn_param.valid", "must be set", "set Param.Valid", EINVAL}
		}
		return d.checkConnParam(c.Op(), &c.Param)
	case Accept:
		return d.checkConnParam(c.Op(), &c.Param)
	case Reject:
		if !slices.Contains([]RejectReason{0, mad.RejectConsumerDefined, mad.RejectVendorOptionNotSupported}, c.Reason) {
			return fault{"reason", fmt.Sprintf("%d is not a program's to give", c.Reason), "use 28 (consumer defined) or 35 (vendor option not supported)", EINVAL}
		}
		return d.checkPrivateData(c.Op(), "private_data_len", c.PrivateData)
	case InitQPAttr:
		if c.State > QPStateErr {
			return fault{"qp_state", fmt.Sprintf("%d is no state", uint32(c.State)), fmt.Sprintf("at most %d", QPStateErr), EINVAL}
		}
	case Query:
		return d.checkQuery(c)
	case SetOption:
		return d.checkOption(c)
	case JoinIPMcast:
		if d.groups.IsValid() && !d.groups.Contains(c.Addr.IP.Addr()) {
			return fault{"addr", fmt.Sprintf("%v is not a group that %s can join", c.Addr, d), fmt.Sprintf("use one of %v", d.groups), EINVAL}
		}
	case JoinMcast:
		if c.Flags > JoinSendOnlyFullMember {
			return fault{"join_flags", fmt.Sprintf("%d is unknown", c.Flags), "use 0 (full member) or 1 (send-only full member)", EINVAL}
		}
	case WriteCMEvent:
		if c.Event != EventUser && c.Event != EventInternal {
			return fault{"event", fmt.Sprintf("%v is the kernel's", c.Event), "use USER or INTERNAL", EINVAL}
		}
	}
	return fault{}
}

// checkTimeout: the kernel turns milliseconds into its own ticks, and takes a
// number above 2^31-1 for no time-out at all.
func checkTimeout(t time.Duration) fault {
	switch most := time.Duration(math.MaxInt32) * time.Millisecond; {
	case t < 0:
		return fault{"timeout_ms", fmt.Sprintf("a time-out of %v", t), "give one that is not over yet", EINVAL}
	case t > most:
		return fault{"timeout_ms", fmt.Sprintf("a time-out of %v", t), fmt.Sprintf("at most %v", most), EINVAL}
	}
	return fault{}
}

func (d *Dialect) checkConnParam(op Op, p *ConnParam) fault {
	if p.QPNum >= 1<<24 {
		return fault{"conn_param.qp_num", fmt.Sprintf("%#x has more than 24 bits", p.QPNum), "give the number of a queue pair", EINVAL}
	}
	return d.checkPrivateData(op, "conn_param.private_data_len", p.PrivateData)
}

func (d *Dialect) checkPrivateData(op Op, field string, data []byte) fault {
	if most := d.maxPrivateData(op); len(data) > most {
		return fault{field, fmt.Sprintf("%d bytes of private data", len(data)), fmt.Sprintf("%s sends at most %d here, and less for some ids", d, most), EINVAL}
	}
	return fault{}
}

func (d *Dialect) checkQuery(q Query) fault {
	if _, ok := d.QuerySpec(q.Option); !ok {
		return fault{"option", fmt.Sprintf("%d is unknown", uint32(q.Option)), "use 0 (ADDR), 1 (PATH), 2 (GID) or 3 (IB_SERVICE)", ENOSYS}
	}
	if n := d.querySize(q); q.Records < 0 || n > math.MaxUint16 {
		return fault{"out", fmt.Sprintf("room for %d records", q.Records), fmt.Sprintf("the response has at most %d bytes", math.MaxUint16), EINVAL}
	}
	return fault{}
}

// checkOption checks the size of the options that are known; others are the
// kernel's to judge.
func (d *Dialect) checkOption(o SetOption) fault {
	if d.noOptions {
		return fault{"", fmt.Sprintf("%s refuses every option, so a path cannot be given either", d), "use RESOLVE_ROUTE for a path", EINVAL}
	}
	size := len(o.Value)
	name, known := optionNames[o.Level][o.Name]
	switch {
	case o.Len != 0 && int(o.Len) != size:
		return fault{"optlen", fmt.Sprintf("%d, but the value has %d bytes", o.Len, size), "leave Len 0", EINVAL}
	case !known:
		return fault{}
	case o.Level == OptionLevelIB:
		return checkPaths(o.Value)
	}
	if want := optionSizes[o.Name]; size != want {
		return fault{"optlen", fmt.Sprintf("%s of %d bytes", name, size), fmt.Sprintf("it has %d", want), EINVAL}
	}
	return fault{}
}

// optionSizes of OptionLevelID.
var optionSizes = map[uint32]int{OptionTOS: 1, OptionReuseAddr: 4, OptionAFOnly: 4, OptionACKTimeout: 1}

// checkPaths: the kernel takes the first path whose flags are exactly PathFlags.
func checkPaths(value []byte) fault {
	if f := checkPathsSize(value); f.rule != "" {
		return f
	}
	for b := value; len(b) > 0; b = b[PathRecDataSize:] {
		if binary.NativeEndian.Uint32(b) == PathFlags {
			return fault{}
		}
	}
	return fault{"flags", "no path is usable", fmt.Sprintf("the flags must be exactly %#x", PathFlags), EINVAL}
}

func checkPathsSize(value []byte) fault {
	if len(value) == 0 || len(value)%PathRecDataSize != 0 {
		return fault{"optlen", fmt.Sprintf("IB_PATH of %d bytes", len(value)), fmt.Sprintf("it has %d for each path", PathRecDataSize), EINVAL}
	}
	return fault{}
}

// SetTOS makes the command that sets the type of service, which counts for
// routes resolved later.
func SetTOS(id uint32, tos uint8) SetOption {
	return SetOption{ID: id, Level: OptionLevelID, Name: OptionTOS, Value: []byte{tos}}
}

// SetReuseAddr makes the command that lets an id be bound to an address in use.
func SetReuseAddr(id uint32, on bool) SetOption {
	return SetOption{ID: id, Level: OptionLevelID, Name: OptionReuseAddr, Value: boolean(on)}
}

// SetAFOnly makes the command that keeps an id bound to :: from taking IPv4
// connections.
func SetAFOnly(id uint32, on bool) SetOption {
	return SetOption{ID: id, Level: OptionLevelID, Name: OptionAFOnly, Value: boolean(on)}
}

// SetACKTimeout makes the command that sets the queue pair's ACK time-out, 4.096
// us * 2^n.
func SetACKTimeout(id uint32, n uint8) SetOption {
	return SetOption{ID: id, Level: OptionLevelID, Name: OptionACKTimeout, Value: []byte{n}}
}

// SetIBPath makes the command that gives an id its path in place of RESOLVE_ROUTE.
// The kernel takes the first with flags PathFlags. Event: ROUTE_RESOLVED.
func SetIBPath(id uint32, paths ...PathRecData) SetOption {
	value := make([]byte, len(paths)*PathRecDataSize)
	for i := range paths {
		paths[i].walk(pathCodec(value[i*PathRecDataSize:], true))
	}
	return SetOption{ID: id, Level: OptionLevelIB, Name: OptionIBPath, Value: value}
}

// ParseIBPath reads the value of IB_PATH, whatever the flags. The error is a
// *CommandError.
func ParseIBPath(value []byte) ([]PathRecData, error) {
	if f := checkPathsSize(value); f.rule != "" {
		return nil, Linux.refuse(OpSetOption, f)
	}
	paths := make([]PathRecData, len(value)/PathRecDataSize)
	for i := range paths {
		paths[i].walk(pathCodec(value[i*PathRecDataSize:], false))
	}
	return paths, nil
}

func pathCodec(b []byte, put bool) *codec {
	return &codec{d: Linux, s: linuxStructs["path_rec_data"], b: b[:PathRecDataSize], put: put, fault: new(fault)}
}

func boolean(on bool) []byte { return binary.NativeEndian.AppendUint32(nil, bit(on)) }
