package ucma

import (
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Lines of a dump tile the command, and show its bytes.
func TestDumpShowsAll(t *testing.T) {
	line := regexp.MustCompile(`^ *(\d+) +(\d+)  (\S+) .*?([0-9a-f]*) ?(?:\+ (\d+) zeros)?$`)
	for _, d := range dialects {
		golden := goldenFile(t, d)
		for name := range goldenCommands(d) {
			cmd := golden[name]
			text, err := d.DumpCommand(cmd, nil)
			if err != nil {
				t.Errorf("%s %s: %v", d, name, err)
				continue
			}
			at := 0
			for _, s := range strings.Split(strings.TrimSpace(text), "\n")[2:] {
				m := line.FindStringSubmatch(s)
				if m == nil {
					t.Fatalf("%s %s: line %q", d, name, s)
				}
				off, _ := strconv.Atoi(m[1])
				size, _ := strconv.Atoi(m[2])
				zeros, _ := strconv.Atoi(m[5])
				b, err := hex.DecodeString(m[4])
				b = append(b, make([]byte, zeros)...)
				if err != nil || off != at || len(b) != size || string(b) != string(cmd[off:off+size]) {
					t.Fatalf("%s %s: line %q, bytes % x (%v)", d, name, s, cmd[off:off+size], err)
				}
				at += size
			}
			if at != len(cmd) {
				t.Errorf("%s %s: %d of %d bytes shown", d, name, at, len(cmd))
			}
		}
	}
}

// Bytes are those of the golden files, names those of the kernel's headers.
func TestDump(t *testing.T) {
	for _, c := range []struct {
		d    *Dialect
		name string
		mem  string // section
		want string
	}{
		{Illumos, "BIND_IP IPv4", "", `
BIND_IP to illumos: rdma_ucm_bind_addr, 56 bytes
offset  size  field                            value                        bytes
     0     4  cmd                              2 (BIND_IP)                  02000000
     4     2  in                               48                           3000
     6     2  out                              0                            0000
     8     8  response                                                      0000000000000000
    16    32  addr                             192.0.2.1:7174               02001c06c0000201 + 24 zeros
    48     4  id                               16909060                     04030201
    52     4  reserved                                                      00000000
`},
		{Linux, "SET_OPTION", "SET_OPTION value", `
SET_OPTION to linux: rdma_ucm_set_option, 32 bytes
offset  size  field                            value                        bytes
     0     4  cmd                              14 (SET_OPTION)              0e000000
     4     2  in                               24                           1800
     6     2  out                              0                            0000
     8     8  optval                           (address)                    0000000000000000
    16     4  id                               16909060                     04030201
    20     4  level                            1                            01000000
    24     4  optname                          1                            01000000
    28     4  optlen                           72                           48000000
IB_PATH at optval: 72 bytes
     0     4  flags                            43 (0x2b)                    2b000000
     4     4  reserved                                                      00000000
     8    64  path_rec                         fe80::2:c903:0:1201 (LID 1029) to fe80::2:c903:0:1202 (LID 515) 0000000001061c06fe800000000000000002c90300001202fe800000000000000002c90300001201020304058abcde402083fffe12328447d209 + 6 zeros
`},
		{Linux, "RESOLVE_IB_SERVICE", "", `
RESOLVE_IB_SERVICE to linux: rdma_ucm_resolve_ib_service, 96 bytes
offset  size  field                            value                        bytes
     0     4  cmd                              23 (RESOLVE_IB_SERVICE)      17000000
     4     2  in                               88                           5800
     6     2  out                              0                            0000
     8     4  id                               16909060                     04030201
    12     4  reserved                                                      00000000
    16     8  ibs.service_id                   3544952156018063160 (0x3132333435363738) 3837363534333231
    24    64  ibs.service_name                 "storage"                    73746f72616765 + 57 zeros
    88     4  ibs.flags                        3 (0x3)                      03000000
    92     4  ibs.reserved                                                  00000000
`},
	} {
		golden := goldenFile(t, c.d)
		got, err := c.d.DumpCommand(golden[c.name], golden[c.mem])
		if err != nil || got != strings.TrimPrefix(c.want, "\n") {
			t.Errorf("%v\n%swant%s", err, got, c.want)
		}
	}
	if _, err := Linux.DumpCommand([]byte{1}, nil); err == nil {
		t.Error("a dump of nothing")
	}
	// Any value is shown, though the kernel would not take it.
	cmd, err := Linux.AppendUnchecked(nil, SetOption{Level: OptionLevelIB, Name: OptionIBPath, Value: []byte{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := Linux.DumpCommand(cmd, []byte{1, 2}); err != nil || !strings.HasSuffix(text, " 0102\n") {
		t.Errorf("%v: %s", err, text)
	}
}
