package ucma_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/ucma"
)

// A connection by a path that the SA gave, with every step as it is done. No queue
// pair takes part, and the connection ends at once.
func ExampleOpener_Connect() {
	var dev port.Device // such as umad.Open gives, to ask the SA by
	admin, err := sa.NewClient(dev, sa.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer admin.Close()

	kernel := ucma.Opener(func() (ucma.Device, error) { return ucma.Open(ucma.Config{}) })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	target := ucma.Target{Addr: ucma.Sockaddr{IP: netip.MustParseAddrPort("192.0.2.8:7471")}}
	conn, err := kernel.Connect(ctx, target, ucma.ConnectConfig{
		Path:        admin,
		PrivateData: []byte("hello"),
		Progress:    func(s ucma.Step) { fmt.Printf("%-16s %s\n", s.Name, s.Detail) },
	})
	if err != nil {
		log.Fatal(err) // the step, the peer, the path and the reason
	}
	defer conn.Close()
	fmt.Printf("QPN %#x answers %q\n", conn.RemoteQPN, conn.PrivateData)
	if err := conn.Disconnect(ctx); err != nil {
		log.Fatal(err)
	}
}

// A server that takes one connection and waits until the peer ends it.
func ExampleOpener_Listen() {
	kernel := ucma.Opener(func() (ucma.Device, error) { return ucma.Open(ucma.Config{}) })
	ctx := context.Background()
	anywhere := ucma.Sockaddr{IP: netip.MustParseAddrPort("0.0.0.0:7471")}
	listener, err := kernel.Listen(ctx, anywhere, ucma.ListenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	request, err := listener.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if len(request.PrivateData) == 0 {
		if err := request.Reject(ctx, mad.RejectConsumerDefined, []byte("say who you are")); err != nil {
			log.Fatal(err)
		}
		return
	}
	conn, err := request.Accept(ctx, ucma.AcceptConfig{PrivateData: []byte("welcome")})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Wait(ctx); err != nil {
		log.Fatal(err)
	}
}
