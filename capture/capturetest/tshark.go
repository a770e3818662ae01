// Package capturetest reads captures with tshark, for tests: what somebody
// else's program makes of the bytes, beside what our field table says.
package capturetest

import (
	"bytes"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Need skips the test where tshark is not installed. With IBSM_BENCH=all that is
// a failure.
func Need(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("tshark"); err == nil {
		return
	}
	const why = "not installed: tshark ('make deps' installs it on Debian)"
	if os.Getenv("IBSM_BENCH") == "all" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Packet is what tshark says of a record.
type Packet struct {
	Number   int
	Time     time.Time
	Comments []string
	// Problems are marks of malformed parts, and expert remarks other than
	// comments.
	Problems []string
	Fields   []Field // of all protocols, in the order in which tshark shows them
}

// Field is a field as tshark dissects it.
type Field struct {
	Name  string // "infiniband.lrh.dlid"
	Show  string // the value as text; a number in decimal or with 0x
	Value []byte // the bytes as they stand in the packet; nil of a field with a mask
	Pos   int    // first byte in the packet
	Size  int    // bytes that hold the field
}

// Uint is the value of a number.
func (f *Field) Uint() (uint64, error) { return strconv.ParseUint(f.Show, 0, 64) }

// Find gives the first field of a name, nil if there is none.
func (p *Packet) Find(name string) *Field {
	for i := range p.Fields {
		if p.Fields[i].Name == name {
			return &p.Fields[i]
		}
	}
	return nil
}

// Shown is the text of the first field of a name, "" if there is none.
func (p *Packet) Shown(name string) string {
	if f := p.Find(name); f != nil {
		return f.Show
	}
	return ""
}

// Decode has tshark dissect a capture file. The dissector of SDP is off: it takes
// the private data of any REQ for its own. args are further arguments of tshark.
func Decode(t testing.TB, file string, args ...string) []Packet {
	t.Helper()
	Need(t)
	cmd := exec.CommandContext(t.Context(), "tshark", append([]string{"-r", file, "-n", "-T", "pdml", "--disable-protocol", "infiniband_sdp"}, args...)...)
	// Settings of the user may change what is dissected.
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, said.Bytes())
	}
	packets, err := parse(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	return packets
}

// node is a <proto> or a <field> of PDML.
type node struct {
	Name     string `xml:"name,attr"`
	Show     string `xml:"show,attr"`
	ShowName string `xml:"showname,attr"`
	Value    string `xml:"value,attr"`
	Unmasked string `xml:"unmaskedvalue,attr"`
	Pos      int    `xml:"pos,attr"`
	Size     int    `xml:"size,attr"`
	Nodes    []node `xml:",any"`
}

// parse reads PDML, tshark's XML.
func parse(r io.Reader) (packets []Packet, err error) {
	for d := xml.NewDecoder(r); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return packets, nil
		}
		if err != nil {
			return nil, fmt.Errorf("PDML: %w", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "packet" {
			continue
		}
		var n node
		var p Packet
		if err = d.DecodeElement(&n, &start); err == nil {
			err = p.take(n.Nodes)
		}
		if err != nil {
			return nil, fmt.Errorf("PDML of packet %d: %w", len(packets)+1, err)
		}
		packets = append(packets, p)
	}
}

func (p *Packet) take(nodes []node) error {
	for _, n := range nodes {
		f := Field{Name: n.Name, Show: n.Show, Pos: n.Pos, Size: n.Size}
		switch n.Name {
		case "geninfo": // a summary, in a form of its own
			continue
		case "_ws.malformed", "_ws.short", "_ws.unreassembled":
			p.Problems = append(p.Problems, n.ShowName)
		case "_ws.expert":
			if !strings.Contains(n.ShowName, "(Comment/Comment)") {
				p.Problems = append(p.Problems, n.ShowName)
			}
			continue
		case "frame.comment":
			p.Comments = append(p.Comments, n.Show)
		case "frame.number":
			var err error
			if p.Number, err = strconv.Atoi(n.Show); err != nil {
				return err
			}
		case "frame.time_epoch":
			seconds, fraction, _ := strings.Cut(n.Show, ".")
			s, errS := strconv.ParseInt(seconds, 10, 64)
			ns, errN := strconv.ParseInt(fraction, 10, 64)
			if err := errors.Join(errS, errN); err != nil {
				return err
			}
			p.Time = time.Unix(s, ns)
		}
		if n.Unmasked == "" && len(n.Value) == 2*n.Size {
			var err error
			if f.Value, err = hex.DecodeString(n.Value); err != nil {
				return fmt.Errorf("field %s: %w", n.Name, err)
			}
		}
		p.Fields = append(p.Fields, f)
		if err := p.take(n.Nodes); err != nil {
			return err
		}
	}
	return nil
}
