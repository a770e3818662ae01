package sa

import (
	"fmt"
	"testing"

	"github.com/ibsm/ibsm/ibsim"
	"github.com/ibsm/ibsm/ibsim/ibsimtest"
)

// OpenSM says to the same requests what our server says, but for what is noted
// there.
func TestIbsimGroupSteps(t *testing.T) {
	takeSteps(t, true, onOpenSM(t))
}

func TestIbsimPathAndService(t *testing.T) {
	client := onOpenSM(t)
	askPathAndService(t, client(2), client(3))
}

// onOpenSM gives clients of OpenSM on a fabric of ibsim, by host.
func onOpenSM(t *testing.T) func(host int) *Client {
	b := ibsimtest.Start(t, ibsimtest.TwoLevel(2, 1, 3), "H-0001")
	return func(host int) *Client {
		dev, err := ibsim.Open(t.Context(), ibsim.Config{Socket: b.Socket, Node: fmt.Sprintf("H-%04d", host)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dev.Close() })
		c, err := NewClient(dev, Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
}
