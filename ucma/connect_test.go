package ucma_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// connParam is a struct rdma_ucm_conn_param: qp_num 0, private_data 8, its length 264.
func connParam(qpn uint32, private string, length byte) []byte {
	b := make([]byte, 272)
	binary.NativeEndian.PutUint32(b, qpn)
	copy(b[8:], private)
	b[264] = length
	return b
}

// udParam is a struct rdma_ucm_ud_param: qp_num 0, qkey 4, ah_attr 8 with the DLID at
// 24 in it, private_data 40, its length 296.
func udParam(qpn, qkey uint32, dgid mad.GID, dlid uint16, private string, length byte) []byte {
	b := make([]byte, 304)
	binary.NativeEndian.PutUint32(b, qpn)
	binary.NativeEndian.PutUint32(b[4:], qkey)
	copy(b[8:], dgid[:])
	binary.NativeEndian.PutUint16(b[8+24:], dlid)
	copy(b[40:], private)
	b[296] = length
	return b
}

// fakeSA is a PathSource.
type fakeSA struct {
	path  mad.PathRecord
	err   error
	asked mad.PathRecord
}

func (s *fakeSA) Path(_ context.Context, like mad.PathRecord) (mad.PathRecord, error) {
	s.asked = like
	return s.path, s.err
}

// samplePath has no field that is zero, so that each that is lost is noticed.
func samplePath() mad.PathRecord {
	return mad.PathRecord{
		ServiceID: 0x0000000001061d2f, DGID: fakeDGID, SGID: fakeSGID, DLID: 7, SLID: 3, RawTraffic: true, FlowLabel: 0x12345, HopLimit: 64,
		TClass: 0x20, Reversible: true, NumbPath: 1, PKey: 0x8001, QoSClass: 5, SL: 2, MTUSelector: mad.SelectorExactly, MTU: mad.MTU2048,
		RateSelector: mad.SelectorExactly, Rate: 3, PacketLifeTimeSelector: mad.SelectorExactly, PacketLifeTime: 18, Preference: 1,
	}
}

func names(steps []ucma.Step) (all []string) {
	for _, s := range steps {
		all = append(all, s.Name)
	}
	return all
}

// The whole flow in both dialects: with the kernel's own route, and with a path of the
// SA, which illumos cannot be given.
func TestConnect(t *testing.T) {
	tests := []struct {
		name     string
		d        *ucma.Dialect
		cfg      func(*ucma.ConnectConfig)
		commands []string
		steps    []string
	}{
		{
			"linux, kernel's route", ucma.Linux, func(*ucma.ConnectConfig) {},
			[]string{"CREATE_ID", "RESOLVE_ADDR", "RESOLVE_ROUTE", "QUERY_ROUTE", "QUERY PATH", "INIT_QP_ATTR INIT", "CONNECT", "INIT_QP_ATTR RTR",
				"INIT_QP_ATTR RTS", "ACCEPT 0", "DISCONNECT", "DESTROY_ID"},
			[]string{"open", "create id", "resolve address", "resolve route", "query route", "query path", "QP to INIT", "connect", "QP to RTR",
				"QP to RTS", "establish", "disconnect", "destroy id"},
		},
		{
			"linux, path of the SA", ucma.Linux, func(cfg *ucma.ConnectConfig) { cfg.Path = &fakeSA{path: samplePath()} },
			[]string{"CREATE_ID", "RESOLVE_ADDR", "QUERY_ROUTE", "SET_OPTION", "QUERY_ROUTE", "QUERY PATH", "INIT_QP_ATTR INIT", "CONNECT",
				"INIT_QP_ATTR RTR", "INIT_QP_ATTR RTS", "ACCEPT 0", "DISCONNECT", "DESTROY_ID"},
			[]string{"open", "create id", "resolve address", "take path", "set path", "query route", "query path", "QP to INIT", "connect",
				"QP to RTR", "QP to RTS", "establish", "disconnect", "destroy id"},
		},
		{
			"linux, everything given", ucma.Linux, func(cfg *ucma.ConnectConfig) {
				path, byte8 := samplePath(), uint8(8)
				cfg.PathRecord, cfg.TOS, cfg.ACKTimeout, cfg.Source = &path, &byte8, &byte8, localAddr
			},
			[]string{"CREATE_ID", "SET_OPTION", "SET_OPTION", "BIND", "RESOLVE_ADDR", "SET_OPTION", "QUERY_ROUTE", "QUERY PATH", "INIT_QP_ATTR INIT",
				"CONNECT", "INIT_QP_ATTR RTR", "INIT_QP_ATTR RTS", "ACCEPT 0", "DISCONNECT", "DESTROY_ID"},
			[]string{"open", "create id", "set type of service", "set ACK time-out", "bind", "resolve address", "set path", "query route", "query path",
				"QP to INIT", "connect", "QP to RTR", "QP to RTS", "establish", "disconnect", "destroy id"},
		},
		{
			"illumos", ucma.Illumos, func(cfg *ucma.ConnectConfig) { cfg.Path, cfg.Source = &fakeSA{err: errScript}, localAddr },
			[]string{"CREATE_ID", "BIND_IP", "RESOLVE_IP", "RESOLVE_ROUTE", "QUERY_ROUTE", "INIT_QP_ATTR INIT", "CONNECT", "INIT_QP_ATTR RTR",
				"INIT_QP_ATTR RTS", "ACCEPT 0", "DISCONNECT", "DESTROY_ID"},
			[]string{"open", "create id", "bind", "resolve address", "take path", "resolve route", "query route", "QP to INIT", "connect", "QP to RTR",
				"QP to RTS", "establish", "disconnect", "destroy id"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(tt.d)
			var written ucma.ConnParam
			f.script(ucma.OpConnect, func(f *fakeKernel, cmd ucma.Command) error {
				written = cmd.(ucma.Connect).Param
				f.send(f.event(idOf(cmd), ucma.EventConnectResponse, 0, connParam(0x1234, "welcome", 196)...))
				return nil
			})
			var told []ucma.Step
			cfg := ucma.ConnectConfig{PrivateData: []byte("hello"), InitiatorDepth: 3, Progress: func(s ucma.Step) { told = append(told, s) }}
			tt.cfg(&cfg)
			c, err := f.opener().Connect(t.Context(), ucma.Target{Addr: peerAddr}, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if c.RemoteQPN != 0x1234 || string(c.PrivateData) != "welcome" || len(c.Param.PrivateData) != 196 || c.Peer != "192.0.2.2:7471" {
				t.Errorf("the peer is %+v", c)
			}
			if string(written.PrivateData) != "hello" || written.InitiatorDepth != 3 || written.QPNum != c.LocalQPN || c.LocalQPN < 0x800000 || c.LocalQPN > 0xffffff {
				t.Errorf("CONNECT with %+v, own QPN %#x", written, c.LocalQPN)
			}
			if c.Init.State != ucma.QPStateInit || c.RTR.State != ucma.QPStateRTR || c.RTS.State != ucma.QPStateRTS {
				t.Errorf("QP attributes %v %v %v", c.Init.State, c.RTR.State, c.RTS.State)
			}
			if fed := slices.Contains(tt.steps, "set path"); fed != (c.Fed != nil) || fed && (*c.Fed != samplePath() || c.Path.DLID != 7) || !fed && c.Path.DLID != 9 {
				t.Errorf("path fed %+v, reported %+v", c.Fed, c.Path)
			}
			if err := errors.Join(c.Disconnect(t.Context()), c.Wait(t.Context()), c.Close(), c.Close()); err != nil {
				t.Error(err)
			}
			if got := f.commands(); !slices.Equal(got, tt.commands) {
				t.Errorf("commands\n got %v\nwant %v", got, tt.commands)
			}
			if got := names(c.Steps()); !slices.Equal(got, tt.steps) || !slices.Equal(names(told), tt.steps) {
				t.Errorf("steps\n got %v\ntold %v\nwant %v", got, names(told), tt.steps)
			}
			f.leftBehind(t)
		})
	}
}

// The SA is asked for the GIDs that the kernel resolved, and for the service.
func TestPathQuery(t *testing.T) {
	for _, tt := range []struct {
		ps   ucma.PortSpace
		addr ucma.Sockaddr
		want uint64
	}{
		{ucma.PortSpaceTCP, peerAddr, 0x0000000001061d2f}, // rdma_cm.h: port space << 16 | port
		{ucma.PortSpaceUDP, peerAddr, 0x0000000001111d2f},
		{ucma.PortSpaceTCP, ucma.IBAddr(fakeDGID, 0xffff, ucma.PortSpaceIB, 0x1d2f), 0x00000000013f1d2f},
	} {
		sa := &fakeSA{err: errScript}
		f := newFake(ucma.Linux)
		_, err := f.opener().Connect(t.Context(), ucma.Target{Addr: tt.addr}, ucma.ConnectConfig{PortSpace: tt.ps, Path: sa})
		var failed *ucma.StepError
		if !errors.Is(err, errScript) || !errors.As(err, &failed) || failed.Step != ucma.StepTakePath {
			t.Errorf("error %v, want the SA's at %q", err, ucma.StepTakePath)
		}
		want := mad.PathRecord{SGID: fakeSGID, DGID: fakeDGID, PKey: 0xffff, ServiceID: tt.want, Reversible: true, NumbPath: 1}
		if sa.asked != want {
			t.Errorf("asked for %+v, want %+v", sa.asked, want)
		}
		f.leftBehind(t)
	}
}

// What the kernel keeps of a path: all but ServiceID and QoSClass in QUERY_ROUTE, and on
// Ethernet no LIDs (uverbs_marshall.c); there the MAC address lies over them in QUERY
// PATH (ib_sa.h, struct sa_path_rec).
func TestPathCompared(t *testing.T) {
	tests := []struct {
		name    string
		change  func(route *ucma.UserPathRec, path *mad.PathRecord)
		command string // that disagrees; "" is none
		fields  []string
	}{
		{"kept", func(*ucma.UserPathRec, *mad.PathRecord) {}, "", nil},
		{"Ethernet", func(r *ucma.UserPathRec, p *mad.PathRecord) {
			r.DLID, r.SLID, r.RawTraffic = 0, 0, 0
			p.DLID, p.SLID, p.RawTraffic = 0x0142, 0xac11, false
		}, "", nil},
		{"another LID and SL", func(r *ucma.UserPathRec, _ *mad.PathRecord) { r.DLID, r.SL = 8, 3 }, "QUERY_ROUTE", []string{"DLID", "SL"}},
		{"another P_Key", func(r *ucma.UserPathRec, _ *mad.PathRecord) { r.PKey = 0xffff }, "QUERY_ROUTE", []string{"PKey"}},
		{"another service", func(_ *ucma.UserPathRec, p *mad.PathRecord) { p.ServiceID, p.QoSClass = 0, 0 }, "QUERY PATH", []string{"ServiceID", "QoSClass"}},
		{"another LID in the second", func(_ *ucma.UserPathRec, p *mad.PathRecord) { p.SLID = 4 }, "QUERY PATH", []string{"SLID"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(ucma.Linux)
			f.report = tt.change
			path := samplePath()
			c, err := f.opener().Connect(t.Context(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{PathRecord: &path})
			if tt.command == "" {
				if err != nil {
					t.Fatal(err)
				}
				c.Close()
				return
			}
			var bad *ucma.PathMismatchError
			if !errors.As(err, &bad) {
				t.Fatalf("error %v, want a *PathMismatchError", err)
			}
			var fields []string
			for _, m := range bad.Fields {
				fields = append(fields, m.Name)
			}
			if bad.Command != tt.command || !slices.Equal(fields, tt.fields) {
				t.Errorf("%s: fields %v; want %s: %v", bad.Command, fields, tt.command, tt.fields)
			}
			f.leftBehind(t)
		})
	}
}

// Paths that are refused before they are set: the widths are those of the IBA's
// PathRecord (15.2.5.16), and a kernel that is given more cuts it off (sa_query.c,
// path_rec_table).
func TestPathRefused(t *testing.T) {
	for _, tt := range []struct {
		change func(p *mad.PathRecord)
		roce   bool
		want   string // in the message; "": it is taken
	}{
		{func(p *mad.PathRecord) { p.SL = 99 }, false, "SET_OPTION: SL: 99 (linux: EINVAL): it has 4 bits: at most 15"},
		{func(p *mad.PathRecord) { p.MTU = 200 }, false, "it has 6 bits: at most 63"},
		{func(p *mad.PathRecord) { p.FlowLabel = 1<<32 - 1 }, false, "FlowLabel: 4294967295 (linux: EINVAL): it has 20 bits: at most 1048575"},
		{func(p *mad.PathRecord) { p.QoSClass = 0x1000 }, false, "QoSClass: 4096 (linux: EINVAL): it has 12 bits: at most 4095"},
		{func(p *mad.PathRecord) { p.SL, p.FlowLabel, p.QoSClass = 15, 0xfffff, 0xfff }, false, ""},
		{func(p *mad.PathRecord) { p.DLID, p.SLID = 0, 0 }, false, "DLID: 0 (linux: EINVAL): a path between InfiniBand ports has LIDs"},
		{func(p *mad.PathRecord) { p.SLID = 0 }, false, "SLID: 0 (linux: EINVAL): a path between InfiniBand ports has LIDs"},
		{func(p *mad.PathRecord) { p.DLID, p.SLID, p.RawTraffic = 0, 0, false }, true, ""},
	} {
		f := newFake(ucma.Linux)
		f.roce = tt.roce
		path := samplePath()
		tt.change(&path)
		c, err := f.opener().Connect(t.Context(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{PathRecord: &path, Source: localAddr})
		var failed *ucma.StepError
		switch {
		case tt.want == "" && err != nil:
			t.Error(err)
		case tt.want == "":
			c.Close()
		case !errors.As(err, &failed) || failed.Step != ucma.StepSetPath || !strings.Contains(err.Error(), tt.want):
			t.Errorf("error %v, want %q at %q", err, tt.want, ucma.StepSetPath)
		case slices.Contains(f.commands(), "SET_OPTION"):
			t.Errorf("%v: but it was set", err)
		}
		f.leftBehind(t)
	}
}

// A second path that nobody set.
func TestPathsCounted(t *testing.T) {
	f := newFake(ucma.Linux)
	f.script(ucma.OpSetOption, func(f *fakeKernel, cmd ucma.Command) error {
		f.set(idOf(cmd), func(o *fakeObject) { o.path = append(o.path, o.path[0]) })
		f.send(f.event(idOf(cmd), ucma.EventRouteResolved, 0))
		return nil
	})
	path := samplePath()
	_, err := f.opener().Connect(t.Context(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{PathRecord: &path})
	var bad *ucma.PathMismatchError
	if !errors.As(err, &bad) || bad.Error() != "QUERY_ROUTE does not report the path that was set: number of paths is 2, set was 1" {
		t.Errorf("error %v", err)
	}
	f.leftBehind(t)
}

// Every command that fails ends the flow at its step, with the errno, and leaves nothing.
func TestConnectCommandFails(t *testing.T) {
	dialects(t, func(t *testing.T, d *ucma.Dialect) {
		steps := map[ucma.Op]string{
			ucma.OpCreateID: "create id", ucma.OpBind: "bind", ucma.OpBindIP: "bind", ucma.OpResolveAddr: "resolve address",
			ucma.OpResolveIP: "resolve address", ucma.OpResolveRoute: "resolve route", ucma.OpQueryRoute: "query route", ucma.OpQuery: "query path",
			ucma.OpInitQPAttr: "QP to INIT", ucma.OpConnect: "connect", ucma.OpAccept: "establish",
		}
		for op, step := range steps {
			if _, ok := d.Spec(op); !ok || d == ucma.Linux && (op == ucma.OpBindIP || op == ucma.OpResolveIP) {
				continue
			}
			t.Run(op.String(), func(t *testing.T) {
				f := newFake(d)
				f.refuse(op, ucma.ENODEV)
				_, err := f.opener().Connect(t.Context(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{Source: localAddr})
				var failed *ucma.StepError
				if !errors.As(err, &failed) || failed.Step != step || !errors.Is(err, ucma.ENODEV) || failed.Peer != "192.0.2.2:7471" {
					t.Errorf("error %v, want ENODEV at %q", err, step)
				}
				if n := len(failed.Steps); n == 0 || failed.Steps[n-1].Name != step || failed.Steps[n-1].Err == nil {
					t.Errorf("steps %v", failed.Steps)
				}
				f.leftBehind(t)
			})
		}
	})
}

// What events tell of a failure, by type and text (IBA 12.6.7.2 for the reasons).
func TestConnectEventFails(t *testing.T) {
	private := "busy until noon"
	tests := []struct {
		op     ucma.Op
		event  ucma.EventType
		status int32
		data   []byte
		ps     ucma.PortSpace
		step   string
		check  func(err error) bool
		text   string
	}{
		{ucma.OpResolveAddr, ucma.EventAddrError, -113, nil, ucma.PortSpaceTCP, "resolve address",
			func(err error) bool { return errors.Is(err, ucma.EHOSTUNREACH) }, "ADDR_ERROR: EHOSTUNREACH"},
		{ucma.OpResolveAddr, ucma.EventAddrError, -110, nil, ucma.PortSpaceTCP, "resolve address",
			func(err error) bool { return errors.Is(err, ucma.ErrTimeout) }, "ADDR_ERROR: ETIMEDOUT"},
		{ucma.OpResolveRoute, ucma.EventRouteError, -22, nil, ucma.PortSpaceTCP, "resolve route",
			func(err error) bool { return errors.Is(err, ucma.EINVAL) && !errors.Is(err, ucma.ErrTimeout) }, "the SA gave no path"},
		{ucma.OpConnect, ucma.EventRejected, 8, connParam(0, "", 148), ucma.PortSpaceTCP, "connect",
			func(err error) bool {
				var r *ucma.RejectError
				return errors.As(err, &r) && r.Reason == mad.RejectInvalidServiceID && len(r.PrivateData) == 0
			}, "rejected: invalid service ID (8): nobody listens there"},
		{ucma.OpConnect, ucma.EventRejected, 28, connParam(0, private, 148), ucma.PortSpaceTCP, "connect",
			func(err error) bool {
				var r *ucma.RejectError
				return errors.As(err, &r) && r.Reason == mad.RejectConsumerDefined && string(r.PrivateData) == private
			}, `with private data "busy until noon"`},
		{ucma.OpConnect, ucma.EventUnreachable, -110, nil, ucma.PortSpaceTCP, "connect",
			func(err error) bool {
				var u *ucma.UnreachableError
				return errors.As(err, &u) && u.Status == -110 && errors.Is(err, ucma.ErrTimeout) && errors.Is(err, ucma.ETIMEDOUT)
			}, "unreachable: ETIMEDOUT"},
		{ucma.OpConnect, ucma.EventUnreachable, 1, nil, ucma.PortSpaceUDP, "connect",
			func(err error) bool {
				var u *ucma.UnreachableError
				return errors.As(err, &u) && u.SIDRStatus == mad.SIDRStatusUnsupported && !errors.Is(err, ucma.ErrTimeout)
			}, "the peer gives no queue pair: service ID not supported (1)"},
		{ucma.OpConnect, ucma.EventDeviceRemoval, 0, nil, ucma.PortSpaceTCP, "connect",
			func(err error) bool { return errors.Is(err, ucma.ErrGone) }, "DEVICE_REMOVAL"},
		{ucma.OpConnect, ucma.EventDisconnected, 0, nil, ucma.PortSpaceTCP, "connect",
			func(err error) bool {
				var e *ucma.EventError
				return errors.As(err, &e) && e.Event == ucma.EventDisconnected
			}, "DISCONNECTED instead of CONNECT_RESPONSE"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.event, " ", tt.status), func(t *testing.T) {
			f := newFake(ucma.Linux)
			f.reply(tt.op, tt.event, tt.status, tt.data...)
			_, err := f.opener().Connect(t.Context(), ucma.Target{Addr: peerAddr, Name: "h8"}, ucma.ConnectConfig{PortSpace: tt.ps})
			var failed *ucma.StepError
			if !errors.As(err, &failed) || failed.Step != tt.step || failed.Peer != "h8" || !tt.check(err) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v; want %q at %q", err, tt.text, tt.step)
			}
			if hasPath := tt.step == "connect"; hasPath != (failed.Path != nil) || hasPath && failed.Path.DLID != 9 {
				t.Errorf("the path of the error is %+v", failed.Path)
			}
			f.leftBehind(t)
		})
	}
}

// On illumos an errno has another number (sys/errno.h: ETIMEDOUT is 145).
func TestIllumosErrno(t *testing.T) {
	f := newFake(ucma.Illumos)
	f.reply(ucma.OpConnect, ucma.EventUnreachable, -145)
	if _, err := f.opener().Connect(t.Context(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{}); !errors.Is(err, ucma.ErrTimeout) {
		t.Errorf("error %v, want a time-out", err)
	}
	f.leftBehind(t)
}

// The context ends each wait, at once, and everything is cleaned up.
func TestConnectContext(t *testing.T) {
	for op, step := range map[ucma.Op]string{ucma.OpResolveAddr: "resolve address", ucma.OpResolveRoute: "resolve route", ucma.OpConnect: "connect"} {
		t.Run(op.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(ucma.Linux)
				f.silence(op)
				ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
				defer cancel()
				start := time.Now()
				_, err := f.opener().Connect(ctx, ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{})
				var failed *ucma.StepError
				if !errors.As(err, &failed) || failed.Step != step || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ucma.ErrTimeout) {
					t.Errorf("error %v, want the deadline at %q", err, step)
				}
				if got := time.Since(start); got != 7*time.Second {
					t.Errorf("after %v, want 7 s", got)
				}
				if last := failed.Steps[len(failed.Steps)-1]; last.Duration != 7*time.Second {
					t.Errorf("the step took %v, want 7 s", last.Duration)
				}
				f.leftBehind(t)
			})
		})
	}
}

func TestConnectOpenFails(t *testing.T) {
	_, err := ucma.Opener(func() (ucma.Device, error) { return nil, errScript }).Connect(t.Context(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{})
	var failed *ucma.StepError
	if !errors.As(err, &failed) || failed.Step != ucma.StepOpen || !errors.Is(err, errScript) {
		t.Errorf("error %v, want that of the opener", err)
	}
}

func TestConnectMany(t *testing.T) {
	const n = 500
	var all sync.WaitGroup
	var mu sync.Mutex
	qpns := map[uint32]bool{}
	for range n {
		all.Go(func() {
			f := newFake(ucma.Linux)
			c, err := f.opener().Connect(t.Context(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{Path: &fakeSA{path: samplePath()}})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			qpns[c.LocalQPN] = true
			mu.Unlock()
			if err := errors.Join(c.Disconnect(t.Context()), c.Close()); err != nil {
				t.Error(err)
			}
			f.leftBehind(t)
		})
	}
	all.Wait()
	if len(qpns) != n {
		t.Errorf("%d different QPNs for %d connections", len(qpns), n)
	}
}

// A datagram id finds the queue pair of a service: SIDR.
func TestConnectDatagram(t *testing.T) {
	dialects(t, func(t *testing.T, d *ucma.Dialect) {
		f := newFake(d)
		f.reply(ucma.OpConnect, ucma.EventEstablished, 0, udParam(0x4711, 0x01234567, fakeDGID, 9, "data", 136)...)
		c, err := f.opener().Connect(t.Context(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{PortSpace: ucma.PortSpaceUDP, PrivateData: make([]byte, 56)})
		if err != nil {
			t.Fatal(err)
		}
		if c.RemoteQPN != 0x4711 || c.UD.QKey != 0x01234567 || c.UD.AH.DLID != 9 || c.UD.AH.GRH.DGID != fakeDGID || string(c.PrivateData) != "data" {
			t.Errorf("the remote queue pair is %+v", c.UD)
		}
		if err := errors.Join(c.Disconnect(t.Context()), c.Close()); err != nil {
			t.Error(err)
		}
		if log := f.commands(); slices.Contains(log, "DISCONNECT") || slices.Contains(log, "ACCEPT 0") {
			t.Errorf("commands %v: a datagram id has no connection", log)
		}
		f.leftBehind(t)
	})
}

func TestTargetText(t *testing.T) {
	for want, target := range map[string]ucma.Target{
		"h8":                                     {Name: "h8", Addr: peerAddr},
		"192.0.2.2:7471":                         {Addr: peerAddr},
		"gid fe80::2 service 0x0000000001061d2f": {Addr: ucma.IBAddr(fakeDGID, 0xffff, ucma.PortSpaceTCP, 7471)},
		"[fd00::2]:7471":                         {Addr: ucma.Sockaddr{IP: netip.MustParseAddrPort("[fd00::2]:7471")}},
	} {
		if got := target.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
