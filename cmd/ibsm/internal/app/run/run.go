// Package run has the noun that runs sequences of MADs, written in YAML.
package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/configs"
	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/script"
	"github.com/ibsm/ibsm/ucma"
)

// Command makes the noun run.
func Command() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a sequence of MADs written in YAML, with what is expected of each (ibis)",
		ArgsUsage: "FILE",
		Description: `FILE is a script, or the name of one that comes with ibsm: --list shows them, and
those of a folder that is named. It runs at the endpoint that it names, unless --on
names another.

Each step has a line, and is ok, FAIL (not as expected), ERROR (it could not be
done) or skip. Of loops it is their number and what did not pass, with -v all. The
whole script is checked before the first MAD is sent; --check does no more.

Where the fabric is real a script that changes something needs --yes. --dry-run
sends nothing but look-ups of addresses, and prints each MAD, decoded and in
hexadecimal. Ctrl-C ends the step under way; finally runs all the same.

Exit codes: 0 all passed, or skipped; 5 something is not as expected; else that of
what could not be done.

Examples:

   ibsm run quickstart
   ibsm run --list
   ibsm run --check quickstart
   ibsm run quickstart --var dst=h5
   ibsm -o ndjson run sa-basics
   ibsm --on sim:demo run port-bounce --dry-run`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "check", Usage: "check the script, and send nothing", DisableDefaultText: true},
			&cli.BoolFlag{Name: "list", Usage: "list the scripts of ibsm, or of a folder FILE", DisableDefaultText: true},
			&cli.StringSliceFlag{Name: "var", Usage: "give a variable of the script another value: `NAME=VALUE`"},
			&cli.StringFlag{Name: "junit", Usage: "write a report for continuous integration to `FILE`: JUnit's XML"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the MADs, and send none", DisableDefaultText: true},
			&cli.BoolFlag{Name: "yes", Usage: "let the script change a real fabric", DisableDefaultText: true},
		},
		Action: session.Action(0, 1, run),
	}
}

func run(ctx context.Context, s *session.Session, args []string) error {
	if s.Switch("list") {
		return list(s, args)
	}
	if len(args) == 0 {
		return exit.Usagef("run: which script? It takes a FILE; 'ibsm run --list' shows those that come with ibsm")
	}
	file, err := load(args[0])
	if file == nil {
		file = &script.Script{File: args[0]}
	}
	ci, ciErr := createJUnit(s, title(file))
	if ciErr != nil {
		return ciErr
	}
	if err == nil {
		err = check(s, file)
	}
	if err != nil {
		err = mistakes(s, args[0], err)
		return errors.Join(err, ci.close(nil, err))
	}
	if s.Switch("check") {
		return errors.Join(checked(s, file), ci.close(nil, nil))
	}
	if s.On == "" {
		s.On = file.On
	}
	out, err := execute(ctx, s, file, ci)
	return errors.Join(err, ci.close(out, err))
}

// load reads a script: a file, or by its name one that is embedded.
func load(name string) (*script.Script, error) {
	file, err := script.Load(name, nil)
	if !errors.Is(err, fs.ErrNotExist) || strings.ContainsRune(strings.TrimPrefix(name, "configs/"), '/') {
		return file, err
	}
	name = strings.TrimPrefix(name, "configs/")
	if path.Ext(name) == "" {
		name += ".yaml"
	}
	if embedded, embeddedErr := script.Load(name, configs.FS); !errors.Is(embeddedErr, fs.ErrNotExist) {
		return embedded, embeddedErr
	}
	names, listErr := embedded()
	if listErr != nil {
		return nil, listErr
	}
	near := ""
	if names := layout.Nearest(strings.TrimSuffix(name, path.Ext(name)), names); len(names) > 0 {
		near = " (nearest: " + strings.Join(names, ", ") + ")"
	}
	return nil, fmt.Errorf("%w, and none of that name comes with ibsm%s: 'ibsm run --list' shows those that do", err, near)
}

// variables are those of --var.
func variables(s *session.Session) (map[string]any, error) {
	vars := make(map[string]any)
	for _, text := range s.Strings("var") {
		name, value, err := script.ParseVar(text)
		if err != nil {
			return nil, exit.Usagef("--var %w", err)
		}
		vars[name] = value
	}
	return vars, nil
}

func check(s *session.Session, file *script.Script) error {
	vars, err := variables(s)
	if err != nil {
		return err
	}
	env := script.CheckEnv{On: s.On, Vars: vars}
	for _, f := range endpoint.NamedFaults() {
		names := &env.SMAFaults
		if f.OfSA {
			names = &env.SAFaults
		}
		*names = append(*names, f.Name)
	}
	return file.Check(env)
}

// execute runs the script at the endpoint.
func execute(ctx context.Context, s *session.Session, file *script.Script, ci *junit) (*script.Outcome, error) {
	vars, err := variables(s)
	if err != nil {
		return nil, err
	}
	if !s.Simulated() && !s.Switch("yes") && !s.Switch("dry-run") {
		if err := file.Harmless(); err != nil {
			return nil, exit.Usagef("%w", err)
		}
	}
	env, err := place(ctx, s)
	if err != nil {
		return nil, err
	}
	r := newReport(s, file, ci)
	out, err := script.Run(ctx, file, env, script.Options{
		Yes: s.Switch("yes"), DryRun: s.Switch("dry-run"), Vars: vars, Report: r.event,
	})
	return out, errors.Join(r.err, verdict(r.name, out), err)
}

// place is where the script runs.
func place(ctx context.Context, s *session.Session) (env script.Env, err error) {
	if env.Device, err = s.Device(ctx); err != nil {
		return env, err
	}
	if env.SA, err = s.SA(ctx); err != nil {
		return env, err
	}
	info, err := env.Device.Info()
	if err != nil {
		return env, err
	}
	if info.LinkLayer != port.LinkEthernet { // which has no SMPs
		if env.SMP, err = s.SMP(ctx); err != nil {
			return env, err
		}
	}
	env.Resolver = sa.NewResolver(env.SA)
	env.Simulated = s.Simulated()
	env.Provides = provides[s.Kind()]
	if info.LinkLayer == port.LinkEthernet && !s.NamesSA() {
		env.Provides = []string{"rmpp", "cm", "serve"} // no subnet manager is there
	}
	if faults, ok := endpoint.FaultsOf(s.Opened()); ok {
		env.Faults = faults
	}
	if s.Kind() == kindIbsim {
		return env, nil
	}
	open := sync.OnceValues(func() (ucma.Opener, error) {
		// It outlives the step that asks for it.
		cm, err := s.CM(context.WithoutCancel(ctx), endpoint.CMConfig{})
		if err != nil {
			return nil, err
		}
		return cm.Open, nil
	})
	env.CM = func(context.Context) (ucma.Opener, error) { return open() }
	return env, nil
}

const kindIbsim = "ibsim"

// provides are what each kind of endpoint meets of requires (script.Requirements). ibsim
// has no RMPP, and gives requests to one client of a node, who has asked for them;
// OpenSM and SM agents elsewhere take Set, but nothing makes them busy.
var provides = map[string][]string{
	"sim":     {"sa", "rmpp", "sa-set", "busy", "sma-set", "fault", "cm", "serve", "sim"},
	"umad":    {"sa", "rmpp", "sa-set", "sma-set", "cm", "serve"},
	kindIbsim: {"sa", "sa-set", "sma-set"},
}

// verdict is what became of the run, as an error with its exit code.
func verdict(name string, out *script.Outcome) error {
	if out == nil {
		return nil
	}
	message := fmt.Errorf("run %s: %v: %v", name, out.Verdict, out.Counts)
	switch out.Verdict {
	case script.Failed:
		return exit.Told(&exit.ExpectError{Err: message})
	case script.Interrupted:
		return exit.Told(message)
	case script.Errored:
		if out.First != nil && out.First.Err != nil {
			message = fmt.Errorf("%w; first: %v: %w", message, out.First.Pos, out.First.Err)
		}
		return exit.Told(message)
	}
	return nil
}

// mistakes tells what is wrong with a script, a record for each.
func mistakes(s *session.Session, name string, err error) error {
	var all *script.ErrorList
	if !errors.As(err, &all) {
		return err
	}
	if err := s.Out.Columns(mistakeMembers(&script.Error{})); err != nil {
		return err
	}
	for _, e := range all.Errors {
		if err := s.Out.Record("Mistake", mistakeMembers(e), []byte(e.Error()+"\n")); err != nil {
			return err
		}
	}
	return exit.Told(&mistakesError{name, all})
}

// mistakesError says in a line how many mistakes there are.
type mistakesError struct {
	name string
	list *script.ErrorList
}

func (e *mistakesError) Error() string {
	n := len(e.list.Errors) + e.list.More
	if n == 1 {
		return fmt.Sprintf("run %s: a mistake in it; nothing was sent", e.name)
	}
	return fmt.Sprintf("run %s: %d mistakes in it; nothing was sent", e.name, n)
}

func (e *mistakesError) Unwrap() error { return e.list }
