package topo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// fields says what to do with the value of each key of a mapping.
type fields map[string]func(*yaml.Node) error

func (p *parser) errorf(n *yaml.Node, format string, args ...any) error {
	return &FileError{File: p.file, Line: n.Line, Col: n.Column, Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) place(n *yaml.Node) place { return place{p.file, n.Line, n.Column} }

// entries goes through a mapping in the order of the file.
func (p *parser) entries(n *yaml.Node, what string, entry func(key, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return p.errorf(n, "%s must be a mapping (key: value), not %s", what, kindName(n))
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return p.errorf(key, "%s has %s for a key", what, kindName(key))
		}
		if line, ok := seen[key.Value]; ok {
			return p.errorf(key, "%s has key %q twice, first in line %d", what, short(key.Value), line)
		}
		seen[key.Value] = key.Line
		if err := entry(key, value); err != nil {
			return err
		}
	}
	return nil
}

// mapping reads a mapping of known keys.
func (p *parser) mapping(n *yaml.Node, what string, known fields) error {
	return p.entries(n, what, func(key, value *yaml.Node) error {
		read, ok := known[key.Value]
		if !ok {
			return p.errorf(key, "%s has no key %q%s", what, short(key.Value), suggest(key.Value, slices.Collect(maps.Keys(known))))
		}
		return read(value)
	})
}

// each reads the elements of a sequence.
func (p *parser) each(n *yaml.Node, what string, element func(*yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode {
		return p.errorf(n, "%s must be a list, not %s", what, kindName(n))
	}
	for _, e := range n.Content {
		if err := element(e); err != nil {
			return err
		}
	}
	return nil
}

// text reads a scalar by a function whose error says what is wrong with it.
func text[T any](p *parser, to *T, parse func(string) (T, error)) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return p.errorf(n, "expected a value, not %s", kindName(n))
		}
		v, err := parse(n.Value)
		if err != nil {
			return p.errorf(n, "%q %v", short(n.Value), err)
		}
		*to = v
		return nil
	}
}

// number reads a number from low to high.
func number[T ~uint8 | ~uint16 | ~uint32 | ~uint64](p *parser, to *T, low, high uint64) func(*yaml.Node) error {
	return text(p, to, func(s string) (T, error) {
		v, err := parseNumber(s)
		switch {
		case err != nil && !errors.Is(err, strconv.ErrRange):
			return 0, errors.New("is no number: they are decimal without leading zeros, or hexadecimal after 0x")
		case err != nil || v < low || v > high:
			if high > 0xffff {
				return 0, fmt.Errorf("is not %#x to %#x", low, high)
			}
			return 0, fmt.Errorf("is not %d to %d", low, high)
		}
		return T(v), nil
	})
}

// parseNumber reads decimal without leading zeros, which some take for octal, or
// hexadecimal after 0x. It has the errors of strconv.ParseUint.
func parseNumber(s string) (uint64, error) {
	if digits, ok := strings.CutPrefix(s, "0x"); ok {
		return strconv.ParseUint(digits, 16, 64)
	}
	if len(s) > 1 && s[0] == '0' {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseUint(s, 10, 64)
}

// choice reads one of the names of a map, in any case of letters.
func choice[T any](p *parser, to *T, names map[string]T) func(*yaml.Node) error {
	return text(p, to, func(s string) (v T, err error) {
		for name, v := range names {
			if strings.EqualFold(name, s) {
				return v, nil
			}
		}
		known := slices.Sorted(maps.Keys(names))
		return v, fmt.Errorf("is not one of %s%s", strings.Join(known, ", "), suggest(s, known))
	})
}

// list reads a sequence of scalars.
func list[T any](p *parser, to *[]T, element func(*yaml.Node) (T, error)) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		*to = []T{}
		return p.each(n, "value", func(e *yaml.Node) error {
			v, err := element(e)
			*to = append(*to, v)
			return err
		})
	}
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (*name), which fabric files do not have"
	}
	if n.Tag == "!!null" {
		return "nothing"
	}
	return fmt.Sprintf("%q", short(n.Value))
}

// suggest names the known name that is nearest to a wrong one, if one is near.
func suggest(wrong string, known []string) string {
	slices.Sort(known)
	best, limit := "", len(wrong)/3+1
	for _, k := range known {
		if len(wrong) > len(k)+limit {
			continue // far too long
		}
		if d := editDistance(strings.ToLower(wrong), strings.ToLower(k)); d <= limit && k != wrong {
			best, limit = k, d-1
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// editDistance is the number of bytes to insert, delete or replace (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
