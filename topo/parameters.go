package topo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/mad"
)

// parameters are those of a generator, as in "leafs=36,spines=18".
type parameters struct {
	given []string // "name=value", in order
	known map[string]parameter
}

type parameter struct {
	set      func(value string) error
	required bool
}

func newParameters(args string) *parameters {
	p := &parameters{known: map[string]parameter{}}
	if args != "" {
		p.given = strings.Split(args, ",")
	}
	return p
}

// number takes a number from low to high. It is required unless *to has a value
// or may be 0.
func (p *parameters) number(name string, to *int, low, high int) {
	p.known[name] = parameter{required: *to == 0 && low > 0, set: func(value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < low || n > high {
			return fmt.Errorf("is not %d to %d", low, high)
		}
		*to = n
		return nil
	}}
}

// mixed takes a word for one value, or "mixed" for all, which are in order.
func mixed[T comparable](p *parameters, name string, to *[]T, words map[string]T, all []T) {
	p.known[name] = parameter{set: func(value string) error {
		if value == "mixed" {
			*to = all
			return nil
		}
		v, ok := words[value]
		if !ok {
			known := append(slices.Sorted(maps.Keys(words)), "mixed")
			return fmt.Errorf("is not one of %s%s", strings.Join(known, ", "), suggest(value, known))
		}
		*to = []T{v}
		return nil
	}}
}

// read sets what was given.
func (p *parameters) read() error {
	seen := map[string]bool{}
	for _, arg := range p.given {
		name, value, ok := strings.Cut(arg, "=")
		to, isKnown := p.known[name]
		switch {
		case !ok:
			return fmt.Errorf("argument %q is not of the form name=value", arg)
		case !isKnown:
			return fmt.Errorf("no argument %q%s", name, suggest(name, slices.Collect(maps.Keys(p.known))))
		case seen[name]:
			return fmt.Errorf("argument %q stands twice", name)
		}
		seen[name] = true
		if err := to.set(value); err != nil {
			return fmt.Errorf("%s %w", arg, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.known)) {
		if p.known[name].required && !seen[name] {
			return fmt.Errorf("argument %s is missing", name)
		}
	}
	return nil
}

// options are the parameters that all generators have.
type options struct {
	lmc, ports, planes, routers int
	speeds                      []mad.Speed     // of links in turn; none: as drawn
	widths                      []mad.LinkWidth // likewise
}

func (p *parameters) options() *options {
	o := &options{ports: 1, planes: 1}
	p.number("lmc", &o.lmc, 0, maxLMC)
	p.number("ports", &o.ports, 1, 4)
	p.number("planes", &o.planes, 1, 8)
	p.number("routers", &o.routers, 0, 64)
	mixed(p, "speed", &o.speeds, linkSpeeds, slices.Sorted(maps.Values(linkSpeeds)))
	mixed(p, "width", &o.widths, linkWidths, []mad.LinkWidth{
		mad.LinkWidth1X, mad.LinkWidth2X, mad.LinkWidth4X, mad.LinkWidth8X, mad.LinkWidth12X,
	})
	return o
}
