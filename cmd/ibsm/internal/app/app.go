// Package app is the ibsm command: its global flags, its nouns, and what is
// printed when something goes wrong.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/connect"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/fields"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/ports"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/run"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/sa"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/smp"
	"github.com/ibsm/ibsm/mad/text"
)

// Host is the surroundings of a run of the command.
type Host struct {
	Args           []string
	Stdout, Stderr io.Writer
	Open           session.Opener // nil: endpoint.Open
	List           session.Lister // nil: endpoint.List
}

// Run runs the command and gives its exit code. What went wrong is printed to
// Stderr.
func Run(ctx context.Context, host Host) int {
	host.Stdout = &patient{ctx, host.Stdout}
	a := New(host)
	global := append([]cli.Flag{cli.VersionFlag}, a.Flags...)
	err := a.RunContext(ctx, hoist(host.Args, global, a.Commands))
	if err != nil && !errors.Is(err, syscall.EPIPE) { // the reader has seen enough
		message := strings.ReplaceAll(err.Error(), "\n", "; ") // of errors.Join
		fmt.Fprintf(host.Stderr, "ibsm: %s\n", text.Printable(message))
		if hint := exit.Hint(err); hint != "" {
			fmt.Fprintf(host.Stderr, "ibsm: %s\n", hint)
		}
	}
	return exit.Code(err)
}

func init() {
	// -v is --verbose. urfave/cli has these flags in variables only.
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Usage: "print the version", DisableDefaultText: true}
	cli.HelpFlag = &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show help", DisableDefaultText: true}
}

// New makes the command.
func New(host Host) *cli.App {
	commands := []*cli.Command{
		ports.Command(), sa.Command(), smp.Command(), connect.Command(), connect.ListenCommand(),
		run.Command(), fields.Command(),
	}
	strict("ibsm", commands)
	return &cli.App{
		Name:      "ibsm",
		Usage:     "ask InfiniBand subnets through management datagrams",
		UsageText: "ibsm [global flags] NOUN [VERB] [ADDRESS] [ARGS]",
		Description: `An ENDPOINT says where ibsm stands:

   sim:demo                  a simulated fabric: 2 switches, hosts h1 to h8
   sim:demo#h3/1             the same, from port 1 of h3
   sim:FILE                  a fabric of your own, or the output of ibnetdiscover
   sim:two-level:leafs=36,spines=18,hosts=18
   ibsim:                    a node of a running ibsim
   ibsim:H-0001              the same, the one of that name
   umad:mlx5_0/1             a port of this machine; umad: and none at all are
                             its first active InfiniBand port

An ADDRESS is the same everywhere:

   5, 0x5                    LID
   0x0002c90300001234        GUID
   fe80::2:c903:0:1234       GID
   0,1,3                     directed route; dr:0 is the local port
   5:0,1                     combined: LID, then a directed route from there
   h1, "node name"           NodeDescription
   lid: guid: gid: dr: name: in front settle doubt

Flags may stand anywhere on the line. What follows "--" is no flag.

Exit codes: 0 done, 1 failed, 2 usage, 3 no answer, 4 answered with an error
status, 5 not as expected, 6 incomplete.

Examples:

   ibsm --on sim:demo sa path h1 h8
   ibsm --on sim:demo smp get PortInfo h1 1
   ibsm --on sim:demo -o json sa table node
   ibsm --on sim:demo connect h8
   ibsm run quickstart`,
		Version:         version(),
		Flags:           session.Flags(),
		Commands:        commands,
		Writer:          host.Stdout,
		ErrWriter:       host.Stderr,
		HideHelpCommand: true,
		// A comma in --var belongs to its value.
		DisableSliceFlagSeparator: true,
		OnUsageError:              usageError,
		Action:                    wants("noun", "", commands),
		ExitErrHandler:            func(*cli.Context, error) {}, // Run does it
		Metadata:                  map[string]any{session.OpenerKey: host.Open, session.ListerKey: host.List},
	}
}

// strict makes usage errors of what urfave/cli lets pass: unknown flags, unknown
// verbs, and none. name is what comes before the commands on a line.
func strict(name string, commands []*cli.Command) {
	for _, c := range commands {
		c.OnUsageError = usageError
		c.HideHelpCommand = true
		full := name + " " + c.Name
		c.UsageText = strings.TrimSpace(full + " " + c.ArgsUsage)
		if len(c.Subcommands) > 0 {
			c.UsageText = full + " VERB [ARGS]"
			c.Action = wants("verb", c.Name+": ", c.Subcommands)
			strict(full, c.Subcommands)
		}
	}
}

func usageError(_ *cli.Context, err error, _ bool) error {
	return &exit.UsageError{Err: err}
}

// wants is the action of what has subcommands: reached when none was named, or
// an unknown one. prefix begins the message.
func wants(what, prefix string, commands []*cli.Command) cli.ActionFunc {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name)
	}
	return func(c *cli.Context) error {
		if !c.Args().Present() {
			return exit.Usagef("%swhich %s? There are %s", prefix, what, strings.Join(names, ", "))
		}
		return exit.Usagef("%sunknown %s %q: there are %s", prefix, what, c.Args().First(), strings.Join(names, ", "))
	}
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
