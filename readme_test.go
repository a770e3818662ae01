package ibsm_test

import (
	"context"
	"fmt"

	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sa"
)

// The Go code of the README.
func Example() {
	if err := printPaths(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// LID 1 to LID 8, MTU 2048, rate 40 Gb/s
}

func printPaths(ctx context.Context) error {
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
	return nil
}
