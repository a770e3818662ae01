package porttest

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// The RMPP header (IBA 13.6.2.1), spelled out here so that the suite does not
// lean on the code it tests.
const (
	rmppType, rmppFlags, rmppSegment, rmppLength = 25, 26, 28, 32

	typeData, typeACK        = 1, 2
	active, first, last      = 0x01, 0x02, 0x04
	perPacket                = mad.Size - 36 // what PayloadLength counts
	segmentRetries           = 3             // of long answers
	flagsMask           byte = 0x07
)

func kernelRMPP(class mad.Class, methods ...mad.Method) port.Registration {
	r := serverOf(methods...)
	r.RMPP = port.RMPPKernel
	if r.Class = class; class == mad.ClassSubnAdm {
		r.Version, r.OUI = saVersion, 0
	}
	return r
}

func userRMPPServer(methods ...mad.Method) port.Registration {
	r := serverOf(methods...)
	r.RMPP = port.RMPPUser
	return r
}

// newLong makes a message with n bytes of data behind the headers of its class.
func newLong(class mad.Class, method mad.Method, tid uint32, n int) []byte {
	h := mad.ClassHeaderLen(class)
	data := make([]byte, h+n)
	copy(data, newMAD(class, method, tid)[:h])
	clear(data[mad.OffRMPP:mad.OffRMPPData])
	data[rmppFlags] = active
	fill(data[h:], tid+uint32(n))
	return data
}

// checkLong checks a whole message: what was sent, with the RMPP header of its
// first segment (kernel: user_mad.c, copy_recv_mad).
func (e *env) checkLong(m port.Message, sent []byte) {
	e.Helper()
	h := mad.ClassHeaderLen(mad.Class(sent[mad.OffClass]))
	perSegment := mad.Size - h
	segments := max(1, (len(sent)-h+perSegment-1)/perSegment)
	if m.TimedOut || len(m.Data) != len(sent) {
		e.Fatalf("%s: %d bytes, want %d", describe(m), len(m.Data), len(sent))
	}
	if !bytes.Equal(m.Data[h:], sent[h:]) || !bytes.Equal(m.Data[mad.OffRMPPData:h], sent[mad.OffRMPPData:h]) {
		e.Errorf("message of %d bytes arrived with other content", len(sent))
	}
	flags := byte(active | first)
	if segments == 1 {
		flags |= last
	}
	pad := segments*perSegment - (len(sent) - h)
	length := uint32(segments*perPacket - pad)
	if b := m.Data; b[24] != 1 || b[rmppType] != typeData || b[rmppFlags]&flagsMask != flags ||
		binary.BigEndian.Uint32(b[rmppSegment:]) != 1 || binary.BigEndian.Uint32(b[rmppLength:]) != length {
		e.Errorf("RMPP header %x, want that of the first of %d segments with PayloadLength %d", b[24:36], segments, length)
	}
}

// kernelRMPPResponse checks the segment counts at which something changes: one,
// the first window, the second one, and many.
func kernelRMPPResponse(e *env) {
	for _, class := range []mad.Class{testClass, mad.ClassSubnAdm} {
		a, b := e.openA(), e.openB()
		id := a.register(kernelRMPP(class))
		b.register(kernelRMPP(class, mad.MethodGetTable))
		perSegment := mad.Size - mad.ClassHeaderLen(class)
		sizes := []int{1, perSegment - 1, perSegment, perSegment + 1, 2 * perSegment, 64 * perSegment, 64*perSegment + 1, 65 * perSegment}
		if class == mad.ClassSubnAdm {
			sizes = append(sizes, 2_000_003)
		}
		for i, n := range sizes {
			request := newMAD(class, mad.MethodGetTable, uint32(i))
			clear(request[mad.OffRMPP:mad.OffRMPPData])
			a.send(port.Message{Agent: id, Timeout: patience, Addr: a.to, Data: request})
			m := b.next()
			answer := newLong(class, mad.MethodGetTableResp, uint32(i), n)
			copy(answer[mad.OffTID:], m.Data[mad.OffTID:mad.OffTID+8])
			b.send(port.Message{Agent: m.Agent, Addr: m.Addr, Retries: segmentRetries, Data: answer})
			e.checkLong(a.next(), answer)
		}
		a.port.Close()
		b.port.Close()
	}
}

// kernelRMPPBothWays checks a request of several segments whose answer has
// several, too.
func kernelRMPPBothWays(e *env) {
	a, b := e.openA(), e.openB()
	id := a.register(kernelRMPP(mad.ClassSubnAdm))
	b.register(kernelRMPP(mad.ClassSubnAdm, mad.MethodGetMulti))
	for i, n := range []int{200, 201, 70 * 200} {
		request := newLong(mad.ClassSubnAdm, mad.MethodGetMulti, uint32(i), n)
		before := slices.Clone(request)
		a.send(port.Message{Agent: id, Timeout: patience, Retries: segmentRetries, Addr: a.to, Data: request})
		if !bytes.Equal(request, before) {
			e.Error("Send changed the caller's message")
		}
		clear(request) // Send has copied it
		m := b.next()
		e.checkLong(m, before)
		answer := newLong(mad.ClassSubnAdm, mad.MethodGetMultiResp, uint32(i), 3*n)
		copy(answer[mad.OffTID:], m.Data[mad.OffTID:mad.OffTID+8])
		b.send(port.Message{Agent: m.Agent, Addr: m.Addr, Retries: segmentRetries, Data: answer})
		e.checkLong(a.next(), answer)
	}
}

// kernelRMPPInactive checks that an inactive MAD goes out with an empty RMPP
// header (kernel: user_mad.c copies from byte 36 on).
func kernelRMPPInactive(e *env) {
	a, b := e.openA(), e.openB()
	b.server(mad.MethodGet)
	request := newMAD(testClass, mad.MethodGet, 1)
	copy(request[mad.OffRMPP:], []byte{1, typeData, 0xf8, 9, 1, 2, 3, 4, 5, 6, 7, 8})
	a.send(port.Message{Agent: a.register(kernelRMPP(testClass)), Addr: a.to, Data: request})
	m := b.next()
	if !bytes.Equal(m.Data[mad.OffRMPP:mad.OffRMPPData], make([]byte, mad.RMPPHeaderSize)) {
		e.Errorf("RMPP header arrived as %x, want zeros", m.Data[mad.OffRMPP:mad.OffRMPPData])
	}
	if !bytes.Equal(m.Data[mad.OffRMPPData:], request[mad.OffRMPPData:]) {
		e.Errorf("the rest arrived as %x, sent as %x", m.Data[mad.OffRMPPData:], request[mad.OffRMPPData:])
	}

	a.send(port.Message{Agent: a.client(), Addr: a.to, Data: request})
	if m := b.next(); !bytes.Equal(m.Data[mad.OffRMPP:], request[mad.OffRMPP:]) {
		e.Errorf("without RMPP it arrived as %x, sent as %x", m.Data[mad.OffRMPP:], request[mad.OffRMPP:])
	}
}

// kernelRMPPUnsolicited checks that segments of a response that nobody waits for
// are neither acknowledged nor delivered.
func kernelRMPPUnsolicited(e *env) {
	a, b := e.openA(), e.openB()
	id := a.register(kernelRMPP(testClass))
	server := b.register(userRMPPServer(mad.MethodGetTable))
	a.send(port.Message{Agent: id, Addr: a.to, Data: newMAD(testClass, mad.MethodGetTable, 1)})
	m := b.next()
	b.send(port.Message{Agent: server, Addr: m.Addr, Data: segment(m, 1, first|last)})
	a.quiet(soon)
	b.quiet(soon)
}

// segment makes a segment of the response to a request.
func segment(request port.Message, n uint32, flags byte) []byte {
	data := newMAD(testClass, mad.MethodGetTableResp, n)
	copy(data[mad.OffTID:], request.Data[mad.OffTID:mad.OffTID+8])
	copy(data[mad.OffRMPP:], []byte{1, typeData, active | flags, 0})
	binary.BigEndian.PutUint32(data[rmppSegment:], n)
	length := uint32(0)
	if flags&last != 0 {
		length = perPacket
	}
	binary.BigEndian.PutUint32(data[rmppLength:], length)
	return data
}

// userRMPP checks that segments and ACKs pass as they are, and that the segments
// after the first are delivered though the request has ended.
func userRMPP(e *env) {
	a, b := e.openA(), e.openB()
	id := a.register(userRMPPServer())
	server := b.register(userRMPPServer(mad.MethodGetTable))
	a.ask(id, mad.MethodGetTable, 3, patience)
	request := b.next()
	for i, flags := range []byte{first, 0, last} {
		n := uint32(i + 1)
		sent := segment(request, n, flags)
		b.send(port.Message{Agent: server, Addr: request.Addr, Data: sent})
		if m := a.next(); m.Agent != id || !bytes.Equal(m.Data, sent) {
			e.Errorf("segment %d: %s, sent as %x", n, describe(m), sent[:64])
		}
	}
	ack := segment(request, 3, 0)
	ack[mad.OffMethod] = uint8(mad.MethodGetTable) // R = 0
	ack[rmppType] = typeACK
	a.send(port.Message{Agent: id, Addr: a.to, Data: ack})
	if m := b.next(); m.Agent != server || !bytes.Equal(m.Data, ack) {
		e.Errorf("ACK: %s, sent as %x", describe(m), ack[:64])
	}
}
