package ucma

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"time"
)

// The tests named TestKernel... run where IBSM_KERNEL is set: in the guests of the
// kernel rig, or on a machine that one offers for it. There fd00::1 is the address
// of an RDMA device.

func openKernel(t *testing.T) Device {
	t.Helper()
	if os.Getenv("IBSM_KERNEL") == "" {
		t.Skip("runs on a kernel of its own: make test-kernel RUN=" + t.Name())
	}
	dev, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// boundID makes an id and binds it to the device's address.
func boundID(t *testing.T, dev Device) uint32 {
	t.Helper()
	var r CreateIDResp
	if err := Do(dev, CreateID{UID: goldenUID, PS: PortSpaceTCP}, &r); err != nil {
		t.Fatal(err)
	}
	id := r.ID
	t.Cleanup(func() {
		if err := Do(dev, DestroyID{ID: id}, new(DestroyIDResp)); err != nil {
			t.Error(err)
		}
	})
	if err := Do(dev, BindIP{ID: id, Addr: ip("[fd00::1]:0")}, nil); err != nil {
		t.Fatal(err)
	}
	return id
}

// The kernel judges the sizes of a write as ParseCommand does.
func TestKernelWrites(t *testing.T) {
	dev := openKernel(t)
	for _, c := range badWrites {
		if err := dev.Exec(c.b, nil); !errors.Is(err, c.linux) {
			t.Errorf("%s: %v, want %v", c.name, err, c.linux)
		}
	}
	for _, c := range okWrites {
		if err := dev.Exec(c.b, nil); c.linux && !errors.Is(err, c.kernel) {
			t.Errorf("%s: %v, want %v", c.name, err, c.kernel)
		}
	}
}

// What AppendCommand refuses the kernel refuses with the same errno.
func TestKernelRefusals(t *testing.T) {
	dev := openKernel(t)
	id := boundID(t, dev)
	asked := 0
	for _, c := range refusals {
		_, route := c.c.(ResolveRoute)
		if c.d != Linux || c.field == "out" || c.field == "timeout_ms" && !route {
			continue // which Linux takes, to no good
		}
		cmd, err := Linux.AppendUnchecked(nil, c.c)
		if err != nil {
			continue // it cannot be written
		}
		if f := Linux.structs[Linux.commands[c.c.Op()].in].field("id"); f != nil {
			binary.NativeEndian.PutUint32(cmd[HeaderSize+f.off:], id)
		}
		mem := make([]byte, binary.NativeEndian.Uint16(cmd[6:]))
		if o, ok := c.c.(SetOption); ok {
			mem = append(o.Value, make([]byte, int(o.Len))...)
		}
		if err := dev.Exec(cmd, mem); !errors.Is(err, c.errno) {
			t.Errorf("%+v: %v, want %v", c.c, err, c.errno)
		}
		asked++
	}
	if asked < 20 {
		t.Errorf("only %d refusals were asked for", asked)
	}
}

// The kernel stores as many bytes as the tables say, and they can be read.
func TestKernelResponses(t *testing.T) {
	dev := openKernel(t)
	id := boundID(t, dev)
	if err := Do(dev, ResolveIP{ID: id, Dst: ip("[fd00::1]:7174"), Timeout: 2 * time.Second}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := dev.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		c      Command
		r      Response
		stored int
	}{
		{GetEvent{}, new(EventResp), 336},
		{QueryRoute{ID: id}, new(QueryRouteResp), 208},
		{Query{ID: id, Option: QueryAddr}, new(QueryAddrResp), 280},
		{Query{ID: id, Option: QueryGID}, new(QueryAddrResp), 280},
		{Query{ID: id, Option: QueryPath}, new(QueryPathResp), 8},
		{InitQPAttr{ID: id, State: QPStateInit}, new(QPAttr), 144},
	} {
		cmd, err := Linux.AppendCommand(nil, c.c)
		if err != nil {
			t.Fatal(err)
		}
		mem := bytes.Repeat([]byte{0xee}, 1024)
		if err := dev.Exec(cmd, mem); err != nil {
			t.Errorf("%v: %v", c.c.Op(), err)
			continue
		}
		if mem[c.stored-1] == 0xee || mem[c.stored] != 0xee {
			t.Errorf("%v: not %d bytes stored: % x", c.c.Op(), c.stored, bytes.TrimRight(mem, "\xee"))
		}
		if err := Linux.ParseResponse(mem[:c.stored], c.r); err != nil {
			t.Errorf("%v: %v", c.c.Op(), err)
		}
		switch r := c.r.(type) {
		case *EventResp:
			if r.UID != goldenUID || r.ID != id || r.Event != EventAddrResolved || r.Status != 0 {
				t.Errorf("event %+v", r)
			}
		case *QueryRouteResp:
			if r.NodeGUID == 0 || r.PortNum != 1 || r.NumPaths != 0 || r.Src.IP.Addr() != ip("[fd00::1]:0").IP.Addr() || r.Dst.String() != "[fd00::1]:7174" || r.Paths[0].PKey != 0xffff {
				t.Errorf("route %+v", r)
			}
		case *QueryAddrResp:
			if gid := r.Dst.IB; r.NodeGUID == 0 || r.PortNum != 1 || gid != nil && gid.ServiceID != 0x0000000001060000|7174 || gid == nil && r.Dst.String() != "[fd00::1]:7174" {
				t.Errorf("addresses %+v", r)
			}
		case *QPAttr:
			if r.Mask != QPAttrState|QPAttrAccessFlags|QPAttrPKeyIndex|QPAttrPort || r.State != QPStateInit || r.PortNum != 1 {
				t.Errorf("attributes %+v, %v", r, r.Mask)
			}
		}
	}
}
