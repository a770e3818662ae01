package capture_test

import (
	"bytes"
	"testing"

	"github.com/ibsm/ibsm/capture"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/port/porttest"
	"github.com/ibsm/ibsm/softmad"
	"github.com/ibsm/ibsm/softmad/softmadtest"
)

// conform runs the suite on softmad behind a decorator. As softmad it has no
// exceptions.
func conform(t *testing.T, run func(*testing.T, porttest.Bench), decorate func(port.Device, *capture.Writer) port.Device) {
	records := 0
	run(t, porttest.Bench{
		Open:       func(t testing.TB) porttest.Pair { return openPair(t, decorate, &records) },
		KernelRMPP: true,
		UserRMPP:   true,
		Silence:    true,
		Serves:     true,
		QP0:        true,
		IsSM:       true,
		Virtual:    true,
	})
	if records < 100 {
		t.Errorf("%d records of the whole suite", records)
	}
}

// openPair makes two traced devices that write one file. It is read in the end,
// and must be whole.
func openPair(t testing.TB, decorate func(port.Device, *capture.Writer) port.Device, records *int) porttest.Pair {
	la, lb := softmadtest.NewPair(nil)
	var file bytes.Buffer
	w := capture.NewWriter(&file)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		*records += len(read(t, file.Bytes()))
	})
	open := func(l softmad.Link) port.Device {
		d, err := softmad.NewDevice(l, softmad.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return decorate(d, w)
	}
	return porttest.Pair{A: open(la), B: open(lb), ToA: la.Addr(), ToB: lb.Addr(), Remove: la.Remove}
}

// portByPort decorates each Port of a device on its own.
type portByPort struct {
	port.Device
	writer *capture.Writer
}

func (d portByPort) Open() (port.Port, error) {
	p, err := d.Device.Open()
	if err != nil {
		return nil, err
	}
	return capture.Port(p, d.Device.Info, d.writer), nil
}

func byPort(d port.Device, w *capture.Writer) port.Device { return portByPort{d, w} }

func TestDeviceContract(t *testing.T) { conform(t, porttest.RunContract, capture.Device) }
func TestDeviceTiming(t *testing.T)   { conform(t, porttest.RunTiming, capture.Device) }
func TestPortContract(t *testing.T)   { conform(t, porttest.RunContract, byPort) }
func TestPortTiming(t *testing.T)     { conform(t, porttest.RunTiming, byPort) }
