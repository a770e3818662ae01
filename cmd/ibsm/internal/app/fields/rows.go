package fields

import (
	"fmt"
	"strings"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

// row is a row of a structure as it is shown: a field, reserved bits, or an
// embedded structure, behind which its own rows follow.
type row struct {
	layout.Field              // Name is the whole path, and Off counts as it is shown
	reserved     bool         // Name is what scripts call it
	iba          string       // section
	mask         []int        // bits of the component mask
	labels       []string     // what the diags call it
	names        *layout.Enum // of its values
}

// rows are the rows of a section. Of an array of structures the first element
// stands for all.
func (s section) rows() []row {
	rows := appendRows(nil, s.of, "", 0, headers[s.of]*8)
	for i := range rows {
		r := &rows[i]
		if !r.reserved {
			r.mask = maskBits(s.of, r.Name)
		}
		r.names = r.Enum
		if r.Label != "" {
			r.labels = []string{r.Label}
		}
		if s.class() == mad.ClassSubnAdm && s.of.SA != nil && r.Kind != layout.KindStruct {
			r.listed(s.of)
		}
		r.Off += headers[s.of] * 8
	}
	return rows
}

// appendRows adds the rows of a structure that stands at bit off. Reserved rows
// are named by their place in what begins base bits before it.
func appendRows(rows []row, s *layout.Struct, prefix string, off, base int) []row {
	for _, f := range s.Fields {
		r := row{Field: f, reserved: f.IsReserved(), iba: s.IBA}
		if r.reserved {
			r.Name = layout.ReservedName(f.Off + base)
		}
		r.Name = prefix + r.Name
		r.Off += off
		if f.Kind != layout.KindStruct {
			rows = append(rows, r)
			continue
		}
		r.iba = f.Of.IBA
		rows = append(rows, r)
		inside := r.Name + "."
		if f.Count > 0 {
			inside = r.Name + "[0]."
		}
		rows = appendRows(rows, f.Of, inside, r.Off, 0)
	}
	return rows
}

// maskBits are the bits of the component mask that select a field, or an element
// of it.
func maskBits(s *layout.Struct, name string) (bits []int) {
	for bit, of := range s.Mask {
		if of == name || strings.HasPrefix(of, name+"[") {
			bits = append(bits, bit)
		}
	}
	return bits
}

// listed takes over what saquery's listing of the structure has: its labels, and
// names of values that only it knows.
func (r *row) listed(s *layout.Struct) {
	var labels []string
	for _, l := range s.SA.Lines {
		if l.Label == "" || l.Format == layout.Heading || l.Count > 0 { // no name of a field
			continue
		}
		off, n := l.Off, l.Len
		if n == 0 {
			f, err := s.Find(l.Field)
			if err != nil { // an embedded structure
				continue
			}
			off, n = f.Off, f.Bits()
		}
		if off < r.Off+r.Bits() && r.Off < off+n {
			labels = append(labels, l.Label)
		}
		if l.Enum != nil && l.Field == r.Name {
			r.names = l.Enum
		}
	}
	if len(labels) > 0 {
		r.labels = labels
	}
}

// kind says what the bits are, and of which enumeration or structure.
func (r *row) kind() (kind, of string) {
	if r.names != nil {
		of = r.names.Name
	}
	switch r.Kind {
	case layout.KindUint:
		kind = "number"
	case layout.KindHex:
		kind = "hex"
	case layout.KindFlag:
		kind = "flag"
	case layout.KindTime:
		kind = "time"
	case layout.KindEnum:
		kind = "enum"
		if r.Enum.Sep != "" {
			kind = "set"
		}
	case layout.KindLID:
		kind = "LID"
	case layout.KindGUID:
		kind = "GUID"
	case layout.KindPKey:
		kind = "P_Key"
	case layout.KindGID:
		kind = "GID"
	case layout.KindBytes:
		kind = "bytes"
	case layout.KindString:
		kind = "text"
	case layout.KindStruct:
		kind, of = "structure", r.Of.Name
	}
	if r.reserved {
		kind = "reserved"
	}
	return kind, of
}

// values are the named values that the field has room for.
func (r *row) values() (fit []layout.Value) {
	if r.names == nil {
		return nil
	}
	for _, v := range r.names.Values {
		if v.Value>>r.Len == 0 {
			fit = append(fit, v)
		}
	}
	return fit
}

// when says in words which values of other fields a variant needs.
func when(v layout.Variant) string {
	conds := make([]string, len(v.When))
	for i, c := range v.When {
		conds[i] = fmt.Sprintf("%s %d", c.Field, c.Min)
		if c.Max > c.Min {
			conds[i] += fmt.Sprintf(" to %d", c.Max)
		}
	}
	return strings.Join(conds, ", ")
}

// record is the row as a record.
func (r *row) record(s section) text.Object {
	kind, of := r.kind()
	class := ""
	if s.attr != nil {
		class = s.class().String()
	}
	named, variants := []any{}, []any{}
	for _, v := range r.values() {
		named = append(named, text.Object{{Name: "value", Value: v.Value}, {Name: "name", Value: v.Text}, {Name: "aliases", Value: values(v.Alias)}})
	}
	for _, v := range r.Variants {
		variants = append(variants, text.Object{{Name: "structure", Value: v.Of.Name}, {Name: "when", Value: when(v)}})
	}
	return text.Object{
		{Name: "class", Value: class},
		{Name: "attribute", Value: s.name()},
		{Name: "name", Value: r.Name},
		{Name: "byte", Value: r.Off / 8},
		{Name: "bit", Value: r.Off % 8},
		{Name: "bits", Value: r.Len},
		{Name: "count", Value: r.Count},
		{Name: "kind", Value: kind},
		{Name: "of", Value: of},
		{Name: "mask", Value: values(r.mask)},
		{Name: "labels", Value: values(r.labels)},
		{Name: "secret", Value: r.Key},
		{Name: "values", Value: named},
		{Name: "variants", Value: variants},
		{Name: "doc", Value: r.Doc},
		{Name: "IBA", Value: r.iba},
	}
}
