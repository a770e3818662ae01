// Package sa is the noun that queries the subnet administrator.
package sa

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// Command makes the noun.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "sa",
		Usage: "query the subnet administrator (saquery)",
		Subcommands: []*cli.Command{
			pathCommand(),
			{
				Name:      "get",
				Usage:     "the one record that agrees with the fields given (SubnAdmGet)",
				ArgsUsage: "RECORD [FIELD=VALUE...]",
				Description: recordHelp(mad.MethodGet) + `

Examples:

   ibsm --on sim:demo sa get classportinfo
   ibsm --on sim:demo sa get node NodeGUID=0x0200000100000100
   ibsm --on sim:demo sa get path SGID=h1 DGID=h8 --decoded`,
				Flags: []cli.Flag{session.DecodedFlag()},
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
   ibsm --on sim:demo -o ndjson sa table path SGID=h3
   ibsm --on sim:demo -o csv sa table NR`,
				Flags: []cli.Flag{session.DecodedFlag()},
				Action: session.Action(1, -1, func(ctx context.Context, s *session.Session, args []string) error {
					return query(ctx, s, mad.MethodGetTable, args)
				}),
			},
		},
	}
}

func recordHelp(method mad.Method) string {
	return "RECORD is one of\n\n   " + session.HelpList(recordNames(method)) + `

by one of these names, the whole one of the IBA, or that of saquery. FIELD is a
component of the record by the name of the IBA or of saquery; VALUE is a
number, a name of the field's values, or, for LIDs and GIDs, an address. An
MTU, a rate or a packet life time is exactly that one, unless its selector is
given as well.`
}

// recordNames are the short names of the records that have a method: node (NR)
// for NodeRecord.
func recordNames(method mad.Method) (names []string) {
	for _, a := range layout.Attributes {
		if !isRecord(a) || !a.Allows(uint8(method)) {
			continue
		}
		name := strings.ToLower(strings.TrimSuffix(a.Name, "Record"))
		if a.Short != "" {
			name += " (" + a.Short + ")"
		}
		names = append(names, name)
	}
	return names
}

// isRecord tells whether an attribute can be asked for.
func isRecord(a *layout.Attribute) bool {
	return a.Class == uint8(mad.ClassSubnAdm) && a.Allows(uint8(mad.MethodGet))
}

// lookUpRecord finds a record by its name with or without "Record".
func lookUpRecord(name string) (*layout.Attribute, error) {
	for _, name := range []string{name + "Record", name} {
		if a, err := layout.LookUpAttribute(uint8(mad.ClassSubnAdm), name); err == nil && isRecord(a) {
			return a, nil
		}
	}
	return nil, exit.Usagef("unknown record %q: it is one of %s", name, strings.Join(recordNames(mad.MethodGet), ", "))
}
