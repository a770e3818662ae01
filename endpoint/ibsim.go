package endpoint

import (
	"context"
	"errors"

	"github.com/ibsm/ibsm/ibsim"
	"github.com/ibsm/ibsm/port"
)

func openIbsim(ctx context.Context, node string) (port.Device, error) {
	dev, err := ibsim.Open(ctx, ibsim.Config{Node: node})
	if err != nil {
		return nil, err // and no device in the interface
	}
	return dev, nil
}

// listIbsim lists the one port that ibsim offers at a node. It tells of no other
// nodes.
func listIbsim(ctx context.Context, node string) ([]Choice, error) {
	dev, err := openIbsim(ctx, node)
	if err != nil {
		return nil, err
	}
	info, err := dev.Info()
	if err = errors.Join(err, dev.Close()); err != nil {
		return nil, err
	}
	why := "the endpoint names its node"
	if node == "" {
		why = "ibsim's netlist begins with its node"
	}
	return []Choice{{Info: info, Endpoint: "ibsim:" + info.Device, Chosen: true, Why: why}}, nil
}
