package ibsm_test

import (
	"context"
	"fmt"

	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/ucma"
)

// The Go code of the README.
func Example() {
	if err := pathsAndConnection(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// LID 1 to LID 8, MTU 2048, rate 40 Gb/s
	// connected from LID 1 to LID 8, MTU 2048
}

func pathsAndConnection(ctx context.Context) error {
	dev, err := endpoint.Open(ctx, "sim:demo")
	if err != nil {
		return err
	}
	defer dev.Close()
	admin, err := sa.NewClient(dev, sa.Config{})
	if err != nil {
		return err
	}
	defer admin.Close()

	h8, err := sa.NewResolver(admin).Resolve(ctx, mad.MustParseAddr("h8"))
	if err != nil {
		return err
	}
	for path, err := range admin.Paths(ctx, sa.PathQuery{DGID: h8.GID}) {
		if err != nil {
			return err
		}
		fmt.Printf("LID %v to LID %v, MTU %v, rate %v\n", path.SLID, path.DLID, path.MTU, path.Rate)
	}

	cm, err := endpoint.OpenCM(ctx, dev, endpoint.CMConfig{})
	if err != nil {
		return err
	}
	defer cm.Close()
	target := ucma.Target{Addr: ucma.IBAddr(h8.GID, mad.DefaultPKey, ucma.PortSpaceTCP, endpoint.EchoPort)}
	conn, err := ucma.Opener(cm.Open).Connect(ctx, target, ucma.ConnectConfig{Path: admin})
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Printf("connected from LID %v to LID %v, MTU %v\n", conn.Path.SLID, conn.Path.DLID, conn.Path.MTU)
	return nil
}
