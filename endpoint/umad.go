package endpoint

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/umad"
)

// NoPortError says why no port of this machine was chosen.
type NoPortError struct {
	Choices []Choice // the ports that there are, with why each was passed over
}

func (e *NoPortError) Error() string {
	const instead = "; to stand elsewhere name it with --on or IBSM_ON, such as --on sim:demo for a simulated fabric"
	if len(e.Choices) == 0 {
		return "this machine has no InfiniBand port: its adapter, or the driver of it, is missing" + instead
	}
	var why []string
	for _, c := range e.Choices {
		why = append(why, fmt.Sprintf("%s/%d: %s", c.Info.Device, c.Info.Port, c.Why))
	}
	return "no port of this machine was chosen: " + strings.Join(why, "; ") + instead
}

func (c Config) openUMAD(_ context.Context, rest string) (port.Device, error) {
	choices, err := c.chooseUMAD(rest)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(choices, func(c Choice) bool { return c.Chosen })
	if i < 0 {
		return nil, &NoPortError{choices}
	}
	dev, err := umad.Open(c.UMAD, choices[i].Info.Device, choices[i].Info.Port)
	if err != nil {
		return nil, err // and no device in the interface
	}
	return &umadDevice{dev}, nil
}

// umadDevice is a port of this machine, beside which its RDMA CM is.
type umadDevice struct{ *umad.Device }

// listUMAD lists the ports of DEVICE, or all there are.
func (c Config) listUMAD(_ context.Context, rest string) ([]Choice, error) {
	choices, err := c.chooseUMAD(rest)
	if err != nil {
		return nil, err
	}
	device, num, _ := parseUMAD(rest)
	named := func(c Choice) bool {
		return (device == "" || c.Info.Device == device) && (num == umad.Any || int(c.Info.Port) == num)
	}
	if !slices.ContainsFunc(choices, named) {
		return nil, &NoPortError{choices}
	}
	if device != "" {
		choices = slices.DeleteFunc(choices, func(c Choice) bool { return c.Info.Device != device })
	}
	return choices, nil
}

func (c Config) chooseUMAD(rest string) ([]Choice, error) {
	device, num, err := parseUMAD(rest)
	if err != nil {
		return nil, err
	}
	ports, err := umad.Ports(c.UMAD)
	if err != nil {
		return nil, fmt.Errorf("%w; for a simulated fabric write --on sim:demo", err)
	}
	var choices []Choice
	for _, p := range umad.Choose(ports, device, num) {
		choices = append(choices, Choice{
			Info:     p.Info,
			Endpoint: fmt.Sprintf("umad:%s/%d", p.Device, p.Port),
			Chosen:   p.Chosen, Why: p.Why, GIDTypes: p.GIDTypes, Notes: p.Notes,
		})
	}
	return choices, nil
}

// parseUMAD reads [DEVICE][/PORT].
func parseUMAD(rest string) (device string, num int, err error) {
	device, text, found := strings.Cut(rest, "/")
	if !found {
		return device, umad.Any, nil
	}
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil {
		return "", 0, fmt.Errorf("%q is no port number: write umad:DEVICE/PORT, such as umad:mlx5_0/1", text)
	}
	return device, int(n), nil
}
