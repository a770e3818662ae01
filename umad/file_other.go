//go:build !linux && !illumos

package umad

import "errors"

// callKernel is never reached: hasNative is false.
func callKernel(uintptr, op, uint32, []byte) (int, error) { return 0, errors.ErrUnsupported }
