package smp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sim"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/topo"
)

// The far end of the old cable between the switches of the simulated fabric
// demo, along a directed route.
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
	client, err := smp.NewClient(dev, smp.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	info, err := smp.Get[mad.PortInfo](context.Background(), client, mad.MustParseAddr("0,1,12"), 12)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v, MTU %v, %v\n", info.PortState, info.NeighborMTU, info.Rate())
	// Output: Active, MTU 2048, 40 Gb/s
}
