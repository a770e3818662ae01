package ucmatest

import (
	"fmt"
	"strings"
	"time"
)

// statement is one of a script.
type statement struct {
	line       int
	text       string // with single spaces
	name       string // what it makes; "" nothing
	eventually bool
	op         string
	args       []string // those without a field name
	fields     []field  // Field=value of a command, or of an event what is expected
	mods       mods
	want       want
}

// field is one Field=value.
type field struct{ name, value string }

// mods are the arguments in lower case.
type mods struct {
	file         string
	in, out, len *int
	after        time.Duration
}

// want is what stands behind the arrow.
type want struct {
	given  bool
	errno  string
	fields []field
}

// parse reads a script.
func parse(text string) (all []statement, err error) {
	for i, line := range strings.Split(text, "\n") {
		next := strings.HasPrefix(line, "\t")
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case next && len(all) == 0:
			return nil, fmt.Errorf("line %d continues none", i+1)
		case next:
			all[len(all)-1].text += " " + strings.Join(words, " ")
		default:
			all = append(all, statement{line: i + 1, text: strings.Join(words, " ")})
		}
	}
	for i := range all {
		if err := all[i].parse(); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", all[i].line, all[i].text, err)
		}
	}
	return all, nil
}

// parse reads the text of a statement.
func (s *statement) parse() error {
	words := strings.Fields(s.text)
	if len(words) > 2 && words[1] == "=" {
		s.name, words = words[0], words[2:]
	}
	if words[0] == "eventually" {
		s.eventually, words = true, words[1:]
	}
	if len(words) == 0 {
		return fmt.Errorf("nothing to do")
	}
	s.op, words = words[0], words[1:]
	for i, w := range words {
		if w == "->" {
			return s.want.parse(words[i+1:])
		}
		name, value, ok := strings.Cut(w, "=")
		switch {
		case !ok:
			s.args = append(s.args, w)
		case name[0] >= 'a': // in lower case
			if err := s.mods.set(name, value); err != nil {
				return err
			}
		default:
			s.fields = append(s.fields, field{name, value})
		}
	}
	return nil
}

func (w *want) parse(words []string) error {
	w.given = true
	if len(words) > 0 && !strings.Contains(words[0], "=") {
		w.errno = strings.Join(words, " ")
		return nil
	}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return fmt.Errorf("%s: it is Field=value", word)
		}
		w.fields = append(w.fields, field{name, value})
	}
	return nil
}

func (m *mods) set(name, value string) (err error) {
	number := func() *int {
		n := new(int)
		_, err = fmt.Sscan(value, n)
		return n
	}
	switch name {
	case "file":
		m.file = value
	case "in":
		m.in = number()
	case "out":
		m.out = number()
	case "len":
		m.len = number()
	case "after":
		m.after, err = time.ParseDuration(value)
	default:
		return fmt.Errorf("there is no argument %s=", name)
	}
	return err
}
