package ucma

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ibsm/ibsm/mad"
)

// DumpCommand writes a command's bytes as text: each field of header and
// structure with its offset in the write, size, name, value and bytes, and the
// paths that SET_OPTION points to if mem has them. The error is that of
// ParseHeader.
func (d *Dialect) DumpCommand(cmd, mem []byte) (string, error) {
	h, err := d.ParseHeader(cmd)
	if err != nil {
		return "", err
	}
	s := d.structs[d.commands[h.Op].in]
	var t strings.Builder
	fmt.Fprintf(&t, "%v to %s: %s, %d bytes\n", h.Op, d, s.name, len(cmd))
	fmt.Fprintf(&t, "%6s %5s  %-32s %-28s %s\n", "offset", "size", "field", "value", "bytes")
	d.dump(&t, d.structs["hdr"], cmd[:HeaderSize], 0, "")
	d.dump(&t, s, cmd[HeaderSize:], HeaderSize, "")
	if h.Op == OpSetOption && len(mem) > 0 {
		d.dumpOption(&t, cmd, mem)
	}
	return t.String(), nil
}

// dumpOption writes the value of SET_OPTION.
func (d *Dialect) dumpOption(t *strings.Builder, cmd, mem []byte) {
	var o SetOption
	d.decode(&o, cmd[HeaderSize:], false)
	name := optionNames[o.Level][o.Name]
	fmt.Fprintf(t, "%s at optval: %d bytes\n", cmp.Or(name, "option"), len(mem))
	if o.Level != OptionLevelIB || name == "" || len(mem)%PathRecDataSize != 0 {
		d.dumpLine(t, field{0, len(mem), "value", octets}, mem, 0, "")
		return
	}
	for at := 0; at < len(mem); at += PathRecDataSize {
		d.dump(t, linuxStructs["path_rec_data"], mem[at:at+PathRecDataSize], at, "")
	}
}

// dump writes the rows of a structure as far as its bytes go.
func (d *Dialect) dump(t *strings.Builder, s *structure, b []byte, at int, prefix string) {
	for _, f := range s.fields {
		if f.off+f.size > len(b) {
			return
		}
		part := b[f.off : f.off+f.size]
		n := d.structs[string(f.form)]
		if n == nil {
			d.dumpLine(t, f, part, at+f.off, prefix)
			continue
		}
		d.dump(t, n, part, at+f.off, prefix+f.name+".")
	}
}

func (d *Dialect) dumpLine(t *strings.Builder, f field, b []byte, at int, prefix string) {
	// The zeros at the end of private data and addresses say nothing.
	shown := b
	if len(b) > 16 {
		shown = []byte(strings.TrimRight(string(b), "\x00"))
	}
	digits := hex.EncodeToString(shown)
	if n := len(b) - len(shown); n > 0 {
		digits = strings.TrimSpace(fmt.Sprintf("%s + %d zeros", digits, n))
	}
	fmt.Fprintln(t, strings.TrimRight(fmt.Sprintf("%6d %5d  %-32s %-28s %s", at, f.size, prefix+f.name, d.show(f, b), digits), " "))
}

// valueNames are for numbers that have names.
var valueNames = map[string]func(uint64) string{
	"cmd":      func(n uint64) string { return Op(n).String() },
	"ps":       func(n uint64) string { return PortSpace(n).String() },
	"qp_state": func(n uint64) string { return QPState(n).String() },
	"flags":    hexadecimal, "qkey": hexadecimal, "qp_num": hexadecimal, "uid": hexadecimal, "service_id": hexadecimal,
}

func hexadecimal(n uint64) string { return fmt.Sprintf("%#x", n) }

// show is a value in words.
func (d *Dialect) show(f field, b []byte) string {
	switch f.form {
	case native, big:
		n := getNumber(b, f.form)
		if name := valueNames[f.name]; name != nil {
			return fmt.Sprintf("%d (%s)", n, name(n))
		}
		return fmt.Sprint(n)
	case signed:
		return fmt.Sprint(int32(getNumber(b, f.form)))
	case address:
		return "(address)"
	case text:
		return fmt.Sprintf("%q", strings.TrimRight(string(b), "\x00"))
	case gid:
		return mad.GID(b).String()
	case sin6, storage:
		family, ok := d.family(binary.NativeEndian.Uint16(b))
		if !ok {
			return fmt.Sprintf("family %d", binary.NativeEndian.Uint16(b))
		}
		var a Sockaddr
		getSockaddr(b, family, &a)
		return a.String()
	}
	if f.name == "path_rec" {
		p := new(mad.PathRecord)
		p.DecodeFrom((*[mad.PathRecordSize]byte)(b))
		return fmt.Sprintf("%v (LID %v) to %v (LID %v)", p.SGID, p.SLID, p.DGID, p.DLID)
	}
	return ""
}
