package topo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibsm/ibsm/mad"
)

// parameters are those of a generator, as in "leafs=36,spines=18".
type parameters struct {
	given []string // "name=value", in order
	known map[string]parameter
	names []string // of known, in order
}

type parameter struct {
	values   string // for a message
	set      func(value string) error
	required bool
}

func (p *parameters) add(name string, known parameter) {
	p.known[name] = known
	p.names = append(p.names, name)
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
	values := fmt.Sprintf("%d to %d", low, high)
	p.add(name, parameter{values: values, required: *to == 0 && low > 0, set: func(value string) error {
		n, err := parseNumber(value)
		if err != nil || n < uint64(low) || n > uint64(high) {
			return fmt.Errorf("is not %s", values)
		}
		*to = int(n)
		return nil
	}})
}

// mixed takes a word for one value, or "mixed" for all, which are in order.
func mixed[T comparable](p *parameters, name string, to *[]T, words map[string]T, all []T) {
	known := append(slices.Sorted(maps.Keys(words)), "mixed")
	p.add(name, parameter{values: strings.Join(known, "|"), set: func(value string) error {
		if value == "mixed" {
			*to = all
			return nil
		}
		v, ok := words[value]
		if !ok {
			return fmt.Errorf("is not one of %s%s", strings.Join(known, ", "), suggest(value, known))
		}
		*to = []T{v}
		return nil
	}})
}

// read sets what was given.
func (p *parameters) read() error {
	seen := map[string]bool{}
	for _, arg := range p.given {
		name, value, ok := strings.Cut(arg, "=")
		to, isKnown := p.known[name]
		switch {
		case !ok:
			return fmt.Errorf("argument %q is not of the form name=value", short(arg))
		case !isKnown:
			return fmt.Errorf("no argument %q%s", short(name), suggest(name, slices.Collect(maps.Keys(p.known))))
		case seen[name]:
			return fmt.Errorf("argument %q stands twice", name)
		}
		seen[name] = true
		if err := to.set(value); err != nil {
			return fmt.Errorf("%s %w", short(arg), err)
		}
	}
	for _, name := range p.names {
		if p.known[name].required && !seen[name] {
			return fmt.Errorf("argument %s is missing", name)
		}
	}
	return nil
}

// usage lists the parameters, optional ones in brackets.
func (p *parameters) usage() string {
	var required, optional []string
	for _, name := range p.names {
		known := p.known[name]
		text := name + "=" + strings.ReplaceAll(known.values, " to ", "..")
		if known.required {
			required = append(required, text)
		} else {
			optional = append(optional, "["+text+"]")
		}
	}
	return strings.Join(append(required, optional...), ", ")
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
