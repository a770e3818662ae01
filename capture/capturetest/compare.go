package capturetest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// tree is what all of tshark's names of fields of InfiniBand begin with.
const tree = "infiniband."

// MAD gives the 256 bytes of the packet's MAD and where they stand in it; nil
// if tshark shows none.
func (p *Packet) MAD() (b []byte, at int) {
	f := p.Find(tree + "mad")
	if f == nil || len(f.Value) != mad.Size {
		return nil, 0
	}
	return f.Value, f.Pos
}

// Compare compares what tshark shows of a packet's MAD with the field table,
// value and place of each field. It names the structures that it has compared
// and tells in bad what differs, what only one side shows, and what tshark itself
// complains of. tshark's faults and gaps are known, with their reasons.
//
// It knows the headers of SMPs and of subnet administration, NodeInfo, PortInfo,
// PathRecord, and the messages of communication management that tshark 4.0
// knows: REQ, REP, REJ, RTU, DREQ, DREP. It does not matter what carries the
// MAD: InfiniBand, or UDP as RoCEv2 does.
func (p *Packet) Compare() (compared, bad []string) {
	bad = append(bad, p.Problems...)
	b, at := p.MAD()
	if b == nil {
		return nil, append(bad, "tshark shows no MAD")
	}
	known := make(map[string]bool) // tshark's names
	for _, v := range viewsOf(p, b) {
		compared = append(compared, v.of.Name)
		bad = append(bad, v.compare(p, b, at, known)...)
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		if strings.HasPrefix(f.Name, tree) && f.Pos >= at && f.Pos < at+mad.Size && !known[f.Name] && !isContainer(f.Name) {
			bad = append(bad, fmt.Sprintf("%s = %s at byte %d of the MAD: not compared", f.Name, f.Show, f.Pos-at))
		}
	}
	return compared, bad
}

// compare compares one structure, and enters the names that it accounts for into
// known. The packet holds the MAD b at a byte.
func (v placed) compare(p *Packet, b []byte, at int, known map[string]bool) (bad []string) {
	for _, name := range v.faults {
		known[tree+name] = true
	}
	body, at := b[v.at:], at+v.at
	for i := range v.of.Fields {
		f := &v.of.Fields[i]
		if f.IsReserved() || v.skip[f.Name] != "" {
			continue
		}
		shown, last := v.find(p, f)
		if shown == nil {
			bad = append(bad, fmt.Sprintf("%s.%s: tshark does not show it", v.of.Name, f.Name))
			continue
		}
		known[shown.Name] = true
		if why := agree(f, last, body, shown, at); why != "" {
			bad = append(bad, fmt.Sprintf("%s.%s: %s", v.of.Name, f.Name, why))
		}
		bad = append(bad, compareBits(p, f, body, shown.Name, known)...)
	}
	for i := range v.parts {
		f := &v.parts[i]
		shown := p.Find(tree + v.prefix + f.Name)
		if shown == nil {
			continue
		}
		known[shown.Name] = true
		if why := agree(f, 0, body, shown, at); why != "" {
			bad = append(bad, fmt.Sprintf("%s: %s", v.of.Name, why))
		}
	}
	return bad
}

// find gives what tshark shows for a field of ours, and of how many last bytes
// only if not of all.
func (v *view) find(p *Packet, f *layout.Field) (shown *Field, last int) {
	names, ok := v.names[f.Name]
	if !ok {
		names = as(strings.ToLower(f.Name))
	}
	for _, n := range names {
		name, absolute := strings.CutPrefix(n.name, ".")
		if !absolute {
			name = v.prefix + name
		}
		if shown := p.Find(tree + name); shown != nil {
			return shown, n.last
		}
	}
	return nil, 0
}

// agree says how a field of ours, or its last bytes, differs from what tshark
// shows; body is the structure, which stands at a byte of the packet.
func agree(f *layout.Field, last int, body []byte, shown *Field, at int) string {
	first, end := f.Off, f.Off+f.Bits()
	if last > 0 {
		first = end - 8*last
	}
	if 8*(shown.Pos-at) > first || 8*(shown.Pos-at+shown.Size) < end {
		return fmt.Sprintf("bits %d to %d, but tshark's %s in bytes %d to %d", first, end-1, shown.Name, shown.Pos-at, shown.Pos-at+shown.Size-1)
	}
	if f.IsNumber() && f.Count == 0 {
		got := f.Uint(body)
		if want, err := shown.Uint(); err != nil || got != want {
			return fmt.Sprintf("%#x, but tshark's %s is %s", got, shown.Name, shown.Show)
		}
		return ""
	}
	if got := body[first/8 : end/8]; !bytes.Equal(got, shown.Value) {
		return fmt.Sprintf("%x, but tshark's %s is %x", got, shown.Name, shown.Value)
	}
	return ""
}

// compareBits compares what tshark shows below a mask, one line a bit, with the
// bits of the names in the table.
func compareBits(p *Packet, f *layout.Field, body []byte, name string, known map[string]bool) (bad []string) {
	if f.Kind != layout.KindEnum || f.Enum.Sep == "" {
		return nil
	}
	for _, bit := range f.Enum.Values {
		for _, spelling := range append([]string{bit.Go, bit.Text}, bit.Alias...) {
			spelling = strings.ToLower(spelling)
			shown := p.Find(name + "." + spelling)
			if shown == nil {
				shown = p.Find(name + "." + strings.TrimPrefix(spelling, "is"))
			}
			if shown == nil || known[shown.Name] {
				continue
			}
			known[shown.Name] = true
			if set, n := f.Uint(body)&bit.Value != 0, shown.Show; set != (n == "1" || n == "True" || n == "0x00000001") {
				bad = append(bad, fmt.Sprintf("%s is bit %#x, which is %v; tshark has %s", shown.Name, bit.Value, set, n))
			}
		}
	}
	return bad
}
