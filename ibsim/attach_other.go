//go:build !linux

package ibsim

import (
	"errors"
	"fmt"
	"os"

	"github.com/ibsm/ibsm/softmad"
)

// link is never made here.
type link struct {
	softmad.Link
	slot uint32
}

func attach(cfg Config) (*link, error) {
	if err := cfg.complete(os.Getenv("IBSIM_SOCKNAME")); err != nil {
		return nil, err
	}
	return nil, &Error{
		Op: "connect", Socket: cfg.Socket, Node: cfg.Node,
		Err: fmt.Errorf("%w: ibsim's sockets are in the abstract name space of Linux", errors.ErrUnsupported),
	}
}
