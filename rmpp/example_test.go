package rmpp_test

import (
	"fmt"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/rmpp"
)

// An SA answers a GetTable with 14 NodeRecords of 112 bytes.
func Example() {
	msg := make([]byte, 56+14*112)
	msg[mad.OffClass], msg[mad.OffMethod] = 0x03, 0x92

	now := time.Now()
	s, err := rmpp.NewSender(msg, rmpp.SenderConfig{Retries: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := rmpp.NewReceiver(rmpp.ReceiverConfig{})

	var pkt [mad.Size]byte // on its way from one to the other
	data := 0
	for {
		for s.Next(now, &pkt) {
			h := rmpp.ParseHeader(&pkt)
			fmt.Println(h.RMPPType, "segment", h.Data1, "payload length", h.Data2)
			r.Receive(now, &pkt, func(payload []byte) { data += len(payload) })
		}
		for r.Next(now, &pkt) {
			h := rmpp.ParseHeader(&pkt)
			fmt.Println(h.RMPPType, "segment", h.Data1, "new window last", h.Data2)
			s.Receive(now, &pkt)
		}
		if done, err := s.Done(); done {
			fmt.Println(data, "bytes of data, error", err)
			return
		}
	}
	// Output:
	// DATA segment 1 payload length 1728
	// ACK segment 1 new window last 65
	// DATA segment 2 payload length 0
	// DATA segment 3 payload length 0
	// DATA segment 4 payload length 0
	// DATA segment 5 payload length 0
	// DATA segment 6 payload length 0
	// DATA segment 7 payload length 0
	// DATA segment 8 payload length 188
	// ACK segment 8 new window last 65
	// 1568 bytes of data, error <nil>
}
