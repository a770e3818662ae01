package render

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/ibsm/ibsm/mad/text"
)

// table is CSV (RFC 4180): a header, and a row for each record. It has no place
// for errors, which are on stderr.
type table struct {
	w       *csv.Writer
	columns map[string]int // by the path of a member
	row     []string
}

func (t *table) begin(w *bufio.Writer, _ Head) error {
	t.w = csv.NewWriter(w)
	return nil
}

// header writes the paths of the members: NodeInfo.NodeGUID.
func (t *table) header(like text.Object) error {
	t.columns = map[string]int{}
	var paths []string
	var walk func(prefix string, o text.Object)
	walk = func(prefix string, o text.Object) {
		for _, m := range o {
			if inner, ok := m.Value.(text.Object); ok {
				walk(prefix+m.Name+".", inner)
				continue
			}
			t.columns[prefix+m.Name] = len(paths)
			paths = append(paths, prefix+m.Name)
		}
	}
	walk("", like)
	t.row = make([]string, len(paths))
	return t.w.Write(paths)
}

func (t *table) record(_ *bufio.Writer, _ int, rec text.Object, _ []byte) error {
	clear(t.row)
	if err := t.fill("", rec[1:]); err != nil { // all are of one type
		return err
	}
	return t.w.Write(t.row)
}

// fill puts the values of a record into its row. A structure that stands where
// the columns have one value is one value.
func (t *table) fill(prefix string, o text.Object) error {
	for _, m := range o {
		path := prefix + m.Name
		inner, nested := m.Value.(text.Object)
		column, ok := t.columns[path]
		switch {
		case ok:
			t.row[column] = strings.ToValidUTF8(cell(m.Value), "\ufffd")
		case nested:
			if err := t.fill(path+".", inner); err != nil {
				return err
			}
		default:
			return fmt.Errorf("a record has %s, for which the table has no column", path)
		}
	}
	return nil
}

// cell writes one value: elements of an array with blanks between them, each a
// structure with colons between its values, as in OpenSM's lists of lanes and
// weights.
func cell(v any) string {
	list, ok := v.([]any)
	if !ok {
		return text.Format(v)
	}
	elements := make([]string, len(list))
	for i, e := range list {
		o, ok := e.(text.Object)
		if !ok {
			elements[i] = text.Format(e)
			continue
		}
		values := make([]string, len(o))
		for j, m := range o {
			values[j] = text.Format(m.Value)
		}
		elements[i] = strings.Join(values, ":")
	}
	return strings.Join(elements, " ")
}

func (t *table) end(*bufio.Writer, int, []text.Object) error {
	t.w.Flush()
	return t.w.Error()
}
