package umad

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// joined is what one read gives on illumos: headers, each with the length of its
// MAD but for the RMPP header, and the MADs.
func joined(a *abi, packets ...port.Message) (b []byte) {
	for _, m := range packets {
		h := make([]byte, headerSize)
		a.putHeader(h, &m)
		n := len(m.Data)
		if n > 0 && mad.HasRMPP(mad.Class(m.Data[mad.OffClass])) {
			n -= mad.RMPPHeaderSize
		}
		a.order.PutUint32(h[hdrLength:], uint32(n))
		if m.TimedOut {
			a.order.PutUint32(h[hdrStatus:], 0xfffffff0)
		}
		b = append(append(b, h...), m.Data...)
	}
	return b
}

func TestIllumos(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"umad0", "issm0", "umad1"} {
		write(t, root, "dev/infiniband/ofs/"+name, "")
	}
	a, _ := abiOf("illumos", "amd64")
	perf := vendorMAD(256, 0x81, 4)
	perf[mad.OffClass] = 0x04
	received := []port.Message{
		{Agent: 1, Addr: mad.AddressVector{LID: 3, QPN: 1}, Data: vendorMAD(256, 0x81, 1)},
		{Agent: 2, TimedOut: true}, // a header alone
		{Agent: 3, Data: perf},
		{Agent: 4, Data: vendorMAD(5000, 0x92, 2)},
	}
	once := joined(&a, received...)
	once = append(once, joined(&a, received[3])[:300]...) // cut off
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var ioctls []uint32
	sys := system{Config{Root: root}, a, func(path string) (*file, error) {
		if path != root+"/dev/infiniband/ofs/umad0" {
			t.Errorf("opened %s", path)
		}
		return newFile(r, func(fd uintptr, op op, request uint32, b []byte) (int, error) {
			switch op {
			case opIoctl:
				ioctls = append(ioctls, request)
				if request == a.unregister && len(b) < regSize {
					t.Errorf("UNREGISTER with %d bytes: the driver reads %d", len(b), regSize)
				}
				return 0, nil
			case opWrite:
				return len(b), nil
			}
			if len(once) == 0 {
				return 0, syscall.EAGAIN
			}
			n := copy(b, once)
			once = once[n:]
			return n, nil
		})
	}}
	ports, err := sys.ports()
	if err != nil || len(ports) != 2 || ports[1].Device != "umad1" || ports[0].UMAD != "umad0" || len(ports[0].Notes) != 1 {
		t.Errorf("ports %+v, %v", ports, err)
	}
	if _, err := sys.device("umad2", 0); !errors.Is(err, ErrNoPort) {
		t.Errorf("umad2: %v", err)
	}
	d, err := sys.device("umad0", 0)
	if err != nil {
		t.Fatal(err)
	}
	op, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	p := op.(*openPort)
	id, err := p.Register(anyAgent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Register(port.Registration{QPN: 1, Class: 3, Version: 2, RMPP: port.RMPPUser}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("user RMPP: %v", err)
	}
	if err := p.Send(&port.Message{Addr: mad.AddressVector{HasGRH: true}, Data: perf}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("GRH: %v", err)
	}
	if err := p.Send(&port.Message{Addr: mad.AddressVector{LID: 1}, Data: perf}); err != nil {
		t.Error(err)
	}
	for _, want := range []port.Message{received[0], received[2], received[3]} {
		var m port.Message
		if err := p.Recv(&m); err != nil || m.Agent != want.Agent || m.Addr != want.Addr || !bytes.Equal(m.Data, want.Data) {
			t.Errorf("received %d bytes for agent %d, %v; want %d for %d", len(m.Data), m.Agent, err, len(want.Data), want.Agent)
		}
	}
	if got := d.Stats(); got.Lost != 2 || got.Received != 3 {
		t.Errorf("stats %+v, want 3 received and 2 lost", got)
	}
	if err := p.Unregister(id); err != nil {
		t.Error(err)
	}
	if want := []uint32{a.enablePKey, a.register, a.unregister}; !slices.Equal(ioctls, want) {
		t.Errorf("ioctls %#x, want %#x", ioctls, want)
	}
	_, done := recv(p)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, port.ErrGone) {
		t.Errorf("Recv ended with %v", err)
	}

	sys.OldHeader = true
	sys.open = func(string) (*file, error) {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		return newFile(f, nil)
	}
	if d, err = sys.device("umad0", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("old header: %v", err)
	}
}

func FuzzSplitJoined(f *testing.F) {
	a, _ := abiOf("illumos", "amd64")
	f.Add(joined(&a, port.Message{Data: vendorMAD(256, 0x81, 1)}, port.Message{TimedOut: true}, port.Message{Data: vendorMAD(300, 1, 2)}))
	f.Add([]byte{})
	f.Add(make([]byte, headerSize+1))
	f.Fuzz(func(t *testing.T, b []byte) {
		messages, lost := a.splitJoined(b)
		n := headerSize * lost
		for _, m := range messages {
			if m.TimedOut {
				t.Error("a failed request is a message")
			}
			n += headerSize + len(m.Data)
		}
		if n > len(b) {
			t.Errorf("%d bytes out of %d", n, len(b))
		}
	})
}
