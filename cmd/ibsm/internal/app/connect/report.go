package connect

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/ucma"
)

// heading says, in text, what is about to be done.
func (r *run) heading(i int) error {
	if i > 0 {
		return nil
	}
	return r.s.Out.Text(fmt.Appendf(nil, "# Connect to %s: %v, port space %v, path by the %s\n",
		text.Printable(r.target.Name), r.target.Addr, r.ps, map[string]string{"sa": "SA", "kernel": "kernel"}[r.path]))
}

// line is a step in text.
func (r *run) line(s ucma.Step) {
	detail := s.Detail
	if s.Err != nil {
		detail = "failed"
	}
	// An output that is gone shows with the record.
	_ = r.s.Out.Text(fmt.Appendf(nil, "%-16s %9s  %s\n", s.Name, micro(s.Duration), text.Printable(detail)))
}

// micro writes a time with microseconds.
func micro(d time.Duration) string { return d.Round(time.Microsecond).String() }

// record writes a connection that was made.
func (r *run) record(c *ucma.Connection, up time.Duration) error {
	return r.s.Out.Record("Connection", connectionMembers(r, "established", c, c.Steps()), r.plain(c, up))
}

// failed writes one that was not, with its steps, and gives its error.
func (r *run) failed(qpn uint32, err error) error {
	var step *ucma.StepError
	if !errors.As(err, &step) {
		return err
	}
	c := &ucma.Connection{LocalQPN: qpn}
	if step.Path != nil {
		c.Path = *step.Path
	}
	if recordErr := r.s.Out.Record("Connection", connectionMembers(r, "failed", c, step.Steps), nil); recordErr != nil {
		return recordErr
	}
	return exit.Told(err)
}

func (r *run) plain(c *ucma.Connection, up time.Duration) []byte {
	var b strings.Builder
	switch n := len(r.times); {
	case r.count > 1:
		fmt.Fprintf(&b, "%-6d %9s  ", n, micro(up))
	default:
		fmt.Fprintf(&b, "# Connected in %s: ", micro(up))
	}
	fmt.Fprintf(&b, "QPN 0x%06x to 0x%06x", c.LocalQPN, c.RemoteQPN)
	if len(c.PrivateData) > 0 {
		fmt.Fprintf(&b, ", private data %s", printableData(c.PrivateData))
	}
	return []byte(b.String() + "\n")
}

// summary tells, in text, how long several connections took.
func (r *run) summary() error {
	if r.count == 1 {
		return nil
	}
	slices.Sort(r.times)
	n := len(r.times)
	middle := (r.times[(n-1)/2] + r.times[n/2]) / 2
	var sum time.Duration
	for _, d := range r.times {
		sum += d
	}
	return r.s.Out.Text(fmt.Appendf(nil, "# %d connections: %s at least, %s in the middle, %s at most, %s on average\n", n,
		micro(r.times[0]), micro(middle), micro(r.times[n-1]), micro(sum/time.Duration(n))))
}

// connectionMembers are a connection for the structured formats.
func connectionMembers(r *run, state string, c *ucma.Connection, steps []ucma.Step) text.Object {
	list := []any{}
	for _, s := range steps {
		o := text.Object{{Name: "step", Value: s.Name}, {Name: "microseconds", Value: s.Duration.Microseconds()}, {Name: "detail", Value: s.Detail}, {Name: "error", Value: ""}}
		if s.Err != nil {
			o[3].Value = s.Err.Error()
		}
		list = append(list, o)
	}
	return text.Object{
		{Name: "target", Value: r.target.Name},
		{Name: "address", Value: r.target.Addr.String()},
		{Name: "portSpace", Value: r.ps.String()},
		{Name: "ServiceID", Value: fmt.Sprintf("0x%016x", ucma.ServiceID(r.ps, r.target.Addr))},
		{Name: "pathBy", Value: r.path},
		{Name: "state", Value: state},
		{Name: "localQPN", Value: c.LocalQPN},
		{Name: "remoteQPN", Value: c.RemoteQPN},
		{Name: "PrivateData", Value: hex.EncodeToString(c.PrivateData)},
		{Name: "path", Value: text.ObjectOf(&c.Path)},
		{Name: "steps", Value: list},
	}
}
