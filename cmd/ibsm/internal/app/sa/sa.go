// Package sa is the noun that queries the subnet administrator.
package sa

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/sa"
)

// Command makes the noun.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "sa",
		Usage: "query the subnet administrator (saquery)",
		Subcommands: []*cli.Command{
			{
				Name:      "path",
				Usage:     "the paths from one port to another",
				ArgsUsage: "SRC DST",
				Description: `SRC and DST are names, LIDs, GUIDs or GIDs, in any mixture. Of text output
each path has a line before it that begins with #.

Examples:

   ibsm --on sim:demo sa path h1 h8
   ibsm --on sim:demo -o json sa path 1 0x0200000100000801`,
				Action: session.Action(2, 2, path),
			},
			{
				Name:      "get",
				Usage:     "the one record that agrees with the fields given (SubnAdmGet)",
				ArgsUsage: "RECORD [FIELD=VALUE...]",
				Description: recordHelp(mad.MethodGet) + `

Examples:

   ibsm --on sim:demo sa get classportinfo
   ibsm --on sim:demo sa get node NodeGUID=0x0200000100000100
   ibsm --on sim:demo sa get path SGID=h1 DGID=h8`,
				Action: session.Action(1, -1, func(ctx context.Context, s *session.Session, args []string) error {
					return query(ctx, s, mad.MethodGet, args)
				}),
			},
			{
				Name:      "table",
				Usage:     "all records that agree with the fields given (SubnAdmGetTable)",
				ArgsUsage: "RECORD [FIELD=VALUE...]",
				Description: recordHelp(mad.MethodGetTable) + `
A table of paths that names no port starts at the own one.

Examples:

   ibsm --on sim:demo sa table node
   ibsm --on sim:demo sa table node NodeType=Switch
   ibsm --on sim:demo sa table path SGID=h1 Rate=40G RateSelector=GreaterThan
   ibsm --on sim:demo -o ndjson sa table path SGID=h3`,
				Action: session.Action(1, -1, func(ctx context.Context, s *session.Session, args []string) error {
					return query(ctx, s, mad.MethodGetTable, args)
				}),
			},
		},
	}
}

func recordHelp(method mad.Method) string {
	return "RECORD is one of " + recordNames(method) + `,
or as saquery has it: NR, PR, CPI. FIELD is a component of the record by the
name of the IBA or of saquery; VALUE is a number, a name of the field's values,
or, for LIDs and GIDs, an address. An MTU, a rate or a packet life time is
exactly that one, unless its selector is given as well.`
}

// recordNames are the short names of the records that have a method: node for
// NodeRecord.
func recordNames(method mad.Method) string {
	var names []string
	for _, a := range layout.Attributes {
		if isRecord(a) && a.Allows(uint8(method)) {
			names = append(names, shortName(a))
		}
	}
	return strings.Join(names, ", ")
}

// isRecord tells whether an attribute can be asked for.
func isRecord(a *layout.Attribute) bool {
	return a.Class == uint8(mad.ClassSubnAdm) && a.Allows(uint8(mad.MethodGet))
}

func shortName(a *layout.Attribute) string {
	return strings.ToLower(strings.TrimSuffix(a.Name, "Record"))
}

func lookUpRecord(name string) (*layout.Attribute, error) {
	for _, a := range layout.Attributes {
		if isRecord(a) && shortName(a) == strings.ToLower(name) {
			return a, nil
		}
	}
	a, err := layout.LookUpAttribute(uint8(mad.ClassSubnAdm), name)
	if err != nil || !isRecord(a) {
		return nil, exit.Usagef("unknown record %q: it is one of %s", name, recordNames(mad.MethodGet))
	}
	return a, nil
}

func path(ctx context.Context, s *session.Session, args []string) error {
	var q sa.PathQuery
	var ends [2]sa.Endpoint
	lids := [2]*mad.LID{&q.SLID, &q.DLID}
	for i, arg := range args {
		a, err := mad.ParseAddr(arg)
		if err != nil {
			return err
		}
		if ends[i], err = s.Resolve(ctx, a); err != nil {
			return err
		}
		if a.Kind == mad.AddrLID { // one of several by the LMC
			*lids[i] = a.LID
		}
	}
	q.SGID, q.DGID = ends[0].GID, ends[1].GID
	c, err := s.SA(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	for rec, err := range c.Paths(ctx, q) {
		if err != nil {
			return err
		}
		plain := fmt.Sprintf("# Path from %s (LID %v) to %s (LID %v): MTU %v, rate %v, SL %d, P_Key %v, packet life time %v\n%s",
			text.Printable(ends[0].Desc), rec.SLID, text.Printable(ends[1].Desc), rec.DLID, rec.MTU, rec.Rate, rec.SL, rec.PKey,
			round(mad.TimeOf(rec.PacketLifeTime)), text.Dump(&rec, text.Options{}))
		if err := s.Out.Record("PathRecord", text.ObjectOf(&rec), []byte(plain)); err != nil {
			return err
		}
	}
	s.Timed(start, "SubnAdmGetTable(PathRecord) from %v to %v at %s: %d records", q.SGID, q.DGID, s.AtSA(), s.Out.Records())
	if s.Out.Records() == 0 {
		return fmt.Errorf("path from %s (%v) to %s (%v): %w", args[0], q.SGID, args[1], q.DGID, sa.ErrNoRecords)
	}
	return nil
}

// round leaves three digits of a time.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

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
		plain, err := text.AppendDump(nil, attr.Struct, rec, text.Options{})
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
	f, err := record.Find(name)
	if err != nil {
		return exit.Usagef("%w: %s", err, components(record))
	}
	bits := record.MaskOf(f.Name)
	switch {
	case bits == 0:
		return exit.Usagef("%s of %s is no component: no bit of the component mask selects it", f.Name, record.Name)
	case req.Mask&bits != 0:
		return exit.Usagef("%s is given twice", f.Name)
	}
	if f.Kind == layout.KindGID || f.Kind == layout.KindLID {
		if value, err = addressValue(ctx, s, &f, value); err != nil {
			return err
		}
	}
	if _, err := text.Set(record, req.Record, name, value); err != nil {
		return &exit.UsageError{Err: err}
	}
	req.Mask |= bits
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
