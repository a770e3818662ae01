// Package fields is the noun that shows the table of fields: the reference of
// what can be asked for, matched and set by name.
package fields

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

// Command makes the noun.
func Command() *cli.Command {
	return &cli.Command{
		Name:      "fields",
		Usage:     "the reference of attributes and their fields, and ready steps for scripts",
		ArgsUsage: "[ATTRIBUTE]",
		Description: `Without ATTRIBUTE it lists the attributes of all classes. ATTRIBUTE is one of them
by its name in the IBA or in the diags, by its number, or by the name of its
structure; where several classes have it, all are shown. These structures belong
to no attribute:

   ` + session.HelpList(structureNames(isHeader)) + `,
   ` + session.HelpList(structureNames(isPart)) + `

Each row has the place of its first bit as BYTE.BIT, bit 0 being the highest of
the byte; how many bits it has, of an array each element; the bit of the
component mask that selects it in queries of the SA; and what the diags call it.
Reserved rows have the names that scripts know them by. Nothing is sent.

Examples:

   ibsm fields
   ibsm fields PathRecord
   ibsm fields ClassPortInfo --class SubnAdm
   ibsm fields SAHeader
   ibsm -o json fields PortInfo
   ibsm fields --yaml NodeRecord`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "class", Usage: "only of the management class `CLASS`, by name or number"},
			&cli.BoolFlag{Name: "yaml", Usage: "print a step for 'ibsm run' that asks for ATTRIBUTE, its fields ready to be set", DisableDefaultText: true},
		},
		Action: session.Action(0, 1, show),
	}
}

func show(_ context.Context, s *session.Session, args []string) error {
	class, err := parseClass(s)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		if s.Switch("yaml") {
			return exit.Usagef("--yaml goes with the name of an attribute")
		}
		return list(s, class)
	}
	found, err := find(args[0], class)
	if err != nil {
		return err
	}
	if s.Switch("yaml") {
		return steps(s, found)
	}
	return sections(s, found)
}

// parseClass reads --class; 0 is every class.
func parseClass(s *session.Session) (mad.Class, error) {
	name, given := s.Flag("class")
	if !given {
		return 0, nil
	}
	var b [mad.HeaderSize]byte
	set, err := text.Set(layout.Header, b[:], "MgmtClass", name)
	if err != nil {
		return 0, exit.Usagef("--class %q: %w", name, err)
	}
	class := mad.Class(set[0].Uint(b[:]))
	if class == mad.ClassSubnDirected { // the same attributes
		class = mad.ClassSubnLIDRouted
	}
	if known := classes(0); !slices.Contains(known, class) {
		return 0, exit.Usagef("--class %q: no attributes of class %v are known, only of %v", name, class, known)
	}
	return class, nil
}

// classes are those that have attributes, or the given one alone.
func classes(only mad.Class) (all []mad.Class) {
	if only != 0 {
		return []mad.Class{only}
	}
	for _, a := range layout.Attributes {
		if class := mad.Class(a.Class); !slices.Contains(all, class) {
			all = append(all, class)
		}
	}
	return all
}

// section is a structure to show, and the attribute that carries it, if any.
type section struct {
	attr *layout.Attribute
	of   *layout.Struct
}

// name is what the section is called.
func (s section) name() string {
	if s.attr != nil {
		return s.attr.Name
	}
	return s.of.Name
}

// class is that of the attribute, 0 if there is none.
func (s section) class() mad.Class {
	if s.attr != nil {
		return mad.Class(s.attr.Class)
	}
	return 0
}

// find gives what a name or a number stands for in a class, or in all (0).
func find(name string, class mad.Class) (found []section, err error) {
	var names []string
	for _, c := range classes(class) {
		if a, err := layout.LookUpAttribute(uint8(c), name); err == nil {
			found = append(found, section{a, a.Struct})
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	of := layout.FindStruct(name)
	for _, a := range layout.Attributes {
		if class == 0 || class == mad.Class(a.Class) {
			if a.Struct == of {
				found = append(found, section{a, of})
			}
			names = append(names, a.Name)
		}
	}
	if of != nil && len(found) == 0 && class == 0 {
		found = []section{{of: of}}
	}
	if len(found) > 0 {
		return found, nil
	}
	in := "the table ('ibsm fields' shows it)"
	if class == 0 {
		names = append(names, structureNames(func(*layout.Struct) bool { return true })...)
	} else {
		in = fmt.Sprintf("class %v", class)
	}
	slices.Sort(names)
	return nil, &exit.UsageError{Err: &layout.NameError{
		What: "attribute or structure", Name: name, In: in, Nearest: layout.Nearest(name, slices.Compact(names)),
	}}
}

// structureNames are the names of structures that no attribute carries.
func structureNames(is func(*layout.Struct) bool) (names []string) {
	carried := func(s *layout.Struct) bool {
		return slices.ContainsFunc(layout.Attributes, func(a *layout.Attribute) bool { return a.Struct == s })
	}
	for _, g := range layout.Groups {
		for _, s := range g.Structs {
			if !carried(s) && is(s) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// headers says where in a MAD each header begins, in bytes.
var headers = map[*layout.Struct]int{
	layout.Header: 0, layout.SMPLIDHeader: 0, layout.SMPDirectedHeader: 0, layout.SMPDirectedPaths: mad.OffSMPPaths,
	layout.RMPPHeader: mad.OffRMPP, layout.SAHeader: mad.OffRMPPData,
}

func isHeader(s *layout.Struct) bool { _, ok := headers[s]; return ok }

func isPart(s *layout.Struct) bool { return !isHeader(s) }

// list shows the attributes of a class, or of all.
func list(s *session.Session, class mad.Class) error {
	var attributes []*layout.Attribute
	rows := [][]string{{"CLASS", "ID", "NAME", "ALSO", "METHODS", "STRUCTURE", "BYTES", "MODIFIER"}}
	for _, a := range layout.Attributes {
		if class != 0 && mad.Class(a.Class) != class {
			continue
		}
		attributes = append(attributes, a)
		rows = append(rows, []string{
			mad.Class(a.Class).String(), fmt.Sprintf("0x%04x", a.ID), a.Name, strings.Join(shortNames(a), " "),
			strings.Join(methods(a), " "), a.Struct.Name, fmt.Sprint(a.Struct.Size), a.Modifier,
		})
	}
	lines := align(rows)
	if err := s.Out.Columns(attribute(attributes[0])); err != nil {
		return err
	}
	if err := s.Out.Text(lines[0]); err != nil {
		return err
	}
	for i, a := range attributes {
		if err := s.Out.Record("Attribute", attribute(a), lines[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// attribute is the record of an attribute.
func attribute(a *layout.Attribute) text.Object {
	return text.Object{
		{Name: "class", Value: mad.Class(a.Class).String()},
		{Name: "id", Value: a.ID},
		{Name: "name", Value: a.Name},
		{Name: "short", Value: a.Short},
		{Name: "aliases", Value: values(a.Alias)},
		{Name: "methods", Value: values(methods(a))},
		{Name: "structure", Value: a.Struct.Name},
		{Name: "size", Value: a.Struct.Size},
		{Name: "modifier", Value: a.Modifier},
		{Name: "doc", Value: sentence(a.Struct)},
		{Name: "IBA", Value: a.Struct.IBA},
	}
}

// shortNames are the names of an attribute beside the IBA's.
func shortNames(a *layout.Attribute) []string {
	if a.Short == "" {
		return a.Alias
	}
	return append([]string{a.Short}, a.Alias...)
}

func methods(a *layout.Attribute) []string {
	names := make([]string, len(a.Methods))
	for i, m := range a.Methods {
		names[i] = mad.Method(m).String()
	}
	return names
}

// values makes a list of a record.
func values[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// sentence says what a structure is. Its Doc goes on behind its name, for the
// reader of the Go documentation.
func sentence(s *layout.Struct) string {
	doc := strings.NewReplacer("\n", " ", "[", "", "]", "").Replace(s.Doc)
	return s.Name + " " + doc
}

// source names the place where something is specified.
func source(iba string) string {
	if rest, other := strings.CutPrefix(iba, "none: "); other {
		return rest
	}
	return "IBA " + iba
}
