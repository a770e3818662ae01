package ucma_test

import (
	"strings"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

func TestErrorText(t *testing.T) {
	path := mad.PathRecord{SLID: 1, DLID: 9, MTU: mad.MTU2048, Rate: 3, PKey: 0xffff}
	refused := &ucma.IDError{ID: 3, State: ucma.StateAddrResolved, Err: &ucma.CommandError{Dialect: ucma.Linux, Op: ucma.OpSetOption, Err: ucma.ENODEV}}
	for want, err := range map[string]error{
		"id 3 (ADDR_RESOLVED): SET_OPTION (linux: ENODEV)": refused,
		"set path (h8, path LID 1 to LID 9, MTU 2048, 10 Gb/s, SL 0, P_Key 0xffff): id 3 (ADDR_RESOLVED): SET_OPTION (linux: ENODEV)": &ucma.StepError{
			Step: ucma.StepSetPath, Peer: "h8", Path: &path, Err: refused},
		"resolve address (h8): ADDR_ERROR: EHOSTUNREACH: no route to the address, nobody has it, or no RDMA device leads there": &ucma.StepError{
			Step: ucma.StepResolveAddr, Peer: "h8", Err: &ucma.EventError{Event: ucma.EventAddrError, Err: ucma.EHOSTUNREACH}},
		"rejected: stale connection (10): the peer has a connection with this QPN, or had one a moment ago": &ucma.RejectError{Reason: mad.RejectStaleConn},
		"QUERY PATH does not report the path that was set: SL is 0, set was 3, PKey is 0x7fff, set was 0xffff": &ucma.PathMismatchError{
			Command: "QUERY PATH", Fields: []ucma.FieldMismatch{{Name: "SL", Fed: "3", Reported: "0"}, {Name: "PKey", Fed: "0xffff", Reported: "0x7fff"}}},
	} {
		if err.Error() != want {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
	}
}

// What an errno means for a command: cma.c, cm.c, ucma.c.
func TestHints(t *testing.T) {
	for _, tt := range []struct {
		op    ucma.Op
		errno ucma.Errno
		want  string
	}{
		{ucma.OpBind, ucma.EADDRNOTAVAIL, "somebody listens at that port of all addresses"},
		{ucma.OpBind, ucma.ENODEV, "the interface with that address has no RDMA device"},
		{ucma.OpResolveAddr, ucma.ENODEV, "as for a multicast GID, which needs a source"},
		{ucma.OpResolveAddr, ucma.EPROTONOSUPPORT, "only an id of that or of IB takes it"},
		{ucma.OpResolveAddr, ucma.EINVAL, "or a link-local address has no ScopeID"},
		{ucma.OpResolveRoute, ucma.EAGAIN, "the port has no subnet manager: start one, or wait for it"},
		{ucma.OpConnect, ucma.ENOENT, "the P_Key of the path is not in the port's table, or the id is gone"},
		{ucma.OpConnect, ucma.EINVAL, "or its values are out of range"},
		{ucma.OpInitQPAttr, ucma.EINVAL, "the peer has given up meanwhile"},
		{ucma.OpResolveRoute, ucma.ENXIO, "the device has been removed; only DESTROY_ID is left"},
	} {
		f := newFake(ucma.Linux)
		f.refuse(tt.op, tt.errno)
		_, err := f.opener().Connect(t.Context(), ucma.Target{Addr: peerAddr}, ucma.ConnectConfig{Source: localAddr})
		if err == nil || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%v, want %q at the end", err, tt.want)
		}
	}
}
