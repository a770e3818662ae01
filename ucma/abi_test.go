package ucma

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// The numbers of errnos are those of golang.org/x/sys/unix, which are made from
// the systems' headers.
func TestErrnos(t *testing.T) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		t.Fatal(err)
	}
	definition := regexp.MustCompile(`(?m)^\s(E\w+)\s+= syscall\.Errno\((0x[0-9a-f]+)\)`)
	for d, files := range map[*Dialect][]string{Linux: {"zerrors_linux.go", "zerrors_linux_amd64.go"}, Illumos: {"zerrors_solaris_amd64.go"}} {
		numbers := make(map[Errno]int)
		for _, f := range files {
			b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), f))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range definition.FindAllStringSubmatch(string(b), -1) {
				n, err := strconv.ParseUint(m[2], 0, 16)
				if err != nil {
					t.Fatal(err)
				}
				numbers[Errno(m[1])] = int(n)
			}
		}
		for e, n := range d.errnos {
			if numbers[e] != n {
				t.Errorf("%s: %v is %d, want %d", d, e, n, numbers[e])
			}
			if d.Errno(n) != e || d.Errno(-n) != e || d.Number(e) != n {
				t.Errorf("%s: %d is %v, which is %d", d, n, d.Errno(n), d.Number(e))
			}
		}
	}
	// The two dialects know the same ones.
	for e := range linuxErrnos {
		if Illumos.Number(e) == 0 {
			t.Errorf("illumos has no %v", e)
		}
	}
}

func TestUnnamedErrno(t *testing.T) {
	e := Linux.Errno(-524) // ENOTSUPP, which is the kernel's own
	if e != "errno 524" || Linux.Number(e) != 524 || Illumos.Number(e) != 524 {
		t.Errorf("%q is number %d", e, Linux.Number(e))
	}
	if Linux.Errno(0) != "" || Linux.Number("") != 0 || Linux.Number("ENOSUCH") != 0 || Linux.Number("errno -3") != 0 {
		t.Error("no error has a number")
	}
	for _, c := range []struct {
		e    Errno
		kind error
		is   bool
	}{
		{EACCES, fs.ErrPermission, true}, {EPERM, fs.ErrPermission, true}, {ENOENT, fs.ErrNotExist, true},
		{ENOSYS, errors.ErrUnsupported, true}, {EOPNOTSUPP, errors.ErrUnsupported, true},
		{EINVAL, fs.ErrPermission, false}, {EINVAL, EINVAL, true}, {EINVAL, ENOENT, false},
	} {
		if errors.Is(c.e, c.kind) != c.is {
			t.Errorf("%v is %v: %v", c.e, c.kind, !c.is)
		}
	}
	if !ETIMEDOUT.Timeout() || EINVAL.Timeout() {
		t.Error("only ETIMEDOUT is a time-out")
	}
}

// write is a command as raw bytes: numbers of the header, and n bytes after it.
func write(cmd uint32, in, out uint16, n int) []byte {
	b := binary.NativeEndian.AppendUint32(nil, cmd)
	b = binary.NativeEndian.AppendUint16(b, in)
	b = binary.NativeEndian.AppendUint16(b, out)
	return append(b, make([]byte, n)...)
}

// writeConnect is a CONNECT with valid set.
func writeConnect(in uint16, n int) []byte {
	b := write(uint32(OpConnect), in, 0, n)
	b[HeaderSize+271] = 1
	return b
}

// badWrites are refused by their sizes. Linux: ucma.c, ucma_write and the heads
// of the commands; TestKernelBadWrites asks the kernel. illumos: sol_ucma.c,
// sol_ucma_write.
var badWrites = []struct {
	name           string
	b              []byte
	linux, illumos Errno // "": taken
}{
	{"nothing", nil, EINVAL, EINVAL},
	{"short header", make([]byte, 7), EINVAL, EINVAL},
	{"unknown command", write(99, 0, 0, 0), EINVAL, EINVAL},
	{"GET_OPTION", write(13, 0, 0, 0), ENOSYS, EINVAL},
	{"GET_OPTION with in too long", write(13, 8, 0, 4), EINVAL, EINVAL},
	{"in too long", write(7, 9, 0, 8), EINVAL, EINVAL},
	{"out too short", write(0, 24, 3, 24), ENOSPC, EINVAL},
	{"out too short, QUERY_ROUTE", write(5, 16, 199, 16), ENOSPC, EINVAL},
	{"out too short, INIT_QP_ATTR", write(11, 16, 143, 16), ENOSPC, EINVAL},
	{"out too short, GET_EVENT", write(12, 8, 323, 8), ENOSPC, EINVAL},
	{"CONNECT with in too short", write(6, 279, 0, 288), EINVAL, EINVAL},
	{"ACCEPT with in too short", write(8, 287, 0, 296), EINVAL, EINVAL},
}

// okWrites are taken, by one or the other. kernel is what Linux says then: that
// it knows no id 0 of this file, mostly.
var okWrites = []struct {
	name           string
	b              []byte
	linux, illumos bool
	kernel         Errno
}{
	{"in is not looked at", write(7, 0, 0, 8), true, false, ENOENT},
	{"more follows", write(7, 8, 0, 20), true, true, ENOENT},
	{"out without need", write(7, 8, 4, 8), true, false, ENOENT},
	{"CONNECT of old", writeConnect(280, 280), true, true, ENOENT},
	{"CONNECT with half an ECE", writeConnect(284, 284), true, false, ENOENT},
	{"CONNECT of a time to come", writeConnect(300, 300), true, false, ENOENT},
	{"QUERY_ROUTE of old", write(5, 16, 200, 16), true, false, ENOENT},
	{"QUERY_ROUTE", write(5, 16, 208, 16), true, true, ENOENT},
	{"GET_EVENT of 32 bits", write(12, 8, 324, 8), true, false, EAGAIN},
	{"MIGRATE_ID looks at no out", write(18, 16, 0, 16), true, false, EINVAL}, // file 0 is no device
}

func TestSizes(t *testing.T) {
	for _, c := range badWrites {
		for d, want := range map[*Dialect]Errno{Linux: c.linux, Illumos: c.illumos} {
			_, err := d.ParseCommand(c.b)
			var refused *CommandError
			if !errors.As(err, &refused) || refused.Err != want || refused.Rule == "" {
				t.Errorf("%s %s: %v, want %v", d, c.name, err, want)
			}
		}
	}
	for _, c := range okWrites {
		for d, ok := range map[*Dialect]bool{Linux: c.linux, Illumos: c.illumos} {
			_, err := d.ParseCommand(c.b)
			if ok != (err == nil) || !ok && !errors.Is(err, EINVAL) {
				t.Errorf("%s %s: %v", d, c.name, err)
			}
		}
	}
	// Bytes that the kernel would read and that are not there.
	if _, err := Linux.ParseCommand(write(7, 4, 0, 4)); !errors.Is(err, EFAULT) {
		t.Errorf("half a LISTEN: %v", err)
	}
	if _, err := Illumos.ParseCommand(append(write(7, 8, 0, 8), make([]byte, 512)...)); !errors.Is(err, EINVAL) {
		t.Errorf("more than the buffer of illumos: %v", err)
	}
}

// TestSpec compares with the sizes that C gives.
func TestSpec(t *testing.T) {
	for _, c := range []struct {
		d    *Dialect
		op   Op
		want Spec
	}{
		{Linux, OpCreateID, Spec{In: 24, MinIn: 24, Out: 4, MinOut: 4, AddressAt: 16}},
		{Linux, OpBindIP, Spec{In: 40, MinIn: 40, AddressAt: -1}}, // its response is unused
		{Linux, OpConnect, Spec{In: 288, MinIn: 280, AddressAt: -1}},
		{Linux, OpGetEvent, Spec{In: 8, MinIn: 8, Out: 336, MinOut: 324, AddressAt: 8}},
		{Linux, OpSetOption, Spec{In: 24, MinIn: 24, AddressAt: 8}},
		{Linux, OpQuery, Spec{In: 16, MinIn: 16, Out: 280, MinOut: 272, AddressAt: 8}},
		{Illumos, OpCreateID, Spec{In: 24, MinIn: 24, Out: 4, MinOut: 4, AddressAt: 16, Exact: true}},
		{Illumos, OpConnect, Spec{In: 280, MinIn: 280, AddressAt: -1, Exact: true}},
		{Illumos, OpGetEvent, Spec{In: 8, MinIn: 8, Out: 328, MinOut: 328, AddressAt: 8, Exact: true}},
		{Illumos, OpQueryRoute, Spec{In: 16, MinIn: 16, Out: 208, MinOut: 208, AddressAt: 8, Exact: true}},
	} {
		if got, ok := c.d.Spec(c.op); !ok || got != c.want {
			t.Errorf("%s %v: %+v, want %+v", c.d, c.op, got, c.want)
		}
	}
	if s, ok := Linux.QuerySpec(QueryPath); !ok || s.Out != 8 || s.MinOut != 8 {
		t.Errorf("QUERY PATH: %+v", s)
	}
	if _, ok := Illumos.QuerySpec(QueryPath); ok {
		t.Error("illumos has no QUERY")
	}
	if _, ok := Illumos.Spec(OpMigrateID); ok {
		t.Error("illumos has no MIGRATE_ID")
	}
}

func TestPrivateDataLimit(t *testing.T) {
	for _, c := range []struct {
		d    *Dialect
		op   Op
		t    QPType
		f    Family
		want int
	}{
		// IBA 12.6.5 (REQ) to 12.11.2 (SIDR_REP), less the header of Annex A11.
		{Linux, OpConnect, QPTypeRC, AFInet, 56},
		{Linux, OpConnect, QPTypeRC, AFInet6, 56},
		{Linux, OpConnect, QPTypeRC, AFIB, 92},
		{Linux, OpConnect, QPTypeUD, AFInet, 180},
		{Linux, OpConnect, QPTypeUD, AFIB, 216},
		{Linux, OpAccept, QPTypeRC, AFInet, 196},
		{Linux, OpAccept, QPTypeUD, AFInet, 136},
		{Linux, OpReject, QPTypeRC, AFInet, 148},
		{Linux, OpReject, QPTypeUD, AFInet, 136},
		{Linux, OpDisconnect, QPTypeRC, AFInet, 0},
		{Illumos, OpConnect, QPTypeRC, AFInet, 56},
		{Illumos, OpConnect, QPTypeUD, AFInet, 56},
		{Illumos, OpAccept, QPTypeRC, AFInet6, 196},
		{Illumos, OpReject, QPTypeRC, AFInet, 148},
	} {
		if got := c.d.PrivateDataLimit(c.op, c.t, c.f); got != c.want {
			t.Errorf("%s %v %v %v: %d, want %d", c.d, c.op, c.t, c.f, got, c.want)
		}
	}
}

func validParam(n int) ConnParam { return ConnParam{Valid: true, PrivateData: make([]byte, n)} }

// refusals are commands that are not written: because of which field, what the
// kernel would say (TestKernelRefusals asks Linux), and what the message advises.
var refusals = []struct {
	d       *Dialect
	c       Command
	field   string
	errno   Errno
	message string
}{
	{Linux, CreateID{PS: 1}, "ps", EINVAL, "IPOIB TCP UDP IB"},
	{Illumos, CreateID{PS: PortSpaceIB}, "ps", EINVAL, "SDP"},
	{Linux, BindIP{}, "addr", EINVAL, "0.0.0.0"},
	{Linux, Bind{}, "addr", EINVAL, "0.0.0.0"},
	{Linux, ResolveIP{Src: ip("0.0.0.0:0")}, "dst_addr", EINVAL, "give one"},
	{Linux, ResolveAddr{Src: ip("0.0.0.0:0")}, "dst_addr", EINVAL, "give one"},
	{Linux, JoinIPMcast{}, "addr", EINVAL, "give one"},
	{Linux, JoinMcast{}, "addr", EINVAL, "give one"},
	{Linux, BindIP{Addr: ibAddr(gid1)}, "addr", EINVAL, "use BIND"},
	{Linux, ResolveIP{Dst: ibAddr(gid1)}, "dst_addr", EINVAL, "RESOLVE_ADDR"},
	{Illumos, BindIP{Addr: ibAddr(gid1)}, "addr", EINVAL, "use an IP address"},
	{Linux, BindIP{Addr: ip("[fe80::1%eth0]:1")}, "addr", EINVAL, "ScopeID"},
	{Linux, ResolveIP{Dst: ip("0.0.0.0:0"), Timeout: -1}, "timeout_ms", EINVAL, "not over yet"},
	{Linux, ResolveAddr{Dst: ip("0.0.0.0:0"), Timeout: 25 * 24 * time.Hour}, "timeout_ms", EINVAL, "at most"},
	{Linux, ResolveRoute{}, "timeout_ms", EINVAL, "at least 1ms"},
	{Linux, Connect{Param: ConnParam{}}, "conn_param.valid", EINVAL, "set Param.Valid"},
	{Linux, Connect{Param: validParam(217)}, "conn_param.private_data_len", EINVAL, "at most 216"},
	{Illumos, Connect{Param: validParam(57)}, "conn_param.private_data_len", EINVAL, "at most 56"},
	{Linux, Connect{Param: ConnParam{Valid: true, QPNum: 1 << 24}}, "conn_param.qp_num", EINVAL, "24 bits"},
	{Illumos, Connect{Param: validParam(1), ECE: &ECE{}}, "ece", EINVAL, "leave it zero"},
	{Linux, Accept{Param: validParam(197)}, "conn_param.private_data_len", EINVAL, "at most 196"},
	{Illumos, Accept{Param: validParam(197)}, "conn_param.private_data_len", EINVAL, "at most 196"},
	{Linux, Reject{PrivateData: make([]byte, 149)}, "private_data_len", EINVAL, "at most 148"},
	{Linux, Reject{Reason: 8}, "reason", EINVAL, "28"},
	{Illumos, Reject{Reason: mad.RejectVendorOptionNotSupported}, "reason", EINVAL, "no such field"},
	{Linux, InitQPAttr{State: 7}, "qp_state", EINVAL, "at most 6"},
	{Linux, Query{Option: 4}, "option", ENOSYS, "GID"},
	{Linux, Query{Option: QueryPath, Records: 1000}, "out", EINVAL, "at most 65535"},
	{Linux, Query{Option: QueryPath, Records: -1}, "out", EINVAL, "at most 65535"},
	{Linux, JoinMcast{Addr: ip("0.0.0.0:0"), Flags: 2}, "join_flags", EINVAL, "send-only"},
	{Illumos, JoinIPMcast{Addr: ip("[ff0e::1]:0")}, "addr", EINVAL, "224.0.0.0/4"},
	{Illumos, JoinIPMcast{Addr: ip("10.0.0.1:0")}, "addr", EINVAL, "224.0.0.0/4"},
	{Linux, WriteCMEvent{Event: EventEstablished}, "event", EINVAL, "USER"},
	{Illumos, SetTOS(1, 8), "", EINVAL, "RESOLVE_ROUTE"},
	{Linux, SetOption{Level: OptionLevelID, Name: OptionTOS, Value: make([]byte, 4)}, "optlen", EINVAL, "it has 1"},
	{Linux, SetOption{Level: OptionLevelID, Name: OptionReuseAddr, Value: make([]byte, 1)}, "optlen", EINVAL, "it has 4"},
	{Linux, SetOption{Level: OptionLevelIB, Name: OptionIBPath, Value: make([]byte, 71)}, "optlen", EINVAL, "72"},
	{Linux, SetIBPath(1), "optlen", EINVAL, "72"},
	{Linux, SetIBPath(1, PathRecData{Flags: 0x2f}), "flags", EINVAL, "0x2b"},
	{Linux, SetOption{Value: []byte{1}, Len: 2}, "optlen", EINVAL, "leave Len 0"},
	{Illumos, MigrateID{}, "", EINVAL, "no such command"},
	{Illumos, Query{}, "", EINVAL, "QUERY_ROUTE"},
	{Illumos, Bind{Addr: ip("0.0.0.0:0")}, "", EINVAL, "BIND_IP"},
	{Illumos, ResolveAddr{Dst: ip("0.0.0.0:0")}, "", EINVAL, "RESOLVE_IP"},
	{Illumos, JoinMcast{Addr: ip("0.0.0.0:0")}, "", EINVAL, "JOIN_IP_MCAST"},
	{Illumos, ResolveIBService{}, "", EINVAL, "no such command"},
	{Illumos, WriteCMEvent{Event: EventUser}, "", EINVAL, "no such command"},
}

func TestRefused(t *testing.T) {
	for _, c := range refusals {
		b, err := c.d.AppendCommand([]byte{1}, c.c)
		var refused *CommandError
		if !errors.As(err, &refused) || refused.Field != c.field || !errors.Is(err, c.errno) || refused.Op != c.c.Op() || len(b) != 1 {
			t.Errorf("%s %+v: %v, want %v because of %q", c.d, c.c, err, c.errno, c.field)
			continue
		}
		for _, part := range []string{c.c.Op().String(), c.field, c.message, string(c.errno), c.d.String()} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	}
}

// What is at a limit is taken.
func TestTaken(t *testing.T) {
	any4 := ip("0.0.0.0:0")
	for _, c := range []struct {
		d *Dialect
		c Command
	}{
		{Linux, Connect{Param: ConnParam{Valid: true, PrivateData: make([]byte, 216), QPNum: 1<<24 - 1}}},
		{Illumos, Connect{Param: ConnParam{PrivateData: make([]byte, 56)}}},
		{Linux, Accept{Param: ConnParam{PrivateData: make([]byte, 196)}}},
		{Linux, Reject{Reason: mad.RejectConsumerDefined, PrivateData: make([]byte, 148)}},
		{Illumos, Reject{Reason: mad.RejectConsumerDefined}},
		{Illumos, CreateID{PS: PortSpaceTCP, QPType: QPTypeRC}}, // which needs no field
		{Linux, ResolveRoute{Timeout: 1}},
		{Illumos, ResolveRoute{}},
		{Linux, ResolveIP{Dst: any4, Timeout: (1<<31 - 1) * time.Millisecond}},
		{Linux, Query{Option: QueryPath, Records: (1<<16 - 9) / 72}},
		{Linux, SetTOS(1, 8)}, {Linux, SetReuseAddr(1, true)}, {Linux, SetAFOnly(1, false)}, {Linux, SetACKTimeout(1, 14)},
		{Linux, SetIBPath(1, PathRecData{Flags: 1}, PathRecData{Flags: PathFlags})},
		{Linux, SetOption{Level: 9, Name: 9, Value: []byte{1, 2, 3}}}, // the kernel's to judge
		{Illumos, JoinIPMcast{Addr: ip("239.255.255.255:0")}},
	} {
		if _, err := c.d.AppendCommand(nil, c.c); err != nil {
			t.Errorf("%s %+v: %v", c.d, c.c, err)
		}
	}
}

// Values that do not fit are refused even without the checks.
func TestUncheckedRefuses(t *testing.T) {
	for _, c := range []struct {
		d *Dialect
		c Command
	}{
		{Linux, Connect{Param: ConnParam{PrivateData: make([]byte, 256)}}},
		{Linux, BindIP{Addr: ibAddr(gid1)}},
		{Illumos, Query{}},
	} {
		if _, err := c.d.AppendUnchecked(nil, c.c); !errors.Is(err, EINVAL) {
			t.Errorf("%s %+v: %v", c.d, c.c, err)
		}
	}
	b, err := Linux.AppendUnchecked(nil, Reject{Reason: 8})
	if err != nil || b[HeaderSize+5] != 8 {
		t.Errorf("what the kernel checks: %v", err)
	}
}

// Addresses that the kernel refuses whatever the id (ucma.c, ucma_bind,
// ucma_resolve_addr: rdma_addr_size_kss).
func TestParseAddresses(t *testing.T) {
	bind := func(family, size, zero uint16) []byte {
		b := write(uint32(OpBind), 136, 0, 136)
		binary.NativeEndian.PutUint16(b[12:], size)
		binary.NativeEndian.PutUint16(b[14:], zero)
		binary.NativeEndian.PutUint16(b[16:], family)
		return b
	}
	resolve := func(srcFamily, srcSize, dstFamily, dstSize uint16) []byte {
		b := write(uint32(OpResolveAddr), 272, 0, 272)
		binary.NativeEndian.PutUint16(b[16:], srcSize)
		binary.NativeEndian.PutUint16(b[18:], dstSize)
		binary.NativeEndian.PutUint16(b[24:], srcFamily)
		binary.NativeEndian.PutUint16(b[152:], dstFamily)
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		ok   bool
	}{
		{"IPv4", bind(2, 16, 0), true}, {"IPv6", bind(10, 28, 0), true}, {"AF_IB", bind(27, 48, 0), true},
		{"wrong size", bind(2, 28, 0), false}, {"no size", bind(2, 0, 0), false}, {"no family", bind(0, 0, 0), false},
		{"family of illumos", bind(26, 28, 0), false}, {"reserved", bind(2, 16, 1), false},
		{"no source", resolve(0, 0, 2, 16), true}, {"source without size", resolve(2, 0, 2, 16), true},
		{"source of wrong size", resolve(2, 28, 2, 16), false}, {"no destination", resolve(2, 16, 2, 0), false},
	} {
		cmd, err := Linux.ParseCommand(c.b)
		if c.ok != (err == nil) || !c.ok && !errors.Is(err, EINVAL) {
			t.Errorf("%s: %v", c.name, err)
		}
		if r, ok := cmd.(ResolveAddr); ok && r.Src.Family() != AFUnspec {
			t.Errorf("%s: source %v", c.name, r.Src)
		}
	}
}

func TestSockaddr(t *testing.T) {
	for _, c := range []struct {
		a      Sockaddr
		family Family
		text   string
	}{
		{Sockaddr{}, AFUnspec, "unspecified"},
		{ip("192.0.2.1:7174"), AFInet, "192.0.2.1:7174"},
		{ip("[fd00::1]:7174"), AFInet6, "[fd00::1]:7174"},
		{ip("[::ffff:192.0.2.1]:1"), AFInet6, "[::ffff:192.0.2.1]:1"},
		{ip6("[fe80::1]:7", 0, 3), AFInet6, "[fe80::1%3]:7"},
		{ibAddr(gid1), AFIB, "gid fe80::2:c903:0:1201 service 0x0000000001061c06"},
	} {
		if c.a.Family() != c.family || c.a.String() != c.text {
			t.Errorf("%v, %q; want %v, %q", c.a.Family(), c.a, c.family, c.text)
		}
	}
	if !ibAddr(gid1).Equal(ibAddr(gid1)) || ibAddr(gid1).Equal(ibAddr(gid2)) || ibAddr(gid1).Equal(Sockaddr{}) ||
		!ip("1.2.3.4:5").Equal(Sockaddr{IP: netip.MustParseAddrPort("1.2.3.4:5")}) || ip6("[fe80::1]:1", 0, 1).Equal(ip6("[fe80::1]:1", 0, 2)) {
		t.Error("Equal")
	}
}

// Responses may be as short as an older kernel stores them, and no shorter.
func TestShortResponses(t *testing.T) {
	for _, c := range []struct {
		d     *Dialect
		r     Response
		least int
	}{
		{Linux, &CreateIDResp{}, 4}, {Linux, &QueryRouteResp{}, 200}, {Linux, &QueryAddrResp{}, 272}, {Linux, &EventResp{}, 324},
		{Linux, &QPAttr{}, 144}, {Linux, &QueryPathResp{}, 8}, {Linux, &QueryIBServiceResp{}, 8}, {Linux, &DestroyIDResp{}, 4},
		{Illumos, &QueryRouteResp{}, 208}, {Illumos, &EventResp{}, 328},
	} {
		b := make([]byte, c.least)
		if err := c.d.ParseResponse(b, c.r); err != nil {
			t.Errorf("%s %T of %d bytes: %v", c.d, c.r, c.least, err)
		}
		var bad *ResponseError
		for n := range c.least {
			if err := c.d.ParseResponse(b[:n], c.r); !errors.As(err, &bad) {
				t.Fatalf("%s %T of %d bytes: %v", c.d, c.r, n, err)
			}
		}
		if !strings.Contains(bad.Error(), c.d.String()) || !strings.Contains(bad.Error(), fmt.Sprintf("at least %d", c.least)) {
			t.Errorf("error %q", bad)
		}
	}
	if err := Illumos.ParseResponse(make([]byte, 400), &QueryAddrResp{}); err == nil {
		t.Error("illumos has no QUERY")
	}
	// A kernel before ECE stores 324 bytes; what the reader had there before goes.
	r := EventResp{ECE: goldenECE}
	if err := Linux.ParseResponse(make([]byte, 324), &r); err != nil || r.ECE != (ECE{}) {
		t.Errorf("%v, ECE %v", err, r.ECE)
	}
}

// QUERY tells of more records than it has room for.
func TestRecords(t *testing.T) {
	path := goldenPath
	rec := PathRecData{Flags: PathFlags, Path: path}
	b, err := Linux.AppendResponse(nil, &QueryPathResp{NumPaths: 2, Paths: []PathRecData{rec, rec}})
	if err != nil || len(b) != 8+2*72 {
		t.Fatalf("%v, %d bytes", err, len(b))
	}
	for n, want := range map[int]int{8: 0, 79: 0, 80: 1, 151: 1, 152: 2} {
		var r QueryPathResp
		if err := Linux.ParseResponse(b[:n], &r); err != nil || r.NumPaths != 2 || len(r.Paths) != want {
			t.Errorf("%d bytes: %v, %d of %d paths; want %d", n, err, len(r.Paths), r.NumPaths, want)
		}
	}
	binary.NativeEndian.PutUint32(b, 1<<32-1)
	var r QueryPathResp
	if err := Linux.ParseResponse(b, &r); err != nil || len(r.Paths) != 2 {
		t.Errorf("%v, %d paths", err, len(r.Paths))
	}
}

// A path goes through QUERY_ROUTE without the two fields that it does not have.
func TestUserPathRec(t *testing.T) {
	p := goldenPath
	r := MakeUserPathRec(&p)
	want := goldenPath
	want.ServiceID, want.QoSClass = 0, 0
	if got := r.PathRecord(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (&UserPathRec{}).PathRecord(); got != (mad.PathRecord{}) {
		t.Errorf("no path is %+v", got)
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		OpResolveIBService.String():                   "RESOLVE_IB_SERVICE",
		Op(13).String():                               "command 13",
		EventTimewaitExit.String():                    "TIMEWAIT_EXIT",
		EventType(20).String():                        "event 20",
		PortSpaceTCP.String():                         "TCP",
		QPTypeUD.String():                             "UD",
		QPStateRTS.String():                           "RTS",
		QueryGID.String():                             "GID",
		AFInet6.String():                              "AF_INET6",
		(QPAttrState | QPAttrPKeyIndex).String():      "STATE|PKEY_INDEX",
		(QPAttrDestQPN | QPAttrMask(1<<25)).String():  "DEST_QPN|0x2000000",
		QPAttrMask(0).String():                        "0x0",
		Linux.String() + Illumos.String():             "linuxillumos",
		fmt.Sprint(&ResponseError{Linux, "s", "bad"}): "linux response s: bad",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func FuzzParseCommand(f *testing.F) {
	for i, d := range dialects {
		for name, b := range goldenFile(f, d) {
			if name != "offsets" {
				f.Add(b, i == 1)
			}
		}
	}
	for _, c := range badWrites {
		f.Add(c.b, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, illumos bool) {
		d := Linux
		if illumos {
			d = Illumos
		}
		d.DumpCommand(b, b)
		c, err := d.ParseCommand(b)
		if err != nil {
			var refused *CommandError
			if !errors.As(err, &refused) || d.Number(refused.Err.(Errno)) == 0 {
				t.Fatalf("error without errno: %v", err)
			}
			return
		}
		once, err := d.AppendUnchecked(nil, c)
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", c, err)
		}
		again, err := d.ParseCommand(once)
		if err != nil {
			t.Fatalf("%+v was written and cannot be read: %v", c, err)
		}
		twice, err := d.AppendUnchecked(nil, again)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%v\n%x\n%x", err, once, twice)
		}
		if checked, err := d.AppendCommand(nil, c); err == nil && string(checked) != string(once) {
			t.Fatalf("checked\n%x\nunchecked\n%x", checked, once)
		}
		if text, err := d.DumpCommand(once, nil); err != nil || text == "" {
			t.Fatalf("no dump: %v", err)
		}
	})
}

func FuzzParseResponse(f *testing.F) {
	kinds := []Response{
		&CreateIDResp{}, &DestroyIDResp{}, &QueryRouteResp{}, &QueryAddrResp{}, &QueryPathResp{}, &QueryIBServiceResp{}, &EventResp{}, &QPAttr{},
	}
	for i, d := range dialects {
		golden := goldenFile(f, d)
		for name, r := range goldenResponses(d) {
			for k, kind := range kinds {
				if kind.structure() == r.structure() {
					f.Add(golden[name+" response"], uint8(k), i == 1)
				}
			}
		}
	}
	f.Add(make([]byte, 64), uint8(200), true)
	f.Fuzz(func(t *testing.T, b []byte, kind uint8, illumos bool) {
		d := Linux
		if illumos {
			d = Illumos
		}
		of := kinds[int(kind)%len(kinds)]
		r := newOf(of)
		if err := d.ParseResponse(b, r); err != nil {
			var bad *ResponseError
			if !errors.As(err, &bad) {
				t.Fatalf("error %v", err)
			}
			return
		}
		once, err := d.AppendResponse(nil, r)
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", r, err)
		}
		again := newOf(of)
		if err := d.ParseResponse(once, again); err != nil {
			t.Fatalf("%+v was written and cannot be read: %v", r, err)
		}
		if twice, err := d.AppendResponse(nil, again); err != nil || string(once) != string(twice) {
			t.Fatalf("%v\n%x\n%x", err, once, twice)
		}
		if e, ok := r.(*EventResp); ok { // whichever it is
			e.Conn()
			e.UD()
		}
	})
}
