package fields

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

// steps prints a step of a script for each attribute.
func steps(s *session.Session, found []section) error {
	if found[0].attr == nil {
		return exit.Usagef("--yaml: %s is no attribute, and so nothing to ask for", found[0].name())
	}
	record := func(f section, step string) text.Object {
		return text.Object{{Name: "class", Value: f.class().String()}, {Name: "attribute", Value: f.name()}, {Name: "step", Value: step}}
	}
	if err := s.Out.Columns(record(found[0], "")); err != nil {
		return err
	}
	for _, f := range found {
		step := f.step()
		if err := s.Out.Record("Step", record(f, step), []byte(step)); err != nil {
			return err
		}
	}
	return nil
}

// step is an item of a script's steps that sends the attribute's most harmless
// method. The fields are comments of a YAML map in braces, so that each can be
// put in by itself.
func (s section) step() string {
	class, to, toDoc := s.class(), "sm", "or any address"
	if class == mad.ClassSubnLIDRouted {
		class, to, toDoc = mad.ClassSubnDirected, `"0,1"`, "a directed route, or any address with class "+class.String()
	}
	others := methods(s.attr)
	method := others[0]
	if s.attr.Allows(uint8(mad.MethodGetTable)) {
		method = mad.MethodGetTable.String()
	}
	others = slices.DeleteFunc(others, func(m string) bool { return m == method })
	or := ""
	if len(others) > 0 {
		or = "or " + strings.Join(others, ", ")
	}
	lines := [][]string{
		{"class: " + class.String(), ""},
		{"method: " + method, or},
		{"attribute: " + s.name(), ""},
		{"to: " + to, toDoc},
	}
	if s.attr.Modifier != "" {
		lines = append(lines, []string{"modifier: 0", s.attr.Modifier})
	}
	answered := mad.Method(s.attr.Methods[0]) != mad.MethodSend
	if !answered {
		lines = append(lines, []string{"no_answer_ok: true", ""})
	}
	var set [][]string
	for _, r := range s.rows() {
		if !r.reserved && r.Kind != layout.KindStruct {
			set = append(set, []string{fmt.Sprintf("# %s: %s,", r.key(), r.example()), r.about()})
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  - name: %s of %v\n    section: %q\n    send:\n", s.name(), class, source(s.of.IBA))
	b.WriteString(commented("      ", lines))
	fmt.Fprintf(&b, "      set: {\n%s      }\n", commented("        ", set))
	if answered {
		b.WriteString("    expect: [status == \"ok\"]\n")
	}
	return b.String()
}

// commented aligns the comments, which are the last cells of the rows.
func commented(indent string, rows [][]string) string {
	for _, cells := range rows {
		if last := &cells[len(cells)-1]; *last != "" {
			*last = "# " + *last
		}
	}
	var b strings.Builder
	for _, line := range align(rows) {
		b.WriteString(indent)
		b.Write(line)
	}
	return b.String()
}

// key is the name of the field, or of its first element, as a key in braces.
func (r *row) key() string {
	name := r.Name
	if r.Count > 0 {
		name += "[0]"
	}
	if strings.ContainsAny(name, "[]") {
		name = strconv.Quote(name)
	}
	return name
}

// longBytes is how many bytes an example writes out.
const longBytes = 16

// example is a value that the field takes.
func (r *row) example() string {
	switch r.Kind {
	case layout.KindHex, layout.KindGUID:
		return fmt.Sprintf("0x%0*x", (r.Len+3)/4, 0)
	case layout.KindPKey:
		return "0xffff"
	case layout.KindLID:
		return "1"
	case layout.KindFlag:
		return "false"
	case layout.KindEnum:
		if named := r.values(); len(named) > 0 {
			return strconv.Quote(named[0].Text)
		}
	case layout.KindGID:
		return `"fe80::1"`
	case layout.KindBytes:
		if n := r.Len / 8; n > longBytes {
			return fmt.Sprintf(`'${repeat("00", %d)}'`, n)
		}
		return strconv.Quote(strings.Repeat("00", r.Len/8))
	case layout.KindString:
		return `""`
	}
	return "0"
}

// about is what goes into the comment behind the example.
func (r *row) about() string {
	kind, of := r.kind()
	about := strings.TrimSpace(kind + " " + of)
	switch {
	case r.Kind == layout.KindBytes || r.Kind == layout.KindString:
		about += fmt.Sprintf(", %d bytes", r.Len/8)
	case r.Len > 1:
		about += fmt.Sprintf(", %d bits", r.Len)
	}
	if r.Count > 0 {
		about += fmt.Sprintf(", the first of %d", r.Count)
	}
	if r.Kind == layout.KindEnum && len(r.values()) > 0 {
		about += ": " + some(r.values())
	}
	if m := r.meaning(); m != "" {
		about += "; " + m
	}
	return about
}

// some lists the names of the first values.
func some(named []layout.Value) string {
	const enough = 6
	var names []string
	for _, v := range named[:min(len(named), enough)] {
		names = append(names, v.Text)
	}
	if len(named) > enough {
		names = append(names, "...")
	}
	return strings.Join(names, ", ")
}
