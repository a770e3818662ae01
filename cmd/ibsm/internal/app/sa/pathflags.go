package sa

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/sa"
)

// componentFlag selects by the value of one field, which may be zero.
type componentFlag struct {
	name, field, usage string
	// read makes a value for the field of what is written. nil: it is one.
	read func(string) (string, error)
}

var componentFlags = []componentFlag{
	{"numb-path", "NumbPath", "at most `N` paths for each pair of ports, 1 to 127", notZero},
	{"pkey", "P_Key", "paths in the partition of `P_KEY`, such as 0x8001", partition},
	{"sl", "SL", "paths of the service level `SL`, 0 to 15", nil},
	{"tclass", "TClass", "paths of the traffic class `TCLASS`, 0 to 255", nil},
	{"flow-label", "FlowLabel", "paths with the flow `LABEL`, of 20 bits", nil},
	{"hop-limit", "HopLimit", "paths with the hop `LIMIT`, 0 to 255", nil},
	{"service-id", "ServiceID", "paths for the service `ID`: a number, or a port of the RDMA CM, such as tcp:7471", serviceID},
	{"qos-class", "QoSClass", "paths of the QoS `CLASS`, 0 to 4095", nil},
}

func pathFlags() []cli.Flag {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "all-to", Usage: "the paths from every port to `DST`"},
		&cli.StringFlag{Name: "mtu", Usage: "paths whose MTU keeps the `BOUND`"},
		&cli.StringFlag{Name: "rate", Usage: "paths whose rate keeps the `BOUND`"},
		&cli.StringFlag{Name: "life", Usage: "paths whose packet life time keeps the `BOUND`"},
		&cli.BoolFlag{Name: "reversible", Usage: "only paths that lead back by the same LIDs", DisableDefaultText: true},
	}
	for _, f := range componentFlags {
		flags = append(flags, &cli.StringFlag{Name: f.name, Usage: f.usage})
	}
	return flags
}

// pathQuery makes a query of the flags.
func pathQuery(s *session.Session) (q sa.PathQuery, err error) {
	q.Reversible = s.Switch("reversible")
	if q.MTU, err = boundFlag(s, "mtu", mtu, "max", "largest"); err != nil {
		return q, err
	}
	if q.Rate, err = boundFlag(s, "rate", rate, "max", "largest"); err != nil {
		return q, err
	}
	if q.LifeTime, err = boundFlag(s, "life", lifeTime, "min", "smallest"); err != nil {
		return q, err
	}
	record := make([]byte, mad.PathRecordSize)
	for _, f := range componentFlags {
		value, given := s.Flag(f.name)
		if !given {
			continue
		}
		written := value
		if f.read != nil {
			if value, err = f.read(value); err != nil {
				return q, exit.Usagef("--%s %q: %w", f.name, written, err)
			}
		}
		if _, err := text.Set(layout.PathRecord, record, f.field, value); err != nil {
			return q, exit.Usagef("--%s %q: %w", f.name, written, err)
		}
		q.Also.Fields = append(q.Also.Fields, f.field)
	}
	return q, q.Also.Like.UnmarshalBinary(record)
}

// notZero refuses what asks for no path at all.
func notZero(s string) (string, error) {
	if n, err := strconv.ParseUint(s, 0, 64); err == nil && n == 0 {
		return "", errors.New("it is a number from 1 to 127")
	}
	return s, nil
}

func partition(s string) (string, error) {
	key, err := mad.ParsePKey(s)
	return key.String(), err
}

// portSpaces are the prefixes that the RDMA CM makes service ids of ports by
// (kernel include/uapi/rdma/rdma_user_cm.h, rdma_ucm_port_space).
var portSpaces = map[string]uint64{"tcp": 0x0106, "udp": 0x0111, "ipoib": 0x0002, "ib": 0x013f}

// serviceID makes a number of a port such as tcp:7471.
func serviceID(s string) (string, error) {
	name, number, ok := strings.Cut(s, ":")
	if !ok {
		return s, nil
	}
	space, known := portSpaces[strings.ToLower(name)]
	port, err := strconv.ParseUint(number, 0, 16)
	if !known || err != nil {
		return "", errors.New("a service id is a number of 64 bits, or a port such as tcp:7471 of tcp, udp, ipoib or ib")
	}
	return fmt.Sprintf("%#x", space<<16|port), nil
}

// span is where a value of a bound lies: between two neighbours, or at one.
type span[T sa.Bounded] struct {
	below, above T
	what         string // the value, for messages
}

// comparisons are what may stand before the value of a bound, the longer first.
var comparisons = []string{">=", "<=", ">", "<", "="}

// boundFlag reads the flag of a bound. best is what the best value is called.
func boundFlag[T sa.Bounded](s *session.Session, name string, parse func(string) (span[T], error), best ...string) (b sa.Bound[T], err error) {
	written, given := s.Flag(name)
	if !given {
		return b, nil
	}
	if b, err = parseBound(written, parse, best...); err != nil {
		return b, exit.Usagef("--%s %q: %w; >, >=, <, <= or = may stand before it, and %s is the best that there is", name, written, err, best[0])
	}
	return b, nil
}

func parseBound[T sa.Bounded](s string, parse func(string) (span[T], error), best ...string) (b sa.Bound[T], err error) {
	s = strings.TrimSpace(s)
	for _, word := range best {
		if strings.EqualFold(s, word) {
			return sa.Best[T](), nil
		}
	}
	comparison := "="
	for _, c := range comparisons {
		if rest, ok := strings.CutPrefix(s, c); ok {
			comparison, s = c, strings.TrimSpace(rest)
			break
		}
	}
	v, err := parse(s)
	if err != nil {
		return b, err
	}
	switch comparison {
	case ">":
		return sa.GreaterThan(v.below), nil
	case ">=":
		return sa.AtLeast(v.above), nil
	case "<":
		return sa.LessThan(v.above), nil
	case "<=":
		return sa.AtMost(v.below), nil
	}
	if v.below != v.above {
		return b, errors.New(v.what)
	}
	return sa.Exactly(v.below), nil
}

// exactly is the span of a value that a path can have.
func exactly[T sa.Bounded](v T) span[T] { return span[T]{below: v, above: v} }

func mtu(s string) (span[mad.MTU], error) {
	for v := mad.MTU256; v <= mad.MTU4096; v++ {
		if s == v.String() {
			return exactly(v), nil
		}
	}
	return span[mad.MTU]{}, errors.New("an MTU is 256, 512, 1024, 2048 or 4096 bytes")
}

// rate reads Gb/s, whose unit may be left out: codes of rates are not what people
// write.
func rate(s string) (span[mad.Rate], error) {
	if strings.HasSuffix(s, "B/s") || strings.HasSuffix(s, "Bps") || strings.HasSuffix(s, "B") {
		return span[mad.Rate]{}, errors.New("a rate is in bits, not in bytes: 8 times as much, with a small b")
	}
	if s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9' {
		s += "G"
	}
	record := make([]byte, mad.PathRecordSize)
	var rec mad.PathRecord
	_, err := text.Set(layout.PathRecord, record, "Rate", s)
	if err = errors.Join(err, rec.UnmarshalBinary(record)); err == nil && rec.Rate != mad.RateNone {
		return exactly(rec.Rate), nil
	}
	var names []string
	for _, v := range layout.Rate.Values {
		if v.Value != uint64(mad.RateNone) {
			names = append(names, strings.TrimSuffix(v.Text, " Gb/s"))
		}
	}
	return span[mad.Rate]{}, fmt.Errorf("a rate is one of %s Gb/s", strings.Join(names, ", "))
}
