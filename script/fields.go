package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

// headerLayout is what the keys `header` and `rmpp` name in a MAD of a class, and
// what `answer` shows: all its headers as one structure from byte 0, reserved rows
// too. That of a directed-route SMP holds its paths, and so its data.
func headerLayout(class mad.Class) *layout.Struct {
	if s, ok := headerLayouts.Load(class); ok {
		return s.(*layout.Struct)
	}
	s, _ := headerLayouts.LoadOrStore(class, makeHeaderLayout(class))
	return s.(*layout.Struct)
}

var headerLayouts sync.Map // mad.Class: *layout.Struct

func makeHeaderLayout(class mad.Class) *layout.Struct {
	s := &layout.Struct{Name: fmt.Sprintf("the header of class %s", class), Size: mad.HeaderSize}
	add := func(of *layout.Struct, at int) {
		for _, f := range of.Fields {
			f.Off += at * 8
			s.Fields = append(s.Fields, f)
		}
		s.Size = at + of.Size
	}
	switch class {
	case mad.ClassSubnLIDRouted:
		add(layout.SMPLIDHeader, 0)
	case mad.ClassSubnDirected:
		add(layout.SMPDirectedHeader, 0)
		add(layout.SMPDirectedPaths, mad.OffSMPPaths)
	default:
		add(layout.Header, 0)
		if mad.HasRMPP(class) {
			add(layout.RMPPHeader, mad.OffRMPP)
		}
		if class == mad.ClassSubnAdm {
			add(layout.SAHeader, mad.OffRMPPData)
		}
	}
	s.Fields = nameReserved(s.Fields)
	return s
}

// settable is a structure as `set` sees it: its reserved rows have names.
func settable(s *layout.Struct) *layout.Struct {
	if t, ok := settables.Load(s); ok {
		return t.(*layout.Struct)
	}
	t := *s
	t.Fields = nameReserved(s.Fields)
	for i := range t.Fields {
		if f := &t.Fields[i]; f.Kind == layout.KindStruct {
			f.Of = settable(f.Of)
		}
	}
	actual, _ := settables.LoadOrStore(s, &t)
	return actual.(*layout.Struct)
}

var settables sync.Map // *layout.Struct: *layout.Struct

// nameReserved gives each reserved row its name.
func nameReserved(fields []layout.Field) []layout.Field {
	out := slices.Clone(fields)
	for i := range out {
		f := &out[i]
		if !f.IsReserved() {
			continue
		}
		f.Name = layout.ReservedName(f.Off)
		f.Kind = layout.KindHex
		if f.Len > 64 {
			f.Kind = layout.KindBytes
		}
	}
	return out
}

// classOf reads a class, by name or number.
func classOf(s string) (mad.Class, error) {
	v, err := headerValue("MgmtClass", layout.Class, s)
	return mad.Class(v), err
}

// methodOf reads a method, by name or number.
func methodOf(s string) (mad.Method, error) {
	v, err := headerValue("Method", layout.Method, s)
	return mad.Method(v), err
}

// headerValue reads a value of a field of the common header as its number. Names as
// the table writes them are found without a detour, as every send has two.
func headerValue(field string, names *layout.Enum, s string) (uint64, error) {
	for i := range names.Values {
		if v := &names.Values[i]; v.Text == s || slices.Contains(v.Alias, s) {
			return v.Value, nil
		}
	}
	var b [mad.HeaderSize]byte
	set, err := text.Set(layout.Header, b[:], field, s)
	if err != nil {
		return 0, err
	}
	return set[0].Uint(b[:]), nil
}

// Statuses are the names of statuses in scripts: those of the kernel's
// include/rdma/ib_mad.h, and for the SA's (Class is mad.ClassSubnAdm) those of IBA
// 15.2.3.
var Statuses = []struct {
	Class mad.Class // 0: all
	Code  mad.Status
	Name  string
}{
	{0, 0x0000, "ok"},
	{0, 0x0001, "busy"},
	{0, 0x0002, "redirect_reqd"},
	{0, 0x0004, "bad_version"},
	{0, 0x0008, "unsupported_method"},
	{0, 0x000c, "unsupported_method_attrib"},
	{0, 0x001c, "invalid_attrib_value"},
	{mad.ClassSubnAdm, 0x0100, "ERR_NO_RESOURCES"},
	{mad.ClassSubnAdm, 0x0200, "ERR_REQ_INVALID"},
	{mad.ClassSubnAdm, 0x0300, "ERR_NO_RECORDS"},
	{mad.ClassSubnAdm, 0x0400, "ERR_TOO_MANY_RECORDS"},
	{mad.ClassSubnAdm, 0x0500, "ERR_REQ_INVALID_GID"},
	{mad.ClassSubnAdm, 0x0600, "ERR_REQ_INSUFFICIENT_COMPONENTS"},
	{mad.ClassSubnAdm, 0x0700, "ERR_REQ_DENIED"},
	{mad.ClassSubnAdm, 0x0800, "ERR_PRIORITY_SUGGESTED"},
}

// statusName is the name of a status in an answer of a class: one of Statuses, or
// the number in hexadecimal.
func statusName(class mad.Class, status mad.Status) string {
	for _, s := range Statuses {
		if s.Code == status && (s.Class == 0 || s.Class == class) {
			return s.Name
		}
	}
	return fmt.Sprintf("0x%04x", uint16(status))
}

// statusOf reads a status, by a name of Statuses or as a number.
func statusOf(class mad.Class, s string) (mad.Status, error) {
	for _, x := range Statuses {
		if strings.EqualFold(x.Name, s) && (x.Class == 0 || x.Class == class) {
			return x.Code, nil
		}
	}
	v, err := strconv.ParseUint(s, 0, 16)
	return mad.Status(v), err
}
