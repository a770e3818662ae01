package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ibsm/ibsm/internal/kernelrig/plan"
)

// What the names of tests for the guest begin with.
const (
	testPrefix  = "TestKernel"
	pairPrefix  = "TestKernelPair" // these run in two guests at the same time, and only there
	benchPrefix = "BenchmarkKernel"
)

// A suite is a package with tests or benchmarks for the guest.
type suite struct {
	module string   // folder of the Go module that holds it
	pkg    string   // folder of the package, relative to the tree's root
	dir    string   // the same, absolute
	names  []string // of the functions
}

// call makes a test binary run functions by name, and of their subtests those that
// a pattern for find asks for.
func (s suite) call(flag string, names []string, pattern string, args ...string) plan.Test {
	function, _, _ := strings.Cut(pattern, "/")
	exact := "-test." + flag + "=^(" + strings.Join(names, "|") + ")$" + pattern[len(function):]
	dir := path.Join("/", sources, s.pkg)
	return plan.Test{Package: s.pkg, Binary: path.Join(dir, "test"), Dir: dir, Args: append([]string{exact}, args...)}
}

// split parts what one guest runs by itself from what two run together. In a pair
// each test has a process of its own, and begins when both guests are ready for it.
func split(suites []suite, pattern string, args []string) (alone, pair []plan.Test) {
	for _, s := range suites {
		var names []string
		for _, name := range s.names {
			if strings.HasPrefix(name, pairPrefix) {
				pair = append(pair, s.call("run", []string{name}, pattern, args...))
			} else {
				names = append(names, name)
			}
		}
		if names != nil {
			alone = append(alone, s.call("run", names, pattern, args...))
		}
	}
	return alone, pair
}

// find lists the packages of the tree, and of this rig, that have functions for the
// guest, of those with the prefix, that match a pattern.
func find(ctx context.Context, root, prefix, pattern string) (suites []suite, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(pattern, "/") // as go test reads it: then come subtests
	match, err := regexp.Compile(first)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	function := regexp.MustCompile(`(?m)^func (` + prefix + `\w*)\(\w+ \*testing\.[TB]\)`)
	for _, module := range []string{root, filepath.Join(root, "internal", "kernelrig")} {
		cmd := goCommand(ctx, module, "list", "-f",
			`{{.Dir}}{{range .TestGoFiles}}|{{.}}{{end}}{{range .XTestGoFiles}}|{{.}}{{end}}`, "./...")
		out, err := cmd.Output()
		if err != nil {
			return nil, failed(cmd, err)
		}
		for line := range strings.Lines(string(out)) {
			fields := strings.Split(strings.TrimSpace(line), "|")
			dir, files := fields[0], fields[1:]
			names, err := declared(dir, files, function, match)
			if err != nil {
				return nil, err
			}
			if len(names) == 0 {
				continue
			}
			pkg, err := filepath.Rel(root, dir)
			if err != nil {
				return nil, err
			}
			suites = append(suites, suite{module, filepath.ToSlash(pkg), dir, names})
		}
	}
	if len(suites) == 0 {
		return nil, fmt.Errorf("no %s... matches %q", prefix, pattern)
	}
	return suites, nil
}

func declared(dir string, files []string, function, match *regexp.Regexp) (names []string, err error) {
	for _, file := range files {
		src, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		for _, m := range function.FindAllSubmatch(src, -1) {
			if match.Match(m[1]) {
				names = append(names, string(m[1]))
			}
		}
	}
	return names, nil
}

// goCommand is the go command for what runs in the guest: static programs.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	return cmd
}

// failed adds to a command's error which it was and what it said.
func failed(cmd *exec.Cmd, err error) error {
	said := ""
	if exit, ok := err.(*exec.ExitError); ok {
		said = "\n" + strings.TrimSpace(string(exit.Stderr))
	}
	return fmt.Errorf("%s: %w%s", strings.Join(cmd.Args, " "), err, said)
}
