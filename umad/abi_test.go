package umad

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// The structures as a C compiler lays them out (include/uapi/rdma/ib_user_mad.h).
type (
	cHeader struct {
		id, status, timeoutMS, retries, length uint32
		qpn, qkey                              uint32
		lid                                    uint16
		sl, pathBits, grhPresent, gidIndex     uint8
		hopLimit, trafficClass                 uint8
		gid                                    [16]uint8
		flowLabel                              uint32
		pkeyIndex                              uint16
		_                                      [6]uint8
	}
	cRegReq struct {
		id                           uint32
		methodMask                   [4]uint32
		qpn, mgmtClass, classVersion uint8
		oui                          [3]uint8
		rmppVersion                  uint8
	}
	cRegReq2 struct {
		id, qpn                 uint32
		mgmtClass, classVersion uint8
		_                       uint16
		flags                   uint32
		methodMask              [2]uint64
		oui                     uint32
		rmppVersion             uint8
		_                       [3]uint8
	}
)

func TestLayout(t *testing.T) {
	var h cHeader
	var r cRegReq
	var r2 cRegReq2
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"header", headerSize, unsafe.Sizeof(h)},
		{"old header", oldHeaderSize, unsafe.Offsetof(h.pkeyIndex)},
		{"id", hdrID, unsafe.Offsetof(h.id)},
		{"status", hdrStatus, unsafe.Offsetof(h.status)},
		{"timeout_ms", hdrTimeout, unsafe.Offsetof(h.timeoutMS)},
		{"retries", hdrRetries, unsafe.Offsetof(h.retries)},
		{"length", hdrLength, unsafe.Offsetof(h.length)},
		{"qpn", hdrQPN, unsafe.Offsetof(h.qpn)},
		{"qkey", hdrQKey, unsafe.Offsetof(h.qkey)},
		{"lid", hdrLID, unsafe.Offsetof(h.lid)},
		{"sl", hdrSL, unsafe.Offsetof(h.sl)},
		{"path_bits", hdrPathBits, unsafe.Offsetof(h.pathBits)},
		{"grh_present", hdrGRHPresent, unsafe.Offsetof(h.grhPresent)},
		{"gid_index", hdrGIDIndex, unsafe.Offsetof(h.gidIndex)},
		{"hop_limit", hdrHopLimit, unsafe.Offsetof(h.hopLimit)},
		{"traffic_class", hdrTrafficClass, unsafe.Offsetof(h.trafficClass)},
		{"gid", hdrGID, unsafe.Offsetof(h.gid)},
		{"flow_label", hdrFlowLabel, unsafe.Offsetof(h.flowLabel)},
		{"pkey_index", hdrPKeyIndex, unsafe.Offsetof(h.pkeyIndex)},

		{"reg_req", regSize, unsafe.Sizeof(r)},
		{"reg_req.id", regID, unsafe.Offsetof(r.id)},
		{"reg_req.method_mask", regMethods, unsafe.Offsetof(r.methodMask)},
		{"reg_req.qpn", regQPN, unsafe.Offsetof(r.qpn)},
		{"reg_req.mgmt_class", regClass, unsafe.Offsetof(r.mgmtClass)},
		{"reg_req.mgmt_class_version", regVersion, unsafe.Offsetof(r.classVersion)},
		{"reg_req.oui", regOUI, unsafe.Offsetof(r.oui)},
		{"reg_req.rmpp_version", regRMPP, unsafe.Offsetof(r.rmppVersion)},

		{"reg_req2", reg2Size, unsafe.Sizeof(r2)},
		{"reg_req2.id", reg2ID, unsafe.Offsetof(r2.id)},
		{"reg_req2.qpn", reg2QPN, unsafe.Offsetof(r2.qpn)},
		{"reg_req2.mgmt_class", reg2Class, unsafe.Offsetof(r2.mgmtClass)},
		{"reg_req2.mgmt_class_version", reg2Version, unsafe.Offsetof(r2.classVersion)},
		{"reg_req2.flags", reg2Flags, unsafe.Offsetof(r2.flags)},
		{"reg_req2.method_mask", reg2Methods, unsafe.Offsetof(r2.methodMask)},
		{"reg_req2.oui", reg2OUI, unsafe.Offsetof(r2.oui)},
		{"reg_req2.rmpp_version", reg2RMPP, unsafe.Offsetof(r2.rmppVersion)},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, the kernel has %d", c.name, c.got, c.want)
		}
	}
	for name, c := range map[string][2]uintptr{ // and by the numbers of the uapi header
		"header": {unsafe.Sizeof(h), 64}, "reg_req": {unsafe.Sizeof(r), 28}, "reg_req2": {unsafe.Sizeof(r2), 40},
	} {
		if c[0] != c[1] {
			t.Errorf("%s has %d bytes in this test, %d in C", name, c[0], c[1])
		}
	}
}

// The numbers that a C compiler makes of _IOWR, _IOW and _IO with each
// architecture's ioctl.h.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		os, arch                                    string
		register, unregister, enablePKey, register2 uint32
	}{
		{"linux", "amd64", 0xc01c1b01, 0x40041b02, 0x00001b03, 0xc0281b04},
		{"linux", "arm64", 0xc01c1b01, 0x40041b02, 0x00001b03, 0xc0281b04},
		{"linux", "386", 0xc01c1b01, 0x40041b02, 0x00001b03, 0xc0281b04},
		{"linux", "arm", 0xc01c1b01, 0x40041b02, 0x00001b03, 0xc0281b04},
		{"linux", "riscv64", 0xc01c1b01, 0x40041b02, 0x00001b03, 0xc0281b04},
		{"linux", "loong64", 0xc01c1b01, 0x40041b02, 0x00001b03, 0xc0281b04},
		{"linux", "s390x", 0xc01c1b01, 0x40041b02, 0x00001b03, 0xc0281b04},
		{"linux", "ppc64le", 0xc01c1b01, 0x80041b02, 0x20001b03, 0xc0281b04},
		{"linux", "ppc64", 0xc01c1b01, 0x80041b02, 0x20001b03, 0xc0281b04},
		{"linux", "mips64le", 0xc01c1b01, 0x80041b02, 0x20001b03, 0xc0281b04},
		{"linux", "mips", 0xc01c1b01, 0x80041b02, 0x20001b03, 0xc0281b04},
		{"illumos", "amd64", 0xc01c1b01, 0x80041b02, 0x20001b03, 0},
	} {
		a, ok := abiOf(c.os, c.arch)
		if !ok || a.register != c.register || a.unregister != c.unregister || a.enablePKey != c.enablePKey || a.register2 != c.register2 {
			t.Errorf("%s/%s: %#x %#x %#x %#x, want %#x %#x %#x %#x", c.os, c.arch,
				a.register, a.unregister, a.enablePKey, a.register2, c.register, c.unregister, c.enablePKey, c.register2)
		}
	}
	for _, os := range []string{"darwin", "windows", "solaris"} {
		if _, ok := abiOf(os, "amd64"); ok {
			t.Errorf("%s has no umad", os)
		}
	}
}

// The running machine has the byte order and the long that its table says.
func TestNative(t *testing.T) {
	if !hasNative {
		t.Skip("no umad on this system")
	}
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], 0x01020304)
	if native.order.Uint32(b[:]) != 0x01020304 {
		t.Errorf("byte order %v is not this machine's", native.order)
	}
	if bits := int(8 * unsafe.Sizeof(uintptr(0))); !native.illumos && native.longBits != bits {
		t.Errorf("a long of %d bits, want %d", native.longBits, bits)
	}
}

// bytesOf reads hexadecimal digits with blanks between.
func bytesOf(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A method mask is bit m%bits of word m/bits, in words of a long for the first
// registration and of 64 bits for the second (user_mad.c, ib_umad_reg_agent and
// its compat twin).
func TestRegistrationRequests(t *testing.T) {
	reg := port.Registration{
		QPN: 1, Class: 0x32, Version: 3, OUI: 0xaabbcc, RMPP: port.RMPPKernel,
		Methods: port.Methods(0x01, 0x12, 0x23, 0x7f), // bits 1, 18, 35, 127
	}
	for _, c := range []struct{ arch, first, second string }{
		{"amd64",
			"00000000  0200040008000000 0000000000000080  01 32 03 aabbcc 01 00",
			"00000000 01000000 32 03 0000 01000000  0200040008000000 0000000000000080  ccbbaa00 01 000000"},
		{"386",
			"00000000  02000400 08000000 00000000 00000080  01 32 03 aabbcc 01 00",
			"00000000 01000000 32 03 0000 01000000  0200040008000000 0000000000000080  ccbbaa00 01 000000"},
		{"s390x",
			"00000000  0000000800040002 8000000000000000  01 32 03 aabbcc 01 00",
			"00000000 00000001 32 03 0000 00000001  0000000800040002 8000000000000000  00aabbcc 01 000000"},
		{"mips",
			"00000000  00040002 00000008 00000000 80000000  01 32 03 aabbcc 01 00",
			"00000000 00000001 32 03 0000 00000001  0000000800040002 8000000000000000  00aabbcc 01 000000"},
	} {
		a, _ := abiOf("linux", c.arch)
		if got, want := a.regRequest(reg), bytesOf(t, c.first); !bytes.Equal(got, want) {
			t.Errorf("%s: first registration\n%x, want\n%x", c.arch, got, want)
		}
		if got, want := a.reg2Request(reg, flagUserRMPP), bytesOf(t, c.second); !bytes.Equal(got, want) {
			t.Errorf("%s: second registration\n%x, want\n%x", c.arch, got, want)
		}
	}
	a, _ := abiOf("linux", "amd64")
	reg.RMPP = port.RMPPNone
	if a.regRequest(reg)[regRMPP] != 0 || a.reg2Request(reg, 0)[reg2RMPP] != 0 {
		t.Error("RMPP version without RMPP")
	}
}

var messageWithGRH = port.Message{
	Agent: 17, Timeout: 258*time.Millisecond + 1, Retries: 5,
	Addr: mad.AddressVector{
		LID: 0x1234, QPN: 1, SL: 3, PathBits: 4, PKeyIndex: 0x0102, HasGRH: true,
		GRH: mad.GRH{
			GID:      mad.GID{0xfe, 0x80, 15: 9},
			GIDIndex: 6, HopLimit: 7, TrafficClass: 8, FlowLabel: 0xabcde,
		},
	},
}

func TestHeader(t *testing.T) {
	const wire = "00000001 80010000 1234 03 04 01 06 07 08 fe80000000000000 0000000000000009 000abcde"
	for _, c := range []struct{ arch, header string }{
		{"amd64", "11000000 00000000 03010000 05000000 00000000" + wire + "0201 000000000000"},
		{"s390x", "00000011 00000000 00000103 00000005 00000000" + wire + "0102 000000000000"},
	} {
		a, _ := abiOf("linux", c.arch)
		want := bytesOf(t, c.header)
		for _, size := range []int{headerSize, oldHeaderSize} {
			h := bytes.Repeat([]byte{0xee}, size)
			a.putHeader(h, &messageWithGRH)
			if !bytes.Equal(h, want[:size]) {
				t.Errorf("%s: header\n%x, want\n%x", c.arch, h, want[:size])
			}
			got := port.Message{TimedOut: true, Data: []byte{1}}
			a.getHeader(h, &got)
			back := messageWithGRH
			back.Timeout = 259 * time.Millisecond // rounded up
			if size == oldHeaderSize {
				back.Addr.PKeyIndex = 0
			}
			if got.Agent != back.Agent || got.TimedOut || got.Timeout != back.Timeout || got.Retries != back.Retries || got.Addr != back.Addr {
				t.Errorf("%s: read back %+v, want %+v", c.arch, got, back)
			}
		}
	}
}

func TestHeaderWithoutGRH(t *testing.T) {
	a, _ := abiOf("linux", "amd64")
	m := port.Message{Addr: mad.AddressVector{LID: 5, GRH: messageWithGRH.Addr.GRH}}
	h := make([]byte, headerSize)
	a.putHeader(h, &m)
	want := make([]byte, headerSize) // QP0 has no Q_Key
	want[hdrLID+1] = 5
	if !bytes.Equal(h, want) {
		t.Errorf("header %x, want %x", h, want)
	}
	copy(h[hdrGID:], "left from before")
	a.order.PutUint32(h[hdrStatus:], 110)
	a.getHeader(h, &m)
	if !m.TimedOut || m.Addr.HasGRH || m.Addr.GRH != (mad.GRH{}) {
		t.Errorf("read %+v, want a time-out without GRH", m)
	}
}

func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]uint32{
		0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000,
		1<<63 - 1: 1<<31 - 1,
	} {
		if got := milliseconds(d); got != want {
			t.Errorf("%v is %d ms, want %d", d, got, want)
		}
	}
}

func FuzzGetHeader(f *testing.F) {
	f.Add(make([]byte, headerSize), false)
	f.Add(bytes.Repeat([]byte{0xff}, headerSize), true)
	f.Fuzz(func(t *testing.T, b []byte, big bool) {
		if len(b) != headerSize && len(b) != oldHeaderSize {
			return
		}
		a, _ := abiOf("linux", map[bool]string{true: "s390x", false: "amd64"}[big])
		var m, again port.Message
		a.getHeader(b, &m)
		if m.Retries > 1<<31-1 || m.Timeout > (1<<31-1)*time.Millisecond {
			return // more than is ever sent
		}
		h := make([]byte, len(b))
		a.putHeader(h, &m)
		a.getHeader(h, &again)
		again.TimedOut = m.TimedOut
		if m.Agent != again.Agent || m.Timeout != again.Timeout || m.Retries != again.Retries || m.Addr != again.Addr {
			t.Errorf("%+v, read back as %+v", m, again)
		}
	})
}
