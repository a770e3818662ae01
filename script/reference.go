package script

import (
	"errors"
	"fmt"
	"strings"
)

// What stands before and behind the reference in docs/scripts.md.
const (
	referenceBegin = "<!-- Made by go generate in script/ from its tables; what is changed here by hand is lost. -->\n"
	referenceEnd   = "<!-- End of what is made. -->\n"
)

// InsertReference puts the reference into a page, in place of what stands between
// its marks.
func InsertReference(page string) (string, error) {
	before, rest, begins := strings.Cut(page, referenceBegin)
	_, after, ends := strings.Cut(rest, referenceEnd)
	if !begins || !ends {
		return "", errors.New("the marks around the reference are not there")
	}
	return before + referenceBegin + "\n" + Reference() + "\n" + referenceEnd + after, nil
}

// Reference is the reference of the language in Markdown: every key, kind of step
// and function.
func Reference() string {
	var w strings.Builder
	w.WriteString("### Keys of a script\n\n")
	keyTable(&w, TopKeys)
	w.WriteString("\n### Keys of every step\n\n")
	keyTable(&w, StepKeys)
	w.WriteString("\n### Words of `requires`\n\n| word | the place where the script runs |\n|---|---|\n")
	for _, r := range Requirements {
		fmt.Fprintf(&w, "| `%s` | %s |\n", r.Word, cell(r.Doc))
	}
	for _, k := range Kinds {
		kindReference(&w, k)
	}
	w.WriteString("\n### Statuses\n\n| name | code | of |\n|---|---|---|\n")
	for _, s := range Statuses {
		of := "every class"
		if s.Class != 0 {
			of = s.Class.String()
		}
		fmt.Fprintf(&w, "| `%s` | 0x%04x | %s |\n", s.Name, uint16(s.Code), of)
	}
	w.WriteString("\n### Functions\n\n| function | gives | is | example |\n|---|---|---|---|\n")
	for _, f := range Functions {
		fmt.Fprintf(&w, "| `%s(%s)` | %s | %s | %s |\n", f.Name, f.Args, f.Type, cell(f.Doc), code(f.Example))
	}
	w.WriteString("\n### Mistakes\n\nWhat a check may find. Every message has the file, line and column, and one of these words.\n\n| word | means |\n|---|---|\n")
	for _, e := range ErrorIDs {
		fmt.Fprintf(&w, "| `%s` | %s |\n", e.ID, cell(e.Doc))
	}
	return w.String()
}

func kindReference(w *strings.Builder, k *Kind) {
	fmt.Fprintf(w, "\n### `%s`\n\n%s\n\n```yaml\n%s: %s\n```\n", k.Name, k.Doc, k.Name, k.Example)
	switch {
	case k.IsShort && len(k.Keys) > 0:
		fmt.Fprintf(w, "\nIt takes %s, or a map of these keys:\n", k.Short)
	case k.IsShort:
		fmt.Fprintf(w, "\nIt takes %s.\n", k.Short)
	}
	if len(k.Keys) > 0 {
		w.WriteByte('\n')
		keyTable(w, k.Keys)
	}
	switch k.Name {
	case "send":
		w.WriteString("\nKeys of `grh`, if it is a map:\n\n")
		keyTable(w, GRHKeys)
	case "serve":
		w.WriteString("\nKeys of each of `answers`:\n\n")
		keyTable(w, AnswerKeys)
	}
	if len(k.Results) == 0 {
		return
	}
	w.WriteString("\nIts `expect` and `save` have these variables:\n\n| variable | type | is |\n|---|---|---|\n")
	for _, r := range k.Results {
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", r.Name, r.Type, cell(r.Doc))
	}
}

func keyTable(w *strings.Builder, keys []Key) {
	w.WriteString("| key | takes | default | is | example |\n|---|---|---|---|---|\n")
	for i := range keys {
		k := &keys[i]
		takes, other := k.Type.String(), code(k.Default)
		switch k.Type {
		case TypeInt:
			takes = fmt.Sprintf("%s from %d to %d", takes, k.Min, k.Max)
		case TypeWord, TypeWords:
			takes += ": " + strings.Join(k.Words, ", ")
		}
		if k.Required {
			other = "(needed)"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s | %s |\n", k.Name, cell(takes), other, cell(k.Doc), code(k.Example))
	}
}

// cell is a text as a cell of a table holds it.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + cell(s) + "`"
}
