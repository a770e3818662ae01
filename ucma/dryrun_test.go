package ucma

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/mad"
)

// The commands of a whole connection are those of librdmacm's rdma_connect flow
// (librdmacm/cma.c), in its order; what is shown is what the dialect writes.
func TestDryRun(t *testing.T) {
	path := mad.PathRecord{SGID: mad.MakeGID(mad.DefaultGIDPrefix, 1), DGID: mad.MakeGID(mad.DefaultGIDPrefix, 2), PKey: mad.DefaultPKey, SLID: 1, DLID: 2, MTU: mad.MTU2048}
	to := Sockaddr{IP: netip.MustParseAddrPort("192.0.2.1:7471")}
	for _, tt := range []struct {
		name    string
		dialect *Dialect
		cfg     ConnectConfig
		want    []Op
	}{
		{"linux, kernel's path", Linux, ConnectConfig{}, []Op{OpCreateID, OpResolveAddr, OpResolveRoute, OpQueryRoute, OpQuery, OpInitQPAttr, OpConnect, OpInitQPAttr, OpInitQPAttr, OpAccept, OpDisconnect, OpDestroyID}},
		{"linux, path set", Linux, ConnectConfig{PathRecord: &path}, []Op{OpCreateID, OpResolveAddr, OpSetOption, OpQueryRoute, OpQuery, OpInitQPAttr, OpConnect, OpInitQPAttr, OpInitQPAttr, OpAccept, OpDisconnect, OpDestroyID}},
		{"linux, datagram from an address", Linux, ConnectConfig{PortSpace: PortSpaceUDP, Source: Sockaddr{IP: netip.MustParseAddrPort("192.0.2.2:0")}}, []Op{OpCreateID, OpBind, OpResolveAddr, OpResolveRoute, OpQueryRoute, OpQuery, OpConnect, OpInitQPAttr, OpDestroyID}},
		{"illumos", Illumos, ConnectConfig{PathRecord: &path}, []Op{OpCreateID, OpResolveIP, OpResolveRoute, OpQueryRoute, OpInitQPAttr, OpConnect, OpInitQPAttr, OpInitQPAttr, OpAccept, OpDisconnect, OpDestroyID}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var shown []Op
				events := 0
				open := Opener(func() (Device, error) {
					return NewDryRun(tt.dialect, path, func(cmd, mem []byte) {
						c, err := tt.dialect.ParseCommand(cmd)
						if err != nil {
							t.Fatal(err)
						}
						switch c := c.(type) {
						case GetEvent:
							events++
							return
						case SetOption:
							if paths, err := ParseIBPath(mem); err != nil || len(paths) != 1 || paths[0] != (PathRecData{PathFlags, path}) {
								t.Errorf("path set: %+v, %v", paths, err)
							}
						case InitQPAttr:
							if c.ID != 1 {
								t.Errorf("id %d, want 1", c.ID)
							}
						}
						shown = append(shown, c.Op())
					}), nil
				})
				conn, err := open.Connect(t.Context(), Target{Addr: to}, tt.cfg)
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(conn.Disconnect(t.Context()), conn.Close()); err != nil {
					t.Error(err)
				}
				if !slices.Equal(shown, tt.want) {
					t.Errorf("commands\n%v, want\n%v", shown, tt.want)
				}
				if wantEvents := map[bool]int{true: 4, false: 3}[slices.Contains(tt.want, OpDisconnect)]; events != wantEvents {
					t.Errorf("%d events fetched, want %d", events, wantEvents)
				}
			})
		})
	}
}
