package ibsim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"syscall"

	"github.com/ibsm/ibsm/mad"
)

// attach makes a link of a new client.
func attach(cfg Config) (*link, error) {
	if err := cfg.complete(os.Getenv("IBSIM_SOCKNAME")); err != nil {
		return nil, err
	}
	fail := func(err error) error {
		e := &Error{Op: opConnect.String(), Socket: cfg.Socket, Node: cfg.Node, Err: err}
		if errors.Is(err, syscall.ECONNREFUSED) {
			e.Err, e.Detail = ErrNotRunning, "start ibsim, or set IBSIM_SOCKNAME as it has it"
		}
		return e
	}
	conn, id, err := openControl(cfg.Socket)
	if err != nil {
		return nil, fail(err)
	}
	ctl := &channel{socket: cfg.Socket, conn: conn, timeout: cfg.timeout}
	// ibsim ends if this socket is not there when it takes the connection.
	data, err := net.ListenUnixgram("unixgram", address(cfg.Socket, "in%d", id))
	if err != nil {
		conn.Close()
		return nil, fail(err)
	}
	got, err := connect(ctl, client{id: id, serve: cfg.Serve, node: cfg.Node})
	if err != nil {
		data.Close()
		conn.Close()
		return nil, err
	}
	ctl.node, ctl.slot = got.node, got.id
	l := newLink(ctl, data)
	if err := l.start(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// openControl finds an id that no other client has: that of the process, by which
// ibsim's console lists it, or any that is too large to be one.
func openControl(socket string) (*net.UnixConn, uint32, error) {
	id := uint32(os.Getpid())
	for {
		conn, err := net.DialUnix("unixgram", address(socket, "ctl%d", id), address(socket, "ctl"))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return conn, id, err
		}
		id = 1<<30 | rand.Uint32()>>2 // ibsim prints it as an int
	}
}

// connect gets a slot. ibsim does not say why it refuses one, so that is found out
// by asking for less.
func connect(ctl *channel, c client) (client, error) {
	got, err := tryConnect(ctl, c)
	if !errors.Is(err, errRefused) {
		return got, err
	}
	refused := func(why error, detail string) (client, error) {
		return got, &Error{Op: opConnect.String(), Socket: ctl.socket, Node: c.node, Detail: detail, Err: why}
	}
	less := c
	for less.serve || less.node != "" {
		var why error
		var detail string
		if less.serve {
			less.serve, why = false, ErrServed
		} else {
			less.node, why, detail = "", ErrNoNode, "name a node by its id in the netlist or by its whole description"
		}
		got, err := tryConnect(ctl, less)
		switch {
		case err == nil:
			ctl.slot = got.id
			if err := ctl.ask(opDisconnect, new([controlData]byte)); err != nil {
				return got, err
			}
			return refused(why, detail)
		case !errors.Is(err, errRefused):
			return got, err
		}
	}
	return refused(ErrNoSlot, "end a client, or free the slot of one that was killed: 'Attached' lists them at ibsim's console, 'X' and a number frees one")
}

func tryConnect(ctl *channel, c client) (got client, err error) {
	var data [controlData]byte
	c.encode(&data)
	if err := ctl.ask(opConnect, &data); err != nil {
		return got, err
	}
	got.decode(&data)
	if got.id >= maxClients {
		return got, &Error{Op: opConnect.String(), Socket: ctl.socket, Node: c.node,
			Detail: fmt.Sprintf("slot %d: there are %d", got.id, maxClients), Err: ErrMalformed}
	}
	return got, nil
}

// start connects the data socket, without which ibsim could have no more than a
// few packets waiting here, looks at the node, and begins to read.
func (l *link) start() error {
	raw, err := l.data.SyscallConn()
	if err != nil {
		return l.ctl.fail(opConnect, err)
	}
	l.raw = raw
	var connectErr error
	err = raw.Control(func(fd uintptr) {
		connectErr = syscall.Connect(int(fd), &syscall.SockaddrUnix{Name: address(l.ctl.socket, "out%d", l.slot).Name})
	})
	if err = errors.Join(err, connectErr); err != nil {
		return l.ctl.fail(opConnect, err)
	}
	var data [controlData]byte
	if err := l.ctl.ask(opNodeInfo, &data); err != nil {
		return err
	}
	l.nodeInfo.DecodeFrom((*[mad.NodeInfoSize]byte)(data[:]))
	if l.nodeDesc, err = l.askNodeDescription(); err != nil {
		return err
	}
	l.work.Go(l.read)
	l.work.Go(l.write)
	return nil
}
