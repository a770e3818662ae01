package topo

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkText looks for what YAML does not have, because its reader does not say
// where that is.
func checkText(file, text string) error {
	line := 1
	for i, r := range text {
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(r)):
			return &FileError{File: file, Line: line, Msg: "has a byte that is no UTF-8 text"}
		case r != '\t' && r != '\r' && unicode.IsControl(r) || r == 0xfffe || r == 0xffff:
			return &FileError{File: file, Line: line, Msg: "has a control character, " + strconv.QuoteRune(r)}
		}
	}
	return nil
}

var (
	yamlLine = regexp.MustCompile(`^line (\d+): `)
	// yamlParser is an error of yaml.v3's parser, not of its scanner, which counts
	// lines otherwise.
	yamlParser = regexp.MustCompile(`^did not find expected (?:node content|key|',' or|'-' indicator|<)|^found (?:duplicate %|incompatible YAML|undefined tag)`)
	yamlAlias  = regexp.MustCompile(`(?s)^unknown anchor '(.*)' referenced$`)
)

// syntaxError adds the line to an error of yaml.v3's. That leaves out the first
// line, and counts from 0 in what its parser says, as opposed to its scanner;
// the end of the file lies a line behind the last one.
func syntaxError(file, text string, err error) error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	if alias := yamlAlias.FindStringSubmatch(msg); alias != nil {
		name := "*" + alias[1]
		return &FileError{File: file, Line: lineOf(text, name), Msg: "has an alias, " + strconv.Quote(short(name)) + ", which fabric files do not have"}
	}
	line := 1
	if found := yamlLine.FindStringSubmatch(msg); found != nil {
		line, _ = strconv.Atoi(found[1])
		msg = msg[len(found[0]):]
		if yamlParser.MatchString(msg) {
			line++
		}
	}
	lines := strings.Count(strings.TrimRight(text, "\r\n"), "\n") + 1
	return &FileError{File: file, Line: min(line, lines), Msg: "is no YAML: " + msg}
}

// lineOf is the first line with a text outside of comments, 0 if there is none.
func lineOf(text, part string) int {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if code, _, _ := strings.Cut(line, "#"); strings.Contains(code, part) {
			return n
		}
	}
	return 0
}
