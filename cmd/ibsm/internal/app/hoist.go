package app

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// hoist puts a command line into the order that urfave/cli reads: global flags,
// noun and verb, their own flags, and behind "--" the arguments. A flag may so
// stand anywhere, and one that nobody knows is found out wherever it stands.
// What stands behind "--" already is an argument, whatever it looks like.
func hoist(args []string, global []cli.Flag, commands []*cli.Command) []string {
	front := slices.Clone(args[:min(1, len(args))])
	known := slices.Concat(global, allFlags(commands))
	var path, own, rest []string
	for i := 1; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if len(arg) > 1 && arg[0] == '-' {
			name, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			words := args[i : i+1]
			if f := lookUpFlag(known, name); f != nil && !isSwitch(f) && !hasValue {
				words = args[i:min(i+2, len(args))]
				i++
			}
			switch isGlobal := lookUpFlag(global, name) != nil; {
			case i == len(args) && isGlobal: // it lacks its value, and is told so where it is last
				return append(front, words...)
			case i == len(args):
				return slices.Concat(front, path, own, words)
			case isGlobal:
				front = append(front, words...)
			default:
				own = append(own, words...)
			}
			continue
		}
		k := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(arg) })
		if k < 0 || len(rest) > 0 {
			rest = append(rest, arg)
			continue
		}
		path = append(path, arg)
		commands = commands[k].Subcommands
	}
	line := slices.Concat(front, path, own)
	if len(rest) > 0 && !slices.ContainsFunc(own, isHelp) { // for which arguments would be topics
		line = append(append(line, "--"), rest...)
	}
	return line
}

// allFlags gives the flags of all nouns and verbs. One name means the same, or at
// least takes a value, everywhere.
func allFlags(commands []*cli.Command) (flags []cli.Flag) {
	for _, c := range commands {
		flags = slices.Concat(flags, c.Flags, allFlags(c.Subcommands))
	}
	return flags
}

func isHelp(arg string) bool {
	return slices.Contains(cli.HelpFlag.Names(), strings.TrimLeft(arg, "-"))
}

func lookUpFlag(flags []cli.Flag, name string) cli.Flag {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return nil
	}
	return flags[i]
}

// isSwitch tells whether a flag takes no value.
func isSwitch(f cli.Flag) bool {
	_, ok := f.(*cli.BoolFlag)
	return ok
}
