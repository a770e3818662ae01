package script

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// FaultInjector makes a simulated fabric misbehave until it is told otherwise. at is the
// port at one end of a link, as node[port], or all; what a link does, it does in both
// directions. Shares are from 0 to 1. Errors say what is not there: no such port, node or
// fault.
type FaultInjector interface {
	// Link cuts a link, or with up puts it back.
	Link(at string, up bool) error
	// Loss, Duplicate, Reorder and Delay set what a link does to MADs; 0 ends it.
	Loss(at string, share float64) error
	Duplicate(at string, share float64) error
	Reorder(at string, share float64) error
	Delay(at string, by time.Duration) error
	// Reboot has a node start anew.
	Reboot(node string) error
	// Sweep sets up all nodes again, as a subnet manager does.
	Sweep() error
	// SMA and SA switch a named fault of all SM agents, or of the SA.
	SMA(fault string, on bool) error
	SA(fault string, on bool) error
}

// fault has the fabric misbehave, or stop it.
func (t *thread) fault(ctx context.Context, b *Fault, d *done) error {
	if t.opt.DryRun {
		d.detail = "not done"
		return nil
	}
	f := t.env.Faults
	if f == nil {
		return errors.New("the fabric is not simulated, or takes no faults")
	}
	switch {
	case b.Link != nil:
		at, err := t.vars.text(ctx, b.Link)
		if err != nil {
			return err
		}
		return t.linkFault(ctx, f, at, b, d)
	case b.Reboot != nil:
		node, err := t.vars.text(ctx, b.Reboot)
		if err != nil {
			return err
		}
		d.detail = "reboot " + node
		return placed(b.Reboot, f.Reboot(node))
	case b.Sweep != nil:
		do, err := t.vars.flag(ctx, b.Sweep, false)
		if err != nil || !do {
			return err
		}
		d.detail = "sweep"
		return f.Sweep()
	}
	off, err := t.vars.flag(ctx, b.Off, false)
	if err != nil {
		return err
	}
	for _, named := range []struct {
		*Value
		of string
		do func(string, bool) error
	}{{b.SMA, "SM agents", f.SMA}, {b.SA, "SA", f.SA}} {
		if named.Value == nil {
			continue
		}
		name, err := t.vars.text(ctx, named.Value)
		if err != nil {
			return err
		}
		if err := placed(named.Value, named.do(name, !off)); err != nil {
			return err
		}
		d.detail = fmt.Sprintf("%s of the %s %s", name, named.of, map[bool]string{false: "on", true: "off"}[off])
	}
	return nil
}

// linkFault does to a link, or all of them, what the step says.
func (t *thread) linkFault(ctx context.Context, f FaultInjector, at string, b *Fault, d *done) error {
	d.detail = at
	for _, k := range []struct {
		*Value
		what string
		up   bool
	}{{b.Down, "down", false}, {b.Up, "up", true}} {
		do, err := t.vars.flag(ctx, k.Value, false)
		if err != nil {
			return err
		}
		if do {
			d.detail += " " + k.what
			if err := placed(b.Link, f.Link(at, k.up)); err != nil {
				return err
			}
		}
	}
	for _, k := range []struct {
		*Value
		what string
		set  func(string, float64) error
	}{{b.Loss, "loss", f.Loss}, {b.Duplicate, "duplicate", f.Duplicate}, {b.Reorder, "reorder", f.Reorder}} {
		if k.Value == nil {
			continue
		}
		value, err := t.vars.value(ctx, k.Value)
		if err != nil {
			return err
		}
		share, ok := float(value)
		if !ok || !(share >= 0 && share <= 1) {
			return valueError(k.Value, value, "it takes a share from 0 to 1")
		}
		d.detail += fmt.Sprintf(" %s %v", k.what, share)
		if err := placed(b.Link, k.set(at, share)); err != nil {
			return err
		}
	}
	if b.Delay == nil {
		return nil
	}
	by, err := t.vars.duration(ctx, b.Delay, 0)
	if err != nil {
		return err
	}
	d.detail += fmt.Sprintf(" delay %v", by)
	return placed(b.Link, f.Delay(at, by))
}

// placed puts an error at the place of a value.
func placed(v *Value, err error) error {
	if err == nil {
		return nil
	}
	return &placedError{v.Pos, err}
}
