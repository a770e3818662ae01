package server

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/topo"
)

// broughtUp gives a server of a fabric, without a port.
func broughtUp(t testing.TB, sub *topo.Subnet, err error) *Server {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.BringUp(); err != nil {
		t.Fatal(err)
	}
	return newServer(sub, Config{})
}

func demo(t testing.TB) *Server {
	sub, err := topo.Generate("demo")
	return broughtUp(t, sub, err)
}

// portOf finds an end port by its name in the fabric file.
func portOf(t testing.TB, s *Server, name string) *topo.Port {
	t.Helper()
	p, ok := s.sub.PortByName(name)
	if !ok {
		t.Fatalf("the fabric has no port %s", name)
	}
	return p
}

// request makes a request with the components that are named.
func request(t testing.TB, method mad.Method, attr mad.AttributeID, like mad.Structure, fields ...string) []byte {
	t.Helper()
	req := make([]byte, mad.Size)
	h := mad.Header{BaseVersion: 1, MgmtClass: mad.ClassSubnAdm, ClassVersion: 2, Method: method, AttributeID: attr, TransactionID: 0x1234}
	h.EncodeTo((*[mad.HeaderSize]byte)(req))
	if like != nil {
		data, err := like.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		copy(req[mad.OffSAData:], data)
		var mask uint64
		for _, name := range fields {
			f, err := like.Layout().Find(name)
			if err != nil {
				t.Fatal(err)
			}
			mask |= like.Layout().MaskOf(f.Name)
		}
		binary.BigEndian.PutUint64(req[offComponentMask:], mask)
	}
	return req
}

// split takes a response apart and checks all that holds for every response.
func split(t testing.TB, req, resp []byte, size int) (status mad.Status, rows [][]byte) {
	t.Helper()
	if len(resp) < mad.OffSAData {
		t.Fatalf("response of %d bytes", len(resp))
	}
	method := mad.Method(req[mad.OffMethod])
	table := method == mad.MethodGetTable
	if method == mad.MethodSet { // is answered by GetResp (IBA 13.4.5)
		method = mad.MethodGet
	}
	status = mad.Status(binary.BigEndian.Uint16(resp[mad.OffStatus:]))
	offset := int(binary.BigEndian.Uint16(resp[offAttributeOffset:])) * 8
	active := resp[offRMPPFlags] == 1
	data := resp[mad.OffSAData:]
	switch {
	case mad.Method(resp[mad.OffMethod]) != method|0x80:
		t.Fatalf("method %#x answers %#x", resp[mad.OffMethod], req[mad.OffMethod])
	case string(resp[mad.OffTID:mad.OffRMPP]) != string(req[mad.OffTID:mad.OffRMPP]):
		t.Fatal("transaction id, attribute or modifier are not the request's")
	case binary.BigEndian.Uint64(resp[offSMKey:]) != 0:
		t.Fatal("the response shows an SM_Key")
	case active != (table && status == mad.StatusOK):
		t.Fatalf("RMPP active is %v in a response of %d bytes with status %v", active, len(resp), status)
	case !active && len(resp) != mad.Size:
		t.Fatalf("a single MAD of %d bytes", len(resp))
	case status != mad.StatusOK:
		return status, nil
	case !table:
		return status, [][]byte{data[:size]}
	case len(data) == 0 && offset == 0:
		return status, nil
	case offset == 0 || offset < size || len(data)%offset != 0:
		t.Fatalf("%d bytes of records, %d apart", len(data), offset)
	}
	for ; len(data) > 0; data = data[offset:] {
		rows = append(rows, data[:size])
	}
	return status, rows
}

func TestHeader(t *testing.T) {
	s := demo(t)
	s.cfg.SMKey = 42
	set := func(at int, b byte) func([]byte) { return func(req []byte) { req[at] = b } }
	const silence = mad.Status(0xffff)
	tests := []struct {
		name   string
		method mad.Method
		attr   mad.AttributeID
		change func([]byte)
		want   mad.Status
	}{
		{"ClassPortInfo", mad.MethodGet, mad.AttrClassPortInfo, nil, mad.StatusOK},
		{"base version 2", mad.MethodGet, mad.AttrClassPortInfo, set(0, 2), mad.StatusBadVersion},
		{"class version 1", mad.MethodGet, mad.AttrClassPortInfo, set(mad.OffClassVersion, 1), mad.StatusBadVersion},
		{"Delete a path", mad.MethodDelete, mad.AttrPathRecord, nil, mad.StatusBadAttribute}, // osm_sa_path_record.c
		{"Set a path", mad.MethodSet, mad.AttrPathRecord, nil, mad.StatusBadAttribute},
		{"Set a service without its id", mad.MethodSet, mad.AttrServiceRecord, nil, mad.StatusSAReqInvalid},
		{"Delete no service", mad.MethodDelete, mad.AttrServiceRecord, nil, mad.StatusSANoRecords},
		{"join no group", mad.MethodSet, mad.AttrMCMemberRecord, nil, mad.StatusSAInsufficientComponents},
		{"leave no group", mad.MethodDelete, mad.AttrMCMemberRecord, nil, mad.StatusSAInsufficientComponents},
		{"subscribe", mad.MethodSet, mad.AttrInformInfo, nil, mad.StatusBadAttribute},
		{"InformInfo is no record", mad.MethodGetTable, mad.AttrInformInfo, nil, mad.StatusBadAttribute},
		{"GetMulti", mad.MethodGetMulti, 0x3a, nil, mad.StatusBadMethod},
		{"no such method", 0x33, mad.AttrPathRecord, nil, mad.StatusBadMethod},
		{"no such record", mad.MethodGetTable, 0x4a, nil, mad.StatusBadAttribute},
		{"table of ClassPortInfo", mad.MethodGetTable, mad.AttrClassPortInfo, nil, mad.StatusBadAttribute},
		{"SM_Key of the SM", mad.MethodGet, mad.AttrClassPortInfo, set(offSMKey+7, 42), mad.StatusOK},
		{"wrong SM_Key", mad.MethodGet, mad.AttrClassPortInfo, set(offSMKey+7, 41), silence},
		{"a response", mad.MethodGetResp, mad.AttrClassPortInfo, nil, silence},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := request(t, tt.method, tt.attr, nil)
			if tt.change != nil {
				tt.change(req)
			}
			resp := s.answer(portOf(t, s, "h1").LID, req)
			if tt.want == silence {
				if resp != nil {
					t.Fatalf("answered with % x", resp[:mad.HeaderSize])
				}
				return
			}
			if status, _ := split(t, req, resp, mad.ClassPortInfoSize); status != tt.want {
				t.Errorf("status %v, want %v", status, tt.want)
			}
		})
	}
	if s.answer(0x4444, request(t, mad.MethodGet, mad.AttrClassPortInfo, nil)) != nil {
		t.Error("answered a LID that no port has")
	}
}

// The values are those that OpenSM answers with (osm_sa_class_port_info.c), but
// for the capabilities.
func TestClassPortInfo(t *testing.T) {
	s := demo(t)
	req := request(t, mad.MethodGet, mad.AttrClassPortInfo, nil)
	_, rows := split(t, req, s.answer(portOf(t, s, "h1").LID, req), mad.ClassPortInfoSize)
	var got mad.ClassPortInfo
	if err := got.UnmarshalBinary(rows[0]); err != nil {
		t.Fatal(err)
	}
	want := mad.ClassPortInfo{BaseVersion: 1, ClassVersion: 2,
		CapabilityMask:  1<<8 | 1<<9 | 1<<13,         // as in 15.2.5.1: optional records, UDMulticast, PortInfoCapMaskMatch
		CapabilityMask2: 1<<6 | 1<<7 | 1<<10 | 1<<12, // FullPortInfoRecord, ExtendedSpeeds, PortInfoCapMask2Match, SendOnlyFullMember
		RespTimeValue:   16, RedirectQP: 1, RedirectQKey: 0x80010000, TrapQKey: 0x80010000}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Every component of every record has a bit, except for the reserved ones.
func TestComponents(t *testing.T) {
	all := pathServiceID | pathDGID | pathSGID | pathDLID | pathSLID | pathRaw | pathFlowLabel | pathHopLimit | pathTClass |
		pathReversible | pathNumbPath | pathPKey | pathQoSClass | pathSL | pathMTUSel | pathMTU | pathRateSel | pathRate |
		pathLifeSel | pathLife | pathPreference
	if want := uint64(1)<<23 - 1 - 1<<7; all != want { // bits 0 to 22, but not 7 (ib_types.h, IB_PR_COMPMASK_*)
		t.Errorf("path components %#x, want %#x", all, want)
	}
	for _, k := range kinds {
		for i, name := range k.layout.Mask {
			if compares := slices.ContainsFunc(k.components[i], func(b byte) bool { return b != 0 }); compares != (name != "") {
				t.Errorf("%s: bit %d (%s) compares something: %v", k.layout.Name, i, name, compares)
			}
		}
		if k.list == nil {
			continue
		}
		if f, err := k.layout.Find(k.layout.Mask[0]); err != nil || f.Kind != layout.KindLID || f.Off != 0 {
			t.Errorf("%s: the first component is not the LID: %+v, %v", k.layout.Name, f, err)
		}
		for _, f := range k.layout.Fields {
			if f.Kind == layout.KindStruct && layout.AttributeOf(uint8(mad.ClassSubnLIDRouted), f.Of) == nil {
				t.Errorf("%s: %s is no attribute of subnet management", k.layout.Name, f.Name)
			}
		}
	}
}

func FuzzAnswer(f *testing.F) {
	s := demo(f)
	s.cfg.MaxRecords = 1000
	lid := uint16(portOf(f, s, "h1").LID)
	f.Add(lid, request(f, mad.MethodGet, mad.AttrClassPortInfo, nil))
	f.Add(lid, request(f, mad.MethodGetTable, mad.AttrNodeRecord, &mad.NodeRecord{LID: 1}, "LID"))
	f.Add(lid, request(f, mad.MethodGetTable, mad.AttrPathRecord, &mad.PathRecord{}))
	f.Add(lid, request(f, mad.MethodGet, mad.AttrPathRecord, &mad.PathRecord{DLID: 3, SLID: 1, MTU: 4, NumbPath: 3}, "DLID", "SLID", "MTU", "NumbPath"))
	for attr, k := range kinds {
		req := request(f, mad.MethodGetTable, attr, nil)
		f.Add(lid, req)
		for i := range req[mad.OffSAData:] {
			req[mad.OffSAData+i] = byte(i)
		}
		binary.BigEndian.PutUint64(req[offComponentMask:], 1<<len(k.layout.Mask)-1)
		binary.BigEndian.PutUint32(req[mad.OffModifier:], matchSets)
		f.Add(lid, req)
	}
	f.Add(lid, make([]byte, 20))
	group := newMember(s, "h1", transientGroup)
	f.Add(lid, request(f, mad.MethodSet, mad.AttrMCMemberRecord, group, creates...))
	group.MGID, group.MTUSelector, group.RateSelector = mad.GID{}, mad.SelectorLessThan, mad.SelectorGreaterThan
	f.Add(lid, request(f, mad.MethodSet, mad.AttrMCMemberRecord, group, append([]string{"MTUSelector", "MTU", "RateSelector", "Rate"}, creates...)...))
	service := &mad.ServiceRecord{ServiceID: 1, ServiceGID: group.PortGID, ServicePKey: 0x8001, ServiceLease: 9}
	f.Add(lid, request(f, mad.MethodSet, mad.AttrServiceRecord, service, "ServiceID", "ServiceGID", "ServiceP_Key", "ServiceLease"))
	f.Fuzz(func(t *testing.T, from uint16, req []byte) {
		s := newServer(s.sub, s.cfg) // what the input before has made is gone
		resp := s.answer(mad.LID(from), req)
		if resp == nil {
			return
		}
		// A request may change what the next one finds.
		for _, method := range []mad.Method{mad.MethodSet, mad.MethodGetTable, mad.MethodDelete, mad.MethodDelete} {
			again := append([]byte(nil), req...)
			again[mad.OffMethod] = byte(method)
			if s.answer(mad.LID(from), again) == nil {
				t.Fatalf("%v of what was answered before gets no answer", method)
			}
		}
		attr := mad.AttributeID(binary.BigEndian.Uint16(req[mad.OffAttribute:]))
		size := map[mad.AttributeID]int{mad.AttrPathRecord: mad.PathRecordSize, mad.AttrClassPortInfo: mad.ClassPortInfoSize}[attr]
		if k := kinds[attr]; k != nil {
			size = k.layout.Size
		}
		split(t, req, resp, size)
	})
}

// Who asks is known by LID, on Ethernet by GID.
func TestRequester(t *testing.T) {
	s := demo(t)
	h3 := portOf(t, s, "h3")
	grh := func(gid mad.GID) mad.AddressVector { return mad.AddressVector{HasGRH: true, GRH: mad.GRH{GID: gid}} }
	for _, tt := range []struct {
		from mad.AddressVector
		want mad.LID
	}{
		{mad.AddressVector{LID: 5}, 5},
		{mad.AddressVector{}, 0},
		{grh(h3.GID(s.sub.GIDPrefix)), h3.LID},
		{grh(mad.GID{0xfd, 15: 1}), s.sub.SM.LID},
	} {
		if got := s.lidOf(&tt.from); got != tt.want {
			t.Errorf("%v: LID %v, want %v", tt.from, got, tt.want)
		}
	}
}
