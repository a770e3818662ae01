package system

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/configs"
	"github.com/ibsm/ibsm/endpoint"
	"github.com/ibsm/ibsm/sa"
	scripts "github.com/ibsm/ibsm/script"
	"github.com/ibsm/ibsm/smp"
	"github.com/ibsm/ibsm/ucma"
)

// everything is what a simulated fabric meets of a script's requires.
var everything = []string{"sa", "rmpp", "sa-set", "busy", "sma-set", "fault", "cm", "serve", "sim"}

// onStage is a simulated fabric as the command opens it, for scripts.
func onStage(t *testing.T, on string) scripts.Env {
	t.Helper()
	ctx := t.Context()
	dev, err := endpoint.Open(ctx, on)
	if err != nil {
		t.Fatal(err)
	}
	env := scripts.Env{Device: dev, Simulated: true, Provides: everything}
	if env.SA, err = sa.NewClient(dev, sa.Config{}); err != nil {
		t.Fatal(err)
	}
	env.Resolver = sa.NewResolver(env.SA)
	if env.SMP, err = smp.NewClient(dev, smp.Config{Resolver: env.Resolver}); err != nil {
		t.Fatal(err)
	}
	if f, ok := endpoint.FaultsOf(dev); ok {
		env.Faults = f
	}
	var cm endpoint.CM
	open := sync.OnceValues(func() (ucma.Opener, error) {
		var err error
		if cm, err = endpoint.OpenCM(ctx, dev, endpoint.CMConfig{}); err != nil {
			return nil, err
		}
		return cm.Open, nil
	})
	env.CM = func(context.Context) (ucma.Opener, error) { return open() }
	t.Cleanup(func() {
		if cm != nil {
			cm.Close()
		}
		env.SMP.Close()
		env.SA.Close()
		if c, ok := dev.(interface{ Close() error }); ok {
			c.Close()
		}
	})
	return env
}

// load reads and checks a script of configs.
func load(t *testing.T, name string, vars map[string]any) *scripts.Script {
	t.Helper()
	s, err := scripts.Load(name+".yaml", configs.FS)
	if err == nil {
		err = s.Check(scripts.CheckEnv{Vars: vars})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// perform runs a script of configs and gives the ends of its steps, by their names;
// of several of a name that of the first that did not pass. watch sees every event.
func perform(t *testing.T, name string, env scripts.Env, vars map[string]any, watch func(*scripts.Event)) (*scripts.Outcome, map[string]*scripts.Event) {
	t.Helper()
	s := load(t, name, vars)
	steps := make(map[string]*scripts.Event)
	out, err := scripts.Run(t.Context(), s, env, scripts.Options{Yes: true, Vars: vars, Report: func(e *scripts.Event) {
		if watch != nil {
			watch(e)
		}
		if before := steps[e.Name]; e.Kind == scripts.EventEnd && (before == nil || before.Failure == nil) {
			keep := *e
			steps[e.Name] = &keep
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out, steps
}

// why says in a line why a step did not pass.
func why(f *scripts.Failure) string {
	if f.Err != nil {
		return fmt.Sprintf("%v: %v", f.Pos, f.Err)
	}
	s := fmt.Sprintf("%v: %s is %s", f.Pos, f.Expect, f.Got)
	for _, v := range f.Values {
		s += fmt.Sprintf("; %s = %s", v.Text, v.Is)
	}
	return s
}

// names lists the scripts of configs.
func names(t *testing.T) (all []string) {
	t.Helper()
	files, err := fs.Glob(configs.FS, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if file != "demo.yaml" { // a fabric
			all = append(all, strings.TrimSuffix(file, ".yaml"))
		}
	}
	return all
}

// passes fails the test unless all steps passed, and none was skipped for want of
// something.
func passes(t *testing.T, out *scripts.Outcome, steps map[string]*scripts.Event) {
	t.Helper()
	for name, e := range steps {
		if e.Failure != nil {
			t.Errorf("%s: %s", name, why(e.Failure))
		}
	}
	if out.Verdict != scripts.Passed || len(out.Missing) > 0 {
		t.Errorf("%v: %v, missing %v", out.Verdict, out.Counts, out.Missing)
	}
}

// Every script of configs passes on the fabric that it names.
func TestScripts(t *testing.T) {
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				on := load(t, name, nil).On
				out, steps := perform(t, name, onStage(t, on), nil, nil)
				passes(t, out, steps)
			})
		})
	}
}

// And on fat trees, where they speak of nothing that these do not have: the first
// steps of 648 hosts, the rest of fewer, which takes less time.
func TestScriptsScale(t *testing.T) {
	const large, small = "sim:two-level:leafs=36,spines=18,hosts=18", "sim:two-level:leafs=6,spines=3,hosts=6"
	for _, tt := range []struct {
		name, on string
		vars     map[string]any
	}{
		{"quickstart", large, map[string]any{"dst": "h648"}},
		{"port-sweep", small, nil},
		{"pkey-audit", large, nil},
		{"path-to-connect", small, map[string]any{"at_once": 64}},
		{"sa-basics", small, map[string]any{"dst": "h36", "switch": "leaf1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out, steps := perform(t, tt.name, onStage(t, tt.on), tt.vars, nil)
				passes(t, out, steps)
			})
		})
	}
}
