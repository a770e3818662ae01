package fields

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// sections shows structures, row by row.
func sections(s *session.Session, found []section) error {
	if err := s.Out.Columns((&row{}).record(found[0])); err != nil {
		return err
	}
	for i, f := range found {
		heading := f.heading()
		if i > 0 {
			heading = "\n" + heading
		}
		rows := f.rows()
		lines := align(table(rows))
		if err := s.Out.Text(append([]byte(heading), lines[0]...)); err != nil {
			return err
		}
		for j := range rows {
			if err := s.Out.Record("Field", rows[j].record(f), lines[j+1]); err != nil {
				return err
			}
		}
		if err := s.Out.Text(footnotes(rows)); err != nil {
			return err
		}
	}
	return nil
}

// heading says what the section is.
func (s section) heading() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s", s.name())
	if at, ok := headers[s.of]; ok {
		fmt.Fprintf(&b, ": header at byte %d of a MAD", at)
	}
	if s.attr != nil {
		fmt.Fprintf(&b, ": attribute 0x%04x of class %v (0x%02x)", s.attr.ID, s.class(), s.attr.Class)
		if s.class() == mad.ClassSubnLIDRouted {
			fmt.Fprintf(&b, " and of %v (0x%02x)", mad.ClassSubnDirected, uint8(mad.ClassSubnDirected))
		}
		if also := shortNames(s.attr); len(also) > 0 {
			fmt.Fprintf(&b, ", also %s", strings.Join(also, ", "))
		}
		fmt.Fprintf(&b, "\n# methods: %s", strings.Join(methods(s.attr), ", "))
		if s.attr.Modifier != "" {
			fmt.Fprintf(&b, "\n# modifier: %s", s.attr.Modifier)
		}
	}
	fmt.Fprintf(&b, "\n# %s\n# %d bytes, %s\n", sentence(s.of), s.of.Size, source(s.of.IBA))
	return b.String()
}

// table is the rows as cells under their headings.
func table(rows []row) [][]string {
	cells := [][]string{{"FIELD", "AT", "BITS", "COUNT", "KIND", "MASK", "DIAGS", "MEANING"}}
	for i := range rows {
		r := &rows[i]
		kind, of := r.kind()
		count := ""
		if r.Count > 0 {
			count = fmt.Sprint(r.Count)
		}
		cells = append(cells, []string{
			r.Name, fmt.Sprintf("%d.%d", r.Off/8, r.Off%8), fmt.Sprint(r.Len), count,
			strings.TrimSpace(kind + " " + of), ranges(r.mask), span(r.labels), r.meaning(),
		})
	}
	return cells
}

// meaning is what a reader needs to know beyond the name.
func (r *row) meaning() string {
	var parts []string
	if r.Key {
		parts = append(parts, "secret")
	}
	if r.Doc != "" {
		parts = append(parts, r.Doc)
	}
	if r.Kind == layout.KindStruct {
		parts = append(parts, source(r.iba))
	}
	return strings.Join(parts, "; ")
}

// ranges writes numbers in ascending order, neighbours as 7-22.
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		part := fmt.Sprint(numbers[i])
		if j > i {
			part += fmt.Sprintf("-%d", numbers[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// span writes labels: of the many that number the elements of an array, the first
// and the last.
func span(labels []string) string {
	if n := len(labels); n > 2 {
		return labels[0] + " .. " + labels[n-1]
	}
	return strings.Join(labels, ", ")
}

// footnotes are the names of values, and what the bytes of a row may hold.
func footnotes(rows []row) []byte {
	var b bytes.Buffer
	type note struct {
		of     *layout.Enum
		values int
	}
	var told []note
	for i := range rows {
		r := &rows[i]
		var cells [][]string
		for _, v := range r.Variants {
			cells = append(cells, []string{"  ", v.Of.Name, "if " + when(v)})
		}
		if len(cells) > 0 {
			fmt.Fprintf(&b, "\n%s holds\n%s", r.Name, bytes.Join(align(cells), nil))
		}
		e, named := r.names, r.values()
		if len(named) == 0 || slices.Contains(told, note{e, len(named)}) {
			continue
		}
		told = append(told, note{e, len(named)})
		cells = nil
		for _, v := range named {
			cells = append(cells, []string{"  ", number(e, v.Value), v.Text, strings.Join(v.Alias, ", ")})
		}
		fmt.Fprintf(&b, "\n%s, %s\n%s", e.Name, source(e.IBA), bytes.Join(align(cells), nil))
	}
	return b.Bytes()
}

// number writes a value in the base in which the diags do.
func number(e *layout.Enum, v uint64) string {
	if strings.Contains(e.Diag, "x") {
		return fmt.Sprintf("0x%0*x", e.Bits/4, v)
	}
	return fmt.Sprint(v)
}

// align makes lines of rows of cells, column under column. What only has a heading
// is left out.
func align(rows [][]string) [][]byte {
	widths := make([]int, len(rows[0]))
	for column := range widths {
		used := len(rows) == 1
		for i, cells := range rows {
			widths[column] = max(widths[column], utf8.RuneCountInString(cells[column]))
			used = used || i > 0 && cells[column] != ""
		}
		if !used {
			widths[column] = -1
		}
	}
	lines := make([][]byte, len(rows))
	for i, cells := range rows {
		var line strings.Builder
		for column, width := range widths {
			if width >= 0 {
				fmt.Fprintf(&line, "%-*s  ", width, cells[column])
			}
		}
		lines[i] = []byte(strings.TrimRight(line.String(), " ") + "\n")
	}
	return lines
}
