package sa

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/sa"
)

func pathCommand() *cli.Command {
	return &cli.Command{
		Name:      "path",
		Usage:     "the paths from one port to another, or from all",
		ArgsUsage: "SRC DST | --all-to DST",
		Description: `SRC and DST are names, LIDs, GUIDs or GIDs, in any mixture. Of text output
each path has a line before it that begins with #.

Flags narrow the answer. Of --mtu, --rate and --life a BOUND is a value with
>, >=, <, <= or = before it (quote it: the shell knows some of these), a value
alone, or the best that there is:

   mtu     2048  '>=2048'  '<4096'  max
   rate    100  100G  '>=56Gb/s'  max       (a number is Gb/s)
   life    1.07s  '<1s'  18  min            (a number is the exponent n of 4.096us*2^n)

Examples:

   ibsm --on sim:demo sa path h1 h8
   ibsm --on sim:demo -o json sa path 1 0x0200000100000801
   ibsm --on sim:demo sa path h1 h3 --mtu '>=2048' --rate '>=56G' --decoded
   ibsm --on sim:demo sa path h1 h2 --pkey 0x8001 --sl 0 --numb-path 1
   ibsm --on sim:demo -o csv sa path --all-to h8`,
		Flags:  append(pathFlags(), session.DecodedFlag()),
		Action: session.Action(0, 2, path),
	}
}

func path(ctx context.Context, s *session.Session, args []string) error {
	allTo, fromAll := s.Flag("all-to")
	switch {
	case fromAll && len(args) == 0:
		args = []string{allTo}
	case fromAll || len(args) != 2:
		return exit.Usagef("sa path: it takes SRC DST, or --all-to DST, and not %d arguments %q", len(args), args)
	}
	q, err := pathQuery(s)
	if err != nil {
		return err
	}
	q.AnySource = fromAll
	if err := s.Out.Columns(text.ObjectOf(&mad.PathRecord{})); err != nil {
		return err
	}
	names, asked := map[mad.GUID]string{}, "all ports"
	for i, arg := range args {
		end, lid, err := resolve(ctx, s, arg)
		if err != nil {
			return err
		}
		names[end.PortGUID] = end.Desc
		if i == len(args)-1 {
			q.DGID, q.DLID = end.GID, lid
			asked += fmt.Sprintf(" to %s (%v)", arg, end.GID)
		} else {
			q.SGID, q.SLID = end.GID, lid
			asked = fmt.Sprintf("%s (%v)", arg, end.GID)
		}
	}
	c, err := s.SA(ctx)
	if err != nil {
		return err
	}
	if fromAll && s.Out.IsText() {
		if err := nodeNames(ctx, s, c, names); err != nil {
			return err
		}
	}
	start := time.Now()
	for rec, err := range c.Paths(ctx, q) {
		if err != nil {
			return err
		}
		if err := s.Out.Record("PathRecord", text.ObjectOf(&rec), pathText(s, &rec, names)); err != nil {
			return err
		}
	}
	s.Timed(start, "SubnAdmGetTable(PathRecord) from %s at %s: %d records", asked, s.AtSA(), s.Out.Records())
	if s.Out.Records() == 0 {
		return fmt.Errorf("path from %s: %w", asked, sa.ErrNoRecords)
	}
	if fromAll {
		s.Count()
	}
	return nil
}

// resolve finds the port at an end of a path, and its LID if just that one of
// several by the LMC is meant.
func resolve(ctx context.Context, s *session.Session, arg string) (end sa.Endpoint, lid mad.LID, err error) {
	a, err := mad.ParseAddr(arg)
	if err != nil {
		return end, 0, err
	}
	if a.Kind == mad.AddrLID {
		lid = a.LID
	}
	end, err = s.Resolve(ctx, a)
	return end, lid, err
}

// nodeNames adds the names of all nodes, or of as many as come where no long
// table can.
func nodeNames(ctx context.Context, s *session.Session, c *sa.Client, names map[mad.GUID]string) error {
	start := time.Now()
	for rec, err := range sa.Table(ctx, c, sa.Query[mad.NodeRecord]{}) {
		if errors.Is(err, sa.ErrIncomplete) {
			break
		}
		if err != nil {
			return err
		}
		names[rec.NodeInfo.PortGUID] = rec.NodeDescription.String()
	}
	s.Timed(start, "look up all names by SubnAdmGetTable(NodeRecord) at %s: %d", s.AtSA(), len(names))
	return nil
}

// pathText is a record as saquery prints it, behind a line for people.
func pathText(s *session.Session, rec *mad.PathRecord, names map[mad.GUID]string) []byte {
	name := func(gid mad.GID) string {
		if n, ok := names[gid.GUID()]; ok {
			return text.Printable(n)
		}
		return gid.String()
	}
	return fmt.Appendf(nil, "# Path from %s (LID %v) to %s (LID %v): MTU %v, rate %v, SL %d, P_Key %v, packet life time %v\n%s",
		name(rec.SGID), rec.SLID, name(rec.DGID), rec.DLID, rec.MTU, rec.Rate, rec.SL, rec.PKey,
		round(mad.TimeOf(rec.PacketLifeTime)), text.Dump(rec, s.DumpOptions()))
}
