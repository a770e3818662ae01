//go:build !linux && !illumos

package ucma

import (
	"context"
	"errors"
)

// systemDialect: there is none, and Open says so.
var systemDialect *Dialect

func writeFile(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

func (k *kernelDevice) wait(context.Context) error { return errors.ErrUnsupported }
