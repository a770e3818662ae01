package layout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// NameError says that the tables have no such name, or not just one.
type NameError struct {
	What    string   // "field", "attribute"
	Name    string   // as it was given
	In      string   // where it was looked for
	Why     string   // "" if it simply is not there
	Nearest []string // what it may be meant to be, best first
}

func (e *NameError) Error() string {
	s := fmt.Sprintf("no %s %q in %s", e.What, e.Name, e.In)
	if e.Why != "" {
		s = fmt.Sprintf("%s %q in %s: %s", e.What, e.Name, e.In, e.Why)
	}
	if len(e.Nearest) > 0 {
		s += "; did you mean " + strings.Join(e.Nearest, " or ") + "?"
	}
	return s
}

// fold strips what people write differently: case, underscores, blanks.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

func sameName(a, b string) bool { return fold(a) == fold(b) }

// ReservedName is what a reserved row that starts at bit off is called where it
// needs a name: by its byte, and the bit in it unless that is 0, as in Reserved18
// and Reserved37_4.
func ReservedName(off int) string {
	if bit := off % 8; bit > 0 {
		return fmt.Sprintf("Reserved%d_%d", off/8, bit)
	}
	return fmt.Sprintf("Reserved%d", off/8)
}

// IsCalled tells whether the line has the label, however it is spelled.
func (l *Line) IsCalled(name string) bool { return l.Label != "" && sameName(l.Label, name) }

// cutIndex splits the index off "P_Key[3]", not off "Entry[3].Port"; it is -1 if
// there is none.
func cutIndex(name string) (base string, index int, err error) {
	last := strings.LastIndexByte(name, '.') + 1
	_, rest, ok := strings.Cut(name[last:], "[")
	if !ok {
		return name, -1, nil
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(rest, "]"), 10, 16)
	if err != nil || !strings.HasSuffix(rest, "]") {
		return "", 0, errors.New("an index is a number in brackets, as in P_Key[3]")
	}
	return name[:len(name)-len(rest)-1], int(n), nil
}

// Nearest gives the up to three candidates that take fewest edits to make from
// name, if those are few.
func Nearest(name string, candidates []string) []string {
	type scored struct {
		name string
		cost int
	}
	want := fold(name)
	var all []scored
	for _, c := range candidates {
		last := c[strings.LastIndexByte(c, '.')+1:]
		cost := min(edits(want, fold(c)), edits(want, fold(last)))
		limit := max(min(2, len(want)/2), len(want)/3) // not all letters
		if strings.Contains(fold(c), want) {
			cost = min(cost, limit)
		}
		if cost <= limit && want != "" {
			all = append(all, scored{c, cost})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(a.cost, b.cost) })
	var out []string
	for _, s := range all[:min(len(all), 3)] {
		out = append(out, s.name)
	}
	return out
}

// edits is the Levenshtein distance of two ASCII strings.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
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
