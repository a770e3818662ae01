package umad

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// joinedBuffer is how much is read at once on illumos. Its driver puts as many
// packets into the buffer as there are, and cuts off what does not fit.
const joinedBuffer = 4 << 20

// readJoined reads into p.early what is queued, if anything (illumos sol_umad.c,
// umad_read). Each packet is a header and, unless it is about a request that
// failed, a MAD.
func (p *openPort) readJoined(fd uintptr) error {
	buf := make([]byte, joinedBuffer)
	for len(p.early) == 0 {
		n, err := p.f.do(fd, opRead, 0, buf)
		switch {
		case errors.Is(err, syscall.EAGAIN):
			return nil
		case err != nil:
			return explainGone(err)
		}
		messages, lost := p.d.sys.abi.splitJoined(buf[:n])
		p.d.count.lost.Add(uint64(lost))
		for i := range messages {
			p.received(&messages[i])
		}
		p.early = messages
	}
	return nil
}

// splitJoined separates packets. Lost are those of failed requests, which do not
// say of which one, and one that is cut off.
func (a *abi) splitJoined(b []byte) (messages []port.Message, lost int) {
	for len(b) >= headerSize {
		h := b[:headerSize]
		b = b[headerSize:]
		var m port.Message
		a.getHeader(h, &m)
		if m.TimedOut {
			lost++
			continue
		}
		// The driver counts the common header, the class's and the data; with
		// classes that have RMPP it copies the RMPP header as well.
		n := a.packetLength(h)
		if len(b) > mad.OffClass && (b[mad.OffClass] == uint8(mad.ClassSubnAdm) || hasOUI(mad.Class(b[mad.OffClass]))) {
			n += mad.RMPPHeaderSize
		}
		if n < mad.HeaderSize || n > len(b) {
			return messages, lost + 1
		}
		m.Data = slices.Clone(b[:n])
		messages = append(messages, m)
		b = b[n:]
	}
	return messages, lost
}

// illumosPorts lists the device files, which is all there is to see. The driver
// counts them over all adapters.
func (sys system) illumosPorts() (names []port.Info, err error) {
	dir, err := os.ReadDir(under(sys.Root, sys.abi.dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range dir {
		if strings.HasPrefix(e.Name(), "umad") {
			names = append(names, port.Info{Device: e.Name()})
		}
	}
	return names, err
}

func illumosPort(device string) LocalPort {
	return LocalPort{
		Info:  port.Info{Device: device, NodeType: mad.NodeTypeCA},
		UMAD:  device,
		ISSM:  strings.Replace(device, "umad", "issm", 1),
		Notes: []string{"illumos shows no attributes of a port through its device file"},
	}
}
