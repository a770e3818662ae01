package script

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/port"
)

// resultData is the result of send that is made of bytes only when it is asked
// for.
const resultData = "data"

// What an answer keeps: MaxRecords of its records, and not more than maxKept bytes.
// What is beyond is counted.
const (
	MaxRecords = 1_000_000
	maxKept    = agents.DefaultMaxMessage
)

// maxReported is how much of an answer a report may show.
const maxReported = 1 << 16

// answer is what came of a message.
type answer struct {
	err     error             // why there is none; nil if there is one, or none is waited for
	from    mad.AddressVector // who answered
	latency time.Duration

	attr  *layout.Attribute // that was asked for
	b     []byte            // headers once, then data, as far as it is kept
	head  int               // length of the headers
	total int               // length of the data
	limit int               // of what is kept
}

// take is given the headers and the data by agents, in pieces.
func (a *answer) take(head *agents.Response, data []byte) error {
	if a.b == nil {
		a.from, a.head = head.Addr, len(head.Data)
		a.b = append(make([]byte, 0, max(mad.Size, len(head.Data)+len(data))), head.Data...)
		a.limit = maxKept
		if step := a.distance(); step > 0 {
			a.limit = min(a.limit, MaxRecords*step)
		}
	}
	a.total += len(data)
	if room := a.limit - (len(a.b) - a.head); room > 0 {
		a.b = append(a.b, data[:min(len(data), room)]...)
	}
	return nil
}

// answered tells whether an answer came.
func (a *answer) answered() bool { return a.b != nil }

// shown is the answer for reports: headers once, then data, keys blanked, and its
// beginning only if it is long. Nil: there is none.
func (a *answer) shown() []byte {
	if a.b == nil {
		return nil
	}
	return blankKeys(a.b[:min(len(a.b), maxReported)])
}

func (a *answer) class() mad.Class { return mad.Class(a.b[mad.OffClass]) }

// status is that of the answer, without the D bit.
func (a *answer) status() mad.Status {
	status := mad.Status(binary.BigEndian.Uint16(a.b[mad.OffStatus:]))
	if a.class() == mad.ClassSubnDirected {
		status &= 0x7fff
	}
	return status
}

// payload is the attribute's bytes.
func (a *answer) payload() []byte {
	if a.class().IsSMP() {
		return a.b[mad.OffSMPData : mad.OffSMPData+mad.SMPDataSize]
	}
	return a.b[a.head:]
}

// distance is how far apart the records of a table lie (IBA 15.2.1.1); 0 if there
// is one record, or none.
func (a *answer) distance() int {
	if a.class() != mad.ClassSubnAdm || mad.Method(a.b[mad.OffMethod]) == mad.MethodGetResp {
		return 0
	}
	return 8 * int(binary.BigEndian.Uint16(a.b[mad.OffRMPPData+8:]))
}

// isWhole tells whether all of a table has come by RMPP. What carries it may have
// none: then the first MAD comes alone, marked as one of several, and may end amid
// a record.
func (a *answer) isCut() bool {
	active := mad.RMPPFlags(a.b[mad.OffRMPP+2])&mad.RMPPFlagActive != 0
	return a.class() == mad.ClassSubnAdm && active && a.b[mad.OffRMPP] == 0
}

// records gives the records that are kept, and how many came.
func (a *answer) records() (list []any, count int) {
	attr := layout.FindAttribute(uint8(a.class()), binary.BigEndian.Uint16(a.b[mad.OffAttribute:]))
	if attr == nil {
		return nil, 0
	}
	data, of := a.payload(), attr.Struct
	step := a.distance()
	if a.class() == mad.ClassSubnAdm && a.status() != mad.StatusOK || len(data) < of.Size {
		return nil, 0
	}
	if step < of.Size {
		// One record. Of a table without a distance zeros are none.
		if a.class() == mad.ClassSubnAdm && mad.Method(a.b[mad.OffMethod]) != mad.MethodGetResp && isZero(data) {
			return nil, 0
		}
		return []any{&record{of, data[:of.Size]}}, 1
	}
	count = a.total / step
	if a.total%step >= of.Size {
		count++ // the last record may stop short of its padding
	}
	single := mad.RMPPFlags(a.b[mad.OffRMPP+2])&mad.RMPPFlagActive == 0
	all := make([]record, 0, min(count, MaxRecords))
	for ; len(data) >= of.Size && len(all) < MaxRecords; data = data[min(step, len(data)):] {
		if single && isZero(data[:of.Size]) {
			break // a MAD that RMPP does not tell the length of: what follows is padding
		}
		all = append(all, record{of, data[:of.Size]})
	}
	if single {
		count = len(all)
	}
	list = make([]any, len(all))
	for i := range all {
		list[i] = &all[i]
	}
	return list, count
}

func isZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// record is the attribute, whatever the status; nil if there is none.
func (a *answer) record(records []any) any {
	if len(records) > 0 {
		return records[0]
	}
	attr := layout.FindAttribute(uint8(a.class()), binary.BigEndian.Uint16(a.b[mad.OffAttribute:]))
	if data := a.payload(); attr != nil && len(data) >= attr.Struct.Size && !(a.class() == mad.ClassSubnAdm && a.status() == mad.StatusOK) {
		return &record{attr.Struct, data[:attr.Struct.Size]}
	}
	return nil
}

// bind gives the results of the step their names in v, until v.release.
func (a *answer) bind(v *vars) {
	v.bind("answered", a.b != nil)
	v.bind("error", a.errorText())
	v.bind("latency", a.latency)
	if a.b == nil {
		v.bind("status", "")
		v.bind("status_code", -1)
		v.bind("answer", nil)
		v.bind("record", nil)
		v.bind("records", []any(nil))
		v.bind("count", 0)
		v.bind(resultData, "")
		v.bind("from", nil)
		return
	}
	status := a.status()
	records, count := a.records()
	v.bind("status", statusName(a.class(), status))
	v.bind("status_code", int(status))
	of := headerLayout(a.class())
	v.bind("answer", &record{of, a.b[:of.Size]})
	v.bind("record", a.record(records))
	v.bind("records", records)
	v.bind("count", count)
	v.bind(resultData, hexBytes(a.payload()))
	from := map[string]any{"lid": int(a.from.LID), "gid": ""}
	if a.from.HasGRH {
		from["gid"] = a.from.GRH.GID.String()
	}
	v.bind("from", from)
}

// errorText says what went wrong, behind the errno that a kernel gives for it.
func (a *answer) errorText() string {
	switch {
	case a.err != nil:
	case a.b != nil && a.isCut():
		return "incomplete: what carries the answer has no RMPP"
	default:
		return ""
	}
	for _, e := range errnos {
		if errors.Is(a.err, e.err) {
			return e.name + ": " + a.err.Error()
		}
	}
	return a.err.Error()
}

// errnos are the names of errors for scripts; see package port. What comes first
// counts.
var errnos = []struct {
	err  error
	name string
}{
	{agents.ErrTimeout, "timeout"},
	{port.ErrInvalid, "EINVAL"},
	{port.ErrNoAgent, "EIO"},
	{port.ErrNoSlot, "ENOMEM"},
	{port.ErrNoQP, "EPROTONOSUPPORT"},
	{port.ErrBusy, "EAGAIN"},
}
