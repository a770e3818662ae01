package topo

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/mad"
)

// cursor is a place in a line. Its methods skip blanks first; after the first
// failure, which err tells, the values are of no use.
type cursor struct {
	rest string
	err  string
	zero bool // there was a GUID of 0
}

func (c *cursor) fail(why string) {
	if c.err == "" {
		c.err = why
	}
}

func (c *cursor) space() { c.rest = strings.TrimLeft(c.rest, " \t") }

// lit passes over a text if it stands here.
func (c *cursor) lit(s string) bool {
	c.space()
	rest, ok := strings.CutPrefix(c.rest, s)
	if ok {
		c.rest = rest
	}
	return ok
}

func (c *cursor) expect(s string) {
	if !c.lit(s) {
		c.fail(fmt.Sprintf("%q expected, not %q", s, short(c.rest)))
	}
}

func isDigit(b byte, base int) bool {
	return '0' <= b && b <= '9' || base == 16 && ('a' <= b && b <= 'f' || 'A' <= b && b <= 'F')
}

func (c *cursor) number(what string, base, bits int) uint64 {
	c.space()
	end := 0
	for end < len(c.rest) && isDigit(c.rest[end], base) {
		end++
	}
	v, err := strconv.ParseUint(c.rest[:end], base, bits)
	if err == nil && base == 10 && end > 1 && c.rest[0] == '0' {
		err = strconv.ErrSyntax // octal, to some
	}
	if err != nil {
		c.fail(fmt.Sprintf("%s expected, in %d bits, not %q", what, bits, short(c.rest)))
	}
	c.rest = c.rest[end:]
	return v
}

// value is a number, hexadecimal after 0x.
func (c *cursor) value(what string, bits int) uint64 {
	if c.lit("0x") {
		return c.number(what, 16, bits)
	}
	return c.number(what, 10, bits)
}

func (c *cursor) lid() mad.LID { return mad.LID(c.number("a LID", 10, 16)) }
func (c *cursor) lmc() uint8   { return uint8(c.number("an LMC", 10, 3)) }

// bracket is a port number, as in [12].
func (c *cursor) bracket() uint8 {
	c.expect("[")
	num := c.number("a port number", 10, 8)
	c.expect("]")
	return uint8(num)
}

// external passes over the port number on the outside of a chassis, [ext 12].
func (c *cursor) external() {
	if c.lit("[ext ") {
		c.number("a port number", 10, 16)
		c.expect("]")
	}
}

// guid is a GUID in parentheses, 0 if there is none.
func (c *cursor) guid() mad.GUID {
	if !c.lit("(") {
		return 0
	}
	guid := c.number("a GUID", 16, 64)
	c.expect(")")
	c.zero = c.zero || guid == 0
	return mad.GUID(guid)
}

func (c *cursor) quoted(what string) string {
	var text string
	ok := c.lit(`"`)
	if ok {
		text, c.rest, ok = strings.Cut(c.rest, `"`)
	}
	if !ok || text == "" {
		c.fail(fmt.Sprintf("%s expected, not %q", what, short(c.rest)))
	}
	if len(text) > maxDesc {
		c.fail(fmt.Sprintf("%q is longer than %d bytes", short(text), maxDesc))
	}
	return text
}

// description is a NodeDescription in quotes. It may hold quotes itself, so it
// goes to the last one of the line.
func (c *cursor) description() (string, bool) {
	if !c.lit(`"`) {
		return "", false
	}
	end := strings.LastIndexByte(c.rest, '"')
	if end < 0 {
		c.fail("the description has no end")
		return "", false
	}
	desc := c.rest[:end]
	c.rest = c.rest[end+1:]
	return desc, true
}

// short is a text for a message: what goes on behind 64 bytes is cut off.
func short(s string) string {
	const limit = 64
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "..."
}
