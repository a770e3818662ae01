package agents_test

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
)

// FuzzReceive gives an agent that asks and serves, in each mode, whatever
// messages a Port can deliver. Afterwards it must still ask and serve, and
// everything must have ended once.
//
// The input is a list of messages: a byte of flags (1 timed out, 2 the
// transaction id of the request, 4 padded to a MAD, 8 of another agent, 16 a
// second passes), a length, and that many bytes.
func FuzzReceive(f *testing.F) {
	item := func(flags byte, data []byte) []byte { return append([]byte{flags, byte(len(data))}, data...) }
	head := func(method mad.Method) []byte {
		return newMAD(mad.ClassSubnAdm, method, mad.AttrNodeRecord, []byte("data"))
	}
	packet := func(method mad.Method, h mad.RMPPHeader) []byte {
		return control(head(method), h)[:mad.OffSAData]
	}
	f.Add(item(2|4, head(mad.MethodGetTableResp)))
	f.Add(item(1|2, head(mad.MethodGetTable)[:mad.HeaderSize]))
	f.Add(item(4, head(mad.MethodGet)))
	f.Add(append(item(2|4, packet(mad.MethodGetTableResp, mad.RMPPHeader{RMPPType: mad.RMPPTypeData, Data1: 2})),
		item(2|4|16, packet(mad.MethodGetTableResp, mad.RMPPHeader{RMPPType: mad.RMPPTypeAbort, RMPPStatus: mad.RMPPStatusTooManyRetries}))...))
	f.Add(append(item(4, packet(mad.MethodGetMulti, mad.RMPPHeader{RMPPType: mad.RMPPTypeData, Data1: 1})),
		item(4, packet(mad.MethodGetMulti, mad.RMPPHeader{RMPPType: mad.RMPPTypeACK, Data1: 3, Data2: 2}))...))

	f.Fuzz(func(t *testing.T, input []byte) {
		for _, mode := range []port.RMPPMode{port.RMPPNone, port.RMPPKernel, port.RMPPUser} {
			synctest.Test(t, func(t *testing.T) { feed(t, mode, input) })
		}
	})
}

func feed(t *testing.T, mode port.RMPPMode, input []byte) {
	p := newFakePort()
	conn := openFake(t, p)
	defer conn.Close()
	reg := saServer(mode, func(in *agents.Incoming) {
		_ = in.Reply(respond(in.Data, pattern(100)))
	})
	reg.Window = 1
	a := register(t, conn, reg)
	end := doLater(t.Context(), a, agents.Request{Addr: serverAddr, Data: sized(1), Long: true})
	synctest.Wait()
	request := p.sends()[0]

	for len(input) >= 2 {
		flags, n := input[0], min(int(input[1]), len(input)-2)
		data := append([]byte(nil), input[2:2+n]...)
		input = input[2+n:]
		if flags&2 != 0 && n >= mad.HeaderSize {
			copy(data[mad.OffTID:], request.Data[mad.OffTID:mad.OffTID+8])
		}
		if flags&4 != 0 {
			data = append(data, make([]byte, mad.Size)...)[:mad.Size]
		}
		p.in <- port.Message{Agent: port.AgentID(flags >> 3 & 1), TimedOut: flags&1 != 0, Addr: serverAddr, Data: data}
		if flags&16 != 0 {
			time.Sleep(time.Second)
		}
		synctest.Wait()
	}

	// One way or another it ends: at the latest when its deadline and that of a
	// transfer have passed.
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	select {
	case <-end:
	default:
		t.Fatal("the request did not end")
	}
	s := conn.Stats()
	if s.Answered+s.TimedOut > 1 {
		t.Fatalf("stats %+v of one request", s)
	}

	before := len(p.sends())
	end = doLater(t.Context(), a, agents.Request{Addr: serverAddr, Data: getRecord(1)})
	synctest.Wait()
	sends := p.sends()
	if len(sends) != before+1 {
		t.Fatalf("%d messages instead of one request", len(sends)-before)
	}
	p.in <- answerTo(sends[before], []byte("end"))
	if o := <-end; o.err != nil || string(o.response.Data[mad.OffSAData:][:3]) != "end" {
		t.Fatalf("got %+v", o)
	}
	m := arriving(0xfeed_00000000, getRecord(1))
	binary.BigEndian.PutUint16(m.Data[mad.OffAttribute:], 0xfeed)
	p.in <- m
	synctest.Wait()
	if got := conn.Stats().Served; got != s.Served+1 {
		t.Fatalf("%d requests served, want 1", got-s.Served)
	}
}
