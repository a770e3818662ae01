package capture_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// stub is a device and its one Port: it takes what is sent and has messages to
// receive.
type stub struct {
	port.Device
	port.Port
	info     port.Info
	infoErr  error
	sendErr  error
	incoming []port.Message
	onSend   func()
}

var errEmpty = errors.New("nothing to receive")

func newStub() *stub {
	return &stub{info: port.Info{
		Device: "h1", Port: 1, LID: 0x10, LMC: 2, PortGUID: 0x0002c90300000011, NodeGUID: 0x0002c90300000010, NodeDesc: "h1 HCA",
		GIDs:  []mad.GID{mad.MakeGID(mad.DefaultGIDPrefix, 0x0002c90300000011), mad.MakeGID(0x2001, 0x11)},
		PKeys: []mad.PKey{mad.DefaultPKey, 0x8001},
	}}
}

func (s *stub) Info() (port.Info, error)                         { return s.info, s.infoErr }
func (s *stub) Open() (port.Port, error)                         { return s, nil }
func (s *stub) Close() error                                     { return nil }
func (s *stub) Register(port.Registration) (port.AgentID, error) { return 0, nil }

func (s *stub) Send(*port.Message) error {
	if s.onSend != nil {
		s.onSend()
	}
	return s.sendErr
}

func (s *stub) Recv(m *port.Message) error {
	if len(s.incoming) == 0 {
		return errEmpty
	}
	*m = s.incoming[0]
	s.incoming = s.incoming[1:]
	return nil
}

// entry is a record as gopacket reads it.
type entry struct {
	ci   gopacket.CaptureInfo
	data []byte
	opts pcapgo.NgPacketOptions
	name string // of the interface
	desc string
}

// read gives the records of a file, which ends with a whole one.
func read(t testing.TB, file []byte) (entries []entry) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, ci, opts, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		intf, err := r.Interface(ci.InterfaceIndex)
		if err != nil {
			t.Fatal(err)
		}
		if intf.LinkType != 197 {
			t.Errorf("link type %d, want ERF (197)", intf.LinkType)
		}
		entries = append(entries, entry{ci, data, opts, intf.Name, intf.Description})
	}
}

// newMAD makes 256 bytes of a class, each of which differs from its neighbours.
func newMAD(class mad.Class, method mad.Method) []byte {
	b := make([]byte, mad.Size)
	for i := range b {
		b[i] = byte(i)
	}
	b[0], b[mad.OffClass], b[mad.OffClassVersion], b[mad.OffMethod] = 1, byte(class), 1, byte(method)
	b[mad.OffStatus], b[mad.OffStatus+1] = 0, 0
	return b
}

// newLong makes a message of subnet administration with n bytes of data.
func newLong(method mad.Method, n int) []byte {
	b := slices.Concat(newMAD(mad.ClassSubnAdm, method)[:mad.OffSAData], make([]byte, n))
	for i := range b[mad.OffSAData:] {
		b[mad.OffSAData+i] = byte(i * 7)
	}
	copy(b[mad.OffRMPP:], []byte{1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	return b
}
