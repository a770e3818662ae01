package umad

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

var anyAgent = port.Registration{QPN: mad.QPGSI}

func register(t testing.TB, p *openPort, r port.Registration) port.AgentID {
	t.Helper()
	id, err := p.Register(r)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// vendorMAD is a MAD of a class with RMPP.
func vendorMAD(n int, method mad.Method, tid uint32) []byte {
	b := make([]byte, n)
	if n >= mad.HeaderSize {
		b[0], b[mad.OffClass], b[mad.OffMethod] = 1, 0x32, uint8(method)
		binary.BigEndian.PutUint32(b[mad.OffTID+4:], tid)
	}
	for i := mad.HeaderSize; i < n; i++ {
		b[i] = byte(i * 7)
	}
	return b
}

// Which layout of the header an open file has (user_mad.c, ib_umad_enable_pkey,
// ib_umad_reg_agent).
func TestChooseHeader(t *testing.T) {
	linux, _ := abiOf("linux", "amd64")
	for _, c := range []struct {
		name   string
		cfg    Config
		refuse error // of IB_USER_MAD_ENABLE_PKEY
		header int
		ioctls []uint32
	}{
		{"new kernel", Config{}, nil, 64, []uint32{linux.enablePKey, linux.register2}},
		{"old kernel", Config{}, syscall.ENOTTY, 56, []uint32{linux.enablePKey, linux.register2}},
		{"old header", Config{OldHeader: true}, nil, 56, []uint32{linux.register, linux.unregister, linux.register2}},
		{"old registration", Config{OldRegister: true}, nil, 64, []uint32{linux.enablePKey, linux.register}},
		{"both old", Config{OldRegister: true, OldHeader: true}, nil, 56, []uint32{linux.register, linux.unregister, linux.register}},
	} {
		k := &fakeKernel{header: c.header}
		k.registers()
		next := k.ioctl
		k.ioctl = func(request uint32, arg []byte) error {
			if request == linux.enablePKey {
				return c.refuse
			}
			return next(request, arg)
		}
		_, p := openFake(t, "mlx5", c.cfg, k)
		if id := register(t, p, anyAgent); id != 0 {
			t.Errorf("%s: agent %d, want 0", c.name, id)
		}
		if !slices.Equal(k.ioctls, c.ioctls) {
			t.Errorf("%s: ioctls %#x, want %#x", c.name, k.ioctls, c.ioctls)
		}
		m := port.Message{Addr: mad.AddressVector{LID: 5, QPN: 1}, Data: vendorMAD(256, 1, 1)}
		if err := p.Send(&m); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := len(k.wrote[0]); got != c.header+256 || !bytes.Equal(k.wrote[0][c.header:], m.Data) {
			t.Errorf("%s: %d bytes were written, want %d and the MAD at the end", c.name, got, c.header+256)
		}
		m.Addr.PKeyIndex = 2
		if err := p.Send(&m); errors.Is(err, port.ErrInvalid) != (c.header == 56) {
			t.Errorf("%s: P_Key index 2: %v", c.name, err)
		}
		k.push(port.Message{Addr: mad.AddressVector{LID: 7, QPN: 1, PKeyIndex: 2}, Data: vendorMAD(256, 0x81, 2)}, false)
		var got port.Message
		if err := p.Recv(&got); err != nil || got.Addr.LID != 7 || int(got.Addr.PKeyIndex) != map[int]int{64: 2}[c.header] || !bytes.Equal(got.Data, vendorMAD(256, 0x81, 2)) {
			t.Errorf("%s: received %+v, %v", c.name, got, err)
		}
	}
}

// The ladder of registrations, as libibumad climbs it (umad.c, umad_register2).
func TestRegisterLadder(t *testing.T) {
	linux, _ := abiOf("linux", "amd64")
	owner := port.Registration{QPN: 1, Class: mad.ClassSubnAdm, Version: 2, Methods: port.Methods(mad.MethodGet)}
	user := owner
	user.RMPP = port.RMPPUser
	var flags *FlagsError
	for _, c := range []struct {
		name          string
		cfg           Config
		reg           port.Registration
		first, second error // what the two registrations say
		known         uint32
		want          error
		ioctls        []uint32
	}{
		{"newer", Config{}, owner, nil, nil, 1, nil, []uint32{linux.register2}},
		{"user RMPP", Config{}, user, nil, nil, 1, nil, []uint32{linux.register2}},
		{"unknown ioctl", Config{}, owner, nil, syscall.ENOTTY, 0, nil, []uint32{linux.register2, linux.register}},
		{"invalid, then taken", Config{}, owner, nil, syscall.EINVAL, 1, nil, []uint32{linux.register2, linux.register}},
		{"invalid twice", Config{}, owner, syscall.EINVAL, syscall.EINVAL, 1, port.ErrMethodOwned, []uint32{linux.register2, linux.register}},
		{"no room", Config{}, owner, nil, syscall.ENOMEM, 1, syscall.ENOMEM, []uint32{linux.register2}},
		{"user RMPP, unknown ioctl", Config{}, user, nil, syscall.ENOTTY, 0, errors.ErrUnsupported, []uint32{linux.register2}},
		{"user RMPP, invalid", Config{}, user, nil, syscall.EINVAL, 1, port.ErrMethodOwned, []uint32{linux.register2}},
		{"user RMPP, unknown flag", Config{}, user, nil, syscall.EINVAL, 0, port.ErrInvalid, []uint32{linux.register2}},
		{"user RMPP, older", Config{OldRegister: true}, user, nil, nil, 1, errors.ErrUnsupported, nil},
		{"older", Config{OldRegister: true}, owner, nil, nil, 1, nil, []uint32{linux.register}},
		{"OUI of 25 bits", Config{}, port.Registration{QPN: 1, Class: 0x32, Version: 1, OUI: 1 << 24}, nil, nil, 1, port.ErrInvalid, nil},
	} {
		k := &fakeKernel{}
		_, p := openFake(t, "mlx5", c.cfg, k)
		k.ioctls = nil
		k.ioctl = func(request uint32, arg []byte) error {
			k.abi.order.PutUint32(arg, 3)
			if request == linux.register {
				return c.first
			}
			k.abi.order.PutUint32(arg[reg2Flags:], c.known)
			return c.second
		}
		id, err := p.Register(c.reg)
		if !errors.Is(err, c.want) || c.want == nil && id != 3 {
			t.Errorf("%s: agent %d, error %v, want 3 or %v", c.name, id, err, c.want)
		}
		if errors.As(err, &flags) != (c.name == "user RMPP, unknown flag") {
			t.Errorf("%s: error %v, FlagsError %v", c.name, err, flags)
		}
		if !slices.Equal(k.ioctls, c.ioctls) {
			t.Errorf("%s: ioctls %#x, want %#x", c.name, k.ioctls, c.ioctls)
		}
		if errors.Is(c.second, syscall.ENOTTY) {
			// It is not tried again.
			k.ioctls = nil
			p.Register(owner)
			if !slices.Equal(k.ioctls, []uint32{linux.register}) {
				t.Errorf("%s: then ioctls %#x", c.name, k.ioctls)
			}
		}
	}
	if flags == nil || flags.Asked != 1 || flags.Known != 0 || flags.Error() != "unknown flags 0x1" {
		t.Errorf("flags %v, want asked 1, known 0", flags)
	}
}

// What the kernel's errnos mean for a registration, and that the text says what to do.
func TestRegisterErrors(t *testing.T) {
	get := port.Methods(mad.MethodGet)
	for _, c := range []struct {
		machine string
		reg     port.Registration
		errno   error
		want    error
		text    string
	}{
		{"mlx5", port.Registration{QPN: 2, Class: 3, Version: 2}, syscall.EINVAL, port.ErrInvalid, "QP 2 is not a management queue pair"},
		{"mlx5", port.Registration{QPN: 1, Class: 9, Version: 0x83}, syscall.EINVAL, port.ErrInvalid, "class version 0x83"},
		{"mlx5", port.Registration{QPN: 1, Class: 0x50, Version: 1}, syscall.EINVAL, port.ErrInvalid, "class 0x50 is not below 0x50"},
		{"mlx5", port.Registration{QPN: 1, Class: 0x30, Version: 1}, syscall.EINVAL, port.ErrInvalid, "vendor class 0x30 without an OUI"},
		{"mlx5", port.Registration{QPN: 1, Class: 4, Version: 1, RMPP: port.RMPPKernel}, syscall.EINVAL, port.ErrInvalid, "class 0x04 has no RMPP"},
		{"mlx5", port.Registration{QPN: 0, Class: 4, Version: 1}, syscall.EINVAL, port.ErrInvalid, "class 0x04 is not used on QP0"},
		{"mlx5", port.Registration{QPN: 1, Class: 0x81, Version: 1}, syscall.EINVAL, port.ErrInvalid, "class 0x81 is only used on QP0"},
		{"mlx5", port.Registration{QPN: 1, RMPP: port.RMPPUser}, syscall.EINVAL, port.ErrInvalid, "user RMPP on a send-only agent"},
		{"mlx5", port.Registration{QPN: 1, Class: 3, Version: 2}, syscall.EINVAL, port.ErrInvalid, "no rule of ours says why"},
		{"mlx5", port.Registration{QPN: 1, Class: 3, Version: 2, Methods: get}, syscall.EINVAL, port.ErrMethodOwned,
			"class 0x03 method Get is already owned on this port; likely owners: opensm"},
		{"mlx5", port.Registration{QPN: 1, Class: 7, Version: 2, Methods: port.Methods(mad.MethodGet, mad.MethodSet)}, syscall.EINVAL, port.ErrMethodOwned,
			"one of the methods Get, Set is already owned on this port; likely owners: the kernel's communication manager"},
		{"mlx5", port.Registration{QPN: 0, Class: 0x01, Version: 1, Methods: get}, syscall.EINVAL, port.ErrMethodOwned, "another subnet manager"},
		{"mlx5", port.Registration{QPN: 1, Class: 0x04, Version: 1, Methods: get}, syscall.EINVAL, port.ErrMethodOwned, "opensm's performance manager"},
		{"mlx5", port.Registration{QPN: 1, Class: 0x06, Version: 1, Methods: get}, syscall.EINVAL, port.ErrMethodOwned, "ib_srpt"},
		{"mlx5", port.Registration{QPN: 1, Class: 0x0a, Version: 1, Methods: get}, syscall.EINVAL, port.ErrMethodOwned, "a vendor's agent"},
		{"mlx5", port.Registration{QPN: 1, Class: 0x11, Version: 1, Methods: get}, syscall.EINVAL, port.ErrMethodOwned, "see fuser"},
		{"mlx5", port.Registration{QPN: 1, Class: 0x32, Version: 1, OUI: 0x1405, Methods: get}, syscall.EINVAL, port.ErrMethodOwned, "OUI 001405"},
		{"mlx5", port.Registration{QPN: 1, Class: 0x32, Version: 1, OUI: 0x1405, Methods: get}, syscall.ENOMEM, port.ErrNoSlot, "all 8 OUI slots of class 0x32"},
		{"rxe", port.Registration{QPN: 0, Class: 0x81, Version: 1}, syscall.EPROTONOSUPPORT, port.ErrNoQP, "QP0 does not exist on an Ethernet port"},
		{"mlx5", port.Registration{QPN: 0, Class: 0x81, Version: 1}, syscall.EPROTONOSUPPORT, port.ErrNoQP, "the port has no QP0"},
		{"mlx5", port.Registration{QPN: 1, Class: 3, Version: 2}, syscall.EPROTONOSUPPORT, port.ErrNoQP, "the port has no QP1"},
		{"mlx5", anyAgent, syscall.EACCES, fs.ErrPermission, "security module"},
		{"mlx5", anyAgent, syscall.ENOMEM, syscall.ENOMEM, "cannot allocate memory"},
		{"mlx5", port.Registration{QPN: 1, RMPP: 3}, nil, port.ErrInvalid, "unknown RMPP mode 3"},
		{"mlx5", anyAgent, syscall.EFAULT, syscall.EFAULT, "bad address"},
		{"mlx5", anyAgent, syscall.EPIPE, port.ErrGone, "removed"},
	} {
		k := &fakeKernel{}
		_, p := openFake(t, c.machine, Config{}, k)
		k.ioctl = func(uint32, []byte) error { return c.errno }
		_, err := p.Register(c.reg)
		checkError(t, err, "register", c.want, c.errno, c.text)
	}

	k := &fakeKernel{}
	k.registers()
	_, p := openFake(t, "mlx5", Config{}, k)
	for range port.MaxAgents {
		register(t, p, anyAgent)
	}
	_, err := p.Register(anyAgent)
	checkError(t, err, "register", port.ErrNoSlot, syscall.ENOMEM, "all 32 agent slots of this open file are in use: unregister one")
}

// checkError checks that an error has its kind and its errno, says where it
// happened and helps.
func checkError(t *testing.T, err error, op string, want, errno error, text string) {
	t.Helper()
	var e *port.Error
	if !errors.As(err, &e) || e.Op != op || !strings.Contains(e.Port, "/1") || !errors.Is(err, want) || errno != nil && !errors.Is(err, errno) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: error %v, want %v by errno %v with %q", op, err, want, errno, text)
	}
}

// What the kernel's errnos mean for a message.
func TestSendErrors(t *testing.T) {
	lid, toGID := mad.AddressVector{LID: 5, QPN: 1}, mad.AddressVector{QPN: 1, HasGRH: true, GRH: mad.GRH{GIDIndex: 1}}
	route := func(ptr, count, first byte) []byte {
		b := vendorMAD(256, 1, 9)
		b[mad.OffClass], b[6], b[7], b[mad.OffSMPPaths+1] = 0x81, ptr, count, first
		return b
	}
	perf, sa := vendorMAD(256, 1, 9), vendorMAD(55, 1, 9)
	perf[mad.OffClass], sa[mad.OffClass] = 0x04, 0x03
	long := vendorMAD(257, 1, 9)
	long[mad.OffRMPP+2] = 0
	const none, kernelRMPP, userRMPP, free = 0, 1, 2, 3 // slots
	for _, c := range []struct {
		name    string
		machine string
		agent   port.AgentID
		to      mad.AddressVector
		data    []byte
		errno   error
		want    error
		text    string
	}{
		{"empty", "mlx5", none, lid, nil, syscall.EINVAL, port.ErrInvalid, "a MAD of 0 bytes: no kernel takes fewer than 36"},
		{"short", "mlx5", none, lid, vendorMAD(35, 1, 9), syscall.EINVAL, port.ErrInvalid, "a MAD of 35 bytes"},
		{"class header", "mlx5", none, lid, sa, syscall.EINVAL, port.ErrInvalid, "a MAD of class 0x03 with 55 bytes: its header has 56"},
		{"slot 32", "mlx5", 32, lid, vendorMAD(256, 1, 9), syscall.EINVAL, port.ErrInvalid, "agent 32: slots are 0 to 31"},
		{"free slot", "mlx5", free, lid, vendorMAD(256, 1, 9), syscall.EIO, port.ErrNoAgent, "no agent is registered in slot 3"},
		{"free slot, old kernel", "mlx5", free, lid, vendorMAD(256, 1, 9), syscall.EINVAL, port.ErrNoAgent, "slot 3"},
		{"removed", "mlx5", none, lid, vendorMAD(256, 1, 9), syscall.EIO, port.ErrGone, "removed"},
		{"Ethernet without GRH", "rxe", none, lid, vendorMAD(256, 1, 9), syscall.EINVAL, port.ErrInvalid, "no GRH"},
		{"GID index", "mlx5", none, toGID, vendorMAD(256, 1, 9), syscall.EINVAL, port.ErrInvalid, "no GID at index 1"},
		{"GID index", "mlx5", none, toGID, vendorMAD(256, 1, 9), syscall.ENODATA, port.ErrInvalid, "no GID at index 1"},
		{"LID 0", "mlx5", none, mad.AddressVector{QPN: 1}, vendorMAD(256, 1, 9), syscall.EINVAL, port.ErrInvalid, "LID 0"},
		{"no such host", "rxe", none, toGID, vendorMAD(256, 1, 9), syscall.ETIMEDOUT, syscall.ETIMEDOUT, "nobody has the address"},
		{"P_Key", "mlx5", none, lid, vendorMAD(256, 1, 9), syscall.EACCES, fs.ErrPermission, "P_Key at index 0"},
		{"long", "mlx5", none, lid, vendorMAD(257, 1, 9), syscall.EINVAL, port.ErrInvalid, "a message of 257 bytes"},
		{"long, inactive", "mlx5", kernelRMPP, lid, long, syscall.EINVAL, port.ErrInvalid, "a message of 257 bytes"},
		{"long, user RMPP", "mlx5", userRMPP, lid, vendorMAD(257, 1, 9), syscall.EINVAL, port.ErrInvalid, "a message of 257 bytes"},
		{"class without RMPP", "mlx5", kernelRMPP, lid, perf, syscall.EINVAL, port.ErrInvalid, "class 0x04 has no RMPP"},
		{"directed route to nowhere", "mlx5", none, lid, route(0, 64, 1), syscall.EINVAL, port.ErrInvalid, "directed route"},
		{"directed route from port 2", "mlx5", none, lid, route(0, 1, 2), syscall.EINVAL, port.ErrInvalid, "does not start at port 1"},
		{"directed route twice", "mlx5", none, lid, route(0, 1, 1), syscall.EINVAL, port.ErrDuplicateTID, "in flight"},
		{"request twice", "mlx5", none, lid, vendorMAD(256, 1, 9), syscall.EINVAL, port.ErrDuplicateTID, "a request of class 0x32 with transaction id 0x00000009"},
		{"response twice", "mlx5", none, lid, vendorMAD(256, 0x81, 9), syscall.EINVAL, port.ErrDuplicateTID, "a response to the same place"},
		{"memory", "mlx5", none, lid, vendorMAD(256, 1, 9), syscall.ENOMEM, syscall.ENOMEM, "cannot allocate memory"},
	} {
		k := &fakeKernel{}
		k.registers()
		_, p := openFake(t, c.machine, Config{}, k)
		for mode := range port.RMPPMode(3) {
			register(t, p, port.Registration{QPN: 1, Class: 0x32, Version: 1, OUI: 1, RMPP: mode})
		}
		k.write = func([]byte) error { return c.errno }
		err := p.Send(&port.Message{Agent: c.agent, Addr: c.to, Data: c.data})
		checkError(t, err, "send", c.want, c.errno, c.text)
	}
	_, p := openFake(t, "mlx5", Config{}, &fakeKernel{})
	for _, m := range []port.Message{{Timeout: -1, Data: perf}, {Retries: -1, Data: perf}} {
		checkError(t, p.Send(&m), "send", port.ErrInvalid, nil, "negative")
	}
}

// The kernel says EIO of a slot that was empty, though another agent may have it
// by the time somebody looks: only the send fails, not the port.
func TestSendToSlotThatIsTaken(t *testing.T) {
	k := &fakeKernel{}
	k.registers()
	_, p := openFake(t, "mlx5", Config{}, k)
	reg := port.Registration{QPN: 1, Class: 0x32, Version: 1, OUI: 1}
	for _, before := range []*port.Registration{nil, {QPN: 1}} { // free, and of an agent that is then unregistered
		p.mu.Lock()
		p.agents[0] = before
		p.mu.Unlock()
		k.write = func([]byte) error {
			p.mu.Lock()
			p.agents[0] = &reg
			p.mu.Unlock()
			return syscall.EIO
		}
		err := p.Send(&port.Message{Data: vendorMAD(256, 1, 9)})
		checkError(t, err, "send", port.ErrNoAgent, syscall.EIO, "no agent is registered in slot 0")
	}
	k.write = nil
	if err := p.Send(&port.Message{Data: vendorMAD(256, 1, 9)}); err != nil {
		t.Errorf("the agent that has the slot cannot send: %v", err)
	}
}

// A message longer than the buffer is read again, and nothing behind it is lost
// or changes places.
func TestReceiveGrows(t *testing.T) {
	k := &fakeKernel{}
	d, p := openFake(t, "mlx5", Config{}, k)
	lengths := []int{256, 257, 6456, 256, 2_240_056, 24, 256}
	for i, n := range lengths {
		k.push(port.Message{Agent: port.AgentID(i), Data: vendorMAD(n, 0x92, uint32(i))}, n == 24)
	}
	var m port.Message
	for i, n := range lengths {
		if err := p.Recv(&m); err != nil {
			t.Fatal(err)
		}
		if m.Agent != port.AgentID(i) || !bytes.Equal(m.Data, vendorMAD(n, 0x92, uint32(i))) || m.TimedOut != (n == 24) {
			t.Errorf("message %d: agent %d, %d bytes, timed out %v; want %d bytes", i, m.Agent, len(m.Data), m.TimedOut, n)
		}
	}
	want := Stats{Received: 6, TimedOut: 1, Grown: 3}
	if got := d.Stats(); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}

	// The buffer is there now, and it is used.
	k.push(port.Message{Data: vendorMAD(2_000_000, 0x92, 1)}, false)
	buf := &m.Data[0]
	if err := p.Recv(&m); err != nil || len(m.Data) != 2_000_000 || &m.Data[0] != buf || d.Stats().Grown != 3 {
		t.Errorf("into a buffer that is large enough: %v, %d bytes, %+v", err, len(m.Data), d.Stats())
	}
}

// A single MAD of Omni-Path is longer than 256 bytes and does not say so.
func TestReceiveOmniPath(t *testing.T) {
	k := &fakeKernel{}
	_, p := openFake(t, "mlx5", Config{}, k)
	next := false
	calls := 0
	p.f.kernel = func(fd uintptr, op op, request uint32, b []byte) (int, error) {
		calls++
		if len(b) < headerSize+2048 {
			return 0, syscall.EINVAL
		}
		if next {
			return 0, syscall.EINVAL
		}
		next = true
		return headerSize + 2048, nil
	}
	var m port.Message
	if err := p.Recv(&m); err != nil || len(m.Data) != 2048 || calls != 2 {
		t.Errorf("%v, %d bytes in %d calls", err, len(m.Data), calls)
	}
	if err := p.Recv(&m); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("error %v, want EINVAL", err)
	}
}

// A kernel that talks nonsense gives an error, not a panic or a loop.
func TestReceiveNonsense(t *testing.T) {
	for name, read := range map[string]func(b []byte) (int, error){
		"ENOSPC without need": func(b []byte) (int, error) {
			binary.NativeEndian.PutUint32(b[hdrLength:], uint32(len(b)))
			return 0, syscall.ENOSPC
		},
		"ENOSPC for gigabytes": func(b []byte) (int, error) {
			binary.NativeEndian.PutUint32(b[hdrLength:], 1<<32-1)
			return 0, syscall.ENOSPC
		},
		"half a header": func(b []byte) (int, error) { return 63, nil },
	} {
		k := &fakeKernel{}
		_, p := openFake(t, "mlx5", Config{}, k)
		p.f.kernel = func(_ uintptr, _ op, _ uint32, b []byte) (int, error) { return read(b) }
		var m port.Message
		if err := p.Recv(&m); !errors.Is(err, syscall.EPROTO) {
			t.Errorf("%s: error %v, want EPROTO", name, err)
		}
	}
}

// EINTR is nobody's business.
func TestInterrupted(t *testing.T) {
	k := &fakeKernel{}
	k.registers()
	_, p := openFake(t, "mlx5", Config{}, k)
	interrupted := map[op]bool{}
	p.f.kernel = func(fd uintptr, op op, request uint32, b []byte) (int, error) {
		if !interrupted[op] {
			interrupted[op] = true
			return 0, syscall.EINTR
		}
		return k.call(fd, op, request, b)
	}
	register(t, p, anyAgent)
	if err := p.Send(&port.Message{Addr: mad.AddressVector{LID: 1}, Data: vendorMAD(256, 1, 1)}); err != nil {
		t.Error(err)
	}
	k.push(port.Message{Data: vendorMAD(256, 1, 1)}, false)
	var m port.Message
	if err := p.Recv(&m); err != nil || len(interrupted) != 3 {
		t.Errorf("%v, interrupted %v", err, interrupted)
	}
}

// What is queued for an agent that is gone is received as long as its slot is
// free, and not by the slot's next agent.
func TestStale(t *testing.T) {
	k := &fakeKernel{}
	k.registers()
	d, p := openFake(t, "mlx5", Config{}, k)
	register(t, p, anyAgent)
	old := register(t, p, anyAgent)
	third := register(t, p, anyAgent)
	for i, id := range []port.AgentID{old, third, old, 0, old} {
		n := 256
		if i == 2 {
			n = 5000
		}
		k.push(port.Message{Agent: id, Data: vendorMAD(n, 0x81, uint32(i))}, false)
	}
	if err := p.Unregister(old); err != nil {
		t.Fatal(err)
	}
	var m port.Message
	next := func(tid byte, agent port.AgentID) {
		t.Helper()
		if err := p.Recv(&m); err != nil || m.Agent != agent || m.Data[mad.OffTID+7] != tid {
			t.Errorf("received %d for agent %d, %v; want %d for %d", m.Data[mad.OffTID+7], m.Agent, err, tid, agent)
		}
	}
	next(0, old) // its slot is free
	if err := p.Unregister(third); err != nil {
		t.Fatal(err)
	}
	if id := register(t, p, anyAgent); id != old {
		t.Fatalf("agent %d, want %d", id, old)
	}
	next(1, third) // still free
	next(3, 0)
	k.push(port.Message{Agent: old, Data: vendorMAD(256, 0x81, 9)}, false)
	next(9, old) // the new one's
	if got := d.Stats().Stale; got != 2 {
		t.Errorf("%d stale messages, want 2", got)
	}
	if err := p.Unregister(1 << 31); !errors.Is(err, port.ErrInvalid) {
		t.Errorf("unregister of no slot: %v", err)
	}
	if err := p.Unregister(7); !errors.Is(err, port.ErrInvalid) || !strings.Contains(err.Error(), "slot 7") {
		t.Errorf("unregister of a free slot: %v", err)
	}
}

// recv starts a reader and gives what it ends with.
func recv(p *openPort) (*port.Message, chan error) {
	m, done := new(port.Message), make(chan error, 1)
	go func() { done <- p.Recv(m) }()
	return m, done
}

// A reader that already waits gets what a registration has read ahead, though
// nothing is there to read for it any more.
func TestReaderOfReadAhead(t *testing.T) {
	k := &fakeKernel{empty: make(chan struct{}, 1)}
	k.registers()
	_, p := openFake(t, "mlx5", Config{}, k)
	register(t, p, anyAgent)
	for i := range 20 {
		id := register(t, p, anyAgent)
		select {
		case <-k.empty: // seen by the registration, not by the reader
		default:
		}
		m, done := recv(p)
		<-k.empty
		if err := p.Unregister(id); err != nil {
			t.Fatal(err)
		}
		h := make([]byte, headerSize)
		k.abi.putHeader(h, &port.Message{})
		k.mu.Lock()
		k.queue = append(k.queue, append(h, vendorMAD(256, 0x81, uint32(i))...))
		k.mu.Unlock() // and no byte in the pipe
		id = register(t, p, anyAgent)
		if err := <-done; err != nil || m.Data[mad.OffTID+7] != byte(i) {
			t.Fatalf("%d: %v, %x", i, err, m.Data)
		}
		if err := p.Unregister(id); err != nil {
			t.Fatal(err)
		}
	}
}

// Each way in which the kernel tells of a removal ends the reader and all else.
func TestGone(t *testing.T) {
	for name, notice := range map[string]func(k *fakeKernel, p *openPort) error{
		"read": func(k *fakeKernel, p *openPort) error {
			k.mu.Lock()
			k.gone = true
			k.mu.Unlock()
			_, err := k.wake.Write([]byte{0})
			return errors.Join(err, port.ErrGone)
		},
		"write": func(k *fakeKernel, p *openPort) error {
			k.write = func([]byte) error { return syscall.EIO }
			return p.Send(&port.Message{Addr: mad.AddressVector{LID: 1}, Data: vendorMAD(256, 1, 1)})
		},
		"register": func(k *fakeKernel, p *openPort) error {
			k.ioctl = func(uint32, []byte) error { return syscall.EPIPE }
			_, err := p.Register(anyAgent)
			return err
		},
		"unregister": func(k *fakeKernel, p *openPort) error {
			k.ioctl = func(uint32, []byte) error { return syscall.EINVAL }
			return p.Unregister(0)
		},
		"close of the device": func(k *fakeKernel, p *openPort) error { return errors.Join(p.d.Close(), port.ErrGone) },
	} {
		k := &fakeKernel{}
		k.registers()
		_, p := openFake(t, "mlx5", Config{}, k)
		register(t, p, anyAgent)
		_, done := recv(p)
		if err := notice(k, p); !errors.Is(err, port.ErrGone) {
			t.Errorf("%s: error %v, want ErrGone", name, err)
		}
		if err := <-done; !errors.Is(err, port.ErrGone) {
			t.Errorf("%s: Recv ended with %v, want ErrGone", name, err)
		}
		checkDead(t, p, port.ErrGone)
	}
}

func checkDead(t *testing.T, p *openPort, want error) {
	t.Helper()
	_, err := p.Register(anyAgent)
	for op, err := range map[string]error{
		"register": err, "unregister": p.Unregister(0), "receive": p.Recv(new(port.Message)),
		"send": p.Send(&port.Message{Addr: mad.AddressVector{LID: 1}, Data: vendorMAD(256, 1, 1)}),
	} {
		checkError(t, err, op, want, nil, "")
	}
	if _, err := p.f.os.Write(nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file is still open: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// After a removal polling says POLLERR and nothing else, as a full pipe does
// whose reader has gone.
func TestPollError(t *testing.T) {
	k := &fakeKernel{}
	k.registers()
	_, p := openFake(t, "mlx5", Config{}, k)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.f.os.Close()
	if p.f, err = newFile(w, k.call); err != nil {
		t.Fatal(err)
	}
	err = p.f.raw.Control(func(fd uintptr) {
		for err == nil {
			_, err = syscall.Write(int(fd), make([]byte, 4096))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	_, done := recv(p)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, port.ErrGone) {
		t.Errorf("Recv ended with %v, want ErrGone", err)
	}
	checkDead(t, p, port.ErrGone)
}

func TestClose(t *testing.T) {
	k := &fakeKernel{}
	k.registers()
	d, p := openFake(t, "mlx5", Config{}, k)
	register(t, p, anyAgent)
	_, done := recv(p)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, port.ErrClosed) {
		t.Errorf("Recv ended with %v, want ErrClosed", err)
	}
	checkDead(t, p, port.ErrClosed)

	_, second := d, p
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	checkDead(t, second, port.ErrClosed) // not ErrGone
	if _, err := d.Open(); !errors.Is(err, port.ErrClosed) {
		t.Errorf("Open of a closed device: %v", err)
	}
	if _, err := d.Info(); !errors.Is(err, port.ErrClosed) {
		t.Errorf("Info of a closed device: %v", err)
	}
	if _, err := d.HoldIsSM(t.Context()); !errors.Is(err, port.ErrClosed) {
		t.Errorf("HoldIsSM of a closed device: %v", err)
	}
}
