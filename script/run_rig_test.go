package script_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/sa"
	"github.com/ibsm/ibsm/script"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/ucma"
)

// everything is what a simulated fabric meets of requires.
var everything = []string{"sa", "rmpp", "sa-set", "busy", "sma-set", "fault", "cm", "serve", "sim"}

// bench is a place to run scripts at: the demo fabric, from host h1.
type bench struct {
	t     testing.TB
	env   script.Env
	files fstest.MapFS // beside the script
	opt   script.Options
	text  script.TextReport

	noMADs bool // leave MADs out of the text report

	report []byte
	events []script.Event // the ends of steps
	sent   atomic.Int64   // messages
}

// counter counts the messages that leave a device.
type counter struct {
	port.Device
	sent *atomic.Int64
}

func (c *counter) Open() (port.Port, error) {
	p, err := c.Device.Open()
	return countedPort{p, c.sent}, err
}

type countedPort struct {
	port.Port
	sent *atomic.Int64
}

func (p countedPort) Send(m *port.Message) error {
	p.sent.Add(1)
	return p.Port.Send(m)
}

// newBench opens the demo fabric; the test must end it in its bubble, if it has one.
func newBench(t testing.TB) (b *bench, end func()) {
	t.Helper()
	dev, err := endpoint.Open(context.Background(), "sim:demo#h1")
	if err != nil {
		t.Fatal(err)
	}
	b = &bench{t: t, files: fstest.MapFS{}}
	counting := &counter{Device: dev, sent: &b.sent}
	admin, err := sa.NewClient(counting, sa.Config{})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := smp.NewClient(counting, smp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	faults, ok := endpoint.FaultsOf(dev)
	if !ok {
		t.Fatal("a simulated fabric takes no faults")
	}
	var cm endpoint.CM
	b.env = script.Env{
		Device: counting, SA: admin, SMP: nodes, Resolver: sa.NewResolver(admin), Faults: faults,
		Simulated: true, Provides: everything,
		CM: func(ctx context.Context) (ucma.Opener, error) {
			var err error
			if cm, err = endpoint.OpenCM(ctx, dev, endpoint.CMConfig{}); err != nil {
				return nil, err
			}
			return cm.Open, nil
		},
	}
	return b, func() {
		if cm != nil {
			if err := cm.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, closer := range []interface{ Close() error }{nodes, admin, dev} {
			if err := closer.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// load reads and checks a script, in which a first line of the version is put.
func (b *bench) load(text string) *script.Script {
	b.t.Helper()
	b.files["test.yaml"] = &fstest.MapFile{Data: []byte("version: 1\n" + text)}
	s, err := script.Load("test.yaml", b.files)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := s.Check(script.CheckEnv{On: "sim:demo", Vars: b.opt.Vars}); err != nil {
		b.t.Fatal(err)
	}
	return s
}

// run runs a script.
func (b *bench) run(ctx context.Context, text string) *script.Outcome {
	b.t.Helper()
	s := b.load(text)
	b.report, b.events = nil, nil
	opt := b.opt
	opt.Report = func(e *script.Event) {
		shown := *e
		if e.Failure != nil && b.noMADs {
			failure := *e.Failure
			failure.Sent, failure.Answer = nil, nil
			shown.Failure = &failure
		}
		b.report = b.text.Append(b.report, &shown)
		if e.Kind == script.EventEnd {
			b.events = append(b.events, *e)
		}
		if b.opt.Report != nil {
			b.opt.Report(e)
		}
	}
	out, err := script.Run(ctx, s, b.env, opt)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// told gives what the script has logged, in its order.
func (b *bench) told() []string {
	var lines []string
	for l := range strings.Lines(string(b.report)) {
		if rest, ok := strings.CutPrefix(l, "log "); ok {
			lines = append(lines, strings.TrimSpace(rest))
		}
	}
	return lines
}

// takes bounds how long something took in virtual time.
func takes(t *testing.T, start time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(start); got != want {
		t.Errorf("it took %v, want %v", got, want)
	}
}
