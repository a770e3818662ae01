package script

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/expr-lang/expr/vm"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/sa"
)

// library is what expressions know of the place where a script runs, for one run.
// What an address stands for is looked up once. Any number of goroutines may use
// it.
type library struct {
	fabric
	masker   *masker
	programs sync.Map // *Expr: *vm.Program

	mu    sync.Mutex
	ports map[string]sa.Endpoint // by the address as it is written
}

// newLibrary begins a run at a place.
func newLibrary(f fabric) *library {
	return &library{fabric: f, masker: new(masker), ports: make(map[string]sa.Endpoint)}
}

// program is the program of an expression, be it one that Check has not seen.
func (l *library) program(e *Expr) (*vm.Program, error) {
	if e.Program != nil {
		return e.Program, nil
	}
	if p, ok := l.programs.Load(e); ok {
		return p.(*vm.Program), nil
	}
	p, err := compile(e.Text)
	if err != nil {
		return nil, err
	}
	l.programs.Store(e, p)
	return p, nil
}

// ownFunction is a function of expressions that is not the expression language's.
type ownFunction struct {
	signature any // the first argument is the env
	call      func(s *vars, args []any) (any, error)
}

var ownFunctions = map[string]ownFunction{
	"gid": {new(func(any, any) string), ofPort(func(e *sa.Endpoint) any { return e.GID.String() })},
	"lid": {new(func(any, any) int), func(s *vars, args []any) (any, error) {
		a, err := addressOf(args[0])
		if err != nil {
			return nil, err
		}
		if a.Kind == mad.AddrLID { // nobody need be asked
			return int(a.LID), nil
		}
		e, err := s.lib.port(s.ctx, a)
		return int(e.LID), err
	}},
	"guid": {new(func(any, any) string), ofPort(func(e *sa.Endpoint) any { return e.PortGUID.String() })},
	"port": {new(func(any, any) map[string]any), ofPort(func(e *sa.Endpoint) any { return portValue(e) })},
	"path": {new(func(any, any, any) any), pathBetween},
	"hex":  {new(func(any, any) string), func(_ *vars, args []any) (any, error) { return hexOf(args[0]) }},
	"mtu":  {new(func(any, any) int), func(_ *vars, args []any) (any, error) { return mtuOf(args[0]) }},
	"rate": {new(func(any, any) float64), func(_ *vars, args []any) (any, error) { return rateNumber(args[0]) }},
}

func ofPort(what func(*sa.Endpoint) any) func(*vars, []any) (any, error) {
	return func(s *vars, args []any) (any, error) {
		a, err := addressOf(args[0])
		if err != nil {
			return nil, err
		}
		e, err := s.lib.port(s.ctx, a)
		if err != nil {
			return nil, err
		}
		return what(&e), nil
	}
}

// portValue is a port as the function port gives it, and loops over ports.
func portValue(e *sa.Endpoint) map[string]any {
	return map[string]any{
		"name": e.Desc, "port": int(e.PortNum), "lid": int(e.LID), "guid": e.PortGUID.String(),
		"node_guid": e.NodeGUID.String(), "gid": e.GID.String(),
	}
}

// addressOf reads an address: a text, a LID as a number, what the function port
// gives, or a record that has a LID.
func addressOf(v any) (mad.Addr, error) {
	switch v := plain(v).(type) {
	case nil:
		return mad.Addr{}, errors.New("it takes the address of a port, and this is nothing")
	case map[string]any:
		if lid, ok := v["lid"]; ok {
			return addressOf(lid)
		}
		if gid, ok := v["gid"]; ok {
			return addressOf(gid)
		}
		return mad.Addr{}, errors.New("it takes the address of a port, and this map has neither lid nor gid")
	case *record:
		lid, err := v.field("LID")
		if err != nil {
			return mad.Addr{}, fmt.Errorf("it takes the address of a port: %w", err)
		}
		return addressOf(lid)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = write(v[i])
		}
		return mad.ParseAddr(strings.Join(parts, ","))
	default:
		return mad.ParseAddr(write(v))
	}
}

// port looks an address up.
func (l *library) port(ctx context.Context, a mad.Addr) (sa.Endpoint, error) {
	key := a.String()
	l.mu.Lock()
	e, known := l.ports[key]
	l.mu.Unlock()
	if known {
		return e, nil
	}
	if l.resolver == nil {
		return e, fmt.Errorf("%v: there is no SA to look it up", a)
	}
	e, err := l.resolver.Resolve(ctx, a)
	if err != nil {
		return e, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ports) >= maxPorts { // a script that makes up addresses
		clear(l.ports)
	}
	l.ports[key] = e
	return e, nil
}

const maxPorts = 1 << 16

// LID makes the library a resolver with a memory (smp.Resolver).
func (l *library) LID(ctx context.Context, a mad.Addr) (mad.LID, error) {
	if a.Kind == mad.AddrLID {
		return a.LID, nil
	}
	e, err := l.port(ctx, a)
	return e.LID, err
}

// pathBetween asks the SA. Paths are asked for anew each time: a fault may have
// changed them.
func pathBetween(s *vars, args []any) (any, error) {
	if s.lib.sa == nil {
		return nil, errors.New("there is no SA to ask")
	}
	var like mad.PathRecord
	for i, gid := range []*mad.GID{&like.SGID, &like.DGID} {
		a, err := addressOf(args[i])
		if err != nil {
			return nil, err
		}
		e, err := s.lib.port(s.ctx, a)
		if err != nil {
			return nil, err
		}
		*gid = e.GID
	}
	rec, err := s.lib.sa.Path(s.ctx, like)
	if err != nil {
		return nil, err
	}
	return recordOf(&rec), nil
}

// recordOf makes a value of a structure.
func recordOf(v mad.Structure) *record {
	b, _ := v.AppendBinary(nil) // never fails
	return &record{v.Layout(), b}
}

// pathOf reads a value that is a PathRecord.
func pathOf(v any) (p mad.PathRecord, err error) {
	r, ok := v.(*record)
	if !ok || r.of != layout.PathRecord {
		return p, fmt.Errorf("it takes a PathRecord, as path(...) or records[0] of the SA give it, not %s", show(v))
	}
	return p, p.UnmarshalBinary(r.b)
}

// hexOf is a number after 0x, or the bytes of a text.
func hexOf(v any) (string, error) {
	if s, ok := v.(string); ok {
		return hex.EncodeToString([]byte(s)), nil
	}
	n, ok := wholeNumber(v)
	if !ok {
		return "", fmt.Errorf("it takes a number of at least 0, not %s", show(v))
	}
	return "0x" + strconv.FormatUint(n, 16), nil
}

// mtuOf is the number of bytes of an MTU: of its name, of its code, or of the
// record that has one, which is NeighborMTU in what describes a port.
func mtuOf(v any) (int, error) {
	if r, ok := v.(*record); ok {
		name := "NeighborMTU"
		if _, err := r.field("MTU"); err == nil {
			name = "MTU"
		}
		field, err := r.field(name)
		if err != nil {
			return 0, err
		}
		v = field
	}
	n, ok := wholeNumber(v)
	switch {
	case ok && n >= uint64(mad.MTU256) && n <= uint64(mad.MTU4096):
		return mad.MTU(n).Bytes(), nil
	case ok && n <= 4096:
		for code := mad.MTU256; code <= mad.MTU4096; code++ {
			if code.Bytes() == int(n) {
				return int(n), nil
			}
		}
	}
	return 0, fmt.Errorf("it takes an MTU: 256, 512, 1024, 2048, 4096, or a code from 1 to 5, not %s", show(v))
}

// rateNumber is the Gb/s of a rate: of its name, of its code, or of the record
// that has one, a path or a port.
func rateNumber(v any) (float64, error) {
	if r, ok := v.(*record); ok {
		if r.of == layout.PortInfo {
			var p mad.PortInfo
			if err := p.UnmarshalBinary(r.b); err != nil {
				return 0, err
			}
			return rateNumber(int(p.Rate()))
		}
		field, err := r.field("Rate")
		if err != nil {
			if field, err = r.field("PortInfo"); err != nil {
				return 0, err
			}
		}
		return rateNumber(field)
	}
	code, ok := wholeNumber(v)
	for _, x := range layout.Rate.Values {
		if ok && x.Value != code || !ok && foldName(x.Text) != foldName(write(v)) {
			continue
		}
		gbps, _, found := strings.Cut(x.Text, " ")
		if n, err := strconv.ParseFloat(gbps, 64); found && err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("it takes a rate: a name, as \"100 Gb/s\", or a code, not %s", show(v))
}
