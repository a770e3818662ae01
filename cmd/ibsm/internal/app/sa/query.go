package sa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/sa"
)

// query asks for the records of one attribute.
func query(ctx context.Context, s *session.Session, method mad.Method, args []string) error {
	attr, err := lookUpRecord(args[0])
	if err != nil {
		return err
	}
	if !attr.Allows(uint8(method)) {
		return exit.Usagef("SubnAdm%v is no method of %s: there is 'sa get %s'", method, attr.Name, args[0])
	}
	req := sa.Request{Attribute: attr, Method: method, Record: make([]byte, attr.Struct.Size)}
	for _, arg := range args[1:] {
		if err := component(ctx, s, &req, arg); err != nil {
			return err
		}
	}
	selectExactly(&req)
	if attr.Struct == layout.PathRecord && method == mad.MethodGetTable {
		if err := fromHere(ctx, s, &req); err != nil {
			return err
		}
	}
	like, err := text.ObjectOfBytes(attr.Struct, req.Record)
	if err != nil {
		return err
	}
	if err := s.Out.Columns(like); err != nil {
		return err
	}
	c, err := s.SA(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	for row, err := range c.Rows(ctx, req) {
		if err != nil {
			return err
		}
		rec := row[:attr.Struct.Size] // records may be longer than we know them
		members, err := text.ObjectOfBytes(attr.Struct, rec)
		if err != nil {
			return err
		}
		plain, err := text.AppendDump(nil, attr.Struct, rec, s.DumpOptions())
		if err != nil {
			return err
		}
		if err := s.Out.Record(attr.Name, members, plain); err != nil {
			return err
		}
	}
	s.Timed(start, "SubnAdm%v(%s) with component mask %#x at %s: %d records", method, attr.Name, req.Mask, s.AtSA(), s.Out.Records())
	if method == mad.MethodGetTable {
		s.Count()
	}
	return nil
}

// component sets FIELD=VALUE in a request.
func component(ctx context.Context, s *session.Session, req *sa.Request, arg string) error {
	record := req.Attribute.Struct
	name, value, ok := strings.Cut(arg, "=")
	if !ok {
		return exit.Usagef("%q is no FIELD=VALUE: %s", arg, components(record))
	}
	if f, err := record.Find(name); err == nil && isOfPort(&f) {
		if value, err = addressValue(ctx, s, &f, value); err != nil {
			return err
		}
	}
	fields, err := text.Set(record, req.Record, name, value) // several for mtu=0x84
	if bad := (*layout.NameError)(nil); errors.As(err, &bad) {
		return exit.Usagef("%w: %s", err, components(record))
	} else if err != nil {
		return &exit.UsageError{Err: err}
	}
	for _, f := range fields {
		bits := record.MaskOf(f.Name)
		switch {
		case bits == 0:
			return exit.Usagef("%s of %s is no component: no bit of the component mask selects it", f.Name, record.Name)
		case req.Mask&bits != 0:
			return exit.Usagef("%s is given twice", f.Name)
		}
		req.Mask |= bits
	}
	return nil
}

// components tells what a query can select by.
func components(record *layout.Struct) string {
	var names []string
	for _, path := range record.Mask {
		name := path[strings.LastIndexByte(path, '.')+1:]
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "a query for " + record.Name + " has no components"
	}
	return "the components of " + record.Name + " are " + strings.Join(names, ", ")
}

// selectExactly adds the selector "exactly" to each value that stands without
// one: SAs ignore a value that has none (osm_sa_path_record.c).
func selectExactly(req *sa.Request) {
	record := req.Attribute.Struct
	for _, f := range record.Leaves() {
		name, isSelector := strings.CutSuffix(f.Name, "Selector")
		bits := record.MaskOf(f.Name)
		if isSelector && req.Mask&record.MaskOf(name) != 0 && req.Mask&bits == 0 {
			layout.SetUint(req.Record, f.Off, f.Len, uint64(mad.SelectorExactly))
			req.Mask |= bits
		}
	}
}

// isOfPort tells whether a field holds a LID or a GID of a port: there are those
// of multicast groups, and ranges.
func isOfPort(f *layout.Field) bool {
	if f.Kind != layout.KindGID && f.Kind != layout.KindLID {
		return false
	}
	switch f.Name[strings.LastIndexByte(f.Name, '.')+1:] {
	case "MLID", "MGID", "LIDRangeBegin", "LIDRangeEnd":
		return false
	}
	return true
}

// addressValue lets a LID or a GID be named by any address of its port.
func addressValue(ctx context.Context, s *session.Session, f *layout.Field, value string) (string, error) {
	a, err := mad.ParseAddr(value)
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Name, err)
	}
	if f.Kind == layout.KindGID && a.Kind == mad.AddrGID || f.Kind == layout.KindLID && a.Kind == mad.AddrLID {
		return a.String(), nil
	}
	e, err := s.Resolve(ctx, a)
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Name, err)
	}
	if f.Kind == layout.KindGID {
		return e.GID.String(), nil
	}
	return e.LID.String(), nil
}

// fromHere makes a query of paths that names no port one of paths from the own
// port: paths between all ports are too many for an SA of a large fabric.
func fromHere(ctx context.Context, s *session.Session, req *sa.Request) error {
	ports, err := sa.Mask(layout.PathRecord, "SGID", "DGID", "SLID", "DLID")
	if err != nil || req.Mask&ports != 0 {
		return err
	}
	dev, err := s.Device(ctx)
	if err != nil {
		return err
	}
	info, err := dev.Info()
	if err != nil {
		return err
	}
	if len(info.GIDs) == 0 || info.GIDs[0].IsZero() {
		return fmt.Errorf("port %s/%d has no GID: name the paths' source by SGID=", info.Device, info.Port)
	}
	return component(ctx, s, req, "SGID="+info.GIDs[0].String())
}
