package connect

import (
	"context"
	"encoding/hex"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/ucma"
)

// show prints the commands of one connection, as they would be written to the
// kernel. Names are looked up and a path is asked for all the same, since they
// stand in the commands.
func (r *run) show(ctx context.Context) error {
	var failed error
	if err := r.s.Out.Columns(commandMembers(ucma.OpCreateID, r.dialect, nil, nil)); err != nil {
		return err
	}
	if err := r.s.Out.Text([]byte("# Nothing is written. The kernel gives the id, here 1, and the address of the\n# response, here 0, is put in last.\n")); err != nil {
		return err
	}
	// What the kernel would resolve the address to, as far as it is known here.
	route := mad.PathRecord{PKey: mad.DefaultPKey}
	if ib := r.target.Addr.IB; ib != nil {
		route.DGID, route.PKey = ib.GID, ib.PKey
	} else if r.via != nil {
		r.via = nil
		r.s.Say("an IP address has a GID only when the kernel has resolved it, so the path is the kernel's here")
	}
	open := ucma.Opener(func() (ucma.Device, error) {
		return ucma.NewDryRun(r.dialect, route, func(cmd, mem []byte) {
			if failed != nil {
				return
			}
			h, err := r.dialect.ParseHeader(cmd)
			if err != nil {
				failed = err
				return
			}
			if h.Op != ucma.OpSetOption {
				mem = nil // for the response
			}
			plain, err := r.dialect.DumpCommand(cmd, mem)
			if err == nil {
				err = r.s.Out.Record("Command", commandMembers(h.Op, r.dialect, cmd, mem), []byte(plain))
			}
			failed = err
		}), nil
	})
	c, err := open.Connect(ctx, r.target, ucma.ConnectConfig{
		PortSpace: r.ps, Source: r.source, Path: r.via, PrivateData: r.privateData, QPN: r.qpn, RetryCount: 7, RNRRetryCount: 7,
	})
	if err != nil {
		return err
	}
	err = c.Disconnect(ctx)
	if closeErr := c.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = failed
	}
	return err
}

func commandMembers(op ucma.Op, d *ucma.Dialect, cmd, mem []byte) text.Object {
	return text.Object{
		{Name: "command", Value: op.String()},
		{Name: "number", Value: uint32(op)},
		{Name: "dialect", Value: d.String()},
		{Name: "bytes", Value: hex.EncodeToString(cmd)},
		{Name: "pointsTo", Value: hex.EncodeToString(mem)},
	}
}
