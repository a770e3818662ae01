package agents_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/softmad/softmadtest"
)

// recordSize is the AttributeOffset of a NodeRecord in bytes.
const recordSize = 112

// A server that answers each GetTable with ten records, and a client that asks
// for them. Both do RMPP by themselves.
func Example() {
	a, b := softmadtest.NewPair(nil) // two ports and a wire
	server, client := open(b), open(a)
	defer server.Close()
	defer client.Close()

	sa := port.Registration{QPN: mad.QPGSI, Class: mad.ClassSubnAdm, Version: 2, RMPP: port.RMPPUser}
	serving := sa
	serving.Methods = port.Methods(mad.MethodGetTable)
	_, err := server.Register(agents.Registration{Registration: serving, Serve: func(in *agents.Incoming) {
		answer := make([]byte, mad.OffSAData+10*recordSize)
		copy(answer, in.Data[:mad.OffSAData])
		answer[mad.OffMethod] = byte(mad.MethodGetTableResp)
		if err := in.Reply(answer); err != nil {
			log.Print(err)
		}
	}})
	if err != nil {
		log.Fatal(err)
	}

	agent, err := client.Register(agents.Registration{Registration: sa, Window: agents.WindowSA})
	if err != nil {
		log.Fatal(err)
	}
	response, err := agent.Do(context.Background(), query())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(response.Data)-mad.OffSAData, "bytes from", response.Addr)

	// The same as it arrives: a piece may end within a record.
	records, rest := 0, []byte(nil)
	err = agent.Stream(context.Background(), query(), func(_ *agents.Response, payload []byte) error {
		rest = append(rest, payload...)
		for ; len(rest) >= recordSize; rest = rest[recordSize:] {
			records++
		}
		return nil
	})
	fmt.Println(records, "records,", err)

	// Output:
	// 1120 bytes from LID 2
	// 10 records, <nil>
}

// query asks for all NodeRecords.
func query() *agents.Request {
	header := mad.Header{
		BaseVersion: mad.BaseVersion, MgmtClass: mad.ClassSubnAdm, ClassVersion: 2,
		Method: mad.MethodGetTable, AttributeID: mad.AttrNodeRecord,
	}
	data := make([]byte, mad.Size)
	header.EncodeTo((*[mad.HeaderSize]byte)(data))
	return &agents.Request{
		Addr: mad.AddressVector{LID: 2, QPN: mad.QPGSI}, Data: data,
		Timeout: time.Second, Retries: 3, Long: true,
	}
}

func open(link *softmadtest.Link) *agents.Conn {
	dev, err := softmad.NewDevice(link, softmad.Config{})
	if err != nil {
		log.Fatal(err)
	}
	conn, err := agents.Open(dev, agents.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return conn
}
