package softcma

import "github.com/ibsm/ibsm/ucma"

// illumos does a command as sol_ucma does (sol_ucma.c). Below it is the same
// RDMA CM; what its own library answers differently is done here.
func (x *call) illumos(cmd ucma.Command) error {
	switch cmd := cmd.(type) {
	case ucma.CreateID:
		return x.createIDIllumos(cmd)
	case ucma.DestroyID:
		return x.destroyIDIllumos(cmd.ID)
	case ucma.Listen:
		return x.listenFor(cmd, maxBacklogIllumos)
	case ucma.SetOption:
		return ucma.EINVAL
	case ucma.InitQPAttr:
		if x.linux(cmd) != nil {
			return ucma.EINVAL
		}
		return nil
	case ucma.Connect: // Valid does not matter
		return x.bound(cmd)
	case ucma.Accept:
		return x.acceptIllumos(cmd)
	case ucma.JoinIPMcast:
		if cmd.Addr.Family() != ucma.AFInet || !cmd.Addr.IP.Addr().IsMulticast() {
			return ucma.EINVAL
		}
		return x.bound(cmd)
	case ucma.LeaveMcast:
		if m := x.mcasts.get(cmd.ID); m != nil {
			y := *x
			y.file = m.id.ctx.file // whose it is does not matter
			return y.leaveMcast(cmd.ID)
		}
		return ucma.EINVAL
	}
	return x.linux(cmd)
}

// createIDIllumos gives the number out before it looks at the port space.
func (x *call) createIDIllumos(cmd ucma.CreateID) error {
	t := ucma.QPTypeRC
	switch cmd.PS {
	case ucma.PortSpaceTCP, ucma.PortSpaceSDP, ucma.PortSpaceSCTP:
	case ucma.PortSpaceUDP, ucma.PortSpaceIPoIB:
		t = ucma.QPTypeUD
	default:
		if err := x.newUserID(cmd, t); err != nil {
			return err
		}
		x.destroyCtx(x.now, x.file.ctxs[len(x.file.ctxs)-1])
		return ucma.EINVAL
	}
	return x.newUserID(cmd, t)
}

// destroyIDIllumos empties the queue of the whole file, and is content with an id
// that there is not (sol_ucma_destroy_id).
func (x *call) destroyIDIllumos(num uint32) error {
	ctx := x.ctxs.get(num)
	if ctx == nil {
		return nil
	}
	f := ctx.file
	reported := x.destroyCtx(x.now, ctx)
	for _, u := range f.purge(func(*uevent) bool { return true }) {
		if u.child != nil {
			x.destroyCtx(x.now, u.child)
		}
	}
	return x.store(&ucma.DestroyIDResp{EventsReported: reported})
}

// acceptIllumos leaves the active side alone: its RTU was sent when the REP came
// (sol_ib_cma.c, rdma_ib_accept).
func (x *call) acceptIllumos(cmd ucma.Accept) error {
	ctx, err := x.findDev(x.file, cmd.ID)
	if err != nil {
		return err
	}
	if !cmd.Param.Valid && ctx.id.active {
		return nil
	}
	if !cmd.Param.Valid {
		return ucma.EINVAL
	}
	return x.acceptAs(ctx, cmd)
}
