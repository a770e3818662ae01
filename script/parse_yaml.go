package script

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// maxYAMLDepth is how deep YAML nodes may lie in each other: some three for each
// step in a step.
const maxYAMLDepth = 4 * MaxStepDepth

// maxExact is the longest text in whose middle places are told; in longer ones they
// are that of its beginning.
const maxExact = 64 << 10

// node is a YAML node without aliases and merge keys, each of which the reader has
// put in place of.
type node struct {
	shape   Shape
	tag     string // of a scalar: !!str, !!int, !!float, !!bool, !!null
	text    string // of a scalar
	pos     Pos
	inner   Pos  // where the text begins: behind the quote
	exact   bool // the text stands in the file as it is, on one line
	items   []*node
	entries []nodeEntry
}

// nodeEntry is a key of a map and its value.
type nodeEntry struct {
	key   *node
	value *node
}

// null tells whether the node is null or absent.
func (n *node) null() bool { return n.shape == Scalar && n.tag == "!!null" }

// what names the shape for messages.
func (n *node) what() string {
	switch {
	case n.shape == List:
		return "a list"
	case n.shape == Map:
		return "a map"
	case n.tag == "!!null":
		return "nothing"
	}
	return "the text " + quoted(n.text)
}

// quoted shows a text from a script in a message, cut to a sensible length.
func quoted(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strconv.Quote(s)
}

// reader turns the text of a file into nodes.
type reader struct {
	file  string
	lines []string
	last  int            // number of the last line
	runes map[int][]rune // lines cut into characters, by their index
	errs  *errorSink
	nodes int
	bytes int                 // of all scalars
	open  map[*yaml.Node]bool // aliases that are being followed
	over  bool                // a bound was passed: all that follows is dropped
}

// readYAML reads the one document of a file. nil: there is none to work on, and
// errs says why.
func readYAML(file string, data []byte, errs *errorSink) *node {
	r := &reader{file: file, runes: make(map[int][]rune), errs: errs, open: make(map[*yaml.Node]bool)}
	start := Pos{file, 1, 1}
	if len(data) > MaxDocument {
		errs.add("too-large", start, "the file has more than %d bytes", MaxDocument)
		return nil
	}
	if at, ok := badText(data); ok {
		errs.add("encoding", placeOf(file, data, at), "the file is no text in UTF-8: byte %#02x", data[at])
		return nil
	}
	r.lines = strings.Split(string(data), "\n")
	r.last = len(r.lines) + strings.Count(string(data), "\r") // which YAML takes for ends of lines, too
	for _, end := range []string{"\u0085", "\u2028", "\u2029"} {
		r.last += strings.Count(string(data), end)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		errs.add("empty", start, "the file holds no document: a script begins with version: 1")
		return nil
	case err != nil:
		r.syntax(err)
		return nil
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		errs.add("documents", r.pos(&second), "a second document: a script is one document")
		return nil
	case !errors.Is(err, io.EOF):
		r.syntax(err)
		return nil
	}
	root := r.node(doc.Content[0], 0)
	if r.over {
		return nil
	}
	return root
}

// badText finds the first byte that no text has.
func badText(data []byte) (int, bool) {
	for i := 0; i < len(data); {
		c, n := utf8.DecodeRune(data[i:])
		if c == utf8.RuneError && n <= 1 || c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return i, true
		}
		i += n
	}
	return 0, false
}

func placeOf(file string, data []byte, at int) Pos {
	before := data[:at]
	line := bytes.LastIndexByte(before, '\n') + 1
	return Pos{file, bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[line:]) + 1}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax takes the line out of an error of the YAML parser, which has no type.
func (r *reader) syntax(err error) {
	pos := Pos{r.file, 1, 1}
	msg := err.Error()
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		msg = msg[len(m[0]):]
		if line, err := strconv.Atoi(m[1]); err == nil {
			pos.Line = min(max(line, 1), len(r.lines))
		}
	}
	line := r.lines[pos.Line-1]
	pos.Col = len(line) - len(strings.TrimLeft(line, " ")) + 1
	r.errs.add("syntax", pos, "this is no YAML: %s", msg)
}

// pos is the place of a node. What is missing at the end of a file has none in it.
func (r *reader) pos(n *yaml.Node) Pos {
	return Pos{r.file, min(max(n.Line, 1), r.last), max(n.Column, 1)}
}

// node makes a node. It always gives one, so that the caller can go on.
func (r *reader) node(y *yaml.Node, depth int) *node {
	pos := r.pos(y)
	n := &node{pos: pos, inner: pos, tag: "!!null"}
	if r.over {
		return n
	}
	if r.nodes++; y.Kind == yaml.ScalarNode {
		r.bytes += len(y.Value)
	}
	switch {
	case r.nodes > MaxNodes, r.bytes > 2*MaxDocument:
		r.over = true
		r.errs.add("too-many-nodes", pos, "the script has more than %d values, or %d bytes of text, aliases counted as what they stand for", MaxNodes, 2*MaxDocument)
		return n
	case depth > maxYAMLDepth:
		r.over = true
		r.errs.add("too-deep", pos, "more than %d values in each other", maxYAMLDepth)
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		if r.open[y.Alias] {
			r.errs.add("alias-cycle", pos, "the alias *%s stands in what it names", y.Value)
			return n
		}
		r.open[y.Alias] = true
		defer delete(r.open, y.Alias)
		return r.node(y.Alias, depth)
	case yaml.SequenceNode:
		r.open[y] = true
		defer delete(r.open, y)
		n.shape = List
		for _, c := range y.Content {
			n.items = append(n.items, r.node(c, depth+1))
		}
	case yaml.MappingNode:
		r.open[y] = true
		defer delete(r.open, y)
		n.shape = Map
		r.mapping(n, y, depth)
	default:
		r.scalar(n, y)
	}
	return n
}

func (r *reader) scalar(n *node, y *yaml.Node) {
	n.text, n.tag = y.Value, y.ShortTag()
	switch n.tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!null":
	case "!!timestamp", "!!merge":
		n.tag = "!!str"
	default:
		r.errs.add("tag", n.pos, "scripts have no tags such as %s", quoted(n.tag))
		n.tag = "!!str"
	}
	if y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		n.inner.Col++
	}
	n.exact = r.stands(n.text, n.inner)
}

// stands tells whether a text stands in the file at a place, to the letter.
func (r *reader) stands(text string, at Pos) bool {
	if at.Line > len(r.lines) || len(text) > maxExact {
		return false
	}
	line, cut := r.runes[at.Line]
	if !cut {
		line = []rune(r.lines[at.Line-1])
		r.runes[at.Line] = line
	}
	want, from := []rune(text), at.Col-1
	return from+len(want) <= len(line) && slices.Equal(line[from:from+len(want)], want)
}

// mapping reads the keys of a map. Its own keys come before those of a merge.
func (r *reader) mapping(n *node, y *yaml.Node, depth int) {
	seen := make(map[string]Pos)
	var merges []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merges = append(merges, value)
			continue
		}
		k, v := r.node(key, depth+1), r.node(value, depth+1)
		if r.over {
			return
		}
		if k.shape != Scalar {
			r.errs.add("key-kind", k.pos, "a key is a text, and not %s", k.what())
			continue
		}
		if first, twice := seen[k.text]; twice {
			r.errs.add("duplicate-key", k.pos, "the key %s stands in line %d already", quoted(k.text), first.Line)
			continue
		}
		seen[k.text] = k.pos
		n.entries = append(n.entries, nodeEntry{k, v})
	}
	for _, m := range merges {
		r.merge(n, r.node(m, depth+1), seen, true)
	}
}

// merge adds the keys of a map, or of a list of maps, that are not there yet.
func (r *reader) merge(n, from *node, seen map[string]Pos, list bool) {
	switch {
	case r.over:
	case from.shape == Map:
		for _, e := range from.entries {
			if _, have := seen[e.key.text]; !have {
				seen[e.key.text] = e.key.pos
				n.entries = append(n.entries, e)
			}
		}
	case from.shape == List && list:
		for _, item := range from.items {
			r.merge(n, item, seen, false)
		}
	default:
		r.errs.add("merge", from.pos, "<< takes a map, or a list of maps, and not %s", from.what())
	}
}
