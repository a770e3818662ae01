package ucma

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibsm/ibsm/mad"
)

var dialects = []*Dialect{Linux, Illumos}

// goldenFile reads what the C programs in testdata/golden have written.
func goldenFile(t testing.TB, d *Dialect) map[string][]byte {
	t.Helper()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the golden files are those of a little-endian machine")
	}
	a, err := txtar.ParseFile(filepath.Join("testdata", "golden", d.name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string][]byte)
	for _, f := range a.Files {
		sections[f.Name] = f.Data
		if f.Name == "offsets" {
			continue
		}
		b, err := hex.DecodeString(strings.Join(strings.Fields(string(f.Data)), ""))
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		sections[f.Name] = b
	}
	return sections
}

// The values that golden.h gives.

func counted(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 0xb0 + byte(i)
	}
	return b
}

var (
	gid1 = mad.GID{0xfe, 0x80, 9: 0x02, 10: 0xc9, 11: 0x03, 14: 0x12, 15: 0x01}
	gid2 = mad.GID{0xfe, 0x80, 9: 0x02, 10: 0xc9, 11: 0x03, 14: 0x12, 15: 0x02}

	goldenECE  = ECE{VendorID: 0x41424344, AttrMod: 0x51525354}
	goldenPath = mad.PathRecord{
		ServiceID: 0x0000000001061c06, DGID: gid2, SGID: gid1, DLID: 0x0203, SLID: 0x0405, RawTraffic: true,
		FlowLabel: 0xabcde, HopLimit: 64, TClass: 0x20, Reversible: true, NumbPath: 3, PKey: 0xfffe, QoSClass: 0x123, SL: 2,
		MTUSelector: 2, MTU: 4, RateSelector: 1, Rate: 7, PacketLifeTimeSelector: 3, PacketLifeTime: 18, Preference: 9,
	}
	goldenAH = AHAttr{
		GRH:  GlobalRoute{DGID: gid2, FlowLabel: 0xabcde, SGIDIndex: 5, HopLimit: 64, TrafficClass: 0x20},
		DLID: 0x0203, SL: 2, SrcPathBits: 1, StaticRate: 3, IsGlobal: true, PortNum: 1,
	}
)

const (
	goldenID  = 0x01020304
	goldenUID = 0x1112131415161718
)

func ip(s string) Sockaddr { return Sockaddr{IP: netip.MustParseAddrPort(s)} }

func ip6(s string, flow, scope uint32) Sockaddr {
	return Sockaddr{IP: netip.MustParseAddrPort(s), FlowInfo: flow, ScopeID: scope}
}

func ibAddr(g mad.GID) Sockaddr {
	return Sockaddr{IB: &SockaddrIB{
		PKey: 0xfffe, FlowInfo: 0xabcde, GID: g, ServiceID: 0x0000000001061c06, ServiceIDMask: 0xffffffffffff0000, ScopeID: 0x2122232425262728,
	}}
}

func goldenConn(d *Dialect, n int) ConnParam {
	p := ConnParam{
		QPNum: 0x123456, PrivateData: counted(n), SRQ: true, ResponderResources: 3, InitiatorDepth: 4, FlowControl: true,
		RetryCount: 7, RNRRetryCount: 6, Valid: true,
	}
	if d == Linux {
		p.QKey = 0x01234567
	}
	return p
}

func goldenQPAttr() *QPAttr {
	q := &QPAttr{
		Mask: 0x123456, State: QPStateRTR, CurState: QPStateInit, PathMTU: 4, PathMigState: 1, QKey: 0x01234567, RQPSN: 0xabcdef, SQPSN: 0xfedcba,
		DestQPNum: 0x123456, QPAccessFlags: 0x0e, AH: goldenAH, AltAH: goldenAH, MaxSendWR: 11, MaxRecvWR: 12, MaxSendSGE: 13, MaxRecvSGE: 14,
		MaxInlineData: 15, PKeyIndex: 16, AltPKeyIndex: 17, EnSQDAsyncNotify: true, SQDraining: true, MaxRDAtomic: 20, MaxDestRDAtomic: 21,
		MinRNRTimer: 22, PortNum: 1, Timeout: 24, RetryCnt: 7, RNRRetry: 6, AltPortNum: 2, AltTimeout: 28,
	}
	q.AltAH.DLID = 0x0405
	return q
}

func goldenRoute(d *Dialect) *QueryRouteResp {
	p := goldenPath
	r := &QueryRouteResp{
		NodeGUID: 0x0002c90300001200, Paths: [2]UserPathRec{MakeUserPathRec(&p), MakeUserPathRec(&p)},
		Src: ip("[fd00::1]:32769"), Dst: ip6("[fd00::2]:7174", 0xabcde, 0), NumPaths: 2, PortNum: 1,
	}
	r.Paths[1].SLID = 0x0607
	if d == Linux {
		r.IBDevIndex = 7
	}
	return r
}

func goldenEvent(d *Dialect, kind string) *EventResp {
	r := &EventResp{UID: goldenUID, ID: goldenID}
	switch kind {
	case "connection":
		p := goldenConn(d, 56)
		p.QKey = 0
		r.Event = EventConnectRequest
		r.Param.SetConn(p)
		if d == Linux {
			r.ECE = goldenECE
		}
	case "UD":
		r.Event = EventEstablished
		r.Param.SetUD(UDParam{QPNum: 0x123456, QKey: 0x01234567, AH: goldenAH, PrivateData: counted(180)})
	case "error":
		r.Event, r.Status = EventUnreachable, int32(-d.Number(ETIMEDOUT))
	}
	return r
}

func goldenCommands(d *Dialect) map[string]Command {
	path := SetIBPath(goldenID, PathRecData{Flags: PathFlags, Path: goldenPath})
	m := map[string]Command{
		"CREATE_ID":       CreateID{UID: goldenUID, PS: PortSpaceTCP},
		"DESTROY_ID":      DestroyID{ID: goldenID},
		"BIND_IP":         BindIP{ID: goldenID, Addr: ip6("[fd00::1]:7174", 0xabcde, 0)},
		"BIND_IP IPv4":    BindIP{ID: goldenID, Addr: ip("192.0.2.1:7174")},
		"RESOLVE_IP":      ResolveIP{ID: goldenID, Src: ip6("[fe80::1]:0", 0, 3), Dst: ip6("[fe80::2]:7174", 0xabcde, 3), Timeout: 2 * time.Second},
		"RESOLVE_IP IPv4": ResolveIP{ID: goldenID, Dst: ip("192.0.2.2:7174"), Timeout: 2 * time.Second},
		"RESOLVE_ROUTE":   ResolveRoute{ID: goldenID, Timeout: 2 * time.Second},
		"QUERY_ROUTE":     QueryRoute{ID: goldenID},
		"CONNECT":         Connect{ID: goldenID, Param: goldenConn(d, 56)},
		"LISTEN":          Listen{ID: goldenID, Backlog: 128},
		"ACCEPT":          Accept{UID: goldenUID, ID: goldenID, Param: goldenConn(d, 196)},
		"ACCEPT RTU":      Accept{ID: goldenID},
		"REJECT":          Reject{ID: goldenID, PrivateData: counted(148)},
		"DISCONNECT":      Disconnect{ID: goldenID},
		"INIT_QP_ATTR":    InitQPAttr{ID: goldenID, State: QPStateRTR},
		"GET_EVENT":       GetEvent{},
		"SET_OPTION":      path,
		"NOTIFY":          Notify{ID: goldenID, Event: 4},
		"JOIN_IP_MCAST":   JoinIPMcast{UID: goldenUID, ID: goldenID, Addr: ip("239.1.2.3:0")},
		"LEAVE_MCAST":     LeaveMcast{ID: goldenID},
	}
	if d == Illumos {
		return m
	}
	service := ResolveIBService{ID: goldenID, ServiceID: 0x3132333435363738, Flags: ServiceByID | ServiceByName}
	copy(service.ServiceName[:], "storage")
	event := WriteCMEvent{ID: goldenID, Event: EventUser, Status: -110}
	event.Param.SetArg(0x6162636465666768)
	m["CREATE_ID"] = CreateID{UID: goldenUID, PS: PortSpaceIB, QPType: QPTypeRC}
	m["CONNECT ECE"] = Connect{ID: goldenID, Param: goldenConn(d, 56), ECE: &goldenECE}
	m["ACCEPT ECE"] = Accept{UID: goldenUID, ID: goldenID, Param: goldenConn(d, 196), ECE: &goldenECE}
	m["REJECT"] = Reject{ID: goldenID, Reason: mad.RejectVendorOptionNotSupported, PrivateData: counted(148)}
	m["MIGRATE_ID"] = MigrateID{ID: goldenID, FD: 9}
	m["QUERY ADDR"] = Query{ID: goldenID, Option: QueryAddr}
	m["QUERY PATH"] = Query{ID: goldenID, Option: QueryPath, Records: 2}
	m["QUERY GID"] = Query{ID: goldenID, Option: QueryGID}
	m["QUERY IB_SERVICE"] = Query{ID: goldenID, Option: QueryIBService, Records: 1}
	m["BIND"] = Bind{ID: goldenID, Addr: ip6("[fd00::1]:7174", 0xabcde, 0)}
	m["BIND AF_IB"] = Bind{ID: goldenID, Addr: ibAddr(gid1)}
	m["RESOLVE_ADDR"] = ResolveAddr{ID: goldenID, Src: ibAddr(gid1), Dst: ibAddr(gid2), Timeout: 2 * time.Second}
	m["RESOLVE_ADDR IPv4"] = ResolveAddr{ID: goldenID, Dst: ip("192.0.2.2:7174"), Timeout: 2 * time.Second}
	m["JOIN_MCAST"] = JoinMcast{UID: goldenUID, ID: goldenID, Flags: JoinSendOnlyFullMember, Addr: ibAddr(gid2)}
	m["RESOLVE_IB_SERVICE"] = service
	m["WRITE_CM_EVENT"] = event
	return m
}

func goldenResponses(d *Dialect) map[string]Response {
	m := map[string]Response{
		"CREATE_ID":            &CreateIDResp{ID: goldenID},
		"DESTROY_ID":           &DestroyIDResp{EventsReported: 5},
		"QUERY_ROUTE":          goldenRoute(d),
		"INIT_QP_ATTR":         goldenQPAttr(),
		"GET_EVENT connection": goldenEvent(d, "connection"),
		"GET_EVENT UD":         goldenEvent(d, "UD"),
		"GET_EVENT error":      goldenEvent(d, "error"),
	}
	if d == Illumos {
		return m
	}
	path := goldenPath
	cut := func(g mad.GID) Sockaddr { // 28 bytes of it
		a := ibAddr(g)
		a.IB.ServiceID, a.IB.ServiceIDMask, a.IB.ScopeID = 0, 0, 0
		return a
	}
	record := PathRecData{Flags: PathFlags, Path: path}
	service := mad.ServiceRecord{
		ServiceID: 0x3132333435363738, ServiceGID: gid1, ServicePKey: 0xfffe, ServiceLease: goldenID, ServiceKey: [16]byte(counted(16)),
		ServiceData8: [16]byte(counted(16)), ServiceData16: [8]uint16{0x1600, 0x1601, 0x1602, 0x1603, 0x1604, 0x1605, 0x1606, 0x1607},
		ServiceData32: [4]uint32{0x32000000, 0x32000001, 0x32000002, 0x32000003}, ServiceData64: [2]uint64{0x6400000000000000, 0x6400000000000001},
	}
	copy(service.ServiceName[:], "storage")
	m["MIGRATE_ID"] = &DestroyIDResp{EventsReported: 5}
	m["QUERY_ROUTE AF_IB"] = &QueryRouteResp{Paths: [2]UserPathRec{MakeUserPathRec(&path)}, Src: cut(gid1), Dst: cut(gid2), NumPaths: 1, PortNum: 1}
	m["QUERY ADDR"] = &QueryAddrResp{
		NodeGUID: 0x0002c90300001200, PortNum: 1, PKey: 0xfffe, Src: ip6("[fe80::1]:32769", 0xabcde, 3), Dst: ip("192.0.2.2:7174"), IBDevIndex: 7,
	}
	m["QUERY GID"] = &QueryAddrResp{NodeGUID: 0x0002c90300001200, PortNum: 1, PKey: 0xfffe, Src: ibAddr(gid1), Dst: ibAddr(gid2), IBDevIndex: 7}
	m["QUERY PATH"] = &QueryPathResp{NumPaths: 2, Paths: []PathRecData{record, record}}
	m["QUERY IB_SERVICE"] = &QueryIBServiceResp{NumServiceRecs: 4, Recs: []mad.ServiceRecord{service}}
	return m
}

// newOf makes an empty response of the same kind.
func newOf(r Response) Response { return reflect.New(reflect.TypeOf(r).Elem()).Interface().(Response) }

// exact compares values with all their members, as mad's are.
var exact = cmp.Options{
	cmp.Exporter(func(reflect.Type) bool { return true }),
	cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
}

func TestGoldenCommands(t *testing.T) {
	for _, d := range dialects {
		golden := goldenFile(t, d)
		commands := goldenCommands(d)
		seen := make(map[Op]bool)
		for name, c := range commands {
			t.Run(d.name+"/"+name, func(t *testing.T) {
				want := golden[name]
				if want == nil {
					t.Fatal("no golden bytes")
				}
				got, err := d.AppendUnchecked(nil, c)
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("error %v, written is\n%swant\n%s", err, hex.Dump(got), hex.Dump(want))
				}
				parsed, err := d.ParseCommand(want)
				if err != nil {
					t.Fatal(err)
				}
				if o, ok := c.(SetOption); ok { // whose value is elsewhere
					o.Len, o.Value = uint32(len(o.Value)), nil
					c = o
				}
				if diff := cmp.Diff(c, parsed, exact); diff != "" {
					t.Errorf("read back, -want +got:\n%s", diff)
				}
				if _, err := d.AppendCommand(nil, commands[name]); err != nil && name != "SET_OPTION" {
					t.Errorf("refused: %v", err)
				}
			})
			seen[c.Op()] = true
		}
		for op := range d.commands {
			if !seen[op] {
				t.Errorf("%s: no golden bytes for %v", d, op)
			}
		}
	}
}

func TestGoldenOptionValue(t *testing.T) {
	golden := goldenFile(t, Linux)["SET_OPTION value"]
	o := goldenCommands(Linux)["SET_OPTION"].(SetOption)
	if !bytes.Equal(o.Value, golden) {
		t.Errorf("IB_PATH\n%swant\n%s", hex.Dump(o.Value), hex.Dump(golden))
	}
	paths, err := ParseIBPath(golden)
	want := []PathRecData{{Flags: PathFlags, Path: goldenPath}}
	if diff := cmp.Diff(want, paths, exact); err != nil || diff != "" {
		t.Errorf("%v; read back, -want +got:\n%s", err, diff)
	}
}

func TestGoldenResponses(t *testing.T) {
	for _, d := range dialects {
		golden := goldenFile(t, d)
		seen := make(map[string]bool)
		for name, r := range goldenResponses(d) {
			t.Run(d.name+"/"+name, func(t *testing.T) {
				want := golden[name+" response"]
				if want == nil {
					t.Fatal("no golden bytes")
				}
				got, err := d.AppendResponse(nil, r)
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("error %v, written is\n%swant\n%s", err, hex.Dump(got), hex.Dump(want))
				}
				parsed := newOf(r)
				if err := d.ParseResponse(want, parsed); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(r, parsed, exact); diff != "" {
					t.Errorf("read back, -want +got:\n%s", diff)
				}
			})
			seen[r.structure()] = true
		}
		for op, c := range d.commands {
			if c.out != "" && !seen[c.out] {
				t.Errorf("%s: no golden bytes for the response of %v", d, op)
			}
		}
		for o, c := range d.queries {
			if !seen[c.out] {
				t.Errorf("%s: no golden bytes for the response of QUERY %v", d, o)
			}
		}
	}
}

// The parameters of an event are at the offsets of the C structures.
func TestGoldenEventParam(t *testing.T) {
	for _, d := range dialects {
		golden := goldenFile(t, d)
		var r EventResp
		if err := d.ParseResponse(golden["GET_EVENT connection response"], &r); err != nil {
			t.Fatal(err)
		}
		want := goldenConn(d, 56)
		want.QKey = 0
		if diff := cmp.Diff(want, r.Conn()); diff != "" {
			t.Errorf("%s: connection, -want +got:\n%s", d, diff)
		}
		if err := d.ParseResponse(golden["GET_EVENT UD response"], &r); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(UDParam{QPNum: 0x123456, QKey: 0x01234567, AH: goldenAH, PrivateData: counted(180)}, r.UD()); diff != "" {
			t.Errorf("%s: UD, -want +got:\n%s", d, diff)
		}
	}
}

// The tables have the sizes, members and offsets of the C structures.
func TestOffsets(t *testing.T) {
	for _, d := range dialects {
		inC := make(map[string]bool)
		lines := bufio.NewScanner(bytes.NewReader(goldenFile(t, d)["offsets"]))
		for lines.Scan() {
			inC[strings.TrimPrefix(lines.Text(), "# ")] = true
		}
		ours := make(map[string]bool)
		for _, s := range d.structs {
			ours[fmt.Sprint(s.name, " ", s.size)] = true
			for _, f := range s.fields {
				ours[fmt.Sprint(s.name, " ", f.off, " ", f.size, " ", f.name)] = true
			}
		}
		for line := range inC {
			if !ours[line] {
				t.Errorf("%s: the table lacks %s", d, line)
			}
		}
		for line := range ours {
			if !inC[line] {
				t.Errorf("%s: C has no %s", d, line)
			}
		}
	}
}

// Rows tile their structures, and the names of nested structures are right.
func TestTables(t *testing.T) {
	forms := []form{native, signed, big, octets, text, gid, hostGID, address, reserved, sin6, storage}
	for _, d := range dialects {
		for key, s := range d.structs {
			at := 0
			for _, f := range s.fields {
				if f.off != at {
					t.Errorf("%s %s.%s at %d, the row before ends at %d", d, key, f.name, f.off, at)
				}
				at += f.size
				n := d.structs[string(f.form)]
				switch {
				case n != nil && f.size%n.size != 0:
					t.Errorf("%s %s.%s: %d bytes of a structure of %d", d, key, f.name, f.size, n.size)
				case n == nil && !slices.Contains(forms, f.form):
					t.Errorf("%s %s.%s: form %q", d, key, f.name, f.form)
				}
			}
			if at != s.size {
				t.Errorf("%s %s has %d bytes, its rows %d", d, key, s.size, at)
			}
		}
		for key := range commonStructs {
			if linuxStructs[key] != nil || illumosStructs[key] != nil {
				t.Errorf("%s is in two tables", key)
			}
		}
		for op, c := range d.commands {
			if d.structs[c.in] == nil || c.out != "" && d.structs[c.out] == nil || decoders[op] == nil || opNames[op] == "" {
				t.Errorf("%s: the row of %v is not complete", d, op)
			}
		}
	}
	if _, err := os.Stat("testdata/golden/README.md"); err != nil {
		t.Error(err)
	}
}
