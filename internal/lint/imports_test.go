package lint

import (
	"fmt"
	"slices"
	"strings"
)

const architecture = "docs/architecture.md"

// room is a row of the package table in docs/architecture.md.
type room struct {
	pattern string // a folder, or "folder/..." for all below it too
	line    int
	allowed []string // of ours by folder, others by import path; "..." is all of ours
}

// imports: the package table of docs/architecture.md names every package, and a
// package imports, apart from the standard library, only what its row allows.
// Tests may import what they like. Files for every system count, so the rule
// reads the files and does not ask the go command, which sees one system's.
func imports(t *tree) (bad []string) {
	rooms := packageTable(t.text(architecture))
	unused := slices.Clone(rooms)
	missing := map[string]bool{}
	for _, f := range t.files {
		r := roomOf(rooms, f.dir())
		if r == nil {
			missing[f.dir()] = true
			continue
		}
		unused = slices.DeleteFunc(unused, func(u room) bool { return u.pattern == r.pattern })
		if f.isTest() {
			continue
		}
		for p, pos := range imported(f) {
			name, ours := strings.CutPrefix(p, module+"/")
			switch {
			case ours && slices.Contains(r.allowed, "..."), slices.Contains(r.allowed, name):
			case !ours && isStandard(p):
			default:
				bad = append(bad, t.at(pos, "%s must not import %s: its row in %s allows %s",
					f.dir(), name, architecture, orNothing(r.allowed)))
			}
		}
	}
	for dir := range missing {
		bad = append(bad, fmt.Sprintf("%s: not in the package table of %s: add a row with its name, its room and what it may import", dir, architecture))
	}
	for _, r := range unused {
		bad = append(bad, fmt.Sprintf("%s:%d: the package table names %s, but there is no such package: remove it", architecture, r.line, r.pattern))
	}
	return bad
}

// packageTable reads the table whose header starts with "| package |": names of
// packages are the code spans in the first column, allowed imports those in the
// third.
func packageTable(text string) (rooms []room) {
	inside := false
	for i, line := range strings.Split(text, "\n") {
		inside = strings.HasPrefix(line, "| package |") || inside && strings.HasPrefix(line, "|")
		cells := strings.Split(line, "|")
		if !inside || len(cells) != 5 {
			continue
		}
		for _, pattern := range codeSpans(cells[1]) {
			rooms = append(rooms, room{pattern, i + 1, codeSpans(cells[3])})
		}
	}
	return rooms
}

// codeSpans gives the words between backticks.
func codeSpans(s string) (spans []string) {
	for i, part := range strings.Split(s, "`") {
		if i%2 == 1 {
			spans = append(spans, part)
		}
	}
	return spans
}

// roomOf finds the row for a folder; the longest pattern that covers it wins.
func roomOf(rooms []room, dir string) (best *room) {
	for i := range rooms {
		if r := &rooms[i]; covers(r.pattern, dir) && (best == nil || len(r.pattern) > len(best.pattern)) {
			best = r
		}
	}
	return best
}

func covers(pattern, dir string) bool {
	parent, deep := strings.CutSuffix(pattern, "/...")
	return dir == parent || deep && strings.HasPrefix(dir, parent+"/")
}

// isStandard tells whether p needs no permission: the standard library apart
// from its ways around the type system and around package unix.
func isStandard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".") && p != "C" && p != "syscall" && p != "unsafe"
}

func orNothing(allowed []string) string {
	if len(allowed) == 0 {
		return "nothing"
	}
	return strings.Join(allowed, ", ")
}
