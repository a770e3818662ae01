package softcma

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/ibsm/ibsm/cm"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// call is one command of a file, with the memory that it points to.
type call struct {
	*core
	now  time.Time
	file *openFile
	out  int // bytes of the memory that the program offers
	mem  []byte
}

// exec does a command (ucma_write). The error is nil or an Errno.
func (c *core) exec(now time.Time, f *openFile, b, mem []byte) error {
	cmd, err := f.dialect.ParseCommand(b)
	if err != nil {
		return errnoIn(err)
	}
	x := call{core: c, now: now, file: f, out: int(binary.NativeEndian.Uint16(b[6:])), mem: mem}
	if f.isIllumos() {
		return x.illumos(cmd)
	}
	return x.linux(cmd)
}

// errnoIn is the errno in an error of ucma.
func errnoIn(err error) error {
	if errno := ucma.Errno(""); errors.As(err, &errno) {
		return errno
	}
	return ucma.EINVAL
}

// store writes a response where the program wants it, as much as it has room for
// (copy_to_user).
func (x *call) store(r ucma.Response) error {
	b, err := x.file.dialect.AppendResponse(nil, r)
	if err != nil {
		return ucma.EINVAL // an AF_IB address of a Linux file's id, asked for by illumos
	}
	b = b[:min(len(b), x.out)]
	if len(x.mem) < len(b) {
		return ucma.EFAULT
	}
	copy(x.mem, b)
	return nil
}

// linux does a command as Linux 6.12 does (ucma_cmd_table).
func (x *call) linux(cmd ucma.Command) error {
	switch cmd := cmd.(type) {
	case ucma.CreateID:
		return x.createID(cmd)
	case ucma.DestroyID:
		return x.destroyID(cmd.ID)
	case ucma.BindIP:
		return x.bindAddr(cmd.ID, cmd.Addr)
	case ucma.Bind:
		return x.bindAddr(cmd.ID, cmd.Addr)
	case ucma.ResolveIP:
		return x.resolve(cmd.ID, cmd.Src, cmd.Dst, cmd.Timeout)
	case ucma.ResolveAddr:
		return x.resolve(cmd.ID, cmd.Src, cmd.Dst, cmd.Timeout)
	case ucma.QueryRoute:
		return x.withID(cmd.ID, func(ctx *uctx) error { return x.store(x.queryRoute(ctx.id)) })
	case ucma.Query:
		return x.withID(cmd.ID, func(ctx *uctx) error { return x.query(ctx.id, cmd) })
	case ucma.Listen:
		return x.listenFor(cmd, maxBacklogLinux)
	case ucma.GetEvent:
		return x.getEvent()
	case ucma.SetOption:
		return x.setOption(cmd)
	case ucma.Notify:
		return x.withID(cmd.ID, func(ctx *uctx) error { return x.notify(ctx.id, cmd.Event) })
	case ucma.Connect:
		if !cmd.Param.Valid {
			return ucma.EINVAL
		}
	case ucma.Reject:
		switch cmd.Reason {
		case 0, mad.RejectConsumerDefined, mad.RejectVendorOptionNotSupported:
		default:
			return ucma.EINVAL
		}
	case ucma.InitQPAttr:
		if cmd.State > ucma.QPStateErr {
			return ucma.EINVAL
		}
	case ucma.JoinIPMcast:
		if cmd.Addr.Family() == ucma.AFUnspec {
			return ucma.EINVAL
		}
	case ucma.JoinMcast:
		if cmd.Flags > ucma.JoinSendOnlyFullMember {
			return ucma.EINVAL
		}
	case ucma.LeaveMcast:
		return x.leaveMcast(cmd.ID)
	case ucma.MigrateID:
		return x.migrate(cmd)
	}
	return x.bound(cmd)
}

// bound does the commands that need a device.
func (x *call) bound(cmd ucma.Command) error {
	with := func(num uint32, do func(ctx *uctx) error) error {
		ctx, err := x.findDev(x.file, num)
		if err != nil {
			return err
		}
		return do(ctx)
	}
	switch cmd := cmd.(type) {
	case ucma.ResolveRoute:
		return with(cmd.ID, func(ctx *uctx) error { return x.resolveRoute(x.now, ctx.id, cmd.Timeout) })
	case ucma.Connect:
		return with(cmd.ID, func(ctx *uctx) error {
			ctx.id.takeParam(&cmd.Param, cmd.ECE)
			return x.connect(x.now, ctx.id, &cmd.Param)
		})
	case ucma.Accept:
		return with(cmd.ID, func(ctx *uctx) error { return x.acceptAs(ctx, cmd) })
	case ucma.Reject:
		return with(cmd.ID, func(ctx *uctx) error {
			if cmd.Reason == 0 {
				cmd.Reason = mad.RejectConsumerDefined
			}
			return ctx.id.reject(x.now, cmd.Reason, cmd.PrivateData)
		})
	case ucma.Disconnect:
		return with(cmd.ID, func(ctx *uctx) error { return ctx.id.disconnect(x.now) })
	case ucma.InitQPAttr:
		return with(cmd.ID, func(ctx *uctx) error {
			a, err := x.initQPAttr(ctx.id, cmd.State)
			if err != nil {
				return err
			}
			return x.store(&a)
		})
	case ucma.JoinIPMcast:
		return with(cmd.ID, func(ctx *uctx) error { return x.joinMcast(ctx, cmd.UID, cmd.Addr, mad.JoinFullMember) })
	case ucma.JoinMcast:
		state := mad.JoinFullMember
		if cmd.Flags == ucma.JoinSendOnlyFullMember {
			state = mad.JoinSendOnlyFullMember
		}
		return with(cmd.ID, func(ctx *uctx) error { return x.joinMcast(ctx, cmd.UID, cmd.Addr, state) })
	}
	return ucma.EINVAL // RESOLVE_IB_SERVICE and WRITE_CM_EVENT, which 6.12 does not have
}

func (x *call) withID(num uint32, do func(ctx *uctx) error) error {
	ctx, err := x.find(x.file, num)
	if err != nil {
		return err
	}
	return do(ctx)
}

func (x *call) createID(cmd ucma.CreateID) error {
	t := cmd.QPType
	switch cmd.PS {
	case ucma.PortSpaceTCP:
		t = ucma.QPTypeRC
	case ucma.PortSpaceUDP, ucma.PortSpaceIPoIB:
		t = ucma.QPTypeUD
	case ucma.PortSpaceIB:
	default:
		return ucma.EINVAL
	}
	return x.newUserID(cmd, t)
}

func (x *call) newUserID(cmd ucma.CreateID, t ucma.QPType) error {
	ctx := x.newCtx(x.file)
	ctx.uid, ctx.isUD = cmd.UID, t == ucma.QPTypeUD
	ctx.id = x.newID(ctx, cmd.PS, t)
	err := x.store(&ucma.CreateIDResp{ID: ctx.num})
	if err != nil {
		x.destroyCtx(x.now, ctx)
	}
	return err
}

func (x *call) destroyID(num uint32) error {
	ctx := x.ctxs.get(num)
	switch {
	case ctx == nil:
		return ucma.ENOENT
	case ctx.file != x.file:
		return ucma.EINVAL
	}
	return x.store(&ucma.DestroyIDResp{EventsReported: x.destroyCtx(x.now, ctx)})
}

func (x *call) bindAddr(num uint32, addr ucma.Sockaddr) error {
	if addr.Family() == ucma.AFUnspec {
		return ucma.EINVAL
	}
	return x.withID(num, func(ctx *uctx) error { return x.bind(ctx.id, addr) })
}

func (x *call) resolve(num uint32, src, dst ucma.Sockaddr, timeout time.Duration) error {
	if dst.Family() == ucma.AFUnspec {
		return ucma.EINVAL
	}
	return x.withID(num, func(ctx *uctx) error { return x.resolveAddr(x.now, ctx.id, src, dst, timeout) })
}

func (x *call) query(id *cmid, cmd ucma.Query) error {
	spec, ok := x.file.dialect.QuerySpec(cmd.Option)
	switch {
	case !ok || cmd.Option > ucma.QueryGID: // 6.12 has no IB_SERVICE
		return ucma.ENOSYS
	case x.out < spec.MinOut:
		return ucma.ENOSPC
	}
	switch cmd.Option {
	case ucma.QueryAddr:
		return x.store(x.queryAddr(id))
	case ucma.QueryGID:
		return x.store(x.queryGID(id))
	}
	return x.store(x.queryPath(id, cmd.Records))
}

// Limits of LISTEN (net.rdma_ucm.max_backlog; sol_ucma.c).
const (
	maxBacklogLinux   = 1024
	maxBacklogIllumos = 128
)

func (x *call) listenFor(cmd ucma.Listen, most uint32) error {
	return x.withID(cmd.ID, func(ctx *uctx) error {
		ctx.backlog = cmd.Backlog
		if ctx.backlog == 0 || ctx.backlog > most {
			ctx.backlog = most
		}
		return x.listen(ctx.id)
	})
}

func (x *call) getEvent() error {
	if len(x.file.events) == 0 {
		return ucma.EAGAIN
	}
	if err := x.store(&x.file.events[0].resp); err != nil {
		return err
	}
	x.file.fetch()
	return nil
}

func (x *call) notify(id *cmid, what uint32) error {
	if !id.hasDev {
		return ucma.EINVAL
	}
	return id.notify(x.now, what)
}

// takeParam takes what CONNECT and ACCEPT say beside the queue pair
// (ucma_copy_conn_param, rdma_connect_ece).
func (id *cmid) takeParam(p *ucma.ConnParam, ece *ucma.ECE) {
	id.ece = cm.ECE{}
	if ece != nil {
		id.ece = cm.ECE(*ece)
	}
	if id.src.IB == nil {
		p.QKey = 0
	}
}

func (x *call) acceptAs(ctx *uctx, cmd ucma.Accept) error {
	ctx.id.takeParam(&cmd.Param, cmd.ECE)
	if !cmd.Param.Valid {
		return x.accept(x.now, ctx.id, nil)
	}
	err := x.accept(x.now, ctx.id, &cmd.Param)
	if err == nil {
		ctx.uid = cmd.UID
	}
	return err
}

// maxOption is the longest value of an option (KMALLOC_MAX_SIZE).
const maxOption = 4 << 20

func (x *call) setOption(cmd ucma.SetOption) error {
	if cmd.Len > maxOption {
		return ucma.EINVAL
	}
	return x.withID(cmd.ID, func(ctx *uctx) error {
		if int(cmd.Len) > len(x.mem) {
			return ucma.EFAULT
		}
		value := x.mem[:cmd.Len]
		switch {
		case cmd.Level == ucma.OptionLevelID:
			return ctx.id.setOption(cmd.Name, value)
		case cmd.Level == ucma.OptionLevelIB && cmd.Name == ucma.OptionIBPath:
			return x.setIBPath(x.now, ctx.id, value)
		}
		return ucma.ENOSYS
	})
}

// setOption is ucma_set_option_id.
func (id *cmid) setOption(name uint32, value []byte) error {
	size := 1
	switch name {
	case ucma.OptionReuseAddr, ucma.OptionAFOnly:
		size = 4
	case ucma.OptionTOS, ucma.OptionACKTimeout:
	default:
		return ucma.ENOSYS
	}
	if len(value) != size {
		return ucma.EINVAL
	}
	switch name {
	case ucma.OptionTOS:
		id.tos = value[0]
	case ucma.OptionACKTimeout:
		if id.qpType != ucma.QPTypeRC && id.qpType != ucma.QPTypeXRCSend {
			return ucma.EINVAL
		}
		id.ackTimeout, id.ackTimeoutSet = value[0], true
	case ucma.OptionReuseAddr:
		on := binary.NativeEndian.Uint32(value) != 0
		if id.state != stateIdle && (!on || id.state == stateListen) {
			return ucma.EINVAL
		}
		id.reuseAddr = on
	case ucma.OptionAFOnly:
		if id.state != stateIdle && id.state != stateAddrBound {
			return ucma.EINVAL
		}
		id.afOnly, id.afOnlySet = binary.NativeEndian.Uint32(value) != 0, true
	}
	return nil
}

func (x *call) joinMcast(ctx *uctx, uid uint64, addr ucma.Sockaddr, state mad.JoinState) error {
	m := &mcast{uid: uid, id: ctx.id, state: state}
	m.num = x.mcasts.add(m)
	err := x.join(x.now, m, addr)
	if err == nil {
		ctx.mcasts = append(ctx.mcasts, m)
		if err = x.store(&ucma.CreateIDResp{ID: m.num}); err == nil {
			return nil
		}
		x.leave(x.now, m)
		ctx.mcasts = remove(ctx.mcasts, m)
	}
	x.mcasts.drop(m.num, m)
	return err
}

func (x *call) leaveMcast(num uint32) error {
	m := x.mcasts.get(num)
	if m == nil {
		return ucma.ENOENT
	}
	ctx := m.id.ctx
	switch {
	case ctx.file != x.file:
		return ucma.EINVAL
	case ctx.id == nil:
		return ucma.ENXIO
	}
	x.mcasts.drop(num, m)
	ctx.mcasts = remove(ctx.mcasts, m)
	x.leave(x.now, m)
	ctx.file.purge(func(u *uevent) bool { return u.mc == m })
	return x.store(&ucma.DestroyIDResp{EventsReported: m.reported})
}

func (x *call) migrate(cmd ucma.MigrateID) error {
	from := x.files[cmd.FD]
	if from == nil {
		return ucma.ENOENT
	}
	ctx, err := x.find(from, cmd.ID)
	if err != nil {
		return err
	}
	from.ctxs = remove(from.ctxs, ctx)
	x.file.ctxs = append(x.file.ctxs, ctx)
	ctx.file = x.file
	if events := from.purge(func(u *uevent) bool { return u.ctx == ctx }); len(events) > 0 {
		x.file.events = append(x.file.events, events...)
		x.file.rouse()
	}
	x.out = len(x.mem) // what the program says of it is not looked at
	return x.store(&ucma.DestroyIDResp{EventsReported: ctx.reported})
}
