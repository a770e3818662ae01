// Package session is what the nouns of the command share: the endpoint, the
// clients on it and the output, as the global flags ask for them.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/capture"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/exit"
	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/render"
	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/topo"
)

// Opener opens an endpoint.
type Opener func(ctx context.Context, endpoint string) (port.Device, error)

// transfer is how many times --timeout a table may take in mode kernel, beyond
// the wait for its start.
const transfer = 10

// Lister lists what an endpoint offers.
type Lister func(ctx context.Context, endpoint string) ([]endpoint.Choice, error)

// Where an App's Metadata holds its Opener and its Lister.
const (
	OpenerKey = "opener"
	ListerKey = "lister"
)

// Session is one run of a verb.
type Session struct {
	On  string // the endpoint
	Out *render.Out

	flags   flags
	verb    *cli.Context
	open    Opener
	list    Lister
	stderr  io.Writer
	opened  port.Device // as it was opened
	dev     port.Device // opened, or what traces it
	trace   *capture.Writer
	closers []func() error
	sa      *sa.Client
	smp     *smp.Client
}

// Action makes the action of a verb: it opens the output, runs the verb, writes
// its error as a record and closes what was opened. The verb takes at least min
// and at most max arguments (-1: any number).
func Action(min, max int, run func(ctx context.Context, s *Session, args []string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		flags, flagsErr := parseFlags(c)
		out, err := render.New(c.String("output"), c.App.Writer, render.Head{Command: command(c), On: flags.on})
		if err != nil {
			return &exit.UsageError{Err: fmt.Errorf("--output: %w", err)}
		}
		out.Stopped = c.Context.Err
		s := &Session{Out: out, On: flags.on, flags: flags, verb: c, stderr: c.App.ErrWriter, open: endpoint.Open, list: endpoint.List}
		args := c.Args().Slice()
		if err = flagsErr; err == nil && (len(args) < min || max >= 0 && len(args) > max) {
			err = exit.Usagef("%s: it takes %s, and not %d arguments %q", command(c), c.Command.ArgsUsage, len(args), args)
			if max == 0 {
				err = exit.Usagef("%s: it takes no arguments such as %q", command(c), args[0])
			}
		}
		if open, _ := c.App.Metadata[OpenerKey].(Opener); open != nil {
			s.open = open
		}
		if list, _ := c.App.Metadata[ListerKey].(Lister); list != nil {
			s.list = list
		}
		if err == nil {
			err = s.run(c.Context, run, args)
		}
		if endErr := out.End(errorRecords(err)...); endErr != nil {
			return fmt.Errorf("write the output: %w", endErr)
		}
		return err
	}
}

func (s *Session) run(ctx context.Context, run func(context.Context, *Session, []string) error, args []string) error {
	err := s.startTrace()
	if err == nil {
		err = run(ctx, s, args)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = fmt.Errorf("interrupted: %w", err)
	}
	var told *exit.ToldError
	if n := s.Out.Records(); err != nil && n > 0 && !errors.As(err, &told) {
		err = &exit.IncompleteError{Got: n, Err: err}
	}
	return errors.Join(err, s.close())
}

// command is the noun and the verb.
func command(c *cli.Context) string {
	return strings.TrimPrefix(c.Command.HelpName, c.App.Name+" ")
}

func errorRecords(err error) []text.Object {
	if err == nil {
		return nil
	}
	return []text.Object{{
		{Name: "exit", Value: exit.Code(err)},
		{Name: "kind", Value: exit.Kind(err)},
		{Name: "message", Value: err.Error()},
		{Name: "hint", Value: exit.Hint(err)},
	}}
}

// Flag gives the value of a flag of the verb, and whether it is on the line.
func (s *Session) Flag(name string) (value string, given bool) {
	return s.verb.String(name), s.verb.IsSet(name)
}

// Int gives the value of a flag of the verb that is a number.
func (s *Session) Int(name string) int { return s.verb.Int(name) }

// Strings gives the values of a flag of the verb that may be given several times.
func (s *Session) Strings(name string) []string { return s.verb.StringSlice(name) }

// Duration gives the value of a flag of the verb that is a time.
func (s *Session) Duration(name string) time.Duration { return s.verb.Duration(name) }

// Switch tells whether a flag of the verb that takes no value is set.
func (s *Session) Switch(name string) bool { return s.verb.Bool(name) }

// DecodedFlag makes the flag of verbs that dump structures.
func DecodedFlag() cli.Flag {
	return &cli.BoolFlag{Name: "decoded", Usage: "add to text what the diags leave raw: names, times, parts of numbers", DisableDefaultText: true}
}

// DumpOptions are how the verb dumps structures.
func (s *Session) DumpOptions() text.Options {
	return text.Options{Decoded: s.Switch("decoded")}
}

func (s *Session) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	return errors.Join(errs...)
}

// Device opens the endpoint.
func (s *Session) Device(ctx context.Context) (port.Device, error) {
	if s.dev == nil {
		dev, err := s.open(ctx, s.On)
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, dev.Close)
		s.warn(dev)
		s.opened, s.dev = dev, dev
		if s.trace != nil {
			s.dev = capture.Device(dev, s.trace)
		}
	}
	return s.dev, nil
}

// Opened is the device as it was opened, for what the endpoint can do beside carrying
// MADs. nil: Device has not been asked for.
func (s *Session) Opened() port.Device { return s.opened }

// Ports lists what the endpoint offers.
func (s *Session) Ports(ctx context.Context) ([]endpoint.Choice, error) { return s.list(ctx, s.On) }

// warn tells what was found amiss in the file of a simulated fabric, unless
// --quiet.
func (s *Session) warn(dev port.Device) {
	fabric, ok := dev.(interface{ Warnings() []topo.Warning })
	if !ok || s.flags.quiet {
		return
	}
	for _, w := range fabric.Warnings() {
		fmt.Fprintf(s.stderr, "warning: %s\n", text.Printable(w.String()))
	}
}

// NamesSA tells whether --sa says where the SA is.
func (s *Session) NamesSA() bool { return s.flags.sa != nil }

// SA gives the client of the subnet's SA.
func (s *Session) SA(ctx context.Context) (*sa.Client, error) {
	if s.sa != nil {
		return s.sa, nil
	}
	dev, err := s.Device(ctx)
	if err != nil {
		return nil, err
	}
	cfg := sa.Config{
		Timeout: s.flags.timeout, Transfer: transfer * s.flags.timeout, Retries: s.retries(),
		PKey: s.flags.partition, SMKey: s.flags.smKey, RMPP: s.flags.rmpp,
	}
	if s.flags.sa != nil {
		if cfg.SA, err = s.saAddress(ctx, dev, cfg); err != nil {
			return nil, fmt.Errorf("--sa %v: %w", s.flags.sa, err)
		}
	}
	if s.sa, err = s.newSA(dev, cfg); err != nil {
		return nil, err
	}
	return s.sa, nil
}

func (s *Session) newSA(dev port.Device, cfg sa.Config) (*sa.Client, error) {
	c, err := sa.NewClient(dev, cfg)
	if err == nil {
		s.closers = append(s.closers, c.Close)
	}
	return c, err
}

// saAddress makes an address vector of --sa. The port's own SA looks up what is
// no LID; an Ethernet port has none, and goes to a GID as it is.
func (s *Session) saAddress(ctx context.Context, dev port.Device, cfg sa.Config) (*mad.AddressVector, error) {
	info, err := dev.Info()
	if err != nil {
		return nil, err
	}
	if s.flags.sa.Kind == mad.AddrGID && info.LinkLayer == port.LinkEthernet {
		to, err := sa.AddressByGID(info, s.flags.sa.GID)
		return &to, err
	}
	lid := s.flags.sa.LID
	if s.flags.sa.Kind != mad.AddrLID {
		own, err := s.newSA(dev, cfg)
		if err != nil {
			return nil, err
		}
		if lid, err = sa.NewResolver(own).LID(ctx, *s.flags.sa); err != nil {
			return nil, err
		}
	}
	return &mad.AddressVector{LID: lid, QPN: mad.QPGSI, SL: info.SMSL}, nil
}

// Resolve finds the port that an address stands for by asking the SA.
func (s *Session) Resolve(ctx context.Context, a mad.Addr) (sa.Endpoint, error) {
	c, err := s.SA(ctx)
	if err != nil {
		return sa.Endpoint{}, err
	}
	start := time.Now()
	e, err := sa.NewResolver(c).Resolve(ctx, a)
	if err == nil {
		s.Timed(start, "look up %v by SubnAdmGetTable(NodeRecord) at %s: LID %v, %v", a, s.AtSA(), e.LID, e.GID)
	}
	return e, err
}

// AtSA names the SA that is asked, for messages.
func (s *Session) AtSA() string {
	if s.flags.sa != nil {
		return fmt.Sprintf("the SA at %v", s.flags.sa)
	}
	if info, err := s.dev.Info(); err == nil {
		return fmt.Sprintf("the SA at LID %v", info.SMLID)
	}
	return "the SA"
}

// LID makes the session the resolver of an SMP client: the SA is asked only if
// an address needs it.
func (s *Session) LID(ctx context.Context, a mad.Addr) (mad.LID, error) {
	if a.Kind == mad.AddrLID {
		return a.LID, nil
	}
	e, err := s.Resolve(ctx, a)
	return e.LID, err
}

// SMP gives the client for SM attributes.
func (s *Session) SMP(ctx context.Context) (*smp.Client, error) {
	if s.smp != nil {
		return s.smp, nil
	}
	dev, err := s.Device(ctx)
	if err != nil {
		return nil, err
	}
	s.smp, err = smp.NewClient(dev, smp.Config{Timeout: s.flags.timeout, Retries: s.retries(), Resolver: s})
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, s.smp.Close)
	return s.smp, nil
}

// retries is --retries as the clients take it: 0 means their default there.
func (s *Session) retries() int {
	if s.flags.retries == 0 {
		return -1
	}
	return s.flags.retries
}

// Count tells people how many records there were, unless --quiet.
func (s *Session) Count() {
	switch n := s.Out.Records(); {
	case s.flags.quiet:
	case n == 1:
		fmt.Fprintln(s.stderr, "1 record")
	default:
		fmt.Fprintf(s.stderr, "%d records\n", n)
	}
}

// Timed prints, with --verbose, what was asked and how long it took.
func (s *Session) Timed(start time.Time, format string, args ...any) {
	if s.flags.verbose {
		fmt.Fprintf(s.stderr, "%s (%v)\n", text.Printable(fmt.Sprintf(format, args...)), time.Since(start).Round(time.Microsecond))
	}
}

// HelpList lays out a list of words for help.
func HelpList(words []string) string {
	const width = 76
	lines := words[:1:1]
	for _, word := range words[1:] {
		if last := &lines[len(lines)-1]; len(*last)+len(", ")+len(word) < width {
			*last += ", " + word
			continue
		}
		lines = append(lines, word)
	}
	return strings.Join(lines, ",\n   ")
}
