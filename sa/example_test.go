package sa_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/sa/server"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/topo"
)

// The path from the own port to a node known by name, on the simulated fabric
// demo.
func Example() {
	subnet, err := topo.Generate("demo")
	if err != nil {
		log.Fatal(err)
	}
	fabric, err := sim.New(subnet, sim.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer fabric.Close()
	dev, err := fabric.Device(subnet.SM.Node, subnet.SM.Num)
	if err != nil {
		log.Fatal(err)
	}
	admin, err := server.New(dev, subnet, server.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer admin.Close()

	ctx := context.Background()
	client, err := sa.NewClient(dev, sa.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	to, err := sa.NewResolver(client).Resolve(ctx, mad.MustParseAddr("h3"))
	if err != nil {
		log.Fatal(err)
	}
	for path, err := range client.Paths(ctx, sa.PathQuery{DGID: to.GID}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("LID %v to LID %v: MTU %v, %v\n", path.SLID, path.DLID, path.MTU, path.Rate)
	}
	// Output: LID 1 to LID 3: MTU 4096, 56 Gb/s
}
