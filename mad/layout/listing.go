package layout

import "fmt"

// Listing is how the diags print a structure that they do not print field by
// field: saquery with a title and lines in its own order, and neighbouring
// fields joined where opensm's C structures join them.
type Listing struct {
	Title  string // the first line, if it is not ""
	Indent string // before every line that is no heading
	Width  int    // of a label with the dots after it
	Lines  []Line
}

// Line is one line of a Listing, or one for each element of a table.
type Line struct {
	Label  string
	Field  string // the field it shows, or the main one
	Off    int    // bits shown, if they are not just the field
	Len    int    // of one number
	Format Format
	Enum   *Enum  // names of the values, where only this listing knows them
	Key    bool   // a secret, which saquery prints only when asked to
	When   []Cond // shown only if all of them hold
	// Count is how many numbers of Len bits stand side by side, each Step bits
	// from the one before, or Len if Step is 0. The formats for several numbers
	// join them into one line.
	Count, Step int
	// Block is the field with the number of the block that Count numbers make
	// up. With it each number has a line of its own, behind its index in the
	// whole table, which starts with First.
	Block string
	First uint64
}

// Format is how a Line shows its bits.
type Format uint8

const (
	Dec       Format = iota // decimal
	HEX                     // 0x and upper-case hexadecimal digits, as few as needed
	HEX2                    // at least 2 digits
	HEX4                    // at least 4 digits
	HEX6                    // at least 6 digits
	HEX8                    // at least 8 digits
	Hex                     // 0x and lower-case digits, as few as needed
	Hex4                    // 4 lower-case digits
	Hex16                   // 16 lower-case digits
	IPv6                    // a GID
	Named                   // the name of an enumeration's value
	Text                    // a string
	Digits                  // 0x and two upper-case digits for each byte
	LowDigits               // 0x and two lower-case digits for each byte
	Cells                   // several numbers, in cells two wide, a bar behind each
	HEXCells                // several numbers as HEX, in cells four wide, a bar behind each
	Row                     // several numbers as Hex4, a blank between them
	Heading                 // the label alone, as it is
	Dotted                  // an embedded structure in smpquery's form
)

// saquery's lines stand behind two tabs.
const saIndent = "\t\t"

// numbered makes a line for each element of an array; the label holds a verb
// for its number, the first of which is first.
func numbered(label, field string, count, first int, format Format) []Line {
	lines := make([]Line, count)
	for i := range lines {
		lines[i] = Line{Label: fmt.Sprintf(label, first+i), Field: fmt.Sprintf("%s[%d]", field, i), Format: format}
	}
	return lines
}

// heading makes a line of text alone.
func heading(text string) Line { return Line{Label: text, Format: Heading} }
