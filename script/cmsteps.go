package script

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/ucma"
)

// portSpaceOf are the words of port_space.
var portSpaceOf = map[string]ucma.PortSpace{
	"tcp": ucma.PortSpaceTCP, "udp": ucma.PortSpaceUDP, "ib": ucma.PortSpaceIB, "ipoib": ucma.PortSpaceIPoIB,
}

// connect makes a connection by the RDMA CM, and ends it.
func (t *thread) connect(ctx context.Context, s *Step, b *Connect, d *done) error {
	target, cfg, err := t.aim(ctx, b)
	if err != nil {
		return err
	}
	hold, err := t.vars.duration(ctx, b.Hold, 0)
	if err != nil {
		return err
	}
	if t.opt.DryRun {
		d.detail = fmt.Sprintf("would connect to %v, port space %v", target.Addr, cfg.PortSpace)
		return nil
	}
	open, err := t.opener()
	if err != nil {
		return err
	}
	limited, cancel := t.stepLimit(ctx, s)
	defer cancel()
	start := time.Now()
	c, err := open.Connect(limited, target, cfg)
	took := time.Since(start)
	t.bindConnection(c, took, err)
	if err != nil {
		if ctx.Err() == nil && limited.Err() != nil {
			err = errors.Join(context.Cause(limited), err)
		}
		d.detail = t.mask("not connected: " + whyNot(err).Error())
		if len(s.Expect) > 0 && ctx.Err() == nil {
			return nil // they say whether that is right
		}
		return err
	}
	d.detail = fmt.Sprintf("to %v, QPN 0x%06x to 0x%06x", target, c.LocalQPN, c.RemoteQPN)
	if len(c.PrivateData) > 0 {
		d.detail += ", private data " + printableData(c.PrivateData)
	}
	d.detail = t.mask(d.detail)
	if hold > 0 {
		err = keep(ctx, c, hold)
	}
	if err == nil {
		limited, cancel := t.stepLimit(ctx, s)
		defer cancel()
		err = c.Disconnect(limited)
	}
	return errors.Join(err, c.Close())
}

// whyNot is the cause of a connection that was not made, without the steps before.
func whyNot(err error) error {
	var step *ucma.StepError
	if errors.As(err, &step) {
		return step.Err
	}
	return err
}

// stepLimit is the limit of a step that has none of its own.
func (t *thread) stepLimit(ctx context.Context, s *Step) (context.Context, context.CancelFunc) {
	if s.Timeout > 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, t.file.StepTimeout, &TimeoutError{"the step", t.file.StepTimeout})
}

// opener gives the RDMA CM.
func (t *thread) opener() (ucma.Opener, error) {
	if t.env.CM == nil {
		return nil, errors.New("there is no RDMA CM here")
	}
	return t.cm()
}

// keep waits while a connection is up.
func keep(ctx context.Context, c *ucma.Connection, hold time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, hold)
	defer cancel()
	switch err := c.Wait(limited); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil:
		return nil
	case err == nil:
		return fmt.Errorf("%s ended the connection before hold, %v, was over", c.Peer, hold)
	default:
		return err
	}
}

// bindConnection gives the results of connect their names.
func (t *thread) bindConnection(c *ucma.Connection, took time.Duration, err error) {
	state, reason, code, why := "established", "", 0, ""
	if err != nil {
		state, why = "failed", t.mask(err.Error())
		var rejected *ucma.RejectError
		if errors.As(err, &rejected) {
			reason, code = rejected.Reason.String(), int(rejected.Reason)
		}
	}
	if c == nil {
		c = &ucma.Connection{}
	}
	for name, value := range map[string]any{
		"state": state, "error": why, "latency": took, "reject": reason, "reject_code": code,
		"route": recordOf(&c.Path), "private_data": hex.EncodeToString(c.PrivateData),
		"local_qpn": int(c.LocalQPN), "remote_qpn": int(c.RemoteQPN),
	} {
		t.vars.bind(name, value)
	}
}

// aim finds whom to connect to, and how.
func (t *thread) aim(ctx context.Context, b *Connect) (target ucma.Target, cfg ucma.ConnectConfig, err error) {
	cfg.RetryCount, cfg.RNRRetryCount = 7, 7
	service, err := t.cmService(ctx, b.Service, b.PortSpace)
	if err != nil {
		return target, cfg, err
	}
	cfg.PortSpace = service.space
	if cfg.PrivateData, err = t.privateData(ctx, b.PrivateData); err != nil {
		return target, cfg, err
	}
	qpn, err := t.vars.number(ctx, b.QPN, 0, 0, 1<<24-1)
	if err != nil {
		return target, cfg, err
	}
	cfg.QPN = uint32(qpn)
	if b.Source != nil {
		ip, err := t.ipText(ctx, b.Source)
		if err != nil {
			return target, cfg, err
		}
		cfg.Source = ucma.Sockaddr{IP: netip.AddrPortFrom(ip, 0)}
	}
	info, ethernet, err := t.portInfo()
	if err != nil {
		return target, cfg, err
	}
	if err = t.pathBy(ctx, b.Path, ethernet, &cfg); err != nil {
		return target, cfg, err
	}
	key, err := t.vars.number(ctx, b.PKey, uint64(partition(info, cfg.PathRecord)), 0, 0xffff)
	if err != nil {
		return target, cfg, err
	}
	if b.To == nil {
		target.Addr = service.atGID(cfg.PathRecord.DGID, mad.PKey(key))
		return target, cfg, nil
	}
	if target.Name, err = t.vars.text(ctx, b.To); err != nil {
		return target, cfg, err
	}
	ip, isIP, err := t.hostIP(ctx, target.Name)
	if err != nil {
		return target, cfg, &placedError{b.To.Pos, err}
	}
	if isIP {
		target.Addr, err = service.atIP(ip)
		return target, cfg, err
	}
	gid, err := t.peerGID(ctx, target.Name)
	if err != nil {
		return target, cfg, &placedError{b.To.Pos, err}
	}
	target.Addr = service.atGID(gid, mad.PKey(key))
	return target, cfg, nil
}

// portInfo is that of the own port, and whether there is an SA behind it to ask.
func (t *thread) portInfo() (info port.Info, ethernet bool, err error) {
	if t.env.Device == nil {
		return info, true, nil
	}
	info, err = t.env.Device.Info()
	return info, info.LinkLayer == port.LinkEthernet, err
}

// partition is that of a path, else the first of the port.
func partition(info port.Info, path *mad.PathRecord) mad.PKey {
	if path != nil && path.PKey != 0 {
		return path.PKey
	}
	for _, k := range info.PKeys {
		if k != 0 {
			return k
		}
	}
	return mad.DefaultPKey
}

// pathBy says where the path of a connection comes from.
func (t *thread) pathBy(ctx context.Context, v *Value, ethernet bool, cfg *ucma.ConnectConfig) error {
	if v == nil {
		if !ethernet && t.env.SA != nil {
			cfg.Path = t.env.SA
		}
		return nil
	}
	value, err := t.vars.value(ctx, v)
	if err != nil {
		return &placedError{v.Pos, err}
	}
	word, _ := value.(string)
	switch word {
	case "kernel":
		return nil
	case "sa":
		if t.env.SA == nil {
			return &placedError{v.Pos, errors.New("there is no SA here to ask for a path")}
		}
		cfg.Path = t.env.SA
		return nil
	}
	path, err := pathOf(value)
	if err != nil {
		return &placedError{v.Pos, err}
	}
	cfg.PathRecord = &path
	return nil
}

// printableData is private data for people.
func printableData(b []byte) string {
	if len(bytes.TrimFunc(b, func(c rune) bool { return c >= ' ' && c <= '~' })) == 0 {
		return strconv.Quote(string(b))
	}
	return "hex:" + hex.EncodeToString(b)
}
