package ucma_test

import (
	"os"
	"testing"

	"github.com/ibsm/ibsm/ucma"
	"github.com/ibsm/ibsm/ucma/ucmatest"
)

// kernelExceptions is what a kernel does otherwise than 6.12, by its series.
var kernelExceptions = map[string][]ucmatest.Exception{
	"6.1": {
		{Name: "access", Value: "0xe", Why: "rxe has RDMA FLUSH since 6.2"},
		{Name: "lifetime", Value: "18", Why: "CMA_IBOE_PACKET_LIFETIME was 18"},
		{Name: "timeout", Value: "19", Why: "which follows from it"},
	},
}

// The suite, on the real RDMA CM.
func TestKernelUCMASuite(t *testing.T) {
	kernel(t)
	ucmatest.Run(t, ucmatest.Bench{
		Host: func(t testing.TB) func() (ucmatest.File, error) {
			return func() (f ucmatest.File, err error) {
				if f.Device, err = ucma.Open(ucma.Config{}); err == nil {
					f.FD, err = ucma.FD(f.Device)
				}
				return f, err
			}
		},
		Except: kernelExceptions[os.Getenv("IBSM_KERNEL")],
	})
}
